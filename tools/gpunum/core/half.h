// >>half
// float16 and bfloat16 to and from float32, one value at a time, by integer code: round to nearest even, subnormals
// exact, infinities kept, NaN stays NaN. The vector forms are in the simd room.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/config.h"
#endif

static inline uint32_t gni_f32_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float gni_bits_f32(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float gni_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, em = (uint32_t)(h & 0x7fffu) << 13;
    // A subnormal's mantissa is put under the exponent of 2^-14 and that 2^-14 taken away again.
    if (em < 0x00800000u)
        em = gni_f32_bits(gni_bits_f32(em + 0x38800000u) - 6.103515625e-05f);
    else if (em >= 0x0f800000u)
        em |= 0x7f800000u;
    else
        em += 0x38000000u;
    return gni_bits_f32(em | sign);
}

static inline uint16_t gni_f32_to_f16(float x) {
    uint32_t u = gni_f32_bits(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu, r;
    if (a > 0x7f800000u)
        r = ((a >> 13) & 0x3ffu) | 0x7e00u;
    else if (a >= 0x47800000u)
        r = 0x7c00u;
    else if (a < 0x38800000u) // adding 0.5 lines the bits up with float16's subnormals and rounds
        r = gni_f32_bits(gni_bits_f32(a) + 0.5f) - 0x3f000000u;
    else
        r = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
    return (uint16_t)(r | sign);
}

static inline float gni_bf16_to_f32(uint16_t h) { return gni_bits_f32((uint32_t)h << 16); }

static inline uint16_t gni_f32_to_bf16(float x) {
    uint32_t u = gni_f32_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

// The float next to x that has an odd last bit where x is not a float: rounding it once more to fewer
// bits gives what rounding x would.
static inline float gni_round_odd(double x) {
    float f = (float)x;
    if ((double)f == x || x != x || fabs(x) >= 3.4028234663852886e38) return f;
    uint32_t u = gni_f32_bits(f);
    if (fabs((double)f) > fabs(x)) u--;
    return gni_bits_f32(u | 1u);
}
