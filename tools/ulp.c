// Measures the errors of gpunum.h's vector math, in units in the last place of the float32 result, against the C
// library's float64 functions, for every SIMD pass that this machine can run.
//
//     cc -O2 -o ulp tools/ulp.c -lm -lpthread -ldl     (from the repository's root)
//     ./ulp                 table; every 97th float, all special values; two-argument functions on 2^24 random pairs
//     ./ulp --stride 1009   coarser          ./ulp --full   every float
//     ./ulp --speed         speed table too  ./ulp sin pow  only these functions
//
// A wrong NaN, infinity or sign of zero counts as a failure and makes the exit status 1, and so does an error above the
// function's bound.
#ifdef ULP_INCLUDE
#include ULP_INCLUDE
#else
#define GPUNUM_IMPLEMENTATION
#define GPUNUM_NO_VULKAN
#include "../gpunum.h"
#endif
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The loops below take the functions in, so they are compiled by the same rule: nothing is fused that does not ask.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

enum { BLOCK = 4096 };

// ---- the functions

static double ref_sigmoid(double x) {
    double e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
static double ref_softplus(double x) {
    return x != x ? x : fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double ref_erfinv(double x) { return gni_derfinv(x, 3); }
static double ref_gelu(double x) {
    if (x == -INFINITY) return -0.0; // the limit
    return x * (0.5 * erfc(-x * 0.70710678118654752440));
}
static double ref_mod(double x, double y) {
    double r = fmod(x, y);
    if (r == 0) return copysign(0.0, y);
    return (r < 0) != (y < 0) ? r + y : r;
}

// Near its root the sum about it.
static double ref_digamma(double x) {
    double d = (x - 1.4616321449683622) - 9.54999543e-17, y = 0;
    static const double c[] = {-0.0721995612564547, 0.107824050691262366, -0.163942705442406528,
                               0.258499760955651011, -0.442763168983592106, 0.96767224544762117};
    if (fabs(d) > 1e-3) return gni_ddigamma(x);
    for (int i = 0; i < 6; i++) y = (y + c[i]) * d;
    return y;
}
// What below 0 an error is measured against: the largest of the value, 1 and the two parts of the reflection.
static double least_size(double (*ref)(double), double x) {
    if (!(x < 0) || x == floor(x) || (ref != gni_dlgamma && ref != ref_digamma)) return 0;
    const double right = ref(1 - x), y = ref(x);
    return fmax(fmax(1, fabs(right)), ref == ref_digamma ? fabs(y - right) : fabs(y + right));
}

// X(name, reference, bound in ulp)
#define ONE_ARGUMENT(X)                                                                            \
    X(exp, exp, 2)                                                                                 \
    X(exp2, exp2, 4)                                                                               \
    X(expm1, expm1, 4)                                                                             \
    X(log, log, 2)                                                                                 \
    X(log2, log2, 4)                                                                               \
    X(log10, log10, 4)                                                                             \
    X(log1p, log1p, 4)                                                                             \
    X(sin, sin, 2)                                                                                 \
    X(cos, cos, 2)                                                                                 \
    X(tan, tan, 4)                                                                                 \
    X(asin, asin, 4)                                                                               \
    X(acos, acos, 4)                                                                               \
    X(atan, atan, 4)                                                                               \
    X(sinh, sinh, 4)                                                                               \
    X(cosh, cosh, 4)                                                                               \
    X(tanh, tanh, 2)                                                                               \
    X(asinh, asinh, 4)                                                                             \
    X(acosh, acosh, 4)                                                                             \
    X(atanh, atanh, 4)                                                                             \
    X(erf, erf, 2)                                                                                 \
    X(erfc, erfc, 1.5)                                                                             \
    X(erfinv, ref_erfinv, 2.5)                                                                      \
    X(lgamma, gni_dlgamma, 2)                                                                      \
    X(digamma, ref_digamma, 4)                                                                     \
    X(cbrt, cbrt, 4)                                                                               \
    X(sigmoid, ref_sigmoid, 4)                                                                     \
    X(softplus, ref_softplus, 4)                                                                   \
    X(gelu, ref_gelu, 4)
#define TWO_ARGUMENTS(X)                                                                           \
    X(pow, pow, 4)                                                                                 \
    X(atan2, atan2, 4)                                                                             \
    X(hypot, hypot, 4)                                                                             \
    X(fmod, fmod, 0.5)                                                                             \
    X(mod, ref_mod, 0.5)

// One loop per function and pass: out[i] = f(x[i]) or f(x[i], y[i]); n is a multiple of 16.
#define LOOP1(name, pass, vw, target)                                                              \
    target static void loop_##name##_##pass(const float *x, const float *y, float *out, int n) {   \
        (void)y;                                                                                   \
        for (int i = 0; i < n; i += vw)                                                            \
            gni_s_store_##pass(out + i, gni_vm_##name##_##pass(gni_s_load_##pass(x + i)));         \
    }
#define LOOP2(name, pass, vw, target)                                                              \
    target static void loop_##name##_##pass(const float *x, const float *y, float *out, int n) {   \
        for (int i = 0; i < n; i += vw)                                                            \
            gni_s_store_##pass(out + i, gni_vm_##name##_##pass(gni_s_load_##pass(x + i),           \
                                                               gni_s_load_##pass(y + i)));         \
    }
#define NO_TARGET
#define ON_PLAIN_1(name, ref, bound) LOOP1(name, plain, 1, NO_TARGET)
#define ON_PLAIN_2(name, ref, bound) LOOP2(name, plain, 1, NO_TARGET)
#ifndef GNI_X86
ONE_ARGUMENT(ON_PLAIN_1)
TWO_ARGUMENTS(ON_PLAIN_2)
#endif
#if defined(__GNUC__)
#define HAVE_BASE 1
#define ON_BASE_1(name, ref, bound) LOOP1(name, base, 4, NO_TARGET)
#define ON_BASE_2(name, ref, bound) LOOP2(name, base, 4, NO_TARGET)
ONE_ARGUMENT(ON_BASE_1)
TWO_ARGUMENTS(ON_BASE_2)
#endif
#if defined(__GNUC__) && defined(__x86_64__) && !defined(_WIN32)
#define HAVE_AVX 1
#define AVX2 __attribute__((target("avx2,fma,f16c,bmi2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2")))
#define ON_AVX2_1(name, ref, bound) LOOP1(name, avx2, 8, AVX2)
#define ON_AVX2_2(name, ref, bound) LOOP2(name, avx2, 8, AVX2)
ONE_ARGUMENT(ON_AVX2_1)
TWO_ARGUMENTS(ON_AVX2_2)
#endif
#if defined(HAVE_AVX) && defined(GNI_AVX512)
#define HAVE_AVX512 1
#define ON_AVX512_1(name, ref, bound) LOOP1(name, avx512, 16, AVX512)
#define ON_AVX512_2(name, ref, bound) LOOP2(name, avx512, 16, AVX512)
ONE_ARGUMENT(ON_AVX512_1)
TWO_ARGUMENTS(ON_AVX512_2)
#endif

typedef void (*loop_fn)(const float *x, const float *y, float *out, int n);
enum { PLAIN, BASE, AVX2_PASS, AVX512_PASS, PASSES };
static const char *const pass_name[PASSES] = {"plain", "base", "avx2", "avx512"};

typedef struct function {
    const char *name;
    double (*ref1)(double);
    double (*ref2)(double, double);
    double bound;
    loop_fn loop[PASSES];
} function;

#ifdef HAVE_AVX512
#define LOOPS(name)                                                                                \
    { NULL, loop_##name##_base, loop_##name##_avx2, loop_##name##_avx512 }
#elif defined(HAVE_AVX)
#define LOOPS(name) { NULL, loop_##name##_base, loop_##name##_avx2, NULL }
#elif defined(HAVE_BASE)
#define LOOPS(name) { loop_##name##_plain, loop_##name##_base, NULL, NULL }
#else
#define LOOPS(name) { loop_##name##_plain, NULL, NULL, NULL }
#endif
#define ROW1(name, ref, bound) {#name, ref, NULL, bound, LOOPS(name)},
#define ROW2(name, ref, bound) {#name, NULL, ref, bound, LOOPS(name)},
static const function functions[] = {ONE_ARGUMENT(ROW1) TWO_ARGUMENTS(ROW2)};

static int runs_here(int pass) {
#ifdef HAVE_AVX
    if (pass == AVX2_PASS) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (pass == AVX512_PASS)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return pass <= BASE;
}

// ---- measuring

typedef struct worst {
    double ulp;
    float x, y, got;
    double want;
    long long wrong;
    float wrong_x, wrong_y, wrong_got;
    double wrong_want;
} worst;

static float from_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static uint64_t bits64(double d) {
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

// The error of got in ulps of a float32 near want, or -1 where NaN, infinity or the sign of zero is wrong.
static double ulp_error(double want, float got, double least) {
    double g = got, size = fabs(want), top = 340282366920938463463374607431768211456.0;
    if (want != want || g != g) return want != want && g != g ? 0 : -1;
    if (isinf(want)) return want == g ? 0 : -1;
    if (want == 0) return g == 0 && !signbit(want) == !signbit(g) ? 0 : -1;
    if (isinf(g)) {
        if (size < 3.4e38 || (g > 0) != (want > 0)) return -1;
        g = copysign(top, want);
        if (size > top) return 0;
    }
    if (size > top) size = top;
    if (size < least) size = least;
    int e = (int)(bits64(size) >> 52) - 1023 - 23;
    uint64_t step = (uint64_t)((e < -149 ? -149 : e > 104 ? 104 : e) + 1023) << 52;
    double ulp;
    memcpy(&ulp, &step, sizeof ulp);
    return fabs(g - want) / ulp;
}

static void check_block(const function *f, const float *x, const float *y, int n, worst *w) {
    static double want[BLOCK], least[BLOCK];
    static float got[BLOCK];
    for (int i = 0; i < n; i++) want[i] = f->ref1 ? f->ref1(x[i]) : f->ref2(x[i], y[i]);
    for (int i = 0; i < n; i++) least[i] = least_size(f->ref1, x[i]);
    for (int pass = 0; pass < PASSES; pass++) {
        if (!f->loop[pass] || !runs_here(pass)) continue;
        worst *v = &w[pass];
        f->loop[pass](x, y, got, n);
        for (int i = 0; i < n; i++) {
            double e = ulp_error(want[i], got[i], least[i]);
            if (e < 0) {
                if (v->wrong++ == 0) {
                    v->wrong_x = x[i], v->wrong_y = y[i];
                    v->wrong_got = got[i], v->wrong_want = want[i];
                }
            } else if (e > v->ulp) {
                v->ulp = e, v->x = x[i], v->y = y[i], v->got = got[i], v->want = want[i];
            }
        }
    }
}

static const uint32_t special[] = {
    0x00000000u, 0x00000001u, 0x007fffffu, 0x00800000u, 0x00800001u, 0x2f800000u, 0x33000000u, 0x39800000u,
    0x3a83126fu, 0x3e800000u, 0x3f000000u, 0x3f400000u, 0x3f7fffffu, 0x3f800000u, 0x3f800001u, 0x3fc00000u,
    0x3fc90fdbu, 0x40000000u, 0x40200000u, 0x40400000u, 0x40490fdbu, 0x40800000u, 0x40a00000u, 0x41200000u,
    0x42aeac50u, 0x42b17218u, 0x42cff1b4u, 0x42fe0000u, 0x43000000u, 0x43160000u, 0x45000000u, 0x46480000u,
    0x48000000u, 0x4b000000u, 0x4b000001u, 0x4b7fffffu, 0x4b800000u, 0x4f000000u, 0x4f800000u, 0x5f000000u,
    0x7e800000u, 0x7effffffu, 0x7f7fffffu, 0x7f800000u, 0x7fc00000u, 0x7f800001u, 0x7fffffffu};
enum { SPECIALS = (int)(sizeof special / sizeof special[0]) };
static float special_value(int i) {
    return from_bits(special[i % SPECIALS] ^ (i >= SPECIALS ? 0x80000000u : 0));
}

static void measure1(const function *f, uint64_t stride, worst *w) {
    static float x[BLOCK];
    int n = 0;
    for (int i = 0; i < 2 * SPECIALS; i++) x[n++] = special_value(i);
    while (n % 16) x[n++] = 1;
    check_block(f, x, x, n, w);
    for (uint64_t u = 0; u < 4294967296u;) {
        for (n = 0; n < BLOCK; n++, u += stride) x[n] = from_bits((uint32_t)u);
        check_block(f, x, x, n, w);
    }
}

// Special values against each other; then random pairs: all bit patterns, numbers of everyday size, and close ones.
static uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}
static void measure2(const function *f, uint64_t stride, worst *w) {
    static float x[BLOCK], y[BLOCK];
    uint64_t state = 1, pairs = stride == 1 ? 1u << 28 : (uint64_t)(1u << 24) * 97 / stride;
    int n = 0;
    for (int i = 0; i < 4 * SPECIALS * SPECIALS; i++) {
        x[n] = special_value(i % (2 * SPECIALS)), y[n++] = special_value(i / (2 * SPECIALS));
        if (n == BLOCK) check_block(f, x, y, n, w), n = 0;
    }
    while (n % 16) x[n] = 1, y[n++] = 1;
    check_block(f, x, y, n, w);
    for (uint64_t done = 0; done < pairs; done += BLOCK) {
        int kind = (int)(done / BLOCK % 4);
        for (n = 0; n < BLOCK; n++) {
            uint32_t a = next_random(&state), b = next_random(&state);
            if (kind == 1) a = (a & 0x87ffffffu) + 0x3c000000u, b = (b & 0x87ffffffu) + 0x3c000000u;
            if (kind == 2) b = a + (b & 0xffffu) - 0x8000u;
            if (kind == 3) a = 0x3f780000u + (a & 0xfffffu), b = (b & 0x87ffffffu) + 0x42000000u;
            x[n] = from_bits(a), y[n] = from_bits(b);
        }
        check_block(f, x, y, n, w);
    }
}

static double seconds(void) {
    return 1e-9 * (double)gni_now_ns();
}

// Elements per nanosecond on data that fits the first-level cache: values between 0.1 and 2.1, best of several.
static double speed(const function *f, int pass) {
    static float x[2 * BLOCK], y[2 * BLOCK], out[2 * BLOCK];
    int n = pass == PLAIN ? 1024 : 2048, repeat = pass == PLAIN ? 100 : 1000;
    for (int i = 0; i < n; i++) x[i] = 0.1f + 2.0f * (float)(i * 37 % n) / (float)n, y[i] = x[n - 1 - i] - 1;
    int inside = !strcmp(f->name, "asin") || !strcmp(f->name, "acos") || !strcmp(f->name, "atanh");
    for (int i = 0; i < n; i++) x[i] = inside ? x[i] * 0.45f : !strcmp(f->name, "acosh") ? x[i] + 1 : x[i];
    double best = 0;
    for (int k = 0; k < 15; k++) {
        double start = seconds();
        for (int i = 0; i < repeat; i++) f->loop[pass](x, y, out, n);
        double rate = (double)n * repeat / (seconds() - start) * 1e-9;
        if (rate > best) best = rate;
    }
    return best;
}

static int wanted(const char *name, int count, char **names) {
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return 1;
    return count == 0;
}

int main(int argc, char **argv) {
    uint64_t stride = 97;
    int with_speed = 0, with_errors = 1, names = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--full")) stride = 1;
        else if (!strcmp(argv[i], "--speed")) with_speed = 1;
        else if (!strcmp(argv[i], "--speed-only")) with_speed = 1, with_errors = 0;
        else if (!strcmp(argv[i], "--stride") && i + 1 < argc) stride = strtoull(argv[++i], NULL, 10);
        else argv[names++] = argv[i];
    }
    if (stride == 0) stride = 97;
    int count = (int)(sizeof functions / sizeof functions[0]);
    if (with_errors) {
        printf("Largest error in ulp, every %llu%s float.\n\n%-10s %5s", (unsigned long long)stride,
               stride == 1 ? "st" : "th", "function", "bound");
        for (int p = 0; p < PASSES; p++)
            if (functions[0].loop[p] && runs_here(p)) printf(" %7s", pass_name[p]);
        printf("   worst at (last pass)\n");
    }
    for (int i = 0; with_errors && i < count; i++) {
        const function *f = &functions[i];
        worst w[PASSES];
        memset(w, 0, sizeof w);
        if (!wanted(f->name, names, argv)) continue;
        if (f->ref1) measure1(f, stride, w);
        else measure2(f, stride, w);
        printf("%-10s %5.1f", f->name, f->bound);
        int last = 0;
        for (int p = 0; p < PASSES; p++) {
            if (!f->loop[p] || !runs_here(p)) continue;
            printf(" %7.3f", w[p].ulp);
            if (w[p].ulp > f->bound || w[p].wrong) failed = 1;
            last = p;
        }
        printf("   %.9g", (double)w[last].x);
        if (f->ref2) printf(", %.9g", (double)w[last].y);
        printf("\n");
        for (int p = 0; p < PASSES; p++)
            if (w[p].wrong)
                printf("    %s: %lld wrong, first %s(%.9g, %.9g) = %.9g, should be %.9g\n", pass_name[p], w[p].wrong,
                       f->name, (double)w[p].wrong_x, (double)w[p].wrong_y, (double)w[p].wrong_got, w[p].wrong_want);
        fflush(stdout);
    }
    if (with_speed) {
        printf("\nElements per nanosecond, one thread, data in the first-level cache.\n\n%-10s", "function");
        for (int p = 0; p < PASSES; p++)
            if (functions[0].loop[p] && runs_here(p)) printf(" %7s", pass_name[p]);
        printf("\n");
    }
    for (int i = 0; with_speed && i < count; i++) {
        if (!wanted(functions[i].name, names, argv)) continue;
        printf("%-10s", functions[i].name);
        for (int p = 0; p < PASSES; p++)
            if (functions[i].loop[p] && runs_here(p)) printf(" %7.2f", speed(&functions[i], p));
        printf("\n");
        fflush(stdout);
    }
    return failed;
}
