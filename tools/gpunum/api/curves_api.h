// >>curves_api
// Numbers that are samples along an axis: derivative and integral, angles, polynomials through them, windows.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// The derivative along an axis of 2 elements or more: central differences, at both ends those of neighbours. Samples are
// taken at the 1-d points x, or with NULL dx apart. Integers give float32, here and below.
GPUNUM_API gn_array *gn_gradient(gn_array *a, gn_array *x, double dx, int axis);
// The integral along an axis by the trapezoidal rule, of samples at x, 1-d or with all axes, or with NULL dx apart.
GPUNUM_API gn_array *gn_trapezoid(gn_array *a, gn_array *x, double dx, int axis);
// Angles in radians whose neighbours differ by pi at most: multiples of 2 pi are added to them.
GPUNUM_API gn_array *gn_unwrap(gn_array *a, int axis);
// Polynomials, the highest power first. The coefficients (degree + 1), or (degree + 1, k), of the one that comes closest, by
// the sum of squares and in float64, to y (m), or (m, k), at the points x (m); the value of one at any x; and the powers
// n - 1 ... 0 of x (m) as columns (m, n), or with `rising` 0 ... n - 1.
GPUNUM_API gn_array *gn_polyfit(gn_array *x, gn_array *y, int degree);
GPUNUM_API gn_array *gn_polyval(gn_array *coefficients, gn_array *x);
GPUNUM_API gn_array *gn_vander(gn_array *x, int64_t n, bool rising);
// The values at which the polynomial is 0, in no order and always complex: complex128 of float64 and complex128, else
// complex64. Zeros in front of all coefficients do not count, each zero behind them is a root 0. Computed in float64 by
// gn_eigvals, for which it waits: GN_ERROR_UNSUPPORTED while a host's commands are recorded. NaN, infinity and overflow in
// dividing by the first coefficient are errors. Derivatives, as gn_eigvals', are those of roots that differ.
GPUNUM_API gn_array *gn_roots(gn_array *coefficients);
// NumPy's windows of n points, symmetric: the first n of n + 1 are the periodic ones. t is GN_F32 or GN_F64.
GPUNUM_API gn_array *gn_hanning(gn_context *g, gn_dtype t, int64_t n);
GPUNUM_API gn_array *gn_hamming(gn_context *g, gn_dtype t, int64_t n);
GPUNUM_API gn_array *gn_blackman(gn_context *g, gn_dtype t, int64_t n);
