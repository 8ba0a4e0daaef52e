// >>data
// Batches of samples for training, and images as they are varied.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// Deals samples out in batches, which a thread makes ahead of time in memory of its own: it does not use the context, and
// next to a running training step nothing waits. The order depends on the seed and the epoch alone, on every backend,
// and has no random numbers in common with a context of the same seed.
typedef struct gn_loader gn_loader;

// One array of a batch. Its samples are the rows of `array`, which are copied to the CPU once; or they stand in `data` one
// after the other, dtype t and shape s each, and stay there; or, both NULL, `fill` writes them.
typedef struct gn_loader_field {
    gn_array *array;
    const void *data;
    gn_dtype t;
    gn_shape s; // of one sample
} gn_loader_field;

// Called for each batch, on the loader's thread if it has one: out[i] has `count` samples of field i, those of `indices`, to
// be written or changed. NULL where all went well, or else what went wrong in words, which are copied. The loader itself,
// which waits for it, refuses calls from there.
typedef const char *(*gn_loader_fill)(void *user, const int64_t *indices, int64_t count, void *const *out);

typedef struct gn_loader_options {
    int64_t batch;       // samples; 0 = 1
    bool shuffle;        // anew in every epoch
    bool drop_last;      // a batch of fewer samples at the end of an epoch
    uint64_t seed;       // of the order
    int prefetch;        // batches ahead; 0 = 2, -1 = none, and no thread
    gn_loader_fill fill; // may be NULL
    void *user;
} gn_loader_options;

// `options` may be NULL.
GPUNUM_API gn_loader *gn_loader_new(gn_context *g, const gn_loader_field *fields, int count, int64_t samples,
                                    const gn_loader_options *options);
// The next batch into batch[i], a new array (samples, ...) for each field. False where the epoch has ended, and the next
// call begins another one; and where `fill` failed, which gn_status_get tells (GN_ERROR_IO): the call behind it goes on with
// the batch that follows. Any thread may call it. Batches belong to the scope that is open: in a loop to one of its own,
//   for (bool more = true; more;) GN_SCOPE(g) if ((more = gn_loader_next(l, batch))) { ... }
GPUNUM_API bool gn_loader_next(gn_loader *l, gn_array **batch);
GPUNUM_API int64_t gn_loader_batches(const gn_loader *l); // of one epoch
// Goes on with that batch of that epoch, both from 0 on: to resume, or to repeat.
GPUNUM_API gn_status gn_loader_seek(gn_loader *l, int64_t epoch, int64_t batch);
GPUNUM_API void gn_loader_free(gn_loader *l); // gn_close frees those still alive

// Images (n, c, h, w) varied on the device, each of a batch by random numbers of its own from the context's stream: the same
// places on every backend, where these are integers. What moves elements takes any dtype; the rest is for floats, of which
// float16 and bfloat16 are computed in float32. Gradients reach the images.
// A height x width part of each image with `pad` zeros around it.
GPUNUM_API gn_array *gn_random_crop(gn_array *x, int64_t height, int64_t width, int64_t pad);
GPUNUM_API gn_array *gn_random_flip(gn_array *x, double p); // left and right exchanged with probability p
// A square of that size in each image is 0; its centre is anywhere, so that the edge may cut it (DeVries and Taylor, 2017).
GPUNUM_API gn_array *gn_cutout(gn_array *x, int64_t size);
// Images in 0 to 1 with 3 channels, times a factor between 1 - brightness and 1 + brightness; then as far from their mean
// grey, and from each pixel's own, as such factors say. Each result is clamped to 0 to 1. Amounts are 0 or more, and factors
// not below 0.
GPUNUM_API gn_array *gn_color_jitter(gn_array *x, double brightness, double contrast, double saturation);
// The hues of such images turned by -hue to hue of the circle, 0.5 at most: torchvision's, which comes behind these three.
GPUNUM_API gn_array *gn_hue_jitter(gn_array *x, double hue);
// Turned about their centres by -degrees to degrees, counterclockwise; bilinear, 0 where nothing was.
GPUNUM_API gn_array *gn_random_rotation(gn_array *x, double degrees);
// w x + (1 - w) x[p] with one w of Beta(alpha, alpha) and one permutation p of the batch (Zhang et al., 2018); *other
// becomes labels[p] and *weight w, 0-d, for the loss w loss(labels) + (1 - w) loss(other). On failure these are NULL.
GPUNUM_API gn_array *gn_mixup(gn_array *x, gn_array *labels, double alpha, gn_array **other, gn_array **weight);
// (x - mean[c]) / deviation[c] for each channel. uint8 becomes float32, and is divided by 255 before.
GPUNUM_API gn_array *gn_normalize(gn_array *x, const double *mean, const double *deviation, int channels);

// PyTorch's affine_grid: theta (n, 2, 3) at the places of an image, (n, height, width, 2). Coordinates are x and y, from -1
// to 1 between the image's edges, or with align_corners between the centres of its outermost pixels.
GPUNUM_API gn_array *gn_affine_grid(gn_array *theta, int64_t height, int64_t width, bool align_corners);
typedef enum gn_outside { GN_OUTSIDE_ZEROS, GN_OUTSIDE_BORDER, GN_OUTSIDE_REFLECTION } gn_outside;
typedef struct gn_grid_options {
    bool nearest;       // else bilinear
    gn_outside outside; // what places beyond the image get: 0, its edge, or it reflected
    bool align_corners;
} gn_grid_options;
// PyTorch's grid_sample: x (n, c, h, w) at the places of the grid (n, height, width, 2), (n, c, height, width) of x's dtype.
// The gradient of x is summed in a fixed order. `options` may be NULL.
GPUNUM_API gn_array *gn_grid_sample(gn_array *x, gn_array *grid, const gn_grid_options *options);
