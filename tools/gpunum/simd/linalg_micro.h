// >>linalg_micro
// Loops of the matrix decompositions over rows of float64, once per instruction set.
// From outside: the table GNI_FN(gni_la_isa).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/tables.h"
#include "../simd/simd.h"
#endif

#if defined(GNI_PASS_PLAIN)
#define GNI_LA_LANES 1
#define GNI_LA_V double
#define GNI_LA_LD(p) (*(p))
#define GNI_LA_ST(p, v) (*(p) = (v))
#define GNI_LA_SET(x) (x)
#define GNI_LA_FMA(a, b, c) ((a) * (b) + (c))
#define GNI_LA_SUM(v) (v)
#else
#define GNI_LA_LANES (GNI_VW / 2)
typedef double GNI_FN(gni_la_v) __attribute__((vector_size(GNI_VW * 4)));
typedef double GNI_FN(gni_la_m) __attribute__((vector_size(GNI_VW * 4), aligned(8), may_alias));
#define GNI_LA_V GNI_FN(gni_la_v)
#define GNI_LA_LD(p) ((GNI_LA_V)(*(const GNI_FN(gni_la_m) *)(p)))
#define GNI_LA_ST(p, v) (*(GNI_FN(gni_la_m) *)(p) = (GNI_FN(gni_la_m))(v))
#if defined(GNI_PASS_AVX512)
#define GNI_LA_SET(x) ((GNI_LA_V)_mm512_set1_pd(x))
#define GNI_LA_FMA(a, b, c) ((GNI_LA_V)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined(GNI_PASS_AVX2)
#define GNI_LA_SET(x) ((GNI_LA_V)_mm256_set1_pd(x))
#define GNI_LA_FMA(a, b, c) ((GNI_LA_V)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#else
#define GNI_LA_SET(x) GNI_FN(gni_la_set)(x)
#if GNI_V_NEON
#define GNI_LA_FMA(a, b, c) ((GNI_LA_V)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#else
#define GNI_LA_FMA(a, b, c) ((a) * (b) + (c))
#endif
GNI_INLINE GNI_LA_V GNI_FN(gni_la_set)(double x) {
    GNI_LA_V v = {x, x};
    return v;
}
#endif
#define GNI_LA_SUM(v) GNI_FN(gni_la_sum)((const double *)&(v))
GNI_INLINE double GNI_FN(gni_la_sum)(const double *v) {
    double sum = 0;
    for (int i = 0; i < GNI_LA_LANES; i++) sum += v[i];
    return sum;
}
#endif

static double GNI_FN(gni_la_dot)(const double *x, const double *y, int64_t n) {
    GNI_LA_V a = GNI_LA_SET(0.0), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * GNI_LA_LANES <= n; i += 4 * GNI_LA_LANES) {
        a = GNI_LA_FMA(GNI_LA_LD(x + i), GNI_LA_LD(y + i), a);
        b = GNI_LA_FMA(GNI_LA_LD(x + i + GNI_LA_LANES), GNI_LA_LD(y + i + GNI_LA_LANES), b);
        c = GNI_LA_FMA(GNI_LA_LD(x + i + 2 * GNI_LA_LANES), GNI_LA_LD(y + i + 2 * GNI_LA_LANES), c);
        d = GNI_LA_FMA(GNI_LA_LD(x + i + 3 * GNI_LA_LANES), GNI_LA_LD(y + i + 3 * GNI_LA_LANES), d);
    }
    for (; i + GNI_LA_LANES <= n; i += GNI_LA_LANES)
        a = GNI_LA_FMA(GNI_LA_LD(x + i), GNI_LA_LD(y + i), a);
    a = (a + b) + (c + d);
    double sum = GNI_LA_SUM(a);
    for (; i < n; i++) sum += x[i] * y[i];
    return sum;
}

static void GNI_FN(gni_la_axpy)(double *y, double s, const double *x, int64_t n) {
    GNI_LA_V f = GNI_LA_SET(s);
    int64_t i = 0;
    for (; i + GNI_LA_LANES <= n; i += GNI_LA_LANES) {
        GNI_LA_ST(y + i, GNI_LA_FMA(f, GNI_LA_LD(x + i), GNI_LA_LD(y + i)));
    }
    for (; i < n; i++) y[i] += s * x[i];
}

// Four rows at a time, so that x is loaded once for them.
static void GNI_FN(gni_la_rows_dot)(double *y, const double *a, int64_t lda, const double *x,
                                    int64_t m, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4, a += 4 * lda) {
        const double *a1 = a + lda, *a2 = a1 + lda, *a3 = a2 + lda;
        GNI_LA_V s0 = GNI_LA_SET(0.0), s1 = s0, s2 = s0, s3 = s0;
        int64_t j = 0;
        for (; j + GNI_LA_LANES <= n; j += GNI_LA_LANES) {
            GNI_LA_V v = GNI_LA_LD(x + j);
            s0 = GNI_LA_FMA(GNI_LA_LD(a + j), v, s0);
            s1 = GNI_LA_FMA(GNI_LA_LD(a1 + j), v, s1);
            s2 = GNI_LA_FMA(GNI_LA_LD(a2 + j), v, s2);
            s3 = GNI_LA_FMA(GNI_LA_LD(a3 + j), v, s3);
        }
        double t0 = GNI_LA_SUM(s0), t1 = GNI_LA_SUM(s1), t2 = GNI_LA_SUM(s2), t3 = GNI_LA_SUM(s3);
        for (; j < n; j++) {
            t0 += a[j] * x[j];
            t1 += a1[j] * x[j];
            t2 += a2[j] * x[j];
            t3 += a3[j] * x[j];
        }
        y[i] = t0;
        y[i + 1] = t1;
        y[i + 2] = t2;
        y[i + 3] = t3;
    }
    for (; i < m; i++, a += lda) y[i] = GNI_FN(gni_la_dot)(a, x, n);
}

static void GNI_FN(gni_la_rows_add)(double *y, const double *a, int64_t lda, const double *x,
                                    int64_t m, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4, a += 4 * lda) {
        const double *a1 = a + lda, *a2 = a1 + lda, *a3 = a2 + lda;
        GNI_LA_V x0 = GNI_LA_SET(x[i]), x1 = GNI_LA_SET(x[i + 1]), x2 = GNI_LA_SET(x[i + 2]),
                 x3 = GNI_LA_SET(x[i + 3]);
        int64_t j = 0;
        for (; j + GNI_LA_LANES <= n; j += GNI_LA_LANES) {
            GNI_LA_V v = GNI_LA_FMA(GNI_LA_LD(a + j), x0, GNI_LA_LD(y + j));
            v = GNI_LA_FMA(GNI_LA_LD(a1 + j), x1, v);
            v = GNI_LA_FMA(GNI_LA_LD(a2 + j), x2, v);
            GNI_LA_ST(y + j, GNI_LA_FMA(GNI_LA_LD(a3 + j), x3, v));
        }
        for (; j < n; j++)
            y[j] += (a[j] * x[i] + a1[j] * x[i + 1]) + (a2[j] * x[i + 2] + a3[j] * x[i + 3]);
    }
    for (; i < m; i++, a += lda) GNI_FN(gni_la_axpy)(y, x[i], a, n);
}

// Each element of the triangle is loaded once, four rows at a time.
static void GNI_FN(gni_la_triangle)(double *y, const double *a, int64_t lda, const double *x,
                                    int64_t m, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4, a += 4 * lda) {
        const double *a1 = a + lda, *a2 = a1 + lda, *a3 = a2 + lda;
        GNI_LA_V x0 = GNI_LA_SET(x[i]), x1 = GNI_LA_SET(x[i + 1]), x2 = GNI_LA_SET(x[i + 2]),
                 x3 = GNI_LA_SET(x[i + 3]);
        GNI_LA_V s0 = GNI_LA_SET(0.0), s1 = s0, s2 = s0, s3 = s0;
        int64_t j = i + 4;
        for (; j + GNI_LA_LANES <= n; j += GNI_LA_LANES) {
            GNI_LA_V v = GNI_LA_LD(x + j), sum = GNI_LA_LD(y + j), b0 = GNI_LA_LD(a + j),
                     b1 = GNI_LA_LD(a1 + j), b2 = GNI_LA_LD(a2 + j), b3 = GNI_LA_LD(a3 + j);
            s0 = GNI_LA_FMA(b0, v, s0);
            s1 = GNI_LA_FMA(b1, v, s1);
            s2 = GNI_LA_FMA(b2, v, s2);
            s3 = GNI_LA_FMA(b3, v, s3);
            sum = GNI_LA_FMA(b0, x0, sum);
            sum = GNI_LA_FMA(b1, x1, sum);
            sum = GNI_LA_FMA(b2, x2, sum);
            GNI_LA_ST(y + j, GNI_LA_FMA(b3, x3, sum));
        }
        double t0 = GNI_LA_SUM(s0), t1 = GNI_LA_SUM(s1), t2 = GNI_LA_SUM(s2), t3 = GNI_LA_SUM(s3);
        for (; j < n; j++) {
            t0 += a[j] * x[j];
            t1 += a1[j] * x[j];
            t2 += a2[j] * x[j];
            t3 += a3[j] * x[j];
            y[j] += (a[j] * x[i] + a1[j] * x[i + 1]) + (a2[j] * x[i + 2] + a3[j] * x[i + 3]);
        }
        const double *p = x + i, *b = a + i, *b1 = a1 + i, *b2 = a2 + i;
        y[i] += t0 + b[0] * p[0] + b[1] * p[1] + b[2] * p[2] + b[3] * p[3];
        y[i + 1] += t1 + b[1] * p[0] + b1[1] * p[1] + b1[2] * p[2] + b1[3] * p[3];
        y[i + 2] += t2 + b[2] * p[0] + b1[2] * p[1] + b2[2] * p[2] + b2[3] * p[3];
        y[i + 3] += t3 + b[3] * p[0] + b1[3] * p[1] + b2[3] * p[2] + a3[i + 3] * p[3];
    }
    for (; i < m; i++, a += lda) {
        y[i] += a[i] * x[i] + GNI_FN(gni_la_dot)(a + i + 1, x + i + 1, n - i - 1);
        GNI_FN(gni_la_axpy)(y + i + 1, x[i], a + i + 1, n - i - 1);
    }
}

// By columns, which are rows of t: the lanes have neighbouring rows of a.
static int64_t GNI_FN(gni_la_cholesky)(double *a, int64_t lda, int64_t n) {
    double t[GNI_LA_LEAF * GNI_LA_LEAF];
    memset(t, 0, (size_t)(n * GNI_LA_LEAF) * sizeof *t);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) t[j * GNI_LA_LEAF + i] = a[i * lda + j];
    for (int64_t j = 0; j < n; j++) {
        double *column = t + j * GNI_LA_LEAF;
        const int64_t from = j / (2 * GNI_LA_LANES) * (2 * GNI_LA_LANES);
        for (int64_t i = from; i < n; i += 2 * GNI_LA_LANES) {
            GNI_LA_V x = GNI_LA_LD(column + i), y = GNI_LA_LD(column + i + GNI_LA_LANES);
            for (int64_t k = 0; k < j; k++) {
                const double *known = t + k * GNI_LA_LEAF;
                GNI_LA_V f = GNI_LA_SET(-known[j]);
                x = GNI_LA_FMA(f, GNI_LA_LD(known + i), x);
                y = GNI_LA_FMA(f, GNI_LA_LD(known + i + GNI_LA_LANES), y);
            }
            GNI_LA_ST(column + i, x);
            GNI_LA_ST(column + i + GNI_LA_LANES, y);
        }
        if (!(column[j] > 0.0)) return j + 1;
        const double root = sqrt(column[j]), part = 1.0 / root;
        column[j] = root;
        for (int64_t i = j + 1; i < n; i++) column[i] *= part;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) a[i * lda + j] = t[j * GNI_LA_LEAF + i];
    return 0;
}

// The lanes have rows of b, which stand in t as columns.
static void GNI_FN(gni_la_solve_right)(const double *l, int64_t ldl, int64_t n, double *b,
                                       int64_t ldb, int64_t m) {
    double t[GNI_LA_LEAF * 2 * GNI_LA_LANES], part[GNI_LA_LEAF];
    for (int64_t j = 0; j < n; j++) part[j] = 1.0 / l[j * ldl + j];
    for (int64_t i = 0; i < m; i += 2 * GNI_LA_LANES, b += 2 * GNI_LA_LANES * ldb) {
        const int64_t rows = GNI_MIN(m - i, 2 * GNI_LA_LANES);
        if (rows < 2 * GNI_LA_LANES) memset(t, 0, sizeof t);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < n; j++) t[j * 2 * GNI_LA_LANES + r] = b[r * ldb + j];
        for (int64_t j = 0; j < n; j++) {
            double *column = t + j * 2 * GNI_LA_LANES;
            GNI_LA_V x = GNI_LA_LD(column), y = GNI_LA_LD(column + GNI_LA_LANES);
            for (int64_t k = 0; k < j; k++) {
                const double *known = t + k * 2 * GNI_LA_LANES;
                GNI_LA_V f = GNI_LA_SET(-l[j * ldl + k]);
                x = GNI_LA_FMA(f, GNI_LA_LD(known), x);
                y = GNI_LA_FMA(f, GNI_LA_LD(known + GNI_LA_LANES), y);
            }
            GNI_LA_V f = GNI_LA_SET(part[j]);
            GNI_LA_ST(column, f * x);
            GNI_LA_ST(column + GNI_LA_LANES, f * y);
        }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < n; j++) b[r * ldb + j] = t[j * 2 * GNI_LA_LANES + r];
    }
}

// The row that two rotations share stays in registers.
static void GNI_FN(gni_la_turn)(double *row, int64_t step, const double *cs, int64_t count,
                                int64_t width) {
    int64_t j = 0;
    for (; j + 4 * GNI_LA_LANES <= width; j += 4 * GNI_LA_LANES) {
        double *p = row + j;
        GNI_LA_V x0 = GNI_LA_LD(p), x1 = GNI_LA_LD(p + GNI_LA_LANES),
                 x2 = GNI_LA_LD(p + 2 * GNI_LA_LANES), x3 = GNI_LA_LD(p + 3 * GNI_LA_LANES);
        for (int64_t t = 0; t < count; t++, p += step) {
            double *q = p + step;
            GNI_LA_V c = GNI_LA_SET(cs[2 * t]), s = GNI_LA_SET(cs[2 * t + 1]),
                     m = GNI_LA_SET(-cs[2 * t + 1]);
            GNI_LA_V y0 = GNI_LA_LD(q), y1 = GNI_LA_LD(q + GNI_LA_LANES),
                     y2 = GNI_LA_LD(q + 2 * GNI_LA_LANES), y3 = GNI_LA_LD(q + 3 * GNI_LA_LANES);
            GNI_LA_ST(p, GNI_LA_FMA(s, y0, c * x0));
            GNI_LA_ST(p + GNI_LA_LANES, GNI_LA_FMA(s, y1, c * x1));
            GNI_LA_ST(p + 2 * GNI_LA_LANES, GNI_LA_FMA(s, y2, c * x2));
            GNI_LA_ST(p + 3 * GNI_LA_LANES, GNI_LA_FMA(s, y3, c * x3));
            x0 = GNI_LA_FMA(m, x0, c * y0);
            x1 = GNI_LA_FMA(m, x1, c * y1);
            x2 = GNI_LA_FMA(m, x2, c * y2);
            x3 = GNI_LA_FMA(m, x3, c * y3);
        }
        GNI_LA_ST(p, x0);
        GNI_LA_ST(p + GNI_LA_LANES, x1);
        GNI_LA_ST(p + 2 * GNI_LA_LANES, x2);
        GNI_LA_ST(p + 3 * GNI_LA_LANES, x3);
    }
    for (; j < width; j++) {
        double *p = row + j, x = *p;
        for (int64_t t = 0; t < count; t++, p += step) {
            double y = p[step];
            *p = cs[2 * t] * x + cs[2 * t + 1] * y;
            x = cs[2 * t] * y - cs[2 * t + 1] * x;
        }
        *p = x;
    }
}

static void GNI_FN(gni_la_poles)(const double *gap, const double *square, double t, int64_t n,
                                 double *sum, double *slope) {
    GNI_LA_V one = GNI_LA_SET(1.0), a = GNI_LA_SET(0.0), b = a, c = a, d = a, v = GNI_LA_SET(t);
    int64_t i = 0;
    for (; i + 2 * GNI_LA_LANES <= n; i += 2 * GNI_LA_LANES) {
        GNI_LA_V p = one / (GNI_LA_LD(gap + i) - v),
                 q = one / (GNI_LA_LD(gap + i + GNI_LA_LANES) - v);
        GNI_LA_V x = GNI_LA_LD(square + i) * p, y = GNI_LA_LD(square + i + GNI_LA_LANES) * q;
        a = a + x;
        b = b + y;
        c = GNI_LA_FMA(x, p, c);
        d = GNI_LA_FMA(y, q, d);
    }
    a = a + b;
    c = c + d;
    *sum = GNI_LA_SUM(a);
    *slope = GNI_LA_SUM(c);
    for (; i < n; i++) {
        double p = 1.0 / (gap[i] - t), x = square[i] * p;
        *sum += x;
        *slope += x * p;
    }
}

static void GNI_FN(gni_la_gaps)(double *y, const double *pole, double at, double t, bool squares,
                                int64_t n) {
    const GNI_LA_V a = GNI_LA_SET(at), b = GNI_LA_SET(t);
    int64_t i = 0;
    for (; i + GNI_LA_LANES <= n; i += GNI_LA_LANES) {
        const GNI_LA_V p = GNI_LA_LD(pole + i);
        GNI_LA_ST(y + i, (squares ? (p - a) * (p + a) : p - a) - b);
    }
    for (; i < n; i++) {
        const double gap = pole[i] - at;
        y[i] = (squares ? gap * (pole[i] + at) : gap) - t;
    }
}

static void GNI_FN(gni_la_ratios)(double *y, const double *pole, double at, double t, double other,
                                  bool squares, int64_t n) {
    const GNI_LA_V a = GNI_LA_SET(at), b = GNI_LA_SET(t), c = GNI_LA_SET(other);
    int64_t i = 0;
    for (; i + GNI_LA_LANES <= n; i += GNI_LA_LANES) {
        const GNI_LA_V p = GNI_LA_LD(pole + i);
        const GNI_LA_V x = squares ? (p - a) * (p + a) : p - a,
                       z = squares ? (p - c) * (p + c) : p - c;
        GNI_LA_ST(y + i, GNI_LA_LD(y + i) * ((x - b) / z));
    }
    for (; i < n; i++) {
        const double x = pole[i] - at, z = pole[i] - other;
        y[i] *= ((squares ? x * (pole[i] + at) : x) - t) / (squares ? z * (pole[i] + other) : z);
    }
}

static double GNI_FN(gni_la_quotients)(double *y, const double *x, int64_t n) {
    GNI_LA_V a = GNI_LA_SET(0.0);
    int64_t i = 0;
    for (; i + GNI_LA_LANES <= n; i += GNI_LA_LANES) {
        GNI_LA_V q = GNI_LA_LD(x + i) / GNI_LA_LD(y + i);
        GNI_LA_ST(y + i, q);
        a = GNI_LA_FMA(q, q, a);
    }
    double sum = GNI_LA_SUM(a);
    for (; i < n; i++) {
        y[i] = x[i] / y[i];
        sum += y[i] * y[i];
    }
    return sum;
}

GNI_TABLE gni_la_isa GNI_FN(gni_la_isa) = {
    GNI_FN(gni_la_dot),         GNI_FN(gni_la_axpy),     GNI_FN(gni_la_rows_dot),
    GNI_FN(gni_la_rows_add),    GNI_FN(gni_la_triangle), GNI_FN(gni_la_cholesky),
    GNI_FN(gni_la_solve_right), GNI_FN(gni_la_turn),     GNI_FN(gni_la_poles),
    GNI_FN(gni_la_gaps),        GNI_FN(gni_la_ratios),   GNI_FN(gni_la_quotients)};

#undef GNI_LA_LANES
#undef GNI_LA_V
#undef GNI_LA_LD
#undef GNI_LA_ST
#undef GNI_LA_SET
#undef GNI_LA_FMA
#undef GNI_LA_SUM
