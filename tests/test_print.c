// Printing, compared with NumPy's repr.

#include "test.h"

static void expect_text_at(gn_array *a, const gn_print_options *o, const char *expected,
                           const char *file, int line) {
    gn_context *g = gn_context_of(a);
    char *text = gn_to_string(a, o);
    bool same = text != NULL && strcmp(text, expected) == 0;
    if (!same) {
        print_error("expected:\n%s\ngot:\n%s\n%s\n", expected, text ? text : "(NULL)", gn_error(g));
        if (o != NULL)
            print_error("precision %d, threshold %lld, edge items %d, line width %d\n",
                        o->precision, (long long)o->threshold, o->edge_items, o->line_width);
    }
    gn_string_free(g, text);
    if (!same) _fail(file, line);
}
#define expect_text(a, expected) expect_text_at((a), NULL, (expected), __FILE__, __LINE__)

static void test_by_hand(void **state) {
    gn_context *g = (gn_context *)*state;
    const float four[] = {1, 2, 3, 4}, odd[] = {-1.5f, NAN, INFINITY};
    const int32_t ints[] = {1, -20, 300};
    const uint8_t bools[] = {1, 0};
    const double doubles[] = {0.1, 1e10};
    expect_text(gn_array_from(g, GN_F32, GN_SHAPE(2, 2), four),
                "array([[1., 2.],\n       [3., 4.]], dtype=float32)");
    expect_text(gn_array_from(g, GN_F32, GN_SHAPE(3), odd),
                "array([-1.5,  nan,  inf], dtype=float32)");
    expect_text(gn_array_from(g, GN_I32, GN_SHAPE(3), ints), "array([  1, -20, 300], dtype=int32)");
    expect_text(gn_array_from(g, GN_BOOL, GN_SHAPE(2), bools), "array([ True, False])");
    expect_text(gn_array_from(g, GN_F64, GN_SHAPE(2), doubles), "array([1.e-01, 1.e+10])");
    expect_text(gn_scalar(g, GN_F64, 2.5), "array(2.5)");
    expect_text(gn_scalar(g, GN_BF16, 3.140625), "array(3.14, dtype=bfloat16)");
    expect_text(gn_zeros(g, GN_F32, GN_SHAPE(2, 0)), "array([], shape=(2, 0), dtype=float32)");
    expect_text(gn_zeros(g, GN_F32, GN_SHAPE(0)), "array([], dtype=float32)");
    // NumPy 2.3: limits by the array's own precision, and the shape of what is cut short.
    const float large[] = {1e6f, 1e3f, 999999.0f};
    expect_text(gn_array_from(g, GN_F32, GN_SHAPE(2), large), "array([1.e+06, 1.e+03], dtype=float32)");
    expect_text(gn_array_from(g, GN_F32, GN_SHAPE(2), large + 1), "array([  1000., 999999.], dtype=float32)");
    expect_text(gn_array_from(g, GN_F32, GN_SHAPE(1), large + 2), "array([999999.], dtype=float32)");
    expect_text(gn_full(g, GN_F16, GN_SHAPE(2), 1000.0), "array([1.e+03, 1.e+03], dtype=float16)");
    expect_text(gn_full(g, GN_F16, GN_SHAPE(2), 999.5), "array([999.5, 999.5], dtype=float16)");
    const float small[] = {1e-4f, 1.0f};
    expect_text(gn_array_from(g, GN_F32, GN_SHAPE(1), small), "array([0.0001], dtype=float32)");
    expect_text(gn_array_from(g, GN_F32, GN_SHAPE(2), small), "array([1.e-04, 1.e+00], dtype=float32)");
    expect_text(gn_zeros(g, GN_F32, GN_SHAPE(1001)),
                "array([0., 0., 0., ..., 0., 0., 0.], shape=(1001,), dtype=float32)");
    expect_text(gn_zeros(g, GN_F64, GN_SHAPE(40, 40)),
                "array([[0., 0., 0., ..., 0., 0., 0.],\n       [0., 0., 0., ..., 0., 0., 0.],\n"
                "       [0., 0., 0., ..., 0., 0., 0.],\n       ...,\n       [0., 0., 0., ..., 0., 0., 0.],\n"
                "       [0., 0., 0., ..., 0., 0., 0.],\n       [0., 0., 0., ..., 0., 0., 0.]], shape=(40, 40))");
    expect_text(gn_cast(gn_full(g, GN_F64, GN_SHAPE(1, 2000), -1.0 / 3.0), GN_C64),
                "array([[-0.33333334+0.j, -0.33333334+0.j, -0.33333334+0.j, ...,\n"
                "        -0.33333334+0.j, -0.33333334+0.j, -0.33333334+0.j]],\n"
                "      shape=(1, 2000), dtype=complex64)");
}

static void test_views(void **state) {
    gn_context *g = (gn_context *)*state;
    const int64_t six[] = {0, 1, 2, 3, 4, 5};
    gn_array *a = gn_array_from(g, GN_I64, GN_SHAPE(2, 3), six);
    expect_text(gn_transpose(a), "array([[0, 3],\n       [1, 4],\n       [2, 5]])");
    expect_text(gn_flip(a, GN_ALL), "array([[5, 4, 3],\n       [2, 1, 0]])");
    expect_text(gn_index(a, "1, ::2"), "array([3, 5])");
    expect_text(gn_broadcast_to(gn_index(a, "0, 1"), GN_SHAPE(3)), "array([1, 1, 1])");
}

static void test_options_checked(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_print_options o = {0, 0, 0, -1};
    assert_null(gn_to_string(gn_zeros(g, GN_F32, GN_SHAPE(2)), &o));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_to_string: negative options");
    assert_null(gn_to_string(NULL, NULL));
    gn_string_free(g, NULL);
    gn_print(NULL);
}

static void test_like_numpy(void **state) {
    gn_context *g = (gn_context *)*state;
    test_cases c;
    if (!test_cases_open(&c, "print")) skip();
    assert_true(c.count > 1000);
    char *expected = (char *)malloc(c.size);
    for (int32_t i = 0; i < c.count; i++) {
        gn_print_options o;
        test_array a;
        o.precision = test_take_int(&c);
        o.threshold = test_take_int(&c);
        o.edge_items = test_take_int(&c);
        o.line_width = test_take_int(&c);
        test_take_array(&c, &a);
        test_take_text(&c, expected, c.size);
        gn_scope_begin(g);
        expect_text_at(gn_array_from(g, a.t, a.s, a.data), &o, expected, __FILE__, __LINE__);
        gn_scope_end(g);
    }
    free(expected);
    test_cases_close(&c);
}

static void print_two(gn_context *g) {
    gn_scope_begin(g);
    gn_print_options o = {0, 5, 0, 0};
    gn_array *a = gn_reshape(gn_arange(g, GN_F32, 0, 60, 1), GN_SHAPE(3, 20));
    char *text = gn_to_string(gn_add_s(gn_transpose(a), 0.5), NULL);
    char *cut = gn_to_string(a, &o);
    gn_string_free(g, text);
    gn_string_free(g, cut);
    gn_scope_end(g);
}

static void test_out_of_memory(void **state) {
    (void)state;
    test_every_allocation(print_two);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_by_hand),
        GN_TEST(test_views),
        GN_TEST(test_options_checked),
        cmocka_unit_test(test_out_of_memory), GN_TEST(test_like_numpy),
    };
    return test_run(tests);
}
