// >>divide
// Eigenvectors of symmetric tridiagonal matrices and singular vectors of bidiagonal ones by divide and conquer.
// From outside: gni_dc_run, gni_dc_run_values and their memory (dc: divide and conquer).
//
// Cuppen's (1981) division into two halves and a change of rank one, whose eigenvalues are the roots of a secular
// equation, with deflation as in LAPACK's dlaed2. Vectors are those of the nearby problem that the computed roots
// solve exactly (Gu and Eisenstat 1994), so they are orthogonal. Vectors stand in rows.
//
// A bidiagonal matrix is divided by leaving a row out (Gu and Eisenstat 1995): with the halves' vectors it becomes
// that row, z, above a diagonal d, and z^T z + d^2 has the same secular equation, with the squares of d as poles.
// Their distances are formed from d itself, so that small singular values keep their digits.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../linalg/decompose.h"
#endif

enum { GNI_DC_LEAF = 32 }; // parts of this order are left to QL

typedef struct gni_dc {
    gni_la *w;
    int64_t ld;
    double *rows, *s, *mix; // (n,n): the vectors of the halves, how to mix them, and a part of that
    double *s_left;         // the same as s for left singular vectors
    gni_la_rotations rotations, rotations_right;
    bool singular; // poles are the squares of `pole`
    // of the merge under way: poles, weights and their squares, roots, weights of the nearby problem
    int64_t count;
    double *pole, *weight, *square, *root, *near_by;
    // Root j is so far from pole number base[j], or its square from that pole's.
    double *shift;
    int64_t *base;
    double *lines; // a row for each thread where there is no s
    double *scratch, *carry, rho;
    int64_t *order, *list, *left, *right;
    struct gni_dg *apart; // whose rows these are, if they are not here: see values_gpu
} gni_dc;

static int64_t gni_dc_memory(int64_t n) {
    if (n < GNI_DC_LEAST) return 0;
    return 3 * n * gni_la_ld(n) + 15 * gni_la_round(n + 1) + gni_la_rotations_memory(GNI_DC_LEAF + 1) +
           128;
}

static int64_t gni_dc_values_memory(int64_t n) {
    if (n < GNI_DC_LEAST) return 0;
    return gni_dc_memory(n) + n * gni_la_ld(n) + gni_la_rotations_memory(GNI_DC_LEAF + 1);
}

static void gni_dc_take(gni_dc *c, gni_la *w, double *z, int64_t ld, int64_t n) {
    memset(c, 0, sizeof *c);
    c->w = w;
    c->ld = ld;
    c->rows = gni_la_take(w, n * ld);
    c->s = gni_la_take(w, n * ld);
    c->mix = gni_la_take(w, n * ld);
    c->pole = gni_la_take(w, n);
    c->weight = gni_la_take(w, n);
    c->square = gni_la_take(w, n);
    c->root = gni_la_take(w, n);
    c->near_by = gni_la_take(w, n);
    c->shift = gni_la_take(w, n);
    c->base = (int64_t *)(void *)gni_la_take(w, n);
    c->scratch = gni_la_take(w, n);
    c->carry = gni_la_take(w, n);
    c->order = (int64_t *)(void *)gni_la_take(w, n);
    c->list = (int64_t *)(void *)gni_la_take(w, n);
    c->left = (int64_t *)(void *)gni_la_take(w, n);
    c->right = (int64_t *)(void *)gni_la_take(w, n);
    gni_la_rotations_begin(&c->rotations, w, z, ld, GNI_DC_LEAF, GNI_DC_LEAF + 1);
}

// ---- the secular equation 1 / rho + sum of weight^2 / (pole - x) = 0

// Its value and what it is made of, t above the pole that `gap` starts from, with the poles up to `split` apart
// from the others.
typedef struct gni_dc_value {
    double f, low, high, low_slope, high_slope;
} gni_dc_value;

static void gni_dc_evaluate(const gni_dc *c, const double *gap, int64_t split, double t,
                            gni_dc_value *v) {
    const gni_la_isa *isa = c->w->isa;
    const int64_t n = c->count;
    isa->poles(gap, c->square, t, split, &v->low, &v->low_slope);
    isa->poles(gap + split, c->square + split, t, n - split, &v->high, &v->high_slope);
    v->f = 1.0 / c->rho + v->low + v->high;
}

// The step from t to the root of an interpolation that has poles at distances p and q (Li 1993, the middle way);
// for the last root there is no pole above.
static double gni_dc_step(const gni_dc_value *v, double p, double q, bool last) {
    if (last) {
        double rest = v->f - p * v->low_slope;
        return rest > 0.0 ? p + p * p * v->low_slope / rest : HUGE_VAL;
    }
    double slope = v->low_slope + v->high_slope;
    double rest = v->f - p * v->low_slope - q * v->high_slope;
    double a = (p + q) * v->f - p * q * slope, b = p * q * v->f;
    double root = sqrt(fabs(a * a - 4.0 * b * rest));
    if (a <= 0.0) return rest == 0.0 ? HUGE_VAL : (a - root) / (2.0 * rest);
    return 2.0 * b / (a + root);
}

// Root number j, between pole j and the next one. `gap` is room for all poles.
static void gni_dc_root(const gni_dc *c, int64_t j, double *gap) {
    const int64_t n = c->count;
    const double eps = 2.2204460492503131e-16;
    const bool last = j == n - 1;
    double origin = c->pole[j];
    c->base[j] = j;
    c->w->isa->gaps(gap, c->pole, origin, 0.0, c->singular, n);
    double width = last ? c->rho * c->w->isa->dot(c->weight, c->weight, n) : gap[j + 1];
    double lo = 0.0, hi = last ? width * 1.000000000000001 : 0.5 * width, t = 0.5 * width;
    gni_dc_value v;
    gni_dc_evaluate(c, gap, j + 1, t, &v);
    if (v.f < 0.0 && !last) { // nearer to the pole above
        origin = c->pole[j + 1];
        c->base[j] = j + 1;
        c->w->isa->gaps(gap, c->pole, origin, 0.0, c->singular, n);
        t -= width;
        lo = t;
        hi = 0.0;
    }
    for (int i = 0; i < 100; i++) {
        double slope = v.low_slope + v.high_slope, sum = 1.0 / c->rho + fabs(v.low) + fabs(v.high);
        if (fabs(v.f) <= eps * (8.0 * sum + fabs(t) * slope)) break;
        if (v.f < 0.0)
            lo = GNI_MAX(lo, t);
        else
            hi = GNI_MIN(hi, t);
        double p = gap[j] - t, q = last ? 0.0 : gap[j + 1] - t;
        double to = t + gni_dc_step(&v, p, q, last);
        if (!(to > lo && to < hi)) {
            to = lo + 0.5 * (hi - lo);
            if (lo > 0.0) to = sqrt(lo) * sqrt(hi); // near a pole by halves of the exponent
            if (hi < 0.0) to = -sqrt(-lo) * sqrt(-hi);
        }
        if (to == t || !(to > lo && to < hi)) break;
        t = to;
        gni_dc_evaluate(c, gap, j + 1, t, &v);
    }
    c->root[j] = c->singular ? origin + t / (origin + sqrt(origin * origin + t)) : origin + t;
    c->shift[j] = t;
}

static void gni_dc_root_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_dc *c = (const gni_dc *)arg;
    for (int64_t j = begin; j < end; j++)
        gni_dc_root(c, j, c->lines != NULL ? c->lines + worker * c->ld : c->s + j * c->ld);
}

// Weights whose secular equation has exactly the computed roots (Loewner's formula).
static void gni_dc_weights_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_dc *c = (const gni_dc *)arg;
    GNI_UNUSED(worker);
    double *y = c->near_by;
    for (int64_t i = begin; i < end; i++) y[i] = 1.0;
    for (int64_t j = 0; j < c->count; j++) {
        const double at = c->pole[c->base[j]], t = c->shift[j], other = c->pole[j];
        const int64_t lo = GNI_MAX(begin, GNI_MIN(j, end)),
                      hi = GNI_MAX(begin, GNI_MIN(j + 1, end));
        c->w->isa->ratios(y + begin, c->pole + begin, at, t, other, c->singular, lo - begin);
        if (lo < hi) y[j] *= (c->singular ? (other - at) * (other + at) : other - at) - t;
        c->w->isa->ratios(y + hi, c->pole + hi, at, t, other, c->singular, end - hi);
    }
    for (int64_t i = begin; i < end; i++) y[i] = copysign(sqrt(fabs(y[i])), c->weight[i]);
}

// Vector number j of the secular equation, and unless it is NULL the left one.
static void gni_dc_vector(const gni_dc *c, int64_t j, double *row, double *left) {
    c->w->isa->gaps(row, c->pole, c->pole[c->base[j]], c->shift[j], c->singular, c->count);
    const double norm = sqrt(c->w->isa->quotients(row, c->near_by, c->count));
    if (left != NULL) { // the matrix times the right vector
        for (int64_t i = 0; i < c->count; i++) left[i] = c->pole[i] * row[i];
        left[0] = -1.0;
        const double length = sqrt(c->w->isa->dot(left, left, c->count));
        for (int64_t i = 0; i < c->count; i++) left[i] /= length;
    }
    for (int64_t i = 0; i < c->count; i++) row[i] /= norm;
}

static void gni_dc_vectors_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_dc *c = (const gni_dc *)arg;
    GNI_UNUSED(worker);
    for (int64_t j = begin; j < end; j++)
        gni_dc_vector(c, j, c->s + j * c->ld, c->singular ? c->s_left + j * c->ld : NULL);
}

// From c->pole and c->weight to c->root, and where there is room for them c->s and c->s_left.
static void gni_dc_secular(gni_dc *c, double rho, int64_t count) {
    const int64_t grain = 1 + 20000 / count;
    c->count = count;
    c->rho = rho;
    for (int64_t i = 0; i < count; i++) c->square[i] = c->weight[i] * c->weight[i];
    gni_parallel(c->w->pool, count, grain, gni_dc_root_task, c);
    const int64_t wide = GNI_MAX(gni_la_round(grain), gni_la_round(GNI_MAX(count / 32, 64)));
    gni_parallel(c->w->pool, count, wide, gni_dc_weights_task, c);
    if (c->s != NULL) gni_parallel(c->w->pool, count, grain, gni_dc_vectors_task, c);
}

// ---- merging

// Sorts numbers of rows by their value: two sorted runs are the common case.
static void gni_dc_sort(const double *d, int64_t *order, int64_t *spare, int64_t n) {
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t lo = 0; lo + width < n; lo += 2 * width) {
            const int64_t mid = lo + width, hi = GNI_MIN(mid + width, n);
            int64_t i = lo, j = mid, to = 0;
            if (!(d[order[mid]] < d[order[mid - 1]])) continue;
            while (i < mid || j < hi)
                spare[to++] =
                    j == hi || (i < mid && !(d[order[j]] < d[order[i]])) ? order[i++] : order[j++];
            memcpy(order + lo, spare, (size_t)to * sizeof *order);
        }
    }
}

static void gni_dg_rotate(struct gni_dg *p, const double *z, int64_t i, int64_t j, double cs,
                        double sn);
static double gni_dg_edge(const struct gni_dg *p, int64_t i, bool last);

// Of row i of z the element k, which is its last or its first.
static double gni_dc_edge(const gni_dc *c, const double *z, int64_t i, int64_t k, bool last) {
    return c->apart != NULL ? gni_dg_edge(c->apart, i, last) : z[i * c->ld + k];
}

// Rows i and j of z rotate so that the weight of i becomes 0.
static void gni_dc_rotate(const gni_dc *c, double *z, int64_t n, int64_t i, int64_t j, double cs,
                        double sn) {
    if (c->apart != NULL) {
        gni_dg_rotate(c->apart, z, i, j, cs, sn);
        return;
    }
    double *x = z + i * c->ld, *y = z + j * c->ld;
    for (int64_t k = 0; k < n; k++) {
        double a = x[k], b = y[k];
        x[k] = cs * a + sn * b;
        y[k] = cs * b - sn * a;
    }
}

// The rows that the secular equation needs, in order, to c->list, and the others behind them. Returns how many.
static int64_t gni_dc_deflate(gni_dc *c, double *z, double *d, double *weight, double rho,
                              int64_t n) {
    double most = 0.0, heaviest = 0.0;
    int64_t kept = 0, gone = n, at = -1;
    for (int64_t i = 0; i < n; i++) {
        most = GNI_MAX(most, fabs(d[i]));
        heaviest = GNI_MAX(heaviest, fabs(weight[i]));
        c->order[i] = i;
    }
    const double tolerance = 8.0 * 2.2204460492503131e-16 * GNI_MAX(most, heaviest);
    gni_dc_sort(d, c->order, c->list, n);
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = c->order[k];
        if (rho * fabs(weight[i]) <= tolerance) {
            c->list[--gone] = i;
            continue;
        }
        if (at >= 0) {
            double r = hypot(weight[at], weight[i]), cs = weight[i] / r, sn = -weight[at] / r;
            if (fabs((d[i] - d[at]) * cs * sn) <= tolerance) {
                double a = d[at], b = d[i];
                weight[i] = r;
                weight[at] = 0.0;
                gni_dc_rotate(c, z, n, at, i, cs, sn);
                d[at] = a * cs * cs + b * sn * sn;
                d[i] = a * sn * sn + b * cs * cs;
                c->list[--gone] = at;
            } else {
                c->list[kept++] = at;
            }
        }
        at = i;
    }
    if (at >= 0) c->list[kept++] = at;
    return kept;
}

// Columns `from` to `to` of the first `kept` rows of z become mixtures of those rows of c->rows that are not 0
// there: their numbers among the kept ones are in `which`.
static void gni_dc_mix(gni_dc *c, double *z, const double *s, int64_t kept, const int64_t *which,
                       int64_t count, int64_t from, int64_t to) {
    const int64_t ld = c->ld;
    double *mix = c->mix;
    if (count == 0) {
        for (int64_t i = 0; i < kept; i++)
            memset(z + i * ld + from, 0, (size_t)(to - from) * sizeof *z);
        return;
    }
    // The rows move together, which keeps their order; so do the columns of the mixture.
    for (int64_t i = 0; i < count; i++)
        if (which[i] != i)
            memcpy(c->rows + i * ld + from, c->rows + which[i] * ld + from,
                   (size_t)(to - from) * sizeof *z);
    for (int64_t r = 0; r < kept; r++)
        for (int64_t i = 0; i < count; i++) mix[r * ld + i] = s[r * ld + which[i]];
    gni_la_gemm(c->w, gni_la_rows(z + from, ld, kept, to - from), gni_la_rows(mix, ld, kept, count),
                gni_la_rows(c->rows + from, ld, count, to - from), false);
}

static bool gni_dc_any(const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0.0) return true;
    return false;
}

// The rows of z (n,width) in the order of c->list, the first `kept` of them mixed by s. The halves' rows are 0
// on the other side of column h.
static void gni_dc_replace(gni_dc *c, double *z, const double *s, int64_t n, int64_t width,
                           int64_t kept, int64_t h) {
    const int64_t ld = c->ld;
    const size_t bytes = (size_t)width * sizeof *z;
    int64_t left = 0, right = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *row = z + c->list[i] * ld;
        memcpy(c->rows + i * ld, row, bytes);
        if (i >= kept) continue;
        // Rows that were rotated belong to both sides.
        if (gni_dc_any(row, h)) c->left[left++] = i;
        if (gni_dc_any(row + h, width - h)) c->right[right++] = i;
    }
    for (int64_t i = kept; i < n; i++) memcpy(z + i * ld, c->rows + i * ld, bytes);
    if (kept == 0) return;
    gni_dc_mix(c, z, s, kept, c->left, left, 0, h);
    gni_dc_mix(c, z, s, kept, c->right, right, h, width);
}

// The poles and weights of the rows that the secular equation needs, and its solution; d as gni_dc_replace orders it.
static void gni_dc_new_values(gni_dc *c, double *d, const double *weight, double rho, int64_t n,
                              int64_t kept, double least) {
    for (int64_t i = 0; i < n; i++) c->carry[i] = d[c->list[i]];
    for (int64_t i = 0; i < kept; i++) {
        c->pole[i] = i > 0 ? GNI_MAX(c->carry[i], least) : c->carry[i];
        c->weight[i] = weight[c->list[i]];
    }
    if (kept > 0) gni_dc_secular(c, rho, kept);
    memcpy(d, c->root, (size_t)kept * sizeof *d);
    memcpy(d + kept, c->carry + kept, (size_t)(n - kept) * sizeof *d);
}

// The first h and the other rows of z (n,n) are the eigenvectors of two halves, with values d; the whole has rho v v^T
// besides, v = (.., 0, 1, sign, 0, ..) around h. Afterwards d is that of the whole, and c->list and c->s say what z is.
// Returns how many of the rows c->s mixes.
static int64_t gni_dc_join(gni_dc *c, double *z, double *d, int64_t n, int64_t h, double rho,
                           double sign) {
    double *weight = c->scratch;
    for (int64_t i = 0; i < n; i++)
        weight[i] = 0.70710678118654752 * (i < h ? gni_dc_edge(c, z, i, h - 1, true)
                                                 : sign * gni_dc_edge(c, z, i, h, false));
    const int64_t kept = gni_dc_deflate(c, z, d, weight, 2.0 * rho, n);
    gni_dc_new_values(c, d, weight, 2.0 * rho, n, kept, -HUGE_VAL);
    return kept;
}

// d (n), e (n - 1): eigenvalues to d, unsorted, vectors to the rows of z, which is the unit matrix at first.
static void gni_dc_solve(gni_dc *c, double *z, double *d, double *e, int64_t n) {
    if (n <= GNI_DC_LEAF) {
        c->rotations.z = z;
        c->rotations.width = n;
        gni_la_tridiagonal_values(c->w, d, e, n, &c->rotations);
        return;
    }
    const int64_t h = gni_la_round(n / 2);
    const double rho = fabs(e[h - 1]), sign = e[h - 1] < 0.0 ? -1.0 : 1.0;
    d[h - 1] -= rho;
    d[h] -= rho;
    gni_dc_solve(c, z, d, e, h);
    gni_dc_solve(c, z + h * c->ld + h, d + h, e + h, n - h);
    if (c->w->info != 0) return;
    const int64_t kept = gni_dc_join(c, z, d, n, h, rho, sign);
    gni_dc_replace(c, z, c->s, n, n, kept, h);
}

static void gni_dc_run(gni_la *w, double *d, double *e, double *z, int64_t ld, int64_t n) {
    gni_dc c;
    gni_dc_take(&c, w, z, ld, n);
    gni_la_unit(z, ld, n, n);
    gni_dc_solve(&c, z, d, e, n);
}

// ---- singular values

// As gni_dc_deflate; row h is the one with the pole 0, which stays, in front.
static int64_t gni_dc_deflate_values(gni_dc *c, double *u, double *v, const double *d,
                                     double *weight, double tolerance, int64_t n, int64_t width,
                                     int64_t h) {
    int64_t kept = 0, gone = n, at = -1;
    for (int64_t i = 1; i < n; i++) c->order[i] = i <= h ? i - 1 : i;
    gni_dc_sort(d, c->order + 1, c->list, n - 1);
    c->list[kept++] = h;
    for (int64_t k = 1; k < n; k++) {
        const int64_t i = c->order[k];
        if (fabs(weight[i]) <= tolerance) {
            c->list[--gone] = i;
            continue;
        }
        if (at >= 0 && d[i] - d[at] <= tolerance) {
            const double r = hypot(weight[at], weight[i]), cs = weight[i] / r, sn = -weight[at] / r;
            weight[i] = r;
            gni_dc_rotate(c, u, n, at, i, cs, sn);
            gni_dc_rotate(c, v, width, at, i, cs, sn);
            c->list[--gone] = at;
        } else if (at >= 0) {
            c->list[kept++] = at;
        }
        at = i;
    }
    if (at >= 0) c->list[kept++] = at;
    return kept;
}

// The rows of u (n,n) and v (n + extra, n + extra) are the singular vectors of what is above and below row h, with
// values d; row h itself has d[h] and e behind it. As gni_dc_join, c->s_left being for u.
static int64_t gni_dc_join_values(gni_dc *c, double *u, double *v, double *d, double e, int64_t n,
                                  int64_t h, int64_t extra) {
    const int64_t width = n + extra;
    double *weight = c->scratch, most = fabs(e);
    int power = 0;
    for (int64_t i = 0; i < n; i++) {
        most = GNI_MAX(most, fabs(d[i]));
        c->list[i] = i;
    }
    if (most == 0.0) return 0;
    frexp(most, &power); // squares must not underflow
    for (int64_t i = 0; i < n; i++) d[i] = ldexp(d[i], -power);
    const double above = d[h], below = ldexp(e, -power);
    const double tolerance = 32.0 * 2.2204460492503131e-16 * ldexp(most, -power);
    for (int64_t i = 0; i < n; i++)
        weight[i] = i <= h ? above * gni_dc_edge(c, v, i, h, true)
                           : below * gni_dc_edge(c, v, i, h + 1, false);
    if (extra > 0) { // both halves have a right vector without a value: one becomes the whole's
        const double a = weight[h], b = below * gni_dc_edge(c, v, n, h + 1, false), r = hypot(a, b);
        if (r > 0.0) gni_dc_rotate(c, v, width, h, n, a / r, b / r);
        weight[h] = r;
    }
    if (fabs(weight[h]) <= tolerance) weight[h] = tolerance;
    d[h] = 0.0;
    const int64_t kept = gni_dc_deflate_values(c, u, v, d, weight, tolerance, n, width, h);
    gni_dc_new_values(c, d, weight, 1.0, n, kept, 0.5 * tolerance);
    for (int64_t i = 0; i < n; i++) d[i] = ldexp(d[i], power);
    return kept;
}

// d (n), e (n - 1 + extra): singular values to d, unsorted, vectors to the rows of u and v, which are unit matrices at
// first. `extra`: 1 where there is a column more than rows.
static void gni_dc_solve_values(gni_dc *c, double *u, double *v, double *d, const double *e,
                                int64_t n, int64_t extra) {
    if (n <= GNI_DC_LEAF) {
        double values[GNI_DC_LEAF + 1], next[GNI_DC_LEAF + 1];
        values[n] = next[n - 1] = next[n] = 0.0; // a row of zeros below makes it square
        memcpy(values, d, (size_t)n * sizeof *d);
        memcpy(next, e, (size_t)(n - 1 + extra) * sizeof *e);
        c->rotations.z = u;
        c->rotations.width = n;
        c->rotations_right.z = v;
        c->rotations_right.width = n + extra;
        gni_la_bidiagonal_values(c->w, values, next, n + extra, &c->rotations, &c->rotations_right);
        for (int64_t i = 0; i < n; i++) {
            d[i] = fabs(values[i]);
            if (values[i] < 0.0) gni_la_negate(v + i * c->ld, n + extra);
        }
        return;
    }
    const int64_t h = gni_la_round(n / 2) - 1, behind = (h + 1) * (c->ld + 1);
    gni_dc_solve_values(c, u, v, d, e, h, 1);
    gni_dc_solve_values(c, u + behind, v + behind, d + h + 1, e + h + 1, n - h - 1, extra);
    if (c->w->info != 0) return;
    const int64_t kept = gni_dc_join_values(c, u, v, d, e[h], n, h, extra);
    if (kept == 0) return; // all of it is zeros
    gni_dc_replace(c, v, c->s, n, n + extra, kept, h + 1);
    gni_dc_replace(c, u, c->s_left, n, n, kept, h);
}

static void gni_dc_run_values(gni_la *w, double *d, const double *e, double *u, double *v,
                              int64_t ld, int64_t n) {
    gni_dc c;
    gni_dc_take(&c, w, u, ld, n);
    gni_la_rotations_begin(&c.rotations_right, w, v, ld, GNI_DC_LEAF + 1, GNI_DC_LEAF + 1);
    c.s_left = gni_la_take(w, n * ld);
    c.singular = true;
    gni_la_unit(u, ld, n, n);
    gni_la_unit(v, ld, n, n);
    gni_dc_solve_values(&c, u, v, d, e, n, 0);
}
