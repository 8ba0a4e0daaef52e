#version 450
// What is where a mask of bytes is true. The mask is cut into chunks, a workgroup for each.
//
// GNI_KEEP_COUNT      how many are true in each chunk
// GNI_KEEP_PLACES     their places, int64: a row for each axis of (d0, d1, ...)
// GNI_KEEP_ELEMENTS   the elements there, in units of 16, 8, 4, 2 or 1 bytes
//
//! variant keep
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#define GN_BUFFERS 4
#define GN_READONLY 3
#include "gn.glsl"
#define GN_INPUTS_CONST
#include "memory.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_KEEP_STEP) const uint GN_STEP = 0u;
layout(constant_id = GNI_S_KEEP_UNIT) const uint GN_UNIT = 2u;
layout(constant_id = GNI_S_KEEP_RANK) const uint GN_RANK = 1u;

// Buffers: the mask, elements, counts, the result.
#define GN_CHUNK GN_PARAM(GNI_P_KEEP_CHUNK) // a multiple of 4096
#define GN_BASE GN_PARAM(GNI_P_KEEP_BASE)   // of the mask, in bytes
#define GN_END GN_PARAM(GNI_P_KEEP_END)
#define GN_KEPT GN_PARAM(GNI_P_KEEP_COUNT_ALL)

shared uint gn_sums[64];
shared uint gn_found[4096];

// The bytes of word j of the mask that count.
uint gn_inside(uint w, uint j) {
    uint first = 4u * j;
    if (first + 4u <= GN_BASE || first >= GN_END) return 0u;
    if (first < GN_BASE) w &= 0xffffffffu << (8u * (GN_BASE - first));
    if (first + 4u > GN_END) w &= 0xffffffffu >> (8u * (first + 4u - GN_END));
    return w;
}

// Words 4 j to 4 j + 3 of it.
uvec4 gn_words_of(uint j) {
    uvec4 w = uvec4(0u);
    if (16u * j < GN_END) w = gn_fetch4(0u, j);
    if (16u * j < GN_BASE || 16u * j + 16u > GN_END)
        for (uint e = 0u; e < 4u; e++) w[e] = gn_inside(w[e], 4u * j + e);
    return w;
}

// Of the workgroup; `front` gets the sum over the invocations before this one.
uint gn_total(uint v, out uint front) {
    uint sum = 0u, own = subgroupExclusiveAdd(v);
    if (gl_SubgroupInvocationID == gl_SubgroupSize - 1u) gn_sums[gl_SubgroupID] = own + v;
    barrier();
    for (uint s = 0u; s < gl_NumSubgroups; s++) {
        if (s == gl_SubgroupID) front = sum + own;
        sum += gn_sums[s];
    }
    return sum;
}

void gn_emit(uint k, uint i) {
    if (GN_STEP == GNI_KEEP_ELEMENTS) {
        uint j = GN_PARAM(GNI_P_KEEP_IN_BASE) + i, o = GN_PARAM(GNI_P_KEEP_OUT_BASE) + k;
        if (GN_UNIT == 4u) {
            uvec4 v = gn_fetch4(1u, j);
            gn_store4(3u, o, v);
        } else if (GN_UNIT == 3u) {
            uvec2 v = gn_fetch2(1u, j);
            gn_store2(3u, o, v);
        } else {
            uint s = 2u - GN_UNIT;
            gn_write_one(GN_OPEN(3u), o, s, gn_extract(uvec4(gn_fetch(1u, j >> s)), uvec4(j), s).x);
        }
        return;
    }
    for (uint a = GN_RANK; a-- > 0u;) {
        uint q = 0u, r = i;
        if (a > 0u) {
            uint d = GN_PARAM(GNI_P_KEEP_DIM + a);
            q = i / d;
            r = i - q * d;
        }
        gn_store2(3u, GN_PARAM(GNI_P_KEEP_OUT_BASE) + a * GN_KEPT + k, uvec2(r, 0u));
        i = q;
    }
}

void main() {
    uint me = gl_LocalInvocationIndex, group = GN_GROUP, origin = GN_BASE & ~15u, front = 0u;
    uint begin = origin + group * GN_CHUNK, end = min(begin + GN_CHUNK, GN_END), many = 0u;
    if (GN_STEP == GNI_KEEP_COUNT) {
        for (uint j = begin / 16u + me; 16u * j < end; j += 256u) {
            uvec4 w = gn_words_of(j);
            w.x += w.y + w.z + w.w; // each byte at most 4
            many += (w.x * 0x01010101u) >> 24;
        }
        many = gn_total(many, front);
        if (me == 0u) gn_store(2u, group, many);
        return;
    }
    if (begin >= GN_END) return;
    uvec4 next = gn_words_of(begin / 16u + me);
    for (uint j = me; j < group; j += 256u) many += gn_load(2u, j);
    uint at = gn_total(many, front);
    for (uint tile = begin; tile < end; tile += 4096u) {
        uvec4 w = next;
        if (tile + 4096u < end) next = gn_words_of(tile / 16u + 256u + me);
        barrier();
        uint all = gn_total(((w.x + w.y + w.z + w.w) * 0x01010101u) >> 24, front);
        for (uint e = 0u; e < 16u; e++) {
            uint b = (w[e / 4u] >> (8u * (e & 3u))) & 0xffu;
            if (b != 0u) gn_found[front] = 16u * me + e;
            front += b;
        }
        barrier();
        for (uint i = me; i < all; i += 256u) gn_emit(at + i, tile - GN_BASE + gn_found[i]);
        at += all;
    }
}
