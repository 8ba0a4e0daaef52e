#version 450
// The key at a place of a sorted row, without sorting it, and the elements up to there.
//
// count  how often each digit is among the keys of a row that begin as found so far; the last workgroup of a row goes on with
// pick   the next digit of what is searched for; clears the counts. With bindings a kernel of its own.
// end    it as an element
// collect  after the first digit: the elements up to there, where they are few, in any order; nothing is left for the rest then
// tally  how many keys of each run of tiles are below what was found, and how many are as large
// keep   with the sums of those in front: the `take` smallest keys of a row and where they are, those below first
//
//! variant select_count -DGN_COUNT
//! variant select_pick -DGN_PICK
//! variant select_end -DGN_END
//! variant select_collect -DGN_COLLECT
//! variant select_tally -DGN_TALLY
//! variant select_keep -DGN_KEEP
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 5
#define GN_READONLY 1
#include "gn.glsl"
#include "memory.glsl"
#if defined(GN_COUNT) || defined(GN_COLLECT)
#define GN_VECTORS
#endif
#include "order.glsl"

layout(local_size_x = 256) in;

// Buffers: elements; what is searched for, with its place among those that begin as it does and a word of nothing;
// counts and how many workgroups of a row are done, or the element; keys, places. Searches are several for a row, one after the other for all rows.
#define GN_ROW_COUNT GN_PARAM(GNI_P_SELECT_ROWS)
#define GN_N GN_PARAM(GNI_P_SELECT_N)
#define GN_IN_BASE GN_PARAM(GNI_P_SELECT_IN_BASE)
#define GN_SEARCHES GN_PARAM(GNI_P_SELECT_SEARCHES) // of a row
#define GN_SPLITS GN_PARAM(GNI_P_SELECT_SPLITS)     // or runs of tiles of a row
#define GN_SHIFT GN_PARAM(GNI_P_SELECT_SHIFT)
#define GN_WIDTH GN_PARAM(GNI_P_SELECT_WIDTH)       // bits of the digit, 12 at most, all in one word
#define GN_OUT_BASE GN_PARAM(GNI_P_SELECT_OUT_BASE)
#define GN_TAKE GN_PARAM(GNI_P_SELECT_TAKE)
#define GN_ROOM GN_PARAM(GNI_P_SELECT_ROOM) // for so many a row; 0: nothing is collected
#define GN_PLACE GN_PARAM(GNI_P_SELECT_PLACE) // of what the first search of a row searches for
#define GN_RUN GN_PARAM(GNI_P_SELECT_RUN)     // tiles of a workgroup
const uint GN_DIGITS = 1u << GNI_SELECT_BITS;

// Whether what is searched for has been collected: in the word after its place.
bool gn_has(uint row) { return GN_ROOM > 0u && gn_load(1u, 4u * row + 3u) != 0u; }
#ifdef GN_WGSL // which does not know that all leave, and wants all at barriers
#define GN_LEAVE(idle)
#else
#define GN_LEAVE(idle) if (idle) return;
#endif

uint gn_digit(uvec2 u) { return ((GN_SHIFT >= 32u ? u.y : u.x) >> (GN_SHIFT & 31u)) & ((1u << GN_WIDTH) - 1u); }

// The bits above the digit.
uvec2 gn_above() {
    uint end = GN_SHIFT + GN_WIDTH;
    if (end >= 64u) return uvec2(0u);
    if (end >= 32u) return uvec2(0u, 0xffffffffu << (end - 32u));
    return uvec2(0xffffffffu << end, 0xffffffffu);
}

// Searches of a row that have found the same so far count once, for the first of them.
bool gn_follows(uint search) {
    if (search < GN_ROW_COUNT) return false;
    return ((gn_load2(1u, 2u * search) ^ gn_load2(1u, 2u * (search % GN_ROW_COUNT))) & gn_above()) == uvec2(0u);
}

#if defined(GN_COUNT) || defined(GN_PICK)
const uint GN_EACH = GN_DIGITS / 256u;
shared uint gn_counts[GN_DIGITS];
#endif

#if defined(GN_PICK) || (defined(GN_COUNT) && !defined(GN_BINDINGS))
#ifdef GN_BINDINGS // a dispatch of its own has all counts before it
#define GN_GET_COUNT(i) gn_load(2u, i)
#define GN_CLEAR_COUNT(i) gn_store(2u, i, 0u)
#else
#define GN_GET_COUNT(i) gn_load_coherent(2u, i)
#define GN_CLEAR_COUNT(i) gn_store_coherent(2u, i, 0u)
#endif

// Of all searches of a row.
void gn_pick(uint row, bool idle) {
    uint me = gl_LocalInvocationIndex;
    bool starts = GN_SHIFT + GN_WIDTH == 8u << GN_LOG_BYTES;
    if (starts) // nothing yet, behind all
        for (uint i = me; i < GN_ROOM; i += 256u) {
            if (GN_LOG_BYTES == 3u) gn_store2(3u, row * GN_ROOM + i, uvec2(0xffffffffu));
            else gn_store(3u, row * GN_ROOM + i, 0xffffffffu);
            gn_store(4u, row * GN_ROOM + i, 0xffffffffu);
        }
    for (uint at = GN_SEARCHES; at > 0u; at--) {
        uint search = row + (at - 1u) * GN_ROW_COUNT, counts = gn_follows(search) ? row : search, own[GN_EACH], v = 0u;
        uint place = starts ? GN_PLACE + at - 1u : gn_load(1u, 4u * search + 2u);
        barrier();
        for (uint i = me; i < GN_DIGITS; i += 256u) {
            gn_counts[i] = idle ? 0u : GN_GET_COUNT(counts * GN_DIGITS + i);
            if (counts == search && !idle) GN_CLEAR_COUNT(counts * GN_DIGITS + i);
        }
        barrier();
        for (uint e = 0u; e < GN_EACH; e++) {
            own[e] = gn_counts[me * GN_EACH + e];
            v += own[e];
        }
        uint total = v;
        barrier();
        gn_counts[me] = v; // all that 16 KB hold
        barrier();
        for (uint step = 1u; step < 256u; step *= 2u) {
            if (me >= step) v += gn_counts[me - step];
            barrier();
            gn_counts[me] = v;
            barrier();
        }
        v -= total;
        for (uint e = 0u; e < GN_EACH; e++) {
            if (place >= v && place - v < own[e]) {
                uint word = 4u * search + (GN_SHIFT >= 32u ? 1u : 0u);
                gn_store(1u, word, gn_load(1u, word) | ((me * GN_EACH + e) << (GN_SHIFT & 31u)));
                gn_store(1u, 4u * search + 2u, place - v);
                if (GN_ROOM > 0u && starts) gn_store(1u, 4u * search + 3u, v + own[e] <= GN_ROOM ? 1u : 0u);
            }
            v += own[e];
        }
    }
}
#endif

#if defined(GN_COUNT) || defined(GN_COLLECT)
void main() {
    uint me = gl_LocalInvocationIndex, search = GN_GROUP / GN_SPLITS, part = GN_GROUP % GN_SPLITS, row = search % GN_ROW_COUNT;
    if (search >= GN_ROW_COUNT * GN_SEARCHES) return;
#ifdef GN_COUNT
    bool idle = gn_has(row);
    GN_LEAVE(idle)
    idle = idle || gn_follows(search);
    for (uint i = me; i < 1u << GN_WIDTH; i += 256u) gn_counts[i] = 0u;
    barrier();
#else
    bool idle = !gn_has(row);
    GN_LEAVE(idle)
#endif
    uint begin = GN_IN_BASE + row * GN_N, end = begin + GN_N, step = GN_SPLITS * 256u;
    uint groups = idle ? 0u : (end + GN_VECTOR - 1u) / GN_VECTOR;
    uvec2 found = gn_load2(1u, 2u * search), above = gn_above();
    // 16 bytes at a time, of which some at both ends are none of the row; four such in flight.
    for (uint first = begin / GN_VECTOR + part * 256u + me; first < groups; first += 4u * step) {
        uvec4 w[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++) w[k] = gn_fetch4(0u, min(first + k * step, groups - 1u));
        bool whole = first * GN_VECTOR >= begin && (first + 3u * step + 1u) * GN_VECTOR <= end;
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            [[unroll]] for (uint e = 0u; e < GN_VECTOR; e++) {
                uint j = (first + k * step) * GN_VECTOR + e;
                uvec2 u = gn_key_of(gn_bits_of(w[k], e));
                if (!whole && (j < begin || j >= end)) continue;
#ifdef GN_COUNT
                if (((u ^ found) & above) == uvec2(0u)) atomicAdd(gn_counts[gn_digit(u)], 1u);
#else
                if (gn_digit(u) > gn_digit(found)) continue;
                uint slot = row * GN_ROOM + gn_atomic_add(2u, row * GN_DIGITS, 1u);
                if (GN_LOG_BYTES == 3u) gn_store2(3u, slot, u);
                else gn_store(3u, slot, u.x);
                gn_store(4u, slot, j - begin);
#endif
            }
    }
#ifdef GN_COUNT
    barrier();
    for (uint i = me; i < (1u << GN_WIDTH); i += 256u) {
        uint c = gn_counts[i];
        if (c != 0u) gn_atomic_add(2u, search * GN_DIGITS + i, c);
    }
#ifndef GN_BINDINGS
    uint done = GN_ROW_COUNT * GN_SEARCHES * GN_DIGITS + row;
    memoryBarrierBuffer();
    barrier();
    if (me == 0u) gn_counts[0] = gn_atomic_add(2u, done, 1u);
    barrier();
    if (gn_counts[0] != GN_SEARCHES * GN_SPLITS - 1u) return;
    memoryBarrierBuffer();
    if (me == 0u) gn_store_coherent(2u, done, 0u);
    gn_pick(row, false);
#endif
#endif
}
#endif

#ifdef GN_PICK
void main() {
#ifdef GN_BINDINGS
    if (GN_GROUP >= GN_ROW_COUNT) return;
    bool idle = gn_has(GN_GROUP);
    GN_LEAVE(idle)
    gn_pick(GN_GROUP, idle);
#endif
}
#endif

#ifdef GN_END
void main() {
    for (uint t = gl_GlobalInvocationID.x; t < GN_ROW_COUNT * GN_SEARCHES; t += gl_NumWorkGroups.x * 256u) {
        uint search = t / GN_SEARCHES + t % GN_SEARCHES * GN_ROW_COUNT;
        gn_put_bits(2u, GN_OUT_BASE + t, gn_key_back(gn_load2(1u, 2u * search)));
    }
}
#endif

#if defined(GN_TALLY) || defined(GN_KEEP)
const uint GN_TILE = uint(GNI_SORT_TILE);
const uint GN_EACH = GN_TILE / 256u;
shared uint gn_sums[256];
shared uint gn_all[2];

// 1 for a key below what was found, 2^16 for one as large.
uint gn_class(uvec2 u, uvec2 found) {
    if (u == found) return 65536u;
    return u.y < found.y || (u.y == found.y && u.x < found.x) ? 1u : 0u;
}

void main() {
    uint me = gl_LocalInvocationIndex, row = GN_GROUP / GN_SPLITS, run = GN_GROUP % GN_SPLITS;
    if (row >= GN_ROW_COUNT) return;
    bool idle = gn_has(row);
    GN_LEAVE(idle)
    uvec2 found = gn_load2(1u, 2u * row), own[GN_EACH];
    uint below = row * GN_SPLITS, equal = below + GN_ROW_COUNT * GN_SPLITS, less = 0u, same = 0u;
    if (me < 2u) gn_all[me] = 0u;
    barrier();
#ifdef GN_KEEP
    for (uint i = me; i < run; i += 256u) {
        less += gn_load(2u, below + i);
        same += gn_load(2u, equal + i);
    }
    atomicAdd(gn_all[0], less);
    atomicAdd(gn_all[1], same);
    barrier();
    less = gn_all[0];
    same = gn_all[1];
    uint all_less = GN_TAKE - 1u - gn_load(1u, 4u * row + 2u); // what was found is number take - 1
#endif
    for (uint t = 0u; t < GN_RUN; t++) {
        uint first = (run * GN_RUN + t) * GN_TILE + me * GN_EACH, last = idle ? 0u : min(first + GN_EACH, GN_N), v = 0u;
        for (uint e = 0u; e < GN_EACH && first + e < last; e++) {
            own[e] = gn_key_of(gn_bits(0u, GN_IN_BASE + row * GN_N + first + e));
            v += gn_class(own[e], found);
        }
#ifdef GN_TALLY
        less += v & 0xffffu;
        same += v >> 16;
#else
        uint total = v;
        barrier();
        gn_sums[me] = v;
        barrier();
        for (uint step = 1u; step < 256u; step *= 2u) {
            if (me >= step) v += gn_sums[me - step];
            barrier();
            gn_sums[me] = v;
            barrier();
        }
        v -= total;
        uint my_less = less + (v & 0xffffu), my_same = same + (v >> 16);
        for (uint e = 0u; e < GN_EACH && first + e < last; e++) {
            uint c = gn_class(own[e], found), slot = c == 1u ? my_less++ : all_less + my_same;
            if (c == 65536u) my_same++;
            if (c == 0u || slot >= GN_TAKE) continue;
            slot += row * GN_ROOM;
            if (GN_LOG_BYTES == 3u) gn_store2(3u, slot, own[e]);
            else gn_store(3u, slot, own[e].x);
            gn_store(4u, slot, first + e);
        }
        less += gn_sums[255] & 0xffffu;
        same += gn_sums[255] >> 16;
#endif
    }
#ifdef GN_TALLY
    atomicAdd(gn_all[0], less);
    atomicAdd(gn_all[1], same);
    barrier();
    if (me != 0u) return;
    gn_store(2u, below + run, gn_all[0]);
    gn_store(2u, equal + run, gn_all[1]);
#endif
}
#endif
