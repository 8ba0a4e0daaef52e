// Arithmetic of complex arrays against C's <complex.h> in long double, element by element, on views and with
// broadcasting; special values against NumPy's; gradients against central differences.
//
// Bounds, in units of the part's epsilon times the magnitude of the result: every function here is a few roundings
// of its parts, which may cancel within a part but not against the magnitude.

#include "test.h"

#include <complex.h>
#include <float.h>

typedef long double complex cx;

enum { MOST = 64 };

// Elements of a real or complex array, in C order.
static int64_t read_all(gn_array *a, cx *out) {
    bool wide = gn_dtype_of(a) == GN_C64 || gn_dtype_of(a) == GN_C128;
    gn_dtype part = !wide ? gn_dtype_of(a) : gn_dtype_of(a) == GN_C64 ? GN_F32 : GN_F64;
    unsigned char data[MOST * 16 + 16];
    int64_t n = gn_size(a);
    assert_true(n <= MOST);
    assert_int_equal(gn_read(a, data, gn_bytes(a)), GN_OK);
    for (int64_t i = 0; i < n; i++)
        out[i] = wide ? (long double)test_element(part, data, 2 * i) +
                            (long double)test_element(part, data, 2 * i + 1) * (cx)I
                      : (long double)test_element(part, data, i);
    return n;
}

static double unit(void) { return (double)draw(1u << 30) / (double)(1 << 29) - 1.0; }

// Numbers whose magnitudes spread over 2^-spread to 2^spread, some with a part of 0.
static gn_array *numbers(gn_context *g, gn_dtype t, gn_shape s, int spread) {
    gn_dtype part = t == GN_C64 || t == GN_F32 ? GN_F32 : GN_F64;
    gn_array *parts[2];
    for (int k = 0; k < 2; k++) {
        double data[2 * MOST];
        int64_t n = 1;
        for (int i = 0; i < s.rank; i++) n *= s.dim[i];
        assert_true(n <= 2 * MOST);
        for (int64_t i = 0; i < n; i++)
            data[i] = draw(9) == 0 ? 0.0 : ldexp(unit(), (int)draw((uint32_t)(2 * spread + 1)) - spread);
        gn_array *wide = gn_array_from(g, GN_F64, s, data);
        parts[k] = gn_eval(gn_cast(wide, part));
    }
    return t == GN_F32 || t == GN_F64 ? parts[0] : gn_complex(parts[0], parts[1]);
}

static gn_array *view_of(gn_context *g, gn_dtype t, int view) {
    switch (view) {
    case 0: return numbers(g, t, GN_SHAPE(7, 5), 6);
    case 1: return gn_transpose(numbers(g, t, GN_SHAPE(5, 7), 6));
    case 2: return gn_slice(numbers(g, t, GN_SHAPE(7, 11), 6), 1, -2, 0, -2);
    case 3: return gn_broadcast_to(numbers(g, t, GN_SHAPE(5), 6), GN_SHAPE(7, 5));
    default: return numbers(g, t, GN_SHAPE(1, 5), 6);
    }
}

static void expect_near(const char *what, gn_array *y, const cx *truth, int64_t n, gn_dtype t, double bound) {
    cx have[MOST];
    if (y == NULL) fail_msg("%s: NULL", what);
    assert_int_equal(gn_dtype_of(y), t);
    assert_int_equal(read_all(y, have), n);
    double eps = t == GN_C64 || t == GN_F32 ? 0x1p-23 : 0x1p-52;
    for (int64_t i = 0; i < n; i++) {
        double off = (double)cabsl(have[i] - truth[i]), size = (double)cabsl(truth[i]);
        if (!(off <= bound * eps * size))
            fail_msg("%s, element %d: %.9Lg%+.9Lgi, expected %.9Lg%+.9Lgi, off by %.3g eps", what, (int)i,
                     creall(have[i]), cimagl(have[i]), creall(truth[i]), cimagl(truth[i]), off / eps / size);
    }
}

// ---- functions of one array

typedef struct unary {
    const char *name;
    gn_array *(*fn)(gn_array *a);
    double bound;
} unary;

static cx unary_truth(const char *name, cx z) {
    if (strcmp(name, "gn_neg") == 0) return -z;
    if (strcmp(name, "gn_square") == 0) return z * z;
    if (strcmp(name, "gn_recip") == 0) return 1.0L / z;
    if (strcmp(name, "gn_exp") == 0) return cexpl(z);
    if (strcmp(name, "gn_log") == 0) return clogl(z);
    if (strcmp(name, "gn_sqrt") == 0) return csqrtl(z);
    if (strcmp(name, "gn_conj") == 0) return conjl(z);
    if (strcmp(name, "gn_sin") == 0) return csinl(z);
    if (strcmp(name, "gn_cos") == 0) return ccosl(z);
    if (strcmp(name, "gn_tan") == 0) return ctanl(z);
    if (strcmp(name, "gn_sinh") == 0) return csinhl(z);
    if (strcmp(name, "gn_cosh") == 0) return ccoshl(z);
    if (strcmp(name, "gn_tanh") == 0) return ctanhl(z);
    if (strcmp(name, "gn_asin") == 0) return casinl(z);
    if (strcmp(name, "gn_acos") == 0) return cacosl(z);
    if (strcmp(name, "gn_atan") == 0) return catanl(z);
    if (strcmp(name, "gn_asinh") == 0) return casinhl(z);
    if (strcmp(name, "gn_acosh") == 0) return cacoshl(z);
    if (strcmp(name, "gn_atanh") == 0) return catanhl(z);
    if (strcmp(name, "gn_log2") == 0) return clogl(z) / logl(2.0L);
    if (strcmp(name, "gn_log10") == 0) return clogl(z) / logl(10.0L);
#if LDBL_MANT_DIG == 113 // musl's logl is then log
    if (strcmp(name, "gn_log1p") == 0) {
        const long double x = creall(z), y = cimagl(z);
        return log1pl(x * (x + 2.0L) + y * y) / 2.0L + _Complex_I * atan2l(y, 1.0L + x);
    }
#endif
    if (strcmp(name, "gn_log1p") == 0) return clogl(1.0L + z);
    if (strcmp(name, "gn_expm1") == 0) return cexpl(z) - 1.0L;
    if (strcmp(name, "gn_sign") == 0) return z == 0.0L ? 0.0L : z / cabsl(z);
    if (strcmp(name, "gn_round") == 0) return rintl(creall(z)) + rintl(cimagl(z)) * I;
    return cabsl(z);
}

// musl's arc functions are short formulas, which lose digits and signs of 0.
#ifdef __EMSCRIPTEN__
enum { NO_ARCS = 1 };
#else
enum { NO_ARCS = 0 };
#endif

static void test_unary(void **state) {
    gn_context *g = (gn_context *)*state;
    // log's real part next to 1 has a test of its own.
    const unary list[] = {{"gn_neg", gn_neg, 0},     {"gn_square", gn_square, 3}, {"gn_recip", gn_recip, 6},
                          {"gn_exp", gn_exp, 6},     {"gn_sqrt", gn_sqrt, 6},     {"gn_conj", gn_conj, 0},
                          {"gn_abs", gn_abs, 3},     {"gn_log", gn_log, 40},
                          {"gn_sin", gn_sin, 8},     {"gn_cos", gn_cos, 8},       {"gn_tan", gn_tan, 16},
                          {"gn_sinh", gn_sinh, 8},   {"gn_cosh", gn_cosh, 8},     {"gn_tanh", gn_tanh, 16},
                          {"gn_log2", gn_log2, 40},  {"gn_log10", gn_log10, 40},  {"gn_log1p", gn_log1p, 40},
                          {"gn_expm1", gn_expm1, 40}, {"gn_sign", gn_sign, 6},    {"gn_round", gn_round, 0},
                          {"gn_asin", gn_asin, 8},   {"gn_acos", gn_acos, 8},     {"gn_atan", gn_atan, 8},
                          {"gn_asinh", gn_asinh, 8}, {"gn_acosh", gn_acosh, 8},   {"gn_atanh", gn_atanh, 8}};
    for (int d = 0; d < 2; d++)
        for (int view = 0; view < 5; view++)
            for (size_t f = 0; f < sizeof list / sizeof *list; f++) {
                if (NO_ARCS && strlen(list[f].name) >= 7 && strncmp(list[f].name, "gn_a", 4) == 0) continue;
                gn_scope_begin(g);
                gn_dtype t = d ? GN_C128 : GN_C64;
                gn_array *z = view_of(g, t, view);
                if (list[f].fn == gn_recip || list[f].fn == gn_log || list[f].fn == gn_log2 || list[f].fn == gn_log10) // not of 0
                    z = gn_where(gn_logical_not(z), gn_add_s(z, 3.0), z);
                cx x[MOST], y[MOST];
                int64_t n = read_all(z, x);
                for (int64_t i = 0; i < n; i++) y[i] = unary_truth(list[f].name, x[i]);
                if (list[f].fn == gn_abs) t = d ? GN_F64 : GN_F32;
                expect_near(list[f].name, list[f].fn(z), y, n, t, list[f].bound);
                gn_scope_end(g);
            }
}

// ---- of two arrays

static cx binary_truth(int op, cx a, cx b) {
    return op == 0 ? a + b : op == 1 ? a - b : op == 2 ? a * b : a / b;
}

static gn_array *binary(int op, gn_array *a, gn_array *b) {
    return op == 0 ? gn_add(a, b) : op == 1 ? gn_sub(a, b) : op == 2 ? gn_mul(a, b) : gn_div(a, b);
}

static gn_array *binary_s(int op, gn_array *a, double s) {
    switch (op) {
    case 0: return gn_add_s(a, s);
    case 1: return gn_sub_s(a, s);
    case 2: return gn_mul_s(a, s);
    case 3: return gn_div_s(a, s);
    case 4: return gn_rsub_s(a, s);
    default: return gn_rdiv_s(a, s);
    }
}

static void test_binary(void **state) {
    gn_context *g = (gn_context *)*state;
    const gn_dtype pairs[][3] = {{GN_C64, GN_C64, GN_C64},    {GN_C64, GN_F32, GN_C64},   {GN_F32, GN_C64, GN_C64},
                                 {GN_C128, GN_C128, GN_C128}, {GN_F64, GN_C128, GN_C128}, {GN_C128, GN_F64, GN_C128},
                                 {GN_C64, GN_C128, GN_C128},  {GN_F64, GN_C64, GN_C128}};
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
        for (int view = 0; view < 25; view += test_on_vulkan() ? 6 : 1)
            for (int op = 0; op < 4; op++) {
                if (view % 5 == 4 && view / 5 == 4) continue;
                gn_scope_begin(g);
                gn_array *a = view_of(g, pairs[p][0], view % 5), *b = view_of(g, pairs[p][1], view / 5);
                if (op == 3) b = gn_where(gn_eq_s(b, 0.0), gn_add_s(b, 2.0), b);
                cx x[MOST], z[MOST], y[MOST];
                read_all(gn_broadcast_to(a, GN_SHAPE(7, 5)), x);
                read_all(gn_broadcast_to(b, GN_SHAPE(7, 5)), z);
                for (int i = 0; i < 35; i++) y[i] = binary_truth(op, x[i], z[i]);
                expect_near(&"add\0sub\0mul\0div"[4 * op], binary(op, a, b), y, 35, pairs[p][2], op < 2 ? 1 : 6);
                gn_scope_end(g);
            }
}

// Rows as long as those that loops take whole vectors of: parts side by side, every second number, rows that repeat, chains.
static void test_long_rows(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { ROWS = 3, N = 1040 };
    for (int d = 0; d < 2; d++)
        for (int view = 0; view < 4; view++)
            for (int op = 0; op < 6; op++) {
                gn_scope_begin(g);
                const gn_dtype t = d ? GN_F64 : GN_F32;
                gn_array *a = gn_complex(gn_randn(g, t, GN_SHAPE(ROWS, N)), gn_randn(g, t, GN_SHAPE(ROWS, N)));
                gn_array *b = gn_complex(gn_randn(g, t, GN_SHAPE(ROWS, N)), gn_randn(g, t, GN_SHAPE(ROWS, N)));
                gn_eval(a), gn_eval(b);
                if (view == 1) a = gn_index(a, ":, ::2"), b = gn_index(b, ":, 1::2");
                if (view == 2) b = gn_index(b, "1");
                if (view == 3) a = gn_index(a, "::-1, 16:"), b = gn_index(b, ":, :-16");
                gn_array *result = op < 3 ? binary(op, a, b) : op == 3 ? gn_mul_s(gn_neg(a), 3.0) : op == 4 ? gn_conj(a)
                                                                                            : gn_sub(gn_add(a, b), gn_mul(a, b));
                gn_array *all[3] = {a, gn_broadcast_to(b, gn_shape_of(a)), gn_eval(result)};
                for (int k = 0; k < 3; k++) all[k] = gn_eval(gn_ravel(all[k]));
                for (int64_t at = 0; at < gn_size(a); at += MOST) {
                    cx x[MOST], z[MOST], y[MOST];
                    const int64_t n = read_all(gn_slice(all[0], 0, at, at + MOST, 1), x);
                    read_all(gn_slice(all[1], 0, at, at + MOST, 1), z);
                    for (int64_t i = 0; i < n; i++)
                        y[i] = op < 3 ? binary_truth(op, x[i], z[i]) : op == 3 ? -3.0L * x[i] : op == 4 ? conjl(x[i]) : x[i] + z[i] - x[i] * z[i];
                    const double bound = op == 2 ? 6 : op == 5 ? 1000 : 1; // differences cancel
                    expect_near("long", gn_slice(all[2], 0, at, at + MOST, 1), y, n, d ? GN_C128 : GN_C64, bound);
                }
                gn_scope_end(g);
            }
}

// Products and conjugates among sums, of rows as they lie in memory and of views that do not: just the bits that C gives, where
// each product and each sum is rounded once. On every set of instructions, as these have loops of their own.
typedef struct part_values {
    double re[4][3 * 101], im[4][3 * 101];
} part_values;

#define PAIR_FORMULA(name, T)                                                                      \
    static void name(int64_t n, const part_values *v, double *re, double *im) {                    \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T ar = (T)v->re[0][i], ai = (T)v->im[0][i], br = (T)v->re[1][i], bi = (T)v->im[1][i]; \
            const T cr = (T)v->re[2][i], ci = (T)v->im[2][i], dr = (T)v->re[3][i], di = -(T)v->im[3][i]; \
            const T p1 = ar * br, p2 = ai * bi, p3 = ar * bi, p4 = ai * br;                        \
            const T x = p1 - p2, y = p3 + p4, s = x + cr, t = y + ci;                              \
            const T q1 = s * dr, q2 = t * di, q3 = s * di, q4 = t * dr, u = q1 - q2, w = q3 + q4;  \
            const T m = x * (T)0.375, k = y * (T)0.375;                                            \
            re[i] = (double)(T)(u - m);                                                            \
            im[i] = (double)-(T)(w - k);                                                           \
        }                                                                                          \
    }
PAIR_FORMULA(pair_floats, float)
PAIR_FORMULA(pair_doubles, double)

// conj((a b + c) conj(d) - .375 a b)
static gn_array *pair_formula(gn_array *const *a) {
    gn_array *ab = gn_mul(a[0], a[1]);
    return gn_conj(gn_sub(gn_mul(gn_add(ab, a[2]), gn_conj(a[3])), gn_mul_s(ab, 0.375)));
}

// Views: 1 a transposed operand, 2 one column for all and every second number.
static void check_pairs(gn_context *g, gn_dtype t, int64_t n, int views) {
    static part_values v;
    static double want[2][3 * 101], have[2][3 * 101];
    const gn_dtype part = t == GN_C64 ? GN_F32 : GN_F64;
    gn_array *a[4];
    for (int k = 0; k < 4; k++) {
        for (int64_t i = 0; i < 3 * n; i++) {
            v.re[k][i] = (double)(float)unit(), v.im[k][i] = (double)(float)unit();
            if (draw(40) == 0) v.re[k][i] = draw(2) == 0 ? (double)INFINITY : -0.0;
            if (views == 2 && k == 0) v.re[k][i] = v.re[k][i / n * n], v.im[k][i] = v.im[k][i / n * n];
        }
        gn_array *re = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(3, n), v.re[k]), part), *im = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(3, n), v.im[k]), part);
        a[k] = gn_eval(gn_complex(re, im));
        if (views == 2 && k == 0) a[k] = gn_index(a[k], ":, :1");
        if (views == 2 && k == 3) a[k] = gn_index(gn_eval(gn_stack((gn_array *[]){a[k], a[1]}, 2, 2)), ":, :, 0");
        if (views == 1 && k == 1) a[k] = gn_transpose(gn_copy(gn_transpose(a[k])));
        if (views == 1 && k == 2) a[k] = gn_slice(gn_concat(&a[k], 1, 0), 1, 0, n, 1);
    }
    gn_array *y = pair_formula(a);
    (t == GN_C64 ? pair_floats : pair_doubles)(3 * n, &v, want[0], want[1]);
    for (int k = 0; k < 2; k++) {
        gn_array *p = gn_cast(k == 0 ? gn_real(y) : gn_imag(y), GN_F64);
        assert_int_equal(gn_read(p, have[k], gn_bytes(p)), GN_OK);
        for (int64_t i = 0; i < 3 * n; i++)
            if (memcmp(&have[k][i], &want[k][i], sizeof(double)) != 0 && !(isnan(have[k][i]) && isnan(want[k][i])))
                fail_msg("%s, %d, part %d, element %d: %a, not %a", gn_dtype_name(t), (int)n, k, (int)i, have[k][i], want[k][i]);
    }
}

// Quotients of numbers side by side and of every second one, which are taken apart: the same bits, of powers of two in any range, too.
static void check_quotients(gn_context *g, gn_dtype part, int64_t n, const double *limits) {
    double have[2][2 * 101];
    gn_array *near[2], *apart[2];
    for (int k = 0; k < 2; k++) {
        double x[2][101];
        for (int64_t i = 0; i < n; i++)
            for (int p = 0; p < 2; p++) {
                x[p][i] = draw(2) == 0 ? unit() : ldexp(draw(2) == 0 ? 1.0 : -1.0, (int)draw(2 * 140) - 140);
                if (draw(12) == 0) x[p][i] = limits[draw(6)];
            }
        gn_array *re = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(n, 1), x[0]), part), *im = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(n, 1), x[1]), part);
        near[k] = gn_eval(gn_complex(gn_reshape(re, GN_SHAPE(n)), gn_reshape(im, GN_SHAPE(n))));
        apart[k] = gn_index(gn_eval(gn_complex(gn_add(re, gn_zeros(g, part, GN_SHAPE(n, 2))), gn_copy(gn_broadcast_to(im, GN_SHAPE(n, 2))))), ":, 0");
    }
    for (int k = 0; k < 2; k++) {
        gn_array *y = k == 0 ? gn_div(near[0], near[1]) : gn_div(apart[0], apart[1]);
        gn_array *parts[2];
        parts[0] = gn_cast(gn_real(y), GN_F64), parts[1] = gn_cast(gn_imag(y), GN_F64);
        for (int p = 0; p < 2; p++) assert_int_equal(gn_read(parts[p], have[k] + p * n, gn_bytes(parts[p])), GN_OK);
    }
    for (int64_t i = 0; i < 2 * n; i++)
        if (memcmp(&have[0][i], &have[1][i], sizeof(double)) != 0 && !(isnan(have[0][i]) && isnan(have[1][i])))
            fail_msg("%s, %d, element %d: %a, not %a", gn_dtype_name(part), (int)n, (int)i, have[0][i], have[1][i]);
}

// Numbers of one buffer, of which the one's imaginary part lies before the other's real part.
static void check_neighbours(gn_context *g, gn_dtype part, int64_t n) {
    static double x[2][102], want[2][101], have[2][101];
    gn_array *parts[2];
    for (int p = 0; p < 2; p++) {
        for (int64_t i = 0; i <= n; i++) x[p][i] = (double)(float)unit();
        for (int64_t i = 0; i < n; i++) want[p][i] = part == GN_F32 ? (double)((float)x[p][i] + (float)x[p][i + 1]) : x[p][i] + x[p][i + 1];
        parts[p] = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(n + 1), x[p]), part);
    }
    gn_array *z = gn_eval(gn_complex(parts[0], parts[1])), *y = gn_add(gn_slice(z, 0, 0, n, 1), gn_slice(z, 0, 1, n + 1, 1));
    for (int p = 0; p < 2; p++) {
        parts[p] = gn_cast(p == 0 ? gn_real(y) : gn_imag(y), GN_F64);
        assert_int_equal(gn_read(parts[p], have[p], gn_bytes(parts[p])), GN_OK);
        assert_memory_equal(have[p], want[p], (size_t)n * sizeof(double));
    }
}

static void test_pairs(void **state) {
    (void)state;
    static const double limits[] = {(double)INFINITY, -(double)INFINITY, (double)NAN, 0.0, 1e-310, 3e38};
    static const int64_t lengths[] = {1, 2, 7, 16, 53, 101};
    static const gn_cpu cpus[] = {GN_CPU_PLAIN, GN_CPU_BASE, GN_CPU_AVX2, GN_CPU_AVX512};
    for (int k = 0; k < (test_on_vulkan() ? 1 : 4); k++) {
        gn_options o = test_options();
        o.cpu = cpus[k];
        gn_context *g = test_share(&o);
        for (int i = 0; i < 6; i++)
            for (int kind = 0; kind < 6; kind++)
                GN_SCOPE(g) {
                    check_pairs(g, kind % 2 == 0 ? GN_C64 : GN_C128, lengths[i], kind / 2);
                    check_quotients(g, kind % 2 == 0 ? GN_F32 : GN_F64, lengths[i], limits);
                    check_neighbours(g, kind % 2 == 0 ? GN_F32 : GN_F64, lengths[i]);
                }
        assert_false(test_done(g, true));
    }
}

// Powers, products, truth, triangles and contractions of complex and mixed operands.
static void test_more(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int d = 0; d < 2; d++) {
        const gn_dtype t = d ? GN_C128 : GN_C64;
        gn_array *a = view_of(g, t, 0), *b = gn_div_s(view_of(g, t, 1), 16), *real = view_of(g, d ? GN_F64 : GN_F32, 0);
        cx x[MOST], y[MOST], z[MOST], w[MOST];
        int64_t n = read_all(a, x);
        assert_int_equal(read_all(b, y), n);
        read_all(real, w);
        for (int64_t i = 0; i < n; i++) z[i] = x[i] == 0.0L ? NAN : cpowl(x[i], y[i]);
        gn_array *zero = gn_eq_s(a, 0.0), *base = gn_where(zero, gn_ones_like(a), a);
        for (int64_t i = 0; i < n; i++) z[i] = x[i] == 0.0L ? 1.0L : z[i];
        expect_near("pow", gn_pow(base, b), z, n, t, 200);
        for (int64_t i = 0; i < n; i++) z[i] = cpowl(x[i] == 0.0L ? 1.0L : x[i], 3.0L);
        expect_near("pow_s", gn_pow_s(base, 3), z, n, t, 60);
        for (int64_t i = 0; i < n; i++) z[i] = x[i] * w[i];
        expect_near("mixed", gn_mul(a, real), z, n, t, 6);
        const int64_t rows = gn_dim(a, 0), columns = gn_dim(a, 1);
        assert_int_equal(gn_rank(a), 2);
        for (int64_t i = 0; i < rows; i++) {
            z[i] = 1.0L;
            for (int64_t k = 0; k < columns; k++) z[i] *= x[i * columns + k];
        }
        expect_near("prod", gn_prod(a, 1), z, rows, t, 60);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < rows; k++) {
                z[i * rows + k] = 0.0L;
                for (int64_t j = 0; j < columns; j++) z[i * rows + k] += x[i * columns + j] * y[k * columns + j];
            }
        gn_array *product = gn_matmul(a, gn_transpose(b));
        gn_array *off = gn_sub(gn_einsum(g, "ij,kj->ik", a, b), product);
        assert_true(gn_item(gn_max(gn_abs(off), GN_ALL)) <= (d ? 1e-12 : 1e-3));
        const int one = 1;
        off = gn_sub(gn_tensordot(a, b, &one, &one, 1), product);
        assert_true(gn_item(gn_max(gn_abs(off), GN_ALL)) <= (d ? 1e-12 : 1e-3));
        off = gn_sub(gn_add(gn_tril(a, 0), gn_triu(a, 1)), a);
        assert_true(gn_item(gn_any(off, GN_ALL)) == 0 && gn_item(gn_any(a, GN_ALL)) == 1);
        assert_true(gn_item(gn_all(gn_sub(a, a), GN_ALL)) == 0 && gn_item(gn_all(gn_tril(a, -99), GN_ALL)) == 0);
    }
    gn_array *none = gn_zeros(g, GN_C64, GN_SHAPE(2, 0));
    expect_values(gn_real(gn_prod(none, 1)), 1, 1);
    expect_shape(gn_prod(none, GN_KEEP(GN_ALL)), 1, 1);
    gn_array *zero = gn_zeros(g, GN_C128, GN_SHAPE(3)), *powers = gn_array_from(g, GN_F64, GN_SHAPE(3), (const double[]){0, 2, -1});
    gn_array *y = gn_pow(zero, powers);
    expect_values(gn_real(y), 1, 0, NAN);
    expect_values(gn_imag(y), 0, 0, NAN);
    expect_values(gn_logical_and(gn_add_s(zero, 1), zero), 0, 0, 0);
    gn_array *far_out = gn_complex(gn_full(g, GN_F64, GN_SHAPE(2), 800), gn_array_from(g, GN_F64, GN_SHAPE(2), (const double[]){0, 1}));
    expect_values(gn_real(gn_tanh(far_out)), 1, 1);
    expect_values(gn_imag(gn_sinh(far_out)), 0, INFINITY);
}

// Real operands of other dtypes: every one goes with complex numbers.
static void test_integers(void **state) {
    gn_context *g = (gn_context *)*state;
    const gn_dtype list[] = {GN_BOOL, GN_U8, GN_I8, GN_U32, GN_I32, GN_I64, GN_F16, GN_BF16};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int op = 0; op < 4; op++)
            for (int swapped = 0; swapped < 2; swapped++) {
                gn_array *a = gn_cast(gn_full(g, GN_F32, GN_SHAPE(1), list[i] == GN_I8 ? -128 : list[i] == GN_BOOL ? 1 : 3),
                                      list[i]);
                gn_array *z = gn_reshape(gn_complex(gn_scalar(g, GN_F32, 2), gn_scalar(g, GN_F32, -0.5)), GN_SHAPE(1));
                cx x, y, w;
                read_all(a, &x);
                read_all(z, &y);
                w = swapped ? binary_truth(op, y, x) : binary_truth(op, x, y);
                expect_near(gn_dtype_name(list[i]), swapped ? binary(op, z, a) : binary(op, a, z), &w, 1, GN_C64, 6);
            }
}

static void test_scalars(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int d = 0; d < 2; d++)
        for (int op = 0; op < 6; op++) {
            gn_dtype t = d ? GN_C128 : GN_C64;
            gn_array *a = view_of(g, t, 2);
            if (op == 5) a = gn_where(gn_eq_s(a, 0.0), gn_add_s(a, 2.0), a);
            cx x[MOST], y[MOST];
            int64_t n = read_all(a, x);
            for (int64_t i = 0; i < n; i++)
                y[i] = op < 4 ? binary_truth(op, x[i], 1.75L) : binary_truth(op == 4 ? 1 : 3, 1.75L, x[i]);
            expect_near("an op with a number", binary_s(op, a, 1.75), y, n, t, op < 2 || op == 4 ? 1 : 6);
        }
}

// ---- comparisons, choices, dtypes

static void test_choices(void **state) {
    gn_context *g = (gn_context *)*state;
    const float a[] = {1, 2, 1, 2, 0, 0, NAN, 0}, b[] = {1, 2, 1, 3, 0, 0, NAN, 0};
    gn_array *x = gn_array_from(g, GN_C64, GN_SHAPE(4), a), *y = gn_array_from(g, GN_C64, GN_SHAPE(4), b);
    expect_values(gn_eq(x, y), 1, 0, 1, 0);
    expect_values(gn_ne(x, y), 0, 1, 0, 1);
    expect_values(gn_eq_s(x, 0.0), 0, 0, 1, 0);
    expect_values(gn_ne_s(x, 0.0), 1, 1, 0, 1);
    expect_values(gn_isnan(x), 0, 0, 0, 1);
    expect_values(gn_isinf(gn_div_s(x, 0.0)), 1, 1, 0, 0);
    expect_values(gn_isfinite(x), 1, 1, 1, 0);
    expect_values(gn_logical_not(x), 0, 0, 1, 0);
    expect_values(gn_count_nonzero(x, GN_ALL), 3);
    expect_values(gn_logical_and_s(x, 0.5), 1, 1, 0, 1);
    expect_values(gn_logical_and_s(x, 0.0), 0, 0, 0, 0);
    expect_values(gn_logical_or_s(x, 0.0), 1, 1, 0, 1);
    expect_values(gn_logical_xor_s(x, -3.0), 0, 0, 1, 0);
    gn_array *z = gn_where(gn_eq(x, y), x, gn_ones(g, GN_F32, GN_SHAPE(1)));
    expect_values(gn_real(z), 1, 1, 0, 1);
    expect_values(gn_imag(z), 2, 0, 0, 0);
    gn_array *wide = gn_cast(x, GN_C128), *from = gn_cast(gn_arange(g, GN_I32, 0, 3, 1), GN_C64);
    assert_int_equal(gn_dtype_of(wide), GN_C128);
    expect_values(gn_imag(wide), 2, 2, 0, 0);
    expect_values(gn_real(from), 0, 1, 2);
    expect_values(gn_imag(from), 0, 0, 0);
    expect_values(gn_imag(gn_cast(wide, GN_C64)), 2, 2, 0, 0);
}

// ---- work that is pending

// What pending numbers read keeps its values, and their parts are views once somebody asks for them.
static void test_pending(void **state) {
    gn_context *g = (gn_context *)*state;
    const float a[] = {1, 2, 3, -4, 0, 1}, b[] = {2, 0, 1, 1, -1, 3}, other[] = {9, 9, 9, 9, 9, 9};
    gn_array *x = gn_array_from(g, GN_C64, GN_SHAPE(3), a), *y = gn_array_from(g, GN_C64, GN_SHAPE(3), b);
    gn_array *z = gn_conj(gn_add_s(gn_mul(x, y), 1.0)), *size = gn_abs(gn_mul(x, x)), *part = gn_real(gn_add(x, y));
    gn_array *held = gn_eval(gn_add(x, x)), *next = gn_sub(held, y);
    assert_non_null(strstr(gn_explain(z), "gn_complex (3,) complex64: pending"));
    assert_int_equal(gn_write(x, other, sizeof other), GN_OK);
    assert_int_equal(gn_write(held, other, sizeof other), GN_OK);
    expect_values(gn_real(z), 3, 8, -2);
    expect_values(gn_imag(z), -4, 1, 1);
    expect_values(size, 5, 25, 1);
    expect_values(part, 3, 4, -1);
    expect_values(gn_real(next), 0, 5, 1);
    expect_values(gn_imag(next), 4, -9, -1);

    gn_array *w = gn_neg(y), *re = gn_real(w), *later = gn_mul_s(w, 2.0);
    assert_int_equal(gn_assign(re, gn_full(g, GN_F32, GN_SHAPE(1), 7.0)), GN_OK);
    expect_values(gn_real(w), 7, 7, 7);
    expect_values(gn_imag(w), -0.0, -1, -3);
    expect_values(gn_real(later), -4, -2, 2);

    gn_array *v = gn_zeros(g, GN_C128, GN_SHAPE(2, 3)), *row = gn_slice(v, 0, 1, 2, 1);
    assert_int_equal(gn_assign(row, gn_cast(gn_conj(y), GN_C128)), GN_OK);
    expect_values(gn_imag(v), 0, 0, 0, -0.0, -1, -3);
    expect_values(gn_real(gn_copy(gn_square(y))), 4, 0, -8);
    gn_array *all[3] = {gn_neg(y), gn_conj(y), gn_add(y, y)};
    assert_int_equal(gn_eval_all(all, 3), GN_OK);
    expect_values(gn_imag(all[0]), -0.0, -1, -3);
    expect_values(gn_imag(all[1]), -0.0, -1, -3);
    expect_values(gn_imag(all[2]), 0, 2, 6);
}

// Sums of more products than a program has room for; what they share is computed in between.
static void test_long_chains(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int round = 0; round < 3; round++) {
        gn_array *x[6], *y = NULL, *shared = NULL;
        cx have[6][MOST], want[MOST];
        for (int k = 0; k < 6; k++) {
            x[k] = numbers(g, GN_C64, GN_SHAPE(7), 0);
            read_all(x[k], have[k]);
        }
        for (int i = 0; i < 7; i++) want[i] = have[0][i];
        y = x[0];
        for (int k = 1; k < 6; k++) {
            y = gn_add(gn_mul(y, x[k]), gn_conj(x[k - 1]));
            if (k == 2) shared = y;
            if (k > 2) y = gn_sub(y, shared);
            if (k == 3 + round) gn_eval(shared);
            for (int i = 0; i < 7; i++) {
                want[i] = want[i] * have[k][i] + conjl(have[k - 1][i]);
                if (k == 2) have[0][i] = want[i]; // not read any more
                if (k > 2) want[i] -= have[0][i];
            }
        }
        cx got[MOST];
        assert_int_equal(read_all(y, got), 7);
        for (int i = 0; i < 7; i++) assert_true(cabsl(got[i] - want[i]) < 1e-4L);
    }
}

// ---- special values, as NumPy has them

static gn_array *one(gn_context *g, double re, double im) {
    return gn_complex(gn_scalar(g, GN_F32, re), gn_scalar(g, GN_F32, im));
}

static void expect_one(gn_array *z, double re, double im) {
    expect_values(gn_real(z), re);
    expect_values(gn_imag(z), im);
}

// exp where parts are infinite or NaN, and where exp of the real part alone overflows.
static void test_exp_ends(void **state) {
    gn_context *g = (gn_context *)*state;
    const double inf = (double)INFINITY, nan = (double)NAN;
    const double in[][4] = {{inf, 0, inf, 0},     {inf, -0.0, inf, -0.0}, {inf, 1, inf, inf},    {inf, 2, -inf, inf},
                            {inf, -3, -inf, -inf}, {inf, inf, inf, nan},   {inf, nan, inf, nan},  {-inf, 1, 0, 0},
                            {-inf, 2, -0.0, 0},   {-inf, -2, -0.0, -0.0}, {-inf, inf, 0, 0},     {-inf, nan, 0, 0},
                            {-inf, -0.0, 0, -0.0}, {nan, 0, nan, 0},       {nan, -0.0, nan, -0.0}, {nan, 1, nan, nan},
                            {1, inf, nan, nan},   {1, nan, nan, nan},     {0, -inf, nan, nan},   {1000, 0, inf, 0},
                            {1000, 3, -inf, inf}};
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
        gn_array *z = one(g, in[i][0], in[i][1]);
        expect_one(gn_exp(z), in[i][2], in[i][3]);
        expect_one(gn_exp(gn_cast(z, GN_C128)), in[i][2], in[i][3]);
    }
    // The real part is finite, the imaginary one is not; and the other way round.
    const cx far[] = {cexpl(95.0L + (long double)1.570796f * (cx)I), cexpl(95.0L + (long double)1e-5f * (cx)I)};
    gn_array *(*const fn[])(gn_array *) = {gn_exp, gn_expm1};
    for (int i = 0; i < 2; i++) {
        double re = gn_item(gn_real(fn[i](one(g, 95, (double)1.570796f))));
        double im = gn_item(gn_imag(fn[i](one(g, 95, (double)1e-5f))));
        assert_true(fabs(re - (double)creall(far[0])) < 1e-6 * (double)creall(far[0]));
        assert_true(fabs(im - (double)cimagl(far[1])) < 1e-6 * (double)cimagl(far[1]));
    }
}

// Where exp of a part overflows: parts of results are finite on their own, as far as a small sine or cosine reaches.
static void test_overflow(void **state) {
    gn_context *g = (gn_context *)*state;
    const unary list[] = {{"gn_exp", gn_exp, 0},   {"gn_expm1", gn_expm1, 0}, {"gn_sinh", gn_sinh, 0},
                          {"gn_cosh", gn_cosh, 0}, {"gn_sin", gn_sin, 1},     {"gn_cos", gn_cos, 1}};
    const double large[2][8] = {{87.9, 88.6, 89.2, 95, 159.5, 160.5, 170, 230}, {708.9, 709.5, 710.3, 900, 1388, 1390, 1410, 2200}};
    const double small[] = {0, -0.0, 1, 1.5707963267948966, -1.5707963267948966, 3.1415926535897931, -9, 1e-5, -1e-20, 1e-31, -2e-37, 1e-200, -1e-300};
    enum { LARGE = 8, SMALL = sizeof small / sizeof *small, N = 2 * LARGE * SMALL };
    double in[2 * N], y[2 * N];
    for (int d = 0; d < 2; d++)
        for (size_t f = 0; f < sizeof list / sizeof *list; f++) {
            const int turned = list[f].bound > 0; // sin and cos grow along the imaginary axis
            for (int i = 0; i < N; i++) {
                const double x = large[d][i / 2 % LARGE] * (i % 2 ? -1 : 1), least = d ? 0 : 1e-37, angle = small[i / 2 / LARGE];
                in[2 * i + turned] = x;
                in[2 * i + 1 - turned] = fabs(angle) < least ? copysign(0.0, angle) : angle; // float32's normal numbers
            }
            gn_array *a = gn_array_from(g, GN_C128, GN_SHAPE(N), in);
            if (!d) a = gn_cast(a, GN_C64);
            assert_int_equal(gn_read(gn_cast(list[f].fn(a), GN_C128), y, sizeof y), GN_OK);
            assert_int_equal(gn_read(gn_cast(a, GN_C128), in, sizeof in), GN_OK);
            for (int i = 0; i < 2 * N; i++) {
                const long double parts[2] = {(long double)in[i / 2 * 2], (long double)in[i / 2 * 2 + 1]};
                const long double eps = d ? 0x1p-52L : 0x1p-23L, most = d ? (long double)DBL_MAX : (long double)FLT_MAX;
                const long double least = d ? 0x1p-1022L : 0x1p-126L;
                cx z, truth;
                memcpy(&z, parts, sizeof z);
                truth = unary_truth(list[f].name, z);
                const long double have = (long double)y[i], want = i % 2 ? cimagl(truth) : creall(truth);
                if (fabsl(fabsl(want) / most - 1) < 16 * eps) continue;
                const bool same = fabsl(want) > most ? have == copysignl((long double)INFINITY, want)
                                                     : fabsl(have - want) <= 8 * eps * fabsl(want) + least;
                if (!same || !signbit(have) != !signbit(want))
                    fail_msg("%s of %g%+gi, part %d: %.9Lg, expected %.9Lg", list[f].name, (double)parts[0], (double)parts[1], i % 2, have, want);
            }
        }
}

// The real part of log where the magnitude is near 1, against squares that are exact in wider numbers.
static void test_log_near_one(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 20000 };
    static float x[2 * N], y[2 * N];
    for (int i = 0; i < N; i++) {
        double angle = 4.0 * unit(), size = 1.0 + (i % 3 == 0 ? 0.0 : ldexp(0.5 * unit(), -(i % 40)));
        x[2 * i] = (float)(size * cos(angle));
        x[2 * i + 1] = (float)(size * sin(angle));
        if (i % 5 == 0) x[2 * i] = (float)(1.0 + ldexp(unit(), -(i % 30) - 1)), x[2 * i + 1] = (float)ldexp(unit(), -(i % 30));
    }
    memcpy(x, (const float[]){1, 0, 0, -1, 0.6f, 0.8f, -1, 0.0f, 1, 1e-10f, 1e-15f, 1}, sizeof(float) * 12);
    assert_int_equal(gn_read(gn_log(gn_array_from(g, GN_C64, GN_SHAPE(N), x)), y, sizeof y), GN_OK);
    for (int i = 0; i < N; i++) {
        long double a = (long double)x[2 * i], b = (long double)x[2 * i + 1], most = fabsl(a) > fabsl(b) ? a : b;
        long double least = fabsl(a) > fabsl(b) ? b : a, truth = log1pl((most * most - 1.0L) + least * least) / 2.0L;
        if (!(fabsl((long double)y[2 * i] - truth) <= 4.0L * 0x1p-24L * fabsl(truth)) && fabsl(truth) > 0x1p-126L)
            fail_msg("log(%.9Lg%+.9Lgi): %.9g, expected %.9Lg", a, b, (double)y[2 * i], truth);
        assert_true(fabsl((long double)y[2 * i + 1] - atan2l(b, a)) <= 2.0L * 0x1p-23L * fabsl(atan2l(b, a)));
    }
    // float64: 1 + d and (1 + d) i for small d have log1p(d).
    for (int k = 1; k < 52; k++)
        for (int s = -1; s < 2; s += 2) {
            const double d = s * ldexp(1.0, -k), w[4] = {1.0 + d, 0.0, 0.0, -1.0 - d};
            double z[4];
            assert_int_equal(gn_read(gn_log(gn_array_from(g, GN_C128, GN_SHAPE(2), w)), z, sizeof z), GN_OK);
            assert_true(fabs(z[0] - log1p(d)) <= 0x1p-52 * fabs(log1p(d)) && z[2] == z[0]);
        }
    // 3 / 5 and 4 / 5 as float64: the digits cut off are the whole result.
    const double w[2] = {0.6, 0.8};
    double z[2];
    assert_int_equal(gn_read(gn_log(gn_array_from(g, GN_C128, GN_SHAPE(1), w)), z, sizeof z), GN_OK);
    // 0.6 = 3/5 - 1/45035996273704960, 0.8 = 4/5 + 1/22517998136852480
    assert_true(fabs(z[0] - (-0.6 / 45035996273704960.0 + 0.8 / 22517998136852480.0)) < 1e-30);
}

// The six arc functions: both parts on their own within some units in the last place, from tiny numbers to huge ones, next to
// the branch points and on both sides of the cuts; infinities, NaN and signs of 0 as in C's Annex G.
static void test_arcs(void **state) {
    gn_context *g = (gn_context *)*state;
    if (NO_ARCS) skip();
    const unary list[] = {{"gn_asin", gn_asin, 0},   {"gn_acos", gn_acos, 0},   {"gn_atan", gn_atan, 0},
                          {"gn_asinh", gn_asinh, 0}, {"gn_acosh", gn_acosh, 0}, {"gn_atanh", gn_atanh, 0}};
    const double some[] = {0, -0.0, 1e-30, -1e-9, 1e-4, 0.3, -0.9999, 1, -1, 1.00001, 1.6, -40, 3e7, -1e25, 3e38, (double)INFINITY, -(double)INFINITY, (double)NAN};
    enum { SOME = sizeof some / sizeof *some, N = SOME * SOME };
    double in[2 * N], y[2 * N];
    for (int d = 0; d < 2; d++)
        for (size_t f = 0; f < sizeof list / sizeof *list; f++) {
            for (int i = 0; i < N; i++) in[2 * i] = some[i / SOME], in[2 * i + 1] = some[i % SOME];
            gn_array *a = gn_array_from(g, GN_C128, GN_SHAPE(N), in);
            if (!d) a = gn_cast(a, GN_C64);
            assert_int_equal(gn_read(gn_cast(list[f].fn(a), GN_C128), y, sizeof y), GN_OK);
            assert_int_equal(gn_read(gn_cast(a, GN_C128), in, sizeof in), GN_OK);
            for (int i = 0; i < N; i++) {
                const long double parts[2] = {(long double)in[2 * i], (long double)in[2 * i + 1]};
                cx z, truth;
                memcpy(&z, parts, sizeof z); // keeps infinities and signs of 0, which a sum does not
                truth = unary_truth(list[f].name, z);
                for (int k = 0; k < 2; k++) {
                    long double have = (long double)y[2 * i + k], want = k ? cimagl(truth) : creall(truth);
                    long double bound = d ? 0x1p-52L : 0x1p-23L, least = d ? 0x1p-1022L : 0x1p-126L;
                    const bool nans = in[2 * i] != in[2 * i] || in[2 * i + 1] != in[2 * i + 1]; // C leaves a 0's sign open
                    bool same = want != want ? have != have
                                : isinf(want) ? have == want
                                              : fabsl(have - want) <= 8 * bound * fabsl(want) + least &&
                                                    (!signbit(have) == !signbit(want) || (want == 0 && nans));
                    if (!same) fail_msg("%s of %g%+gi, part %d: %.9Lg, expected %.9Lg", list[f].name, in[2 * i], in[2 * i + 1], k, have, want);
                }
            }
        }
}

static void test_special(void **state) {
    gn_context *g = (gn_context *)*state;
    const double inf = (double)INFINITY, nan = (double)NAN;
    expect_one(gn_div(one(g, 1, -2), one(g, 0, 0)), inf, -inf);
    expect_one(gn_div(one(g, 0, 1), one(g, 0, 0)), nan, inf);
    expect_one(gn_div(one(g, 3, 4), one(g, inf, 0)), 0, 0);
    expect_one(gn_div(one(g, 1e38, 1e38), one(g, 1e38, 1e38)), 1, 0); // no overflow on the way
    expect_one(gn_div(one(g, 1e-37, 1e-37), one(g, 1e-37, 1e-37)), 1, 0);
    expect_one(gn_mul(one(g, inf, 1), gn_scalar(g, GN_F32, 2)), inf, 2);
    expect_one(gn_exp(one(g, inf, 0)), inf, 0);
    expect_one(gn_exp(one(g, -inf, 1)), 0, 0);
    expect_one(gn_exp(one(g, 0, 0)), 1, 0);
    expect_one(gn_sqrt(one(g, -4, 0)), 0, 2);
    expect_one(gn_sqrt(one(g, -4, -0.0)), 0, -2);
    expect_one(gn_sqrt(one(g, 0, 0)), 0, 0);
    expect_one(gn_sqrt(one(g, 9, 0)), 3, 0);
    expect_one(gn_sqrt(one(g, inf, 1)), inf, 0);
    expect_one(gn_sqrt(one(g, 1, inf)), inf, inf);
    expect_one(gn_sqrt(one(g, -inf, -inf)), inf, -inf);
    expect_one(gn_sqrt(one(g, nan, inf)), inf, inf);
    expect_one(gn_sqrt(one(g, 0x1p126, 0)), 0x1p63, 0);
    expect_one(gn_sqrt(one(g, -0x1p126, 0)), 0, 0x1p63);
    expect_one(gn_log(one(g, 1, 0)), 0, 0);
    assert_true(fabs(gn_item(gn_real(gn_log(one(g, 3e38, 3e38)))) - 88.9435) < 1e-3);
    expect_one(gn_log(one(g, 0, 0)), -inf, 0);
    expect_values(gn_abs(one(g, 3, -4)), 5);
    expect_values(gn_abs(one(g, nan, -inf)), inf);
    expect_values(gn_abs(one(g, nan, 1)), nan);
    expect_values(gn_abs(one(g, 3e38, 0)), (double)3e38f);
    for (int d = 0; d < 2; d++) { // whose magnitude is out of range
        const gn_dtype part = d ? GN_F64 : GN_F32;
        const double most = d ? DBL_MAX : (double)FLT_MAX;
        gn_array *z = gn_sign(gn_complex(gn_scalar(g, part, most), gn_scalar(g, part, -most)));
        assert_true(fabs(gn_item(gn_real(z)) - sqrt(0.5)) < 1e-6 && fabs(gn_item(gn_imag(z)) + sqrt(0.5)) < 1e-6);
    }
    expect_one(gn_sign(one(g, 0x1p-126, 0)), 1, 0);
    expect_one(gn_sign(one(g, 0, -0.0)), 0, 0);
    expect_values(gn_abs(one(g, 0, 0)), 0);
    for (int64_t n = 0; n < 2; n++) { // empty arrays
        gn_array *none = gn_zeros(g, GN_C64, GN_SHAPE(0, n));
        expect_shape(gn_mul(none, none), 0, n);
        expect_shape(gn_exp(none), 0, n);
        expect_values(gn_real(gn_sum(none, GN_ALL)), 0);
    }
}

// ---- sums and products

static void test_reductions(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int view = 0; view < 4; view++)
        for (int d = 0; d < 2; d++) {
            gn_dtype t = d ? GN_C128 : GN_C64, part = d ? GN_F64 : GN_F32;
            gn_array *a = view_of(g, t, view);
            cx x[MOST], sum = 0, mean;
            long double squares = 0, spread = 0, eps = d ? 0x1p-52L : 0x1p-23L;
            int64_t n = read_all(a, x);
            for (int64_t i = 0; i < n; i++) sum += x[i];
            for (int64_t i = 0; i < n; i++) squares += creall(x[i] * conjl(x[i]));
            mean = sum / (long double)n;
            for (int64_t i = 0; i < n; i++) spread += creall((x[i] - mean) * conjl(x[i] - mean));
            cx have[MOST];
            read_all(gn_sum(a, GN_ALL), have);
            assert_true(cabsl(have[0] - sum) <= 8 * eps * sqrtl(squares * (long double)n));
            read_all(gn_mean(a, GN_ALL), have);
            assert_true(cabsl(have[0] - mean) <= 8 * eps * sqrtl(squares / (long double)n));
            long double norm = sqrtl(squares), var = spread / (long double)(n - 1);
            assert_true(fabsl(gn_item(gn_norm(a, GN_ALL)) - norm) <= 8 * eps * norm);
            assert_true(fabsl(gn_item(gn_var(a, GN_ALL, 1)) - var) <= 16 * eps * squares);
            assert_true(fabsl(gn_item(gn_std(a, GN_ALL, 1)) - sqrtl(var)) <= 16 * eps * norm);
            assert_int_equal(gn_dtype_of(gn_var(a, GN_ALL, 0)), part);
            assert_int_equal(gn_dtype_of(gn_sum(a, 0)), t);
            expect_shape(gn_sum(a, GN_KEEP(-1)), 7, 1);
            gn_array *rows = gn_sum(a, 1);
            read_all(rows, have);
            for (int i = 0; i < 7; i++) {
                cx row = 0;
                for (int k = 0; k < 5; k++) row += x[5 * i + k];
                assert_true(cabsl(have[i] - row) <= 8 * eps * norm);
            }
        }
}

// Sums of rows of n complex numbers; those that leave the range of float32 and come back, infinities and NaN of one part.
static void check_row_sums(gn_context *g, gn_dtype t, int64_t n, int kind) {
    enum { ROWS = 3, N = 9001 };
    static double x[2 * ROWS * N];
    double have[2 * ROWS];
    const double size = kind != 2 ? 1.0 : t == GN_C64 ? 3e38 : 1e308, eps = t == GN_C64 ? 0x1p-23 : 0x1p-52;
    for (int64_t i = 0; i < 2 * ROWS * n; i++) x[i] = kind == 2 ? (i / 2 % 3 == 1 ? -size : size / 2) : (double)(float)unit();
    if (kind == 1) x[2 * (n / 2)] = (double)INFINITY, x[2 * (n + n / 3) + 1] = (double)NAN;
    gn_array *a = gn_array_from(g, GN_C128, GN_SHAPE(ROWS, n), x);
    if (t == GN_C64) a = gn_eval(gn_cast(a, t));
    assert_int_equal(gn_read(gn_cast(gn_sum(a, 1), GN_C128), have, sizeof have), GN_OK);
    for (int k = 0; k < 2 * ROWS; k++) {
        long double sum = 0.0L, all = 0.0L;
        for (int64_t i = 0; i < n; i++) {
            const double v = x[2 * (k / 2 * n + i) + k % 2];
            sum += t == GN_C64 ? (long double)(float)v : (long double)v, all += fabsl((long double)v);
        }
        const bool same = sum != sum ? have[k] != have[k] : isinf(sum) ? (long double)have[k] == sum
                                                                        : fabsl((long double)have[k] - sum) <= 2 * (long double)eps * all;
        if (!same) fail_msg("%s, n %d, kind %d, part %d: %.17g, not %.17Lg", gn_dtype_name(t), (int)n, kind, k, have[k], sum);
    }
}

static void test_row_sums(void **state) {
    (void)state;
    static const int64_t lengths[] = {1, 2, 3, 16, 31, 300, 1000, 1025, 8192, 8193, 9001};
    static const gn_cpu cpus[] = {GN_CPU_PLAIN, GN_CPU_BASE, GN_CPU_AVX2, GN_CPU_AVX512};
    for (int k = 0; k < (test_on_vulkan() ? 1 : 4); k++) {
        gn_options o = test_options();
        o.cpu = cpus[k];
        gn_context *g = test_share(&o);
        for (int i = 0; i < 11; i++)
            for (int kind = 0; kind < (test_on_vulkan() ? 1 : 3); kind++)
                GN_SCOPE(g) {
                    check_row_sums(g, GN_C64, lengths[i], kind);
                    check_row_sums(g, GN_C128, lengths[i], kind);
                }
        assert_false(test_done(g, true));
    }
}

// y (rows,columns) against the sums of products.
static void check_product(gn_array *y, gn_array *left, gn_array *right, int rows, int inner, int columns, gn_dtype t) {
    cx x[MOST], z[MOST], have[MOST];
    assert_int_equal(gn_dtype_of(y), t);
    assert_int_equal(read_all(y, have), rows * columns);
    read_all(left, x);
    read_all(right, z);
    for (int i = 0; i < rows * columns; i++) {
        cx sum = 0;
        long double size = 0;
        for (int k = 0; k < inner; k++) {
            sum += x[i / columns * inner + k] * z[k * columns + i % columns];
            size += cabsl(x[i / columns * inner + k] * z[k * columns + i % columns]);
        }
        assert_true(cabsl(have[i] - sum) <= 16 * (t == GN_C64 ? 0x1p-23L : 0x1p-52L) * size);
    }
}

// a (m,k) by b (k,n), and by its first column, and a's first row by b. Batches (2,1,m,k) by (3,k,n), rows or columns dense.
static void check_products(gn_array *a, gn_array *b, gn_dtype t) {
    const int m = (int)gn_dim(a, 0), n = (int)gn_dim(b, 1), inner = (int)gn_dim(a, 1);
    for (int way = 0; way < 3; way++) {
        const int rows = way == 2 ? 1 : m, columns = way == 1 ? 1 : n;
        gn_array *left = way == 2 ? gn_squeeze(gn_slice(a, 0, 0, 1, 1), 0) : a, *right = way == 1 ? gn_squeeze(gn_slice(b, 1, 0, 1, 1), 1) : b;
        gn_array *y = gn_matmul(left, right);
        assert_int_equal(gn_rank(y), way == 0 ? 2 : 1);
        check_product(y, left, right, rows, inner, columns, t);
    }
    gn_array *as[] = {a, gn_conj(a)}, *bs[] = {b, gn_neg(b), gn_conj(b)};
    for (int way = 0; way < 4; way++) {
        gn_array *left = gn_expand_dims(gn_stack(as, 2, 0), 1), *right = gn_stack(bs, 3, 0);
        if (way % 2) left = gn_swap_axes(gn_copy(gn_swap_axes(left, -1, -2)), -1, -2);
        if (way / 2) right = gn_swap_axes(gn_copy(gn_swap_axes(right, -1, -2)), -1, -2);
        gn_array *y = gn_matmul(left, right);
        assert_int_equal(gn_rank(y), 4);
        for (int i = 0; i < 6; i++) check_product(gn_at(gn_at(y, i / 3), i % 3), as[i / 3], bs[i % 3], m, inner, n, t);
    }
}

static void test_matrices(void **state) {
    gn_context *g = (gn_context *)*state;
    const gn_dtype pairs[][3] = {{GN_C64, GN_C64, GN_C64}, {GN_F32, GN_C64, GN_C64},
                                 {GN_C64, GN_F32, GN_C64}, {GN_C128, GN_C128, GN_C128}};
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
        for (int view = 0; view < 16; view += test_on_vulkan() ? 5 : 1) {
            gn_scope_begin(g);
            gn_array *a = view_of(g, pairs[p][0], view % 4), *b = view_of(g, pairs[p][1], view / 4);
            check_products(a, gn_transpose(b), pairs[p][2]);
            check_products(gn_transpose(a), b, pairs[p][2]);
            check_products(a, gn_transpose(gn_slice(b, 0, 0, 3, 1)), pairs[p][2]);
            check_products(gn_transpose(a), gn_slice(b, 1, 0, 4, 1), pairs[p][2]);
            check_products(gn_add(a, a), gn_add(gn_transpose(b), gn_transpose(b)), pairs[p][2]); // pending
            gn_scope_end(g);
        }
    const int64_t none[][3] = {{0, 3, 2}, {2, 0, 3}, {3, 0, 2}, {3, 2, 0}, {0, 0, 0}};
    for (int i = 0; i < 5; i++)
        GN_SCOPE(g) {
            gn_array *y = gn_matmul(gn_ones(g, GN_C64, GN_SHAPE(none[i][0], none[i][1])), gn_ones(g, GN_C64, GN_SHAPE(none[i][1], none[i][2])));
            expect_shape(y, none[i][0], none[i][2]);
            assert_true(gn_item(gn_any(y, GN_ALL)) == 0);
        }
    gn_array *v = numbers(g, GN_C64, GN_SHAPE(5), 2), *w = numbers(g, GN_C64, GN_SHAPE(5), 2);
    cx x[MOST], z[MOST], have[MOST], sum = 0;
    read_all(v, x);
    read_all(w, z);
    for (int i = 0; i < 5; i++) sum += x[i] * z[i];
    read_all(gn_dot(v, w), have);
    assert_true(cabsl(have[0] - sum) < 1e-4L);
    read_all(gn_outer(v, w), have);
    for (int i = 0; i < 25; i++) assert_true(cabsl(have[i] - x[i / 5] * z[i % 5]) <= 1e-6L * cabsl(have[i]));
}

static cx determinant(const cx *a, int n, uint32_t used, int row) { // of the columns not used, by the rows
    if (row == n) return 1.0L;
    cx sum = 0.0L, sign = 1.0L;
    for (int j = 0; j < n; j++) {
        if (used >> j & 1) continue;
        sum += sign * a[row * n + j] * determinant(a, n, used | 1u << j, row + 1);
        sign = -sign;
    }
    return sum;
}

static double most(gn_array *a) { return gn_item(gn_max(gn_abs(a), GN_ALL)); }

// Systems, inverses and determinants; batches, views, real operands with complex ones, the ends of the range.
static void test_systems(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int d = 0; d < 2; d++) {
        const gn_dtype t = d ? GN_C128 : GN_C64, part = d ? GN_F64 : GN_F32;
        const double eps = d ? 0x1p-52 : 0x1p-23;
        for (int n = 0; n < 6; n++) {
            gn_scope_begin(g);
            gn_array *a = numbers(g, t, GN_SHAPE(2, n, n), 1), *b = numbers(g, t, GN_SHAPE(n, 3), 1), *log = NULL;
            if (n > 1) a = gn_transpose(gn_add(a, gn_mul_s(gn_eye(g, part, n, n, 0), 3.0)));
            if (n > 1) a = gn_permute(a, 2, 0, 1);
            cx x[2 * MOST], truth[2];
            read_all(a, x);
            for (int i = 0; i < 2; i++) truth[i] = determinant(x + i * n * n, n, 0, 0);
            gn_array *det = gn_det(a), *turn = gn_slogdet(a, &log);
            expect_near("det", det, truth, 2, t, 100);
            expect_near("slogdet", gn_mul(turn, gn_exp(log)), truth, 2, t, 200);
            assert_int_equal(gn_dtype_of(log), part);
            expect_shape(gn_inv(a), 2, n, n);
            expect_shape(gn_solve(a, b), 2, n, 3);
            if (n > 1) { // well-conditioned by the diagonal, mostly
                const double size = most(gn_inv(a)) * 60.0 * eps + eps;
                assert_true(most(gn_sub(gn_matmul(a, gn_inv(a)), gn_eye(g, part, n, n, 0))) <= size * 60);
                assert_true(most(gn_sub(gn_matmul(a, gn_solve(a, b)), b)) <= size * 60);
                gn_array *vector = gn_slice(b, 1, 1, 2, 1), *real = gn_real(vector);
                assert_true(most(gn_sub(gn_matmul(a, gn_solve(a, real)), real)) <= size * 60);
                gn_array *plain = gn_add(gn_real(a), gn_mul_s(gn_eye(g, GN_F32, n, n, 0), 9.0));
                assert_true(most(gn_sub(gn_matmul(plain, gn_solve(plain, vector)), vector)) <= 100 * 60 * (d ? 0x1p-52 : 0x1p-23));
                expect_shape(gn_solve(gn_index(a, "0"), gn_squeeze(vector, 1)), n);
                assert_int_equal(gn_dtype_of(gn_solve(plain, gn_cast(vector, GN_C64))), d ? GN_C128 : GN_C64);
            }
            gn_scope_end(g);
        }
        // Powers of i times 2^500 on a shifted diagonal: exact, and beyond the range.
        gn_array *shifted = gn_mul(gn_roll(gn_eye(g, part, 5, 5, 0), 1, 0), gn_complex(gn_scalar(g, part, 0), gn_scalar(g, part, d ? 0x1p500 : 0x1p60))), *log = NULL;
        expect_values(gn_real(gn_slogdet(shifted, &log)), 0); // 4 swaps, i^5
        expect_values(gn_imag(gn_slogdet(shifted, NULL)), 1);
        assert_true(fabs(gn_item(log) - (d ? 2500 : 300) * log1p(1.0)) < 1e-3);
        expect_values(gn_imag(gn_det(shifted)), (double)INFINITY);
        gn_array *flat = gn_ones(g, t, GN_SHAPE(3, 3));
        expect_values(gn_abs(gn_det(flat)), 0);
        expect_values(gn_abs(gn_slogdet(flat, &log)), 0);
        expect_values(log, -(double)INFINITY);
        assert_null(gn_inv(flat));
        expect_error(g, GN_ERROR_ARGUMENT, NULL);
    }
    gn_array *wide = gn_zeros(g, GN_C64, GN_SHAPE(2, 3)), *square = gn_ones(g, GN_C64, GN_SHAPE(2, 2));
    assert_null(gn_det(wide));
    expect_error(g, GN_ERROR_SHAPE, "gn_det: (2,3): the matrices are not square");
    assert_null(gn_solve(wide, square));
    expect_error(g, GN_ERROR_SHAPE, "gn_solve: (2,3): the matrices are not square");
    assert_null(gn_solve(square, gn_ones(g, GN_F32, GN_SHAPE(3, 1))));
    expect_error(g, GN_ERROR_SHAPE, "gn_solve: (2,2) and (3,1): 2 equations, 3 rows of right-hand sides");
    assert_null(gn_slogdet(wide, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_slogdet: (2,3): the matrices are not square");
}

// The elements of a complex128 array, for free.
static cx *read_many(gn_array *a) {
    const size_t n = (size_t)gn_size(a);
    double *part = (double *)calloc(n, 2 * sizeof(double));
    cx *x = (cx *)calloc(n, sizeof(cx));
    assert_int_equal(gn_read(gn_real(a), part, n * sizeof(double)), GN_OK);
    assert_int_equal(gn_read(gn_imag(a), part + n, n * sizeof(double)), GN_OK);
    for (size_t i = 0; i < n; i++) x[i] = (long double)part[i] + (long double)part[n + i] * (cx)I;
    free(part);
    return x;
}

// Determinants of orders about those of panels: of products of triangles whose diagonals are known, with their rows the other way
// round, or a column of zeros. Triangular systems of these orders.
static void test_panels(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int orders[] = {31, 32, 33, 70};
    for (int o = 0; o < 4; o++)
        GN_SCOPE(g) {
            const int n = orders[o];
            double *part[2] = {(double *)calloc((size_t)(n * n), sizeof(double)), (double *)calloc((size_t)(n * n), sizeof(double))};
            cx *l = (cx *)calloc((size_t)(n * n), sizeof(cx)), *u = (cx *)calloc((size_t)(n * n), sizeof(cx)), turn = n / 2 % 2 ? -1 : 1;
            long double size = 0;
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++) {
                    const cx x = (long double)unit() / 8 + (long double)unit() / 8 * (cx)I;
                    if (j < i) l[i * n + j] = x;
                    else u[i * n + j] = i == j ? x + (i % 2 ? 2.0L : (cx)I) : x;
                }
            for (int i = 0; i < n; i++) {
                l[i * n + i] = 1;
                turn *= u[i * n + i] / cabsl(u[i * n + i]);
                size += logl(cabsl(u[i * n + i]));
                for (int j = 0; j < n; j++) {
                    cx sum = 0;
                    for (int k = 0; k <= i; k++) sum += (k == i ? 1 : l[i * n + k]) * u[k * n + j];
                    part[0][(n - 1 - i) * n + j] = (double)creall(sum);
                    part[1][(n - 1 - i) * n + j] = (double)cimagl(sum);
                }
            }
            gn_array *a = gn_complex(gn_array_from(g, GN_F64, GN_SHAPE(n, n), part[0]), gn_array_from(g, GN_F64, GN_SHAPE(n, n), part[1])), *log = NULL;
            cx have[1];
            read_all(gn_slogdet(a, &log), have);
            assert_true(cabsl(have[0] - turn) < 1e-12L);
            assert_true(fabsl((long double)gn_item(log) - size) < 1e-12L * n);
            read_all(gn_det(a), have);
            assert_true(cabsl(have[0] / (turn * expl(size)) - 1) < 1e-11L);
            a = gn_mul(a, gn_ne_s(gn_arange(g, GN_F64, 0, n, 1), n - 2));
            read_all(gn_slogdet(a, &log), have);
            assert_true(have[0] == 0 && gn_item(log) == -(double)INFINITY);
            for (int way = 0; way < 8; way++) { // what solves with a triangle gives the other side again
                const bool lower = way & 1, turned = way & 2, one = way & 4;
                gn_array *t = gn_complex(gn_array_from(g, GN_F64, GN_SHAPE(n, n), part[0]), gn_array_from(g, GN_F64, GN_SHAPE(n, n), part[1]));
                gn_array *b = gn_slice(t, 1, 4, 7, 1);
                t = gn_add(gn_mul_s(t, 0.1), gn_mul_s(gn_eye(g, GN_F64, n, n, 0), 2));
                cx *x = read_many(gn_solve_triangular(t, b, lower, turned, one)), *z = read_many(b), *m = read_many(t);
                for (int i = 0; i < n * 3; i++) {
                    cx sum = -z[i];
                    long double most_term = cabsl(z[i]);
                    for (int k = 0; k < n; k++) {
                        const int row = turned ? k : i / 3, column = turned ? i / 3 : k;
                        if (lower ? column > row : column < row) continue;
                        const cx term = (one && row == column ? 1 : m[row * n + column]) * x[k * 3 + i % 3];
                        sum += term;
                        most_term = fmaxl(most_term, cabsl(term));
                    }
                    assert_true(cabsl(sum) <= 100 * 0x1p-52L * most_term);
                }
                free(x), free(z), free(m);
            }
            free(part[0]), free(part[1]), free(l), free(u);
        }
}

// Vectors of every kind of length, apart and backwards; products that only together are in range.
static void test_vectors(void **state) {
    gn_context *g = (gn_context *)*state;
    const int64_t lengths[] = {1, 2, 7, 8, 9, 31, 511, 512, 513, 1100};
    static double x[2200], y[2200];
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 10 * 4; i++)
            GN_SCOPE(g) {
                const int64_t n = lengths[i / 4], step = i % 4 == 0 ? 1 : i % 4 == 1 ? 2 : -1;
                gn_array *re = gn_randn(g, t ? GN_F64 : GN_F32, GN_SHAPE(2 * n)), *a = gn_complex(re, gn_flip(re, 0)), *b = gn_slice(gn_square(a), 0, n, 2 * n, 1);
                a = gn_slice(a, 0, step < 0 ? n : 0, step < 0 ? 0 : step * n, step);
                if (i % 4 == 3) b = a;
                assert_int_equal(gn_read(gn_cast(a, GN_C128), x, (size_t)n * 16), GN_OK);
                assert_int_equal(gn_read(gn_cast(b, GN_C128), y, (size_t)n * 16), GN_OK);
                cx have[2], sum[2] = {0.0L, 0.0L};
                long double size = 0.0L;
                read_all(gn_dot(a, b), have);
                read_all(gn_vecdot(a, b, 0), have + 1);
                for (int64_t k = 0; k < 2 * n; k += 2) {
                    const cx p = x[k] + x[k + 1] * (cx)I, q = y[k] + y[k + 1] * (cx)I;
                    sum[0] += p * q, sum[1] += conjl(p) * q, size += cabsl(p * q);
                }
                for (int k = 0; k < 2; k++)
                    if (!(cabsl(have[k] - sum[k]) <= (t ? 4 * 0x1p-52L : 4 * 0x1p-23L) * size)) fail_msg("%d %d: %lld", t, k, (long long)n);
            }
    const float far_out[] = {1e19f, 1e19f, 1e19f, 1e19f, 1e19f, 1e19f, 1e19f, 1e19f};
    gn_array *v = gn_array_from(g, GN_C64, GN_SHAPE(4), far_out);
    if (!test_on_vulkan()) expect_values(gn_real(gn_dot(v, v)), 0); // of 4 times 1e38 less 1e38, which a GPU sums apart
}

// Sums of conj(a) b over any axis, broadcast, of integers in their own dtype.
static void test_vecdot(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = numbers(g, GN_C128, GN_SHAPE(4, 3), 1), *b = numbers(g, GN_C128, GN_SHAPE(2, 4, 3), 1);
    cx x[MOST], y[MOST], have[MOST];
    read_all(a, x);
    read_all(b, y);
    for (int axis = -2; axis < 2; axis += 3) {
        assert_int_equal(read_all(gn_vecdot(a, b, axis), have), 6);
        for (int i = 0; i < 6; i++) {
            cx sum = 0.0L;
            long double size = 0.0L; // of what is added: the sum itself may be near 0
            for (int j = 0; j < 4; j++) {
                const cx term = conjl(x[j * 3 + i % 3]) * y[(i / 3 * 4 + j) * 3 + i % 3];
                sum += term;
                size += cabsl(term);
            }
            if (!(cabsl(have[i] - sum) <= 3.0L * 0x1p-52L * size)) fail_msg("vecdot, element %d, axis %d", i, axis);
        }
    }
    const int8_t small[] = {100, 100, -1}, more[] = {2, 1, 7};
    gn_array *p = gn_array_from(g, GN_I8, GN_SHAPE(3), small), *q = gn_array_from(g, GN_I8, GN_SHAPE(3), more);
    assert_int_equal(gn_dtype_of(gn_vecdot(p, q, 0)), GN_I8);
    expect_values(gn_vecdot(p, q, 0), 37); // 293 - 256
    expect_values(gn_vecdot(p, gn_cast(q, GN_I16), -1), 293);
    expect_values(gn_vecdot(gn_zeros(g, GN_F32, GN_SHAPE(2, 0)), gn_zeros(g, GN_F32, GN_SHAPE(0)), -1), 0, 0);
    assert_null(gn_vecdot(p, gn_ones(g, GN_F32, GN_SHAPE(1)), 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_vecdot: (3,) and (1,): axis 0 is not of one length");
    assert_null(gn_vecdot(p, gn_ones(g, GN_F32, GN_SHAPE(3, 3)), 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_vecdot: (3,) and (3,3): axis 0 is not of one length");
    assert_null(gn_vecdot(p, q, 1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_vecdot: axis 1 is out of bounds for array of rank 1");
}

// ---- gradients

enum { FUNCTIONS = 35 };

// A real number made of complex numbers whose parts are in[0] and in[1], and of in[2] and in[3].
static gn_array *loss_of(gn_context *g, gn_array *const *in, int which) {
    gn_array *a = gn_complex(in[0], in[1]), *b = gn_complex(in[2], in[3]), *y = NULL;
    switch (which) {
    case 0: y = gn_add(a, b); break;
    case 1: y = gn_sub(in[0], b); break;
    case 2: y = gn_mul(a, b); break;
    case 3: y = gn_mul(in[2], a); break;
    case 4: y = gn_div(a, b); break;
    case 5: y = gn_div(in[1], b); break;
    case 6: y = gn_rdiv_s(a, 1.5); break;
    case 7: y = gn_exp(a); break;
    case 8: y = gn_log(a); break;
    case 9: y = gn_sqrt(a); break;
    case 10: y = gn_square(gn_conj(a)); break;
    case 11: y = gn_abs(a); break;
    case 12: y = gn_matmul(gn_reshape(a, GN_SHAPE(2, 3)), gn_reshape(b, GN_SHAPE(3, 2))); break;
    case 13: y = gn_where(gn_gt_s(in[0], 0.0), gn_recip(a), gn_mul_s(b, 2.0)); break;
    case 14: y = gn_sin(a); break;
    case 15: y = gn_cos(a); break;
    case 16: y = gn_tan(a); break;
    case 17: y = gn_sinh(a); break;
    case 18: y = gn_cosh(a); break;
    case 19: y = gn_tanh(a); break;
    case 20: y = gn_expm1(a); break;
    case 21: y = gn_log1p(gn_mul_s(b, 0.1)); break;
    case 22: y = gn_log2(b); break;
    case 23: y = gn_log10(b); break;
    case 24: y = gn_pow(b, a); break;
    case 25: y = gn_sign(b); break;
    case 26: y = gn_prod(gn_reshape(a, GN_SHAPE(2, 3)), -1); break;
    case 27: y = gn_einsum(g, "ij,kj->ik", gn_reshape(a, GN_SHAPE(2, 3)), gn_reshape(b, GN_SHAPE(2, 3))); break;
    case 28: y = gn_asin(b); break;
    case 29: y = gn_acos(gn_mul_s(b, 0.4)); break;
    case 30: y = gn_atan(b); break;
    case 31: y = gn_asinh(b); break;
    case 32: y = gn_acosh(gn_add_s(b, 2.0)); break;
    case 33: y = gn_atanh(gn_mul_s(b, 0.3)); break;
    default: y = gn_tril(gn_reshape(a, GN_SHAPE(2, 3)), 0); break;
    }
    gn_array *weight = gn_complex(gn_scalar(g, GN_F64, 0.7), gn_scalar(g, GN_F64, -0.4));
    gn_array *sum = gn_sum(gn_mul(gn_mul(y, weight), gn_conj(y)), GN_ALL);
    return gn_add(gn_add(gn_real(sum), gn_norm(y, GN_ALL)), gn_sum(gn_imag(gn_mul(y, weight)), GN_ALL));
}

static void test_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int which = 0; which < FUNCTIONS; which++) {
        gn_scope_begin(g);
        gn_array *in[4], *grads[4];
        double data[4][6];
        for (int k = 0; k < 4; k++) {
            for (int i = 0; i < 6; i++) data[k][i] = unit() + (k == 2 ? 2.0 : 0.0);
            // On the axes, but for the negative one, where roots and logarithms jump.
            if (k == 0 && which != 11 && which != 13) data[k][0] = data[k][1] = 0.0;
            if (k == 1 && which != 11 && which != 13) data[k][0] = 2.0, data[k][1] = -1.5, data[k][2] = 0.0;
            if (k == 0) data[k][2] = 1.25;
            in[k] = gn_requires_grad(gn_array_from(g, GN_F64, GN_SHAPE(6), data[k]), true);
        }
        gn_array *loss = loss_of(g, in, which);
        if (gn_gradients(loss, in, 4, false, grads) != GN_OK) fail_msg("%d: %s", which, gn_error(g));
        for (int k = 0; k < 4; k++)
            for (int i = 0; i < 6; i++) {
                double end[2], have[6], h = 1e-5;
                for (int side = 0; side < 2; side++) {
                    gn_array *moved[4];
                    memcpy(moved, in, sizeof in);
                    double at = data[k][i];
                    data[k][i] = side ? at + h : at - h;
                    moved[k] = gn_array_from(g, GN_F64, GN_SHAPE(6), data[k]);
                    data[k][i] = at;
                    end[side] = gn_item(loss_of(g, moved, which));
                }
                double slope = (end[1] - end[0]) / (2 * h);
                if (grads[k] == NULL)
                    memset(have, 0, sizeof have);
                else
                    assert_int_equal(gn_read(grads[k], have, sizeof have), GN_OK);
                if (!(fabs(have[i] - slope) <= 1e-6 * (1 + fabs(slope))))
                    fail_msg("function %d, input %d, element %d: %.9g, expected %.9g", which, k, i, have[i], slope);
            }
        gn_scope_end(g);
    }
    // Left of the imaginary axis the root's slope is that of the half plane above.
    gn_array *re = gn_requires_grad(gn_full(g, GN_F64, GN_SHAPE(1), -4.0), true);
    gn_array *im = gn_requires_grad(gn_zeros(g, GN_F64, GN_SHAPE(1)), true);
    gn_backward(gn_sum(gn_real(gn_sqrt(gn_complex(re, im))), GN_ALL));
    expect_values(gn_grad(re), 0);
    expect_values(gn_grad(im), 0.25);
    // At 0, where the magnitude has no slope.
    gn_array *x = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(2)), true);
    gn_backward(gn_sum(gn_abs(gn_complex(x, x)), GN_ALL));
    expect_values(gn_grad(x), 0, 0);
}

// ---- misuse and memory

static void test_errors(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *z = gn_zeros(g, GN_C64, GN_SHAPE(3)), *x = gn_ones(g, GN_F32, GN_SHAPE(3));
    assert_null(gn_floor(z));
    expect_error(g, GN_ERROR_DTYPE, "gn_floor: complex numbers are not supported here");
    assert_null(gn_lt(z, x));
    expect_error(g, GN_ERROR_DTYPE, "gn_lt: complex numbers are not supported here");
    assert_null(gn_mod_s(z, 2.0));
    expect_error(g, GN_ERROR_DTYPE, "gn_mod_s: complex numbers are not supported here");
    assert_null(gn_where(z, x, x));
    expect_error(g, GN_ERROR_DTYPE, "gn_where: complex64 is not supported here");
    assert_null(gn_cast(z, GN_F32));
    expect_error(g, GN_ERROR_DTYPE, "gn_cast: complex64 to float32: take gn_real, gn_imag or gn_abs of it");
    assert_null(gn_mul(z, gn_zeros(g, GN_C64, GN_SHAPE(4))));
    expect_error(g, GN_ERROR_SHAPE, "gn_mul: shapes (3,) and (4,) do not broadcast");
    assert_null(gn_mul(z, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_mul: array argument 2 is NULL");
    assert_null(gn_max(z, GN_ALL));
    expect_error(g, GN_ERROR_DTYPE, "gn_max: complex64 is not supported here");
    assert_null(gn_sum(z, 1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_sum: axis 1 is out of bounds for array of rank 1");
    assert_null(gn_matmul(z, gn_zeros(g, GN_C64, GN_SHAPE(4))));
    expect_error(g, GN_ERROR_SHAPE, NULL);
}

// Parts that are converted where they are stored; a copy of complex numbers beside other work.
static void test_stored(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 21 };
    int64_t re[N];
    uint64_t im[N];
    float z[2 * N], one[N];
    for (int i = 0; i < N; i++) re[i] = 7 - 3 * i, im[i] = (uint64_t)(10 * i), one[i] = (float)i;
    gn_array *a = gn_complex(gn_array_from(g, GN_I64, GN_SHAPE(N), re), gn_array_from(g, GN_U64, GN_SHAPE(N), im));
    assert_int_equal(gn_read(a, z, sizeof z), GN_OK);
    for (int i = 0; i < N; i++) assert_true(z[2 * i] == (float)(7 - 3 * i) && z[2 * i + 1] == (float)(10 * i));
    gn_array *x = gn_array_from(g, GN_F32, GN_SHAPE(N), one), *both[2];
    both[0] = gn_cast(a, GN_C64);
    both[1] = gn_add_s(x, 1.0);
    assert_int_equal(gn_eval_all(both, 2), GN_OK);
    assert_int_equal(gn_read(both[0], z, sizeof z), GN_OK);
    assert_int_equal(gn_read(both[1], one, sizeof one), GN_OK);
    for (int i = 0; i < N; i++)
        assert_true(z[2 * i] == (float)(7 - 3 * i) && z[2 * i + 1] == (float)(10 * i) && one[i] == (float)(i + 1));
}

static void work(gn_context *g) {
    gn_array *x = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(6)), true);
    gn_array *z = gn_complex(x, gn_mul_s(x, 0.5));
    z = gn_div(gn_exp(gn_mul(z, z)), gn_sqrt(z));
    gn_backward(gn_norm(gn_where(gn_eq_s(z, 0.0), x, z), GN_ALL));
    gn_item(gn_sum(gn_grad(x), GN_ALL));
}

// The parts of long arrays are views: that pending work reads several of them does not make it run early, in pieces.
static void test_long_parts(void **state) {
    gn_context *g = (gn_context *)*state;
    enum { N = 9 << 20 };
    gn_memory_stats before, after;
    gn_array *a = gn_eval(gn_full(g, GN_C64, GN_SHAPE(N), 2.0)), *b = gn_eval(gn_mul_s(a, 0.5));
    gn_memory_get(g, &before);
    gn_array *y = gn_mul(a, b);
    gn_memory_get(g, &after);
    assert_true(after.host_used + after.device_used < before.host_used + before.device_used + N);
    expect_one(gn_reshape(gn_slice(y, 0, N - 1, N, 1), GN_SHAPE()), 2, 0);
}

static void test_allocations(void **state) {
    (void)state;
    test_most_allocations(work);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_unary),      GN_TEST(test_binary), GN_TEST(test_long_rows),   cmocka_unit_test(test_pairs), GN_TEST(test_scalars),   GN_TEST(test_choices), GN_TEST(test_more), GN_TEST(test_integers),
        GN_TEST(test_pending),    GN_TEST(test_long_chains), GN_TEST(test_stored), GN_TEST(test_exp_ends), GN_TEST(test_overflow),
        GN_TEST(test_log_near_one), GN_TEST(test_arcs),
        GN_TEST(test_special),    GN_TEST(test_reductions), cmocka_unit_test(test_row_sums), GN_TEST(test_matrices), GN_TEST(test_systems), GN_TEST(test_panels), GN_TEST(test_vectors), GN_TEST(test_vecdot), GN_TEST(test_gradients),
        GN_TEST(test_errors), GN_TEST(test_long_parts),     cmocka_unit_test(test_allocations),
    };
    return test_run(tests);
}
