#version 450
// An image (n, channels, places on three axes) of any strides as (n, places, width): with zeros around it, or cut, and
// channels of zeros behind its own. A workgroup turns 64 places of 32 channels.
//
//! variant image
//! no-bindings
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 2
#define GN_READONLY 1
#define GN_INPUTS_CONST
#include "gn.glsl"
#include "memory.glsl"

layout(local_size_x = 256) in;
layout(constant_id = GNI_S_IMAGE_IN_DTYPE) const uint GN_IN_DTYPE = 0u;
layout(constant_id = GNI_S_IMAGE_OUT_DTYPE) const uint GN_OUT_DTYPE = 0u;

#define GN_PLACES GN_PARAM(GNI_P_IMAGE_PLACES)
#define GN_CHANNELS GN_PARAM(GNI_P_IMAGE_CHANNELS)
#define GN_WIDTH GN_PARAM(GNI_P_IMAGE_WIDTH)

const uint GN_PITCH = 33u;
shared uint gn_turned[64u * GN_PITCH];

void main() {
    uint me = gl_LocalInvocationIndex, from = gl_WorkGroupID.x * 64u, first = gl_WorkGroupID.y * 32u;
    uint place = from + me % 64u, at = GN_PARAM(GNI_P_IMAGE_IN_BASE);
    bool inside = place < GN_PLACES;
    [[unroll]] for (uint d = 0u; d < 3u; d++) {
        uint w = GNI_P_IMAGE_AXIS + 6u * d, high, low;
        umulExtended(place, GN_PARAM(w + 1u), high, low);
        uint q = (high + place) >> GN_PARAM(w + 2u), x = place - q * GN_PARAM(w) - GN_PARAM(w + 3u);
        inside = inside && x < GN_PARAM(w + 4u); // what is in front of it is very large
        at += x * GN_PARAM(w + 5u);
        place = q;
    }
    at += place * GN_PARAM(GNI_P_IMAGE_STEP_IMAGE);
    uint s = gn_packing(GN_IN_DTYPE), step = GN_PARAM(GNI_P_IMAGE_STEP_CHANNEL);
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        uint c = me / 64u + 4u * i, j = at + (first + c) * step, v = 0u;
        if (inside && first + c < GN_CHANNELS) v = gn_extract(uvec4(GN_AT(GN_OPEN(0u), j >> s)), uvec4(j), s).x;
        if (GN_IN_DTYPE != GN_OUT_DTYPE) v = gn_narrow(gn_widen(uvec4(v), GN_IN_DTYPE), GN_OUT_DTYPE).x;
        gn_turned[me % 64u * GN_PITCH + c] = v;
    }
    barrier();
    uint base = GN_PARAM(GNI_P_IMAGE_OUT_BASE), each = gn_packing(GN_OUT_DTYPE) == 1u ? 8u : 4u, groups = 32u / each;
    for (uint e = me; e < 64u * groups; e += 256u) {
        uint p = e / groups, c = e % groups * each, t = p * GN_PITCH + c;
        if (from + p >= GN_PLACES || first + c >= GN_WIDTH) continue;
        uvec4 v = uvec4(gn_turned[t], gn_turned[t + 1u], gn_turned[t + 2u], gn_turned[t + 3u]);
        if (each == 8u)
            v = uvec4(v.x | v.y << 16, v.z | v.w << 16, gn_turned[t + 4u] | gn_turned[t + 5u] << 16,
                      gn_turned[t + 6u] | gn_turned[t + 7u] << 16);
        GN_PUT4(GN_OPEN(1u), (base + (from + p) * GN_WIDTH + first + c) / each, v);
    }
}
