// Attention, rotary embedding, recurrent networks: values and gradients against PyTorch's (torch_sequences.h), parts against all at once, second derivatives against
// differences, and what is odd.
#include "test.h"
#include "torch_series.h"
#include "torch_sequences.h"

// The same values behind strides as of (batch, n, heads, d).
static gn_array *turned(gn_array *a) { return gn_swap_axes(gn_copy(gn_swap_axes(a, 1, 2)), 1, 2); }

static gn_array *attend(gn_array *q, gn_array *k, gn_array *v, gn_array *mask, double scale, bool causal, int64_t workspace) {
    gn_attention_options o;
    memset(&o, 0, sizeof o);
    o.scale = scale;
    o.causal = causal;
    o.workspace = workspace;
    return gn_attention(q, k, v, mask, &o);
}

typedef struct problem {
    const char *name;
    const double *want;
    int heads, key_heads, n, m;
    int mask; // 0 none, 1 holes, 2 a float for each query, 3 for each key, 4 more holes
    bool causal;
    double scale;
} problem;
static const problem problems[] = {
    {"plain", torch_attention_plain, 3, 3, 5, 7, 0, false, 0},
    {"causal", torch_attention_causal, 3, 3, 5, 7, 0, true, 0},
    {"grouped", torch_attention_grouped, 4, 2, 7, 7, 0, true, 0.3},
    {"holes", torch_attention_holes, 3, 3, 5, 7, 1, false, 0},
    {"added", torch_attention_added, 3, 3, 5, 7, 2, true, 0},
    {"added keys", torch_attention_added_keys, 4, 1, 5, 7, 3, false, 0},
    {"one", torch_attention_one, 3, 3, 1, 1, 0, false, 0},
    {"more", torch_attention_more, 2, 1, 9, 33, 0, true, 0},
    {"more holes", torch_attention_more_holes, 2, 1, 9, 33, 4, false, 0},
};
enum { PROBLEMS = (int)(sizeof problems / sizeof problems[0]), SMALL = PROBLEMS - 2 };

static gn_array *mask_of(gn_context *g, const problem *p, gn_dtype t) {
    if (p->mask == 1) {
        gn_array *holes = gn_copy(gn_gt_s(series(g, GN_F64, GN_SHAPE(2, 1, 5, 7), 1.0, 0.0), 0.4));
        gn_assign(gn_index(holes, "1, 0, 2"), gn_zeros(g, GN_BOOL, GN_SHAPE(7)));
        return holes;
    }
    if (p->mask == 4) {
        gn_array *holes = gn_copy(gn_gt_s(series(g, GN_F64, GN_SHAPE(9, 33), 1.0, 0.0), 0.4));
        gn_assign(gn_index(holes, "4"), gn_zeros(g, GN_BOOL, GN_SHAPE(33)));
        return holes;
    }
    if (p->mask == 2) return gn_requires_grad(series(g, t, GN_SHAPE(3, 5, 1), 3.0, -1.0), true);
    return p->mask == 3 ? gn_requires_grad(series(g, t, GN_SHAPE(4, 1, 7), 3.0, -1.0), true) : NULL;
}

static const double *expect_next(const char *name, const char *what, gn_array *a, gn_dtype t, const double *want, double tolerance) {
    assert_non_null(a);
    const int n = (int)gn_size(a);
    double *got = (double *)malloc(sizeof(double) * (size_t)n);
    if (gn_dtype_of(a) != t) fail_msg("%s: %s is %s", name, what, gn_dtype_name(gn_dtype_of(a)));
    assert_int_equal(gn_read(gn_cast(a, GN_F64), got, sizeof(double) * (size_t)n), GN_OK);
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * fmax(1.0, fabs(want[i]))))
            fail_msg("%s: %s[%d] is %.17g, not %.17g", name, what, i, got[i], want[i]);
    free(got);
    return want + n;
}

static void check_problem(gn_context *g, const problem *p, gn_dtype t, double tolerance, int64_t workspace) {
    gn_array *x[4] = {series(g, t, GN_SHAPE(2, p->heads, p->n, 4), 4.0, -2.0), series(g, t, GN_SHAPE(2, p->key_heads, p->m, 4), 4.0, -2.0),
                      series(g, t, GN_SHAPE(2, p->key_heads, p->m, 3), 4.0, -2.0), mask_of(g, p, t)};
    static const char *const names[] = {"dq", "dk", "dv", "dmask"};
    for (int i = 0; i < 3; i++) gn_requires_grad(x[i], true);
    gn_array *y = attend(turned(x[0]), turned(x[1]), x[2], x[3], p->scale, p->causal, workspace);
    const double *want = expect_next(p->name, "y", y, t, p->want, tolerance);
    gn_array *w = series(g, t, gn_shape_of(y), 2.0, -0.7);
    assert_int_equal(gn_backward(gn_sum(gn_mul(gn_cast(y, t), w), GN_ALL)), GN_OK);
    for (int i = 0; i < (p->mask == 2 || p->mask == 3 ? 4 : 3); i++) want = expect_next(p->name, names[i], gn_grad(x[i]), t, want, tolerance);
    gn_no_grad_begin(g);
    expect_next(p->name, "y", attend(x[0], x[1], x[2], x[3], p->scale, p->causal, workspace), t, p->want, tolerance);
    gn_no_grad_end(g);
}

static void test_values(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < PROBLEMS; i++)
        GN_SCOPE(g) {
            const problem *p = &problems[i];
            check_problem(g, p, GN_F32, 1e-5, 0);
            if (test_on_vulkan() && i != 2) continue; // compiling kernels takes long
            check_problem(g, p, GN_F32, 1e-5, 100); // rows of one head each
            check_problem(g, p, GN_F64, 1e-13, 0);
            check_problem(g, p, GN_F16, 2e-2, 0);
            check_problem(g, p, GN_BF16, 2e-1, 0);
            check_problem(g, p, GN_F64, 1e-13, 1);
        }
}

static gn_array *twice(gn_context *g, gn_array *const *in, int n, void *user) {
    const problem *p = (const problem *)user;
    gn_array *dx[4], *mask = n > 3 ? in[3] : mask_of(g, p, GN_F64), *sum = NULL;
    gn_array *y = attend(in[0], in[1], in[2], mask, p->scale, p->causal, 0);
    gn_array *loss = gn_sum(gn_mul(gn_sin(y), series(g, GN_F64, gn_shape_of(y), 2.0, -0.7)), GN_ALL);
    if (gn_gradients(loss, in, n, true, dx) != GN_OK) return NULL;
    for (int i = 0; i < n; i++) {
        gn_array *s = gn_sum(gn_sin(gn_add_s(gn_mul_s(dx[i], 0.5), 0.3 * i)), GN_ALL);
        sum = sum != NULL ? gn_add(sum, s) : s;
    }
    return sum;
}

static void test_second_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 1; i < (test_on_vulkan() ? 2 : SMALL); i++)
        GN_SCOPE(g) {
            problem p = problems[i];
            gn_array *x[4] = {series(g, GN_F64, GN_SHAPE(2, p.heads, p.n, 2), 2.0, -1.0), series(g, GN_F64, GN_SHAPE(2, p.key_heads, p.m, 2), 2.0, -1.0),
                              series(g, GN_F64, GN_SHAPE(2, p.key_heads, p.m, 1), 2.0, -1.0), mask_of(g, &p, GN_F64)};
            for (int k = 0; k < 3; k++) gn_requires_grad(x[k], true);
            const double error = gn_gradcheck(twice, x, p.mask == 2 || p.mask == 3 ? 4 : 3, 1e-5, &p);
            if (!(error < 1e-7)) fail_msg("%s: second gradient off by %g", p.name, error);
        }
}

// As PyTorch's formula has it, with all scores.
static gn_array *formula(gn_array *q, gn_array *k, gn_array *v, bool causal) {
    gn_context *g = gn_context_of(q);
    gn_array *s = gn_mul_s(gn_matmul(q, gn_swap_axes(k, -1, -2)), 1.0 / sqrt((double)gn_dim(q, -1)));
    const int64_t n = gn_dim(s, -2), m = gn_dim(s, -1);
    if (causal)
        s = gn_where(gn_ge(gn_arange(g, GN_I32, 0, (double)n, 1), gn_expand_dims(gn_arange(g, GN_I32, 0, (double)m, 1), 1)), gn_swap_axes(s, -1, -2),
                     gn_scalar(g, gn_dtype_of(s), -INFINITY)),
        s = gn_swap_axes(s, -1, -2);
    return gn_matmul(gn_softmax(s, -1), v);
}

// Dropout of the weights: PyTorch's formula with the numbers that gn_dropout draws from the same place of the stream. Four
// that follow each other are of queries i and i + 8 and of keys j and j + 8 of a tile of 16 by 16.
static gn_array *staying(gn_context *g, gn_dtype t, int64_t heads, int64_t n, int64_t m, double p) {
    gn_array *a = gn_dropout(gn_ones(g, t, GN_SHAPE(heads, (n + 15) / 16, (m + 15) / 16, 8, 8, 2, 2)), p, true);
    a = gn_reshape(gn_permute(a, 0, 1, 5, 3, 2, 6, 4), GN_SHAPE(heads, (n + 15) / 16 * 16, (m + 15) / 16 * 16));
    return gn_slice(gn_slice(a, 1, 0, n, 1), 2, 0, m, 1);
}

static gn_array *dropped(gn_context *g, gn_array *const *x, int n, void *user) {
    const problem *p = (const problem *)user;
    gn_attention_options o = {p->scale, p->causal, 0, 0.4};
    gn_seed(g, 9);
    gn_array *y = gn_attention(x[0], x[1], x[2], n > 3 ? x[3] : NULL, &o);
    return gn_sum(gn_mul(gn_square(y), series(g, gn_dtype_of(y), gn_shape_of(y), 2.0, -0.7)), GN_ALL);
}

static gn_array *dropped_twice(gn_context *g, gn_array *const *x, int n, void *user) {
    gn_array *dx[4], *sum = NULL;
    if (gn_gradients(dropped(g, x, n, user), x, n, true, dx) != GN_OK) return NULL;
    for (int i = 0; i < n; i++) sum = sum != NULL ? gn_add(sum, gn_sum(gn_sin(dx[i]), GN_ALL)) : gn_sum(gn_sin(dx[i]), GN_ALL);
    return sum;
}

static void test_dropout(void **state) {
    gn_context *g = (gn_context *)*state;
    const gn_dtype kinds[] = {GN_F64, GN_F32, GN_F16};
    for (int i = 0; i < SMALL; i++)
        for (int k = 0; k < 3; k++)
            GN_SCOPE(g) {
                problem p = problems[i];
                const gn_dtype t = kinds[k], inner = k == 0 ? GN_F64 : GN_F32;
                const int64_t h = p.heads, kh = p.key_heads;
                gn_array *q = series(g, t, GN_SHAPE(2, h, p.n, 4), 4.0, -2.0), *key = series(g, t, GN_SHAPE(2, kh, p.m, 4), 4.0, -2.0);
                gn_array *v = series(g, t, GN_SHAPE(2, kh, p.m, 3), 4.0, -2.0), *mask = mask_of(g, &p, t);
                gn_attention_options o = {p.scale, p.causal, 0, 0.4};
                gn_seed(g, 9);
                gn_array *y = gn_attention(turned(q), key, turned(v), mask, &o);
                gn_seed(g, 9);
                gn_array *kept = gn_reshape(staying(g, inner, 2 * h, p.n, p.m, 0.4), GN_SHAPE(2, h, p.n, p.m));
                gn_array *low = gn_scalar(g, GN_F64, -INFINITY), *q64 = gn_cast(q, GN_F64);
                gn_array *s = gn_matmul(q64, gn_swap_axes(gn_repeat(gn_cast(key, GN_F64), h / kh, 1), -1, -2));
                s = gn_mul_s(s, p.scale != 0.0 ? p.scale : 0.5);
                if (mask != NULL) s = p.mask == 1 ? gn_where(mask, s, low) : gn_add(s, gn_cast(gn_detach(mask), GN_F64));
                if (p.causal) s = gn_where(gn_tril(gn_ones(g, GN_BOOL, GN_SHAPE(p.n, p.m)), 0), s, low);
                gn_array *weights = gn_softmax(s, -1);
                weights = gn_mul(gn_where(gn_isnan(weights), gn_scalar(g, GN_F64, 0.0), weights), gn_cast(kept, GN_F64));
                gn_array *want = gn_matmul(weights, gn_repeat(gn_cast(v, GN_F64), h / kh, 1));
                assert_int_equal(gn_dtype_of(y), t);
                const double slack = k == 0 ? 1e-12 : k == 1 ? 1e-5 : 1e-2;
                if (!gn_allclose(gn_cast(y, GN_F64), want, slack, slack, false)) fail_msg("%s, %s", p.name, gn_dtype_name(t));
            }
    for (int i = 2; i < (test_on_vulkan() ? 3 : SMALL); i += 2)
        GN_SCOPE(g) {
            problem p = problems[i];
            gn_array *x[4] = {series(g, GN_F64, GN_SHAPE(2, p.heads, p.n, 2), 2.0, -1.0), series(g, GN_F64, GN_SHAPE(2, p.key_heads, p.m, 2), 2.0, -1.0),
                              series(g, GN_F64, GN_SHAPE(2, p.key_heads, p.m, 1), 2.0, -1.0), mask_of(g, &p, GN_F64)};
            for (int k = 0; k < 3; k++) gn_requires_grad(x[k], true);
            const int n = p.mask > 1 ? 4 : 3;
            const double first = gn_gradcheck(dropped, x, n, 0.0, &p), second = gn_gradcheck(dropped_twice, x, n, 0.0, &p);
            if (!(first < 1e-7 && second < 1e-6)) fail_msg("%s: gradients off by %g, %g", p.name, first, second);
        }
    gn_array *one = gn_ones(g, GN_F32, GN_SHAPE(3, 4));
    gn_attention_options all = {0, false, 0, 1.0}, odd = {0, false, 0, -0.1}, none = {0, false, 0, (double)NAN};
    assert_true(gn_item(gn_sum(gn_abs(gn_attention(one, one, one, NULL, &all)), GN_ALL)) == 0.0);
    assert_null(gn_attention(one, one, one, NULL, &odd));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_attention: the probability -0.1 is not between 0 and 1");
    assert_null(gn_attention(one, one, one, NULL, &none));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
}

// From one array that holds q, k and v of all heads, as models do.
static gn_array *packed(gn_array *x, bool causal, int64_t workspace, bool plain) {
    gn_array *part[3], *y;
    for (int i = 0; i < 3; i++) part[i] = gn_swap_axes(gn_squeeze(gn_slice(x, 2, i, i + 1, 1), 2), 1, 2);
    y = plain ? formula(part[0], part[1], part[2], causal) : attend(part[0], part[1], part[2], NULL, 0, causal, workspace);
    return y;
}

static void test_parts(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t lengths[] = {1, 300, 67, 601};
    for (int i = 0; i < (test_on_vulkan() ? 2 : 4); i++)
        for (int causal = 0; causal < 2; causal++)
            GN_SCOPE(g) {
                const gn_dtype t = causal || test_on_vulkan() ? GN_F32 : GN_F64;
                const double slack = t == GN_F32 ? 2e-5 : 1e-12;
                gn_array *x = gn_requires_grad(gn_normal(g, t, GN_SHAPE(2, lengths[i], 3, 2, 17), 0.0, 1.0), true), *dx[2], *y[2];
                gn_array *w = gn_normal(g, t, GN_SHAPE(2, 2, lengths[i], 17), 0.0, 1.0);
                for (int k = 0; k < 2; k++) {
                    y[k] = packed(x, causal != 0, 50000, k != 0);
                    assert_int_equal(gn_gradients(gn_sum(gn_mul(y[k], w), GN_ALL), &x, 1, false, &dx[k]), GN_OK);
                }
                assert_true(gn_allclose(y[0], y[1], slack, slack, false));
                assert_true(gn_allclose(dx[0], dx[1], slack, slack, false));
            }
}

// Against float64 of the same values: on a GPU all of it is one kernel, of halves on matrix units where there are some.
static void test_fused(void **state) {
    gn_context *g = (gn_context *)*state;
    static const struct {
        int64_t heads, key_heads, n, m, d, e;
        bool causal, turned;
    } cases[] = {{2, 2, 64, 64, 64, 64, false, false}, {4, 2, 37, 37, 16, 24, true, true},   {2, 1, 1, 70, 40, 8, false, true}, {1, 1, 131, 67, 72, 128, true, false},
                 {3, 3, 67, 131, 64, 16, true, true},  {2, 2, 33, 20, 256, 200, false, true}, {2, 1, 1, 1, 8, 8, true, false},   {2, 2, 300, 257, 64, 64, true, true},
                 {4, 2, 70, 70, 72, 40, true, true}};
    const bool slow = test_on_software(g);
    static const gn_dtype types[] = {GN_F32, GN_F16, GN_BF16};
    static const double slacks[] = {1e-5, 5e-3, 4e-2};
    for (int i = 0; i < 9; i++)
        for (int kind = 0; kind < 3; kind++)
            GN_SCOPE(g) {
                const gn_dtype t = types[kind];
                const double slack = slacks[kind];
                if (slow && i != (kind == 0 ? 8 : kind == 1 ? 5 : 6)) continue;
                gn_array *x[2][3], *y[2], *dx[2][3];
                for (int k = 0; k < 3; k++) {
                    const int64_t width = k == 2 ? cases[i].e : cases[i].d;
                    gn_array *a = gn_cast(gn_normal(g, GN_F32, GN_SHAPE(2, k == 0 ? cases[i].heads : cases[i].key_heads, k == 0 ? cases[i].n : cases[i].m, width), 0.0, 1.0), t);
                    if (cases[i].turned) a = turned(a);
                    x[0][k] = gn_requires_grad(gn_eval(gn_cast(a, GN_F64)), true);
                    x[1][k] = gn_requires_grad(gn_detach(gn_eval(a)), true);
                }
                gn_array *w = gn_normal(g, GN_F64, GN_SHAPE(2, cases[i].heads, cases[i].n, cases[i].e), 0.0, 1.0);
                for (int k = 0; k < 2; k++) {
                    y[k] = attend(x[k][0], x[k][1], x[k][2], NULL, 0, cases[i].causal, 0);
                    assert_int_equal(gn_gradients(gn_sum(gn_mul(gn_cast(y[k], GN_F64), w), GN_ALL), x[k], 3, false, dx[k]), GN_OK);
                }
                if (!gn_allclose(gn_cast(y[1], GN_F64), y[0], slack, slack, false)) fail_msg("case %d, %s", i, gn_dtype_name(t));
                for (int k = 0; k < 3; k++) {
                    assert_true(gn_dtype_of(dx[1][k]) == t);
                    if (!gn_allclose(gn_cast(dx[1][k], GN_F64), dx[0][k], 3.0 * slack, 3.0 * slack, false)) fail_msg("case %d, %s: gradient %d", i, gn_dtype_name(t), k);
                }
                // The same without a record, and again.
                gn_array *same = attend(gn_detach(x[1][0]), gn_detach(x[1][1]), gn_detach(x[1][2]), NULL, 0, cases[i].causal, 0);
                assert_true(gn_allclose(same, y[1], slack, slack, false));
                assert_true(gn_array_equal(same, attend(gn_detach(x[1][0]), gn_detach(x[1][1]), gn_detach(x[1][2]), NULL, 0, cases[i].causal, 0), false));
            }
    // NaN and infinity where they are, and only there; scores that differ much.
    gn_array *q = gn_cast(gn_normal(g, GN_F32, GN_SHAPE(40, 16), 0.0, 30.0), GN_F16), *k = gn_cast(gn_normal(g, GN_F32, GN_SHAPE(50, 16), 0.0, 30.0), GN_F16);
    gn_array *v = gn_ones(g, GN_F16, GN_SHAPE(50, 16)), *bad = gn_copy(q);
    gn_assign(gn_index(bad, "3, 2"), gn_scalar(g, GN_F16, NAN));
    gn_assign(gn_index(bad, "20, 5"), gn_scalar(g, GN_F16, INFINITY));
    gn_array *lost = gn_isnan(gn_attention(bad, k, v, NULL, NULL));
    assert_true(gn_item(gn_all(gn_index(lost, "3"), GN_ALL)) == 1.0 && gn_item(gn_all(gn_index(lost, "20"), GN_ALL)) == 1.0);
    assert_true(gn_item(gn_count_nonzero(lost, GN_ALL)) == 32.0);
    assert_true(gn_allclose(gn_attention(q, k, v, NULL, NULL), gn_ones(g, GN_F16, GN_SHAPE(40, 16)), 2e-3, 2e-3, false));
    // One key: its weight is 1 to the last bit, whatever the score, and the score has no gradient.
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 20; i++) {
            const gn_dtype t = h ? GN_BF16 : GN_F16;
            gn_array *x[3], *dx[3];
            for (int j = 0; j < 3; j++) x[j] = gn_requires_grad(gn_cast(gn_normal(g, GN_F32, GN_SHAPE(j == 0 ? 4 : 2, 1, 72), 0.0, 1.5), t), true);
            gn_array *y = attend(x[0], x[1], x[2], NULL, 0, false, 0);
            assert_true(gn_array_equal(y, gn_repeat(gn_detach(x[2]), 2, 0), false));
            gn_array *w = gn_cast(gn_normal(g, GN_F32, gn_shape_of(y), 0.0, 1.0), t);
            assert_int_equal(gn_gradients(gn_sum(gn_cast(gn_mul(y, w), GN_F32), GN_ALL), x, 3, false, dx), GN_OK);
            for (int j = 0; j < 2; j++) assert_true(gn_item(gn_max(gn_abs(dx[j]), GN_ALL)) < 1e-4);
        }
}

// (batch, heads, n, m), true where a query sees a key, and what is added; NULL where nothing is.
static gn_array *seen_of(gn_array *mask, gn_shape s) {
    return gn_broadcast_to(gn_dtype_of(mask) == GN_BOOL ? mask : gn_gt_s(gn_cast(mask, GN_F64), -1e30), s);
}
static gn_array *hidden_formula(gn_array *const *x, gn_array *mask, gn_array *kept, bool causal) {
    gn_context *g = gn_context_of(x[0]);
    const int64_t share = gn_dim(x[0], 1) / gn_dim(x[1], 1);
    gn_array *s = gn_mul_s(gn_matmul(x[0], gn_swap_axes(gn_repeat(x[1], share, 1), -1, -2)), 1.0 / sqrt((double)gn_dim(x[0], -1)));
    gn_array *seen = gn_broadcast_to(gn_full(g, GN_BOOL, GN_SHAPE(1, 1), 1.0), gn_shape_of(s)), *zero = gn_scalar(g, GN_F64, 0.0);
    if (mask != NULL) seen = seen_of(mask, gn_shape_of(s));
    if (mask != NULL && gn_dtype_of(mask) != GN_BOOL) s = gn_add(s, gn_where(seen, gn_cast(mask, GN_F64), zero));
    if (causal) seen = gn_logical_and(seen, gn_tril(gn_ones(g, GN_BOOL, GN_SHAPE(gn_dim(s, -2), gn_dim(s, -1))), 0));
    gn_array *p = gn_where(seen, gn_softmax(gn_where(seen, s, gn_scalar(g, GN_F64, -1e9)), -1), zero); // a row without any: zeros
    if (kept != NULL) p = gn_mul(p, kept);
    return gn_matmul(p, gn_repeat(x[2], share, 1));
}

// Masks and dropout, as test_fused: by the same kernels on a GPU.
static void test_hidden(void **state) {
    gn_context *g = (gn_context *)*state;
    static const struct {
        int64_t heads, key_heads, n, m, d, e;
        bool causal;
        int mask; // 1 bool (n, m), 2 bool (batch, 1, 1, m), 3 float32 (heads, n, m), 4 float16 (n, m) with what hides, 5 bool of rows
        double dropout;
    } cases[] = {{2, 2, 64, 64, 64, 64, false, 2, 0.0}, {4, 2, 37, 45, 16, 24, false, 1, 0.3}, {2, 1, 70, 131, 40, 8, true, 3, 0.0},
                 {1, 1, 131, 67, 72, 128, false, 4, 0.5}, {3, 3, 67, 131, 64, 16, true, 5, 0.1}, {2, 1, 200, 257, 64, 64, true, 0, 0.2},
                 {4, 2, 70, 70, 72, 40, false, 4, 0.0}, {2, 1, 33, 20, 12, 7, true, 5, 0.4}, {2, 2, 1, 1, 8, 8, false, 3, 0.6}};
    static const gn_dtype types[] = {GN_F32, GN_F16, GN_BF16};
    static const double slacks[] = {1e-5, 5e-3, 4e-2};
    const bool slow = test_on_software(g);
    for (int i = 0; i < 9; i++)
        for (int kind = 0; kind < 3; kind++)
            GN_SCOPE(g) {
                const gn_dtype t = types[kind];
                const double slack = slacks[kind];
                const int64_t h = cases[i].heads, n = cases[i].n, m = cases[i].m;
                if (slow && kind != i % 3) continue;
                gn_array *x[2][3], *y[2], *dx[2][3], *mask = NULL, *kept = NULL;
                for (int k = 0; k < 3; k++) {
                    const int64_t width = k == 2 ? cases[i].e : cases[i].d;
                    gn_array *a = gn_cast(gn_normal(g, GN_F32, GN_SHAPE(2, k == 0 ? h : cases[i].key_heads, k == 0 ? n : m, width), 0.0, 1.0), t);
                    x[0][k] = gn_requires_grad(gn_eval(gn_cast(a, GN_F64)), true);
                    x[1][k] = gn_requires_grad(gn_eval(gn_cast(a, t)), true);
                }
                if (cases[i].mask == 1) mask = gn_bernoulli(g, GN_BOOL, GN_SHAPE(n, m), 0.6);
                if (cases[i].mask == 2) mask = gn_lt(gn_reshape(gn_arange(g, GN_F32, 0, (double)m, 1), GN_SHAPE(1, 1, 1, -1)),
                                                     gn_reshape(gn_arange(g, GN_F32, 20, 100, 40), GN_SHAPE(2, 1, 1, 1)));
                if (cases[i].mask == 3) mask = gn_swap_axes(gn_normal(g, GN_F32, GN_SHAPE(h, m, n), 0.0, 2.0), -1, -2);
                if (cases[i].mask == 4) mask = gn_where(gn_bernoulli(g, GN_BOOL, GN_SHAPE(n, m), 0.3), gn_scalar(g, GN_F16, -INFINITY),
                                                        gn_normal(g, GN_F16, GN_SHAPE(n, m), 0.0, 1.0));
                if (cases[i].mask == 5) mask = gn_logical_and(gn_bernoulli(g, GN_BOOL, GN_SHAPE(n, 1), 0.7), gn_bernoulli(g, GN_BOOL, GN_SHAPE(2, 1, n, m), 0.7));
                gn_array *w = gn_normal(g, GN_F64, GN_SHAPE(2, h, n, cases[i].e), 0.0, 1.0);
                gn_attention_options o = {0, cases[i].causal, 0, cases[i].dropout};
                gn_seed(g, 5 + (unsigned)i);
                if (o.dropout > 0.0) kept = gn_reshape(staying(g, GN_F64, 2 * h, n, m, o.dropout), GN_SHAPE(2, h, n, m));
                gn_seed(g, 5 + (unsigned)i);
                for (int k = 0; k < 2; k++) {
                    y[k] = k == 0 ? hidden_formula(x[k], mask, kept, o.causal) : gn_attention(x[k][0], x[k][1], x[k][2], mask, &o);
                    assert_int_equal(gn_gradients(gn_sum(gn_mul(gn_cast(y[k], GN_F64), w), GN_ALL), x[k], 3, false, dx[k]), GN_OK);
                }
                if (!gn_allclose(gn_cast(y[1], GN_F64), y[0], slack, slack, false)) fail_msg("case %d, %s", i, gn_dtype_name(t));
                for (int k = 0; k < 3; k++)
                    if (!gn_allclose(gn_cast(dx[1][k], GN_F64), dx[0][k], 3.0 * slack, 3.0 * slack, false)) fail_msg("case %d, %s: gradient %d", i, gn_dtype_name(t), k);
            }
    // The least of floats hides, too, also from rows that see nothing else, and takes no NaN anywhere.
    gn_array *q = gn_normal(g, GN_F32, GN_SHAPE(2, 16, 8), 0.0, 1.0), *least = gn_full(g, GN_F32, GN_SHAPE(16), -3.4028234e38), *y;
    for (int i = 0; i < 2; i++) {
        gn_array *mask = i == 0 ? least : gn_where(gn_lt_s(gn_arange(g, GN_F32, 0, 16, 1), 15.5 - 8 * i), gn_zeros(g, GN_F32, GN_SHAPE(16)), least);
        y = gn_attention(q, q, q, mask, NULL);
        gn_array *want = i == 0 ? gn_zeros(g, GN_F32, GN_SHAPE(2, 16, 8)) : gn_attention(q, gn_slice(q, 1, 0, 8, 1), gn_slice(q, 1, 0, 8, 1), NULL, NULL);
        assert_true(gn_allclose(y, want, 1e-5, 1e-5, false));
    }
}

// ---- a CPU's blocks

typedef struct blocks {
    int64_t heads, share, n, m, d, e;
    bool causal, turned;
    int mask; // 1 bool of (n,m), 2 bool of keys (batch,1,1,m), 3 a float for each of (heads,n,m)
    gn_dtype t;
    double slack;
} blocks;
static const blocks block_cases[] = {
    {2, 1, 150, 210, 20, 12, false, false, 0, GN_F32, 1e-5}, {4, 2, 210, 210, 64, 64, true, true, 0, GN_F32, 1e-5},
    {2, 2, 70, 300, 8, 33, false, true, 1, GN_F32, 1e-5},    {2, 1, 129, 97, 17, 5, true, false, 2, GN_F32, 1e-5},
    {6, 3, 65, 192, 128, 16, false, true, 3, GN_F32, 1e-5},  {2, 1, 33, 500, 40, 24, true, true, 1, GN_F16, 2e-2},
    {1, 1, 200, 64, 9, 70, false, false, 0, GN_BF16, 2e-1},
};

static double *doubles(gn_array *a) {
    double *p = (double *)malloc(sizeof(double) * (size_t)gn_size(a));
    assert_int_equal(gn_read(gn_cast(a, GN_F64), p, sizeof(double) * (size_t)gn_size(a)), GN_OK);
    return p;
}

// One head's y and what it adds to the gradients, as the formulas say; `hidden` is what a mask adds to scores.
static void one_head(const blocks *c, const double *q, const double *k, const double *v, const double *gy, const double *hidden, double *y,
                     double *dq, double *dk, double *dv) {
    const double scale = 1.0 / sqrt((double)c->d);
    double *p = (double *)malloc(sizeof(double) * (size_t)c->m), *dp = (double *)malloc(sizeof(double) * (size_t)c->m);
    for (int64_t i = 0; i < c->n; i++) {
        double most = -INFINITY, sum = 0.0, dot = 0.0;
        for (int64_t j = 0; j < c->m; j++) {
            double s = 0.0;
            for (int64_t l = 0; l < c->d; l++) s += q[i * c->d + l] * k[j * c->d + l];
            p[j] = c->causal && j > i ? -INFINITY : scale * s + (hidden != NULL ? hidden[i * c->m + j] : 0.0);
            most = fmax(most, p[j]);
        }
        for (int64_t j = 0; j < c->m; j++) sum += p[j] = most > -INFINITY ? exp(p[j] - most) : 0.0;
        for (int64_t j = 0; j < c->m; j++) {
            p[j] = sum > 0.0 ? p[j] / sum : 0.0;
            dp[j] = 0.0;
            for (int64_t l = 0; l < c->e; l++) {
                y[i * c->e + l] += p[j] * v[j * c->e + l];
                dp[j] += gy[i * c->e + l] * v[j * c->e + l];
                dv[j * c->e + l] += p[j] * gy[i * c->e + l];
            }
            dot += p[j] * dp[j];
        }
        for (int64_t j = 0; j < c->m; j++)
            for (int64_t l = 0; l < c->d; l++) {
                const double ds = scale * p[j] * (dp[j] - dot);
                dq[i * c->d + l] += ds * k[j * c->d + l];
                dk[j * c->d + l] += ds * q[i * c->d + l];
            }
    }
    free(p);
    free(dp);
}

static void expect_close(const char *what, int number, gn_array *a, const double *want, double slack) {
    double *got = doubles(a);
    for (int64_t i = 0; i < gn_size(a); i++)
        if (!(fabs(got[i] - want[i]) <= slack * (1.0 + fabs(want[i])))) fail_msg("case %d, %s[%d] is %.9g, not %.9g", number, what, (int)i, got[i], want[i]);
    free(got);
}

static gn_array *block_mask(gn_context *g, const blocks *c) {
    if (c->mask == 1) {
        gn_array *m = gn_copy(gn_gt_s(series(g, GN_F32, GN_SHAPE(c->n, c->m), 1.0, 0.0), 0.3));
        gn_assign(gn_index(m, "7"), gn_zeros(g, GN_BOOL, GN_SHAPE(c->m))); // sees nothing
        return m;
    }
    if (c->mask == 2) return gn_gt_s(series(g, GN_F32, GN_SHAPE(2, 1, 1, c->m), 1.0, 0.0), 0.2);
    return c->mask == 3 ? series(g, GN_F32, GN_SHAPE(c->heads, c->n, c->m), 3.0, -1.0) : NULL;
}

// y, dq, dk and dv against the formulas, which are computed where want[0] is NULL. Returns them as bytes.
static char *run_blocks(gn_context *g, int number, double *want[4], size_t *bytes) {
    const blocks *c = &block_cases[number];
    const int64_t kh = c->heads / c->share, size[4] = {c->heads * c->n * c->d, kh * c->m * c->d, kh * c->m * c->e, c->heads * c->n * c->e};
    gn_array *x[3], *mask = block_mask(g, c), *out[4];
    for (int i = 0; i < 3; i++) {
        gn_array *a = gn_cast(series(g, GN_F32, GN_SHAPE(2, i == 0 ? c->heads : kh, i == 0 ? c->n : c->m, i == 2 ? c->e : c->d), 3.0 + 0.5 * i, -1.5), c->t);
        x[i] = gn_requires_grad(gn_detach(gn_eval(c->turned ? turned(a) : a)), true);
    }
    out[0] = attend(x[0], x[1], x[2], mask, 0, c->causal, 0);
    gn_array *gy = series(g, c->t, gn_shape_of(out[0]), 2.0, -0.7);
    assert_int_equal(gn_gradients(gn_sum(gn_mul(gn_cast(out[0], GN_F32), gn_cast(gy, GN_F32)), GN_ALL), x, 3, false, out + 1), GN_OK);
    double *q = doubles(x[0]), *k = doubles(x[1]), *v = doubles(x[2]), *w = doubles(gy), *hidden = NULL;
    const bool known = want[0] != NULL;
    const size_t all[4] = {(size_t)(2 * size[3]), (size_t)(2 * size[0]), (size_t)(2 * size[1]), (size_t)(2 * size[2])};
    for (int i = 0; i < 4 && !known; i++) want[i] = (double *)calloc(all[i], sizeof(double));
    if (mask != NULL) {
        gn_array *add = c->mask == 3 ? mask : gn_where(mask, gn_scalar(g, GN_F32, 0.0), gn_scalar(g, GN_F32, -INFINITY));
        hidden = doubles(gn_broadcast_to(add, GN_SHAPE(2, c->heads, c->n, c->m)));
    }
    for (int64_t b = 0; b < 2 && !known; b++)
        for (int64_t h = 0; h < c->heads; h++) {
            const int64_t at = b * c->heads + h, key = b * kh + h / c->share;
            one_head(c, q + at * c->n * c->d, k + key * c->m * c->d, v + key * c->m * c->e, w + at * c->n * c->e,
                     hidden != NULL ? hidden + at * c->n * c->m : NULL, want[0] + at * c->n * c->e, want[1] + at * c->n * c->d,
                     want[2] + key * c->m * c->d, want[3] + key * c->m * c->e);
        }
    static const char *const names[4] = {"y", "dq", "dk", "dv"};
    *bytes = 0;
    for (int i = 0; i < 4; i++) {
        expect_close(names[i], number, out[i], want[i], i == 0 ? c->slack : 4.0 * c->slack);
        *bytes += gn_bytes(out[i]);
    }
    char *data = (char *)malloc(*bytes), *to = data;
    for (int i = 0; i < 4; to += gn_bytes(out[i]), i++) assert_int_equal(gn_read(out[i], to, gn_bytes(out[i])), GN_OK);
    free(q), free(k), free(v), free(w), free(hidden);
    return data;
}

// By every instruction set; the number of threads changes no bit.
static void test_blocks(void **state) {
    (void)state;
    static const gn_cpu cpus[] = {GN_CPU_PLAIN, GN_CPU_BASE, GN_CPU_AVX2, GN_CPU_AVX512};
    if (test_on_vulkan()) return;
    for (int i = 0; i < (int)(sizeof block_cases / sizeof block_cases[0]); i++) {
        double *want[4] = {NULL, NULL, NULL, NULL};
        for (int k = 0; k < 4; k++) {
            char *first = NULL;
            for (int threads = 1; threads <= 5; threads += 4) {
                gn_options o = test_options();
                o.cpu = cpus[k];
                o.threads = threads;
                if (TEST_SANITIZER && threads == 1) continue;
                gn_context *g = test_open_with(&o);
                size_t bytes = 0;
                GN_SCOPE(g) {
                    char *data = run_blocks(g, i, want, &bytes);
                    if (first != NULL && memcmp(first, data, bytes) != 0) fail_msg("case %d, CPU %d: other bits with %d threads", i, k, threads);
                    if (first != NULL) free(data);
                    else first = data;
                }
                test_close(g);
            }
            free(first);
        }
        for (int k = 0; k < 4; k++) free(want[k]);
    }
}

static void attention_for_memory(gn_context *g) {
    gn_array *x = gn_requires_grad(gn_ones(g, GN_F16, GN_SHAPE(2, 40, 5)), true), *dx = NULL, *seen = gn_ones(g, GN_BOOL, GN_SHAPE(40, 40));
    gn_array *y = attend(x, x, x, seen, 0, true, 0);
    gn_gradients(gn_sum(y, GN_ALL), &x, 1, false, &dx);
    gn_eval(dx);
}

static void test_failing_memory(void **state) {
    (void)state;
    if (!test_on_vulkan()) test_every_allocation(attention_for_memory);
}

// What is there at a time stays within the workspace.
static void test_memory_used(void **state) {
    gn_context *g = (gn_context *)*state;
    if (test_on_vulkan()) return; // counts what the driver hands out, in blocks
    const int64_t n = 1500;
    gn_array *x = gn_requires_grad(gn_normal(g, GN_F32, GN_SHAPE(1, n, 3, 2, 8), 0.0, 1.0), true), *dx;
    gn_eval(x);
    gn_array *y = packed(x, false, 1 << 18, false);
    assert_int_equal(gn_gradients(gn_sum(gn_sin(y), GN_ALL), &x, 1, false, &dx), GN_OK);
    gn_eval(dx);
    const int64_t scores = n * n * 2 * 4;
    gn_memory_stats stats;
    gn_memory_get(g, &stats);
    assert_true((int64_t)stats.host_peak < scores / 2);
}

static void test_odd_values(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *q = gn_ones(g, GN_F32, GN_SHAPE(2, 3)), *k = gn_ones(g, GN_F32, GN_SHAPE(4, 3));
    gn_array *v = series(g, GN_F32, GN_SHAPE(4, 2), 1.0, 0.0);
    // No keys, no queries, nothing to multiply, no heads.
    gn_array *none = gn_attention(q, gn_zeros(g, GN_F32, GN_SHAPE(0, 3)), gn_zeros(g, GN_F32, GN_SHAPE(0, 2)), NULL, NULL);
    assert_true(gn_size(none) == 4 && gn_item(gn_sum(gn_abs(none), GN_ALL)) == 0.0);
    assert_int_equal(gn_size(gn_attention(gn_zeros(g, GN_F32, GN_SHAPE(0, 3)), k, v, NULL, NULL)), 0);
    gn_array *even = gn_attention(gn_zeros(g, GN_F32, GN_SHAPE(2, 0)), gn_zeros(g, GN_F32, GN_SHAPE(4, 0)), v, NULL, NULL);
    assert_true(gn_allclose(even, gn_broadcast_to(gn_mean(v, 0), GN_SHAPE(2, 2)), 1e-6, 1e-6, false));
    gn_array *no_heads = gn_zeros(g, GN_F32, GN_SHAPE(0, 4, 3));
    assert_int_equal(gn_size(gn_attention(no_heads, no_heads, no_heads, NULL, NULL)), 0);
    // NaN and infinity where they are, and only there.
    gn_array *bad = gn_copy(q);
    gn_assign(gn_index(bad, "0, 0"), gn_scalar(g, GN_F32, NAN));
    gn_array *y = gn_isnan(gn_attention(bad, k, v, NULL, NULL));
    assert_true(gn_item(gn_all(gn_index(y, "0"), GN_ALL)) == 1.0 && gn_item(gn_any(gn_index(y, "1"), GN_ALL)) == 0.0);
    gn_assign(gn_index(bad, "0, 0"), gn_scalar(g, GN_F32, -INFINITY)); // every score of that query is -inf
    assert_true(gn_item(gn_sum(gn_abs(gn_index(gn_attention(bad, k, v, gn_ones(g, GN_BOOL, GN_SHAPE(4)), NULL), "0")), GN_ALL)) == 0.0);
    // Scores beyond what exp takes.
    gn_array *big = gn_attention(gn_mul_s(q, 1e18), k, v, NULL, NULL);
    assert_true(gn_allclose(big, gn_broadcast_to(gn_mean(v, 0), GN_SHAPE(2, 2)), 1e-6, 1e-6, false));
    // A query that sees nothing: no gradients, and no NaN.
    gn_requires_grad(q, true);
    gn_array *dq, *blind = gn_zeros(g, GN_BOOL, GN_SHAPE(2, 4));
    assert_int_equal(gn_gradients(gn_sum(gn_attention(q, k, v, blind, NULL), GN_ALL), &q, 1, false, &dq), GN_OK);
    assert_true(gn_item(gn_sum(gn_abs(dq), GN_ALL)) == 0.0);
}

static void test_refusals(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *q = gn_zeros(g, GN_F32, GN_SHAPE(3, 2, 4)), *k = gn_zeros(g, GN_F32, GN_SHAPE(2, 5, 4)), *v = gn_zeros(g, GN_F32, GN_SHAPE(3, 5, 4));
    assert_null(gn_attention(q, k, k, NULL, NULL));
    expect_error(g, GN_ERROR_SHAPE,
                 "gn_attention: q (3,2,4), k (2,5,4), v (2,5,4) are not (..., heads, n, d), (..., key heads, m, d), (..., key heads, m, e)");
    assert_null(gn_attention(q, v, gn_cast(v, GN_F16), NULL, NULL));
    expect_error(g, GN_ERROR_DTYPE, "gn_attention: q is float32, k float32 and v float16, not one float dtype");
    assert_null(gn_attention(q, v, v, gn_zeros(g, GN_I32, GN_SHAPE(5)), NULL));
    expect_error(g, GN_ERROR_DTYPE, "gn_attention: the mask is int32, not bool or a float");
    assert_null(gn_attention(q, v, v, gn_zeros(g, GN_BOOL, GN_SHAPE(7, 3, 2, 5)), NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_attention: the mask (7,3,2,5) does not broadcast to (3,2,5)");
    assert_null(attend(q, v, v, NULL, NAN, false, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_attention: scale nan, workspace 0");
    assert_null(attend(q, v, v, NULL, 1.0, false, -1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_attention: scale 1, workspace -1");
    assert_null(gn_attention(q, NULL, v, NULL, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_attention: array argument 2 is NULL");
}

// ---- rotary embedding

static gn_array *rotate(gn_array *x, gn_array *positions, double base, int64_t dims, bool interleaved) {
    gn_rope_options o;
    memset(&o, 0, sizeof o);
    o.base = base;
    o.dims = dims;
    o.interleaved = interleaved;
    return gn_rope(x, positions, &o);
}

// Row r of x (rows, d), float64, as the paper has it.
static void rotate_row(double *to, const double *x, int d, int dims, double position, double base, bool interleaved) {
    memcpy(to, x, sizeof(double) * (size_t)d);
    for (int i = 0; i < dims / 2; i++) {
        const int a = interleaved ? 2 * i : i, b = interleaved ? a + 1 : i + dims / 2;
        const double angle = position * pow(base, -2.0 * i / dims), c = cos(angle), s = sin(angle);
        to[a] = x[a] * c - x[b] * s;
        to[b] = x[b] * c + x[a] * s;
    }
}

static gn_array *rotated_gradient(gn_context *g, gn_array *const *in, int n, void *user) {
    gn_array *dx, *y = gn_sum(gn_sin(rotate(gn_square(in[0]), NULL, 0.0, *(int *)user, *(int *)user == 4)), GN_ALL);
    (void)g;
    return gn_gradients(y, in, n, true, &dx) == GN_OK ? gn_sum(gn_sin(dx), GN_ALL) : NULL;
}

static void test_rope(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t far[] = {3, 70001, -2, 16777213, 0}; // and one row each for two batches
    static const gn_dtype types[] = {GN_F32, GN_F64, GN_F16, GN_BF16};
    static const double slack[] = {2e-6, 1e-13, 2e-3, 2e-2};
    for (int k = 0; k < (test_on_vulkan() ? 1 : 4); k++)
        for (int form = 0; form < 6; form++)
            GN_SCOPE(g) {
                const gn_dtype t = types[k];
                const int d = 6, dims = form < 4 ? 6 : 4;
                const bool interleaved = form % 2 != 0, placed = form > 1;
                gn_array *x = series(g, t, GN_SHAPE(2, 3, 5, 6), 4.0, -2.0), *pos = gn_array_from(g, GN_I64, GN_SHAPE(5), far);
                double in[180], want[180];
                // An angle of 2^24 is rounded by 2e-9 below.
                const double most = placed ? fmax(slack[k], 1e-8) : slack[k];
                assert_int_equal(gn_read(gn_cast(x, GN_F64), in, sizeof in), GN_OK);
                for (int r = 0; r < 30; r++)
                    rotate_row(want + r * d, in + r * d, d, dims, placed ? (double)far[r % 5] : r % 5, form == 5 ? 500.0 : 10000.0, interleaved);
                gn_array *y = rotate(turned(x), placed ? pos : NULL, form == 5 ? 500.0 : 0.0, dims == d ? 0 : dims, interleaved);
                expect_next("rope", "y", y, t, want, most);
                if (k < 2 && form == 2) { // a position of its own for each batch
                    gn_array *each = gn_broadcast_to(pos, GN_SHAPE(2, 1, 5));
                    expect_next("rope", "y", rotate(x, each, 0.0, 0, false), t, want, most);
                }
            }
    int dims = 4;
    gn_array *x = gn_requires_grad(series(g, GN_F64, GN_SHAPE(2, 3, 6), 2.0, -1.0), true);
    assert_true(gn_gradcheck(rotated_gradient, &x, 1, 1e-6, &dims) < 1e-7);
    dims = 6;
    assert_true(gn_gradcheck(rotated_gradient, &x, 1, 1e-6, &dims) < 1e-7);
    assert_null(gn_rope(gn_ones(g, GN_F32, GN_SHAPE(6)), NULL, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_rope: x (6,) is not (..., n, d)");
    assert_null(rotate(x, NULL, 0.0, 3, false));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_rope: 3 of 6 columns, base 0");
    assert_null(rotate(x, NULL, NAN, 0, false));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_rope: 6 of 6 columns, base nan");
    assert_null(gn_rope(x, x, NULL));
    expect_error(g, GN_ERROR_DTYPE, "gn_rope: x is float64 and positions are float64, not a float and integers");
    assert_null(gn_rope(x, gn_zeros(g, GN_I32, GN_SHAPE(4)), NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_rope: positions (4,) do not broadcast to (2,3)");
}

// ---- recurrent networks

typedef struct net {
    const char *name;
    const double *want;
    bool lstm;
    gn_rnn_options o;
    gn_array *w[16];
} net;
static const net nets[] = {
    {"lstm", torch_lstm, true, {0, false, false, false, 0.0}, {NULL}},
    {"lstm more", torch_lstm_more, true, {2, true, true, false, 0.0}, {NULL}},
    {"gru", torch_gru, false, {1, false, false, false, 0.0}, {NULL}},
    {"gru more", torch_gru_more, false, {2, true, false, false, 0.0}, {NULL}},
    {"gru bare", torch_gru_bare, false, {1, false, true, true, 0.0}, {NULL}},
};
enum { NETS = (int)(sizeof nets / sizeof nets[0]) };

static int lines_of(const net *p) { return (p->o.layers > 0 ? p->o.layers : 1) * (p->o.bidirectional ? 2 : 1); }
static int weights_of(const net *p) { return lines_of(p) * (p->o.no_bias ? 2 : 4); }

// in: x, h0, for an LSTM c0, weights; out: y, hn, for an LSTM cn.
static void run_net(const net *p, gn_array *const *in, gn_array **out) {
    out[2] = NULL;
    out[0] = p->lstm ? gn_lstm(in[0], in + 3, weights_of(p), in[1], in[2], &p->o, &out[1], &out[2])
                     : gn_gru(in[0], in + 2, weights_of(p), in[1], &p->o, &out[1]);
}

// Returns how many there are.
static int make_net(gn_context *g, const net *p, gn_dtype t, gn_array **in) {
    const int gates = p->lstm ? 4 : 3, lines = lines_of(p), ways = p->o.bidirectional ? 2 : 1, each = p->o.no_bias ? 2 : 4;
    int n = 0;
    in[n++] = p->o.batch_first ? series(g, t, GN_SHAPE(2, 5, 3), 2.0, -1.0) : series(g, t, GN_SHAPE(5, 2, 3), 2.0, -1.0);
    for (int i = 0; i < (p->lstm ? 2 : 1); i++) in[n++] = series(g, t, GN_SHAPE(lines, 2, 4), 1.5 - i, -0.5);
    for (int i = 0; i < weights_of(p); i++) {
        const double scale = 1.4 - 0.05 * i;
        const int layer = i / (each * ways), wide = i % each == 1 ? 4 : layer > 0 ? 4 * ways : 3;
        in[n++] = i % each > 1 ? series(g, t, GN_SHAPE(gates * 4), scale, -0.6) : series(g, t, GN_SHAPE(gates * 4, wide), scale, -0.6);
    }
    for (int i = 0; i < n; i++) gn_requires_grad(in[i], true);
    return n;
}

static gn_array *weigh_all(gn_array *const *out, int n) {
    gn_array *sum = NULL;
    for (int i = 0; i < n; i++) {
        gn_array *w = series(gn_context_of(out[i]), GN_F64, gn_shape_of(out[i]), 2.0, -0.7);
        gn_array *s = gn_sum(gn_mul(out[i], gn_cast(w, gn_dtype_of(out[i]))), GN_ALL);
        sum = sum != NULL ? gn_add(sum, s) : s;
    }
    return sum;
}

static void check_net(gn_context *g, const net *p, gn_dtype t, double tolerance) {
    gn_array *in[24], *out[3];
    const int n = make_net(g, p, t, in), results = p->lstm ? 3 : 2;
    const double *want = p->want;
    char what[20];
    run_net(p, in, out);
    for (int i = 0; i < results; i++) {
        snprintf(what, sizeof what, "result %d", i);
        want = expect_next(p->name, what, out[i], t, want, tolerance);
    }
    assert_int_equal(gn_backward(weigh_all(out, results)), GN_OK);
    for (int i = 0; i < n; i++) {
        snprintf(what, sizeof what, "gradient %d", i);
        want = expect_next(p->name, what, gn_grad(in[i]), t, want, tolerance);
    }
}

static void test_nets(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < NETS; i++)
        GN_SCOPE(g) {
            if (test_on_vulkan() && i != 0 && i != 3) continue;
            check_net(g, &nets[i], GN_F32, 1e-5);
            if (test_on_vulkan()) continue;
            check_net(g, &nets[i], GN_F64, 1e-12);
            check_net(g, &nets[i], GN_F16, 3e-2);
            check_net(g, &nets[i], GN_BF16, 2e-1);
        }
}

static gn_array *net_twice(gn_context *g, gn_array *const *in, int n, void *user) {
    const net *p = (const net *)user;
    gn_array *out[3], *dx[24], *sum = NULL;
    run_net(p, in, out);
    if (gn_gradients(gn_sin(weigh_all(out, p->lstm ? 3 : 2)), in, n, true, dx) != GN_OK) return NULL;
    for (int i = 0; i < n; i++) {
        gn_array *s = gn_sum(gn_sin(gn_add_s(gn_mul_s(dx[i], 0.5), 0.3 * i)), GN_ALL);
        sum = sum != NULL ? gn_add(sum, s) : s;
    }
    (void)g;
    return sum;
}

static void test_nets_twice(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < (test_on_vulkan() ? 0 : TEST_THREAD_SANITIZER ? 1 : NETS); i++)
        GN_SCOPE(g) {
            gn_array *in[24];
            net p = nets[i];
            p.o.layers = 1;
            const int n = make_net(g, &p, GN_F64, in);
            const double error = gn_gradcheck(net_twice, in, n, 1e-5, &p);
            if (!(error < 1e-7)) fail_msg("%s: second gradient off by %g", p.name, error);
        }
}

// States of many units, rows that fill no tile: float32's steps may be kernels of their own, float64's are products and programs.
static void test_large_nets(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int k = 0; k < 4; k++) {
        const bool lstm = k < 2;
        const int64_t h = k % 2 == 0 ? 20 : 72, rows = k % 2 == 0 ? 37 : 16, gates = lstm ? 4 * h : 3 * h;
        const gn_rnn_options o = {1, k % 2 == 1, false, false, 0.0};
        const int ways = k % 2 + 1, n = 3 + 4 * ways;
        gn_array *result[2][14];
        gn_scope_begin(g);
        gn_array *from[11] = {gn_randn(g, GN_F64, GN_SHAPE(5, rows, 6)), gn_randn(g, GN_F64, GN_SHAPE(ways, rows, h)),
                              gn_randn(g, GN_F64, GN_SHAPE(ways, rows, h))};
        for (int i = 0; i < 4 * ways; i++) {
            const int64_t width = i % 4 == 0 ? 6 : h;
            from[3 + i] = gn_normal(g, GN_F64, i % 4 < 2 ? GN_SHAPE(gates, width) : GN_SHAPE(gates), 0.0, 0.3);
        }
        for (int wide = 0; wide < 2; wide++) {
            gn_array *in[11], *out[3] = {NULL, NULL, NULL};
            for (int i = 0; i < n; i++)
                in[i] = gn_requires_grad(gn_copy(gn_cast(gn_cast(from[i], GN_F32), wide ? GN_F64 : GN_F32)), true);
            out[0] = lstm ? gn_lstm(in[0], in + 3, 4 * ways, in[1], in[2], &o, &out[1], &out[2])
                          : gn_gru(in[0], in + 3, 4 * ways, in[1], &o, &out[1]);
            gn_array *loss = gn_sum(gn_sin(gn_cumsum(out[0], 0)), GN_ALL);
            for (int i = 1; i < (lstm ? 3 : 2); i++) loss = gn_add(loss, gn_sum(gn_sin(out[i]), GN_ALL));
            assert_int_equal(gn_backward(loss), GN_OK);
            memcpy(result[wide], out, sizeof out);
            for (int i = 0; i < n; i++) result[wide][3 + i] = i == 2 && !lstm ? NULL : gn_grad(in[i]);
        }
        for (int i = 0; i < 3 + n; i++) {
            if (result[0][i] == NULL) continue;
            gn_array *away = gn_sub(gn_cast(result[0][i], GN_F64), result[1][i]);
            const double most = gn_item(gn_max(gn_abs(result[1][i]), GN_ALL)), off = gn_item(gn_max(gn_abs(away), GN_ALL));
            if (!(off <= 4e-6 * most)) print_error("net %d, result %d: %g of %g\n", k, i, off, most);
            assert_true(off <= 4e-6 * most);
        }
        gn_scope_end(g);
    }
}

// Halves, and float32 under gn_autocast_begin: on matrix units their products are of halves. Against float64 of the same numbers.
static void test_half_nets(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int k = 0; k < 16; k++) {
        const bool lstm = k & 1, cast = k & 2, reversed = k & 8;
        const gn_dtype t = k & 4 ? GN_F16 : GN_BF16;
        const int64_t h = k & 8 ? 80 : 32, rows = k & 8 ? 3 : 35, gates = lstm ? 4 * h : 3 * h;
        const gn_rnn_options o = {1, reversed, false, !(k & 8), 0.0};
        const int ways = reversed ? 2 : 1, each = reversed ? 4 : 2, n = 3 + each * ways;
        gn_array *result[2][14], *from[11];
        gn_scope_begin(g);
        from[0] = gn_randn(g, GN_F64, GN_SHAPE(6, rows, 9));
        from[1] = gn_randn(g, GN_F64, GN_SHAPE(ways, rows, h));
        from[2] = gn_randn(g, GN_F64, GN_SHAPE(ways, rows, h));
        for (int i = 3; i < n; i++) {
            const int at = (i - 3) % each;
            from[i] = gn_normal(g, GN_F64, at < 2 ? GN_SHAPE(gates, at == 0 ? 9 : h) : GN_SHAPE(gates), 0.0, 0.2);
        }
        for (int wide = 0; wide < 2; wide++) {
            gn_array *in[11], *out[3] = {NULL, NULL, NULL};
            for (int i = 0; i < n; i++)
                in[i] = gn_requires_grad(gn_copy(gn_cast(gn_cast(from[i], t), wide ? GN_F64 : cast ? GN_F32 : t)), true);
            if (cast && !wide) gn_autocast_begin(g, t);
            out[0] = lstm ? gn_lstm(in[0], in + 3, each * ways, in[1], in[2], &o, &out[1], &out[2])
                          : gn_gru(in[0], in + 3, each * ways, in[1], &o, &out[1]);
            if (cast && !wide) gn_autocast_end(g);
            assert_non_null(out[0]);
            assert_int_equal(gn_dtype_of(out[0]), wide ? GN_F64 : t);
            gn_array *loss = gn_sum(gn_sin(gn_cast(out[0], GN_F64)), GN_ALL);
            for (int i = 1; i < (lstm ? 3 : 2); i++) loss = gn_add(loss, gn_sum(gn_sin(gn_cast(out[i], GN_F64)), GN_ALL));
            assert_int_equal(gn_backward(loss), GN_OK);
            memcpy(result[wide], out, sizeof out);
            for (int i = 0; i < n; i++) {
                result[wide][3 + i] = i == 2 && !lstm ? NULL : gn_grad(in[i]);
                if (result[wide][3 + i] != NULL) assert_int_equal(gn_dtype_of(gn_grad(in[i])), gn_dtype_of(in[i]));
            }
        }
        for (int i = 0; i < 3 + n; i++) {
            if (result[1][i] == NULL) continue;
            gn_array *away = gn_sub(gn_cast(result[0][i], GN_F64), result[1][i]);
            const double most = gn_item(gn_max(gn_abs(result[1][i]), GN_ALL)), off = gn_item(gn_max(gn_abs(away), GN_ALL));
            const double allowed = (t == GN_F16 ? 0.0025 : 0.02) * most;
            if (!(off <= allowed)) print_error("net %d, result %d: %g of %g\n", k, i, off, most);
            assert_true(off <= allowed);
        }
        gn_scope_end(g);
    }
}

static void test_odd_nets(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *in[24], *out[3], *zeros[24];
    net p = nets[0];
    make_net(g, &p, GN_F32, in);
    // No states given: zeros. One step, and no rows.
    run_net(&p, in, out);
    memcpy(zeros, in, sizeof in);
    zeros[1] = zeros[2] = gn_zeros(g, GN_F32, GN_SHAPE(1, 2, 4));
    run_net(&p, zeros, out);
    assert_true(gn_array_equal(gn_lstm(in[0], in + 3, 4, NULL, NULL, NULL, NULL, NULL), out[0], false));
    assert_int_equal(gn_size(gn_lstm(gn_zeros(g, GN_F32, GN_SHAPE(1, 0, 3)), in + 3, 4, NULL, NULL, NULL, NULL, NULL)), 0);
    // Dropout between layers.
    net deep = nets[1];
    gn_array *more[24];
    make_net(g, &deep, GN_F32, more);
    deep.o.dropout = 1.0;
    run_net(&deep, more, out);
    assert_true(gn_item(gn_all(gn_isfinite(out[0]), GN_ALL)) == 1.0);
    // NaN stays in its row.
    gn_array *x = gn_copy(gn_detach(in[0]));
    gn_assign(gn_index(x, "2, 1, 0"), gn_scalar(g, GN_F32, NAN));
    gn_array *nan = gn_isnan(gn_lstm(x, in + 3, 4, NULL, NULL, NULL, NULL, NULL));
    assert_true(gn_item(gn_count_nonzero(nan, GN_ALL)) == 3.0 * 4.0);
    // Refusals.
    assert_null(gn_lstm(in[0], in + 3, 3, NULL, NULL, NULL, &out[0], &out[1]));
    assert_true(out[0] == NULL && out[1] == NULL);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_lstm: 3 weights, not 4; dropout 0; 5 steps");
    assert_null(gn_gru(in[0], in + 3, 4, NULL, NULL, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_gru: weight 1 is float32 (16,3), not float32 (12,3)");
    assert_null(gn_lstm(in[0], in + 3, 4, in[1], gn_zeros(g, GN_F64, GN_SHAPE(1, 2, 4)), NULL, NULL, NULL));
    expect_error(g, GN_ERROR_DTYPE, "gn_lstm: c0 is float64 (1,2,4), not float32 (1,2,4)");
    assert_null(gn_lstm(gn_zeros(g, GN_F32, GN_SHAPE(0, 2, 3)), in + 3, 4, NULL, NULL, NULL, NULL, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_lstm: x (0,2,3) is not (n, batch, in) with n from 1 on");
    zeros[4] = NULL;
    assert_null(gn_lstm(in[0], zeros + 3, 4, NULL, NULL, NULL, NULL, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_lstm: weight 2 is NULL");
    zeros[4] = in[4];
    gn_array *gone = gn_zeros(g, GN_F32, GN_SHAPE(16));
    zeros[5] = gone;
    gn_release(gone);
    assert_null(gn_lstm(in[0], zeros + 3, 4, NULL, NULL, NULL, NULL, NULL));
    expect_error(g, GN_ERROR_STALE, "gn_lstm: weight 3 was released, or is no array of this context");
    gn_context *other = test_open();
    gn_array *abroad = gn_zeros(other, GN_F32, GN_SHAPE(5, 2, 3));
    assert_null(gn_gru(abroad, in + 3, 4, NULL, NULL, NULL));
    expect_error(other, GN_ERROR_ARGUMENT, "gn_gru: weight 1 was released, or is no array of this context");
    assert_null(gn_softmax(abroad, 7)); // its own name: the call before has ended
    expect_error(other, GN_ERROR_ARGUMENT, "gn_softmax: axis 7 is out of bounds for array of rank 3");
    gn_release(abroad);
    gn_close(other);
    assert_null(gn_lstm(NULL, in + 3, 4, NULL, NULL, NULL, NULL, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_lstm: array argument 1 is NULL");
    assert_null(gn_gru(gn_zeros(g, GN_I32, GN_SHAPE(1, 2, 3)), in + 3, 4, NULL, NULL, NULL));
    expect_error(g, GN_ERROR_DTYPE, "gn_gru: int32 is not a float dtype");
}

// All of what a net gives or nothing, also where a full scope has no room for the last of it.
static void test_nets_without_room(void **state) {
    (void)state;
    for (int beside = 20; beside < 31; beside++)
        for (int64_t k = 0, left = 1; left != 0 && !test_on_vulkan(); k++) {
            gn_context *g = test_open();
            gn_scope_begin(g);
            gn_array *in[24], *hn = NULL, *cn = NULL;
            net p = nets[0];
            make_net(g, &p, GN_F32, in);
            for (int i = 0; i < beside; i++) gn_scalar(g, GN_F32, 1.0);
            const int64_t refused = test_heap.refused;
            test_refuse(k, false);
            gn_array *y = gn_lstm(in[0], in + 3, 4, in[1], in[2], NULL, &hn, &cn);
            test_refuse(-1, false);
            left = test_heap.refused - refused;
            assert_true((y != NULL) == (hn != NULL) && (y != NULL) == (cn != NULL));
            assert_true((y != NULL) == (gn_status_get(g) == GN_OK));
            gn_error_clear(g);
            gn_scope_end(g);
            test_close(g);
        }
}

// Keys and values that have a large part in common: of the gradient of the queries it cancels.
static void test_common_part(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 5, D = 4 };
    double x[N][D], weight[N][D], want[N * D];
    float numbers[N][D];
    for (int i = 0; i < N; i++)
        for (int d = 0; d < D; d++) {
            x[i][d] = numbers[i][d] = (float)(20.0 + ((i * 7 + d * 5) % 11) / 16.0); // exact
            weight[i][d] = ((i * 3 + d * 7) % 5) - 2;
        }
    for (int i = 0; i < N; i++) { // softmax's derivative by the scores, p (dp - the sum of p dp), times the keys
        double p[N], dp[N], sum = 0, mean = 0, most = 0;
        for (int j = 0; j < N; j++) {
            p[j] = dp[j] = 0;
            for (int d = 0; d < D; d++) p[j] += x[i][d] * x[j][d] / 2.0, dp[j] += weight[i][d] * x[j][d];
            most = fmax(most, p[j]);
        }
        for (int j = 0; j < N; j++) sum += p[j] = exp(p[j] - most);
        for (int j = 0; j < N; j++) mean += p[j] / sum * dp[j];
        for (int d = 0; d < D; d++) want[i * D + d] = 0;
        for (int j = 0; j < N; j++)
            for (int d = 0; d < D; d++) want[i * D + d] += p[j] / sum * (dp[j] - mean) * x[j][d] / 2.0;
    }
    gn_array *k = gn_array_from(g, GN_F32, GN_SHAPE(1, 1, N, D), numbers), *q = gn_requires_grad(gn_copy(k), true);
    gn_array *w = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(1, 1, N, D), weight), GN_F32);
    assert_int_equal(gn_backward(gn_sum(gn_mul(gn_attention(q, k, k, NULL, NULL), w), GN_ALL)), GN_OK);
    expect_doubles("common part", gn_grad(q), GN_F32, want, N * D, 1e-4);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_values), GN_TEST(test_parts), GN_TEST(test_second_gradients), GN_TEST(test_dropout), GN_TEST(test_fused), GN_TEST(test_large_nets), GN_TEST(test_hidden), cmocka_unit_test(test_blocks), cmocka_unit_test(test_failing_memory), GN_TEST_FRESH(test_memory_used),
                                       GN_TEST(test_odd_values), GN_TEST(test_refusals), GN_TEST(test_rope),
                                       GN_TEST(test_nets), GN_TEST(test_nets_twice), GN_TEST(test_odd_nets), GN_TEST(test_half_nets),
                                       GN_TEST(test_common_part),
                                       cmocka_unit_test(test_nets_without_room)};
    return test_run(tests);
}
