// Random programs of elementwise functions, reductions and products, with gradients, run lazily (so that they are fused in
// every way) on the CPU and on Vulkan, against an evaluation of their own in wide floating point.
//
//   fuzz_programs [seconds [seed [programs]]]
//
// Every program has a seed of its own, which is printed with the program when something is wrong and repeats it:
// fuzz_programs 0 SEED 1. With GN_TEST_BACKEND=vulkan both backends run it.
//
// The evaluation computes with intervals that hold whatever the errors allow that gpunum.h and tests/make_cases.py state
// per function: every op widens the interval by its bound and by the rounding of its dtype. Gradients are the chain rule in
// the same arithmetic. Where an interval says nothing (a number near a jump or a pole, an overflow) nothing is compared;
// programs are made so that this is rare. Integer programs have one right answer.
#include "fuzz.h"
#include "test.h"

#include <float.h>

typedef long double real;
typedef struct iv {
    real lo, hi;
} iv;

enum { NODES = 24, DIMS = 3, MOST = 40 * 40 };

// ---- intervals

static const real infinite = (real)INFINITY;

static real larger(real a, real b) { return a > b ? a : b; }
static real smaller(real a, real b) { return a < b ? a : b; }

static iv point(real x) {
    iv y;
    y.lo = y.hi = x;
    return y;
}
static iv ends(real lo, real hi) {
    iv y;
    y.lo = lo, y.hi = hi;
    return y;
}
static iv anything(void) { return ends(-infinite, infinite); }
static bool says_nothing(iv x) { return !(x.lo > -infinite && x.hi < infinite); }
static real size_of(iv x) { return larger(fabsl(x.lo), fabsl(x.hi)); }
// What says nothing may be no number at all, which minimum and maximum hand on.
static iv least(iv a, iv b) { return says_nothing(a) || says_nothing(b) ? anything() : ends(smaller(a.lo, b.lo), smaller(a.hi, b.hi)); }
static iv greatest(iv a, iv b) { return says_nothing(a) || says_nothing(b) ? anything() : ends(larger(a.lo, b.lo), larger(a.hi, b.hi)); }
static iv hull(iv a, iv b) { return ends(smaller(a.lo, b.lo), larger(a.hi, b.hi)); }

static real eps_of(gn_dtype t) {
    return t == GN_F64 ? 0x1p-52L : t == GN_F16 ? 0x1p-10L : t == GN_BF16 ? 0x1p-7L : 0x1p-23L;
}
// Results below the smallest normal number may be flushed; of float16 they are rounded to 2^-24.
static real least_of(gn_dtype t) { return t == GN_F64 ? (real)DBL_MIN : t == GN_F16 ? 0x1p-24L : (real)FLT_MIN; }
static real most_of(gn_dtype t) { return t == GN_F64 ? (real)DBL_MAX : t == GN_F16 ? 65504.0L : 3.38e38L; }

// The error of an op: `slack`, and `ulps` of the dtype that it computes in (float32 for halves); then it is rounded to t.
static iv grown(iv x, real ulps, real slack, gn_dtype t) {
    gn_dtype wide = t == GN_F64 ? GN_F64 : GN_F32;
    real w = ulps * eps_of(wide) * 1.0000001L, extra = slack + (ulps > 0 || slack > 0 ? least_of(wide) : 0);
    if (!(x.lo <= x.hi) || says_nothing(x)) return anything();
    x = ends(x.lo - w * fabsl(x.lo) - extra, x.hi + w * fabsl(x.hi) + extra);
    if (t != wide && (ulps > 0 || slack > 0)) {
        w = 0.5L * eps_of(t);
        x = ends(x.lo - w * fabsl(x.lo) - least_of(t), x.hi + w * fabsl(x.hi) + least_of(t));
    }
    return size_of(x) < most_of(t) ? x : anything();
}

static gn_dtype T; // that the ops below round to

// A number next to an array of dtype t; eighths are exact.
static iv beside(real c, gn_dtype t) { return grown(point(c), 8 * c == rintl(8 * c) && fabsl(c) < 16 ? 0 : 0.5L, 0, t); }
static iv konst(real c) { return beside(c, T); }
static iv cast(iv a, gn_dtype from, gn_dtype to) {
    bool exact = from == to || to == GN_F64 || (to == GN_F32 && from != GN_F64);
    return exact ? a : grown(a, 0.5L, 0, to);
}
static iv neg(iv a) { return ends(-a.hi, -a.lo); }
static iv add(iv a, iv b) { return grown(ends(a.lo + b.lo, a.hi + b.hi), 0.5L, 0, T); }
static iv sub(iv a, iv b) { return add(a, neg(b)); }
static iv times(iv a, iv b) {
    real p = a.lo * b.lo, q = a.lo * b.hi, r = a.hi * b.lo, s = a.hi * b.hi;
    if (says_nothing(a) || says_nothing(b)) return anything();
    return ends(smaller(smaller(p, q), smaller(r, s)), larger(larger(p, q), larger(r, s)));
}
static iv mul(iv a, iv b) { return grown(times(a, b), 0.5L, 0, T); }
static iv inverse(iv b) { return b.lo > 0 || b.hi < 0 ? ends(1 / b.hi, 1 / b.lo) : anything(); }
static iv quotient(iv a, iv b) { return grown(times(a, inverse(b)), 1, 0, T); } // 1 ulp on the GPU
static iv square(iv a) {
    real lo = a.lo * a.lo, hi = a.hi * a.hi;
    if (says_nothing(a)) return anything();
    iv y = ends(a.lo <= 0 && a.hi >= 0 ? 0 : smaller(lo, hi), larger(lo, hi));
    return grown(y, 0.5L, 0, T);
}

// f rises between lo and hi
static iv rising(real (*f)(real), iv x, real ulps) {
    if (says_nothing(x)) return x;
    return grown(ends(f(x.lo), f(x.hi)), ulps, 0, T);
}
static iv falling(real (*f)(real), iv x, real ulps) {
    if (says_nothing(x)) return x;
    return grown(ends(f(x.hi), f(x.lo)), ulps, 0, T);
}
// |f'| <= steep everywhere
static iv wavy(real (*f)(real), iv x, real ulps, real steep) {
    if (says_nothing(x)) return x;
    real mid = f((x.lo + x.hi) / 2), w = steep * (x.hi - x.lo) / 2;
    return grown(ends(mid - w, mid + w), ulps, 0, T);
}

static real root3(real x) { return cbrtl(x); }
static real one_over(real x) { return 1 / x; }
static real one_over_root(real x) { return 1 / sqrtl(x); }
static real sigmoid(real x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
static real silu(real x) { return x * sigmoid(x); }
static real gelu(real x) { return x * 0.5L * erfcl(-x * sqrtl(0.5L)); }
static real softplus(real x) { return larger(x, 0) + log1pl(expl(-fabsl(x))); }

// ---- elementwise functions of one operand

typedef enum unary {
    SQRT, RSQRT, CBRT, RECIP, EXP, EXP2, EXPM1, LOG, LOG2, LOG10, LOG1P, SIN, COS, TAN, ASIN, ACOS, ATAN, SINH, COSH, TANH,
    ASINH, ACOSH, ATANH, ERF, SIGMOID, SILU, GELU, SOFTPLUS, NEG, ABS, SIGN, SQUARE, FLOOR, CEIL, ROUND, TRUNC, RELU, UNARIES
} unary;

static const struct {
    const char *name;
    gn_array *(*fn)(gn_array *a);
    real ulps, ulps64; // tests/make_cases.py
} unaries[] = {
    {"sqrt", gn_sqrt, 1, 1}, {"rsqrt", gn_rsqrt, 2, 2}, {"cbrt", gn_cbrt, 4, 2}, {"recip", gn_recip, 1, 1},
    {"exp", gn_exp, 2, 2}, {"exp2", gn_exp2, 4, 2}, {"expm1", gn_expm1, 4, 2}, {"log", gn_log, 2, 2},
    {"log2", gn_log2, 4, 2}, {"log10", gn_log10, 4, 2}, {"log1p", gn_log1p, 4, 2}, {"sin", gn_sin, 2, 2},
    {"cos", gn_cos, 2, 2}, {"tan", gn_tan, 4, 2}, {"asin", gn_asin, 4, 2}, {"acos", gn_acos, 4, 2},
    {"atan", gn_atan, 4, 2}, {"sinh", gn_sinh, 4, 2}, {"cosh", gn_cosh, 4, 2}, {"tanh", gn_tanh, 2, 2},
    {"asinh", gn_asinh, 4, 2}, {"acosh", gn_acosh, 4, 2}, {"atanh", gn_atanh, 4, 2}, {"erf", gn_erf, 2, 4},
    {"sigmoid", gn_sigmoid, 4, 4}, {"silu", gn_silu, 5, 5}, {"gelu", gn_gelu, 4, 4}, {"softplus", gn_softplus, 4, 4},
    {"neg", gn_neg, 0, 0}, {"abs", gn_abs, 0, 0}, {"sign", gn_sign, 0, 0}, {"square", gn_square, 0.5L, 0.5L},
    {"floor", gn_floor, 0, 0}, {"ceil", gn_ceil, 0, 0}, {"round", gn_round, 0, 0}, {"trunc", gn_trunc, 0, 0},
    {"relu", gn_relu, 0, 0},
};

static real sign_of(real x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
static real above_zero(real x) { return larger(x, 0); }

static iv apply(unary u, iv x) {
    real ulps = T == GN_F64 ? unaries[u].ulps64 : unaries[u].ulps;
    switch (u) {
    case SQRT: return x.lo >= 0 ? rising(sqrtl, x, ulps) : anything();
    case RSQRT: return x.lo > 0 ? falling(one_over_root, x, ulps) : anything();
    case CBRT: return rising(root3, x, ulps);
    case RECIP: return x.lo > 0 || x.hi < 0 ? falling(one_over, x, ulps) : anything();
    case EXP: return rising(expl, x, ulps);
    case EXP2: return rising(exp2l, x, ulps);
    case EXPM1: return rising(expm1l, x, ulps);
    case LOG: return x.lo > 0 ? rising(logl, x, ulps) : anything();
    case LOG2: return x.lo > 0 ? rising(log2l, x, ulps) : anything();
    case LOG10: return x.lo > 0 ? rising(log10l, x, ulps) : anything();
    case LOG1P: return x.lo > -1 ? rising(log1pl, x, ulps) : anything();
    case SIN: return wavy(sinl, x, ulps, 1);
    case COS: return wavy(cosl, x, ulps, 1);
    case TAN: // no pole in between
        if (says_nothing(x) || x.hi - x.lo > 1 || floorl(x.lo / acosl(-1) + 0.5L) != floorl(x.hi / acosl(-1) + 0.5L)) return anything();
        return rising(tanl, x, ulps);
    case ASIN: return x.lo >= -1 && x.hi <= 1 ? rising(asinl, x, ulps) : anything();
    case ACOS: return x.lo >= -1 && x.hi <= 1 ? falling(acosl, x, ulps) : anything();
    case ATAN: return rising(atanl, x, ulps);
    case SINH: return rising(sinhl, x, ulps);
    case COSH:
        if (says_nothing(x)) return x;
        return x.lo >= 0   ? rising(coshl, x, ulps)
               : x.hi <= 0 ? falling(coshl, x, ulps)
                           : grown(ends(1, coshl(size_of(x))), ulps, 0, T);
    case TANH: return rising(tanhl, x, ulps);
    case ASINH: return rising(asinhl, x, ulps);
    case ACOSH: return x.lo >= 1 ? rising(acoshl, x, ulps) : anything();
    case ATANH: return x.lo > -1 && x.hi < 1 ? rising(atanhl, x, ulps) : anything();
    case ERF: return rising(erfl, x, ulps);
    case SIGMOID: return rising(sigmoid, x, ulps);
    case SILU: return wavy(silu, x, ulps, 1.1L);
    case GELU: // of float64 by erfc(-x / sqrt(2)), which makes x * x + 1 times as much of its argument's rounding
        if (T == GN_F64 && !says_nothing(x) && x.lo < 0) ulps += 0.8L * x.lo * x.lo;
        return wavy(gelu, x, ulps, 1.13L);
    case SOFTPLUS: return rising(softplus, x, ulps);
    case NEG: return neg(x);
    case ABS: return x.lo >= 0 ? x : x.hi <= 0 ? neg(x) : ends(0, size_of(x));
    case SIGN: return says_nothing(x) ? x : ends(sign_of(x.lo), sign_of(x.hi));
    case SQUARE: return square(x);
    case FLOOR: return rising(floorl, x, 0);
    case CEIL: return rising(ceill, x, 0);
    case ROUND: return rising(rintl, x, 0);
    case TRUNC: return rising(truncl, x, 0);
    default: return rising(above_zero, x, 0);
    }
}

static iv pick(iv condition, iv a, iv b) { return condition.lo == condition.hi ? condition.lo != 0 ? a : b : hull(a, b); }
static iv above(iv a, iv b, bool or_equal) {
    if (a.lo > b.hi || (or_equal && a.lo >= b.hi)) return point(1);
    return a.hi < b.lo || (!or_equal && a.hi <= b.lo) ? point(0) : ends(0, 1);
}

static iv length(iv a, iv b) {
    iv p = apply(ABS, a), q = apply(ABS, b);
    return says_nothing(p) || says_nothing(q) ? anything() : grown(ends(hypotl(p.lo, q.lo), hypotl(p.hi, q.hi)), T == GN_F64 ? 2 : 4, 0, T);
}

// The gradient of the operand a from gy, that of y: the forms that gpunum.h documents beside its ops.
static iv slope(unary u, iv gy, iv a, iv y) {
    const real ln2 = logl(2), ln10 = logl(10), one = 1;
    switch (u) {
    case SQRT: return quotient(mul(gy, konst(0.5L)), y);
    case RSQRT: return mul(mul(gy, quotient(y, a)), konst(-0.5L));
    case CBRT: return quotient(gy, mul(square(y), konst(3)));
    case RECIP: return neg(mul(gy, square(y)));
    case EXP: return mul(gy, y);
    case EXP2: return mul(gy, mul(y, konst(ln2)));
    case EXPM1: return mul(gy, add(y, point(one)));
    case LOG: return quotient(gy, a);
    case LOG2: return quotient(gy, mul(a, konst(ln2)));
    case LOG10: return quotient(gy, mul(a, konst(ln10)));
    case LOG1P: return quotient(gy, add(a, point(one)));
    case SIN: return mul(gy, apply(COS, a));
    case COS: return neg(mul(gy, apply(SIN, a)));
    case TAN: return mul(gy, add(square(y), point(one)));
    case ASIN: return mul(gy, apply(RSQRT, sub(point(one), square(a))));
    case ACOS: return neg(mul(gy, apply(RSQRT, sub(point(one), square(a)))));
    case ATAN: return quotient(gy, add(square(a), point(one)));
    case SINH: return mul(gy, apply(COSH, a));
    case COSH: return mul(gy, apply(SINH, a));
    case TANH: return mul(gy, sub(point(one), square(y)));
    case ASINH: return quotient(gy, length(a, point(one)));
    case ACOSH: return mul(gy, mul(apply(RSQRT, add(a, point(-one))), apply(RSQRT, add(a, point(one)))));
    case ATANH: return quotient(gy, sub(point(one), square(a)));
    case ERF: return mul(gy, mul(apply(EXP, neg(square(a))), konst(2 / sqrtl(acosl(-1)))));
    case SIGMOID: return mul(gy, mul(y, sub(point(one), y)));
    case SILU: {
        iv s = apply(SIGMOID, a);
        return mul(gy, mul(s, add(mul(a, sub(point(one), s)), point(one))));
    }
    case GELU: {
        iv phi = mul(apply(EXP, mul(square(a), konst(-0.5L))), konst(1 / sqrtl(2 * acosl(-1))));
        iv big = mul(add(apply(ERF, mul(a, konst(sqrtl(0.5L)))), point(one)), konst(0.5L));
        return mul(gy, add(big, mul(a, phi)));
    }
    case SOFTPLUS: return mul(gy, apply(SIGMOID, a));
    case NEG: return neg(gy);
    case ABS: return mul(gy, apply(SIGN, a));
    case SQUARE: return mul(mul(gy, a), konst(2));
    case RELU: return pick(above(y, point(0), false), gy, point(0));
    default: return point(0); // steps are flat
    }
}

// ---- programs

typedef enum op {
    LEAF, UNARY, ADD, SUB, MUL, DIV, MINIMUM, MAXIMUM, ATAN2, HYPOT, FMA, WHERE, ADD_S, MUL_S, RSUB_S, DIV_S, RDIV_S, POW_S, MAX_S,
    MIN_S, CAST, SUM, MEAN, MAX, MIN, LOGSUMEXP, SOFTMAX, LOG_SOFTMAX, MATMUL, LINEAR, FLIP, TRANSPOSE, OPS
} op;
static const char *const op_names[] = {"leaf", "", "add", "sub", "mul", "div", "minimum", "maximum", "atan2", "hypot", "fma",
                                       "where", "add_s", "mul_s", "rsub_s", "div_s", "rdiv_s", "pow_s", "maximum_s", "minimum_s",
                                       "cast", "sum", "mean", "max", "min", "logsumexp", "softmax", "log_softmax", "matmul", "linear",
                                       "flip", "transpose"};

typedef struct node {
    op op;
    unary u;
    int in[4], n_in;
    double c;
    int axis;
    gn_dtype t;
    int64_t dim[DIMS], n;
    iv v[MOST], g[MOST]; // value, gradient
    real weight[MOST];   // of the gradient's terms: the sum of their sizes
    int terms;
    bool output;
} node;

static node program[NODES];
static int nodes;
static int rank_of; // of all arrays but biases
static int64_t compared, skipped;

static int64_t at_of(const node *x, const node *y, int64_t i) { // element of y behind element i of x, which is broadcast from y
    int64_t at = 0, step = 1, index[DIMS];
    for (int k = DIMS - 1; k >= 0; k--) index[k] = i % x->dim[k], i /= x->dim[k];
    for (int k = DIMS - 1; k >= 0; k--) {
        if (y->dim[k] != 1) at += index[k] * step;
        step *= y->dim[k];
    }
    return at;
}

static void set_size(node *x) {
    x->n = 1;
    for (int k = 0; k < DIMS; k++) x->n *= x->dim[k];
}

// A node of a's shape and another dtype.
static const node *shape_like(const node *a, gn_dtype t) {
    static node shape;
    memcpy(shape.dim, a->dim, sizeof a->dim);
    shape.n = a->n;
    shape.t = t;
    return &shape;
}

static real sum_depth(int64_t n) { return 8 + log2l((real)n); }
static gn_dtype wide_of(gn_dtype t) { return t == GN_F64 ? GN_F64 : GN_F32; }

// Sums of `x` over the axes in which y has size 1, into sums of intervals: error bounds of gn_sum.
static void sum_to(const node *x, const iv *v, const node *y, gn_dtype t, iv *out) {
    static real size[MOST];
    real depth = sum_depth(x->n / y->n), eps = eps_of(wide_of(t));
    for (int64_t i = 0; i < y->n; i++) out[i] = point(0), size[i] = 0;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t at = at_of(x, y, i);
        out[at] = says_nothing(v[i]) || says_nothing(out[at]) ? anything() : ends(out[at].lo + v[i].lo, out[at].hi + v[i].hi);
        size[at] += size_of(v[i]);
    }
    for (int64_t i = 0; i < y->n; i++) out[i] = grown(out[i], 0.5L, depth * eps * size[i], t);
}

// c (m, n) = a (m, k) b (k, n), the elements by functions of two indices
typedef struct matrix {
    const iv *v;
    int64_t rs, cs;
} matrix;
static iv product(matrix a, matrix b, int64_t i, int64_t j, int64_t k, gn_dtype t) {
    iv y = point(0);
    real size = 0;
    for (int64_t l = 0; l < k; l++) {
        iv x = a.v[i * a.rs + l * a.cs], z = b.v[l * b.rs + j * b.cs], p = times(x, z);
        if (says_nothing(p)) return p;
        y = ends(y.lo + p.lo, y.hi + p.hi);
        size += size_of(x) * size_of(z);
    }
    return grown(y, 0.5L, (real)(k + 1) * eps_of(wide_of(t)) * size, t);
}

static matrix matrix_of(const iv *v, int64_t rs, int64_t cs) {
    matrix m;
    m.v = v, m.rs = rs, m.cs = cs;
    return m;
}

// Along the axis: the first element of line l and the step.
static int64_t line_start(const node *x, int axis, int64_t l, int64_t *step) {
    int64_t inner = 1;
    for (int k = axis + 1; k < DIMS; k++) inner *= x->dim[k];
    *step = inner;
    return l / inner * inner * x->dim[axis] + l % inner;
}

static void softmax_line(iv *out, const iv *x, int64_t n, int64_t step, bool logs, gn_dtype t) {
    static iv e[MOST], behind[MOST + 1]; // exp(x - most), and the sums of all that follow
    real most = -infinite, eps = eps_of(wide_of(t));
    bool none = false;
    iv before = point(0);
    for (int64_t i = 0; i < n; i++) most = larger(most, x[i * step].hi), none = none || says_nothing(x[i * step]);
    behind[n] = point(0);
    for (int64_t i = n - 1; i >= 0 && !none; i--) {
        e[i] = ends(expl(x[i * step].lo - most), expl(x[i * step].hi - most));
        behind[i] = ends(behind[i + 1].lo + e[i].lo, behind[i + 1].hi + e[i].hi);
    }
    for (int64_t i = 0; i < n; i++) {
        iv a = x[i * step], y;
        if (none) {
            out[i * step] = anything();
            continue;
        }
        // The least of it beside the most of the others, and the other way round.
        real total_high = e[i].lo + (before.hi + behind[i + 1].hi), total_low = e[i].hi + (before.lo + behind[i + 1].lo);
        if (logs) {
            y = ends(a.lo - most - logl(total_high), a.hi - most - logl(total_low));
            out[i * step] = grown(y, 1, eps * (8 + size_of(y)), t);
        } else {
            y = ends(e[i].lo / total_high, e[i].hi / total_low);
            out[i * step] = grown(y, 1, larger(eps * (12 - (a.lo - most)) * y.hi, 1e-38L), t);
        }
        before = ends(before.lo + e[i].lo, before.hi + e[i].hi);
    }
}

static void lines(node *x, const node *a) {
    int64_t n = a->dim[x->axis], step, outer_step;
    for (int64_t l = 0; l < a->n / n; l++) {
        int64_t start = line_start(a, x->axis, l, &step);
        const iv *v = a->v + start;
        iv y = v[0];
        if (x->op == SOFTMAX || x->op == LOG_SOFTMAX) {
            softmax_line(x->v + start, v, n, step, x->op == LOG_SOFTMAX, x->t);
            continue;
        }
        if (x->op == LOGSUMEXP) {
            real most = -infinite, low = 0, high = 0;
            for (int64_t i = 0; i < n; i++) most = larger(most, v[i * step].hi);
            for (int64_t i = 0; i < n; i++) low += expl(v[i * step].lo - most), high += expl(v[i * step].hi - most);
            y = ends(most + logl(low), most + logl(high));
            y = grown(y, 1, 8 * eps_of(wide_of(x->t)) * (1 + size_of(y)), x->t);
        }
        for (int64_t i = 1; i < n && x->op == MAX; i++) y = greatest(y, v[i * step]);
        for (int64_t i = 1; i < n && x->op == MIN; i++) y = least(y, v[i * step]);
        x->v[line_start(x, x->axis, l, &outer_step)] = y;
    }
}

// In each of the two it rises or falls throughout.
static iv power(iv a, iv b) {
    if (!(a.lo > 0) || says_nothing(a)) return anything();
    real p = powl(a.lo, b.lo), q = powl(a.lo, b.hi), r = powl(a.hi, b.lo), s = powl(a.hi, b.hi);
    return grown(ends(smaller(smaller(p, q), smaller(r, s)), larger(larger(p, q), larger(r, s))), T == GN_F64 ? 2 : 4, 0, T);
}

static iv element(const node *x, int64_t i) {
    iv a = program[x->in[0]].v[at_of(x, &program[x->in[0]], i)], b = point(0), c = point(0);
    if (x->n_in > 1) b = program[x->in[1]].v[at_of(x, &program[x->in[1]], i)];
    if (x->n_in > 2) c = program[x->in[2]].v[at_of(x, &program[x->in[2]], i)];
    switch (x->op) {
    case UNARY: return apply(x->u, a);
    case ADD: return add(a, b);
    case SUB: return sub(a, b);
    case MUL: return mul(a, b);
    case DIV: return quotient(a, b);
    case MINIMUM: return least(a, b);
    case MAXIMUM: return greatest(a, b);
    case ATAN2: { // right of the axis it rises with a, and with b by the sign of a
        if (!(b.lo > 0) || says_nothing(a) || says_nothing(b)) return anything();
        iv y = ends(atan2l(a.lo, a.lo > 0 ? b.hi : b.lo), atan2l(a.hi, a.hi > 0 ? b.lo : b.hi));
        return grown(y, T == GN_F64 ? 2 : 4, 0, T);
    }
    case HYPOT: return length(a, b);
    case FMA: {
        iv p = times(a, b); // fused or not
        return says_nothing(p) ? p : grown(ends(p.lo + c.lo, p.hi + c.hi), 0.5L, eps_of(wide_of(T)) * size_of(p), T);
    }
    case WHERE: return pick(above(a, beside(x->c, program[x->in[0]].t), false), b, c);
    case ADD_S: return add(a, konst(x->c));
    case MUL_S: return mul(a, konst(x->c));
    case RSUB_S: return sub(konst(x->c), a);
    case DIV_S: return quotient(a, konst(x->c));
    case RDIV_S: return quotient(konst(x->c), a);
    case POW_S: return power(a, konst(x->c));
    case MAX_S: return greatest(a, konst(x->c));
    case MIN_S: return least(a, konst(x->c));
    case CAST: return cast(a, program[x->in[0]].t, T);
    default: return a;
    }
}

static void turn(iv *out, const iv *v, const node *x, const node *a) { // x is `a` transposed or flipped
    for (int64_t b = 0; b < a->dim[0]; b++)
        for (int64_t i = 0; i < a->dim[1]; i++)
            for (int64_t j = 0; j < a->dim[2]; j++) {
                int64_t from = (b * a->dim[1] + i) * a->dim[2] + j;
                int64_t to = x->op == TRANSPOSE ? (b * a->dim[2] + j) * a->dim[1] + i
                                                : (b * a->dim[1] + i) * a->dim[2] + a->dim[2] - 1 - j;
                out[to] = v[from];
            }
}

static void compute(node *x) {
    const node *a = &program[x->in[0]];
    T = x->t;
    if (x->op == SUM || x->op == MEAN) {
        real n = (real)(a->n / x->n);
        sum_to(a, a->v, x, x->op == SUM ? x->t : wide_of(x->t), x->v);
        for (int64_t i = 0; i < x->n && x->op == MEAN; i++)
            x->v[i] = grown(ends(x->v[i].lo / n, x->v[i].hi / n), 1, 0, x->t);
    } else if (x->op >= MAX && x->op <= LOG_SOFTMAX) {
        lines(x, a);
    } else if (x->op == MATMUL || x->op == LINEAR) {
        const node *b = &program[x->in[1]], *bias = x->op == LINEAR ? &program[x->in[2]] : NULL;
        int64_t k = a->dim[2], m = x->dim[0] * x->dim[1], n = x->dim[2];
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                iv y = product(matrix_of(a->v, k, 1), matrix_of(b->v, n, 1), i, j, k, x->t);
                x->v[i * n + j] = bias != NULL ? add(y, bias->v[j]) : y;
            }
    } else if (x->op == FLIP || x->op == TRANSPOSE) {
        turn(x->v, a->v, x, a);
    } else {
        for (int64_t i = 0; i < x->n; i++) x->v[i] = element(x, i);
    }
}

// ---- gradients

// Adds the gradient g, of x's shape and dtype, to that of operand `in`.
static void give(const node *x, int in, const iv *g) {
    static iv sums[MOST], rounded[MOST];
    node *y = &program[in];
    const iv *from = g;
    if (y->n != x->n) sum_to(x, g, y, x->t, sums), from = sums;
    for (int64_t i = 0; i < y->n; i++) {
        rounded[i] = cast(from[i], x->t, y->t);
        y->weight[i] += size_of(rounded[i]);
        iv had = y->g[i];
        y->g[i] = says_nothing(had) || says_nothing(rounded[i]) ? anything() : ends(had.lo + rounded[i].lo, had.hi + rounded[i].hi);
    }
    y->terms++;
}

static iv share(iv a, iv b) { // of the larger one, equal ones share
    iv s = ends(above(a, b, false).lo + above(a, b, true).lo, above(a, b, false).hi + above(a, b, true).hi);
    return ends(s.lo / 2, s.hi / 2);
}

// The gradient of operand k at element i.
static iv slope_of(const node *x, int k, int64_t i) {
    iv gy = x->g[i], y = x->v[i], a = program[x->in[0]].v[at_of(x, &program[x->in[0]], i)], b = point(0);
    if (x->n_in > 1) b = program[x->in[1]].v[at_of(x, &program[x->in[1]], i)];
    switch (x->op) {
    case UNARY: return slope(x->u, gy, a, y);
    case SUB: return k == 0 ? gy : neg(gy);
    case MUL: return mul(gy, k == 0 ? b : a);
    case DIV: return k == 0 ? quotient(gy, b) : neg(quotient(mul(gy, y), b));
    case MINIMUM: return mul(gy, k == 0 ? share(b, a) : share(a, b));
    case MAXIMUM: return mul(gy, k == 0 ? share(a, b) : share(b, a));
    case ATAN2: {
        iv r = length(a, b), s = quotient(mul(gy, quotient(k == 0 ? b : a, r)), r);
        return k == 0 ? s : neg(s);
    }
    case HYPOT: return mul(gy, quotient(k == 0 ? a : b, y));
    case FMA: return k == 2 ? gy : mul(gy, k == 0 ? b : a);
    case WHERE: {
        iv c = above(a, beside(x->c, program[x->in[0]].t), false);
        return k == 0 ? point(0) : k == 1 ? pick(c, gy, point(0)) : pick(c, point(0), gy);
    }
    case MUL_S: return mul(gy, konst(x->c));
    case RSUB_S: return neg(gy);
    case DIV_S: return quotient(gy, konst(x->c));
    case RDIV_S: return neg(quotient(mul(gy, y), a));
    case POW_S: return mul(gy, mul(power(a, konst(x->c - 1)), konst(x->c)));
    case MAX_S: return pick(above(a, konst(x->c), true), gy, point(0));
    case MIN_S: return pick(above(konst(x->c), a, true), gy, point(0));
    default: return gy; // add, casts
    }
}

static void slopes_of_lines(const node *x, const node *a, iv *out) {
    int64_t n = a->dim[x->axis], step, other;
    for (int64_t l = 0; l < a->n / n; l++) {
        int64_t start = line_start(a, x->axis, l, &step), at = line_start(x, x->axis, l, &other);
        const iv *v = a->v + start, *y = x->v + at, *gy = x->g + at;
        iv total = point(0), none = point(0);
        real size = 0, depth = sum_depth(n) * eps_of(wide_of(x->t));
        int64_t possible = 0, certain = 0;
        for (int64_t i = 0; i < n; i++) {
            iv p = x->op == SOFTMAX ? mul(gy[i * step], y[i * step]) : x->op == LOG_SOFTMAX ? gy[i * step] : none;
            total = says_nothing(p) || says_nothing(total) ? anything() : ends(total.lo + p.lo, total.hi + p.hi);
            size += size_of(p);
            if (x->op != MAX && x->op != MIN) continue;
            iv d = x->op == MAX ? v[i * step] : neg(v[i * step]), m = x->op == MAX ? *y : neg(*y);
            possible += d.hi >= m.lo;
            certain += d.lo >= m.hi;
        }
        total = grown(total, 0.5L, depth * size, x->t);
        for (int64_t i = 0; i < n; i++) {
            iv g;
            if (x->op == SOFTMAX) {
                g = mul(y[i * step], sub(gy[i * step], total));
            } else if (x->op == LOG_SOFTMAX) {
                g = sub(gy[i * step], mul(apply(EXP, y[i * step]), total));
            } else if (x->op == LOGSUMEXP) {
                g = mul(*gy, apply(EXP, sub(v[i * step], *y)));
            } else {
                iv d = x->op == MAX ? v[i * step] : neg(v[i * step]), m = x->op == MAX ? *y : neg(*y);
                bool may = d.hi >= m.lo, must = d.lo >= m.hi;
                iv part = ends(must ? 1 / (real)possible : 0, may ? 1 / (real)(certain > 0 ? certain : 1) : 0);
                g = grown(times(*gy, part), 2, 0, x->t);
                if (!may && !says_nothing(*gy)) g = point(0); // NaN times 0 is NaN
                if (says_nothing(m)) g = anything(); // of a NaN nothing is the largest
            }
            out[start + i * step] = g;
        }
    }
}

static void slopes_of_product(const node *x) {
    static iv out[MOST];
    node *a = &program[x->in[0]], *b = &program[x->in[1]];
    int64_t k = a->dim[2], m = x->dim[0] * x->dim[1], n = x->dim[2];
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++) out[i * k + l] = product(matrix_of(x->g, n, 1), matrix_of(b->v, 1, n), i, l, n, x->t);
    give(shape_like(a, x->t), x->in[0], out);
    for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < n; j++) out[l * n + j] = product(matrix_of(a->v, 1, k), matrix_of(x->g, n, 1), l, j, m, x->t);
    give(shape_like(b, x->t), x->in[1], out);
    if (x->op == LINEAR) give(x, x->in[2], x->g);
}

static void differentiate(void) {
    static iv out[MOST];
    for (int i = 0; i < nodes; i++)
        for (int64_t k = 0; k < program[i].n; k++) {
            program[i].g[k] = point(program[i].output ? 1 : 0);
            program[i].weight[k] = program[i].output ? 1 : 0;
            program[i].terms = program[i].output;
        }
    for (int at = nodes - 1; at >= 0; at--) {
        node *x = &program[at];
        if (x->terms == 0) continue;
        // Sums of several terms, in any order.
        for (int64_t i = 0; i < x->n && x->terms > 1; i++) {
            x->g[i] = grown(x->g[i], 0, (real)(x->terms - 1) * 0.5L * eps_of(x->t) * 1.01L * x->weight[i], wide_of(x->t));
            if (x->weight[i] >= most_of(x->t)) x->g[i] = anything(); // a sum of some of them may overflow
        }
        if (x->op == LEAF) continue;
        node *a = &program[x->in[0]];
        T = x->t;
        if (x->op == MATMUL || x->op == LINEAR) {
            slopes_of_product(x);
        } else if (x->op >= MAX && x->op <= LOG_SOFTMAX) {
            slopes_of_lines(x, a, out);
            give(shape_like(a, x->t), x->in[0], out);
        } else if (x->op == SUM || x->op == MEAN) {
            real n = (real)(a->n / x->n);
            for (int64_t i = 0; i < a->n; i++) {
                iv g = x->g[at_of(a, x, i)];
                out[i] = x->op == MEAN ? quotient(g, konst(n)) : g;
            }
            give(shape_like(a, x->t), x->in[0], out);
        } else if (x->op == FLIP || x->op == TRANSPOSE) {
            turn(out, x->g, x, x);
            give(shape_like(a, x->t), x->in[0], out);
        } else {
            for (int k = x->op == WHERE; k < x->n_in; k++) {
                T = x->t;
                for (int64_t i = 0; i < x->n; i++) out[i] = slope_of(x, k, i);
                give(x, x->in[k], out);
            }
        }
    }
}

// ---- making programs

static double halves(int range) { return (double)((int)draw((uint32_t)(16 * range)) - 8 * range) / 8.0; }

static void make_leaf(gn_dtype t, int64_t b, int64_t r, int64_t c) {
    node *x = &program[nodes++];
    memset(x->in, 0, sizeof x->in);
    x->op = LEAF;
    x->n_in = 0;
    x->output = false;
    x->t = t;
    x->dim[0] = b, x->dim[1] = r, x->dim[2] = c;
    set_size(x);
    for (int64_t i = 0; i < x->n; i++) x->v[i] = point(halves(3)); // of every dtype
}

static gn_dtype join(gn_dtype a, gn_dtype b) {
    return a == b ? a : a == GN_F64 || b == GN_F64 ? GN_F64 : GN_F32;
}

static int some_node(void) { return draw(3) ? nodes - 1 - (int)draw((uint32_t)(nodes < 4 ? nodes : 4)) : (int)draw((uint32_t)nodes); }

// Whether what was computed says much about the right result.
static bool is_telling(const node *x) {
    int64_t vague = 0;
    for (int64_t i = 0; i < x->n; i++)
        vague += says_nothing(x->v[i]) || x->v[i].hi - x->v[i].lo > 64 * eps_of(x->t) * (size_of(x->v[i]) + 1.0L);
    return vague * 50 <= x->n;
}

// Adds a random op to the program, unless it says nothing.
static void make_node(int64_t r, int64_t c, int weights, int bias, gn_dtype t) {
    static const double numbers[] = {0.5, 2.0, -1.0, 3.0, 0.1, -0.7, 1.5, 0.0};
    static const gn_dtype types[] = {GN_F32, GN_F16, GN_BF16, GN_F64, GN_F32};
    node *x = &program[nodes];
    memset(x->in, 0, sizeof x->in);
    x->op = (op)(1 + draw(OPS - 1));
    if (draw(3) == 0) x->op = UNARY;
    x->u = (unary)draw(UNARIES);
    x->n_in = x->op >= ADD && x->op <= HYPOT ? 2 : x->op == FMA || x->op == WHERE ? 3 : 1;
    x->c = numbers[draw(sizeof numbers / sizeof *numbers)];
    x->axis = 1 + (int)draw(2);
    x->output = false;
    for (int i = 0; i < x->n_in; i++) x->in[i] = some_node();
    for (int i = 0; i < x->n_in; i++)
        if (x->in[i] == weights || x->in[i] == bias) return;
    const node *a = &program[x->in[0]];
    x->t = a->t;
    memcpy(x->dim, a->dim, sizeof x->dim);
    for (int i = 1; i < x->n_in; i++) {
        const node *b = &program[x->in[i]];
        x->t = i == 1 && x->op == WHERE ? b->t : join(x->t, b->t); // a condition has no say
        for (int k = 0; k < DIMS; k++) x->dim[k] = x->dim[k] == 1 ? b->dim[k] : x->dim[k];
    }
    if (x->op == POW_S || x->op == RDIV_S) x->c = x->c == 0.0 || x->c == 1.0 ? 2.0 : x->c;
    if ((x->op == DIV_S || x->op == MUL_S) && x->c == 0.0) return;
    if (x->op == CAST) x->t = types[draw(5)];
    if (x->op >= SUM && x->op <= LOGSUMEXP) x->dim[x->axis] = 1;
    if (x->op == MATMUL || x->op == LINEAR) {
        if (a->t != t || a->dim[2] != c || a->dim[1] != r) return;
        x->in[1] = weights, x->in[2] = bias;
        x->n_in = x->op == LINEAR ? 3 : 2;
    }
    if (x->op == TRANSPOSE) {
        if (r != c || a->dim[1] != a->dim[2]) return;
    }
    set_size(x);
    compute(x);
    if (is_telling(x)) nodes++;
}

static void make_program(void) {
    static const gn_dtype types[] = {GN_F32, GN_F32, GN_F32, GN_F16, GN_BF16, GN_F64};
    static const int64_t extents[] = {1, 2, 3, 4, 7, 8, 16, 19, 33, 40};
    gn_dtype t = types[draw(6)];
    rank_of = 2 + (int)draw(2);
    int64_t r = extents[draw(10)], c = draw(3) ? extents[draw(10)] : r, b = rank_of == 3 && r * c <= 400 ? 1 + (int64_t)draw(4) : 1;
    nodes = 0;
    make_leaf(t, 1, c, c); // weights
    make_leaf(t, 1, 1, c); // and their bias
    make_leaf(t, b, r, c);
    int leaves = (int)draw(3);
    for (int i = 0; i < leaves; i++) make_leaf(draw(3) ? t : types[draw(6)], draw(2) ? b : 1, draw(2) ? r : 1, draw(2) ? c : 1);
    int most = nodes + 2 + (int)draw(NODES - 12);
    for (int tries = 0; tries < 200 && nodes < most; tries++) make_node(r, c, 0, 1, t);
    program[nodes - 1].output = true;
    for (int i = 0; i < nodes; i++)
        if (i > 1 && draw(5) == 0) program[i].output = true;
}

static gn_shape shape_for(int i) {
    if (i == 0) return GN_SHAPE(program[i].dim[1], program[i].dim[2]);
    if (i == 1) return GN_SHAPE(program[i].dim[2]);
    return gn_shape_from(rank_of, program[i].dim + DIMS - rank_of);
}

static void print_program(void) {
    for (int i = 0; i < nodes; i++) {
        const node *x = &program[i];
        fprintf(stderr, "  %2d = %s(", i, x->op == UNARY ? unaries[x->u].name : op_names[x->op]);
        for (int k = 0; k < x->n_in; k++) fprintf(stderr, "%s%d", k ? ", " : "", x->in[k]);
        fprintf(stderr, "; %g, axis %d) %s (%d,%d,%d)%s\n", x->c, x->axis - DIMS, gn_dtype_name(x->t), (int)x->dim[0],
                (int)x->dim[1], (int)x->dim[2], x->output ? " in the loss" : "");
    }
}

// ---- running them

static gn_array *leaf_array(gn_context *g, int i) {
    static double data[MOST];
    const node *x = &program[i];
    for (int64_t k = 0; k < x->n; k++) data[k] = (double)x->v[k].lo;
    gn_array *a = gn_cast(gn_array_from(g, GN_F64, shape_for(i), data), x->t);
    return gn_requires_grad(gn_detach(gn_eval(a)), true);
}

static gn_array *run_node(const node *x, gn_array **y) {
    gn_array *a = y[x->in[0]], *b = y[x->in[1]], *c = y[x->in[2]];
    switch (x->op) {
    case UNARY: return unaries[x->u].fn(a);
    case ADD: return gn_add(a, b);
    case SUB: return gn_sub(a, b);
    case MUL: return gn_mul(a, b);
    case DIV: return gn_div(a, b);
    case MINIMUM: return gn_minimum(a, b);
    case MAXIMUM: return gn_maximum(a, b);
    case ATAN2: return gn_atan2(a, b);
    case HYPOT: return gn_hypot(a, b);
    case FMA: return gn_fma(a, b, c);
    case WHERE: return gn_where(gn_gt_s(a, x->c), b, c);
    case ADD_S: return gn_add_s(a, x->c);
    case MUL_S: return gn_mul_s(a, x->c);
    case RSUB_S: return gn_rsub_s(a, x->c);
    case DIV_S: return gn_div_s(a, x->c);
    case RDIV_S: return gn_rdiv_s(a, x->c);
    case POW_S: return gn_pow_s(a, x->c);
    case MAX_S: return gn_maximum_s(a, x->c);
    case MIN_S: return gn_minimum_s(a, x->c);
    case CAST: return gn_cast(a, x->t);
    case SUM: return gn_sum(a, GN_KEEP(x->axis - DIMS));
    case MEAN: return gn_mean(a, GN_KEEP(x->axis - DIMS));
    case MAX: return gn_max(a, GN_KEEP(x->axis - DIMS));
    case MIN: return gn_min(a, GN_KEEP(x->axis - DIMS));
    case LOGSUMEXP: return gn_logsumexp(a, GN_KEEP(x->axis - DIMS));
    case SOFTMAX: return gn_softmax(a, x->axis - DIMS);
    case LOG_SOFTMAX: return gn_log_softmax(a, x->axis - DIMS);
    case MATMUL: return gn_matmul(a, b);
    case LINEAR: return gn_linear(a, b, c);
    case FLIP: return gn_flip(a, -1);
    default: return gn_swap_axes(a, -1, -2);
    }
}

static bool check_array(const char *where, const char *what, int i, gn_array *a, const iv *want) {
    static double data[MOST];
    const node *x = &program[i];
    if (a == NULL || gn_size(a) != x->n || gn_dtype_of(a) != x->t || gn_read(gn_cast(a, GN_F64), data, (size_t)x->n * sizeof *data) != GN_OK) {
        fprintf(stderr, "%s: %s %d: %s of %lld %s: %s\n", where, what, i, a == NULL ? "none" : "array", (long long)gn_size(a),
                gn_dtype_name(gn_dtype_of(a)), a != NULL ? gn_error(gn_context_of(a)) : "");
        return false;
    }
    for (int64_t k = 0; k < x->n; k++) {
        if (says_nothing(want[k])) {
            skipped++;
            continue;
        }
        compared++;
        if ((real)data[k] >= want[k].lo && (real)data[k] <= want[k].hi) continue;
        fprintf(stderr, "%s: %s %d, element %lld is %.17g, not in %.17Lg to %.17Lg\n", where, what, i, (long long)k, data[k],
                want[k].lo, want[k].hi);
        return false;
    }
    return true;
}

static bool run_program(gn_context *g, const char *where, uint64_t order) {
    gn_array *y[NODES], *loss = NULL, *outputs[NODES];
    int count = 0;
    bool ok = true;
    test_lot = order;
    gn_scope_begin(g);
    for (int i = 0; i < nodes; i++) {
        y[i] = program[i].op == LEAF ? leaf_array(g, i) : run_node(&program[i], y);
        if (program[i].op != LEAF && draw(12) == 0) gn_eval(y[i]);
    }
    for (int i = 0; i < nodes; i++) {
        if (!program[i].output) continue;
        outputs[count++] = y[i];
        gn_array *sum = gn_sum(y[i], GN_ALL);
        loss = loss == NULL ? sum : gn_add(loss, sum);
    }
    if (draw(2)) gn_eval_all(outputs, count);
    bool first = draw(2);
    if (first) gn_backward(loss);
    for (int i = nodes - 1; i >= 0 && ok; i--)
        if (program[i].op != LEAF && (program[i].output || draw(4) == 0)) ok = check_array(where, "node", i, y[i], program[i].v);
    if (!first) gn_backward(loss);
    for (int i = 0; i < nodes && ok; i++) {
        if (program[i].op != LEAF || program[i].terms == 0) continue;
        ok = check_array(where, "gradient of", i, gn_grad(y[i]), program[i].g);
    }
    if (gn_status_get(g) != GN_OK) {
        fprintf(stderr, "%s: %s\n", where, gn_error(g));
        ok = false;
    }
    gn_scope_end(g);
    gn_memory_stats stats;
    gn_memory_get(g, &stats);
    if (stats.arrays != 0) {
        fprintf(stderr, "%s: %d arrays are left\n", where, (int)stats.arrays);
        ok = false;
    }
    return ok;
}

#include "fuzz_complex.h"
#include "fuzz_integers.h"

typedef struct backend {
    const char *name;
    gn_context *g;
    int every; // runs one program of so many
} backend;

static void open_backends(backend *list) {
    gn_options o = test_options();
    o.threads = 2;
    o.backend = GN_BACKEND_CPU;
    o.placement = GN_PLACE_AUTO;
    list[0].name = "CPU";
    list[0].every = 1;
    list[0].g = test_open_with(&o);
    list[1].g = list[2].g = NULL;
    if (!test_on_vulkan()) return;
    o = test_options();
    o.vulkan_flags |= GN_VULKAN_NO_ASYNC_PIPELINES; // each program in its own kernel, which takes long to compile,
    list[1].name = "Vulkan, compiled";
    list[1].every = 8;
    list[1].g = test_open_with(&o);
    o.vulkan_flags |= GN_VULKAN_NO_SPECIALIZATION; // and all in the one that interprets
    list[2].name = "Vulkan, interpreted";
    list[2].every = 1;
    list[2].g = test_open_with(&o);
}

int main(int argc, char **argv) {
    if (LDBL_MANT_DIG < 64) return printf("no floating point is wider than float64 here\n") < 0;
    fuzz_run run = fuzz_begin(argc, argv);
    long done = 0, wrong = 0;
    backend list[3];
    open_backends(list);
    while (fuzz_goes_on(&run, done) && wrong < 5) {
        uint64_t own = run.seed + (uint64_t)done++;
        bool ok = true, whole = own % 5 == 0, parts = own % 5 == 1;
        test_lot = own * 0x9e3779b97f4a7c15u + 1;
        draw(2);
        if (whole)
            make_integers();
        else if (parts)
            make_complexes();
        else
            make_program(), differentiate();
        uint64_t order = test_lot;
        for (int i = 0; i < 3; i++) {
            if (list[i].g == NULL || own % (uint64_t)list[i].every != 0) continue;
            if (!(whole   ? run_integers(list[i].g, list[i].name)
                  : parts ? run_complexes(list[i].g, list[i].name, order)
                          : run_program(list[i].g, list[i].name, order)))
                ok = false;
            gn_error_clear(list[i].g);
        }
        if (ok) continue;
        if (whole)
            print_integers();
        else if (parts)
            print_complexes();
        else
            print_program();
        fprintf(stderr, "fuzz_programs: seed %llu (again: fuzz_programs 0 %llu 1)\n", (unsigned long long)own, (unsigned long long)own);
        wrong++;
    }
    for (int i = 0; i < 3; i++) gn_close(list[i].g);
    if (test_heap.blocks != 0) fprintf(stderr, "%lld blocks were not freed\n", (long long)test_heap.blocks);
    printf("%ld programs, %lld numbers compared, %lld not\n", done, (long long)compared, (long long)skipped);
    return wrong != 0 || test_heap.blocks != 0;
}
