// Gradients: every differentiable op against central differences, once and twice; the tape's rules;
// errors; what is left in memory.
#include "test.h"
#include "test_values.h"

#ifndef GNI_ROOMS // the op table is no part of what users see
#define GNI_ROOMS
#endif
#include "../tools/gpunum/core/optable.h"

static gn_context *open_context(void) {
    gn_options options = test_options();
    return test_share(&options);
}

// ---- the table of ops ------------------------------------------------------------------------

#define UNARY(fn)                                                                     \
    static gn_array *op_##fn(gn_context *g, gn_array *const *in, int n, void *user) { \
        (void)g, (void)n, (void)user;                                                 \
        return fn(in[0]);                                                             \
    }
#define BINARY(fn)                                                                    \
    static gn_array *op_##fn(gn_context *g, gn_array *const *in, int n, void *user) { \
        (void)g, (void)n, (void)user;                                                 \
        return fn(in[0], in[1]);                                                      \
    }
// Any expression over a, b, c.
#define OP(name, expression)                                                            \
    static gn_array *op_##name(gn_context *g, gn_array *const *in, int n, void *user) { \
        gn_array *a = in[0], *b = in[n > 1 ? 1 : 0], *c = in[n > 2 ? 2 : 0];            \
        (void)g, (void)a, (void)b, (void)c, (void)user;                                 \
        return expression;                                                              \
    }

#define GN_X(fn, NAME, F, D, gF, da) UNARY(fn)
GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da) UNARY(fn)
GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) BINARY(fn)
GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) BINARY(fn)
GNI_BINARY_ANY(GN_X)
#undef GN_X

#define GN_X(fn, NAME, F, D, gF, da) UNARY(fn)
GNI_UNARY_RARE(GN_X)
#undef GN_X

OP(add_s, gn_add_s(a, 1.5))
OP(rsub_s, gn_rsub_s(a, 1.5))
OP(mul_s, gn_mul_s(a, -2.5))
OP(div_s, gn_div_s(a, 0.7))
OP(rdiv_s, gn_rdiv_s(a, 0.7))
OP(pow_s, gn_pow_s(a, 3.0))
OP(pow_s_half, gn_pow_s(a, 0.5))
OP(pow_s_zero, gn_pow_s(a, 0.0))
OP(rpow_s, gn_rpow_s(a, 1.7))
OP(maximum_s, gn_maximum_s(a, 0.3))
OP(minimum_s, gn_minimum_s(a, 0.3))
OP(mod_s, gn_mod_s(a, 0.83))
OP(atan2_s, gn_atan2_s(a, 0.9))
OP(hypot_s, gn_hypot_s(a, 0.9))
OP(leaky_relu, gn_leaky_relu(a, 0.1))
OP(elu, gn_elu(a, 1.3))
OP(clamp, gn_clamp(a, -0.6, 0.9))
OP(lerp, gn_lerp(a, b, c))
OP(fma, gn_fma(a, b, c))
OP(where, gn_where(gn_gt_s(a, 0.1), b, c))
OP(copy, gn_mul(gn_copy(a), a))
OP(same_twice, gn_mul(a, a))
OP(fan_out, gn_add(gn_mul(gn_sin(a), gn_exp(a)), gn_div(gn_sin(a), gn_add_s(gn_square(a), 1.0))))
OP(chain, gn_tanh(gn_mul_s(gn_sigmoid(gn_add_s(gn_sin(gn_mul_s(a, 1.3)), 0.2)), 2.0)))

OP(sum_all, gn_sum(a, GN_ALL))
OP(sum_0, gn_sum(a, 0))
OP(sum_keep, gn_sum(a, GN_KEEP(-1)))
OP(sum_02, gn_sum(a, GN_AXES(0, 2)))
OP(mean_all, gn_mean(gn_square(a), GN_ALL))
OP(mean_1, gn_mean(a, 1))
OP(mean_keep, gn_mean(gn_exp(a), GN_KEEP(GN_AXES(0, -1))))
OP(prod_all, gn_prod(a, GN_ALL))
OP(prod_1, gn_prod(a, 1))
OP(prod_02, gn_prod(a, GN_KEEP(GN_AXES(0, 2))))
OP(min_all, gn_min(a, GN_ALL))
OP(max_1, gn_max(a, 1))
OP(max_keep, gn_max(gn_square(a), GN_KEEP(0)))
OP(var, gn_var(a, 1, 1))
OP(var_all, gn_var(a, GN_ALL, 0))
OP(std, gn_std(a, 0, 0))
OP(norm, gn_norm(a, 1))
OP(logsumexp, gn_logsumexp(a, 1))
OP(logsumexp_keep, gn_logsumexp(a, GN_KEEP(0)))
OP(logsumexp_all, gn_logsumexp(a, GN_ALL))
OP(softmax, gn_softmax(a, -1))
OP(softmax_0, gn_softmax(a, 0))
OP(log_softmax, gn_log_softmax(a, -1))
OP(log_softmax_1, gn_log_softmax(a, 1))

OP(matmul, gn_matmul(a, b))
OP(matmul_transposed, gn_matmul(gn_transpose(a), gn_transpose(b)))
OP(matmul_self, gn_matmul(a, gn_transpose(a)))
OP(linear, gn_linear(a, b, c))
OP(linear_plain, gn_linear(a, b, NULL))
OP(mse, gn_mse_loss(a, b))

OP(reshape, gn_square(gn_reshape(a, GN_SHAPE(3, -1))))
OP(reshape_copy, gn_square(gn_reshape(gn_transpose(a), GN_SHAPE(-1))))
OP(ravel, gn_ravel(gn_sin(a)))
OP(permute, gn_square(gn_permute(a, 2, 0, 1)))
OP(transpose, gn_mul(gn_transpose(a), b))
OP(swap, gn_square(gn_swap_axes(a, 0, -1)))
OP(move, gn_square(gn_move_axis(a, 0, 2)))
OP(expand, gn_mul(gn_expand_dims(a, 1), gn_expand_dims(a, 0)))
OP(squeeze, gn_square(gn_squeeze(a, GN_ALL)))
OP(broadcast, gn_mul(gn_broadcast_to(a, GN_SHAPE(4, 2, 3)), b))
OP(slice, gn_square(gn_slice(a, 1, 1, 4, 1)))
OP(slice_step, gn_square(gn_slice(a, 1, 0, GN_NONE, 2)))
OP(slice_back, gn_mul(gn_slice(a, 0, GN_NONE, GN_NONE, -1), a))
OP(slice_back_2, gn_square(gn_slice(a, 1, 4, GN_NONE, -3)))
OP(slice_overlap, gn_mul(gn_slice(a, 1, 1, GN_NONE, 1), gn_slice(a, 1, 0, -1, 1)))
OP(slice_three, gn_mul(gn_mul(gn_slice(a, 1, 0, 3, 1), gn_slice(a, 1, 4, 1, -1)), gn_exp(gn_slice(a, 1, 0, GN_NONE, 2))))
OP(slice_empty, gn_add(gn_sum(gn_slice(a, 1, 2, 2, 1), GN_ALL), gn_square(a)))
OP(index_text, gn_square(gn_index(a, "1, ::-2, None")))
OP(index_dots, gn_exp(gn_index(a, "..., 1:")))
OP(flip, gn_mul(gn_flip(a, 1), a))
OP(flip_all, gn_mul(gn_flip(a, GN_ALL), a))

static gn_array *op_concat(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g, (void)user;
    return gn_square(gn_concat(in, n, 1));
}

static gn_array *op_stack(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g, (void)user;
    return gn_square(gn_stack(in, n, -1));
}

static gn_array *integers(gn_context *g, gn_shape s, const int32_t *values) {
    return gn_array_from(g, GN_I32, s, values);
}

static const int32_t some_rows[] = {1, 0, -1, 1, 1, 0}, some_labels[] = {2, 0, 1, 2};
OP(take, gn_square(gn_take(a, integers(g, GN_SHAPE(6), some_rows), 0)))
OP(take_1, gn_square(gn_take(a, integers(g, GN_SHAPE(2, 3), some_rows), 1)))
OP(cross_entropy, gn_cross_entropy(a, integers(g, GN_SHAPE(4), some_labels)))
OP(int_factor, gn_mul(a, integers(g, GN_SHAPE(3), some_rows)))

// Shapes of the operands as text, "2,3 3" for (2,3) and (3,); "-" is 0-d.
typedef struct op_case {
    const char *name;
    gn_function fn;
    double low, high; // range of the operands
    const char *shapes;
} op_case;

#define CASE(name, low, high, shapes) \
    { #name, op_##name, low, high, shapes }

static const op_case cases[] = {
    CASE(add_s, -2, 2, "2,3"),
    CASE(rsub_s, -2, 2, "2,3"),
    CASE(mul_s, -2, 2, "2,3"),
    CASE(div_s, -2, 2, "2,3"),
    CASE(rdiv_s, 0.4, 2, "2,3"),
    CASE(pow_s, -2, 2, "2,3"),
    CASE(pow_s_half, 0.3, 2, "2,3"),
    CASE(pow_s_zero, -2, 2, "2,3"),
    CASE(rpow_s, -2, 2, "2,3"),
    CASE(maximum_s, -2, 2, "2,3"),
    CASE(minimum_s, -2, 2, "2,3"),
    CASE(mod_s, 0.1, 0.8, "2,3"),
    CASE(atan2_s, -2, 2, "2,3"),
    CASE(hypot_s, -2, 2, "2,3"),
    CASE(leaky_relu, -2, 2, "2,3"),
    CASE(elu, -2, 2, "2,3"),
    CASE(clamp, -2, 2, "2,3"),
    CASE(lerp, -2, 2, "2,3 2,3 2,3"),
    CASE(fma, -2, 2, "2,3 3 2,1"),
    CASE(where, -2, 2, "2,3 3 2,1"),
    CASE(copy, -2, 2, "2,3"),
    CASE(same_twice, -2, 2, "2,3"),
    CASE(fan_out, -2, 2, "2,3"),
    CASE(chain, -2, 2, "2,3"),
    // broadcasting
    CASE(gn_add, -2, 2, "2,3 3"),
    CASE(gn_sub, -2, 2, "2,1 1,3"),
    CASE(gn_mul, -2, 2, "- 2,3"),
    CASE(gn_div, 0.4, 2, "2,3,4 3,4"),
    CASE(gn_pow, 0.4, 2, "1,3 2,1"),
    CASE(gn_maximum, -2, 2, "3 2,3"),
    // reductions
    CASE(sum_all, -2, 2, "2,3"),
    CASE(sum_all, -2, 2, "-"),
    CASE(sum_0, -2, 2, "2,3"),
    CASE(sum_keep, -2, 2, "2,3"),
    CASE(sum_02, -2, 2, "2,3,4"),
    CASE(mean_all, -2, 2, "2,3"),
    CASE(mean_1, -2, 2, "2,3,4"),
    CASE(mean_keep, -2, 2, "2,3,4"),
    CASE(prod_all, 0.4, 1.6, "2,3"),
    CASE(prod_1, -2, 2, "2,3"),
    CASE(prod_02, -1.6, 1.6, "2,3,4"),
    CASE(min_all, -2, 2, "2,3"),
    CASE(max_1, -2, 2, "4,3"),
    CASE(max_keep, -2, 2, "4,3"),
    CASE(var, -2, 2, "4,3"),
    CASE(var_all, -2, 2, "4,3"),
    CASE(std, -2, 2, "4,3"),
    CASE(norm, 0.3, 2, "4,3"),
    CASE(logsumexp, -2, 2, "4,3"),
    CASE(logsumexp_keep, -2, 2, "4,3"),
    CASE(logsumexp_all, -2, 2, "4,3"),
    CASE(softmax, -2, 2, "4,3"),
    CASE(softmax_0, -2, 2, "4,3"),
    CASE(log_softmax, -2, 2, "4,3"),
    CASE(log_softmax_1, -2, 2, "2,3,4"),
    // matmul: 2-d, 1-d on either side, batches
    CASE(matmul, -2, 2, "2,3 3,4"),
    CASE(matmul, -2, 2, "3 3"),
    CASE(matmul, -2, 2, "3 3,2"),
    CASE(matmul, -2, 2, "2,3 3"),
    CASE(matmul, -1, 1, "2,3,4 2,4,2"),
    CASE(matmul, -1, 1, "2,3,4 4,5"),
    CASE(matmul, -1, 1, "4,3 2,3,4"),
    CASE(matmul, -1, 1, "3 2,3,4"),
    CASE(matmul, -1, 1, "2,4,2 2"),
    CASE(matmul, -1, 1, "2,1,3,2 3,2,2"),
    CASE(matmul_transposed, -2, 2, "3,2 4,3"),
    CASE(matmul_self, -2, 2, "2,3"),
    CASE(linear, -1, 1, "2,3 3,4 4"),
    CASE(linear, -1, 1, "2,3,4 4,5 5"),
    CASE(linear, -1, 1, "3 3,4 4"),
    CASE(linear_plain, -1, 1, "2,3 3,4"),
    CASE(mse, -2, 2, "2,3 2,3"),
    CASE(cross_entropy, -2, 2, "4,3"),
    CASE(int_factor, -2, 2, "2,3"),
    // views and joins
    CASE(reshape, -2, 2, "2,3"),
    CASE(reshape_copy, -2, 2, "2,3"),
    CASE(ravel, -2, 2, "2,3"),
    CASE(permute, -2, 2, "2,3,4"),
    CASE(transpose, -2, 2, "2,3 3,2"),
    CASE(swap, -2, 2, "2,3,4"),
    CASE(move, -2, 2, "2,3,4"),
    CASE(expand, -2, 2, "3"),
    CASE(squeeze, -2, 2, "2,1"),
    CASE(broadcast, -2, 2, "2,1 3"),
    CASE(slice, -2, 2, "4,5"),
    CASE(slice_step, -2, 2, "4,5"),
    CASE(slice_back, -2, 2, "2,3"),
    CASE(slice_back_2, -2, 2, "2,5"),
    CASE(slice_overlap, -2, 2, "2,5"),
    CASE(slice_three, -2, 2, "2,5"),
    CASE(slice_empty, -2, 2, "2,5"),
    CASE(index_text, -2, 2, "2,5"),
    CASE(index_dots, -2, 2, "2,3,4"),
    CASE(flip, -2, 2, "2,3"),
    CASE(flip_all, -2, 2, "2,3"),
    CASE(concat, -2, 2, "2,3 2,1 2,5"),
    CASE(stack, -2, 2, "2,3 2,3 2,3"),
    CASE(take, -2, 2, "2,3"),
    CASE(take_1, -2, 2, "2,3"),
};

// Table ops whose operands cannot be just any numbers.
static const op_case ranges[] = {
    CASE(gn_sqrt, 0.3, 2, "2,3"),
    CASE(gn_rsqrt, 0.3, 2, "2,3"),
    CASE(gn_cbrt, 0.3, 2, "2,3"),
    CASE(gn_recip, 0.4, 2, "2,3"),
    CASE(gn_erfc, -2, 2, "2,3"),
    CASE(gn_erfinv, -0.8, 0.8, "2,3"),
    CASE(gn_lgamma, 0.4, 4, "2,3"),
    CASE(gn_digamma, 0.4, 4, "2,3"),
    CASE(gn_log, 0.3, 2, "2,3"),
    CASE(gn_log2, 0.3, 2, "2,3"),
    CASE(gn_log10, 0.3, 2, "2,3"),
    CASE(gn_log1p, -0.6, 2, "2,3"),
    CASE(gn_tan, -1.1, 1.1, "2,3"),
    CASE(gn_asin, -0.8, 0.8, "2,3"),
    CASE(gn_acos, -0.8, 0.8, "2,3"),
    CASE(gn_acosh, 1.3, 3, "2,3"),
    CASE(gn_atanh, -0.8, 0.8, "2,3"),
    CASE(gn_div, 0.4, 2, "2,3 2,3"),
    CASE(gn_atan2, 0.3, 2, "2,3 2,3"),
    CASE(gn_hypot, 0.3, 2, "2,3 2,3"),
    CASE(gn_floor_div, 0.6, 0.9, "2,3 2,3"),
    CASE(gn_mod, 0.6, 0.9, "2,3 2,3"),
    CASE(gn_pow, 0.4, 2, "2,3 2,3"),
};

static gn_shape next_shape(const char **text) {
    gn_shape s;
    memset(&s, 0, sizeof s);
    while (**text == ' ') ++*text;
    if (**text == '-') ++*text;
    while (**text >= '0' && **text <= '9') {
        s.dim[s.rank++] = strtol(*text, (char **)text, 10);
        if (**text == ',') ++*text;
    }
    return s;
}

// Numbers between low and high without a pattern, off the kinks at multiples of a half.
static gn_array *operand(gn_context *g, gn_dtype t, gn_shape s, double low, double high, int seed) {
    double values[128];
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++) n *= s.dim[i];
    assert_true(n <= 128);
    for (int64_t i = 0; i < n; i++) {
        double at = fmod(0.137 + 0.6180339887498949 * (double)(i + 1) + 0.414213562 * seed, 1.0);
        double x = low + (high - low) * at, off = x * 2.0 - floor(x * 2.0 + 0.5);
        values[i] = fabs(off) < 0.06 ? x + 0.04 : x;
    }
    gn_array *wide = gn_array_from(g, GN_F64, s, values), *a = gn_copy(gn_cast(wide, t));
    return gn_requires_grad(a, true);
}

// sum(cos(1 + i) y_i): with equal weights errors in single elements could cancel.
static gn_array *weighed(gn_array *y) {
    if (y == NULL) return NULL;
    gn_array *w = gn_arange(gn_context_of(y), gn_dtype_of(y), 1.0, 0.5 + (double)gn_size(y), 1.0);
    return gn_sum(gn_mul(y, gn_reshape(gn_cos(w), gn_shape_of(y))), GN_ALL);
}

static gn_array *once(gn_context *g, gn_array *const *in, int n, void *user) {
    const op_case *c = (const op_case *)user;
    return weighed(c->fn(g, in, n, NULL));
}

// A function of the gradients: its check is one of the second derivatives.
static gn_array *twice(gn_context *g, gn_array *const *in, int n, void *user) {
    gn_array *grad[3], *total = NULL;
    if (gn_gradients(once(g, in, n, user), in, n, true, grad) != GN_OK) return NULL;
    for (int i = 0; i < n; i++) {
        // The square keeps the gradients of linear ops differentiable.
        gn_array *term = weighed(gn_add(gn_mul_s(grad[i], 0.7), gn_mul_s(gn_square(in[i]), 0.1)));
        total = total == NULL ? term : gn_add(total, term);
    }
    return total;
}

static double check_case(gn_context *g, const op_case *c, gn_dtype t, double tolerance) {
    double first = 0.0, second = 0.0;
    GN_SCOPE(g) {
        gn_array *in[3];
        op_case own = *c;
        const char *text = c->shapes;
        int n = 0;
        while (*text != 0) {
            gn_shape s = next_shape(&text);
            in[n] = operand(g, t, s, c->low, c->high, n);
            n++;
        }
        first = gn_gradcheck(once, in, n, 0.0, &own);
        second = gn_gradcheck(twice, in, n, 0.0, &own);
    }
    if (gn_status_get(g) != GN_OK) fail_msg("%s (%s): %s", c->name, c->shapes, gn_error(g));
    if (!(first <= tolerance))
        fail_msg("%s (%s): derivative is off by %g", c->name, c->shapes, first);
    if (!(second <= tolerance))
        fail_msg("%s (%s): second derivative is off by %g", c->name, c->shapes, second);
    return fmax(first, second);
}

static double check_table(gn_context *g, const char *name, gn_function fn, const char *shapes,
                          gn_dtype t, double tolerance) {
    op_case c = {name, fn, -2.0, 2.0, shapes};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (strcmp(ranges[i].name, name) == 0) c = ranges[i];
    return check_case(g, &c, t, tolerance);
}

static void check_all(gn_dtype t, double tolerance) {
    gn_context *g = open_context();
    double worst = 0.0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        worst = fmax(worst, check_case(g, &cases[i], t, tolerance));
#define TABLE(fn, shapes)            worst = fmax(worst, check_table(g, #fn, op_##fn, shapes, t, tolerance));
#define GN_X(fn, NAME, F, D, gF, da) TABLE(fn, "2,3")
    GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da) TABLE(fn, "2,3")
    GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da) TABLE(fn, "2,3")
    GNI_UNARY_RARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) TABLE(fn, "2,3 2,3")
    GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) TABLE(fn, "2,3 2,3")
    GNI_BINARY_ANY(GN_X)
#undef GN_X
    print_message("largest error in %s: %.2g\n", gn_dtype_name(t), worst);
    close_context(g);
}

static void test_every_op_float64(void **state) {
    (void)state;
    if (test_on_vulkan()) skip(); // the formulas are the same, and GPUs lack float64
    check_all(GN_F64, 5e-8);
}

static void test_every_op_float32(void **state) {
    (void)state;
    check_all(GN_F32, 4e-3);
}

// ---- values by hand --------------------------------------------------------------------------

static gn_array *leaf(gn_context *g, gn_shape s, const float *values) {
    return gn_requires_grad(gn_array_from(g, GN_F32, s, values), true);
}

static gn_array *scalar_leaf(gn_context *g, double value) {
    return gn_requires_grad(gn_scalar(g, GN_F32, value), true);
}

// x^4: 4 x^3, 12 x^2, 24 x, 24.
static void test_derivatives_of_derivatives(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *x = scalar_leaf(g, 1.5), *y = gn_mul(gn_square(x), gn_square(x));
        const double want[] = {13.5, 27.0, 36.0, 24.0};
        for (int i = 0; i < 4; i++) {
            assert_int_equal(gn_gradients(y, &x, 1, true, &y), GN_OK);
            expect_values(y, &want[i], 1, 1e-6);
        }
        assert_null(gn_grad(x));
    }
    close_context(g);
}

// The second derivative of gn_digamma is psi''(a): of mpmath, to the left of 0, between poles and at them.
static void test_digamma_twice(void **state) {
    (void)state;
    gn_context *g = open_context();
    const float at[] = {-0.25f, -1.5f, -2.75f, 0.125f, 1, 30, 0, -3};
    const double want[] = {122.697366783662, -0.236204051641727, -124.117653059715, -1025.75333811814,
                           -2.40411380631919, -0.0011487652037286, -(double)INFINITY, (double)NAN};
    GN_SCOPE(g) {
        gn_array *x = leaf(g, GN_SHAPE(8), at), *first = NULL, *second = NULL;
        assert_int_equal(gn_gradients(gn_sum(gn_digamma(x), GN_ALL), &x, 1, true, &first), GN_OK);
        assert_int_equal(gn_gradients(gn_sum(first, GN_ALL), &x, 1, false, &second), GN_OK);
        for (int i = 0; i < 8; i++) {
            const double y = gn_item(gn_slice(second, 0, i, i + 1, 1));
            assert_true(y == want[i] || (y != y && want[i] != want[i]) || fabs(y - want[i]) <= 1e-7 * fabs(want[i]));
        }
    }
    close_context(g);
}

// 1 / sqrt(a^2 + 1) and 1 / sqrt(a^2 - 1) of numbers whose squares are out of range.
static void test_arcs_far_out(void **state) {
    (void)state;
    gn_context *g = open_context();
    const gn_dtype types[] = {GN_F16, GN_F32, GN_F64};
    const double size[] = {1000, 1e25, 1e200}, near[] = {1e-3, 1e-6, 1e-15};
    for (int i = 0; i < 3; i++) GN_SCOPE(g) {
        for (int arc = 0; arc < 2; arc++) {
            gn_array *x = gn_requires_grad(gn_scalar(g, types[i], size[i]), true);
            assert_int_equal(gn_backward(arc ? gn_acosh(x) : gn_asinh(x)), GN_OK);
            assert_true(fabs(gn_item(gn_grad(x)) * size[i] - 1) <= near[i]);
        }
        for (int part = 0; part < 2; part++) { // of the angle of (3, 4): 4 / 25 and -3 / 25 by the size
            gn_array *y = gn_requires_grad(gn_scalar(g, types[i], 3 * size[i]), true);
            gn_array *x = gn_requires_grad(gn_scalar(g, types[i], 4 * size[i]), true);
            assert_int_equal(gn_backward(gn_atan2(y, x)), GN_OK);
            assert_true(fabs(gn_item(gn_grad(part ? x : y)) * size[i] / (part ? -0.12 : 0.16) - 1) <= near[i]);
        }
    }
    close_context(g);
}

// Second derivatives where what is left of a difference is all that counts, or where a power is out of float32's range.
static void test_twice_of_small_sides(void **state) {
    (void)state;
    gn_context *g = open_context();
    const struct {
        bool power;
        double a, b;
    } rows[] = {{false, 1, 1e-6}, {false, 3e-5, -2}, {false, -1e-12, 1e-17}, {false, 2, 1e12}, {false, 0, -3}, {false, .5, .25},
                {true, 1e-30, 2}, {true, 1e15, 3}, {true, 2, .5}, {true, 0, 2}, {true, 0, 3.5}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) GN_SCOPE(g) {
        const float af = (float)rows[i].a, bf = (float)rows[i].b;
        const double a = af, b = bf, h = hypot(a, b), l = a > 0 ? log(a) : 0;
        const double cross = rows[i].power ? pow(a, b - 1) * (1 + b * l) : -a / h * (b / h) / h;
        const double want[] = {rows[i].power ? b * (b - 1) * pow(a, b - 2) : b / h * (b / h) / h, cross, cross,
                               rows[i].power ? pow(a, b) * l * l : a / h * (a / h) / h};
        gn_array *in[2], *once[2], *twice[2];
        in[0] = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(), &af), true);
        in[1] = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(), &bf), true);
        gn_array *y = rows[i].power ? gn_pow(in[0], in[1]) : gn_hypot(in[0], in[1]);
        assert_int_equal(gn_gradients(y, in, 2, true, once), GN_OK);
        for (int k = 0; k < 4; k++) {
            if (k % 2 == 0) assert_int_equal(gn_gradients(once[k / 2], in, 2, true, twice), GN_OK);
            const double have = gn_item(twice[k % 2]);
            if (fabs(want[k]) < 1e-36 || fabs(want[k]) > 3e38) continue; // subnormal or infinite
            if (!(fabs(have - want[k]) <= 6e-6 * fabs(want[k])))
                fail_msg("row %d, %d: %g, expected %g", (int)i, k, have, want[k]);
        }
    }
    close_context(g);
}

// Where twice the number is out of range, second derivatives of what is flat there are 0.
static void test_flat_far_out(void **state) {
    (void)state;
    gn_context *g = open_context();
    gn_array *(*const flat[])(gn_array *) = {gn_erf, gn_erfc, gn_gelu, gn_atan};
    for (int i = 0; i < 4; i++) GN_SCOPE(g) {
        gn_array *x = gn_requires_grad(gn_scalar(g, GN_F32, 3e38), true), *first = NULL, *second = NULL;
        assert_int_equal(gn_gradients(flat[i](x), &x, 1, true, &first), GN_OK);
        assert_int_equal(gn_gradients(first, &x, 1, false, &second), GN_OK);
        assert_true(gn_item(second) == 0);
    }
    close_context(g);
}

// Products with one zero and with two, where division does not help.
static void test_prod_with_zeros(void **state) {
    (void)state;
    gn_context *g = open_context();
    const float data[] = {2, 0, 3, 0, 5, 0, 2, 3, 4};
    const double want[] = {0, 6, 0, 0, 0, 0, 12, 8, 6};
    GN_SCOPE(g) {
        gn_array *x = leaf(g, GN_SHAPE(3, 3), data), *grad = NULL;
        gn_backward(gn_sum(gn_prod(x, 1), GN_ALL));
        expect_values(gn_grad(x), want, 9, 1e-6);
        gn_gradients(gn_sum(gn_prod(x, 1), GN_ALL), &x, 1, true, &grad);
        expect_values(grad, want, 9, 1e-6);
        // The middle of the second derivatives of 0 * 5 * 0 is not 0: d2/dx0 dx2 = 5.
        gn_array *first = gn_slice(gn_slice(grad, 0, 1, 2, 1), 1, 0, 1, 1);
        gn_array *second = NULL;
        gn_gradients(gn_sum(first, GN_ALL), &x, 1, false, &second);
        const double mixed[] = {0, 0, 0, 0, 0, 5, 0, 0, 0};
        expect_values(second, mixed, 9, 1e-6);
    }
    // What PyTorch 1.13 says of infinities, NaN and an overflow beside zeros.
    const float inf = INFINITY, odd[] = {inf, 0, 2, 0, -inf, 0, 0, inf, inf, NAN, 0, 2, 0, 0, NAN, 1e30f, 0, 1e30f};
    const float slopes[] = {0, inf, NAN, NAN, 0, NAN, inf, NAN, NAN, 0, NAN, NAN, NAN, NAN, 0, 0, inf, 0};
    GN_SCOPE(g) {
        gn_array *x = leaf(g, GN_SHAPE(6, 3), odd);
        float have[18];
        gn_backward(gn_sum(gn_prod(x, 1), GN_ALL));
        assert_int_equal(gn_read(gn_grad(x), have, sizeof have), GN_OK);
        for (int i = 0; i < 18; i++)
            if (!(have[i] == slopes[i] || (have[i] != have[i] && slopes[i] != slopes[i])))
                fail_msg("slope %d is %g, not %g", i, (double)have[i], (double)slopes[i]);
    }
    close_context(g);
}

// Writing to one gradient (to clip it, say) changes no other one.
static void test_gradients_are_separate(void **state) {
    (void)state;
    gn_context *g = open_context();
    const float v[] = {1, 2, 3}, other[] = {9, 9, 9};
    const double nines[] = {9, 9, 9}, counted[] = {1, 2, 3};
    GN_SCOPE(g) {
        gn_array *c = gn_array_from(g, GN_F32, GN_SHAPE(3, 1), v), *a = leaf(g, GN_SHAPE(3), v);
        gn_array *b = leaf(g, GN_SHAPE(3, 1), v), *params[3], *out[3];
        gn_backward(gn_sum(gn_mul(gn_add(gn_reshape(a, GN_SHAPE(3, 1)), b), c), GN_ALL));
        assert_int_equal(gn_write(gn_grad(a), other, sizeof other), GN_OK);
        expect_values(gn_grad(a), nines, 3, 0);
        expect_values(gn_grad(b), counted, 3, 0);
        params[0] = params[1] = b;
        params[2] = a;
        gn_array *loss = gn_sum(gn_add(gn_mul(b, c), gn_reshape(a, GN_SHAPE(3, 1))), GN_ALL);
        assert_int_equal(gn_gradients(loss, params, 3, false, out), GN_OK);
        assert_int_equal(gn_write(out[0], other, sizeof other), GN_OK);
        assert_int_equal(gn_write(out[2], other, sizeof other), GN_OK);
        expect_values(out[1], counted, 3, 0);
        expect_values(out[2], nines, 3, 0);
    }
    close_context(g);
}

static void test_ties_share(void **state) {
    (void)state;
    gn_context *g = open_context();
    const float data[] = {3, 1, 3, 2, 2, 2};
    const double by_row[] = {0.5, 0, 0.5, 1 / 3.0, 1 / 3.0, 1 / 3.0},
                 halves[] = {0, 1, 0, 0.5, 0.5, 0.5};
    const double at_bound[] = {0, 1, 0, 1, 1, 1};
    GN_SCOPE(g) {
        gn_array *x = leaf(g, GN_SHAPE(2, 3), data);
        gn_backward(gn_sum(gn_max(x, 1), GN_ALL));
        expect_values(gn_grad(x), by_row, 6, 1e-6);
        gn_zero_grad(x);
        gn_backward(gn_sum(gn_minimum(x, gn_full(g, GN_F32, GN_SHAPE(3), 2.0)), GN_ALL));
        expect_values(gn_grad(x), halves, 6, 1e-6);
        gn_zero_grad(x);
        gn_backward(gn_sum(gn_clamp(x, 0.0, 2.0), GN_ALL)); // inside the bounds, those included
        expect_values(gn_grad(x), at_bound, 6, 1e-6);
    }
    close_context(g);
}

// Branches that are not taken must not bring in NaN.
static void test_safe_at_the_edges(void **state) {
    (void)state;
    gn_context *g = open_context();
    const float zero[] = {0, 0, 2}, exponent[] = {0, 2, 0}, big[] = {1e30f, -1e30f, 0};
    const double none[] = {0, 0, 0}, log2_only[] = {0, 0, 0.69314718055994531}, step[] = {1, 0, 0};
    GN_SCOPE(g) {
        gn_array *a = leaf(g, GN_SHAPE(3), zero), *b = leaf(g, GN_SHAPE(3), exponent);
        gn_backward(gn_sum(gn_pow(a, b), GN_ALL));
        expect_values(gn_grad(a), none, 3, 1e-6);
        expect_values(gn_grad(b), log2_only, 3, 1e-6);
        gn_array *x = leaf(g, GN_SHAPE(3), big);
        gn_backward(gn_sum(gn_relu(x), GN_ALL));
        expect_values(gn_grad(x), step, 3, 1e-6);
        gn_zero_grad(x);
        gn_backward(gn_sum(gn_elu(x, 1.0), GN_ALL));
        assert_true(isfinite(gn_item(gn_sum(gn_grad(x), GN_ALL))));
    }
    close_context(g);
}

// Steps have the derivative 0, which is known and no error.
// The norm and the deviation of zeros have the gradient 0, as in PyTorch, also where it is differentiated again.
static void test_roots_of_nothing(void **state) {
    (void)state;
    gn_context *g = open_context();
    const float v[] = {0, 0, 3, 4}, twos[] = {2, 2, 2};
    const double once[] = {0, 0, 0.6, 0.8}, twice[] = {0, 0, 0.032, -0.024}, none[] = {0, 0, 0};
    GN_SCOPE(g) {
        gn_array *x = leaf(g, GN_SHAPE(2, 2), v), *y = leaf(g, GN_SHAPE(3), twos), *dx;
        assert_int_equal(gn_gradients(gn_sum(gn_norm(x, 1), GN_ALL), &x, 1, true, &dx), GN_OK);
        expect_values(dx, once, 4, 1e-6);
        assert_int_equal(gn_backward(gn_sum(dx, GN_ALL)), GN_OK);
        expect_values(gn_grad(x), twice, 4, 1e-6);
        assert_int_equal(gn_backward(gn_std(y, GN_ALL, 0)), GN_OK);
        expect_values(gn_grad(y), none, 3, 0);
    }
    close_context(g);
}

static void test_steps_are_flat(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *x = scalar_leaf(g, 1.3);
        const double zero = 0.0;
        gn_backward(
            gn_add(gn_add(gn_floor(x), gn_round(x)), gn_add(gn_sign(x), gn_trunc(gn_ceil(x)))));
        expect_values(gn_grad(x), &zero, 1, 0.0);
        assert_false(gn_needs_grad(gn_gt_s(x, 0.0)));
        assert_false(gn_needs_grad(gn_cast(x, GN_I32)));
    }
    close_context(g);
}

// Gradients have the dtype of what they are the gradient of.
static void test_dtypes(void **state) {
    (void)state;
    gn_context *g = open_context();
    const gn_dtype types[] = {GN_F16, GN_BF16, GN_F32};
    for (int i = 0; i < 3; i++)
        GN_SCOPE(g) {
            gn_array *w = gn_requires_grad(gn_full(g, types[i], GN_SHAPE(2, 2), 0.5), true);
            gn_array *x = gn_full(g, GN_F32, GN_SHAPE(3, 2), 2.0);
            gn_array *n = gn_full(g, GN_I32, GN_SHAPE(2), 3.0);
            gn_array *y = gn_mul(gn_matmul(x, w), n);
            assert_int_equal(gn_backward(gn_sum(y, GN_ALL)), GN_OK);
            const double want[] = {18, 18, 18, 18};
            assert_int_equal(gn_dtype_of(gn_grad(w)), types[i]);
            expect_values(gn_grad(w), want, 4, 1e-3);
        }
    close_context(g);
}

// ---- the rules -------------------------------------------------------------------------------

// An operand of a narrower dtype is widened before it is squared or its logarithm is rounded.
static void test_mixed_dtypes(void **state) {
    (void)state;
    gn_context *g = open_context();
    const int32_t far = 70000; // its square is beyond int32
    const float near = 7.0f, base = 3.0f, ten = 10.0f;
    gn_scope_begin(g);
    gn_array *b = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(1), &near), true);
    gn_array *a = gn_array_from(g, GN_I32, GN_SHAPE(1), &far);
    gn_backward(gn_sum(gn_atan2(a, b), GN_ALL));
    const double turned = -70000.0 / (70000.0 * 70000.0 + 49.0);
    assert_true(fabs(gn_item(gn_grad(b)) / turned - 1.0) < 1e-6);
    gn_zero_grad(b);
    a = gn_full(g, GN_F16, GN_SHAPE(1), 300.0); // and that beyond float16
    gn_backward(gn_sum(gn_atan2(a, b), GN_ALL));
    assert_true(fabs(gn_item(gn_grad(b)) / (-300.0 / 90049.0) - 1.0) < 1e-6);
    gn_array *c = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(1), &ten), true);
    a = gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(1), &base), GN_BF16);
    gn_backward(gn_sum(gn_pow(a, c), GN_ALL));
    assert_true(fabs(gn_item(gn_grad(c)) / (59049.0 * log(3.0)) - 1.0) < 1e-6);
    gn_scope_end(g);
    close_context(g);
}

static void test_accumulation(void **state) {
    (void)state;
    gn_context *g = open_context();
    const float data[] = {1, -2, 3};
    const double once_[] = {2, -4, 6}, both[] = {3, -3, 7};
    GN_SCOPE(g) {
        gn_array *x = leaf(g, GN_SHAPE(3), data);
        assert_null(gn_grad(x));
        gn_backward(gn_sum(gn_square(x), GN_ALL));
        expect_values(gn_grad(x), once_, 3, 1e-6);
        gn_backward(gn_sum(x, GN_ALL));
        expect_values(gn_grad(x), both, 3, 1e-6);
        assert_false(gn_needs_grad(gn_grad(x)));
        gn_array *kept = gn_retain(gn_grad(x));
        gn_zero_grad(x);
        assert_null(gn_grad(x));
        expect_values(kept, both, 3, 1e-6);
        gn_release(kept);
        // Neither gradient is a window on the other.
        gn_array *a = leaf(g, GN_SHAPE(3), data), *b = leaf(g, GN_SHAPE(3), data);
        gn_backward(gn_sum(gn_add(a, b), GN_ALL));
        const float zeros[] = {0, 0, 0};
        const double ones[] = {1, 1, 1};
        assert_int_equal(gn_write(gn_grad(a), zeros, sizeof zeros), GN_OK);
        expect_values(gn_grad(b), ones, 3, 0.0);
    }
    close_context(g);
}

static void test_what_is_recorded(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *x = scalar_leaf(g, 3.0), *plain = gn_scalar(g, GN_F32, 2.0);
        assert_true(gn_needs_grad(x));
        assert_false(gn_needs_grad(plain));
        assert_false(gn_needs_grad(gn_mul(plain, plain)));
        assert_true(gn_needs_grad(gn_mul(plain, x)));
        assert_false(gn_needs_grad(gn_detach(gn_mul(plain, x))));
        gn_no_grad_begin(g);
        gn_no_grad_begin(g);
        gn_no_grad_end(g);
        assert_false(gn_needs_grad(gn_mul(plain, x)));
        gn_no_grad_end(g);
        // x * detach(x): the detached factor counts as a constant.
        const double three = 3.0;
        gn_backward(gn_mul(x, gn_detach(x)));
        expect_values(gn_grad(x), &three, 1, 1e-6);
        gn_requires_grad(x, false);
        assert_false(gn_needs_grad(gn_mul(plain, x)));
        gn_no_grad_end(g);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_no_grad_end");
    }
    close_context(g);
}

static void test_requires_grad_refuses(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *x = scalar_leaf(g, 3.0), *y = gn_exp(x);
        assert_null(gn_requires_grad(y, false));
        expect_error(g, GN_ERROR_GRADIENT, "only leaf arrays");
        assert_null(gn_requires_grad(gn_scalar(g, GN_I32, 1.0), true));
        expect_error(g, GN_ERROR_DTYPE, "int32");
        assert_null(gn_requires_grad(NULL, true));
        assert_null(gn_grad(NULL));
        assert_false(gn_needs_grad(NULL));
        assert_int_not_equal(gn_backward(NULL), GN_OK);
        // What was computed from constants is a leaf.
        assert_non_null(gn_requires_grad(gn_mul_s(gn_ones(g, GN_F32, GN_SHAPE(3)), 0.1), true));
    }
    gn_error_clear(g);
    close_context(g);
}

// The derivative of its input, which needs a record.
static gn_array *derivative(gn_context *g, gn_array *const *in, int count, void *user) {
    gn_array *x = gn_requires_grad(gn_detach(in[0]), true), *dx = NULL;
    (void)g, (void)count, (void)user;
    gn_gradients(gn_square(x), &x, 1, true, &dx);
    return dx;
}

// Where nothing is recorded the message says so, as a gn_no_grad_end that was forgotten is far from there.
static void test_gradients_without_record(void **state) {
    (void)state;
    gn_context *g = open_context();
    static const char text[] = ": the loss depends on no array that requires a gradient; nothing is recorded here, since "
                               "gn_no_grad_begin or while gn_checkpoint or gn_custom runs forward";
    GN_SCOPE(g) {
        gn_array *x = scalar_leaf(g, 3.0), *dx;
        gn_no_grad_begin(g);
        assert_int_equal(gn_backward(gn_square(x)), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, text);
        assert_int_equal(gn_gradients(gn_square(x), &x, 1, true, &dx), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, text);
        gn_no_grad_end(g);
        assert_null(gn_checkpoint(derivative, &x, 1, NULL));
        expect_error(g, GN_ERROR_GRADIENT, text);
        assert_int_equal(gn_backward(gn_scalar(g, GN_F32, 1.0)), GN_ERROR_GRADIENT);
        assert_null(strstr(gn_error(g), "recorded"));
        gn_error_clear(g);
        assert_int_equal(gn_backward(gn_square(x)), GN_OK);
    }
    close_context(g);
}

static void test_what_can_be_a_loss(void **state) {
    (void)state;
    gn_context *g = open_context();
    const float data[] = {1, 2, 3};
    GN_SCOPE(g) {
        gn_array *x = leaf(g, GN_SHAPE(3), data);
        assert_int_equal(gn_backward(gn_square(x)), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "(3,)");
        assert_int_equal(gn_backward(gn_sum(gn_cast(x, GN_I32), GN_ALL)), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "int64");
        assert_int_equal(gn_backward(gn_scalar(g, GN_F32, 1.0)), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "depends on no array");
        assert_null(gn_grad(x));
        // One element in any shape will do, and so will a parameter itself.
        gn_array *one = leaf(g, GN_SHAPE(1, 1), data);
        assert_int_equal(gn_backward(one), GN_OK);
        assert_int_equal(gn_rank(gn_grad(one)), 2);
    }
    close_context(g);
}

static void test_graph_is_used_once(void **state) {
    (void)state;
    gn_context *g = open_context();
    GN_SCOPE(g) {
        gn_array *x = scalar_leaf(g, 3.0), *square = gn_square(x), *grad = NULL;
        gn_array *loss = gn_exp(square), *other = gn_sin(square);
        assert_int_equal(gn_backward(loss), GN_OK);
        assert_int_equal(gn_backward(loss), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "already used");
        // The part below was used too.
        assert_int_equal(gn_backward(other), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "already used");
        gn_array *again = gn_exp(gn_square(x));
        assert_int_equal(gn_gradients(again, &x, 1, true, &grad), GN_OK);
        assert_int_equal(gn_gradients(again, &x, 1, false, &grad), GN_OK);
        assert_int_equal(gn_gradients(again, &x, 1, false, &grad), GN_ERROR_GRADIENT);
        assert_null(grad);
        expect_error(g, GN_ERROR_GRADIENT, "gn_gradients");
    }
    close_context(g);
}

static void test_gradients_by_name(void **state) {
    (void)state;
    gn_context *g = open_context();
    const float data[] = {1, 2};
    const double zeros[] = {0, 0}, six[] = {3, 3}, square[] = {2, 4}, ones[] = {1, 1};
    GN_SCOPE(g) {
        gn_array *a = leaf(g, GN_SHAPE(2), data), *b = leaf(g, GN_SHAPE(2), data),
                 *middle = gn_square(a);
        gn_array *params[4], *out[4];
        params[0] = middle, params[1] = b, params[2] = a, params[3] = middle;
        gn_array *unused = leaf(g, GN_SHAPE(2), data);
        assert_int_equal(gn_gradients(gn_sum(gn_mul_s(middle, 3.0), GN_ALL), params, 4, false, out),
                         GN_OK);
        expect_values(out[0], six, 2, 1e-6);
        expect_values(out[1], zeros, 2, 0.0);
        const double through[] = {6, 12};
        expect_values(out[2], through, 2, 1e-6);
        expect_values(out[3], six, 2, 1e-6);
        assert_null(gn_grad(a));
        // a + b: one gradient for both, but two arrays.
        params[0] = a, params[1] = b;
        assert_int_equal(
            gn_gradients(gn_sum(gn_square(gn_add(a, b)), GN_ALL), params, 2, true, out), GN_OK);
        assert_ptr_not_equal(out[0], out[1]);
        gn_array *second[2];
        for (int i = 0; i < 2; i++) {
            assert_true(gn_needs_grad(out[i]));
            assert_int_equal(
                gn_gradients(gn_sum(gn_mul_s(out[i], 0.5), GN_ALL), &b, 1, true, second), GN_OK);
            expect_values(second[0], ones, 2, 1e-6);
        }
        // What lies between is not used up by a gradient that does not pass it.
        gn_array *loss = gn_sum(gn_add(gn_square(a), gn_square(b)), GN_ALL);
        assert_int_equal(gn_gradients(loss, &a, 1, false, out), GN_OK);
        expect_values(out[0], square, 2, 1e-6);
        gn_array *plain = gn_ones(g, GN_F32, GN_SHAPE(2));
        assert_int_equal(gn_gradients(gn_sum(a, GN_ALL), &plain, 1, false, out), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "parameter 1 does not require");
        (void)unused;
    }
    close_context(g);
}

// The values that a derivative needs must still be there; those that it does not need may change.
static void test_overwritten_operands(void **state) {
    (void)state;
    gn_context *g = open_context();
    const float data[] = {1, 2, 3}, other[] = {4, 5, 6};
    GN_SCOPE(g) {
        gn_array *x = leaf(g, GN_SHAPE(3), data), *w = leaf(g, GN_SHAPE(3), data);
        gn_array *loss = gn_sum(gn_mul(x, w), GN_ALL);
        gn_write(w, other, sizeof other);
        assert_int_equal(gn_backward(loss), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "operand 2 of gn_mul, float32 (3,), was overwritten");
        assert_null(gn_grad(x));
        loss = gn_sum(gn_add(x, w), GN_ALL);
        gn_write(w, data, sizeof data);
        assert_int_equal(gn_backward(loss), GN_OK);
        // Pending and computed operands are the same here.
        gn_array *lazy = gn_exp(x), *y = gn_mul(lazy, lazy);
        gn_eval(y);
        gn_eval(lazy);
        assert_int_equal(gn_backward(gn_sum(y, GN_ALL)), GN_OK);
        gn_array *e = gn_exp(x);
        loss = gn_sum(e, GN_ALL);
        assert_int_equal(gn_write(e, other, sizeof other), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "gn_write: gn_exp made this array");
        gn_write(gn_detach(e), other, sizeof other); // exp's derivative is its result
        assert_int_equal(gn_backward(loss), GN_ERROR_GRADIENT);
        expect_error(g, GN_ERROR_GRADIENT, "result of gn_exp");
        gn_array *sum = gn_add_s(x, 1.0);
        loss = gn_sum(sum, GN_ALL);
        gn_write(gn_detach(sum), other, sizeof other);
        assert_int_equal(gn_backward(loss), GN_OK);
        // The value of a pending expression is that of the time it was written down.
        gn_array *before = gn_mul_s(x, 2.0);
        const double want[] = {2, 4, 6};
        gn_write(x, other, sizeof other);
        expect_values(before, want, 3, 1e-6);
    }
    close_context(g);
}

static void test_long_chains(void **state) {
    (void)state;
    gn_context *g = open_context();
    int links = !test_on_vulkan() ? 100000 : 3000;
    const double one = 1.0;
    GN_SCOPE(g) {
        gn_array *x = scalar_leaf(g, 1.0), *y = gn_retain(gn_add_s(x, 0.001));
        for (int i = 1; i < links; i++) {
            gn_array *next = NULL;
            GN_SCOPE(g) {
                next = gn_keep(gn_add_s(y, 0.001));
            }
            gn_set(&y, gn_retain(next));
        }
        assert_int_equal(gn_backward(y), GN_OK);
        expect_values(gn_grad(x), &one, 1, 0.0);
        gn_release(y);
    }
    GN_SCOPE(g) { // released without a pass
        gn_array *x = scalar_leaf(g, 1.0), *y = gn_sin(x);
        for (int i = 1; i < links; i++) y = gn_sin(y);
        gn_item(y);
    }
    close_context(g);
}

static gn_array *half_detached(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g, (void)n, (void)user;
    return gn_sum(gn_mul(in[0], gn_detach(in[0])), GN_ALL);
}

static gn_array *two_values(gn_context *g, gn_array *const *in, int n, void *user) {
    (void)g, (void)n, (void)user;
    return in[0];
}

static void test_gradcheck_finds_errors(void **state) {
    (void)state;
    gn_context *g = open_context();
    const float data[] = {1, 2};
    GN_SCOPE(g) {
        gn_array *x = leaf(g, GN_SHAPE(2), data), *plain = gn_ones(g, GN_F32, GN_SHAPE(2));
        double error = gn_gradcheck(half_detached, &x, 1, 0.0, NULL);
        assert_true(error > 0.4 && error < 0.6);
        const double same[] = {1, 2};
        expect_values(x, same, 2, 0.0);
        assert_true(isnan(gn_gradcheck(two_values, &x, 1, 0.0, NULL)));
        expect_error(g, GN_ERROR_GRADIENT, "(2,)");
        assert_true(isnan(gn_gradcheck(half_detached, &plain, 1, 0.0, NULL)));
        expect_error(g, GN_ERROR_GRADIENT, "gn_gradcheck: no input");
    }
    close_context(g);
}

// ---- memory ----------------------------------------------------------------------------------

typedef struct ledger {
    int64_t blocks, calls, fail_at; // fail_at < 0: never
} ledger;

static void *ledger_allocate(void *user, size_t size) {
    ledger *l = (ledger *)user;
    if (l->calls++ == l->fail_at) return NULL;
    void *p = malloc(size);
    if (p != NULL) l->blocks++;
    return p;
}

static void ledger_release(void *user, void *data, size_t size) {
    (void)size;
    if (data != NULL) ((ledger *)user)->blocks--;
    free(data);
}

// Forward, backward, second derivatives, an optimizer: whatever allocates.
static gn_status work(gn_context *g) {
    static const float data[] = {0.5f, -1.0f, 2.0f, 0.25f, 1.5f, -0.75f};
    GN_SCOPE(g) {
        gn_array *w = leaf(g, GN_SHAPE(3, 2), data),
                 *x = gn_array_from(g, GN_F32, GN_SHAPE(2, 3), data);
        gn_array *b = leaf(g, GN_SHAPE(2), data), *params[2], *grads[2];
        params[0] = w, params[1] = b;
        gn_optimizer *opt = gn_adam(params, 2, NULL);
        gn_array *h = gn_relu(gn_linear(x, w, b));
        gn_array *loss = gn_cross_entropy(gn_concat(&h, 1, 0), gn_argmin(h, 1));
        loss = gn_add(loss, gn_mean(gn_prod(gn_take(w, gn_argmax(w, 0), 0), 1), GN_ALL));
        if (gn_gradients(loss, params, 2, true, grads) == GN_OK)
            gn_backward(gn_sum(gn_square(grads[0]), GN_ALL));
        gn_step(opt);
        gn_item(gn_sum(w, GN_ALL));
    }
    return gn_status_get(g);
}

static gn_context *open_counted(ledger *l) {
    gn_options options;
    memset(&options, 0, sizeof options);
    options.backend = GN_BACKEND_CPU;
    options.threads = 1;
    options.allocator.allocate = ledger_allocate;
    options.allocator.release = ledger_release;
    options.allocator.user = l;
    gn_context *g = gn_open(&options);
    gn_scope_begin(g); // the scope itself does not fail
    return g;
}

static void test_allocation_failures(void **state) {
    (void)state;
    ledger l = {0, 0, -1};
    gn_context *g = open_counted(&l);
    int64_t opened = l.calls;
    assert_int_equal(work(g), GN_OK);
    int64_t all = l.calls - opened;
    gn_close(g);
    assert_int_equal(l.blocks, 0);
    for (int64_t at = 0; at < all; at++) {
        ledger failing = {0, 0, -1};
        g = open_counted(&failing);
        failing.fail_at = failing.calls + at;
        gn_status status = work(g);
        failing.fail_at = -1;
        if (status != GN_ERROR_OUT_OF_MEMORY)
            fail_msg("allocation %d of %d failed: %s (%s)", (int)at, (int)all,
                     gn_status_string(status), gn_error(g));
        gn_memory_stats stats;
        gn_error_clear(g);
        gn_memory_get(g, &stats);
        // The optimizer is still there, and holds two parameters and their gradients and state.
        if (stats.arrays > 8)
            fail_msg("allocation %d: %d arrays are left", (int)at, (int)stats.arrays);
        assert_int_equal(work(g), GN_OK);
        gn_close(g);
        assert_int_equal(failing.blocks, 0);
    }
    print_message("%d allocations failed in turn\n", (int)all);
}

static void test_nothing_is_left(void **state) {
    (void)state;
    gn_context *g = open_context();
    gn_memory_stats before, after;
    gn_memory_get(g, &before);
    for (int round = 0; round < 3; round++) {
        GN_SCOPE(g) {
            gn_array *x = gn_requires_grad(gn_rand(g, GN_F32, GN_SHAPE(50, 50)), true),
                     *grad = NULL;
            gn_array *y = gn_softmax(gn_matmul(x, gn_transpose(x)), 1);
            gn_backward(gn_mean(gn_log(y), GN_ALL));
            gn_gradients(gn_sum(gn_exp(x), GN_ALL), &x, 1, true, &grad);
            gn_item(gn_sum(grad, GN_ALL));
            gn_sum(gn_matmul(x, x), GN_ALL); // recorded, never used
        }
        gn_sync(g);
        gn_memory_get(g, &after);
        assert_int_equal(after.arrays, before.arrays);
    }
    close_context(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_float64),
        cmocka_unit_test(test_every_op_float32),
        cmocka_unit_test(test_derivatives_of_derivatives),
        cmocka_unit_test(test_digamma_twice),
        cmocka_unit_test(test_arcs_far_out),
        cmocka_unit_test(test_twice_of_small_sides),
        cmocka_unit_test(test_flat_far_out),
        cmocka_unit_test(test_prod_with_zeros),
        cmocka_unit_test(test_gradients_are_separate),
        cmocka_unit_test(test_ties_share),
        cmocka_unit_test(test_safe_at_the_edges),
        cmocka_unit_test(test_roots_of_nothing),
        cmocka_unit_test(test_steps_are_flat),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_mixed_dtypes),
        cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_what_is_recorded),
        cmocka_unit_test(test_requires_grad_refuses),
        cmocka_unit_test(test_gradients_without_record),
        cmocka_unit_test(test_what_can_be_a_loss),
        cmocka_unit_test(test_graph_is_used_once),
        cmocka_unit_test(test_gradients_by_name),
        cmocka_unit_test(test_overwritten_operands),
        cmocka_unit_test(test_long_chains),
        cmocka_unit_test(test_gradcheck_finds_errors),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_nothing_is_left),
    };
    return test_run(tests);
}
