// matmul_half.comp's loop for float32 operands in parts, as split.comp packs them.
//
// A slice is 16 of k. DEEP of them are multiplied at a time, from one of STAGES places in shared memory. What they add
// to a 16x16 of the result comes from the matrix unit, which cuts off instead of rounding, and is added to the sums
// outside of it: the products of float16's smaller parts first, scaled down by 2^12, bfloat16's in order of size.
// Past the last slice one that is there already is fetched.

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

#define GN_A_LOADS ((GN_BM * GN_PIECES + GN_THREADS - 1) / GN_THREADS)
#define GN_B_LOADS ((GN_BN * GN_PIECES + GN_THREADS - 1) / GN_THREADS)

uint gn_a_info(uint batch, uint row) { return GN_A_INFO + 2u * (min(batch, GN_A_PACKED - 1u) * GN_PADDED_M + row); }
uint gn_b_info(uint batch, uint row) { return GN_B_INFO + 2u * (min(batch, GN_B_PACKED - 1u) * GN_PADDED_N + row); }
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
        GN_SPLIT_KEEP((s + 1u) % GN_STAGES)                                                                            \
        barrier();                                                                                                     \
    }
