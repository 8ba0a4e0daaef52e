// Arrangements, statistics and products that are made of other calls: against NumPy, in all dtypes, of views, empty arrays and
// special values; their derivatives; what they refuse.

#include "test.h"

enum { MOST = 16 };

typedef struct array_case {
    char name[32], subscript[32];
    gn_array *in[MOST], *out[MOST];
    int n_in, n_p, n_x, n_out;
    int64_t p[MOST];
    double x[MOST];
} array_case;

static int is(const array_case *c, const char *name) { return strcmp(c->name, name) == 0; }

// Fills c->out; false for a name that is not known.
static bool apply(array_case *c) {
    gn_array *a = c->in[0];
    const int64_t *p = c->p;
    const int i0 = (int)p[0], i1 = (int)p[1];
    c->n_out = 1;
    if (is(c, "roll")) c->out[0] = gn_roll(a, p[0], i1);
    else if (is(c, "roll_flat")) c->out[0] = gn_roll(a, p[0], GN_ALL);
    else if (is(c, "roll_two")) c->out[0] = gn_roll(a, p[0], GN_AXES(0, -1));
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
    else return false;
    return true;
}

static bool near_to(gn_array *a, const test_array *b, double near) {
    gn_shape s = gn_shape_of(a);
    const gn_dtype t = b->t == GN_C64 ? GN_F32 : b->t == GN_C128 ? GN_F64 : b->t;
    const int64_t n = t == b->t ? b->n : 2 * b->n;
    if (a == NULL || gn_dtype_of(a) != b->t || s.rank != b->s.rank || gn_bytes(a) != b->bytes) return false;
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] != b->s.dim[i]) return false;
    unsigned char *have = (unsigned char *)malloc(b->bytes + 1);
    bool ok = have != NULL && gn_read(a, have, b->bytes) == GN_OK;
    double most = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double want = fabs(test_element(t, b->data, i));
        if (want - want == 0.0 && want > most) most = want;
    }
    for (int64_t i = 0; i < n && ok; i++) {
        const double x = test_element(t, have, i), want = test_element(t, b->data, i);
        ok = x != x ? want != want : x == want || fabs(x - want) <= near * most;
        if (!ok) print_error("element %lld is %.17g, NumPy has %.17g\n", (long long)i, x, want);
    }
    free(have);
    return ok;
}

static void print_case(const array_case *c) {
    print_error("%s", c->name);
    for (int k = 0; k < c->n_in; k++) {
        gn_shape s = gn_shape_of(c->in[k]);
        print_error(" %s (", gn_dtype_name(gn_dtype_of(c->in[k])));
        for (int i = 0; i < s.rank; i++) print_error("%lld,", (long long)s.dim[i]);
        print_error(")");
    }
    for (int k = 0; k < c->n_p; k++) print_error(" %lld", (long long)c->p[k]);
    for (int k = 0; k < c->n_x; k++) print_error(" %g", c->x[k]);
    print_error("\n");
}

static void test_like_numpy(void **state) {
    gn_context *g = (gn_context *)*state;
    test_cases file;
    int refused = 0, wrong = 0;
    if (!test_cases_open(&file, "arrays")) skip();
    for (int32_t i = 0; i < file.count; i++) {
        array_case c;
        memset(&c, 0, sizeof c);
        gn_scope_begin(g);
        test_take_text(&file, c.name, sizeof c.name);
        const int as = test_take_int(&file);
        c.n_in = test_take_int(&file);
        for (int k = 0; k < c.n_in; k++) {
            test_array base;
            test_take_array(&file, &base);
            test_take_text(&file, c.subscript, sizeof c.subscript);
            c.in[k] = gn_array_from(g, base.t, base.s, base.data);
            if (c.subscript[0] != 0) c.in[k] = gn_index(c.in[k], c.subscript);
            if (as >= 0) c.in[k] = gn_cast(c.in[k], (gn_dtype)as); // pending, of a view
        }
        c.n_p = test_take_int(&file);
        test_take_bytes(&file, c.p, sizeof(int64_t) * (size_t)c.n_p);
        c.n_x = test_take_int(&file);
        test_take_bytes(&file, c.x, sizeof(double) * (size_t)c.n_x);
        const double near = test_take_double(&file);
        const int n = test_take_int(&file);
        if (gn_status_get(g) != GN_OK) fail_msg("operands: %s", gn_error(g));
        const bool left_out = test_on_vulkan() && i % 4 != 0; // a device takes its time to compile kernels
        if (!left_out && !apply(&c)) fail_msg("%s is not known", c.name);
        bool ok = left_out ? true : n < 0 ? gn_status_get(g) != GN_OK : n == c.n_out && gn_status_get(g) == GN_OK;
        for (int k = 0; k < c.n_out && n < 0; k++) ok = ok && c.out[k] == NULL;
        for (int k = 0; k < n; k++) {
            test_array want;
            test_take_array(&file, &want);
            gn_array *y = k < c.n_out ? c.out[k] : NULL;
            if (as >= 0 && y != NULL && gn_dtype_of(y) == (gn_dtype)as) y = gn_cast(y, want.t);
            ok = left_out || (ok && (near > 0.0 ? near_to(y, &want, near) : test_same_bytes(y, &want)));
        }
        if (n < 0) refused++;
        if (!ok) {
            print_error("case %d%s: %s\n    ", (int)i, n < 0 ? ", refused" : "", gn_error(g));
            print_case(&c);
            if (++wrong > 10) fail();
        }
        gn_error_clear(g);
        gn_scope_end(g);
    }
    assert_int_equal(wrong, 0);
    assert_true(refused > 50);
    test_cases_close(&file);
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

static const arrangement arrangements[] = {
    {"roll", grad_roll},       {"tile", grad_tile},           {"repeat", grad_repeat}, {"constant", grad_constant},
    {"edge", grad_edge},       {"reflect", grad_reflect},     {"symmetric", grad_symmetric}, {"wrap", grad_wrap},
    {"diff", grad_diff},       {"window", grad_window},       {"parts", grad_parts},
};

// Elements weigh differently in the loss; twice: the gradient's own loss.
static gn_array *loss_of(gn_context *g, gn_array *const *x, int count, void *user) {
    gn_array *y = ((const arrangement *)user)->fn(x[0]);
    (void)count;
    gn_array *weights = gn_reshape(gn_sin(gn_arange(g, GN_F64, 1, (double)gn_size(y) + 1, 1)), gn_shape_of(y));
    return gn_sum(gn_mul(gn_mul(y, y), weights), GN_ALL);
}
static gn_array *twice(gn_context *g, gn_array *const *x, int count, void *user) {
    gn_array *dx = NULL;
    if (gn_gradients(loss_of(g, x, count, user), x, 1, true, &dx) != GN_OK) return NULL;
    return gn_sum(gn_square(dx), GN_ALL);
}

static void test_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    for (size_t i = 0; i < sizeof arrangements / sizeof arrangements[0]; i++) {
        arrangement own = arrangements[i];
        gn_scope_begin(g);
        gn_array *x = gn_sin(gn_add_s(gn_arange(g, GN_F64, 0, 12, 1), 0.3));
        x = gn_requires_grad(gn_eval(gn_reshape(x, GN_SHAPE(3, 4))), true);
        const double first = gn_gradcheck(loss_of, &x, 1, 0.0, &own), second = gn_gradcheck(twice, &x, 1, 0.0, &own);
        if (!(first < 1e-6) || !(second < 1e-5)) fail_msg("%s: errors %g, %g: %s", own.name, first, second, gn_error(g));
        gn_scope_end(g);
    }
    // Of complex numbers what is taken twice counts twice.
    gn_array *re = gn_requires_grad(gn_full(g, GN_F32, GN_SHAPE(3), 2), true), *im = gn_requires_grad(gn_copy(gn_detach(re)), true);
    const int64_t one = 1;
    gn_array *z = gn_pad(gn_complex(re, im), &one, 1, GN_PAD_EDGE, 0);
    assert_int_equal(gn_backward(gn_sum(gn_add(gn_real(z), gn_mul_s(gn_imag(z), 3)), GN_ALL)), GN_OK);
    expect_values(gn_grad(re), 2, 1, 2);
    expect_values(gn_grad(im), 6, 3, 6);
}

// ---- what they share and what they refuse

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
    assert_int_equal(gn_write(gn_index(windows, ":, 0"), values, 16), GN_OK); // one window of each row
    assert_int_equal(gn_write(gn_flip(gn_transpose(a), GN_ALL), eight, 24), GN_OK);
    expect_values(gn_sum(windows, GN_ALL), 0);
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

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_like_numpy), GN_TEST(test_gradients), GN_TEST(test_views),
                                       cmocka_unit_test(test_ownership), GN_TEST(test_refusals)};
    return cmocka_run_group_tests_name("arrays", tests, NULL, NULL);
}
