// Elementwise programs at the store of a matrix kernel (gni_matmul.program). Include after matrix.glsl; the kernel
// calls gn_epilogue on the finished float32 sums of a run of one row, before they are narrowed and written:
//
//   if (GN_HAS_PROGRAM) v = gn_epilogue(v, row, column, batch, count);
//
// Registers as in program.glsl: 0 is the product, 1 to 3 are other operands, 8 to 15 constants, 16 + i is what
// instruction i writes. Buffer arguments 3, 6 and 7.
// Not with bindings: there the program is a pass of its own.

#if defined(GN_BINDINGS) || defined(GN_INT32) || defined(GN_X64)
#define GN_HAS_PROGRAM false
#define gn_epilogue(v, row, column, batch, count) (v)
#else

layout(constant_id = GNI_S_STORE) const uint GN_E = 0u;
layout(constant_id = GNI_S_STORE_INPUTS) const uint GN_E_INPUTS = 0u;
layout(constant_id = GNI_S_STORE_STEPS) const uint GN_E0 = 0u;
layout(constant_id = GNI_S_STORE_STEPS + 1) const uint GN_E1 = 0u;
layout(constant_id = GNI_S_STORE_STEPS + 2) const uint GN_E2 = 0u;
layout(constant_id = GNI_S_STORE_STEPS + 3) const uint GN_E3 = 0u;
layout(constant_id = GNI_S_STORE_STEPS + 4) const uint GN_E4 = 0u;
layout(constant_id = GNI_S_STORE_STEPS + 5) const uint GN_E5 = 0u;
layout(constant_id = GNI_S_STORE_STEPS + 6) const uint GN_E6 = 0u;
layout(constant_id = GNI_S_STORE_STEPS + 7) const uint GN_E7 = 0u;
#ifdef GN_HAS_PROLOGUE // prologue.glsl
layout(constant_id = GNI_S_PROLOGUE) const uint GN_PROLOGUE = 0u;
#define GN_HAS_PROGRAM (GN_E != 0u && GN_PROLOGUE == 0u)
#else
#define GN_HAS_PROGRAM (GN_E != 0u)
#endif
#define GN_E_COUNT ((GN_E >> 4) & 15u)
#define GN_E_STEPS ((GN_E >> 8) & 255u)
#define GN_E_RESULT ((GN_E >> 16) & 255u)
#define GN_E_DTYPE(k) ((GN_E_INPUTS >> (8u * (k))) & 15u)
#define GN_E_ONE(k) (((GN_E_INPUTS >> (8u * (k))) & GNI_F_STORE_ONE) != 0u)
#define GN_E_GROUPS(k) (((GN_E_INPUTS >> (8u * (k))) & GNI_F_STORE_GROUPS) != 0u)

#define GN_E_PARAM(i) GN_PARAM(uint(GNI_P_STORE) + (i))

#define GN_FEW
#include "narrow.glsl"
#include "ops.glsl"

uvec4 gn_r[24];

// Constants into their registers, then the instructions.
#define GN_E_STEP(K, W)                                                                                                \
    if (K < GN_E_STEPS)                                                                                                \
        gn_r[16u + K] = gn_exec(W & 2047u, gn_r[(W >> 11) & 127u], gn_r[(W >> 18) & 127u], gn_r[W >> 25]);
#define GN_E_RUN                                                                                                       \
    for (uint k = 0u; k < 8u; k++) gn_r[8u + k] = uvec4(GN_E_PARAM(uint(GNI_P_STORE_CONST) + k));                     \
    GN_E_STEP(0u, GN_E0) GN_E_STEP(1u, GN_E1) GN_E_STEP(2u, GN_E2) GN_E_STEP(3u, GN_E3)                                \
    GN_E_STEP(4u, GN_E4) GN_E_STEP(5u, GN_E5) GN_E_STEP(6u, GN_E6) GN_E_STEP(7u, GN_E7)

// `count` elements of input k that belong to the run.
uvec4 gn_epilogue_input(uint k, GN_HANDLE h, uint row, uint column, uint batch, uint count) {
    uint step = GN_E_PARAM(4u * k + 2u), dtype = GN_E_DTYPE(k);
    uint at = GN_E_PARAM(4u * k) + row * GN_E_PARAM(4u * k + 1u) + column * step + batch * GN_E_PARAM(4u * k + 3u);
    if (GN_E_ONE(k)) return gn_widen(gn_read_raw(h, uvec4(at), dtype, true, false), dtype);
    if (GN_E_GROUPS(k) && count == 4u) return gn_widen(gn_read_raw(h, uvec4(at), dtype, false, true), dtype);
    uvec4 j = at + step * min(uvec4(0u, 1u, 2u, 3u), uvec4(count - 1u));
    return gn_widen(gn_read_raw(h, j, dtype, false, false), dtype);
}

// What the program makes of the sums v at columns column to column + count - 1 of a row, 1 <= count <= 4.
vec4 gn_epilogue(vec4 v, uint row, uint column, uint batch, uint count) {
    gn_r[0] = floatBitsToUint(v);
    if (GN_E_COUNT > 0u) gn_r[1] = gn_epilogue_input(0u, GN_OPEN(3u), row, column, batch, count);
    if (GN_E_COUNT > 1u) gn_r[2] = gn_epilogue_input(1u, GN_OPEN(6u), row, column, batch, count);
    if (GN_E_COUNT > 2u) gn_r[3] = gn_epilogue_input(2u, GN_OPEN(7u), row, column, batch, count);
    GN_E_RUN
    return uintBitsToFloat(gn_r[GN_E_RESULT]);
}
#endif
