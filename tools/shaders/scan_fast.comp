#version 450
// Scans as in scan.comp with subgroups, 16 bytes of an invocation at a time.
//
// rows     (outer, n), a workgroup for each tile. In one pass: a tile makes known what it comes to and looks back at the tiles in
//          front of it, as Merrill and Garland's scan does, but so that the order of the joins does not depend on who was first:
//          as many tiles as a subgroup has invocations are a block, and what is in front of a tile is what the blocks before it
//          come to, joined from the left, then a tree over its block up to it. A workgroup that waits too long finds out itself
//          what the tile comes to: none has to be on its way for another one's sake.
// columns  (outer, n, inner), a workgroup for a strip of columns and some of n
//
//! no-bindings
//! variant scan_rows
//! variant scan_columns -DGN_COLUMNS
//! variant scan_rows_double -DGN_DOUBLE
//! variant scan_columns_double -DGN_COLUMNS -DGN_DOUBLE
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_ballot : require
#define GN_BUFFERS 3
#define GN_READONLY 1
#include "gn.glsl"
#include "memory.glsl"

layout(local_size_x_id = GNI_S_SCAN_THREADS) in;
layout(constant_id = GNI_S_SCAN_THREADS) const uint GN_T = 256u;
layout(constant_id = GNI_S_SCAN_EACH) const uint GN_E = 8u; // groups of four elements of an invocation

#include "scan.glsl"

// Buffers: elements, results, posts or parts.
#define GN_OUTER GN_PARAM(GNI_P_SCAN_OUTER)
#define GN_N GN_PARAM(GNI_P_SCAN_N)
#define GN_INNER GN_PARAM(GNI_P_SCAN_INNER)
#define GN_IN_BASE GN_PARAM(GNI_P_SCAN_IN_BASE)
#define GN_OUT_BASE GN_PARAM(GNI_P_SCAN_OUT_BASE)
#define GN_TILES GN_PARAM(GNI_P_SCAN_TILES)

const bool GN_PAIR = GN_INTEGER != 0u || GN_OP == GN_LOGSUMEXP || GN_OP == GN_PROD; // all words of a value count

#ifndef GN_DOUBLE
// Four elements below 8 bytes.
#define GN_GET_FOUR(at, group)                                                                                                    \
    uvec4 w = gn_widen(gn_read_raw(GN_OPEN(0u), at, GN_DTYPE, false, group), GN_DTYPE);                                           \
    v0 = gn_value(w.x), v1 = gn_value(w.y), v2 = gn_value(w.z), v3 = gn_value(w.w)
#endif

GN_V gn_get_one(uint j) { return GN_VALUES ? GN_LOAD_V(0u, j) : gn_value2(gn_load2(0u, j)); }

// Elements j to j + 3, of which those from `low` up to `high` count; of rows j is a multiple of 4.
void gn_get_group(uint j, uint low, uint high, out GN_V v0, out GN_V v1, out GN_V v2, out GN_V v3) {
    v0 = v1 = v2 = v3 = gn_none();
    if (j >= high) return;
    uvec4 at = min(uvec4(j) + uvec4(0u, 1u, 2u, 3u), uvec4(high - 1u));
#ifdef GN_COLUMNS
    bool even = (j & 3u) == 0u;
#else
    const bool even = true;
#endif
    if ((GN_VALUES || GN_LONG) && (GN_LARGE || !even)) {
        v0 = gn_get_one(at.x);
        v1 = gn_get_one(at.y);
        v2 = gn_get_one(at.z);
        v3 = gn_get_one(at.w);
    } else if (GN_VALUES || GN_LONG) {
        uvec4 a = gn_load4(0u, j >> 1), b = uvec4(0u);
        if (j + 2u < high) b = gn_load4(0u, (j >> 1) + 1u);
        v0 = gn_value2(a.xy);
        v1 = gn_value2(a.zw);
        v2 = gn_value2(b.xy);
        v3 = gn_value2(b.zw);
    }
#ifndef GN_DOUBLE
    else if (even) {
        GN_GET_FOUR(uvec4(j), true);
    } else {
        GN_GET_FOUR(at, false);
    }
#endif
    if (j >= low && j + 4u <= high) return;
    GN_V none = gn_none();
    if (j < low) v0 = none;
    if (j + 1u < low || j + 1u >= high) v1 = none;
    if (j + 2u < low || j + 2u >= high) v2 = none;
    if (j + 3u < low || j + 3u >= high) v3 = none;
}

// Elements j to j + 3, which all count; j is a multiple of 4. Where all of an invocation's are such, loads are under way together.
void gn_get_whole(uint j, out GN_V v0, out GN_V v1, out GN_V v2, out GN_V v3) {
    if (GN_VALUES || GN_LONG) {
        uvec4 a = gn_load4(0u, j >> 1), b = gn_load4(0u, (j >> 1) + 1u);
        v0 = gn_value2(a.xy), v1 = gn_value2(a.zw), v2 = gn_value2(b.xy), v3 = gn_value2(b.zw);
    }
#ifndef GN_DOUBLE
    else {
        GN_GET_FOUR(uvec4(j), true);
    }
#endif
}

void gn_put_one(uint j, GN_V v) {
    if (GN_VALUES) GN_STORE_V(1u, j, v);
    else if (GN_LONG) gn_store2(1u, j, gn_outcome2(v));
#ifndef GN_DOUBLE
    else gn_write_one(GN_OPEN(1u), j, gn_packing(GN_DTYPE), gn_narrow(uvec4(gn_outcome(v)), GN_DTYPE).x);
#endif
}

// Those from number `first` up to `end` as elements j to j + 3.
void gn_put_group(uint j, uint first, uint end, GN_V v0, GN_V v1, GN_V v2, GN_V v3) {
    bool whole = !GN_LARGE && first == 0u && end >= 4u && (j & 3u) == 0u;
    if (whole && (GN_VALUES || GN_LONG)) {
        gn_store4(1u, j >> 1, uvec4(gn_outcome2(v0), gn_outcome2(v1)));
        gn_store4(1u, (j >> 1) + 1u, uvec4(gn_outcome2(v2), gn_outcome2(v3)));
        return;
    }
#ifndef GN_DOUBLE
    if (whole) {
        uvec4 w = uvec4(gn_outcome(v0), gn_outcome(v1), gn_outcome(v2), gn_outcome(v3));
        gn_write_group(GN_OPEN(1u), j, GN_DTYPE, gn_narrow(w, GN_DTYPE));
        return;
    }
#endif
    if (first == 0u && end > 0u) gn_put_one(j, v0);
    if (first <= 1u && end > 1u) gn_put_one(j + 1u, v1);
    if (first <= 2u && end > 2u) gn_put_one(j + 2u, v2);
    if (first <= 3u && end > 3u) gn_put_one(j + 3u, v3);
}

GN_V gn_shuffle(GN_V v, uint lane) {
#ifdef GN_DOUBLE
    GN_V r = GN_V(subgroupShuffle(v.xy, lane), 0u, 0u);
    if (GN_PAIR) r.z = subgroupShuffle(v.z, lane);
    if (GN_PAIRS) r.w = subgroupShuffle(v.w, lane);
#else
    GN_V r = GN_V(subgroupShuffle(v.x, lane), 0u);
    if (GN_PAIR) r.y = subgroupShuffle(v.y, lane);
#endif
    return r;
}

// Elements as gn_get_group gets them, for joins.
void gn_get_factors(uint j, uint low, uint high, out GN_V v0, out GN_V v1, out GN_V v2, out GN_V v3) {
    gn_get_group(j, low, high, v0, v1, v2, v3);
    v0 = gn_factor(v0);
    v1 = gn_factor(v1);
    v2 = gn_factor(v2);
    v3 = gn_factor(v3);
}

#ifndef GN_COLUMNS

// ---- rows

layout(buffer_reference, std430, buffer_reference_align = 16) coherent volatile buffer gn_posts { uvec4 v[]; };
#ifdef GN_DOUBLE
#define gn_exponent(v) (v).z
#else
#define gn_exponent(v) (v).y
#endif

#define GN_EPOCH GN_PARAM(GNI_P_SCAN_EPOCH) // in the high halves of words that this dispatch has posted
const uint GN_ROW_TILE = 4u * GN_E * GN_T;
const uint GN_PATIENCE = 64u;

shared GN_V gn_totals[128];
shared GN_V gn_front;
shared uint gn_missing;

// Joins over the invocations of the subgroup up to this one.
GN_V gn_lanes(GN_V v) {
    uint lane = gl_SubgroupInvocationID;
    for (uint d = 1u; d < gl_SubgroupSize; d *= 2u) {
        GN_V u = gn_shuffle(v, (lane - d) & (gl_SubgroupSize - 1u));
        if (lane >= d) v = gn_join(u, v);
    }
    return v;
}

// Inside a tile products of floats are floats while all of them stay within 2^-64 and 2^64: the highest bit says that one has not.
// Of doubles within 2^-511 and 2^512.
uint gn_beyond = 0u;
void gn_watch(GN_V v) {
#ifdef GN_DOUBLE
    if (GN_FACTORS) gn_beyond |= (v.y << 1) - (511u << 21);
#else
    if (GN_FACTORS) gn_beyond |= (v.x << 1) - (63u << 24);
#endif
}
// A product without a second word.
GN_V gn_plain_product(GN_V a, GN_V b) {
#ifdef GN_DOUBLE
    return gn_as(gn_of(a) * gn_of(b), uvec2(0u));
#else
    return GN_V(floatBitsToUint(uintBitsToFloat(a.x) * uintBitsToFloat(b.x)), 0u);
#endif
}
GN_V gn_near(GN_V a, GN_V b) {
    if (!GN_FACTORS) return gn_join(a, b);
    GN_V v = gn_plain_product(a, b);
    gn_watch(v);
    return v;
}
GN_V gn_near_shuffle(GN_V v, uint lane) {
    if (!GN_FACTORS) return gn_shuffle(v, lane);
#ifdef GN_DOUBLE
    return GN_V(subgroupShuffle(v.xy, lane), 0u, 0u);
#else
    return GN_V(subgroupShuffle(v.x, lane), 0u);
#endif
}
GN_V gn_near_lanes(GN_V v) {
    if (!GN_FACTORS) return gn_lanes(v);
    uint lane = gl_SubgroupInvocationID;
    for (uint d = 1u; d < gl_SubgroupSize; d *= 2u) {
        GN_V u = gn_near_shuffle(v, (lane - d) & (gl_SubgroupSize - 1u));
        if (lane >= d) v = gn_near(u, v);
    }
    return v;
}

shared uint gn_beyonds[128];
GN_V gn_tile_front; // what is in front of this subgroup in the tile

// What a tile comes to whose first element would be `start`: the same joins as in main.
GN_V gn_tile_total(uint start, uint low, uint high) {
    GN_V sum = gn_none(), v0, v1, v2, v3;
    start += gl_SubgroupID * 4u * GN_E * gl_SubgroupSize + 4u * gl_SubgroupInvocationID;
    [[dont_unroll]] for (uint e = 0u; e < GN_E; e++) {
        gn_get_factors(start + 4u * gl_SubgroupSize * e, low, high, v0, v1, v2, v3);
        sum = gn_join(sum, gn_shuffle(gn_lanes(gn_join(gn_join(gn_join(v0, v1), v2), v3)), gl_SubgroupSize - 1u));
    }
    barrier();
    if (gl_SubgroupInvocationID == 0u) gn_totals[gl_SubgroupID] = sum;
    barrier();
    sum = gn_none();
    for (uint s = 0u; s < gl_NumSubgroups; s++) {
        if (s == gl_SubgroupID) gn_tile_front = sum;
        sum = gn_join(sum, gn_totals[s]);
    }
    return sum;
}

// Scans a tile whose products go far, with `front` in front of this subgroup.
void gn_scan_far(uint at, uint low, uint high, uint to, GN_V front) {
    uint lane = gl_SubgroupInvocationID;
    GN_V v[4];
    [[dont_unroll]] for (uint e = 0u; e < GN_E; e++) {
        uint j = at + 4u * gl_SubgroupSize * e;
        gn_get_factors(j, low, high, v[0], v[1], v[2], v[3]);
        [[unroll]] for (uint k = 1u; k < 4u; k++) v[k] = gn_join(v[k - 1u], v[k]);
        GN_V s = gn_lanes(v[3]), u = gn_shuffle(s, (lane - 1u) & (gl_SubgroupSize - 1u));
        u = lane > 0u ? gn_join(front, u) : front;
        [[unroll]] for (uint k = 0u; k < 4u; k++) v[k] = gn_join(u, v[k]);
        front = gn_join(front, gn_shuffle(s, gl_SubgroupSize - 1u));
        if (j < high) gn_put_group(to + j - low, j < low ? low - j : 0u, high - j, v[0], v[1], v[2], v[3]);
    }
}

// Post i, a uvec4 or two of them. False: it is not there yet.
uvec4 gn_halves(uvec2 v) { return (uvec4(v.x, v.x >> 16, v.y, v.y >> 16) & 0xffffu) | (GN_EPOCH << 16); }
uvec2 gn_whole(uvec4 w) { return (w.xz & 0xffffu) | (w.yw << 16); }
bool gn_is_posted(uvec4 w) { return (w >> 16) == uvec4(GN_EPOCH); }
#ifdef GN_DOUBLE
void gn_put_post(uint i, GN_V v) {
    gn_posts posts = gn_posts(gn_address2);
    posts.v[2u * i] = gn_halves(v.xy);
    posts.v[2u * i + 1u] = gn_halves(v.zw);
}
bool gn_get_post(uint i, out GN_V v) {
    gn_posts posts = gn_posts(gn_address2);
    uvec4 a = posts.v[2u * i], b = posts.v[2u * i + 1u];
    v = GN_V(gn_whole(a), gn_whole(b));
    return gn_is_posted(a) && gn_is_posted(b);
}
#else
void gn_put_post(uint i, GN_V v) {
    gn_posts posts = gn_posts(gn_address2);
    posts.v[i] = gn_halves(v);
}
bool gn_get_post(uint i, out GN_V v) {
    gn_posts posts = gn_posts(gn_address2);
    uvec4 w = posts.v[i];
    v = gn_whole(w);
    return gn_is_posted(w);
}
#endif

// The front of a block and what the block comes to. Of float sums the second word is what the first one lacks.
#ifdef GN_DOUBLE
GN_V gn_advance(GN_V front, GN_V block) {
    if (GN_OP != GN_SUM || GN_PAIRS) return gn_join(front, block);
    precise double a = gn_of(front), b = gn_of(block), s = a + b, c = s - a, lack = (a - (s - c)) + (b - c);
    uvec2 w = unpackDouble2x32(s);
    if ((w.y & 0x7ff00000u) == 0x7ff00000u) lack = 0.0lf;
    precise double low = packDouble2x32(front.zw) + lack;
    return GN_V(w, unpackDouble2x32(low));
}
GN_V gn_advanced(GN_V front) {
    if (GN_OP != GN_SUM || GN_PAIRS) return front;
    precise double s = gn_of(front) + packDouble2x32(front.zw);
    return gn_as(s, uvec2(0u));
}
#else
GN_V gn_advance(GN_V front, GN_V block) {
    if (GN_OP != GN_SUM || GN_INTEGER != 0u) return gn_join(front, block);
    float a = uintBitsToFloat(front.x), b = uintBitsToFloat(block.x);
    precise float s = a + b, c = s - a, lack = (a - (s - c)) + (b - c);
    if ((floatBitsToUint(s) & 0x7f800000u) == 0x7f800000u) lack = 0.0;
    precise float low = uintBitsToFloat(front.y) + lack;
    return GN_V(floatBitsToUint(s), floatBitsToUint(low));
}
GN_V gn_advanced(GN_V front) {
    if (GN_OP != GN_SUM || GN_INTEGER != 0u) return front;
    precise float s = uintBitsToFloat(front.x) + uintBitsToFloat(front.y);
    return GN_V(floatBitsToUint(s), 0u);
}
#endif

// What is in front of tile `tile` of the row, which comes to `total`, for the first subgroup. False: it has waited too long for
// gn_missing.
bool gn_look_back(uint first_post, uint first_front, uint tile, GN_V total, out GN_V front) {
    uint lane = gl_SubgroupInvocationID, last = gl_SubgroupSize - 1u, block = tile / gl_SubgroupSize, me = tile % gl_SubgroupSize;
    uint patience = GN_PATIENCE;
    GN_V none = gn_none(), v, sums = none; // of invocation k: what block `at` + k comes to
    GN_V base = none;
    front = none;
    // This block up to the tile.
    GN_V w = none;
    for (;;) {
        bool there = true;
        if (lane < me) there = gn_get_post(first_post + block * gl_SubgroupSize + lane, w);
        uvec4 away = subgroupBallot(!there);
        if (away == uvec4(0u)) break;
        if (--patience == 0u) {
            if (lane == 0u) gn_missing = block * gl_SubgroupSize + subgroupBallotFindLSB(away);
            return false;
        }
    }
    v = gn_lanes(lane < me ? w : lane == me ? total : none);
    GN_V own = gn_shuffle(v, (me - 1u) & last), all = gn_shuffle(v, last);
    if (me == 0u) own = none;
    // Blocks in front, until there is one whose front is known. The front of a block that is too far in front is found first.
    uint at = block, kept = 0u, goal = block;
    for (;;) {
        bool known = at == 0u, there = false;
        if (!known) {
            there = gn_get_post(first_post + (at - 1u) * gl_SubgroupSize + lane, w);
            known = gn_get_post(first_front + at, base);
            known = subgroupBallot(!known) == uvec4(0u);
        }
        if (known) {
            if (at == 0u) base = GN_OP == GN_SUM ? GN_V(0u) : none;
            for (; kept > 0u; kept--) {
                GN_V b = gn_shuffle(sums, kept - 1u);
                base = gn_advance(base, b);
            }
            if (goal == block) break;
            if (lane == 0u) gn_put_post(first_front + goal, base);
            at = goal = block;
            continue;
        }
        uvec4 away = subgroupBallot(!there);
        if (away != uvec4(0u)) {
            if (--patience == 0u) {
                if (lane == 0u) gn_missing = (at - 1u) * gl_SubgroupSize + subgroupBallotFindLSB(away);
                return false;
            }
            continue;
        }
        if (kept == gl_SubgroupSize) {
            goal = at;
            kept = 0u;
        }
        v = gn_shuffle(gn_lanes(w), last);
        if (lane == kept) sums = v;
        kept++;
        at--;
    }
    if (me == last) {
        GN_V p = gn_advance(base, all);
        if (lane == 0u) gn_put_post(first_front + block + 1u, p);
    }
    front = gn_advanced(gn_advance(base, own));
    return true;
}

void main() {
    uint row = GN_GROUP / GN_TILES, tile = GN_GROUP % GN_TILES, me = gl_LocalInvocationIndex, lane = gl_SubgroupInvocationID;
    if (row >= GN_OUTER) return;
    uint low = GN_IN_BASE + row * GN_N, high = low + GN_N, origin = low & ~3u, step = 4u * gl_SubgroupSize;
    uint start = origin + tile * GN_ROW_TILE, at = start + gl_SubgroupID * GN_E * step + 4u * lane;
    GN_V own[4u * GN_E], before[GN_E], none = gn_none(), sum = none;
    bool whole = !GN_LARGE && start >= low && start + GN_ROW_TILE <= high;
    if (whole) {
        [[unroll]] for (uint e = 0u; e < GN_E; e++)
            gn_get_whole(at + step * e, own[4u * e], own[4u * e + 1u], own[4u * e + 2u], own[4u * e + 3u]);
    } else {
        [[unroll]] for (uint e = 0u; e < GN_E; e++)
            gn_get_group(at + step * e, low, high, own[4u * e], own[4u * e + 1u], own[4u * e + 2u], own[4u * e + 3u]);
    }
    [[unroll]] for (uint e = 0u; e < GN_E; e++) {
        gn_watch(own[4u * e]);
        [[unroll]] for (uint k = 1u; k < 4u; k++) own[4u * e + k] = gn_near(own[4u * e + k - 1u], own[4u * e + k]);
        GN_V v = gn_near_lanes(own[4u * e + 3u]), front = gn_near_shuffle(v, (lane - 1u) & (gl_SubgroupSize - 1u));
        before[e] = lane > 0u ? gn_near(sum, front) : sum;
        sum = gn_near(sum, gn_near_shuffle(v, gl_SubgroupSize - 1u));
    }
    if (lane == 0u) gn_totals[gl_SubgroupID] = sum;
    if (GN_FACTORS) {
        bool beyond = subgroupBallot(int(gn_beyond) < 0) != uvec4(0u);
        if (lane == 0u) gn_beyonds[gl_SubgroupID] = beyond ? 0x80000000u : 0u;
        gn_beyond = 0u;
    }
    barrier();
    GN_V front = none, total = none;
    for (uint s = 0u; s < gl_NumSubgroups; s++) {
        if (s == gl_SubgroupID) front = total;
        total = gn_near(total, gn_totals[s]);
        if (GN_FACTORS) gn_beyond |= gn_beyonds[s];
    }
    bool far = GN_FACTORS && int(gn_beyond) < 0;
    if (far) {
        total = gn_tile_total(start, low, high);
        front = gn_tile_front;
    }
    front = gn_factor(front);
    total = gn_factor(total);
    if (GN_PHASE == GNI_F_SCAN_TOTALS) {
        if (me == 0u) GN_STORE_V(2u, row * GN_TILES + tile, total);
        return;
    }
    if ((GN_FLAGS & GNI_F_SCAN_CARRY) != 0u) front = gn_join(GN_LOAD_V(2u, row * GN_TILES + tile), front);
    if (GN_PHASE == GNI_F_SCAN_ONE_PASS) {
        uint blocks = (GN_TILES - 1u) / gl_SubgroupSize + 2u;
        uint first_post = row * GN_TILES, first_front = GN_OUTER * GN_TILES + row * blocks;
        if (me == 0u && !((GN_FLAGS & GNI_F_SCAN_STALL) != 0u && tile % 3u == 1u)) gn_put_post(first_post + tile, total);
        for (;;) {
            barrier();
            if (gl_SubgroupID == 0u) {
                GN_V f;
                bool found = gn_look_back(first_post, first_front, tile, total, f);
                if (lane == 0u) {
                    gn_front = f;
                    if (found) gn_missing = 0xffffffffu;
                }
            }
            barrier();
            uint missing = gn_missing;
            if (missing == 0xffffffffu) break;
            GN_V v = gn_tile_total(origin + missing * GN_ROW_TILE, low, high);
            if (me == 0u) gn_put_post(first_post + missing, v);
        }
        front = gn_join(gn_front, front);
    }
    if (far) {
        gn_scan_far(at, low, high, GN_OUT_BASE + row * GN_N, front);
        return;
    }
    [[unroll]] for (uint e = 0u; e < GN_E; e++) {
        GN_V f = gn_join(front, gn_factor(before[e])), v[4];
        uint j = at + step * e;
        if (!whole && j >= high) break;
        if ((GN_FLAGS & GNI_F_SCAN_EXCLUSIVE) != 0u) {
            v[0] = f;
            [[unroll]] for (uint k = 1u; k < 4u; k++) v[k] = gn_join(f, own[4u * e + k - 1u]);
        } else if (GN_FACTORS && gn_exponent(f) == 0u) {
            [[unroll]] for (uint k = 0u; k < 4u; k++) v[k] = gn_plain_product(f, own[4u * e + k]);
        } else {
            [[unroll]] for (uint k = 0u; k < 4u; k++) v[k] = gn_join(f, own[4u * e + k]);
        }
        uint to = GN_OUT_BASE + row * GN_N + j - low;
        if (whole) gn_put_group(to, 0u, 4u, v[0], v[1], v[2], v[3]);
        else gn_put_group(to, j < low ? low - j : 0u, high - j, v[0], v[1], v[2], v[3]);
    }
}

#else

// ---- columns

layout(constant_id = GNI_S_SCAN_LANES) const uint GN_WIDTH = 8u; // groups of four columns of a strip, at most a subgroup

shared GN_V gn_strip[4][GNI_SCAN_STRIP];

// Joins over the invocations of the subgroup that have the same columns, up to this one.
GN_V gn_slots(GN_V v) {
    uint lane = gl_SubgroupInvocationID;
    for (uint d = GN_WIDTH; d < gl_SubgroupSize; d *= 2u) {
        GN_V u = gn_shuffle(v, (lane - d) & (gl_SubgroupSize - 1u));
        if (lane >= d) v = gn_join(u, v);
    }
    return v;
}

void main() {
    uint chunks = GN_TILES, strips = (GN_INNER - 1u) / (4u * GN_WIDTH) + 1u, lane = gl_SubgroupInvocationID;
    uint strip = GN_GROUP % strips, chunk = GN_GROUP / strips % chunks, o = GN_GROUP / strips / chunks;
    if (o >= GN_OUTER) return;
    uint lot = (GN_N - 1u) / chunks + 1u, begin = chunk * lot, end = min(begin + lot, GN_N);
    uint column = 4u * (strip * GN_WIDTH + lane % GN_WIDTH), slots = GN_T / GN_WIDTH;
    uint slot = gl_SubgroupID * (gl_SubgroupSize / GN_WIDTH) + lane / GN_WIDTH, part = ((o * chunks + chunk) * GN_INNER) + column;
    uint last = gl_SubgroupSize - GN_WIDTH + lane % GN_WIDTH, many = min(GN_INNER - min(column, GN_INNER), 4u);
    bool even = !GN_LARGE && ((GN_IN_BASE | GN_INNER) & 3u) == 0u && 4u * GN_WIDTH * (strip + 1u) <= GN_INNER;
    GN_V none = gn_none(), carry[4], own[4u * GN_E], v[4], front[4];
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        carry[k] = none;
        if ((GN_FLAGS & GNI_F_SCAN_CARRY) != 0u && k < many) carry[k] = GN_LOAD_V(2u, part + k);
    }
    for (uint i = begin; i < end; i += slots * GN_E) {
        uint from = i + slot * GN_E, in_at = GN_IN_BASE + (o * GN_N + from) * GN_INNER + column;
        bool whole = even && i + slots * GN_E <= end;
        if (whole) {
            [[unroll]] for (uint e = 0u; e < GN_E; e++)
                gn_get_whole(in_at + e * GN_INNER, own[4u * e], own[4u * e + 1u], own[4u * e + 2u], own[4u * e + 3u]);
            [[unroll]] for (uint e = 0u; e < 4u * GN_E; e++) own[e] = gn_factor(own[e]);
        } else {
            [[unroll]] for (uint e = 0u; e < GN_E; e++) {
                uint at = in_at + e * GN_INNER, high = from + e < end ? at + many : 0u;
                gn_get_factors(at, at, high, own[4u * e], own[4u * e + 1u], own[4u * e + 2u], own[4u * e + 3u]);
            }
        }
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            [[unroll]] for (uint e = 1u; e < GN_E; e++) own[4u * e + k] = gn_join(own[4u * e + k - 4u], own[4u * e + k]);
            GN_V s = gn_slots(own[4u * GN_E - 4u + k]);
            v[k] = gn_shuffle(s, (lane - GN_WIDTH) & (gl_SubgroupSize - 1u));
            if (lane < GN_WIDTH) v[k] = none;
            if (lane + GN_WIDTH >= gl_SubgroupSize) gn_strip[k][gl_SubgroupID * GN_WIDTH + lane % GN_WIDTH] = s;
        }
        barrier();
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            front[k] = none;
            for (uint s = 0u; s < gl_NumSubgroups; s++) {
                if (s == gl_SubgroupID) front[k] = carry[k];
                carry[k] = gn_join(carry[k], gn_strip[k][s * GN_WIDTH + lane % GN_WIDTH]);
            }
            front[k] = gn_join(front[k], v[k]);
        }
        barrier();
        if (GN_PHASE == GNI_F_SCAN_TOTALS) continue;
        [[unroll]] for (uint e = 0u; e < GN_E; e++) {
            if (!whole && from + e >= end) break;
            bool self = (GN_FLAGS & GNI_F_SCAN_EXCLUSIVE) == 0u;
            [[unroll]] for (uint k = 0u; k < 4u; k++)
                v[k] = self ? gn_join(front[k], own[4u * e + k]) : e == 0u ? front[k] : gn_join(front[k], own[4u * e + k - 4u]);
            uint to = GN_OUT_BASE + (o * GN_N + from + e) * GN_INNER + column;
            if (whole) gn_put_group(to, 0u, 4u, v[0], v[1], v[2], v[3]);
            else gn_put_group(to, 0u, many, v[0], v[1], v[2], v[3]);
        }
    }
    if (GN_PHASE == GNI_F_SCAN_TOTALS && gl_LocalInvocationIndex < GN_WIDTH)
        for (uint k = 0u; k < many; k++) GN_STORE_V(2u, part + k, carry[k]);
}

#endif
