// Arrays of more than 4 GiB, whose offsets do not fit 32 bits, against what their formula says at picked places.
// GN_TEST_LARGE, the GiB of memory that a test may use at once, lets them run: 16 for most, 40 for all.
#include "test.h"

static const int64_t giant = ((int64_t)1 << 32) + 12345; // bytes

static void need(double gib) {
    const char *text = getenv("GN_TEST_LARGE");
    if (text == NULL || strtod(text, NULL) < gib) skip();
}

// ---- a matrix whose element (i, j) is row(i) + column(j), below 2048 and so exact in every dtype but bfloat16

static double row(int64_t i) { return (double)(i * 7919 % 1021); }
static double column(int64_t j) { return (double)(j * 31 % 1013); }

static gn_array *line(gn_context *g, int64_t n, double (*value)(int64_t)) {
    float *data = (float *)malloc((size_t)n * sizeof *data);
    assert_non_null(data);
    for (int64_t i = 0; i < n; i++) data[i] = (float)value(i);
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(n), data);
    free(data);
    return a;
}

static gn_array *matrix(gn_context *g, gn_dtype t, int64_t m, int64_t n) {
    gn_array *a = gn_add(gn_expand_dims(line(g, m, row), 1), line(g, n, column));
    return gn_eval(gn_cast(a, t));
}

static double at(gn_array *a, int64_t i, int64_t j) {
    gn_context *g = gn_context_of(a);
    gn_scope_begin(g);
    double v = gn_item(gn_cast(gn_slice(gn_slice(a, 0, i, i + 1, 1), 1, j, j + 1, 1), GN_F64));
    gn_scope_end(g);
    return v;
}

// Places in an m x n matrix: its corners, both sides of where byte offsets leave 31 and 32 bits, and others.
enum { PLACES = 40 };
static void place(int k, int64_t m, int64_t n, int64_t item, int64_t *i, int64_t *j) {
    const int64_t edge[] = {0, n - 1, m * n - 1, (m - 1) * n, ((int64_t)1 << 31) / item, ((int64_t)1 << 32) / item};
    int64_t flat = k < 12 ? edge[k / 2] - k % 2 : (int64_t)draw(1u << 30) * m / (1 << 30) * n + (int64_t)draw((uint32_t)n);
    if (flat < 0) flat = 0;
    if (flat >= m * n) flat = m * n - 1;
    *i = flat / n;
    *j = flat % n;
}

static void test_elementwise(void **state) {
    gn_context *g = (gn_context *)*state;
    need(16);
    const gn_dtype dtypes[] = {GN_F32, GN_F16, GN_I32};
    for (int d = 0; d < 3; d++) {
        gn_scope_begin(g);
        int64_t item = (int64_t)gn_dtype_size(dtypes[d]), n = 30011, m = giant / item / n + 1, i, j;
        gn_array *a = matrix(g, dtypes[d], m, n), *y = gn_eval(gn_rsub_s(a, 2047.0));
        gn_array *turned = gn_copy(gn_transpose(a));
        for (int k = 0; k < PLACES; k++) {
            place(k, m, n, item, &i, &j);
            assert_true(at(y, i, j) == 2047.0 - row(i) - column(j));
            assert_true(at(turned, j, i) == row(i) + column(j));
        }
        gn_scope_end(g);
    }
}

static void test_reductions(void **state) {
    gn_context *g = (gn_context *)*state;
    need(16);
    int64_t n = 30011, m = giant / 4 / n + 1;
    gn_array *a = matrix(g, GN_F32, m, n);
    double rows = 0, columns = 0, total;
    for (int64_t i = 0; i < m; i++) rows += row(i);
    for (int64_t j = 0; j < n; j++) columns += column(j);
    total = rows * (double)n + columns * (double)m;
    assert_true(fabs(gn_item(gn_sum(a, GN_ALL)) - total) <= 1e-6 * total);
    assert_true(gn_item(gn_max(a, GN_ALL)) <= 2032.0);
    gn_array *down = gn_sum(a, 0), *along = gn_sum(a, 1), *top = gn_max(a, 1);
    gn_array *soft = gn_softmax(a, 1), *shift = gn_logsumexp(a, 1);
    for (int k = 0; k < PLACES; k++) {
        int64_t i, j;
        place(k, m, n, 4, &i, &j);
        double want = rows + (double)m * column(j), have = gn_item(gn_slice(down, 0, j, j + 1, 1));
        assert_true(fabs(have - want) <= 1e-6 * want);
        want = columns + (double)n * row(i);
        have = gn_item(gn_slice(along, 0, i, i + 1, 1));
        assert_true(fabs(have - want) <= 1e-6 * want);
        assert_true(gn_item(gn_slice(top, 0, i, i + 1, 1)) == row(i) + 1012.0);
        double sum = 0;
        for (int64_t p = 0; p < n; p++) sum += exp(column(p) - 1012.0);
        want = exp(column(j) - 1012.0) / sum;
        assert_true(fabs(at(soft, i, j) - want) <= 1e-5 * want + 1e-37);
        want = row(i) + 1012.0 + log(sum);
        assert_true(fabs(gn_item(gn_slice(shift, 0, i, i + 1, 1)) - want) <= 1e-6 * want);
    }
}

// Where one lane's loop has many rounds, over numbers that take no memory.
static void test_rounds(void **state) {
    gn_context *g = (gn_context *)*state;
    const int64_t n = (int64_t)1 << 28;
    gn_array *a = gn_broadcast_to(gn_scalar(g, GN_F32, 2), GN_SHAPE(n));
    assert_true(fabs(gn_item(gn_sum(gn_add_s(a, 1), GN_ALL)) - 3.0 * (double)n) <= 1e-6 * (double)n);
}

static void test_take(void **state) {
    gn_context *g = (gn_context *)*state;
    need(16);
    int64_t n = 4099, m = giant / 4 / n + 1;
    gn_array *a = matrix(g, GN_F32, m, n);
    const int32_t rows[] = {0, (int32_t)m - 1, -2, 131072};
    gn_array *y = gn_take(a, gn_array_from(g, GN_I32, GN_SHAPE(4), rows), 0);
    for (int k = 0; k < 4; k++)
        for (int64_t j = 0; j < n; j += 501)
            assert_true(at(y, k, j) == row(rows[k] < 0 ? rows[k] + m : rows[k]) + column(j));
}

// ---- products

static double weight(int64_t j) { return (double)(j % 13 - 6) / 8.0; }

// a (m, k) or its transpose, times 17 columns, each a multiple of the first.
static void thin_product(gn_context *g, gn_dtype t, bool turned) {
    gn_scope_begin(g);
    int64_t item = (int64_t)gn_dtype_size(t), k = 30013, m = giant / item / k + 1;
    gn_array *a = turned ? gn_transpose(matrix(g, t, k, m)) : matrix(g, t, m, k);
    gn_array *factor = gn_arange(g, GN_F32, 1, 18, 1);
    gn_array *b = gn_cast(gn_mul(gn_expand_dims(line(g, k, weight), 1), factor), t);
    gn_array *y = gn_matmul(a, b);
    double same = 0, other = 0, size = 0;
    double (*of_k)(int64_t) = turned ? row : column, (*of_m)(int64_t) = turned ? column : row;
    for (int64_t p = 0; p < k; p++) {
        same += weight(p);
        other += of_k(p) * weight(p);
        size += 2048.0 * fabs(weight(p));
    }
    for (int q = 0; q < PLACES; q++) {
        int64_t i, j, unused;
        place(q, m, k, item, &i, &unused);
        j = (int64_t)draw(17);
        double want = (of_m(i) * same + other) * (double)(j + 1), have = at(y, i, j);
        if (!(fabs(have - want) <= (t == GN_F32 ? 1e-6 : 1e-3) * size * (double)(j + 1)))
            fail_msg("row %lld, column %d: %.9g, expected %.9g", (long long)i, (int)j, have, want);
    }
    gn_scope_end(g);
}

static void test_products(void **state) {
    gn_context *g = (gn_context *)*state;
    need(16);
    thin_product(g, GN_F32, false);
    thin_product(g, GN_F32, true);
    if (test_on_vulkan()) thin_product(g, GN_BF16, false); // exact enough: sums of float32
    // A large result.
    int64_t n = 30011, m = giant / 4 / n + 1, i, j;
    gn_array *a = gn_stack((gn_array *[]){line(g, m, row), gn_ones(g, GN_F32, GN_SHAPE(m))}, 2, 1);
    gn_array *b = gn_stack((gn_array *[]){gn_ones(g, GN_F32, GN_SHAPE(n)), line(g, n, column)}, 2, 0);
    gn_array *y = gn_relu(gn_matmul(a, b));
    for (int k = 0; k < PLACES; k++) {
        place(k, m, n, 4, &i, &j);
        assert_true(at(y, i, j) == row(i) + column(j));
    }
}

// Places beyond 32 bits, of one axis, of all and of a view from the end.
static void test_places(void **state) {
    gn_context *g = (gn_context *)*state;
    need(16);
    const int64_t m = 65536, n = m + 1, all = m * n, at[] = {all - 3, 5, m * m - 1};
    gn_array *a = gn_zeros(g, GN_I8, GN_SHAPE(all)), *wide = gn_reshape(a, GN_SHAPE(m, n));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gn_assign(gn_slice(a, 0, at[i], at[i] + 1, 1), gn_scalar(g, GN_I8, 1 + i)), GN_OK);
        assert_int_equal(gn_item_int(gn_argmax(a, 0)), at[i]);
        assert_int_equal(gn_item_int(gn_argmax(wide, GN_KEEP(GN_ALL))), at[i]);
        assert_int_equal(gn_item_int(gn_argmax(gn_flip(a, 0), GN_ALL)), all - 1 - at[i]);
        assert_int_equal(gn_item_int(gn_argmin(gn_neg(a), 0)), at[i]);
        assert_int_equal(gn_item_int(gn_argmin(a, 0)), 0);
    }
}

// ---- transforms: of a few spikes, whose spectrum is a sum of a few exponentials

enum { SPIKES = 3 };

static gn_array *spikes(gn_context *g, int64_t n, const int64_t *t, const double *w) {
    int64_t rows = (int64_t)1 << 14, columns = n / rows;
    gn_array *i = gn_expand_dims(gn_arange(g, GN_I32, 0, (double)rows, 1), 1);
    gn_array *j = gn_arange(g, GN_I32, 0, (double)columns, 1), *x = NULL;
    for (int k = 0; k < SPIKES; k++) {
        gn_array *hit = gn_logical_and(gn_eq_s(i, (double)(t[k] / columns)), gn_eq_s(j, (double)(t[k] % columns)));
        gn_array *one = gn_mul_s(gn_cast(hit, GN_F32), w[k]);
        x = x == NULL ? one : gn_add(x, one);
    }
    return gn_reshape(gn_complex(x, gn_mul_s(x, 0.5)), GN_SHAPE(-1)); // times 1 + 0.5 i
}

static void transform(gn_context *g, int64_t n) {
    gn_scope_begin(g);
    const int64_t t[SPIKES] = {1, n / 3, n - 5};
    const double w[SPIKES] = {1.0, -0.75, 2.0};
    gn_array *x = spikes(g, n, t, w), *f = gn_fft(x, 0, 0, GN_FFT_BACKWARD);
    for (int k = 0; k < PLACES; k++) {
        int64_t i, j;
        place(k, n >> 14, 1 << 14, 8, &i, &j);
        const int64_t q = (i << 14) + j;
        double re = 0, im = 0, part[2];
        for (int s = 0; s < SPIKES; s++) { // (q t) mod n without overflow: q below 2^31, t below 2^31
            double turn = -2.0 * 3.14159265358979323846 * (double)(q * t[s] % n) / (double)n;
            re += w[s] * (cos(turn) - 0.5 * sin(turn));
            im += w[s] * (sin(turn) + 0.5 * cos(turn));
        }
        gn_array *one = gn_slice(f, 0, q, q + 1, 1);
        part[0] = gn_item(gn_real(one));
        part[1] = gn_item(gn_imag(one));
        if (!(hypot(part[0] - re, part[1] - im) <= 4e-6))
            fail_msg("2^%d, frequency %lld: %.8g%+.8gi, expected %.8g%+.8gi", (int)log2((double)n), (long long)q,
                     part[0], part[1], re, im);
    }
    gn_array *back = gn_ifft(f, 0, 0, GN_FFT_BACKWARD);
    double off = gn_item(gn_max(gn_abs(gn_sub(back, x)), GN_ALL));
    if (!(off <= 4e-6)) fail_msg("2^%d there and back: off by %.3g", (int)log2((double)n), off);
    gn_scope_end(g);
}

static void test_transforms(void **state) {
    gn_context *g = (gn_context *)*state;
    need(40);
    for (int k = 28; k <= 30; k++) transform(g, (int64_t)1 << k);
}

// Many short ones: the batch passes 4 GiB.
static void test_batches(void **state) {
    gn_context *g = (gn_context *)*state;
    need(40);
    int64_t n = 1000, m = giant / 8 / n + 1, i, j;
    gn_array *a = matrix(g, GN_F32, m, n), *z = gn_complex(a, gn_neg(a)), *f = gn_fft(z, 0, 1, GN_FFT_BACKWARD);
    gn_array *r = gn_rfft(a, 0, 1, GN_FFT_BACKWARD);
    for (int k = 0; k < PLACES; k++) {
        place(k, m, n, 8, &i, &j);
        double re = j == 0 ? (double)n * row(i) : 0.0, im = 0, h;
        for (int64_t p = 0; p < n; p++) {
            double turn = -2.0 * 3.14159265358979323846 * (double)(p * j % n) / (double)n;
            re += column(p) * cos(turn);
            im += column(p) * sin(turn);
        }
        assert_true(fabs(at(gn_real(f), i, j) - (re + im)) <= 2.0); // of 1e6: (1 - i) (re + i im)
        assert_true(fabs(at(gn_imag(f), i, j) - (im - re)) <= 2.0);
        h = (double)(j <= n / 2 ? j : n - j);
        assert_true(fabs(at(gn_real(r), i, (int64_t)h) - re) <= 2.0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_elementwise), GN_TEST(test_reductions), GN_TEST(test_rounds), GN_TEST(test_take),
        GN_TEST(test_products),    GN_TEST(test_places),     GN_TEST(test_transforms), GN_TEST(test_batches),
    };
    return test_run(tests);
}
