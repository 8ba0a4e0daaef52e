#version 450
// Sorts rows of keys (order.glsl) by 8 bits a pass, stable, with the places that they come from.
//
// tally  how often each value of each digit is in a row
// move   one digit: each tile's elements to their places. What is in front of a tile it finds by looking at the tiles before
//        it, nearest first, each of which says how often it has each digit, and later how often all up to it have. A tile that
//        says nothing for long is counted here: no workgroup depends on another one's progress. Digits that are the same in
//        all keys are left out, which makes the first pass that runs read the elements, the last one write the result.
// rows   all digits of rows that a workgroup holds
//
//! variant sweep_tally -DGN_TALLY
//! variant sweep_move -DGN_MOVE
//! variant sweep_rows -DGN_ROWS
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#define GN_BUFFERS 8
#define GN_READONLY 1
#include "gn.glsl"
#include "memory.glsl"
#include "order.glsl"

layout(constant_id = GNI_S_SORT_PLACES) const uint GN_PLACES = 0u; // places are asked for
layout(constant_id = GNI_S_SORT_VALUES) const uint GN_VALUES = 0u;
layout(constant_id = GNI_S_SWEEP_THREADS) const uint GN_T = 256u; // of a workgroup
layout(constant_id = GNI_S_SWEEP_SUBGROUP) const uint GN_SUB = 32u;
layout(constant_id = GNI_S_SWEEP_EACH) const uint GN_EACH = 15u; // elements of an invocation
layout(constant_id = GNI_S_SWEEP_LOOKS) const uint GN_LOOKS = 64u; // at a tile before it is counted
layout(constant_id = GNI_S_SWEEP_ONE) const bool GN_ONE_DIGIT = false; // keys are words in buffers 0 and 1, buffer 3 goes with them
layout(local_size_x_id = GNI_S_SWEEP_THREADS) in;

// Buffers: elements; keys, twice; places, twice; counts; values, int64 places. Keys of 8 bytes are all low words, then all high.
#define GN_ROW_COUNT GN_PARAM(GNI_P_SORT_ROWS)
#define GN_N GN_PARAM(GNI_P_SORT_N)
#define GN_IN_BASE GN_PARAM(GNI_P_SORT_IN_BASE)
#define GN_TILES GN_PARAM(GNI_P_SORT_TILES) // of a row, or parts of it that are tallied
#define GN_SHIFT GN_PARAM(GNI_P_SORT_SHIFT)
#define GN_LEFT GN_PARAM(GNI_P_SORT_SKIP)
#define GN_TAKE GN_PARAM(GNI_P_SORT_TAKE)
#define GN_OUT_BASE GN_PARAM(GNI_P_SORT_OUT_BASE)
#define GN_INDEX_BASE GN_PARAM(GNI_P_SORT_INDEX_BASE)
const uint GN_PASSES = GN_ONE_DIGIT ? 1u : 1u << GN_LOG_BYTES;
const uint GN_TILE = GN_T * GN_EACH;
const uint GN_TEAMS = GN_T / GN_SUB;

uint gn_digit(uvec2 u, uint shift) { return ((shift >= 32u ? u.y : u.x) >> (shift & 31u)) & 255u; }

#ifdef GN_TALLY
const uint GN_COPIES = 16u / GN_PASSES;
shared uint gn_counts[4096];

void main() {
    uint me = gl_LocalInvocationIndex, row = GN_GROUP / GN_TILES, part = GN_GROUP % GN_TILES;
    if (row >= GN_ROW_COUNT) return;
    for (uint i = me; i < 4096u; i += GN_T) gn_counts[i] = 0u;
    barrier();
    // 16 bytes at a time, of which some at both ends are not the row's.
    uint each = 16u >> GN_LOG_BYTES, begin = GN_IN_BASE + row * GN_N, end = begin + GN_N, copy = me % GN_COPIES;
    for (uint i = begin / each + part * GN_T + me; i * each < end; i += GN_TILES * GN_T) {
        uvec4 w = gn_load4(0u, i);
        [[unroll]] for (uint e = 0u; e < each; e++) {
            uint j = i * each + e;
            if (j < begin || j >= end) continue;
            uvec2 u;
            if (GN_LOG_BYTES == 3u) u = e == 0u ? w.xy : w.zw;
            else if (GN_LOG_BYTES == 2u) u = uvec2(w[e], 0u);
            else if (GN_LOG_BYTES == 1u) u = uvec2((w[e / 2u] >> (e % 2u * 16u)) & 0xffffu, 0u);
            else u = uvec2((w[e / 4u] >> (e % 4u * 8u)) & 0xffu, 0u);
            u = gn_key_of(u);
            [[unroll]] for (uint p = 0u; p < GN_PASSES; p++)
                atomicAdd(gn_counts[(p * 256u + gn_digit(u, GN_ONE_DIGIT ? GN_SHIFT : 8u * p)) * GN_COPIES + copy], 1u);
        }
    }
    barrier();
    for (uint i = me; i < 256u * GN_PASSES; i += GN_T) {
        uint c = 0u;
        [[unroll]] for (uint k = 0u; k < GN_COPIES; k++) c += gn_counts[i * GN_COPIES + (k + me) % GN_COPIES];
        if (c != 0u) gn_atomic_add(5u, row * 256u * GN_PASSES + i, c);
    }
}
#else

// ---- a tile in a workgroup's registers, element e of a lane behind element e - 1 of all lanes of its subgroup

#ifdef GN_MOVE
const uint GN_HALF = (GN_EACH + 1u) / 2u; // a tile passes through shared memory in two parts, so that a larger one fits
#else
const uint GN_HALF = GN_EACH;
#endif
const uint GN_PART = GN_HALF * GN_T;
const uint GN_POOL = GN_PART > GN_TEAMS * 256u ? GN_PART : GN_TEAMS * 256u;
const uint GN_OWN = GN_T < 256u ? 256u / GN_T : 1u; // digits of an invocation, 4 at most
shared uint gn_pool[GN_POOL];
shared uint gn_base[256];                     // of the tile's elements the first one with a digit
shared uint gn_groups[256u / GN_SUB];
uint gn_low[GN_EACH], gn_high[GN_EACH], gn_from[GN_EACH], gn_rank[GN_EACH], gn_total[4];
uint gn_me, gn_first; // the invocation, and the place of its first element in the tile

uvec2 gn_key(uint e) { return uvec2(gn_low[e], GN_LOG_BYTES == 3u ? gn_high[e] : 0u); }

void gn_begin() {
    gn_me = gl_SubgroupID * GN_SUB + gl_SubgroupInvocationID;
    gn_first = gl_SubgroupID * GN_SUB * GN_EACH + gl_SubgroupInvocationID;
}

#define GN_BIT(b)                                                                                \
    {                                                                                            \
        bool on = (d & (1u << b)) != 0u;                                                         \
        uvec4 v = subgroupBallot(on);                                                            \
        m.x &= on ? v.x : ~v.x;                                                                  \
        if (GN_SUB > 32u) m.y &= on ? v.y : ~v.y;                                                \
    }

// Lanes of the subgroup with this digit.
uvec2 gn_same(uint d) {
    uvec2 m = uvec2(GN_SUB >= 32u ? 0xffffffffu : (1u << (GN_SUB & 31u)) - 1u, GN_SUB > 32u ? 0xffffffffu : 0u);
    GN_BIT(0) GN_BIT(1) GN_BIT(2) GN_BIT(3) GN_BIT(4) GN_BIT(5) GN_BIT(6) GN_BIT(7)
    return m;
}

// v[k] to the sum of those in front, for the digits gn_me + k GN_T; all invocations call it.
void gn_sum_digits(inout uint v[4]) {
    [[unroll]] for (uint k = 0u; k < GN_OWN; k++) {
        uint d = gn_me + k * GN_T, x = v[k];
        if (GN_T > 256u && gl_SubgroupID * GN_SUB >= 256u) continue;
        v[k] = subgroupExclusiveAdd(x);
        if (gl_SubgroupInvocationID == GN_SUB - 1u) gn_groups[d / GN_SUB] = v[k] + x;
    }
    barrier();
    [[unroll]] for (uint k = 0u; k < GN_OWN; k++) {
        uint d = gn_me + k * GN_T;
        if (d < 256u)
            for (uint i = 0u; i < d / GN_SUB; i++) v[k] += gn_groups[i];
    }
}

// gn_rank: where each element goes in the tile sorted by its digit. gn_total: how many have the invocation's digits.
void gn_rank_all(uint shift) {
    uint row = gl_SubgroupID * 256u, lane = gl_SubgroupInvocationID;
    for (uint d = lane; d < 256u; d += GN_SUB) gn_pool[row + d] = 0u;
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    [[unroll]] for (uint e = 0u; e < GN_EACH; e++) {
        uint d = gn_digit(gn_key(e), shift);
        uvec2 m = gn_same(d);
        uint below = bitCount(m.x & gl_SubgroupLtMask.x), all = bitCount(m.x);
        if (GN_SUB > 32u) {
            below += bitCount(m.y & gl_SubgroupLtMask.y);
            all += bitCount(m.y);
        }
        uint before = gn_pool[row + d];
        subgroupMemoryBarrierShared();
        subgroupBarrier();
        if (below == 0u) gn_pool[row + d] = before + all;
        subgroupMemoryBarrierShared();
        subgroupBarrier();
        gn_rank[e] = before + below;
    }
    barrier();
    [[unroll]] for (uint k = 0u; k < GN_OWN; k++) {
        uint d = gn_me + k * GN_T, c = 0u;
        gn_total[k] = 0u;
        if (d >= 256u) continue;
        for (uint t = 0u; t < GN_TEAMS; t++) {
            uint x = gn_pool[t * 256u + d];
            gn_pool[t * 256u + d] = c;
            c += x;
        }
        gn_total[k] = c;
    }
}

void gn_rank_end(uint shift) {
    uint v[4] = gn_total, row = gl_SubgroupID * 256u;
    gn_sum_digits(v);
    [[unroll]] for (uint k = 0u; k < GN_OWN; k++)
        if (gn_me + k * GN_T < 256u) gn_base[gn_me + k * GN_T] = v[k];
    barrier();
    [[unroll]] for (uint e = 0u; e < GN_EACH; e++) {
        uint d = gn_digit(gn_key(e), shift);
        gn_rank[e] += gn_pool[row + d] + gn_base[d];
    }
}

// Element `to` of the row's result.
void gn_finish(uint row, uint to, uvec2 key, uint from) {
    uint o = to - GN_LEFT;
    if (o >= GN_TAKE) return;
    o += row * GN_TAKE;
    if (GN_PLACES != 0u) gn_store2(7u, GN_INDEX_BASE + o, uvec2(from, 0u));
    if (GN_VALUES == 0u) return;
    uvec2 u;
    if (GN_PLACES != 0u) u = gn_bits(0u, GN_IN_BASE + row * GN_N + from);
    else u = gn_key_back(key);
    gn_put_bits(6u, GN_OUT_BASE + o, u);
}
#endif

#ifdef GN_ROWS
shared uint gn_differ[2];

#define GN_EXCHANGE(a)                                                                           \
    {                                                                                            \
        barrier();                                                                               \
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) gn_pool[gn_rank[e]] = a[e];               \
        barrier();                                                                               \
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) a[e] = gn_pool[gn_first + e * GN_SUB];    \
    }

void main() {
    gn_begin();
    uint row = GN_GROUP, at = GN_IN_BASE + row * GN_N;
    if (row >= GN_ROW_COUNT) return;
    if (gn_me < 2u) gn_differ[gn_me] = 0u;
    uvec2 one = gn_key_of(gn_bits(0u, at)), differ = uvec2(0u);
    [[unroll]] for (uint e = 0u; e < GN_EACH; e++) {
        uint i = gn_first + e * GN_SUB;
        uvec2 u = i < GN_N ? gn_key_of(gn_bits(0u, at + i)) : uvec2(0xffffffffu);
        gn_low[e] = u.x;
        if (GN_LOG_BYTES == 3u) gn_high[e] = u.y;
        if (GN_PLACES != 0u) gn_from[e] = i;
        if (i < GN_N) differ |= u ^ one;
    }
    barrier();
    differ = subgroupOr(differ);
    if (subgroupElect()) {
        atomicOr(gn_differ[0], differ.x);
        if (GN_LOG_BYTES == 3u) atomicOr(gn_differ[1], differ.y);
    }
    barrier();
    differ = uvec2(gn_differ[0], gn_differ[1]);
    for (uint shift = 0u; shift < 8u * GN_PASSES; shift += 8u) {
        if (gn_digit(differ, shift) == 0u) continue;
        gn_rank_all(shift);
        gn_rank_end(shift);
        GN_EXCHANGE(gn_low)
        if (GN_LOG_BYTES == 3u) GN_EXCHANGE(gn_high)
        if (GN_PLACES != 0u) GN_EXCHANGE(gn_from)
        barrier();
    }
    [[unroll]] for (uint e = 0u; e < GN_EACH; e++)
        if (gn_first + e * GN_SUB < GN_N) gn_finish(row, gn_first + e * GN_SUB, gn_key(e), gn_from[e]);
}
#endif

#ifdef GN_MOVE
// Of a word of counts: nothing is known; how often the tile has the digit; how often all up to it have.
#define GN_NONE 0u
#define GN_ONE 0x40000000u
#define GN_ALL 0x80000000u
#define GN_COUNT_OF(v) ((v) & 0x3fffffffu)

const uint GN_WINDOW = 4u; // tiles that are looked at together

shared uint gn_stalled;
uint gn_row, gn_in; // keys are read from the elements (0), or from buffer 1 or 2
uint gn_state;              // a row's tiles in the counts

uvec2 gn_key_at(uint i) {
    if (gn_in == 0u) return gn_key_of(gn_bits(0u, GN_IN_BASE + i));
    return uvec2(gn_load(gn_in, i), GN_LOG_BYTES == 3u ? gn_load(gn_in, GN_ROW_COUNT * GN_N + i) : 0u);
}

// Passes that change nothing; if that is all of them, the last one is done.
uint gn_left_out() {
    uint all = (1u << GN_PASSES) - 1u, skip = 0u;
    if (GN_ONE_DIGIT) return skip;
    uvec2 u = gn_key_of(gn_bits(0u, GN_IN_BASE + gn_row * GN_N));
    [[unroll]] for (uint p = 0u; p < GN_PASSES; p++)
        if (gn_load(5u, (gn_row * GN_PASSES + p) * 256u + gn_digit(u, 8u * p)) == GN_N) skip |= 1u << p;
    return skip == all ? all >> 1 : skip;
}

// How often each digit is in a tile before this one, into gn_pool.
void gn_count_tile(uint tile) {
    for (uint d = gn_me; d < 256u; d += GN_T) gn_pool[d] = 0u;
    barrier();
    for (uint i = gn_me; i < GN_TILE; i += GN_T)
        atomicAdd(gn_pool[gn_digit(gn_key_at(gn_row * GN_N + tile * GN_TILE + i), GN_SHIFT)], 1u);
    barrier();
}

// v[k]: how many elements of the row have smaller digits than the invocation's.
void gn_smaller(out uint v[4]) {
    [[unroll]] for (uint k = 0u; k < GN_OWN; k++) {
        uint d = gn_me + k * GN_T;
        v[k] = d < 256u ? gn_load(5u, (gn_row * GN_PASSES + (GN_ONE_DIGIT ? 0u : GN_SHIFT / 8u)) * 256u + d) : 0u;
    }
    gn_sum_digits(v);
}

// base[k]: where in the row the tile's first element with each of the invocation's digits goes.
void gn_look_back(uint tile, inout uint base[4]) {
    uint at[4], smaller[4] = uint[4](0u, 0u, 0u, 0u); // tiles that are still to be looked at
    if (tile == 0u) {
        gn_smaller(base);
    } else {
        [[unroll]] for (uint k = 0u; k < GN_OWN; k++) {
            base[k] = 0u;
            at[k] = gn_me + k * GN_T < 256u ? tile : 0u;
        }
        for (;;) {
            if (gn_me == 0u) gn_stalled = 0u;
            barrier();
            [[unroll]] for (uint k = 0u; k < GN_OWN; k++) {
                for (uint looks = 0u; at[k] > 0u && looks < GN_LOOKS;) {
                    uint v[GN_WINDOW], from = at[k];
                    [[unroll]] for (uint i = 0u; i < GN_WINDOW; i++)
                        v[i] = from > i ? gn_load_coherent(5u, gn_state + (from - 1u - i) * 256u + gn_me + k * GN_T) : GN_NONE;
                    looks++;
                    [[unroll]] for (uint i = 0u; i < GN_WINDOW; i++) {
                        if (at[k] + i != from || at[k] == 0u || v[i] < GN_ONE) continue; // one before it says nothing, or all
                        base[k] += GN_COUNT_OF(v[i]);
                        at[k] = v[i] >= GN_ALL ? 0u : at[k] - 1u;
                        looks = 0u;
                    }
                }
                if (at[k] > 0u) atomicMax(gn_stalled, at[k]);
            }
            barrier();
            uint stalled = gn_stalled;
            if (stalled == 0u) break;
            gn_count_tile(stalled - 1u);
            if (stalled == 1u) gn_smaller(smaller); // which are in the first tile's count of all
            [[unroll]] for (uint k = 0u; k < GN_OWN; k++) {
                if (at[k] != stalled) continue;
                uint d = gn_me + k * GN_T, c = gn_pool[d] + smaller[k];
                gn_atomic_max(5u, gn_state + (stalled - 1u) * 256u + d, (stalled == 1u ? GN_ALL : GN_ONE) | c);
                base[k] += c;
                at[k]--;
            }
            barrier();
        }
    }
    [[unroll]] for (uint k = 0u; k < GN_OWN; k++) {
        uint d = gn_me + k * GN_T;
        if (d < 256u) gn_atomic_max(5u, gn_state + tile * 256u + d, GN_ALL | (base[k] + gn_total[k]));
    }
}

// The tile's elements from gn_in; what fills the last tile comes last.
void gn_fetch_tile(uint at, uint begin, uint left) {
    GN_HANDLE keys = GN_OPEN(gn_in), places = GN_OPEN(gn_in + 2u);
    uint most = left - 1u, start = gn_in == 0u ? GN_IN_BASE + at : at;
    if (GN_LOG_BYTES == 2u) {
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) gn_low[e] = GN_AT(keys, start + min(gn_first + e * GN_SUB, most));
    } else if (gn_in == 0u) {
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) {
            uvec2 u = gn_bits(0u, start + min(gn_first + e * GN_SUB, most));
            gn_low[e] = u.x;
            if (GN_LOG_BYTES == 3u) gn_high[e] = u.y;
        }
    } else {
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) {
            uint i = start + min(gn_first + e * GN_SUB, most);
            gn_low[e] = GN_AT(keys, i);
            if (GN_LOG_BYTES == 3u) gn_high[e] = GN_AT(keys, GN_ROW_COUNT * GN_N + i);
        }
    }
    if (GN_PLACES != 0u) {
        uint base = (GN_ONE_DIGIT ? GN_IN_BASE : 0u) + at;
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) {
            uint i = min(gn_first + e * GN_SUB, most);
            gn_from[e] = gn_in == 0u ? begin + i : GN_AT(places, base + i);
        }
    }
    [[unroll]] for (uint e = 0u; e < GN_EACH; e++) {
        uvec2 u = gn_key(e);
        if (gn_in == 0u) u = gn_key_of(u);
        if (gn_first + e * GN_SUB >= left) u = uvec2(0xffffffffu);
        gn_low[e] = u.x;
        if (GN_LOG_BYTES == 3u) gn_high[e] = u.y;
    }
}

// Into b the part of `a` that is `part` in the order of ranks: element e of an invocation GN_T behind its element e - 1.
#define GN_TURN(a, b)                                                                            \
    {                                                                                            \
        barrier();                                                                               \
        [[unroll]] for (uint e = 0u; e < GN_EACH; e++) {                                         \
            uint to = gn_rank[e] - part * GN_PART;                                               \
            if (to < GN_PART) gn_pool[to] = a[e];                                                \
        }                                                                                        \
        barrier();                                                                               \
        [[unroll]] for (uint e = 0u; e < GN_HALF; e++) b[e] = gn_pool[gn_me + e * GN_T];         \
    }

void main() {
    gn_begin();
    uint tile = GN_GROUP % GN_TILES, pass = GN_ONE_DIGIT ? 0u : GN_SHIFT / 8u, base[4];
    gn_row = GN_GROUP / GN_TILES;
    if (gn_row >= GN_ROW_COUNT) return;
    uint skip = gn_left_out(), before = bitCount(~skip & ((1u << pass) - 1u));
    if ((skip >> pass & 1u) != 0u) return;
    bool last = !GN_ONE_DIGIT && (~skip & ((1u << GN_PASSES) - 1u)) >> pass == 1u;
    gn_in = GN_ONE_DIGIT ? 1u : before == 0u ? 0u : 2u - (before & 1u);
    gn_state = (GN_ROW_COUNT * GN_PASSES + (pass * GN_ROW_COUNT + gn_row) * GN_TILES) * 256u;
    uint begin = tile * GN_TILE, left = GN_N - begin, at = gn_row * GN_N;
    gn_fetch_tile(at + begin, begin, left);
    gn_rank_all(GN_SHIFT);
    [[unroll]] for (uint k = 0u; k < GN_OWN; k++) {
        uint d = gn_me + k * GN_T;
        if (d < 256u && tile > 0u) gn_atomic_max(5u, gn_state + tile * 256u + d, GN_ONE | gn_total[k]);
    }
    gn_rank_end(GN_SHIFT);
    gn_look_back(tile, base);
    [[unroll]] for (uint k = 0u; k < GN_OWN; k++) {
        uint d = gn_me + k * GN_T;
        if (d < 256u) gn_base[d] = base[k] - gn_base[d];
    }
    GN_HANDLE keys = GN_OPEN(GN_ONE_DIGIT ? 2u : 1u + (before & 1u)), places = GN_OPEN(GN_ONE_DIGIT ? 4u : 3u + (before & 1u));
    [[unroll]] for (uint part = 0u; part < 2u; part++) {
        uint low[GN_HALF], high[GN_HALF], from[GN_HALF], first = part * GN_PART + gn_me;
        GN_TURN(gn_low, low)
        if (GN_LOG_BYTES == 3u) GN_TURN(gn_high, high)
        if (GN_PLACES != 0u) GN_TURN(gn_from, from)
        // Keys alone are sorted up to a third faster if the branch is not in the loop, places 3 % slower.
        if (last && GN_PLACES == 0u) {
            [[unroll]] for (uint e = 0u; e < GN_HALF; e++) {
                uint i = first + e * GN_T;
                uvec2 key = uvec2(low[e], GN_LOG_BYTES == 3u ? high[e] : 0u);
                if (i < min(left, GN_TILE)) gn_finish(gn_row, gn_base[gn_digit(key, GN_SHIFT)] + i, key, 0u);
            }
            continue;
        }
        [[unroll]] for (uint e = 0u; e < GN_HALF; e++) {
            uint i = first + e * GN_T;
            if (i >= min(left, GN_TILE)) continue;
            uvec2 key = uvec2(low[e], GN_LOG_BYTES == 3u ? high[e] : 0u);
            uint to = gn_base[gn_digit(key, GN_SHIFT)] + i;
            if (last && GN_PLACES != 0u) {
                gn_finish(gn_row, to, key, from[e]);
                continue;
            }
            GN_PUT(keys, at + to, key.x);
            if (GN_LOG_BYTES == 3u) GN_PUT(keys, GN_ROW_COUNT * GN_N + at + to, key.y);
            if (GN_PLACES != 0u) GN_PUT(places, at + to, from[e]);
        }
    }
}
#endif
