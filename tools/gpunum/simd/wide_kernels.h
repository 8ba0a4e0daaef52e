// >>wide_kernels
// Loops of the CPU backend over 64-bit registers, float64 and int64, compiled per pass: the ops that vectors have,
// conversions, folds for reductions, softmax pieces. What calls the C library is in room `cpu_wide`. From outside: the table
// GNI_FN(gni_isa_table), in which the loops of room `cpu_kernels` are, too.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/half.h"
#include "../simd/fold_kernels.h"
#include "../simd/dmath.h"
#endif

// ---- kernels

// F and I: of float64 and of int64 to the same; Q and T: to truth values, from masks of lanes.
#define GNI_WIDE_OPS(F, Q, I, T)                                                                                         \
    F(NEG, -a) F(ABS, gni_dabs(a)) F(SQUARE, a * a) F(RECIP, 1.0 / a) F(ADD, a + b) F(SUB, a - b) F(MUL, a * b)          \
    F(DIV, a / b) F(SIGN, gni_dpick((gni_vl)(a > 0.0), gni_dset(1.0), gni_dpick((gni_vl)(a < 0.0), gni_dset(-1.0), \
        gni_dpick((gni_vl)(a == a), gni_dset(0.0), a)))) \
    F(RELU, gni_dpick((gni_vl)(a <= 0.0), gni_dset(0.0), a)) \
    F(MIN, gni_dpick((gni_vl)(a < b) | (gni_vl)(a != a), a, b)) F(MAX, gni_dpick((gni_vl)(a > b) | (gni_vl)(a != a), a, b)) \
    Q(EQ, a == b) Q(NE, a != b) Q(LT, a < b) Q(LE, a <= b) Q(GT, a > b) Q(GE, a >= b) Q(ISNAN, a != a)                   \
    Q(ISINF, gni_dabs(a) == GNI_INF) Q(ISFINITE, gni_dabs(a) < GNI_INF) Q(LOGICAL_NOT, a == 0.0) Q(TO_BOOL, a != 0.0)     \
    Q(LOGICAL_AND, (gni_vl)(a != 0.0) & (gni_vl)(b != 0.0)) Q(LOGICAL_OR, (gni_vl)(a != 0.0) | (gni_vl)(b != 0.0))       \
    Q(LOGICAL_XOR, (gni_vl)(a != 0.0) ^ (gni_vl)(b != 0.0))                                                              \
    I(NEG, (gni_vl)(0 - (gni_vq)a)) I(ABS, gni_lpick(a < 0, (gni_vl)(0 - (gni_vq)a), a)) \
    I(RELU, gni_lpick(a > 0, a, a ^ a)) \
    I(SQUARE, (gni_vl)((gni_vq)a * (gni_vq)a)) I(ADD, (gni_vl)((gni_vq)a + (gni_vq)b)) \
    I(SUB, (gni_vl)((gni_vq)a - (gni_vq)b)) \
    I(MUL, (gni_vl)((gni_vq)a * (gni_vq)b)) I(MIN, gni_lpick(a < b, a, b)) I(MAX, gni_lpick(a > b, a, b))                \
    I(AND, a & b) I(OR, a | b) I(XOR, a ^ b)                                                                             \
    T(EQ, a == b) T(NE, a != b) T(LT, a < b) T(LE, a <= b) T(GT, a > b) T(GE, a >= b) T(LOGICAL_NOT, a == 0)             \
    T(TO_BOOL, a != 0) T(LOGICAL_AND, (a != 0) & (b != 0)) T(LOGICAL_OR, (a | b) != 0) T(LOGICAL_XOR, (a != 0) ^ (b != 0))

#define GNI_WIDE(name, V, load, R, E)                                                              \
    static void GNI_FN(name)(void *dst, const void *pa, const void *pb, const void *pc, int n) {   \
        GNI_UNUSED(pb);                                                                            \
        GNI_UNUSED(pc);                                                                            \
        for (int i = 0; i < n; i += GNI_DW) {                                                      \
            const V a = load(pa, i), b = load(pb, i);                                              \
            const R y = (E);                                                                       \
            GNI_UNUSED(b);                                                                         \
            memcpy((double *)dst + i, &y, sizeof y);                                               \
        }                                                                                          \
    }
#define GNI_WIDE_F(NAME, E) GNI_WIDE(gni_df_##NAME, gni_vd, gni_dload, gni_vd, E)
#define GNI_WIDE_Q(NAME, E) GNI_WIDE(gni_df_##NAME, gni_vd, gni_dload, gni_vl, (gni_vl)(E) & 1)
#define GNI_WIDE_I(NAME, E) GNI_WIDE(gni_di_##NAME, gni_vl, gni_lload, gni_vl, E)
#define GNI_WIDE_T(NAME, E) GNI_WIDE(gni_di_##NAME, gni_vl, gni_lload, gni_vl, (gni_vl)(E) & 1)
GNI_WIDE_OPS(GNI_WIDE_F, GNI_WIDE_Q, GNI_WIDE_I, GNI_WIDE_T)
GNI_WIDE_I(WHERE, gni_lpick(a != 0, b, gni_lload(pc, i)))
GNI_WIDE(gni_df_ROUND_F32, gni_vd, gni_dload, gni_vd, GNI_AS(GNI_AS(a, gni_vd4), gni_vd))
GNI_WIDE(gni_di_I_TO_F, gni_vl, gni_lload, gni_vd, GNI_AS(a, gni_vd))
// An integer that float64 does not hold keeps 53 bits, the last of which says whether anything was cut off.
GNI_WIDE(gni_di_TO_ODD, gni_vl, gni_lload, gni_vd,
         GNI_AS(gni_lpick((gni_vl)((a ^ (a >> 63)) >> 53 == 0) | (gni_vl)((a & 1023) == 0), a, (a & ~(int64_t)1023) | 1024),
                gni_vd))
#if defined(GNI_PASS_AVX512)
#define gni_dtol GNI_FN(gni_w_dtol)
// Truncates and saturates; NaN gives 0.
GNI_INLINE gni_vl gni_dtol(gni_vd x) {
    const gni_vl y = (gni_vl)_mm512_cvttpd_epi64((__m512d)x); // INT64_MIN where it does not fit
    return gni_lpick(x >= gni_dset(9223372036854775808.0), y ^ -1, y) & (gni_vl)(x == x);
}
GNI_WIDE(gni_df_F_TO_I, gni_vd, gni_dload, gni_vl, gni_dtol(a))
GNI_WIDE(gni_df_F_TO_U, gni_vd, gni_dload, gni_vl,
         (gni_vl)_mm512_cvttpd_epu64((__m512d)a) & (gni_vl)(a > 0.0)) // all bits where it does not fit
GNI_WIDE(gni_du_U_TO_F, gni_vl, gni_lload, gni_vd, (gni_vd)_mm512_cvtepu64_pd((__m512i)a))
#endif
#if defined(GNI_PASS_AVX2) || defined(GNI_PASS_AVX512)
// Between the first integers of b and of c, -2^32 and 0 and 0 and 2^32; NaN gives 0.
static void GNI_FN(gni_df_CLAMPED)(void *dst, const void *pa, const void *pb, const void *pc, int n) {
    const double low = (double)*(const int64_t *)pb, high = (double)*(const int64_t *)pc;
    for (int i = 0; i < n; i += GNI_DW) {
        const gni_vd x = gni_dload(pa, i), y = gni_dmin(gni_dmax(x, low), high);
        const gni_vd whole = gni_dtrunc(y) + gni_dset(6755399441055744.0); // 1.5 2^52: an integer in the last bits
        const gni_vl r = ((gni_vl)whole - (gni_vl)gni_dset(6755399441055744.0)) & (gni_vl)(x == x);
        memcpy((int64_t *)dst + i, &r, sizeof r);
    }
}
#endif
GNI_WIDE_I(WRAP_U8, a & 255)
GNI_WIDE_I(WRAP_I8, ((a & 255) ^ 128) - 128)
GNI_WIDE_I(WRAP_U16, a & 65535)
GNI_WIDE_I(WRAP_I16, ((a & 65535) ^ 32768) - 32768)
GNI_WIDE_I(WRAP_U32, a & 0xffffffff)
GNI_WIDE_I(WRAP_I32, ((a & 0xffffffff) ^ 0x80000000) - 0x80000000)
#undef GNI_WIDE_Q
#undef GNI_WIDE_I
#undef GNI_WIDE_T

#if defined(GNI_PASS_AVX2) || defined(GNI_PASS_AVX512)
// The functions of room `dmath`.
#define GNI_WIDE_MATH(F)                                                                                            \
    F(SQRT, gni_dsqrt(a)) F(RSQRT, 1.0 / gni_dsqrt(a)) F(EXP, gni_dexp(a)) F(EXP2, gni_dexp2(a)) F(EXPM1, gni_dexpm1(a)) \
    F(LOG, gni_dlog(a)) F(LOG2, gni_dlog2(a)) F(LOG10, gni_dlog10(a)) F(LOG1P, gni_dlog1p(a)) F(SIN, gni_dsin(a))     \
    F(COS, gni_dcos(a)) F(TAN, gni_dtan(a)) F(ASIN, gni_dasin(a)) F(ACOS, gni_dacos(a)) F(ATAN, gni_datan(a))         \
    F(SINH, gni_dsinh(a)) F(COSH, gni_dcosh(a)) F(TANH, gni_dtanh(a)) F(SIGMOID, gni_dsigmoid(a))                     \
    F(SOFTPLUS, gni_dsoftplus(a)) F(ASINH, gni_dasinh(a)) F(ACOSH, gni_dacosh(a)) F(ATANH, gni_datanh(a))             \
    F(CBRT, gni_dcbrt(a))                                                                                             \
    F(SILU, gni_dpick((gni_vl)(a == -GNI_INF), gni_dset(-0.0), a * gni_dsigmoid(a)))                                  \
    F(FLOOR, gni_dfloor(a)) F(CEIL, gni_dceil(a)) F(ROUND, gni_drint(a)) F(TRUNC, gni_dtrunc(a))                      \
    F(ATAN2, gni_datan2(a, b)) F(HYPOT, gni_dhypot(a, b)) F(POW, gni_dpow(a, b)) F(FMA, gni_dfma(a, b, gni_dload(pc, i)))
GNI_WIDE_MATH(GNI_WIDE_F)
#endif
#undef GNI_WIDE_F

// The kernel of a GNI_INSN_CODE, or NULL.
static gni_kernel GNI_FN(gni_wide_kernel)(uint32_t code) {
    switch (code) {
#define GNI_CASE_F(NAME, E) case GNI_OP_##NAME * 3u + GNI_F: return GNI_FN(gni_df_##NAME);
#define GNI_CASE_I(NAME, E) case GNI_OP_##NAME * 3u + GNI_I: return GNI_FN(gni_di_##NAME);
        GNI_WIDE_OPS(GNI_CASE_F, GNI_CASE_F, GNI_CASE_I, GNI_CASE_I)
#ifdef GNI_WIDE_MATH
        GNI_WIDE_MATH(GNI_CASE_F)
#endif
#undef GNI_CASE_F
#undef GNI_CASE_I
    case GNI_OP_TO_ODD * 3u + GNI_I: return GNI_FN(gni_di_TO_ODD);
#ifdef GNI_WIDE_MATH
    case GNI_OP_F_TO_I * 3u + GNI_I: return GNI_FN(gni_df_CLAMPED);
#endif
    default: break;
    }
    switch (code / 3u) {
    case GNI_OP_ROUND_F32: return GNI_FN(gni_df_ROUND_F32);
#if defined(GNI_PASS_AVX512)
    case GNI_OP_F_TO_I: return GNI_FN(gni_df_F_TO_I);
    case GNI_OP_F_TO_U: return GNI_FN(gni_df_F_TO_U);
    case GNI_OP_U_TO_F: return GNI_FN(gni_du_U_TO_F);
#endif
#define GNI_CASE(NAME) case GNI_OP_##NAME: return GNI_FN(gni_di_##NAME);
        GNI_CASE(WHERE)
        GNI_CASE(I_TO_F)
        GNI_CASE(WRAP_U8)
        GNI_CASE(WRAP_I8)
        GNI_CASE(WRAP_U16)
        GNI_CASE(WRAP_I16)
        GNI_CASE(WRAP_U32)
        GNI_CASE(WRAP_I32)
#undef GNI_CASE
    default: return NULL;
    }
}

// ---- memory to registers and back

// The low 32 bits of each lane. What gcc makes of a conversion on AVX2 takes twice as long.
#define gni_lnarrow GNI_FN(gni_w_lnarrow)
GNI_INLINE gni_vl4 gni_lnarrow(gni_vl x) {
#if defined(GNI_PASS_AVX2)
    return (gni_vl4)_mm256_castsi256_si128(
        _mm256_permutevar8x32_epi32((__m256i)x, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
#else
    return GNI_AS(x, gni_vl4);
#endif
}

// What is shorter than 32 bits takes the way of the narrow registers.
#define GNI_CONVERT(name, TR, TS, S, E, ONE)                                                       \
    static void GNI_FN(name)(void *dst, const void *src, int64_t n) {                              \
        int64_t i = 0;                                                                             \
        for (; i + GNI_DW <= n; i += GNI_DW) {                                                     \
            S x;                                                                                   \
            memcpy(&x, (const TS *)src + i, sizeof x);                                             \
            E;                                                                                     \
            memcpy((TR *)dst + i, &y, sizeof y);                                                   \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            const TS x = ((const TS *)src)[i];                                                     \
            ((TR *)dst)[i] = (TR)(ONE);                                                            \
        }                                                                                          \
    }
GNI_CONVERT(gni_wide_load_f32, double, float, gni_vd4, const gni_vd y = GNI_AS(x, gni_vd), x)
GNI_CONVERT(gni_wide_load_i32, int64_t, int32_t, gni_vl4, const gni_vl y = GNI_AS(x, gni_vl), x)
GNI_CONVERT(gni_wide_load_u32, uint64_t, uint32_t, gni_vq4, const gni_vq y = GNI_AS(x, gni_vq), x)
GNI_CONVERT(gni_wide_store_f32, float, double, gni_vd, const gni_vd4 y = GNI_AS(x, gni_vd4), x)
GNI_CONVERT(gni_wide_store_32, uint32_t, uint64_t, gni_vq, const gni_vl4 y = gni_lnarrow((gni_vl)x), x & UINT32_MAX)
#if !defined(GNI_PASS_AVX2) && !defined(GNI_PASS_AVX512)
GNI_CONVERT(gni_wide_store_truth, int32_t, int64_t, gni_vl, const gni_vl4 y = gni_lnarrow((gni_vl)(x != 0) & 1), x != 0)
#endif
// As gni_round_odd, to float32: bits of the sign count the size, too.
GNI_INLINE gni_vl4 GNI_FN(gni_wide_odd)(gni_vd x) {
    gni_vl4 u, over, cut;
    const gni_vd4 f = GNI_AS(x, gni_vd4);
    const gni_vd back = GNI_AS(f, gni_vd);
    memcpy(&u, &f, sizeof u);
    over = GNI_AS((gni_vl)(gni_dabs(back) > gni_dabs(x)) & 1, gni_vl4);
    cut = GNI_AS((gni_vl)(back != x) & (gni_vl)(x == x) & 1, gni_vl4);
    return (u - over) | cut;
}
GNI_CONVERT(gni_wide_store_odd, float, double, gni_vd, const gni_vl4 y = GNI_FN(gni_wide_odd)(x), gni_round_odd(x))
#undef GNI_CONVERT
#define GNI_BY_32(name, FIRST, SECOND, FROM, TO)                                                   \
    static void GNI_FN(name)(void *dst, const void *src, int64_t n) {                              \
        int32_t between[256];                                                                      \
        for (int64_t i = 0; i < n; i += 256) {                                                     \
            const int64_t m = GNI_MIN(n - i, 256);                                                 \
            GNI_FN(FIRST)(between, (const char *)src + i * FROM, m);                               \
            GNI_FN(SECOND)((char *)dst + i * TO, between, m);                                      \
        }                                                                                          \
    }
GNI_BY_32(gni_wide_load_f16, gni_load_f16, gni_wide_load_f32, 2, 8)
GNI_BY_32(gni_wide_load_bf16, gni_load_bf16, gni_wide_load_f32, 2, 8)
GNI_BY_32(gni_wide_load_i16, gni_load_i16, gni_wide_load_i32, 2, 8)
GNI_BY_32(gni_wide_load_u16, gni_load_u16, gni_wide_load_i32, 2, 8)
GNI_BY_32(gni_wide_load_i8, gni_load_i8, gni_wide_load_i32, 1, 8)
GNI_BY_32(gni_wide_load_u8, gni_load_u8, gni_wide_load_i32, 1, 8)
GNI_BY_32(gni_wide_store_f16, gni_wide_store_odd, gni_store_f16, 8, 2)
GNI_BY_32(gni_wide_store_bf16, gni_wide_store_odd, gni_store_bf16, 8, 2)
GNI_BY_32(gni_wide_store_16, gni_wide_store_32, gni_store_16, 8, 2)
GNI_BY_32(gni_wide_store_8, gni_wide_store_32, gni_store_u8, 8, 1)
#if defined(GNI_PASS_AVX2) || defined(GNI_PASS_AVX512)
static void GNI_FN(gni_wide_store_bool)(void *dst, const void *src, int64_t n) {
    const int64_t *s = (const int64_t *)src;
    uint8_t *d = (uint8_t *)dst;
    int64_t i = 0;
#if defined(GNI_PASS_AVX512)
    for (; i + 8 <= n; i += 8) {
        const __m512i v = _mm512_loadu_si512((const void *)(s + i));
        _mm_storel_epi64((__m128i *)(void *)(d + i), _mm512_cvtepi64_epi8(_mm512_min_epu64(v, _mm512_set1_epi64(1))));
    }
#else
    // Masks of 64 bits packed to 32, 16 and 8: of each half of the vectors two items side by side, which the last step puts
    // in turns.
    for (; i + 32 <= n; i += 32) {
        __m256i m[8];
        GNI_FT_UNROLL
        for (int k = 0; k < 8; k++)
            m[k] = _mm256_cmpeq_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(s + i + 4 * k)),
                                      _mm256_setzero_si256());
        GNI_FT_UNROLL
        for (int k = 0; k < 4; k++) m[k] = _mm256_packs_epi32(m[2 * k], m[2 * k + 1]);
        m[0] = _mm256_packs_epi16(_mm256_packs_epi32(m[0], m[1]), _mm256_packs_epi32(m[2], m[3]));
        m[0] = _mm256_andnot_si256(m[0], _mm256_set1_epi8(1));
        const __m128i low = _mm256_castsi256_si128(m[0]), high = _mm256_extracti128_si256(m[0], 1);
        _mm_storeu_si128((__m128i *)(void *)(d + i), _mm_unpacklo_epi16(low, high));
        _mm_storeu_si128((__m128i *)(void *)(d + i + 16), _mm_unpackhi_epi16(low, high));
    }
#endif
    for (; i < n; i++) d[i] = s[i] != 0;
}
#else
GNI_BY_32(gni_wide_store_bool, gni_wide_store_truth, gni_store_bool, 8, 1)
#endif
#undef GNI_BY_32

// By dtype: F32, F16, BF16, F64, I32, I64, U8, I8, U32, BOOL, C64, C128, I16, U16, U64.
static const gni_convert_fn GNI_FN(gni_wide_load_table)[GN_DTYPE_COUNT] = {
    GNI_FN(gni_wide_load_f32), GNI_FN(gni_wide_load_f16), GNI_FN(gni_wide_load_bf16), NULL, GNI_FN(gni_wide_load_i32),
    NULL, GNI_FN(gni_wide_load_u8), GNI_FN(gni_wide_load_i8), GNI_FN(gni_wide_load_u32), GNI_FN(gni_wide_load_u8), NULL,
    NULL, GNI_FN(gni_wide_load_i16), GNI_FN(gni_wide_load_u16), NULL};
static const gni_convert_fn GNI_FN(gni_wide_store_table)[GN_DTYPE_COUNT] = {
    GNI_FN(gni_wide_store_f32), GNI_FN(gni_wide_store_f16), GNI_FN(gni_wide_store_bf16), NULL,
    GNI_FN(gni_wide_store_32), NULL, GNI_FN(gni_wide_store_8), GNI_FN(gni_wide_store_8), GNI_FN(gni_wide_store_32),
    GNI_FN(gni_wide_store_bool), NULL, NULL, GNI_FN(gni_wide_store_16), GNI_FN(gni_wide_store_16), NULL};

// ---- folds of contiguous elements

// Every `step`th of n numbers to d + e. In each pass, as code of another one may wait for what this one left in registers.
static GNI_NOINLINE void GNI_FN(gni_wide_add)(double *d, double *e, const double *x, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; i++) gni_acc_add(d, e, x[i * step]);
}

// 16 running sums whatever the width of a vector, as many of them as fit in each: the same bits from every pass.
static void GNI_FN(gni_wide_fold_sum_f)(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    const int parts = at == GNI_PAIRS_AT ? 2 : 1;
    for (int64_t i = 0; i < n; i += 256) {
        const double *p = (const double *)x + i;
        int64_t m = GNI_MIN(n - i, 256), k = 0;
        gni_vd v[16 / GNI_DW];
        double s[GNI_MAX(GNI_DW, 2)];
        GNI_FT_UNROLL
        for (int g = 0; g < 16 / GNI_DW; g++) v[g] = gni_dset(0.0);
        for (; k + 16 <= m; k += 16)
            GNI_FT_UNROLL
            for (int g = 0; g < 16 / GNI_DW; g++) v[g] += gni_dload(p, k + g * GNI_DW);
        if (k < m) {
            double last[16] = {0.0};
            memcpy(last, p + k, (size_t)(m - k) * sizeof(double));
            GNI_FT_UNROLL
            for (int g = 0; g < 16 / GNI_DW; g++) v[g] += gni_dload(last, g * GNI_DW);
        }
        GNI_FT_UNROLL
        for (int h = 8 / GNI_DW; h > (GNI_DW > 1 ? 0 : 1); h /= 2)
            GNI_FT_UNROLL
            for (int g = 0; g < h; g++) v[g] += v[g + h];
        memcpy(s, v, sizeof s);
        GNI_FT_UNROLL
        for (int h = GNI_DW / 2; h > 1; h /= 2)
            GNI_FT_UNROLL
            for (int j = 0; j < h; j++) s[j] += s[j + h];
        if (parts == 1) s[0] += s[1];
        for (int j = 0; j < parts; j++) {
            const bool exact = s[j] - s[j] == 0.0;
            GNI_FN(gni_wide_add)(&acc[j].d, &acc[j].e, exact ? s + j : p + j, exact ? 1 : m / parts, parts);
        }
    }
}
static GNI_NOINLINE void GNI_FN(gni_wide_multiply)(gni_acc *acc, const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) gni_acc_multiply(&acc->d, &acc->e, x[i]);
}

// 16 running products; where one of them leaves 2^-512 to 2^512 in some numbers, these are taken one by one.
static void GNI_FN(gni_wide_fold_prod_f)(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    double s[16];
    GNI_UNUSED(at);
    for (int j = 0; j < 16; j++) s[j] = 1.0;
    for (int64_t i = 0; i < n; i += 512) {
        const double *p = (const double *)x + i;
        const int64_t m = GNI_MIN(n - i, 512), whole = m & ~(int64_t)15;
        uint64_t odds[GNI_DW], odd = 0;
        gni_vd v[16 / GNI_DW];
        gni_vq bits, tops;
        memset(&tops, 0, sizeof tops);
        memcpy(v, s, sizeof s);
        for (int64_t k = 0; k < whole; k += 16)
            GNI_FT_UNROLL
            for (int g = 0; g < 16 / GNI_DW; g++) {
                v[g] *= gni_dload(p, k + g * GNI_DW);
                memcpy(&bits, &v[g], sizeof bits);
                tops |= (bits << 1) - ((uint64_t)1 << 62);
            }
        memcpy(odds, &tops, sizeof odds);
        for (int k = 0; k < GNI_DW; k++) odd |= odds[k];
        const bool beyond = odd >> 63 != 0;
        if (beyond) {
            GNI_FN(gni_wide_multiply)(acc, s, 16);
            for (int j = 0; j < 16; j++) s[j] = 1.0;
        } else {
            memcpy(s, v, sizeof s);
        }
        GNI_FN(gni_wide_multiply)(acc, beyond ? p : p + whole, beyond ? m : m - whole);
    }
    GNI_FN(gni_wide_multiply)(acc, s, 16);
}
// The smallest or largest; NaN if there is one.
#define GNI_FOLD_EXTREME(name, T, V, load, pick, FIELD, OP, ODD, IF_ODD)                           \
    static void GNI_FN(name)(gni_acc *acc, const void *x, int64_t n, int64_t at) {                 \
        const T *p = (const T *)x;                                                                 \
        T t[4 * GNI_DW], most = acc->FIELD;                                                        \
        int64_t i = 0, odds[GNI_DW];                                                               \
        V s[4];                                                                                    \
        gni_vl odd;                                                                                \
        GNI_UNUSED(at);                                                                            \
        for (int k = 0; k < 4 * GNI_DW; k++) t[k] = most;                                          \
        memcpy(s, t, sizeof s);                                                                    \
        memset(&odd, 0, sizeof odd);                                                               \
        for (; i + 4 * GNI_DW <= n; i += 4 * GNI_DW)                                               \
            GNI_FT_UNROLL                                                                          \
            for (int k = 0; k < 4; k++) {                                                          \
                const V a = load(p, i + k * GNI_DW);                                               \
                s[k] = pick((gni_vl)(a OP s[k]), a, s[k]);                                         \
                odd |= (gni_vl)(ODD(a));                                                           \
            }                                                                                      \
        memcpy(t, s, sizeof t);                                                                    \
        memcpy(odds, &odd, sizeof odds);                                                           \
        for (int k = 0; k < 4 * GNI_DW; k++) most = t[k] OP most ? t[k] : most;                    \
        for (; i < n; i++) {                                                                       \
            most = p[i] OP most ? p[i] : most;                                                     \
            odds[0] |= (int64_t)(ODD(p[i]));                                                       \
        }                                                                                          \
        for (int k = 1; k < GNI_DW; k++) odds[0] |= odds[k];                                       \
        acc->FIELD = odds[0] != 0 ? IF_ODD : most;                                                 \
    }
// And its place: a block is searched only when it has something better.
#define GNI_FOLD_PLACE(name, T, FIELD, ODD)                                                        \
    static GNI_NOINLINE void GNI_FN(name)(gni_acc *acc, const void *x, int64_t n, int64_t at, gni_fold_fn extreme) { \
        const T *p = (const T *)x;                                                                 \
        for (int64_t i = 0; i < n && !(ODD(acc->FIELD)); i += GNI_SUM_BLOCK) {                     \
            const T before = acc->FIELD;                                                           \
            int64_t j = i;                                                                         \
            extreme(acc, p + i, GNI_MIN(n - i, GNI_SUM_BLOCK), 0);                                 \
            if (acc->FIELD == before) continue;                                                    \
            for (int found = 0; !(ODD(acc->FIELD)) && j + 8 <= n; j += 8) { /* eight for a branch */ \
                for (int k = 0; k < 8; k++) found |= p[j + k] == acc->FIELD;                       \
                if (found != 0) break;                                                             \
            }                                                                                      \
            while (!(p[j] == acc->FIELD || ODD(p[j]))) j++;                                        \
            acc->at = at + j;                                                                      \
        }                                                                                          \
    }
#define GNI_IS_NAN(x) ((x) != (x))
#define GNI_IS_NONE(x) ((x) & 0)
#define GNI_EXTREME_F(name, OP) \
    GNI_FOLD_EXTREME(name, double, gni_vd, gni_dload, gni_dpick, d, OP, GNI_IS_NAN, GNI_NAN)
#define GNI_EXTREME_I(name, OP) GNI_FOLD_EXTREME(name, int64_t, gni_vl, gni_lload, gni_lpick, i, OP, GNI_IS_NONE, 0)
GNI_EXTREME_F(gni_wide_fold_min_f, <)
GNI_EXTREME_F(gni_wide_fold_max_f, >)
GNI_EXTREME_I(gni_wide_fold_min_i, <)
GNI_EXTREME_I(gni_wide_fold_max_i, >)
GNI_FOLD_PLACE(gni_wide_fold_place_f, double, d, GNI_IS_NAN)
GNI_FOLD_PLACE(gni_wide_fold_place_i, int64_t, i, GNI_IS_NONE)
#define GNI_FOLD_PLACES(name, place, extreme)                                                      \
    static void GNI_FN(name)(gni_acc *acc, const void *x, int64_t n, int64_t at) {                 \
        GNI_FN(place)(acc, x, n, at, GNI_FN(extreme));                                             \
    }
GNI_FOLD_PLACES(gni_wide_fold_argmin_f, gni_wide_fold_place_f, gni_wide_fold_min_f)
GNI_FOLD_PLACES(gni_wide_fold_argmax_f, gni_wide_fold_place_f, gni_wide_fold_max_f)
GNI_FOLD_PLACES(gni_wide_fold_argmin_i, gni_wide_fold_place_i, gni_wide_fold_min_i)
GNI_FOLD_PLACES(gni_wide_fold_argmax_i, gni_wide_fold_place_i, gni_wide_fold_max_i)
#undef GNI_FOLD_PLACES
#undef GNI_FOLD_EXTREME
#undef GNI_FOLD_PLACE
#undef GNI_EXTREME_F
#undef GNI_EXTREME_I
#undef GNI_IS_NAN
#undef GNI_IS_NONE

// Sums or products of integers, which no order changes.
#define GNI_FOLD_RING(name, none, OP)                                                              \
    static void GNI_FN(name)(gni_acc *acc, const void *x, int64_t n, int64_t at) {                 \
        const uint64_t *p = (const uint64_t *)x;                                                   \
        uint64_t r = (uint64_t)acc->i, t[4 * GNI_DW];                                              \
        gni_vq s[4];                                                                               \
        int64_t i = 0;                                                                             \
        GNI_UNUSED(at);                                                                            \
        for (int k = 0; k < 4 * GNI_DW; k++) t[k] = none;                                          \
        memcpy(s, t, sizeof s);                                                                    \
        for (; i + 4 * GNI_DW <= n; i += 4 * GNI_DW)                                               \
            GNI_FT_UNROLL                                                                          \
            for (int k = 0; k < 4; k++) s[k] OP (gni_vq)gni_lload(p, i + k * GNI_DW);              \
        s[0] OP s[1], s[2] OP s[3], s[0] OP s[2];                                                  \
        memcpy(t, s, sizeof s[0]);                                                                 \
        for (int k = 0; k < GNI_DW; k++) r OP t[k];                                                \
        for (; i < n; i++) r OP p[i];                                                              \
        acc->i = (int64_t)r;                                                                       \
    }
GNI_FOLD_RING(gni_wide_fold_sum_i, 0, +=)
#if defined(GNI_PASS_AVX512)
GNI_FOLD_RING(gni_wide_fold_prod_i, 1, *=)
#else
static void GNI_FN(gni_wide_fold_prod_i)(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    const uint64_t *p = (const uint64_t *)x;
    uint64_t r = (uint64_t)acc->i, s = 1, t = 1, u = 1; // a product waits for the one before it
    int64_t i = 0;
    GNI_UNUSED(at);
    for (; i + 4 <= n; i += 4) r *= p[i], s *= p[i + 1], t *= p[i + 2], u *= p[i + 3];
    for (; i < n; i++) r *= p[i];
    acc->i = (int64_t)(r * s * (t * u));
}
#endif
#undef GNI_FOLD_RING
// Truth: all stops behind the first block with a 0, any behind one with something else.
#define GNI_FOLD_TRUTH(name, STOP, VALUE)                                                          \
    static GNI_NOINLINE void GNI_FN(name)(gni_acc *acc, const int64_t *p, int64_t n, int64_t mask) { \
        for (int64_t i = 0; i < n && acc->i != VALUE;) {                                           \
            const int64_t stop = GNI_MIN(i + 256, n);                                              \
            int64_t odds[GNI_DW];                                                                  \
            gni_vl odd;                                                                            \
            memset(&odd, 0, sizeof odd);                                                           \
            for (; i + GNI_DW <= stop; i += GNI_DW) odd |= (gni_vl)((gni_lload(p, i) & mask) STOP 0); \
            memcpy(odds, &odd, sizeof odds);                                                       \
            for (; i < stop; i++) odds[0] |= (p[i] & mask) STOP 0;                                 \
            for (int k = 0; k < GNI_DW; k++)                                                       \
                if (odds[k] != 0) acc->i = VALUE;                                                  \
        }                                                                                          \
    }
GNI_FOLD_TRUTH(gni_wide_fold_any, !=, 1)
GNI_FOLD_TRUTH(gni_wide_fold_all, ==, 0)
GNI_FOLD_TRUTHS(gni_wide_fold_any_f, gni_wide_fold_any, int64_t, INT64_MAX)
GNI_FOLD_TRUTHS(gni_wide_fold_any_i, gni_wide_fold_any, int64_t, -1)
GNI_FOLD_TRUTHS(gni_wide_fold_all_f, gni_wide_fold_all, int64_t, INT64_MAX)
GNI_FOLD_TRUTHS(gni_wide_fold_all_i, gni_wide_fold_all, int64_t, -1)
#undef GNI_FOLD_TRUTHS
#undef GNI_FOLD_TRUTH

#undef GNI_VALUES // which need no loops for unsigned numbers here
#define GNI_VALUES(op) GNI_TRUTH(op)
#define GNI_LOOP(op, d) GNI_FN(gni_wide_fold_##op##_##d)
static const gni_fold_fn GNI_FN(gni_wide_fold_table)[GNI_RED_COUNT * 3] = {GNI_FOLD_ROWS};
#undef GNI_LOOP

// ---- folds of columns

static void GNI_FN(gni_wide_columns_sum_f)(gni_acc_columns *acc, const void *x, int64_t rows,
                                   int64_t stride, int64_t n, int64_t at) {
    double t[GNI_BAND], *v = (double *)acc->v;
    GNI_UNUSED(at);
    for (int64_t r0 = 0; r0 < rows; r0 += GNI_COLUMN_BLOCK) {
        int64_t last = GNI_MIN(r0 + GNI_COLUMN_BLOCK, rows), whole = n & ~(int64_t)(GNI_DW - 1);
        for (int64_t c = 0; c < n; c++) t[c] = 0.0;
        for (int64_t r = r0; r < last;) {
            const bool four = r + 4 <= last; // rows at a time
            const int64_t step = four ? stride : 0;
            const double *p = (const double *)x + r * stride, *q = p + step, *u = q + step, *w = u + step;
            for (int64_t c = 0; c < whole && four; c += GNI_DW) {
                const gni_vd y =
                    gni_dload(t, c) + ((gni_dload(p, c) + gni_dload(q, c)) + (gni_dload(u, c) + gni_dload(w, c)));
                memcpy(t + c, &y, sizeof y);
            }
            for (int64_t c = four ? whole : n; c < n; c++) t[c] += (p[c] + q[c]) + (u[c] + w[c]);
            for (int64_t c = four ? n : 0; c < n; c++) t[c] += p[c];
            r += four ? 4 : 1;
        }
        for (int64_t c = 0; c < n;) {
            if (c + GNI_DW <= n) { // what gni_acc_add does (Knuth's way to the rest of the sum is without branches)
                const gni_vd a = gni_dload(v, c), y = gni_dload(t, c), sum = a + y, up = sum - a;
                const gni_vd rest = gni_dload(acc->e, c) + ((a - (sum - up)) + (y - up)), none = rest - rest;
                int64_t odds[GNI_DW], odd = 0;
                const gni_vl beyond = (gni_vl)(none != gni_dset(0.0));
                memcpy(odds, &beyond, sizeof odds);
                for (int k = 0; k < GNI_DW; k++) odd |= odds[k];
                if (odd == 0) {
                    memcpy(v + c, &sum, sizeof sum);
                    memcpy(acc->e + c, &rest, sizeof rest);
                    c += GNI_DW;
                    continue;
                }
            }
            for (const int64_t stop = GNI_MIN(c + GNI_DW, n); c < stop; c++) {
                const bool exact = t[c] - t[c] == 0.0;
                GNI_FN(gni_wide_add)
                (&v[c], &acc->e[c], exact ? &t[c] : (const double *)x + r0 * stride + c, exact ? 1 : last - r0, stride);
            }
        }
    }
}

// A vector of columns at a time, of up to eight rows; where a product leaves 2^-512 to 2^512, they are taken one by one.
static void GNI_FN(gni_wide_columns_prod_f)(gni_acc_columns *acc, const void *x, int64_t rows, int64_t stride, int64_t n,
                                            int64_t at) {
    double *v = (double *)acc->v;
    const double *p = (const double *)x;
    GNI_UNUSED(at);
    for (int64_t few; rows > 0; rows -= few, p += few * stride) {
        few = GNI_MIN(rows, 8);
        for (int64_t c = 0, some; c < n; c += some) {
            some = GNI_MIN(n - c, GNI_DW);
            uint64_t odds[GNI_DW], odd = 0;
            if (some == GNI_DW) {
                gni_vd y = gni_dload(v, c);
                gni_vq bits, tops;
                memset(&tops, 0, sizeof tops);
                for (int64_t k = 0; k < few; k++) {
                    y *= gni_dload(p + k * stride, c);
                    memcpy(&bits, &y, sizeof bits);
                    tops |= (bits << 1) - ((uint64_t)1 << 62);
                }
                memcpy(odds, &tops, sizeof odds);
                for (int j = 0; j < GNI_DW; j++) odd |= odds[j];
                if (odd >> 63 == 0) {
                    memcpy(v + c, &y, sizeof y);
                    continue;
                }
            }
            for (int64_t j = c; j < c + some; j++)
                for (int64_t k = 0; k < few; k++) gni_acc_multiply(&v[j], &acc->e[j], p[k * stride + j]);
        }
    }
}

// A vector of columns at a time, of up to four rows: v from v and y.
#define GNI_COLUMNS_V(name, T, V, load, E, ONE)                                                    \
    static void GNI_FN(name)(gni_acc_columns *acc, const void *x, int64_t rows, int64_t stride, int64_t n, int64_t at) { \
        T *r = (T *)acc->v;                                                                        \
        GNI_UNUSED(at);                                                                            \
        for (const T *p = (const T *)x; rows > 0; rows -= 4, p += 4 * stride) {                    \
            const int64_t few = GNI_MIN(rows, 4);                                                  \
            int64_t c = 0;                                                                         \
            for (; c + GNI_DW <= n; c += GNI_DW) {                                                 \
                V v = load(r, c);                                                                  \
                for (int64_t k = 0; k < few; k++) {                                                \
                    const V y = load(p + k * stride, c);                                           \
                    v = (E);                                                                       \
                }                                                                                  \
                memcpy(r + c, &v, sizeof v);                                                       \
            }                                                                                      \
            for (; c < n; c++)                                                                     \
                for (int64_t k = 0; k < few; k++) {                                                \
                    const T v = r[c], y = p[k * stride + c];                                       \
                    r[c] = (ONE);                                                                  \
                }                                                                                  \
        }                                                                                          \
    }
GNI_COLUMNS_V(gni_wide_columns_min_f, double, gni_vd, gni_dload,
              gni_dpick((gni_vl)(y < v) | (gni_vl)(y != y), y, v), y < v || y != y ? y : v)
GNI_COLUMNS_V(gni_wide_columns_max_f, double, gni_vd, gni_dload,
              gni_dpick((gni_vl)(y > v) | (gni_vl)(y != y), y, v), y > v || y != y ? y : v)
GNI_COLUMNS_V(gni_wide_columns_min_i, int64_t, gni_vl, gni_lload, gni_lpick(y < v, y, v), y < v ? y : v)
GNI_COLUMNS_V(gni_wide_columns_max_i, int64_t, gni_vl, gni_lload, gni_lpick(y > v, y, v), y > v ? y : v)
GNI_COLUMNS_V(gni_wide_columns_sum_i, int64_t, gni_vl, gni_lload, (gni_vl)((gni_vq)v + (gni_vq)y),
              (int64_t)((uint64_t)v + (uint64_t)y))
#undef GNI_COLUMNS_V
GNI_COLUMNS(gni_wide_columns_argmin_f, double, double, 1,
            GNI_PLACE_STEP(v[c] == v[c] && (y < v[c] || y != y)))
GNI_COLUMNS(gni_wide_columns_argmax_f, double, double, 1,
            GNI_PLACE_STEP(v[c] == v[c] && (y > v[c] || y != y)))
GNI_COLUMNS(gni_wide_columns_prod_i, int64_t, uint64_t, GNI_SOME, v[c] *= (uint64_t)y)
GNI_COLUMNS(gni_wide_columns_argmin_i, int64_t, int64_t, 1, GNI_PLACE_STEP(y < v[c]))
GNI_COLUMNS(gni_wide_columns_argmax_i, int64_t, int64_t, 1, GNI_PLACE_STEP(y > v[c]))
GNI_COLUMNS(gni_wide_columns_any, int64_t, int32_t, GNI_SOME, v[c] |= (int32_t)((y & at) != 0))
GNI_COLUMNS(gni_wide_columns_all, int64_t, int32_t, GNI_SOME, v[c] &= (int32_t)((y & at) != 0))
GNI_COLUMNS_TRUTH(gni_wide_columns_any_f, gni_wide_columns_any, INT64_MAX)
GNI_COLUMNS_TRUTH(gni_wide_columns_any_i, gni_wide_columns_any, -1)
GNI_COLUMNS_TRUTH(gni_wide_columns_all_f, gni_wide_columns_all, INT64_MAX)
GNI_COLUMNS_TRUTH(gni_wide_columns_all_i, gni_wide_columns_all, -1)
#undef GNI_COLUMNS
#undef GNI_COLUMNS_TRUTH
#undef GNI_PLACE_STEP

#define GNI_LOOP(op, d) GNI_FN(gni_wide_columns_##op##_##d)
static const gni_fold_columns_fn GNI_FN(gni_wide_columns_table)[GNI_RED_COUNT * 3] = {GNI_FOLD_ROWS};
#undef GNI_LOOP
#undef GNI_FOLD_ROWS
#undef GNI_FOLD_ROW_AXES
#undef GNI_FOLD_ROW_PLACE
#undef GNI_VALUES
#undef GNI_TRUTH

// ---- softmax

// exp(x - most) times a factor.
static void GNI_FN(gni_wide_exps)(double *y, const double *x, int64_t n, double most, double factor) {
    int64_t i = 0;
#ifdef GNI_WIDE_MATH
    for (gni_vd e; i < n; i += GNI_DW) {
        double some[GNI_DW] = {0.0};
        const bool whole = i + GNI_DW <= n;
        if (!whole) memcpy(some, x + i, (size_t)(n - i) * sizeof(double)); // the same function for the last ones
        e = gni_dexp(gni_dload(whole ? x + i : some, 0) - most) * factor;
        memcpy(some, &e, sizeof e);
        memcpy(y + i, some, (size_t)GNI_MIN(n - i, GNI_DW) * sizeof(double));
    }
#else
    for (; i < n; i++) y[i] = exp(x[i] - most) * factor;
#endif
}
static gni_softmax_part GNI_FN(gni_wide_softmax_stats)(void *dst, const void *src, int64_t n) {
    const double *x = (const double *)src;
    double *y = (double *)dst, low = 0.0;
    gni_softmax_part part;
    gni_acc acc = {0, 0, 0, 0};
    acc.d = -GNI_INF;
    GNI_FN(gni_wide_fold_max_f)(&acc, x, n, 0);
    part.most = acc.d;
    part.sum = part.most < GNI_INF ? 0.0 : GNI_NAN;
    bool terms = part.most < GNI_INF && part.most > -GNI_INF;
    double e[256];
    for (int64_t i = 0; i < n; i += 256) {
        const int64_t m = GNI_MIN(n - i, 256);
        acc.d = part.sum;
        acc.e = low;
        if (terms) GNI_FN(gni_wide_exps)(e, x + i, m, part.most, 1.0);
        else memset(e, 0, sizeof e);
        if (terms) GNI_FN(gni_wide_fold_sum_f)(&acc, e, m, 0);
        part.sum = acc.d;
        low = acc.e;
        if (y != NULL) memcpy(y + i, e, (size_t)m * sizeof(double));
    }
    part.sum += low;
    return part;
}
static void GNI_FN(gni_wide_softmax_scale)(void *dst, const void *src, int64_t n, double factor) {
    for (int64_t i = 0; i < n; i++) ((double *)dst)[i] = ((const double *)src)[i] * factor;
}
static void GNI_FN(gni_wide_softmax_emit)(void *dst, const void *src, int64_t n, double most,
                                  double factor) {
    GNI_FN(gni_wide_exps)((double *)dst, (const double *)src, n, most, factor);
}
static void GNI_FN(gni_wide_softmax_emit_log)(void *dst, const void *src, int64_t n, double most,
                                      double low) {
    for (int64_t i = 0; i < n; i++) ((double *)dst)[i] = ((const double *)src)[i] - most - low;
}
GNI_TABLE gni_softmax_fns GNI_FN(gni_wide_softmax_table) = {
    GNI_FN(gni_wide_softmax_stats), GNI_FN(gni_wide_softmax_scale), GNI_FN(gni_wide_softmax_emit),
    GNI_FN(gni_wide_softmax_emit_log), NULL};

// ---- complex numbers as they lie in memory

#if GNI_VW > 1 && !defined(GNI_WASM) // in a page these would take bytes: parts do it there
#define GNI_LANES_2(F) F(0), F(1)
#define GNI_LANES_4(F) GNI_LANES_2(F), F(2), F(3)
#define GNI_LANES_8(F) GNI_LANES_4(F), F(4), F(5), F(6), F(7)
#define GNI_LANES_16(F) GNI_LANES_8(F), F(8), F(9), F(10), F(11), F(12), F(13), F(14), F(15)
#if GNI_VW == 4
#define GNI_LANES_F GNI_LANES_4
#define GNI_LANES_D GNI_LANES_2
#elif GNI_VW == 8
#define GNI_LANES_F GNI_LANES_8
#define GNI_LANES_D GNI_LANES_4
#else
#define GNI_LANES_F GNI_LANES_16
#define GNI_LANES_D GNI_LANES_8
#endif
#define GNI_LANE_RE(l) (l) / 2 * 2
#define GNI_LANE_IM(l) (l) / 2 * 2 + 1
#define GNI_LANE_OTHER(l) (l) / 2 * 2 + 1 - (l) % 2
#define GNI_LANE_IS_RE(l) 1 - (l) % 2
#if defined(__clang__)
#define GNI_PAIR_LANES(y, v, VI, LANES, F) y = __builtin_shufflevector(v, v, LANES(F));
#else
#define GNI_PAIR_LANES(y, v, VI, LANES, F)                                                         \
    {                                                                                              \
        const VI lanes = {LANES(F)};                                                               \
        y = __builtin_shuffle(v, lanes);                                                           \
    }
#endif
// The bits are those of the same sums and products of parts.
#define GNI_PAIR_KERNELS(product, conjugate, dot, T, V, VI, LANES)                                 \
    static void GNI_FN(product)(void *dst, const void *pa, const void *pb, const void *pc, int n) { \
        const VI is_re = {LANES(GNI_LANE_IS_RE)}, sign = is_re << (8 * (int)sizeof(T) - 1);        \
        GNI_UNUSED(pc);                                                                            \
        for (int i = 0; i < n; i += (int)(sizeof(V) / sizeof(T))) {                                \
            V a, b, re, im, other;                                                                 \
            memcpy(&a, (const T *)pa + i, sizeof a), memcpy(&b, (const T *)pb + i, sizeof b);      \
            GNI_PAIR_LANES(re, a, VI, LANES, GNI_LANE_RE)                                          \
            GNI_PAIR_LANES(im, a, VI, LANES, GNI_LANE_IM)                                          \
            GNI_PAIR_LANES(other, b, VI, LANES, GNI_LANE_OTHER)                                    \
            re = re * b;                                                                           \
            im = im * other;                                                                       \
            re = re + (V)((VI)im ^ sign);                                                          \
            memcpy((T *)dst + i, &re, sizeof re);                                                  \
        }                                                                                          \
    }                                                                                              \
    static void GNI_FN(conjugate)(void *dst, const void *pa, const void *pb, const void *pc, int n) { \
        const VI is_re = {LANES(GNI_LANE_IS_RE)}, sign = (is_re ^ 1) << (8 * (int)sizeof(T) - 1);  \
        GNI_UNUSED(pb);                                                                            \
        GNI_UNUSED(pc);                                                                            \
        for (int i = 0; i < n; i += (int)(sizeof(V) / sizeof(T))) {                                \
            VI a;                                                                                  \
            memcpy(&a, (const T *)pa + i, sizeof a);                                               \
            a ^= sign;                                                                             \
            memcpy((T *)dst + i, &a, sizeof a);                                                    \
        }                                                                                          \
    }                                                                                              \
    static void GNI_FN(dot)(void *dst, const void *pa, const void *pb, const void *pc, int n) {    \
        V a, b, other, same = {0}, cross = same;                                                   \
        GNI_UNUSED(pc);                                                                            \
        for (int i = 0; i < n; i += (int)(sizeof(V) / sizeof(T))) {                                \
            memcpy(&a, (const T *)pa + i, sizeof a), memcpy(&b, (const T *)pb + i, sizeof b);      \
            GNI_PAIR_LANES(other, b, VI, LANES, GNI_LANE_OTHER)                                    \
            same += a * b;                                                                         \
            cross += a * other;                                                                    \
        }                                                                                          \
        memcpy(dst, &same, sizeof same), memcpy((char *)dst + 64, &cross, sizeof cross);           \
    }
// Smith's quotient as gni_complex_div makes it of parts: `real` where the real part of b is the larger one.
#define GNI_PAIR_QUOTIENT(quotient, T, V, VI, LANES, FMA)                                          \
    static void GNI_FN(quotient)(void *dst, const void *pa, const void *pb, const void *pc, int n) { \
        const VI is_re = {LANES(GNI_LANE_IS_RE)}, odd = is_re - 1, sign = (is_re | 1) << (8 * (int)sizeof(T) - 1); \
        GNI_UNUSED(pc);                                                                            \
        for (int i = 0; i < n; i += (int)(sizeof(V) / sizeof(T))) {                                \
            VI a, b, ar, ai, br, bi, x, y, most, least;                                            \
            memcpy(&a, (const T *)pa + i, sizeof a), memcpy(&b, (const T *)pb + i, sizeof b);      \
            GNI_PAIR_LANES(ar, a, VI, LANES, GNI_LANE_RE)                                          \
            GNI_PAIR_LANES(ai, a, VI, LANES, GNI_LANE_IM)                                          \
            GNI_PAIR_LANES(br, b, VI, LANES, GNI_LANE_RE)                                          \
            GNI_PAIR_LANES(bi, b, VI, LANES, GNI_LANE_IM)                                          \
            const VI real = (VI)((V)(br & ~sign) >= (V)(bi & ~sign)), turn = real ^ odd;           \
            most = (br & real) | (bi & ~real);                                                     \
            least = (bi & real) | (br & ~real);                                                    \
            x = (ai & turn) | (ar & ~turn);                                                        \
            y = (ar & turn) | (ai & ~turn);                                                        \
            const V size = (V)most, ratio = (V)((VI)((V)least / size) & (VI)((VI)size << 1 != 0)); \
            const V scale = FMA((V)least, ratio, size), z = FMA((V)x, (V)((VI)ratio ^ (odd & sign)), (V)y); \
            const V q = (V)((VI)z ^ (turn & odd & sign)) / scale;                                  \
            memcpy((T *)dst + i, &q, sizeof q);                                                    \
        }                                                                                          \
    }
#if GNI_VW > 4
GNI_PAIR_QUOTIENT(gni_pair_quotient, float, gni_vf, gni_vi, GNI_LANES_F, gni_vfma)
GNI_PAIR_QUOTIENT(gni_wide_pair_quotient, double, gni_vd, gni_vl, GNI_LANES_D, gni_dfma)
#define GNI_QUOTIENTS(name) &GNI_FN(name)
#endif
GNI_PAIR_KERNELS(gni_pair_product, gni_pair_conj, gni_pair_dot, float, gni_vf, gni_vi, GNI_LANES_F)
GNI_PAIR_KERNELS(gni_wide_pair_product, gni_wide_pair_conj, gni_wide_pair_dot, double, gni_vd, gni_vl, GNI_LANES_D)
#define GNI_PAIRS(name) &GNI_FN(name)
#undef GNI_LANES_2
#undef GNI_LANES_4
#undef GNI_LANES_8
#undef GNI_LANES_16
#undef GNI_LANES_F
#undef GNI_LANES_D
#undef GNI_LANE_RE
#undef GNI_LANE_IM
#undef GNI_LANE_OTHER
#undef GNI_LANE_IS_RE
#undef GNI_PAIR_LANES
#undef GNI_PAIR_KERNELS
#undef GNI_PAIR_QUOTIENT
#else
#define GNI_PAIRS(name) NULL
#endif
#if GNI_VW <= 4 || defined(GNI_WASM) // without multiply-adds
#define GNI_QUOTIENTS(name) NULL
#endif

#if GNI_VW > 4
static void GNI_FN(gni_fill)(void *dst, uint64_t word, int64_t bytes) {
    const gni_vq none = {0}, v = none + word;
    const int64_t size = (int64_t)sizeof v;
    char *d = (char *)dst;
    int64_t i = 0;
    for (; i + size <= bytes; i += size) memcpy(d + i, &v, sizeof v);
    if (i == bytes) return;
    if (bytes < size) memcpy(d, &v, (size_t)bytes);
    else memcpy(d + bytes - size, &v, sizeof v);
}
#define GNI_FILL &GNI_FN(gni_fill)
#else
#define GNI_FILL NULL
#endif

static const gni_cpu_isa GNI_FN(gni_wide_table) = {
    NULL, GNI_FN(gni_wide_load_table), GNI_FN(gni_wide_store_table), GNI_FN(gni_wide_fold_table),
    GNI_FN(gni_wide_columns_table), NULL, GNI_FILL, NULL, NULL, NULL, NULL, GNI_PAIRS(gni_wide_pair_product),
    GNI_PAIRS(gni_wide_pair_conj), GNI_QUOTIENTS(gni_wide_pair_quotient), GNI_PAIRS(gni_wide_pair_dot), NULL, NULL};

GNI_TABLE gni_cpu_isa GNI_FN(gni_isa_table) = {
    GNI_FN(gni_kernels_narrow),  GNI_FN(gni_load_table),    GNI_FN(gni_store_table),
    GNI_FN(gni_fold_table),      GNI_FN(gni_columns_table), GNI_FN(gni_stream),
    GNI_FILL,                    GNI_FN(gni_norm_sums),     GNI_FN(gni_norm_write),
    GNI_FN(gni_norm_add),        GNI_FN(gni_net),           GNI_PAIRS(gni_pair_product),
    GNI_PAIRS(gni_pair_conj),
    GNI_QUOTIENTS(gni_pair_quotient), GNI_PAIRS(gni_pair_dot), &GNI_FN(gni_wide_table), GNI_FN(gni_wide_kernel)};
#undef GNI_QUOTIENTS
#undef GNI_PAIRS
#undef GNI_FILL
