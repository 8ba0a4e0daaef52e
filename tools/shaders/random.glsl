// What random.comp and draw.comp share: what numbers there are, the parameters, the blocks of the stream. Include math.glsl first.

layout(constant_id = GNI_S_RANDOM_KIND) const uint GN_KIND = 0u;
layout(constant_id = GNI_S_RANDOM_PAIRS) const uint GN_PAIRS = 0u;
layout(constant_id = GNI_S_RANDOM_DTYPE) const uint GN_OUT = 0u;
// gni_random_kind
#define GN_UNIFORM 0u
#define GN_NORMAL 1u
#define GN_BITS 2u
#define GN_RANGE 3u
#define GN_BELOW 4u
#define GN_DECAYING 5u
#define GN_EXPONENTIAL 6u
#define GN_GAMMA 7u
#define GN_BETA 8u
#define GN_POISSON 9u
#define GN_BINOMIAL 10u
#define GN_PERMUTATION 12u
#define GN_STEPS 13u

#define GN_N GN_PARAM(GNI_P_RANDOM_N)
#define GN_OUT_BASE GN_PARAM(GNI_P_RANDOM_OUT_BASE)
#define GN_KEY uvec2(GN_PARAM(GNI_P_RANDOM_KEY), GN_PARAM(GNI_P_RANDOM_KEY + 1))

// The number of block b.
uvec2 gn_counter(uint b) {
    uint carry, low = uaddCarry(GN_PARAM(GNI_P_RANDOM_COUNTER), b, carry);
    return uvec2(low, GN_PARAM(GNI_P_RANDOM_COUNTER + 1) + carry);
}
