// What the kernels of the Fourier transform share: flags, parameters, how a point is read and written, and
// the butterflies. Says FLAGS, LINES and POINTS before it is included. With GN_FFT_DOUBLE numbers are of float64.
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 5
#define GN_READONLY 29 /* all but buffer 1 */
#include "gn.glsl"

#ifdef GN_FFT_DOUBLE
#define real double
#define complex dvec2
#define NUMBER_SHIFT 4u // bytes of a complex number, as a power of two
#define gn_words_number gn_words4
#define gn_const_number gn_const4
#define gn_load_number gn_load4
#define gn_fetch_number gn_fetch4
#define gn_store_number gn_store4
#define gn_load_real gn_load2
#define gn_store_real gn_store2
#define real_of(v) packDouble2x32(v)
#define real_words_of(v) unpackDouble2x32(v)
#define GN_PARAM_REAL(i) packDouble2x32(uvec2(GN_PARAM(i), GN_PARAM((i) + 1)))
complex number_of(uvec4 v) { return complex(packDouble2x32(v.xy), packDouble2x32(v.zw)); }
uvec4 words_of(complex v) { return uvec4(unpackDouble2x32(v.x), unpackDouble2x32(v.y)); }
#else
#define real float
#define complex vec2
#define NUMBER_SHIFT 3u
#define gn_words_number gn_words2
#define gn_const_number gn_const2
#define gn_load_number gn_load2
#define gn_fetch_number gn_fetch2
#define gn_store_number gn_store2
#define gn_load_real gn_load
#define gn_store_real gn_store
#define real_of(v) uintBitsToFloat(v)
#define real_words_of(v) floatBitsToUint(v)
#define number_of(v) uintBitsToFloat(v)
#define words_of(v) floatBitsToUint(v)
#define GN_PARAM_REAL(i) GN_PARAM_F(i)
#endif

// 0 operand, 1 result, 2 the turns between the stages, 3 and 4 factors of the operand and of the result.

#define HAS(flag) ((FLAGS & GNI_F_FFT_##flag) != 0)

// Words of the parameters.
#define P_LINES GN_PARAM(GNI_P_FFT_LINES)
#define P_IN GN_PARAM(GNI_P_FFT_IN)
#define P_IN_STEP GN_PARAM(GNI_P_FFT_IN_STEP)
#define P_IN_COUNT GN_PARAM(GNI_P_FFT_IN_COUNT)
#define P_OUT GN_PARAM(GNI_P_FFT_OUT)
#define P_OUT_STEP GN_PARAM(GNI_P_FFT_OUT_STEP)
#define P_OUT_COUNT GN_PARAM(GNI_P_FFT_OUT_COUNT)
#define P_SCALE GN_PARAM_REAL(GNI_P_FFT_SCALE)
#define P_SPAN GN_PARAM(GNI_P_FFT_SPAN)
#define P_OUT_SPAN GN_PARAM(GNI_P_FFT_OUT_SPAN)
#define P_TWIST GN_PARAM(GNI_P_FFT_TWIST)
#define P_FULL GN_PARAM(GNI_P_FFT_FULL)
#define P_RANK GN_PARAM(GNI_P_FFT_RANK)
#define P_TWIST_INVERSE GN_PARAM_REAL(GNI_P_FFT_TWIST_INVERSE)
#define P_TWIST_REST GN_PARAM_F(GNI_P_FFT_TWIST_INVERSE + 1)
#define P_FOLD_INVERSE GN_PARAM_REAL(GNI_P_FFT_FOLD_INVERSE)
#define P_FOLD_REST GN_PARAM_F(GNI_P_FFT_FOLD_INVERSE + 1)
#define P_IN_EACH GN_PARAM(GNI_P_FFT_IN_EACH)
#define P_OUT_EACH GN_PARAM(GNI_P_FFT_OUT_EACH)

#ifndef REGISTERS
#define REGISTERS 20
#endif
complex x[REGISTERS];

complex times(complex a, complex b) {
    precise complex y = complex(a.x * b.x, a.x * b.y);
    y = complex(fma(-a.y, b.y, y.x), fma(a.y, b.x, y.y));
    return y;
}
complex fused(real s, complex a, complex b) {
    precise complex y = complex(fma(s, a.x, b.x), fma(s, a.y, b.y));
    return y;
}
complex turned(complex a) { return complex(a.y, -a.x); } // times -i

// exp(-2 pi i e / n), e < n < 2^30: the angle in quarter turns, reduced exactly, times pi / 2. 1 / n is `inverse` and,
// for float32, `rest`.
#ifdef GN_FFT_DOUBLE
complex turn(uint e, uint n, double inverse, float rest) {
    uint quarter = uint(double(e) * inverse * 4.0 + 0.5);
    precise double t = double(int(4u * e - quarter * n)) * inverse * 1.57079632679489661923lf, z = t * t;
    precise double s = fma(z, -1.0lf / 1307674368000.0lf, 1.0lf / 6227020800.0lf); // the series
    precise double c = fma(z, 1.0lf / 20922789888000.0lf, -1.0lf / 87178291200.0lf);
    s = fma(z, s, -1.0lf / 39916800.0lf);
    c = fma(z, c, 1.0lf / 479001600.0lf);
    s = fma(z, s, 1.0lf / 362880.0lf);
    c = fma(z, c, -1.0lf / 3628800.0lf);
    s = fma(z, s, -1.0lf / 5040.0lf);
    c = fma(z, c, 1.0lf / 40320.0lf);
    s = fma(z, s, 1.0lf / 120.0lf);
    c = fma(z, c, -1.0lf / 720.0lf);
    s = fma(z, s, -1.0lf / 6.0lf);
    c = fma(z, c, 1.0lf / 24.0lf);
    s = fma(t, z * s, t);
    c = fma(z, fma(z, c, -0.5lf), 1.0lf);
    complex y = (quarter & 1u) != 0u ? complex(-s, -c) : complex(c, -s);
    return (quarter & 2u) != 0u ? -y : y;
}
#else
complex turn(uint e, uint n, float inverse, float rest) {
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
    complex y = (quarter & 1u) != 0u ? complex(-ss, -cc) : complex(cc, -ss);
    return (quarter & 2u) != 0u ? -y : y;
}
#endif

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
real scale;
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

complex read_complex(uint at) { return number_of(gn_load_number(0, at)); }

// Element e of a sequence of which one half is there; `from` is its start, whatever the line.
complex read_half(uint e, uint n) {
    uint mirror = e * 2u > n ? n - e : e;
    complex v = mirror < P_IN_COUNT ? read_complex(from + mirror * P_IN_STEP) : complex(0.0);
    if (mirror == 0u || mirror * 2u == n) v.y = 0.0;
    if (mirror != e) v.y = -v.y;
    return v;
}

// The turn of number b + rest of a line between two passes, b below the points over the last radix and rest
// a multiple of them: as a product, because a kernel has one of each for many points.
complex twist_part(uint e) { return turn(unit * e, P_TWIST, P_TWIST_INVERSE, P_TWIST_REST); }
complex twist(uint b, uint rest) { return times(twist_part(b), twist_part(rest)); }

// exp(-pi i element / full)
complex fold_turn(const uint buffer_number, uint element) {
    if (HAS(FOLD_TABLE)) return number_of(gn_fetch_number(buffer_number, element));
    return turn(element, 2u * P_FULL, P_FOLD_INVERSE, P_FOLD_REST);
}

// Of the first half, whose ends are real.
complex read_spectrum(uint e) {
    complex v = e < P_IN_COUNT ? read_complex(from + e * P_IN_STEP) : complex(0.0);
    return complex(v.x, e == 0u || e == P_FULL ? 0.0 : v.y);
}

complex read_point(uint j) {
    uint element = j * P_SPAN + unit, at = from + j * P_IN_STEP;
    complex v = complex(0.0);
    if (HAS(HALF_IN)) {
        v = read_half(element, P_FULL);
    } else if (HAS(FOLD_IN)) {
        complex a = read_spectrum(element), b = read_spectrum(P_FULL - element);
        if (HAS(CONJ)) a.y = -a.y, b.y = -b.y;
        complex w = fold_turn(3, element);
        precise complex e = complex(a.x + b.x, a.y - b.y), o = times(complex(a.x - b.x, a.y + b.y), complex(w.x, -w.y));
        e = complex(e.x - o.y, e.y + o.x);
        v = e;
    } else if (HAS(PAIR_IN)) {
        if (2u * element < P_IN_COUNT) v.x = real_of(gn_load_real(0, at));
        if (2u * element + 1u < P_IN_COUNT) v.y = real_of(gn_load_real(0, at + P_IN_EACH));
    } else if (!HAS(CUT_IN) || element < P_IN_COUNT) {
        v = HAS(REAL_IN) ? complex(real_of(gn_load_real(0, at)), 0.0) : read_complex(at);
    }
    if (HAS(SWAP_IN)) v = v.yx;
    if (HAS(FACTOR_IN)) v = element < P_FULL ? times(v, number_of(gn_fetch_number(3, element))) : complex(0.0);
    if (HAS(SWAP_IN_2)) v = v.yx;
    return v;
}

// The number v of point k of a line to where it belongs; w is its turn if there is a twist.
complex finished(uint element, complex v, complex w) {
    precise complex y;
    if (HAS(TWIST)) y = times(v, w); // never scaled
    else y = v * scale;
    if (HAS(SWAP_OUT)) y = y.yx;
    if (HAS(FACTOR_OUT)) y = times(y, number_of(gn_fetch_number(4, element)));
    if (HAS(SWAP_OUT_2)) y = y.yx;
    return y;
}

void write_point(uint k, complex v, complex w) {
    uint element = k * out_span + out_unit;
    if (HAS(CUT_OUT) && element >= out_count) return;
    complex y = finished(element, v, w);
    uint at = to + k * out_step;
    if (HAS(PAIR_OUT)) {
        gn_store_real(1, at, real_words_of(y.x));
        gn_store_real(1, at + out_each, real_words_of(y.y));
    } else if (HAS(REAL_OUT)) {
        gn_store_real(1, at, real_words_of(y.x));
    } else {
        gn_store_number(1, at, words_of(y));
    }
}

// The imaginary part of a real number of the spectrum: NaN if that is.
real imaginary(real re, real none) {
#ifdef GN_FFT_DOUBLE
    uvec2 u = unpackDouble2x32(re);
    return (u.y & 0x7fffffffu) + (u.x != 0u ? 1u : 0u) > 0x7ff00000u ? re : none;
#else
    return (floatBitsToUint(re) & 0x7fffffffu) > 0x7f800000u ? re : none;
#endif
}

// Number k of a line out of the spectrum of pairs of real numbers: a is there, b at its mirror image. `first`:
// k may be 0.
void write_folded(uint k, complex a, complex b, const bool first) {
    uint element = k * out_span + out_unit, at = to + k * out_step;
    complex w = fold_turn(4, element);
    precise complex e = complex(a.x + b.x, a.y - b.y), o = times(complex(a.x - b.x, a.y + b.y), w);
    precise complex y = complex(e.x + o.y, e.y - o.x) * (0.5 * scale);
    if (first && element == 0u) {
        precise complex ends = complex(a.x + a.y, a.x - a.y) * scale;
        y = complex(ends.x, imaginary(ends.x, 0.0));
        gn_store_number(1, at + full * out_each, words_of(complex(ends.y, y.y)));
    }
    if (HAS(CONJ)) y.y = -y.y;
    gn_store_number(1, at, words_of(y));
}

// The slot and the number there that are the mirror image of number k of a slot.
uvec2 mirrored(uint slot, uint k) {
    uint units = out_span, few = LINES / 2u;
    if (units == 1u || out_unit == 0u) return uvec2(slot, k == 0u ? 0u : POINTS - k);
    if (out_unit * 2u == units) return uvec2(slot, POINTS - 1u - k);
    return uvec2(slot < few ? slot + few : slot - few, POINTS - 1u - k);
}

#ifdef GN_FFT_DOUBLE
#define NAN_NUMBER number_of(uvec2(0u, 0x7ff80000u).xyxy)
#define HIGH_WORDS(v) words_of(v).yw
const uint EXPONENT = 0x7ff00000u;
#else
#ifdef GN_WGSL // which has no such constant
#define NAN_NUMBER uintBitsToFloat(uvec2(0x7fc00000u ^ gn_zero))
#else
#define NAN_NUMBER uintBitsToFloat(uvec2(0x7fc00000u))
#endif
#define HIGH_WORDS(v) words_of(v)
const uint EXPONENT = 0x7f800000u;
#endif
// Whether a part of it is infinite or NaN.
bool not_finite(complex a) {
    uvec2 u = HIGH_WORDS(a) & EXPONENT;
    return max(u.x, u.y) == EXPONENT;
}
// The results of a first butterfly of r points, x[o] and those that follow: NaN if one of the points is infinite or NaN,
// which the sum, x[o], shows and then every other one. So the line becomes NaN throughout, whatever the way.
#define SPOIL(o, r)                                                                                \
    if (not_finite(x[o])) {                                                                          \
        bool all_of_them = true;                                                                   \
        [[unroll]] for (uint q = 1u; q < (r); q++) all_of_them = all_of_them && not_finite(x[(o) + q]); \
        [[unroll]] for (uint q = 0u; q < (r); q++)                                                 \
            if (all_of_them) x[(o) + q] = NAN_NUMBER;                       \
    }

void bf2(const uint a, const uint b) {
    complex t = x[a];
    x[a] = t + x[b];
    x[b] = t - x[b];
}

// Of the four elements a, b, c, d in natural order.
void bf4(const uint a, const uint b, const uint c, const uint d) {
    complex s = x[a] + x[c], t = x[a] - x[c], u = x[b] + x[d], v = turned(x[b] - x[d]);
    x[a] = s + u;
    x[b] = t + v;
    x[c] = s - u;
    x[d] = t - v;
}

const real EIGHTH = real(0.70710678118654752440lf);
complex eighth(complex a) { // exp(-pi i / 4)
    precise complex y = EIGHTH * complex(a.x + a.y, a.y - a.x);
    return y;
}
complex eighth_3(complex a) { // exp(-3 pi i / 4)
    precise complex y = EIGHTH * complex(a.y - a.x, -a.x - a.y);
    return y;
}
void exchange(const uint a, const uint b) {
    complex t = x[a];
    x[a] = x[b];
    x[b] = t;
}

void bf8(const uint o) {
    bf4(o, o + 2, o + 4, o + 6);
    bf4(o + 1, o + 3, o + 5, o + 7);
    complex p = x[o + 3], q = x[o + 7], a = x[o + 2], b = x[o + 6];
    p = complex(p.x + p.y, p.y - p.x);
    q = complex(q.y - q.x, -q.x - q.y);
    complex c = turned(x[o + 5]), d = x[o + 4];
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
    const complex w1 = complex(real(0.92387953251128675613lf), -real(0.38268343236508977173lf));
    const complex w3 = complex(real(0.38268343236508977173lf), -real(0.92387953251128675613lf));
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
const real C64[17] = real[17](
    1.0, real(0.99518472667219692873lf), real(0.98078528040323044913lf), real(0.95694033573220882438lf), real(0.92387953251128675613lf),
    real(0.88192126434835505046lf), real(0.83146961230254523708lf), real(0.77301045336273693381lf), EIGHTH, real(0.63439328416364549822lf),
    real(0.55557023301960222474lf), real(0.47139673682599764204lf), real(0.38268343236508977173lf), real(0.29028467725446236764lf),
    real(0.19509032201612826785lf), real(0.09801714032956059428lf), 0.0);
complex turned_32(const uint e, complex a) { // exp(-2 pi i e / 32), e < 24
    if (e == 0u) return a;
    if (e == 4u) return eighth(a);
    if (e == 8u) return turned(a);
    if (e == 12u) return eighth_3(a);
    if (e < 8u) return times(a, complex(C64[2u * e], -C64[16u - 2u * e]));
    if (e < 16u) return times(a, complex(-C64[32u - 2u * e], -C64[2u * e - 16u]));
    return times(a, complex(-C64[2u * e - 32u], C64[48u - 2u * e]));
}
void bf32(const uint o) {
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        bf4(o + i, o + i + 8u, o + i + 16u, o + i + 24u);
        [[unroll]] for (uint k = 1u; k < 4u; k++) x[o + i + 8u * k] = turned_32(i * k, x[o + i + 8u * k]);
    }
    complex y[32];
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        bf8(o + 8u * k);
        [[unroll]] for (uint i = 0u; i < 8u; i++) y[k + 4u * i] = x[o + 8u * k + i];
    }
    [[unroll]] for (uint i = 0u; i < 32u; i++) x[o + i] = y[i];
}
#endif

#if GN_FFT_RADICES >= 5
void bf3(const uint a, const uint b, const uint c) {
    precise complex t = x[b] + x[c], d = real(0.86602540378443864676lf) * turned(x[b] - x[c]), m = fused(-0.5, t, x[a]);
    x[a] += t;
    x[b] = m + d;
    x[c] = m - d;
}

void bf5(const uint a, const uint b, const uint c, const uint e, const uint f) {
    complex t1 = x[b] + x[f], d1 = turned(x[b] - x[f]), t2 = x[c] + x[e], d2 = turned(x[c] - x[e]);
    complex t = t1 + t2, u = t1 - t2, m = fused(-0.25, t, x[a]);
    precise complex h1 = real(0.95105651629515357212lf) * d1, h2 = real(0.58778525229247312917lf) * d1;
    h1 = fused(real(0.58778525229247312917lf), d2, h1);
    h2 = fused(-real(0.95105651629515357212lf), d2, h2);
    x[a] += t;
    complex p = fused(real(0.55901699437494742410lf), u, m), q = fused(-real(0.55901699437494742410lf), u, m);
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
    complex a = x[o + 2], b = x[o + 4], c = x[o + 6], d = x[o + 8];
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
    const complex w1 = complex(real(0.76604444311897803520lf), -real(0.64278760968653932632lf));
    const complex w2 = complex(real(0.17364817766693034885lf), -real(0.98480775301220805937lf));
    const complex w4 = complex(-real(0.93969262078590838405lf), -real(0.34202014332566873304lf));
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
        complex t[H + 1], d[H + 1];                                                                   \
        [[unroll]] for (uint i = 1u; i <= H; i++) {                                                \
            t[i] = x[o + i] + x[o + P - i];                                                        \
            d[i] = turned(x[o + i] - x[o + P - i]);                                                \
        }                                                                                          \
        complex sum = x[o], base = fused(-0.5, t[H], x[o]);                                           \
        [[unroll]] for (uint i = 1u; i <= H; i++) sum += t[i];                                     \
        [[unroll]] for (uint i = 1u; i < H; i++) t[i] -= t[H];                                     \
        x[o] = sum;                                                                                \
        [[unroll]] for (uint k = 1u; k <= H; k++) {                                                \
            complex a = base, b = complex(0.0);                                                          \
            [[unroll]] for (uint i = 1u; i <= H; i++) {                                            \
                uint e = i * k % P;                                                                \
                if (i < H) a = fused(C[e], t[i], a);                                               \
                b = fused(S[e], d[i], b);                                                          \
            }                                                                                      \
            x[o + k] = a + b;                                                                      \
            x[o + P - k] = a - b;                                                                  \
        }                                                                                          \
    }
const real C7[7] = real[7](
    1.0, real(0.62348980185873353053lf), -real(0.22252093395631440429lf), -real(0.90096886790241912624lf),
    -real(0.90096886790241912624lf), -real(0.22252093395631440429lf), real(0.62348980185873353053lf));
const real S7[7] = real[7](
    0.0, real(0.78183148246802980871lf), real(0.97492791218182360702lf), real(0.43388373911755812048lf),
    -real(0.43388373911755812048lf), -real(0.97492791218182360702lf), -real(0.78183148246802980871lf));
const real C11[11] = real[11](
    1.0, real(0.84125353283118116886lf), real(0.41541501300188642553lf), -real(0.14231483827328514044lf),
    -real(0.65486073394528506406lf), -real(0.95949297361449738989lf), -real(0.95949297361449738989lf),
    -real(0.65486073394528506406lf), -real(0.14231483827328514044lf), real(0.41541501300188642553lf),
    real(0.84125353283118116886lf));
const real S11[11] = real[11](
    0.0, real(0.54064081745559758211lf), real(0.90963199535451837141lf), real(0.98982144188093273238lf),
    real(0.75574957435425828377lf), real(0.28173255684142969771lf), -real(0.28173255684142969771lf),
    -real(0.75574957435425828377lf), -real(0.98982144188093273238lf), -real(0.90963199535451837141lf),
    -real(0.54064081745559758211lf));
const real C13[13] = real[13](
    1.0, real(0.8854560256532098959lf), real(0.56806474673115580251lf), real(0.12053668025532305335lf),
    -real(0.35460488704253562597lf), -real(0.74851074817110109863lf), -real(0.97094181742605202716lf),
    -real(0.97094181742605202716lf), -real(0.74851074817110109863lf), -real(0.35460488704253562597lf),
    real(0.12053668025532305335lf), real(0.56806474673115580251lf), real(0.8854560256532098959lf));
const real S13[13] = real[13](
    0.0, real(0.46472317204376854566lf), real(0.82298386589365639458lf), real(0.9927088740980539928lf),
    real(0.93501624268541482344lf), real(0.66312265824079520238lf), real(0.23931566428755776715lf),
    -real(0.23931566428755776715lf), -real(0.66312265824079520238lf), -real(0.93501624268541482344lf),
    -real(0.9927088740980539928lf), -real(0.82298386589365639458lf), -real(0.46472317204376854566lf));
ODD(bf7, 7u, 3u, C7, S7)
ODD(bf11, 11u, 5u, C11, S11)
ODD(bf13, 13u, 6u, C13, S13)
#endif
