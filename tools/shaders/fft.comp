// One pass of a Fourier transform: POINTS of each line, LINES lines in one workgroup, by Stockham's stages;
// longer transforms are several passes. Room `fft vk` says which.
//
// GN_FFT_ANY: the radices are parameters, one pipeline does every length. Otherwise they are
// specialisation constants: an invocation keeps its points in registers, and shared memory only exchanges
// them between stages. Both do the same arithmetic, so that their results are the same bits.
// GN_FFT_RADICES leaves out radices with prime factors above it, which drivers compile for long.
// GN_FFT_SPLIT exchanges real and imaginary parts one after the other, in half the memory: more workgroups fit.
//! variant fft_any_1k -DGN_FFT_SHARED=1024 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=13 -DGN_FFT_ANY
//! variant fft_any_2k -DGN_FFT_SHARED=2048 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=13 -DGN_FFT_ANY
//! variant fft_any_3k -DGN_FFT_SHARED=3072 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=13 -DGN_FFT_ANY
//! variant fft_two_64 -DGN_FFT_SHARED=1024 -DGN_FFT_THREADS=64 -DGN_FFT_RADICES=2
//! variant fft_two_128 -DGN_FFT_SHARED=2048 -DGN_FFT_THREADS=128 -DGN_FFT_RADICES=2
//! variant fft_two_256 -DGN_FFT_SHARED=4096 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=2 -DGN_FFT_SPLIT
//! variant fft_two_512 -DGN_FFT_SHARED=8192 -DGN_FFT_THREADS=512 -DGN_FFT_RADICES=2 -DGN_FFT_SPLIT
//! variant fft_five_256 -DGN_FFT_SHARED=4096 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=5 -DGN_FFT_SPLIT
//! variant fft_five_512 -DGN_FFT_SHARED=8192 -DGN_FFT_THREADS=512 -DGN_FFT_RADICES=5 -DGN_FFT_SPLIT
//! variant fft_all_256 -DGN_FFT_SHARED=4096 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=13 -DGN_FFT_SPLIT
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 5
#define GN_READONLY 29 /* all but buffer 1 */
#include "gn.glsl"

// 0 operand, 1 result, 2 the turns between the stages, 3 and 4 factors of the operand and of the result.
layout(local_size_x = GN_FFT_THREADS) in;
#ifdef GN_FFT_ANY
layout(constant_id = 0) const uint FIXED = 0;   // the flags; its highest bit: they are a parameter
layout(constant_id = 1) const uint RADICES = 0; // bit r: radix r occurs
#define FLAGS ((FIXED & 0x80000000u) != 0u ? GN_PARAM(13) : FIXED)
#define LINES GN_PARAM(14) /* in a workgroup */
#define POINTS GN_PARAM(15)
#define P_RADIX 16 /* first applied first, 1 from the last one on */
#else
layout(constant_id = 0) const uint RADIX0 = 1; // applied first
layout(constant_id = 1) const uint RADIX1 = 1;
layout(constant_id = 2) const uint RADIX2 = 1;
layout(constant_id = 3) const uint RADIX3 = 1;
layout(constant_id = 4) const uint LINES = 1;
layout(constant_id = 5) const uint TEAM = 1; // invocations of a line
layout(constant_id = 6) const uint FLAGS = 0;
const uint POINTS = RADIX0 * RADIX1 * RADIX2 * RADIX3;
#endif

const uint REAL_IN = 1;    // the operand has no imaginary parts
const uint HALF_IN = 2;    // it is half a Hermitian sequence
const uint REAL_OUT = 4;   // the result has no imaginary parts
const uint FACTOR_IN = 8;  // times buffer 3
const uint FACTOR_OUT = 16;
const uint TWIST = 32;
const uint SWAP_IN = 64; // exchange the parts: before the factor is applied to the operand,
const uint SWAP_IN_2 = 128;  // after that,
const uint SWAP_OUT = 256;   // before the factor is applied to the result,
const uint SWAP_OUT_2 = 512; // and after that
const uint ACROSS_IN = 1024; // neighbouring invocations read neighbouring lines, not points
const uint ACROSS_OUT = 2048;
const uint CUT_IN = 4096; // some elements are beyond the count
const uint CUT_OUT = 8192;
const uint PAIR_IN = 16384; // real and imaginary part are two elements of a real array
const uint PAIR_OUT = 32768;
const uint FOLD_IN = 65536;   // from the half spectrum of real numbers to that of their pairs,
const uint FOLD_OUT = 131072; // and from that to this
const uint CONJ = 262144;     // of the half spectrum
#define HAS(flag) ((FLAGS & (flag)) != 0)

// Words of the parameters.
#define P_LINES GN_PARAM(0)
#define P_IN GN_PARAM(1)       // first element, step between points, elements that exist,
#define P_IN_STEP GN_PARAM(2)
#define P_IN_COUNT GN_PARAM(3)
#define P_OUT GN_PARAM(4)      // and the same for the result
#define P_OUT_STEP GN_PARAM(5)
#define P_OUT_COUNT GN_PARAM(6)
#define P_SCALE GN_PARAM_F(7)
#define P_SPAN GN_PARAM(8) // point j of a line is element j * span + unit of the operand,
#define P_OUT_SPAN GN_PARAM(9) // and of the result
#define P_TWIST GN_PARAM(10)   // points of the transform that this pass is a part of
#define P_FULL GN_PARAM(11)    // points of the whole transform
#define P_RANK GN_PARAM(12)
#define P_TWIST_INVERSE GN_PARAM_F(22) // 1 / twist in two parts
#define P_TWIST_REST GN_PARAM_F(23)
#define P_FOLD_INVERSE GN_PARAM_F(24) // 1 / (2 full)
#define P_FOLD_REST GN_PARAM_F(25)
#define P_IN_EACH GN_PARAM(26) // step between elements of a sequence
#define P_OUT_EACH GN_PARAM(27)
#define P_DIM 28 // size, step in the operand, in the result, unit, out unit: 5 words each

#ifdef GN_FFT_ANY
shared vec2 points[2 * GN_FFT_SHARED];
#elif defined(GN_FFT_SPLIT)
shared float points[GN_FFT_SHARED];
#else
shared vec2 points[GN_FFT_SHARED];
#endif
#define REGISTERS 20
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

// exp(-2 pi i e / n), e < n < 2^29: the angle in quarter turns, reduced exactly, times pi / 2.
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

// Where a line starts, and what it adds to the numbers of its points in the whole transform.
uint from, to, unit, out_unit;
bool inside;
void line_at(uint line) {
    inside = line < P_LINES;
    from = P_IN;
    to = P_OUT;
    unit = 0u;
    out_unit = 0u;
    uint rank = P_RANK;
    for (uint d = 0u; d < rank; d++) {
        uint word = P_DIM + 5u * d, size = GN_PARAM(word), at = line % size;
        line /= size;
        from += at * GN_PARAM(word + 1u);
        to += at * GN_PARAM(word + 2u);
        unit += at * GN_PARAM(word + 3u);
        out_unit += at * GN_PARAM(word + 4u);
    }
}

vec2 read_complex(uint at) { return uintBitsToFloat(gn_load2(0, at)); }

// Element e of a sequence of which one half is there; `from` is its start, whatever the line.
vec2 read_half(uint e, uint full) {
    uint mirror = e * 2u > full ? full - e : e;
    vec2 v = mirror < P_IN_COUNT ? read_complex(from + mirror * P_IN_STEP) : vec2(0.0);
    if (mirror == 0u || mirror * 2u == full) v.y = 0.0;
    if (mirror != e) v.y = -v.y;
    return v;
}

vec2 read_point(uint j) {
    uint element = j * P_SPAN + unit, at = from + j * P_IN_STEP;
    vec2 v = vec2(0.0);
    if (HAS(HALF_IN)) {
        v = read_half(element, P_FULL);
    } else if (HAS(FOLD_IN)) {
        uint full = P_FULL;
        vec2 a = read_half(element, 2u * full), b = read_half(full - element, 2u * full);
        if (HAS(CONJ)) a.y = -a.y, b.y = -b.y;
        vec2 w = turn(element, 2u * full, P_FOLD_INVERSE, P_FOLD_REST);
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

void write_point(uint k, vec2 v) {
    uint element = k * P_OUT_SPAN + out_unit;
    if (HAS(CUT_OUT) && element >= P_OUT_COUNT) return;
    if (HAS(TWIST)) v = times(v, turn(unit * k, P_TWIST, P_TWIST_INVERSE, P_TWIST_REST));
    precise vec2 y = v * P_SCALE;
    if (HAS(SWAP_OUT)) y = y.yx;
    if (HAS(FACTOR_OUT)) y = times(y, uintBitsToFloat(gn_fetch2(4, element)));
    if (HAS(SWAP_OUT_2)) y = y.yx;
    uint at = to + k * P_OUT_STEP;
    if (HAS(PAIR_OUT)) {
        gn_store(1, at, floatBitsToUint(y.x));
        gn_store(1, at + P_OUT_EACH, floatBitsToUint(y.y));
    } else if (HAS(REAL_OUT)) {
        gn_store(1, at, floatBitsToUint(y.x));
    } else {
        gn_store2(1, at, floatBitsToUint(y));
    }
}

// Number k of a line out of the spectrum of pairs of real numbers: a is there, b at its mirror image.
void write_folded(uint k, vec2 a, vec2 b) {
    uint element = k * P_OUT_SPAN + out_unit, full = P_FULL, at = to + k * P_OUT_STEP;
    vec2 w = turn(element, 2u * full, P_FOLD_INVERSE, P_FOLD_REST);
    precise vec2 e = vec2(a.x + b.x, a.y - b.y), o = times(vec2(a.x - b.x, a.y + b.y), w);
    precise vec2 y = vec2(e.x + o.y, e.y - o.x) * (0.5 * P_SCALE);
    if (element == 0u) {
        precise vec2 ends = vec2(a.x + a.y, a.x - a.y) * P_SCALE;
        y = vec2(ends.x, 0.0);
        gn_store2(1, at + full * P_OUT_EACH, floatBitsToUint(vec2(ends.y, 0.0)));
    }
    if (HAS(CONJ)) y.y = -y.y;
    gn_store2(1, at, floatBitsToUint(y));
}

// The slot and the number there that are the mirror image of number k of a slot.
uvec2 mirrored(uint slot, uint k) {
    uint units = P_OUT_SPAN, few = LINES / 2u;
    if (units == 1u || out_unit == 0u) return uvec2(slot, k == 0u ? 0u : POINTS - k);
    if (out_unit * 2u == units) return uvec2(slot, POINTS - 1u - k);
    return uvec2(slot < few ? slot + few : slot - few, POINTS - 1u - k);
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

#ifdef GN_FFT_ANY
// A stage of radix R from one half of `points` to the other, after stages whose radices multiply to s;
// `table` is where its turns start.
#define STAGE(R, BUTTERFLY)                                                                                 \
    case R:                                                                                        \
        if ((RADICES >> R & 1u) == 0u) break;                                                      \
        for (uint i = gl_LocalInvocationIndex; i < lines * each; i += GN_FFT_THREADS) {            \
            uint line = i / each, b = i % each, j = b / s, k = b % s;                              \
            uint at = source * GN_FFT_SHARED + line * n + b;                                       \
            uint put = (1u - source) * GN_FFT_SHARED + line * n + k + s * R * j;                   \
            [[unroll]] for (uint q = 0u; q < R; q++) x[q] = points[at + q * each];                 \
            BUTTERFLY;                                                                             \
            points[put] = x[0];                                                                    \
            [[unroll]] for (uint q = 1u; q < R; q++)                                               \
                points[put + s * q] =                                                              \
                    s * R == n ? x[q] : times(x[q], uintBitsToFloat(gn_fetch2(2, table + (q - 1u) * (each / s) + j))); \
        }                                                                                          \
        break;

void main() {
    const uint lines = LINES, n = POINTS;
    uint source = 0u, s = 1u, table = 0u;
    for (uint i = gl_LocalInvocationIndex; i < lines * n; i += GN_FFT_THREADS) {
        uint slot = HAS(ACROSS_IN) ? i % lines : i / n, j = HAS(ACROSS_IN) ? i / lines : i % n;
        line_at(line_of(slot));
        if (inside) points[slot * n + j] = read_point(j);
    }
    barrier();
    for (uint step = 0u; step < 6u; step++) {
        uint r = GN_PARAM(P_RADIX + step), each = n / r;
        if (r == 1u) break;
        switch (r) {
            STAGE(2u, bf2(0, 1))
            STAGE(3u, bf3(0, 1, 2))
            STAGE(4u, bf4(0, 1, 2, 3))
            STAGE(5u, bf5(0, 1, 2, 3, 4))
            STAGE(6u, bf6(0))
            STAGE(7u, bf7(0))
            STAGE(8u, bf8(0))
            STAGE(9u, bf9(0))
            STAGE(10u, bf10(0))
            STAGE(11u, bf11(0))
            STAGE(13u, bf13(0))
            STAGE(16u, bf16(0))
        }
        barrier();
        source = 1u - source;
        table += (r - 1u) * (each / s);
        s *= r;
    }
    for (uint i = gl_LocalInvocationIndex; i < lines * n; i += GN_FFT_THREADS) {
        uint slot = HAS(ACROSS_OUT) ? i % lines : i / n, k = HAS(ACROSS_OUT) ? i / lines : i % n;
        line_at(line_of(slot));
        if (!inside) continue;
        vec2 v = points[source * GN_FFT_SHARED + slot * n + k];
        uvec2 other = mirrored(slot, k);
        if (HAS(FOLD_OUT)) write_folded(k, v, points[source * GN_FFT_SHARED + other.x * n + other.y]);
        else write_point(k, v);
    }
}

#else // in registers

const bool ACROSS_BOTH = (FLAGS & 3072u) == 3072u;
const uint PITCH = POINTS % 32u == 0u ? POINTS : POINTS | 1u;
#ifdef GN_FFT_SPLIT
const uint BANKS = 32u;
#else
const uint BANKS = 16u;
#endif
const uint SKEW = LINES >= BANKS ? 1u : BANKS / LINES;

// Where point p of a slot is, so that no stage hits one bank of the memory twice.
uint place(uint slot, uint p) {
    if (POINTS % 32u == 0u) p ^= (p >> 4) & 31u;
    if (ACROSS_BOTH) return p * LINES + slot;
    if (POINTS % 32u == 0u && (FLAGS & 3072u) != 0u) p ^= slot * SKEW & (BANKS - 1u);
    return slot * PITCH + p;
}

// An invocation has butterflies number + i * TEAM of a stage.
uint slot, number;
void take_place(const bool across) {
    slot = across ? gl_LocalInvocationIndex % LINES : gl_LocalInvocationIndex / TEAM;
    number = across ? gl_LocalInvocationIndex / LINES : gl_LocalInvocationIndex % TEAM;
    if (slot >= LINES) number = POINTS; // nothing to do
    if (number >= TEAM) number = POINTS;
}

// What follows are macros, so that a driver sees constants before it has to inline anything.
// Butterflies of radix r of an invocation, and whether one of them is there.
#define COUNT(r) ((POINTS / (r) + TEAM - 1u) / TEAM)
#define THERE(r, i)                                                                                \
    ((TEAM * LINES == GN_FFT_THREADS && COUNT(r) * TEAM * (r) == POINTS) ||                        \
     number + (i) * TEAM < POINTS / (r))

// Runs over what an invocation holds: x[z] is number z % r of butterfly z / r.
#define EACH_POINT(r)                                                                              \
    [[unroll]] for (uint z = 0u; z < COUNT(r) * (r); z++) if (THERE(r, z / (r)))
#define BUTTERFLY(r) (number + z / (r) * TEAM)
#define PUT_AT(r, s) place(slot, BUTTERFLY(r) % (s) + (s) * ((r) * (BUTTERFLY(r) / (s)) + z % (r)))
#define POINT(r) (BUTTERFLY(r) + z % (r) * (POINTS / (r)))

// The butterflies of a stage: all that fit.
#define ONE(r, R, i, CALL)                                                                         \
    if ((r) == R && COUNT(r) > i) { CALL; }
#if GN_FFT_RADICES < 13
#define LARGE_BUTTERFLIES(r)
#else
#define LARGE_BUTTERFLIES(r)                                                                       \
    ONE(r, 7u, 0u, bf7(0))                                                                         \
    ONE(r, 7u, 1u, bf7(7))                                                                         \
    ONE(r, 11u, 0u, bf11(0))                                                                       \
    ONE(r, 13u, 0u, bf13(0))
#endif
#if GN_FFT_RADICES < 5
#define ODD_BUTTERFLIES(r)
#else
#define ODD_BUTTERFLIES(r)                                                                         \
    ONE(r, 3u, 0u, bf3(0, 1, 2))                                                                   \
    ONE(r, 3u, 1u, bf3(3, 4, 5))                                                                   \
    ONE(r, 3u, 2u, bf3(6, 7, 8))                                                                   \
    ONE(r, 3u, 3u, bf3(9, 10, 11))                                                                 \
    ONE(r, 3u, 4u, bf3(12, 13, 14))                                                                \
    ONE(r, 3u, 5u, bf3(15, 16, 17))                                                                \
    ONE(r, 5u, 0u, bf5(0, 1, 2, 3, 4))                                                             \
    ONE(r, 5u, 1u, bf5(5, 6, 7, 8, 9))                                                             \
    ONE(r, 5u, 2u, bf5(10, 11, 12, 13, 14))                                                        \
    ONE(r, 5u, 3u, bf5(15, 16, 17, 18, 19))                                                        \
    ONE(r, 6u, 0u, bf6(0))                                                                         \
    ONE(r, 6u, 1u, bf6(6))                                                                         \
    ONE(r, 6u, 2u, bf6(12))                                                                        \
    ONE(r, 9u, 0u, bf9(0))                                                                         \
    ONE(r, 9u, 1u, bf9(9))                                                                         \
    ONE(r, 10u, 0u, bf10(0))                                                                       \
    ONE(r, 10u, 1u, bf10(10))
#endif
#define BUTTERFLIES(r)                                                                             \
    ONE(r, 2u, 0u, bf2(0, 1))                                                                      \
    ONE(r, 2u, 1u, bf2(2, 3))                                                                      \
    ONE(r, 2u, 2u, bf2(4, 5))                                                                      \
    ONE(r, 2u, 3u, bf2(6, 7))                                                                      \
    ONE(r, 2u, 4u, bf2(8, 9))                                                                      \
    ONE(r, 2u, 5u, bf2(10, 11))                                                                    \
    ONE(r, 2u, 6u, bf2(12, 13))                                                                    \
    ONE(r, 2u, 7u, bf2(14, 15))                                                                    \
    ONE(r, 2u, 8u, bf2(16, 17))                                                                    \
    ONE(r, 2u, 9u, bf2(18, 19))                                                                    \
    ONE(r, 4u, 0u, bf4(0, 1, 2, 3))                                                                \
    ONE(r, 4u, 1u, bf4(4, 5, 6, 7))                                                                \
    ONE(r, 4u, 2u, bf4(8, 9, 10, 11))                                                              \
    ONE(r, 4u, 3u, bf4(12, 13, 14, 15))                                                            \
    ONE(r, 4u, 4u, bf4(16, 17, 18, 19))                                                            \
    ONE(r, 8u, 0u, bf8(0))                                                                         \
    ONE(r, 8u, 1u, bf8(8))                                                                         \
    ONE(r, 16u, 0u, bf16(0))                                                                       \
    ODD_BUTTERFLIES(r)                                                                             \
    LARGE_BUTTERFLIES(r)

// After the butterflies of radix r at s: the turns, which start at `table`.
#define TURNS(r, s, table)                                                                         \
    EACH_POINT(r) {                                                                                \
        uint at = (table) + BUTTERFLY(r) / (s) + (z % (r) - 1u) * (POINTS / ((r) * (s)));          \
        if (z % (r) != 0u) x[z] = times(x[z], uintBitsToFloat(gn_fetch2(2, at)));                  \
    }

// Results of a stage of radix r after s to where the stage of radix `next` finds its points.
#ifdef GN_FFT_SPLIT
float re[REGISTERS];
#define PASS_ON(r, s, next, across)                                                                \
    {                                                                                              \
        uint old_slot = slot, old_number = number;                                                 \
        EACH_POINT(r) points[PUT_AT(r, s)] = x[z].x;                                               \
        barrier();                                                                                 \
        take_place(across);                                                                        \
        EACH_POINT(next) re[z] = points[place(slot, POINT(next))];                                 \
        barrier();                                                                                 \
        slot = old_slot;                                                                           \
        number = old_number;                                                                       \
        EACH_POINT(r) points[PUT_AT(r, s)] = x[z].y;                                               \
        barrier();                                                                                 \
        take_place(across);                                                                        \
        EACH_POINT(next) x[z] = vec2(re[z], points[place(slot, POINT(next))]);                     \
    }
#else
#define PASS_ON(r, s, next, across)                                                                \
    {                                                                                              \
        EACH_POINT(r) points[PUT_AT(r, s)] = x[z];                                                 \
        barrier();                                                                                 \
        take_place(across);                                                                        \
        EACH_POINT(next) x[z] = points[place(slot, POINT(next))];                                  \
    }
#endif

#define LAST_AT(r) (BUTTERFLY(r) + z % (r) * (POINTS / (r)))
#define MIRROR_AT(r) place(mirrored(slot, LAST_AT(r)).x, mirrored(slot, LAST_AT(r)).y)

// Results of the last stage, of radix r, to memory.
#ifdef GN_FFT_SPLIT
#define FOLD(r)                                                                                    \
    {                                                                                              \
        barrier();                                                                                 \
        EACH_POINT(r) points[PUT_AT(r, POINTS / (r))] = x[z].x;                                    \
        barrier();                                                                                 \
        EACH_POINT(r) re[z] = points[MIRROR_AT(r)];                                                \
        barrier();                                                                                 \
        EACH_POINT(r) points[PUT_AT(r, POINTS / (r))] = x[z].y;                                    \
        barrier();                                                                                 \
        if (inside) EACH_POINT(r) write_folded(LAST_AT(r), x[z], vec2(re[z], points[MIRROR_AT(r)]));  \
    }
#else
#define FOLD(r)                                                                                    \
    {                                                                                              \
        barrier();                                                                                 \
        EACH_POINT(r) points[PUT_AT(r, POINTS / (r))] = x[z];                                      \
        barrier();                                                                                 \
        if (inside) EACH_POINT(r) write_folded(LAST_AT(r), x[z], points[MIRROR_AT(r)]);            \
    }
#endif
#define FINISH(r)                                                                                  \
    {                                                                                              \
        line_at(line_of(slot));                                                                    \
        if (HAS(FOLD_OUT)) FOLD(r)                                                                 \
        else if (inside) EACH_POINT(r) write_point(LAST_AT(r), x[z]);                              \
    }

#define S1 RADIX0
#define S2 (RADIX0 * RADIX1)
#define S3 (RADIX0 * RADIX1 * RADIX2)
#define T1 ((RADIX0 - 1u) * (POINTS / S1))
#define T2 (T1 + (RADIX1 - 1u) * (POINTS / S2))

void main() {
    take_place(HAS(ACROSS_IN));
    line_at(line_of(slot));
    EACH_POINT(RADIX0) x[z] = inside ? read_point(POINT(RADIX0)) : vec2(0.0);
    BUTTERFLIES(RADIX0)
    if (RADIX1 == 1u) FINISH(RADIX0)
    if (RADIX1 != 1u) {
        TURNS(RADIX0, 1u, 0u)
        PASS_ON(RADIX0, 1u, RADIX1, RADIX2 == 1u ? HAS(ACROSS_OUT) : ACROSS_BOTH)
        BUTTERFLIES(RADIX1)
        if (RADIX2 == 1u) FINISH(RADIX1)
    }
    if (RADIX2 != 1u) {
        TURNS(RADIX1, S1, T1)
        barrier();
        PASS_ON(RADIX1, S1, RADIX2, RADIX3 == 1u ? HAS(ACROSS_OUT) : ACROSS_BOTH)
        BUTTERFLIES(RADIX2)
        if (RADIX3 == 1u) FINISH(RADIX2)
    }
    if (RADIX3 != 1u) {
        TURNS(RADIX2, S2, T2)
        barrier();
        PASS_ON(RADIX2, S2, RADIX3, HAS(ACROSS_OUT))
        BUTTERFLIES(RADIX3)
        FINISH(RADIX3)
    }
}
#endif
