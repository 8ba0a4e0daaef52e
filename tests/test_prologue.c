// Elementwise work on the operand of a product with a vector or a narrow matrix, made while the product reads it:
// against float64 and against the same in two steps, counted in jobs.

#include "test_matrices.h"

static gn_array *values(gn_context *g, gn_dtype t, gn_shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++) n *= s.dim[i];
    float *data = (float *)malloc((size_t)(n + 1) * sizeof(float));
    bool whole = t != GN_F32 && t != GN_F16 && t != GN_BF16 && t != GN_F64;
    for (int64_t i = 0; i < n; i++)
        data[i] = whole ? (float)draw(t == GN_BOOL ? 2 : 100) : (float)draw(4096) / 2048.0f - 1.0f;
    gn_array *a = gn_eval(gn_cast(gn_array_from(g, GN_F32, s, data), t));
    free(data);
    return a;
}

// Jobs of that name in the profile of `g`, which this ends.
static int jobs(const char *text, const char *name) {
    char mark[64];
    int n = 0;
    snprintf(mark, sizeof mark, "\"name\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":1", name);
    for (const char *at = text; (at = strstr(at, mark)) != NULL; at++) n++;
    return n;
}

// Products in the hundreds, passes over memory in the units, since gn_profile_begin.
static int count_more(gn_context *g, gn_array *a) {
    size_t size;
    assert_non_null(gn_eval(a));
    assert_int_equal(gn_profile_end(g, "prologue.json"), GN_OK);
    char *text = (char *)test_read_file("prologue.json", &size);
    int n = 100 * jobs(text, "matmul") + jobs(text, "elementwise") + jobs(text, "reduce");
    free(text);
    return n;
}

static int count_jobs(gn_context *g, gn_array *a) {
    gn_profile_begin(g);
    return count_more(g, a);
}

// ---- what is made: of x, an array of another dtype, a row, a column, an array of x's shape

typedef struct others {
    gn_array *row, *column, *full, *truth;
} others;

static gn_array *cast(gn_array *x, const others *o) {
    (void)o;
    return gn_cast(x, GN_F32);
}
static gn_array *scaled(gn_array *x, const others *o) {
    (void)o;
    return gn_mul_s(gn_cast(x, GN_F32), 1.0 / 255.0);
}
static gn_array *relu(gn_array *x, const others *o) {
    (void)o;
    return gn_relu(gn_cast(x, GN_F32));
}
static gn_array *masked(gn_array *x, const others *o) { return gn_mul(gn_cast(x, GN_F32), gn_gt_s(o->full, 0.0)); }
static gn_array *dropped(gn_array *x, const others *o) { return gn_mul_s(gn_mul(gn_cast(x, GN_F32), o->truth), 2.0); }
static gn_array *normed(gn_array *x, const others *o) { // rows and columns scaled, as a layer norm does
    return gn_mul(gn_sub(gn_cast(x, GN_F32), o->column), o->row);
}
static gn_array *sum(gn_array *x, const others *o) { return gn_add(gn_cast(x, GN_F32), o->full); }
static gn_array *smooth(gn_array *x, const others *o) { return gn_tanh(gn_add(gn_cast(x, GN_F32), o->row)); }
static gn_array *chosen(gn_array *x, const others *o) {
    return gn_where(o->truth, gn_cast(x, GN_F32), gn_mul_s(o->full, 0.5));
}
typedef gn_array *(*maker)(gn_array *x, const others *o);
static const maker makers[] = {cast, scaled, relu, masked, dropped, normed, sum, smooth, chosen};
enum { MAKERS = sizeof makers / sizeof makers[0] };

static gn_array *view(gn_context *g, gn_dtype t, int64_t batch, int64_t m, int64_t n, int how) {
    if (how == 0) return batch > 0 ? values(g, t, GN_SHAPE(batch, m, n)) : values(g, t, GN_SHAPE(m, n));
    if (how == 1)
        return gn_swap_axes(batch > 0 ? values(g, t, GN_SHAPE(batch, n, m)) : values(g, t, GN_SHAPE(n, m)), -1, -2);
    gn_array *a = batch > 0 ? values(g, t, GN_SHAPE(batch, 2 * m, n + 3)) : values(g, t, GN_SHAPE(2 * m, n + 3));
    int rank = gn_rank(a);
    a = gn_slice(gn_slice(a, rank - 2, 0, 2 * m, 2), rank - 1, 2, n + 2, 1);
    return how == 2 ? a : gn_flip(a, -1);
}

static gn_array *exact(gn_array *a) { return wide(a); } // where a variable is called wide

// `side` 1: made x times a vector, 2: a vector times it. `form`: 0 the vector is 1-d, 1 a column or row.
static void check(gn_context *g, int64_t batch, int64_t m, int64_t n, gn_dtype t, maker f, int side, int form, int how) {
    GN_SCOPE(residuals(g))
    GN_SCOPE(g) {
        others o;
        gn_array *x = view(g, t, batch, m, n, how);
        int64_t k = side == 1 ? n : m;
        o.row = values(g, GN_F32, GN_SHAPE(n));
        o.column = values(g, GN_F32, GN_SHAPE(m, 1));
        o.full = view(g, GN_F32, batch, m, n, how);
        o.truth = view(g, GN_BOOL, batch, m, n, 0);
        gn_array *v = form == 0 ? values(g, GN_F32, GN_SHAPE(k))
                                : side == 1 ? values(g, GN_F32, GN_SHAPE(k, 1)) : values(g, GN_F32, GN_SHAPE(1, k));
        if (form == 1 && how == 3) { // a step between its elements
            v = values(g, GN_F32, GN_SHAPE(k, 3));
            v = gn_slice(v, 1, 1, 2, 1);
            if (side == 2) v = gn_transpose(v);
        }
        gn_array *whole = gn_eval(f(x, &o));
        gn_array *want = side == 1 ? gn_matmul(exact(whole), exact(v))
                                   : gn_matmul(exact(v), exact(whole));
        gn_array *bound = side == 1 ? gn_matmul(gn_abs(exact(whole)), gn_abs(exact(v)))
                                    : gn_matmul(gn_abs(exact(v)), gn_abs(exact(whole)));
        gn_array *made = f(x, &o), *y = side == 1 ? gn_matmul(made, v) : gn_matmul(v, made);
        int count = count_jobs(g, y);
        bool large = (batch > 0 ? batch : 1) * m * n >= 4096;
        if (large && !(t == GN_F32 && f == cast) && count != 100)
            fail_msg("%lld of %lld x %lld, side %d: %d jobs, not one product", (long long)batch, (long long)m,
                     (long long)n, side, count);
        assert_true(gn_rank(y) == gn_rank(want) && gn_size(y) == gn_size(want));
        gn_array *off = gn_sub(gn_abs(gn_sub(exact(y), want)),
                               gn_mul_s(gn_add_s(bound, 1e-6), (double)(k + 4) * 0x1p-23));
        if (gn_size(y) > 0 && !(gn_item(gn_max(off, GN_ALL)) <= 0.0))
            fail_msg("%lld of %lld x %lld %s, side %d, form %d, layout %d: off by %g too much", (long long)batch,
                     (long long)m, (long long)n, gn_dtype_name(t), side, form, how, gn_item(gn_max(off, GN_ALL)));
        // Asked for afterwards, the operand is what it would have been.
        assert_true(gn_item(gn_all(gn_eq(made, whole), GN_ALL)) == 1.0);
    }
}

// What follows the product: nothing, a bias, a bias and relu, a conversion, a program over all of the result.
enum { ALONE, BIASED, BIASED_RELU, NARROWED, FOLLOWED, AFTERS };
static gn_array *followed(gn_array *y, int after, gn_array *bias, gn_array *full) {
    if (after == BIASED || after == BIASED_RELU) y = gn_add(y, bias);
    if (after == BIASED_RELU) y = gn_relu(y);
    if (after == NARROWED) y = gn_cast(y, GN_BF16);
    if (after == FOLLOWED) y = gn_mul_s(gn_sub(y, full), 0.5);
    return y;
}

// As check, with `wide` rows or columns. `shared`: all batches of a made operand of side 1 meet one matrix.
static void check_wide(gn_context *g, int64_t batch, int64_t m, int64_t n, int64_t wide, gn_dtype t, maker f, int side,
                       int how, int after, bool shared) {
    GN_SCOPE(residuals(g))
    GN_SCOPE(g) {
        others o;
        gn_array *x = view(g, t, batch, m, n, how);
        int64_t k = side == 1 ? n : m, rows = side == 1 ? m : wide, columns = side == 1 ? wide : n;
        o.row = values(g, GN_F32, GN_SHAPE(n));
        o.column = values(g, GN_F32, GN_SHAPE(m, 1));
        o.full = view(g, GN_F32, batch, m, n, how);
        o.truth = view(g, GN_BOOL, batch, m, n, 0);
        gn_array *v = view(g, GN_F32, shared ? 0 : batch, side == 1 ? k : wide, side == 1 ? wide : k, (how + 1) % 3);
        gn_array *bias = values(g, GN_F32, GN_SHAPE(columns)), *full = view(g, GN_F32, batch, rows, columns, 0);
        gn_array *whole = gn_eval(f(x, &o)), *w64 = exact(whole), *v64 = exact(v);
        gn_array *want = side == 1 ? gn_matmul(w64, v64) : gn_matmul(v64, w64);
        gn_array *bound = side == 1 ? gn_matmul(gn_abs(w64), gn_abs(v64)) : gn_matmul(gn_abs(v64), gn_abs(w64));
        gn_array *made = f(x, &o), *y = side == 1 ? gn_matmul(made, v) : gn_matmul(v, made);
        int count = count_jobs(g, y = followed(y, after, bias, full));
        want = followed(want, after == NARROWED ? ALONE : after, exact(bias), exact(full));
        if (test_on_vulkan() && (batch > 0 ? batch : 1) * m * n >= 4096 && wide > 1 && t != GN_F32 && count != 100)
            fail_msg("%lld of %lld x %lld by %lld, side %d, after %d: %d jobs, not one product", (long long)batch,
                     (long long)m, (long long)n, (long long)wide, side, after, count);
        double each = (double)(k + 6) * 0x1p-23, last = after == NARROWED ? 0x1p-8 : 0x1p-22;
        gn_array *most = gn_add(gn_mul_s(gn_add_s(bound, 1e-6), each), gn_mul_s(gn_add_s(gn_abs(want), 1.0), last));
        gn_array *off = gn_sub(gn_abs(gn_sub(exact(y), want)), most);
        if (gn_size(y) > 0 && !(gn_item(gn_max(off, GN_ALL)) <= 0.0))
            fail_msg("%lld of %lld x %lld %s by %lld, side %d, layout %d, after %d: off by %g too much", (long long)batch,
                     (long long)m, (long long)n, gn_dtype_name(t), (long long)wide, side, how, after,
                     gn_item(gn_max(off, GN_ALL)));
        assert_true(gn_item(gn_all(gn_eq(made, whole), GN_ALL)) == 1.0);
    }
}

// `half`: of each pair of products one.
static void wide_products(gn_context *g, bool half) {
    static const gn_dtype all[] = {GN_F16, GN_BF16, GN_U8, GN_I8, GN_I32, GN_U32, GN_BOOL, GN_F32};
    static const int64_t wide[] = {2, 3, 8, 10, 16, 32, 33, 64, 100};
    for (int t = 0; t < 8; t++)
        for (int side = 1; side <= 2; side++) {
            if (half && (t + side) % 2) continue;
            check_wide(g, 0, 67, 131, wide[t], all[t], cast, side, 0, t % AFTERS, false);
            check_wide(g, 0, 70, 64, wide[t + 1], all[t], scaled, side, t % 4, (t + side) % AFTERS, false);
        }
    for (int i = 0; i < MAKERS; i++)
        for (int side = 1; side <= 2; side++) {
            if (half && (i + side) % 2) continue;
            check_wide(g, 0, 128, 96, wide[i], GN_F32, makers[i], side, 0, i % AFTERS, false);
            check_wide(g, 0, 61, 90, wide[(i + 4) % 9], GN_F16, makers[i], side, 1 + i % 3, ALONE, false);
        }
    check_wide(g, 3, 40, 50, 5, GN_F16, normed, 1, 0, ALONE, true); // batches become rows
    check_wide(g, 3, 40, 50, 5, GN_F16, sum, 1, 1, BIASED_RELU, true);
    check_wide(g, 3, 40, 50, 7, GN_F16, normed, 1, 0, BIASED, false);
    check_wide(g, 3, 40, 50, 7, GN_BF16, masked, 2, 2, ALONE, false);
    check_wide(g, 70, 1, 64, 12, GN_F16, smooth, 1, 0, ALONE, true);
    check_wide(g, 0, 5, 4099, 6, GN_F16, chosen, 1, 0, NARROWED, false);
    check_wide(g, 0, 4099, 5, 6, GN_F16, chosen, 2, 0, FOLLOWED, false);
    check_wide(g, 0, 1, 4099, 9, GN_F16, scaled, 1, 0, ALONE, false);
    check_wide(g, 0, 0, 9, 4, GN_F16, cast, 1, 0, ALONE, false);
    check_wide(g, 0, 9, 0, 4, GN_F16, cast, 1, 0, ALONE, false);
}

static int makings; // products whose kernel made an operand, which kernels in WGSL do not

static void count_makings(void *user, gn_log_level level, const char *text) {
    (void)user, (void)level;
    if (strstr(text, "while it reads it") != NULL) makings++;
}

// Before kernels for the programs are compiled, and by such kernels.
static gn_context *open_compiled(void) {
    gn_options o = test_options();
    o.vulkan_flags |= GN_VULKAN_NO_ASYNC_PIPELINES;
    o.log = count_makings;
    o.log_level = GN_LOG_DEBUG;
    makings = 0;
    return test_open_with(&o);
}
static void test_wide(void **state) { wide_products((gn_context *)*state, test_on_vulkan()); }
static void test_wide_compiled(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    gn_context *g = open_compiled();
    const bool half = test_on_software(g);
    wide_products(g, half);
    if (!test_on_webgpu() && makings < (half ? 13 : 25)) fail_msg("%d operands were made by kernels", makings);
    test_close(g);
}

static void test_dtypes(void **state) {
    gn_context *g = (gn_context *)*state;
    static const gn_dtype all[] = {GN_F16, GN_BF16, GN_U8, GN_I8, GN_I32, GN_U32, GN_BOOL, GN_F32};
    for (int t = 0; t < 8; t++)
        for (int side = 1; side <= 2; side++) {
            check(g, 0, 67, 131, all[t], cast, side, 0, 0);
            check(g, 0, 70, 64, all[t], scaled, side, 1, t % 4);
        }
}

static void test_programs(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < MAKERS; i++)
        for (int side = 1; side <= 2; side++) {
            check(g, 0, 100, 77, GN_F32, makers[i], side, i % 2, 0);
            check(g, 0, 61, 90, GN_F16, makers[i], side, i % 2, 1 + i % 3);
        }
}

static void test_shapes(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t shape[][3] = {{0, 1, 5000},  {0, 5000, 1}, {0, 3, 2049},  {0, 2049, 3}, {3, 40, 50},
                                       {1, 64, 64},   {0, 9, 4100}, {0, 4100, 17}, {5, 1, 900},  {0, 64, 64},
                                       {0, 13, 5},    {0, 0, 5},    {0, 5, 0},     {2, 2100, 2}, {0, 300, 257},
                                       {0, 33, 65536}};
    int rounds = test_on_vulkan() || TEST_THREAD_SANITIZER ? 1 : 4;
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        for (int r = 0; r < rounds; r++)
            for (int side = 1; side <= 2; side++) {
                const int64_t *s = shape[i];
                check(g, s[0], s[1], s[2], GN_F32, makers[1 + draw(MAKERS - 1)], side, (int)draw(2),
                      s[1] > 0 && s[2] > 0 ? (int)draw(4) : 0);
            }
}

// From here on CPUs make it while they read it.
static void test_large(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t shape[][3] = {{0, 1449, 1451}, {3, 700, 1003}, {0, 5, 419431}, {0, 300007, 7}};
    static const gn_dtype narrow[] = {GN_F16, GN_BF16, GN_U8};
    for (int i = 0; i < 4; i++)
        for (int side = 1; side <= 2; side++) {
            const int64_t *s = shape[i];
            check(g, s[0], s[1], s[2], narrow[i % 3], i % 2 ? cast : scaled, side, side - 1, 0);
            if (!test_on_vulkan() && !TEST_THREAD_SANITIZER) check(g, s[0], s[1], s[2], GN_F16, smooth, side, 1, 1 + (int)draw(3));
        }
}

static void test_special_values(void **state) {
    gn_context *g = (gn_context *)*state;
    GN_SCOPE(g) {
        float data[64 * 64];
        for (int i = 0; i < 64 * 64; i++) data[i] = 1.0f;
        data[3] = NAN;
        data[64 + 5] = INFINITY;
        data[2 * 64 + 63] = -INFINITY;
        data[3 * 64] = INFINITY;
        data[3 * 64 + 1] = -INFINITY;
        gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(64, 64), data), *v = gn_ones(g, GN_F32, GN_SHAPE(64));
        gn_array *y = gn_matmul(gn_mul_s(x, 2.0), gn_eval(v));
        assert_int_equal(count_jobs(g, y), 100);
        float have[64];
        gn_read(y, have, sizeof have);
        assert_true(isnan(have[0]) && have[1] == INFINITY && have[2] == -INFINITY && isnan(have[3]) && have[4] == 128.0f);
        // An infinite element meets a zero of the vector.
        v = gn_eval(gn_cast(gn_ne_s(gn_arange(g, GN_F32, 0, 64, 1), 5.0), GN_F32));
        gn_read(gn_matmul(gn_mul_s(x, 2.0), v), have, sizeof have);
        assert_true(isnan(have[1]) && have[4] == 126.0f);
        // float16's largest and smallest, exactly.
        gn_array *h = gn_eval(gn_cast(gn_full(g, GN_F32, GN_SHAPE(64, 64), 0x1p-24), GN_F16));
        gn_read(gn_matmul(gn_cast(h, GN_F32), gn_eval(gn_ones(g, GN_F32, GN_SHAPE(64)))), have, sizeof have);
        assert_true(have[0] == 0x1p-18f && have[63] == 0x1p-18f);
    }
}

// What stays in two steps.
static void test_counts(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_retain(values(g, GN_F16, GN_SHAPE(80, 90))), *v = values(g, GN_F32, GN_SHAPE(90));
    gn_array *w = values(g, GN_F32, GN_SHAPE(90, 40));
    // float16 by float32: the conversion is the product's own.
    assert_int_equal(count_jobs(g, gn_matmul(x, v)), 100);
    // Held by the caller, or read by someone else: made once, whole.
    gn_array *f = gn_retain(gn_cast(x, GN_F32)), *y = gn_matmul(f, v);
    assert_int_equal(count_jobs(g, y), 101);
    assert_int_equal(count_jobs(g, f), 0);
    gn_release(f);
    f = gn_cast(x, GN_F32);
    gn_array *z = gn_neg(f);
    assert_int_equal(count_jobs(g, gn_matmul(f, v)), 101);
    assert_int_equal(count_jobs(g, z), 1);
    // CPUs make it while they read it for a vector alone; so does whoever would read each element often.
    gn_profile_begin(g);
    assert_int_equal(count_more(g, gn_matmul(gn_relu(gn_cast(x, GN_F32)), w)), test_on_vulkan() ? 100 : 101);
    gn_array *wider = values(g, GN_F32, GN_SHAPE(90, 300));
    gn_profile_begin(g);
    assert_int_equal(count_more(g, gn_matmul(gn_relu(gn_cast(x, GN_F32)), wider)), 101);
    // Elementwise work after such a product is a pass over a vector.
    y = gn_relu(gn_matmul(gn_mul_s(gn_cast(x, GN_F32), 2.0), v));
    assert_int_equal(count_jobs(g, y), 101);
    // Small operands.
    gn_array *p = values(g, GN_F32, GN_SHAPE(20, 30)), *q = values(g, GN_F32, GN_SHAPE(30));
    gn_profile_begin(g);
    assert_int_equal(count_more(g, gn_matmul(gn_relu(p), q)), 101);
    // Both are pending: one is made.
    gn_array *a = values(g, GN_F32, GN_SHAPE(5000)), *b = values(g, GN_F32, GN_SHAPE(5000));
    y = gn_matmul(gn_relu(a), gn_neg(b));
    gn_array *want = gn_matmul(gn_cast(gn_relu(a), GN_F64), gn_cast(gn_neg(b), GN_F64));
    assert_true(fabs(gn_item(y) - gn_item(want)) < 1e-2);
    // The same array on both sides.
    a = gn_relu(b);
    assert_true(fabs(gn_item(gn_matmul(a, a)) - gn_item(gn_sum(gn_square(gn_cast(a, GN_F64)), GN_ALL))) < 1e-2);
    // A product is an operand, and a repeated batch.
    p = gn_eval(gn_cast(x, GN_F32)), q = values(g, GN_F32, GN_SHAPE(40));
    gn_profile_begin(g);
    assert_int_equal(count_more(g, gn_matmul(gn_relu(gn_matmul(p, w)), q)), 200);
    q = values(g, GN_F32, GN_SHAPE(3, 90, 1));
    gn_profile_begin(g);
    assert_int_equal(count_more(g, gn_matmul(gn_relu(gn_cast(x, GN_F32)), q)), 101);
    gn_release(x);
}

// Pending work sees its operands as they were.
static void test_overwritten(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_eval(gn_ones(g, GN_F32, GN_SHAPE(64, 64))), *v = gn_eval(gn_ones(g, GN_F32, GN_SHAPE(64)));
    gn_array *y = gn_matmul(gn_mul_s(x, 2.0), v), *z = gn_matmul(v, gn_mul_s(x, 3.0));
    float *five = (float *)malloc(64 * 64 * sizeof(float));
    for (int i = 0; i < 64 * 64; i++) five[i] = 5.0f;
    assert_int_equal(gn_write(x, five, 64 * 64 * sizeof(float)), GN_OK);
    assert_int_equal(gn_write(v, five, 64 * sizeof(float)), GN_OK);
    free(five);
    assert_true(gn_item(gn_min(y, GN_ALL)) == 128.0 && gn_item(gn_max(y, GN_ALL)) == 128.0);
    assert_true(gn_item(gn_min(z, GN_ALL)) == 192.0 && gn_item(gn_max(z, GN_ALL)) == 192.0);
    assert_true(gn_item(gn_max(gn_matmul(gn_mul_s(x, 2.0), v), GN_ALL)) == 3200.0);
}

// One step of k: the program at the product's store reads the operand too, which alone holds its source.
static void test_read_beside(void **state) {
    gn_context *g = (gn_context *)*state;
    float two = 2.0f, data[8192];
    for (int i = 0; i < 8192; i++) data[i] = 3.0f;
    for (int side = 0; side < 2; side++) {
        gn_array *a = gn_array_from(g, GN_F32, side ? GN_SHAPE(1, 8192) : GN_SHAPE(8192, 1), data), *x = gn_relu(a);
        gn_array *v = gn_array_from(g, GN_F32, GN_SHAPE(1, 1), &two), *p = side ? gn_matmul(v, x) : gn_matmul(x, v);
        gn_array *y = gn_add(p, x);
        gn_release(a);
        gn_release(x);
        gn_release(p);
        assert_true(gn_item(gn_min(y, GN_ALL)) == 9.0 && gn_item(gn_max(y, GN_ALL)) == 9.0);
        gn_release(y);
        gn_release(v);
    }
}

// However often it ran, and whatever is compiled by then.
static void test_same_bits(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = values(g, GN_F32, GN_SHAPE(60, 517)), *v = values(g, GN_F32, GN_SHAPE(517));
    float first[60], again[60];
    for (int i = 0; i < 100; i++)
        GN_SCOPE(g) {
            gn_read(gn_matmul(gn_tanh(gn_mul_s(x, 1.7)), v), i > 0 ? again : first, sizeof first);
            assert_true(i == 0 || memcmp(first, again, sizeof first) == 0);
        }
}

// Made twice, it would be better kept.
static void test_read_twice(void **state) {
    gn_context *g = (gn_context *)*state;
    const int64_t widths[] = {1, 8};
    for (int i = 0; i < 2; i++) {
        gn_array *x = values(g, GN_F32, GN_SHAPE(80, 90)), *v = values(g, GN_F32, GN_SHAPE(90, widths[i]));
        gn_array *made = gn_relu(x);
        gn_profile_begin(g);
        for (int k = 0; k < 2; k++) gn_eval(gn_matmul(made, v));
        assert_int_equal(count_more(g, gn_matmul(made, v)), 301); // and one pass
    }
}

static void test_same_bits_wide(void **state) {
    static const int64_t sizes[][3] = {{60, 517, 3}, {130, 260, 10}, {700, 96, 33}, {256, 784, 128}, {40, 5000, 16}};
    gn_context *g[2];
    g[0] = (gn_context *)*state;
    g[1] = open_compiled();
    for (int i = 0; i < 10; i++) {
        const int64_t m = sizes[i / 2][0], k = sizes[i / 2][1], n = sizes[i / 2][2];
        const size_t bytes = (size_t)(m * n) * sizeof(float);
        float *have[2];
        for (int side = 0; side < 2; side++) {
            have[side] = (float *)malloc(bytes);
            gn_seed(g[side], 5);
            GN_SCOPE(g[side]) {
                gn_array *a = gn_randn(g[side], GN_F32, GN_SHAPE(m, k)), *b = gn_randn(g[side], GN_F32, GN_SHAPE(k, n));
                gn_array *made = gn_relu(gn_eval(a));
                gn_eval(b);
                gn_array *y = i % 2 == 0 ? gn_matmul(made, b)
                                         : gn_matmul(gn_transpose(b), gn_transpose(made));
                assert_int_equal(gn_read(y, have[side], bytes), GN_OK);
            }
        }
        assert_memory_equal(have[0], have[1], bytes);
        free(have[0]);
        free(have[1]);
    }
    if (test_on_vulkan() && !test_on_webgpu() && makings < 4) fail_msg("%d operands were made by kernels", makings);
    gn_close(g[1]);
}

// Whoever asks for a gradient reads the operand again: it is made once.
static void test_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_requires_grad(values(g, GN_F32, GN_SHAPE(70, 80)), true), *in[2], *grad[2], *wide[2], *want[2];
    gn_array *v = gn_requires_grad(values(g, GN_F32, GN_SHAPE(80)), true);
    in[0] = x, in[1] = v;
    assert_int_equal(gn_gradients(gn_sum(gn_square(gn_matmul(gn_relu(x), v)), GN_ALL), in, 2, false, grad), GN_OK);
    for (int i = 0; i < 2; i++) wide[i] = gn_requires_grad(gn_eval(gn_cast(gn_detach(in[i]), GN_F64)), true);
    assert_int_equal(gn_gradients(gn_sum(gn_square(gn_matmul(gn_relu(wide[0]), wide[1])), GN_ALL), wide, 2, false, want),
                     GN_OK);
    for (int i = 0; i < 2; i++)
        assert_true(gn_item(gn_max(gn_abs(gn_sub(gn_cast(grad[i], GN_F64), want[i])), GN_ALL)) < 1e-3);
}

static void products(gn_context *g) {
    GN_SCOPE(g) {
        gn_array *x = gn_rand(g, GN_F32, GN_SHAPE(64, 70)), *h = gn_cast(x, GN_F16);
        gn_eval(gn_matmul(gn_relu(x), gn_rand(g, GN_F32, GN_SHAPE(70))));
        gn_eval(gn_matmul(gn_rand(g, GN_F32, GN_SHAPE(64)), gn_mul(x, gn_eval(h))));
        gn_eval(gn_add_s(gn_matmul(gn_mul_s(x, 2.0), gn_rand(g, GN_F32, GN_SHAPE(70, 1))), 1.0));
    }
}
static void test_out_of_memory(void **state) {
    (void)state;
    test_most_allocations(products);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_wide), GN_TEST(test_dtypes), GN_TEST(test_programs),    GN_TEST(test_shapes),    GN_TEST(test_special_values),
        GN_TEST(test_large),
        GN_TEST(test_counts), GN_TEST(test_overwritten), GN_TEST(test_gradients), cmocka_unit_test(test_out_of_memory),
        GN_TEST(test_read_beside), GN_TEST(test_same_bits), GN_TEST(test_same_bits_wide), GN_TEST(test_read_twice),
        cmocka_unit_test(test_wide_compiled),
    };
    return test_run(tests);
}
