// >>passes
// Compiles the SIMD rooms once per instruction set, by including this file again with GNI_SIMD_PASS set.
//
// GPUNUM_PART compiles one part of the implementation alone: 1 all but the passes, 2 the pass that every CPU of the
// target runs, 3 AVX2, 4 AVX-512. Linked together they are the whole. 0 compiles nothing: the parts are elsewhere.

#ifdef GPUNUM_PART
#define GNI_HAS_PART(n) (GPUNUM_PART == (n))
#else
#define GNI_HAS_PART(n) 1
#endif
#if !GNI_HAS_PART(1)
#define GNI_PASSES_ONLY
#endif
#define GNI_SIMD_PASS 1

#if GNI_HAS_PART(2)
#ifndef GNI_NO_PLAIN
#define GNI_PASS_PLAIN 1
#define GNI_VW 1
#define GNI_FN(name) name##_plain
#include GPUNUM_SELF
#undef GNI_PASS_PLAIN
#undef GNI_VW
#undef GNI_FN
#endif
#ifdef GNI_SIMD
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#define GNI_PASS_BASE 1
#define GNI_VW 4
#define GNI_FN(name) name##_base
#include GPUNUM_SELF
#undef GNI_PASS_BASE
#undef GNI_VW
#undef GNI_FN
#endif
#endif

#if defined(GNI_X86) && GNI_HAS_PART(3)
#define GNI_PASS_AVX2 1
#define GNI_VW 8
#define GNI_FN(name) name##_avx2
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi2")
#endif
#include GPUNUM_SELF
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef GNI_PASS_AVX2
#undef GNI_VW
#undef GNI_FN
#endif

#if defined(GNI_AVX512) && GNI_HAS_PART(4)
#define GNI_PASS_AVX512 1
#define GNI_VW 16
#define GNI_FN(name) name##_avx512
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2")
#endif
#include GPUNUM_SELF
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef GNI_PASS_AVX512
#undef GNI_VW
#undef GNI_FN
#endif

#undef GNI_SIMD_PASS
