// >>complex
// Complex arrays: their parts, which are views, and arithmetic on them. A function here computes both parts of its
// result in one program, and is made of public calls on real arrays, so that it differentiates: the gradient of
// a complex array has the derivatives with respect to its real and imaginary parts as its own.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/grad.h"
#include "../api/transforms.h"
#include "../ops/elementwise.h"
#endif

static gn_array *gni_unbroadcast(gn_array *gx, const gn_shape *shape);

static gn_dtype gni_complex_of(gn_dtype t) {
    return t == GN_F64 || t == GN_C128 ? GN_C128 : GN_C64;
}
static gn_dtype gni_part_of(gn_dtype t) { return t == GN_F64 || t == GN_C128 ? GN_F64 : GN_F32; }

// ---- parts

static bool gni_back_real(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *zero = gn_scalar(g, gy->dtype, 0.0);
    gx[0] = node->param[0] == 0 ? gn_complex(gy, zero) : gn_complex(zero, gy);
    return true;
}

static bool gni_back_complex(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    for (int i = 0; i < 2; i++)
        if (gni_wanted(node, i))
            gx[i] = gni_unbroadcast(i == 0 ? gn_real(gy) : gn_imag(gy), &node->in[i]->shape);
    return true;
}

// The real (0) or imaginary (1) parts: a view, or where `value` is set and the numbers are pending, more work on those.
static gn_array *gni_part(const char *fn, gn_array *a, int which, bool value) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *y;
    const gn_dtype t = gni_part_of(a->dtype);
    if (value && gni_is_pending(a)) {
        y = gni_apply(g, fn, which == 0 ? GNI_OP_REAL : GNI_OP_IMAG, t, t, &a, NULL, 1);
    } else {
        int64_t stride[GN_MAX_RANK];
        for (int i = 0; i < a->shape.rank; i++) stride[i] = 2 * a->stride[i];
        y = gni_array_view(g, fn, a, &a->shape, stride, 2 * a->offset + which);
    }
    if (y != NULL) {
        y->dtype = t;
        gni_note(gni_record(g, y, fn, gni_back_real, &a, 1), which, 0, 0);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_real(gn_array *a) {
    gn_context *g = gni_begin_scope("gn_real", &a, 1);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_is_complex(a->dtype) ? gni_part("gn_real", a, 0, false) : gn_reshape(a, a->shape));
}

GPUNUM_API gn_array *gn_imag(gn_array *a) {
    gn_context *g = gni_begin_scope("gn_imag", &a, 1);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_is_complex(a->dtype) ? gni_part("gn_imag", a, 1, false) : gn_zeros_like(a));
}

// The same for elementwise work: nobody writes to these. The real part of a real array is that array.
static gn_array *gni_re(gn_array *a) {
    return a == NULL || !gni_is_complex(a->dtype) ? a : gni_part("gn_real", a, 0, true);
}
static gn_array *gni_im(gn_array *a) {
    return a == NULL || !gni_is_complex(a->dtype) ? gn_imag(a) : gni_part("gn_imag", a, 1, true);
}

GPUNUM_API gn_array *gn_complex(gn_array *re, gn_array *im) {
    gn_array *in[2] = {re, im}, *y = NULL;
    gn_context *g = gni_begin("gn_complex", in, 2);
    if (g == NULL) return NULL;
    if (gni_real_only(g, "gn_complex", in, 2)) {
        gn_dtype t = re->dtype == GN_F64 || im->dtype == GN_F64 ? GN_F64 : GN_F32;
        y = gni_apply(g, "gn_complex", GNI_OP_COMPLEX, t, gni_complex_of(t), in, NULL, 2);
        if (y != NULL && gni_tracks(g, in, 2))
            gni_record(g, y, "gn_complex", gni_back_complex, in, 2);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_conj(gn_array *a) {
    gn_context *g = gni_begin_scope("gn_conj", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = gni_is_complex(a->dtype) ? gn_complex(gni_re(a), gn_neg(gni_im(a)))
                                           : gn_reshape(a, a->shape);
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_angle(gn_array *a) {
    gn_context *g = gni_begin_scope("gn_angle", &a, 1);
    if (g == NULL) return NULL;
    if (gni_tracks(g, &a, 1)) a = gn_where(gn_eq_s(a, 0.0), gn_detach(a), a); // the derivative at 0 is 0
    return gni_end_scope(g, gn_atan2(gni_im(a), gni_re(a)));
}

// ---- sums, products, quotients: of arrays of which one or both may be complex

// Long work reads its operands many times: what is pending is computed first. Short work takes it in.
static void gni_computed(gn_array *a) {
    if (a != NULL) gni_materialize(a->ctx, a);
}

// Arrays that longer work needs, in one program.
static void gni_all_computed(gn_array **a, int count) {
    bool all = true;
    for (int i = 0; i < count; i++) all = all && a[i] != NULL;
    gn_eval_all(a, all ? count : 0);
}

static bool gni_has_complex(gn_array *a) { return a != NULL && gni_is_complex(a->dtype); }

static gn_array *gni_complex_add(gn_array *a, gn_array *b) {
    return gn_complex(gn_add(gni_re(a), gni_re(b)), gn_add(gni_im(a), gni_im(b)));
}

static gn_array *gni_complex_sub(gn_array *a, gn_array *b) {
    return gn_complex(gn_sub(gni_re(a), gni_re(b)), gn_sub(gni_im(a), gni_im(b)));
}

// A product that is linear in each of its operands. A real one has no imaginary part that could be NaN.
static gn_array *gni_complex_product(gni_binary_fn f, gn_array *a, gn_array *b) {
    gn_array *ar = gni_re(a), *br = gni_re(b);
    if (!gni_has_complex(a)) return gn_complex(f(ar, br), f(ar, gni_im(b)));
    if (!gni_has_complex(b)) return gn_complex(f(ar, br), f(gni_im(a), br));
    gn_array *ai = gni_im(a), *bi = gni_im(b);
    return gn_complex(gn_sub(f(ar, br), f(ai, bi)), gn_add(f(ar, bi), f(ai, br)));
}

static gn_array *gni_complex_mul(gn_array *a, gn_array *b) {
    return gni_complex_product(gn_mul, a, b);
}

// gn_abs of real numbers, without what gn_abs needs for complex ones.
static gn_array *gni_real_abs(gn_array *a) { return gni_unary("gn_abs", GNI_OP_ABS, a); }

// Smith's quotient, which divides by the larger part of b first, so that no square of a part overflows. A divisor
// of 0 divides both parts.
static gn_array *gni_complex_div(gn_array *a, gn_array *b) {
    if (gni_has_complex(b)) gni_computed(a), gni_computed(b);
    gn_array *ar = gni_re(a), *ai = gni_im(a), *br = gni_re(b), *bi = gni_im(b);
    if (!gni_has_complex(b)) return gn_complex(gn_div(ar, br), gn_div(ai, br));
    if (gn_dtype_of(ar) == GN_F64 && gn_dtype_of(br) != GN_F64) { // the ratio needs it too
        br = gn_cast(br, GN_F64);
        bi = gn_cast(bi, GN_F64);
    }
    gn_array *real = gn_ge(gni_real_abs(br), gni_real_abs(bi)); // the larger part of b
    gn_array *most = gn_where(real, br, bi), *least = gn_where(real, bi, br);
    gn_array *p = gn_where(real, ar, ai), *q = gn_where(real, ai, ar);
    gn_array *ratio = gn_where(gn_eq_s(most, 0.0), gn_zeros_like(most), gn_div(least, most));
    gn_array *scale = gn_fma(least, ratio, most), *im = gn_fma(p, gn_neg(ratio), q);
    return gn_complex(gn_div(gn_fma(q, ratio, p), scale),
                      gn_div(gn_where(real, im, gn_neg(im)), scale));
}

static gn_array *gni_complex_log(gn_context *g, gn_array *a);
static gn_array *gni_complex_exp(gn_context *g, gn_array *a);

static gn_array *gni_nonzero(gn_array *a) { return gni_has_complex(a) ? gn_ne_s(a, 0.0) : a; }

// exp(b log a). 0 to a power is 1 for 0, 0 for a real part above 0, and else NaN in both parts.
static gn_array *gni_complex_pow(gn_context *g, gn_array *a, gn_array *b) {
    const gn_dtype t = gn_promote(gn_dtype_of(a), gn_dtype_of(b));
    gn_array *base = gn_cast(a, t), *zero = gn_eq_s(base, 0.0), *none = gn_eq_s(b, 0.0);
    gn_array *size = gn_mul(gni_complex_log(g, gn_where(zero, gn_ones_like(gni_re(base)), base)), b);
    gn_array *y = gni_complex_exp(g, size), *part = gni_re(y);
    gn_array *end = gn_where(none, gn_ones_like(part),
                             gn_where(gn_gt_s(gni_re(b), 0.0), gn_zeros_like(part), gn_full_like(part, GNI_NAN)));
    return gn_where(gn_logical_or(zero, none), gn_complex(end, gn_mul_s(end, 0.0)), y);
}

static gn_array *gni_complex_binary(gn_context *g, const char *fn, gni_op op, gn_array *a,
                                    gn_array *b) {
    switch (op) {
    case GNI_OP_POW: return gni_math_get(g)->power(g, a, b);
    case GNI_OP_LOGICAL_AND: return gn_logical_and(gni_nonzero(a), gni_nonzero(b));
    case GNI_OP_LOGICAL_OR: return gn_logical_or(gni_nonzero(a), gni_nonzero(b));
    case GNI_OP_LOGICAL_XOR: return gn_logical_xor(gni_nonzero(a), gni_nonzero(b));
    case GNI_OP_ADD: return gni_complex_add(a, b);
    case GNI_OP_SUB: return gni_complex_sub(a, b);
    case GNI_OP_MUL: return gni_complex_mul(a, b);
    case GNI_OP_DIV: return gni_complex_div(a, b);
    case GNI_OP_EQ:
        return gn_logical_and(gn_eq(gni_re(a), gni_re(b)), gn_eq(gni_im(a), gni_im(b)));
    case GNI_OP_NE:
        return gn_logical_or(gn_ne(gni_re(a), gni_re(b)), gn_ne(gni_im(a), gni_im(b)));
    default: gni_fail(g, GN_ERROR_DTYPE, "%s: complex numbers are not supported here", fn);
    }
    return NULL;
}

// With a real number, which is the first operand where `first` says so.
static gn_array *gni_complex_binary_s(gn_context *g, const char *fn, gni_op op, gn_array *a,
                                      double s, bool first) {
    gn_array *re = gni_re(a), *im = gni_im(a);
    switch (op) {
    case GNI_OP_ADD: return gn_complex(gn_add_s(re, s), im);
    case GNI_OP_SUB:
        return first ? gn_complex(gn_rsub_s(re, s), gn_neg(im)) : gn_complex(gn_sub_s(re, s), im);
    case GNI_OP_MUL: return gn_complex(gn_mul_s(re, s), gn_mul_s(im, s));
    case GNI_OP_DIV:
        return first ? gni_complex_div(gn_scalar(g, gni_part_of(a->dtype), s), a)
                     : gn_complex(gn_div_s(re, s), gn_div_s(im, s));
    case GNI_OP_POW:
        if (!first && s == 2.0) return gni_complex_mul(a, a);
        re = gn_scalar(g, gni_part_of(a->dtype), s);
        return first ? gni_math_get(g)->power(g, re, a) : gni_math_get(g)->power(g, a, re);
    case GNI_OP_EQ: return gn_logical_and(gn_eq_s(re, s), gn_eq_s(im, 0.0));
    case GNI_OP_NE: return gn_logical_or(gn_ne_s(re, s), gn_ne_s(im, 0.0));
    case GNI_OP_LOGICAL_AND: return gn_logical_and_s(gni_nonzero(a), s);
    case GNI_OP_LOGICAL_OR: return gn_logical_or_s(gni_nonzero(a), s);
    case GNI_OP_LOGICAL_XOR: return gn_logical_xor_s(gni_nonzero(a), s);
    default: gni_fail(g, GN_ERROR_DTYPE, "%s: complex numbers are not supported here", fn);
    }
    return NULL;
}

// ---- functions of one complex number

// The magnitude. Its gradient at 0 is 0, as in PyTorch.
static gn_array *gni_complex_abs(gn_context *g, gn_array *a) {
    gn_array *re = gni_re(a), *im = gni_im(a);
    if (!gni_tracks(g, &a, 1)) return gn_hypot(re, im);
    gn_array *none = gn_logical_and(gn_eq_s(re, 0.0), gn_eq_s(im, 0.0));
    return gn_where(none, gn_zeros_like(re), gn_hypot(gn_where(none, gn_ones_like(re), re), im));
}

static bool gni_back_complex_exp(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_mul(gy, gn_conj(node->output));
    return true;
}

// How far exp, sinh and cosh are finite for sure. Beyond, exp(x) cos(y) may be finite where exp(x) alone is not.
static double gni_exp_most(gn_array *x) { return gn_dtype_of(x) == GN_F64 ? 700.0 : 80.0; }

// exp(x) or expm1(x), beyond that of half of x: then it is a factor a second time, *again, which is 1 elsewhere.
static gn_array *gni_exp_halved(gn_array *x, gn_array *(*fn)(gn_array *), gn_array **again) {
    gn_array *beyond = gn_gt_s(x, gni_exp_most(x)), *size = fn(gn_where(beyond, gn_mul_s(x, 0.5), x));
    *again = gn_where(beyond, size, gn_ones_like(x));
    return size;
}

// exp(x) cos(y) and exp(x) sin(y). Infinities and NaN are as in C99's Annex G: an imaginary part of 0 stays, -inf gives 0 and
// inf an infinite real part whatever the angle. As long as a program may be.
static gn_array *gni_complex_exp(gn_context *g, gn_array *a) {
    gni_computed(a);
    g->no_grad++; // recorded as one op
    gn_array *x = gni_re(a), *y = gni_im(a), *any = gn_logical_or(gn_isfinite(x), gn_isfinite(y)), *again;
    gn_array *size = gni_exp_halved(x, gn_exp, &again);
    gn_array *re = gn_mul(gn_mul(size, gn_where(any, gn_cos(y), gn_ones_like(x))), again);
    gn_array *im = gn_where(any, gn_mul(gn_mul(size, gn_sin(y)), again), gn_sub(re, re));
    gn_array *z = gn_complex(re, gn_where(gn_eq_s(y, 0.0), y, im));
    g->no_grad--;
    gni_record(g, z, "gn_exp", gni_back_complex_exp, &a, 1);
    return z;
}

// A power of two by which parts are multiplied without overflow of the magnitude: 1, or 1/16 where it is large.
static gn_array *gni_complex_scale(gn_array *x, gn_array *y) {
    const double large = ldexp(1.0, gn_dtype_of(x) == GN_F64 ? 1020 : 124);
    gn_array *big = gn_logical_or(gn_gt_s(gn_abs(x), large), gn_gt_s(gn_abs(y), large));
    return gn_where(big, gn_full_like(x, 0.0625), gn_ones_like(x));
}

static bool gni_back_complex_sqrt(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_conj(gn_div(gn_mul_s(gn_conj(gy), 0.5), node->output));
    return true;
}

// The root of half of |x| and the magnitude of x + iy.
static gn_array *gni_root_size(gn_array *x, gn_array *y) {
    if (gn_dtype_of(x) == GN_F32) return gni_binary("gn_sqrt", GNI_OP_ROOT_SIZE, x, y);
    return gn_sqrt(gn_mul_s(gn_add(gn_hypot(x, y), gn_abs(x)), 0.5));
}

// The root with a real part of 0 or more: t and y / 2t with t the root of half of |x| and the magnitude, which
// loses no digits, or the other way round left of the imaginary axis.
static gn_array *gni_complex_sqrt(gn_context *g, gn_array *a) {
    g->no_grad++; // recorded as one op
    gn_array *x = gni_re(a), *y = gni_im(a), *scale = NULL;
    if (gn_dtype_of(x) == GN_F64) {
        scale = gni_complex_scale(x, y);
        x = gn_mul(x, scale), y = gn_mul(y, scale);
    }
    gn_array *t = gni_root_size(x, y), *left = gn_lt_s(x, 0.0), *up = gn_isinf(y), *none = gn_eq_s(t, 0.0);
    gn_array *u = gn_mul_s(gn_div(y, gn_where(none, gn_ones_like(t), t)), 0.5);
    gn_array *below = gn_lt_s(gn_rdiv_s(y, 1.0), 0.0); // knows -0 left of the imaginary axis
    gn_array *re = gn_where(left, gn_where(below, gn_neg(u), u), t);
    gn_array *im = gn_where(left, gn_where(below, gn_neg(t), t), u);
    if (scale != NULL) {
        scale = gn_rsqrt(scale); // 1 or 4
        re = gn_mul(re, scale), im = gn_mul(im, scale);
    }
    gn_array *z = gn_complex(gn_where(up, gn_abs(y), re), gn_where(up, y, im));
    g->no_grad--;
    gni_record(g, z, "gn_sqrt", gni_back_complex_sqrt, &a, 1);
    return z;
}

static bool gni_back_complex_log(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_div(gy, gn_conj(node->in[0]));
    return true;
}

static gn_array *gni_complex_log(gn_context *g, gn_array *a) {
    g->no_grad++; // recorded as one op
    gn_array *re = gni_re(a), *im = gni_im(a);
    gn_array *z = gn_complex(gni_binary("gn_log", GNI_OP_LOG_SIZE, re, im), gn_atan2(im, re));
    g->no_grad--;
    gni_record(g, z, "gn_log", gni_back_complex_log, &a, 1);
    return z;
}

// What is 0 or more or NaN, with the sign of x. gn_copysign would read the sign of `a` from memory.
static gn_array *gni_signed_by(gn_array *a, gn_array *x) { return gn_where(gn_signbit(x), gn_neg(a), a); }

// a / i.
static gn_array *gni_turned_back(gn_array *a) { return gn_complex(gni_im(a), gn_neg(gni_re(a))); }

static bool gni_back_complex_sinh(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_mul(gy, gn_conj(node->param[0] == GNI_OP_SINH ? gn_cosh(node->in[0]) : gn_sinh(node->in[0])));
    return true;
}

static gn_array *gni_grown(gn_array *size, gn_array *turn, gn_array *rest) {
    return gn_mul(gn_mul(gn_mul(size, turn), rest), rest);
}

// sinh or cosh, a program for each part, of x within gni_exp_most(); exp of half of what x is beyond is a factor twice, which
// is finite, so that an angle of 0 stays a factor of 0. Where y is no angle sinh has a real part of 0 if x is 0, both have an
// infinite one if x is infinite.
static gn_array *gni_complex_sinh(gn_context *g, const char *fn, gni_op op, gn_array *a) {
    g->no_grad++; // recorded as one op
    const bool odd = op == GNI_OP_SINH;
    gn_array *x = gni_re(a), *y = gni_im(a), *size = gni_real_abs(x), *re, *im, *flat = gn_eq_s(y, 0.0);
    const double most = gni_exp_most(x);
    gn_array *rest = gn_exp(gn_mul_s(gn_clamp(gn_add_s(size, -most), 0.0, 2.0 * most), 0.5)), *in = gn_clamp(x, -most, most);
    re = gni_grown(odd ? gn_sinh(in) : gn_cosh(in), gn_cos(y), rest);
    gn_array *ends = gn_logical_and(odd ? gn_eq(x, gn_add(x, x)) : gn_isinf(x), gn_logical_not(gn_isfinite(y)));
    re = gn_where(ends, odd ? x : size, re);
    gni_computed(re);
    im = gni_grown(odd ? gn_cosh(in) : gn_sinh(in), gn_sin(y), rest);
    if (!odd) flat = gn_logical_and(gn_logical_or(flat, gn_eq_s(x, 0.0)), gn_isnan(im));
    gn_array *z = gn_complex(re, gn_where(flat, odd ? y : gn_zeros_like(y), im));
    g->no_grad--;
    gni_note(gni_record(g, z, fn, gni_back_complex_sinh, &a, 1), op, 0, 0);
    return z;
}

static bool gni_back_complex_tanh(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_mul(gy, gn_conj(gn_rsub_s(gn_square(node->output), 1.0)));
    return true;
}

// With t = tanh x and 1 - t^2 = 1 / cosh^2 x it is (t + i sin y cos y / cosh^2 x) / (t^2 + cos^2 y / cosh^2 x), a sum
// of terms of 0 or more, without overflow. Short enough for one program.
static gn_array *gni_complex_tanh(gn_context *g, gn_array *a) {
    g->no_grad++; // recorded as one op
    gn_array *x = gni_re(a), *y = gni_im(a), *t = gn_tanh(x), *size = gn_cosh(x);
    gn_array *any = gn_logical_or(gn_isfinite(x), gn_isfinite(y)); // infinite x: whatever y is
    gn_array *turn = gn_where(any, y, gn_zeros_like(y));
    gn_array *once = gn_rdiv_s(size, 1.0), *c = gn_mul(gn_cos(turn), once), *s = gn_mul(gn_sin(turn), once);
    gn_array *d = gn_rdiv_s(gn_fma(c, c, gn_square(t)), 1.0); // cosines are never so small that it is infinite
    gn_array *re = gn_where(gn_eq_s(x, 0.0), x, gn_mul(t, d)), *im = gn_where(gn_eq_s(y, 0.0), y, gn_mul(gn_mul(c, s), d));
    gn_array *z = gn_complex(re, im);
    g->no_grad--;
    gni_record(g, z, "gn_tanh", gni_back_complex_tanh, &a, 1);
    return z;
}

static bool gni_back_complex_expm1(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_mul(gy, gn_conj(gn_exp(node->in[0])));
    return true;
}

// exp(x) (cos(y) + i sin(y)) - 1, whose real part is expm1(x) cos(y) + cos(y) - 1. A program for each part.
static gn_array *gni_complex_expm1(gn_context *g, gn_array *a) {
    g->no_grad++; // recorded as one op
    gn_array *x = gni_re(a), *y = gni_im(a), *re, *im, *none = gn_eq_s(x, -GNI_INF);
    gn_array *again, *size = gni_exp_halved(x, gn_expm1, &again), *half = gn_sin(gn_mul_s(y, 0.5));
    re = gn_sub(gn_mul(gn_mul(size, gn_cos(y)), again), gn_mul_s(gn_square(half), 2.0));
    gn_array *ends = gn_logical_and(gn_eq_s(x, GNI_INF), gn_logical_not(gn_isfinite(y)));
    re = gn_where(none, gn_full_like(x, -1.0), gn_where(ends, x, re));
    gni_computed(re);
    size = gni_exp_halved(x, gn_exp, &again);
    im = gn_mul(gn_mul(size, gn_sin(y)), again);
    im = gn_where(gn_logical_and(none, gn_isnan(im)), gn_zeros_like(y), im);
    gn_array *z = gn_complex(re, gn_where(gn_eq_s(y, 0.0), y, im));
    g->no_grad--;
    gni_record(g, z, "gn_expm1", gni_back_complex_expm1, &a, 1);
    return z;
}

// Of small numbers half of log1p of what the square of |1 + a| is beyond 1.
static gn_array *gni_complex_log1p(gn_context *g, gn_array *a) {
    gn_array *x = gni_re(a), *y = gni_im(a), *one = gn_add_s(x, 1.0), *z = gni_complex_log(g, gn_complex(one, y));
    gn_array *close = gn_lt_s(gn_maximum(gn_abs(x), gn_abs(y)), 0.25), *none = gn_zeros_like(x);
    gn_array *u = gn_where(close, x, none), *v = gn_where(close, y, none);
    gn_array *re = gn_mul_s(gn_log1p(gn_add(gn_mul(u, gn_add_s(u, 2.0)), gn_square(v))), 0.5);
    return gn_complex(gn_where(close, re, gni_re(z)), gni_im(z));
}

static bool gni_back_complex_arc(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *a = node->in[0], *less = gn_rsub_s(a, 1.0), *more = gn_add_s(a, 1.0), *slope;
    if (node->param[0] == GNI_OP_ATANH)
        slope = gn_mul(less, more);
    else
        slope = gn_mul(gni_complex_sqrt(g, less), gni_complex_sqrt(g, more));
    gx[0] = gn_div(node->param[0] == GNI_OP_ACOS ? gn_neg(gy) : gy, gn_conj(slope));
    return true;
}

// Parts of one of gn_asin, gn_acos, gn_atanh, recorded as one op.
static gn_array *gni_complex_arc_end(gn_context *g, const char *fn, gni_op op, gn_array *a, gn_array *re, gn_array *im) {
    gn_array *z = gn_complex(re, im);
    g->no_grad--;
    gni_note(gni_record(g, z, fn, gni_back_complex_arc, &a, 1), op, 0, 0);
    return z;
}

// Kahan's arc sine and arc cosine (1987) in the quadrant x, y >= 0: with p + iq the root of 1 + z and u - iv that of 1 - z,
// the angles of pu + qv + ix and 2 of p + iu, and asinh(uq + vp) for the other part. No sum there loses digits, as all
// terms are 0 or more. Far out, where some of these are no numbers, asinh(|z| / 2) + log 2 and the angle of z.
static gn_array *gni_complex_asin(gn_context *g, const char *fn, gni_op op, gn_array *a) {
    gni_computed(a);
    g->no_grad++;
    const bool wide = gn_dtype_of(a) == GN_C128;
    const double most = wide ? 1e12 : 1e6;
    gn_array *re = gni_re(a), *im = gni_im(a), *x = gn_abs(re), *y = gn_abs(im);
    gn_array *more = gn_add_s(x, 1.0), *less = gn_rsub_s(x, 1.0);
    gn_array *p = gni_root_size(more, y), *q = gn_mul_s(gn_div(y, p), 0.5), *t = gni_root_size(less, y);
    gn_array *s = gn_mul_s(gn_div(y, gn_maximum_s(t, wide ? 1e-300 : 1e-30)), 0.5); // where t is 0, y is as well
    gn_array *inside = gn_ge_s(less, 0.0), *u = gn_where(inside, t, s), *v = gn_where(inside, s, t);
    gn_array *size = gn_fma(u, q, gn_mul(v, p)), *angle, *both[2];
    if (op == GNI_OP_ASIN) {
        angle = gn_fma(p, u, gn_mul(q, v));
    } else {
        gn_array *left = gn_lt_s(re, 0.0);
        angle = gn_mul_s(gn_atan2(gn_where(left, p, u), gn_where(left, u, p)), 2.0);
    }
    both[0] = size, both[1] = angle;
    gni_all_computed(both, 2);
    gn_array *large = gn_hypot(gn_mul_s(x, 0.5), gn_mul_s(y, 0.5)), *beyond = gn_gt_s(large, most), *none = gn_zeros_like(x);
    size = gn_add(gn_asinh(gn_where(beyond, large, size)), gn_where(beyond, gn_full_like(x, GNI_LN2), none));
    size = gni_signed_by(size, im);
    if (op == GNI_OP_ASIN) {
        angle = gni_signed_by(gn_atan2(x, gn_where(beyond, y, angle)), re);
        return gni_complex_arc_end(g, fn, op, a, gn_where(gn_eq_s(re, 0.0), re, angle), size);
    }
    angle = gn_where(beyond, gn_atan2(y, re), angle);
    return gni_complex_arc_end(g, fn, op, a, gn_where(gn_eq_s(re, 0.0), gn_full_like(re, GNI_PI_2), angle), gn_neg(size));
}

// log|(1 + z) / (1 - z)| / 2, of a sum where that is small, and half of the angle of (1 + z) conj(1 - z).
static gn_array *gni_complex_atanh(gn_context *g, const char *fn, gn_array *a) {
    gni_computed(a);
    g->no_grad++;
    gn_array *re = gni_re(a), *im = gni_im(a), *x = gn_abs(re), *y = gn_abs(im), *more = gn_add_s(x, 1.0),
             *less = gn_rsub_s(x, 1.0);
    const double most = gn_dtype_of(re) == GN_F64 ? 1e20 : 1e12;
    gn_array *d = gn_hypot(less, y), *sum = gn_mul_s(gn_log1p(gn_mul_s(gn_div(gn_div(x, d), d), 4.0)), 0.25);
    gn_array *size = gn_where(gn_lt_s(d, 0.5), gn_mul_s(gn_sub(gn_log(gn_hypot(more, y)), gn_log(d)), 0.5), sum);
    gn_array *none = gn_logical_or(gn_eq_s(x, 0.0), gn_logical_or(gn_isinf(x), gn_isinf(y)));
    size = gn_where(none, gn_zeros_like(x), size);
    gni_computed(size); // two programs
    gn_array *angle = gn_mul_s(gn_atan2(gn_mul_s(y, 2.0), gn_fma(less, more, gn_neg(gn_square(y)))), 0.5);
    gn_array *beyond = gn_logical_or(gn_gt_s(gn_maximum(x, y), most), gn_isinf(y)); // not where x or y is NaN, but for that
    angle = gn_where(beyond, gn_full_like(x, GNI_PI_2), angle);
    return gni_complex_arc_end(g, fn, GNI_OP_ATANH, a, gni_signed_by(size, re), gni_signed_by(angle, im));
}

// i acos(a) above the real axis and -i acos(a) below it.
static gn_array *gni_complex_acosh(gn_context *g, const char *fn, gn_array *a) {
    gn_array *z = gni_complex_asin(g, fn, GNI_OP_ACOS, a), *down = gn_signbit(gni_im(a)), *re = gni_re(z), *im = gni_im(z);
    return gn_complex(gn_where(down, im, gn_neg(im)), gn_where(down, gn_neg(re), re));
}

// The others of unary ones: whatever takes a function of real numbers.
static gn_array *gni_complex_math(gn_context *g, const char *fn, gni_op op, gn_array *a) {
    gn_array *re, *im, *size;
    if (op != GNI_OP_ABS && op != GNI_OP_SIGN) gni_computed(a);
    re = gni_re(a), im = gni_im(a);
    switch (op) {
    case GNI_OP_ASIN:
    case GNI_OP_ACOS: return gni_complex_asin(g, fn, op, a);
    case GNI_OP_ATANH: return gni_complex_atanh(g, fn, a);
    case GNI_OP_ACOSH: return gni_complex_acosh(g, fn, a);
    case GNI_OP_ASINH: return gni_turned_back(gni_complex_asin(g, fn, GNI_OP_ASIN, gn_complex(gn_neg(im), re)));
    case GNI_OP_ATAN: return gni_turned_back(gni_complex_atanh(g, fn, gn_complex(gn_neg(im), re)));
    case GNI_OP_SIGN: // a over its magnitude; what is infinite in one part only goes along the axes
        size = gni_complex_scale(re, im);
        a = gn_complex(gn_mul(re, size), gn_mul(im, size)), size = gni_complex_abs(g, a);
        return gn_where(gn_eq_s(size, 0.0), gn_zeros_like(size),
                        gn_div(a, gn_where(gn_eq_s(size, 0.0), gn_ones_like(size), size)));
    case GNI_OP_SINH:
    case GNI_OP_COSH: return gni_complex_sinh(g, fn, op, a);
    case GNI_OP_TANH: return gni_complex_tanh(g, a);
    case GNI_OP_SIN: return gni_turned_back(gni_complex_sinh(g, fn, GNI_OP_SINH, gn_complex(gn_neg(im), re)));
    case GNI_OP_COS: return gni_complex_sinh(g, fn, GNI_OP_COSH, gn_complex(gn_neg(im), re));
    case GNI_OP_TAN: return gni_turned_back(gni_complex_tanh(g, gn_complex(gn_neg(im), re)));
    case GNI_OP_EXPM1: return gni_complex_expm1(g, a);
    case GNI_OP_LOG1P: return gni_complex_log1p(g, a);
    case GNI_OP_LOG2: return gn_mul_s(gni_complex_log(g, a), 1.0 / GNI_LN2);
    case GNI_OP_LOG10: return gn_mul_s(gni_complex_log(g, a), 1.0 / GNI_LN10);
    case GNI_OP_ABS: return gni_complex_abs(g, a);
    case GNI_OP_RECIP: return gni_complex_div(gn_scalar(g, gni_part_of(a->dtype), 1.0), a);
    case GNI_OP_EXP: return gni_complex_exp(g, a);
    case GNI_OP_LOG: return gni_complex_log(g, a);
    case GNI_OP_SQRT: return gni_complex_sqrt(g, a);
    default: gni_fail(g, GN_ERROR_DTYPE, "%s: complex numbers are not supported here", fn);
    }
    return NULL;
}
static gn_array *gni_complex_unary(gn_context *g, const char *fn, gni_op op, gn_array *a) {
    const gni_math *math = gni_math_get(g);
    switch (op) {
    case GNI_OP_ROUND: return gn_complex(gn_round(gni_re(a)), gn_round(gni_im(a)));
    case GNI_OP_NEG: return gn_complex(gn_neg(gni_re(a)), gn_neg(gni_im(a)));
    case GNI_OP_SQUARE: return gni_complex_mul(a, a);
    case GNI_OP_ISNAN: return gn_logical_or(gn_isnan(gni_re(a)), gn_isnan(gni_im(a)));
    case GNI_OP_ISINF: return gn_logical_or(gn_isinf(gni_re(a)), gn_isinf(gni_im(a)));
    case GNI_OP_ISFINITE: return gn_logical_and(gn_isfinite(gni_re(a)), gn_isfinite(gni_im(a)));
    case GNI_OP_LOGICAL_NOT: return gn_logical_and(gn_eq_s(gni_re(a), 0.0), gn_eq_s(gni_im(a), 0.0));
    default:
        if (math != NULL) return math->complex(g, fn, op, a);
        gni_fail(g, GN_ERROR_DTYPE, "%s: complex numbers are not supported here", fn);
    }
    return NULL;
}

static gn_array *gni_complex_where(gn_array *condition, gn_array *a, gn_array *b) {
    return gn_complex(gn_where(condition, gni_re(a), gni_re(b)),
                      gn_where(condition, gni_im(a), gni_im(b)));
}

// Between complex dtypes, and from real ones. To real ones there is none: which part is meant?
static gn_array *gni_complex_cast(gn_context *g, gn_array *a, gn_dtype t) {
    if (!gni_is_complex(t)) {
        gni_fail(g, GN_ERROR_DTYPE, "gn_cast: %s to %s: take gn_real, gn_imag or gn_abs of it",
                 gn_dtype_name(a->dtype), gn_dtype_name(t));
        return NULL;
    }
    gn_dtype part = gni_part_of(t);
    return gn_complex(gn_cast(gni_re(a), part), gn_cast(gni_im(a), part));
}
