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
const bool GN_LONG = GN_OUT == uint(GNI_T_I64) || GN_OUT == uint(GNI_T_U64);

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
    if (GN_KIND == GN_UNIFORM || GN_KIND == GN_NORMAL || GN_KIND == GN_DECAYING) {
        precise vec4 y;
        if (GN_KIND == GN_UNIFORM) y = vec4(v >> (32u - GN_LOW)) * uintBitsToFloat((127u - GN_LOW) << 23);
        else if (GN_KIND == GN_NORMAL) y = vec4(gn_normal2(v.x, v.y), gn_normal2(v.z, v.w));
        else y = vec4(gn_exponential(v.x), gn_exponential(v.y), gn_exponential(v.z), gn_exponential(v.w));
        y = y * uintBitsToFloat(GN_PARAM(GNI_P_RANDOM_SCALE));
        y = y + uintBitsToFloat(GN_PARAM(GNI_P_RANDOM_OFFSET));
        return gn_narrow(floatBitsToUint(y), GN_OUT);
    }
    if (GN_KIND == GN_BELOW) return uvec4(lessThan(v >> 8u, uvec4(GN_SPAN)));
    if (GN_KIND != GN_RANGE) return v;
    uvec4 high, rest;
    if (GN_PAIRS != 0u) {
        high = uvec4(gn_pairs_below_span(v), 0u, 0u);
    } else {
        umulExtended(v, uvec4(GN_SPAN), high, rest);
        if (GN_SPAN == 0u) high = v;
    }
    return GN_LONG ? high : GN_LOW + high;
}

// Integers of 64 bits, number `at` and the next one, which are `x` above the lowest.
void gn_put_long(uint at, uint count, uvec2 x) {
    uvec2 carry, low = uaddCarry(uvec2(GN_LOW), x, carry), high = GN_PARAM(GNI_P_RANDOM_LOW_HIGH) + carry;
    if ((at & 1u) == 0u && count >= 2u) {
        gn_store4(0u, at >> 1, uvec4(low.x, high.x, low.y, high.y));
        return;
    }
    gn_store2(0u, at, uvec2(low.x, high.x));
    if (count > 1u) gn_store2(0u, at + 1u, uvec2(low.y, high.y));
}

void main() {
    GN_HANDLE h = GN_OPEN(0u);
    // Of elements of 8 bytes each half of a block has an invocation, so that neighbours write neighbours.
    bool halves = GN_LONG && GN_PAIRS == 0u;
    uint n = GN_N, base = GN_OUT_BASE, each = GN_LONG || GN_PAIRS != 0u ? 2u : 4u, blocks = (n + each - 1u) / each;
    // Several blocks for an invocation: what is read of the parameters serves all of them.
    for (uint first = gl_WorkGroupID.x * 1024u; first < blocks; first += gl_NumWorkGroups.x * 1024u) {
        for (uint b = first + gl_LocalInvocationIndex; b < min(first + 1024u, blocks); b += 256u) {
            uvec4 v = gn_random_block(halves ? b / 2u : b);
            uint at = base + each * b;
            if (GN_LONG) gn_put_long(at, n - each * b, halves && (b & 1u) != 0u ? v.zw : v.xy);
            else if (each == 4u && (base & 3u) == 0u && 4u * b + 4u <= n) gn_write_group(h, at, GN_OUT, v);
            else gn_write_each(h, at + uvec4(0u, 1u, 2u, 3u), GN_OUT, v, min(n - each * b, each));
        }
    }
}
