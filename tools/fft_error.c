// Measures the rounding errors of the Fourier transforms: root mean square of the difference to a transform in long
// double over that of the result, for gpunum and for FFTW at the same length and precision.
//
//     fft_error [--backend cpu|vulkan] [--most N] [LENGTH...]     lengths up to N (2^20); 2^24 takes 2 GB and minutes
//
// Complex normal input. Needs FFTW's long double library (libfftw3l.so.3) for the reference; its float and double ones
// are the peers. Lengths of primes above 13 are convolutions here (Bluestein) and often so in FFTW (Rader).

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpunum.h"

#if defined(__unix__)
#include <dlfcn.h>
#endif

// One of FFTW's libraries; they differ in the type behind the pointers.
typedef struct fftw {
    void *(*plan)(int, void *, void *, int, unsigned);
    void (*execute)(void *);
    void (*destroy)(void *);
} fftw;

static fftw fftw_open(const char *file, const char *prefix) {
    fftw w;
    memset(&w, 0, sizeof w);
#if defined(__unix__)
    char name[64];
    void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL) return w;
    snprintf(name, sizeof name, "%s_execute", prefix);
    *(void **)&w.execute = dlsym(lib, name);
    snprintf(name, sizeof name, "%s_destroy_plan", prefix);
    *(void **)&w.destroy = dlsym(lib, name);
    snprintf(name, sizeof name, "%s_plan_dft_1d", prefix);
    if (w.execute != NULL && w.destroy != NULL) *(void **)&w.plan = dlsym(lib, name);
#else
    (void)file;
    (void)prefix;
#endif
    return w;
}

// `rows` transforms of n points, one by one; `item` bytes a complex number. Measured plans where planning is quick, as
// the order of the operations depends on the plan.
static bool transform(const fftw *w, int64_t n, int64_t rows, void *in, void *out, bool measure, size_t item) {
    if (w->plan == NULL) return false;
    const size_t row = (size_t)n * item;
    void *x = malloc(row), *y = malloc(row);
    void *plan = x != NULL && y != NULL ? w->plan((int)n, x, y, -1, measure ? 0u : 64u) : NULL;
    for (int64_t i = 0; i < rows && plan != NULL; i++) {
        memcpy(x, (char *)in + (size_t)i * row, row);
        w->execute(plan);
        memcpy((char *)out + (size_t)i * row, y, row);
    }
    if (plan != NULL) w->destroy(plan);
    free(x);
    free(y);
    return plan != NULL;
}

static double error_of(const void *y, bool wide, const long double *want, int64_t n) {
    double error = 0.0, norm = 0.0;
    for (int64_t i = 0; i < 2 * n; i++) {
        const long double v = wide ? (long double)((const double *)y)[i] : (long double)((const float *)y)[i];
        error += (double)((v - want[i]) * (v - want[i]));
        norm += (double)(want[i] * want[i]);
    }
    return sqrt(error / norm);
}

typedef struct peers {
    fftw narrow, wide, reference;
} peers;

// Errors of gpunum forwards, of FFTW, and of gpunum there and back; false after a message.
static bool measure(gn_context *g, const peers *w, int64_t n, bool wide, double *error) {
    const int64_t rows = n < 16384 ? 16384 / n : 1, count = rows * n;
    const size_t bytes = (size_t)count * (wide ? 16 : 8), each = 2 * sizeof(long double);
    void *x = malloc(bytes), *y = malloc(bytes);
    long double *want = (long double *)malloc((size_t)count * each), *in = (long double *)malloc((size_t)count * each);
    bool ok = x != NULL && y != NULL && want != NULL && in != NULL;
    GN_SCOPE(g) {
        gn_dtype t = wide ? GN_F64 : GN_F32;
        gn_array *re = gn_randn(g, t, GN_SHAPE(rows, n));
        gn_array *z = gn_complex(re, gn_randn(g, t, GN_SHAPE(rows, n))), *f = gn_fft(z, 0, -1, GN_FFT_BACKWARD);
        ok = ok && gn_read(z, x, bytes) == GN_OK && gn_read(f, y, bytes) == GN_OK;
        for (int64_t i = 0; ok && i < 2 * count; i++)
            in[i] = wide ? (long double)((double *)x)[i] : (long double)((float *)x)[i];
        ok = ok && transform(&w->reference, n, rows, in, want, false, each);
        if (ok) error[0] = error_of(y, wide, want, count);
        ok = ok && gn_read(gn_ifft(f, 0, -1, GN_FFT_BACKWARD), y, bytes) == GN_OK;
        if (ok) error[2] = error_of(y, wide, in, count);
        error[1] = NAN;
        if (ok && transform(wide ? &w->wide : &w->narrow, n, rows, x, y, n <= 65536, wide ? 16 : 8))
            error[1] = error_of(y, wide, want, count);
    }
    if (!ok)
        fprintf(stderr, "%lld points: %s\n", (long long)n,
                gn_status_get(g) != GN_OK ? gn_error(g) : "no memory, or no libfftw3l.so.3");
    gn_error_clear(g);
    free(x);
    free(y);
    free(want);
    free(in);
    return ok;
}

int main(int argc, char **argv) {
    static const int64_t lengths[] = {4,      8,      16,     32,     64,      128,     256,     512,     1024,    2048,
                                      4096,   8192,   16384,  32768,  65536,   131072,  262144,  524288,  1 << 20, 1 << 21,
                                      1 << 22, 1 << 23, 1 << 24, 3,      5,       7,       9,       11,      13,      15,
                                      60,     100,    243,    1000,   2187,    2310,    10000,   15625,   16807,   28561,
                                      30030,  59049,  100000, 161051, 823543,  1000000, 4782969, 10000000, 17,     19,
                                      31,     97,     257,    509,    1009,    2039,    7919,    10007,   65537,   100003,
                                      524287, 1000003, 4194301};
    gn_options options;
    int64_t most = 1 << 20;
    int given = 0;
    memset(&options, 0, sizeof options);
    options.placement = GN_PLACE_GPU;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            options.backend = strcmp(argv[++i], "vulkan") == 0 ? GN_BACKEND_VULKAN : GN_BACKEND_CPU;
        else if (strcmp(argv[i], "--most") == 0 && i + 1 < argc)
            most = atoll(argv[++i]);
        else if (atoll(argv[i]) > 0)
            given = given == 0 ? i : given;
        else {
            fprintf(stderr, "usage: fft_error [--backend cpu|vulkan] [--most N] [LENGTH...]\n");
            return 2;
        }
    }
    peers w;
    w.narrow = fftw_open("libfftw3f.so.3", "fftwf");
    w.wide = fftw_open("libfftw3.so.3", "fftw");
    w.reference = fftw_open("libfftw3l.so.3", "fftwl");
    gn_context *g = gn_open(&options);
    if (g == NULL) {
        fprintf(stderr, "%s\n", gn_open_error());
        return 1;
    }
    gn_device_info info;
    gn_device_get(g, &info);
    printf("%s\n%-9s | %9s %9s %6s %9s | %9s %9s %6s %9s\n", info.name, "length", "float32", "FFTW", "ratio", "and back",
           "float64", "FFTW", "ratio", "and back");
    bool ok = true;
    const int count = given > 0 ? argc - given : (int)(sizeof lengths / sizeof lengths[0]);
    for (int i = 0; i < count && ok; i++) {
        const int64_t n = given > 0 ? atoll(argv[given + i]) : lengths[i];
        double narrow[3], wide[3];
        if (given == 0 && n > most) continue;
        ok = measure(g, &w, n, false, narrow);
        if (!ok) break;
        printf("%-9lld | %9.2e %9.2e %6.2f %9.2e |", (long long)n, narrow[0], narrow[1], narrow[0] / narrow[1], narrow[2]);
        if (info.has_f64 && measure(g, &w, n, true, wide))
            printf(" %9.2e %9.2e %6.2f %9.2e", wide[0], wide[1], wide[0] / wide[1], wide[2]);
        printf("\n");
        fflush(stdout);
    }
    gn_close(g);
    return ok ? 0 : 1;
}
