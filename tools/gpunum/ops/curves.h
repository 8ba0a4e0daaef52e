// >>curves
// Numbers that are samples along an axis: their derivative and integral, angles, polynomials through them, and windows for
// transforms of them. Compositions, which bring their derivatives.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/curves_api.h"
#include "../ops/arrange.h"
#include "../ops/order_ops.h"
#endif

// Places first to stop of an axis, which has them.
static gn_array *gni_stretch(gn_array *a, int axis, int64_t first, int64_t stop) { return gn_slice(a, axis, first, stop, 1); }

// The distances of points along axis `at` of `a`: 1-d ones, or with `many` such of a's rank too. NULL after an error.
static gn_array *gni_distances(gn_context *g, const char *fn, gn_array *a, gn_array *x, int at, bool many) {
    char ta[200], tx[200];
    const int rank = a->shape.rank, own = x->shape.rank == 1 ? 0 : at;
    const bool line = x->shape.rank == 1, fits = line || (many && x->shape.rank == rank);
    if (!fits || x->shape.dim[own] != a->shape.dim[at]) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: points %s for axis %d of %s", fn, gni_shape_text(tx, sizeof tx, &x->shape), at,
                 gni_shape_text(ta, sizeof ta, &a->shape));
        return NULL;
    }
    gn_array *d = gn_diff(gni_in_moments(x), 1, own);
    gn_shape s = gni_shape_of_rank(rank);
    for (int i = 0; i < rank; i++) s.dim[i] = i == at && d != NULL ? d->shape.dim[0] : 1;
    return line ? gn_reshape(d, s) : d;
}

// Begins a call on samples and their points, which may be NULL; *at is the axis, below 0 after an error.
static gn_context *gni_begin_samples(const char *fn, gn_array *a, gn_array *x, int axis, int *at) {
    gn_array *in[2] = {a, x};
    gn_context *g = gni_begin_scope(fn, in, x != NULL ? 2 : 1);
    if (g == NULL) return NULL;
    *at = gni_axis(g, fn, axis, a->shape.rank);
    return g;
}

// What was made of samples and their points, in the dtype that such have: integers count as float32.
static gn_array *gni_as_samples(gn_array *y, const gn_array *a, const gn_array *x) {
    gn_dtype t = gni_is_float(a->dtype) || gni_is_complex(a->dtype) ? a->dtype : GN_F32;
    if (x != NULL && (gni_is_float(x->dtype) || gni_is_complex(x->dtype))) t = gn_promote(t, x->dtype);
    return y == NULL || y->dtype == t ? y : gn_cast(y, t);
}

GPUNUM_API gn_array *gn_gradient(gn_array *a, gn_array *x, double dx, int axis) {
    const char *fn = "gn_gradient";
    int at;
    char text[200];
    gn_context *g = gni_begin_samples(fn, a, x, axis, &at);
    if (g == NULL) return NULL;
    const int64_t n = at >= 0 ? a->shape.dim[at] : 2;
    if (n < 2)
        gni_fail(g, GN_ERROR_SHAPE, "%s: axis %d of %s has not 2 elements", fn, at,
                 gni_shape_text(text, sizeof text, &a->shape));
    gn_array *d = at >= 0 && n > 1 && x != NULL ? gni_distances(g, fn, a, x, at, false) : NULL, *part[3];
    if (at < 0 || g->call_failed) return gni_end_scope(g, NULL);
    gn_array *y = gni_in_moments(a);
    if (d == NULL) {
        part[0] = gn_div_s(gn_diff(gni_stretch(y, at, 0, 2), 1, at), dx);
        part[1] = gn_div_s(gn_sub(gni_stretch(y, at, 2, n), gni_stretch(y, at, 0, n - 2)), 2.0 * dx);
        part[2] = gn_div_s(gn_diff(gni_stretch(y, at, n - 2, n), 1, at), dx);
    } else { // the slopes on both sides, each with the other one's distance as its weight
        gn_array *left = gni_stretch(d, at, 0, n - 2), *right = gni_stretch(d, at, 1, n - 1);
        gn_array *slope = gn_div(gn_diff(y, 1, at), d);
        part[0] = gni_stretch(slope, at, 0, 1);
        part[1] = gn_add(gn_mul(gni_stretch(slope, at, 0, n - 2), right), gn_mul(gni_stretch(slope, at, 1, n - 1), left));
        part[1] = gn_div(part[1], gn_add(left, right));
        part[2] = gni_stretch(slope, at, n - 2, n - 1);
    }
    return gni_end_scope(g, gni_as_samples(gn_concat(part, 3, at), a, x));
}

GPUNUM_API gn_array *gn_trapezoid(gn_array *a, gn_array *x, double dx, int axis) {
    int at;
    gn_context *g = gni_begin_samples("gn_trapezoid", a, x, axis, &at);
    if (g == NULL) return NULL;
    gn_array *d = at >= 0 && x != NULL ? gni_distances(g, "gn_trapezoid", a, x, at, true) : NULL;
    if (at < 0 || g->call_failed) return gni_end_scope(g, NULL);
    const int64_t n = GNI_MAX(a->shape.dim[at], 1);
    gn_array *y = gni_in_moments(a);
    y = gn_add(gni_stretch(y, at, 0, n - 1), gni_stretch(y, at, 1, n));
    y = gn_mul_s(gn_sum(d != NULL ? gn_mul(y, d) : y, at), d != NULL ? 0.5 : 0.5 * dx);
    return gni_end_scope(g, gni_as_samples(y, a, x));
}

GPUNUM_API gn_array *gn_unwrap(gn_array *a, int axis) {
    const double pi = 3.14159265358979323846;
    int at;
    gn_context *g = gni_begin_samples("gn_unwrap", a, NULL, axis, &at);
    if (g == NULL) return NULL;
    if (at < 0 || !gni_real_only(g, "gn_unwrap", &a, 1)) return gni_end_scope(g, NULL);
    gn_array *y = gni_in_moments(a), *part[2];
    const int64_t n = a->shape.dim[at];
    if (n > 1) {
        g->no_grad++; // multiples of 2 pi have no derivative
        gn_array *step = gn_diff(y, 1, at), *within = gn_sub_s(gn_mod_s(gn_add_s(step, pi), 2.0 * pi), pi);
        within = gni_nan_as(within, gn_logical_and(gn_eq_s(within, -pi), gn_gt_s(step, 0.0)), pi);
        gn_array *more = gn_cumsum(gni_nan_as(gn_sub(within, step), gn_lt_s(gn_abs(step), pi), 0.0), at);
        g->no_grad--;
        part[0] = gni_stretch(y, at, 0, 1);
        part[1] = gn_add(gni_stretch(y, at, 1, n), more);
        y = gn_concat(part, 2, at);
    }
    return gni_end_scope(g, gni_as_samples(y == a ? gn_copy(a) : y, a, NULL));
}

// ---- polynomials

// Whether the rank is that; says what it should be.
static bool gni_of_rank(gn_context *g, const char *fn, const char *what, const gn_array *a, int rank) {
    char text[200];
    if (a->shape.rank == rank) return true;
    return gni_fail(g, GN_ERROR_SHAPE, "%s: %s %s are not %d-d", fn, what, gni_shape_text(text, sizeof text, &a->shape),
                    rank);
}

static gn_array *gni_vander(gn_context *g, gn_array *x, int64_t n, bool rising) {
    gn_array *part[2];
    if (x == NULL) return NULL;
    const int64_t m = x->shape.dim[0];
    part[0] = gn_full(g, x->dtype, GN_SHAPE(m, GNI_MIN(n, 1)), 1.0);
    part[1] = gn_broadcast_to(gn_expand_dims(x, 1), GN_SHAPE(m, GNI_MAX(n - 1, 0)));
    gn_array *y = gn_cumprod(gn_concat(part, 2, 1), 1);
    return rising ? y : gn_flip(y, 1);
}

GPUNUM_API gn_array *gn_vander(gn_array *x, int64_t n, bool rising) {
    gn_context *g = gni_begin_scope("gn_vander", &x, 1);
    if (g == NULL) return NULL;
    const bool ok = gni_of_rank(g, "gn_vander", "points", x, 1);
    if (n < 0) gni_fail(g, GN_ERROR_ARGUMENT, "gn_vander: %lld powers", (long long)n);
    return gni_end_scope(g, ok && n >= 0 ? gni_vander(g, x, n, rising) : NULL);
}

GPUNUM_API gn_array *gn_polyfit(gn_array *x, gn_array *y, int degree) {
    const char *fn = "gn_polyfit";
    char tx[200], ty[200];
    gn_context *g = gni_begin_pair(fn, x, y);
    if (g == NULL) return NULL;
    const bool ok = gni_of_rank(g, fn, "points", x, 1);
    const int rank = y->shape.rank;
    if (ok && (rank < 1 || rank > 2 || y->shape.dim[0] != x->shape.dim[0] || x->shape.dim[0] == 0))
        gni_fail(g, GN_ERROR_SHAPE, "%s: values %s for points %s", fn, gni_shape_text(ty, sizeof ty, &y->shape),
                 gni_shape_text(tx, sizeof tx, &x->shape));
    if (degree < 0) gni_fail(g, GN_ERROR_ARGUMENT, "%s: degree %d", fn, degree);
    if (g->call_failed) return gni_end_scope(g, NULL);
    const gn_dtype inner = gni_is_complex(x->dtype) || gni_is_complex(y->dtype) ? GN_C128 : GN_F64;
    gn_array *powers = gni_vander(g, gn_cast(x, gni_is_complex(x->dtype) ? GN_C128 : GN_F64), (int64_t)degree + 1, false);
    gn_array *scale = gn_norm(powers, 0); // columns of length 1
    scale = gni_nan_as(scale, gn_eq_s(scale, 0.0), 1.0);
    gn_array *c = gn_lstsq(gn_div(powers, scale), gn_cast(y, inner), ldexp((double)x->shape.dim[0], -52), NULL, NULL);
    c = gn_div(c, rank == 2 ? gn_expand_dims(scale, 1) : scale);
    return gni_end_scope(g, gni_as_samples(c, y, x));
}

GPUNUM_API gn_array *gn_polyval(gn_array *coefficients, gn_array *x) {
    gn_array *y = NULL;
    gn_context *g = gni_begin_pair("gn_polyval", coefficients, x);
    if (g == NULL) return NULL;
    if (!gni_of_rank(g, "gn_polyval", "coefficients", coefficients, 1)) return gni_end_scope(g, NULL);
    const int64_t n = coefficients->shape.dim[0], most = 1 << 16;
    if (n > most)
        gni_fail(g, GN_ERROR_SHAPE, "gn_polyval: %lld coefficients, the most are %lld", (long long)n, (long long)most);
    else y = gn_zeros(g, gn_promote(coefficients->dtype, x->dtype), x->shape);
    for (int64_t i = 0; i < n && y != NULL; i++)
        y = i == 0 ? gn_add(y, gn_at(coefficients, 0)) : gn_add(gn_mul(y, x), gn_at(coefficients, i));
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_roots(gn_array *coefficients) {
    const char *fn = "gn_roots";
    gn_context *g = gni_begin_scope(fn, &coefficients, 1);
    if (g == NULL) return NULL;
    const bool ok = gni_of_rank(g, fn, "coefficients", coefficients, 1) && gni_may_wait(g, fn);
    const gn_dtype t = coefficients->dtype, result = gni_complex_of(t);
    gn_array *places = ok ? gn_flatnonzero(coefficients) : NULL, *part[2];
    if (places == NULL) return gni_end_scope(g, NULL);
    const int64_t count = places->shape.dim[0];
    if (count == 0) return gni_end_scope(g, gn_zeros(g, result, GN_SHAPE(0)));
    const int64_t first = (int64_t)gn_item(gn_at(places, 0)), last = (int64_t)gn_item(gn_at(places, -1)), n = last - first;
    gn_array *p = gn_cast(coefficients, gni_is_complex(t) ? GN_C128 : GN_F64);
    part[0] = gn_zeros(g, GN_C128, GN_SHAPE(0));
    if (n > 0) { // the eigenvalues of the companion matrix
        gn_array *row = gn_div(gn_neg(gni_stretch(p, 0, first + 1, last + 1)), gni_stretch(p, 0, first, first + 1));
        if (row != NULL && gn_item(gn_all(gn_isfinite(row), GN_ALL)) == 0.0)
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: the coefficients, over the first that is not 0, hold NaN or infinity", fn);
        part[0] = g->call_failed ? NULL : gn_expand_dims(row, 0);
        part[1] = gn_eye(g, GN_F64, n - 1, n, 0);
        part[0] = gn_eigvals(gn_concat(part, 2, 0));
    }
    part[1] = gn_zeros(g, GN_C128, GN_SHAPE(coefficients->shape.dim[0] - 1 - last));
    return gni_end_scope(g, gn_cast(gn_concat(part, 2, 0), result));
}

// ---- windows

// first - second cos(2 pi i / (n - 1)) + third cos(4 pi i / (n - 1)), the same from both ends.
static gn_array *gni_window_of(const char *fn, gn_context *g, gn_dtype t, int64_t n, double first, double second,
                               double third) {
    if (!gni_begin_context(fn, g)) return NULL;
    gn_scope_begin(g);
    const gn_shape s = gn_shape_from(1, &n);
    gn_array *x = NULL;
    if (t != GN_F32 && t != GN_F64)
        gni_fail(g, GN_ERROR_DTYPE, "%s: %s is neither float32 nor float64", fn, gn_dtype_name(t));
    else if (gni_shape_ok(g, fn, t, &s)) x = gn_arange(g, GN_F64, (double)n - 1.0, -(double)n, -2.0);
    x = gn_cos(gn_div_s(gn_mul_s(x, 3.14159265358979323846), GNI_MAX((double)n - 1.0, 1.0)));
    gn_array *y = gn_add_s(gn_mul_s(x, second), first);
    if (third != 0.0) y = gn_add(y, gn_mul_s(gn_sub_s(gn_mul_s(gn_square(x), 2.0), 1.0), third));
    return gni_end_scope(g, gn_cast(y, t));
}

GPUNUM_API gn_array *gn_hanning(gn_context *g, gn_dtype t, int64_t n) {
    return gni_window_of("gn_hanning", g, t, n, 0.5, 0.5, 0.0);
}
GPUNUM_API gn_array *gn_hamming(gn_context *g, gn_dtype t, int64_t n) {
    return gni_window_of("gn_hamming", g, t, n, 0.54, 0.46, 0.0);
}
GPUNUM_API gn_array *gn_blackman(gn_context *g, gn_dtype t, int64_t n) {
    return gni_window_of("gn_blackman", g, t, n, 0.42, 0.5, 0.08);
}
