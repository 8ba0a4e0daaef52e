// >>statistics
// Reductions that leave NaN out, weighted means, covariances, tests of nearness, and elementwise functions that are made of
// others.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/order.h"
#include "../ops/reduce_ops.h"
#include "../ops/complex.h"
#endif

// ---- reductions

GPUNUM_API gn_array *gn_ptp(gn_array *a, gn_axes axes) {
    gn_context *g = gni_begin_scope("gn_ptp", &a, 1);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gn_sub(gn_max(a, axes), gn_min(a, axes)));
}

// `a` in the dtype that its moments are computed in.
static gn_array *gni_in_moments(gn_array *a) {
    if (a == NULL || gni_is_complex(a->dtype) || gni_moments_of(a) == a->dtype) return a;
    return gn_cast(a, gni_moments_of(a));
}

// A mean or moment of such, in the dtype that it has of arrays of dtype t.
static gn_array *gni_from_moments(gn_array *y, gn_dtype t) {
    if (!gni_is_float(t) && !gni_is_complex(t)) t = GN_F32;
    return y == NULL || y->dtype == t || gni_is_complex(y->dtype) ? y : gn_cast(y, t);
}

GPUNUM_API gn_array *gn_average(gn_array *a, gn_array *weights, gn_axes axes) {
    char ta[200], tw[200];
    gn_context *g = gni_begin_pair("gn_average", a, weights);
    if (g == NULL) return NULL;
    bool keep;
    const uint32_t set = gni_axes(g, "gn_average", axes, a->shape.rank, &keep);
    const gn_dtype t = gn_promote(a->dtype, weights->dtype);
    gn_array *w = weights;
    if (set != ~0u && !gni_same_shape(&a->shape, &w->shape)) {
        gn_shape s = a->shape;
        int at = -1;
        for (int i = 0; i < s.rank; i++)
            if (set == 1u << i) at = i;
        if (at < 0 || w->shape.rank != 1 || w->shape.dim[0] != s.dim[at]) {
            gni_fail(g, GN_ERROR_SHAPE, "gn_average: weights %s for %s: they have its shape, or that of the one axis",
                     gni_shape_text(tw, sizeof tw, &w->shape), gni_shape_text(ta, sizeof ta, &a->shape));
            return gni_end_scope(g, NULL);
        }
        for (int i = 0; i < s.rank; i++)
            if (i != at) s.dim[i] = 1;
        w = gn_reshape(w, s);
    }
    if (set == ~0u) return gni_end_scope(g, NULL);
    if (!gni_is_complex(weights->dtype)) w = gn_cast(w, gni_is_complex(t) ? gni_part_of(t) : gni_moments_with(t, a, weights));
    w = gn_broadcast_to(w, a->shape);
    gn_array *y = gn_div(gn_sum(gn_mul(gni_in_moments(a), w), axes), gn_sum(w, axes));
    return gni_end_scope(g, gni_from_moments(y, t));
}

// Whether the dtype has NaN.
static bool gni_has_nan(gn_dtype t) { return gni_is_float(t) || gni_is_complex(t); }

// `a` with `value` in the place of NaN, or of whatever else is named.
static gn_array *gni_nan_as(gn_array *a, gn_array *nan, double value) { return gn_where(nan, gn_full_like(a, value), a); }

static gn_array *gni_nan_reduction(const char *fn, gn_array *(*reduce)(gn_array *, gn_axes), gn_array *a, gn_axes axes,
                                   double neutral, bool extreme) {
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    if (!gni_has_nan(a->dtype) || (extreme && !gni_real_only(g, fn, &a, 1))) return gni_end_scope(g, reduce(a, axes));
    gn_array *nan = gn_isnan(a), *y = reduce(gni_nan_as(a, nan, neutral), axes);
    // On a CPU it is known whether any of them may have had nothing else.
    if (extreme && y != NULL && (g->gpu != NULL || gn_item(gn_any(gn_eq_s(y, neutral), GN_ALL)) != 0.0))
        y = gni_nan_as(y, gn_all(nan, axes), GNI_NAN);
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_nansum(gn_array *a, gn_axes axes) {
    return gni_nan_reduction("gn_nansum", gn_sum, a, axes, 0.0, false);
}
GPUNUM_API gn_array *gn_nanprod(gn_array *a, gn_axes axes) {
    return gni_nan_reduction("gn_nanprod", gn_prod, a, axes, 1.0, false);
}
GPUNUM_API gn_array *gn_nanmax(gn_array *a, gn_axes axes) {
    return gni_nan_reduction("gn_nanmax", gn_max, a, axes, -GNI_INF, true);
}
GPUNUM_API gn_array *gn_nanmin(gn_array *a, gn_axes axes) {
    return gni_nan_reduction("gn_nanmin", gn_min, a, axes, GNI_INF, true);
}

GPUNUM_API gn_array *gn_nanargmax(gn_array *a, gn_axes axis) {
    return gni_nan_reduction("gn_nanargmax", gn_argmax, a, axis, -GNI_INF, false);
}
GPUNUM_API gn_array *gn_nanargmin(gn_array *a, gn_axes axis) {
    return gni_nan_reduction("gn_nanargmin", gn_argmin, a, axis, GNI_INF, false);
}
GPUNUM_API gn_array *gn_nancumsum(gn_array *a, gn_axes axis) {
    return gni_nan_reduction("gn_nancumsum", gn_cumsum, a, axis, 0.0, false);
}
GPUNUM_API gn_array *gn_nancumprod(gn_array *a, gn_axes axis) {
    return gni_nan_reduction("gn_nancumprod", gn_cumprod, a, axis, 1.0, false);
}

// Numbers that are not NaN, as they are counted in x's dtype: there are GPUs that have no int64.
static gn_array *gni_nan_count(gn_array *x, gn_array *nan, gn_axes axes) {
    const gn_dtype t = gn_dtype_of(x) == GN_F64 || gn_dtype_of(x) == GN_C128 ? GN_F64 : GN_F32;
    return gn_sum(gn_cast(gn_logical_not(nan), t), axes);
}

GPUNUM_API gn_array *gn_nanmean(gn_array *a, gn_axes axes) {
    gn_context *g = gni_begin_scope("gn_nanmean", &a, 1);
    if (g == NULL) return NULL;
    if (!gni_has_nan(a->dtype)) return gni_end_scope(g, gn_mean(a, axes));
    gn_array *x = gni_in_moments(a), *nan = gn_isnan(x);
    gn_array *y = gn_div(gn_sum(gni_nan_as(x, nan, 0.0), axes), gni_nan_count(x, nan, axes));
    return gni_end_scope(g, gni_from_moments(y, a->dtype));
}

static gn_array *gni_nanvar(const char *fn, gn_array *a, gn_axes axes, double ddof, bool root) {
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *x = gni_in_moments(a), *y;
    if (!gni_has_nan(a->dtype)) return gni_end_scope(g, root ? gn_std(a, axes, ddof) : gn_var(a, axes, ddof));
    const bool parts = gni_is_complex(a->dtype);
    gn_array *nan = gn_isnan(x), *rest = gn_sub(x, gn_nanmean(x, GN_KEEP(axes))), *none;
    rest = gni_nan_as(rest, nan, 0.0);
    y = parts ? gn_add(gn_square(gn_real(rest)), gn_square(gn_imag(rest))) : gn_square(rest);
    gn_array *n = gn_sub_s(gni_nan_count(x, nan, axes), (double)ddof);
    none = gn_le_s(n, 0.0);
    y = gni_nan_as(gn_div(gn_sum(y, axes), gni_nan_as(n, none, 1.0)), none, GNI_NAN);
    y = gni_from_moments(root ? gni_root(g, y) : y, parts ? gni_part_of(a->dtype) : a->dtype);
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_nanvar(gn_array *a, gn_axes axes, double ddof) {
    return gni_nanvar("gn_nanvar", a, axes, ddof, false);
}
GPUNUM_API gn_array *gn_nanstd(gn_array *a, gn_axes axes, double ddof) {
    return gni_nanvar("gn_nanstd", a, axes, ddof, true);
}

// ---- covariances

static gn_array *gni_cov(gn_context *g, const char *fn, gn_array *a, int ddof) {
    char text[200];
    gn_array *x = gni_in_moments(a);
    if (a->shape.rank > 2) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: %s has more than two axes", fn, gni_shape_text(text, sizeof text, &a->shape));
        return NULL;
    }
    if (a->shape.rank < 2) x = gn_reshape(x, GN_SHAPE(1, gni_elements(&a->shape)));
    if (x == NULL) return NULL;
    const double n = (double)x->shape.dim[1] - (double)ddof;
    gn_array *rest = gn_sub(x, gn_mean(x, GN_KEEP(1)));
    gn_array *y = gn_div_s(gn_matmul(rest, gn_transpose(gn_conj(rest))), n > 0.0 ? n : 0.0);
    return x->shape.dim[0] == 1 ? gn_reshape(y, GN_SHAPE()) : y;
}

GPUNUM_API gn_array *gn_cov(gn_array *a, int ddof) {
    gn_context *g = gni_begin_scope("gn_cov", &a, 1);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_from_moments(gni_cov(g, "gn_cov", a, ddof), a->dtype));
}

GPUNUM_API gn_array *gn_corrcoef(gn_array *a) {
    gn_context *g = gni_begin_scope("gn_corrcoef", &a, 1);
    if (g == NULL) return NULL;
    gn_array *c = gni_cov(g, "gn_corrcoef", a, 1), *y = NULL;
    if (c != NULL && c->shape.rank == 0) {
        y = gn_div(c, c);
    } else if (c != NULL) {
        gn_array *d = gn_sqrt(gn_real(gn_diagonal(c, 0)));
        y = gn_div(gn_div(c, gn_expand_dims(d, 1)), d);
        y = gni_is_complex(c->dtype) ? gn_complex(gn_clamp(gn_real(y), -1.0, 1.0), gn_clamp(gn_imag(y), -1.0, 1.0))
                                     : gn_clamp(y, -1.0, 1.0);
    }
    return gni_end_scope(g, gni_from_moments(y, a->dtype));
}

// ---- nearness

// `a` as numbers that differences are exact enough in.
static gn_array *gni_as_close(gn_array *a) {
    const gn_dtype t = a->dtype;
    if (gni_is_complex(t) || t == GN_F64 || t == GN_F32) return a;
    return gn_cast(a, gni_is_float(t) || gni_is_remote(a) ? GN_F32 : GN_F64);
}

static gn_array *gni_isclose(gn_array *a, gn_array *b, double rtol, double atol, bool equal_nan) {
    gn_array *x = gni_as_close(a), *y = gni_as_close(b);
    gn_array *limit = gn_add_s(gn_mul_s(gn_abs(y), rtol), atol);
    gn_array *near_by = gn_logical_and(gn_le(gn_abs(gn_sub(x, y)), limit), gn_isfinite(y));
    near_by = gn_logical_or(near_by, gn_eq(x, y));
    return equal_nan ? gn_logical_or(near_by, gn_logical_and(gn_isnan(x), gn_isnan(y))) : near_by;
}

GPUNUM_API gn_array *gn_isclose(gn_array *a, gn_array *b, double rtol, double atol, bool equal_nan) {
    gn_context *g = gni_begin_pair("gn_isclose", a, b);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_isclose(a, b, rtol, atol, equal_nan));
}

// Whether all elements are true; ends the call.
static bool gni_end_truth(gn_context *g, gn_array *truth) {
    const bool yes = truth != NULL && gn_item(gn_all(truth, GN_ALL)) != 0.0;
    gn_scope_end(g);
    return gni_end_status(g) == GN_OK && yes;
}

GPUNUM_API bool gn_allclose(gn_array *a, gn_array *b, double rtol, double atol, bool equal_nan) {
    gn_context *g = gni_begin_pair("gn_allclose", a, b);
    if (g == NULL) return false;
    return gni_end_truth(g, gni_isclose(a, b, rtol, atol, equal_nan));
}

GPUNUM_API bool gn_array_equal(gn_array *a, gn_array *b, bool equal_nan) {
    gn_context *g = gni_begin_pair("gn_array_equal", a, b);
    if (g == NULL) return false;
    gn_array *same = gni_same_shape(&a->shape, &b->shape) ? gn_eq(a, b) : NULL;
    if (same != NULL && equal_nan) same = gn_logical_or(same, gn_logical_and(gn_isnan(a), gn_isnan(b)));
    return gni_end_truth(g, same);
}

// ---- elementwise

// The largest finite number of a float dtype.
static double gni_largest(gn_dtype t) {
    return t == GN_F64    ? ldexp(9007199254740991.0, 971)
           : t == GN_F16  ? 65504.0
           : t == GN_BF16 ? ldexp(255.0, 120)
                          : ldexp(16777215.0, 104);
}

static gn_array *gni_nan_to_num(gn_array *a, double nan, double posinf, double neginf) {
    if (a == NULL) return NULL;
    if (gni_is_complex(a->dtype))
        return gn_complex(gni_nan_to_num(gn_real(a), nan, posinf, neginf), gni_nan_to_num(gn_imag(a), nan, posinf, neginf));
    if (!gni_is_float(a->dtype)) return gn_copy(a);
    const double most = gni_largest(a->dtype);
    gn_array *y = gni_nan_as(a, gn_isnan(a), nan);
    y = gn_where(gn_eq_s(a, GNI_INF), gn_full_like(a, posinf != posinf ? most : posinf), y);
    return gn_where(gn_eq_s(a, -GNI_INF), gn_full_like(a, neginf != neginf ? -most : neginf), y);
}

GPUNUM_API gn_array *gn_nan_to_num(gn_array *a, double nan, double posinf, double neginf) {
    gn_context *g = gni_begin_scope("gn_nan_to_num", &a, 1);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_nan_to_num(a, nan, posinf, neginf));
}

GPUNUM_API gn_array *gn_masked_fill(gn_array *a, gn_array *mask, double value) {
    gn_context *g = gni_begin_pair("gn_masked_fill", a, mask);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_nan_as(a, mask, value));
}

GPUNUM_API gn_array *gn_clip(gn_array *a, gn_array *low, gn_array *high) {
    gn_array *in[3];
    int n = 1;
    in[0] = a;
    if (low != NULL) in[n++] = low;
    if (high != NULL) in[n++] = high;
    gn_context *g = a != NULL ? gni_begin("gn_clip", in, n) : NULL;
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    gn_array *y = low != NULL ? gn_maximum(a, low) : a;
    if (high != NULL) y = gn_minimum(y, high);
    return gni_end_scope(g, y == a ? gn_copy(a) : y);
}

// a - b, 0 where both are the same infinity.
static gn_array *gni_apart(gn_array *a, gn_array *b) {
    return gni_nan_as(gn_sub(a, b), gn_logical_and(gn_eq(a, b), gn_isinf(a)), 0.0);
}

// Smooth where a = b, as |a - b| is not.
static bool gni_back_logaddexp(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *apart = gni_apart(node->in[0], node->in[1]);
    GNI_UNUSED(g);
    for (int i = 0; i < 2; i++)
        if (gni_wanted(node, i))
            gx[i] = gni_unbroadcast(gn_mul(gy, gn_sigmoid(i == 0 ? apart : gn_neg(apart))), &node->in[i]->shape);
    return true;
}

GPUNUM_API gn_array *gn_logaddexp(gn_array *a, gn_array *b) {
    gn_array *in[2] = {a, b};
    gn_context *g = gni_begin_scope("gn_logaddexp", in, 2);
    if (g == NULL) return NULL;
    if (!gni_real_only(g, "gn_logaddexp", in, 2)) return gni_end_scope(g, NULL);
    const gn_dtype t = gn_promote(a->dtype, b->dtype), wide = t == GN_F64 ? GN_F64 : GN_F32; // rounded once at the end
    in[0] = gni_as(a, wide);
    in[1] = gni_as(b, wide);
    g->no_grad++; // recorded as one op
    gn_array *y = gn_add(gn_maximum(in[0], in[1]), gn_log1p(gn_exp(gn_neg(gn_abs(gni_apart(in[0], in[1]))))));
    g->no_grad--;
    if (in[0] != NULL && in[1] != NULL) gni_record(g, y, "gn_logaddexp", gni_back_logaddexp, in, 2);
    return gni_end_scope(g, t == GN_F16 || t == GN_BF16 ? gn_cast(y, t) : y);
}

// sin(pi x) / (pi x), with x brought to -1/2 .. 1/2 first, where nothing is lost. Where derivatives are wanted, below 1/4
// Taylor's series in (pi x)^2, of which none divides by x.
GPUNUM_API gn_array *gn_sinc(gn_array *a) {
    const double pi = 3.14159265358979323846;
    gn_context *g = gni_begin_scope("gn_sinc", &a, 1);
    if (g == NULL) return NULL;
    if (!gni_real_only(g, "gn_sinc", &a, 1)) return gni_end_scope(g, NULL);
    const gn_dtype t = gni_is_float(a->dtype) ? a->dtype : GN_F32;
    gn_array *x = a->dtype == GN_F64 || a->dtype == GN_F32 ? a : gn_cast(a, GN_F32);
    const bool smooth = gni_tracks(g, &a, 1);
    g->no_grad++; // these are constant between their steps
    gn_array *little = gn_lt_s(gn_abs(x), smooth ? 0.25 : 1.0e-18), *n = gn_round(x), *half = gn_mul_s(n, 0.5);
    gn_array *sign = gn_rsub_s(gn_mul_s(gn_sub(half, gn_floor(half)), 4.0), 1.0);
    g->no_grad--;
    gn_array *y = gn_mul(gn_sin(gn_mul_s(gn_sub(x, n), pi)), sign);
    y = gn_div(y, gn_mul_s(gni_nan_as(x, little, 1.0), pi));
    if (smooth) {
        gn_array *z = gn_square(gn_mul_s(gni_nan_as(x, gn_logical_not(little), 0.0), pi));
        gn_array *series = gn_rsub_s(gn_div_s(z, 272.0), 1.0);
        for (int k = 14; k > 0; k -= 2) series = gn_rsub_s(gn_mul(gn_mul_s(z, 1.0 / (k * (k + 1))), series), 1.0);
        y = gn_where(little, series, y);
    } else {
        y = gni_nan_as(y, little, 1.0);
    }
    return gni_end_scope(g, t != gn_dtype_of(y) ? gn_cast(y, t) : y);
}

// Bits of a float array as integers of its size, or back.
static gn_array *gni_bits_as(gn_context *g, const char *fn, gn_array *a, gn_dtype t) {
    if (a == NULL || !gni_materialize(g, a)) return NULL;
    gn_array *y = gni_array_view(g, fn, a, &a->shape, a->stride, a->offset);
    if (y != NULL) y->dtype = t;
    return gni_adopt(g, y);
}

// The sign bits of a float array: as integers, on devices that may lack some but float32 the last byte of each element.
static gn_array *gni_sign_bits(gn_context *g, const char *fn, gn_array *a) {
    const int64_t size = (int64_t)gn_dtype_size(a->dtype);
    int64_t stride[GN_MAX_RANK];
    if (!gni_is_float(a->dtype)) return gn_lt_s(a, 0.0);
    if (a->dtype == GN_F32 || g->gpu == NULL)
        return gn_lt_s(gni_bits_as(g, fn, a, size == 2 ? GN_I16 : size == 4 ? GN_I32 : GN_I64), 0.0);
    if (!gni_materialize(g, a)) return NULL;
    for (int i = 0; i < a->shape.rank; i++) stride[i] = a->stride[i] * size;
    gn_array *bytes = gni_array_view(g, fn, a, &a->shape, stride, a->offset * size + size - 1);
    if (bytes != NULL) bytes->dtype = GN_I8;
    return gn_lt_s(gni_adopt(g, bytes), 0.0);
}

GPUNUM_API gn_array *gn_signbit(gn_array *a) {
    gn_context *g = gni_begin_scope("gn_signbit", &a, 1);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_real_only(g, "gn_signbit", &a, 1) ? gni_sign_bits(g, "gn_signbit", a) : NULL);
}

// Floats as integers of the same order, with one zero; and back.
static gn_array *gni_ordered(gn_array *bits, double lowest) {
    return gn_where(gn_lt_s(bits, 0.0), gn_rsub_s(bits, lowest), bits);
}

GPUNUM_API gn_array *gn_nextafter(gn_array *a, gn_array *b) {
    static const char *const fn = "gn_nextafter";
    gn_array *in[2] = {a, b};
    gn_context *g = gni_begin_scope(fn, in, 2);
    if (g == NULL) return NULL;
    if (!gni_real_only(g, fn, in, 2)) return gni_end_scope(g, NULL);
    gn_dtype t = gn_promote(a->dtype, b->dtype);
    if (!gni_is_float(t)) t = GN_F32;
    const gn_dtype i = gn_dtype_size(t) == 2 ? GN_I16 : t == GN_F32 ? GN_I32 : GN_I64;
    const double lowest = -ldexp(1.0, 8 * (int)gn_dtype_size(t) - 1);
    g->no_grad++;
    gn_array *x = a->dtype == t ? a : gn_cast(a, t), *y = b->dtype == t ? b : gn_cast(b, t), *none = gn_add(x, y);
    gn_array *bx = none == NULL ? NULL : gni_bits_as(g, fn, x, i), *by = none == NULL ? NULL : gni_bits_as(g, fn, y, i);
    gn_array *kx = gni_ordered(bx, lowest), *ky = gni_ordered(by, lowest);
    gn_array *step = gn_sub(gn_cast(gn_gt(ky, kx), i), gn_cast(gn_lt(ky, kx), i)), *k = gn_add(kx, step);
    gn_array *bits =
        gn_where(gn_logical_and(gn_eq_s(k, 0.0), gn_lt_s(kx, 0.0)), gn_full_like(k, lowest), gni_ordered(k, lowest));
    gn_array *next = gni_bits_as(g, fn, gn_where(gn_eq_s(step, 0.0), by, bits), t);
    next = gn_where(gn_logical_or(gn_isnan(x), gn_isnan(y)), none, next); // NaN where one is
    g->no_grad--;
    return gni_end_scope(g, next);
}

GPUNUM_API gn_array *gn_invert(gn_array *a) {
    gn_context *g = gni_begin("gn_invert", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL, *src[2];
    double konst[2] = {0.0, -1.0}, low = -1.0;
    src[0] = a;
    src[1] = NULL;
    if (gni_is_unsigned(a->dtype)) gni_integer_range(a->dtype, &low, &konst[1]);
    const bool truth = a->dtype == GN_BOOL;
    if (!truth && !gni_is_integer(a->dtype))
        gni_fail(g, GN_ERROR_DTYPE, "gn_invert: %s is not an integer or bool", gn_dtype_name(a->dtype));
    else
        y = gni_apply(g, "gn_invert", truth ? GNI_OP_LOGICAL_NOT : GNI_OP_XOR, a->dtype, a->dtype, src, konst,
                      truth ? 1 : 2);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_copysign(gn_array *a, gn_array *b) {
    gn_array *in[2] = {a, b}, *x = a;
    gn_context *g = gni_begin_scope("gn_copysign", in, 2);
    if (g == NULL) return NULL;
    if (!gni_real_only(g, "gn_copysign", in, 2)) return gni_end_scope(g, NULL);
    gn_dtype t = gn_promote(a->dtype, b->dtype);
    if (!gni_is_float(t)) t = GN_F32;
    if (x->dtype != t) x = gn_cast(x, t);
    if (x == NULL) return gni_end_scope(g, NULL);
    gn_array *turn = gn_logical_xor(gni_sign_bits(g, "gn_copysign", a), gni_sign_bits(g, "gn_copysign", b));
    return gni_end_scope(g, gn_where(turn, gn_neg(x), x));
}
