// >>cpu_wide
// The CPU backend's loops over 64-bit registers, float64 and int64. From outside: gni_isa_wide and
// gni_wide_softmax_table.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/half.h"
#include "../core/internal.h"
#endif

// ---- float64 functions that C does not have

GNI_INLINE double gni_dsigmoid(double a) {
    double e = exp(-fabs(a));
    return (a >= 0.0 ? 1.0 : e) / (1.0 + e);
}
GNI_INLINE double gni_dsilu(double a) { return a == -GNI_INF ? -0.0 : a * gni_dsigmoid(a); }
GNI_INLINE double gni_dsoftplus(double a) {
    return (a > 0.0 ? a : a == a ? 0.0 : a) + log1p(exp(-fabs(a)));
}
GNI_INLINE double gni_dgelu(double a) {
    return a == -GNI_INF ? -0.0 : 0.5 * a * erfc(-a * GNI_SQRT1_2);
}
GNI_INLINE double gni_dsign(double a) { return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a == a ? 0.0 : a; }
GNI_INLINE double gni_drint(double a) { return rint(a); }
GNI_INLINE double gni_dmin(double a, double b) { return a < b || a != a ? a : b; }
GNI_INLINE double gni_dmax(double a, double b) { return a > b || a != a ? a : b; }
// The remainder has the divisor's sign, as in Python and NumPy.
GNI_INLINE double gni_dmod(double a, double b) {
    double r = fmod(a, b);
    if (r == 0.0) return copysign(0.0, b);
    return (r < 0.0) != (b < 0.0) ? r + b : r;
}
GNI_INLINE double gni_dfloor_div(double a, double b) {
    if (b == 0.0) return a / b;
    double r = fmod(a, b), q = (a - r) / b;
    if (r != 0.0 && (r < 0.0) != (b < 0.0)) q -= 1.0;
    if (q == 0.0) return copysign(0.0, a / b);
    double y = floor(q);
    return q - y > 0.5 ? y + 1.0 : y;
}
// To float32 by truncation, with a last bit that says whether anything was cut off: rounding that to a
// shorter format gives what rounding x would.
GNI_INLINE float gni_dodd(double x) {
    float f = (float)x;
    if ((double)f == x || x != x) return f;
    uint32_t u = gni_f32_bits(f);
    if (fabs((double)f) > fabs(x)) u--;
    return gni_bits_f32(u | 1u);
}
// An integer that float64 does not hold, with a last bit that says whether anything was cut off.
GNI_INLINE uint64_t gni_uodd(uint64_t a) {
    bool fits = a >> 53 == 0;
    return fits || (a & 2047) == 0 ? a : (a & ~(uint64_t)2047) | 2048;
}
GNI_INLINE int64_t gni_iodd(int64_t a) {
    bool fits = (a < 0 ? ~a : a) >> 53 == 0;
    return fits || (a & 1023) == 0 ? a : (a & ~(int64_t)1023) | 1024;
}
GNI_INLINE double gni_dround_f16(double x) {
    return (double)gni_f16_to_f32(gni_f32_to_f16(gni_dodd(x)));
}
GNI_INLINE double gni_dround_bf16(double x) {
    return (double)gni_bf16_to_f32(gni_f32_to_bf16(gni_dodd(x)));
}
GNI_INLINE int64_t gni_dtoi(double x) {
    if (x >= 9223372036854775808.0) return INT64_MAX;
    if (x < -9223372036854775808.0) return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}
GNI_INLINE uint64_t gni_dtou(double x) {
    return x >= 18446744073709551616.0 ? UINT64_MAX : x > 0.0 ? (uint64_t)x : 0;
}

// ---- kernels

#define GNI_WIDE(name, TA, TB, TC, TR, E)                                                          \
    static void name(void *dst, const void *pa, const void *pb, const void *pc, int n) {           \
        const TA *xa = (const TA *)pa;                                                             \
        const TB *xb = (const TB *)pb;                                                             \
        const TC *xc = (const TC *)pc;                                                             \
        TR *d = (TR *)dst;                                                                         \
        GNI_UNUSED(xb);                                                                            \
        GNI_UNUSED(xc);                                                                            \
        for (int i = 0; i < n; i += 16) {                                                          \
            TR r[16];                                                                              \
            for (int j = 0; j < 16; j++) r[j] = (TR)(E);                                           \
            memcpy(d + i, r, sizeof r);                                                            \
        }                                                                                          \
    }
#define GNI_WIDE_1(name, TA, TR, E)                                                                \
    GNI_INLINE TR name##_one(TA a) {                                                               \
        typedef TA T;                                                                              \
        typedef uint64_t UT;                                                                       \
        GNI_UNUSED((T)0);                                                                          \
        GNI_UNUSED((UT)0);                                                                         \
        return (TR)(E);                                                                            \
    }                                                                                              \
    GNI_WIDE(name, TA, TA, TA, TR, name##_one(xa[i + j]))
#define GNI_WIDE_2(name, TA, TR, E)                                                                \
    GNI_INLINE TR name##_one(TA a, TA b) {                                                         \
        typedef TA T;                                                                              \
        typedef uint64_t UT;                                                                       \
        GNI_UNUSED((T)0);                                                                          \
        GNI_UNUSED((UT)0);                                                                         \
        return (TR)(E);                                                                            \
    }                                                                                              \
    GNI_WIDE(name, TA, TA, TA, TR, name##_one(xa[i + j], xb[i + j]))

#define GNI_T(name) name##_i64
#define GN_X(fn, NAME, F, D, gF, da) GNI_WIDE_1(gni_wf_##NAME, double, double, D)
GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da)                                                        \
    GNI_WIDE_1(gni_wf_##NAME, double, double, D)                                                   \
    GNI_WIDE_1(gni_wi_##NAME, int64_t, int64_t, I)
GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    GNI_WIDE_1(gni_wf_##NAME, double, int64_t, D)                                                  \
    GNI_WIDE_1(gni_wi_##NAME, int64_t, int64_t, I)
GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) GNI_WIDE_2(gni_wf_##NAME, double, double, D)
GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db)                                                    \
    GNI_WIDE_2(gni_wf_##NAME, double, double, D)                                                   \
    GNI_WIDE_2(gni_wi_##NAME, int64_t, int64_t, I)
GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    GNI_WIDE_2(gni_wf_##NAME, double, int64_t, D)                                                  \
    GNI_WIDE_2(gni_wi_##NAME, int64_t, int64_t, I)
GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI) GNI_WIDE_2(gni_wi_##NAME, int64_t, int64_t, I)
GNI_BINARY_INT(GN_X)
#undef GN_X
#undef GNI_T

// uint64, where gni_wide_unsigned says that it differs.
#define GNI_T(name) name##_u64
GNI_WIDE_1(gni_wu_ABS, uint64_t, uint64_t, a)
GNI_WIDE_1(gni_wu_SIGN, uint64_t, uint64_t, a != 0)
GNI_WIDE_2(gni_wu_FLOOR_DIV, uint64_t, uint64_t, GNI_T(gni_ifloor_div)(a, b))
GNI_WIDE_2(gni_wu_MOD, uint64_t, uint64_t, GNI_T(gni_imod)(a, b))
GNI_WIDE_2(gni_wu_POW, uint64_t, uint64_t, GNI_T(gni_ipow)(a, b))
GNI_WIDE_2(gni_wu_MIN, uint64_t, uint64_t, a < b ? a : b)
GNI_WIDE_2(gni_wu_MAX, uint64_t, uint64_t, a > b ? a : b)
GNI_WIDE_2(gni_wu_LT, uint64_t, uint64_t, a < b)
GNI_WIDE_2(gni_wu_LE, uint64_t, uint64_t, a <= b)
GNI_WIDE_2(gni_wu_GT, uint64_t, uint64_t, a > b)
GNI_WIDE_2(gni_wu_GE, uint64_t, uint64_t, a >= b)
GNI_WIDE_2(gni_wu_SHR, uint64_t, uint64_t, GNI_T(gni_ishr)(a, b))
#undef GNI_T
#define gni_wu_RELU gni_wu_ABS
#define gni_wu_NEG NULL
#define gni_wu_SQUARE NULL
#define gni_wu_FLOOR NULL
#define gni_wu_CEIL NULL
#define gni_wu_ROUND NULL
#define gni_wu_TRUNC NULL
#define gni_wu_ISNAN NULL
#define gni_wu_ISINF NULL
#define gni_wu_ISFINITE NULL
#define gni_wu_LOGICAL_NOT NULL
#define gni_wu_ADD NULL
#define gni_wu_SUB NULL
#define gni_wu_MUL NULL
#define gni_wu_EQ NULL
#define gni_wu_NE NULL
#define gni_wu_LOGICAL_AND NULL
#define gni_wu_LOGICAL_OR NULL
#define gni_wu_LOGICAL_XOR NULL
#define gni_wu_AND NULL
#define gni_wu_OR NULL
#define gni_wu_XOR NULL
#define gni_wu_SHL NULL
GNI_WIDE(gni_wx_WHERE, int64_t, int64_t, int64_t, int64_t, xa[i + j] != 0 ? xb[i + j] : xc[i + j])
GNI_WIDE(gni_wf_FMA, double, double, double, double, fma(xa[i + j], xb[i + j], xc[i + j]))
GNI_WIDE(gni_wi_FMA, uint64_t, uint64_t, uint64_t, uint64_t, xa[i + j] * xb[i + j] + xc[i + j])
GNI_WIDE_1(gni_wx_COPY, uint64_t, uint64_t, a)
GNI_WIDE_1(gni_wx_I_TO_F, int64_t, double, a)
GNI_WIDE_1(gni_wx_TO_ODD, int64_t, double, gni_iodd(a))
GNI_WIDE_1(gni_wx_F_TO_I, double, int64_t, gni_dtoi(a))
GNI_WIDE_1(gni_wx_F_TO_U, double, uint64_t, gni_dtou(a))
GNI_WIDE_1(gni_wx_U_TO_F, uint64_t, double, a)
GNI_WIDE_1(gni_wx_U_TO_ODD, uint64_t, double, gni_uodd(a))
GNI_WIDE_1(gni_wf_TO_BOOL, double, int64_t, a != 0.0)
GNI_WIDE_1(gni_wi_TO_BOOL, int64_t, int64_t, a != 0)
GNI_WIDE_1(gni_wx_ROUND_F16, double, double, gni_dround_f16(a))
GNI_WIDE_1(gni_wx_ROUND_BF16, double, double, gni_dround_bf16(a))
GNI_WIDE_1(gni_wx_ROUND_F32, double, double, (float)a)
GNI_WIDE_1(gni_wx_WRAP_U8, int64_t, int64_t, a & 255)
GNI_WIDE_1(gni_wx_WRAP_I8, int64_t, int64_t, ((a & 255) ^ 128) - 128)
GNI_WIDE_1(gni_wx_WRAP_U16, int64_t, int64_t, a & 65535)
GNI_WIDE_1(gni_wx_WRAP_I16, int64_t, int64_t, ((a & 65535) ^ 32768) - 32768)
GNI_WIDE_1(gni_wx_WRAP_U32, int64_t, int64_t, a &(int64_t)UINT32_MAX)
GNI_WIDE_1(gni_wx_WRAP_I32, int64_t, int64_t, ((a & (int64_t)UINT32_MAX) ^ 0x80000000) - 0x80000000)
#undef GNI_WIDE
#undef GNI_WIDE_1
#undef GNI_WIDE_2

static const gni_kernel gni_kernels_wide[GNI_OP_COUNT * 3] = {
#define GN_X(fn, NAME, F, D, gF, da) gni_wf_##NAME, NULL, NULL,
    GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da) gni_wf_##NAME, gni_wi_##NAME, gni_wu_##NAME,
        GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) gni_wf_##NAME, gni_wi_##NAME, gni_wu_##NAME,
            GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) gni_wf_##NAME, NULL, NULL,
                GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) gni_wf_##NAME, gni_wi_##NAME, gni_wu_##NAME,
                    GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) gni_wf_##NAME, gni_wi_##NAME, gni_wu_##NAME,
                        GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI) NULL, gni_wi_##NAME, gni_wu_##NAME,
                            GNI_BINARY_INT(GN_X)
#undef GN_X
#define GNI_SAME(name) name, name, name
                                GNI_SAME(gni_wx_WHERE),
    gni_wf_FMA,
    gni_wi_FMA,
    gni_wi_FMA,
    GNI_SAME(gni_wx_COPY), // CAST
    GNI_SAME(gni_wx_COPY), // CONST
    GNI_SAME(gni_wx_I_TO_F),
    GNI_SAME(gni_wx_U_TO_F),
    GNI_SAME(gni_wx_F_TO_I),
    GNI_SAME(gni_wx_F_TO_U),
    gni_wf_TO_BOOL,
    gni_wi_TO_BOOL,
    gni_wi_TO_BOOL,
    GNI_SAME(gni_wx_ROUND_F16),
    GNI_SAME(gni_wx_ROUND_BF16),
    GNI_SAME(gni_wx_ROUND_F32),
    GNI_SAME(gni_wx_WRAP_U8),
    GNI_SAME(gni_wx_WRAP_I8),
    GNI_SAME(gni_wx_WRAP_U32),
    GNI_SAME(gni_wx_WRAP_I32),
    NULL, // TO_ODD
    gni_wx_TO_ODD,
    gni_wx_U_TO_ODD,
    GNI_SAME(gni_wx_WRAP_U16),
    GNI_SAME(gni_wx_WRAP_I16),
#undef GNI_SAME
};

// ---- memory to registers and back

#define GNI_CONVERT(name, TR, TS, E)                                                               \
    static void name(void *dst, const void *src, int64_t n) {                                      \
        TR *GNI_RESTRICT d = (TR *)dst;                                                            \
        const TS *GNI_RESTRICT s = (const TS *)src;                                                \
        int64_t i = 0;                                                                             \
        for (; i + 16 <= n; i += 16) {                                                             \
            for (int j = 0; j < 16; j++) d[i + j] = (TR)E(s[i + j]);                               \
        }                                                                                          \
        for (; i < n; i++) d[i] = (TR)E(s[i]);                                                     \
    }
#define GNI_F16_OF(x) gni_f32_to_f16(gni_dodd(x))
#define GNI_BF16_OF(x) gni_f32_to_bf16(gni_dodd(x))
#define GNI_TRUTH(x) ((x) != 0)
#define GNI_LOW8(x) ((x)&255)
#define GNI_LOW16(x) ((x)&65535)
#define GNI_LOW32(x) ((x) & (int64_t)UINT32_MAX)
GNI_CONVERT(gni_wide_load_f32, double, float, )
GNI_CONVERT(gni_wide_load_f16, double, uint16_t, gni_f16_to_f32)
GNI_CONVERT(gni_wide_load_bf16, double, uint16_t, gni_bf16_to_f32)
GNI_CONVERT(gni_wide_load_i32, int64_t, int32_t, )
GNI_CONVERT(gni_wide_load_u32, int64_t, uint32_t, )
GNI_CONVERT(gni_wide_load_u8, int64_t, uint8_t, )
GNI_CONVERT(gni_wide_load_i8, int64_t, int8_t, )
GNI_CONVERT(gni_wide_load_i16, int64_t, int16_t, )
GNI_CONVERT(gni_wide_load_u16, int64_t, uint16_t, )
GNI_CONVERT(gni_wide_store_f32, float, double, )
GNI_CONVERT(gni_wide_store_f16, uint16_t, double, GNI_F16_OF)
GNI_CONVERT(gni_wide_store_bf16, uint16_t, double, GNI_BF16_OF)
GNI_CONVERT(gni_wide_store_32, uint32_t, int64_t, GNI_LOW32)
GNI_CONVERT(gni_wide_store_16, uint16_t, int64_t, GNI_LOW16)
GNI_CONVERT(gni_wide_store_8, uint8_t, int64_t, GNI_LOW8)
GNI_CONVERT(gni_wide_store_bool, uint8_t, int64_t, GNI_TRUTH)
#undef GNI_CONVERT
#undef GNI_F16_OF
#undef GNI_BF16_OF
#undef GNI_TRUTH
#undef GNI_LOW8
#undef GNI_LOW16
#undef GNI_LOW32

// By dtype: F32, F16, BF16, F64, I32, I64, U8, I8, U32, BOOL, C64, C128, I16, U16, U64.
static const gni_convert_fn gni_wide_load_table[GN_DTYPE_COUNT] = {gni_wide_load_f32,
                                                                   gni_wide_load_f16,
                                                                   gni_wide_load_bf16,
                                                                   NULL,
                                                                   gni_wide_load_i32,
                                                                   NULL,
                                                                   gni_wide_load_u8,
                                                                   gni_wide_load_i8,
                                                                   gni_wide_load_u32,
                                                                   gni_wide_load_u8,
                                                                   NULL,
                                                                   NULL,
                                                                   gni_wide_load_i16,
                                                                   gni_wide_load_u16,
                                                                   NULL};
static const gni_convert_fn gni_wide_store_table[GN_DTYPE_COUNT] = {gni_wide_store_f32,
                                                                    gni_wide_store_f16,
                                                                    gni_wide_store_bf16,
                                                                    NULL,
                                                                    gni_wide_store_32,
                                                                    NULL,
                                                                    gni_wide_store_8,
                                                                    gni_wide_store_8,
                                                                    gni_wide_store_32,
                                                                    gni_wide_store_bool,
                                                                    NULL,
                                                                    NULL,
                                                                    gni_wide_store_16,
                                                                    gni_wide_store_16,
                                                                    NULL};

// ---- folds of contiguous elements

#define GNI_FAR 1.340780792994259709957e154  // 2^512
#define GNI_NEAR 7.458340731200206743290e-155 // 2^-512
// acc += x, keeping what rounding takes away (Neumaier 1974).
static void gni_acc_add(double *d, double *e, double x) {
    double t = *d + x, rest = *e + (fabs(*d) >= fabs(x) ? (*d - t) + x : (x - t) + *d);
    if (rest - rest == 0.0) {
        *d = t;
    } else { // see gni_acc
        *d = (*e == *e ? *d * GNI_NEAR + *e * GNI_NEAR : *d) + x * GNI_NEAR;
        rest = GNI_NAN;
    }
    *e = rest;
}

static void gni_wide_fold_sum_f(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    GNI_UNUSED(at);
    for (int64_t i = 0; i < n; i += 256) {
        const double *p = (const double *)x + i;
        int64_t m = GNI_MIN(n - i, 256), k = 0;
        double s[16] = {0};
        for (; k + 16 <= m; k += 16)
            for (int j = 0; j < 16; j++) s[j] += p[k + j];
        for (int j = 0; k < m; k++, j++) s[j] += p[k];
        for (int h = 8; h > 0; h /= 2)
            for (int j = 0; j < h; j++) s[j] += s[j + h];
        if (s[0] - s[0] == 0.0) {
            gni_acc_add(&acc->d, &acc->e, s[0]);
            continue;
        }
        for (k = 0; k < m; k++) gni_acc_add(&acc->d, &acc->e, p[k]);
    }
}
static void gni_wide_fold_prod_f(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    const double *p = (const double *)x;
    GNI_UNUSED(at);
    for (int64_t i = 0; i < n; i++) gni_acc_multiply(&acc->d, &acc->e, p[i]);
}
#define GNI_FOLD_EXTREME(name, OP)                                                                 \
    static void name(gni_acc *acc, const void *x, int64_t n, int64_t at) {                         \
        const double *p = (const double *)x;                                                       \
        double s[8];                                                                               \
        int64_t i = 0;                                                                             \
        int nan = acc->d != acc->d;                                                                \
        GNI_UNUSED(at);                                                                            \
        for (int j = 0; j < 8; j++) s[j] = acc->d;                                                 \
        for (; i + 8 <= n; i += 8)                                                                 \
            for (int j = 0; j < 8; j++) {                                                          \
                nan |= p[i + j] != p[i + j];                                                       \
                s[j] = p[i + j] OP s[j] ? p[i + j] : s[j];                                         \
            }                                                                                      \
        for (; i < n; i++) {                                                                       \
            nan |= p[i] != p[i];                                                                   \
            s[0] = p[i] OP s[0] ? p[i] : s[0];                                                     \
        }                                                                                          \
        for (int j = 1; j < 8; j++) s[0] = s[j] OP s[0] ? s[j] : s[0];                             \
        acc->d = nan ? GNI_NAN : s[0];                                                             \
    }
#define GNI_FOLD_PLACE(name, OP)                                                                   \
    static void name(gni_acc *acc, const void *x, int64_t n, int64_t at) {                         \
        const double *p = (const double *)x;                                                       \
        for (int64_t i = 0; i < n && acc->d == acc->d; i++) {                                      \
            if (!(p[i] OP acc->d) && p[i] == p[i]) continue;                                       \
            acc->d = p[i];                                                                         \
            acc->at = at + i;                                                                      \
        }                                                                                          \
    }
GNI_FOLD_EXTREME(gni_wide_fold_min_f, <)
GNI_FOLD_EXTREME(gni_wide_fold_max_f, >)
GNI_FOLD_PLACE(gni_wide_fold_argmin_f, <)
GNI_FOLD_PLACE(gni_wide_fold_argmax_f, >)
#undef GNI_FOLD_EXTREME
#undef GNI_FOLD_PLACE

#define GNI_FOLD(name, T, INIT, STEP, END)                                                         \
    static void name(gni_acc *acc, const void *x, int64_t n, int64_t at) {                         \
        const T *p = (const T *)x;                                                                 \
        INIT;                                                                                      \
        GNI_UNUSED(at);                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T y = p[i];                                                                            \
            STEP;                                                                                  \
        }                                                                                          \
        END;                                                                                       \
    }
#define GNI_PLACE(OP)                                                                              \
    if (y OP r) {                                                                                  \
        r = y;                                                                                     \
        acc->at = at + i;                                                                          \
    }
GNI_FOLD(gni_wide_fold_sum_i, int64_t, uint64_t r = (uint64_t)acc->i, r += (uint64_t)y,
         acc->i = (int64_t)r)
GNI_FOLD(gni_wide_fold_prod_i, int64_t, uint64_t r = (uint64_t)acc->i, r *= (uint64_t)y,
         acc->i = (int64_t)r)
GNI_FOLD(gni_wide_fold_min_i, int64_t, int64_t r = acc->i, r = y < r ? y : r, acc->i = r)
GNI_FOLD(gni_wide_fold_max_i, int64_t, int64_t r = acc->i, r = y > r ? y : r, acc->i = r)
GNI_FOLD(gni_wide_fold_argmin_i, int64_t, int64_t r = acc->i, GNI_PLACE(<), acc->i = r)
GNI_FOLD(gni_wide_fold_argmax_i, int64_t, int64_t r = acc->i, GNI_PLACE(>), acc->i = r)
GNI_FOLD(gni_wide_fold_any_f, double, int r = acc->i != 0, r |= y != 0.0, acc->i = r)
GNI_FOLD(gni_wide_fold_any_i, int64_t, int r = acc->i != 0, r |= y != 0, acc->i = r)
GNI_FOLD(gni_wide_fold_all_f, double, int r = acc->i != 0, r &= y != 0.0, acc->i = r)
GNI_FOLD(gni_wide_fold_all_i, int64_t, int r = acc->i != 0, r &= y != 0, acc->i = r)
#undef GNI_FOLD
#undef GNI_PLACE

#define GNI_VALUES(op) gni_wide_fold_##op##_f, gni_wide_fold_##op##_i, gni_wide_fold_##op##_i
#define GNI_TRUTH(op) gni_wide_fold_##op##_f, gni_wide_fold_##op##_i, gni_wide_fold_##op##_i
#define GN_X(fn, NAME, loop, form, back) GNI_##form(loop),
static const gni_fold_fn gni_wide_fold_table[GNI_RED_COUNT * 3] = {
    GNI_REDUCE_AXES(GN_X)
#undef GN_X
#define GN_X(fn, NAME, loop, form) GNI_##form(loop),
    GNI_REDUCE_PLACE(GN_X)};
#undef GN_X
#undef GNI_VALUES
#undef GNI_TRUTH

// ---- folds of columns

static void gni_wide_columns_sum_f(gni_acc_columns *acc, const void *x, int64_t rows,
                                   int64_t stride, int64_t n, int64_t at) {
    double t[GNI_BAND], *v = (double *)acc->v;
    GNI_UNUSED(at);
    for (int64_t r0 = 0; r0 < rows; r0 += GNI_COLUMN_BLOCK) {
        int64_t last = GNI_MIN(r0 + GNI_COLUMN_BLOCK, rows), whole = n & ~(int64_t)7;
        for (int64_t c = 0; c < n; c++) t[c] = 0.0;
        for (int64_t r = r0; r < last;) {
            const bool four = r + 4 <= last; // rows at a time
            const int64_t step = four ? stride : 0;
            const double *p = (const double *)x + r * stride, *q = p + step, *u = q + step, *w = u + step;
            for (int64_t c = 0; c < whole && four; c += 8) {
                double y[8];
                for (int j = 0; j < 8; j++) y[j] = t[c + j] + ((p[c + j] + q[c + j]) + (u[c + j] + w[c + j]));
                memcpy(t + c, y, sizeof y);
            }
            for (int64_t c = four ? whole : n; c < n; c++) t[c] += (p[c] + q[c]) + (u[c] + w[c]);
            for (int64_t c = four ? n : 0; c < n; c++) t[c] += p[c];
            r += four ? 4 : 1;
        }
        for (int64_t c = 0; c < n; c++) {
            bool exact = t[c] - t[c] == 0.0;
            if (exact) gni_acc_add(&v[c], &acc->e[c], t[c]);
            for (int64_t r = r0; r < last && !exact; r++)
                gni_acc_add(&v[c], &acc->e[c], ((const double *)x)[r * stride + c]);
        }
    }
}

static void gni_wide_columns_prod_f(gni_acc_columns *acc, const void *x, int64_t rows, int64_t stride, int64_t n, int64_t at) {
    double *v = (double *)acc->v;
    GNI_UNUSED(at);
    for (int64_t r = 0; r < rows; r++) {
        const double *p = (const double *)x + r * stride;
        int64_t c = 0;
        for (; c + 8 <= n; c += 8) {
            double y[8];
            uint64_t beyond = 0;
            for (int j = 0; j < 8; j++) y[j] = v[c + j] * p[c + j];
            for (int j = 0; j < 8; j++) beyond |= gni_beyond(y[j], 10);
            for (int j = 0; j < 8 && beyond != 0; j++) gni_acc_multiply(&v[c + j], &acc->e[c + j], p[c + j]);
            if (beyond == 0) memcpy(v + c, y, sizeof y);
        }
        for (; c < n; c++) gni_acc_multiply(&v[c], &acc->e[c], p[c]);
    }
}

#define GNI_COLUMNS(name, T, S, STEP)                                                              \
    static void name(gni_acc_columns *acc, const void *x, int64_t rows, int64_t stride, int64_t n, \
                     int64_t at) {                                                                 \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            S *GNI_RESTRICT v = (S *)acc->v;                                                       \
            const T *GNI_RESTRICT p = (const T *)x + r * stride;                                   \
            int64_t row = at + r;                                                                  \
            GNI_UNUSED(row);                                                                       \
            for (int64_t c = 0; c < n; c++) {                                                      \
                T y = p[c];                                                                        \
                STEP;                                                                              \
            }                                                                                      \
        }                                                                                          \
    }
#define GNI_PLACE_STEP(BETTER)                                                                     \
    if (BETTER) {                                                                                  \
        v[c] = y;                                                                                  \
        acc->at[c] = row;                                                                          \
    }
GNI_COLUMNS(gni_wide_columns_min_f, double, double, v[c] = y < v[c] || y != y ? y : v[c])
GNI_COLUMNS(gni_wide_columns_max_f, double, double, v[c] = y > v[c] || y != y ? y : v[c])
GNI_COLUMNS(gni_wide_columns_argmin_f, double, double,
            GNI_PLACE_STEP(v[c] == v[c] && (y < v[c] || y != y)))
GNI_COLUMNS(gni_wide_columns_argmax_f, double, double,
            GNI_PLACE_STEP(v[c] == v[c] && (y > v[c] || y != y)))
GNI_COLUMNS(gni_wide_columns_any_f, double, int32_t, v[c] |= (int32_t)(y != 0.0))
GNI_COLUMNS(gni_wide_columns_all_f, double, int32_t, v[c] &= (int32_t)(y != 0.0))
GNI_COLUMNS(gni_wide_columns_sum_i, int64_t, uint64_t, v[c] += (uint64_t)y)
GNI_COLUMNS(gni_wide_columns_prod_i, int64_t, uint64_t, v[c] *= (uint64_t)y)
GNI_COLUMNS(gni_wide_columns_min_i, int64_t, int64_t, v[c] = y < v[c] ? y : v[c])
GNI_COLUMNS(gni_wide_columns_max_i, int64_t, int64_t, v[c] = y > v[c] ? y : v[c])
GNI_COLUMNS(gni_wide_columns_any_i, int64_t, int32_t, v[c] |= (int32_t)(y != 0))
GNI_COLUMNS(gni_wide_columns_all_i, int64_t, int32_t, v[c] &= (int32_t)(y != 0))
GNI_COLUMNS(gni_wide_columns_argmin_i, int64_t, int64_t, GNI_PLACE_STEP(y < v[c]))
GNI_COLUMNS(gni_wide_columns_argmax_i, int64_t, int64_t, GNI_PLACE_STEP(y > v[c]))
#undef GNI_COLUMNS
#undef GNI_PLACE_STEP

#define GNI_VALUES(op)                                                                             \
    gni_wide_columns_##op##_f, gni_wide_columns_##op##_i, gni_wide_columns_##op##_i
#define GNI_TRUTH(op)                                                                              \
    gni_wide_columns_##op##_f, gni_wide_columns_##op##_i, gni_wide_columns_##op##_i
#define GN_X(fn, NAME, loop, form, back) GNI_##form(loop),
static const gni_fold_columns_fn gni_wide_columns_table[GNI_RED_COUNT * 3] = {
    GNI_REDUCE_AXES(GN_X)
#undef GN_X
#define GN_X(fn, NAME, loop, form) GNI_##form(loop),
    GNI_REDUCE_PLACE(GN_X)};
#undef GN_X
#undef GNI_VALUES
#undef GNI_TRUTH

// ---- softmax

static gni_softmax_part gni_wide_softmax_stats(void *dst, const void *src, int64_t n) {
    const double *x = (const double *)src;
    double *y = (double *)dst, low = 0.0;
    gni_softmax_part part;
    gni_acc acc = {0, 0, 0, 0};
    acc.d = -GNI_INF;
    gni_wide_fold_max_f(&acc, x, n, 0);
    part.most = acc.d;
    part.sum = part.most < GNI_INF ? 0.0 : GNI_NAN;
    bool terms = part.most < GNI_INF && part.most > -GNI_INF;
    for (int64_t i = 0; i < n; i++) {
        double e = terms ? exp(x[i] - part.most) : 0.0;
        if (terms) gni_acc_add(&part.sum, &low, e);
        if (y != NULL) y[i] = e;
    }
    part.sum += low;
    return part;
}
static void gni_wide_softmax_scale(void *dst, const void *src, int64_t n, double factor) {
    for (int64_t i = 0; i < n; i++) ((double *)dst)[i] = ((const double *)src)[i] * factor;
}
static void gni_wide_softmax_emit(void *dst, const void *src, int64_t n, double most,
                                  double factor) {
    for (int64_t i = 0; i < n; i++)
        ((double *)dst)[i] = exp(((const double *)src)[i] - most) * factor;
}
static void gni_wide_softmax_emit_log(void *dst, const void *src, int64_t n, double most,
                                      double low) {
    for (int64_t i = 0; i < n; i++) ((double *)dst)[i] = ((const double *)src)[i] - most - low;
}
static const gni_softmax_fns gni_wide_softmax_table = {
    gni_wide_softmax_stats, gni_wide_softmax_scale, gni_wide_softmax_emit,
    gni_wide_softmax_emit_log, NULL};

static const gni_cpu_isa gni_isa_wide = {gni_kernels_wide,
                                         gni_wide_load_table,
                                         gni_wide_store_table,
                                         gni_wide_fold_table,
                                         gni_wide_columns_table,
                                         NULL,
                                         NULL,
                                         NULL,
                                         NULL};
