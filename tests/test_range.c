// Numbers at the edge of their format: integers that must be rounded once, sums and products whose parts leave the range, moments of
// large integers. References: integer arithmetic, sums of powers of two that are exact, long double.

#include "test.h"

#include <float.h>

// On the CPU each test runs with every instruction set.
static void on_every_cpu(gn_context *g, void (*check)(gn_context *g)) {
    static const gn_cpu sets[] = {GN_CPU_PLAIN, GN_CPU_BASE, GN_CPU_AVX2, GN_CPU_AVX512};
    check(g);
    for (int i = 0; i < 4 && !test_on_vulkan(); i++) {
        gn_options o = test_options();
        o.cpu = sets[i];
        gn_context *other = gn_open(&o);
        if (other == NULL) continue; // the CPU lacks it
        gn_scope_begin(other);
        check(other);
        assert_string_equal(gn_error(other), "");
        gn_scope_end(other);
        gn_close(other);
    }
}

// ---- integers to floats

// `v` rounded to `digits` binary digits, ties to even, by integers alone; infinite beyond `most`.
static double rounded(int64_t v, int digits, double most) {
    uint64_t u = v < 0 ? 0u - (uint64_t)v : (uint64_t)v;
    int shift = 0;
    while (u >> shift >> digits != 0) shift++;
    uint64_t kept = u >> shift, rest = u - (kept << shift), half = shift > 0 ? (uint64_t)1 << (shift - 1) : 1;
    if (rest > half || (rest == half && (kept & 1u))) kept++;
    double r = ldexp((double)kept, shift);
    if (r > most) r = (double)INFINITY;
    return v < 0 ? -r : r;
}

// An integer of at most `bits` bits: a tie of `digits`, or one apart from it by a power of two.
static int64_t near_tie(int bits, int digits) {
    int length = digits + 1 + (int)draw((uint32_t)(bits - digits)), cut = length - digits;
    uint64_t v = (uint64_t)draw(1u << 30) << 34 ^ (uint64_t)draw(1u << 30) << 8 ^ draw(256);
    v = (v | (uint64_t)1 << 63) >> (64 - length) >> cut << cut | (uint64_t)1 << (cut - 1);
    uint64_t apart = (uint64_t)1 << draw((uint32_t)cut);
    switch (draw(3)) {
    case 0: return (int64_t)v;
    case 1: return (int64_t)(v + apart / 2);
    default: return (int64_t)(v - apart / 2);
    }
}

enum { INTEGERS = 4099 };

static void expect_rounded(gn_array *a, gn_dtype t, const int64_t *v) {
    static unsigned char data[INTEGERS * 4];
    const int digits = t == GN_F32 ? 24 : t == GN_F16 ? 11 : 8;
    const double most = t == GN_F16 ? 65504.0 : (double)FLT_MAX;
    assert_int_equal(gn_dtype_of(a), t);
    assert_int_equal(gn_read(a, data, INTEGERS * gn_dtype_size(t)), GN_OK);
    for (int i = 0; i < INTEGERS; i++) {
        double have = test_element(t, data, i), want = rounded(v[i], digits, most);
        if (have != want)
            fail_msg("%lld to %s: %.17g, expected %.17g", (long long)v[i], gn_dtype_name(t), have, want);
    }
}

static void check_rounded(gn_context *g) {
    static const gn_dtype from[] = {GN_I64, GN_I32, GN_U32}, to[] = {GN_F32, GN_F16, GN_BF16};
    static const int bits[] = {63, 31, 32}, digits[] = {24, 11, 8};
    static const int64_t ends[] = {0, 1, 65519, 65520, 16777217, 2147483647, INT64_MAX, INT64_MIN};
    static int64_t v[INTEGERS];
    for (int f = 0; f < 3; f++) {
        for (int i = 0; i < INTEGERS; i++) {
            v[i] = near_tie(bits[f], digits[i % 3]);
            if (from[f] != GN_U32 && (i & 8)) v[i] = -v[i];
        }
        memcpy(v, ends, sizeof *ends * (from[f] == GN_I64 ? 8 : 6));
        gn_array *wide = gn_array_from(g, GN_I64, GN_SHAPE(INTEGERS), v), *a = gn_eval(gn_cast(wide, from[f]));
        for (int t = 0; t < 3; t++) {
            expect_rounded(gn_cast(a, to[t]), to[t], v);
            expect_rounded(gn_cast(gn_cast(wide, from[f]), to[t]), to[t], v); // in one program
            expect_rounded(gn_neg(gn_neg(gn_cast(a, to[t]))), to[t], v);
            expect_rounded(gn_add(gn_zeros(g, to[t], GN_SHAPE(1)), gn_cast(a, to[t])), to[t], v);
        }
        expect_rounded(gn_div_s(a, 1.0), GN_F32, v); // operands become float32
        expect_rounded(gn_real(gn_cast(a, GN_C64)), GN_F32, v);
    }
}

static void test_rounded_once(void **state) {
    on_every_cpu((gn_context *)*state, check_rounded);
}

// ---- sums

// 0: all positive ones first, 1: signs in turn, 2: at random, 3: in runs of 7. As many of each sign, in units.
static void fill_signs(int8_t *x, int64_t n, int order) {
    for (int64_t i = 0; i < n; i++) x[i] = order == 1 ? (i & 1 ? -1 : 1) : order == 3 ? (i / 7 & 1 ? -1 : 1) : i < n / 2 ? 1 : -1;
    for (int64_t i = n - 1; i > 0 && order == 2; i--) {
        int64_t k = (int64_t)draw((uint32_t)i + 1);
        int8_t t = x[i];
        x[i] = x[k];
        x[k] = t;
    }
}

// The sum of n numbers +-unit and a few more, along rows (axis 1) or columns (axis 0) of a matrix with `lines` of them.
static void check_sum(gn_context *g, gn_dtype t, int64_t n, int64_t lines, int axis, int order) {
    const int top = t == GN_F64 ? 1023 : 127;
    double *x = (double *)malloc(sizeof(double) * (size_t)(n * lines)), *sums = (double *)malloc(sizeof(double) * (size_t)lines);
    int8_t *sign = (int8_t *)malloc((size_t)n);
    if (x == NULL || sums == NULL || sign == NULL) fail_msg("out of memory");
    for (int64_t l = 0; l < lines; l++) {
        int64_t units = 0; // of 2^top: the sum, exact in integers
        fill_signs(sign, n, order);
        for (int64_t i = 0; i < n; i++) {
            int v = i == n / 3 && l % 3 == 1 ? 0 : sign[i];
            units += v;
            x[axis == 1 ? l * n + i : i * lines + l] = ldexp((double)v, top);
        }
        sums[l] = ldexp((double)units, top);
        if (llabs(units) >= 2) sums[l] = units > 0 ? (double)INFINITY : -(double)INFINITY;
        if (l % 5 == 4) { // infinite input
            x[axis == 1 ? l * n + n / 2 : n / 2 * lines + l] = (double)INFINITY;
            sums[l] = (double)INFINITY;
        }
        if (l % 5 == 3) {
            x[axis == 1 ? l * n : l] = (double)NAN;
            sums[l] = (double)NAN;
        }
    }
    gn_scope_begin(g);
    gn_array *a = gn_array_from(g, GN_F64, axis == 1 ? GN_SHAPE(lines, n) : GN_SHAPE(n, lines), x);
    a = gn_eval(gn_cast(a, t));
    gn_array *y = lines == 1 ? gn_sum(a, GN_KEEP(GN_ALL)) : gn_sum(a, axis), *twice = gn_sum(gn_neg(a), axis);
    for (int k = 0; k < 2; k++) {
        unsigned char data[64 * 8];
        assert_true(lines <= 64);
        assert_int_equal(gn_read(k ? twice : y, data, (size_t)lines * gn_dtype_size(t)), GN_OK);
        for (int64_t l = 0; l < lines; l++) {
            double have = test_element(t, data, l), want = k ? -sums[l] : sums[l];
            if (!(have == want || (have != have && want != want)))
                fail_msg("%s, %lld numbers, axis %d, order %d, line %lld: sum %g, expected %g", gn_dtype_name(t), (long long)n,
                         axis, order, (long long)l, have, want);
        }
    }
    gn_scope_end(g);
    free(x);
    free(sums);
    free(sign);
}

static void check_sums(gn_context *g) {
    static const gn_dtype dtypes[] = {GN_F32, GN_BF16, GN_F64};
    static const int64_t sizes[] = {2, 4, 5, 31, 100, 1030, 20000, 300000};
    for (int d = 0; d < 3; d++)
        for (int s = 0; s < 8; s++)
            for (int order = 0; order < 4; order++) {
                if (test_on_vulkan() && s > 4 && (s + order + d) % 2) continue;
                if (TEST_THREAD_SANITIZER && (s < 5 || (s + d) % 4 != order)) continue; // one thread has smaller ones, whatever the signs
                check_sum(g, dtypes[d], sizes[s], 1, 1, order);
                if (sizes[s] > 2000) continue;
                check_sum(g, dtypes[d], sizes[s], 37, 1, order);
                check_sum(g, dtypes[d], sizes[s], 37, 0, order);
            }
    const float parts[] = {3e38f, 3e38f, -3e38f, -3e38f, 3e38f, -3e38f, 1.5e38f, 2e38f, -3e38f};
    expect_values(gn_sum(gn_array_from(g, GN_F32, GN_SHAPE(4), parts), GN_ALL), 0);
    expect_values(gn_mean(gn_array_from(g, GN_F32, GN_SHAPE(4), parts + 1), GN_ALL), 0);
    expect_values(gn_sum(gn_array_from(g, GN_F32, GN_SHAPE(2), parts), GN_ALL), (double)INFINITY);
    float y;
    assert_int_equal(gn_read(gn_sum(gn_array_from(g, GN_F32, GN_SHAPE(9), parts), GN_ALL), &y, sizeof y), GN_OK);
    if (!(fabs((double)y - 0.5e38) < 1e32)) fail_msg("sum %g", (double)y);
}

static void test_sums(void **state) {
    on_every_cpu((gn_context *)*state, check_sums);
}

// The product of n numbers +-2^far and +-2^-far, whose partial products leave the range.
static void check_product(gn_context *g, gn_dtype t, int64_t n, int64_t lines, int axis, int order) {
    const int far = t == GN_F64 ? 800 : 100;
    double *x = (double *)malloc(sizeof(double) * (size_t)(n * lines)), *products = (double *)malloc(sizeof(double) * (size_t)lines);
    int8_t *sign = (int8_t *)malloc((size_t)n);
    if (x == NULL || products == NULL || sign == NULL) fail_msg("out of memory");
    for (int64_t l = 0; l < lines; l++) {
        int64_t units = 0; // of far: the exponent of the product
        bool negative = false;
        fill_signs(sign, n, order);
        for (int64_t i = 0; i < n; i++) {
            int v = i == n / 3 && l % 3 == 1 ? 0 : sign[i];
            bool minus = draw(3) == 0;
            units += v;
            negative ^= minus;
            x[axis == 1 ? l * n + i : i * lines + l] = ldexp(minus ? -1.0 : 1.0, v * far);
        }
        products[l] = units > 1 ? (double)INFINITY : units < -1 ? 0.0 : ldexp(1.0, (int)units * far);
        if (l % 5 == 4) products[l] = x[axis == 1 ? l * n + n / 2 : n / 2 * lines + l] = 0.0;
        if (l % 5 == 3) products[l] = x[axis == 1 ? l * n : l] = (double)NAN;
        if (negative) products[l] = -products[l];
    }
    gn_scope_begin(g);
    gn_array *a = gn_array_from(g, GN_F64, axis == 1 ? GN_SHAPE(lines, n) : GN_SHAPE(n, lines), x);
    gn_array *y = gn_eval(gn_prod(gn_eval(gn_cast(a, t)), lines == 1 ? GN_KEEP(GN_ALL) : axis));
    unsigned char data[64 * 8];
    assert_true(lines <= 64);
    assert_int_equal(gn_read(y, data, (size_t)lines * gn_dtype_size(t)), GN_OK);
    for (int64_t l = 0; l < lines; l++) {
        double have = test_element(t, data, l), want = products[l];
        if (!(have == want || (have != have && want != want)))
            fail_msg("%s, %lld numbers, axis %d, order %d, line %lld: product %g, expected %g", gn_dtype_name(t), (long long)n,
                     axis, order, (long long)l, have, want);
    }
    gn_scope_end(g);
    free(x);
    free(products);
    free(sign);
}

static void check_products(gn_context *g) {
    static const gn_dtype dtypes[] = {GN_F32, GN_BF16, GN_F64};
    static const int64_t sizes[] = {2, 4, 5, 31, 100, 1030, 20000, 300000};
    for (int d = 0; d < 3; d++)
        for (int s = 0; s < 8; s++)
            for (int order = 0; order < 4; order++) {
                if (test_on_vulkan() && s > 4 && (s + order + d) % 2) continue;
                if (TEST_THREAD_SANITIZER && (s < 5 || (s + d) % 4 != order)) continue; // one thread has smaller ones, whatever the signs
                check_product(g, dtypes[d], sizes[s], 1, 1, order);
                if (sizes[s] > 2000) continue;
                check_product(g, dtypes[d], sizes[s], 37, 1, order);
                check_product(g, dtypes[d], sizes[s], 37, 0, order);
            }
    // Of ordinary numbers, against long double: nothing is lost on the way down and up again.
    float v[4096];
    double want = 1.0, scale = 0.0;
    for (int i = 0; i < 4096; i++) v[i] = (float)ldexp(1.0 + (double)draw(1000) / 1000.0, (i < 2048 ? -60 : 59) - (i < 233)); // near 1
    for (int i = 0; i < 4096; i++) {
        int e;
        want = frexp(want * (double)v[i], &e);
        scale += e;
    }
    double have = gn_item(gn_prod(gn_array_from(g, GN_F32, GN_SHAPE(4096), v), GN_ALL));
    if (!(fabs(have / ldexp(want, (int)scale) - 1.0) < 4096 * 0x1p-24)) fail_msg("product %g of 2^%g", have, scale);
}

static void test_products(void **state) {
    on_every_cpu((gn_context *)*state, check_products);
}

// ---- moments of integers

static void check_moments(gn_context *g, gn_dtype t, double base, double step, int n) {
    int64_t v[64];
    long double mean = 0, var = 0, norm = 0;
    for (int i = 0; i < n; i++) v[i] = (int64_t)(base + step * (double)(i * 7 % 11));
    for (int i = 0; i < n; i++) mean += (long double)v[i] / n;
    for (int i = 0; i < n; i++) {
        var += ((long double)v[i] - mean) * ((long double)v[i] - mean);
        norm += (long double)v[i] * (long double)v[i];
    }
    gn_array *a = gn_eval(gn_cast(gn_array_from(g, GN_I64, GN_SHAPE(n), v), t));
    gn_array *y[5] = {gn_mean(a, GN_ALL), gn_var(a, GN_ALL, 0), gn_var(a, GN_ALL, 1), gn_std(a, GN_ALL, 0), gn_norm(a, GN_ALL)};
    const long double want[5] = {mean, var / n, var / (n - 1), sqrtl(var / n), sqrtl(norm)};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(gn_dtype_of(y[i]), GN_F32);
        double have = gn_item(y[i]), off = fabs(have - (double)want[i]);
        if (!(off <= 0x1p-23 * fabs((double)want[i])))
            fail_msg("%s from %g on, moment %d: %.9g, expected %.9Lg", gn_dtype_name(t), base, i, have, want[i]);
    }
}

static void test_moments(void **state) {
    gn_context *g = (gn_context *)*state;
    const int64_t v[] = {2147483648, 2147483650, 2147483652};
    expect_values(gn_var(gn_array_from(g, GN_I64, GN_SHAPE(3), v), GN_ALL, 1), 4);
    check_moments(g, GN_I64, 0x1p31, 2, 3);
    check_moments(g, GN_I64, -0x1p44, 3, 40);
    check_moments(g, GN_I64, 0x1p62, 0x1p40, 5); // whose sum is beyond int64
    check_moments(g, GN_I32, 0x1p30, 1, 64);
    check_moments(g, GN_I32, -0x1p30, 12345, 64);
    check_moments(g, GN_U32, 4e9, 1, 50);
    check_moments(g, GN_U8, 200, 5, 64);
    check_moments(g, GN_I8, -100, 3, 64);
    gn_array *m = gn_reshape(gn_add_s(gn_cast(gn_arange(g, GN_I32, 0, 6, 1), GN_I64), 0x1p40), GN_SHAPE(2, 3));
    expect_values(gn_var(m, 1, 1), 1, 1);
    expect_values(gn_std(m, 0, 0), 1.5, 1.5, 1.5);
}

// Few columns side by side, all numbers small integers: sums, products and extremes in any order are exact. With a NaN and with
// parts that overflow alone in the last column.
static void check_few_columns(gn_context *g) {
    enum { MOST = 700 * 18 };
    static double x[MOST], want[4][18], have[18];
    static const int64_t heights[] = {1, 5, 33, 700};
    static const gn_dtype list[] = {GN_F32, GN_F64, GN_I32, GN_I64};
    static gn_array *(*const f[])(gn_array *, gn_axes) = {gn_sum, gn_prod, gn_min, gn_max};
    for (int h = 0; h < 4; h++)
        for (int64_t n = 1; n <= 18; n++)
            for (int t = 0; t < 4; t++) {
                const int64_t rows = heights[h];
                const bool real = t < 2, odd = real && h > 0;
                for (int64_t c = 0; c < n; c++) want[0][c] = 0.0, want[1][c] = 1.0, want[2][c] = 99.0, want[3][c] = -99.0;
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t c = 0; c < n; c++) {
                        double v = (double)draw(9) - 4.0;
                        if (v == 0.0 || fabs(v) == 3.0) v = 1.0;
                        if (real && r % 2 != 0) v = 1.0 / x[(r - 1) * n + c]; // products stay small
                        if (!real && fabs(want[1][c]) > 1e8) v = -1.0;
                        if (odd && c == n - 1) v = r == 0 ? (double)NAN : 1.0;
                        x[r * n + c] = v;
                        want[0][c] += v;
                        want[1][c] *= v;
                        want[2][c] = v != v || v < want[2][c] ? v : want[2][c];
                        want[3][c] = v != v || v > want[3][c] ? v : want[3][c];
                    }
                gn_scope_begin(g);
                gn_array *a = gn_eval(gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(rows, n), x), list[t]));
                for (int k = 0; k < 4; k++) {
                    assert_int_equal(gn_read(gn_cast(f[k](a, 0), GN_F64), have, (size_t)n * 8), GN_OK);
                    for (int64_t c = 0; c < n; c++)
                        if (!(have[c] == want[k][c] || (isnan(have[c]) && isnan(want[k][c]))))
                            fail_msg("%s of %d rows, column %d of %d, %d: %g, expected %g", gn_dtype_name(list[t]), (int)rows, (int)c, (int)n, k, have[c], want[k][c]);
                }
                for (int k = 0; k < 2; k++) {
                    gn_array *truth = k == 0 ? gn_any(gn_eval(gn_gt_s(a, 3.0)), 0) : gn_all(gn_ge_s(a, -3.0), 0);
                    assert_int_equal(gn_read(gn_cast(truth, GN_F64), have, (size_t)n * 8), GN_OK);
                    for (int64_t c = 0; c < n; c++)
                        if ((have[c] != 0.0) != (k == 0 ? want[3][c] > 3.0 : want[2][c] >= -3.0)) fail_msg("%d: truth of column %d of %d", k, (int)c, (int)n);
                }
                gn_scope_end(g);
            }
    float wide[400];
    for (int i = 0; i < 400; i++) wide[i] = i % 4 < 2 ? 3e38f : -3e38f;
    gn_array *z = gn_complex(gn_array_from(g, GN_F32, GN_SHAPE(400), wide), gn_ones(g, GN_F32, GN_SHAPE(1)));
    assert_true(gn_item(gn_real(gn_sum(z, GN_ALL))) == 0.0 && gn_item(gn_imag(gn_sum(gn_eval(z), GN_ALL))) == 400.0);
    double past[400];
    for (int i = 0; i < 400; i++) past[i] = i % 4 < 2 ? 1.5e308 : -1.5e308;
    z = gn_eval(gn_complex(gn_array_from(g, GN_F64, GN_SHAPE(400), past), gn_ones(g, GN_F64, GN_SHAPE(1))));
    assert_true(gn_item(gn_real(gn_sum(z, GN_ALL))) == 0.0 && gn_item(gn_imag(gn_sum(z, GN_ALL))) == 400.0);
    gn_array *rows = gn_eval(gn_complex(gn_reshape(gn_arange(g, GN_F64, 0, 60, 1), GN_SHAPE(3, 4, 5)), gn_ones(g, GN_F64, GN_SHAPE(1))));
    const gn_axes sets[] = {0, 1, 2, GN_AXES(0, 2), GN_KEEP(1)};
    for (int k = 0; k < 5; k++) {
        gn_array *views[2], *parts[2];
        views[0] = rows, views[1] = gn_transpose(rows);
        for (int v = 0; v < 2; v++) {
            gn_array *y = gn_sum(views[v], sets[k]);
            parts[0] = gn_sum(gn_copy(gn_real(views[v])), sets[k]), parts[1] = gn_sum(gn_copy(gn_imag(views[v])), sets[k]);
            assert_true(gn_item(gn_all(gn_eq(y, gn_complex(parts[0], parts[1])), GN_ALL)) == 1);
        }
    }
}
static void test_few_columns(void **state) { on_every_cpu((gn_context *)*state, check_few_columns); }

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_rounded_once),
        GN_TEST(test_sums),
        GN_TEST(test_products),
        GN_TEST(test_few_columns),
        GN_TEST(test_moments),
    };
    return test_run(tests);
}
