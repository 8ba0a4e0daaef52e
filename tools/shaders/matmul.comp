#version 450
// c (batch, m, n) = a (batch, m, k) times b (batch, k, n), plus bias, through relu (gni_matmul).
//
//! variant matmul_96x128 -DGN_BM=96 -DGN_BN=128 -DGN_BK=16 -DGN_TM=12 -DGN_TN=8
//! variant matmul_64x128 -DGN_BM=64 -DGN_BN=128 -DGN_BK=16 -DGN_TM=8 -DGN_TN=8 -DGN_PM=8 -DGN_PN=4
//! variant matmul_64x64 -DGN_BM=64 -DGN_BN=64 -DGN_BK=16 -DGN_TM=8 -DGN_TN=4
//! variant matmul_32x64 -DGN_BM=32 -DGN_BN=64 -DGN_BK=16 -DGN_TM=4 -DGN_TN=4
//! variant matmul_32x32 -DGN_BM=32 -DGN_BN=32 -DGN_BK=16 -DGN_TM=4 -DGN_TN=4
//! variant matmul_64x16 -DGN_BM=64 -DGN_BN=16 -DGN_BK=32 -DGN_TM=4 -DGN_TN=4 -DGN_PM=8 -DGN_PN=4
//! variant matmul_16x64 -DGN_BM=16 -DGN_BN=64 -DGN_BK=32 -DGN_TM=4 -DGN_TN=4 -DGN_PM=4 -DGN_PN=8
//! variant matmul_32x32s -DGN_BM=32 -DGN_BN=32 -DGN_BK=16 -DGN_TM=4 -DGN_TN=4 -DGN_SMALL_CODE
//! variant matmul_int_64 -DGN_BM=64 -DGN_BN=64 -DGN_BK=8 -DGN_TM=4 -DGN_TN=4 -DGN_SMALL_CODE -DGN_INT32
//! variant matmul_f64_32 -DGN_BM=32 -DGN_BN=32 -DGN_BK=8 -DGN_TM=2 -DGN_TN=2 -DGN_SMALL_CODE -DGN_X64
//
// A workgroup makes a tile of BM rows and BN columns, an invocation TM rows and TN columns of it. Slices
// of BK columns of a and rows of b go through shared memory: while one is multiplied, the next one is put
// there from registers, and the one after it is on its way into them. With splits each workgroup takes a part
// of k, and the last ones of a tile to finish add the parts up in their order.
//
// All of a slice is written out, which is fastest on GPUs but takes compilers for CPUs seconds: GN_SMALL_CODE.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef GN_BINDINGS
#define GN_BUFFERS 6
#else
#define GN_BUFFERS 8 // two are epilogue.glsl's
#endif
#define GN_READONLY 0xb
#include "gn.glsl"
#include "matrix.glsl"
#include "epilogue.glsl"

// Neighbouring invocations form patches of PM x PN, so that their loads from shared memory coincide.
#ifndef GN_PM
#define GN_PM 4
#define GN_PN 8
#endif
#define GN_PATCH (GN_PM * GN_PN)
#define GN_ACROSS (GN_BN / GN_TN / GN_PN) // patches across a tile
#define GN_THREADS (GN_BM / GN_TM * (GN_BN / GN_TN))
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
#define GN_HAS_SPLITS ((GN_LAYOUT & 512u) != 0u)
#define GN_WHOLE ((GN_LAYOUT & 1024u) != 0u) // k is a multiple of BK

#define GN_C_ROW GN_PARAM(46)

// Slices by k, rows skewed by a group so that transposed writes meet few banks twice.
#define GN_A_PITCH (GN_BM / GN_EACH + 1)
#define GN_B_PITCH (GN_BN / GN_EACH + 1)
#define GN_A_SLICE (GN_BK * GN_A_PITCH)
#define GN_B_SLICE (GN_BK * GN_B_PITCH)
shared GN_VALUES gn_a[2 * GN_A_SLICE];
shared GN_VALUES gn_b[2 * GN_B_SLICE];

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

// GN_EACH elements from row p.x and column p.y on, along the rows or the columns. Places outside are moved to
// the nearest one inside: what comes of rows and columns outside is never written, that of k is zeroed later.
uvec4 gn_read_inside(GN_HANDLE h, uint base, uvec2 p, uvec2 limit, uint row, uint column, bool along, bool groups,
                     uint dtype) {
    p = min(p, limit - 1u);
    if (groups) return gn_read_raw(h, uvec4(base + (along ? p.x + p.y * column : p.x * row + p.y)), dtype, false, true);
    uvec4 e = uvec4(0u, 1u, 2u, 3u);
    uvec4 x = along ? min(p.x + e, uvec4(limit.x - 1u)) : uvec4(p.x);
    uvec4 y = along ? uvec4(p.y) : min(p.y + e, uvec4(limit.y - 1u));
    return gn_read_raw(h, base + x * row + y * column, dtype, false, false);
}
uvec4 gn_a_read(uint i, uint base, uint m0, uint k0, uint end) {
    return gn_read_inside(GN_OPEN(GN_A), base, gn_a_place(i) + uvec2(m0, k0), uvec2(GN_M, end), GN_A_ROW, GN_A_COLUMN,
                          GN_A_ALONG_M, GN_A_GROUPS, GN_A_DTYPE);
}
uvec4 gn_b_read(uint i, uint base, uint n0, uint k0, uint end) {
    return gn_read_inside(GN_OPEN(GN_B), base, gn_b_place(i) + uvec2(k0, n0), uvec2(end, GN_N), GN_B_ROW, GN_B_COLUMN,
                          GN_B_ALONG_K, GN_B_GROUPS, GN_B_DTYPE);
}

// What was read, as values, zeros from k = `inside` on.
GN_VALUES gn_cut(uvec4 raw, uint dtype, uint k, bool along, uint inside) {
    GN_VALUES v = GN_TO_VALUES(gn_widen(raw, dtype));
    if (GN_WHOLE || inside >= GN_BK) return v;
    [[unroll]] for (uint e = 0u; e < GN_EACH; e++)
        if (k + (along ? e : 0u) >= inside) v[e] = GN_VALUE(0);
    return v;
}
void gn_a_keep(uint stage, uint i, uvec4 raw, uint inside) {
    uvec2 p = gn_a_place(i);
    uint at = stage * GN_A_SLICE + p.y * GN_A_PITCH + p.x / GN_EACH;
    GN_VALUES v = gn_cut(raw, GN_A_DTYPE, p.y, !GN_A_ALONG_M, inside);
    if (GN_A_ALONG_M) gn_a[at] = v;
    else
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) gn_a[at + e * GN_A_PITCH][p.x % GN_EACH] = v[e];
}
void gn_b_keep(uint stage, uint i, uvec4 raw, uint inside) {
    uvec2 p = gn_b_place(i);
    uint at = stage * GN_B_SLICE + p.x * GN_B_PITCH + p.y / GN_EACH;
    GN_VALUES v = gn_cut(raw, GN_B_DTYPE, p.x, GN_B_ALONG_K, inside);
    if (!GN_B_ALONG_K) gn_b[at] = v;
    else
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) gn_b[at + e * GN_B_PITCH][p.y % GN_EACH] = v[e];
}

void gn_write_run(uint row, uint column, uint batch, GN_VALUES v, GN_VALUES bias) {
    uint count = row < GN_M ? gn_inside(column, GN_N) : 0u;
    if (count == 0u) return;
#if !defined(GN_INT32) && !defined(GN_X64)
    if (GN_HAS_BIAS) v += bias;
    if (GN_HAS_RELU) v = mix(v, vec4(0.0), lessThan(v, vec4(0.0)));
    if (GN_HAS_PROGRAM) v = gn_epilogue(v, row, column, batch, count);
#endif
    uvec4 r = gn_narrow(GN_FROM_VALUES(v), GN_C_DTYPE);
    uint at = GN_C_BASE + (batch * GN_M + row) * GN_C_ROW + column;
    if (GN_C_GROUPS && count == GN_EACH) gn_write_group(GN_OPEN(GN_C), at, GN_C_DTYPE, r);
    else gn_write_each(GN_OPEN(GN_C), at + uvec4(0u, 1u, 2u, 3u), GN_C_DTYPE, r, count);
}

// Whether load number i is there for this invocation.
#define GN_A_HAS(i) (GN_BM * GN_BK / GN_EACH % GN_THREADS == 0 || me + (i) * GN_THREADS < GN_BM * GN_BK / GN_EACH)
#define GN_B_HAS(i) (GN_BN * GN_BK / GN_EACH % GN_THREADS == 0 || me + (i) * GN_THREADS < GN_BN * GN_BK / GN_EACH)
#define GN_FETCH_A(i, k) if (GN_A_HAS(i)) next_a[i] = gn_a_read(me + (i) * GN_THREADS, base.x, m0, k, end)
#define GN_FETCH_B(i, k) if (GN_B_HAS(i)) next_b[i] = gn_b_read(me + (i) * GN_THREADS, base.y, n0, k, end)
#define GN_KEEP_A(i, stage) if (GN_A_HAS(i)) gn_a_keep(stage, me + (i) * GN_THREADS, next_a[i], inside)
#define GN_KEEP_B(i, stage) if (GN_B_HAS(i)) gn_b_keep(stage, me + (i) * GN_THREADS, next_b[i], inside)

// One step of k. Every second row goes backwards, so that it begins with the value of b that was used last.
#define GN_STEP(k)                                                                                                     \
    {                                                                                                                  \
        GN_VALUES a[GN_TM / GN_EACH], b[GN_TN / GN_EACH];                                                              \
        [[unroll]] for (uint i = 0u; i < GN_TM / GN_EACH; i++) a[i] = gn_a[from_a + (k) * GN_A_PITCH + i * GN_PM];     \
        [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) b[j] = gn_b[from_b + (k) * GN_B_PITCH + j * GN_PN];     \
        [[unroll]] for (uint i = 0u; i < GN_TM; i++)                                                                   \
            [[unroll]] for (uint l = 0u; l < GN_TN; l++) {                                                             \
                uint j = (i & 1u) != 0u ? GN_TN - 1u - l : l;                                                          \
                sum[i][j / GN_EACH][j % GN_EACH] = GN_MADD(a[i / GN_EACH][i % GN_EACH], b[j / GN_EACH][j % GN_EACH],   \
                                                           sum[i][j / GN_EACH][j % GN_EACH]);                          \
            }                                                                                                          \
    }

void main() {
    uint me = gl_LocalInvocationIndex, lane = me % GN_PATCH, patch_ = me / GN_PATCH;
    // Row and column of this invocation's first group in the tile, in groups.
    uint y = patch_ / GN_ACROSS * (GN_PM * GN_TM / GN_EACH) + lane / GN_PN;
    uint x = patch_ % GN_ACROSS * (GN_PN * GN_TN / GN_EACH) + lane % GN_PN;
    uint tile = gl_WorkGroupID.x, batch = gl_WorkGroupID.z;
    uvec2 place = gn_tile_place(tile) * uvec2(GN_BM, GN_BN), base = gn_batch(batch);
    uint m0 = place.x, n0 = place.y;
    uint split = gl_WorkGroupID.y, start = split * GN_CHUNK, end = min(start + GN_CHUNK, GN_K);
    GN_VALUES sum[GN_TM][GN_TN / GN_EACH];
    [[unroll]] for (uint i = 0u; i < GN_TM; i++)
        [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) sum[i][j] = GN_ZERO;
    uvec4 next_a[GN_A_LOADS], next_b[GN_B_LOADS];
    if (start < end) {
        uint inside = end - start;
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) GN_FETCH_A(i, start);
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) GN_FETCH_B(i, start);
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) GN_KEEP_A(i, 0u);
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) GN_KEEP_B(i, 0u);
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) GN_FETCH_A(i, start + GN_BK);
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) GN_FETCH_B(i, start + GN_BK);
    }
    barrier();
    // Past the end the fetches read something that nobody uses, which is cheaper than a branch.
    uint stage = 0u;
    for (uint k0 = start; k0 < end; k0 += GN_BK) {
        uint from_a = stage * GN_A_SLICE + y, from_b = stage * GN_B_SLICE + x;
        uint inside = max(end, k0 + GN_BK) - (k0 + GN_BK), ahead = k0 + 2u * GN_BK;
        stage = 1u - stage;
#ifdef GN_SMALL_CODE
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) {
            GN_KEEP_A(i, stage);
            GN_FETCH_A(i, ahead);
        }
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) {
            GN_KEEP_B(i, stage);
            GN_FETCH_B(i, ahead);
        }
        for (uint k = 0u; k < GN_BK; k++) GN_STEP(k)
#else
        [[unroll]] for (uint k = 0u; k < GN_BK; k++) {
            if (k < GN_A_LOADS) {
                GN_KEEP_A(k, stage);
                GN_FETCH_A(k, ahead);
            } else if (k - GN_A_LOADS < GN_B_LOADS) {
                GN_KEEP_B(k - GN_A_LOADS, stage);
                GN_FETCH_B(k - GN_A_LOADS, ahead);
            }
            GN_STEP(k)
        }
#endif
        barrier();
    }
    if (GN_HAS_SPLITS) {
        const uint part = GN_BM * GN_BN / GN_EACH;
        uint number = batch * GN_TILES_M * GN_TILES_N + tile, counter = GN_COUNTER0 + number * gn_tile_counters();
        for (uint mine = split, left = GN_SPLITS, step = 1u; left > 1u; step *= GN_JOIN) {
            uint first = number * GN_SPLITS * part + me, at = first + mine * step * part;
            [[unroll]] for (uint i = 0u; i < GN_TM; i++)
                [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++)
                    gn_put_shared(GN_PARTIALS, at + (i * (GN_TN / GN_EACH) + j) * GN_THREADS, GN_FROM_VALUES(sum[i][j]));
            uint group = mine / GN_JOIN, count = min(left - group * GN_JOIN, GN_JOIN);
            if (!gn_is_last_of(counter + group, count)) return;
            left = (left + GN_JOIN - 1u) / GN_JOIN;
            counter += left;
            mine = group;
            [[unroll]] for (uint i = 0u; i < GN_TM; i++)
                [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) sum[i][j] = GN_ZERO;
            for (uint p = 0u; p < count; p++) {
                at = first + (group * GN_JOIN + p) * step * part;
                [[unroll]] for (uint i = 0u; i < GN_TM; i++)
                    [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++)
                        sum[i][j] += GN_TO_VALUES(gn_get_shared(GN_PARTIALS, at + (i * (GN_TN / GN_EACH) + j) * GN_THREADS));
            }
        }
    }
    [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) {
        uint column = n0 + (x + j * GN_PN) * GN_EACH;
        GN_VALUES bias = GN_ZERO;
#if !defined(GN_INT32) && !defined(GN_X64)
        if (GN_HAS_BIAS)
            bias = gn_read_run(GN_OPEN(GN_BIAS), GN_BIAS_BASE + column, 1u, GN_T_F32, false, gn_inside(column, GN_N));
#endif
        [[unroll]] for (uint i = 0u; i < GN_TM; i++)
            gn_write_run(m0 + (y + i / GN_EACH * GN_PM) * GN_EACH + i % GN_EACH, column, batch, sum[i][j], bias);
    }
}
