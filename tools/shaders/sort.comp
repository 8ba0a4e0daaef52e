#version 450
// Sorts rows of keys (order.glsl), stable, with the places that they come from.
//
// rows   short rows, several of them in a workgroup's memory, by a bitonic network
// count  long rows, by 8 bits of the key a pass: how often each digit is in each tile, as counts[row][digit][tile]
// move   with the sums of all counts in front: each tile's elements to their places
// end    keys and places to values and int64 places, those that are asked for
//
//! variant sort_rows -DGN_ROWS
//! variant sort_rows64 -DGN_ROWS -DGN_LONG_KEYS
//! variant sort_count -DGN_COUNT
//! variant sort_move -DGN_MOVE
//! variant sort_end -DGN_END
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 6
#define GN_READONLY 1
#include "gn.glsl"
#include "memory.glsl"
#include "order.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_SORT_FIRST) const uint GN_FIRST = 0u;   // keys come from the elements, else they are there
layout(constant_id = GNI_S_SORT_LOG_ROW) const uint GN_LOG_ROW = 0u; // log2 of a short row's places in memory

// Buffers: elements; keys, places; keys and places that are written, or values and int64 places; counts.
#define GN_ROW_COUNT GN_PARAM(GNI_P_SORT_ROWS)
#define GN_N GN_PARAM(GNI_P_SORT_N)
#define GN_IN_BASE GN_PARAM(GNI_P_SORT_IN_BASE)
#define GN_TILES GN_PARAM(GNI_P_SORT_TILES)
#define GN_SHIFT GN_PARAM(GNI_P_SORT_SHIFT)
#define GN_LEFT GN_PARAM(GNI_P_SORT_SKIP)
#define GN_TAKE GN_PARAM(GNI_P_SORT_TAKE)
#define GN_OUT_BASE GN_PARAM(GNI_P_SORT_OUT_BASE)
#define GN_INDEX_BASE GN_PARAM(GNI_P_SORT_INDEX_BASE)
#define GN_ROW_LENGTH GN_PARAM(GNI_P_SORT_ROW)
#ifdef GN_LONG_KEYS
#define GN_HOLDS 1024u
#elif defined(GN_ROWS)
#define GN_HOLDS 2048u
#endif
#include "sorted.glsl"
const uint GN_TILE = uint(GNI_SORT_TILE);

uvec2 gn_get_key(uint k, uint i) { return GN_LOG_BYTES == 3u ? gn_load2(k, i) : uvec2(gn_load(k, i), 0u); }
void gn_put_key(uint k, uint i, uvec2 u) {
    if (GN_LOG_BYTES == 3u) gn_store2(k, i, u);
    else gn_store(k, i, u.x);
}
uvec2 gn_key_at(uint i) { return GN_FIRST != 0u ? gn_key_of(gn_bits(0u, GN_IN_BASE + i)) : gn_get_key(1u, i); }
uint gn_digit(uvec2 u) { return ((GN_SHIFT >= 32u ? u.y : u.x) >> (GN_SHIFT & 31u)) & 255u; }

#ifdef GN_ROWS
void main() {
    uint me = gl_LocalInvocationIndex, size = 1u << GN_LOG_ROW, row0 = GN_GROUP * (GN_HOLDS >> GN_LOG_ROW);
    if (row0 >= GN_ROW_COUNT) return;
    for (uint s = me; s < GN_HOLDS; s += 256u) {
        uint row = row0 + (s >> GN_LOG_ROW), i = s & (size - 1u);
        uvec2 u = uvec2(0xffffffffu);
        uint from = i;
        if (row < GN_ROW_COUNT && i < GN_N) {
            u = gn_key_at(row * GN_N + i);
            if (GN_FIRST == 0u) from = gn_load(2u, row * GN_N + i);
        } else {
            from |= 0x80000000u; // behind all
        }
        gn_hold(s, uvec3(u, from));
    }
    barrier();
    gn_sort_held(GN_LOG_ROW, min(GN_HOLDS >> GN_LOG_ROW, GN_ROW_COUNT - row0) << GN_LOG_ROW >> 1); // rows that there are
    for (uint s = me; s < GN_HOLDS; s += 256u) {
        uint row = row0 + (s >> GN_LOG_ROW), o = (s & (size - 1u)) - GN_LEFT;
        if (row >= GN_ROW_COUNT || o >= GN_TAKE) continue; // what is in front of the first one has a large o
        uvec3 v = gn_held(s);
        gn_finish(row, o, v.z, v.xy);
    }
}
#endif

#ifdef GN_COUNT
shared uint gn_counts[256];

void main() {
    uint me = gl_LocalInvocationIndex, row = GN_GROUP / GN_TILES, tile = GN_GROUP % GN_TILES;
    if (row >= GN_ROW_COUNT) return;
    gn_counts[me] = 0u;
    barrier();
    for (uint i = tile * GN_TILE + me; i < min(GN_N, (tile + 1u) * GN_TILE); i += 256u)
        atomicAdd(gn_counts[gn_digit(gn_key_at(row * GN_N + i))], 1u);
    barrier();
    gn_store(5u, (row * 256u + me) * GN_TILES + tile, gn_counts[me]);
}
#endif

#ifdef GN_MOVE
// A tile's digits with the element's number in it below, sorted by two bits at a time.
shared uint gn_sorted[GN_TILE];
shared uvec2 gn_sums[256];
shared uint gn_start[256];

// The sums of the invocations' v up to and with this one, each of four 16-bit counts in two words.
uvec2 gn_scan_counts(uint me, uvec2 v) {
    gn_sums[me] = v;
    barrier();
    for (uint step = 1u; step < 256u; step *= 2u) {
        if (me >= step) v += gn_sums[me - step];
        barrier();
        gn_sums[me] = v;
        barrier();
    }
    return v;
}

void main() {
    const uint EACH = GN_TILE / 256u;
    uint me = gl_LocalInvocationIndex, row = GN_GROUP / GN_TILES, tile = GN_GROUP % GN_TILES, own[EACH];
    if (row >= GN_ROW_COUNT) return;
    uint base = row * GN_N + tile * GN_TILE, n = min(GN_N - tile * GN_TILE, GN_TILE);
    for (uint i = me; i < GN_TILE; i += 256u)
        gn_sorted[i] = (i < n ? gn_digit(gn_key_at(base + i)) << 16 : 255u << 16) | i;
    barrier();
    for (uint bit = 16u; bit < 24u; bit += 2u) {
        uvec2 v = uvec2(0u);
        for (uint e = 0u; e < EACH; e++) {
            own[e] = gn_sorted[me * EACH + e];
            uint d = (own[e] >> bit) & 3u;
            v += uvec2((d < 2u ? 1u : 0u) << ((d & 1u) * 16u), (d < 2u ? 0u : 1u) << ((d & 1u) * 16u));
        }
        uvec2 at = gn_scan_counts(me, v) - v, total = gn_sums[255];
        uint front[4];
        front[0] = at.x & 0xffffu;
        front[1] = (at.x >> 16) + (total.x & 0xffffu);
        front[2] = (at.y & 0xffffu) + (total.x & 0xffffu) + (total.x >> 16);
        front[3] = (at.y >> 16) + (total.x & 0xffffu) + (total.x >> 16) + (total.y & 0xffffu);
        for (uint e = 0u; e < EACH; e++) {
            uint d = (own[e] >> bit) & 3u;
            gn_sorted[front[d]++] = own[e];
        }
        barrier();
    }
    for (uint p = me; p < GN_TILE; p += 256u) {
        uint d = gn_sorted[p] >> 16;
        if (p == 0u || gn_sorted[p - 1u] >> 16 != d) gn_start[d] = p;
    }
    barrier();
    for (uint p = me; p < n; p += 256u) { // what fills the last tile comes last
        uint d = gn_sorted[p] >> 16, i = base + (gn_sorted[p] & 0xffffu);
        uint to = row * GN_N + gn_load(5u, (row * 256u + d) * GN_TILES + tile) + p - gn_start[d];
        gn_put_key(3u, to, gn_key_at(i));
        if (GN_PLACES != 0u) gn_store(4u, to, GN_FIRST != 0u ? i - row * GN_N : gn_load(2u, i));
    }
}
#endif

#ifdef GN_END
void main() {
    uint n = GN_ROW_COUNT * GN_TAKE, step = gl_NumWorkGroups.x * 256u;
    for (uint t = gl_GlobalInvocationID.x; t < n; t += step) {
        uint row = t / GN_TAKE, o = t % GN_TAKE, i = row * GN_N + GN_LEFT + o;
        gn_finish(row, o, GN_PLACES != 0u ? gn_load(2u, i) : 0u, gn_get_key(1u, i));
    }
}
#endif
