// >>winograd
// Convolutions with kernels of 3x3 by tiles of 4x4 results, on a GPU: what winograd.comp makes of the tiles and of the
// kernels is multiplied as matrices, and made the result.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/macros.h"
#include "../core/place.h"
#include "../gpu/gpu_conv.h"
#endif

#if GNI_GPU

static void gni_winograd_put(gni_winograd *d, int i, const gn_array *a) {
    memset(&d->use[i], 0, sizeof d->use[i]);
    if (a == NULL) return;
    d->use[i].buf = a->buf;
    d->use[i].offset = a->offset;
    d->use[i].dtype = a->dtype;
    for (int k = 0; k < a->shape.rank; k++) d->use[i].stride[k] = a->stride[k];
}

// Buffers 2 and 3 may be NULL.
static gn_array *gni_winograd_run(gn_context *g, const gni_winograd *plan, gni_winograd_step step, gn_array *from, gn_shape s,
                                  gn_array *x, gn_array *w) {
    gni_winograd d = *plan;
    if (from == NULL || !gni_materialize(g, from)) return NULL;
    gn_array *to = gni_adopt(g, gni_array_empty(g, "convolution", GN_F32, &s));
    if (to == NULL) return NULL;
    d.step = step;
    gni_winograd_put(&d, 0, from);
    gni_winograd_put(&d, 1, to);
    gni_winograd_put(&d, 2, x);
    gni_winograd_put(&d, 3, w);
    return gni_run(g, &gni_kind_winograd, &d, to) ? to : NULL;
}

// a b of the 36, in C order.
static gn_array *gni_winograd_product(gn_context *g, gn_array *a, gn_array *b) {
    gn_array *y = gn_matmul(a, b);
    return y == NULL || !gni_materialize(g, y) ? NULL : gni_adopt(g, gni_contiguous(g, y));
}

static gn_array *gni_winograd_image(gn_context *g, const gni_winograd *d, gn_array *x) {
    return gni_winograd_run(g, d, GNI_WINOGRAD_IMAGE, x, GN_SHAPE(36, d->c, gni_winograd_tiles(d)), NULL, NULL);
}

// y of x and w. *image, where that is not NULL: what x's tiles became.
static gn_array *gni_winograd_forward(gn_context *g, const gni_winograd *d, gn_array *x, gn_array *w, gn_array **image) {
    gn_array *tiles = gni_winograd_image(g, d, x),
             *kernels = gni_winograd_run(g, d, GNI_WINOGRAD_KERNEL, w, GN_SHAPE(36, d->o, d->c), NULL, NULL);
    if (image != NULL) *image = tiles;
    return gni_winograd_run(g, d, GNI_WINOGRAD_RESULT, gni_winograd_product(g, kernels, tiles),
                            GN_SHAPE(d->n, d->o, d->out[0], d->out[1]), x, w);
}

// The gradient of w from x and that of y. `image`: what a forward pass gave, or NULL.
static gn_array *gni_winograd_weight(gn_context *g, const gni_winograd *d, gn_array *x, gn_array *y, gn_array *image) {
    if (image == NULL) image = gni_winograd_image(g, d, x);
    else if (!gni_materialize(g, x)) return NULL;
    gn_array *tiles =
        gni_winograd_run(g, d, GNI_WINOGRAD_GRADIENT, y, GN_SHAPE(36, d->o, gni_winograd_tiles(d)), NULL, NULL);
    return gni_winograd_run(g, d, GNI_WINOGRAD_KERNEL_RESULT, gni_winograd_product(g, tiles, gn_swap_axes(image, 1, 2)),
                            GN_SHAPE(d->o, d->c, 3, 3), x, y);
}

#endif // GNI_GPU
