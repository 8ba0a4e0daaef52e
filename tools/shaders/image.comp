#version 450
// An image (n, channels, places on three axes) of any strides as (n, places, width): with zeros around it, or cut, and
// channels of zeros behind its own. A workgroup turns 64 places of 32 channels.
//
// For products of float32 in parts (matmul_split.glsl) image_scan finds magnitudes, then image_parts scales, and writes
// hi + lo 2^-12 in float16: of 16 channels of a place their 16 hi, then their 16 lo, in as many bytes as they have in
// float32. A line is an image, or a channel of all of them, and has one scale. Lines of two operands are scanned; the last
// workgroup chooses for their product:
//
//   mode 0   parts. The largest of 32 channels of each place, or of each 64 places of a channel, is zero or within 2^27 of
//            the line's largest
//   mode 2   float32 as it is, also where there are infinities or NaN
//
//! variant image
//! variant image_scan --env=vulkan1.3 -DGN_SCAN
//! variant image_parts --env=vulkan1.3 -DGN_PARTS
//! no-bindings
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GN_READONLY 1
#if defined(GN_SCAN) || defined(GN_PARTS)
#define GN_BUFFERS 6 // 5: control words
#include "gn.glsl"
#include "matrix.glsl"
#include "split.glsl"
#define GN_BY_CHANNEL (GN_PARAM(GNI_P_IMAGE_BY_CHANNEL) != 0u)
#define GN_INFO GN_PARAM(GNI_P_IMAGE_INFO)
#define GN_LINES GN_PARAM(GNI_P_IMAGE_LINES)
#else
#define GN_BUFFERS 2
#define GN_INPUTS_CONST
#include "gn.glsl"
#include "memory.glsl"
#endif

layout(local_size_x = 256) in;
layout(constant_id = GNI_S_IMAGE_IN_DTYPE) const uint GN_IN_DTYPE = 0u;
layout(constant_id = GNI_S_IMAGE_OUT_DTYPE) const uint GN_OUT_DTYPE = 0u;

#define GN_PLACES GN_PARAM(GNI_P_IMAGE_PLACES)
#define GN_CHANNELS GN_PARAM(GNI_P_IMAGE_CHANNELS)
#define GN_WIDTH GN_PARAM(GNI_P_IMAGE_WIDTH)

const uint GN_PITCH = 33u;
shared uint gn_turned[64u * GN_PITCH];

#ifdef GN_SCAN
uint gn_found; // the largest magnitude that the invocation read, all of one place
#endif

// Reads 64 places from `from` on, of 32 channels from `first` on. The number of the invocation's image.
uint gn_turn(uint from, uint first, uint mode) {
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
        uint c = me / 64u + 4u * i, j = at + (first + c) * step, v = 0u;
        if (inside && first + c < GN_CHANNELS) v = gn_extract(uvec4(GN_AT(GN_OPEN(0u), j >> s)), uvec4(j), s).x;
        if (GN_IN_DTYPE != GN_OUT_DTYPE) v = gn_narrow(gn_widen(uvec4(v), GN_IN_DTYPE), GN_OUT_DTYPE).x;
#ifdef GN_SCAN
        v &= 0x7fffffffu;
        gn_found = i == 0u ? v : max(gn_found, v);
        if (!GN_BY_CHANNEL) continue;
#endif
#ifdef GN_PARTS
        if (mode == 0u && v != 0u) {
            uint info = GN_INFO + 2u * (GN_BY_CHANNEL ? first + c : place);
            v = floatBitsToUint(uintBitsToFloat(v) *
                                gn_row_scale(uvec2(gn_load(GN_COUNTERS, info), gn_load(GN_COUNTERS, info + 1u))));
        }
#endif
        gn_turned[me % 64u * GN_PITCH + c] = v;
    }
    return place;
}

#ifdef GN_SCAN
shared uint gn_line, gn_most[64], gn_least[64], gn_group[64]; // of the lines from gn_line on; of places

// What was found goes to the control words.
void gn_tell() {
    uint me = gl_LocalInvocationIndex;
    barrier();
    if (me < 64u && gn_most[me] != 0u) {
        uint info = GN_INFO + 2u * (gn_line + me);
        gn_atomic_max(GN_COUNTERS, info, gn_most[me]);
        gn_atomic_max(GN_COUNTERS, info + 1u, gn_least[me]);
    }
    barrier();
}

// The largest magnitudes of lines in what was turned, and the smallest of those within them that are not zero.
void gn_scan(uint first, uint image, uint t) {
    uint me = gl_LocalInvocationIndex, line = GN_BY_CHANNEL ? first : image, found = gn_found;
    if (me == 0u) gn_group[0] = line;
    barrier();
    line = gn_group[0];
    if (t == 0u || line != gn_line) { // the same for all
        if (t > 0u) gn_tell();
        if (me < 64u) gn_most[me] = gn_least[me] = 0u;
    }
    barrier();
    if (me == 0u) gn_line = line;
    if (me < 64u) gn_group[me] = 0u;
    barrier();
    if (GN_BY_CHANNEL) {
        found = 0u;
        [[unroll]] for (uint e = 0u; e < 8u; e++) found = max(found, gn_turned[(me / 32u + 8u * e) * GN_PITCH + me % 32u]);
    }
    atomicMax(gn_group[GN_BY_CHANNEL ? me % 32u : me % 64u], found);
    barrier();
    if (me < 64u && gn_group[me] != 0u) {
        uint at = GN_BY_CHANNEL ? me : image - line;
        atomicMax(gn_most[at], gn_group[me]);
        atomicMax(gn_least[at], ~gn_group[me]);
    }
    barrier();
}

void main() {
    uint me = gl_LocalInvocationIndex, first = gl_WorkGroupID.y * 32u;
    for (uint t = 0u; t < uint(GNI_IMAGE_SCANNED); t++) {
        uint from = (gl_WorkGroupID.x * uint(GNI_IMAGE_SCANNED) + t) * 64u;
        if (from < GN_PLACES) gn_scan(first, gn_turn(from, first, 0u), t);
    }
    gn_tell();
    if (!gn_is_last_of(GN_SCANNED, GN_PARAM(GNI_P_IMAGE_SCANS))) return;
    if (me == 0u) gn_line = 0u;
    barrier();
    for (uint i = me; i < GN_LINES; i += 256u)
        if (gn_row_mode(gn_row_info(uint(GNI_SPLIT_CONTROL) + 2u * i)) > 0u) atomicOr(gn_line, 2u);
    barrier();
    if (me == 0u) gn_store_coherent(GN_COUNTERS, GN_MODE, gn_line);
}
#else
void main() {
    uint me = gl_LocalInvocationIndex, from = gl_WorkGroupID.x * 64u, first = gl_WorkGroupID.y * 32u, mode = 2u;
    uint base = GN_PARAM(GNI_P_IMAGE_OUT_BASE);
#ifdef GN_PARTS
    mode = gn_load(GN_COUNTERS, GN_MODE);
#endif
    gn_turn(from, first, mode);
    barrier();
#ifdef GN_PARTS
    if (mode == 0u) {
        uint p = me / 4u, c = me % 4u * 8u, t = p * GN_PITCH + c;
        if (from + p >= GN_PLACES || first + c >= GN_WIDTH) return;
        vec4 v[2]; // rounded by sums: a driver took unpackHalf2x16(packHalf2x16(v)) for v
        [[unroll]] for (uint e = 0u; e < 8u; e++) v[e / 4u][e % 4u] = uintBitsToFloat(gn_turned[t + e]);
        uvec4 parts[2] = gn_half_parts(v);
        uint to = (base + (from + p) * GN_WIDTH + first + (c & ~15u)) / 4u + c / 8u % 2u;
        GN_PUT4(GN_OPEN(1u), to, parts[0]);
        GN_PUT4(GN_OPEN(1u), to + 2u, parts[1]);
        return;
    }
#endif
    uint each = gn_packing(GN_OUT_DTYPE) == 1u ? 8u : 4u, groups = 32u / each;
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
#endif
