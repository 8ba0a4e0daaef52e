// >>config
// Switches resolved, system headers, compiler set-up. Nothing here has state.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#define GPUNUM_PART 1
#endif

#ifdef __FAST_MATH__
#error "gpunum.h: -ffast-math breaks NaN, Inf and rounding; compile the implementation without it"
#endif

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "gpunum.h: this is a big-endian machine, on which numbers would be wrong; a little-endian one is needed"
#endif
#endif

// The SIMD rooms are compiled by including this file again under the name it is known by.
#ifndef GPUNUM_SELF
#define GPUNUM_SELF "gpunum.h"
#endif

// In a page there is no Vulkan, and threads and vectors are what it was compiled with (-pthread, -msimd128).
#ifdef __EMSCRIPTEN__
#ifndef GPUNUM_NO_VULKAN
#define GPUNUM_NO_VULKAN
#endif
#if !defined(__EMSCRIPTEN_PTHREADS__) && !defined(GPUNUM_NO_THREADS)
#define GPUNUM_NO_THREADS
#endif
#if !defined(__wasm_simd128__) && !defined(GPUNUM_NO_SIMD)
#define GPUNUM_NO_SIMD
#endif
#include <emscripten/stack.h>
#define GNI_STACK (384 << 10) // bytes; beyond its stack a module writes over its own data
#endif

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#ifndef GPUNUM_NO_THREADS
#include <pthread.h>
#include <sched.h>
#endif
#endif

#if defined(__GNUC__) || defined(__clang__)
#define GNI_GNU 1
#endif
#if defined(__x86_64__) && defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD) && !defined(_WIN32)
#define GNI_X86 1 // AVX code of gcc on Windows misaligns the stack
#elif defined(__aarch64__) && defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
#define GNI_NEON 1
#include <arm_neon.h>
#elif defined(__wasm_simd128__) && !defined(GPUNUM_NO_SIMD)
#define GNI_WASM 1
#include <wasm_simd128.h>
#endif
#if defined(GNI_X86) || defined(GNI_NEON) || defined(GNI_WASM)
#define GNI_NO_PLAIN 1 // has vectors of 128 bits wherever it runs: no pass without
#endif
#if defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
#define GNI_SIMD 1
#endif
#if defined(GNI_X86) && !defined(GPUNUM_NO_AVX512) && (defined(__OPTIMIZE__) || defined(GPUNUM_PART))
#define GNI_AVX512 1 // without optimisation two passes are enough to wait for
#endif
#ifdef GNI_X86
#if !defined(__clang__) && __GNUC__ >= 9 && __GNUC__ <= 13 && !defined(_IMMINTRIN_H_INCLUDED)
// What is used of immintrin.h, whose other two thirds take 30 to 60 MB of memory. Of these versions the parts are known.
#define _IMMINTRIN_H_INCLUDED // which they insist on
#include <smmintrin.h>
#include <avxintrin.h>
#include <avx2intrin.h>
#include <fmaintrin.h>
#include <f16cintrin.h>
#ifdef GNI_AVX512
#include <avx512fintrin.h>
#include <avx512vlintrin.h>
#include <avx512bwintrin.h>
#include <avx512dqintrin.h>
#include <avx512vlbwintrin.h>
#include <avx512vldqintrin.h>
#endif
#undef _IMMINTRIN_H_INCLUDED
#else
#include <immintrin.h>
#endif
#endif

// A product and a sum round separately unless a kernel asks for a fused multiply-add: the same bits
// from every compiler and every flag.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#if __GNUC__ >= 8 && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
// Passes of -O2 that take an eighth of its time and make nothing faster here.
#pragma GCC optimize("no-gcse", "no-tree-vrp", "no-store-merging", "no-tree-tail-merge", "no-cse-follow-jumps")
#pragma GCC optimize("no-rerun-cse-after-loop", "no-isolate-erroneous-paths-dereference")
#pragma GCC optimize("no-ipa-cp", "no-ipa-vrp", "no-ipa-bit-cp")
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" // in g++'s own avx512fintrin.h
#ifndef __OPTIMIZE__ // intrinsics are macros then, and warn where they are used
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#endif

// Transforms, whose passes are written in vectors without a loop to improve, what waits for a device, and public functions
// made of others: -O1 makes them as fast as -O2 does, in two thirds of the time. The list of rooms says which these are.
// (Products and decompositions lose by it: up to half of their speed where matrices are small.)
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define GNI_O1_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize(\"O1\")")
#define GNI_O1_END _Pragma("GCC pop_options")
// The one of the more expensive passes that vectors of 256 bits cannot do without: it clears their upper halves at the end
// of a function, for which code of SSE2 would wait.
#define GNI_O1_VECTORS _Pragma("GCC optimize(\"expensive-optimizations\", \"no-thread-jumps\")")
#else
#define GNI_O1_BEGIN
#define GNI_O1_END
#define GNI_O1_VECTORS
#endif

// What only calls others gets -Os without the passes that cost time and win nothing there: a fifth less text than by -O1.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8 && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define GNI_OS_BEGIN                                                                                                   \
    _Pragma("GCC push_options")                                                                                        \
    _Pragma("GCC optimize(\"Os\", \"no-tree-vrp\", \"no-tree-pre\", \"no-gcse\", \"no-expensive-optimizations\")")       \
    _Pragma("GCC optimize(\"no-thread-jumps\", \"no-code-hoisting\", \"no-store-merging\", \"no-tree-tail-merge\")")     \
    _Pragma("GCC optimize(\"no-crossjumping\", \"no-cse-follow-jumps\", \"no-peephole2\", \"no-ipa-sra\")")              \
    _Pragma("GCC optimize(\"no-ipa-cp\", \"no-ipa-icf\", \"no-schedule-insns2\", \"no-tree-vectorize\")")                \
    _Pragma("GCC optimize(\"no-isolate-erroneous-paths-dereference\", \"no-shrink-wrap\", \"no-tree-sra\")")
#define GNI_OS_END _Pragma("GCC pop_options")
#else
#define GNI_OS_BEGIN GNI_O1_BEGIN
#define GNI_OS_END GNI_O1_END
#endif

#if defined(GPUNUM_NO_VULKAN) && !defined(GPUNUM_USE_WEBGPU)
#define GNI_CPU_ALONE 1 // no device layer is compiled: what decides for a GPU says so to the compiler, which drops the rest
#else
#define GNI_CPU_ALONE 0
#endif

#define GNI_UNUSED(x) ((void)(x))
#define GNI_CAST(T, x) ((T)(x))
#define GNI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define GNI_MAX(a, b) ((a) > (b) ? (a) : (b))
#define GNI_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#if defined(GNI_GNU)
#define GNI_RESTRICT __restrict__
// For helpers of kernels: a call inside an inner loop would cost more than they do.
#ifdef __OPTIMIZE__
#define GNI_INLINE static inline __attribute__((always_inline))
#else
#define GNI_INLINE static inline
#endif
#define GNI_PRINTF(text, first) __attribute__((format(printf, text, first)))
// gcc leaves registers' upper halves uncleared around a function of which it knows what it changes, and code of SSE2 waits.
#if defined(__clang__) || __GNUC__ < 8
#define GNI_NOINLINE __attribute__((noinline))
#else
#define GNI_NOINLINE __attribute__((noipa))
#endif
#define GNI_MAYBE_UNUSED __attribute__((unused))
#else
#define GNI_RESTRICT __restrict
#define GNI_INLINE static inline
#define GNI_PRINTF(text, first)
#define GNI_NOINLINE __declspec(noinline)
#define GNI_MAYBE_UNUSED
#endif
// Declares a variable, all of it 0.
#define GNI_ZEROED(type, name) \
    type name;                 \
    memset(&name, 0, sizeof name)
#define GNI_OPTIONS(type, name, given) \
    GNI_ZEROED(type, name);            \
    if (given != NULL) name = *given
#ifdef __MINGW32__
#undef GNI_PRINTF
#define GNI_PRINTF(text, first) __attribute__((format(gnu_printf, text, first)))
#endif

#define GNI_INF ((double)INFINITY)
#define GNI_NAN ((double)NAN)
#define GNI_LN2 0.69314718055994530942
#define GNI_PI_2 1.57079632679489661923
#define GNI_LN10 2.30258509299404568402
#define GNI_2_SQRTPI 1.12837916709551257390
#define GNI_SQRT1_2 0.70710678118654752440
#define GNI_1_SQRT2PI 0.39894228040143267794
#define GNI_GELU_SLOPE 1.5957691216057307117 // 2 sqrt(2 / pi)
#define GNI_GELU_CUBE 0.044715
