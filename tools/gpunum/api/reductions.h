// >>reductions
// `axes` is said in room types: an axis, GN_ALL or a set, with GN_KEEP around it to keep reduced axes as size 1.
// Over the empty set every element is reduced by itself.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// NULL with GN_ERROR_SHAPE for an axis that `a` does not have. The result has the other axes.
// Partial results of floats never overflow: gn_sum and gn_prod are infinite or NaN only where an element or the result
// itself is, gn_mean where the sum is (of float16 and bfloat16 float32's), on every backend.
GPUNUM_API gn_array *gn_sum(gn_array *a, gn_axes axes);  // integers and bool give int64, unsigned ones uint64, as of gn_prod
GPUNUM_API gn_array *gn_prod(gn_array *a, gn_axes axes);
GPUNUM_API gn_array *gn_min(gn_array *a, gn_axes axes);  // NaN wins; no value for an empty axis: GN_ERROR_SHAPE
GPUNUM_API gn_array *gn_max(gn_array *a, gn_axes axes);
GPUNUM_API gn_array *gn_any(gn_array *a, gn_axes axes);  // bool: is one of them not 0
GPUNUM_API gn_array *gn_all(gn_array *a, gn_axes axes);  // bool: are all of them not 0
// Index of the first smallest or largest element, NaN counts as such; int64. Over one axis, or GN_ALL: then of the
// raveled array.
GPUNUM_API gn_array *gn_argmin(gn_array *a, gn_axes axis);
GPUNUM_API gn_array *gn_argmax(gn_array *a, gn_axes axis);

GPUNUM_API gn_array *gn_mean(gn_array *a, gn_axes axes); // integers give float32
GPUNUM_API gn_array *gn_var(gn_array *a, gn_axes axes, double ddof); // over n - ddof
GPUNUM_API gn_array *gn_std(gn_array *a, gn_axes axes, double ddof);
GPUNUM_API gn_array *gn_count_nonzero(gn_array *a, gn_axes axes); // int64
GPUNUM_API gn_array *gn_norm(gn_array *a, gn_axes axes); // root of the sum of squares; gradient 0 at 0, as gn_std's
GPUNUM_API gn_array *gn_logsumexp(gn_array *a, gn_axes axes);
GPUNUM_API gn_array *gn_softmax(gn_array *a, int axis);
GPUNUM_API gn_array *gn_log_softmax(gn_array *a, int axis);

GPUNUM_API gn_array *gn_ptp(gn_array *a, gn_axes axes); // the largest less the smallest
// Sum of a w over sum of w: weights of a's shape, or 1-d ones of the one axis. A sum of 0 gives infinities or NaN.
GPUNUM_API gn_array *gn_average(gn_array *a, gn_array *weights, gn_axes axes);
// The same without the elements that are NaN. Of nothing else gn_nansum is 0 and gn_nanprod 1, the others are NaN; so are
// gn_nanvar and gn_nanstd where no more than ddof numbers are left.
GPUNUM_API gn_array *gn_nansum(gn_array *a, gn_axes axes);
GPUNUM_API gn_array *gn_nanprod(gn_array *a, gn_axes axes);
GPUNUM_API gn_array *gn_nanmin(gn_array *a, gn_axes axes);
GPUNUM_API gn_array *gn_nanmax(gn_array *a, gn_axes axes);
GPUNUM_API gn_array *gn_nanmean(gn_array *a, gn_axes axes);
GPUNUM_API gn_array *gn_nanvar(gn_array *a, gn_axes axes, double ddof);
GPUNUM_API gn_array *gn_nanstd(gn_array *a, gn_axes axes, double ddof);
// Of nothing but NaN, or of NaN and the infinity that every number is better than, the first one's index, as NumPy has it.
GPUNUM_API gn_array *gn_nanargmin(gn_array *a, gn_axes axis);
GPUNUM_API gn_array *gn_nanargmax(gn_array *a, gn_axes axis);
// Of variables in rows and observations in columns (variables, variables); 0-d of one variable, as a 1-d array is. NumPy's
// ddof is 1.
GPUNUM_API gn_array *gn_cov(gn_array *a, int ddof);
GPUNUM_API gn_array *gn_corrcoef(gn_array *a);
// |a - b| <= atol + rtol |b|, bool, as NumPy has it; its defaults are 1e-5, 1e-8 and false. The next two say whether it
// holds of all elements, and whether shapes and elements are the same: they wait for the values; false after an error.
GPUNUM_API gn_array *gn_isclose(gn_array *a, gn_array *b, double rtol, double atol, bool equal_nan);
GPUNUM_API bool gn_allclose(gn_array *a, gn_array *b, double rtol, double atol, bool equal_nan);
GPUNUM_API bool gn_array_equal(gn_array *a, gn_array *b, bool equal_nan);
