// Matrix products against float64 ones computed here: odd sizes, views of every kind, batches, bias. The rows of
// memory around a view hold NaN, which must not reach the result.
//
// Bounds. A sum of k products in float32 is off by at most gamma = k u / (1 - k u) of sum |a||b|, u = 2^-24;
// matrix units cut off instead of rounding: u = 2^-23. The result is rounded to its dtype once. With
// GN_PRECISION_FAST float32 operands may be rounded to bfloat16 first (2^-8 each), with GN_PRECISION_HIGH to 2^-23.
//
//   GN_TEST_ROUNDS=200   random products of each dtype

#include "test.h"

typedef enum kind { PLAIN, TRANSPOSED, CUT, STEPPED, REVERSED, SPREAD, KINDS } kind;

// (batch, rows, columns) of values in [-1, 1) with the given layout, batch 0: no such dimension. `ref` gets the
// values as they were rounded to t.
TEST_UNWATCHED static gn_array *make(gn_context *g, gn_dtype t, int64_t batch, int64_t rows, int64_t columns,
                      kind how, double *ref) {
    int64_t n = batch > 0 ? batch : 1, r = rows, c = columns, top = 0, left = 0, step = 1;
    if (how == CUT || how == STEPPED) {
        top = 1 + draw(3);
        left = draw(4);
        step = how == STEPPED ? 2 : 1;
        r = rows + top + draw(2);
        c = columns * step + left + draw(3);
    }
    bool spread = how == SPREAD && batch > 1;
    int64_t held = spread ? 1 : n;
    float *data = (float *)malloc((size_t)(held * r * c + 1) * sizeof(float));
    for (int64_t i = 0; i < held * r * c; i++) data[i] = NAN;
    for (int64_t b = 0; b < held; b++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                data[(b * r + top + i) * c + left + j * step] =
                    (float)draw(1u << 20) / 524288.0f - 1.0f;
    gn_array *a;
    if (how == TRANSPOSED) {
        float *turned = (float *)malloc((size_t)(held * r * c + 1) * sizeof(float));
        for (int64_t b = 0; b < held; b++)
            for (int64_t i = 0; i < r; i++)
                for (int64_t j = 0; j < c; j++)
                    turned[(b * c + j) * r + i] = data[(b * r + i) * c + j];
        a = gn_swap_axes(
            gn_eval(gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(held, c, r), turned), t)), 1, 2);
        free(turned);
    } else {
        a = gn_eval(gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(held, r, c), data), t));
    }
    free(data);
    if (how == CUT || how == STEPPED) {
        a = gn_slice(a, 1, top, top + rows, 1);
        a = gn_slice(a, 2, left, left + columns * step, step);
    }
    if (how == REVERSED) a = gn_flip(a, draw(2) ? GN_AXES(1, 2) : 1);
    if (spread) a = gn_broadcast_to(a, GN_SHAPE(n, rows, columns));
    float *flat = (float *)malloc((size_t)(n * rows * columns + 1) * sizeof(float));
    assert_int_equal(
        gn_read(gn_cast(a, GN_F32), flat, (size_t)(n * rows * columns) * sizeof(float)), GN_OK);
    for (int64_t i = 0; i < n * rows * columns; i++) ref[i] = (double)flat[i];
    free(flat);
    return batch > 0 ? a : gn_squeeze(a, 0);
}

static double *doubles(int64_t n) { return (double *)malloc((size_t)(n + 1) * sizeof(double)); }

// Unit roundoff of a result, and of the sums behind it.
static double result_unit(gn_dtype t) {
    return t == GN_F16 ? 0x1p-11 : t == GN_BF16 ? 0x1p-8 : t == GN_F64 ? 0x1p-53 : 0x1p-24;
}
static double sum_unit(gn_dtype t) {
    return t == GN_F64 ? 0x1p-53 : t == GN_F32 ? 0x1p-24 : 0x1p-23;
}

typedef struct shape {
    int64_t batch, m, n, k;
    bool a_batched, b_batched;
} shape;

// Compares y with a x b (+ bias). `input`: relative error that each operand may have on top.
TEST_UNWATCHED static void compare(gn_array *y, gn_dtype t, shape s, const double *a, const double *b,
                    const double *bias, double input, const char *what) {
    int64_t batch = s.batch > 0 ? s.batch : 1, count = batch * s.m * s.n;
    float *have = (float *)malloc((size_t)(count + 1) * sizeof(float));
    double *wide = doubles(count);
    if (t == GN_F64) {
        assert_int_equal(gn_read(y, wide, (size_t)count * sizeof(double)), GN_OK);
    } else {
        assert_int_equal(gn_read(gn_cast(y, GN_F32), have, (size_t)count * sizeof(float)), GN_OK);
        for (int64_t i = 0; i < count; i++) wide[i] = (double)have[i];
    }
    double ku = (double)(s.k + (bias != NULL)) * sum_unit(t), gamma = ku / (1 - ku);
    for (int64_t q = 0; q < batch; q++)
        for (int64_t i = 0; i < s.m; i++)
            for (int64_t j = 0; j < s.n; j++) {
                const double *x = a + (s.a_batched ? q : 0) * s.m * s.k + i * s.k;
                const double *z = b + (s.b_batched ? q : 0) * s.k * s.n + j;
                double sum = bias != NULL ? bias[j] : 0, size = fabs(sum);
                for (int64_t l = 0; l < s.k; l++) {
                    sum += x[l] * z[l * s.n];
                    size += fabs(x[l] * z[l * s.n]);
                }
                double off = fabs(wide[(q * s.m + i) * s.n + j] - sum);
                double bound = gamma * size + (2 * input + input * input) * size;
                bound += result_unit(t) * (fabs(sum) + bound) + (t == GN_F16 ? 0x1p-25 : 0);
                if (!(off <= bound))
                    fail_msg(
                        "%s: (%d x %d x %d) batch %d: element %d, %d, %d is %.9g, not %.9g: off by %.3g, bound %.3g",
                        what, (int)s.m, (int)s.n, (int)s.k, (int)s.batch, (int)q, (int)i, (int)j,
                        wide[(q * s.m + i) * s.n + j], sum, off, bound);
            }
    free(have);
    free(wide);
}

static void product(gn_context *g, gn_dtype t, shape s, kind how_a, kind how_b, double input) {
    int64_t batch = s.batch > 0 ? s.batch : 1;
    double *a = doubles(batch * s.m * s.k), *b = doubles(batch * s.k * s.n);
    char what[100];
    gn_scope_begin(g);
    gn_array *x = make(g, t, s.a_batched ? s.batch : 0, s.m, s.k, how_a, a);
    gn_array *z = make(g, t, s.b_batched ? s.batch : 0, s.k, s.n, how_b, b);
    snprintf(what, sizeof what, "%s, layouts %d and %d", gn_dtype_name(t), (int)how_a, (int)how_b);
    gn_array *y = gn_matmul(x, z);
    assert_non_null(y);
    assert_int_equal(gn_dtype_of(y), t);
    compare(y, t, s, a, b, NULL, input, what);
    gn_scope_end(g);
    free(a);
    free(b);
}

static shape sized(int64_t m, int64_t n, int64_t k) {
    shape s;
    s.batch = 0;
    s.m = m;
    s.n = n;
    s.k = k;
    s.a_batched = s.b_batched = false;
    return s;
}

static const gn_dtype dtypes[] = {GN_F32, GN_F16, GN_BF16, GN_F64};

static int rounds(int usual) {
    const char *text = getenv("GN_TEST_ROUNDS");
    return text != NULL ? (int)strtol(text, NULL, 10) : usual;
}

static void test_random(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int d = 0; d < 4; d++)
        for (int i = 0; i < rounds(40); i++) {
            uint32_t most = draw(4) == 0 ? 160 : draw(3) == 0 ? 12 : 70;
            shape s = sized(1 + draw(most), 1 + draw(most), 1 + draw(most));
            if (draw(3) == 0) {
                s.batch = 1 + draw(4);
                s.a_batched = draw(4) != 0;
                s.b_batched = !s.a_batched || draw(3) != 0;
            }
            product(g, dtypes[d], s, (kind)draw(KINDS), (kind)draw(KINDS), 0);
        }
}

// Around the tiles' edges, in the layouts that have kernels of their own.
// Whole tiles of rows that go backwards in memory.
static void test_backwards(void **state) {
    gn_context *g = (gn_context *)*state;
    static const gn_dtype types[] = {GN_F32, GN_F16, GN_BF16};
    for (int i = 0; i < 3; i++) product(g, types[i], sized(128, 256, 128), REVERSED, REVERSED, 0);
}

static void test_edges(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[][3] = {{1, 1, 1},      {16, 16, 16}, {17, 19, 23},  {32, 32, 16},
                                      {33, 31, 65},   {64, 64, 64}, {65, 127, 33}, {128, 128, 128},
                                      {127, 130, 63}, {129, 72, 8}, {136, 16, 40}, {200, 256, 72},
                                      {9, 300, 31},   {300, 9, 31}, {16, 40, 0},   {200, 1, 520},
                                      {1, 208, 97}};
    for (int d = 0; d < 3; d++)
        for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
            for (int how = 0; how < 4; how++)
                product(g, dtypes[d], sized(size[i][0], size[i][1], size[i][2]),
                        how & 1 ? TRANSPOSED : PLAIN, how & 2 ? TRANSPOSED : PLAIN, 0);
}

// Few elements and long sums: k is split over workgroups, whose parts are joined in one step or several.
static void test_long_sums(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[][3] = {{20, 20, 3001},  {64, 64, 8192}, {32, 32, 40000},
                                      {17, 33, 20011}, {1, 40, 30000}, {3, 50, 10007},
                                      {50, 8, 10007}};
    for (int d = 0; d < 3; d++)
        for (size_t i = TEST_THREAD_SANITIZER ? (size_t)d : 0; i < sizeof size / sizeof size[0]; i += TEST_THREAD_SANITIZER ? 3 : 1) {
            product(g, dtypes[d], sized(size[i][0], size[i][1], size[i][2]), PLAIN, PLAIN, 0);
            product(g, dtypes[d], sized(size[i][0], size[i][1], size[i][2]), TRANSPOSED, TRANSPOSED,
                    0);
        }
    shape s = sized(24, 24, 5000);
    s.batch = 3;
    s.a_batched = s.b_batched = true;
    for (int d = 0; d < 3; d++) product(g, dtypes[d], s, PLAIN, CUT, 0);
}

static char logged[1 << 12];

static void keep_log(void *user, gn_log_level level, const char *text) {
    (void)user;
    (void)level;
    if (strlen(logged) + strlen(text) + 1 < sizeof logged) strcat(logged, text);
}

// More tiles than are worked at at once, of which the last few are split along k; by one more row or column
// than 32, 64, 96 and 128 go into, and one less.
static void test_last_tiles(void **state) {
    (void)state;
    static const int64_t size[][3] = {
        {150, 160, 1500}, {95, 65, 2500}, {193, 129, 1031}, {70, 215, 1200}};
    gn_options o = test_options();
    o.log = keep_log;
    o.log_level = GN_LOG_DEBUG;
    gn_context *g = test_open_with(&o);
    gn_scope_begin(g);
    bool some = false;
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
        for (int how = 0; how < 4; how++) {
            int in = 0, of = 0;
            logged[0] = 0;
            shape s = sized(size[i][0], size[i][1], size[i][2]);
            product(g, GN_F32, s, how & 1 ? TRANSPOSED : PLAIN, how & 2 ? TRANSPOSED : CUT, 0);
            const char *parts = strstr(logged, " of k in ");
            some = some || (parts && sscanf(parts, " of k in %d of %d", &in, &of) == 2 && in < of);
        }
    shape s = sized(65, 90, 1300);
    s.batch = 3;
    s.a_batched = s.b_batched = true;
    product(g, GN_F32, s, CUT, PLAIN, 0);
    product(g, GN_F64, s, PLAIN, TRANSPOSED, 0);
    s.b_batched = false;
    product(g, GN_F32, s, TRANSPOSED, PLAIN, 0);
    print_message("last tiles in parts: %s\n", some ? "tested" : "not here");
    gn_scope_end(g);
    test_close(g);
}

// Products of a column and a row, and long sums of one element.
static void test_thin(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[][3] = {{33, 70, 1}, {1, 1, 70001}, {64, 64, 1},
                                      {1, 1, 1},   {300, 1, 1},   {1, 300, 1}};
    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
            for (int how = 0; how < (d == 0 ? KINDS : CUT); how++) {
                shape s = sized(size[i][0], size[i][1], size[i][2]);
                product(g, dtypes[d], s, (kind)how, (kind)((how + 2) % KINDS), 0);
                if (s.k > 1) continue;
                s.batch = 3;
                s.a_batched = true;
                s.b_batched = how & 1;
                product(g, dtypes[d], s, (kind)how, (kind)((how + 1) % KINDS), 0);
            }
}

// More batches than a dispatch has layers.
static void test_many_batches(void **state) {
    gn_context *g = (gn_context *)*state;
    shape s = sized(2, 3, 2);
    s.batch = 70000;
    s.a_batched = s.b_batched = true;
    product(g, GN_F32, s, PLAIN, PLAIN, 0);
}

static const int64_t small_sizes[][3] = {{4, 4, 4}, {3, 3, 3}, {4, 1, 4}, {1, 5, 3}, {2, 2, 2}, {8, 12, 16}, {5, 7, 9}, {17, 3, 64}, {1, 1, 8}, {31, 33, 2}};

// Each in many batches, more than enough for kernels that have a matrix for few invocations; odd sizes and every layout.
static void test_small_batches(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < 10; i++)
        for (int d = 0; d < 4; d++) {
            shape s = sized(small_sizes[i][0], small_sizes[i][1], small_sizes[i][2]);
            s.batch = 64 + draw(20);
            s.a_batched = draw(4) != 0;
            s.b_batched = !s.a_batched || draw(4) != 0;
            for (int how = 0; how < KINDS; how++) product(g, dtypes[d], s, (kind)how, i % 2 ? (kind)how : (kind)draw(KINDS), 0);
        }
    // Batches that are no run: (5, 1, 6, 4) x (17, 4, 3).
    double *a = doubles(5 * 6 * 4), *b = doubles(17 * 4 * 3), *aa = doubles(85 * 6 * 4), *bb = doubles(85 * 4 * 3);
    gn_array *x = make(g, GN_F32, 5, 6, 4, PLAIN, a), *z = make(g, GN_F32, 17, 4, 3, TRANSPOSED, b);
    for (int i = 0; i < 85; i++) {
        memcpy(aa + i * 24, a + i / 17 * 24, 24 * sizeof *a);
        memcpy(bb + i * 12, b + i % 17 * 12, 12 * sizeof *b);
    }
    shape s = sized(6, 3, 4);
    s.batch = 85;
    s.a_batched = s.b_batched = true;
    compare(gn_matmul(gn_expand_dims(x, 1), z), GN_F32, s, aa, bb, NULL, 0, "broadcast batches");
    free(a);
    free(b);
    free(aa);
    free(bb);
}

// What follows such products changes no bits of the sums.
static void test_small_fused(void **state) {
    (void)state;
    gn_options o = test_options();
    o.vulkan_flags |= GN_VULKAN_NO_ASYNC_PIPELINES;
    gn_context *h = test_open_with(&o);
    for (int i = 0; i < 10; i++) {
        gn_scope_begin(h);
        shape s2 = sized(small_sizes[i][0], small_sizes[i][1], small_sizes[i][2]);
        gn_array *u = gn_uniform(h, GN_F32, GN_SHAPE(5, 14, s2.m, s2.k), -1, 1), *v = gn_uniform(h, GN_F32, GN_SHAPE(14, s2.k, s2.n), -1, 1);
        gn_array *w = gn_uniform(h, GN_F32, GN_SHAPE(s2.m, 1), -1, 1), *r = gn_uniform(h, GN_F32, GN_SHAPE(5, 14, s2.m, s2.n), -1, 1);
        gn_array *p[2], *y[2];
        p[0] = gn_eval(gn_matmul(gn_eval(u), gn_eval(v)));
        p[1] = gn_matmul(u, v);
        for (int k = 0; k < 2; k++)
            y[k] = gn_eval(gn_where(gn_lt(gn_eval(r), p[k]), gn_abs(p[k]), gn_mul(gn_neg(p[k]), gn_eval(w))));
        assert_true(gn_item(gn_all(gn_eq(y[0], y[1]), GN_ALL)) == 1.0);
        gn_scope_end(h);
    }
    test_close(h);
}

static void test_bias(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[][3] = {{40, 24, 17}, {33, 129, 70}, {5, 7, 100}, {100, 3, 64}};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        shape s = sized(size[i][0], size[i][1], size[i][2]);
        double *a = doubles(s.m * s.k), *b = doubles(s.k * s.n), *c = doubles(s.n);
        gn_array *x = make(g, GN_F32, 0, s.m, s.k, PLAIN, a),
                 *w = make(g, GN_F32, 0, s.k, s.n, TRANSPOSED, b);
        gn_array *bias = gn_ravel(make(g, GN_F32, 0, 1, s.n, PLAIN, c));
        compare(gn_linear(x, w, bias), GN_F32, s, a, b, c, 0, "gn_linear");
        free(a);
        free(b);
        free(c);
    }
}

// Infinities and NaN stay in their row and column.
static void test_special_values(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { M = 70, N = 50, K = 45 };
    static float a[M * K], b[K * N], y[M * N];
    for (int d = 0; d < 3; d++) {
        for (int i = 0; i < M * K; i++) a[i] = 1;
        for (int i = 0; i < K * N; i++) b[i] = 0.5f;
        a[69 * K + 44] = NAN;
        a[3 * K + 2] = INFINITY;
        b[44 * N + 49] = INFINITY;
        gn_array *x = gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(M, K), a), dtypes[d]);
        gn_array *z = gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(K, N), b), dtypes[d]);
        assert_int_equal(gn_read(gn_cast(gn_matmul(x, z), GN_F32), y, sizeof y), GN_OK);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                float v = y[i * N + j];
                if (i == 69)
                    assert_true(isnan(v));
                else if (i == 3 || j == 49)
                    assert_true(isinf(v) && v > 0);
                else
                    assert_true(v == 22.5f);
            }
    }
}

// Sums of float16 subnormals, exact: rows and columns of a matrix times a vector, whole and broken pieces.
static void test_subnormals(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { M = 40, K = 72 };
    static float a[M * K], ones[K], y[M];
    for (int i = 0; i < M * K; i++) a[i] = (float)(i % 17 - 8) * 0x1p-24f;
    for (int i = 0; i < K; i++) ones[i] = 1;
    gn_array *x = gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(M, K), a), GN_F16);
    gn_array *one = gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(K, 1), ones), GN_F16);
    for (int turned = 0; turned < 2; turned++)
        for (int k = K - 3; k <= K; k += 3) {
            gn_array *cut = gn_slice(x, 1, 0, k, 1), *z = gn_slice(one, 0, 0, k, 1);
            if (turned) cut = gn_transpose(gn_eval(gn_copy(gn_transpose(cut))));
            assert_int_equal(gn_read(gn_cast(gn_matmul(cut, z), GN_F32), y, sizeof y), GN_OK);
            for (int i = 0; i < M; i++) {
                double sum = 0;
                for (int j = 0; j < k; j++) sum += (double)a[i * K + j];
                assert_true((double)y[i] == sum);
            }
        }
}

// The same bits every time.
static void test_repeats(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { M = 40, N = 72, K = 5000 };
    static float first[M * N], again[M * N];
    for (int d = 0; d < 3; d++) {
        double *a = doubles(M * K), *b = doubles(K * N);
        gn_array *x = make(g, dtypes[d], 0, M, K, PLAIN, a),
                 *z = make(g, dtypes[d], 0, K, N, PLAIN, b);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(
                gn_read(gn_cast(gn_matmul(x, z), GN_F32), i == 0 ? first : again, sizeof first),
                GN_OK);
            if (i > 0) assert_memory_equal(first, again, sizeof first);
        }
        free(a);
        free(b);
    }
}

// Random products at a precision that rounds operands by `rounding`; the context is the caller's to close.
static gn_context *other_precision(gn_precision precision, double rounding) {
    gn_options o = test_options();
    o.matmul = precision;
    gn_context *g = test_open_with(&o);
    gn_scope_begin(g);
    for (int i = 0; i < rounds(20); i++) {
        shape s = sized(1 + draw(200), 1 + draw(200), 1 + draw(200));
        if (draw(3) == 0) {
            s.batch = 2 + draw(3);
            s.a_batched = true;
            s.b_batched = draw(2) != 0;
        }
        product(g, GN_F32, s, (kind)draw(KINDS), (kind)draw(KINDS), rounding);
    }
    return g;
}

static void test_high(void **state) {
    (void)state;
    gn_context *g = other_precision(GN_PRECISION_HIGH, 0x1p-23);
    product(g, GN_F32, sized(300, 600, 200), PLAIN, PLAIN, 0x1p-23);
    gn_scope_end(g);
    test_close(g);
}

static void test_fast(void **state) {
    (void)state;
    gn_context *g = other_precision(GN_PRECISION_FAST, 0x1p-8);
    // What float16 could not hold.
    static float big[64 * 64], y[64 * 64];
    for (int i = 0; i < 64 * 64; i++) big[i] = 1e15f;
    gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(64, 64), big);
    assert_int_equal(gn_read(gn_matmul(x, x), y, sizeof y), GN_OK);
    for (int i = 0; i < 64 * 64; i++) assert_true(fabs((double)y[i] / 64e30 - 1) < 0x1p-6);
    gn_scope_end(g);
    test_close(g);
}

// Says which kernels the rest of this program has tested, from what they log.
static void test_which(void **state) {
    (void)state;
    static const char *const kernel[] = {"", "matmul_half_", "matmul_bfloat_"};
    gn_options o = test_options();
    o.log = keep_log;
    o.log_level = GN_LOG_DEBUG;
    gn_context *g = test_open_with(&o);
    gn_scope_begin(g);
    for (int d = 1; d < 3; d++) {
        double *a = doubles(64 * 64);
        gn_array *x = make(g, dtypes[d], 0, 64, 64, PLAIN, a);
        logged[0] = 0;
        gn_eval(gn_matmul(x, x));
        print_message("matrix units for %s: %s\n", gn_dtype_name(dtypes[d]),
                      strstr(logged, kernel[d]) != NULL ? "tested"
                                                        : "NOT AVAILABLE here, not tested");
        free(a);
    }
    gn_scope_end(g);
    test_close(g);
}

// Dot products of vectors that are summed as elementwise products, and sums of bytes.
static void test_vectors(void **state) {
    static const gn_dtype t[] = {GN_BOOL, GN_U8, GN_I8, GN_U16, GN_I16, GN_U32, GN_I32, GN_U64, GN_I64};
    static const int64_t size[] = {0, 1, 7, 9, 1000, 1031, 70001};
    gn_context *g = (gn_context *)*state;
    uint8_t *a = (uint8_t *)malloc(70001 * 2), *b = a + 70001;
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        const int64_t n = size[i];
        gn_scope_begin(g);
        int64_t dot = 0, sum = 0, some = 0;
        double re = 0, im = 0;
        for (int64_t k = 0; k < n; k++) {
            a[k] = (uint8_t)(draw(3) == 0 ? 0 : 128 + draw(128));
            b[k] = (uint8_t)draw(256);
            dot += a[k] * b[k], sum += a[k], some += a[k] != 0;
            re += (double)a[k] * a[k] - (double)b[k] * b[k], im += 2.0 * a[k] * b[k];
        }
        gn_array *x = gn_array_from(g, GN_U8, GN_SHAPE(n), a), *y = gn_array_from(g, GN_U8, GN_SHAPE(n), b);
        for (size_t d = 0; d < sizeof t / sizeof *t; d++) {
            gn_array *z = gn_matmul(gn_cast(x, t[d]), d % 2 ? gn_cast(y, t[d]) : gn_flip(gn_flip(gn_cast(y, t[d]), 0), 0));
            assert_int_equal(gn_dtype_of(z), t[d]);
            const int bits = 8 * (int)gn_dtype_size(t[d]);
            bool both = false;
            for (int64_t k = 0; k < n; k++) both = both || (a[k] && b[k]);
            int64_t want = t[d] == GN_BOOL ? both : bits == 64 ? dot : dot & (((int64_t)1 << bits) - 1);
            if ((t[d] == GN_I8 || t[d] == GN_I16) && want >> (bits - 1)) want -= (int64_t)1 << bits;
            assert_int_equal(gn_item_int(z), want);
        }
        assert_int_equal(gn_item_int(gn_sum(x, GN_ALL)), sum);
        assert_int_equal(gn_item_int(gn_sum(gn_cast(x, GN_BOOL), GN_ALL)), some);
        assert_int_equal(gn_item_int(gn_count_nonzero(x, GN_ALL)), some);
        for (int d = 0; d < 2; d++) {
            const gn_dtype of = d ? GN_F64 : GN_F32;
            gn_array *c = gn_complex(gn_cast(x, of), gn_cast(y, of)), *z = gn_dot(c, c);
            assert_true(fabs(gn_item(gn_real(z)) - re) <= (d ? 1e-12 : 1e-5) * (im + 1));
            assert_true(fabs(gn_item(gn_imag(z)) - im) <= (d ? 1e-12 : 1e-5) * (im + 1));
        }
        gn_scope_end(g);
    }
    free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_random),
        GN_TEST(test_edges),
        GN_TEST(test_long_sums),
        GN_TEST(test_bias),
        GN_TEST(test_special_values),
        GN_TEST(test_subnormals),
        GN_TEST(test_thin),
        GN_TEST(test_vectors),
        GN_TEST(test_many_batches),
        GN_TEST(test_small_batches),
        cmocka_unit_test(test_small_fused),
        cmocka_unit_test(test_last_tiles),
        GN_TEST(test_backwards),
        GN_TEST(test_repeats),
        cmocka_unit_test(test_high),
        cmocka_unit_test(test_fast),
        cmocka_unit_test(test_which),
    };
    return test_run(tests);
}
