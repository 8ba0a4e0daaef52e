// Measures how fast each kernel of the matrix product is on the present device and prints the tables of rooms
// vk_matmul and vk_split with these figures. With --save they go to a file in DIR too, which gn_open reads where
// gn_options.cache_dir is DIR.
//
//   tune [--device N] [--save DIR]
//
// A kernel makes products of as many of its tiles as the device has multiprocessors, and of up to eight times as
// many. `alone` is its rate in the first, `rate` the best, `resident` the fewest tiles on a multiprocessor that come
// within 3 % of it.
//
// Convolutions are products of these kernels. Norms and attention have a kernel for each dtype, whose blocks follow from the
// shapes and the multiprocessors: nothing to choose.

#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 4096, MOST_EACH = 8, REPEATS = 5 };

#if GNI_VULKAN

typedef struct table {
    const char *name;
    const gni_job_tile *tiles;
    int count;
    gn_dtype dtype;
} table;

#define TABLE(tiles, dtype) {#tiles, tiles, (int)(sizeof tiles / sizeof tiles[0]), dtype}
static const table tables[] = {
    TABLE(gni_job_real_tiles, GN_F32),
    TABLE(gni_job_f64_tiles, GN_F64),
    TABLE(gni_job_half_tiles, GN_F16),
    TABLE(gni_job_bfloat_tiles, GN_BF16),
};
enum { TABLES = sizeof tables / sizeof tables[0] };

// Makes this the one that is chosen, with k in one part.
static void choose(gni_gpu *gpu, gni_gpu_rates *rates, const table *from, int which) {
    gni_gpu_jobs *ops = gni_job_state(gpu);
    if (ops != NULL) memset(ops->choices, 0, sizeof ops->choices);
    for (int i = 0; i < from->count; i++) {
        gni_gpu_rates *r = &rates[from->tiles[i].module];
        r->rate = r->alone = i == which ? GNI_VK_MOST_RATE : 1;
        r->resident = 1;
    }
}

static void multiply(gn_context *g, gn_array *a, gn_array *b, int times) {
    for (int i = 0; i < times; i++) GN_SCOPE(g) { gn_eval(gn_matmul(a, b)); }
    gn_sync(g);
}

// Median microseconds of a product. A GPU takes a while of work to raise its clock.
static double measure(gn_context *g, gn_array *a, gn_array *b) {
    double t[REPEATS];
    multiply(g, a, b, 1); // compiles
    double start = now();
    multiply(g, a, b, 4);
    int calls = 1 + (int)(0.01 / ((now() - start) / 4 + 1e-6));
    for (start = now(); now() - start < 0.1;) multiply(g, a, b, calls);
    for (int i = 0; i < REPEATS; i++) {
        start = now();
        multiply(g, a, b, calls);
        t[i] = (now() - start) / calls * 1e6;
    }
    qsort(t, REPEATS, sizeof *t, compare_doubles);
    return t[REPEATS / 2];
}

static int thousands(double rate) {
    int r = (int)(rate / 1000.0 + 0.5);
    return GNI_MIN(GNI_MAX(r, 1), (int)GNI_VK_MOST_RATE);
}

// Figures from the rates with 1 to MOST_EACH workgroups on a multiprocessor. False after an error.
static bool conclude(gn_context *g, const double *rate, double best, gni_gpu_rates *out) {
    if (gn_status_get(g) != GN_OK) return false;
    out->rate = thousands(best);
    out->alone = thousands(rate[1]);
    for (out->resident = 1; rate[out->resident] < 0.97 * best;) out->resident++;
    return true;
}

// The figures of the kernel that is chosen. False after an error.
static bool tune(gn_context *g, const gni_job_tile *t, gn_dtype dtype, gni_gpu_rates *out) {
    int64_t units = (int64_t)g->gpu->caps.multiprocessors;
    double rate[MOST_EACH + 1], best = 0;
    for (int each = 1; each <= MOST_EACH; each++) {
        GN_SCOPE(g) {
            gn_array *a = gn_eval(gn_cast(gn_randn(g, GN_F32, GN_SHAPE(t->bm * units, K)), dtype));
            gn_array *b = gn_eval(gn_cast(gn_randn(g, GN_F32, GN_SHAPE(K, t->bn * each)), dtype));
            double work = (double)each * t->bm * t->bn * gni_job_tile_steps(t, K);
            rate[each] = work / measure(g, a, b);
        }
        if (rate[each] > best) best = rate[each];
    }
    return conclude(g, rate, best, out);
}

// The split product's figures. What its scan and packing take is left out as the planner counts it: so many tiles in
// the shape closest to a square have the least of it.
static bool tune_split(gn_context *g, const gni_job_tile *t, gni_gpu_rates *out) {
    int64_t units = (int64_t)g->gpu->caps.multiprocessors, down = 1;
    double rate[MOST_EACH + 1], best = 0;
    for (int64_t i = 1; i * i <= units; i++)
        if (units % i == 0) down = i;
    for (int each = 1; each <= MOST_EACH; each++) {
        gni_matmul m;
        gni_job_split p;
        memset(&m, 0, sizeof m);
        memset(&p, 0, sizeof p);
        m.m = t->bm * down * each;
        m.n = t->bn * (units / down);
        m.k = K;
        p.m = &m;
        p.side[0].batches = p.side[1].batches = 1;
        p.side[0].rows = m.m;
        p.side[1].rows = m.n;
        GN_SCOPE(g) {
            gn_array *a = gn_eval(gn_randn(g, GN_F32, GN_SHAPE(m.m, K)));
            gn_array *b = gn_eval(gn_randn(g, GN_F32, GN_SHAPE(K, m.n)));
            double work = (double)each * t->bm * t->bn * gni_job_tile_steps(t, K);
            double time = measure(g, a, b);
            rate[each] = work / GNI_MAX(time - gni_job_split_overhead(&p), 0.1 * time);
        }
        if (rate[each] > best) best = rate[each];
    }
    return conclude(g, rate, best, out);
}

static bool tune_split_table(gn_context *g, gni_gpu_rates *rates, gni_gpu_rates *found) {
    enum { TILES = sizeof gni_job_split_tiles / sizeof gni_job_split_tiles[0] };
    gni_gpu_jobs *ops = gni_job_state(g->gpu);
    if (ops == NULL) return false;
    printf("static const gni_job_split_tile gni_job_split_tiles[] = {\n");
    for (int i = 0; i < TILES; i++) {
        const gni_job_tile *t = &gni_job_split_tiles[i].tile;
        gni_gpu_rates *r = &found[t->module], *chosen = &rates[t->module];
        // Mode 0, with k in one part.
        ops->split_force = 1;
        chosen->rate = chosen->alone = (int)GNI_VK_MOST_RATE;
        chosen->resident = 1;
        bool fits = t->shared <= g->gpu->caps.shared_bytes;
        r->rate = t->rate;
        r->alone = t->alone;
        r->resident = t->resident;
        bool ok = !fits || tune_split(g, t, r);
        ops->split_force = 0;
        if (!ok) return false;
        printf("    {{GNI_MODULE_%s, %d, %d, %d, %u, %d, %d, %d, %d, true},%s\n",
               gni_modules[t->module].name, t->bm, t->bn, t->bk, (unsigned)t->shared, r->rate,
               r->alone, r->resident, t->begins, fits ? "" : " // not measured: too much shared memory");
        printf("     GNI_MODULE_%s},\n", gni_modules[gni_job_split_tiles[i].module3].name);
    }
    printf("};\n");
    return true;
}

static bool tune_table(gn_context *g, const table *from, gni_gpu_rates *rates, gni_gpu_rates *found) {
    printf("static const gni_job_tile %s[] = {\n", from->name);
    for (int i = 0; i < from->count; i++) {
        const gni_job_tile *t = &from->tiles[i];
        gni_gpu_rates *r = &found[t->module];
        r->rate = t->rate;
        r->alone = t->alone;
        r->resident = t->resident;
        choose(g->gpu, rates, from, i);
        bool fits = t->shared <= g->gpu->caps.shared_bytes;
        if (fits && !tune(g, t, from->dtype, r)) return false;
        printf("    {GNI_MODULE_%s, %d, %d, %d, %u, %d, %d, %d, %d, %s},%s\n", gni_modules[t->module].name, t->bm, t->bn,
               t->bk, (unsigned)t->shared, r->rate, r->alone, r->resident, t->begins, t->units ? "true" : "false",
               fits ? "" : " // not measured: too much shared memory");
        fflush(stdout);
    }
    printf("};\n");
    return true;
}

static bool save(const gni_gpu *gpu, const gni_gpu_rates *found, const char *folder) {
    char path[1024], line[128];
    int count = 0;
    gni_vk_tuning_path((const gni_vk *)gpu, folder, path, sizeof path);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "tune: cannot write %s\n", path);
        return false;
    }
    gni_vk_tuning_head((const gni_vk *)gpu, line, sizeof line);
    fputs(line, file);
    for (int i = 0; i < GNI_MODULE_COUNT; i++) {
        if (found[i].rate == 0) continue;
        gni_vk_tuning_line(gni_modules[i].name, &found[i], line, sizeof line);
        fputs(line, file);
        count++;
    }
    fprintf(file, "end %d\n", count);
    bool ok = !ferror(file);
    ok = fclose(file) == 0 && ok;
    printf(ok ? "// saved as %s\n" : "// %s could not be written\n", path);
    return ok;
}

static bool tune_all(gn_context *g, const char *folder) {
    static gni_gpu_rates found[GNI_MODULE_COUNT];
    gni_gpu *gpu = g->gpu;
    if (gpu->rates == NULL)
        gpu->rates = (gni_gpu_rates *)gni_calloc(g, GNI_MODULE_COUNT * sizeof(gni_gpu_rates));
    if (gpu->rates == NULL) return false;
    for (int i = 0; i < TABLES; i++) {
        bool units = tables[i].tiles[0].units;
        bool f64 = tables[i].dtype == GN_F64 && (!gpu->caps.float64 || gpu->caps.kind == GNI_GPU_CPU);
        if (f64 || (units && !gni_job_has_units(gpu, tables[i].dtype))) {
            printf("// %s: not on this device\n", tables[i].name);
            continue;
        }
        if (!tune_table(g, &tables[i], gpu->rates, found)) {
            fprintf(stderr, "tune: %s\n", gn_error(g));
            return false;
        }
    }
    if (!gni_job_has_units(gpu, GN_F16) || gpu->caps.max_buffers < 7)
        printf("// gni_job_split_tiles: not on this device\n");
    else if (!tune_split_table(g, gpu->rates, found)) {
        fprintf(stderr, "tune: %s\n", gn_error(g));
        return false;
    }
    return folder == NULL || save(gpu, found, folder);
}

int main(int argc, char **argv) {
    gn_options o;
    const char *folder = NULL;
    memset(&o, 0, sizeof o);
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--device") == 0)
            o.device = atoi(argv[i + 1]);
        else if (i + 1 < argc && strcmp(argv[i], "--save") == 0)
            folder = argv[i + 1];
        else {
            fprintf(stderr, "usage: tune [--device N] [--save DIR]\n");
            return 2;
        }
    }
    o.backend = GN_BACKEND_VULKAN;
    o.placement = GN_PLACE_GPU;
    gn_context *g = gn_open(&o);
    if (g == NULL) {
        fprintf(stderr, "tune: %s\n", gn_open_error());
        return 1;
    }
    bool ok = true;
    if (g->gpu == NULL || g->gpu->caps.kind == GNI_GPU_CPU)
        printf("No GPU, so there is nothing to choose.\n");
    else {
        printf("// %s, %s, %u multiprocessors\n", g->gpu->caps.name, g->gpu->caps.driver,
               (unsigned)g->gpu->caps.multiprocessors);
        ok = tune_all(g, folder);
    }
    gn_close(g);
    return ok ? 0 : 1;
}

#else

int main(void) {
    printf("tune: compiled without Vulkan\n");
    return 0;
}

#endif
