#version 450
// out (outer, extent, inner) and then in (outer, count, inner) at the places that indices name. The order in which elements come
// changes nothing: integers are added as they are; extremes are those of integers that are ordered as the elements are; and
// floats are added as fixed-point numbers of 64 bits, in units of 2^-(GN_BITS) times the power of two above the largest element
// that goes to a place. Buffer 4: for each place the largest exponent (GN_MEASURE finds it) and that number; or the number of the
// last element that goes there, which stays.
//
//! variant scatter
#extension GL_GOOGLE_include_directive : require
#ifdef GN_WGSL
#define GN_BUFFERS 5
#else
#define GN_BUFFERS 6
#endif
#define GN_READONLY 3
#include "gn.glsl"
#define GN_INPUTS_CONST
#include "memory.glsl"
#include "places.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_SCATTER_STEP) const uint GN_STEP = 0u;
layout(constant_id = GNI_S_SCATTER_DTYPE) const uint GN_DTYPE = 0u;
layout(constant_id = GNI_S_SCATTER_LEAST) const bool GN_LEAST = false;
layout(constant_id = GNI_S_SCATTER_PAIRS) const bool GN_PAIRS = false; // buffer 1 has the places

#include "scatter.glsl"

uint gn_to_key(uint b) {
    uint k = b;
    if (GN_DTYPE == GN_T_I32) k = b ^ 0x80000000u;
    if (GN_DTYPE == GN_T_F32) {
        if ((b & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu; // NaN wins
        k = (b & 0x80000000u) != 0u ? ~b : b | 0x80000000u;
    }
    return GN_LEAST ? ~k : k;
}

uint gn_from_key(uint k) {
    if (GN_DTYPE == GN_T_F32 && k == 0xffffffffu) return 0x7fc00000u;
    if (GN_LEAST) k = ~k;
    if (GN_DTYPE == GN_T_I32) return k ^ 0x80000000u;
    if (GN_DTYPE == GN_T_F32) return (k & 0x80000000u) != 0u ? k & 0x7fffffffu : ~k;
    return k;
}

void gn_put_last(uint place, uint at) {
    uint last = gn_load(4u, place);
    if (last == 0u && gn_is_long(GN_DTYPE)) gn_store2(2u, at, GN_BEFORE2(at));
    else if (last == 0u) gn_store(2u, at, GN_BEFORE(at));
    else if (gn_is_long(GN_DTYPE)) gn_store2(2u, at, gn_fetch2(0u, GN_IN_BASE + last - 1u));
    else gn_store(2u, at, gn_fetch(0u, GN_IN_BASE + last - 1u));
}

void main() {
    uint first = gl_GlobalInvocationID.x, step = gl_NumWorkGroups.x * 256u;
    if (GN_STEP >= uint(GNI_SCATTER_TO_KEYS)) {
        for (uint t = first; t < GN_PLACES; t += step) {
            uint at = GN_OUT_BASE + t;
            if (GN_STEP == uint(GNI_SCATTER_TO_KEYS)) gn_store(2u, at, gn_to_key(GN_BEFORE(at)));
            else if (GN_STEP == uint(GNI_SCATTER_FROM_KEYS)) gn_store(2u, at, gn_from_key(gn_load(2u, at)));
            else if (GN_STEP == uint(GNI_SCATTER_PUT_LAST)) gn_put_last(t, at);
            else gn_finish(t, GN_BEFORE(at));
        }
        return;
    }
    for (uint t = first; t < GN_N; t += step) {
        uint place = GN_PAIRS ? gn_fetch(1u, t) : gn_place(t);
        if (GN_STEP == uint(GNI_SCATTER_PLACES)) {
            gn_store(4u, t, place);
            continue;
        }
        if (GN_STEP == uint(GNI_SCATTER_NUMBER)) {
            gn_atomic_max(4u, place, t + 1u);
            continue;
        }
        if (GN_STEP == uint(GNI_SCATTER_ADD_WIDE)) {
            gn_add_wide(2u, 2u * (GN_OUT_BASE + place), gn_fetch2(0u, GN_IN_BASE + t));
            continue;
        }
        uint b = gn_fetch(0u, GN_IN_BASE + t);
        if (GN_STEP == uint(GNI_SCATTER_ADD_WORD)) gn_atomic_add(2u, GN_OUT_BASE + place, b);
        else if (GN_STEP == uint(GNI_SCATTER_EXTREME)) gn_atomic_max(2u, GN_OUT_BASE + place, gn_to_key(b));
        else if (GN_STEP == uint(GNI_SCATTER_MEASURE)) gn_measure(place, b);
        else gn_add_float(place, b);
    }
}
