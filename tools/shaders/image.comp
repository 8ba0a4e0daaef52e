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

// Reads an invocation's share of 64 places from `from` on, of 32 channels from `first` on. The number of its image.
uint gn_read(uint from, uint first, out uint v[8]) {
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
    return place;
}

void gn_turn(uint v[8]) {
    uint me = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < 8u; i++) gn_turned[me % 64u * GN_PITCH + me / 64u + 4u * i] = v[i];
}

#ifdef GN_SCAN
shared uint gn_line, gn_group[2u * 256u]; // of two turns: what is read in one is not yet written in the next

// The largest magnitudes of a line, and the smallest of those within it that are not zero, to the control words.
void gn_tell(uint line, uint most, uint least) {
    if (most == 0u) return;
    gn_atomic_max(GN_COUNTERS, GN_INFO + 2u * line, most);
    gn_atomic_max(GN_COUNTERS, GN_INFO + 2u * line + 1u, least);
}

void main() {
    uint me = gl_LocalInvocationIndex, first = gl_WorkGroupID.y * 32u, line = 0u, most = 0u, least = 0u;
    uint from = gl_WorkGroupID.x * uint(GNI_IMAGE_SCANNED) * 64u, v[8], image = gn_read(from, first, v);
    for (uint t = 0u; t < uint(GNI_IMAGE_SCANNED) && from < GN_PLACES; t++) {
        uint next[8], found = 0u, turn = t % 2u * 256u; // the next ones are on their way
        from += 64u;
        uint next_image = gn_read(t + 1u < uint(GNI_IMAGE_SCANNED) ? from : GN_PLACES, first, next);
        [[unroll]] for (uint i = 0u; i < 8u; i++) {
            v[i] &= 0x7fffffffu;
            found = max(found, v[i]);
        }
        if (GN_BY_CHANNEL) {
            gn_turn(v);
            barrier();
            found = 0u;
            [[unroll]] for (uint e = 0u; e < 8u; e++) found = max(found, gn_turned[(me / 32u + 8u * e) * GN_PITCH + me % 32u]);
        }
        gn_group[turn + me] = found;
        barrier();
        uint lines = GN_BY_CHANNEL ? 32u : 64u, now = GN_BY_CHANNEL ? first + me : image;
        if (me < lines) {
            for (uint e = me + lines; e < 256u; e += lines) found = max(found, gn_group[turn + e]);
            if (line != now) {
                gn_tell(line, most, least);
                most = least = 0u;
                line = now;
            }
            if (found != 0u) {
                most = max(most, found);
                least = max(least, ~found);
            }
        }
        v = next;
        image = next_image;
    }
    gn_tell(line, most, least);
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
    uint me = gl_LocalInvocationIndex, from = gl_WorkGroupID.x * 64u, first = gl_WorkGroupID.y * 32u;
    uint base = GN_PARAM(GNI_P_IMAGE_OUT_BASE), v[8], image = gn_read(from, first, v);
#ifdef GN_PARTS
    uint mode = gn_load(GN_COUNTERS, GN_MODE);
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        uint info = GN_INFO + 2u * (GN_BY_CHANNEL ? first + me / 64u + 4u * i : image);
        info = min(info, uint(GNI_SPLIT_CONTROL) + 2u * GN_LINES - 2u); // also where v is none of a line's
        float scale = gn_row_scale(uvec2(gn_load(GN_COUNTERS, info), 0u));
        if (mode == 0u && v[i] != 0u) v[i] = floatBitsToUint(uintBitsToFloat(v[i]) * scale);
    }
#endif
    gn_turn(v);
    barrier();
#ifdef GN_PARTS
    if (mode == 0u) {
        uint p = me / 4u, c = me % 4u * 8u, t = p * GN_PITCH + c;
        if (from + p >= GN_PLACES || first + c >= GN_WIDTH) return;
        vec4 x[2]; // rounded by sums: a driver took unpackHalf2x16(packHalf2x16(x)) for x
        [[unroll]] for (uint e = 0u; e < 8u; e++) x[e / 4u][e % 4u] = uintBitsToFloat(gn_turned[t + e]);
        uvec4 parts[2] = gn_half_parts(x);
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
        uvec4 x = uvec4(gn_turned[t], gn_turned[t + 1u], gn_turned[t + 2u], gn_turned[t + 3u]);
        if (each == 8u)
            x = uvec4(x.x | x.y << 16, x.z | x.w << 16, gn_turned[t + 4u] | gn_turned[t + 5u] << 16,
                      gn_turned[t + 6u] | gn_turned[t + 7u] << 16);
        GN_PUT4(GN_OPEN(1u), (base + (from + p) * GN_WIDTH + first + c) / each, x);
    }
}
#endif
