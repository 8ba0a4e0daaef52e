// Writing to views, gathers and scatters, masks: against NumPy in all dtypes, of views, empty arrays and special values; their
// derivatives; what readers that are pending see; what they refuse.

#include "test.h"
#include <time.h>

// ---- against NumPy

enum { MOST = 5 };

typedef struct index_case {
    char name[32];
    gn_array *in[MOST];
    int64_t p[MOST];
} index_case;

static int is(const index_case *c, const char *name) { return strcmp(c->name, name) == 0; }

static gn_array *apply(const index_case *c) {
    gn_array *a = c->in[0], *b = c->in[1];
    const int axis = (int)c->p[0];
    if (is(c, "take")) return gn_take(a, b, axis);
    if (is(c, "take_along")) return gn_take_along(a, b, axis);
    if (is(c, "put_along")) return gn_put_along(a, b, c->in[2], axis);
    if (is(c, "scatter_add")) return gn_scatter_add(a, b, c->in[2], axis);
    if (is(c, "scatter_max")) return gn_scatter_max(a, b, c->in[2], axis);
    if (is(c, "scatter_min")) return gn_scatter_min(a, b, c->in[2], axis);
    if (is(c, "nonzero")) return gn_nonzero(a);
    if (is(c, "flatnonzero")) return gn_flatnonzero(a);
    if (is(c, "compress")) return gn_compress(b, a, axis);
    if (is(c, "compress_flat")) return gn_compress(b, a, GN_ALL);
    if (is(c, "repeat_counts")) return gn_repeat_counts(a, b, axis);
    if (is(c, "repeat_counts_flat")) return gn_repeat_counts(a, b, GN_ALL);
    if (is(c, "mask")) return gn_mask(a, b);
    if (is(c, "index_arrays")) return gn_index_arrays(a, c->in + 1, axis);
    if (is(c, "assign_arrays")) return gn_assign_arrays(a, c->in + 1, axis, c->in[axis + 1]) == GN_OK ? a : NULL;
    if (is(c, "ravel_multi_index")) return gn_ravel_multi_index(c->in + 1, axis, gn_shape_of(a));
    if (is(c, "unravel_index")) return gn_unravel_index(b, gn_shape_of(a));
    if (is(c, "assign_mask")) return gn_assign_mask(a, b, c->in[2]) == GN_OK ? a : NULL;
    fail_msg("%s is not known", c->name);
    return NULL;
}

static void test_like_numpy(void **state) {
    gn_context *g = (gn_context *)*state;
    test_cases file;
    int refused = 0, wrong = 0;
    if (!test_cases_open(&file, "index")) skip();
    for (int32_t i = 0; i < file.count; i++) {
        index_case c;
        double none[1];
        memset(&c, 0, sizeof c);
        gn_scope_begin(g);
        test_take_text(&file, c.name, sizeof c.name);
        const int as = test_take_int(&file), operands = test_take_int(&file);
        for (int k = 0; k < operands; k++) {
            test_array base;
            char subscript[32];
            test_take_array(&file, &base);
            test_take_text(&file, subscript, sizeof subscript);
            c.in[k] = gn_array_from(g, base.t, base.s, base.data);
            if (subscript[0] != 0) c.in[k] = gn_index(c.in[k], subscript);
            if (as >= 0 && base.t == GN_F32) c.in[k] = gn_cast(c.in[k], (gn_dtype)as); // pending, of a view
            if (test_on_vulkan() && i % 2 == 0) gn_to(gn_eval(c.in[k]), GN_DEVICE_GPU); // where nobody looks at indices
        }
        const int n_p = test_take_int(&file);
        test_take_bytes(&file, c.p, sizeof(int64_t) * (size_t)n_p);
        test_take_bytes(&file, none, sizeof(double) * (size_t)test_take_int(&file));
        const double near = test_take_double(&file);
        const int n = test_take_int(&file);
        if (gn_status_get(g) != GN_OK) fail_msg("operands: %s", gn_error(g));
        const bool left_out = test_on_vulkan() && i % 17 != 0; // a device takes its time to compile kernels
        gn_array *y = left_out ? NULL : apply(&c);
        if (n < 0 && y != NULL) gn_eval(y), gn_sync(g);
        bool ok = left_out || (n < 0 ? gn_status_get(g) != GN_OK : gn_status_get(g) == GN_OK);
        if (n > 0) {
            test_array want;
            test_take_array(&file, &want);
            if (as >= 0 && y != NULL && gn_dtype_of(y) == (gn_dtype)as) y = gn_cast(y, want.t);
            ok = left_out || (ok && (near > 0.0 ? test_near(y, &want, near) : test_same_bytes(y, &want)));
        }
        if (n < 0) refused++;
        if (!ok) {
            print_error("case %d%s: %s: %s; ", (int)i, n < 0 ? ", refused" : "", c.name, gn_error(g));
            gn_error_clear(g);
            for (int k = 0; k < operands; k++) {
                gn_shape s = gn_shape_of(c.in[k]);
                print_error(" %s (", gn_dtype_name(gn_dtype_of(c.in[k])));
                for (int d = 0; d < s.rank; d++) print_error("%lld,", (long long)s.dim[d]);
                print_error(")");
            }
            print_error(" %lld\n", (long long)c.p[0]);
            if (++wrong > 10) fail();
        }
        gn_error_clear(g);
        gn_scope_end(g);
    }
    assert_int_equal(wrong, 0);
    assert_true(refused > 50);
    test_cases_close(&file);
}

// ---- gn_assign

static gn_array *numbers(gn_context *g, gn_dtype t, int64_t n) { return gn_eval(gn_cast(gn_arange(g, GN_I32, 0, (double)n, 1), t)); }

static void test_assign_values(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_reshape(numbers(g, GN_F32, 12), GN_SHAPE(3, 4));
    assert_int_equal(gn_assign(gn_index(a, "1"), gn_scalar(g, GN_F32, -1)), GN_OK);
    expect_values(a, 0, 1, 2, 3, -1, -1, -1, -1, 8, 9, 10, 11);
    assert_int_equal(gn_assign(gn_index(a, ":, ::-2"), numbers(g, GN_I64, 2)), GN_OK); // another dtype, repeated
    expect_values(a, 0, 1, 2, 0, -1, 1, -1, 0, 8, 1, 10, 0);
    assert_int_equal(gn_assign(gn_transpose(a), gn_mul_s(gn_transpose(a), 2)), GN_OK); // pending, of the same memory
    expect_values(a, 0, 2, 4, 0, -2, 2, -2, 0, 16, 2, 20, 0);
    assert_int_equal(gn_assign(gn_index(a, "1:, 1:"), gn_index(a, ":-1, :-1")), GN_OK); // overlapping
    expect_values(a, 0, 2, 4, 0, -2, 0, 2, 4, 16, -2, 2, -2);
    gn_array *row = gn_reshape(numbers(g, GN_F32, 4), GN_SHAPE(1, 1, 1, 4));
    assert_int_equal(gn_assign(gn_index(a, "0, ::-1"), row), GN_OK); // axes of size 1 in front
    expect_values(gn_index(a, "0"), 3, 2, 1, 0);
    assert_int_equal(gn_assign(a, a), GN_OK);
    assert_int_equal(gn_assign(gn_flip(a, 1), a), GN_OK);
    expect_values(gn_index(a, "0"), 0, 1, 2, 3);
    assert_int_equal(gn_assign(gn_index(a, "2, 1"), gn_scalar(g, GN_F64, 0.1)), GN_OK); // 0-d
    assert_true(gn_item(gn_index(a, "2, 1")) == (double)0.1f);
    assert_int_equal(gn_assign(gn_index(a, "0:0"), gn_ones(g, GN_F32, GN_SHAPE(0, 4))), GN_OK);
    gn_array *e = gn_empty(g, GN_I32, GN_SHAPE(5));
    assert_int_equal(gn_assign(gn_index(e, "1::2"), gn_full(g, GN_F32, GN_SHAPE(), 2.9)), GN_OK);
    expect_values(e, 0, 2, 0, 2, 0);
    gn_array *p = gn_add_s(e, 1); // pending itself
    assert_int_equal(gn_assign(p, gn_scalar(g, GN_I32, 7)), GN_OK);
    expect_values(p, 7, 7, 7, 7, 7);
    gn_array *z = gn_complex(gn_ones(g, GN_F32, GN_SHAPE(3)), gn_zeros(g, GN_F32, GN_SHAPE(3)));
    assert_int_equal(gn_assign(gn_imag(z), numbers(g, GN_F32, 3)), GN_OK);
    assert_int_equal(gn_assign(gn_index(z, "0"), gn_scalar(g, GN_F32, 5)), GN_OK);
    assert_int_equal(gn_assign(gn_index(z, "2"), gn_index(z, "1")), GN_OK);
    expect_values(gn_real(z), 5, 1, 1);
    expect_values(gn_imag(z), 0, 1, 1);
}

// Every pair of dtypes, as gn_cast has it.
static void test_assign_dtypes(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int to = 0; to < GN_DTYPE_COUNT; to++)
        for (int from = 0; from < GN_DTYPE_COUNT; from++) {
            const bool parts = (from == GN_C64 || from == GN_C128) && to != GN_C64 && to != GN_C128;
            if (parts || (test_on_vulkan() && (to + 2 * from) % 11 != 0)) continue;
            gn_scope_begin(g);
            gn_array *x = gn_cast(gn_mul_s(gn_arange(g, GN_F32, -3, 4, 1), 25.5), (gn_dtype)from);
            gn_array *a = gn_zeros(g, (gn_dtype)to, GN_SHAPE(7, 3)), *column = gn_index(a, "::-1, 1");
            assert_int_equal(gn_assign(column, x), GN_OK);
            gn_array *want = gn_zeros(g, (gn_dtype)to, GN_SHAPE(7));
            gn_array *list[3] = {want, gn_flip(gn_cast(x, (gn_dtype)to), 0), want};
            if (to == GN_C64 || to == GN_C128)
                assert_true(gn_array_equal(gn_real(a), gn_real(gn_stack(list, 3, 1)), false));
            else
                assert_true(gn_array_equal(a, gn_stack(list, 3, 1), false));
            gn_scope_end(g);
        }
    assert_int_equal(gn_status_get(g), GN_OK);
}

// What was computed before keeps the old values, in whatever way it was written.
static void test_assign_hazards(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = numbers(g, GN_F32, 6), *view = gn_index(a, "::2"), *views = gn_index(view, "1:");
    gn_array *before = gn_mul_s(a, 10), *product = gn_matmul(gn_reshape(a, GN_SHAPE(2, 3)), gn_ones(g, GN_F32, GN_SHAPE(3, 1)));
    gn_array *chain = gn_add(gn_add_s(views, 1), gn_neg(view = gn_index(view, ":2")));
    assert_int_equal(gn_assign(views, gn_scalar(g, GN_F32, -5)), GN_OK);
    gn_array *between = gn_mul_s(a, 10);
    assert_int_equal(gn_assign(a, gn_add_s(between, 1)), GN_OK); // whole, of a pending reader
    expect_values(before, 0, 10, 20, 30, 40, 50);
    expect_values(product, 3, 12);
    expect_values(chain, 3, 3);
    expect_values(between, 0, 10, -50, 30, -50, 50);
    expect_values(a, 1, 11, -49, 31, -49, 51);
    expect_values(view, 1, -49);
    gn_array *c = numbers(g, GN_F32, 4), *late = gn_exp(gn_mul_s(c, 0)); // c alone shows its memory
    assert_int_equal(gn_assign(c, gn_add(late, gn_flip(c, 0))), GN_OK);
    expect_values(late, 1, 1, 1, 1);
    expect_values(c, 4, 3, 2, 1);
    gn_array *sent = numbers(g, GN_F32, 4);
    float data[4];
    gn_to(sent, GN_DEVICE_GPU);
    assert_int_equal(gn_assign(gn_index(sent, "1:3"), gn_scalar(g, GN_F32, 9)), GN_OK);
    gn_to(sent, GN_DEVICE_CPU);
    assert_int_equal(gn_read(sent, data, sizeof data), GN_OK);
    assert_true(data[0] == 0 && data[1] == 9 && data[2] == 9 && data[3] == 3);
}

// An update in a loop without a scope takes as long each time, however many values of before are pending.
static void test_assign_often(void **state) {
    gn_context *g = (gn_context *)*state;
    const int times = test_on_vulkan() ? 300 : TEST_SANITIZER ? 400 : 20000, recorded = times < 4000 ? times / 20 : 200;
    gn_array *a = numbers(g, GN_F32, 3), *early = NULL;
    for (int i = 0; i < times; i++) {
        gn_array *y = gn_add_s(a, 1);
        if (i == times / 2) early = y;
        assert_int_equal(gn_assign(a, y), GN_OK);
    }
    expect_values(early, times / 2 + 1, times / 2 + 2, times / 2 + 3);
    expect_values(a, times, times + 1, times + 2);
    // With gradients, and rows that show the same memory each time.
    gn_array *x = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2)), true), *y = x, *b = gn_ones(g, GN_F32, GN_SHAPE(2, 2));
    for (int i = 0; i < recorded; i++) {
        assert_int_equal(gn_assign(gn_index(b, "1"), y), GN_OK);
        y = gn_add(gn_index(b, "0"), gn_index(b, "1")); // 1 + y
    }
    assert_int_equal(gn_backward(gn_sum(gn_add(y, gn_index(b, "1")), GN_ALL)), GN_OK);
    expect_values(y, 1 + recorded, 1 + recorded);
    expect_values(gn_grad(x), 2, 2);
}

// x[i] = x[i - 1] / 2 + w[i], recorded, of `n` elements. Returns the seconds that the writes took.
static double recurrence(gn_context *g, int n) {
    gn_scope_begin(g);
    gn_array *w = gn_requires_grad(gn_ones(g, GN_F64, GN_SHAPE(n)), true), *x = gn_zeros(g, GN_F64, GN_SHAPE(n)), *dw = NULL;
    const clock_t from = clock();
    for (int i = 0; i < n; i++)
        GN_SCOPE(g) {
            gn_array *last = gn_eval(gn_mul_s(gn_at(x, i > 0 ? i - 1 : 0), 0.5));
            assert_int_equal(gn_assign(gn_at(x, i), gn_eval(gn_add(last, gn_at(w, i)))), GN_OK);
        }
    const double took = (double)(clock() - from) / CLOCKS_PER_SEC;
    assert_int_equal(gn_gradients(gn_sum(x, GN_ALL), &w, 1, false, &dw), GN_OK);
    assert_true(fabs(gn_item(gn_at(dw, n - 1)) - 1) < 1e-15 && fabs(gn_item(gn_at(dw, n - 3)) - 1.75) < 1e-15);
    assert_true(fabs(gn_item(gn_at(dw, 0)) - 2) < 1e-15 || n < 60);
    gn_scope_end(g);
    return took;
}

// x[i] = 3 i for 4 n rows, where each value stays pending, and so does what reads the first row.
static double beside_pending(gn_context *g, int n) {
    gn_scope_begin(g);
    n *= 4;
    gn_array *x = gn_zeros(g, GN_F32, GN_SHAPE(n, 2)), *v = gn_full(g, GN_F32, GN_SHAPE(2), 3), *y = NULL;
    gn_eval(v);
    const clock_t from = clock();
    for (int i = 1; i < n; i++)
        GN_SCOPE(g) {
            gn_array *z = gn_keep(gn_add_s(gn_at(x, 0), i)), *value = gn_keep(gn_mul_s(v, i));
            if (i == n / 2) y = z;
            assert_int_equal(gn_assign(gn_at(x, i), value), GN_OK);
        }
    const double took = (double)(clock() - from) / CLOCKS_PER_SEC;
    assert_int_equal(gn_assign(x, gn_add_s(x, 1)), GN_OK);
    expect_values(y, n / 2, n / 2);
    expect_values(gn_at(x, n - 1), 3 * n - 2, 3 * n - 2);
    gn_scope_end(g);
    return took;
}

// A step of n parameters and an average of each, where what was computed from them stays pending.
static double many_steps(gn_context *g, int n) {
    gn_scope_begin(g);
    gn_array **p = (gn_array **)calloc((size_t)n * 3, sizeof *p), **mean = p + n, **twice = mean + n, *loss = NULL;
    assert_non_null(p);
    for (int i = 0; i < n; i++) {
        p[i] = gn_requires_grad(gn_full(g, GN_F32, GN_SHAPE(2), i), true);
        mean[i] = gn_zeros(g, GN_F32, GN_SHAPE(2));
        twice[i] = gn_mul_s(p[i], 2);
        loss = i > 0 ? gn_add(loss, gn_sum(twice[i], GN_ALL)) : gn_sum(twice[i], GN_ALL);
    }
    gn_optimizer *sgd = gn_sgd(p, n, &(gn_sgd_options){.lr = 1});
    assert_int_equal(gn_backward(loss), GN_OK);
    const clock_t from = clock();
    assert_int_equal(gn_step(sgd), GN_OK);
    assert_int_equal(gn_ema_update(mean, p, n, 0.5), GN_OK);
    const double took = (double)(clock() - from) / CLOCKS_PER_SEC;
    for (int i = 0; i < n; i += n - 1) {
        expect_values(p[i], i - 2, i - 2);
        expect_values(mean[i], (i - 2) / 2.0, (i - 2) / 2.0);
        expect_values(twice[i], 2 * i, 2 * i);
    }
    gn_optimizer_free(sgd);
    gn_scope_end(g);
    free(p);
    return took;
}

// A write takes as long however many there were: while gradients are recorded, and while work is pending.
static void test_assign_grows(void **state) {
    gn_context *g = (gn_context *)*state;
    double (*const way[3])(gn_context *g, int n) = {recurrence, beside_pending, many_steps};
    for (int k = 0; k < 3; k++) {
        if (test_on_vulkan()) {
            way[k](g, 20);
            continue;
        }
        double best = 99;
        for (int i = 0; i < 5 && best > 7; i++) { // 16 where each looks at all that came before
            const double few = way[k](g, 1000), many = way[k](g, 4000);
            best = fmin(best, many / fmax(few, 1e-3));
        }
        if (best > 9) fail_msg("%d: 4,000 writes take %.1f times as long as 1,000", k, best);
    }
}

// Writes through views, some of which stay, and readers of them, some of whose operands nobody else has: all are sums of w
// by known factors.
static void test_assign_mixed(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 8, K = 3, VIEWS = 4, READERS = 40 };
    for (int round = 0; round < (test_on_vulkan() ? 3 : 60); round++)
        GN_SCOPE(g) {
            const double start[K] = {1, 2, 3};
            double x[N][K] = {{0}}, want[K] = {0}, have[K];
            gn_array *w = gn_requires_grad(gn_array_from(g, GN_F64, GN_SHAPE(K), start), true), *a = gn_zeros(g, GN_F64, GN_SHAPE(N));
            gn_array *view[VIEWS] = {NULL}, *loss = gn_scalar(g, GN_F64, 0), *dw = NULL;
            int from[VIEWS] = {0}, readers = 0;
            for (int step = 0; step < 60; step++) {
                const int v = (int)draw(VIEWS), i = (int)draw(N), k = (int)draw(K);
                const double c = 0.25 * (double)(1 + draw(5));
                if (view[v] == NULL || draw(4) == 0) { // of three elements
                    from[v] = (int)draw(N - 2);
                    gn_set(&view[v], gn_slice(a, 0, from[v], from[v] + 3, 1));
                }
                gn_scope_begin(g);
                switch (draw(4)) {
                case 0: // an element of w, through a view that goes or one that stays
                    assert_int_equal(gn_assign(gn_at(a, i), gn_mul_s(gn_at(w, k), c)), GN_OK);
                    for (int j = 0; j < K; j++) x[i][j] = j == k ? c : 0;
                    break;
                case 1:
                    assert_int_equal(gn_assign(view[v], gn_mul_s(gn_at(w, k), c)), GN_OK);
                    for (int e = 0; e < 3; e++)
                        for (int j = 0; j < K; j++) x[from[v] + e][j] = j == k ? c : 0;
                    break;
                case 2: // an element of the same memory
                    assert_int_equal(gn_assign(gn_at(view[v], 1), gn_mul_s(gn_at(a, i), c)), GN_OK);
                    for (int j = 0; j < K; j++) x[from[v] + 1][j] = x[i][j] * c;
                    break;
                default: // a reader, which keeps what is there
                    if (readers++ == READERS) break;
                    gn_array *y = gn_mul_s(gn_at(view[v], 2), c);
                    gn_set(&loss, gn_add(loss, step % 2 ? y : gn_eval(y)));
                    for (int j = 0; j < K; j++) want[j] += x[from[v] + 2][j] * c;
                }
                gn_scope_end(g);
            }
            loss = gn_add(loss, gn_sum(a, GN_ALL));
            for (int v = 0; v < VIEWS; v++)
                if (view[v] != NULL) loss = gn_add(loss, gn_sum(view[v], GN_ALL));
            for (int j = 0; j < K; j++) {
                for (int i = 0; i < N; i++) want[j] += x[i][j];
                for (int v = 0; v < VIEWS; v++)
                    for (int e = 0; e < 3 && view[v] != NULL; e++) want[j] += x[from[v] + e][j];
            }
            assert_int_equal(gn_gradients(loss, &w, 1, false, &dw), GN_OK);
            assert_int_equal(gn_read(dw, have, sizeof have), GN_OK);
            for (int v = 0; v < VIEWS; v++) gn_release(view[v]);
            for (int j = 0; j < K; j++)
                if (!(fabs(have[j] - want[j]) <= 1e-12 * (1 + fabs(want[j])))) fail_msg("round %d: slope %d is %.17g, not %.17g", round, j, have[j], want[j]);
        }
}

// Life of cells that nobody writes in a loop without an update through a view: the same as with whole arrays.
static void test_assign_stencil(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *u = gn_eval(gn_sin(gn_reshape(numbers(g, GN_F64, 49), GN_SHAPE(7, 7))));
    double want[49], have[49], next[49];
    assert_int_equal(gn_read(u, want, sizeof want), GN_OK);
    for (int step = 0; step < 5; step++) {
        gn_scope_begin(g);
        gn_array *sum = gn_add(gn_add(gn_index(u, ":-2, 1:-1"), gn_index(u, "2:, 1:-1")),
                               gn_add(gn_index(u, "1:-1, :-2"), gn_index(u, "1:-1, 2:")));
        assert_int_equal(gn_assign(gn_index(u, "1:-1, 1:-1"), gn_mul_s(sum, 0.25)), GN_OK);
        gn_scope_end(g);
        memcpy(next, want, sizeof want);
        for (int i = 8; i < 41; i++)
            if (i % 7 != 0 && i % 7 != 6) next[i] = ((want[i - 7] + want[i + 7]) + (want[i - 1] + want[i + 1])) * 0.25;
        memcpy(want, next, sizeof want);
    }
    assert_int_equal(gn_read(u, have, sizeof have), GN_OK);
    assert_memory_equal(have, want, sizeof want);
}

static void test_assign_refusals(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_eval(gn_ones(g, GN_F32, GN_SHAPE(2, 3))), *b = gn_ones(g, GN_F32, GN_SHAPE(2));
    assert_int_equal(gn_assign(a, b), GN_ERROR_SHAPE);
    expect_error(g, GN_ERROR_SHAPE, "gn_assign: shape (2,) does not broadcast to (2,3)");
    assert_int_equal(gn_assign(gn_index(a, ":, 0:1"), a), GN_ERROR_SHAPE);
    expect_error(g, GN_ERROR_SHAPE, "gn_assign: shape (2,3) does not broadcast to (2,1)");
    assert_int_equal(gn_assign(gn_broadcast_to(b, GN_SHAPE(3, 2)), b), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_assign: axis 0 of this array repeats one element (gn_broadcast_to); write to a gn_copy");
    assert_int_equal(gn_assign(gn_sliding_window(a, 2, 1), gn_scalar(g, GN_F32, 0)), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_assign: elements of this array share memory (gn_sliding_window); write to a gn_copy");
    assert_int_equal(gn_assign(a, NULL), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_assign: array argument 2 is NULL");
    gn_array *leaf = gn_requires_grad(gn_eval(gn_ones(g, GN_F32, GN_SHAPE(4))), true), *view = gn_index(leaf, "1:3");
    assert_int_equal(gn_assign(view, gn_scalar(g, GN_F32, 0)), GN_ERROR_GRADIENT);
    expect_error(g, GN_ERROR_GRADIENT,
                 "gn_assign: this memory is that of a leaf that requires a gradient; write to it between gn_no_grad_begin and "
                 "gn_no_grad_end, or to a gn_copy");
    expect_values(leaf, 1, 1, 1, 1);
    gn_no_grad_begin(g);
    assert_int_equal(gn_assign(view, gn_scalar(g, GN_F32, 3)), GN_OK);
    gn_no_grad_end(g);
    assert_int_equal(gn_assign(gn_index(gn_detach(leaf), "0"), gn_scalar(g, GN_F32, 2)), GN_OK);
    expect_values(leaf, 2, 3, 3, 1);
    assert_false(gn_needs_grad(gn_detach(leaf)));
    gn_array *y = gn_mul_s(leaf, 3); // its own values, as constants
    assert_int_equal(gn_assign(gn_index(y, "1:"), gn_index(gn_detach(y), "1:")), GN_OK);
    expect_values(y, 6, 9, 9, 3);
    assert_int_equal(gn_backward(gn_sum(y, GN_ALL)), GN_OK);
    expect_values(gn_grad(leaf), 3, 0, 0, 0);
}

// Places by arrays: what reads the memory, shows it or is it while it is written to.
static void test_assign_places(void **state) {
    gn_context *g = (gn_context *)*state;
    const int32_t some[] = {4, -6, 4};
    for (int typed = 0; typed < 3; typed++) { // in place, or not
        const gn_dtype t = typed == 0 ? GN_F32 : typed == 1 ? GN_I32 : GN_I16;
        gn_array *a = numbers(g, t, 6), *at = gn_array_from(g, GN_I32, GN_SHAPE(3), some), *view = gn_index(a, "::2");
        gn_array *before = gn_mul_s(a, 10), *shown = gn_add_s(view, 1);
        assert_int_equal(gn_assign_arrays(a, &at, 1, gn_slice(a, 0, 3, 6, 1)), GN_OK); // of both for place 4 the last
        expect_values(before, 0, 10, 20, 30, 40, 50);
        expect_values(shown, 1, 3, 5);
        expect_values(a, 4, 1, 2, 3, 5, 5);
        expect_values(view, 4, 2, 5);
        gn_array *alone = numbers(g, t, 4), *late = gn_mul_s(alone, 2); // nothing else shows its memory
        assert_int_equal(gn_assign_arrays(alone, &at, 1, late), GN_ERROR_SHAPE);
        expect_error(g, GN_ERROR_SHAPE, NULL);
        if (!test_on_vulkan()) { // there is no place 4, which a GPU tells later
            assert_int_equal(gn_assign_arrays(alone, &at, 1, gn_index(late, "1:")), GN_ERROR_ARGUMENT);
            expect_error(g, GN_ERROR_ARGUMENT, NULL);
        }
        at = gn_index(at, "0:1");
        assert_int_equal(gn_assign_arrays(a, &at, 1, gn_index(late, "3")), GN_OK);
        expect_values(late, 0, 2, 4, 6);
        expect_values(alone, 0, 1, 2, 3);
        expect_values(a, 4, 1, 2, 3, 6, 5);
        if (t != GN_F32) { // it says itself where
            gn_array *self = numbers(g, t, 3), *none = gn_empty(g, t, GN_SHAPE(2, 3)), *rows = gn_cast(gn_index(self, "1:2"), GN_I8);
            assert_int_equal(gn_assign_arrays(self, &self, 1, gn_flip(self, 0)), GN_OK);
            expect_values(self, 2, 1, 0);
            assert_int_equal(gn_assign_arrays(none, &rows, 1, self), GN_OK); // never written before
            expect_values(none, 0, 0, 0, 2, 1, 0);
        }
    }
    gn_array *leaf = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(3)), true), *one = gn_full(g, GN_I64, GN_SHAPE(1), 1);
    assert_int_equal(gn_assign_arrays(leaf, &one, 1, gn_scalar(g, GN_F32, 2)), GN_ERROR_GRADIENT);
    expect_error(g, GN_ERROR_GRADIENT, NULL);
    gn_no_grad_begin(g);
    assert_int_equal(gn_assign_arrays(leaf, &one, 1, gn_scalar(g, GN_F32, 2)), GN_OK);
    gn_no_grad_end(g);
    expect_values(leaf, 1, 2, 1);
    gn_array *y = gn_square(leaf), *z = gn_eval(gn_exp(y)); // whose value its derivative needs
    gn_array *inner = gn_detach(z);
    assert_int_equal(gn_assign_arrays(inner, &one, 1, gn_scalar(g, GN_F32, 0)), GN_OK);
    assert_int_equal(gn_backward(gn_sum(z, GN_ALL)), GN_ERROR_GRADIENT);
    expect_error(g, GN_ERROR_GRADIENT, NULL);
}

static void note_status(void *user, gn_status status) { *(gn_status *)user = status; }

// ---- derivatives

typedef struct function {
    const char *name;
    gn_array *(*fn)(gn_array *a);
} function;

static gn_array *cut(gn_array *a, const char *text) { return gn_index(a, text); }
static gn_array *times(gn_array *a, double by) { return gn_mul_s(gn_sin(a), by); }

static gn_array *assign_constant(gn_array *a) { // only what is left counts
    gn_array *y = times(a, 2);
    gn_assign(cut(y, "1:, ::2"), gn_scalar(gn_context_of(a), GN_F64, 0.5));
    return y;
}
static gn_array *assign_to_constant(gn_array *a) {
    gn_array *y = gn_ones_like(a), *row = cut(y, "1"), *column = cut(y, ":, 2");
    gn_assign(row, times(cut(a, "0"), 3));
    gn_assign(column, gn_square(cut(a, ":, 1")));
    return gn_add(gn_mul(y, row), gn_sum(column, 0));
}
static gn_array *assign_both(gn_array *a) {
    gn_array *y = times(a, 2), *x = gn_transpose(y), *first = gn_mul_s(y, 3); // before it is written to
    gn_assign(cut(x, "::-1, 1"), times(cut(a, "2"), 0.7));
    gn_array *second = gn_mul_s(x, -1);
    gn_array *corner = gn_copy(cut(y, "1:, 2:")); // its values are needed again
    gn_assign(cut(y, "0:2, 1:3"), gn_mul(corner, corner));
    return gn_add(gn_add(first, gn_transpose(second)), gn_square(y));
}
static gn_array *assign_broadcast(gn_array *a) {
    gn_array *y = gn_cast(times(a, 2), GN_F64), *flipped = gn_flip(y, 1);
    gn_assign(cut(flipped, "1:, 1:3"), gn_sum(a, GN_KEEP(GN_ALL)));
    gn_assign(cut(y, "0"), cut(a, "1:2"));
    gn_assign(gn_reshape(y, GN_SHAPE(4, 3)), gn_reshape(gn_add(y, flipped), GN_SHAPE(4, 3))); // all of it
    return gn_mul(flipped, y);
}

static gn_array *assign_repeated(gn_array *a) { // views that repeat what is written
    gn_array *y = times(a, 2), *all = gn_broadcast_to(y, GN_SHAPE(2, 3, 4)), *one = gn_broadcast_to(cut(y, "1, 2"), GN_SHAPE(3));
    gn_array *row = gn_broadcast_to(cut(y, "2"), GN_SHAPE(3, 4));
    gn_assign(cut(y, "1:, ::2"), gn_square(cut(a, "0, :2")));
    gn_array *sums = gn_sum(gn_mul(all, gn_sin(all)), 0);
    return gn_add(gn_mul(sums, row), gn_sum(gn_sin(one), GN_ALL));
}

static gn_array *index_of(gn_array *a, gn_shape s, int64_t n) { // some more than once, some from the end
    gn_context *g = gn_context_of(a);
    gn_array *i = gn_arange(g, GN_I64, 0, (double)gn_size(gn_zeros(g, GN_BOOL, s)), 1);
    return gn_reshape(gn_add_s(gn_mod_s(gn_mul_s(i, 5), (double)(2 * n - 1)), 1 - (double)n), s);
}
static gn_array *take(gn_array *a) { return gn_take(gn_sin(a), index_of(a, GN_SHAPE(2, 5), 4), 1); }
static gn_array *take_along(gn_array *a) {
    gn_array *y = gn_take_along(gn_sin(a), index_of(a, GN_SHAPE(5, 4), 3), 0);
    return gn_mul(gn_mul(y, gn_take_along(y, index_of(a, GN_SHAPE(5, 1), 4), 1)), gn_sum(gn_take_along(a, index_of(a, GN_SHAPE(1, 5), 4), 1), GN_ALL));
}
static gn_array *put_along(gn_array *a) {
    gn_array *y = gn_put_along(gn_sin(a), index_of(a, GN_SHAPE(3, 6), 4), gn_concat((gn_array *const[]){a, cut(a, ":, :2")}, 2, 1), 1);
    return gn_mul(y, gn_put_along(gn_square(a), index_of(a, GN_SHAPE(2, 1), 3), cut(a, "1"), 0));
}
static gn_array *scatter_add(gn_array *a) {
    gn_array *y = gn_scatter_add(gn_sin(a), index_of(a, GN_SHAPE(3, 6), 4), gn_concat((gn_array *const[]){a, cut(a, ":, :2")}, 2, 1), 1);
    return gn_mul(y, gn_scatter_add(gn_square(a), index_of(a, GN_SHAPE(5, 1), 3), cut(a, "1"), 0));
}
static gn_array *scatter_extremes(gn_array *a) {
    gn_array *y = gn_scatter_max(gn_sin(a), index_of(a, GN_SHAPE(6, 4), 3), gn_concat((gn_array *const[]){gn_mul_s(a, 0.8), a}, 2, 0), 0);
    return gn_mul(y, gn_scatter_min(gn_square(a), index_of(a, GN_SHAPE(1, 3), 4), cut(a, ":, 1:"), 1));
}
static gn_array *places(gn_array *a) {
    gn_array *const at[] = {index_of(a, GN_SHAPE(2, 5), 3), index_of(a, GN_SHAPE(5), 4)};
    gn_array *y = gn_mul_s(gn_sin(a), 2);
    gn_assign_arrays(y, at, 2, gn_index(gn_square(a), "1, :1"));
    gn_assign_arrays(gn_transpose(y), at + 1, 1, gn_index(a, ":, 1"));
    return gn_mul(gn_index_arrays(y, at, 2), gn_sum(gn_index_arrays(gn_square(a), at, 1), GN_ALL));
}
static gn_array *masks(gn_array *a) {
    gn_array *m = gn_gt_s(cut(a, ":, 0"), -0.5), *all = gn_lt_s(a, 0.3), *y = gn_mul_s(a, 2), *some = gn_mask(gn_sin(a), all);
    gn_assign_mask(y, all, gn_square(some));
    gn_assign_mask(y, m, gn_mul_s(cut(a, "1"), 3));
    gn_assign_mask(gn_transpose(y), gn_index(all, "0"), gn_sum(a, GN_ALL));
    return gn_add(gn_mul(y, gn_sum(gn_mask(a, m), 0)), gn_sum(gn_compress(gn_index(all, "1"), gn_square(a), 1), GN_ALL));
}

static const function functions[] = {
    {"take", take}, {"take_along", take_along}, {"put_along", put_along}, {"scatter_add", scatter_add},
    {"scatter_extremes", scatter_extremes}, {"masks", masks}, {"places", places},
    {"constant", assign_constant}, {"to_constant", assign_to_constant}, {"both", assign_both}, {"broadcast", assign_broadcast},
    {"repeated", assign_repeated},
};

static void test_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) test_derivatives(g, functions[i].name, functions[i].fn);
}

// A pass that needs what was overwritten says so; one that does not is right.
static void test_overwritten(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_requires_grad(gn_full(g, GN_F32, GN_SHAPE(4), 2), true);
    gn_array *y = gn_exp(x), *loss = gn_sum(y, GN_ALL), *half = gn_scalar(g, GN_F32, 0.5);
    assert_int_equal(gn_assign(gn_index(y, "1:"), half), GN_OK);
    assert_int_equal(gn_backward(loss), GN_ERROR_GRADIENT); // exp reads its result
    assert_non_null(strstr(gn_error(g), "was overwritten by gn_write or gn_assign"));
    gn_error_clear(g);
    gn_array *s = gn_add_s(x, 1), *product = gn_mul(s, x), *sum = gn_sum(s, GN_ALL);
    assert_int_equal(gn_assign(s, half), GN_OK);
    assert_int_equal(gn_backward(gn_sum(product, GN_ALL)), GN_ERROR_GRADIENT);
    assert_non_null(strstr(gn_error(g), "operand 1 of gn_mul, float32 (4,), was overwritten"));
    gn_error_clear(g);
    assert_int_equal(gn_backward(sum), GN_OK); // that of the old elements
    expect_values(gn_grad(x), 1, 1, 1, 1);
    gn_zero_grad(x);
    assert_int_equal(gn_backward(gn_sum(gn_mul(s, x), GN_ALL)), GN_OK);
    expect_values(gn_grad(x), 0.5, 0.5, 0.5, 0.5);
    gn_zero_grad(x);
    // Through another dtype's view of the memory there is no way back, and none is made up.
    gn_array *z = gn_complex(gn_mul_s(x, 1), x);
    assert_int_equal(gn_assign(gn_real(z), gn_mul_s(x, 3)), GN_OK);
    assert_int_equal(gn_backward(gn_sum(gn_imag(z), GN_ALL)), GN_ERROR_GRADIENT);
    expect_error(g, GN_ERROR_GRADIENT, "gn_backward: gn_assign has no derivative");
}

// Functions of x (4, 4) whose derivative reads their result.
static gn_array *attended(gn_array *x) { return gn_attention(x, x, x, NULL, NULL); }
static gn_array *recurrent(gn_array *x, bool lstm) {
    const gn_rnn_options options = {.no_bias = true};
    gn_array *w[2] = {gn_tile(x, GN_SHAPE(lstm ? 4 : 3, 1)), NULL}, *steps = gn_expand_dims(x, 1);
    w[1] = gn_mul_s(w[0], 0.5);
    return lstm ? gn_lstm(steps, w, 2, NULL, NULL, &options, NULL, NULL) : gn_gru(steps, w, 2, NULL, &options, NULL);
}
static gn_array *by_lstm(gn_array *x) { return recurrent(x, true); }
static gn_array *by_gru(gn_array *x) { return recurrent(x, false); }
static gn_array *own_exp(gn_context *g, gn_array *const *in, int count, void *user) {
    (void)g, (void)count, (void)user;
    return gn_exp(in[0]);
}
static void own_exp_back(gn_context *g, gn_array *const *in, int count, gn_array *out, gn_array *gy, gn_array **gx, void *user) {
    (void)g, (void)in, (void)count, (void)user;
    gx[0] = gn_mul(gy, out);
}
static gn_array *by_custom(gn_array *x) { return gn_custom(own_exp, own_exp_back, &x, 1, NULL); }
static gn_array *turned(gn_array *x) { return gn_complex(x, gn_flip(x, 1)); }
static gn_array *complex_root(gn_array *x) { return gn_real(gn_sqrt(turned(x))); }
static gn_array *complex_tanh(gn_array *x) { return gn_real(gn_tanh(turned(x))); }
static gn_array *complex_det(gn_array *x) { return gn_real(gn_det(turned(x))); }
static gn_array *triangular(gn_array *x) { return gn_solve_triangular(x, x, true, true, false); }
static gn_array *complex_sign(gn_array *x) { return gn_real(gn_slogdet(turned(x), NULL)); }

// A result that its derivative reads is overwritten, through a view and where no record is made: said, and no gradient.
static void test_overwritten_results(void **state) {
    gn_context *g = (gn_context *)*state;
    static const struct {
        gn_array *(*fn)(gn_array *x);
        const char *name;
    } made[] = {
        {attended, "gn_attention"}, {by_lstm, "gn_lstm"},      {by_gru, "gn_gru"},       {by_custom, "gn_custom"},
        {complex_root, "gn_sqrt"},  {complex_tanh, "gn_tanh"}, {complex_det, "gn_det"}, {complex_sign, "gn_slogdet"},
        {triangular, "gn_solve_triangular"},
    };
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        for (int way = 0; way < 3; way++) {
            char text[64];
            gn_scope_begin(g);
            gn_array *x = gn_add(gn_eye(g, GN_F32, 4, 4, 0), gn_mul_s(gn_rand(g, GN_F32, GN_SHAPE(4, 4)), 0.3));
            gn_requires_grad(x, true);
            gn_array *y = made[i].fn(x), *loss = gn_sum(gn_mul_s(y, 2), GN_ALL);
            if (way == 1) gn_no_grad_begin(g);
            assert_int_equal(gn_assign(way == 2 ? gn_index(y, "...") : y, gn_scalar(g, GN_F32, 7)), GN_OK);
            if (way == 1) gn_no_grad_end(g);
            assert_int_equal(gn_backward(loss), GN_ERROR_GRADIENT);
            snprintf(text, sizeof text, "the result of %s,", made[i].name);
            assert_non_null(strstr(gn_error(g), text));
            gn_error_clear(g);
            assert_null(gn_grad(x));
            // What is not overwritten has its gradient.
            assert_int_equal(gn_backward(gn_sum(made[i].fn(x), GN_ALL)), GN_OK);
            assert_non_null(gn_grad(x));
            gn_scope_end(g);
        }
}

// NumPy's answers.
static void test_siblings(void **state) {
    gn_context *g = (gn_context *)*state;
    expect_values(gn_linspace_open(g, GN_F64, 1, 2, 4), 1, 1.25, 1.5, 1.75);
    expect_values(gn_linspace_open(g, GN_I32, 0, 10, 4), 0, 2, 5, 7);
    expect_values(gn_linspace_open(g, GN_F32, 3, 9, 1), 3);
    expect_values(gn_linspace_open(g, GN_U8, 0, 256, 2), 0, 128); // which is left out need not fit
    gn_array *a = gn_reshape(numbers(g, GN_F64, 6), GN_SHAPE(2, 3)), *part[4];
    expect_values(gn_var(a, 1, 0.5), 0.8, 0.8);
    expect_values(gn_std(a, 0, 1.75), 4.242640687119285, 4.242640687119285, 4.242640687119285);
    expect_values(gn_nanvar(a, GN_ALL, 2.5), 5);
    assert_int_equal(gn_split_at(gn_transpose(a), (const int64_t[]){1, 1, -1}, 3, 0, part), GN_OK);
    expect_shape(part[1], 0, 2);
    expect_values(part[0], 0, 3);
    expect_values(part[2], 1, 4);
    expect_values(part[3], 2, 5);
    assert_int_equal(gn_split_at(a, (const int64_t[]){2, 1, 9}, 3, 1, part), GN_OK);
    expect_values(part[0], 0, 1, 3, 4);
    expect_shape(part[1], 2, 0);
    expect_values(part[2], 1, 2, 4, 5);
    expect_shape(part[3], 2, 0);
    assert_int_equal(gn_split_at(a, NULL, 1, 0, part), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_split_at: 1 places");
    // A line through (0, 1), (1, 3), (2, 4), and one that it meets.
    const double points[] = {0, 1, 1, 1, 2, 1}, values[] = {1, 2, 3, 5, 4, 8};
    gn_array *m = gn_array_from(g, GN_F64, GN_SHAPE(3, 2), points), *b = gn_array_from(g, GN_F64, GN_SHAPE(3, 2), values);
    gn_array *left = NULL, *rank = NULL, *x = gn_lstsq(m, b, -1, &left, &rank);
    const double want[] = {1.5, 3, 7.0 / 6, 2}, none[] = {1.0 / 6, 0};
    assert_true(gn_allclose(x, gn_array_from(g, GN_F64, GN_SHAPE(2, 2), want), 0, 1e-13, false));
    assert_true(gn_allclose(left, gn_array_from(g, GN_F64, GN_SHAPE(2), none), 0, 1e-13, false));
    expect_values(rank, 2);
    gn_lstsq(m, gn_index(b, ":, 0"), -1, &left, NULL);
    expect_shape(left, );
    gn_lstsq(gn_ones(g, GN_F64, GN_SHAPE(3, 2)), b, -1, NULL, &rank);
    expect_values(rank, 1);
    left = x;
    assert_null(gn_lstsq(m, a, -1, &left, NULL));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(left);
}

// As many that a device counts them itself.
static void test_many_true(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { ROWS = 61, COLUMNS = 83, N = ROWS * COLUMNS };
    static int64_t want[2][N], have[2 * N];
    gn_array *a = gn_eval(gn_randint(g, GN_I32, GN_SHAPE(ROWS, COLUMNS), 0, 3));
    static int32_t data[N];
    size_t n = 0;
    assert_int_equal(gn_read(a, data, sizeof data), GN_OK);
    for (int i = 0; i < N; i++)
        if (data[i] != 0) want[0][n] = i / COLUMNS, want[1][n++] = i % COLUMNS;
    gn_to(a, GN_DEVICE_GPU);
    gn_array *y = gn_nonzero(a), *none = gn_nonzero(gn_gt_s(a, 5));
    expect_shape(y, 2, (int64_t)n);
    expect_shape(none, 2, 0);
    assert_int_equal(gn_dtype_of(y), GN_I64);
    assert_int_equal(gn_read(y, have, 16 * n), GN_OK);
    assert_memory_equal(have, want[0], 8 * n);
    assert_memory_equal(have + n, want[1], 8 * n);
    expect_shape(gn_flatnonzero(gn_ge_s(a, 0)), N);
    gn_array *ones = gn_mask(a, gn_eq_s(a, 1));
    assert_true(gn_size(ones) > 1000 && gn_item(gn_sum(ones, GN_ALL)) == (double)gn_size(ones));
}

// Masks from an offset, in parts and rows of a device's kernel, all and none true, over elements of each size.
static void test_kept(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { MASKED = 40013 };
    static const int length[] = {4096, 4097, 8191, 12000, 40001};
    static const gn_dtype dtype[] = {GN_F32, GN_F16, GN_U8, GN_I64, GN_C128};
    static uint8_t truth[MASKED];
    static double x[MASKED], have[2 * MASKED];
    static int64_t place[3 * MASKED];
    for (int k = 0; k < 5 * 5; k++) {
        const int n = length[k / 5], offset = k % 11, one_of = k % 5; // 0: none of them
        const gn_dtype t = dtype[(k + k / 5) % 5];
        const bool complex = t == GN_C128;
        int64_t count = 0;
        gn_scope_begin(g);
        for (int i = 0; i < MASKED; i++) {
            draw(1);
            truth[i] = one_of > 0 && (test_lot >> 40) % (uint64_t)one_of == 0;
            x[i] = (double)((test_lot >> 50) & 127);
        }
        gn_array *m = gn_slice(gn_eval(gn_logical_not(gn_logical_not(gn_array_from(g, GN_BOOL, GN_SHAPE(MASKED), truth)))), 0, offset, offset + n, 1);
        gn_array *a = gn_slice(gn_eval(gn_cast(gn_add_s(gn_array_from(g, GN_F64, GN_SHAPE(MASKED), x), 0), t)), 0, offset, offset + n, 1);
        if (k % 2 == 0) gn_to(m, GN_DEVICE_GPU);
        gn_array *kept = gn_compress(m, a, 0), *places = gn_flatnonzero(m), *axes = n % 12 == 0 ? gn_nonzero(gn_reshape(m, GN_SHAPE(n / 12, 3, 4))) : NULL;
        for (int i = 0; i < n; i++) count += truth[offset + i];
        expect_shape(kept, count);
        expect_shape(places, count);
        assert_int_equal(gn_dtype_of(kept), t);
        assert_int_equal(gn_read(complex ? gn_real(kept) : gn_cast(kept, GN_F64), have, 8 * (size_t)count), GN_OK);
        assert_int_equal(gn_read(places, place, 8 * (size_t)count), GN_OK);
        for (int i = 0, q = 0; i < n; i++)
            if (truth[offset + i]) {
                if (have[q] != x[offset + i] || place[q] != i) fail_msg("case %d: element %d", k, i);
                q++;
            }
        if (t == GN_F32 || t == GN_I64) {
            gn_array *to = gn_copy(a);
            assert_int_equal(gn_assign_mask(to, m, gn_add_s(kept, 200)), GN_OK);
            assert_int_equal(gn_read(gn_cast(to, GN_F64), have, 8 * (size_t)n), GN_OK);
            for (int i = 0; i < n; i++)
                if (have[i] != x[offset + i] + (truth[offset + i] ? 200 : 0)) fail_msg("case %d: element %d was assigned", k, i);
        }
        if (axes != NULL) assert_int_equal(gn_read(axes, place, 24 * (size_t)count), GN_OK);
        for (int i = 0, q = 0; i < n && axes != NULL; i++)
            if (truth[offset + i]) {
                if (place[q] != i / 12 || place[count + q] != i / 4 % 3 || place[2 * count + q] != i % 4) fail_msg("case %d: place %d", k, i);
                q++;
            }
        gn_scope_end(g);
    }
}

// Told by the call, or where a device has the indices when the result is read.
static void expect_out_of_range(gn_context *g, gn_array *y) {
    float have[8];
    if (y != NULL) assert_int_equal(gn_read(y, have, gn_bytes(y)), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
}

// uint64 indices are taken like others; those from 2^63 on are out of range, and not negative ones.
static void test_unsigned_indices(void **state) {
    gn_context *g = (gn_context *)*state;
    uint64_t place[] = {2, 0, 1};
    gn_array *a = numbers(g, GN_F32, 5), *w = gn_add_s(numbers(g, GN_F32, 3), 7), *i = gn_array_from(g, GN_U64, GN_SHAPE(3), place);
    expect_values(gn_take(a, i, 0), 2, 0, 1);
    expect_values(gn_take_along(a, gn_flip(i, 0), 0), 1, 0, 2);
    expect_values(gn_put_along(a, i, w, 0), 8, 9, 7, 3, 4);
    expect_values(gn_scatter_add(a, i, w, 0), 8, 10, 9, 3, 4);
    expect_values(gn_one_hot(i, GN_F32, 2), 0, 0, 1, 0, 0, 1);
    expect_values(gn_bincount(i, NULL, 0), 1, 1, 1);
    expect_values(gn_repeat_counts(w, i, 0), 7, 7, 9);
    expect_values(gn_embedding(i, gn_expand_dims(a, 1), -1), 2, 0, 1);
    const uint64_t beyond[] = {(uint64_t)1 << 63, UINT64_MAX, 5};
    for (int k = 0; k < 3; k++) {
        place[1] = beyond[k];
        i = gn_array_from(g, GN_U64, GN_SHAPE(3), place);
        expect_out_of_range(g, gn_take(a, i, 0));
        expect_out_of_range(g, gn_take_along(a, i, 0));
        expect_out_of_range(g, gn_put_along(a, i, w, 0));
        expect_out_of_range(g, gn_scatter_max(a, i, w, 0));
        expect_values(gn_sum(gn_one_hot(i, GN_F32, 5), 1), 1, 0, 1);
        if (k == 2) continue;
        assert_null(gn_bincount(i, NULL, 0));
        expect_error(g, GN_ERROR_SHAPE, NULL);
        assert_null(gn_repeat_counts(w, i, 0));
        expect_error(g, GN_ERROR_SHAPE, NULL);
    }
}

// Indices that only the device has are looked at by its kernels: the next wait tells of those that are none.
static void test_told_later(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_to(numbers(g, GN_F32, 6), GN_DEVICE_GPU), *bad = gn_to(gn_eval(gn_sub(numbers(g, GN_I64, 4), gn_full(g, GN_I64, GN_SHAPE(4), 7))), GN_DEVICE_GPU);
    gn_array *good = gn_to(numbers(g, GN_I32, 4), GN_DEVICE_GPU), *y = gn_take(a, bad, 0);
    const bool late = test_on_vulkan();
    if (late) {
        float have[4];
        assert_int_equal(gn_status_get(g), GN_OK);
        assert_int_equal(gn_read(gn_take(a, good, 0), have, sizeof have), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_read: an index of gn_take is out of bounds for axis 0 with size 6");
        assert_int_equal(gn_read(y, have, sizeof have), GN_OK); // told once
        gn_scatter_add(a, bad, y, 0);
        assert_int_equal(gn_sync(g), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_sync: an index of gn_scatter_add is out of bounds for axis 0 with size 6");
        gn_embedding(bad, gn_expand_dims(a, 1), GN_NONE);
        assert_int_equal(gn_sync(g), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_sync: an index of gn_embedding is out of bounds for axis 0 with size 6");
        gn_status told = GN_OK;
        for (int i = 0; i < 70; i++) gn_take_along(a, good, 0); // more than there are flags
        gn_read_async(gn_take_along(a, bad, 0), have, sizeof have, note_status, &told);
        gn_sync(g);
        assert_int_equal(told, GN_ERROR_ARGUMENT);
        assert_int_equal(gn_status_get(g), GN_ERROR_ARGUMENT);
        gn_error_clear(g);
    } else {
        assert_null(y);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_take: index -7 is out of bounds for axis 0 with size 6");
        assert_null(gn_index_arrays(a, &bad, 1));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_index_arrays: index -7 is out of bounds for axis 0 with size 6");
    }
    expect_values(gn_take(a, good, 0), 0, 1, 2, 3);
    assert_int_equal(gn_sync(g), GN_OK);
}

// Sums of random numbers, a share of which goes to the first place: as float64 has them, and the same bits in another order.
static void expect_sums(gn_context *g, int n, int places, int first) {
    float *values = (float *)malloc((size_t)n * 4), *have = (float *)malloc((size_t)places * 4), *again = (float *)malloc((size_t)places * 4);
    int32_t *to = (int32_t *)malloc((size_t)n * 4);
    double *want = (double *)calloc((size_t)places, sizeof *want), *sizes = (double *)calloc((size_t)places, sizeof *sizes);
    const size_t bytes = (size_t)places * 4;
    assert_true(values != NULL && have != NULL && again != NULL && to != NULL && want != NULL && sizes != NULL);
    for (int i = 0; i < n; i++) {
        to[i] = (int)draw(100) < first ? 0 : (int32_t)draw((uint32_t)places);
        values[i] = ldexpf((float)((int)draw(1 << 24) - (1 << 23)), (int)draw(40) - 30);
        want[to[i]] += (double)values[i];
        sizes[to[i]] += fabs((double)values[i]);
    }
    gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(n), values), *at = gn_array_from(g, GN_I32, GN_SHAPE(n), to);
    gn_array *zeros = gn_zeros(g, GN_F32, GN_SHAPE(places));
    assert_int_equal(gn_read(gn_scatter_add(zeros, at, x, 0), have, bytes), GN_OK);
    assert_int_equal(gn_read(gn_scatter_add(zeros, at, x, 0), again, bytes), GN_OK);
    assert_memory_equal(have, again, bytes);
    for (int i = 0; i < places; i++) assert_true(fabs((double)have[i] - want[i]) <= 1.5e-7 * fabs(want[i]) + (test_on_vulkan() ? 1e-12 : 1e-5) * sizes[i]);
    if (test_on_vulkan()) { // in another order
        assert_int_equal(gn_read(gn_scatter_add(zeros, gn_copy(gn_flip(at, 0)), gn_copy(gn_flip(x, 0)), 0), again, bytes), GN_OK);
        assert_memory_equal(have, again, bytes);
    }
    free(values);
    free(have);
    free(again);
    free(to);
    free(want);
    free(sizes);
}

// Rows of all lengths about 16, and of complex numbers; an index for each row and for each element, some from the end.
static void test_sums_of_rows(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { ROWS = 7, COUNT = 23, LONGEST = 45 };
    static double base[ROWS * LONGEST * 2], values[COUNT * LONGEST * 2], want[ROWS * LONGEST * 2], have[ROWS * LONGEST * 2];
    static int64_t to[COUNT * LONGEST];
    static const int lengths[] = {1, 2, 8, 15, 16, 17, 33, LONGEST};
    static const gn_dtype types[] = {GN_F32, GN_F64, GN_I32, GN_I64, GN_U8, GN_C64, GN_C128};
    for (int l = 0; l < 8; l++)
        for (int k = 0; k < 7; k++)
            for (int form = 0; form < 4; form++) {
                const int n = lengths[l], each = form & 1 ? n : 1, parts = k > 4 ? 2 : 1;
                const gn_dtype t = types[k], all = parts == 2 ? GN_C128 : GN_F64;
                for (int i = 0; i < ROWS * n * parts; i++) want[i] = base[i] = (double)draw(5);
                for (int i = 0; i < COUNT * n * parts; i++) values[i] = (double)draw(9);
                for (int i = 0; i < COUNT * each; i++) to[i] = (int64_t)draw(2 * ROWS) - ROWS;
                for (int i = 0; i < COUNT * n * parts; i++) {
                    const int row = i / parts / n, column = i / parts % n;
                    const int64_t at = to[row * each + (each > 1 ? column : 0)];
                    want[((at < 0 ? at + ROWS : at) * n + column) * parts + i % parts] += values[i];
                }
                GN_SCOPE(g) {
                    gn_array *a = gn_cast(gn_array_from(g, all, GN_SHAPE(ROWS, n), base), t);
                    gn_array *x = gn_cast(gn_array_from(g, all, GN_SHAPE(COUNT, n), values), t);
                    gn_array *at = gn_cast(gn_array_from(g, GN_I64, GN_SHAPE(COUNT, each), to), form & 2 ? GN_I32 : GN_I64);
                    const size_t bytes = (size_t)(ROWS * n * parts) * sizeof *have;
                    assert_int_equal(gn_read(gn_cast(gn_scatter_add(a, at, x, 0), all), have, bytes), GN_OK);
                    assert_memory_equal(have, want, bytes);
                }
            }
}

// Sums of floats: the same bits whatever the order, correctly rounded where the array before is zeros on a device; infinities, NaN,
// subnormal numbers and those that leave the range.
static void test_sums(void **state) {
    gn_context *g = (gn_context *)*state;
    expect_sums(g, 5000, 37, 0);
    expect_sums(g, 30000, 9001, 0); // which are sorted by places first
    expect_sums(g, 60000, 9001, 50);
    const float odd[] = {INFINITY, 1, -INFINITY, INFINITY, -INFINITY, NAN, 1e-44f, 3e-45f, 3e38f, 3e38f, -1e30f, 1e30f, 16777216, 1, 1, 0.1f};
    const int32_t to[] = {0, 0, 1, 2, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7, 8};
    gn_array *y = gn_scatter_add(gn_zeros(g, GN_F32, GN_SHAPE(10)), gn_array_from(g, GN_I32, GN_SHAPE(16), to), gn_array_from(g, GN_F32, GN_SHAPE(16), odd), 0);
    if (test_on_vulkan())
        expect_values(y, (double)INFINITY, -(double)INFINITY, NAN, NAN, (double)1e-44f + (double)3e-45f, (double)INFINITY, 0, 16777218, (double)0.1f, 0);
    else
        expect_values(y, (double)INFINITY, -(double)INFINITY, NAN, NAN, (double)1e-44f + (double)3e-45f, (double)INFINITY, 0, 16777216, (double)0.1f, 0);
    gn_array *base = gn_full(g, GN_F32, GN_SHAPE(10), 0.5);
    expect_values(gn_index(gn_scatter_add(base, gn_array_from(g, GN_I32, GN_SHAPE(16), to), gn_array_from(g, GN_F32, GN_SHAPE(16), odd), 0), "6:"),
                  test_on_vulkan() ? 0.5 : 0, 16777218.0 - (test_on_vulkan() ? 0 : 2), (double)(0.5f + 0.1f), 0.5);
}

// More places than are taken as they come.
static void test_many_places(void **state) {
    gn_context *g = (gn_context *)*state;
    const int64_t n = ((int64_t)1 << 21) + 777;
    int32_t *at = (int32_t *)malloc((size_t)n * 4), *sum = (int32_t *)calloc((size_t)n, 4), *last = (int32_t *)malloc((size_t)n * 4);
    int32_t *most = (int32_t *)calloc((size_t)n, 4), *x = (int32_t *)malloc((size_t)n * 4), *have = (int32_t *)malloc((size_t)n * 4);
    assert_true(at != NULL && sum != NULL && last != NULL && most != NULL && x != NULL && have != NULL);
    uint32_t r = 7;
    for (int64_t i = 0; i < n; i++) last[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        r = r * 1664525u + 1013904223u;
        at[i] = (int32_t)((uint64_t)r * (uint64_t)n >> 32);
        x[i] = (int32_t)(r & 1023u);
        if (i % 3 == 0) at[i] %= 50; // which many go to
        sum[at[i]] += x[i];
        last[at[i]] = x[i];
        if (x[i] > most[at[i]]) most[at[i]] = x[i];
    }
    for (int real = 0; real < 2; real++) {
        const gn_dtype t = real ? GN_F32 : GN_I32;
        gn_array *index = gn_array_from(g, GN_I32, GN_SHAPE(n), at), *values = gn_cast(gn_array_from(g, GN_I32, GN_SHAPE(n), x), t);
        gn_array *none = gn_zeros(g, t, GN_SHAPE(n)), *y[3];
        const int32_t *want[3];
        want[0] = sum;
        want[1] = last;
        want[2] = most;
        y[0] = gn_scatter_add(none, index, values, 0);
        y[1] = gn_put_along(gn_sub_s(none, 1.0), index, values, 0);
        y[2] = gn_scatter_max(none, index, values, 0);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(gn_read(gn_cast(y[k], GN_I32), have, (size_t)n * 4), GN_OK);
            assert_memory_equal(have, want[k], (size_t)n * 4);
        }
    }
    free(at);
    free(sum);
    free(last);
    free(most);
    free(x);
    free(have);
}

static void assign_some(gn_context *g) {
    gn_scope_begin(g);
    gn_array *x = gn_requires_grad(gn_full(g, GN_F32, GN_SHAPE(4, 2), 2), true), *y = gn_mul_s(x, 2);
    gn_assign(gn_index(y, "1:, 0"), gn_sum(x, 1) == NULL ? NULL : gn_index(gn_sum(x, 1), ":-1"));
    gn_backward(gn_sum(y, GN_ALL));
    gn_scope_end(g);
}
static void test_out_of_memory(void **state) {
    (void)state;
    test_most_allocations(assign_some);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_like_numpy), GN_TEST(test_siblings), GN_TEST(test_told_later), GN_TEST(test_unsigned_indices), GN_TEST(test_many_true), GN_TEST(test_many_places), GN_TEST(test_kept), GN_TEST(test_sums), GN_TEST(test_sums_of_rows),
        GN_TEST(test_assign_values),   GN_TEST(test_assign_dtypes), GN_TEST(test_assign_hazards), GN_TEST(test_assign_often), GN_TEST(test_assign_grows), GN_TEST(test_assign_mixed), GN_TEST(test_assign_stencil),
        GN_TEST(test_assign_refusals), GN_TEST(test_assign_places), GN_TEST(test_gradients),     GN_TEST(test_overwritten),
        GN_TEST(test_overwritten_results), cmocka_unit_test(test_out_of_memory),
    };
    return test_run(tests);
}
