// The histogram of an image, and the image with its tones spread evenly, as histogram.pgm.
//   histogram [picture.jpg]      with stb_image.h (https://github.com/nothings/stb) beside this file; else it makes an image
// cc -O2 histogram.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>
#include <stdlib.h>

#ifdef __has_include
#if __has_include("stb_image.h")
#define STB_IMAGE_IMPLEMENTATION
#include "stb_image.h"
#define HAS_STB_IMAGE
#endif
#endif

// Brightness (height, width), uint8.
static gn_array *load(gn_context *g, const char *path) {
#ifdef HAS_STB_IMAGE
    int width, height, channels;
    unsigned char *pixels = path != NULL ? stbi_load(path, &width, &height, &channels, 3) : NULL;
    if (pixels != NULL) {
        const float weights[] = {0.299f, 0.587f, 0.114f};
        gn_array *rgb = gn_array_from(g, GN_U8, GN_SHAPE(height, width, 3), pixels);
        stbi_image_free(pixels);
        gn_array *grey = gn_matmul(gn_cast(rgb, GN_F32), gn_array_from(g, GN_F32, GN_SHAPE(3), weights));
        return gn_cast(gn_round(grey), GN_U8);
    }
#endif
    if (path != NULL) fprintf(stderr, "%s was not read\n", path);
    // A dim picture: a few waves and noise.
    gn_array *x = gn_linspace(g, GN_F32, 0, 12, 400), *y = gn_expand_dims(gn_linspace(g, GN_F32, 0, 9, 300), 1);
    gn_array *waves = gn_add(gn_sin(gn_add(x, gn_cos(y))), gn_sin(gn_mul(y, gn_mul_s(x, 0.2))));
    gn_array *noise = gn_randn(g, GN_F32, GN_SHAPE(300, 400));
    return gn_cast(gn_clamp(gn_add_s(gn_add(gn_mul_s(waves, 20), gn_mul_s(noise, 3)), 70), 0, 255), GN_U8);
}

int main(int argc, char **argv) {
    gn_context *g = gn_open(NULL);
    int failed = 1;
    GN_SCOPE(g) {
        gn_array *image = load(g, argc > 1 ? argv[1] : NULL);
        gn_array *bars = gn_histogram(image, 16, 0, 256, NULL);
        int64_t count[16] = {0}, most = gn_item_int(gn_max(bars, GN_ALL)) + 1;
        gn_read(bars, count, sizeof count);
        for (int i = 0; i < 16; i++)
            printf("%3d to %3d %7lld %.*s\n", 16 * i, 16 * i + 15, (long long)count[i],
                   (int)(60 * count[i] / most), "############################################################");

        // Each tone becomes the part of the image that is not brighter.
        gn_array *tones = gn_bincount(gn_ravel(image), NULL, 256);
        gn_array *curve = gn_div_s(gn_cumsum(tones, 0), (double)gn_size(image));
        gn_array *even = gn_cast(gn_round(gn_mul_s(gn_take(curve, image, 0), 255)), GN_U8);
        printf("mean and deviation before: %.1f %.1f, after: %.1f %.1f\n", gn_item(gn_mean(image, GN_ALL)),
               gn_item(gn_std(image, GN_ALL, 0)), gn_item(gn_mean(even, GN_ALL)), gn_item(gn_std(even, GN_ALL, 0)));
        failed = !(gn_item(gn_sum(tones, GN_ALL)) == (double)gn_size(image) && gn_item(gn_max(even, GN_ALL)) == 255);

        unsigned char *pixels = (unsigned char *)malloc(gn_bytes(even) + 1);
        FILE *f = pixels != NULL && gn_read(even, pixels, gn_bytes(even)) == GN_OK ? fopen("histogram.pgm", "wb") : NULL;
        if (f != NULL) {
            fprintf(f, "P5 %lld %lld 255\n", (long long)gn_dim(even, 1), (long long)gn_dim(even, 0));
            fwrite(pixels, gn_bytes(even), 1, f);
            fclose(f);
        }
        free(pixels);
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
