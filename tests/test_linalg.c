// Products and decompositions of matrices against NumPy, by their residuals, and their gradients against
// differences.
#include <float.h>

#include "test_matrices.h"

// ---- NumPy

static gn_array *view_of(gn_array *a, int view) {
    if (view == 1) return gn_swap_axes(a, -1, -2);
    if (view == 2) return gn_slice(gn_slice(a, -1, GN_NONE, GN_NONE, 2), -2, GN_NONE, GN_NONE, 2);
    if (view == 3) return gn_flip(a, GN_AXES(-1, -2));
    return a;
}

static gn_array *product(gn_context *g, const char *name, const char *subscripts, gn_array **x,
                         int count, const int32_t *v) {
    int axes[4];
    for (int i = 0; i < 4; i++) axes[i] = (int)v[i];
    if (strcmp(name, "einsum") == 0) return gn_einsum_list(g, subscripts, x, count);
    if (strcmp(name, "dot") == 0) return gn_dot(x[0], x[1]);
    if (strcmp(name, "outer") == 0) return gn_outer(x[0], x[1]);
    if (strcmp(name, "tensordot") == 0) return gn_tensordot(x[0], x[1], NULL, NULL, v[0]);
    if (strcmp(name, "tensordot_axes") == 0) return gn_tensordot(x[0], x[1], axes, axes + 2, 2);
    if (strcmp(name, "tril") == 0) return gn_tril(x[0], v[0]);
    if (strcmp(name, "triu") == 0) return gn_triu(x[0], v[0]);
    if (strcmp(name, "diagonal") == 0) return gn_diagonal(x[0], v[0]);
    if (strcmp(name, "solve_triangular") == 0) return gn_solve_triangular(x[0], x[1], v[0] != 0, v[1] != 0, v[2] != 0);
    if (strcmp(name, "trace") == 0) return gn_trace(x[0], v[0]);
    return NULL;
}

// How far values are from those that are wanted, in any order; rounded to float32 where they are complex64, as little as
// float64 would be off. NULL for values of another dtype than they should have.
static gn_array *apart_from(gn_array *y, gn_array *a, gn_array *want) {
    const gn_dtype t = gn_dtype_of(a), of = t == GN_F64 || t == GN_C128 ? GN_C128 : GN_C64;
    if (gn_dtype_of(y) != of) return NULL;
    if (gn_dim(y, -1) == 0) return gn_zeros(gn_context_of(y), GN_F64, gn_shape_from(gn_rank(y) - 1, gn_shape_of(y).dim));
    gn_context *g = residuals(gn_context_of(y));
    gn_array *d = gn_abs(gn_sub(gn_expand_dims(gn_cast(brought(g, y), GN_C128), -1), gn_expand_dims(brought(g, want), -2)));
    d = gn_add(gn_max(gn_min(d, -1), -1), gn_max(gn_min(d, -2), -1));
    return of == GN_C64 ? gn_mul_s(d, 1e-5) : d;
}

static gn_array *decomposition(const char *name, gn_array **x) {
    gn_array *r = NULL, *q;
    if (strcmp(name, "inv") == 0) return gn_inv(x[0]);
    if (strcmp(name, "det") == 0) return gn_det(x[0]);
    if (strcmp(name, "solve") == 0) return gn_solve(x[0], x[1]);
    if (strcmp(name, "cholesky") == 0) return gn_cholesky(x[0]);
    if (strcmp(name, "eigvalsh") == 0) return gn_eigh(x[0], NULL);
    if (strcmp(name, "eigvals") == 0) return apart_from(gn_eigvals(x[0]), x[0], x[1]);
    if (strcmp(name, "svdvals") == 0) return gn_svd(x[0], true, NULL, NULL);
    q = gn_qr(x[0], &r);
    return strcmp(name, "qr_q") == 0 ? q : r;
}

static gn_dtype part_of(gn_dtype t) { return t == GN_C64 ? GN_F32 : t == GN_C128 ? GN_F64 : t; }

// The largest error over `scale`.
static double distance(gn_array *y, const test_array *want, double scale) {
    void *have = malloc(gn_bytes(y) + 16);
    double error = 0.0;
    if (have == NULL || y == NULL || gn_size(y) != want->n ||
        (gn_dtype_of(y) != part_of(gn_dtype_of(y))) != (want->t != part_of(want->t)) ||
        gn_read(y, have, gn_bytes(y)) != GN_OK) {
        free(have);
        return HUGE_VAL;
    }
    const gn_dtype t = part_of(gn_dtype_of(y)), wt = part_of(want->t);
    for (int64_t i = 0; i < want->n * (wt != want->t ? 2 : 1); i++) {
        double a = test_element(t, have, i), b = test_element(wt, want->data, i);
        if (!(fabs(a - b) <= error)) error = fabs(a - b);
    }
    free(have);
    return scale > 0.0 ? error / scale : error;
}

static bool same_shape(gn_array *y, const gn_shape *s) {
    gn_shape have = gn_shape_of(y);
    bool same = have.rank == s->rank;
    for (int i = 0; i < s->rank && same; i++) same = have.dim[i] == s->dim[i];
    return same;
}

static bool linalg_cases_open(test_cases *c) {
    char command[2304];
    const char *python = getenv("GN_PYTHON");
    if (test_cases_made(c, "linalg")) return true;
    if (python == NULL || python[0] == 0) return test_lacks("NumPy");
    snprintf(command, sizeof command, "\"%s\" \"%s\" linalg.cases", python,
             test_source_file("tests/make_linalg.py"));
    if (system(command) != 0) fail_msg("%s failed", command);
    test_cases_read(c, "linalg.cases");
    return true;
}

static void test_numpy(void **state) {
    gn_context *g = (gn_context *)*state;
    test_cases c;
    memset(&c, 0, sizeof c);
    int bad = 0;
    if (!linalg_cases_open(&c)) skip();
    for (int32_t i = 0; i < c.count; i++) {
        char name[32], subscripts[64];
        int32_t v[7];
        test_array in[8], want;
        gn_array *x[8], *y;
        test_take_text(&c, name, sizeof name);
        test_take_text(&c, subscripts, sizeof subscripts);
        test_take_bytes(&c, v, sizeof v);
        for (int k = 0; k < v[6]; k++) test_take_array(&c, &in[k]);
        double scale = test_take_double(&c);
        test_take_array(&c, &want);
        gn_scope_begin(g);
        bool products = strcmp(name, "einsum") == 0;
        for (int k = 0; k < v[6]; k++) {
            x[k] = gn_array_from(g, in[k].t, in[k].s, in[k].data);
            if (k == 0 || products) x[k] = view_of(x[k], v[0]);
        }
        y = product(g, name, subscripts, x, v[6], v + 1);
        if (y == NULL && gn_status_get(g) == GN_OK) y = decomposition(name, x);
        // float32 decompositions are computed wider and rounded once.
        const gn_dtype part = part_of((gn_dtype)v[5]);
        // But complex systems are real ones of twice the order, large enough for a GPU and its float32.
        const double single = v[5] == GN_C64 && test_on_vulkan() ? 3e-6 : 4e-7;
        double most = part == GN_F64 ? 1e-11 : part == GN_F32 ? single : 0.0,
               error = distance(y, &want, scale);
        if (!(error <= most) || !same_shape(y, &want.s) || gn_dtype_of(y) != (gn_dtype)v[5]) {
            char shape[64] = "";
            for (int k = 0; v[6] > 0 && k < in[0].s.rank; k++)
                snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld,",
                         (long long)in[0].s.dim[k]);
            print_error(
                "case %d: %s %s (%s), view %d, %d %d %d %d: %s instead of %s, error %g %s\n",
                (int)i, name, subscripts, shape, (int)v[0], (int)v[1], (int)v[2], (int)v[3],
                (int)v[4], gn_dtype_name(gn_dtype_of(y)), gn_dtype_name((gn_dtype)v[5]), error,
                gn_error(g));
            gn_error_clear(g);
            if (++bad == 20) fail();
        }
        gn_scope_end(g);
    }
    test_cases_close(&c);
    assert_int_equal(bad, 0);
}

// ---- residuals

// How far the columns of q are from orthonormal.
static double skew(gn_context *g, gn_array *q) {
    int64_t n = gn_dim(q, -1);
    return largest(gn_sub(gn_matmul(turned(q), q), gn_eye(g, gn_dtype_of(q), n, n, 0)));
}

static void check_qr(gn_context *g, gn_array *a, double eps) {
    gn_array *r = NULL, *q = gn_qr(a, &r);
    double scale = largest(a) + 1e-300, n = (double)gn_dim(a, -2) + 10.0;
    assert_true(largest(gn_sub(gn_matmul(q, r), a)) <= n * eps * scale);
    assert_true(skew(g, q) <= n * eps);
    assert_true(largest(gn_sub(gn_triu(r, 0), r)) == 0.0);
    gn_array *diagonal = gn_diagonal(r, 0);
    assert_true(gn_size(diagonal) == 0 || gn_item(gn_min(gn_real(diagonal), GN_ALL)) >= 0.0);
    assert_true(largest(gn_imag(diagonal)) == 0.0);
}

static void check_svd(gn_context *g, gn_array *a, double eps) {
    for (int full = 0; full < 2; full++) {
        gn_array *u = NULL, *vt = NULL, *s = gn_svd(a, full != 0, &u, &vt);
        int64_t k = gn_dim(s, -1);
        double scale = gn_item(gn_max(s, GN_ALL)) + 1e-300,
               n = (double)(gn_dim(a, -2) + gn_dim(a, -1)) + 10.0;
        gn_array *us = gn_mul(gn_slice(u, -1, 0, k, 1), gn_expand_dims(s, -2));
        assert_true(largest(gn_sub(gn_matmul(us, gn_slice(vt, -2, 0, k, 1)), a)) <=
                    n * eps * scale);
        assert_true(skew(g, u) <= n * eps);
        assert_true(skew(g, turned(vt)) <= n * eps);
        assert_false(is_complex(s));
        gn_array *only_u = NULL, *only_vt = NULL;
        gn_svd(a, full != 0, &only_u, NULL);
        gn_svd(a, full != 0, NULL, &only_vt);
        assert_true(largest(gn_sub(only_u, u)) == 0.0 && largest(gn_sub(only_vt, vt)) == 0.0);
        assert_true(largest(gn_sub(gn_svd(a, false, NULL, NULL), s)) <= n * eps * scale);
    }
}

static void check_eigh(gn_context *g, gn_array *a, double eps) {
    gn_array *v = NULL, *w = gn_eigh(a, &v), *alone = gn_eigh(a, NULL);
    double scale = largest(w) + 1e-300, n = (double)gn_dim(a, -1) + 10.0;
    assert_false(is_complex(w));
    assert_true(largest(gn_sub(gn_matmul(a, v), gn_mul(v, gn_expand_dims(w, -2)))) <=
                n * eps * scale);
    assert_true(skew(g, v) <= n * eps);
    assert_true(largest(gn_sub(alone, w)) <= n * eps * scale);
}

static void check_eig(gn_context *g, gn_array *a, double eps) {
    gn_scope_begin(g);
    gn_array *v = NULL, *w = gn_eig(a, &v), *x = gn_cast(a, gn_dtype_of(v)), *length = gn_norm(v, -2);
    const double size = largest(a) * (double)gn_dim(a, -1), most = largest(gn_sub(gn_matmul(x, v), gn_mul(v, gn_expand_dims(w, -2))));
    if (!(most <= eps * size)) fail_msg("%g of %g: %s", most, eps * size, gn_to_string(w, NULL));
    assert_true(largest(gn_sub_s(length, 1.0)) < eps * 4);
    gn_array *sum = gn_sub(gn_trace(x, 0), gn_sum(w, -1));
    assert_true(largest(sum) <= eps * size);
    gn_scope_end(g);
}

static void check_solve(gn_array *a, double eps) {
    gn_array *b = normal(gn_context_of(a), gn_dtype_of(a), GN_SHAPE(gn_dim(a, -1), 5)),
             *x = gn_solve(a, b);
    double n = (double)gn_dim(a, -1) + 10.0, scale = largest(a) * largest(x) + largest(b);
    assert_true(largest(gn_sub(gn_matmul(a, x), b)) <= n * eps * scale);
}

// 1 / (i + j + 1): condition about exp(3.5 n).
static gn_array *hilbert(gn_context *g, int64_t n) {
    gn_array *i = gn_arange(g, GN_F64, 0.0, (double)n, 1.0);
    return gn_recip(gn_add_s(gn_add(gn_expand_dims(i, 1), i), 1.0));
}

// Rows and columns fall from 1 to 1e-12; with `swap` they rise.
static gn_array *graded(gn_context *g, gn_dtype t, int64_t n, bool swap) {
    gn_array *a = normal(g, t, GN_SHAPE(n, n));
    gn_array *f = gn_exp(gn_linspace(g, GN_F64, swap ? -27.6 : 0.0, swap ? 0.0 : -27.6, n));
    a = gn_add(a, turned(a));
    return gn_mul(gn_mul(a, gn_expand_dims(f, 1)), f);
}

static void check_all(gn_context *g, gn_array *a, double eps) {
    check_qr(g, a, eps);
    check_svd(g, a, eps);
    gn_array *s = gn_add(a, turned(a));
    check_eigh(g, s, eps);
    check_solve(a, eps);
}

static void test_residuals(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t sizes[] = {1,  2,  3,  4,  5,  7,  8,  15,  16,  17, 31,
                                    32, 33, 48, 63, 64, 65, 96, 100, 129, 200};
    for (int cx = 0; cx < 2; cx++) {
        const gn_dtype t = cx ? GN_C128 : GN_F64;
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            if (TEST_THREAD_SANITIZER && i % 10 != (size_t)cx * 5) continue; // most are too small for a second thread
            gn_scope_begin(g);
            int64_t n = sizes[i];
            check_all(g, normal(g, t, GN_SHAPE(n, n)), 1e-15);
            check_all(g, normal(g, cx ? GN_C64 : GN_F32, GN_SHAPE(n, n)), 4e-7);
            check_qr(g, normal(g, t, GN_SHAPE(n, 40)), 1e-15);
            check_qr(g, normal(g, t, GN_SHAPE(40, n)), 1e-15);
            check_svd(g, normal(g, t, GN_SHAPE(n, 40)), 1e-15);
            check_svd(g, normal(g, t, GN_SHAPE(40, n)), 1e-15);
            gn_scope_end(g);
        }
        check_all(g, normal(g, t, GN_SHAPE(3, 2, 9, 9)), 1e-15);
        const int64_t n = cx || TEST_THREAD_SANITIZER ? 270 : 530; // large enough for several threads
        gn_array *large = normal(g, t, GN_SHAPE(n, n));
        check_eigh(g, gn_add(large, turned(large)), 1e-15);
    }
}

static void check_ill_conditioned(gn_context *g, gn_dtype t, int64_t n) {
    gn_array *random = normal(g, t, GN_SHAPE(n, n)), *i = gn_complex(gn_scalar(g, GN_F64, 0.6), gn_scalar(g, GN_F64, 0.8));
    gn_array *turn = t == GN_C128 ? i : gn_scalar(g, GN_F64, 1.0);
    check_all(g, gn_mul(hilbert(g, n), turn), 1e-15);
    check_all(g, graded(g, t, n, false), 1e-15);
    check_all(g, graded(g, t, n, true), 1e-15);
    check_all(g, gn_add(gn_eye(g, GN_F64, n, n, 0), gn_mul_s(random, 1e-14)), 1e-15);
    check_all(g, gn_mul_s(random, 1e-200), 1e-15);
    check_all(g, gn_mul_s(random, 1e200), 1e-15);
    // Of low rank, with columns that are exactly zero, equal ones, and zero altogether.
    gn_array *thin = normal(g, t, GN_SHAPE(n, 2)), *low = gn_matmul(thin, turned(thin));
    gn_array *holes = gn_triu(gn_tril(random, n - 3), 1);
    gn_array *zero = gn_mul_s(random, 0.0), *ones = gn_mul(gn_ones_like(zero), turn);
    gn_array *these[4];
    these[0] = low;
    these[1] = holes;
    these[2] = zero;
    these[3] = ones;
    for (int k = 0; k < 4; k++) {
        check_qr(g, these[k], 1e-15);
        check_svd(g, these[k], 1e-15);
        check_eigh(g, gn_add(these[k], turned(these[k])), 1e-15);
    }
    check_svd(g, gn_matmul(normal(g, t, GN_SHAPE(70, 2)), normal(g, t, GN_SHAPE(2, n))), 1e-15);
}

static void test_ill_conditioned(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t sizes[] = {4, 12, 40, 100};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        if (TEST_THREAD_SANITIZER && i / 2 != 2) continue;
        gn_scope_begin(g);
        check_ill_conditioned(g, i % 2 ? GN_C128 : GN_F64, sizes[i / 2]);
        gn_scope_end(g);
    }
    for (int cx = 0; cx < 2; cx++) {
        // What is left of equal columns soon is nearly nothing.
        gn_array *ones = gn_ones(g, cx ? GN_C128 : GN_F64, GN_SHAPE(130, 64)), *v = NULL;
        check_qr(g, ones, 1e-15);
        check_svd(g, ones, 1e-15);
        // The smallest numbers there are have the vectors of others.
        gn_array *re = gn_mul_s(gn_floor(gn_mul_s(gn_randn(g, GN_F64, GN_SHAPE(70, 70)), 1e6)), 5e-324);
        gn_array *tiny = cx ? gn_complex(re, gn_transpose(re)) : re;
        gn_array *w = gn_mul_s(gn_eigh(tiny, &v), 1e300), *s = gn_mul_s(tiny, 1e300);
        gn_array *diagonal = gn_mul(gn_real(s), gn_eye(g, GN_F64, 70, 70, 0));
        s = gn_add(diagonal, gn_add(gn_tril(s, -1), turned(gn_tril(s, -1))));
        assert_true(largest(gn_sub(gn_matmul(s, v), gn_mul(v, gn_expand_dims(w, -2)))) <= 1e-6 * largest(w));
    }
}

// Eigenvalues known exactly: of the second difference, and of a matrix with many equal ones.
static void test_known_values(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t sizes[] = {2, 10, 50, 150};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t n = sizes[i];
        gn_array *a = gn_sub(gn_mul_s(gn_eye(g, GN_F64, n, n, 0), 2.0),
                             gn_add(gn_eye(g, GN_F64, n, n, 1), gn_eye(g, GN_F64, n, n, -1)));
        gn_array *k = gn_arange(g, GN_F64, 1.0, (double)n + 1.0, 1.0);
        gn_array *want =
            gn_mul_s(gn_square(gn_sin(gn_mul_s(k, 1.5707963267948966 / (double)(n + 1)))), 4.0);
        assert_true(largest(gn_sub(gn_eigh(a, NULL), want)) < 1e-14);
        assert_true(largest(gn_sub(gn_flip(gn_svd(a, false, NULL, NULL), GN_ALL), want)) < 1e-14);
        assert_true(fabs(gn_item(gn_det(a)) / (double)(n + 1) - 1.0) < 1e-12);
        gn_array *ones = gn_add(gn_ones(g, GN_F64, GN_SHAPE(n, n)), gn_eye(g, GN_F64, n, n, 0));
        gn_array *w = gn_eigh(ones, NULL);
        assert_true(fabs(gn_item(gn_slice(w, 0, n - 1, n, 1)) - (double)(n + 1)) < 1e-12);
        // Of the order of eps times the largest eigenvalue, which is n + 1.
        assert_true(largest(gn_sub_s(gn_slice(w, 0, 0, n - 1, 1), 1.0)) < 4e-15 * (double)(n + 1));
        check_eigh(g, ones, 1e-15);
    }
    // Beyond the range of float32, and products that overflow on the way.
    gn_array *big = gn_mul_s(gn_eye(g, GN_F32, 4, 4, 0), 1e30);
    expect_values(gn_det(big), (double)INFINITY);
    const double scales[] = {1e200, 1e200, 1e-200, 1e-200};
    gn_array *mixed =
        gn_mul(gn_eye(g, GN_F64, 4, 4, 0), gn_array_from(g, GN_F64, GN_SHAPE(4), scales));
    assert_true(fabs(gn_item(gn_det(mixed)) - 1.0) < 1e-14);
}

// Tridiagonal matrices t = 2 + eps x with x of small integers: all their eigenvalues are 2 but for roundings.
static void test_nearly_equal_values(void **state) {
    static const int x[][7] = {{6, 4, -2, 0, 3, 10, 9}, {4, 0, 8, 6, 7, 12, 3}, {2, -6, 4, 8, 11, 13, 4}};
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < 3; i++) {
        double m[4][4] = {{0}};
        for (int j = 0; j < 4; j++) m[j][j] = x[i][j];
        for (int j = 0; j < 3; j++) m[j][j + 1] = m[j + 1][j] = x[i][4 + j];
        gn_array *a = gn_array_from(g, GN_F64, GN_SHAPE(4, 4), m);
        gn_array *t = gn_add(gn_mul_s(gn_eye(g, GN_F64, 4, 4, 0), 2.0), gn_mul_s(a, DBL_EPSILON));
        gn_array *off = gn_sub(gn_sub_s(gn_eigvalsh(t), 2.0), gn_mul_s(gn_eigvalsh(a), DBL_EPSILON));
        assert_true(largest(off) <= 8.0 * DBL_EPSILON);
    }
}

// Matrices that are not symmetric: without a basis of eigenvectors, in a circle, badly scaled, of tiny and huge numbers.
static void test_general(void **state) {
    gn_context *g = residuals((gn_context *)*state); // the CPU computes them in any case
    for (int kind = 0; kind < 11; kind++) {
        static const int64_t sizes[] = {1, 2, 3, 7, 20, 53, 150};
        for (int i = 0; i < 6 + (kind == 0 || kind == 8) - (kind == 9) * 2; i++) {
            const int64_t n = sizes[i];
            gn_array *one = gn_eye(g, GN_F64, n, n, 0), *next = gn_eye(g, GN_F64, n, n, 1), *some = gn_randn(g, GN_F64, GN_SHAPE(n, n)), *a = one;
            gn_array *steep = gn_exp2(gn_round(gn_mul_s(gn_randn(g, GN_F64, GN_SHAPE(n)), 12)));
            if (kind == 0) a = gn_add(next, gn_mul_s(one, 3));
            if (kind == 1) a = gn_add(next, gn_eye(g, GN_F64, n, n, 1 - n));
            if (kind == 2) a = gn_triu(some, 0);
            if (kind == 3) a = gn_sub(gn_add(gn_triu(gn_ones(g, GN_F64, GN_SHAPE(n, n)), 0), gn_eye(g, GN_F64, n, n, 2)), gn_eye(g, GN_F64, n, n, -1));
            if (kind == 4) a = gn_zeros(g, GN_F64, GN_SHAPE(n, n));
            if (kind == 5) a = gn_sub(some, gn_transpose(some));
            if (kind == 6) a = gn_mul_s(some, 1e-300);
            if (kind == 7) a = gn_mul_s(some, 1e300);
            if (kind == 8) a = gn_complex(some, gn_tril(next, 0));
            if (kind == 9) a = gn_mul(gn_mul(some, steep), gn_expand_dims(gn_recip(steep), -1)); // a similar one of any
            if (kind == 10) // of numbers down to 1e-290
                a = gn_mul(gn_triu(some, -1), gn_exp2(gn_mul_s(gn_rand(g, GN_F64, GN_SHAPE(n, n)), -963)));
            if (kind == 10) { // LAPACK's vectors have no small residuals either
                gn_array *v = NULL, *w = gn_eig(a, &v);
                assert_true(largest(w) <= largest(a) * (double)n && largest(gn_sub_s(gn_norm(v, -2), 1)) < 1e-14);
                continue;
            }
            check_eig(g, a, 4e-15);
            if (kind < 8 && !(kind == 3 && n > 20)) { // of Grcar's the values move far with roundings
                gn_array *w = gn_eigvals(a), *im = gn_sort(gn_imag(w), -1, false); // in pairs
                if (largest(gn_add(im, gn_flip(im, -1))) != 0.0) fail_msg("%d %d: %s", kind, (int)n, gn_to_string(w, NULL));
            }
            if (kind != 9) continue;
            gn_array *d = apart_from(gn_eigvals(a), a, gn_eigvals(some));
            assert_true(gn_item(d) < 1e-12 * largest(some) * (double)n);
        }
    }
    for (int i = 0; i < 8; i++) { // of rank 1 and 2: their other values are roundings, of roundings
        gn_array *x = gn_round(gn_mul_s(gn_randn(g, GN_F64, GN_SHAPE(100, 4)), 3)), *y = gn_slice(x, 1, 0, 2, 1), *one = gn_index(x, ":, :1");
        check_eig(g, i % 2 == 0 ? gn_broadcast_to(one, GN_SHAPE(100, 100)) : gn_matmul(y, gn_transpose(gn_slice(x, 1, 2, 4, 1))), 4e-15);
    }
    // Known ones, and vectors with a real largest number.
    const double turn[] = {0, -1, 1, 0};
    gn_array *v = NULL, *w = gn_eig(gn_array_from(g, GN_F64, GN_SHAPE(2, 2), turn), &v);
    assert_true(largest(gn_real(w)) < 1e-15 && largest(gn_sub_s(gn_abs(gn_imag(w)), 1)) < 1e-15);
    assert_true(largest(gn_sub_s(gn_abs(v), 0.70710678118654752)) < 1e-15);
    expect_values(gn_abs(gn_prod(gn_imag(v), 0)), 0, 0);
    // The same bits on any number of threads, and of a batch as of its matrices.
    gn_array *batch = normal(g, GN_C128, GN_SHAPE(9, 20, 20));
    w = gn_eig(batch, &v);
    assert_true(largest(gn_sub(gn_index(w, "8"), gn_eigvals(gn_index(batch, "8")))) < 1e-13);
    gn_array *alone = NULL;
    assert_non_null(gn_eig(gn_index(batch, "8"), &alone));
    assert_true(largest(gn_sub(gn_index(v, "8"), alone)) == 0.0);
}

// The same bits for any number of threads, and for a batch as for its matrices.
static void test_same_bits(void **state) {
    gn_context *g = (gn_context *)*state;
    double *first[2] = {NULL, NULL};
    const int64_t n = 150;
    for (int round = 0; round < 6; round++) {
        const int threads = 1 + round % 3, cx = round / 3;
        gn_options o = test_options();
        o.threads = threads;
        o.seed = 5;
        gn_context *h = test_open_with(&o);
        gn_array *a = normal(h, cx ? GN_C128 : GN_F64, GN_SHAPE(n, n)), *v = NULL, *u = NULL, *vt = NULL;
        gn_array *all[4];
        all[0] = gn_solve(a, a);
        gn_eigh(gn_add(a, turned(a)), &v);
        all[1] = v;
        gn_svd(a, false, &u, &vt);
        all[2] = u;
        all[3] = vt;
        gn_array *y = gn_stack(all, 4, 0);
        double *data = (double *)malloc(gn_bytes(y));
        assert_non_null(data);
        assert_int_equal(gn_read(y, data, gn_bytes(y)), GN_OK);
        if (first[cx] == NULL) {
            first[cx] = data;
        } else {
            assert_memory_equal(first[cx], data, gn_bytes(y));
            free(data);
        }
        gn_close(h);
    }
    for (int i = 0; i < 2; i++) free(first[i]);
    gn_array *matrices = normal(g, GN_C128, GN_SHAPE(9, 20, 20)), *values = gn_svd(matrices, false, NULL, NULL);
    assert_true(largest(gn_sub(gn_index(values, "8"), gn_svd(gn_index(matrices, "8"), false, NULL, NULL))) == 0.0);
    gn_array *batch = gn_randn(g, GN_F64, GN_SHAPE(9, 20, 20)), *inverses = gn_inv(batch);
    for (int i = 0; i < 9; i++)
        assert_true(largest(gn_sub(gn_index(inverses, i == 3 ? "3" : "8"),
                                   gn_inv(gn_index(batch, i == 3 ? "3" : "8")))) == 0.0);
}

static void test_half_and_integers(void **state) {
    gn_context *g = (gn_context *)*state;
    const int32_t values[] = {2, 1, 1, 3};
    gn_array *a = gn_array_from(g, GN_I32, GN_SHAPE(2, 2), values);
    expect_values(gn_det(a), 5.0);
    assert_int_equal(gn_dtype_of(gn_eigh(a, NULL)), GN_F32);
    gn_array *h = gn_cast(a, GN_F16), *b = gn_cast(a, GN_BF16);
    assert_int_equal(gn_dtype_of(gn_inv(h)), GN_F16);
    expect_values(gn_det(h), 5.0);
    expect_values(gn_det(b), 5.0);
    assert_int_equal(gn_dtype_of(gn_solve(b, a)), GN_BF16);
    expect_values(gn_solve(b, a), 1.0, 0.0, 0.0, 1.0);
    expect_values(gn_einsum(g, "ij,jk", h, h), 5.0, 5.0, 5.0, 10.0);
    expect_values(gn_einsum(g, "ij,ij->", h, h), 15.0);
    assert_int_equal(gn_dtype_of(gn_einsum(g, "ij,ij->", h, h)), GN_F16);
}

static void test_nan(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int kind = 0; kind < 4; kind++) { // complex ones in the imaginary part
        for (int64_t n = 2; n < 80; n += 38) {
            const bool cx = kind > 1;
            gn_array *a = gn_randn(g, GN_F64, GN_SHAPE(n, n));
            double bad = kind % 2 == 0 ? (double)NAN : (double)INFINITY;
            gn_array *spot = gn_eye(g, GN_F64, n, n, 1);
            a = gn_where(gn_eq_s(spot, 1.0), gn_full(g, GN_F64, GN_SHAPE(), bad), a);
            gn_array *r = NULL;
            if (cx) a = gn_complex(gn_transpose(a), a);
            gn_qr(a, &r);
            assert_true(gn_item(gn_any(gn_isnan(r), GN_ALL)) == 1.0);
            gn_solve(a, a);
            gn_inv(a);
            gn_det(a);
            assert_int_equal(gn_status_get(g), GN_OK);
            assert_null(gn_eigh(turned(a), NULL));
            expect_error(g, GN_ERROR_ARGUMENT, "gn_eigh: the matrix holds NaN or infinity");
            gn_array *v = NULL;
            assert_null(gn_eig(a, &v));
            assert_null(v);
            expect_error(g, GN_ERROR_ARGUMENT, "gn_eig: the matrix holds NaN or infinity");
            assert_null(gn_eigvals(a));
            expect_error(g, GN_ERROR_ARGUMENT, "gn_eigvals: the matrix holds NaN or infinity");
            assert_null(gn_svd(a, true, NULL, NULL));
            expect_error(g, GN_ERROR_ARGUMENT, "gn_svd: the matrix holds NaN or infinity");
            gn_array *spd =
                gn_where(gn_eq_s(gn_transpose(spot), 1.0), gn_full(g, GN_F64, GN_SHAPE(), bad),
                         gn_eye(g, GN_F64, n, n, 0));
            if (cx) spd = gn_complex(gn_eye(g, GN_F64, n, n, 0), spd);
            assert_null(gn_cholesky(spd));
            expect_error(
                g, GN_ERROR_ARGUMENT,
                "gn_cholesky: the matrix is not positive definite (its leading 2 x 2 block is not)");
        }
    }
}

// ---- errors

static void test_errors(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(2, 3)), *v = gn_ones(g, GN_F32, GN_SHAPE(3)),
             *r = NULL;
    gn_array *s = gn_ones(g, GN_F32, GN_SHAPE(3, 3)), *z = gn_complex(s, s);
    assert_null(gn_einsum(g, "ij,jk", a, a));
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_einsum: \"ij,jk\": 'j' stands for 3 elements, and for 2 in operand 2");
    assert_null(gn_einsum(g, "ij,jk", a));
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_einsum: \"ij,jk\": names more operands than the 1 given");
    assert_null(gn_einsum(g, "ij", a, a));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_einsum: \"ij\": names 1 operands, 2 are given");
    assert_null(gn_einsum(g, "ijk", a));
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_einsum: \"ijk\": operand 1 has rank 2, its subscripts name 3 axes");
    assert_null(gn_einsum(g, "i", a));
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_einsum: \"i\": operand 1 has rank 2, its subscripts name 1 axes");
    assert_null(gn_einsum(g, "ii", a));
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_einsum: \"ii\": 'i' stands for 2 and 3 elements of operand 1");
    assert_null(gn_einsum(g, "ij->ik", a));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_einsum: \"ij->ik\": no operand has 'k'");
    assert_null(gn_einsum(g, "ij->ii", a));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_einsum: \"ij->ii\": the result names 'i' twice");
    assert_null(gn_einsum(g, "i1", a));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_einsum: \"i1\": '1' is neither a letter nor ',' nor \"->\"");
    assert_null(gn_einsum(g, "i.j", a));
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_einsum: \"i.j\": a point that is not part of one ellipsis");
    assert_null(gn_einsum(g, "...j->j", a));
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_einsum: \"...j->j\": the result has no ellipsis for 1 axes");
    assert_null(gn_einsum(g, "ij->i,j", a));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_einsum: \"ij->i,j\": the result has more than one term");
    assert_null(gn_tensordot(a, a, NULL, NULL, 1));
    expect_error(g, GN_ERROR_SHAPE,
                 "gn_tensordot: (2,3) x (2,3): axes 1 and 0 have 3 and 2 elements");
    assert_null(gn_tensordot(a, a, NULL, NULL, 3));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_tensordot: 3 axes of an array of rank 2");
    assert_null(gn_dot(a, a));
    expect_error(g, GN_ERROR_SHAPE, "gn_dot: (2,3) x (2,3): 3 and 2 elements are summed over");
    assert_null(gn_trace(v, 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_trace: (3,) is not a matrix or a batch of matrices");
    assert_null(gn_inv(a));
    expect_error(g, GN_ERROR_SHAPE, "gn_inv: (2,3): the matrices are not square");
    assert_null(gn_inv(s));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_inv: the matrix is singular (pivot 1 is 0)");
    assert_null(gn_solve(s, v));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_solve: the matrix is singular (pivot 1 is 0)");
    gn_array *three[3];
    three[0] = three[2] = gn_eye(g, GN_F32, 3, 3, 0);
    three[1] = s;
    assert_null(gn_inv(gn_stack(three, 3, 0)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_inv: matrix 1 of 3 is singular (pivot 1 is 0)");
    assert_null(gn_cholesky(gn_neg(gn_stack(three, 3, 0))));
    expect_error(
        g, GN_ERROR_ARGUMENT,
        "gn_cholesky: matrix 0 of 3 is not positive definite (its leading 1 x 1 block is not)");
    assert_null(gn_solve(s, gn_ones(g, GN_F32, GN_SHAPE(4, 2))));
    expect_error(g, GN_ERROR_SHAPE, "gn_solve: (3,3) and (4,2): 3 equations, 4 rows of right-hand sides");
    assert_null(
        gn_solve(gn_ones(g, GN_F32, GN_SHAPE(2, 3, 3)), gn_ones(g, GN_F32, GN_SHAPE(4, 3, 2))));
    expect_error(g, GN_ERROR_SHAPE,
                 "gn_solve: (2,3,3) and (4,3,2): batch dimensions do not broadcast");
    gn_array *minus = gn_sub(z, gn_eye(g, GN_C64, 3, 3, 0));
    assert_null(gn_cholesky(minus));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_cholesky: the matrix is not positive definite (its leading 1 x 1 block is not)");
    minus = gn_add(gn_eye(g, GN_C128, 140, 140, 0), gn_mul_s(gn_eye(g, GN_C128, 140, 140, -133), 9.0));
    assert_null(gn_cholesky(minus));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_cholesky: the matrix is not positive definite (its leading 134 x 134 block is not)");
    assert_null(gn_eigh(gn_slice(z, 0, 0, 2, 1), &r));
    assert_null(r);
    expect_error(g, GN_ERROR_SHAPE, "gn_eigh: (2,3): the matrices are not square");
    assert_null(gn_qr(gn_index(z, "0"), &r));
    expect_error(g, GN_ERROR_SHAPE, "gn_qr: (3,) is not a matrix or a batch of matrices");
    expect_values(gn_det(s), 0.0);
    assert_null(gn_solve_triangular(a, v, true, false, false));
    expect_error(g, GN_ERROR_SHAPE, "gn_solve_triangular: (2,3): the matrices are not square");
    assert_null(gn_solve_triangular(s, gn_ones(g, GN_F32, GN_SHAPE(2)), true, false, false));
    expect_error(g, GN_ERROR_SHAPE, "gn_solve_triangular: (3,3) and (2,): 3 equations, 2 rows of right-hand sides");
    assert_null(gn_solve_triangular(s, gn_ones(g, GN_F32, GN_SHAPE()), false, false, false));
    expect_error(g, GN_ERROR_SHAPE, "gn_solve_triangular: the right-hand side is 0-d");
    const float holes[] = {1, 5, 5, 5, 0, 5, 5, 5, 0};
    gn_array *hole = gn_array_from(g, GN_F32, GN_SHAPE(3, 3), holes);
    for (int i = 0; i < 8; i++) {
        gn_array *x = i % 2 ? gn_complex(hole, gn_zeros_like(hole)) : hole;
        assert_null(gn_solve_triangular(x, v, i / 2 % 2 != 0, i / 4 != 0, false));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_solve_triangular: the matrix is singular (pivot 1 is 0)");
        assert_non_null(gn_solve_triangular(x, v, i / 2 % 2 != 0, i / 4 != 0, true));
    }
    assert_null(gn_inv(NULL));
    assert_null(gn_qr(NULL, &r));
}

static void use_everything_of(gn_context *g, gn_dtype t) {
    gn_scope_begin(g);
    gn_array *a = gn_add(normal(g, t, GN_SHAPE(2, 5, 5)), gn_mul_s(gn_eye(g, GN_F32, 5, 5, 0), 9.0));
    gn_array *s = gn_matmul(a, turned(a)), *r = NULL, *v = NULL, *u = NULL, *vt = NULL;
    gn_einsum(g, "bij,bjk,bkl->il", a, s, a);
    gn_tensordot(a, turned(s), NULL, NULL, 3);
    gn_trace(gn_tril(a, 0), 1);
    gn_solve(a, s);
    gn_solve_triangular(a, s, false, false, false);
    gn_inv(a);
    gn_det(a);
    gn_cholesky(s);
    gn_array *q = gn_qr(a, &r), *w = gn_eigh(s, &v), *values = gn_svd(a, true, &u, &vt), *x = NULL;
    if ((gn_eig(a, &x) == NULL) != (x == NULL)) fail_msg("one result without the other");
    if ((q == NULL) != (r == NULL) || (w == NULL) != (v == NULL))
        fail_msg("one result without the other");
    if ((values == NULL) != (u == NULL) || (values == NULL) != (vt == NULL))
        fail_msg("one result without the others");
    gn_scope_end(g);
}

static void use_everything(gn_context *g) {
    use_everything_of(g, GN_F32);
    use_everything_of(g, GN_C64);
}

static void test_allocations(void **state) {
    (void)state;
    test_most_allocations(use_everything);
}

// ---- gradients

static gn_array *weighted(gn_context *g, gn_array *y) { // a loss that tells all elements apart
    gn_array *w = gn_reshape(gn_linspace(g, GN_F64, 0.3, 1.7, gn_size(y)), gn_shape_of(y));
    return gn_sum(gn_mul(gn_mul(y, w), gn_add_s(y, 0.5)), GN_ALL);
}

static gn_array *both(gn_context *g, gn_array *y) { return gn_add(weighted(g, gn_real(y)), gn_mul_s(weighted(g, gn_imag(y)), 0.7)); }

static gn_array *symmetric(gn_array *a) { return gn_add(a, turned(a)); }

// Two complex arrays of two real ones.
static gn_array **apart(gn_array *const *x, gn_array **z) {
    z[0] = gn_complex(x[0], x[1]);
    z[1] = gn_complex(gn_swap_axes(x[1], -1, -2), gn_mul(x[0], x[1]));
    return z;
}

static gn_array *loss_of(gn_context *g, gn_array *const *x, int count, void *user) {
    gn_array *a = x[0], *b = count > 1 ? x[1] : NULL, *v = NULL, *n = NULL, *r = NULL, *z[2];
    switch (*(int *)user) {
    case 0: return weighted(g, gn_einsum(g, "bij,bjk->ki", a, b));
    case 1: return weighted(g, gn_einsum(g, "bii,bij->bj", a, b));
    case 2: return weighted(g, gn_tensordot(a, gn_transpose(b), NULL, NULL, 1));
    case 3: return weighted(g, gn_trace(gn_mul(a, b), 1));
    case 4: return weighted(g, gn_add(gn_tril(a, 1), gn_triu(b, -1)));
    case 5: return weighted(g, gn_solve(a, b));
    case 6: return weighted(g, gn_solve(a, gn_sum(b, GN_AXES(0, 1))));
    case 7: return weighted(g, gn_inv(a));
    case 8: return weighted(g, gn_det(a));
    case 9: return weighted(g, gn_cholesky(gn_matmul(a, turned(a))));
    case 10: return weighted(g, gn_eigh(symmetric(a), NULL));
    case 11: // vectors are known up to their sign
        n = gn_eigh(symmetric(a), &v);
        return gn_add(gn_sum(gn_mul_s(n, 0.1), GN_ALL), weighted(g, gn_square(v)));
    case 12: return weighted(g, gn_diagonal(a, -1));
    case 13: return weighted(g, gn_outer(a, gn_dot(b, gn_sum(a, GN_AXES(0, 1)))));
    case 14: return weighted(g, gn_einsum(g, "bij,bjk,kl->bil", a, b, gn_sum(a, 0)));
    case 15: // square, tall and wide: q and r apart and together
        n = gn_qr(a, &r);
        return gn_add(weighted(g, n), weighted(g, r));
    case 16: return weighted(g, gn_qr(gn_concat(x, 2, -2), NULL));
    case 17: n = gn_qr(gn_concat(x, 2, -2), &r); return gn_add(weighted(g, n), weighted(g, r));
    case 18: return weighted(g, gn_qr(gn_concat(x, 2, -1), NULL));
    case 19: n = gn_qr(gn_concat(x, 2, -1), &r); return gn_add(weighted(g, n), weighted(g, r));
    case 20: return weighted(g, gn_svd(gn_concat(x, 2, -1), true, NULL, NULL));
    case 21: // vectors are known up to their signs
        n = gn_svd(a, true, &v, &r);
        return gn_add(weighted(g, n), gn_add(weighted(g, gn_square(v)), weighted(g, gn_square(r))));
    case 22:
        n = gn_svd(gn_concat(x, 2, -2), false, &v, &r);
        return gn_add(weighted(g, gn_square(v)),
                      weighted(g, gn_matmul(gn_mul(v, gn_expand_dims(gn_square(n), -2)), r)));
    case 23: n = gn_solve(gn_complex(a, b), gn_complex(gn_slice(b, -1, 0, 2, 1), gn_slice(a, -1, 0, 2, 1))); return both(g, n);
    case 24: return both(g, gn_solve(gn_complex(a, b), gn_sum(b, GN_AXES(0, 1))));
    case 25: return both(g, gn_inv(gn_complex(a, b)));
    case 26: return both(g, gn_det(gn_complex(a, b)));
    case 27: n = gn_slogdet(gn_complex(a, b), &v); return gn_add(both(g, n), weighted(g, v));
    case 28: return both(g, gn_vecdot(gn_complex(a, b), gn_complex(gn_swap_axes(b, 1, 2), a), 0));
    case 29: return weighted(g, gn_vecdot(a, gn_slice(b, 0, 0, 1, 1), -1));
    case 31: return both(g, gn_cholesky(gn_matmul(gn_complex(a, b), turned(gn_complex(a, b)))));
    case 32: return weighted(g, gn_eigh(symmetric(gn_complex(a, b)), NULL));
    case 33: // vectors are known up to their phases
        gn_eigh(symmetric(gn_complex(a, b)), &v);
        return gn_add(weighted(g, gn_abs(v)), both(g, gn_mul(gn_slice(v, -2, 0, 1, 1), gn_conj(gn_slice(v, -2, 1, 2, 1)))));
    case 34: // square, tall and wide
        n = gn_qr(gn_complex(a, b), &r);
        return gn_add(both(g, n), both(g, r));
    case 35: n = gn_qr(gn_concat(apart(x, z), 2, -2), &r); return gn_add(both(g, n), both(g, r));
    case 36: n = gn_qr(gn_concat(apart(x, z), 2, -1), &r); return gn_add(both(g, n), both(g, r));
    case 37: return weighted(g, gn_svd(gn_concat(apart(x, z), 2, -1), false, NULL, NULL));
    case 38: // u and v are known up to phases that they have in common
        n = gn_svd(gn_complex(a, b), true, &v, &r);
        return gn_add(weighted(g, n), gn_add(weighted(g, gn_abs(v)), both(g, gn_matmul(v, r))));
    case 39:
    case 40:
        n = gn_svd(gn_concat(apart(x, z), 2, *(int *)user - 41), false, &v, &r);
        return gn_add(weighted(g, gn_abs(r)), both(g, gn_matmul(gn_mul(v, gn_expand_dims(gn_square(n), -2)), r)));
    case 41: return both(g, gn_pinv(gn_concat(apart(x, z), 2, -1), -1));
    case 42: return both(g, gn_lstsq(gn_concat(apart(x, z), 2, -2), gn_concat(x, 2, -2), -1, NULL, NULL));
    case 43:
        n = gn_lstsq(gn_concat(x, 2, -2), gn_concat(apart(x, z), 2, -2), -1, &r, NULL);
        return gn_add(both(g, n), weighted(g, r));
    case 45: return both(g, gn_eigvals(a));
    case 46: // vectors are known up to their phases
        n = gn_eig(a, &v);
        return gn_add(weighted(g, gn_abs(v)), both(g, gn_matmul(gn_mul(v, gn_expand_dims(gn_sqrt(n), -2)), turned(v))));
    case 47: return both(g, gn_eigvals(gn_complex(a, b)));
    case 48:
        n = gn_eig(gn_complex(a, b), &v);
        return gn_add(weighted(g, gn_abs(v)), both(g, gn_matmul(gn_mul(v, gn_expand_dims(n, -2)), turned(v))));
    case 49: n = gn_solve_triangular(a, b, true, false, false); return gn_add(weighted(g, n), weighted(g, gn_solve_triangular(a, b, false, true, false)));
    case 50: return weighted(g, gn_solve_triangular(gn_sum(a, 0), gn_sum(b, GN_AXES(0, 1)), false, false, true));
    case 51: n = gn_complex(a, b); return gn_add(both(g, gn_solve_triangular(n, b, true, true, true)), both(g, gn_solve_triangular(a, n, false, false, false)));
    case 44:
        n = gn_complex(a, b);
        return gn_add(weighted(g, gn_matrix_norm(n, GN_NORM_NUCLEAR)), weighted(g, gn_matrix_norm(n, GN_NORM_2)));
    default:
        n = gn_svd(gn_concat(x, 2, -1), false, &v, &r);
        return gn_add(weighted(g, gn_square(r)),
                      weighted(g, gn_matmul(gn_mul(v, gn_expand_dims(gn_square(n), -2)), r)));
    }
}

// The derivative of a gradient: the loss is the weighted gradient itself.
static gn_array *loss_of_gradient(gn_context *g, gn_array *const *x, int count, void *user) {
    gn_array *gx[2] = {NULL, NULL}, *loss = loss_of(g, x, count, user);
    if (gn_gradients(loss, x, count, true, gx) != GN_OK) return NULL;
    return gn_add(weighted(g, gx[0]),
                  gx[1] != NULL ? weighted(g, gx[1]) : gn_scalar(g, GN_F64, 0.0));
}

static void test_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int kind = 0; kind < 52; kind++) {
        if (TEST_THREAD_SANITIZER && kind % 5 != 0) continue; // none has a second thread
        gn_scope_begin(g);
        gn_array *x[2];
        gn_seed(g, 3);
        x[0] = gn_add(gn_randn(g, GN_F64, GN_SHAPE(2, 3, 3)),
                      gn_mul_s(gn_eye(g, GN_F64, 3, 3, 0), 4.0));
        x[1] = gn_randn(g, GN_F64, GN_SHAPE(2, 3, 3));
        for (int i = 0; i < 2; i++) x[i] = gn_requires_grad(gn_detach(x[i]), true);
        int count = (kind >= 7 && kind <= 12) || kind == 15 || kind == 21 || kind == 45 || kind == 46 ? 1 : 2;
        double error = gradients_apart(g, loss_of, x, count, 1e-5, &kind);
        if (!(error < 1e-5)) fail_msg("kind %d: %g %s", kind, error, gn_error(g));
        error = gradients_apart(g, loss_of_gradient, x, count, 1e-5, &kind);
        if (!(error < 1e-4))
            fail_msg("second derivative, kind %d: %g %s", kind, error, gn_error(g));
        gn_scope_end(g);
    }
}

// The gradient of a singular determinant is its cofactors; where all are 0, 0.
static void test_singular_gradient(void **state) {
    gn_context *g = (gn_context *)*state;
    const double values[] = {1, 2, 3, 4, 8, 12, 7, 8, 10};
    gn_array *a = gn_requires_grad(gn_array_from(g, GN_F64, GN_SHAPE(3, 3), values), true);
    gn_array *det = gn_det(a);
    expect_values(det, 0.0);
    assert_int_equal(gn_backward(gn_sum(det, GN_ALL)), GN_OK);
    const double want[] = {-16, 44, -24, 4, -11, 6, 0, 0, 0};
    assert_true(largest(gn_sub(gn_grad(a), gn_array_from(g, GN_F64, GN_SHAPE(3, 3), want))) <
                1e-12);
    // (2i, 2 + 4i; 1, 2 - i): of re + 3 im the gradient is 1 + 3i times the conjugated cofactors 2 - i, -1; -2 - 4i, 2i.
    const double re[] = {0, 2, 1, 2}, im[] = {2, 4, 0, -1}, slope[2][4] = {{-1, -1, -14, 6}, {7, -3, -2, -2}};
    gn_array *part[2], *d;
    for (int k = 0; k < 2; k++) part[k] = gn_requires_grad(gn_array_from(g, GN_F64, GN_SHAPE(2, 2), k ? im : re), true);
    d = gn_det(gn_complex(part[0], part[1]));
    expect_values(gn_abs(gn_detach(d)), 0.0);
    assert_int_equal(gn_backward(gn_add(gn_real(d), gn_mul_s(gn_imag(d), 3.0))), GN_OK);
    for (int k = 0; k < 2; k++)
        assert_true(largest(gn_sub(gn_grad(part[k]), gn_array_from(g, GN_F64, GN_SHAPE(2, 2), slope[k]))) < 1e-12);
}

// Vectors that only complete a basis have no derivative, and neither have those of dependent columns.
static void test_no_gradient(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_requires_grad(gn_randn(g, GN_F64, GN_SHAPE(4, 3)), true), *u = NULL,
             *vt = NULL;
    gn_array *s = gn_svd(a, true, &u, &vt);
    assert_int_equal(gn_backward(gn_sum(u, GN_ALL)), GN_ERROR_GRADIENT);
    expect_error(g, GN_ERROR_GRADIENT, "gn_backward: gn_svd has no derivative");
    assert_int_equal(gn_backward(gn_add(gn_sum(s, GN_ALL), gn_sum(gn_square(vt), GN_ALL))), GN_OK);
    a = gn_requires_grad(gn_zeros(g, GN_F64, GN_SHAPE(3, 3)), true);
    assert_int_not_equal(gn_backward(gn_sum(gn_qr(a, NULL), GN_ALL)), GN_OK);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_backward: gn_qr: the matrix is singular (pivot 0 is 0)");
}

// ---- on the GPU

// A context that decomposes matrices of any size on the device; NULL without one.
static gn_context *open_large(int64_t least) {
    gn_options o = test_options();
    if (!test_on_vulkan()) return NULL;
    o.thresholds.linalg = least;
    return test_share(&o);
}

// Residuals as LAPACK's tests have them: relative to n eps and the norms.
static void check_large(gn_context *g, gn_dtype t, int64_t n) {
    const double eps = t == GN_F64 ? 2.3e-16 : 1.2e-7, size = (double)n + 10.0;
    gn_array *a = gn_randn(g, t, GN_SHAPE(n, n)), *b = gn_randn(g, t, GN_SHAPE(n, 3)), *r = NULL;
    gn_array *a64 = gn_cast(a, GN_F64), *s = gn_matmul(a, turned(a)),
             *eye = gn_eye(g, GN_F64, n, n, 0);
    s = gn_add(s, gn_eye(g, t, n, n, 0));
    gn_array *x = gn_solve(a, b), *y = gn_inv(turned(a)), *l = gn_cholesky(s), *q = gn_qr(a, &r);
    assert_true(n == 0 || (is_on_gpu(x) && is_on_gpu(y) && is_on_gpu(l)));
    assert_true(largest(gn_sub(gn_matmul(a64, gn_cast(x, GN_F64)), b)) <=
                4.0 * size * eps * largest(a) * largest(x));
    assert_true(largest(gn_sub(gn_matmul(gn_cast(y, GN_F64), turned(a64)), eye)) <=
                8.0 * size * eps * largest(a) * largest(y));
    gn_array *l64 = gn_cast(l, GN_F64), *q64 = gn_cast(q, GN_F64);
    assert_true(largest(gn_sub(gn_matmul(l64, turned(l64)), s)) <= size * eps * largest(s));
    assert_true(largest(gn_sub(gn_tril(l, 0), l)) == 0.0);
    assert_true(largest(gn_sub(gn_matmul(q64, gn_cast(r, GN_F64)), a)) <= size * eps * largest(a));
    assert_true(skew(g, q64) <= size * eps);
    assert_true(largest(gn_sub(gn_triu(r, 0), r)) == 0.0);
    if (n > 40) return;
    // Its determinant against that of a context that leaves it to the CPU.
    double data[40 * 40];
    gn_context *h = test_open();
    assert_int_equal(gn_read(a64, data, gn_bytes(a64)), GN_OK);
    double det = gn_item(gn_det(a)),
           want = gn_item(gn_det(gn_array_from(h, GN_F64, GN_SHAPE(n, n), data)));
    assert_true(fabs(det - want) <= 100.0 * size * eps * fabs(want) + 1e-6);
    gn_close(h);
}

static void check_tall(gn_context *g, gn_array *a, bool on_gpu, double eps) {
    gn_array *r = NULL, *q = gn_qr(a, &r), *q64 = gn_cast(q, GN_F64);
    double size = (double)gn_dim(a, -2) + 10.0;
    assert_true(is_on_gpu(q) == on_gpu);
    assert_true(largest(gn_sub(gn_matmul(q64, gn_cast(r, GN_F64)), a)) <= size * eps * largest(a));
    assert_true(skew(g, q64) <= size * eps);
}

// What is not of the triangle is NaN, with `unit` its diagonal too.
static void check_triangle(gn_context *g, gn_dtype t, int64_t n, int64_t k, int flags, bool large) {
    const bool lower = flags % 2, transposed = flags / 2 % 2, unit = flags / 4 % 2;
    gn_array *ones = gn_ones(g, t, GN_SHAPE(n, n)), *eye = gn_eye(g, t, n, n, 0), *b = gn_randn(g, t, GN_SHAPE(2, n, k));
    gn_array *own = gn_cast(lower ? gn_tril(ones, -unit) : gn_triu(ones, unit), GN_BOOL);
    gn_array *a = gn_add(gn_mul_s(gn_randn(g, t, GN_SHAPE(n, n)), 0.5 / sqrt((double)n)), gn_mul_s(eye, 1.5));
    gn_array *x = gn_solve_triangular(gn_where(own, a, gn_full(g, t, GN_SHAPE(), (double)NAN)), b, lower, transposed, unit);
    assert_true(!large || lower == transposed || is_on_gpu(x));
    gn_array *z = gn_add(gn_mul(wide(a), wide(own)), unit ? wide(eye) : gn_zeros(residuals(g), GN_F64, GN_SHAPE()));
    const double most = largest(gn_sub(gn_matmul(transposed ? gn_transpose(z) : z, wide(x)), wide(b)));
    if (!(most <= 4.0 * eps_of(t) * (double)(n + 10) * largest(x))) fail_msg("%d, flags %d: %g", (int)n, flags, most);
}

// Batches of their own on both sides: (3,1,n,n) and (2,n,k), as views.
static void check_triangles(gn_context *g, gn_dtype t, int64_t n, int flags, int64_t k) {
    const bool lower = flags % 2, transposed = flags / 2 % 2, unit = flags / 4 % 2;
    gn_array *a = gn_mul_s(gn_randn(g, t, GN_SHAPE(3, 1, n + 1, n + 2)), 0.5 / sqrt((double)n));
    gn_array *b = gn_swap_axes(gn_randn(g, t, GN_SHAPE(2, k, n)), 1, 2), *eye = gn_eye(g, t, n, n, 0);
    a = gn_index(a, "..., 1:, 2:");
    gn_array *x = gn_solve_triangular(gn_eval(gn_add(a, gn_mul_s(eye, 1.5))), b, lower, transposed, unit);
    assert_true(is_on_gpu(x) || lower == transposed); // or a view of that
    gn_array *z = wide(lower ? gn_tril(a, -unit) : gn_triu(a, unit));
    z = gn_add(z, gn_mul_s(wide(eye), unit ? 1.0 : 1.5));
    const double most = largest(gn_sub(gn_matmul(transposed ? gn_swap_axes(z, -2, -1) : z, wide(x)), wide(b)));
    if (!(most <= 4.0 * eps_of(t) * (double)(n + 10) * largest(x))) fail_msg("(3,1,%d): flags %d: %g", (int)n, flags, most);
}

// Complex systems, inverses and determinants of orders that are taken by halves, scaled to where squares have no value.
static void check_complex_systems(gn_context *g, gn_dtype t, int n, int k, double scale) {
    const gn_dtype part = t == GN_C64 ? GN_F32 : GN_F64;
    gn_array *a = gn_mul_s(gn_complex(gn_randn(g, part, GN_SHAPE(2, n, n)), gn_randn(g, part, GN_SHAPE(2, n, n))), scale);
    gn_array *b = gn_complex(gn_randn(g, part, GN_SHAPE(n, k)), gn_randn(g, part, GN_SHAPE(n, k)));
    const double most = (t == GN_C64 ? 1e-5 : 2e-14) * (n + 10) * (test_on_vulkan() ? 30 : 1);
    gn_array *wide = gn_cast(a, GN_C128), *inverse = gn_inv(wide);
    const double growth = largest(gn_abs(gn_matmul(gn_abs(wide), gn_abs(inverse)))); // of errors
    gn_array *x = gn_solve(a, b), *off = gn_abs(gn_sub(gn_matmul(wide, gn_cast(x, GN_C128)), b));
    assert_true(largest(off) <= most * growth);
    assert_true(largest(gn_abs(gn_sub(gn_matmul(wide, inverse), gn_eye(g, GN_F64, n, n, 0)))) <= 2e-14 * (n + 10) * growth);
    // The sign and the logarithm of products: of these with a triangle of which both are known.
    gn_array *size = NULL, *all = NULL, *turn = gn_slogdet(wide, &size), *l = gn_tril(gn_div_s(gn_at(wide, 1), scale), 0);
    l = gn_add(l, gn_mul_s(gn_eye(g, GN_F64, n, n, 0), 2.0 * n));
    gn_array *sign = gn_slogdet(gn_matmul(wide, l), &all), *d = gn_diagonal(l, 0);
    gn_array *more = gn_sum(gn_log(gn_abs(d)), GN_ALL), *phase = gn_prod(gn_div(d, gn_abs(d)), GN_ALL);
    assert_true(largest(gn_abs(gn_sub(all, gn_add(size, more)))) <= 1e-9 * (n + 1));
    assert_true(largest(gn_abs(gn_sub(sign, gn_mul(turn, phase)))) <= 1e-9 * (n + 1));
}

static void test_complex_systems(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int sizes[] = {1, 2, 7, 8, 9, 17, 31, 40, 65, 130};
    for (int i = 0; i < 10; i++)
        for (int k = 0; k < 3; k++) {
            gn_scope_begin(g);
            check_complex_systems(g, k == 2 ? GN_C64 : GN_C128, sizes[i], k == 0 ? 1 : 5, k == 1 && !test_on_vulkan() ? 1e-200 : 1);
            gn_scope_end(g);
        }
    GN_SCOPE(g) {
        gn_array *a = gn_complex(gn_sub(gn_eye(g, GN_F64, 20, 20, 0), gn_mul(gn_eye(g, GN_F64, 20, 20, 0), gn_eq_s(gn_arange(g, GN_I32, 0, 20, 1), 12))), gn_zeros(g, GN_F64, GN_SHAPE(20, 20)));
        assert_null(gn_inv(a));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_inv: the matrix is singular (pivot 12 is 0)");
        assert_true(gn_item(gn_abs(gn_det(a))) == 0.0);
    }
}

static void test_triangles(void **state) {
    gn_context *g = (gn_context *)*state, *h = open_large(1);
    static const int64_t sizes[] = {1, 31, 128, 129, 261};
    for (int i = 0; i < 5; i++)
        for (int flags = 0; flags < 8; flags++) {
            gn_scope_begin(g);
            check_triangle(g, GN_F32, sizes[i], i % 2 ? 1 : 3, flags, false);
            check_triangle(g, GN_F64, sizes[i], flags == 3 ? 150 : 1, flags, false);
            gn_scope_end(g);
            if (h == NULL) continue;
            gn_scope_begin(h);
            check_triangle(h, GN_F32, sizes[i], 3 + 200 * (flags == 5), flags, true);
            check_triangle(h, GN_F64, sizes[i], 1, flags, true);
            gn_scope_end(h);
        }
    if (h == NULL) return;
    for (int i = 0; i < 16; i++) {
        const gn_dtype t = i / 8 ? GN_F64 : GN_F32;
        gn_scope_begin(h);
        check_triangles(h, t, i % 3 == 0 ? 3 : i % 3 == 1 ? 16 : 39, i % 8, i % 2 ? 5 : 1);
        gn_scope_end(h);
    }
    gn_scope_begin(h);
    gn_array *holes = gn_sub(gn_ones(h, GN_F32, GN_SHAPE(5, 20, 20)), gn_eye(h, GN_F32, 20, 20, 3)), *right = gn_ones(h, GN_F32, GN_SHAPE(20));
    holes = gn_sub(holes, gn_mul(gn_eye(h, GN_F32, 20, 20, 0), gn_reshape(gn_arange(h, GN_F32, -2, 3, 1), GN_SHAPE(5, 1, 1))));
    gn_array *ahead = gn_index(holes, "3:, 3:, 3:"), *behind = gn_index(holes, "1:3");
    assert_true(is_on_gpu(gn_solve_triangular(behind, right, true, false, false)));
    assert_null(gn_solve_triangular(holes, right, false, false, false));
    expect_error(h, GN_ERROR_ARGUMENT, "gn_solve_triangular: matrix 3 of 5 is singular (pivot 0 is 0)");
    assert_null(gn_solve_triangular(ahead, gn_slice(right, 0, 3, 20, 1), true, false, false));
    expect_error(h, GN_ERROR_ARGUMENT, "gn_solve_triangular: matrix 0 of 2 is singular (pivot 0 is 0)");
    assert_non_null(gn_solve_triangular(holes, right, true, true, true));
    gn_scope_end(h);
    gn_scope_begin(h);
    gn_array *hole = gn_sub(gn_ones(h, GN_F32, GN_SHAPE(140, 140)), gn_eye(h, GN_F32, 140, 140, 0));
    assert_null(gn_solve_triangular(hole, hole, false, false, false));
    expect_error(h, GN_ERROR_ARGUMENT, "gn_solve_triangular: the matrix is singular (pivot 0 is 0)");
    assert_true(is_on_gpu(gn_solve_triangular(hole, hole, true, false, true)));
    gn_scope_end(h);
    test_close(h);
}

static void test_large(void **state) {
    static const int64_t sizes[] = {1, 2, 3, 17, 31, 32, 33, 64, 65, 127, 128, 129, 131, 161, 260};
    gn_context *g = open_large(1);
    (void)state;
    if (g == NULL) skip();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        gn_scope_begin(g);
        check_large(g, GN_F32, sizes[i]);
        check_large(g, GN_F64, sizes[i]);
        gn_scope_end(g);
    }
    gn_scope_begin(g);
    check_tall(g, gn_randn(g, GN_F32, GN_SHAPE(300, 140)), true, 1.2e-7);
    check_tall(g, turned(gn_randn(g, GN_F32, GN_SHAPE(300, 140))), true, 1.2e-7);
    check_tall(g, gn_cast(gn_mul_s(gn_randn(g, GN_F32, GN_SHAPE(40, 30)), 9.0), GN_I32), true,
               1.2e-7);
    // Independent columns, but close to each other: the condition is 5e6.
    gn_array *steep = gn_mul_s(gn_triu(gn_ones(g, GN_F64, GN_SHAPE(130, 14)), 0), -0.7);
    check_tall(g, gn_add(steep, gn_mul_s(gn_eye(g, GN_F64, 130, 14, 0), 1.1)), true, 2.3e-16);
    // Rank-deficient ones are left to the CPU.
    gn_array *thin = gn_randn(g, GN_F32, GN_SHAPE(150, 2));
    check_tall(g, gn_matmul(thin, gn_transpose(thin)), false, 1.2e-7);
    check_tall(g, gn_zeros(g, GN_F32, GN_SHAPE(40, 40)), false, 1.2e-7);
    // Batches, broadcast and as views; halves and integers.
    gn_array *a = gn_randn(g, GN_F32, GN_SHAPE(2, 40, 3, 40)),
             *b = gn_randn(g, GN_F32, GN_SHAPE(3, 40, 5));
    a = gn_flip(gn_swap_axes(a, 1, 2), -1);
    gn_array *x = gn_solve(a, b);
    assert_true(is_on_gpu(x));
    assert_true(largest(gn_sub(gn_matmul(a, x), b)) < 2e-5 * largest(x));
    assert_true(largest(gn_sub(gn_det(a), gn_recip(gn_det(gn_inv(a))))) <
                1e-2 * largest(gn_det(a)));
    // More right-hand sides than rows.
    gn_array *square = gn_randn(g, GN_F32, GN_SHAPE(150, 150)),
             *wide = gn_randn(g, GN_F32, GN_SHAPE(150, 1200));
    x = gn_solve(square, wide);
    assert_true(is_on_gpu(x));
    assert_true(largest(gn_sub(gn_matmul(square, x), wide)) < 1e-3 * largest(x));
    gn_array *s = gn_add(gn_matmul(a, turned(a)), gn_eye(g, GN_F32, 40, 40, 0)),
             *l = gn_cholesky(s);
    assert_true(largest(gn_sub(gn_matmul(l, turned(l)), s)) < 1e-5 * largest(s));
    const int32_t values[] = {2, 1, 1, 3};
    gn_array *i = gn_array_from(g, GN_I32, GN_SHAPE(2, 2), values);
    const double inverse[] = {0.6, -0.2, -0.2, 0.4};
    gn_array *y = gn_inv(i);
    assert_int_equal(gn_dtype_of(y), GN_F32);
    assert_true(largest(gn_sub(y, gn_array_from(g, GN_F64, GN_SHAPE(2, 2), inverse))) < 1e-6);
    assert_int_equal(gn_dtype_of(gn_cholesky(gn_cast(i, GN_F16))), GN_F16);
    // What has no decomposition.
    gn_array *ones = gn_ones(g, GN_F32, GN_SHAPE(70, 70));
    assert_null(gn_inv(ones));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_inv: the matrix is singular (pivot 1 is 0)");
    expect_values(gn_det(ones), 0.0);
    gn_array *minus =
        gn_sub(gn_eye(g, GN_F32, 140, 140, 0), gn_mul_s(gn_eye(g, GN_F32, 140, 140, 133), 9.0));
    assert_null(gn_cholesky(gn_add(minus, turned(minus))));
    expect_error(
        g, GN_ERROR_ARGUMENT,
        "gn_cholesky: the matrix is not positive definite (its leading 134 x 134 block is not)");
    gn_scope_end(g);
    test_close(g);
}

// The derivative of a QR decomposition where it is decomposed again on the other side.
static void test_qr_sides(void **state) {
    enum { N = 33 };
    double numbers[N * N], want[N * N], have[N * N];
    (void)state;
    if (!test_on_vulkan()) skip();
    for (int large = 0; large < 2; large++) {
        for (int moved = 0; moved < 2; moved++) {
            gn_context *g = open_large(large ? 1 : 4 * N * N);
            gn_scope_begin(g);
            if (!moved)
                assert_int_equal(
                    gn_read(gn_randn(g, GN_F64, GN_SHAPE(N, N)), numbers, sizeof numbers), GN_OK);
            gn_array *a = gn_requires_grad(gn_array_from(g, GN_F64, GN_SHAPE(N, N), numbers), true);
            gn_array *r = NULL, *q = gn_qr(a, &r);
            assert_true(is_on_gpu(q) == large);
            gn_array *loss = gn_add(weighted(g, q), weighted(g, r));
            if (moved) gn_to(a, large ? GN_DEVICE_CPU : GN_DEVICE_GPU);
            assert_int_equal(gn_backward(loss), GN_OK);
            assert_int_equal(gn_read(gn_grad(a), moved ? have : want, sizeof want), GN_OK);
            gn_scope_end(g);
            test_close(g);
        }
        for (int i = 0; i < N * N; i++)
            assert_true(fabs(have[i] - want[i]) <= 1e-8 * (1.0 + fabs(want[i])));
    }
}

static void use_large(gn_context *g) {
    gn_scope_begin(g);
    gn_array *a = gn_randn(g, GN_F32, GN_SHAPE(2, 20, 20)), *r = NULL;
    gn_eval(gn_solve(a, gn_inv(a)));
    gn_eval(gn_det(a));
    gn_eval(gn_cholesky(gn_add(gn_matmul(a, turned(a)), gn_eye(g, GN_F32, 20, 20, 0))));
    gn_eval(gn_qr(a, &r));
    gn_scope_end(g);
}

static void test_large_allocations(void **state) {
    gn_context *g = open_large(1);
    (void)state;
    if (g == NULL) skip();
    test_every_allocation_in(g, use_large);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_numpy),
                                       GN_TEST(test_residuals),
                                       GN_TEST(test_ill_conditioned),
                                       GN_TEST(test_known_values),
                                       GN_TEST(test_nearly_equal_values),
                                       GN_TEST(test_general),
                                       GN_TEST(test_same_bits),
                                       GN_TEST(test_half_and_integers),
                                       GN_TEST(test_nan),
                                       GN_TEST(test_errors),
                                       cmocka_unit_test(test_allocations),
                                       GN_TEST(test_gradients),
                                       GN_TEST(test_singular_gradient),
                                       GN_TEST(test_no_gradient),
                                       GN_TEST(test_triangles), GN_TEST(test_complex_systems),
                                       cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_qr_sides),
                                       cmocka_unit_test(test_large_allocations)};
    return test_run(tests);
}
