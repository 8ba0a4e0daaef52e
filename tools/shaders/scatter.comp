#version 450
// out (outer, extent, inner) and then in (outer, count, inner) at the places that indices name. The order in which elements come
// changes nothing: integers are added as they are; extremes are those of integers that are ordered as the elements are; and
// floats are added as fixed-point numbers of 64 bits, in units of 2^-(GN_BITS) times the power of two above the largest element
// that goes to a place. Buffer 4: for each place the largest exponent (GN_MEASURE finds it) and that number; or the number of the
// last element that goes there, which stays.
//
//! variant scatter
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 5
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

#define GN_PLACES GN_PARAM(GNI_P_SCATTER_PLACES)
#define GN_BITS GN_PARAM(GNI_P_SCATTER_BITS)

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

void gn_add_wide(uint k, uint word, uvec2 v) {
    uint carry = 0u;
    if (v.x != 0u) {
        uint old = gn_atomic_add(k, word, v.x);
        carry = old + v.x < old ? 1u : 0u;
    }
    if (v.y + carry != 0u) gn_atomic_add(k, word + 1u, v.y + carry);
}

uvec2 gn_left(uint m, uint s) {
    return s >= 32u ? uvec2(0u, m << (s - 32u)) : uvec2(m << s, s > 0u ? m >> (32u - s) : 0u);
}

uvec2 gn_negative(uvec2 v) { return uvec2(~v.x + 1u, ~v.y + (v.x == 0u ? 1u : 0u)); }

// The element's exponent goes into the place's largest; infinities and NaN are bits above all exponents.
void gn_measure(uint place, uint b) {
    uint e = b >> 23 & 255u;
    if (e < 255u) gn_atomic_max(4u, place, max(e, 1u));
    else gn_atomic_or(4u, place, (b & 0x7fffffu) != 0u ? 1024u : (b >> 31) != 0u ? 512u : 256u);
}

void gn_add_float(uint place, uint b) {
    uint most = gn_load(4u, place), e = max(b >> 23 & 255u, 1u), m = b & 0x7fffffu;
    if (most > 255u) return;
    if ((b >> 23 & 255u) != 0u) m |= 0x800000u;
    int s = int(GN_BITS) - 24 - int(most - e);
    uvec2 v = uvec2(0u);
    if (s >= 0) v = gn_left(m, uint(s));
    else if (s >= -25) v.x = (m + (1u << uint(-s - 1))) >> uint(-s);
    gn_add_wide(4u, GN_PLACES + 2u * place, (b >> 31) != 0u ? gn_negative(v) : v);
}

// The fixed-point number as float32, rounded once.
uint gn_rounded(uvec2 v, uint most) {
    bool minus = (v.y >> 31) != 0u;
    if (minus) v = gn_negative(v);
    int top = v.y != 0u ? 32 + findMSB(v.y) : findMSB(v.x), e = top + int(most) + 1 - int(GN_BITS);
    int s = top - 23 + max(0, 1 - e);
    uint m = 0u;
    if (s <= 0) {
        m = v.x << uint(-s);
    } else if (s < 64) {
        uint half_at = uint(s - 1);
        uvec2 low = half_at >= 32u ? uvec2(v.x, v.y & ((1u << (half_at - 32u)) - 1u)) : uvec2(v.x & ((1u << half_at) - 1u), 0u);
        bool half_bit = (half_at >= 32u ? v.y >> (half_at - 32u) & 1u : v.x >> half_at & 1u) != 0u;
        m = s >= 32 ? v.y >> uint(s - 32) : v.x >> uint(s) | v.y << uint(32 - s);
        if (half_bit && ((low.x | low.y) != 0u || (m & 1u) != 0u)) m++;
    }
    uint bits = min(m + (uint(max(e, 1) - 1) << 23), 0x7f800000u);
    if (e >= 255) bits = 0x7f800000u;
    return minus ? bits | 0x80000000u : bits;
}

void gn_finish(uint place) {
    uint most = gn_load(4u, place), at = GN_OUT_BASE + place, base = gn_load(2u, at), x;
    if (most == 0u) return;
    if (most > 255u) {
        x = most >= 1024u || (most & 768u) == 768u ? 0x7fc00000u : (most & 512u) != 0u ? 0xff800000u : 0x7f800000u;
        bool stays = (base & 0x7fffffffu) > 0x7f800000u, against = base == (x ^ 0x80000000u);
        gn_store(2u, at, stays ? base : against ? 0x7fc00000u : x);
        return;
    }
    uvec2 v = uvec2(gn_load(4u, GN_PLACES + 2u * place), gn_load(4u, GN_PLACES + 2u * place + 1u));
    if ((v.x | v.y) == 0u) x = 0u;
    else x = gn_rounded(v, most);
    if ((base & 0x7fffffffu) == 0u) {
        gn_store(2u, at, x);
        return;
    }
    precise float sum = uintBitsToFloat(base) + uintBitsToFloat(x);
    gn_store(2u, at, floatBitsToUint(sum));
}

void gn_put_last(uint place, uint at) {
    uint last = gn_load(4u, place);
    if (last == 0u) return;
    if (gn_is_long(GN_DTYPE)) gn_store2(2u, at, gn_fetch2(0u, GN_IN_BASE + last - 1u));
    else gn_store(2u, at, gn_fetch(0u, GN_IN_BASE + last - 1u));
}

void main() {
    uint first = gl_GlobalInvocationID.x, step = gl_NumWorkGroups.x * 256u;
    if (GN_STEP >= uint(GNI_SCATTER_TO_KEYS)) {
        for (uint t = first; t < GN_PLACES; t += step) {
            uint at = GN_OUT_BASE + t;
            if (GN_STEP == uint(GNI_SCATTER_TO_KEYS)) gn_store(2u, at, gn_to_key(gn_load(2u, at)));
            else if (GN_STEP == uint(GNI_SCATTER_FROM_KEYS)) gn_store(2u, at, gn_from_key(gn_load(2u, at)));
            else if (GN_STEP == uint(GNI_SCATTER_PUT_LAST)) gn_put_last(t, at);
            else gn_finish(t);
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
