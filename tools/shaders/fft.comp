// One pass of a Fourier transform: POINTS of each line, in one workgroup, by Stockham's stages in shared
// memory; longer transforms are several passes. Room `fft vk` says which.
//
// GN_FFT_ANY: radices and flags are parameters, one pipeline does every length. Otherwise they are
// specialisation constants, for lengths that are powers of two; the first stage then reads the operand
// itself and the last one writes the result. Both round alike.
//! variant fft_any_1k -DGN_FFT_SHARED=1024 -DGN_FFT_ANY
//! variant fft_any_2k -DGN_FFT_SHARED=2048 -DGN_FFT_ANY
//! variant fft_any_3k -DGN_FFT_SHARED=3072 -DGN_FFT_ANY
//! variant fft_two_1k -DGN_FFT_SHARED=1024
//! variant fft_two_2k -DGN_FFT_SHARED=2048
//! variant fft_two_3k -DGN_FFT_SHARED=3072
#version 450
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 6
#define GN_READONLY 61 /* all but buffer 1 */
#include "gn.glsl"

// 0 operand, 1 result, 2 exp(-2 pi i k / POINTS), 3 factors of the twist, 4 and 5 factors of the operand and
// of the result.
layout(local_size_x = 256) in;
#ifdef GN_FFT_ANY
#define FLAGS GN_PARAM(13)
#define LINES GN_PARAM(14) /* in a workgroup */
#define POINTS GN_PARAM(15)
#define P_RADIX 16 /* first applied first, 1 from the last one on */
#else
layout(constant_id = 0) const uint RADIX0 = 1; // applied first
layout(constant_id = 1) const uint RADIX1 = 1;
layout(constant_id = 2) const uint RADIX2 = 1;
layout(constant_id = 3) const uint LINES = 1;
layout(constant_id = 4) const uint FLAGS = 0;
const uint POINTS = RADIX0 * RADIX1 * RADIX2;
#endif

const uint REAL_IN = 1;    // the operand has no imaginary parts
const uint HALF_IN = 2;    // it is half a Hermitian sequence
const uint REAL_OUT = 4;   // the result has no imaginary parts
const uint FACTOR_IN = 8;  // times buffer 4
const uint FACTOR_OUT = 16;
const uint TWIST = 32;
const uint SWAP_IN = 64; // exchange the parts: before the factor is applied to the operand,
const uint SWAP_IN_2 = 128;  // after that,
const uint SWAP_OUT = 256;   // before the factor is applied to the result,
const uint SWAP_OUT_2 = 512; // and after that
const uint ACROSS_IN = 1024; // neighbouring invocations read neighbouring lines, not points
const uint ACROSS_OUT = 2048;
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
#define P_TWIST_LOW GN_PARAM(10) // bits of a factor's number that its low half has
#define P_FULL GN_PARAM(11)      // points of the whole transform
#define P_RANK GN_PARAM(12)
#define P_DIM 22 // size, step in the operand, in the result, unit, out unit: 5 words each

shared vec2 points[2 * GN_FFT_SHARED];
vec2 x[16];

vec2 times(vec2 a, vec2 b) {
    precise vec2 y = vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
    return y;
}
vec2 turned(vec2 a) { return vec2(a.y, -a.x); } // times -i
vec2 root(uint k) { return uintBitsToFloat(gn_fetch2(2, k)); }

// Where a line starts, and what it adds to the numbers of its points in the whole transform.
void line_at(uint line, out uint from, out uint to, out uint unit, out uint out_unit) {
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

vec2 read_point(uint from, uint unit, uint j) {
    uint element = j * P_SPAN + unit, at = from + j * P_IN_STEP;
    vec2 v = vec2(0.0);
    if (HAS(HALF_IN)) {
        uint full = P_FULL, mirror = element * 2u > full ? full - element : element;
        if (mirror < P_IN_COUNT) {
            // `from` is then the start of the sequence, whatever the line.
            v = uintBitsToFloat(gn_load2(0, from + mirror * P_IN_STEP));
            if (mirror == 0u || mirror * 2u == full) v.y = 0.0;
            if (mirror != element) v.y = -v.y;
        }
    } else if (element < P_IN_COUNT) {
        v = HAS(REAL_IN) ? vec2(uintBitsToFloat(gn_load(0, at)), 0.0) : uintBitsToFloat(gn_load2(0, at));
    }
    if (HAS(SWAP_IN)) v = v.yx;
    if (HAS(FACTOR_IN)) v = element < P_FULL ? times(v, uintBitsToFloat(gn_fetch2(4, element))) : vec2(0.0);
    if (HAS(SWAP_IN_2)) v = v.yx;
    return v;
}

void write_point(uint to, uint unit, uint out_unit, uint k, vec2 v) {
    uint element = k * P_OUT_SPAN + out_unit;
    if (element >= P_OUT_COUNT) return;
    if (HAS(TWIST)) {
        uint e = unit * k, low = P_TWIST_LOW;
        vec2 w = times(uintBitsToFloat(gn_fetch2(3, e & ((1u << low) - 1u))),
                       uintBitsToFloat(gn_fetch2(3, (1u << low) + (e >> low))));
        v = times(v, w);
    }
    v *= P_SCALE;
    if (HAS(SWAP_OUT)) v = v.yx;
    if (HAS(FACTOR_OUT)) v = times(v, uintBitsToFloat(gn_fetch2(5, element)));
    if (HAS(SWAP_OUT_2)) v = v.yx;
    uint at = to + k * P_OUT_STEP;
    if (HAS(REAL_OUT)) gn_store(1, at, floatBitsToUint(v.x));
    else gn_store2(1, at, floatBitsToUint(v));
}

void bf2(uint a, uint b) {
    vec2 t = x[a];
    x[a] = t + x[b];
    x[b] = t - x[b];
}

// Of the four elements a, b, c, d in natural order.
void bf4(uint a, uint b, uint c, uint d) {
    vec2 s = x[a] + x[c], t = x[a] - x[c], u = x[b] + x[d], v = turned(x[b] - x[d]);
    x[a] = s + u;
    x[b] = t + v;
    x[c] = s - u;
    x[d] = t - v;
}

const float EIGHTH = 0.70710678118654752440;
vec2 eighth(vec2 a) { return EIGHTH * vec2(a.x + a.y, a.y - a.x); }   // exp(-pi i / 4)
vec2 eighth_3(vec2 a) { return EIGHTH * vec2(a.y - a.x, -a.x - a.y); } // exp(-3 pi i / 4)
void exchange(uint a, uint b) {
    vec2 t = x[a];
    x[a] = x[b];
    x[b] = t;
}

void bf8() {
    bf4(0, 2, 4, 6);
    bf4(1, 3, 5, 7);
    x[3] = eighth(x[3]);
    x[5] = turned(x[5]);
    x[7] = eighth_3(x[7]);
    bf2(0, 1);
    bf2(2, 3);
    bf2(4, 5);
    bf2(6, 7);
    // 0 4 1 5 2 6 3 7 to their places
    vec2 a = x[1], b = x[2], c = x[3], d = x[4], e = x[5], f = x[6];
    x[4] = a;
    x[1] = b;
    x[5] = c;
    x[2] = d;
    x[6] = e;
    x[3] = f;
}

void bf16() {
    bf4(0, 4, 8, 12);
    bf4(1, 5, 9, 13);
    bf4(2, 6, 10, 14);
    bf4(3, 7, 11, 15);
    const vec2 w1 = vec2(0.92387953251128675613, -0.38268343236508977173);
    const vec2 w3 = vec2(0.38268343236508977173, -0.92387953251128675613);
    x[5] = times(x[5], w1);
    x[6] = eighth(x[6]);
    x[7] = times(x[7], w3);
    x[9] = eighth(x[9]);
    x[10] = turned(x[10]);
    x[11] = eighth_3(x[11]);
    x[13] = times(x[13], w3);
    x[14] = eighth_3(x[14]);
    x[15] = -times(x[15], w1);
    bf4(0, 1, 2, 3);
    bf4(4, 5, 6, 7);
    bf4(8, 9, 10, 11);
    bf4(12, 13, 14, 15);
    exchange(1, 4);
    exchange(2, 8);
    exchange(3, 12);
    exchange(6, 9);
    exchange(7, 13);
    exchange(11, 14);
}

#ifdef GN_FFT_ANY
void bf3(uint a, uint b, uint c) {
    precise vec2 t = x[b] + x[c], d = 0.86602540378443864676 * turned(x[b] - x[c]), m = x[a] - 0.5 * t;
    x[a] += t;
    x[b] = m + d;
    x[c] = m - d;
}

void bf5() {
    vec2 t1 = x[1] + x[4], d1 = x[1] - x[4], t2 = x[2] + x[3], d2 = x[2] - x[3];
    precise vec2 t = t1 + t2, u = 0.55901699437494742410 * (t1 - t2), m = x[0] - 0.25 * t;
    precise vec2 b1 = turned(0.95105651629515357212 * d1 + 0.58778525229247312917 * d2);
    precise vec2 b2 = turned(0.58778525229247312917 * d1 - 0.95105651629515357212 * d2);
    x[0] += t;
    precise vec2 p = m + u, q = m - u;
    x[1] = p + b1;
    x[4] = p - b1;
    x[2] = q + b2;
    x[3] = q - b2;
}

void bf9() {
    bf3(0, 3, 6);
    bf3(1, 4, 7);
    bf3(2, 5, 8);
    const vec2 w1 = vec2(0.76604444311897803520, -0.64278760968653932632);
    const vec2 w2 = vec2(0.17364817766693034885, -0.98480775301220805937);
    const vec2 w4 = vec2(-0.93969262078590838405, -0.34202014332566873304);
    x[4] = times(x[4], w1);
    x[7] = times(x[7], w2);
    x[5] = times(x[5], w2);
    x[8] = times(x[8], w4);
    bf3(0, 1, 2);
    bf3(3, 4, 5);
    bf3(6, 7, 8);
    exchange(1, 3);
    exchange(2, 6);
    exchange(5, 7);
}

// 7, 11 and 13 points, c[i] and s[i] the cosine and sine of 2 pi i / p. Equal points give exact zeros.
#define ODD(NAME, P, H, C, S)                                                                      \
    void NAME() {                                                                                  \
        vec2 t[H + 1], d[H + 1];      \
        for (uint i = 1u; i <= H; i++) {                                                           \
            t[i] = x[i] + x[P - i];                                                                \
            d[i] = turned(x[i] - x[P - i]);                                                        \
        }                                                                                          \
        vec2 sum = x[0], base = x[0] - 0.5 * t[H];                                                 \
        for (uint i = 1u; i <= H; i++) sum += t[i];                                                \
        for (uint i = 1u; i < H; i++) t[i] -= t[H];                                                \
        x[0] = sum;                                                                                \
        for (uint k = 1u; k <= H; k++) {                                                           \
            precise vec2 a = base, b = vec2(0.0);                                                          \
            for (uint i = 1u; i <= H; i++) {                                                       \
                uint e = i * k % P;                                                                \
                if (i < H) a += C[e] * t[i];                                                       \
                b += S[e] * d[i];                                                                  \
            }                                                                                      \
            x[k] = a + b;                                                                          \
            x[P - k] = a - b;                                                                      \
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


// A stage of radix R from one half of `points` to the other.
#define STAGE(R, BUTTERFLY)                                                                        \
    case R:                                                                                        \
        for (uint i = gl_LocalInvocationIndex; i < lines * each; i += 256u) {                      \
            uint line = i / each, b = i % each, j = b / s, k = b % s;                              \
            uint from = source * GN_FFT_SHARED + line * n + b;                                     \
            uint to = (1u - source) * GN_FFT_SHARED + line * n + k + s * R * j;                    \
            for (uint q = 0u; q < R; q++) x[q] = points[from + q * each];                          \
            BUTTERFLY;                                                                             \
            points[to] = x[0];                                                                     \
            for (uint q = 1u; q < R; q++)                                                          \
                points[to + s * q] = s * R == n ? x[q] : times(x[q], root(j * q * s));             \
        }                                                                                          \
        break;

void main() {
    const uint lines = LINES, n = POINTS;
    uint line0 = GN_GROUP * lines, source = 0u, s = 1u;
    for (uint i = gl_LocalInvocationIndex; i < lines * n; i += 256u) {
        uint line = HAS(ACROSS_IN) ? i % lines : i / n, j = HAS(ACROSS_IN) ? i / lines : i % n;
        uint from, to, unit, out_unit;
        if (line0 + line >= P_LINES) continue;
        line_at(line0 + line, from, to, unit, out_unit);
        points[line * n + j] = read_point(from, unit, j);
    }
    barrier();
    for (uint step = 0u; step < 6u; step++) {
        uint r = GN_PARAM(P_RADIX + step), each = n / r;
        if (r == 1u) break;
        switch (r) {
            STAGE(2u, bf2(0, 1))
            STAGE(3u, bf3(0, 1, 2))
            STAGE(4u, bf4(0, 1, 2, 3))
            STAGE(5u, bf5())
            STAGE(7u, bf7())
            STAGE(8u, bf8())
            STAGE(9u, bf9())
            STAGE(11u, bf11())
            STAGE(13u, bf13())
            STAGE(16u, bf16())
        }
        barrier();
        source = 1u - source;
        s *= r;
    }
    for (uint i = gl_LocalInvocationIndex; i < lines * n; i += 256u) {
        uint line = HAS(ACROSS_OUT) ? i % lines : i / n, k = HAS(ACROSS_OUT) ? i / lines : i % n;
        uint from, to, unit, out_unit;
        if (line0 + line >= P_LINES) continue;
        line_at(line0 + line, from, to, unit, out_unit);
        write_point(to, unit, out_unit, k, points[source * GN_FFT_SHARED + line * n + k]);
    }
}

#else // powers of two

void butterfly(const uint r) {
    if (r == 2u) bf2(0, 1);
    if (r == 4u) bf4(0, 1, 2, 3);
    if (r == 8u) bf8();
    if (r == 16u) bf16();
}

// Butterfly i of radix r after stages whose radices multiply to s.
void stage(const uint r, const uint s, const uint source, const bool first, const bool last) {
    const uint each = POINTS / r;
    uint line0 = GN_GROUP * LINES, lines = P_LINES;
    for (uint i = gl_LocalInvocationIndex; i < LINES * each; i += 256u) {
        bool across = (first && HAS(ACROSS_IN)) || (last && HAS(ACROSS_OUT));
        uint line = across ? i % LINES : i / each, b = across ? i / LINES : i % each;
        uint from = 0u, to = 0u, unit = 0u, out_unit = 0u;
        bool inside = line0 + line < lines;
        if ((first || last) && inside) line_at(line0 + line, from, to, unit, out_unit);
        for (uint q = 0u; q < r; q++) {
            if (!first) x[q] = points[source * GN_FFT_SHARED + line * POINTS + b + q * each];
            else x[q] = inside ? read_point(from, unit, b + q * each) : vec2(0.0);
        }
        butterfly(r);
        uint j = b / s, k = b % s;
        for (uint q = 0u; q < r; q++) {
            vec2 v = x[q];
            if (last) {
                if (inside) write_point(to, unit, out_unit, k + q * s, v);
            } else {
                if (q > 0u) v = times(v, root(j * q * s));
                points[(1u - source) * GN_FFT_SHARED + line * POINTS + k + s * (r * j + q)] = v;
            }
        }
    }
    if (!last) barrier();
}

void main() {
    stage(RADIX0, 1u, 1u, true, RADIX1 == 1u);
    if (RADIX1 != 1u) stage(RADIX1, RADIX0, 0u, false, RADIX2 == 1u);
    if (RADIX2 != 1u) stage(RADIX2, RADIX0 * RADIX1, 1u, false, true);
}
#endif // GN_FFT_ANY
