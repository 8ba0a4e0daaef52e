// The float64 functions of the kernels, two lanes at a time: the methods and polynomials of room dmath of gpunum.h (coefficients:
// tools/fit_math.py), but without fused multiply-adds, which Vulkan does not promise: a product that has to be exact is made
// of heads of 26 bits (Dekker 1971), and constants that are taken off many times have few bits. Include wide.glsl first.

uvec2 gn_high(dvec2 a) { return gn_bits(a).yw; }
dvec2 gn_of_high(uvec2 high) { return gn_double(uvec4(0u, high.x, 0u, high.y)); }
// y, but NaN where a is NaN.
dvec2 gn_keep_nan(dvec2 y, dvec2 a) { return mix(y, a + a, gn_isnan(a)); }
// Made from a's bits at run time: a constant Inf or NaN may be folded wrongly.
dvec2 gn_nan_of(dvec2 a) { return gn_of_high(gn_high(a) | 0x7ff80000u); }
dvec2 gn_inf_of(dvec2 a) { return gn_of_high((gn_high(a) & 0x80000000u) | 0x7ff00000u); }
bvec2 gn_minus(dvec2 a) { return greaterThanEqual(gn_high(a), uvec2(0x80000000u)); }
// The nearest integers for |a| < 2^51.
dvec2 gn_whole(dvec2 a) {
    precise dvec2 t = a + 6755399441055744.0lf;
    precise dvec2 y = t - 6755399441055744.0lf;
    return y;
}
// The first 26 bits of a; what a b has beyond its rounded value p.
dvec2 gn_head(dvec2 a) {
    uvec4 r = gn_bits(a);
    r.xz &= 0xf8000000u;
    return gn_double(r);
}
dvec2 gn_lost(dvec2 a, dvec2 b, dvec2 p) {
    precise dvec2 ah = gn_head(a), bh = gn_head(b), al = a - ah, bl = b - bh, y = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
    return y;
}
// 2^n for -1022 <= n <= 1023; a 2^n for twice that, rounded once when the result is subnormal.
dvec2 gn_pow2(ivec2 n) { return gn_of_high(uvec2(n + 1023) << 20); }
dvec2 gn_scale(dvec2 a, ivec2 n) {
    ivec2 half_n = n >> 1;
    precise dvec2 y = a * gn_pow2(half_n);
    precise dvec2 z = y * gn_pow2(n - half_n);
    return z;
}
// (a + ar) / (b + br), ar and br being small.
dvec2 gn_ratio(dvec2 a, dvec2 ar, dvec2 b, dvec2 br) {
    precise dvec2 one = 1.0lf / b, y = a * one, p = y * b;
    precise dvec2 rest = ((a - p) - gn_lost(y, b, p)) + (ar - y * br), z = y + rest * one;
    return z;
}

// ---- exp and its kin

#define GN_LN2 0.69314718055994528623lf
#define GN_LN2_LO 2.319046813846299616e-17lf
#define GN_LN2_HEAD 0.69314718036912382lf // 32 bits
#define GN_LN2_TAIL 1.9082149292705877e-10lf

// x = n ln 2 + r + low, |r| <= ln(2)/2.
dvec2 gn_exp_reduce(dvec2 x, out dvec2 n, out dvec2 low) {
    n = gn_whole(x * 1.4426950408889634lf);
    precise dvec2 a = x - n * GN_LN2_HEAD, b = n * GN_LN2_TAIL, r = a - b;
    precise dvec2 rest = (a - r) - b;
    low = rest;
    return r;
}
// exp(r) - 1 - r for |r| <= ln(2)/2.
dvec2 gn_exp_rest(dvec2 r) {
    dvec2 p = r * 2.5061395025825315e-08lf + 2.763446265466433e-07lf;
    p = p * r + 2.7557422262196824e-06lf;
    p = p * r + 2.4801481783338446e-05lf;
    p = p * r + 0.0001984126965416171lf;
    p = p * r + 0.0013888888953936462lf;
    p = p * r + 0.008333333333444394lf;
    p = p * r + 0.04166666666649399lf;
    p = p * r + 0.1666666666666646lf;
    p = p * r + 0.5000000000000014lf;
    return p * (r * r);
}
// exp(r + low + more), of which `low` is below a rounding of r and `more` a few of 1.
dvec2 gn_exp_sum(dvec2 r, dvec2 low, dvec2 more) {
    dvec2 rest = gn_exp_rest(r), beside = low + (more + more * (r + rest));
    precise dvec2 y = (rest + beside) + r, z = y + 1.0lf;
    return z;
}
// exp(x + more) = y 2^n for |x| < 2^20, `more` being small.
dvec2 gn_exp_parts(dvec2 x, dvec2 more, out ivec2 n) {
    dvec2 whole, low, r = gn_exp_reduce(x, whole, low);
    n = ivec2(whole);
    return gn_exp_sum(r, low, more);
}
dvec2 gn_exp(dvec2 x) {
    ivec2 n;
    dvec2 y = gn_exp_parts(clamp(x, dvec2(-746.0lf), dvec2(710.0lf)), dvec2(0.0lf), n);
    return gn_keep_nan(gn_scale(y, n), x);
}
// 2^(x + more) = y 2^n for |x| < 2^20.
dvec2 gn_exp2_parts(dvec2 x, dvec2 more, out ivec2 n) {
    dvec2 whole = gn_whole(x);
    n = ivec2(whole);
    precise dvec2 f = x - whole, r = f * GN_LN2, low = gn_lost(f, dvec2(GN_LN2), r) + f * GN_LN2_LO;
    return gn_exp_sum(r, low, more * GN_LN2);
}
dvec2 gn_exp2(dvec2 x) {
    ivec2 n;
    dvec2 y = gn_exp2_parts(clamp(x, dvec2(-1076.0lf), dvec2(1025.0lf)), dvec2(0.0lf), n);
    return gn_keep_nan(gn_scale(y, n), x);
}
// (exp(x) - 1) 2^-parts, but for `low`, of x up to `most`: parts of 1/2 and 1/4 do not overflow early.
dvec2 gn_expm1_part(dvec2 x, int parts, double most, out dvec2 low) {
    dvec2 n, less, r = gn_exp_reduce(clamp(x, dvec2(-40.0lf), dvec2(most)), n, less);
    dvec2 s = gn_pow2(ivec2(n) - parts), part = gn_pow2(ivec2(-parts));
    precise dvec2 rest = gn_exp_rest(r) + less, p = r + rest, whole = s - part, sum = s * p + whole;
    precise dvec2 lost = s * ((r - p) + rest) + (s * p + (whole - sum));
    low = lost;
    return sum;
}
// y, but x where it is below 1e-300 in size, whose parts lose bits.
dvec2 gn_tiny_or(dvec2 x, dvec2 y) { return mix(y, x, lessThan(abs(x), dvec2(1e-300lf))); }
dvec2 gn_expm1(dvec2 x) {
    dvec2 low, y = gn_expm1_part(x, 1, 710.0lf, low);
    y += low;
    return gn_keep_nan(gn_tiny_or(x, gn_with_sign(y + y, x)), x);
}
// (e^2x - 1) / (e^2x + 1)
dvec2 gn_tanh(dvec2 x) {
    dvec2 a = min(abs(x), dvec2(20.0lf)), low, over = gn_expm1_part(a + a, 1, 710.0lf, low);
    precise dvec2 under = over + 1.0lf, rest = (over - (under - 1.0lf)) + low;
    return gn_keep_nan(gn_tiny_or(x, gn_with_sign(gn_ratio(over, low, under, rest), x)), x);
}
// With q = (e^x - 1) / 4 and w = e^x / 4: 2 (q + q / 4w), and 2 (w + 1 / 16w).
dvec2 gn_sinh(dvec2 x) {
    dvec2 low, q = gn_expm1_part(abs(x), 2, 710.5lf, low);
    precise dvec2 w = q + 0.25lf, rest = (q - (w - 0.25lf)) + low, y = q + (gn_ratio(q, low, w, rest) * 0.25lf + low);
    return gn_keep_nan(gn_tiny_or(x, gn_with_sign(y + y, x)), x);
}
dvec2 gn_cosh(dvec2 x) {
    dvec2 low, q = gn_expm1_part(abs(x), 2, 710.5lf, low);
    precise dvec2 w = q + 0.25lf, y = w + (0.0625lf / w + (low + (q - (w - 0.25lf))));
    return gn_keep_nan(y + y, x);
}
// exp(-|x|) = y 2^n.
dvec2 gn_decay_parts(dvec2 x, out ivec2 n) { return gn_exp_parts(-min(abs(x), dvec2(800.0lf)), dvec2(0.0lf), n); }
dvec2 gn_decay(dvec2 x) {
    ivec2 n;
    dvec2 y = gn_decay_parts(x, n);
    return gn_scale(y, n);
}
dvec2 gn_sigmoid(dvec2 x) {
    dvec2 e = gn_decay(x);
    return gn_keep_nan(mix(dvec2(1.0lf), e, gn_minus(x)) / (e + 1.0lf), x);
}
dvec2 gn_silu(dvec2 x) {
    ivec2 n;
    dvec2 y = gn_decay_parts(x, n), below = gn_scale(y * max(x, dvec2(-800.0lf)), n); // x exp(x)
    return gn_keep_nan(mix(x, below, gn_minus(x)) / (gn_scale(y, n) + 1.0lf), x);
}

// ---- log and its kin

// x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for x > 0.
dvec2 gn_log_split(dvec2 x, out dvec2 k) {
    bvec2 less = lessThan(x, dvec2(2.2250738585072014e-308lf));
    uvec4 r = gn_bits(mix(x, x * 18014398509481984.0lf, less)); // 2^54
    uvec2 h = r.yw + (0x3ff00000u - 0x3fe6a09eu);
    k = dvec2(ivec2(h >> 20) - mix(ivec2(1023), ivec2(1077), less));
    r.yw = (h & 0xfffffu) + 0x3fe6a09eu;
    return gn_double(r) - 1.0lf;
}
// log(1 + f) = f - f^2 / 2 + what this gives.
dvec2 gn_log_rest(dvec2 f, dvec2 square) {
    dvec2 s = f / (f + 2.0lf), z = s * s, p = z * 0.14858594079968404lf + 0.15308013629714456lf;
    p = p * z + 0.1818379048396456lf;
    p = p * z + 0.2222219443377429lf;
    p = p * z + 0.2857142878038184lf;
    p = p * z + 0.39999999999255925lf;
    p = p * z + 0.6666666666666756lf;
    return s * (p * z + square);
}
// y, but where x is infinite or NaN, and where `zero` is 0 or below, as logarithms are there.
dvec2 gn_log_ends(dvec2 y, dvec2 x, dvec2 zero) {
    y = mix(y, -gn_inf_of(abs(x)), equal(zero, dvec2(0.0lf)));
    y = mix(y, gn_nan_of(x), lessThan(zero, dvec2(0.0lf)));
    y = mix(y, x, GN_AND(gn_isinf(x), not(gn_minus(x))));
    return gn_keep_nan(y, x);
}
// log(2^k (1 + f)) with `more` beside it.
dvec2 gn_log_near1(dvec2 k, dvec2 f, dvec2 more) {
    precise dvec2 square = f * f * 0.5lf, low = (k * GN_LN2_TAIL + gn_log_rest(f, square)) + more;
    precise dvec2 y = k * GN_LN2_HEAD + (f - (square - low));
    return y;
}
dvec2 gn_log(dvec2 x) {
    dvec2 k, f = gn_log_split(x, k);
    return gn_log_ends(gn_log_near1(k, f, dvec2(0.0lf)), x, x);
}
// log(x) (c + c_low) + k (d + d_low) of x without its power of two: c of the base, d of 2; k d is exact.
dvec2 gn_log_to(dvec2 x, double c, double c_low, double d, double d_low) {
    dvec2 k, f = gn_log_split(x, k);
    precise dvec2 square = f * f * 0.5lf, high = f - square;
    dvec2 rest = gn_log_rest(f, square);
    precise dvec2 low = ((f - high) - square) + (rest - gn_lost(f * 0.5lf, f, square));
    precise dvec2 p = high * c, whole = k * d, sum = whole + p;
    precise dvec2 more = low * c + (high * c_low + gn_lost(high, dvec2(c), p));
    precise dvec2 y = sum + ((p - (sum - whole)) + (k * d_low + more));
    return gn_log_ends(y, x, x);
}
dvec2 gn_log2(dvec2 x) { return gn_log_to(x, 1.4426950408889634lf, 2.0355273740931033e-17lf, 1.0lf, 0.0lf); }
dvec2 gn_log10(dvec2 x) {
    return gn_log_to(x, 0.4342944819032518lf, 1.098319650216765e-17lf, 0.3010299956640665lf, -8.532344317057107e-14lf);
}
// log(2^up (1 + x)).
dvec2 gn_log1p_up(dvec2 x, dvec2 up) {
    precise dvec2 u = x + 1.0lf, lost = mix(x - (u - 1.0lf), 1.0lf - (u - x), greaterThan(u, dvec2(2.0lf)));
    dvec2 k, f = gn_log_split(u, k);
    dvec2 y = gn_log_near1(k + up, f, mix(lost / u, dvec2(0.0lf), gn_isinf(u)));
    return gn_log_ends(mix(y, gn_with_sign(y, x), equal(up, dvec2(0.0lf))), x, u);
}
dvec2 gn_log1p(dvec2 x) { return gn_log1p_up(x, dvec2(0.0lf)); }
dvec2 gn_softplus(dvec2 x) {
    dvec2 y = max(x, dvec2(0.0lf)) + gn_log1p(gn_decay(x));
    return gn_keep_nan(y, x);
}
// Beyond 2^60, log(2 |x|).
dvec2 gn_asinh(dvec2 x) {
    dvec2 a = abs(x), s = min(a, dvec2(1152921504606846976.0lf)), t = s + s * (s / (1.0lf + sqrt(s * s + 1.0lf)));
    bvec2 far = greaterThan(a, dvec2(1152921504606846976.0lf));
    dvec2 y = gn_log1p_up(mix(t, a, far), mix(dvec2(0.0lf), dvec2(1.0lf), far));
    return gn_keep_nan(gn_with_sign(y, x), x);
}
dvec2 gn_acosh(dvec2 x) {
    dvec2 s = clamp(x, dvec2(1.0lf), dvec2(1152921504606846976.0lf)) - 1.0lf, t = s + sqrt(s * (s + 2.0lf));
    bvec2 far = greaterThan(x, dvec2(1152921504606846976.0lf));
    dvec2 y = gn_log1p_up(mix(t, x, far), mix(dvec2(0.0lf), dvec2(1.0lf), far));
    return gn_keep_nan(mix(y, gn_nan_of(x), lessThan(x, dvec2(1.0lf))), x);
}
dvec2 gn_atanh(dvec2 x) {
    precise dvec2 a = abs(x), less = 1.0lf - a, t = (a + a) / less;
    dvec2 y = gn_log1p(mix(t, gn_inf_of(a), equal(less, dvec2(0.0lf)))) * 0.5lf;
    return gn_keep_nan(gn_tiny_or(x, gn_with_sign(mix(y, gn_nan_of(x), lessThan(less, dvec2(0.0lf))), x)), x);
}

// ---- trigonometry

#define GN_PIO2 1.5707963267948966lf
#define GN_PIO2_LO 6.123233995736766e-17lf

// 32 bits of 2 / pi behind 64 bits of 0: the first bit of word 2 weighs 1/2.
uint gn_two_over_pi(uint i) {
    const uint t[40] = uint[40](
        0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
        0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
        0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu,
        0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du,
        0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu);
    return t[i];
}
// x - n pi/2 in two parts for any finite x > 1e6 (Payne & Hanek 1983): x = m 2^e, and of m 2^e 2/pi the parts that weigh 2 and
// less, 192 bits of them; the first two are n.
dvec2 gn_quadrant_big(double x, out uint n) {
    uvec2 w = unpackDouble2x32(x), m = uvec2(w.x, (w.y & 0xfffffu) | 0x100000u);
    uint start = ((w.y >> 20) & 0x7ffu) - 1013u; // bits of the table in front of the one that weighs 2 in x 2/pi
    uint sum[6] = uint[6](0u, 0u, 0u, 0u, 0u, 0u);
    for (int i = 5; i >= 0; i--) {
        uint at = start + 32u * uint(i), word = at >> 5, left = at & 31u;
        uint a = gn_two_over_pi(word), b = gn_two_over_pi(word + 1u), bits = left == 0u ? a : (a << left) | (b >> (32u - left));
        for (int j = 0; j < 2 && i - j >= 0; j++) {
            uint high, low, more;
            umulExtended(bits, m[j], high, low);
            sum[i - j] = uaddCarry(sum[i - j], low, more);
            high += more;
            for (int k = i - j - 1; k >= 0 && high != 0u; k--) {
                sum[k] = uaddCarry(sum[k], high, more);
                high = more;
            }
        }
    }
    // the nearest quarter; what is left, as a fraction of pi/2 with its sign
    n = ((sum[0] >> 29) + 1u) >> 1;
    bool minus = (sum[0] & 0x20000000u) != 0u;
    sum[0] = sum[0] << 2;
    sum[0] = (sum[0] | (sum[1] >> 30));
    for (int i = 1; i < 5; i++) sum[i] = (sum[i] << 2) | (sum[i + 1] >> 30);
    if (minus)
        for (int i = 0; i < 5; i++) sum[i] = ~sum[i];
    int up = 0;
    while (sum[0] == 0u && up < 96) {
        for (int i = 0; i < 4; i++) sum[i] = sum[i + 1];
        sum[4] = 0u;
        up += 32;
    }
    double unit = packDouble2x32(uvec2(0u, uint(1023 - 32 - up) << 20));
    precise double high = (double(sum[0]) + double(sum[1] & 0xfffff800u) * 2.3283064365386963e-10lf) * unit;
    precise double low = (double(sum[1] & 0x7ffu) * 2.3283064365386963e-10lf + double(sum[2]) * 5.421010862427522e-20lf) * unit;
    precise double r = high * GN_PIO2;
    precise double rest = (gn_lost(dvec2(high), dvec2(GN_PIO2), dvec2(r)).x + high * GN_PIO2_LO) + low * GN_PIO2;
    precise double y = r + rest;
    precise double less = (r - y) + rest;
    return minus ? dvec2(-y, -less) : dvec2(y, less);
}
// x = n pi/2 + r + low; q has n in its low bits. Up to 1e6 by constants of 33 bits (Cody & Waite).
dvec2 gn_quadrant(dvec2 x, out dvec2 low, out uvec2 q) {
    bvec2 usual = lessThan(abs(x), dvec2(1e6lf));
    dvec2 n = gn_whole(mix(dvec2(0.0lf), x, usual) * 0.63661977236758134308lf);
    precise dvec2 a = x - n * 1.5707963267341256lf, b = n * 6.0771005063039660e-11lf, c = a - b, b_lost = (a - c) - b;
    precise dvec2 d = n * 2.0222662487111665e-21lf, e = c - d, rest = ((c - e) - d) + (b_lost - n * 8.4784276603689e-32lf);
    precise dvec2 r = e + rest, r_low = (e - r) + rest;
    low = r_low;
    q = uvec2(ivec2(n));
    if (usual.x && usual.y) return r;
    usual = GN_OR(usual, not(gn_isfinite(x)));
    dvec2 left = r;
    for (int i = 0; i < 2; i++) { // each in its turn the first, or drivers keep them in memory
        uint count;
        if (!usual.x) {
            dvec2 y = gn_quadrant_big(abs(x.x), count);
            bool minus = x.x < 0.0lf;
            left.x = minus ? -y.x : y.x;
            low.x = minus ? -y.y : y.y;
            q.x = minus ? ~count + 1u : count;
        }
        x = x.yx, left = left.yx, low = low.yx, q = q.yx, usual = usual.yx;
    }
    return left;
}
// sine and cosine of r + low up to what they return; r being in y already.
dvec2 gn_sin_rest(dvec2 r, dvec2 low) {
    dvec2 z = r * r, p = z * 1.5899630882067402e-10lf - 2.5050817558119546e-08lf;
    p = p * z + 2.755731416232474e-06lf;
    p = p * z - 0.00019841269831539227lf;
    p = p * z + 0.008333333333325314lf;
    p = p * z - 0.1666666666666665lf;
    return (r * z) * p + (low - low * (z * 0.5lf));
}
dvec2 gn_cos_rest(dvec2 r, dvec2 low, out dvec2 y) {
    precise dvec2 z = r * r, half_z = z * 0.5lf, one = 1.0lf - half_z;
    y = one;
    dvec2 p = z * -1.1453371310547646e-11lf + 2.0877655986366396e-09lf;
    p = p * z - 2.7557329617477473e-07lf;
    p = p * z + 2.480158734659301e-05lf;
    p = p * z - 0.0013888888888973787lf;
    p = p * z + 0.04166666666666723lf;
    precise dvec2 rest = ((1.0lf - one) - half_z) + ((z * z) * p - r * low);
    return rest;
}
// The sine of x and, for shift 1, the cosine.
dvec2 gn_wave(dvec2 x, uint shift) {
    dvec2 low, c, s;
    uvec2 q;
    s = gn_quadrant(x, low, q);
    q += shift;
    dvec2 cr = gn_cos_rest(s, low, c), sr = gn_sin_rest(s, low);
    bvec2 odd = notEqual(q & 1u, uvec2(0u));
    dvec2 y = mix(s, c, odd) + mix(sr, cr, odd);
    uvec4 r = gn_bits(y);
    r.yw ^= (q & 2u) << 30;
    return mix(gn_double(r), gn_nan_of(x), not(gn_isfinite(x)));
}
dvec2 gn_sin(dvec2 x) { return mix(gn_wave(x, 0u), x, equal(x, dvec2(0.0lf))); }
dvec2 gn_cos(dvec2 x) { return gn_wave(x, 1u); }
dvec2 gn_tan(dvec2 x) {
    dvec2 low, c;
    uvec2 q;
    dvec2 s = gn_quadrant(x, low, q), cr = gn_cos_rest(s, low, c), sr = gn_sin_rest(s, low);
    bvec2 odd = notEqual(q & 1u, uvec2(0u));
    precise dvec2 over = s + sr, under = c + cr, over_r = sr + (s - over), under_r = cr + (c - under);
    dvec2 y = gn_ratio(mix(over, -under, odd), mix(over_r, -under_r, odd), mix(under, over, odd), mix(under_r, over_r, odd));
    y = mix(y, x, lessThan(abs(x), dvec2(1e-100lf)));
    return mix(y, gn_nan_of(x), not(gn_isfinite(x)));
}

// ---- inverse trigonometry

// asin(s) = s + what this gives, where s = |x| up to 1/2, and beyond it s = sqrt((1 - |x|) / 2), half of the angle from 1.
dvec2 gn_asin_rest(dvec2 a, bvec2 big, out dvec2 s) {
    dvec2 z = mix(a * a, 0.5lf - a * 0.5lf, big), p = z * 0.03295672168377474lf - 0.017735565893794582lf;
    p = p * z + 0.02048261314847234lf;
    p = p * z + 0.006182799558822945lf;
    p = p * z + 0.012248105789355163lf;
    p = p * z + 0.013873376669723032lf;
    p = p * z + 0.017360887278739513lf;
    p = p * z + 0.022371681012282856lf;
    p = p * z + 0.030381962283315227lf;
    p = p * z + 0.04464285675391791lf;
    p = p * z + 0.07500000000424453lf;
    p = p * z + 0.16666666666665053lf;
    s = mix(a, sqrt(z), big);
    return s * (z * p);
}
dvec2 gn_asin_ends(dvec2 y, dvec2 x) {
    return gn_keep_nan(mix(y, gn_nan_of(x), greaterThan(abs(x), dvec2(1.0lf))), x);
}
dvec2 gn_asin(dvec2 x) {
    bvec2 big = greaterThan(abs(x), dvec2(0.5lf));
    dvec2 s, rest = gn_asin_rest(abs(x), big, s);
    precise dvec2 twice = s + s, high = GN_PIO2 - twice, low = (GN_PIO2 - high) - twice;
    precise dvec2 y = high - ((rest + rest) - (low + GN_PIO2_LO));
    return gn_asin_ends(gn_with_sign(mix(s + rest, y, big), x), x);
}
dvec2 gn_acos(dvec2 x) {
    bvec2 big = greaterThan(abs(x), dvec2(0.5lf)), below = gn_minus(x);
    dvec2 s, rest = gn_asin_rest(abs(x), big, s), sr = mix(rest, -rest, below);
    precise dvec2 left = (3.1415926535897931lf - (s + s)) - ((rest + rest) - 1.2246467991473532e-16lf);
    precise dvec2 middle = GN_PIO2 - (x - (GN_PIO2_LO - sr));
    return gn_asin_ends(mix(middle, mix((s + rest) * 2.0lf, left, below), big), x);
}
// atan(t) = t + what this gives, up to tan(pi/8).
dvec2 gn_atan_rest(dvec2 t) {
    dvec2 z = t * t, p = z * 0.04731911283240518lf - 0.06751635498714821lf;
    p = p * z + 0.06087255896018214lf;
    p = p * z - 0.05643201123143973lf;
    p = p * z + 0.05949560537577375lf;
    p = p * z - 0.06674442224739256lf;
    p = p * z + 0.07692906237759527lf;
    p = p * z - 0.09090939440674836lf;
    p = p * z + 0.11111112088502567lf;
    p = p * z - 0.14285714304280145lf;
    p = p * z + 0.20000000000179646lf;
    p = p * z - 0.33333333333333953lf;
    return t * (z * p);
}
// The angle of the smaller part over the larger one, 0 to pi/4, from the nearest half of the axes; about 1 as in gni_datan2.
dvec2 gn_atan2(dvec2 y, dvec2 x) {
    dvec2 ax = abs(x), ay = abs(y), one = dvec2(1.0lf), zero = dvec2(0.0lf);
    bvec2 steep = greaterThan(ay, ax), left = gn_minus(x);
    dvec2 most = mix(ax, ay, steep), least = mix(ay, ax, steep);
    bvec2 inf_most = gn_isinf(most), inf_least = gn_isinf(least);
    least = mix(mix(least, zero, inf_most), one, inf_least);
    most = mix(most, one, GN_OR(inf_most, equal(most, zero)));
    dvec2 scale = mix(one, dvec2(0.5lf), greaterThan(most, dvec2(4.49423283715579e307lf))); // 2^1022
    scale = mix(scale, dvec2(18014398509481984.0lf), lessThan(most, dvec2(1e-292lf))); // 2^54
    least *= scale;
    most *= scale;
    bvec2 about1 = greaterThan(least, most * 0.41421356237309503lf);
    precise dvec2 over = mix(least, least - most, about1), under = mix(most, least + most, about1), t = over / under;
    dvec2 rest = gn_atan_rest(t), base = mix(zero, dvec2(0.78539816339744828lf), about1);
    // base + t + low: from pi/2 down where it is steep, from pi down at the left
    dvec2 from = mix(mix(zero, dvec2(3.1415926535897931lf), left), dvec2(GN_PIO2), steep);
    dvec2 from_low = mix(mix(zero, dvec2(1.2246467991473532e-16lf), left), dvec2(GN_PIO2_LO), steep);
    precise dvec2 low = rest + mix(zero, dvec2(3.061616997868383e-17lf), about1);
    precise dvec2 less = (from - base) - (t + (low - from_low)), more = (from + base) + (t + (low + from_low));
    dvec2 angle = mix(more, less, GN_XOR(left, steep));
    return gn_keep_nan(gn_keep_nan(gn_with_sign(angle, y), x), y);
}
dvec2 gn_atan(dvec2 x) { return gn_tiny_or(x, gn_atan2(x, dvec2(1.0lf))); }

// ---- magnitudes and roots

// The root of the sum of squares, which are as exact as two numbers say; scaled where a square would overflow or lose bits.
dvec2 gn_hypot(dvec2 x, dvec2 y) {
    dvec2 ax = abs(x), ay = abs(y), most = max(ax, ay), least = min(ax, ay), one = dvec2(1.0lf);
    // 2^-600 above 2^500, 2^600 below 2^-400
    dvec2 scale = mix(one, dvec2(2.409919865102884e-181lf), greaterThan(most, dvec2(3.273390607896142e150lf)));
    scale = mix(scale, dvec2(4.149515568880993e180lf), lessThan(most, dvec2(3.8725919148493183e-121lf)));
    precise dvec2 a = most * scale, b = least * scale, p = a * a, q = b * b, sum = p + q;
    precise dvec2 low = (gn_lost(a, a, p) + gn_lost(b, b, q)) + (q - (sum - p)), root = sqrt(sum), r = root * root;
    precise dvec2 h = root + (((sum - r) - gn_lost(root, root, r)) + low) / (root + root);
    h = mix(root, h, greaterThan(sum, dvec2(0.0lf))) / scale;
    h = gn_keep_nan(gn_keep_nan(h, x), y);
    return mix(h, gn_inf_of(ax), GN_OR(gn_isinf(x), gn_isinf(y)));
}
// All that rounding took from p = a a, by halves of 26 bits with signs (gn_lost's have 26 and 27), and from s = a + b (Knuth).
dvec2 gn_square_rest(dvec2 a, dvec2 p) {
    precise dvec2 c = a * 134217729.0lf, h = c - (c - a), l = a - h, m = h * l, r = ((h * h - p) + (m + m)) + l * l; // 2^27 + 1
    return r;
}
dvec2 gn_sum_rest(dvec2 a, dvec2 b, dvec2 s) {
    precise dvec2 t = s - a, r = (a - (s - t)) + (b - t);
    return r;
}
// The logarithm of the magnitude; near 1 of the squares' sum without their rounding errors, which is all that is left there.
dvec2 gn_log_size(dvec2 x, dvec2 y) {
    dvec2 a = abs(x), b = abs(y), most = max(a, b), one = dvec2(1.0lf), k;
    bvec2 large = greaterThan(most, dvec2(3.273390607896142e150lf)), less = lessThan(most, dvec2(3.8725919148493183e-121lf));
    dvec2 scale = mix(mix(one, dvec2(2.409919865102884e-181lf), large), dvec2(4.149515568880993e180lf), less); // 2^-600, 2^600
    dvec2 up = mix(mix(dvec2(0.0lf), dvec2(1200.0lf), large), dvec2(-1200.0lf), less);
    a *= scale;
    b *= scale;
    precise dvec2 p = a * a, q = b * b, s = p + q;
    dvec2 f = gn_log_split(s, k), r = gn_log_near1(k + up, f, dvec2(0.0lf));
    bvec2 near = GN_AND(equal(up, dvec2(0.0lf)), GN_AND(greaterThan(s, dvec2(0.5lf)), lessThan(s, dvec2(2.0lf))));
    if (near.x || near.y) {
        precise dvec2 p1 = gn_square_rest(a, p), q1 = gn_square_rest(b, q), u = p1 + q1;
        precise dvec2 lost = gn_sum_rest(p, q, s), w = lost + u, g = s - 1.0lf, t = g + w;
        precise dvec2 rest = gn_sum_rest(g, w, t) + (gn_sum_rest(lost, u, w) + gn_sum_rest(p1, q1, u));
        precise dvec2 sum = t + rest;
        r = mix(r, gn_log1p(sum), near);
    }
    r = mix(r * 0.5lf, -gn_inf_of(most), equal(most, dvec2(0.0lf)));
    r = gn_keep_nan(gn_keep_nan(r, x), y);
    return mix(r, gn_inf_of(most), GN_OR(gn_isinf(x), gn_isinf(y)));
}
// x = m 8^k, 1 <= m < 8; a float's root is brought to a double's by one step of Halley's.
dvec2 gn_cbrt(dvec2 x) {
    dvec2 a = abs(x);
    bvec2 less = lessThan(a, dvec2(2.2250738585072014e-308lf));
    uvec4 r = gn_bits(mix(a, a * 18014398509481984.0lf, less)); // 2^54
    uvec2 e = r.yw >> 20, k = e / 3u; // 1023 and 54 are multiples of 3
    r.yw = (r.yw & 0xfffffu) | ((e - 3u * k + 1023u) << 20);
    dvec2 m = gn_double(r), y = dvec2(exp2(log2(vec2(m)) * 0.333333343));
    precise dvec2 cube = y * y * y, step = y * ((cube - m) / (cube + cube + m)), root = y - step;
    root = gn_with_sign(root * gn_pow2(ivec2(k) - mix(ivec2(341), ivec2(359), less)), x);
    return gn_keep_nan(mix(root, x, GN_OR(equal(x, dvec2(0.0lf)), gn_isinf(x))), x);
}

// ---- erf

// exp(x^2) erfc(x) for x from 0.83 on: by (x - 1.6) / (x + 1.6) up to 3, then x times it by 1 / x - 0.18.
dvec2 gn_erfcx(dvec2 x) {
    dvec2 t = (x - 1.6lf) / (x + 1.6lf), p = t * -8.5366339429874187e-06lf - 5.5061102472429444e-06lf;
    p = p * t + 2.3815312473680389e-05lf;
    p = p * t + 6.3269038324139903e-05lf;
    p = p * t + 2.7534594588901641e-05lf;
    p = p * t - 0.00021071299294340366lf;
    p = p * t - 0.00049311472225476403lf;
    p = p * t + 0.000190912556210247lf;
    p = p * t + 0.0028403570537722739lf;
    p = p * t + 0.0024264336570829085lf;
    p = p * t - 0.016831368542101814lf;
    p = p * t - 0.024608084081630587lf;
    p = p * t + 0.20848791448507148lf;
    p = p * t - 0.47785469385120399lf;
    p = p * t + 0.30595299227094108lf;
    if (all(lessThanEqual(x, dvec2(3.0lf)))) return p;
    dvec2 u = 1.0lf / x, s = u - 0.18lf, q = s * 184.28614584364186lf + 18.222935004766629lf;
    q = q * s - 77.346803577537415lf;
    q = q * s + 25.34289635084847lf;
    q = q * s + 6.8556434113416733lf;
    q = q * s - 9.7924005452962142lf;
    q = q * s + 3.4077270623787705lf;
    q = q * s + 1.0133654693659655lf;
    q = q * s - 1.6550028941198558lf;
    q = q * s + 0.57525944307091137lf;
    q = q * s + 0.31653693834312951lf;
    q = q * s - 0.43714836413032515lf;
    q = q * s + 0.09725114760184049lf;
    q = q * s + 0.21119132959546752lf;
    q = q * s - 0.21362535506295821lf;
    q = q * s - 0.092728406752984965lf;
    q = q * s + 0.55546150322952959lf;
    return mix(p, q * u, greaterThan(x, dvec2(3.0lf)));
}
// erf(x) = x + x what this gives, up to 0.84.
dvec2 gn_erf_part(dvec2 z) {
    dvec2 p = z * -8.0562424523584382e-10lf + 1.3833051814473593e-08lf;
    p = p * z - 1.6230446485047305e-07lf;
    p = p * z + 1.6449922415299373e-06lf;
    p = p * z - 1.492491920030576e-05lf;
    p = p * z + 0.0001205530375123887lf;
    p = p * z - 0.00085483262633613848lf;
    p = p * z + 0.0052239776133618625lf;
    p = p * z - 0.026866170644120939lf;
    p = p * z + 0.11283791670952711lf;
    p = p * z - 0.37612638903183893lf;
    p = p * z + 0.12837916709551261lf;
    return p;
}
// exp(-x^2) times `by`, without rounding x^2.
dvec2 gn_bell(dvec2 x, dvec2 by) {
    ivec2 n;
    precise dvec2 p = x * x;
    dvec2 y = gn_exp_parts(-p, -gn_lost(x, x, p), n);
    return gn_scale(y * by, n);
}
dvec2 gn_erf(dvec2 x) {
    dvec2 a = min(abs(x), dvec2(6.0lf));
    dvec2 y = mix(1.0lf - gn_bell(a, gn_erfcx(max(a, dvec2(0.83lf)))), a + a * gn_erf_part(a * a), lessThan(a, dvec2(0.83lf)));
    return gn_keep_nan(gn_with_sign(y, x), x);
}
// x times the normal distribution's function.
dvec2 gn_gelu(dvec2 x) {
    dvec2 a = min(abs(x), dvec2(39.0lf)), t = a * 0.70710678118654757lf, near = t + t * gn_erf_part(t * t);
    // exp(-a^2 / 2)
    ivec2 n;
    precise dvec2 p = a * a;
    dvec2 e = gn_exp_parts(p * -0.5lf, gn_lost(a, a, p) * -0.5lf, n);
    dvec2 tail = gn_scale(e * (gn_erfcx(max(t, dvec2(0.83lf))) * 0.5lf) * clamp(x, dvec2(-39.0lf), dvec2(39.0lf)), n);
    bvec2 minus = gn_minus(x), little = lessThan(t, dvec2(0.83lf));
    dvec2 small = x * (0.5lf + mix(near, -near, minus) * 0.5lf);
    dvec2 large = mix(x - tail, tail, minus);
    return gn_keep_nan(mix(large, small, little), x);
}

// ---- erfc, its inverse, and gamma's functions: what room cpu_special of gpunum.h does

dvec2 gn_erfc(dvec2 x) {
    dvec2 a = min(abs(x), dvec2(28.0lf)), b = clamp(x, dvec2(-0.83lf), dvec2(0.83lf));
    dvec2 tail = gn_bell(a, gn_erfcx(max(a, dvec2(0.83lf))));
    precise dvec2 near = (1.0lf - b) - b * gn_erf_part(b * b);
    return gn_keep_nan(mix(mix(tail, 2.0lf - tail, gn_minus(x)), near, lessThan(a, dvec2(0.83lf))), x);
}
// A first value after Giles (2012), or of the tail; then Halley's steps.
dvec2 gn_erfinv(dvec2 x) {
    const double c[18] = double[18](
        2.81022636e-08lf, 3.43273939e-07lf, -3.5233877e-06lf, -4.39150654e-06lf, 0.00021858087lf, -0.00125372503lf,
        -0.00417768164lf, 0.246640727lf, 1.50140941lf, -0.000200214257lf, 0.000100950558lf, 0.00134934322lf,
        -0.00367342844lf, 0.00573950773lf, -0.0076224613lf, 0.00943887047lf, 1.00167406lf, 2.83297682lf);
    dvec2 a = abs(x), rest = 1.0lf - a, w = -gn_log(rest * (1.0lf + a)), y = dvec2(0.0lf);
    bvec2 tail = greaterThanEqual(w, dvec2(5.0lf)), far = greaterThanEqual(w, dvec2(16.0lf));
    dvec2 t = mix(w - 2.5lf, sqrt(w) - 3.0lf, tail);
    for (int i = 0; i < 9; i++) y = y * t + mix(dvec2(c[i]), dvec2(c[9 + i]), tail);
    y *= a;
    bool is_far = far.x || far.y;
    if (is_far) {
        w = -gn_log(rest * 1.7724538509055160273lf);
        y = mix(y, sqrt(w - 0.5lf * gn_log(w)), far);
    }
    for (int i = is_far ? 0 : 2; i < 3; i++) {
        precise dvec2 less = (y - a) + y * gn_erf_part(y * y);
        dvec2 f = mix(rest - gn_erfc(y), less, lessThan(a, dvec2(0.5lf)));
        dvec2 u = f * gn_exp(y * y) * 0.88622692545275801365lf;
        y -= u / (1.0lf + u * y);
    }
    y = mix(y, gn_inf_of(a), equal(a, dvec2(1.0lf)));
    return gn_keep_nan(mix(gn_with_sign(y, x), gn_nan_of(x), greaterThan(a, dvec2(1.0lf))), x);
}
// log Gamma(2 + z) for |z| up to 1/2.
dvec2 gn_lgamma_near_2(dvec2 z) {
    const double c[27] = double[27](
        1.3304764374244489481e-10lf, -2.7595228851242331452e-10lf, 5.7313672416788620133e-10lf, -1.1921401405860912074e-9lf,
        2.4836745438024783172e-9lf, -5.1834750419700466551e-9lf, 1.0838659214896954091e-8lf, -2.271109460894316491e-8lf,
        4.7698101693639805658e-8lf, -1.0043224823968099609e-7lf, 2.1207184805554665869e-7lf, -4.4924691987645660433e-7lf,
        9.5514121304074198329e-7lf, -2.0392157538013662368e-6lf, 4.3748667899074878042e-6lf, -9.439488275268395904e-6lf,
        0.000020507212775670691553lf, -0.0000449262367381331417lf, 0.000099457512781808533715lf,
        -0.00022315475845357937976lf, 0.00050966952474304242234lf, -0.0011927539117032609771lf, 0.0028905103307415232858lf,
        -0.0073855510286739852663lf, 0.020580808427784547879lf, -0.067352301053198095133lf, 0.32246703342411321824lf);
    dvec2 p = dvec2(0.0lf);
    for (int i = 0; i < 27; i++) p = p * z + c[i];
    return (p * z + 0.42278433509846713939lf) * z;
}
// For x > 0; one logarithm serves all parts.
dvec2 gn_lgamma_positive(dvec2 x) {
    const double c[8] = double[8](
        -0.029550653594771242lf, 0.00641025641025641lf, -0.0019175269175269176lf, 0.0008417508417508417lf,
        -0.0005952380952380953lf, 0.0007936507936507937lf, -0.002777777777777778lf, 0.08333333333333333lf);
    bvec2 low = lessThan(x, dvec2(0.5lf)), middle = lessThan(x, dvec2(1.5lf)), big = greaterThanEqual(x, dvec2(8.0lf));
    dvec2 y = mix(x, dvec2(2.0lf), big), product = dvec2(1.0lf), p = dvec2(0.0lf);
    for (int i = 0; i < 6; i++) {
        bvec2 more = greaterThan(y, dvec2(2.5lf));
        y = mix(y, y - 1.0lf, more);
        product = mix(product, product * y, more);
    }
    dvec2 l = gn_log(mix(mix(product, mix(x, x * (1.0lf + x), low), middle), x, big));
    dvec2 near = gn_lgamma_near_2(mix(y - 2.0lf, mix(x - 1.0lf, x, low), middle)) + mix(l, -l, middle);
    dvec2 u = 1.0lf / x, z = u * u;
    for (int i = 0; i < 8; i++) p = p * z + c[i];
    dvec2 far = (x - 0.5lf) * l - x + (0.91893853320467274178lf + p * u);
    return mix(near, mix(far, x * (l - 1.0lf), greaterThan(x, dvec2(1e300lf))), big);
}
// sin(pi x) and cos(pi x), both times -1 where the nearest integer n is odd.
dvec2 gn_sine_pi(dvec2 x, out dvec2 n, out dvec2 cosine) {
    n = gn_floor(x + 0.5lf);
    dvec2 r = (x - n) * 3.14159265358979323846lf;
    cosine = gn_cos(r);
    return gn_sin(r);
}
dvec2 gn_lgamma(dvec2 x) {
    dvec2 a = abs(x), y = gn_lgamma_positive(a), n, cosine;
    bvec2 minus = lessThan(x, dvec2(0.0lf));
    if (minus.x || minus.y) {
        dvec2 size = abs(x * gn_sine_pi(x, n, cosine));
        y = mix(y, gn_log(3.14159265358979323846lf / size) - y, minus);
        y = mix(y, -gn_log(a), GN_AND(minus, lessThan(a, dvec2(1e-100lf))));
        y = mix(y, gn_inf_of(a), GN_AND(minus, equal(gn_floor(x), x)));
    }
    return gn_keep_nan(mix(y, gn_inf_of(a), GN_OR(equal(x, dvec2(0.0lf)), gn_isinf(x))), x);
}
// The derivative of lgamma, the one of that, and so on: up to 10 by the recurrence, then by the asymptotic series.
dvec2 gn_polygamma(dvec2 x, int order) {
    const double c[24] = double[24](
        -0.4432598039215686lf, 0.08333333333333333lf, -0.021092796092796094lf, 0.007575757575757576lf,
        -0.004166666666666667lf, 0.003968253968253968lf, -0.008333333333333333lf, 0.08333333333333333lf,
        -7.092156862745098lf, 1.1666666666666667lf, -0.2531135531135531lf, 0.07575757575757576lf,
        -0.03333333333333333lf, 0.023809523809523808lf, -0.03333333333333333lf, 0.16666666666666666lf,
        -120.56666666666666lf, 17.5lf, -3.2904761904761903lf, 0.8333333333333334lf, -0.3lf,
        0.16666666666666666lf, -0.16666666666666666lf, 0.5lf);
    dvec2 zero = dvec2(0.0lf), n, cosine, y = zero, p = zero;
    bvec2 minus = order == 1 ? lessThanEqual(x, zero) : lessThan(x, zero);
    dvec2 a = mix(x, 1.0lf - x, minus);
    for (int i = 0; i < 10; i++) {
        dvec2 u = 1.0lf / a, v = order == 0 ? u : u * u;
        if (order == 2) v *= u + u;
        bvec2 more = lessThan(a, dvec2(10.0lf));
        y = mix(y, y + v, more);
        a = mix(a, a + 1.0lf, more);
    }
    dvec2 u = 1.0lf / a, z = u * u;
    for (int i = 0; i < 8; i++) p = (p + c[8 * order + i]) * z;
    if (order == 0) y = (gn_log(a) - 0.5lf * u - p) - y;
    else if (order == 1) y = y + (1.0lf + p + 0.5lf * u) * u;
    else y = -y - (1.0lf + p + u) * z;
    if (minus.x || minus.y) {
        dvec2 t = 3.14159265358979323846lf / gn_sine_pi(x, n, cosine);
        dvec2 other = order == 0 ? y - t * cosine : order == 1 ? t * t - y : y - 2.0lf * cosine * t * t * t;
        y = mix(y, other, minus);
        bvec2 poles = GN_AND(minus, equal(gn_floor(x), x));
        y = mix(y, order == 1 ? gn_inf_of(abs(x)) : gn_nan_of(x), poles);
    }
    if (order != 1) y = mix(y, -gn_inf_of(x), equal(x, zero));
    return gn_keep_nan(y, x);
}
dvec2 gn_digamma(dvec2 x) { return gn_polygamma(x, 0); }
dvec2 gn_trigamma(dvec2 x) { return gn_polygamma(x, 1); }
dvec2 gn_tetragamma(dvec2 x) { return gn_polygamma(x, 2); }

// ---- pow

// log2(a) in two parts for a > 0.
dvec2 gn_log2_pair(dvec2 a, out dvec2 rest) {
    dvec2 k, f = gn_log_split(a, k);
    // s = f / (f + 2) and z = s^2, each in two parts
    precise dvec2 d = f + 2.0lf, d_low = f - (d - 2.0lf), s = f / d, p = s * d;
    precise dvec2 s_low = (((f - p) - gn_lost(s, d, p)) - s * d_low) / d;
    precise dvec2 z = s * s, z_low = gn_lost(s, s, z) + (s + s) * s_low;
    // log(1 + f) = s (2 + z (2/3 + z q))
    dvec2 q = z * 0.10764953135221728lf + 0.10456047960220455lf;
    q = q * z + 0.11766825597780622lf;
    q = q * z + 0.13333296245726053lf;
    q = q * z + 0.15384615764848786lf;
    q = q * z + 0.18181818179631651lf;
    q = q * z + 0.22222222222228513lf;
    q = q * z + 0.28571428571428564lf;
    q = q * z + 0.40000000000000002lf;
    q = q * z;
    precise dvec2 c = q + 0.66666666666666663lf, c_low = (q - (c - 0.66666666666666663lf)) + 3.7007434154171883e-17lf;
    precise dvec2 v = z * c, v_low = (gn_lost(z, c, v) + z * c_low) + z_low * c;
    precise dvec2 u = v + 2.0lf, u_low = (v - (u - 2.0lf)) + v_low;
    precise dvec2 l = s * u, l_low = (gn_lost(s, u, l) + s * u_low) + s_low * u;
    // times 1 / ln 2, and k
    precise dvec2 m = l * 1.4426950408889634lf;
    precise dvec2 m_more = l * 2.0355273740931033e-17lf + l_low * 1.4426950408889634lf;
    precise dvec2 m_low = gn_lost(l, dvec2(1.4426950408889634lf), m) + m_more;
    precise dvec2 sum = k + m, sum_low = (m - (sum - k)) + m_low;
    precise dvec2 y = sum + sum_low, y_low = (sum - y) + sum_low;
    rest = y_low;
    return y;
}
// x^y where x or y is no ordinary number; r is |x|^y elsewhere.
dvec2 gn_pow_ends(dvec2 x, dvec2 y, dvec2 r) {
    dvec2 ax = abs(x), ay = abs(y), one = dvec2(1.0lf), zero = dvec2(0.0lf);
    bvec2 below = gn_minus(y), minus = gn_minus(x);
    // from 2^53 on all numbers are even
    dvec2 part = mix(ay, dvec2(2.0lf), greaterThanEqual(ay, dvec2(9007199254740992.0lf)));
    bvec2 whole = equal(trunc(part), part), odd = GN_AND(whole, gn_not_equal(trunc(0.5lf * part), 0.5lf * part));
    dvec2 inf = gn_inf_of(ax);
    r = mix(r, mix(zero, inf, below), equal(ax, zero));
    r = mix(r, mix(inf, zero, below), gn_isinf(x));
    r = mix(r, one, equal(ax, one));
    // |x| below 1 to the power -Inf is Inf
    r = mix(r, mix(zero, inf, GN_XOR(below, greaterThan(ax, one))), GN_AND(gn_isinf(y), gn_not_equal(ax, one)));
    r = mix(r, -r, GN_AND(minus, odd));
    bvec2 none = GN_AND(GN_AND(minus, not(whole)), GN_AND(gn_isfinite(x), gn_not_equal(x, zero)));
    none = GN_AND(none, gn_isfinite(y));
    r = mix(r, gn_nan_of(x), none);
    r = gn_keep_nan(gn_keep_nan(r, x), y);
    return mix(r, one, GN_OR(equal(x, one), equal(y, zero)));
}
dvec2 gn_pow(dvec2 x, dvec2 y) {
    dvec2 rest, head = gn_log2_pair(abs(x), rest), e = clamp(y, dvec2(-1e21lf), dvec2(1e21lf));
    precise dvec2 z = e * head, low = gn_lost(e, head, z) + e * rest;
    bvec2 far = greaterThan(abs(z), dvec2(1100.0lf));
    z = clamp(z, dvec2(-1100.0lf), dvec2(1100.0lf));
    ivec2 n;
    dvec2 m = gn_exp2_parts(z, mix(low, dvec2(0.0lf), far), n);
    return gn_pow_ends(x, y, gn_scale(m, n));
}

// ---- remainders

// fmod(a, b) for a, b > 0, finite, any size: long division of the mantissas, 11 bits at a time.
double gn_fmod_big(double a, double b) {
    if (a < b) return a;
    uint64_t ua = packUint2x32(unpackDouble2x32(a)), ub = packUint2x32(unpackDouble2x32(b)), bit = 1UL << 52, mask = bit - 1UL;
    int ea = int(ua >> 52), eb = int(ub >> 52);
    uint64_t ma = ea == 0 ? ua : (ua & mask) | bit, mb = eb == 0 ? ub : (ub & mask) | bit;
    ea = max(ea, 1);
    eb = max(eb, 1);
    uint64_t r = ma % mb;
    for (int left = ea - eb; left > 0; left -= 11) r = (r << uint(min(left, 11))) % mb;
    if (r == 0UL) return 0.0lf;
    for (; r < bit && eb > 1; eb--) r <<= 1;
    return packDouble2x32(unpackUint2x32(r < bit ? r : (r & mask) | (uint64_t(eb) << 52)));
}
// C's fmod, exact. A quotient of at most 20 bits makes the products exact.
dvec2 gn_fmod(dvec2 x, dvec2 y) {
    precise dvec2 a = abs(x), b = abs(y), q = a / b, n = trunc(q), head = gn_head(b), r = (a - n * head) - n * (b - head);
    r = mix(r, r + b, lessThan(r, dvec2(0.0lf)));
    r = mix(r, r - b, greaterThanEqual(r, b));
    bvec2 inside = GN_AND(greaterThan(min(a, b), dvec2(1e-290lf)), lessThan(max(a, b), dvec2(1e300lf)));
    bvec2 usual = GN_AND(inside, lessThan(q, dvec2(1e6lf)));
    bvec2 none = GN_OR(gn_isinf(x), equal(b, dvec2(0.0lf)));
    if (!(usual.x && usual.y))
        for (int i = 0; i < 2; i++) { // as in gn_quadrant
            bool rare = !usual.x && !none.x;
            if (rare && (a.x == 0.0lf || gn_isinf(b).x)) r.x = a.x;
            else if (rare && a.x > 0.0lf && b.x > 0.0lf) r.x = gn_fmod_big(a.x, b.x);
            a = a.yx, b = b.yx, r = r.yx, usual = usual.yx, none = none.yx;
        }
    return gn_keep_nan(gn_keep_nan(mix(gn_with_sign(r, x), gn_nan_of(x), none), x), y);
}
// Python's and NumPy's %: the result has the sign of y.
dvec2 gn_mod(dvec2 x, dvec2 y) {
    dvec2 r = gn_fmod(x, y), zero = dvec2(0.0lf);
    bvec2 differ = GN_XOR(gn_minus(r), gn_minus(y)), none = equal(r, zero);
    r = mix(r, mix(r + y, y, gn_isinf(y)), GN_AND(differ, not(gn_isnan(r))));
    return mix(r, gn_with_sign(zero, y), none);
}
// NumPy's floor_divide: (x - mod) / y put back on the integer it should be.
dvec2 gn_floor_div(dvec2 x, dvec2 y) {
    dvec2 r = gn_fmod(x, y), q = (x - r) / y, zero = dvec2(0.0lf);
    bvec2 differ = GN_XOR(gn_minus(r), gn_minus(y));
    q = mix(q, q - 1.0lf, GN_AND(differ, gn_not_equal(r, zero)));
    dvec2 f = gn_floor(q);
    f = mix(f, f + 1.0lf, greaterThan(q - f, dvec2(0.5lf)));
    f = mix(f, gn_of_high((gn_high(x) ^ gn_high(y)) & 0x80000000u), equal(q, zero));
    f = gn_keep_nan(mix(f, q, gn_isinf(q)), r);
    return mix(f, x / y, equal(y, zero));
}
