// Pooling and interpolation: values, gradients and places against PyTorch's (torch_values.h), derivatives against differences, and
// what is odd.
#include "test.h"
#include "torch_series.h"
#include "torch_values.h"

// size, stride, pad, dilation, and by axis; ceil, inside
static const gn_pool_options over = {0, 0, 0, {3, 2}, {2, 1}, {1, 0}, {1, 2}, true, false}, third = {3, 2, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}, true, false},
                             uneven = {0, 0, 0, {2, 3}, {0, 0}, {0, 0}, {0, 0}, false, false}, half = {2, 1, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}, false, false},
                             inside = {0, 0, 0, {3, 4}, {2, 3}, {1, 2}, {0, 0}, true, true}, cut = {2, 1, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}, true, false};

// name, y of x and where its places go
#define POOLS(X)                                                             \
    X(max_pool, gn_max_pool2d(x, 2, NULL, places))                           \
    X(max_pool_over, gn_max_pool2d(x, 1, &over, places))                     \
    X(max_pool_ceil, gn_max_pool2d(x, 4, &third, places))                    \
    X(max_pool_adaptive, gn_adaptive_max_pool2d(x, 3, 4, places))            \
    X(max_pool_whole, gn_adaptive_max_pool2d(x, 1, 1, places))               \
    X(avg_pool, gn_avg_pool2d(x, 1, &uneven))                                \
    X(avg_pool_over, gn_avg_pool2d(x, 3, &half))                             \
    X(avg_pool_inside, gn_avg_pool2d(x, 1, &inside))                         \
    X(avg_pool_ceil, gn_avg_pool2d(x, 2, &cut))                              \
    X(avg_pool_adaptive, gn_adaptive_avg_pool2d(x, 3, 4))                    \
    X(avg_pool_whole, gn_adaptive_avg_pool2d(x, 1, 1))                       \
    X(nearest, gn_interpolate(x, 14, 27, GN_NEAREST, false))                 \
    X(nearest_odd, gn_interpolate(x, 5, 13, GN_NEAREST, false))              \
    X(bilinear, gn_interpolate(x, 10, 5, GN_BILINEAR, false))                \
    X(bilinear_align, gn_interpolate(x, 4, 20, GN_BILINEAR, true))

typedef struct pool {
    const char *name;
    gn_array *(*fn)(gn_array *x, gn_array **places);
    const double *want;
    int count;
} pool;
#define GN_X(name, expression)                                   \
    static gn_array *fn_##name(gn_array *x, gn_array **places) { \
        (void)places;                                            \
        return expression;                                       \
    }
POOLS(GN_X)
#undef GN_X
static const pool pools[] = {
#define GN_X(name, expression) {#name, fn_##name, torch_##name, (int)(sizeof torch_##name / sizeof(double))},
    POOLS(GN_X)
#undef GN_X
};
enum { COUNT = (int)(sizeof pools / sizeof pools[0]), SIZE = 2 * 7 * 9 };

// PyTorch's numbers are of float64: where x is rounded, so are its results.
static void check_values(gn_context *g, gn_dtype t, double tolerance, bool views) {
    for (int i = 0; i < COUNT; i++)
        GN_SCOPE(g) {
            const pool *p = &pools[i];
            gn_array *x = series(g, t, GN_SHAPE(1, 2, 7, 9), 2.0, -1.0), *dx = NULL, *places = NULL;
            if (views) x = gn_move_axis(gn_copy(gn_move_axis(x, 1, -1)), -1, 1); // channels last
            x = gn_requires_grad(gn_detach(x), true);
            gn_array *y = p->fn(x, NULL), *same = p->fn(gn_detach(x), &places);
            assert_non_null(y);
            assert_true(gn_array_equal(y, same, false));
            const int n = (int)gn_size(y);
            expect_doubles(p->name, y, t, p->want, n, tolerance);
            gn_array *gy = series(g, t, gn_shape_of(y), 1.0, -0.5);
            assert_int_equal(gn_gradients(gn_sum(gn_mul(y, gy), GN_ALL), &x, 1, false, &dx), GN_OK);
            if (t == GN_F32 || t == GN_F64) expect_doubles(p->name, dx, t, p->want + n, SIZE, tolerance);
            if (strncmp(p->name, "max", 3) != 0) continue;
            assert_int_equal(p->count, SIZE + 2 * n);
            if (t == GN_F32 || t == GN_F64) expect_doubles(p->name, places, GN_I64, p->want + n + SIZE, n, 0);
        }
}

static void test_values(void **state) {
    gn_context *g = (gn_context *)*state;
    check_values(g, GN_F32, 1e-5, false);
    if (test_on_vulkan()) return; // the same calls
    check_values(g, GN_F32, 1e-5, true);
    check_values(g, GN_F64, 1e-13, true);
    check_values(g, GN_F16, 2e-3, false);
    check_values(g, GN_BF16, 2e-2, false);
}

// ---- derivatives

static gn_array *weighed(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)n;
    gn_array *y = ((const pool *)user)->fn(in[0], NULL);
    return weigh(g, y);
}

static gn_array *weighed_twice(gn_context *g, gn_array *const *in, int n, void *user) {
    gn_array *dx = NULL;
    if (gn_gradients(weighed(g, in, n, user), in, n, true, &dx) != GN_OK) return NULL;
    return gn_sum(gn_sin(gn_add_s(gn_mul_s(dx, 0.02), 0.3)), GN_ALL);
}

static void test_differences(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < COUNT; i++)
        GN_SCOPE(g) {
            pool p = pools[i];
            if (test_on_vulkan() && i > 1) continue;
            gn_array *x = gn_requires_grad(series(g, GN_F64, GN_SHAPE(2, 7, 9), 2.0, -1.0), true); // without a batch
            double error = gn_gradcheck(weighed, &x, 1, 1e-6, &p);
            if (!(error < 1e-6)) fail_msg("%s: %g", p.name, error);
            error = gn_gradcheck(weighed_twice, &x, 1, 1e-6, &p);
            if (!(error < 1e-6)) fail_msg("%s, second derivative: %g", p.name, error);
        }
}

// ---- what is odd

static void test_odd(void **state) {
    gn_context *g = (gn_context *)*state;
    const float some[] = {1, 1, 0, -2, 1, 1, 0, -2, NAN, 5, -INFINITY, -INFINITY, 0, 1, -INFINITY, -INFINITY};
    gn_array *x = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(4, 4), some), true), *at = NULL, *dx = NULL;
    // Of equal ones the first has it; NaN is the largest; windows of nothing but -inf have a place in x.
    gn_array *y = gn_max_pool2d(x, 2, NULL, &at);
    expect_values(y, 1, 0, NAN, -INFINITY);
    gn_array *where = gn_index(at, "0"), *last = gn_index(at, "1, 1");
    expect_values(where, 0, 2);
    expect_values(last, 10);
    assert_int_equal(gn_gradients(gn_sum(gn_index(y, "0"), GN_ALL), &x, 1, false, &dx), GN_OK);
    expect_values(dx, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    expect_values(gn_index(at, "1, 0"), 8); // of the NaN
    const float ends[] = {0, 1, 2, 3, INFINITY}; // windows of 2, 3 and 2: what is in one is in no other
    expect_values(gn_adaptive_avg_pool2d(gn_array_from(g, GN_F32, GN_SHAPE(1, 5), ends), 1, 3), 0.5, 2, INFINITY);
    gn_pool_options o;
    memset(&o, 0, sizeof o);
    o.stride = o.pad = 1;
    gn_array *low = gn_full(g, GN_F32, GN_SHAPE(2, 2), -INFINITY);
    expect_values(gn_max_pool2d(low, 2, &o, &at), -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY,
                  -INFINITY, -INFINITY);
    assert_true(gn_item(gn_max(at, GN_ALL)) <= 3 && gn_item(gn_min(at, GN_ALL)) >= 0);
    // Sizes of one, no images at all, and many axes in front.
    expect_values(gn_max_pool2d(gn_full(g, GN_F32, GN_SHAPE(1, 1), 4), 1, NULL, NULL), 4);
    expect_shape(gn_avg_pool2d(gn_zeros(g, GN_F32, GN_SHAPE(0, 3, 4, 4)), 2, NULL), 0, 3, 2, 2);
    expect_shape(gn_max_pool2d(gn_zeros(g, GN_F32, GN_SHAPE(2, 0, 4, 4)), 3, NULL, &at), 2, 0, 1, 1);
    expect_shape(at, 2, 0, 1, 1);
    expect_shape(gn_interpolate(gn_zeros(g, GN_F32, GN_SHAPE(2, 1, 3, 4, 4)), 4, 5, GN_BILINEAR, true), 2, 1, 3, 4, 5);
    expect_values(gn_interpolate(gn_full(g, GN_F32, GN_SHAPE(1, 1), 3), 2, 2, GN_BILINEAR, true), 3, 3, 3, 3);
    y = gn_interpolate(x, 4, 4, GN_NEAREST, false);
    assert_true(y != x);
    // With `ceil` a window may be larger than x: torch.nn.functional.max_pool2d and avg_pool2d.
    const float four[] = {1, 2, 3, 4};
    gn_array *less = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(2, 2), four), true);
    gn_pool_options large;
    memset(&large, 0, sizeof large);
    large.stride = 3;
    large.ceil = true;
    y = gn_max_pool2d(less, 3, &large, &at);
    expect_shape(y, 1, 1);
    expect_values(y, 4);
    expect_values(at, 3);
    y = gn_avg_pool2d(less, 3, &large);
    expect_shape(y, 1, 1);
    expect_values(y, 2.5);
    assert_int_equal(gn_gradients(y, &less, 1, false, &dx), GN_OK);
    expect_values(dx, 0.25, 0.25, 0.25, 0.25);
    large.dilation = 2;
    large.stride = 4;
    expect_values(gn_max_pool2d(less, 3, &large, NULL), 1);
    large.stride = 2;
    assert_null(gn_max_pool2d(less, 3, &large, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_max_pool2d: a window of 3, with dilation 2, in 2 elements");
    // An average does not leave float16's range where its sum does.
    gn_array *big = gn_full(g, GN_F16, GN_SHAPE(4, 4), 60000.0);
    o.stride = 1;
    o.pad = 0;
    expect_values(gn_avg_pool2d(big, 3, &o), 60000, 60000, 60000, 60000);
    expect_values(gn_avg_pool2d(big, 4, NULL), 60000);
    expect_values(gn_avg_pool2d(gn_full(g, GN_F32, GN_SHAPE(2, 2), INFINITY), 2, NULL), INFINITY);
    // Only windows that an infinite element is in are.
    gn_array *one = gn_zeros(g, GN_F32, GN_SHAPE(1, 6));
    const float inf = INFINITY;
    gn_assign(gn_index(one, "0, 3"), gn_array_from(g, GN_F32, GN_SHAPE(), &inf));
    o.sizes[0] = 1, o.sizes[1] = 2;
    expect_values(gn_avg_pool2d(one, 1, &o), 0, 0, INFINITY, INFINITY, 0);
}

static void test_refusals(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_ones(g, GN_F32, GN_SHAPE(1, 4, 5)), *at = x;
    gn_pool_options o;
    memset(&o, 0, sizeof o);
    assert_null(gn_max_pool2d(gn_ones(g, GN_I32, GN_SHAPE(4, 4)), 2, NULL, &at));
    expect_error(g, GN_ERROR_DTYPE, "gn_max_pool2d: int32 is not a float dtype");
    assert_null(at);
    assert_null(gn_avg_pool2d(gn_ones(g, GN_F32, GN_SHAPE(4)), 2, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_avg_pool2d: (4,) has no images (..., h, w)");
    assert_null(gn_avg_pool2d(x, 5, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_avg_pool2d: a window of 5, with dilation 1, in 4 elements");
    assert_null(gn_max_pool2d(x, 0, NULL, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_max_pool2d: size 0, stride 0, pad 0, dilation 1");
    o.pad = 2;
    assert_null(gn_max_pool2d(x, 3, &o, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_max_pool2d: size 3, stride 3, pad 2, dilation 1");
    o.pad = 0;
    o.dilation = 2;
    assert_null(gn_avg_pool2d(x, 2, &o));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_adaptive_avg_pool2d(x, 0, 3));
    expect_error(g, GN_ERROR_SHAPE, "gn_adaptive_avg_pool2d: a result of (0,3): not between 1 and 2^31 - 1");
    assert_null(gn_interpolate(x, 3, -1, GN_NEAREST, false));
    expect_error(g, GN_ERROR_SHAPE, "gn_interpolate: a result of (3,-1): not between 1 and 2^31 - 1");
    assert_null(gn_interpolate(x, 3, 3, (gn_interpolation)7, false));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_interpolate: 7 is not a gn_interpolation");
}

// All windows of four of five numbers: the first of the largest, or the first NaN.
static void test_fours(void **state) {
    gn_context *g = (gn_context *)*state;
    static const float number[5] = {NAN, -INFINITY, 0.0f, 1.0f, INFINITY};
    enum { WINDOWS = 625 };
    float *v = (float *)calloc(WINDOWS * 15, sizeof(float)), most[WINDOWS], dx[WINDOWS * 15]; // each in 5 x 3, whose border is not covered
    int64_t at[WINDOWS], want[WINDOWS];
    static const int place[4] = {0, 1, 3, 4};
    float largest[WINDOWS];
    for (int w = 0; w < WINDOWS; w++) {
        want[w] = -1;
        for (int i = 0, rest = w; i < 4; i++, rest /= 5) {
            const float x = v[w * 15 + place[i]] = number[rest % 5];
            const float best = want[w] < 0 ? 0.0f : largest[w];
            if (want[w] >= 0 && (best != best || !(x > best || x != x))) continue;
            want[w] = place[i];
            largest[w] = x;
        }
    }
    gn_array *x = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(1, WINDOWS, 5, 3), v), true), *where = NULL, *back = NULL;
    gn_array *y = gn_slice(gn_max_pool2d(x, 2, NULL, &where), 2, 0, 1, 1);
    assert_int_equal(gn_read(gn_eval(y), most, sizeof most), GN_OK);
    assert_int_equal(gn_read(gn_cast(gn_slice(where, 2, 0, 1, 1), GN_I64), at, sizeof at), GN_OK);
    assert_int_equal(gn_gradients(gn_sum(y, GN_ALL), &x, 1, false, &back), GN_OK);
    assert_int_equal(gn_read(back, dx, sizeof dx), GN_OK);
    for (int w = 0; w < WINDOWS; w++) {
        assert_true(at[w] == want[w] && (most[w] == largest[w] || (most[w] != most[w] && largest[w] != largest[w])));
        for (int i = 0; i < 15; i++) assert_true(dx[w * 15 + i] == (i == want[w] ? 1.0f : 0.0f));
    }
    free(v);
}

// Gradients of relu's result in windows of 2 x 3, also where it goes elsewhere as well, before and behind or in part, and where its own
// is asked for. Against what relu holds back of where each window's first largest number is.
static void check_relu(gn_context *g, gn_dtype t, bool again) {
    enum { ROWS = 6, COLUMNS = 9, N = ROWS * COLUMNS, OUT = 9 };
    static const gn_pool_options windows = {0, 0, 0, {2, 3}, {0, 0}, {0, 0}, {0, 0}, false, false};
    double v[N], gy[OUT];
    for (int i = 0; i < N; i++) v[i] = i % COLUMNS < 3 ? -(double)(i % 4) : (double)((i * 29 + i * i) % 7 - 4); // a third of the windows have none above 0
    for (int i = 0; i < OUT; i++) gy[i] = 1.0 + i;
    for (int way = 0; way < 5; way++)
        GN_SCOPE(g) {
            double want_h[N] = {0}, want_x[N];
            for (int w = 0; w < OUT; w++) {
                int best = w / 3 * 2 * COLUMNS + w % 3 * 3;
                for (int i = 0; i < 6; i++) {
                    const int at = (w / 3 * 2 + i / 3) * COLUMNS + w % 3 * 3 + i % 3;
                    if (fmax(v[at], 0) > fmax(v[best], 0)) best = at;
                }
                want_h[best] += gy[w];
            }
            gn_array *in[2] = {gn_requires_grad(gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(1, 1, ROWS, COLUMNS), v), t), true), NULL}, *out[2] = {NULL, NULL};
            gn_array *h = in[1] = gn_relu(in[0]), *more = NULL;
            if (way == 3) more = gn_sum(gn_square(gn_add_s(gn_slice(h, 3, 1, 3, 1), 1)), GN_ALL);
            if (way == 1) more = gn_sum(gn_square(gn_add_s(h, 1)), GN_ALL);
            gn_array *y = gn_max_pool2d(h, 1, &windows, NULL), *loss = gn_sum(gn_mul(y, gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(1, 1, 3, 3), gy), t)), GN_ALL);
            if (way == 2) more = gn_sum(gn_square(gn_add_s(h, 1)), GN_ALL);
            if (more != NULL) loss = gn_add(more, loss);
            for (int i = 0; i < N; i++) {
                if (way == 1 || way == 2 || (way == 3 && (i % COLUMNS == 1 || i % COLUMNS == 2))) want_h[i] += 2 * (fmax(v[i], 0) + 1);
                want_x[i] = v[i] > 0 ? want_h[i] : 0;
            }
            assert_int_equal(gn_gradients(loss, in, way == 4 ? 2 : 1, again, out), GN_OK);
            expect_doubles("relu", out[0], t, want_x, N, 0);
            if (way == 4) expect_doubles("relu itself", out[1], t, want_h, N, 0);
        }
}

static void test_relu(void **state) {
    gn_context *g = (gn_context *)*state;
    check_relu(g, GN_F32, false);
    check_relu(g, GN_F32, true);
    check_relu(g, GN_F64, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_values), GN_TEST(test_differences), GN_TEST(test_odd), GN_TEST(test_fours), GN_TEST(test_relu), GN_TEST(test_refusals)};
    return test_run(tests);
}
