// Particles in an engine: its own array of structures is moved in place, with gravity, drag and a floor that they bounce off.
// engine.c does this in a Vulkan buffer of the engine's.   cc -O2 particles.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>

enum { COUNT = 50000, STEPS = 45, WIDTH = 400, HEIGHT = 200 };

typedef struct particle {
    float place[3], speed[3], age, size;
} particle;
static particle particles[COUNT]; // the engine's

static void step(gn_array *all, double dt) {
    gn_context *g = gn_context_of(all);
    const float down[] = {0, -9.81f, 0};
    gn_array *place = gn_index(all, ":, 0:3"), *speed = gn_index(all, ":, 3:6"), *age = gn_index(all, ":, 6"); // views
    gn_array *pull = gn_array_from(g, GN_F32, GN_SHAPE(3), down);
    gn_array *v = gn_mul_s(gn_add(speed, gn_mul_s(pull, dt)), 1 - 0.1 * dt), *x = gn_add(place, gn_mul_s(v, dt));
    gn_array *below = gn_lt_s(gn_index(x, ":, 1:2"), 0); // (COUNT, 1)
    const float floor[] = {1, -1, 1}, bounce[] = {0.7f, -0.6f, 0.7f};
    gn_array *up = gn_array_from(g, GN_F32, GN_SHAPE(3), floor), *back = gn_array_from(g, GN_F32, GN_SHAPE(3), bounce);
    gn_assign(place, gn_where(below, gn_mul(x, up), x));
    gn_assign(speed, gn_where(below, gn_mul(v, back), v));
    gn_assign(age, gn_add_s(age, dt));
}

int main(void) {
    gn_context *g = gn_open(NULL);
    int failed = 1;
    GN_SCOPE(g) {
        // No copy: on the CPU gpunum reads and writes the engine's memory, once gn_sync or gn_read has waited for it.
        gn_array *all = gn_array_wrap(g, GN_F32, GN_SHAPE(COUNT, (int64_t)(sizeof(particle) / sizeof(float))), particles, NULL, NULL);
        GN_SCOPE(g) { // a fountain
            gn_assign(gn_index(all, ":, 3:6"), gn_normal(g, GN_F32, GN_SHAPE(COUNT, 3), 0, 1.2));
            gn_assign(gn_index(all, ":, 4"), gn_uniform(g, GN_F32, GN_SHAPE(COUNT), 2, 9));
        }
        for (int i = 0; i < STEPS; i++)
            GN_SCOPE(g) { step(all, 1.0 / 60); }
        gn_array *height = gn_index(all, ":, 1");
        printf("after %d steps: mean height %.2f, highest %.2f\n", STEPS, gn_item(gn_mean(height, GN_ALL)), gn_item(gn_max(height, GN_ALL)));
        gn_read(all, particles, sizeof particles); // back into the engine's memory, wherever it was computed
        failed = !(gn_item(gn_min(height, GN_ALL)) >= 0 && particles[7].age > 0.74f && particles[7].age < 0.76f);
    }
    static unsigned char pixels[HEIGHT][WIDTH];
    for (int i = 0; i < COUNT; i++) { // the engine draws
        int x = (int)(particles[i].place[0] * 30) + WIDTH / 2, y = HEIGHT - 1 - (int)(particles[i].place[1] * 30);
        if (x >= 0 && x < WIDTH && y >= 0 && y < HEIGHT && pixels[y][x] < 250) pixels[y][x] = (unsigned char)(pixels[y][x] + 50);
    }
    FILE *f = fopen("particles.pgm", "wb");
    if (f != NULL) {
        fprintf(f, "P5 %d %d 255\n", WIDTH, HEIGHT);
        fwrite(pixels, sizeof pixels, 1, f);
        fclose(f);
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
