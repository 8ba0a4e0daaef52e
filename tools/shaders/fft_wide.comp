// A pass of the Fourier transform of a chirp: the tables of Bluestein's convolution. Numbers are sums of two
// floats, as good as float64 where the table is rounded to one. An invocation has one point of the result, of a
// Stockham stage of any radix. Small, because it runs once for a length and a driver compiles it before.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#define GN_BUFFERS 5
#define GN_READONLY 19 /* 0, 1 and 4 */
#include "gn.glsl"

// 0 and 1 the operand's first and second parts, 2 and 3 the result's, 4 points of a circle: exp(-2 pi i k / n) for
// k < 2^shift, then for multiples of 2^shift, as two parts of the real and two of the imaginary one.
#define P_POINTS GN_PARAM(GNI_P_FFT_WIDE_POINTS)
#define P_RADIX GN_PARAM(GNI_P_FFT_WIDE_RADIX)
#define P_STEP GN_PARAM(GNI_P_FFT_WIDE_STEP)
#define P_CHIRP GN_PARAM(GNI_P_FFT_WIDE_CHIRP)
#define P_FLAGS GN_PARAM(GNI_P_FFT_WIDE_FLAGS)
#define P_SHIFT GN_PARAM(GNI_P_FFT_WIDE_SHIFT)
#define P_SCALE GN_PARAM_F(GNI_P_FFT_WIDE_SCALE)
#define P_SCALE_REST GN_PARAM_F(GNI_P_FFT_WIDE_SCALE + 1)

vec2 sum(vec2 a, vec2 b) {
    precise float s = a.x + b.x, t = s - a.x;
    precise float e = (a.x - (s - t)) + (b.x - t) + (a.y + b.y), r = s + e, rest = e - (r - s);
    return vec2(r, rest);
}
// A float's leading 12 bits: products of such are exact. Not every driver has an fma that rounds once.
float leading(float a) {
    precise float c = 4097.0 * a, h = c - (c - a);
    return h;
}
vec2 product(vec2 a, vec2 b) {
    float ah = leading(a.x), bh = leading(b.x);
    precise float al = a.x - ah, bl = b.x - bh, p = a.x * b.x;
    precise float e = ((ah * bh - p) + ah * bl + al * bh) + al * bl + (a.x * b.y + a.y * b.x);
    precise float r = p + e, rest = e - (r - p);
    return vec2(r, rest);
}
vec4 plus(vec4 a, vec4 b) { return vec4(sum(a.xy, b.xy), sum(a.zw, b.zw)); }
vec4 times(vec4 a, vec4 b) {
    return vec4(sum(product(a.xy, b.xy), -product(a.zw, b.zw)), sum(product(a.xy, b.zw), product(a.zw, b.xy)));
}

vec4 root(uint k) {
    uint shift = P_SHIFT, fine = 1u << shift;
    return times(uintBitsToFloat(gn_fetch4(4, k & (fine - 1u))), uintBitsToFloat(gn_fetch4(4, fine + (k >> shift))));
}

// Number e of the chirp, there and mirrored, zeros between.
vec4 chirp(uint e) {
    uint n = P_CHIRP, j = e < n ? e : P_POINTS - e, high, low;
    if (j >= n) return vec4(0.0);
    umulExtended(j, j, high, low);
    uint square = high % (2u * n); // j^2 mod 2 n
    for (int bit = 31; bit >= 0; bit--) {
        square = square << 1 | (low >> bit & 1u);
        if (square >= 2u * n) square -= 2u * n;
    }
    vec4 v = root(square);
    return (P_FLAGS & GNI_F_FFT_WIDE_CONJ) != 0u ? vec4(v.xy, -v.zw) : v;
}

vec4 read_number(uint at) {
    vec2 a = uintBitsToFloat(gn_fetch2(0, at)), b = uintBitsToFloat(gn_fetch2(1, at));
    return vec4(a.x, b.x, a.y, b.y);
}

// Point q of butterfly j at k: Horner's rule over the operand's points, then the turn.
vec4 point(uint i) {
    uint points = P_POINTS, radix = P_RADIX, s = P_STEP, apart = points / radix;
    uint k = i % s, q = i / s % radix, j = i / s / radix, at = k + s * j;
    vec4 w = root(q * apart), v = read_number(at + (radix - 1u) * apart);
    for (uint z = radix - 1u; z > 0u; z--) v = plus(times(v, w), read_number(at + (z - 1u) * apart));
    return times(v, root(s * j * q));
}

void main() {
    uint i = GN_GROUP * 64u + gl_LocalInvocationIndex;
    if (i >= P_POINTS) return;
    vec4 v = P_CHIRP != 0u ? chirp(i) : point(i);
    if ((P_FLAGS & GNI_F_FFT_WIDE_LAST) != 0u) {
        precise vec2 y = fma(v.xz, vec2(P_SCALE), fma(v.yw, vec2(P_SCALE), v.xz * P_SCALE_REST));
        gn_store2(2, i, floatBitsToUint(y));
    } else {
        gn_store2(2, i, floatBitsToUint(v.xz));
        gn_store2(3, i, floatBitsToUint(v.yw));
    }
}
