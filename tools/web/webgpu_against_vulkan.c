// Times the WebGPU layer beside the Vulkan layer: one process, one adapter, turn about.
//
//   webgpu_against_vulkan [--quick] [--only WORD]
//
// A line a row: milliseconds of both, medians of as many batches, and Vulkan's over WebGPU's: less than 1 means that WebGPU
// takes longer. A batch waits for the device once, at its end. Data is random. Built where GPUNUM_USE_WEBGPU and Dawn
// are: `cmake --build build/test --target webgpu_against_vulkan`. Dawn takes the first adapter that Vulkan names.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpunum.h"
#include "../timing.h"

enum { SIDES = 2, BATCHES = 21 };

typedef struct row row;
struct row {
    const char *name;
    int64_t m, n; // (m, n) and, where `second`, another of that shape; n 0: (m)
    bool second;
    gn_array *(*run)(gn_context *g, gn_array *a, gn_array *b);
};

static gn_array *run_copy(gn_context *g, gn_array *a, gn_array *b) { return (void)g, (void)b, gn_copy(a); }
static gn_array *run_add(gn_context *g, gn_array *a, gn_array *b) { return (void)g, gn_add(a, b); }
static gn_array *run_chain(gn_context *g, gn_array *a, gn_array *b) {
    return (void)g, gn_sigmoid(gn_add(gn_mul(gn_sin(a), b), a));
}
static gn_array *run_sum(gn_context *g, gn_array *a, gn_array *b) { return (void)g, (void)b, gn_sum(a, GN_ALL); }
static gn_array *run_sum_rows(gn_context *g, gn_array *a, gn_array *b) { return (void)g, (void)b, gn_sum(a, 1); }
static gn_array *run_softmax(gn_context *g, gn_array *a, gn_array *b) { return (void)g, (void)b, gn_softmax(a, -1); }
static gn_array *run_cumsum(gn_context *g, gn_array *a, gn_array *b) { return (void)g, (void)b, gn_cumsum(a, 0); }
static gn_array *run_sort(gn_context *g, gn_array *a, gn_array *b) { return (void)g, (void)b, gn_sort(a, 0, false); }
static gn_array *run_rfft(gn_context *g, gn_array *a, gn_array *b) {
    return (void)g, (void)b, gn_rfft(a, 0, -1, GN_FFT_BACKWARD);
}
static gn_array *run_uniform(gn_context *g, gn_array *a, gn_array *b) {
    return (void)b, gn_rand(g, GN_F32, gn_shape_of(a));
}
static gn_array *run_transpose(gn_context *g, gn_array *a, gn_array *b) {
    return (void)g, (void)b, gn_copy(gn_transpose(a));
}
static gn_array *run_matmul(gn_context *g, gn_array *a, gn_array *b) { return (void)g, gn_matmul(a, b); }
// A hundred calls, which become a few programs, and a hundred dispatches.
static gn_array *run_small(gn_context *g, gn_array *a, gn_array *b) {
    (void)g, (void)b;
    for (int i = 0; i < 50; i++) a = gn_add_s(gn_mul_s(a, 1.001), 0.1);
    return a;
}
static gn_array *run_dispatches(gn_context *g, gn_array *a, gn_array *b) {
    (void)g, (void)b;
    for (int i = 0; i < 100; i++) a = gn_eval(gn_mul_s(a, 1.001));
    return a;
}

static const row rows[] = {
    {"copy 100M", 100000000, 0, false, run_copy},
    {"add 100M", 100000000, 0, true, run_add},
    {"sigmoid(sin(a)*b+a) 100M", 100000000, 0, true, run_chain},
    {"the same, 1M", 1000000, 0, true, run_chain},
    {"sum 100M", 100000000, 0, false, run_sum},
    {"sum of rows 8192", 8192, 8192, false, run_sum_rows},
    {"softmax 8192", 8192, 8192, false, run_softmax},
    {"cumsum 10M", 10000000, 0, false, run_cumsum},
    {"sort 10M", 10000000, 0, false, run_sort},
    {"rfft 4096 x 4096", 4096, 4096, false, run_rfft},
    {"uniform 100M", 100000000, 0, false, run_uniform},
    {"transpose 8192", 8192, 8192, false, run_transpose},
    {"matmul 512", 512, 512, true, run_matmul},
    {"matmul 1024", 1024, 1024, true, run_matmul},
    {"matmul 4096", 4096, 4096, true, run_matmul},
    {"100 small ops of 10", 10, 0, false, run_small},
    {"100 dispatches of 1000", 1000, 0, false, run_dispatches},
};

static double batch(const row *r, gn_context *g, gn_array *const *in, int times) {
    gn_sync(g);
    const double start = now();
    for (int i = 0; i < times; i++)
        GN_SCOPE(g) { gn_eval(r->run(g, in[0], in[1])); }
    gn_sync(g);
    return (now() - start) / times;
}

// Runs a row on both sides. False where one of them has an error.
static bool time_row(const row *r, gn_context *const *g, bool quick) {
    const int64_t m = quick && r->m > 1000000 ? 1000000 : quick && r->n > 512 ? 512 : r->m, n = quick && r->n > 512 ? 512 : r->n;
    const gn_shape shape = r->n > 0 ? GN_SHAPE(m, n) : GN_SHAPE(m);
    gn_array *in[SIDES][2] = {{NULL, NULL}, {NULL, NULL}};
    double seconds[SIDES][BATCHES], first[SIDES];
    int times[SIDES];
    const int batches = quick ? 3 : BATCHES;
    for (int s = 0; s < SIDES; s++) {
        in[s][0] = gn_eval(gn_randn(g[s], GN_F32, shape));
        if (r->second) in[s][1] = gn_eval(gn_randn(g[s], GN_F32, shape));
        gn_sync(g[s]);
        const double start = now();
        batch(r, g[s], in[s], 1);
        first[s] = now() - start;
        batch(r, g[s], in[s], 2);
        if (gn_status_get(g[s]) != GN_OK) {
            printf("%-28s %s: %s\n", r->name, s ? "WebGPU" : "Vulkan", gn_error(g[s]));
            gn_error_clear(g[s]);
            return false;
        }
        const double once = batch(r, g[s], in[s], 2);
        times[s] = once < 1e-2 && !quick ? (int)(2e-2 / (once + 1e-6)) : 1;
    }
    for (int i = 0; i < batches; i++)
        for (int s = 0; s < SIDES; s++) seconds[s][i] = batch(r, g[s], in[s], times[s]);
    for (int s = 0; s < SIDES; s++) qsort(seconds[s], (size_t)batches, sizeof seconds[s][0], compare_doubles);
    const double vulkan = seconds[0][batches / 2], webgpu = seconds[1][batches / 2];
    printf("%-28s %10.4f %10.4f %8.2f   first time %.0f and %.0f\n", r->name, vulkan * 1e3, webgpu * 1e3, vulkan / webgpu,
           first[0] * 1e3, first[1] * 1e3);
    fflush(stdout);
    return true;
}

int main(int argc, char **argv) {
    const char *only = NULL;
    bool quick = false, good = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) quick = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = argv[++i];
        else return fprintf(stderr, "usage: webgpu_against_vulkan [--quick] [--only WORD]\n"), 2;
    }
    gn_context *g[SIDES];
    for (int s = 0; s < SIDES; s++) {
        gn_options options;
        memset(&options, 0, sizeof options);
        options.backend = s ? GN_BACKEND_WEBGPU : GN_BACKEND_VULKAN;
        options.placement = GN_PLACE_GPU;
        const double start = now();
        g[s] = gn_open(&options);
        if (g[s] == NULL) return fprintf(stderr, "%s\n", gn_open_error()), 1;
        const double opened = now();
        gn_device_info info;
        gn_device_get(g[s], &info);
        double value = 0;
        GN_SCOPE(g[s]) { value = gn_item(gn_sum(gn_ones(g[s], GN_F32, GN_SHAPE(1000)), GN_ALL)); }
        printf("%s: %s, %s; opened in %.0f ms, a first sum (%g) %.0f ms later\n", s ? "WebGPU" : "Vulkan", info.name, info.driver,
               (opened - start) * 1e3, value, (now() - opened) * 1e3);
    }
    printf("%-28s %10s %10s %8s\n", quick ? "ms (at most a million)" : "ms", "Vulkan", "WebGPU", "ratio");
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++)
        if (only == NULL || strstr(rows[i].name, only) != NULL)
            GN_SCOPE(g[0])
            GN_SCOPE(g[1]) { good = time_row(&rows[i], g, quick) && good; }
    for (int s = 0; s < SIDES; s++) gn_close(g[s]);
    return good ? 0 : 1;
}
