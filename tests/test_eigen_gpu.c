// Eigenvalues and singular values of batches of small matrices and of large ones on the GPU. Residuals are relative to
// n eps and the largest element, as test_linalg_gpu has them.
#include "test_matrices.h"

static gn_context *open_gpu(void) {
    gn_options o = test_options();
    if (!test_on_vulkan()) return NULL;
    o.thresholds.linalg = 1;
    return test_share(&o);
}

static gn_array *symmetric(gn_array *a) { return gn_add(gn_tril(a, 0), turned(gn_tril(a, -1))); }

static gn_array *eye_of(gn_array *a) {
    return gn_eye(gn_context_of(a), GN_F64, gn_dim(a, -1), gn_dim(a, -1), 0);
}

static gn_array *steps_of(gn_array *w) {
    return gn_sub(gn_slice(w, -1, 1, gn_dim(w, -1), 1), gn_slice(w, -1, 0, gn_dim(w, -1) - 1, 1));
}

static void expect_below(const char *what, const char *name, double x, double bound) {
    if (!(x <= bound)) fail_msg("%s: %s: %g above %g", name, what, x, bound);
    if (getenv("GN_TEST_RESIDUALS"))
        printf("%s: %s: %.3f\n", name, what, bound > 0.0 ? x / bound : 0.0);
}

// The values of a context that leaves it to the CPU, in float64, where residuals are computed.
static gn_array *on_cpu(gn_array *a, gn_array *(*fn)(gn_array *)) {
    gn_context *g = residuals(gn_context_of(a));
    if (g != gn_context_of(a)) return fn(wide(a));
    gn_options o = test_options();
    o.backend = GN_BACKEND_CPU;
    gn_context *cpu = gn_open(&o);
    const size_t count = (size_t)gn_size(a);
    double *data = (double *)malloc(count * sizeof(double) + 1);
    assert_non_null(cpu);
    assert_int_equal(gn_read(wide(a), data, count * sizeof(double)), GN_OK);
    gn_array *y = fn(gn_array_from(cpu, GN_F64, gn_shape_of(a), data));
    assert_non_null(y);
    assert_int_equal(gn_read(y, data, (size_t)gn_size(y) * sizeof(double)), GN_OK);
    gn_array *z = gn_array_from(g, GN_F64, gn_shape_of(y), data);
    free(data);
    gn_close(cpu);
    return z;
}

static gn_array *eigenvalues(gn_array *a) { return gn_eigh(a, NULL); }
static gn_array *singular_values(gn_array *a) { return gn_svd(a, false, NULL, NULL); }

// What a lone matrix may err by besides: reflections by eps times the norm, which the n elements of a column share, and
// divide and conquer, in float64, by what it neglects in each merge.
static double of_reflections(gn_array *a, double error, double norm, double neglected) {
    const int64_t m = gn_dim(a, -2), n = gn_dim(a, -1), k = m < n ? m : n;
    if (m * n != gn_size(a)) return 0.0;
    const double merges = k > 32 ? ceil(log2((double)k / 32.0)) : 0.0;
    return error * norm / sqrt((double)k) + merges * neglected * 2.2204460492503131e-16 * norm;
}

// a (..., n, n); what is above the diagonal does not count.
static void check_eigh(const char *name, gn_array *a) {
    gn_context *g = gn_context_of(a), *h = residuals(g);
    gn_scope_begin(g);
    gn_scope_begin(h);
    const double n = (double)gn_dim(a, -1) + 10.0, eps = eps_of(gn_dtype_of(a)), most = largest(a);
    gn_array *v = NULL, *w = gn_eigh(a, &v), *only = gn_eigh(a, NULL), *s = symmetric(wide(a));
    if (w == NULL) fail_msg("%s: %s", name, gn_error(g));
    assert_true(is_on_gpu(w) && is_on_gpu(v) && is_on_gpu(only));
    gn_array *right = gn_mul(wide(v), gn_expand_dims(wide(w), -2));
    gn_array *reference = on_cpu(a, eigenvalues);
    const double norm = largest(reference);
    const double bound = n * eps * most + of_reflections(a, n * eps, norm, 8.0);
    expect_below("a v = v w", name, largest(gn_sub(gn_matmul(s, wide(v)), right)), bound);
    expect_below("v", name, largest(gn_sub(gn_matmul(turned(wide(v)), wide(v)), eye_of(wide(v)))),
                 n * eps);
    expect_below("w", name, differ_by(w, reference), n * eps * norm);
    expect_below("w alone", name, differ_by(only, reference), n * eps * norm);
    if (gn_dim(w, -1) > 1) {
        assert_true(gn_item(gn_min(steps_of(wide(w)), GN_ALL)) >= 0.0);
        assert_true(gn_item(gn_min(steps_of(wide(only)), GN_ALL)) >= 0.0);
    }
    gn_scope_end(h);
    gn_scope_end(g);
}

static void check_svd(const char *name, gn_array *a) {
    gn_context *g = gn_context_of(a), *h = residuals(g);
    const double n = (double)(gn_dim(a, -1) + gn_dim(a, -2)) + 10.0;
    const double eps = eps_of(gn_dtype_of(a)), most = largest(a);
    const int64_t k = gn_dim(a, -1) < gn_dim(a, -2) ? gn_dim(a, -1) : gn_dim(a, -2);
    for (int full = 0; full < 2; full++) {
        gn_scope_begin(g);
        gn_scope_begin(h);
        gn_array *u = NULL, *vt = NULL, *s = gn_svd(a, full != 0, &u, &vt);
        if (s == NULL) fail_msg("%s: %s", name, gn_error(g));
        if (!is_on_gpu(s) || !is_on_gpu(u) || !is_on_gpu(vt)) fail_msg("%s: on the CPU %d %d %d", name, is_on_gpu(s), is_on_gpu(u), is_on_gpu(vt));
        assert_int_equal(gn_dim(u, -1), full ? gn_dim(a, -2) : k);
        assert_int_equal(gn_dim(vt, -2), full ? gn_dim(a, -1) : k);
        gn_array *left = gn_slice(wide(u), -1, 0, k, 1), *right = gn_slice(wide(vt), -2, 0, k, 1);
        gn_array *y = gn_matmul(gn_mul(left, gn_expand_dims(wide(s), -2)), right);
        gn_array *reference = on_cpu(a, singular_values), *only = gn_svd(a, false, NULL, NULL);
        const double norm = largest(reference);
        // Of ones, all but one value are what rounding left.
        const double neglected = strcmp(name, "ones") == 0 ? 32.0 : 8.0;
        const double bound = n * eps * most + of_reflections(a, n * eps, norm, neglected);
        expect_below("u s vt", name, largest(gn_sub(y, wide(a))), bound);
        expect_below("u", name, largest(gn_sub(gn_matmul(turned(wide(u)), wide(u)), eye_of(wide(u)))),
                     n * eps);
        expect_below("vt", name,
                     largest(gn_sub(gn_matmul(wide(vt), turned(wide(vt))), eye_of(turned(wide(vt))))),
                     n * eps);
        expect_below("s", name, differ_by(s, reference), n * eps * norm);
        expect_below("s alone", name, differ_by(only, reference), n * eps * norm);
        assert_true(gn_item(gn_min(wide(s), GN_ALL)) >= 0.0);
        if (gn_dim(s, -1) > 1) assert_true(gn_item(gn_max(steps_of(wide(s)), GN_ALL)) <= 0.0);
        gn_scope_end(h);
        gn_scope_end(g);
    }
}

static void test_sizes(void **state) {
    static const int64_t sizes[] = {1, 2, 3, 7, 8, 9, 16, 17, 31, 32, 33, 50, 64, 65, 100, 128};
    char name[64];
    gn_context *g = open_gpu();
    (void)state;
    if (g == NULL) skip();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t n = sizes[i];
        for (int k = 0; k < 2; k++) {
            const gn_dtype t = k == 0 ? GN_F32 : GN_F64;
            if (n > (k == 1 ? 64 : 128) || (!is_patient(g) && n > (k == 1 ? 8 : 20))) continue;
            gn_scope_begin(g);
            snprintf(name, sizeof name, "%s, %d", k == 0 ? "float32" : "float64", (int)n);
            check_eigh(name, gn_randn(g, t, GN_SHAPE(5, n, n)));
            check_svd(name, gn_randn(g, t, GN_SHAPE(3, n, n)));
            gn_scope_end(g);
        }
    }
    test_close(g);
}

static void test_shapes(void **state) {
    static const int64_t rows[] = {1, 8, 20, 5, 61, 100, 64}, columns[] = {5, 1, 12, 31, 13, 31, 2};
    char name[64];
    gn_context *g = open_gpu();
    (void)state;
    if (g == NULL) skip();
    for (int i = 0; i < (is_patient(g) ? 7 : 4); i++) {
        if (i == 3 && !is_patient(g)) continue;
        gn_scope_begin(g);
        snprintf(name, sizeof name, "%d x %d", (int)rows[i], (int)columns[i]);
        check_svd(name, gn_randn(g, GN_F32, GN_SHAPE(3, rows[i], columns[i])));
        check_svd(name, turned(gn_randn(g, GN_F32, GN_SHAPE(2, rows[i], columns[i]))));
        if (rows[i] <= (is_patient(g) ? 64 : 8))
            check_svd(name, gn_randn(g, GN_F64, GN_SHAPE(3, columns[i], rows[i])));
        gn_scope_end(g);
    }
    gn_scope_begin(g);
    // Views: flipped, axes that are no neighbours, stepped over, one matrix for all.
    gn_array *a = gn_flip(gn_swap_axes(gn_randn(g, GN_F32, GN_SHAPE(2, 12, 3, 12)), 1, 2),
                          GN_AXES(-1, 0));
    check_eigh("view", a);
    check_svd("view", a);
    check_svd("every third", gn_slice(a, -1, 0, 12, 3));
    check_eigh("every second", gn_slice(a, 1, 0, 3, 2));
    check_eigh("broadcast",
               gn_broadcast_to(gn_randn(g, GN_F64, GN_SHAPE(7, 7)), GN_SHAPE(4, 2, 7, 7)));
    // Halves and integers in float32; nothing at all; only some of the results.
    gn_array *ones = gn_ones(g, GN_F16, GN_SHAPE(5, 6, 6)), *v = NULL, *u = NULL, *vt = NULL;
    assert_int_equal(gn_dtype_of(gn_eigh(ones, &v)), GN_F16);
    assert_int_equal(gn_dtype_of(v), GN_F16);
    assert_int_equal(gn_dtype_of(gn_svd(gn_cast(ones, GN_I32), false, NULL, &vt)), GN_F32);
    assert_true(is_on_gpu(vt));
    assert_int_equal(gn_dim(vt, 0), 5);
    assert_int_equal(gn_dim(gn_svd(a, false, &u, NULL), 1), 3);
    assert_int_equal(gn_size(u), 2 * 3 * 12 * 12);
    assert_int_equal(gn_size(gn_eigh(gn_zeros(g, GN_F32, GN_SHAPE(0, 3, 3)), &v)), 0);
    assert_int_equal(gn_size(gn_svd(gn_zeros(g, GN_F32, GN_SHAPE(4, 0, 3)), true, &u, &vt)), 0);
    assert_int_equal(gn_size(vt), 36);
    gn_scope_end(g);
    test_close(g);
}

// q diag(x) q^T of random orthonormal q, by x (n).
static gn_array *with_values(gn_context *g, gn_dtype t, gn_array *x, int64_t count) {
    const int64_t n = gn_size(x);
    gn_array *q = gn_qr(gn_randn(g, GN_F64, GN_SHAPE(count, n, n)), NULL);
    return gn_cast(symmetric(gn_matmul(gn_mul(q, x), turned(q))), t);
}

// On lavapipe of large ones, which take it seconds, every other time one of the two.
static void check_both(const char *name, gn_array *a) {
    static int large;
    const bool slow = test_on_software(gn_context_of(a)) && gn_dim(a, -1) > 128;
    if (slow) large++;
    if (!slow || large % 4 == 0) check_eigh(name, a);
    if (!slow || large % 4 == 2) check_svd(name, a);
}

// `count` matrices of order n, made where residuals are computed.
static void check_hard(gn_context *g, gn_dtype t, int64_t n, int64_t count) {
    gn_context *h = residuals(g);
    gn_scope_begin(h);
    gn_array *steps = gn_arange(h, GN_F64, 0.0, (double)n, 1.0),
             *zero = gn_zeros(h, t, GN_SHAPE(count, n, n));
    check_both("zeros", brought(g, zero));
    gn_array *eye = gn_add(zero, gn_eye(h, t, n, n, 0)), *a = brought(g, eye), *v = NULL;
    check_both("identity", a);
    assert_true(largest(gn_sub_s(wide(gn_eigh(a, &v)), 1.0)) == 0.0);
    assert_true(count == 1 || differ_by(v, a) == 0.0); // of one their order is not determined
    check_both("ones", brought(g, gn_add_s(zero, 1.0)));
    check_both("one element", brought(g, gn_mul(gn_add_s(zero, 3.0), gn_eye(h, t, n, n, 1 - (int)n))));
    check_both("exchange", gn_flip(a, -1));
    check_both("diagonal", brought(g, gn_mul(eye, gn_cast(gn_sub_s(steps, 3.0), t))));
    gn_array *clusters = gn_add(gn_floor(gn_mul_s(steps, 0.25)), gn_mul_s(steps, 1e-9));
    check_both("clusters", brought(g, with_values(h, t, clusters, count)));
    gn_array *repeated = gn_sub_s(gn_floor(gn_mul_s(steps, 2.0 / (double)n)), 0.5);
    check_both("repeated", brought(g, with_values(h, t, repeated, count)));
    check_both("graded", brought(g, with_values(h, t, gn_exp(gn_mul_s(steps, -1.5)), count)));
    gn_array *grade = gn_exp(gn_mul_s(steps, -2.0)),
             *random = gn_randn(h, GN_F64, GN_SHAPE(count, n, n));
    check_both("graded rows", brought(g, gn_cast(gn_mul(random, gn_expand_dims(grade, -1)), t)));
    check_both("graded columns", brought(g, gn_cast(gn_mul(random, grade), t)));
    gn_array *thin = gn_randn(h, t, GN_SHAPE(count, n, 2));
    check_both("rank 2", brought(g, gn_matmul(thin, turned(thin))));
    check_svd("rank 2, not symmetric", brought(g, gn_matmul(thin, gn_randn(h, t, GN_SHAPE(count, 2, n)))));
    check_svd("orthonormal", brought(g, gn_qr(gn_cast(random, t), NULL)));
    check_svd("columns of zeros", brought(g, gn_mul(gn_cast(random, t), gn_cast(gn_ge_s(steps, 2.0), t))));
    const double scales[] = {1e-30, 1e30, t == GN_F64 ? 1e-290 : 1e-36, t == GN_F64 ? 1e300 : 1e36, 1e-306};
    for (int i = 0; i < (t == GN_F64 ? 5 : 4); i++)
        check_both("scaled", brought(g, gn_cast(gn_mul_s(random, scales[i]), t)));
    gn_scope_end(h);
}

static void test_hard(void **state) {
    gn_context *g = open_gpu();
    (void)state;
    if (g == NULL) skip();
    for (int i = 0; i < (is_patient(g) ? 7 : 2); i++) {
        static const int64_t sizes[] = {6, 6, 20, 14, 60, 41, 111};
        gn_scope_begin(g);
        check_hard(g, i == 1 || i == 3 || i == 5 ? GN_F64 : GN_F32, sizes[i], 2);
        gn_scope_end(g);
    }
    for (int i = 0; i < (is_patient(g) ? 6 : 1); i++) { // by reflections
        static const int64_t sizes[] = {132, 131, 300, 301, 700, 701};
        gn_scope_begin(g);
        check_hard(g, i % 2 == 0 ? GN_F32 : GN_F64, sizes[i], 1);
        gn_scope_end(g);
    }
    test_close(g);
}

// Beyond what a workgroup does, and single matrices of any size: reflections and divide and conquer.
static void test_large(void **state) {
    static const int64_t sizes[] = {129, 200, 1, 2, 5, 33, 130, 257, 300, 511, 1000};
    char name[64];
    gn_context *g = open_gpu();
    (void)state;
    if (g == NULL) skip();
    for (int i = 0; i < (is_patient(g) ? 11 : 2); i++)
        for (int k = 0; k < 2; k++) {
            const int64_t n = sizes[i];
            const gn_dtype t = k == 0 ? GN_F32 : GN_F64;
            if (i != k && !is_patient(g)) continue;
            gn_scope_begin(g);
            snprintf(name, sizeof name, "%s, %d", k == 0 ? "float32" : "float64", (int)n);
            check_eigh(name, gn_randn(g, t, GN_SHAPE(n, n)));
            check_svd(name, gn_randn(g, t, GN_SHAPE(n, n)));
            if (i == 1 || i > 6) check_svd(name, gn_randn(g, t, GN_SHAPE(n, n / 3)));
            gn_scope_end(g);
        }
    gn_scope_begin(g);
    gn_array *pair = gn_randn(g, GN_F32, GN_SHAPE(2, 140, 140)), *v = NULL, *u = NULL;
    check_eigh("two", gn_flip(turned(pair), GN_AXES(0, -1)));
    check_svd("wide", gn_randn(g, GN_F32, GN_SHAPE(2, 40, 150)));
    pair = gn_mul(gn_eye(g, GN_F32, 150, 150, 0), gn_full(g, GN_F32, GN_SHAPE(1), (double)NAN));
    assert_null(gn_eigh(pair, &v));
    assert_null(v);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_eigh: the matrix holds NaN or infinity");
    pair = gn_div(gn_ones(g, GN_F64, GN_SHAPE(150, 150)), gn_zeros(g, GN_F64, GN_SHAPE(1)));
    assert_null(gn_svd(pair, true, &u, &v));
    assert_true(u == NULL && v == NULL);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_svd: the matrix holds NaN or infinity");
    // What is above the diagonal does not count, whatever it is.
    pair = gn_tril(gn_randn(g, GN_F32, GN_SHAPE(140, 140)), 0);
    gn_array *above = gn_mul_s(gn_triu(gn_ones(g, GN_F32, GN_SHAPE(140, 140)), 1), 1e30);
    assert_true(differ_by(gn_eigh(gn_add(pair, above), NULL), gn_eigh(pair, NULL)) == 0.0);
    gn_scope_end(g);
    test_close(g);
}

// Buffers that are bound.
static void test_bindings(void **state) {
    gn_options o = test_options();
    (void)state;
    if (!test_on_vulkan()) skip();
    o.thresholds.linalg = 1;
    o.vulkan_flags |= GN_VULKAN_NO_ADDRESSES;
    gn_context *g = test_share(&o);
    gn_scope_begin(g);
    check_eigh("bound", gn_randn(g, GN_F32, GN_SHAPE(40, 40)));
    check_svd("bound", gn_randn(g, GN_F64, GN_SHAPE(30, 41)));
    gn_scope_end(g);
    test_close(g);
}

// The bits of a matrix do not depend on where in a batch it stands, or on what stands beside it.
static void test_same_bits(void **state) {
    gn_context *g = open_gpu();
    (void)state;
    if (g == NULL) skip();
    gn_array *a = gn_randn(g, GN_F32, GN_SHAPE(7, 7, 7)), *part = gn_slice(a, 0, 4, 6, 1);
    gn_array *v = NULL, *w = NULL, *u = NULL, *x = NULL, *vt = NULL;
    gn_eigh(a, &v);
    gn_eigh(part, &w);
    assert_true(differ_by(gn_slice(v, 0, 4, 6, 1), w) == 0.0);
    gn_svd(a, false, &u, &vt);
    gn_svd(part, false, &x, &vt);
    assert_true(differ_by(gn_slice(u, 0, 4, 6, 1), x) == 0.0);
    test_close(g);
}

static void test_wrong(void **state) {
    gn_context *g = open_gpu();
    (void)state;
    if (g == NULL) skip();
    for (int64_t n = 5; n <= 20; n += 15) { // several matrices in a workgroup, and one
        gn_scope_begin(g);
        gn_array *list[4], *v = NULL, *u = NULL;
        for (int i = 0; i < 4; i++) list[i] = gn_eye(g, GN_F32, n, n, 0);
        list[2] = gn_mul_s(list[2], (double)NAN);
        gn_array *a = gn_stack(list, 4, 0);
        assert_null(gn_eigh(a, &v));
        assert_null(v);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_eigh: matrix 2 of 4 holds NaN or infinity");
        list[2] = list[0];
        list[1] = gn_div(list[1], gn_sub_s(list[0], 1.0)); // 1/0, 0/-1
        a = gn_stack(list, 4, 0);
        assert_null(gn_svd(a, true, &u, &v));
        assert_true(u == NULL && v == NULL);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_svd: matrix 1 of 4 holds NaN or infinity");
        gn_scope_end(g);
    }
    test_close(g);
}

static gn_array *weighted(gn_context *g, gn_array *y) {
    gn_array *w = gn_reshape(gn_linspace(g, GN_F64, 0.3, 1.7, gn_size(y)), gn_shape_of(y));
    return gn_sum(gn_mul(gn_mul(y, w), gn_add_s(y, 0.5)), GN_ALL);
}

// Whatever the signs of the vectors are.
static gn_array *loss_of(gn_context *g, gn_array *const *x, int count, void *user) {
    gn_array *u = NULL, *v = NULL, *s;
    (void)count;
    switch (*(int *)user) {
    case 0: return weighted(g, gn_eigh(gn_add(x[0], turned(x[0])), NULL));
    case 1: return weighted(g, gn_svd(x[0], false, NULL, NULL));
    case 2: gn_eigh(gn_add(x[0], turned(x[0])), &v); return weighted(g, gn_square(v));
    default:
        s = gn_svd(x[0], false, &u, &v);
        return weighted(g, gn_matmul(gn_mul(u, gn_expand_dims(gn_square(s), -2)), v));
    }
}

static void test_gradients(void **state) {
    gn_context *g = open_gpu();
    (void)state;
    if (g == NULL) skip();
    for (int kind = 0; kind < 4; kind++) {
        gn_scope_begin(g);
        gn_seed(g, 3);
        gn_array *a = gn_randn(g, GN_F64, GN_SHAPE(2, kind == 3 ? 4 : 3, 3));
        a = gn_requires_grad(gn_detach(a), true);
        double error = gn_gradcheck(loss_of, &a, 1, 1e-5, &kind);
        if (!(error < 1e-5)) fail_msg("kind %d: %g %s", kind, error, gn_error(g));
        gn_scope_end(g);
    }
    test_close(g);
}

static void use_batch(gn_context *g) {
    gn_scope_begin(g);
    gn_array *a = gn_swap_axes(gn_randn(g, GN_F32, GN_SHAPE(3, 2, 5, 4)), 0, 1), *u = NULL,
             *vt = NULL;
    gn_eval(gn_svd(a, true, &u, &vt));
    gn_eval(gn_svd(a, false, NULL, NULL));
    gn_eval(gn_eigh(gn_matmul(turned(a), a), &u));
    gn_scope_end(g);
}

static void use_large(gn_context *g) {
    gn_scope_begin(g);
    gn_array *a = gn_randn(g, GN_F16, GN_SHAPE(130, 130)), *u = NULL, *vt = NULL;
    gn_eval(gn_svd(gn_slice(gn_slice(a, 1, 0, 9, 1), 0, 0, 12, 1), true, &u, &vt));
    gn_eval(gn_eigh(a, &u));
    gn_scope_end(g);
}

static void test_allocations(void **state) {
    gn_context *g = open_gpu();
    (void)state;
    if (g == NULL) skip();
    test_every_allocation_in(g, use_batch);
    test_every_allocation_in(open_gpu(), use_large);
}

// Refuses one of the allocations that are as large as the matrix of a merge below the last one.
typedef struct refusal {
    size_t size; // 0: none
    int left, refused;
} refusal;
static void *allocate_no_merge(void *user, size_t size) {
    refusal *r = (refusal *)user;
    if (r->size == 0 || size < r->size || size > r->size / 6 * 7 || r->left-- != 0) return malloc(size);
    r->refused++;
    return NULL;
}
static void release_any(void *user, void *data, size_t size) {
    (void)user, (void)size;
    free(data);
}

// Whatever has that size on a device: an error, or the right values by other means.
static void test_merge_fails(void **state) {
    const int64_t n = 600;
    int refusals = 0;
    bool patient = false;
    (void)state;
    if (!test_on_vulkan()) skip();
    for (int svd = 0; svd < 2; svd++) {
        bool refused = true;
        for (int k = 0; refused && k < 20; k++) {
            refusal merge = {0, k, 0};
            gn_options o = test_options();
            o.thresholds.linalg = 1;
            o.allocator.allocate = allocate_no_merge;
            o.allocator.release = release_any;
            o.allocator.user = &merge;
            gn_context *g = test_open_with(&o);
            assert_non_null(g);
            gn_scope_begin(g);
            gn_array *a = gn_eval(gn_randn(g, GN_F32, GN_SHAPE(n, n))), *u = NULL, *vt = NULL;
            gn_sync(g);
            merge.size = (size_t)(n / 2 * (n / 2)) * sizeof(float);
            gn_array *w = svd ? gn_svd(a, false, &u, &vt) : gn_eigh(a, &u);
            merge.size = 0;
            refused = merge.refused > 0;
            refusals += merge.refused;
            if (w == NULL) {
                assert_true(refused);
                assert_int_equal(gn_status_get(g), GN_ERROR_OUT_OF_MEMORY);
                assert_true(u == NULL && vt == NULL);
            } else if (refused) {
                gn_array *want = on_cpu(a, svd ? singular_values : eigenvalues);
                const double most = gn_item(gn_max(gn_abs(want), GN_ALL));
                assert_true(gn_item(gn_max(gn_abs(gn_sub(wide(w), want)), GN_ALL)) <= 1e-4 * most);
            }
            patient = is_patient(g);
            if (!patient) refused = false; // the first is the merge's, the others take long
            gn_scope_end(g);
            gn_close(g);
        }
    }
    assert_true(refusals > 0 || patient); // a GPU may have no allocation of that size
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),       cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_hard),        cmocka_unit_test(test_large),
        cmocka_unit_test(test_bindings),    cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_wrong),       cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_allocations), cmocka_unit_test(test_merge_fails),
    };
    return test_run(tests);
}
