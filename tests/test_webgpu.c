// The WebGPU layer, where the build has it (GPUNUM_WEBGPU), against the CPU: programs of every dtype and layout, in place,
// with short ends; what it cannot do goes to the CPU and is the same there. Run with GN_TEST_BACKEND=webgpu.

#include "test.h"
#include "test_other.h"

// Both have the same shape and dtype, and values within `ulp` of float32's last digit.
static void same(const char *what, gn_array *a, gn_array *b, double ulp) {
    if (a == NULL || b == NULL) fail_msg("%s: there is no result", what);
    gn_dtype t = gn_dtype_of(a);
    size_t bytes = gn_bytes(a);
    assert_int_equal(t, gn_dtype_of(b));
    assert_int_equal(bytes, gn_bytes(b));
    void *x = malloc(bytes + 1), *y = malloc(bytes + 1);
    assert_int_equal(gn_read(a, x, bytes), GN_OK);
    assert_int_equal(gn_read(b, y, bytes), GN_OK);
    for (int64_t i = 0; i < gn_size(a); i++) {
        double u = test_element(t, x, i), v = test_element(t, y, i);
        if ((u != u) != (v != v) || fabs(u - v) > ulp * 1.2e-7 * fabs(v) + (ulp > 0 ? 1.2e-38 : 0))
            fail_msg("%s: element %lld is %.9g, on the CPU %.9g (%s)", what, (long long)i, u, v, gn_dtype_name(t));
    }
    free(x);
    free(y);
}

static const gn_dtype dtypes[] = {GN_F32, GN_F16, GN_BF16, GN_I32, GN_U32, GN_U8, GN_I8, GN_BOOL, GN_I16, GN_U16};

static gn_array *numbers(gn_context *g, gn_dtype t, int64_t rows, int64_t columns) {
    gn_array *a = gn_reshape(gn_arange(g, GN_F32, 0, (double)(rows * columns), 1), GN_SHAPE(rows, columns));
    return gn_eval(gn_cast(gn_sub_s(gn_mod(gn_mul_s(a, 7.0), gn_full(g, GN_F32, GN_SHAPE(1), 23.0)), 5.0), t));
}

static gn_array *chain(gn_context *g, gn_dtype t, int64_t rows, int64_t columns, int layout) {
    gn_array *a = numbers(g, t, rows, columns), *b = numbers(g, GN_F32, layout == 1 ? 1 : rows, columns);
    if (layout == 2) a = gn_transpose(gn_eval(gn_transpose(a)));
    if (layout == 3) {
        a = gn_index(a, "::-1, ::-1");
        b = gn_index(b, ":, :1");
    }
    gn_array *y = gn_add(gn_mul(gn_cast(a, GN_F32), gn_sigmoid(b)), gn_maximum(b, gn_sin(b)));
    return gn_eval(gn_cast(gn_clamp(y, 0, 100), t));
}

static void test_programs(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[][2] = {{1, 1}, {1, 3}, {5, 7}, {4, 8}, {3, 257}, {64, 33}};
    for (int i = 0; i < (int)(sizeof dtypes / sizeof dtypes[0]); i++)
        for (int k = 0; k < 6; k++)
            for (int layout = 0; layout < 4; layout += (i == 0 || k == 2) ? 1 : 4) {
                gn_scope_begin(g);
                gn_scope_begin(other);
                gn_array *y = chain(g, dtypes[i], size[k][0], size[k][1], layout);
                assert_non_null(strstr(gn_explain(y), "on the GPU"));
                // A value that is rounded to an integer or to half may fall on the other side.
                same(gn_dtype_name(dtypes[i]), gn_cast(y, GN_F32),
                     gn_cast(chain(other, dtypes[i], size[k][0], size[k][1], layout), GN_F32), i == 0 ? 8 : i < 3 ? 7e4 : 0);
                gn_scope_end(other);
                gn_scope_end(g);
            }
}

// A chain rounds where its steps round: compilers of kernels neither fuse nor reorder what is written apart.
static void test_rounds_each_step(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 1000 };
    float a[N], b[N], y[N];
    for (int i = 0; i < N; i++) {
        a[i] = (float)cos(0.01 * i);
        b[i] = (float)sin(0.01 * i);
    }
    a[0] = 0.6f, b[0] = 0.8f;
    gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(N), a), *z = gn_array_from(g, GN_F32, GN_SHAPE(N), b);
    gn_array *p = gn_mul(x, x), *q = gn_mul(z, z), *sum = gn_add(p, q), *t = gn_sub(sum, p);
    assert_int_equal(gn_read(gn_add(gn_sub(p, gn_sub(sum, t)), gn_sub(q, t)), y, sizeof y), GN_OK);
    for (int i = 0; i < N; i++) {
        volatile float u = a[i] * a[i], v = b[i] * b[i], s = u + v, w = s - u, r = s - w, d = u - r, e = v - w, f = d + e;
        if (y[i] != f) fail_msg("element %d: %.9g left of a sum, expected %.9g", i, (double)y[i], (double)f);
    }
}

// inf - inf and NaN - NaN are no number, which a compiler that sees one operand twice need not care for.
static void test_less_itself(void **state) {
    gn_context *g = (gn_context *)*state;
    const float at[] = {INFINITY, -INFINITY, NAN, 0, 1, -2, 3e38F};
    for (int kind = 0; kind < 4; kind++) {
        gn_array *of[2];
        gn_scope_begin(other);
        for (int k = 0; k < 2; k++) {
            gn_array *x = gn_array_from(k ? other : g, GN_F32, GN_SHAPE(7), at), *y = x;
            if (kind == 1) x = y = gn_neg(x);
            if (kind == 2) x = gn_abs(x), y = gn_abs(y);
            of[k] = gn_sub(x, y);
            if (kind == 3) of[k] = gn_min(gn_reshape(of[k], GN_SHAPE(7, 1)), 1);
        }
        same("less itself", of[0], of[1], 0);
        gn_scope_end(other);
    }
}

// A device may take a subnormal number for 0, but no magnitude becomes infinite by that.
static void test_subnormal(void **state) {
    gn_context *g = (gn_context *)*state;
    const float x[] = {1e-40F, 0, -1e-40F, 1.4e-45F, 1e-40F, 1}, y[] = {0, 1e-40F, 1e-40F, 0, 1e-39F, 1e-40F};
    float have[6];
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(6), x), *b = gn_array_from(g, GN_F32, GN_SHAPE(6), y);
    gn_array *sizes[] = {gn_hypot(a, b), gn_abs(gn_complex(a, b)), gn_abs(gn_sqrt(gn_complex(a, b))), gn_atan2(a, b)};
    for (int k = 0; k < 4; k++) {
        assert_int_equal(gn_read(sizes[k], have, sizeof have), GN_OK);
        for (int i = 0; i < 6; i++) {
            double most = k == 3 ? 3.2 : i == 5 ? 1.0 : k == 2 ? 4e-20 : 1.2e-38;
            if (!(fabs((double)have[i]) <= most))
                fail_msg("%d of %g and %g is %g", k, (double)x[i], (double)y[i], (double)have[i]);
        }
    }
}

static void test_in_place(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *of[2];
    for (int k = 0; k < 2; k++) {
        gn_context *h = k ? other : g;
        gn_scope_begin(h);
        gn_array *a = numbers(h, GN_F32, 9, 11), *part = gn_index(a, "2:7, 1::2");
        for (int i = 0; i < 3; i++) gn_assign(a, gn_add_s(gn_mul_s(a, 0.5), 1.0));
        gn_assign(part, gn_add(part, gn_index(a, "1:6, 0:10:2"))); // overlaps
        gn_array *c = numbers(h, GN_U8, 5, 5);
        gn_assign(gn_index(c, ":, 1:4"), gn_mul_s(gn_index(c, ":, 1:4"), 2.0));
        of[k] = gn_keep(gn_add(gn_sum(a, GN_ALL), gn_sum(gn_cast(c, GN_F32), GN_ALL)));
        gn_scope_end(h);
    }
    same("in place", of[0], of[1], 4);
    gn_release(of[0]);
    gn_release(of[1]);
}

static void test_eight_bytes(void **state) {
    gn_context *g = (gn_context *)*state;
    static const gn_dtype wide[] = {GN_F64, GN_I64, GN_C64};
    for (int i = 0; i < 3; i++) {
        gn_scope_begin(g);
        gn_scope_begin(other);
        for (int n = 1; n < 8; n += 2) {
            gn_array *a = gn_cast(numbers(g, GN_F32, 3, n), wide[i]), *b = gn_cast(numbers(other, GN_F32, 3, n), wide[i]);
            gn_array *x = gn_eval(gn_copy(gn_transpose(gn_eval(a)))), *y = gn_copy(gn_transpose(b));
            same("copy", i == 2 ? gn_real(x) : x, i == 2 ? gn_real(y) : y, 0);
        }
        gn_scope_end(other);
        gn_scope_end(g);
    }
}

// What int64 and uint64 are without kernels of 64 bits: conversions, sums, differences, comparisons, choices, what is counted.
static gn_array *words(gn_context *g, int kind, gn_dtype t, gn_dtype u) {
    static const int64_t of[] = {0, 1, -1, 2147483647, 2147483648, -2147483648LL, -2147483649LL, 4294967295, 4294967296, -4294967296LL,
                                 1099511627776, -1099511627777LL, INT64_MAX, INT64_MIN, 255, 256, -129, 65536, 16777217, -33554435};
    enum { N = sizeof of / sizeof of[0] };
    gn_array *a = gn_array_from(g, GN_I64, GN_SHAPE(N, 1), of), *b = gn_array_from(g, GN_I64, GN_SHAPE(1, N), of), *x, *y;
    x = gn_eval(gn_cast(gn_sub(numbers(g, GN_I32, 7, 31), gn_full(g, GN_I32, GN_SHAPE(1), 3)), t)); // small ones, of t
    y = gn_eval(gn_cast(a, u));
    if (u == GN_U64) a = y, b = gn_transpose(y);
    switch (kind) {
    case 0: return gn_cast(x, u);
    case 1: return gn_cast(a, t);
    case 2: return gn_add(a, b);
    case 3: return gn_sub(gn_sub(b, a), gn_add_s(b, 3));
    case 4: return gn_eq(a, b);
    case 5: return gn_lt(a, b);
    case 6: return gn_le(a, b);
    case 7: return gn_gt(a, b);
    case 8: return gn_ge(a, b);
    case 9: return gn_ne(a, gn_transpose(gn_index(b, ":, ::-1")));
    case 10: return gn_where(gn_gt(a, b), a, gn_or(gn_and(a, b), gn_xor_s(b, 5)));
    case 11: return gn_add(gn_cast(x, u), gn_index(a, ":1"));
    case 12: return gn_logical_or(gn_eq_s(a, 1), gn_logical_not(gn_cast(b, GN_BOOL)));
    case 13: return gn_sum(x, GN_AXES(0));
    case 14: return gn_sum(gn_ge_s(x, 2), GN_AXES(1));
    case 15: return gn_dtype_size(t) < 4 ? gn_mean(x, GN_AXES(1)) : gn_sum(x, GN_ALL);
    case 16: return gn_prod(x, GN_AXES(0));
    case 17: return gn_count_nonzero(x, GN_ALL);
    case 18: return gn_mean(gn_eq(gn_argmax(gn_cast(x, GN_F32), 1), gn_cast(numbers(g, GN_F32, 1, 7), u)), GN_ALL);
    default: return gn_cast(gn_sum(gn_cast(a, GN_I32), GN_ALL), GN_BOOL);
    }
}

static void test_words(void **state) {
    gn_context *g = (gn_context *)*state;
    static const gn_dtype narrow[] = {GN_I32, GN_U32, GN_U8, GN_I8, GN_BOOL, GN_I16, GN_U16};
    for (int kind = 0; kind < 20; kind++)
        for (int i = 0; i < 7; i += kind < 2 || kind == 11 || (kind > 12 && kind < 18) ? 1 : 7)
            for (int k = 0; k < 2; k++) {
                char what[64];
                const gn_dtype t = narrow[i], u = k ? GN_U64 : GN_I64;
                gn_scope_begin(g);
                gn_scope_begin(other);
                snprintf(what, sizeof what, "words %d of %s, %s", kind, gn_dtype_name(t), gn_dtype_name(u));
                gn_array *y = gn_eval(words(g, kind, t, u)), *z = words(other, kind, t, u);
                assert_non_null(y);
                if (strstr(gn_explain(y), "on the GPU") == NULL) fail_msg("%s: %s", what, gn_explain(y));
                same(what, y, z, gn_dtype_of(y) == GN_F32 ? 2 : 0);
                int64_t have[400], want[400]; // which float64 does not tell apart
                if (gn_dtype_size(gn_dtype_of(y)) == 8) {
                    assert_int_equal(gn_read(y, have, gn_bytes(y)), GN_OK);
                    assert_int_equal(gn_read(z, want, gn_bytes(z)), GN_OK);
                    assert_memory_equal(have, want, gn_bytes(y));
                }
                gn_scope_end(other);
                gn_scope_end(g);
            }
}

// What int64 and uint64 are without kernels of 64 bits, all of arithmetic: bit for bit as C has it on the CPU.
static gn_array *wide_numbers(gn_context *g, gn_dtype t, int64_t n) { // of all sizes and signs
    static uint64_t x[6007];
    assert_in_range(n, 0, 6007);
    for (int64_t i = 0; i < n; i++) x[i] = (uint64_t)(i * i * 37 % 1009 - 500) * 0x9e3779b97f4a7c15u >> (i * 7 % 64);
    if (t == GN_I64)
        for (int64_t i = 0; i < n; i += 2) x[i] = 0 - x[i];
    return gn_array_from(g, t, GN_SHAPE(n), x);
}

static gn_array *wide_result(gn_context *g, int kind, gn_dtype t) {
    static const int64_t of[] = {0, 1, -1, 2, 3, -3, 7, -7, 10, 63, 64, 65, 31, 32, 33, -64, 2147483647, -2147483648LL, 4294967295, 4294967296, -4294967297LL,
                                 1000000007, -1099511627777LL, 9007199254740993, INT64_MAX, INT64_MIN, INT64_MIN + 1, 16777217, 36028799166447617};
    static const float floats[] = {0, -0.0F, 0.99F, -0.99F, 1.5F, -2.75F, 8388609, 16777216, -3e9F, 4.3e9F, 1e12F, -1e15F, 9.2e18F, 9.3e18F, -9.3e18F,
                                   1.8e19F, 1.9e19F, 3e38F, INFINITY, -INFINITY, NAN, 1e-40F, -1.0F};
    enum { N = sizeof of / sizeof of[0], M = sizeof floats / sizeof floats[0] };
    gn_array *a = gn_array_from(g, t, GN_SHAPE(N, 1), of), *b = gn_array_from(g, t, GN_SHAPE(1, N), of), *f = gn_array_from(g, GN_F32, GN_SHAPE(M), floats);
    switch (kind) {
    case 0: return gn_mul(a, b);
    case 1: return gn_floor_div(a, b);
    case 2: return gn_mod(a, b);
    case 3: return gn_pow(a, b);
    case 4: return gn_minimum(a, b);
    case 5: return gn_maximum(a, b);
    case 6: return gn_shl(a, b);
    case 7: return gn_shr(a, b);
    case 8: return gn_neg(a);
    case 9: return gn_abs(a);
    case 10: return gn_sign(a);
    case 11: return gn_square(gn_relu(a));
    case 12: return gn_cast(a, GN_F32);
    case 13: return gn_cast(a, GN_F16);
    case 14: return gn_cast(a, GN_BF16);
    case 15: return gn_cast(f, t);
    case 16: return gn_floor_div_s(gn_add(gn_mul(a, b), gn_mul_s(a, 3)), 7);
    case 17: return gn_mul_s(a, 0.5);
    case 18: return gn_div(a, b);
    case 19: return gn_add(gn_cast(b, GN_F32), gn_reshape(f, GN_SHAPE(M, 1)));
    case 20: return gn_clamp(gn_shr_s(a, 3), 0, 100);
    case 21: return gn_cast(gn_mul_s(gn_cast(a, GN_F32), 0.25), t);
    case 22: return gn_logical_xor(gn_isfinite(a), gn_logical_and(a, b));
    case 23: return gn_mod_s(gn_cast(gn_invert(a), GN_I32), 10);
    case 24: return gn_lt(gn_cast(a, GN_F32), gn_cast(b, GN_F32));
    default: return gn_cast(gn_mul(gn_index(a, "::-3"), gn_index(b, ":, 1::2")), GN_I16);
    }
}

// What the CPU has computed on its way to float64 differs from float32 in its last bit.
static void same_bits(const char *what, gn_array *y, gn_array *z) {
    const size_t bytes = gn_bytes(y);
    void *have = malloc(bytes + 1), *want = malloc(bytes + 1);
    same(what, gn_cast(y, GN_F32), gn_cast(z, GN_F32), 2);
    assert_int_equal(gn_read(y, have, bytes), GN_OK);
    assert_int_equal(gn_read(z, want, bytes), GN_OK);
    for (size_t i = 0; i < bytes && gn_dtype_of(y) != GN_F32; i++)
        if (((char *)have)[i] != ((char *)want)[i])
            fail_msg("%s: byte %d of %s is %02x, not %02x", what, (int)i, gn_dtype_name(gn_dtype_of(y)), ((uint8_t *)have)[i], ((uint8_t *)want)[i]);
    free(have);
    free(want);
}

static void test_wide(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int kind = 0; kind < 26; kind++)
        for (int k = 0; k < 2; k++) {
            char what[64];
            const gn_dtype t = k ? GN_U64 : GN_I64;
            gn_scope_begin(g);
            gn_scope_begin(other);
            snprintf(what, sizeof what, "wide %d of %s", kind, gn_dtype_name(t));
            gn_array *y = gn_eval(wide_result(g, kind, t));
            assert_non_null(y);
            if (strstr(gn_explain(y), "on the GPU") == NULL) fail_msg("%s: %s", what, gn_explain(y));
            same_bits(what, y, wide_result(other, kind, t));
            gn_scope_end(other);
            gn_scope_end(g);
        }
}

static gn_array *wide_reduced(gn_context *g, int kind, gn_array *a, gn_axes axes) {
    (void)g;
    switch (kind) {
    case 0: return gn_sum(a, axes);
    case 1: return gn_prod(gn_or_s(a, 1), axes);
    case 2: return gn_min(a, axes);
    case 3: return gn_max(a, axes);
    case 4: return gn_any(a, axes);
    case 5: return gn_all(a, axes);
    case 6: return gn_sum(gn_mul(a, gn_add_s(a, 1)), axes);
    case 7: return gn_max(gn_mod_s(gn_cast(a, GN_I32), 1000), axes);
    case 8: return gn_min(gn_cast(a, GN_I8), axes);
    case 9: return gn_count_nonzero(a, axes);
    default: return gn_sum(gn_cast(gn_shr_s(gn_abs(a), 8), GN_F32), axes);
    }
}

static void test_wide_reductions(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[][2] = {{1, 1}, {1, 0}, {7, 3}, {2, 3001}, {3001, 2}, {37, 127}, {1, 6007}};
    for (int i = 0; i < 7; i++)
        for (int kind = 0; kind < 11; kind++)
            for (int how = 0; how < 4; how++) {
                char what[80];
                const gn_dtype t = how & 1 ? GN_U64 : GN_I64;
                if (i != 5 && kind > 1 && (kind + how + i) % 4 != 0) continue;
                if (size[i][1] == 0 && (kind == 2 || kind == 3 || kind == 7 || kind == 8)) continue; // have no value
                gn_array *y[2];
                gn_scope_begin(g);
                gn_scope_begin(other);
                for (int k = 0; k < 2; k++) {
                    gn_context *h = k ? other : g;
                    gn_array *a = gn_reshape(wide_numbers(h, t, size[i][0] * size[i][1]), GN_SHAPE(size[i][0], size[i][1]));
                    if (how > 1 && size[i][1] > 1) a = gn_index(a, "::-1, 1::2");
                    y[k] = gn_eval(wide_reduced(h, kind, a, i == 4 && how == 3 ? GN_ALL : GN_AXES(how & 1)));
                }
                snprintf(what, sizeof what, "wide reduction %d of %s (%d, %d), %d", kind, gn_dtype_name(t), (int)size[i][0], (int)size[i][1], how);
                assert_non_null(y[0]);
                if (gn_size(y[0]) > 0 && strstr(gn_explain(y[0]), "on the GPU") == NULL) fail_msg("%s: %s", what, gn_explain(y[0]));
                same_bits(what, y[0], y[1]);
                gn_scope_end(other);
                gn_scope_end(g);
            }
}

static gn_array *reduced(gn_context *g, int kind, gn_array *a, gn_axes axes, int axis) {
    (void)g;
    switch (kind) {
    case 0: return gn_sum(a, axes);
    case 1: return gn_min(a, axes);
    case 2: return gn_max(a, axes);
    case 3: return gn_any(a, axes);
    case 4: return gn_all(a, axes);
    case 5: return gn_argmin(a, axis);
    case 6: return gn_argmax(a, axis);
    case 7: return gn_mean(a, axes);
    default: return gn_prod(gn_clamp(a, 1, 2), axes);
    }
}

static void test_reductions(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[][2] = {{1, 1}, {3, 5}, {2, 6000}, {6000, 2}, {37, 129}};
    for (int k = 0; k < 5; k++)
        for (int kind = 0; kind < 9; kind++)
            for (int axis = 0; axis < 2; axis++) {
                gn_dtype t = dtypes[k == 1 ? (kind + axis) % 10 : k == 4 && axis ? GN_I32 : GN_F32];
                gn_scope_begin(g);
                gn_scope_begin(other);
                char what[80];
                snprintf(what, sizeof what, "reduction %d of %s (%d, %d) along %d", kind, gn_dtype_name(t), (int)size[k][0],
                         (int)size[k][1], axis);
                gn_axes axes = kind < 5 && k == 3 && axis ? GN_ALL : GN_AXES(axis);
                gn_array *a = numbers(g, t, size[k][0], size[k][1]), *b = numbers(other, t, size[k][0], size[k][1]);
                gn_array *y = gn_eval(reduced(g, kind, a, axes, axis));
                if (t == GN_F32 && k == 4 && kind < 7) assert_non_null(strstr(gn_explain(y), "on the GPU"));
                same(what, y, reduced(other, kind, b, axes, axis), gn_dtype_size(t) == 2 ? 1e4 : 4);
                gn_scope_end(other);
                gn_scope_end(g);
            }
}

// Gradients of pools whose windows overlap, or differ in size: a page cannot wait for what the CPU would do of them.
static void test_pools(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_pool_options o;
    memset(&o, 0, sizeof o);
    o.stride = 2, o.pad = 1;
    for (int kind = 0; kind < 3; kind++) {
        gn_scope_begin(g);
        gn_scope_begin(other);
        gn_array *dx[2], *at[2] = {NULL, NULL};
        for (int i = 0; i < 2; i++) {
            gn_array *x = gn_requires_grad(gn_detach(gn_eval(gn_reshape(numbers(i ? other : g, GN_F32, 12, 90), GN_SHAPE(4, 3, 10, 9)))), true);
            gn_array *y = kind ? gn_adaptive_max_pool2d(x, kind == 1 ? 4 : 1, kind == 1 ? 4 : 1, &at[i]) : gn_max_pool2d(x, 3, &o, &at[i]);
            assert_int_equal(gn_gradients(gn_sum(gn_mul(y, y), GN_ALL), &x, 1, false, &dx[i]), GN_OK);
            gn_eval(dx[i]);
        }
        assert_non_null(strstr(gn_explain(dx[0]), "on the GPU"));
        same("gradient of a pool", dx[0], dx[1], 4);
        same("places of a pool", at[0], at[1], 0);
        gn_scope_end(other);
        gn_scope_end(g);
    }
}

// Sums whose roundings would be larger than they are, unless what is cut off is kept.
static void test_compensation(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 100000 };
    static float x[N];
    double sum = 0;
    for (int i = 0; i < N; i++) {
        x[i] = i % 2 ? 1e7f + (float)(i % 100) : -1e7f + 0.37f * (float)(i % 7);
        sum += (double)x[i];
    }
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(N), x);
    double have = gn_item(gn_sum(a, GN_ALL));
    if (fabs(have - sum) > 1e-6 * fabs(sum)) fail_msg("the sum is %.9g, not %.9g", have, sum);
    have = gn_item(gn_max(gn_sum(gn_reshape(a, GN_SHAPE(N / 2, 2)), 0), GN_ALL));
    double odd = 0;
    for (int i = 1; i < N; i += 2) odd += (double)x[i];
    if (fabs(have - odd) > 1e-7 * odd) fail_msg("the sum is %.12g, not %.12g", have, odd);
}

static gn_array *some(gn_context *g, gn_dtype t, int64_t rows, int64_t columns) {
    return gn_eval(gn_cast(gn_mul_s(numbers(g, GN_F32, rows, columns), 0.125), t));
}

static void test_products(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[][3] = {{1, 1, 1}, {3, 5, 2}, {64, 64, 64}, {33, 70, 129}, {1, 300, 40}, {40, 300, 1}, {130, 7, 66},
                                      {36, 68, 44}, {100, 37, 20}, {132, 48, 260}, {16, 0, 40}};
    for (int k = 0; k < 11; k++)
        for (int how = 0; how < 7; how++) {
            gn_array *y[2];
            char what[80];
            gn_scope_begin(g);
            gn_scope_begin(other);
            for (int i = 0; i < 2; i++) {
                gn_context *h = i ? other : g;
                gn_dtype t = how == 4 ? GN_F16 : how == 5 ? GN_I32 : GN_F32;
                gn_array *a = some(h, t, size[k][0], size[k][1]), *b = some(h, t, size[k][1], size[k][2]);
                if (how == 1 || how == 6) a = gn_transpose(some(h, t, size[k][1], size[k][0]));
                if (how == 2 || how == 6) b = gn_transpose(some(h, t, size[k][2], size[k][1]));
                y[i] = gn_matmul(a, b);
                if (how == 3) y[i] = gn_relu(gn_add(y[i], some(h, t, 1, size[k][2])));
                gn_eval(y[i]);
            }
            snprintf(what, sizeof what, "product %d of (%d, %d, %d)", how, (int)size[k][0], (int)size[k][1], (int)size[k][2]);
            if (how < 3) assert_non_null(strstr(gn_explain(y[0]), "on the GPU"));
            same(what, gn_cast(y[0], GN_F32), gn_cast(y[1], GN_F32), how == 4 ? 1e4 : how == 5 ? 0 : 200);
            gn_scope_end(other);
            gn_scope_end(g);
        }
}

// Operands whose neighbours are not the result's: in tiles on a GPU.
static void test_transposed(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[][3] = {{1, 64, 64}, {3, 128, 96}, {2, 33, 65}, {1, 70, 200}, {4, 9, 301}, {5, 100, 8}};
    for (int k = 0; k < 6; k++)
        for (int how = 0; how < 8; how++) {
            gn_array *y[2];
            char what[80];
            const int64_t n = size[k][0], rows = size[k][1], columns = size[k][2];
            gn_scope_begin(g);
            gn_scope_begin(other);
            for (int i = 0; i < 2; i++) {
                gn_context *h = i ? other : g;
                gn_array *a = gn_reshape(some(h, GN_F32, n * rows, columns), GN_SHAPE(n, rows, columns)), *t = gn_swap_axes(a, 1, 2),
                         *b = gn_reshape(some(h, GN_F32, n * columns, rows), GN_SHAPE(n, columns, rows));
                switch (how) {
                case 0: y[i] = gn_copy(t); break;
                case 1: y[i] = gn_add(t, b); break;
                case 2: y[i] = gn_mul(t, gn_slice(b, 1, 0, 1, 1)); break;
                case 3: y[i] = gn_add(t, gn_slice(b, 2, 0, 1, 1)); break;
                case 4: y[i] = gn_sub(gn_swap_axes(gn_slice(a, 1, 0, rows, 2), 1, 2), gn_slice(b, 2, 0, rows, 2)); break;
                case 5: y[i] = gn_copy(gn_swap_axes(gn_eval(gn_cast(a, GN_I32)), 0, 2)); break;
                case 6: y[i] = gn_mul(gn_swap_axes(a, 0, 2), gn_max(b, GN_ALL)); break;
                default:
                    y[i] = gn_zeros(h, GN_F32, GN_SHAPE(n, columns, rows + 2));
                    gn_assign(gn_slice(y[i], 2, 0, rows, 1), gn_square(t));
                }
                gn_eval(y[i]);
            }
            snprintf(what, sizeof what, "transposed %d of (%d, %d, %d)", how, (int)n, (int)rows, (int)columns);
            same(what, y[0], y[1], 0);
            gn_scope_end(other);
            gn_scope_end(g);
        }
}

static void test_rows(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[][2] = {{1, 1}, {3, 5}, {7, 130}, {2, 5000}, {1, 20000}, {70, 132}, {1, 18}};
    for (int k = 0; k < 7; k++)
        for (int how = 0; how < 6; how++) {
            gn_array *y[2];
            gn_scope_begin(g);
            gn_scope_begin(other);
            for (int i = 0; i < 2; i++) {
                gn_context *h = i ? other : g;
                gn_array *a = some(h, how == 3 ? GN_F16 : GN_F32, size[k][0], size[k][1]);
                int64_t at[3] = {0, size[k][1] - 1, size[k][1] / 2};
                gn_seed(h, 7);
                y[i] = how == 1   ? gn_log_softmax(a, 1)
                       : how == 2 ? gn_logsumexp(a, 1)
                       : how == 4 ? gn_rand(h, GN_F32, GN_SHAPE(size[k][0], size[k][1]))
                       : how == 5 ? gn_take(a, gn_array_from(h, GN_I64, GN_SHAPE(3), at), 1)
                                  : gn_softmax(a, 1);
            }
            char what[80];
            // Near 0 a logarithm is as exact as the sum near 1 that it is of.
            for (int i = 0; how == 1 && i < 2; i++) y[i] = gn_sub_s(y[i], 1.0);
            snprintf(what, sizeof what, "rows %d of (%d, %d)", how, (int)size[k][0], (int)size[k][1]);
            same(what, gn_cast(y[0], GN_F32), gn_cast(y[1], GN_F32), how == 3 ? 1e4 : how > 3 ? 0 : 40);
            gn_scope_end(other);
            gn_scope_end(g);
        }
}

// Rows of what is not finite, and the range of exp; batches of products, one operand of them broadcast, another a view.
static void test_rows_and_batches(void **state) {
    gn_context *g = (gn_context *)*state;
    float x[8][12];
    for (int i = 0; i < 96; i++) x[i / 12][i % 12] = (float)(i * 37 % 19) - 9;
    x[1][3] = INFINITY;
    x[2][5] = -INFINITY;
    for (int i = 0; i < 12; i++) x[3][i] = -INFINITY;
    x[4][11] = NAN;
    x[5][0] = 95;
    x[6][7] = -3e38f;
    for (int i = 0; i < 12; i++) x[7][i] = i == 4 ? 3e38f : -3e38f;
    for (int how = 0; how < 6; how++) {
        gn_array *y[2];
        gn_scope_begin(g);
        gn_scope_begin(other);
        for (int i = 0; i < 2; i++) {
            gn_context *h = i ? other : g;
            gn_array *r = gn_array_from(h, GN_F32, GN_SHAPE(8, 12), x), *a = gn_reshape(some(h, GN_F32, 30, 120), GN_SHAPE(3, 10, 120)),
                     *b = gn_reshape(some(h, GN_F32, 3 * 120, 33), GN_SHAPE(3, 120, 33));
            if (how < 4) r = how & 1 ? gn_slice(r, 1, 0, 11, 1) : r;
            y[i] = how < 2   ? gn_softmax(r, 1)
                   : how < 4 ? gn_log_softmax(r, 1)
                             : gn_matmul(a, how == 4 ? b : gn_slice(gn_slice(b, 0, 1, 2, 1), 2, 1, 33, 2));
        }
        char what[40];
        for (int i = 0; (how == 2 || how == 3) && i < 2; i++) y[i] = gn_sub_s(y[i], 1.0); // as in test_rows
        snprintf(what, sizeof what, "rows or batches %d", how);
        same(what, y[0], y[1], how < 4 ? 40 : 200);
        gn_scope_end(other);
        gn_scope_end(g);
    }
}

static gn_array *ordered(gn_context *g, int how, gn_dtype t, int64_t rows, int64_t n) {
    gn_array *a = numbers(g, t, rows, n), *i = gn_cast(gn_abs(numbers(g, GN_I32, rows, n)), GN_I64), *c;
    switch (how) {
    case 0: return gn_cumsum(a, 1);
    case 1: return gn_cumsum(a, 0);
    case 2: return gn_sort(a, 1, false);
    case 3: return gn_argsort(a, 1, true);
    case 4: return gn_searchsorted(gn_sort(gn_ravel(a), 0, false), a, true);
    case 5: return gn_bincount(gn_ravel(i), NULL, 0);
    case 6: return gn_scatter_add(gn_cast(gn_zeros(g, t, GN_SHAPE(40, n)), t), i, a, 0);
    case 7: return gn_cumprod(gn_clamp(a, 1, 1.01), 1);
    default:
        c = gn_fft(gn_cast(a, GN_F32), 0, 1, GN_FFT_BACKWARD);
        return how == 8 ? gn_abs(c) : gn_real(gn_ifft(gn_mul(c, c), 0, 1, GN_FFT_BACKWARD));
    }
}

static void test_orders(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[][2] = {{1, 1}, {3, 5}, {5, 300}, {1, 5000}, {2, 97}};
    for (int how = 0; how < 10; how++)
        for (int k = 0; k < 5; k++) {
            gn_dtype t = k == 1 ? GN_I32 : GN_F32;
            char what[80];
            gn_scope_begin(g);
            gn_scope_begin(other);
            snprintf(what, sizeof what, "order %d of %s (%d, %d)", how, gn_dtype_name(t), (int)size[k][0], (int)size[k][1]);
            gn_array *x = gn_cast(ordered(g, how, t, size[k][0], size[k][1]), GN_F32),
                     *y = gn_cast(ordered(other, how, t, size[k][0], size[k][1]), GN_F32);
            double scale = how < 8 ? 0 : gn_item(gn_max(gn_abs(y), GN_ALL)); // errors of transforms go with the largest number
            if (how == 7 || how == 0) same(what, x, y, 500);
            else same(what, gn_add_s(x, 8 * scale), gn_add_s(y, 8 * scale), how < 8 ? 0 : 8);
            gn_scope_end(other);
            gn_scope_end(g);
        }
}

// Attention and its gradient by q: products and a softmax, all of them on the GPU.
static void test_attention(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int how = 0; how < 3; how++) {
        gn_array *y[2], *dq[2];
        gn_scope_begin(g);
        gn_scope_begin(other);
        for (int i = 0; i < 2; i++) {
            gn_context *h = i ? other : g;
            const gn_dtype t = how == 2 ? GN_F16 : GN_F32;
            gn_attention_options o;
            memset(&o, 0, sizeof o);
            o.causal = how > 0;
            gn_array *x[3];
            for (int k = 0; k < 3; k++) // four heads, two of keys
                x[k] = gn_eval(gn_reshape(gn_sin(some(h, t, k == 0 ? 4 * 21 : 2 * 21, 12)), GN_SHAPE(k == 0 ? 4 : 2, 21, 12)));
            gn_requires_grad(x[0], true);
            y[i] = gn_attention(x[0], x[1], x[2], NULL, &o);
            assert_int_equal(gn_gradients(gn_sum(gn_square(gn_cast(y[i], GN_F32)), GN_ALL), x, 1, false, &dq[i]), GN_OK);
            gn_eval(dq[i]);
        }
        assert_non_null(strstr(gn_explain(y[0]), "on the GPU"));
        assert_non_null(strstr(gn_explain(dq[0]), "on the GPU"));
        for (int i = 0; i < 2; i++) { // errors go with the largest number
            y[i] = gn_add_s(gn_cast(y[i], GN_F32), 4.0);
            dq[i] = gn_add_s(gn_cast(dq[i], GN_F32), 4.0);
        }
        same("attention", y[0], y[1], how == 2 ? 2e3 : 8);
        same("attention's gradient", dq[0], dq[1], how == 2 ? 2e3 : 8);
        gn_scope_end(other);
        gn_scope_end(g);
    }
}

// More than a compute pass takes, and more arrays than the device keeps.
static void test_many(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_zeros(g, GN_F32, GN_SHAPE(1000));
    for (int i = 0; i < 700; i++) {
        gn_scope_begin(g);
        gn_set(&x, gn_eval(gn_add_s(x, 1.0)));
        gn_scope_end(g);
    }
    float first[1000];
    assert_int_equal(gn_read(x, first, sizeof first), GN_OK);
    assert_true(first[0] == 700.0f && first[999] == 700.0f);
}

static void test_device(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_device_info i;
    gn_device_get(g, &i);
    assert_int_equal(i.backend, GN_BACKEND_WEBGPU);
    assert_true(i.name[0] != 0 && i.usable);
    uint64_t buffer, offset, size;
    assert_int_equal(gn_vulkan_buffer(gn_ones(g, GN_F32, GN_SHAPE(4)), &buffer, &offset, &size), GN_ERROR_UNSUPPORTED);
    assert_non_null(strstr(gn_error(g), "does not compute with Vulkan"));
    gn_error_clear(g);
}

static void note(void *user, gn_status status) { *(int *)user = status == GN_OK ? 1 : -1; }

// Reads that nobody waits for come by gn_poll; one that is under way can be waited for.
static void test_poll(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int waits = 0; waits < 2; waits++) {
        float out[2][1000] = {{0}};
        int done[2] = {0, 0}, left = 2;
        gn_scope_begin(g);
        gn_array *x = gn_eval(gn_to(gn_arange(g, GN_F32, 0, 1000, 1), GN_DEVICE_GPU));
        for (int i = 0; i < 2; i++) gn_read_async(gn_add_s(gn_mul_s(x, 2.0), i), out[i], sizeof out[i], note, &done[i]);
        for (long i = 0; i < 200000000 && left > 0 && !waits; i++) left = gn_poll(g);
        if (waits) {
            gn_poll(g);
            assert_int_equal(gn_sync(g), GN_OK);
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(done[i], 1);
            for (int k = 0; k < 1000; k++) assert_true(out[i][k] == (float)(2 * k + i));
        }
        gn_scope_end(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_programs), GN_TEST(test_rounds_each_step), GN_TEST(test_less_itself),
                                       GN_TEST(test_subnormal), GN_TEST(test_in_place), GN_TEST(test_eight_bytes), GN_TEST(test_words),
                                       GN_TEST(test_wide), GN_TEST(test_wide_reductions),
                                       GN_TEST(test_reductions), GN_TEST(test_pools), GN_TEST(test_compensation), GN_TEST(test_products),
                                       GN_TEST(test_transposed),
                                       GN_TEST(test_rows), GN_TEST(test_rows_and_batches), GN_TEST(test_orders), GN_TEST(test_attention), GN_TEST(test_many),
                                       GN_TEST(test_device), GN_TEST(test_poll)};
    // With the kernels of a GPU (dawn_gpu.c) those that have others there.
    const struct CMUnitTest gpu[] = {GN_TEST(test_reductions), GN_TEST(test_products), GN_TEST(test_transposed), GN_TEST(test_rows),
                                     GN_TEST(test_rows_and_batches), GN_TEST(test_orders)};
    if (getenv("GN_TEST_AS_GPU") != NULL) return test_end(cmocka_run_group_tests(gpu, open_other, close_other));
    return test_end(cmocka_run_group_tests(tests, open_other, close_other));
}
