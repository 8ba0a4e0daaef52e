// Windows of an image as operand b of a product: an element's place is the sum of one for its row and one for its column,
// each of which is counted by up to four indices. Runs of c's columns lie apart. Include matrix.glsl and define GN_LAYOUT first.

#if defined(GN_BINDINGS) && !defined(GN_WGSL) // Vulkan's kernels with bindings do without
#define GN_NO_WINDOWS
#endif
#if defined(GN_NO_WINDOWS) || defined(GN_INT32) || defined(GN_X64) || (defined(GN_PARTS) && !defined(GN_FLOATS))
#define GN_WINDOWS false
#else
#define GN_WINDOWS ((GN_LAYOUT & GNI_F_MATMUL_WINDOWS) != 0u)
#endif
#define GN_EVEN ((GN_LAYOUT & GNI_F_MATMUL_EVEN) != 0u)

#ifdef GN_NO_WINDOWS
uint gn_window(uint p, uint i) { return i; }
#else
#include "divide.glsl"
// Where row or column i begins.
uint gn_window(uint p, uint i) {
    uint at = 0u, step = GN_PARAM(p + 1u), n = GN_PARAM(p);
    [[unroll]] for (uint d = 0u; d < 3u; d++)
        if (d < n) {
            uint w = p + 2u + 4u * d, q = gn_over(i, w);
            at += (i - q * GN_PARAM(w)) * step;
            step = GN_PARAM(w + 3u);
            i = q;
        }
    return at + i * step;
}
#endif

uint gn_c_place(uint row, uint column, uint batch) {
    uint at = GN_C_BASE + (batch * GN_M + row) * GN_C_ROW + column;
#ifndef GN_NO_WINDOWS
    if (GN_WINDOWS) at += gn_over(column, GNI_P_WINDOWS_C) * GN_PARAM(GNI_P_WINDOWS_C + 3u);
#endif
    return at;
}
// Of four columns.
uvec4 gn_c_places(uint row, uint column, uint batch) {
    if (!GN_WINDOWS) return gn_c_place(row, column, batch) + uvec4(0u, 1u, 2u, 3u);
    return uvec4(gn_c_place(row, column, batch), gn_c_place(row, column + 1u, batch), gn_c_place(row, column + 2u, batch),
                 gn_c_place(row, column + 3u, batch));
}
