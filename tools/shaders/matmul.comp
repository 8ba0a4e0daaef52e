#version 450
// c (batch, m, n) = a (batch, m, k) times b (batch, k, n), plus bias, through relu (gni_matmul).
//
//! variant matmul_96x128 -DGN_BM=96 -DGN_BN=128 -DGN_BK=16 -DGN_TM=12 -DGN_TN=8
//! variant matmul_128x128 -DGN_BM=128 -DGN_BN=128 -DGN_BK=32 -DGN_SLICES=4 -DGN_TM=8 -DGN_TN=8 -DGN_DELAY=4 -DGN_ODD=1
//! variant matmul_64x128 -DGN_BM=64 -DGN_BN=128 -DGN_BK=16 -DGN_TM=8 -DGN_TN=8 -DGN_PM=8 -DGN_PN=4
//! variant matmul_64x64 -DGN_BM=64 -DGN_BN=64 -DGN_BK=16 -DGN_TM=8 -DGN_TN=4 -DGN_HAS_PROLOGUE
//! variant matmul_64x64_4 -DGN_BM=64 -DGN_BN=64 -DGN_BK=32 -DGN_TM=8 -DGN_TN=8 -DGN_PM=8 -DGN_PN=4 -DGN_TEAMS=4 -DGN_HAS_PROLOGUE
//! variant matmul_128x32 -DGN_BM=128 -DGN_BN=32 -DGN_BK=32 -DGN_TM=8 -DGN_TN=8 -DGN_PM=8 -DGN_PN=4 -DGN_TEAMS=2 -DGN_HAS_PROLOGUE
//! variant matmul_32x128 -DGN_BM=32 -DGN_BN=128 -DGN_BK=32 -DGN_TM=8 -DGN_TN=8 -DGN_TEAMS=2 -DGN_HAS_PROLOGUE
//! variant matmul_32x64 -DGN_BM=32 -DGN_BN=64 -DGN_BK=32 -DGN_TM=4 -DGN_TN=4 -DGN_TEAMS=2 -DGN_HAS_PROLOGUE
//! variant matmul_32x32 -DGN_BM=32 -DGN_BN=32 -DGN_BK=32 -DGN_TM=4 -DGN_TN=4 -DGN_TEAMS=4 -DGN_HAS_PROLOGUE
//! variant matmul_128x16 -DGN_BM=128 -DGN_BN=16 -DGN_BK=32 -DGN_TM=8 -DGN_TN=4 -DGN_PM=8 -DGN_PN=4 -DGN_TEAMS=2 -DGN_HAS_PROLOGUE
//! variant matmul_16x128 -DGN_BM=16 -DGN_BN=128 -DGN_BK=32 -DGN_TM=4 -DGN_TN=8 -DGN_PM=4 -DGN_PN=8 -DGN_TEAMS=2 -DGN_HAS_PROLOGUE
//! variant matmul_128x8 -DGN_BM=128 -DGN_BN=8 -DGN_BK=32 -DGN_TM=8 -DGN_TN=4 -DGN_PM=16 -DGN_PN=2 -DGN_TEAMS=4 -DGN_HAS_PROLOGUE
//! variant matmul_8x128 -DGN_BM=8 -DGN_BN=128 -DGN_BK=32 -DGN_TM=4 -DGN_TN=8 -DGN_PM=2 -DGN_PN=16 -DGN_TEAMS=4 -DGN_HAS_PROLOGUE
//! variant matmul_32x32s -DGN_BM=32 -DGN_BN=32 -DGN_BK=16 -DGN_TM=4 -DGN_TN=4 -DGN_SMALL_CODE -DGN_HAS_PROLOGUE
//! variant matmul_int_64 -DGN_BM=64 -DGN_BN=64 -DGN_BK=8 -DGN_TM=4 -DGN_TN=4 -DGN_SMALL_CODE -DGN_INT32
//! variant matmul_f64_128x128 -DGN_BM=128 -DGN_BN=128 -DGN_BK=8 -DGN_TM=8 -DGN_TN=8 -DGN_X64
//! variant matmul_f64_64x64 -DGN_BM=64 -DGN_BN=64 -DGN_BK=8 -DGN_TM=8 -DGN_TN=4 -DGN_X64
//! variant matmul_f64_64x32 -DGN_BM=64 -DGN_BN=32 -DGN_BK=16 -DGN_TM=4 -DGN_TN=4 -DGN_X64
//! variant matmul_f64_32 -DGN_BM=32 -DGN_BN=32 -DGN_BK=8 -DGN_TM=2 -DGN_TN=2 -DGN_SMALL_CODE -DGN_X64
//
// A workgroup makes a tile of BM rows and BN columns, an invocation TM rows and TN columns of it. Slices
// of columns of a and rows of b go through shared memory: while one is multiplied, the next one is put
// there from registers. GN_DELAY 0: an element is asked for a slice before it is put there, which hides the
// most latency; else GN_DELAY steps before, which takes fewer registers. BK is 1, 2 or 4 slices, since every turn
// of the loop costs drivers some moves between registers. GN_TEAMS teams of invocations share a small tile, each
// has its part of every slice. With splits the first workgroups take whole tiles, the others a part of k each of the
// rest, and the last ones of a tile to finish add the parts up in their order.
//
// All of BK is written out, which is fastest on GPUs but takes compilers for CPUs seconds: GN_SMALL_CODE.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef GN_BINDINGS
#define GN_BUFFERS 6
#else
#define GN_BUFFERS 8 // 6 and 7 are epilogue.glsl's, or 6 for GN_IS_SPARE or GN_HAS_SUMS
#endif
#define GN_READONLY 0xb
#ifdef GN_BINDINGS
#undef GN_HAS_PROLOGUE
#endif
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
#ifndef GN_TEAMS
#define GN_TEAMS 1
#endif
#ifndef GN_SLICES
#define GN_SLICES 1 // 1 or even
#endif
#ifndef GN_DELAY
#define GN_DELAY 0
#endif
// 1: pairs of values of b change places, so that a value and the sum it goes into are in different banks of
// registers.
#ifndef GN_ODD
#define GN_ODD 0
#endif
#define GN_TEAM (GN_BM / GN_TM * (GN_BN / GN_TN))
#define GN_THREADS (GN_TEAM * GN_TEAMS)
#define GN_SLICE (GN_BK / GN_SLICES)
#define GN_STEPS (GN_SLICE / GN_TEAMS)
#define GN_ROWS (GN_TM / GN_TEAMS) // that an invocation writes
layout(local_size_x = GN_THREADS) in;

#include "store.glsl"
#ifdef GN_WGSL // no workgroup waits for another one
#define GN_HAS_SPLITS false
#else
#define GN_HAS_SPLITS ((GN_LAYOUT & GNI_F_MATMUL_SPLITS) != 0u)
#endif
#define GN_WHOLE ((GN_LAYOUT & GNI_F_MATMUL_WHOLE) != 0u)
#define GN_IS_SPARE ((GN_LAYOUT & GNI_F_MATMUL_SPARE) != 0u)

#if defined(GN_BINDINGS) || defined(GN_INT32) || defined(GN_X64)
#define GN_HAS_SUMS false
#else
#define GN_HAS_SUMS ((GN_LAYOUT & GNI_F_MATMUL_SUMS) != 0u)
#endif

#define GN_WHOLE_TILES GN_PARAM(GNI_P_MATMUL_WHOLE_TILES)

// Slices by k, rows skewed by a group so that transposed writes meet few banks twice.
#define GN_A_PITCH (GN_BM / GN_EACH + 1)
#define GN_B_PITCH (GN_BN / GN_EACH + 1)
#define GN_A_SLICE (GN_SLICE * GN_A_PITCH)
#define GN_B_SLICE (GN_SLICE * GN_B_PITCH)
#ifdef GN_X64
#define GN_SWAPPED(v) (v).yx
#else
#define GN_SWAPPED(v) (v).yxwz
#endif
#define GN_B0 (2 * GN_A_SLICE)
shared GN_VALUES gn_slices[2 * (GN_A_SLICE + GN_B_SLICE)]; // two of a, two of b

#ifdef GN_HAS_PROLOGUE
#include "prologue.glsl"
#endif

#define GN_A_LOADS ((GN_BM * GN_SLICE / GN_EACH + GN_THREADS - 1) / GN_THREADS)
#define GN_B_LOADS ((GN_BN * GN_SLICE / GN_EACH + GN_THREADS - 1) / GN_THREADS)

// Load number i of a slice of a: its first element's row and column in the slice. Neighbouring
// invocations read neighbouring memory.
uvec2 gn_a_place(uint i) {
    return GN_A_ALONG_M ? uvec2(i % (GN_BM / GN_EACH) * GN_EACH, i / (GN_BM / GN_EACH))
                        : uvec2(i / (GN_SLICE / GN_EACH), i % (GN_SLICE / GN_EACH) * GN_EACH);
}
uvec2 gn_b_place(uint i) { // row is along k
    return GN_B_ALONG_K ? uvec2(i % (GN_SLICE / GN_EACH) * GN_EACH, i / (GN_SLICE / GN_EACH))
                        : uvec2(i / (GN_BN / GN_EACH), i % (GN_BN / GN_EACH) * GN_EACH);
}

// Group number g of an operand.
uvec4 gn_read_group(GN_HANDLE h, uint g, uint dtype) {
#ifndef GN_X64
    if (gn_packing(dtype) == 1u) {
        uvec2 u = GN_AT2(h, g);
        return uvec4(u.x & 0xffffu, u.x >> 16, u.y & 0xffffu, u.y >> 16);
    }
#endif
    return GN_AT4(h, g);
}

// A stride, which may be negative, in groups.
uint gn_group_step(uint step) { return uint(int(step) / GN_EACH); }

// The group at row p.x, and with GN_WHOLE at column p.y, of a block of rows from `first` on.
uint gn_group_at(uint base, uint first, uvec2 p, uint rows, uint row, uint column, bool along) {
    uint r = min(first + p.x, rows - 1u);
    uint at = along ? (base + r) / GN_EACH : base / GN_EACH + r * gn_group_step(row);
    return GN_WHOLE ? at + (along ? p.y * gn_group_step(column) : p.y / GN_EACH) : at;
}

// GN_EACH elements from row p.x and column k0 + p.y on, along the rows or the columns. Places outside are moved to
// the nearest one inside: what comes of rows and columns outside is never written, that of k is zeroed later.
// `at`: what gn_group_at says.
uvec4 gn_read_inside(GN_HANDLE h, uint base, uint at, uint first, uvec2 p, uint k0, uvec2 limit, uint row, uint column,
                     bool along, bool groups, uint dtype) {
    if (groups) {
        uint k = GN_WHOLE ? min(k0, limit.y - GN_SLICE) : min(k0 + p.y, limit.y - 1u);
        return gn_read_group(h, at + (along ? k * gn_group_step(column) : k / GN_EACH), dtype);
    }
    p = min(p + uvec2(first, k0), limit - 1u);
    uvec4 e = uvec4(0u, 1u, 2u, 3u);
    uvec4 x = along ? min(p.x + e, uvec4(limit.x - 1u)) : uvec4(p.x);
    uvec4 y = along ? uvec4(p.y) : min(p.y + e, uvec4(limit.y - 1u));
    return gn_read_raw(h, base + x * row + y * column, dtype, false, false);
}
uvec4 gn_a_read(uint i, uint base, uint at, uint m0, uint k0, uint end) {
    return gn_read_inside(GN_OPEN(GN_A), base, at, m0, gn_a_place(i), k0, uvec2(GN_M, end), GN_A_ROW, GN_A_COLUMN,
                          GN_A_ALONG_M, GN_A_GROUPS, GN_A_DTYPE);
}
uvec4 gn_b_read(uint i, uint base, uint at, uint n0, uint k0, uint end) {
    if (GN_WINDOWS) {
        uint k = gn_b_place(i).x;
        k = GN_EVEN && GN_B_ALONG_K ? gn_window(GNI_P_WINDOWS_K, min(k0, end - GN_SLICE)) + k
                                    : gn_window(GNI_P_WINDOWS_K, min(k0 + k, end - 1u));
        return gn_read_group(GN_OPEN(GN_B), at + k / GN_EACH, GN_B_DTYPE);
    }
    return gn_read_inside(GN_OPEN(GN_B), base, at, n0, gn_b_place(i).yx, k0, uvec2(GN_N, end), GN_B_COLUMN, GN_B_ROW,
                          !GN_B_ALONG_K, GN_B_GROUPS, GN_B_DTYPE);
}

// What was read, as values, zeros from k = `inside` on.
GN_VALUES gn_cut(uvec4 raw, uint dtype, uint k, bool along, uint inside) {
    GN_VALUES v = GN_TO_VALUES(gn_widen(raw, dtype));
    if (GN_WHOLE || inside >= GN_SLICE) return v;
    [[unroll]] for (uint e = 0u; e < GN_EACH; e++)
        if (k + (along ? e : 0u) >= inside) v[e] = GN_VALUE(0);
    return v;
}
void gn_a_keep(uint stage, uint i, uvec4 raw, uint inside) {
    uvec2 p = gn_a_place(i);
    uint at = stage * GN_A_SLICE + p.y * GN_A_PITCH + p.x / GN_EACH;
    GN_VALUES v = gn_cut(raw, GN_A_DTYPE, p.y, !GN_A_ALONG_M, inside);
    if (GN_A_ALONG_M) gn_slices[at] = v;
    else
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) gn_slices[at + e * GN_A_PITCH][p.x % GN_EACH] = v[e];
}
GN_VALUES gn_b_keep(uint stage, uint i, uvec4 raw, uint inside) {
    uvec2 p = gn_b_place(i);
    uint at = GN_B0 + stage * GN_B_SLICE + p.x * GN_B_PITCH + p.y / GN_EACH;
    GN_VALUES v = gn_cut(raw, GN_B_DTYPE, p.x, GN_B_ALONG_K, inside);
    if (!GN_B_ALONG_K) gn_slices[at] = GN_ODD == 1 ? GN_SWAPPED(v) : v;
    else
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) gn_slices[at + e * GN_B_PITCH][(p.y ^ GN_ODD) % GN_EACH] = v[e];
    return v;
}

// ---- the sums of b's columns, which the workgroups of the first row of tiles make of what they load anyway

// Groups that an invocation adds its loads up in: one, since all of them are of the same columns, or along k a number
// for each of them. It costs less than to ask whether someone wants them.
#define GN_COLUMNS (GN_BN / GN_EACH)
#define GN_GATHERED ((GN_B_LOADS + GN_EACH - 1) / GN_EACH)
void gn_add_kept(inout GN_VALUES columns[GN_GATHERED], uint i, GN_VALUES v, uint inside) {
#if !defined(GN_INT32) && !defined(GN_X64)
    if (inside == 0u) v = GN_ZERO; // fetched past the end
    if (GN_B_ALONG_K) columns[i / 4u][i % 4u] += (v.x + v.y) + (v.z + v.w);
    else columns[0] += v;
#endif
}
// In invocation `me` of the first GN_COLUMNS: the tile's sums of its columns 4 me to 4 me + 3.
GN_VALUES gn_gather_columns(GN_VALUES columns[GN_GATHERED]) {
    GN_VALUES v = GN_ZERO;
#if !defined(GN_INT32) && !defined(GN_X64)
    uint me = gl_LocalInvocationIndex;
    if (GN_B_ALONG_K)
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) {
            uint at = me + i * GN_THREADS;
            if (at < GN_BN * GN_SLICE / 4) gn_slices[at / 4u][at % 4u] = columns[i / 4u][i % 4u];
        }
    else gn_slices[me] = columns[0];
    barrier();
    if (me < GN_COLUMNS) {
        if (GN_B_ALONG_K)
            for (uint q = 0u; q < GN_SLICE / 4; q++)
                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                    uint at = (4u * me + e) * (GN_SLICE / 4) + q;
                    v[e] += gn_slices[at / 4u][at % 4u];
                }
        else
            for (uint q = me; q < GN_THREADS; q += GN_COLUMNS) v += gn_slices[q];
    }
    barrier();
#endif
    return v;
}
void gn_write_columns(uint column, GN_VALUES v) {
#if !defined(GN_BINDINGS) && !defined(GN_INT32) && !defined(GN_X64)
    gn_write_each(GN_OPEN(6u), GN_BIAS_BASE + column + uvec4(0u, 1u, 2u, 3u), GN_C_DTYPE,
                  gn_narrow(GN_FROM_VALUES(v), GN_C_DTYPE), gn_inside(column, GN_N));
#endif
}

// Whether load number i is there for this invocation.
#define GN_A_HAS(i) (GN_BM * GN_SLICE / GN_EACH % GN_THREADS == 0 || me + (i) * GN_THREADS < GN_BM * GN_SLICE / GN_EACH)
#define GN_B_HAS(i) (GN_BN * GN_SLICE / GN_EACH % GN_THREADS == 0 || me + (i) * GN_THREADS < GN_BN * GN_SLICE / GN_EACH)
#define GN_FETCH_A(i, k) if (GN_A_HAS(i)) next_a[i] = gn_a_read(me + (i) * GN_THREADS, base.x, at_a[i], m0, k, end)
#define GN_FETCH_B(i, k) if (GN_B_HAS(i)) next_b[i] = gn_b_read(me + (i) * GN_THREADS, base.y, at_b[i], n0, k, end)
#define GN_KEEP_A(i, stage) if (GN_A_HAS(i)) gn_a_keep(stage, me + (i) * GN_THREADS, next_a[i], inside)
#define GN_KEEP_B(i, stage)                                                                                            \
    if (GN_B_HAS(i)) {                                                                                                 \
        GN_VALUES kept = gn_b_keep(stage, me + (i) * GN_THREADS, next_b[i], inside);                                   \
        if (GN_HAS_SUMS) gn_add_kept(columns, i, kept, inside);                                                        \
    }

#ifdef GN_HAS_PROLOGUE
// Where an operand is made: load number i, an invocation's place in u, v and w, is put into shared memory, then asked
// for at k.
void gn_prologue_a(inout uvec4 u, inout uvec4 v, inout uvec4 w, bool keeps, uint i, uint stage, uint inside, uint at,
                uint base, uint m0, uint k, uint end, uint batch) {
    if (keeps) gn_a_keep(stage, i, GN_PROLOGUE == 1u ? gn_prologue_make(u, v, w) : u, inside);
    if (GN_PROLOGUE == 1u) gn_prologue_fetch(u, v, w, gn_a_place(i), m0, k, uvec2(GN_M, end), GN_A_ALONG_M, batch);
    else u = gn_a_read(i, base, at, m0, k, end);
}
void gn_prologue_b(inout uvec4 u, inout uvec4 v, inout uvec4 w, bool keeps, uint i, uint stage, uint inside, uint at,
                uint base, uint n0, uint k, uint end, uint batch) {
    if (keeps) gn_b_keep(stage, i, GN_PROLOGUE == 2u ? gn_prologue_make(u, v, w) : u, inside);
    if (GN_PROLOGUE == 2u) gn_prologue_fetch(u, v, w, gn_b_place(i).yx, n0, k, uvec2(GN_N, end), !GN_B_ALONG_K, batch);
    else u = gn_b_read(i, base, at, n0, k, end);
}
#define GN_PROLOGUE_A(i, keeps)                                                                                           \
    if (GN_A_HAS(i))                                                                                                   \
        gn_prologue_a(next_a[i], second[i], third[i], keeps, me + (i) * GN_THREADS, stage, inside, at_a[i], base.x, m0,   \
                   ahead, end, batch);
#define GN_PROLOGUE_B(i, keeps)                                                                                           \
    if (GN_B_HAS(i))                                                                                                   \
        gn_prologue_b(next_b[i], second[i], third[i], keeps, me + (i) * GN_THREADS, stage, inside, at_b[i], base.y, n0,   \
                   ahead, end, batch);
#define GN_ASK_A(i) GN_PROLOGUE_A(i, false)
#define GN_ASK_B(i) GN_PROLOGUE_B(i, false)
#define GN_PASS_A(i) GN_PROLOGUE_A(i, true)
#define GN_PASS_B(i) GN_PROLOGUE_B(i, true)
// Without loops: drivers do not write out those with so much in them, and what they index goes to memory.
#define GN_FOR_1(X) X(0)
#define GN_FOR_2(X) X(0) X(1)
#define GN_FOR_4(X) X(0) X(1) X(2) X(3)
#define GN_FOR_8(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#if GN_A_LOADS == 1
#define GN_FOR_A GN_FOR_1
#elif GN_A_LOADS == 2
#define GN_FOR_A GN_FOR_2
#elif GN_A_LOADS == 4
#define GN_FOR_A GN_FOR_4
#else
#define GN_FOR_A GN_FOR_8
#endif
#if GN_B_LOADS == 1
#define GN_FOR_B GN_FOR_1
#elif GN_B_LOADS == 2
#define GN_FOR_B GN_FOR_2
#elif GN_B_LOADS == 4
#define GN_FOR_B GN_FOR_4
#else
#define GN_FOR_B GN_FOR_8
#endif
// The loads spread over the steps, as without.
#define GN_STEPS_AT(i)                                                                                                 \
    [[unroll]] for (uint k = (i) * GN_STEPS / (GN_A_LOADS + GN_B_LOADS);                                               \
                    k < ((i) + 1) * GN_STEPS / (GN_A_LOADS + GN_B_LOADS); k++)                                         \
        GN_STEP(k)
#define GN_WORK_A(i) GN_PASS_A(i) GN_STEPS_AT(i)
#define GN_WORK_B(i) GN_PASS_B(i) GN_STEPS_AT(GN_A_LOADS + (i))
#define GN_PROLOGUE_LOADS (GN_A_LOADS > GN_B_LOADS ? GN_A_LOADS : GN_B_LOADS)
#endif

// The step in which load number i is put into shared memory, with GN_DELAY.
#define GN_WHEN(i) (GN_DELAY + (i) * (GN_STEPS - 1 - GN_DELAY) / (GN_A_LOADS + GN_B_LOADS - 1))

// One step of k. Every second row goes backwards, so that it begins with the value of b that was used last.
#define GN_STEP(k)                                                                                                     \
    {                                                                                                                  \
        GN_VALUES a[GN_TM / GN_EACH], b[GN_TN / GN_EACH];                                                              \
        [[unroll]] for (uint i = 0u; i < GN_TM / GN_EACH; i++) a[i] = gn_slices[from_a + (k) * GN_A_PITCH + i * GN_PM];     \
        [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) b[j] = gn_slices[from_b + (k) * GN_B_PITCH + j * GN_PN];     \
        [[unroll]] for (uint i = 0u; i < GN_TM; i++)                                                                   \
            [[unroll]] for (uint l = 0u; l < GN_TN; l++) {                                                             \
                uint j = (i & 1u) != 0u ? GN_TN - 1u - l : l;                                                          \
                sum[i][j / GN_EACH][j % GN_EACH] = GN_MADD(a[i / GN_EACH][i % GN_EACH], b[j / GN_EACH][(j ^ GN_ODD) % GN_EACH],   \
                                                           sum[i][j / GN_EACH][j % GN_EACH]);                          \
            }                                                                                                          \
    }

// Row number i of an invocation whose first group is y.
uint gn_row(uint y, uint i) { return (y + i / GN_EACH * GN_PM) * GN_EACH + i % GN_EACH; }

void main() {
#ifndef GN_BINDINGS
    if (GN_IS_SPARE && gn_load(6u, 0u) != 2u) return;
#endif
    uint me = gl_LocalInvocationIndex, team = me / GN_TEAM, member = me % GN_TEAM;
    uint lane = member % GN_PATCH, patch_ = member / GN_PATCH;
    // Row and column of this invocation's first group in the tile, in groups.
    // Lanes two by two, so that loads coincide for lanes that are one or two apart.
    uint y = patch_ / GN_ACROSS * (GN_PM * GN_TM / GN_EACH) + lane / (2 * GN_PN) * 2 + lane % 2;
    uint x = patch_ % GN_ACROSS * (GN_PN * GN_TN / GN_EACH) + lane / 2 % GN_PN;
    uint tile = gl_WorkGroupID.x, batch = gl_WorkGroupID.z, number = 0u, split = 0u, start = 0u, end = GN_K;
    bool joins = GN_HAS_SPLITS && tile >= GN_WHOLE_TILES;
    if (joins) {
        uint others = GN_TILES_M * GN_TILES_N * GN_BATCHES - GN_WHOLE_TILES;
        split = (tile - GN_WHOLE_TILES) / others;
        number = tile - GN_WHOLE_TILES - split * others;
        tile = GN_WHOLE_TILES + number;
        start = split * GN_CHUNK;
        end = min(start + GN_CHUNK, GN_K);
    }
    if (GN_HAS_SPLITS) {
        batch = tile / (GN_TILES_M * GN_TILES_N);
        tile -= batch * (GN_TILES_M * GN_TILES_N);
    }
    uvec2 place = gn_tile_place(tile) * uvec2(GN_BM, GN_BN), base = gn_batch(batch);
    uint m0 = place.x, n0 = place.y;
    GN_VALUES sum[GN_TM][GN_TN / GN_EACH];
    [[unroll]] for (uint i = 0u; i < GN_TM; i++)
        [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) sum[i][j] = GN_ZERO;
    GN_VALUES columns[GN_GATHERED];
    if (GN_HAS_SUMS)
        [[unroll]] for (uint i = 0u; i < GN_GATHERED; i++) columns[i] = GN_ZERO;
    uvec4 next_a[GN_A_LOADS], next_b[GN_B_LOADS];
#ifdef GN_HAS_PROLOGUE
    uvec4 second[GN_PROLOGUE_LOADS], third[GN_PROLOGUE_LOADS]; // second and third inputs of an operand that is made
#endif
    uint at_a[GN_A_LOADS], at_b[GN_B_LOADS];
    [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++)
        at_a[i] = gn_group_at(base.x, m0, gn_a_place(me + i * GN_THREADS), GN_M, GN_A_ROW, GN_A_COLUMN, GN_A_ALONG_M);
    [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) {
        uvec2 p = gn_b_place(me + i * GN_THREADS).yx;
        at_b[i] = GN_WINDOWS ? (base.y + gn_window(GNI_P_WINDOWS_N, min(n0 + p.x, GN_N - 1u))) / GN_EACH
                             : gn_group_at(base.y, n0, p, GN_N, GN_B_COLUMN, GN_B_ROW, !GN_B_ALONG_K);
    }
#ifdef GN_HAS_PROLOGUE
    if (GN_PROLOGUE != 0u && start < end) {
        uint inside = end - start, stage = 0u, ahead = start;
        GN_FOR_A(GN_ASK_A)
        GN_FOR_B(GN_ASK_B)
        ahead += GN_SLICE;
        GN_FOR_A(GN_PASS_A)
        GN_FOR_B(GN_PASS_B)
    } else
#endif
    if (start < end) {
        uint inside = end - start;
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) GN_FETCH_A(i, start);
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) GN_FETCH_B(i, start);
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) GN_KEEP_A(i, 0u);
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) GN_KEEP_B(i, 0u);
#if GN_DELAY == 0
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) GN_FETCH_A(i, start + GN_SLICE);
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) GN_FETCH_B(i, start + GN_SLICE);
#endif
    }
    barrier();
    // Past the end the fetches read something that nobody uses, which is cheaper than a branch.
    uint stage = 0u;
    for (uint k0 = start; k0 < end; k0 += GN_BK) {
#if GN_SLICES > 1
        [[unroll]] for (uint s = 0u; s < GN_SLICES; s++) {
            stage = s & 1u;
#else
        {
            const uint s = 0u;
#endif
            uint from_a = stage * GN_A_SLICE + team * (GN_STEPS * GN_A_PITCH) + y;
            uint from_b = GN_B0 + stage * GN_B_SLICE + team * (GN_STEPS * GN_B_PITCH) + x;
            uint next = k0 + (s + 1u) * GN_SLICE, inside = max(end, next) - next;
            uint ahead = GN_DELAY == 0 ? next + GN_SLICE : next;
            stage = 1u - stage;
#ifdef GN_SMALL_CODE
#ifdef GN_HAS_PROLOGUE
            if (GN_PROLOGUE != 0u) {
                GN_FOR_A(GN_PASS_A)
                GN_FOR_B(GN_PASS_B)
            } else
#endif
            {
                [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) {
                    GN_KEEP_A(i, stage);
                    GN_FETCH_A(i, ahead);
                }
                [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) {
                    GN_KEEP_B(i, stage);
                    GN_FETCH_B(i, ahead);
                }
            }
            for (uint k = 0u; k < GN_STEPS; k++) GN_STEP(k)
#elif GN_DELAY == 0
#ifdef GN_HAS_PROLOGUE
            if (GN_PROLOGUE != 0u) {
                GN_FOR_A(GN_WORK_A)
                GN_FOR_B(GN_WORK_B)
            } else
#endif
            // As little as can be beside GN_STEP: drivers do not write out loops that look long to them.
            [[unroll]] for (uint k = 0u; k < GN_STEPS; k++) {
                [[unroll]] for (uint i = k; i < GN_A_LOADS; i += GN_STEPS) {
                    GN_KEEP_A(i, stage);
                    GN_FETCH_A(i, ahead);
                }
                [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++)
                    if ((i + GN_A_LOADS) % GN_STEPS == k) {
                        GN_KEEP_B(i, stage);
                        GN_FETCH_B(i, ahead);
                    }
                GN_STEP(k)
            }
#else
            [[unroll]] for (int k = 0; k < GN_STEPS; k++) {
                [[unroll]] for (int i = 0; i < GN_A_LOADS; i++) {
                    if (GN_WHEN(i) == k) GN_KEEP_A(i, stage);
                    if (GN_WHEN(i) == k + GN_DELAY) GN_FETCH_A(i, ahead);
                }
                [[unroll]] for (int i = 0; i < GN_B_LOADS; i++) {
                    if (GN_WHEN(GN_A_LOADS + i) == k) GN_KEEP_B(i, stage);
                    if (GN_WHEN(GN_A_LOADS + i) == k + GN_DELAY) GN_FETCH_B(i, ahead);
                }
                GN_STEP(k)
            }
#endif
            barrier();
        }
    }
    // Only the first row of tiles has them.
    bool sums = GN_HAS_SUMS && m0 == 0u && me < GN_COLUMNS;
    GN_VALUES column_sum = GN_ZERO;
    if (GN_HAS_SUMS && m0 == 0u) column_sum = gn_gather_columns(columns);
#if GN_TEAMS > 1
    [[unroll]] for (uint i = 0u; i < GN_ROWS; i++)
        [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) {
            [[unroll]] for (uint t = 0u; t < GN_TEAMS; t++)
                gn_slices[(team * GN_TEAMS + t) * GN_TEAM + member] = sum[t * GN_ROWS + i][j];
            barrier();
            sum[i][j] = GN_ZERO;
            [[unroll]] for (uint t = 0u; t < GN_TEAMS; t++)
                sum[i][j] += gn_slices[(t * GN_TEAMS + team) * GN_TEAM + member];
            barrier();
        }
#endif
#ifndef GN_WGSL
    if (joins) {
        const uint area = GN_BM * GN_BN / GN_EACH, part = area + (GN_HAS_SUMS ? GN_COLUMNS : 0u);
        uint counter = GN_COUNTER0 + number * gn_tile_counters();
        for (uint mine = split, left = GN_SPLITS, step = 1u; left > 1u; step *= GN_JOIN) {
            uint first = number * GN_SPLITS * part + me, at = first + mine * step * part;
            [[unroll]] for (uint i = 0u; i < GN_ROWS; i++)
                [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++)
                    gn_put_shared(GN_PARTIALS, at + (i * (GN_TN / GN_EACH) + j) * GN_THREADS, GN_FROM_VALUES(sum[i][j]));
            if (sums) gn_put_shared(GN_PARTIALS, at + area, GN_FROM_VALUES(column_sum));
            uint group = mine / GN_JOIN, count = min(left - group * GN_JOIN, GN_JOIN);
            if (!gn_is_last_of(counter + group, count)) return;
            left = (left + GN_JOIN - 1u) / GN_JOIN;
            counter += left;
            mine = group;
            [[unroll]] for (uint i = 0u; i < GN_ROWS; i++)
                [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) sum[i][j] = GN_ZERO;
            if (sums) column_sum = GN_ZERO;
            for (uint p = 0u; p < count; p++) {
                at = first + (group * GN_JOIN + p) * step * part;
                [[unroll]] for (uint i = 0u; i < GN_ROWS; i++)
                    [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++)
                        sum[i][j] += GN_TO_VALUES(gn_get_shared(GN_PARTIALS, at + (i * (GN_TN / GN_EACH) + j) * GN_THREADS));
                if (sums) column_sum += GN_TO_VALUES(gn_get_shared(GN_PARTIALS, at + area));
            }
        }
    }
#endif
    if (sums) gn_write_columns(n0 + me * GN_EACH, column_sum);
    [[unroll]] for (uint j = 0u; j < GN_TN / GN_EACH; j++) {
        uint column = n0 + (x + j * GN_PN) * GN_EACH;
        GN_VALUES bias = GN_ZERO;
#if !defined(GN_INT32) && !defined(GN_X64)
        if (GN_HAS_BIAS)
            bias = gn_read_run(GN_OPEN(GN_BIAS), GN_BIAS_BASE + column, 1u, GN_T_F32, false, gn_inside(column, GN_N));
#endif
        [[unroll]] for (uint i = 0u; i < GN_ROWS; i++)
            gn_write_run(m0 + gn_row(y, team * GN_ROWS + i), column, batch, sum[i][j], bias);
    }
}
