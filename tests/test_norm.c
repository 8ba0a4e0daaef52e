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
    gn_array *dx[3], *sum = NULL;
    if (gn_gradients(weighed(g, in, n, user), in, n, true, dx) != GN_OK) return NULL;
    for (int i = 0; i < n; i++) {
        gn_array *s = gn_sum(gn_sin(gn_add_s(gn_mul_s(dx[i], 0.02), 0.3 * i)), GN_ALL);
        sum = sum != NULL ? gn_add(sum, s) : s;
    }
    return sum;
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

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_values), GN_TEST(test_differences), GN_TEST(test_odd), GN_TEST(test_refusals)};
    return test_run(tests);
}
