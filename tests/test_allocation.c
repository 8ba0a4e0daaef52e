// Every public function that makes arrays, with its gradient, while its first, second, ... allocation fails: alone, or with
// all that follow. Each failure is GN_ERROR_OUT_OF_MEMORY or does no harm, leaves nothing, and the same call works again.
#include "test_functions.h"

typedef struct operands {
    calls c; // first: find gets a pointer to it
    gn_dtype t;
    int64_t order; // of the matrices
    bool integers; // stand in for ANY
    gn_array *leaf[3], *row[3], *index, *truth, *whole;
} operands;

static gn_array *find(calls *c, kind k, int i) {
    operands *o = (operands *)(void *)c;
    switch (k) {
    case ROW: return o->row[i];
    case INDEX: return o->index;
    case TRUTH: return o->truth;
    case INTEGERS: return o->whole;
    case COMPLEXES: return gn_complex(o->leaf[0], o->leaf[1]);
    case ANY: return o->integers ? o->whole : o->leaf[i];
    default: return o->leaf[i];
    }
}

enum { LARGE = 70, ELEMENTS = LARGE * LARGE };

static gn_array *leaf(gn_context *g, gn_dtype t, gn_shape s, int number) {
    static float data[ELEMENTS]; // a matrix has an inverse, a root, and eigenvalues apart
    int64_t n = s.dim[s.rank - 1], count = s.rank == 2 ? n * n : n;
    for (int64_t i = 0; i < count; i++)
        data[i] = (i % (n + 1) == 0 ? 1.0f + (float)i / (float)(n * n) : 0.05f / (float)n) +
                  0.125f * (float)number;
    gn_array *a = gn_eval(gn_cast(gn_array_from(g, GN_F32, s, data), t));
    return t == GN_C64 ? a : gn_requires_grad(gn_detach(a), true);
}

static void prepare(operands *o, gn_context *g) {
    static int32_t index[LARGE], whole_data[ELEMENTS];
    static uint8_t truth[ELEMENTS];
    const int64_t n = o->order;
    for (int i = 0; i < n * n; i++) {
        whole_data[i] = i % 11;
        truth[i] = i % 3 == 0;
        if (i < n) index[i] = i % 4;
    }
    for (int i = 0; i < 3; i++) {
        o->leaf[i] = leaf(g, o->t, GN_SHAPE(n, n), i);
        o->row[i] = leaf(g, o->t, GN_SHAPE(n), i);
    }
    o->index = gn_array_from(g, GN_I32, GN_SHAPE(n), index);
    o->truth = gn_array_from(g, GN_BOOL, GN_SHAPE(n, n), truth);
    o->whole = gn_array_from(g, GN_I32, GN_SHAPE(n, n), whole_data);
    gn_seed(g, 7);
}

static bool is_complex(const gn_array *a) {
    return gn_dtype_of(a) == GN_C64 || gn_dtype_of(a) == GN_C128;
}

// Sums of the results and of the gradients of the sum of the results.
static int work(operands *o, const function *f, double *sums) {
    gn_array *y = run_function(&o->c, f), *all[3], *loss = NULL;
    int n = 0;
    all[0] = y, all[1] = o->c.more[0], all[2] = o->c.more[1];
    for (int i = 0; i < 3; i++) {
        if (all[i] == NULL || (f->flags & UNDEFINED)) continue;
        gn_array *sum =
            gn_sum(gn_cast(is_complex(all[i]) ? gn_abs(all[i]) : all[i], GN_F64), GN_ALL);
        sums[n++] = gn_item(sum);
        if (gn_needs_grad(sum)) loss = loss != NULL ? gn_add(loss, sum) : sum;
    }
    sums[n++] = o->c.number;
    if (loss == NULL) return n;
    gn_backward(loss);
    for (int i = 0; i < 6; i++) {
        gn_array *grad = gn_grad(i < 3 ? o->leaf[i] : o->row[i - 3]);
        sums[n++] = grad != NULL ? gn_item(gn_sum(grad, GN_ALL)) : 0.0;
    }
    return n;
}

typedef struct outcome {
    gn_status status;
    char error[256];
    double sums[16];
    int count;
    int64_t allocations, refused;
    uint64_t arrays, host, device; // that are left
} outcome;

// The call with fresh operands. Allocation number k fails, negative: none; with `once` those behind it do not.
static void attempt(gn_context *g, operands *o, const function *f, int64_t k, bool once,
                    outcome *out) {
    memset(out, 0, sizeof *out);
    gn_scope_begin(g);
    gn_memory_trim(g); // what is kept for the next array would serve instead
    prepare(o, g);
    gn_memory_trim(g);
    int64_t had = test_heap.calls, refused = test_heap.refused;
    test_refuse(k, once);
    out->count = work(o, f, out->sums);
    test_refuse(-1, false);
    out->allocations = test_heap.calls - had;
    out->refused = test_heap.refused - refused;
    out->status = gn_status_get(g);
    snprintf(out->error, sizeof out->error, "%s", gn_error(g));
    gn_error_clear(g);
    gn_scope_end(g);
    gn_memory_trim(g);
    gn_memory_stats stats;
    gn_memory_get(g, &stats);
    out->arrays = stats.arrays;
    out->host = stats.host_used;
    out->device = stats.device_used;
}

static bool same_sums(const outcome *a, const outcome *b) {
    return a->count == b->count && memcmp(a->sums, b->sums, sizeof(double) * (size_t)a->count) == 0;
}

static bool check_failure(gn_context *g, operands *o, const function *f, int64_t k, bool once,
                          const outcome *right) {
    outcome out, again;
    attempt(g, o, f, k, once, &out);
    attempt(g, o, f, -1, false, &again);
    outcome kept = *right;
    if (again.host > right->host) { // a kernel that only this way needs stays; what is lost is lost each time
        kept = again;
        attempt(g, o, f, k, once, &out);
        attempt(g, o, f, -1, false, &again);
    }
    const char *wrong = out.refused == 0 ? NULL
                        : out.status != GN_OK && out.status != GN_ERROR_OUT_OF_MEMORY
                            ? "another error"
                        : out.status == GN_OK && !same_sums(&out, right) ? "another result"
                        : out.arrays != right->arrays                    ? "arrays are left"
                        : again.status != GN_OK                          ? "the same call fails"
                        : !same_sums(&again, right)     ? "the same call has another result"
                        : again.arrays != right->arrays ? "arrays are left behind it"
                        : again.host > kept.host        ? "memory is left"
                        : again.device != right->device ? "device memory is left"
                                                        : NULL;
    if (wrong == NULL) return true;
    print_error(
        "%s, %s, allocation %lld of %lld%s: %s: %s: %s; then %s; arrays %d, %d, %d, host bytes %lld, %lld\n",
        f->name, gn_dtype_name(o->t), (long long)k, (long long)right->allocations,
        once ? " alone" : " and on", wrong, gn_status_string(out.status), out.error, again.error,
        (int)right->arrays, (int)out.arrays, (int)again.arrays, (long long)kept.host,
        (long long)again.host);
    return false;
}

// Finds out what the operands have to be. 0: the function does not take that dtype; -1: it fails.
static int begin_function(gn_context *g, const function *f, gn_dtype t, int64_t order, operands *o,
                          outcome *right) {
    memset(o, 0, sizeof *o);
    o->c.g = g;
    o->c.find = find;
    o->t = t;
    o->order = order;
    attempt(g, o, f, -1, false, right);
    if (right->status == GN_ERROR_DTYPE && t == GN_F32) {
        o->integers = true;
        attempt(g, o, f, -1, false, right);
    }
    if (right->status == GN_OK) return 1;
    if (t == GN_F32) print_error("%s: %s\n", f->name, right->error);
    return t == GN_F32 ? -1 : 0;
}

// 1: passed, 0: the function does not take that dtype, -1: failed.
static int check_function(gn_context *g, const function *f, gn_dtype t, int64_t order, int64_t most,
                          int64_t *failures) {
    operands o;
    outcome right;
    int result = begin_function(g, f, t, order, &o, &right);
    if (result <= 0) return result;
    for (int i = 0; i < 2; i++)
        attempt(g, &o, f, -1, false, &right); // with plans, kernels and tables there
    for (int once = 0; once < 2; once++)
        for (int64_t i = 0; i < right.allocations && i < most; i++) {
            int64_t k = right.allocations <= most ? i
                        : i < most / 2            ? i
                                                  : (int64_t)draw((uint32_t)right.allocations);
            if (!check_failure(g, &o, f, k, once != 0, &right)) return -1;
            ++*failures;
        }
    return 1;
}

static bool is_asked_for(const function *f) {
    const char *only = getenv("GN_TEST_FUNCTION"); // to look into one
    return only == NULL || strcmp(only, f->name) == 0;
}

static gn_context *open_steady(void) {
    gn_options options = test_options();
    // Allocations in a fixed order; and programs that need no compiler.
    options.vulkan_flags |= GN_VULKAN_NO_ASYNC_PIPELINES | GN_VULKAN_NO_SPECIALIZATION;
    options.threads = 2;
    gn_context *g = test_open_with(&options);
    gn_scope_begin(g); // the scope itself does not fail
    return g;
}

static void test_every_function(void **state) {
    static const gn_dtype types[] = {GN_F32, GN_F32, GN_F16, GN_BF16, GN_F64, GN_C64};
    (void)state;
    gn_context *g = open_steady();
    const bool vulkan = test_on_vulkan();
    int64_t failures = 0;
    int cases = 0, alike = 0, wrong = 0;
    for (int i = 0; i < FUNCTIONS; i++) {
        const function *f = &functions[i];
        if (vulkan && ((f->flags & SLOW) || ((f->flags & ALIKE) && alike++ % 12 != 0))) continue;
        for (int k = 0; k < (vulkan ? 1 : 6) && is_asked_for(f); k++) {
            if ((f->flags & ALIKE) && (k % 2 == 1 || k > 3)) continue;
            int result = check_function(g, f, types[k], k == 1 ? LARGE : 4,
                                        vulkan           ? 10
                                        : TEST_SANITIZER ? (k == 0 ? 150 : 12)
                                        : k == 0         ? 1000
                                                         : 40,
                                        &failures);
            cases += result > 0;
            wrong += result < 0;
        }
    }
    gn_scope_end(g);
    test_close(g);
    print_message("%d cases, %d allocations failed in turn\n", cases, (int)failures);
    assert_int_equal(wrong, 0);
}

// The same where plans and tables are not there yet.
static void test_fresh_contexts(void **state) {
    (void)state;
    if (test_on_vulkan()) skip();
    for (int i = 0; i < FUNCTIONS; i++) {
        const function *f = &functions[i];
        if ((f->flags & ALIKE) || !is_asked_for(f)) continue;
        operands o;
        outcome out, right;
        gn_context *g = open_steady();
        begin_function(g, f, GN_F32, 4, &o, &right);
        gn_scope_end(g);
        test_close(g);
        for (int64_t k = 0; k < right.allocations; k += 1 + right.allocations / (TEST_SANITIZER ? 30 : 100)) {
            g = open_steady();
            o.c.g = g;
            attempt(g, &o, f, k, k % 2 == 0, &out);
            if (out.status != GN_OK && out.status != GN_ERROR_OUT_OF_MEMORY)
                fail_msg("%s: %s", f->name, out.error);
            attempt(g, &o, f, -1, false, &out);
            if (!same_sums(&out, &right))
                fail_msg("%s, allocation %d: then another result %s", f->name, (int)k, out.error);
            gn_scope_end(g);
            test_close(g);
        }
    }
}

enum { TAKERS = 5 };

// Of float32, in a dtype that converts, a column of a matrix, read by what is pending, and a pending one.
static gn_params *takers(gn_context *g, gn_array **reader, double first) {
    gn_array *a[TAKERS], *matrix = gn_full(g, GN_F32, GN_SHAPE(6, 3), first);
    gn_params *p = gn_params_new(g);
    for (int i = 0; i < TAKERS; i++) {
        char name[8];
        a[i] = i == 2 ? gn_slice(matrix, 1, 1, 2, 1) : gn_full(g, i == 1 ? GN_F16 : GN_F32, GN_SHAPE(6, 1), first + i);
        if (i < 4) gn_eval(a[i]);
        snprintf(name, sizeof name, "%d", i);
        gn_params_add(p, name, a[i]);
    }
    if (reader != NULL) *reader = gn_add_s(a[3], 0.5);
    return p;
}

static double total(gn_params *p, int i) { return gn_item(gn_sum(gn_cast(gn_params_at(p, i), GN_F64), GN_ALL)); }

// A file's values come whole, or not at all; so do an optimizer's states.
static void test_whole_or_not(void **state) {
    static unsigned char file[8192];
    (void)state;
    gn_context *g = open_steady();
    int failed = 0;
    gn_params *from = takers(g, NULL, 7.0);
    const size_t bytes = gn_params_save_memory(from, file, sizeof file);
    assert_true(bytes > 0 && bytes <= sizeof file && gn_status_get(g) == GN_OK);
    for (int once = 0; once < 2; once++)
        for (int64_t k = 0, more = 1; more > 0; k++) {
            GN_SCOPE(g) {
                gn_array *reader = NULL;
                gn_params *p = takers(g, &reader, 1.0);
                gn_memory_trim(g);
                const int64_t had = test_heap.refused;
                test_refuse(k, once != 0);
                const gn_status status = gn_params_load_memory(p, file, bytes);
                test_refuse(-1, false);
                more = test_heap.refused - had;
                assert_true(status == GN_OK || status == GN_ERROR_OUT_OF_MEMORY);
                gn_error_clear(g);
                failed += status != GN_OK;
                for (int i = 0; i < TAKERS; i++) {
                    const double want = 6.0 * (status == GN_OK ? (i == 2 ? 7.0 : 7.0 + i) : i == 2 ? 1.0 : 1.0 + i);
                    if (total(p, i) != want) fail_msg("allocation %d, array %d: %g, not %g", (int)k, i, total(p, i), want);
                }
                assert_true(gn_item(gn_sum(reader, GN_ALL)) == 27.0);
                gn_params_free(p);
            }
        }
    gn_params_free(from);
    assert_true(failed > 20);
    failed = 0;
    for (int64_t k = 0, more = 1; more > 0; k++) {
        GN_SCOPE(g) {
            gn_array *w[2][2];
            gn_optimizer *opt[2];
            for (int j = 0; j < 2; j++) {
                for (int i = 0; i < 2; i++) w[j][i] = gn_requires_grad(gn_full(g, GN_F32, GN_SHAPE(5), 1.0 + j), true);
                opt[j] = gn_adam(w[j], 2, NULL);
                for (int step = 0; step < 2 - j; step++) {
                    gn_backward(gn_sum(gn_add(gn_square(w[j][0]), w[j][1]), GN_ALL));
                    gn_step(opt[j]);
                    gn_zero_grads(opt[j]);
                }
            }
            gn_params *p = gn_params_new(g), *before = gn_params_new(g), *now = gn_params_new(g);
            assert_int_equal(gn_params_add_optimizer(p, "o", opt[0]), GN_OK);
            gn_params_add_optimizer(before, "o", opt[1]);
            double was[5] = {0};
            for (int i = 0; i < 5; i++) was[i] = total(before, i);
            gn_memory_trim(g);
            const int64_t had = test_heap.refused;
            test_refuse(k, false);
            const gn_status status = gn_optimizer_restore(opt[1], p, "o");
            test_refuse(-1, false);
            more = test_heap.refused - had;
            assert_true(status == GN_OK || status == GN_ERROR_OUT_OF_MEMORY);
            gn_error_clear(g);
            failed += status != GN_OK;
            assert_int_equal(gn_params_add_optimizer(now, "o", opt[1]), GN_OK);
            for (int i = 0; i < 5; i++)
                if (i < 4 || status != GN_OK) assert_true(total(now, i) == (status == GN_OK ? total(p, i) : was[i]));
            gn_params_free(p);
            gn_params_free(before);
            gn_params_free(now);
            gn_optimizer_free(opt[0]);
            gn_optimizer_free(opt[1]);
        }
    }
    assert_true(failed > 3);
    gn_scope_end(g);
    test_close(g);
}

// ---- the list of functions against the header's

static bool is_known(const char *name) {
    for (int i = 0; i < FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0) return true;
    for (size_t i = 0; i < sizeof other_functions / sizeof *other_functions; i++)
        if (strcmp(other_functions[i], name) == 0) return true;
    return false;
}

static bool is_word(char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Looks every "GPUNUM_API type name(" up.
static int check_declarations(const char *text) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, "\nGPUNUM_API ")) != NULL; at++) {
        char name[64];
        const char *end = strchr(at, '('), *start = end;
        if (end == NULL) break;
        while (is_word(start[-1])) start--;
        snprintf(name, sizeof name, "%.*s", (int)(end - start), start);
        if (!is_known(name)) fail_msg("%s is not in tests/test_functions.h", name);
        count++;
    }
    return count;
}

static void test_list_is_whole(void **state) {
    char list[1024], path[1200];
    size_t size;
    int count = 0;
    (void)state;
    snprintf(list, sizeof list, "%s", test_source_file("tools/gpunum/gpunum.h"));
    unsigned char *rooms = test_read_file(list, &size);
    for (const char *at = (const char *)rooms; (at = strstr(at, "#include \"api/")) != NULL; at++) {
        const char *name = at + 10;
        snprintf(path, sizeof path, "%.*s%.*s", (int)(strrchr(list, '/') + 1 - list), list,
                 (int)(strchr(name, '"') - name), name);
        unsigned char *room = test_read_file(path, &size);
        count += check_declarations((const char *)room);
        free(room);
    }
    free(rooms);
    print_message("%d declarations\n", count);
    assert_true(count > 250); // they were found at all
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_list_is_whole),
                                       cmocka_unit_test(test_whole_or_not),
                                       cmocka_unit_test(test_every_function),
                                       cmocka_unit_test(test_fresh_contexts)};
    return test_run(tests);
}
