// Shared by elementwise.comp and elementwise_fast.comp: one program (gni_map) over n elements.

#define GN_BUFFERS 12
#include "gn.glsl"
#define GN_NO_SCALAR
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
        GN_OUTPUT(0u)
#if GN_INPUTS > 3
        GN_OUTPUT(1u) GN_OUTPUT(2u) GN_OUTPUT(3u)
#endif
#endif
    }
}
