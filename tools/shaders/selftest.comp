#version 450
// What tests/test_vulkan.c runs, and a small example of gn.glsl.
//
//! variant selftest_map
//! variant selftest_sum -DGN_SUM
#extension GL_GOOGLE_include_directive : require
#ifdef GN_SUM
#define GN_BUFFERS 3
#define GN_READONLY 1
#else
#define GN_BUFFERS 8
#define GN_READONLY 0xfe
#endif
#include "gn.glsl"

layout(local_size_x = 64) in;
layout(constant_id = GNI_S_SELFTEST_FACTOR) const uint K = 1u;
layout(constant_id = GNI_S_SELFTEST_VECTORS) const uint VECTORS = 0u;

#ifdef GN_SUM

// Buffer 2 = sum of buffer 0's n words, wrapping. Buffer 1 is a zero and room for a word for each
// workgroup; the last workgroup adds them up.
shared uint gn_part[64];
shared uint gn_place;

void gn_tree(uint t) {
    for (uint h = 32u; h > 0u; h >>= 1) {
        if (t < h) gn_part[t] += gn_part[t + h];
        barrier();
    }
}

void main() {
    uint n = GN_PARAM(GNI_P_SELFTEST_COUNT), t = gl_LocalInvocationID.x, groups = gl_NumWorkGroups.x;
    uint s = 0u;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += groups * 64u) s += gn_load(0u, i);
    gn_part[t] = s;
    barrier();
    gn_tree(t);
    if (t == 0u) {
        gn_store_coherent(1u, 1u + GN_GROUP, gn_part[0]);
        memoryBarrierBuffer();
        gn_place = gn_atomic_add(1u, 0u, 1u);
    }
    barrier();
    if (gn_place == groups - 1u) {
        memoryBarrierBuffer();
        s = 0u;
        for (uint i = t; i < groups; i += 64u) s += gn_load_coherent(1u, 1u + i);
        gn_part[t] = s;
        barrier();
        gn_tree(t);
        if (t == 0u) gn_store(2u, 0u, gn_part[0]);
    }
}

#else

// Buffer 0 = K * buffer 1 + buffer 2 + ... + buffer m + p over n words, wrapping; VECTORS: n is a
// multiple of 4 and goes by vectors.
void main() {
    uint n = GN_PARAM(GNI_P_SELFTEST_COUNT), m = GN_PARAM(GNI_P_SELFTEST_INPUTS), p = GN_PARAM(GNI_P_SELFTEST_PLUS), step = gl_NumWorkGroups.x * 64u;
    if (VECTORS != 0u) {
        for (uint i = gl_GlobalInvocationID.x; i < n / 4u; i += step) {
            uvec4 s = K * gn_fetch4(1u, i) + p;
            for (uint k = 2u; k <= m; k++) s += gn_load4(k, i);
            gn_store4(0u, i, s);
        }
    } else {
        for (uint i = gl_GlobalInvocationID.x; i < n; i += step) {
            uint s = K * gn_load(1u, i) + p;
            for (uint k = 2u; k <= m; k++) s += gn_load(k, i);
            gn_store(0u, i, s);
        }
    }
}

#endif
