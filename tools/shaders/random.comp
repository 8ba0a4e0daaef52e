#version 450
// Random numbers by Philox 4x32-10 (Salmon et al. 2011): block b of the stream is elements 4b to 4b + 3,
// or 2b and 2b + 1 where each takes two words (gni_random_pairs).
//
//! variant random
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 1
#include "gn.glsl"
#include "math.glsl"

layout(local_size_x = 256) in;

layout(constant_id = 0) const uint GN_KIND = 0u; // gni_random_kind
layout(constant_id = 1) const uint GN_PAIRS = 0u;
#define GN_UNIFORM 0u
#define GN_NORMAL 1u
#define GN_BITS 2u
#define GN_RANGE 3u

#define GN_N GN_PARAM(0)
#define GN_OUT_BASE GN_PARAM(1)
#define GN_COUNTER uvec2(GN_PARAM(2), GN_PARAM(3))
#define GN_KEY uvec2(GN_PARAM(4), GN_PARAM(5))
#define GN_LOW GN_PARAM(6)
#define GN_SPAN GN_PARAM(7) // 0: 2^32

// The high word of the product of two-word numbers and the span, by 2^32.
uvec2 gn_pairs_below_span(uvec4 v) {
    uvec2 high, rest, from_low, unused, carry;
    umulExtended(v.yw, uvec2(GN_SPAN), high, rest);
    umulExtended(v.xz, uvec2(GN_SPAN), from_low, unused);
    uaddCarry(rest, from_low, carry);
    return GN_SPAN == 0u ? v.yw : high + carry;
}

void main() {
    uint each = GN_PAIRS != 0u ? 2u : 4u, blocks = (GN_N + each - 1u) / each;
    for (uint b = gl_GlobalInvocationID.x; b < blocks; b += gl_NumWorkGroups.x * 256u) {
        uint carry, low = uaddCarry(GN_COUNTER.x, b, carry);
        uvec4 v = gn_philox(uvec4(low, GN_COUNTER.y + carry, 0u, 0u), GN_KEY);
        if (GN_KIND == GN_UNIFORM) {
            v = floatBitsToUint(vec4(v >> 8) * 5.9604644775390625e-08);
        } else if (GN_KIND == GN_NORMAL) {
            v = floatBitsToUint(vec4(gn_normal2(v.x, v.y), gn_normal2(v.z, v.w)));
        } else if (GN_KIND == GN_RANGE && GN_PAIRS != 0u) {
            v.xy = GN_LOW + gn_pairs_below_span(v);
        } else if (GN_KIND == GN_RANGE) {
            uvec4 high, rest;
            umulExtended(v, uvec4(GN_SPAN), high, rest);
            v = GN_LOW + (GN_SPAN == 0u ? v : high);
        }
        uint at = GN_OUT_BASE + each * b;
        if (GN_PAIRS == 0u && (GN_OUT_BASE & 3u) == 0u && 4u * b + 4u <= GN_N) {
            gn_store4(0u, at >> 2, v);
        } else {
            for (uint e = 0u; e < min(GN_N - each * b, each); e++) gn_store(0u, at + e, v[e]);
        }
    }
}
