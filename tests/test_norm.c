// Normalisation: values, gradients and running moments against PyTorch's (torch_values.h), derivatives against differences, and what
// is odd.
#include "test.h"
#include "torch_series.h"
#include "torch_values.h"

typedef struct operands {
    gn_array *x, *w, *b, *w2, *b2, *mean, *var;
} operands;

static operands operands_of(gn_context *g, gn_dtype t, bool views) {
    operands o;
    o.x = series(g, t, GN_SHAPE(4, 6, 2, 3), 2.0, -0.7);
    if (views) o.x = gn_detach(gn_move_axis(gn_copy(gn_move_axis(o.x, 1, -1)), -1, 1)); // channels last
    o.x = gn_requires_grad(o.x, true);
    o.w = gn_requires_grad(series(g, t, GN_SHAPE(6), 1.0, 0.3), true);
    o.b = gn_requires_grad(series(g, t, GN_SHAPE(6), -0.8, 0.1), true);
    o.w2 = gn_requires_grad(series(g, t, GN_SHAPE(2, 3), 1.0, 0.3), true);
    o.b2 = gn_requires_grad(series(g, t, GN_SHAPE(2, 3), -0.8, 0.1), true);
    const gn_dtype own = t == GN_F64 ? GN_F64 : GN_F32; // running moments in float32, as mixed precision has them
    o.mean = series(g, own, GN_SHAPE(6), 1.0, -0.5);
    o.var = series(g, own, GN_SHAPE(6), 1.0, 0.5);
    return o;
}

// name, result, its parameters
#define NORMS(X)                                                                                     \
    X(batch_norm, gn_batch_norm(o->x, o->mean, o->var, o->w, o->b, true, 0.3, 1e-3), o->w, o->b)     \
    X(batch_norm_eval, gn_batch_norm(o->x, o->mean, o->var, o->w, o->b, false, 0.3, 1e-3), o->w, o->b) \
    X(batch_norm_plain, gn_batch_norm(o->x, NULL, NULL, NULL, NULL, true, 0.1, 1e-5), NULL, NULL)    \
    X(layer_norm, gn_layer_norm(o->x, 2, o->w2, o->b2, 1e-3), o->w2, o->b2)                          \
    X(layer_norm_plain, gn_layer_norm(o->x, 3, NULL, NULL, 1e-5), NULL, NULL)                        \
    X(group_norm, gn_group_norm(o->x, 3, o->w, o->b, 1e-3), o->w, o->b)                              \
    X(instance_norm, gn_instance_norm(o->x, o->w, o->b, 1e-3), o->w, o->b)                           \
    X(rms_norm, gn_rms_norm(o->x, 2, o->w2, 1e-3), o->w2, NULL)

typedef struct norm {
    const char *name;
    gn_array *(*fn)(const operands *o);
    int (*leaves)(const operands *o, gn_array **leaf);
    const double *want;
    int count;
} norm;
#define GN_X(name, expression, first, second)                      \
    static gn_array *fn_##name(const operands *o) { return expression; } \
    static int leaves_##name(const operands *o, gn_array **leaf) { \
        leaf[0] = o->x, leaf[1] = first, leaf[2] = second;         \
        return leaf[2] != NULL ? 3 : leaf[1] != NULL ? 2 : 1;      \
    }
NORMS(GN_X)
#undef GN_X
static const norm norms[] = {
#define GN_X(name, expression, first, second) \
    {#name, fn_##name, leaves_##name, torch_##name, (int)(sizeof torch_##name / sizeof(double))},
    NORMS(GN_X)
#undef GN_X
};
enum { COUNT = (int)(sizeof norms / sizeof norms[0]), SIZE = 4 * 6 * 2 * 3 };

static void check_values(gn_context *g, gn_dtype t, double tolerance, bool views) {
    for (int i = 0; i < COUNT; i++)
        GN_SCOPE(g) {
            const norm *p = &norms[i];
            operands o = operands_of(g, t, views);
            gn_array *leaf[3], *dx[3];
            if (i == 1) { // whose running moments are those that the first case has left
                gn_assign(o.mean, gn_array_from(g, GN_F64, GN_SHAPE(6), torch_batch_norm + 2 * SIZE + 12));
                gn_assign(o.var, gn_array_from(g, GN_F64, GN_SHAPE(6), torch_batch_norm + 2 * SIZE + 18));
            }
            gn_array *y = p->fn(&o);
            assert_non_null(y);
            const double *want = p->want;
            expect_doubles(p->name, y, t, want, SIZE, tolerance);
            const int n = p->leaves(&o, leaf);
            gn_array *gy = series(g, t, gn_shape_of(y), 1.0, -0.5);
            assert_int_equal(gn_gradients(gn_sum(gn_mul(y, gy), GN_ALL), leaf, n, false, dx), GN_OK);
            want += SIZE;
            for (int q = 0; q < n; q++) {
                const int size = (int)gn_size(leaf[q]);
                if (t == GN_F32 || t == GN_F64) expect_doubles(p->name, dx[q], t, want, size, tolerance);
                want += size;
            }
            if (i < 2) {
                expect_doubles("mean", o.mean, gn_dtype_of(o.mean), want, 6, tolerance);
                expect_doubles("var", o.var, gn_dtype_of(o.var), want + 6, 6, tolerance);
            }
            assert_int_equal(want + 12 - p->want, p->count);
        }
}

static void test_values(void **state) {
    gn_context *g = (gn_context *)*state;
    check_values(g, GN_F32, 1e-5, false);
    if (test_on_vulkan()) return; // the same calls
    check_values(g, GN_F32, 1e-5, true);
    check_values(g, GN_F64, 1e-12, true);
    check_values(g, GN_F16, 4e-3, false);
    check_values(g, GN_BF16, 4e-2, false);
}

// ---- derivatives

typedef struct checked {
    const norm *norm;
    operands o;
} checked;

static gn_array *weighed(gn_context *g, gn_array *const *in, int n, void *user) {
    const checked *c = (const checked *)user;
    (void)in, (void)n;
    gn_array *y = c->norm->fn(&c->o);
    return weigh(g, y);
}

static gn_array *weighed_twice(gn_context *g, gn_array *const *in, int n, void *user) {
    return test_sines(weighed(g, in, n, user), in, n);
}

static void test_differences(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < COUNT; i++)
        GN_SCOPE(g) {
            if (test_on_vulkan() && i > 0) continue; // made of the same ops
            checked c;
            gn_array *leaf[3];
            c.norm = &norms[i];
            c.o = operands_of(g, GN_F64, false);
            const int n = norms[i].leaves(&c.o, leaf);
            double error = gn_gradcheck(weighed, leaf, n, 1e-6, &c);
            if (!(error < 1e-6)) fail_msg("%s: %g", c.norm->name, error);
            error = gn_gradcheck(weighed_twice, leaf, n, 1e-6, &c);
            if (!(error < 1e-6)) fail_msg("%s, second derivative: %g", c.norm->name, error);
        }
}

// Groups whose channels are long enough for a CPU to take them as rows of pieces: float32 against float64, which does not.
static void test_long_groups(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < 8; i++)
        GN_SCOPE(g) {
            gn_array *y[2], *dx[2][3], *leaf[3];
            const int groups = i % 2 == 0 ? 3 : 6;
            for (int k = 0; k < 2; k++) {
                const gn_dtype t = k == 0 ? GN_F64 : GN_F32;
                int n = 1;
                leaf[0] = gn_requires_grad(series(g, t, GN_SHAPE(5, 6, 3, 7), 2.0, -0.5), true);
                gn_array *w = i / 2 % 2 == 0 ? NULL : gn_requires_grad(series(g, t, GN_SHAPE(6), 1.0, 0.5), true);
                gn_array *b = i / 4 == 0 ? NULL : gn_requires_grad(series(g, t, GN_SHAPE(6), -1.0, 0.2), true);
                if (w != NULL) leaf[n++] = w;
                if (b != NULL) leaf[n++] = b;
                y[k] = groups == 3 ? gn_group_norm(leaf[0], 3, w, b, 1e-3) : gn_instance_norm(leaf[0], w, b, 1e-3);
                assert_int_equal(gn_gradients(weigh(g, y[k]), leaf, n, false, dx[k]), GN_OK);
                if (k == 0) continue;
                assert_true(gn_allclose(y[1], y[0], 1e-5, 1e-5, false));
                for (int q = 0; q < n; q++) assert_true(gn_allclose(dx[1][q], dx[0][q], 1e-4, 1e-5, false));
            }
        }
}

// ---- what is odd

static gn_array *batch_norm_of(gn_context *g, gn_array *const *in, int n, void *user) {
    gn_array **moments = (gn_array **)user;
    (void)g, (void)n;
    return gn_batch_norm(in[0], moments[0], moments[1], NULL, NULL, true, 0.5, 1e-5);
}

static void test_odd(void **state) {
    gn_context *g = (gn_context *)*state;
    // A checkpoint computes its function twice; the running moments move once.
    gn_array *x = gn_requires_grad(series(g, GN_F32, GN_SHAPE(8, 2), 2.0, -1.0), true), *moments[2], *dx = NULL, *dx2 = NULL;
    moments[0] = gn_copy(gn_zeros(g, GN_F32, GN_SHAPE(2))), moments[1] = gn_copy(gn_ones(g, GN_F32, GN_SHAPE(2)));
    gn_array *y = gn_checkpoint(batch_norm_of, &x, 1, moments);
    gn_array *once = gn_eval(gn_mul_s(moments[0], 1.0));
    assert_int_equal(gn_gradients(gn_sum(gn_mul(y, gn_square(y)), GN_ALL), &x, 1, false, &dx), GN_OK);
    assert_true(gn_array_equal(once, moments[0], false));
    assert_true(gn_allclose(once, gn_mul_s(gn_mean(x, 0), 0.5), 1e-6, 1e-7, false));
    y = batch_norm_of(g, &x, 1, moments);
    assert_int_equal(gn_gradients(gn_sum(gn_mul(y, gn_square(y)), GN_ALL), &x, 1, false, &dx2), GN_OK);
    assert_true(gn_allclose(dx, dx2, 1e-5, 1e-6, false));
    assert_false(gn_array_equal(once, moments[0], false));
    // Without any numbers, and with a mean far from 0.
    expect_shape(gn_layer_norm(gn_zeros(g, GN_F32, GN_SHAPE(0, 3)), 1, NULL, NULL, 1e-5), 0, 3);
    expect_shape(gn_instance_norm(gn_zeros(g, GN_F32, GN_SHAPE(0, 3, 4)), NULL, NULL, 1e-5), 0, 3, 4);
    expect_shape(gn_batch_norm(gn_zeros(g, GN_F32, GN_SHAPE(4, 0)), NULL, NULL, NULL, NULL, true, 0.1, 1e-5), 4, 0);
    const float distant[] = {100001, 100003};
    y = gn_layer_norm(gn_array_from(g, GN_F32, GN_SHAPE(2), distant), 1, NULL, NULL, 0);
    expect_values(y, -1, 1);
    // float16 numbers whose squares are none.
    gn_array *big = gn_cast(gn_mul_s(gn_arange(g, GN_F32, 0, 4, 1), 20000), GN_F16);
    gn_array *of32 = gn_cast(gn_layer_norm(gn_cast(big, GN_F32), 1, NULL, NULL, 1e-5), GN_F16);
    assert_true(gn_array_equal(gn_layer_norm(big, 1, NULL, NULL, 1e-5), of32, false));
    const float nan_[] = {NAN, 1, 2, 3};
    y = gn_layer_norm(gn_array_from(g, GN_F32, GN_SHAPE(2, 2), nan_), 1, NULL, NULL, 0);
    expect_values(y, NAN, NAN, -1, 1);
}

static void test_refusals(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_ones(g, GN_F32, GN_SHAPE(2, 4, 3)), *three = gn_ones(g, GN_F32, GN_SHAPE(3)), *four = gn_ones(g, GN_F32, GN_SHAPE(4));
    assert_null(gn_batch_norm(gn_ones(g, GN_I32, GN_SHAPE(2, 4)), NULL, NULL, NULL, NULL, true, 0.1, 1e-5));
    expect_error(g, GN_ERROR_DTYPE, "gn_batch_norm: int32 is not a float dtype");
    assert_null(gn_batch_norm(x, NULL, NULL, three, NULL, true, 0.1, 1e-5));
    expect_error(g, GN_ERROR_SHAPE, "gn_batch_norm: w (3,) for x (2,4,3): not one number for each channel");
    assert_null(gn_batch_norm(x, NULL, NULL, NULL, NULL, false, 0.1, 1e-5));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_batch_norm: no running mean");
    assert_null(gn_batch_norm(x, four, NULL, NULL, NULL, true, 0.1, 1e-5));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_batch_norm: no running variance");
    assert_null(gn_batch_norm(x, four, four, NULL, NULL, true, 1.5, 1e-5));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_batch_norm: momentum 1.5 is not between 0 and 1");
    // One number by row and group is not too few, as in PyTorch, where there are several rows.
    gn_array *single = gn_array_from(g, GN_F32, GN_SHAPE(3, 1), (float[]){1, -2, 5}), *two = gn_full(g, GN_F32, GN_SHAPE(1), 2), *bias = gn_full(g, GN_F32, GN_SHAPE(1), 0.5);
    expect_values(gn_group_norm(single, 1, two, bias, 1e-5), 0.5, 0.5, 0.5);
    assert_null(gn_group_norm(gn_slice(single, 0, 0, 1, 1), 1, two, bias, 1e-5));
    expect_error(g, GN_ERROR_SHAPE, "gn_group_norm: x (1,1) for x (1,1): less than two numbers to be normalised");
    // What fails moves nothing.
    gn_array *half = gn_copy(gn_full(g, GN_F32, GN_SHAPE(4), 0.5)), *same = gn_broadcast_to(gn_eval(gn_ones(g, GN_F32, GN_SHAPE(1))), GN_SHAPE(4));
    for (int i = 0; i < 2; i++) {
        assert_null(gn_batch_norm(x, i ? same : half, i ? half : same, NULL, NULL, true, 0.5, 1e-5));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_batch_norm: axis 0 of this array repeats one element (gn_broadcast_to); write to a gn_copy");
        expect_values(half, 0.5, 0.5, 0.5, 0.5);
    }
    assert_null(gn_batch_norm(x, half, half, NULL, NULL, true, 0.5, 1e-5));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_batch_norm: the running mean is the running variance");
    assert_null(gn_batch_norm(gn_slice(x, 0, 0, 1, 1), half, four, three, NULL, true, 0.5, 1e-5));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    expect_values(half, 0.5, 0.5, 0.5, 0.5);
    assert_null(gn_batch_norm(gn_ones(g, GN_F32, GN_SHAPE(1, 4)), NULL, NULL, NULL, NULL, true, 0.1, 1e-5));
    expect_error(g, GN_ERROR_SHAPE, "gn_batch_norm: x (1,4) for x (1,4): less than two numbers for a channel");
    assert_null(gn_layer_norm(x, 4, NULL, NULL, 1e-5));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_layer_norm: 4 axes of rank 3");
    assert_null(gn_layer_norm(x, 1, four, NULL, 1e-5));
    expect_error(g, GN_ERROR_SHAPE, "gn_layer_norm: w (4,) for x (2,4,3): not the sizes of its last axes");
    assert_null(gn_rms_norm(x, 1, NULL, -1.0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_rms_norm: eps -1 is no number from 0 on");
    assert_null(gn_group_norm(x, 3, NULL, NULL, 1e-5));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_group_norm: 3 groups of 4 channels");
    assert_null(gn_group_norm(x, 0, NULL, NULL, 1e-5));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_instance_norm(gn_ones(g, GN_F32, GN_SHAPE(2, 4, 1)), NULL, NULL, 1e-5));
    expect_error(g, GN_ERROR_SHAPE, NULL);
}

// ---- rows of all lengths, against sums in float64

enum { SOFTMAX, LOG_SOFTMAX, LAYER_NORM, RMS_NORM, ROW_KINDS };

// One row: y, and with h = gy w the gradient dx.
static void row_in_doubles(int kind, int n, const float *x, const float *w, const float *b, const float *gy, double *y,
                           double *dx) {
    double top = -INFINITY, mean = 0.0, sum = 0.0, of_h = 0.0, of_hz = 0.0;
    for (int i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
    for (int i = 0; i < n; i++) mean += kind == LAYER_NORM ? x[i] / (double)n : 0.0;
    for (int i = 0; i < n; i++) sum += kind < LAYER_NORM ? exp(x[i] - top) : (x[i] - mean) * (x[i] - mean) / (double)n;
    const double scale = 1.0 / sqrt(sum + 1e-5);
    for (int i = 0; i < n; i++) {
        const double z = (x[i] - mean) * scale;
        y[i] = kind == SOFTMAX       ? exp(x[i] - top) / sum
               : kind == LOG_SOFTMAX ? x[i] - top - log(sum)
                                     : z * w[i] + (kind == LAYER_NORM ? b[i] : 0.0);
        of_h += kind == SOFTMAX ? gy[i] * y[i] : kind == LOG_SOFTMAX ? gy[i] : (double)gy[i] * w[i] / n;
        of_hz += gy[i] * w[i] * z / n;
    }
    for (int i = 0; i < n; i++) {
        const double z = (x[i] - mean) * scale, h = gy[i] * w[i];
        dx[i] = kind == SOFTMAX       ? y[i] * (gy[i] - of_h)
                : kind == LOG_SOFTMAX ? gy[i] - exp(y[i]) * of_h
                                      : scale * (h - (kind == LAYER_NORM ? of_h : 0.0) - z * of_hz);
    }
}

static void check_rows(gn_context *g, int kind, int rows, int n) {
    float *data = (float *)calloc((size_t)(2 * rows + 2) * (size_t)n, sizeof(float));
    double *want = (double *)calloc(2 * (size_t)rows * (size_t)n, sizeof(double));
    float *x = data, *gy = x + rows * n, *w = gy + rows * n, *b = w + n;
    for (int i = 0; i < rows * n; i++) x[i] = (float)(3.0 * sin(0.37 * i + 0.001 * n)), gy[i] = (float)cos(1.3 * i);
    for (int i = 0; i < n; i++) w[i] = (float)(1.0 + 0.5 * sin(0.9 * i)), b[i] = (float)cos(0.2 * i);
    for (int i = 0; i < rows; i++) row_in_doubles(kind, n, x + i * n, w, b, gy + i * n, want + i * n, want + (rows + i) * n);
    GN_SCOPE(g) {
        gn_array *a = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(rows, n), x), true), *dx = NULL;
        gn_array *aw = gn_array_from(g, GN_F32, GN_SHAPE(n), w), *ab = gn_array_from(g, GN_F32, GN_SHAPE(n), b);
        gn_array *y = kind == SOFTMAX       ? gn_softmax(a, -1)
                      : kind == LOG_SOFTMAX ? gn_log_softmax(a, -1)
                      : kind == LAYER_NORM  ? gn_layer_norm(a, 1, aw, ab, 1e-5)
                                            : gn_rms_norm(a, 1, aw, 1e-5);
        gn_array *loss = gn_sum(gn_mul(y, gn_array_from(g, GN_F32, GN_SHAPE(rows, n), gy)), GN_ALL);
        assert_int_equal(gn_gradients(loss, &a, 1, false, &dx), GN_OK);
        expect_doubles("y", y, GN_F32, want, rows * n, 1e-5);
        expect_doubles("dx", dx, GN_F32, want + rows * n, rows * n, n < 16 ? 1e-3 : 1e-5);
    }
    free(data);
    free(want);
}

static void test_rows(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int lengths[] = {3, 130, 4099, 1, 2, 16, 17, 64, 257, 1000, 1024, 1025, 4096, 8192, 8193, 16384, 16385};
    const int count = test_on_software(g) ? 3 : (int)(sizeof lengths / sizeof lengths[0]);
    for (int kind = 0; kind < ROW_KINDS; kind++)
        for (int i = 0; i < count; i++) check_rows(g, kind, lengths[i] < 100 ? 37 : 3, lengths[i]);
}

// Spread by 1 about a million; a first element that is far away; an infinite one.
static void test_moments(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 10007 };
    float *x = (float *)calloc(N, sizeof(float));
    for (int far_away = 0; far_away < 2; far_away++) {
        double mean = 0.0, var = 0.0;
        for (int i = 0; i < N; i++) x[i] = (float)(1e6 + sin(0.7 * i));
        if (far_away) x[0] = 0.0f;
        for (int i = 0; i < N; i++) mean += x[i] / (double)N;
        for (int i = 0; i < N; i++) var += (x[i] - mean) * (x[i] - mean) / N;
        GN_SCOPE(g) {
            gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(N), x), *twice = gn_eval(gn_stack(&a, 1, 1));
            assert_true(fabs(gn_item(gn_var(a, GN_ALL, 0)) - var) < 1e-5 * var);
            assert_true(fabs(gn_item(gn_std(twice, 0, 0)) - sqrt(var)) < 1e-5 * sqrt(var));
            assert_true(isnan(gn_item(gn_var(gn_eval(gn_mul_s(a, INFINITY)), GN_ALL, 0))));
            gn_array *large = gn_eval(gn_mul_s(gn_add_s(a, far_away ? 0.0 : -1e6), 1e30));
            assert_true(isinf(gn_item(gn_var(large, GN_ALL, 0))));
            assert_true(gn_item(gn_var(gn_eval(gn_full(g, GN_F32, GN_SHAPE(100), 0.1)), GN_ALL, 1)) == 0.0);
        }
    }
    free(x);
}

// What nothing was written to is read as 0.
static void test_unwritten(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_requires_grad(gn_empty(g, GN_F32, GN_SHAPE(2, 3, 7, 7)), true), *w = gn_empty(g, GN_F32, GN_SHAPE(4, 3, 3, 3));
    gn_array *y[4];
    y[0] = gn_rms_norm(x, 1, gn_empty(g, GN_F32, GN_SHAPE(7)), 1.0);
    y[1] = gn_batch_norm(x, NULL, NULL, NULL, NULL, true, 0.1, 1.0);
    y[2] = gn_max_pool2d(x, 2, NULL, NULL);
    y[3] = gn_conv2d(x, w, NULL, &(gn_conv_options){.stride = 2});
    for (int i = 0; i < 4; i++) {
        assert_int_equal(gn_backward(gn_sum(y[i], GN_ALL)), GN_OK);
        assert_true(gn_item(gn_max(gn_abs(y[i]), GN_ALL)) == 0.0 && isfinite(gn_item(gn_sum(gn_grad(x), GN_ALL))));
    }
}

// The gradient where the square of the spread is no float: scale (h - mean(h) - z mean(h z)).
static void test_spread(void **state) {
    gn_context *g = (gn_context *)*state;
    static const double v[] = {1, -2, .5, 3, -1, 2, .25, -3};
    enum { N = sizeof v / sizeof v[0] };
    const double size = test_on_vulkan() ? 1e15 : 1e22;
    double mean = 0.0, var = 0.0, h = 0.0, hz = 0.0;
    float x[N], c[N], got[N];
    for (int i = 0; i < N; i++) x[i] = (float)(v[i] * size), c[i] = (float)sin(i), mean += x[i] / (double)N;
    for (int i = 0; i < N; i++) var += (x[i] - mean) * (x[i] - mean) / N;
    for (int i = 0; i < N; i++) h += c[i] / (double)N, hz += c[i] * (x[i] - mean) / sqrt(var) / N;
    gn_array *a = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(1, N), x), true);
    gn_array *y = gn_layer_norm(a, 1, NULL, NULL, 1e-5);
    gn_backward(gn_sum(gn_mul(y, gn_array_from(g, GN_F32, GN_SHAPE(N), c)), GN_ALL));
    assert_int_equal(gn_read(gn_grad(a), got, sizeof got), GN_OK);
    for (int i = 0; i < N; i++) {
        const double want = (c[i] - h - (x[i] - mean) / sqrt(var) * hz) / sqrt(var);
        assert_true(fabs(got[i] - want) < 1e-5 / sqrt(var));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_values),   GN_TEST(test_differences), GN_TEST(test_long_groups), GN_TEST(test_odd),
                                       GN_TEST(test_refusals), GN_TEST(test_rows),        GN_TEST(test_moments),
                                       GN_TEST(test_spread),      GN_TEST(test_unwritten)};
    return test_run(tests);
}
