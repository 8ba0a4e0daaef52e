// Scans, sorts and what stands on them: against NumPy, in all dtypes, of views, empty arrays and special values; their
// derivatives; what they refuse.

#include "array_cases.h"

static gn_axes axis_of(int64_t p) { return p == 99 ? GN_ALL : (gn_axes)p; }

// Fills c->out; false for a name that is not known.
static bool apply(array_case *c) {
    gn_array *a = c->in[0], *b = c->in[1];
    const int64_t *p = c->p;
    const gn_axes axis = axis_of(p[0]), set = axes_of_bits((uint32_t)p[0]);
    c->n_out = 1;
    if (is(c, "cumsum")) c->out[0] = gn_cumsum(a, axis);
    else if (is(c, "cumprod")) c->out[0] = gn_cumprod(a, axis);
    else if (is(c, "cummax")) c->out[0] = gn_cummax(a, axis);
    else if (is(c, "cummin")) c->out[0] = gn_cummin(a, axis);
    else if (is(c, "logcumsumexp")) c->out[0] = gn_logcumsumexp(a, axis);
    else if (is(c, "sort")) c->out[0] = gn_sort(a, axis, p[1] != 0);
    else if (is(c, "argsort")) c->out[0] = gn_argsort(a, axis, p[1] != 0);
    else if (is(c, "topk")) c->n_out = 2, c->out[0] = gn_topk(a, p[1], axis, &c->out[1]);
    else if (is(c, "partition")) c->out[0] = gn_partition(a, p[1], axis);
    else if (is(c, "lexsort")) c->out[0] = gn_lexsort(c->in, c->n_in, (int)p[0]);
    else if (is(c, "median")) c->out[0] = gn_median(a, set);
    else if (is(c, "quantile")) c->out[0] = gn_quantile(a, c->x[0], set);
    else if (is(c, "percentile")) c->out[0] = gn_percentile(a, c->x[0], set);
    else if (is(c, "searchsorted")) c->out[0] = gn_searchsorted(a, b, p[0] != 0);
    else if (is(c, "digitize")) c->out[0] = gn_digitize(a, b, p[0] != 0);
    else if (is(c, "isin")) c->out[0] = gn_isin(a, b);
    else if (is(c, "interp")) c->out[0] = gn_interp(a, b, c->in[2]);
    else if (is(c, "unique")) c->n_out = 4, c->out[0] = gn_unique(a, &c->out[1], &c->out[2], &c->out[3]);
    else if (is(c, "union1d")) c->out[0] = gn_union1d(a, b);
    else if (is(c, "intersect1d")) c->out[0] = gn_intersect1d(a, b);
    else if (is(c, "setdiff1d")) c->out[0] = gn_setdiff1d(a, b);
    else if (is(c, "setxor1d")) c->out[0] = gn_setxor1d(a, b);
    else if (is(c, "bincount")) c->out[0] = gn_bincount(a, c->n_in > 1 ? b : NULL, p[0]);
    else if (is(c, "histogram")) c->n_out = 2, c->out[0] = gn_histogram(a, p[0], c->x[0], c->x[1], &c->out[1]);
    else if (is(c, "histogram_edges")) c->out[0] = gn_histogram_edges(a, b);
    else return false;
    return true;
}

static void test_like_numpy(void **state) {
    assert_true(test_array_cases((gn_context *)*state, "order", apply, 12) > 200);
}

// ---- derivatives

static gn_array *grad_cumsum(gn_array *a) { return gn_cumsum(gn_cumsum(a, 1), GN_ALL); }
static gn_array *grad_cumprod(gn_array *a) { return gn_cumprod(gn_transpose(a), 1); }
static gn_array *grad_zeros(gn_array *a) { return gn_cumprod(gn_where(gn_gt_s(a, 0.5), gn_mul_s(a, 0), a), GN_ALL); }
static gn_array *grad_extremes(gn_array *a) { return gn_add(gn_cummax(a, 1), gn_mul(gn_cummin(a, 0), a)); }
static gn_array *grad_logcumsumexp(gn_array *a) { return gn_logcumsumexp(gn_mul_s(a, 3), 0); }
static gn_array *grad_sort(gn_array *a) { return gn_add(gn_sort(a, 1, false), gn_sort(a, 0, true)); }
static gn_array *grad_topk(gn_array *a) { return gn_add(gn_topk(a, 2, 0, NULL), gn_partition(gn_slice(a, 0, 0, 2, 1), 1, 1)); }
static gn_array *grad_quantile(gn_array *a) {
    return gn_add(gn_mul(gn_median(a, 1), gn_quantile(a, 0.4, 1)), gn_mul(gn_median(a, GN_ALL), gn_percentile(a, 12, GN_ALL)));
}
static gn_array *grad_interp(gn_array *a) {
    gn_array *points = gn_linspace(gn_context_of(a), GN_F64, -1.02, 0.9, 4);
    return gn_interp(a, points, gn_square(gn_slice(gn_reshape(a, GN_SHAPE(12)), 0, 0, 4, 1)));
}

static void test_gradients(void **state) {
    static const struct {
        const char *name;
        test_function fn;
    } own[] = {{"cumsum", grad_cumsum},     {"cumprod", grad_cumprod},   {"zeros", grad_zeros}, {"extremes", grad_extremes},
               {"logcumsumexp", grad_logcumsumexp}, {"sort", grad_sort}, {"quantile", grad_quantile}, {"interp", grad_interp},
               {"topk", grad_topk}};
    gn_context *g = (gn_context *)*state;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) test_derivatives(g, own[i].name, own[i].fn);
    // Of equal ones the last gets it; a product's zeros leave the others a slope; all of -inf has none.
    const float ties[] = {1, 3, 3, 2}, zeros[] = {2, 0, 3, 0}, least[] = {-INFINITY, -INFINITY, 0, 0};
    gn_array *x = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(4), ties), true);
    assert_int_equal(gn_backward(gn_sum(gn_cummax(x, 0), GN_ALL)), GN_OK);
    expect_values(gn_grad(x), 1, 1, 2, 0);
    x = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(4), zeros), true);
    assert_int_equal(gn_backward(gn_sum(gn_cumprod(x, 0), GN_ALL)), GN_OK);
    expect_values(gn_grad(x), 1, 8, 0, 0);
    x = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(4), least), true);
    assert_int_equal(gn_backward(gn_sum(gn_slice(gn_logcumsumexp(x, 0), 0, 2, 4, 1), GN_ALL)), GN_OK);
    expect_values(gn_grad(x), 0, 0, 1.5, 0.5);
}

// ---- what they refuse, who owns what they give

static void test_refusals(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_reshape(gn_arange(g, GN_F32, 0, 6, 1), GN_SHAPE(2, 3)), *more = a, *row = gn_ravel(a);
    assert_null(gn_cumsum(a, 2));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_cumsum: axis 2 is out of bounds for array of rank 2");
    assert_null(gn_sort(a, GN_KEEP(0), false));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_sort: GN_KEEP is for reductions");
    assert_null(gn_sort(gn_reshape(a, GN_SHAPE(1, 2, 3)), GN_AXES(0, 1), false));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_sort: one axis or GN_ALL is asked for, not some");
    assert_null(gn_topk(a, 4, 1, &more));
    assert_null(more);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_topk: 4 of 3 elements are asked for");
    assert_null(gn_partition(a, 2, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_partition: element 2 of 2 is asked for");
    assert_null(gn_quantile(a, 1.5, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_quantile: 1.5 is not in 0 to 1");
    assert_null(gn_percentile(a, -1, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_percentile: -1 is not in 0 to 100");
    assert_null(gn_searchsorted(a, a, false));
    expect_error(g, GN_ERROR_SHAPE, "gn_searchsorted: (2,3) is not 1-d");
    const float uneven[] = {1, 3, 2};
    assert_null(gn_digitize(a, gn_array_from(g, GN_F32, GN_SHAPE(3), uneven), false));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_digitize: the edges of bins neither rise nor fall");
    assert_null(gn_bincount(row, NULL, 0));
    expect_error(g, GN_ERROR_DTYPE, "gn_bincount: numbers must be integers, not float32");
    assert_null(gn_bincount(gn_cast(row, GN_I32), a, 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_bincount: (6,) and (2,3): 1-d arrays are asked for, weights of the same length");
    assert_null(gn_bincount(gn_cast(gn_neg(row), GN_I8), NULL, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_bincount: -5 is negative");
    assert_null(gn_histogram(a, 0, 0, 0, &more));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_histogram: 0 bins");
    assert_null(gn_histogram(a, 2, 0, NAN, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_histogram_edges(a, gn_slice(row, 0, 0, 1, 1)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_histogram_edges: two or more edges that rise are asked for");
    assert_null(gn_interp(a, row, a));
    expect_error(g, GN_ERROR_SHAPE, "gn_interp: points (6,) and values (2,3): both are 1-d, as long, and not empty");
    assert_null(gn_lexsort(&a, 0, 0));
    assert_null(gn_lexsort(&a, 1, 2));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_lexsort: axis 2 is out of bounds for array of rank 2");
    assert_null(gn_unique(gn_complex(row, row), &more, NULL, NULL));
    expect_error(g, GN_ERROR_DTYPE, "gn_unique: complex64 is not supported here");
}

static void test_ownership(void **state) {
    (void)state;
    gn_context *g = test_open();
    gn_array *a = gn_array_from(g, GN_I32, GN_SHAPE(5), (const int32_t[]){3, 1, 3, 2, 1}), *index, *inverse, *counts;
    gn_array *y = gn_unique(a, &index, &inverse, &counts), *top = gn_topk(a, 2, 0, NULL), *at, *top2 = gn_topk(a, 3, 0, &at);
    gn_release(a);
    expect_values(y, 1, 2, 3);
    expect_values(index, 1, 3, 0);
    expect_values(inverse, 2, 0, 2, 1, 0);
    expect_values(counts, 2, 1, 2);
    expect_values(top, 3, 3);
    expect_values(top2, 3, 3, 2);
    expect_values(at, 0, 2, 3);
    gn_array *all[] = {y, index, inverse, counts, top, top2, at};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) gn_release(all[i]);
    test_close(g);
}

// What a device does with bindings in the place of addresses is what the CPU does.
static int work(gn_context *g, gn_array **out) {
    int n = 0;
    gn_array *a = gn_sub_s(gn_mod_s(gn_mul_s(gn_arange(g, GN_F32, 0, 9009, 1), 37), 541), 270), *whole = gn_cast(a, GN_I64), *rows = gn_reshape(a, GN_SHAPE(9, 1001));
    out[n++] = gn_cumsum(whole, 0);
    out[n++] = gn_cummax(rows, 0);
    out[n++] = gn_sort(a, 0, true);
    out[n++] = gn_argsort(whole, 0, false);
    out[n++] = gn_argsort(rows, 1, false);
    out[n] = gn_topk(a, 7, 0, &out[n + 1]);
    n += 2;
    out[n++] = gn_quantile(a, 0.37, 0);
    out[n++] = gn_searchsorted(gn_sort(whole, 0, false), whole, true);
    out[n++] = gn_bincount(gn_add_s(whole, 300), NULL, 0);
    return n;
}

static void test_bindings(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    gn_options o = test_options();
    gn_array *have[16], *want[16];
    o.vulkan_flags |= GN_VULKAN_NO_ADDRESSES;
    o.placement = GN_PLACE_GPU;
    gn_context *g = gn_open(&o);
    o.backend = GN_BACKEND_CPU;
    o.vulkan_flags = 0;
    gn_context *h = gn_open(&o);
    if (g == NULL || h == NULL) fail_msg("%s", gn_open_error());
    const int n = work(g, have);
    assert_int_equal(work(h, want), n);
    for (int i = 0; i < n; i++) {
        unsigned char *x = (unsigned char *)malloc(gn_bytes(want[i])), *y = (unsigned char *)malloc(gn_bytes(want[i]));
        assert_int_equal(gn_bytes(have[i]), gn_bytes(want[i]));
        assert_int_equal(gn_read(have[i], x, gn_bytes(want[i])), GN_OK);
        assert_int_equal(gn_read(want[i], y, gn_bytes(want[i])), GN_OK);
        if (memcmp(x, y, gn_bytes(want[i])) != 0) fail_msg("result %d differs", i);
        free(x);
        free(y);
    }
    if (gn_status_get(g) != GN_OK) fail_msg("%s", gn_error(g));
    gn_close(g);
    gn_close(h);
}

// Fewer rows than threads, each with a work space of its own.
static void test_threads(void **state) {
    (void)state;
    gn_options o = test_options();
    o.backend = GN_BACKEND_CPU;
    o.threads = 16;
    gn_context *g = test_open_with(&o);
    enum { ROWS = 9, N = 1001 };
    static float x[ROWS * N];
    static int64_t place[ROWS * N];
    for (int i = 0; i < ROWS * N; i++) x[i] = (float)(i * 37 % 541);
    for (int round = 0; round < 20; round++) {
        gn_scope_begin(g);
        gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(ROWS, N), x);
        assert_int_equal(gn_read(gn_argsort(a, 1, false), place, sizeof place), GN_OK);
        for (int row = 0; row < ROWS; row++)
            for (int i = 1; i < N; i++) {
                const int64_t p = place[row * N + i - 1], q = place[row * N + i];
                if (p < 0 || q < 0 || p >= N || q >= N) fail_msg("row %d: place %d", row, i);
                const float u = x[row * N + p], v = x[row * N + q];
                if (u > v || (u == v && p >= q)) fail_msg("row %d is not in order at %d", row, i);
            }
        gn_scope_end(g);
    }
    test_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_like_numpy), GN_TEST(test_gradients), GN_TEST(test_refusals),
                                       cmocka_unit_test(test_ownership), cmocka_unit_test(test_bindings),
                                       cmocka_unit_test(test_threads)};
    return test_run(tests);
}
