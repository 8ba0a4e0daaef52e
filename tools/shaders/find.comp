#version 450
// Places in sorted keys, and how often numbers are there.
//
// search  where each element goes into a sorted row
// count   how often each number is there, into words
// widen   these as int64
//
//! variant find_search -DGN_SEARCH
//! variant find_count -DGN_COUNT
//! variant find_widen -DGN_WIDEN
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 3
#ifdef GN_SEARCH
#define GN_READONLY 3
#else
#define GN_READONLY 1
#endif
#include "gn.glsl"
#include "memory.glsl"
#include "order.glsl"

layout(local_size_x = 256) in;

#define GN_N GN_PARAM(GNI_P_FIND_N)         // elements that are looked at
#define GN_LINE GN_PARAM(GNI_P_FIND_LINE)   // sorted ones, or numbers that are counted
#define GN_IN_BASE GN_PARAM(GNI_P_FIND_IN_BASE)
#define GN_LINE_BASE GN_PARAM(GNI_P_FIND_LINE_BASE)
#define GN_OUT_BASE GN_PARAM(GNI_P_FIND_OUT_BASE)
#define GN_RIGHT GN_PARAM(GNI_P_FIND_RIGHT)

#ifdef GN_SEARCH
// Buffers: the sorted row, elements, places.
bool gn_less(uvec2 a, uvec2 b) { return a.y < b.y || (a.y == b.y && a.x < b.x); }

void main() {
    uint step = gl_NumWorkGroups.x * 256u;
    for (uint t = gl_GlobalInvocationID.x; t < GN_N; t += step) {
        uvec2 u = gn_key_of(gn_bits(1u, GN_IN_BASE + t));
        uint at = 0u, n = GN_LINE;
        while (n > 0u) {
            uint middle = n / 2u;
            uvec2 w = gn_key_of(gn_bits(0u, GN_LINE_BASE + at + middle));
            bool up = GN_RIGHT != 0u ? !gn_less(u, w) : gn_less(w, u);
            at = up ? at + middle + 1u : at;
            n = up ? n - middle - 1u : middle;
        }
        gn_store2(2u, GN_OUT_BASE + t, uvec2(at, 0u));
    }
}
#endif

#ifdef GN_COUNT
// Buffers: numbers, counts.
shared uint gn_counts[2048];

void main() {
    uint me = gl_LocalInvocationIndex, step = gl_NumWorkGroups.x * 256u, few = min(GN_LINE, 2048u);
    for (uint i = me; i < few; i += 256u) gn_counts[i] = 0u;
    barrier();
    for (uint t = gl_GlobalInvocationID.x; t < GN_N; t += step) {
        uvec2 u = gn_load2(0u, GN_IN_BASE + t);
        if (u.y != 0u || u.x - GN_PARAM(GNI_P_FIND_LEAST) >= GN_LINE) continue;
        u.x -= GN_PARAM(GNI_P_FIND_LEAST);
        if (u.x < 2048u) atomicAdd(gn_counts[u.x], 1u);
        else gn_atomic_add(1u, u.x, 1u);
    }
    barrier();
    for (uint i = me; i < few; i += 256u) {
        uint c = gn_counts[i];
        if (c != 0u) gn_atomic_add(1u, i, c);
    }
}
#endif

#ifdef GN_WIDEN
// Buffers: counts, the result.
void main() {
    uint step = gl_NumWorkGroups.x * 256u;
    for (uint t = gl_GlobalInvocationID.x; t < GN_LINE; t += step)
        gn_store2(1u, GN_OUT_BASE + t, uvec2(gn_load(0u, t), 0u));
}
#endif
