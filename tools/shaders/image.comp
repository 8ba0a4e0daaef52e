#version 450
// An image (n, channels, places on three axes) of any strides as (n, places, width): with zeros around it, or cut, and
// channels of zeros behind its own. A workgroup turns 64 places of 32 channels.
//
// For products that take float32 apart (matmul_floats.glsl) each workgroup leaves the largest magnitude that is
// finite behind the image, in the order of workgroups' places and then channels.
//
//! variant image
//! no-bindings
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GN_READONLY 1
#define GN_BUFFERS 2
#define GN_INPUTS_CONST
#include "gn.glsl"
#include "memory.glsl"

layout(local_size_x = 256) in;
layout(constant_id = GNI_S_IMAGE_IN_DTYPE) const uint GN_IN_DTYPE = 0u;
layout(constant_id = GNI_S_IMAGE_OUT_DTYPE) const uint GN_OUT_DTYPE = 0u;
layout(constant_id = GNI_S_IMAGE_LARGEST) const uint GN_LARGEST = 0u;

#define GN_PLACES GN_PARAM(GNI_P_IMAGE_PLACES)
#define GN_CHANNELS GN_PARAM(GNI_P_IMAGE_CHANNELS)
#define GN_WIDTH GN_PARAM(GNI_P_IMAGE_WIDTH)

const uint GN_PITCH = 33u;
shared uint gn_turned[64u * GN_PITCH];

// Reads an invocation's share of 64 places from `from` on, of 32 channels from `first` on.
void gn_read(uint from, uint first, out uint v[8]) {
    uint me = gl_LocalInvocationIndex, place = from + me % 64u, at = GN_PARAM(GNI_P_IMAGE_IN_BASE);
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
        uint c = first + me / 64u + 4u * i, j = at + c * step;
        v[i] = 0u;
        if (inside && c < GN_CHANNELS) v[i] = gn_extract(uvec4(GN_AT(GN_OPEN(0u), j >> s)), uvec4(j), s).x;
        if (GN_IN_DTYPE != GN_OUT_DTYPE) v[i] = gn_narrow(gn_widen(uvec4(v[i]), GN_IN_DTYPE), GN_OUT_DTYPE).x;
    }
}

void gn_turn(uint v[8]) {
    uint me = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < 8u; i++) gn_turned[me % 64u * GN_PITCH + me / 64u + 4u * i] = v[i];
}

shared uint gn_most[256];

// v: an invocation's share.
void gn_tell_largest(uint v[8]) {
    uint me = gl_LocalInvocationIndex, most = 0u;
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        uint size = v[i] & 0x7fffffffu;
        if (size < 0x7f800000u) most = max(most, size);
    }
    gn_most[me] = most;
    barrier();
    if (me < 16u) {
        [[unroll]] for (uint e = 1u; e < 16u; e++) most = max(most, gn_most[me + 16u * e]);
        gn_most[me] = most;
    }
    barrier();
    if (me > 0u) return;
    [[unroll]] for (uint e = 1u; e < 16u; e++) most = max(most, gn_most[e]);
    GN_PUT(GN_OPEN(1u), GN_PARAM(GNI_P_IMAGE_LARGEST) + gl_WorkGroupID.x * gl_NumWorkGroups.y + gl_WorkGroupID.y, most);
}

void main() {
    uint me = gl_LocalInvocationIndex, from = gl_WorkGroupID.x * 64u, first = gl_WorkGroupID.y * 32u;
    uint base = GN_PARAM(GNI_P_IMAGE_OUT_BASE), v[8];
    gn_read(from, first, v);
    gn_turn(v);
    barrier();
    if (GN_LARGEST != 0u) gn_tell_largest(v);
    uint each = gn_packing(GN_OUT_DTYPE) == 1u ? 8u : 4u, groups = 32u / each;
    for (uint e = me; e < 64u * groups; e += 256u) {
        uint p = e / groups, c = e % groups * each, t = p * GN_PITCH + c;
        if (from + p >= GN_PLACES || first + c >= GN_WIDTH) continue;
        uvec4 x = uvec4(gn_turned[t], gn_turned[t + 1u], gn_turned[t + 2u], gn_turned[t + 3u]);
        if (each == 8u)
            x = uvec4(x.x | x.y << 16, x.z | x.w << 16, gn_turned[t + 4u] | gn_turned[t + 5u] << 16,
                      gn_turned[t + 6u] | gn_turned[t + 7u] << 16);
        GN_PUT4(GN_OPEN(1u), (base + (from + p) * GN_WIDTH + first + c) / each, x);
    }
}
