// Where indices lead: into the axis in the middle of (outer, extent, inner). There is one for each row of (outer, count, inner), or
// with GN_ALONG for each element. Include memory.glsl first. Buffer 1 has the indices, word 0 of buffer 3 becomes 1 where one of
// them is none.

#include "divide.glsl"

layout(constant_id = GNI_S_TAKE_INDEX_DTYPE) const uint GN_INDEX_DTYPE = 0u;
layout(constant_id = GNI_S_TAKE_ALONG) const bool GN_ALONG = false;

#define GN_N GN_PARAM(GNI_P_TAKE_N)
#define GN_INNER GN_PARAM(GNI_P_TAKE_INNER)
#define GN_COUNT GN_PARAM(GNI_P_TAKE_COUNT)
#define GN_EXTENT GN_PARAM(GNI_P_TAKE_EXTENT)
#define GN_IN_BASE GN_PARAM(GNI_P_TAKE_IN_BASE)
#define GN_INDEX_BASE GN_PARAM(GNI_P_TAKE_INDEX_BASE)
#define GN_OUT_BASE GN_PARAM(GNI_P_TAKE_OUT_BASE)

// Row number `c` of the index; negative ones count from the end, others outside are clamped and told of.
uint gn_pick(uint c) {
    uint j = GN_INDEX_BASE + c, low;
    bool negative, none;
    if (GN_INDEX_DTYPE == GN_T_I64) {
        uvec2 w = gn_fetch2(1u, j);
        low = w.x;
        negative = int(w.y) < 0;
        none = w.y != (negative ? 0xffffffffu : 0u);
    } else {
        low = gn_fetch(1u, j);
        negative = GN_INDEX_DTYPE == GN_T_I32 && int(low) < 0;
        none = false;
    }
    none = none || (negative ? low < 0u - GN_EXTENT : low >= GN_EXTENT);
    if (none) {
        gn_store(3u, 0u, 1u);
        return 0u;
    }
    return negative ? low + GN_EXTENT : low;
}

// Element t of (outer, count, inner) as one of (outer, extent, inner).
uint gn_place(uint t) {
    uint r = gn_over(t, uint(GNI_P_TAKE_INNER)), u = t - r * GN_INNER, o = gn_over(r, uint(GNI_P_TAKE_COUNT)), c = r - o * GN_COUNT;
    return (o * GN_EXTENT + gn_pick(GN_ALONG ? t : c)) * GN_INNER + u;
}
