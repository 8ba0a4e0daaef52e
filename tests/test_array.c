// Lifetime, errors, reading and writing, laziness as a user sees it, and allocation failure at every point.

#include "test.h"

// `count` values from an array of doubles.
#define expect_list(a, count, values) expect_values_at((a), (count), (values), __FILE__, __LINE__)

// ---- lifetime

static uint64_t alive(gn_context *g) {
    gn_memory_stats s;
    gn_memory_get(g, &s);
    return s.arrays;
}

static void test_scopes(void **state) {
    gn_context *g = (gn_context *)*state;
    uint64_t before = alive(g);
    gn_array *kept = NULL, *twice = NULL;
    GN_SCOPE(g) {
        gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(3));
        GN_SCOPE(g) {
            gn_array *b = gn_add_s(a, 1.0);
            kept = gn_keep(gn_mul(b, b));
            twice = gn_keep(gn_keep(gn_neg(b)));
        }
        double four[] = {4, 4, 4};
        expect_list(kept, 3, four); // lives in the outer scope
    }
    double minus[] = {-2, -2, -2};
    expect_list(twice, 3, minus);
    assert_int_equal(gn_status_get(g), GN_OK);
    gn_release(kept); // dropped by the inner scope of this function: an error
    expect_error(g, GN_ERROR_STALE, "gn_release: array argument 1 was released; gn_keep keeps one beyond its scope");
    gn_release(twice);
    // expect_values leaves its temporaries to the fixture's scope.
    assert_true(alive(g) >= before);
}

static void test_reference_counts(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_full(g, GN_F32, GN_SHAPE(2), 3.0);
    gn_array *v = gn_reshape(a, GN_SHAPE(2, 1));
    assert_ptr_equal(gn_retain(a), a);
    gn_release(a); // the retained one
    gn_release(a); // the scope's
    double three[] = {3, 3};
    expect_list(v, 2, three); // a view keeps the memory
    assert_null(gn_neg(a));
    expect_error(g, GN_ERROR_STALE, "gn_neg: array argument 1 was released; gn_keep keeps one beyond its scope");
}

// A released array stays released, however many live beside it, in bounded memory.
static void test_stale_stays(void **state) {
    (void)state;
    static const int beside[] = {0, 120, 700, 3000};
    for (size_t k = 0; k < sizeof beside / sizeof beside[0]; k++) {
        gn_context *g = test_open();
        gn_memory_stats before, after;
        gn_array *dead[100];
        for (int i = 0; i < beside[k]; i++) assert_non_null(gn_scalar(g, GN_F32, i));
        gn_memory_get(g, &before);
        for (int i = 0; i < 100; i++) {
            dead[i] = gn_scalar(g, GN_F32, i);
            gn_release(dead[i]);
        }
        for (int i = 0; i < 10000; i++) {
            gn_array *a = gn_scalar(g, GN_F32, 1);
            for (int j = 0; j < 100; j++) assert_ptr_not_equal(a, dead[j]);
            gn_release(a);
            if (i % 40 != 0) continue;
            assert_null(gn_neg(dead[i / 40 % 100]));
            expect_error(g, GN_ERROR_STALE, "gn_neg: array argument 1 was released; gn_keep keeps one beyond its scope");
            assert_int_equal(gn_size(dead[i / 40 % 100]), 0);
            expect_error(g, GN_ERROR_STALE, "gn_size: array argument 1 was released; gn_keep keeps one beyond its scope");
        }
        gn_release(dead[7]);
        expect_error(g, GN_ERROR_STALE, "gn_release: array argument 1 was released; gn_keep keeps one beyond its scope");
        gn_array *slot = gn_scalar(g, GN_F32, 2);
        gn_set(&slot, dead[3]);
        expect_error(g, GN_ERROR_STALE, "gn_set: array argument 1 was released; gn_keep keeps one beyond its scope");
        assert_true(gn_item(slot) == 2.0);
        assert_true(gn_context_of(dead[0]) == g);
        gn_release(slot);
        gn_memory_get(g, &after);
        assert_int_equal(after.arrays, before.arrays);
        if (!test_on_vulkan()) // where kernels are decoded and compiled meanwhile
            assert_true(after.host_used - before.host_used < 700000);
        test_close(g);
    }
}

static void test_early_release_keeps_pending_work(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_arange(g, GN_F32, 0, 4, 1);
    gn_array *b = gn_mul_s(a, 2.0);
    gn_array *c = gn_add_s(b, 1.0);
    gn_release(a);
    gn_release(b);
    double odd[] = {1, 3, 5, 7};
    expect_list(c, 4, odd);
}

static void test_set_in_a_loop(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *w = gn_zeros(g, GN_F32, GN_SHAPE(2));
    uint64_t before = alive(g);
    for (int i = 0; i < 100; i++)
        GN_SCOPE(g) { gn_set(&w, gn_add_s(w, 1.0)); }
    assert_true(alive(g) <= before + 64); // pending links of the chain at most
    double hundred[] = {100, 100};
    expect_list(w, 2, hundred);
    gn_set(&w, gn_reshape(w, GN_SHAPE(7))); // fails: the old value stays
    expect_error(g, GN_ERROR_SHAPE, NULL);
    expect_list(w, 2, hundred);
    gn_array *mine = NULL;
    GN_SCOPE(g) { gn_set(&mine, gn_neg(w)); }
    double minus[] = {-100, -100};
    expect_list(mine, 2, minus); // an empty slot belongs to the caller
    gn_set(&mine, NULL);
    assert_null(mine);
}

static void test_deep_chains_are_freed_without_recursion(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(1)), true);
    gn_array *y = NULL;
    gn_set(&y, gn_mul_s(x, 1.0));
    for (int i = 0; i < 20000; i++)
        GN_SCOPE(g) { gn_set(&y, gn_mul_s(y, 1.0)); }
    assert_true(gn_item(y) == 1.0);
    gn_set(&y, NULL);
    for (int leaf = 0; leaf < 4; leaf++) // a conversion to the dtype that is there adds nothing to programs
        GN_SCOPE(g) {
            gn_array *from = leaf < 2 ? gn_full(g, GN_F32, GN_SHAPE(2), 2.0) : gn_complex(gn_add_s(x, 1.0), gn_mul_s(x, 3.0));
            if (leaf == 1) gn_requires_grad(from, true);
            if (leaf == 3) gn_eval(from);
            gn_array *z = gn_retain(from), *was = NULL;
            for (int i = 0; i < 100000; i++)
                GN_SCOPE(g) {
                    if (i == 50000) was = gn_retain(z);
                    gn_set(&z, gn_cast(z, gn_dtype_of(z)));
                }
            if (leaf == 0) gn_assign(was, gn_zeros(g, GN_F32, GN_SHAPE(2))); // is not seen by what was made of it before
            assert_true(gn_item(gn_slice(gn_real(z), 0, 0, 1, 1)) == 2.0 && gn_item(gn_slice(gn_real(from), 0, 0, 1, 1)) == 2.0);
            if (leaf == 1) {
                assert_int_equal(gn_backward(gn_sum(z, GN_ALL)), GN_OK);
                assert_true(gn_item(gn_sum(gn_grad(from), GN_ALL)) == 2.0);
            }
            gn_release(was);
            gn_release(z);
        }
}

static void test_close_frees_everything(void **state) {
    (void)state;
    gn_context *g = test_open();
    gn_array *a = gn_requires_grad(gn_randn(g, GN_F32, GN_SHAPE(5, 5)), true);
    gn_array *loss = gn_sum(gn_square(gn_matmul(a, gn_transpose(a))), GN_ALL);
    gn_backward(loss);
    gn_scope_begin(g);
    gn_add(a, a); // pending and owned by a scope that is never ended
    assert_int_equal(gn_status_get(g), GN_OK);
    test_close(g);
}

// ---- errors

static void test_first_error_stays(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(3, 4)), *b = gn_ones(g, GN_F32, GN_SHAPE(5, 6));
    gn_array *y = gn_relu(gn_add(gn_matmul(a, b), a));
    assert_null(y);
    assert_null(gn_add(a, b));
    expect_error(g, GN_ERROR_SHAPE, "gn_matmul: (3,4) x (5,6): inner dimensions 4 and 5 differ");
    assert_null(gn_add(a, b));
    expect_error(g, GN_ERROR_SHAPE, "gn_add: shapes (3,4) and (5,6) do not broadcast");
    assert_non_null(gn_add(a, a));
    assert_int_equal(gn_status_get(g), GN_OK);
}

static void test_null_and_foreign_arguments(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(2));
    assert_null(gn_add(NULL, NULL)); // nothing to report to
    assert_int_equal(gn_status_get(g), GN_OK);
    assert_null(gn_add(a, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_add: array argument 2 is NULL");
    gn_context *other = test_open_with(NULL);
    gn_array *theirs = gn_ones(other, GN_F32, GN_SHAPE(2));
    assert_null(gn_add(a, theirs));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_add: array argument 2 belongs to another context");
    gn_close(other);
    assert_true(isnan(gn_item(NULL)));
    assert_int_equal(gn_read(NULL, NULL, 0), GN_ERROR_ARGUMENT);
    assert_int_equal(gn_size(NULL), 0);
    gn_release(NULL);
    gn_close(NULL);
    gn_scope_begin(NULL);
    gn_scope_end(NULL);
    gn_set(NULL, a);
    assert_int_equal(gn_status_get(g), GN_OK);
    gn_scope_end(g); // the fixture's
    gn_scope_end(g);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_scope_end: no scope is open");
    gn_scope_begin(g);
}

// Overwrites what is given back, so that nobody can look at it and find it as it was.
static void spoil(void *user, void *data, size_t size) {
    (void)user;
    memset(data, 0xa5, size);
    free(data);
}
static void *plain_memory(void *user, size_t size) {
    (void)user;
    return malloc(size);
}

// With no context open, what is left of one is no longer looked at. First in the list, since later tests share one.
static void test_after_close(void **state) {
    (void)state;
    gn_options o = test_options();
    o.backend = GN_BACKEND_CPU;
    o.allocator.allocate = plain_memory;
    o.allocator.release = spoil;
    gn_context *g = gn_open(&o);
    gn_array *a = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(3)), true), *pending = gn_exp(a), *slot = a, *out = a;
    gn_optimizer *opt = gn_sgd(&a, 1, NULL);
    gn_params *p = gn_params_new(g);
    assert_non_null(pending);
    gn_close(g);
    assert_null(gn_add(a, pending));
    assert_null(gn_sin(a)); // its table is entered first
    assert_null(gn_nanmedian(a, GN_ALL));
    assert_null(gn_context_of(a));
    assert_int_equal(gn_size(a), 0);
    assert_true(isnan(gn_item(pending)));
    assert_int_equal(gn_read(pending, &o, 0), GN_ERROR_ARGUMENT);
    assert_int_equal(gn_gradients(pending, &a, 1, false, &out), GN_ERROR_ARGUMENT);
    assert_int_equal(gn_backward(pending), GN_ERROR_ARGUMENT);
    assert_int_equal(gn_step(opt), GN_ERROR_ARGUMENT);
    assert_int_equal(gn_params_count(p), 0);
    assert_null(gn_sgd(&a, 1, NULL));
    gn_optimizer_free(opt);
    gn_set(&slot, pending);
    gn_release(a);
    gn_scope_end(g);
    assert_int_equal(gn_status_get(g), GN_ERROR_ARGUMENT);
    gn_close(g);
    // Without parameters there is no context to tell.
    assert_null(gn_sgd(NULL, 0, NULL));
    assert_null(gn_adam(NULL, 3, NULL));
    assert_null(gn_clip_grad_norm(NULL, 0, 1));
    assert_int_equal(gn_optimizer_add_group(NULL, NULL, 0, 1, 0), GN_ERROR_ARGUMENT);
    assert_int_equal(gn_ema_update(NULL, NULL, 0, .9), GN_ERROR_ARGUMENT);
}

// A handle of another kind, of which a compiler of C only warns, is told from the right one before it is used.
static void test_handles_of_other_kinds(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2)), true), *out[1];
    gn_optimizer *opt = gn_sgd(&a, 1, NULL);
    gn_params *params = gn_params_new(g);
    gn_loader_field field;
    memset(&field, 0, sizeof field);
    field.array = a;
    gn_loader *loader = gn_loader_new(g, &field, 1, 2, NULL);
    void *array = a, *context = g, *optimizer = opt, *list = params, *deals = loader;
    gn_device_info info;

    gn_zero_grad((gn_array *)optimizer);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_zero_grad: array argument 1 is a gn_optimizer");
    assert_null(gn_add(a, (gn_array *)list));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_add: array argument 2 is a gn_params");
    assert_null(gn_exp((gn_array *)context));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_exp: array argument 1 is a gn_context");
    assert_int_equal(gn_backward((gn_array *)deals), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_backward: array argument 1 is a gn_loader");
    assert_int_equal(gn_size((gn_array *)optimizer), 0);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_size: array argument 1 is a gn_optimizer");
    assert_ptr_equal(gn_context_of((gn_array *)optimizer), g);
    gn_array *both[2];
    both[0] = a, both[1] = (gn_array *)optimizer;
    assert_null(gn_adam(both, 2, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_adam: array argument 2 is a gn_optimizer");
    assert_int_equal(gn_gradients(gn_sum(a, GN_ALL), both + 1, 1, false, out), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_gradients: parameter 1 is not an array of this context");
    field.array = (gn_array *)optimizer;
    assert_null(gn_loader_new(g, &field, 1, 2, NULL));
    expect_error(g, GN_ERROR_STALE, "gn_loader_new: the array of field 0 was released or is another context's");

    assert_int_equal(gn_step((gn_optimizer *)array), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_step: a gn_array was given as a gn_optimizer");
    gn_zero_grads((gn_optimizer *)list);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_zero_grads: a gn_params was given as a gn_optimizer");
    gn_lr_set((gn_optimizer *)context, 1);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_lr_set: a gn_context was given as a gn_optimizer");
    assert_true(isnan(gn_lr_get((gn_optimizer *)array)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_lr_get: a gn_array was given as a gn_optimizer");
    gn_optimizer_free((gn_optimizer *)list);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_optimizer_free: a gn_params was given as a gn_optimizer");
    assert_int_equal(gn_optimizer_add_group((gn_optimizer *)list, &a, 1, 1, 0), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_optimizer_add_group: the optimizer is none, or of another context");
    gn_array *scale = gn_ones(g, GN_F32, GN_SHAPE(2));
    assert_int_equal(gn_step_scaled((gn_optimizer *)array, scale, 0, 0), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_step_scaled: the optimizer is none, or of another context");

    gn_params_free((gn_params *)optimizer);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_params_free: a gn_optimizer was given as a gn_params");
    assert_int_equal(gn_params_count((gn_params *)array), 0);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_params_count: a gn_array was given as a gn_params");
    assert_null(gn_params_get((gn_params *)array, "x"));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_params_get: a gn_array was given as a gn_params");
    assert_int_equal(gn_params_add((gn_params *)optimizer, "x", a), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_params_add: the list is none, or of another context");
    assert_int_equal(gn_params_load((gn_params *)deals, "x"), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_params_load: a gn_loader was given as a gn_params");
    assert_int_equal(gn_params_add_optimizer(params, "x", (gn_optimizer *)array), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_params_add_optimizer: the optimizer is none, or of another context");
    assert_int_equal(gn_optimizer_restore(opt, (gn_params *)optimizer, "x"), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_optimizer_restore: a gn_optimizer was given as a gn_params");

    assert_false(gn_loader_next((gn_loader *)array, out));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_loader_next: a gn_array was given as a gn_loader");
    assert_int_equal(gn_loader_batches((gn_loader *)list), 0);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_loader_batches: a gn_params was given as a gn_loader");
    assert_int_equal(gn_loader_seek((gn_loader *)list, 0, 0), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_loader_seek: a gn_params was given as a gn_loader");
    gn_loader_free((gn_loader *)context);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_loader_free: a gn_context was given as a gn_loader");

    gn_close((gn_context *)optimizer);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_close: a gn_optimizer was given as a gn_context");
    assert_null(gn_normal((gn_context *)array, GN_F32, GN_SHAPE(2), 0, -1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_normal: a gn_array was given as a gn_context");
    assert_null(gn_einsum_list((gn_context *)array, "i", &a, 1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_einsum: a gn_array was given as a gn_context");
    assert_null(gn_zeros((gn_context *)array, GN_F32, GN_SHAPE(2)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_zeros: a gn_array was given as a gn_context");
    gn_device_get((gn_context *)array, &info);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_device_get: a gn_array was given as a gn_context");
    assert_int_equal(gn_status_get((gn_context *)array), GN_ERROR_ARGUMENT);
    assert_string_equal(gn_error((gn_context *)list), "gn_error: no context");
    gn_error_clear((gn_context *)array);

    gn_loader_free(loader);
    gn_params_free(params);
    gn_optimizer_free(opt);
    assert_int_equal(gn_status_get(g), GN_OK);
}

// A scope that could not begin ends as any other, though there is memory for those of the calls in between.
static void test_scope_without_memory(void **state) {
    (void)state;
    gn_context *g = test_open();
    test_refuse(0, false);
    gn_scope_begin(g);
    test_refuse(-1, false);
    expect_error(g, GN_ERROR_OUT_OF_MEMORY, NULL);
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(3, 3)), *y = gn_std(a, GN_ALL, 0);
    assert_true(gn_item(y) == 0.0);
    gn_scope_begin(g);
    gn_neg(a);
    gn_scope_end(g);
    gn_scope_end(g);
    assert_int_equal(gn_status_get(g), GN_OK);
    gn_scope_end(g);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_scope_end: no scope is open");
    gn_release(a);
    gn_release(y);
    test_close(g);
}

// So do gn_no_grad_begin and gn_autocast_begin, whose names are in the message.
static void test_modes_without_memory(void **state) {
    (void)state;
    for (int mode = 0; mode < 2; mode++) {
        gn_context *g = test_open();
        test_refuse(0, false);
        if (mode) gn_autocast_begin(g, GN_F16);
        else gn_no_grad_begin(g);
        test_refuse(-1, false);
        assert_non_null(strstr(gn_error(g), mode ? "gn_autocast_begin: out of memory" : "gn_no_grad_begin: out of memory"));
        expect_error(g, GN_ERROR_OUT_OF_MEMORY, NULL);
        gn_array *w = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(3, 3)), true), *y = NULL;
        for (int open = 2; open >= 0; open--) { // the second one begins, and is the first to end
            if (open == 2 && mode) gn_autocast_begin(g, GN_F16);
            if (open == 2 && !mode) gn_no_grad_begin(g);
            gn_set(&y, gn_matmul(w, w));
            if (mode) assert_int_equal(gn_dtype_of(y), open == 2 ? GN_F16 : GN_F32);
            else assert_int_equal(gn_needs_grad(y), open < 2);
            if (mode) gn_autocast_end(g);
            else gn_no_grad_end(g);
            if (open > 0) assert_int_equal(gn_status_get(g), GN_OK);
        }
        expect_error(g, GN_ERROR_ARGUMENT, mode ? "gn_autocast_end: no gn_autocast_begin before it"
                                                : "gn_no_grad_end: no gn_no_grad_begin before it");
        gn_release(w);
        gn_release(y);
        test_close(g);
    }
}

// Of 33 that are open the last one is refused, and ends as the last one.
static void test_too_many_autocasts(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(2, 2));
    for (int i = 0; i < 33; i++) gn_autocast_begin(g, i == 31 ? GN_BF16 : GN_F16);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_autocast_begin: 32 of them are open");
    gn_autocast_end(g);
    assert_int_equal(gn_dtype_of(gn_matmul(a, a)), GN_BF16);
    for (int i = 0; i < 32; i++) gn_autocast_end(g);
    assert_int_equal(gn_dtype_of(gn_matmul(a, a)), GN_F32);
    assert_int_equal(gn_status_get(g), GN_OK);
    gn_autocast_end(g);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_autocast_end: no gn_autocast_begin before it");
}

static void test_null_lists(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2)), true), *out[1];
    assert_null(gn_sgd(NULL, 2, NULL));
    assert_null(gn_adam(NULL, 2, NULL));
    assert_null(gn_concat(NULL, 2, 0));
    assert_int_equal(gn_gradients(gn_sum(x, GN_ALL), NULL, 1, false, out), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_gradients: params or out is NULL");
    assert_int_equal(gn_gradients(gn_sum(x, GN_ALL), &x, 1, false, NULL), GN_ERROR_ARGUMENT);
    gn_error_clear(g);
}

// A released array's header is not the next array's.
static void test_stale_pointers(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(2));
    gn_release(a);
    for (int i = 0; i < 50; i++) {
        gn_array *other = gn_zeros(g, GN_F32, GN_SHAPE(3));
        assert_true(other != a);
        assert_null(gn_exp(a));
        expect_error(g, GN_ERROR_STALE, "gn_exp: array argument 1 was released; gn_keep keeps one beyond its scope");
        if (i % 2) gn_release(other);
    }
}

static void test_bad_shapes_and_dtypes(void **state) {
    gn_context *g = (gn_context *)*state;
    assert_null(gn_zeros(g, GN_F32, GN_SHAPE(2, -1)));
    expect_error(g, GN_ERROR_SHAPE, "gn_zeros: negative dimension in (2,-1)");
    assert_null(gn_zeros(g, GN_F32, GN_SHAPE(INT64_MAX, 2)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    gn_shape deep = gn_shape_from(9, NULL == NULL ? (const int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1} : NULL);
    assert_null(gn_zeros(g, GN_F32, deep));
    expect_error(g, GN_ERROR_SHAPE, "gn_zeros: rank 9 is not in 0..8");
    assert_null(gn_zeros(g, (gn_dtype)99, GN_SHAPE(2)));
    expect_error(g, GN_ERROR_DTYPE, "gn_zeros: 99 is not a dtype");
    assert_null(gn_and(gn_ones(g, GN_F32, GN_SHAPE(2)), gn_ones(g, GN_I32, GN_SHAPE(2))));
    expect_error(g, GN_ERROR_DTYPE, "gn_and: float32 is not an integer or bool");
    gn_array *c = gn_zeros(g, GN_C64, GN_SHAPE(2));
    assert_non_null(c);
    assert_null(gn_erf(c));
    expect_error(g, GN_ERROR_DTYPE, "gn_erf: complex numbers are not supported here");
    float x = 0;
    assert_int_equal(gn_read(gn_ones(g, GN_F32, GN_SHAPE(2)), &x, 4), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_read: 4 bytes given, float32 (2,) has 8");
    assert_true(isnan(gn_item(gn_ones(g, GN_F32, GN_SHAPE(2)))));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_array_from(g, GN_F32, GN_SHAPE(2), NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_array_from: data is NULL");
}

static void test_status_strings(void **state) {
    (void)state;
    assert_string_equal(gn_status_string(GN_OK), "ok");
    assert_string_equal(gn_status_string((gn_status)1000), "unknown status");
    assert_string_equal(gn_dtype_name(GN_BF16), "bfloat16");
    assert_int_equal(gn_dtype_size(GN_C128), 16);
    assert_int_equal(gn_dtype_size((gn_dtype)77), 0);
}

static void count_levels(void *user, gn_log_level level, const char *text) {
    (void)text;
    ((int *)user)[level]++;
}

static void test_open_refuses(void **state) {
    (void)state;
    gn_options o;
    memset(&o, 0, sizeof o);
    o.backend = GN_BACKEND_WEBGPU;
    if (!test_on_webgpu()) {
        assert_null(gn_open(&o));
        assert_string_equal(gn_open_error(), "gn_open: compiled without GPUNUM_USE_WEBGPU");
        assert_int_equal(gn_open_status(), GN_ERROR_UNSUPPORTED);
    }
    o.backend = GN_BACKEND_CPU;
    o.threads = -3;
    assert_null(gn_open(&o));
    assert_string_equal(gn_open_error(), "gn_open: gn_options.threads is out of range");
    o.threads = 0;
    o.log = test_log;
    o.log_level = (gn_log_level)77;
    assert_null(gn_open(&o));
    assert_string_equal(gn_open_error(), "gn_open: gn_options.log_level is out of range");
    int seen[GN_LOG_DEBUG + 1];
    for (int level = GN_LOG_DEFAULT; level <= GN_LOG_DEBUG; level++) {
        o.backend = GN_BACKEND_CPU;
        o.log = count_levels;
        o.log_user = seen;
        o.log_level = (gn_log_level)level;
        memset(seen, 0, sizeof seen);
        gn_context *h = gn_open(&o);
        assert_null(gn_zeros(h, GN_F32, GN_SHAPE(-2)));
        assert_int_equal(seen[GN_LOG_DEFAULT] + seen[GN_LOG_NONE], 0);
        assert_int_equal(seen[GN_LOG_ERROR], level == GN_LOG_NONE ? 0 : 1);
        assert_int_equal(seen[GN_LOG_INFO] > 0, level >= GN_LOG_INFO);
        gn_close(h);
    }
    assert_true(GN_LOG_ERROR < GN_LOG_WARNING && GN_LOG_WARNING < GN_LOG_INFO && GN_LOG_INFO < GN_LOG_DEBUG);
    assert_int_equal(gn_open_status(), GN_OK);
    assert_int_equal(gn_version(), GPUNUM_VERSION);
    assert_int_equal(gn_options_size(), sizeof o);
    // Headers that the implementation does not know, and options that it would have to cut.
    const uint32_t patch = GPUNUM_VERSION + 1, minor = GPUNUM_VERSION + 100, before = GPUNUM_VERSION - 100;
    const uint32_t strangers[] = {patch, minor, before, GPUNUM_VERSION + 10000, 990000, 0};
    gn_options twice[2];
    memset(twice, 0, sizeof twice);
    twice[0].log = count_levels; // of a struct of which nothing is known
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        assert_null(gn_open_version(twice, strangers[i], sizeof o));
        assert_int_equal(gn_open_status(), GN_ERROR_VERSION);
    }
    assert_null(gn_open_version(twice, GPUNUM_VERSION, sizeof o + 8));
    assert_int_equal(gn_open_status(), GN_ERROR_VERSION);
    char text[300];
    snprintf(text, sizeof text,
             "gn_open: the caller was compiled with gpunum.h 0.2.1 and gn_options of %u bytes, the implementation is "
             "0.2.0 with %u bytes: compile both with the same header",
             (unsigned)sizeof o + 16, (unsigned)sizeof o);
    assert_null(gn_open_version(twice, 201, sizeof o + 16));
    assert_string_equal(gn_open_error(), text);
    gn_context *g = gn_open_version(NULL, GPUNUM_VERSION, 0);
    assert_non_null(g);
    assert_string_equal(gn_open_error(), "");
    assert_int_equal(gn_open_status(), GN_OK);
    gn_close(g);
    memset(twice, 0, sizeof twice);
    twice[0].backend = GN_BACKEND_CPU;
    g = gn_open_version(twice, gn_version(), gn_options_size()); // as a program without the header does
    assert_non_null(g);
    gn_close(g);
}

// What it calls back with is what gn_open returns, and before it returns where no page has to be left to its loop.
typedef struct opened {
    int calls;
    gn_context *g;
    gn_status status;
    char text[200];
} opened;
static void note_opened(void *user, gn_context *g) {
    opened *o = (opened *)user;
    o->calls++;
    o->g = g;
    o->status = gn_open_status();
    snprintf(o->text, sizeof o->text, "%s", gn_open_error());
}
static void test_open_async(void **state) {
    (void)state;
    gn_options o = test_options();
    opened made;
    memset(&made, 0, sizeof made);
    gn_open_async(&o, note_opened, &made);
    assert_int_equal(made.calls, 1);
    assert_non_null(made.g);
    assert_int_equal(made.status, GN_OK);
    assert_true(gn_item(gn_sum(gn_ones(made.g, GN_F32, GN_SHAPE(3)), GN_ALL)) == 3);
    gn_close(made.g);
    gn_open_async(NULL, note_opened, &made);
    assert_non_null(made.g);
    gn_close(made.g);
    o.threads = -1;
    gn_open_async(&o, note_opened, &made);
    assert_int_equal(made.calls, 3);
    assert_null(made.g);
    assert_int_equal(made.status, GN_ERROR_ARGUMENT);
    assert_string_equal(made.text, "gn_open: gn_options.threads is out of range");
    gn_open_async_version(NULL, 990000, 0, note_opened, &made);
    assert_null(made.g);
    assert_int_equal(made.status, GN_ERROR_VERSION);
    gn_open_async(NULL, NULL, NULL); // nobody to call back
}

// ---- reading and writing

static void test_read_write(void **state) {
    gn_context *g = (gn_context *)*state;
    const float v[] = {1, 2, 3, 4, 5, 6};
    float out[6];
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(2, 3), v);
    gn_array *t = gn_transpose(a);
    assert_int_equal(gn_read(t, out, sizeof out), GN_OK);
    const float expected[] = {1, 4, 2, 5, 3, 6};
    assert_memory_equal(out, expected, sizeof out);
    const float w[] = {10, 20, 30, 40, 50, 60};
    assert_int_equal(gn_write(t, w, sizeof w), GN_OK); // through the view
    double base[] = {10, 30, 50, 20, 40, 60};
    expect_list(a, 6, base);
}

// Any byte but 0 is true, in the loops too.
static void test_bool_bytes(void **state) {
    gn_context *g = (gn_context *)*state;
    const uint8_t bytes[] = {2, 0, 255};
    gn_array *a = gn_zeros(g, GN_BOOL, GN_SHAPE(3)), *view = gn_flip(gn_zeros(g, GN_BOOL, GN_SHAPE(3)), GN_ALL);
    assert_int_equal(gn_write(a, bytes, sizeof bytes), GN_OK);
    assert_int_equal(gn_write(view, bytes, sizeof bytes), GN_OK);
    expect_values(gn_sum(a, GN_ALL), 2);
    expect_values(gn_eq(a, gn_ones(g, GN_BOOL, GN_SHAPE(3))), 1, 0, 1);
    expect_values(gn_eq(view, gn_array_from(g, GN_BOOL, GN_SHAPE(3), bytes)), 1, 1, 1);
}

static void test_write_after_use(void **state) {
    gn_context *g = (gn_context *)*state;
    const float v[] = {1, 2, 3}, w[] = {7, 8, 9};
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(3), v);
    gn_array *view = gn_slice(a, 0, 0, 2, 1);
    gn_array *before = gn_mul_s(a, 2.0), *part = gn_add_s(view, 0.5); // not computed yet
    gn_write(a, w, sizeof w);
    gn_array *after = gn_mul_s(a, 2.0);
    double old_values[] = {2, 4, 6}, old_part[] = {1.5, 2.5}, new_values[] = {14, 16, 18}, new_view[] = {7, 8};
    expect_list(before, 3, old_values);
    expect_list(part, 2, old_part);
    expect_list(after, 3, new_values);
    expect_list(view, 2, new_view);
    gn_array *alone = gn_array_from(g, GN_F32, GN_SHAPE(3), v);
    gn_array *pending = gn_neg(alone);
    gn_write(alone, w, sizeof w); // nobody else sees the memory: the old one is kept for `pending`
    double minus[] = {-1, -2, -3}, plain[] = {7, 8, 9};
    expect_list(pending, 3, minus);
    expect_list(alone, 3, plain);
}

static int freed;
static void count_free(void *data, void *user) {
    (void)data;
    freed += *(int *)user;
}

// Which of several values would stay in the one element would be luck.
static void test_write_repeated(void **state) {
    gn_context *g = (gn_context *)*state;
    const float v[] = {1, 2, 3};
    gn_array *one = gn_zeros(g, GN_F32, GN_SHAPE(1));
    assert_int_equal(gn_write(gn_broadcast_to(one, GN_SHAPE(3)), v, sizeof v), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_write: axis 0 of this array repeats one element (gn_broadcast_to); write to a gn_copy");
    expect_values(one, 0);
    gn_array *same = gn_broadcast_to(one, GN_SHAPE(1, 1));
    assert_int_equal(gn_write(same, v, sizeof v[0]), GN_OK);
    expect_values(one, 1);
}

// A write or a step that runs out of memory leaves the old values, also where pending work reads them.
static void test_failed_writes_change_nothing(void **state) {
    (void)state;
    const float v[] = {5, 6, 7};
    for (int64_t k = 0, failed = 1; failed; k++) {
        gn_context *g = test_open();
        gn_scope_begin(g);
        gn_array *a = gn_requires_grad(gn_eval(gn_full(g, GN_F32, GN_SHAPE(3), 1.0)), true);
        gn_array *b = gn_eval(gn_full(g, GN_F32, GN_SHAPE(3), 2.0));
        gn_optimizer *opt = gn_sgd(&a, 1, NULL);
        gn_backward(gn_sum(gn_mul_s(a, 100.0), GN_ALL));
        gn_eval(gn_grad(a));
        gn_array *reads_b = gn_add_s(b, 10.0);
        gn_array *also_a = gn_add_s(a, 20.0);
        test_heap.until_failure = k;
        gn_status wrote = gn_write(b, v, sizeof v), stepped = gn_step(opt);
        failed = test_heap.until_failure == 0;
        test_heap.until_failure = -1;
        gn_error_clear(g);
        if (wrote != GN_OK) expect_values(b, 2, 2, 2);
        else expect_values(b, 5, 6, 7);
        if (stepped != GN_OK) expect_values(a, 1, 1, 1);
        else expect_values(a, 0, 0, 0);
        expect_values(reads_b, 12, 12, 12);
        expect_values(also_a, 21, 21, 21);
        gn_scope_end(g);
        test_close(g);
    }
}

static void test_wrap(void **state) {
    gn_context *g = (gn_context *)*state;
    float v[4] = {1, 2, 3, 4};
    int one = 1;
    freed = 0;
    gn_array *a = gn_array_wrap(g, GN_F32, GN_SHAPE(4), v, count_free, &one);
    double twice[] = {2, 4, 6, 8};
    gn_array *view = gn_slice(a, 0, 1, 3, 1);
    expect_list(gn_mul_s(a, 2.0), 4, twice);
    gn_release(a);
    assert_int_equal(freed, 0);
    gn_release(view);
    // Pending work of expect_values may still hold it; it goes with the scope.
    assert_null(gn_array_wrap(g, GN_F32, GN_SHAPE(2), (char *)v + 1, NULL, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_array_wrap: data is not aligned to 4 bytes");
}

// A call that fails lets go of nothing that was lent to it.
static void test_wrap_without_memory(void **state) {
    (void)state;
    float v[4] = {1, 2, 3, 4};
    int one = 1;
    for (int64_t k = 0, failed = 1; failed; k++) {
        gn_context *g = test_open();
        gn_scope_begin(g);
        freed = 0;
        test_refuse(k, true);
        failed = gn_array_wrap(g, GN_F32, GN_SHAPE(4), v, count_free, &one) == NULL;
        test_refuse(-1, false);
        assert_int_equal(freed, 0);
        if (failed) expect_error(g, GN_ERROR_OUT_OF_MEMORY, NULL);
        gn_scope_end(g);
        assert_int_equal(freed, !failed);
        test_close(g);
    }
}

// Functions that take lent memory back may begin scopes and compute, also what the call that lets go of it is about.
typedef struct taking_back {
    gn_array *other;
    double sum;
} taking_back;
static void computes_back(void *data, void *user) {
    taking_back *t = (taking_back *)user;
    gn_context *g = gn_context_of(t->other);
    assert_true(((float *)data)[0] == 1);
    for (int i = 0; i < 40; i++) gn_scope_begin(g);
    assert_null(gn_reshape(t->other, GN_SHAPE(9)));
    expect_error(g, GN_ERROR_SHAPE, "gn_reshape: cannot reshape array of size 4 into shape (9,)");
    gn_eval(t->other);
    t->sum = gn_item(gn_sum(t->other, GN_ALL));
    for (int i = 0; i < 40; i++) gn_scope_end(g);
}

static void test_release_computes(void **state) {
    gn_context *g = (gn_context *)*state;
    float v[4] = {1, 2, 3, 4};
    gn_array *x = gn_eval(gn_full(g, GN_F32, GN_SHAPE(4), 5.0)), *both[2];
    taking_back t = {gn_add_s(x, 3.0), 0.0};
    gn_array *lent = gn_array_wrap(g, GN_F32, GN_SHAPE(4), v, computes_back, &t);
    both[0] = gn_mul_s(lent, 2.0), both[1] = t.other;
    gn_release(lent);
    assert_int_equal(gn_eval_all(both, 2), GN_OK); // the first of them is all that holds it
    expect_values(both[0], 2, 4, 6, 8);
    expect_values(both[1], 8, 8, 8, 8);
    assert_true(t.sum == 32);
    t.sum = 0;
    GN_SCOPE(g) gn_array_wrap(g, GN_F32, GN_SHAPE(4), v, computes_back, &t);
    assert_true(t.sum == 32);
}

typedef struct delivery {
    int calls;
    gn_status status;
} delivery;
static void delivered(void *user, gn_status status) {
    delivery *d = (delivery *)user;
    d->calls++;
    d->status = status;
}

static void test_read_async(void **state) {
    gn_context *g = (gn_context *)*state;
    float out[3] = {0, 0, 0}, again[3] = {0, 0, 0};
    delivery d = {0, GN_ERROR_IO}, e = {0, GN_ERROR_IO}, bad = {0, GN_OK};
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(3), (const float[]){1, 2, 3});
    gn_read_async(gn_mul_s(a, 3.0), out, sizeof out, delivered, &d);
    gn_read_async(a, again, sizeof again, delivered, &e);
    gn_sync(g);
    assert_int_equal(d.calls, 1);
    assert_int_equal(e.calls, 1);
    assert_int_equal(d.status, GN_OK);
    assert_true(out[0] == 3 && out[1] == 6 && out[2] == 9 && again[2] == 3);
    assert_int_equal(gn_poll(g), 0);
    assert_int_equal(d.calls, 1);
    gn_read_async(gn_add_s(a, 4.0), out, sizeof out, delivered, &d);
    gn_read_async(gn_add_s(a, 5.0), again, sizeof again, delivered, &e);
    while (gn_poll(g) > 0) {}
    assert_true(d.calls == 2 && e.calls == 2 && out[0] == 5 && again[2] == 8);
    assert_int_equal(gn_poll(NULL), 0);
    gn_read_async(a, out, 5, delivered, &bad);
    assert_int_equal(bad.calls, 1);
    assert_int_equal(bad.status, GN_ERROR_ARGUMENT);
    gn_error_clear(g);
}

// The values are those of the time of the call, whenever they are delivered.
static gn_array *reads_and_writes(gn_context *g, gn_array *const *in, int n, void *user) {
    static float out[2];
    static const float other[] = {8, 9};
    delivery *d = (delivery *)user;
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(2), (const float[]){1, 2});
    assert_int_equal(n, 1);
    gn_read_async(a, out, sizeof out, delivered, d);
    gn_write(a, other, sizeof other);
    gn_array *sum = gn_add(in[0], a);
    gn_sync(g);
    assert_true(d->calls == 1 && out[0] == 1 && out[1] == 2);
    return sum;
}

static void test_read_async_and_write(void **state) {
    gn_context *g = (gn_context *)*state;
    static float large[700 * 700];
    const int64_t n = test_on_vulkan() ? 700 : 70; // the CPU computes at once, and valgrind takes a minute and a half for 700
    float out[3];
    delivery first = {0, GN_ERROR_IO}, d = {0, GN_ERROR_IO}, inside = {0, GN_ERROR_IO};
    gn_array *x = gn_to(gn_ones(g, GN_F32, GN_SHAPE(n, n)), GN_DEVICE_GPU);
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(3), (const float[]){1, 2, 3});
    for (int i = 0; i < 4; i++) x = gn_eval(gn_mul_s(gn_matmul(x, x), 1.0 / (double)n));
    gn_read_async(x, large, (size_t)(n * n) * sizeof(float), delivered, &first); // on a GPU behind work, and others behind it
    gn_read_async(a, out, sizeof out, delivered, &d);
    gn_write(a, (const float[]){5, 6, 7}, 3 * sizeof(float));
    gn_sync(g);
    assert_true(first.calls == 1 && d.calls == 1 && out[0] == 1 && out[1] == 2 && out[2] == 3);
    gn_array *in = gn_ones(g, GN_F32, GN_SHAPE(2));
    expect_values(gn_custom(reads_and_writes, NULL, &in, 1, &inside), 9, 10);
}

// A context does not go away under a call.
static void closes(void *user, gn_status status) {
    (void)status;
    gn_close((gn_context *)user);
}
static void test_close_within_a_call(void **state) {
    gn_context *g = (gn_context *)*state;
    float out[2];
    gn_read_async(gn_add_s(gn_zeros(g, GN_F32, GN_SHAPE(2)), 3.0), out, sizeof out, closes, g);
    gn_sync(g);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_close: called within another call on this context");
    assert_true(out[1] == 3);
}

// An error ends the call that it is in, whatever gn_options.log does.
static void clears(void *user, gn_log_level level, const char *text) {
    gn_context **g = (gn_context **)user;
    if (level == GN_LOG_ERROR && *g != NULL && text[0] != 0) gn_error_clear(*g);
}
static void test_clear_in_the_log(void **state) {
    (void)state;
    gn_context *g = NULL;
    gn_options o = test_options();
    o.log = clears;
    o.log_user = &g;
    g = test_open_with(&o);
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(4, 4));
    const int64_t widths[] = {-3, 4, -2, 2};
    assert_null(gn_pad(a, widths, 4, GN_PAD_CONSTANT, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_pad: width -3 is negative");
    assert_int_equal(gn_write(a, NULL, 5), GN_ERROR_ARGUMENT);
    gn_error_clear(g);
    gn_release(a);
    test_close(g);
}

// What a callback computes does not fail with the call that happens to deliver it.
static void computes(void *user, gn_status status) {
    gn_array **x = (gn_array **)user;
    *x = status == GN_OK ? gn_retain(gn_add_s(*x, 1.0)) : NULL;
}

static void test_callbacks_in_failing_calls(void **state) {
    gn_context *g = (gn_context *)*state;
    float out[3];
    gn_array *three = gn_zeros(g, GN_F32, GN_SHAPE(3)), *two = gn_zeros(g, GN_F32, GN_SHAPE(2)), *x = gn_mul_s(two, 3.0);
    gn_array *const before = x;
    gn_read_async(gn_add_s(three, 1.0), out, sizeof out, computes, &x);
    for (int i = 0; i < 1000000 && x == before; i++) gn_add(two, three);
    gn_error_clear(g);
    gn_sync(g);
    assert_non_null(x);
    expect_values(x, 1, 1);
    gn_release(x);
}

// ---- laziness

// Extents whose product would not fit, in arrays without elements.
static void test_large_and_empty(void **state) {
    gn_context *g = (gn_context *)*state;
    const int64_t big = INT64_MAX / 2;
    gn_array *a = gn_eval(gn_zeros(g, GN_F32, GN_SHAPE(0, big, big)));
    gn_array *b = gn_eval(gn_zeros(g, GN_F32, GN_SHAPE(5, big, big, 0)));
    expect_shape(gn_eval(gn_add(a, a)), 0, big, big);
    expect_shape(gn_slice(b, 0, 1, GN_NONE, 2), 2, big, big, 0);
    expect_shape(gn_copy(gn_flip(gn_transpose(b), GN_ALL)), 0, big, big, 5);
    expect_shape(gn_ravel(gn_slice(b, 0, 3, GN_NONE, -1)), 0);
    expect_values(gn_sum(a, GN_ALL), 0);
    expect_shape(gn_mean(a, GN_AXES(1, 2)), 0);
    expect_shape(gn_var(a, 1, 0), 0, big);
    expect_shape(gn_softmax(a, 1), 0, big, big);
    expect_shape(gn_log_softmax(a, 2), 0, big, big);
    expect_shape(gn_logsumexp(a, 1), 0, big);
    expect_shape(gn_matmul(gn_zeros(g, GN_F32, GN_SHAPE(0, big)), gn_zeros(g, GN_F32, GN_SHAPE(big, 0))), 0, 0);
    assert_int_equal(gn_read(gn_transpose(b), NULL, 0), GN_OK);
}

static void test_long_expressions(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(3), (const float[]){0.5f, -1.0f, 2.0f});
    gn_array *y = x;
    double expected[] = {0.5, -1.0, 2.0};
    for (int i = 0; i < 100; i++) { // longer than any one program
        y = gn_add_s(gn_mul_s(y, 0.5), 0.25);
        for (int k = 0; k < 3; k++) expected[k] = (double)((float)(expected[k] * 0.5) + 0.25f);
    }
    expect_list(y, 3, expected);
    gn_array *many = gn_zeros(g, GN_F32, GN_SHAPE(3)); // more inputs than any one program
    for (int i = 1; i <= 40; i++) many = gn_add(many, gn_array_from(g, GN_F32, GN_SHAPE(1), &(float){(float)i}));
    double total[] = {820, 820, 820};
    expect_list(many, 3, total);
}

static void test_shared_subexpressions(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(2), (const float[]){3, -2});
    gn_array *s = gn_square(x), *both[2];
    both[0] = gn_add(s, x);
    both[1] = gn_sub(s, x);
    assert_int_equal(gn_eval_all(both, 2), GN_OK);
    double plus[] = {12, 2}, minus[] = {6, 6}, square[] = {9, 4};
    expect_list(both[0], 2, plus);
    expect_list(both[1], 2, minus);
    expect_list(s, 2, square);
}

static void test_explain(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(3), (const float[]){1, 2, 3});
    gn_array *y = gn_sin(x);
    assert_non_null(strstr(gn_explain(y), "gn_sin (3,) float32: pending"));
    gn_eval(y);
    assert_non_null(strstr(gn_explain(y), "computed on the"));
    assert_non_null(strstr(gn_explain(y), test_on_vulkan() ? "GPU" : "CPU"));
}

// A context that places by itself, with a scope. matmul: its threshold, 0 the default.
static gn_context *open_to_place(int64_t matmul) {
    gn_options o = test_options();
    o.placement = GN_PLACE_AUTO;
    o.thresholds.matmul = matmul;
    gn_context *g = test_open_with(&o);
    gn_scope_begin(g);
    return g;
}

// What is made of nearly nothing goes to the GPU where it is large, or goes with arrays that are there.
static void test_made(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    gn_context *g = open_to_place(0);
    gn_array *row = gn_arange(g, GN_F32, 0, 1024, 1), *column = gn_expand_dims(row, 1), *grad;
    assert_non_null(strstr(gn_explain(gn_eval(gn_mul(gn_slice(column, 0, 0, 128, 1), row))), "CPU: too small"));
    assert_non_null(strstr(gn_explain(gn_eval(gn_mul(column, row))), "GPU: large enough"));
    assert_non_null(strstr(gn_explain(gn_eval(gn_mul(column, gn_ones(g, GN_F32, GN_SHAPE(1024, 1024))))), "GPU: large enough"));
    for (int there = 0; there < 2; there++) { // the gradient of a sum is constant, and is summed up from behind
        gn_array *x = gn_requires_grad(gn_full(g, GN_F32, GN_SHAPE(5, 7), 2), true);
        if (there) gn_to(x, GN_DEVICE_GPU);
        assert_int_equal(gn_gradients(gn_mean(gn_cumsum(x, 1), GN_ALL), &x, 1, false, &grad), GN_OK);
        assert_non_null(strstr(gn_explain(gn_eval(grad)), there ? "on the GPU" : "on the CPU"));
        assert_true(fabs(gn_item(gn_index(grad, "2,3")) - 4.0 / 35.0) < 1e-7);
        if (there) assert_non_null(strstr(gn_explain(gn_eval(gn_dropout(x, 0.5, true))), "on the GPU"));
    }
    gn_scope_end(g);
    test_close(g);
}

// Data on the CPU that is read as often as an upload costs goes to the GPU.
static void test_read_again(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    gn_context *g = open_to_place(0);
    const int64_t n = 2048;
    float *data = (float *)calloc((size_t)(n * n), sizeof(float));
    assert_non_null(data);
    gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(n, n), data), *v = gn_ones(g, GN_F32, GN_SHAPE(n));
    for (int i = 0; i < 15; i++) // an eighth of it
        assert_non_null(strstr(gn_explain(gn_eval(gn_sum(gn_slice(x, 0, 8 * i, 8 * i + 256, 1), GN_ALL))), "too small"));
    gn_array *y = gn_eval(gn_matmul(x, v)); // 15 / 8 of it so far
    assert_non_null(strstr(gn_explain(y), "too small"));
    y = gn_eval(gn_matmul(x, v));
    assert_non_null(strstr(gn_explain(y), "on the GPU: read so often"));
    y = gn_eval(gn_matmul(x, v));
    assert_non_null(strstr(gn_explain(y), "on the GPU: operands are on both sides"));
    for (int i = 0; i < 4; i++) { // written before each time
        data[0] = (float)i;
        assert_int_equal(gn_write(x, data, sizeof(float) * (size_t)(n * n)), GN_OK);
        y = gn_eval(gn_matmul(x, v));
        assert_non_null(strstr(gn_explain(y), "too small"));
        assert_true(gn_item(gn_index(y, "0")) == i);
    }
    // What reads little of it, and memory of the caller's, stay.
    gn_array *w = gn_array_wrap(g, GN_F32, GN_SHAPE(n, n), data, NULL, NULL);
    for (int i = 0; i < 5; i++) {
        data[0] = (float)(10 + i);
        gn_eval(gn_matmul(x, v));
        y = gn_eval(gn_sum(gn_index(x, "3, 5:9"), GN_ALL));
        assert_non_null(strstr(gn_explain(y), "too small"));
        y = gn_eval(gn_matmul(w, v));
        assert_non_null(strstr(gn_explain(y), "too small"));
        assert_true(gn_item(gn_index(y, "0")) == 10 + i);
    }
    gn_scope_end(g);
    gn_close(g);
    free(data);
    g = open_to_place(INT64_MAX);
    x = gn_eval(gn_to(gn_ones(g, GN_F32, GN_SHAPE(n, n)), GN_DEVICE_CPU));
    v = gn_to(gn_ones(g, GN_F32, GN_SHAPE(n)), GN_DEVICE_CPU);
    for (int i = 0; i < 4; i++)
        assert_non_null(strstr(gn_explain(gn_eval(gn_matmul(x, v))), "too small"));
    gn_scope_end(g);
    test_close(g);
}

static void test_to_moves(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(3), (const float[]){1, 2, 3});
    assert_ptr_equal(gn_to(x, GN_DEVICE_GPU), x); // the CPU where there is no GPU
    assert_non_null(strstr(gn_explain(x), test_on_vulkan() ? "on the GPU" : "on the CPU"));
    gn_to(x, GN_DEVICE_CPU);
    double v[] = {1, 2, 3};
    expect_list(x, 3, v);
}

// ---- threads

#if !defined(GPUNUM_NO_THREADS) && !defined(_WIN32)
#include <pthread.h>

static void *worker(void *arg) {
    gn_context *g = (gn_context *)arg;
    double sum = 0.0;
    for (int i = 0; i < 50; i++)
        GN_SCOPE(g) { // scopes of other threads must not own what this one makes
            gn_array *x = gn_full(g, GN_F32, GN_SHAPE(100), (double)i);
            gn_array *y = gn_add_s(gn_mul_s(x, 2.0), 1.0);
            sum += gn_item(gn_sum(y, GN_ALL));
            if (i == 25) gn_add(x, gn_ones(g, GN_F32, GN_SHAPE(3))); // an error, which others see
            if ((gn_status_get(g) != GN_OK) != (gn_error(g)[0] != 0) && i > 25) sum = 0.0;
        }
    double *result = (double *)malloc(sizeof *result);
    if (result != NULL) *result = sum;
    return result;
}

static void test_threads_share_a_context(void **state) {
    gn_context *g = (gn_context *)*state;
    pthread_t thread[4];
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
    skip();
#endif
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&thread[i], NULL, worker, g), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(thread[i], &result);
        assert_non_null(result);
        assert_true(*(double *)result == 100.0 * (2.0 * 1225.0 + 50.0));
        free(result);
    }
    expect_error(g, GN_ERROR_SHAPE, "gn_add: shapes (100,) and (3,) do not broadcast");
}
#endif

// ---- memory that runs out

// A bit of everything. Returns what it computes, or NULL when something failed.
static gn_array *everything(gn_context *g) {
    gn_scope_begin(g);
    gn_array *w = gn_requires_grad(gn_randn(g, GN_F32, GN_SHAPE(4, 3)), true);
    gn_array *x = gn_rand(g, GN_F32, GN_SHAPE(5, 4));
    gn_array *index = gn_permutation(g, GN_I32, 5);
    gn_array *h = gn_relu(gn_linear(gn_take(x, index, 0), w, NULL));
    gn_array *parts[2];
    parts[0] = h;
    parts[1] = gn_slice(h, 0, 0, GN_NONE, 2);
    gn_array *c = gn_concat(parts, 2, 0);
    gn_array *p = gn_softmax(c, -1);
    gn_array *loss = gn_add(gn_mean(gn_square(p), GN_ALL), gn_std(c, GN_ALL, 0));
    gn_backward(loss);
    gn_optimizer *opt = gn_adam(&w, 1, NULL);
    gn_step(opt);
    gn_array *result = gn_add(gn_sum(w, GN_ALL), gn_cast(gn_argmax(p, GN_ALL), GN_F32));
    float value = 0.0f;
    if (gn_read(result, &value, sizeof value) != GN_OK) result = NULL;
    gn_optimizer_free(opt);
    if (result != NULL) gn_keep(result);
    gn_scope_end(g);
    return result;
}

static void test_every_allocation_fails_once(void **state) {
    (void)state;
    gn_options o = test_options();
    o.threads = 1;
    o.vulkan_flags |= GN_VULKAN_NO_ASYNC_PIPELINES; // allocations in a fixed order
    test_heap.calls = 0;
    gn_context *g = test_open_with(&o);
    gn_release(everything(g));
    assert_int_equal(gn_status_get(g), GN_OK);
    int64_t total = test_heap.calls;
    test_close(g);
    assert_true(total > 50);
    // On the device every run compiles pipelines: a sample of the points is enough there.
    int64_t step = test_on_vulkan() ? total / 40 + 1 : 1;
    for (int64_t at = 0; at < total; at += step) {
        test_heap.until_failure = at;
        g = gn_open(&o);
        gn_array *y = g != NULL ? everything(g) : NULL;
        test_heap.until_failure = -1;
        if (g == NULL) {
            assert_string_not_equal(gn_open_error(), "");
        } else {
            if (y == NULL && gn_status_get(g) == GN_OK) fail_msg("allocation %lld failed without an error", (long long)at);
            gn_error_clear(g);
            gn_array *z = everything(g); // the context still works
            if (z == NULL) fail_msg("after allocation %lld: %s", (long long)at, gn_error(g));
            gn_close(g);
        }
        int64_t blocks = test_heap.blocks;
        test_heap.blocks = test_heap.bytes = 0;
        if (blocks != 0) fail_msg("allocation %lld: %lld blocks leaked", (long long)at, (long long)blocks);
    }
}

static void test_device_memory_limit(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    gn_options o = test_options();
    o.memory_limit = (uint64_t)48 << 20;
    gn_context *g = test_open_with(&o);
    gn_scope_begin(g);
    gn_array *big[8];
    for (int i = 0; i < 8; i++) { // 16 MB each: more than the limit together
        big[i] = gn_eval(gn_add_s(gn_full(g, GN_F32, GN_SHAPE(4 << 20), (double)i), 1.0));
        assert_non_null(big[i]);
    }
    for (int i = 0; i < 8; i++) // those that did not fit were computed on the CPU
        assert_true(gn_item(gn_max(big[i], GN_ALL)) == (double)i + 1.0);
    gn_memory_stats s;
    gn_memory_get(g, &s);
    assert_true(s.device_reserved <= o.memory_limit);
    assert_int_equal(gn_status_get(g), GN_OK);
    gn_scope_end(g);
    test_close(g);
}

// Work whose inputs and results fit, but not what it needs on the way.
static void test_full_device(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    for (int stays = 0; stays < 2; stays++) {
        gn_options o = test_options();
        o.memory_limit = 1600000;
        o.placement = stays ? GN_PLACE_STAY : GN_PLACE_AUTO;
        gn_context *g = test_open_with(&o);
        GN_SCOPE(g) {
            gn_array *x = gn_to(gn_eval(gn_cast(gn_mod_s(gn_mul_s(gn_arange(g, GN_I32, 0, 90000, 1), 7919), 90000), GN_F32)), GN_DEVICE_GPU);
            gn_array *y = gn_sort(x, 0, false);
            assert_true(gn_array_equal(y, gn_arange(g, GN_F32, 0, 90000, 1), false));
            assert_non_null(strstr(gn_explain(y), "device memory is full"));
        }
        GN_SCOPE(g) { // a prime number of points: of a constant all but the first are 0
            gn_array *x = gn_to(gn_eval(gn_ones(g, GN_F32, GN_SHAPE(50, 1009))), GN_DEVICE_GPU);
            gn_array *y = gn_fft(x, 0, -1, GN_FFT_BACKWARD);
            assert_true(fabs(gn_item(gn_sum(gn_abs(y), GN_ALL)) - 50 * 1009) < 1);
        }
        if (gn_status_get(g) != GN_OK) fail_msg("%s", gn_error(g));
        test_close(g);
    }
}

// Of one number, by a program compiled for it: lavapipe computes apart what all invocations share.
static void test_rounded_alone(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    gn_options o = test_options();
    o.placement = GN_PLACE_GPU;
    o.vulkan_flags &= ~(uint32_t)GN_VULKAN_NO_SPECIALIZATION;
    gn_context *g = test_open_with(&o);
    static const float values[] = {2.5f, -1.75f, 0.75f, -0.25f, 1e9f}, rounded[] = {2, -2, 1, 0, 1e9f};
    for (int i = 0; i < 5; i++)
        GN_SCOPE(g) assert_true(gn_item(gn_round(gn_to(gn_array_from(g, GN_F32, GN_SHAPE(1), values + i), GN_DEVICE_GPU))) == (double)rounded[i]);
    test_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_after_close),
        GN_TEST(test_scopes),
        GN_TEST(test_reference_counts),
        cmocka_unit_test(test_stale_stays), GN_TEST(test_early_release_keeps_pending_work),
        GN_TEST(test_set_in_a_loop),
        GN_TEST(test_deep_chains_are_freed_without_recursion),
        cmocka_unit_test(test_close_frees_everything),
        GN_TEST(test_first_error_stays),
        GN_TEST(test_null_and_foreign_arguments),
        GN_TEST(test_handles_of_other_kinds),
        cmocka_unit_test(test_scope_without_memory),
        cmocka_unit_test(test_modes_without_memory),
        GN_TEST(test_too_many_autocasts),
        GN_TEST(test_null_lists),
        GN_TEST(test_stale_pointers),
        GN_TEST(test_bad_shapes_and_dtypes),
        cmocka_unit_test(test_status_strings),
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_open_async),
        GN_TEST(test_read_write),
        GN_TEST(test_bool_bytes),
        GN_TEST(test_write_after_use),
        GN_TEST(test_write_repeated),
        cmocka_unit_test(test_failed_writes_change_nothing),
        GN_TEST(test_wrap),
        cmocka_unit_test(test_wrap_without_memory),
        GN_TEST(test_release_computes),
        GN_TEST(test_read_async),
        GN_TEST(test_read_async_and_write),
        GN_TEST(test_close_within_a_call),
        cmocka_unit_test(test_clear_in_the_log),
        GN_TEST(test_callbacks_in_failing_calls),
        GN_TEST(test_large_and_empty),
        GN_TEST(test_long_expressions),
        GN_TEST(test_shared_subexpressions),
        GN_TEST(test_explain),
        cmocka_unit_test(test_made),
        cmocka_unit_test(test_read_again),
        GN_TEST(test_to_moves),
#if !defined(GPUNUM_NO_THREADS) && !defined(_WIN32)
        GN_TEST(test_threads_share_a_context),
#endif
        cmocka_unit_test(test_every_allocation_fails_once),
        cmocka_unit_test(test_device_memory_limit),
        cmocka_unit_test(test_full_device),
        cmocka_unit_test(test_rounded_alone),
    };
    return test_run(tests);
}
