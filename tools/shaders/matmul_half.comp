#version 450
// matmul.comp's work on matrix units: a and b are float16 or bfloat16, sums are float32, c is any of the three.
//
//! variant matmul_half_128x128 --env=vulkan1.3 -DGN_BM=128 -DGN_BN=128 -DGN_BK=64 -DGN_WM=64 -DGN_WN=64
//! variant matmul_half_64x128 --env=vulkan1.3 -DGN_BM=64 -DGN_BN=128 -DGN_BK=64 -DGN_WM=32 -DGN_WN=64
//! variant matmul_half_64x64 --env=vulkan1.3 -DGN_BM=64 -DGN_BN=64 -DGN_BK=64 -DGN_WM=32 -DGN_WN=32
//! variant matmul_half_32x64 --env=vulkan1.3 -DGN_BM=32 -DGN_BN=64 -DGN_BK=64 -DGN_WM=16 -DGN_WN=32
//! variant matmul_bfloat_128x128 --env=vulkan1.3 --bfloat16 -DGN_BFLOAT -DGN_BM=128 -DGN_BN=128 -DGN_BK=64 -DGN_WM=64 -DGN_WN=64
//! variant matmul_bfloat_64x128 --env=vulkan1.3 --bfloat16 -DGN_BFLOAT -DGN_BM=64 -DGN_BN=128 -DGN_BK=64 -DGN_WM=32 -DGN_WN=64
//! variant matmul_bfloat_64x64 --env=vulkan1.3 --bfloat16 -DGN_BFLOAT -DGN_BM=64 -DGN_BN=64 -DGN_BK=64 -DGN_WM=32 -DGN_WN=32
//! variant matmul_bfloat_32x64 --env=vulkan1.3 --bfloat16 -DGN_BFLOAT -DGN_BM=32 -DGN_BN=64 -DGN_BK=64 -DGN_WM=16 -DGN_WN=32
//! variant matmul_split_128x128 --env=vulkan1.3 -DGN_PARTS=2 -DGN_STAGES=1 -DGN_DEEP=2 -DGN_BM=128 -DGN_BN=128 -DGN_BK=16 -DGN_WM=64 -DGN_WN=64
//! variant matmul_split3_128x128 --env=vulkan1.3 --bfloat16 -DGN_PARTS=3 -DGN_STAGES=1 -DGN_BM=128 -DGN_BN=128 -DGN_BK=16 -DGN_WM=64 -DGN_WN=64
//! variant matmul_floats_128x128 --env=vulkan1.3 -DGN_FLOATS -DGN_PARTS=2 -DGN_BM=128 -DGN_BN=128 -DGN_BK=32 -DGN_WM=64 -DGN_WN=32
//! variant matmul_floats_64x128 --env=vulkan1.3 -DGN_FLOATS -DGN_PARTS=2 -DGN_BM=64 -DGN_BN=128 -DGN_BK=32 -DGN_WM=64 -DGN_WN=32
//! variant matmul_floats_64x64 --env=vulkan1.3 -DGN_FLOATS -DGN_PARTS=2 -DGN_BM=64 -DGN_BN=64 -DGN_BK=32 -DGN_WM=64 -DGN_WN=32
//! variant matmul_patch --env=vulkan1.3 -DGN_PATCH -DGN_PARTS=2 -DGN_STAGES=1 -DGN_BM=64 -DGN_BN=64 -DGN_BK=16 -DGN_WM=16 -DGN_WN=32
//! no-bindings
//
// With GN_PARTS the operands are float32 in parts (matmul_split.glsl), GN_PATCH makes what was not packed, and with GN_FLOATS
// they are made parts on the way (matmul_floats.glsl).
//
// A subgroup makes WM x WN of a workgroup's BM x BN. While a slice is multiplied, the next one is on its way in
// registers. Slices lie in shared memory the way they lie in memory,
// eight elements to a uvec4, rows skewed by one uvec4 so that a subgroup's loads meet every bank once.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#define GN_BUFFERS 8 // 6 and 7 are epilogue.glsl's, or 6 for the parts' control words or the sums of b's columns
#define GN_READONLY 0xb
#include "gn.glsl"
#include "matrix.glsl"

#define GN_SUBGROUP 32
#define GN_SUBGROUPS ((GN_BM / GN_WM) * (GN_BN / GN_WN))
#define GN_THREADS (GN_SUBGROUPS * GN_SUBGROUP)
layout(local_size_x = GN_THREADS) in;

layout(constant_id = GNI_S_MATMUL_A_DTYPE) const uint GN_A_DTYPE = 1u;
layout(constant_id = GNI_S_MATMUL_B_DTYPE) const uint GN_B_DTYPE = 1u;
layout(constant_id = GNI_S_MATMUL_C_DTYPE) const uint GN_C_DTYPE = 0u;
layout(constant_id = GNI_S_MATMUL_LAYOUT) const uint GN_LAYOUT = 0u;
#define GN_A_ALONG_M ((GN_LAYOUT & GNI_F_MATMUL_A_ALONG_M) != 0u)
#define GN_A_GROUPS ((GN_LAYOUT & GNI_F_MATMUL_A_GROUPS) != 0u)
#define GN_B_ALONG_K ((GN_LAYOUT & GNI_F_MATMUL_B_ALONG_K) != 0u)
#define GN_B_GROUPS ((GN_LAYOUT & GNI_F_MATMUL_B_GROUPS) != 0u)
#define GN_C_GROUPS ((GN_LAYOUT & GNI_F_MATMUL_C_GROUPS) != 0u)
#define GN_HAS_BIAS ((GN_LAYOUT & GNI_F_MATMUL_BIAS) != 0u)
#define GN_HAS_RELU ((GN_LAYOUT & GNI_F_MATMUL_RELU) != 0u)
#define GN_A_RUNS ((GN_LAYOUT & GNI_F_MATMUL_A_RUNS) != 0u)
#define GN_B_RUNS ((GN_LAYOUT & GNI_F_MATMUL_B_RUNS) != 0u)
#define GN_HAS_SPLITS ((GN_LAYOUT & GNI_F_MATMUL_SPLITS) != 0u)
#define GN_WHOLE ((GN_LAYOUT & GNI_F_MATMUL_WHOLE) != 0u)
#define GN_C_EIGHTS ((GN_LAYOUT & GNI_F_MATMUL_C_EIGHTS) != 0u)
#define GN_INSIDE ((GN_LAYOUT & GNI_F_MATMUL_INSIDE) != 0u)
#ifdef GN_PARTS
#define GN_HAS_SUMS false
#else
#define GN_HAS_SUMS ((GN_LAYOUT & GNI_F_MATMUL_SUMS) != 0u)
#endif

#ifdef GN_PARTS
#define GN_HAS_PROGRAM false
#define gn_epilogue(v, row, column, batch, count) (v)
#else
#include "epilogue.glsl"
#endif

#define GN_C_ROW GN_PARAM(GNI_P_MATMUL_C_ROW)
#include "windows.glsl"

#define GN_MAX(a, b) ((a) > (b) ? (a) : (b))
#define GN_KG (GN_BK / 8) // groups
#define GN_MG (GN_BM / 8)
#define GN_NG (GN_BN / 8)
// A slice of a has BM rows along k, or BK rows along m; a slice of b has BK rows along n, or BN rows along k.
#define GN_A_SLICE GN_MAX(GN_BM * (GN_KG + 1), GN_BK * (GN_MG + 1))
#define GN_B_SLICE GN_MAX(GN_BK * (GN_NG + 1), GN_BN * (GN_KG + 1))
#define GN_A_PITCH (GN_A_ALONG_M ? GN_MG + 1 : GN_KG + 1)
#define GN_B_PITCH (GN_B_ALONG_K ? GN_KG + 1 : GN_NG + 1)
// At the end the same memory takes 16 rows of float32 sums from every subgroup.
#define GN_OUT_PITCH (GN_WN / 4 + 1)
#define GN_OUT_SIZE (GN_SUBGROUPS * 16 * GN_OUT_PITCH)
#ifdef GN_FLOATS
#include "matmul_floats.glsl"
#elif defined(GN_PARTS)
#include "matmul_split.glsl"
#else
shared uvec4 gn_tile[GN_MAX(GN_A_SLICE + GN_B_SLICE, GN_OUT_SIZE)];
#define GN_A_LOADS (GN_BM * GN_KG / GN_THREADS)
#define GN_B_LOADS (GN_BN * GN_KG / GN_THREADS)

// An invocation's load number i of a slice: its row, and its first element in that row. Written so that compilers see
// that loads of one invocation are a constant number of rows apart.
uvec2 gn_place(uint i, uint groups) {
    uint me = gl_LocalInvocationIndex;
    return uvec2(me / groups + i * (GN_THREADS / groups), me % groups * 8u);
}
uvec2 gn_a_place(uint i) { return gn_place(i, GN_A_ALONG_M ? GN_MG : GN_KG); }
uvec2 gn_b_place(uint i) { return gn_place(i, GN_B_ALONG_K ? GN_KG : GN_NG); }

// Of windows: where the rows of the next slice of b begin, and in them this invocation's elements.
shared uint gn_lines[GN_MAX(GN_BN, GN_BK)];
uint gn_window_shift(uint n0, uint k0, uint end) {
    uint p = gn_b_place(0u).y;
    if (!GN_B_ALONG_K) return gn_window(GNI_P_WINDOWS_N, min(n0 + p, GN_N - 1u));
    return GN_EVEN ? gn_window(GNI_P_WINDOWS_K, min(k0, end - GN_BK)) + p : gn_window(GNI_P_WINDOWS_K, min(k0 + p, end - 1u));
}
void gn_put_lines(uint n0, uint k0, uint end) {
    uint me = gl_LocalInvocationIndex;
    if (!GN_B_ALONG_K) {
        if (me < GN_BK) gn_lines[me] = gn_window(GNI_P_WINDOWS_K, min(k0 + me, end - 1u));
    } else
        for (uint e = me; e < GN_BN; e += GN_THREADS) gn_lines[e] = gn_window(GNI_P_WINDOWS_N, min(n0 + e, GN_N - 1u));
}

uint gn_half(GN_HANDLE h, uint at) { return (GN_AT(h, at >> 1) >> ((at & 1u) * 16u)) & 0xffffu; }

// Eight elements of row p.x from column p.y on, for rows as they lie in memory; limit: rows and columns there
// are. Places outside are moved to the nearest one inside.
uvec4 gn_read_halves(GN_HANDLE h, uint base, uvec2 p, uvec2 limit, uint step_row, uint step, bool groups, bool runs) {
    if (groups && GN_INSIDE) return GN_AT4(h, (base >> 3) + p.x * uint(int(step_row) >> 3) + (p.y >> 3));
    p = min(p, limit - 1u);
    if (groups) return GN_AT4(h, (base + p.x * step_row + p.y) >> 3);
    uint at = base + p.x * step_row + p.y * step;
    uvec4 v;
    if (runs) {
        uint last = (at + limit.y - 1u - p.y) >> 1, w0 = at >> 1, shift = (at & 1u) * 16u, w[5];
        [[unroll]] for (uint e = 0u; e < 5u; e++) w[e] = GN_AT(h, min(w0 + e, last));
        [[unroll]] for (uint e = 0u; e < 4u; e++) v[e] = shift == 0u ? w[e] : (w[e] >> 16) | (w[e + 1u] << 16);
        return v;
    }
    uint most = limit.y - 1u - p.y;
    [[unroll]] for (uint e = 0u; e < 4u; e++)
        v[e] = gn_half(h, at + min(2u * e, most) * step) | (gn_half(h, at + min(2u * e + 1u, most) * step) << 16);
    return v;
}
uvec4 gn_a_read(uint i, uint base, uint m0, uint k0, uint end) {
    uvec2 p = gn_a_place(i);
    return GN_A_ALONG_M ? gn_read_halves(GN_OPEN(GN_A), base, p + uvec2(k0, m0), uvec2(end, GN_M), GN_A_COLUMN, GN_A_ROW,
                                         GN_A_GROUPS, GN_A_RUNS)
                        : gn_read_halves(GN_OPEN(GN_A), base, p + uvec2(m0, k0), uvec2(GN_M, end), GN_A_ROW, GN_A_COLUMN,
                                         GN_A_GROUPS, GN_A_RUNS);
}
uvec4 gn_b_read(uint i, uint base, uint n0, uint k0, uint end) {
    uvec2 p = gn_b_place(i);
    if (GN_WINDOWS) return GN_AT4(GN_OPEN(GN_B), (base + gn_lines[p.x]) >> 3);
    return GN_B_ALONG_K ? gn_read_halves(GN_OPEN(GN_B), base, p + uvec2(n0, k0), uvec2(GN_N, end), GN_B_COLUMN, GN_B_ROW,
                                         GN_B_GROUPS, GN_B_RUNS)
                        : gn_read_halves(GN_OPEN(GN_B), base, p + uvec2(k0, n0), uvec2(end, GN_N), GN_B_ROW, GN_B_COLUMN,
                                         GN_B_GROUPS, GN_B_RUNS);
}

// Zeros from element `inside` of v on.
uvec4 gn_cut(uvec4 v, uint inside) {
    [[unroll]] for (uint e = 0u; e < 4u; e++)
        v[e] = inside >= 2u * e + 2u ? v[e] : inside == 2u * e + 1u ? v[e] & 0xffffu : 0u;
    return v;
}
// `inside`: elements along k of this slice that count.
void gn_a_keep(uint i, uvec4 v, uint inside) {
    uvec2 p = gn_a_place(i);
    if (!GN_WHOLE && inside < GN_BK) {
        uint k = GN_A_ALONG_M ? p.x : p.y;
        v = gn_cut(v, k >= inside ? 0u : GN_A_ALONG_M ? 8u : inside - k);
    }
    gn_tile[p.x * GN_A_PITCH + p.y / 8] = v;
}
uvec4 gn_b_keep(uint i, uvec4 v, uint inside) {
    uvec2 p = gn_b_place(i);
    if (!GN_WHOLE && inside < GN_BK) {
        uint k = GN_B_ALONG_K ? p.y : p.x;
        v = gn_cut(v, k >= inside ? 0u : GN_B_ALONG_K ? inside - k : 8u);
    }
    gn_tile[GN_A_SLICE + p.x * GN_B_PITCH + p.y / 8] = v;
    return v;
}

// ---- the sums of b's columns, which the workgroups of the first row of tiles make of what they load anyway

vec4 gn_from_halves(uvec2 w) {
#ifndef GN_BFLOAT
    if (GN_EXACT_HALVES) return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
#endif
    return uintBitsToFloat(gn_widen(uvec4(w.x & 0xffffu, w.x >> 16, w.y & 0xffffu, w.y >> 16), GN_B_DTYPE));
}
// An invocation's loads are all of the same eight columns, or along k each of one.
void gn_add_kept(inout vec4 columns[2], uint i, uvec4 kept) {
    vec4 v = gn_from_halves(kept.xy), w = gn_from_halves(kept.zw);
    if (GN_B_ALONG_K) {
        v += w;
        columns[i / 4u][i % 4u] += (v.x + v.y) + (v.z + v.w);
    } else {
        columns[0] += v;
        columns[1] += w;
    }
}
// In invocation `me` of the first BN / 4: the tile's sums of its columns 4 me to 4 me + 3.
vec4 gn_gather_columns(vec4 columns[2]) {
    uint me = gl_LocalInvocationIndex;
    vec4 v = vec4(0.0);
    [[unroll]] for (uint i = 0u; i < 2u; i++) gn_tile[2u * me + i] = floatBitsToUint(columns[i]);
    barrier();
    if (me < GN_BN / 4) {
        if (GN_B_ALONG_K)
            [[unroll]] for (uint e = 0u; e < 4u; e++) {
                uint c = 4u * me + e, rows = GN_THREADS / GN_KG, i = c / rows;
                for (uint q = 0u; q < GN_KG; q++)
                    v[e] += uintBitsToFloat(gn_tile[2u * (c % rows * GN_KG + q) + i / 4u][i % 4u]);
            }
        else
            for (uint q = me / 2u; q < GN_THREADS; q += GN_NG) v += uintBitsToFloat(gn_tile[2u * q + me % 2u]);
    }
    barrier();
    return v;
}

#endif

#define GN_UNITS_M (GN_WM / 16)
#define GN_UNITS_N (GN_WN / 16)
#define GN_UNIT_A coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define GN_UNIT_B coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define GN_UNIT_C coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define GN_UNIT_H coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define GN_HALF_PITCH (GN_WN / 8 + 1)
// Whole tiles of float16 with nothing to do at the store but to round.
#define GN_BARE                                                                                                        \
    (GN_C_DTYPE == GN_T_F16 && GN_EXACT_HALVES && GN_C_EIGHTS && GN_INSIDE && !GN_HAS_BIAS && !GN_HAS_RELU && !GN_HAS_PROGRAM)

// Sums of columns column to column + count - 1 of a row, 1 <= count <= 4, with all that is added before the store.
vec4 gn_finish(uint row, uint column, uint batch, vec4 v, uint count) {
    if (GN_HAS_BIAS) v += gn_read_run(GN_OPEN(GN_BIAS), GN_BIAS_BASE + column, 1u, GN_T_F32, false, count);
    if (GN_HAS_RELU) v = mix(v, vec4(0.0), lessThan(v, vec4(0.0)));
    return v;
}
void gn_write_run(uint row, uint column, uint batch, vec4 v) {
    uint count = row < GN_M ? gn_inside(column, GN_N) : 0u;
    if (count == 0u) return;
    uvec4 r = gn_narrow(floatBitsToUint(gn_finish(row, column, batch, v, count)), GN_C_DTYPE);
    if (GN_C_GROUPS && count == 4u) gn_write_group(GN_OPEN(GN_C), gn_c_place(row, column, batch), GN_C_DTYPE, r);
    else gn_write_each(GN_OPEN(GN_C), gn_c_places(row, column, batch), GN_C_DTYPE, r, count);
}

// Four results of 16 bits, as they lie in memory. The exact integer code costs a tile more than its products do
// where k is small.
uvec2 gn_halves(vec4 v) {
#ifndef GN_BFLOAT
    if (GN_C_DTYPE == GN_T_F16 && GN_EXACT_HALVES)
        return uvec2(packFloat2x16(f16vec2(v.xy)), packFloat2x16(f16vec2(v.zw)));
#endif
    uvec4 r = gn_narrow(floatBitsToUint(v), GN_C_DTYPE);
    return uvec2(r.x | (r.y << 16), r.z | (r.w << 16));
}
#ifndef GN_PARTS
// Eight columns of a row, of which the first one exists, through the program.
void gn_write_program(uint row, uint column, uint batch, vec4 v, vec4 w) {
    if (row >= GN_M || column >= GN_N) return;
    uint left = gn_inside(column, GN_N), right = gn_inside(column + 4u, GN_N), at = gn_c_place(row, column, batch);
    v = gn_epilogue(v, row, column, batch, left);
    if (right > 0u) w = gn_epilogue(w, row, column + 4u, batch, right);
    if (GN_C_DTYPE != GN_T_F32) {
        uvec4 h = uvec4(gn_halves(v), gn_halves(w));
        if (GN_C_EIGHTS && right == 4u) GN_PUT4(GN_OPEN(GN_C), at >> 3, h);
        else
            for (uint e = 0u; e < left + right; e++)
                gn_write_one(GN_OPEN(GN_C), at + e, 1u, (h[e >> 1] >> ((e & 1u) * 16u)) & 0xffffu);
    } else if (GN_C_GROUPS && right == 4u) {
        GN_PUT4(GN_OPEN(GN_C), at >> 2, floatBitsToUint(v));
        GN_PUT4(GN_OPEN(GN_C), (at >> 2) + 1u, floatBitsToUint(w));
    } else {
        for (uint e = 0u; e < left + right; e++) GN_PUT(GN_OPEN(GN_C), at + e, floatBitsToUint(e < 4u ? v[e] : w[e & 3u]));
    }
}
#endif
// Eight columns, of 16 bits each.
void gn_write_eight(uint row, uint column, uint batch, vec4 v, vec4 w) {
    if (GN_C_EIGHTS && row < GN_M && column + 8u <= GN_N) {
        v = gn_finish(row, column, batch, v, 4u);
        w = gn_finish(row, column + 4u, batch, w, 4u);
        GN_PUT4(GN_OPEN(GN_C), gn_c_place(row, column, batch) >> 3, uvec4(gn_halves(v), gn_halves(w)));
    } else {
        gn_write_run(row, column, batch, v);
        gn_write_run(row, column + 4u, batch, w);
    }
}

// Loads of a slice are spread over the steps of the one before. Where an element takes several, they are all
// asked for at the first step, since the first use waits for them.
#define GN_STEPS (GN_BK / 16)
#define GN_FETCH_A(i, k) next_a[i] = gn_a_read(i, base.x, m0, k, end)
#define GN_FETCH_B(i, k) next_b[i] = gn_b_read(i, GN_WINDOWS ? shift : base.y, n0, k, end)
#define GN_KEEP_A(i) gn_a_keep(i, next_a[i], inside)
#define GN_KEEP_B(i)                                                                                                   \
    {                                                                                                                  \
        uvec4 kept = gn_b_keep(i, next_b[i], inside);                                                                  \
        if (GN_HAS_SUMS && m0 == 0u) gn_add_kept(columns, i, kept);                                                    \
    }

#ifdef GN_PATCH
#include "matmul_patch.glsl"
#else
void main() {
    uint me = gl_LocalInvocationIndex, lane = me % GN_SUBGROUP, unit = me / GN_SUBGROUP;
    uint wm = unit / (GN_BN / GN_WN) * GN_WM, wn = unit % (GN_BN / GN_WN) * GN_WN;
    uint tile = gl_WorkGroupID.x, batch = gl_WorkGroupID.z;
    uvec2 place = gn_tile_place(tile) * uvec2(GN_BM, GN_BN), base = gn_batch(batch);
    uint m0 = place.x, n0 = place.y;
    uint split = gl_WorkGroupID.y, start = split * GN_CHUNK, end = min(start + GN_CHUNK, GN_K);
    bool sums = GN_HAS_SUMS && m0 == 0u && me < GN_BN / 4; // whether this one has some of them
    vec4 column_sum = vec4(0.0);
    GN_UNIT_C sum[GN_UNITS_M][GN_UNITS_N];
    [[unroll]] for (uint i = 0u; i < GN_UNITS_M; i++)
        [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++) sum[i][j] = GN_UNIT_C(0.0);
#ifdef GN_FLOATS
    GN_FLOATS_LOOP
#elif defined(GN_PARTS)
    if (gn_load(GN_CONTROL, GN_MODE) != GN_PARTS - 2u) return;
    GN_SPLIT_LOOP
#else
    uvec4 next_a[GN_A_LOADS], next_b[GN_B_LOADS];
    vec4 columns[2];
    if (GN_HAS_SUMS) columns[0] = columns[1] = vec4(0.0);
    uint shift = 0u;
    if (GN_WINDOWS) {
        gn_put_lines(n0, start, end);
        barrier();
        shift = base.y + gn_window_shift(n0, start, end);
    }
    if (start < end) {
        uint inside = end - start;
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) GN_FETCH_A(i, start);
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) GN_FETCH_B(i, start);
        if (GN_WINDOWS && !GN_B_ALONG_K) {
            barrier();
            gn_put_lines(n0, start + GN_BK, end);
        }
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) GN_KEEP_A(i);
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) GN_KEEP_B(i);
    }
    barrier();
    // Past the end the fetches read something that nobody uses, which is cheaper than a branch.
    for (uint k0 = start; k0 < end; k0 += GN_BK) {
        uint after = GN_INSIDE ? min(k0 + GN_BK, end - GN_BK) : k0 + GN_BK;
        if (GN_WINDOWS && GN_B_ALONG_K) shift = base.y + gn_window_shift(n0, after, end);
        [[unroll]] for (uint step = 0u; step < GN_STEPS; step++) {
            uint k = step * 16u;
            GN_UNIT_A a[GN_UNITS_M];
            GN_UNIT_B b[GN_UNITS_N];
            [[unroll]] for (uint i = 0u; i < GN_UNITS_M; i++) {
                uint row = wm + i * 16u;
                if (GN_A_ALONG_M)
                    coopMatLoad(a[i], gn_tile, k * (GN_MG + 1) + row / 8u, GN_MG + 1,
                                gl_CooperativeMatrixLayoutColumnMajor);
                else
                    coopMatLoad(a[i], gn_tile, row * (GN_KG + 1) + k / 8u, GN_KG + 1,
                                gl_CooperativeMatrixLayoutRowMajor);
            }
            [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++) {
                uint column = wn + j * 16u;
                if (GN_B_ALONG_K)
                    coopMatLoad(b[j], gn_tile, GN_A_SLICE + column * (GN_KG + 1) + k / 8u, GN_KG + 1,
                                gl_CooperativeMatrixLayoutColumnMajor);
                else
                    coopMatLoad(b[j], gn_tile, GN_A_SLICE + k * (GN_NG + 1) + column / 8u, GN_NG + 1,
                                gl_CooperativeMatrixLayoutRowMajor);
            }
            [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++)
                if (step == (GN_A_GROUPS ? i % GN_STEPS : 0u)) GN_FETCH_A(i, after);
            [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++)
                if (step == (GN_B_GROUPS ? i % GN_STEPS : 0u)) GN_FETCH_B(i, after);
            [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++)
                [[unroll]] for (uint i = 0u; i < GN_UNITS_M; i++) sum[i][j] = coopMatMulAdd(a[i], b[j], sum[i][j]);
        }
        barrier();
        if (k0 + GN_BK >= end) break;
        uint inside = end - k0 - GN_BK;
        if (GN_WINDOWS && !GN_B_ALONG_K) gn_put_lines(n0, k0 + 2u * GN_BK, end);
        [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) GN_KEEP_A(i);
        [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) GN_KEEP_B(i);
        barrier();
    }
    if (GN_HAS_SUMS && m0 == 0u) column_sum = gn_gather_columns(columns);
#endif
    if (GN_HAS_SPLITS) {
        const uint row = GN_BN / 4, area = GN_BM * row, part = area + (GN_HAS_SUMS ? row : 0u);
        uint number = batch * GN_TILES_M * GN_TILES_N + tile, counter = GN_COUNTER0 + number * gn_tile_counters();
        for (uint mine = split, left = GN_SPLITS, step = 1u; left > 1u; step *= GN_JOIN) {
            uint origin = number * GN_SPLITS * part, first = origin + wm * row + wn / 4u;
            uint at = first + mine * step * part;
            [[unroll]] for (uint i = 0u; i < GN_UNITS_M; i++)
                [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++)
                    coopMatStore(sum[i][j], gn_shared_words4(gn_address(GN_PARTIALS)).v, at + i * 16u * row + j * 4u, row,
                                 gl_CooperativeMatrixLayoutRowMajor);
            if (sums) gn_put_shared(GN_PARTIALS, origin + mine * step * part + area + me, floatBitsToUint(column_sum));
            uint group = mine / GN_JOIN, count = min(left - group * GN_JOIN, GN_JOIN);
            if (!gn_is_last_of(counter + group, count)) return;
            left = (left + GN_JOIN - 1u) / GN_JOIN;
            counter += left;
            mine = group;
            [[unroll]] for (uint i = 0u; i < GN_UNITS_M; i++)
                [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++) sum[i][j] = GN_UNIT_C(0.0);
            if (sums) column_sum = vec4(0.0);
            for (uint p = 0u; p < count; p++) {
                at = first + (group * GN_JOIN + p) * step * part;
                [[unroll]] for (uint i = 0u; i < GN_UNITS_M; i++)
                    [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++) {
                        GN_UNIT_C more;
                        coopMatLoad(more, gn_shared_words4(gn_address(GN_PARTIALS)).v, at + i * 16u * row + j * 4u, row,
                                    gl_CooperativeMatrixLayoutRowMajor);
                        sum[i][j] += more;
                    }
                if (sums)
                    column_sum += uintBitsToFloat(gn_get_shared(
                        GN_PARTIALS, origin + (group * GN_JOIN + p) * step * part + area + me));
            }
        }
    }
#ifndef GN_PARTS
    if (sums)
        gn_write_each(GN_OPEN(6u), GN_BIAS_BASE + n0 + 4u * me + uvec4(0u, 1u, 2u, 3u), GN_C_DTYPE,
                      gn_narrow(floatBitsToUint(column_sum), GN_C_DTYPE), gn_inside(n0 + 4u * me, GN_N));
#endif
    uint out0 = unit * 16u * GN_OUT_PITCH;
#ifndef GN_PARTS
    // In loops, so that a program is there once: what is written 16 times makes drivers give up on the loops above, and then
    // the sums lie in memory.
    if (GN_HAS_PROGRAM) {
        [[dont_unroll]] for (uint i = 0u; i < GN_UNITS_M; i++) {
            uint row = m0 + wm + i * 16u, column = n0 + wn;
            subgroupBarrier();
            [[unroll]] for (uint q = 0u; q < GN_UNITS_M; q++)
                if (q == i)
                    [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++)
                        coopMatStore(sum[q][j], gn_tile, out0 + j * 4u, GN_OUT_PITCH, gl_CooperativeMatrixLayoutRowMajor);
            subgroupBarrier();
            [[dont_unroll]] for (uint e = lane; e < 2u * GN_WN; e += GN_SUBGROUP) {
                uint r = e / (GN_WN / 8), c = e % (GN_WN / 8), at = out0 + r * GN_OUT_PITCH + 2u * c;
                gn_write_program(row + r, column + 8u * c, batch, uintBitsToFloat(gn_tile[at]),
                                 uintBitsToFloat(gn_tile[at + 1u]));
            }
        }
        return;
    }
#endif
    [[unroll]] for (uint i = 0u; i < GN_UNITS_M; i++) {
        uint row = m0 + wm + i * 16u, column = n0 + wn;
        subgroupBarrier();
#if !defined(GN_PARTS) && !defined(GN_BFLOAT)
        if (GN_BARE) {
            [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++)
                coopMatStore(GN_UNIT_H(sum[i][j]), gn_tile, out0 + j * 2u, GN_HALF_PITCH,
                             gl_CooperativeMatrixLayoutRowMajor);
            subgroupBarrier();
            [[unroll]] for (uint e = lane; e < 2u * GN_WN; e += GN_SUBGROUP) {
                uint r = e / (GN_WN / 8), c = e % (GN_WN / 8);
                GN_PUT4(GN_OPEN(GN_C), gn_c_place(row + r, column + 8u * c, batch) >> 3,
                        gn_tile[out0 + r * GN_HALF_PITCH + c]);
            }
            continue;
        }
#endif
        [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++)
            coopMatStore(sum[i][j], gn_tile, out0 + j * 4u, GN_OUT_PITCH, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
#ifndef GN_PARTS
        if (GN_C_DTYPE != GN_T_F32) {
            for (uint e = lane; e < 2u * GN_WN; e += GN_SUBGROUP) {
                uint r = e / (GN_WN / 8), c = e % (GN_WN / 8), at = out0 + r * GN_OUT_PITCH + 2u * c;
                gn_write_eight(row + r, column + 8u * c, batch, uintBitsToFloat(gn_tile[at]),
                               uintBitsToFloat(gn_tile[at + 1u]));
            }
            continue;
        }
#endif
        for (uint e = lane; e < 4u * GN_WN; e += GN_SUBGROUP) {
            uint r = e / (GN_WN / 4), c = e % (GN_WN / 4);
            vec4 v = uintBitsToFloat(gn_tile[out0 + r * GN_OUT_PITCH + c]);
#ifdef GN_FLOATS
            v = gn_made_finite(row + r, column + 4u * c, batch, v);
#elif defined(GN_PARTS)
            v = gn_unscaled(row + r, column + 4u * c, batch, v);
#endif
            gn_write_run(row + r, column + 4u * c, batch, v);
        }
    }
}
#endif
