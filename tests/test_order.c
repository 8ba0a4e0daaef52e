// Scans, sorts and what stands on them: against NumPy, in all dtypes, of views, empty arrays and special values; their
// derivatives; what they refuse.

#include "array_cases.h"

static gn_axes axis_of(int64_t p) { return p == 99 ? GN_ALL : (gn_axes)p; }

// The sorted elements if those at the places are parted at kth, each taken once.
static gn_array *is_argpartition(gn_array *a, int64_t kth, gn_axes axis) {
    gn_array *places = gn_argpartition(a, kth, axis), *x = axis == GN_ALL ? gn_ravel(a) : a;
    const int at = axis == GN_ALL ? 0 : (int)axis;
    if (places == NULL || gn_dtype_of(places) != GN_I64) return NULL;
    gn_array *y = gn_take_along(x, places, at), *sorted = gn_sort(x, at, false), *each = gn_sort(places, at, false);
    const int64_t k = kth < 0 ? kth + gn_dim(x, at) : kth;
    gn_array *have = gn_slice(y, at, k, k + 1, 1), *want = gn_slice(sorted, at, k, k + 1, 1);
    if (!gn_array_equal(have, want, true) || !gn_array_equal(each, gn_sort(gn_argsort(x, at, false), at, false), false)) return NULL;
    return gn_sort(y, at, false);
}

// Fills c->out; false for a name that is not known.
static bool apply(array_case *c) {
    gn_array *a = c->in[0], *b = c->in[1];
    const int64_t *p = c->p;
    const gn_axes axis = axis_of(p[0]), set = axes_of_bits((uint32_t)p[0]);
    c->n_out = 1;
    if (is(c, "cumsum")) c->out[0] = gn_cumsum(a, axis);
    else if (is(c, "cumprod")) c->out[0] = gn_cumprod(a, axis);
    else if (is(c, "nancumsum")) c->out[0] = gn_nancumsum(a, axis);
    else if (is(c, "nancumprod")) c->out[0] = gn_nancumprod(a, axis);
    else if (is(c, "nanmedian")) c->out[0] = gn_nanmedian(a, set);
    else if (is(c, "nanquantile")) c->out[0] = gn_nanquantile(a, c->x[0], set);
    else if (is(c, "nanpercentile")) c->out[0] = gn_nanpercentile(a, c->x[0], set);
    else if (is(c, "cummax")) c->out[0] = gn_cummax(a, axis);
    else if (is(c, "cummin")) c->out[0] = gn_cummin(a, axis);
    else if (is(c, "logcumsumexp")) c->out[0] = gn_logcumsumexp(a, axis);
    else if (is(c, "sort")) c->out[0] = gn_sort(a, axis, p[1] != 0);
    else if (is(c, "argsort")) c->out[0] = gn_argsort(a, axis, p[1] != 0);
    else if (is(c, "topk")) c->n_out = 2, c->out[0] = gn_topk(a, p[1], axis, &c->out[1]);
    else if (is(c, "partition")) c->out[0] = gn_sort(gn_partition(a, p[1], axis), axis, false); // and test_partition
    else if (is(c, "argpartition")) c->out[0] = is_argpartition(a, p[1], axis);
    else if (is(c, "quantiles")) c->out[0] = gn_quantiles(a, b, set);
    else if (is(c, "unique_axis")) c->n_out = 4, c->out[0] = gn_unique_axis(a, (int)p[0], &c->out[1], &c->out[2], &c->out[3]);
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
    else if (is(c, "histogram_with")) c->n_out = 2, c->out[0] = gn_histogram_with(a, b, p[0], c->x[0], c->x[1], p[1] != 0, &c->out[1]);
    else if (is(c, "histogram2d"))
        c->n_out = 3, c->out[0] = gn_histogram2d(a, b, c->n_in > 2 ? c->in[2] : NULL, p[0], p[1], c->x[0], c->x[1], c->x[2], c->x[3],
                                                 p[2] != 0, &c->out[1], &c->out[2]);
    else if (is(c, "histogram_edges")) c->out[0] = gn_histogram_edges(a, b);
    else return false;
    return true;
}

// Long rows are not sorted: what the header says of gn_partition, and that it has the same elements.
static void test_partition(void **state) {
    gn_context *g = (gn_context *)*state;
    const gn_dtype list[] = {GN_F32, GN_F64, GN_F16, GN_I32, GN_I64, GN_U8, GN_U64};
    const int64_t places[] = {1, 2500, -1, 4999, 17};
    for (size_t t = 0; t < sizeof list / sizeof *list; t++)
        for (size_t way = 0, p = 0; p < sizeof places / sizeof *places; p += way, way ^= 1) { // by values, by places
            const int64_t n = p % 2 == 0 && t % 2 != 0 ? 301 : 5001, rows = n < 5001 ? 9 : 2; // 8 rows and more are sorted side by side
            gn_scope_begin(g);
            gn_array *x = gn_mul_s(gn_randn(g, GN_F32, GN_SHAPE(rows, n)), p % 2 != 0 ? 3.0 : 1e3), *y[2], *all[2];
            if (t < 3 && p == 4) x = gn_where(gn_gt_s(x, 800.0), gn_full(g, GN_F32, GN_SHAPE(), (double)NAN), x);
            if (p == 3) x = gn_add_s(gn_abs(x), 65000.0); // numbers whose first digits are the same, or all
            all[0] = gn_cast(x, list[t]);
            all[1] = way == 0 ? gn_partition(all[0], places[p], 1) : gn_argpartition(all[0], places[p], 1);
            if (way == 1) {
                gn_array *each = gn_eq(gn_sort(all[1], 1, false), gn_arange(g, GN_I64, 0, (double)n, 1));
                assert_true(gn_item(gn_all(each, GN_ALL)) == 1.0);
                all[1] = gn_take_along(all[0], all[1], 1);
            }
            for (int i = 0; i < 2; i++) y[i] = gn_cast(gn_sort(all[i], 1, false), GN_F64);
            double *sorted = (double *)malloc(8 * (size_t)(rows * n)), *again = (double *)malloc(8 * (size_t)(rows * n)), *parted = (double *)malloc(8 * (size_t)(rows * n));
            assert_true(sorted != NULL && again != NULL && parted != NULL);
            assert_int_equal(gn_read(y[0], sorted, 8 * (size_t)(rows * n)), GN_OK);
            assert_int_equal(gn_read(y[1], again, 8 * (size_t)(rows * n)), GN_OK);
            assert_int_equal(gn_read(gn_cast(all[1], GN_F64), parted, 8 * (size_t)(rows * n)), GN_OK);
            const int64_t at = places[p] < 0 ? n + places[p] : places[p];
            for (int64_t i = 0; i < rows * n; i++) {
                const double here = parted[i], there = sorted[i / n * n + at];
                assert_true(sorted[i] == again[i] || (sorted[i] != sorted[i] && again[i] != again[i]));
                if (i % n == at) assert_true(here == there || (here != here && there != there));
                if (i % n < at) assert_true(here <= there || there != there); // NaN is the largest
                if (i % n > at) assert_true(here >= there || here != here);
            }
            free(sorted), free(again), free(parted);
            gn_scope_end(g);
        }
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
static gn_array *grad_quantiles(gn_array *a) {
    gn_array *q = gn_linspace(gn_context_of(a), GN_F64, 0.1, 0.9, 3);
    return gn_add(gn_sum(gn_square(gn_quantiles(a, q, 1)), GN_ALL), gn_mul(gn_quantiles(a, q, GN_KEEP(GN_ALL)), a));
}
static gn_array *grad_quantile(gn_array *a) {
    return gn_add(gn_mul(gn_median(a, 1), gn_quantile(a, 0.4, 1)), gn_mul(gn_median(a, GN_ALL), gn_percentile(a, 12, GN_ALL)));
}
static gn_array *grad_nan_quantile(gn_array *a) {
    gn_array *x = gn_where(gn_lt_s(a, -0.7), gn_full_like(a, NAN), a);
    gn_array *y = gn_mul(gn_nanmedian(x, 1), gn_add(gn_nanquantile(x, 0.4, 1), gn_nanpercentile(x, 12, GN_ALL)));
    return gn_add(y, gn_sum(gn_mul(gn_nancumsum(x, 1), gn_nancumprod(x, 0)), 1));
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
               {"logcumsumexp", grad_logcumsumexp}, {"sort", grad_sort}, {"quantile", grad_quantile}, {"quantiles", grad_quantiles}, {"interp", grad_interp},
               {"topk", grad_topk}, {"nan quantile", grad_nan_quantile}};
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
    // Large numbers round by more than exponentials bear: e^-2 / (1 + e^-2) is .1192.
    const double large[] = {200, 300, 100, 298};
    const float slopes[] = {1.5f, 4.3212f, 0, 0.1788f};
    for (int t = GN_F32; t <= GN_F64; t++) {
        float have[4];
        x = gn_add_s(gn_array_from(g, GN_F64, GN_SHAPE(4), large), t == GN_F32 ? 1e7 : 0);
        x = gn_requires_grad(gn_cast(x, (gn_dtype)t), true);
        assert_int_equal(gn_backward(gn_mul_s(gn_sum(gn_logcumsumexp(x, 0), GN_ALL), 1.5)), GN_OK);
        assert_int_equal(gn_read(gn_cast(gn_grad(x), GN_F32), have, sizeof have), GN_OK);
        for (int i = 0; i < 4; i++) assert_true(fabsf(have[i] - slopes[i]) <= 0.004f * slopes[i]);
    }
    // Of nothing there is a gradient, too.
    gn_array *(*const scans[])(gn_array *, gn_axes) = {gn_cumsum, gn_cumprod, gn_cummax, gn_cummin, gn_logcumsumexp};
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i++)
        for (int axis = 0; axis < 2; axis++) {
            x = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(0, 3)), true);
            assert_int_equal(gn_backward(gn_sum(scans[i](x, axis), GN_ALL)), GN_OK);
            assert_int_equal(gn_dim(gn_grad(x), 1), 3);
        }
}

// ---- more than a workgroup takes

static double drawn(uint64_t *lot) { // -1 to 1 in steps of 1/1000
    *lot = *lot * 6364136223846793005u + 1442695040888963407u;
    return (double)(*lot >> 33) / (double)(1u << 30) - 1;
}

// Lengths around those of tiles, along each axis of (outer, n, inner), from an offset: against sums in float64, and the same bits
// again.
static void test_long_scans(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { SCANNED = 70010 };
    static const struct {
        int outer, n, inner, offset;
    } shape[] = {{1, 8191, 1, 1}, {1, 8192, 1, 0}, {1, 8193, 1, 3}, {3, 9001, 1, 2},  {2, 16385, 1, 0}, {1, 70001, 1, 1},
                 {5, 257, 1, 0},  {7, 1021, 1, 1}, {40, 63, 1, 0},  {1, 1500, 36, 0}, {2, 401, 17, 1},  {1, 300, 132, 4},
                 {1, 3001, 20, 0}, {1, 4097, 17, 3}, {3, 700, 6, 0},  {11, 90, 3, 1}};
    static float x[SCANNED], have[SCANNED], again[SCANNED];
    static int64_t whole[SCANNED], sums[SCANNED];
    uint64_t lot = 3;
    for (int i = 0; i < SCANNED; i++) x[i] = (float)drawn(&lot), whole[i] = (int64_t)(1e17 * drawn(&lot));
    for (size_t k = 0; k < sizeof shape / sizeof shape[0]; k++) {
        const int64_t outer = shape[k].outer, n = shape[k].n, inner = shape[k].inner, all = outer * n * inner, from = shape[k].offset;
        const gn_shape s = GN_SHAPE(outer, n, inner);
        gn_scope_begin(g);
        gn_array *a = gn_reshape(gn_slice(gn_array_from(g, GN_F32, GN_SHAPE(SCANNED), x), 0, from, from + all, 1), s);
        gn_array *b = gn_reshape(gn_slice(gn_array_from(g, GN_I64, GN_SHAPE(SCANNED), whole), 0, from, from + all, 1), s);
        gn_array *least = gn_cummin(a, 1);
        assert_int_equal(gn_read(gn_cumsum(a, 1), have, 4 * (size_t)all), GN_OK);
        assert_int_equal(gn_read(gn_cumsum(a, 1), again, 4 * (size_t)all), GN_OK);
        assert_memory_equal(have, again, 4 * (size_t)all);
        assert_int_equal(gn_read(gn_cumsum(b, 1), sums, 8 * (size_t)all), GN_OK);
        assert_int_equal(gn_read(least, again, 4 * (size_t)all), GN_OK);
        for (int64_t c = 0; c < outer * inner; c++) {
            double sum = 0, most = 1;
            float low = 2;
            uint64_t total = 0;
            for (int64_t i = 0; i < n; i++) {
                const int64_t at = (c / inner * n + i) * inner + c % inner;
                sum += (double)x[from + at];
                most = fmax(most, fabs(sum));
                total += (uint64_t)whole[from + at];
                low = fminf(low, x[from + at]);
                if (!(fabs((double)have[at] - sum) <= 4e-6 * most)) fail_msg("shape %d: %g for %g", (int)k, (double)have[at], sum);
                if (sums[at] != (int64_t)total || again[at] != low) fail_msg("shape %d: element %d", (int)k, (int)at);
            }
        }
        gn_scope_end(g);
    }
}

// Products that leave float64's range are those in order: 0 stays 0 where a later part alone is infinite, and where factors
// only far apart from each other meet nothing overflows.
static void test_far_products(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { FAR = 200003 };
    static double x[2 * FAR], have[2 * FAR];
    static const double near[] = {1e-160, 1, 1e160, 1e160, 1, 1, 1e-160, 1e-160, 3, 1e100, 1e100, 1e-40, 1e-200, -1e-50};
    if (test_on_vulkan()) return;
    for (int i = 0; i < FAR; i++) x[i] = i < FAR / 3 ? 0.5 : i < 2 * (FAR / 3) ? 2.0 : -1.0;
    for (int i = 0; i < FAR; i++) x[FAR + i] = i < 14 ? near[i] : i % 2 == 0 ? 1.25 : 0.8;
    assert_int_equal(gn_read(gn_cumprod(gn_array_from(g, GN_F64, GN_SHAPE(2, FAR), x), 1), have, sizeof have), GN_OK);
    for (int row = 0; row < 2; row++) {
        double product = 1.0;
        for (int i = row * FAR; i < (row + 1) * FAR; i++) {
            product *= x[i];
            if (!(fabs(have[i] - product) <= 1e-11 * fabs(product))) fail_msg("element %d is %g, expected %g", i, have[i], product);
        }
    }
}

// Products of powers of two in float32, which are exact: beyond its range infinite or 0, though what is in front is not.
static void test_wide_products(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { LONG = 70001, LINES = 20, SHORT = 2003 };
    static float x[3 * LONG], have[3 * LONG];
    for (int k = 0; k < 2; k++) {
        const int lines = k == 0 ? 3 : LINES, n = k == 0 ? LONG : SHORT, next = k == 0 ? 1 : LINES, line = k == 0 ? LONG : 1;
        for (int l = 0; l < lines; l++) {
            int most = 0; // by powers of two up, down past 1 and back
            for (int i = 0; i < n; i++) {
                const int up = i / 150 % 4, power = l == 1 ? (up == 0 || up == 3) - (up == 1 || up == 2) : (int)draw(200) - 100;
                const int step = abs(most + 5 * power) > 900 ? -5 * power : l == 1 ? 5 * power : power;
                most += step < -120 ? -120 : step > 120 ? 120 : step;
                x[l * line + i * next] = ldexpf(draw(2) == 0 ? 1.0f : -1.0f, step < -120 ? -120 : step > 120 ? 120 : step);
            }
            if (l == 2) x[l * line + n / 2 * next] = 0.0f;
        }
        gn_array *a = gn_array_from(g, GN_F32, k == 0 ? GN_SHAPE(3, LONG) : GN_SHAPE(SHORT, LINES), x);
        if (test_on_vulkan()) a = gn_to(a, GN_DEVICE_GPU);
        assert_int_equal(gn_read(gn_cumprod(a, k == 0 ? 1 : 0), have, sizeof(float) * (size_t)(lines * n)), GN_OK);
        for (int l = 0; l < lines; l++) {
            int exponent = 0, sign = 1;
            bool zero = false;
            for (int i = 0; i < n; i++) {
                const int at = l * line + i * next;
                int part = 0;
                zero = zero || x[at] == 0.0f;
                if (!zero) (void)frexpf(x[at], &part), exponent += part - 1, sign = x[at] < 0.0f ? -sign : sign;
                const float want = zero || exponent < -149 ? 0.0f : (float)sign * (float)ldexp(1.0, exponent);
                const bool tiny = exponent < -126 && have[at] == 0.0f; // some devices have no subnormal numbers
                if (!(have[at] == want || tiny)) fail_msg("line %d, element %d is %g, expected %g", l, i, (double)have[at], (double)want);
            }
        }
    }
}

// As many that a device finds them out itself: each kind once, where it is first, who is of it and how many.
static void test_unique_of_many(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 70001, KINDS = 41 };
    static float x[N];
    static int64_t who[N];
    float kind[KINDS];
    int64_t first[KINDS], many[KINDS];
    for (int i = 0; i < N; i++) {
        const int k = i * 37 % 1009 % KINDS;
        x[i] = k == KINDS - 1 ? NAN : (float)(k - 20) * 0.5f;
    }
    gn_array *a = gn_to(gn_array_from(g, GN_F32, GN_SHAPE(N, 1), x), GN_DEVICE_GPU), *index, *inverse, *counts;
    gn_array *y = gn_unique(a, &index, &inverse, &counts);
    expect_shape(y, KINDS);
    expect_shape(inverse, N, 1);
    assert_int_equal(gn_read(y, kind, sizeof kind), GN_OK);
    assert_int_equal(gn_read(index, first, sizeof first), GN_OK);
    assert_int_equal(gn_read(counts, many, sizeof many), GN_OK);
    assert_int_equal(gn_read(inverse, who, sizeof who), GN_OK);
    for (int i = N - 1; i >= 0; i--) {
        const int k = x[i] != x[i] ? KINDS - 1 : (int)(x[i] * 2) + 20;
        assert_int_equal(who[i], k);
        assert_true(k == KINDS - 1 ? kind[k] != kind[k] : kind[k] == x[i]);
        assert_true(first[k] <= i);
        if (first[k] == i) many[k]++; // so that each has one more to count below
        many[k]--;
    }
    for (int k = 0; k < KINDS; k++) assert_int_equal(many[k], 1);
    expect_shape(gn_unique(gn_slice(a, 0, 0, 69000, 1), NULL, NULL, NULL), KINDS);
}

// Infinities and NaN in one tile reach all behind them.
static void test_long_special(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 30011 };
    static float x[N], have[N];
    for (int i = 0; i < N; i++) x[i] = 0.5f;
    x[9000] = INFINITY;
    x[20000] = NAN;
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(N), x), *scan[3];
    scan[0] = gn_cumsum(a, 0);
    scan[1] = gn_cummax(a, 0);
    scan[2] = gn_logcumsumexp(a, 0);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(gn_read(scan[k], have, sizeof have), GN_OK);
        for (int i = 0; i < N; i++) {
            const bool as = i < 9000 ? have[i] < 1e6f : i < 20000 ? have[i] == INFINITY : have[i] != have[i];
            if (!as) fail_msg("scan %d: %g at %d", k, (double)have[i], i);
        }
    }
}

// Sums of weights against those in long double: a number's largest weight says how exact its sum is, whatever the others have.
static void test_weights(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 20011, BINS = 5000 };
    static int64_t x[N];
    static double w[N], have[BINS + 1], again[BINS + 1];
    static long double sum[BINS], size[BINS];
    static const int numbers[] = {1, 3, 100, 2048, BINS};
    for (int i = 0; i < 5; i++)
        for (int kind = 0; kind < 4; kind++) {
            const int m = numbers[i];
            gn_scope_begin(g);
            memset(sum, 0, sizeof sum);
            memset(size, 0, sizeof size);
            for (int k = 0; k < N; k++) {
                x[k] = draw((uint32_t)m);
                w[k] = ((double)draw(1u << 31) / 1073741824.0 - 1.0) * (1.0 + (double)draw(1u << 31) * 0x1p-60);
                if (kind == 1) w[k] = ldexp(w[k], -(int)(x[k] % 7 * 300) + 900 - (int)draw(40)); // down to subnormal numbers
                if (kind == 2) w[k] = fabs(w[k]) * (x[k] % 3 == 0 ? 1e300 : 1e-3);
                if (kind == 3) w[k] = draw(5) == 0 ? w[k] * 1e-30 : draw(9) == 0 ? 0.0 : w[k];
                if (k < 8) continue; // of a view
                sum[x[k]] += (long double)w[k];
                size[x[k]] = fmaxl(size[x[k]], fabsl((long double)w[k]));
            }
            gn_array *at = gn_array_from(g, GN_I64, GN_SHAPE(N), x), *by = gn_array_from(g, GN_F64, GN_SHAPE(N), w);
            at = gn_slice(at, 0, 8, N, 1);
            by = gn_slice(by, 0, 8, N, 1);
            assert_int_equal(gn_read(gn_bincount(at, by, m), have, (size_t)m * 8), GN_OK);
            assert_int_equal(gn_read(gn_bincount(at, by, m), again, (size_t)m * 8), GN_OK);
            assert_memory_equal(have, again, (size_t)m * 8);
            for (int k = 0; k < m; k++) {
                const long double off = fabsl((long double)have[k] - sum[k]);
                const long double most = size[k] * (long double)(N / m + 50);
                // On a GPU it is rounded as good as once; on the CPU with each weight.
                if (!(off <= (test_on_vulkan() && !test_on_webgpu() ? 1.4e-16L * fabsl(sum[k]) + most * 0x1p-70L : 3e-14L * most) + 5e-324L))
                    fail_msg("%d numbers, kind %d: %.17g for %d, not %.17Lg", m, kind, have[k], k, sum[k]);
            }
            gn_scope_end(g);
        }
    const double special[8] = {INFINITY, 1.0, -INFINITY, NAN, INFINITY, -INFINITY, -1.5, 0.0};
    const int32_t place[8] = {0, 0, 1, 2, 3, 3, 4, 6};
    expect_values(gn_bincount(gn_array_from(g, GN_I32, GN_SHAPE(8), place), gn_array_from(g, GN_F64, GN_SHAPE(8), special), 8),
                  (double)INFINITY, -(double)INFINITY, (double)NAN, (double)NAN, -1.5, 0.0, 0.0, 0.0);
    // From 1 on, with what is outside.
    const float points[6] = {-1.0f, 0.1f, 0.6f, 0.7f, 1.0f, 5.0f}, weights[6] = {8, 1, 2, 4, 16, 32};
    gn_array *p = gn_array_from(g, GN_F32, GN_SHAPE(6), points), *v = gn_array_from(g, GN_F32, GN_SHAPE(6), weights);
    expect_values(gn_histogram_with(p, v, 2, 0, 1, false, NULL), 1, 22);
    expect_values(gn_ravel(gn_histogram2d(p, gn_neg(p), v, 2, 2, 0, 1, -1, 0, false, NULL, NULL)), 0, 1, 22, 0);
}

// Of float64: values that fall and rise by more than exponentials have room for, none at first, and in columns.
static void test_wide_logcumsumexp(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 1237, M = 3 };
    static double x[M][N], have[M * N];
    for (int k = 0; k < M; k++)
        for (int i = 0; i < N; i++)
            x[k][i] = k == 0 ? -1.5 * i : k == 1 ? 3000.0 * sin(0.01 * i) + 5.0 * sin(1.0 * i * i) : i < 70 ? -(double)INFINITY : 0.001 * i;
    gn_array *a = gn_array_from(g, GN_F64, GN_SHAPE(M, N), x);
    for (int turned = 0; turned < 2; turned++) {
        gn_array *y = turned ? gn_transpose(gn_logcumsumexp(gn_copy(gn_transpose(a)), 0)) : gn_logcumsumexp(a, 1);
        assert_int_equal(gn_read(gn_copy(y), have, sizeof have), GN_OK);
        for (int k = 0; k < M; k++) {
            long double most = -INFINITY, sum = 0.0L;
            for (int i = 0; i < N; i++) {
                const long double v = (long double)x[k][i], next = fmaxl(most, v);
                if (isfinite(next)) sum = sum * expl(most - next) + expl(v - next);
                most = next;
                const long double want = most + logl(sum), off = fabsl((long double)have[k * N + i] - want);
                if (isinf(want) ? (double)want != have[k * N + i] : !(off <= 6.0e-16L * (fabsl(want) + 12.0L) + (test_on_vulkan() && !test_on_webgpu() ? 0.0L : 1.2e-16L * i)))
                    fail_msg("row %d: %.17g at %d, not %.17Lg", k, have[k * N + i], i, want);
            }
        }
    }
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
    assert_null(gn_argpartition(a, -3, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_argpartition: element -3 of 2 is asked for");
    assert_null(gn_quantiles(row, gn_full(g, GN_F32, GN_SHAPE(2), 1.5), 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_quantiles: 1.5 is not in 0 to 1");
    assert_null(gn_quantiles(row, a, 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_quantiles: parts (2,3) are not 1-d");
    expect_values(gn_quantiles(row, gn_array_from(g, GN_F32, GN_SHAPE(2), (const float[]){0.5f, 0.1f}), 0), 2.5, 0.5);
    assert_null(gn_unique_axis(a, 2, NULL, NULL, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    expect_values(gn_unique_axis(gn_and(gn_cast(a, GN_I32), gn_full(g, GN_I32, GN_SHAPE(), 1)), 1, NULL, NULL, &more), 0, 1, 1, 0);
    expect_values(more, 2, 1);
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
    assert_null(gn_histogram_with(a, row, 2, 0, 1, true, &more));
    expect_error(g, GN_ERROR_SHAPE, "gn_histogram_with: weights (6,) for (2,3)");
    assert_null(gn_histogram_with(a, NULL, 2, 1, 0, true, &more));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_histogram_with: the range 1 to 0 does not rise or is not finite");
    assert_null(gn_histogram2d(a, row, NULL, 2, 2, 0, 0, 0, 0, false, &more, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_histogram2d: coordinates (6,) for (2,3)");
    assert_null(gn_histogram2d(row, row, NULL, 2, -1, 0, 0, 0, 0, false, &more, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_histogram2d: -1 bins");
    expect_values(gn_histogram2d(row, gn_neg(row), NULL, 2, 3, 0, 0, 0, 0, false, NULL, NULL), 0, 1, 2, 2, 1, 0);
    assert_null(gn_histogram_edges(a, gn_slice(row, 0, 0, 1, 1)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_histogram_edges: two or more edges that rise are asked for");
    const double at[] = {0, 1, 2, 3}, heights[] = {0, 5, INFINITY, 7}, places[] = {0.5, 1, 1.5, 2, 2.5, 3};
    gn_array *steps = gn_array_from(g, GN_F64, GN_SHAPE(4), at), *infinite = gn_array_from(g, GN_F64, GN_SHAPE(4), heights);
    expect_values(gn_interp(gn_array_from(g, GN_F64, GN_SHAPE(6), places), steps, infinite), 2.5, 5, INFINITY, INFINITY, INFINITY, 7);
    // NumPy's: between two that are infinite alike, and one point's value even at NaN.
    const double level[] = {INFINITY, INFINITY, -INFINITY, -INFINITY}, some[] = {0.5, 2.5, NAN};
    gn_array *near_some = gn_array_from(g, GN_F64, GN_SHAPE(3), some);
    expect_values(gn_interp(near_some, steps, gn_array_from(g, GN_F64, GN_SHAPE(4), level)), INFINITY, -INFINITY, NAN);
    expect_values(gn_interp(near_some, gn_slice(steps, 0, 0, 1, 1), gn_slice(steps, 0, 3, 4, 1)), 3, 3, 3);
    assert_null(gn_interp(a, row, a));
    expect_error(g, GN_ERROR_SHAPE, "gn_interp: points (6,) and values (2,3): both are 1-d, as long, and not empty");
    assert_null(gn_lexsort(&a, 0, 0));
    assert_null(gn_lexsort(&a, 1, 2));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_lexsort: axis 2 is out of bounds for array of rank 2");
    assert_null(gn_unique(gn_complex(row, row), &more, NULL, NULL));
    expect_error(g, GN_ERROR_DTYPE, "gn_unique: complex64 is not supported here");
}

// In order, the same elements, and of equal ones the first first.
static void expect_sorted(gn_array *a, bool down) {
    const size_t n = (size_t)gn_size(a);
    double *x = (double *)malloc(n * 8), *y = (double *)malloc(n * 8);
    int64_t *at = (int64_t *)malloc(n * 8);
    bool *seen = (bool *)calloc(n, sizeof(bool));
    assert_true(x != NULL && y != NULL && at != NULL && seen != NULL);
    assert_int_equal(gn_read(gn_cast(a, GN_F64), x, n * 8), GN_OK);
    assert_int_equal(gn_read(gn_cast(gn_sort(a, 0, down), GN_F64), y, n * 8), GN_OK);
    assert_int_equal(gn_read(gn_argsort(a, 0, down), at, n * 8), GN_OK);
    for (size_t i = 0; i < n; i++) {
        if (at[i] < 0 || at[i] >= (int64_t)n || seen[at[i]]) fail_msg("place %d of %d is wrong", (int)i, (int)n);
        seen[at[i]] = true;
        const double v = x[at[i]], w = i > 0 ? x[at[i - 1]] : v;
        const bool tie = w == v || (w != w && v != v), rises = v != v || (down ? w > v : w < v);
        if (v != y[i] && !(v != v && y[i] != y[i])) fail_msg("element %d of %d differs", (int)i, (int)n);
        if (i > 0 && (tie ? at[i] < at[i - 1] : !rises)) fail_msg("element %d of %d is out of order", (int)i, (int)n);
    }
    free(x);
    free(y);
    free(at);
    free(seen);
}

// Lengths around what a subgroup, a workgroup and a tile hold; random numbers, few different ones, sorted ones, all alike.
static void test_lengths(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int lengths[] = {1, 2, 255, 256, 257, 1023, 1024, 1025, 1409, 2048, 2049, 3072, 3073, 5633, 18432, 18433, 20011};
    static const gn_dtype dtypes[] = {GN_F32, GN_F16, GN_I32, GN_I64, GN_U8};
    static float x[20011];
    uint32_t r = 1;
    for (int i = 0; i < (int)(sizeof lengths / sizeof *lengths); i++)
        for (int kind = 0; kind < 5; kind++) {
            const int n = lengths[i];
            const gn_dtype t = dtypes[(i + kind) % 5];
            for (int k = 0; k < n; k++) {
                r = r * 1664525u + 1013904223u;
                x[k] = kind == 0 ? (float)(r >> 8) * 0.001f : kind == 1 ? (float)(r >> 29) : kind == 2 ? (float)k : kind == 3 ? (float)(n - k) : 5.0f;
                if (t == GN_U8 || t == GN_F16) x[k] = fmodf(x[k], 251.0f);
                if (t <= GN_F16 && kind < 2 && r >> 27 == 3) x[k] = NAN;
                if (t <= GN_F16 && kind < 2 && r >> 27 == 4) x[k] = -INFINITY;
            }
            GN_SCOPE(g) { expect_sorted(gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(n), x), t), kind == 0 && i % 2 == 1); }
        }
}

// More elements than a software device has rounds of loops for in one invocation: each is counted, moved and compared.
static void test_many_rounds(void **state) {
    gn_context *g = (gn_context *)*state;
    if (!test_on_vulkan() || test_on_webgpu()) skip();
    enum { SORTED = 8000003, SUMMED = 20000003, BINS = 16, TOP = 9999991 };
    uint8_t *x = (uint8_t *)malloc(SUMMED);
    float *y = (float *)malloc(sizeof(float) * SORTED);
    int64_t many[256] = {0}, have[BINS], sum = 0;
    for (int i = 0; i < SUMMED; i++) {
        x[i] = (uint8_t)((unsigned)i * 2654435761u >> 25);
        if (i < SORTED) many[x[i]]++;
        sum += x[i];
    }
    x[TOP] = 200;
    sum += 200 - (int64_t)((unsigned)TOP * 2654435761u >> 25);
    GN_SCOPE(g) {
        gn_array *a = gn_array_from(g, GN_U8, GN_SHAPE(SUMMED), x), *some = gn_slice(a, 0, 0, SORTED, 1);
        assert_true(gn_item(gn_sum(gn_cast(a, GN_F64), GN_ALL)) == (double)sum);
        assert_true(gn_item(gn_argmax(gn_cast(a, GN_F32), 0)) == (double)TOP);
        gn_array *counts = gn_histogram(gn_cast(some, GN_F32), BINS, 0, 128, NULL), *sorted = gn_sort(some, 0, false);
        assert_int_equal(gn_read(counts, have, sizeof have), GN_OK);
        assert_int_equal(gn_read(sorted, x, SORTED), GN_OK);
        assert_int_equal(gn_read(gn_sort(gn_cast(some, GN_F32), 0, true), y, sizeof(float) * SORTED), GN_OK);
    }
    for (int b = 0; b < BINS; b++)
        for (int k = 0; k < 8; k++) have[b] -= many[8 * b + k];
    for (int b = 0; b < BINS; b++) assert_int_equal(have[b], 0);
    for (int k = 0, i = 0; k < 128; k++)
        for (int64_t j = 0; j < many[k]; j++, i++)
            if (x[i] != k || y[SORTED - 1 - i] != (float)k) fail_msg("element %d is %d and %g, not %d", i, x[i], (double)y[SORTED - 1 - i], k);
    free(x);
    free(y);
}

// Edges that are rounded, and elements on them and beside them.
static void test_edges(void **state) {
    gn_context *g = (gn_context *)*state;
    static const struct { int bins; double low, high; } ranges[] = {{1, 0, 1}, {7, -0.3, 0.1}, {100, -4, 4}, {2048, 1e6, 1e6 + 3}, {3000, 0, 1}, {10, 1e-44, 1e-42}};
    for (int i = 0; i < 6; i++) {
        const int bins = ranges[i].bins;
        float *edge = (float *)malloc((size_t)(bins + 1) * 4), *x = (float *)malloc((size_t)(bins + 1) * 12);
        int64_t *have = (int64_t *)malloc((size_t)bins * 8), *want = (int64_t *)calloc((size_t)bins, 8);
        gn_array *edges;
        assert_true(edge != NULL && x != NULL && have != NULL && want != NULL);
        for (int k = 0; k <= bins; k++) {
            const double step = (ranges[i].high - ranges[i].low) / bins;
            edge[k] = (float)(k == bins ? ranges[i].high : ranges[i].low + k * step);
            x[3 * k] = edge[k];
            x[3 * k + 1] = nextafterf(edge[k], -INFINITY);
            x[3 * k + 2] = nextafterf(edge[k], INFINITY);
        }
        x[4] = NAN;
        for (int k = 0; k < 3 * (bins + 1); k++)
            for (int b = 0; b < bins; b++)
                if (x[k] >= edge[b] && (x[k] < edge[b + 1] || (b == bins - 1 && x[k] == edge[bins]))) want[b]++;
        GN_SCOPE(g) {
            gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(3 * (bins + 1)), x);
            assert_int_equal(gn_read(gn_histogram(a, bins, ranges[i].low, ranges[i].high, &edges), have, (size_t)bins * 8), GN_OK);
            for (int b = 0; b < bins; b++) if (have[b] != want[b]) fail_msg("range %d, part %d: %d, not %d", i, b, (int)have[b], (int)want[b]);
            assert_int_equal(gn_read(gn_histogram_edges(a, edges), have, (size_t)bins * 8), GN_OK);
            for (int b = 0; b < bins; b++) if (have[b] != want[b]) fail_msg("edges %d, part %d: %d, not %d", i, b, (int)have[b], (int)want[b]);
        }
        free(edge);
        free(x);
        free(have);
        free(want);
    }
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

static const double *selected; // by compare_places
static int compare_places(const void *p, const void *q) {
    const int64_t i = *(const int64_t *)p, j = *(const int64_t *)q;
    const double x = selected[i], y = selected[j];
    if (isnan(x) != isnan(y)) return isnan(x) ? -1 : 1;
    if (x != y && !isnan(x)) return x > y ? -1 : 1;
    return i < j ? -1 : 1;
}

// The largest elements and those in the middle, of which none or many are alike.
static void test_selection(void **state) {
    (void)state;
    gn_context *g = test_open();
    enum { ROWS = 3, N = 20011 };
    static const gn_dtype types[] = {GN_F32, GN_F16, GN_I64, GN_I16, GN_U8};
    static const int64_t takes[] = {1, 100, 700};
    static double x[ROWS * N];
    static int64_t place[ROWS][N], have[ROWS * 700];
    for (int t = 0; t < 5; t++)
        for (int how = 0; how < 3; how++)
            GN_SCOPE(g) {
                if (how != (t + 2) % 3 && test_on_software(g)) continue;
                gn_array *a = gn_sub_s(gn_randint(g, GN_I32, GN_SHAPE(ROWS, N), 0, how == 0 ? 7 : how == 1 ? 200 : 1 << 30), how > 1 ? 1 << 29 : 0);
                if (how > 1 && types[t] == GN_F32) a = gn_div(gn_cast(a, GN_F32), gn_cast(gn_mod_s(a, 29), GN_F32)); // NaN and infinities too
                if (how == 1 && t % 2 == 0) a = gn_sort(a, 1, false); // each is among the first so far
                a = gn_eval(gn_slice(gn_cast(a, types[t]), 1, 1, N, 1));
                assert_int_equal(gn_read(gn_cast(a, GN_F64), x, sizeof x / N * (N - 1)), GN_OK);
                for (int r = 0; r < ROWS; r++) {
                    for (int i = 0; i < N - 1; i++) place[r][i] = i;
                    selected = x + r * (N - 1);
                    qsort(place[r], N - 1, sizeof place[r][0], compare_places);
                }
                for (int k = 0; k < 3; k++) {
                    const int64_t take = takes[k];
                    gn_array *at, *top = gn_topk(a, take, 1, &at);
                    assert_int_equal(gn_read(at, have, (size_t)(ROWS * take) * 8), GN_OK);
                    for (int i = 0; i < ROWS * take; i++)
                        if (have[i] != place[i / take][i % take]) fail_msg("dtype %d, way %d: number %d of %d", t, how, i, (int)take);
                    assert_true(gn_item(gn_all(gn_logical_or(gn_eq(top, gn_take_along(a, at, 1)), gn_ne(top, top)), GN_ALL)) == 1.0);
                }
                gn_array *middle = gn_cast(gn_median(a, 1), GN_F64);
                double m[ROWS];
                assert_int_equal(gn_read(middle, m, sizeof m), GN_OK);
                for (int r = 0; r < ROWS; r++) {
                    const double *row = x + r * (N - 1), low = row[place[r][N / 2 - 1]], high = row[place[r][N / 2]];
                    const double want = isnan(row[place[r][0]]) ? NAN : (low + high) / 2;
                    if (!(m[r] == want || (isnan(m[r]) && isnan(want)) || fabs(m[r] - want) <= 1e-3 * fabs(want))) fail_msg("dtype %d, way %d: median %g, not %g", t, how, m[r], want);
                }
            }
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
    out[n++] = gn_histogram(a, 11, -200, 200, NULL);
    out[n++] = gn_put_along(a, gn_cast(gn_abs(whole), GN_I32), gn_flip(a, 0), 0);
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

// Among integers of a small range, which are looked up, and a wide one: both sides, numbers between, below and beyond, mixed and
// rising.
static void test_search_integers(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 5001, M = 301 };
    static const gn_dtype types[] = {GN_I64, GN_I32, GN_I16, GN_U8};
    static int64_t x[N], sorted[M], at[N];
    static unsigned char found[N];
    for (int k = 0; k < 9; k++) {
        const gn_dtype t = types[k % 4];
        const int64_t step = k > 0 && k % 4 == 0 ? (int64_t)1 << 40 : 1, least = t == GN_U8 ? 20 : -170 * step;
        for (int i = 0; i < N; i++) x[i] = least - 10 * step + (int64_t)(k > 4 ? (uint32_t)i * 234 / N : (uint32_t)i * 2654435761u % 234) * step;
        for (int i = 0, v = 0; i < M; i++) sorted[i] = least + v * step, v += i % 3 == 0 ? i % 5 : 0;
        gn_array *a = gn_cast(gn_array_from(g, GN_I64, GN_SHAPE(N), x), t), *b = gn_cast(gn_array_from(g, GN_I64, GN_SHAPE(M), sorted), t);
        for (int right = 0; right < 2; right++) {
            assert_int_equal(gn_read(gn_searchsorted(b, a, right != 0), at, sizeof at), GN_OK);
            assert_int_equal(gn_read(gn_isin(a, b), found, sizeof found), GN_OK);
            for (int i = 0; i < N; i++) {
                int64_t want = 0, is = 0;
                for (int j = 0; j < M; j++) want += right ? sorted[j] <= x[i] : sorted[j] < x[i], is |= sorted[j] == x[i];
                if (at[i] != want || found[i] != is)
                    fail_msg("%lld, right %d: place %lld, not %lld, found %d", (long long)x[i], right, (long long)at[i], (long long)want, found[i]);
            }
        }
    }
}

// Running sums and products of complex numbers, of rows and columns, against long double; infinities and NaN as numbers in order
// have them.
static void test_complex_scans(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { LONG = 70001 };
    static const int64_t shapes[][3] = {{1, 0, 1}, {2, 1, 1}, {3, 2, 1}, {2, 7, 1}, {3, 511, 1}, {2, 513, 1}, {1, LONG, 1},
                                        {1, 1, 9}, {1, 50, 3}, {2, 1031, 5}, {1, 300, 131}, {3, 9, 257}};
    static double x[2 * LONG + 2], have[2 * LONG + 2];
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int d = 0; d < 2; d++)
            GN_SCOPE(g) {
                const int64_t outer = shapes[s][0], n = shapes[s][1], inner = shapes[s][2], count = outer * n * inner;
                const double eps = d ? 0x1p-52 : 0x1p-23;
                if (test_on_vulkan() && count > 600) continue; // made of ops of their own there
                for (int64_t i = 0; i < 2 * count; i++) x[i] = (double)draw(1u << 24) / (double)(1 << 23) - 1.0;
                for (int64_t i = 0; i < count; i++) { // of about size 1
                    const double size = hypot(x[2 * i], x[2 * i + 1]) + 1e-3;
                    x[2 * i] = (double)(float)(x[2 * i] / size), x[2 * i + 1] = (double)(float)(x[2 * i + 1] / size);
                }
                gn_array *a = gn_array_from(g, GN_C128, GN_SHAPE(outer, n, inner), x);
                if (!d) a = gn_cast(a, GN_C64);
                for (int op = 0; op < 2; op++) {
                    gn_array *y = op == 0 ? gn_cumsum(a, 1) : gn_cumprod(a, 1);
                    assert_int_equal(gn_dtype_of(y), d ? GN_C128 : GN_C64);
                    assert_int_equal(gn_read(gn_cast(y, GN_C128), have, sizeof(double) * 2 * (size_t)count), GN_OK);
                    for (int64_t row = 0; row < outer * inner; row++) {
                        long double re = op, im = 0.0L, size = 0.0L;
                        for (int64_t i = 0; i < n; i++) {
                            const int64_t at = 2 * ((row / inner * n + i) * inner + row % inner);
                            const long double u = (long double)x[at], v = (long double)x[at + 1], part = op == 0 ? re + u : re * u - im * v;
                            im = op == 0 ? im + v : re * v + im * u;
                            re = part;
                            size = op == 0 ? size + fabsl(u) + fabsl(v) : hypotl(re, im) * (long double)(i + 1);
                            const long double off = hypotl((long double)have[at] - re, (long double)have[at + 1] - im);
                            if (!(off <= (long double)eps * (size + 0x1p-100L)))
                                fail_msg("shape %d, op %d, element %d: %g%+gi, not %Lg%+Lgi", (int)s, op, (int)i, have[at], have[at + 1], re, im);
                        }
                    }
                }
            }
    if (test_on_vulkan()) return;
    const float far[] = {INFINITY, 1, 1, 0, 0, 2}, up[] = {1e30f, 0, 1e30f, 0, 1e-30f, 0, 0, 1e-30f};
    float y[8];
    assert_int_equal(gn_read(gn_cumprod(gn_array_from(g, GN_C64, GN_SHAPE(3), far), 0), y, 24), GN_OK);
    assert_true(isinf(y[0]) && y[1] == 1 && isinf(y[2]) && isnan(y[3]));
    assert_int_equal(gn_read(gn_cumprod(gn_array_from(g, GN_C64, GN_SHAPE(4), up), 0), y, 32), GN_OK); // back in range
    assert_true(isinf(y[2]) && fabsf(y[4] - 1e30f) < 1e24f && y[6] == 0 && fabsf(y[7] - 1) < 1e-6f);
}

// What an element leaves in the gradient of its place, as it is: every place comes at most once.
static void test_sorted_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { ROWS = 5, N = 777, TOP = 100 };
    static float x[ROWS * N], gy[ROWS * N], want[ROWS * N], have[ROWS * N];
    static const gn_dtype dtypes[] = {GN_F32, GN_F16, GN_BF16, GN_F64};
    for (int d = 0; d < 4; d++)
        for (int first = 0; first < 2; first++)
            GN_SCOPE(g) {
                // bfloat16 holds 256 of the N numbers: ties, which keep their order both ways.
                for (int i = 0; i < ROWS * N; i++) x[i] = (float)(i % N * 389 % N % (d == 2 ? 256 : N)), gy[i] = (float)(i % 251) - 125, want[i] = 0;
                gy[3] = -0.0f;
                for (int r = 0; r < ROWS; r++)
                    for (int i = 0; i < N; i++) {
                        int rank = 0;
                        for (int k = 0; k < N; k++) {
                            const float u = x[r * N + i], v = x[r * N + k];
                            rank += first ? v > u || (v == u && k < i) : v < u || (v == u && k < i);
                        }
                        if (rank < (first ? TOP : N)) want[r * N + i] = gy[r * (first ? TOP : N) + rank];
                    }
                gn_array *a = gn_requires_grad(gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(ROWS, N), x), dtypes[d]), true), *dx = NULL;
                gn_array *y = first ? gn_topk(a, TOP, 1, NULL) : gn_sort(a, 1, false);
                gn_array *weights = gn_cast(gn_array_from(g, GN_F32, gn_shape_of(y), gy), dtypes[d]);
                assert_int_equal(gn_gradients(gn_sum(gn_mul(y, weights), GN_ALL), &a, 1, false, &dx), GN_OK);
                assert_int_equal(gn_dtype_of(dx), dtypes[d]);
                assert_int_equal(gn_read(gn_cast(dx, GN_F32), have, sizeof have), GN_OK);
                for (int i = 0; i < ROWS * N; i++)
                    if (have[i] != want[i]) fail_msg("%s, element %d: %g, not %g", gn_dtype_name(dtypes[d]), i, (double)have[i], (double)want[i]);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_like_numpy), GN_TEST(test_partition), GN_TEST(test_gradients), GN_TEST(test_sorted_gradients), GN_TEST(test_refusals),
                                       GN_TEST(test_long_scans), GN_TEST(test_far_products), GN_TEST(test_wide_products), GN_TEST(test_complex_scans), GN_TEST(test_long_special), GN_TEST(test_wide_logcumsumexp), GN_TEST(test_weights), GN_TEST(test_unique_of_many),
                                       cmocka_unit_test(test_ownership), cmocka_unit_test(test_selection), GN_TEST(test_lengths), GN_TEST(test_many_rounds), GN_TEST(test_search_integers),
                                       GN_TEST(test_edges), cmocka_unit_test(test_bindings),
                                       cmocka_unit_test(test_threads)};
    return test_run(tests);
}
