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
#define GN_X(fn, NAME, F, D, gF, da) {#fn, fn},
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

// How far a result may be off. The manual's figure where Vulkan computes what becomes float16 or bfloat16 in its own arithmetic.
static double allowed(const op_case *c) {
    static const char *const coarse[] = {"gn_sqrt", "gn_exp", "gn_expm1", "gn_log",     "gn_log2", "gn_log1p", "gn_sin",
                                         "gn_cos",  "gn_tanh", "gn_erf",  "gn_sigmoid", "gn_silu", "gn_gelu",  "gn_softplus"};
    if (!test_env_is("GN_TEST_BACKEND", "vulkan") || (c->result != GN_F16 && c->result != GN_BF16)) return c->ulp;
    for (size_t i = 0; i < sizeof coarse / sizeof coarse[0]; i++)
        if (strcmp(coarse[i], c->op) == 0) return 0.51;
    return c->ulp;
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
    const double ulp = allowed(c);
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
            if (error > ulp && flushed(c, i, v, e)) continue;
            if (error < INFINITY) note_error(c, error);
            // The expected value of a float64 result is itself rounded.
            if (error <= ulp * 1.0000001 + (c->result == GN_F64 ? 0.5 : 0)) continue;
            print_error(
                "  element %lld is %.17g, expected %.17g: %.4g ulp and slack %.3g, allowed %.4g\n",
                (long long)i, v, e, error, slack, ulp);
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

// What a kernel computes in: wide numbers, floats or integers.
static unsigned arithmetic(gn_dtype t) {
    return t == GN_F64 || t == GN_I64 || t == GN_U64 ? 2 : is_float(t) ? 1 : 0;
}

// Whether no case before had this op in this arithmetic: of its widest operand and of its result. Casts are of each dtype from
// and to each arithmetic.
static bool is_new(const op_case *c) {
    static struct {
        char op[32];
        uint64_t from, to;
    } had[256];
    int k = 0;
    unsigned most = 0, result = arithmetic(c->result);
    for (int i = 0; i < c->n_in; i++) most = arithmetic(c->in[i].t) > most ? arithmetic(c->in[i].t) : most;
    while (k < 255 && had[k].op[0] != 0 && strcmp(had[k].op, c->op) != 0) k++;
    assert_true(k < 255);
    memcpy(had[k].op, c->op, sizeof c->op);
    const bool cast = strcmp(c->op, "gn_cast") == 0;
    const uint64_t from = (uint64_t)1 << (cast ? (unsigned)c->in[0].t * 3 + result : most * 3 + result),
                   to = (uint64_t)1 << (cast ? (unsigned)c->result * 3 + most : 0);
    const bool is = (had[k].from & from) == 0 || (had[k].to & to) == 0;
    had[k].from |= from;
    had[k].to |= to;
    return is;
}

static void test_like_numpy(void **state) {
    gn_context *g = (gn_context *)*state, *compiled = NULL;
    const char *only = getenv("GN_TEST_OP"), *ready = getenv("GN_TEST_CASES");
    const bool all = getenv("GN_TEST_ALL") != NULL;
    // One layout of each case: software devices and sanitizers are slow, and another compiler's build has the same layouts.
    const bool one = test_on_vulkan() || TEST_SANITIZER || getenv("GN_TEST_AGAIN") != NULL;
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
    // Vulkan's programs are compiled once they have come a few times and a thread is done with them, interpreted until then.
    // All cases are interpreted here, and each op in each arithmetic is compiled as well, in the same order every time.
    if (test_on_vulkan() && !test_on_webgpu()) {
        gn_options o = test_options();
        const uint32_t flags = o.vulkan_flags;
        o.vulkan_flags = flags | GN_VULKAN_NO_SPECIALIZATION;
        g = test_share(&o);
        o.vulkan_flags = flags | GN_VULKAN_NO_ASYNC_PIPELINES;
        compiled = test_share(&o);
    }
    for (int32_t i = 0; i < f.count; i++) {
        take_case(&f, &c);
        if (only != NULL && strcmp(only, c.op) != 0) continue;
        if ((c.flags & SUBNORMAL) && test_on_vulkan()) continue; // devices may flush them
        if ((c.flags & MORE) && test_on_vulkan() && !all) continue;
        bool good = true;
        for (int layout = 0; layout < LAYOUTS && good; layout++)
            if (!one || layout == i % LAYOUTS) good = run_case(g, &c, layout);
        if (good && compiled != NULL && !c.refused && is_new(&c)) good = run_case(compiled, &c, i % LAYOUTS);
        if (!good && ++failed > (all ? 1000000 : 10)) break;
    }
    for (int i = 0; i < worst_count && all; i++)
        printf("%-18s %-9s %8.3f of %.3f ulp\n", worst[i].op, gn_dtype_name(worst[i].t),
               worst[i].ulp, worst[i].bound);
    if (failed == 0 && only == NULL)
        test_cases_close(&f);
    else
        free(f.data);
    if (compiled != NULL) test_close(g), test_close(compiled);
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
static void check_special_row(gn_context *g, gn_dtype t, int64_t n, float special, bool only, double logsumexp) {
    float *x = (float *)malloc(sizeof(float) * (size_t)n), *y = (float *)malloc(sizeof(float) * (size_t)n);
    int64_t at = n * 2 / 3;
    if (x == NULL || y == NULL) fail_msg("out of memory");
    for (int64_t i = 0; i < n; i++) x[i] = only || i == at ? special : (float)(i % 17) * 0.25f;
    gn_array *a = gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(1, n), x), t);
    expect_values(gn_logsumexp(a, GN_ALL), logsumexp);
    assert_int_equal(gn_read(gn_cast(gn_softmax(a, 1), GN_F32), y, sizeof(float) * (size_t)n), GN_OK);
    for (int64_t i = 0; i < n; i++)
        if (y[i] == y[i]) fail_msg("softmax of %lld: %g at %lld", (long long)n, (double)y[i], (long long)i);
    assert_int_equal(gn_read(gn_cast(gn_log_softmax(a, 1), GN_F32), y, sizeof(float) * (size_t)n), GN_OK);
    for (int64_t i = 0; i < n; i++) {
        bool nan = only || special != special || i == at;
        if (nan ? y[i] == y[i] : y[i] != -INFINITY)
            fail_msg("log_softmax of %lld: %g at %lld", (long long)n, (double)y[i], (long long)i);
    }
    free(x);
    free(y);
}

// A row that begins with minus infinity, and whose numbers grow towards its end.
static void check_late_row(gn_context *g, int64_t n) {
    float *x = (float *)malloc(sizeof(float) * (size_t)n), *y = (float *)malloc(sizeof(float) * (size_t)n);
    double sum = 0.0;
    if (x == NULL || y == NULL) fail_msg("out of memory");
    for (int64_t i = 0; i < n; i++) x[i] = i < n / 2 ? -INFINITY : (float)(i % 7) + 300.0f * (float)i / (float)n;
    for (int64_t i = n / 2; i < n; i++) sum += exp((double)x[i] - 306.0);
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(1, n), x);
    assert_true(fabs(gn_item(gn_logsumexp(a, GN_ALL)) - (306.0 + log(sum))) < 4e-5);
    assert_int_equal(gn_read(gn_softmax(a, 1), y, sizeof(float) * (size_t)n), GN_OK);
    for (int64_t i = 0; i < n; i++) {
        const double want = i < n / 2 ? 0.0 : exp((double)x[i] - 306.0) / sum;
        const double lost = test_on_webgpu() ? 1.1755e-38 : 1e-38; // WGSL may make subnormals 0
        if (!(fabs((double)y[i] - want) <= 4e-6 * want + lost)) fail_msg("softmax of %lld: %g at %lld, not %g", (long long)n,
                                                                      (double)y[i], (long long)i, want);
    }
    free(x);
    free(y);
}

static void test_special_rows(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t sizes[] = {5, 100, 5000, 10000, 20001, 70000};
    for (int i = 0; i < 12; i++) {
        const gn_dtype t = i < 6 ? GN_F32 : GN_F64;
        check_special_row(g, t, sizes[i % 6], INFINITY, false, (double)INFINITY);
        check_special_row(g, t, sizes[i % 6], NAN, false, (double)NAN);
        check_special_row(g, t, sizes[i % 6], -INFINITY, true, -(double)INFINITY);
    }
    for (int i = 0; i < 6; i++) check_late_row(g, sizes[i]);
    // The functions that end in straight lines.
    float ends[3] = {-INFINITY, INFINITY, NAN};
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(3), ends);
    expect_values(gn_sigmoid(a), 0.0, 1.0, (double)NAN);
    expect_values(gn_softplus(a), 0.0, (double)INFINITY, (double)NAN);
    expect_values(gn_abs(gn_silu(a)), 0.0, (double)INFINITY, (double)NAN);
    expect_values(gn_abs(gn_gelu(a)), 0.0, (double)INFINITY, (double)NAN);
}

// Integers that float16 and bfloat16 do not hold, beside the numbers that they would round to.
static void test_half_compared(void **state) {
    gn_context *g = (gn_context *)*state;
    static const double halves[] = {65504, INFINITY, 2048, 256, NAN};
    static const int64_t whole[] = {70000, INT64_MAX, 2049, 257, 0};
    gn_array *x = gn_array_from(g, GN_F64, GN_SHAPE(5), halves), *w = gn_array_from(g, GN_I64, GN_SHAPE(5), whole);
    static const gn_dtype types[] = {GN_I64, GN_U64, GN_I32, GN_U32, GN_U16};
    for (int i = 0; i < 10; i++) {
        gn_array *a = gn_cast(x, i % 2 ? GN_BF16 : GN_F16), *b = gn_cast(gn_clamp(w, 0, i < 8 ? 1e9 : 65535), types[i / 2]);
        expect_values(gn_eq(a, b), 0, 0, 0, 0, 0);
        expect_values(gn_ge(b, a), (i != 9), 0, 1, 1, 0);
        expect_values(gn_lt(b, a), (i == 9), 1, 0, 0, 0);
        expect_values(gn_isin(gn_slice(a, 0, 0, 4, 1), b), 0, 0, 0, 0);
        if (i < 8) expect_values(gn_setdiff1d(b, a), 0, 257, 2049, 70000, 1e9);
    }
}

// Softmax and its kin of float64 along every axis, where maxima lie far apart, against sums in long double.
static void test_wide_softmax(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { A = 3, B = 67, C = 11 };
    static double x[A * B * C], y[3][A * B * C];
    for (int i = 0; i < A * B * C; i++) x[i] = ((double)draw(1u << 20) / 65536.0 - 8.0) * (i % 5 == 0 ? 400.0 : 1.0);
    gn_array *a = gn_array_from(g, GN_F64, GN_SHAPE(A, B, C), x);
    const int64_t dim[3] = {A, B, C};
    for (int axis = 0; axis < 3; axis++) {
        const int64_t step = axis == 0 ? B * C : axis == 1 ? C : 1;
        gn_array *sum = gn_logsumexp(a, axis), *made[3];
        made[0] = gn_softmax(a, axis);
        made[1] = gn_log_softmax(a, axis);
        made[2] = gn_broadcast_to(gn_expand_dims(sum, axis), GN_SHAPE(A, B, C));
        for (int k = 0; k < 3; k++) assert_int_equal(gn_read(gn_copy(made[k]), y[k], sizeof y[k]), GN_OK);
        for (int64_t i = 0; i < A * B * C; i++) {
            const int64_t first = i - i / step % dim[axis] * step;
            long double most = -INFINITY, all = 0.0L;
            for (int64_t j = 0; j < dim[axis]; j++) most = fmaxl(most, (long double)x[first + j * step]);
            for (int64_t j = 0; j < dim[axis]; j++) all += expl((long double)x[first + j * step] - most);
            const long double want[3] = {expl((long double)x[i] - most) / all, (long double)x[i] - most - logl(all), most + logl(all)};
            for (int k = 0; k < 3; k++) {
                const long double off = fabsl((long double)y[k][i] - want[k]);
                // What is subtracted rounds where it is large, an exponential its argument's.
                const long double bound = (k == 0 ? want[0] * (4.0L + fabsl((long double)x[i] - most)) : 2.0L * fabsl(want[k]) + 2.0L) *
                                              2.3e-16L + 2.3e-308L;
                if (!(off <= bound))
                    fail_msg("axis %d, function %d: %.17g at %d, not %.17Lg", axis, k, y[k][i], (int)i, want[k]);
            }
        }
    }
}

// ---- integers of 8 and 16 bits, which long arrays keep in registers as narrow as they are

enum { NARROW_OPS = 17, NARROW_CHAINS = 14 };

static int64_t narrow_value(int64_t v, gn_dtype t) {
    const int64_t size = (int64_t)1 << (8 * gn_dtype_size(t)), low = v & (size - 1);
    return t == GN_BOOL ? v != 0 : (t == GN_I8 || t == GN_I16) && low >= size / 2 ? low - size : low;
}

// The ops, then chains in which a result that has wrapped or not is compared.
static int64_t narrow_expect(int op, int64_t a, int64_t b, gn_dtype t) {
    switch (op) {
    case 0: return narrow_value(a + b, t);
    case 1: return narrow_value(a - b, t);
    case 2: return narrow_value(a * b, t);
    case 3: return a < b ? a : b;
    case 4: return a > b ? a : b;
    case 5: return narrow_value(a & b, t);
    case 6: return narrow_value(a | b, t);
    case 7: return narrow_value(a ^ b, t);
    case 8: return a == b;
    case 9: return a != b;
    case 10: return a < b;
    case 11: return a <= b;
    case 12: return a > b;
    case 13: return a >= b;
    case 14: return a != 0 && b != 0;
    case 15: return a != 0 || b != 0;
    case 16: return (a != 0) != (b != 0);
    case 17: return narrow_value(narrow_value(a * b, t) + a, t) > b;
    case 18: return a + b > 200;
    case 19: return a < b ? narrow_value(a + 3, t) : b;
    case 20: return a < 300 && b > -1;
    case 21: return (narrow_value(a + b, t) == 0) ^ (a > b);
    case 22: return narrow_value(a + b, GN_I8);
    case 23: return a != 0;
    case 24: return a == 0;
    case 25: return narrow_value(-a, t);
    case 26: return narrow_value(a < 0 ? -a : a, t);
    case 27: return narrow_value(a * a, t);
    case 28: return narrow_value(a < 0 ? -a : a, t) > narrow_value(-narrow_value(b * b, t), t);
    case 29: return (uint32_t)a < (uint32_t)b;
    default: return narrow_value((narrow_value(a * 7, t) < b ? narrow_value(a * 7, t) : b) - 1, t);
    }
}

static gn_array *narrow_make(int op, gn_array *a, gn_array *b) {
    static gn_array *(*const two[])(gn_array *, gn_array *) = {gn_add, gn_sub, gn_mul, gn_minimum, gn_maximum, gn_and, gn_or, gn_xor, gn_eq,
                                                               gn_ne, gn_lt, gn_le, gn_gt, gn_ge, gn_logical_and, gn_logical_or,
                                                               gn_logical_xor};
    if (op < NARROW_OPS) return two[op](a, b);
    switch (op) {
    case 17: return gn_gt(gn_add(gn_mul(a, b), a), b);
    case 18: return gn_gt_s(gn_add(gn_cast(a, GN_I32), gn_cast(b, GN_I32)), 200);
    case 19: return gn_where(gn_lt(a, b), gn_add_s(a, 3), b);
    case 20: return gn_logical_and(gn_lt_s(gn_cast(a, GN_I32), 300), gn_gt_s(gn_cast(b, GN_I32), -1));
    case 21: return gn_xor(gn_eq_s(gn_add(a, b), 0), gn_gt(a, b));
    case 22: return gn_cast(gn_add(a, b), GN_I8);
    case 23: return gn_cast(a, GN_BOOL);
    case 24: return gn_logical_not(a);
    case 25: return gn_neg(a);
    case 26: return gn_abs(a);
    case 27: return gn_square(a);
    case 28: return gn_gt(gn_abs(a), gn_neg(gn_square(b)));
    case 29: return gn_lt(gn_cast(a, GN_U32), gn_cast(b, GN_U32));
    default: return gn_sub_s(gn_minimum(gn_mul_s(a, 7), b), 1);
    }
}

static int64_t narrow_at(const void *p, gn_dtype t, int64_t i) {
    switch (t) {
    case GN_I8: return ((const int8_t *)p)[i];
    case GN_I16: return ((const int16_t *)p)[i];
    case GN_U16: return ((const uint16_t *)p)[i];
    case GN_I32: return ((const int32_t *)p)[i];
    default: return ((const uint8_t *)p)[i];
    }
}

// a and b are views; their numbers are read as copies of them.
static void check_narrow(gn_array *a, gn_array *b, gn_dtype t, const char *what) {
    gn_context *g = gn_context_of(a);
    const int64_t n = gn_size(a), m = gn_size(b);
    char *x = (char *)malloc((size_t)(n * 4)), *y = (char *)malloc((size_t)(m * 4)), *z = (char *)malloc((size_t)(n * 4));
    if (x == NULL || y == NULL || z == NULL) fail_msg("out of memory");
    assert_int_equal(gn_read(gn_copy(a), x, gn_bytes(a)), GN_OK);
    assert_int_equal(gn_read(gn_copy(b), y, gn_bytes(b)), GN_OK);
    for (int op = 0; op < NARROW_OPS + NARROW_CHAINS; op++) {
        gn_array *r = narrow_make(op, a, b);
        if (t == GN_BOOL && r == NULL) { // which has no sum
            gn_error_clear(g);
            continue;
        }
        if (r == NULL) fail_msg("%s, op %d: %s", what, op, gn_error(g));
        const gn_dtype u = gn_dtype_of(r);
        if (t == GN_BOOL && u != GN_BOOL) continue; // and a few numbers out of it are int32
        assert_int_equal(gn_read(r, z, gn_bytes(r)), GN_OK);
        for (int64_t i = 0; i < n; i++) {
            const int64_t p = narrow_at(x, t, i), q = narrow_at(y, t, m == n ? i : i % m), want = narrow_expect(op, p, q, t);
            if (narrow_at(z, u, i) != want)
                fail_msg("%s of %s, op %d of %lld and %lld at %lld: %lld, not %lld", what, gn_dtype_name(t), op, (long long)p, (long long)q,
                         (long long)i, (long long)narrow_at(z, u, i), (long long)want);
        }
    }
    free(x), free(y), free(z);
}

// any and all of bytes: rows of n in which one is not like the others, or none.
static void check_truth(gn_context *g, gn_dtype t, int64_t n, int64_t at) {
    enum { ROWS = 3 };
    char *x = (char *)malloc((size_t)(ROWS * n)), any[ROWS], all[ROWS];
    if (x == NULL) fail_msg("out of memory");
    for (int other = 0; other < 2; other++) {
        for (int64_t i = 0; i < ROWS * n; i++) x[i] = (char)((at >= 0 && i == n + at) == (other == 0) ? t == GN_BOOL ? 1 : -128 : 0);
        gn_array *a = gn_array_from(g, t, GN_SHAPE(ROWS, n), x), *turned = gn_copy(gn_transpose(a));
        gn_array *ways[] = {a, gn_transpose(turned), gn_index(gn_concat((gn_array *[]){a, gn_index(gn_zeros_like(a), ":, :1")}, 2, 1), ":, :-1")};
        for (int k = 0; k < 3; k++) {
            assert_int_equal(gn_read(gn_any(ways[k], 1), any, sizeof any), GN_OK);
            assert_int_equal(gn_read(gn_all(ways[k], 1), all, sizeof all), GN_OK);
            for (int r = 0; r < ROWS; r++) {
                const bool has = at >= 0 && r == 1;
                if (any[r] != (other ? n > 1 || !has : has) || all[r] != (other ? !has : has && n == 1))
                    fail_msg("rows of %lld, other at %lld: any %d, all %d", (long long)n, (long long)at, any[r], all[r]);
            }
            for (int pending = 0; pending < 2; pending++) { // where the first 1 and the first 0 are
                gn_array *m = pending ? gn_ne_s(ways[k], 0) : gn_cast(ways[k], GN_BOOL);
                int64_t first[2][ROWS];
                char most[2][ROWS];
                for (int value = 0; value < 2; value++) {
                    assert_int_equal(gn_read(value ? gn_argmax(m, 1) : gn_argmin(m, 1), first[value], sizeof first[value]), GN_OK);
                    assert_int_equal(gn_read(value ? gn_max(m, 1) : gn_min(m, 1), most[value], sizeof most[value]), GN_OK);
                    for (int r = 0; r < ROWS; r++) {
                        int64_t i = 0;
                        while (i < n && ((at >= 0 && r == 1 && i == at) == (other == 0)) != value) i++;
                        assert_int_equal(first[value][r], i < n ? i : 0);
                        assert_int_equal(most[value][r], i < n ? value : !value);
                    }
                }
            }
        }
        expect_values(gn_any(a, GN_ALL), at >= 0 || other ? 1.0 : 0.0);
        expect_values(gn_all(a, GN_ALL), at < 0 && other ? 1.0 : 0.0);
        expect_values(gn_any(ways[2], GN_ALL), at >= 0 || other ? 1.0 : 0.0);
        expect_values(gn_all(gn_ne_s(a, 0), GN_ALL), at < 0 && other ? 1.0 : 0.0);
    }
    free(x);
}

static void test_truth(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t sizes[] = {1, 2, 63, 64, 127, 128, 129, 255, 256, 257, 700, 5000, 30001};
    static const gn_dtype types[] = {GN_BOOL, GN_U8, GN_I8};
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 13; i++) {
            gn_scope_begin(g);
            const int64_t n = sizes[i], at[] = {-1, 0, n / 2, n - 1};
            for (int k = 0; k < 4; k++) check_truth(g, types[t], n, at[k]);
            gn_scope_end(g);
        }
}

static void test_narrow(void **state) {
    gn_context *g = (gn_context *)*state;
    static const gn_dtype types[] = {GN_U8, GN_I8, GN_U16, GN_I16, GN_BOOL};
    static const int64_t sizes[] = {1, 15, 16, 17, 100, 1000, 4096, 9001};
    enum { MOST = 2 * 9001 };
    static uint16_t noise_a[MOST], noise_b[MOST];
    uint32_t s = 1;
    for (int k = 0; k < 5; k++) {
        const gn_dtype t = types[k];
        for (int i = 0; i < MOST; i++) {
            noise_a[i] = (uint16_t)noise(&s), noise_b[i] = (uint16_t)noise(&s);
            if (i % 7 == 0) noise_b[i] = noise_a[i];
            if (i % 11 == 0) noise_a[i] = 0;
            if (t == GN_BOOL) noise_a[i] &= 0x101, noise_b[i] &= 0x101;
        }
        for (int i = 0; i < 8; i++) {
            gn_scope_begin(g);
            const int64_t n = sizes[i];
            gn_array *a = gn_array_from(g, t, GN_SHAPE(2 * n), noise_a), *b = gn_array_from(g, t, GN_SHAPE(2 * n), noise_b);
            check_narrow(gn_index(gn_reshape(a, GN_SHAPE(2, n)), "0"), gn_index(gn_reshape(b, GN_SHAPE(2, n)), "1"), t, "neighbours");
            check_narrow(gn_index(a, "::2"), gn_index(b, "1::2"), t, "every second");
            check_narrow(gn_index(a, "::-1"), b, t, "backwards");
            for (int to = 0; to < 4; to++) { // the low bits, or those of the number
                static uint16_t have[MOST];
                assert_int_equal(gn_read(gn_cast(a, types[to]), have, (size_t)(2 * n) * gn_dtype_size(types[to])), GN_OK);
                for (int64_t at = 0; at < 2 * n; at++) {
                    const int64_t v = narrow_at(noise_a, t, at);
                    const int64_t want = to == 0 ? (uint8_t)v : to == 1 ? (int8_t)v : to == 2 ? (uint16_t)v : (int16_t)v;
                    if (narrow_at(have, types[to], at) != want) fail_msg("dtype %d to %d, %d of %d", k, to, (int)at, (int)(2 * n));
                }
            }
            gn_scope_end(g);
        }
        gn_scope_begin(g);
        gn_array *a = gn_array_from(g, t, GN_SHAPE(61, 83), noise_a), *b = gn_array_from(g, t, GN_SHAPE(83, 61), noise_b);
        check_narrow(a, gn_transpose(b), t, "transposed");
        check_narrow(a, gn_index(b, "0, 0"), t, "one");
        check_narrow(gn_transpose(a), gn_index(b, "5"), t, "a row");
        check_narrow(gn_index(a, ":, :16"), gn_index(b, ":61, 3:19"), t, "corners");
        int64_t least[83];
        assert_int_equal(gn_read(gn_min(gn_cast(a, GN_I64), 0), least, sizeof least), GN_OK);
        for (int i = 0; i < 83; i++) {
            int64_t want = narrow_at(noise_a, t, i);
            for (int r = 1; r < 61; r++) want = narrow_at(noise_a, t, 83 * r + i) < want ? narrow_at(noise_a, t, 83 * r + i) : want;
            assert_int_equal(least[i], want);
        }
        gn_scope_end(g);
    }
}

// (a - b) row of arrays whose axes are in any order, small whole numbers that every dtype holds; of complex numbers the
// imaginary parts as well.
static void test_orders(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { A = 17, B = 23, C = 19, N = A * B * C };
    static const gn_dtype types[] = {GN_F32, GN_F64, GN_I16, GN_C64, GN_C128};
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static double x[2 * N], y[2 * N], row[C + B], z[2 * N];
    const int64_t dim[] = {A, B, C}, step[] = {B * C, C, 1};
    for (int i = 0; i < 2 * N; i++) x[i] = (double)draw(31) - 15, y[i] = (double)draw(31) - 15;
    for (int i = 0; i < C + B; i++) row[i] = (double)draw(9) - 4;
    for (int k = 0; k < 5; k++)
        for (int o = 0; o < 6; o++) GN_SCOPE(g) {
            const int *p = orders[o], parts = k < 3 ? 1 : 2;
            const gn_shape s = GN_SHAPE(dim[p[0]], dim[p[1]], dim[p[2]]);
            gn_array *in[3];
            for (int i = 0; i < 2; i++) {
                gn_array *made = gn_array_from(g, parts == 1 ? GN_F64 : GN_C128, GN_SHAPE(A, B, C), i == 0 ? x : y);
                in[i] = gn_permute_axes(gn_eval(gn_copy(gn_cast(made, types[k]))), p, 3);
            }
            in[2] = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(s.dim[2]), row), parts == 1 ? types[k] : types[k] == GN_C64 ? GN_F32 : GN_F64);
            gn_array *made = gn_cast(gn_eval(gn_mul(gn_sub(in[0], in[1]), in[2])), parts == 1 ? GN_F64 : GN_C128);
            assert_int_equal(gn_read(made, z, gn_bytes(made)), GN_OK);
            for (int64_t i = 0; i < N; i++) {
                const int64_t last = i % s.dim[2], from = i / s.dim[2] / s.dim[1] * step[p[0]] + i / s.dim[2] % s.dim[1] * step[p[1]] +
                                                          last * step[p[2]];
                for (int c = 0; c < parts; c++)
                    if (z[parts * i + c] != (x[parts * from + c] - y[parts * from + c]) * row[last])
                        fail_msg("%s, order %d: %g at %lld", gn_dtype_name(types[k]), o, z[parts * i + c], (long long)i);
            }
        }
}

// The powers that are other functions, with pow's values: of C's pow, whose root and reciprocal are exact to half an ulp.
static void test_powers(void **state) {
    gn_context *g = (gn_context *)*state;
    static const double x[] = {4.0, 2.0, 0.3, -0.0, 0.0, -1.5, (double)INFINITY, -(double)INFINITY, (double)NAN, 1e-30, -1e30}, by[] = {0.5, -1.0, 2.0};
    enum { N = 11 };
    for (int k = 0; k < 3; k++) {
        double y[N];
        float z[N];
        gn_array *a = gn_array_from(g, GN_F64, GN_SHAPE(N), x), *b = gn_cast(a, GN_F32);
        assert_int_equal(gn_read(gn_pow_s(a, by[k]), y, sizeof y), GN_OK);
        assert_int_equal(gn_read(gn_pow_s(b, by[k]), z, sizeof z), GN_OK);
        for (int i = 0; i < N; i++) {
            const double want = pow(x[i], by[k]), narrow = pow((double)(float)x[i], by[k]), near = fabs(want) * 3e-16, close = fabs(narrow) * 3e-7;
            const bool same = want != want ? y[i] != y[i] : want - want != 0.0 ? y[i] == want : fabs(y[i] - want) <= near;
            const float most = (float)narrow;
            const bool same32 = most != most ? z[i] != z[i] : most - most != 0.0f ? z[i] == most : fabs((double)(z[i] - most)) <= close;
            const bool sign = want != want || (signbit(want) != 0) == (signbit(y[i]) != 0), sign32 = want != want || (signbit(want) != 0) == (signbit(z[i]) != 0);
            if (!same || !sign) fail_msg("%g ** %g: %g, not %g", x[i], by[k], y[i], want);
            if (!same32 || !sign32) fail_msg("float32: %g ** %g: %g, not %g", x[i], by[k], (double)z[i], want);
        }
    }
}

// Extremes, their places, sums and products of rows and columns of n numbers out of `data`, by plain loops.
static double number_at(const void *p, gn_dtype t, int64_t i) {
    return t == GN_F64 ? ((const double *)p)[i] : t == GN_F32 ? (double)((const float *)p)[i]
         : t == GN_I64 ? (double)((const int64_t *)p)[i] : (double)narrow_at(p, t, i);
}

static void check_folds(gn_context *g, gn_dtype t, int64_t rows, int64_t n, const void *data, int64_t step) {
    const bool real = t == GN_F32 || t == GN_F64;
    double *have[6], total = 0.0;
    gn_array *whole = gn_array_from(g, t, GN_SHAPE(rows, n * step), data);
    gn_array *a = step > 1 ? gn_slice(whole, 1, 0, n * step, step) : whole;
    for (int turned = 0; turned < 2; turned++) {
        const int axis = 1 - turned;
        gn_array *const x = turned ? gn_copy(gn_transpose(a)) : a;
        gn_array *const y[] = {gn_min(x, axis),  gn_max(x, axis), gn_argmin(x, axis), gn_argmax(x, axis),
                               gn_sum(x, axis), gn_prod(x, axis)};
        for (int k = 0; k < 6; k++) {
            have[k] = (double *)malloc(sizeof(double) * (size_t)rows);
            assert_true(have[k] != NULL && y[k] != NULL);
            assert_int_equal(gn_read(gn_cast(y[k], GN_F64), have[k], sizeof(double) * (size_t)rows), GN_OK);
        }
        for (int64_t r = 0; r < rows; r++) {
            double best[2] = {0, 0}, size = 0.0, product = 1.0;
            uint64_t ring = 1;
            int64_t at[2] = {-1, -1};
            total = 0.0;
            for (int64_t i = 0; i < n; i++) {
                const double v = number_at(data, t, r * n * step + i * step);
                total += v, size += fabs(v), product *= v;
                if (t == GN_I64) ring *= (uint64_t)((const int64_t *)data)[r * n * step + i * step];
                for (int k = 0; k < 2; k++)
                    if (at[k] < 0 || (best[k] == best[k] && (v != v || (k == 0 ? v < best[k] : v > best[k])))) best[k] = v, at[k] = i;
            }
            for (int k = 0; k < 2; k++) {
                const bool same = best[k] != best[k] ? have[k][r] != have[k][r] : have[k][r] == best[k];
                if (!same || have[2 + k][r] != (double)at[k])
                    fail_msg("%s, row %d of %d x %d, step %d: extreme %d is %g at %g, not %g at %d", gn_dtype_name(t), (int)r, (int)rows, (int)n,
                             (int)step, k, have[k][r], have[2 + k][r], best[k], (int)at[k]);
            }
            if (total != total ? have[4][r] == have[4][r] : !(fabs(have[4][r] - total) <= (t == GN_F32 ? 1e-6 : 1e-15) * size))
                fail_msg("%s: sum of row %d of %d x %d is %.17g, not %.17g", gn_dtype_name(t), (int)r, (int)rows, (int)n, have[4][r], total);
            if (real && !(product - product != 0.0 || fabs(product) < 1e-30 || fabs(product) > 1e30) &&
                !(fabs(have[5][r] - product) <= (t == GN_F32 ? 1e-7 : 1e-15 * (double)n) * fabs(product)))
                fail_msg("%s: product of row %d of %d x %d is %.17g, not %.17g", gn_dtype_name(t), (int)r, (int)rows, (int)n, have[5][r], product);
            if (t == GN_I64 && have[5][r] != (double)(int64_t)ring)
                fail_msg("product of row %d of %d x %d is %.17g", (int)r, (int)rows, (int)n, have[5][r]);
        }
        for (int k = 0; k < 6; k++) free(have[k]);
    }
}

static void test_folds(void **state) {
    (void)state;
    enum { MOST = 2 * 3 * 5003 };
    static const gn_dtype types[] = {GN_U8, GN_I8, GN_U16, GN_I16, GN_I32, GN_I64, GN_F32, GN_F64};
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 47, 63, 65, 127, 256, 257, 300, 511, 512, 513, 1000, 1025, 5003};
    static const gn_cpu cpus[] = {GN_CPU_PLAIN, GN_CPU_BASE, GN_CPU_AVX2, GN_CPU_AVX512};
    static union {
        uint8_t bytes[MOST * 8];
        uint64_t words[MOST];
        double d[MOST];
        float f[MOST];
        int32_t i[MOST];
        int64_t l[MOST];
    } data;
    if (test_on_vulkan()) return;
    for (int c = 0; c < 4; c++) {
        gn_options o = test_options();
        o.cpu = cpus[c];
        gn_context *g = test_share(&o);
        for (int k = 0; k < 8; k++)
            for (int i = 0; i < 21; i++)
                for (int kind = 0; kind < 3; kind++) {
                    const gn_dtype t = types[k];
                    for (int j = 0; j < MOST; j++) { // bits; sums of int64 that float64 holds; few values, so that there are several of each
                        const double v = kind == 1 ? (double)draw(7) - 3 : ldexp((double)draw(1u << 30) - (double)(1 << 29), -29);
                        if (t == GN_F64) data.d[j] = kind == 2 ? 1.0 + v / 64 : v;
                        else if (t == GN_F32) data.f[j] = (float)(kind == 2 ? 1.0 + v / 64 : v);
                        else if (t == GN_I64) data.l[j] = kind == 1 ? (int64_t)v : (int64_t)(v * 1e12);
                        else if (t == GN_I32) data.i[j] = kind == 1 ? (int32_t)v : (int32_t)(v * 2147483647.0);
                        else data.words[j] = kind == 1 ? 0x0101010101010101u * (uint64_t)draw(4) : (uint64_t)draw(1u << 31) << 33 ^ draw(1u << 31);
                    }
                    if (kind == 1 && i % 2 != 0 && t == GN_F64) data.d[draw((uint32_t)(3 * sizes[i]))] = (double)NAN;
                    if (kind == 1 && i % 2 != 0 && t == GN_F32) data.f[draw((uint32_t)(3 * sizes[i]))] = NAN;
                    GN_SCOPE(g) check_folds(g, t, 3, sizes[i], &data, 1 + kind % 2);
                    if (sizes[i] <= 65) GN_SCOPE(g) check_folds(g, t, 101, sizes[i], &data, 1);
                }
        assert_false(test_done(g, true));
    }
}

// Functions of float64 that vectors compute, against long double: tiny numbers, numbers of all sizes, those next to overflow.
static void test_hyperbolic(void **state) {
    (void)state;
    enum { N = 20000 };
    static const struct {
        const char *name;
        gn_array *(*fn)(gn_array *);
        long double (*truth)(long double);
        double ulp;
    } list[] = {{"sinh", gn_sinh, sinhl, 2}, {"cosh", gn_cosh, coshl, 2}, {"tanh", gn_tanh, tanhl, 2.5}, {"expm1", gn_expm1, expm1l, 1.5}};
    static const double special[] = {0.0, -0.0, 5e-324, -5e-324, 1e-308, -1e-300, 710.47, -710.47, 710.475, 710.476, 711, 1e300,
                                     (double)INFINITY, -(double)INFINITY, (double)NAN};
    static const gn_cpu cpus[] = {GN_CPU_PLAIN, GN_CPU_BASE, GN_CPU_AVX2, GN_CPU_AVX512};
    static double x[N], y[N];
    if (test_on_vulkan()) return;
    for (int i = 0; i < N; i++) {
        const double u = (double)draw(1u << 30) / (double)(1 << 29) - 1.0;
        x[i] = i % 4 == 0 ? u : i % 4 == 1 ? 712 * u : i % 4 == 2 ? u * exp(-700.0 * (double)draw(1000) / 1000) : copysign(710.3 + fabs(u) / 5, u);
    }
    memcpy(x, special, sizeof special);
    for (int c = 0; c < 4; c++) {
        gn_options o = test_options();
        o.cpu = cpus[c];
        gn_context *g = test_share(&o);
        for (int k = 0; k < 4; k++)
            GN_SCOPE(g) {
                assert_int_equal(gn_read(list[k].fn(gn_array_from(g, GN_F64, GN_SHAPE(N), x)), y, sizeof y), GN_OK);
                for (int i = 0; i < N; i++) {
                    const long double want = list[k].truth((long double)x[i]);
                    const double near = (double)want, ulp = near - near == 0.0 ? nextafter(fabs(near), (double)INFINITY) - fabs(near) : 0.0;
                    const bool same = want != want ? y[i] != y[i]
                                      : near - near != 0.0 ? y[i] == near
                                                           : fabsl((long double)y[i] - want) <= (long double)(list[k].ulp * ulp);
                    if (!same || (want == want && !signbit(y[i]) != !signbit(near)))
                        fail_msg("%s of %.17g: %.17g, not %.17Lg", list[k].name, x[i], y[i], want);
                }
            }
        assert_false(test_done(g, true));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_like_numpy),
        GN_TEST(test_fused),
        GN_TEST(test_special_rows),
        GN_TEST(test_half_compared),
        GN_TEST(test_wide_softmax),
        GN_TEST(test_narrow),
        GN_TEST(test_orders),
        GN_TEST(test_truth),
        GN_TEST(test_powers),
        cmocka_unit_test(test_folds),
        cmocka_unit_test(test_hyperbolic),
    };
    return test_run(tests);
}
