#version 450
// Random numbers by Philox 4x32-10 (Salmon et al. 2011): block b of the stream is elements 4b to 4b + 3,
// or 2b and 2b + 1 where each takes two words (gni_random_pairs).
//
//! variant random
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 1
#include "gn.glsl"
#include "math.glsl"
#include "memory.glsl"
#include "random.glsl"

layout(local_size_x = 256) in;

#define GN_LOW GN_PARAM(GNI_P_RANDOM_LOW)
#define GN_SPAN GN_PARAM(GNI_P_RANDOM_RANGE)

// The high word of the product of two-word numbers and the span, by 2^32.
uvec2 gn_pairs_below_span(uvec4 v) {
    uvec2 high, rest, from_low, unused, carry;
    umulExtended(v.yw, uvec2(GN_SPAN), high, rest);
    umulExtended(v.xz, uvec2(GN_SPAN), from_low, unused);
    uaddCarry(rest, from_low, carry);
    return GN_SPAN == 0u ? v.yw : high + carry;
}

uvec4 gn_random_block(uint b) {
    uvec4 v = gn_philox(uvec4(gn_counter(b), 0u, 0u), GN_KEY);
    // Halves take the leading bits that they can hold, since rounding could give 1.
    uint few = GN_OUT == GN_T_F16 ? 11u : GN_OUT == GN_T_BF16 ? 8u : 24u;
    if (GN_KIND == GN_UNIFORM)
        return gn_narrow(floatBitsToUint(vec4(v >> (32u - few)) * uintBitsToFloat((127u - few) << 23)), GN_OUT);
    if (GN_KIND == GN_NORMAL)
        return gn_narrow(floatBitsToUint(vec4(gn_normal2(v.x, v.y), gn_normal2(v.z, v.w))), GN_OUT);
    if (GN_KIND == GN_DECAYING)
        return floatBitsToUint(vec4(gn_exponential(v.x), gn_exponential(v.y), gn_exponential(v.z), gn_exponential(v.w)));
    if (GN_KIND == GN_BELOW) return uvec4(lessThan(v >> 8u, uvec4(GN_SPAN)));
    if (GN_KIND != GN_RANGE) return v;
    if (GN_PAIRS != 0u) return GN_LOW + uvec4(gn_pairs_below_span(v), 0u, 0u);
    uvec4 high, rest;
    umulExtended(v, uvec4(GN_SPAN), high, rest);
    return GN_LOW + (GN_SPAN == 0u ? v : high);
}

void main() {
    GN_HANDLE h = GN_OPEN(0u);
    uint n = GN_N, base = GN_OUT_BASE, each = GN_PAIRS != 0u ? 2u : 4u, blocks = (n + each - 1u) / each;
    // Several blocks for an invocation: what is read of the parameters serves all of them.
    for (uint first = gl_WorkGroupID.x * 1024u; first < blocks; first += gl_NumWorkGroups.x * 1024u) {
        for (uint b = first + gl_LocalInvocationIndex; b < min(first + 1024u, blocks); b += 256u) {
            uvec4 v = gn_random_block(b);
            uint at = base + each * b;
            if (each == 4u && (base & 3u) == 0u && 4u * b + 4u <= n) gn_write_group(h, at, GN_OUT, v);
            else gn_write_each(h, at + uvec4(0u, 1u, 2u, 3u), GN_OUT, v, min(n - each * b, each));
        }
    }
}
