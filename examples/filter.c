// Image filters: noise goes by a median of windows, edges come by a small kernel, blur by a large one through the FFT.
// Four pictures side by side go to filter.pgm.   cc -O2 filter.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>

enum { SIDE = 200 };

// A disc and a ring.
static gn_array *picture(gn_context *g) {
    gn_array *x = gn_linspace(g, GN_F32, -1, 1, SIDE), *y = gn_expand_dims(x, 1);
    gn_array *disc = gn_lt_s(gn_hypot(gn_add_s(x, 0.3), gn_add_s(y, 0.2)), 0.5);
    gn_array *ring = gn_lt_s(gn_abs(gn_sub_s(gn_hypot(gn_sub_s(x, 0.4), gn_sub_s(y, 0.4)), 0.35)), 0.06);
    return gn_add_s(gn_add(gn_mul_s(disc, 100), gn_mul_s(ring, 120)), 30);
}

static gn_array *with_border(gn_array *image, int64_t width) { return gn_pad(image, &width, 1, GN_PAD_EDGE, 0); }

// The median of each 3 x 3 window.
static gn_array *median(gn_array *image) {
    return gn_median(gn_sliding_window(gn_sliding_window(with_border(image, 1), 3, 0), 3, 1), GN_AXES(-2, -1));
}

// The magnitude of the gradient, by Sobel's kernels.
static gn_array *edges(gn_array *image) {
    const float sobel[] = {1, 0, -1, 2, 0, -2, 1, 0, -1};
    gn_array *k = gn_array_from(gn_context_of(image), GN_F32, GN_SHAPE(3, 3), sobel);
    image = with_border(image, 1);
    return gn_hypot(gn_convolve2d(image, k, GN_CONV_VALID), gn_convolve2d(image, gn_transpose(k), GN_CONV_VALID));
}

static gn_array *blur(gn_array *image, int deviation) {
    const int reach = 3 * deviation;
    gn_array *x = gn_arange(gn_context_of(image), GN_F32, -reach, reach + 1, 1);
    gn_array *bell = gn_exp(gn_mul_s(gn_square(x), -0.5 / (deviation * deviation)));
    bell = gn_div(bell, gn_sum(bell, GN_ALL));
    return gn_fftconvolve(with_border(image, reach), gn_outer(bell, bell), GN_CONV_VALID);
}

static double distance(gn_array *a, gn_array *b) { return gn_item(gn_mean(gn_abs(gn_sub(a, b)), GN_ALL)); }

int main(void) {
    gn_context *g = gn_open(NULL);
    int failed = 1;
    GN_SCOPE(g) {
        // One in two hundred pixels becomes black or white.
        gn_array *clean = picture(g), *chance = gn_rand(g, GN_F32, gn_shape_of(clean));
        gn_array *noisy = gn_where(gn_lt_s(chance, 0.0025), gn_scalar(g, GN_F32, 0), clean);
        noisy = gn_where(gn_gt_s(chance, 0.9975), gn_scalar(g, GN_F32, 255), noisy);
        gn_array *better = median(noisy), *soft = blur(better, 4);
        printf("noise: %.3f grey levels off before the median, %.3f after\n", distance(noisy, clean), distance(better, clean));
        failed = !(distance(better, clean) < 0.5 * distance(noisy, clean));

        static unsigned char pixels[SIDE * 4 * SIDE];
        gn_array *row[] = {noisy, better, edges(better), soft}, *all = gn_clamp(gn_concat(row, 4, 1), 0, 255);
        FILE *f = gn_read(gn_cast(all, GN_U8), pixels, sizeof pixels) == GN_OK ? fopen("filter.pgm", "wb") : NULL;
        if (f != NULL) {
            fprintf(f, "P5 %d %d 255\n", 4 * SIDE, SIDE);
            fwrite(pixels, sizeof pixels, 1, f);
            fclose(f);
        }
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
