// >>order
// Scans, sorts and what stands on them: places in sorted arrays, quantiles, sets, histograms.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// Each element becomes what it and all in front of it come to, along one axis, or with GN_ALL of the raveled array. Sums and
// products of integers and bool are int64, of unsigned ones uint64, and wrap. NaN stays from where it is. gn_cumprod of
// float64 that is 0 or infinite stays so; of narrower floats what is in front has float64's range or more, and may come
// back.
GPUNUM_API gn_array *gn_cumsum(gn_array *a, gn_axes axis);
GPUNUM_API gn_array *gn_cumprod(gn_array *a, gn_axes axis);
GPUNUM_API gn_array *gn_cummax(gn_array *a, gn_axes axis);
GPUNUM_API gn_array *gn_cummin(gn_array *a, gn_axes axis);
GPUNUM_API gn_array *gn_logcumsumexp(gn_array *a, gn_axes axis); // integers give float32
GPUNUM_API gn_array *gn_nancumsum(gn_array *a, gn_axes axis); // NaN counts as 0, and as 1
GPUNUM_API gn_array *gn_nancumprod(gn_array *a, gn_axes axis);

// Sorted along one axis, or with GN_ALL the raveled array. Equal elements keep their order, also in descending order; NaN
// comes last in both. Indices are int64. Sorted themselves, zeros with a minus sign count as less than those without.
GPUNUM_API gn_array *gn_sort(gn_array *a, gn_axes axis, bool descending);
GPUNUM_API gn_array *gn_argsort(gn_array *a, gn_axes axis, bool descending);
// The k largest in descending order, and into *indices (unless NULL) where they are. NaN counts as less than all numbers.
GPUNUM_API gn_array *gn_topk(gn_array *a, int64_t k, gn_axes axis, gn_array **indices);
// The element at kth is the one that sorting puts there, those in front of it are not larger, those behind it not smaller.
GPUNUM_API gn_array *gn_partition(gn_array *a, int64_t kth, gn_axes axis);
GPUNUM_API gn_array *gn_argpartition(gn_array *a, int64_t kth, gn_axes axis); // gn_partition's places
// Indices that sort by the last of the arrays, where it has equal elements by the one in front of it, and so on.
GPUNUM_API gn_array *gn_lexsort(gn_array *const *arrays, int count, int axis);

// The middle element, or the mean of the two; the element at q (n - 1) of the sorted ones, between two of them in
// proportion. 0 <= q <= 1, percentages up to 100. NaN where there is one, or nothing; integers give float32. Derivatives go
// to the elements that are taken.
GPUNUM_API gn_array *gn_median(gn_array *a, gn_axes axes);
GPUNUM_API gn_array *gn_quantile(gn_array *a, double q, gn_axes axes);
GPUNUM_API gn_array *gn_percentile(gn_array *a, double percent, gn_axes axes);
// Those at each q of a 1-d array as a first axis (k, ...), for one sort. It waits for q: GN_ERROR_UNSUPPORTED while a host's
// commands are recorded.
GPUNUM_API gn_array *gn_quantiles(gn_array *a, gn_array *q, gn_axes axes);
// Of the elements that are no NaN.
GPUNUM_API gn_array *gn_nanmedian(gn_array *a, gn_axes axes);
GPUNUM_API gn_array *gn_nanquantile(gn_array *a, double q, gn_axes axes);
GPUNUM_API gn_array *gn_nanpercentile(gn_array *a, double percent, gn_axes axes);

// Where values go into a sorted 1-d array to keep it sorted: in front of equal elements, with `right` behind them.
GPUNUM_API gn_array *gn_searchsorted(gn_array *sorted, gn_array *values, bool right);
// The number i of the bin bins[i - 1] <= a < bins[i], with `right` bins[i - 1] < a <= bins[i]; 1-d bins may rise or fall,
// else GN_ERROR_ARGUMENT, but where nobody can wait for a GPU that has them, as in a page.
GPUNUM_API gn_array *gn_digitize(gn_array *a, gn_array *bins, bool right);
GPUNUM_API gn_array *gn_isin(gn_array *a, gn_array *values); // bool: whether each element is one of the values; NaN is none
// Straight lines between the points (points, values), both 1-d, points rising; beyond them the first and the last value.
GPUNUM_API gn_array *gn_interp(gn_array *a, gn_array *points, gn_array *values);

// The different elements in ascending order, NaN once, 1-d. Into those of the others that are not NULL: where each is first;
// which of them each element is, in a's shape; how often each is there. What gives as many elements as there turn out to
// be waits for them: GN_ERROR_UNSUPPORTED while a host's commands are recorded. So do the sets.
GPUNUM_API gn_array *gn_unique(gn_array *a, gn_array **index, gn_array **inverse, gn_array **counts);
// The same of the slices along an axis, in the order of their first elements, of equal ones the next and so on; a slice with
// NaN equals none. The inverse is 1-d.
GPUNUM_API gn_array *gn_unique_axis(gn_array *a, int axis, gn_array **index, gn_array **inverse, gn_array **counts);
// What is one number in the result's dtype is one element.
GPUNUM_API gn_array *gn_union1d(gn_array *a, gn_array *b);     // elements of either
GPUNUM_API gn_array *gn_intersect1d(gn_array *a, gn_array *b); // of both
GPUNUM_API gn_array *gn_setdiff1d(gn_array *a, gn_array *b);   // of `a` alone
GPUNUM_API gn_array *gn_setxor1d(gn_array *a, gn_array *b);    // of one of them alone
// How often each number from 0 to the largest is in a 1-d integer array, at least `length` of them; or with weights, unless
// NULL, their sum in float64. Where nobody can wait for a GPU that has them, as in a page: without weights of `length`
// numbers, others count nowhere; for a length of 0 GN_ERROR_UNSUPPORTED.
GPUNUM_API gn_array *gn_bincount(gn_array *a, gn_array *weights, int64_t length);
// How many elements are in each of `bins` equal parts of low to high, which is in the last one; both 0: of what there is, for
// which it waits. Into *edges (unless NULL) their bins + 1 bounds, float32, or float64 of float64 and integers beyond 8
// bits, but float32 of a GPU for which nobody can wait.
GPUNUM_API gn_array *gn_histogram(gn_array *a, int64_t bins, double low, double high, gn_array **edges);
GPUNUM_API gn_array *gn_histogram_edges(gn_array *a, gn_array *edges); // in parts between rising edges
// gn_histogram with the sums of weights of a's shape in float64, unless they are NULL; or with `density`, float64, over the
// sum of all and the width of each part, so that the integral is 1. No derivatives.
GPUNUM_API gn_array *gn_histogram_with(gn_array *a, gn_array *weights, int64_t bins, double low, double high, bool density,
                                       gn_array **edges);
// The same of points (x, y), arrays of one shape: (x_bins, y_bins), x in rows. Into *x_edges and *y_edges, unless they are
// NULL, go the bounds.
GPUNUM_API gn_array *gn_histogram2d(gn_array *x, gn_array *y, gn_array *weights, int64_t x_bins, int64_t y_bins,
                                    double x_low, double x_high, double y_low, double y_high, bool density,
                                    gn_array **x_edges, gn_array **y_edges);
