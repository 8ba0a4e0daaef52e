// >>integers
// Integer arithmetic as the ops define it, for every pass and for the loops over 64 bits.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/config.h"
#endif

// Integers wrap; dividing by zero gives 0. Division rounds down and the remainder has the divisor's sign.
#define GNI_DEFINE_SIGNED(S, T, UT, BITS)                                                          \
    GNI_INLINE T gni_iabs_##S(T a) { return (T)(a < 0 ? (UT)0 - (UT)a : (UT)a); }                  \
    GNI_INLINE T gni_isign_##S(T a) { return (T)((a > 0) - (a < 0)); }                             \
    GNI_INLINE T gni_irelu_##S(T a) { return a > 0 ? a : 0; }                                      \
    GNI_INLINE T gni_ifloor_div_##S(T a, T b) {                                                    \
        if (b == 0) return 0;                                                                      \
        if (b == -1) return (T)((UT)0 - (UT)a);                                                    \
        return (T)(a / b - (T)((a % b != 0) & ((a ^ b) < 0))); /* no branch that nothing foresees */ \
    }                                                                                              \
    GNI_INLINE T gni_imod_##S(T a, T b) {                                                          \
        if (b == 0 || b == -1) return 0;                                                           \
        const T r = (T)(a % b);                                                                    \
        return (T)(r + (b & -(T)((r != 0) & ((r ^ b) < 0))));                                      \
    }                                                                                              \
    GNI_INLINE T gni_ipow_##S(T a, T b) {                                                          \
        if (b < 0) return (T)(a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0);                 \
        UT r = 1, x = (UT)a;                                                                       \
        for (UT e = (UT)b; e != 0; e >>= 1, x *= x)                                                \
            if ((e & 1u) != 0) r *= x;                                                             \
        return (T)r;                                                                               \
    }                                                                                              \
    GNI_INLINE T gni_ishl_##S(T a, T b) { return b < 0 || b >= BITS ? 0 : (T)((UT)a << b); }       \
    GNI_INLINE T gni_ishr_##S(T a, T b) { return (T)(a >> (b < 0 || b >= BITS ? BITS - 1 : b)); }
GNI_DEFINE_SIGNED(i32, int32_t, uint32_t, 32)
GNI_DEFINE_SIGNED(i64, int64_t, uint64_t, 64)
#undef GNI_DEFINE_SIGNED

#define GNI_DEFINE_UNSIGNED(S, T, BITS)                                                            \
    GNI_INLINE T gni_iabs_##S(T a) { return a; }                                                   \
    GNI_INLINE T gni_isign_##S(T a) { return a != 0; }                                             \
    GNI_INLINE T gni_irelu_##S(T a) { return a; }                                                  \
    GNI_INLINE T gni_ifloor_div_##S(T a, T b) { return b == 0 ? 0 : a / b; }                       \
    GNI_INLINE T gni_imod_##S(T a, T b) { return b == 0 ? 0 : a % b; }                             \
    GNI_INLINE T gni_ipow_##S(T a, T b) {                                                          \
        T r = 1;                                                                                   \
        for (; b != 0; b >>= 1, a *= a)                                                            \
            if ((b & 1u) != 0) r *= a;                                                             \
        return r;                                                                                  \
    }                                                                                              \
    GNI_INLINE T gni_ishl_##S(T a, T b) { return b >= BITS ? 0 : a << b; }                         \
    GNI_INLINE T gni_ishr_##S(T a, T b) { return b >= BITS ? 0 : a >> b; }
GNI_DEFINE_UNSIGNED(u32, uint32_t, 32)
GNI_DEFINE_UNSIGNED(u64, uint64_t, 64)
#undef GNI_DEFINE_UNSIGNED
