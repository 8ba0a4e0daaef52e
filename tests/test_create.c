// Creation functions, compared with NumPy.

#include "test.h"

static void test_constants(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int t = 0; t < GN_DTYPE_COUNT; t++) {
        gn_dtype dtype = (gn_dtype)t;
        gn_array *zero = gn_zeros(g, dtype, GN_SHAPE(2, 3)), *one = gn_ones(g, dtype, GN_SHAPE(3));
        gn_array *full = gn_full(g, dtype, GN_SHAPE(2), 1), *like = gn_full_like(zero, 1);
        assert_int_equal(gn_dtype_of(zero), dtype);
        assert_int_equal(gn_dtype_of(like), dtype);
        expect_shape(zero, 2, 3);
        assert_int_equal(gn_rank(gn_scalar(g, dtype, 1)), 0);
        expect_shape(gn_zeros_like(zero), 2, 3);
        if (dtype == GN_C64) {
            float z[6];
            assert_int_equal(gn_read(one, z, sizeof(float) * 6), GN_OK);
            assert_true(z[0] == 1.0f && z[1] == 0.0f && z[4] == 1.0f && z[5] == 0.0f);
            continue;
        }
        if (dtype == GN_C128) {
            double z[4];
            assert_int_equal(gn_read(full, z, sizeof z), GN_OK);
            assert_true(z[0] == 1.0 && z[1] == 0.0 && z[2] == 1.0 && z[3] == 0.0);
            continue;
        }
        expect_values(zero, 0, 0, 0, 0, 0, 0);
        expect_values(one, 1, 1, 1);
        expect_values(full, 1, 1);
        expect_values(like, 1, 1, 1, 1, 1, 1);
        expect_values(gn_ones_like(zero), 1, 1, 1, 1, 1, 1);
        expect_values(gn_scalar(g, dtype, 1), 1);
    }
    expect_values(gn_full(g, GN_F32, GN_SHAPE(1), 0.1), (double)0.1f);
    expect_values(gn_full(g, GN_F64, GN_SHAPE(1), 0.1), 0.1);
    expect_values(gn_full(g, GN_F16, GN_SHAPE(1), 0.1), 0.0999755859375);
    expect_values(gn_full(g, GN_BF16, GN_SHAPE(1), 0.1), 0.10009765625);
    expect_values(gn_full(g, GN_I32, GN_SHAPE(2), -2.9), -2, -2);
    expect_values(gn_full(g, GN_I64, GN_SHAPE(1), 4503599627370497.0), 4503599627370497.0);
    expect_values(gn_full(g, GN_U32, GN_SHAPE(1), 4294967295.0), 4294967295.0);
    expect_values(gn_full(g, GN_BOOL, GN_SHAPE(1), -0.5), 1);
    expect_values(gn_full(g, GN_F32, GN_SHAPE(2), NAN), NAN, NAN);
    // The values of the dtype also where a program reads the constant without storing it.
    expect_values(gn_cast(gn_full(g, GN_U8, GN_SHAPE(1), 255.9), GN_F32), 255);
    expect_values(gn_cast(gn_full(g, GN_I8, GN_SHAPE(1), -128.9), GN_I64), -128);
    expect_values(gn_sum(gn_full(g, GN_U8, GN_SHAPE(2), 254.5), GN_ALL), 508);
    expect_values(gn_max(gn_full(g, GN_I64, GN_SHAPE(2), -0.5), GN_ALL), 0);
    expect_values(gn_full(g, GN_I64, GN_SHAPE(1), -0x1p63), -0x1p63);
    // Rounded once, not to float32 first.
    const double above_tie = 1.0 + ldexp(1.0, -11) + ldexp(1.0, -30);
    expect_values(gn_full(g, GN_F16, GN_SHAPE(1), above_tie), 1.0 + ldexp(1.0, -10));
    expect_values(gn_add_s(gn_zeros(g, GN_F16, GN_SHAPE(1)), above_tie), 1.0 + ldexp(1.0, -10));
    expect_values(gn_full(g, GN_BF16, GN_SHAPE(1), 1.0 + ldexp(1.0, -8) + ldexp(1.0, -40)), 1.0 + ldexp(1.0, -7));
    expect_values(gn_full(g, GN_F32, GN_SHAPE(1), -0.0), -0.0);
    expect_values(gn_scalar(g, GN_F16, 1e6), INFINITY);
    expect_shape(gn_empty(g, GN_F32, GN_SHAPE(4, 0)), 4, 0);
    gn_array *e = gn_empty(g, GN_I32, GN_SHAPE(2));
    const int32_t two[] = {7, 8};
    assert_int_equal(gn_write(e, two, sizeof two), GN_OK);
    expect_values(e, 7, 8);
}

// Integers that float32 cannot hold, compared with a scalar between two of them.
static void test_between_integers(void **state) {
    gn_context *g = (gn_context *)*state;
    const int32_t v[] = {16777215, 16777216, 16777217};
    const int64_t w[] = {1099511627775, 1099511627776};
    gn_array *a = gn_array_from(g, GN_I32, GN_SHAPE(3), v), *b = gn_array_from(g, GN_I64, GN_SHAPE(2), w);
    expect_values(gn_gt_s(a, 16777216.5), 0, 0, 1);
    expect_values(gn_ge_s(a, 16777216.5), 0, 0, 1);
    expect_values(gn_lt_s(a, 16777216.5), 1, 1, 0);
    expect_values(gn_le_s(a, 16777215.5), 1, 0, 0);
    expect_values(gn_eq_s(a, 16777216.5), 0, 0, 0);
    expect_values(gn_ne_s(a, 16777216.5), 1, 1, 1);
    expect_values(gn_lt_s(b, 1099511627775.5), 1, 0);
    expect_values(gn_eq_s(b, 1099511627775.5), 0, 0);
    expect_values(gn_lt_s(gn_ones(g, GN_BOOL, GN_SHAPE(1)), 1.5), 1);
    expect_values(gn_gt_s(a, NAN), 0, 0, 0);
    expect_values(gn_lt_s(a, INFINITY), 1, 1, 1);
}

static void test_refused(void **state) {
    gn_context *g = (gn_context *)*state;
    int64_t dims[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    assert_null(gn_zeros(g, (gn_dtype)99, GN_SHAPE(2)));
    expect_error(g, GN_ERROR_DTYPE, NULL);
    assert_null(gn_ones(g, GN_F32, GN_SHAPE(2, -1)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_full(g, GN_F32, gn_shape_from(9, dims), 1));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_empty(g, GN_F32, gn_shape_from(-1, dims)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_empty(g, GN_F32, GN_SHAPE(INT64_MAX, 2)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_zeros(g, GN_F32, GN_SHAPE(INT64_MAX / 4, INT64_MAX / 4)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    expect_shape(gn_zeros(g, GN_F32, GN_SHAPE(INT64_MAX, INT64_MAX, 0)), INT64_MAX, INT64_MAX, 0);
    assert_null(gn_arange(g, GN_F32, 0, 1, 0));
    expect_error(g, GN_ERROR_ARGUMENT,
                 "gn_arange: cannot compute the length from start 0, stop 1, step 0");
    assert_null(gn_arange(g, GN_F32, 0, NAN, 1));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_arange(g, GN_F32, 0, 1e300, 1));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_linspace(g, GN_F32, 0, 1, -1));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_eye(g, GN_F32, -1, 2, 0));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_zeros(NULL, GN_F32, GN_SHAPE(2)));
    // Numbers that the dtype does not hold.
    const struct {
        gn_dtype t;
        double value;
    } outside[] = {{GN_U8, 256}, {GN_U8, -1}, {GN_I8, -129}, {GN_I8, 128}, {GN_U32, -1}, {GN_U32, 0x1p32}, {GN_I32, 0x1p31},
                   {GN_I32, -0x1.00000002p31}, {GN_I64, 0x1p63}, {GN_I64, -0x1.0000000000001p63}, {GN_I64, NAN},
                   {GN_U8, INFINITY}};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        gn_dtype t = outside[i].t;
        const double v = outside[i].value;
        assert_null(gn_full(g, t, GN_SHAPE(2), v));
        expect_error(g, GN_ERROR_ARGUMENT, NULL);
        assert_null(gn_full_like(gn_zeros(g, t, GN_SHAPE(2)), v));
        expect_error(g, GN_ERROR_ARGUMENT, NULL);
        assert_null(gn_scalar(g, t, v));
        expect_error(g, GN_ERROR_ARGUMENT, NULL);
        assert_null(gn_linspace(g, t, 0, v, 3));
        expect_error(g, GN_ERROR_ARGUMENT, NULL);
    }
    assert_null(gn_arange(g, GN_U8, 0, 257, 1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_arange: 256 is outside of uint8");
    assert_int_equal(gn_size(gn_arange(g, GN_U8, 0, 256, 1)), 256);
    assert_null(gn_arange(g, GN_I8, -129, 0, 1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_arange: -129 is outside of int8");
    assert_null(gn_zeros_like(NULL));
    assert_null(gn_arange(NULL, GN_F32, 0, 1, 1));
}

static void test_like_numpy(void **state) {
    gn_context *g = (gn_context *)*state;
    test_cases c;
    if (!test_cases_open(&c, "create")) skip();
    for (int32_t i = 0; i < c.count; i++) {
        test_array e;
        int kind = test_take_int(&c);
        double p0 = test_take_double(&c), p1 = test_take_double(&c), p2 = test_take_double(&c);
        int64_t count;
        test_take_bytes(&c, &count, sizeof count);
        test_take_array(&c, &e);
        gn_scope_begin(g);
        gn_array *a = kind == 0   ? gn_arange(g, e.t, p0, p1, p2)
                      : kind == 1 ? gn_linspace(g, e.t, p0, p1, count)
                                  : gn_eye(g, e.t, (int64_t)p0, (int64_t)p1, (int64_t)p2);
        if (!test_same_bytes(a, &e)) {
            char *text = gn_to_string(a, NULL);
            print_error("%s of %s: %.17g %.17g %.17g %lld\n%s\n",
                        kind == 0   ? "arange"
                        : kind == 1 ? "linspace"
                                    : "eye",
                        gn_dtype_name(e.t), p0, p1, p2, (long long)count,
                        text ? text : gn_error(g));
            gn_string_free(g, text);
            text = gn_to_string(gn_array_from(g, e.t, e.s, e.data), NULL);
            print_error("expected:\n%s\n", text);
            gn_string_free(g, text);
            fail();
        }
        gn_scope_end(g);
    }
    test_cases_close(&c);
}

// Numbers that float64 does not hold.
static void test_exact_integers(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t numbers[] = {INT64_MAX, INT64_MIN, INT64_MIN + 1, ((int64_t)1 << 53) + 1, -((int64_t)1 << 60) - 7, -1, 0, 5};
    gn_scope_begin(g);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int64_t v = numbers[i], data[2];
        assert_int_equal(gn_item_int(gn_full_int(g, GN_I64, GN_SHAPE(), v)), v);
        gn_array *sum = gn_add(gn_full_int(g, GN_I64, GN_SHAPE(2), v), gn_full_int(g, GN_I64, GN_SHAPE(), 3));
        assert_int_equal(gn_read(sum, data, sizeof data), GN_OK);
        assert_true((uint64_t)data[1] == (uint64_t)v + 3u);
        expect_values(gn_full_int(g, GN_F64, GN_SHAPE(), v), (double)v);
        expect_values(gn_full_int(g, GN_BOOL, GN_SHAPE(), v), v != 0);
        if (v >= 0) assert_int_equal(gn_item_int(gn_full_int(g, GN_U64, GN_SHAPE(1, 1), v)), v);
    }
    const uint64_t large[] = {UINT64_MAX, 1, UINT64_MAX - 1};
    gn_array *a = gn_array_from(g, GN_U64, GN_SHAPE(3), large);
    assert_true((uint64_t)gn_item_int(gn_max(a, GN_ALL)) == UINT64_MAX);
    assert_int_equal(gn_item_int(gn_min(a, GN_ALL)), 1);
    assert_int_equal(gn_item_int(gn_argmin(a, GN_ALL)), 1);
    assert_true((uint64_t)gn_item_int(gn_sum(a, GN_ALL)) == UINT64_MAX - 1);
    assert_int_equal(gn_item_int(gn_scalar(g, GN_F32, -2.75)), -2);
    expect_values(gn_lt_s(a, -1), 0, 0, 0);
    expect_values(gn_gt_s(a, 1e19), 1, 0, 1);
    assert_null(gn_full_int(g, GN_U8, GN_SHAPE(1), 256));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_full_int: 256 is outside of uint8");
    assert_null(gn_full_int(g, GN_U64, GN_SHAPE(1), -1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_full_int: -1 is outside of uint64");
    // One element of any dtype, many times.
    const uint64_t odd = UINT64_MAX - 2;
    uint64_t read[3] = {0, 0, 0};
    assert_int_equal(gn_read(gn_full_from(g, GN_U64, GN_SHAPE(3), &odd), read, sizeof read), GN_OK);
    assert_true(read[0] == odd && read[2] == odd);
    const double pair[] = {1.5, -0.0};
    double parts[4];
    gn_array *pairs = gn_full_from(g, GN_C128, GN_SHAPE(2), pair);
    assert_int_equal(gn_read(pairs, parts, sizeof parts), GN_OK);
    assert_true(parts[2] == 1.5 && parts[3] == 0.0 && signbit(parts[3]));
    assert_int_equal(gn_write(pairs, parts, sizeof parts), GN_OK);
    for (int t = 0; t < GN_DTYPE_COUNT; t++) {
        gn_array *one = gn_full(g, (gn_dtype)t, GN_SHAPE(2, 0, 3), 1.0), *like = gn_empty_like(one);
        expect_shape(like, 2, 0, 3);
        assert_int_equal(gn_dtype_of(like), t);
        unsigned char element[16], all[48];
        gn_read(gn_scalar(g, (gn_dtype)t, 1.0), element, gn_dtype_size((gn_dtype)t));
        assert_int_equal(gn_read(gn_full_from(g, (gn_dtype)t, GN_SHAPE(3), element), all, 3 * gn_dtype_size((gn_dtype)t)), GN_OK);
        for (int i = 0; i < 3; i++) assert_memory_equal(all + (size_t)i * gn_dtype_size((gn_dtype)t), element, gn_dtype_size((gn_dtype)t));
    }
    assert_null(gn_full_from(g, GN_U8, GN_SHAPE(1), NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_full_from: value is NULL");
    assert_int_equal(gn_item_int(a), 0);
    expect_error(g, GN_ERROR_SHAPE, "gn_item_int: (3,) has more or less than one element");
    gn_scope_end(g);
}

// Element i of `a` against first + i step in float64, cut off for integers, and the last one.
static void expect_steps(gn_array *a, double first, double step, double last) {
    const int64_t n = gn_size(a);
    const gn_dtype t = gn_dtype_of(a);
    double *have = (double *)malloc((size_t)n * sizeof(double));
    assert_int_equal(gn_read(gn_cast(a, GN_F64), have, (size_t)n * sizeof(double)), GN_OK);
    for (int64_t i = 0; i < n; i++) {
        const double x = i + 1 == n ? last : first + (double)i * step;
        const double want = t == GN_F32 ? (double)(float)x : t == GN_F64 ? x : trunc(x);
        if (have[i] != want) fail_msg("%s: element %d is %.17g, not %.17g", gn_dtype_name(t), (int)i, have[i], want);
    }
    free(have);
}

// Made where they are read first, or overwritten before anyone does.
static void test_steps(void **state) {
    static const gn_dtype types[] = {GN_F32, GN_F64, GN_I32, GN_I64};
    gn_context *g = (gn_context *)*state;
    for (int k = 0; k < 4; k++)
        for (int64_t n = 255; n < 2000; n = 3 * n + 2)
            for (int side = 0; side < 2; side++) {
                gn_scope_begin(g);
                gn_array *a = gn_arange(g, types[k], -7.25, -7.25 + 0.37 * ((double)n - 0.5), 0.37), *b, *c;
                const double step = (-7.25 + 0.37) - -7.25;
                if (side == 1 && test_on_vulkan()) gn_to(a, GN_DEVICE_GPU);
                expect_steps(a, -7.25, step, -7.25 + ((double)n - 1.0) * step);
                b = gn_linspace(g, types[k], 3.0, 1e6 / 3.0, n);
                expect_steps(side == 0 ? b : gn_reshape(b, GN_SHAPE(1, n)), 3.0, (1e6 / 3.0 - 3.0) / ((double)n - 1.0), 1e6 / 3.0);
                // What read them before a part is assigned has the old ones.
                b = gn_arange(g, types[k], 0.0, (double)n, 1.0);
                c = gn_add_s(b, 1.0);
                assert_int_equal(gn_assign(gn_slice(b, 0, 1, 3, 1), gn_scalar(g, types[k], 77.0)), GN_OK);
                expect_steps(c, 1.0, 1.0, (double)n);
                expect_values(gn_slice(b, 0, 0, 4, 1), 0, 77, 77, 3);
                expect_steps(gn_slice(b, 0, 3, n, 1), 3.0, 1.0, (double)n - 1.0);
                gn_scope_end(g);
            }
    gn_scope_begin(g);
    gn_array *w = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(300)), true), *x = gn_arange(g, GN_F32, 0.0, 300.0, 1.0);
    gn_array *y = gn_sum(gn_mul(w, x), GN_ALL);
    assert_int_equal(gn_assign(x, gn_zeros_like(x)), GN_OK);
    assert_int_equal(gn_backward(y), GN_ERROR_GRADIENT); // x was overwritten
    gn_error_clear(g);
    gn_scope_end(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_constants),
        GN_TEST(test_between_integers),
        GN_TEST(test_refused),
        GN_TEST(test_exact_integers),
        GN_TEST(test_steps),
        GN_TEST(test_like_numpy),
    };
    return test_run(tests);
}
