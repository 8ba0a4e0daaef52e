// >>elementwise
// The public elementwise functions, from the op tables: dtype rules, recording, one expression each.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/views.h"
#include "../core/evaluate.h"
#include "../cpu/cpu_special.h"
#include "../cpu/cpu_wide.h"
#endif

static bool gni_real_only(gn_context *g, const char *fn, gn_array *const *in, int n) {
    for (int i = 0; i < n; i++) {
        if (!gni_is_complex(in[i]->dtype)) continue;
        return gni_fail(g, GN_ERROR_DTYPE, "%s: %s is not supported here", fn, gn_dtype_name(in[i]->dtype));
    }
    return true;
}

// Records an elementwise op; `which` operand (1 or 2) was the constant, 0 for none.
static void gni_record_op(gn_context *g, gn_array *y, const char *fn, gni_op op,
                          gn_array *const *in, int n, int which, double konst) {
    if (y == NULL || !gni_tracks(g, in, n)) return;
    gni_node *node = gni_record(g, y, fn, gni_back_elementwise, in, n);
    if (node == NULL) return;
    node->param[0] = (int64_t)op;
    node->param[1] = which;
    node->real[0] = konst;
}

// Derivatives of shorter floats where a GPU has float64: its kernels have them in that. In the caller's scope.
static gn_array *gni_rare_by_doubles(gn_context *g, const char *fn, gni_op op, gn_array *a, gn_dtype t) {
    g->no_grad++;
    gn_array *wide = gn_cast(a, GN_F64), *y = NULL;
    if (wide != NULL) y = gn_cast(gni_adopt(g, gni_apply(g, fn, op, GN_F64, GN_F64, &wide, NULL, 1)), t);
    g->no_grad--;
    gni_record_op(g, y, fn, op, &a, 1, 0, 0.0);
    return y;
}

static gn_array *gni_unary(const char *fn, gni_op op, gn_array *a) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    if (gni_is_complex(a->dtype)) {
        gn_scope_begin(g);
        return gni_end_scope(g, gni_complex_unary(g, fn, op, a));
    }
    gn_array *y = NULL;
    gn_dtype t = a->dtype;
    // Ranges of ops are in the order of the op table.
    if ((op <= GNI_OP_SOFTPLUS || op >= GNI_OP_ERFC) && !gni_is_float(t)) t = GN_F32;
    if (op >= GNI_OP_TRIGAMMA && t != GN_F64 && g->gpu != NULL && g->gpu->caps.float64 && g->gpu->caps.int64) {
        gn_scope_begin(g);
        return gni_end_scope(g, gni_rare_by_doubles(g, fn, op, a, t));
    }
    bool truth = op >= GNI_OP_ISNAN && op <= GNI_OP_LOGICAL_NOT;
    if (a->dtype == GN_BOOL && op == GNI_OP_NEG)
        gni_fail(g, GN_ERROR_DTYPE, "%s: bool has no negative; use gn_logical_not", fn);
    else if (truth && op <= GNI_OP_ISFINITE && !gni_is_float(t)) // integers are not looked at
        y = gni_const(g, fn, GN_BOOL, &a->shape, op == GNI_OP_ISFINITE);
    else
        y = gni_apply(g, fn, op, t, truth ? GN_BOOL : t, &a, NULL, 1);
    if (!truth) gni_record_op(g, y, fn, op, &a, 1, 0, 0.0);
    return gni_end(g, y);
}

// The dtype a binary op computes in, from the promoted one.
static gn_dtype gni_binary_dtype(gni_op op, gn_dtype t) {
    if (op >= GNI_OP_DIV && op <= GNI_OP_HYPOT && !gni_is_float(t)) return GN_F32;
    if (t == GN_BOOL && (op == GNI_OP_FLOOR_DIV || op == GNI_OP_MOD || op == GNI_OP_POW))
        return GN_I8;
    if (t == GN_BOOL && (op == GNI_OP_SHL || op == GNI_OP_SHR)) return GN_I8;
    return t;
}

static bool gni_binary_ok(gn_context *g, const char *fn, gni_op op, gn_dtype t) {
    if (op == GNI_OP_SUB && t == GN_BOOL)
        return gni_fail(g, GN_ERROR_DTYPE, "%s: bool minus bool is not defined; use gn_xor or gn_logical_xor", fn);
    if (op >= GNI_OP_AND && op <= GNI_OP_SHR && gni_is_float(t))
        return gni_fail(g, GN_ERROR_DTYPE, "%s: %s is not an integer or bool", fn, gn_dtype_name(t));
    return true;
}

// In which two are compared: there are integers that floats of 16 bits do not hold.
static gn_dtype gni_compared(gn_dtype a, gn_dtype b) {
    const gn_dtype t = gn_promote(a, b);
    return a != b && gni_is_float(t) && gn_dtype_size(t) == 2 ? GN_F32 : t;
}

static bool gni_is_compare(gni_op op) { return op >= GNI_OP_EQ && op <= GNI_OP_LOGICAL_XOR; }

static gn_array *gni_binary(const char *fn, gni_op op, gn_array *a, gn_array *b);

// uint64 and a signed dtype have no common integer dtype, but an order: that of uint64, with what is below 0 below all.
static bool gni_signs_differ(gni_op op, gn_dtype a, gn_dtype b) {
    if (op < GNI_OP_EQ || op > GNI_OP_GE || (a != GN_U64 && b != GN_U64)) return false;
    return gni_is_integer(a) && gni_is_integer(b) && gni_is_unsigned(a) != gni_is_unsigned(b);
}
static gn_array *gni_compare_signs(const char *fn, gni_op op, gn_array *a, gn_array *b) {
    const bool swap = a->dtype == GN_U64, up = op == GNI_OP_GT || op == GNI_OP_GE, equal = op <= GNI_OP_NE;
    gn_array *below = gn_lt_s(swap ? b : a, 0.0), *y = gni_binary(fn, op, gn_cast(a, GN_U64), gn_cast(b, GN_U64));
    if (equal ? op == GNI_OP_NE : up == swap) return gn_logical_or(y, below);
    return gn_logical_and(y, gn_logical_not(below));
}

static gn_array *gni_binary(const char *fn, gni_op op, gn_array *a, gn_array *b) {
    gn_array *in[2] = {a, b};
    gn_context *g = gni_begin(fn, in, 2);
    if (g == NULL) return NULL;
    if (gni_is_complex(a->dtype) || gni_is_complex(b->dtype)) {
        gn_scope_begin(g);
        return gni_end_scope(g, gni_complex_binary(g, fn, op, a, b));
    }
    gn_array *y = NULL;
    if (gni_signs_differ(op, a->dtype, b->dtype)) {
        gn_scope_begin(g);
        return gni_end_scope(g, gni_compare_signs(fn, op, a, b));
    }
    const bool order = op >= GNI_OP_EQ && op <= GNI_OP_GE;
    gn_dtype t = gni_binary_dtype(op, (order ? gni_compared : gn_promote)(a->dtype, b->dtype));
    const gni_op truth = op == GNI_OP_ADD ? GNI_OP_LOGICAL_OR : op == GNI_OP_MUL ? GNI_OP_LOGICAL_AND : op; // of bool
    if (gni_binary_ok(g, fn, op, t))
        y = gni_apply(g, fn, t == GN_BOOL ? truth : op, t, gni_is_compare(op) ? GN_BOOL : t, in, NULL, 2);
    if (!gni_is_compare(op)) gni_record_op(g, y, fn, op, in, 2, 0, 0.0);
    return gni_end(g, y);
}

// A scalar keeps the array's dtype, unless that is an integer and the scalar is not.
static gn_dtype gni_scalar_dtype(gni_op op, gn_dtype t, double s) {
    bool bound = fabs(s) == GNI_INF && (op == GNI_OP_MIN || op == GNI_OP_MAX);
    if (gni_is_float(t)) return t;
    if (!bound && (s != floor(s) || s - s != 0.0)) return GN_F32;
    return t == GN_BOOL && s != 0.0 && s != 1.0 ? GN_I32 : t;
}

// A scalar that an integer dtype cannot hold: comparisons see its true value, minimum and maximum the
// nearest one there is if that leaves the array as it is.
static bool gni_scalar_fit(gn_context *g, const char *fn, gni_op op, gn_dtype *t, double *s) {
    double low, high;
    if (gni_holds(*t, *s)) return true;
    if (op >= GNI_OP_EQ && op <= GNI_OP_GE) {
        bool beyond = *t == GN_U64 || !gni_holds(GN_I64, *s); // which float64 would take for INT64_MAX
        if (beyond) *s = copysign(GNI_INF, *s);
        *t = beyond ? GN_F64 : GN_I64;
        return true;
    }
    if (op >= GNI_OP_LOGICAL_AND && op <= GNI_OP_LOGICAL_XOR) { // not 0
        *s = 1.0;
        return true;
    }
    if (op != (*s < 0.0 ? GNI_OP_MAX : GNI_OP_MIN)) return gni_number_ok(g, fn, *t, *s);
    gni_integer_range(*t, &low, &high);
    *s = *s < 0.0 ? low : high;
    return true;
}

// Integers against a scalar between two integers: the same answers from one of these, where float32 would
// take integers beyond 2^24 for their neighbours.
static double gni_scalar_whole(gni_op op, gn_dtype t, double s) {
    if (gni_is_float(t) || gni_is_complex(t) || s == floor(s) || s - s != 0.0) return s;
    if (op == GNI_OP_LT || op == GNI_OP_GE) return ceil(s);
    if (op == GNI_OP_LE || op == GNI_OP_GT) return floor(s);
    return op == GNI_OP_EQ || op == GNI_OP_NE ? 1e300 : s; // equal to none
}

static gn_array *gni_binary_s(const char *fn, gni_op op, gn_array *a, double s, bool scalar_first) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    if (gni_is_complex(a->dtype)) {
        gn_scope_begin(g);
        return gni_end_scope(g, gni_complex_binary_s(g, fn, op, a, s, scalar_first));
    }
    gn_array *y = NULL;
    gn_array *src[2];
    double konst[2];
    src[scalar_first] = a;
    src[!scalar_first] = NULL;
    konst[scalar_first] = 0.0;
    s = gni_scalar_whole(op, a->dtype, s); // no comparison has its scalar first
    konst[!scalar_first] = s;
    gn_dtype t = gni_binary_dtype(op, gni_scalar_dtype(op, a->dtype, s));
    const bool power = op == GNI_OP_POW && !scalar_first;
    const gni_op one = power && s == 2.0 ? GNI_OP_SQUARE : power && s == -1.0 && gni_is_float(t) ? GNI_OP_RECIP : op;
    if (gni_binary_ok(g, fn, op, t) && gni_scalar_fit(g, fn, op, &t, &konst[!scalar_first]))
        y = gni_apply(g, fn, one, t, gni_is_compare(op) ? GN_BOOL : t, src, konst, one != op ? 1 : 2);
    if (!gni_is_compare(op)) gni_record_op(g, y, fn, op, &a, 1, scalar_first ? 1 : 2, s);
    return gni_end(g, y);
}

static const gni_math gni_math_table = {gni_math_kernel, gni_rare_kernel, gni_complex_math, gni_complex_pow};
static void gni_math_use(const gn_array *a) {
    gn_context *g = gn_context_of(a);
    if (g != NULL) gni_pointer_store(&g->math, &gni_math_table);
}
GNI_NOINLINE static gn_array *gni_unary_math(const char *fn, gni_op op, gn_array *a) {
    gni_math_use(a);
    return gni_unary(fn, op, a);
}
GNI_NOINLINE static gn_array *gni_binary_math(const char *fn, gni_op op, gn_array *a, gn_array *b) {
    gni_math_use(a != NULL ? a : b);
    return gni_binary(fn, op, a, b);
}
// To a small whole power, by products: of floats the third.
static bool gni_is_whole_power(const gn_array *a, double s) {
    if (a == NULL || a->dtype == GN_BOOL || gni_is_complex(a->dtype)) return false;
    return s > 2.0 && s <= (gni_is_float(a->dtype) ? 3.0 : 63.0) && s == floor(s);
}
static gn_array *gni_whole_power(const char *fn, gn_array *a, double s) {
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    const bool half = gni_is_float(a->dtype) && gn_dtype_size(a->dtype) == 2;
    g->no_grad++;
    gn_array *x = half ? gn_cast(a, GN_F32) : a, *y = NULL;
    for (int n = (int)s; n > 0; n >>= 1) {
        if (n & 1) y = y != NULL ? gn_mul(y, x) : x;
        if (n > 1) x = gn_square(x);
    }
    if (half) y = gn_cast(y, a->dtype);
    g->no_grad--;
    gni_record_op(g, y, fn, GNI_OP_POW, &a, 1, 2, s);
    return gni_end_scope(g, y);
}
GNI_NOINLINE static gn_array *gni_binary_s_math(const char *fn, gni_op op, gn_array *a, double s, bool scalar_first) {
    gni_math_use(a);
    if (op == GNI_OP_POW && !scalar_first && gni_is_whole_power(a, s)) return gni_whole_power(fn, a, s);
    return gni_binary_s(fn, op, a, s, scalar_first);
}

#define GN_X(fn, NAME, F, D, gF, da)                                                               \
    GPUNUM_API gn_array *fn(gn_array *a) { return gni_unary_math(#fn, GNI_OP_##NAME, a); }
GNI_UNARY_FLOAT(GN_X)
GNI_UNARY_RARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da)                                                        \
    GPUNUM_API gn_array *fn(gn_array *a) { return gni_unary(#fn, GNI_OP_##NAME, a); }
GNI_UNARY_NEG(GN_X)
GNI_UNARY_WHOLE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da)                                                        \
    GPUNUM_API gn_array *fn(gn_array *a) { return gni_unary_math(#fn, GNI_OP_##NAME, a); }
GNI_UNARY_SIZE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    GPUNUM_API gn_array *fn(gn_array *a) { return gni_unary(#fn, GNI_OP_##NAME, a); }
GNI_UNARY_BOOL(GN_X)
#undef GN_X
static gn_array *gni_trigamma(gn_array *a) { return gni_unary_math("gn_digamma's derivative", GNI_OP_TRIGAMMA, a); }
static gn_array *gni_tetragamma(gn_array *a) {
    return gni_unary_math("gn_digamma's second derivative", GNI_OP_TETRAGAMMA, a);
}
#define GNI_BINARY_FUNCTIONS(fn, NAME, kind)                                                       \
    GPUNUM_API gn_array *fn(gn_array *a, gn_array *b) {                                            \
        return gni_binary##kind(#fn, GNI_OP_##NAME, a, b);                                         \
    }                                                                                              \
    GPUNUM_API gn_array *fn##_s(gn_array *a, double b) {                                           \
        return gni_binary_s##kind(#fn "_s", GNI_OP_##NAME, a, b, false);                           \
    }
#define GN_X(fn, NAME, F, D, gF, da, db) GNI_BINARY_FUNCTIONS(fn, NAME, )
GNI_BINARY_DIV(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) GNI_BINARY_FUNCTIONS(fn, NAME, _math)
GNI_BINARY_ANGLE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) GNI_BINARY_FUNCTIONS(fn, NAME, )
GNI_BINARY_RING(GN_X)
GNI_BINARY_BOUND(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) GNI_BINARY_FUNCTIONS(fn, NAME, _math)
GNI_BINARY_DIVIDE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) GNI_BINARY_FUNCTIONS(fn, NAME, )
GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI) GNI_BINARY_FUNCTIONS(fn, NAME, )
GNI_BINARY_INT(GN_X)
#undef GN_X

GPUNUM_API gn_array *gn_rsub_s(gn_array *a, double b) {
    return gni_binary_s("gn_rsub_s", GNI_OP_SUB, a, b, true);
}
GPUNUM_API gn_array *gn_rdiv_s(gn_array *a, double b) {
    return gni_binary_s("gn_rdiv_s", GNI_OP_DIV, a, b, true);
}
GPUNUM_API gn_array *gn_rpow_s(gn_array *a, double b) {
    return gni_binary_s_math("gn_rpow_s", GNI_OP_POW, a, b, true);
}

GPUNUM_API gn_array *gn_where(gn_array *condition, gn_array *a, gn_array *b) {
    gn_array *in[3] = {condition, a, b};
    gn_context *g = gni_begin("gn_where", in, 3);
    if (g == NULL) return NULL;
    if (!gni_real_only(g, "gn_where", &condition, 1)) return gni_end(g, NULL);
    if (gni_is_complex(a->dtype) || gni_is_complex(b->dtype)) {
        gn_scope_begin(g);
        return gni_end_scope(g, gni_complex_where(condition, a, b));
    }
    gn_dtype t = gn_promote(a->dtype, b->dtype);
    gn_array *y = gni_apply(g, "gn_where", GNI_OP_WHERE, t, t, in, NULL, 3);
    gni_record_op(g, y, "gn_where", GNI_OP_WHERE, in, 3, 0, 0.0);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_fma(gn_array *a, gn_array *b, gn_array *c) {
    gn_array *in[3] = {a, b, c};
    gn_context *g = gni_begin("gn_fma", in, 3);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if (gni_real_only(g, "gn_fma", in, 3)) {
        gn_dtype t = gn_promote(gn_promote(a->dtype, b->dtype), c->dtype);
        y = gni_apply(g, "gn_fma", GNI_OP_FMA, t, t, in, NULL, 3);
    }
    gni_record_op(g, y, "gn_fma", GNI_OP_FMA, in, 3, 0, 0.0);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_lerp(gn_array *a, gn_array *b, gn_array *t) {
    gn_array *in[3] = {a, b, t};
    gn_context *g = gni_begin_scope("gn_lerp", in, 3);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gn_add(a, gn_mul(t, gn_sub(b, a))));
}

GPUNUM_API gn_array *gn_clamp(gn_array *a, double low, double high) {
    gn_context *g = gni_begin("gn_clamp", &a, 1);
    if (g == NULL) return NULL;
    if (low > 0.0) gni_number_ok(g, "gn_clamp", gni_scalar_dtype(GNI_OP_MAX, a->dtype, low), low);
    if (high < 0.0) gni_number_ok(g, "gn_clamp", gni_scalar_dtype(GNI_OP_MIN, a->dtype, high), high);
    gn_scope_begin(g);
    return gni_end_scope(g, gn_minimum_s(gn_maximum_s(a, low), high));
}

GPUNUM_API gn_array *gn_leaky_relu(gn_array *a, double slope) {
    gn_context *g = gni_begin_scope("gn_leaky_relu", &a, 1);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gn_where(gn_gt_s(a, 0.0), a, gn_mul_s(a, slope)));
}

GPUNUM_API gn_array *gn_elu(gn_array *a, double alpha) {
    gn_context *g = gni_begin_scope("gn_elu", &a, 1);
    if (g == NULL) return NULL;
    // The unused branch must stay finite, or its gradient would be 0 times infinity.
    gn_array *negative = gn_mul_s(gn_expm1(gn_minimum_s(a, 0.0)), alpha);
    return gni_end_scope(g, gn_where(gn_gt_s(a, 0.0), a, negative));
}

// Whether it is pending, as nothing but the values of another of its dtype.
static bool gni_is_copied(const gn_array *a) {
    return gni_is_pending(a) && a->expr->op == GNI_OP_CAST && a->expr->compute == a->dtype &&
           a->expr->src[0]->dtype == a->dtype;
}

GPUNUM_API gn_array *gn_cast(gn_array *a, gn_dtype t) {
    gn_context *g = gni_begin("gn_cast", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    bool known = (unsigned)t < (unsigned)GN_DTYPE_COUNT;
    if (known && t != a->dtype && (gni_is_complex(t) || gni_is_complex(a->dtype))) {
        gn_scope_begin(g);
        return gni_end_scope(g, gni_complex_cast(g, a, t));
    }
    if (!known)
        gni_fail(g, GN_ERROR_DTYPE, "gn_cast: %d is not a dtype", (int)t);
    else {
        // Instructions bound the depth of trees, and conversions to the dtype that is there are none: one is enough.
        gn_array *from = t == a->dtype && gni_is_copied(a) ? a->expr->src[0] : a;
        y = gni_apply(g, "gn_cast", GNI_OP_CAST, a->dtype, t, &from, NULL, 1);
    }
    if (gni_is_float(t) || gni_is_complex(t)) gni_record_op(g, y, "gn_cast", GNI_OP_CAST, &a, 1, 0, 0.0);
    return gni_end(g, y);
}

// The same where it has that dtype: a cast would be a copy.
static gn_array *gni_as(gn_array *a, gn_dtype t) { return a == NULL || a->dtype == t ? a : gn_cast(a, t); }

GPUNUM_API gn_array *gn_copy(gn_array *a) {
    gn_context *g = gni_begin("gn_copy", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = gni_apply(g, "gn_copy", GNI_OP_CAST, a->dtype, a->dtype, &a, NULL, 1);
    if (y != NULL && !gni_materialize(g, y)) {
        gni_unref(g, y);
        y = NULL;
    }
    if (y != NULL && gni_tracks(g, &a, 1)) gni_record(g, y, "gn_copy", gni_back_copy, &a, 1);
    return gni_end(g, y);
}

// ---- gn_autocast_begin

enum { GNI_AUTOCAST_NONE, GNI_AUTOCAST_F16, GNI_AUTOCAST_BF16, GNI_AUTOCAST_OFF }; // two bits of g->autocast

// The dtype of halves that is in force, or float32. What other public calls are made of follows their own dtypes.
static gn_dtype gni_autocast(const gn_context *g) {
    const uint64_t bits = g->call_depth == g->call_base + 1 ? g->autocast & 3u : (uint64_t)GNI_AUTOCAST_NONE;
    return bits == GNI_AUTOCAST_F16 ? GN_F16 : bits == GNI_AUTOCAST_BF16 ? GN_BF16 : GN_F32;
}

static bool gni_sums_in_f32(gn_dtype t) { return t == GN_F32 || t == GN_F16 || t == GN_BF16; }

// Whether these become halves, of one dtype.
static bool gni_autocasts(const gn_context *g, gn_array *const *in, int n) {
    const gn_dtype t = gni_autocast(g);
    bool differs = false;
    for (int i = 0; i < n; i++) {
        if (!gni_sums_in_f32(in[i]->dtype)) return false;
        differs = differs || in[i]->dtype != t;
    }
    return t != GN_F32 && differs;
}

// Whether neighbours in memory follow each other along the axis before the last, as in a transposed view.
static bool gni_is_transposed(const gn_array *a) {
    const int last = a->shape.rank - 1;
    return a->buf != NULL && last > 0 && a->stride[last - 1] == 1 && a->shape.dim[last - 1] > 1 &&
           a->stride[last] >= a->shape.dim[last - 1];
}

// They do, inside a scope. The memory of a transposed view keeps its order: writing it in another is slow, and may leave a
// product with rows that begin anywhere.
static void gni_autocast_all(gn_context *g, gn_array **in, int n) {
    const gn_dtype t = gni_autocast(g);
    for (int i = 0; i < n; i++) {
        if (in[i] == NULL || in[i]->dtype == t) continue;
        in[i] = gni_is_transposed(in[i]) ? gn_swap_axes(gn_cast(gn_swap_axes(in[i], -1, -2), t), -1, -2) : gn_cast(in[i], t);
    }
}

// Whether a half is to be seen as float32, which losses and softmax do.
static bool gni_autocasts_back(const gn_context *g, const gn_array *a) {
    return gni_autocast(g) != GN_F32 && a->dtype != GN_F32 && gni_sums_in_f32(a->dtype);
}
