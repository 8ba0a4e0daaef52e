// The matrix product on the CPU against float64 and exact integers, in every instruction set that there
// is, with one thread and with several. Compiled with GPUNUM_USE_CBLAS, also against the library itself.
#include "test.h"

static int64_t below(int64_t n) { return (int64_t)draw((uint32_t)n); }

static bool is_integer(gn_dtype t) {
    return t != GN_F32 && t != GN_F64 && t != GN_F16 && t != GN_BF16;
}

// ---- operands

static gn_array *random_array(gn_context *g, gn_dtype t, gn_shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++) n *= s.dim[i];
    double *x = (double *)malloc((size_t)n * sizeof *x + 8);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) {
        const double u = (double)draw(1u << 31) / 2147483648.0;
        if (t == GN_I64) {
            x[i] = floor((u - 0.5) * 0x1p45);
        } else if (t == GN_U8 || t == GN_BOOL) {
            x[i] = floor(u * (t == GN_BOOL ? 2 : 256));
        } else if (is_integer(t)) {
            x[i] = floor((t == GN_U32 ? u : u - 0.5) * (t == GN_I8 ? 256 : 0x1p32));
        } else {
            x[i] = 2 * u - 1;
        }
    }
    gn_array *a = gn_cast(gn_array_from(g, GN_F64, s, x), t);
    free(x);
    return a;
}

enum { LAYOUTS = 7 };

// A random (rows,cols) array that lies in memory in one of several ways.
static gn_array *random_matrix(gn_context *g, gn_dtype t, int64_t rows, int64_t cols,
                               int64_t layout) {
    gn_array *a;
    switch (layout) {
    case 1: return gn_transpose(random_array(g, t, GN_SHAPE(cols, rows)));
    case 2: // rows with a gap
        a = random_array(g, t, GN_SHAPE(rows, cols + 3));
        return gn_slice(a, 1, 1, cols + 1, 1);
    case 3: // no unit stride
        a = random_array(g, t, GN_SHAPE(2 * rows, 2 * cols));
        return gn_slice(gn_slice(a, 0, 0, GN_NONE, 2), 1, 1, GN_NONE, 2);
    case 4: return gn_flip(random_array(g, t, GN_SHAPE(rows, cols)), GN_AXES(0, 1));
    case 5: return gn_broadcast_to(random_array(g, t, GN_SHAPE(cols)), GN_SHAPE(rows, cols));
    case 6: return gn_broadcast_to(random_array(g, t, GN_SHAPE(rows, 1)), GN_SHAPE(rows, cols));
    default: return random_array(g, t, GN_SHAPE(rows, cols));
    }
}

static void *contents(gn_array *a) {
    assert_non_null(a);
    void *data = malloc(gn_bytes(a) + 16);
    assert_non_null(data);
    assert_int_equal(gn_read(a, data, gn_bytes(a)), GN_OK);
    return data;
}

// As values that can be multiplied and summed: doubles, or integers.
static double *as_doubles(gn_array *a) {
    void *data = contents(a);
    double *x = (double *)malloc((size_t)gn_size(a) * sizeof *x + 8);
    assert_non_null(x);
    for (int64_t i = 0; i < gn_size(a); i++) x[i] = test_element(gn_dtype_of(a), data, i);
    free(data);
    return x;
}

// ---- the reference

// Half the distance of neighbours at 1, and the smallest step there is.
static double unit_of(gn_dtype t) {
    return t == GN_F64 ? 0x1p-53 : t == GN_F16 ? 0x1p-11 : t == GN_BF16 ? 0x1p-8 : 0x1p-24;
}
static double step_of(gn_dtype t) {
    return t == GN_F64 ? 0 : t == GN_F16 ? 0x1p-24 : t == GN_BF16 ? 0x1p-133 : 0x1p-149;
}

// NumPy's integers wrap.
static double wrapped(gn_dtype t, uint64_t sum) {
    switch (t) {
    case GN_BOOL: return sum != 0;
    case GN_U8: return (double)(uint8_t)sum;
    case GN_I8: return (double)(int8_t)(uint8_t)sum;
    case GN_U32: return (double)(uint32_t)sum;
    case GN_I32: return (double)(int32_t)(uint32_t)sum;
    default: return (double)(int64_t)sum;
    }
}

static bool agrees(double have, double want, double bound) {
    if (isnan(want)) return isnan(have);
    if (isinf(want)) return have == want;
    return fabs(have - want) <= bound;
}

// One element. x and y hold k elements that lie x_step and y_step apart.
TEST_UNWATCHED static bool element_agrees(gn_dtype t, double have, const double *x, int64_t x_step,
                           const double *y, int64_t y_step, int64_t k) {
    if (is_integer(t)) {
        uint64_t sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += (uint64_t)(int64_t)x[p * x_step] * (uint64_t)(int64_t)y[p * y_step];
        return have == wrapped(t, sum);
    }
    double sum = 0, size = 0;
    for (int64_t p = 0; p < k; p++) {
        const double v = x[p * x_step] * y[p * y_step];
        sum += v;
        size += fabs(v);
    }
    const gn_dtype inner = t == GN_F64 ? GN_F64 : GN_F32;
    const double bound = (double)(k + 2) * (unit_of(inner) * size + step_of(inner));
    return agrees(have, sum,
                  bound + (t == inner ? 0 : unit_of(t) * (fabs(sum) + bound) + step_of(t)));
}

// c (m,n) against a (m,k) and b (k,n), all contiguous.
static void expect_product(gn_dtype t, const double *c, const double *a, const double *b, int64_t m,
                           int64_t n, int64_t k, const char *what) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            if (element_agrees(t, c[i * n + j], a + i * k, 1, b + j, n, k)) continue;
            fail_msg("%s, %s (%lld,%lld) x (%lld,%lld): element (%lld,%lld) is %.9g", what,
                     gn_dtype_name(t), (long long)m, (long long)k, (long long)k, (long long)n,
                     (long long)i, (long long)j, c[i * n + j]);
        }
    }
}

static void check_matmul(gn_array *a, gn_array *b, const char *what) {
    const int64_t m = gn_dim(a, 0), k = gn_dim(a, 1), n = gn_dim(b, 1);
    gn_array *c = gn_matmul(a, b);
    expect_shape(c, m, n);
    assert_int_equal(gn_dtype_of(c), gn_dtype_of(a));
    double *x = as_doubles(a), *y = as_doubles(b), *z = as_doubles(c);
    expect_product(gn_dtype_of(c), z, x, y, m, n, k, what);
    free(x);
    free(y);
    free(z);
}

// ---- contexts

typedef struct setting {
    gn_cpu cpu;
    int threads;
    const char *name;
} setting;

static const setting settings[] = {{GN_CPU_PLAIN, 1, "plain"},
                                   {GN_CPU_BASE, 1, "base"},
                                   {GN_CPU_BASE, 3, "base, 3 threads"},
                                   {GN_CPU_AVX2, 1, "AVX2"},
                                   {GN_CPU_AVX2, 3, "AVX2, 3 threads"},
                                   {GN_CPU_AVX512, 1, "AVX-512"},
                                   {GN_CPU_AVX512, 2, "AVX-512, 2 threads"},
                                   {GN_CPU_AVX512, 3, "AVX-512, 3 threads"}};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

static gn_context *open_setting(const setting *s) {
    gn_options o = test_options();
    o.cpu = s->cpu;
    o.threads = s->threads;
    return test_open_with(&o);
}

static void close_setting(gn_context *g) {
    if (gn_status_get(g) != GN_OK) fail_msg("%s", gn_error(g));
    test_close(g);
}

// Runs fn with every setting. One thread has none to race with.
static void with_settings(void (*fn)(gn_context *g, const char *what)) {
    for (int i = 0; i < SETTINGS; i++) {
        if (TEST_THREAD_SANITIZER && settings[i].threads == 1) continue;
        gn_context *g = open_setting(&settings[i]);
        fn(g, settings[i].name);
        close_setting(g);
    }
}

// ---- tests

static const gn_dtype dtypes[] = {GN_F32, GN_F32, GN_F32, GN_F64, GN_F16, GN_BF16,
                                  GN_I32, GN_I64, GN_U8,  GN_I8,  GN_U32, GN_BOOL};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static void random_shapes(gn_context *g, const char *what) {
    static const int64_t side[] = {1,  2,  3,  4,  5,  7,  8,  9,  13, 14, 15,
                                   16, 17, 28, 29, 31, 33, 43, 63, 65, 97, 130};
    static const int64_t deep[] = {1, 2, 3, 8, 15, 16, 17, 33, 64, 127, 385, 800};
    for (int i = 0; i < (TEST_SANITIZER ? 110 : 220); i++) {
        GN_SCOPE(g) {
            const gn_dtype t = dtypes[below(DTYPES)];
            int64_t m = side[below(22)], n = side[below(22)], k = deep[below(12)];
            if (below(12) == 0) m = 1;
            if (below(12) == 0) n = 1;
            if (below(30) == 0) m = 301;
            if (below(30) == 0) n = 515;
            gn_array *a = random_matrix(g, t, m, k, below(2) ? below(LAYOUTS) : below(2));
            gn_array *b = random_matrix(g, t, k, n, below(2) ? below(LAYOUTS) : below(2));
            check_matmul(a, b, what);
        }
    }
}
static void test_random_shapes(void **state) {
    (void)state;
    with_settings(random_shapes);
}

// Larger than every block: k is cut, panels of a and b are packed more than once.
static void large_shapes(gn_context *g, const char *what) {
    static size_t sanitized;
    static const struct {
        gn_dtype t;
        int64_t m, k, n, a, b;
    } cases[] = {{GN_F32, 301, 1100, 203, 0, 0}, {GN_F32, 70, 1029, 530, 1, 0},
                 {GN_F32, 205, 517, 301, 0, 1},  {GN_F32, 130, 1024, 129, 1, 1},
                 {GN_F32, 1, 3000, 700, 0, 0},   {GN_F32, 700, 3000, 1, 1, 0},
                 {GN_F32, 9, 2100, 500, 0, 1},   {GN_F32, 500, 2100, 11, 0, 0},
                 {GN_F32, 512, 7, 512, 0, 0},    {GN_F64, 150, 600, 131, 1, 0},
                 {GN_BF16, 203, 1030, 67, 0, 1}, {GN_BF16, 600, 65, 150, 1, 0},
                 {GN_F16, 520, 515, 40, 0, 0},   {GN_I64, 70, 515, 90, 0, 1},
                 {GN_F64, 1, 3000, 707, 0, 0},   {GN_F64, 1, 3001, 700, 0, 1},
                 {GN_F64, 707, 3000, 1, 1, 0},   {GN_F64, 703, 3001, 1, 0, 0}};
    // With a sanitizer every setting has a third of them.
    for (size_t i = TEST_SANITIZER ? sanitized++ % 3 : 0; i < sizeof cases / sizeof cases[0]; i += TEST_SANITIZER ? 3 : 1) {
        GN_SCOPE(g) {
            gn_array *a = random_matrix(g, cases[i].t, cases[i].m, cases[i].k, cases[i].a);
            gn_array *b = random_matrix(g, cases[i].t, cases[i].k, cases[i].n, cases[i].b);
            check_matmul(a, b, what);
        }
    }
}
static void test_large_shapes(void **state) {
    (void)state;
    with_settings(large_shapes);
}

// a and b broadcast to `batch` products, by the shape of the result.
static void check_batches(gn_array *a, gn_array *b, gn_shape full_a, gn_shape full_b,
                          const char *what) {
    gn_array *c = gn_matmul(a, b);
    const int64_t m = gn_dim(a, -2), k = gn_dim(a, -1), n = gn_dim(b, -1);
    double *x = as_doubles(gn_broadcast_to(a, full_a)), *y = as_doubles(gn_broadcast_to(b, full_b));
    double *z = as_doubles(c);
    int64_t batch = 1;
    for (int i = 0; i < full_a.rank - 2; i++) batch *= full_a.dim[i];
    assert_true(gn_size(c) == batch * m * n);
    for (int64_t q = 0; q < batch; q++)
        expect_product(gn_dtype_of(c), z + q * m * n, x + q * m * k, y + q * k * n, m, n, k, what);
    free(x);
    free(y);
    free(z);
}

static void batches(gn_context *g, const char *what) {
    static const gn_dtype kinds[] = {GN_F32, GN_F16, GN_F64, GN_I32, GN_BF16};
    for (int i = 0; i < 15; i++) {
        const gn_dtype t = kinds[i % 5];
        const int64_t m = i % 3 == 1 ? 1 : 1 + below(90), k = 1 + below(60),
                      n = i % 3 == 2 ? 1 : 1 + below(90);
        GN_SCOPE(g) {
            gn_array *a = random_array(g, t, GN_SHAPE(3, 1, m, k));
            gn_array *b = random_array(g, t, GN_SHAPE(4, k, n));
            const gn_shape sa = GN_SHAPE(3, 4, m, k), sb = GN_SHAPE(3, 4, k, n);
            check_batches(a, b, sa, sb, what);
            // every other product, backwards, and transposed matrices
            gn_array *c = random_array(g, t, GN_SHAPE(8, k, m)),
                     *d = random_array(g, t, GN_SHAPE(n, 4, k));
            c = gn_swap_axes(gn_slice(c, 0, GN_NONE, GN_NONE, -2), 1, 2);
            d = gn_permute_axes(d, (const int[]){1, 2, 0}, 3);
            check_batches(c, d, GN_SHAPE(4, m, k), GN_SHAPE(4, k, n), what);
            // rows of a batch over one matrix
            check_batches(random_array(g, t, GN_SHAPE(3, 4, m, k)),
                          random_array(g, t, GN_SHAPE(k, n)), sa, sb, what);
        }
    }
}
static void test_batches(void **state) {
    (void)state;
    with_settings(batches);
}

static void test_vectors(void **state) {
    gn_context *g = *state;
    const double xs[] = {1, 2, 3}, ms[] = {1, 2, 3, 4, 5, 6};
    gn_array *x = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(3), xs), GN_F32);
    gn_array *m = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(3, 2), ms), GN_F32);
    expect_shape(gn_matmul(x, x), );
    expect_values(gn_matmul(x, x), 14);
    expect_shape(gn_matmul(x, m), 2);
    expect_values(gn_matmul(x, m), 22, 28);
    expect_shape(gn_matmul(gn_transpose(m), x), 2);
    expect_values(gn_matmul(gn_transpose(m), x), 22, 28);
    expect_shape(gn_matmul(gn_broadcast_to(m, GN_SHAPE(4, 3, 2)), gn_slice(x, 0, 0, 2, 1)), 4, 3);
    expect_shape(gn_matmul(x, gn_broadcast_to(m, GN_SHAPE(4, 3, 2))), 4, 2);
}

// Sums of nothing are zero, and so is the work on nothing.
static void test_empty(void **state) {
    gn_context *g = *state;
    for (int i = 0; i < DTYPES; i++) {
        const gn_dtype t = dtypes[i];
        gn_array *c = gn_matmul(gn_zeros(g, t, GN_SHAPE(2, 0)), gn_zeros(g, t, GN_SHAPE(0, 3)));
        expect_shape(c, 2, 3);
        expect_values(c, 0, 0, 0, 0, 0, 0);
        expect_shape(gn_matmul(gn_zeros(g, t, GN_SHAPE(0, 5)), gn_zeros(g, t, GN_SHAPE(5, 3))), 0,
                     3);
        expect_shape(gn_matmul(gn_zeros(g, t, GN_SHAPE(4, 5)), gn_zeros(g, t, GN_SHAPE(5, 0))), 4,
                     0);
        expect_shape(gn_matmul(gn_zeros(g, t, GN_SHAPE(0, 2, 5)), gn_zeros(g, t, GN_SHAPE(5, 3))),
                     0, 2, 3);
        expect_values(gn_matmul(gn_zeros(g, t, GN_SHAPE(0)), gn_zeros(g, t, GN_SHAPE(0))), 0);
    }
}

// NaN and infinities reach exactly the elements that NumPy has them in: 0 * Inf is NaN.
static void special_values(gn_context *g, const char *what) {
    static const gn_dtype kinds[] = {GN_F32, GN_F16, GN_BF16, GN_F64};
    for (int i = 0; i < 40; i++) {
        GN_SCOPE(g) {
            const gn_dtype t = kinds[i % 4];
            const int64_t m = 1 + below(70), n = 1 + below(70), k = 1 + below(300);
            const gn_shape sa = GN_SHAPE(m, k), sb = GN_SHAPE(k, n);
            double *x = (double *)calloc((size_t)(m * k), sizeof *x);
            double *y = (double *)calloc((size_t)(k * n), sizeof *y);
            assert_true(x != NULL && y != NULL);
            for (int64_t p = 0; p < m * k; p++) x[p] = (double)(below(9) - 4);
            for (int64_t p = 0; p < k * n; p++) y[p] = (double)(below(9) - 4);
            x[below(m * k)] = (double)INFINITY;
            x[below(m * k)] = -(double)INFINITY;
            y[below(k * n)] = (double)INFINITY;
            if (below(2)) x[below(m * k)] = (double)NAN;
            if (below(2)) y[below(k * n)] = (double)NAN;
            gn_array *a = gn_cast(gn_array_from(g, GN_F64, sa, x), t);
            gn_array *b = gn_cast(gn_array_from(g, GN_F64, sb, y), t);
            if (below(2)) b = gn_transpose(gn_copy(gn_transpose(b)));
            check_matmul(a, b, what);
            free(x);
            free(y);
        }
    }
}
static void test_special_values(void **state) {
    (void)state;
    with_settings(special_values);
}

// Products and operands below the normal numbers are not taken for zero, not even by instructions that
// would do that.
static void tiny_values(gn_context *g, const char *what) {
    static const struct {
        gn_dtype t;
        double a, b;
    } cases[] = {{GN_BF16, 0x1p-68, 0x1p-64}, {GN_BF16, 0x1p-130, 0x1p10},
                 {GN_BF16, 0x1p-63, 0x1p-63}, {GN_F32, 0x1p-70, 0x1p-66},
                 {GN_F32, 0x1p-140, 0x1p12},  {GN_F16, 0x1p-22, 0x1p5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        GN_SCOPE(g) {
            const int64_t m = 33, k = 40, n = 35;
            double *x = (double *)malloc((size_t)(m * k) * sizeof *x);
            double *y = (double *)malloc((size_t)(k * n) * sizeof *y);
            assert_true(x != NULL && y != NULL);
            for (int64_t p = 0; p < m * k; p++) x[p] = (double)(below(5) - 2) * cases[i].a;
            for (int64_t p = 0; p < k * n; p++) y[p] = (double)(below(5) - 2) * cases[i].b;
            check_matmul(gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(m, k), x), cases[i].t),
                         gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(k, n), y), cases[i].t), what);
            free(x);
            free(y);
        }
    }
}
static void test_tiny_values(void **state) {
    (void)state;
    with_settings(tiny_values);
}

// x w + b, the bias being added inside of the product.
static void linear(gn_context *g, const char *what) {
    for (int i = 0; i < 40; i++) {
        GN_SCOPE(g) {
            const int64_t m = 1 + below(90), k = 1 + below(600), n = 1 + below(90);
            gn_array *x = random_matrix(g, GN_F32, m, k, below(2)),
                     *b = random_array(g, GN_F32, GN_SHAPE(n));
            gn_array *w = random_matrix(g, GN_F32, k, n, below(2));
            // as one row and one column more
            gn_array *xs[2], *ws[2];
            xs[0] = x, xs[1] = gn_ones(g, GN_F32, GN_SHAPE(m, 1));
            ws[0] = w, ws[1] = gn_reshape(b, GN_SHAPE(1, n));
            double *xa = as_doubles(gn_concat(xs, 2, 1)), *wa = as_doubles(gn_concat(ws, 2, 0));
            double *ya = as_doubles(gn_linear(x, w, b));
            expect_product(GN_F32, ya, xa, wa, m, n, k + 1, what);
            free(xa);
            free(wa);
            free(ya);
        }
    }
}
static void test_linear(void **state) {
    (void)state;
    with_settings(linear);
}

#ifndef GPUNUM_USE_CBLAS
// The number of threads changes no bit.
static void test_threads_agree(void **state) {
    (void)state;
    static const gn_dtype kinds[] = {GN_F32, GN_F32, GN_BF16, GN_F64};
    for (int i = 0; i < 60; i++) {
        const bool row = i % 8 == 3, column = i % 8 == 7; // of float64
        const int64_t m = row ? 1 : 1 + below(200), k = 1 + below(900),
                      n = column ? 1 : 1 + below(200), la = below(4), lb = below(4);
        const uint64_t start = test_lot;
        void *first = NULL;
        for (int threads = 1; threads <= 5; threads += 2) {
            const setting s = {GN_CPU_AVX512, threads, ""};
            gn_context *g = open_setting(&s);
            GN_SCOPE(g) {
                test_lot = start;
                gn_array *a = random_matrix(g, kinds[i % 4], m, k, la);
                gn_array *b = random_matrix(g, kinds[i % 4], k, n, lb), *c = gn_matmul(a, b);
                void *data = contents(c);
                if (first == NULL) {
                    first = data;
                } else {
                    assert_memory_equal(first, data, gn_bytes(c));
                    free(data);
                }
            }
            close_setting(g);
        }
        free(first);
    }
}
#else
void cblas_sgemm(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                 const float *a, int a_step, const float *b, int b_step, float beta, float *c,
                 int c_step);
void cblas_dgemm(int order, int turn_a, int turn_b, int m, int n, int k, double alpha,
                 const double *a, int a_step, const double *b, int b_step, double beta, double *c,
                 int c_step);

// The bits are the library's own.
static void test_cblas(void **state) {
    gn_context *g = *state;
    enum { M = 200, K = 150, N = 170 };
    for (int i = 0; i < 8; i++) {
        const gn_dtype t = i < 4 ? GN_F32 : GN_F64;
        const bool ta = (i & 1) != 0, tb = (i & 2) != 0;
        gn_array *a = random_matrix(g, t, M, K, ta), *b = random_matrix(g, t, K, N, tb);
        void *x = contents(ta ? gn_transpose(a) : a), *y = contents(tb ? gn_transpose(b) : b);
        void *have = contents(gn_matmul(a, b)), *want = calloc((size_t)M * N, 8);
        assert_non_null(want);
        if (t == GN_F32) {
            cblas_sgemm(101, ta ? 112 : 111, tb ? 112 : 111, M, N, K, 1, (const float *)x,
                        ta ? M : K, (const float *)y, tb ? K : N, 0, (float *)want, N);
        } else {
            cblas_dgemm(101, ta ? 112 : 111, tb ? 112 : 111, M, N, K, 1, (const double *)x,
                        ta ? M : K, (const double *)y, tb ? K : N, 0, (double *)want, N);
        }
        assert_memory_equal(have, want, (size_t)M * N * gn_dtype_size(t));
        free(x);
        free(y);
        free(have);
        free(want);
    }
}
#endif

static void products_for_memory(gn_context *g) {
    GN_SCOPE(g) {
        gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(130, 600)),
                 *b = gn_ones(g, GN_F32, GN_SHAPE(600, 70));
        gn_eval(gn_matmul(a, b));
        gn_eval(gn_matmul(gn_broadcast_to(a, GN_SHAPE(3, 130, 600)),
                          gn_broadcast_to(b, GN_SHAPE(3, 600, 70))));
    }
}
static void test_allocations(void **state) {
    (void)state;
    test_every_allocation(products_for_memory);
}

int main(void) {
    if (test_on_vulkan()) return 0; // other tests compare the GPU
    const struct CMUnitTest tests[] = {
        GN_TEST(test_vectors),
        GN_TEST(test_empty),
        cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_large_shapes),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_tiny_values),
        cmocka_unit_test(test_linear),
#ifndef GPUNUM_USE_CBLAS
        cmocka_unit_test(test_threads_agree),
#else
        GN_TEST(test_cblas),
#endif
        cmocka_unit_test(test_allocations),
    };
    return test_run(tests);
}
