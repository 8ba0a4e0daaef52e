// The layouts of a product's operands, and how its sums are finished and written: a bias, relu, a program. Include matrix.glsl and
// epilogue.glsl first.

layout(constant_id = GNI_S_MATMUL_A_DTYPE) const uint GN_A_DTYPE = 0u;
layout(constant_id = GNI_S_MATMUL_B_DTYPE) const uint GN_B_DTYPE = 0u;
layout(constant_id = GNI_S_MATMUL_C_DTYPE) const uint GN_C_DTYPE = 0u;
layout(constant_id = GNI_S_MATMUL_LAYOUT) const uint GN_LAYOUT = 0u;
#define GN_A_ALONG_M ((GN_LAYOUT & GNI_F_MATMUL_A_ALONG_M) != 0u)
#define GN_A_GROUPS ((GN_LAYOUT & GNI_F_MATMUL_A_GROUPS) != 0u)
#define GN_B_ALONG_K ((GN_LAYOUT & GNI_F_MATMUL_B_ALONG_K) != 0u)
#define GN_B_GROUPS ((GN_LAYOUT & GNI_F_MATMUL_B_GROUPS) != 0u)
#define GN_C_GROUPS ((GN_LAYOUT & GNI_F_MATMUL_C_GROUPS) != 0u)
#define GN_HAS_BIAS ((GN_LAYOUT & GNI_F_MATMUL_BIAS) != 0u)
#define GN_HAS_RELU ((GN_LAYOUT & GNI_F_MATMUL_RELU) != 0u)

#define GN_C_ROW GN_PARAM(GNI_P_MATMUL_C_ROW)
#include "windows.glsl"

void gn_write_run(uint row, uint column, uint batch, GN_VALUES v, GN_VALUES bias) {
    uint count = row < GN_M ? gn_inside(column, GN_N) : 0u;
    if (count == 0u) return;
#if !defined(GN_INT32) && !defined(GN_X64)
    if (GN_HAS_BIAS) v += bias;
#ifdef GN_WGSL // whose compilers may suppose that there is no NaN
    if (GN_HAS_RELU) v = mix(v, vec4(0.0), lessThanEqual(floatBitsToUint(v) ^ 0x80000000u, uvec4(0x7f800000u)));
#else
    if (GN_HAS_RELU) v = mix(v, vec4(0.0), lessThan(v, vec4(0.0)));
#endif
    if (GN_HAS_PROGRAM) v = gn_epilogue(v, row, column, batch, count);
#endif
    uvec4 r = gn_narrow(GN_FROM_VALUES(v), GN_C_DTYPE);
    if (GN_C_GROUPS && count == GN_EACH) gn_write_group(GN_OPEN(GN_C), gn_c_place(row, column, batch), GN_C_DTYPE, r);
    else gn_write_each(GN_OPEN(GN_C), gn_c_places(row, column, batch), GN_C_DTYPE, r, count);
}
