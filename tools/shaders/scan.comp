#version 450
// Scans along the middle axis of (outer, n, inner).
//
// GNI_F_SCAN_TOTALS   inner is 1: what each tile of a row comes to, into parts[row][tile]
// GNI_F_SCAN_TILES    inner is 1: each tile, with its part in front where there are several
// GNI_F_SCAN_COLUMNS  an invocation each
//
//! variant scan
//! variant scan_double -DGN_DOUBLE
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 3
#define GN_READONLY 1
#include "gn.glsl"
#include "memory.glsl"

layout(local_size_x = 256) in;

#include "scan.glsl"

// Buffers: elements, results, parts.
#define GN_OUTER GN_PARAM(GNI_P_SCAN_OUTER)
#define GN_N GN_PARAM(GNI_P_SCAN_N)
#define GN_INNER GN_PARAM(GNI_P_SCAN_INNER)
#define GN_IN_BASE GN_PARAM(GNI_P_SCAN_IN_BASE)
#define GN_OUT_BASE GN_PARAM(GNI_P_SCAN_OUT_BASE)
#define GN_TILES GN_PARAM(GNI_P_SCAN_TILES)
const uint GN_TILE = uint(GNI_SCAN_TILE);
const uint GN_EACH = GN_TILE / 256u;

GN_V gn_get(uint j) {
    if (GN_VALUES) return GN_LOAD_V(0u, j);
    if (GN_LONG) return gn_factor(gn_value2(gn_load2(0u, j)));
#ifdef GN_DOUBLE
    return gn_none();
#else
    uint s = gn_packing(GN_DTYPE);
    return gn_factor(gn_value(gn_widen(gn_extract(uvec4(gn_load(0u, j >> s)), uvec4(j), s), GN_DTYPE).x));
#endif
}

void gn_put(uint j, GN_V v) {
    if (GN_VALUES) GN_STORE_V(1u, j, v);
    else if (GN_LONG) gn_store2(1u, j, gn_outcome2(v));
#ifndef GN_DOUBLE
    else gn_write_one(GN_OPEN(1u), j, gn_packing(GN_DTYPE), gn_narrow(uvec4(gn_outcome(v)), GN_DTYPE).x);
#endif
}

shared GN_V gn_sums[256];

void gn_column(uint column) {
    uint at = column / GN_INNER * GN_N * GN_INNER + column % GN_INNER;
    GN_V v = gn_none();
    for (uint i = 0u; i < GN_N; i++, at += GN_INNER) {
        v = gn_join(v, gn_get(GN_IN_BASE + at));
        gn_put(GN_OUT_BASE + at, v);
    }
}

void main() {
    uint me = gl_LocalInvocationIndex, column = GN_GROUP * 256u + me;
    if (GN_PHASE == GNI_F_SCAN_COLUMNS) {
        if (column < GN_OUTER * GN_INNER) gn_column(column);
        return;
    }
    uint row = GN_GROUP / GN_TILES, tile = GN_GROUP % GN_TILES;
    if (row >= GN_OUTER) return;
    uint first = tile * GN_TILE + me * GN_EACH, last = min(first + GN_EACH, GN_N), at = row * GN_N;
    GN_V own[GN_EACH], total = gn_none(), v;
    for (uint e = 0u; e < GN_EACH; e++) {
        own[e] = first + e < last ? gn_get(GN_IN_BASE + at + first + e) : gn_none();
        total = gn_join(total, own[e]);
    }
    v = total;
    gn_sums[me] = v;
    barrier();
    for (uint step = 1u; step < 256u; step *= 2u) {
        if (me >= step) v = gn_join(gn_sums[me - step], v);
        barrier();
        gn_sums[me] = v;
        barrier();
    }
    if (GN_PHASE == GNI_F_SCAN_TOTALS) {
        if (me == 255u) GN_STORE_V(2u, row * GN_TILES + tile, v);
        return;
    }
    v = me > 0u ? gn_sums[me - 1u] : gn_none();
    if ((GN_FLAGS & GNI_F_SCAN_CARRY) != 0u) v = gn_join(GN_LOAD_V(2u, row * GN_TILES + tile), v);
    for (uint e = 0u; e < GN_EACH && first + e < last; e++) {
        if ((GN_FLAGS & GNI_F_SCAN_EXCLUSIVE) != 0u) gn_put(GN_OUT_BASE + at + first + e, v);
        v = gn_join(v, own[e]);
        if ((GN_FLAGS & GNI_F_SCAN_EXCLUSIVE) == 0u) gn_put(GN_OUT_BASE + at + first + e, v);
    }
}
