// One pass of a Fourier transform: POINTS of each line, LINES lines in one workgroup, by Stockham's stages;
// longer transforms are several passes. Room `fft vk` says which. The radices are parameters, so that one
// pipeline does every length; fft.comp does single lengths faster. GN_FFT_ALONE is for devices that are CPUs, whose
// compilers make little of barriers: each invocation does a line, without folds of two lines.
//! variant fft_any_1k -DGN_FFT_SHARED=1024
//! variant fft_any_2k -DGN_FFT_SHARED=2048
//! variant fft_any_3k -DGN_FFT_SHARED=3072
//! variant fft_any_1kd -DGN_FFT_SHARED=1024 -DGN_FFT_DOUBLE --no-bindings
#version 450
#extension GL_GOOGLE_include_directive : require
#include "slots.glsl"
#ifdef GN_FFT_ALONE
#define GN_FFT_THREADS 4
#else
#define GN_FFT_THREADS 256
#endif
#define GN_FFT_RADICES 13
layout(local_size_x = GN_FFT_THREADS) in;
layout(constant_id = GNI_S_FFT_ANY_FLAGS) const uint FIXED = 0;
layout(constant_id = GNI_S_FFT_ANY_RADICES) const uint RADICES = 0;
#define FLAGS ((FIXED & GNI_F_FFT_PARAMETER) != 0u ? GN_PARAM(GNI_P_FFT_FLAGS) : FIXED)
#define LINES GN_PARAM(GNI_P_FFT_TOGETHER)
#define POINTS GN_PARAM(GNI_P_FFT_POINTS)
#include "fft.glsl"

#ifdef GN_FFT_ALONE
complex points[2 * GN_FFT_SHARED];
#else
shared complex points[2 * GN_FFT_SHARED];
#endif

// The turn of number q of a butterfly as fft.comp has it.
complex turned_by(uint at, uint apart, uint q) {
    uint fine = q % 4u;
    complex low = complex(0.0), high = complex(0.0);
    if (fine != 0u) low = number_of(gn_fetch_number(2, at + (fine - 1u) * apart));
    if (q < 4u) return low;
    high = number_of(gn_fetch_number(2, at + (q - fine - 1u) * apart));
    return fine == 0u ? high : times(high, low);
}

// A stage of radix R from one half of `points` to the other, after stages whose radices multiply to s;
// `table` is where its turns start.
#ifdef GN_FFT_ALONE
#define STAGE(R, BUTTERFLY)                                                                        \
    case R:                                                                                        \
        if ((RADICES >> R & 1u) == 0u) break;                                                      \
        for (uint j = 0u; j < each / s; j++) {                                                     \
            complex w[R];                                                                             \
            [[unroll]] for (uint q = 1u; q < R; q++)                                               \
                w[q] = s * R == n ? complex(0.0) : turned_by(table + j, each / s, q);                 \
            uint at = source * GN_FFT_SHARED + j * s, put = (1u - source) * GN_FFT_SHARED + s * R * j; \
            for (uint end = at + s; at < end; at++, put++) {                                       \
                [[unroll]] for (uint q = 0u; q < R; q++) x[q] = points[at + q * each];             \
                BUTTERFLY;                                                                         \
                if (s == 1u) { SPOIL(0u, R) }                                                      \
                points[put] = x[0];                                                                \
                [[unroll]] for (uint q = 1u; q < R; q++)                                           \
                    points[put + s * q] = s * R == n ? x[q] : times(x[q], w[q]);                   \
            }                                                                                      \
        }                                                                                          \
        break;
#else
#define STAGE(R, BUTTERFLY)                                                                                 \
    case R:                                                                                        \
        if ((RADICES >> R & 1u) == 0u) break;                                                      \
        for (uint i = gl_LocalInvocationIndex; i < lines * each; i += GN_FFT_THREADS) {            \
            uint line = i / each, b = i % each, j = b / s, k = b % s;                              \
            uint at = source * GN_FFT_SHARED + line * n + b;                                       \
            uint put = (1u - source) * GN_FFT_SHARED + line * n + k + s * R * j;                   \
            [[unroll]] for (uint q = 0u; q < R; q++) x[q] = points[at + q * each];                 \
            BUTTERFLY;                                                                             \
            if (s == 1u) { SPOIL(0u, R) }                                                          \
            points[put] = x[0];                                                                    \
            [[unroll]] for (uint q = 1u; q < R; q++)                                               \
                points[put + s * q] =                                                              \
                    s * R == n ? x[q] : times(x[q], turned_by(table + j, each / s, q));            \
        }                                                                                          \
        break;
#endif

void main() {
    const uint lines = LINES, n = POINTS;
    uint source = 0u, s = 1u, table = 0u, last = 1u;
    take_parameters();
#ifdef GN_FFT_ALONE
    line_at(line_of(gl_LocalInvocationIndex));
    for (uint j = 0u; j < n; j++) points[j] = read_point(j);
#else
    for (uint i = gl_LocalInvocationIndex; i < lines * n; i += GN_FFT_THREADS) {
        uint slot = HAS(ACROSS_IN) ? i % lines : i / n, j = HAS(ACROSS_IN) ? i / lines : i % n;
        line_at(line_of(slot));
        points[slot * n + j] = read_point(j);
    }
    barrier();
#endif
    for (uint step = 0u; step < 6u; step++) {
        uint r = GN_PARAM(GNI_P_FFT_RADIX + step), each = n / r;
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
#ifndef GN_FFT_ALONE
        barrier();
#endif
        source = 1u - source;
        table += (r - 1u) * (each / s);
        s *= r;
        last = each;
    }
#ifdef GN_FFT_ALONE
    for (uint k = 0u; inside && k < n; k++) {
        complex v = points[source * GN_FFT_SHARED + k];
        if (HAS(FOLD_OUT)) write_folded(k, v, points[source * GN_FFT_SHARED + (k == 0u ? 0u : n - k)], true);
        else write_point(k, v, HAS(TWIST) ? twist(k % last, k / last * last) : complex(0.0));
    }
#else
    for (uint i = gl_LocalInvocationIndex; i < lines * n; i += GN_FFT_THREADS) {
        uint slot = HAS(ACROSS_OUT) ? i % lines : i / n, k = HAS(ACROSS_OUT) ? i / lines : i % n;
        line_at(line_of(slot));
        if (!inside) continue;
        complex v = points[source * GN_FFT_SHARED + slot * n + k];
        uvec2 other = mirrored(slot, k);
        if (HAS(FOLD_OUT)) write_folded(k, v, points[source * GN_FFT_SHARED + other.x * n + other.y], true);
        else write_point(k, v, HAS(TWIST) ? twist(k % last, k / last * last) : complex(0.0));
    }
#endif
}
