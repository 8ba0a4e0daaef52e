#version 450
// Scans along the middle axis of (outer, n, inner). A value is two words: a float32, an integer of 64 bits, or of logsumexp
// the largest x and the sum of exp(x - it).
//
// GNI_F_SCAN_TOTALS   inner is 1: what each tile of a row comes to, into parts[row][tile]
// GNI_F_SCAN_TILES    inner is 1: each tile, with its part in front where there are several
// GNI_F_SCAN_COLUMNS  an invocation each
//
//! variant scan
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 3
#define GN_READONLY 1
#include "gn.glsl"
#include "memory.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_SCAN_OP) const uint GN_OP = 0u; // gni_scan_op
layout(constant_id = GNI_S_SCAN_DTYPE) const uint GN_DTYPE = 0u; // of elements; GNI_T_C64: values, as they are
layout(constant_id = GNI_S_SCAN_INTEGER) const uint GN_INTEGER = 0u;
layout(constant_id = GNI_S_SCAN_PHASE) const uint GN_PHASE = 0u;
layout(constant_id = GNI_S_SCAN_FLAGS) const uint GN_FLAGS = 0u;
#define GN_SUM 0u
#define GN_PROD 1u
#define GN_MAX 2u
#define GN_MIN 3u
#define GN_LOGSUMEXP 4u

// Buffers: elements, results, parts.
#define GN_OUTER GN_PARAM(GNI_P_SCAN_OUTER)
#define GN_N GN_PARAM(GNI_P_SCAN_N)
#define GN_INNER GN_PARAM(GNI_P_SCAN_INNER)
#define GN_IN_BASE GN_PARAM(GNI_P_SCAN_IN_BASE)
#define GN_OUT_BASE GN_PARAM(GNI_P_SCAN_OUT_BASE)
#define GN_TILES GN_PARAM(GNI_P_SCAN_TILES)
const uint GN_TILE = uint(GNI_SCAN_TILE);
const uint GN_EACH = GN_TILE / 256u;
const uint GN_MINUS_INF = 0xff800000u;

uvec2 gn_none() {
    if (GN_OP == GN_LOGSUMEXP) return uvec2(GN_MINUS_INF, 0u);
    if (GN_OP == GN_SUM) return uvec2(0u);
    if (GN_OP == GN_PROD && GN_INTEGER != 0u) return uvec2(1u, 0u);
    if (GN_OP == GN_PROD) return uvec2(0x3f800000u, 0u);
    if (GN_INTEGER != 0u && GN_OP == GN_MAX) return uvec2(0u, 0x80000000u);
    if (GN_INTEGER != 0u) return uvec2(0xffffffffu, 0x7fffffffu);
    if (GN_OP == GN_MAX) return uvec2(GN_MINUS_INF, 0u);
    return uvec2(0x7f800000u, 0u);
}

bool gn_nan(uint u) { return (u & 0x7fffffffu) > 0x7f800000u; }

uvec2 gn_join_integers(uvec2 a, uvec2 b) {
    if (GN_OP == GN_SUM) {
        uint carry, low = uaddCarry(a.x, b.x, carry);
        return uvec2(low, a.y + b.y + carry);
    }
    if (GN_OP == GN_PROD) {
        uint high, low;
        umulExtended(a.x, b.x, high, low);
        return uvec2(low, high + a.x * b.y + a.y * b.x);
    }
    bool more = int(a.y) > int(b.y) || (a.y == b.y && a.x > b.x);
    return more == (GN_OP == GN_MAX) ? a : b;
}

// a, then b.
uvec2 gn_join(uvec2 a, uvec2 b) {
    if (GN_INTEGER != 0u) return gn_join_integers(a, b);
    float x = uintBitsToFloat(a.x), y = uintBitsToFloat(b.x);
    if (GN_OP == GN_SUM) return uvec2(floatBitsToUint(x + y), 0u);
    if (GN_OP == GN_PROD) return uvec2(floatBitsToUint(x * y), 0u);
    if (gn_nan(a.x)) return a;
    if (gn_nan(b.x)) return b;
    if (GN_OP == GN_MAX) return x > y ? a : b;
    if (GN_OP == GN_MIN) return x < y ? a : b;
    float s = uintBitsToFloat(a.y), t = uintBitsToFloat(b.y);
    if (t == 0.0) return a;
    if (s == 0.0) return b;
    if (x == y) return uvec2(a.x, floatBitsToUint(s + t));
    if (x > y) return uvec2(a.x, floatBitsToUint(s + t * exp(y - x)));
    return uvec2(b.x, floatBitsToUint(t + s * exp(x - y)));
}

uvec2 gn_get(uint j) {
    if (GN_DTYPE == GN_T_C64 || GN_DTYPE == GN_T_I64) return gn_load2(0u, j);
    uint s = gn_packing(GN_DTYPE);
    uint v = gn_widen(gn_extract(uvec4(gn_load(0u, j >> s)), uvec4(j), s), GN_DTYPE).x;
    if (GN_OP == GN_LOGSUMEXP) return uvec2(v, 0x3f800000u);
    if (GN_INTEGER == 0u) return uvec2(v, 0u);
    return uvec2(v, GN_DTYPE == GN_T_I32 || GN_DTYPE == GN_T_I16 || GN_DTYPE == GN_T_I8 ? uint(int(v) >> 31) : 0u);
}

void gn_put(uint j, uvec2 v) {
    if (GN_DTYPE == GN_T_C64 || GN_DTYPE == GN_T_I64) {
        gn_store2(1u, j, v);
        return;
    }
    if (GN_OP == GN_LOGSUMEXP && !gn_nan(v.x) && v.x != GN_MINUS_INF)
        v.x = floatBitsToUint(uintBitsToFloat(v.x) + log(uintBitsToFloat(v.y)));
    gn_write_one(GN_OPEN(1u), j, gn_packing(GN_DTYPE), gn_narrow(uvec4(v.x), GN_DTYPE).x);
}

shared uvec2 gn_sums[256];

void gn_column(uint column) {
    uint at = column / GN_INNER * GN_N * GN_INNER + column % GN_INNER;
    uvec2 v = gn_none();
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
    uvec2 own[GN_EACH], total = gn_none(), v;
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
        if (me == 255u) gn_store2(2u, row * GN_TILES + tile, v);
        return;
    }
    v = me > 0u ? gn_sums[me - 1u] : gn_none();
    if ((GN_FLAGS & GNI_F_SCAN_CARRY) != 0u) v = gn_join(gn_load2(2u, row * GN_TILES + tile), v);
    for (uint e = 0u; e < GN_EACH && first + e < last; e++) {
        if ((GN_FLAGS & GNI_F_SCAN_EXCLUSIVE) != 0u) gn_put(GN_OUT_BASE + at + first + e, v);
        v = gn_join(v, own[e]);
        if ((GN_FLAGS & GNI_F_SCAN_EXCLUSIVE) == 0u) gn_put(GN_OUT_BASE + at + first + e, v);
    }
}
