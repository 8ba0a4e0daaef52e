// Arrangements, statistics and products that are made of other calls: against NumPy, in all dtypes, of views, empty arrays and
// special values; their derivatives; what they refuse.

#include "array_cases.h"

// As make_cases.py counts them.
static const gn_norm_order orders[] = {GN_NORM_FROBENIUS, GN_NORM_NUCLEAR, GN_NORM_1,   GN_NORM_MINUS_1,
                                       GN_NORM_2,         GN_NORM_MINUS_2, GN_NORM_INF, GN_NORM_MINUS_INF};

// Fills c->out; false for a name that is not known.
static bool apply(array_case *c) {
    gn_array *a = c->in[0];
    const int64_t *p = c->p;
    const int i0 = (int)p[0], i1 = (int)p[1];
    c->n_out = 1;
    if (is(c, "roll")) c->out[0] = gn_roll(a, p[0], i1);
    else if (is(c, "roll_flat")) c->out[0] = gn_roll(a, p[0], GN_ALL);
    else if (is(c, "roll_two")) c->out[0] = gn_roll(a, p[0], GN_AXES(0, -1));
    else if (is(c, "rot90")) c->out[0] = gn_rot90(a, i0, i1, (int)p[2]);
    else if (is(c, "diag")) c->out[0] = gn_diag(a, p[0]);
    else if (is(c, "masked_fill")) c->out[0] = gn_masked_fill(a, c->in[1], (double)p[0]);
    else if (is(c, "nanargmax")) c->out[0] = gn_nanargmax(a, i0 < 0 ? GN_ALL : i0);
    else if (is(c, "nanargmin")) c->out[0] = gn_nanargmin(a, i0 < 0 ? GN_ALL : i0);
    else if (is(c, "cond")) c->out[0] = gn_cond(a);
    else if (is(c, "tile")) c->out[0] = gn_tile(a, gn_shape_from(c->n_p, p));
    else if (is(c, "repeat")) c->out[0] = gn_repeat(a, p[0], i1);
    else if (is(c, "repeat_flat")) c->out[0] = gn_repeat(a, p[0], GN_ALL);
    else if (is(c, "pad")) c->out[0] = gn_pad(a, p + 2, c->n_p - 2, (gn_pad_mode)i0, (double)p[1]);
    else if (is(c, "diff")) c->out[0] = gn_diff(a, i0, i1);
    else if (is(c, "window")) c->out[0] = gn_sliding_window(a, p[0], i1);
    else if (is(c, "split")) c->n_out = i0, gn_split(a, i0, i1, c->out);
    else if (is(c, "array_split")) c->n_out = i0, gn_array_split(a, i0, i1, c->out);
    else if (is(c, "unstack")) c->n_out = i1, gn_unstack(a, i0, c->out, i1);
    else if (is(c, "meshgrid")) c->n_out = c->n_in, gn_meshgrid(c->in, c->n_in, i0 != 0, c->out);
    else if (is(c, "nansum")) c->out[0] = gn_nansum(a, axes_of_bits((uint32_t)p[0]));
    else if (is(c, "nanprod")) c->out[0] = gn_nanprod(a, axes_of_bits((uint32_t)p[0]));
    else if (is(c, "nanmin")) c->out[0] = gn_nanmin(a, axes_of_bits((uint32_t)p[0]));
    else if (is(c, "nanmax")) c->out[0] = gn_nanmax(a, axes_of_bits((uint32_t)p[0]));
    else if (is(c, "nanmean")) c->out[0] = gn_nanmean(a, axes_of_bits((uint32_t)p[0]));
    else if (is(c, "nanvar")) c->out[0] = gn_nanvar(a, axes_of_bits((uint32_t)p[0]), i1);
    else if (is(c, "nanstd")) c->out[0] = gn_nanstd(a, axes_of_bits((uint32_t)p[0]), i1);
    else if (is(c, "ptp")) c->out[0] = gn_ptp(a, axes_of_bits((uint32_t)p[0]));
    else if (is(c, "average")) c->out[0] = gn_average(a, c->in[1], axes_of_bits((uint32_t)p[0]));
    else if (is(c, "cov")) c->out[0] = gn_cov(a, i0);
    else if (is(c, "corrcoef")) c->out[0] = gn_corrcoef(a);
    else if (is(c, "isclose")) c->out[0] = gn_isclose(a, c->in[1], c->x[0], c->x[1], i0 != 0);
    else if (is(c, "nan_to_num")) c->out[0] = gn_nan_to_num(a, c->x[0], c->x[1], c->x[2]);
    else if (is(c, "clip")) c->out[0] = gn_clip(a, i0 & 1 ? c->in[1] : NULL, i0 & 2 ? c->in[i0 - 1] : NULL);
    else if (is(c, "signbit")) c->out[0] = gn_signbit(a);
    else if (is(c, "copysign")) c->out[0] = gn_copysign(a, c->in[1]);
    else if (is(c, "sinc")) c->out[0] = gn_sinc(a);
    else if (is(c, "logaddexp")) c->out[0] = gn_logaddexp(a, c->in[1]);
    else if (is(c, "logspace")) c->out[0] = gn_logspace(c->g, (gn_dtype)i0, c->x[0], c->x[1], p[1], c->x[2]);
    else if (is(c, "kron")) c->out[0] = gn_kron(a, c->in[1]);
    else if (is(c, "cross")) c->out[0] = gn_cross(a, c->in[1], i0);
    else if (is(c, "vector_norm")) c->out[0] = gn_vector_norm(a, axes_of_bits((uint32_t)p[0]), c->x[0]);
    else if (is(c, "matrix_norm")) c->out[0] = gn_matrix_norm(a, orders[i0]);
    else if (is(c, "expm")) c->out[0] = gn_expm(a);
    else if (is(c, "matrix_power")) c->out[0] = gn_matrix_power(a, p[0]);
    else if (is(c, "slogdet")) c->n_out = 2, c->out[0] = gn_slogdet(a, &c->out[1]);
    else if (is(c, "eigvalsh")) c->out[0] = gn_eigvalsh(a);
    else if (is(c, "svdvals")) c->out[0] = gn_svdvals(a);
    else if (is(c, "pinv")) c->out[0] = gn_pinv(a, c->x[0]);
    else if (is(c, "matrix_rank")) c->out[0] = gn_matrix_rank(a, c->x[0]);
    else if (is(c, "lstsq")) c->out[0] = gn_lstsq(a, c->in[1], c->x[0], NULL, NULL);
    else return false;
    return true;
}

static void test_like_numpy(void **state) {
    assert_true(test_array_cases((gn_context *)*state, "arrays", apply, 12) > 50);
}

// ---- derivatives

typedef struct arrangement {
    const char *name;
    gn_array *(*fn)(gn_array *a);
} arrangement;

static gn_array *grad_roll(gn_array *a) { return gn_roll(gn_roll(a, 2, 1), -4, GN_ALL); }
static gn_array *grad_tile(gn_array *a) { return gn_tile(a, GN_SHAPE(2, 1, 3)); }
static gn_array *grad_repeat(gn_array *a) { return gn_repeat(gn_repeat(a, 2, 0), 3, GN_ALL); }
static gn_array *pad(gn_array *a, gn_pad_mode mode) {
    const int64_t widths[] = {1, 0, 2, 7};
    return gn_pad(a, widths, 4, mode, 2.5);
}
static gn_array *grad_constant(gn_array *a) { return pad(a, GN_PAD_CONSTANT); }
static gn_array *grad_edge(gn_array *a) { return pad(a, GN_PAD_EDGE); }
static gn_array *grad_reflect(gn_array *a) { return pad(a, GN_PAD_REFLECT); }
static gn_array *grad_symmetric(gn_array *a) { return pad(a, GN_PAD_SYMMETRIC); }
static gn_array *grad_wrap(gn_array *a) { return pad(a, GN_PAD_WRAP); }
static gn_array *grad_places(gn_array *a) {
    gn_array *turned = gn_rot90(a, 1, 0, 1), *diagonal = gn_diag(gn_at(a, 1), -2), *fill = gn_masked_fill(a, gn_gt_s(a, 0.2), 0.5);
    return gn_add(gn_sum(gn_mul(turned, gn_square(gn_transpose(a))), GN_ALL),
                  gn_add(gn_sum(gn_square(diagonal), GN_ALL), gn_mul(fill, gn_sum(gn_diag(a, 1), GN_ALL))));
}
static gn_array *grad_cond(gn_array *a) { return gn_cond(a); }
static gn_array *grad_diff(gn_array *a) { return gn_diff(a, 2, 1); }
static gn_array *grad_window(gn_array *a) { return gn_sliding_window(gn_sliding_window(a, 3, -1), 2, 0); }
static gn_array *grad_parts(gn_array *a) {
    gn_array *part[3], *row[3], *grid[2];
    gn_array_split(a, 2, 1, part);
    gn_unstack(a, 0, row, 3);
    gn_meshgrid(row, 2, false, grid);
    return gn_add(gn_mul(gn_sum(gn_square(part[0]), 1), gn_sum(part[1], 1)),
                  gn_sum(gn_mul(gn_sin(grid[0]), gn_mul(grid[1], row[2])), GN_ALL));
}

static gn_array *grad_nan(gn_array *a) {
    gn_array *x = gn_where(gn_lt_s(a, -0.7), gn_full_like(a, NAN), a);
    gn_array *y = gn_add(gn_nansum(x, 1), gn_mul(gn_nanmean(x, 1), gn_nanvar(x, 1, 1)));
    return gn_add(gn_add(y, gn_nanstd(x, 1, 0)), gn_mul(gn_nanmax(x, 1), gn_mul(gn_nanmin(x, 1), gn_nanprod(x, 1))));
}
static gn_array *grad_average(gn_array *a) { return gn_average(gn_square(a), gn_add_s(a, 3), GN_KEEP(1)); }
static gn_array *grad_cov(gn_array *a) { return gn_add(gn_cov(a, 1), gn_tril(gn_corrcoef(a), -1)); }
static gn_array *grad_ptp(gn_array *a) { return gn_ptp(a, 0); }
static gn_array *grad_clip(gn_array *a) {
    return gn_nan_to_num(gn_clip(a, gn_mul_s(gn_flip(a, 1), 0.4), gn_add_s(gn_flip(a, 0), 0.31)), 0, 0, 0);
}
static gn_array *grad_elements(gn_array *a) {
    return gn_add(gn_logaddexp(a, gn_flip(a, 0)), gn_mul(gn_sinc(gn_mul_s(a, 2)), gn_copysign(a, gn_flip(a, 1))));
}
static gn_array *grad_kron(gn_array *a) { return gn_kron(a, gn_slice(a, 0, 0, 2, 1)); }
static gn_array *grad_cross(gn_array *a) { return gn_cross(a, gn_flip(a, 1), 0); }
static gn_array *grad_norms(gn_array *a) {
    gn_array *y = gn_add(gn_vector_norm(a, 0, 3), gn_vector_norm(a, 0, (double)INFINITY));
    return gn_add(gn_add(y, gn_vector_norm(a, GN_ALL, 1)), gn_matrix_norm(a, GN_NORM_1));
}
static gn_array *grad_singular(gn_array *a) { return gn_add(gn_matrix_norm(a, GN_NORM_NUCLEAR), gn_svdvals(a)); }
static gn_array *grad_pinv(gn_array *a) { return gn_pinv(a, -1); }
static gn_array *grad_lstsq(gn_array *a) { return gn_lstsq(gn_transpose(a), gn_transpose(gn_flip(a, 1)), -1, NULL, NULL); }
static gn_array *grad_expm(gn_array *a) { // of a batch, one of which is squared
    gn_array *m = gn_slice(a, 1, 0, 3, 1), *pair[2] = {m, gn_mul_s(m, 6)};
    return gn_add(gn_sum(gn_expm(gn_transpose(m)), GN_ALL), gn_mul_s(gn_expm(gn_stack(pair, 2, 0)), 0.1));
}
static gn_array *grad_power(gn_array *a) {
    gn_array *m = gn_slice(a, 1, 0, 3, 1), *log = NULL;
    gn_slogdet(m, &log);
    return gn_add(gn_matrix_power(m, 3), log);
}

static const arrangement arrangements[] = {
    {"nan", grad_nan},         {"average", grad_average},     {"cov", grad_cov},       {"ptp", grad_ptp},
    {"clip", grad_clip},       {"elements", grad_elements},   {"kron", grad_kron},     {"cross", grad_cross},
    {"norms", grad_norms},     {"singular", grad_singular},   {"pinv", grad_pinv},     {"lstsq", grad_lstsq},
    {"power", grad_power}, {"expm", grad_expm},     {"places", grad_places},       {"cond", grad_cond},
    {"roll", grad_roll},       {"tile", grad_tile},           {"repeat", grad_repeat}, {"constant", grad_constant},
    {"edge", grad_edge},       {"reflect", grad_reflect},     {"symmetric", grad_symmetric}, {"wrap", grad_wrap},
    {"diff", grad_diff},       {"window", grad_window},       {"parts", grad_parts},
};

static void test_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    for (size_t i = 0; i < sizeof arrangements / sizeof arrangements[0]; i++) test_derivatives(g, arrangements[i].name, arrangements[i].fn);
    // Of complex numbers what is taken twice counts twice.
    gn_array *re = gn_requires_grad(gn_full(g, GN_F32, GN_SHAPE(3), 2), true), *im = gn_requires_grad(gn_copy(gn_detach(re)), true);
    const int64_t one = 1;
    gn_array *z = gn_pad(gn_complex(re, im), &one, 1, GN_PAD_EDGE, 0);
    assert_int_equal(gn_backward(gn_sum(gn_add(gn_real(z), gn_mul_s(gn_imag(z), 3)), GN_ALL)), GN_OK);
    expect_values(gn_grad(re), 2, 1, 2);
    expect_values(gn_grad(im), 6, 3, 6);
}

static void test_values(void **state) {
    gn_context *g = (gn_context *)*state;
    const float data[] = {1, NAN, -INFINITY, INFINITY, 0};
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(5), data), *b = gn_cast(a, GN_F64);
    assert_false(gn_array_equal(a, b, false));
    assert_true(gn_array_equal(a, b, true));
    assert_false(gn_array_equal(a, gn_reshape(a, GN_SHAPE(5, 1)), true));
    assert_true(gn_allclose(a, gn_add_s(a, 1e-6), 1e-5, 1e-5, true));
    assert_false(gn_allclose(a, gn_add_s(a, 1e-3), 1e-5, 1e-5, true));
    assert_false(gn_allclose(a, b, 1, 1, false));
    assert_true(gn_array_equal(gn_zeros(g, GN_F32, GN_SHAPE(0)), gn_zeros(g, GN_I32, GN_SHAPE(0)), false));
    assert_int_equal(gn_status_get(g), GN_OK);
    assert_false(gn_allclose(a, NULL, 1, 1, false));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_allclose: array argument 2 is NULL");
    assert_false(gn_allclose(a, gn_ones(g, GN_F32, GN_SHAPE(4)), 1, 1, false));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_average(a, gn_ones(g, GN_F32, GN_SHAPE(4)), 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_average: weights (4,) for (5,): they have its shape, or that of the one axis");
    assert_null(gn_expm(a));
    expect_error(g, GN_ERROR_SHAPE, "gn_expm: (5,) is not a matrix or a batch of matrices");
    const double spin[] = {0, -3.0, 3.0, 0, NAN, 0, 0, 1, 1e4, 0, 0, 1};
    gn_array *turn = gn_expm(gn_array_from(g, GN_F64, GN_SHAPE(3, 2, 2), spin)), *cosine = gn_cos(gn_scalar(g, GN_F64, 3));
    assert_true(gn_allclose(gn_index(turn, "0, 0, 0"), cosine, 1e-14, 0, false) && gn_allclose(gn_index(turn, "0, 1, 1"), cosine, 1e-14, 0, false));
    assert_true(isnan(gn_item(gn_index(turn, "1, 0, 0"))) && !isfinite(gn_item(gn_index(turn, "2, 0, 0"))));
    expect_values(gn_expm(gn_zeros(g, GN_U8, GN_SHAPE(2, 2))), 1, 0, 0, 1);
    assert_null(gn_cross(a, a, 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_cross: axis 0 of (5,) or (5,) has not 3 elements");
    assert_null(gn_ptp(gn_eq(a, a), 0));
    expect_error(g, GN_ERROR_DTYPE, "gn_ptp: bool minus bool is not defined; use gn_xor or gn_logical_xor");
    assert_null(gn_lstsq(gn_ones(g, GN_F32, GN_SHAPE(2, 2)), a, 0, NULL, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_lstsq: (2,2) and (5,): the rows are not as many");
    assert_null(gn_matrix_norm(a, GN_NORM_1));
    expect_error(g, GN_ERROR_SHAPE, "gn_matrix_norm: (5,) is not a matrix or a batch of matrices");
    assert_null(gn_cov(gn_ones(g, GN_F32, GN_SHAPE(2, 2, 2)), 1));
    expect_error(g, GN_ERROR_SHAPE, "gn_cov: (2,2,2) has more than two axes");
    // Of two equal infinities the gradients are halves.
    gn_array *x = gn_requires_grad(gn_copy(gn_slice(a, 0, 3, 4, 1)), true), *y = gn_requires_grad(gn_copy(gn_detach(x)), true);
    assert_int_equal(gn_backward(gn_sum(gn_logaddexp(x, y), GN_ALL)), GN_OK);
    expect_values(gn_grad(x), 0.5);
    expect_values(gn_grad(y), 0.5);
    // Of equal numbers the second derivatives are those of others, p (1 - p).
    const double equal[] = {0, -3, 1}, third[] = {0, -3, 0};
    gn_array *d;
    x = gn_requires_grad(gn_array_from(g, GN_F64, GN_SHAPE(3), equal), true);
    y = gn_array_from(g, GN_F64, GN_SHAPE(3), third);
    assert_int_equal(gn_gradients(gn_sum(gn_logaddexp(x, y), GN_ALL), &x, 1, true, &d), GN_OK);
    assert_int_equal(gn_gradients(gn_sum(d, GN_ALL), &x, 1, false, &d), GN_OK);
    expect_values(d, 0.25, 0.25, 0.19661193324148185);
    gn_array *zeros = gn_requires_grad(gn_zeros(g, GN_F64, GN_SHAPE(2)), true);
    assert_int_equal(gn_gradients(gn_at(gn_logcumsumexp(zeros, 0), 1), &zeros, 1, true, &d), GN_OK);
    assert_int_equal(gn_gradients(gn_at(d, 0), &zeros, 1, false, &d), GN_OK);
    expect_values(d, 0.25, -0.25);
    const int8_t least[] = {-128, 127}; // the first has no magnitude in int8
    b = gn_array_from(g, GN_I8, GN_SHAPE(2), least);
    expect_values(gn_vector_norm(b, 0, (double)INFINITY), 128);
    expect_values(gn_vector_norm(b, 0, 1), 255);
    expect_values(gn_vector_norm(b, gn_axes_from(0, NULL), 1), 128, 127);
    expect_values(gn_vector_norm(b, 0, 0), 2);
    assert_int_equal(gn_dtype_of(gn_vector_norm(b, 0, 0)), GN_F32);
    // Powers that float32 has no room for, where the norm and its gradient (x / y)^(order - 1) do fit.
    const double powers[] = {3, 4, -2, 2.5, -3}, sizes[] = {1e30, 1e-30, 1e12, 3e-13, 3e37, 1};
    for (int i = 0; i < 30; i++) {
        const double order = powers[i % 5], size = sizes[i / 5];
        const float row[] = {(float)size, (float)(-3 * size), (float)(2 * size)};
        double sum = 0;
        for (int k = 0; k < 3; k++) sum += pow(fabs(row[k] / size), order);
        const double norm = size * pow(sum, 1 / order);
        gn_array *v = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(1, 3), row), true), *dv;
        gn_array *of = gn_vector_norm(v, i % 2 ? GN_ALL : GN_KEEP(1), order);
        assert_int_equal(gn_rank(of), i % 2 ? 0 : 2);
        assert_true(fabs(gn_item(of) / norm - 1) < 5e-7);
        assert_int_equal(gn_gradients(gn_sum(of, GN_ALL), &v, 1, false, &dv), GN_OK);
        for (int k = 0; k < 3; k++) {
            const double slope = (row[k] < 0 ? -1 : 1) * pow(fabs(row[k]) / norm, order - 1);
            assert_true(fabs(gn_item(gn_at(gn_reshape(dv, GN_SHAPE(3)), k)) - slope) < 1e-6 * fabs(slope));
        }
    }
    const float ends[] = {0, 0, (float)INFINITY, 1, (float)NAN, 1};
    gn_array *v = gn_array_from(g, GN_F32, GN_SHAPE(3, 2), ends);
    expect_values(gn_vector_norm(v, 1, 3), 0, (double)INFINITY, (double)NAN);
    expect_values(gn_vector_norm(v, 1, -2), 0, 1, (double)NAN);
    const int32_t whole[] = {2, 1, 1, 3};
    const double thirds[] = {4.0 / 3.0, 7.0 / 3.0}; // of the solution 1 / 3, 2 / 3
    b = gn_lstsq(gn_array_from(g, GN_I32, GN_SHAPE(2, 2), whole), gn_array_from(g, GN_F64, GN_SHAPE(2), thirds), -1, NULL, NULL);
    assert_int_equal(gn_dtype_of(b), GN_F64);
    assert_true(fabs(gn_item(gn_index(b, "0")) - 1.0 / 3.0) < 1e-14 && fabs(gn_item(gn_index(b, "1")) - 2.0 / 3.0) < 1e-14);
    // Halves hold the root of a variance that they do not.
    const float far[] = {1000, -1000, 1000, -1000};
    b = gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(2, 2), far), GN_F16);
    expect_values(gn_std(b, 1, 0), 1000, 1000);
    expect_values(gn_std(gn_requires_grad(gn_copy(b), true), 1, 0), 1000, 1000);
    expect_values(gn_nanstd(b, 1, 0), 1000, 1000);
    expect_values(gn_var(b, 1, 0), (double)INFINITY, (double)INFINITY);
    gn_array *halves = gn_cast(a, GN_BF16);
    expect_values(gn_nansum(gn_slice(halves, 0, 0, 2, 1), 0), 1);
    expect_values(gn_nan_to_num(halves, 3, NAN, NAN), 1, 3, -3.3895313892515355e38, 3.3895313892515355e38, 0);
    expect_values(gn_signbit(gn_neg(halves)), 1, test_on_vulkan() ? gn_item(gn_signbit(gn_index(gn_neg(halves), "1"))) : 1, 0, 1, 1);
}

// ---- what they share and what they refuse

// Of sin(pi x) / (pi x): the value and its first two derivatives, by their series or divided by x.
static void sinc_of(long double x, long double *s) {
    const long double p = 3.14159265358979323846264338327950288L;
    s[0] = s[1] = s[2] = 0;
    if (fabsl(x) > 0.4L) {
        s[0] = sinl(p * x) / (p * x);
        s[1] = (cosl(p * x) - s[0]) / x;
        s[2] = -p * p * s[0] - 2 * s[1] / x;
        return;
    }
    long double term = 1; // (-1)^k p^(2k) x^(2k-2) / (2k+1)!, of k = 0 times x^2
    s[0] = 1;
    for (int k = 1; k < 16; k++) {
        term *= -p * p / (2 * k * (2 * k + 1)) * (k > 1 ? x * x : 1);
        s[0] += term * x * x;
        s[1] += 2 * k * term * x;
        s[2] += 2 * k * (2 * k - 1) * term;
    }
}

static void test_sinc_derivatives(void **state) {
    gn_context *g = (gn_context *)*state;
    const double at[] = {0, -1e-30, 1e-8, 1e-4, -1e-3, 0.01, 0.1, -0.2, 0.249, 0.25, -0.3, 0.5, 0.9, -1, 1.7, 3.25};
    enum { N = sizeof at / sizeof *at };
    for (int wide = 0; wide < 2; wide++) {
        gn_array *x = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(N), at), wide ? GN_F64 : GN_F32), *y[3], *back;
        double have[N], exact[N];
        back = gn_cast(x, GN_F64);
        gn_read(back, exact, sizeof exact);
        gn_requires_grad(x, true);
        y[0] = gn_sinc(x);
        gn_gradients(gn_sum(y[0], GN_ALL), &x, 1, true, &y[1]);
        gn_gradients(gn_sum(y[1], GN_ALL), &x, 1, false, &y[2]);
        assert_int_equal(gn_status_get(g), GN_OK);
        for (int d = 0; d < 3; d++) {
            gn_read(gn_cast(y[d], GN_F64), have, sizeof have);
            for (int i = 0; i < N; i++) {
                long double want[3];
                sinc_of((long double)exact[i], want);
                const double error = fabs(have[i] - (double)want[d]), allowed = (d == 2 ? 32 : 8) * (wide ? 2.3e-16 : 1.2e-7);
                if (!(error <= allowed * (1 + fabs((double)want[d])))) {
                    print_error("derivative %d at %g: %.9g, not %.9g\n", d, exact[i], have[i], (double)want[d]);
                    fail();
                }
            }
        }
    }
}

static void test_views(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_eval(gn_reshape(gn_arange(g, GN_F32, 0, 6, 1), GN_SHAPE(2, 3))), *part[3];
    assert_int_equal(gn_split(a, 3, 1, part), GN_OK);
    gn_array *windows = gn_sliding_window(a, 2, 1), *rolled = gn_roll(a, 0, 0), *tiled = gn_tile(a, GN_SHAPE(1));
    gn_array *repeated = gn_repeat(a, 1, 0), *padded = gn_pad(a, (const int64_t[]){0}, 1, GN_PAD_EDGE, 0);
    const float values[] = {-1, -2};
    assert_int_equal(gn_write(part[1], values, sizeof values), GN_OK);
    expect_values(a, 0, -1, 2, 3, -2, 5);
    expect_values(windows, 0, -1, -1, 2, 3, -2, -2, 5);
    expect_values(rolled, 0, 1, 2, 3, 4, 5);
    expect_values(tiled, 0, 1, 2, 3, 4, 5);
    expect_values(repeated, 0, 1, 2, 3, 4, 5);
    expect_values(padded, 0, 1, 2, 3, 4, 5);
    float eight[8] = {0};
    assert_int_equal(gn_write(windows, eight, sizeof eight), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_write: elements of this array share memory (gn_sliding_window); write to a gn_copy");
    assert_int_equal(gn_write(gn_index(windows, "0, :, ::-1"), eight, 16), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    const float four[] = {1, 2, 3, 4}; // one window of each row
    assert_int_equal(gn_write(gn_index(windows, ":, 0"), four, sizeof four), GN_OK);
    assert_int_equal(gn_write(gn_flip(gn_transpose(a), GN_ALL), eight, 24), GN_OK);
    expect_values(gn_sum(windows, GN_ALL), 0);
}

// What is no view has memory of its own, also where nothing is to be done or a single element is repeated.
static void test_memory_of_their_own(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_eval(gn_full(g, GN_F32, GN_SHAPE(1, 1), 7)), *batch = gn_ones(g, GN_F32, GN_SHAPE(2, 1, 1));
    gn_array *made[] = {gn_tile(a, GN_SHAPE(2, 1)), gn_tile(gn_ravel(a), GN_SHAPE(2)), gn_repeat(a, 2, 1), gn_repeat(a, 2, GN_ALL),
                        gn_diff(a, 0, 0), gn_matrix_power(a, 1), gn_matrix_power(batch, 0)};
    const float values[] = {5, 6};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        assert_int_equal(gn_write(made[i], values, gn_bytes(made[i])), GN_OK);
        expect_values(a, 7);
        if (gn_size(made[i]) == 2) expect_values(made[i], 5, 6);
        if (gn_size(made[i]) == 1) expect_values(made[i], 5);
    }
    assert_int_equal(gn_write(a, values, 4), GN_OK);
    expect_values(made[2], 5, 6);
    expect_values(gn_sum(made[4], GN_ALL), 5);
}

// The parts are the caller's where no scope is open.
static void test_ownership(void **state) {
    gn_array *part[2];
    (void)state;
    gn_context *h = test_open();
    gn_array *b = gn_arange(h, GN_F32, 0, 4, 1);
    assert_int_equal(gn_unstack(b, 0, part, 2), GN_ERROR_SHAPE);
    expect_error(h, GN_ERROR_SHAPE, "gn_unstack: axis 0 of (4,) is not 2 arrays");
    assert_int_equal(gn_split(b, 2, 0, part), GN_OK);
    gn_release(b);
    expect_values(part[1], 2, 3);
    gn_release(part[0]);
    gn_release(part[1]);
    test_close(h);
}

static void test_refusals(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(2, 3)), *none = gn_ones(g, GN_F32, GN_SHAPE(2, 0)), *part[4] = {a, a, a, a};
    const int64_t widths[] = {1, -2, 0, 0, 0, 0};
    assert_null(gn_roll(a, 1, 2));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_roll: axis 2 is out of bounds for array of rank 2");
    assert_null(gn_tile(a, GN_SHAPE(2, -1)));
    expect_error(g, GN_ERROR_SHAPE, "gn_tile: negative dimension in (2,-1)");
    assert_null(gn_repeat(a, -1, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_repeat: -1 repetitions");
    assert_null(gn_repeat(a, 2, GN_AXES(0, 1)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_repeat: one axis is asked for, such as 0 or -1, not GN_ALL or a set");
    assert_null(gn_repeat(a, INT64_MAX, 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_repeat: (9223372036854775807,3) has too many elements");
    assert_null(gn_pad(a, widths, 3, GN_PAD_CONSTANT, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_pad: 3 widths for rank 2: one, two, or two for each axis");
    assert_null(gn_pad(a, widths, 2, GN_PAD_CONSTANT, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_pad: width -2 is negative");
    assert_null(gn_pad(a, widths, 1, (gn_pad_mode)5, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_pad: 5 is not a gn_pad_mode");
    assert_null(gn_pad(none, widths, 1, GN_PAD_WRAP, 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_pad: axis 1 is empty: around it there is only GN_PAD_CONSTANT");
    assert_null(gn_pad(gn_cast(a, GN_U8), widths, 1, GN_PAD_CONSTANT, 256));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_pad: 256 is outside of uint8");
    assert_int_equal(gn_split(a, 2, 1, part), GN_ERROR_SHAPE);
    expect_error(g, GN_ERROR_SHAPE, "gn_split: axis 1 of (2,3) cannot be cut into 2 equal parts");
    assert_true(part[0] == NULL && part[1] == NULL && part[2] == a);
    assert_int_equal(gn_array_split(a, 0, 1, part), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_array_split: 0 parts");
    assert_int_equal(gn_split(a, 2, 0, NULL), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_split: 2 parts, and no room for them");
    assert_int_equal(gn_meshgrid(NULL, 2, true, part), GN_ERROR_ARGUMENT);
    gn_array *two[2] = {a, NULL};
    assert_int_equal(gn_meshgrid(two, 2, true, part), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_meshgrid: array argument 2 is NULL");
    assert_null(gn_diff(a, -1, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_diff: -1 times");
    assert_null(gn_sliding_window(a, 4, 1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_sliding_window: a window of 4 on axis 1 with size 3");
    assert_null(gn_roll(NULL, 1, 0));
    assert_null(gn_pad(NULL, widths, 1, GN_PAD_EDGE, 0));
}

// Variances of rows, which a GPU works out in one pass, against sums in long double.
static void test_variances(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { ROWS = 37, LONGEST = 16385 };
    static const int lengths[] = {31, 32, 33, 127, 1000, 1025, 4097, 8200, 16384, 16385};
    static const gn_dtype dtypes[] = {GN_F32, GN_F16, GN_BF16};
    static float x[ROWS * LONGEST];
    for (int k = 0; k < 10; k++)
        for (int d = 0; d < 3; d++)
            GN_SCOPE(g) {
                const int n = lengths[k];
                double have[2][ROWS];
                unsigned seed = (unsigned)k + 1;
                if (test_on_vulkan() && n > 5000 && d > 0) continue; // the same calls
                for (int i = 0; i < ROWS * n; i++) {
                    seed = seed * 1664525u + 1013904223u;
                    x[i] = (float)(seed >> 16) / 65536.0f * (float)(i / n % 5 + 1) + (d == 0 ? 50.0f : 2.0f) * (float)(i / n % 3);
                }
                x[3 * n + 7] = INFINITY;
                x[4 * n + n - 1] = NAN;
                if (d == 0) x[5 * n] = 3e38f, x[5 * n + 1] = -3e38f;
                gn_array *a = gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(ROWS, n), x), dtypes[d]), *y[2];
                const double ddof = k % 2;
                y[0] = gn_var(a, 1, ddof);
                y[1] = gn_std(gn_reshape(a, GN_SHAPE(1, ROWS, 1, n)), GN_KEEP(GN_AXES(2, 3)), ddof);
                expect_shape(y[0], ROWS);
                expect_shape(y[1], 1, ROWS, 1, 1);
                assert_int_equal(gn_dtype_of(y[0]), dtypes[d]);
                for (int i = 0; i < 2; i++) assert_int_equal(gn_read(gn_cast(y[i], GN_F64), have[i], sizeof have[i]), GN_OK);
                assert_int_equal(gn_read(gn_cast(a, GN_F32), x, sizeof(float) * (size_t)(ROWS * n)), GN_OK);
                for (int r = 0; r < ROWS; r++) {
                    long double mean = 0, sum = 0;
                    for (int i = 0; i < n; i++) mean += (long double)x[r * n + i] / n;
                    for (int i = 0; i < n; i++) sum += ((long double)x[r * n + i] - mean) * ((long double)x[r * n + i] - mean);
                    double want[2];
                    want[0] = (double)(sum / (n - (long double)ddof));
                    want[1] = sqrt(want[0]);
                    if (r == 3 || r == 4) want[0] = want[1] = (double)NAN;
                    if (r == 5 && d == 0) want[0] = want[1] = (double)INFINITY;
                    const double near = d == 0 ? 2e-6 : d == 1 ? 6e-4 : 4e-3;
                    for (int i = 0; i < 2; i++)
                        if (!(isfinite(want[i]) ? fabs(have[i][r] - want[i]) <= near * want[i] : isnan(want[i]) ? isnan(have[i][r]) : have[i][r] == want[i]))
                            fail_msg("%s, row %d of %d, %s: %.9g, not %.9g", i == 0 ? "var" : "std", r, n, gn_dtype_name(dtypes[d]), have[i][r], want[i]);
                }
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_like_numpy), GN_TEST(test_gradients), GN_TEST(test_sinc_derivatives),
                                       GN_TEST(test_views), GN_TEST(test_memory_of_their_own),
                                       GN_TEST(test_values), GN_TEST(test_variances), cmocka_unit_test(test_ownership), GN_TEST(test_refusals)};
    return test_run(tests);
}
