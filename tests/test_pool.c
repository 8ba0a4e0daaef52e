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
    for (int t = 0; t < 2; t++) { // a gap between the pad and the first place of the window that lies in x
        const float row[] = {-INFINITY, -INFINITY, 5};
        const gn_pool_options gap = {0, 0, 0, {1, 2}, {1, 1}, {0, 1}, {1, 2}, false, false};
        x = gn_requires_grad(gn_eval(gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(1, 3), row), t > 0 ? GN_F64 : GN_F32)), true);
        y = gn_max_pool2d(x, 0, &gap, &at);
        expect_values(y, -INFINITY, 5, -INFINITY);
        expect_values(at, 1, 2, 1);
        assert_int_equal(gn_gradients(gn_sum(gn_index(y, "0, :2"), GN_ALL), &x, 1, false, &dx), GN_OK);
        expect_values(dx, 0, 1, 1);
    }
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

// ---- random windows, and frames, against loops in double

typedef struct windows {
    int planes, in[2], out[2], size[2], stride[2], pad[2], dilation[2];
    bool inside;
} windows;

// What a window starting there is of x: its largest and where that is, or its average; `gx` gets what it leaves there.
static double of_window(const windows *w, const double *x, int i, int k, bool largest, int *place, double gy, double *gx) {
    const int top = i * w->stride[0] - w->pad[0], left = k * w->stride[1] - w->pad[1];
    const int bottom = top + w->size[0] < w->in[0] + w->pad[0] ? top + w->size[0] : w->in[0] + w->pad[0],
              right = left + w->size[1] < w->in[1] + w->pad[1] ? left + w->size[1] : w->in[1] + w->pad[1];
    double best = -INFINITY, sum = 0;
    int count = 0;
    *place = -1;
    for (int r = 0; r < w->size[0]; r++)
        for (int c = 0; c < w->size[1]; c++) {
            const int y = top + r * w->dilation[0], z = left + c * w->dilation[1];
            if (y < 0 || y >= w->in[0] || z < 0 || z >= w->in[1]) continue;
            const double v = x[y * w->in[1] + z];
            count++;
            sum += v;
            if (*place >= 0 && !(v > best || (isnan(v) && !isnan(best)))) continue;
            best = v;
            *place = y * w->in[1] + z;
        }
    if (!w->inside) count = (bottom - top) * (right - left);
    if (largest) gx[*place] += gy;
    for (int r = 0; r < w->size[0] && !largest; r++)
        for (int c = 0; c < w->size[1]; c++) {
            const int y = top + r, z = left + c;
            if (y >= 0 && y < w->in[0] && z >= 0 && z < w->in[1]) gx[y * w->in[1] + z] += gy / count;
        }
    return largest ? best : sum / count;
}

static unsigned drawn(unsigned *state, unsigned below) { return (*state = *state * 1664525u + 1013904223u) / 65536u % below; }

static void test_windows(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { MOST = 4096 };
    static double x[MOST], y[MOST], gy[MOST], gx[MOST], at[MOST];
    static const gn_dtype dtypes[] = {GN_F32, GN_F16, GN_BF16};
    unsigned seed = 5;
    for (int round = 0; round < 60; round++)
        GN_SCOPE(g) {
            const gn_dtype t = dtypes[round % 3];
            const bool largest = round % 2 == 0, special = largest && round % 5 == 0;
            windows w;
            gn_pool_options o;
            memset(&o, 0, sizeof o);
            w.planes = 1 + (int)drawn(&seed, 3);
            o.inside = w.inside = !largest && drawn(&seed, 2) == 0;
            for (int i = 0; i < 2; i++) {
                w.size[i] = round == 20 ? 17 : 1 + (int)drawn(&seed, 6); // more taps than a kernel goes through
                w.stride[i] = 1 + (int)drawn(&seed, 4);
                w.pad[i] = (int)drawn(&seed, (unsigned)w.size[i] / 2 + 1);
                w.dilation[i] = largest ? 1 + (int)drawn(&seed, 3) : 1;
                if (round % 7 == 0) w.stride[i] = w.size[i], w.pad[i] = 0, w.dilation[i] = 1; // side by side
                const int reach = (w.size[i] - 1) * w.dilation[i] + 1;
                w.in[i] = reach + (int)drawn(&seed, 12);
                w.out[i] = (w.in[i] + 2 * w.pad[i] - reach) / w.stride[i] + 1;
                o.sizes[i] = w.size[i], o.strides[i] = w.stride[i], o.pads[i] = w.pad[i], o.dilations[i] = w.dilation[i];
            }
            const int have = w.in[0] * w.in[1], make = w.out[0] * w.out[1], n = w.planes * have, m = w.planes * make;
            assert_true(n <= MOST && m <= MOST);
            for (int i = 0; i < n; i++) x[i] = (double)drawn(&seed, 256) - 128; // in halves, too, and few of them alike
            if (special) x[0] = NAN, x[n / 2] = INFINITY, x[n - 1] = -INFINITY;
            memset(gx, 0, sizeof gx);
            for (int i = 0; i < m; i++) gy[i] = (double)drawn(&seed, 16) - 8;
            for (int q = 0; q < w.planes; q++)
                for (int i = 0; i < make; i++) {
                    int place;
                    y[q * make + i] = of_window(&w, x + q * have, i / w.out[1], i % w.out[1], largest, &place, gy[q * make + i], gx + q * have);
                    at[q * make + i] = place;
                }
            gn_array *a = gn_requires_grad(gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(1, w.planes, w.in[0], w.in[1]), x), t), true), *places = NULL, *dx = NULL;
            gn_array *b = largest ? gn_max_pool2d(a, 1, &o, &places) : gn_avg_pool2d(a, 1, &o), *back = gn_cast(gn_array_from(g, GN_F64, gn_shape_of(b), gy), t);
            assert_true(gn_array_equal(b, largest ? gn_max_pool2d(gn_detach(a), 1, &o, NULL) : gn_avg_pool2d(gn_detach(a), 1, &o), true));
            if (special) { // numbers alone can be compared
                assert_true(gn_array_equal(gn_cast(b, GN_F64), gn_array_from(g, GN_F64, gn_shape_of(b), y), true));
                continue;
            }
            const double near = largest ? 0 : t == GN_F32 ? 1e-6 : t == GN_F16 ? 1e-3 : 8e-3;
            expect_doubles("y", b, t, y, m, near);
            if (largest) expect_doubles("places", places, GN_I64, at, m, 0);
            assert_int_equal(gn_gradients(gn_sum(gn_mul(b, back), GN_ALL), &a, 1, false, &dx), GN_OK);
            expect_doubles("gradient", dx, t, gx, n, largest ? 0 : 4 * near);
        }
}

static void test_frames(void **state) {
    gn_context *g = (gn_context *)*state;
    double x[2 * 5 * 7], want[2 * 9 * 12];
    static const gn_dtype dtypes[] = {GN_F32, GN_F16, GN_BF16};
    static const double around[] = {0, -3, 0.1, (double)INFINITY};
    const int64_t widths[] = {0, 0, 1, 3, 4, 1};
    for (int i = 0; i < 70; i++) x[i] = i - 30;
    x[30] = -0.0, x[31] = NAN, x[32] = -INFINITY;
    for (int t = 0; t < 3; t++)
        for (int v = 0; v < 4; v++)
            GN_SCOPE(g) {
                for (int i = 0; i < 216; i++) {
                    const int q = i / 108, r = i / 12 % 9 - 1, c = i % 12 - 4;
                    want[i] = r >= 0 && r < 5 && c >= 0 && c < 7 ? x[q * 35 + r * 7 + c] : around[v];
                }
                gn_array *a = gn_requires_grad(gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(2, 5, 7), x), dtypes[t]), true), *dx = NULL;
                gn_array *y = gn_pad(a, widths, 6, GN_PAD_CONSTANT, around[v]), *same = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(2, 9, 12), want), dtypes[t]);
                assert_true(gn_array_equal(y, same, true) && gn_array_equal(gn_signbit(y), gn_signbit(same), false));
                gn_array *gy = gn_reshape(gn_arange(g, dtypes[t], 0, 216, 1), GN_SHAPE(2, 9, 12));
                assert_int_equal(gn_gradients(gn_sum(gn_mul(gn_nan_to_num(y, 0, 0, 0), gy), GN_ALL), &a, 1, false, &dx), GN_OK);
                for (int i = 0; i < 70; i++) want[i] = isfinite(x[i]) ? i / 35 * 108 + (i / 7 % 5 + 1) * 12 + i % 7 + 4 : 0;
                expect_doubles("gradient", dx, dtypes[t], want, 70, 0);
            }
}

static void test_relu(void **state) {
    gn_context *g = (gn_context *)*state;
    check_relu(g, GN_F32, false);
    check_relu(g, GN_F32, true);
    check_relu(g, GN_F64, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_values), GN_TEST(test_differences), GN_TEST(test_odd), GN_TEST(test_fours), GN_TEST(test_relu), GN_TEST(test_windows), GN_TEST(test_frames), GN_TEST(test_refusals)};
    return test_run(tests);
}
