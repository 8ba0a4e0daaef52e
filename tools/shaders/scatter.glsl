// Sums of floats by place: gn_measure finds the largest exponent that goes to each, gn_add_float adds fixed-point numbers of 64 bits
// in units of 2^-(GN_BITS) times the power of two above that, gn_finish adds the sum to the place's element, rounded once. They are in
// buffer 4, for all places one after the other; with GN_SUMS in shared memory, for those from gn_first_place on. Include places.glsl first.

#define GN_PLACES GN_PARAM(GNI_P_SCATTER_PLACES)
#define GN_BITS GN_PARAM(GNI_P_SCATTER_BITS)

// What is before at word `at` of the result: buffer 5 has it, which may be the result itself.
#ifdef GN_WGSL // where no two buffers are one
#define GN_BEFORE(at) gn_load(2u, at)
#define GN_BEFORE2(at) gn_load2(2u, at)
#else
#define GN_BEFORE(at) gn_load(5u, (at) - GN_OUT_BASE + GN_PARAM(GNI_P_SCATTER_BASE))
#define GN_BEFORE2(at) gn_load2(5u, (at) - GN_OUT_BASE + GN_PARAM(GNI_P_SCATTER_BASE))
#endif

// Largest exponents and sums by place.
#ifdef GN_SUMS
const uint GN_HELD = uint(GNI_SCATTER_HELD);
shared uint gn_most[GN_HELD];
shared uint gn_sum[2u * GN_HELD];
shared uint gn_before[2];
uint gn_first_place;
#define GN_MOST(place) gn_most[place]
#define GN_MOST_MAX(place, x) atomicMax(gn_most[place], x)
#define GN_MOST_OR(place, x) atomicOr(gn_most[place], x)
#define GN_SUM(word) gn_sum[word]
#define GN_SUM_ADD(k, word, x) atomicAdd(gn_sum[word], x)
#define GN_SUM_AT(place) (2u * (place))
#define GN_OUT_AT(place) (GN_OUT_BASE + gn_first_place + (place))
#else
#define GN_MOST(place) gn_load(4u, place)
#define GN_MOST_MAX(place, x) gn_atomic_max(4u, place, x)
#define GN_MOST_OR(place, x) gn_atomic_or(4u, place, x)
#define GN_SUM(word) gn_load(4u, word)
#define GN_SUM_ADD(k, word, x) gn_atomic_add(k, word, x)
#define GN_SUM_AT(place) ((GN_PLACES + 1u & ~1u) + 2u * (place))
#define GN_OUT_AT(place) (GN_OUT_BASE + (place))
#endif

#ifdef GN_ADD
layout(buffer_reference, std430, buffer_reference_align = 8) buffer gn_longs { uint64_t v[]; };
void gn_add_wide(uint k, uint word, uvec2 v) { atomicAdd(gn_longs(gn_address(k)).v[word >> 1], packUint2x32(v)); }
#else
void gn_add_wide(uint k, uint word, uvec2 v) {
    uint carry = 0u;
    if (v.x != 0u) {
        uint old = GN_SUM_ADD(k, word, v.x);
        carry = old + v.x < old ? 1u : 0u;
    }
    if (v.y + carry != 0u) GN_SUM_ADD(k, word + 1u, v.y + carry);
}
#endif

uvec2 gn_left(uint m, uint s) {
    return s >= 32u ? uvec2(0u, m << (s - 32u)) : uvec2(m << s, s > 0u ? m >> (32u - s) : 0u);
}

uvec2 gn_negative(uvec2 v) { return uvec2(~v.x + 1u, ~v.y + (v.x == 0u ? 1u : 0u)); }

// The element's exponent goes into the place's largest; infinities and NaN are bits above all exponents.
void gn_measure(uint place, uint b) {
    uint e = b >> 23 & 255u;
    if (e < 255u) GN_MOST_MAX(place, max(e, 1u));
    else GN_MOST_OR(place, (b & 0x7fffffu) != 0u ? 1024u : (b >> 31) != 0u ? 512u : 256u);
}

void gn_add_float(uint place, uint b) {
    uint most = GN_MOST(place), e = max(b >> 23 & 255u, 1u), m = b & 0x7fffffu;
    if (most > 255u) return;
    if ((b >> 23 & 255u) != 0u) m |= 0x800000u;
    int s = int(GN_BITS) - 24 - int(most - e);
    uvec2 v = uvec2(0u);
    if (s >= 0) v = gn_left(m, uint(s));
    else if (s >= -25) v.x = (m + (1u << uint(-s - 1))) >> uint(-s);
    gn_add_wide(4u, GN_SUM_AT(place), (b >> 31) != 0u ? gn_negative(v) : v);
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

void gn_finish(uint place, uint base) {
    uint most = GN_MOST(place), at = GN_OUT_AT(place), x;
    if (most == 0u) {
        gn_store(2u, at, base);
        return;
    }
    if (most > 255u) {
        x = most >= 1024u || (most & 768u) == 768u ? 0x7fc00000u : (most & 512u) != 0u ? 0xff800000u : 0x7f800000u;
        bool stays = (base & 0x7fffffffu) > 0x7f800000u, against = base == (x ^ 0x80000000u);
        gn_store(2u, at, stays ? base : against ? 0x7fc00000u : x);
        return;
    }
    uvec2 v = uvec2(GN_SUM(GN_SUM_AT(place)), GN_SUM(GN_SUM_AT(place) + 1u));
    if ((v.x | v.y) == 0u) x = 0u;
    else x = gn_rounded(v, most);
    if ((base & 0x7fffffffu) == 0u) {
        gn_store(2u, at, x);
        return;
    }
    precise float sum = uintBitsToFloat(base) + uintBitsToFloat(x);
    gn_store(2u, at, floatBitsToUint(sum));
}
