// >>fft_float64
// Compiles the two rooms before for float64, by including this file again: each time takes all of it, so float32's are compiled
// where the SIMD rooms are.

#undef GNI_FT_T
#undef GNI_FT_WIDE
#undef GNI_FT_I
#undef GNI_FT_W
#undef GNI_FT
#undef GNI_FT_FMA
#undef GNI_FT_FNMA

#undef GNI_FFT_PASS
#define GNI_FFT_PASS 64
#define GNI_FT_T double
#define GNI_FT_WIDE 1
#define GNI_FT_I int64_t
#ifdef GNI_PASS_PLAIN
#define GNI_FT_W 1
#else
#define GNI_FT_W (GNI_VW / 2)
#endif
#define GNI_FT(name) GNI_FN(name##_f64)
#if defined(GNI_PASS_AVX512)
#define GNI_FT_FMA(a, b, c) ((gni_fv)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)_mm512_fnmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined(GNI_PASS_AVX2)
#define GNI_FT_FMA(a, b, c) ((gni_fv)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)_mm256_fnmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#elif GNI_V_NEON
#define GNI_FT_FMA(a, b, c)                                                                        \
    ((gni_fv)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#define GNI_FT_FNMA(a, b, c)                                                                       \
    ((gni_fv)vfmsq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#elif GNI_V_WASM && defined(__wasm_relaxed_simd__)
#define GNI_FT_FMA(a, b, c) ((gni_fv)wasm_f64x2_relaxed_madd((v128_t)(a), (v128_t)(b), (v128_t)(c)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)wasm_f64x2_relaxed_nmadd((v128_t)(a), (v128_t)(b), (v128_t)(c)))
#else
#define GNI_FT_FMA(a, b, c) ((a) * (b) + (c))
#define GNI_FT_FNMA(a, b, c) ((c) - (a) * (b))
#endif
#include GPUNUM_SELF
#undef GNI_FT_T
#undef GNI_FT_WIDE
#undef GNI_FT_I
#undef GNI_FT_W
#undef GNI_FT
#undef GNI_FT_FMA
#undef GNI_FT_FNMA
#undef GNI_FT_MAX_RADIX
#undef GNI_FFT_PASS
