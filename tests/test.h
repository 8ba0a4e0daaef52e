// What every test program shares: a context on the backend that the environment names, with an allocator
// that counts, so that a leak fails the test that made it.
//
//   GN_TEST_BACKEND        cpu (default), vulkan or webgpu; the last two place every op on the device that it can do
//   GN_TEST_PLACEMENT      auto, cpu, gpu or stay: overrides that
//   GN_TEST_VULKAN_FLAGS   a number, gn_options.vulkan_flags
//   GN_TEST_CPU            plain, base, avx2 or avx512: widest instruction set
//   GN_TEST_THREADS        a number
//   GN_TEST_LOG            set: prints gpunum's log
//   GN_CASES               a folder of case files; those that it lacks are made in the working folder
//   GN_REQUIRE_ALL         set: what is missing (NumPy, SciPy) fails the test instead of skipping it
//   GN_TEST_ALONE          set: every test has a context of its own on Vulkan too
//
// static void test_something(void **state) { gn_context *g = *state; ... }
// with cmocka_unit_test_setup_teardown(test_something, test_setup, test_teardown), in short GN_TEST(test_something),
// and main returns test_run(tests). On Vulkan these tests share one context, for lavapipe compiles each kernel in each
// context anew; one that needs a fresh context, or leaves it in another state, says GN_TEST_FRESH.

#ifndef GPUNUM_TEST_H
#define GPUNUM_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpunum.h"

#if defined(__GNUC__) || defined(__clang__)
#define TEST_MAYBE_UNUSED __attribute__((unused))
#else
#define TEST_MAYBE_UNUSED
#endif

// The thread sanitizer makes programs ten times as slow. It does not look at a test's own arithmetic.
#if defined(__SANITIZE_THREAD__)
enum { TEST_THREAD_SANITIZER = 1, TEST_SANITIZER = 1 };
#define TEST_UNWATCHED __attribute__((no_sanitize_thread))
#else
#if defined(__SANITIZE_ADDRESS__)
enum { TEST_THREAD_SANITIZER = 0, TEST_SANITIZER = 1 };
#else
enum { TEST_THREAD_SANITIZER = 0, TEST_SANITIZER = 0 };
#endif
#define TEST_UNWATCHED
#endif

#define GN_TEST(fn) cmocka_unit_test_setup_teardown(fn, test_setup, test_teardown)
#define GN_TEST_FRESH(fn) cmocka_unit_test_setup_teardown(fn, test_setup_fresh, test_teardown)
#define test_run(tests) test_end(cmocka_run_group_tests(tests, NULL, NULL))

// Counted with atomics: the thread that compiles pipelines allocates too.
typedef struct test_memory {
    int64_t blocks, bytes;
    int64_t until_failure; // allocations that still succeed; negative: all
    int64_t calls, refused;
    int64_t most; // bytes, beyond which there are none
    bool once;    // one allocation fails, those behind it do not
} test_memory;

static test_memory test_heap = {0, 0, -1, 0, 0, INT64_MAX, false};

// From here on allocation k fails (negative: none), and so do all that follow but for `once`.
static TEST_MAYBE_UNUSED void test_refuse(int64_t k, bool once) {
    test_heap.once = once;
    __atomic_store_n(&test_heap.until_failure, k, __ATOMIC_SEQ_CST);
}

static void *test_allocate(void *user, size_t size) {
    test_memory *m = (test_memory *)user;
    __atomic_fetch_add(&m->calls, 1, __ATOMIC_SEQ_CST);
    int64_t left = __atomic_load_n(&m->until_failure, __ATOMIC_SEQ_CST);
    while (left > 0 && !__atomic_compare_exchange_n(&m->until_failure, &left, left - 1, false, __ATOMIC_SEQ_CST,
                                                    __ATOMIC_SEQ_CST)) {
    }
    if (left == 0 && m->once) __atomic_store_n(&m->until_failure, -1, __ATOMIC_SEQ_CST);
    if (left == 0 || (int64_t)size > m->most - __atomic_load_n(&m->bytes, __ATOMIC_SEQ_CST)) {
        __atomic_fetch_add(&m->refused, 1, __ATOMIC_SEQ_CST);
        return NULL;
    }
    // Sanitizers stop a program that asks for more than there can be.
    void *p = (uint64_t)size < (uint64_t)1 << 40 ? malloc(size) : NULL;
    if (p == NULL) return NULL;
    __atomic_fetch_add(&m->blocks, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&m->bytes, (int64_t)size, __ATOMIC_SEQ_CST);
    return p;
}

static void test_release(void *user, void *data, size_t size) {
    test_memory *m = (test_memory *)user;
    __atomic_fetch_sub(&m->blocks, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&m->bytes, (int64_t)size, __ATOMIC_SEQ_CST);
    free(data);
}

static void test_log(void *user, gn_log_level level, const char *text) {
    (void)user;
    (void)level;
    fprintf(stderr, "gpunum: %s\n", text);
}

static bool test_env_is(const char *name, const char *value) {
    const char *text = getenv(name);
    return text != NULL && strcmp(text, value) == 0;
}

static TEST_MAYBE_UNUSED bool test_on_webgpu(void) { return test_env_is("GN_TEST_BACKEND", "webgpu"); }

// On a GPU, however that is reached.
static TEST_MAYBE_UNUSED bool test_on_vulkan(void) {
    return test_env_is("GN_TEST_BACKEND", "vulkan") || test_on_webgpu();
}

// On lavapipe, whose compiling of a kernel takes a second or many.
static TEST_MAYBE_UNUSED bool test_on_software(gn_context *g) {
    gn_device_info info;
    gn_device_get(g, &info);
    return info.software;
}

// The options that the environment asks for; a test may change them before gn_open.
static gn_options test_options(void) {
    gn_options o;
    memset(&o, 0, sizeof o);
    bool vulkan = test_env_is("GN_TEST_BACKEND", "vulkan");
    o.backend = vulkan ? GN_BACKEND_VULKAN : test_on_webgpu() ? GN_BACKEND_WEBGPU : GN_BACKEND_CPU;
    o.placement = o.backend != GN_BACKEND_CPU ? GN_PLACE_GPU : GN_PLACE_AUTO;
    if (test_env_is("GN_TEST_PLACEMENT", "auto")) o.placement = GN_PLACE_AUTO;
    if (test_env_is("GN_TEST_PLACEMENT", "cpu")) o.placement = GN_PLACE_CPU;
    if (test_env_is("GN_TEST_PLACEMENT", "gpu")) o.placement = GN_PLACE_GPU;
    if (test_env_is("GN_TEST_PLACEMENT", "stay")) o.placement = GN_PLACE_STAY;
    if (test_env_is("GN_TEST_CPU", "plain")) o.cpu = GN_CPU_PLAIN;
    if (test_env_is("GN_TEST_CPU", "base")) o.cpu = GN_CPU_BASE;
    if (test_env_is("GN_TEST_CPU", "avx2")) o.cpu = GN_CPU_AVX2;
    if (test_env_is("GN_TEST_CPU", "avx512")) o.cpu = GN_CPU_AVX512;
    const char *flags = getenv("GN_TEST_VULKAN_FLAGS"), *threads = getenv("GN_TEST_THREADS");
    if (flags != NULL) o.vulkan_flags = (uint32_t)strtoul(flags, NULL, 0);
    if (threads != NULL) o.threads = (int)strtol(threads, NULL, 0);
    o.allocator.allocate = test_allocate;
    o.allocator.release = test_release;
    o.allocator.user = &test_heap;
    if (getenv("GN_TEST_LOG") != NULL) {
        o.log = test_log;
        o.log_level = GN_LOG_INFO;
    }
    return o;
}

static gn_context *test_open_with(const gn_options *options) {
    gn_context *g = gn_open(options);
    if (g == NULL) fail_msg("%s", gn_open_error());
    return g;
}

static gn_context *test_open(void) {
    gn_options o = test_options();
    return test_open_with(&o);
}

// a, or its copy in context g.
static TEST_MAYBE_UNUSED gn_array *brought(gn_context *g, gn_array *a) {
    if (g == gn_context_of(a)) return a;
    const size_t bytes = gn_bytes(a);
    void *data = malloc(bytes + 1);
    assert_non_null(data);
    assert_int_equal(gn_read(a, data, bytes), GN_OK);
    gn_array *copy = gn_array_from(g, gn_dtype_of(a), gn_shape_of(a), data);
    free(data);
    assert_non_null(copy);
    return copy;
}

// Contexts that tests of one program share, and their memory: others are opened and closed beside them.
static struct {
    gn_options options;
    gn_context *g;
    bool lent;
} test_shared[8];
static test_memory test_shared_heap = {0, 0, -1, 0, 0, INT64_MAX, false};

// One of these on Vulkan, made like a fresh one but for its kernels; else a context of its own. A scope has begun in it.
// Give it back with test_close.
static TEST_MAYBE_UNUSED gn_context *test_share(const gn_options *options) {
    gn_options o = *options;
    gn_context *g = NULL;
    if (test_on_vulkan() && getenv("GN_TEST_ALONE") == NULL) {
        int i = 0;
        o.allocator.user = &test_shared_heap;
        while (i < 7 && test_shared[i].g != NULL && memcmp(&test_shared[i].options, &o, sizeof o) != 0) i++;
        if (test_shared[i].g != NULL && (i == 7 || test_shared[i].lent)) { // one more kind, or its test failed
            gn_close(test_shared[i].g);
            test_shared[i].g = NULL;
        }
        if (test_shared[i].g == NULL) test_shared[i].g = test_open_with(&o);
        memcpy(&test_shared[i].options, &o, sizeof o);
        test_shared[i].lent = true;
        g = test_shared[i].g;
        gn_memory_trim(g);
        gn_seed(g, o.seed);
    } else {
        g = test_open_with(&o);
    }
    gn_scope_begin(g); // arrays of the test go with it
    return g;
}

// An error that the test did not expect or arrays that outlive their scope.
static TEST_MAYBE_UNUSED bool test_left(gn_context *g) {
    gn_memory_stats stats;
    gn_status status = gn_status_get(g);
    if (status != GN_OK) fprintf(stderr, "unexpected error: %s\n", gn_error(g));
    gn_scope_end(g);
    gn_memory_get(g, &stats);
    if (stats.arrays != 0)
        fprintf(stderr, "%llu arrays were not released\n", (unsigned long long)stats.arrays);
    return status != GN_OK || stats.arrays != 0;
}

static bool test_leaks(test_memory *m) {
    int64_t blocks = m->blocks;
    if (blocks != 0)
        fprintf(stderr, "%lld blocks, %lld bytes were not freed\n", (long long)blocks, (long long)m->bytes);
    m->blocks = m->bytes = 0; // so that the next test is not blamed
    return blocks != 0;
}

// Closes, or gives back what is shared; true if anything is left.
static TEST_MAYBE_UNUSED bool test_done(gn_context *g, bool scope) {
    for (int i = 0; i < 8; i++)
        if (g != NULL && test_shared[i].g == g) return test_shared[i].lent = test_left(g);
    bool left = scope && test_left(g);
    gn_close(g);
    return test_leaks(&test_heap) || left;
}

// Closes and fails if anything is left.
static TEST_MAYBE_UNUSED void test_close(gn_context *g) {
    if (test_done(g, false)) fail_msg("something is left in the context");
}

static TEST_MAYBE_UNUSED int test_setup(void **state) {
    gn_options o = test_options();
    return (*state = test_share(&o)) == NULL;
}

static TEST_MAYBE_UNUSED int test_setup_fresh(void **state) {
    gn_context *g = test_open();
    gn_scope_begin(g);
    *state = g;
    return g == NULL;
}

// An error that the test did not expect, arrays that outlive their scope and memory that outlives the
// context all fail the test.
static TEST_MAYBE_UNUSED int test_teardown(void **state) { return test_done((gn_context *)*state, true); }

// What main returns: how many tests failed, and whether memory is left of the contexts that they shared.
static TEST_MAYBE_UNUSED int test_end(int failed) {
    for (int i = 0; i < 8; i++) gn_close(test_shared[i].g);
    memset(test_shared, 0, sizeof test_shared);
    return test_leaks(&test_shared_heap) ? failed + 1 : failed;
}

// Runs fn with allocation number k failing, which must be reported or do no harm. False: it needs fewer.
static TEST_MAYBE_UNUSED bool test_allocation_fails(gn_context *g, void (*fn)(gn_context *g),
                                                    int64_t k) {
    test_memory *m = &test_heap;
    for (int i = 0; i < 8; i++)
        if (test_shared[i].g == g) m = &test_shared_heap;
    __atomic_store_n(&m->until_failure, k, __ATOMIC_SEQ_CST);
    fn(g);
    bool failed = __atomic_load_n(&m->until_failure, __ATOMIC_SEQ_CST) == 0;
    __atomic_store_n(&m->until_failure, -1, __ATOMIC_SEQ_CST);
    gn_status status = gn_status_get(g);
    if (status != GN_OK && (!failed || status != GN_ERROR_OUT_OF_MEMORY))
        fail_msg("allocation %lld: %s: %s", (long long)k, gn_status_string(status), gn_error(g));
    gn_error_clear(g);
    if (k > 10000) fail_msg("there is no end of allocations");
    return failed;
}

// Runs fn on fresh contexts in which the first, second, ... allocation fails, until it needs no more. Each
// failure must leak nothing.
static TEST_MAYBE_UNUSED void test_every_allocation(void (*fn)(gn_context *g)) {
    bool failed = true;
    for (int64_t k = 0; failed; k++) {
        gn_context *g = test_open();
        failed = test_allocation_fails(g, fn, k);
        test_close(g);
    }
}

// The same in one context that has all kernels already: compiling them again takes long.
static TEST_MAYBE_UNUSED void test_every_allocation_in(gn_context *g, void (*fn)(gn_context *g)) {
    fn(g);
    for (int64_t k = 0; test_allocation_fails(g, fn, k); k++) {}
    test_close(g);
}

// On fresh contexts, but on Vulkan in one.
static TEST_MAYBE_UNUSED void test_most_allocations(void (*fn)(gn_context *g)) {
    gn_options o = test_options();
    if (test_on_vulkan())
        test_every_allocation_in(test_share(&o), fn);
    else
        test_every_allocation(fn);
}

// ---- checks

// Checks the sticky error and clears it. `text` NULL: any message.
#define expect_error(g, status, text) expect_error_at((g), (status), (text), __FILE__, __LINE__)
static TEST_MAYBE_UNUSED void expect_error_at(gn_context *g, gn_status status, const char *text,
                                              const char *file, int line) {
    gn_status have = gn_status_get(g);
    if (have != status || (text != NULL && strcmp(gn_error(g), text) != 0)) {
        print_error("expected: %s: %s\n     got: %s: %s\n", gn_status_string(status),
                    text ? text : "", gn_status_string(have), gn_error(g));
        _fail(file, line);
    }
    gn_error_clear(g);
}

static TEST_MAYBE_UNUSED double test_half(unsigned bits, int fraction_bits, int bias) {
    unsigned fraction = bits & ((1u << fraction_bits) - 1u),
             field = (bits & 0x7fffu) >> fraction_bits;
    unsigned top = 0x7fffu >> fraction_bits;
    double v = ldexp((double)(field == 0 ? fraction : fraction | (1u << fraction_bits)),
                     (field == 0 ? 1 : (int)field) - bias - fraction_bits);
    if (field == top) v = fraction != 0 ? (double)NAN : (double)INFINITY;
    return bits & 0x8000u ? -v : v;
}

// One element of any real dtype; the data need not be aligned.
static TEST_MAYBE_UNUSED double test_element(gn_dtype t, const void *data, int64_t i) {
    union {
        float f;
        double d;
        int32_t i32;
        int64_t i64;
        uint32_t u32;
        uint16_t u16;
        int8_t i8;
        uint8_t u8;
    } v;
    size_t size = gn_dtype_size(t);
    memcpy(&v, (const char *)data + (size_t)i * size, size < sizeof v ? size : sizeof v);
    switch (t) {
    case GN_F32: return (double)v.f;
    case GN_F16: return test_half(v.u16, 10, 15);
    case GN_BF16: return test_half(v.u16, 7, 127);
    case GN_F64: return v.d;
    case GN_I32: return (double)v.i32;
    case GN_I64: return (double)v.i64;
    case GN_U32: return (double)v.u32;
    case GN_I8: return (double)v.i8;
    case GN_I16: return (double)(int16_t)v.u16;
    case GN_U16: return (double)v.u16;
    case GN_U64: return (double)(uint64_t)v.i64;
    default: return (double)v.u8;
    }
}

// Compares exactly; NaN equals NaN, zeros compare with their sign.
#define expect_values(a, ...)                                                          \
    expect_values_at((a), (int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), \
                     (double[]){__VA_ARGS__}, __FILE__, __LINE__)
static TEST_MAYBE_UNUSED void expect_values_at(gn_array *a, int64_t count, const double *values,
                                               const char *file, int line) {
    size_t bytes = gn_bytes(a);
    void *have = malloc(bytes + 16);
    bool ok = a != NULL && have != NULL && gn_size(a) == count && gn_read(a, have, bytes) == GN_OK;
    if (!ok)
        print_error("%lld elements, expected %lld; %s\n", (long long)gn_size(a), (long long)count,
                    a != NULL ? gn_error(gn_context_of(a)) : "NULL");
    for (int64_t i = 0; i < count && ok; i++) {
        double v = test_element(gn_dtype_of(a), have, i);
        ok = v == values[i] || (v != v && values[i] != values[i]);
        if (ok && v == 0.0) ok = !signbit(v) == !signbit(values[i]);
        if (!ok) print_error("element %lld is %.17g, expected %.17g\n", (long long)i, v, values[i]);
    }
    free(have);
    if (!ok) _fail(file, line);
}

#define expect_shape(a, ...) expect_shape_at((a), GN_SHAPE(__VA_ARGS__), __FILE__, __LINE__)
static TEST_MAYBE_UNUSED void expect_shape_at(gn_array *a, gn_shape s, const char *file, int line) {
    gn_shape have = gn_shape_of(a);
    bool same = a != NULL && have.rank == s.rank;
    for (int i = 0; same && i < s.rank; i++) same = have.dim[i] == s.dim[i];
    if (same) return;
    print_error("shape is (");
    for (int i = 0; i < have.rank; i++) print_error("%lld,", (long long)have.dim[i]);
    print_error(")%s\n", a == NULL ? " of NULL" : "");
    _fail(file, line);
}

// Axes that a file of cases names by bits 0 to 7, and 8 to 15 for those from the end; none of these: all of them, or
// none with bit 17. Bit 16 keeps them.
static TEST_MAYBE_UNUSED gn_axes axes_of_bits(uint32_t bits) {
    int list[16], n = 0;
    for (int i = -8; i < 8; i++)
        if (bits >> (i & 15) & 1u) list[n++] = i;
    gn_axes axes = n == 1 ? list[0] : n > 1 || (bits & 0x20000u) ? gn_axes_from(n, list) : GN_ALL;
    return bits & 0x10000u ? GN_KEEP(axes) : axes;
}

static uint64_t test_lot = 88172645463325252u;

static TEST_MAYBE_UNUSED uint32_t draw(uint32_t n) { // 0 to n - 1, the same in every run
    test_lot ^= test_lot << 13;
    test_lot ^= test_lot >> 7;
    test_lot ^= test_lot << 17;
    return (uint32_t)((test_lot >> 32) % n);
}

// ---- files

// A file of this repository, or of the folder the test runs in when GN_SOURCE_DIR is not set.
static TEST_MAYBE_UNUSED const char *test_source_file(const char *name) {
    static char path[1024];
    const char *root = getenv("GN_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/%s", root != NULL ? root : ".", name);
    return path;
}

// What a test skips without, CI has to have.
static TEST_MAYBE_UNUSED bool test_lacks(const char *what) {
    if (getenv("GN_REQUIRE_ALL") != NULL) fail_msg("there is no %s, and GN_REQUIRE_ALL is set", what);
    return false;
}

// Runs tests/make_cases.py, which writes expected values made by NumPy. False where there is no NumPy.
static TEST_MAYBE_UNUSED bool test_make_cases(const char *what, const char *output) {
    char command[2304];
    const char *python = getenv("GN_PYTHON");
    if (python == NULL || python[0] == 0) return test_lacks("NumPy");
    snprintf(command, sizeof command, "\"%s\" \"%s\" %s %s", python,
             test_source_file("tests/make_cases.py"), what, output);
    if (system(command) != 0) fail_msg("%s failed", command);
    return true;
}

// The whole file, with a zero byte behind it; free it.
static TEST_MAYBE_UNUSED unsigned char *test_read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) fail_msg("cannot open %s", path);
    size_t capacity = 1 << 16, n = 0, got;
    unsigned char *data = (unsigned char *)malloc(capacity + 1);
    while (data != NULL && (got = fread(data + n, 1, capacity - n, f)) > 0) {
        n += got;
        if (n == capacity) data = (unsigned char *)realloc(data, (capacity *= 2) + 1);
    }
    fclose(f);
    if (data == NULL) fail_msg("out of memory reading %s", path);
    data[n] = 0;
    *size = n;
    return data;
}

// A cursor over a case file.
typedef struct test_cases {
    unsigned char *data;
    const unsigned char *at;
    size_t size;
    int32_t count;
} test_cases;

static TEST_MAYBE_UNUSED void test_take_bytes(test_cases *c, void *to, size_t n) {
    if ((size_t)(c->data + c->size - c->at) < n) fail_msg("the case file is too short");
    memcpy(to, c->at, n);
    c->at += n;
}

static TEST_MAYBE_UNUSED int32_t test_take_int(test_cases *c) {
    int32_t v;
    test_take_bytes(c, &v, sizeof v);
    return v;
}

static TEST_MAYBE_UNUSED double test_take_double(test_cases *c) {
    double v;
    test_take_bytes(c, &v, sizeof v);
    return v;
}

// Length and text, which goes to `text`.
static TEST_MAYBE_UNUSED void test_take_text(test_cases *c, char *text, size_t size) {
    size_t n = (size_t)test_take_int(c);
    if (n >= size) fail_msg("a text of the case file is too long");
    test_take_bytes(c, text, n);
    text[n] = 0;
}

// An array of the case file: dtype, rank, shape, elements in C order.
typedef struct test_array {
    gn_dtype t;
    gn_shape s;
    int64_t n;
    size_t bytes;
    const unsigned char *data;
} test_array;

// False where the file has no array but -1.
static TEST_MAYBE_UNUSED bool test_take_array(test_cases *c, test_array *a) {
    int32_t t = test_take_int(c);
    memset(a, 0, sizeof *a);
    if (t < 0) return false;
    a->t = (gn_dtype)t;
    a->s = gn_shape_from(0, NULL);
    a->s.rank = test_take_int(c);
    test_take_bytes(c, a->s.dim, sizeof(int64_t) * (size_t)a->s.rank);
    a->n = 1;
    for (int i = 0; i < a->s.rank; i++) a->n *= a->s.dim[i];
    a->bytes = (size_t)a->n * gn_dtype_size(a->t);
    a->data = c->at;
    if ((size_t)(c->data + c->size - c->at) < a->bytes) fail_msg("the case file is too short");
    c->at += a->bytes;
    return true;
}

static TEST_MAYBE_UNUSED void test_cases_read(test_cases *c, const char *path) {
    c->data = test_read_file(path, &c->size);
    c->at = c->data;
    c->count = test_take_int(c);
}

// Reads WHAT.cases in the folder that GN_CASES names, which the build has made; false where it is not.
static TEST_MAYBE_UNUSED bool test_cases_made(test_cases *c, const char *what) {
    char path[1100];
    const char *folder = getenv("GN_CASES");
    memset(c, 0, sizeof *c);
    snprintf(path, sizeof path, "%s/%s.cases", folder != NULL ? folder : ".", what);
    FILE *f = folder != NULL ? fopen(path, "rb") : NULL;
    if (f == NULL) return false;
    fclose(f);
    test_cases_read(c, path);
    return true;
}

// Opens a case file, made here if it has to be; false where there is no NumPy.
static TEST_MAYBE_UNUSED bool test_cases_open(test_cases *c, const char *what) {
    char path[64];
    if (test_cases_made(c, what)) return true;
    snprintf(path, sizeof path, "%s.cases", what);
    if (!test_make_cases(what, path)) return false;
    test_cases_read(c, path);
    return true;
}

static TEST_MAYBE_UNUSED void test_cases_close(test_cases *c) {
    bool all = c->at == c->data + c->size;
    free(c->data);
    if (!all) fail_msg("the case file was not read to its end");
}

// Whether n numbers of a real dtype have the same bytes. A NaN is the same as any other: processors give them signs of their own.
static TEST_MAYBE_UNUSED bool test_same_numbers(gn_dtype t, const unsigned char *have, const unsigned char *want, int64_t n) {
    const size_t size = gn_dtype_size(t);
    const bool floats = t == GN_F16 || t == GN_BF16 || t == GN_F32 || t == GN_F64;
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(have + (size_t)i * size, want + (size_t)i * size, size) == 0) continue;
        const double x = floats ? test_element(t, have, i) : 0.0, y = floats ? test_element(t, want, i) : 0.0;
        if (x == x || y == y) return false;
    }
    return true;
}

// Whether the array has exactly that dtype, shape and bytes, but for the bits of NaNs.
static TEST_MAYBE_UNUSED bool test_same_bytes(gn_array *a, const test_array *b) {
    gn_shape s = gn_shape_of(a);
    const gn_dtype t = b->t == GN_C64 ? GN_F32 : b->t == GN_C128 ? GN_F64 : b->t;
    if (a == NULL || gn_dtype_of(a) != b->t || s.rank != b->s.rank || gn_bytes(a) != b->bytes)
        return false;
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] != b->s.dim[i]) return false;
    unsigned char *have = (unsigned char *)malloc(b->bytes + 1);
    bool same = have != NULL && gn_read(a, have, b->bytes) == GN_OK &&
                test_same_numbers(t, have, b->data, t == b->t ? b->n : 2 * b->n);
    free(have);
    return same;
}

// Whether the array has that dtype and shape, and its numbers are as near as `near` times the largest finite one.
static TEST_MAYBE_UNUSED bool test_near(gn_array *a, const test_array *b, double near) {
    gn_shape s = gn_shape_of(a);
    const gn_dtype t = b->t == GN_C64 ? GN_F32 : b->t == GN_C128 ? GN_F64 : b->t;
    const int64_t n = t == b->t ? b->n : 2 * b->n;
    if (a == NULL || gn_dtype_of(a) != b->t || s.rank != b->s.rank || gn_bytes(a) != b->bytes) return false;
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] != b->s.dim[i]) return false;
    unsigned char *have = (unsigned char *)malloc(b->bytes + 1);
    bool ok = have != NULL && gn_read(a, have, b->bytes) == GN_OK;
    double most = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double want = fabs(test_element(t, b->data, i));
        if (want - want == 0.0 && want > most) most = want;
    }
    for (int64_t i = 0; i < n && ok; i++) {
        const double x = test_element(t, have, i), want = test_element(t, b->data, i);
        ok = x != x ? want != want : x == want || fabs(x - want) <= near * most;
        if (!ok) print_error("element %lld is %.17g, NumPy has %.17g\n", (long long)i, x, want);
    }
    free(have);
    return ok;
}

// A function of one array, whose derivative is checked.
typedef gn_array *(*test_function)(gn_array *a);

// Elements weigh differently in the loss; twice: the gradient's own loss.
static TEST_MAYBE_UNUSED gn_array *test_loss(gn_context *g, gn_array *const *x, int count, void *user) {
    gn_array *y = (*(const test_function *)user)(x[0]);
    (void)count;
    gn_array *weights = gn_reshape(gn_sin(gn_arange(g, GN_F64, 1, (double)gn_size(y) + 1, 1)), gn_shape_of(y));
    return gn_sum(gn_mul(gn_mul(y, y), weights), GN_ALL);
}
static TEST_MAYBE_UNUSED gn_array *test_loss_twice(gn_context *g, gn_array *const *x, int count, void *user) {
    gn_array *dx = NULL;
    if (gn_gradients(test_loss(g, x, count, user), x, 1, true, &dx) != GN_OK) return NULL;
    return gn_sum(gn_square(dx), GN_ALL);
}

// A loss of y's gradients by n leaves, 3 at most.
static TEST_MAYBE_UNUSED gn_array *test_sines(gn_array *y, gn_array *const *in, int n) {
    gn_array *dx[3], *sum = NULL;
    if (gn_gradients(y, in, n, true, dx) != GN_OK) return NULL;
    for (int i = 0; i < n; i++) {
        gn_array *s = gn_sum(gn_sin(gn_add_s(gn_mul_s(dx[i], 0.02), 0.3 * i)), GN_ALL);
        sum = sum != NULL ? gn_add(sum, s) : s;
    }
    return sum;
}

// Its first and second derivative on (3, 4) numbers in no order, against differences.
static TEST_MAYBE_UNUSED void test_derivatives(gn_context *g, const char *name, test_function fn) {
    gn_scope_begin(g);
    gn_array *x = gn_sin(gn_add_s(gn_mul_s(gn_square(gn_arange(g, GN_F64, 0, 12, 1)), 0.37), 0.3));
    x = gn_requires_grad(gn_eval(gn_reshape(x, GN_SHAPE(3, 4))), true);
    const double first = gn_gradcheck(test_loss, &x, 1, 0.0, &fn), second = gn_gradcheck(test_loss_twice, &x, 1, 0.0, &fn);
    if (!(first < 1e-6) || !(second < 1e-5)) fail_msg("%s: errors %g, %g: %s", name, first, second, gn_error(g));
    gn_scope_end(g);
}

static TEST_MAYBE_UNUSED void test_write_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        fail_msg("cannot write %s", path);
}

#endif
