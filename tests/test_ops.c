// Every op on every dtype against values from NumPy, through contiguous, strided, reversed and transposed
// operands; and expressions computed at once against the same ones computed step by step.
//
//   GN_TEST_OP=gn_exp    only this op      GN_TEST_CASES=file    cases made before
//   GN_TEST_ALL=1        goes on after a failure and prints the worst error of every op

#include "test.h"

#ifndef GNI_ROOMS // the op table is no part of what users see
#define GNI_ROOMS
#endif
#include "../tools/gpunum/core/optable.h"

// ---- the public functions by name, from the op tables

typedef struct unary_entry {
    const char *name;
    gn_array *(*fn)(gn_array *a);
} unary_entry;
typedef struct binary_entry {
    const char *name;
    gn_array *(*fn)(gn_array *a, gn_array *b);
} binary_entry;
typedef struct scalar_entry {
    const char *name;
    gn_array *(*fn)(gn_array *a, double b);
} scalar_entry;
typedef struct reduce_entry {
    const char *name;
    gn_array *(*fn)(gn_array *a, gn_axes axes);
} reduce_entry;
typedef struct axis_entry {
    const char *name;
    gn_array *(*fn)(gn_array *a, int axis);
} axis_entry;

static const unary_entry unary[] = {
#define GN_X(fn, NAME, F, D, gF, da) {#fn, fn},
    GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, D, da) {#fn, fn},
        GNI_UNARY_RARE(GN_X)
#undef GN_X
        {"gn_invert", gn_invert},
#define GN_X(fn, NAME, F, D, I, gF, gI, da) {#fn, fn},
        GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) {#fn, fn},
            GNI_UNARY_BOOL(GN_X)
#undef GN_X
};
#define BINARY_TABLES(ENTRY)        \
    GNI_BINARY_FLOAT(ENTRY##_FLOAT) \
    GNI_BINARY_ANY(ENTRY##_ANY) GNI_COMPARE(ENTRY##_COMPARE) GNI_BINARY_INT(ENTRY##_INT)
#define ARRAY_FLOAT(fn, NAME, F, D, gF, da, db)       {#fn, fn},
#define ARRAY_ANY(fn, NAME, F, D, I, gF, gI, da, db)  {#fn, fn},
#define ARRAY_COMPARE(fn, NAME, F, D, I, gF, gI)      {#fn, fn},
#define ARRAY_INT(fn, NAME, I, gI)                    {#fn, fn},
#define SCALAR_FLOAT(fn, NAME, F, D, gF, da, db)      {#fn "_s", fn##_s},
#define SCALAR_ANY(fn, NAME, F, D, I, gF, gI, da, db) {#fn "_s", fn##_s},
#define SCALAR_COMPARE(fn, NAME, F, D, I, gF, gI)     {#fn "_s", fn##_s},
#define SCALAR_INT(fn, NAME, I, gI)                   {#fn "_s", fn##_s},
static const binary_entry binary[] = {BINARY_TABLES(ARRAY){"gn_matmul", gn_matmul}, {"gn_nextafter", gn_nextafter}};
static const scalar_entry scalar[] = {BINARY_TABLES(SCALAR){"gn_rsub_s", gn_rsub_s},
                                      {"gn_rdiv_s", gn_rdiv_s},
                                      {"gn_rpow_s", gn_rpow_s},
                                      {"gn_leaky_relu", gn_leaky_relu},
                                      {"gn_elu", gn_elu}};
static const reduce_entry reduction[] = {
    {"gn_sum", gn_sum},   {"gn_prod", gn_prod},
    {"gn_mean", gn_mean}, {"gn_min", gn_min},
    {"gn_max", gn_max},   {"gn_any", gn_any},
    {"gn_all", gn_all},   {"gn_count_nonzero", gn_count_nonzero},
    {"gn_norm", gn_norm}, {"gn_logsumexp", gn_logsumexp}};
static const axis_entry along[] = {{"gn_argmin", gn_argmin},
                                   {"gn_argmax", gn_argmax},
                                   {"gn_softmax", gn_softmax},
                                   {"gn_log_softmax", gn_log_softmax}};

enum { MAX_OPERANDS = 3, MAX_NUMBERS = 4 };
enum { SUBNORMAL = 1, ZERO_SIGN = 2, MORE = 4 };

typedef struct op_case {
    char op[32];
    int flags, n_numbers, n_in;
    double number[MAX_NUMBERS];
    test_array in[MAX_OPERANDS];
    bool refused;
    gn_dtype result;
    test_array expected; // float64, or int64
    double ulp;
    const unsigned char *slack; // doubles, or NULL
} op_case;

#define FIND_AND_RETURN(table, ...)                             \
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) \
        if (strcmp(table[i].name, c->op) == 0) return table[i].fn(__VA_ARGS__);

static gn_array *call(const op_case *c, gn_array **in) {
    const double *p = c->number;
    if (c->n_numbers == 0) {
        if (c->n_in == 1) FIND_AND_RETURN(unary, in[0])
        if (c->n_in == 2) FIND_AND_RETURN(binary, in[0], in[1])
        if (strcmp(c->op, "gn_where") == 0) return gn_where(in[0], in[1], in[2]);
        if (strcmp(c->op, "gn_fma") == 0) return gn_fma(in[0], in[1], in[2]);
        if (strcmp(c->op, "gn_lerp") == 0) return gn_lerp(in[0], in[1], in[2]);
    }
    if (c->n_numbers == 1) {
        FIND_AND_RETURN(scalar, in[0], p[0])
        FIND_AND_RETURN(reduction, in[0], axes_of_bits((uint32_t)p[0]))
        FIND_AND_RETURN(along, in[0], (int)p[0])
        if (strcmp(c->op, "gn_cast") == 0) return gn_cast(in[0], (gn_dtype)(int)p[0]);
    }
    if (c->n_numbers == 2) {
        if (strcmp(c->op, "gn_clamp") == 0) return gn_clamp(in[0], p[0], p[1]);
        if (strcmp(c->op, "gn_var") == 0) return gn_var(in[0], axes_of_bits((uint32_t)p[0]), (int)p[1]);
        if (strcmp(c->op, "gn_std") == 0) return gn_std(in[0], axes_of_bits((uint32_t)p[0]), (int)p[1]);
    }
    fail_msg("no function %s with %d operands and %d numbers", c->op, c->n_in, c->n_numbers);
    return NULL;
}

// ---- operands in different layouts, the same values in each

enum { CONTIGUOUS, STRIDED, REVERSED, TRANSPOSED, LAYOUTS };
static const char *const layout_name[] = {"contiguous", "strided", "reversed", "transposed"};

static gn_array *operand(gn_context *g, const test_array *a, int layout) {
    gn_array *x = gn_array_from(g, a->t, a->s, a->data);
    if (layout == CONTIGUOUS || a->s.rank == 0) return x;
    if (layout == STRIDED && a->s.rank < GN_MAX_RANK) {
        gn_array *pair[2];
        pair[0] = pair[1] = x;
        return gn_index(gn_stack(pair, 2, -1), "..., 1");
    }
    if (layout == REVERSED) return gn_flip(gn_copy(gn_flip(x, GN_ALL)), GN_ALL);
    return gn_transpose(gn_copy(gn_transpose(x)));
}

// ---- comparison

TEST_UNWATCHED static void float_limits(gn_dtype t, int *digits, int *lowest, double *most) {
    *digits = t == GN_F64 ? 52 : t == GN_F32 ? 23 : t == GN_F16 ? 10 : 7;
    *lowest = t == GN_F64 ? -1022 : t == GN_F16 ? -14 : -126;
    *most = t == GN_F64   ? 1.7976931348623157e308
            : t == GN_F32 ? 3.4028234663852886e38
            : t == GN_F16 ? 65504
                          : 3.3895313892515355e38;
}

// How far y is from e in units of the last place, less the slack; 0 where it is as near as can be.
// Infinite where NaN, infinity or a sign is wrong.
TEST_UNWATCHED static double float_error(gn_dtype t, double y, double e, double slack, int flags) {
    int digits, lowest, exponent;
    double most;
    float_limits(t, &digits, &lowest, &most);
    if (e != e) return y != y ? 0 : INFINITY;
    if (y != y) return INFINITY;
    if (e == 0.0 && y == 0.0)
        return (flags & ZERO_SIGN) && !signbit(e) != !signbit(y) ? INFINITY : 0;
    if (y == e) return 0;
    // Past the largest number the result is infinite; just below it an error may make it so.
    double last = ldexp(1.0, (t == GN_F64 ? 1023 : t == GN_F16 ? 15 : 127) - digits);
    if (isinf(e) || isinf(y)) {
        if (isinf(e) && fabs(e) > 0 && isinf(y)) return INFINITY; // of the other sign
        double finite = isinf(e) ? y : e;
        if ((y < 0) != (e < 0)) return INFINITY;
        if (isinf(e) && t == GN_F64)
            return INFINITY; // float64 expectations cannot be beyond float64
        return isinf(e) ? INFINITY : fmax(0, (most + last / 2 - fabs(finite) - slack) / last);
    }
    frexp(e, &exponent);
    exponent = exponent - 1 < lowest ? lowest : exponent - 1;
    double unit = ldexp(1.0, exponent - digits);
    if ((flags & SUBNORMAL) == 0 && test_on_vulkan() && fabs(e) < ldexp(1.0, lowest))
        slack += ldexp(1.0, lowest);
    return fmax(0, fabs(y - e) - slack) / unit;
}

typedef struct worst_error {
    char op[32];
    gn_dtype t;
    double ulp, bound;
} worst_error;
static worst_error worst[1024];
static int worst_count;

static void note_error(const op_case *c, double error) {
    int i = 0;
    while (i < worst_count && (strcmp(worst[i].op, c->op) != 0 || worst[i].t != c->result)) i++;
    if (i == worst_count && i < (int)(sizeof worst / sizeof worst[0])) {
        worst_count++;
        memcpy(worst[i].op, c->op, sizeof c->op);
        worst[i].t = c->result;
        worst[i].ulp = 0;
    }
    if (i == worst_count) return;
    worst[i].ulp = fmax(worst[i].ulp, error);
    worst[i].bound = c->ulp;
}

static bool is_float(gn_dtype t) {
    return t == GN_F32 || t == GN_F16 || t == GN_BF16 || t == GN_F64;
}

TEST_UNWATCHED static int64_t integer_at(gn_dtype t, const void *data, int64_t i) {
    int64_t v;
    if (t != GN_I64 && t != GN_U64) return (int64_t)test_element(t, data, i);
    memcpy(&v, (const char *)data + 8 * i, sizeof v);
    return v;
}

TEST_UNWATCHED static int64_t int64_at(const unsigned char *data, int64_t i) {
    int64_t v;
    memcpy(&v, data + 8 * i, sizeof v);
    return v;
}

TEST_UNWATCHED static double double_at(const unsigned char *data, int64_t i) {
    double v;
    memcpy(&v, data + 8 * i, sizeof v);
    return v;
}

// WebGPU's arithmetic takes subnormal numbers for 0 where a device likes to.
static bool flushed(const op_case *c, int64_t i, double result, double expected) {
    const double least = 1.17549435e-38;
    if (!test_on_webgpu()) return false;
    for (int k = 0; k < c->n_in; k++) {
        if (c->in[k].n != c->expected.n || !is_float(c->in[k].t)) continue;
        double x = test_element(c->in[k].t, c->in[k].data, i);
        if (x != 0 && fabs(x) < least) return true;
    }
    return result == 0 && fabs(expected) < least;
}

// Prints what is wrong; true if nothing is.
TEST_UNWATCHED static bool check(const op_case *c, gn_array *y) {
    gn_shape s = gn_shape_of(y);
    bool same = s.rank == c->expected.s.rank && gn_dtype_of(y) == c->result;
    for (int i = 0; same && i < s.rank; i++) same = s.dim[i] == c->expected.s.dim[i];
    if (!same) {
        print_error("  result is %s of rank %d, expected %s of rank %d, or another shape\n",
                    gn_dtype_name(gn_dtype_of(y)), s.rank, gn_dtype_name(c->result),
                    c->expected.s.rank);
        return false;
    }
    size_t bytes = gn_bytes(y);
    void *have = malloc(bytes + 16);
    bool good = gn_read(y, have, bytes) == GN_OK;
    int shown = 0;
    for (int64_t i = 0; i < c->expected.n && good; i++) {
        if (!is_float(c->result)) {
            int64_t v = integer_at(c->result, have, i), e = int64_at(c->expected.data, i);
            if (v == e) continue;
            print_error("  element %lld is %lld, expected %lld\n", (long long)i, (long long)v,
                        (long long)e);
        } else {
            double v = test_element(c->result, have, i), e = double_at(c->expected.data, i);
            double slack = c->slack != NULL ? double_at(c->slack, i) : 0;
            double error = float_error(c->result, v, e, slack, c->flags);
            if (error > c->ulp && flushed(c, i, v, e)) continue;
            if (error < INFINITY) note_error(c, error);
            // The expected value of a float64 result is itself rounded.
            if (error <= c->ulp * 1.0000001 + (c->result == GN_F64 ? 0.5 : 0)) continue;
            print_error(
                "  element %lld is %.17g, expected %.17g: %.4g ulp and slack %.3g, allowed %.4g\n",
                (long long)i, v, e, error, slack, c->ulp);
        }
        for (int k = 0; k < c->n_in && c->in[k].n == c->expected.n; k++)
            print_error("    operand %d: %.17g\n", k, test_element(c->in[k].t, c->in[k].data, i));
        good = ++shown < 4 && i + 1 < c->expected.n;
    }
    free(have);
    return good && shown == 0;
}

static void describe(const op_case *c) {
    print_error("%s", c->op);
    for (int i = 0; i < c->n_numbers; i++) print_error(" %g", c->number[i]);
    for (int i = 0; i < c->n_in; i++) {
        print_error(" %s (", gn_dtype_name(c->in[i].t));
        for (int k = 0; k < c->in[i].s.rank; k++)
            print_error("%lld,", (long long)c->in[i].s.dim[k]);
        print_error(")");
    }
    print_error("\n");
}

static void take_case(test_cases *f, op_case *c) {
    memset(c, 0, sizeof *c);
    test_take_text(f, c->op, sizeof c->op);
    c->flags = test_take_int(f);
    c->n_numbers = test_take_int(f);
    assert_true(c->n_numbers <= MAX_NUMBERS);
    test_take_bytes(f, c->number, sizeof(double) * (size_t)c->n_numbers);
    c->n_in = test_take_int(f);
    assert_true(c->n_in <= MAX_OPERANDS);
    for (int i = 0; i < c->n_in; i++) test_take_array(f, &c->in[i]);
    int32_t t = test_take_int(f);
    c->refused = t < 0;
    if (c->refused) return;
    c->result = (gn_dtype)t;
    test_take_array(f, &c->expected);
    c->ulp = test_take_double(f);
    if (test_take_int(f) == 0) return;
    c->slack = f->at;
    f->at += 8 * c->expected.n;
}

// True if the case holds in that layout.
static bool run_case(gn_context *g, const op_case *c, int layout) {
    gn_array *in[MAX_OPERANDS] = {NULL, NULL, NULL};
    gn_scope_begin(g);
    for (int i = 0; i < c->n_in; i++) in[i] = operand(g, &c->in[i], layout);
    gn_array *y = call(c, in);
    bool good = c->refused ? y == NULL && gn_status_get(g) != GN_OK : y != NULL && check(c, y);
    if (!good) {
        describe(c);
        print_error("  %s operands%s%s%s\n", layout_name[layout],
                    c->refused ? ", expected an error" : "", gn_status_get(g) != GN_OK ? ": " : "",
                    gn_error(g));
    }
    gn_error_clear(g);
    gn_scope_end(g);
    return good;
}

static void test_like_numpy(void **state) {
    gn_context *g = (gn_context *)*state;
    const char *only = getenv("GN_TEST_OP"), *ready = getenv("GN_TEST_CASES");
    bool all = getenv("GN_TEST_ALL") != NULL;
    test_cases f;
    op_case c;
    int failed = 0;
    if (ready != NULL) {
        f.data = test_read_file(ready, &f.size);
        f.at = f.data;
        f.count = test_take_int(&f);
    } else if (!test_cases_open(&f, "ops")) {
        skip();
    }
    for (int32_t i = 0; i < f.count; i++) {
        take_case(&f, &c);
        if (only != NULL && strcmp(only, c.op) != 0) continue;
        if ((c.flags & SUBNORMAL) && test_on_vulkan()) continue; // devices may flush them
        if ((c.flags & MORE) && test_on_vulkan() && !all) continue;
        if (TEST_THREAD_SANITIZER && i % 5 != 0) continue; // most are too small for a second thread
        bool good = true;
        // Software devices are slow, and so is the thread sanitizer: one layout of each case.
        for (int layout = 0; layout < LAYOUTS && good; layout++)
            if (!(test_on_vulkan() || TEST_THREAD_SANITIZER) || layout == i % LAYOUTS) good = run_case(g, &c, layout);
        if (!good && ++failed > (all ? 1000000 : 10)) break;
    }
    for (int i = 0; i < worst_count && all; i++)
        printf("%-18s %-9s %8.3f of %.3f ulp\n", worst[i].op, gn_dtype_name(worst[i].t),
               worst[i].ulp, worst[i].bound);
    if (failed == 0 && only == NULL)
        test_cases_close(&f);
    else
        free(f.data);
    assert_int_equal(failed, 0);
}

// ---- expressions at once and step by step

static uint32_t noise(uint32_t *s) {
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

static const gn_dtype mixed[] = {GN_F32,  GN_F16, GN_I32, GN_U8,  GN_BOOL, GN_F32,
                                 GN_BF16, GN_F64, GN_I64, GN_U32, GN_I8};

// One random step over the values so far.
static gn_array *random_step(gn_array **v, int n, uint32_t *s) {
    gn_array *a = v[noise(s) % (uint32_t)n], *b = v[noise(s) % (uint32_t)n];
    uint32_t pick = noise(s);
    bool real = is_float(gn_dtype_of(a));
    switch (noise(s) % 12) {
    case 0: return gn_add(a, b);
    case 1: return gn_mul(a, b);
    case 2: return gn_maximum(a, b);
    case 3: return gn_where(gn_lt(a, b), b, a);
    case 4: return gn_cast(a, mixed[pick % 11]);
    case 5: return gn_add_s(a, pick % 2 ? 1.0 : 0.5);
    case 6: return gn_mul_s(a, pick % 2 ? 3.0 : 0.25);
    case 7: return real ? gn_tanh(a) : gn_square(a);
    case 8: return real ? gn_exp(gn_minimum_s(a, 3.0)) : gn_abs(a);
    case 9: return gn_eq(a, b);
    case 10: return real ? gn_floor(a) : gn_add(a, gn_cast(b, gn_dtype_of(a)));
    default: return gn_div(a, gn_add_s(gn_square(b), 1.0));
    }
}

enum { STEPS = 24, SEEDS = 300 };

// Returns bytes of all values, computed in one go or one by one; the caller frees them.
static unsigned char *random_expression(gn_context *g, uint32_t seed, bool at_once, size_t *bytes) {
    gn_array *v[STEPS];
    uint32_t s = seed;
    int64_t rows = 1 + noise(&s) % 7, columns = 1 + noise(&s) % 60;
    gn_scope_begin(g);
    int n = 3;
    gn_array *base =
        gn_sub_s(gn_mul_s(gn_reshape(gn_arange(g, GN_F32, 0, (double)(rows * columns), 1),
                                     GN_SHAPE(rows, columns)),
                          0.37),
                 4.0);
    v[0] = gn_eval(gn_cast(base, mixed[noise(&s) % 7]));
    v[1] = gn_eval(gn_cast(gn_index(base, "::-1, :1"), mixed[noise(&s) % 11]));
    v[2] = gn_eval(gn_index(base, "0"));
    int steps = 4 + (int)(noise(&s) % (STEPS - 4));
    while (n < steps) {
        v[n] = random_step(v, n, &s);
        if (v[n] == NULL) fail_msg("seed %u, step %d: %s", seed, n, gn_error(g));
        if (!at_once) gn_eval(v[n]);
        n++;
    }
    *bytes = 0;
    for (int i = 0; i < n; i++) *bytes += gn_bytes(v[i]);
    unsigned char *all = (unsigned char *)malloc(*bytes + 1), *at = all;
    for (int i = n - 1; i >= 0; i--) { // the last first, so that it is computed with all it needs
        assert_int_equal(gn_read(v[i], at, gn_bytes(v[i])), GN_OK);
        at += gn_bytes(v[i]);
    }
    gn_scope_end(g);
    return all;
}

static void test_fused(void **state) {
    gn_context *g = (gn_context *)*state;
    if (test_on_webgpu()) skip(); // compilers of WGSL may take a + (a + b) for 2 a + b
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        size_t n, m;
        unsigned char *once = random_expression(g, seed, true, &n),
                      *steps = random_expression(g, seed, false, &m);
        bool same = n == m && memcmp(once, steps, n) == 0;
        free(once);
        free(steps);
        if (!same) fail_msg("seed %u: computed at once and step by step, the bits differ", seed);
    }
}

// Rows with one special value among ordinary ones, or nothing but that: whether all of log_softmax, and
// what logsumexp is. SciPy's rules; softmax of such rows is NaN throughout.
static void check_special_row(gn_context *g, int64_t n, float special, bool only, double logsumexp) {
    float *x = (float *)malloc(sizeof(float) * (size_t)n), *y = (float *)malloc(sizeof(float) * (size_t)n);
    int64_t at = n * 2 / 3;
    if (x == NULL || y == NULL) fail_msg("out of memory");
    for (int64_t i = 0; i < n; i++) x[i] = only || i == at ? special : (float)(i % 17) * 0.25f;
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(1, n), x);
    expect_values(gn_logsumexp(a, GN_ALL), logsumexp);
    assert_int_equal(gn_read(gn_softmax(a, 1), y, sizeof(float) * (size_t)n), GN_OK);
    for (int64_t i = 0; i < n; i++)
        if (y[i] == y[i]) fail_msg("softmax of %lld: %g at %lld", (long long)n, (double)y[i], (long long)i);
    assert_int_equal(gn_read(gn_log_softmax(a, 1), y, sizeof(float) * (size_t)n), GN_OK);
    for (int64_t i = 0; i < n; i++) {
        bool nan = only || special != special || i == at;
        if (nan ? y[i] == y[i] : y[i] != -INFINITY)
            fail_msg("log_softmax of %lld: %g at %lld", (long long)n, (double)y[i], (long long)i);
    }
    free(x);
    free(y);
}

static void test_special_rows(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t sizes[] = {5, 100, 5000, 10000, 20001, 70000};
    for (int i = 0; i < 6; i++) {
        check_special_row(g, sizes[i], INFINITY, false, (double)INFINITY);
        check_special_row(g, sizes[i], NAN, false, (double)NAN);
        check_special_row(g, sizes[i], -INFINITY, true, -(double)INFINITY);
    }
    // The functions that end in straight lines.
    float ends[3] = {-INFINITY, INFINITY, NAN};
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(3), ends);
    expect_values(gn_sigmoid(a), 0.0, 1.0, (double)NAN);
    expect_values(gn_softplus(a), 0.0, (double)INFINITY, (double)NAN);
    expect_values(gn_abs(gn_silu(a)), 0.0, (double)INFINITY, (double)NAN);
    expect_values(gn_abs(gn_gelu(a)), 0.0, (double)INFINITY, (double)NAN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_like_numpy),
        GN_TEST(test_fused),
        GN_TEST(test_special_rows),
    };
    return test_run(tests);
}
