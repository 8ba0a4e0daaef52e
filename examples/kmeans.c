// k-means: finds the middles of clusters, and draws the points in the colour of theirs into kmeans.ppm.
// cc -O2 kmeans.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>

enum { POINTS = 30000, K = 5, SIDE = 300 };

// Points around K places.
static gn_array *clusters(gn_context *g) {
    gn_array *middle = gn_uniform(g, GN_F32, GN_SHAPE(K, 2), 0.15, 0.85);
    gn_array *which = gn_randint(g, GN_I64, GN_SHAPE(POINTS), 0, K);
    return gn_add(gn_take(middle, which, 0), gn_normal(g, GN_F32, GN_SHAPE(POINTS, 2), 0, 0.04));
}

// Squares of the distances of all points x (n, 2) to all centres c (k, 2): (n, k).
static gn_array *distances(gn_array *x, gn_array *c) {
    return gn_sum(gn_square(gn_sub(gn_expand_dims(x, 1), c)), -1);
}

// The first centres are points far from each other (k-means++): each is drawn in proportion to the distances so far.
static gn_array *first_centres(gn_array *x) {
    gn_context *g = gn_context_of(x);
    gn_array *c = gn_index(x, ":1");
    for (int k = 1; k < K; k++) {
        gn_array *next = gn_choice(g, GN_SHAPE(1), POINTS, true, gn_min(distances(x, c), 1));
        gn_array *both[] = {c, gn_take(x, next, 0)};
        c = gn_concat(both, 2, 0);
    }
    return c;
}

static void draw(gn_array *x, gn_array *label) {
    static const unsigned char colours[K][3] = {{230, 80, 60}, {60, 160, 230}, {90, 190, 90}, {240, 190, 50}, {170, 110, 220}};
    static unsigned char pixels[SIDE * SIDE][3];
    gn_context *g = gn_context_of(x);
    gn_array *at = gn_cast(gn_clamp(gn_mul_s(x, SIDE), 0, SIDE - 1), GN_I64);
    gn_array *place = gn_add(gn_mul_s(gn_index(at, ":, 1"), SIDE), gn_index(at, ":, 0"));
    gn_array *image = gn_full(g, GN_U8, GN_SHAPE(SIDE * SIDE, 3), 255), *palette = gn_array_from(g, GN_U8, GN_SHAPE(K, 3), colours);
    image = gn_put_along(image, gn_expand_dims(place, 1), gn_take(palette, label, 0), 0);
    FILE *f = gn_read(image, pixels, sizeof pixels) == GN_OK ? fopen("kmeans.ppm", "wb") : NULL;
    if (f == NULL) return;
    fprintf(f, "P6 %d %d 255\n", SIDE, SIDE);
    fwrite(pixels, sizeof pixels, 1, f);
    fclose(f);
}

int main(void) {
    gn_context *g = gn_open(NULL);
    int failed = 1;
    GN_SCOPE(g) {
        gn_array *x = clusters(g), *c = gn_keep(first_centres(x)), *label = NULL;
        double moved = 1;
        for (int step = 0; step < 100 && moved > 1e-6; step++)
            GN_SCOPE(g) {
                label = gn_argmin(distances(x, c), 1);
                gn_array *of = gn_one_hot(label, GN_F32, K); // (n, k)
                gn_array *count = gn_maximum_s(gn_sum(of, 0), 1);
                gn_array *next = gn_div(gn_matmul(gn_transpose(of), x), gn_expand_dims(count, 1));
                moved = gn_item(gn_max(gn_abs(gn_sub(next, c)), GN_ALL));
                printf("step %2d: the centres moved by %.6f\n", step, moved);
                gn_set(&c, gn_keep(next));
            }
        label = gn_argmin(distances(x, c), 1);
        gn_print(c);
        gn_print(gn_bincount(label, NULL, K)); // points of each
        draw(x, label);
        failed = !(moved <= 1e-6 && gn_item(gn_mean(gn_min(distances(x, c), 1), GN_ALL)) < 3 * 0.04 * 0.04);
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
