// What the kernels of the Fourier transform share: flags, parameters, how a point is read and written, and
// the butterflies. Says FLAGS, LINES and POINTS before it is included.
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 5
#define GN_READONLY 29 /* all but buffer 1 */
#include "gn.glsl"

// 0 operand, 1 result, 2 the turns between the stages, 3 and 4 factors of the operand and of the result.

#define HAS(flag) ((FLAGS & GNI_F_FFT_##flag) != 0)

// Words of the parameters.
#define P_LINES GN_PARAM(GNI_P_FFT_WIDE_POINTS)
#define P_IN GN_PARAM(GNI_P_FFT_WIDE_RADIX)
#define P_IN_STEP GN_PARAM(GNI_P_FFT_WIDE_STEP)
#define P_IN_COUNT GN_PARAM(GNI_P_FFT_WIDE_CHIRP)
#define P_OUT GN_PARAM(GNI_P_FFT_WIDE_FLAGS)
#define P_OUT_STEP GN_PARAM(GNI_P_FFT_WIDE_SHIFT)
#define P_OUT_COUNT GN_PARAM(GNI_P_FFT_WIDE_SCALE)
#define P_SCALE GN_PARAM_F(GNI_P_FFT_SCALE)
#define P_SPAN GN_PARAM(GNI_P_FFT_SPAN)
#define P_OUT_SPAN GN_PARAM(GNI_P_FFT_OUT_SPAN)
#define P_TWIST GN_PARAM(GNI_P_FFT_TWIST)
#define P_FULL GN_PARAM(GNI_P_FFT_FULL)
#define P_RANK GN_PARAM(GNI_P_FFT_RANK)
#define P_TWIST_INVERSE GN_PARAM_F(GNI_P_FFT_TWIST_INVERSE)
#define P_TWIST_REST GN_PARAM_F(GNI_P_FFT_TWIST_INVERSE + 1)
#define P_FOLD_INVERSE GN_PARAM_F(GNI_P_FFT_FOLD_INVERSE)
#define P_FOLD_REST GN_PARAM_F(GNI_P_FFT_FOLD_INVERSE + 1)
#define P_IN_EACH GN_PARAM(GNI_P_FFT_IN_EACH)
#define P_OUT_EACH GN_PARAM(GNI_P_FFT_OUT_EACH)

#ifndef REGISTERS
#define REGISTERS 20
#endif
vec2 x[REGISTERS];

vec2 times(vec2 a, vec2 b) {
    precise vec2 y = vec2(a.x * b.x, a.x * b.y);
    y = vec2(fma(-a.y, b.y, y.x), fma(a.y, b.x, y.y));
    return y;
}
vec2 fused(float s, vec2 a, vec2 b) {
    precise vec2 y = vec2(fma(s, a.x, b.x), fma(s, a.y, b.y));
    return y;
}
vec2 turned(vec2 a) { return vec2(a.y, -a.x); } // times -i

// exp(-2 pi i e / n), e < n < 2^30: the angle in quarter turns, reduced exactly, times pi / 2.
vec2 turn(uint e, uint n, float inverse, float rest) {
    uint quarter = uint(float(e) * inverse * 4.0 + 0.5);
    precise float r = float(int(4u * e - quarter * n)), t = r * inverse, z = t * t;
    precise float more = 1.57079632679 * fma(r, rest, fma(r, inverse, -t));
    precise float s = fma(z, 0.000158202082447151, -0.004681264421385768);
    precise float c = fma(z, 0.0009067158672174, -0.020861520815261686);
    s = fma(z, s, 0.07969258248194946);
    s = fma(z, s, -0.6459640961367719);
    s = fma(z, s, -4.3711388e-08);
    s = fma(t, 1.57079637050628662, t * s);
    c = fma(z, c, 0.2536694097832459);
    c = fma(z, c, -1.2337005493673354);
    c = fma(z, c, 1.0);
    precise float cc = fma(-more, s, c), ss = fma(more, c, s);
    vec2 y = (quarter & 1u) != 0u ? vec2(-ss, -cc) : vec2(cc, -ss);
    return (quarter & 2u) != 0u ? -y : y;
}

// Which line a slot of the workgroup has. A fold needs line u of a transform together with units - u:
// the first half of the slots then has lines from the front, the second half their mirror images.
uint line_of(uint slot) {
    if (!HAS(FOLD_OUT) || P_OUT_SPAN == 1u) return GN_GROUP * LINES + slot;
    uint units = P_OUT_SPAN, few = LINES / 2u, groups = (units / 2u + few - 1u) / few;
    uint batch = GN_GROUP / groups, u = GN_GROUP % groups * few + (slot < few ? slot : slot - few);
    if (u >= units / 2u) return P_LINES;
    if (slot >= few) u = u == 0u ? units / 2u : units - u;
    return batch * units + u;
}

// Parameters that stores would have read again, because memory might have changed.
uint full, out_span, out_step, out_each, out_count;
float scale;
void take_parameters() {
    full = P_FULL;
    out_span = P_OUT_SPAN;
    out_step = P_OUT_STEP;
    out_each = P_OUT_EACH;
    out_count = P_OUT_COUNT;
    scale = P_SCALE;
}

// Where a line starts, and what it adds to the numbers of its points in the whole transform.
uint from, to, unit, out_unit;
bool inside;
void line_at(uint line) {
    inside = line < P_LINES;
    line = min(line, P_LINES - 1u); // those beyond read in vain
    from = P_IN;
    to = P_OUT;
    unit = 0u;
    out_unit = 0u;
    uint rank = P_RANK;
    for (uint d = 0u; d < rank; d++) {
        uint word = GNI_P_FFT_DIM + GNI_P_FFT_DIM_WORDS * d, next, rest;
        umulExtended(line, GN_PARAM(word + 1u), next, rest);
        next >>= GN_PARAM(word + 2u);
        uint at = line - next * GN_PARAM(word);
        line = next;
        from += at * GN_PARAM(word + 3u);
        to += at * GN_PARAM(word + 4u);
        unit += at * GN_PARAM(word + 5u);
        out_unit += at * GN_PARAM(word + 6u);
    }
}

vec2 read_complex(uint at) { return uintBitsToFloat(gn_load2(0, at)); }

// Element e of a sequence of which one half is there; `from` is its start, whatever the line.
vec2 read_half(uint e, uint n) {
    uint mirror = e * 2u > n ? n - e : e;
    vec2 v = mirror < P_IN_COUNT ? read_complex(from + mirror * P_IN_STEP) : vec2(0.0);
    if (mirror == 0u || mirror * 2u == n) v.y = 0.0;
    if (mirror != e) v.y = -v.y;
    return v;
}

// The turn of number b + rest of a line between two passes, b below the points over the last radix and rest
// a multiple of them: as a product, because a kernel has one of each for many points.
vec2 twist_part(uint e) { return turn(unit * e, P_TWIST, P_TWIST_INVERSE, P_TWIST_REST); }
vec2 twist(uint b, uint rest) { return times(twist_part(b), twist_part(rest)); }

// exp(-pi i element / full)
vec2 fold_turn(const uint buffer_number, uint element) {
    if (HAS(FOLD_TABLE)) return uintBitsToFloat(gn_fetch2(buffer_number, element));
    return turn(element, 2u * P_FULL, P_FOLD_INVERSE, P_FOLD_REST);
}

// Of the first half, whose ends are real.
vec2 read_spectrum(uint e) {
    vec2 v = e < P_IN_COUNT ? read_complex(from + e * P_IN_STEP) : vec2(0.0);
    return vec2(v.x, e == 0u || e == P_FULL ? 0.0 : v.y);
}

vec2 read_point(uint j) {
    uint element = j * P_SPAN + unit, at = from + j * P_IN_STEP;
    vec2 v = vec2(0.0);
    if (HAS(HALF_IN)) {
        v = read_half(element, P_FULL);
    } else if (HAS(FOLD_IN)) {
        vec2 a = read_spectrum(element), b = read_spectrum(P_FULL - element);
        if (HAS(CONJ)) a.y = -a.y, b.y = -b.y;
        vec2 w = fold_turn(3, element);
        precise vec2 e = vec2(a.x + b.x, a.y - b.y), o = times(vec2(a.x - b.x, a.y + b.y), vec2(w.x, -w.y));
        e = vec2(e.x - o.y, e.y + o.x);
        v = e;
    } else if (HAS(PAIR_IN)) {
        if (2u * element < P_IN_COUNT) v.x = uintBitsToFloat(gn_load(0, at));
        if (2u * element + 1u < P_IN_COUNT) v.y = uintBitsToFloat(gn_load(0, at + P_IN_EACH));
    } else if (!HAS(CUT_IN) || element < P_IN_COUNT) {
        v = HAS(REAL_IN) ? vec2(uintBitsToFloat(gn_load(0, at)), 0.0) : read_complex(at);
    }
    if (HAS(SWAP_IN)) v = v.yx;
    if (HAS(FACTOR_IN)) v = element < P_FULL ? times(v, uintBitsToFloat(gn_fetch2(3, element))) : vec2(0.0);
    if (HAS(SWAP_IN_2)) v = v.yx;
    return v;
}

// The number v of point k of a line to where it belongs; w is its turn if there is a twist.
vec2 finished(uint element, vec2 v, vec2 w) {
    precise vec2 y;
    if (HAS(TWIST)) y = times(v, w); // never scaled
    else y = v * scale;
    if (HAS(SWAP_OUT)) y = y.yx;
    if (HAS(FACTOR_OUT)) y = times(y, uintBitsToFloat(gn_fetch2(4, element)));
    if (HAS(SWAP_OUT_2)) y = y.yx;
    return y;
}

void write_point(uint k, vec2 v, vec2 w) {
    uint element = k * out_span + out_unit;
    if (HAS(CUT_OUT) && element >= out_count) return;
    vec2 y = finished(element, v, w);
    uint at = to + k * out_step;
    if (HAS(PAIR_OUT)) {
        gn_store(1, at, floatBitsToUint(y.x));
        gn_store(1, at + out_each, floatBitsToUint(y.y));
    } else if (HAS(REAL_OUT)) {
        gn_store(1, at, floatBitsToUint(y.x));
    } else {
        gn_store2(1, at, floatBitsToUint(y));
    }
}

// The imaginary part of a real number of the spectrum: NaN if that is.
float imaginary(float re, float none) {
    return (floatBitsToUint(re) & 0x7fffffffu) > 0x7f800000u ? re : none;
}

// Number k of a line out of the spectrum of pairs of real numbers: a is there, b at its mirror image. `first`:
// k may be 0.
void write_folded(uint k, vec2 a, vec2 b, const bool first) {
    uint element = k * out_span + out_unit, at = to + k * out_step;
    vec2 w = fold_turn(4, element);
    precise vec2 e = vec2(a.x + b.x, a.y - b.y), o = times(vec2(a.x - b.x, a.y + b.y), w);
    precise vec2 y = vec2(e.x + o.y, e.y - o.x) * (0.5 * scale);
    if (first && element == 0u) {
        precise vec2 ends = vec2(a.x + a.y, a.x - a.y) * scale;
        y = vec2(ends.x, imaginary(ends.x, 0.0));
        gn_store2(1, at + full * out_each, floatBitsToUint(vec2(ends.y, y.y)));
    }
    if (HAS(CONJ)) y.y = -y.y;
    gn_store2(1, at, floatBitsToUint(y));
}

// The slot and the number there that are the mirror image of number k of a slot.
uvec2 mirrored(uint slot, uint k) {
    uint units = out_span, few = LINES / 2u;
    if (units == 1u || out_unit == 0u) return uvec2(slot, k == 0u ? 0u : POINTS - k);
    if (out_unit * 2u == units) return uvec2(slot, POINTS - 1u - k);
    return uvec2(slot < few ? slot + few : slot - few, POINTS - 1u - k);
}

#ifdef GN_WGSL // which has no such constant
#define NAN_BITS (0x7fc00000u ^ gn_zero)
#else
#define NAN_BITS 0x7fc00000u
#endif
// Whether a part of it is infinite or NaN.
bool not_finite(vec2 a) {
    uvec2 u = floatBitsToUint(a) & 0x7f800000u;
    return max(u.x, u.y) == 0x7f800000u;
}
// The results of a first butterfly of r points, x[o] and those that follow: NaN if one of the points is infinite or NaN,
// which the sum, x[o], shows and then every other one. So the line becomes NaN throughout, whatever the way.
#define SPOIL(o, r)                                                                                \
    if (not_finite(x[o])) {                                                                          \
        bool all_of_them = true;                                                                   \
        [[unroll]] for (uint q = 1u; q < (r); q++) all_of_them = all_of_them && not_finite(x[(o) + q]); \
        [[unroll]] for (uint q = 0u; q < (r); q++)                                                 \
            if (all_of_them) x[(o) + q] = uintBitsToFloat(uvec2(NAN_BITS));                       \
    }

void bf2(const uint a, const uint b) {
    vec2 t = x[a];
    x[a] = t + x[b];
    x[b] = t - x[b];
}

// Of the four elements a, b, c, d in natural order.
void bf4(const uint a, const uint b, const uint c, const uint d) {
    vec2 s = x[a] + x[c], t = x[a] - x[c], u = x[b] + x[d], v = turned(x[b] - x[d]);
    x[a] = s + u;
    x[b] = t + v;
    x[c] = s - u;
    x[d] = t - v;
}

const float EIGHTH = 0.70710678118654752440;
vec2 eighth(vec2 a) { // exp(-pi i / 4)
    precise vec2 y = EIGHTH * vec2(a.x + a.y, a.y - a.x);
    return y;
}
vec2 eighth_3(vec2 a) { // exp(-3 pi i / 4)
    precise vec2 y = EIGHTH * vec2(a.y - a.x, -a.x - a.y);
    return y;
}
void exchange(const uint a, const uint b) {
    vec2 t = x[a];
    x[a] = x[b];
    x[b] = t;
}

void bf8(const uint o) {
    bf4(o, o + 2, o + 4, o + 6);
    bf4(o + 1, o + 3, o + 5, o + 7);
    vec2 p = x[o + 3], q = x[o + 7], a = x[o + 2], b = x[o + 6];
    p = vec2(p.x + p.y, p.y - p.x);
    q = vec2(q.y - q.x, -q.x - q.y);
    vec2 c = turned(x[o + 5]), d = x[o + 4];
    bf2(o, o + 1);
    x[o + 4] = x[o + 1];
    x[o + 1] = fused(EIGHTH, p, a);
    x[o + 5] = fused(-EIGHTH, p, a);
    x[o + 2] = d + c;
    x[o + 3] = fused(EIGHTH, q, b);
    x[o + 7] = fused(-EIGHTH, q, b);
    x[o + 6] = d - c;
}

void bf16(const uint o) {
    bf4(o, o + 4, o + 8, o + 12);
    bf4(o + 1, o + 5, o + 9, o + 13);
    bf4(o + 2, o + 6, o + 10, o + 14);
    bf4(o + 3, o + 7, o + 11, o + 15);
    const vec2 w1 = vec2(0.92387953251128675613, -0.38268343236508977173);
    const vec2 w3 = vec2(0.38268343236508977173, -0.92387953251128675613);
    x[o + 5] = times(x[o + 5], w1);
    x[o + 6] = eighth(x[o + 6]);
    x[o + 7] = times(x[o + 7], w3);
    x[o + 9] = eighth(x[o + 9]);
    x[o + 10] = turned(x[o + 10]);
    x[o + 11] = eighth_3(x[o + 11]);
    x[o + 13] = times(x[o + 13], w3);
    x[o + 14] = eighth_3(x[o + 14]);
    x[o + 15] = -times(x[o + 15], w1);
    bf4(o, o + 1, o + 2, o + 3);
    bf4(o + 4, o + 5, o + 6, o + 7);
    bf4(o + 8, o + 9, o + 10, o + 11);
    bf4(o + 12, o + 13, o + 14, o + 15);
    exchange(o + 1, o + 4);
    exchange(o + 2, o + 8);
    exchange(o + 3, o + 12);
    exchange(o + 6, o + 9);
    exchange(o + 7, o + 13);
    exchange(o + 11, o + 14);
}

#ifdef GN_FFT_DEEP
// cos of pi i / 32
const float C64[17] = float[17](
    1.0, 0.99518472667219692873, 0.98078528040323044913, 0.95694033573220882438, 0.92387953251128675613,
    0.88192126434835505046, 0.83146961230254523708, 0.77301045336273693381, EIGHTH, 0.63439328416364549822,
    0.55557023301960222474, 0.47139673682599764204, 0.38268343236508977173, 0.29028467725446236764,
    0.19509032201612826785, 0.09801714032956059428, 0.0);
vec2 turned_32(const uint e, vec2 a) { // exp(-2 pi i e / 32), e < 24
    if (e == 0u) return a;
    if (e == 4u) return eighth(a);
    if (e == 8u) return turned(a);
    if (e == 12u) return eighth_3(a);
    if (e < 8u) return times(a, vec2(C64[2u * e], -C64[16u - 2u * e]));
    if (e < 16u) return times(a, vec2(-C64[32u - 2u * e], -C64[2u * e - 16u]));
    return times(a, vec2(-C64[2u * e - 32u], C64[48u - 2u * e]));
}
void bf32(const uint o) {
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        bf4(o + i, o + i + 8u, o + i + 16u, o + i + 24u);
        [[unroll]] for (uint k = 1u; k < 4u; k++) x[o + i + 8u * k] = turned_32(i * k, x[o + i + 8u * k]);
    }
    vec2 y[32];
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        bf8(o + 8u * k);
        [[unroll]] for (uint i = 0u; i < 8u; i++) y[k + 4u * i] = x[o + 8u * k + i];
    }
    [[unroll]] for (uint i = 0u; i < 32u; i++) x[o + i] = y[i];
}
#endif

#if GN_FFT_RADICES >= 5
void bf3(const uint a, const uint b, const uint c) {
    precise vec2 t = x[b] + x[c], d = 0.86602540378443864676 * turned(x[b] - x[c]), m = fused(-0.5, t, x[a]);
    x[a] += t;
    x[b] = m + d;
    x[c] = m - d;
}

void bf5(const uint a, const uint b, const uint c, const uint e, const uint f) {
    vec2 t1 = x[b] + x[f], d1 = turned(x[b] - x[f]), t2 = x[c] + x[e], d2 = turned(x[c] - x[e]);
    vec2 t = t1 + t2, u = t1 - t2, m = fused(-0.25, t, x[a]);
    precise vec2 h1 = 0.95105651629515357212 * d1, h2 = 0.58778525229247312917 * d1;
    h1 = fused(0.58778525229247312917, d2, h1);
    h2 = fused(-0.95105651629515357212, d2, h2);
    x[a] += t;
    vec2 p = fused(0.55901699437494742410, u, m), q = fused(-0.55901699437494742410, u, m);
    x[b] = p + h1;
    x[f] = p - h1;
    x[c] = q + h2;
    x[e] = q - h2;
}

// 6 and 10 points by Good's mapping, without turns: number (3 a + 2 b) % 6 of a, b to (3 a + 4 b) % 6, and
// (5 a + 2 b) % 10 to (5 a + 6 b) % 10.
void bf6(const uint o) {
    bf2(o, o + 3);
    bf2(o + 2, o + 5);
    bf2(o + 4, o + 1);
    bf3(o, o + 2, o + 4);
    bf3(o + 3, o + 5, o + 1);
    exchange(o + 2, o + 4);
    exchange(o + 1, o + 5);
}

void bf10(const uint o) {
    bf2(o, o + 5);
    bf2(o + 2, o + 7);
    bf2(o + 4, o + 9);
    bf2(o + 6, o + 1);
    bf2(o + 8, o + 3);
    bf5(o, o + 2, o + 4, o + 6, o + 8);
    bf5(o + 5, o + 7, o + 9, o + 1, o + 3);
    vec2 a = x[o + 2], b = x[o + 4], c = x[o + 6], d = x[o + 8];
    x[o + 6] = a;
    x[o + 2] = b;
    x[o + 8] = c;
    x[o + 4] = d;
    a = x[o + 7];
    b = x[o + 9];
    c = x[o + 1];
    d = x[o + 3];
    x[o + 1] = a;
    x[o + 7] = b;
    x[o + 3] = c;
    x[o + 9] = d;
}

void bf9(const uint o) {
    bf3(o, o + 3, o + 6);
    bf3(o + 1, o + 4, o + 7);
    bf3(o + 2, o + 5, o + 8);
    const vec2 w1 = vec2(0.76604444311897803520, -0.64278760968653932632);
    const vec2 w2 = vec2(0.17364817766693034885, -0.98480775301220805937);
    const vec2 w4 = vec2(-0.93969262078590838405, -0.34202014332566873304);
    x[o + 4] = times(x[o + 4], w1);
    x[o + 7] = times(x[o + 7], w2);
    x[o + 5] = times(x[o + 5], w2);
    x[o + 8] = times(x[o + 8], w4);
    bf3(o, o + 1, o + 2);
    bf3(o + 3, o + 4, o + 5);
    bf3(o + 6, o + 7, o + 8);
    exchange(o + 1, o + 3);
    exchange(o + 2, o + 6);
    exchange(o + 5, o + 7);
}

#endif

#if GN_FFT_RADICES >= 13
// 7, 11 and 13 points, c[i] and s[i] the cosine and sine of 2 pi i / p. Equal points give exact zeros.
#define ODD(NAME, P, H, C, S)                                                                      \
    void NAME(const uint o) {                                                                      \
        vec2 t[H + 1], d[H + 1];                                                                   \
        [[unroll]] for (uint i = 1u; i <= H; i++) {                                                \
            t[i] = x[o + i] + x[o + P - i];                                                        \
            d[i] = turned(x[o + i] - x[o + P - i]);                                                \
        }                                                                                          \
        vec2 sum = x[o], base = fused(-0.5, t[H], x[o]);                                           \
        [[unroll]] for (uint i = 1u; i <= H; i++) sum += t[i];                                     \
        [[unroll]] for (uint i = 1u; i < H; i++) t[i] -= t[H];                                     \
        x[o] = sum;                                                                                \
        [[unroll]] for (uint k = 1u; k <= H; k++) {                                                \
            vec2 a = base, b = vec2(0.0);                                                          \
            [[unroll]] for (uint i = 1u; i <= H; i++) {                                            \
                uint e = i * k % P;                                                                \
                if (i < H) a = fused(C[e], t[i], a);                                               \
                b = fused(S[e], d[i], b);                                                          \
            }                                                                                      \
            x[o + k] = a + b;                                                                      \
            x[o + P - k] = a - b;                                                                  \
        }                                                                                          \
    }
const float C7[7] = float[7](
    1.0, 0.62348980185873353053, -0.22252093395631440429, -0.90096886790241912624,
    -0.90096886790241912624, -0.22252093395631440429, 0.62348980185873353053);
const float S7[7] = float[7](
    0.0, 0.78183148246802980871, 0.97492791218182360702, 0.43388373911755812048,
    -0.43388373911755812048, -0.97492791218182360702, -0.78183148246802980871);
const float C11[11] = float[11](
    1.0, 0.84125353283118116886, 0.41541501300188642553, -0.14231483827328514044,
    -0.65486073394528506406, -0.95949297361449738989, -0.95949297361449738989,
    -0.65486073394528506406, -0.14231483827328514044, 0.41541501300188642553,
    0.84125353283118116886);
const float S11[11] = float[11](
    0.0, 0.54064081745559758211, 0.90963199535451837141, 0.98982144188093273238,
    0.75574957435425828377, 0.28173255684142969771, -0.28173255684142969771,
    -0.75574957435425828377, -0.98982144188093273238, -0.90963199535451837141,
    -0.54064081745559758211);
const float C13[13] = float[13](
    1.0, 0.8854560256532098959, 0.56806474673115580251, 0.12053668025532305335,
    -0.35460488704253562597, -0.74851074817110109863, -0.97094181742605202716,
    -0.97094181742605202716, -0.74851074817110109863, -0.35460488704253562597,
    0.12053668025532305335, 0.56806474673115580251, 0.8854560256532098959);
const float S13[13] = float[13](
    0.0, 0.46472317204376854566, 0.82298386589365639458, 0.9927088740980539928,
    0.93501624268541482344, 0.66312265824079520238, 0.23931566428755776715,
    -0.23931566428755776715, -0.66312265824079520238, -0.93501624268541482344,
    -0.9927088740980539928, -0.82298386589365639458, -0.46472317204376854566);
ODD(bf7, 7u, 3u, C7, S7)
ODD(bf11, 11u, 5u, C11, S11)
ODD(bf13, 13u, 6u, C13, S13)
#endif
