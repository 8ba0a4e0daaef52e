// Decompositions on the GPU: batches of small matrices, each of which has a workgroup, and large ones with buffers
// that are bound instead of addressed. Residuals are relative to n eps and the norms, as LAPACK's tests have them.
#include "test_matrices.h"

static gn_context *open_with(int64_t least, uint32_t flags) {
    gn_options o = test_options();
    if (!test_on_vulkan()) return NULL;
    o.thresholds.linalg = least;
    o.vulkan_flags |= flags;
    return test_share(&o);
}

// a (..., n, n), b (..., n, k)
static void check_solve(gn_context *g, gn_array *a, gn_array *b) {
    gn_context *h = residuals(g);
    const double n = (double)gn_dim(a, -1) + 10.0, eps = eps_of(gn_dtype_of(a));
    gn_array *x = gn_solve(a, b), *y = gn_inv(a), *eye;
    assert_true(is_on_gpu(x) && is_on_gpu(y));
    gn_scope_begin(h);
    assert_true(largest(gn_sub(gn_matmul(wide(a), wide(x)), wide(b))) <=
                4.0 * n * eps * (largest(a) * largest(x) + largest(b)));
    eye = gn_eye(h, GN_F64, gn_dim(a, -1), gn_dim(a, -1), 0);
    assert_true(largest(gn_sub(gn_matmul(wide(a), wide(y)), eye)) <=
                8.0 * n * eps * largest(a) * largest(y));
    gn_scope_end(h);
}

static void check_root(gn_array *s) {
    gn_context *h = residuals(gn_context_of(s));
    const double n = (double)gn_dim(s, -1) + 10.0, eps = eps_of(gn_dtype_of(s));
    // What is above the diagonal does not count.
    gn_array *l = gn_cholesky(gn_add(gn_tril(s, 0), gn_triu(gn_mul_s(s, 1e3), 1)));
    assert_true(is_on_gpu(l));
    gn_scope_begin(h);
    l = wide(l);
    assert_true(largest(gn_sub(gn_matmul(l, turned(l)), wide(s))) <= n * eps * largest(s));
    assert_true(largest(gn_sub(gn_tril(l, 0), l)) == 0.0);
    gn_scope_end(h);
}

static void check_cholesky(gn_context *g, gn_array *a) {
    const int64_t n = gn_dim(a, -1);
    check_root(gn_add(gn_matmul(a, turned(a)), gn_eye(g, gn_dtype_of(a), n, n, 0)));
}

static void check_qr(gn_context *g, gn_array *a) {
    gn_context *h = residuals(g);
    const double n = (double)(gn_dim(a, -1) + gn_dim(a, -2)) + 10.0, eps = eps_of(gn_dtype_of(a));
    gn_array *r = NULL, *q = gn_qr(a, &r), *eye;
    assert_true(is_on_gpu(q) && is_on_gpu(r));
    gn_scope_begin(h);
    q = wide(q);
    r = wide(r);
    assert_true(largest(gn_sub(gn_matmul(q, r), wide(a))) <= n * eps * largest(a));
    eye = gn_eye(h, GN_F64, gn_dim(q, -1), gn_dim(q, -1), 0);
    assert_true(largest(gn_sub(gn_matmul(turned(q), q), eye)) <= n * eps);
    assert_true(largest(gn_sub(gn_triu(r, 0), r)) == 0.0);
    gn_scope_end(h);
}

// Against a context that leaves it to the CPU.
static void check_det(gn_array *a) {
    const double n = (double)gn_dim(a, -1) + 10.0, eps = eps_of(gn_dtype_of(a));
    gn_options o = test_options();
    o.backend = GN_BACKEND_CPU;
    gn_context *h = test_open_with(&o);
    gn_array *log, *sign = gn_slogdet(a, &log), *have[2], *want;
    have[0] = gn_det(a);
    have[1] = gn_mul(sign, gn_exp(log));
    assert_true(is_on_gpu(have[0]));
    want = gn_det(gn_cast(brought(h, a), GN_F64));
    for (int i = 0; i < 4; i++) {
        const char *at = i < 2 ? "0" : "-1";
        double d = gn_item(gn_index(gn_ravel(have[i % 2]), at)), w = gn_item(gn_index(gn_ravel(want), at));
        assert_true(fabs(d - w) <= 100.0 * n * n * eps * fabs(w));
    }
    gn_close(h);
}

static void check_batch(gn_context *g, gn_dtype t, int64_t batch, int64_t n) {
    gn_array *a = gn_randn(g, t, GN_SHAPE(batch, n, n));
    gn_array *thin = gn_randn(g, t, GN_SHAPE(batch, n, 1)),
             *broad = gn_randn(g, t, GN_SHAPE(batch, n, 37));
    check_solve(g, a, thin);
    if (n % 16 != 0) check_solve(g, turned(a), broad);
    check_cholesky(g, a);
    check_qr(g, a);
    check_det(gn_mul_s(a, 1.0 / sqrt((double)n)));
}

static void test_sizes(void **state) {
    static const int64_t sizes[] = {1, 3, 8, 7, 16, 17, 32, 47, 64};
    static const int64_t large[] = {65, 128};
    gn_context *g = open_with(1, 0);
    (void)state;
    if (g == NULL) skip();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        gn_scope_begin(g);
        check_batch(g, GN_F32, 3, sizes[i]);
        if (i % 2 == 0 && (sizes[i] <= 32 || is_patient(g))) check_batch(g, GN_F64, 2, sizes[i] - (sizes[i] > 32 ? 3 : 0));
        gn_scope_end(g);
    }
    for (size_t i = 0; i < sizeof large / sizeof large[0] && is_patient(g); i++) {
        gn_scope_begin(g);
        check_batch(g, GN_F32, 2, large[i]);
        gn_scope_end(g);
    }
    test_close(g);
}

static void test_shapes(void **state) {
    static const int64_t rows[] = {1, 16, 20, 61, 100}, columns[] = {3, 1, 40, 61, 31};
    gn_context *g = open_with(1, 0);
    (void)state;
    if (g == NULL) skip();
    for (int i = 0; i < (is_patient(g) ? 5 : 3); i++) {
        gn_scope_begin(g);
        check_qr(g, gn_randn(g, GN_F32, GN_SHAPE(3, rows[i], columns[i])));
        check_qr(g, turned(gn_randn(g, GN_F32, GN_SHAPE(2, rows[i], columns[i]))));
        if (i < 4) check_qr(g, gn_randn(g, GN_F64, GN_SHAPE(3, rows[i], columns[i])));
        gn_scope_end(g);
    }
    gn_scope_begin(g);
    // Views: flipped, stepped over, axes that are no neighbours, one matrix for all, several right-hand sides.
    gn_array *a = gn_flip(gn_swap_axes(gn_randn(g, GN_F32, GN_SHAPE(2, 20, 3, 20)), 1, 2),
                          GN_AXES(-1, 0));
    check_solve(g, a, gn_randn(g, GN_F32, GN_SHAPE(3, 20, 5)));
    check_solve(g, gn_slice(gn_randn(g, GN_F32, GN_SHAPE(8, 12, 12)), 0, 1, 8, 3),
                gn_randn(g, GN_F32, GN_SHAPE(12, 2)));
    gn_array *one = gn_broadcast_to(gn_randn(g, GN_F64, GN_SHAPE(9, 9)), GN_SHAPE(4, 2, 9, 9));
    check_solve(g, one, gn_randn(g, GN_F64, GN_SHAPE(2, 9, 70)));
    check_cholesky(g, a);
    check_qr(g, a);
    check_det(a);
    // A vector for all of them, as NumPy has it.
    gn_array *v = gn_randn(g, GN_F32, GN_SHAPE(20)), *x = gn_solve(a, v);
    assert_int_equal(gn_rank(x), 3);
    assert_true(is_on_gpu(x));
    assert_true(largest(gn_sub(gn_squeeze(gn_matmul(a, gn_expand_dims(x, -1)), -1), v)) <
                1e-4 * largest(a) * largest(x));
    // Halves and integers in float32; nothing at all.
    gn_array *h = gn_cast(
        gn_add(gn_mul_s(gn_eye(g, GN_F32, 6, 6, 0), 4.0), gn_zeros(g, GN_F32, GN_SHAPE(5, 6, 6))),
        GN_F16);
    assert_int_equal(gn_dtype_of(gn_inv(h)), GN_F16);
    assert_true(largest(gn_sub_s(wide(gn_det(gn_cast(h, GN_I32))), 4096.0)) == 0.0);
    assert_int_equal(gn_size(gn_inv(gn_zeros(g, GN_F32, GN_SHAPE(0, 3, 3)))), 0);
    assert_int_equal(gn_size(gn_qr(gn_zeros(g, GN_F32, GN_SHAPE(4, 0, 3)), NULL)), 0);
    assert_true(largest(gn_sub_s(wide(gn_det(gn_zeros(g, GN_F32, GN_SHAPE(4, 0, 0)))), 1.0)) == 0.0);
    assert_int_equal(gn_size(gn_solve(a, gn_zeros(g, GN_F32, GN_SHAPE(20, 0)))), 0);
    gn_scope_end(g);
    test_close(g);
}

// The bits of a matrix do not depend on where in a batch it stands.
static void test_same_bits(void **state) {
    gn_context *g = open_with(1, 0);
    (void)state;
    if (g == NULL) skip();
    gn_array *a = gn_randn(g, GN_F32, GN_SHAPE(7, 11, 11)), *part = gn_slice(a, 0, 4, 6, 1);
    assert_true(differ_by(gn_slice(gn_inv(a), 0, 4, 6, 1), gn_inv(part)) == 0.0);
    assert_true(differ_by(gn_slice(gn_qr(a, NULL), 0, 4, 6, 1), gn_qr(part, NULL)) == 0.0);
    test_close(g);
}

static void test_wrong(void **state) {
    const double log_10 = 2.30258509299404568402;
    gn_context *g = open_with(1, 0);
    (void)state;
    if (g == NULL) skip();
    for (int64_t n = 5; n <= (is_patient(g) ? 70 : 40); n += 31) {
        gn_scope_begin(g);
        gn_array *eye = gn_eye(g, GN_F32, n, n, 0), *ones = gn_ones(g, GN_F32, GN_SHAPE(n, n));
        gn_array *list[4];
        list[0] = list[1] = list[3] = eye;
        list[2] = ones;
        gn_array *a = gn_stack(list, 4, 0);
        assert_null(gn_inv(a));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_inv: matrix 2 of 4 is singular (pivot 1 is 0)");
        assert_null(gn_solve(a, ones));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_solve: matrix 2 of 4 is singular (pivot 1 is 0)");
        expect_values(gn_det(a), 1.0, 1.0, 0.0, 1.0);
        assert_null(gn_cholesky(a));
        expect_error(
            g, GN_ERROR_ARGUMENT,
            "gn_cholesky: matrix 2 of 4 is not positive definite (its leading 2 x 2 block is not)");
        // Of zeros r is zero and q orthonormal; a permutation has its sign.
        gn_array *r = NULL, *q = gn_qr(gn_zeros(g, GN_F32, GN_SHAPE(3, n, n)), &r);
        assert_true(largest(r) == 0.0 && differ_by(q, eye) == 0.0);
        list[2] = gn_flip(eye, 0);
        expect_values(gn_det(gn_stack(list, 4, 0)), 1.0, 1.0, n / 2 % 2 != 0 ? -1.0 : 1.0, 1.0);
        gn_array *log, *sign = gn_slogdet(gn_stack(list, 4, 0), &log);
        expect_values(sign, 1.0, 1.0, n / 2 % 2 != 0 ? -1.0 : 1.0, 1.0);
        expect_values(log, 0.0, 0.0, 0.0, 0.0);
        expect_values(gn_slogdet(a, &log), 1.0, 1.0, 0.0, 1.0);
        expect_values(log, 0.0, 0.0, -(double)INFINITY, 0.0);
        // NaN stays in its matrix.
        list[2] = gn_mul(eye, gn_full(g, GN_F32, GN_SHAPE(1), (double)NAN));
        a = gn_stack(list, 4, 0);
        gn_array *y = gn_any(gn_isnan(gn_inv(a)), GN_AXES(-1, -2));
        expect_values(y, 0.0, 0.0, 1.0, 0.0);
        expect_values(gn_isnan(gn_det(a)), 0.0, 0.0, 1.0, 0.0);
        gn_slogdet(a, &log);
        expect_values(gn_isnan(log), 0.0, 0.0, 1.0, 0.0);
        expect_values(gn_any(gn_isnan(gn_qr(a, NULL)), GN_AXES(-1, -2)), 0.0, 0.0, 1.0,
                      0.0);
        assert_null(gn_cholesky(a));
        expect_error(
            g, GN_ERROR_ARGUMENT,
            "gn_cholesky: matrix 2 of 4 is not positive definite (its leading 1 x 1 block is not)");
        gn_scope_end(g);
    }
    // So many that one word says first whether there was an error.
    gn_array *many = gn_add(gn_zeros(g, GN_F32, GN_SHAPE(5000, 2, 2)), gn_eye(g, GN_F32, 2, 2, 0));
    assert_true(differ_by(gn_cholesky(many), many) == 0.0);
    gn_array *place = gn_arange(g, GN_F32, 0.0, 5000.0, 1.0);
    place = gn_reshape(gn_ne_s(place, 4711.0), GN_SHAPE(5000, 1, 1));
    many = gn_mul(many, place);
    assert_null(gn_inv(many));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_inv: matrix 4711 of 5000 is singular (pivot 0 is 0)");
    // The smallest numbers there are.
    gn_array *q = gn_qr(gn_full(g, GN_F32, GN_SHAPE(2, 2, 1), 1e-40), NULL);
    expect_values(gn_all(gn_isfinite(q), GN_ALL), 1.0);
    // Determinants whose products leave the range on the way.
    const double scales[] = {1e30, 1e30, 1e-30, 1e-30};
    gn_array *mixed =
        gn_mul(gn_eye(g, GN_F32, 4, 4, 0), gn_array_from(g, GN_F64, GN_SHAPE(4), scales));
    mixed = gn_cast(gn_broadcast_to(mixed, GN_SHAPE(2, 4, 4)), GN_F32);
    assert_true(largest(gn_sub_s(wide(gn_det(mixed)), 1.0)) < 1e-6);
    gn_array *big = gn_mul_s(gn_broadcast_to(gn_eye(g, GN_F32, 4, 4, 0), GN_SHAPE(2, 4, 4)), 1e30);
    expect_values(gn_det(big), (double)INFINITY, (double)INFINITY);
    expect_values(gn_det(gn_recip(gn_add_s(big, 1e30))), 0.0, 0.0);
    // As logarithms they stay: 12 elements of 1e30 and -2e30 on a diagonal, one kernel or the other.
    for (int64_t n = 6; n <= 12; n += 6) {
        gn_array *signs = gn_sub_s(gn_mul_s(gn_gt_s(gn_arange(g, GN_F32, 0.0, (double)n, 1.0), 2.0), 3.0), 2.0), *log;
        gn_array *far_off = gn_mul(gn_mul_s(gn_broadcast_to(gn_eye(g, GN_F32, n, n, 0), GN_SHAPE(2, n, n)), 1e30), signs);
        expect_values(gn_slogdet(far_off, &log), -1.0, -1.0);
        const double want = (double)n * 30.0 * log_10 + 3.0 * 0.69314718055994530942;
        assert_true(largest(gn_sub_s(gn_cast(log, GN_F64), want)) < 1e-6 * want);
    }
    test_close(g);
}

static gn_array *weighted(gn_context *g, gn_array *y) {
    gn_array *w = gn_reshape(gn_linspace(g, GN_F64, 0.3, 1.7, gn_size(y)), gn_shape_of(y));
    return gn_sum(gn_mul(gn_mul(y, w), gn_add_s(y, 0.5)), GN_ALL);
}

static gn_array *loss_of(gn_context *g, gn_array *const *x, int count, void *user) {
    gn_array *a = x[0], *r = NULL, *q;
    (void)count;
    switch (*(int *)user) {
    case 0: return weighted(g, gn_solve(a, turned(a)));
    case 1: return weighted(g, gn_inv(a));
    case 2: return weighted(g, gn_det(a));
    case 3: return weighted(g, gn_cholesky(gn_matmul(a, turned(a))));
    default: q = gn_qr(a, &r); return gn_add(weighted(g, q), weighted(g, r));
    }
}

static void test_gradients(void **state) {
    gn_context *g = open_with(1, 0);
    (void)state;
    if (g == NULL) skip();
    for (int kind = 0; kind < 5; kind++) {
        gn_scope_begin(g);
        gn_seed(g, 3);
        gn_array *a = gn_add(gn_randn(g, GN_F64, GN_SHAPE(2, 3, 3)),
                             gn_mul_s(gn_eye(g, GN_F64, 3, 3, 0), 4.0));
        a = gn_requires_grad(gn_detach(a), true);
        double error = gn_gradcheck(loss_of, &a, 1, 1e-5, &kind);
        if (!(error < 1e-5)) fail_msg("kind %d: %g %s", kind, error, gn_error(g));
        gn_scope_end(g);
    }
    test_close(g);
}

static void use_batch(gn_context *g) {
    gn_scope_begin(g);
    gn_array *a = gn_randn(g, GN_F32, GN_SHAPE(3, 2, 5, 5)), *r = NULL;
    a = gn_swap_axes(a, 0, 1);
    gn_eval(gn_solve(a, gn_inv(a)));
    gn_eval(gn_det(a));
    gn_eval(gn_cholesky(gn_add(gn_matmul(a, turned(a)), gn_eye(g, GN_F32, 5, 5, 0))));
    gn_eval(gn_qr(a, &r));
    gn_scope_end(g);
}

static void test_allocations(void **state) {
    gn_context *g = open_with(1, 0);
    (void)state;
    if (g == NULL) skip();
    test_every_allocation_in(g, use_batch);
}

// Buffers that are bound: large matrices have kernels for that, which take batches of small ones, too.
static void test_bindings(void **state) {
    static const int64_t sizes[] = {5, 33, 130};
    gn_context *g = open_with(1, GN_VULKAN_NO_ADDRESSES);
    (void)state;
    if (g == NULL) skip();
    for (int i = 0; i < (is_patient(g) ? 3 : 2); i++) {
        gn_scope_begin(g);
        for (int k = 0; k < 2; k++) {
            gn_array *a = gn_randn(g, k == 0 ? GN_F32 : GN_F64, GN_SHAPE(sizes[i], sizes[i]));
            check_solve(g, a, gn_randn(g, gn_dtype_of(a), GN_SHAPE(sizes[i], 3)));
            check_cholesky(g, a);
            check_qr(g, a);
            check_det(gn_mul_s(a, 1.0 / sqrt((double)sizes[i])));
        }
        gn_array *batch = gn_randn(g, GN_F32, GN_SHAPE(2, sizes[i], sizes[i]));
        check_solve(g, batch, gn_randn(g, GN_F32, GN_SHAPE(sizes[i], 2)));
        gn_scope_end(g);
    }
    // More than go side by side, and some that are not equally far apart.
    gn_array *many = gn_randn(g, GN_F32, GN_SHAPE(1030, 3, 3));
    check_det(many);
    check_solve(g, many, gn_randn(g, GN_F32, GN_SHAPE(1030, 3, 1)));
    check_solve(g, gn_swap_axes(gn_randn(g, GN_F32, GN_SHAPE(2, 3, 4, 4)), 0, 1), gn_randn(g, GN_F32, GN_SHAPE(4, 2)));
    test_close(g);
}

static void check_alone(gn_array *all, gn_array *(*of)(gn_array *), gn_array *a) {
    for (int64_t i = 0; i < gn_dim(a, 0); i++)
        assert_true(differ_by(gn_slice(all, 0, i, i + 1, 1), of(gn_slice(a, 0, i, i + 1, 1))) == 0.0);
}

// Batches of large matrices, which together are worth a GPU, each with the bits that it has alone.
static void test_side_by_side(void **state) {
    gn_context *g = open_with(3 * 129 * 129, 0), *h = open_with(1, 0);
    (void)state;
    if (g == NULL) skip();
    for (int k = 0; k < 2; k++) {
        const gn_dtype t = k == 0 ? GN_F32 : GN_F64;
        const int64_t n = k == 0 ? 161 : 129;
        gn_array *a = gn_randn(g, t, GN_SHAPE(3, n, n)), *s = gn_matmul(a, turned(a)), *one = gn_slice(a, 0, 1, 2, 1);
        check_solve(g, a, gn_randn(g, t, GN_SHAPE(3, n, 1)));
        check_solve(g, turned(a), gn_randn(g, t, GN_SHAPE(n, 37)));
        check_solve(g, gn_broadcast_to(one, GN_SHAPE(3, n, n)), gn_randn(g, t, GN_SHAPE(3, n, 7)));
        check_root(gn_add(s, gn_eye(g, t, n, n, 0)));
        check_det(gn_mul_s(a, 1.65 / sqrt((double)n)));
        a = gn_mul_s(brought(h, a), 1.65 / sqrt((double)n)); // determinants of about 1
        s = gn_add(brought(h, s), gn_eye(h, t, n, n, 0));
        check_alone(gn_inv(a), gn_inv, a);
        check_alone(gn_det(a), gn_det, a);
        check_alone(gn_cholesky(s), gn_cholesky, s);
        for (int64_t columns = 1; columns < 40; columns += 6) {
            gn_array *b = gn_randn(h, t, GN_SHAPE(3, n, columns)), *x = gn_solve(a, b);
            for (int64_t i = 0; i < 3; i++)
                assert_true(differ_by(gn_slice(x, 0, i, i + 1, 1),
                                      gn_solve(gn_slice(a, 0, i, i + 1, 1), gn_slice(b, 0, i, i + 1, 1))) == 0.0);
        }
    }
    gn_array *eye = gn_eye(h, GN_F32, 150, 150, 0), *spot = gn_ne_s(gn_arange(h, GN_F32, 0.0, 150.0, 1.0), 137.0);
    gn_array *list[3] = {gn_flip(eye, 0), gn_mul(eye, spot), gn_div(eye, spot)}, *log;
    gn_array *a = gn_stack(list, 3, 0);
    gn_array *sign = gn_slogdet(a, &log);
    expect_values(gn_slice(sign, 0, 0, 2, 1), -1.0, 0.0);
    expect_values(gn_slice(log, 0, 0, 2, 1), 0.0, -(double)INFINITY);
    expect_values(gn_any(gn_isnan(gn_det(a)), GN_ALL), 1.0);
    assert_null(gn_inv(a));
    expect_error(h, GN_ERROR_ARGUMENT, "gn_inv: matrix 1 of 3 is singular (pivot 137 is 0)");
    list[0] = eye;
    assert_null(gn_cholesky(gn_stack(list, 3, 0)));
    expect_error(h, GN_ERROR_ARGUMENT,
                 "gn_cholesky: matrix 1 of 3 is not positive definite (its leading 138 x 138 block is not)");
    list[1] = gn_mul(eye, gn_full(h, GN_F32, GN_SHAPE(1), (double)NAN));
    list[2] = gn_mul_s(eye, 2.0);
    expect_values(gn_any(gn_isnan(gn_inv(gn_stack(list, 3, 0))), GN_AXES(-1, -2)), 0.0, 1.0, 0.0);
    test_close(g);
    test_close(h);
}

// Those that a workgroup is too small for: panels, more rows than one picks from, blocks at the end that are not full.
static void test_large(void **state) {
    static const int64_t sizes[] = {129, 161, 257, 1000, 3300};
    gn_context *g = open_with(1, 0);
    (void)state;
    if (g == NULL) skip();
    for (int i = 0; i < (is_patient(g) ? 5 : 2); i++)
        for (int k = 0; k < 2; k++) {
            const gn_dtype t = k == 0 ? GN_F32 : GN_F64;
            const int64_t n = sizes[i];
            gn_scope_begin(g);
            gn_array *a = gn_randn(g, t, GN_SHAPE(n, n)), *b = gn_randn(g, t, GN_SHAPE(n, 37));
            check_solve(g, a, gn_slice(b, 1, 0, 1, 1));
            check_solve(g, gn_flip(turned(a), 0), b);
            check_cholesky(g, a);
            if (n < 3000) check_qr(g, turned(a));
            if (n < 1000) check_det(gn_mul_s(a, 1.65 / sqrt((double)n))); // about 1, for float32
            // Rows and columns of all sizes, and the Hilbert matrix with a little on its diagonal.
            gn_array *place = gn_arange(g, GN_F64, 0.0, (double)n, 1.0), *down = gn_expand_dims(place, -1);
            gn_array *scale = gn_cast(gn_exp(gn_mul_s(place, (k == 0 ? -12.0 : -27.0) / (double)n)), t);
            check_solve(g, gn_mul(a, scale), b);
            check_solve(g, gn_mul(a, gn_expand_dims(scale, -1)), b);
            gn_array *hilbert = gn_cast(gn_recip(gn_add_s(gn_add(down, place), 1.0)), t);
            check_solve(g, gn_add(hilbert, gn_mul_s(gn_eye(g, t, n, n, 0), k == 0 ? 1e-4 : 1e-9)), b);
            check_root(gn_add(hilbert, gn_mul_s(gn_eye(g, t, n, n, 0), k == 0 ? 1e-4 : 1e-12)));
            gn_array *square = gn_matmul(a, turned(a));
            for (int sign = -1; sign <= 1 && n < 200; sign += 2) check_root(gn_mul_s(square, pow(10.0, sign * (k == 0 ? 33 : 290))));
            gn_scope_end(g);
        }
    gn_scope_begin(g);
    gn_array *pair = gn_randn(g, GN_F32, GN_SHAPE(2, 140, 140));
    check_solve(g, pair, gn_randn(g, GN_F32, GN_SHAPE(140, 5)));
    check_cholesky(g, pair);
    gn_array *eye = gn_eye(g, GN_F32, 150, 150, 0), *ones = gn_ones(g, GN_F32, GN_SHAPE(150, 150));
    gn_array *spot = gn_ne_s(gn_arange(g, GN_F32, 0.0, 150.0, 1.0), 137.0);
    assert_null(gn_inv(ones));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_inv: the matrix is singular (pivot 1 is 0)");
    assert_null(gn_solve(gn_mul(eye, spot), ones));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_solve: the matrix is singular (pivot 137 is 0)");
    expect_values(gn_det(gn_mul(eye, spot)), 0.0);
    assert_null(gn_cholesky(gn_sub(eye, gn_mul_s(gn_eye(g, GN_F32, 150, 150, 0), 1.0))));
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_cholesky: the matrix is not positive definite (its leading 1 x 1 block is not)");
    assert_null(gn_cholesky(gn_mul(eye, gn_sub_s(gn_mul_s(spot, 2.0), 1.0))));
    expect_error(
        g, GN_ERROR_ARGUMENT,
        "gn_cholesky: the matrix is not positive definite (its leading 138 x 138 block is not)");
    gn_array *bad = gn_mul(eye, gn_full(g, GN_F32, GN_SHAPE(1), (double)NAN));
    expect_values(gn_any(gn_isnan(gn_inv(bad)), GN_ALL), 1.0);
    expect_values(gn_isnan(gn_det(bad)), 1.0);
    assert_null(gn_cholesky(bad));
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_cholesky: the matrix is not positive definite (its leading 1 x 1 block is not)");
    gn_scope_end(g);
    test_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_bindings),  cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_large),
    };
    return test_run(tests);
}
