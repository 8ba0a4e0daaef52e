// What attention.comp and attend.comp share: masks and dropout of scores. Both say which flags there are (GN_FLAGS).
#include "philox.glsl"

#define GN_MASKED ((GN_FLAGS & GNI_F_ATTEND_MASK) != 0u)
#define GN_TRUTHS ((GN_FLAGS & GNI_F_ATTEND_TRUTHS) != 0u)
#define GN_OF_KEYS ((GN_FLAGS & GNI_F_ATTEND_OF_KEYS) != 0u)
#define GN_DROPS ((GN_FLAGS & GNI_F_ATTEND_DROPS) != 0u)
#define GN_HIDDEN uintBitsToFloat(0xff800000u)

// Where the mask of a head begins, in elements, and behind that a query and a key. edge: there may not be such a key.
uint gn_mask_of(uint batch, uint head) {
    return GN_PARAM(GNI_P_ATTEND_MASK) + batch * GN_PARAM(GNI_P_ATTEND_MASK + 1) + head * GN_PARAM(GNI_P_ATTEND_MASK + 2);
}
uint gn_mask_at(uint query, uint key, bool edge) {
    if (edge) key = min(key, GN_PARAM(GNI_P_ATTEND_M) - 1u);
    uint at = key * GN_PARAM(GNI_P_ATTEND_MASK + 4);
    if (!GN_OF_KEYS) at += min(query, GN_PARAM(GNI_P_ATTEND_N) - 1u) * GN_PARAM(GNI_P_ATTEND_MASK + 3);
    return at;
}

// The power of 2 of a score, masked.
float gn_masked(float score, float scale, uint at) {
    if (GN_TRUTHS) return (GN_AT(GN_OPEN(8u), at / 4u) >> at % 4u * 8u & 0xffu) != 0u ? score * scale : GN_HIDDEN;
    float add = uintBitsToFloat(GN_AT(GN_OPEN(8u), at));
    return add <= GNI_ATTEND_HIDES ? GN_HIDDEN : fma(add, 1.4426950408889634, score * scale);
}

// The random numbers of query q and key k of a tile of 16 by 16, and of those 8 behind: q, k; q, k + 8; q + 8, k; q + 8, k + 8.
uvec4 gn_drawn(uint head, uint query, uint key, uint q, uint k) {
    uint tile = (head * ((GN_PARAM(GNI_P_ATTEND_N) + 15u) / 16u) + query / 16u) * ((GN_PARAM(GNI_P_ATTEND_M) + 15u) / 16u) + key / 16u;
    uint carry, low = uaddCarry(GN_PARAM(GNI_P_ATTEND_COUNTER), tile * 64u + 8u * q + k, carry);
    return gn_philox(uvec4(low, GN_PARAM(GNI_P_ATTEND_COUNTER + 1) + tile / 67108864u + carry, 0u, 0u),
                     uvec2(GN_PARAM(GNI_P_ATTEND_KEY), GN_PARAM(GNI_P_ATTEND_KEY + 1)));
}
bool gn_stays(uint number) { return number >> 8 >= GN_PARAM(GNI_P_ATTEND_BELOW); }
