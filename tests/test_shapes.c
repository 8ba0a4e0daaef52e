// Shapes that no array can have, arrays without elements and memory that nobody wrote: every public function that
// makes arrays, either with its name in the error and the context as good as before, or with NumPy's result.
// Then what is wrong with other arguments, transforms without memory, and the child of a fork.

#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "test.h"
#ifndef _WIN32
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#endif

#define P ((int64_t)1 << 30)
#define H INT64_MAX

enum {
    SHAPE = 1 << GN_ERROR_SHAPE,
    MEMORY = 1 << GN_ERROR_OUT_OF_MEMORY,
    ARGUMENT = 1 << GN_ERROR_ARGUMENT,
    DTYPE = 1 << GN_ERROR_DTYPE,
    UNSUPPORTED = 1 << GN_ERROR_UNSUPPORTED
};

// No array, an error of one of those kinds whose message begins with the function's name, and then all works on.
#define FAILS(kinds, name, call) fails_at(g, (kinds), name, (call) != NULL, __LINE__)
static void fails_at(gn_context *g, int kinds, const char *name, bool made, int line) {
    const gn_status status = gn_status_get(g);
    const size_t n = strlen(name);
    bool ok = !made && (kinds >> status & 1) && strncmp(gn_error(g), name, n) == 0;
    if (!ok || strncmp(gn_error(g) + n, ": ", 2) != 0) {
        print_error("%s: %s, %s: \"%s\"\n", name, made ? "an array" : "NULL", gn_status_string(status), gn_error(g));
        _fail(__FILE__, line);
    }
    gn_error_clear(g);
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(3));
    if (gn_item(gn_sum(gn_add(a, a), GN_ALL)) != 6.0 || gn_status_get(g) != GN_OK) {
        print_error("after %s: %s\n", name, gn_error(g));
        _fail(__FILE__, line);
    }
}

// ---- makers: one table, every shape that there is not

static gn_array *make_empty(gn_context *g, gn_shape s) { return gn_empty(g, GN_F32, s); }
static gn_array *make_zeros(gn_context *g, gn_shape s) { return gn_zeros(g, GN_I8, s); }
static gn_array *make_ones(gn_context *g, gn_shape s) { return gn_ones(g, GN_C64, s); }
static gn_array *make_full(gn_context *g, gn_shape s) { return gn_full(g, GN_F64, s, 3); }
static gn_array *make_rand(gn_context *g, gn_shape s) { return gn_rand(g, GN_F32, s); }
static gn_array *make_exponential(gn_context *g, gn_shape s) { return gn_exponential(g, GN_F32, s, 1); }
static gn_array *make_gamma(gn_context *g, gn_shape s) { return gn_gamma(g, GN_F32, s, 2, 1); }
static gn_array *make_beta(gn_context *g, gn_shape s) { return gn_beta(g, GN_F32, s, 2, 1); }
static gn_array *make_poisson(gn_context *g, gn_shape s) { return gn_poisson(g, GN_I16, s, 3); }
static gn_array *make_binomial(gn_context *g, gn_shape s) { return gn_binomial(g, GN_I16, s, 3, 0.5); }
static gn_array *make_truncated(gn_context *g, gn_shape s) { return gn_truncated_normal(g, GN_F32, s, 0, 1, -1, 1); }
static gn_array *make_choice(gn_context *g, gn_shape s) { return gn_choice(g, s, 5, true, NULL); }
static gn_array *make_randn(gn_context *g, gn_shape s) { return gn_randn(g, GN_F64, s); }
static gn_array *make_uniform(gn_context *g, gn_shape s) { return gn_uniform(g, GN_F16, s, 0, 1); }
static gn_array *make_normal(gn_context *g, gn_shape s) { return gn_normal(g, GN_F32, s, 0, 1); }
static gn_array *make_randint(gn_context *g, gn_shape s) { return gn_randint(g, GN_I32, s, 0, 9); }
static gn_array *make_bernoulli(gn_context *g, gn_shape s) { return gn_bernoulli(g, GN_BOOL, s, 0.5); }
static gn_array *make_he(gn_context *g, gn_shape s) { return gn_he_normal(g, GN_F32, s); }
static gn_array *make_xavier(gn_context *g, gn_shape s) { return gn_xavier_uniform(g, GN_F32, s); }
static gn_array *make_from(gn_context *g, gn_shape s) {
    float data[4] = {0};
    return gn_array_from(g, GN_F32, s, data);
}
static gn_array *make_wrap(gn_context *g, gn_shape s) {
    static double data[4];
    return gn_array_wrap(g, GN_F64, s, data, NULL, NULL);
}
static gn_array *make_broadcast(gn_context *g, gn_shape s) {
    return gn_broadcast_to(gn_scalar(g, GN_F32, 1), s);
}
static gn_array *make_reshape(gn_context *g, gn_shape s) {
    if (s.rank == 1 && s.dim[0] == -1) s.dim[0] = -2; // which is a question, and has an answer
    return gn_reshape(gn_ones(g, GN_F32, GN_SHAPE(4)), s);
}

typedef struct maker {
    const char *name;
    gn_array *(*fn)(gn_context *g, gn_shape s);
} maker;
static const maker makers[] = {
    {"gn_empty", make_empty},       {"gn_zeros", make_zeros},           {"gn_ones", make_ones},
    {"gn_full", make_full},         {"gn_rand", make_rand},             {"gn_randn", make_randn}, {"gn_exponential", make_exponential}, {"gn_gamma", make_gamma}, {"gn_beta", make_beta},
    {"gn_poisson", make_poisson}, {"gn_binomial", make_binomial}, {"gn_truncated_normal", make_truncated},
    {"gn_choice", make_choice},
    {"gn_uniform", make_uniform},   {"gn_normal", make_normal},         {"gn_randint", make_randint},
    {"gn_bernoulli", make_bernoulli}, {"gn_he_normal", make_he},        {"gn_xavier_uniform", make_xavier},
    {"gn_array_from", make_from},   {"gn_array_wrap", make_wrap},       {"gn_broadcast_to", make_broadcast},
    {"gn_reshape", make_reshape}};
enum { MAKERS = (int)(sizeof makers / sizeof makers[0]) };

static void test_makers(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_shape bad[12];
    int n = 0;
    bad[n++] = GN_SHAPE(-1);
    bad[n++] = GN_SHAPE(3, INT64_MIN);
    bad[n++] = GN_SHAPE(P, P);
    bad[n++] = GN_SHAPE(P, P, P, P);
    bad[n++] = GN_SHAPE(H);
    bad[n++] = GN_SHAPE(H, H);
    bad[n++] = GN_SHAPE(0, -1, 5);
    bad[n] = GN_SHAPE(1, 1);
    bad[n++].rank = -1;
    bad[n] = GN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1);
    bad[n++].rank = 9;
    bad[n] = GN_SHAPE(1, 1);
    bad[n++].rank = INT32_MAX;
    bad[n] = GN_SHAPE(1, 1);
    bad[n++].rank = INT32_MIN;
    for (int m = 0; m < MAKERS; m++)
        for (int i = 0; i < n; i++)
            GN_SCOPE(g) FAILS(SHAPE, makers[m].name, makers[m].fn(g, bad[i]));
    // A shape that there could be: no memory for it, where there is some at once.
    for (int m = 4; m < 10; m++)
        GN_SCOPE(g) FAILS(MEMORY, makers[m].name, makers[m].fn(g, GN_SHAPE(P, P / 8)));
    FAILS(MEMORY, "gn_eval", gn_eval(gn_zeros(g, GN_F32, GN_SHAPE(P, P / 8))));
    FAILS(MEMORY, "gn_eval", gn_eval(gn_sin(gn_empty(g, GN_F32, GN_SHAPE(P, P / 8)))));
    float f;
    assert_int_equal(gn_read(gn_empty(g, GN_F32, GN_SHAPE(P, P / 8)), &f, sizeof f), GN_ERROR_ARGUMENT);
    FAILS(ARGUMENT, "gn_read", NULL);
    // NumPy has those with a 0 among whatever else.
    for (int m = 0; m < 10; m++) {
        gn_array *a = makers[m].fn(g, GN_SHAPE(H, 0, H));
        expect_shape(a, H, 0, H);
        assert_int_equal(gn_size(a), 0);
        assert_int_equal(gn_read(a, NULL, 0), GN_OK);
    }
}

static void test_counts(void **state) {
    gn_context *g = (gn_context *)*state;
    FAILS(SHAPE, "gn_eye", gn_eye(g, GN_F32, -1, 3, 0));
    FAILS(SHAPE, "gn_eye", gn_eye(g, GN_F32, P, P, 0));
    FAILS(SHAPE, "gn_eye", gn_eye(g, GN_BOOL, H, 1, 0));
    FAILS(MEMORY, "gn_eye", gn_eye(g, GN_F32, 65, P * P / 256, 0));
    expect_values(gn_eye(g, GN_F32, 2, 3, INT64_MIN), 0, 0, 0, 0, 0, 0);
    expect_values(gn_eye(g, GN_F32, 2, 3, H), 0, 0, 0, 0, 0, 0);
    expect_values(gn_any(gn_eye(g, GN_F32, 65, 65, INT64_MIN), GN_ALL), 0);
    expect_shape(gn_eye(g, GN_F32, H, 0, H), H, 0);
    FAILS(SHAPE, "gn_arange", gn_arange(g, GN_I64, 0, 9e18, 1));
    FAILS(SHAPE, "gn_arange", gn_arange(g, GN_I64, 0, 1e300, 1));
    FAILS(ARGUMENT, "gn_arange", gn_arange(g, GN_F32, 0, 1, 0));
    FAILS(ARGUMENT, "gn_arange", gn_arange(g, GN_F32, 0, (double)INFINITY, 1));
    FAILS(MEMORY, "gn_arange", gn_arange(g, GN_F32, 0, 1e17, 1));
    expect_shape(gn_arange(g, GN_F32, 5, 1, 1), 0);
    FAILS(SHAPE, "gn_linspace", gn_linspace(g, GN_F32, 0, 1, -1));
    FAILS(SHAPE, "gn_linspace", gn_linspace(g, GN_F32, 0, 1, H));
    expect_shape(gn_linspace(g, GN_F32, 0, 1, 0), 0);
    FAILS(SHAPE, "gn_linspace_open", gn_linspace_open(g, GN_F32, 0, 1, H));
    FAILS(SHAPE, "gn_permutation", gn_permutation(g, GN_I64, -1));
    FAILS(SHAPE, "gn_permutation", gn_permutation(g, GN_I64, H));
    FAILS(ARGUMENT, "gn_fftfreq", gn_fftfreq(g, GN_F32, -1, 1));
    FAILS(SHAPE, "gn_fftfreq", gn_fftfreq(g, GN_F32, H, 1));
    FAILS(SHAPE, "gn_rfftfreq", gn_rfftfreq(g, GN_F64, H, 1));
    FAILS(MEMORY, "gn_rfftfreq", gn_rfftfreq(g, GN_F64, P * P / 16, 1));
    FAILS(SHAPE | UNSUPPORTED, "gn_vulkan_wrap", gn_vulkan_wrap(g, 1, 0, GN_F32, GN_SHAPE(H)));
    FAILS(SHAPE, "gn_one_hot", gn_one_hot(gn_zeros(g, GN_I32, GN_SHAPE(P)), GN_F32, P));
    FAILS(ARGUMENT, "gn_one_hot", gn_one_hot(gn_zeros(g, GN_I32, GN_SHAPE(3)), GN_F32, -1));
    FAILS(SHAPE, "gn_one_hot", gn_one_hot(gn_zeros(g, GN_I32, GN_SHAPE(3)), GN_F32, H));
    expect_shape(gn_one_hot(gn_zeros(g, GN_I32, GN_SHAPE(0)), GN_F32, H), 0, H);
    test_write_file("huge.npy", "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': "
                                "(1152921504606846976, 2), }                                        \n", 128);
    FAILS(SHAPE, "gn_load_npy", gn_load_npy(g, "huge.npy"));
}

// ---- elementwise work: results that grow by broadcasting

typedef struct unary_entry {
    const char *name;
    gn_array *(*fn)(gn_array *a);
} unary_entry;
#define ONE(fn) {#fn, fn}
static const unary_entry unary[] = {
    ONE(gn_sqrt),  ONE(gn_rsqrt), ONE(gn_cbrt),  ONE(gn_recip), ONE(gn_exp),     ONE(gn_exp2),     ONE(gn_expm1),
    ONE(gn_log),   ONE(gn_log2),  ONE(gn_log10), ONE(gn_log1p), ONE(gn_sin),     ONE(gn_cos),      ONE(gn_tan),
    ONE(gn_asin),  ONE(gn_acos),  ONE(gn_atan),  ONE(gn_sinh),  ONE(gn_cosh),    ONE(gn_tanh),     ONE(gn_asinh),
    ONE(gn_acosh), ONE(gn_atanh), ONE(gn_erf),   ONE(gn_erfc), ONE(gn_erfinv), ONE(gn_lgamma), ONE(gn_digamma), ONE(gn_neg),   ONE(gn_sigmoid), ONE(gn_silu),     ONE(gn_gelu), ONE(gn_gelu_tanh),
    ONE(gn_abs),   ONE(gn_sign),  ONE(gn_floor), ONE(gn_ceil),  ONE(gn_square),  ONE(gn_softplus), ONE(gn_round),
    ONE(gn_trunc), ONE(gn_relu),  ONE(gn_isnan), ONE(gn_isinf), ONE(gn_isfinite), ONE(gn_logical_not), ONE(gn_copy),
    ONE(gn_real),  ONE(gn_imag),  ONE(gn_conj),  ONE(gn_angle), ONE(gn_detach),  ONE(gn_zeros_like), ONE(gn_ones_like), ONE(gn_empty_like)};
typedef struct binary_entry {
    const char *name;
    gn_array *(*fn)(gn_array *a, gn_array *b);
} binary_entry;
static const binary_entry binary[] = {
    ONE(gn_add), ONE(gn_sub), ONE(gn_mul), ONE(gn_div), ONE(gn_floor_div), ONE(gn_mod), ONE(gn_pow), ONE(gn_atan2),
    ONE(gn_hypot), ONE(gn_minimum), ONE(gn_maximum), ONE(gn_eq), ONE(gn_ne), ONE(gn_lt), ONE(gn_le), ONE(gn_gt),
    ONE(gn_ge), ONE(gn_logical_and), ONE(gn_logical_or), ONE(gn_logical_xor), ONE(gn_and), ONE(gn_or), ONE(gn_xor),
    ONE(gn_shl), ONE(gn_shr), ONE(gn_complex)};
typedef struct scalar_entry {
    const char *name;
    gn_array *(*fn)(gn_array *a, double b);
} scalar_entry;
static const scalar_entry scalar[] = {
    ONE(gn_add_s), ONE(gn_sub_s), ONE(gn_mul_s), ONE(gn_div_s), ONE(gn_floor_div_s), ONE(gn_mod_s), ONE(gn_pow_s),
    ONE(gn_atan2_s), ONE(gn_hypot_s), ONE(gn_minimum_s), ONE(gn_maximum_s), ONE(gn_eq_s), ONE(gn_ne_s), ONE(gn_lt_s),
    ONE(gn_le_s), ONE(gn_gt_s), ONE(gn_ge_s), ONE(gn_logical_and_s), ONE(gn_logical_or_s), ONE(gn_logical_xor_s),
    ONE(gn_rsub_s), ONE(gn_rdiv_s), ONE(gn_rpow_s), ONE(gn_leaky_relu), ONE(gn_elu), ONE(gn_full_like)};
static const scalar_entry scalar_of_integers[] = {ONE(gn_and_s), ONE(gn_or_s), ONE(gn_xor_s), ONE(gn_shl_s), ONE(gn_shr_s)};
#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static gn_array *wide(gn_context *g, gn_dtype t, gn_shape s) { return gn_broadcast_to(gn_ones(g, t, GN_SHAPE()), s); }

static void test_elementwise(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *none = gn_empty(g, GN_F32, GN_SHAPE(H, 0, 3));
    for (int i = 0; i < COUNT(unary); i++) expect_shape(gn_eval(unary[i].fn(none)), H, 0, 3);
    for (int i = 0; i < COUNT(scalar); i++) expect_shape(gn_eval(scalar[i].fn(none, 2)), H, 0, 3);
    gn_array *integers = gn_empty(g, GN_I32, GN_SHAPE(H, 0, 3));
    for (int i = 0; i < COUNT(scalar_of_integers); i++)
        expect_shape(gn_eval(scalar_of_integers[i].fn(integers, 2)), H, 0, 3);
    for (int i = 0; i < COUNT(binary); i++) {
        const bool whole = strstr("gn_and gn_or gn_xor gn_shl gn_shr", binary[i].name) != NULL;
        gn_dtype t = whole ? GN_I32 : GN_F32;
        gn_array *row = wide(g, t, GN_SHAPE(P)), *column = wide(g, t, GN_SHAPE(P, 1));
        FAILS(SHAPE, binary[i].name, binary[i].fn(row, column));
        FAILS(SHAPE, binary[i].name, binary[i].fn(row, gn_ones(g, t, GN_SHAPE(7))));
        FAILS(SHAPE, binary[i].name, binary[i].fn(gn_zeros(g, t, GN_SHAPE(2, 0)), gn_ones(g, t, GN_SHAPE(7))));
        gn_array *y = binary[i].fn(gn_zeros(g, t, GN_SHAPE(H, 1, 0)), gn_empty(g, t, GN_SHAPE(5, 1)));
        expect_shape(gn_eval(y), H, 5, 0);
    }
    gn_array *row = wide(g, GN_F32, GN_SHAPE(P)), *column = wide(g, GN_F32, GN_SHAPE(P, 1));
    FAILS(SHAPE, "gn_where", gn_where(gn_gt_s(row, 0), row, column));
    FAILS(SHAPE, "gn_where", gn_where(gn_gt_s(wide(g, GN_F32, GN_SHAPE(P, 1, 1)), 0), row, gn_scalar(g, GN_F32, 0)));
    FAILS(SHAPE, "gn_fma", gn_fma(row, row, column));
    FAILS(SHAPE, "gn_lerp", gn_lerp(row, column, row));
    expect_shape(gn_eval(gn_clamp(none, 0, 1)), H, 0, 3);
    expect_shape(gn_eval(gn_where(none, none, none)), H, 0, 3);
    expect_shape(gn_cast(none, GN_C128), H, 0, 3);
    FAILS(SHAPE, "gn_mse_loss", gn_mse_loss(row, column));
    FAILS(MEMORY, "gn_eval", gn_eval(gn_cast(wide(g, GN_F32, GN_SHAPE(P, P / 8)), GN_C128)));
    // A gradient of that shape is an error of gn_backward's.
    gn_array *x = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(1)), true);
    gn_array *y = gn_mul(gn_empty(g, GN_F32, GN_SHAPE(0)), x);
    assert_int_equal(gn_backward(gn_sum(y, GN_ALL)), GN_OK);
    expect_values(gn_grad(x), 0);
}

// ---- views, joins and gathers

static void test_views(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *none = gn_zeros(g, GN_F32, GN_SHAPE(H, 0)), *eight = gn_ones(g, GN_F32, GN_SHAPE(1, 1, 1, 1, 1, 1, 1, 2));
    gn_array *huge = wide(g, GN_F32, GN_SHAPE(P * P / 16)), *many[9];
    FAILS(SHAPE, "gn_reshape", gn_reshape(none, GN_SHAPE(0, -1)));
    FAILS(SHAPE, "gn_reshape", gn_reshape(none, GN_SHAPE(-1, -1)));
    FAILS(SHAPE, "gn_reshape", gn_reshape(none, GN_SHAPE(H, H)));
    expect_shape(gn_reshape(none, GN_SHAPE(-1, 3)), 0, 3);
    expect_shape(gn_reshape(none, GN_SHAPE(H, H, 0)), H, H, 0);
    expect_shape(gn_ravel(none), 0);
    FAILS(SHAPE, "gn_expand_dims", gn_expand_dims(eight, 0));
    FAILS(SHAPE, "gn_index", gn_index(eight, "None, ..., None"));
    FAILS(SHAPE, "gn_broadcast_to", gn_broadcast_to(none, GN_SHAPE(H, 3)));
    expect_shape(gn_broadcast_to(none, GN_SHAPE(H, H, 0)), H, H, 0);
    expect_shape(gn_transpose(none), 0, H);
    expect_shape(gn_swap_axes(none, 0, 1), 0, H);
    expect_shape(gn_move_axis(none, 0, 1), 0, H);
    const int turned[] = {1, 0};
    expect_shape(gn_permute(none, 1, 0), 0, H);
    expect_shape(gn_permute_axes(none, turned, 2), 0, H);
    expect_shape(gn_flip(none, GN_ALL), H, 0);
    expect_shape(gn_squeeze(gn_expand_dims(none, 1), 1), H, 0);
    expect_shape(gn_slice(none, 0, H - 1, INT64_MIN + 1, -1), H - 1, 0);
    expect_shape(gn_slice(none, 0, 5, H, 2), H / 2 - 2, 0);
    expect_shape(gn_slice(none, 1, -5, 5, H), H, 0);
    expect_shape(gn_at(none, H - 1), 0);
    expect_shape(gn_at(none, -H), 0);
    FAILS(ARGUMENT, "gn_at", gn_at(none, H));
    FAILS(ARGUMENT, "gn_at", gn_at(none, INT64_MIN));
    FAILS(ARGUMENT, "gn_at", gn_at(gn_transpose(none), 0));
    expect_shape(gn_index(none, "::-9223372036854775807, 0:9223372036854775807"), 1, 0);
    // Steps as long as can be take one element; GN_NONE, the one beyond, leaves the step out.
    gn_array *a = gn_arange(g, GN_F32, 0, 5, 1);
    expect_values(gn_slice(a, 0, GN_NONE, GN_NONE, H), 0);
    expect_values(gn_slice(a, 0, GN_NONE, GN_NONE, INT64_MIN + 1), 4);
    expect_values(gn_slice(a, 0, 1, H, H), 1);
    expect_values(gn_slice(a, 0, INT64_MIN + 1, 2, GN_NONE), 0, 1);
    expect_values(gn_slice(a, 0, 3, GN_NONE, INT64_MIN), 3, 4);
    for (int i = 0; i < 9; i++) many[i] = none;
    FAILS(SHAPE, "gn_concat", gn_concat(many, 2, 0));
    FAILS(SHAPE, "gn_concat", gn_concat(many, 9, 0));
    expect_shape(gn_concat(many, 9, 1), H, 0);
    expect_shape(gn_stack(many, 9, 0), 9, H, 0);
    for (int i = 0; i < 9; i++) many[i] = eight;
    FAILS(SHAPE, "gn_stack", gn_stack(many, 2, 0));
    for (int i = 0; i < 9; i++) many[i] = huge;
    FAILS(SHAPE, "gn_concat", gn_concat(many, 9, 0));
    FAILS(SHAPE, "gn_stack", gn_stack(many, 9, 0));
    FAILS(MEMORY, "gn_concat", gn_concat(many, 3, 0));
    gn_array *places = wide(g, GN_I32, GN_SHAPE(P * P / 16)), *nowhere = gn_empty(g, GN_I32, GN_SHAPE(0, 3));
    FAILS(SHAPE | MEMORY, "gn_take", gn_take(gn_ones(g, GN_F32, GN_SHAPE(2, 100)), places, 0));
    FAILS(SHAPE, "gn_take", gn_take(eight, nowhere, 0));
    FAILS(ARGUMENT, "gn_take", gn_take(gn_zeros(g, GN_F32, GN_SHAPE(0, 2)), gn_zeros(g, GN_I32, GN_SHAPE(1)), 0));
    expect_shape(gn_take(none, gn_zeros(g, GN_I32, GN_SHAPE(4, 2)), 0), 4, 2, 0);
    expect_shape(gn_take(none, nowhere, 1), H, 0, 3);
    expect_shape(gn_take(gn_ones(g, GN_F32, GN_SHAPE(2, 5)), nowhere, 0), 0, 3, 5);
}

// ---- reductions

typedef struct reduction_entry {
    const char *name;
    gn_array *(*fn)(gn_array *a, gn_axes axes);
} reduction_entry;
static gn_array *var(gn_array *a, gn_axes axes) { return gn_var(a, axes, 1); }
static gn_array *std(gn_array *a, gn_axes axes) { return gn_std(a, axes, 0); }
static const reduction_entry reductions[] = {
    ONE(gn_sum), ONE(gn_prod), ONE(gn_any), ONE(gn_all), ONE(gn_mean), {"gn_var", var}, {"gn_std", std},
    ONE(gn_norm), ONE(gn_logsumexp), ONE(gn_count_nonzero), ONE(gn_min), ONE(gn_max), ONE(gn_argmin), ONE(gn_argmax)};

// Arrangements of arrays without elements, and results that are too large.
static void test_arrangements(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *none = gn_zeros(g, GN_F32, GN_SHAPE(H, 0)), *eight = gn_ones(g, GN_F32, GN_SHAPE(1, 1, 1, 1, 1, 1, 1, 2));
    gn_array *huge = wide(g, GN_F32, GN_SHAPE(P * P / 16)), *a = gn_arange(g, GN_F32, 0, 3, 1), *part[3];
    const int64_t far[] = {H, 0}, one = 1, none_of_them = 0;
    expect_shape(gn_roll(none, H, GN_ALL), H, 0);
    expect_shape(gn_roll(none, INT64_MIN, 0), H, 0);
    expect_values(gn_roll(a, INT64_MIN, 0), 2, 0, 1); // -2^63 is 1 modulo 3
    expect_values(gn_roll(a, H, 0), 2, 0, 1);
    FAILS(MEMORY, "gn_roll", gn_roll(huge, 1, 0));
    FAILS(SHAPE, "gn_tile", gn_tile(a, GN_SHAPE(H)));
    FAILS(SHAPE, "gn_tile", gn_tile(a, GN_SHAPE(P, P)));
    FAILS(MEMORY, "gn_tile", gn_tile(a, GN_SHAPE(P * P / 64)));
    expect_shape(gn_tile(none, GN_SHAPE(H, 1, 1)), H, H, 0);
    expect_shape(gn_tile(a, GN_SHAPE(P, 0)), P, 0);
    expect_shape(gn_tile(eight, GN_SHAPE(3, 1, 3, 1, 2, 1, 2, 2)), 3, 1, 3, 1, 2, 1, 2, 4);
    FAILS(SHAPE, "gn_repeat", gn_repeat(a, H, 0));
    FAILS(MEMORY, "gn_repeat", gn_repeat(a, P * P / 64, 0));
    expect_shape(gn_repeat(none, H, 1), H, 0);
    expect_shape(gn_repeat(none, 0, 0), 0, 0);
    expect_shape(gn_repeat(none, 2, GN_ALL), 0);
    FAILS(SHAPE, "gn_pad", gn_pad(a, far, 2, GN_PAD_CONSTANT, 0));
    FAILS(SHAPE, "gn_pad", gn_pad(a, far, 1, GN_PAD_WRAP, 0));
    FAILS(SHAPE, "gn_pad", gn_pad(none, &one, 1, GN_PAD_CONSTANT, 0));
    expect_shape(gn_pad(none, &none_of_them, 1, GN_PAD_REFLECT, 0), H, 0);
    FAILS(SHAPE, "gn_sliding_window", gn_sliding_window(eight, 1, 0));
    FAILS(ARGUMENT, "gn_sliding_window", gn_sliding_window(none, 1, 1));
    expect_shape(gn_sliding_window(none, H, 0), 1, 0, H);
    expect_shape(gn_sliding_window(none, 5, 0), H - 4, 0, 5);
    expect_shape(gn_diff(none, INT32_MAX, 1), H, 0);
    expect_shape(gn_diff(none, 2, 0), H - 2, 0);
    expect_shape(gn_diff(a, INT32_MAX, 0), 0);
    assert_int_equal(gn_split(none, 3, 1, part), GN_OK);
    for (int i = 0; i < 3; i++) expect_shape(part[i], H, 0);
    assert_int_equal(gn_array_split(none, 2, 0, part), GN_OK);
    expect_shape(part[0], H / 2 + 1, 0);
    assert_int_equal(gn_unstack(none, 1, NULL, 0), GN_OK);
    gn_array *places = gn_zeros(g, GN_I64, GN_SHAPE(H, 0)), *truth = gn_zeros(g, GN_BOOL, GN_SHAPE(5));
    expect_shape(gn_take_along(none, places, 0), H, 0);
    expect_shape(gn_take_along(none, gn_zeros(g, GN_I32, GN_SHAPE(1, 0)), 1), H, 0);
    FAILS(SHAPE, "gn_take_along", gn_take_along(none, gn_zeros(g, GN_I32, GN_SHAPE(5)), 0));
    FAILS(SHAPE, "gn_take_along", gn_take_along(a, gn_zeros(g, GN_I32, GN_SHAPE(1, 3)), 0));
    expect_shape(gn_put_along(none, places, none, 1), H, 0);
    FAILS(SHAPE, "gn_put_along", gn_put_along(a, gn_zeros(g, GN_I32, GN_SHAPE(2)), a, 0));
    expect_shape(gn_scatter_add(none, places, none, 0), H, 0);
    FAILS(ARGUMENT, "gn_scatter_add", gn_scatter_add(gn_zeros(g, GN_F32, GN_SHAPE(0)), gn_zeros(g, GN_I32, GN_SHAPE(2)), gn_ones(g, GN_F32, GN_SHAPE()), 0));
    expect_shape(gn_scatter_max(none, places, none, 0), H, 0);
    expect_shape(gn_scatter_min(none, places, none, 0), H, 0);
    expect_shape(gn_nonzero(none), 2, 0);
    expect_shape(gn_flatnonzero(none), 0);
    FAILS(SHAPE, "gn_compress", gn_compress(truth, a, 0));
    gn_array *many = gn_full(g, GN_I64, GN_SHAPE(1), 4e18);
    FAILS(SHAPE, "gn_repeat_counts", gn_repeat_counts(a, many, 0));
    FAILS(SHAPE, "gn_repeat_counts", gn_repeat_counts(none, gn_zeros(g, GN_I64, GN_SHAPE(3)), 1));
    expect_shape(gn_repeat_counts(none, many, 1), H, 0);
    expect_shape(gn_compress(gn_ones(g, GN_BOOL, GN_SHAPE(1)), none, 0), 1, 0);
    expect_shape(gn_compress(gn_zeros(g, GN_BOOL, GN_SHAPE(0)), none, GN_ALL), 0);
    FAILS(SHAPE, "gn_mask", gn_mask(none, gn_zeros(g, GN_BOOL, GN_SHAPE(3))));
    expect_shape(gn_mask(none, gn_zeros(g, GN_BOOL, GN_SHAPE(H, 0))), 0);
    expect_shape(gn_mask(none, gn_ones(g, GN_BOOL, GN_SHAPE())), 1, H, 0);
    FAILS(SHAPE, "gn_mask", gn_mask(eight, gn_ones(g, GN_BOOL, GN_SHAPE())));
    FAILS(SHAPE, "gn_logspace", gn_logspace(g, GN_F32, 0, 1, -1, 10));
    expect_shape(gn_logspace(g, GN_F32, 0, 1, 0, 10), 0);
    gn_array *lines[] = {huge, huge, huge};
    assert_int_equal(gn_meshgrid(lines, 3, true, part), GN_ERROR_SHAPE);
    FAILS(SHAPE, "gn_meshgrid", part[0]);
}

// Compositions of arrays without elements.
static void test_compositions(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *none = gn_empty(g, GN_F32, GN_SHAPE(H, 0, 3)), *rows = gn_zeros(g, GN_F32, GN_SHAPE(3, 0)), *log = NULL;
    gn_array *row = wide(g, GN_F32, GN_SHAPE(P)), *column = wide(g, GN_F32, GN_SHAPE(P, 1)), *points = gn_empty(g, GN_F32, GN_SHAPE(H, 0, 0));
    expect_shape(gn_eval(gn_sinc(none)), H, 0, 3);
    expect_shape(gn_eval(gn_signbit(none)), H, 0, 3);
    expect_shape(gn_eval(gn_nextafter(none, none)), H, 0, 3);
    expect_shape(gn_eval(gn_shuffle(none, 1)), H, 0, 3);
    expect_shape(gn_eval(gn_invert(gn_empty(g, GN_I16, GN_SHAPE(H, 0)))), H, 0);
    expect_shape(gn_full_int(g, GN_I64, GN_SHAPE(P, 3), 7), P, 3);
    FAILS(SHAPE, "gn_full_from", gn_full_from(g, GN_C64, GN_SHAPE(P, P), "one element"));
    expect_shape(gn_full_from(g, GN_C64, GN_SHAPE(H, 0), "one element"), H, 0);
    FAILS(SHAPE, "gn_nextafter", gn_nextafter(row, column));
    expect_shape(gn_eval(gn_copysign(none, none)), H, 0, 3);
    expect_shape(gn_eval(gn_logaddexp(none, none)), H, 0, 3);
    expect_shape(gn_eval(gn_clip(none, none, NULL)), H, 0, 3);
    expect_shape(gn_eval(gn_isclose(none, none, 0, 0, true)), H, 0, 3);
    expect_shape(gn_eval(gn_nan_to_num(none, 0, 0, 0)), H, 0, 3);
    FAILS(SHAPE, "gn_logaddexp", gn_logaddexp(row, column));
    FAILS(SHAPE, "gn_copysign", gn_copysign(row, column));
    FAILS(SHAPE, "gn_clip", gn_clip(row, column, NULL));
    FAILS(SHAPE, "gn_isclose", gn_isclose(row, column, 0, 0, false));
    FAILS(SHAPE, "gn_kron", gn_kron(row, column));
    FAILS(SHAPE, "gn_vecdot", gn_vecdot(rows, gn_ones(g, GN_F32, GN_SHAPE(7, 2)), 0));
    FAILS(SHAPE, "gn_vecdot", gn_vecdot(wide(g, GN_F32, GN_SHAPE(P, 1, 2)), wide(g, GN_F32, GN_SHAPE(P, 2)), -1));
    FAILS(SHAPE, "gn_ptp", gn_ptp(rows, 1));
    FAILS(SHAPE, "gn_nanmax", gn_nanmax(rows, 1));
    FAILS(SHAPE, "gn_nanmin", gn_nanmin(rows, 1));
    expect_values(gn_nansum(rows, 1), 0, 0, 0);
    expect_values(gn_nanprod(rows, 1), 1, 1, 1);
    expect_values(gn_nanmean(rows, 1), NAN, NAN, NAN);
    expect_values(gn_nanvar(rows, 1, 0), NAN, NAN, NAN);
    expect_values(gn_nanstd(rows, 1, 0), NAN, NAN, NAN);
    expect_values(gn_average(rows, rows, 1), NAN, NAN, NAN);
    expect_shape(gn_cov(gn_transpose(rows), 1), 0, 0);
    expect_shape(gn_corrcoef(gn_transpose(rows)), 0, 0);
    FAILS(SHAPE, "gn_cov", gn_cov(none, 1));
    expect_shape(gn_kron(rows, gn_ones(g, GN_F32, GN_SHAPE(2, 2))), 6, 0);
    expect_shape(gn_eval(gn_cross(none, none, -1)), H, 0, 3);
    expect_values(gn_vector_norm(rows, 1, 3), 0, 0, 0);
    FAILS(SHAPE, "gn_vector_norm", gn_vector_norm(rows, 1, (double)INFINITY));
    expect_values(gn_matrix_norm(rows, GN_NORM_NUCLEAR), 0);
    FAILS(SHAPE, "gn_matrix_norm", gn_matrix_norm(rows, GN_NORM_2));
    FAILS(SHAPE, "gn_expm", gn_expm(rows));
    expect_shape(gn_eval(gn_expm(points)), H, 0, 0);
    FAILS(SHAPE, "gn_matrix_power", gn_matrix_power(rows, 2));
    expect_shape(gn_matrix_power(points, 3), H, 0, 0);
    expect_shape(gn_eigvalsh(points), H, 0);
    expect_shape(gn_svdvals(rows), 0);
    expect_shape(gn_pinv(rows, -1), 0, 3);
    expect_values(gn_matrix_rank(rows, -1), 0);
    expect_shape(gn_lstsq(rows, gn_ones(g, GN_F32, GN_SHAPE(3)), -1, NULL, NULL), 0);
    expect_values(gn_slogdet(gn_empty(g, GN_F32, GN_SHAPE(2, 0, 0)), &log), 1, 1);
    expect_values(log, 0, 0);
}

// Samples along an axis, places by several indices.
static void test_samples(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *none = gn_empty(g, GN_F32, GN_SHAPE(H, 0)), *row = gn_arange(g, GN_F32, 0, 3, 1), *huge = wide(g, GN_F32, GN_SHAPE(P * P / 16));
    gn_array *nobody = gn_empty(g, GN_F32, GN_SHAPE(0)), *eight = gn_ones(g, GN_F32, GN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), *deep = gn_zeros(g, GN_I32, GN_SHAPE(1, 1));
    gn_array *index[9], *places = gn_zeros(g, GN_I64, GN_SHAPE(0, H));
    for (int i = 0; i < 9; i++) index[i] = gn_full(g, GN_I32, GN_SHAPE(2), 1);
    expect_shape(gn_eval(gn_gradient(none, NULL, 1, 0)), H, 0);
    FAILS(SHAPE, "gn_gradient", gn_gradient(none, NULL, 1, 1));
    FAILS(SHAPE, "gn_gradient", gn_gradient(none, row, 1, 0));
    FAILS(MEMORY, "gn_gradient", gn_eval(gn_gradient(huge, NULL, 1, 0)));
    expect_values(gn_trapezoid(nobody, NULL, 1, 0), 0);
    expect_shape(gn_eval(gn_trapezoid(none, NULL, 1, 0)), 0);
    FAILS(SHAPE, "gn_trapezoid", gn_trapezoid(none, row, 1, 1));
    FAILS(ARGUMENT, "gn_trapezoid", gn_trapezoid(none, NULL, 1, 2));
    expect_shape(gn_eval(gn_unwrap(none, 0)), H, 0);
    expect_shape(gn_eval(gn_unwrap(none, 1)), H, 0);
    FAILS(SHAPE, "gn_polyfit", gn_polyfit(nobody, nobody, 0));
    FAILS(SHAPE | MEMORY, "gn_polyfit", gn_polyfit(huge, huge, 1));
    expect_shape(gn_eval(gn_polyval(nobody, none)), H, 0);
    FAILS(SHAPE, "gn_polyval", gn_polyval(huge, row));
    expect_shape(gn_roots(nobody), 0);
    FAILS(SHAPE, "gn_roots", gn_roots(none));
    FAILS(SHAPE | MEMORY, "gn_roots", gn_roots(gn_ones(g, GN_F32, GN_SHAPE(P >> 9))));
    FAILS(SHAPE, "gn_vander", gn_vander(row, H, true));
    FAILS(SHAPE, "gn_vander", gn_vander(none, 2, true));
    expect_shape(gn_vander(nobody, P, true), 0, P);
    expect_shape(gn_vander(row, 0, false), 3, 0);
    expect_shape(gn_hanning(g, GN_F32, 0), 0);
    FAILS(SHAPE, "gn_hamming", gn_hamming(g, GN_F64, -1));
    FAILS(SHAPE | MEMORY, "gn_blackman", gn_blackman(g, GN_F64, H));
    expect_shape(gn_diag(none, -5), 0);
    FAILS(SHAPE, "gn_diag", gn_diag(row, INT64_MIN));
    FAILS(SHAPE, "gn_diag", gn_diag(row, P * 2));
    FAILS(SHAPE, "gn_diag", gn_diag(eight, 0));
    expect_shape(gn_rot90(none, INT32_MIN + 1, 0, 1), 0, H);
    FAILS(ARGUMENT, "gn_rot90", gn_rot90(none, 1, 1, -1));
    FAILS(ARGUMENT, "gn_rot90", gn_rot90(row, 1, 0, 1));
    expect_shape(gn_eval(gn_masked_fill(none, gn_zeros(g, GN_BOOL, GN_SHAPE(0)), 2)), H, 0);
    FAILS(SHAPE, "gn_masked_fill", gn_masked_fill(none, gn_zeros(g, GN_BOOL, GN_SHAPE(3)), 2));
    FAILS(ARGUMENT, "gn_masked_fill", gn_masked_fill(gn_zeros(g, GN_I8, GN_SHAPE(3)), gn_zeros(g, GN_BOOL, GN_SHAPE(3)), 200));
    FAILS(SHAPE, "gn_nanargmax", gn_nanargmax(none, 1));
    FAILS(SHAPE, "gn_nanargmin", gn_nanargmin(nobody, GN_ALL));
    expect_shape(gn_eval(gn_nancumsum(none, 0)), H, 0);
    expect_shape(gn_eval(gn_nancumprod(none, GN_ALL)), 0);
    expect_shape(gn_nanmedian(none, 0), 0);
    expect_values(gn_nanquantile(nobody, 0.5, GN_KEEP(0)), NAN);
    FAILS(ARGUMENT, "gn_nanpercentile", gn_nanpercentile(row, 101, 0));
    FAILS(SHAPE, "gn_cond", gn_cond(row));
    FAILS(SHAPE, "gn_cond", gn_cond(gn_transpose(gn_slice(none, 0, 0, 3, 1))));
    FAILS(ARGUMENT, "gn_index_arrays", gn_index_arrays(row, index, 0));
    FAILS(ARGUMENT, "gn_index_arrays", gn_index_arrays(row, index, 2));
    FAILS(ARGUMENT, "gn_index_arrays", gn_index_arrays(eight, index, 9));
    FAILS(SHAPE, "gn_index_arrays", gn_index_arrays(eight, &deep, 1));
    FAILS(SHAPE, "gn_index_arrays", gn_index_arrays(gn_transpose(none), index, 1));
    FAILS(ARGUMENT, "gn_index_arrays", gn_index_arrays(nobody, index, 1));
    expect_shape(gn_index_arrays(none, &places, 1), 0, H, 0);
    index[8] = row;
    FAILS(DTYPE, "gn_index_arrays", gn_index_arrays(row, &index[8], 1));
    assert_int_equal(gn_assign_arrays(row, index, 1, gn_zeros(g, GN_F32, GN_SHAPE(3))), GN_ERROR_SHAPE);
    FAILS(SHAPE, "gn_assign_arrays", NULL);
    assert_int_equal(gn_assign_arrays(row, index, 1, NULL), GN_ERROR_ARGUMENT);
    FAILS(ARGUMENT, "gn_assign_arrays", NULL);
    assert_int_equal(gn_assign_arrays(row, index, 1, gn_full(g, GN_F32, GN_SHAPE(), 7)), GN_OK);
    expect_values(row, 0, 7, 2);
    FAILS(SHAPE, "gn_ravel_multi_index", gn_ravel_multi_index(index, 2, GN_SHAPE(H, H)));
    FAILS(ARGUMENT, "gn_ravel_multi_index", gn_ravel_multi_index(index, 2, GN_SHAPE(3)));
    expect_values(gn_ravel_multi_index(index, 3, GN_SHAPE(2, P, 5)), (double)(P + 1) * 5 + 1, (double)(P + 1) * 5 + 1);
    expect_values(gn_ravel_multi_index(index, 2, GN_SHAPE(1, 5)), 5, 5);
    FAILS(SHAPE, "gn_unravel_index", gn_unravel_index(index[0], GN_SHAPE()));
    FAILS(SHAPE, "gn_unravel_index", gn_unravel_index(index[0], GN_SHAPE(-1)));
    FAILS(DTYPE, "gn_unravel_index", gn_unravel_index(row, GN_SHAPE(3)));
    FAILS(SHAPE, "gn_unravel_index", gn_unravel_index(gn_zeros(g, GN_I32, GN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), GN_SHAPE(3)));
    expect_shape(gn_eval(gn_unravel_index(places, GN_SHAPE(3, 2))), 2, 0, H);
}

// Scans, sorts and what stands on them.
static void test_orders(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *none = gn_empty(g, GN_F32, GN_SHAPE(H, 0)), *both = gn_empty(g, GN_F32, GN_SHAPE(H, 0, H)), *more, *inverse, *counts;
    gn_array *row = gn_arange(g, GN_F32, 0, 3, 1), *nobody = gn_empty(g, GN_F32, GN_SHAPE(0)), *huge = wide(g, GN_F32, GN_SHAPE(P * P / 16));
    gn_array *many[] = {none, none}, *uneven[] = {row, nobody};
    expect_shape(gn_cumsum(none, 0), H, 0);
    expect_shape(gn_cumprod(none, 1), H, 0);
    expect_shape(gn_cummax(both, -1), H, 0, H);
    expect_shape(gn_cummin(none, GN_ALL), 0);
    expect_shape(gn_logcumsumexp(none, 0), H, 0);
    FAILS(MEMORY, "gn_cumsum", gn_cumsum(huge, 0));
    FAILS(MEMORY, "gn_sort", gn_sort(huge, 0, true));
    expect_values(gn_cumsum(gn_full(g, GN_F32, GN_SHAPE(), 3), GN_ALL), 3);
    FAILS(ARGUMENT, "gn_cumsum", gn_cumsum(gn_full(g, GN_F32, GN_SHAPE(), 3), 0));
    expect_shape(gn_sort(both, 0, false), H, 0, H);
    expect_shape(gn_sort(none, GN_ALL, true), 0);
    expect_shape(gn_argsort(none, 1, false), H, 0);
    expect_shape(gn_topk(none, 7, 0, &more), 7, 0);
    expect_shape(more, 7, 0);
    FAILS(ARGUMENT, "gn_topk", gn_topk(none, 1, 1, &more));
    FAILS(ARGUMENT, "gn_topk", gn_topk(row, H, 0, NULL));
    expect_shape(gn_partition(none, H - 1, 0), H, 0);
    FAILS(ARGUMENT, "gn_partition", gn_partition(none, 0, 1));
    expect_shape(gn_argpartition(none, H - 1, 0), H, 0);
    FAILS(ARGUMENT, "gn_argpartition", gn_argpartition(none, 0, 1));
    expect_shape(gn_eval(gn_quantiles(none, gn_mul_s(row, 0.5), 0)), 3, 0);
    expect_shape(gn_eval(gn_quantiles(none, nobody, 1)), 0, H);
    expect_shape(gn_unique_axis(gn_zeros(g, GN_F32, GN_SHAPE(3, 0, 2)), 0, NULL, NULL, NULL), 1, 0, 2);
    expect_shape(gn_unique_axis(gn_zeros(g, GN_F32, GN_SHAPE(3, 0, 2)), -2, NULL, NULL, NULL), 3, 0, 2);
    expect_shape(gn_lexsort(many, 2, 0), H, 0);
    FAILS(SHAPE, "gn_lexsort", gn_lexsort(uneven, 2, 0));
    expect_shape(gn_median(none, 0), 0);
    FAILS(SHAPE, "gn_median", gn_median(both, 1));
    FAILS(SHAPE, "gn_quantile", gn_quantile(both, 0.3, 1));
    expect_values(gn_quantile(nobody, 0.5, GN_KEEP(0)), NAN);
    expect_values(gn_percentile(gn_empty(g, GN_F32, GN_SHAPE(2, 0)), 50, 1), NAN, NAN);
    expect_shape(gn_searchsorted(nobody, none, true), H, 0);
    expect_values(gn_searchsorted(nobody, row, true), 0, 0, 0);
    expect_shape(gn_digitize(none, row, false), H, 0);
    expect_values(gn_digitize(row, nobody, false), 0, 0, 0);
    expect_shape(gn_isin(none, row), H, 0);
    expect_values(gn_isin(row, none), 0, 0, 0);
    expect_shape(gn_interp(none, row, row), H, 0);
    FAILS(SHAPE, "gn_interp", gn_interp(row, nobody, nobody));
    expect_shape(gn_unique(none, &more, &inverse, &counts), 0);
    expect_shape(inverse, H, 0);
    expect_shape(counts, 0);
    expect_values(gn_union1d(none, row), 0, 1, 2);
    expect_shape(gn_intersect1d(none, row), 0);
    expect_values(gn_setdiff1d(row, none), 0, 1, 2);
    expect_values(gn_setxor1d(none, row), 0, 1, 2);
    // What is one number in the result's dtype is one element: 2049 is no float16, 2^24 + 1 no float32.
    gn_array *whole = gn_array_from(g, GN_I32, GN_SHAPE(3), (const int32_t[]){2049, 5, 16777217}), *rough = gn_full(g, GN_F16, GN_SHAPE(2), 2048);
    gn_array *single = gn_full(g, GN_F32, GN_SHAPE(1), 16777216);
    expect_values(gn_setxor1d(gn_slice(whole, 0, 0, 2, 1), rough), 5);
    expect_values(gn_setxor1d(single, whole), 5, 2049);
    expect_values(gn_intersect1d(single, whole), 16777216);
    gn_array *numbers = gn_cast(row, GN_I32), *nothing = gn_empty(g, GN_I32, GN_SHAPE(0));
    expect_values(gn_bincount(nothing, NULL, 2), 0, 0);
    expect_shape(gn_bincount(nothing, nobody, 0), 0);
    FAILS(SHAPE, "gn_bincount", gn_bincount(nothing, NULL, H));
    FAILS(SHAPE, "gn_bincount", gn_bincount(gn_full(g, GN_I64, GN_SHAPE(2), 9e18), NULL, 0));
    FAILS(SHAPE, "gn_bincount", gn_bincount(numbers, nobody, 0));
    expect_values(gn_histogram(none, 2, 0, 0, &more), 0, 0);
    expect_values(more, 0, 0.5, 1);
    FAILS(ARGUMENT, "gn_histogram", gn_histogram(row, H, 0, 0, NULL));
    FAILS(SHAPE, "gn_histogram", gn_histogram(row, H - 1, 0, 0, &more));
    expect_values(gn_histogram_with(none, none, 2, 0, 0, false, &more), 0, 0);
    FAILS(SHAPE, "gn_histogram_with", gn_histogram_with(row, NULL, H - 1, 0, 0, true, &more));
    expect_values(gn_histogram2d(none, none, NULL, 1, 2, 0, 0, 0, 0, false, &more, NULL), 0, 0);
    FAILS(SHAPE, "gn_histogram2d", gn_histogram2d(row, row, NULL, H - 1, P, 0, 0, 0, 0, true, &more, NULL));
    FAILS(SHAPE | MEMORY, "gn_histogram2d", gn_histogram2d(row, row, NULL, P >> 11, P >> 11, 0, 0, 0, 0, true, &more, NULL));
    expect_values(gn_histogram_edges(none, row), 0, 0);
}

static void test_reductions(void **state) {
    gn_context *g = (gn_context *)*state;
    const double of_nothing[] = {0, 1, 0, 1, NAN, NAN, NAN, 0, -INFINITY, 0};
    gn_array *none = gn_empty(g, GN_F32, GN_SHAPE(H, 0)), *both = gn_empty(g, GN_F32, GN_SHAPE(H, 0, H));
    gn_array *three = gn_empty(g, GN_F32, GN_SHAPE(3, 0));
    for (int i = 0; i < COUNT(reductions); i++) {
        const char *name = reductions[i].name;
        gn_array *(*fn)(gn_array *a, gn_axes axes) = reductions[i].fn;
        FAILS(SHAPE, name, fn(none, 1));
        FAILS(SHAPE, name, fn(both, 1));
        FAILS(ARGUMENT, name, fn(none, 2));
        FAILS(ARGUMENT, name, fn(none, INT32_MIN));
        if (i >= 10) { // which have no value then
            FAILS(SHAPE, name, fn(three, 1));
            continue;
        }
        const double v = of_nothing[i];
        expect_values(fn(three, 1), v, v, v);
        expect_values(fn(none, GN_ALL), v);
        expect_values(fn(both, GN_ALL), v);
        expect_shape(gn_eval(fn(none, 0)), 0);
        if (strncmp(name, "gn_arg", 6) != 0) expect_shape(gn_eval(fn(none, GN_KEEP(0))), 1, 0);
    }
    for (int axis = 0; axis < 2; axis++) {
        expect_shape(gn_eval(gn_softmax(none, axis)), H, 0);
        expect_shape(gn_eval(gn_log_softmax(none, axis)), H, 0);
    }
    FAILS(ARGUMENT, "gn_softmax", gn_softmax(none, 2));
    FAILS(SHAPE, "gn_cross_entropy", gn_cross_entropy(none, gn_zeros(g, GN_I32, GN_SHAPE(3))));
    FAILS(SHAPE, "gn_cross_entropy", gn_cross_entropy(none, gn_zeros(g, GN_I32, GN_SHAPE(0))));
}

static void test_losses(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *none = gn_zeros(g, GN_F32, GN_SHAPE(H, 0)), *other = gn_zeros(g, GN_F32, GN_SHAPE(0, H)), *y[8];
    const gn_reduction each = GN_REDUCE_NONE;
    gn_array *labels = gn_zeros(g, GN_I32, GN_SHAPE(0));
    gn_array *row = wide(g, GN_F32, GN_SHAPE(P)), *column = wide(g, GN_F32, GN_SHAPE(P, 1));
    FAILS(SHAPE, "gn_mse_loss_with", gn_mse_loss_with(none, other, each));
    FAILS(SHAPE, "gn_l1_loss", gn_l1_loss(row, column, each));
    FAILS(SHAPE, "gn_smooth_l1_loss", gn_smooth_l1_loss(row, column, 1, each));
    FAILS(SHAPE, "gn_huber_loss", gn_huber_loss(row, column, 1, each));
    FAILS(SHAPE, "gn_bce_loss", gn_bce_loss(none, other, each));
    FAILS(SHAPE, "gn_bce_with_logits", gn_bce_with_logits(none, other, NULL, each));
    FAILS(SHAPE, "gn_bce_with_logits", gn_bce_with_logits(row, row, column, each));
    FAILS(SHAPE, "gn_kl_div", gn_kl_div(none, other, false, each));
    FAILS(SHAPE, "gn_cosine_similarity", gn_cosine_similarity(row, column, 0, 1e-8));
    FAILS(SHAPE, "gn_cosine_embedding_loss", gn_cosine_embedding_loss(none, none, row, 0, each));
    FAILS(SHAPE, "gn_cross_entropy_with", gn_cross_entropy_with(none, labels, NULL));
    FAILS(SHAPE, "gn_nll_loss", gn_nll_loss(none, row, NULL));
    y[0] = gn_mse_loss_with(none, none, each), y[1] = gn_l1_loss(none, none, each), y[2] = gn_smooth_l1_loss(none, none, 1, each);
    y[3] = gn_huber_loss(none, none, 1, each), y[4] = gn_bce_loss(none, none, each), y[5] = gn_kl_div(none, none, true, each);
    y[6] = gn_bce_with_logits(none, none, none, each), y[7] = gn_bce_with_logits(none, none, NULL, each);
    for (int i = 0; i < 8; i++) expect_shape(gn_eval(y[i]), H, 0);
    gn_array *leaf = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(H, 0)), true);
    gn_optimizer *muon = gn_muon(&leaf, 1, NULL);
    assert_int_equal(gn_backward(gn_sum(leaf, GN_ALL)), GN_OK);
    expect_values(gn_clip_grad_norm(&leaf, 1, 1), 0);
    assert_int_equal(gn_step(muon), GN_OK);
    gn_optimizer_free(muon);
    assert_null(gn_custom(NULL, NULL, &none, 1, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_custom: the function is NULL");
    assert_null(gn_checkpoint(NULL, &none, 1, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_checkpoint: the function is NULL");
    expect_shape(gn_eval(gn_dropout(none, 0.5, true)), H, 0);
    expect_shape(gn_eval(gn_embedding(gn_zeros(g, GN_I32, GN_SHAPE(0, 3)), gn_zeros(g, GN_F32, GN_SHAPE(1, 0)), 0)), 0, 3, 0);
    expect_shape(gn_eval(gn_attention(none, none, none, NULL, NULL)), H, 0);
    expect_shape(gn_eval(gn_attention(other, other, other, NULL, NULL)), 0, H);
    expect_shape(gn_eval(gn_rope(none, NULL, NULL)), H, 0);
    FAILS(ARGUMENT, "gn_scale_loss", gn_scale_loss(none, row));
    gn_array *of_lstm[4] = {row, row, row, row};
    FAILS(SHAPE, "gn_lstm", gn_lstm(row, of_lstm, 4, NULL, NULL, NULL, NULL, NULL));
    FAILS(SHAPE, "gn_gru", gn_gru(gn_zeros(g, GN_F32, GN_SHAPE(1, 1, 1)), of_lstm, 4, NULL, NULL, NULL));
    FAILS(ARGUMENT, "gn_rope", gn_rope(column, NULL, NULL));
    FAILS(SHAPE, "gn_rope", gn_rope(row, NULL, NULL));
    FAILS(SHAPE, "gn_attention", gn_attention(none, other, none, NULL, NULL));
    FAILS(MEMORY, "gn_attention", gn_attention(gn_zeros(g, GN_F32, GN_SHAPE(1, 1)), gn_zeros(g, GN_F32, GN_SHAPE(1, 1)),
                                               wide(g, GN_F32, GN_SHAPE(1, P * (P / 8))), NULL, NULL));
    FAILS(MEMORY, "gn_dropout", gn_dropout(wide(g, GN_F32, GN_SHAPE(P, P / 8)), 0.5, true));
    FAILS(SHAPE, "gn_embedding", gn_embedding(labels, row, GN_NONE));
    FAILS(ARGUMENT, "gn_embedding", gn_embedding(labels, column, P));
    FAILS(ARGUMENT, "gn_embedding", gn_embedding(labels, gn_zeros(g, GN_F32, GN_SHAPE(0, 1)), -1));
    FAILS(ARGUMENT, "gn_embedding", gn_embedding(labels, column, -P - 1));
    FAILS(ARGUMENT, "gn_dropout", gn_dropout(none, 1.5, false));
    expect_values(gn_mse_loss_with(none, none, GN_REDUCE_SUM), 0);
    expect_values(gn_mse_loss_with(none, none, GN_REDUCE_BATCH_MEAN), 0);
    expect_shape(gn_eval(gn_cosine_similarity(other, other, 1, 1e-8)), 0);
    expect_values(gn_nll_loss(gn_zeros(g, GN_F32, GN_SHAPE(0, 3, H)), gn_zeros(g, GN_U8, GN_SHAPE(0, H)), NULL), (double)NAN);
}

// ---- layers

static void test_layers(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_conv_options o;
    memset(&o, 0, sizeof o);
    gn_array *none = gn_zeros(g, GN_F32, GN_SHAPE(0, 3, H / 4, H / 4)), *blank = gn_zeros(g, GN_F32, GN_SHAPE(2, 3, 0, 5));
    gn_array *w = gn_ones(g, GN_F32, GN_SHAPE(4, 3, 2, 2)), *many = wide(g, GN_F32, GN_SHAPE(P * P / 64, 3, 1, 1));
    gn_array *line = wide(g, GN_F32, GN_SHAPE(1, P)), *one = gn_ones(g, GN_F32, GN_SHAPE(1, 1, 1));
    expect_shape(gn_eval(gn_conv2d(none, w, NULL, NULL)), 0, 4, H / 4 - 1, H / 4 - 1);
    FAILS(SHAPE, "gn_conv2d", gn_conv2d(gn_zeros(g, GN_F32, GN_SHAPE(0, 3, H, H)), w, NULL, NULL));
    expect_shape(gn_eval(gn_conv_transpose2d(gn_zeros(g, GN_F32, GN_SHAPE(0, 4, 5, 5)), w, NULL, NULL)), 0, 3, 6, 6);
    expect_shape(gn_eval(gn_conv_transpose1d(gn_zeros(g, GN_F32, GN_SHAPE(0, 1, P)), gn_ones(g, GN_F32, GN_SHAPE(1, 1, 2)), NULL, NULL)), 0, 1, P + 1);
    FAILS(SHAPE, "gn_conv_transpose3d", gn_conv_transpose3d(none, w, NULL, NULL));
    FAILS(SHAPE, "gn_conv2d", gn_conv2d(blank, w, NULL, NULL));
    FAILS(MEMORY, "gn_conv2d", gn_conv2d(gn_zeros(g, GN_F32, GN_SHAPE(1, 3, 2, 2)), many, NULL, NULL));
    FAILS(SHAPE, "gn_conv1d", gn_conv1d(one, gn_expand_dims(line, 0), NULL, NULL));
    FAILS(SHAPE, "gn_conv3d", gn_conv3d(none, w, NULL, NULL));
    o.stride = INT32_MAX;
    expect_shape(gn_conv1d(gn_zeros(g, GN_F32, GN_SHAPE(1, 9)), one, NULL, &o), 1, 1);
    FAILS(SHAPE, "gn_conv_transpose2d", gn_conv_transpose2d(gn_zeros(g, GN_F32, GN_SHAPE(0, 4, H, H)), w, NULL, &o));
    o.stride = 4 * P;
    FAILS(ARGUMENT, "gn_conv1d", gn_conv1d(one, one, NULL, &o));
    o.stride = INT64_MIN;
    FAILS(ARGUMENT, "gn_conv1d", gn_conv1d(one, one, NULL, &o));
    o.stride = 1;
    o.pad = o.dilation = INT32_MAX;
    FAILS(SHAPE | MEMORY, "gn_conv2d", gn_conv2d(gn_zeros(g, GN_F32, GN_SHAPE(1, 3, 2, 2)), w, NULL, &o));
    gn_array *deep = gn_zeros(g, GN_F32, GN_SHAPE(H, 0, 4, 4)), *large = wide(g, GN_F32, GN_SHAPE(1, 1)), *at;
    expect_shape(gn_eval(gn_max_pool2d(deep, 2, NULL, &at)), H, 0, 2, 2);
    expect_shape(gn_eval(at), H, 0, 2, 2);
    expect_shape(gn_eval(gn_avg_pool2d(deep, 2, NULL)), H, 0, 2, 2);
    expect_shape(gn_eval(gn_adaptive_max_pool2d(deep, 3, 3, NULL)), H, 0, 3, 3);
    expect_shape(gn_eval(gn_adaptive_avg_pool2d(deep, 3, 3)), H, 0, 3, 3);
    expect_shape(gn_eval(gn_interpolate(deep, 3, 5, GN_BILINEAR, false)), H, 0, 3, 5);
    FAILS(SHAPE, "gn_max_pool2d", gn_max_pool2d(blank, 2, NULL, &at));
    FAILS(SHAPE, "gn_avg_pool2d", gn_avg_pool2d(none, 2, NULL));
    FAILS(ARGUMENT, "gn_max_pool2d", gn_max_pool2d(deep, H, NULL, NULL));
    FAILS(SHAPE, "gn_adaptive_max_pool2d", gn_adaptive_max_pool2d(deep, H, 1, NULL));
    FAILS(SHAPE, "gn_adaptive_avg_pool2d", gn_adaptive_avg_pool2d(deep, INT64_MIN, 1));
    FAILS(SHAPE | MEMORY, "gn_interpolate", gn_interpolate(large, P, P, GN_NEAREST, false));
    gn_array *flat = gn_zeros(g, GN_F32, GN_SHAPE(H, 0)), *empty = gn_zeros(g, GN_F32, GN_SHAPE(0));
    expect_shape(gn_eval(gn_batch_norm(flat, NULL, NULL, empty, empty, true, 0.1, 1e-5)), H, 0);
    expect_shape(gn_eval(gn_layer_norm(flat, 1, empty, empty, 1e-5)), H, 0);
    expect_shape(gn_eval(gn_rms_norm(flat, 2, NULL, 1e-5)), H, 0);
    expect_shape(gn_eval(gn_group_norm(deep, 1, NULL, NULL, 1e-5)), H, 0, 4, 4);
    expect_shape(gn_eval(gn_instance_norm(deep, NULL, NULL, 1e-5)), H, 0, 4, 4);
    FAILS(SHAPE, "gn_batch_norm", gn_batch_norm(none, NULL, NULL, NULL, NULL, true, 0.1, 1e-5));
    FAILS(SHAPE, "gn_group_norm", gn_group_norm(empty, 1, NULL, NULL, 1e-5));
    FAILS(ARGUMENT, "gn_group_norm", gn_group_norm(none, H, NULL, NULL, 1e-5));
    FAILS(ARGUMENT, "gn_layer_norm", gn_layer_norm(none, INT32_MIN, NULL, NULL, 1e-5));
    FAILS(SHAPE, "gn_layer_norm", gn_layer_norm(none, 1, wide(g, GN_F32, GN_SHAPE(P)), NULL, 1e-5));
    o.groups = INT64_MAX;
    FAILS(SHAPE, "gn_conv2d", gn_conv2d(none, w, NULL, &o));
    o.groups = -1;
    FAILS(SHAPE, "gn_conv2d", gn_conv2d(none, w, NULL, &o));
}

static void test_images(void **state) {
    gn_context *g = (gn_context *)*state;
    if (TEST_THREAD_SANITIZER) skip(); // a million images that nobody works on
    const double one = 1.0;
    gn_array *none = gn_zeros(g, GN_F32, GN_SHAPE(0, 3, P, P / 4)), *blank = gn_zeros(g, GN_F32, GN_SHAPE(2, 3, 0, 5)), *other, *w;
    gn_array *small = gn_ones(g, GN_F32, GN_SHAPE(1, 1, 2, 2)), *wide_ones = wide(g, GN_F32, GN_SHAPE(P * (P / 64), 1, 1, 1));
    gn_array *labels = gn_zeros(g, GN_I32, GN_SHAPE(0)), *theta = gn_ones(g, GN_F32, GN_SHAPE(0, 2, 3));
    FAILS(SHAPE, "gn_random_crop", gn_random_crop(none, 5, 5, 0)); // more pixels than int32 counts
    FAILS(SHAPE, "gn_cutout", gn_cutout(none, 5));
    FAILS(SHAPE, "gn_random_rotation", gn_random_rotation(none, 5));
    expect_shape(gn_eval(gn_random_flip(none, 1)), 0, 3, P, P / 4);
    expect_shape(gn_eval(gn_random_flip(blank, 1)), 2, 3, 0, 5);
    expect_shape(gn_eval(gn_color_jitter(none, 1, 1, 1)), 0, 3, P, P / 4);
    expect_shape(gn_eval(gn_color_jitter(blank, 1, 1, 1)), 2, 3, 0, 5);
    expect_shape(gn_eval(gn_hue_jitter(none, 0.5)), 0, 3, P, P / 4);
    expect_shape(gn_eval(gn_hue_jitter(blank, 0.5)), 2, 3, 0, 5);
    expect_shape(gn_eval(gn_mixup(none, labels, 1, &other, &w)), 0, 3, P, P / 4);
    expect_shape(gn_eval(gn_normalize(gn_zeros(g, GN_F32, GN_SHAPE(H, 1, 0, 1)), &one, &one, 1)), H, 1, 0, 1);
    FAILS(SHAPE, "gn_normalize", gn_normalize(none, &one, &one, 1));
    FAILS(SHAPE, "gn_affine_grid", gn_affine_grid(theta, H, H, false));
    FAILS(SHAPE, "gn_affine_grid", gn_affine_grid(gn_ones(g, GN_F32, GN_SHAPE(1, 2, 3)), H, H, false));
    FAILS(SHAPE, "gn_grid_sample", gn_grid_sample(none, gn_zeros(g, GN_F32, GN_SHAPE(0, 1, 1, 2)), NULL));
    FAILS(SHAPE, "gn_grid_sample", gn_grid_sample(small, gn_zeros(g, GN_F32, GN_SHAPE(2, 1, 1, 2)), NULL));
    FAILS(MEMORY, "gn_random_crop", gn_random_crop(wide_ones, 1, 1, 0));
    FAILS(MEMORY, "gn_random_crop", gn_random_crop(small, P / 512, P / 512, INT32_MAX / 4));
    FAILS(MEMORY, "gn_random_flip", gn_random_flip(wide_ones, 0.5));
    FAILS(MEMORY, "gn_cutout", gn_cutout(wide_ones, 1));
    FAILS(MEMORY, "gn_random_rotation", gn_random_rotation(wide_ones, 1));
    FAILS(MEMORY, "gn_mixup", gn_mixup(wide_ones, gn_ravel(gn_slice(wide_ones, 1, 0, 1, 1)), 1, &other, &w));
}

// ---- products and decompositions

static void test_products(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *none = gn_empty(g, GN_F32, GN_SHAPE(H, 0)), *enon = gn_transpose(none), *full = gn_empty(g, GN_F32, GN_SHAPE(0));
    gn_array *row = wide(g, GN_F32, GN_SHAPE(P)), *column = wide(g, GN_F32, GN_SHAPE(P, 1)), *huge = wide(g, GN_F32, GN_SHAPE(P * P / 16, 1));
    gn_array *line = wide(g, GN_F32, GN_SHAPE(1, P)), *more = gn_empty(g, GN_F32, GN_SHAPE(H, H, 0));
    FAILS(SHAPE, "gn_matmul", gn_matmul(none, enon));
    FAILS(SHAPE, "gn_matmul", gn_matmul(none, full));
    FAILS(SHAPE, "gn_matmul", gn_matmul(column, line));
    FAILS(SHAPE, "gn_matmul", gn_matmul(gn_cast(column, GN_I32), line));
    FAILS(SHAPE, "gn_matmul", gn_matmul(gn_zeros(g, GN_F32, GN_SHAPE(P, 1, 1, 1)), gn_zeros(g, GN_F32, GN_SHAPE(P, 1, 1))));
    expect_shape(gn_eval(gn_matmul(enon, none)), 0, 0);
    expect_shape(gn_eval(gn_matmul(gn_empty(g, GN_F32, GN_SHAPE(H, H, 0, 4)), gn_empty(g, GN_F32, GN_SHAPE(4, 5)))), H, H, 0, 5);
    expect_values(gn_matmul(gn_empty(g, GN_F32, GN_SHAPE(2, 0)), gn_empty(g, GN_F32, GN_SHAPE(0, 3))), 0, 0, 0, 0, 0, 0);
    expect_values(gn_matmul(full, full), 0);
    FAILS(SHAPE, "gn_dot", gn_dot(none, enon));
    FAILS(SHAPE, "gn_dot", gn_dot(none, gn_empty(g, GN_F32, GN_SHAPE(2, 0, 2))));
    FAILS(SHAPE, "gn_outer", gn_outer(row, row));
    expect_shape(gn_eval(gn_outer(none, row)), 0, P);
    FAILS(SHAPE, "gn_tensordot", gn_tensordot(row, row, NULL, NULL, 0));
    FAILS(SHAPE, "gn_tensordot", gn_tensordot(none, enon, NULL, NULL, 1));
    FAILS(SHAPE, "gn_tensordot", gn_tensordot(more, gn_transpose(more), NULL, NULL, 1));
    expect_shape(gn_eval(gn_tensordot(more, gn_empty(g, GN_F32, GN_SHAPE(0, 0)), NULL, NULL, 1)), H, H, 0);
    FAILS(SHAPE, "gn_einsum", gn_einsum(g, "i,j->ij", row, row));
    FAILS(SHAPE, "gn_einsum", gn_einsum(g, "ij->i", none));
    FAILS(SHAPE, "gn_einsum", gn_einsum(g, "ijk,k->ij", more, full));
    FAILS(SHAPE, "gn_einsum", gn_einsum(g, "ij,kl->ijkl", huge, huge));
    expect_shape(gn_eval(gn_einsum(g, "ijk,kl->ijl", more, gn_empty(g, GN_F32, GN_SHAPE(0, 0)))), H, H, 0);
    FAILS(SHAPE, "gn_linear", gn_linear(huge, gn_ones(g, GN_F32, GN_SHAPE(1, 64)), NULL));
    FAILS(SHAPE, "gn_linear", gn_linear(huge, gn_ones(g, GN_F32, GN_SHAPE(1, 64)), gn_ones(g, GN_F32, GN_SHAPE(64))));
}

static void test_matrices(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *none = gn_empty(g, GN_F32, GN_SHAPE(H, 0)), *u = NULL, *v = NULL;
    gn_array *batch = wide(g, GN_F32, GN_SHAPE(P, P / 16, 1, 1)), *no_batch = gn_empty(g, GN_F32, GN_SHAPE(H, H, 0, 2, 2));
    gn_array *points = gn_empty(g, GN_F32, GN_SHAPE(H, P, 0, 0)), *one = gn_ones(g, GN_F32, GN_SHAPE(1, 1));
    FAILS(MEMORY, "gn_solve", gn_solve(one, wide(g, GN_F32, GN_SHAPE(1, P * P / 16))));
    FAILS(SHAPE, "gn_solve", gn_solve(wide(g, GN_F32, GN_SHAPE(P, 1, 1)), wide(g, GN_F32, GN_SHAPE(P, 1, 1, 1))));
    FAILS(SHAPE, "gn_solve", gn_solve(none, none));
    FAILS(MEMORY, "gn_solve_triangular", gn_solve_triangular(one, wide(g, GN_F32, GN_SHAPE(1, P * P / 16)), true, false, false));
    FAILS(SHAPE, "gn_solve_triangular", gn_solve_triangular(one, none, true, false, false));
    expect_shape(gn_solve_triangular(no_batch, no_batch, false, false, false), H, H, 0, 2, 2);
    expect_shape(gn_solve_triangular(points, gn_empty(g, GN_F32, GN_SHAPE(0, 3)), true, true, true), H, P, 0, 3);
    FAILS(MEMORY, "gn_inv", gn_inv(batch));
    FAILS(MEMORY, "gn_det", gn_det(batch));
    FAILS(MEMORY, "gn_cholesky", gn_cholesky(batch));
    FAILS(MEMORY, "gn_qr", gn_qr(batch, &u));
    FAILS(MEMORY, "gn_eigh", gn_eigh(batch, &u));
    FAILS(MEMORY, "gn_eig", gn_eig(batch, &u));
    FAILS(MEMORY, "gn_eigvals", gn_eigvals(batch));
    FAILS(SHAPE, "gn_eig", gn_eig(none, &u));
    FAILS(MEMORY, "gn_svd", gn_svd(batch, false, &u, &v));
    FAILS(SHAPE, "gn_svd", gn_svd(none, true, &u, &v));
    FAILS(SHAPE, "gn_det", gn_det(points));
    FAILS(SHAPE, "gn_inv", gn_inv(none));
    assert_true(u == NULL && v == NULL);
    expect_shape(gn_inv(points), H, P, 0, 0);
    expect_shape(gn_inv(no_batch), H, H, 0, 2, 2);
    expect_shape(gn_det(no_batch), H, H, 0);
    expect_shape(gn_cholesky(points), H, P, 0, 0);
    expect_shape(gn_solve(no_batch, no_batch), H, H, 0, 2, 2);
    expect_shape(gn_qr(none, &u), H, 0);
    expect_shape(u, 0, 0);
    expect_shape(gn_eigh(points, &u), H, P, 0);
    expect_shape(u, H, P, 0, 0);
    expect_shape(gn_eig(no_batch, &u), H, H, 0, 2);
    expect_shape(u, H, H, 0, 2, 2);
    expect_shape(gn_eigvals(points), H, P, 0);
    expect_shape(gn_svd(gn_empty(g, GN_F32, GN_SHAPE(2, 0)), true, &u, &v), 0);
    expect_values(u, 1, 0, 0, 1);
    expect_shape(v, 0, 0);
    expect_shape(gn_svd(none, false, &u, &v), 0);
    expect_shape(u, H, 0);
    expect_values(gn_det(gn_empty(g, GN_F32, GN_SHAPE(2, 0, 0))), 1, 1);

    gn_array *a = gn_reshape(gn_arange(g, GN_F32, 0, 6, 1), GN_SHAPE(2, 3));
    for (int i = 0; i < 2; i++) {
        const int64_t far = i == 0 ? H : INT64_MIN;
        expect_shape(gn_diagonal(a, far), 0);
        expect_values(gn_trace(a, far), 0);
        if (i == 0) expect_values(gn_tril(a, far), 0, 1, 2, 3, 4, 5);
        if (i == 1) expect_values(gn_tril(a, far), 0, 0, 0, 0, 0, 0);
        if (i == 1) expect_values(gn_triu(a, far), 0, 1, 2, 3, 4, 5);
        if (i == 0) expect_values(gn_triu(a, far), 0, 0, 0, 0, 0, 0);
        gn_array *x = gn_requires_grad(gn_copy(a), true);
        assert_int_equal(gn_backward(gn_sum(gn_diagonal(x, far), GN_ALL)), GN_OK);
        expect_values(gn_grad(x), 0, 0, 0, 0, 0, 0);
    }
    gn_array *wide_none = gn_empty(g, GN_F32, GN_SHAPE(0, H, H));
    expect_shape(gn_diagonal(none, -5), 0);
    expect_shape(gn_diagonal(wide_none, 5), 0, H - 5);
    expect_shape(gn_eval(gn_trace(wide_none, INT64_MIN)), 0);
    expect_shape(gn_eval(gn_tril(wide_none, -5)), 0, H, H);
    expect_shape(gn_eval(gn_triu(wide_none, H)), 0, H, H);
}

// ---- transforms

typedef gn_array *(*transform_fn)(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
typedef gn_array *(*cosine_fn)(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm);
typedef gn_array *(*several_fn)(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm);
typedef struct transform_entry {
    const char *name;
    transform_fn fn;
} transform_entry;
static const transform_entry transforms[] = {ONE(gn_fft),   ONE(gn_ifft), ONE(gn_rfft),
                                             ONE(gn_irfft), ONE(gn_hfft), ONE(gn_ihfft)};
typedef struct cosine_entry {
    const char *name;
    cosine_fn fn;
} cosine_entry;
static const cosine_entry cosines[] = {ONE(gn_dct), ONE(gn_idct), ONE(gn_dst), ONE(gn_idst)};
typedef struct several_entry {
    const char *name;
    several_fn fn;
} several_entry;
static const several_entry severals[] = {ONE(gn_fftn), ONE(gn_ifftn), ONE(gn_rfftn), ONE(gn_irfftn)};

static void test_transforms(void **state) {
    gn_context *g = (gn_context *)*state;
    // Too many, more than there is memory for, and a prime that cannot be cut.
    const int64_t many[] = {H, H - 1, (int64_t)1 << 62, (int64_t)1 << 60, ((int64_t)1 << 57) + 15, 1000003LL * 1000033 * 1000};
    gn_array *x = gn_ones(g, GN_F32, GN_SHAPE(3)), *none = gn_empty(g, GN_F32, GN_SHAPE(0, 3)), *long_none = gn_empty(g, GN_F32, GN_SHAPE(0, H));
    for (int k = 0; k < COUNT(many); k++) {
        const int64_t n = many[k];
        const bool fits = k >= 4;
        for (int i = 0; i < COUNT(transforms); i++) {
            const char *name = transforms[i].name;
            FAILS(SHAPE | MEMORY, name, transforms[i].fn(x, n, 0, GN_FFT_BACKWARD));
            if (fits) {
                const bool half = transforms[i].fn == gn_rfft || transforms[i].fn == gn_ihfft;
                expect_shape(transforms[i].fn(none, n, 1, GN_FFT_ORTHO), 0, half ? n / 2 + 1 : n);
            } else {
                FAILS(SHAPE, name, transforms[i].fn(none, n, 1, GN_FFT_ORTHO));
            }
        }
        for (int i = 0; i < COUNT(cosines); i++)
            for (int type = 1; type <= 4; type++) {
                FAILS(SHAPE | MEMORY, cosines[i].name, cosines[i].fn(x, type, n, 0, GN_FFT_ORTHO));
                if (fits)
                    expect_shape(cosines[i].fn(none, type, n, 1, GN_FFT_BACKWARD), 0, n);
                else
                    FAILS(SHAPE, cosines[i].name, cosines[i].fn(none, type, n, 1, GN_FFT_BACKWARD));
            }
        int64_t two[2] = {3, 3};
        for (int i = 0; i < COUNT(severals); i++)
            for (int at = 0; at < 2; at++) {
                two[at] = n;
                two[1 - at] = 3;
                FAILS(SHAPE | MEMORY, severals[i].name,
                      severals[i].fn(gn_ones(g, GN_F32, GN_SHAPE(3, 3)), two, NULL, 2, GN_FFT_BACKWARD));
            }
    }
    for (int i = 0; i < COUNT(transforms); i++) {
        FAILS(ARGUMENT, transforms[i].name, transforms[i].fn(x, -1, 0, GN_FFT_BACKWARD));
        FAILS(ARGUMENT, transforms[i].name, transforms[i].fn(x, INT64_MIN, 0, GN_FFT_BACKWARD));
        FAILS(SHAPE, transforms[i].name, transforms[i].fn(long_none, 0, 1, GN_FFT_BACKWARD));
        expect_shape(transforms[i].fn(long_none, 8, 1, GN_FFT_BACKWARD), 0, i == 2 || i == 5 ? 5 : 8);
    }
    for (int i = 0; i < COUNT(cosines); i++) FAILS(SHAPE, cosines[i].name, cosines[i].fn(long_none, 2, 0, 1, GN_FFT_ORTHO));
    FAILS(SHAPE, "gn_fft2", gn_fft2(gn_empty(g, GN_F32, GN_SHAPE(0, H, 3)), GN_FFT_BACKWARD));
    expect_shape(gn_ifft2(gn_empty(g, GN_F32, GN_SHAPE(0, 4, 3)), GN_FFT_BACKWARD), 0, 4, 3);
    gn_array *shifted = gn_empty(g, GN_F32, GN_SHAPE(H, 0));
    expect_shape(gn_fftshift(shifted, GN_ALL), H, 0);
    expect_shape(gn_ifftshift(shifted, 0), H, 0);
}

static void test_convolutions(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *huge = wide(g, GN_F32, GN_SHAPE(P * P / 16)), *three = gn_ones(g, GN_F32, GN_SHAPE(3));
    gn_array *plane = wide(g, GN_F32, GN_SHAPE(P, P / 16)), *all = wide(g, GN_F32, GN_SHAPE(P * P / 2 - 1)), *none = gn_empty(g, GN_F32, GN_SHAPE(0));
    for (int mode = GN_CONV_FULL; mode <= GN_CONV_VALID; mode++) {
        const gn_convolution m = (gn_convolution)mode;
        FAILS(MEMORY, "gn_convolve", gn_convolve(huge, huge, m));
        FAILS(MEMORY, "gn_convolve", gn_convolve(three, huge, m));
        FAILS(SHAPE, "gn_convolve", gn_convolve(all, all, m));
        FAILS(SHAPE, "gn_convolve", gn_convolve(none, three, m));
        FAILS(MEMORY, "gn_correlate", gn_correlate(huge, three, m));
        FAILS(SHAPE, "gn_correlate", gn_correlate(three, none, m));
        FAILS(MEMORY, "gn_convolve2d", gn_convolve2d(plane, plane, m));
        FAILS(SHAPE, "gn_fftconvolve", gn_fftconvolve(plane, gn_transpose(plane), m));
        FAILS(MEMORY, "gn_convolve2d", gn_convolve2d(plane, gn_ones(g, GN_F32, GN_SHAPE(2, 2)), m));
        FAILS(MEMORY, "gn_fftconvolve", gn_fftconvolve(plane, gn_ones(g, GN_F32, GN_SHAPE(2, 2)), m));
    }
}

static int64_t least_smooth(int64_t n) {
    for (;; n++) {
        int64_t rest = n;
        for (int p = 2; p <= 13; p++)
            while (rest % p == 0) rest /= p;
        if (rest == 1) return n;
    }
}

// The lengths that convolutions are padded to decide the bits of their results: the least product of primes up to 13.
static void test_padding(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int64_t n = 100; n < 2000; n += 61) {
        gn_array *a = gn_randn(g, GN_F32, GN_SHAPE(n)), *b = gn_randn(g, GN_F32, GN_SHAPE(40));
        const int64_t full = n + 39, padded = least_smooth(full);
        gn_array *f = gn_mul(gn_rfft(a, padded, 0, GN_FFT_BACKWARD), gn_rfft(b, padded, 0, GN_FFT_BACKWARD));
        gn_array *y = gn_slice(gn_irfft(f, padded, 0, GN_FFT_BACKWARD), 0, 0, full, 1);
        expect_values(gn_all(gn_eq(y, gn_fftconvolve(a, b, GN_CONV_FULL)), GN_ALL), 1);
    }
}

// Every transform with every allocation failing once: an error, no crash, no leak.
static int alloc_case;
static void run_transform(gn_context *g) {
    GN_SCOPE(g) {
        const int which = alloc_case;
        gn_array *x = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2, 5)), true), *y;
        if (which < 16)
            y = cosines[which / 4].fn(x, which % 4 + 1, 6, 1, GN_FFT_ORTHO);
        else if (which < 22)
            y = transforms[which - 16].fn(which == 19 || which == 20 ? gn_complex(x, x) : x, 6, 1, GN_FFT_ORTHO);
        else
            y = gn_fftconvolve(x, x, GN_CONV_SAME);
        gn_array *loss = gn_sum(gn_square(gn_abs(y)), GN_ALL);
        if (loss != NULL && gn_backward(loss) == GN_OK) gn_eval(gn_grad(x));
        if (y == NULL && gn_status_get(g) == GN_OK) fail_msg("no transform and no error");
        gn_zero_grad(x);
    }
}

static void test_transform_allocations(void **state) {
    (void)state;
    if (test_on_vulkan()) skip(); // the same helpers make them
    for (alloc_case = 0; alloc_case < 23; alloc_case++) test_every_allocation(run_transform);
}

// ---- memory that nobody wrote reads as zeros, whoever reads it first

typedef struct reader {
    const char *what;
    gn_array *(*fn)(gn_context *g, gn_array *a);
    int64_t size; // of the result for an array of 4 elements
    double value; // of each
} reader;
#define READER(name, expression)                             \
    static gn_array *name(gn_context *g, gn_array *a) {      \
        (void)g;                                             \
        return (expression);                                 \
    }
READER(read_self, a)
READER(read_copy, gn_copy(a))
READER(read_cast, gn_cast(a, GN_I64))
READER(read_complex, gn_real(gn_complex(a, a)))
READER(read_add, gn_add_s(a, 1))
READER(read_both, gn_mul(a, a))
READER(read_view, gn_add_s(gn_reshape(a, GN_SHAPE(2, 2)), 1))
READER(read_turned, gn_copy(gn_transpose(gn_reshape(a, GN_SHAPE(2, 2)))))
READER(read_sum, gn_sum(a, GN_ALL))
READER(read_mean, gn_mean(a, 0))
READER(read_max, gn_max(a, 0))
READER(read_argmax, gn_argmax(a, 0))
READER(read_norm, gn_norm(a, GN_ALL))
READER(read_softmax, gn_softmax(a, 0))
READER(read_logsumexp, gn_exp(gn_logsumexp(a, 0)))
READER(read_where, gn_where(gn_cast(a, GN_BOOL), gn_ones_like(a), a))
READER(read_matmul, gn_matmul(gn_reshape(a, GN_SHAPE(2, 2)), gn_ones(g, GN_F32, GN_SHAPE(2, 3))))
READER(read_dot, gn_dot(a, a))
READER(read_linear, gn_linear(gn_reshape(a, GN_SHAPE(2, 2)), gn_ones(g, GN_F32, GN_SHAPE(2, 3)), gn_ones(g, GN_F32, GN_SHAPE(3))))
READER(read_det, gn_det(gn_reshape(a, GN_SHAPE(2, 2))))
READER(read_fft, gn_abs(gn_fft(a, 0, 0, GN_FFT_BACKWARD)))
READER(read_dct, gn_dct(a, 2, 0, 0, GN_FFT_BACKWARD))
READER(read_convolve, gn_convolve(a, gn_ones(g, GN_F32, GN_SHAPE(2)), GN_CONV_FULL))
READER(read_take, gn_take(a, gn_zeros(g, GN_I32, GN_SHAPE(3)), 0))
READER(read_places, gn_take(gn_full(g, GN_F32, GN_SHAPE(2), 7), gn_empty(g, GN_I32, GN_SHAPE(3)), gn_rank(a) - 1))
READER(read_labels, gn_cross_entropy(gn_reshape(a, GN_SHAPE(2, 2)), gn_empty(g, GN_I32, GN_SHAPE(2))))
READER(read_one_hot, gn_one_hot(gn_cast(a, GN_I32), GN_F32, 1))
READER(read_gpu, gn_add_s(gn_to(a, GN_DEVICE_GPU), 1))
READER(read_cpu, gn_add_s(gn_to(a, GN_DEVICE_CPU), 1))
READER(read_eval, gn_add_s(gn_eval(a), 1))
READER(read_detach, gn_detach(a))
READER(read_lerp, gn_lerp(a, a, a))
READER(read_mse, gn_mse_loss(a, gn_ones_like(a)))
static gn_array *read_concat(gn_context *g, gn_array *a) {
    gn_array *two[2];
    (void)g;
    two[0] = two[1] = a;
    return gn_concat(two, 2, 0);
}
static gn_array *read_stack(gn_context *g, gn_array *a) {
    gn_array *two[2];
    (void)g;
    two[0] = two[1] = a;
    return gn_stack(two, 2, 1);
}
static gn_array *read_gradient(gn_context *g, gn_array *a) {
    (void)g;
    gn_requires_grad(a, true);
    gn_backward(gn_sum(gn_exp(a), GN_ALL));
    return gn_grad(a);
}
static gn_array *read_step(gn_context *g, gn_array *a) {
    gn_optimizer *o;
    (void)g;
    gn_requires_grad(a, true);
    o = gn_sgd(&a, 1, NULL);
    gn_backward(gn_sum(gn_exp(a), GN_ALL));
    gn_step(o);
    gn_optimizer_free(o);
    return gn_add_s(a, 1.01); // rate 0.01, gradient 1
}
static gn_array *read_file(gn_context *g, gn_array *a) {
    return gn_save_npy(a, "unwritten.npy") == GN_OK ? gn_load_npy(g, "unwritten.npy") : NULL;
}
#define AS(fn, size, value) {#fn, fn, size, value}
static const reader readers[] = {
    AS(read_self, 4, 0),     AS(read_copy, 4, 0),   AS(read_cast, 4, 0),      AS(read_complex, 4, 0), AS(read_add, 4, 1),
    AS(read_both, 4, 0),     AS(read_view, 4, 1),   AS(read_turned, 4, 0),    AS(read_sum, 1, 0),     AS(read_mean, 1, 0),
    AS(read_max, 1, 0),      AS(read_argmax, 1, 0), AS(read_norm, 1, 0),      AS(read_softmax, 4, 0.25),
    AS(read_logsumexp, 1, 4), AS(read_where, 4, 0), AS(read_matmul, 6, 0),    AS(read_dot, 1, 0),     AS(read_linear, 6, 1),
    AS(read_det, 1, 0),      AS(read_fft, 4, 0),    AS(read_dct, 4, 0),       AS(read_convolve, 5, 0), AS(read_take, 3, 0),
    AS(read_places, 3, 7),   AS(read_labels, 1, 0.69314718056), AS(read_one_hot, 4, 1), AS(read_gpu, 4, 1), AS(read_cpu, 4, 1),
    AS(read_eval, 4, 1),     AS(read_detach, 4, 0), AS(read_lerp, 4, 0),      AS(read_mse, 1, 1),     AS(read_concat, 8, 0),
    AS(read_stack, 8, 0),    AS(read_gradient, 4, 1), AS(read_step, 4, 1),    AS(read_file, 4, 0)};

static void test_unwritten(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < COUNT(readers); i++)
            GN_SCOPE(g) {
                const reader *r = &readers[i];
                if (pass == 1) { // the memory that is given out next holds something else
                    gn_array *used = gn_full(g, GN_F32, GN_SHAPE(4), 77);
                    gn_release(gn_keep(gn_eval(used)));
                }
                double have[8];
                gn_array *y = gn_cast(r->fn(g, gn_empty(g, GN_F32, GN_SHAPE(4))), GN_F64);
                if (gn_size(y) != r->size || gn_read(y, have, gn_bytes(y)) != GN_OK)
                    fail_msg("%s: %lld elements, %s", r->what, (long long)gn_size(y), gn_error(g));
                for (int64_t k = 0; k < r->size; k++)
                    if (!(fabs(have[k] - r->value) < 1e-6)) fail_msg("%s: element %d is %g", r->what, (int)k, have[k]);
            }
    for (int t = 0; t < GN_DTYPE_COUNT; t++) {
        gn_array *a = gn_empty(g, (gn_dtype)t, GN_SHAPE(2, 3)), *b = gn_empty(g, (gn_dtype)t, GN_SHAPE(4, 0));
        gn_array *part = t == GN_C64 || t == GN_C128 ? gn_real(a) : a;
        expect_values(gn_sum(part, GN_ALL), 0);
        expect_values(gn_eq_s(part, 0), 1, 1, 1, 1, 1, 1);
        expect_shape(gn_eval(gn_eq(b, b)), 4, 0);
        expect_shape(gn_eval(gn_sum(b, 0)), 0);
    }
    // Written in part, the rest is 0 still.
    for (int where = 0; where < 2; where++) {
        const float two[] = {1, 2}, one = 3;
        gn_array *a = gn_empty(g, GN_F32, GN_SHAPE(3, 2));
        if (where == 1) gn_to(a, GN_DEVICE_GPU);
        assert_int_equal(gn_write(gn_index(a, "1"), two, sizeof two), GN_OK);
        assert_int_equal(gn_write(gn_index(a, "2:, 1:"), &one, sizeof one), GN_OK);
        expect_values(a, 0, 0, 1, 2, 0, 3);
    }
    // Pending work sees what was there when it was asked for.
    const float four[] = {1, 2, 3, 4};
    gn_array *a = gn_empty(g, GN_F32, GN_SHAPE(4)), *before = gn_add_s(a, 1);
    assert_int_equal(gn_write(a, four, sizeof four), GN_OK);
    expect_values(before, 1, 1, 1, 1);
    expect_values(gn_add_s(a, 1), 2, 3, 4, 5);
    gn_array *none = gn_empty(g, GN_F32, GN_SHAPE(4, 0));
    assert_int_equal(gn_write(none, NULL, 0), GN_OK);
    gn_array *slot = gn_keep(none);
    gn_set(&slot, gn_keep(gn_cos(slot)));
    assert_int_equal(gn_read(slot, NULL, 0), GN_OK);
    gn_release(slot);
    char *text = gn_to_string(gn_empty(g, GN_F32, GN_SHAPE(2)), NULL);
    assert_string_equal(text, "array([0., 0.], dtype=float32)");
    gn_string_free(g, text);
}

// ---- other arguments

// Nothing, two numbers, or what fails itself.
static gn_array *gives_nothing(gn_context *g, gn_array *const *in, int count, void *user) {
    (void)count;
    return user == NULL ? NULL : user == &test_heap ? gn_ones(g, GN_F32, GN_SHAPE(2)) : gn_sum(in[0], 5);
}
static gn_array *gives_foreign(gn_context *g, gn_array *const *in, int count, void *user) {
    (void)g;
    (void)in;
    (void)count;
    return (gn_array *)user;
}

static void test_arguments(void **state) {
    gn_context *g = (gn_context *)*state, *other = test_open();
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(2, 2)), *b = gn_ones(other, GN_F32, GN_SHAPE(2, 2)), *in[2];
    gn_array *x = gn_requires_grad(gn_ones(g, GN_F64, GN_SHAPE(2)), true);
    FAILS(ARGUMENT, "gn_to", gn_to(a, (gn_device)9));
    FAILS(ARGUMENT, "gn_to", gn_to(a, (gn_device)-1));
    FAILS(ARGUMENT, "gn_einsum", gn_einsum(g, "ij,jk->ik", b, b));
    assert_int_equal(gn_status_get(other), GN_OK);
    FAILS(ARGUMENT, "gn_einsum", gn_einsum(g, "ij,jk->ik", a, b));
    FAILS(ARGUMENT, "gn_einsum", gn_einsum(g, "ij,jk->ik", NULL, a));
    in[0] = in[1] = NULL;
    FAILS(ARGUMENT, "gn_einsum", gn_einsum_list(g, "ij,jk->ik", in, 2));
    FAILS(ARGUMENT, "gn_einsum", gn_einsum_list(g, "ij->ji", NULL, 1));
    FAILS(ARGUMENT, "gn_einsum", gn_einsum_list(g, NULL, &a, 1));
    FAILS(ARGUMENT, "gn_einsum", gn_einsum_list(g, "ij->ji", &a, 0));
    FAILS(ARGUMENT, "gn_add", gn_add(a, b));
    // gn_gradcheck of a function that fails says why there is no number.
    void *const users[] = {NULL, &test_heap, &alloc_case};
    const int kinds[] = {ARGUMENT, 1 << GN_ERROR_GRADIENT, ARGUMENT};
    const char *const names[] = {"gn_gradcheck", "gn_gradients", "gn_sum"};
    for (int i = 0; i < 3; i++) {
        double error = gn_gradcheck(gives_nothing, &x, 1, 0, users[i]);
        assert_true(error != error);
        FAILS(kinds[i], names[i], NULL);
    }
    double error = gn_gradcheck(gives_foreign, &x, 1, 0, b);
    assert_true(error != error);
    FAILS(ARGUMENT, "gn_gradcheck", NULL);
    error = gn_gradcheck(NULL, &x, 1, 0, NULL);
    assert_true(error != error);
    FAILS(ARGUMENT, "gn_gradcheck", NULL);
    // Messages name what was called, whatever that is made of.
    FAILS(ARGUMENT, "gn_std", gn_std(a, 2, 0));
    FAILS(ARGUMENT, "gn_norm", gn_norm(a, -3));
    FAILS(ARGUMENT, "gn_fftshift", gn_fftshift(a, 2));
    FAILS(ARGUMENT, "gn_log_softmax", gn_log_softmax(a, 2));
    gn_close(other);
}

// ---- the child of a fork

#ifndef _WIN32
enum { MANY = 1 << 20 };

static bool sums(gn_array *a, double wanted) {
    return a != NULL && gn_item(gn_sum(gn_mul_s(a, 2), GN_ALL)) == wanted && gn_status_get(gn_context_of(a)) == GN_OK;
}

// What the child does with its parent's context, and the exit status that says what was wrong; 0: nothing.
static int child(gn_context *g, gn_array *made, gn_array *data, int what) {
    alarm(60);
    if (what == 0) { // nothing but the end
        gn_close(g);
        return 0;
    }
    gn_array *fresh = gn_ones(g, GN_F32, GN_SHAPE(MANY));
    if (!sums(fresh, 2.0 * MANY)) return 1;
    if (!sums(data, 4.0 * MANY)) return 2;
    gn_array *square = gn_ones(g, GN_F32, GN_SHAPE(300, 300)), *product = gn_matmul(square, square);
    if (!sums(product, 300.0 * 300 * 300 * 2)) return 3;
    if (!test_on_vulkan()) {
        if (!sums(made, 6.0 * MANY)) return 4;
    } else { // what only the device has cannot be had here, which is said
        gn_device_info info;
        float f[1];
        gn_device_get(g, &info);
        if (strstr(info.why, "parent") == NULL) return 5;
        if (gn_read(gn_slice(made, 0, 0, 1, 1), f, sizeof f) != GN_ERROR_DEVICE_LOST) return 6;
        if (strncmp(gn_error(g), "gn_read: ", 9) != 0 || strstr(gn_error(g), "parent") == NULL) return 7;
        gn_error_clear(g);
        if (gn_sync(g) != GN_OK || gn_flush(g) != GN_OK) return 8;
        gn_memory_trim(g);
    }
    gn_options o = test_options();
    o.backend = GN_BACKEND_CPU;
    o.placement = GN_PLACE_AUTO;
    o.threads = 1;
    gn_context *own = gn_open(&o);
    if (!sums(gn_ones(own, GN_F32, GN_SHAPE(3)), 6)) return 9;
    gn_close(own);
    gn_close(g);
    return 0;
}

static void test_fork(void **state) {
    (void)state;
    gn_options o = test_options();
    o.threads = 4;
    gn_context *g = test_open_with(&o);
    float *ones = (float *)malloc(MANY * sizeof *ones);
    assert_non_null(ones);
    for (int i = 0; i < MANY; i++) ones[i] = 2;
    for (int round = 0; round < (test_on_vulkan() ? 2 : 12); round++) {
        gn_scope_begin(g);
        gn_array *data = gn_array_from(g, GN_F32, GN_SHAPE(MANY), ones), *made = gn_eval(gn_add_s(data, 1));
        gn_sync(g);
        if (round % 3 == 1) { // the threads of the pool sleep
            const struct timespec wait = {0, 3000000};
            nanosleep(&wait, NULL);
        }
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) _exit(child(g, made, data, round % 2));
        int status = -1;
        assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("round %d: %s %d", round, WIFEXITED(status) ? "status" : "signal",
                     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        assert_true(sums(made, 6.0 * MANY)); // the parent goes on
        gn_scope_end(g);
    }
    free(ones);
    test_close(g);
}
#else
static void test_fork(void **state) { (void)state; }
#endif

// ---- no public function that makes arrays is left out above

static void test_all_are_here(void **state) {
    (void)state;
    // Of other arrays these change or hand out what is there; files are read in test_io.c.
    static const char elsewhere[] = " gn_grad gn_keep gn_retain gn_load_idx gn_load_npz gn_load_csv gn_requires_grad "
                                    "gn_load_npy_memory gn_load_npz_memory gn_load_csv_memory gn_load_idx_memory gn_from_dlpack "
                                    "gn_load_cifar10 gn_params_at gn_params_get ";
    size_t size = 0;
    char *header = (char *)test_read_file(test_source_file("gpunum.h"), &size);
    char *tests = (char *)test_read_file(test_source_file("tests/test_shapes.c"), &size);
    const char *start = "GPUNUM_API gn_array *";
    int missing = 0, found = 0;
    for (const char *at = header; (at = strstr(at, start)) != NULL;) {
        char name[64], call[72];
        at += strlen(start);
        const size_t n = strcspn(at, "(");
        if (n >= sizeof name || strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_") != n) continue;
        memcpy(name, at, n);
        name[n] = 0;
        found++;
        snprintf(call, sizeof call, "%s(", name);
        const bool called = strstr(tests, call) != NULL;
        snprintf(call, sizeof call, " %s ", name);
        const bool excused = strstr(elsewhere, call) != NULL;
        snprintf(call, sizeof call, "ONE(%s)", name);
        if (called || excused || strstr(tests, call) != NULL) continue;
        print_error("%s has no case in this file\n", name);
        missing++;
    }
    free(header);
    free(tests);
    assert_true(found > 100);
    assert_int_equal(missing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_makers),       GN_TEST(test_counts),   GN_TEST(test_elementwise), GN_TEST(test_views),    GN_TEST(test_arrangements), GN_TEST(test_compositions), GN_TEST(test_samples), GN_TEST(test_orders),
        GN_TEST(test_reductions),   GN_TEST(test_losses), GN_TEST(test_layers), GN_TEST(test_images), GN_TEST(test_products), GN_TEST(test_matrices),    GN_TEST(test_transforms),
        GN_TEST(test_convolutions), GN_TEST(test_padding),  GN_TEST(test_unwritten),   GN_TEST(test_arguments),
        cmocka_unit_test(test_transform_allocations), cmocka_unit_test(test_fork), cmocka_unit_test(test_all_are_here)};
    return test_run(tests);
}
