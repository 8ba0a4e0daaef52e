// Layers, losses, initialisation and optimizers: against PyTorch's numbers (torch_values.h), against
// plain C, and on a small problem from start to end.
#include "test.h"
#include "test_values.h"
#include "torch_values.h"

static gn_context *open_context(void) {
    gn_options options = test_options();
    options.seed = 7;
    return test_share(&options);
}

// The same numbers as series() in torch_values.py.
static void fill_series(double *out, int n, double scale, double shift) {
    for (int i = 0; i < n; i++) out[i] = ((i * 7919 + 104729) % 1000) / 1000.0 * scale + shift;
}

static gn_array *series(gn_context *g, gn_dtype t, gn_shape s, double scale, double shift) {
    double values[64];
    int n = 1;
    for (int i = 0; i < s.rank; i++) n *= (int)s.dim[i];
    fill_series(values, n, scale, shift);
    return gn_copy(gn_cast(gn_array_from(g, GN_F64, s, values), t));
}

// ---- optimizers ------------------------------------------------------------------------------

static void follow(gn_context *g, gn_array *p, gn_optimizer *opt, const double *want,
                   double tolerance) {
    gn_dtype t = gn_dtype_of(p);
    const gn_shape s = gn_shape_of(p);
    const int n = (int)gn_size(p);
    assert_non_null(opt);
    // Halves are rounded at each step, which adds up.
    for (int step = 1, row = 0; step <= (gn_dtype_size(t) == 2 ? 5 : 20); step++)
        GN_SCOPE(g) {
            gn_array *c = series(g, t, s, 1.5, 0.2), *target = series(g, t, s, -1.0, 0.5);
            gn_zero_grads(opt);
            gn_array *fourth = gn_square(gn_square(gn_sub(p, target)));
            gn_backward(gn_sum(gn_add(gn_mul(c, fourth), p), GN_ALL));
            assert_int_equal(gn_step(opt), GN_OK);
            if (step == 1 || step == 2 || step == 5 || step == 10 || step == 20) expect_values(p, want + n * row++, n, tolerance);
        }
    gn_optimizer_free(opt);
}

static void check_optimizers(gn_dtype t, double tolerance) {
    gn_options options = test_options();
    options.seed = 7;
    // All kinds in all dtypes: interpreted, for compiling them takes long. float32 has the compiled ones.
    if (test_on_vulkan() && t != GN_F32) options.vulkan_flags |= GN_VULKAN_NO_SPECIALIZATION;
    gn_context *g = test_share(&options);
    gn_sgd_options plain = {0.05, 0, 0, 0, false}, momentum = {0.05, 0.9, 0.1, 0.02, false};
    gn_sgd_options nesterov = {0.05, 0.8, 0, 0, true};
    gn_adam_options decay = {0.1, 0.8, 0.95, 1e-4, 0.1}, fast = {0.1, 0, 0, 0, 0};
    gn_rmsprop_options more = {0.02, 0.9, 1e-3, 0.1, 0.5, true}, centered = {0, 0, 0, 0, 0, true};
    gn_adagrad_options adagrad = {0.2, 0.1, 0.1, 0.3, 1e-3};
    gn_lion_options lion = {0.02, 0, 0, 0.1}, lion_more = {0.03, 0.7, 0.8, 0};
    gn_muon_options muon = {0.05, 0, 0, false}, muon_plain = {0.02, 0.8, 0.3, true};
    gn_sgd_options sgd_all = {0.05, 0.9, 0, 0.05, true};
    gn_adam_options adamw_more = {0.05, 0.7, 0.9, 1e-3, 0.2};
    gn_rmsprop_options heavy = {0, 0, 0, 0, 0.9, false};
    for (int kind = 0; kind < 19; kind++)
        GN_SCOPE(g) {
            const gn_shape s = kind == 12 ? GN_SHAPE(2, 3) : kind == 13 || kind == 18 ? GN_SHAPE(3, 2) : GN_SHAPE(5);
            gn_array *p = gn_requires_grad(series(g, t, s, 2.0, -1.0), true);
            if (kind == 6) follow(g, p, gn_rmsprop(&p, 1, NULL), torch_rmsprop, tolerance);
            if (kind == 7) follow(g, p, gn_rmsprop(&p, 1, &more), torch_rmsprop_more, tolerance);
            if (kind == 8) follow(g, p, gn_rmsprop(&p, 1, &centered), torch_rmsprop_centered, tolerance);
            if (kind == 9) follow(g, p, gn_adagrad(&p, 1, NULL), torch_adagrad, tolerance);
            if (kind == 10) follow(g, p, gn_adagrad(&p, 1, &adagrad), torch_adagrad_more, tolerance);
            if (kind == 11) follow(g, p, gn_lion(&p, 1, &lion), torch_lion, tolerance);
            if (kind == 12) follow(g, p, gn_muon(&p, 1, &muon), torch_muon_wide, tolerance);
            if (kind == 13) follow(g, p, gn_muon(&p, 1, &muon), torch_muon_tall, tolerance);
            if (kind == 14) follow(g, p, gn_sgd(&p, 1, &sgd_all), torch_sgd_all, tolerance);
            if (kind == 15) follow(g, p, gn_adamw(&p, 1, &adamw_more), torch_adamw_more, tolerance);
            if (kind == 16) follow(g, p, gn_rmsprop(&p, 1, &heavy), torch_rmsprop_momentum, tolerance);
            if (kind == 17) follow(g, p, gn_lion(&p, 1, &lion_more), torch_lion_more, tolerance);
            if (kind == 18) follow(g, p, gn_muon(&p, 1, &muon_plain), torch_muon_plain, tolerance);
            if (kind == 0) follow(g, p, gn_sgd(&p, 1, &plain), torch_sgd, tolerance);
            if (kind == 1) follow(g, p, gn_sgd(&p, 1, &momentum), torch_sgd_momentum, tolerance);
            if (kind == 2) follow(g, p, gn_sgd(&p, 1, &nesterov), torch_sgd_nesterov, tolerance);
            if (kind == 3) follow(g, p, gn_adam(&p, 1, NULL), torch_adam, tolerance);
            if (kind == 4) follow(g, p, gn_adam(&p, 1, &decay), torch_adam_decay, tolerance);
            if (kind == 5) follow(g, p, gn_adamw(&p, 1, &fast), torch_adamw, tolerance);
        }
    close_context(g);
}

static void test_optimizers_float64(void **state) {
    (void)state;
    check_optimizers(GN_F64, 1e-12);
}

static void test_optimizers_float32(void **state) {
    (void)state;
    check_optimizers(GN_F32, 1e-5);
}

// float16 parameters keep float32 state: with state in float16, 0.001 g^2 would vanish.
static void test_optimizers_half(void **state) {
    (void)state;
    check_optimizers(GN_F16, 1e-2);
    gn_context *g = open_context();
    gn_adam_options options = {0.01, 0, 0, 0, 0};
    GN_SCOPE(g) {
        gn_array *p = gn_requires_grad(gn_full(g, GN_F16, GN_SHAPE(3), 1.0), true);
        gn_optimizer *opt = gn_adam(&p, 1, &options);
        for (int step = 0; step < 10; step++)
            GN_SCOPE(g) {
                gn_zero_grads(opt);
                gn_backward(gn_sum(gn_mul_s(p, 1e-3), GN_ALL));
                gn_step(opt);
            }
        const double want[] = {0.9, 0.9, 0.9};
        expect_values(p, want, 3, 5e-3); // ten roundings to float16
        gn_optimizer_free(opt);
    }
    close_context(g);
}

static void test_learning_rate(void **state) {
    (void)state;
    gn_context *g = test_open(); // none that is shared
    GN_SCOPE(g) {
        gn_array *p = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2)), true);
        gn_array *idle = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2)), true), *both[2];
        both[0] = p, both[1] = idle;
        gn_optimizer *opt = gn_sgd(both, 2, NULL);
        assert_true(gn_lr_get(opt) == 0.01);
        gn_lr_set(opt, 0.5);
        gn_backward(gn_sum(p, GN_ALL));
        assert_int_equal(gn_step(opt), GN_OK);
        const double half[] = {0.5, 0.5}, one[] = {1, 1};
        expect_values(p, half, 2, 0.0);
        expect_values(idle, one, 2, 0.0); // had no gradient
        gn_lr_set(opt, 0.0);
        gn_step(opt);
        expect_values(p, half, 2, 0.0);
        gn_zero_grads(opt);
        assert_null(gn_grad(p));
        gn_lr_set(opt, -1.0);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_lr_set: -1");
        assert_true(isnan(gn_lr_get(NULL)));
        gn_optimizer_free(NULL);
    } // the optimizer is freed by gn_close
    test_close(g);
}

static void test_optimizer_arguments(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *p = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2, 3)), true), *twice[2];
        twice[0] = twice[1] = p;
        gn_array *made = gn_exp(p), *whole = gn_ones(g, GN_I32, GN_SHAPE(2));
        assert_null(gn_sgd(&made, 1, NULL));
        expect_error(g, GN_ERROR_ARGUMENT,
                     "gn_sgd: parameter 1 cannot be optimized: an op made it");
        assert_null(gn_adam(&whole, 1, NULL));
        expect_error(g, GN_ERROR_ARGUMENT, "floating point");
        assert_null(gn_adamw(twice, 2, NULL));
        expect_error(g, GN_ERROR_ARGUMENT, "given twice");
        gn_array *view = gn_slice(gn_transpose(gn_detach(p)), 0, 1, 3, 1);
        assert_null(gn_adam(&view, 1, NULL));
        expect_error(g, GN_ERROR_ARGUMENT, "C order");
        // All of an array's memory in another order is as good.
        gn_array *turned = gn_requires_grad(gn_detach(gn_transpose(gn_copy(p))), true), *scale = gn_reshape(gn_arange(g, GN_F32, 0, 6, 1), GN_SHAPE(3, 2));
        gn_optimizer *opt = gn_sgd(&turned, 1, &(gn_sgd_options){0.5, 0, 0, 0, false});
        gn_backward(gn_sum(gn_mul(turned, scale), GN_ALL));
        gn_step(opt);
        expect_values(turned, (const double[]){1, 0.5, 0, -0.5, -1, -1.5}, 6, 0);
        gn_optimizer_free(opt);
        gn_sgd_options bad = {0.1, 0, 0, 0, true};
        assert_null(gn_sgd(&p, 1, &bad));
        expect_error(g, GN_ERROR_ARGUMENT, "nesterov");
        gn_adam_options negative = {-1, 0, 0, 0, 0}, high = {0, 1.0, 0, 0, 0};
        assert_null(gn_adam(&p, 1, &negative));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_adam: -1");
        assert_null(gn_adam(&p, 1, &high));
        expect_error(g, GN_ERROR_ARGUMENT, "beta1");
        // Every setting of every optimizer: negative, not a number, and shares of 1.
        const double wrong[] = {-1e-3, (double)NAN, 1.0};
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < 5; i++) {
                double s[5] = {0, 0, 0, 0, 0};
                s[i] = wrong[k];
                const bool share = k == 2;
                gn_sgd_options sgd = {s[0], s[1], s[2], s[3], false};
                gn_adam_options adam = {s[0], s[1], s[2], s[3], s[4]};
                gn_rmsprop_options rms = {s[0], s[1], s[2], s[3], s[4], false};
                gn_adagrad_options ada = {s[0], s[1], s[2], s[3], s[4]};
                gn_lion_options lion = {s[0], s[1], s[2], s[3]};
                gn_muon_options muon = {s[0], s[1], s[2], false};
                gn_optimizer *opts[7] = {gn_sgd(&p, 1, &sgd),      gn_adam(&p, 1, &adam),   gn_adamw(&p, 1, &adam), gn_rmsprop(&p, 1, &rms),
                                         gn_adagrad(&p, 1, &ada), gn_lion(&p, 1, &lion), gn_muon(&p, 1, &muon)};
                const int settings[7] = {4, 5, 5, 5, 5, 4, 3};
                for (int o = 0; o < 7; o++) {
                    const bool beta = (o == 1 || o == 2 || o == 5) && (i == 1 || i == 2), alpha = o == 3 && i == 1;
                    const bool refused = i < settings[o] && (!share || beta || alpha);
                    if ((opts[o] == NULL) != refused) fail_msg("optimizer %d, setting %d of %g", o, i, wrong[k]);
                    gn_optimizer_free(opts[o]);
                }
                if (gn_status_get(g) != GN_OK) expect_error(g, GN_ERROR_ARGUMENT, share ? "must be below 1" : "is not a setting, all are 0 or more");
            }
        gn_rmsprop_options all = {0, 1.0, 0, 0, 0, false};
        assert_null(gn_rmsprop(&p, 1, &all));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_rmsprop: alpha 1 must be below 1");
        gn_lion_options ahead = {0, 0.9, 1.5, 0};
        assert_null(gn_lion(&p, 1, &ahead));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_lion: beta1 0.9 and beta2 1.5 must be below 1");
    }
    assert_int_not_equal(gn_step(NULL), GN_OK);
    close_context(g);
}

// ---- the caller's own ops

static gn_array *own_forward(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g, (void)n;
    return user == NULL ? gn_mul(gn_exp(in[0]), in[1]) : NULL;
}

static void own_backward(gn_context *g, gn_array *const *in, int n, gn_array *out, gn_array *gy, gn_array **gx, void *user) {
    (void)g, (void)n, (void)user;
    gx[0] = gn_mul(gy, out);
    gx[1] = gn_mul(gy, gn_exp(in[0]));
}

static void no_backward(gn_context *g, gn_array *const *in, int n, gn_array *out, gn_array *gy, gn_array **gx, void *user) {
    (void)g, (void)in, (void)n, (void)out, (void)gy, (void)gx, (void)user;
}

// What a scope of theirs frees.
static gn_array *lost_forward(gn_context *g, gn_array *const *in, int n, void *user) {
    gn_array *y = NULL;
    (void)n, (void)user;
    GN_SCOPE(g) y = gn_eval(gn_exp(in[0]));
    return y;
}

static void lost_backward(gn_context *g, gn_array *const *in, int n, gn_array *out, gn_array *gy, gn_array **gx, void *user) {
    own_backward(g, in, n, out, gy, gx, user);
    GN_SCOPE(g) gx[1] = gn_eval(gn_neg(gy));
}

static gn_array *own(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g;
    return gn_sum(gn_square(gn_custom(own_forward, own_backward, in, n, user)), GN_ALL);
}

static gn_array *own_twice(gn_context *g, gn_array *const *in, int n, void *user) {
    gn_array *dx[2];
    if (gn_gradients(own(g, in, n, user), in, n, true, dx) != GN_OK) return NULL;
    return gn_sum(gn_mul(gn_sin(dx[0]), dx[1]), GN_ALL);
}

static gn_array *block(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g, (void)n, (void)user;
    return gn_dropout(gn_tanh(gn_matmul(in[0], in[1])), 0.5, true);
}

static gn_array *constant(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g, (void)n, (void)user;
    return gn_detach(in[0]);
}

static gn_array *where_most(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g, (void)n, (void)user;
    return gn_argmax(in[0], 1);
}

static gn_array *rows_of(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g, (void)n, (void)user;
    return gn_take(in[0], in[1], 0);
}

static void back_rows(gn_context *g, gn_array *const *in, int n, gn_array *out, gn_array *gy, gn_array **gx, void *user) {
    (void)n, (void)out, (void)user;
    gx[0] = gn_scatter_add(gn_zeros(g, gn_dtype_of(in[0]), gn_shape_of(in[0])), gn_broadcast_to(gn_expand_dims(in[1], 1), gn_shape_of(gy)), gy, 0);
}

// Results that have no gradient, integers as inputs, and inputs that are not there.
static void test_own_integers(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        const int32_t rows[] = {2, 0, 2};
        gn_array *x[2], *dx = NULL, *want = NULL;
        x[0] = gn_requires_grad(series(g, GN_F64, GN_SHAPE(3, 3), 1.0, 0.1), true);
        x[1] = gn_array_from(g, GN_I32, GN_SHAPE(3), rows);
        gn_array *most = gn_custom(where_most, no_backward, x, 2, NULL);
        assert_true(gn_array_equal(most, gn_argmax(x[0], 1), false) && !gn_needs_grad(most));
        gn_array *y = gn_sum(gn_square(gn_custom(rows_of, back_rows, x, 2, NULL)), GN_ALL);
        assert_int_equal(gn_gradients(y, x, 1, false, &dx), GN_OK);
        assert_int_equal(gn_gradients(gn_sum(gn_square(gn_take(x[0], x[1], 0)), GN_ALL), x, 1, false, &want), GN_OK);
        assert_true(gn_array_equal(dx, want, false));
        x[1] = NULL;
        assert_null(gn_custom(rows_of, back_rows, x, 2, NULL));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_custom: array argument 2 is NULL");
        assert_null(gn_checkpoint(rows_of, x, 2, NULL));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_checkpoint: array argument 2 is NULL");
        assert_null(gn_custom(rows_of, back_rows, NULL, 2, NULL));
        assert_null(gn_custom(rows_of, back_rows, x, 0, NULL));
        assert_int_equal(gn_status_get(g), GN_OK);
        assert_null(gn_custom(NULL, back_rows, x, 1, NULL));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_custom: the function is NULL");
    }
    close_context(g);
}

static void test_own_ops(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *x[2], *dx[2], *want[2], *y;
        int given = 1;
        for (int i = 0; i < 2; i++) x[i] = gn_requires_grad(series(g, GN_F64, GN_SHAPE(3, 3), 1.0, 0.1 * i), true);
        assert_true(gn_gradcheck(own, x, 2, 0.0, NULL) < 1e-8);
        assert_true(gn_gradcheck(own_twice, x, 2, 0.0, NULL) < 1e-7);
        assert_null(gn_custom(own_forward, own_backward, x, 2, &given));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_custom: the function gave no array of this context");
        assert_int_equal(gn_backward(gn_sum(gn_custom(own_forward, NULL, x, 2, NULL), GN_ALL)), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "gn_backward: gn_custom has no derivative");
        assert_int_equal(gn_backward(gn_sum(gn_custom(own_forward, no_backward, x, 2, NULL), GN_ALL)), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "gn_backward: gn_custom has no derivative with respect to operand 1");
        assert_null(gn_custom(lost_forward, own_backward, x, 2, NULL));
        expect_error(g, GN_ERROR_STALE, "gn_custom: array argument 1 was released; gn_keep keeps one beyond its scope");
        assert_int_equal(gn_backward(gn_sum(gn_custom(own_forward, lost_backward, x, 2, NULL), GN_ALL)), GN_ERROR_STALE);
        expect_error(g, GN_ERROR_STALE,
                     "gn_backward: gn_custom's gradient of operand 2 was released, or is no array of this context");
        // The same numbers as without, twice in a row, and the same numbers behind it.
        gn_array *sum[2], *behind[2];
        for (int kept = 0; kept < 2; kept++) {
            gn_seed(g, 5);
            gn_array *h = kept ? block(g, x, 2, NULL) : gn_checkpoint(block, x, 2, NULL), *pair[2];
            pair[0] = gn_square(h), pair[1] = x[1];
            y = kept ? block(g, pair, 2, NULL) : gn_checkpoint(block, pair, 2, NULL);
            sum[kept] = gn_eval(gn_sum(gn_square(y), GN_ALL));
            assert_int_equal(gn_gradients(sum[kept], x, 2, false, kept ? want : dx), GN_OK);
            behind[kept] = gn_eval(gn_rand(g, GN_F32, GN_SHAPE(3)));
        }
        assert_true(gn_item(sum[0]) == gn_item(sum[1]) && gn_array_equal(behind[0], behind[1], false));
        for (int i = 0; i < 2; i++) assert_true(gn_array_equal(dx[i], want[i], false));
        assert_true(gn_item(gn_max(gn_abs(dx[0]), GN_ALL)) > 0.0);
        y = gn_sum(gn_checkpoint(constant, x, 2, NULL), GN_ALL); // depends on nothing
        assert_int_equal(gn_gradients(y, x, 1, false, dx), GN_OK);
        assert_true(gn_item(gn_sum(gn_abs(dx[0]), GN_ALL)) == 0.0);
        assert_int_equal(gn_gradients(gn_sum(gn_checkpoint(block, x, 2, NULL), GN_ALL), x, 2, true, dx), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "gn_gradients: gn_checkpoint: its gradient has no graph (create_graph)");
    }
    close_context(g);
}

// A derivative that is one of gpunum's own passes, over what the pass around it has on its way too.
static gn_array *times_weight(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g, (void)n;
    return gn_mul(gn_exp(in[0]), *(gn_array **)user);
}

static void back_by_pass(gn_context *g, gn_array *const *in, int n, gn_array *out, gn_array *gy, gn_array **gx, void *user) {
    gn_array *w = *(gn_array **)user, *x[2], *dx[2];
    (void)out;
    x[0] = gn_requires_grad(gn_detach(in[0]), true);
    x[1] = w;
    gn_no_grad_end(g);
    gn_array *loss = gn_sum(gn_mul(times_weight(g, x, n, user), gy), GN_ALL);
    gn_no_grad_begin(g);
    if (gn_gradients(loss, x, 2, false, dx) != GN_OK) return;
    assert_true(gn_allclose(dx[1], gn_mul(gn_exp(in[0]), gy), 1e-12, 0, false));
    gx[0] = dx[0];
}

static void test_passes_within(void **state) {
    (void)state;
    gn_context *g = open_context();
    for (int own_pass = 0; own_pass < 2; own_pass++)
        for (int direct = 0; direct < 2; direct++) GN_SCOPE(g) {
            gn_array *x[2], *dx[2];
            for (int i = 0; i < 2; i++) x[i] = gn_requires_grad(series(g, GN_F64, GN_SHAPE(3, 3), 1.0, 0.1 + i), true);
            gn_array *want = gn_mul(gn_exp(x[0]), x[1]), *rest = gn_full(g, GN_F64, GN_SHAPE(3, 3), direct ? 2 : 0);
            for (int all = 0; all < 2; all++) {
                gn_array *y = own_pass ? gn_custom(times_weight, back_by_pass, x, 1, &x[1]) : gn_checkpoint(times_weight, x, 1, &x[1]);
                gn_array *loss = gn_sum(direct ? gn_add(y, gn_mul_s(x[1], 2)) : y, GN_ALL);
                // x[1] is not among the inputs: what is in the function is not told of it.
                if (all) {
                    assert_int_equal(gn_gradients(loss, x, 2, false, dx), GN_OK);
                } else {
                    assert_int_equal(gn_backward(loss), GN_OK);
                    for (int i = 0; i < 2; i++) dx[i] = gn_grad(x[i]);
                }
                assert_true(gn_allclose(dx[0], want, 1e-12, 0, false));
                assert_true(all || direct ? gn_array_equal(dx[1], rest, false) : dx[1] == NULL);
            }
        }
    close_context(g);
}

static void test_schedules(void **state) {
    const int64_t milestones[] = {3, 8, 8, 30};
    gn_plateau low = {0.5, 0.5, 0, 0.03, 2, 3, false, false, 0, 0, 0}, high = {0.5, 0, 0.05, 0, 1, 0, true, false, 0, 0, 0};
    const double *const want[] = {torch_lr_step,   torch_lr_multi,     torch_lr_exponential, torch_lr_cosine,  torch_lr_restarts, torch_lr_restarts_same,
                                  torch_lr_linear, torch_lr_one_cycle, torch_lr_plateau,     torch_lr_plateau_max};
    double metric[40];
    (void)state;
    fill_series(metric, 40, 1.0, 0.0);
    for (int i = 0; i < 40; i++) {
        const double got[] = {gn_lr_step(i, 0.5, 7, 0.3),
                              gn_lr_multi_step(i, 0.5, milestones, 4, 0.5),
                              gn_lr_exponential(i, 0.5, 0.9),
                              gn_lr_cosine(i, 0.5, 30, 0.01),
                              gn_lr_cosine_restarts(i, 0.5, 5, 2, 0.02),
                              gn_lr_cosine_restarts(i, 0.5, 6, 1, 0.0),
                              gn_lr_linear(i, 0.5, 0.1, 0.8, 11),
                              gn_lr_one_cycle(i, 0.7, 40),
                              gn_lr_plateau(&low, metric[i]),
                              gn_lr_plateau(&high, metric[i])};
        for (int k = 0; k < 10; k++)
            if (!(fabs(got[k] - want[k][i]) <= 1e-13)) fail_msg("schedule %d, step %d: %.17g, not %.17g", k, i, got[k], want[k][i]);
    }
    assert_true(isnan(gn_lr_step(1, 1, 0, 1)) && isnan(gn_lr_cosine(1, 1, 0, 0)) && isnan(gn_lr_cosine_restarts(1, 1, 5, 0, 0)));
    assert_true(isnan(gn_lr_linear(1, 1, 1, 1, 0)) && isnan(gn_lr_one_cycle(1, 1, 0)) && isnan(gn_lr_plateau(NULL, 1)));
    assert_true(isnan(gn_lr_cosine_restarts(-1, 1, 5, 1, 0)) && gn_lr_cosine_restarts(INT64_MAX, 1, INT64_MAX / 2, 3, 0) < 1);
    assert_true(gn_lr_one_cycle(99, 0.7, 40) == gn_lr_one_cycle(39, 0.7, 40));
    const int64_t third = 3; // steps begin at 0
    assert_true(isnan(gn_lr_step(-1, 1, 2, 0.5)) && isnan(gn_lr_multi_step(-1, 1, &third, 1, 0.5)) && isnan(gn_lr_exponential(-1, 1, 0.9)));
    assert_true(isnan(gn_lr_cosine(-1, 1, 5, 0)) && isnan(gn_lr_linear(-1, 1, 0.1, 1, 5)) && isnan(gn_lr_one_cycle(-1, 1, 50)));
}

// A group moves at a rate of its own, and decays on its own; gradients of parts of a batch add up.
static void test_groups(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *p = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2)), true), *q = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2)), true);
        gn_sgd_options options = {0.5, 0, 0, 0, false};
        gn_optimizer *opt = gn_sgd(&p, 1, &options);
        assert_int_equal(gn_optimizer_add_group(opt, &q, 1, 0.5, 1.0), GN_OK);
        for (int part = 0; part < 2; part++) gn_backward(gn_div_s(gn_add(gn_sum(p, GN_ALL), gn_sum(q, GN_ALL)), 2.0));
        assert_int_equal(gn_step(opt), GN_OK);
        const double half[] = {0.5, 0.5};
        expect_values(p, half, 2, 0.0); // 1 - .5
        expect_values(q, half, 2, 0.0); // 1 - .25 (1 + 1)
        assert_int_equal(gn_optimizer_add_group(opt, &p, 1, 1.0, 0.0), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_optimizer_add_group: parameter 1 cannot be optimized: it is given twice");
        gn_array *r = gn_ones(g, GN_F32, GN_SHAPE(2));
        assert_int_equal(gn_optimizer_add_group(opt, &r, 1, -1.0, 0.0), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_optimizer_add_group: -1");
        assert_int_equal(gn_optimizer_add_group(NULL, &r, 1, 1.0, 0.0), GN_ERROR_ARGUMENT);
        assert_null(gn_muon(&r, 1, NULL));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_muon: parameter 1 cannot be optimized: it is not a matrix");
        gn_optimizer_free(opt);
    }
    close_context(g);
}

// Two parameters of one optimizer go the ways that PyTorch has for their settings.
static void test_group_settings(void **state) {
    (void)state;
    gn_options options = test_options();
    if (test_on_vulkan()) options.vulkan_flags |= GN_VULKAN_NO_SPECIALIZATION; // compiling all kinds takes long
    gn_context *g = test_share(&options);
    const gn_sgd_options sgd = {0.05, 0, 0, 0, false}, nesterov = {0.05, 0.8, 0, 0, true};
    const gn_adam_options adamw = {0.1, 0, 0, 0, 0};
    const gn_rmsprop_options centered = {0, 0, 0, 0, 0, true};
    const gn_lion_options lion = {0.02, 0, 0, 0.1};
    const gn_muon_options muon = {0.05, 0, 0, false};
    // lr_factor, weight_decay, momentum, dampening, beta1, beta2, alpha, eps, lr_decay, initial, nesterov, centered
    static const gn_group_options groups[] = {{0, 0.02, 0.9, 0.1, 0, 0, 0, 0, 0, 0, 0, 0},
                                              {1, 0, 0.8, 0, 0, 0, 0, 0, 0, 0, 1, 0},
                                              {0, 0.02, 0.9, 0.1, 0, 0, 0, 0, 0, 0, -1, 0},
                                              {100, 0.1, 0, 0, 0.8, 0.95, 0, 1e-4, 0, 0, 0, 0},
                                              {0.5, 0.2, 0, 0, 0.7, 0.9, 0, 1e-3, 0, 0, 0, 0},
                                              {2, 0.1, 0.5, 0, 0, 0, 0.9, 1e-3, 0, 0, 0, 1},
                                              {0, 0, 0.9, 0, 0, 0, 0, 0, 0, 0, 0, -1},
                                              {20, 0.1, 0, 0, 0, 0, 0, 1e-3, 0.1, 0.3, 0, 0},
                                              {1.5, 1e-30, 0, 0, 0.7, 0.8, 0, 0, 0, 0, 0, 0},
                                              {0.4, 0.3, 0.8, 0, 0, 0, 0, 0, 0, 0, -1, 0}};
    static const double *const want[][2] = {{torch_sgd, torch_sgd_momentum},     {torch_sgd, torch_sgd_nesterov},
                                            {torch_sgd_nesterov, torch_sgd_momentum}, {torch_adam, torch_adam_decay},
                                            {torch_adamw, torch_adamw_more},     {torch_rmsprop, torch_rmsprop_more},
                                            {torch_rmsprop_centered, torch_rmsprop_momentum},
                                            {torch_adagrad, torch_adagrad_more}, {torch_lion, torch_lion_more},
                                            {torch_muon_tall, torch_muon_plain}};
    for (int kind = 0; kind < 10; kind++)
        GN_SCOPE(g) {
            const gn_shape s = kind == 9 ? GN_SHAPE(3, 2) : GN_SHAPE(5);
            gn_array *p[2], *c = series(g, GN_F64, s, 1.5, 0.2), *target = series(g, GN_F64, s, -1.0, 0.5);
            for (int i = 0; i < 2; i++) p[i] = gn_requires_grad(series(g, GN_F64, s, 2.0, -1.0), true);
            gn_optimizer *opt = kind < 2    ? gn_sgd(p, 1, &sgd)
                                : kind == 2 ? gn_sgd(p, 1, &nesterov)
                                : kind == 3 ? gn_adam(p, 1, NULL)
                                : kind == 4 ? gn_adamw(p, 1, &adamw)
                                : kind == 5 ? gn_rmsprop(p, 1, NULL)
                                : kind == 6 ? gn_rmsprop(p, 1, &centered)
                                : kind == 7 ? gn_adagrad(p, 1, NULL)
                                : kind == 8 ? gn_lion(p, 1, &lion)
                                            : gn_muon(p, 1, &muon);
            assert_int_equal(gn_optimizer_add_group_with(opt, p + 1, 1, &groups[kind]), GN_OK);
            for (int step = 1, row = 0; step <= 20; step++) {
                gn_zero_grads(opt);
                for (int i = 0; i < 2; i++)
                    gn_backward(gn_sum(gn_add(gn_mul(c, gn_square(gn_square(gn_sub(p[i], target)))), p[i]), GN_ALL));
                assert_int_equal(gn_step(opt), GN_OK);
                const int n = (int)gn_size(p[0]);
                if (step != 1 && step != 2 && step % 5 != 0) continue;
                if (step == 15) continue;
                for (int i = 0; i < 2; i++) expect_values(p[i], want[kind][i] + n * row, n, 1e-12);
                row++;
            }
            gn_optimizer_free(opt);
        }
    GN_SCOPE(g) {
        gn_array *p = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2)), true), *q = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2)), true);
        gn_optimizer *opt = gn_adam(&p, 1, NULL);
        gn_group_options bad = {0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, negative = {0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0};
        assert_int_equal(gn_optimizer_add_group_with(opt, &q, 1, &bad), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_optimizer_add_group_with: beta1 0.9 and beta2 1 must be below 1");
        assert_int_equal(gn_optimizer_add_group_with(opt, &q, 1, &negative), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_optimizer_add_group_with: -1");
        gn_group_options turn = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
        assert_int_equal(gn_optimizer_add_group_with(opt, &q, 1, &turn), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_optimizer_add_group_with: nesterov needs momentum and no dampening");
        assert_int_equal(gn_optimizer_add_group_with(opt, &q, 1, NULL), GN_OK);
        gn_optimizer_free(opt);
    }
    close_context(g);
}

static void test_clipping(void **state) {
    (void)state;
    gn_context *g = open_context();
    const gn_dtype kinds[] = {GN_F32, GN_F64, GN_F16};
    for (int k = 0; k < 3; k++)
        GN_SCOPE(g) {
            const double three[] = {3, 3}, four[] = {-4}, fit[] = {0.5, 0.5}, cut[] = {-2};
            gn_array *p[3], *norm;
            p[0] = gn_requires_grad(gn_ones(g, kinds[k], GN_SHAPE(2)), true);
            p[1] = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(1)), true);
            p[2] = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(1)), true); // has none
            gn_backward(gn_sub(gn_mul_s(gn_cast(gn_sum(p[0], GN_ALL), GN_F32), 3.0), gn_mul_s(gn_sum(p[1], GN_ALL), 4.0)));
            const double is = sqrt(34.0);
            norm = gn_clip_grad_norm(p, 3, 100.0);
            expect_values(norm, &is, 1, 1e-6);
            expect_values(gn_grad(p[0]), three, 2, 0.0);
            expect_values(gn_grad(p[1]), four, 1, 0.0);
            assert_null(gn_grad(p[2]));
            assert_int_equal(gn_clip_grad_value(p, 3, 2.0), GN_OK);
            expect_values(gn_grad(p[1]), cut, 1, 0.0);
            const double two[] = {2, 2};
            expect_values(gn_grad(p[0]), two, 2, 0.0);
            norm = gn_clip_grad_norm(p, 3, 0.5 * sqrt(3.0)); // a quarter
            expect_values(gn_grad(p[0]), fit, 2, 1e-3 * (k == 2) + 1e-6);
            assert_true(gn_dtype_of(gn_grad(p[0])) == kinds[k]);
            assert_null(gn_clip_grad_norm(p, 3, -1.0));
            expect_error(g, GN_ERROR_ARGUMENT, "gn_clip_grad_norm: -1");
            assert_int_equal(gn_clip_grad_value(p, 3, NAN), GN_ERROR_ARGUMENT);
            expect_error(g, GN_ERROR_ARGUMENT, "gn_clip_grad_value");
        }
    close_context(g);
}

static void test_averages(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *p = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2)), true), *mean = gn_detach(gn_copy(p)), *before = gn_add_s(mean, 10.0);
        const float five[] = {5, 5};
        gn_write(p, five, sizeof five);
        assert_int_equal(gn_ema_update(&mean, &p, 1, 0.75), GN_OK);
        const double two[] = {2, 2}, eleven[] = {11, 11};
        expect_values(mean, two, 2, 0.0);
        expect_values(before, eleven, 2, 0.0); // of the mean as it was
        assert_int_equal(gn_ema_update(&p, &p, 1, 0.5), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_ema_update: average 1 is not what gn_detach(gn_copy(parameter)) gives");
        gn_array *recorded = gn_copy(p);
        assert_int_equal(gn_ema_update(&recorded, &p, 1, 0.5), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_ema_update: average 1 is not what gn_detach(gn_copy(parameter)) gives");
        assert_int_equal(gn_ema_update(&mean, &p, 1, 1.5), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_ema_update: decay 1.5");
    }
    close_context(g);
}

static void expect_same(gn_array *a, gn_array *b) {
    const size_t bytes = gn_bytes(a);
    unsigned char x[2048], y[2048];
    assert_true(bytes == gn_bytes(b) && bytes <= sizeof x);
    assert_int_equal(gn_read(a, x, bytes), GN_OK);
    assert_int_equal(gn_read(b, y, bytes), GN_OK);
    assert_memory_equal(x, y, bytes);
}

// Parameters of one optimizer share a program where they can: the same bits as from an optimizer each, with gradients that
// are there. Of two halves, one in two views of one array, others of a decay of their own.
enum { MANY = 9 };
static void make_many(gn_context *g, gn_array **p) {
    const gn_dtype dtypes[MANY] = {GN_F32, GN_F32, GN_F16, GN_F32, GN_F32, GN_F16, GN_F32, GN_F32, GN_F64};
    for (int i = 0; i < MANY; i++) {
        const gn_shape s = i == 1 ? GN_SHAPE(1) : i == 3 ? GN_SHAPE(0) : i % 2 ? GN_SHAPE(7 + i) : GN_SHAPE(3, 4 + i);
        int64_t n = 1;
        for (int k = 0; k < s.rank; k++) n *= s.dim[k];
        p[i] = gn_sin(gn_reshape(gn_arange(g, GN_F64, 0.0, (double)n, 1.0), s));
        p[i] = gn_eval(gn_cast(gn_add_s(p[i], 0.1 * i), dtypes[i]));
    }
    gn_array *whole = gn_eval(gn_cos(gn_arange(g, GN_F32, 0.0, 24.0, 1.0)));
    p[6] = gn_slice(whole, 0, 0, 12, 1);
    p[7] = gn_slice(whole, 0, 12, 24, 1);
    for (int i = 0; i < MANY; i++) p[i] = gn_requires_grad(i == 6 || i == 7 ? gn_detach(p[i]) : p[i], true);
}
static gn_optimizer *one_of(int kind, gn_array **p, int count) {
    const gn_sgd_options sgd = {0.1, 0.9, 0, 0.01, true};
    const gn_rmsprop_options rmsprop = {0.01, 0, 0, 0, 0.5, true};
    return kind == 0   ? gn_sgd(p, count, &sgd)
           : kind == 1 ? gn_adam(p, count, NULL)
           : kind == 2 ? gn_adamw(p, count, NULL)
           : kind == 3 ? gn_rmsprop(p, count, &rmsprop)
           : kind == 4 ? gn_adagrad(p, count, NULL)
                       : gn_lion(p, count, NULL);
}
static void test_many(void **state) {
    (void)state;
    gn_context *g = open_context();
    for (int kind = 0; kind < 6; kind++)
        GN_SCOPE(g) {
            gn_array *p[MANY], *q[MANY], *mean[MANY], *means[MANY];
            gn_optimizer *alone[MANY];
            make_many(g, p);
            make_many(g, q);
            gn_optimizer *all = one_of(kind, p, MANY - 3);
            gn_optimizer_add_group(all, p + MANY - 3, 3, 0.5, 0.125);
            for (int i = 0; i < MANY; i++) {
                gn_array *other = gn_ones(g, GN_F32, GN_SHAPE(1)); // without gradient
                alone[i] = one_of(kind, i < MANY - 3 ? q + i : &other, 1);
                if (i >= MANY - 3) gn_optimizer_add_group(alone[i], q + i, 1, 0.5, 0.125);
                mean[i] = gn_detach(gn_copy(p[i]));
                means[i] = gn_detach(gn_copy(p[i]));
            }
            for (int step = 0; step < 3; step++) {
                for (int which = 0; which < 2; which++) {
                    gn_array *loss = gn_scalar(g, GN_F64, 0.0);
                    for (int i = 0; i < MANY; i++) {
                        gn_array *x = gn_cast(which ? q[i] : p[i], GN_F64);
                        loss = gn_add(loss, gn_sum(gn_mul(gn_sin(x), gn_add_s(x, (double)step)), GN_ALL));
                    }
                    gn_backward(loss);
                    if (step > 0) gn_clip_grad_norm(which ? q : p, MANY, 0.5);
                    for (int i = 0; i < MANY && which; i++) gn_eval(gn_grad(q[i]));
                }
                gn_array *reads = gn_mul_s(p[0], 2.0), *before = gn_eval(gn_mul_s(q[0], 2.0)); // pending: of before the step
                assert_int_equal(gn_step(all), GN_OK);
                for (int i = 0; i < MANY; i++) assert_int_equal(gn_step(alone[i]), GN_OK);
                expect_same(reads, before);
                gn_ema_update(mean, p, MANY, 0.75);
                for (int i = 0; i < MANY; i++) {
                    gn_ema_update(means + i, q + i, 1, 0.75);
                    expect_same(p[i], q[i]);
                    expect_same(mean[i], means[i]);
                    if (gn_size(p[i]) > 0) expect_same(gn_grad(p[i]), gn_grad(q[i]));
                }
                gn_zero_grads(all);
                for (int i = 0; i < MANY; i++) gn_zero_grads(alone[i]);
            }
            gn_optimizer_free(all);
            for (int i = 0; i < MANY; i++) gn_optimizer_free(alone[i]);
        }
    close_context(g);
}

// What was made of parameters by way of views, and not computed yet, has their values from before a step; views that the caller has see
// the new ones.
static void test_pending_readers(void **state) {
    (void)state;
    gn_context *g = open_context();
    const double start[] = {1.0, -2.0, 3.0}, behind[] = {0.5, -1.0, 1.5}, made[] = {10.0, 20.0, 30.0, -20.0, -40.0, -60.0, 30.0, 60.0, 90.0};
    for (int own = 0; own < 2; own++)
        GN_SCOPE(g) {
            gn_array *w = gn_requires_grad(gn_eval(gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(3), start), GN_F32)), true);
            gn_array *x = gn_eval(gn_mul_s(gn_add_s(gn_arange(g, GN_F32, 0, 3, 1), 1.0), 10.0)), *view = NULL, *y = NULL;
            const gn_sgd_options options = {0.25, 0, 0, 0, false};
            gn_optimizer *opt = gn_sgd(&w, 1, &options);
            gn_backward(gn_sum(gn_square(w), GN_ALL));
            gn_no_grad_begin(g);
            if (own) view = gn_reshape(w, GN_SHAPE(3, 1));
            for (int i = 0; i < 9; i++) { // more of them than are counted
                gn_scope_begin(g);
                y = gn_keep(gn_mul(x, gn_reshape(w, GN_SHAPE(3, 1))));
                gn_scope_end(g);
            }
            gn_no_grad_end(g);
            gn_step(opt);
            expect_values(w, behind, 3, 0.0);
            if (own) expect_values(view, behind, 3, 0.0);
            expect_values(y, made, 9, 0.0);
            gn_optimizer_free(opt);
        }
    close_context(g);
}

// A step changes what a graph may still need; a gradient that is a pending function of the parameter
// keeps the value of before the step.
static void test_steps_and_graphs(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *p = gn_requires_grad(gn_full(g, GN_F32, GN_SHAPE(3), 2.0), true);
        gn_sgd_options options = {0.25, 0, 0, 0, false};
        gn_optimizer *opt = gn_sgd(&p, 1, &options);
        gn_array *loss = gn_sum(gn_square(p), GN_ALL), *pending = gn_mul_s(p, 10.0);
        gn_backward(gn_sum(gn_square(p), GN_ALL));
        gn_step(opt);
        const double four[] = {4, 4, 4}, one[] = {1, 1, 1}, twenty[] = {20, 20, 20};
        expect_values(gn_grad(p), four, 3, 1e-6);
        expect_values(p, one, 3, 1e-6);
        expect_values(pending, twenty, 3, 1e-6);
        assert_int_equal(gn_backward(loss), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "gn_step");
        gn_optimizer_free(opt);
    }
    close_context(g);
}

// ---- layers and losses -----------------------------------------------------------------------

// One step of a network: PyTorch's loss, gradients, and gradients of the gradients' sum of squares.
static void check_network(gn_dtype t, double tolerance) {
    gn_context *g = open_context();
    GN_SCOPE(g) {
        const int32_t labels[] = {2, 0, 1, 2};
        const int64_t size[] = {15, 5, 15, 3};
        gn_array *x = series(g, t, GN_SHAPE(4, 3), 2.0, -1.0), *params[4], *grads[4];
        params[0] = series(g, t, GN_SHAPE(3, 5), 1.6, -0.8);
        params[1] = series(g, t, GN_SHAPE(5), 0.4, -0.2);
        params[2] = series(g, t, GN_SHAPE(5, 3), -1.4, 0.7);
        params[3] = series(g, t, GN_SHAPE(3), 0.2, 0.0);
        for (int i = 0; i < 4; i++) gn_requires_grad(params[i], true);
        gn_array *h = gn_relu(gn_linear(x, params[0], params[1]));
        gn_array *y = gn_array_from(g, GN_I32, GN_SHAPE(4), labels);
        gn_array *loss = gn_cross_entropy(gn_linear(h, params[2], params[3]), y);
        expect_values(loss, torch_net_loss, 1, tolerance);
        assert_int_equal(gn_gradients(loss, params, 4, true, grads), GN_OK);
        gn_array *penalty = gn_scalar(g, t, 0.0);
        const double *want = torch_net_grad, *second = torch_net_second;
        for (int i = 0; i < 4; i++) {
            expect_values(grads[i], want, size[i], tolerance);
            want += size[i];
            penalty = gn_add(penalty, gn_sum(gn_square(grads[i]), GN_ALL));
        }
        assert_int_equal(gn_backward(penalty), GN_OK);
        for (int i = 0; i < 4; i++) {
            expect_values(gn_grad(params[i]), second, size[i], tolerance);
            second += size[i];
        }
    }
    close_context(g);
}

static void test_network(void **state) {
    (void)state;
    check_network(GN_F64, 1e-12);
    check_network(GN_F32, 2e-5);
}

// Loss and gradient of softmax regression, in plain C.
static double regression(const double *x, const int32_t *label, const double *w, int n, int in,
                         int out, double *grad) {
    double loss = 0.0;
    memset(grad, 0, sizeof(double) * (size_t)(in * out));
    for (int i = 0; i < n; i++) {
        double logit[8], top = -1e300, total = 0.0;
        for (int k = 0; k < out; k++) {
            logit[k] = 0.0;
            for (int j = 0; j < in; j++) logit[k] += x[i * in + j] * w[j * out + k];
            top = fmax(top, logit[k]);
        }
        for (int k = 0; k < out; k++) total += exp(logit[k] - top);
        loss += (log(total) + top - logit[label[i]]) / n;
        for (int k = 0; k < out; k++) {
            double d = (exp(logit[k] - top) / total - (k == label[i])) / n;
            for (int j = 0; j < in; j++) grad[j * out + k] += x[i * in + j] * d;
        }
    }
    return loss;
}

static void test_regression_in_plain_c(void **state) {
    (void)state;
    gn_context *g = open_context();
    double x[24], w[20], grad[20];
    const int32_t label[] = {0, 4, 2, 2, 1, 3};
    fill_series(x, 24, 40.0, -20.0); // large logits: no overflow
    fill_series(w, 20, 3.0, -1.0);
    double loss = regression(x, label, w, 6, 4, 5, grad);
    const gn_dtype kinds[] = {GN_U8, GN_I32, GN_I64};
    for (int i = 0; i < 3; i++)
        GN_SCOPE(g) {
            gn_array *weights =
                gn_requires_grad(series(g, GN_F32, GN_SHAPE(4, 5), 3.0, -1.0), true);
            gn_array *labels = gn_cast(gn_array_from(g, GN_I32, GN_SHAPE(6), label), kinds[i]);
            gn_array *l = gn_cross_entropy(
                gn_linear(series(g, GN_F32, GN_SHAPE(6, 4), 40.0, -20.0), weights, NULL), labels);
            expect_values(l, &loss, 1, 1e-5);
            gn_backward(l);
            expect_values(gn_grad(weights), grad, 20, 1e-4);
        }
    close_context(g);
}

static void test_losses_refuse(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *logits = gn_ones(g, GN_F32, GN_SHAPE(4, 3)),
                 *labels = gn_zeros(g, GN_I32, GN_SHAPE(4));
        assert_null(gn_cross_entropy(logits, gn_zeros(g, GN_I32, GN_SHAPE(3))));
        expect_error(g, GN_ERROR_SHAPE, "gn_cross_entropy: (4,3) and labels (3,)");
        assert_null(gn_cross_entropy(logits, gn_zeros(g, GN_F32, GN_SHAPE(4))));
        expect_error(g, GN_ERROR_DTYPE, "float32 and labels float32");
        assert_null(gn_mse_loss(labels, gn_zeros(g, GN_I32, GN_SHAPE(4, 1))));
        expect_error(g, GN_ERROR_SHAPE, "gn_mse_loss: prediction (4,) and target (4,1)");
        assert_null(gn_linear(logits, gn_ones(g, GN_F32, GN_SHAPE(4, 3)), NULL));
        expect_error(g, GN_ERROR_SHAPE, "gn_linear: x (4,3), w (4,3), b none are not (..., in), (in, out), (out): gn_transpose a w that is (out, in)");
        assert_null(
            gn_linear(logits, gn_ones(g, GN_F32, GN_SHAPE(3, 2)), gn_ones(g, GN_F32, GN_SHAPE(3))));
        expect_error(g, GN_ERROR_SHAPE, "b (3,)");
        // A label that no class has cannot pass unseen.
        const int32_t third[] = {3, 3, 3, 3};
        gn_array *high = gn_array_from(g, GN_I32, GN_SHAPE(4), third); // the CPU has it, on either side
        assert_null(gn_cross_entropy(logits, high));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_cross_entropy: label 3 is none of 3 classes");
        assert_null(gn_he_normal(g, GN_F32, GN_SHAPE(3)));
        expect_error(g, GN_ERROR_SHAPE, "gn_he_normal: (3,) is not (in, out)");
        assert_null(gn_xavier_uniform(g, GN_I32, GN_SHAPE(3, 3)));
        expect_error(g, GN_ERROR_DTYPE, "gn_xavier_uniform: int32 is not a float dtype");
        assert_int_equal(gn_dtype_of(gn_he_normal(g, GN_F64, GN_SHAPE(3, 3))), GN_F64);
        assert_int_equal(gn_dtype_of(gn_xavier_uniform(g, GN_BF16, GN_SHAPE(3, 3))), GN_BF16);
        assert_true(gn_needs_grad(gn_xavier_uniform(g, GN_F16, GN_SHAPE(3, 3))));
    }
    close_context(g);
}

static void test_initialisation(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *he = gn_he_normal(g, GN_F32, GN_SHAPE(200, 300)),
                 *xavier = gn_xavier_uniform(g, GN_F32, GN_SHAPE(200, 300));
        assert_true(gn_needs_grad(he) && gn_needs_grad(xavier));
        assert_int_equal(gn_dtype_of(he), GN_F32);
        double limit = sqrt(6.0 / 500.0);
        // 60000 samples: the standard error of the deviation is 0.3 %.
        assert_true(fabs(gn_item(gn_std(he, GN_ALL, 0)) / sqrt(2.0 / 200.0) - 1.0) < 0.015);
        assert_true(fabs(gn_item(gn_mean(he, GN_ALL))) < 0.002);
        assert_true(fabs(gn_item(gn_std(xavier, GN_ALL, 0)) / (limit / sqrt(3.0)) - 1.0) < 0.015);
        double high = gn_item(gn_max(xavier, GN_ALL)), low = gn_item(gn_min(xavier, GN_ALL));
        assert_true(high <= limit && high > 0.99 * limit && low >= -limit && low < -0.99 * limit);
    }
    close_context(g);
}

// ---- from start to end -----------------------------------------------------------------------

// Two rings, one inside the other: no line between them. Returns the accuracy; the losses go to `losses`.
static double train_rings(gn_context *g, int steps, float *losses) {
    float points[2 * 240];
    uint8_t rings[240];
    for (int i = 0; i < 240; i++) {
        double angle = i * 2.399963, radius = i % 2 ? 1.0 : 0.45 + 0.1 * sin(i * 0.7);
        points[2 * i] = (float)(radius * cos(angle));
        points[2 * i + 1] = (float)(radius * sin(angle));
        rings[i] = (uint8_t)(i % 2);
    }
    double accuracy = 0.0;
    GN_SCOPE(g) {
        gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(240, 2), points);
        gn_array *y = gn_array_from(g, GN_U8, GN_SHAPE(240), rings), *params[4];
        params[0] = gn_he_normal(g, GN_F32, GN_SHAPE(2, 16));
        params[1] = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(16)), true);
        params[2] = gn_xavier_uniform(g, GN_F32, GN_SHAPE(16, 2));
        params[3] = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(2)), true);
        gn_adam_options options = {0.02, 0, 0, 0, 0};
        gn_optimizer *opt = gn_adam(params, 4, &options);
        gn_memory_stats early, late;
        for (int step = 0; step < steps; step++) {
            GN_SCOPE(g) {
                gn_array *h = gn_relu(gn_linear(x, params[0], params[1]));
                gn_array *loss = gn_cross_entropy(gn_linear(h, params[2], params[3]), y);
                gn_zero_grads(opt);
                gn_backward(loss);
                gn_step(opt);
                losses[step] = (float)gn_item(loss);
            }
            if (step == 20) gn_memory_get(g, &early);
        }
        gn_memory_get(g, &late);
        assert_int_equal(late.arrays, early.arrays);
        assert_true(late.host_used <= early.host_used + 4096);
        assert_true(late.device_used <= early.device_used + 4096);
        gn_array *h = gn_relu(gn_linear(x, params[0], params[1]));
        gn_array *hit = gn_eq(gn_argmax(gn_linear(h, params[2], params[3]), 1), y);
        accuracy = gn_item(gn_mean(hit, GN_ALL));
        gn_optimizer_free(opt);
    }
    return accuracy;
}

static void test_training(void **state) {
    (void)state;
    float first[150], again[150];
    gn_context *g = open_context();
    double accuracy = train_rings(g, 150, first);
    close_context(g);
    assert_true(first[149] < 0.2f * first[0]);
    assert_true(accuracy > 0.97);
    g = open_context();
    train_rings(g, 150, again);
    close_context(g);
    assert_memory_equal(first, again, sizeof first); // the same seed, the same bits
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizers_float64),
        cmocka_unit_test(test_optimizers_float32),
        cmocka_unit_test(test_optimizers_half),
        cmocka_unit_test(test_learning_rate),
        cmocka_unit_test(test_optimizer_arguments),
        cmocka_unit_test(test_own_ops), cmocka_unit_test(test_own_integers), cmocka_unit_test(test_passes_within),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_group_settings),
        cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_averages),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_pending_readers),
        cmocka_unit_test(test_steps_and_graphs),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_regression_in_plain_c),
        cmocka_unit_test(test_losses_refuse),
        cmocka_unit_test(test_initialisation),
        cmocka_unit_test(test_training),
    };
    return test_run(tests);
}
