// >>views
// Views share memory with their source: no copy where strides allow. Evaluates a lazy source. What works along an axis that
// is not the last (gn_sort, gn_softmax) may leave its result in the order of that axis, elementwise work in that of
// transposed operands: gn_reshape copies it.

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
GPUNUM_API gn_array *gn_at(gn_array *a, int64_t i); // a[i]: an axis less; -1 is the last one
GPUNUM_API gn_array *gn_flip(gn_array *a, gn_axes axes);
// Turned by k right angles from axis1 towards axis2: of (h, w), by 1, counterclockwise.
GPUNUM_API gn_array *gn_rot90(gn_array *a, int k, int axis1, int axis2);

// Writes `value` to the elements of `a`, a view mostly: gn_assign(gn_index(x, "::2"), y) is x[::2] = y. It broadcasts to a's
// shape and is converted as by gn_cast; where both share memory the old values are written. All that shows that memory has
// the new values, what was computed from it before keeps the old ones. Gradients reach the value, and the old elements but
// for those that were overwritten; a leaf that requires a gradient is GN_ERROR_GRADIENT, but between gn_no_grad_begin and
// gn_no_grad_end, and a value that autograd still needs is reported by gn_backward, as is what was written through a part of
// complex numbers. Through a gn_detach'ed array autograd sees no writing.
GPUNUM_API gn_status gn_assign(gn_array *a, gn_array *value);

// Joins and gathers: new arrays.
GPUNUM_API gn_array *gn_concat(gn_array *const *arrays, int count, int axis);
GPUNUM_API gn_array *gn_stack(gn_array *const *arrays, int count, int axis); // along a new axis
// Rows of `a` along `axis` picked by `indices` (of any shape and integer dtype; negative ones count from the end). One that
// is out of range is GN_ERROR_ARGUMENT: here and in the next functions at once where the CPU has the indices, else of the
// next call that waits for the GPU (gn_read, gn_item, gn_sync).
GPUNUM_API gn_array *gn_take(gn_array *a, gn_array *indices, int axis);
// An index for each element: y[i][j] = a[indices[i][j]][j] for axis 0. Beside the axis both have the same sizes, or one of
// them 1.
GPUNUM_API gn_array *gn_take_along(gn_array *a, gn_array *indices, int axis);
// A copy of `a` with values at such places: y[indices[i][j]][j] = values[i][j], of several the last; or their sum with what
// is there, the largest or smallest of all (NaN wins). Values broadcast to the indices, these to a's sizes beside the axis,
// and are converted to its dtype; of bool the sum is `or`. Every run gives the same bits. gn_assign(a, gn_put_along(a, ...))
// is in place.
GPUNUM_API gn_array *gn_put_along(gn_array *a, gn_array *indices, gn_array *values, int axis);
GPUNUM_API gn_array *gn_scatter_add(gn_array *a, gn_array *indices, gn_array *values, int axis);
GPUNUM_API gn_array *gn_scatter_max(gn_array *a, gn_array *indices, gn_array *values, int axis);
GPUNUM_API gn_array *gn_scatter_min(gn_array *a, gn_array *indices, gn_array *values, int axis);

// a[i, j, ...] and a[i, j, ...] = value: an integer array for each of the first `count` axes, which broadcast together; their
// shape takes the place of those axes. Of equal places the last value is written, as by gn_assign.
GPUNUM_API gn_array *gn_index_arrays(gn_array *a, gn_array *const *indices, int count);
GPUNUM_API gn_status gn_assign_arrays(gn_array *a, gn_array *const *indices, int count, gn_array *value);
// The int64 numbers of such places in C order, as gn_take and the scatters count in a raveled array of shape s, which has an
// axis for each; where one is out of range as many as there are elements. And back: (rank, ...), row i has the indices on
// axis i.
GPUNUM_API gn_array *gn_ravel_multi_index(gn_array *const *indices, int count, gn_shape s);
GPUNUM_API gn_array *gn_unravel_index(gn_array *a, gn_shape s);

// What is true. The shapes of these results depend on values, for which they wait: GN_ERROR_UNSUPPORTED while a host
// records. Places of elements that are not 0, int64: row i has the indices on axis i (NumPy's tuple), in C order; or of the
// raveled array.
GPUNUM_API gn_array *gn_nonzero(gn_array *a); // (rank, count)
GPUNUM_API gn_array *gn_flatnonzero(gn_array *a);
// Rows along the axis where a 1-d condition, no longer than it, is true; GN_ALL: of the raveled array.
GPUNUM_API gn_array *gn_compress(gn_array *condition, gn_array *a, gn_axes axis);
// a[m] and a[m] = value: a bool mask covers a's first axes, which become one, of those that are true. The value broadcasts
// to that and is written as by gn_assign; it is waited for only where it has a row for each that is true.
GPUNUM_API gn_array *gn_mask(gn_array *a, gn_array *m);
GPUNUM_API gn_status gn_assign_mask(gn_array *a, gn_array *m, gn_array *value);
GPUNUM_API gn_array *gn_one_hot(gn_array *indices, gn_dtype t, int64_t classes); // shape + (classes); others give 0s

// Arrangements: new arrays, but where they are called views. The derivative of a repeated element is the sum over its
// copies. The last `shift` elements of the axes come to their front. GN_ALL: of the raveled array, as in NumPy.
GPUNUM_API gn_array *gn_roll(gn_array *a, int64_t shift, gn_axes axes);
GPUNUM_API gn_array *gn_tile(gn_array *a, gn_shape repeats); // `a` repeated as a block, repeats.dim[i] times along axis i
// Each element `repeats` times in succession, along one axis, or with GN_ALL of the raveled array.
GPUNUM_API gn_array *gn_repeat(gn_array *a, int64_t repeats, gn_axes axis);
// As often as its count says: a 1-d array of integers, one for each place on the axis or one for all. Waits for them, as
// gn_nonzero.
GPUNUM_API gn_array *gn_repeat_counts(gn_array *a, gn_array *counts, gn_axes axis);
typedef enum gn_pad_mode {
    GN_PAD_CONSTANT,  // `value`; the other modes do not read it, and need elements: GN_ERROR_SHAPE
    GN_PAD_EDGE,      // a a a | a b c | c c c
    GN_PAD_REFLECT,   // b c b | a b c | b a b
    GN_PAD_SYMMETRIC, // c b a | a b c | c b a
    GN_PAD_WRAP       // a b c | a b c | a b c
} gn_pad_mode;
// A border. Of widths there is one (on all sides), two (in front of each axis and behind it), or two for each axis.
GPUNUM_API gn_array *gn_pad(gn_array *a, const int64_t *widths, int count, gn_pad_mode mode, double value);
// Views of parts along an axis, `sections` of them: equal ones, or with gn_array_split first those that are longer by 1; and
// of all its elements, for which the caller says how many there are. They go to parts[0], parts[1], ... and belong to the
// scope or to the caller as any new array does; after a failure all are NULL.
GPUNUM_API gn_status gn_split(gn_array *a, int sections, int axis, gn_array **parts);
GPUNUM_API gn_status gn_array_split(gn_array *a, int sections, int axis, gn_array **parts);
// Cut in front of `count` places, which are said as in a slice: count + 1 parts.
GPUNUM_API gn_status gn_split_at(gn_array *a, const int64_t *places, int count, int axis, gn_array **parts);
GPUNUM_API gn_status gn_unstack(gn_array *a, int axis, gn_array **parts, int count);
// Coordinates as views that repeat the raveled arrays: arrays[i] runs along axis i of grids[i], but for NumPy's "xy" order
// (`ij` false) the first runs along axis 1 and the second along axis 0. Ownership as of gn_split.
GPUNUM_API gn_status gn_meshgrid(gn_array *const *arrays, int count, bool ij, gn_array **grids);
GPUNUM_API gn_array *gn_diff(gn_array *a, int n, int axis); // a[i + 1] - a[i], n times; of bool a[i + 1] != a[i]
// The windows of that size on one axis, as a new last axis: a view, whose elements share memory. It can be read alone.
GPUNUM_API gn_array *gn_sliding_window(gn_array *a, int64_t window, int axis);
