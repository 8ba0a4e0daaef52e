// The float32 functions of the kernels, four lanes at a time, and the random number generator. Same reductions and
// polynomials as room vmath of gpunum.h (coefficients: tools/fit_math.py), written so that nothing depends on the parts
// that Vulkan leaves loose: exp, log, sin and the like are never called; products that have to be exact are of 12-bit heads,
// so that it does not matter whether fma rounds once or twice; Inf and NaN are made and recognised as bits.
// `precise` keeps the compiler from rearranging sums whose rounding errors are used.
#ifndef GN_MATH_GLSL
#define GN_MATH_GLSL

#define GN_BITS_F(x) floatBitsToUint(x)
#define GN_BITS_MAG(x) (floatBitsToUint(x) & 0x7fffffffu)
#define GN_BITS_SIGN(x) (floatBitsToUint(x) & 0x80000000u)

// ---- classes and signs

bvec4 gn_isnan(vec4 a) { return greaterThan(GN_BITS_MAG(a), uvec4(0x7f800000u)); }
bvec4 gn_isinf(vec4 a) { return equal(GN_BITS_MAG(a), uvec4(0x7f800000u)); }
bvec4 gn_isfinite(vec4 a) { return lessThan(GN_BITS_MAG(a), uvec4(0x7f800000u)); }
bvec4 gn_not_equal(vec4 a, vec4 b) { return not(equal(a, b)); }
bvec4 gn_both(bvec4 a, bvec4 b) { return equal(uvec4(a) & uvec4(b), uvec4(1u)); }
bvec4 gn_either(bvec4 a, bvec4 b) { return equal(uvec4(a) | uvec4(b), uvec4(1u)); }

// The magnitude of a with the sign of s.
vec4 gn_copysign(vec4 a, vec4 s) { return uintBitsToFloat(GN_BITS_MAG(a) | GN_BITS_SIGN(s)); }
vec4 gn_flip(vec4 a, uvec4 sign) { return uintBitsToFloat(GN_BITS_F(a) ^ sign); }
// Made from a's bits at run time: a constant Inf or NaN may be folded wrongly.
vec4 gn_nan_of(vec4 a) { return uintBitsToFloat(GN_BITS_F(a) | 0x7fc00000u); }
vec4 gn_inf_of(vec4 a) { return uintBitsToFloat(GN_BITS_SIGN(a) | 0x7f800000u); }
// y, but NaN where a is NaN.
vec4 gn_keep_nan(vec4 y, vec4 a) {
    if (any(gn_isnan(a))) y = mix(y, gn_nan_of(a), gn_isnan(a));
    return y;
}
// Without a branch, where there is little else to do.
vec4 gn_mix_nan(vec4 y, vec4 a) { return mix(y, gn_nan_of(a), gn_isnan(a)); }

vec4 gn_min(vec4 a, vec4 b) { return gn_mix_nan(gn_mix_nan(mix(b, a, lessThan(a, b)), a), b); }
vec4 gn_max(vec4 a, vec4 b) { return gn_mix_nan(gn_mix_nan(mix(b, a, greaterThan(a, b)), a), b); }
vec4 gn_sign(vec4 a) {
    vec4 y = mix(vec4(0.0), mix(vec4(1.0), vec4(-1.0), lessThan(a, vec4(0.0))), notEqual(GN_BITS_MAG(a), uvec4(0u)));
    return gn_mix_nan(y, a);
}
vec4 gn_rint(vec4 a) { return gn_copysign(mix(a, roundEven(a), lessThan(GN_BITS_MAG(a), uvec4(0x4b000000u))), a); }

// ---- building blocks

// Whether fma() rounds once. Vulkan does not say so: then what has to be exact are products of 12-bit heads.
#if defined(GN_WGSL) && !defined(GN_WGSL_LIBRARY)
const bool GN_FUSED = false;
#else
layout(constant_id = GNI_S_FUSED) const bool GN_FUSED = false;
#endif

// c - a b where the product is exact, so that it does not matter whether fma() rounds once.
#define gn_less(c, a, b) fma(-(a), vec4(b), c)
// Polynomials, as functions: what is precise elsewhere does not reach into these, so their products and sums may be joined.
vec4 gn_poly2(vec4 x, float a, float b, float c) { return (x * a + b) * x + c; }
vec4 gn_poly3(vec4 x, float a, float b, float c, float d) { return gn_poly2(x, a, b, c) * x + d; }

// The nearest integers, for |a| <= 2^22, and such integers as ivec4 and back: by sums with 1.5 2^23, which devices do faster
// than conversions.
vec4 gn_round(vec4 a) {
    precise vec4 t = a + 12582912.0;
    return t - 12582912.0;
}
ivec4 gn_int(vec4 a) { return floatBitsToInt(a + 12582912.0) - 0x4b400000; }
vec4 gn_float(ivec4 n) { return intBitsToFloat(n + 0x4b400000) - 12582912.0; }
// The first 12 bits of a.
vec4 gn_head(vec4 a) { return uintBitsToFloat(GN_BITS_F(a) & 0xfffff000u); }
// 2^n for whole -126 <= n <= 127.
vec4 gn_pow2(ivec4 n) { return uintBitsToFloat(uvec4(n + 127) << 23); }
vec4 gn_pow2(vec4 n) { return uintBitsToFloat(floatBitsToUint(n + 12583039.0) << 23); }
// a 2^n for |n| <= 252, rounded once when the result is subnormal.
vec4 gn_scale(vec4 a, ivec4 n) {
    ivec4 half_n = n >> 1;
    precise vec4 y = a * gn_pow2(half_n);
    precise vec4 z = y * gn_pow2(n - half_n);
    return z;
}
// The same for -190 <= n <= 60 and |a| of 2^-60 and more: the first product is exact.
vec4 gn_scale_down(vec4 a, ivec4 n) {
    precise vec4 y = (a * gn_pow2(n + 64)) * 5.42101086e-20;
    return y;
}
// a = m 2^e with 1 <= |m| < 2, also for subnormal a; not for 0, Inf and NaN.
vec4 gn_split(vec4 a, out ivec4 e) {
    uvec4 u = GN_BITS_MAG(a);
    bvec4 sub = lessThan(u, uvec4(0x00800000u));
    uvec4 v = mix(u, GN_BITS_F(vec4(u)), sub);
    e = ivec4(v >> 23) - mix(ivec4(127), ivec4(276), sub);
    return uintBitsToFloat((v & 0x007fffffu) | 0x3f800000u | GN_BITS_SIGN(a));
}

// What rounding took from p = a b, and from s = a + b (Knuth).
vec4 gn_product_rest(vec4 a, vec4 b, vec4 p) {
    precise vec4 r = fma(a, b, -p);
    if (!GN_FUSED) {
        precise vec4 ah = gn_head(a), al = a - ah, bh = gn_head(b), bl = b - bh;
        r = ((ah * bh - p) + (ah * bl + al * bh)) + al * bl;
    }
    return r;
}
vec4 gn_sum_rest(vec4 a, vec4 b, vec4 s) {
    precise vec4 t = s - a, r = (a - (s - t)) + (b - t);
    return r;
}

// ---- division and roots

// a / b for operands and a quotient of moderate size, to 1 ulp: Vulkan's division may be 2.5 off.
vec4 gn_div_mid(vec4 a, vec4 b) {
    vec4 r = 1.0 / b, q = a * r;
    if (GN_FUSED) q = fma(fma(-q, b, a), r, q);
    else {
        precise vec4 qh = gn_head(q), bh = gn_head(b), ql = q - qh, bl = b - bh;
        precise vec4 rest = ((a - qh * bh) - qh * bl) - ql * bh;
        rest = rest - ql * bl;
        precise vec4 y = q + rest * r;
        q = y;
    }
    return q;
}
vec4 gn_div_rare(vec4 a, vec4 b) {
    ivec4 ea, eb;
    uvec4 sign = GN_BITS_SIGN(a) ^ GN_BITS_SIGN(b), ua = GN_BITS_MAG(a), ub = GN_BITS_MAG(b), inf = uvec4(0x7f800000u);
    vec4 ma = gn_split(a, ea), mb = gn_split(b, eb), y = gn_div_mid(ma, mb);
    ivec4 e = clamp(ea - eb, ivec4(-250), ivec4(250));
    uvec4 u = GN_BITS_F(gn_scale(y, e)) & 0x7fffffffu;
    bvec4 zero = gn_either(equal(ua, uvec4(0u)), equal(ub, inf)), none = gn_either(equal(ub, uvec4(0u)), equal(ua, inf));
    u = mix(mix(u, uvec4(0u), zero), inf, none);
    // 0/0, Inf/Inf and NaN
    u = mix(u, uvec4(0x7fc00000u), gn_either(gn_both(zero, none), greaterThan(max(ua, ub), inf)));
    return uintBitsToFloat(u | sign);
}
vec4 gn_div(vec4 a, vec4 b) {
    // exponents between 2^-60 and 2^60 on both sides are the usual case
    uvec4 ua = GN_BITS_MAG(a) - 0x21800000u, ub = GN_BITS_MAG(b) - 0x21800000u;
    bvec4 usual = lessThan(max(ua, ub), uvec4(0x3c000000u));
    vec4 y = gn_div_mid(a, b);
    if (!all(usual)) y = mix(gn_div_rare(a, b), y, usual);
    return y;
}
// sqrt of 0 or of 2^-110 <= a <= 2^120 to half an ulp or a little more.
vec4 gn_sqrt_mid(vec4 a) {
    vec4 r = inversesqrt(max(a, vec4(1.0e-35))), y = a * r;
    if (GN_FUSED) y = fma(fma(-y, y, a), 0.5 * r, y);
    else {
        precise vec4 h = gn_head(y), l = y - h, rest = (a - h * h) - l * (y + h), z = y + rest * (0.5 * r);
        y = z;
    }
    return y;
}
// a = m 4^e with 1 <= m < 4, for a > 0.
vec4 gn_split_even(vec4 a, out ivec4 e) {
    vec4 m = gn_split(a, e);
    m = mix(m, m + m, equal(e & 1, ivec4(1)));
    e = e >> 1;
    return m;
}
vec4 gn_sqrt(vec4 a) {
    ivec4 e;
    vec4 m = gn_split_even(a, e), y = gn_sqrt_mid(m) * gn_pow2(e);
    uvec4 u = GN_BITS_F(a);
    // +-0, +Inf and NaN stay, what is below 0 is NaN
    y = mix(y, gn_nan_of(a), greaterThan(u, uvec4(0x7f800000u)));
    return mix(y, a, gn_either(equal(u & 0x7fffffffu, uvec4(0u)), equal(u, uvec4(0x7f800000u))));
}
vec4 gn_rsqrt(vec4 a) {
    uvec4 u = GN_BITS_F(a);
    // 2^-60 to 2^60
    bool usual = all(lessThan(u - 0x21800000u, uvec4(0x3c000000u)));
    ivec4 e = ivec4(0);
    vec4 m = a;
    if (!usual) m = gn_split_even(a, e);
    vec4 y = inversesqrt(m);
    if (GN_FUSED) {
        precise vec4 p = y * y;
        y = fma(0.5 * y, fma(-m, p, vec4(1.0)) - m * fma(y, y, -p), y);
    } else {
        // 1 - m y^2 with the square of y's head exact
        precise vec4 h = gn_head(y), l = y - h, p = h * h, ph = gn_head(p), mh = gn_head(m);
        precise vec4 low = (m - mh) * p + m * (l * (y + h)), rest = ((1.0 - mh * ph) - mh * (p - ph)) - low;
        y = y + (0.5 * y) * rest;
    }
    if (!usual) {
        y = mix(y * gn_pow2(-e), gn_nan_of(a), greaterThan(u, uvec4(0x7f800000u)));
        y = mix(y, gn_inf_of(a), equal(u & 0x7fffffffu, uvec4(0u)));
        y = mix(y, vec4(0.0), equal(u, uvec4(0x7f800000u)));
    }
    return y;
}

// ---- exp and its kin

// x = n ln 2 + r, |r| <= ln(2)/2.
vec4 gn_exp_reduce(vec4 x, out vec4 n) {
    n = gn_round(x * 1.44269502);
    precise vec4 r = gn_less(gn_less(x, n, 0.693145752), n, 1.42861973e-06);
    return r;
}
// (exp(r) - 1 - r) / r^2 and exp(r) - 1 for |r| <= ln(2)/2.
vec4 gn_exp_end(vec4 r) {
    vec4 p = r * 0.00138219551 + 0.0083690444;
    p = p * r + 0.0416682586;
    p = p * r + 0.166665182;
    return p * r + 0.49999994;
}
vec4 gn_exp_poly(vec4 r) { return gn_exp_end(r) * (r * r) + r; }
// exp(x) for |x| < 80.
vec4 gn_exp_mid(vec4 x) {
    vec4 n, r = gn_exp_reduce(x, n);
    return (gn_exp_poly(r) + 1.0) * gn_pow2(n);
}
vec4 gn_exp(vec4 x) {
    vec4 n, y = gn_exp_poly(gn_exp_reduce(clamp(x, vec4(-104.0), vec4(89.0)), n)) + 1.0;
    if (all(lessThan(GN_BITS_MAG(x), uvec4(0x42ae0000u)))) y *= gn_pow2(n); // below 87
    else y = gn_keep_nan(gn_scale(y, gn_int(n)), x);
    return y;
}
// (2^r - 1 - r ln 2) / r^2 and 2^r - 1 for |r| <= 1/2.
vec4 gn_exp2_end(vec4 r) { return gn_poly3(r, 0.000153269313, 0.00133912405, 0.00961850584, 0.0555035919) * r + 0.240226477; }
vec4 gn_exp2_poly(vec4 r) { return (gn_exp2_end(r) * r + 0.693147182) * r; }
vec4 gn_exp2(vec4 x) {
    vec4 y = clamp(x, vec4(-151.0), vec4(129.0)), n = gn_round(y);
    return gn_keep_nan(gn_scale(gn_exp2_poly(y - n) + 1.0, gn_int(n)), x);
}
vec4 gn_expm1(vec4 x) {
    vec4 n, p = gn_exp_poly(gn_exp_reduce(clamp(x, vec4(-18.0), vec4(89.0)), n));
    // 2^n (p + 1) - 1 at half size, so that n = 128 does not overflow early
    vec4 s = gn_pow2(n - 1.0), y = s * p + (s - 0.5);
    y = mix(y + y, p, equal(n, vec4(0.0)));
    return gn_keep_nan(gn_copysign(y, x), x);
}

// ---- log and its kin

// x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for x > 0.
vec4 gn_log_split(vec4 x, out vec4 k) {
    uvec4 u = GN_BITS_F(x);
    bvec4 sub = lessThan(u, uvec4(0x00800000u));
    if (any(sub)) u = mix(u, GN_BITS_F(vec4(u)) - 0x4a800000u, sub); // 149 << 23
    u -= 0x3f3504f3u;
    k = gn_float(ivec4(u) >> 23);
    return uintBitsToFloat((u & 0x007fffffu) + 0x3f3504f3u) - 1.0;
}
// log(1 + f) - f + f^2 / 2 + add for sqrt(1/2) <= 1 + f < sqrt(2).
vec4 gn_log_end(vec4 f, vec4 add) {
    vec4 p = f * -0.0763620213 + 0.127620921;
    p = p * f - 0.131596208;
    p = p * f + 0.142015889;
    p = p * f - 0.166234091;
    p = p * f + 0.200012416;
    p = p * f - 0.250008196;
    p = p * f + 0.333333313;
    return p * (f * (f * f)) + add;
}
// log(1 + f) - f + add.
vec4 gn_log_poly(vec4 f, vec4 add) {
    precise vec4 y = gn_less(gn_log_end(f, add), f * f, 0.5);
    return y;
}
// log(2^k (1 + f)).
vec4 gn_log_near1(vec4 k, vec4 f) {
    precise vec4 y = gn_less(f + gn_log_poly(f, k * 1.42860677e-06), k, -0.693145752);
    return y;
}
// The same with its rounding errors in rest; plus 0 or -1.
vec4 gn_log_pair(vec4 k, vec4 f, float plus, out vec4 rest) {
    precise vec4 big = k * 0.693145752 + plus, y = big + f, t = y - big;
    precise vec4 low = gn_log_poly(f, k * 1.42860677e-06) + ((big - (y - t)) + (f - t));
    rest = low;
    return y;
}
// The logarithms of what has no ordinary one: -Inf for 0, NaN below and for NaN, Inf for Inf.
vec4 gn_log_ends(vec4 y, vec4 x) {
    uvec4 u = GN_BITS_F(x);
    if (any(greaterThanEqual(u - 1u, uvec4(0x7f7fffffu)))) {
        y = mix(y, gn_nan_of(x), greaterThan(u, uvec4(0x7f800000u)));
        y = mix(y, x, equal(u, uvec4(0x7f800000u)));
        y = mix(y, uintBitsToFloat(u | 0xff800000u), equal(u & 0x7fffffffu, uvec4(0u)));
    }
    return y;
}
vec4 gn_log(vec4 x) {
    vec4 k, f = gn_log_split(x, k);
    return gn_log_ends(gn_log_near1(k, f), x);
}
vec4 gn_log2(vec4 x) {
    vec4 k, f = gn_log_split(x, k);
    precise vec4 y = f + gn_log_poly(f, vec4(0.0));
    precise vec4 z = y * 1.44269502 + (y * 1.92596303e-08 + k);
    return gn_log_ends(z, x);
}
vec4 gn_log10(vec4 x) {
    vec4 k, f = gn_log_split(x, k);
    precise vec4 y = f + gn_log_poly(f, vec4(0.0));
    precise vec4 z = k * 0.301025391 + (y * 0.434294492 + k * 4.60503907e-06);
    return gn_log_ends(z, x);
}
// log(2^up (1 + x)) for x > -1 that is finite.
vec4 gn_log1p_up(vec4 x, vec4 up) {
    vec4 high = max(x, vec4(1.0)), low = min(x, vec4(1.0)), k;
    precise vec4 sum = high + low, lost = low - (sum - high);
    vec4 f = gn_log_split(sum, k);
    // What the sum lost to rounding, brought to the scale of f; it no longer matters from 2^100 on.
    precise vec4 g = f + lost * gn_pow2(-min(k, vec4(100.0)));
    return gn_log_near1(k + up, g);
}
vec4 gn_log1p(vec4 x) {
    uvec4 u = GN_BITS_F(x);
    vec4 y = gn_copysign(gn_log1p_up(x, vec4(0.0)), x);
    if (any(greaterThanEqual(u, uvec4(0xbf800000u))) || any(lessThan(u - 0x7f800000u, uvec4(0x00800000u)))) {
        y = mix(y, gn_nan_of(x), gn_either(greaterThan(u, uvec4(0xbf800000u)), gn_isnan(x)));
        y = mix(y, gn_inf_of(x), equal(u, uvec4(0xbf800000u)));
        y = mix(y, x, equal(u, uvec4(0x7f800000u)));
    }
    return y;
}
// log(1 + x) for 0 <= x <= 1.
vec4 gn_log1p_unit(vec4 x) {
    precise vec4 sum = 1.0 + x, lost = x - (sum - 1.0);
    bvec4 upper = greaterThan(sum, vec4(1.41421354));
    vec4 by = mix(vec4(1.0), vec4(0.5), upper);
    precise vec4 f = (sum * by - 1.0) + lost * by;
    return gn_log_near1(mix(vec4(0.0), vec4(1.0), upper), f);
}

// ---- sin, cos, tan

#define GN_PIO2 1.57079637
#define GN_PIO2_LO -4.37113883e-08
#define GN_TRIG_MAX 12800.0

// a less the nearest multiple h / 2 of pi / 2, h in the low bits of n, for 0 <= a <= GN_TRIG_MAX (Cody & Waite): products
// but the last one are exact.
vec4 gn_pi_rest(vec4 a, out uvec4 n) {
    precise vec4 t = a * 0.636619747 + 12582912.0, h = t - 12582912.0;
    n = floatBitsToUint(t);
    precise vec4 b = gn_less(gn_less(a, h, 1.5703125), h, 0.000483751297);
    precise vec4 r = gn_less(b, h, 7.5495336e-08), lost = gn_less(b - r, h, 7.5495336e-08);
    precise vec4 y = r + (lost - h * 2.56334407e-12);
    return y;
}
// 32 bits of 1 / pi: bit 0 of word 0 weighs 1. Three words from bit `left` of word `word` on.
#ifdef GN_WGSL // where tables of a function are made whenever it runs
uvec3 gn_inv_pi_windows(uint word, uint left) {
    uvec4 t = uvec4(0u, 0x517cc1b7u, 0x27220a94u, 0xfe13abe8u);
    t = mix(t, uvec4(0x517cc1b7u, 0x27220a94u, 0xfe13abe8u, 0xfa9a6ee0u), bvec4(word == 1u));
    t = mix(t, uvec4(0x27220a94u, 0xfe13abe8u, 0xfa9a6ee0u, 0x6db14accu), bvec4(word == 2u));
    t = mix(t, uvec4(0xfe13abe8u, 0xfa9a6ee0u, 0x6db14accu, 0x9e21c820u), bvec4(word == 3u));
    t = mix(t, uvec4(0xfa9a6ee0u, 0x6db14accu, 0x9e21c820u, 0xff28b1d5u), bvec4(word == 4u));
    return mix((t.xyz << left) | (t.yzw >> ((32u - left) & 31u)), t.xyz, bvec3(left == 0u));
}
#define GN_INV_PI(word, left) uvec3 windows = gn_inv_pi_windows(word, left)
#define GN_INV_PI_WORD(i, word, left) windows[i]
#else
uint gn_inv_pi(uint i) {
    const uint t[9] = uint[9](0u, 0x517cc1b7u, 0x27220a94u, 0xfe13abe8u, 0xfa9a6ee0u, 0x6db14accu, 0x9e21c820u, 0xff28b1d5u,
                        0xef5de2b0u);
    return t[i];
}
uint gn_inv_pi_window(uint word, uint left) {
    uint high = gn_inv_pi(word), low = gn_inv_pi(word + 1u);
    return left == 0u ? high : (high << left) | (low >> (32u - left));
}
#define GN_INV_PI(word, left)
#define GN_INV_PI_WORD(i, word, left) gn_inv_pi_window(word, left)
#endif
// The same for any finite a > 1000 (Payne & Hanek 1983): a / pi mod 2 as a 64-bit fraction.
float gn_pi_rest_big(float a, out uint n) {
    uint bits = floatBitsToUint(a), start = (bits >> 23) - 119u, word = start >> 5, left = start & 31u;
    uint m = (bits & 0x7fffffu) | 0x800000u, h1, l1, h2, l2, carry;
    GN_INV_PI(word, left);
    umulExtended(m, GN_INV_PI_WORD(1u, word + 1u, left), h1, l1);
    umulExtended(m, GN_INV_PI_WORD(2u, word + 2u, left), h2, l2);
    uint low = uaddCarry(l1, h2, carry), high = m * GN_INV_PI_WORD(0u, word, left) + h1 + carry;
    n = ((high >> 29) + 1u) >> 1;
    high -= n << 30; // n is 4 where the whole turns are full
    bool minus = (high & 0x80000000u) != 0u;
    if (minus) {
        low = ~low + 1u;
        high = ~high + (low == 0u ? 1u : 0u);
    }
    // 32 leading bits and how far they were shifted
    int up = 0;
    if (high == 0u) {
        high = low;
        low = 0u;
        up = 32;
    }
    int more = 31 - findMSB(max(high, 1u));
    if (more > 0) high = (high << more) | (low >> (32 - more));
    up += more;
    precise float f = float(high >> 8), fh = uintBitsToFloat(floatBitsToUint(f) & 0xfffff000u), fl = f - fh;
    fl = fl + float(high & 0xffu) * 0.00390625;
    precise float r = fh * 3.140625 + (fl * 3.140625 + f * 0.000967653590);
    r = r * uintBitsToFloat(uint(104 - up) << 23);
    return minus ? -r : r;
}
// Puts the rests of the finite lanes above GN_TRIG_MAX into r and their counts into n.
void gn_trig_rare(vec4 a, inout vec4 r, inout uvec4 n) {
    for (int i = 0; i < 4; i++) { // each in its turn the first, or drivers keep them in memory
        uint count;
        if (a.x > GN_TRIG_MAX && floatBitsToUint(a.x) < 0x7f800000u) {
            r.x = gn_pi_rest_big(a.x, count);
            n.x = count;
        }
        a = a.yzwx, r = r.yzwx, n = n.yzwx;
    }
}
bool gn_trig_usual(vec4 x) { return all(lessThanEqual(GN_BITS_MAG(x), uvec4(0x46480000u))); } // GN_TRIG_MAX
// sin(|x| + turns pi/2), of the other sign where `sign` is set.
vec4 gn_sin_turned(vec4 x, uint turns, uvec4 sign) {
    uvec4 n;
    vec4 a = abs(x), r = gn_pi_rest(a, n);
    bool usual = gn_trig_usual(x);
    if (!usual) gn_trig_rare(a, r, n);
    n += turns;
    vec4 z = r * r, p = z * 2.60572824e-06 - 0.000198096546, c = z * 2.44318762e-05 - 0.00138873071;
    p = p * z + 0.00833306834;
    p = p * z - 0.166666597;
    p = (p * z) * r + r;
    c = c * z + 0.0416666456;
    c = (c * z - 0.5) * z + 1.0;
    vec4 y = gn_flip(mix(p, c, notEqual(n & 1u, uvec4(0u))), ((n << 30) & 0x80000000u) ^ sign);
    if (!usual) y = mix(gn_nan_of(x), y, gn_isfinite(x));
    return y;
}
vec4 gn_sin(vec4 x) { return gn_sin_turned(x, 0u, GN_BITS_SIGN(x)); }
vec4 gn_cos(vec4 x) { return gn_sin_turned(x, 1u, uvec4(0u)); }
vec4 gn_tan(vec4 x) {
    uvec4 n;
    vec4 a = abs(x), r = gn_pi_rest(a, n);
    bool usual = gn_trig_usual(x);
    if (!usual) gn_trig_rare(a, r, n);
    vec4 z = r * r, p = z * 0.00944519881 + 0.0030206563;
    p = p * z + 0.0244908202;
    p = p * z + 0.0533946529;
    p = p * z + 0.13338995;
    p = p * z + 0.333331496;
    p = (p * z) * r + r;
    // r is at least 2^-40 where it is divided by
    bvec4 odd = equal(n & 1u, uvec4(1u));
    p = gn_flip(mix(p, gn_div_mid(vec4(-1.0), mix(vec4(1.0), p, odd)), odd), GN_BITS_SIGN(x));
    if (!usual) p = mix(gn_nan_of(x), p, gn_isfinite(x));
    return p;
}

// ---- asin, acos, atan, atan2

// asin(a) for a <= 1/2, else asin(sqrt((1 - a) / 2)) with upper set: asin(a) is pi/2 minus twice that.
vec4 gn_asin_poly(vec4 a, out bvec4 upper) {
    upper = greaterThan(a, vec4(0.5));
    vec4 z = mix(a * a, 0.5 - 0.5 * a, upper), s = mix(a, gn_sqrt_mid(max(z, vec4(0.0))), upper);
    vec4 p = gn_poly3(z, 0.0421581976, 0.0241848044, 0.0454691499, 0.0749530941) * z + 0.166667521;
    return (p * z) * s + s;
}
vec4 gn_asin(vec4 x) {
    bvec4 upper;
    vec4 p = gn_asin_poly(abs(x), upper);
    precise vec4 q = GN_PIO2 - ((p + p) - GN_PIO2_LO);
    vec4 y = gn_copysign(mix(p, q, upper), x);
    return mix(y, gn_nan_of(x), greaterThan(GN_BITS_MAG(x), uvec4(0x3f800000u)));
}
vec4 gn_acos(vec4 x) {
    bvec4 upper;
    vec4 p = gn_asin_poly(abs(x), upper);
    precise vec4 mid = GN_PIO2 - (gn_copysign(p, x) - GN_PIO2_LO);
    precise vec4 left = 2.0 * GN_PIO2 - ((p + p) - 2.0 * GN_PIO2_LO);
    vec4 y = mix(mid, mix(p + p, left, lessThan(x, vec4(0.0))), upper);
    return mix(y, gn_nan_of(x), greaterThan(GN_BITS_MAG(x), uvec4(0x3f800000u)));
}
// atan(t) for 0 <= t <= 1.
vec4 gn_atan_poly(vec4 t) {
    vec4 z = t * t, p = z * -0.00178292743 + 0.0108690094;
    p = p * z - 0.0310973749;
    p = p * z + 0.0578816198;
    p = p * z - 0.0839931294;
    p = p * z + 0.109508812;
    p = p * z - 0.142640159;
    p = p * z + 0.199985296;
    p = p * z - 0.333332986;
    return (p * z) * t + t;
}
vec4 gn_atan(vec4 x) {
    vec4 a = abs(x);
    bvec4 upper = greaterThan(a, vec4(1.0));
    vec4 p = gn_atan_poly(mix(a, gn_div_mid(vec4(1.0), clamp(a, vec4(1.0), vec4(1.0e12))), upper));
    precise vec4 q = GN_PIO2 - (p - GN_PIO2_LO);
    return gn_keep_nan(gn_copysign(mix(p, q, upper), x), x);
}
vec4 gn_atan2(vec4 y, vec4 x) {
    vec4 ay = abs(y), ax = abs(x);
    bvec4 steep = greaterThan(GN_BITS_F(ay), GN_BITS_F(ax)), same = equal(GN_BITS_F(ay), GN_BITS_F(ax));
    vec4 num = mix(ay, ax, steep), den = mix(ax, ay, steep), t = gn_div(num, den);
    // 0/0 stands for 0 and Inf/Inf for 1.
    t = mix(t, mix(vec4(1.0), vec4(0.0), equal(GN_BITS_F(ay), uvec4(0u))), same);
    vec4 p = gn_atan_poly(t);
    precise vec4 q = GN_PIO2 - (p - GN_PIO2_LO);
    p = mix(p, q, steep);
    precise vec4 left = 2.0 * GN_PIO2 - (p - 2.0 * GN_PIO2_LO);
    p = mix(p, left, notEqual(GN_BITS_SIGN(x), uvec4(0u)));
    return gn_keep_nan(gn_keep_nan(gn_copysign(p, y), x), y);
}

// ---- hyperbolic functions

// a = n ln 2 + r, c = cosh(r), s = sinh(r), up = 2^(n-2), down = 2^(-n-2), for 0 <= a < 89.5.
void gn_hyp_parts(vec4 a, out vec4 c, out vec4 s, out vec4 up, out vec4 down) {
    vec4 n, r = gn_exp_reduce(a, n), z = r * r;
    up = gn_pow2(n - 2.0);
    // 2^(-n-2) no longer matters from n = 30 on, and has to stay normal
    down = gn_pow2(-min(n, vec4(60.0)) - 2.0);
    c = (z * 0.0013935871 + 0.0416664556) * z + 0.5;
    c = c * z + 1.0;
    s = (z * 0.000199729344 + 0.00833317637) * z + 0.166666672;
    s = (s * z) * r + r;
}
// Everything at half size, so that it overflows last.
vec4 gn_sinh(vec4 x) {
    vec4 c, s, up, down;
    gn_hyp_parts(min(abs(x), vec4(89.45)), c, s, up, down);
    vec4 y = (up - down) * c + (up + down) * s;
    y = mix(y + y, s, equal(up, vec4(0.25)));
    return gn_keep_nan(gn_copysign(y, x), x);
}
vec4 gn_cosh(vec4 x) {
    vec4 c, s, up, down;
    gn_hyp_parts(min(abs(x), vec4(89.45)), c, s, up, down);
    vec4 y = (up - down) * s + (up + down) * c;
    return gn_keep_nan(y + y, x);
}
vec4 gn_tanh(vec4 x) {
    vec4 a = abs(x), z = a * a, p = z * -0.00569228595 + 0.0206281636;
    p = p * z - 0.0537365153;
    p = p * z + 0.133314058;
    p = p * z - 0.333332807;
    p = (p * z) * a + a;
    vec4 e = gn_exp_mid(2.0 * clamp(a, vec4(0.0), vec4(9.5)));
    vec4 q = 1.0 - 2.0 / (e + 1.0);
    return gn_keep_nan(gn_copysign(mix(p, q, greaterThanEqual(a, vec4(0.625))), x), x);
}
vec4 gn_asinh(vec4 x) {
    // From 2^28 on asinh(a) is log(2 a).
    vec4 a = abs(x), b = min(a, vec4(268435456.0)), z = b * b;
    bvec4 big = greaterThanEqual(a, vec4(268435456.0));
    vec4 v = b + gn_div_mid(z, 1.0 + gn_sqrt_mid(z + 1.0));
    vec4 y = gn_log1p_up(mix(v, a, big), mix(vec4(0.0), vec4(1.0), big));
    return gn_copysign(mix(a, y, gn_isfinite(x)), x);
}
vec4 gn_acosh(vec4 x) {
    bvec4 big = greaterThanEqual(x, vec4(268435456.0));
    vec4 t = clamp(x - 1.0, vec4(0.0), vec4(268435456.0)), v = t + gn_sqrt_mid(t * t + (t + t));
    vec4 y = gn_log1p_up(mix(v, x, big), mix(vec4(0.0), vec4(1.0), big));
    y = mix(y, x, equal(GN_BITS_F(x), uvec4(0x7f800000u)));
    // Not below 1: compared as signed numbers, negative ones are below too.
    bvec4 none = gn_either(lessThan(ivec4(GN_BITS_F(x)), ivec4(0x3f800000)), gn_isnan(x));
    return mix(y, gn_nan_of(x), none);
}
vec4 gn_atanh(vec4 x) {
    vec4 a = abs(x), b = min(a, vec4(0.99999994));
    vec4 y = 0.5 * gn_log1p_up(gn_div_mid(b + b, 1.0 - b), vec4(0.0));
    // half of it would lose the last bit of a subnormal
    y = mix(y, a + a * (a * a) * 0.333333343, lessThan(a, vec4(1.0e-4)));
    uvec4 u = GN_BITS_F(a);
    y = mix(gn_copysign(y, x), gn_inf_of(x), equal(u, uvec4(0x3f800000u)));
    return mix(y, gn_nan_of(x), greaterThan(u, uvec4(0x3f800000u)));
}

// ---- erf, gelu, sigmoid, softplus

// erf(x) for |x| < 0.93.
vec4 gn_erf_near0(vec4 x) {
    vec4 z = x * x, p = z * -0.000595957681 + 0.00498735206;
    p = p * z - 0.0267629661;
    p = p * z + 0.11281731;
    p = p * z - 0.376124889;
    p = p * z + 0.128379151;
    return p * x + x;
}
vec4 gn_erf(vec4 x) {
    vec4 a = abs(x), p = gn_erf_near0(a);
    // 1 - exp(q(a)) further out
    vec4 b = clamp(a, vec4(0.0), vec4(3.95)), q = b * 0.000194772438 - 0.00303177396;
    q = q * b + 0.0221812353;
    q = q * b - 0.103836671;
    q = q * b - 0.637290597;
    q = q * b - 1.12761116;
    q = q * b - 0.000211310442;
    q = 1.0 - gn_exp_mid(q);
    return gn_keep_nan(gn_copysign(mix(p, q, greaterThanEqual(a, vec4(0.93))), x), x);
}
// by t^2 = n ln(2) + r + lost for by = -1 or -1/2, by the square and what rounding took from it.
vec4 gn_bell(vec4 t, float by, out vec4 n, out vec4 lost) {
    precise vec4 s = by * t, high = s * t, low = gn_product_rest(s, t, high);
    n = gn_round(high * 1.44269502);
    precise vec4 top = gn_less(high, n, 0.693145752), sum = top + low, part = n * 1.42860677e-06, r = sum - part;
    precise vec4 l = ((top - sum) + low) + ((sum - r) - part);
    lost = l;
    return r;
}
// gelu(x) = x Phi(x) = max(x, 0) - t Phi(-t), t = |x|; Phi(-t) is exp(-t^2 / 2) / (t + 3) times a polynomial in
// (t - 3)/(t + 3) (after Shepherd & Laframboise 1981).
vec4 gn_gelu(vec4 x) {
    vec4 t = clamp(abs(x), vec4(0.0), vec4(14.5)), v = gn_div_mid(t, t + 3.0), u = 2.0 * v - 1.0;
    vec4 p = u * 6.67413406e-05 - 0.000191920946;
    p = p * u - 0.000970534864;
    p = p * u + 0.00100017991;
    p = p * u + 0.00695027504;
    p = p * u - 0.0104551166;
    p = p * u - 0.0472608879;
    p = p * u + 0.230016679;
    p = p * u - 0.509332001;
    p = p * u + 0.729083717;
    vec4 n, lost, r = gn_bell(t, -0.5, n, lost);
    p = (p * gn_exp_poly(r) + p) * v;
    // Near 0 the sum about Phi(0) is the better one.
    vec4 z = t * t, q = gn_poly2(z, -0.00112265977, 0.00996110681, -0.066489473) * z + 0.398942262;
    bvec4 near0 = lessThan(t, vec4(0.5));
    if (all(lessThan(GN_BITS_MAG(x), uvec4(0x41400000u)))) { // 12
        p = mix(max(x, vec4(0.0)) - p * gn_pow2(n), (q * x + 0.5) * x, near0);
    } else {
        p = mix(max(x, vec4(0.0)) - gn_scale_down(p, gn_int(n)), (q * x + 0.5) * x, near0);
        p = gn_keep_nan(gn_copysign(p, x), x);
        p = mix(p, x, equal(GN_BITS_F(x), uvec4(0x7f800000u)));
    }
    return p;
}
// sigmoid(x) or, with `times`, x sigmoid(x): e / (1 + e) with e = exp(-|x|) below 0, and with a last scaling after the
// division where that makes it subnormal.
vec4 gn_sigmoid_times(vec4 x, bool times) {
    vec4 n, e = gn_exp_poly(gn_exp_reduce(-min(abs(x), vec4(120.0)), n)) + 1.0, y;
    bvec4 below = lessThan(x, vec4(0.0));
    if (all(lessThan(GN_BITS_MAG(x), uvec4(0x42a00000u)))) { // 80
        e *= gn_pow2(n);
        y = gn_div_mid(mix(vec4(1.0), e, below), 1.0 + e);
        if (times) y *= x;
    } else {
        y = gn_div_mid(mix(vec4(1.0), e, below), 1.0 + gn_scale_down(e, gn_int(n)));
        if (times) y *= max(x, vec4(-200.0));
        y = gn_keep_nan(mix(y, gn_scale_down(y, gn_int(n)), below), x);
    }
    return y;
}
vec4 gn_sigmoid(vec4 x) { return gn_sigmoid_times(x, false); }
vec4 gn_silu(vec4 x) { return gn_sigmoid_times(x, true); }
vec4 gn_softplus(vec4 x) {
    vec4 y = max(x, vec4(0.0)) + gn_log1p_unit(gn_exp(-abs(x)));
    return gn_keep_nan(y, x);
}

// ---- for results that become float16 or bfloat16: the device's own functions, within 2^-17 of the value. They may take a
// subnormal float32 for 0, sums and products do not.

#if !defined(GN_WGSL) && !defined(GN_FEW)
bool gn_any_subnormal(vec4 x) { return any(lessThan(GN_BITS_MAG(x) - 1u, uvec4(0x7fffffu))); }

vec4 gn_coarse_sqrt(vec4 x) {
    if (gn_any_subnormal(x)) return gn_sqrt(x);
    return sqrt(x);
}
// exp(x) for x < -80.
vec4 gn_coarse_exp_low(vec4 x) { return exp2(x * 1.44269502 + 64.0) * 5.42101086e-20; }
vec4 gn_coarse_exp(vec4 x) {
    vec4 y = exp2(x * 1.44269502);
    bvec4 low = lessThan(x, vec4(-80.0));
    if (any(low)) y = mix(y, gn_coarse_exp_low(x), low);
    return y;
}
vec4 gn_coarse_expm1(vec4 x) {
    vec4 p = ((x * 0.00833816 + 0.04187663) * x + 0.16666838) * x + 0.49999379;
    return mix(exp2(x * 1.44269502) - 1.0, (p * x + 1.0) * x, lessThan(abs(x), vec4(0.35)));
}
// by log2(x), x = 1 + f.
vec4 gn_coarse_log_of(vec4 x, vec4 f, float by) {
    vec4 p = ((f * 0.189942986 - 0.259657562) * f + 0.333893865) * f - 0.49988547;
    p = (p * f + 0.999997437) * f;
    return mix(log2(x) * by, p * (by * 1.44269502), lessThan(abs(f - 0.025), vec4(0.225)));
}
vec4 gn_coarse_log(vec4 x) {
    if (gn_any_subnormal(x)) return gn_log(x);
    return gn_coarse_log_of(x, x - 1.0, 0.693147182);
}
vec4 gn_coarse_log2(vec4 x) {
    if (gn_any_subnormal(x)) return gn_log2(x);
    return gn_coarse_log_of(x, x - 1.0, 1.0);
}
vec4 gn_coarse_log1p(vec4 x) { return gn_coarse_log_of(x + 1.0, x, 0.693147182); }
vec4 gn_coarse_softplus(vec4 x) { return max(x, vec4(0.0)) + gn_coarse_log1p(gn_coarse_exp(-abs(x))); }
// sin(x + turns pi/2), as gn_sin_turned.
vec4 gn_coarse_sin_turned(vec4 x, uint turns) {
    precise vec4 t = x * 0.636619747 + 12582912.0, h = t - 12582912.0;
    precise vec4 r = gn_less(gn_less(x, h, 1.5703125), h, 0.000483751297);
    uvec4 n = floatBitsToUint(t) + turns;
    r = gn_less(gn_less(r, h, 7.5495336e-08), h, 2.56334407e-12);
    vec4 z = r * r, p = (z * 0.00816311 - 0.16663384) * z + 1.0, c = (z * -0.00135916 + 0.04165575) * z - 0.5;
    vec4 y = gn_flip(mix(p * r, c * z + 1.0, notEqual(n & 1u, uvec4(0u))), (n << 30) & 0x80000000u);
    if (!gn_trig_usual(x)) y = gn_sin_turned(x, turns, turns == 0u ? GN_BITS_SIGN(x) : uvec4(0u));
    return y;
}
vec4 gn_coarse_sin(vec4 x) { return gn_coarse_sin_turned(x, 0u); }
vec4 gn_coarse_cos(vec4 x) { return gn_coarse_sin_turned(x, 1u); }
// x times a quotient of polynomials in x^2.
vec4 gn_coarse_tanh(vec4 x) {
    vec4 z = min(x * x, vec4(25.0)), p = (z * 0.0016365021 + 0.116608448) * z + 0.999997854;
    vec4 q = ((z * 6.44218890e-05 + 0.0183002949) * z + 0.449925184) * z + 1.0;
    return mix(x * p * (1.0 / q), gn_copysign(vec4(1.0), x), greaterThan(abs(x), vec4(5.0)));
}
vec4 gn_coarse_erf(vec4 x) {
    vec4 z = min(x * x, vec4(10.89)), p = ((z * 0.000744627357 + 0.0431268333) * z + 0.154744832) * z + 1.12837719;
    vec4 q = ((z * 0.00925476370 + 0.0949495329) * z + 0.470484969) * z + 1.0;
    return mix(x * p * (1.0 / q), gn_copysign(vec4(1.0), x), greaterThan(abs(x), vec4(3.3)));
}
vec4 gn_coarse_sigmoid(vec4 x) {
    vec4 y = 1.0 / (1.0 + exp2(x * -1.44269502));
    bvec4 low = lessThan(x, vec4(-80.0));
    if (any(low)) y = mix(y, gn_coarse_exp_low(x), low);
    return y;
}
vec4 gn_coarse_silu(vec4 x) {
    vec4 y = x * (1.0 / (1.0 + exp2(x * -1.44269502)));
    bvec4 low = lessThan(x, vec4(-80.0));
    if (any(low)) y = mix(y, gn_coarse_exp_low(x) * max(x, vec4(-200.0)), low);
    return y;
}
// As gn_gelu; Phi(-t) exp(t^2 / 2) is s times a polynomial in s = 1 / (1 + .31 t).
vec4 gn_coarse_gelu(vec4 x) {
    vec4 s = 1.0 / (abs(x) * 0.31 + 1.0), p = s * -0.0739371738 + 0.180472709;
    p = p * s + 0.0157216821;
    p = p * s + 0.133440614;
    p = p * s + 0.120438959;
    p = (p * s + 0.123860882) * s;
    vec4 h = p * exp2(x * x * -0.721347511), y = x * mix(h, 1.0 - h, greaterThan(x, vec4(0.0)));
    bvec4 low = lessThan(x, vec4(-12.0));
    if (any(low)) y = mix(y, p * exp2(x * x * -0.721347511 + 64.0) * max(x, vec4(-20.0)) * 5.42101086e-20, low);
    return y;
}
#endif

// ---- cbrt, hypot, pow

// A third-order and a Newton step for y = m^(-1/3) from a guess made with the exponent bits, then m y^2 and one more there.
vec4 gn_cbrt(vec4 x) {
    ivec4 e;
    vec4 m = abs(gn_split(x, e));
    // x = m 8^third
    ivec4 third = (e + 300) / 3 - 100;
    vec4 a = m * gn_pow2(e - 3 * third);
    vec4 y = uintBitsToFloat(uvec4(ivec4(1419967116.0 - vec4(GN_BITS_F(a)) * 0.333333343)));
    vec4 d = 1.0 - a * y * y * y;
    y = y + (y * d) * (d * 0.222222224 + 0.333333343);
    d = 1.0 - a * y * y * y;
    y = y + (y * d) * 0.333333343;
    vec4 w = y * y, c = a * w;
    precise vec4 head = gn_head(c), l = c - head, h2 = head * head, h2h = gn_head(h2);
    precise vec4 low = (h2 - h2h) * head + (h2 * l + (l * (c + head)) * c), rest = (a - h2h * head) - low;
    c = (c + rest * (w * 0.333333343)) * gn_pow2(third);
    c = mix(c, abs(x), equal(GN_BITS_MAG(x), uvec4(0u)));
    c = mix(c, abs(x), gn_isinf(x));
    return gn_keep_nan(gn_copysign(c, x), x);
}
// The larger and the smaller magnitude of x and y, multiplied by 4^-h where their squares would not be ordinary numbers.
// By their bits, which no device takes for 0 where a number is subnormal.
void gn_magnitudes(vec4 x, vec4 y, out vec4 a, out vec4 b, out ivec4 h) {
    uvec4 u = GN_BITS_MAG(x), v = GN_BITS_MAG(y);
    a = uintBitsToFloat(max(u, v)), b = uintBitsToFloat(min(u, v)), h = ivec4(0);
    bvec4 usual = lessThan(GN_BITS_F(a) - 0x26000000u, uvec4(0x37000000u));
    if (!all(usual)) {
        ivec4 e, eb;
        vec4 ma = gn_split_even(a, e), mb = gn_split(b, eb);
        mb = mix(mb * gn_pow2(max(eb - 2 * e, ivec4(-100))), vec4(0.0), equal(GN_BITS_F(b), uvec4(0u)));
        a = mix(ma, a, usual), b = mix(mb, b, usual), h = mix(e, h, usual);
    }
}
// r for the number with the parts x and y, but the bits `none` where that is 0, and infinite or NaN where a part is.
vec4 gn_size_ends(vec4 x, vec4 y, vec4 r, uint none) {
    uvec4 v = GN_BITS_F(r), u = max(GN_BITS_MAG(x), GN_BITS_MAG(y)), inf = uvec4(0x7f800000u);
    v = mix(v, u | none, equal(u, uvec4(0u)));
    v = mix(v, u, greaterThanEqual(u, inf));
    return uintBitsToFloat(mix(v, inf, gn_either(gn_isinf(x), gn_isinf(y))));
}
vec4 gn_hypot_mid(vec4 a, vec4 b) {
    precise vec4 head = gn_head(a), low = (a - head) * (a + head) + b * b, sum = head * head + low;
    return gn_sqrt_mid(sum);
}
vec4 gn_hypot(vec4 x, vec4 y) {
    vec4 a, b;
    ivec4 e;
    gn_magnitudes(x, y, a, b, e);
    return gn_size_ends(x, y, gn_scale(gn_hypot_mid(a, b), 2 * e), 0u);
}
// Of the complex number x + iy: the root of half of |x| and the magnitude.
vec4 gn_root_size(vec4 x, vec4 y) {
    vec4 a, b;
    ivec4 e;
    gn_magnitudes(x, y, a, b, e);
    vec4 part = mix(a, b, greaterThan(GN_BITS_MAG(y), GN_BITS_MAG(x)));
    return gn_size_ends(x, y, gn_sqrt_mid(0.5 * (part + gn_hypot_mid(a, b))) * gn_pow2(e), 0u);
}
// The logarithm of the magnitude: of a^2 + b^2, and near 1 with the errors of the squares and of all sums, which are all
// that is left there.
vec4 gn_log_size(vec4 x, vec4 y) {
    vec4 a, b, k;
    ivec4 e;
    gn_magnitudes(x, y, a, b, e);
    precise vec4 p = a * a, q = b * b, p1 = gn_product_rest(a, a, p), q1 = gn_product_rest(b, b, q), s = p + q, lost = q - (s - p);
    precise vec4 u = p1 + q1, w = lost + u;
    vec4 f = gn_log_split(s, k), back = gn_pow2(-k);
    precise vec4 h = w * back, g = f + h;
    if (any(lessThan(abs(g), vec4(0.001953125)))) {
        precise vec4 rest = gn_sum_rest(f, h, g) + (gn_sum_rest(lost, u, w) + gn_sum_rest(p1, q1, u)) * back;
        g = g + rest;
    }
    return gn_size_ends(x, y, 0.5 * gn_log_near1(k + vec4(4 * e), g), 0xff800000u);
}
// Of gn_log2_pair, without what is precise there.
vec4 gn_log2_end(vec4 z) { return (z * 0.336952269 + 0.411908448) * (z * z) + (z * 0.577078998 + 0.961796701); }
// log2(x) as a 12-bit head and a rest, for x > 0: log((1 + s)/(1 - s)) with s = (m - 1)/(m + 1).
vec4 gn_log2_pair(vec4 x, out vec4 rest) {
    vec4 k, f = gn_log_split(x, k), inv = 1.0 / (f + 2.0);
    precise vec4 m = f + 1.0, dh = gn_head(m + 1.0), dl = m - (dh - 1.0), sh = gn_head(f * inv);
    precise vec4 sl = gn_less(gn_less(f, sh, dh), sh, dl) * inv, s = sh + sl;
    vec4 z = s * s, p = gn_log2_end(z);
    // 2 / ln(2) is 2.88476562 (12 bits) + 0.000624456792
    precise vec4 top = sh * 2.88476562, sum = k + top;
    precise vec4 low = s * 0.000624456792 + p * (s * z);
    low = (sl * 2.88476562 + low) + ((k - sum) + top);
    vec4 head = gn_head(sum + low);
    precise vec4 y = (sum - head) + low;
    rest = y;
    return head;
}
// 2^(d + low), |d + low| <= 1/2, to little more than half an ulp, so that small whole powers come out exact.
vec4 gn_exp2_pair(vec4 d, vec4 low) {
    precise vec4 r = d + low, head = gn_head(r), tail = ((d - r) + low) + (r - head);
    // ln(2) is 0.693115234 (12 bits) + 3.19461849e-05
    precise vec4 top = head * 0.693115234, sum = 1.0 + top;
    precise vec4 q = tail * 0.693147182 + (gn_exp2_end(r) * (r * r) + head * 3.19461849e-05);
    precise vec4 y = sum + (((1.0 - sum) + top) + q);
    return y;
}
// What C99 says of pow where x or y is no ordinary number; r is |x|^y elsewhere.
vec4 gn_pow_ends(vec4 x, vec4 y, vec4 r) {
    uvec4 ux = GN_BITS_MAG(x), uy = GN_BITS_MAG(y), inf = uvec4(0x7f800000u);
    bvec4 below = notEqual(GN_BITS_SIGN(y), uvec4(0u)), minus = notEqual(GN_BITS_SIGN(x), uvec4(0u));
    bvec4 large = greaterThanEqual(uy, uvec4(0x4b800000u));
    vec4 part = mix(abs(y), vec4(2.0), large);
    bvec4 whole = equal(trunc(part), part), odd = gn_both(whole, notEqual(trunc(0.5 * part), 0.5 * part));
    uvec4 u = GN_BITS_F(r);
    u = mix(u, mix(uvec4(0u), inf, below), equal(ux, uvec4(0u)));
    u = mix(u, mix(inf, uvec4(0u), below), equal(ux, inf));
    u = mix(u, uvec4(0x3f800000u), equal(ux, uvec4(0x3f800000u)));
    u = mix(u, u | 0x80000000u, gn_both(minus, odd));
    bvec4 none = gn_both(gn_both(minus, not(whole)), lessThan(ux - 1u, inf - 1u));
    none = gn_either(none, greaterThan(max(ux, uy), inf));
    u = mix(u, GN_BITS_F(x) | 0x7fc00000u, none);
    bvec4 one = gn_either(equal(GN_BITS_F(x), uvec4(0x3f800000u)), equal(uy, uvec4(0u)));
    return uintBitsToFloat(mix(u, uvec4(0x3f800000u), one));
}
vec4 gn_pow(vec4 x, vec4 y) {
    vec4 rest, head = gn_log2_pair(abs(x), rest), e = clamp(y, vec4(-1099511627776.0), vec4(1099511627776.0));
    // z = y log2(x), exact enough in two parts
    precise vec4 eh = gn_head(e), z = eh * head, low = (e - eh) * head + e * rest;
    z = clamp(z, vec4(-200.0), vec4(200.0));
    low = clamp(low, vec4(-1.0), vec4(1.0));
    vec4 n = gn_round(z + low);
    precise vec4 d = z - n;
    z = gn_scale(gn_exp2_pair(d, low), gn_int(n));
    if (!all(lessThan(max(GN_BITS_F(x) - 0x00800000u, GN_BITS_MAG(y)), uvec4(0x7f000000u)))) z = gn_pow_ends(x, y, z);
    return z;
}

// ---- erfc, its inverse, gamma's functions

#ifndef GN_FEW
// N(a) and D(a) of gn_erfc, without what is precise there.
void gn_erfc_quotient(vec4 a, out vec4 p, out vec4 q) {
    p = gn_poly3(a, 7.2549301e-07, -0.012351105, 0.0420437679, 0.172065839);
    p = (p * a + 0.258887231) * a - 0.266668886;
    q = gn_poly3(a, 0.226296335, 0.95615679, 2.05135107, 2.20645952) * a + 1.0;
}
// erfc(a) = c exp(-a^2) (1 + N(a)/D(a)) / (a + 7/16). Of 1 / (a + 7/16) a head t and by how much that differs, so that c t
// is exact and all else adds little.
vec4 gn_erfc(vec4 x) {
    vec4 a = min(abs(x), vec4(10.1)), p, q;
    gn_erfc_quotient(a, p, q);
    precise vec4 d = a + 0.4375, dh = gn_head(d);
    vec4 inv = 1.0 / (q * d), n, lost, r = gn_bell(a, -1.0, n, lost);
    precise vec4 t = gn_head(q * inv), rest = (1.0 - t * dh) - t * (a - (dh - 0.4375));
    p = p * (d * inv);
    rest = rest * rest + rest;
    p = p * rest + (p + rest);
    // (1 + p) exp(r) = 1 + r + q
    q = gn_exp_end(r) * (r * r) + lost;
    q = p * (r + q) + (p + q);
    t = t * 0.5966796875;
    precise vec4 y = (t * r + t * q) + t;
    y = gn_scale_down(y, gn_int(n));
    y = mix(y, 2.0 - y, lessThan(x, vec4(0.0)));
    return gn_keep_nan(mix(1.0 - gn_erf_near0(x), y, greaterThanEqual(a, vec4(0.47))), x);
}
// x times a polynomial in w = -log(1 - x^2) up to 4.68, then in its root.
vec4 gn_erfinv(vec4 x) {
    vec4 a = min(abs(x), vec4(0.99999994)), k, f = gn_log_split((1.0 - a) * (1.0 + a), k), w = -gn_log_near1(k, f);
    vec4 t = w - 1.875, s = gn_sqrt_mid(max(w, vec4(4.0))) - 3.0, p = t * -1.03802753e-08 + 7.86842662e-08;
    p = (p * t + 2.36350544e-07) * t - 5.11600138e-06;
    p = (p * t + 1.13406577e-05) * t + 0.000210060753;
    p = (p * t - 0.00179874955) * t - 0.00131354888;
    p = (p * t + 0.250179112) * t + 1.34596682;
    vec4 q = s * 0.000135010225 - 0.000322962296;
    q = (q * s - 8.55090912e-05) * s + 0.00149948127;
    q = (q * s - 0.00358144706) * s + 0.00568271289;
    q = (q * s - 0.00764104165) * s + 0.00944550708;
    q = (q * s + 1.00167525) * s + 2.83297682;
    uvec4 u = GN_BITS_MAG(x);
    p = mix(x * mix(q, p, lessThan(w, vec4(4.68))), gn_inf_of(x), equal(u, uvec4(0x3f800000u)));
    return mix(p, gn_nan_of(x), greaterThan(u, uvec4(0x3f800000u)));
}
// Of a = |x|: (a - 1)(a - 2) times a sum of v = a - 2 and a quotient up to 3, below 1 that of a + 1 less log(a), then
// Stirling's series, with products in heads and rests. For x < 0 log(|a sin(pi a) / pi|) is added and all of it subtracted.
vec4 gn_lgamma(vec4 x) {
    vec4 a = abs(x), one = vec4(1.0), p, q, w, k, r, l;
    bvec4 low = lessThan(a, one), high = greaterThan(a, vec4(3.0)), minus = lessThan(x, vec4(0.0));
    precise vec4 f = mix(a - 1.0, a, low), v = f - 1.0;
    p = gn_poly2(v, 0.00242094113, 0.0193093475, 0.0329649933);
    q = gn_poly3(v, 0.0244732723, 0.282992005, 0.961431503, 1.0);
    w = mix(p, one, high) / mix(q, a, high);
    precise vec4 s = f * v, sh = gn_head(s), sl = (s - sh) + gn_product_rest(f, v, s);
    p = (w * v - 0.100317299) * v + 5.48429125e-05;
    s = s * p + sl * 0.422729492;
    // (a - 1/2)(log(a) - 1) and the series
    l = gn_log_split(a, k);
    l = gn_log_pair(k, l, -1.0, r);
    precise vec4 e = a - 0.5, eh = gn_head(e), t = l + r, lh = gn_head(t), rest = ((l - t) + r) + (t - lh);
    q = w * w;
    p = gn_poly2(q, 0.000674347102, -0.00276877242, 0.0833330527) * w + 0.418938547;
    precise vec4 b = ((a - eh) - 0.5) * lh + (e * rest + p);
    s = mix(s, b, high);
    t = mix(sh, eh, high) * mix(vec4(0.422729492), lh, high);
    bvec4 none = greaterThan(a, vec4(4.08500311e36));
    if (any(gn_either(low, minus))) {
        precise vec4 y = a - roundEven(a);
        vec4 u = y * y;
        p = gn_poly3(u, 0.0247161072, -0.190443233, 0.811715841, -1.64493334);
        y = abs((p * u) * y + y) * mix(a, one, low);
        y = mix(mix(one, a, low), y, minus);
        l = gn_log_split(y, k);
        l = gn_flip(gn_log_pair(k, l, 0.0, r), GN_BITS_SIGN(x));
        precise vec4 sum = t - l;
        s = (s - gn_flip(r, GN_BITS_SIGN(x))) + gn_sum_rest(t, -l, sum);
        t = sum;
        none = gn_either(none, equal(GN_BITS_F(y), uvec4(0u)));
    }
    precise vec4 z = gn_flip(t + s, GN_BITS_SIGN(x));
    return gn_keep_nan(mix(z, gn_inf_of(a), none), x);
}
// Of a = |x|: a less the root times a quotient in a - 3/2 up to 2, of a + 1 below 1, then the asymptotic series; 1 / a and
// for x < 0 pi / tan(pi a) are added: of a's distance f to a whole number 1 / f less f times a quotient in f^2, or where |f| is
// above 1/4 the tangent of pi times what is missing to 1/2.
vec4 gn_digamma(vec4 x) {
    vec4 a = abs(x), zero = vec4(0.0), inv = gn_div(vec4(1.0), a), z = inv * inv, k, p, q, rest;
    bvec4 low = lessThan(a, vec4(1.0)), high = greaterThan(a, vec4(2.0)), minus = lessThan(x, zero);
    precise vec4 f = mix(a - 1.0, a, low), v = f - 0.5;
    p = gn_poly2(v, -0.00134778384, -0.171581, -0.423627615);
    q = gn_poly2(v, 0.205267489, 0.972841918, 1.0);
    precise vec4 d = (f - 0.461632133) - 1.24381501e-08;
    precise vec4 y = d * (p * v / q + 0.951055884);
    f = gn_log_split(a, k);
    k = gn_log_pair(k, f, 0.0, rest);
    p = gn_poly3(z, -0.00182817073, 0.00356110139, -0.00830007717, 0.0833323896);
    q = gn_flip(mix(mix(zero, inv, notEqual(low, minus)), 0.5 * inv, high), GN_BITS_SIGN(x));
    y = mix(y, k, high) - mix(q, p * z + (q - rest), high);
    if (any(minus)) {
        f = a - roundEven(a);
        v = 0.5 - abs(f);
        bvec4 end = lessThan(v, vec4(0.25));
        v = mix(-f, gn_copysign(v, f), end);
        z = v * v;
        p = z * mix(vec4(-1.45035911), vec4(-9.33204556), end) + mix(vec4(3.28986812), vec4(9.86960411), end);
        q = z * mix(vec4(0.104550533), vec4(0.946541429), end) + mix(vec4(-1.09883034), vec4(-4.23540926), end);
        precise vec4 sum = (y + v * gn_div_mid(p, q * z + 1.0)) + mix(gn_div(vec4(1.0), f), zero, end);
        y = mix(y, mix(sum, gn_nan_of(x), equal(GN_BITS_MAG(f), uvec4(0u))), minus);
    }
    y = mix(y, gn_flip(gn_inf_of(x), uvec4(0x80000000u)), equal(GN_BITS_MAG(x), uvec4(0u)));
    return gn_keep_nan(mix(y, x, equal(GN_BITS_F(x), uvec4(0x7f800000u))), x);
}
#endif

// ---- remainders

// fmod(a, b) for a, b > 0, finite, any size: long division of the mantissas, 8 bits at a time.
float gn_fmod_big(float a, float b) {
    uint ua = floatBitsToUint(a), ub = floatBitsToUint(b);
    int ea = int(ua >> 23), eb = int(ub >> 23);
    uint ma = ea == 0 ? ua : (ua & 0x7fffffu) | 0x800000u, mb = eb == 0 ? ub : (ub & 0x7fffffu) | 0x800000u;
    ea = max(ea, 1);
    eb = max(eb, 1);
    if (ua < ub) return a;
    uint r = ma % mb;
    for (int left = ea - eb; left > 0; left -= 8) r = (r << uint(min(left, 8))) % mb;
    if (r == 0u) return 0.0;
    int up = min(23 - findMSB(r), eb - 1);
    r <<= uint(up);
    return uintBitsToFloat(r + (uint(eb - up - 1) << 23));
}
// C's fmod, exact. A quotient of at most 10 bits makes the products exact.
vec4 gn_fmod(vec4 x, vec4 y) {
    vec4 a = abs(x), b = abs(y), q = a / b, n = trunc(q);
    precise vec4 head = gn_head(b), r = gn_less(gn_less(a, n, head), n, b - head);
    r = mix(r, r + b, lessThan(r, vec4(0.0)));
    r = mix(r, r - b, greaterThanEqual(r, b));
    // 2^-60 to 2^60, so that no division is loose
    uvec4 ua = GN_BITS_F(a) - 0x21800000u, ub = GN_BITS_F(b) - 0x21800000u;
    bvec4 usual = gn_both(lessThan(max(ua, ub), uvec4(0x3c000000u)), lessThan(q, vec4(1000.0)));
    if (!all(usual)) {
        vec4 c = b;
        for (int i = 0; i < 4; i++) { // as in gn_trig_rare
            uint va = floatBitsToUint(a.x), vb = floatBitsToUint(c.x);
            if (!usual.x && (va == 0u || vb >= 0x7f800000u)) r.x = a.x;
            else if (!usual.x && va < 0x7f800000u && vb != 0u) r.x = gn_fmod_big(a.x, c.x);
            a = a.yzwx, c = c.yzwx, r = r.yzwx, usual = usual.yzwx;
        }
        // fmod(Inf, y) and fmod(x, 0) are NaN
        bvec4 none = gn_either(gn_isinf(x), equal(GN_BITS_MAG(y), uvec4(0u)));
        r = gn_keep_nan(gn_keep_nan(mix(r, gn_nan_of(x), none), x), y);
    }
    return gn_copysign(r, x);
}
// Python's and NumPy's %: the result has the sign of y.
vec4 gn_mod(vec4 x, vec4 y) {
    vec4 r = gn_fmod(x, y);
    bvec4 zero = equal(GN_BITS_MAG(r), uvec4(0u)), differ = notEqual(GN_BITS_SIGN(r), GN_BITS_SIGN(y));
    r = mix(r, r + y, differ);
    return mix(r, uintBitsToFloat(GN_BITS_SIGN(y)), zero);
}
// NumPy's floor_divide: (x - mod) / y put back on the integer it should be.
vec4 gn_floor_div(vec4 x, vec4 y) {
    vec4 r = gn_fmod(x, y), q = gn_div(x - r, y);
    bvec4 differ = notEqual(GN_BITS_SIGN(r), GN_BITS_SIGN(y)), whole = equal(GN_BITS_MAG(r), uvec4(0u));
    q = mix(q, q - 1.0, gn_both(differ, not(whole)));
    vec4 f = floor(q);
    f = mix(f, f + 1.0, greaterThan(q - f, vec4(0.5)));
    f = mix(f, uintBitsToFloat(GN_BITS_SIGN(x) ^ GN_BITS_SIGN(y)), equal(GN_BITS_MAG(q), uvec4(0u)));
    f = gn_keep_nan(mix(f, q, gn_isinf(q)), r);
    return mix(f, gn_div(x, y), equal(GN_BITS_MAG(y), uvec4(0u)));
}

// ---- random numbers: bit for bit what room vmath computes; only sums, products and integer operations

#include "philox.glsl"
// -log((bits + 1/2) / 2^32): exponentially distributed, from 1.2e-10 to 22.9.
float gn_exponential(uint bits) {
    // The upper half is turned round, so that v / 2^32 is u or 1 - u with all its bits.
    bool upper = bits >= 0x80000000u;
    uint w = upper ? ~bits : bits;
    precise float v = float(int(w >> 12)) * 4096.0 + (float(int(w & 0xfffu)) + 0.5), p = v * 2.32830644e-10;
    // log(u) = k ln 2 + log(1 + f)
    uint b = floatBitsToUint(v) - 0x3f3504f3u;
    bool folded = p > 0.292893231;
    precise float f1 = folded ? 1.0 - (p + p) : -p, f0 = uintBitsToFloat((b & 0x007fffffu) + 0x3f3504f3u) - 1.0;
    precise float f = upper ? f1 : f0, k = upper ? (folded ? -1.0 : 0.0) : float(int(b) >> 23) - 32.0;
    precise float z = f * f, q = -0.0763620213 * f + 0.127620921;
    q = q * f - 0.131596208;
    q = q * f + 0.142015889;
    q = q * f - 0.166234091;
    q = q * f + 0.200012416;
    q = q * f - 0.250008196;
    q = q * f + 0.333333313;
    q = q * (f * z) + k * 1.42860677e-06;
    q = z * 0.5 - q;
    q = (q - f) - k * 0.693145752;
    return q;
}
// Two independent standard normals from two random words (Box & Muller 1958). The angle is one of eight octants, which
// are exchanges and signs, and 23 bits within it.
vec2 gn_normal2(uint a, uint b) {
    precise float s = gn_exponential(a);
    s = s + s;
    // 1 / sqrt(s) by Newton's iteration from a guess made with the exponent bits
    precise float y = uintBitsToFloat(0x5f3759dfu - (floatBitsToUint(s) >> 1)), h = s * 0.5;
    y = y * (1.5 - h * y * y);
    y = y * (1.5 - h * y * y);
    y = y * (1.5 - h * y * y);
    precise float r = s * y, t = (float(int((b >> 6) & 0x7fffffu)) + 0.5) * 1.1920929e-07, z = t * t;
    precise float p = -3.66091626e-05 * z + 0.00249101641, q = 3.49402467e-06 * z - 0.000325868663;
    p = p * z - 0.0807458311;
    p = p * z + 0.785398185;
    q = q * z + 0.0158542842;
    q = q * z - 0.308425128;
    p = r * (p * t);
    q = r * (q * z + 1.0);
    vec2 pair = (b & 0x20000000u) == 0u ? vec2(p, q) : vec2(q, p);
    return uintBitsToFloat(floatBitsToUint(pair) ^ (uvec2(b, b << 1) & 0x80000000u));
}

#endif
