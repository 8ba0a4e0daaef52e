// The rules of the array API standard 2022.12 as tables in our own words: special cases of each elementwise function, promotion
// of all pairs of dtypes, what axes mean, arrays without elements. What ARRAY_API.md says to differ is told apart here too.
#include "test.h"

#include <complex.h>

#define INF_ HUGE_VAL
#define NAN_ ((double)NAN)
#define PI_ 3.14159265358979323846

// The same number: zeros by their sign, NaN as NaN, others within a few units in the last place.
static bool same(double have, double want, double eps) {
    if (want != want) return have != have;
    if (want == 0.0 || want - want != 0.0) return have == want && !signbit(have) == !signbit(want);
    return fabs(have - want) <= 4 * eps * fabs(want);
}

static double epsilon(gn_dtype t) {
    switch (t) {
    case GN_F64: return 0x1p-52;
    case GN_F16: return 0x1p-10;
    case GN_BF16: return 0x1p-7;
    default: return 0x1p-23;
    }
}

static const gn_dtype floats[] = {GN_F32, GN_F64, GN_F16, GN_BF16};

// `count` numbers of that dtype, by way of float64.
static gn_array *numbers(gn_context *g, gn_dtype t, const double *x, int64_t count) {
    return gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(count), x), t);
}

// ---- special cases

enum { MOST = 40 };

// Arguments and results in turn.
typedef struct one_case {
    const char *name;
    gn_array *(*fn)(gn_array *a);
    int count;
    double x[MOST];
} one_case;

#define PAIRS(...) ((int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double) / 2)), {__VA_ARGS__}
#define ONE(fn, ...) {#fn, fn, PAIRS(__VA_ARGS__)}
static const one_case ones[] = {
    ONE(gn_abs, NAN_, NAN_, -0.0, 0.0, 0.0, 0.0, -INF_, INF_, INF_, INF_, -2, 2),
    ONE(gn_acos, NAN_, NAN_, 1.5, NAN_, -1.5, NAN_, INF_, NAN_, -INF_, NAN_, 1, 0.0, -1, PI_),
    ONE(gn_acosh, NAN_, NAN_, 0.5, NAN_, -2, NAN_, -INF_, NAN_, 1, 0.0, INF_, INF_),
    ONE(gn_asin, NAN_, NAN_, 1.5, NAN_, -1.5, NAN_, INF_, NAN_, 0.0, 0.0, -0.0, -0.0, 1, PI_ / 2),
    ONE(gn_asinh, NAN_, NAN_, 0.0, 0.0, -0.0, -0.0, INF_, INF_, -INF_, -INF_),
    ONE(gn_atan, NAN_, NAN_, 0.0, 0.0, -0.0, -0.0, INF_, PI_ / 2, -INF_, -PI_ / 2),
    ONE(gn_atanh, NAN_, NAN_, -1.5, NAN_, 1.5, NAN_, INF_, NAN_, -1, -INF_, 1, INF_, 0.0, 0.0, -0.0, -0.0),
    ONE(gn_ceil, NAN_, NAN_, INF_, INF_, -INF_, -INF_, 0.0, 0.0, -0.0, -0.0, 3, 3, -0.5, -0.0, 1.25, 2, -1.25, -1),
    ONE(gn_cos, NAN_, NAN_, 0.0, 1, -0.0, 1, INF_, NAN_, -INF_, NAN_),
    ONE(gn_cosh, NAN_, NAN_, 0.0, 1, -0.0, 1, INF_, INF_, -INF_, INF_),
    ONE(gn_exp, NAN_, NAN_, 0.0, 1, -0.0, 1, INF_, INF_, -INF_, 0.0),
    ONE(gn_expm1, NAN_, NAN_, 0.0, 0.0, -0.0, -0.0, INF_, INF_, -INF_, -1),
    ONE(gn_floor, NAN_, NAN_, INF_, INF_, -INF_, -INF_, 0.0, 0.0, -0.0, -0.0, 3, 3, 0.5, 0.0, 1.75, 1, -1.25, -2),
    ONE(gn_isfinite, NAN_, 0.0, INF_, 0.0, -INF_, 0.0, 0.0, 1, -3, 1),
    ONE(gn_isinf, NAN_, 0.0, INF_, 1, -INF_, 1, 0.0, 0.0, -3, 0.0),
    ONE(gn_isnan, NAN_, 1, INF_, 0.0, -INF_, 0.0, 0.0, 0.0, -3, 0.0),
    ONE(gn_log, NAN_, NAN_, -1, NAN_, -INF_, NAN_, 0.0, -INF_, -0.0, -INF_, 1, 0.0, INF_, INF_),
    ONE(gn_log1p, NAN_, NAN_, -1.5, NAN_, -INF_, NAN_, -1, -INF_, -0.0, -0.0, 0.0, 0.0, INF_, INF_),
    ONE(gn_log2, NAN_, NAN_, -1, NAN_, -INF_, NAN_, 0.0, -INF_, -0.0, -INF_, 1, 0.0, INF_, INF_),
    ONE(gn_log10, NAN_, NAN_, -1, NAN_, -INF_, NAN_, 0.0, -INF_, -0.0, -INF_, 1, 0.0, INF_, INF_),
    ONE(gn_logical_not, NAN_, 0.0, 0.0, 1, -0.0, 1, 2, 0.0, INF_, 0.0),
    ONE(gn_neg, NAN_, NAN_, 0.0, -0.0, -0.0, 0.0, INF_, -INF_, 2, -2),
    ONE(gn_copy, NAN_, NAN_, -0.0, -0.0, -INF_, -INF_, 2, 2),
    ONE(gn_round, NAN_, NAN_, INF_, INF_, -INF_, -INF_, 0.0, 0.0, -0.0, -0.0, 0.5, 0.0, 1.5, 2, 2.5, 2, -0.5, -0.0, -1.5, -2, -2.5, -2, 1.25, 1),
    ONE(gn_sign, NAN_, NAN_, -2, -1, 0.0, 0.0, -0.0, 0.0, 3, 1, INF_, 1, -INF_, -1),
    ONE(gn_sin, NAN_, NAN_, 0.0, 0.0, -0.0, -0.0, INF_, NAN_, -INF_, NAN_),
    ONE(gn_sinh, NAN_, NAN_, 0.0, 0.0, -0.0, -0.0, INF_, INF_, -INF_, -INF_),
    ONE(gn_sqrt, NAN_, NAN_, -1, NAN_, -INF_, NAN_, 0.0, 0.0, -0.0, -0.0, INF_, INF_, 4, 2),
    ONE(gn_square, NAN_, NAN_, 0.0, 0.0, -0.0, 0.0, INF_, INF_, -INF_, INF_, -3, 9),
    ONE(gn_tan, NAN_, NAN_, 0.0, 0.0, -0.0, -0.0, INF_, NAN_, -INF_, NAN_),
    ONE(gn_tanh, NAN_, NAN_, 0.0, 0.0, -0.0, -0.0, INF_, 1, -INF_, -1),
    ONE(gn_trunc, NAN_, NAN_, INF_, INF_, -INF_, -INF_, 0.0, 0.0, -0.0, -0.0, 3, 3, -0.5, -0.0, 0.5, 0.0, 1.75, 1, -1.75, -1),
};

static void read_doubles(gn_array *a, double *out, int64_t count) {
    assert_non_null(a);
    assert_int_equal(gn_size(a), count);
    assert_int_equal(gn_read(gn_cast(a, GN_F64), out, sizeof(double) * (size_t)count), GN_OK);
}

static void test_one(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int d = 0; d < 4; d++)
        for (size_t f = 0; f < sizeof ones / sizeof *ones; f++) {
            gn_scope_begin(g);
            const int n = ones[f].count;
            double x[MOST], y[MOST];
            for (int i = 0; i < n; i++) x[i] = ones[f].x[2 * i];
            gn_array *r = ones[f].fn(numbers(g, floats[d], x, n));
            read_doubles(r, y, n);
            for (int i = 0; i < n; i++)
                if (!same(y[i], ones[f].x[2 * i + 1], epsilon(floats[d])))
                    fail_msg("%s of %s %g: %.9g, expected %.9g", ones[f].name, gn_dtype_name(floats[d]), x[i], y[i], ones[f].x[2 * i + 1]);
            gn_scope_end(g);
        }
}

typedef struct two_case {
    const char *name;
    gn_array *(*fn)(gn_array *a, gn_array *b);
    int count;
    double x[3 * 64]; // both arguments and the result, in turn
} two_case;
#define TRIPLES(...) ((int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double) / 3)), {__VA_ARGS__}
#define TWO(fn, ...) {#fn, fn, TRIPLES(__VA_ARGS__)}
static const two_case twos[] = {
    TWO(gn_add, NAN_, 1, NAN_, 1, NAN_, NAN_, INF_, -INF_, NAN_, -INF_, INF_, NAN_, INF_, INF_, INF_, -INF_, -INF_, -INF_, INF_, 2, INF_,
        -INF_, 2, -INF_, 2, INF_, INF_, 2, -INF_, -INF_, -0.0, -0.0, -0.0, -0.0, 0.0, 0.0, 0.0, -0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3, 3, -0.0, -3, -3,
        3, -0.0, 3, 5, -5, 0.0),
    TWO(gn_sub, NAN_, 1, NAN_, 1, NAN_, NAN_, INF_, INF_, NAN_, -INF_, -INF_, NAN_, INF_, -INF_, INF_, 2, INF_, -INF_, -0.0, 0.0, -0.0, 0.0, 0.0, 0.0,
        5, 5, 0.0),
    TWO(gn_mul, NAN_, 1, NAN_, 0.0, NAN_, NAN_, INF_, 0.0, NAN_, -0.0, -INF_, NAN_, INF_, INF_, INF_, -INF_, INF_, -INF_, INF_, -2, -INF_, -3, -INF_, INF_,
        0.0, -2, -0.0, -0.0, -2, 0.0, 0.0, 2, 0.0),
    TWO(gn_div, NAN_, 1, NAN_, 1, NAN_, NAN_, INF_, INF_, NAN_, -INF_, INF_, NAN_, 0.0, 0.0, NAN_, -0.0, 0.0, NAN_, 0.0, 2, 0.0, -0.0, 2, -0.0, 0.0, -2, -0.0,
        -0.0, -2, 0.0, 2, 0.0, INF_, 2, -0.0, -INF_, -2, 0.0, -INF_, -2, -0.0, INF_, INF_, 2, INF_, INF_, -2, -INF_, -INF_, 2, -INF_, -INF_, -2, INF_,
        2, INF_, 0.0, 2, -INF_, -0.0, -2, INF_, -0.0, -2, -INF_, 0.0),
    // An infinity over a finite number may be NaN or infinite.
    TWO(gn_floor_div, NAN_, 1, NAN_, 1, NAN_, NAN_, INF_, INF_, NAN_, -INF_, INF_, NAN_, 0.0, 0.0, NAN_, -0.0, 0.0, NAN_, 0.0, 2, 0.0, -0.0, 2, -0.0, 0.0, -2, -0.0,
        -0.0, -2, 0.0, 2, 0.0, INF_, 2, -0.0, -INF_, -2, 0.0, -INF_, -2, -0.0, INF_, 2, INF_, 0.0, 2, -INF_, -1, -2, INF_, -1, -2, -INF_, 0.0,
        7, 2, 3, -7, 2, -4, 7, -2, -4),
    TWO(gn_mod, NAN_, 1, NAN_, 1, NAN_, NAN_, INF_, 2, NAN_, -INF_, 2, NAN_, INF_, INF_, NAN_, 0.0, 0.0, NAN_, 0.0, -0.0, NAN_, -0.0, 0.0, NAN_, 0.0, 2, 0.0,
        -0.0, 2, 0.0, 0.0, -2, -0.0, -0.0, -2, -0.0, 3, 0.0, NAN_, 3, -0.0, NAN_, -3, 0.0, NAN_, -3, -0.0, NAN_, 3, INF_, 3, 3, -INF_, -INF_,
        -3, INF_, INF_, -3, -INF_, -3, 7, 2, 1, -7, 2, 1, 7, -2, -1),
    TWO(gn_pow, 2, NAN_, NAN_, -INF_, NAN_, NAN_, 3, 0.0, 1, NAN_, 0.0, 1, NAN_, -0.0, 1, INF_, -0.0, 1, NAN_, 2, NAN_, NAN_, -1, NAN_, 1.5, INF_, INF_, -1.5, INF_, INF_,
        1.5, -INF_, 0.0, -1.5, -INF_, 0.0, 1, INF_, 1, -1, INF_, 1, 1, -INF_, 1, -1, -INF_, 1, 1, 5, 1, 0.5, INF_, 0.0, -0.5, INF_, 0.0, 0.5, -INF_, INF_, -0.5, -INF_, INF_,
        INF_, 0.5, INF_, INF_, -0.5, 0.0, -INF_, 3, -INF_, -INF_, 2, INF_, -INF_, 0.5, INF_, -INF_, -3, -0.0, -INF_, -2, 0.0, 0.0, 2, 0.0, 0.0, -2, INF_,
        -0.0, 3, -0.0, -0.0, 2, 0.0, -0.0, -3, -INF_, -0.0, -2, INF_, -2, 0.5, NAN_, -2, 3, -8, -2, -1, -0.5),
    TWO(gn_atan2, NAN_, 1, NAN_, 1, NAN_, NAN_, 2, 0.0, PI_ / 2, 2, -0.0, PI_ / 2, 0.0, 2, 0.0, 0.0, 0.0, 0.0, 0.0, -0.0, PI_, 0.0, -2, PI_, -0.0, 2, -0.0, -0.0, 0.0, -0.0,
        -0.0, -0.0, -PI_, -0.0, -2, -PI_, -2, 0.0, -PI_ / 2, -2, -0.0, -PI_ / 2, 2, INF_, 0.0, 2, -INF_, PI_, -2, INF_, -0.0, -2, -INF_, -PI_, INF_, 2, PI_ / 2,
        -INF_, 2, -PI_ / 2, INF_, INF_, PI_ / 4, INF_, -INF_, 3 * PI_ / 4, -INF_, INF_, -PI_ / 4, -INF_, -INF_, -3 * PI_ / 4),
    TWO(gn_logaddexp, NAN_, 1, NAN_, 1, NAN_, NAN_, NAN_, INF_, NAN_, INF_, 1, INF_, -INF_, INF_, INF_, INF_, INF_, INF_, -INF_, -INF_, -INF_, -INF_, 2, 2),
    TWO(gn_eq, NAN_, NAN_, 0.0, NAN_, 1, 0.0, 0.0, -0.0, 1, INF_, INF_, 1, -INF_, -INF_, 1, INF_, -INF_, 0.0, 2, 2, 1, 2, 3, 0.0),
    TWO(gn_ne, NAN_, NAN_, 1, NAN_, 1, 1, 0.0, -0.0, 0.0, INF_, INF_, 0.0, 2, 3, 1),
    TWO(gn_lt, NAN_, 1, 0.0, 1, NAN_, 0.0, -0.0, 0.0, 0.0, -INF_, INF_, 1, 2, 3, 1, 3, 3, 0.0),
    TWO(gn_le, NAN_, 1, 0.0, 1, NAN_, 0.0, 0.0, -0.0, 1, INF_, INF_, 1, 3, 2, 0.0),
    TWO(gn_gt, NAN_, 1, 0.0, 1, NAN_, 0.0, 0.0, -0.0, 0.0, INF_, -INF_, 1, 3, 2, 1),
    TWO(gn_ge, NAN_, 1, 0.0, 1, NAN_, 0.0, -0.0, 0.0, 1, INF_, INF_, 1, 2, 3, 0.0),
    TWO(gn_logical_and, NAN_, 1, 1, 0.0, 1, 0.0, -0.0, NAN_, 0.0, 2, INF_, 1),
    TWO(gn_logical_or, NAN_, 0.0, 1, 0.0, -0.0, 0.0, 2, 0.0, 1),
    TWO(gn_logical_xor, NAN_, 0.0, 1, NAN_, 1, 0.0, 0.0, -0.0, 0.0),
};

static void test_two(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int d = 0; d < 4; d++)
        for (size_t f = 0; f < sizeof twos / sizeof *twos; f++) {
            gn_scope_begin(g);
            const int n = twos[f].count;
            const double *row = twos[f].x;
            double a[64], b[64], y[64];
            for (int i = 0; i < n; i++) a[i] = row[3 * i], b[i] = row[3 * i + 1];
            read_doubles(twos[f].fn(numbers(g, floats[d], a, n), numbers(g, floats[d], b, n)), y, n);
            for (int i = 0; i < n; i++)
                if (!same(y[i], row[3 * i + 2], epsilon(floats[d])))
                    fail_msg("%s of %s %g, %g: %.9g, expected %.9g", twos[f].name, gn_dtype_name(floats[d]), a[i], b[i], y[i], row[3 * i + 2]);
            gn_scope_end(g);
        }
}

// Complex functions at zeros, infinities and NaN, and beside them. The standard takes C's Annex G over; where that leaves a sign open
// (beside a NaN in the result, and of zeros made of NaN or of two infinities) it is not compared.
// A complex number of its parts: a sum does not keep infinities and signs of 0.
static double complex of_parts(double re, double im) {
    const double part[2] = {re, im};
    double complex z;
    memcpy(&z, part, sizeof z);
    return z;
}
// Those that C has not, by its others.
static double complex expm1_of(double complex z) {
    const double x = creal(z), y = cimag(z), half = sin(y / 2);
    if (x - x != 0 || y - y != 0) return of_parts(creal(cexp(z)) - 1, cimag(cexp(z)));
    return of_parts(expm1(x) * cos(y) - 2 * half * half, y == 0 ? y : exp(x) * sin(y));
}
static double complex log1p_of(double complex z) { return clog(of_parts(1 + creal(z), cimag(z))); }
static double complex log2_of(double complex z) { return of_parts(creal(clog(z)) / log(2.0), cimag(clog(z)) / log(2.0)); }
static double complex log10_of(double complex z) { return of_parts(creal(clog(z)) / log(10.0), cimag(clog(z)) / log(10.0)); }

typedef struct complex_case {
    const char *name;
    gn_array *(*fn)(gn_array *a);
    double complex (*truth)(double complex);
} complex_case;
static const complex_case complexes[] = {
    {"gn_exp", gn_exp, cexp},   {"gn_log", gn_log, clog},    {"gn_sqrt", gn_sqrt, csqrt},  {"gn_sin", gn_sin, csin},       {"gn_cos", gn_cos, ccos},
    {"gn_tan", gn_tan, ctan},   {"gn_sinh", gn_sinh, csinh}, {"gn_cosh", gn_cosh, ccosh},  {"gn_tanh", gn_tanh, ctanh},    {"gn_asin", gn_asin, casin},
    {"gn_expm1", gn_expm1, expm1_of}, {"gn_log1p", gn_log1p, log1p_of}, {"gn_log2", gn_log2, log2_of}, {"gn_log10", gn_log10, log10_of},
    {"gn_acos", gn_acos, cacos}, {"gn_atan", gn_atan, catan}, {"gn_asinh", gn_asinh, casinh}, {"gn_acosh", gn_acosh, cacosh}, {"gn_atanh", gn_atanh, catanh},
};

static void test_complex(void **state) {
    gn_context *g = (gn_context *)*state;
    const double at[] = {0.0, -0.0, 1, -1, 2.5, -2.5, INF_, -INF_, NAN_};
    enum { N = 81 };
    double in[2 * N], y[2 * N];
    for (int i = 0; i < N; i++) in[2 * i] = at[i / 9], in[2 * i + 1] = at[i % 9];
    for (int d = 0; d < 2; d++)
        for (size_t f = 0; f < sizeof complexes / sizeof *complexes; f++) {
            gn_array *a = gn_cast(gn_array_from(g, GN_C128, GN_SHAPE(N), in), d ? GN_C128 : GN_C64);
            assert_int_equal(gn_read(gn_cast(complexes[f].fn(a), GN_C128), y, sizeof y), GN_OK);
            for (int i = 0; i < N; i++) {
                const double complex z = complexes[f].truth(of_parts(in[2 * i], in[2 * i + 1]));
                double want[2];
                memcpy(want, &z, sizeof want);
                const bool strange = in[2 * i] != in[2 * i] || in[2 * i + 1] != in[2 * i + 1] || (isinf(in[2 * i]) && isinf(in[2 * i + 1]));
                for (int k = 0; k < 2; k++) {
                    const double have = y[2 * i + k];
                    const bool beside = want[1 - k] != want[1 - k] && isinf(want[k]), open = beside || (want[k] == 0.0 && (strange || want[1 - k] != want[1 - k]));
                    bool ok = open ? fabs(have) == fabs(want[k]) : same(have, want[k], 8 * (d ? 0x1p-52 : 0x1p-23));
                    if (!ok) fail_msg("%s of %g%+gi, part %d: %.9g, expected %.9g", complexes[f].name, in[2 * i], in[2 * i + 1], k, have, want[k]);
                }
            }
        }
}

// ---- promotion

enum { B, I1, I2, I4, I8, U1, U2, U4, U8, F4, F8, C4, C8, DTYPES, NONE = -1 };
static const gn_dtype dtypes[] = {GN_BOOL, GN_I8, GN_I16, GN_I32, GN_I64, GN_U8, GN_U16, GN_U32, GN_U64, GN_F32, GN_F64, GN_C64, GN_C128};
// What the standard defines; NONE is what it leaves open.
static const int promoted[DTYPES][DTYPES] = {
    //        B     I1    I2    I4    I8    U1    U2    U4    U8    F4    F8    C4    C8
    /* B  */ {B, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE},
    /* I1 */ {NONE, I1, I2, I4, I8, I2, I4, I8, NONE, NONE, NONE, NONE, NONE},
    /* I2 */ {NONE, I2, I2, I4, I8, I2, I4, I8, NONE, NONE, NONE, NONE, NONE},
    /* I4 */ {NONE, I4, I4, I4, I8, I4, I4, I8, NONE, NONE, NONE, NONE, NONE},
    /* I8 */ {NONE, I8, I8, I8, I8, I8, I8, I8, NONE, NONE, NONE, NONE, NONE},
    /* U1 */ {NONE, I2, I2, I4, I8, U1, U2, U4, U8, NONE, NONE, NONE, NONE},
    /* U2 */ {NONE, I4, I4, I4, I8, U2, U2, U4, U8, NONE, NONE, NONE, NONE},
    /* U4 */ {NONE, I8, I8, I8, I8, U4, U4, U4, U8, NONE, NONE, NONE, NONE},
    /* U8 */ {NONE, NONE, NONE, NONE, NONE, U8, U8, U8, U8, NONE, NONE, NONE, NONE},
    /* F4 */ {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, F4, F8, C4, C8},
    /* F8 */ {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, F8, F8, C8, C8},
    /* C4 */ {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, C4, C8, C4, C8},
    /* C8 */ {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, C8, C8, C8, C8},
};

static bool is_integer(int t) { return t >= I1 && t <= U8; }
static bool is_real_float(int t) { return t == F4 || t == F8; }

// What is done here where the standard leaves it open: bool gives way, integers give way to floats, int8 to int64 with uint64 are float64.
static int chosen(int a, int b) {
    if (promoted[a][b] != NONE) return promoted[a][b];
    if (a == B || b == B) return a == B ? b : a;
    if (is_integer(a) && is_integer(b)) return F8;
    return is_integer(a) ? b : a;
}

typedef gn_array *(*binary_fn)(gn_array *a, gn_array *b);

static void expect_dtype(const char *fn, gn_array *y, gn_dtype want, int a, int b) {
    if (y == NULL || gn_dtype_of(y) != want)
        fail_msg("%s of %s, %s: %s, expected %s", fn, gn_dtype_name(dtypes[a]), gn_dtype_name(dtypes[b]),
                 y == NULL ? "nothing" : gn_dtype_name(gn_dtype_of(y)), gn_dtype_name(want));
}

static void test_promotion(void **state) {
    gn_context *g = (gn_context *)*state;
    static const struct {
        const char *name;
        binary_fn fn;
    } plain[] = {{"gn_add", gn_add}, {"gn_sub", gn_sub}, {"gn_mul", gn_mul}, {"gn_pow", gn_pow}, {"gn_floor_div", gn_floor_div}, {"gn_mod", gn_mod}},
      compare[] = {{"gn_eq", gn_eq}, {"gn_ne", gn_ne}, {"gn_lt", gn_lt}, {"gn_le", gn_le}, {"gn_gt", gn_gt}, {"gn_ge", gn_ge}},
      bits[] = {{"gn_and", gn_and}, {"gn_or", gn_or}, {"gn_xor", gn_xor}, {"gn_shl", gn_shl}, {"gn_shr", gn_shr}},
      divide[] = {{"gn_div", gn_div}, {"gn_atan2", gn_atan2}, {"gn_logaddexp", gn_logaddexp}};
    for (int a = 0; a < DTYPES; a++)
        for (int b = 0; b < DTYPES; b++) {
            gn_scope_begin(g);
            const int both = chosen(a, b);
            const bool wide = a >= C4 || b >= C4, defined = promoted[a][b] != NONE;
            assert_int_equal(gn_promote(dtypes[a], dtypes[b]), dtypes[both]);
            gn_array *x = gn_ones(g, dtypes[a], GN_SHAPE(3)), *y = gn_ones(g, dtypes[b], GN_SHAPE(2, 1)), *pair[] = {x, gn_ones(g, dtypes[b], GN_SHAPE(4))};
            for (int i = 0; i < 6; i++) {
                if ((wide && i >= 4) || (a == B && b == B)) continue;
                gn_array *r = plain[i].fn(x, y);
                expect_dtype(plain[i].name, r, dtypes[both], a, b);
                expect_shape(r, 2, 3);
                if (defined) assert_int_equal(gn_status_get(g), GN_OK);
            }
            for (int i = 0; i < 6; i++)
                if (i < 2 || !wide) expect_dtype(compare[i].name, compare[i].fn(x, y), GN_BOOL, a, b);
            for (int i = 0; i < 5; i++)
                if (defined && (both == B || is_integer(both)) && (both != B || i < 3)) expect_dtype(bits[i].name, bits[i].fn(x, y), dtypes[both], a, b);
            for (int i = 0; i < 3; i++)
                if (is_real_float(both) && defined) expect_dtype(divide[i].name, divide[i].fn(x, y), dtypes[both], a, b);
            if (wide) expect_dtype("gn_div", gn_div(x, y), dtypes[both], a, b);
            expect_dtype("gn_where", gn_where(gn_ones(g, GN_BOOL, GN_SHAPE(1)), x, y), dtypes[both], a, b);
            expect_dtype("gn_concat", gn_concat(pair, 2, 0), dtypes[both], a, b);
            if (!wide && both != B && defined) {
                gn_array *m = gn_matmul(x, gn_ones(g, dtypes[b], GN_SHAPE(3)));
                expect_dtype("gn_matmul", m, dtypes[both], a, b);
                expect_dtype("gn_vecdot", gn_vecdot(x, gn_ones(g, dtypes[b], GN_SHAPE(3)), -1), dtypes[both], a, b);
                expect_dtype("gn_tensordot", gn_tensordot(x, gn_ones(g, dtypes[b], GN_SHAPE(3)), NULL, NULL, 1), dtypes[both], a, b);
            }
            gn_scope_end(g);
        }
    // A number does not promote: the dtype of the array stays.
    for (int t = 0; t < DTYPES; t++) {
        gn_array *x = gn_ones(g, dtypes[t], GN_SHAPE(2));
        if (t != B) expect_dtype("gn_add_s", gn_add_s(x, 2), dtypes[t], t, t);
        if (t >= F4) expect_dtype("gn_mul_s", gn_mul_s(x, 0.5), dtypes[t], t, t);
        expect_dtype("gn_eq_s", gn_eq_s(x, 1), GN_BOOL, t, t);
        if (t >= F4) expect_dtype("gn_exp", gn_exp(x), dtypes[t], t, t);
        if (t >= C4) expect_dtype("gn_abs", gn_abs(x), dtypes[t == C4 ? F4 : F8], t, t);
        else if (t != B) expect_dtype("gn_abs", gn_abs(x), dtypes[t], t, t);
        if (is_integer(t)) expect_dtype("gn_floor", gn_floor(x), dtypes[t], t, t);
        // Sums: floats stay, bool and signed integers are int64, unsigned ones uint64.
        const gn_dtype sum = t >= F4 ? dtypes[t] : t >= U1 ? GN_U64 : GN_I64;
        expect_dtype("gn_sum", gn_sum(x, 0), sum, t, t);
        expect_dtype("gn_prod", gn_prod(x, GN_ALL), sum, t, t);
        if (t < C4) expect_dtype("gn_max", gn_max(x, 0), dtypes[t], t, t);
        expect_dtype("gn_all", gn_all(x, 0), GN_BOOL, t, t);
        if (t < C4) expect_dtype("gn_argmax", gn_argmax(x, 0), GN_I64, t, t);
        if (t >= F4) expect_dtype("gn_mean", gn_mean(x, 0), dtypes[t], t, t);
        if (t == F4 || t == F8) expect_dtype("gn_std", gn_std(x, 0, 0.5), dtypes[t], t, t);
    }
}

// ---- axes

static gn_array *var1(gn_array *a, gn_axes axes) { return gn_var(a, axes, 0); }
static gn_array *std1(gn_array *a, gn_axes axes) { return gn_std(a, axes, 0); }
typedef struct over {
    const char *name;
    gn_array *(*fn)(gn_array *a, gn_axes axes);
    bool one;     // takes one axis or all
    bool keeps;   // has the shape of its operand
    double empty; // of no elements; -1: an error
} over;
static const over overs[] = {
    {"gn_sum", gn_sum, false, false, 0},  {"gn_prod", gn_prod, false, false, 1},   {"gn_min", gn_min, false, false, -1},
    {"gn_max", gn_max, false, false, -1}, {"gn_any", gn_any, false, false, 0},     {"gn_all", gn_all, false, false, 1},
    {"gn_mean", gn_mean, false, false, NAN_}, {"gn_var", var1, false, false, NAN_}, {"gn_std", std1, false, false, NAN_},
    {"gn_argmin", gn_argmin, true, false, -1}, {"gn_argmax", gn_argmax, true, false, -1},
    {"gn_cumsum", gn_cumsum, true, true, 0},
};
enum { OVERS = sizeof overs / sizeof *overs };

static bool equal(gn_array *a, gn_array *b) { return a != NULL && b != NULL && gn_dtype_of(a) == gn_dtype_of(b) && gn_array_equal(a, b, true); }

static void test_axes(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_mod_s(gn_square(gn_reshape(gn_arange(g, GN_F32, 0, 60, 1), GN_SHAPE(3, 4, 5))), 17);
    for (int f = 0; f < OVERS; f++) {
        const over *o = overs + f;
        for (int axis = 0; axis < 3; axis++) {
            gn_array *y = o->fn(a, axis), *kept = o->keeps ? NULL : o->fn(a, GN_KEEP(axis));
            if (!equal(y, o->fn(a, axis - 3))) fail_msg("%s: axes %d and %d differ", o->name, axis, axis - 3);
            if (o->keeps) continue;
            if (!equal(y, gn_squeeze(kept, axis))) fail_msg("%s: axis %d kept differs", o->name, axis);
            gn_shape s = gn_shape_of(kept);
            assert_int_equal(s.rank, 3);
            for (int i = 0; i < 3; i++) assert_int_equal(s.dim[i], i == axis ? 1 : gn_dim(a, i));
        }
        static const int outside[] = {3, -4, 7, -100};
        for (int i = 0; i < 4; i++) {
            assert_null(o->fn(a, outside[i]));
            char text[100];
            snprintf(text, sizeof text, "%s: axis %d is out of bounds for array of rank 3", o->name, outside[i]);
            expect_error(g, GN_ERROR_ARGUMENT, text);
        }
        assert_null(o->fn(gn_scalar(g, GN_F32, 1), 0)); // 0-d arrays have no axis
        expect_error(g, GN_ERROR_ARGUMENT, NULL);
        if (!o->keeps) {
            expect_shape(o->fn(a, GN_ALL), );
            expect_shape(o->fn(a, GN_KEEP(GN_ALL)), 1, 1, 1);
            expect_shape(o->fn(gn_scalar(g, GN_F32, 1), GN_ALL), );
        }
        if (o->one) continue;
        if (!equal(o->fn(a, GN_AXES(0, 2)), o->fn(a, GN_AXES(-1, 0)))) fail_msg("%s: sets of axes differ by their order", o->name);
        expect_shape(o->fn(a, GN_AXES(0, 2)), 4);
        expect_shape(o->fn(a, GN_KEEP(GN_AXES(0, 2))), 1, 4, 1);
        expect_shape(o->fn(a, GN_AXES()), 3, 4, 5);
        if (!equal(o->fn(a, GN_AXES(0, 1, 2)), o->fn(a, GN_ALL))) fail_msg("%s: all axes by name differ from GN_ALL", o->name);
        assert_null(o->fn(a, GN_AXES(0, 0)));
        expect_error(g, GN_ERROR_ARGUMENT, NULL);
        assert_null(o->fn(a, GN_AXES(0, -3)));
        expect_error(g, GN_ERROR_ARGUMENT, NULL);
    }
    // NaN: sums and extremes have it, any and all count it as true.
    const double some[] = {1, NAN_, 3, 0};
    gn_array *x = gn_array_from(g, GN_F64, GN_SHAPE(4), some);
    expect_values(gn_max(x, 0), NAN_);
    expect_values(gn_min(x, 0), NAN_);
    expect_values(gn_sum(x, 0), NAN_);
    expect_values(gn_argmax(x, 0), 1);
    expect_values(gn_any(gn_slice(x, 0, 1, 2, 1), 0), 1);
    expect_values(gn_all(gn_slice(x, 0, 0, 3, 1), 0), 1);
    // A correction as large as the count or larger is NaN or infinite, and one that is no whole number is taken.
    expect_values(gn_var(gn_arange(g, GN_F64, 0, 4, 1), 0, 1.5), 2.0);
    expect_values(gn_isfinite(gn_var(gn_arange(g, GN_F64, 0, 4, 1), 0, 4)), 0);
}

// ---- no elements

static void test_empty(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *none = gn_zeros(g, GN_F32, GN_SHAPE(2, 0, 3));
    for (int f = 0; f < OVERS; f++) {
        const over *o = overs + f;
        if (o->keeps) {
            expect_shape(o->fn(none, 1), 2, 0, 3);
            continue;
        }
        expect_shape(o->fn(none, 0), 0, 3);
        expect_shape(o->fn(none, GN_KEEP(2)), 2, 0, 1);
        gn_array *y = o->fn(none, 1), *all = o->fn(none, GN_ALL);
        if (o->empty == -1) {
            if (y != NULL || all != NULL) fail_msg("%s of nothing has a value", o->name);
            expect_error(g, GN_ERROR_SHAPE, NULL);
            continue;
        }
        expect_shape(y, 2, 3);
        double have[6];
        read_doubles(y, have, 6);
        for (int i = 0; i < 6; i++)
            if (!same(have[i], o->empty, 0)) fail_msg("%s of nothing: %g", o->name, have[i]);
        read_doubles(all, have, 1);
        assert_true(same(have[0], o->empty, 0));
    }
    for (size_t f = 0; f < sizeof ones / sizeof *ones; f++) expect_shape(gn_eval(ones[f].fn(none)), 2, 0, 3);
    for (size_t f = 0; f < sizeof twos / sizeof *twos; f++) expect_shape(gn_eval(twos[f].fn(none, gn_ones(g, GN_F32, GN_SHAPE(1, 3)))), 2, 0, 3);
    gn_array *both[] = {none, gn_ones(g, GN_F32, GN_SHAPE(2, 4, 3))};
    expect_shape(gn_concat(both, 2, 1), 2, 4, 3);
    expect_shape(gn_stack((gn_array *[]){none, none}, 2, -1), 2, 0, 3, 2);
    expect_shape(gn_sort(none, 1, false), 2, 0, 3);
    expect_shape(gn_argsort(none, 1, false), 2, 0, 3);
    expect_shape(gn_unique(none, NULL, NULL, NULL), 0);
    expect_shape(gn_nonzero(none), 3, 0);
    expect_shape(gn_roll(none, 2, 1), 2, 0, 3);
    expect_shape(gn_flip(none, GN_ALL), 2, 0, 3);
    expect_shape(gn_matmul(gn_zeros(g, GN_F32, GN_SHAPE(3, 0)), gn_zeros(g, GN_F32, GN_SHAPE(0, 2))), 3, 2);
    expect_values(gn_matmul(gn_zeros(g, GN_F32, GN_SHAPE(1, 0)), gn_zeros(g, GN_F32, GN_SHAPE(0, 2))), 0, 0);
    expect_values(gn_tensordot(gn_zeros(g, GN_F32, GN_SHAPE(0)), gn_zeros(g, GN_F32, GN_SHAPE(0)), NULL, NULL, 1), 0);
    expect_shape(gn_arange(g, GN_I32, 5, 5, 1), 0);
    expect_shape(gn_arange(g, GN_I32, 5, 0, 1), 0);
    expect_shape(gn_linspace(g, GN_F64, 0, 1, 0), 0);
    expect_shape(gn_eye(g, GN_F32, 0, 3, 0), 0, 3);
}

// ---- shapes

static void test_manipulation(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_reshape(gn_arange(g, GN_I32, 0, 6, 1), GN_SHAPE(2, 3));
    // expand_dims: axes from -rank - 1 to rank.
    for (int axis = -3; axis <= 2; axis++) {
        gn_array *y = gn_expand_dims(a, axis);
        assert_int_equal(gn_rank(y), 3);
        assert_int_equal(gn_dim(y, axis < 0 ? axis + 3 : axis), 1);
        assert_true(equal(gn_squeeze(y, axis), a));
    }
    assert_null(gn_expand_dims(a, 3));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_expand_dims(a, -4));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_squeeze(a, 0)); // has more than one element
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_squeeze(a, 2));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    // concat with no axis joins raveled arrays here: gn_ravel first. Other sizes than along the axis must agree.
    assert_null(gn_concat((gn_array *[]){a, gn_transpose(a)}, 2, 0));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_concat((gn_array *[]){a, gn_ravel(a)}, 2, 0));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    expect_values(gn_concat((gn_array *[]){gn_ravel(a), gn_ravel(a)}, 2, -1), 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5);
    assert_null(gn_stack((gn_array *[]){a, gn_transpose(a)}, 2, 0));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    expect_shape(gn_stack((gn_array *[]){a, a}, 2, -1), 2, 3, 2);
    // reshape: one -1, and as many elements.
    expect_shape(gn_reshape(a, GN_SHAPE(3, -1)), 3, 2);
    assert_null(gn_reshape(a, GN_SHAPE(4, -1)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_reshape(a, GN_SHAPE(-1, -1)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    expect_values(gn_reshape(gn_transpose(a), GN_SHAPE(-1)), 0, 3, 1, 4, 2, 5);
    // permute_dims: each axis once.
    assert_null(gn_permute(a, 0, 0));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_permute(a, 0));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    // roll without an axis is of the raveled array and keeps the shape.
    expect_values(gn_roll(a, 1, GN_ALL), 5, 0, 1, 2, 3, 4);
    expect_shape(gn_roll(a, 1, GN_ALL), 2, 3);
    expect_values(gn_roll(a, -1, 1), 1, 2, 0, 4, 5, 3);
    // flip over all axes and one.
    expect_values(gn_flip(a, GN_ALL), 5, 4, 3, 2, 1, 0);
    expect_values(gn_flip(a, -1), 2, 1, 0, 5, 4, 3);
    // broadcast_to only stretches.
    assert_null(gn_broadcast_to(a, GN_SHAPE(3)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_broadcast_to(a, GN_SHAPE(2, 2, 2)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    expect_shape(gn_broadcast_to(a, GN_SHAPE(4, 2, 3)), 4, 2, 3);
    // sort and argsort: any axis, stable, descending on demand.
    const int32_t keys[] = {2, 1, 2, 1, 0, 1};
    gn_array *k = gn_array_from(g, GN_I32, GN_SHAPE(6), keys);
    expect_values(gn_argsort(k, -1, false), 4, 1, 3, 5, 0, 2);
    expect_values(gn_argsort(k, 0, true), 0, 2, 1, 3, 5, 4);
    assert_null(gn_sort(a, 2, false));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    // Integers: floor_divide and remainder round down, sums wrap.
    const int8_t p[] = {-7, 7, -128, 127}, q[] = {2, -2, 1, 127};
    gn_array *x = gn_array_from(g, GN_I8, GN_SHAPE(4), p), *y = gn_array_from(g, GN_I8, GN_SHAPE(4), q);
    expect_values(gn_floor_div(x, y), -4, -4, -128, 1);
    expect_values(gn_mod(x, y), 1, -1, 0, 0);
    expect_values(gn_add(x, y), -5, 5, -127, -2);
    expect_values(gn_abs(x), 7, 7, -128, 127);
    // take along the last axis, where, searchsorted on both sides.
    expect_values(gn_take(a, gn_array_from(g, GN_I64, GN_SHAPE(2), (const int64_t[]){2, 0}), -1), 2, 0, 5, 3);
    gn_array *sorted = gn_sort(k, 0, false);
    expect_values(gn_searchsorted(sorted, k, false), 4, 1, 4, 1, 0, 1);
    expect_values(gn_searchsorted(sorted, k, true), 6, 4, 6, 4, 1, 4);
}

// Integers by one number: the quotient rounds down, the remainder has the divisor's sign; by 0 both are 0, what does not fit
// wraps. By bits, as int64 does not hold all uint64.
static void expect_divided(gn_context *g, gn_dtype t, int bits, bool sign, const uint64_t *x, int n, uint64_t by) {
    const size_t item = gn_dtype_size(t);
    uint8_t bytes[8 * 150], got[2][8 * 150], same[2][8 * 150];
    for (int i = 0; i < n; i++) memcpy(bytes + (size_t)i * item, &x[i], item);
    gn_array *a = gn_array_from(g, t, GN_SHAPE(n), bytes), *b = gn_full_from(g, t, GN_SHAPE(1), &by);
    assert_int_equal(gn_read(gn_floor_div(a, b), got[0], (size_t)n * item), GN_OK);
    assert_int_equal(gn_read(gn_mod(a, b), got[1], (size_t)n * item), GN_OK);
    const int up = 64 - bits;
    if (bits < 64) {
        const double one = sign ? (double)((int64_t)(by << up) >> up) : (double)(by << up >> up);
        gn_array *some[2] = {gn_floor_div_s(a, one), gn_mod_s(a, one)};
        for (int k = 0; k < 2; k++) {
            assert_int_equal(gn_read(some[k], same[k], (size_t)n * item), GN_OK);
            assert_memory_equal(same[k], got[k], (size_t)n * item);
            gn_release(some[k]);
        }
    }
    for (int i = 0; i < n; i++) {
        uint64_t q = 0, r = 0, have[2] = {0, 0};
        if (sign) {
            const int64_t v = (int64_t)(x[i] << up) >> up, w = (int64_t)(by << up) >> up;
            const bool wraps = w == -1;
            q = w == 0 ? 0 : wraps ? 0 - (uint64_t)v : (uint64_t)(v / w);
            r = w == 0 || wraps ? 0 : (uint64_t)(v % w);
            if (r != 0 && (v < 0) != (w < 0)) q--, r += (uint64_t)w;
        } else if (by << up != 0) {
            q = (x[i] << up >> up) / (by << up >> up);
            r = (x[i] << up >> up) % (by << up >> up);
        }
        for (int k = 0; k < 2; k++) memcpy(&have[k], got[k] + (size_t)i * item, item);
        if (have[0] == q << up >> up && have[1] == r << up >> up) continue;
        fail_msg("%s: %llx by %llx gives %llx and %llx", gn_dtype_name(t), (unsigned long long)x[i], (unsigned long long)by,
                 (unsigned long long)have[0], (unsigned long long)have[1]);
    }
    gn_release(a);
    gn_release(b);
}
static void test_divided_by_one(void **state) {
    gn_context *g = (gn_context *)*state;
    const gn_dtype types[] = {GN_I8, GN_U8, GN_I16, GN_U16, GN_I32, GN_U32, GN_I64, GN_U64};
    for (int t = 0; t < 8; t++) {
        const int bits = 8 * (int)gn_dtype_size(types[t]);
        uint64_t by[150], x[150], random = 1;
        int n = 0;
        for (uint64_t i = 0; i <= 12; i++, n += 2) by[n] = i, by[n + 1] = 0 - i;
        for (int i = 3; i < bits; i += bits / 8) // powers of two and their neighbours
            for (uint64_t k = 0; k < 3; k++, n += 2) by[n] = ((uint64_t)1 << i) + k - 1, by[n + 1] = 0 - by[n];
        const uint64_t more[] = {(uint64_t)1 << (bits - 1), 1000000007, 4294967291u, 0xfffffffffffffc59u};
        for (int i = 0; i < 4; i++) by[n++] = more[i];
        for (int j = 0; j < n; j++) {
            for (int i = 0; i < 141; i++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                x[i] = i < n ? by[i] : i % 3 == 0 ? random : by[j] * (random >> 40) - (uint64_t)(i % 3 - 1);
            }
            expect_divided(g, types[t], bits, t % 2 == 0, x, j == 0 ? 1 : 141, by[j]);
        }
    }
}

// Floats to integers, alone, cut to limits, and with their low bits taken: they truncate and saturate, NaN gives 0.
static int64_t whole_of(double x, double low, double high) {
    x = x == x ? trunc(x) : 0.0;
    return (int64_t)(x < low ? low : x > high ? high : x);
}
static void test_floats_to_integers(void **state) {
    gn_context *g = (gn_context *)*state;
    const double limits[] = {128, 255, 32767, 65535, 16777217, 2147483648.0, 4294967295.0, 9007199254740992.0};
    const struct {
        gn_dtype t;
        double low, high;
    } to[] = {{GN_I8, -128, 127}, {GN_U8, 0, 255}, {GN_I16, -32768, 32767}, {GN_U16, 0, 65535}, {GN_U32, 0, 4294967295.0},
              {GN_I32, -2147483648.0, 2147483647}, {GN_I64, -9e18, 9e18}, {GN_U64, 0, 9e18}};
    double x[80], read[80];
    int n = 0;
    x[n++] = NAN, x[n++] = -0.0, x[n++] = 0.99, x[n++] = -0.99, x[n++] = -1.0;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++) x[n++] = (k & 1 ? -1 : 1) * (limits[i] + 0.75 * (k / 2 - 1));
    gn_array *all[2] = {NULL, gn_array_from(g, GN_F64, GN_SHAPE(n), x)};
    all[0] = gn_eval(gn_cast(all[1], GN_F32));
    for (int from = 0; from < 2; from++)
        for (int k = 0; k < 8; k++) {
            gn_array *a = all[from], *y = gn_cast(a, to[k].t), *low = gn_cast(y, GN_I8);
            double got[4][80];
            gn_eval_all((gn_array *[]){y, low}, 2); // the integers and their low bits of one program
            gn_array *w = gn_cast(gn_add_s(gn_cast(a, to[k].t), 1), GN_F64);
            gn_array *v = gn_minimum_s(gn_maximum_s(gn_cast(a, GN_I64), 3), 16777217);
            gn_array *z = gn_cast(gn_minimum_s(gn_maximum_s(gn_cast(a, GN_I32), -5), 16777217), GN_F64);
            gn_array *const of[] = {gn_cast(y, GN_F64), gn_cast(low, GN_F64), w, gn_cast(v, GN_F64)};
            for (int i = 0; i < 4; i++) read_doubles(of[i], got[i], n);
            read_doubles(z, read, n);
            for (int i = 0; i < n; i++) {
                const double have = from == 0 ? (double)(float)x[i] : x[i];
                const int64_t is = whole_of(have, to[k].low, to[k].high);
                assert_true(got[0][i] == (double)is);
                assert_true(got[1][i] == (double)(int8_t)(uint8_t)((uint64_t)is & 255));
                if (fabs((double)is) < 9e15) assert_true(got[2][i] == (double)is + 1 || (double)is == to[k].high);
                assert_true(got[3][i] == (double)whole_of(have == have && have > 3 ? have : 3, 3, 16777217));
                assert_true(read[i] == (double)whole_of(have, -5, 16777217));
            }
            gn_array *done[] = {y, low, w, v, z, of[0], of[1], of[3]};
            for (int i = 0; i < 8; i++) gn_release(done[i]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_one),  GN_TEST(test_two),   GN_TEST(test_complex),      GN_TEST(test_promotion),
        GN_TEST(test_axes), GN_TEST(test_empty), GN_TEST(test_manipulation),
        GN_TEST(test_divided_by_one), GN_TEST(test_floats_to_integers),
    };
    return test_run(tests);
}
