// Derivatives, integrals, angles and polynomials of samples, and windows: against NumPy, in all dtypes; their derivatives; what
// they refuse.

#include "array_cases.h"

// How far the roots are from those that are wanted, in any order, over the largest; with 1 added.
static gn_array *roots_apart(gn_array *p, gn_array *want) {
    gn_array *y = gn_roots(p), *most = gn_add_s(gn_max(gn_abs(want), GN_ALL), 1e-300);
    const gn_dtype t = gn_dtype_of(p);
    if (gn_dtype_of(y) != (t == GN_F64 || t == GN_C128 ? GN_C128 : GN_C64) || gn_size(y) != gn_size(want)) return NULL;
    if (gn_size(y) == 0) return gn_error_clear(gn_context_of(p)), gn_ones(gn_context_of(p), GN_F64, GN_SHAPE());
    gn_array *d = gn_abs(gn_sub(gn_expand_dims(gn_cast(y, GN_C128), 1), want));
    d = gn_add(gn_max(gn_min(d, 1), GN_ALL), gn_max(gn_min(d, 0), GN_ALL));
    return gn_add_s(gn_div(d, most), 1);
}

// Fills c->out; false for a name that is not known.
static bool apply(array_case *c) {
    typedef gn_array *(*window_fn)(gn_context *, gn_dtype, int64_t);
    static const window_fn windows[] = {gn_hanning, gn_hamming, gn_blackman};
    gn_array *a = c->in[0], *b = c->n_in > 1 ? c->in[1] : NULL;
    const int64_t *p = c->p;
    const int axis = (int)p[0];
    c->n_out = 1;
    if (is(c, "gradient")) c->out[0] = gn_gradient(a, b, c->x[0], axis);
    else if (is(c, "trapezoid")) c->out[0] = gn_trapezoid(a, b, c->x[0], axis);
    else if (is(c, "unwrap")) c->out[0] = gn_unwrap(a, axis);
    else if (is(c, "polyfit")) c->out[0] = gn_polyfit(a, b, axis);
    else if (is(c, "polyval")) c->out[0] = gn_polyval(a, b);
    else if (is(c, "roots")) c->out[0] = roots_apart(a, b);
    else if (is(c, "vander")) c->out[0] = gn_vander(a, p[0], p[1] != 0);
    else if (is(c, "window")) c->out[0] = windows[p[0]](c->g, (gn_dtype)p[1], p[2]);
    else return false;
    return true;
}

static void test_like_numpy(void **state) {
    assert_true(test_array_cases((gn_context *)*state, "curves", apply, 24) > 50);
}

// ---- derivatives

static gn_array *points_of(gn_array *a) { return gn_cumsum(gn_add_s(gn_square(gn_at(a, 1)), 0.5), 0); }
static gn_array *grad_gradient(gn_array *a) {
    return gn_mul(gn_gradient(gn_square(a), points_of(a), 1, 1), gn_gradient(a, NULL, 0.5, 0));
}
static gn_array *grad_trapezoid(gn_array *a) {
    return gn_add(gn_trapezoid(gn_square(a), points_of(a), 1, 1), gn_sum(gn_trapezoid(a, gn_exp(a), 0, 0), GN_ALL));
}
static gn_array *grad_unwrap(gn_array *a) { return gn_unwrap(gn_mul_s(a, 9), 1); }
static gn_array *grad_polynomials(gn_array *a) {
    gn_array *c = gn_polyfit(points_of(a), gn_transpose(a), 2);
    return gn_add(gn_sum(gn_square(c), GN_ALL), gn_polyval(gn_at(a, 0), gn_vander(gn_at(a, 2), 3, false)));
}

static gn_array *grad_roots(gn_array *a) {
    gn_array *y = gn_roots(gn_concat((gn_array *[]){gn_at(a, 1), gn_zeros(gn_context_of(a), GN_F64, GN_SHAPE(1))}, 2, 0));
    return gn_add(gn_sum(gn_square(gn_real(y)), GN_ALL), gn_sum(gn_mul_s(gn_abs(gn_slice(y, 0, 0, 2, 1)), 0.3), GN_ALL));
}

static void test_gradients(void **state) {
    static const struct {
        const char *name;
        test_function fn;
    } own[] = {{"gradient", grad_gradient}, {"trapezoid", grad_trapezoid}, {"unwrap", grad_unwrap}, {"polynomials", grad_polynomials}, {"roots", grad_roots}};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) test_derivatives((gn_context *)*state, own[i].name, own[i].fn);
}

static void test_refused(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(3)), *m = gn_ones(g, GN_F32, GN_SHAPE(3, 1));
    assert_null(gn_gradient(m, NULL, 1, 1));
    expect_error(g, GN_ERROR_SHAPE, "gn_gradient: axis 1 of (3,1) has not 2 elements");
    assert_null(gn_gradient(a, m, 1, 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_gradient: points (3,1) for axis 0 of (3,)");
    assert_null(gn_trapezoid(m, gn_ones(g, GN_F32, GN_SHAPE(2)), 1, 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_trapezoid: points (2,) for axis 0 of (3,1)");
    assert_null(gn_polyfit(m, a, 1));
    expect_error(g, GN_ERROR_SHAPE, "gn_polyfit: points (3,1) are not 1-d");
    assert_null(gn_polyfit(a, gn_ones(g, GN_F32, GN_SHAPE(4)), 1));
    expect_error(g, GN_ERROR_SHAPE, "gn_polyfit: values (4,) for points (3,)");
    assert_null(gn_polyfit(a, a, -1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_polyfit: degree -1");
    assert_null(gn_polyval(m, a));
    expect_error(g, GN_ERROR_SHAPE, "gn_polyval: coefficients (3,1) are not 1-d");
    assert_null(gn_roots(m));
    expect_error(g, GN_ERROR_SHAPE, "gn_roots: coefficients (3,1) are not 1-d");
    assert_null(gn_roots(gn_mul_s(a, (double)NAN)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_roots: the coefficients, over the first that is not 0, hold NaN or infinity");
    assert_int_equal(gn_dtype_of(gn_roots(gn_zeros(g, GN_U8, GN_SHAPE(4)))), GN_C64);
    assert_int_equal(gn_size(gn_roots(gn_zeros(g, GN_F64, GN_SHAPE(4)))), 0);
    assert_int_equal(gn_size(gn_roots(gn_index(a, ":1"))), 0);
    const double cubic[] = {0, 2, -12, 22, -12, 0}; // 2 x (x - 1) (x - 2) (x - 3)
    gn_array *found = gn_roots(gn_array_from(g, GN_F64, GN_SHAPE(6), cubic));
    expect_values(gn_imag(found), 0, 0, 0, 0);
    expect_values(gn_round(gn_mul_s(gn_sort(gn_real(found), 0, false), 1e10)), 0, 1e10, 2e10, 3e10);
    assert_null(gn_hanning(g, GN_I32, 3));
    expect_error(g, GN_ERROR_DTYPE, "gn_hanning: int32 is neither float32 nor float64");
    assert_null(gn_hamming(g, GN_F32, -1));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    // Points that are all 0 fix the constant alone; integers are sampled as float32.
    expect_values(gn_polyfit(gn_zeros(g, GN_F32, GN_SHAPE(4)), gn_full(g, GN_I32, GN_SHAPE(4), 3), 1), 0, 3);
    assert_int_equal(gn_dtype_of(gn_gradient(gn_full(g, GN_U8, GN_SHAPE(2), 3), NULL, 1, 0)), GN_F32);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_like_numpy), GN_TEST(test_gradients), GN_TEST(test_refused)};
    return test_run(tests);
}
