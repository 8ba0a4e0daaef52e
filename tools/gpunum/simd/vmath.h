// >>vmath
// The float32 functions of one SIMD pass: gni_vexp, gni_vsin, ... from vectors to vectors, every lane by itself.
// Range reduction and polynomials are the textbook ones (Muller, Elementary Functions; Cody & Waite 1980); the
// coefficients come from tools/fit_math.py, the measured errors from tools/ulp.c. tools/shaders/math.glsl has the same.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../simd/simd.h"
#endif

#define gni_vmad GNI_FN(gni_vm_mad)
#define gni_vhead GNI_FN(gni_vm_head)
#define gni_vpow2 GNI_FN(gni_vm_pow2)
#define gni_vscale GNI_FN(gni_vm_scale)
#define gni_vsignof GNI_FN(gni_vm_signof)
#define gni_vxor GNI_FN(gni_vm_xor)

// Adding this leaves x, rounded to an integer, in the low bits of the sum; |x| < 2^22.
#define GNI_V_MAGIC 12582912.0f
#define GNI_V_MAGIC_BITS 0x4b400000u

// a * b + c: one step of a polynomial.
GNI_INLINE gni_vf gni_vmad(gni_vf a, gni_vf b, float c) { return gni_vfma(a, b, gni_vset(c)); }
// The first 12 bits of x: products of two heads are exact, with or without a fused multiply-add.
GNI_INLINE gni_vf gni_vhead(gni_vf x) { return gni_vu_float(gni_vf_ubits(x) & 0xfffff000u); }
GNI_INLINE gni_vu gni_vsignof(gni_vf x) { return gni_vf_ubits(x) & 0x80000000u; }
GNI_INLINE gni_vf gni_vxor(gni_vf x, gni_vu bits) { return gni_vu_float(gni_vf_ubits(x) ^ bits); }
// 2^n for -126 <= n <= 127.
GNI_INLINE gni_vf gni_vpow2(gni_vi n) { return gni_vu_float((gni_vi_u(n) + 127u) << 23); }
// y 2^n for t = GNI_V_MAGIC + n, |n| <= 252; one rounding when the result is subnormal.
GNI_INLINE gni_vf gni_vscale(gni_vf y, gni_vf t) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_scalef_ps((__m512)y, (__m512)(t - gni_vset(GNI_V_MAGIC)));
#else
    gni_vi n = gni_vu_i(gni_vf_ubits(t) - GNI_V_MAGIC_BITS), half = n >> 1;
    return y * gni_vpow2(half) * gni_vpow2(gni_vu_i(gni_vi_u(n) - gni_vi_u(half)));
#endif
}

// ---- exp and its kin

#define gni_vexp_reduce GNI_FN(gni_vm_exp_reduce)
#define gni_vexp_end GNI_FN(gni_vm_exp_end)
#define gni_vexp_poly GNI_FN(gni_vm_exp_poly)
#define gni_vexp_mid GNI_FN(gni_vm_exp_mid)
#define gni_vexp2_poly GNI_FN(gni_vm_exp2_poly)
#define gni_vexp GNI_FN(gni_vm_exp)
#define gni_vexp_low GNI_FN(gni_vm_exp_low)
#define gni_vexp2 GNI_FN(gni_vm_exp2)
#define gni_vexpm1 GNI_FN(gni_vm_expm1)

// x = n ln 2 + r, |r| <= ln(2)/2, t = GNI_V_MAGIC + n.
GNI_INLINE gni_vf gni_vexp_reduce(gni_vf x, gni_vf *t) {
    *t = gni_vfma(x, gni_vkept(1.44269502f), gni_vkept(GNI_V_MAGIC));
    gni_vf n = *t - gni_vkept(GNI_V_MAGIC);
    gni_vf r = gni_vfnma(n, gni_vkept(0.693145752f), x);
    return gni_vfnma(n, gni_vkept(1.42860677e-06f), r);
}
// (exp(r) - 1 - r) / r^2 and exp(r) - 1 for |r| <= ln(2)/2.
GNI_INLINE gni_vf gni_vexp_end(gni_vf r) {
    gni_vf p = gni_vkept(0.00138219551f);
    p = gni_vfma(p, r, gni_vkept(0.0083690444f));
    p = gni_vfma(p, r, gni_vkept(0.0416682586f));
    p = gni_vfma(p, r, gni_vkept(0.166665182f));
    return gni_vfma(p, r, gni_vkept(0.49999994f));
}
GNI_INLINE gni_vf gni_vexp_poly(gni_vf r) { return gni_vfma(gni_vexp_end(r), r * r, r); }
// exp(x) for |x| < 80; another x gives some number.
GNI_INLINE gni_vf gni_vexp_mid(gni_vf x) {
    gni_vf t, y = gni_vexp_poly(gni_vexp_reduce(x, &t)) + gni_vset(1.0f);
    return gni_vu_float(gni_vf_ubits(y) + (gni_vf_ubits(t) << 23));
}
GNI_INLINE gni_vf gni_vexp(gni_vf x) {
    gni_vf t, y = gni_vminc(gni_vmaxc(x, gni_vkept(-104.0f)), gni_vkept(89.0f));
    y = gni_vexp_poly(gni_vexp_reduce(y, &t)) + gni_vkept(1.0f);
    return gni_vscale(y, t);
}
// exp(x) for x <= 0, as a softmax has them: the power of two is brought to where a single product makes subnormal numbers of
// it.
GNI_INLINE gni_vf gni_vexp_low(gni_vf x) {
    gni_vf t, y = gni_vexp_poly(gni_vexp_reduce(gni_vmaxc(x, gni_vkept(-104.0f)), &t)) + gni_vkept(1.0f);
#if defined(GNI_PASS_AVX512)
    return gni_vscale(y, t);
#else
    return gni_vu_float(gni_vf_ubits(y) + (gni_vf_ubits(t) << 23) + (64u << 23)) * gni_vkept(5.42101086e-20f);
#endif
}
// 2^r - 1 for |r| <= 1/2.
GNI_INLINE gni_vf gni_vexp2_poly(gni_vf r) {
    gni_vf p = gni_vset(0.000153269313f);
    p = gni_vmad(p, r, 0.00133912405f);
    p = gni_vmad(p, r, 0.00961850584f);
    p = gni_vmad(p, r, 0.0555035919f);
    p = gni_vmad(p, r, 0.240226477f);
    p = gni_vmad(p, r, 0.693147182f);
    return p * r;
}
GNI_INLINE gni_vf gni_vexp2(gni_vf x) {
    gni_vf y = gni_vminc(gni_vmaxc(x, gni_vset(-151.0f)), gni_vset(129.0f));
    gni_vf t = y + gni_vset(GNI_V_MAGIC), n = t - gni_vset(GNI_V_MAGIC);
    return gni_vscale(gni_vexp2_poly(y - n) + gni_vset(1.0f), t);
}
GNI_INLINE gni_vf gni_vexpm1(gni_vf x) {
    gni_vf t, y = gni_vminc(gni_vmaxc(x, gni_vset(-18.0f)), gni_vset(89.0f));
    gni_vf p = gni_vexp_poly(gni_vexp_reduce(y, &t));
    // 2^n (p + 1) - 1 at half size, so that n = 128 does not overflow early.
    gni_vf s = gni_vu_float((gni_vf_ubits(t) << 23) + 0x3f000000u);
    y = gni_vfma(s, p, s - gni_vset(0.5f));
    y = gni_ksel(gni_keq(t, gni_vset(GNI_V_MAGIC)), p, y + y);
    return gni_vcopysign(y, x);
}

// ---- log and its kin

#define gni_vlog_bits GNI_FN(gni_vm_log_bits)
#define gni_vlog_split GNI_FN(gni_vm_log_split)
#define gni_vlog_poly GNI_FN(gni_vm_log_poly)
#define gni_vlog_near1 GNI_FN(gni_vm_log_near1)
#define gni_vlog_pair GNI_FN(gni_vm_log_pair)
#define gni_vlog GNI_FN(gni_vm_log)
#define gni_vlog2 GNI_FN(gni_vm_log2)
#define gni_vlog10 GNI_FN(gni_vm_log10)
#define gni_vlog1p GNI_FN(gni_vm_log1p)

// x = 2^k m, sqrt(1/2) <= m < sqrt(2), for normal x > 0.
GNI_INLINE gni_vf gni_vlog_bits(gni_vf x, gni_vf *k) {
    gni_vu u = gni_vf_ubits(x) - 0x3f3504f3u;
    *k = gni_itov(gni_vu_i(u) >> 23);
    return gni_vu_float((u & 0x007fffffu) + 0x3f3504f3u);
}
// The same for every x, returning f = m - 1. Where the logarithm is NaN or infinite, k or f is made so that the sum of their
// parts is.
GNI_INLINE gni_vf gni_vlog_split(gni_vf x, gni_vf *k) {
#if defined(GNI_PASS_AVX512)
    __m512 m = _mm512_getmant_ps((__m512)x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
    __m512 e = _mm512_getexp_ps((__m512)x);
    __mmask16 upper = _mm512_cmp_ps_mask(m, _mm512_set1_ps(1.41421354f), _CMP_GE_OQ);
    m = _mm512_mask_mul_ps(m, upper, m, _mm512_set1_ps(0.5f));
    *k = (gni_vf)_mm512_mask_add_ps(e, upper, e, _mm512_set1_ps(1.0f));
    return (gni_vf)m - gni_vset(1.0f);
#else
    gni_vf least = gni_vset(1.17549435e-38f), zero = gni_vset(0.0f), inf = gni_vset(INFINITY);
    gni_vmask usual = gni_kand(gni_kge(x, least), gni_klt(x, inf));
    gni_vf f = gni_vlog_bits(x, k) - gni_vset(1.0f);
    if (gni_kany(gni_knot(usual))) {
        gni_vf k2, f2 = gni_vlog_bits(x * gni_vset(8388608.0f), &k2) - gni_vset(1.0f);
        gni_vmask sub = gni_kand(gni_kgt(x, zero), gni_klt(x, least));
        // +Inf and NaN stay themselves, 0 gives -Inf, what is below 0 NaN.
        gni_vf k3 = gni_ksel(gni_keq(x, zero), -inf, gni_ksel(gni_klt(x, zero), inf - inf, x));
        f = gni_ksel(usual, f, gni_ksel(sub, f2, zero));
        *k = gni_ksel(usual, *k, gni_ksel(sub, k2 - gni_vset(23.0f), k3));
    }
    return f;
#endif
}
// log(1 + f) - f + add for sqrt(1/2) <= 1 + f < sqrt(2).
GNI_INLINE gni_vf gni_vlog_poly(gni_vf f, gni_vf add) {
    gni_vf z = f * f, p = gni_vset(-0.0763620213f);
    p = gni_vmad(p, f, 0.127620921f);
    p = gni_vmad(p, f, -0.131596208f);
    p = gni_vmad(p, f, 0.142015889f);
    p = gni_vmad(p, f, -0.166234091f);
    p = gni_vmad(p, f, 0.200012416f);
    p = gni_vmad(p, f, -0.250008196f);
    p = gni_vmad(p, f, 0.333333313f);
    p = gni_vfma(p, f * z, add);
    return gni_vfma(z, gni_vset(-0.5f), p);
}
// log(2^k (1 + f)).
GNI_INLINE gni_vf gni_vlog_near1(gni_vf k, gni_vf f) {
    gni_vf y = f + gni_vlog_poly(f, k * gni_vset(1.42860677e-06f));
    return gni_vfma(k, gni_vset(0.693145752f), y);
}
// The same with its rounding errors in *rest; plus 0 or -1.
GNI_INLINE gni_vf gni_vlog_pair(gni_vf k, gni_vf f, float plus, gni_vf *rest) {
    gni_vf big = gni_vmad(k, gni_vset(0.693145752f), plus), y = big + f, t = y - big;
    *rest = gni_vlog_poly(f, k * gni_vset(1.42860677e-06f)) + ((big - (y - t)) + (f - t));
    return y;
}
GNI_INLINE gni_vf gni_vlog(gni_vf x) {
    gni_vf k, f = gni_vlog_split(x, &k);
    return gni_vlog_near1(k, f);
}
GNI_INLINE gni_vf gni_vlog2(gni_vf x) {
    gni_vf k, f = gni_vlog_split(x, &k), y = f + gni_vlog_poly(f, gni_vset(0.0f));
    gni_vf low = gni_vfma(y, gni_vset(1.92596303e-08f), k);
    return gni_vfma(y, gni_vset(1.44269502f), low);
}
GNI_INLINE gni_vf gni_vlog10(gni_vf x) {
    gni_vf k, f = gni_vlog_split(x, &k), y = f + gni_vlog_poly(f, gni_vset(0.0f));
    gni_vf low = gni_vfma(y, gni_vset(0.434294492f), k * gni_vset(4.60503907e-06f));
    return gni_vfma(k, gni_vset(0.301025391f), low);
}
// log(2^up (1 + x)) for x > -1 that is finite; other x give some number.
#define gni_vlog1p_up GNI_FN(gni_vm_log1p_up)
GNI_INLINE gni_vf gni_vlog1p_up(gni_vf x, gni_vf up) {
    gni_vf one = gni_vset(1.0f), high = gni_vmaxc(x, one), low = gni_vminc(x, one);
    gni_vf k, sum = high + low, m = gni_vlog_bits(sum, &k);
    // What the sum lost to rounding, brought to the scale of m: half of it times 2^(1-k).
    gni_vf lost = low - (sum - high);
    gni_vf scale = gni_vu_float(0x40000000u - (gni_vf_ubits(sum) - gni_vf_ubits(m)));
    gni_vf f = gni_vfma(lost * scale, gni_vset(0.5f), m - one);
    return gni_vlog_near1(k + up, f);
}
GNI_INLINE gni_vf gni_vlog1p(gni_vf x) {
    gni_vf zero = gni_vset(0.0f), inf = gni_vset(INFINITY), edge = gni_vset(-1.0f);
    gni_vf y = gni_vcopysign(gni_vlog1p_up(x, zero), x);
    gni_vf odd = gni_ksel(gni_keq(x, edge), -inf, gni_ksel(gni_klt(x, edge), inf - inf, x));
    return gni_ksel(gni_kand(gni_kgt(x, edge), gni_klt(x, inf)), y, odd);
}

// ---- sin, cos, tan

#define gni_vpi_rest GNI_FN(gni_vm_pi_rest)
#define gni_vpi_rest_big GNI_FN(gni_vm_pi_rest_big)
#define gni_vtrig_rare GNI_FN(gni_vm_trig_rare)
#define gni_vsin_poly GNI_FN(gni_vm_sin_poly)
#define gni_vsin GNI_FN(gni_vm_sin)
#define gni_vcos GNI_FN(gni_vm_cos)
#define gni_vtan GNI_FN(gni_vm_tan)

#define GNI_V_PIO2 1.57079637f
#define GNI_V_PIO2_LO -4.37113883e-08f

// a - h pi for h a multiple of 1/2 near a / pi, a <= GNI_V_TRIG_MAX (Cody & Waite). Either the products are exact by
// themselves, or the fused multiply-add keeps what they lose.
#if GNI_V_FUSED
#define GNI_V_TRIG_MAX 131072.0f
GNI_INLINE gni_vf gni_vpi_rest(gni_vf a, gni_vf h) {
    gni_vf r = gni_vfnma(h, gni_vset(3.14159274f), a);
    r = gni_vfma(h, gni_vset(8.74227766e-08f), r);
    return gni_vfma(h, gni_vset(3.43024902e-15f), r);
}
#else
#define GNI_V_TRIG_MAX 12800.0f
GNI_INLINE gni_vf gni_vpi_rest(gni_vf a, gni_vf h) {
    gni_vf b = (a - h * gni_vset(3.140625f)) - h * gni_vset(0.000967502594f),
           c = h * gni_vset(1.50990672e-07f);
    // All exact so far; what the next difference loses is put back, so that only the last one rounds.
    gni_vf r = b - c, lost = (b - r) - c;
    return r + (lost - h * gni_vset(5.12668814e-12f));
}
#endif

// The same for any finite a > 1000 (Payne & Hanek 1983): a / pi mod 2 as a 64-bit fraction, from the 96 bits of 1 / pi
// that matter for a's exponent. *n gets the multiple of pi (or of pi/2 with halves = 1) that was taken off, mod 2 (4).
// shift is added to a first, in units of pi/2.
static float gni_vpi_rest_big(float a, int halves, uint32_t shift, uint32_t *n) {
    static const uint32_t inv_pi[9] = {0,           0x517cc1b7u, 0x27220a94u,
                                       0xfe13abe8u, 0xfa9a6ee0u, 0x6db14accu,
                                       0x9e21c820u, 0xff28b1d5u, 0xef5de2b0u};
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    // a = m 2^e; the window starts at the bit of 1 / pi that weighs 2^-e.
    uint32_t start = (bits >> 23) - 150u + 31u, word = start >> 5, left = start & 31u, w[3];
    uint64_t m = (bits & 0x7fffffu) | 0x800000u;
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t two = ((uint64_t)inv_pi[word + i] << 32) | inv_pi[word + i + 1];
        w[i] = (uint32_t)((two << left) >> 32);
    }
    uint64_t p = ((m * w[0]) << 32) + m * w[1] + ((m * w[2]) >> 32) + ((uint64_t)shift << 62);
    int unit = halves ? 62 : 63;
    uint64_t count = ((p >> (unit - 1)) + 1) >> 1;
    *n = (uint32_t)count;
    p -= count << unit;
    double rest = p >> 63 ? -(double)(~p + 1) : (double)p;
    return (float)(rest * (3.14159265358979323846 / 9223372036854775808.0));
}
// Puts the rests of the finite lanes above GNI_V_TRIG_MAX into r, and the lowest bit of the count into the top bit of sign.
static gni_vf gni_vtrig_rare(gni_vf a, gni_vf r, gni_vu *sign, int halves, uint32_t shift) {
    float av[GNI_VW], rv[GNI_VW];
    uint32_t sv[GNI_VW];
    gni_vstore(av, a);
    gni_vstore(rv, r);
    gni_vstoreu(sv, *sign);
    for (int i = 0; i < GNI_VW; i++) {
        uint32_t n;
        if (!(av[i] > GNI_V_TRIG_MAX && av[i] <= 3.40282347e+38f)) continue;
        rv[i] = gni_vpi_rest_big(av[i], halves, shift, &n);
        sv[i] = n << 31;
    }
    *sign = gni_vloadu(sv);
    return gni_vload(rv);
}
// sin(r) for |r| <= pi/2.
GNI_INLINE gni_vf gni_vsin_poly(gni_vf r) {
    gni_vf z = r * r, p = gni_vset(2.60572824e-06f);
    p = gni_vmad(p, z, -0.000198096546f);
    p = gni_vmad(p, z, 0.00833306834f);
    // z^2 p + z c instead of z (z p + c): half the error at pi/2
    p = gni_vfma(z, gni_vset(-0.166666597f), p * (z * z));
    p = gni_vfma(p, r, r);
#if !GNI_V_FUSED
    // The roundings of products would be too much near pi/2: there it is the cosine of what is missing.
    gni_vf a = gni_vabs(r), w = (gni_vset(GNI_V_PIO2) - a) + gni_vset(GNI_V_PIO2_LO), v = w * w;
    gni_vf c = gni_vset(2.44318762e-05f);
    c = gni_vmad(c, v, -0.00138873071f);
    c = gni_vmad(c, v, 0.0416666456f);
    c = (v * v) * c - v * gni_vset(0.5f);
    p = gni_ksel(gni_kgt(a, gni_vset(0.785398185f)), gni_vcopysign(c + gni_vset(1.0f), r), p);
#endif
    return p;
}
GNI_INLINE gni_vf gni_vsin(gni_vf x) {
    gni_vf a = gni_vabs(x), t = gni_vmad(a, gni_vset(0.318309873f), GNI_V_MAGIC);
    gni_vf r = gni_vpi_rest(a, t - gni_vset(GNI_V_MAGIC));
    gni_vu sign = gni_vf_ubits(t) << 31;
    gni_vmask rare = gni_kgt(a, gni_vset(GNI_V_TRIG_MAX));
    if (gni_kany(rare)) r = gni_vtrig_rare(a, r, &sign, 0, 0);
    return gni_vxor(gni_vsin_poly(r), sign ^ gni_vsignof(x));
}
// cos(a) = -sin(r) (-1)^j for a = (j + 1/2) pi + r.
GNI_INLINE gni_vf gni_vcos(gni_vf x) {
    gni_vf a = gni_vabs(x), t = gni_vmad(a, gni_vset(0.318309873f), -0.5f) + gni_vset(GNI_V_MAGIC);
    gni_vf r = gni_vpi_rest(a, (t - gni_vset(GNI_V_MAGIC)) + gni_vset(0.5f));
    gni_vu sign = ~gni_vf_ubits(t) << 31;
    gni_vmask rare = gni_kgt(a, gni_vset(GNI_V_TRIG_MAX));
    if (gni_kany(rare)) r = gni_vtrig_rare(a, r, &sign, 0, 1);
    return gni_vxor(gni_vsin_poly(r), sign);
}
GNI_INLINE gni_vf gni_vtan(gni_vf x) {
    gni_vf a = gni_vabs(x), t = gni_vmad(a, gni_vset(0.636619747f), GNI_V_MAGIC);
    gni_vf r = gni_vpi_rest(a, (t - gni_vset(GNI_V_MAGIC)) * gni_vset(0.5f));
    gni_vu odd = gni_vf_ubits(t) << 31;
    gni_vmask rare = gni_kgt(a, gni_vset(GNI_V_TRIG_MAX));
    if (gni_kany(rare)) r = gni_vtrig_rare(a, r, &odd, 1, 0);
    gni_vf z = r * r, p = gni_vset(0.00944519881f);
    p = gni_vmad(p, z, 0.0030206563f);
    p = gni_vmad(p, z, 0.0244908202f);
    p = gni_vmad(p, z, 0.0533946529f);
    p = gni_vmad(p, z, 0.13338995f);
    p = gni_vmad(p, z, 0.333331496f);
    p = gni_vfma(p * z, r, r);
    p = gni_ksel(gni_kilt(gni_vu_i(odd), gni_vseti(0)), gni_vset(-1.0f) / p, p);
    return gni_vxor(p, gni_vsignof(x));
}

// ---- asin, acos, atan, atan2

#define gni_vasin_poly GNI_FN(gni_vm_asin_poly)
#define gni_vatan_poly GNI_FN(gni_vm_atan_poly)
#define gni_vasin GNI_FN(gni_vm_asin)
#define gni_vacos GNI_FN(gni_vm_acos)
#define gni_vatan GNI_FN(gni_vm_atan)
#define gni_vatan2 GNI_FN(gni_vm_atan2)

// asin(a) for a <= 1/2, else asin(sqrt((1 - a) / 2)) with *upper set: asin(a) is pi/2 minus twice that.
GNI_INLINE gni_vf gni_vasin_poly(gni_vf a, gni_vmask *upper) {
    gni_vf half = gni_vset(0.5f), folded = gni_vfnma(a, half, half);
    *upper = gni_kgt(a, half);
    gni_vf z = gni_ksel(*upper, folded, a * a), s = gni_ksel(*upper, gni_vsqrt(folded), a);
    gni_vf p = gni_vset(0.0421581976f);
    p = gni_vmad(p, z, 0.0241848044f);
    p = gni_vmad(p, z, 0.0454691499f);
    p = gni_vmad(p, z, 0.0749530941f);
    p = gni_vmad(p, z, 0.166667521f);
    return gni_vfma(p * z, s, s);
}
GNI_INLINE gni_vf gni_vasin(gni_vf x) {
    gni_vmask upper;
    gni_vf p = gni_vasin_poly(gni_vabs(x), &upper), twice = p + p;
    gni_vf q = gni_vset(GNI_V_PIO2) - (twice - gni_vset(GNI_V_PIO2_LO));
    return gni_vcopysign(gni_ksel(upper, q, p), x);
}
GNI_INLINE gni_vf gni_vacos(gni_vf x) {
    gni_vmask upper, below = gni_klt(x, gni_vset(0.0f));
    gni_vf p = gni_vasin_poly(gni_vabs(x), &upper), twice = p + p, low = gni_vset(GNI_V_PIO2_LO);
    gni_vf mid = gni_vset(GNI_V_PIO2) - (gni_vcopysign(p, x) - low);
    gni_vf end = gni_ksel(below, gni_vset(2 * GNI_V_PIO2) - (twice - (low + low)), twice);
    return gni_ksel(upper, end, mid);
}
// atan(t) for 0 <= t <= 1.
GNI_INLINE gni_vf gni_vatan_poly(gni_vf t) {
    gni_vf z = t * t, p = gni_vset(-0.00178292743f);
    p = gni_vmad(p, z, 0.0108690094f);
    p = gni_vmad(p, z, -0.0310973749f);
    p = gni_vmad(p, z, 0.0578816198f);
    p = gni_vmad(p, z, -0.0839931294f);
    p = gni_vmad(p, z, 0.109508812f);
    p = gni_vmad(p, z, -0.142640159f);
    p = gni_vmad(p, z, 0.199985296f);
    p = gni_vmad(p, z, -0.333332986f);
    return gni_vfma(p * z, t, t);
}
GNI_INLINE gni_vf gni_vatan(gni_vf x) {
    gni_vf a = gni_vabs(x), one = gni_vset(1.0f);
    gni_vmask upper = gni_kgt(a, one);
    gni_vf p = gni_vatan_poly(gni_ksel(upper, one / a, a));
    gni_vf q = gni_vset(GNI_V_PIO2) - (p - gni_vset(GNI_V_PIO2_LO));
    return gni_vcopysign(gni_ksel(upper, q, p), x);
}
GNI_INLINE gni_vf gni_vatan2(gni_vf y, gni_vf x) {
    gni_vf ay = gni_vabs(y), ax = gni_vabs(x), low = gni_vset(GNI_V_PIO2_LO);
    gni_vmask steep = gni_kgt(ay, ax);
    gni_vf num = gni_ksel(steep, ax, ay), den = gni_ksel(steep, ay, ax), t = num / den;
    // 0/0 stands for 0 and Inf/Inf for 1.
    gni_vf one = gni_vset(1.0f), zero = gni_vset(0.0f);
    t = gni_ksel(gni_keq(num, den), gni_ksel(gni_kgt(den, zero), one, zero), t);
    gni_vf p = gni_vatan_poly(t);
    p = gni_ksel(steep, gni_vset(GNI_V_PIO2) - (p - low), p);
    gni_vmask left = gni_kilt(gni_vf_bits(x), gni_vseti(0));
    p = gni_ksel(left, gni_vset(2 * GNI_V_PIO2) - (p - (low + low)), p);
    return gni_vcopysign(p, y);
}

// ---- hyperbolic functions

#define gni_vhyp_parts GNI_FN(gni_vm_hyp_parts)
#define gni_vsinh GNI_FN(gni_vm_sinh)
#define gni_vcosh GNI_FN(gni_vm_cosh)
#define gni_vtanh GNI_FN(gni_vm_tanh)
#define gni_vasinh GNI_FN(gni_vm_asinh)
#define gni_vacosh GNI_FN(gni_vm_acosh)
#define gni_vatanh GNI_FN(gni_vm_atanh)

// a = n ln 2 + r, *c = cosh(r), *s = sinh(r), *up = 2^(n-2), *down = 2^(-n-2), for 0 <= a < 89.5.
GNI_INLINE void gni_vhyp_parts(gni_vf a, gni_vf *c, gni_vf *s, gni_vf *up, gni_vf *down) {
    gni_vf t, r = gni_vexp_reduce(a, &t), z = r * r, p = gni_vset(0.0013935871f);
    gni_vu n = gni_vf_ubits(t) << 23;
    *up = gni_vu_float(0x3e800000u + n);
    // 2^(-n-2) no longer matters from n = 30 on, and has to stay normal.
    n = gni_kselu(gni_klt(t, gni_vset(GNI_V_MAGIC + 60.0f)), n, gni_vsetu(60u << 23));
    *down = gni_vu_float(0x3e800000u - n);
    p = gni_vmad(p, z, 0.0416664556f);
    p = gni_vmad(p, z, 0.5f);
    *c = gni_vmad(p, z, 1.0f);
    p = gni_vset(0.000199729344f);
    p = gni_vmad(p, z, 0.00833317637f);
    p = gni_vmad(p, z, 0.166666672f);
    *s = gni_vfma(p * z, r, r);
}
// sinh(a) = (2^n - 2^-n)/2 cosh(r) + (2^n + 2^-n)/2 sinh(r); everything at half size, so that it overflows last.
GNI_INLINE gni_vf gni_vsinh(gni_vf x) {
    gni_vf a = gni_vminc(gni_vabs(x), gni_vset(89.45f)), c, s, up, down;
    gni_vhyp_parts(a, &c, &s, &up, &down);
    gni_vf y = gni_vfma(up - down, c, (up + down) * s);
    y = gni_ksel(gni_keq(up, gni_vset(0.25f)), s, y + y);
    return gni_vcopysign(y, x);
}
GNI_INLINE gni_vf gni_vcosh(gni_vf x) {
    gni_vf a = gni_vminc(gni_vabs(x), gni_vset(89.45f)), c, s, up, down;
    gni_vhyp_parts(a, &c, &s, &up, &down);
    gni_vf y = gni_vfma(up - down, s, (up + down) * c);
    return y + y;
}
GNI_INLINE gni_vf gni_vtanh(gni_vf x) {
    gni_vf a = gni_vabs(x), z = a * a, one = gni_vset(1.0f), p = gni_vset(-0.00569228595f);
    p = gni_vmad(p, z, 0.0206281636f);
    p = gni_vmad(p, z, -0.0537365153f);
    p = gni_vmad(p, z, 0.133314058f);
    p = gni_vmad(p, z, -0.333332807f);
    p = gni_vfma(p * z, a, a);
    // From 0.625 on it is 1 - 2 / (exp(2 a) + 1), and what exp's argument lacks in precision does not show.
    gni_vf b = gni_vminc(a, gni_vset(9.5f)), scale = gni_vset(2.88539004f);
    gni_vf t = gni_vmad(b, scale, GNI_V_MAGIC);
    gni_vf r = gni_vfma(b, scale, gni_vset(GNI_V_MAGIC) - t);
    gni_vf e = gni_vexp2_poly(r) + one;
    e = gni_vu_float(gni_vf_ubits(e) + (gni_vf_ubits(t) << 23)) + one;
    gni_vf q = one - gni_vset(2.0f) / e;
    return gni_vcopysign(gni_ksel(gni_kge(a, gni_vset(0.625f)), q, p), x);
}
GNI_INLINE gni_vf gni_vasinh(gni_vf x) {
    gni_vf a = gni_vabs(x), one = gni_vset(1.0f), zero = gni_vset(0.0f);
    gni_vmask big = gni_kge(a, gni_vset(268435456.0f));
    gni_vf z = a * a, v = a + z / (one + gni_vsqrt(z + one));
    // From 2^28 on asinh(a) is log(2 a).
    gni_vf y = gni_vlog1p_up(gni_ksel(big, a, v), gni_ksel(big, one, zero));
    y = gni_ksel(gni_klt(a, gni_vset(INFINITY)), y, a);
    return gni_vcopysign(y, x);
}
GNI_INLINE gni_vf gni_vacosh(gni_vf x) {
    gni_vf one = gni_vset(1.0f), zero = gni_vset(0.0f), inf = gni_vset(INFINITY), t = x - one;
    gni_vmask big = gni_kge(x, gni_vset(268435456.0f));
    gni_vf v = t + gni_vsqrt(gni_vfma(t, t, t + t));
    gni_vf y = gni_vlog1p_up(gni_ksel(big, x, v), gni_ksel(big, one, zero));
    return gni_ksel(gni_kand(gni_kge(x, one), gni_klt(x, inf)), y,
                    gni_ksel(gni_klt(x, one), inf - inf, x));
}
GNI_INLINE gni_vf gni_vatanh(gni_vf x) {
    gni_vf a = gni_vabs(x), one = gni_vset(1.0f), inf = gni_vset(INFINITY);
    gni_vf y = gni_vset(0.5f) * gni_vlog1p_up((a + a) / (one - a), gni_vset(0.0f));
    gni_vf odd = gni_ksel(gni_keq(a, one), inf, gni_ksel(gni_kgt(a, one), inf - inf, x));
    // half of it would lose the last bit of a subnormal
    y = gni_ksel(gni_klt(a, gni_vset(1e-4f)), gni_vfma(a * gni_vset(0.333333343f), a * a, a), y);
    return gni_vcopysign(gni_ksel(gni_klt(a, one), y, odd), x);
}

// ---- erf, gelu, sigmoid, softplus

#define gni_verf GNI_FN(gni_vm_erf)
#define gni_vgelu GNI_FN(gni_vm_gelu)
#define gni_vsigmoid GNI_FN(gni_vm_sigmoid)
#define gni_vsoftplus GNI_FN(gni_vm_softplus)
#define gni_verf_near0 GNI_FN(gni_vm_erf_near0)
#define gni_vbell GNI_FN(gni_vm_bell)

// erf(x) for |x| < 0.93.
GNI_INLINE gni_vf gni_verf_near0(gni_vf x) {
    gni_vf z = x * x, p = gni_vset(-0.000595957681f);
    p = gni_vmad(p, z, 0.00498735206f);
    p = gni_vmad(p, z, -0.0267629661f);
    p = gni_vmad(p, z, 0.11281731f);
    p = gni_vmad(p, z, -0.376124889f);
    p = gni_vmad(p, z, 0.128379151f);
    return gni_vfma(p, x, x);
}
GNI_INLINE gni_vf gni_verf(gni_vf x) {
    gni_vf a = gni_vabs(x), p = gni_verf_near0(a);
    // 1 - exp(q(a)) further out
    gni_vf b = gni_vminc(a, gni_vset(3.95f)), q = gni_vset(0.000194772438f);
    q = gni_vmad(q, b, -0.00303177396f);
    q = gni_vmad(q, b, 0.0221812353f);
    q = gni_vmad(q, b, -0.103836671f);
    q = gni_vmad(q, b, -0.637290597f);
    q = gni_vmad(q, b, -1.12761116f);
    q = gni_vmad(q, b, -0.000211310442f);
    q = gni_vset(1.0f) - gni_vexp_mid(q);
    return gni_vcopysign(gni_ksel(gni_kge(a, gni_vset(0.93f)), q, p), x);
}
// by t^2 = n ln(2) + r + *lost for by = -1 or -1/2, by an exact square and the small rest; *s = GNI_V_MAGIC + n.
GNI_INLINE gni_vf gni_vbell(gni_vf t, float by, gni_vf *s, gni_vf *lost) {
    gni_vf head = gni_vhead(t), high = head * head * gni_vset(by), low = (t - head) * (t + head) * gni_vset(by);
    *s = gni_vmad(high + low, gni_vset(1.44269502f), GNI_V_MAGIC);
    gni_vf n = *s - gni_vset(GNI_V_MAGIC), part = gni_vset(1.42860677e-06f);
    high = gni_vfnma(n, gni_vset(0.693145752f), high);
    gni_vf sum = high + low, r = gni_vfnma(n, part, sum);
    *lost = ((high - sum) + low) + gni_vfnma(n, part, sum - r);
    return r;
}
// gelu(x) = x Phi(x) = max(x, 0) - t Phi(-t), t = |x|; Phi(-t) is exp(-t^2 / 2) / (t + 3) times a polynomial in
// (t - 3)/(t + 3) (after Shepherd & Laframboise 1981).
GNI_INLINE gni_vf gni_vgelu(gni_vf x) {
    gni_vf t = gni_vminc(gni_vabs(x), gni_vset(14.5f)), three = gni_vset(3.0f);
    gni_vf v = t / (t + three), u = gni_vmad(v, gni_vset(2.0f), -1.0f),
           p = gni_vset(6.67413406e-05f);
    p = gni_vmad(p, u, -0.000191920946f);
    p = gni_vmad(p, u, -0.000970534864f);
    p = gni_vmad(p, u, 0.00100017991f);
    p = gni_vmad(p, u, 0.00695027504f);
    p = gni_vmad(p, u, -0.0104551166f);
    p = gni_vmad(p, u, -0.0472608879f);
    p = gni_vmad(p, u, 0.230016679f);
    p = gni_vmad(p, u, -0.509332001f);
    p = gni_vmad(p, u, 0.729083717f);
    gni_vf s, lost, r = gni_vbell(t, -0.5f, &s, &lost);
    p = gni_vfma(p, gni_vexp_poly(r), p);
    gni_vf y = gni_vmaxc(x, gni_vset(0.0f)) - gni_vscale(v * p, s);
    // Near 0 the sum about Phi(0) is the better one.
    gni_vf z = x * x, q = gni_vset(-0.00112265977f);
    q = gni_vmad(q, z, 0.00996110681f);
    q = gni_vmad(q, z, -0.066489473f);
    q = gni_vmad(q, z, 0.398942262f);
    q = gni_vfma(q, z, x * gni_vset(0.5f));
    return gni_vcopysign(gni_ksel(gni_klt(t, gni_vset(0.5f)), q, y), x);
}
GNI_INLINE gni_vf gni_vsigmoid(gni_vf x) {
    gni_vf one = gni_vset(1.0f), e = gni_vexp(-gni_vabs(x));
    return gni_ksel(gni_klt(x, gni_vset(0.0f)), e, one) / (e + one);
}
GNI_INLINE gni_vf gni_vsoftplus(gni_vf x) {
    gni_vf zero = gni_vset(0.0f);
    return gni_vmaxc(x, zero) + gni_vlog1p_up(gni_vexp(-gni_vabs(x)), zero);
}

// ---- cbrt, hypot, pow

#define gni_vcbrt GNI_FN(gni_vm_cbrt)
#define gni_vmagnitudes GNI_FN(gni_vm_magnitudes)
#define gni_vhypot_mid GNI_FN(gni_vm_hypot_mid)
#define gni_vor_inf GNI_FN(gni_vm_or_inf)
#define gni_vhypot GNI_FN(gni_vm_hypot)
#define gni_vroot_size GNI_FN(gni_vm_root_size)
#define gni_vproduct_rest GNI_FN(gni_vm_product_rest)
#define gni_vsum_rest GNI_FN(gni_vm_sum_rest)
#define gni_vlog_size GNI_FN(gni_vm_log_size)
#define gni_vlog2_pair GNI_FN(gni_vm_log2_pair)
#define gni_vexp2_pair GNI_FN(gni_vm_exp2_pair)
#define gni_vpow_product GNI_FN(gni_vm_pow_product)
#define gni_vpow_end GNI_FN(gni_vm_pow_end)
#define gni_vpow_rare GNI_FN(gni_vm_pow_rare)
#define gni_vpow_half GNI_FN(gni_vm_pow_half)
#define gni_vpow GNI_FN(gni_vm_pow)

// A third-order and a Newton step for y = x^(-1/3) from a guess made with the exponent bits (no division), then x y^2 and
// one more step there.
GNI_INLINE gni_vf gni_vcbrt(gni_vf x) {
    gni_vf a = gni_vabs(x), third = gni_vset(0.333333343f), one = gni_vset(1.0f);
    gni_vf least = gni_vset(1.17549435e-38f), inf = gni_vset(INFINITY), back = one;
    gni_vmask usual = gni_kand(gni_kge(a, least), gni_klt(a, inf));
    int rare = gni_kany(gni_knot(usual));
    if (rare) {
        gni_vmask sub = gni_klt(a, least);
        back = gni_ksel(sub, gni_vset(0.00390625f), one);
        a = gni_ksel(sub, a * gni_vset(16777216.0f), a);
    }
    gni_vf guess = gni_vfnma(gni_itov(gni_vf_bits(a)), third, gni_vset(1419967116.0f));
    gni_vf y = gni_vi_float(gni_vtoi_fast(guess)), e = gni_vfnma(a * y * y, y, one);
    y = gni_vfma(y * e, gni_vmad(e, gni_vset(0.222222224f), 0.333333343f), y);
    e = gni_vfnma(a * y * y, y, one);
    y = gni_vfma(y * e, third, y);
    gni_vf w = y * y, c = a * w, c2 = c * c;
    // rest = a - c^3 to more than the precision of c^2
#if GNI_V_FUSED
    gni_vf rest = gni_vfnma(c2, c, a);
    rest = gni_vfnma(gni_vfma(c, c, -c2), c, rest);
#else
    gni_vf head = gni_vhead(c), d = c - head, low = d * (c + head), h2 = gni_vhead(head * head);
    c2 = head * head;
    gni_vf rest = (a - h2 * head) - ((c2 - h2) * head + (c2 * d + low * c));
#endif
    c = gni_vfma(rest, w * third, c);
    if (rare) {
        c = gni_ksel(gni_kand(gni_kgt(a, gni_vset(0.0f)), gni_klt(a, inf)), c * back, a);
    }
    return gni_vcopysign(c, x);
}
// The larger magnitude of x and y and the smaller one, both multiplied by a power of two that keeps their squares ordinary:
// returns the power that undoes it, 1, 2^70 or 2^-100.
GNI_INLINE gni_vf gni_vmagnitudes(gni_vf x, gni_vf y, gni_vf *a, gni_vf *b) {
    gni_vf ax = gni_vabs(x), ay = gni_vabs(y), one = gni_vset(1.0f);
    gni_vmask steep = gni_kgt(ay, ax);
    *a = gni_ksel(steep, ay, ax), *b = gni_ksel(steep, ax, ay);
    gni_vmask big = gni_kgt(*a, gni_vset(1e18f)), tiny = gni_klt(*a, gni_vset(1e-15f));
    gni_vf scale =
        gni_ksel(big, gni_vset(8.47032947e-22f), gni_ksel(tiny, gni_vset(1.2676506e+30f), one));
    *a = *a * scale;
    *b = *b * scale;
    return gni_ksel(big, gni_vset(1.18059162e+21f), gni_ksel(tiny, gni_vset(7.88860905e-31f), one));
}
// The root of a^2 + b^2 with the square of a's head exact.
GNI_INLINE gni_vf gni_vhypot_mid(gni_vf a, gni_vf b) {
    gni_vf head = gni_vhead(a), low = gni_vfma(a - head, a + head, b * b);
    return gni_vsqrt(gni_vfma(head, head, low));
}
// y, or infinity where one of the parts is infinite.
GNI_INLINE gni_vf gni_vor_inf(gni_vf x, gni_vf y, gni_vf r) {
    gni_vf inf = gni_vset(INFINITY);
    return gni_ksel(gni_kor(gni_keq(gni_vabs(x), inf), gni_keq(gni_vabs(y), inf)), inf, r);
}
GNI_INLINE gni_vf gni_vhypot(gni_vf x, gni_vf y) {
    gni_vf a, b, back = gni_vmagnitudes(x, y, &a, &b);
    return gni_vor_inf(x, y, gni_vhypot_mid(a, b) * back);
}
// Of the complex number x + iy: the root of half of |x| and the magnitude.
GNI_INLINE gni_vf gni_vroot_size(gni_vf x, gni_vf y) {
    gni_vf a, b, back = gni_vmagnitudes(x, y, &a, &b), size = gni_vhypot_mid(a, b);
    gni_vf part = gni_ksel(gni_kgt(gni_vabs(y), gni_vabs(x)), b, a);
    return gni_vor_inf(x, y, gni_vsqrt((part + size) * gni_vset(0.5f)) * gni_vsqrt(back));
}
// What rounding took from p = a * b, and from s = a + b (Knuth).
GNI_INLINE gni_vf gni_vproduct_rest(gni_vf a, gni_vf b, gni_vf p) {
#if GNI_V_FUSED
    return gni_vfma(a, b, -p);
#else
    gni_vf ah = gni_vhead(a), al = a - ah, bh = gni_vhead(b), bl = b - bh;
    return ((ah * bh - p) + (ah * bl + al * bh)) + al * bl;
#endif
}
GNI_INLINE gni_vf gni_vsum_rest(gni_vf a, gni_vf b, gni_vf s) {
    gni_vf t = s - a;
    return (a - (s - t)) + (b - t);
}
// The logarithm of the magnitude: of a^2 + b^2 with the errors of squares and sums, which are all that is left near 1.
GNI_INLINE gni_vf gni_vlog_size(gni_vf x, gni_vf y) {
    gni_vf a, b, back = gni_vmagnitudes(x, y, &a, &b), zero = gni_vset(0.0f), k;
    gni_vf p = a * a, q = b * b, p1 = gni_vproduct_rest(a, a, p), q1 = gni_vproduct_rest(b, b, q), s = p + q;
    gni_vf lost = q - (s - p), u = p1 + q1, w = lost + u, m = gni_vlog_bits(s, &k), f = m - gni_vset(1.0f);
    gni_vf scale = gni_vu_float(0x3f800000u - (gni_vf_ubits(s) - gni_vf_ubits(m))), h = w * scale, g = f + h; // 2^-k
    gni_vf rest = gni_vsum_rest(f, h, g) + (gni_vsum_rest(lost, u, w) + gni_vsum_rest(p1, q1, u)) * scale;
    gni_vf up = gni_ksel(gni_kgt(back, gni_vset(1.0f)), gni_vset(140.0f),
                         gni_ksel(gni_klt(back, gni_vset(1.0f)), gni_vset(-200.0f), zero));
    gni_vf r = gni_vlog_near1(k + up, g + rest) * gni_vset(0.5f);
    r = gni_ksel(gni_keq(a, zero), gni_vset(-INFINITY), r);
    return gni_vor_inf(x, y, gni_ksel(gni_keq(x, x), gni_ksel(gni_keq(y, y), r, y), x));
}
// log2(x) as a 12-bit head and a rest, for normal x > 0: log((1 + s)/(1 - s)) with s = (m - 1)/(m + 1).
GNI_INLINE gni_vf gni_vlog2_pair(gni_vf x, gni_vf *rest) {
    gni_vf k, one = gni_vset(1.0f), m = gni_vlog_bits(x, &k), f = m - one, inv = one / (m + one);
    gni_vf dh = gni_vhead(m + one), dl = m - (dh - one), sh = gni_vhead(f * inv);
    gni_vf sl = gni_vfnma(sh, dl, gni_vfnma(sh, dh, f)) * inv, s = sh + sl, z = s * s;
    gni_vf p = gni_vmad(z, gni_vset(0.336952269f), 0.411908448f),
           q = gni_vmad(z, gni_vset(0.577078998f), 0.961796701f);
    p = gni_vfma(p, z * z, q);
    // 2 / ln(2) is 2.88476562 (12 bits) + 0.000624456792
    gni_vf top = sh * gni_vset(2.88476562f), sum = k + top;
    gni_vf low = gni_vfma(s, gni_vset(0.000624456792f), p * (s * z));
    low = gni_vfma(sl, gni_vset(2.88476562f), low) + ((k - sum) + top);
    gni_vf head = gni_vhead(sum + low);
    *rest = (sum - head) + low;
    return head;
}
// 2^(d + low), |d + low| <= 1/2, to little more than half an ulp, so that small whole powers come out exact.
GNI_INLINE gni_vf gni_vexp2_pair(gni_vf d, gni_vf low) {
    gni_vf one = gni_vset(1.0f), r = d + low, head = gni_vhead(r),
           tail = ((d - r) + low) + (r - head);
    gni_vf w = r * r, p = gni_vmad(r, gni_vset(0.000153269313f), 0.00133912405f);
    gni_vf q = gni_vmad(r, gni_vset(0.00961850584f), 0.0555035919f);
    p = gni_vfma(gni_vfma(p, w, q), r, gni_vset(0.240226477f));
    // ln(2) is 0.693115234 (12 bits) + 3.19461849e-05
    gni_vf top = head * gni_vset(0.693115234f), sum = one + top;
    p = gni_vfma(p, w, head * gni_vset(3.19461849e-05f));
    p = gni_vfma(tail, gni_vset(0.693147182f), p);
    return sum + (((one - sum) + top) + p);
}
// y (head + rest) in two parts: *z is exact, *low has what is missing.
GNI_INLINE void gni_vpow_product(gni_vf y, gni_vf head, gni_vf rest, gni_vf *z, gni_vf *low) {
    gni_vf yh = gni_vhead(y);
    *z = yh * head;
    *low = gni_vfma(y - yh, head, y * rest);
}
GNI_INLINE gni_vf gni_vpow_end(gni_vf z, gni_vf low) {
    gni_vf t = (z + low) + gni_vset(GNI_V_MAGIC), n = t - gni_vset(GNI_V_MAGIC);
    return gni_vscale(gni_vexp2_pair(z - n, low), t);
}
// A root, but for -inf and -0.
GNI_INLINE gni_vf gni_vpow_half(gni_vf x) {
    const gni_vf most = gni_vset(INFINITY);
    return gni_vabs(gni_vsqrt(gni_ksel(gni_keq(x, -most), most, x)));
}
// pow for all arguments, with C99's special cases.
static gni_vf gni_vpow_rare(gni_vf x, gni_vf y) {
    gni_vf zero = gni_vset(0.0f), one = gni_vset(1.0f), inf = gni_vset(INFINITY),
           limit = gni_vset(1099511627776.0f);
    gni_vf a = gni_vabs(x), ay = gni_vabs(y), bound = gni_vset(200.0f), z, low, rest;
    gni_vmask sub = gni_klt(a, gni_vset(1.17549435e-38f));
    gni_vf head = gni_vlog2_pair(gni_ksel(sub, a * gni_vset(8388608.0f), a), &rest);
    gni_vf shift = gni_ksel(sub, gni_vset(-23.0f), zero), sum = head + shift, h = gni_vhead(sum);
    rest = rest + ((head - sum) + shift) + (sum - h);
    gni_vpow_product(gni_vmaxc(gni_vminc(y, limit), -limit), h, rest, &z, &low);
    z = gni_vmaxc(gni_vminc(z, bound), -bound);
    low = gni_vmaxc(gni_vminc(low, one), -one);
    gni_vf r = gni_vpow_end(z, low);

    gni_vf half = y * gni_vset(0.5f);
    gni_vmask whole = gni_keq(gni_vtrunc(y), y), below = gni_klt(y, zero);
    gni_vmask odd = gni_kand(gni_kand(whole, gni_kne(gni_vtrunc(half), half)),
                          gni_klt(ay, gni_vset(16777216.0f)));
    r = gni_ksel(gni_keq(a, zero), gni_ksel(below, inf, zero), r);
    r = gni_ksel(gni_keq(a, inf), gni_ksel(below, zero, inf), r);
    r = gni_ksel(gni_keq(a, one), one, r);
    gni_vmask minus = gni_kilt(gni_vf_bits(x), gni_vseti(0));
    r = gni_ksel(gni_kand(minus, odd), -r, r);
    gni_vmask none = gni_kand(gni_kand(gni_klt(x, zero), gni_kgt(x, -inf)), gni_knot(whole));
    r = gni_ksel(none, inf - inf, r);
    r = gni_ksel(gni_kor(gni_knan(x), gni_knan(y)), x + y, r);
    r = gni_ksel(gni_keq(y, gni_vset(0.5f)), gni_vpow_half(x), r);
    return gni_ksel(gni_kor(gni_keq(x, one), gni_keq(y, zero)), one, r);
}
GNI_INLINE gni_vf gni_vpow(gni_vf x, gni_vf y) {
    gni_vf rest, head = gni_vlog2_pair(x, &rest), z, low;
    gni_vpow_product(y, head, rest, &z, &low);
    gni_vf r = gni_vpow_end(z, low);
    gni_vmask usual = gni_kand(gni_kge(x, gni_vset(1.17549435e-38f)), gni_klt(x, gni_vset(INFINITY)));
    usual = gni_kand(usual, gni_kle(gni_vabs(z + low), gni_vset(200.0f)));
    usual = gni_kand(usual, gni_kne(y, gni_vset(0.5f)));
    if (gni_kany(gni_knot(usual))) r = gni_ksel(usual, r, gni_vpow_rare(x, y));
    return r;
}

// ---- erfc, its inverse, gamma's functions

#define gni_verfc GNI_FN(gni_vm_erfc)
#define gni_verfinv GNI_FN(gni_vm_erfinv)
#define gni_vlgamma GNI_FN(gni_vm_lgamma)
#define gni_vdigamma GNI_FN(gni_vm_digamma)

// erfc(a) = c exp(-a^2) (1 + N(a)/D(a)) / (a + 7/16). Of 1 / (a + 7/16) a head t and by how much that differs, so that c t
// is exact and all else adds little.
GNI_INLINE gni_vf gni_verfc(gni_vf x) {
    gni_vf a = gni_vminc(gni_vabs(x), gni_vset(10.1f)), one = gni_vset(1.0f), part = gni_vset(0.4375f), d = a + part, s;
    gni_vf p = gni_vmad(a, gni_vset(7.2549301e-07f), -0.012351105f), q = gni_vmad(a, gni_vset(0.226296335f), 0.95615679f);
    p = gni_vmad(gni_vmad(p, a, 0.0420437679f), a, 0.172065839f);
    p = gni_vmad(gni_vmad(p, a, 0.258887231f), a, -0.266668886f);
    q = gni_vmad(gni_vmad(q, a, 2.05135107f), a, 2.20645952f);
    q = gni_vmad(q, a, 1.0f);
    gni_vf inv = one / (q * d), t = gni_vhead(q * inv), dh = gni_vhead(d), lost, r = gni_vbell(a, -1.0f, &s, &lost);
    p = p * (d * inv);
    q = gni_vfnma(t, a - (dh - part), gni_vfnma(t, dh, one));
    q = gni_vfma(q, q, q);
    p = gni_vfma(p, q, p + q);
    // (1 + p) exp(r) = 1 + r + q
    q = gni_vfma(gni_vexp_end(r), r * r, lost);
    q = gni_vfma(p, r + q, p + q);
    t = t * gni_vset(0.5966796875f);
    t = gni_vscale(gni_vfma(t, r, q * t) + t, s);
    t = gni_ksel(gni_klt(x, gni_vset(0.0f)), gni_vset(2.0f) - t, t);
    return gni_ksel(gni_kge(a, gni_vset(0.47f)), t, one - gni_verf_near0(x));
}
// x times a polynomial in w = -log(1 - x^2) up to 4.68, then in its root.
GNI_INLINE gni_vf gni_verfinv(gni_vf x) {
    gni_vf a = gni_vabs(x), one = gni_vset(1.0f), inf = gni_vset(INFINITY), k, m = gni_vlog_bits((one - a) * (one + a), &k);
    gni_vf w = -gni_vlog_near1(k, m - one), t = w - gni_vset(1.875f), s = gni_vsqrt(w) - gni_vset(3.0f);
    gni_vf p = gni_vmad(t, gni_vset(-1.03802753e-08f), 7.86842662e-08f), q = gni_vset(0.000135010225f);
    p = gni_vmad(gni_vmad(p, t, 2.36350544e-07f), t, -5.11600138e-06f);
    p = gni_vmad(gni_vmad(p, t, 1.13406577e-05f), t, 0.000210060753f);
    p = gni_vmad(gni_vmad(p, t, -0.00179874955f), t, -0.00131354888f);
    p = gni_vmad(gni_vmad(p, t, 0.250179112f), t, 1.34596682f);
    q = gni_vmad(gni_vmad(q, s, -0.000322962296f), s, -8.55090912e-05f);
    q = gni_vmad(gni_vmad(q, s, 0.00149948127f), s, -0.00358144706f);
    q = gni_vmad(gni_vmad(q, s, 0.00568271289f), s, -0.00764104165f);
    q = gni_vmad(gni_vmad(q, s, 0.00944550708f), s, 1.00167525f);
    q = gni_vmad(q, s, 2.83297682f);
    p = gni_ksel(gni_klt(w, gni_vset(4.68f)), p, q);
    return gni_ksel(gni_klt(a, one), x * p, gni_ksel(gni_keq(a, one), x * inf, inf - inf));
}
// Of a = |x|: (a - 1)(a - 2) times a sum of v = a - 2 and a quotient up to 3, below 1 that of a + 1 less log(a), then
// Stirling's series, with products in heads and rests. For x < 0 log(|a sin(pi a) / pi|) is added and all of it subtracted.
GNI_INLINE gni_vf gni_vlgamma(gni_vf x) {
    gni_vf a = gni_vabs(x), zero = gni_vset(0.0f), one = gni_vset(1.0f), half = gni_vset(0.5f), inf = gni_vset(INFINITY);
    gni_vmask low = gni_klt(a, one), high = gni_kgt(a, gni_vset(3.0f)), minus = gni_klt(x, zero);
    gni_vf f = gni_ksel(low, a, a - one), v = f - one, p = gni_vmad(v, gni_vset(0.00242094113f), 0.0193093475f);
    gni_vf q = gni_vmad(v, gni_vset(0.0244732723f), 0.282992005f);
    p = gni_vmad(p, v, 0.0329649933f);
    q = gni_vmad(gni_vmad(q, v, 0.961431503f), v, 1.0f);
    gni_vf w = gni_ksel(high, one, p) / gni_ksel(high, a, q), c = gni_vset(0.422729492f), z = w * w;
    gni_vf s = f * v, sh = gni_vhead(s), sl = (s - sh) + gni_vproduct_rest(f, v, s);
    p = gni_vmad(gni_vmad(w, v, -0.100317299f), v, 5.48429125e-05f);
    s = gni_vfma(s, p, sl * c);
    // (a - 1/2)(log(a) - 1) and the series
    gni_vf k, r, l, t, e = a - half, eh = gni_vhead(e);
    l = gni_vlog_bits(a, &k) - one;
    l = gni_vlog_pair(k, l, -1.0f, &r);
    t = l + r;
    gni_vf lh = gni_vhead(t);
    r = ((l - t) + r) + (t - lh);
    p = gni_vmad(gni_vmad(z, gni_vset(0.000674347102f), -0.00276877242f), z, 0.0833330527f);
    p = gni_vfma((a - eh) - half, lh, gni_vfma(e, r, gni_vmad(p, w, 0.418938547f)));
    s = gni_ksel(high, p, s);
    t = gni_ksel(high, eh, sh) * gni_ksel(high, lh, c);
    if (gni_kany(gni_kor(low, minus))) {
        gni_vf y = a - gni_vrint(a), u = y * y;
        p = gni_vmad(gni_vmad(u, gni_vset(0.0247161072f), -0.190443233f), u, 0.811715841f);
        p = gni_vmad(p, u, -1.64493334f);
        y = gni_vabs(gni_vfma(p * u, y, y)) * gni_ksel(low, one, a);
        y = gni_ksel(minus, y, gni_ksel(low, a, one));
        l = gni_vlog_split(y, &k);
        l = gni_vxor(gni_vlog_pair(k, l, 0.0f, &r), gni_vsignof(x));
        a = gni_ksel(gni_keq(y, zero), inf, a);
        p = t - l;
        s = (s - gni_vxor(r, gni_vsignof(x))) - gni_vsum_rest(-t, l, -p);
        t = p;
    }
    return gni_ksel(gni_kle(a, gni_vset(4.08500311e36f)), gni_vxor(t + s, gni_vsignof(x)), a * inf);
}
// Of a = |x|: a less the root times a quotient in a - 3/2 up to 2, of a + 1 below 1, then the asymptotic series; 1 / a and
// for x < 0 pi / tan(pi a) are added: of a's distance f to a whole number 1 / f less f times a quotient in f^2, or where |f|
// is above 1/4 the tangent of pi times what is missing to 1/2.
GNI_INLINE gni_vf gni_vdigamma(gni_vf x) {
    gni_vf a = gni_vabs(x), zero = gni_vset(0.0f), one = gni_vset(1.0f), half = gni_vset(0.5f), inf = gni_vset(INFINITY);
    gni_vmask low = gni_klt(a, one), high = gni_kgt(a, gni_vset(2.0f)), minus = gni_klt(x, zero);
    gni_vf f = gni_ksel(low, a, a - one), v = f - half, inv = one / a, z = inv * inv, k, y;
    gni_vf p = gni_vmad(v, gni_vset(-0.00134778384f), -0.171581f), q = gni_vmad(v, gni_vset(0.205267489f), 0.972841918f);
    p = gni_vmad(p, v, -0.423627615f) * v / gni_vmad(q, v, 1.0f);
    f = (f - gni_vset(0.461632133f)) - gni_vset(1.24381501e-08f);
    y = f * (p + gni_vset(0.951055884f));
    f = gni_vlog_bits(a, &k) - one;
    p = gni_vmad(gni_vset(-0.00182817073f), z, 0.00356110139f);
    p = gni_vmad(p, z, -0.00830007717f);
    p = gni_vmad(p, z, 0.0833323896f);
    gni_vmask once = gni_kor(gni_kand(low, gni_knot(minus)), gni_kand(minus, gni_knot(low)));
    q = gni_vxor(gni_ksel(high, half * inv, gni_ksel(once, inv, zero)), gni_vsignof(x));
    k = gni_vlog_pair(k, f, 0.0f, &f);
    y = gni_ksel(high, k, y) - gni_ksel(high, gni_vfma(p, z, q - f), q);
    if (gni_kany(minus)) {
        f = a - gni_vrint(a);
        v = half - gni_vabs(f);
        gni_vmask end = gni_klt(v, gni_vset(0.25f));
        v = gni_ksel(end, gni_vcopysign(v, f), -f);
        z = v * v;
        p = gni_vfma(z, gni_ksel(end, gni_vset(-9.33204556f), gni_vset(-1.45035911f)),
                     gni_ksel(end, gni_vset(9.86960411f), gni_vset(3.28986812f)));
        q = gni_vfma(z, gni_ksel(end, gni_vset(0.946541429f), gni_vset(0.104550533f)),
                     gni_ksel(end, gni_vset(-4.23540926f), gni_vset(-1.09883034f)));
        p = gni_vfma(v, p / gni_vmad(q, z, 1.0f), y) + gni_ksel(end, zero, one / f);
        y = gni_ksel(minus, gni_ksel(gni_keq(f, zero), inf - inf, p), y);
    }
    return gni_ksel(gni_keq(x, inf), x, y);
}

// ---- remainders

#define gni_vfmod GNI_FN(gni_vm_fmod)
#define gni_vfmod_rare GNI_FN(gni_vm_fmod_rare)
#define gni_vmod GNI_FN(gni_vm_mod)
#define gni_vfloor_div GNI_FN(gni_vm_floor_div)

static gni_vf gni_vfmod_rare(gni_vf a, gni_vf b, gni_vf r, gni_vmask usual) {
    float av[GNI_VW], bv[GNI_VW], rv[GNI_VW];
    int32_t skip[GNI_VW];
    gni_vstore(av, a);
    gni_vstore(bv, b);
    gni_vstore(rv, r);
    gni_vstorei(skip, gni_kmask(usual));
    for (int i = 0; i < GNI_VW; i++)
        if (!skip[i]) rv[i] = fmodf(av[i], bv[i]);
    return gni_vload(rv);
}
// C's fmod, exact. A quotient of few enough bits makes the products exact; the other lanes go to the C library.
GNI_INLINE gni_vf gni_vfmod(gni_vf x, gni_vf y) {
    gni_vf a = gni_vabs(x), b = gni_vabs(y), q = a / b, n = gni_vtrunc(q);
#if GNI_V_FUSED
    gni_vf limit = gni_vset(4194304.0f), r = gni_vfnma(n, b, a);
#else
    gni_vf limit = gni_vset(1024.0f), head = gni_vhead(b), r = (a - n * head) - n * (b - head);
#endif
    // Rounding can only have made the quotient too large.
    r = gni_ksel(gni_klt(r, gni_vset(0.0f)), r + b, r);
    gni_vmask usual = gni_kand(gni_klt(q, limit), gni_klt(b, gni_vset(INFINITY)));
    if (gni_kany(gni_knot(usual))) r = gni_vfmod_rare(a, b, r, usual);
    return gni_vcopysign(r, x);
}
// Python's and NumPy's %: the result has the sign of y.
GNI_INLINE gni_vf gni_vmod(gni_vf x, gni_vf y) {
    gni_vf r = gni_vfmod(x, y), zero = gni_vset(0.0f);
    gni_vi differ = gni_vf_bits(gni_vxor(r, gni_vsignof(y)));
    gni_vf fixed = gni_ksel(gni_kilt(differ, gni_vseti(0)), r + y, r);
    return gni_ksel(gni_keq(r, zero), gni_vcopysign(zero, y), fixed);
}
// NumPy's floor_divide: (x - mod) / y put back on the integer it should be.
GNI_INLINE gni_vf gni_vfloor_div(gni_vf x, gni_vf y) {
    gni_vf r = gni_vfmod(x, y), zero = gni_vset(0.0f), one = gni_vset(1.0f);
    gni_vf q = (x - r) / y;
    gni_vmask less = gni_kand(gni_kilt(gni_vf_bits(gni_vxor(r, gni_vsignof(y))), gni_vseti(0)),
                           gni_kne(r, zero));
    q = gni_ksel(less, q - one, q);
    gni_vf f = gni_vfloor(q);
    f = gni_ksel(gni_kgt(q - f, gni_vset(0.5f)), f + one, f);
    f = gni_ksel(gni_keq(q, zero), gni_vcopysign(zero, gni_vxor(x, gni_vsignof(y))), f);
    return gni_ksel(gni_keq(y, zero), x / y, f);
}

// ---- random numbers: the same bits on every pass and on the GPU, so nothing here is fused, divided or left to a library

#define gni_vphilox GNI_FN(gni_vm_philox)
#define gni_vmuladd GNI_FN(gni_vm_muladd)
#define gni_vexponential GNI_FN(gni_vm_exponential)
#define gni_vnormal2 GNI_FN(gni_vm_normal2)

// Philox 4x32-10 (Salmon et al., SC 2011) of one counter per lane: out[0..3].
GNI_INLINE void gni_vphilox(gni_vu c0, gni_vu c1, gni_vu c2, gni_vu c3, uint32_t k0, uint32_t k1,
                            gni_vu *out) {
    for (int i = 0; i < 10; i++) {
        gni_vu h0, l0, h1, l1;
        gni_vmulhilo(c0, gni_vsetu(0xd2511f53u), &h0, &l0);
        gni_vmulhilo(c2, gni_vsetu(0xcd9e8d57u), &h1, &l1);
        c0 = h1 ^ c1 ^ gni_vsetu(k0);
        c1 = l1;
        c2 = h0 ^ c3 ^ gni_vsetu(k1);
        c3 = l0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}
// a * b + c in two roundings.
GNI_INLINE gni_vf gni_vmuladd(gni_vf a, gni_vf b, float c) { return a * b + gni_vset(c); }

// -log((bits + 1/2) / 2^32): exponentially distributed, from 1.2e-10 to 22.9.
GNI_INLINE gni_vf gni_vexponential(gni_vu bits) {
    gni_vf one = gni_vset(1.0f), zero = gni_vset(0.0f);
    // The upper half is turned round, so that v / 2^32 is u or 1 - u with all its bits.
    gni_vmask upper = gni_kilt(gni_vu_i(bits), gni_vseti(0));
    gni_vu w = gni_kselu(upper, ~bits, bits);
    gni_vf v = gni_itov(gni_vu_i(w >> 12)) * gni_vset(4096.0f) +
               (gni_itov(gni_vu_i(w & 0xfffu)) + gni_vset(0.5f));
    gni_vf p = v * gni_vset(2.32830644e-10f), k, m = gni_vlog_bits(v, &k);
    // log(u) = k ln 2 + log(1 + f)
    gni_vmask folded = gni_kgt(p, gni_vset(0.292893231f));
    gni_vf f1 = gni_ksel(folded, one - (p + p), -p), k1 = gni_ksel(folded, -one, zero);
    gni_vf f = gni_ksel(upper, f1, m - one);
    k = gni_ksel(upper, k1, k - gni_vset(32.0f));
    gni_vf z = f * f, q = gni_vset(-0.0763620213f);
    q = gni_vmuladd(q, f, 0.127620921f);
    q = gni_vmuladd(q, f, -0.131596208f);
    q = gni_vmuladd(q, f, 0.142015889f);
    q = gni_vmuladd(q, f, -0.166234091f);
    q = gni_vmuladd(q, f, 0.200012416f);
    q = gni_vmuladd(q, f, -0.250008196f);
    q = gni_vmuladd(q, f, 0.333333313f);
    q = q * (f * z) + k * gni_vset(1.42860677e-06f);
    q = z * gni_vset(0.5f) - q;
    return (q - f) - k * gni_vset(0.693145752f);
}
// Two independent standard normals from two random words (Box & Muller 1958). The angle is one of eight octants, which
// are exchanges and signs, and 23 bits within it.
GNI_INLINE void gni_vnormal2(gni_vu a, gni_vu b, gni_vf *n0, gni_vf *n1) {
    gni_vf s = gni_vexponential(a);
    s = s + s;
    // 1 / sqrt(s) by Newton's iteration from a guess made with the exponent bits
    gni_vf y = gni_vu_float(0x5f3759dfu - (gni_vf_ubits(s) >> 1)), h = s * gni_vset(0.5f);
    y = y * (gni_vset(1.5f) - h * y * y);
    y = y * (gni_vset(1.5f) - h * y * y);
    y = y * (gni_vset(1.5f) - h * y * y);
    gni_vf r = s * y;
    gni_vf t = (gni_itov(gni_vu_i((b >> 6) & 0x7fffffu)) + gni_vset(0.5f)) *
               gni_vset(1.1920929e-07f),
           z = t * t;
    gni_vf p = gni_vset(-3.66091626e-05f), q = gni_vset(3.49402467e-06f);
    p = gni_vmuladd(p, z, 0.00249101641f);
    p = gni_vmuladd(p, z, -0.0807458311f);
    p = gni_vmuladd(p, z, 0.785398185f);
    q = gni_vmuladd(q, z, -0.000325868663f);
    q = gni_vmuladd(q, z, 0.0158542842f);
    q = gni_vmuladd(q, z, -0.308425128f);
    p = r * (p * t);
    q = r * (q * z + gni_vset(1.0f));
    gni_vmask swap = gni_kieq(gni_vu_i(b & 0x20000000u), gni_vseti(0));
    *n0 = gni_vxor(gni_ksel(swap, p, q), b & 0x80000000u);
    *n1 = gni_vxor(gni_ksel(swap, q, p), (b << 1) & 0x80000000u);
}
