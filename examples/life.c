// Conway's Game of Life on a torus: 1000 generations of five cells, drawn with the tracks they leave into life.pgm.
// cc -O2 life.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>

enum { SIDE = 256, GENERATIONS = 1000 };

// A cell lives on with 2 or 3 neighbours and is born with 3.
static gn_array *next(gn_array *alive) {
    gn_array *rows = gn_add(alive, gn_add(gn_roll(alive, 1, 0), gn_roll(alive, -1, 0)));
    gn_array *around = gn_sub(gn_add(rows, gn_add(gn_roll(rows, 1, 1), gn_roll(rows, -1, 1))), alive);
    return gn_cast(gn_or(gn_eq_s(around, 3), gn_and(gn_eq_s(around, 2), gn_eq_s(alive, 1))), GN_U8);
}

static int draw(gn_array *brightness, const char *path) {
    static unsigned char pixels[SIDE * SIDE];
    FILE *f = gn_read(gn_cast(brightness, GN_U8), pixels, sizeof pixels) == GN_OK ? fopen(path, "wb") : NULL;
    if (f == NULL) return 0;
    fprintf(f, "P5 %d %d 255\n", SIDE, SIDE);
    fwrite(pixels, sizeof pixels, 1, f);
    return fclose(f) == 0;
}

int main(void) {
    gn_context *g = gn_open(NULL);
    int failed = 1;
    GN_SCOPE(g) {
        // A glider goes one cell down and to the right in four generations.
        const unsigned char glider[] = {0, 1, 0, 0, 0, 1, 1, 1, 1};
        gn_array *start = gn_zeros(g, GN_U8, GN_SHAPE(9, 9)), *a = start;
        gn_assign(gn_index(start, "6:, 6:"), gn_array_from(g, GN_U8, GN_SHAPE(3, 3), glider));
        for (int i = 0; i < 4; i++) a = next(a);
        failed = !gn_array_equal(a, gn_roll(start, 1, GN_AXES(0, 1)), false);

        const unsigned char pentomino[] = {0, 1, 1, 1, 1, 0, 0, 1, 0};
        gn_array *alive = gn_zeros(g, GN_U8, GN_SHAPE(SIDE, SIDE)), *track = gn_zeros(g, GN_F32, GN_SHAPE(SIDE, SIDE));
        gn_assign(gn_index(alive, "127:130, 127:130"), gn_array_from(g, GN_U8, GN_SHAPE(3, 3), pentomino));
        for (int i = 0; i < GENERATIONS; i++)
            GN_SCOPE(g) {
                gn_set(&alive, gn_keep(next(alive)));
                gn_set(&track, gn_keep(gn_add(gn_mul_s(track, 0.98), alive))); // fades
                if (i % 100 == 0) printf("generation %4d: %4.0f cells\n", i + 1, gn_item(gn_sum(alive, GN_ALL)));
            }
        gn_array *grey = gn_maximum(gn_mul_s(alive, 255), gn_clamp(gn_mul_s(track, 25), 0, 150));
        if (!draw(grey, "life.pgm")) failed = 1;
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
