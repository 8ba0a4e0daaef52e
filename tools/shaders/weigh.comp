#version 450
// Sums of float64 weights by number: the numbers from GN_LEAST on among int64 elements, as count.comp has them. They are added as
// fixed-point numbers of 96 bits, in units of 2^-(GN_BITS) times the power of two above the largest weight of a number, so that their
// order changes nothing. Three steps, of which the last goes over the numbers. Few numbers are held in shared memory, with copies
// for neighbours.
//
//! no-bindings
//! variant weigh
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 4
#define GN_READONLY 3
#include "gn.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_FIND_COPIES) const uint GN_COPIES = 1u; // 0: not held
layout(constant_id = GNI_S_FIND_STEP) const uint GN_STEP = 0u;

// Buffers: elements, weights, sums, and for each number the largest exponent; behind these, for each, 3 words.
#define GN_N GN_PARAM(GNI_P_FIND_N)
#define GN_BINS GN_PARAM(GNI_P_FIND_LINE)
#define GN_IN_BASE GN_PARAM(GNI_P_FIND_IN_BASE)
#define GN_WEIGHT_BASE GN_PARAM(GNI_P_FIND_LINE_BASE)
#define GN_OUT_BASE GN_PARAM(GNI_P_FIND_OUT_BASE)
#define GN_LEAST GN_PARAM(GNI_P_FIND_LEAST)
#define GN_BITS GN_PARAM(GNI_P_FIND_BITS)
const uint GN_HOLDS = uint(GNI_WEIGH_HOLDS);
shared uint gn_most[GN_HOLDS], gn_sum[3u * GN_HOLDS];

// Bits above all exponents.
const uint GN_UP = 2048u, GN_DOWN = 4096u, GN_NAN = 8192u;

void gn_measure(bool held, uint at, uint most) {
    if (most > 2047u) {
        if (held) atomicOr(gn_most[at], most);
        else gn_atomic_or(3u, at, most);
    } else if (held) atomicMax(gn_most[at], most);
    else gn_atomic_max(3u, at, most);
}

uint gn_add_word(bool held, uint at, uint v) { return held ? atomicAdd(gn_sum[at], v) : gn_atomic_add(3u, GN_BINS + at, v); }

void gn_add(bool held, uint at, uvec3 v) {
    uint carry = 0u, old;
    if (v.x != 0u) {
        old = gn_add_word(held, 3u * at, v.x);
        carry = old + v.x < old ? 1u : 0u;
    }
    v.y += carry;
    carry = v.y < carry ? 1u : 0u;
    if (v.y != 0u) {
        old = gn_add_word(held, 3u * at + 1u, v.y);
        carry += old + v.y < old ? 1u : 0u;
    }
    if (v.z + carry != 0u) gn_add_word(held, 3u * at + 2u, v.z + carry);
}

uvec3 gn_plus(uvec3 a, uvec3 b) {
    uint from_x, from_y, more;
    uint x = uaddCarry(a.x, b.x, from_x), y = uaddCarry(a.y, b.y, from_y);
    y = uaddCarry(y, from_x, more);
    return uvec3(x, y, a.z + b.z + from_y + more);
}

uvec3 gn_negative(uvec3 v) {
    v = ~v;
    v.x++;
    if (v.x == 0u) v.y++;
    if ((v.x | v.y) == 0u) v.z++;
    return v;
}

uvec3 gn_fixed(uvec2 b, uint most) {
    uint e = b.y >> 20 & 2047u;
    uvec2 m = uvec2(b.x, b.y & 0xfffffu);
    if (e != 0u) m.y |= 0x100000u;
    int s = int(GN_BITS) - 53 - int(most - max(e, 1u));
    uvec3 v = uvec3(0u);
    if (s > 32) {
        v.yz = uvec2(m.x << uint(s - 32), m.y << uint(s - 32) | m.x >> uint(64 - s));
    } else if (s == 32) {
        v.yz = m;
    } else if (s > 0) {
        v = uvec3(m.x << uint(s), m.y << uint(s) | m.x >> uint(32 - s), m.y >> uint(32 - s));
    } else if (s == 0) {
        v.xy = m;
    } else if (s >= -54) { // rounded
        uint r = uint(-s), low = m.x;
        if (r <= 32u) m.x += 1u << (r - 1u);
        else m.y += 1u << (r - 33u);
        if (m.x < low) m.y++;
        v.xy = r < 32u ? uvec2(m.x >> r | m.y << (32u - r), m.y >> r) : uvec2(m.y >> (r - 32u), 0u);
    }
    return (b.y >> 31) != 0u ? gn_negative(v) : v;
}

double gn_power(int e) { return packDouble2x32(uvec2(0u, uint(e + 1023) << 20)); }

uvec2 gn_result(uint most, uvec3 v) {
    if (most >= GN_NAN || (most & (GN_UP | GN_DOWN)) == (GN_UP | GN_DOWN)) return uvec2(0u, 0x7ff80000u);
    if (most >= GN_UP) return uvec2(0u, (most & GN_DOWN) != 0u ? 0xfff00000u : 0x7ff00000u);
    bool minus = (v.z >> 31) != 0u;
    if (minus) v = gn_negative(v);
    // What rounds first is far below what the sum rounds at.
    double sum = double(v.z) * 18446744073709551616.0lf + (double(v.y) * 4294967296.0lf + double(v.x));
    int e = int(most) - 1022 - int(GN_BITS);
    sum = sum * gn_power(e / 2) * gn_power(e - e / 2);
    return unpackDouble2x32(minus ? -sum : sum);
}

void main() {
    uint me = gl_LocalInvocationIndex, first = gl_GlobalInvocationID.x, step = gl_NumWorkGroups.x * 256u;
    bool held = GN_COPIES > 0u;
    if (GN_STEP == 2u) {
        for (uint i = first; i < GN_BINS; i += step) {
            uint at = GN_BINS + 3u * i;
            uvec3 sum = uvec3(gn_load(3u, at), gn_load(3u, at + 1u), gn_load(3u, at + 2u));
            gn_store2(2u, GN_OUT_BASE + i, gn_result(gn_load(3u, i), sum));
        }
        return;
    }
    for (uint i = me; i < GN_BINS * GN_COPIES; i += 256u) {
        gn_most[i] = GN_STEP == 0u ? 0u : gn_load(3u, i / GN_COPIES);
        gn_sum[3u * i] = gn_sum[3u * i + 1u] = gn_sum[3u * i + 2u] = 0u;
    }
    barrier();
    for (uint t = first; t < GN_N; t += step) {
        uvec2 u = gn_load2(0u, GN_IN_BASE + t), b = gn_load2(1u, GN_WEIGHT_BASE + t);
        uint bin = u.x - GN_LEAST, at = held ? bin * GN_COPIES + me % GN_COPIES : bin, e = b.y >> 20 & 2047u;
        if (u.y != 0u || bin >= GN_BINS || u.x < GN_LEAST) continue;
        if (GN_STEP == 0u) {
            if (e == 2047u) e = (b.y & 0xfffffu) != 0u || b.x != 0u ? GN_NAN : (b.y >> 31) != 0u ? GN_DOWN : GN_UP;
            gn_measure(held, at, max(e, 1u));
        } else {
            uint most = held ? gn_most[at] : gn_load(3u, at);
            if (most <= 2047u) gn_add(held, at, gn_fixed(b, most));
        }
    }
    barrier();
    for (uint i = me; i < GN_BINS && held; i += 256u) {
        uvec3 sum = uvec3(0u);
        for (uint k = 0u; k < GN_COPIES; k++) {
            uint at = i * GN_COPIES + k;
            if (GN_STEP == 0u && gn_most[at] != 0u) gn_measure(false, i, gn_most[at]);
            sum = gn_plus(sum, uvec3(gn_sum[3u * at], gn_sum[3u * at + 1u], gn_sum[3u * at + 2u]));
        }
        gn_add(false, i, sum);
    }
}
