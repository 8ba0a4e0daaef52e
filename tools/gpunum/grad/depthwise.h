// >>depthwise
// Convolutions of groups of few channels, on a GPU: depth.comp, without an image made for it.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/macros.h"
#include "../ops/views_ops.h"
#include "../vulkan/vulkan_loader.h"
#endif

#if GNI_GPU

// Of `in` (n, c, h, w) and w, or the gradient of y, what the job says: (n, c, rows, columns) or (outputs, read, taps...).
// NULL: it is left to the caller, unless g->call_failed.
static gn_array *gni_depth_run(gn_context *g, gni_depth *d, gn_array *in, gn_array *other) {
    const bool weight = d->step == GNI_DEPTH_WEIGHT;
    // Some 2048 workgroups, each of at least 4096 elements.
    const int64_t most = GNI_MAX(d->n * d->to[0] * d->to[1] / 4096, 1);
    const int64_t taps = d->k[0] * d->k[1];
    d->block = d->made % 4 == 0 ? 4 : d->made % 2 == 0 ? 2 : 1;
    while (weight && d->block * taps > GNI_DEPTH_TAPS && d->block > 1) d->block /= 2;
    if (!weight && d->to[0] * d->to[1] % 4 != 0) d->block = 1; // groups of four would begin elsewhere
    d->parts = weight ? GNI_MAX(GNI_MIN(2048 * d->block / d->c, most), 1) : 1;
    const gn_shape s = weight ? GN_SHAPE(d->parts, d->c, taps) : GN_SHAPE(d->n, d->c, d->to[0], d->to[1]);
    gn_array *y = gni_adopt(g, gni_array_empty(g, "convolution", weight ? GN_F32 : in->dtype, &s));
    if (y == NULL) return NULL;
    // Elements of a row side by side: channels last are read up to ten times as slowly as they are copied.
    if (in->stride[3] != 1) in = gn_copy(in);
    if (weight && other->stride[3] != 1) other = gn_copy(other);
    if (in == NULL || other == NULL || !gni_materialize(g, in) || !gni_materialize(g, other)) return NULL;
    gni_take_strided(in, &d->in);
    gni_take_strided(other, &d->other);
    gni_take_operand(y, &d->out);
    if (!gni_run_on_gpu(g, &gni_kind_depth, d, y)) return NULL;
    return weight ? gn_reshape(gn_cast(gn_sum(y, 0), in->dtype), GN_SHAPE(d->c / d->read, d->read, d->k[0], d->k[1])) : y;
}

#endif
