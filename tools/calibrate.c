// Measures from which size on the GPU is worth it when the operands lie on the CPU, for each op family
// of gn_thresholds, and prints a gn_thresholds for gn_options.
//
//   calibrate [--device N] [--threads N]
//
// A figure is the median time of one op on arrays that lie on the CPU, until its result is there: on the
// GPU with the upload, without reading back. The threshold is the smallest power of two from which the GPU
// wins at every size up to the largest measured. Sizes are what gn_thresholds counts: elements, and
// m n k for a matrix product, n n for a decomposition.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpunum.h"
#include "timing.h"

enum { LEAST = 10, MOST = 26, MOST_MATMUL = 34, MOST_LINALG = 22, REPEATS = 9 }; // powers of two

// What the ops compute with: numbers, and row numbers of gather.
typedef struct inputs {
    float *a, *b;
    int32_t *rows;
} inputs;

typedef gn_array *(*op_fn)(gn_context *g, const inputs *in, int64_t n);

static gn_array *wrap(gn_context *g, float *data, gn_shape s) {
    return gn_array_wrap(g, GN_F32, s, data, NULL, NULL);
}

static gn_array *elementwise(gn_context *g, const inputs *in, int64_t n) {
    return gn_mul(gn_exp(wrap(g, in->a, GN_SHAPE(n))), wrap(g, in->b, GN_SHAPE(n)));
}

static gn_array *reduction(gn_context *g, const inputs *in, int64_t n) {
    return gn_sum(wrap(g, in->a, GN_SHAPE(n)), GN_ALL);
}

static gn_array *matmul(gn_context *g, const inputs *in, int64_t n) {
    int64_t side = (int64_t)(cbrt((double)n) + 0.5);
    gn_shape s = GN_SHAPE(side, side);
    return gn_matmul(wrap(g, in->a, s), wrap(g, in->b, s));
}

static gn_array *random_numbers(gn_context *g, const inputs *in, int64_t n) {
    (void)in;
    return gn_randn(g, GN_F32, GN_SHAPE(n));
}

static gn_array *gather(gn_context *g, const inputs *in, int64_t n) {
    gn_array *rows = gn_array_wrap(g, GN_I32, GN_SHAPE(n / 16), in->rows, NULL, NULL);
    return gn_take(wrap(g, in->a, GN_SHAPE(n / 16, 16)), rows, 0);
}

static void run_once(gn_context *g, op_fn run, const inputs *in, int64_t n) {
    GN_SCOPE(g) {
        gn_eval(run(g, in, n));
        gn_sync(g);
    }
}

static gn_array *transform(gn_context *g, const inputs *in, int64_t n) {
    return gn_rfft(wrap(g, in->a, GN_SHAPE(n)), 0, -1, GN_FFT_BACKWARD);
}

static gn_array *inverse(gn_context *g, const inputs *in, int64_t n) {
    int64_t side = (int64_t)(sqrt((double)n) + 0.5);
    return gn_inv(wrap(g, in->a, GN_SHAPE(side, side)));
}

// Median seconds of one call, -1 after an error. The clock ticks in microseconds, so short calls are
// timed several at once.
static double measure(gn_context *g, op_fn run, const inputs *in, int64_t n) {
    double t[REPEATS];
    run_once(g, run, in, n); // compiles and allocates
    double start = now();
    run_once(g, run, in, n);
    double once = now() - start;
    int calls = once < 1e-3 ? (int)(1e-3 / (once + 1e-6)) + 1 : 1;
    for (int i = 0; i < REPEATS; i++) {
        start = now();
        for (int k = 0; k < calls; k++) run_once(g, run, in, n);
        t[i] = (now() - start) / calls;
    }
    if (gn_status_get(g) != GN_OK) {
        fprintf(stderr, "calibrate: %s\n", gn_error(g));
        gn_error_clear(g);
        return -1;
    }
    qsort(t, REPEATS, sizeof *t, compare_doubles);
    return t[REPEATS / 2];
}

// The threshold; prints the table on the way.
static int64_t calibrate(const char *name, op_fn run, int most, gn_context *cpu, gn_context *gpu,
                         const inputs *in) {
    int64_t threshold = -1;
    printf("\n%s\n%12s %12s %12s %8s\n", name, "size", "CPU us", "GPU us", "CPU/GPU");
    for (int e = LEAST; e <= most; e += 2) {
        int64_t n = (int64_t)1 << e;
        double c = measure(cpu, run, in, n), v = measure(gpu, run, in, n);
        if (c < 0 || v < 0) return -1;
        printf("%12lld %12.1f %12.1f %8.2f\n", (long long)n, 1e6 * c, 1e6 * v, c / v);
        fflush(stdout);
        if (v >= c)
            threshold = -1;
        else if (threshold < 0)
            threshold = n;
        if (c > 0.5 || v > 0.5) break; // short is what it should be
    }
    // The GPU never won: the next size that was not measured.
    return threshold < 0 ? (int64_t)1 << (most + 2) : threshold;
}

static gn_context *open_on(gn_backend backend, int device, int threads) {
    gn_options o = {0};
    o.backend = backend;
    o.device = device;
    o.threads = threads;
    o.placement = backend == GN_BACKEND_CPU ? GN_PLACE_CPU : GN_PLACE_GPU;
    return gn_open(&o);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        op_fn run;
        int most;
    } families[] = {{"elementwise", elementwise, MOST},
                    {"reduction", reduction, MOST},
                    {"matmul", matmul, MOST_MATMUL},
                    {"random", random_numbers, MOST},
                    {"copy", gather, MOST},
                    {"fft", transform, MOST},
                    {"linalg", inverse, MOST_LINALG}};
    int device = 0, threads = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--device") == 0)
            device = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--threads") == 0)
            threads = atoi(argv[i + 1]);
        else
            argc = 2;
    }
    if (argc % 2 == 0) {
        fprintf(stderr, "usage: calibrate [--device N] [--threads N]\n");
        return 2;
    }
    gn_context *cpu = open_on(GN_BACKEND_CPU, 0, threads);
    gn_context *gpu = open_on(GN_BACKEND_VULKAN, device, threads);
    inputs in;
    in.a = (float *)malloc(sizeof *in.a << MOST);
    in.b = (float *)malloc(sizeof *in.b << MOST);
    in.rows = (int32_t *)malloc(sizeof *in.rows << (MOST - 4));
    gn_device_info c, v;
    int status = 1;
    if (!cpu || !gpu || !in.a || !in.b || !in.rows) {
        fprintf(stderr, "calibrate: out of memory\n");
        goto out;
    }
    gn_device_get(cpu, &c);
    gn_device_get(gpu, &v);
    if (v.backend != GN_BACKEND_VULKAN) {
        printf("No GPU, so there is nothing to decide: %s\n", v.why);
        status = 0;
        goto out;
    }
    printf("CPU: %s, GPU: %s\n", c.name, v.name);
    srand(1);
    for (int64_t i = 0; i < (int64_t)1 << MOST; i++) {
        in.a[i] = (float)rand() / (float)RAND_MAX;
        in.b[i] = (float)rand() / (float)RAND_MAX;
    }
    // Within the smallest array that rows are taken from.
    for (int64_t i = 0; i < (int64_t)1 << (MOST - 4); i++) in.rows[i] = rand() % (1 << (LEAST - 4));
    gn_thresholds t = {0};
    int64_t *const out[] = {&t.elementwise, &t.reduction, &t.matmul, &t.random, &t.copy, &t.fft,
                            &t.linalg};
    for (int f = 0; f < 7; f++) {
        *out[f] = calibrate(families[f].name, families[f].run, families[f].most, cpu, gpu, &in);
        if (*out[f] < 0) goto out;
    }
    printf("\noptions.thresholds = (gn_thresholds){%lld, %lld, %lld, %lld, %lld, %lld, %lld};\n",
           (long long)t.elementwise, (long long)t.reduction, (long long)t.matmul,
           (long long)t.random, (long long)t.copy, (long long)t.fft, (long long)t.linalg);
    printf("                  // elementwise, reduction, matmul, random, copy, fft, linalg\n");
    status = 0;
out:
    free(in.rows);
    free(in.b);
    free(in.a);
    gn_close(gpu);
    gn_close(cpu);
    return status;
}
