#version 450
// Products of many small matrices (gni_matmul): an invocation makes a square of c, 4 x 4 or of float64 2 x 2, of what it reads
// itself. Neighbours share rows of a and columns of b, which are in the first cache then.
//
//! no-bindings
//! variant products
//! variant products64 -DGN_X64
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 8 // two are epilogue.glsl's
#define GN_READONLY 0xb
#define GN_NO_WINDOWS
#include "gn.glsl"
#include "matrix.glsl"
#include "epilogue.glsl"
#include "store.glsl"

layout(local_size_x = 256) in;

#define GN_WHOLE ((GN_LAYOUT & GNI_F_MATMUL_WHOLE) != 0u) // all squares are
#define GN_SQUARE(i) [[unroll]] for (uint i = 0u; i < GN_EACH; i++)

void main() {
    uint down = (GN_M + GN_EACH - 1u) / GN_EACH, across = (GN_N + GN_EACH - 1u) / GN_EACH, squares = down * across;
    GN_HANDLE ha = GN_OPEN(GN_A), hb = GN_OPEN(GN_B);
    for (uint t = gl_GlobalInvocationID.x; t < squares * GN_BATCHES; t += gl_NumWorkGroups.x * 256u) {
        uint batch = t / squares, i = t - batch * squares, row = i / across * GN_EACH, column = i % across * GN_EACH;
        uint rows = GN_EACH, columns = GN_EACH, inside = GN_EACH;
        if (!GN_WHOLE) rows = gn_inside(row, GN_M);
        if (!GN_WHOLE) columns = gn_inside(column, GN_N);
        uvec2 at = gn_batch(batch) + uvec2(row * GN_A_ROW, column * GN_B_COLUMN);
        GN_VALUES sum[GN_EACH], bias = GN_ZERO;
        GN_SQUARE(r) sum[r] = GN_ZERO;
        for (uint k = 0u; k < GN_K; k += GN_EACH) {
            if (!GN_WHOLE) inside = gn_inside(k, GN_K);
            GN_VALUES a[GN_EACH], b[GN_EACH]; // lines along k, or of one k each
            GN_SQUARE(e) {
                uint x = at.x + k * GN_A_COLUMN, y = at.y + k * GN_B_ROW;
                if (GN_A_ALONG_M) a[e] = gn_read_run(ha, x + e * GN_A_COLUMN, GN_A_ROW, GN_A_DTYPE, GN_A_GROUPS, e < inside ? rows : 0u);
                else a[e] = gn_read_run(ha, x + e * GN_A_ROW, GN_A_COLUMN, GN_A_DTYPE, GN_A_GROUPS, e < rows ? inside : 0u);
                if (GN_B_ALONG_K) b[e] = gn_read_run(hb, y + e * GN_B_COLUMN, GN_B_ROW, GN_B_DTYPE, GN_B_GROUPS, e < columns ? inside : 0u);
                else b[e] = gn_read_run(hb, y + e * GN_B_ROW, GN_B_COLUMN, GN_B_DTYPE, GN_B_GROUPS, e < inside ? columns : 0u);
            }
            GN_SQUARE(q) {
                GN_VALUES line = b[q];
                if (GN_B_ALONG_K) GN_SQUARE(e) line[e] = b[e][q];
                GN_SQUARE(r) sum[r] = GN_MADD(GN_VALUES(GN_A_ALONG_M ? a[q][r] : a[r][q]), line, sum[r]);
            }
        }
#ifndef GN_X64
        if (GN_HAS_BIAS) bias = gn_read_run(GN_OPEN(GN_BIAS), GN_BIAS_BASE + column, 1u, GN_T_F32, false, columns);
#endif
        GN_SQUARE(r) gn_write_run(row + r, column, batch, sum[r], bias);
    }
}
