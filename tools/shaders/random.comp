#version 450
// Random numbers by Philox 4x32-10 (Salmon et al. 2011): block b of the stream is elements 4b to 4b + 3.
//
//! variant random
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 1
#include "gn.glsl"
#include "math.glsl"

layout(local_size_x = 256) in;

layout(constant_id = 0) const uint GN_KIND = 0u; // gni_random_kind
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

void main() {
    uint blocks = (GN_N + 3u) / 4u;
    for (uint b = gl_GlobalInvocationID.x; b < blocks; b += gl_NumWorkGroups.x * 256u) {
        uint carry, low = uaddCarry(GN_COUNTER.x, b, carry);
        uvec4 v = gn_philox(uvec4(low, GN_COUNTER.y + carry, 0u, 0u), GN_KEY);
        if (GN_KIND == GN_UNIFORM) {
            v = floatBitsToUint(vec4(v >> 8) * 5.9604644775390625e-08);
        } else if (GN_KIND == GN_NORMAL) {
            v = floatBitsToUint(vec4(gn_normal2(v.x, v.y), gn_normal2(v.z, v.w)));
        } else if (GN_KIND == GN_RANGE) {
            uvec4 high, rest;
            umulExtended(v, uvec4(GN_SPAN), high, rest);
            v = GN_LOW + (GN_SPAN == 0u ? v : high);
        }
        uint at = GN_OUT_BASE + 4u * b;
        if ((GN_OUT_BASE & 3u) == 0u && 4u * b + 4u <= GN_N) {
            gn_store4(0u, at >> 2, v);
        } else {
            for (uint e = 0u; e < min(GN_N - 4u * b, 4u); e++) gn_store(0u, at + e, v[e]);
        }
    }
}
