// matmul_half.comp's loop for float32 operands in parts, as split.comp packs them.
//
// A slice is 16 of k. DEEP of them are multiplied at a time, from one of STAGES places in shared memory. What they add
// to a 16x16 of the result comes from the matrix unit, which cuts off instead of rounding, and is added to the sums
// outside of it: the products of float16's smaller parts first, scaled down by 2^12, bfloat16's in order of size.
// Past the last slice one that is there already is fetched.
//
// With GN_IMAGES the operands are images as image_parts leaves them, where a place's 16 channels are one uvec4 for each
// piece of each part, of which b's windows are read (windows.glsl). Along k a slice is the rows' 16 channels of one place, else 16
// places of k with the channels of all of the tile's rows.

#undef GN_COUNTERS
#define GN_COUNTERS 6u
#define GN_CONTROL 6u
#include "split.glsl"
#undef GN_COUNTERS
#define GN_COUNTERS 5u

#define GN_PADDED_M GN_PARAM(GNI_P_PARTS_PADDED_M)
#define GN_PADDED_N GN_PARAM(GNI_P_PARTS_PADDED_N)
#define GN_PACKED_SLICES GN_PARAM(GNI_P_PARTS_SLICES)
#define GN_A_PACKED GN_PARAM(GNI_P_PARTS_A_PACKED)
#define GN_B_PACKED GN_PARAM(GNI_P_PARTS_B_PACKED)
#define GN_A_INFO GN_PARAM(GNI_P_PARTS_A_INFO)
#define GN_B_INFO GN_PARAM(GNI_P_PARTS_B_INFO)

#ifndef GN_DEEP
#define GN_DEEP 1
#endif
#define GN_PIECES (2 * GN_PARTS) // uvec4 of a row's slice
#define GN_SPLIT_PITCH (GN_PIECES + 1)
#define GN_SLICE ((GN_BM + GN_BN) * GN_SPLIT_PITCH)
shared uvec4 gn_tile[GN_MAX(GN_STAGES * GN_DEEP * GN_SLICE, GN_OUT_SIZE)];

#ifdef GN_IMAGES
#define GN_LINES_A GN_PARAM(GNI_P_IMAGES_LINES_A)
// Rows are lines of a; a column of b belongs to an image or, where b is read along n, to a channel.
uint gn_a_info(uint batch, uint row) { return uint(GNI_SPLIT_CONTROL) + 2u * (batch * GN_M + min(row, GN_M - 1u)); }
uint gn_b_info(uint batch, uint column) {
    column = min(column, GN_N - 1u);
    uint q = gn_over(column, GNI_P_IMAGES_LINE), n = GN_PARAM(GNI_P_IMAGES_LINE);
    return uint(GNI_SPLIT_CONTROL) + 2u * (GN_LINES_A + (GN_B_ALONG_K ? q : batch * n + column - q * n));
}
#else
#define GN_A_LOADS ((GN_BM * GN_PIECES + GN_THREADS - 1) / GN_THREADS)
#define GN_B_LOADS ((GN_BN * GN_PIECES + GN_THREADS - 1) / GN_THREADS)

uint gn_a_info(uint batch, uint row) { return GN_A_INFO + 2u * (min(batch, GN_A_PACKED - 1u) * GN_PADDED_M + row); }
uint gn_b_info(uint batch, uint row) { return GN_B_INFO + 2u * (min(batch, GN_B_PACKED - 1u) * GN_PADDED_N + row); }
#endif
uint gn_known(uint at) { return gn_load(GN_CONTROL, at); }

// In two steps, of which neither leaves float32's range where the result does not.
vec4 gn_unscaled(uint row, uint column, uint batch, vec4 v) {
    int a = gn_row_exponent(uvec2(gn_known(gn_a_info(batch, row)), 0u)) - 282;
    [[unroll]] for (uint e = 0u; e < 4u; e++) {
        int by = a + gn_row_exponent(uvec2(gn_known(gn_b_info(batch, column + e)), 0u)), first = by >> 1;
        v[e] = v[e] * uintBitsToFloat(uint(first + 127) << 23) * uintBitsToFloat(uint(by - first + 127) << 23);
    }
    return v;
}

#ifdef GN_IMAGES

#undef GN_A_PITCH
#undef GN_B_PITCH
#define GN_A_PITCH (GN_A_ALONG_M ? GN_BM / 4 + 1 : GN_SPLIT_PITCH)
#define GN_B_PITCH (GN_B_ALONG_K ? GN_SPLIT_PITCH : GN_BN / 4 + 1)
#define GN_B_FROM (GN_BM * GN_SPLIT_PITCH)
#define GN_BLOCK (16u * GN_DEEP)
#define GN_A_LOADS (GN_BM * 4 / GN_THREADS)
#define GN_B_LOADS (GN_BN * 4 / GN_THREADS)

// Load i of a slice: its row and its uvec4 in there. Along k eight loads are all of two rows, in different banks.
uvec2 gn_piece(uint i, bool along_k, uint rows) {
    uint e = gl_LocalInvocationIndex + i * GN_THREADS;
    return along_k ? uvec2(e / 32u * 8u + e / 4u % 2u * 4u + e / 8u % 4u, e % 4u) : uvec2(e / (rows / 4u), e % (rows / 4u));
}

// Where the rows of the next block of b begin.
shared uint gn_lines[GN_MAX(GN_BN, GN_BLOCK)];
void gn_put_lines(uint n0, uint k0, uint end) {
    uint me = gl_LocalInvocationIndex;
    if (!GN_B_ALONG_K) {
        if (me < GN_BLOCK) gn_lines[me] = gn_window(GNI_P_WINDOWS_K, min(k0 + me, end - 1u));
    } else
        for (uint e = me; e < GN_BN; e += GN_THREADS) gn_lines[e] = gn_window(GNI_P_WINDOWS_N, min(n0 + e, GN_N - 1u));
}

// Zeros from k = end on, so that b's do not count there.
uvec4 gn_image_a(uint i, uint base, uint m0, uint k, uint end) {
    uvec2 p = gn_piece(i, !GN_A_ALONG_M, GN_BM);
    uint row = GN_A_ALONG_M ? m0 + p.y / 4u * 16u : m0 + p.x;
    if (!GN_INSIDE) row = min(row, GN_A_ALONG_M ? (GN_M - 1u) & ~15u : GN_M - 1u);
    if (GN_A_ALONG_M) k += p.x;
    bool inside = GN_WHOLE || k < end;
    if (!GN_WHOLE) k = min(k, end - (GN_A_ALONG_M ? 1u : 16u));
    uint at = GN_A_ALONG_M ? base + k * GN_A_COLUMN + row : base + row * GN_A_ROW + k;
    uvec4 v = GN_AT4(GN_OPEN(GN_A), at / 4u + p.y % 4u);
    return inside ? v : uvec4(0u);
}
// `shift`: of the slice along k, else of this invocation's channels.
uvec4 gn_image_b(uint i, uint d, uint shift) {
    uvec2 p = gn_piece(i, GN_B_ALONG_K, GN_BN);
    return GN_AT4(GN_OPEN(GN_B), (shift + gn_lines[GN_B_ALONG_K ? p.x : 16u * d + p.x]) / 4u + p.y % 4u);
}
uint gn_image_shift(uint base, uint n0, uint k, uint end) {
    uint column = n0 + gn_piece(0u, false, GN_BN).y / 4u * 16u;
    return base + (GN_B_ALONG_K ? gn_window(GNI_P_WINDOWS_K, min(k, end - 16u)) : gn_window(GNI_P_WINDOWS_N, min(column, GN_N - 16u)));
}

#define GN_SPLIT_BEGIN                                                                                                 \
    uint blocks = (end - start + GN_BLOCK - 1u) / GN_BLOCK;                                                            \
    uint shift = gn_image_shift(base.y, n0, start, end);                                                               \
    gn_put_lines(n0, start, end);                                                                                      \
    barrier();
#define GN_SPLIT_FETCH(block)                                                                                          \
    [[unroll]] for (uint d = 0u; d < GN_DEEP; d++) {                                                                   \
        uint k = start + (block) * GN_BLOCK + 16u * d;                                                                 \
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) next_a[d][i] = gn_image_a(i, base.x, m0, k, end);            \
        if (GN_B_ALONG_K) shift = gn_image_shift(base.y, n0, k, end);                                                  \
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) next_b[d][i] = gn_image_b(i, d, shift);                      \
    }
#define GN_SPLIT_LINES(block)                                                                                          \
    if (!GN_B_ALONG_K) gn_put_lines(n0, start + (block) * GN_BLOCK, end);
#define GN_SPLIT_SECOND                                                                                                \
    if (!GN_B_ALONG_K) barrier();                                                                                      \
    GN_SPLIT_LINES(1u)
#define GN_SPLIT_KEEP(stage)                                                                                           \
    [[unroll]] for (uint d = 0u; d < GN_DEEP; d++) {                                                                   \
        uint to = ((stage) * GN_DEEP + d) * GN_SLICE;                                                                  \
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) {                                                            \
            uvec2 p = gn_piece(i, !GN_A_ALONG_M, GN_BM);                                                               \
            gn_tile[to + p.x * GN_A_PITCH + p.y] = next_a[d][i];                                                       \
        }                                                                                                              \
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) {                                                            \
            uvec2 p = gn_piece(i, GN_B_ALONG_K, GN_BN);                                                                \
            gn_tile[to + GN_B_FROM + p.x * GN_B_PITCH + p.y] = next_b[d][i];                                           \
        }                                                                                                              \
    }
#define GN_SPLIT_LOAD_A(x, d, part, i)                                                                                 \
    if (GN_A_ALONG_M)                                                                                                  \
        coopMatLoad(x, gn_tile, from + (d) * GN_SLICE + (wm / 16u + (i)) * 4u + 2u * (part), GN_A_PITCH,               \
                    gl_CooperativeMatrixLayoutColumnMajor);                                                            \
    else                                                                                                               \
        coopMatLoad(x, gn_tile, from + (d) * GN_SLICE + (wm + (i) * 16u) * GN_A_PITCH + 2u * (part), GN_A_PITCH,       \
                    gl_CooperativeMatrixLayoutRowMajor)
#define GN_SPLIT_LOAD_B(x, d, part, j)                                                                                 \
    if (GN_B_ALONG_K)                                                                                                  \
        coopMatLoad(x, gn_tile, from + (d) * GN_SLICE + GN_B_FROM + (wn + (j) * 16u) * GN_B_PITCH + 2u * (part),       \
                    GN_B_PITCH, gl_CooperativeMatrixLayoutColumnMajor);                                                \
    else                                                                                                               \
        coopMatLoad(x, gn_tile, from + (d) * GN_SLICE + GN_B_FROM + (wn / 16u + (j)) * 4u + 2u * (part), GN_B_PITCH,   \
                    gl_CooperativeMatrixLayoutRowMajor)

#else

// Piece e of a slice as it lies in memory: eight that follow each other are of eight rows, whose places in shared
// memory lie in different banks.
uint gn_piece_row(uint e) { return e / (8u * GN_PIECES) * 8u + e % 8u; }
uint gn_piece_part(uint e) { return e % (8u * GN_PIECES) / 8u; }

#define GN_SPLIT_FETCH_A(block)                                                                                        \
    [[unroll]] for (uint d = 0u; d < GN_DEEP; d++)                                                                     \
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) {                                                            \
            uint e = min(me + i * GN_THREADS, GN_BM * GN_PIECES - 1u);                                                 \
            next_a[d][i] = gn_fetch4(GN_A, a_from + ((block) * GN_DEEP + d) * a_slice + e);                            \
        }
#define GN_SPLIT_KEEP_A(stage)                                                                                         \
    [[unroll]] for (uint d = 0u; d < GN_DEEP; d++)                                                                     \
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) {                                                            \
            uint e = me + i * GN_THREADS;                                                                              \
            if (GN_BM * GN_PIECES % GN_THREADS == 0 || e < GN_BM * GN_PIECES)                                          \
                gn_tile[((stage) * GN_DEEP + d) * GN_SLICE + gn_piece_row(e) * GN_SPLIT_PITCH +                        \
                        gn_piece_part(e)] = next_a[d][i];                                                              \
        }
#define GN_SPLIT_FETCH_B(block)                                                                                        \
    [[unroll]] for (uint d = 0u; d < GN_DEEP; d++)                                                                     \
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) {                                                            \
            uint e = min(me + i * GN_THREADS, GN_BN * GN_PIECES - 1u);                                                 \
            next_b[d][i] = gn_fetch4(GN_B, b_from + ((block) * GN_DEEP + d) * b_slice + e);                            \
        }
#define GN_SPLIT_KEEP_B(stage)                                                                                         \
    [[unroll]] for (uint d = 0u; d < GN_DEEP; d++)                                                                     \
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) {                                                            \
            uint e = me + i * GN_THREADS;                                                                              \
            if (GN_BN * GN_PIECES % GN_THREADS == 0 || e < GN_BN * GN_PIECES)                                          \
                gn_tile[((stage) * GN_DEEP + d) * GN_SLICE + (GN_BM + gn_piece_row(e)) * GN_SPLIT_PITCH +              \
                        gn_piece_part(e)] = next_b[d][i];                                                              \
        }
#define GN_SPLIT_FETCH(slice) GN_SPLIT_FETCH_A(slice) GN_SPLIT_FETCH_B(slice)
#define GN_SPLIT_KEEP(stage) GN_SPLIT_KEEP_A(stage) GN_SPLIT_KEEP_B(stage)
#define GN_SPLIT_LOAD_A(x, d, part, i)                                                                                 \
    coopMatLoad(x, gn_tile, from + (d) * GN_SLICE + (wm + (i) * 16u) * GN_SPLIT_PITCH + 2u * (part), GN_SPLIT_PITCH,   \
                gl_CooperativeMatrixLayoutRowMajor)
#define GN_SPLIT_LOAD_B(x, d, part, j)                                                                                 \
    coopMatLoad(x, gn_tile, from + (d) * GN_SLICE + (GN_BM + wn + (j) * 16u) * GN_SPLIT_PITCH + 2u * (part),           \
                GN_SPLIT_PITCH, gl_CooperativeMatrixLayoutColumnMajor)
#define GN_SPLIT_BEGIN                                                                                                 \
    uint first = start / 16u, blocks = (end - start + 16u * GN_DEEP - 1u) / (16u * GN_DEEP);                           \
    uint a_slice = GN_PADDED_M * GN_PIECES, b_slice = GN_PADDED_N * GN_PIECES;                                         \
    uint a_from = (min(batch, GN_A_PACKED - 1u) * GN_PACKED_SLICES + first) * a_slice + m0 * GN_PIECES;                \
    uint b_from = (min(batch, GN_B_PACKED - 1u) * GN_PACKED_SLICES + first) * b_slice + n0 * GN_PIECES;
#define GN_SPLIT_LINES(block)
#define GN_SPLIT_SECOND

#endif

#define GN_MULTIPLY(p, q) [[unroll]] for (uint d = 0u; d < GN_DEEP; d++) more = coopMatMulAdd(a[d][i][p], b[d][q], more);
#if GN_PARTS == 2
#define GN_SPLIT_PRODUCT GN_MULTIPLY(0, 1) GN_MULTIPLY(1, 0) more = more * (1.0 / 4096.0); GN_MULTIPLY(0, 0)
#else
#define GN_SPLIT_PRODUCT                                                                                               \
    GN_MULTIPLY(2, 0) GN_MULTIPLY(0, 2) GN_MULTIPLY(1, 1) GN_MULTIPLY(1, 0) GN_MULTIPLY(0, 1) GN_MULTIPLY(0, 0)
#endif

#define GN_SPLIT_LOOP                                                                                                  \
    GN_SPLIT_BEGIN                                                                                                     \
    uvec4 next_a[GN_DEEP][GN_A_LOADS], next_b[GN_DEEP][GN_B_LOADS];                                                    \
    GN_SPLIT_FETCH(0u)                                                                                                 \
    GN_SPLIT_SECOND                                                                                                    \
    GN_SPLIT_KEEP(0u)                                                                                                  \
    barrier();                                                                                                         \
    for (uint s = 0u; s < blocks; s++) {                                                                               \
        uint from = s % GN_STAGES * GN_DEEP * GN_SLICE, after = min(s + 1u, blocks - 1u);                              \
        GN_SPLIT_FETCH(after)                                                                                          \
        GN_UNIT_A a[GN_DEEP][GN_UNITS_M][GN_PARTS];                                                                    \
        [[unroll]] for (uint d = 0u; d < GN_DEEP; d++)                                                                 \
            [[unroll]] for (uint i = 0u; i < GN_UNITS_M; i++)                                                          \
                [[unroll]] for (uint p = 0u; p < GN_PARTS; p++) GN_SPLIT_LOAD_A(a[d][i][p], d, p, i);                  \
        [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++) {                                                            \
            GN_UNIT_B b[GN_DEEP][GN_PARTS];                                                                            \
            [[unroll]] for (uint d = 0u; d < GN_DEEP; d++)                                                             \
                [[unroll]] for (uint p = 0u; p < GN_PARTS; p++) GN_SPLIT_LOAD_B(b[d][p], d, p, j);                     \
            [[unroll]] for (uint i = 0u; i < GN_UNITS_M; i++) {                                                        \
                GN_UNIT_C more = GN_UNIT_C(0.0);                                                                       \
                GN_SPLIT_PRODUCT                                                                                       \
                sum[i][j] += more;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        if (GN_STAGES == 1) barrier();                                                                                 \
        GN_SPLIT_LINES(s + 2u)                                                                                         \
        GN_SPLIT_KEEP((s + 1u) % GN_STAGES)                                                                            \
        barrier();                                                                                                     \
    }
