#version 450
// A step of an LSTM or a GRU as recur.comp does it, products by matrix units: weights and states, or the gates' derivatives,
// are halves in tiles of 16 by 16, one behind the other, all else is float32. A workgroup has 16 units of the state.
//
//! no-bindings
//! variant recur_half --env=vulkan1.3
//! variant recur_bfloat --env=vulkan1.3 --bfloat16
//
// GN_SPLIT subgroups share the tiles of a product's sum; the others have other rows, GN_TILES times 16 each (forward 1).
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#define GN_BUFFERS 9
#include "gn.glsl"
#include "memory.glsl"
#include "math.glsl"

#define GN_SUBGROUPS 8u
layout(local_size_x = 256) in;

layout(constant_id = GNI_S_RECUR_LSTM) const bool GN_LSTM = true;
layout(constant_id = GNI_S_RECUR_BACK) const bool GN_BACK = false;
layout(constant_id = GNI_S_RECUR_DTYPE) const uint GN_DTYPE = 0u;
layout(constant_id = GNI_S_RECUR_SPLIT) const uint GN_SPLIT_ = 8u;
layout(constant_id = GNI_S_RECUR_TILES) const uint GN_TILES_ = 1u;
layout(constant_id = GNI_S_RECUR_AHEAD) const uint GN_AHEAD_ = 1u; // tiles of a sum under way, which divide its share
const uint GN_SPLIT = GN_SPLIT_ == 0u ? 1u : GN_SPLIT_, GN_TILES = GN_TILES_ == 0u ? 1u : GN_TILES_;
const uint GN_AHEAD = GN_AHEAD_ == 0u ? 1u : GN_AHEAD_; // arrays have something in them
const uint GN_GATES = GN_LSTM ? 4u : 3u, GN_COLUMNS = GN_BACK ? 1u : GN_GATES, GN_SUMS = GN_TILES * GN_COLUMNS;

#define GN_BATCH GN_PARAM(GNI_P_RECUR_BATCH)
#define GN_H GN_PARAM(GNI_P_RECUR_H) // a multiple of 16
#define GN_IS(flag) ((GN_PARAM(GNI_P_RECUR_FLAGS) & uint(flag)) != 0u)
#define GN_FROM(k) GN_PARAM(uint(GNI_P_RECUR_BASE) + k)
#define GN_UNIT_A coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define GN_UNIT_B coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define GN_UNIT_C coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define GN_TILE 32u // uvec4 of a tile of halves

shared vec4 gn_parts[GN_SUBGROUPS * GN_SUMS * 64u];

vec4 gn_get4(uint k, uint i) { return uintBitsToFloat(GN_AT4(GN_OPEN(k), (GN_FROM(k) + i) / 4u)); }
void gn_put4(uint k, uint i, vec4 x) { GN_PUT4(GN_OPEN(k), (GN_FROM(k) + i) / 4u, floatBitsToUint(x)); }
void gn_put_tile(uint tile, uint i, vec4 x) {
    gn_write_group(GN_OPEN(8u), GN_FROM(8u) + tile * 256u + i, GN_DTYPE, gn_narrow(floatBitsToUint(x), GN_DTYPE));
}

// Buffers forward: the input's part of the gates, weights, states before as tiles, c before (GRU: a bias), states, gates, c, a
// GRU's states before, states as tiles. Back: the states' derivatives, weights, the gates' derivatives of the step behind as
// tiles, gates, c (GRU: states before), c before (GRU: the state's part of n), what goes from step to step beside the state, the
// gates' derivatives or the state's, the gates' as tiles.
void main() {
    uint me = gl_LocalInvocationIndex, h = GN_H, tiles = h / 16u, blocks = (GN_BATCH + 15u) / 16u;
    uint many = GN_BACK ? GN_GATES * tiles : tiles, share = (many + GN_SPLIT - 1u) / GN_SPLIT;
    uint first = gl_SubgroupID % GN_SPLIT * share, end = min(first + share, many);
    uint block0 = (gl_WorkGroupID.y * (GN_SUBGROUPS / GN_SPLIT) + gl_SubgroupID / GN_SPLIT) * GN_TILES;
    if (GN_BACK && GN_IS(GNI_RECUR_FIRST)) end = 0u;
    GN_UNIT_C sum[GN_TILES][GN_COLUMNS];
    [[unroll]] for (uint i = 0u; i < GN_TILES; i++)
        [[unroll]] for (uint q = 0u; q < GN_COLUMNS; q++) sum[i][q] = GN_UNIT_C(0.0);
    for (uint k = first; k < end; k += GN_AHEAD) {
        GN_UNIT_A a[GN_AHEAD][GN_TILES];
        GN_UNIT_B b[GN_AHEAD][GN_COLUMNS];
        [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) {
            [[unroll]] for (uint i = 0u; i < GN_TILES; i++) {
                uint at = GN_FROM(2u) / 8u + (min(block0 + i, blocks - 1u) * many + k + u) * GN_TILE;
                coopMatLoad(a[u][i], gn_words4(gn_address(2u)).v, at, 2u, gl_CooperativeMatrixLayoutRowMajor);
            }
            [[unroll]] for (uint q = 0u; q < GN_COLUMNS; q++) {
                uint at = GN_FROM(1u) / 8u + ((gl_WorkGroupID.x * many + k + u) * GN_COLUMNS + q) * GN_TILE;
                coopMatLoad(b[u][q], gn_words4(gn_address(1u)).v, at, 2u, gl_CooperativeMatrixLayoutColumnMajor);
            }
        }
        [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++)
            [[unroll]] for (uint i = 0u; i < GN_TILES; i++)
                [[unroll]] for (uint q = 0u; q < GN_COLUMNS; q++) sum[i][q] = coopMatMulAdd(a[u][i], b[u][q], sum[i][q]);
    }
    [[unroll]] for (uint i = 0u; i < GN_TILES; i++)
        [[unroll]] for (uint q = 0u; q < GN_COLUMNS; q++)
            coopMatStore(sum[i][q], gn_parts, ((gl_SubgroupID * GN_TILES + i) * GN_COLUMNS + q) * 64u, 4u,
                         gl_CooperativeMatrixLayoutRowMajor);
    // An invocation has four units of a row.
    uint cell = me / 64u, in_tile = me % 64u * 4u, group = cell / GN_TILES;
    uint block = gl_WorkGroupID.y * (GN_SUBGROUPS / GN_SPLIT) * GN_TILES + cell, row = block * 16u + in_tile / 16u;
    uint j = gl_WorkGroupID.x * 16u + in_tile % 16u, at = row * h + j, gate = row * GN_GATES * h + j;
    bool mine = group < GN_SUBGROUPS / GN_SPLIT && row < GN_BATCH;
    vec4 x[4], more = vec4(0.0), s[4];
    if (mine) {
        [[unroll]] for (uint q = 0u; q < GN_GATES; q++) x[q] = gn_get4(GN_BACK ? 3u : 0u, gate + q * h);
        if (!GN_BACK && GN_LSTM) more = gn_get4(3u, at);
    }
    barrier();
    if (!mine) return;
    [[unroll]] for (uint q = 0u; q < GN_COLUMNS; q++) {
        s[q] = vec4(0.0);
        [[unroll]] for (uint k = 0u; k < GN_SPLIT; k++)
            s[q] += gn_parts[(((group * GN_SPLIT + k) * GN_TILES + cell % GN_TILES) * GN_COLUMNS + q) * 64u + me % 64u];
    }
    if (!GN_BACK) {
        vec4 y;
        if (GN_LSTM) {
            [[unroll]] for (uint q = 0u; q < 4u; q++) s[q] += x[q];
            if (GN_IS(GNI_RECUR_KEEPS))
                [[unroll]] for (uint q = 0u; q < 4u; q++) gn_put4(5u, gate + q * h, s[q]);
            vec4 c = gn_sigmoid(s[1]) * more + gn_sigmoid(s[0]) * gn_tanh(s[2]);
            gn_put4(6u, at, c);
            if (GN_IS(GNI_RECUR_LAST)) GN_PUT4(GN_OPEN(4u), (GN_PARAM(GNI_P_RECUR_LAST) + at) / 4u, floatBitsToUint(c));
            y = gn_sigmoid(s[3]) * gn_tanh(c);
        } else {
            if (GN_IS(GNI_RECUR_BIAS))
                [[unroll]] for (uint q = 0u; q < 3u; q++) s[q] += gn_get4(3u, q * h + j);
            vec4 r = gn_sigmoid(x[0] + s[0]), z = gn_sigmoid(x[1] + s[1]), n = gn_tanh(x[2] + r * s[2]);
            if (GN_IS(GNI_RECUR_KEEPS)) {
                gn_put4(5u, gate, r);
                gn_put4(5u, gate + h, z);
                gn_put4(5u, gate + 2u * h, n);
            }
            y = n + z * (gn_get4(7u, at) - n);
        }
        gn_put4(4u, at, y);
        gn_put_tile(block * tiles + gl_WorkGroupID.x, in_tile, y);
        return;
    }
    vec4 carry = vec4(0.0), d = vec4(0.0), y[4];
    if (!GN_IS(GNI_RECUR_FIRST)) carry = gn_get4(6u, at);
    else if (GN_LSTM) carry = uintBitsToFloat(GN_AT4(GN_OPEN(0u), (GN_PARAM(GNI_P_RECUR_LAST) + at) / 4u));
    if (!GN_LSTM) s[0] += carry;
    if (GN_IS(GNI_RECUR_LAST)) {
        gn_put4(7u, at, s[0]);
        return;
    }
    d = s[0] + gn_get4(0u, at);
    vec4 here = gn_get4(4u, at), before = gn_get4(5u, at);
    if (GN_LSTM) {
        vec4 t = gn_tanh(here), n = gn_tanh(x[2]);
        vec4 i = gn_sigmoid(x[0]), f = gn_sigmoid(x[1]), o = gn_sigmoid(x[3]), c = carry + d * o * (1.0 - t * t);
        gn_put4(6u, at, c * f);
        y[0] = c * n * (i * (1.0 - i));
        y[1] = c * before * (f * (1.0 - f));
        y[2] = c * i * (1.0 - n * n);
        y[3] = d * t * (o * (1.0 - o));
    } else {
        vec4 r = x[0], z = x[1], n = x[2];
        y[0] = d * (1.0 - z) * (1.0 - n * n);
        y[1] = y[0] * before * (r * (1.0 - r));
        y[2] = d * (here - n) * (z * (1.0 - z));
        y[3] = y[0] * r;
        gn_put4(6u, at, d * z);
    }
    [[unroll]] for (uint q = 0u; q < 4u; q++) {
        gn_put4(7u, row * 4u * h + q * h + j, y[q]);
        if (GN_LSTM || q > 0u)
            gn_put_tile(block * many + (GN_LSTM ? q : q - 1u) * tiles + gl_WorkGroupID.x, in_tile, y[q]);
    }
}
