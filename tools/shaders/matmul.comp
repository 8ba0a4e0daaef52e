#version 450
// c (batch, m, n) = a (batch, m, k) times b (batch, k, n), plus bias, through relu (gni_matmul).
//
//! variant matmul_128 -DGN_BM=128 -DGN_BN=128 -DGN_BK=16 -DGN_TM=8 -DGN_TN=8
//! variant matmul_64 -DGN_BM=64 -DGN_BN=64 -DGN_BK=16 -DGN_TM=4 -DGN_TN=4
//! variant matmul_32 -DGN_BM=32 -DGN_BN=32 -DGN_BK=32 -DGN_TM=4 -DGN_TN=4
//! variant matmul_int_64 -DGN_BM=64 -DGN_BN=64 -DGN_BK=16 -DGN_TM=4 -DGN_TN=4 -DGN_INT32
//! variant matmul_f64_32 -DGN_BM=32 -DGN_BN=32 -DGN_BK=16 -DGN_TM=2 -DGN_TN=2 -DGN_X64
//
// A workgroup makes a tile of BM rows and BN columns, an invocation TM rows and TN columns of it. Slices
// of BK columns of a and rows of b go through shared memory; the next slice is on its way in registers
// while the present one is multiplied. With splits each workgroup takes a part of k, and the last one of
// a tile to finish adds the parts up in their order.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 6
#define GN_READONLY 0xb
#include "gn.glsl"
#include "matrix.glsl"

#define GN_ACROSS (GN_BN / GN_TN) // invocations across a tile
#define GN_DOWN (GN_BM / GN_TM)
#define GN_THREADS (GN_ACROSS * GN_DOWN)
layout(local_size_x = GN_THREADS) in;

layout(constant_id = 0) const uint GN_A_DTYPE = 0u;
layout(constant_id = 1) const uint GN_B_DTYPE = 0u;
layout(constant_id = 2) const uint GN_C_DTYPE = 0u;
layout(constant_id = 3) const uint GN_LAYOUT = 0u;
#define GN_A_ALONG_M ((GN_LAYOUT & 1u) != 0u)  // a is read along m, else along k
#define GN_A_GROUPS ((GN_LAYOUT & 2u) != 0u)   // in aligned groups
#define GN_B_ALONG_K ((GN_LAYOUT & 4u) != 0u)  // b is read along k, else along n
#define GN_B_GROUPS ((GN_LAYOUT & 8u) != 0u)
#define GN_C_GROUPS ((GN_LAYOUT & 16u) != 0u)
#define GN_HAS_BIAS ((GN_LAYOUT & 32u) != 0u)
#define GN_HAS_RELU ((GN_LAYOUT & 64u) != 0u)

#define GN_C_ROW GN_PARAM(46)

// Slices by k, rows skewed by a group so that transposed writes meet few banks twice.
#define GN_A_PITCH (GN_BM / GN_EACH + 1)
#define GN_B_PITCH (GN_BN / GN_EACH + 1)
shared GN_VALUES gn_a[GN_BK * GN_A_PITCH];
shared GN_VALUES gn_b[GN_BK * GN_B_PITCH];

#define GN_A_LOADS ((GN_BM * GN_BK / GN_EACH + GN_THREADS - 1) / GN_THREADS)
#define GN_B_LOADS ((GN_BN * GN_BK / GN_EACH + GN_THREADS - 1) / GN_THREADS)

// Load number i of a slice of a: its first element's row and column in the slice. Neighbouring
// invocations read neighbouring memory.
uvec2 gn_a_place(uint i) {
    return GN_A_ALONG_M ? uvec2(i % (GN_BM / GN_EACH) * GN_EACH, i / (GN_BM / GN_EACH))
                        : uvec2(i / (GN_BK / GN_EACH), i % (GN_BK / GN_EACH) * GN_EACH);
}
uvec2 gn_b_place(uint i) { // row is along k
    return GN_B_ALONG_K ? uvec2(i % (GN_BK / GN_EACH) * GN_EACH, i / (GN_BK / GN_EACH))
                        : uvec2(i / (GN_BN / GN_EACH), i % (GN_BN / GN_EACH) * GN_EACH);
}

GN_VALUES gn_a_read(uint i, uint base, uint m0, uint k0, uint k1) {
    uvec2 p = gn_a_place(i) + uvec2(m0, k0);
    uint at = base + p.x * GN_A_ROW + p.y * GN_A_COLUMN;
    uint count = GN_A_ALONG_M ? (p.y < k1 ? gn_inside(p.x, GN_M) : 0u) : (p.x < GN_M ? gn_inside(p.y, k1) : 0u);
    return gn_read_run(GN_OPEN(GN_A), at, GN_A_ALONG_M ? GN_A_ROW : GN_A_COLUMN, GN_A_DTYPE, GN_A_GROUPS, count);
}
GN_VALUES gn_b_read(uint i, uint base, uint n0, uint k0, uint k1) {
    uvec2 p = gn_b_place(i) + uvec2(k0, n0);
    uint at = base + p.x * GN_B_ROW + p.y * GN_B_COLUMN;
    uint count = GN_B_ALONG_K ? (p.y < GN_N ? gn_inside(p.x, k1) : 0u) : (p.x < k1 ? gn_inside(p.y, GN_N) : 0u);
    return gn_read_run(GN_OPEN(GN_B), at, GN_B_ALONG_K ? GN_B_ROW : GN_B_COLUMN, GN_B_DTYPE, GN_B_GROUPS, count);
}

void gn_a_keep(uint i, GN_VALUES v) {
    uvec2 p = gn_a_place(i);
    if (GN_A_ALONG_M) {
        gn_a[p.y * GN_A_PITCH + p.x / GN_EACH] = v;
    } else {
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) gn_a[(p.y + e) * GN_A_PITCH + p.x / GN_EACH][p.x % GN_EACH] = v[e];
    }
}
void gn_b_keep(uint i, GN_VALUES v) {
    uvec2 p = gn_b_place(i);
    if (GN_B_ALONG_K) {
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) gn_b[(p.x + e) * GN_B_PITCH + p.y / GN_EACH][p.y % GN_EACH] = v[e];
    } else {
        gn_b[p.x * GN_B_PITCH + p.y / GN_EACH] = v;
    }
}

void gn_write_run(uint row, uint column, uint batch, GN_VALUES v, GN_VALUES bias) {
    uint count = row < GN_M ? gn_inside(column, GN_N) : 0u;
    if (count == 0u) return;
#if !defined(GN_INT32) && !defined(GN_X64)
    if (GN_HAS_BIAS) v += bias;
    if (GN_HAS_RELU) v = mix(v, vec4(0.0), lessThan(v, vec4(0.0)));
#endif
    uvec4 r = gn_narrow(GN_FROM_VALUES(v), GN_C_DTYPE);
    uint at = GN_C_BASE + (batch * GN_M + row) * GN_C_ROW + column;
    if (GN_C_GROUPS && count == GN_EACH) gn_write_group(GN_OPEN(GN_C), at, GN_C_DTYPE, r);
    else gn_write_each(GN_OPEN(GN_C), at + uvec4(0u, 1u, 2u, 3u), GN_C_DTYPE, r, count);
}

void main() {
    uint me = gl_LocalInvocationIndex, x = me % GN_ACROSS, y = me / GN_ACROSS;
    uint tile = gl_WorkGroupID.x, m0 = tile / GN_TILES_N * GN_BM, n0 = tile % GN_TILES_N * GN_BN;
    uint split = gl_WorkGroupID.y, start = split * GN_CHUNK, end = min(start + GN_CHUNK, GN_K);
    for (uint batch = gl_WorkGroupID.z; batch < GN_BATCHES; batch += gl_NumWorkGroups.z) {
        uvec2 base = gn_batch(batch);
        GN_VALUES sum[GN_TM][GN_TN / GN_EACH];
        [[unroll]] for (uint i = 0u; i < GN_TM; i++)
            [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) sum[i][j] = GN_ZERO;
        GN_VALUES next_a[GN_A_LOADS], next_b[GN_B_LOADS];
        // Each round fetches one slice and multiplies the one before it, so that both are written once.
        for (uint k0 = start;; k0 += GN_BK) {
            if (k0 < end) {
                [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++)
                    next_a[i] = gn_a_read(me + i * GN_THREADS, base.x, m0, k0, end);
                [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++)
                    next_b[i] = gn_b_read(me + i * GN_THREADS, base.y, n0, k0, end);
            }
            for (uint k = 0u; k < (k0 > start ? GN_BK : 0u); k++) {
                GN_VALUES a[GN_TM / GN_EACH], b[GN_TN / GN_EACH];
                [[unroll]] for (uint i = 0u; i < GN_TM / GN_EACH; i++) a[i] = gn_a[k * GN_A_PITCH + y + i * GN_DOWN];
                [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) b[j] = gn_b[k * GN_B_PITCH + x + j * GN_ACROSS];
                [[unroll]] for (uint i = 0u; i < GN_TM; i++)
                    [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++)
                        sum[i][j] = GN_MADD(GN_VALUES(a[i / GN_EACH][i % GN_EACH]), b[j], sum[i][j]);
            }
            if (k0 >= end) break;
            barrier();
            [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) gn_a_keep(me + i * GN_THREADS, next_a[i]);
            [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) gn_b_keep(me + i * GN_THREADS, next_b[i]);
            barrier();
        }
        if (GN_SPLITS > 1u) {
            uint number = batch * GN_TILES_M * GN_TILES_N + tile, run = GN_THREADS;
            uint at = (number * GN_SPLITS + split) * (GN_BM * GN_BN / GN_EACH) + me;
            [[unroll]] for (uint i = 0u; i < GN_TM; i++)
                [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++)
                    gn_put_shared(GN_PARTIALS, at + (i * (GN_TN / GN_EACH) + j) * run, GN_FROM_VALUES(sum[i][j]));
            if (!gn_is_last(GN_COUNTER0 + number)) continue;
            [[unroll]] for (uint i = 0u; i < GN_TM; i++)
                [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) sum[i][j] = GN_ZERO;
            for (uint p = 0u; p < GN_SPLITS; p++) {
                at = (number * GN_SPLITS + p) * (GN_BM * GN_BN / GN_EACH) + me;
                [[unroll]] for (uint i = 0u; i < GN_TM; i++)
                    [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++)
                        sum[i][j] += GN_TO_VALUES(gn_get_shared(GN_PARTIALS, at + (i * (GN_TN / GN_EACH) + j) * run));
            }
        }
        [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) {
            uint column = n0 + (x + j * GN_ACROSS) * GN_EACH;
            GN_VALUES bias = GN_ZERO;
#if !defined(GN_INT32) && !defined(GN_X64)
            if (GN_HAS_BIAS)
                bias = gn_read_run(GN_OPEN(GN_BIAS), GN_BIAS_BASE + column, 1u, GN_T_F32, false, gn_inside(column, GN_N));
#endif
            [[unroll]] for (uint i = 0u; i < GN_TM; i++)
                gn_write_run(m0 + (y + i / GN_EACH * GN_DOWN) * GN_EACH + i % GN_EACH, column, batch, sum[i][j], bias);
        }
    }
}
