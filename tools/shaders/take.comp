#version 450
// out (outer, count, inner) = in (outer, extent, inner)[:, index, :] in units of 16, 8, 4, 2 or 1 bytes;
// with an index for each unit index (outer, count, inner).
//
//! variant take
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 4
#define GN_READONLY 3
#include "gn.glsl"
#define GN_INPUTS_CONST
#include "memory.glsl"
#include "places.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_TAKE_UNIT) const uint GN_UNIT = 2u;

// Where unit t of the output comes from.
uint gn_source(uint t) { return GN_IN_BASE + gn_place(t); }

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
