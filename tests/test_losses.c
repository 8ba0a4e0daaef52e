// Losses: values against PyTorch's (torch_values.h), first and second derivatives against differences, and what is odd.
// Dropout and embeddings.
#include "test.h"
#include "torch_series.h"
#include "torch_values.h"

typedef struct operands {
    gn_context *g;
    gn_array *x, *y, *p, *sure, *three, *signs, *weight, *q, *labels, *some, *of_two;
} operands;

// Some of them with strides of their own: what they are must not matter.
static operands operands_of(gn_context *g, gn_dtype t) {
    const int32_t labels[] = {2, 0, 3}, some[] = {2, -100, 1}, of_two[] = {1, 0, 1, 0, -1, 1, 1, 1, 0}, signs[] = {1, -1, 1};
    const double zero = 0.0, one = 1.0;
    operands o;
    o.g = g;
    o.x = gn_transpose(gn_copy(gn_transpose(series(g, t, GN_SHAPE(3, 4), 4.0, -2.0))));
    o.y = series(g, t, GN_SHAPE(3, 4), -3.0, 1.6);
    o.p = series(g, t, GN_SHAPE(3, 4), 0.98, 0.01);
    o.sure = gn_copy(gn_flip(series(g, t, GN_SHAPE(3, 4), 1.0, 0.0), 1));
    gn_assign(gn_index(o.sure, "0, 0"), gn_array_from(g, GN_F64, GN_SHAPE(), &zero));
    gn_assign(gn_index(o.sure, "1, 2"), gn_array_from(g, GN_F64, GN_SHAPE(), &one));
    o.three = series(g, t, GN_SHAPE(3, 2, 3), 4.0, -2.0);
    o.weight = series(g, t, GN_SHAPE(4), 1.5, 0.2);
    o.q = series(g, t, GN_SHAPE(3, 4), -3.0, -0.1);
    o.labels = gn_cast(gn_array_from(g, GN_I32, GN_SHAPE(3), labels), GN_U8);
    o.some = gn_cast(gn_array_from(g, GN_I32, GN_SHAPE(3), some), GN_I64);
    o.of_two = gn_array_from(g, GN_I32, GN_SHAPE(3, 3), of_two);
    o.signs = gn_array_from(g, GN_I32, GN_SHAPE(3), signs);
    return o;
}

static gn_array *classes(gn_array *x, gn_array *labels, gn_array *weight, double smoothing, int ignored, gn_reduction r) {
    gn_cross_entropy_options o = {weight, smoothing, ignored != 0, ignored, r};
    return gn_cross_entropy_with(x, labels, &o);
}

static gn_array *nll(gn_array *x, gn_array *labels, gn_array *weight, int ignored, gn_reduction r) {
    gn_cross_entropy_options o = {weight, 0.0, true, ignored, r};
    return gn_nll_loss(x, labels, &o);
}

// name, loss of the operands o with reduction r, and which of them it is differentiated by
#define LOSSES(X)                                                                                           \
    X(mse, gn_mse_loss_with(o->x, o->y, r), o->x, o->y)                                                     \
    X(l1, gn_l1_loss(o->x, o->y, r), o->x, o->y)                                                            \
    X(smooth, gn_smooth_l1_loss(o->x, o->y, 1.0, r), o->x, o->y)                                            \
    X(smoother, gn_smooth_l1_loss(o->x, o->y, 2.5, r), o->x, o->y)                                          \
    X(smooth_zero, gn_smooth_l1_loss(o->x, o->y, 0.0, r), o->x, o->y)                                       \
    X(huber, gn_huber_loss(o->x, o->y, 1.7, r), o->x, o->y)                                                 \
    X(bce, gn_bce_loss(o->p, o->sure, r), o->p, o->sure)                                                    \
    X(bce_edge, gn_bce_loss(o->sure, o->p, r), o->p, o->p)                                                  \
    X(bce_logits, gn_bce_with_logits(gn_mul_s(o->x, 40.0), o->sure, NULL, r), o->x, o->sure)                \
    X(bce_weight, gn_bce_with_logits(o->x, o->sure, o->weight, r), o->x, o->weight)                         \
    X(kl, gn_kl_div(o->q, o->sure, false, r), o->q, o->q)                                                   \
    X(kl_log, gn_kl_div(o->q, gn_add_s(o->y, -2.0), true, r), o->q, o->y)                                   \
    X(cosine_embedding, gn_cosine_embedding_loss(o->x, o->y, o->signs, -0.4, r), o->x, o->y)                \
    X(ce, classes(o->x, o->labels, NULL, 0.0, 0, r), o->x, o->x)                                            \
    X(ce_weight, classes(o->x, o->labels, o->weight, 0.0, 0, r), o->x, o->x)                                \
    X(ce_smooth, classes(o->x, o->labels, NULL, 0.3, 0, r), o->x, o->x)                                     \
    X(ce_smooth_weight, classes(o->x, o->labels, o->weight, 0.3, 0, r), o->x, o->x)                         \
    X(ce_ignored, classes(o->x, o->some, NULL, 0.0, -100, r), o->x, o->x)                                   \
    X(ce_ignored_weight, classes(o->x, o->some, o->weight, 0.0, -100, r), o->x, o->x)                       \
    X(ce_ignored_smooth, classes(o->x, o->some, NULL, 0.3, -100, r), o->x, o->x)                            \
    X(ce_three, classes(o->three, o->of_two, gn_slice(o->weight, 0, 0, 2, 1), 0.1, -1, r), o->three, o->three) \
    X(ce_one, classes(gn_index(o->x, "1"), gn_index(o->labels, "0"), NULL, 0.0, 0, r), o->x, o->x)          \
    X(nll, nll(o->q, o->some, o->weight, -100, r), o->q, o->q)

typedef struct loss {
    const char *name;
    gn_array *(*fn)(const operands *o, gn_reduction r);
    void (*leaves)(const operands *o, gn_array **leaf);
    const double *want;
    int count; // of elements, before mean and sum
} loss;
#define GN_X(name, expression, first, second)                                                              \
    static gn_array *fn_##name(const operands *o, gn_reduction r) { return expression; }                   \
    static void leaves_##name(const operands *o, gn_array **leaf) { leaf[0] = first, leaf[1] = second; }
LOSSES(GN_X)
#undef GN_X
static const loss losses[] = {
#define GN_X(name, expression, first, second) \
    {#name, fn_##name, leaves_##name, torch_##name, (int)(sizeof torch_##name / sizeof(double)) - 2},
    LOSSES(GN_X)
#undef GN_X
};
enum { COUNT = (int)(sizeof losses / sizeof losses[0]) };

static void check_values(gn_context *g, gn_dtype t, double tolerance) {
    for (int i = 0; i < COUNT; i++)
        GN_SCOPE(g) {
            const operands o = operands_of(g, t);
            const loss *l = &losses[i];
            double slack = tolerance;
            if (strcmp(l->name, "bce_edge") == 0 && t != GN_F64) slack *= 40.0; // 1 - p loses digits
            if (strcmp(l->name, "cosine_embedding") == 0 && t == GN_F64) slack = 1e-11; // PyTorch adds 1e-12 to the squares
            expect_doubles(l->name, l->fn(&o, GN_REDUCE_NONE), t, l->want, l->count, slack);
            expect_doubles(l->name, l->fn(&o, GN_REDUCE_MEAN), t, l->want + l->count, 1, slack);
            expect_doubles(l->name, l->fn(&o, GN_REDUCE_SUM), t, l->want + l->count + 1, 1, slack);
        }
}

static void test_values(void **state) {
    gn_context *g = (gn_context *)*state;
    check_values(g, GN_F32, 3e-6);
    check_values(g, GN_F64, 1e-13);
    check_values(g, GN_F16, 1e-2);
    check_values(g, GN_BF16, 8e-2);
    const operands o = operands_of(g, GN_F64);
    expect_doubles("batch", gn_kl_div(o.q, o.sure, false, GN_REDUCE_BATCH_MEAN), GN_F64, torch_kl_batch, 1, 1e-13);
    expect_doubles("cosine", gn_cosine_similarity(o.x, o.y, 1, 1e-8), GN_F64, torch_cosine, 3, 1e-13);
    expect_doubles("cosine", gn_cosine_similarity(o.x, o.y, -2, 1e-8), GN_F64, torch_cosine + 3, 4, 1e-13);
    const double wide[] = {1, 0, 0}, cosine = 1 / sqrt(3.0); // of two dtypes the wider one's precision
    gn_array *narrow = gn_ones(g, GN_F32, GN_SHAPE(3));
    expect_doubles("cosine", gn_cosine_similarity(gn_array_from(g, GN_F64, GN_SHAPE(3), wide), narrow, 0, 1e-8), GN_F64, &cosine, 1, 1e-14);
}

// ---- derivatives

typedef struct checked {
    const loss *loss;
    operands o;
} checked;

// Each element by a factor of its own.
static gn_array *weighed(gn_context *g, gn_array *const *in, int n, void *user) {
    const checked *c = (const checked *)user;
    (void)in, (void)n;
    gn_array *y = c->loss->fn(&c->o, GN_REDUCE_NONE);
    gn_array *factor = gn_reshape(gn_add_s(gn_arange(g, GN_F64, 0, (double)gn_size(y), 1), 1.0), gn_shape_of(y));
    return gn_add(gn_mean(gn_mul(factor, y), GN_ALL), c->loss->fn(&c->o, GN_REDUCE_MEAN));
}

static gn_array *weighed_twice(gn_context *g, gn_array *const *in, int n, void *user) {
    return test_sines(weighed(g, in, n, user), in, n);
}

static bool has_flat_gradient(const loss *l) {
    static const char *const names[] = {"l1", "smooth_zero", "bce_edge", "kl", "nll"};
    bool found = false;
    for (int i = 0; i < 5; i++) found = found || strcmp(l->name, names[i]) == 0;
    return found;
}

static void test_differences(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < COUNT; i++)
        GN_SCOPE(g) {
            checked c = {&losses[i], operands_of(g, GN_F64)};
            gn_array *leaf[2];
            c.o.x = gn_copy(c.o.x);
            losses[i].leaves(&c.o, leaf);
            const int n = leaf[0] == leaf[1] ? 1 : 2;
            for (int k = 0; k < n; k++) gn_requires_grad(leaf[k], true);
            const double error = gn_gradcheck(weighed, leaf, n, 1e-6, &c);
            if (!(error < 1e-7)) fail_msg("%s: gradient off by %g", losses[i].name, error);
            if (has_flat_gradient(&losses[i])) continue;
            if (test_on_vulkan() && strcmp(losses[i].name, "bce") != 0) continue; // made of the same ops
            const double twice = gn_gradcheck(weighed_twice, leaf, n, 1e-6, &c);
            if (!(twice < 1e-6)) fail_msg("%s: second gradient off by %g", losses[i].name, twice);
        }
}

static double grad_item(gn_array *y, gn_array *x) {
    gn_array *dx = NULL;
    return gn_gradients(y, &x, 1, false, &dx) == GN_OK ? gn_item(dx) : (double)NAN;
}

static gn_array *number(gn_context *g, double v) { return gn_requires_grad(gn_full(g, GN_F32, GN_SHAPE(1), v), true); }

static void test_odd_values(void **state) {
    gn_context *g = (gn_context *)*state;
    operands o = operands_of(g, GN_F64);
    gn_requires_grad(o.sure, true);
    gn_array *dx = NULL;
    assert_int_equal(gn_gradients(gn_bce_loss(o.sure, o.p, GN_REDUCE_SUM), &o.sure, 1, false, &dx), GN_OK);
    expect_doubles("bce_edge", dx, GN_F64, torch_bce_edge_grad, 12, 1e-8); // its 1e-12 is a float
    gn_array *far_off = number(g, INFINITY), *none = number(g, NAN), *zero = gn_zeros(g, GN_F32, GN_SHAPE(1));
    assert_true(grad_item(gn_smooth_l1_loss(far_off, zero, 1.0, GN_REDUCE_SUM), far_off) == 1.0);
    assert_true(isnan(gn_item(gn_huber_loss(none, zero, 1.0, GN_REDUCE_SUM))));
    // Halves are computed in float32: a logarithm of the sum that is rounded to them would be wrong by 1/4 here.
    const double high[] = {100, 101, 99.5};
    const int32_t second[] = {1};
    const double sum = exp(-1.0) + 1.0 + exp(-1.5), slope[] = {exp(-1.0) / sum, 1.0 / sum - 1.0, exp(-1.5) / sum}, high_loss = log(sum);
    for (int i = 0; i < 2; i++) {
        const gn_dtype half = i ? GN_BF16 : GN_F16;
        gn_array *z = gn_requires_grad(gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(1, 3), high), half), true);
        gn_array *y = gn_cross_entropy(z, gn_array_from(g, GN_I32, GN_SHAPE(1), second));
        assert_int_equal(gn_backward(y), GN_OK);
        expect_doubles("half", y, half, &high_loss, 1, i ? 0x1p-8 : 0x1p-11);
        expect_doubles("half gradient", gn_grad(z), half, slope, 3, i ? 0x1p-8 : 0x1p-11);
    }
    // Their parabola has a second derivative where the difference is 0, too.
    const double apart[] = {0, 0.1, -0.1, 2}, flat[] = {0, 0, 0, 0}, twos[] = {2, 2, 2, 0}, ones[] = {1, 1, 1, 0};
    gn_array *p = gn_requires_grad(gn_array_from(g, GN_F64, GN_SHAPE(4), apart), true);
    gn_array *t = gn_array_from(g, GN_F64, GN_SHAPE(4), flat);
    for (int huber = 0; huber < 2; huber++) {
        gn_array *y = huber ? gn_huber_loss(p, t, 0.5, GN_REDUCE_SUM) : gn_smooth_l1_loss(p, t, 0.5, GN_REDUCE_SUM);
        assert_int_equal(gn_gradients(y, &p, 1, true, &dx), GN_OK);
        assert_int_equal(gn_gradients(gn_sum(dx, GN_ALL), &p, 1, false, &dx), GN_OK);
        expect_doubles("second", dx, GN_F64, huber ? ones : twos, 4, 0.0);
    }
    assert_true(isnan(gn_item(gn_bce_loss(none, zero, GN_REDUCE_SUM))));
    // Large logits of either sign: no overflow.
    gn_array *big = number(g, -1e30), *one = gn_ones(g, GN_F32, GN_SHAPE(1));
    assert_true(gn_item(gn_bce_with_logits(big, zero, NULL, GN_REDUCE_SUM)) == 0.0);
    assert_true(fabs(gn_item(gn_bce_with_logits(big, one, NULL, GN_REDUCE_SUM)) / 1e30 - 1.0) < 1e-6);
    assert_true(grad_item(gn_bce_with_logits(big, one, NULL, GN_REDUCE_SUM), big) == -1.0);
    // A vector of zeros has a direction with nothing.
    gn_array *still = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(2)), true);
    gn_array *cosine = gn_cosine_similarity(still, gn_ones(g, GN_F32, GN_SHAPE(3, 2)), 1, 1e-3);
    assert_true(gn_size(cosine) == 3 && gn_item(gn_sum(cosine, GN_ALL)) == 0.0);
    assert_int_equal(gn_gradients(gn_sum(cosine, GN_ALL), &still, 1, false, &dx), GN_OK);
    assert_true(fabs(gn_item(gn_max(dx, GN_ALL)) - 3000.0 / sqrt(2.0)) < 0.1);
    // A label that no class has and that is not looked at.
    const int32_t labels[] = {1, 7};
    gn_array *l = gn_array_from(g, GN_I32, GN_SHAPE(2), labels), *x = gn_ones(g, GN_F32, GN_SHAPE(2, 3));
    assert_true(fabs(gn_item(classes(x, l, NULL, 0.0, 7, GN_REDUCE_MEAN)) - log(3.0)) < 1e-6);
    assert_true(isnan(gn_item(classes(x, gn_full(g, GN_I32, GN_SHAPE(2), 7), NULL, 0.0, 7, GN_REDUCE_MEAN))));
    // Nothing.
    gn_array *empty = gn_zeros(g, GN_F32, GN_SHAPE(0, 3)), *no_labels = gn_zeros(g, GN_I32, GN_SHAPE(0));
    assert_true(gn_item(gn_l1_loss(empty, empty, GN_REDUCE_SUM)) == 0.0);
    assert_true(isnan(gn_item(gn_l1_loss(empty, empty, GN_REDUCE_MEAN))));
    assert_true(gn_item(classes(empty, no_labels, NULL, 0.1, 0, GN_REDUCE_SUM)) == 0.0);
}

// Labels that no class has: told at once where the CPU has them, else by the next wait.
static void test_wrong_labels(void **state) {
    gn_context *g = (gn_context *)*state;
    static const char *const names[] = {"gn_cross_entropy", "gn_cross_entropy_with", "gn_cross_entropy_with", "gn_nll_loss"};
    const int64_t wrong[] = {3, -1, -3, (int64_t)1 << 40, INT64_MIN, 200};
    gn_array *x = gn_requires_grad(series(g, GN_F32, GN_SHAPE(2, 3), 2.0, -1.0), true), *w = gn_ones(g, GN_F32, GN_SHAPE(3)), *y = NULL;
    char text[200];
    for (int k = 0; k < 6; k++)
        for (int fn = 0; fn < 4; fn++)
            for (int side = 0; side < 2 && (k < 2 || !test_on_vulkan()); side++)
                GN_SCOPE(g) {
                    const int64_t labels[] = {2, wrong[k]};
                    gn_array *l = gn_array_from(g, GN_I64, GN_SHAPE(2), labels);
                    if (k == 5) l = gn_eval(gn_cast(l, GN_U8));
                    if (side > 0) l = gn_to(gn_eval(gn_add(l, gn_zeros_like(l))), GN_DEVICE_GPU);
                    y = fn == 0 ? gn_cross_entropy(x, l) : fn == 1 ? classes(x, l, NULL, 0.0, 7, GN_REDUCE_MEAN)
                      : fn == 2 ? classes(x, l, w, 0.2, 0, GN_REDUCE_NONE) : nll(x, l, NULL, -100, GN_REDUCE_SUM);
                    if (side > 0 && test_on_vulkan()) {
                        assert_non_null(y);
                        assert_int_equal(gn_sync(g), GN_ERROR_ARGUMENT);
                        snprintf(text, sizeof text, "gn_sync: an index of %s is out of bounds for axis %d with size 3", names[fn], fn != 2);
                        expect_error(g, GN_ERROR_ARGUMENT, text);
                        continue;
                    }
                    assert_null(y);
                    snprintf(text, sizeof text, "%s: label %lld is none of 3 classes", names[fn], (long long)wrong[k]);
                    expect_error(g, GN_ERROR_ARGUMENT, text);
                }
    // One that is ignored is none either, on both sides, and right ones of every dtype are told by nobody.
    for (int side = 0; side < 2; side++)
        for (int t = 0; t < 8; t += test_on_vulkan() ? 3 : 1)
            GN_SCOPE(g) {
                const gn_dtype kinds[] = {GN_I8, GN_I16, GN_I32, GN_I64, GN_U8, GN_U16, GN_U32, GN_U64};
                const bool natural = t > 3;
                const int64_t labels[] = {2, natural ? 100 : -100};
                gn_array *l = gn_eval(gn_cast(gn_array_from(g, GN_I64, GN_SHAPE(2), labels), kinds[t])), *dx = NULL;
                if (side > 0) l = gn_to(l, GN_DEVICE_GPU);
                gn_array *two = gn_slice(l, 0, 0, 1, 1), *first = gn_slice(x, 0, 0, 1, 1), *want = gn_cross_entropy(first, two);
                y = classes(x, l, t % 2 ? w : NULL, 0.0, natural ? 100 : -100, GN_REDUCE_MEAN);
                assert_true(fabs(gn_item(y) - gn_item(want)) < 1e-6);
                assert_int_equal(gn_gradients(y, &x, 1, false, &dx), GN_OK);
                assert_true(gn_item(gn_sum(gn_abs(gn_slice(dx, 0, 1, 2, 1)), GN_ALL)) == 0.0);
                assert_int_equal(gn_sync(g), GN_OK);
            }
    // One that no double is: of its neighbours none is ignored.
    for (int sign = -1; sign < 2; sign += 2)
        GN_SCOPE(g) {
            const int64_t large[] = {2, sign * (((int64_t)1 << 53) + 1)};
            gn_cross_entropy_options o = {NULL, 0.0, true, large[1], GN_REDUCE_MEAN};
            gn_array *l = gn_array_from(g, GN_I64, GN_SHAPE(2), large);
            const double want = gn_item(gn_cross_entropy(gn_slice(x, 0, 0, 1, 1), gn_slice(l, 0, 0, 1, 1)));
            assert_true(fabs(gn_item(gn_cross_entropy_with(x, l, &o)) - want) < 1e-6);
            o.ignored -= sign;
            assert_null(gn_cross_entropy_with(x, l, &o));
            snprintf(text, sizeof text, "gn_cross_entropy_with: label %lld is none of 3 classes", (long long)large[1]);
            expect_error(g, GN_ERROR_ARGUMENT, text);
        }
    // No class at all.
    const int32_t first_class[] = {0, 0};
    assert_null(gn_cross_entropy(gn_zeros(g, GN_F32, GN_SHAPE(2, 0)), gn_array_from(g, GN_I32, GN_SHAPE(2), first_class)));
    expect_error(g, GN_ERROR_SHAPE, "gn_cross_entropy: (2,0) and labels (2,) are not (n, classes, ...) and (n, ...)");
    assert_true(isnan(gn_item(gn_cross_entropy(gn_zeros(g, GN_F32, GN_SHAPE(0, 3)), gn_zeros(g, GN_I32, GN_SHAPE(0))))));
}

static void test_refusals(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_ones(g, GN_F32, GN_SHAPE(2, 3)), *l = gn_zeros(g, GN_I32, GN_SHAPE(2)), *w = gn_ones(g, GN_F32, GN_SHAPE(4));
    assert_null(gn_l1_loss(x, gn_ones(g, GN_F32, GN_SHAPE(3)), GN_REDUCE_MEAN));
    expect_error(g, GN_ERROR_SHAPE, "gn_l1_loss: prediction (2,3) and target (3,) have different shapes");
    assert_null(gn_mse_loss_with(l, l, GN_REDUCE_MEAN));
    expect_error(g, GN_ERROR_DTYPE, "gn_mse_loss_with: the prediction is int32 and the target int32, not a float and a real number");
    assert_null(gn_huber_loss(x, x, -1.0, GN_REDUCE_MEAN));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_huber_loss: -1 is no number from 0 on");
    assert_null(gn_huber_loss(x, x, 0.0, GN_REDUCE_MEAN));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_huber_loss: delta is 0, as every loss would be");
    assert_null(gn_kl_div(x, x, false, (gn_reduction)9));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_kl_div: 9 is not a gn_reduction");
    assert_null(gn_bce_loss(x, NULL, GN_REDUCE_MEAN));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_bce_loss: array argument 2 is NULL");
    assert_null(gn_bce_with_logits(x, x, gn_ones(g, GN_F32, GN_SHAPE(4, 2, 3)), GN_REDUCE_MEAN));
    expect_error(g, GN_ERROR_SHAPE, "gn_bce_with_logits: pos_weight has more axes or elements than the logits");
    assert_null(gn_cosine_embedding_loss(x, x, x, 0.0, GN_REDUCE_MEAN));
    expect_error(g, GN_ERROR_SHAPE, "gn_cosine_embedding_loss: not rows (n, d) and labels (n)");
    assert_null(gn_cosine_similarity(l, l, 0, 0.0));
    expect_error(g, GN_ERROR_DTYPE, "gn_cosine_similarity: int32 numbers, eps 0");
    assert_null(gn_cosine_similarity(x, x, 2, 0.0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_cosine_similarity: axis 2 is out of bounds for array of rank 2");
    assert_null(gn_nll_loss(x, gn_zeros(g, GN_I32, GN_SHAPE(3)), NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_nll_loss: (2,3) and labels (3,) are not (n, classes, ...) and (n, ...)");
    assert_null(classes(x, l, w, 0.0, 0, GN_REDUCE_MEAN));
    expect_error(g, GN_ERROR_SHAPE, "gn_cross_entropy_with: weight (4,) for 3 classes");
    assert_null(classes(x, l, NULL, 1.5, 0, GN_REDUCE_MEAN));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_cross_entropy_with: label smoothing 1.5");
    assert_null(classes(x, l, NULL, 0.0, 0, GN_REDUCE_BATCH_MEAN));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_cross_entropy_with: reduction 3");
    assert_null(classes(x, gn_ones(g, GN_F32, GN_SHAPE(2)), NULL, 0.0, 0, GN_REDUCE_MEAN));
    expect_error(g, GN_ERROR_DTYPE, NULL);
}

// ---- a curve

static gn_array *curve(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)n, (void)user;
    return weigh(g, gn_gelu_tanh(in[0]));
}

static gn_array *curve_twice(gn_context *g, gn_array *const *in, int n, void *user) {
    gn_array *dx = NULL;
    return gn_gradients(curve(g, in, n, user), in, n, true, &dx) == GN_OK ? gn_sum(gn_sin(dx), GN_ALL) : NULL;
}

static double slope_of(double x) {
    const double k = 0.7978845608028654, t = tanh(k * (x + 0.044715 * x * x * x));
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * k * (1.0 + 3.0 * 0.044715 * x * x);
}

static void test_gelu_tanh(void **state) {
    gn_context *g = (gn_context *)*state;
    const gn_dtype kinds[] = {GN_F64, GN_F32, GN_F16, GN_BF16};
    const double near[] = {1e-13, 2e-6, 0.0, 0.0}, digits[] = {0.0, 0.0, 1.0 / 2048.0, 1.0 / 256.0};
    for (int k = 0; k < 4; k++)
        GN_SCOPE(g) {
            gn_array *x = gn_requires_grad(series(g, kinds[k], GN_SHAPE(12), 9.0, -4.5), true), *dx = NULL, *y = gn_gelu_tanh(x);
            double at[12], want[24];
            assert_int_equal(gn_read(gn_cast(gn_detach(x), GN_F64), at, sizeof at), GN_OK);
            memcpy(want, torch_gelu_tanh, sizeof want);
            for (int i = 0; i < 12 && k > 1; i++) { // of the numbers as they were rounded
                want[i] = 0.5 * at[i] * (1.0 + tanh(0.7978845608028654 * (at[i] + 0.044715 * at[i] * at[i] * at[i])));
                want[12 + i] = slope_of(at[i]);
            }
            assert_int_equal(gn_gradients(gn_sum(y, GN_ALL), &x, 1, false, &dx), GN_OK);
            for (int half = 0; half < 2; half++) {
                double got[12];
                gn_array *a = half == 0 ? y : dx;
                assert_int_equal(gn_dtype_of(a), kinds[k]);
                assert_int_equal(gn_read(gn_cast(gn_detach(a), GN_F64), got, sizeof got), GN_OK);
                for (int i = 0; i < 12; i++) { // a half is rounded once: by half of a last place
                    const double size = fabs(want[12 * half + i]), allowed = k < 2 ? near[k] * fmax(size, 1.0) : size * digits[k] + 1e-6;
                    if (!(fabs(got[i] - want[12 * half + i]) <= allowed)) fail_msg("%s %d: %.17g, not %.17g", gn_dtype_name(kinds[k]), i, got[i], want[12 * half + i]);
                }
            }
        }
    // Far out it is 0 or x, and so is the slope.
    const double far[] = {-1e30, 1e30, -40.0, 40.0, 0.0, (double)NAN, (double)INFINITY};
    gn_array *x = gn_requires_grad(gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(7), far), GN_F32), true), *dx = NULL, *y = gn_gelu_tanh(x);
    double got[14];
    assert_int_equal(gn_gradients(gn_sum(gn_slice(y, 0, 0, 5, 1), GN_ALL), &x, 1, false, &dx), GN_OK);
    assert_int_equal(gn_read(gn_cast(gn_detach(y), GN_F64), got, 7 * sizeof *got), GN_OK);
    assert_int_equal(gn_read(gn_cast(dx, GN_F64), got + 7, 7 * sizeof *got), GN_OK);
    assert_true(got[0] == 0.0 && got[1] == (double)1e30f && got[2] == 0.0 && got[3] == 40.0 && got[4] == 0.0 && isnan(got[5]) && isinf(got[6]));
    assert_true(got[7] == 0.0 && got[8] == 1.0 && got[9] == 0.0 && got[10] == 1.0 && got[11] == 0.5);
    x = gn_requires_grad(series(g, GN_F64, GN_SHAPE(3, 5), 6.0, -3.0), true);
    assert_true(gn_gradcheck(curve, &x, 1, 0.0, NULL) < 1e-8);
    assert_true(gn_gradcheck(curve_twice, &x, 1, 0.0, NULL) < 1e-7);
    assert_null(gn_gelu_tanh(gn_ones(g, GN_I32, GN_SHAPE(2))));
    expect_error(g, GN_ERROR_DTYPE, "gn_gelu_tanh: int32 is not a float dtype");
}

// ---- dropout and embeddings

static gn_array *seeded_dropout(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)n, (void)user;
    gn_seed(g, 11);
    return gn_sum(gn_square(gn_dropout(gn_square(in[0]), 0.4, true)), GN_ALL);
}

static gn_array *seeded_twice(gn_context *g, gn_array *const *in, int n, void *user) {
    gn_array *dx = NULL;
    return gn_gradients(seeded_dropout(g, in, n, user), in, n, true, &dx) == GN_OK ? gn_sum(gn_sin(dx), GN_ALL) : NULL;
}

static void test_dropout(void **state) {
    gn_context *g = (gn_context *)*state;
    const gn_dtype kinds[] = {GN_F32, GN_F64, GN_F16, GN_BF16};
    for (int k = 0; k < (test_on_vulkan() ? 1 : 4); k++)
        GN_SCOPE(g) {
            const gn_dtype t = kinds[k];
            // A view, and a size that is no multiple of a block's.
            gn_array *x = gn_requires_grad(gn_transpose(gn_ones(g, t, GN_SHAPE(61, 17))), true), *dx = NULL;
            gn_seed(g, 3);
            gn_array *y = gn_eval(gn_dropout(x, 0.25, true)), *next = gn_eval(gn_dropout(x, 0.25, true));
            gn_seed(g, 3);
            gn_array *u = gn_rand(g, GN_F32, GN_SHAPE(17, 61)), *zero = gn_scalar(g, t, 0.0);
            gn_array *want = gn_where(gn_lt_s(u, 0.25), zero, gn_full(g, t, GN_SHAPE(17, 61), 1.0 / 0.75));
            assert_true(gn_dtype_of(y) == t && gn_array_equal(y, want, false));
            assert_false(gn_array_equal(y, next, false));
            const double mean = gn_item(gn_mean(gn_cast(y, GN_F64), GN_ALL));
            assert_true(mean > 0.9 && mean < 1.1);
            assert_int_equal(gn_gradients(gn_sum(y, GN_ALL), &x, 1, false, &dx), GN_OK);
            assert_true(gn_array_equal(dx, y, false)); // the same mask
            assert_true(gn_array_equal(gn_dropout(x, 0.25, false), x, false) && gn_array_equal(gn_dropout(x, 0.0, true), x, false));
            gn_array *none = gn_dropout(gn_full(g, t, GN_SHAPE(9), INFINITY), 1.0, true);
            assert_true(gn_item(gn_sum(none, GN_ALL)) == 0.0);
            gn_array *all_nan = gn_dropout(gn_full(g, t, GN_SHAPE(64), NAN), 0.5, true);
            const int64_t count = gn_item_int(gn_sum(gn_cast(gn_isnan(all_nan), GN_I32), GN_ALL));
            assert_true(count > 10 && count < 54); // the others are 0
        }
    gn_array *x = gn_requires_grad(series(g, GN_F64, GN_SHAPE(3, 5), 2.0, -1.0), true);
    assert_true(gn_gradcheck(seeded_dropout, &x, 1, 0.0, NULL) < 1e-8);
    assert_true(gn_gradcheck(seeded_twice, &x, 1, 0.0, NULL) < 1e-7);
    assert_null(gn_dropout(x, NAN, true));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_dropout: the probability nan is not between 0 and 1");
    assert_null(gn_dropout(gn_ones(g, GN_I32, GN_SHAPE(2)), 0.5, true));
    expect_error(g, GN_ERROR_DTYPE, "gn_dropout: int32 is not a float dtype");
}

static gn_array *embedded(gn_context *g, gn_array *const *in, int n, void *user) {
    const int32_t rows[] = {2, 0, 2, 3, 1, 2};
    (void)n;
    return gn_sum(gn_square(gn_embedding(gn_array_from(g, GN_I32, GN_SHAPE(2, 3), rows), in[0], *(int64_t *)user)), GN_ALL);
}

static gn_array *embedded_twice(gn_context *g, gn_array *const *in, int n, void *user) {
    gn_array *dx = NULL;
    return gn_gradients(embedded(g, in, n, user), in, n, true, &dx) == GN_OK ? gn_sum(gn_sin(dx), GN_ALL) : NULL;
}

static gn_array *similar(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g, (void)n, (void)user;
    return gn_sum(gn_sin(gn_mul_s(gn_cosine_similarity(in[0], in[1], 1, 1e-8), 2.0)), GN_ALL);
}

static gn_array *similar_twice(gn_context *g, gn_array *const *in, int n, void *user) {
    gn_array *dx[2];
    if (gn_gradients(similar(g, in, n, user), in, n, true, dx) != GN_OK) return NULL;
    return gn_add(gn_sum(gn_sin(dx[0]), GN_ALL), gn_sum(gn_square(dx[1]), GN_ALL));
}

static void test_embedding(void **state) {
    gn_context *g = (gn_context *)*state;
    const int32_t rows[] = {2, 0, 2, 3, 1, 2};
    int64_t padding = GN_NONE;
    for (int k = 0; k < 3; k++)
        GN_SCOPE(g) {
            const gn_dtype kinds[] = {GN_F32, GN_F16, GN_I64}, t = k == 2 ? GN_F32 : kinds[k];
            gn_array *i = gn_array_from(g, GN_I32, GN_SHAPE(2, 3), rows), *dw = NULL;
            if (k == 2) i = gn_cast(i, GN_U8);
            gn_array *w = gn_requires_grad(gn_cast(gn_reshape(gn_arange(g, GN_F32, 0, 8, 1), GN_SHAPE(4, 2)), t), true);
            w = gn_requires_grad(gn_detach(gn_eval(w)), true);
            gn_array *y = gn_embedding(i, w, k == 0 ? GN_NONE : k == 1 ? 2 : -2);
            expect_shape(y, 2, 3, 2);
            expect_values(y, 4, 5, 0, 1, 4, 5, 6, 7, 2, 3, 4, 5);
            gn_array *factor = gn_reshape(gn_arange(g, t, 0, 12, 1), GN_SHAPE(2, 3, 2));
            assert_int_equal(gn_gradients(gn_sum(gn_mul(y, factor), GN_ALL), &w, 1, false, &dw), GN_OK);
            assert_true(gn_dtype_of(dw) == t);
            if (k == 0) expect_values(dw, 2, 3, 8, 9, 14, 17, 6, 7);
            else expect_values(dw, 2, 3, 8, 9, 0, 0, 6, 7);
        }
    gn_array *w = gn_requires_grad(series(g, GN_F64, GN_SHAPE(4, 2), 2.0, -1.0), true);
    assert_true(gn_gradcheck(embedded, &w, 1, 0.0, &padding) < 1e-8);
    assert_true(gn_gradcheck(embedded_twice, &w, 1, 0.0, &padding) < 1e-7);
    gn_array *pair[2];
    pair[0] = gn_requires_grad(series(g, GN_F64, GN_SHAPE(3, 4), 2.0, -1.0), true);
    pair[1] = gn_requires_grad(series(g, GN_F64, GN_SHAPE(1, 4), -3.0, 1.3), true); // broadcasts
    assert_true(gn_gradcheck(similar, pair, 2, 0.0, NULL) < 1e-8);
    assert_true(gn_gradcheck(similar_twice, pair, 2, 0.0, NULL) < 1e-7);
    // The padding row by its other name; whole numbers and truths as targets.
    gn_array *table = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(3, 2)), true), *d = NULL;
    gn_array *rows_of = gn_array_from(g, GN_I8, GN_SHAPE(3), (int8_t[]){-1, 2, 0});
    assert_int_equal(gn_gradients(gn_sum(gn_embedding(rows_of, table, 2), GN_ALL), &table, 1, false, &d), GN_OK);
    expect_values(d, 1, 1, 0, 0, 0, 0);
    gn_array *p = gn_full(g, GN_F32, GN_SHAPE(2), 0.5), *truth = gn_array_from(g, GN_U8, GN_SHAPE(2), (uint8_t[]){0, 1});
    assert_true(fabs(gn_item(gn_bce_loss(p, truth, GN_REDUCE_MEAN)) - 0.6931471805599453) < 1e-6);
    gn_array *flat = gn_zeros(g, GN_F32, GN_SHAPE(2));
    assert_true(fabs(gn_item(gn_bce_with_logits(flat, gn_cast(truth, GN_BOOL), NULL, GN_REDUCE_MEAN)) - 0.6931471805599453) < 1e-6);
    assert_null(gn_embedding(gn_ones(g, GN_F32, GN_SHAPE(2)), w, GN_NONE));
    expect_error(g, GN_ERROR_DTYPE, NULL);
    assert_null(gn_embedding(gn_ones(g, GN_I32, GN_SHAPE(2)), gn_ones(g, GN_I32, GN_SHAPE(2, 2)), GN_NONE));
    expect_error(g, GN_ERROR_DTYPE, "gn_embedding: the table is int32 (2,2), not a float (rows, size)");
    assert_null(gn_embedding(gn_ones(g, GN_I32, GN_SHAPE(2)), w, 4));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_embedding: padding 4 of 4 rows");
}

// Of halves that wait to be widened, which kernels read as they are.
static void test_widened(void **state) {
    (void)state;
    static const int lengths[] = {9, 40, 1000, 9001};
    gn_context *g = test_open();
    for (int i = 0; i < 8; i++) {
        enum { ROWS = 3 };
        const int n = lengths[i / 2];
        const int32_t labels[ROWS] = {0, n / 2, n - 1};
        float *x = (float *)malloc(sizeof(float) * (size_t)(ROWS * n)), have[ROWS];
        double mean = 0;
        for (int k = 0; k < ROWS * n; k++) x[k] = (float)(k * 37 % 101) / 16 - 3; // bfloat16 holds no more than 8 bits
        gn_scope_begin(g);
        gn_array *half = gn_eval(gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(ROWS, n), x), i % 2 ? GN_F16 : GN_BF16));
        gn_read(gn_cast(half, GN_F32), x, sizeof(float) * (size_t)(ROWS * n));
        gn_array *y = gn_logsumexp(gn_cast(half, GN_F32), 1);
        assert_int_equal(gn_dtype_of(y), GN_F32);
        assert_int_equal(gn_read(y, have, sizeof have), GN_OK);
        for (int row = 0; row < ROWS; row++) {
            double sum = 0;
            for (int k = 0; k < n; k++) sum += exp((double)x[row * n + k]);
            mean += (log(sum) - (double)x[row * n + labels[row]]) / (double)ROWS;
            if (!(fabs((double)have[row] - log(sum)) <= 2e-6 * log(sum))) fail_msg("%d numbers: %.9g, not %.9g", n, (double)have[row], log(sum));
        }
        const double found = gn_item(gn_cross_entropy(gn_cast(half, GN_F32), gn_array_from(g, GN_I32, GN_SHAPE(ROWS), labels)));
        if (!(fabs(found - mean) <= 2e-6 * mean)) fail_msg("%d classes: %.9g, not %.9g", n, found, mean);
        gn_scope_end(g);
        free(x);
    }
    test_close(g);
}

// Logits that share a large number, which they hold exactly: loss and gradient are those without it, and as exact.
static void test_offset(void **state) {
    enum { ROWS = 20, KINDS = 3 };
    static const int lengths[] = {1, 3, 19, 40, 1000, 5000, 9001, 70000};
    (void)state;
    gn_context *g = test_open();
    for (int i = 0; i < 2 * (int)(sizeof lengths / sizeof *lengths); i++) {
        const int n = lengths[i / 2], rows = n > 1000 ? 2 : ROWS, count = rows * n;
        const double offset = i % 2 ? -0x1p14 : 0x1p13;
        float *x = (float *)malloc(sizeof(float) * (size_t)count);
        double *slope[KINDS], want[KINDS] = {0, 0, 0}, share = 0, *weight = (double *)malloc(sizeof(double) * (size_t)n);
        int32_t labels[ROWS];
        for (int k = 0; k < KINDS; k++) slope[k] = (double *)malloc(sizeof(double) * (size_t)count);
        for (int k = 0; k < count; k++) x[k] = (float)(offset + (double)(k * 37 % 101) / 16);
        for (int k = 0; k < n; k++) weight[k] = 0.5 + (double)(k % 3);
        for (int row = 0; row < rows; row++) {
            const float *at = x + row * n;
            double sum = 0;
            labels[row] = (row * 5 + 1) % n;
            share += weight[labels[row]];
            for (int k = 0; k < n; k++) sum += exp((double)at[k] - offset);
            for (int k = 0; k < n; k++) {
                const double log_p = (double)at[k] - offset - log(sum), p = exp(log_p), one = k == labels[row], some = 0.9 * one + 0.1 / n; // smoothed
                want[0] -= one * log_p;
                want[1] -= some * log_p;
                want[2] -= one * weight[k] * log_p;
                slope[0][row * n + k] = p - one;
                slope[1][row * n + k] = p - some;
                slope[2][row * n + k] = weight[labels[row]] * (p - one);
            }
        }
        gn_scope_begin(g);
        gn_array *l = gn_array_from(g, GN_I32, GN_SHAPE(rows), labels), *w = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(n), weight), GN_F32);
        gn_array *z = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(rows, n), x), true);
        for (int how = 0; how <= KINDS; how++) {
            // The last one has the rows beside the classes: (1, classes, rows).
            const int as = how == KINDS ? 0 : how;
            gn_array *beside = gn_expand_dims(gn_transpose(z), 0), *dx = NULL;
            gn_array *y = how == 0   ? gn_cross_entropy(z, l)
                          : how == KINDS ? classes(beside, gn_expand_dims(l, 0), NULL, 0.0, 0, GN_REDUCE_MEAN)
                                     : classes(z, l, how == 2 ? w : NULL, how == 1 ? 0.1 : 0.0, 0, GN_REDUCE_MEAN);
            const double by = how == 2 ? share : rows, expected = want[as] / by, found = gn_item(y);
            if (!(fabs(found - expected) <= 2e-6 * expected + 1e-15)) // what float64 rounds
                fail_msg("loss %d of %d classes about %g: %.9g, not %.9g", how, n, offset, found, expected);
            assert_int_equal(gn_gradients(y, &z, 1, false, &dx), GN_OK);
            float *have = (float *)malloc(sizeof(float) * (size_t)count);
            assert_int_equal(gn_read(dx, have, sizeof(float) * (size_t)count), GN_OK);
            for (int k = 0; k < count; k++) {
                const double exact = slope[as][k] / by;
                if (!(fabs((double)have[k] - exact) <= 3e-6 * fabs(exact) + 1e-7 / by))
                    fail_msg("slope %d of %d classes about %g: [%d] is %.9g, not %.9g", how, n, offset, k, (double)have[k], exact);
            }
            free(have);
        }
        // The slope of logsumexp is softmax.
        gn_array *dx = NULL, *p = gn_add(gn_array_from(g, GN_F64, GN_SHAPE(rows, n), slope[0]), gn_eq(gn_expand_dims(l, 1), gn_arange(g, GN_I32, 0, n, 1)));
        assert_int_equal(gn_gradients(gn_sum(gn_logsumexp(z, 1), GN_ALL), &z, 1, false, &dx), GN_OK);
        assert_true(gn_item(gn_max(gn_sub(gn_abs(gn_sub(dx, p)), gn_mul_s(p, 3e-6)), GN_ALL)) < 1e-7);
        gn_scope_end(g);
        for (int k = 0; k < KINDS; k++) free(slope[k]);
        free(weight);
        free(x);
    }
    test_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_widened), cmocka_unit_test(test_offset), GN_TEST(test_gelu_tanh), GN_TEST(test_values), GN_TEST(test_differences), GN_TEST(test_odd_values), GN_TEST(test_wrong_labels),
                                       GN_TEST(test_refusals), GN_TEST(test_dropout), GN_TEST(test_embedding)};
    return test_run(tests);
}
