// Elementwise work that goes into the store of a matrix product, and the products of a layer's backward pass:
// against float64 computed step by step, counted in jobs.
//
// Bounds. A float32 sum of k products is off by (k + 2) u S, S the sum of |a||b| and u = 2^-23 (matrix units cut
// off); the functions here have slopes below 4 and add a few roundings of their own, in float32 for a
// float32 product and in its dtype otherwise.

#include "test_matrices.h"

// Values in [-1, 1), computed, of any dtype; bool and integers are 0 and 1.
static gn_array *values(gn_context *g, gn_dtype t, gn_shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++) n *= s.dim[i];
    float *data = (float *)malloc((size_t)(n + 1) * sizeof(float));
    for (int64_t i = 0; i < n; i++)
        data[i] = t == GN_BOOL || t == GN_U8 ? (float)draw(2) : (float)draw(4096) / 2048.0f - 1.0f;
    gn_array *a = gn_eval(gn_cast(gn_array_from(g, GN_F32, s, data), t));
    free(data);
    return a;
}

// How many jobs of that name the profile of `g` holds; ends it.
static int jobs(gn_context *g, const char *name) {
    char mark[64];
    size_t size;
    int n = 0;
    assert_int_equal(gn_profile_end(g, "epilogue.json"), GN_OK);
    char *text = (char *)test_read_file("epilogue.json", &size);
    snprintf(mark, sizeof mark, "\"name\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":1", name);
    for (const char *at = text; (at = strstr(at, mark)) != NULL; at++) n++;
    free(text);
    return n;
}

// How many jobs it takes to compute `a`, whatever they are. Matrix products count 100.
static int count_jobs(gn_context *g, gn_array *a) {
    gn_profile_begin(g);
    assert_non_null(gn_eval(a));
    assert_int_equal(gn_profile_end(g, "epilogue.json"), GN_OK);
    size_t size;
    int n = 0;
    char *text = (char *)test_read_file("epilogue.json", &size);
    static const char *const name[] = {"matmul", "elementwise", "reduce", "softmax"};
    for (int i = 0; i < 4; i++) {
        char mark[64];
        snprintf(mark, sizeof mark, "\"name\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":1", name[i]);
        for (const char *at = text; (at = strstr(at, mark)) != NULL; at++) n += i == 0 ? 100 : 1;
    }
    free(text);
    return n;
}

// ---- what follows a product: p, and a row, a column, an array of p's shape, a number, truth values of p's shape

typedef struct others {
    gn_array *row, *column, *full, *one, *truth;
} others;

static gn_array *bias(gn_array *p, const others *o) { return gn_add(p, o->row); }
static gn_array *bias_relu(gn_array *p, const others *o) { return gn_relu(gn_add(o->row, p)); }
static gn_array *relu(gn_array *p, const others *o) {
    (void)o;
    return gn_relu(p);
}
static gn_array *scale_residual(gn_array *p, const others *o) {
    return gn_add(gn_mul_s(p, 0.1), o->full);
}
static gn_array *column_row(gn_array *p, const others *o) {
    return gn_sub(gn_mul(p, o->column), o->row);
}
static gn_array *number(gn_array *p, const others *o) { return gn_mul(gn_neg(p), o->one); }
static gn_array *bias_gelu(gn_array *p, const others *o) { return gn_gelu(gn_add(p, o->row)); }
static gn_array *bias_silu(gn_array *p, const others *o) { return gn_silu(gn_add(p, o->row)); }
static gn_array *bias_tanh(gn_array *p, const others *o) { return gn_tanh(gn_add(p, o->row)); }
static gn_array *sigmoid_gate(gn_array *p, const others *o) { return gn_mul(gn_sigmoid(p), o->full); }
static gn_array *self_gate(gn_array *p, const others *o) {
    (void)o;
    return gn_mul(p, gn_sigmoid(p)); // reads it twice
}
static gn_array *softplus_min(gn_array *p, const others *o) {
    return gn_minimum(gn_softplus(p), o->column);
}
static gn_array *choose(gn_array *p, const others *o) { return gn_where(o->truth, p, o->full); }
static gn_array *masked(gn_array *p, const others *o) { return gn_mul(p, o->truth); }
static gn_array *leaky(gn_array *p, const others *o) {
    (void)o;
    return gn_leaky_relu(p, 0.01);
}
static gn_array *clamped(gn_array *p, const others *o) {
    return gn_clamp(gn_fma(p, o->column, o->row), -0.75, 0.5);
}
static gn_array *roots(gn_array *p, const others *o) {
    (void)o;
    return gn_sqrt(gn_add_s(gn_square(gn_sin(p)), 1.0));
}
static gn_array *quotient(gn_array *p, const others *o) {
    return gn_div(p, gn_add_s(gn_abs(o->full), 1.0));
}
static gn_array *exponential(gn_array *p, const others *o) {
    (void)o;
    return gn_exp(gn_minimum_s(p, 1.0));
}
static gn_array *many(gn_array *p, const others *o) { // every operand, ten instructions
    gn_array *y = gn_add(gn_mul(gn_add(p, o->row), o->column), gn_mul(o->full, o->one));
    return gn_maximum(gn_mul_s(gn_tanh(gn_sub(y, o->truth)), 0.5), gn_mul_s(o->full, 0.25));
}

typedef struct follower {
    const char *name;
    gn_array *(*fn)(gn_array *p, const others *o);
} follower;
static const follower followers[] = {
    {"bias", bias},
    {"bias_relu", bias_relu},
    {"relu", relu},
    {"scale_residual", scale_residual},
    {"column_row", column_row},
    {"number", number},
    {"bias_gelu", bias_gelu},
    {"bias_silu", bias_silu},
    {"bias_tanh", bias_tanh},
    {"sigmoid_gate", sigmoid_gate},
    {"self_gate", self_gate},
    {"softplus_min", softplus_min},
    {"choose", choose},
    {"masked", masked},
    {"leaky", leaky},
    {"clamped", clamped},
    {"roots", roots},
    {"quotient", quotient},
    {"exponential", exponential},
    {"many", many},
};
enum { FOLLOWERS = sizeof followers / sizeof followers[0] };

static double unit_of(gn_dtype t) {
    return t == GN_F16 ? 0x1p-11 : t == GN_BF16 ? 0x1p-8 : 0x1p-24;
}

// Compares with float64, element by element.
static void expect_near(gn_array *have, gn_array *want, gn_array *sums, int64_t k, double unit,
                        const char *what) {
    int64_t n = gn_size(want);
    assert_true(have != NULL && want != NULL && gn_size(have) == n);
    double *h = (double *)malloc((size_t)(n + 1) * sizeof(double)),
           *w = (double *)malloc((size_t)(n + 1) * sizeof(double)),
           *s = (double *)malloc((size_t)(n + 1) * sizeof(double));
    size_t bytes = (size_t)n * sizeof(double);
    assert_int_equal(gn_read(wide(have), h, bytes), GN_OK);
    assert_int_equal(gn_read(want, w, bytes), GN_OK);
    assert_int_equal(gn_read(sums, s, bytes), GN_OK);
    for (int64_t i = 0; i < n; i++) {
        double bound = 4.0 * ((double)(k + 2) * 0x1p-23 * s[i] + 8.0 * unit * (1.0 + s[i])) +
                       8.0 * unit * fabs(w[i]);
        if (!(fabs(h[i] - w[i]) <= bound))
            fail_msg("%s: element %lld is %.9g, not %.9g (bound %.3g)", what, (long long)i, h[i],
                     w[i], bound);
    }
    free(h);
    free(w);
    free(s);
}

typedef struct product {
    int64_t batch, m, n, k; // batch 0: none
    gn_dtype t, out;        // out: a cast at the end
    bool strided;           // operands are views
} product;

static gn_shape shape_of(int64_t batch, int64_t m, int64_t n) {
    return batch > 0 ? GN_SHAPE(batch, m, n) : GN_SHAPE(m, n);
}

// Every second row and column of something larger, or its transpose.
static gn_array *view(gn_context *g, gn_dtype t, int64_t batch, int64_t m, int64_t n, bool strided) {
    if (!strided) return values(g, t, shape_of(batch, m, n));
    if (draw(2)) return gn_swap_axes(values(g, t, shape_of(batch, n, m)), -1, -2);
    gn_array *a = values(g, t, shape_of(batch, 2 * m + 1, 2 * n + 1));
    int rank = gn_rank(a);
    return gn_slice(gn_slice(a, rank - 2, 1, 2 * m + 1, 2), rank - 1, 1, 2 * n + 1, 2);
}

static void check(gn_context *g, const product *c, const follower *f, bool count) {
    GN_SCOPE(residuals(g))
    GN_SCOPE(g) {
        gn_array *a = view(g, c->t, c->batch, c->m, c->k, c->strided);
        gn_array *b = view(g, c->t, c->batch > 1 && draw(2) ? 1 : c->batch, c->k, c->n, c->strided);
        others o, w;
        o.row = values(g, c->t, GN_SHAPE(c->n));
        o.column = values(g, c->t, GN_SHAPE(c->m, 1));
        o.full = view(g, c->t, c->batch, c->m, c->n, c->strided);
        o.one = values(g, c->t, GN_SHAPE());
        o.truth = view(g, draw(2) ? GN_BOOL : GN_U8, c->batch, c->m, c->n, c->strided);
        w.row = wide(o.row);
        w.column = wide(o.column);
        w.full = wide(o.full);
        w.one = wide(o.one);
        w.truth = brought(residuals(g), o.truth);
        gn_array *want = f->fn(gn_matmul(wide(a), wide(b)), &w);
        gn_array *sums = gn_matmul(gn_abs(wide(a)), gn_abs(wide(b)));
        gn_array *y = f->fn(gn_matmul(a, b), &o);
        if (c->out != c->t) y = gn_cast(y, c->out);
        if (count && count_jobs(g, y) != 100)
            fail_msg("%s: %d jobs, not one product", f->name, count_jobs(g, f->fn(gn_matmul(a, b), &o)));
        double unit = unit_of(c->t) > unit_of(c->out) ? unit_of(c->t) : unit_of(c->out);
        char what[200];
        snprintf(what, sizeof what, "%s of (%lld,%lld,%lld,%lld) %s to %s%s", f->name,
                 (long long)c->batch, (long long)c->m, (long long)c->k, (long long)c->n,
                 gn_dtype_name(c->t), gn_dtype_name(c->out), c->strided ? ", views" : "");
        expect_near(y, want, sums, c->k, unit, what);
    }
}

// ---- the tests

static void test_followers(void **state) {
    gn_context *g = (gn_context *)*state;
    const product c = {0, 37, 29, 31, GN_F32, GN_F32, false};
    for (int i = 0; i < FOLLOWERS; i++) check(g, &c, &followers[i], true);
}

static void test_dtypes(void **state) {
    gn_context *g = (gn_context *)*state;
    static const gn_dtype all[] = {GN_F32, GN_F16, GN_BF16};
    for (int i = 0; i < 3; i++)
        for (int q = 0; q < 3; q++)
            for (int k = i; k < FOLLOWERS; k += test_on_vulkan() ? 9 : 1) {
                product c = {0, 19, 35, 23, all[i], all[q], false};
                check(g, &c, &followers[k], true);
                c.strided = true;
                check(g, &c, &followers[(k + 7) % FOLLOWERS], true);
            }
}

static void test_sizes(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[] = {0, 1, 2, 3, 5, 16, 17, 31, 64, 67, 131, 260};
    enum { SIZES = sizeof size / sizeof size[0] };
    int rounds = test_on_vulkan() ? 25 : 400;
    for (int i = 0; i < rounds; i++) {
        product c = {draw(3), size[draw(SIZES)], size[draw(SIZES)], size[draw(SIZES)],
                     GN_F32,  GN_F32,            draw(2) == 1};
        if (draw(4) == 0) c.t = draw(2) ? GN_F16 : GN_BF16;
        c.out = draw(4) == 0 ? GN_F16 : c.t;
        if (c.batch == 2) c.batch = 3;
        check(g, &c, &followers[draw(FOLLOWERS)], false);
    }
}

// One row, one column, one element, long sums, many rows: other kernels, and k in parts.
static void test_shapes(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t shape[][4] = {
        {0, 1, 301, 97},    {0, 301, 1, 97},  {0, 1, 1, 1000},    {0, 7, 5, 3001},
        {0, 3, 2000, 40},   {0, 700, 3, 64},  {2, 1, 67, 129},    {2, 129, 1, 67},
        {5, 33, 34, 35},    {0, 520, 530, 9}, {0, 64, 64, 64},    {0, 130, 1100, 20},
        {0, 40, 48, 20000}, {3, 1, 1, 5},     {0, 1030, 300, 16}, {0, 300, 300, 2100}};
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        for (int k = 0; k < 4; k++) {
            if (TEST_THREAD_SANITIZER && k != (int)i % 4) continue;
            product c = {shape[i][0], shape[i][1], shape[i][2], shape[i][3], GN_F32, GN_F32, k == 3};
            if (k == 2) c.out = GN_F16;
            check(g, &c, &followers[k == 0 ? 3 : k == 1 ? 4 : draw(FOLLOWERS)], true);
        }
}

static void test_vectors(void **state) {
    gn_context *g = (gn_context *)*state;
    GN_SCOPE(g) {
        gn_array *a = values(g, GN_F32, GN_SHAPE(5, 7)), *x = values(g, GN_F32, GN_SHAPE(7));
        gn_array *y = values(g, GN_F32, GN_SHAPE(5)), *b = values(g, GN_F32, GN_SHAPE(3, 7, 4));
        gn_array *r = values(g, GN_F32, GN_SHAPE(3, 4));
        gn_array *sums = gn_full(g, GN_F64, GN_SHAPE(5), 7.0);
        gn_array *have = gn_sub(gn_mul_s(gn_matmul(a, x), 2.0), y);
        assert_int_equal(count_jobs(g, have), 100);
        expect_near(have, gn_sub(gn_mul_s(gn_matmul(wide(a), wide(x)), 2.0), wide(y)), sums, 7,
                    0x1p-24, "matrix by vector");
        have = gn_mul(gn_matmul(y, a), x);
        assert_int_equal(count_jobs(g, have), 100);
        expect_near(have, gn_mul(gn_matmul(wide(y), wide(a)), wide(x)),
                    gn_full(g, GN_F64, GN_SHAPE(7), 5.0), 5, 0x1p-24, "vector by matrix");
        have = gn_sub(gn_matmul(x, b), r);
        assert_int_equal(count_jobs(g, have), 100);
        expect_near(have, gn_sub(gn_matmul(wide(x), wide(b)), wide(r)),
                    gn_full(g, GN_F64, GN_SHAPE(3, 4), 7.0), 7, 0x1p-24, "vector by matrices");
        have = gn_add_s(gn_matmul(x, x), 1.0);
        assert_int_equal(count_jobs(g, have), 100);
        expect_near(have, gn_add_s(gn_matmul(wide(x), wide(x)), 1.0), gn_full(g, GN_F64, GN_SHAPE(), 7.0),
                    7, 0x1p-24, "vector by vector");
        // More dimensions than the product has; with more elements the product is repeated.
        have = gn_add(gn_matmul(a, x), gn_reshape(y, GN_SHAPE(1, 5)));
        assert_int_equal(count_jobs(g, have), 100);
        expect_shape(have, 1, 5);
        have = gn_add(gn_matmul(a, x), gn_reshape(y, GN_SHAPE(5, 1)));
        expect_shape(have, 5, 5);
        assert_int_equal(count_jobs(g, have), 1);
    }
}

// The product of two float16 matrices is not rounded before what follows it.
static void test_float32_inside(void **state) {
    gn_context *g = (gn_context *)*state;
    GN_SCOPE(g) {
        gn_array *a = values(g, GN_F16, GN_SHAPE(9, 11)), *b = values(g, GN_F16, GN_SHAPE(11, 13));
        gn_array *y = gn_cast(gn_matmul(a, b), GN_F32);
        assert_int_equal(count_jobs(g, y), 100);
        expect_near(y, gn_matmul(wide(a), wide(b)), gn_full(g, GN_F64, GN_SHAPE(9, 13), 11.0), 11,
                    0x1p-24, "float32 of float16");
        y = gn_sub_s(gn_matmul(gn_full(g, GN_F16, GN_SHAPE(1, 4), 16.0), // 1024.25
                               gn_array_from(g, GN_F16, GN_SHAPE(4, 1),
                                             (const uint16_t[]){0x5000, 0x4c00, 0x4c00, 0x2400})),
                     1024.0);
        expect_values(y, 0.25);
    }
}

static void test_special_values(void **state) {
    gn_context *g = (gn_context *)*state;
    GN_SCOPE(g) {
        const float x[] = {NAN, 0, INFINITY, 0, -INFINITY, 0, -2, 0, 3, 0};
        gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(5, 2), x);
        gn_array *e = gn_array_from(g, GN_F32, GN_SHAPE(2, 1), (const float[]){0, 1});
        expect_values(gn_relu(gn_matmul(a, e)), NAN, NAN, NAN, 0, 0); // infinity times 0
        a = gn_array_from(g, GN_F32, GN_SHAPE(5, 1),
                          (const float[]){NAN, INFINITY, -INFINITY, -2, 3});
        e = gn_ones(g, GN_F32, GN_SHAPE(1, 1));
        expect_values(gn_relu(gn_matmul(a, e)), NAN, INFINITY, 0, 0, 3);
        expect_values(gn_mul_s(gn_matmul(a, e), -2.0), NAN, -INFINITY, INFINITY, 4, -6);
        expect_values(gn_where(gn_gt_s(gn_matmul(a, e), 0.0), e, gn_zeros_like(e)), 0, 1, 0, 0, 1);
        expect_values(gn_cast(gn_mul_s(gn_matmul(a, e), 1e5), GN_F16), NAN, INFINITY, -INFINITY,
                      -INFINITY, INFINITY);
        gn_array *full = gn_array_from(g, GN_F32, GN_SHAPE(5, 1),
                                       (const float[]){1, -INFINITY, 1, NAN, INFINITY});
        expect_values(gn_add(gn_matmul(a, e), full), NAN, NAN, -INFINITY, NAN, INFINITY);
    }
}

// The kernels that run programs at their stores: compiled when asked for, even on a CPU's device.
static void test_kernels(void **state) {
    (void)state;
    if (!test_on_vulkan()) return;
    static const product cases[] = {
        {0, 37, 70, 45, GN_F32, GN_F32, false},  {3, 33, 35, 20, GN_F32, GN_F16, true},
        {0, 40, 33, 3000, GN_F32, GN_F32, false}, {0, 1, 301, 97, GN_F32, GN_F32, false},
        {0, 301, 1, 97, GN_F32, GN_BF16, true},  {2, 1, 67, 33, GN_F32, GN_F32, false},
        {0, 48, 64, 64, GN_F16, GN_F16, false},  {0, 35, 37, 39, GN_BF16, GN_F32, false},
    };
    gn_options o = test_options();
    o.vulkan_flags |= GN_VULKAN_NO_ASYNC_PIPELINES;
    gn_context *g = test_open_with(&o);
    GN_SCOPE(g) {
        for (int i = 0; i < (int)(sizeof cases / sizeof cases[0]); i++)
            for (int k = 0; k < 3; k++) check(g, &cases[i], &followers[3 + (5 * i + 3 * k) % 16], true);
        // One kernel, and no pass over memory after it.
        gn_array *a = values(g, GN_F32, GN_SHAPE(40, 30)), *b = values(g, GN_F32, GN_SHAPE(30, 44));
        gn_array *y = gn_sub(gn_mul_s(gn_matmul(a, b), 0.5), values(g, GN_F32, GN_SHAPE(40, 44)));
        count_jobs(g, y);
        size_t size;
        char *text = (char *)test_read_file("epilogue.json", &size);
        bool addresses = (o.vulkan_flags & GN_VULKAN_NO_ADDRESSES) == 0;
        bool interprets = (o.vulkan_flags & GN_VULKAN_NO_SPECIALIZATION) != 0;
        if (!test_on_webgpu()) assert_non_null(strstr(text, "\"name\":\"matmul_")); // which has no time stamps
        if (addresses && !interprets) assert_null(strstr(text, "\"name\":\"map_"));
        free(text);
    }
    assert_int_equal(gn_status_get(g), GN_OK);
    test_close(g);
}

// ---- what is fused and what is not

static void test_counts(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = values(g, GN_F32, GN_SHAPE(20, 30)), *b = values(g, GN_F32, GN_SHAPE(30, 40));
    gn_array *c = values(g, GN_F32, GN_SHAPE(20, 40)), *row = values(g, GN_F32, GN_SHAPE(40));
    // Nothing happens before a value is needed.
    gn_profile_begin(g);
    gn_array *p = gn_matmul(a, b);
    assert_int_equal(jobs(g, "matmul"), 0);
    assert_int_equal(count_jobs(g, p), 100);
    // Held by the caller: computed as it is, once.
    p = gn_retain(gn_matmul(a, b));
    gn_array *y = gn_relu(p);
    assert_int_equal(count_jobs(g, y), 101);
    assert_int_equal(count_jobs(g, p), 0);
    gn_release(p);
    // Two readers: once as well.
    p = gn_matmul(a, b);
    gn_array *z = gn_mul_s(p, 2.0);
    y = gn_relu(p);
    assert_int_equal(count_jobs(g, y), 101);
    assert_int_equal(count_jobs(g, z), 1);
    // A part of the chain with another reader takes the rest into its store.
    p = gn_add(gn_matmul(a, b), row);
    z = gn_mul_s(p, 2.0);
    y = gn_tanh(p);
    assert_int_equal(count_jobs(g, y), 101);
    assert_int_equal(count_jobs(g, p), 0);
    assert_int_equal(count_jobs(g, z), 1);
    // Two products in one chain: the deeper one takes the other.
    y = gn_add(gn_matmul(c, gn_transpose(b)), gn_matmul(a, gn_eye(g, GN_F32, 30, 30, 0)));
    assert_int_equal(count_jobs(g, y), 200);
    // A reduction reads what the product wrote.
    y = gn_sum(gn_square(gn_matmul(a, b)), GN_ALL);
    gn_profile_begin(g);
    y = gn_sum(gn_square(gn_sub(gn_matmul(a, b), c)), GN_ALL);
    assert_int_equal(jobs(g, "elementwise"), 0);
    // Chains that are too long still come out right.
    y = gn_matmul(a, b);
    gn_array *w = gn_matmul(wide(a), wide(b));
    for (int i = 0; i < 40; i++) {
        y = gn_add(gn_mul_s(y, 0.5), c);
        w = gn_add(gn_mul_s(w, 0.5), wide(c));
    }
    expect_near(y, w, gn_full(g, GN_F64, GN_SHAPE(20, 40), 30.0), 30, 0x1p-22, "long chain");
    // No float result, a wide one, a result that several arrays share.
    expect_near(gn_gt_s(gn_matmul(a, b), 0.0), wide(gn_gt_s(gn_matmul(wide(a), wide(b)), 0.0)),
                gn_zeros(g, GN_F64, GN_SHAPE(20, 40)), 30, 0.0, "truth");
    gn_array *both[2];
    both[0] = gn_relu(gn_matmul(a, b));
    both[1] = gn_neg(gn_matmul(a, b));
    gn_profile_begin(g);
    assert_int_equal(gn_eval_all(both, 2), GN_OK);
    assert_int_equal(jobs(g, "elementwise"), 0);
}

// A product that was asked for after its store had taken what followed is computed again, but only the
// first time that this happens.
static void test_asked_again(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = values(g, GN_F32, GN_SHAPE(20, 31)), *b = values(g, GN_F32, GN_SHAPE(31, 40));
    for (int i = 0; i < 3; i++) {
        gn_array *p = gn_matmul(a, b), *y = gn_relu(p);
        assert_int_equal(count_jobs(g, y), i == 0 ? 100 : 101);
        assert_int_equal(count_jobs(g, p), i == 0 ? 100 : 0);
        expect_near(p, gn_matmul(wide(a), wide(b)), gn_full(g, GN_F64, GN_SHAPE(20, 40), 31.0), 31,
                    0x1p-24, "asked again");
    }
}

// Pending work sees the operands as they were.
static void test_overwritten(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_eval(gn_ones(g, GN_F32, GN_SHAPE(2, 3)));
    gn_array *b = gn_eval(gn_ones(g, GN_F32, GN_SHAPE(3, 2)));
    gn_array *r = gn_eval(gn_ones(g, GN_F32, GN_SHAPE(2)));
    gn_array *y = gn_add(gn_matmul(a, b), r), *z = gn_mul_s(gn_matmul(a, b), 2.0);
    assert_int_equal(gn_write(a, (const float[]){5, 5, 5, 5, 5, 5}, 24), GN_OK);
    assert_int_equal(gn_write(r, (const float[]){7, 7}, 8), GN_OK);
    expect_values(y, 4, 4, 4, 4);
    expect_values(z, 6, 6, 6, 6);
    expect_values(gn_add(gn_matmul(a, b), r), 22, 22, 22, 22);
}

static void chains(gn_context *g) {
    GN_SCOPE(g) {
        gn_array *a = gn_rand(g, GN_F32, GN_SHAPE(33, 40)), *b = gn_rand(g, GN_F32, GN_SHAPE(40, 50));
        gn_array *r = gn_rand(g, GN_F32, GN_SHAPE(50)), *c = gn_rand(g, GN_F32, GN_SHAPE(33, 50));
        gn_eval(gn_relu(gn_linear(a, b, r)));
        gn_eval(gn_add(gn_mul_s(gn_matmul(a, b), 0.5), c));
        gn_eval(gn_cast(gn_tanh(gn_matmul(a, b)), GN_F16));
        gn_eval(gn_mul(gn_matmul(a, b), gn_matmul(c, gn_eye(g, GN_F32, 50, 50, 0))));
    }
}

static void training(gn_context *g) {
    GN_SCOPE(g) {
        gn_array *x = gn_rand(g, GN_F32, GN_SHAPE(12, 20));
        gn_array *w = gn_requires_grad(gn_rand(g, GN_F32, GN_SHAPE(20, 16)), true);
        gn_array *v = gn_requires_grad(gn_rand(g, GN_F32, GN_SHAPE(16, 10)), true);
        gn_array *r = gn_requires_grad(gn_rand(g, GN_F32, GN_SHAPE(16)), true);
        gn_array *y = gn_linear(gn_relu(gn_linear(x, w, r)), v, NULL);
        if (y != NULL) gn_backward(gn_mean(gn_square(y), GN_ALL));
        gn_eval(gn_grad(w));
    }
}

static void test_out_of_memory(void **state) {
    (void)state;
    test_most_allocations(chains);
    test_most_allocations(training);
}

// ---- training

enum { SMOOTH = 4, NETWORKS = 8 }; // the first ones have derivatives everywhere

static gn_array *network(gn_context *g, gn_array *const *in, int count, void *user) {
    (void)g, (void)count;
    int kind = *(int *)user;
    gn_array *h = gn_linear(in[0], in[1], in[2]), *full = in[5];
    switch (kind) {
    case 0: h = gn_gelu(h); break;
    case 1: h = gn_mul(gn_sigmoid(h), full); break;
    case 2: h = gn_add(gn_mul_s(gn_tanh(h), 0.5), full); break;
    case 3: h = gn_silu(gn_sub(full, h)); break;
    case 4: h = gn_relu(h); break;
    case 5: h = gn_mul(h, gn_relu(h)); break;
    case 6: h = gn_leaky_relu(h, 0.1); break;
    default: h = gn_maximum(gn_square(h), full); break;
    }
    gn_array *y = gn_linear(h, in[3], in[4]);
    gn_array *z = gn_add(y, gn_matmul(in[0], in[6]));
    z = kind < SMOOTH ? gn_tanh(z) : gn_relu(z);
    return gn_mean(gn_square(gn_add(z, gn_sigmoid(y))), GN_ALL);
}

static void test_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t shape[7][2] = {{5, 7}, {7, 6}, {6, 0}, {6, 4}, {4, 0}, {5, 6}, {7, 4}};
    for (int kind = 0; kind < NETWORKS; kind++)
        GN_SCOPE(g) {
            gn_array *in[2][7], *grad[2][7];
            for (int i = 0; i < 7; i++) {
                const int64_t *s = shape[i];
                gn_array *a = values(g, GN_F32, s[1] > 0 ? GN_SHAPE(s[0], s[1]) : GN_SHAPE(s[0]));
                in[0][i] = gn_requires_grad(a, true);
                in[1][i] = gn_requires_grad(gn_eval(wide(gn_detach(a))), true);
            }
            // As in float64, where no product is fused; and by differences.
            for (int t = 0; t < 2; t++)
                assert_int_equal(
                    gn_gradients(network(gn_context_of(in[t][0]), in[t], 7, &kind), in[t], 7, false, grad[t]), GN_OK);
            for (int i = 0; i < 7; i++) {
                gn_array *off = gn_max(gn_abs(gn_sub(wide(grad[0][i]), grad[1][i])), GN_ALL);
                if (!(gn_item(off) <= 2e-5))
                    fail_msg("network %d: gradient %d is off by %g", kind, i, gn_item(off));
            }
            if (kind >= SMOOTH || (test_on_vulkan() && kind > 0)) continue;
            double error = gn_gradcheck(network, in[0], 7, 1e-2, &kind);
            if (!(error < 1e-2)) fail_msg("network %d: gn_gradcheck is off by %g", kind, error);
        }
}

// Gradients against those of float64, where no product is fused.
static void test_gradients_wide(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t size[] = {1, 3, 17, 64, 130};
    for (int round = 0; round < 16; round++)
        GN_SCOPE(g) {
            int64_t n = size[draw(5)], in = size[draw(5)], mid = size[draw(5)], out = size[draw(5)];
            gn_array *x[6], *grad[2][5];
            x[0] = values(g, GN_F32, draw(2) ? GN_SHAPE(n, in) : GN_SHAPE(2, n, in));
            x[1] = values(g, GN_F32, GN_SHAPE(in, mid));
            x[2] = values(g, GN_F32, GN_SHAPE(mid));
            x[3] = values(g, GN_F32, GN_SHAPE(mid, out));
            x[4] = values(g, GN_F32, GN_SHAPE(out));
            for (int t = 0; t < 2; t++) {
                gn_array *p[5];
                for (int i = 0; i < 5; i++)
                    p[i] = gn_requires_grad(gn_eval(t == 0 ? gn_cast(x[i], GN_F32) : wide(x[i])), true);
                gn_array *y = gn_linear(gn_relu(gn_linear(p[0], p[1], p[2])), p[3], p[4]);
                assert_int_equal(
                    gn_gradients(gn_sum(gn_square(y), GN_ALL), p, 5, false, grad[t]), GN_OK);
            }
            for (int i = 0; i < 5; i++) {
                double scale = gn_item(gn_max(gn_abs(grad[1][i]), GN_ALL)) + 1.0;
                double off =
                    gn_item(gn_max(gn_abs(gn_sub(wide(grad[0][i]), grad[1][i])), GN_ALL));
                if (!(off <= 1e-4 * scale))
                    fail_msg("gradient %d of %lld-%lld-%lld, batch %lld: off by %g of %g", i,
                             (long long)in, (long long)mid, (long long)out, (long long)n, off,
                             scale);
            }
        }
}

// The network of examples/mnist.c: jobs of one training step.
static void test_training_jobs(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t width[] = {784, 256, 128, 10};
    gn_array *p[6];
    for (int i = 0; i < 3; i++) {
        p[2 * i] = gn_he_normal(g, GN_F32, GN_SHAPE(width[i], width[i + 1]));
        p[2 * i + 1] = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(width[i + 1])), true);
    }
    gn_optimizer *opt = gn_adam(p, 6, NULL);
    gn_array *labels = gn_eval(gn_randint(g, GN_I32, GN_SHAPE(128), 0, 10));
    gn_array *images = gn_eval(gn_randint(g, GN_U8, GN_SHAPE(128, 784), 0, 256));
    for (int step = 0; step < 3; step++) {
        if (step == 2) gn_profile_begin(g);
        GN_SCOPE(g) {
            gn_array *x = gn_mul_s(gn_cast(images, GN_F32), 1.0 / 255.0);
            for (int i = 0; i < 3; i++) {
                x = gn_linear(x, p[2 * i], p[2 * i + 1]);
                if (i < 2) x = gn_relu(x);
            }
            gn_array *loss = gn_cross_entropy(x, labels);
            gn_zero_grads(opt);
            gn_backward(loss);
            gn_step(opt);
            gn_eval(loss);
        }
    }
    gn_profile_end(g, "training.json");
    size_t size;
    char *text = (char *)test_read_file("training.json", &size);
    int count[4] = {0, 0, 0, 0};
    static const char *const name[] = {"matmul", "elementwise", "reduce", "softmax"};
    for (int i = 0; i < 4; i++) {
        char mark[64];
        snprintf(mark, sizeof mark, "\"name\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":1", name[i]);
        for (const char *at = text; (at = strstr(at, mark)) != NULL; at++) count[i]++;
    }
    free(text);
    printf("a training step: %d products, %d elementwise, %d reductions, %d softmax\n", count[0],
           count[1], count[2], count[3]);
    assert_int_equal(count[0], 8); // three layers forward, three weights and two inputs backward
    // The images' conversion, two for the loss, of which a CPU looks at the labels otherwise, six of the optimizer; the loss's mean.
    // WebGPU's products hold no programs on a GPU, where relu takes one more.
    if (!test_on_webgpu()) assert_int_equal(count[1], test_on_vulkan() ? 9 : 8);
    assert_int_equal(count[2], 1);
    assert_int_equal(count[3], 1);
    gn_optimizer_free(opt);
}

// ---- the gradients of a layer's weights and bias

typedef struct layer {
    int64_t rows, in, out;
    gn_dtype t;
    bool turned;  // the gradient that comes in is a transposed view
    int special;  // 1: infinities and NaN in it
} layer;

// Whether the profile of `g`, which this ends, has a kernel whose name begins so.
static bool kernel_ran(gn_context *g, const char *name) {
    char mark[64];
    size_t size;
    assert_int_equal(gn_profile_end(g, "epilogue.json"), GN_OK);
    char *text = (char *)test_read_file("epilogue.json", &size);
    snprintf(mark, sizeof mark, "\"name\":\"%s_", name);
    bool found = strstr(text, mark) != NULL;
    free(text);
    return found;
}

// Gradients of sum(y * c) for y = x w + b, by float64 from the same numbers.
static void check_layer(gn_context *g, const layer *l, bool one_kernel) {
    GN_SCOPE(g) {
        gn_array *x = values(g, l->t, GN_SHAPE(l->rows, l->in)), *c = values(g, l->t, GN_SHAPE(l->rows, l->out));
        if (l->special != 0) {
            float *v = (float *)malloc((size_t)(l->rows * l->out) * sizeof(float));
            gn_read(gn_cast(c, GN_F32), v, (size_t)(l->rows * l->out) * sizeof(float));
            v[0] = INFINITY;
            v[(l->rows - 1) * l->out + 1] = -INFINITY; // in the last row
            v[(l->rows - 1) * l->out + 2] = NAN;
            v[(l->rows / 2) * l->out + 3] = INFINITY;
            v[(l->rows - 1) * l->out + 3] = -INFINITY;
            c = gn_eval(gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(l->rows, l->out), v), l->t));
            free(v);
        }
        gn_array *p[3], *grad[3];
        p[0] = gn_requires_grad(x, true);
        p[1] = gn_requires_grad(values(g, l->t, GN_SHAPE(l->in, l->out)), true);
        p[2] = gn_requires_grad(values(g, l->t, GN_SHAPE(l->out)), true);
        gn_array *y = gn_linear(p[0], p[1], p[2]);
        gn_array *loss = l->turned ? gn_sum(gn_mul(gn_transpose(y), gn_eval(gn_copy(gn_transpose(c)))), GN_ALL)
                                   : gn_sum(gn_mul(y, c), GN_ALL);
        gn_eval(loss);
        gn_profile_begin(g);
        assert_int_equal(gn_gradients(loss, p + 1, 2, false, grad + 1), GN_OK);
        gn_eval(grad[1]);
        gn_eval(grad[2]);
        gn_sync(g);
        bool reduced = kernel_ran(g, "reduce");
        if (one_kernel && reduced) fail_msg("%lld x %lld x %lld: a reduction", (long long)l->rows, (long long)l->in, (long long)l->out);
        char what[100];
        snprintf(what, sizeof what, "layer of %lld, %lld to %lld, %s%s", (long long)l->rows, (long long)l->in,
                 (long long)l->out, gn_dtype_name(l->t), l->turned ? ", turned" : "");
        assert_int_equal(gn_dtype_of(grad[1]), l->t);
        assert_int_equal(gn_dtype_of(grad[2]), l->t);
        gn_array *sum = gn_sum(wide(c), 0), *some = gn_sum(gn_abs(wide(c)), 0);
        if (l->special == 0) {
            expect_near(grad[2], sum, some, l->rows, unit_of(l->t), what);
            gn_array *w = gn_matmul(gn_transpose(wide(gn_detach(x))), wide(c));
            expect_near(grad[1], w, gn_matmul(gn_transpose(gn_abs(wide(gn_detach(x)))), gn_abs(wide(c))),
                        l->rows, unit_of(l->t), what);
        }
        double have[64], want[64];
        int64_t n = l->special != 0 ? l->out : 0;
        if (n > 0) {
            assert_int_equal(gn_read(gn_cast(grad[2], GN_F64), have, (size_t)n * 8), GN_OK);
            assert_int_equal(gn_read(sum, want, (size_t)n * 8), GN_OK);
        }
        for (int64_t i = 0; i < n; i++)
            if (!(fabs(have[i] - want[i]) <= 0.01 * (double)l->rows) && have[i] != want[i] &&
                !(isnan(have[i]) && isnan(want[i])))
                fail_msg("%s: sum %lld is %g, not %g", what, (long long)i, have[i], want[i]);
    }
}

static void test_layer_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    static const gn_dtype all[] = {GN_F32, GN_F16, GN_BF16};
    static const int64_t shape[][3] = {{5, 7, 6},      {64, 32, 32},  {33, 65, 67}, {1, 40, 50},  {2, 3, 4},
                                       {100, 1, 20},   {100, 20, 1},  {3000, 9, 35}, {700, 70, 130}, {128, 96, 200},
                                       {20, 300, 300}, {1, 1, 1},     {4096, 32, 64}};
    for (int t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
            for (int turned = 0; turned < 2; turned++) {
                layer l = {shape[i][0], shape[i][1], shape[i][2], all[t], turned == 1, 0};
                // One row, column or term has kernels that make no sums beside the product.
                bool one = l.rows > 1 && l.in > 1 && l.out > 1;
                one = one && !(test_options().vulkan_flags & GN_VULKAN_NO_ADDRESSES);
                check_layer(g, &l, one);
            }
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 6; i++) {
            layer l = {i < 2 ? 64 : i < 4 ? 37 : 2048, 8, 40, all[t], i % 2 == 1, 1};
            check_layer(g, &l, false);
        }
}

// A layer without inputs: its bias still learns.
static void test_no_features(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *w = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(0, 5)), true),
             *b = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(5)), true);
    gn_array *y = gn_linear(gn_zeros(g, GN_F32, GN_SHAPE(3, 0)), w, b);
    assert_int_equal(gn_backward(gn_sum(y, GN_ALL)), GN_OK);
    expect_values(gn_grad(b), 3, 3, 3, 3, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_followers),      GN_TEST(test_dtypes),
        GN_TEST(test_sizes),          GN_TEST(test_shapes),
        GN_TEST(test_vectors),        GN_TEST(test_float32_inside),
        GN_TEST(test_special_values), cmocka_unit_test(test_kernels),
        GN_TEST(test_counts),
        GN_TEST(test_asked_again),    GN_TEST(test_overwritten),
        cmocka_unit_test(test_out_of_memory),
        GN_TEST(test_gradients),      GN_TEST(test_gradients_wide),
        GN_TEST(test_training_jobs),  GN_TEST(test_no_features),
        GN_TEST(test_layer_gradients),
    };
    return test_run(tests);
}
