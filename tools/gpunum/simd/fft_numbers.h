// >>fft_numbers
// What rooms fft_micro and fft_passes are compiled with, of float32 or float64 as GNI_FFT_PASS says: GNI_FT_W numbers of
// type GNI_FT_T in a vector.

#if defined(GNI_PASS_AVX512) || GNI_V_NEON
#define GNI_FT_MAX_RADIX 16
#else
#define GNI_FT_MAX_RADIX 8
#endif

#if GNI_FFT_PASS == 32
#define GNI_FT_T float
#define GNI_FT_WIDE 0
#define GNI_FT_I int32_t
#define GNI_FT_W GNI_VW
#define GNI_FT(name) GNI_FN(name##_f32)
#if defined(GNI_PASS_AVX512)
#define GNI_FT_FMA(a, b, c) ((gni_fv)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)_mm512_fnmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#elif defined(GNI_PASS_AVX2)
#define GNI_FT_FMA(a, b, c) ((gni_fv)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)_mm256_fnmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#elif GNI_V_NEON
#define GNI_FT_FMA(a, b, c)                                                                        \
    ((gni_fv)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define GNI_FT_FNMA(a, b, c)                                                                       \
    ((gni_fv)vfmsq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#elif GNI_V_WASM && defined(__wasm_relaxed_simd__)
#define GNI_FT_FMA(a, b, c) ((gni_fv)wasm_f32x4_relaxed_madd((v128_t)(a), (v128_t)(b), (v128_t)(c)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)wasm_f32x4_relaxed_nmadd((v128_t)(a), (v128_t)(b), (v128_t)(c)))
#else
#define GNI_FT_FMA(a, b, c) ((a) * (b) + (c))
#define GNI_FT_FNMA(a, b, c) ((c) - (a) * (b))
#endif
#else
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
#endif
