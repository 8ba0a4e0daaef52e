#version 450
// out (outer, count, inner) = in (outer, extent, inner)[:, index, :] in units of 16, 8, 4, 2 or 1 bytes.
//
//! variant take
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 3
#define GN_READONLY 3
#include "gn.glsl"
#define GN_INPUTS_CONST
#include "memory.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_TAKE_INDEX_DTYPE) const uint GN_INDEX_DTYPE = 0u;
layout(constant_id = GNI_S_TAKE_UNIT) const uint GN_UNIT = 2u;

#define GN_N GN_PARAM(GNI_P_TAKE_N)
#define GN_INNER GN_PARAM(GNI_P_TAKE_INNER)
#define GN_COUNT GN_PARAM(GNI_P_TAKE_COUNT)
#define GN_EXTENT GN_PARAM(GNI_P_TAKE_EXTENT)
#define GN_IN_BASE GN_PARAM(GNI_P_TAKE_IN_BASE)
#define GN_INDEX_BASE GN_PARAM(GNI_P_TAKE_INDEX_BASE)
#define GN_OUT_BASE GN_PARAM(GNI_P_TAKE_OUT_BASE)

uint gn_over(uint i, uint p) {
    uint high, low;
    umulExtended(i, GN_PARAM(p + 1u), high, low);
    return (high + i) >> GN_PARAM(p + 2u);
}

// Row number `c` of the index; negative ones count from the end, others outside are clamped.
uint gn_pick(uint c) {
    uint j = GN_INDEX_BASE + c, last = GN_EXTENT - 1u;
    if (GN_INDEX_DTYPE == GN_T_I64) {
        uvec2 w = gn_fetch2(1u, j);
        if (int(w.y) >= 0) return w.y != 0u ? last : min(w.x, last);
        return w.y != 0xffffffffu || w.x < 0u - GN_EXTENT ? 0u : w.x + GN_EXTENT;
    }
    uint s = gn_packing(GN_INDEX_DTYPE);
    uvec4 v = gn_widen(gn_extract(uvec4(gn_fetch(1u, j >> s)), uvec4(j), s), GN_INDEX_DTYPE);
    bool negative = (GN_INDEX_DTYPE == GN_T_I32 || GN_INDEX_DTYPE == GN_T_I8 || GN_INDEX_DTYPE == GN_T_I16) && int(v.x) < 0;
    if (negative) return v.x < 0u - GN_EXTENT ? 0u : v.x + GN_EXTENT;
    return min(v.x, last);
}

// Where unit t of the output comes from.
uint gn_source(uint t) {
    uint r = gn_over(t, uint(GNI_P_TAKE_INNER)), u = t - r * GN_INNER, o = gn_over(r, uint(GNI_P_TAKE_COUNT)), c = r - o * GN_COUNT;
    return GN_IN_BASE + (o * GN_EXTENT + gn_pick(c)) * GN_INNER + u;
}

void main() {
    uint first = gl_GlobalInvocationID.x, step = gl_NumWorkGroups.x * 256u;
    if (GN_UNIT >= 2u) {
        for (uint t = first; t < GN_N; t += step) {
            uint j = gn_source(t), o = GN_OUT_BASE + t;
            if (GN_UNIT == 4u) {
                uvec4 v = gn_fetch4(0u, j);
                gn_store4(2u, o, v);
            } else if (GN_UNIT == 3u) {
                uvec2 v = gn_fetch2(0u, j);
                gn_store2(2u, o, v);
            } else {
                uint v = gn_fetch(0u, j);
                gn_store(2u, o, v);
            }
        }
        return;
    }
    // Whole words where the output owns them, so that neighbours need no atomics.
    uint s = 2u - GN_UNIT, each = 1u << s, bits = 8u << GN_UNIT;
    bool aligned = (GN_OUT_BASE & (each - 1u)) == 0u;
    for (uint t = first * each; t < GN_N; t += step * each) {
        uint word = 0u;
        bool whole = aligned && t + each <= GN_N;
        for (uint e = 0u; e < each && t + e < GN_N; e++) {
            uint j = gn_source(t + e);
            uint v = gn_extract(uvec4(gn_fetch(0u, j >> s)), uvec4(j), s).x;
            word |= v << (e * bits);
            if (!whole) gn_write_one(GN_OPEN(2u), GN_OUT_BASE + t + e, s, v);
        }
        if (whole) gn_store(2u, (GN_OUT_BASE + t) >> s, word);
    }
}
