// >>views
// Views share memory with their source: no copy where strides allow. Evaluates a lazy source.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

GPUNUM_API gn_array *gn_reshape(gn_array *a, gn_shape s); // one dimension may be -1; copies if strides force it
GPUNUM_API gn_array *gn_ravel(gn_array *a);               // 1-d
GPUNUM_API gn_array *gn_permute_axes(gn_array *a, const int *axes, int count);
GPUNUM_API gn_array *gn_transpose(gn_array *a); // all axes reversed
GPUNUM_API gn_array *gn_swap_axes(gn_array *a, int axis1, int axis2);
GPUNUM_API gn_array *gn_move_axis(gn_array *a, int from, int to);
GPUNUM_API gn_array *gn_expand_dims(gn_array *a, gn_axes axes); // axes of size 1, where they are in the result
GPUNUM_API gn_array *gn_squeeze(gn_array *a, gn_axes axes); // axes of size 1 go; GN_ALL: all that are
GPUNUM_API gn_array *gn_broadcast_to(gn_array *a, gn_shape s);
// a[..., start:stop:step, ...] on one axis, NumPy's rules; GN_NONE leaves start, stop or step out.
#define GN_NONE INT64_MIN
GPUNUM_API gn_array *gn_slice(gn_array *a, int axis, int64_t start, int64_t stop, int64_t step);
// NumPy's basic indexing as text: "1:5, ::-2, ..., -1, None".
GPUNUM_API gn_array *gn_index(gn_array *a, const char *subscript);
GPUNUM_API gn_array *gn_flip(gn_array *a, gn_axes axes);

// Joins and gathers: new arrays.
GPUNUM_API gn_array *gn_concat(gn_array *const *arrays, int count, int axis);
GPUNUM_API gn_array *gn_stack(gn_array *const *arrays, int count, int axis); // along a new axis
// Rows of `a` along `axis` picked by integer `indices` (any shape; negative count from the end; out of
// range gives an error on the CPU, and on the GPU when the indices are on the CPU, else clamps).
GPUNUM_API gn_array *gn_take(gn_array *a, gn_array *indices, int axis);
GPUNUM_API gn_array *gn_one_hot(gn_array *indices, gn_dtype t, int64_t classes); // shape + (classes); others give 0s
