#version 450
// One elementwise program (gni_map) over n elements; see program.glsl.
//
//! variant map_4 -DGN_STEPS=4
//! variant map_8 -DGN_STEPS=8
//! variant map_24 -DGN_STEPS=24
//! variant map_full_8 -DGN_STEPS=8 -DGN_FULL
//! variant map_full_24 -DGN_STEPS=24 -DGN_FULL
//! variant map_generic -DGN_GENERIC -DGN_FULL
//! variant map_wide_8 -DGN_STEPS=8 -DGN_X64
//! variant map_wide_generic -DGN_GENERIC -DGN_X64
//! variant map_copy64 -DGN_GENERIC -DGN_RAW64
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 12
#include "gn.glsl"
#include "program.glsl"

layout(local_size_x = 256) in;

void main() {
    uint n = GN_PARAM(GN_P_KERNEL), groups = (n + GN_GROUP_SIZE - 1u) / GN_GROUP_SIZE;
    gn_constants();
    for (uint g = gl_GlobalInvocationID.x; g < groups; g += gl_NumWorkGroups.x * 256u) {
        uint i = g * GN_GROUP_SIZE;
        gn_run(i, n);
#ifdef GN_GENERIC
        for (uint k = 0u; k < GN_N_OUT; k++) gn_output(k, i, n, gn_r[GN_OUT_REG(k)]);
#else
#define GN_OUTPUT(K) if (K < GN_N_OUT) gn_output(K, i, n, gn_r[GN_OUT_REG(K)]);
        GN_OUTPUT(0u) GN_OUTPUT(1u) GN_OUTPUT(2u) GN_OUTPUT(3u)
#endif
    }
}
