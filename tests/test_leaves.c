// What a gradient holds, and who holds it: no cycle of references keeps arrays, what gn_grad lends is not given away,
// and a gradient that gn_grad cannot give is explained.
#include "test.h"

static gn_array *one_leaf(gn_context *g, gn_dtype t) {
    return gn_requires_grad(gn_eval(gn_full(g, t, GN_SHAPE(4, 4), 2.0)), true);
}

// Backward passes whose pending gradients depend on the leaves: on their own, on each other's.
static void leave_unread(gn_context *g, gn_dtype t, int kind) {
    gn_array *x = one_leaf(g, t), *w = one_leaf(g, t), *both[2], *grads[2] = {NULL, NULL}, *kept;
    gn_optimizer *opt = NULL;
    both[0] = x, both[1] = w;
    switch (kind) {
    case 0: gn_backward(gn_sum(gn_rdiv_s(x, 3.0), GN_ALL)); break;
    case 1: gn_backward(gn_mean(gn_square(gn_matmul(x, w)), GN_ALL)); break;
    case 2: gn_backward(gn_sum(gn_mul(gn_exp(x), gn_exp(w)), GN_ALL)); break;
    case 3: // accumulated
        for (int i = 0; i < 3; i++) gn_backward(gn_sum(gn_mul(gn_log(x), w), GN_ALL));
        break;
    case 4: // of gradients
        gn_gradients(gn_sum(gn_mul(gn_exp(x), gn_exp(w)), GN_ALL), both, 2, true, grads);
        gn_backward(gn_sum(gn_mul(grads[0], grads[1]), GN_ALL));
        break;
    case 5: // a gradient with a gradient
        gn_backward(gn_sum(gn_exp(x), GN_ALL));
        gn_backward(gn_sum(gn_exp(gn_requires_grad(gn_grad(x), true)), GN_ALL));
        break;
    case 6: // an optimizer that outlives the scope
        opt = gn_sgd(both, 2, NULL);
        gn_backward(gn_sum(gn_mul(gn_exp(x), gn_exp(w)), GN_ALL));
        gn_scope_end(g);
        assert_int_equal(gn_step(opt), GN_OK);
        gn_scope_begin(g);
        gn_optimizer_free(opt);
        break;
    case 7: // a leaf that only a record holds is not given a gradient
        kept = gn_exp(gn_mul(x, w));
        gn_release(x);
        gn_backward(gn_sum(kept, GN_ALL));
        assert_non_null(gn_grad(w));
        break;
    case 8: // a gradient that is retained holds the leaf, not the other way round
        gn_backward(gn_sum(gn_exp(x), GN_ALL));
        kept = gn_retain(gn_grad(x));
        gn_release(x);
        assert_true(gn_item(gn_sum(kept, GN_ALL)) > 0.0);
        gn_release(kept);
        break;
    default: // replaced
        gn_backward(gn_sum(gn_mul(gn_exp(x), gn_exp(w)), GN_ALL));
        gn_no_grad_begin(g);
        gn_set(&x, gn_sub(x, gn_mul_s(gn_grad(x), 0.1)));
        gn_no_grad_end(g);
        gn_backward(gn_sum(gn_mul(gn_exp(x), gn_exp(w)), GN_ALL));
    }
}

static void test_unread_gradients_go(void **state) {
    static const gn_dtype types[] = {GN_F32, GN_F16, GN_BF16, GN_F64};
    (void)state;
    gn_context *g = test_open();
    gn_memory_stats before, after;
    gn_memory_get(g, &before);
    for (int k = 0; k < 4; k++)
        for (int kind = 0; kind < 10; kind++) {
            GN_SCOPE(g) {
                leave_unread(g, types[k], kind);
            }
            gn_memory_get(g, &after);
            if (after.arrays != before.arrays || gn_status_get(g) != GN_OK)
                fail_msg("%s, kind %d: %d arrays are left %s", gn_dtype_name(types[k]), kind,
                         (int)(after.arrays - before.arrays), gn_error(g));
        }
    test_close(g);
}

static void test_lent_gradients(void **state) {
    (void)state;
    gn_context *g = test_open();
    gn_array *x = one_leaf(g, GN_F32), *slot, *other = gn_ones(g, GN_F32, GN_SHAPE());
    gn_backward(gn_sum(gn_square(x), GN_ALL));
    gn_array *lent = slot = gn_grad(x);
    gn_release(lent);
    expect_error(
        g, GN_ERROR_ARGUMENT,
        "gn_release: this gradient belongs to the array that gn_grad was asked for; gn_zero_grad drops it "
        "there, gn_retain gives a reference of your own");
    gn_set(&slot, other);
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_ptr_equal(slot, lent);
    assert_null(gn_keep(lent));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_ptr_equal(gn_grad(x), lent);
    // A slot that takes it has a reference of its own: the next pass leaves it as it was.
    gn_set(&other, lent);
    gn_backward(gn_sum(gn_square(x), GN_ALL));
    assert_true(gn_item(gn_sum(other, GN_ALL)) == 64.0);
    assert_true(gn_item(gn_sum(gn_grad(x), GN_ALL)) == 128.0);
    gn_release(other);
    // One that a scope owns, released before its end: what is left is x's.
    GN_SCOPE(g) {
        slot = gn_ones(g, GN_F32, GN_SHAPE());
        gn_set(&slot, gn_grad(x));
        gn_release(slot);
    }
    gn_retain(gn_grad(x));
    gn_release(gn_grad(x));
    // Integers do not become parameters by taking the place of one.
    gn_array *parameter = one_leaf(g, GN_F32);
    gn_set(&parameter, gn_ones(g, GN_I32, GN_SHAPE(3)));
    assert_false(gn_needs_grad(parameter));
    gn_release(parameter);
    assert_true(gn_item(gn_sum(gn_grad(x), GN_ALL)) == 128.0);
    assert_int_equal(gn_status_get(g), GN_OK);
    test_close(g);
}

static void count_warnings(void *user, gn_log_level level, const char *text) {
    if (level == GN_LOG_WARNING && strstr(text, "gn_no_grad_begin") != NULL) ++*(int *)user;
}

// Gradient descent by hand, first without gn_no_grad_begin.
static void test_forgotten_no_grad(void **state) {
    (void)state;
    int warnings = 0;
    gn_options o = test_options();
    o.log = count_warnings;
    o.log_user = &warnings;
    gn_context *g = test_open_with(&o);
    for (int right = 0; right < 2; right++) {
        gn_array *w = one_leaf(g, GN_F32);
        for (int i = 0; i < 2; i++) {
            gn_scope_begin(g);
            gn_backward(gn_sum(gn_square(w), GN_ALL));
            assert_int_equal(warnings, right);
            gn_array *grad = gn_grad(w);
            assert_int_equal(grad != NULL, right || i == 0);
            if (grad == NULL) gn_grad(w);
            if (right) gn_no_grad_begin(g);
            if (grad != NULL) gn_set(&w, gn_sub(w, gn_mul_s(grad, 0.25)));
            if (right) gn_no_grad_end(g);
            gn_scope_end(g);
        }
        assert_int_equal(warnings, 1);
        assert_true(gn_item(gn_sum(w, GN_ALL)) == (right ? 8.0 : 16.0));
        gn_release(w);
    }
    assert_int_equal(gn_status_get(g), GN_OK);
    test_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unread_gradients_go),
                                       cmocka_unit_test(test_lent_gradients),
                                       cmocka_unit_test(test_forgotten_no_grad)};
    return test_run(tests);
}
