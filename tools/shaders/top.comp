#version 450
// The first few of long rows, in order, and where they are, in one pass over the rows.
//
// sample  of GNI_TOP_GROUPS groups of elements from anywhere in a row the first one each
// catch   the elements up to one of these, of rank GN_RANK: more than are asked for, and no more than there is room for, but
//         for a chance of one in ten thousand
// last    sorts them; by that chance it looks for them among all of the row
//
// Elements compare by key and then by place, so that no two are alike, whatever they are.
//
//! no-bindings
//! variant top_sample -DGN_SAMPLE
//! variant top_catch -DGN_CATCH
//! variant top_last -DGN_LAST
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 5
#define GN_READONLY 1
#include "gn.glsl"
#include "memory.glsl"
#define GN_VECTORS
#include "order.glsl"

layout(local_size_x = 256) in;

// Buffers: elements; of each row what its groups have and how many were caught; those caught; values, int64 places.
// An element: low and high word of its key, its place, and a word of nothing.
#define GN_ROW_COUNT GN_PARAM(GNI_P_TOP_ROWS)
#define GN_N GN_PARAM(GNI_P_TOP_N)
#define GN_IN_BASE GN_PARAM(GNI_P_TOP_IN_BASE)
#define GN_EACH GN_PARAM(GNI_P_TOP_EACH)   // elements of a group
#define GN_LANES GN_PARAM(GNI_P_TOP_LANES) // invocations of a group, a power of 2
#define GN_RANK GN_PARAM(GNI_P_TOP_RANK)
#define GN_SPLITS GN_PARAM(GNI_P_TOP_SPLITS)
#define GN_TAKE GN_PARAM(GNI_P_TOP_TAKE)
#define GN_OUT_BASE GN_PARAM(GNI_P_TOP_OUT_BASE)
#define GN_INDEX_BASE GN_PARAM(GNI_P_TOP_INDEX_BASE)
#define GN_ROW_LENGTH GN_N
const uint GN_GROUPS = uint(GNI_TOP_GROUPS);
const uint GN_ROOM = uint(GNI_TOP_ROOM);
#define GN_GROUPS_AT(row) ((row) * (GN_GROUPS + 1u))
#define GN_CAUGHT(row) (4u * (GN_GROUPS_AT(row) + GN_GROUPS)) // the word that counts them

bool gn_behind(uvec3 a, uvec3 b) {
    if (GN_LOG_BYTES == 3u && a.y != b.y) return a.y > b.y;
    return a.x > b.x || (a.x == b.x && a.z > b.z);
}
uvec3 gn_element(uint row, uint place) { return uvec3(gn_key_of(gn_bits(0u, GN_IN_BASE + row * GN_N + place)), place); }

#ifdef GN_SAMPLE
shared uvec3 gn_least[256];

// A number that looks like any other (O'Neill's PCG).
uint gn_any(uint i) {
    uint h = i * 747796405u + 2891336453u;
    h = ((h >> ((h >> 28) + 4u)) ^ h) * 277803737u;
    return (h >> 22) ^ h;
}

void main() {
    uint me = gl_LocalInvocationIndex, lane = me & (GN_LANES - 1u), row = GN_GROUP / GN_LANES;
    uint group = (GN_GROUP % GN_LANES * 256u + me) / GN_LANES;
    if (row >= GN_ROW_COUNT) return;
    uvec3 least = uvec3(0xffffffffu);
    for (uint i = lane; i < GN_EACH; i += 4u * GN_LANES) {
        uvec3 v[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            v[k] = gn_element(row, gn_any(group * GN_EACH + min(i + k * GN_LANES, GN_EACH - 1u)) % GN_N);
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            if (gn_behind(least, v[k])) least = v[k];
    }
    for (uint rest = GN_LANES / 2u; rest > 0u; rest /= 2u) {
        gn_least[me] = least;
        barrier();
        if (lane < rest && gn_behind(least, gn_least[me + rest])) least = gn_least[me + rest];
        barrier();
    }
    if (lane == 0u) gn_store4(1u, GN_GROUPS_AT(row) + group, uvec4(least, 0u));
    if (lane == 0u && group == 0u) gn_store(1u, GN_CAUGHT(row), 0u);
}
#endif

#ifdef GN_CATCH
shared uvec4 gn_low[GN_GROUPS / 4u];
shared uvec4 gn_high[GN_GROUPS / 4u];
shared uvec4 gn_place[GN_GROUPS / 4u];
shared uvec3 gn_limit;

void main() {
    uint me = gl_LocalInvocationIndex, row = GN_GROUP / GN_SPLITS, part = GN_GROUP % GN_SPLITS, rank = 0u;
    if (row >= GN_ROW_COUNT) return;
    uvec3 own = gn_load4(1u, GN_GROUPS_AT(row) + me).xyz;
    gn_low[me / 4u][me & 3u] = own.x;
    gn_high[me / 4u][me & 3u] = own.y;
    gn_place[me / 4u][me & 3u] = own.z;
    barrier();
    for (uint i = 0u; i < GN_GROUPS / 4u; i++) {
        uvec4 low = gn_low[i], high = GN_LOG_BYTES == 3u ? gn_high[i] : uvec4(0u), place = gn_place[i];
        [[unroll]] for (uint k = 0u; k < 4u; k++) { // two groups may have one element
            uvec3 other = uvec3(low[k], high[k], place[k]);
            if (gn_behind(own, other) || (own.z == other.z && 4u * i + k < me)) rank++;
        }
    }
    if (rank == GN_RANK) gn_limit = own;
    barrier();
    uvec3 limit = gn_limit;
    uint begin = GN_IN_BASE + row * GN_N, end = begin + GN_N, step = GN_SPLITS * 256u;
    uint groups = (end + GN_VECTOR - 1u) / GN_VECTOR;
    // 16 bytes at a time, of which some at both ends are none of the row; four such in flight. Few have an element up to there.
    for (uint first = begin / GN_VECTOR + part * 256u + me; first < groups; first += 4u * step) {
        uvec4 w[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++) w[k] = gn_fetch4(0u, min(first + k * step, groups - 1u));
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            bool some = false;
            [[unroll]] for (uint e = 0u; e < GN_VECTOR; e++) {
                uvec2 u = gn_key_of(gn_bits_of(w[k], e));
                some = some || (GN_LOG_BYTES == 3u ? u.y <= limit.y : u.x <= limit.x);
            }
            if (!some) continue;
            for (uint e = 0u; e < GN_VECTOR; e++) {
                uint j = (first + k * step) * GN_VECTOR + e;
                uvec3 u = uvec3(gn_key_of(gn_bits_of(w[k], e)), j - begin);
                if (gn_behind(u, limit) || j < begin || j >= end) continue;
                uint slot = gn_atomic_add(1u, GN_CAUGHT(row), 1u);
                if (slot < GN_ROOM) gn_store4(2u, row * GN_ROOM + slot, uvec4(u, 0u));
            }
        }
    }
}
#endif

#ifdef GN_LAST
#define GN_HOLDS 1024u // at least twice as many as are taken
#define GN_LONG_KEYS
#include "sorted.glsl"
shared uint gn_count;

void main() {
    uint me = gl_LocalInvocationIndex, row = GN_GROUP, count = 0u;
    if (row >= GN_ROW_COUNT) return;
    uint caught = gn_load(1u, GN_CAUGHT(row));
    bool enough = caught >= GN_TAKE && caught <= GN_ROOM;
    uint n = enough ? caught : GN_N;
    const uint EACH = GN_HOLDS / 2u;
    uvec3 limit = uvec3(0xffffffffu);
    if (me == 0u) gn_count = 0u;
    barrier();
    for (uint first = 0u; first < n; first += EACH) {
        for (uint i = first + me; i < min(first + EACH, n); i += 256u) {
            uvec3 v;
            if (enough) v = gn_load4(2u, row * GN_ROOM + i).xyz;
            else v = gn_element(row, i);
            if (!gn_behind(v, limit)) gn_hold(atomicAdd(gn_count, 1u), v);
        }
        barrier();
        count = gn_count;
        barrier();
        if (count <= GN_HOLDS - EACH && first + EACH < n) continue; // there is room for as many again
        uint log_size = count > 2u ? uint(findMSB(count - 1u)) + 1u : 1u, size = 1u << log_size;
        for (uint i = count + me; i < size; i += 256u) gn_hold(i, uvec3(0xffffffffu));
        barrier();
        gn_sort_held(log_size, size / 2u);
        count = min(count, GN_TAKE);
        if (count == GN_TAKE) limit = gn_held(GN_TAKE - 1u);
        if (me == 0u) gn_count = count;
        barrier();
    }
    for (uint i = me; i < GN_TAKE; i += 256u) {
        uvec3 v = gn_held(i);
        gn_finish(row, i, v.z, v.xy);
    }
}
#endif
