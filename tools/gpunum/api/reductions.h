// >>reductions
// `axes` is said in room types: an axis, GN_ALL or a set, with GN_KEEP around it to keep reduced axes as size 1.
// Over the empty set every element is reduced by itself.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// gn_sum, gn_prod, gn_min, gn_max, gn_any and gn_all, and gn_argmin and gn_argmax over one axis or all, are in room
// optable: integers and bool sum and multiply to int64, gn_any and gn_all give bool; NaN wins in gn_min and
// gn_max, which have no value for an empty axis.
GPUNUM_API gn_array *gn_mean(gn_array *a, gn_axes axes); // integers give float32
GPUNUM_API gn_array *gn_var(gn_array *a, gn_axes axes, int ddof); // over n - ddof
GPUNUM_API gn_array *gn_std(gn_array *a, gn_axes axes, int ddof);
GPUNUM_API gn_array *gn_count_nonzero(gn_array *a, gn_axes axes); // int64
GPUNUM_API gn_array *gn_norm(gn_array *a, gn_axes axes); // root of the sum of squares; gradient 0 at 0, as gn_std's
GPUNUM_API gn_array *gn_logsumexp(gn_array *a, gn_axes axes);
// gn_argmin and gn_argmax: index of the first smallest or largest element, NaN counts as such; int32.
// Over one axis or GN_ALL: then of the raveled array.
GPUNUM_API gn_array *gn_softmax(gn_array *a, int axis);
GPUNUM_API gn_array *gn_log_softmax(gn_array *a, int axis);
