// >>cpu_kernels
// Loops of the CPU backend, compiled per pass: one kernel per op and register domain, conversions, softmax pieces, random
// numbers. From outside: tables of softmax and random numbers; room `wide_kernels` has the one of all the rest.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../simd/vmath.h"
#include "../simd/fold_kernels.h"
#endif

// ---- vector functions that only ops need

#define gni_vinf GNI_FN(gni_ck_inf)
#define gni_vsign GNI_FN(gni_ck_sign)
#define gni_vtruth GNI_FN(gni_ck_truth)
#define gni_vrsqrt GNI_FN(gni_ck_rsqrt)
#define gni_vsilu GNI_FN(gni_ck_silu)

GNI_INLINE gni_vf gni_vinf(void) { return gni_vset((float)INFINITY); }
GNI_INLINE gni_vf gni_vsign(gni_vf a) {
    gni_vf zero = gni_vset(0.0f), one = gni_vset(1.0f);
    gni_vf r = gni_ksel(gni_kgt(a, zero), one, gni_ksel(gni_klt(a, zero), -one, zero));
    return gni_ksel(gni_knan(a), a, r);
}
GNI_INLINE gni_vi gni_vtruth(gni_vf a) { return gni_vne(a, gni_vset(0.0f)); }
GNI_INLINE gni_vf gni_vrsqrt(gni_vf a) { return gni_vset(1.0f) / gni_vsqrt(a); }
// a * sigmoid(a); far down the product stays normal for longer than the sigmoid does.
GNI_INLINE gni_vf gni_vsilu(gni_vf a) {
    gni_vf y = a * gni_vsigmoid(a);
    gni_vmask below = gni_klt(a, gni_vset(-80.0f));
    if (!gni_kany(below)) return y;
    gni_vf b = gni_vmaxc(a, gni_vset(-300.0f)), h = gni_vexp(b * gni_vset(0.5f));
    return gni_ksel(below, b * h * h, y);
}
// ---- kernels

#define GNI_KERNEL(name)                                                                           \
    static void GNI_FN(name)(void *dst, const void *pa, const void *pb, const void *pc, int n)

// float32 operands a, b, c; the result is stored by PUT.
#define GNI_PUT_FLOAT(x) gni_vstore((float *)dst + i, (x))
#define GNI_PUT_TRUTH(x) gni_vstorei((int32_t *)dst + i, gni_vmask01(x))
#define GNI_FLOAT_1(name, PUT, F)                                                                  \
    GNI_KERNEL(name) {                                                                             \
        GNI_UNUSED(pb);                                                                            \
        GNI_UNUSED(pc);                                                                            \
        for (int i = 0; i < n; i += GNI_VW) {                                                      \
            gni_vf a = gni_vload((const float *)pa + i);                                           \
            PUT(F);                                                                                \
        }                                                                                          \
    }
#define GNI_FLOAT_2(name, PUT, F)                                                                  \
    GNI_KERNEL(name) {                                                                             \
        GNI_UNUSED(pc);                                                                            \
        for (int i = 0; i < n; i += GNI_VW) {                                                      \
            gni_vf a = gni_vload((const float *)pa + i);                                           \
            gni_vf b = gni_vload((const float *)pb + i);                                           \
            PUT(F);                                                                                \
        }                                                                                          \
    }
// In 128 bits of x86 and of WebAssembly rare functions stay a loop of doubles, which is little text.
#if defined(GNI_PASS_BASE) && (defined(GNI_X86) || defined(GNI_WASM))
#define GNI_RARE_FLOATS(X)
#else
#define GNI_RARE_FLOATS(X) GNI_UNARY_RARE(X)
#endif
#define GN_X(fn, NAME, F, D, gF, da) GNI_FLOAT_1(gni_kf_##NAME, GNI_PUT_FLOAT, F)
GNI_UNARY_FLOAT(GN_X)
GNI_RARE_FLOATS(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da) GNI_FLOAT_1(gni_kf_##NAME, GNI_PUT_FLOAT, F)
GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) GNI_FLOAT_1(gni_kf_##NAME, GNI_PUT_TRUTH, F)
GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) GNI_FLOAT_2(gni_kf_##NAME, GNI_PUT_FLOAT, F)
GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(NAME, F, gF) GNI_FLOAT_2(gni_kf_##NAME, GNI_PUT_FLOAT, F)
GNI_BINARY_PARTS(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) GNI_FLOAT_2(gni_kf_##NAME, GNI_PUT_FLOAT, F)
GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) GNI_FLOAT_2(gni_kf_##NAME, GNI_PUT_TRUTH, F)
GNI_COMPARE(GN_X)
#undef GN_X
GNI_FLOAT_1(gni_kf_TO_BOOL, GNI_PUT_TRUTH, gni_vtruth(a))

// Integer operands, 16 at a time in loops of fixed length, which compilers turn into vectors. gcc is told that a result lies
// just where an operand does or apart from it (a copy it would make by halves of a vector, and then wait for both); others
// get a copy.
#if defined(__GNUC__) && !defined(__clang__)
#define GNI_SIXTEEN(x, from) const T *const x = (from)
#else
#define GNI_SIXTEEN(x, from) T x[16]; memcpy(x, (from), sizeof x)
#endif
#define GNI_INT_1(name, TT, UU, I)                                                                 \
    GNI_KERNEL(name) {                                                                             \
        typedef TT T;                                                                              \
        typedef UU UT;                                                                             \
        GNI_UNUSED(pb);                                                                            \
        GNI_UNUSED(pc);                                                                            \
        GNI_UNUSED((UT)0);                                                                         \
        for (int i = 0; i < n; i += 16) {                                                          \
            T *r = (T *)dst + i;                                                                   \
            GNI_SIXTEEN(x, (const T *)pa + i);                                                     \
            GNI_IN_PLACE                                                                           \
            for (int j = 0; j < 16; j++) {                                                         \
                const T a = x[j];                                                                  \
                r[j] = (T)(I);                                                                     \
            }                                                                                      \
        }                                                                                          \
    }
#define GNI_INT_2(name, TT, UU, I)                                                                 \
    GNI_KERNEL(name) {                                                                             \
        typedef TT T;                                                                              \
        typedef UU UT;                                                                             \
        GNI_UNUSED(pc);                                                                            \
        GNI_UNUSED((UT)0);                                                                         \
        for (int i = 0; i < n; i += 16) {                                                          \
            T *r = (T *)dst + i;                                                                   \
            GNI_SIXTEEN(x, (const T *)pa + i);                                                     \
            GNI_SIXTEEN(y, (const T *)pb + i);                                                     \
            GNI_IN_PLACE                                                                           \
            for (int j = 0; j < 16; j++) {                                                         \
                const T a = x[j], b = y[j];                                                        \
                r[j] = (T)(I);                                                                     \
            }                                                                                      \
        }                                                                                          \
    }
#define GNI_INT_TABLES                                                                             \
    GNI_UNARY_ANY(GNI_X1)                                                                          \
    GNI_UNARY_BOOL(GNI_X1B) GNI_BINARY_RING(GNI_X2) GNI_BINARY_POWER(GNI_X2) GNI_BINARY_BOUND(GNI_X2) \
    GNI_COMPARE(GNI_X2B) GNI_BINARY_INT(GNI_X2I)

#define GNI_T(name) name##_i32
#define GNI_X1(fn, NAME, F, D, I, gF, gI, da) GNI_INT_1(gni_ki_##NAME, int32_t, uint32_t, I)
#define GNI_X1B(fn, NAME, F, D, I, gF, gI) GNI_INT_1(gni_ki_##NAME, int32_t, uint32_t, I)
#define GNI_X2(fn, NAME, F, D, I, gF, gI, da, db) GNI_INT_2(gni_ki_##NAME, int32_t, uint32_t, I)
#define GNI_X2B(fn, NAME, F, D, I, gF, gI) GNI_INT_2(gni_ki_##NAME, int32_t, uint32_t, I)
#define GNI_X2I(fn, NAME, I, gI) GNI_INT_2(gni_ki_##NAME, int32_t, uint32_t, I)
GNI_INT_TABLES
#if GNI_VW >= 8
// Integers of 32 bits by float64, which holds them; their quotients, cut off, are those of integers. -1, or the unsigned 1,
// goes apart as `odd`: its quotients need not fit. Divisors that are all one number by its inverse, which takes a and a half:
// that is further from whole quotients than rounding reaches.
#define gni_hi GNI_FN(gni_ck_hi)
#define gni_hu GNI_FN(gni_ck_hu)
#define gni_hd GNI_FN(gni_ck_hd)
typedef int32_t gni_hi __attribute__((vector_size(GNI_VW * 2)));
typedef uint32_t gni_hu __attribute__((vector_size(GNI_VW * 2)));
typedef double gni_hd __attribute__((vector_size(GNI_VW * 4)));
#if defined(GNI_PASS_AVX512)
#define GNI_HALF_FLOOR(x) (gni_hd)_mm512_roundscale_pd((__m512d)(x), _MM_FROUND_TO_NEG_INF)
#else
#define GNI_HALF_FLOOR(x) (gni_hd)_mm256_floor_pd((__m256d)(x))
#endif
#define GNI_HALF_D(x) __builtin_convertvector(x, gni_hd)
#define GNI_HALF_UD(x) (GNI_HALF_D((gni_hi)((x) ^ 0x80000000u)) + 2147483648.0) // gcc's takes several times as long
#define GNI_DIVIDE(D, V, T, odd, TO_D, LESS, SELF) \
static void GNI_FN(gni_##D##_divide)(void *dst, const void *pa, const void *pb, int n, uint32_t rest) { \
  const T first = *(const T *)pb; \
  V a, b; \
  if (first != 0 && first != (odd) && memcmp(pb, (const T *)pb + 1, (size_t)(n - 1) * 4) == 0) { \
    const double inverse = 1.0 / (double)first, half = inverse < 0.0 ? -0.5 : 0.5; \
    const uint32_t by = rest != 0 ? (uint32_t)first : ~0u; \
    for (int i = 0; i < n; i += GNI_VW / 2) { \
      memcpy(&a, (const T *)pa + i, sizeof a); \
      const gni_hd x = GNI_HALF_FLOOR((TO_D(a) + half) * inverse); \
      const gni_hu q = (gni_hu)__builtin_convertvector(x, gni_hi); \
      const gni_hu y = ((gni_hu)a & rest) - q * by; \
      memcpy((T *)dst + i, &y, sizeof y); \
    } \
    return; \
  } \
  for (int i = 0; i < n; i += GNI_VW / 2) { \
    memcpy(&a, (const T *)pa + i, sizeof a); \
    memcpy(&b, (const T *)pb + i, sizeof b); \
    const gni_hi none = b == 0, same = b == (odd), plain = ~(none | same); \
    const V by = (b & (V)plain) | (V)(~plain & 2); \
    const gni_hi q = __builtin_convertvector(TO_D(a) / TO_D(by), gni_hi); \
    const gni_hu r = (gni_hu)a - (gni_hu)q * (gni_hu)by; \
    const gni_hu less = (gni_hu)(LESS), left = r + ((gni_hu)by & less); \
    const gni_hu whole = ((gni_hu)plain & ((gni_hu)q + less)) | ((gni_hu)same & (SELF)); \
    const gni_hu y = ((gni_hu)plain & left & rest) | (whole & ~rest); \
    memcpy((T *)dst + i, &y, sizeof y); \
  } \
} \
GNI_KERNEL(gni_##D##_FLOOR_DIV) { GNI_FN(gni_##D##_divide)(dst, pa, pb, (GNI_UNUSED(pc), n), 0); } \
GNI_KERNEL(gni_##D##_MOD) { GNI_FN(gni_##D##_divide)(dst, pa, pb, (GNI_UNUSED(pc), n), ~0u); }
GNI_DIVIDE(ki, gni_hi, int32_t, -1, GNI_HALF_D, (r != 0) & ((gni_hi)(a ^ by) < 0), 0 - (gni_hu)a)
GNI_DIVIDE(ku, gni_hu, uint32_t, 1u, GNI_HALF_UD, r ^ r, a)
#undef GNI_DIVIDE
#undef GNI_HALF_D
#undef GNI_HALF_UD
#undef GNI_HALF_FLOOR
#undef gni_hi
#undef gni_hu
#undef gni_hd
#else
GNI_BINARY_QUOTIENT(GNI_X2)
#endif
#undef GNI_T
#undef GNI_X1
#undef GNI_X1B
#undef GNI_X2
#undef GNI_X2B
#undef GNI_X2I
#define GNI_T(name) name##_u32
#define GNI_X1(fn, NAME, F, D, I, gF, gI, da) GNI_INT_1(gni_ku_##NAME, uint32_t, uint32_t, I)
#define GNI_X1B(fn, NAME, F, D, I, gF, gI) GNI_INT_1(gni_ku_##NAME, uint32_t, uint32_t, I)
#define GNI_X2(fn, NAME, F, D, I, gF, gI, da, db) GNI_INT_2(gni_ku_##NAME, uint32_t, uint32_t, I)
#define GNI_X2B(fn, NAME, F, D, I, gF, gI) GNI_INT_2(gni_ku_##NAME, uint32_t, uint32_t, I)
#define GNI_X2I(fn, NAME, I, gI) GNI_INT_2(gni_ku_##NAME, uint32_t, uint32_t, I)
GNI_INT_TABLES
#if GNI_VW < 8
GNI_BINARY_QUOTIENT(GNI_X2)
#endif
#undef GNI_T
#undef GNI_X1
#undef GNI_X1B
#undef GNI_X2
#undef GNI_X2B
#undef GNI_X2I
#undef GNI_INT_TABLES

// Ops without a row in the tables.
#define GNI_VECTOR_1(name, load, TP, store, TR, F)                                                 \
    GNI_KERNEL(name) {                                                                             \
        GNI_UNUSED(pb);                                                                            \
        GNI_UNUSED(pc);                                                                            \
        for (int i = 0; i < n; i += GNI_VW) store((TR *)dst + i, F(load((const TP *)pa + i)));     \
    }
#define gni_vround_f16 GNI_FN(gni_ck_round_f16)
#define gni_vround_bf16 GNI_FN(gni_ck_round_bf16)
#define gni_vwrap_i8 GNI_FN(gni_ck_wrap_i8)
GNI_INLINE gni_vf gni_vround_f16(gni_vf x) {
    uint16_t h[GNI_VW];
    gni_vstore_f16(h, x);
    return gni_vload_f16(h);
}
GNI_INLINE gni_vf gni_vround_bf16(gni_vf x) { return gni_vbf16_float(gni_vfloat_bf16(x)); }
GNI_INLINE gni_vi gni_vwrap_i8(gni_vi x) { return gni_vu_i(gni_vi_u(x) << 24) >> 24; }
#define gni_vodd GNI_FN(gni_ck_odd)
#define gni_vodd_i GNI_FN(gni_ck_odd_i)
#define gni_vodd_u GNI_FN(gni_ck_odd_u)
// Of integers that float32 does not hold, the last of the 24 bits says whether anything was cut off.
GNI_INLINE gni_vi gni_vodd(gni_vi x, gni_vu size) {
    gni_vi cut = gni_vseti(255), none = gni_vseti(0);
    gni_vmask fits = gni_kor(gni_kieq(gni_vu_i(size >> 24), none), gni_kieq(x & cut, none));
    return gni_kseli(fits, x, (x & ~cut) | gni_vseti(256));
}
GNI_INLINE gni_vf gni_vodd_i(gni_vi x) { return gni_itov(gni_vodd(x, gni_vi_u(x ^ (x >> 31)))); }
GNI_INLINE gni_vf gni_vodd_u(gni_vu x) { return gni_utov(gni_vi_u(gni_vodd(gni_vu_i(x), x))); }
#define GNI_WRAP_U8(x) ((x)&255)
#define GNI_SAME(x) (x)
GNI_VECTOR_1(gni_kx_I_TO_F, gni_vloadi, int32_t, gni_vstore, float, gni_itov)
GNI_VECTOR_1(gni_kx_U_TO_F, gni_vloadu, uint32_t, gni_vstore, float, gni_utov)
GNI_VECTOR_1(gni_kx_F_TO_I, gni_vload, float, gni_vstorei, int32_t, gni_vtoi)
GNI_VECTOR_1(gni_kx_F_TO_U, gni_vload, float, gni_vstoreu, uint32_t, gni_vtou)
GNI_VECTOR_1(gni_kx_ROUND_F16, gni_vload, float, gni_vstore, float, gni_vround_f16)
GNI_VECTOR_1(gni_kx_ROUND_BF16, gni_vload, float, gni_vstore, float, gni_vround_bf16)
GNI_VECTOR_1(gni_kx_WRAP_U8, gni_vloadi, int32_t, gni_vstorei, int32_t, GNI_WRAP_U8)
GNI_VECTOR_1(gni_kx_WRAP_I8, gni_vloadi, int32_t, gni_vstorei, int32_t, gni_vwrap_i8)
GNI_VECTOR_1(gni_kx_I_TO_ODD, gni_vloadi, int32_t, gni_vstore, float, gni_vodd_i)
GNI_VECTOR_1(gni_kx_U_TO_ODD, gni_vloadu, uint32_t, gni_vstore, float, gni_vodd_u)
GNI_VECTOR_1(gni_kx_COPY, gni_vloadi, int32_t, gni_vstorei, int32_t, GNI_SAME)
// Between the first integers of b and of c, -2^24 to 0 and 0 to 2^24; NaN gives 0.
GNI_KERNEL(gni_kx_CLAMPED) {
    const gni_vf low = gni_vset((float)*(const int32_t *)pb), high = gni_vset((float)*(const int32_t *)pc);
    for (int i = 0; i < n; i += GNI_VW) {
        const gni_vf x = gni_vload((const float *)pa + i), up = gni_ksel(gni_klt(x, low), low, x);
        const gni_vf y = gni_ksel(gni_kgt(up, high), high, up);
        gni_vstorei((int32_t *)dst + i, gni_vtoi_fast(gni_ksel(gni_knan(x), gni_vset(0.0f), y)));
    }
}
GNI_INT_1(gni_ki_TO_BOOL, int32_t, uint32_t, a != 0)
GNI_INT_1(gni_kx_WRAP_U16, int32_t, uint32_t, a & 65535)
GNI_INT_1(gni_kx_WRAP_I16, int32_t, uint32_t, ((a & 65535) ^ 32768) - 32768)
#undef GNI_VECTOR_1
#undef GNI_WRAP_U8
#undef GNI_SAME

GNI_KERNEL(gni_kx_WHERE) {
    for (int i = 0; i < n; i += GNI_VW) {
        gni_vmask no = gni_kieq(gni_vloadi((const int32_t *)pa + i), gni_vseti(0));
        gni_vi b = gni_vloadi((const int32_t *)pb + i), c = gni_vloadi((const int32_t *)pc + i);
        gni_vstorei((int32_t *)dst + i, gni_kseli(no, c, b));
    }
}
GNI_KERNEL(gni_kf_FMA) {
    for (int i = 0; i < n; i += GNI_VW) {
        gni_vf a = gni_vload((const float *)pa + i), b = gni_vload((const float *)pb + i);
        gni_vf c = gni_vload((const float *)pc + i);
#if GNI_V_FUSED
        gni_vstore((float *)dst + i, gni_vfma(a, b, c));
#else
        // The product is exact in float64, and so is rounding the sum twice but for rare ties.
        float x[GNI_VW], y[GNI_VW], z[GNI_VW];
        gni_vstore(x, a);
        gni_vstore(y, b);
        gni_vstore(z, c);
        for (int j = 0; j < GNI_VW; j++) x[j] = (float)((double)x[j] * (double)y[j] + (double)z[j]);
        memcpy((float *)dst + i, x, sizeof x);
#endif
    }
}
GNI_KERNEL(gni_ki_FMA) {
    for (int i = 0; i < n; i += GNI_VW) {
        gni_vu a = gni_vloadu((const uint32_t *)pa + i), b = gni_vloadu((const uint32_t *)pb + i);
        gni_vstoreu((uint32_t *)dst + i, a * b + gni_vloadu((const uint32_t *)pc + i));
    }
}

static const gni_kernel GNI_FN(gni_kernels_narrow)[GNI_OP_COUNT * 3] = {
#define GN_X(fn, NAME, F, D, gF, da) NULL, NULL, NULL,
    GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da)                                                        \
    GNI_FN(gni_kf_##NAME), GNI_FN(gni_ki_##NAME), GNI_FN(gni_ku_##NAME),
        GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    GNI_FN(gni_kf_##NAME), GNI_FN(gni_ki_##NAME), GNI_FN(gni_ku_##NAME),
            GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) GNI_FN(gni_kf_##NAME), NULL, NULL,
                GNI_BINARY_DIV(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) NULL, NULL, NULL,
                    GNI_BINARY_ANGLE(GN_X)
#undef GN_X
#define GN_X(NAME, F, gF) NULL, NULL, NULL,
                    GNI_BINARY_PARTS(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db)                                                    \
    GNI_FN(gni_kf_##NAME), GNI_FN(gni_ki_##NAME), GNI_FN(gni_ku_##NAME),
                        GNI_BINARY_RING(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) NULL, NULL, NULL,
                            GNI_BINARY_DIVIDE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db)                                                    \
    GNI_FN(gni_kf_##NAME), GNI_FN(gni_ki_##NAME), GNI_FN(gni_ku_##NAME),
                                GNI_BINARY_BOUND(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    GNI_FN(gni_kf_##NAME), GNI_FN(gni_ki_##NAME), GNI_FN(gni_ku_##NAME),
                        GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI) NULL, GNI_FN(gni_ki_##NAME), GNI_FN(gni_ku_##NAME),
                            GNI_BINARY_INT(GN_X)
#undef GN_X
#define GNI_SAME(name) GNI_FN(name), GNI_FN(name), GNI_FN(name)
                                GNI_SAME(gni_kx_WHERE),
    GNI_FN(gni_kf_FMA),
    GNI_FN(gni_ki_FMA),
    GNI_FN(gni_ki_FMA),
    GNI_SAME(gni_kx_COPY), // CAST
    GNI_SAME(gni_kx_COPY), // CONST
    GNI_SAME(gni_kx_I_TO_F),
    GNI_SAME(gni_kx_U_TO_F),
    GNI_FN(gni_kx_F_TO_I),
    GNI_FN(gni_kx_CLAMPED),
    NULL,
    GNI_SAME(gni_kx_F_TO_U),
    GNI_FN(gni_kf_TO_BOOL),
    GNI_FN(gni_ki_TO_BOOL),
    GNI_FN(gni_ki_TO_BOOL),
    GNI_SAME(gni_kx_ROUND_F16),
    GNI_SAME(gni_kx_ROUND_BF16),
    GNI_SAME(gni_kx_COPY), // ROUND_F32
    GNI_SAME(gni_kx_WRAP_U8),
    GNI_SAME(gni_kx_WRAP_I8),
    GNI_SAME(gni_kx_COPY), // WRAP_U32
    GNI_SAME(gni_kx_COPY), // WRAP_I32
    NULL,                  // TO_ODD
    GNI_FN(gni_kx_I_TO_ODD),
    GNI_FN(gni_kx_U_TO_ODD),
    GNI_SAME(gni_kx_WRAP_U16),
    GNI_SAME(gni_kx_WRAP_I16),
#undef GNI_SAME
};

// pow, and ** .5 by itself, which takes a tenth of the time.
GNI_KERNEL(gni_kf_power) {
    int i = 0;
    while (i < n && !gni_kany(gni_kne(gni_vload((const float *)pb + i), gni_vset(0.5f)))) i += GNI_VW;
    if (i < n) {
        GNI_FN(gni_kf_POW)(dst, pa, pb, pc, n);
        return;
    }
    for (i = 0; i < n; i += GNI_VW) gni_vstore((float *)dst + i, gni_vpow_half(gni_vload((const float *)pa + i)));
}

// Those that only programs with such an op hold, see gni_math.
static gni_kernel GNI_FN(gni_math_kernel)(uint32_t code) {
    if (code == GNI_OP_POW * 3u) return GNI_FN(gni_kf_power);
    switch (code) {
#define GN_X(fn, NAME, F, D, gF, da) case GNI_OP_##NAME * 3u: return GNI_FN(gni_kf_##NAME);
        GNI_UNARY_FLOAT(GN_X)
        GNI_RARE_FLOATS(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) case GNI_OP_##NAME * 3u: return GNI_FN(gni_kf_##NAME);
        GNI_BINARY_ANGLE(GN_X)
#undef GN_X
#define GN_X(NAME, F, gF) case GNI_OP_##NAME * 3u: return GNI_FN(gni_kf_##NAME);
        GNI_BINARY_PARTS(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db)                                                    \
    case GNI_OP_##NAME * 3u: return GNI_FN(gni_kf_##NAME);                                         \
    case GNI_OP_##NAME * 3u + 1u: return GNI_FN(gni_ki_##NAME);                                    \
    case GNI_OP_##NAME * 3u + 2u: return GNI_FN(gni_ku_##NAME);
        GNI_BINARY_DIVIDE(GN_X)
#undef GN_X
    default: return NULL;
    }
}
GNI_TABLE gni_math_isa GNI_FN(gni_math_table) = {GNI_FN(gni_math_kernel)};

// ---- memory to registers and back

#define GNI_LOAD_HALF(name, load)                                                                  \
    static void GNI_FN(name)(void *dst, const void *src, int64_t n) {                              \
        float *d = (float *)dst;                                                                   \
        const uint16_t *s = (const uint16_t *)src;                                                 \
        int64_t i = 0;                                                                             \
        for (; i + GNI_VW <= n; i += GNI_VW) gni_vstore(d + i, load(s + i));                       \
        if (i == n) return;                                                                        \
        uint16_t h[GNI_VW] = {0};                                                                  \
        float f[GNI_VW];                                                                           \
        memcpy(h, s + i, sizeof(uint16_t) * (size_t)(n - i));                                      \
        gni_vstore(f, load(h));                                                                    \
        memcpy(d + i, f, sizeof(float) * (size_t)(n - i));                                         \
    }
#define GNI_STORE_HALF(name, store)                                                                \
    static void GNI_FN(name)(void *dst, const void *src, int64_t n) {                              \
        uint16_t *d = (uint16_t *)dst;                                                             \
        const float *s = (const float *)src;                                                       \
        int64_t i = 0;                                                                             \
        for (; i + GNI_VW <= n; i += GNI_VW) store(d + i, gni_vload(s + i));                       \
        if (i == n) return;                                                                        \
        uint16_t h[GNI_VW];                                                                        \
        store(h, gni_vloadn(s + i, (int)(n - i)));                                                 \
        memcpy(d + i, h, sizeof(uint16_t) * (size_t)(n - i));                                      \
    }
// 8-bit items, GNI_VW at a time.
#define gni_vb GNI_FN(gni_vecb)
#define gni_vload_u8 GNI_FN(gni_ck_load_u8)
#define gni_vload_i8 GNI_FN(gni_ck_load_i8)
#define gni_vstore_8 GNI_FN(gni_ck_store_8)
#if GNI_VW > 1
typedef uint8_t gni_vb __attribute__((vector_size(GNI_VW)));
#endif
GNI_INLINE gni_vi gni_vload_u8(const uint8_t *p) {
#if defined(GNI_PASS_AVX512)
    return (gni_vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif defined(GNI_PASS_AVX2)
    return (gni_vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
#elif GNI_V_SSE2
    int32_t t;
    memcpy(&t, p, sizeof t);
    __m128i zero = _mm_setzero_si128(), x = _mm_cvtsi32_si128(t);
    return (gni_vi)_mm_unpacklo_epi16(_mm_unpacklo_epi8(x, zero), zero);
#elif GNI_V_NEON
    uint32_t t;
    memcpy(&t, p, sizeof t);
    return (gni_vi)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(t))));
#elif GNI_VW == 1
    return *p;
#else
    gni_vb t;
    memcpy(&t, p, sizeof t);
    return __builtin_convertvector(t, gni_vi);
#endif
}
GNI_INLINE gni_vi gni_vload_i8(const uint8_t *p) { return gni_vwrap_i8(gni_vload_u8(p)); }
// The low 8 bits of each lane.
GNI_INLINE void gni_vstore_8(uint8_t *p, gni_vi x) {
#if defined(GNI_PASS_AVX512)
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8((__m512i)x));
#elif defined(GNI_PASS_AVX2) || GNI_V_SSE2
    gni_vi y = x & 255;
#if defined(GNI_PASS_AVX2)
    __m128i t = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)y),
                                _mm256_extracti128_si256((__m256i)y, 1));
#else
    __m128i t = _mm_packs_epi32((__m128i)y, (__m128i)y);
#endif
    t = _mm_packus_epi16(t, t);
    memcpy(p, &t, GNI_VW);
#elif GNI_V_NEON
    const uint16x4_t half = vmovn_u32((uint32x4_t)x);
    const uint8x8_t t = vmovn_u16(vcombine_u16(half, half));
    memcpy(p, &t, GNI_VW);
#elif GNI_VW == 1
    *p = (uint8_t)(x & 255);
#else
    gni_vb t = __builtin_convertvector(x & 255, gni_vb);
    memcpy(p, &t, sizeof t);
#endif
}
#define GNI_LOAD_8(name, T, load)                                                                  \
    static void GNI_FN(name)(void *dst, const void *src, int64_t n) {                              \
        int32_t *d = (int32_t *)dst;                                                               \
        const uint8_t *s = (const uint8_t *)src;                                                   \
        int64_t i = 0;                                                                             \
        for (; i + GNI_VW <= n; i += GNI_VW) gni_vstorei(d + i, load(s + i));                      \
        for (; i < n; i++) d[i] = (T)s[i];                                                         \
    }
#if defined(GNI_PASS_AVX2)
// 32 of them: E makes of vectors x what packing then saturates, END what is stored of it.
#define GNI_STORE_32(E, PACK, END)                                                                 \
    for (; i + 32 <= n; i += 32) {                                                                 \
        __m256i t[4];                                                                              \
        GNI_FT_UNROLL                                                                              \
        for (int k = 0; k < 4; k++) {                                                              \
            const gni_vi x = gni_vloadi(s + i + 8 * k);                                            \
            t[k] = (__m256i)(E);                                                                   \
        }                                                                                          \
        t[0] = PACK(_mm256_packs_epi32(t[0], t[1]), _mm256_packs_epi32(t[2], t[3]));               \
        t[0] = END(_mm256_permutevar8x32_epi32(t[0], _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));  \
        memcpy(d + i, t, 32);                                                                      \
    }
#define GNI_STORE_LOW GNI_STORE_32(x & 255, _mm256_packus_epi16, )
#define GNI_ONE_UNLESS(v) _mm256_andnot_si256(v, _mm256_set1_epi8(1))
#define GNI_STORE_TRUTH GNI_STORE_32(gni_kieq(x, gni_vseti(0)), _mm256_packs_epi16, GNI_ONE_UNLESS)
#else
#define GNI_STORE_LOW
#define GNI_STORE_TRUTH
#endif
#define GNI_STORE_8(name, BY_32, V, E)                                                             \
    static void GNI_FN(name)(void *dst, const void *src, int64_t n) {                              \
        uint8_t *d = (uint8_t *)dst;                                                               \
        const int32_t *s = (const int32_t *)src;                                                   \
        int64_t i = 0;                                                                             \
        BY_32                                                                                      \
        for (; i + GNI_VW <= n; i += GNI_VW) {                                                     \
            gni_vi x = gni_vloadi(s + i);                                                          \
            gni_vstore_8(d + i, V);                                                                \
        }                                                                                          \
        for (; i < n; i++) d[i] = (uint8_t)E(s[i]);                                                \
    }
// 16-bit integers: results in loops of fixed length, operands by vectors, which gcc does not make of loops here.
#define GNI_MOVE_16(name, TD, TS, SOME)                                                            \
    static void GNI_FN(name)(void *dst, const void *src, int64_t n) {                              \
        TD *GNI_RESTRICT d = (TD *)dst;                                                            \
        const TS *GNI_RESTRICT s = (const TS *)src;                                                \
        int64_t i = 0;                                                                             \
        SOME                                                                                       \
        for (; i < n; i++) d[i] = (TD)s[i];                                                        \
    }
#if GNI_V_NEON
#define GNI_WIDEN(V, T)                                                                            \
    for (; i + GNI_VW <= n; i += GNI_VW) gni_vstorei(d + i, (gni_vi)vmovl_##T(vld1_##T(s + i)));
#elif GNI_VW > 1
#define gni_vw GNI_FN(gni_vecw)
#define gni_vwu GNI_FN(gni_vecwu)
typedef int16_t gni_vw __attribute__((vector_size(2 * GNI_VW)));
typedef uint16_t gni_vwu __attribute__((vector_size(2 * GNI_VW)));
#define GNI_WIDEN(V, T)                                                                            \
    for (V x; i + GNI_VW <= n; i += GNI_VW) {                                                      \
        memcpy(&x, s + i, sizeof x);                                                               \
        gni_vstorei(d + i, __builtin_convertvector(x, gni_vi));                                    \
    }
#else
#define GNI_WIDEN(V, T)
#endif
#define GNI_CUT                                                                                    \
    for (uint16_t r[16]; i + 16 <= n; i += 16) {                                                   \
        for (int j = 0; j < 16; j++) r[j] = (uint16_t)s[i + j];                                    \
        memcpy(d + i, r, sizeof r);                                                                \
    }
GNI_MOVE_16(gni_load_i16, int32_t, int16_t, GNI_WIDEN(gni_vw, s16))
GNI_MOVE_16(gni_load_u16, int32_t, uint16_t, GNI_WIDEN(gni_vwu, u16))
GNI_MOVE_16(gni_store_16, uint16_t, uint32_t, GNI_CUT)
#undef GNI_WIDEN
#undef GNI_CUT
#undef gni_vw
#undef gni_vwu
#undef GNI_MOVE_16
#define GNI_NONZERO(x) ((x) != 0)
#define GNI_LOW(x) ((x)&255)
GNI_LOAD_HALF(gni_load_f16, gni_vload_f16)
GNI_LOAD_HALF(gni_load_bf16, gni_vload_bf16)
GNI_STORE_HALF(gni_store_f16, gni_vstore_f16)
GNI_STORE_HALF(gni_store_bf16, gni_vstore_bf16)
GNI_LOAD_8(gni_load_u8, uint8_t, gni_vload_u8)
GNI_LOAD_8(gni_load_i8, int8_t, gni_vload_i8)
GNI_STORE_8(gni_store_u8, GNI_STORE_LOW, x, GNI_LOW)
GNI_STORE_8(gni_store_bool, GNI_STORE_TRUTH, gni_kmask(gni_knot(gni_kieq(x, gni_vseti(0)))) & 1, GNI_NONZERO)
#undef GNI_LOAD_HALF
#undef GNI_STORE_HALF
#undef GNI_LOAD_8
#undef GNI_STORE_8
#undef GNI_STORE_32
#undef GNI_STORE_LOW
#undef GNI_STORE_TRUTH
#undef GNI_ONE_UNLESS
#undef GNI_NONZERO
#undef GNI_LOW

// By dtype: F32, F16, BF16, F64, I32, I64, U8, I8, U32, BOOL, C64, C128, I16, U16, U64.
static const gni_convert_fn GNI_FN(gni_load_table)[GN_DTYPE_COUNT] = {NULL,
                                                                      GNI_FN(gni_load_f16),
                                                                      GNI_FN(gni_load_bf16),
                                                                      NULL,
                                                                      NULL,
                                                                      NULL,
                                                                      GNI_FN(gni_load_u8),
                                                                      GNI_FN(gni_load_i8),
                                                                      NULL,
                                                                      GNI_FN(gni_load_u8),
                                                                      NULL,
                                                                      NULL,
                                                                      GNI_FN(gni_load_i16),
                                                                      GNI_FN(gni_load_u16),
                                                                      NULL};
static const gni_convert_fn GNI_FN(gni_store_table)[GN_DTYPE_COUNT] = {NULL,
                                                                       GNI_FN(gni_store_f16),
                                                                       GNI_FN(gni_store_bf16),
                                                                       NULL,
                                                                       NULL,
                                                                       NULL,
                                                                       GNI_FN(gni_store_u8),
                                                                       GNI_FN(gni_store_u8),
                                                                       NULL,
                                                                       GNI_FN(gni_store_bool),
                                                                       NULL,
                                                                       NULL,
                                                                       GNI_FN(gni_store_16),
                                                                       GNI_FN(gni_store_16),
                                                                       NULL};

// Registers to memory past the caches, for results that no cache could hold. Both sides are aligned to
// 64 bytes; without a destination it waits until all has arrived.
static void GNI_FN(gni_stream)(void *dst, const void *src, int64_t bytes, const char *next) {
    GNI_UNUSED(next);
#if defined(GNI_PASS_AVX512) || defined(GNI_PASS_AVX2) || GNI_V_SSE2
    char *d = (char *)dst;
    const char *s = (const char *)src;
    if (d == NULL) _mm_sfence();
    for (int64_t i = 0; i < bytes; i += 64) {
        GNI_FT_PREFETCH(next + i);
#if defined(GNI_PASS_AVX512)
        _mm512_stream_si512((__m512i *)(void *)(d + i), _mm512_loadu_si512((const void *)(s + i)));
#elif defined(GNI_PASS_AVX2)
        _mm256_stream_si256((__m256i *)(void *)(d + i),
                            _mm256_loadu_si256((const __m256i *)(const void *)(s + i)));
        _mm256_stream_si256((__m256i *)(void *)(d + i + 32),
                            _mm256_loadu_si256((const __m256i *)(const void *)(s + i + 32)));
#else
        for (int k = 0; k < 64; k += 16)
            _mm_stream_si128((__m128i *)(void *)(d + i + k),
                             _mm_loadu_si128((const __m128i *)(const void *)(s + i + k)));
#endif
    }
#else
    if (dst != NULL) memcpy(dst, src, (size_t)bytes);
#endif
}

// ---- softmax

static gni_softmax_part GNI_FN(gni_softmax_stats)(void *dst, const void *src, int64_t n) {
    const float *x = (const float *)src;
    float *y = (float *)dst, t[GNI_VW];
    gni_softmax_part part;
    float most = GNI_FN(gni_max_block)(x, n);
    part.most = (double)most;
    part.sum = 0.0;
    if (!(most < (float)INFINITY)) part.sum = GNI_NAN; // +Inf or NaN: the caller sees it in `most`
    if (!(most < (float)INFINITY) || most == -(float)INFINITY) {
        if (y != NULL) memset(y, 0, sizeof(float) * (size_t)n);
        return part;
    }
    gni_vf m = gni_vset(most), s0 = gni_vset(0.0f), s1 = s0;
    int64_t i = 0;
    for (; i + 2 * GNI_VW <= n; i += 2 * GNI_VW) {
        gni_vf e0 = gni_vexp_low(gni_vload(x + i) - m), e1 = gni_vexp_low(gni_vload(x + i + GNI_VW) - m);
        s0 += e0;
        s1 += e1;
        if (y == NULL) continue;
        gni_vstore(y + i, e0);
        gni_vstore(y + i + GNI_VW, e1);
    }
    for (; i < n; i += GNI_VW) {
        int64_t left = GNI_MIN(n - i, GNI_VW);
        for (int j = 0; j < GNI_VW; j++) t[j] = j < left ? x[i + j] : -(float)INFINITY;
        gni_vf e0 = gni_vexp_low(gni_vload(t) - m);
        s0 += e0;
        if (y != NULL) gni_vstoren(y + i, e0, (int)left);
    }
    gni_vstore(t, s0 + s1);
    for (int j = 0; j < GNI_VW; j++) part.sum += (double)t[j];
    return part;
}
#define GNI_SOFTMAX_EMIT(name, PARAMS, SETUP, F)                                                   \
    static void GNI_FN(name) PARAMS {                                                              \
        const float *x = (const float *)src;                                                       \
        float *y = (float *)dst;                                                                   \
        int64_t i = 0;                                                                             \
        SETUP;                                                                                     \
        for (; i + GNI_VW <= n; i += GNI_VW) {                                                     \
            gni_vf a = gni_vload(x + i);                                                           \
            gni_vstore(y + i, F);                                                                  \
        }                                                                                          \
        if (i < n) {                                                                               \
            gni_vf a = gni_vloadn(x + i, (int)(n - i));                                            \
            gni_vstoren(y + i, F, (int)(n - i));                                                   \
        }                                                                                          \
    }
GNI_SOFTMAX_EMIT(gni_softmax_scale, (void *dst, const void *src, int64_t n, double factor),
                 gni_vf f = gni_vset((float)factor), a *f)
GNI_SOFTMAX_EMIT(gni_softmax_emit,
                 (void *dst, const void *src, int64_t n, double most, double factor),
                 gni_vf m = gni_vset((float)most);
                 gni_vf f = gni_vset((float)factor), gni_vexp_low(a - m) * f)
GNI_SOFTMAX_EMIT(gni_softmax_emit_log,
                 (void *dst, const void *src, int64_t n, double most, double low),
                 gni_vf m = gni_vset((float)most);
                 gni_vf f = gni_vset((float)low), (a - m) - f)
#undef GNI_SOFTMAX_EMIT
// Short rows side by side: x (n, rows), rows a multiple of 16. The result takes the place of x, or for
// logsumexp of its first two rows.
static void GNI_FN(gni_softmax_columns)(float *x, int64_t n, int64_t rows, gni_softmax_kind kind) {
    for (int64_t r = 0; r < rows; r += GNI_VW) {
        float *p = x + r;
        gni_vf m = gni_vload(p), s = gni_vset(0.0f), zero = s;
        for (int64_t i = 1; i < n; i++) m = gni_vmax(m, gni_vload(p + i * rows));
        if (kind != GNI_SOFTMAX) m = gni_ksel(gni_klt(gni_vabs(m), gni_vinf()), m, zero);
        for (int64_t i = 0; i < n; i++) {
            gni_vf e = gni_vexp(gni_vload(p + i * rows) - m);
            s += e;
            if (kind == GNI_SOFTMAX) gni_vstore(p + i * rows, e);
        }
        if (kind == GNI_SOFTMAX) {
            for (int64_t i = 0; i < n; i++) gni_vstore(p + i * rows, gni_vload(p + i * rows) / s);
            continue;
        }
        s = gni_vlog(s);
        if (kind == GNI_LOGSUMEXP) gni_vstore(p, m), gni_vstore(p + rows, s);
        for (int64_t i = 0; i < n && kind == GNI_LOG_SOFTMAX; i++)
            gni_vstore(p + i * rows, (gni_vload(p + i * rows) - m) - s);
    }
}
GNI_TABLE gni_softmax_fns GNI_FN(gni_softmax_table) = {
    GNI_FN(gni_softmax_stats), GNI_FN(gni_softmax_scale), GNI_FN(gni_softmax_emit),
    GNI_FN(gni_softmax_emit_log), GNI_FN(gni_softmax_columns)};

// ---- attention

static bool GNI_FN(gni_attend_fold)(float *s, int64_t step, int64_t rows, int64_t cols, float *most, float *sum,
                                    float *keep) {
    bool moved = false;
    for (int64_t c = 0; c < cols; c += GNI_VW) {
        float *p = s + c;
        const gni_vf before = gni_vload(most + c), one = gni_vset(1.0f), low = gni_vset(-(float)INFINITY);
        gni_vf m = before, n = low, total = gni_vset(0.0f);
        for (int64_t i = 0; i < rows; i += 2) {
            m = gni_vmax(m, gni_vload(p + i * step));
            n = gni_vmax(n, gni_vload(p + GNI_MIN(i + 1, rows - 1) * step));
        }
        m = gni_vmax(m, n);
        const gni_vf base = gni_ksel(gni_keq(m, low), gni_vset(0.0f), m); // no -inf - -inf
        const gni_vf k = gni_ksel(gni_keq(m, before), one, gni_vexp_low(before - base));
        for (int64_t i = 0; i < rows; i++) {
            const gni_vf e = gni_vexp_low(gni_vload(p + i * step) - base);
            gni_vstore(p + i * step, e);
            total += e;
        }
        total = gni_vfma(gni_vload(sum + c), k, total);
        // Gni_vexp_low makes some number of NaN.
        gni_vstore(sum + c, gni_ksel(gni_klt(m, gni_vinf()), total, gni_vset((float)NAN)));
        gni_vstore(most + c, m);
        gni_vstore(keep + c, k);
        moved = moved || gni_kany(gni_kne(k, one));
    }
    return moved;
}

static void GNI_FN(gni_attend_times)(float *x, int64_t step, int64_t rows, int64_t cols, const float *factor) {
    for (int64_t c = 0; c < cols; c += GNI_VW) {
        const gni_vf f = gni_vload(factor + c);
        for (int64_t i = 0; i < rows; i++) gni_vstore(x + i * step + c, gni_vload(x + i * step + c) * f);
    }
}

static void GNI_FN(gni_attend_back)(float *s, float *ds, int64_t step, int64_t rows, int64_t cols, const float *lse,
                                    const float *dot, float scale) {
    for (int64_t c = 0; c < cols; c += GNI_VW) {
        const gni_vf l = gni_vload(lse + c), d = gni_vload(dot + c), f = gni_vset(scale), lost = l - l; // 0 or NaN
        for (int64_t i = 0; i < rows; i++) {
            const int64_t at = i * step + c;
            const gni_vf p = gni_vexp_low(gni_vload(s + at) - l) + lost;
            gni_vstore(s + at, p);
            gni_vstore(ds + at, p * (gni_vload(ds + at) - d) * f);
        }
    }
}

GNI_TABLE gni_attend_isa GNI_FN(gni_attend_table) = {GNI_FN(gni_attend_fold), GNI_FN(gni_attend_times),
                                                     GNI_FN(gni_attend_back)};

// ---- normalisation

static void GNI_FN(gni_norm_sums)(double s[2], const float *x, const float *gy, const float *w, int64_t n, float mean) {
    const gni_vf m = gni_vset(mean);
    for (int64_t i = 0, stop; i < n; i = stop) {
        gni_vf a = gni_vset(0.0f), b = a, a1 = a, b1 = a;
        float t[2 * GNI_VW];
        double sum = 0.0, product = 0.0;
        int64_t first = i;
        stop = GNI_MIN(n, i + GNI_SUM_BLOCK);
        for (; first + 2 * GNI_VW <= stop; first += 2 * GNI_VW) { // two chains of each sum, without which they are waited for
            const gni_vf z = gni_vload(x + first) - m, z1 = gni_vload(x + first + GNI_VW) - m;
            gni_vf h = gy != NULL ? gni_vload(gy + first) : z, h1 = gy != NULL ? gni_vload(gy + first + GNI_VW) : z1;
            if (w != NULL) h = h * gni_vload(w + first), h1 = h1 * gni_vload(w + first + GNI_VW);
            a += h, a1 += h1;
            b = gni_vfma(h, z, b), b1 = gni_vfma(h1, z1, b1);
        }
        a += a1, b += b1;
        for (int64_t k = first; k < stop; k += GNI_VW) {
            const int left = (int)GNI_MIN(stop - k, GNI_VW);
            for (int q = left; q < GNI_VW; q++) t[q] = mean;
            if (left < GNI_VW) memcpy(t, x + k, (size_t)left * sizeof(float));
            const gni_vf z = gni_vload(left < GNI_VW ? t : x + k) - m;
            gni_vf h = z;
            if (gy != NULL) h = left < GNI_VW ? gni_vloadn(gy + k, left) : gni_vload(gy + k);
            if (w != NULL) h = h * (left < GNI_VW ? gni_vloadn(w + k, left) : gni_vload(w + k));
            a += h;
            b = gni_vfma(h, z, b);
        }
        gni_vstore(t, a);
        gni_vstore(t + GNI_VW, b);
        for (int q = 0; q < GNI_VW; q++) sum += (double)t[q], product += (double)t[GNI_VW + q];
        if (!(sum - sum + product - product == 0.0)) { // float64 has the range
            sum = product = 0.0;
            for (int64_t k = i; k < stop; k++) {
                const double z = (double)x[k] - (double)mean,
                             h = (gy != NULL ? (double)gy[k] : z) * (w != NULL ? (double)w[k] : 1.0);
                sum += h;
                product += h * z;
            }
        }
        s[0] += sum;
        s[1] += product;
    }
}
static void GNI_FN(gni_norm_write)(float *y, const float *x, const float *gy, const float *w, const float *b, int64_t n,
                                   const float c[5]) {
    const gni_vf m = gni_vset(c[0]), f = gni_vset(c[1]), d = gni_vset(c[2]), e = gni_vset(c[3]), k = gni_vset(c[4]);
#define GNI_NORM_TAKE(p) (left < GNI_VW ? gni_vloadn(p + i, left) : gni_vload(p + i))
    for (int64_t i = 0; i < n; i += GNI_VW) {
        const int left = (int)GNI_MIN(n - i, GNI_VW);
        gni_vf z = (GNI_NORM_TAKE(x) - m) * f, v = gy != NULL ? GNI_NORM_TAKE(gy) * e : z;
        if (w != NULL) v = v * GNI_NORM_TAKE(w);
        if (gy != NULL) v = v + z * k;
        if (b != NULL) v = v + GNI_NORM_TAKE(b);
        v = v + d;
        if (left < GNI_VW)
            gni_vstoren(y + i, v, left);
        else
            gni_vstore(y + i, v);
    }
#undef GNI_NORM_TAKE
}
static void GNI_FN(gni_norm_add)(float *gw, float *gb, const float *x, const float *gy, int64_t n, float mean, float scale) {
    const gni_vf m = gni_vset(mean), f = gni_vset(scale);
    int64_t i = 0;
    for (; i + GNI_VW <= n; i += GNI_VW) {
        const gni_vf y = gni_vload(gy + i);
        if (gw != NULL) gni_vstore(gw + i, gni_vfma(y, (gni_vload(x + i) - m) * f, gni_vload(gw + i)));
        if (gb != NULL) gni_vstore(gb + i, gni_vload(gb + i) + y);
    }
    for (; i < n; i++) {
        if (gw != NULL) gw[i] += gy[i] * ((x[i] - mean) * scale);
        if (gb != NULL) gb[i] += gy[i];
    }
}

// ---- random

// GNI_VW Philox blocks at once. The lanes' blocks are numbered so that turning groups of four lanes
// leaves every vector with four blocks' words in order.
#define gni_vblocks GNI_FN(gni_ck_blocks)
#define gni_vtranspose GNI_FN(gni_ck_turn)
GNI_INLINE void gni_vblocks(uint64_t seed, uint64_t first, uint32_t third, gni_vu w[4]) {
#if GNI_VW == 16
    static const uint32_t order[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
#elif GNI_VW == 8
    static const uint32_t order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
#else
    static const uint32_t order[4] = {0, 1, 2, 3};
#endif
    gni_vu lane = gni_vloadu(order), lo = gni_vsetu((uint32_t)first) + lane;
    gni_vu carry = gni_vi_u(gni_kmask(gni_kult(lo, lane))) & gni_vsetu(1);
    gni_vu hi = gni_vsetu((uint32_t)(first >> 32)) + carry;
    gni_vphilox(lo, hi, gni_vsetu(third), gni_vsetu(0), (uint32_t)seed, (uint32_t)(seed >> 32), w);
}
// Stores w[k] of lane j as element 4 * j' + k, j' being the lane's block: 4 * GNI_VW words.
GNI_INLINE void gni_vtranspose(uint32_t *dst, const gni_vu w[4]) {
#if GNI_VW == 16
    __m512i a = _mm512_unpacklo_epi32((__m512i)w[0], (__m512i)w[1]);
    __m512i b = _mm512_unpackhi_epi32((__m512i)w[0], (__m512i)w[1]);
    __m512i c = _mm512_unpacklo_epi32((__m512i)w[2], (__m512i)w[3]);
    __m512i d = _mm512_unpackhi_epi32((__m512i)w[2], (__m512i)w[3]);
    gni_vstoreu(dst, (gni_vu)_mm512_unpacklo_epi64(a, c));
    gni_vstoreu(dst + 16, (gni_vu)_mm512_unpackhi_epi64(a, c));
    gni_vstoreu(dst + 32, (gni_vu)_mm512_unpacklo_epi64(b, d));
    gni_vstoreu(dst + 48, (gni_vu)_mm512_unpackhi_epi64(b, d));
#elif GNI_VW == 8
    __m256i a = _mm256_unpacklo_epi32((__m256i)w[0], (__m256i)w[1]);
    __m256i b = _mm256_unpackhi_epi32((__m256i)w[0], (__m256i)w[1]);
    __m256i c = _mm256_unpacklo_epi32((__m256i)w[2], (__m256i)w[3]);
    __m256i d = _mm256_unpackhi_epi32((__m256i)w[2], (__m256i)w[3]);
    gni_vstoreu(dst, (gni_vu)_mm256_unpacklo_epi64(a, c));
    gni_vstoreu(dst + 8, (gni_vu)_mm256_unpackhi_epi64(a, c));
    gni_vstoreu(dst + 16, (gni_vu)_mm256_unpacklo_epi64(b, d));
    gni_vstoreu(dst + 24, (gni_vu)_mm256_unpackhi_epi64(b, d));
#elif GNI_V_SSE2
    __m128i a = _mm_unpacklo_epi32((__m128i)w[0], (__m128i)w[1]);
    __m128i b = _mm_unpackhi_epi32((__m128i)w[0], (__m128i)w[1]);
    __m128i c = _mm_unpacklo_epi32((__m128i)w[2], (__m128i)w[3]);
    __m128i d = _mm_unpackhi_epi32((__m128i)w[2], (__m128i)w[3]);
    gni_vstoreu(dst, (gni_vu)_mm_unpacklo_epi64(a, c));
    gni_vstoreu(dst + 4, (gni_vu)_mm_unpackhi_epi64(a, c));
    gni_vstoreu(dst + 8, (gni_vu)_mm_unpacklo_epi64(b, d));
    gni_vstoreu(dst + 12, (gni_vu)_mm_unpackhi_epi64(b, d));
#elif GNI_V_WASM
    v128_t a = wasm_i32x4_shuffle((v128_t)w[0], (v128_t)w[1], 0, 4, 1, 5);
    v128_t b = wasm_i32x4_shuffle((v128_t)w[0], (v128_t)w[1], 2, 6, 3, 7);
    v128_t c = wasm_i32x4_shuffle((v128_t)w[2], (v128_t)w[3], 0, 4, 1, 5);
    v128_t d = wasm_i32x4_shuffle((v128_t)w[2], (v128_t)w[3], 2, 6, 3, 7);
    gni_vstoreu(dst, (gni_vu)wasm_i64x2_shuffle(a, c, 0, 2));
    gni_vstoreu(dst + 4, (gni_vu)wasm_i64x2_shuffle(a, c, 1, 3));
    gni_vstoreu(dst + 8, (gni_vu)wasm_i64x2_shuffle(b, d, 0, 2));
    gni_vstoreu(dst + 12, (gni_vu)wasm_i64x2_shuffle(b, d, 1, 3));
#else
    uint32_t t[4][GNI_VW];
    for (int k = 0; k < 4; k++) gni_vstoreu(t[k], w[k]);
    for (int j = 0; j < GNI_VW; j++)
        for (int k = 0; k < 4; k++) dst[4 * j + k] = t[k][j];
#endif
}
#define GNI_RANDOM(name, T, U, third, MAKE)                                                        \
    static void GNI_FN(name)(T * dst, uint64_t seed, uint64_t first, U, int64_t blocks) {          \
        for (int64_t i = 0; i < blocks; i += GNI_VW) {                                             \
            gni_vu w[4];                                                                           \
            uint32_t t[4 * GNI_VW];                                                                \
            gni_vblocks(seed, first + (uint64_t)i, third, w);                                      \
            MAKE;                                                                                  \
            if (i + GNI_VW <= blocks) {                                                            \
                gni_vtranspose((uint32_t *)(void *)(dst + 4 * i), w);                                   \
                continue;                                                                          \
            }                                                                                      \
            gni_vtranspose(t, w);                                                                       \
            memcpy(dst + 4 * i, t, sizeof(uint32_t) * 4 * (size_t)(blocks - i));                   \
        }                                                                                          \
    }
#define GNI_SCALED(x) gni_vf_ubits((x) * gni_vset(by[0]) + gni_vset(by[1]))
#define GNI_MAKE(x) for (int k = 0; k < 4; k++) w[k] = GNI_SCALED(x)
#define GNI_MAKE_NORMAL                                                                            \
    for (int k = 0; k < 4; k += 2) {                                                               \
        gni_vf x, y;                                                                               \
        gni_vnormal2(w[k], w[k + 1], &x, &y);                                                      \
        w[k] = GNI_SCALED(x);                                                                      \
        w[k + 1] = GNI_SCALED(y);                                                                  \
    }
GNI_RANDOM(gni_random_bits, uint32_t, uint32_t third, third, (void)0)
GNI_RANDOM(gni_random_uniform, float, const float *by, 0,
           GNI_MAKE(gni_itov(gni_vu_i(w[k] >> 8)) * gni_vset(5.9604644775390625e-8f)))
GNI_RANDOM(gni_random_normal, float, const float *by, 0, GNI_MAKE_NORMAL)
GNI_RANDOM(gni_random_decaying, float, const float *by, 0, GNI_MAKE(gni_vexponential(w[k])))
#undef GNI_RANDOM
#undef GNI_SCALED
#undef GNI_MAKE
#undef GNI_MAKE_NORMAL

// Batcher's odd-even merge sort. Of vectors the smaller lanes and the larger ones.
static void GNI_FN(gni_net)(int32_t *x, int64_t n) {
    for (int64_t p = 1; p < n; p *= 2)
        for (int64_t k = p; k >= 1; k /= 2)
            for (int64_t j = k % p; j + k < n; j += 2 * k)
                for (int64_t i = j; i < GNI_MIN(j + k, n - k); i++) {
                    if ((i ^ (i + k)) >= 2 * p) continue; // not of one block of 2 p
                    for (int64_t l = GNI_NET_ROWS * i; l < GNI_NET_ROWS * (i + 1); l += GNI_VW) {
                        const gni_vi a = gni_vloadi(x + l), b = gni_vloadi(x + l + GNI_NET_ROWS * k);
                        const gni_vmask less = gni_kilt(a, b);
                        gni_vstorei(x + l, gni_kseli(less, a, b));
                        gni_vstorei(x + l + GNI_NET_ROWS * k, gni_kseli(less, b, a));
                    }
                }
}

GNI_TABLE gni_random_isa GNI_FN(gni_random_table) = {GNI_FN(gni_random_bits), GNI_FN(gni_random_uniform),
                                                     GNI_FN(gni_random_normal), GNI_FN(gni_random_decaying)};

#undef GNI_KERNEL
#undef GNI_PUT_FLOAT
#undef GNI_PUT_TRUTH
#undef GNI_FLOAT_1
#undef GNI_FLOAT_2
#undef GNI_INT_1
#undef GNI_INT_2
#undef gni_vinf
#undef gni_vsign
#undef gni_vtruth
#undef gni_vrsqrt
#undef gni_vsilu
#undef gni_vround_f16
#undef gni_vround_bf16
#undef gni_vwrap_i8
#undef gni_vtranspose
#undef gni_vb
#undef gni_vload_u8
#undef gni_vload_i8
#undef gni_vstore_8
#undef gni_vblocks
