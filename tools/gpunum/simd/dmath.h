// >>dmath
// Vectors of 64-bit lanes; and the float64 functions of the passes that have fused multiply-adds: gni_dexp, gni_dsin, ...
// The methods are room `vmath`'s with longer polynomials (tools/fit_math.py) and, where float64 has no room to spare,
// results kept in two parts (Dekker 1971). The other passes leave these functions to the C library.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/tables.h"
#endif

// ---- vectors of GNI_DW lanes

#define gni_vd GNI_FN(gni_vecd)
#define gni_vl GNI_FN(gni_vecl)
#define gni_vq GNI_FN(gni_vecq)
#define gni_dload GNI_FN(gni_w_dload)
#define gni_lload GNI_FN(gni_w_lload)
#define gni_dset GNI_FN(gni_w_dset)
#define gni_dabs GNI_FN(gni_w_dabs)
#define gni_dpick GNI_FN(gni_w_dpick)
#define gni_lpick GNI_FN(gni_w_lpick)
#if GNI_VW == 1
#define GNI_DW 1
typedef double gni_vd;
typedef int64_t gni_vl;
typedef uint64_t gni_vq;
GNI_INLINE gni_vd gni_dabs(gni_vd x) { return fabs(x); }
GNI_INLINE gni_vd gni_dpick(gni_vl m, gni_vd a, gni_vd b) { return m != 0 ? a : b; }
GNI_INLINE gni_vl gni_lpick(gni_vl m, gni_vl a, gni_vl b) { return m != 0 ? a : b; }
#else
#define GNI_DW (GNI_VW / 2)
typedef double gni_vd __attribute__((vector_size(GNI_DW * 8)));
typedef int64_t gni_vl __attribute__((vector_size(GNI_DW * 8)));
typedef uint64_t gni_vq __attribute__((vector_size(GNI_DW * 8)));
GNI_INLINE gni_vd gni_dabs(gni_vd x) { return (gni_vd)((gni_vl)x & INT64_MAX); }
GNI_INLINE gni_vl gni_lpick(gni_vl m, gni_vl a, gni_vl b) { return (m & a) | (~m & b); }
GNI_INLINE gni_vd gni_dpick(gni_vl m, gni_vd a, gni_vd b) { return (gni_vd)gni_lpick(m, (gni_vl)a, (gni_vl)b); }
#endif
// Vectors of as many 32-bit numbers, and from one type to another.
#if GNI_VW == 1
#define GNI_AS(x, V) ((V)(x))
#else
#define GNI_AS(x, V) __builtin_convertvector(x, V)
#endif
#define gni_vd4 GNI_FN(gni_vecd4)
#define gni_vl4 GNI_FN(gni_vecl4)
#define gni_vq4 GNI_FN(gni_vecq4)
#if GNI_VW == 1
typedef float gni_vd4;
typedef int32_t gni_vl4;
typedef uint32_t gni_vq4;
#else
typedef float gni_vd4 __attribute__((vector_size(GNI_DW * 4)));
typedef int32_t gni_vl4 __attribute__((vector_size(GNI_DW * 4)));
typedef uint32_t gni_vq4 __attribute__((vector_size(GNI_DW * 4)));
#endif
GNI_INLINE gni_vd gni_dset(double x) {
    const gni_vd zero = {0};
    return x - zero;
}
GNI_INLINE gni_vd gni_dload(const void *p, int64_t i) {
    gni_vd r;
    memcpy(&r, (const double *)p + i, sizeof r);
    return r;
}
GNI_INLINE gni_vl gni_lload(const void *p, int64_t i) {
    gni_vl r;
    memcpy(&r, (const int64_t *)p + i, sizeof r);
    return r;
}

#if defined(GNI_PASS_AVX2) || defined(GNI_PASS_AVX512)

#define gni_dfma GNI_FN(gni_dm_fma)
#define gni_dfnma GNI_FN(gni_dm_fnma)
#define gni_dmin GNI_FN(gni_dm_min)
#define gni_dmax GNI_FN(gni_dm_max)
#define gni_dsqrt GNI_FN(gni_dm_sqrt)
#define gni_drint GNI_FN(gni_dm_rint)
#define gni_dfloor GNI_FN(gni_dm_floor)
#define gni_dceil GNI_FN(gni_dm_ceil)
#define gni_dtrunc GNI_FN(gni_dm_trunc)
#define gni_dany GNI_FN(gni_dm_any)
#define gni_dcopysign GNI_FN(gni_dm_copysign)
#define gni_dratio GNI_FN(gni_dm_ratio)
#define gni_dpoly(z, c) GNI_FN(gni_dm_poly)(z, c, (int)(sizeof(c) / sizeof(c)[0]))
#ifdef GNI_PASS_AVX512
GNI_INLINE gni_vd gni_dfma(gni_vd a, gni_vd b, gni_vd c) {
    return (gni_vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
GNI_INLINE gni_vd gni_dfnma(gni_vd a, gni_vd b, gni_vd c) {
    return (gni_vd)_mm512_fnmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
// NaN in x wins.
GNI_INLINE gni_vd gni_dmin(gni_vd x, double most) { return (gni_vd)_mm512_min_pd(_mm512_set1_pd(most), (__m512d)x); }
GNI_INLINE gni_vd gni_dmax(gni_vd x, double least) { return (gni_vd)_mm512_max_pd(_mm512_set1_pd(least), (__m512d)x); }
GNI_INLINE gni_vd gni_dsqrt(gni_vd x) { return (gni_vd)_mm512_sqrt_pd((__m512d)x); }
GNI_INLINE gni_vd gni_drint(gni_vd x) { return (gni_vd)_mm512_roundscale_pd((__m512d)x, 0x8); }
GNI_INLINE gni_vd gni_dfloor(gni_vd x) { return (gni_vd)_mm512_roundscale_pd((__m512d)x, 0x9); }
GNI_INLINE gni_vd gni_dceil(gni_vd x) { return (gni_vd)_mm512_roundscale_pd((__m512d)x, 0xa); }
GNI_INLINE gni_vd gni_dtrunc(gni_vd x) { return (gni_vd)_mm512_roundscale_pd((__m512d)x, 0xb); }
GNI_INLINE int gni_dany(gni_vl m) { return _mm512_movepi64_mask((__m512i)m) != 0; }
#else
GNI_INLINE gni_vd gni_dfma(gni_vd a, gni_vd b, gni_vd c) {
    return (gni_vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
GNI_INLINE gni_vd gni_dfnma(gni_vd a, gni_vd b, gni_vd c) {
    return (gni_vd)_mm256_fnmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
// NaN in x wins.
GNI_INLINE gni_vd gni_dmin(gni_vd x, double most) { return (gni_vd)_mm256_min_pd(_mm256_set1_pd(most), (__m256d)x); }
GNI_INLINE gni_vd gni_dmax(gni_vd x, double least) { return (gni_vd)_mm256_max_pd(_mm256_set1_pd(least), (__m256d)x); }
GNI_INLINE gni_vd gni_dsqrt(gni_vd x) { return (gni_vd)_mm256_sqrt_pd((__m256d)x); }
GNI_INLINE gni_vd gni_drint(gni_vd x) { return (gni_vd)_mm256_round_pd((__m256d)x, 0x8); }
GNI_INLINE gni_vd gni_dfloor(gni_vd x) { return (gni_vd)_mm256_round_pd((__m256d)x, 0x9); }
GNI_INLINE gni_vd gni_dceil(gni_vd x) { return (gni_vd)_mm256_round_pd((__m256d)x, 0xa); }
GNI_INLINE gni_vd gni_dtrunc(gni_vd x) { return (gni_vd)_mm256_round_pd((__m256d)x, 0xb); }
GNI_INLINE int gni_dany(gni_vl m) { return _mm256_movemask_pd((__m256d)m) != 0; }
#endif
GNI_INLINE gni_vd gni_dcopysign(gni_vd x, gni_vd s) { return (gni_vd)(((gni_vl)x & INT64_MAX) | ((gni_vl)s & INT64_MIN)); }
// c[0] + c[1] z + c[2] z^2 + ...
GNI_INLINE gni_vd GNI_FN(gni_dm_poly)(gni_vd z, const double *c, int n) {
    gni_vd p = gni_dset(c[n - 1]);
    GNI_FT_UNROLL
    for (int i = n - 2; i >= 0; i--) p = gni_dfma(p, z, gni_dset(c[i]));
    return p;
}

// (a + ar) / (b + br), ar and br being small.
GNI_INLINE gni_vd gni_dratio(gni_vd a, gni_vd ar, gni_vd b, gni_vd br) {
    const gni_vd one = 1.0 / b, y = a * one;
    return gni_dfma(gni_dfnma(y, b, a) + gni_dfnma(y, br, ar), one, y);
}

// ---- exp and its kin

#define gni_dreduce GNI_FN(gni_dm_reduce)
#define gni_dpow2 GNI_FN(gni_dm_pow2)
#define gni_dscale GNI_FN(gni_dm_scale)
#define gni_dexp_rest GNI_FN(gni_dm_exp_rest)
#define gni_dexpm1_part GNI_FN(gni_dm_expm1_part)
#define gni_dexp GNI_FN(gni_dm_exp)
#define gni_dexp2 GNI_FN(gni_dm_exp2)
#define gni_dexpm1 GNI_FN(gni_dm_expm1)
#define gni_dtanh GNI_FN(gni_dm_tanh)
#define gni_dsinh GNI_FN(gni_dm_sinh)
#define gni_dcosh GNI_FN(gni_dm_cosh)
#define gni_dsigmoid GNI_FN(gni_dm_sigmoid)
// Adding this leaves x, rounded to an integer, in the low bits of the sum; |x| < 2^51.
#define GNI_D_MAGIC 6755399441055744.0

// 2^n for t = GNI_D_MAGIC + n, -1022 <= n <= 1023.
GNI_INLINE gni_vd gni_dpow2(gni_vd t) { return (gni_vd)(((gni_vq)t << 52) + 0x3ff0000000000000u); }
// y 2^n, n an integer; one rounding when the result is subnormal.
GNI_INLINE gni_vd gni_dscale(gni_vd y, gni_vd n) {
#ifdef GNI_PASS_AVX512
    return (gni_vd)_mm512_scalef_pd((__m512d)y, (__m512d)n);
#else
    const gni_vd t = n * 0.5 + GNI_D_MAGIC, half = t - GNI_D_MAGIC;
    return y * gni_dpow2(t) * gni_dpow2((n - half) + GNI_D_MAGIC);
#endif
}
// x = n ln 2 + r, |r| <= ln(2)/2.
GNI_INLINE gni_vd gni_dreduce(gni_vd x, gni_vd *n) {
    *n = (x * 1.4426950408889634 + GNI_D_MAGIC) - GNI_D_MAGIC;
    return gni_dfnma(*n, gni_dset(2.319046813846299616e-17), gni_dfnma(*n, gni_dset(0.69314718055994528623), x));
}
// exp(r) - 1 - r for |r| <= ln(2)/2.
GNI_INLINE gni_vd gni_dexp_rest(gni_vd r) {
    static const double c[] = {0.5000000000000014,    0.1666666666666646,    0.04166666666649399,    0.008333333333444394,
                               0.0013888888953936462, 0.0001984126965416171, 2.4801481783338446e-05, 2.7557422262196824e-06,
                               2.763446265466433e-07, 2.5061395025825315e-08};
    return gni_dpoly(r, c) * (r * r);
}
GNI_INLINE gni_vd gni_dexp(gni_vd x) {
    gni_vd n, r = gni_dreduce(gni_dmin(gni_dmax(x, -746.0), 710.0), &n);
    return gni_dscale((gni_dexp_rest(r) + r) + 1.0, n);
}
GNI_INLINE gni_vd gni_dexp2(gni_vd x) {
    const gni_vd y = gni_dmin(gni_dmax(x, -1076.0), 1025.0), n = gni_drint(y), f = y - n;
    // f ln 2 in two parts
    const gni_vd r = f * 0.69314718055994528623,
                 low = gni_dfma(f, gni_dset(0.69314718055994528623), -r) + f * 2.319046813846299616e-17;
    return gni_dscale(((gni_dexp_rest(r) + low) + r) + 1.0, n);
}
// (exp(x) - 1) part, but for *low, of x up to `most`: parts of 1/2 and 1/4 do not overflow early.
GNI_INLINE gni_vd gni_dexpm1_part(gni_vd x, double part, double most, gni_vd *low) {
    const gni_vd y = gni_dmin(gni_dmax(x, -40.0), most);
    gni_vd n, r = gni_dreduce(y, &n), rest = gni_dexp_rest(r);
    rest += gni_dfnma(n, gni_dset(2.319046813846299616e-17), gni_dfnma(n, gni_dset(0.69314718055994528623), y) - r);
    const gni_vd s = gni_dpow2((n - (part == 0.5 ? 1.0 : 2.0)) + GNI_D_MAGIC), p = r + rest, whole = s - part,
                 sum = gni_dfma(s, p, whole);
    *low = gni_dfma(s, (r - p) + rest, gni_dfma(s, p, whole - sum));
    return sum;
}
GNI_INLINE gni_vd gni_dexpm1(gni_vd x) {
    gni_vd low, y = gni_dexpm1_part(x, 0.5, 710.0, &low);
    y += low;
    return gni_dpick((gni_vl)(gni_dabs(x) < 1e-300), x, gni_dcopysign(y + y, x)); // whose part loses bits
}
// (e^2x - 1) / (e^2x + 1)
GNI_INLINE gni_vd gni_dtanh(gni_vd x) {
    const gni_vd a = gni_dmin(gni_dabs(x), 20.0);
    gni_vd low, over = gni_dexpm1_part(a + a, 0.5, 710.0, &low);
    return gni_dcopysign(gni_dratio(over, low, over + 1.0, (over - ((over + 1.0) - 1.0)) + low), x);
}
// With q = (e^x - 1) / 4 and w = e^x / 4: 2 (q + q / 4w), and 2 (w + 1 / 16w).
GNI_INLINE gni_vd gni_dsinh(gni_vd x) {
    gni_vd low, q = gni_dexpm1_part(gni_dabs(x), 0.25, 710.5, &low);
    const gni_vd w = q + 0.25, y = q + gni_dfma(gni_dratio(q, low, w, (q - (w - 0.25)) + low), gni_dset(0.25), low);
    return gni_dpick((gni_vl)(gni_dabs(x) < 1e-300), x, gni_dcopysign(y + y, x));
}
GNI_INLINE gni_vd gni_dcosh(gni_vd x) {
    gni_vd low, q = gni_dexpm1_part(gni_dabs(x), 0.25, 710.5, &low);
    const gni_vd w = q + 0.25, y = w + (0.0625 / w + (low + (q - (w - 0.25))));
    return y + y;
}
GNI_INLINE gni_vd gni_dsigmoid(gni_vd x) {
    const gni_vd e = gni_dexp(-gni_dabs(x));
    return gni_dpick((gni_vl)(x < 0.0), e, gni_dset(1.0)) / (e + 1.0);
}

// ---- log and its kin

#define gni_dlog_split GNI_FN(gni_dm_log_split)
#define gni_dlog_rest GNI_FN(gni_dm_log_rest)
#define gni_dlog_ends GNI_FN(gni_dm_log_ends)
#define gni_dlog GNI_FN(gni_dm_log)
#define gni_dlog_to GNI_FN(gni_dm_log_to)
#define gni_dlog2 GNI_FN(gni_dm_log2)
#define gni_dlog10 GNI_FN(gni_dm_log10)
#define gni_dlog1p GNI_FN(gni_dm_log1p)
#define gni_dsoftplus GNI_FN(gni_dm_softplus)
#define gni_dlog1p_pair GNI_FN(gni_dm_log1p_pair)
#define gni_dasinh GNI_FN(gni_dm_asinh)
#define gni_dacosh GNI_FN(gni_dm_acosh)
#define gni_datanh GNI_FN(gni_dm_atanh)
#define gni_dcbrt GNI_FN(gni_dm_cbrt)

// x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for x > 0.
GNI_INLINE gni_vd gni_dlog_split(gni_vd x, gni_vd *k) {
    const gni_vl tiny = (gni_vl)(x < 2.2250738585072014e-308);
    gni_vd bias = gni_dset(4503599627371519.0); // 2^52 + 1023
    if (gni_dany(tiny)) {
        x = gni_dpick(tiny, x * 18014398509481984.0, x);
        bias = gni_dpick(tiny, bias + 54.0, bias);
    }
    const gni_vq u = (gni_vq)x + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    *k = (gni_vd)((u >> 52) | 0x4330000000000000u) - bias;
    return (gni_vd)((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
}
// log(1 + f) = f - f^2 / 2 + what this gives.
GNI_INLINE gni_vd gni_dlog_rest(gni_vd f, gni_vd square) {
    static const double c[] = {0.6666666666666756, 0.39999999999255925, 0.2857142878038184, 0.2222219443377429,
                               0.1818379048396456, 0.15308013629714456, 0.14858594079968404};
    const gni_vd s = f / (f + 2.0), z = s * s;
    return s * gni_dfma(gni_dpoly(z, c), z, square);
}
// Where x is 0, below, infinite or NaN.
GNI_INLINE gni_vd gni_dlog_ends(gni_vd x, gni_vd zero, gni_vd y) {
    const gni_vl odd = (gni_vl)(zero <= 0.0) | (gni_vl)(x != x) | (gni_vl)(x == GNI_INF);
    if (!gni_dany(odd)) return y;
    y = gni_dpick((gni_vl)(zero == 0.0), gni_dset(-GNI_INF), y);
    y = gni_dpick((gni_vl)(zero < 0.0), gni_dset(GNI_NAN), y);
    return gni_dpick((gni_vl)(x != x) | (gni_vl)(x == GNI_INF), x, y);
}
GNI_INLINE gni_vd gni_dlog(gni_vd x) {
    gni_vd k, f = gni_dlog_split(x, &k), square = f * f * 0.5;
    const gni_vd low = gni_dfma(k, gni_dset(2.319046813846299616e-17), gni_dlog_rest(f, square));
    return gni_dlog_ends(x, x, gni_dfma(k, gni_dset(0.69314718055994528623), f - (square - low)));
}
// log(x) (c + c_low) + k (d + d_low) of x without its power of two: c of the base, d of 2; k d is exact.
GNI_INLINE gni_vd gni_dlog_to(gni_vd x, double c, double c_low, double d, double d_low) {
    gni_vd k, f = gni_dlog_split(x, &k), square = f * f * 0.5, rest = gni_dlog_rest(f, square);
    const gni_vd high = f - square, low = ((f - high) - square) + (rest - gni_dfma(f * 0.5, f, -square));
    const gni_vd p = high * c, whole = k * d, sum = whole + p;
    const gni_vd more = gni_dfma(low, gni_dset(c), gni_dfma(high, gni_dset(c_low), gni_dfma(high, gni_dset(c), -p)));
    return gni_dlog_ends(x, x, sum + ((p - (sum - whole)) + gni_dfma(k, gni_dset(d_low), more)));
}
GNI_INLINE gni_vd gni_dlog2(gni_vd x) { return gni_dlog_to(x, 1.4426950408889634, 2.0355273740931033e-17, 1.0, 0.0); }
GNI_INLINE gni_vd gni_dlog10(gni_vd x) {
    return gni_dlog_to(x, 0.4342944819032518, 1.098319650216765e-17, 0.3010299956640665, -8.532344317057107e-14);
}
// log(1 + x + rest), `rest` being small.
GNI_INLINE gni_vd gni_dlog1p_pair(gni_vd x, gni_vd rest) {
    const gni_vd u = x + 1.0;
    gni_vd k, f = gni_dlog_split(u, &k), square = f * f * 0.5;
    // what the sum lost, of 1 or of x
    const gni_vd lost = (gni_dpick((gni_vl)(u > 2.0), 1.0 - (u - x), x - (u - 1.0)) + rest) / u;
    const gni_vd low = gni_dfma(k, gni_dset(2.319046813846299616e-17), gni_dlog_rest(f, square)) + lost;
    const gni_vd y = gni_dcopysign(gni_dfma(k, gni_dset(0.69314718055994528623), f - (square - low)), x);
    return gni_dlog_ends(x, u, y);
}
GNI_INLINE gni_vd gni_dlog1p(gni_vd x) { return gni_dlog1p_pair(x, gni_dset(0.0)); }
// log(1 + a + q) with q = sqrt(a^2 + 1) - 1, and log(1 + d + s) with d = x - 1 and s = sqrt(x^2 - 1); far out log(x) and
// log(2).
GNI_INLINE gni_vd gni_dasinh(gni_vd x) {
    const gni_vd a = gni_dabs(x), one = 1.0 / a, q = a / (one + gni_dsqrt(one * one + 1.0)), t = a + q;
    const gni_vl big = (gni_vl)(a > 1e18);
    const gni_vd more = (gni_vd)((gni_vl)gni_dset(0.69314718055994528623) & big);
    return gni_dcopysign(gni_dlog1p_pair(gni_dpick(big, a, t), (gni_vd)((gni_vl)((a - t) + q) & ~big)) + more, x);
}
GNI_INLINE gni_vd gni_dacosh(gni_vd x) {
    const gni_vd d = x - 1.0, e = d + 2.0, p = d * e, s = gni_dsqrt(p), t = s + d;
    const gni_vd p_low = gni_dfma(d, e, -p) + d * (d - (e - 2.0)), s_low = (gni_dfnma(s, s, p) + p_low) / (s + s + 1e-300);
    const gni_vl big = (gni_vl)(x > 1e18);
    const gni_vd more = (gni_vd)((gni_vl)gni_dset(0.69314718055994528623) & big);
    const gni_vd y = gni_dlog1p_pair(gni_dpick(big, x, t), (gni_vd)((gni_vl)((d - (t - s)) + s_low) & ~big)) + more;
    return gni_dpick((gni_vl)(d < 0.0), gni_dset(GNI_NAN), y);
}
// log(1 + 2 a / (1 - a)) / 2
GNI_INLINE gni_vd gni_datanh(gni_vd x) {
    const gni_vd a = gni_dabs(x), b = 1.0 - a, one = 1.0 / b, t = (a + a) * one;
    return gni_dcopysign(gni_dlog1p_pair(t, (gni_dfnma(t, b, a + a) - t * ((1.0 - b) - a)) * one) * 0.5, x);
}
// A third of the bits as a number is within 3.3 % of the root; by a polynomial for z^(-1/3) of its cube over x (minimax,
// 2^-24) it is the root to 23 bits, of which a step of Newton's starts: their square is exact.
GNI_INLINE gni_vd gni_dcbrt(gni_vd x) {
    static const double c[] = {1.872564091134651135402, -1.871572851805936531444, 1.601560196793588196588,
                               -0.7453279868658578687368, 0.1427765398228720871363};
    const gni_vl tiny = (gni_vl)(gni_dabs(x) < 2.2250738585072014e-308);
    const gni_vd a = gni_dabs(gni_dpick(tiny, x * 18014398509481984.0, x)); // 2^54
    const gni_vd third = ((gni_vd)((gni_vq)a >> 12 | 0x4330000000000000u) - 4503599627370496.0) * (1.0 / 3.0);
    gni_vd t = (gni_vd)((gni_vq)(third + (4503599627370496.0 + 749830591283934.0)) << 12);
    t *= gni_dpoly(t * t * (t / a), c);
    t = (gni_vd)(((gni_vq)t + 0x80000000u) & 0xffffffffc0000000u);
    const gni_vd r = a / (t * t);
    t = gni_dfma(t, (r - t) / (t + t + r), t);
    t = gni_dcopysign(gni_dpick(tiny, t * 3.814697265625e-06, t), x); // 2^-18
    return gni_dpick((gni_vl)(x == 0.0) | (gni_vl)(gni_dabs(x) == GNI_INF) | (gni_vl)(x != x), x, t);
}
GNI_INLINE gni_vd gni_dsoftplus(gni_vd x) { return gni_dmax(x, 0.0) + gni_dlog1p(gni_dexp(-gni_dabs(x))); }

#define gni_dlog2_pair GNI_FN(gni_dm_log2_pair)
#define gni_dpow GNI_FN(gni_dm_pow)

// log2(x) in two parts for x > 0.
GNI_INLINE gni_vd gni_dlog2_pair(gni_vd x, gni_vd *rest) {
    static const double c[] = {0.40000000000000002, 0.28571428571428564, 0.22222222222228513,
                               0.18181818179631651, 0.15384615764848786, 0.13333296245726053,
                               0.11766825597780622, 0.10456047960220455, 0.10764953135221728};
    gni_vd k, f = gni_dlog_split(x, &k);
    // s = f / (f + 2) and z = s^2, each in two parts
    const gni_vd d = f + 2.0, one = 1.0 / d, s = f * one, s_low = (gni_dfnma(s, d, f) - s * (f - (d - 2.0))) * one;
    const gni_vd z = s * s, z_low = gni_dfma(s, s, -z) + (s + s) * s_low;
    // log(1 + f) = s (2 + z (2/3 + z q))
    const gni_vd q = gni_dpoly(z, c) * z, a = q + 0.66666666666666663;
    const gni_vd a_low = (q - (a - 0.66666666666666663)) + 3.7007434154171883e-17;
    const gni_vd v = z * a, v_low = (gni_dfma(z, a, -v) + z * a_low) + z_low * a;
    const gni_vd u = v + 2.0, u_low = (v - (u - 2.0)) + v_low;
    const gni_vd l = s * u, l_low = (gni_dfma(s, u, -l) + s * u_low) + s_low * u;
    // times 1 / ln 2, and k
    const gni_vd to = gni_dset(1.4426950408889634), m = l * to;
    const gni_vd m_low = gni_dfma(l, to, -m) + (l * 2.0355273740931033e-17 + l_low * to);
    const gni_vd sum = k + m, sum_low = (m - (sum - k)) + m_low, y = sum + sum_low;
    *rest = (sum - y) + sum_low;
    return y;
}
// As C's pow, which computes what is out of the ordinary.
GNI_INLINE gni_vd gni_dpow(gni_vd x, gni_vd y) {
    const gni_vd inf = gni_dset(GNI_INF), ln2 = gni_dset(0.69314718055994528623), e = gni_dmin(gni_dmax(y, -1e21), 1e21);
    gni_vd rest, head = gni_dlog2_pair(x, &rest), w = e * head;
    rest = gni_dfma(e, head, -w) + e * rest;
    rest = gni_dpick((gni_vl)(gni_dabs(w) < 1100.0), rest, gni_dset(0.0));
    w = gni_dmin(gni_dmax(w, -1100.0), 1100.0);
    // (f + rest) ln 2 in two parts
    const gni_vd n = gni_drint(w), f = w - n, p = f * ln2;
    const gni_vd p_low = gni_dfma(f, ln2, -p) + (f * 2.319046813846299616e-17 + rest * ln2), r = p + p_low;
    const gni_vd most = r + 1.0, least = (r - (most - 1.0)) + ((p - r) + p_low);
    gni_vd power = gni_dscale(most + (least + gni_dexp_rest(r)), n);
    const gni_vl plain = (gni_vl)(x > 0.0) & (gni_vl)(x < inf) & (gni_vl)(gni_dabs(y) < inf) & (gni_vl)(y != 0.5);
    if (gni_dany(~plain)) {
        double a[GNI_DW], b[GNI_DW], c[GNI_DW];
        memcpy(a, &x, sizeof a);
        memcpy(b, &y, sizeof b);
        for (int i = 0; i < GNI_DW; i++) c[i] = gni_pow(a[i], b[i]);
        gni_vd other;
        memcpy(&other, c, sizeof other);
        power = gni_dpick(plain, power, other);
    }
    return power;
}

// ---- trigonometry

#define gni_dquadrant GNI_FN(gni_dm_quadrant)
#define gni_dsin_part GNI_FN(gni_dm_sin_part)
#define gni_dcos_part GNI_FN(gni_dm_cos_part)
#define gni_dtrig_rare GNI_FN(gni_dm_trig_rare)
#define gni_dsin GNI_FN(gni_dm_sin)
#define gni_dcos GNI_FN(gni_dm_cos)
#define gni_dtan GNI_FN(gni_dm_tan)
#define GNI_D_TRIG_MAX 1e6

// x = n pi/2 + r + *low for |x| < GNI_D_TRIG_MAX (Cody & Waite); *q has n in its low bits. The first step is exact.
GNI_INLINE gni_vd gni_dquadrant(gni_vd x, gni_vd *low, gni_vl *q) {
    const gni_vd t = x * 0.63661977236758134308 + GNI_D_MAGIC, n = t - GNI_D_MAGIC;
    const gni_vd a = gni_dfnma(n, gni_dset(1.5707963267948966), x), b = n * 6.123233995736766e-17, r = a - b, up = r - a;
    const gni_vd more = gni_dfma(n, gni_dset(6.123233995736766e-17), -b);
    *low = ((a - (r - up)) - (b + up)) - gni_dfma(n, gni_dset(-1.4973849048591698e-33), more);
    *q = (gni_vl)t;
    return r;
}
// Its sine and cosine up to what they return.
GNI_INLINE gni_vd gni_dsin_part(gni_vd r, gni_vd low, gni_vd *y) {
    static const double c[] = {-0.1666666666666665,    0.008333333333325314,    -0.00019841269831539227,
                               2.755731416232474e-06,  -2.5050817558119546e-08, 1.5899630882067402e-10};
    const gni_vd z = r * r;
    *y = r;
    return gni_dfma(r * z, gni_dpoly(z, c), gni_dfnma(low, z * 0.5, low));
}
GNI_INLINE gni_vd gni_dcos_part(gni_vd r, gni_vd low, gni_vd *y) {
    static const double c[] = {0.04166666666666723,    -0.0013888888888973787, 2.480158734659301e-05,
                               -2.7557329617477473e-07, 2.0877655986366396e-09, -1.1453371310547646e-11};
    const gni_vd z = r * r, half = z * 0.5;
    *y = 1.0 - half;
    return ((1.0 - *y) - half) + gni_dfma(z * z, gni_dpoly(z, c), -(r * low));
}
static GNI_NOINLINE gni_vd gni_dtrig_rare(gni_vd x, gni_vd y, double (*f)(double)) {
    double from[GNI_DW], to[GNI_DW];
    memcpy(from, &x, sizeof from);
    memcpy(to, &y, sizeof to);
    for (int i = 0; i < GNI_DW; i++)
        if (!(fabs(from[i]) < GNI_D_TRIG_MAX)) to[i] = f(from[i]);
    return gni_dload(to, 0);
}
GNI_INLINE gni_vd gni_dsin(gni_vd x) {
    gni_vl q;
    gni_vd low, r = gni_dquadrant(x, &low, &q);
    gni_vd s, c, sr = gni_dsin_part(r, low, &s), cr = gni_dcos_part(r, low, &c);
    const gni_vl odd = (gni_vl)((q & 1) != 0);
    gni_vd y = gni_dpick(odd, c, s) + gni_dpick(odd, cr, sr);
    y = (gni_vd)((gni_vl)y ^ (gni_vl)((gni_vq)(q & 2) << 62));
    y = gni_dpick((gni_vl)(x == 0.0), x, y);
    return gni_dany((gni_vl)(gni_dabs(x) < GNI_D_TRIG_MAX) ^ -1) ? gni_dtrig_rare(x, y, sin) : y;
}
GNI_INLINE gni_vd gni_dcos(gni_vd x) {
    gni_vl q;
    gni_vd low, r = gni_dquadrant(x, &low, &q);
    gni_vd s, c, sr = gni_dsin_part(r, low, &s), cr = gni_dcos_part(r, low, &c);
    const gni_vl odd = (gni_vl)((q & 1) != 0);
    gni_vd y = gni_dpick(odd, s, c) + gni_dpick(odd, sr, cr);
    y = (gni_vd)((gni_vl)y ^ (gni_vl)((((gni_vq)q + 1) & 2) << 62));
    return gni_dany((gni_vl)(gni_dabs(x) < GNI_D_TRIG_MAX) ^ -1) ? gni_dtrig_rare(x, y, cos) : y;
}
GNI_INLINE gni_vd gni_dtan(gni_vd x) {
    gni_vl q;
    gni_vd s, c, low, r = gni_dquadrant(x, &low, &q), sr = gni_dsin_part(r, low, &s), cr = gni_dcos_part(r, low, &c);
    const gni_vl odd = (gni_vl)((q & 1) != 0);
    const gni_vd over = s + sr, under = c + cr, over_r = sr + (s - over), under_r = cr + (c - under);
    gni_vd y = gni_dratio(gni_dpick(odd, -under, over), gni_dpick(odd, -under_r, over_r), gni_dpick(odd, over, under),
                          gni_dpick(odd, over_r, under_r));
    y = gni_dpick((gni_vl)(x == 0.0), x, y);
    return gni_dany((gni_vl)(gni_dabs(x) < GNI_D_TRIG_MAX) ^ -1) ? gni_dtrig_rare(x, y, tan) : y;
}

// ---- inverse trigonometry

#define gni_dasin_rest GNI_FN(gni_dm_asin_rest)
#define gni_dasin GNI_FN(gni_dm_asin)
#define gni_dacos GNI_FN(gni_dm_acos)
#define gni_datan_rest GNI_FN(gni_dm_atan_rest)
#define gni_datan GNI_FN(gni_dm_atan)

// asin(s) = s + what this gives, where s = |x| up to 1/2, and beyond it s = sqrt((1 - |x|) / 2), half of the angle from 1.
GNI_INLINE gni_vd gni_dasin_rest(gni_vd a, gni_vl big, gni_vd *s) {
    static const double c[] = {0.16666666666665053,  0.07500000000424453,  0.04464285675391791,  0.030381962283315227,
                               0.022371681012282856, 0.017360887278739513, 0.013873376669723032, 0.012248105789355163,
                               0.006182799558822945, 0.02048261314847234,  -0.017735565893794582, 0.03295672168377474};
    const gni_vd z = gni_dpick(big, 0.5 - a * 0.5, a * a);
    *s = gni_dpick(big, gni_dsqrt(z), a);
    return *s * (z * gni_dpoly(z, c));
}
GNI_INLINE gni_vd gni_dasin(gni_vd x) {
    const gni_vl big = (gni_vl)(gni_dabs(x) > 0.5);
    gni_vd s, rest = gni_dasin_rest(gni_dabs(x), big, &s);
    const gni_vd twice = s + s, high = 1.5707963267948966 - twice, low = (1.5707963267948966 - high) - twice;
    return gni_dcopysign(gni_dpick(big, high - ((rest + rest) - (low + 6.123233995736766e-17)), s + rest), x);
}
GNI_INLINE gni_vd gni_dacos(gni_vd x) {
    const gni_vl big = (gni_vl)(gni_dabs(x) > 0.5), below = (gni_vl)(x < 0.0);
    gni_vd s, rest = gni_dasin_rest(gni_dabs(x), big, &s);
    const gni_vd twice = (s + rest) * 2.0, sr = gni_dpick(below, -rest, rest);
    const gni_vd near1 = gni_dpick(below, (3.1415926535897931 - (s + s)) - ((rest + rest) - 1.2246467991473532e-16), twice);
    return gni_dpick(big, near1, 1.5707963267948966 - (x - (6.123233995736766e-17 - sr)));
}
// atan(t) = t + what this gives, up to tan(pi/8).
GNI_INLINE gni_vd gni_datan_rest(gni_vd t) {
    static const double c[] = {-0.33333333333333953, 0.20000000000179646, -0.14285714304280145, 0.11111112088502567,
                               -0.09090939440674836, 0.07692906237759527, -0.06674442224739256, 0.05949560537577375,
                               -0.05643201123143973, 0.06087255896018214, -0.06751635498714821, 0.04731911283240518};
    const gni_vd z = t * t;
    return t * (z * gni_dpoly(z, c));
}
// About 0, about 1 and about infinity: tan(pi/8) and its inverse are between.
GNI_INLINE gni_vd gni_datan(gni_vd x) {
    const gni_vd a = gni_dabs(x), one = gni_dset(1.0), zero = gni_dset(0.0);
    const gni_vl about1 = (gni_vl)(a > 0.41421356237309503), large = (gni_vl)(a > 2.4142135623730949);
    const gni_vd t =
        gni_dpick(large, -one, gni_dpick(about1, a - 1.0, a)) / gni_dpick(large, a, gni_dpick(about1, a + 1.0, one));
    const gni_vd rest = gni_datan_rest(t);
    const gni_vd base =
        gni_dpick(large, gni_dset(1.5707963267948966), gni_dpick(about1, gni_dset(0.78539816339744828), zero));
    const gni_vd low =
        gni_dpick(large, gni_dset(6.123233995736766e-17), gni_dpick(about1, gni_dset(3.061616997868383e-17), zero));
    return gni_dcopysign(base + (t + (rest + low)), x);
}

#define gni_datan2 GNI_FN(gni_dm_atan2)
// The angle of the smaller part over the larger one, 0 to pi/4, from the nearest half of the axes; about 1 as in gni_datan.
GNI_INLINE gni_vd gni_datan2(gni_vd y, gni_vd x) {
    const gni_vd one = gni_dset(1.0), zero = gni_dset(0.0), inf = gni_dset(GNI_INF), ax = gni_dabs(x), ay = gni_dabs(y);
    const gni_vl steep = (gni_vl)(ay > ax), left = (gni_vl)((gni_vl)x < 0);
    gni_vd most = gni_dpick(steep, ay, ax), least = gni_dpick(steep, ax, ay);
    least = gni_dpick((gni_vl)(least == inf), one, gni_dpick((gni_vl)(most == inf) & (gni_vl)(least == least), zero, least));
    most = gni_dpick((gni_vl)(most == inf) | (gni_vl)(most == 0.0), one, most);
    const gni_vd scale = gni_dpick((gni_vl)(most > 4.49423283715579e307), gni_dset(0.5), one); // 2^1022
    least = least * scale, most = most * scale;
    const gni_vl about1 = (gni_vl)(least > most * 0.41421356237309503);
    const gni_vd over = gni_dpick(about1, least - most, least), under = gni_dpick(about1, least + most, most);
    const gni_vd t = over / under, rest = gni_datan_rest(t);
    const gni_vd base = gni_dpick(about1, gni_dset(0.78539816339744828), zero),
                 base_low = gni_dpick(about1, gni_dset(3.061616997868383e-17), zero);
    // base + t + low: from pi/2 down where it is steep, from pi down at the left.
    const gni_vd low = rest + base_low,
                 from = gni_dpick(steep, gni_dset(1.5707963267948966), gni_dpick(left, gni_dset(3.1415926535897931), zero));
    const gni_vd from_low =
        gni_dpick(steep, gni_dset(6.123233995736766e-17), gni_dpick(left, gni_dset(1.2246467991473532e-16), zero));
    const gni_vl down = left ^ steep;
    const gni_vd angle = gni_dpick(down, (from - base) - (t + (low - from_low)), (from + base) + (t + (low + from_low)));
    return gni_dcopysign(gni_dpick((gni_vl)(x != x), x, angle), y);
}

// ---- magnitude

#define gni_dhypot GNI_FN(gni_dm_hypot)

// The root of the sum of squares, which are as exact as two numbers say; scaled where a square would overflow or lose bits.
GNI_INLINE gni_vd gni_dhypot(gni_vd x, gni_vd y) {
    const gni_vd ax = gni_dabs(x), ay = gni_dabs(y), inf = gni_dset(GNI_INF), one = gni_dset(1.0);
    const gni_vl more = (gni_vl)(ax > ay);
    const gni_vd most = gni_dpick(more, ax, ay), least = gni_dpick(more, ay, ax);
    // 2^-600 above 2^500, 2^600 below 2^-400
    const gni_vd scale =
        gni_dpick((gni_vl)(most > 3.273390607896142e150), gni_dset(2.409919865102884e-181),
                  gni_dpick((gni_vl)(most < 3.8725919148493183e-121), gni_dset(4.149515568880993e180), one));
    const gni_vd a = most * scale, b = least * scale, p = a * a, q = b * b, sum = p + q;
    const gni_vd low = gni_dfma(a, a, -p) + gni_dfma(b, b, -q) + (q - (sum - p)), root = gni_dsqrt(sum);
    const gni_vd more_root = root + (gni_dfma(-root, root, sum) + low) / (root + root);
    const gni_vd h = gni_dpick((gni_vl)(sum > 0.0), more_root, root) / scale;
    return gni_dpick((gni_vl)(ax == inf) | (gni_vl)(ay == inf), inf, h);
}
#endif
