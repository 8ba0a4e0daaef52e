// How far float32 products on the GPU are from float64: the exact kernels against those on matrix units (vk_split).
//
//   matmul_error [M N K]     default 1024 1024 1024; prints Markdown
//
// The error of an element is |c - r| / (|a| |b|), r and |a| |b| in float64 on the CPU, |a| |b| the sum of the
// products' magnitudes; tables give it in units of 2^-24, histograms count elements by its binary logarithm. Of
// long columns some 128 rows are compared.
// Without matrix units of 16 x 16 x 16 both columns are the exact kernels'. Compiled with the implementation, since
// no public option names a kernel: cc -O2 -I. tools/matmul_error.c -lm -ldl -lpthread

#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 14, FIRST_BIN = -34 }; // the first holds smaller errors too, the last larger ones

static uint64_t lot = 88172645463325252u;

static double draw(void) { // [0, 1)
    lot ^= lot << 13;
    lot ^= lot >> 7;
    lot ^= lot << 17;
    return (double)(lot >> 11) * 0x1p-53;
}
static double between(double low, double high) { return low + (high - low) * draw(); }
static double sign(void) { return draw() < 0.5 ? -1 : 1; }
static double normal(void) {
    double u = draw(), v = draw();
    return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

typedef struct sizes {
    int m, n, k;
} sizes;
typedef void (*fill_fn)(sizes s, float *a, float *b);

#define EACH_A(value)                                                                              \
    for (int i = 0; i < s.m; i++)                                                                  \
        for (int l = 0; l < s.k; l++) a[i * s.k + l] = (float)(value)
#define EACH_B(value)                                                                              \
    for (int l = 0; l < s.k; l++)                                                                  \
        for (int j = 0; j < s.n; j++) b[l * s.n + j] = (float)(value)

static void fill_normal(sizes s, float *a, float *b) {
    EACH_A(normal());
    EACH_B(normal());
}
static void fill_uniform(sizes s, float *a, float *b) {
    EACH_A(draw());
    EACH_B(draw());
}
static void fill_centred(sizes s, float *a, float *b) {
    EACH_A(between(-1, 1));
    EACH_B(between(-1, 1));
}
static void fill_spread8(sizes s, float *a, float *b) {
    EACH_A(sign() * exp2(between(-8, 8)));
    EACH_B(sign() * exp2(between(-8, 8)));
}
static void fill_spread20(sizes s, float *a, float *b) {
    EACH_A(sign() * exp2(between(-20, 20)));
    EACH_B(sign() * exp2(between(-20, 20)));
}
static void fill_spread60(sizes s, float *a, float *b) {
    EACH_A(sign() * exp2(between(-60, 60)));
    EACH_B(sign() * exp2(between(-60, 60)));
}
// Neighbours in k cancel but for a part in a thousand.
static void fill_cancelling(sizes s, float *a, float *b) {
    EACH_A(l % 2 ? (double)a[i * s.k + l - 1] * (1 + 1e-3 * normal()) : normal());
    EACH_B(l % 2 ? -b[(l - 1) * s.n + j] : normal());
}
static void fill_hilbert(sizes s, float *a, float *b) {
    EACH_A(1.0 / (i + l + 1));
    EACH_B((l % 2 ? -1.0 : 1.0) / (l + j + 1));
}
static void fill_row_scales(sizes s, float *a, float *b) {
    EACH_A(ldexp(normal(), i * 37 % 120 - 60));
    EACH_B(ldexp(normal(), j * 53 % 120 - 60));
}
static void fill_graded24(sizes s, float *a, float *b) {
    EACH_A(normal() * exp2(-24.0 * l / s.k));
    EACH_B(normal() * exp2(24.0 * l / s.k));
}
static void fill_graded80(sizes s, float *a, float *b) {
    EACH_A(normal() * exp2(-80.0 * l / s.k));
    EACH_B(normal() * exp2(80.0 * l / s.k));
}
// Every row has one large element, which meets zeros alone.
static void fill_tiny(sizes s, float *a, float *b) {
    EACH_A(l == 5 ? 1e6 : between(0.5, 1) * 0x1p-6);
    EACH_B(l == 5 ? 0.0 : normal());
}
static void fill_tiny_far(sizes s, float *a, float *b) {
    EACH_A(l == 5 ? 1e6 : between(0.5, 1) * 0x1p-16);
    EACH_B(l == 5 ? 0.0 : normal());
}
// Like normal, but some rows and columns have elements that float16 parts cannot hold beside the others.
static void fill_few_bad(sizes s, float *a, float *b) {
    fill_normal(s, a, b);
    for (int q = 0; q < 9; q++) {
        a[q * 31 % s.m * s.k + q * 17 % s.k] = (float)(1e-30 * normal());
        b[q * 13 % s.k * s.n + q * 41 % s.n] = (float)(1e-12 * normal());
    }
}
static void fill_overflow(sizes s, float *a, float *b) {
    EACH_A(between(0.5, 1) * 0x1p120 / s.k);
    EACH_B(between(0.5, 1) * 0x1p7);
}
static void fill_underflow(sizes s, float *a, float *b) {
    EACH_A(normal() * 0x1p-70);
    EACH_B(normal() * 0x1p-40);
}
static void fill_infinity(sizes s, float *a, float *b) {
    fill_normal(s, a, b);
    a[s.k / 2] = (float)INFINITY;
}
static void fill_nan(sizes s, float *a, float *b) {
    fill_normal(s, a, b);
    b[s.n / 2] = (float)NAN;
}
static void fill_many_nan(sizes s, float *a, float *b) {
    fill_normal(s, a, b);
    for (int i = 0; i < s.m; i += 4) a[i * s.k + i % s.k] = (float)NAN;
}

typedef struct result {
    double most, sum;
    long count, wrong,
        bin[BINS]; // wrong: infinite or NaN where the reference is finite, or the other way
} result;

static void add_error(result *r, float have, double want, double size) {
    bool odd = !isfinite(want), same = isnan(want) ? isnan(have) : (double)have == want;
    if (odd || !isfinite(have)) {
        r->wrong += !(odd && same);
        return;
    }
    double e = size > 0 ? fabs((double)have - want) / size : have == 0 ? 0 : INFINITY;
    int bin = e > 0 ? (int)floor(log2(e)) - FIRST_BIN : 0;
    r->bin[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
    r->most = e > r->most ? e : r->most;
    r->sum += e * e;
    r->count++;
}

static int step_of(sizes s) { return s.m < 256 ? 1 : s.m / 128; } // of the rows that are compared

// want and size: the product and the sum of magnitudes.
static void reference(sizes s, const float *a, const float *b, double *want, double *size) {
    memset(want, 0, (size_t)s.m * (size_t)s.n * sizeof *want);
    memset(size, 0, (size_t)s.m * (size_t)s.n * sizeof *size);
    for (int i = 0; i < s.m; i += step_of(s))
        for (int l = 0; l < s.k; l++) {
            double x = (double)a[i * s.k + l];
            for (int j = 0; j < s.n; j++) {
                double p = x * (double)b[l * s.n + j];
                want[i * s.n + j] += p;
                size[i * s.n + j] += fabs(p);
            }
        }
}

static void force_split(gn_context *g, int mode) {
#if GNI_VULKAN
    gni_gpu_jobs *ops = g->gpu != NULL ? gni_job_state(g->gpu) : NULL;
    if (ops != NULL) ops->split_force = mode;
#else
    (void)g;
    (void)mode;
#endif
}

static bool measure(gn_context *g, int mode, sizes s, const float *a, const float *b, float *c,
                    const double *want, const double *size, result *r) {
    memset(r, 0, sizeof *r);
    force_split(g, mode);
    GN_SCOPE(g) {
        gn_array *y = gn_matmul(gn_array_from(g, GN_F32, GN_SHAPE(s.m, s.k), a),
                                gn_array_from(g, GN_F32, GN_SHAPE(s.k, s.n), b));
        gn_read(y, c, (size_t)s.m * (size_t)s.n * sizeof *c);
    }
    if (gn_status_get(g) != GN_OK) {
        fprintf(stderr, "matmul_error: %s\n", gn_error(g));
        return false;
    }
    for (int i = 0; i < s.m; i += step_of(s))
        for (int j = 0; j < s.n; j++)
            add_error(r, c[i * s.n + j], want[i * s.n + j], size[i * s.n + j]);
    return true;
}

static double rms(const result *r) { return r->count > 0 ? sqrt(r->sum / (double)r->count) : 0; }

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        fill_fn fill;
    } kind[] = {
        {"normal", fill_normal},
        {"uniform [0, 1)", fill_uniform},
        {"uniform [-1, 1)", fill_centred},
        {"+-2^uniform(-8, 8)", fill_spread8},
        {"+-2^uniform(-20, 20)", fill_spread20},
        {"+-2^uniform(-60, 60)", fill_spread60},
        {"neighbours cancel to 1e-3", fill_cancelling},
        {"Hilbert, alternating", fill_hilbert},
        {"rows and columns scaled 2^+-60", fill_row_scales},
        {"graded along k, 2^24", fill_graded24},
        {"graded along k, 2^80", fill_graded80},
        {"tiny, beside large ones that meet zeros", fill_tiny},
        {"the same, 2^36 apart", fill_tiny_far},
        {"normal, 9 rows and columns with outliers", fill_few_bad},
        {"sums near overflow", fill_overflow},
        {"products near underflow", fill_underflow},
        {"normal, one infinity", fill_infinity},
        {"normal, one NaN", fill_nan},
        {"normal, NaN in every fourth row", fill_many_nan},
    };
    enum { KINDS = sizeof kind / sizeof kind[0] };
    static result found[KINDS][2];
    sizes s = {1024, 1024, 1024};
    if (argc == 4) {
        s.m = atoi(argv[1]);
        s.n = atoi(argv[2]);
        s.k = atoi(argv[3]);
    }
    gn_options o = {0};
    o.backend = GN_BACKEND_VULKAN;
    o.placement = GN_PLACE_GPU;
    gn_context *g = gn_open(&o);
    size_t mk = (size_t)s.m * (size_t)s.k, kn = (size_t)s.k * (size_t)s.n,
           mn = (size_t)s.m * (size_t)s.n;
    float *a = (float *)malloc(mk * 4), *b = (float *)malloc(kn * 4), *c = (float *)malloc(mn * 4);
    double *want = (double *)malloc(mn * 8), *size = (double *)malloc(mn * 8);
    if (g == NULL || s.m < 1 || s.n < 1 || s.k < 1 || !a || !b || !c || !want || !size) {
        fprintf(stderr, "matmul_error: %s\n", g == NULL ? gn_open_error() : "no memory, or sizes");
        return 1;
    }
    printf("%d x %d x %d. In units of 2^-24 of |a| |b|; 'wrong': not finite as it should be.\n\n",
           s.m, s.k, s.n);
    printf("| inputs | exact max | rms | wrong | units max | rms | wrong |\n");
    printf("|---|---:|---:|---:|---:|---:|---:|\n");
    for (int q = 0; q < KINDS; q++) {
        kind[q].fill(s, a, b);
        reference(s, a, b, want, size);
        for (int p = 0; p < 2; p++)
            if (!measure(g, p == 0 ? -1 : 1, s, a, b, c, want, size, &found[q][p])) return 1;
        const result *x = &found[q][0], *y = &found[q][1];
        printf("| %s | %.3g | %.3g | %ld | %.3g | %.3g | %ld |\n", kind[q].name, x->most * 0x1p24,
               rms(x) * 0x1p24, x->wrong, y->most * 0x1p24, rms(y) * 0x1p24, y->wrong);
        fflush(stdout);
    }
    printf("\nElements in percent by log2 of their error, exact / units.\n\n| inputs |");
    for (int i = 0; i < BINS; i++)
        printf(" %s%d |", i == 0 ? "<=" : i == BINS - 1 ? ">=" : "", FIRST_BIN + i);
    printf("\n|---|");
    for (int i = 0; i < BINS; i++) printf("---:|");
    for (int q = 0; q < KINDS; q++) {
        printf("\n| %s |", kind[q].name);
        for (int i = 0; i < BINS; i++)
            printf(" %.3g / %.3g |", 100.0 * (double)found[q][0].bin[i] / (double)mn,
                   100.0 * (double)found[q][1].bin[i] / (double)mn);
    }
    printf("\n");
    gn_close(g);
    free(a);
    free(b);
    free(c);
    free(want);
    free(size);
    return 0;
}
