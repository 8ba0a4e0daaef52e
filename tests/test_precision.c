// Mixed precision: which ops gn_autocast_begin makes compute in halves, losses that are scaled and steps that are left out.
#include "test.h"

static gn_array *randoms(gn_context *g, gn_shape s) { return gn_requires_grad(gn_eval(gn_normal(g, GN_F32, s, 0.0, 1.0)), true); }

static void expect_dtype(gn_array *a, gn_dtype t, int line) {
    if (a == NULL || gn_dtype_of(a) != t) fail_msg("line %d: %s, not %s", line, a != NULL ? gn_dtype_name(gn_dtype_of(a)) : "NULL", gn_dtype_name(t));
}

static void test_dtypes(void **state) {
    gn_context *g = (gn_context *)*state;
    static const gn_dtype halves[] = {GN_F16, GN_BF16};
    gn_array *x = randoms(g, GN_SHAPE(4, 6)), *w = randoms(g, GN_SHAPE(6, 3)), *b = randoms(g, GN_SHAPE(3)),
             *rows = randoms(g, GN_SHAPE(3, 6));
    gn_array *heads = randoms(g, GN_SHAPE(2, 5, 4)), *image = randoms(g, GN_SHAPE(1, 2, 6, 6)), *kernel = randoms(g, GN_SHAPE(3, 2, 3, 3));
    gn_array *labels = gn_zeros(g, GN_I32, GN_SHAPE(4)), *dx[2], *mine[2];
    for (int i = 0; i < (test_on_vulkan() ? 1 : 2); i++)
        GN_SCOPE(g) {
            const gn_dtype t = halves[i];
            gn_array *in[2] = {x, w};
            gn_autocast_begin(g, t);
            gn_array *y = gn_matmul(x, w), *z = gn_linear(x, w, b);
            expect_dtype(y, t, __LINE__);
            expect_dtype(z, t, __LINE__);
            expect_dtype(gn_attention(heads, heads, heads, NULL, NULL), t, __LINE__);
            expect_dtype(gn_conv2d(image, kernel, NULL, NULL), t, __LINE__);
            expect_dtype(gn_softmax(y, 1), GN_F32, __LINE__);
            expect_dtype(gn_log_softmax(y, 0), GN_F32, __LINE__);
            expect_dtype(gn_logsumexp(y, 1), GN_F32, __LINE__);
            expect_dtype(gn_cross_entropy(z, labels), GN_F32, __LINE__);
            expect_dtype(gn_cross_entropy_with(z, labels, NULL), GN_F32, __LINE__);
            expect_dtype(gn_mse_loss(y, gn_zeros_like(y)), GN_F32, __LINE__);
            expect_dtype(gn_l1_loss(y, gn_zeros_like(y), GN_REDUCE_MEAN), GN_F32, __LINE__);
            expect_dtype(gn_add(y, x == NULL ? y : gn_cast(y, GN_F32)), GN_F32, __LINE__);
            expect_dtype(gn_relu(y), t, __LINE__);
            expect_dtype(gn_matmul(gn_cast(x, GN_F64), w), GN_F64, __LINE__);
            expect_dtype(gn_matmul(gn_cast(x, GN_I32), gn_cast(w, GN_I32)), GN_I32, __LINE__);
            gn_autocast_begin(g, GN_F32);
            expect_dtype(gn_matmul(x, w), GN_F32, __LINE__);
            expect_dtype(gn_softmax(y, 1), t, __LINE__);
            gn_autocast_end(g);
            gn_array *loss = gn_sum(gn_sin(gn_matmul(x, w)), GN_ALL);
            assert_int_equal(gn_gradients(loss, in, 2, false, dx), GN_OK); // inside
            gn_autocast_end(g);
            expect_dtype(gn_matmul(x, w), GN_F32, __LINE__);
            // The same as by hand.
            gn_array *by_hand = gn_matmul(gn_cast(x, t), gn_cast(w, t));
            assert_true(gn_array_equal(y, by_hand, false));
            assert_int_equal(gn_gradients(gn_sum(gn_sin(by_hand), GN_ALL), in, 2, false, mine), GN_OK);
            for (int k = 0; k < 2; k++) {
                expect_dtype(dx[k], GN_F32, __LINE__);
                assert_true(gn_array_equal(dx[k], mine[k], false));
            }
            // A transposed view, whose memory keeps its order.
            in[1] = rows;
            gn_autocast_begin(g, t);
            y = gn_matmul(x, gn_transpose(rows));
            gn_autocast_end(g);
            by_hand = gn_matmul(gn_cast(x, t), gn_transpose(gn_cast(rows, t)));
            assert_true(gn_array_equal(y, by_hand, false));
            assert_int_equal(gn_gradients(gn_sum(gn_sin(y), GN_ALL), in, 2, false, dx), GN_OK);
            assert_int_equal(gn_gradients(gn_sum(gn_sin(by_hand), GN_ALL), in, 2, false, mine), GN_OK);
            for (int k = 0; k < 2; k++) assert_true(gn_array_equal(dx[k], mine[k], false));
        }
    gn_autocast_end(g);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_autocast_end: no gn_autocast_begin before it");
    gn_autocast_begin(g, GN_F64);
    expect_error(g, GN_ERROR_DTYPE, "gn_autocast_begin: float64 is not float16, bfloat16 or float32");
    gn_autocast_end(g); // goes with it all the same
    for (int i = 0; i < 32; i++) gn_autocast_begin(g, GN_BF16);
    assert_int_equal(gn_status_get(g), GN_OK);
    gn_autocast_begin(g, GN_BF16);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_autocast_begin: 32 of them are open");
    for (int i = 0; i < 33; i++) gn_autocast_end(g); // that one too
    assert_int_equal(gn_status_get(g), GN_OK);
    expect_dtype(gn_matmul(x, w), GN_F32, __LINE__);
    // What other functions are made of is as exact as before.
    gn_array *square = gn_add(gn_mul_s(gn_eye(g, GN_F32, 6, 6, 0), 3.0), gn_detach(gn_matmul(gn_transpose(x), x)));
    gn_array *exact = gn_eval(gn_matrix_power(square, 3));
    gn_autocast_begin(g, GN_BF16);
    assert_true(gn_array_equal(gn_matrix_power(square, 3), exact, false));
    gn_autocast_end(g);
}

static gn_array *two_layers(gn_context *g, gn_array *const *in, int count, void *user) {
    (void)g, (void)count, (void)user;
    return gn_tanh(gn_matmul(gn_tanh(gn_matmul(in[0], in[1])), in[2]));
}

static void test_checkpoint(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *in[3] = {randoms(g, GN_SHAPE(4, 6)), randoms(g, GN_SHAPE(6, 5)), randoms(g, GN_SHAPE(5, 3))}, *dx[2][3];
    for (int i = 0; i < 2; i++) {
        gn_autocast_begin(g, GN_BF16);
        gn_array *y = i ? gn_checkpoint(two_layers, in, 3, NULL) : two_layers(g, in, 3, NULL);
        gn_autocast_end(g);
        expect_dtype(y, GN_BF16, __LINE__);
        assert_int_equal(gn_gradients(gn_sum(gn_cast(y, GN_F32), GN_ALL), in, 3, false, dx[i]), GN_OK);
    }
    for (int k = 0; k < 3; k++) assert_true(gn_array_equal(dx[0][k], dx[1][k], false));
}

static gn_array *scale_of(gn_context *g, float first) {
    float v[2];
    v[0] = first;
    v[1] = 0.0f;
    return gn_copy(gn_array_from(g, GN_F32, GN_SHAPE(2), v));
}

static void expect_scale(gn_array *scale, double first, double steps) {
    float v[2];
    assert_int_equal(gn_read(scale, v, sizeof v), GN_OK);
    if (v[0] != first || v[1] != steps) fail_msg("the scale is %g, %g, not %g, %g", (double)v[0], (double)v[1], first, steps);
}

// One scale for two optimizers, the first of which leaves it alone; a scale never grows to infinity.
static void test_shared_scale(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int bad = test_on_vulkan() ? 1 : 0; bad < 3; bad++) // devices may flush what such a scale's inverse is
        GN_SCOPE(g) {
            gn_array *w[2], *scale = scale_of(g, bad == 0 ? 2e38f : 4.0f), *loss[2];
            gn_optimizer *opt[2];
            const gn_sgd_options one = {1, 0, 0, 0, false};
            for (int i = 0; i < 2; i++) {
                w[i] = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(1)), true);
                opt[i] = gn_sgd(&w[i], 1, &one);
                loss[i] = gn_sum(gn_mul_s(w[i], bad == i + 1 ? (double)INFINITY : bad == 0 ? 0x1p-20 : 1.0), GN_ALL);
            }
            assert_int_equal(gn_backward(gn_scale_loss(gn_add(loss[0], loss[1]), scale)), GN_OK);
            assert_int_equal(gn_step_scaled(opt[0], scale, GN_NONE, 0.0), GN_OK);
            assert_int_equal(gn_step_scaled(opt[1], scale, 1, 0.0), GN_OK);
            for (int i = 0; i < 2; i++) {
                const double want = bad == i + 1 ? 0.0 : bad == 0 ? -0x1p-20 : -1.0;
                if (!(fabs(gn_item(w[i]) - want) <= 1e-5 * fabs(want))) fail_msg("%d: parameter %d is %g", bad, i, gn_item(w[i]));
            }
            expect_scale(scale, bad == 0 ? (double)2e38f : 2.0, 0.0);
            for (int i = 0; i < 2; i++) gn_optimizer_free(opt[i]);
        }
}

static void test_scaled_steps(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int kind = 0; kind < (test_on_vulkan() ? 1 : 3); kind++)
        GN_SCOPE(g) {
            const double max_norm = kind == 2 ? 0.5 : 0.0;
            gn_array *w[2], *target = gn_eval(gn_normal(g, GN_F32, GN_SHAPE(3, 4), 0.0, 1.0));
            gn_optimizer *opt[2];
            w[0] = randoms(g, GN_SHAPE(3, 4));
            w[1] = gn_requires_grad(gn_copy(gn_detach(w[0])), true);
            for (int i = 0; i < 2; i++) opt[i] = kind == 1 ? gn_sgd(&w[i], 1, NULL) : gn_adamw(&w[i], 1, NULL);
            gn_array *scale = scale_of(g, 1024.0f);
            for (int step = 0; step < 5; step++) { // a power of two takes nothing away
                for (int i = 0; i < 2; i++) {
                    gn_array *loss = gn_sum(gn_square(gn_sub(w[i], target)), GN_ALL);
                    gn_zero_grads(opt[i]);
                    assert_int_equal(gn_backward(i ? gn_scale_loss(loss, scale) : loss), GN_OK);
                    if (i == 0 && max_norm > 0.0) gn_clip_grad_norm(&w[0], 1, max_norm);
                    assert_int_equal(i ? gn_step_scaled(opt[1], scale, 3, max_norm) : gn_step(opt[0]), GN_OK);
                }
                assert_true(kind == 2 ? gn_allclose(w[0], w[1], 1e-5, 1e-6, false) : gn_array_equal(w[0], w[1], false));
            }
            expect_scale(scale, 2048.0, 2.0);
            // Overflow: nothing moves, the scale is halved, and the next step is one again.
            gn_array *before = gn_copy(gn_detach(w[1]));
            gn_zero_grads(opt[1]);
            assert_int_equal(gn_backward(gn_mul_s(gn_scale_loss(gn_sum(w[1], GN_ALL), scale), 3e38)), GN_OK);
            assert_int_equal(gn_step_scaled(opt[1], scale, 3, max_norm), GN_OK);
            assert_true(gn_array_equal(w[1], before, false));
            expect_scale(scale, 1024.0, 0.0);
            gn_zero_grads(opt[1]);
            assert_int_equal(gn_step_scaled(opt[1], scale, 3, max_norm), GN_OK); // no gradients
            expect_scale(scale, 1024.0, 0.0);
            assert_int_equal(gn_backward(gn_scale_loss(gn_sum(w[1], GN_ALL), scale)), GN_OK);
            assert_int_equal(gn_step_scaled(opt[1], scale, 3, max_norm), GN_OK);
            assert_true(gn_item(gn_all(gn_isfinite(w[1]), GN_ALL)) == 1.0 && !gn_array_equal(w[1], before, false));
            expect_scale(scale, 1024.0, 1.0);
            gn_optimizer_free(opt[0]);
            gn_optimizer_free(opt[1]);
        }
}

static void test_refusals(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *w = randoms(g, GN_SHAPE(2)), *scale = scale_of(g, 8.0f);
    gn_optimizer *opt = gn_sgd(&w, 1, NULL);
    assert_null(gn_scale_loss(gn_sum(w, GN_ALL), w));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_scale_loss: the scale is not an array of two float32 numbers that no op made");
    assert_null(gn_scale_loss(gn_ones(g, GN_I32, GN_SHAPE()), scale));
    expect_error(g, GN_ERROR_DTYPE, "gn_scale_loss: int32 is not a float dtype");
    assert_int_equal(gn_step_scaled(opt, gn_ones(g, GN_F32, GN_SHAPE(3)), 0, 0.0), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_step_scaled: the scale is not an array of two float32 numbers that no op made");
    assert_int_equal(gn_step_scaled(opt, scale, -1, 0.0), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_step_scaled: interval -1, max_norm 0");
    assert_int_equal(gn_step_scaled(NULL, scale, 0, 0.0), GN_ERROR_ARGUMENT);
    assert_int_not_equal(gn_step_scaled(opt, NULL, 0, 0.0), GN_OK);
    gn_error_clear(g);
    gn_optimizer_free(opt);
}

// A curve in float16, from a scale that overflows at first, beside that of float32.
static void test_training(void **state) {
    gn_context *g = (gn_context *)*state;
    double last[2];
    gn_array *x = gn_eval(gn_normal(g, GN_F32, GN_SHAPE(64, 8), 0.0, 1.0)), *target = gn_eval(gn_tanh(gn_slice(x, 1, 0, 2, 1)));
    gn_array *first[2] = {gn_he_normal(g, GN_F32, GN_SHAPE(8, 32)), gn_he_normal(g, GN_F32, GN_SHAPE(32, 2))};
    for (int half = 0; half < 2; half++) {
        gn_array *w[2], *scale = scale_of(g, 16777216.0f);
        for (int i = 0; i < 2; i++) w[i] = gn_requires_grad(gn_copy(gn_detach(first[i])), true);
        gn_adam_options o = {0.01, 0.0, 0.0, 0.0, 0.0};
        gn_optimizer *opt = gn_adam(w, 2, &o);
        for (int step = 0; step < 200; step++)
            GN_SCOPE(g) {
                if (half) gn_autocast_begin(g, GN_F16);
                gn_array *loss = gn_mse_loss(gn_matmul(gn_relu(gn_matmul(x, w[0])), w[1]), target);
                if (half) gn_autocast_end(g);
                gn_zero_grads(opt);
                assert_int_equal(gn_backward(half ? gn_scale_loss(loss, scale) : loss), GN_OK);
                assert_int_equal(half ? gn_step_scaled(opt, scale, 0, 0.0) : gn_step(opt), GN_OK);
                last[half] = gn_item(loss);
            }
        float v[2];
        gn_read(scale, v, sizeof v);
        if (half) assert_true(v[0] < 16777216.0f && v[0] >= 1.0f && v[1] > 20.0f);
        gn_optimizer_free(opt);
    }
    if (!(fabs(last[0] - last[1]) < 0.15 * last[0] + 2e-3)) fail_msg("%g in float32, %g in float16", last[0], last[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_dtypes),       GN_TEST(test_checkpoint), GN_TEST(test_scaled_steps),
                                       GN_TEST(test_shared_scale), GN_TEST(test_refusals),   GN_TEST(test_training)};
    return test_run(tests);
}
