// Every dispatch of a Vulkan run whose kernel has a form for WebGPU, played again there on the same bytes: what both leave in
// their buffers is the same word for word, floats too. Both forms are made of the same sources, which write functions out and
// say of what is rounded that it is `precise`, and both run on the same driver.
//
// And a device for which nobody can wait, as in a page: what it does then with values that are there alone.
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"

#include "test.h"

enum { ENTRIES = 512, BYTES = 1 << 20 };

static gn_context *other; // on WebGPU
static const gni_gpu_layer *real;
static struct {
    const gni_gpu_pipeline *pipeline;
    gni_gpu_kernel kernel;
} seen[ENTRIES];
static int n_seen;
static struct {
    int times, skipped;
    int64_t words;
} tally[GNI_MODULE_COUNT];

static gni_gpu_pipeline *remember(gni_gpu *d, const gni_gpu_kernel *k, gni_gpu_mode mode) {
    gni_gpu_pipeline *p = real->pipeline_get(d, k, mode);
    for (int i = 0; i < n_seen; i++)
        if (seen[i].pipeline == p) return p;
    assert_in_range(n_seen, 0, ENTRIES - 1);
    seen[n_seen].pipeline = p;
    seen[n_seen++].kernel = *k;
    return p;
}

// Whether WebGPU's form of the kernel does the same with these parameters. Parts of a sum that a last workgroup joins are two
// dispatches there, and so are two outputs, which may share a buffer; and lanes join there by twos, here by fours, which
// sums and products of floats show in their last bit.
static bool has_form(const gni_gpu_kernel *k, const uint32_t *param) {
    const gni_wg *w = (const gni_wg *)other->gpu;
    if (k->module == GNI_MODULE_map_24) return (k->spec[GNI_P_PROGRAM_COUNTS] >> 4 & 15u) == 1;
    if (k->module == GNI_MODULE_reduce_24) {
        const uint32_t code = k->spec[GNI_P_PROGRAM_HOW] & 255u;
        const bool rounds = code == GNI_RED_SUM * 3u + GNI_F || code == GNI_RED_PROD * 3u + GNI_F;
        return param[GNI_P_REDUCE_SPLITS] == 1 && !rounds;
    }
    if (w->variant[k->module] < 0) return false;
    const bool tiles = strncmp(gni_modules[k->module].name, "matmul", 6) == 0;
    if (tiles && (k->spec[GNI_S_MATMUL_LAYOUT] & GNI_F_MATMUL_SPLITS)) return false;
    return k->module != GNI_MODULE_matvec || param[GNI_P_MATMUL_SPLITS] <= 1;
}

typedef struct copy { // of a buffer argument
    uint8_t before[BYTES], after[BYTES], there[BYTES];
    gni_gpu_mem mem;
} copy;
static copy copies[GNI_GPU_MAX_USES];

static void compare(const gni_gpu_kernel *k, const copy *c, uint64_t bytes) {
    for (uint64_t i = 0; i + 4 <= bytes; i += 4) {
        uint32_t x, y;
        memcpy(&x, c->after + i, 4);
        memcpy(&y, c->there + i, 4);
        if (x != y)
            fail_msg("%s: word %llu of %llu is %08x, by Vulkan %08x", gni_modules[k->module].name, (unsigned long long)(i / 4),
                     (unsigned long long)(bytes / 4), y, x);
    }
    tally[k->module].words += (int64_t)(bytes / 4);
}

static bool same_use(const gni_gpu_use *a, const gni_gpu_use *b) {
    return a->mem == b->mem && a->offset == b->offset && a->bytes == b->bytes;
}

// Where jobs have nothing for a place they give it one more time what they have: what the kernel wrote is in one of them.
static const copy *written(const gni_gpu_use *uses, int n_use, int i) {
    for (int j = i; j < n_use; j++)
        if (uses[j].write && same_use(&uses[i], &uses[j]) && memcmp(copies[j].there, copies[j].before, uses[j].bytes) != 0)
            return &copies[j];
    return &copies[i];
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// What is collected comes in any order: each 32-bit key with its place, by both.
static void sort_collected(const gni_gpu_use *uses, uint8_t *keys, uint8_t *places) {
    static uint64_t pairs[BYTES / 4];
    const size_t n = (size_t)(uses[3].bytes / 4);
    assert_int_equal(uses[3].bytes, uses[4].bytes);
    for (size_t i = 0; i < n; i++) {
        uint32_t key, place;
        memcpy(&key, keys + 4 * i, 4);
        memcpy(&place, places + 4 * i, 4);
        pairs[i] = (uint64_t)key << 32 | place;
    }
    qsort(pairs, n, sizeof pairs[0], by_value);
    for (size_t i = 0; i < n; i++) {
        const uint32_t key = (uint32_t)(pairs[i] >> 32), place = (uint32_t)pairs[i];
        memcpy(keys + 4 * i, &key, 4);
        memcpy(places + 4 * i, &place, 4);
    }
}

static bool play_again(const gni_gpu_kernel *k, const gni_gpu_use *uses, int n_use, const void *params, uint32_t bytes, uint32_t x,
                       uint32_t y, uint32_t z) {
    gni_gpu *w = other->gpu;
    gni_gpu_use mine[GNI_GPU_MAX_USES];
    bool ok = true;
    memcpy(mine, uses, (size_t)n_use * sizeof *uses);
    for (int i = 0; i < n_use && ok; i++) {
        if (uses[i].mem == NULL) continue;
        mine[i].mem = &copies[i].mem;
        mine[i].offset = 0;
        ok = gni_gpu_alloc(w, (uses[i].bytes + 255) / 256 * 256, &copies[i].mem) &&
             gni_gpu_upload(w, &copies[i].mem, 0, copies[i].before, uses[i].bytes);
    }
    gni_gpu_pipeline *p = ok ? gni_gpu_pipeline_get(w, k, GNI_GPU_WAIT) : NULL;
    ok = p != NULL && gni_gpu_dispatch(w, p, mine, n_use, params, bytes, x, y, z);
    for (int i = 0; i < n_use && ok; i++)
        if (uses[i].mem != NULL && uses[i].write) ok = gni_gpu_download(w, mine[i].mem, 0, copies[i].there, uses[i].bytes);
    if (ok && k->module == GNI_MODULE_select_collect) {
        assert_int_equal(((const uint32_t *)params)[GNI_P_SELECT_ROWS], 1);
        sort_collected(uses, copies[3].after, copies[4].after);
        sort_collected(uses, copies[3].there, copies[4].there);
    }
    for (int i = 0; i < n_use && ok; i++) {
        bool first = uses[i].mem != NULL && uses[i].write;
        for (int j = 0; j < i; j++) first = first && !(uses[j].write && same_use(&uses[i], &uses[j]));
        if (first) compare(k, written(uses, n_use, i), uses[i].bytes);
    }
    for (int i = 0; i < n_use; i++)
        if (uses[i].mem != NULL) gni_gpu_free(w, &copies[i].mem);
    return ok;
}

static bool watch(gni_gpu *d, gni_gpu_pipeline *p, const gni_gpu_use *uses, int n_use, const void *params, uint32_t bytes,
                  uint32_t x, uint32_t y, uint32_t z) {
    const gni_gpu_kernel *k = NULL;
    bool fits = true;
    for (int i = 0; i < n_seen; i++)
        if (seen[i].pipeline == p) k = &seen[i].kernel;
    assert_non_null(k);
    for (int i = 0; i < n_use; i++) fits = fits && uses[i].bytes <= BYTES;
    if (!fits || !has_form(k, (const uint32_t *)params)) {
        tally[k->module].skipped++;
        return real->dispatch(d, p, uses, n_use, params, bytes, x, y, z);
    }
    for (int i = 0; i < n_use; i++)
        if (uses[i].mem != NULL && !real->download(d, uses[i].mem, uses[i].offset, copies[i].before, uses[i].bytes)) return false;
    if (!real->dispatch(d, p, uses, n_use, params, bytes, x, y, z)) return false;
    for (int i = 0; i < n_use; i++)
        if (uses[i].mem != NULL && uses[i].write && !real->download(d, uses[i].mem, uses[i].offset, copies[i].after, uses[i].bytes))
            return false;
    tally[k->module].times++;
    if (play_again(k, uses, n_use, params, bytes, x, y, z)) return true;
    fail_msg("%s: %s", gni_modules[k->module].name, gn_error(other));
    return false;
}

static gn_array *numbers(gn_context *g, gn_dtype t, int64_t rows, int64_t columns) {
    gn_seed(g, 17);
    gn_array *a = gn_randn(g, GN_F32, GN_SHAPE(rows, columns));
    return gn_eval(gn_cast(t == GN_F32 || t == GN_F16 || t == GN_BF16 ? a : gn_mul_s(a, 30.0), t));
}

static void run_programs(gn_context *g) {
    static const gn_dtype dtypes[] = {GN_F32, GN_F16, GN_BF16, GN_I32, GN_U8, GN_I16};
    for (int i = 0; i < 6; i++) {
        gn_array *a = numbers(g, dtypes[i], 37, 21), *b = numbers(g, dtypes[i], 1, 21);
        gn_eval(gn_maximum(gn_add(gn_mul(a, b), a), b));
        gn_eval(gn_copy(gn_transpose(a)));
        gn_eval(gn_sum(a, 1));
        gn_eval(gn_max(a, 0));
        gn_eval(gn_argmin(a, 0));
    }
    gn_array *a = numbers(g, GN_F32, 37, 21), *b = gn_add_s(gn_abs(a), 0.1);
    gn_eval(gn_add(gn_exp(a), gn_log(b)));
    gn_eval(gn_mul(gn_sin(a), gn_sigmoid(a)));
    gn_eval(gn_div(gn_sqrt(b), gn_tanh(a)));
    gn_eval(gn_pow(b, a));
    gn_eval(gn_erf(a));
    gn_eval(gn_where(gn_lt(a, b), a, gn_floor(b)));
    gn_assign(gn_index(a, "1:, :-1:2"), gn_index(a, ":-1, 1::2"));
    gn_eval(a);
}

static void run_products(gn_context *g) {
    static const int64_t size[][3] = {{64, 64, 64}, {33, 70, 129}, {1, 300, 40}, {40, 300, 1}, {130, 7, 66}};
    for (int i = 0; i < 5; i++) {
        gn_array *a = numbers(g, GN_F32, size[i][0], size[i][1]), *b = numbers(g, GN_F32, size[i][1], size[i][2]);
        gn_eval(gn_matmul(a, b));
        if (i == 1) gn_eval(gn_relu(gn_add(gn_matmul(a, b), numbers(g, GN_F32, 1, size[i][2]))));
        if (i == 1) gn_eval(gn_matmul(gn_cast(a, GN_I32), gn_cast(b, GN_I32)));
        if (i == 0) gn_eval(gn_matmul(gn_cast(a, GN_F16), gn_cast(b, GN_F16)));
    }
}

static void run_others(gn_context *g) {
    gn_array *a = numbers(g, GN_F32, 5, 300), *long_one = numbers(g, GN_F32, 1, 5000), *i = gn_cast(numbers(g, GN_I32, 5, 300), GN_I64);
    gn_array *at = gn_abs(i);
    gn_eval(gn_softmax(a, 1));
    gn_eval(gn_log_softmax(numbers(g, GN_F32, 2, 20000), 1));
    gn_eval(gn_cumsum(a, 1));
    gn_eval(gn_cumsum(a, 0));
    gn_eval(gn_cumprod(a, 1));
    gn_eval(gn_sort(a, 1, false));
    gn_eval(gn_argsort(long_one, 1, true));
    gn_eval(gn_sort(numbers(g, GN_I16, 1, 3000), 1, false));
    gn_eval(gn_topk(numbers(g, GN_F32, 1, 60000), 20, 1, NULL));
    gn_eval(gn_searchsorted(gn_sort(gn_ravel(a), 0, false), a, true));
    gn_eval(gn_take(a, gn_array_from(g, GN_I64, GN_SHAPE(3), (const int64_t[]){4, 0, 2}), 0));
    gn_eval(gn_scatter_add(gn_zeros(g, GN_F32, GN_SHAPE(200, 300)), at, a, 0));
    gn_eval(gn_scatter_add(gn_zeros(g, GN_I32, GN_SHAPE(200, 300)), at, gn_cast(a, GN_I32), 0));
    gn_eval(gn_rand(g, GN_F32, GN_SHAPE(7, 130)));
    gn_eval(gn_randn(g, GN_F16, GN_SHAPE(7, 130)));
    gn_eval(gn_fft(gn_cast(a, GN_C64), 0, 1, GN_FFT_BACKWARD));
    gn_eval(gn_rfft(numbers(g, GN_F32, 3, 4096), 0, 1, GN_FFT_BACKWARD));
    gn_eval(gn_fft(gn_cast(numbers(g, GN_F32, 2, 97), GN_C64), 0, 1, GN_FFT_BACKWARD));
}

static void test_replay(void **state) {
    gn_options o = test_options();
    static gni_gpu_layer watched;
    (void)state;
    o.backend = GN_BACKEND_WEBGPU;
    other = test_open_with(&o);
    other->gpu->caps.alone = false; // kernels as they are packed
    o.backend = GN_BACKEND_VULKAN;
    o.vulkan_flags = GN_VULKAN_NO_ADDRESSES | GN_VULKAN_NO_ASYNC_PIPELINES; // as in WebGPU
    gn_context *g = test_open_with(&o);
    gni_gpu_caps *c = &g->gpu->caps;
    c->subgroup_arithmetic = c->subgroup_ballot = c->subgroup_shuffle = false;
    c->shared_bytes = other->gpu->caps.shared_bytes;
    c->max_invocations = other->gpu->caps.max_invocations;
    real = g->gpu->layer;
    watched = *real;
    watched.pipeline_get = remember;
    watched.dispatch = watch;
    watched.dispatch_many = NULL;
    g->gpu->layer = &watched;
    void (*const run[])(gn_context *g) = {run_programs, run_products, run_others};
    for (int i = 0; i < 3; i++) {
        gn_scope_begin(g);
        run[i](g);
        if (gn_status_get(g) != GN_OK) fail_msg("%s", gn_error(g));
        gn_scope_end(g);
    }
    int kinds = 0;
    for (int i = 0; i < GNI_MODULE_COUNT; i++) {
        kinds += tally[i].words > 0;
        if (tally[i].times || tally[i].skipped)
            print_message("%-16s %4d played again, %3d not, %8lld words\n", gni_modules[i].name, tally[i].times, tally[i].skipped,
                          (long long)tally[i].words);
    }
    assert_in_range(kinds, 20, GNI_MODULE_COUNT);
    g->gpu->layer = real;
    gn_close(g);
    gn_close(other);
}

// ---- without waiting

enum { ROWS = 3, COLUMNS = 37 };

// Of dtype t, computed there; kind 1: positive ones, 2: true and false, 3: places below ROWS.
static gn_array *made(gn_context *g, gn_dtype t, int kind) {
    float x[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)(kind == 1 ? i * 5 % 19 + 1 : kind == 2 ? i % 3 == 0 : kind == 3 ? i % ROWS : i * 37 % 101 - (gn_dtype_size(t) == 8 ? 50 : 9));
    if (t == GN_U64 || t == GN_U32 || t == GN_U8 || t == GN_BOOL)
        for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = fabsf(x[i]);
    gn_array *a = gn_eval(gn_add_s(gn_array_from(g, GN_F32, GN_SHAPE(ROWS, COLUMNS), x), 0.0));
    return gn_eval(t == GN_F32 ? a : gn_cast(gn_eval(gn_cast(a, t == GN_BOOL ? GN_BOOL : GN_I32)), t));
}

static gn_array *reached(gn_context *g, int kind, gn_dtype t) {
    gn_array *a = made(g, t, 0), *b = made(g, t, 1), *m = made(g, GN_BOOL, 2), *p = made(g, GN_I64, 3), *l = gn_ravel(b);
    gn_array *bins = gn_eval(gn_mul_s(gn_arange(g, GN_F32, 0, 5, 1), 3.0)), *edges = NULL, *other_edges = NULL;
    switch (kind) {
    case 0: return gn_mean(a, 1);
    case 1: return gn_mean(a, GN_ALL);
    case 2: return gn_var(a, 1, 0);
    case 3: return gn_std(a, GN_ALL, 1);
    case 4: return gn_norm(a, 0);
    case 5: return gn_median(a, 1);
    case 6: return gn_quantile(a, 0.3, GN_ALL);
    case 7: return gn_nanmedian(a, 0);
    case 8: return gn_average(a, b, 1);
    case 9: return gn_cov(a, 1);
    case 10: return gn_digitize(a, bins, false);
    case 11: return gn_digitize(a, gn_flip(bins, 0), true);
    case 12: return gn_digitize(a, gn_sort(l, 0, false), true);
    case 13: return gn_histogram(a, 7, 0, 0, NULL);
    case 14: gn_histogram(a, 7, 0, 0, &edges); return edges;
    case 15: return gn_histogram(gn_full_like(a, 3), 4, 0, 0, NULL);
    case 16: return gn_histogram(a, 5, -3, 30, NULL);
    case 17: return gn_histogram_edges(a, bins);
    case 18: return gn_histogram2d(a, b, NULL, 3, 4, 0, 0, 1, 20, false, &edges, &other_edges);
    case 19: return gn_searchsorted(gn_sort(l, 0, false), a, true);
    case 20: return gn_isin(a, b);
    case 21: return gn_interp(a, bins, gn_square(bins));
    case 22: return gn_argmax(a, 1);
    case 23: return gn_argmin(a, GN_KEEP(0));
    case 24: return gn_argmax(gn_mod_s(a, 7), GN_ALL);
    case 25: return gn_matmul(a, gn_transpose(b));
    case 26: return gn_dot(l, gn_index(l, "::-1"));
    case 27: return gn_matmul(gn_reshape(gn_index(a, ":, :36"), GN_SHAPE(ROWS, 6, 6)), gn_reshape(gn_index(b, ":2, :18"), GN_SHAPE(6, 6)));
    case 28: return gn_isclose(a, b, 0.1, 1.0, false);
    case 29: return gn_index_arrays(a, (gn_array *[]){p, gn_mod_s(p, 2)}, 2);
    case 30: return gn_unravel_index(gn_add_s(gn_mul_s(p, 3), 1), GN_SHAPE(4, 5));
    case 31: return gn_cross_entropy(gn_cast(gn_transpose(a), GN_F32), gn_index(p, "0"));
    case 32: return gn_mean(gn_eq(gn_argmax(gn_cast(a, GN_F32), 0), gn_index(p, "0")), GN_ALL);
    case 33: return gn_polyval(gn_cast(gn_index(b, "0, :13"), GN_F32), gn_div_s(a, 64));
    case 34: return gn_convolve(l, gn_index(l, ":9"), GN_CONV_SAME);
    case 35: return gn_trapezoid(a, NULL, 1, 1);
    case 36: return gn_cumsum(gn_where(m, a, b), 1);
    case 37: return gn_mul_s(gn_sum(gn_eq(a, b), 1), 0.1);
    case 38: return gn_sum(gn_div(a, b), 0);
    case 39: return gn_bincount(gn_cast(l, GN_I32), NULL, 20);
    default: return gn_percentile(gn_cast(a, GN_I16), 75, GN_ALL);
    }
}

static void without_waiting(bool packed) {
    static const gn_dtype dtypes[] = {GN_F32, GN_I32, GN_I64, GN_U64, GN_U8, GN_BOOL};
    gn_options o = test_options();
    o.backend = GN_BACKEND_WEBGPU;
    gn_context *g = test_open_with(&o);
    o.backend = GN_BACKEND_CPU;
    o.placement = GN_PLACE_AUTO;
    gn_context *cpu = test_open_with(&o);
    gni_wg *w = (gni_wg *)g->gpu;
    if (packed) g->gpu->caps.alone = 0; // kernels as they are packed
    for (int kind = 0; kind < 41; kind++)
        for (int i = packed ? 2 : 0; i < 6; i += packed ? 4 : kind % 3 == 0 ? 1 : 2 - (i == 2)) {
            const gn_dtype t = dtypes[i];
            gn_scope_begin(g);
            gn_scope_begin(cpu);
            w->waits = false;
            g->gpu->caps.no_wait = true;
            gn_array *y = gn_eval(reached(g, kind, t)), *z = reached(cpu, kind, t);
            w->waits = true;
            g->gpu->caps.no_wait = false;
            if (y == NULL || z == NULL) fail_msg("%d of %s: %s%s", kind, gn_dtype_name(t), gn_error(g), gn_error(cpu));
            if (kind == 14) z = gn_cast(z, GN_F32); // edges, which are float64 of 32-bit integers elsewhere
            if (gn_dtype_of(y) != gn_dtype_of(z) || gn_size(y) != gn_size(z))
                fail_msg("%d of %s: %d elements of %s", kind, gn_dtype_name(t), (int)gn_size(y), gn_dtype_name(gn_dtype_of(y)));
            double most = 0;
            for (int64_t k = 0; k < gn_size(z); k++) {
                const double v = gn_item(gn_at(gn_ravel(z), k));
                most = fmax(most, fabs(v));
            }
            for (int64_t k = 0; k < gn_size(z); k++) {
                const double u = gn_item(gn_at(gn_ravel(y), k)), v = gn_item(gn_at(gn_ravel(z), k));
                if (!(fabs(u - v) <= (gn_dtype_of(z) == GN_F32 ? 1e-6 * (fabs(v) + most) : 0)))
                    fail_msg("%d of %s: element %d is %.9g, not %.9g", kind, gn_dtype_name(t), (int)k, u, v);
            }
            gn_scope_end(cpu);
            gn_scope_end(g);
        }
    // What has as many elements as values say stays a message. Of numbers as many are counted as were asked for.
    gn_scope_begin(g);
    gn_array *a = made(g, GN_I64, 0), *b = gn_eval(gn_add_s(gn_ravel(made(g, GN_I64, 1)), -2));
    w->waits = false;
    g->gpu->caps.no_wait = true;
    gn_array *counts = gn_eval(gn_bincount(b, NULL, 5));
    w->waits = true;
    int64_t have[5];
    assert_int_equal(gn_read(counts, have, sizeof have), GN_OK);
    for (int i = 0; i < 5; i++) { // of i * 5 % 19 - 1
        int64_t want = 0;
        for (int k = 0; k < ROWS * COLUMNS; k++) want += k * 5 % 19 - 1 == i;
        assert_int_equal(have[i], want);
    }
    w->waits = false;
    bool refused[2] = {false, false}; // but where the value came before it was asked for, which a page never sees
    for (int i = 0; i < 20 || (i < 1000 && !(refused[0] && refused[1])); i++) {
        const int which = i % 2;
        gn_array *some = which ? gn_nonzero(gn_eval(gn_add_s(a, 0))) : gn_bincount(gn_eval(gn_add_s(b, 1)), NULL, 0);
        refused[which] = refused[which] || some == NULL;
        assert_int_equal(gn_status_get(g), some == NULL ? GN_ERROR_UNSUPPORTED : GN_OK);
        if (some == NULL) assert_non_null(strstr(gn_error(g), "for which a page cannot wait"));
        gn_error_clear(g);
    }
    assert_true(refused[0] && refused[1]);
    w->waits = true;
    gn_error_clear(g);
    gn_scope_end(g);
    gn_close(g);
    gn_close(cpu);
}

static void test_without_waiting(void **state) {
    (void)state;
    without_waiting(false);
    without_waiting(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replay), cmocka_unit_test(test_without_waiting)};
    return test_run(tests);
}
