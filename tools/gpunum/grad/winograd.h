// >>winograd
// Convolutions with kernels of 3x3 by tiles of 4x4 results, on a GPU: what winograd.comp makes of the tiles and of the
// kernels is multiplied as matrices, and made the result.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/macros.h"
#include "../core/product.h"
#include "../ops/views_ops.h"
#include "../gpu/gpu_conv.h"
#endif

#if GNI_GPU

static void gni_winograd_put(gni_winograd *d, int i, const gn_array *a) {
    if (a != NULL) gni_take_strided(a, &d->use[i]);
}

// Into `to`. Buffers 2 and 3 may be NULL, as all of the plan's are.
static bool gni_winograd_into(gn_context *g, const gni_winograd *plan, gni_winograd_step step, gn_array *from, gn_array *to,
                              gn_array *x, gn_array *w) {
    gni_winograd d = *plan;
    if (from == NULL || to == NULL || !gni_materialize(g, from)) return false;
    d.step = step;
    gni_winograd_put(&d, 0, from);
    gni_winograd_put(&d, 1, to);
    gni_winograd_put(&d, 2, x);
    gni_winograd_put(&d, 3, w);
    return gni_run(g, &gni_kind_winograd, &d, to);
}

static gn_array *gni_winograd_empty(gn_context *g, gn_shape s) {
    return gni_adopt(g, gni_array_empty(g, "convolution", GN_F32, &s));
}

// What images, gradients or kernels become, and behind it what is largest there.
static gn_array *gni_winograd_run(gn_context *g, const gni_winograd *d, gni_winograd_step step, gn_array *from) {
    const gn_shape s = GN_SHAPE(36, step == GNI_WINOGRAD_IMAGE ? d->c : d->o,
                                step == GNI_WINOGRAD_KERNEL ? d->c : gni_winograd_tiles(d));
    const int64_t most = s.dim[1] * gni_job_ceil(s.dim[2], GNI_FLOATS_LINE), stride[3] = {s.dim[1] * s.dim[2], s.dim[2], 1};
    gn_array *all = gni_winograd_empty(g, GN_SHAPE(36 * stride[0] + most)),
             *to = all == NULL ? NULL : gni_adopt(g, gni_array_view(g, "convolution", all, &s, stride, 0));
    return gni_winograd_into(g, d, step, from, to, NULL, NULL) ? to : NULL;
}

// a b of the 36, in C order. Both are in memory.
static gn_array *gni_winograd_product(gn_context *g, gn_array *a, gn_array *b) {
    gni_matmul m;
    gn_shape shape;
    memset(&m, 0, sizeof m);
    if (a == NULL || b == NULL || !gni_matmul_shapes(g, "convolution", a, b, &m, &shape)) return NULL;
    gn_array *y = gni_winograd_empty(g, shape);
    if (y == NULL) return NULL;
    gni_take_operand(a, &m.a);
    gni_take_operand(b, &m.b);
    gni_take_operand(y, &m.c);
    m.in_parts = gni_job_has_units(g->gpu, GN_F16) && m.k % 8 == 0; // as is n, where it is tiles
    return gni_run(g, &gni_kind_matmul, &m, y) ? y : NULL;
}

// y of x and w. *image, where that is not NULL: what x's tiles became, if they went at once.
static gn_array *gni_winograd_forward(gn_context *g, const gni_winograd *d, gn_array *x, gn_array *w, gn_array **image) {
    const int64_t each = gni_winograd_images(g->gpu, d);
    gn_array *y = gni_winograd_empty(g, GN_SHAPE(d->n, d->o, d->out[0], d->out[1])),
             *kernels = gni_winograd_run(g, d, GNI_WINOGRAD_KERNEL, w);
    bool ok = y != NULL && kernels != NULL && gni_materialize(g, x);
    for (int64_t at = 0; at < d->n && ok; at += each) {
        gni_winograd part = *d;
        part.n = GNI_MIN(each, d->n - at);
        const bool whole = part.n == d->n;
        if (!whole) gn_scope_begin(g);
        gn_array *from = whole ? x : gn_slice(x, 0, at, at + part.n, 1), *to = whole ? y : gn_slice(y, 0, at, at + part.n, 1),
                 *tiles = gni_winograd_run(g, &part, GNI_WINOGRAD_IMAGE, from);
        if (whole && image != NULL) *image = tiles;
        ok = tiles != NULL &&
             gni_winograd_into(g, &part, GNI_WINOGRAD_RESULT, gni_winograd_product(g, kernels, tiles), to, from, w);
        if (!whole) gn_scope_end(g);
    }
    return ok ? y : NULL;
}

// The gradient of w from x and that of y. `image`: what a forward pass gave, or NULL.
static gn_array *gni_winograd_weight(gn_context *g, const gni_winograd *d, gn_array *x, gn_array *y, gn_array *image) {
    const int64_t each = gni_winograd_images(g->gpu, d);
    gn_array *sum = NULL, *to = gni_winograd_empty(g, GN_SHAPE(d->o, d->c, 3, 3));
    bool ok = to != NULL && gni_materialize(g, x) && gni_materialize(g, y);
    for (int64_t at = 0; at < d->n && ok; at += each) {
        gni_winograd part = *d;
        part.n = GNI_MIN(each, d->n - at);
        const bool whole = part.n == d->n;
        gn_scope_begin(g);
        gn_array *from = whole ? x : gn_slice(x, 0, at, at + part.n, 1), *of = whole ? y : gn_slice(y, 0, at, at + part.n, 1);
        if (image == NULL || !whole) image = gni_winograd_run(g, &part, GNI_WINOGRAD_IMAGE, from);
        gn_array *tiles = gni_winograd_run(g, &part, GNI_WINOGRAD_GRADIENT, of),
                 *more = gni_winograd_product(g, tiles, gn_swap_axes(image, 1, 2));
        sum = sum == NULL ? more : gn_eval(gn_add(sum, more));
        ok = more != NULL && sum != NULL;
        if (ok) gn_keep(sum);
        gn_scope_end(g);
    }
    return ok && gni_winograd_into(g, d, GNI_WINOGRAD_KERNEL_RESULT, sum, to, x, y) ? to : NULL;
}

#endif // GNI_GPU
