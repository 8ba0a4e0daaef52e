// >>cpu_wide
// The CPU backend's ops on 64-bit registers, float64 and int64, that call the C library or that vectors have not. From
// outside: gni_kernel_of.

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
// erfc falls as exp(-t^2): what t^2 lacks of a^2 / 2, by heads of 24 bits, is a factor.
GNI_INLINE double gni_dgelu(double a) {
    const double t = -a * GNI_SQRT1_2;
    if (!(t > 1.0)) return 0.5 * a * erfc(t);
    if (t > 30.0) return -0.0;
    const double th = (float)t, tl = t - th, ah = (float)a, al = a - ah;
    const double y = 0.5 * a * erfc(t);
    return y + y * ((th * th - 0.5 * (ah * ah)) + ((2.0 * th * tl - ah * al) + (tl * tl - 0.5 * (al * al))));
}
// What rounding took from p = a a, by halves whose products are exact (Dekker 1971), and from s = a + b (Knuth).
GNI_INLINE double gni_dsquare_rest(double a, double p) {
    const double c = a * 134217729.0, h = c - (c - a), l = a - h; // 2^27 + 1
    return ((h * h - p) + 2.0 * h * l) + l * l;
}
GNI_INLINE double gni_dsum_rest(double a, double b, double s) {
    const double t = s - a;
    return (a - (s - t)) + (b - t);
}
// The logarithm of the magnitude; near 1 of the squares' sum without their rounding errors, which is all that is left there.
GNI_INLINE double gni_dlog_size(double x, double y) {
    double a = fabs(x), b = fabs(y), most = a > b ? a : b;
    int e = 0;
    if (a == GNI_INF || b == GNI_INF) return GNI_INF;
    if (!(most > 0.0) || x != x || y != y) return most == 0.0 && a == b ? -GNI_INF : x + y;
    if (most > 1e150 || most < 1e-120) {
        (void)frexp(most, &e);
        a = ldexp(a, -e);
        b = ldexp(b, -e);
    }
    const double p = a * a, q = b * b, s = p + q;
    if (e != 0 || s < 0.5 || s > 2.0) return 0.5 * log(s) + e * GNI_LN2;
    const double p1 = gni_dsquare_rest(a, p), q1 = gni_dsquare_rest(b, q), u = p1 + q1;
    const double lost = gni_dsum_rest(p, q, s), w = lost + u, f = s - 1.0, t = f + w;
    return 0.5 * log1p(t + (gni_dsum_rest(f, w, t) + (gni_dsum_rest(lost, u, w) + gni_dsum_rest(p1, q1, u))));
}
GNI_INLINE double gni_drint(double a) { return rint(a); }
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
// An integer that float64 does not hold, with a last bit that says whether anything was cut off.
GNI_INLINE uint64_t gni_uodd(uint64_t a) {
    bool fits = a >> 53 == 0;
    return fits || (a & 2047) == 0 ? a : (a & ~(uint64_t)2047) | 2048;
}
GNI_INLINE double gni_dround_f16(double x) {
    return (double)gni_f16_to_f32(gni_f32_to_f16(gni_round_odd(x)));
}
GNI_INLINE double gni_dround_bf16(double x) {
    return (double)gni_bf16_to_f32(gni_f32_to_bf16(gni_round_odd(x)));
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

// What neither vectors nor GNI_UNARY_FLOAT have, by domain: float64, int64, uint64 and any of them. MATH: of gni_math.
#define GNI_HOST_MATH(F, I, U, D)                                                                                      \
    F(FLOOR_DIV, gni_dfloor_div(a, b)) F(MOD, gni_dmod(a, b)) F(POW, gni_pow(a, b)) F(ATAN2, atan2(a, b)) \
    F(HYPOT, hypot(a, b)) F(LOG_SIZE, gni_dlog_size(a, b)) \
    D(i, FLOOR_DIV, gni_ifloor_div_i64(a, b)) D(i, MOD, gni_imod_i64(a, b)) I(POW, gni_ipow_i64(a, b))           \
    D(u, FLOOR_DIV, gni_ifloor_div_u64(a, b)) D(u, MOD, gni_imod_u64(a, b)) U(POW, gni_ipow_u64(a, b))
#define GNI_HOST_OPS(F, I, U, X)                                                                                       \
    F(FLOOR, floor(a)) F(CEIL, ceil(a)) F(ROUND, rint(a)) F(TRUNC, trunc(a))                     \
    F(FMA, fma(a, b, c))                                                                                               \
    I(SIGN, gni_isign_i64(a)) I(FLOOR, a) I(CEIL, a) I(ROUND, a) I(TRUNC, a) I(ISNAN, 0 * a) I(ISINF, 0 * a) \
    I(ISFINITE, 0 * a + 1) \
    I(SHL, gni_ishl_i64(a, b)) \
    I(SHR, gni_ishr_i64(a, b)) I(FMA, (int64_t)((uint64_t)a * (uint64_t)b + (uint64_t)c))                               \
    U(ABS, a) U(RELU, a) U(SIGN, a != 0)                                                                                  \
    U(MIN, a < b ? a : b) U(MAX, a > b ? a : b) U(LT, a < b) U(LE, a <= b) U(GT, a > b)     \
    U(GE, a >= b) U(SHR, gni_ishr_u64(a, b))                                                                            \
    X(CAST, uint64_t, uint64_t, a) X(CONST, uint64_t, uint64_t, a) X(U_TO_F, uint64_t, double, a) \
    X(TO_ODD, uint64_t, double, gni_uodd(a)) \
    X(F_TO_I, double, int64_t, gni_dtoi(a)) X(F_TO_U, double, uint64_t, gni_dtou(a)) \
    X(ROUND_F16, double, double, gni_dround_f16(a)) X(ROUND_BF16, double, double, gni_dround_bf16(a))

// Integers by one and the same number: by a product with its inverse (Granlund and Montgomery 1994, figure 4.1), of what
// rounds down once all bits of a negative dividend are turned. `rest`: the remainders. False: not that, or no such product.
#if defined(__SIZEOF_INT128__) && !defined(_MSC_VER) && !defined(GNI_WASM)
#define GNI_BY_ONE(name, SIGN) \
    static bool name(void *dst, const void *pa, const void *pb, int n, bool rest) { \
        __extension__ typedef unsigned __int128 gni_u128; \
        const uint64_t b = *(const uint64_t *)pb, turn = SIGN ? 0 - (b >> 63) : 0, by = (b ^ turn) - turn; \
        if (by < 2 || memcmp(pb, (const uint64_t *)pb + 1, (size_t)(n - 1) * 8) != 0) return false; \
        int bits = 0; /* of by - 1, less one */ \
        while (bits < 63 && (by - 1) >> bits > 1) bits++; \
        const uint64_t m = (uint64_t)(((gni_u128)(((uint64_t)2 << bits) - by) << 64) / by) + 1; \
        for (int i = 0; i < n; i++) { \
            const uint64_t a = ((const uint64_t *)pa)[i], x = (a ^ turn) - turn; \
            const uint64_t down = SIGN ? 0 - ((x & ~(a & turn)) >> 63) : 0, y = x ^ down; \
            const uint64_t t = (uint64_t)((gni_u128)m * y >> 64), q = ((t + ((y - t) >> 1)) >> bits) ^ down; \
            ((uint64_t *)dst)[i] = rest ? a - q * b : q; \
        } \
        return true; \
    }
GNI_BY_ONE(gni_by_one_i, true)
GNI_BY_ONE(gni_by_one_u, false)
#undef GNI_BY_ONE
#else
#define gni_by_one_i(dst, pa, pb, n, rest) false
#define gni_by_one_u(dst, pa, pb, n, rest) false
#endif

#define GNI_HOST(name, TA, TR, E)                                                                  \
    static void name(void *dst, const void *pa, const void *pb, const void *pc, int n) {           \
        const TA *xa = (const TA *)pa, *xb = (const TA *)pb, *xc = (const TA *)pc;                 \
        for (int i = 0; i < n; i++) {                                                              \
            const TA a = xa[i], b = xb[i], c = xc[i];                                              \
            GNI_UNUSED(a);                                                                         \
            GNI_UNUSED(b);                                                                         \
            GNI_UNUSED(c);                                                                         \
            ((TR *)dst)[i] = (TR)(E);                                                              \
        }                                                                                          \
    }
#define GNI_HOST_F(NAME, E) GNI_HOST(gni_wf_##NAME, double, double, E)
#define GNI_HOST_I(NAME, E) GNI_HOST(gni_wi_##NAME, int64_t, int64_t, E)
#define GNI_HOST_U(NAME, E) GNI_HOST(gni_wu_##NAME, uint64_t, uint64_t, E)
#define GNI_HOST_X(NAME, TA, TR, E) GNI_HOST(gni_wx_##NAME, TA, TR, E)
typedef int64_t gni_wi64;
typedef uint64_t gni_wu64;
#define GNI_HOST_D(d, NAME, E) \
    GNI_HOST(gni_w##d##_EACH_##NAME, gni_w##d##64, gni_w##d##64, E) \
    static void gni_w##d##_##NAME(void *dst, const void *pa, const void *pb, const void *pc, int n) { \
        if (!gni_by_one_##d(dst, pa, pb, n, GNI_OP_##NAME == GNI_OP_MOD)) \
            gni_w##d##_EACH_##NAME(dst, pa, pb, pc, n); \
    }
GNI_HOST_OPS(GNI_HOST_F, GNI_HOST_I, GNI_HOST_U, GNI_HOST_X)
GNI_HOST_MATH(GNI_HOST_F, GNI_HOST_I, GNI_HOST_U, GNI_HOST_D)
#undef GNI_HOST_D
#define GN_X(fn, NAME, F, D, gF, da) GNI_HOST_F(NAME, D)
GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#undef GNI_HOST
#undef GNI_HOST_F
#undef GNI_HOST_I
#undef GNI_HOST_U
#undef GNI_HOST_X

static gni_kernel gni_host_kernel(uint32_t code) {
    switch (code) {
#define GNI_HOST_F(NAME, E) case GNI_OP_##NAME * 3u + GNI_F: return gni_wf_##NAME;
#define GNI_HOST_I(NAME, E) case GNI_OP_##NAME * 3u + GNI_I: return gni_wi_##NAME;
#define GNI_HOST_U(NAME, E) case GNI_OP_##NAME * 3u + GNI_U: return gni_wu_##NAME;
#define GNI_HOST_X(NAME, TA, TR, E) \
    case GNI_OP_##NAME * 3u: case GNI_OP_##NAME * 3u + 1u: case GNI_OP_##NAME * 3u + 2u: return gni_wx_##NAME;
        GNI_HOST_OPS(GNI_HOST_F, GNI_HOST_I, GNI_HOST_U, GNI_HOST_X)
    default: return NULL;
    }
}
static gni_kernel gni_math_kernel(gni_isa isa, bool wide, uint32_t code) {
    if (!wide) return GNI_OF_ISA(isa, gni_math_table)->kernel(code);
    switch (code) {
#define GN_X(fn, NAME, F, D, gF, da) GNI_HOST_F(NAME, D)
#define GNI_HOST_D(d, NAME, E) case GNI_OP_##NAME * 3u + ((gni_w##d##64)-1 < 1 ? GNI_I : GNI_U): return gni_w##d##_##NAME;
        GNI_HOST_MATH(GNI_HOST_F, GNI_HOST_I, GNI_HOST_U, GNI_HOST_D)
        GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#undef GNI_HOST_D
#undef GNI_HOST_F
#undef GNI_HOST_I
#undef GNI_HOST_U
#undef GNI_HOST_X
    default: return NULL;
    }
}

// The loop for an instruction of a program, whose registers are of 64 bits if it is `wide`; NULL if there is none.
static gni_kernel gni_kernel_of(const gn_context *g, gni_isa isa, bool wide, uint32_t code) {
    const gni_cpu_isa *table = GNI_OF_ISA(isa, gni_isa_table);
    const gni_math *math = gni_math_get(g);
    gni_kernel own = wide ? table->wide_kernel(code) : table->kernel[code];
    if (own == NULL && wide) own = gni_host_kernel(code);
    return own == NULL && math != NULL ? math->kernel(isa, wide, code) : own;
}
