// >>simd
// Vectors of one SIMD pass: GNI_VW lanes of float, int32 or uint32, and what can be done with them.
// Compiled once per pass; the rooms of the same pass use the short names, which room `simd_end` takes back.
// A mask is a gni_vi with lanes 0 or -1. A gni_vmask is the pass's cheapest mask (a bit mask on AVX-512): the gni_k...
// functions make and use it; gni_kmask turns it into a gni_vi.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/config.h"
#define GNI_PASS_BASE 1
#define GNI_VW 4
#define GNI_FN(name) name##_base
#endif

#define gni_vf GNI_FN(gni_vecf)
#define gni_vi GNI_FN(gni_veci)
#define gni_vu GNI_FN(gni_vecu)
#define gni_vh GNI_FN(gni_vech) // uint16 lanes, only to narrow and widen
#define gni_vmask GNI_FN(gni_veck)

#if GNI_VW == 1
typedef float gni_vf;
typedef int32_t gni_vi;
typedef uint32_t gni_vu;
typedef uint16_t gni_vh;
#else
typedef float gni_vf __attribute__((vector_size(GNI_VW * 4)));
typedef int32_t gni_vi __attribute__((vector_size(GNI_VW * 4)));
typedef uint32_t gni_vu __attribute__((vector_size(GNI_VW * 4)));
typedef uint16_t gni_vh __attribute__((vector_size(GNI_VW * 2)));
#endif
#if defined(GNI_PASS_AVX512)
typedef __mmask16 gni_vmask;
#else
typedef gni_vi gni_vmask;
#endif

// What the base pass is made of, and whether gni_vfma rounds once.
#if GNI_VW == 4 && (defined(__SSE2__) || defined(_M_X64))
#define GNI_V_SSE2 1
#else
#define GNI_V_SSE2 0
#endif
#if GNI_VW == 4 && defined(__aarch64__) && defined(__ARM_NEON)
#define GNI_V_NEON 1
#else
#define GNI_V_NEON 0
#endif
#if GNI_VW == 4 && defined(GNI_WASM)
#define GNI_V_WASM 1
#else
#define GNI_V_WASM 0
#endif
#if defined(GNI_PASS_AVX512) || defined(GNI_PASS_AVX2) || GNI_V_NEON
#define GNI_V_FUSED 1
#else
#define GNI_V_FUSED 0
#endif

// Bit casts, and int32 <-> uint32 (the same bits).
#define gni_vf_bits GNI_FN(gni_s_bits)
#define gni_vi_float GNI_FN(gni_s_float)
#define gni_vf_ubits GNI_FN(gni_s_ubits)
#define gni_vu_float GNI_FN(gni_s_ufloat)
#define gni_vi_u(x) ((gni_vu)(x))
#define gni_vu_i(x) ((gni_vi)(x))

GNI_INLINE gni_vi gni_vf_bits(gni_vf x) {
    gni_vi r;
    memcpy(&r, &x, sizeof r);
    return r;
}
GNI_INLINE gni_vf gni_vi_float(gni_vi x) {
    gni_vf r;
    memcpy(&r, &x, sizeof r);
    return r;
}
GNI_INLINE gni_vu gni_vf_ubits(gni_vf x) { return gni_vi_u(gni_vf_bits(x)); }
GNI_INLINE gni_vf gni_vu_float(gni_vu x) { return gni_vi_float(gni_vu_i(x)); }

// Loads and stores need no alignment. The ...n forms touch only the first n lanes (0 <= n <= GNI_VW) and load 0 beyond.
#define gni_vload GNI_FN(gni_s_load)
#define gni_vloadi GNI_FN(gni_s_loadi)
#define gni_vloadu GNI_FN(gni_s_loadu)
#define gni_vloadh GNI_FN(gni_s_loadh)
#define gni_vloadn GNI_FN(gni_s_loadn)
#define gni_vloadin GNI_FN(gni_s_loadin)
#define gni_vstore GNI_FN(gni_s_store)
#define gni_vstorei GNI_FN(gni_s_storei)
#define gni_vstoreu GNI_FN(gni_s_storeu)
#define gni_vstoreh GNI_FN(gni_s_storeh)
#define gni_vstoren GNI_FN(gni_s_storen)
#define gni_vstorein GNI_FN(gni_s_storein)

GNI_INLINE gni_vf gni_vload(const float *p) {
    gni_vf r;
    memcpy(&r, p, sizeof r);
    return r;
}
GNI_INLINE gni_vi gni_vloadi(const int32_t *p) {
    gni_vi r;
    memcpy(&r, p, sizeof r);
    return r;
}
GNI_INLINE gni_vu gni_vloadu(const uint32_t *p) {
    gni_vu r;
    memcpy(&r, p, sizeof r);
    return r;
}
GNI_INLINE gni_vh gni_vloadh(const uint16_t *p) {
    gni_vh r;
    memcpy(&r, p, sizeof r);
    return r;
}
GNI_INLINE void gni_vstore(float *p, gni_vf v) { memcpy(p, &v, sizeof v); }
GNI_INLINE void gni_vstorei(int32_t *p, gni_vi v) { memcpy(p, &v, sizeof v); }
GNI_INLINE void gni_vstoreu(uint32_t *p, gni_vu v) { memcpy(p, &v, sizeof v); }
GNI_INLINE void gni_vstoreh(uint16_t *p, gni_vh v) { memcpy(p, &v, sizeof v); }

GNI_INLINE gni_vf gni_vloadn(const float *p, int n) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
#else
    float t[GNI_VW] = {0};
    memcpy(t, p, sizeof(float) * (size_t)n);
    return gni_vload(t);
#endif
}
GNI_INLINE gni_vi gni_vloadin(const int32_t *p, int n) {
#if defined(GNI_PASS_AVX512)
    return (gni_vi)_mm512_maskz_loadu_epi32((__mmask16)((1u << n) - 1u), p);
#else
    int32_t t[GNI_VW] = {0};
    memcpy(t, p, sizeof(int32_t) * (size_t)n);
    return gni_vloadi(t);
#endif
}
GNI_INLINE void gni_vstoren(float *p, gni_vf v, int n) {
#if defined(GNI_PASS_AVX512)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
#else
    memcpy(p, &v, sizeof(float) * (size_t)n);
#endif
}
GNI_INLINE void gni_vstorein(int32_t *p, gni_vi v, int n) {
#if defined(GNI_PASS_AVX512)
    _mm512_mask_storeu_epi32(p, (__mmask16)((1u << n) - 1u), (__m512i)v);
#else
    memcpy(p, &v, sizeof(int32_t) * (size_t)n);
#endif
}

#define gni_vset GNI_FN(gni_s_set)
#define gni_vkept GNI_FN(gni_s_keep)
#define gni_vseti GNI_FN(gni_s_seti)
#define gni_vsetu GNI_FN(gni_s_setu)
#define gni_viota GNI_FN(gni_s_iota)

GNI_INLINE gni_vf gni_vset(float x) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_set1_ps(x);
#elif GNI_VW == 8
    gni_vf r = {x, x, x, x, x, x, x, x};
    return r;
#elif GNI_VW == 4
    gni_vf r = {x, x, x, x};
    return r;
#else
    return x;
#endif
}
// A constant for loops in which it is used in every round. Clang writes vector constants wherever they are used, and engines
// make them anew there in up to five instructions; what a function says stays in a register: always the same, but nobody who
// looks into it can tell.
#if GNI_V_WASM && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
static volatile uint32_t GNI_FN(gni_s_none);
__attribute__((const, noinline)) static float GNI_FN(gni_s_kept)(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    u |= GNI_FN(gni_s_none);
    memcpy(&x, &u, sizeof u);
    return x;
}
GNI_INLINE gni_vf gni_vkept(float x) { return gni_vset(GNI_FN(gni_s_kept)(x)); }
#else
GNI_INLINE gni_vf gni_vkept(float x) { return gni_vset(x); }
#endif
GNI_INLINE gni_vi gni_vseti(int32_t x) {
#if defined(GNI_PASS_AVX512)
    return (gni_vi)_mm512_set1_epi32(x);
#elif GNI_VW == 8
    gni_vi r = {x, x, x, x, x, x, x, x};
    return r;
#elif GNI_VW == 4
    gni_vi r = {x, x, x, x};
    return r;
#else
    return x;
#endif
}
GNI_INLINE gni_vu gni_vsetu(uint32_t x) { return gni_vi_u(gni_vseti((int32_t)x)); }
// Lanes 0, 1, 2, ...
GNI_INLINE gni_vi gni_viota(void) {
    static const int32_t t[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return gni_vloadi(t);
}

// a * b + c: rounds once where GNI_V_FUSED, else twice, or as the browser likes where it was compiled with -mrelaxed-simd.
#define gni_vfma GNI_FN(gni_s_fma)
#define gni_vfnma GNI_FN(gni_s_fnma) // c - a * b
#define gni_vsqrt GNI_FN(gni_s_sqrt)
#define gni_vabs GNI_FN(gni_s_abs)
#define gni_vneg GNI_FN(gni_s_neg)
#define gni_vcopysign GNI_FN(gni_s_copysign)

GNI_INLINE gni_vf gni_vfma(gni_vf a, gni_vf b, gni_vf c) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif GNI_V_NEON
    return (gni_vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#elif GNI_V_WASM && defined(__wasm_relaxed_simd__)
    return (gni_vf)wasm_f32x4_relaxed_madd((v128_t)a, (v128_t)b, (v128_t)c);
#else
    return a * b + c;
#endif
}
GNI_INLINE gni_vf gni_vfnma(gni_vf a, gni_vf b, gni_vf c) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_fnmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif GNI_V_NEON
    return (gni_vf)vfmsq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#elif GNI_V_WASM && defined(__wasm_relaxed_simd__)
    return (gni_vf)wasm_f32x4_relaxed_nmadd((v128_t)a, (v128_t)b, (v128_t)c);
#else
    return c - a * b;
#endif
}
GNI_INLINE gni_vf gni_vsqrt(gni_vf x) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_sqrt_ps((__m512)x);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_sqrt_ps((__m256)x);
#elif GNI_V_SSE2
    return (gni_vf)_mm_sqrt_ps((__m128)x);
#elif GNI_V_NEON
    return (gni_vf)vsqrtq_f32((float32x4_t)x);
#elif GNI_V_WASM
    return (gni_vf)wasm_f32x4_sqrt((v128_t)x);
#elif GNI_VW == 1
    return sqrtf(x);
#else
    for (int i = 0; i < GNI_VW; i++) x[i] = sqrtf(x[i]);
    return x;
#endif
}
GNI_INLINE gni_vf gni_vabs(gni_vf x) { return gni_vi_float(gni_vf_bits(x) & 0x7fffffff); }
GNI_INLINE gni_vf gni_vneg(gni_vf x) { return -x; }
// The magnitude of x with the sign of s.
GNI_INLINE gni_vf gni_vcopysign(gni_vf x, gni_vf s) {
    return gni_vu_float((gni_vf_ubits(x) & 0x7fffffffu) | (gni_vf_ubits(s) & 0x80000000u));
}

// Comparisons to a gni_vmask. With a NaN operand only gni_kne is true.
#define gni_klt GNI_FN(gni_s_klt)
#define gni_kle GNI_FN(gni_s_kle)
#define gni_keq GNI_FN(gni_s_keq)
#define gni_kne GNI_FN(gni_s_kne)
#define gni_knan GNI_FN(gni_s_knan)
#define gni_kieq GNI_FN(gni_s_kieq)
#define gni_kilt GNI_FN(gni_s_kilt)
#define gni_kult GNI_FN(gni_s_kult)
#define gni_kgt(a, b) gni_klt(b, a)
#define gni_kge(a, b) gni_kle(b, a)
#define gni_kigt(a, b) gni_kilt(b, a)
#define gni_kmask GNI_FN(gni_s_kmask)
#define gni_kfrom GNI_FN(gni_s_kfrom)
#define gni_kand GNI_FN(gni_s_kand)
#define gni_kor GNI_FN(gni_s_kor)
#define gni_knot GNI_FN(gni_s_knot)
#define gni_kany GNI_FN(gni_s_kany)
#define gni_ksel GNI_FN(gni_s_ksel)
#define gni_kseli GNI_FN(gni_s_kseli)
#define gni_kselu(k, a, b) gni_vi_u(gni_kseli(k, gni_vu_i(a), gni_vu_i(b)))

#if defined(GNI_PASS_AVX512)
GNI_INLINE gni_vmask gni_klt(gni_vf a, gni_vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
}
GNI_INLINE gni_vmask gni_kle(gni_vf a, gni_vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LE_OQ);
}
GNI_INLINE gni_vmask gni_keq(gni_vf a, gni_vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
}
GNI_INLINE gni_vmask gni_kne(gni_vf a, gni_vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NEQ_UQ);
}
GNI_INLINE gni_vmask gni_kieq(gni_vi a, gni_vi b) {
    return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b);
}
GNI_INLINE gni_vmask gni_kilt(gni_vi a, gni_vi b) {
    return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b);
}
GNI_INLINE gni_vmask gni_kult(gni_vu a, gni_vu b) {
    return _mm512_cmplt_epu32_mask((__m512i)a, (__m512i)b);
}
GNI_INLINE gni_vi gni_kmask(gni_vmask k) { return (gni_vi)_mm512_movm_epi32(k); }
GNI_INLINE gni_vmask gni_kfrom(gni_vi m) { return _mm512_movepi32_mask((__m512i)m); }
GNI_INLINE gni_vmask gni_kand(gni_vmask a, gni_vmask b) { return (gni_vmask)(a & b); }
GNI_INLINE gni_vmask gni_kor(gni_vmask a, gni_vmask b) { return (gni_vmask)(a | b); }
GNI_INLINE gni_vmask gni_knot(gni_vmask a) { return (gni_vmask)~a; }
GNI_INLINE int gni_kany(gni_vmask k) { return k != 0; }
GNI_INLINE gni_vf gni_ksel(gni_vmask k, gni_vf a, gni_vf b) {
    return (gni_vf)_mm512_mask_blend_ps(k, (__m512)b, (__m512)a);
}
GNI_INLINE gni_vi gni_kseli(gni_vmask k, gni_vi a, gni_vi b) {
    return (gni_vi)_mm512_mask_blend_epi32(k, (__m512i)b, (__m512i)a);
}
#elif GNI_VW == 1
GNI_INLINE gni_vmask gni_klt(gni_vf a, gni_vf b) { return -(int32_t)(a < b); }
GNI_INLINE gni_vmask gni_kle(gni_vf a, gni_vf b) { return -(int32_t)(a <= b); }
GNI_INLINE gni_vmask gni_keq(gni_vf a, gni_vf b) { return -(int32_t)(a == b); }
GNI_INLINE gni_vmask gni_kne(gni_vf a, gni_vf b) { return -(int32_t)(a != b); }
GNI_INLINE gni_vmask gni_kieq(gni_vi a, gni_vi b) { return -(int32_t)(a == b); }
GNI_INLINE gni_vmask gni_kilt(gni_vi a, gni_vi b) { return -(int32_t)(a < b); }
GNI_INLINE gni_vmask gni_kult(gni_vu a, gni_vu b) { return -(int32_t)(a < b); }
GNI_INLINE gni_vi gni_kmask(gni_vmask k) { return k; }
GNI_INLINE gni_vmask gni_kfrom(gni_vi m) { return m; }
GNI_INLINE gni_vmask gni_kand(gni_vmask a, gni_vmask b) { return a & b; }
GNI_INLINE gni_vmask gni_kor(gni_vmask a, gni_vmask b) { return a | b; }
GNI_INLINE gni_vmask gni_knot(gni_vmask a) { return ~a; }
GNI_INLINE int gni_kany(gni_vmask k) { return k != 0; }
GNI_INLINE gni_vf gni_ksel(gni_vmask k, gni_vf a, gni_vf b) { return k ? a : b; }
GNI_INLINE gni_vi gni_kseli(gni_vmask k, gni_vi a, gni_vi b) { return k ? a : b; }
#else
GNI_INLINE gni_vmask gni_klt(gni_vf a, gni_vf b) { return (gni_vmask)(a < b); }
GNI_INLINE gni_vmask gni_kle(gni_vf a, gni_vf b) { return (gni_vmask)(a <= b); }
GNI_INLINE gni_vmask gni_keq(gni_vf a, gni_vf b) { return (gni_vmask)(a == b); }
GNI_INLINE gni_vmask gni_kne(gni_vf a, gni_vf b) { return (gni_vmask)(a != b); }
GNI_INLINE gni_vmask gni_kieq(gni_vi a, gni_vi b) { return (gni_vmask)(a == b); }
GNI_INLINE gni_vmask gni_kilt(gni_vi a, gni_vi b) { return (gni_vmask)(a < b); }
GNI_INLINE gni_vmask gni_kult(gni_vu a, gni_vu b) { return (gni_vmask)(a < b); }
GNI_INLINE gni_vi gni_kmask(gni_vmask k) { return k; }
GNI_INLINE gni_vmask gni_kfrom(gni_vi m) { return m; }
GNI_INLINE gni_vmask gni_kand(gni_vmask a, gni_vmask b) { return a & b; }
GNI_INLINE gni_vmask gni_kor(gni_vmask a, gni_vmask b) { return a | b; }
GNI_INLINE gni_vmask gni_knot(gni_vmask a) { return ~a; }
GNI_INLINE int gni_kany(gni_vmask k) {
#if defined(GNI_PASS_AVX2)
    return _mm256_movemask_ps((__m256)k) != 0;
#elif GNI_V_SSE2
    return _mm_movemask_ps((__m128)k) != 0;
#elif GNI_V_NEON
    return vmaxvq_u32((uint32x4_t)k) != 0;
#elif GNI_V_WASM
    return wasm_v128_any_true((v128_t)k);
#else
    int32_t any = 0;
    for (int i = 0; i < GNI_VW; i++) any |= k[i];
    return any != 0;
#endif
}
GNI_INLINE gni_vi gni_kseli(gni_vmask k, gni_vi a, gni_vi b) {
#if defined(GNI_PASS_AVX2)
    return (gni_vi)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)k);
#elif GNI_V_NEON
    return (gni_vi)vbslq_s32((uint32x4_t)k, (int32x4_t)a, (int32x4_t)b);
#elif GNI_V_WASM
    return (gni_vi)wasm_v128_bitselect((v128_t)a, (v128_t)b, (v128_t)k);
#else
    return (k & a) | (~k & b);
#endif
}
GNI_INLINE gni_vf gni_ksel(gni_vmask k, gni_vf a, gni_vf b) {
    return gni_vi_float(gni_kseli(k, gni_vf_bits(a), gni_vf_bits(b)));
}
#endif
GNI_INLINE gni_vmask gni_knan(gni_vf x) { return gni_kne(x, x); }

// The same with masks as 0 / -1 lanes.
#define gni_vlt(a, b) gni_kmask(gni_klt(a, b))
#define gni_vle(a, b) gni_kmask(gni_kle(a, b))
#define gni_vgt(a, b) gni_kmask(gni_klt(b, a))
#define gni_vge(a, b) gni_kmask(gni_kle(b, a))
#define gni_veq(a, b) gni_kmask(gni_keq(a, b))
#define gni_vne(a, b) gni_kmask(gni_kne(a, b))
#define gni_visnan(a) gni_kmask(gni_knan(a))
#define gni_vieq(a, b) gni_kmask(gni_kieq(a, b))
#define gni_vilt(a, b) gni_kmask(gni_kilt(a, b))
#define gni_vsel(m, a, b) gni_ksel(gni_kfrom(m), a, b)
#define gni_vseli(m, a, b) gni_kseli(gni_kfrom(m), a, b)
#define gni_vmask01 GNI_FN(gni_s_mask01)
GNI_INLINE gni_vi gni_vmask01(gni_vi m) { return m & 1; } // lanes 0 / -1 to 0 / 1

// Minimum and maximum; a NaN in either operand gives NaN. Which of -0 and +0 comes out is not said.
#define gni_vmin GNI_FN(gni_s_min)
#define gni_vmax GNI_FN(gni_s_max)
// The same where x is known or wanted to win when it is NaN and the bound is not: clamping with a constant.
#define gni_vminc GNI_FN(gni_s_minc)
#define gni_vmaxc GNI_FN(gni_s_maxc)

GNI_INLINE gni_vf gni_vminc(gni_vf x, gni_vf bound) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_min_ps((__m512)bound, (__m512)x);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_min_ps((__m256)bound, (__m256)x);
#elif GNI_V_SSE2
    return (gni_vf)_mm_min_ps((__m128)bound, (__m128)x);
#elif GNI_V_NEON
    return (gni_vf)vminq_f32((float32x4_t)x, (float32x4_t)bound);
#elif GNI_V_WASM
    return (gni_vf)wasm_f32x4_pmin((v128_t)x, (v128_t)bound);
#else
    return gni_ksel(gni_klt(bound, x), bound, x);
#endif
}
GNI_INLINE gni_vf gni_vmaxc(gni_vf x, gni_vf bound) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_max_ps((__m512)bound, (__m512)x);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_max_ps((__m256)bound, (__m256)x);
#elif GNI_V_SSE2
    return (gni_vf)_mm_max_ps((__m128)bound, (__m128)x);
#elif GNI_V_NEON
    return (gni_vf)vmaxq_f32((float32x4_t)x, (float32x4_t)bound);
#elif GNI_V_WASM
    return (gni_vf)wasm_f32x4_pmax((v128_t)x, (v128_t)bound);
#else
    return gni_ksel(gni_klt(x, bound), bound, x);
#endif
}
#if GNI_V_NEON // whose minimum is NaN if either is
GNI_INLINE gni_vf gni_vmin(gni_vf a, gni_vf b) { return gni_vminc(a, b); }
GNI_INLINE gni_vf gni_vmax(gni_vf a, gni_vf b) { return gni_vmaxc(a, b); }
#else
GNI_INLINE gni_vf gni_vmin(gni_vf a, gni_vf b) { return gni_ksel(gni_knan(b), b, gni_vminc(a, b)); }
GNI_INLINE gni_vf gni_vmax(gni_vf a, gni_vf b) { return gni_ksel(gni_knan(b), b, gni_vmaxc(a, b)); }
#endif

// Rounding to an integral float; the sign of zero is kept. gni_vrint rounds half to even.
#define gni_vrint GNI_FN(gni_s_rint)
#define gni_vfloor GNI_FN(gni_s_floor)
#define gni_vceil GNI_FN(gni_s_ceil)
#define gni_vtrunc GNI_FN(gni_s_trunc)

#if defined(GNI_PASS_AVX512)
#define GNI_V_ROUND(x, mode) (gni_vf) _mm512_roundscale_ps((__m512)(x), mode)
#elif defined(GNI_PASS_AVX2)
#define GNI_V_ROUND(x, mode) (gni_vf) _mm256_round_ps((__m256)(x), mode)
#endif
#if defined(GNI_V_ROUND)
GNI_INLINE gni_vf gni_vrint(gni_vf x) { return GNI_V_ROUND(x, 0x8); }
GNI_INLINE gni_vf gni_vfloor(gni_vf x) { return GNI_V_ROUND(x, 0x9); }
GNI_INLINE gni_vf gni_vceil(gni_vf x) { return GNI_V_ROUND(x, 0xa); }
GNI_INLINE gni_vf gni_vtrunc(gni_vf x) { return GNI_V_ROUND(x, 0xb); }
#undef GNI_V_ROUND
#elif GNI_V_NEON
GNI_INLINE gni_vf gni_vrint(gni_vf x) { return (gni_vf)vrndnq_f32((float32x4_t)x); }
GNI_INLINE gni_vf gni_vfloor(gni_vf x) { return (gni_vf)vrndmq_f32((float32x4_t)x); }
GNI_INLINE gni_vf gni_vceil(gni_vf x) { return (gni_vf)vrndpq_f32((float32x4_t)x); }
GNI_INLINE gni_vf gni_vtrunc(gni_vf x) { return (gni_vf)vrndq_f32((float32x4_t)x); }
#elif GNI_V_WASM
GNI_INLINE gni_vf gni_vrint(gni_vf x) { return (gni_vf)wasm_f32x4_nearest((v128_t)x); }
GNI_INLINE gni_vf gni_vfloor(gni_vf x) { return (gni_vf)wasm_f32x4_floor((v128_t)x); }
GNI_INLINE gni_vf gni_vceil(gni_vf x) { return (gni_vf)wasm_f32x4_ceil((v128_t)x); }
GNI_INLINE gni_vf gni_vtrunc(gni_vf x) { return (gni_vf)wasm_f32x4_trunc((v128_t)x); }
#else
// Adding and taking away 2^23 leaves no room for a fraction; from 2^23 on there is none anyway.
GNI_INLINE gni_vf gni_vrint(gni_vf x) {
    gni_vf a = gni_vabs(x), big = gni_vset(8388608.0f);
    gni_vf r = gni_vcopysign((a + big) - big, x);
    return gni_ksel(gni_klt(a, big), r, x);
}
GNI_INLINE gni_vf gni_vfloor(gni_vf x) {
    gni_vf r = gni_vrint(x), zero = gni_vset(0.0f);
    return gni_vcopysign(r - gni_ksel(gni_kgt(r, x), gni_vset(1.0f), zero), x);
}
GNI_INLINE gni_vf gni_vceil(gni_vf x) {
    gni_vf r = gni_vrint(x), zero = gni_vset(0.0f);
    return gni_vcopysign(r + gni_ksel(gni_klt(r, x), gni_vset(1.0f), zero), x);
}
GNI_INLINE gni_vf gni_vtrunc(gni_vf x) { return gni_vcopysign(gni_vfloor(gni_vabs(x)), x); }
#endif

// Conversions between floats and integers. To integer: truncates, saturates, NaN gives 0.
#define gni_vtoi GNI_FN(gni_s_toi)
#define gni_vtou GNI_FN(gni_s_tou)
#define gni_vtoi_fast GNI_FN(gni_s_toi_fast)
#define gni_itov GNI_FN(gni_s_itov)
#define gni_utov GNI_FN(gni_s_utov)

// For |x| < 2^31 only.
GNI_INLINE gni_vi gni_vtoi_fast(gni_vf x) {
#if defined(GNI_PASS_AVX512)
    return (gni_vi)_mm512_cvttps_epi32((__m512)x);
#elif defined(GNI_PASS_AVX2)
    return (gni_vi)_mm256_cvttps_epi32((__m256)x);
#elif GNI_V_SSE2
    return (gni_vi)_mm_cvttps_epi32((__m128)x);
#elif GNI_V_NEON
    return (gni_vi)vcvtq_s32_f32((float32x4_t)x);
#elif GNI_V_WASM && defined(__wasm_relaxed_simd__)
    return (gni_vi)wasm_i32x4_relaxed_trunc_f32x4((v128_t)x);
#elif GNI_V_WASM
    return (gni_vi)wasm_i32x4_trunc_sat_f32x4((v128_t)x);
#elif GNI_VW == 1
    return (int32_t)x;
#else
    return __builtin_convertvector(x, gni_vi);
#endif
}
#if GNI_V_WASM
GNI_INLINE gni_vi gni_vtoi(gni_vf x) { return (gni_vi)wasm_i32x4_trunc_sat_f32x4((v128_t)x); }
GNI_INLINE gni_vu gni_vtou(gni_vf x) { return (gni_vu)wasm_u32x4_trunc_sat_f32x4((v128_t)x); }
#elif GNI_V_NEON
GNI_INLINE gni_vi gni_vtoi(gni_vf x) { return gni_vtoi_fast(x); }
GNI_INLINE gni_vu gni_vtou(gni_vf x) { return (gni_vu)vcvtq_u32_f32((float32x4_t)x); }
#else
GNI_INLINE gni_vi gni_vtoi(gni_vf x) {
    gni_vf top = gni_vset(2147483648.0f);
    gni_vmask in = gni_kand(gni_klt(x, top), gni_kge(x, -top));
    gni_vi r = gni_vtoi_fast(gni_ksel(in, x, gni_vset(0.0f)));
    r = gni_kseli(gni_kge(x, top), gni_vseti(INT32_MAX), r);
    return gni_kseli(gni_klt(x, -top), gni_vseti(INT32_MIN), r);
}
GNI_INLINE gni_vu gni_vtou(gni_vf x) {
    gni_vf half = gni_vset(2147483648.0f), top = gni_vset(4294967296.0f);
    gni_vmask in = gni_kand(gni_klt(x, top), gni_kge(x, gni_vset(0.0f)));
    gni_vf y = gni_ksel(in, x, gni_vset(0.0f));
    gni_vmask high = gni_kge(y, half);
    gni_vu r = gni_vi_u(gni_vtoi_fast(gni_ksel(high, y - half, y)));
    r ^= gni_vi_u(gni_kmask(high)) & 0x80000000u;
    return r | gni_vi_u(gni_vge(x, top));
}
#endif
GNI_INLINE gni_vf gni_itov(gni_vi x) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_cvtepi32_ps((__m512i)x);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_cvtepi32_ps((__m256i)x);
#elif GNI_V_SSE2
    return (gni_vf)_mm_cvtepi32_ps((__m128i)x);
#elif GNI_VW == 1
    return (float)x;
#else
    return __builtin_convertvector(x, gni_vf);
#endif
}
// Two exact halves and one rounding add: correct for every value, and the same on every pass.
GNI_INLINE gni_vf gni_utov(gni_vu x) {
    gni_vf high = gni_itov(gni_vu_i(x >> 16)), low = gni_itov(gni_vu_i(x & 0xffffu));
    return high * gni_vset(65536.0f) + low;
}

// float16 and bfloat16: round to nearest even, subnormals exact, NaN stays NaN.
// gni_vf16_float and gni_vfloat_f16 work on the low 16 bits of each lane, the loads and stores on packed uint16.
#define gni_vwiden GNI_FN(gni_s_widen)
#define gni_vnarrow GNI_FN(gni_s_narrow)
#define gni_vf16_float GNI_FN(gni_s_f16_float)
#define gni_vfloat_f16 GNI_FN(gni_s_float_f16)
#define gni_vbf16_float GNI_FN(gni_s_bf16_float)
#define gni_vfloat_bf16 GNI_FN(gni_s_float_bf16)
#define gni_vload_f16 GNI_FN(gni_s_load_f16)
#define gni_vstore_f16 GNI_FN(gni_s_store_f16)
#define gni_vload_bf16 GNI_FN(gni_s_load_bf16)
#define gni_vstore_bf16 GNI_FN(gni_s_store_bf16)

GNI_INLINE gni_vu gni_vwiden(gni_vh x) {
#if GNI_VW == 1
    return x;
#elif GNI_V_NEON // gcc's own conversions of 64 bits to 128 go through other registers
    return (gni_vu)vmovl_u16((uint16x4_t)x);
#else
    return __builtin_convertvector(x, gni_vu);
#endif
}
// Keeps the low 16 bits of each lane.
GNI_INLINE gni_vh gni_vnarrow(gni_vu x) {
#if GNI_VW == 1
    return (gni_vh)(x & 0xffffu);
#else
    return __builtin_convertvector(x, gni_vh);
#endif
}
GNI_INLINE gni_vf gni_vf16_float(gni_vu h) {
    gni_vu em = (h & 0x7fffu) << 13, sign = (h & 0x8000u) << 16;
    gni_vf normal = gni_vu_float(em + 0x38000000u);
    // A subnormal's mantissa is put under the exponent of 2^-14 and that 2^-14 taken away again.
    gni_vf sub = gni_vu_float(em + 0x38800000u) - gni_vset(6.103515625e-05f);
    gni_vf top = gni_vu_float(em | 0x7f800000u);
    gni_vf r = gni_ksel(gni_kult(em, gni_vsetu(0x00800000u)), sub, normal);
    r = gni_ksel(gni_kult(em, gni_vsetu(0x0f800000u)), r, top);
    return gni_vu_float(gni_vf_ubits(r) | sign);
}
GNI_INLINE gni_vu gni_vfloat_f16(gni_vf x) {
    gni_vu u = gni_vf_ubits(x), a = u & 0x7fffffffu, sign = (u >> 16) & 0x8000u;
    gni_vu normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
    // Adding 0.5 lines the bits up with float16's subnormals and rounds.
    gni_vu sub = gni_vf_ubits(gni_vu_float(a) + gni_vset(0.5f)) - 0x3f000000u;
    gni_vu r = gni_kselu(gni_kult(a, gni_vsetu(0x38800000u)), sub, normal);
    r = gni_kselu(gni_kult(a, gni_vsetu(0x47800000u)), r, gni_vsetu(0x7c00u));
    r = gni_kselu(gni_kult(gni_vsetu(0x7f800000u), a), ((a >> 13) & 0x3ffu) | 0x7e00u, r);
    return r | sign;
}
GNI_INLINE gni_vf gni_vbf16_float(gni_vu h) { return gni_vu_float(h << 16); }
GNI_INLINE gni_vu gni_vfloat_bf16(gni_vf x) {
    gni_vu u = gni_vf_ubits(x);
    gni_vu r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return gni_kselu(gni_knan(x), (u >> 16) | 0x40u, r);
}
GNI_INLINE gni_vf gni_vload_f16(const uint16_t *p) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_cvtph_ps((__m256i)gni_vloadh(p));
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_cvtph_ps((__m128i)gni_vloadh(p));
#elif GNI_V_NEON
    return (gni_vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#else
    return gni_vf16_float(gni_vwiden(gni_vloadh(p)));
#endif
}
GNI_INLINE void gni_vstore_f16(uint16_t *p, gni_vf x) {
#if defined(GNI_PASS_AVX512)
    gni_vstoreh(p, (gni_vh)_mm512_cvtps_ph((__m512)x, 0x8));
#elif defined(GNI_PASS_AVX2)
    gni_vstoreh(p, (gni_vh)_mm256_cvtps_ph((__m256)x, 0x0));
#elif GNI_V_NEON
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)x)));
#else
    gni_vstoreh(p, gni_vnarrow(gni_vfloat_f16(x)));
#endif
}
GNI_INLINE gni_vf gni_vload_bf16(const uint16_t *p) {
    return gni_vbf16_float(gni_vwiden(gni_vloadh(p)));
}
GNI_INLINE void gni_vstore_bf16(uint16_t *p, gni_vf x) {
    gni_vstoreh(p, gni_vnarrow(gni_vfloat_bf16(x)));
}

// The 64-bit products of a and b, lane by lane, as high and low words.
#define gni_vmulhilo GNI_FN(gni_s_mulhilo)
GNI_INLINE void gni_vmulhilo(gni_vu a, gni_vu b, gni_vu *hi, gni_vu *lo) {
#if defined(GNI_PASS_AVX512)
    __m512i even = _mm512_mul_epu32((__m512i)a, (__m512i)b);
    __m512i odd =
        _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), _mm512_srli_epi64((__m512i)b, 32));
    *hi = (gni_vu)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    *lo = a * b;
#elif defined(GNI_PASS_AVX2)
    __m256i even = _mm256_mul_epu32((__m256i)a, (__m256i)b);
    __m256i odd =
        _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), _mm256_srli_epi64((__m256i)b, 32));
    *hi = (gni_vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *lo = a * b;
#elif GNI_V_SSE2
    __m128i even = _mm_mul_epu32((__m128i)a, (__m128i)b);
    __m128i odd = _mm_mul_epu32(_mm_srli_epi64((__m128i)a, 32), _mm_srli_epi64((__m128i)b, 32));
    const __m128i low = _mm_set_epi32(0, -1, 0, -1);
    *hi = (gni_vu)_mm_or_si128(_mm_srli_epi64(even, 32), _mm_andnot_si128(low, odd));
    *lo = (gni_vu)_mm_or_si128(_mm_and_si128(even, low), _mm_slli_epi64(odd, 32));
#elif GNI_V_WASM
    v128_t low = wasm_u64x2_extmul_low_u32x4((v128_t)a, (v128_t)b);
    v128_t high = wasm_u64x2_extmul_high_u32x4((v128_t)a, (v128_t)b);
    *hi = (gni_vu)wasm_i32x4_shuffle(low, high, 1, 3, 5, 7);
    *lo = (gni_vu)wasm_i32x4_shuffle(low, high, 0, 2, 4, 6);
#elif GNI_VW == 1
    uint64_t p = (uint64_t)a * b;
    *hi = (uint32_t)(p >> 32);
    *lo = (uint32_t)(p & 0xffffffffu);
#else
    gni_vu h;
    for (int i = 0; i < GNI_VW; i++) h[i] = (uint32_t)(((uint64_t)a[i] * b[i]) >> 32);
    *hi = h;
    *lo = a * b;
#endif
}
