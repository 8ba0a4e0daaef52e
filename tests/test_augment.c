// Images varied at random: against formulas with the same random numbers drawn again, and the CPU against the backend. Grids and
// samples at them against PyTorch's (torch_augment.h).

#include "test.h"
#include "torch_series.h"
#include "torch_augment.h"

// All elements as doubles; free them.
static double *doubles(gn_array *a) {
    assert_non_null(a);
    const int64_t n = gn_size(a);
    double *v = (double *)malloc(sizeof(double) * (size_t)n + 8);
    assert_int_equal(gn_read(gn_cast(a, GN_F64), v, sizeof(double) * (size_t)n), GN_OK);
    return v;
}

// ---- grids

static const struct {
    const char *name;
    const double *want;
    gn_grid_options options;
} samples[] = {
    {"bilinear, zeros", torch_bilinear_zeros_0, {false, GN_OUTSIDE_ZEROS, false}},
    {"bilinear, zeros, aligned", torch_bilinear_zeros_1, {false, GN_OUTSIDE_ZEROS, true}},
    {"bilinear, border", torch_bilinear_border_0, {false, GN_OUTSIDE_BORDER, false}},
    {"bilinear, border, aligned", torch_bilinear_border_1, {false, GN_OUTSIDE_BORDER, true}},
    {"bilinear, reflection", torch_bilinear_reflection_0, {false, GN_OUTSIDE_REFLECTION, false}},
    {"bilinear, reflection, aligned", torch_bilinear_reflection_1, {false, GN_OUTSIDE_REFLECTION, true}},
    {"nearest, zeros", torch_nearest_zeros_0, {true, GN_OUTSIDE_ZEROS, false}},
    {"nearest, zeros, aligned", torch_nearest_zeros_1, {true, GN_OUTSIDE_ZEROS, true}},
    {"nearest, border", torch_nearest_border_0, {true, GN_OUTSIDE_BORDER, false}},
    {"nearest, border, aligned", torch_nearest_border_1, {true, GN_OUTSIDE_BORDER, true}},
    {"nearest, reflection", torch_nearest_reflection_0, {true, GN_OUTSIDE_REFLECTION, false}},
    {"nearest, reflection, aligned", torch_nearest_reflection_1, {true, GN_OUTSIDE_REFLECTION, true}},
};

// `turned`: operands with strides of their own.
static void check_samples(gn_context *g, gn_dtype t, gn_dtype tg, double tolerance, bool turned) {
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        GN_SCOPE(g) {
            gn_array *x = series(g, t, GN_SHAPE(2, 3, 5, 4), 2.0, -1.0), *grid = series(g, tg, GN_SHAPE(2, 3, 6, 2), 4.6, -2.3);
            if (turned) {
                x = gn_permute(gn_copy(gn_permute(x, 3, 1, 0, 2)), 2, 1, 3, 0);
                grid = gn_flip(gn_copy(gn_flip(grid, 1)), 1);
            }
            gn_requires_grad(x, true);
            gn_requires_grad(grid, true);
            gn_array *y = gn_grid_sample(x, grid, &samples[i].options);
            expect_shape(y, 2, 3, 3, 6);
            assert_int_equal(gn_dtype_of(y), t);
            expect_doubles(samples[i].name, y, gn_dtype_of(y), samples[i].want, 108, tolerance);
            gn_array *weights = series(g, tg, GN_SHAPE(2, 3, 3, 6), 1.0, 0.5), *leaves[2] = {x, grid}, *d[2];
            gn_array *loss = gn_sum(gn_mul(gn_square(y), weights), GN_ALL);
            assert_int_equal(gn_gradients(loss, leaves, 2, false, d), GN_OK);
            expect_doubles(samples[i].name, d[0], gn_dtype_of(d[0]), samples[i].want + 108, 120, 4 * tolerance);
            expect_doubles(samples[i].name, d[1], gn_dtype_of(d[1]), samples[i].want + 228, 72, 10 * tolerance);
        }
}

static void test_grid_sample(void **state) {
    gn_context *g = (gn_context *)*state;
    check_samples(g, GN_F32, GN_F32, 5e-6, false);
    if (test_on_vulkan()) return; // where compiling a kernel takes long
    check_samples(g, GN_F32, GN_F32, 5e-6, true);
    check_samples(g, GN_F64, GN_F64, 1e-13, true);
    check_samples(g, GN_F16, GN_F32, 4e-3, false);
    check_samples(g, GN_BF16, GN_F32, 3e-2, false);
}

// At the edge and beyond it nothing pulls, as in PyTorch.
static void test_edges(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_grid_options o;
    memset(&o, 0, sizeof o);
    o.outside = GN_OUTSIDE_BORDER;
    gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(1, 1, 1, 4), (float[]){1, 2, 4, 8});
    gn_array *grid = gn_array_from(g, GN_F32, GN_SHAPE(1, 1, 4, 2), (float[]){-.75f, 0, .75f, 0, .2f, 0, 3, 0}), *d = NULL;
    gn_requires_grad(grid, true);
    assert_int_equal(gn_gradients(gn_sum(gn_grid_sample(x, grid, &o), GN_ALL), &grid, 1, false, &d), GN_OK);
    expect_values(d, 0, 0, 0, 0, 4, 0, 0, 0);
}

static void test_affine_grid(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *theta = series(g, GN_F64, GN_SHAPE(2, 2, 3), 2.0, -1.0);
    for (int k = 0; k < 2; k++) {
        gn_array *grid = gn_affine_grid(gn_cast(theta, GN_F32), 3, 4, k > 0);
        expect_shape(grid, 2, 3, 4, 2);
        expect_doubles("grid", grid, GN_F32, k > 0 ? torch_affine_1 : torch_affine_0, 48, 1e-6);
        expect_doubles("grid", gn_affine_grid(theta, 3, 4, k > 0), GN_F64, k > 0 ? torch_affine_1 : torch_affine_0, 48, 1e-15);
    }
    expect_values(gn_affine_grid(gn_ones(g, GN_F32, GN_SHAPE(1, 2, 3)), 1, 1, true), 1, 1); // one pixel is the middle
    expect_shape(gn_affine_grid(gn_ones(g, GN_F32, GN_SHAPE(0, 2, 3)), 3, 1, false), 0, 3, 1, 2);
    // The identity, a quarter turn and half an image to the right.
    static const float turns[] = {1, 0, 0, 0, 1, 0, 0, -1, 0, 1, 0, 0, 1, 0, -1, 0, 1, 0};
    gn_array *x = gn_reshape(gn_arange(g, GN_F32, 1, 17, 1), GN_SHAPE(1, 1, 4, 4));
    gn_array *all = gn_broadcast_to(x, GN_SHAPE(3, 1, 4, 4));
    gn_array *y = gn_grid_sample(all, gn_affine_grid(gn_array_from(g, GN_F32, GN_SHAPE(3, 2, 3), turns), 4, 4, false), NULL);
    assert_true(gn_allclose(gn_index(y, "0"), gn_index(x, "0"), 0, 1e-5, false));
    assert_true(gn_allclose(gn_index(y, "1, 0"), gn_flip(gn_swap_axes(gn_index(x, "0, 0"), 0, 1), 1), 0, 1e-5, false) ||
                gn_allclose(gn_index(y, "1, 0"), gn_flip(gn_swap_axes(gn_index(x, "0, 0"), 0, 1), 0), 0, 1e-5, false));
    expect_values(gn_index(y, "2, 0, :, :2"), 0, 0, 0, 0, 0, 0, 0, 0);
    assert_true(gn_allclose(gn_index(y, "2, 0, :, 2:"), gn_index(x, "0, 0, :, :2"), 0, 1e-5, false));
}

// ---- the formula again, over random sizes

static double plain_place(double x, int n, const gn_grid_options *o) {
    x = o->align_corners ? (x + 1) / 2 * (n - 1) : ((x + 1) * n - 1) / 2;
    if (o->outside == GN_OUTSIDE_REFLECTION) {
        const double low = o->align_corners ? 0 : -0.5, high = o->align_corners ? n - 1 : n - 0.5;
        if (low == high) return 0;
        while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
    }
    if (o->outside != GN_OUTSIDE_ZEROS) x = x < 0 ? 0 : x > n - 1 ? n - 1 : x;
    return x;
}
static double plain_pixel(const double *plane, int h, int w, double row, double column) {
    return row < 0 || row > h - 1 || column < 0 || column > w - 1 ? 0 : plane[(int)row * w + (int)column];
}
static double plain_sample(const double *plane, int h, int w, double y, double x, const gn_grid_options *o) {
    const double row = plain_place(y, h, o), column = plain_place(x, w, o), top = floor(row), left = floor(column);
    double sum = 0;
    if (o->nearest) return plain_pixel(plane, h, w, nearbyint(row), nearbyint(column));
    for (int i = 0; i < 4; i++)
        sum += plain_pixel(plane, h, w, top + i / 2, left + i % 2) * (1 - fabs(row - top - i / 2)) * (1 - fabs(column - left - i % 2));
    return sum;
}

static void test_sizes(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int k = 0; k < (test_on_vulkan() ? 40 : 400); k++)
        GN_SCOPE(g) {
            static const int sizes[] = {1, 2, 3, 5, 7, 11, 13};
            const int n = (int)draw(3), c = (int)draw(3) + 1, h = sizes[draw(7)], w = sizes[draw(7)], height = sizes[draw(5)],
                      width = sizes[draw(5)];
            const gn_grid_options o = {draw(2) != 0, (gn_outside)draw(3), draw(2) != 0};
            const gn_dtype t = draw(2) ? GN_F64 : GN_F32;
            gn_array *x = gn_uniform(g, t, GN_SHAPE(n, c, h, w), -1, 1), *grid;
            if (draw(2)) // with strides of its own
                grid = gn_permute(gn_index(gn_uniform(g, t, GN_SHAPE(n, 2, width, 2 * height), -2.9, 2.9), "..., ::2"), 0, 3, 2, 1);
            else
                grid = gn_uniform(g, t, GN_SHAPE(n, height, width, 2), -2.9, 2.9);
            gn_array *y = gn_grid_sample(x, grid, &o);
            expect_shape(y, n, c, height, width);
            double *v = doubles(x), *at = doubles(grid), *got = doubles(y);
            for (int64_t i = 0; i < gn_size(y); i++) {
                const int64_t area = height * width, plane = i / area, place = (plane / c * area + i % area) * 2;
                const double row = plain_place(at[place + 1], h, &o), column = plain_place(at[place], w, &o);
                // Halfway between pixels the nearest may be either where rounding decides.
                if (o.nearest && (fabs(row - floor(row) - 0.5) < 1e-4 || fabs(column - floor(column) - 0.5) < 1e-4)) continue;
                const double want = plain_sample(v + plane * h * w, h, w, at[place + 1], at[place], &o);
                if (!(fabs(got[i] - want) <= (t == GN_F64 ? 1e-13 : 2e-5)))
                    fail_msg("%d x %d, nearest %d, outside %d, aligned %d: %.9g, not %.9g", h, w, o.nearest, (int)o.outside,
                             o.align_corners, got[i], want);
            }
            free(v);
            free(at);
            free(got);
        }
}

// Places that are no numbers, or far away, read nothing.
static void test_odd_places(void **state) {
    gn_context *g = (gn_context *)*state;
    static const float places[] = {NAN, 0, 0, NAN, INFINITY, 0, 0, -INFINITY, 1e30f, -1e30f, 0, 0};
    gn_array *grid = gn_array_from(g, GN_F32, GN_SHAPE(1, 1, 6, 2), places), *x = gn_ones(g, GN_F32, GN_SHAPE(1, 2, 3, 3));
    for (int nearest = 0; nearest < 2; nearest++) {
        gn_grid_options o = {nearest != 0, GN_OUTSIDE_ZEROS, false};
        double *v = doubles(gn_grid_sample(x, grid, &o));
        for (int i = 0; i < 12; i++) {
            if (i % 6 == 5) assert_true(v[i] == 1.0);
            else if (i % 6 > 1 && nearest) assert_true(v[i] == 0.0);
            else assert_true(v[i] == 0.0 || v[i] != v[i]);
        }
        free(v);
    }
    // No images, no channels, no places.
    expect_shape(gn_grid_sample(gn_ones(g, GN_F32, GN_SHAPE(0, 2, 3, 3)), gn_ones(g, GN_F32, GN_SHAPE(0, 2, 2, 2)), NULL), 0, 2, 2, 2);
    expect_shape(gn_grid_sample(gn_ones(g, GN_F32, GN_SHAPE(1, 0, 3, 3)), gn_ones(g, GN_F32, GN_SHAPE(1, 2, 2, 2)), NULL), 1, 0, 2, 2);
    expect_shape(gn_grid_sample(x, gn_ones(g, GN_F32, GN_SHAPE(1, 0, 2, 2)), NULL), 1, 2, 0, 2);
}

// ---- derivatives: the same random numbers at every call

static gn_array *weighted(gn_context *g, gn_array *y) {
    gn_array *w = gn_reshape(gn_sin(gn_arange(g, GN_F64, 1, (double)gn_size(y) + 1, 1)), gn_shape_of(y));
    return gn_sum(gn_mul(gn_mul(y, y), w), GN_ALL);
}
static gn_array *derived(gn_context *g, gn_array *const *x, int count, void *user) {
    const double mean[] = {0.3, 0.4, 0.2}, deviation[] = {0.2, 0.3, 0.7};
    gn_array *other, *weight;
    (void)count;
    gn_seed(g, 11);
    switch (*(const int *)user) {
    case 0: return weighted(g, gn_random_crop(x[0], 3, 2, 1));
    case 1: return weighted(g, gn_random_flip(x[0], 0.5));
    case 2: return weighted(g, gn_cutout(x[0], 2));
    case 3: return weighted(g, gn_color_jitter(x[0], 0.1, 0.2, 0.3));
    case 4: return weighted(g, gn_random_rotation(x[0], 30));
    case 5: return weighted(g, gn_mixup(x[0], gn_arange(g, GN_I32, 0, 2, 1), 1.0, &other, &weight));
    case 6: return weighted(g, gn_normalize(x[0], mean, deviation, 3));
    case 11: return weighted(g, gn_hue_jitter(x[0], 0.4));
    case 7: return weighted(g, gn_affine_grid(gn_reshape(x[0], GN_SHAPE(12, 2, 3)), 2, 3, false));
    default: {
        gn_grid_options o = {false, (gn_outside)(*(const int *)user - 8), true};
        return weighted(g, gn_grid_sample(x[0], x[1], &o));
    }
    }
}
static gn_array *derived_twice(gn_context *g, gn_array *const *x, int count, void *user) {
    gn_array *d[2] = {NULL, NULL};
    if (gn_gradients(derived(g, x, count, user), x, count, true, d) != GN_OK) return NULL;
    gn_array *y = gn_sum(gn_square(d[0]), GN_ALL);
    return count > 1 ? gn_add(y, gn_sum(gn_square(d[1]), GN_ALL)) : y;
}

static void test_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    if (test_on_vulkan()) skip(); // float64 of the same compositions
    for (int k = 0; k < 12; k++)
        GN_SCOPE(g) {
            gn_array *x[2];
            x[0] = gn_requires_grad(series(g, GN_F64, GN_SHAPE(2, 3, 4, 3), 0.5, 0.2), true);
            x[1] = gn_requires_grad(series(g, GN_F64, GN_SHAPE(2, 2, 2, 2), 2.1, -0.98), true);
            const double first = gn_gradcheck(derived, x, k < 8 || k == 11 ? 1 : 2, 0.0, &k);
            const double second = gn_gradcheck(derived_twice, x, k < 8 || k == 11 ? 1 : 2, 0.0, &k);
            if (!(first < 1e-6) || !(second < 1e-5)) fail_msg("%d: errors %g, %g: %s", k, first, second, gn_error(g));
        }
}

// ---- what moves pixels

enum { N = 40, C = 2, H = 5, W = 7 };

// Pixel (n, c, h, w) is its own number, from 1 on.
static gn_array *numbered(gn_context *g, gn_dtype t) {
    return gn_cast(gn_reshape(gn_arange(g, GN_F32, 1, N * C * H * W + 1, 1), GN_SHAPE(N, C, H, W)), t);
}
static int number_of(int n, int c, int h, int w) { return h < 0 || h >= H || w < 0 || w >= W ? 0 : ((n * C + c) * H + h) * W + w + 1; }

// The integers that a call on N images has drawn.
static void drawn(gn_context *g, int low, int high, int32_t *to) {
    assert_int_equal(gn_read(gn_randint(g, GN_I32, GN_SHAPE(N), low, high), to, 4 * N), GN_OK);
}

static void test_crop(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int cases[][3] = {{5, 7, 0}, {5, 7, 2}, {3, 3, 0}, {1, 1, 1}, {9, 11, 2}, {4, 8, 1}, {2, 7, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        GN_SCOPE(g) {
            const int h = cases[k][0], w = cases[k][1], pad = cases[k][2];
            int32_t down[N], right[N];
            gn_seed(g, 100 + k);
            gn_array *y = gn_random_crop(numbered(g, GN_F32), h, w, pad);
            gn_seed(g, 100 + k);
            drawn(g, -pad, H + pad - h + 1, down);
            drawn(g, -pad, W + pad - w + 1, right);
            expect_shape(y, N, C, h, w);
            double *v = doubles(y);
            for (int i = 0; i < N * C * h * w; i++) {
                const int n = i / (C * h * w), c = i / (h * w) % C;
                assert_int_equal((int)v[i], number_of(n, c, down[n] + i / w % h, right[n] + i % w));
            }
            free(v);
        }
    // Every place comes.
    bool seen[5][5] = {{false}};
    for (int k = 0; k < 10; k++)
        GN_SCOPE(g) {
            double *v = doubles(gn_index(gn_random_crop(numbered(g, GN_F32), 3, 5, 1), ":, 0, 1, 2"));
            for (int n = 0; n < N; n++) {
                const int at = (int)v[n] - 1 - n * C * H * W;
                seen[at / W][at % W - 1] = true;
            }
            free(v);
        }
    for (int i = 0; i < 25; i++) assert_true(seen[i / 5][i % 5]);
}

static void test_flip(void **state) {
    gn_context *g = (gn_context *)*state;
    static const double p[] = {0, 1, 0.5};
    for (int k = 0; k < 3; k++) {
        double *v = doubles(gn_random_flip(numbered(g, GN_F32), p[k]));
        int flipped = 0;
        for (int n = 0; n < N; n++) {
            const bool f = (int)v[n * C * H * W] != number_of(n, 0, 0, 0);
            flipped += f;
            for (int i = 0; i < C * H * W; i++)
                assert_int_equal((int)v[n * C * H * W + i], number_of(n, i / (H * W), i / W % H, f ? W - 1 - i % W : i % W));
        }
        free(v);
        assert_true(k == 0 ? flipped == 0 : k == 1 ? flipped == N : flipped > 5 && flipped < N - 5);
    }
}

static void test_cutout(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int size = 0; size < 7; size++)
        GN_SCOPE(g) {
            int32_t down[N], right[N];
            gn_seed(g, 9);
            double *v = doubles(gn_cutout(numbered(g, GN_F32), size));
            gn_seed(g, 9);
            drawn(g, 0, H, down);
            drawn(g, 0, W, right);
            for (int i = 0; i < N * C * H * W; i++) {
                const int n = i / (C * H * W), c = i / (H * W) % C, h = i / W % H, w = i % W;
                const bool hole = h >= down[n] - size / 2 && h < down[n] - size / 2 + size && w >= right[n] - size / 2 &&
                                  w < right[n] - size / 2 + size;
                assert_int_equal((int)v[i], hole ? 0 : number_of(n, c, h, w));
            }
            free(v);
        }
}

// The same bits here and on a CPU, of every dtype, and of operands with strides.
static void test_same_places(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_options o = test_options();
    o.backend = GN_BACKEND_CPU;
    o.placement = GN_PLACE_CPU;
    gn_context *cpu = test_open_with(&o);
    for (int t = 0; t < (int)GN_DTYPE_COUNT; t++) {
        if (test_on_vulkan() && t != GN_F32 && t != GN_U8) continue;
        static unsigned char bytes[2][N * C * H * W * 16];
        for (int op = 0; op < 3; op++) {
            for (int k = 0; k < 2; k++) {
                gn_context *at = k > 0 ? cpu : g;
                gn_scope_begin(at);
                gn_seed(at, 77);
                gn_array *x = numbered(at, (gn_dtype)t);
                if (k == 0) x = gn_swap_axes(gn_copy(gn_swap_axes(x, 0, 3)), 0, 3);
                gn_array *y = op == 0 ? gn_random_crop(x, H, W, 2) : op == 1 ? gn_random_flip(x, 0.5) : gn_cutout(x, 3);
                assert_int_equal(gn_dtype_of(y), t);
                assert_int_equal(gn_read(y, bytes[k], gn_bytes(y)), GN_OK);
                gn_scope_end(at);
            }
            assert_memory_equal(bytes[0], bytes[1], (size_t)(N * C * H * W) * gn_dtype_size((gn_dtype)t));
        }
    }
    gn_close(cpu);
}

// ---- what changes them

static double within(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

static void test_color_jitter(void **state) {
    gn_context *g = (gn_context *)*state;
    static const double amounts[][3] = {{0.4, 0, 0}, {0, 0.3, 0}, {0, 0, 0.7}, {0.5, 0.5, 0.5}, {2, 3, 4}, {0, 0, 0}};
    enum { IMAGES = 3, PIXELS = 20 };
    for (size_t k = 0; k < sizeof amounts / sizeof *amounts; k++)
        GN_SCOPE(g) {
            gn_array *x = gn_slice(series(g, GN_F32, GN_SHAPE(5, 3, 4, 2), 1.0, 0.0), 0, 0, IMAGES, 1);
            double *v = doubles(x), *f[3] = {NULL, NULL, NULL};
            gn_seed(g, 5);
            double *y = doubles(gn_color_jitter(x, amounts[k][0], amounts[k][1], amounts[k][2]));
            gn_seed(g, 5);
            for (int j = 0; j < 3; j++)
                if (amounts[k][j] > 0) f[j] = doubles(gn_uniform(g, GN_F32, GN_SHAPE(IMAGES), fmax(1 - amounts[k][j], 0), 1 + amounts[k][j]));
            for (int n = 0; n < IMAGES; n++) {
                double *p = v + n * 24, mean = 0;
                for (int i = 0; i < 24 && f[0] != NULL; i++) p[i] = within(p[i] * f[0][n]);
                for (int i = 0; i < 8; i++) mean += (0.299 * p[i] + 0.587 * p[8 + i] + 0.114 * p[16 + i]) / 8;
                for (int i = 0; i < 24 && f[1] != NULL; i++) p[i] = within(p[i] * f[1][n] + mean * (1 - f[1][n]));
                for (int i = 0; i < 8 && f[2] != NULL; i++) {
                    const double grey = 0.299 * p[i] + 0.587 * p[8 + i] + 0.114 * p[16 + i];
                    for (int c = 0; c < 3; c++) p[8 * c + i] = within(p[8 * c + i] * f[2][n] + grey * (1 - f[2][n]));
                }
                for (int i = 0; i < 24; i++)
                    if (fabs(p[i] - y[n * 24 + i]) > 2e-6) fail_msg("case %d: %g is not %g", (int)k, y[n * 24 + i], p[i]);
            }
            for (int j = 0; j < 3; j++) free(f[j]);
            free(v);
            free(y);
        }
}

// torchvision's way there and back: hue, saturation and value, in double.
static void turn_hue(double *rgb[3], double f) {
    const double r = *rgb[0], g = *rgb[1], b = *rgb[2], v = fmax(r, fmax(g, b)), range = v - fmin(r, fmin(g, b));
    const double by = range == 0 ? 1 : range, s = range == 0 ? 0 : range / v;
    const double sixths = v == r ? (g - b) / by : v == g ? 2 + (b - r) / by : 4 + (r - g) / by;
    double h = fmod(sixths / 6 + 1, 1) + f;
    h -= floor(h);
    const int i = (int)floor(h * 6) % 6;
    const double part = h * 6 - floor(h * 6), p = v * (1 - s), q = v * (1 - s * part), t = v * (1 - s * (1 - part));
    const double table[3][6] = {{v, q, p, p, t, v}, {t, v, v, q, p, p}, {p, p, t, v, v, q}};
    for (int c = 0; c < 3; c++) *rgb[c] = table[c][i];
}

static void test_hue_jitter(void **state) {
    gn_context *g = (gn_context *)*state;
    static const double amounts[] = {0.5, 0.1, 0};
    static const gn_dtype kinds[] = {GN_F32, GN_F64, GN_F16, GN_BF16};
    enum { IMAGES = 4, PIXELS = 8 };
    for (int k = 0; k < 3; k++)
        for (int t = 0; t < 4; t++)
            GN_SCOPE(g) {
                const double slack = t == 0 ? 2e-6 : t == 1 ? 1e-14 : t == 2 ? 2e-3 : 2e-2;
                gn_array *x = gn_swap_axes(series(g, kinds[t], GN_SHAPE(IMAGES, 3, 4, 2), 1.0, 0.0), 2, 3);
                // Greys, black, white and pure colours.
                gn_array *plain = gn_reshape(gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(2, 12), (float[]){0, 1, 0.5f, 1, 0, 1, 0.5f, 0, 0, 1, 0.5f, 1,
                                                                                                    0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}), kinds[t]), GN_SHAPE(2, 3, 2, 2));
                for (int odd = 0; odd < 2; odd++) {
                    gn_array *in = odd ? plain : x;
                    const int n = (int)gn_dim(in, 0), pixels = odd ? 4 : PIXELS;
                    const gn_dtype inner = kinds[t] == GN_F64 ? GN_F64 : GN_F32;
                    gn_seed(g, 5);
                    double *y = doubles(gn_hue_jitter(in, amounts[k])), *v = doubles(in);
                    gn_seed(g, 5);
                    double *f = doubles(gn_uniform(g, inner, GN_SHAPE(n), -amounts[k], amounts[k]));
                    for (int i = 0; i < n; i++)
                        for (int j = 0; j < pixels; j++) {
                            double *rgb[3];
                            for (int c = 0; c < 3; c++) rgb[c] = v + (i * 3 + c) * pixels + j;
                            turn_hue(rgb, f[i]);
                            for (int c = 0; c < 3; c++) {
                                const double have = y[(i * 3 + c) * pixels + j];
                                if (!(fabs(have - *rgb[c]) <= slack)) fail_msg("dtype %d, amount %g: %.9g is not %.9g", t, amounts[k], have, *rgb[c]);
                            }
                        }
                    free(y);
                    free(v);
                    free(f);
                }
            }
}

static void test_rotation(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = series(g, GN_F32, GN_SHAPE(3, 2, 4, 5), 1.0, 0.0);
    assert_true(gn_allclose(gn_random_rotation(x, 0), x, 0, 1e-6, false));
    double *v = doubles(x);
    gn_seed(g, 4);
    double *y = doubles(gn_random_rotation(x, 170));
    gn_seed(g, 4);
    double *angle = doubles(gn_uniform(g, GN_F32, GN_SHAPE(3), -170, 170));
    for (int i = 0; i < 120; i++) { // bilinear between pixels' centres, rows down, counterclockwise
        const int n = i / 40, plane = i / 20;
        const double a = angle[n] * 3.14159265358979323846 / 180, r = i / 5 % 4 - 1.5, c = i % 5 - 2.0;
        const double row = c * sin(a) + r * cos(a) + 1.5, column = c * cos(a) - r * sin(a) + 2.0;
        const int top = (int)floor(row), left = (int)floor(column);
        double want = 0;
        for (int k = 0; k < 4; k++) {
            const int h = top + k / 2, w = left + k % 2;
            if (h < 0 || h >= 4 || w < 0 || w >= 5) continue;
            want += v[plane * 20 + h * 5 + w] * (1 - fabs(row - h)) * (1 - fabs(column - w));
        }
        if (fabs(want - y[i]) > 1e-5) fail_msg("pixel %d: %g is not %g", i, y[i], want);
    }
    free(v);
    free(y);
    free(angle);
}

static void test_mixup(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *labels = gn_arange(g, GN_I32, 0, 8, 1), *other, *weight, *x = series(g, GN_F32, GN_SHAPE(8, 3), 2.0, -1.0);
    gn_array *y = gn_mixup(x, labels, 0.4, &other, &weight);
    const double w = gn_item(weight);
    assert_true(w >= 0 && w <= 1);
    assert_true(gn_array_equal(gn_sort(other, 0, false), labels, false));
    assert_int_equal(gn_rank(weight), 0);
    gn_array *want = gn_add(gn_mul_s(x, w), gn_mul_s(gn_take(x, other, 0), 1 - w));
    assert_true(gn_allclose(y, want, 0, 1e-6, false));
    assert_int_equal(gn_dtype_of(gn_mixup(gn_cast(x, GN_F16), labels, 1, &other, &weight)), GN_F16);
    // Its mean over many draws: Beta(2, 2) has 1/2 and a variance of 1/20.
    double sum = 0, squares = 0;
    for (int i = 0; i < 400; i++)
        GN_SCOPE(g) {
            gn_mixup(x, labels, 2, &other, &weight);
            const double v = gn_item(weight);
            sum += v / 400;
            squares += v * v / 400;
        }
    assert_true(fabs(sum - 0.5) < 5 * sqrt(0.05 / 400));
    assert_true(fabs(squares - sum * sum - 0.05) < 0.015);
}

static void test_normalize(void **state) {
    gn_context *g = (gn_context *)*state;
    const double mean[] = {0.4914, 0.4822, 0.4465}, deviation[] = {0.2470, 0.2435, 0.2616};
    gn_array *x = gn_cast(gn_reshape(gn_arange(g, GN_F32, 0, 96, 1), GN_SHAPE(2, 3, 4, 4)), GN_U8);
    for (int k = 0; k < 2; k++) {
        gn_array *y = gn_normalize(k > 0 ? gn_div_s(gn_cast(x, GN_F32), 255) : x, mean, deviation, 3);
        assert_int_equal(gn_dtype_of(y), GN_F32);
        double *v = doubles(y);
        for (int i = 0; i < 96; i++) assert_true(fabs(v[i] - (i / 255.0 - mean[i / 16 % 3]) / deviation[i / 16 % 3]) < 1e-6);
        free(v);
    }
    assert_int_equal(gn_dtype_of(gn_normalize(gn_cast(x, GN_BF16), mean, deviation, 3)), GN_BF16);
}

// ---- refused, and nothing at all

static void test_refused(void **state) {
    gn_context *g = (gn_context *)*state;
    const double one[] = {1, 1, 1};
    gn_array *x = gn_ones(g, GN_F32, GN_SHAPE(2, 3, 4, 5)), *flat = gn_ones(g, GN_F32, GN_SHAPE(4, 5)), *other, *weight;
    gn_array *whole = gn_ones(g, GN_I32, GN_SHAPE(2, 3, 4, 5)), *empty = gn_ones(g, GN_F32, GN_SHAPE(2, 3, 0, 5));
    gn_grid_options odd = {false, (gn_outside)7, false};
#define REFUSED(call, status, text) assert_null(call), expect_error(g, status, text)
    REFUSED(gn_random_crop(flat, 2, 2, 0), GN_ERROR_SHAPE, "gn_random_crop: x (4,5) is not (n, c, h, w)");
    REFUSED(gn_random_crop(x, 5, 5, 0), GN_ERROR_SHAPE, "gn_random_crop: there is no part of 5 x 5 in 4 x 5 with 0 around it");
    REFUSED(gn_random_crop(x, 0, 5, 0), GN_ERROR_SHAPE, NULL);
    REFUSED(gn_random_crop(x, 4, 5, -1), GN_ERROR_SHAPE, NULL);
    REFUSED(gn_random_crop(x, INT64_MAX, 5, INT64_MAX), GN_ERROR_SHAPE, NULL);
    REFUSED(gn_random_crop(empty, 1, 5, 2), GN_ERROR_SHAPE, "gn_random_crop: images of x (2,3,0,5) have no pixels or more than 2^31");
    REFUSED(gn_random_flip(x, 1.5), GN_ERROR_ARGUMENT, "gn_random_flip: the probability is 1.5");
    REFUSED(gn_random_flip(x, (double)NAN), GN_ERROR_ARGUMENT, NULL);
    REFUSED(gn_cutout(x, -1), GN_ERROR_ARGUMENT, "gn_cutout: the size is -1");
    REFUSED(gn_color_jitter(whole, 0, 0, 0), GN_ERROR_DTYPE, "gn_color_jitter: x is int32, not a float");
    REFUSED(gn_color_jitter(gn_slice(x, 1, 0, 2, 1), 0, 0, 0), GN_ERROR_SHAPE, "gn_color_jitter: 2 channels are not 3");
    REFUSED(gn_hue_jitter(whole, 0), GN_ERROR_DTYPE, "gn_hue_jitter: x is int32, not a float");
    REFUSED(gn_hue_jitter(gn_slice(x, 1, 0, 2, 1), 0), GN_ERROR_SHAPE, "gn_hue_jitter: 2 channels are not 3");
    REFUSED(gn_hue_jitter(x, 0.6), GN_ERROR_ARGUMENT, "gn_hue_jitter: the amount 0.6 is not between 0 and 0.5");
    REFUSED(gn_color_jitter(x, 0, -1, 0), GN_ERROR_ARGUMENT, "gn_color_jitter: an amount of 0, -1, 0 is not 0 or more");
    REFUSED(gn_random_rotation(x, -5), GN_ERROR_ARGUMENT, "gn_random_rotation: the angle is -5");
    REFUSED(gn_random_rotation(whole, 5), GN_ERROR_DTYPE, NULL);
    REFUSED(gn_mixup(x, gn_ones(g, GN_I32, GN_SHAPE(3)), 1, &other, &weight), GN_ERROR_SHAPE,
            "gn_mixup: x (2,3,4,5) and labels (3,) are not of one batch");
    assert_null(other);
    assert_null(weight);
    REFUSED(gn_mixup(whole, gn_ones(g, GN_I32, GN_SHAPE(2)), 1, &other, &weight), GN_ERROR_DTYPE, "gn_mixup: x is int32, not a float");
    REFUSED(gn_mixup(x, gn_ones(g, GN_I32, GN_SHAPE(2)), 0, &other, &weight), GN_ERROR_ARGUMENT, "gn_mixup: alpha is 0");
    REFUSED(gn_mixup(x, gn_ones(g, GN_I32, GN_SHAPE(2)), 1, NULL, &weight), GN_ERROR_ARGUMENT, NULL);
    REFUSED(gn_normalize(x, one, one, 2), GN_ERROR_SHAPE, "gn_normalize: numbers for 2 channels of 3");
    REFUSED(gn_normalize(x, NULL, one, 3), GN_ERROR_ARGUMENT, "gn_normalize: mean or deviation is NULL");
    REFUSED(gn_normalize(whole, one, one, 3), GN_ERROR_DTYPE, "gn_normalize: x is int32, not a float or uint8");
    REFUSED(gn_affine_grid(flat, 2, 2, false), GN_ERROR_SHAPE, "gn_affine_grid: theta (4,5) for 2 x 2 is not (n, 2, 3)");
    REFUSED(gn_affine_grid(gn_ones(g, GN_F32, GN_SHAPE(1, 2, 3)), 0, 2, false), GN_ERROR_SHAPE, NULL);
    REFUSED(gn_affine_grid(gn_ones(g, GN_I32, GN_SHAPE(1, 2, 3)), 2, 2, false), GN_ERROR_DTYPE, NULL);
    REFUSED(gn_affine_grid(gn_ones(g, GN_F32, GN_SHAPE(1, 2, 3)), INT64_MAX, INT64_MAX, false), GN_ERROR_SHAPE, NULL);
    REFUSED(gn_grid_sample(x, flat, NULL), GN_ERROR_SHAPE,
            "gn_grid_sample: x (2,3,4,5) and grid (4,5) are not (n, c, h, w) and (n, height, width, 2)");
    REFUSED(gn_grid_sample(x, gn_ones(g, GN_I32, GN_SHAPE(2, 1, 1, 2)), NULL), GN_ERROR_DTYPE,
            "gn_grid_sample: x is float32 and the grid int32, not floats");
    REFUSED(gn_grid_sample(x, gn_ones(g, GN_F32, GN_SHAPE(2, 1, 1, 2)), &odd), GN_ERROR_ARGUMENT, "gn_grid_sample: outside is 7");
    REFUSED(gn_grid_sample(empty, gn_ones(g, GN_F32, GN_SHAPE(2, 1, 1, 2)), NULL), GN_ERROR_SHAPE, NULL);
    // No images.
    gn_array *none = gn_ones(g, GN_F32, GN_SHAPE(0, 3, 4, 5));
    expect_shape(gn_random_crop(none, 6, 5, 1), 0, 3, 6, 5);
    expect_shape(gn_random_flip(none, 0.5), 0, 3, 4, 5);
    expect_shape(gn_cutout(none, 2), 0, 3, 4, 5);
    expect_shape(gn_color_jitter(none, 1, 1, 1), 0, 3, 4, 5);
    expect_shape(gn_hue_jitter(none, 0.5), 0, 3, 4, 5);
    expect_shape(gn_random_rotation(none, 10), 0, 3, 4, 5);
    expect_shape(gn_mixup(none, gn_ones(g, GN_I32, GN_SHAPE(0)), 1, &other, &weight), 0, 3, 4, 5);
    expect_shape(gn_normalize(none, one, one, 3), 0, 3, 4, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_grid_sample), GN_TEST(test_edges), GN_TEST(test_affine_grid), GN_TEST(test_sizes),      GN_TEST(test_odd_places),
        GN_TEST(test_gradients),
        GN_TEST(test_crop),        GN_TEST(test_flip),        GN_TEST(test_cutout),       GN_TEST(test_same_places),
        GN_TEST(test_color_jitter), GN_TEST(test_hue_jitter), GN_TEST(test_rotation),   GN_TEST(test_mixup),        GN_TEST(test_normalize),
        GN_TEST(test_refused)};
    return test_run(tests);
}
