// >>decompose
// Matrix decompositions on the CPU, in float64 over rows that are contiguous: LU, Cholesky, QR,
// symmetric eigenproblem and singular values of one matrix. From outside: gni_la and the functions
// gni_la_lu to gni_la_svd_square (la: linear algebra).
//
// Everything that costs n^3 goes through the matrix product or through rows long enough for the vector
// loops; results do not depend on the number of threads. Sources: Golub and Van Loan, Matrix
// Computations, 4th edition (GVL); the LAPACK Users' Guide for stopping rules and blocked reductions.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/gemm_cpu.h"
#endif

#define GNI_LA_PANEL 32 // reflections that are applied together

enum { GNI_LA_NO_MEMORY = -1, GNI_LA_NOT_FINITE = -2, GNI_LA_NO_CONVERGENCE = -3 };

// One thread's tools: the pool for a matrix that has all threads, NULL for one of a batch.
typedef struct gni_la {
    gn_context *g;
    gni_pool *pool;
    gni_gemm_work gemm;
    const gni_la_isa *isa;
    double *memory, *next; // and what of it is not taken yet
    int64_t capacity;
    double *aside; // room for a negated operand, the quarter of a matrix
    int64_t info;  // 0, or what went wrong
} gni_la;

// ---- memory

static int64_t gni_la_round(int64_t n) { return (n + 7) / 8 * 8; }

// Row length of a matrix with n columns: rows that are a multiple of 512 bytes apart would fall into few
// sets of the caches.
static int64_t gni_la_ld(int64_t n) {
    int64_t ld = gni_la_round(GNI_MAX(n, 1));
    return ld % 64 == 0 ? ld + 8 : ld;
}

// Makes room for `count` numbers, to be handed out by gni_la_take.
static bool gni_la_reserve(gni_la *w, int64_t count) {
    if (count > w->capacity || w->memory == NULL) {
        gni_free(w->g, w->memory);
        w->capacity = 0;
        w->memory = count < INT64_MAX / 16
                        ? (double *)gni_alloc(w->g, (size_t)count * sizeof(double))
                        : NULL;
        if (w->memory == NULL) {
            w->info = GNI_LA_NO_MEMORY;
            return false;
        }
        w->capacity = count;
    }
    w->next = w->memory;
    return true;
}

static double *gni_la_take(gni_la *w, int64_t count) {
    double *p = w->next;
    w->next += gni_la_round(count);
    return p;
}

static void gni_la_free(gni_la *w) {
    gni_free(w->g, w->memory);
    gni_gemm_work_free(w->g, &w->gemm);
}

static void gni_la_clear(double *a, int64_t ld, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++) memset(a + i * ld, 0, (size_t)n * sizeof(double));
}

// The first m <= n rows of the unit matrix.
static void gni_la_unit(double *a, int64_t ld, int64_t m, int64_t n) {
    gni_la_clear(a, ld, m, n);
    for (int64_t i = 0; i < m; i++) a[i * ld + i] = 1.0;
}

// ---- products

// A matrix in somebody's memory: m rows and n columns, rs and cs numbers apart.
typedef struct gni_la_matrix {
    double *p;
    int64_t m, n, rs, cs;
} gni_la_matrix;

static gni_la_matrix gni_la_rows(double *p, int64_t ld, int64_t m, int64_t n) {
    gni_la_matrix a;
    a.p = p;
    a.m = m;
    a.n = n;
    a.rs = ld;
    a.cs = 1;
    return a;
}

// m rows from row i on, n columns from column j on.
static gni_la_matrix gni_la_part(gni_la_matrix a, int64_t i, int64_t j, int64_t m, int64_t n) {
    a.p += i * a.rs + j * a.cs;
    a.m = m;
    a.n = n;
    return a;
}

static gni_la_matrix gni_la_transposed(gni_la_matrix a) {
    const gni_la_matrix t = a;
    a.m = t.n;
    a.n = t.m;
    a.rs = t.cs;
    a.cs = t.rs;
    return a;
}

// c = a b, or added to c, whose rows are contiguous.
static void gni_la_gemm(gni_la *w, gni_la_matrix c, gni_la_matrix a, gni_la_matrix b, bool add) {
    GNI_ZEROED(gni_gemm, d);
    d.in = d.out = GN_F64;
    d.m = c.m;
    d.n = c.n;
    d.k = a.n;
    d.a = a.p;
    d.a_rs = a.rs;
    d.a_cs = a.cs;
    d.b = b.p;
    d.b_rs = b.rs;
    d.b_cs = b.cs;
    d.c = c.p;
    d.c_rs = c.rs;
    d.accumulate = add;
    d.batch = 1;
    if (!gni_gemm_cpu(w->g, w->pool, &w->gemm, (int)w->g->isa, &d)) w->info = GNI_LA_NO_MEMORY;
}

// c -= a b, rows of a contiguous. w->aside has room for a.
static void gni_la_subtract(gni_la *w, gni_la_matrix c, gni_la_matrix a, gni_la_matrix b) {
    for (int64_t i = 0; i < a.m; i++)
        for (int64_t k = 0; k < a.n; k++) w->aside[i * a.n + k] = -a.p[i * a.rs + k];
    gni_la_gemm(w, c, gni_la_rows(w->aside, a.n, a.m, a.n), b, true);
}

typedef struct gni_la_product {
    const gni_la_isa *isa;
    const double *a, *x;
    double *y;
    int64_t lda, m, n;
} gni_la_product;

static void gni_la_rows_dot_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_la_product *p = (const gni_la_product *)arg;
    GNI_UNUSED(worker);
    p->isa->rows_dot(p->y + begin, p->a + begin * p->lda, p->lda, p->x, end - begin, p->n);
}

static void gni_la_rows_add_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_la_product *p = (const gni_la_product *)arg;
    GNI_UNUSED(worker);
    p->isa->rows_add(p->y + begin, p->a + begin, p->lda, p->x, p->m, end - begin);
}

// y (m) = a (m,n) x, or with `transposed` y (n) += x (m) a (m,n), by all threads when that pays. The parts begin
// where the vector loops begin a round, so that their bits do not depend on how it is cut.
static void gni_la_times_vector(gni_la *w, double *y, gni_la_matrix a, const double *x, bool transposed) {
    gni_la_product p;
    p.isa = w->isa;
    p.a = a.p;
    p.x = x;
    p.y = y;
    p.lda = a.rs;
    p.m = a.m;
    p.n = a.n;
    int64_t items = transposed ? a.n : a.m, other = GNI_MAX(transposed ? a.m : a.n, 1);
    int64_t grain = GNI_MAX(gni_la_round(65536 / other), 64);
    gni_parallel(w->pool, items, grain, transposed ? gni_la_rows_add_task : gni_la_rows_dot_task, &p);
}

enum { GNI_LA_PARTS = 8 }; // of a symmetric matrix, at most

typedef struct gni_la_symmetric {
    const gni_la_isa *isa;
    const double *a, *x;
    double *sum; // a row of n for each part
    int64_t lda, n, row[GNI_LA_PARTS + 1];
} gni_la_symmetric;

static void gni_la_symmetric_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_la_symmetric *p = (const gni_la_symmetric *)arg;
    GNI_UNUSED(worker);
    for (int64_t i = begin; i < end; i++) {
        const int64_t r = p->row[i];
        double *sum = p->sum + i * p->n;
        memset(sum, 0, (size_t)p->n * sizeof *sum);
        p->isa->triangle(sum + r, p->a + r * (p->lda + 1), p->lda, p->x + r, p->row[i + 1] - r,
                         p->n - r);
    }
}

// y (n) = a x with the symmetric a whose upper triangle is there. The parts are of one size and depend on n
// only, and so do the bits. `sum` has room for GNI_LA_PARTS rows.
static void gni_la_times_symmetric(gni_la *w, double *y, gni_la_matrix a, const double *x, double *sum) {
    gni_la_symmetric p;
    const int64_t n = a.n, parts = GNI_MIN(GNI_MAX(n * n / 131072, 1), (int64_t)GNI_LA_PARTS);
    p.isa = w->isa;
    p.a = a.p;
    p.x = x;
    p.sum = parts > 1 ? sum : y;
    p.lda = a.rs;
    p.n = n;
    for (int64_t i = 0; i < parts; i++)
        p.row[i] = (int64_t)((double)n * (1.0 - sqrt(1.0 - (double)i / (double)parts))) / 16 * 16;
    p.row[parts] = n;
    gni_parallel(w->pool, parts, 1, gni_la_symmetric_task, &p);
    if (parts == 1) return;
    memcpy(y, sum, (size_t)n * sizeof *y);
    for (int64_t i = 1; i < parts; i++)
        w->isa->axpy(y + p.row[i], 1.0, sum + i * n + p.row[i], n - p.row[i]);
}

// ---- triangular systems

// b = l^-1 b with the lower triangle of l (n,n), its diagonal 1 when `unit`. By halves; GVL 3.1.
static void gni_la_solve_lower(gni_la *w, gni_la_matrix l, gni_la_matrix b, bool unit) {
    const int64_t n = l.n, m = b.n, ldb = b.rs;
    const bool column = m == 1 && ldb == 1;
    if (n > GNI_LA_LEAF && !column) {
        const int64_t h = gni_la_round(n / 2);
        const gni_la_matrix top = gni_la_part(b, 0, 0, h, m), rest = gni_la_part(b, h, 0, n - h, m);
        gni_la_solve_lower(w, gni_la_part(l, 0, 0, h, h), top, unit);
        gni_la_subtract(w, rest, gni_la_part(l, h, 0, n - h, h), top);
        gni_la_solve_lower(w, gni_la_part(l, h, h, n - h, n - h), rest, unit);
        return;
    }
    double factor[GNI_LA_LEAF];
    for (int64_t i = 0; i < n; i++) {
        const double *row = l.p + i * l.rs;
        double *y = b.p + i * ldb;
        if (column) {
            y[0] -= w->isa->dot(row, b.p, i);
        } else {
            for (int64_t k = 0; k < i; k++) factor[k] = -row[k];
            w->isa->rows_add(y, b.p, ldb, factor, i, m);
        }
        if (unit) continue;
        for (int64_t j = 0; j < m; j++) y[j] /= row[i];
    }
}

// b = u^-1 b with the upper triangle of u (n,n).
static void gni_la_solve_upper(gni_la *w, gni_la_matrix u, gni_la_matrix b) {
    const int64_t n = u.n, m = b.n, ldb = b.rs;
    const bool column = m == 1 && ldb == 1;
    if (n > GNI_LA_LEAF && !column) {
        const int64_t h = gni_la_round(n / 2);
        const gni_la_matrix top = gni_la_part(b, 0, 0, h, m), rest = gni_la_part(b, h, 0, n - h, m);
        gni_la_solve_upper(w, gni_la_part(u, h, h, n - h, n - h), rest);
        gni_la_subtract(w, top, gni_la_part(u, 0, h, h, n - h), rest);
        gni_la_solve_upper(w, gni_la_part(u, 0, 0, h, h), top);
        return;
    }
    double factor[GNI_LA_LEAF];
    for (int64_t i = n; i-- > 0;) {
        const double *row = u.p + i * u.rs;
        double *y = b.p + i * ldb;
        if (column) {
            y[0] -= w->isa->dot(row + i + 1, b.p + i + 1, n - i - 1);
        } else {
            for (int64_t k = i + 1; k < n; k++) factor[k - i - 1] = -row[k];
            w->isa->rows_add(y, b.p + (i + 1) * ldb, ldb, factor, n - i - 1, m);
        }
        for (int64_t j = 0; j < m; j++) y[j] /= row[i];
    }
}

// ---- LU

static void gni_la_swap_rows(double *x, double *y, int64_t n) {
    for (int64_t i = 0; i < n && x != y; i++) {
        const double t = x[i];
        x[i] = y[i];
        y[i] = t;
    }
}

// Columns j0 to j1 of the rows from j0 on. A row that moves moves as a whole.
static void gni_la_lu_leaf(gni_la *w, gni_la_matrix a, int64_t *pivot, int64_t j0, int64_t j1) {
    const int64_t ld = a.rs;
    for (int64_t j = j0; j < j1; j++) {
        int64_t at = j;
        for (int64_t i = j + 1; i < a.n; i++)
            if (fabs(a.p[i * ld + j]) > fabs(a.p[at * ld + j])) at = i;
        pivot[j] = at;
        double *top = a.p + j * ld;
        gni_la_swap_rows(top, a.p + at * ld, a.n);
        if (top[j] == 0.0) { // so are all below
            if (w->info == 0) w->info = j + 1;
            continue;
        }
        for (int64_t i = j + 1; i < a.n; i++) {
            double *row = a.p + i * ld, f = row[j] / top[j];
            row[j] = f;
            for (int64_t k = j + 1; k < j1; k++) row[k] -= f * top[k];
        }
    }
}

static void gni_la_lu_columns(gni_la *w, gni_la_matrix a, int64_t *pivot, int64_t j0, int64_t j1) {
    if (j1 - j0 <= 8) {
        gni_la_lu_leaf(w, a, pivot, j0, j1);
        return;
    }
    const int64_t done = gni_la_round((j1 - j0) / 2), h = j0 + done, rest = a.n - h;
    gni_la_lu_columns(w, a, pivot, j0, h);
    const gni_la_matrix right = gni_la_part(a, j0, h, done, j1 - h);
    gni_la_solve_lower(w, gni_la_part(a, j0, j0, done, done), right, true);
    gni_la_subtract(w, gni_la_part(a, h, h, rest, j1 - h), gni_la_part(a, h, j0, rest, done), right);
    gni_la_lu_columns(w, a, pivot, h, j1);
}

// P a = L U with partial pivoting, by halves of the columns (Toledo 1997). Step j swapped row j with row
// pivot[j]. w->info becomes the first j + 1 whose pivot is 0.
static void gni_la_lu(gni_la *w, gni_la_matrix a, int64_t *pivot) { gni_la_lu_columns(w, a, pivot, 0, a.n); }

// b = a^-1 b from the LU of a.
static void gni_la_lu_solve(gni_la *w, gni_la_matrix a, const int64_t *pivot, gni_la_matrix b) {
    for (int64_t i = 0; i < a.n; i++) gni_la_swap_rows(b.p + i * b.rs, b.p + pivot[i] * b.rs, b.n);
    gni_la_solve_lower(w, a, b, true);
    gni_la_solve_upper(w, a, b);
}

// ---- Cholesky

// b = b l^-T with the lower triangle of l (n,n)
static void gni_la_solve_right(gni_la *w, gni_la_matrix l, gni_la_matrix b) {
    const int64_t n = l.n, m = b.m;
    if (n > GNI_LA_LEAF) {
        const int64_t h = gni_la_round(n / 2);
        const gni_la_matrix left = gni_la_part(b, 0, 0, m, h), right = gni_la_part(b, 0, h, m, n - h);
        gni_la_solve_right(w, gni_la_part(l, 0, 0, h, h), left);
        gni_la_subtract(w, right, left, gni_la_transposed(gni_la_part(l, h, 0, n - h, h)));
        gni_la_solve_right(w, gni_la_part(l, h, h, n - h, n - h), right);
        return;
    }
    w->isa->solve_right(l.p, l.rs, n, b.p, b.rs, m);
}

// The lower triangle of c (n,n) -= a (n,k) a^T; above it anything may be written.
static void gni_la_subtract_square(gni_la *w, gni_la_matrix c, gni_la_matrix a) {
    const int64_t n = c.n;
    if (n <= 128) {
        gni_la_subtract(w, c, a, gni_la_transposed(a));
        return;
    }
    const int64_t h = gni_la_round(n / 2);
    const gni_la_matrix top = gni_la_part(a, 0, 0, h, a.n), rest = gni_la_part(a, h, 0, n - h, a.n);
    gni_la_subtract_square(w, gni_la_part(c, 0, 0, h, h), top);
    gni_la_subtract(w, gni_la_part(c, h, 0, n - h, h), rest, gni_la_transposed(top));
    gni_la_subtract_square(w, gni_la_part(c, h, h, n - h, n - h), rest);
}

// The lower triangle of a becomes L with L L^T = a, by halves; GVL 4.2. Rows before `first` are done.
// w->info becomes the order of the leading block that is not positive definite.
static void gni_la_cholesky(gni_la *w, gni_la_matrix a, int64_t first) {
    const int64_t n = a.n;
    if (n > GNI_LA_LEAF) {
        const int64_t h = gni_la_round(n / 2);
        const gni_la_matrix top = gni_la_part(a, 0, 0, h, h), below = gni_la_part(a, h, 0, n - h, h),
                            rest = gni_la_part(a, h, h, n - h, n - h);
        gni_la_cholesky(w, top, first);
        if (w->info != 0) return;
        gni_la_solve_right(w, top, below);
        gni_la_subtract_square(w, rest, below);
        gni_la_cholesky(w, rest, first + h);
        return;
    }
    const int64_t bad = w->isa->cholesky(a.p, a.rs, n);
    if (bad > 0) w->info = first + bad;
}

// ---- Householder reflections

static double gni_la_norm(const gni_la *w, const double *x, int64_t n) {
    double sum = w->isa->dot(x, x, n), most = 0.0;
    if (sum > 1e-280 && sum < 1e280) return sqrt(sum);
    for (int64_t i = 0; i < n; i++) most = x[i] != x[i] ? x[i] : GNI_MAX(most, fabs(x[i]));
    if (!(most > 0.0) || most > 1.7976931348623157e308) return most;
    sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += (x[i] / most) * (x[i] / most);
    return most * sqrt(sum);
}

// The reflection I - tau v v^T that turns x (n) into (beta, 0, ...); v overwrites x, v[0] = 1. GVL 5.1, with
// LAPACK's choice of signs. Returns beta.
static double gni_la_reflector(const gni_la *w, double *x, int64_t n, double *tau) {
    double alpha = x[0], rest = gni_la_norm(w, x + 1, n - 1);
    x[0] = 1.0;
    *tau = 0.0;
    if (rest == 0.0) return alpha;
    double beta = hypot(alpha, rest), d;
    if (beta < 1e-290) { // numbers near the smallest ones have too few digits for tau
        x[0] = alpha;
        for (int64_t i = 0; i < n; i++) x[i] *= 1e200;
        return gni_la_reflector(w, x, n, tau) * 1e-200;
    }
    if (!(alpha < 0.0)) beta = -beta;
    d = alpha - beta;
    *tau = -d / beta;
    for (int64_t i = 1; i < n; i++) x[i] *= 1.0 / d;
    return beta;
}

// A panel of reflections: their vectors as rows of v, and -T of their product I - V^T T V.
typedef struct gni_la_block {
    double *v, *gram, *t, *x, *y;
    int64_t ldv;
} gni_la_block;

// Memory that the reflections of `count` rows of length m take.
static int64_t gni_la_block_memory(int64_t count, int64_t m) {
    return GNI_LA_PANEL * (gni_la_ld(m) + 2 * GNI_LA_PANEL + 2 * count) + 64;
}

static void gni_la_block_take(gni_la *w, gni_la_block *b, int64_t count, int64_t m) {
    b->ldv = gni_la_ld(m);
    b->v = gni_la_take(w, GNI_LA_PANEL * b->ldv);
    b->gram = gni_la_take(w, GNI_LA_PANEL * GNI_LA_PANEL);
    b->t = gni_la_take(w, GNI_LA_PANEL * GNI_LA_PANEL);
    b->x = gni_la_take(w, GNI_LA_PANEL * count);
    b->y = gni_la_take(w, GNI_LA_PANEL * count);
}

// -T (jb,jb), upper, of the product H_0 H_1 ... of jb reflections of length m; GVL 5.1.7.
static void gni_la_block_factor(gni_la *w, gni_la_block *b, int64_t jb, int64_t m, const double *tau) {
    const gni_la_matrix v = gni_la_rows(b->v, b->ldv, jb, m);
    double *gram = b->gram, *t = b->t;
    gni_la_gemm(w, gni_la_rows(gram, jb, jb, jb), v, gni_la_transposed(v), false);
    memset(t, 0, (size_t)(jb * jb) * sizeof(double));
    for (int64_t i = 0; i < jb; i++) {
        for (int64_t r = 0; r < i; r++) {
            double sum = 0.0;
            for (int64_t k = r; k < i; k++) sum += t[r * jb + k] * gram[k * jb + i];
            t[r * jb + i] = -tau[i] * sum;
        }
        t[i * jb + i] = tau[i];
    }
    for (int64_t i = 0; i < jb * jb; i++) t[i] = -t[i];
}

// c = c (I - V^T T V), or with T^T, of the block's jb reflections.
static void gni_la_block_apply(gni_la *w, const gni_la_block *b, int64_t jb, gni_la_matrix c, bool transposed) {
    const gni_la_matrix v = gni_la_rows(b->v, b->ldv, jb, c.n), t = gni_la_rows(b->t, jb, jb, jb),
                        x = gni_la_rows(b->x, jb, c.m, jb), y = gni_la_rows(b->y, jb, c.m, jb);
    if (c.m <= 0) return;
    gni_la_gemm(w, x, c, gni_la_transposed(v), false);
    gni_la_gemm(w, y, x, transposed ? gni_la_transposed(t) : t, false);
    gni_la_gemm(w, c, y, v, true);
}

// Vectors j0 to j0 + jb, of which vector j starts at row j of `a` and column j, to b->v and b->t.
static void gni_la_block_load(gni_la *w, gni_la_block *b, gni_la_matrix a, int64_t j0, int64_t jb,
                              const double *tau) {
    for (int64_t j = 0; j < jb; j++) {
        double *v = b->v + j * b->ldv;
        const int64_t at = j0 + j;
        memset(v, 0, (size_t)j * sizeof(double));
        v[j] = 1.0;
        memcpy(v + j + 1, a.p + at * a.rs + at + 1, (size_t)(a.n - at - 1) * sizeof(double));
    }
    gni_la_block_factor(w, b, jb, a.n - j0, tau + j0);
}

// at (n,m) is a transposed: its rows are the columns of a (m,n). R comes to stand in at[j][0..j], the vectors
// of min(m,n) reflections behind it; GVL 5.2.3.
static void gni_la_qr(gni_la *w, gni_la_matrix at, double *tau, gni_la_block *b) {
    const int64_t m = at.n, n = at.m, ld = at.rs, k = GNI_MIN(m, n);
    for (int64_t j0 = 0; j0 < k; j0 += GNI_LA_PANEL) {
        const int64_t jb = GNI_MIN(GNI_LA_PANEL, k - j0), end = j0 + jb;
        for (int64_t j = j0; j < j0 + jb; j++) {
            double *v = at.p + j * ld + j, beta = gni_la_reflector(w, v, m - j, &tau[j]);
            for (int64_t r = j + 1; r < end && tau[j] != 0.0; r++) {
                double *c = at.p + r * ld + j;
                w->isa->axpy(c, -tau[j] * w->isa->dot(v, c, m - j), v, m - j);
            }
            v[0] = beta;
        }
        if (end >= n) break;
        gni_la_block_load(w, b, at, j0, jb, tau);
        gni_la_block_apply(w, b, jb, gni_la_part(at, end, j0, n - end, m - j0), false);
    }
}

// Where the last panel of k reflections begins; below 0 if there is none.
static int64_t gni_la_last_panel(int64_t k) { return k > 0 ? (k - 1) / GNI_LA_PANEL * GNI_LA_PANEL : -1; }

// The first columns of the product of reflections as rows of q (count,m); their vectors stand in a (k,m) as
// gni_la_qr leaves them.
static void gni_la_form_q(gni_la *w, gni_la_matrix a, const double *tau, gni_la_matrix q, gni_la_block *b) {
    gni_la_unit(q.p, q.rs, q.m, q.n);
    for (int64_t j0 = gni_la_last_panel(a.m); j0 >= 0; j0 -= GNI_LA_PANEL) {
        const int64_t jb = GNI_MIN(GNI_LA_PANEL, a.m - j0);
        gni_la_block_load(w, b, a, j0, jb, tau);
        gni_la_block_apply(w, b, jb, gni_la_part(q, j0, j0, q.m - j0, q.n - j0), true);
    }
}

// c (rows,m) = c Q^T for the product Q of the m reflections in a (m,m).
static void gni_la_apply_q(gni_la *w, gni_la_matrix a, const double *tau, gni_la_matrix c, gni_la_block *b) {
    for (int64_t j0 = gni_la_last_panel(a.m); j0 >= 0; j0 -= GNI_LA_PANEL) {
        const int64_t jb = GNI_MIN(GNI_LA_PANEL, a.m - j0);
        gni_la_block_load(w, b, a, j0, jb, tau);
        gni_la_block_apply(w, b, jb, gni_la_part(c, 0, j0, c.m, c.n - j0), true);
    }
}

// ---- sequences of rotations

// Rotations wait until there are many, and then go over strips of the rows that stay in the cache (Van Zee,
// van de Geijn, Quintana-Orti 2014).
typedef struct gni_la_chain {
    int64_t row, step, count, at; // first row, to the next one, rotations, where they are in cs
} gni_la_chain;

#define GNI_LA_CHAINS 64
#define GNI_LA_STRIP 32 // columns that take all waiting rotations in one go

typedef struct gni_la_rotations {
    gni_la *w;
    double *z; // (rows,width); NULL: nobody wants the vectors
    int64_t ld, width;
    double *cs;
    int64_t used, capacity; // rotations
    int chains;
    gni_la_chain chain[GNI_LA_CHAINS];
} gni_la_rotations;

static void gni_la_rotations_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_la_rotations *t = (const gni_la_rotations *)arg;
    GNI_UNUSED(worker);
    for (int64_t strip = begin; strip < end; strip++) {
        const int64_t j = strip * GNI_LA_STRIP, width = GNI_MIN(GNI_LA_STRIP, t->width - j);
        for (int i = 0; i < t->chains; i++) {
            const gni_la_chain *c = &t->chain[i];
            t->w->isa->rotate(t->z + c->row * t->ld + j, c->step * t->ld, t->cs + 2 * c->at, c->count,
                            width);
        }
    }
}

static void gni_la_rotations_flush(gni_la_rotations *t) {
    if (t->chains > 0) {
        const int64_t strips = (t->width + GNI_LA_STRIP - 1) / GNI_LA_STRIP;
        gni_parallel(t->w->pool, strips, t->used * t->width < 100000 ? strips : 1,
                     gni_la_rotations_task, t);
    }
    t->chains = 0;
    t->used = 0;
}

// Room for `count` <= capacity rotations of the rows row, row + step, ...; NULL if nobody wants them.
static double *gni_la_rotations_add(gni_la_rotations *t, int64_t row, int64_t step, int64_t count) {
    if (t->z == NULL) return NULL;
    if (t->chains == GNI_LA_CHAINS || t->used + count > t->capacity) gni_la_rotations_flush(t);
    gni_la_chain *c = &t->chain[t->chains++];
    c->row = row;
    c->step = step;
    c->count = count;
    c->at = t->used;
    t->used += count;
    return t->cs + 2 * c->at;
}

static int64_t gni_la_rotations_memory(int64_t n) { return gni_la_round(64 * GNI_MAX(n, 1)); }

static void gni_la_rotations_begin(gni_la_rotations *t, gni_la *w, double *z, int64_t ld, int64_t width,
                               int64_t n) {
    t->w = w;
    t->z = z;
    t->ld = ld;
    t->width = width;
    t->used = 0;
    t->chains = 0;
    t->capacity = 32 * GNI_MAX(n, 1);
    t->cs = z != NULL ? gni_la_take(w, 2 * t->capacity) : NULL;
}

// c = f / r and s = g / r with r = root of f^2 + g^2, which is returned.
static double gni_la_rotation(double f, double g, double *c, double *s) {
    double sum = f * f + g * g;
    double r = sum > 1e-280 && sum < 1e280 ? sqrt(sum) : hypot(f, g);
    *c = r == 0.0 ? 1.0 : f / r;
    *s = r == 0.0 ? 0.0 : g / r;
    return r;
}

static void gni_la_put(double *cs, int64_t i, double c, double s) {
    if (cs == NULL) return;
    cs[2 * i] = c;
    cs[2 * i + 1] = s;
}

// ---- symmetric eigenproblem

typedef struct gni_la_tridiagonal {
    gni_la_matrix a;
    double *d, *e, *tau;
    double *v, *w;  // vectors of the panel as rows, 2 GNI_LA_PANEL of n: v above w
    double *minus;  // -w above -v
    double *factor; // 2 GNI_LA_PANEL
    double *p;      // n
    double *sum;    // GNI_LA_PARTS of n
} gni_la_tridiagonal;

// One column: a[j][j+1..] becomes the vector of the reflection, d and e the elements of T. The block's earlier
// `i` reflections are not in the rest of `a` yet.
static void gni_la_tridiagonal_step(gni_la *w, gni_la_tridiagonal *x, int64_t j, int64_t i) {
    const int64_t ld = x->a.rs, n = x->a.n;
    double *row = x->a.p + j * ld, *f = x->factor, *tau = x->tau;
    const gni_la_isa *isa = w->isa;
    for (int64_t k = 0; k < i; k++) {
        f[k] = -x->w[k * ld + j];
        f[i + k] = -x->v[k * ld + j];
    }
    isa->rows_add(row + j, x->v + j, ld, f, i, n - j);
    isa->rows_add(row + j, x->w + j, ld, f + i, i, n - j);
    x->d[j] = row[j];
    if (j == n - 1) return;
    const int64_t from = j + 1, left = n - from;
    double *v = row + from, *p = x->p + from;
    x->e[j] = gni_la_reflector(w, v, left, &tau[j]);
    gni_la_times_symmetric(w, p, gni_la_part(x->a, from, from, left, left), v, x->sum);
    isa->rows_dot(f, x->w + from, ld, v, i, left);
    isa->rows_dot(f + i, x->v + from, ld, v, i, left);
    for (int64_t k = 0; k < 2 * i; k++) f[k] = -f[k];
    isa->rows_add(p, x->v + from, ld, f, i, left);
    isa->rows_add(p, x->w + from, ld, f + i, i, left);
    for (int64_t k = 0; k < left; k++) p[k] *= tau[j];
    isa->axpy(p, -0.5 * tau[j] * isa->dot(p, v, left), v, left);
    memset(x->v + i * ld, 0, (size_t)from * sizeof(double));
    memset(x->w + i * ld, 0, (size_t)from * sizeof(double));
    memcpy(x->v + i * ld + from, v, (size_t)left * sizeof(double));
    memcpy(x->w + i * ld + from, p, (size_t)left * sizeof(double));
}

// The upper triangle of c (n,n) += x^T y with x and y (k,n); below it anything may be written.
static void gni_la_add_triangle(gni_la *w, gni_la_matrix c, gni_la_matrix x, gni_la_matrix y) {
    const int64_t n = c.n, k = x.m, h = n <= 128 ? n : gni_la_round(n / 2), rest = n - h;
    if (h == n) {
        gni_la_gemm(w, c, gni_la_transposed(x), y, true);
        return;
    }
    const gni_la_matrix left = gni_la_part(x, 0, 0, k, h), right = gni_la_part(y, 0, h, k, rest);
    gni_la_add_triangle(w, gni_la_part(c, 0, 0, h, h), left, gni_la_part(y, 0, 0, k, h));
    gni_la_gemm(w, gni_la_part(c, 0, h, h, rest), gni_la_transposed(left), right, true);
    gni_la_add_triangle(w, gni_la_part(c, h, h, rest, rest), gni_la_part(x, 0, h, k, rest), right);
}

// The symmetric a (n,n), of which the upper triangle is there, = Q T Q^T with T tridiagonal; GVL 8.3.1, a panel at
// a time (Dongarra, Sorensen, Hammarling 1989).
static void gni_la_tridiagonalize(gni_la *w, gni_la_matrix a, double *d, double *e, double *tau) {
    const int64_t n = a.n, ld = a.rs;
    gni_la_tridiagonal x;
    x.a = a;
    x.d = d;
    x.e = e;
    x.tau = tau;
    x.v = gni_la_take(w, 2 * GNI_LA_PANEL * ld);
    x.minus = gni_la_take(w, 2 * GNI_LA_PANEL * ld);
    x.factor = gni_la_take(w, 2 * GNI_LA_PANEL);
    x.p = gni_la_take(w, ld);
    x.sum = gni_la_take(w, GNI_LA_PARTS * ld);
    for (int64_t j0 = 0; j0 < n; j0 += GNI_LA_PANEL) {
        const int64_t jb = GNI_MIN(GNI_LA_PANEL, n - j0), end = j0 + jb;
        x.w = x.v + jb * ld;
        for (int64_t i = 0; i < jb; i++)
            gni_la_tridiagonal_step(w, &x, j0 + i, i);
        if (end >= n) break;
        for (int64_t i = 0; i < 2 * jb; i++)
            for (int64_t k = end; k < n; k++)
                x.minus[i * ld + k] = -x.v[(i < jb ? i + jb : i - jb) * ld + k];
        gni_la_add_triangle(w, gni_la_part(a, end, end, n - end, n - end), gni_la_rows(x.v + end, ld, 2 * jb, n - end),
                            gni_la_rows(x.minus + end, ld, 2 * jb, n - end));
    }
}

static bool gni_la_negligible(double e, double d0, double d1) {
    return fabs(e) <= 2.2204460492503131e-16 * (sqrt(fabs(d0)) * sqrt(fabs(d1))) ||
           fabs(e) < 1e-300;
}

static bool gni_la_negligible_square(double e, double d0, double d1, double weight) {
    return e <= weight * 4.9303806576313238e-32 * fabs(d0 * d1) || e < 1e-300;
}

// One implicit QL step on the `count` elements from `lo` on, or with dir -1 the same backwards (QR), so that
// the small end of a graded matrix converges first; GVL 8.3.5, EISPACK's tql2.
static void gni_la_ql_step(double *d, double *e, int64_t lo, int64_t count, int64_t dir,
                           gni_la_rotations *rotations) {
    const int64_t hi = lo + count - 1, top = dir > 0 ? lo : hi, edge = dir > 0 ? lo : hi - 1;
    double p = d[top], g = (d[top + dir] - p) / (2.0 * e[edge]), r = hypot(g, 1.0), s = 1.0,
           c = 1.0;
    double *cs = gni_la_rotations_add(rotations, dir > 0 ? hi : lo, -dir, count - 1);
    g = d[top + dir * (count - 1)] - p + e[edge] / (g >= 0.0 ? g + r : g - r);
    p = 0.0;
    for (int64_t i = count - 2; i >= 0; i--) {
        double *di = d + top + dir * i, *ei = e + edge + dir * i;
        double f = s * *ei, b = c * *ei;
        r = gni_la_rotation(g, f, &c, &s);
        if (i < count - 2) ei[dir] = r;
        g = di[dir] - p;
        r = (*di - g) * s + 2.0 * c * b;
        p = s * r;
        di[dir] = g + p;
        g = c * r - b;
        gni_la_put(cs, count - 2 - i, c, s);
    }
    d[top] -= p;
    e[edge] = g;
}

// The same for eigenvalues alone, with the squares of e, which needs no root at each element (Pal, Walker and
// Kahan; Parlett 1980, 8.15).
static void gni_la_ql_squares(double *d, double *e, int64_t lo, int64_t count, int64_t dir) {
    const int64_t hi = lo + count - 1, top = dir > 0 ? lo : hi, edge = dir > 0 ? lo : hi - 1;
    const double root = sqrt(e[edge]), ratio = (d[top + dir] - d[top]) / (2.0 * root);
    const double shift = d[top] - root / (ratio + copysign(sqrt(ratio * ratio + 1.0), ratio));
    double c = 1.0, s = 0.0, g = d[top + dir * (count - 1)] - shift, p = g * g;
    for (int64_t i = count - 2; i >= 0; i--) {
        double *di = d + top + dir * i, *ei = e + edge + dir * i;
        const double square = *ei, r = p + square, last_c = c, last_g = g;
        if (i < count - 2) ei[dir] = s * r;
        c = p / r;
        s = square / r;
        g = c * (*di - shift) - s * g;
        di[dir] = last_g + (*di - g);
        p = c != 0.0 ? g * g / c : last_c * square;
    }
    e[edge] = s * p;
    d[top] = shift + g;
}

// Eigenvalues of the tridiagonal matrix d (n), e (n - 1) into d, unsorted. Its elements are 1 or less.
static void gni_la_tridiagonal_values(gni_la *w, double *d, double *e, int64_t n,
                                      gni_la_rotations *rotations) {
    const bool alone = rotations->z == NULL;
    int64_t steps = 0, same = 0, last = -1;
    for (int64_t i = 0; alone && i < n - 1; i++) e[i] *= e[i];
    for (int64_t lo = 0; lo < n;) {
        int64_t hi = lo;
        // Equal values can lead the squares in circles, a few roundings from 0: they weigh less the longer a block stays.
        const double weight = (double)(GNI_MAX(same, 30) - 29);
        while (hi < n - 1 && !(alone ? gni_la_negligible_square(e[hi], d[hi], d[hi + 1], weight * weight)
                                     : gni_la_negligible(e[hi], d[hi], d[hi + 1])))
            hi++;
        same = lo * n + hi == last ? same + 1 : 0;
        last = lo * n + hi;
        if (hi < n - 1) e[hi] = 0.0;
        if (hi == lo) {
            lo++;
            continue;
        }
        if (steps++ > 60 * n) {
            w->info = GNI_LA_NO_CONVERGENCE;
            break;
        }
        const int64_t dir = fabs(d[hi]) < fabs(d[lo]) ? -1 : 1;
        if (alone)
            gni_la_ql_squares(d, e, lo, hi - lo + 1, dir);
        else
            gni_la_ql_step(d, e, lo, hi - lo + 1, dir, rotations);
    }
    gni_la_rotations_flush(rotations);
}

// The order that sorts d: upwards, or downwards.
static void gni_la_order(const double *d, int64_t n, bool down, int64_t *order) {
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i;
        for (; at > 0 && (down ? d[order[at - 1]] < d[i] : d[order[at - 1]] > d[i]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

// Of the room below.
enum { GNI_DC_LEAST = 64 }; // smaller matrices are left to QL
static int64_t gni_dc_memory(int64_t n);
static void gni_dc_run(gni_la *w, double *d, double *e, double *z, int64_t ld, int64_t n);
static int64_t gni_dc_values_memory(int64_t n);
static void gni_dc_run_values(gni_la *w, double *d, const double *e, double *u, double *v,
                              int64_t ld, int64_t n);

static int64_t gni_la_eigh_memory(int64_t n, bool vectors) {
    int64_t ld = gni_la_ld(n);
    int64_t count = (4 * GNI_LA_PANEL + GNI_LA_PARTS + 1) * ld + 2 * GNI_LA_PANEL +
                    4 * gni_la_round(n + 1) + 64;
    if (!vectors) return count;
    return count + gni_la_block_memory(n, n) + gni_la_rotations_memory(n) + gni_dc_memory(n);
}

// Eigenvalues of the symmetric a (n,n) into d, unsorted, and unless z is NULL the vectors as rows of z (n,n).
// Destroys a.
static void gni_la_eigh(gni_la *w, gni_la_matrix a, double *d, double *z) {
    const int64_t n = a.n, ld = a.rs;
    double *e = gni_la_take(w, n + 1), *tau = gni_la_take(w, n + 1);
    const gni_la_matrix reflections = gni_la_part(a, 0, 1, n - 1, n - 1);
    gni_la_rotations rotations;
    gni_la_tridiagonalize(w, a, d, e, tau);
    gni_la_block b;
    if (z != NULL) gni_la_block_take(w, &b, n, n);
    if (z != NULL && n >= GNI_DC_LEAST) {
        gni_dc_run(w, d, e, z, ld, n);
        gni_la_apply_q(w, reflections, tau, gni_la_rows(z + 1, ld, n, n - 1), &b);
        return;
    }
    if (z != NULL) {
        memset(z, 0, (size_t)n * sizeof(double));
        for (int64_t i = 1; i < n; i++) z[i * ld] = 0.0;
        z[0] = 1.0;
        if (n > 1) gni_la_form_q(w, reflections, tau, gni_la_rows(z + ld + 1, ld, n - 1, n - 1), &b);
    }
    gni_la_rotations_begin(&rotations, w, z, ld, n, n);
    gni_la_tridiagonal_values(w, d, e, n, &rotations);
}

// ---- singular values

typedef struct gni_la_bidiagonal {
    gni_la_matrix a;
    double *vt, *d, *e, *tau_v, *tau_u; // vt has a's rows
    double *left,
        *right; // rows v_0, x_0, v_1, x_1, ... and y_0, u_0, y_1, u_1, ...: a - left^T right is up to date
    double *factor; // 2 GNI_LA_PANEL
    double *column; // n
} gni_la_bidiagonal;

static void gni_la_negate(double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = -x[i];
}

// A row of zeros up to `from`, then x.
static double *gni_la_padded(double *row, const double *x, int64_t from, int64_t n) {
    memset(row, 0, (size_t)from * sizeof(double));
    if (x != NULL)
        memcpy(row + from, x, (size_t)(n - from) * sizeof(double));
    else
        memset(row + from, 0, (size_t)(n - from) * sizeof(double));
    return row;
}

// One column and row. v goes to the row j of vt, u to a[j][j+1..]; i is the place in the panel.
static void gni_la_bidiagonal_step(gni_la *w, gni_la_bidiagonal *x, int64_t j, int64_t i) {
    const gni_la_isa *isa = w->isa;
    const int64_t ld = x->a.rs, n = x->a.n, from = j + 1, rest = n - from;
    double *f = x->factor, *row = x->a.p + j * ld, *v = x->vt + j * ld + j;
    double *pair_left = x->left + 2 * i * ld, *pair_right = x->right + 2 * i * ld;
    for (int64_t r = j; r < n; r++) v[r - j] = x->a.p[r * ld + j];
    for (int64_t k = 0; k < 2 * i; k++) f[k] = -x->right[k * ld + j];
    isa->rows_add(v, x->left + j, ld, f, 2 * i, n - j);
    x->d[j] = gni_la_reflector(w, v, n - j, &x->tau_v[j]);
    gni_la_padded(pair_left, v, j, n);
    gni_la_padded(pair_left + ld, NULL, n, n);
    gni_la_padded(pair_right, NULL, n, n);
    gni_la_padded(pair_right + ld, NULL, n, n);
    if (rest == 0) return;
    double *y = pair_right + from;
    gni_la_times_vector(w, y, gni_la_part(x->a, j, from, n - j, rest), v, true);
    isa->rows_dot(f, x->left + j, ld, v, 2 * i, n - j);
    gni_la_negate(f, 2 * i);
    isa->rows_add(y, x->right + from, ld, f, 2 * i, rest);
    for (int64_t k = 0; k < rest; k++) y[k] *= x->tau_v[j];
    for (int64_t k = 0; k < 2 * i + 1; k++) f[k] = -x->left[k * ld + j];
    isa->rows_add(row + from, x->right + from, ld, f, 2 * i + 1, rest);
    double *u = row + from, *z = pair_left + ld + from;
    x->e[j] = gni_la_reflector(w, u, rest, &x->tau_u[j]);
    memcpy(pair_right + ld + from, u, (size_t)rest * sizeof(double));
    gni_la_times_vector(w, z, gni_la_part(x->a, from, from, rest, rest), u, false);
    isa->rows_dot(f, x->right + from, ld, u, 2 * i + 1, rest);
    gni_la_negate(f, 2 * i + 1);
    isa->rows_add(z, x->left + from, ld, f, 2 * i + 1, rest);
    for (int64_t k = 0; k < rest; k++) z[k] *= x->tau_u[j];
}

// a (n,n) = Q B P^T with B upper bidiagonal: d (n), e (n - 1); GVL 5.4.8, a panel at a time. The vectors of Q
// are left in vt, those of P in a.
static void gni_la_bidiagonalize(gni_la *w, gni_la_matrix a, double *vt, double *d, double *e, double *tau_v,
                                 double *tau_u) {
    const int64_t n = a.n, ld = a.rs;
    gni_la_bidiagonal x;
    x.a = a;
    x.vt = vt;
    x.d = d;
    x.e = e;
    x.tau_v = tau_v;
    x.tau_u = tau_u;
    x.left = gni_la_take(w, 2 * GNI_LA_PANEL * ld);
    x.right = gni_la_take(w, 2 * GNI_LA_PANEL * ld);
    x.factor = gni_la_take(w, 2 * GNI_LA_PANEL + 8);
    for (int64_t j0 = 0; j0 < n; j0 += GNI_LA_PANEL) {
        const int64_t jb = GNI_MIN(GNI_LA_PANEL, n - j0), end = j0 + jb;
        for (int64_t i = 0; i < jb; i++)
            gni_la_bidiagonal_step(w, &x, j0 + i, i);
        if (end >= n) break;
        for (int64_t i = 0; i < 2 * jb; i++) gni_la_negate(x.right + i * ld + end, n - end);
        gni_la_gemm(w, gni_la_part(a, end, end, n - end, n - end),
                    gni_la_transposed(gni_la_rows(x.left + end, ld, 2 * jb, n - end)),
                    gni_la_rows(x.right + end, ld, 2 * jb, n - end), true);
    }
}

// A row of the sweep over [k, p): two rotations for each j, of V's rows and of U's.
static void gni_la_svd_step(double *d, double *e, int64_t k, int64_t p, gni_la_rotations *u,
                            gni_la_rotations *v) {
    double scale = GNI_MAX(GNI_MAX(fabs(d[p - 1]), fabs(d[p - 2])), fabs(e[p - 2]));
    scale = GNI_MAX(scale, GNI_MAX(fabs(d[k]), fabs(e[k])));
    double sp = d[p - 1] / scale, sm = d[p - 2] / scale, em = e[p - 2] / scale, sk = d[k] / scale,
           ek = e[k] / scale;
    double b = ((sm + sp) * (sm - sp) + em * em) / 2.0, c = (sp * em) * (sp * em), shift = 0.0, s,
           r;
    if (b != 0.0 || c != 0.0) {
        shift = sqrt(b * b + c);
        shift = c / (b + (b < 0.0 ? -shift : shift));
    }
    double f = (sk + sp) * (sk - sp) + shift, g = sk * ek;
    double *cu = gni_la_rotations_add(u, k, 1, p - 1 - k), *cv = gni_la_rotations_add(v, k, 1, p - 1 - k);
    for (int64_t j = k; j < p - 1; j++) {
        r = gni_la_rotation(f, g, &c, &s);
        if (j != k) e[j - 1] = r;
        f = c * d[j] + s * e[j];
        e[j] = c * e[j] - s * d[j];
        g = s * d[j + 1];
        d[j + 1] *= c;
        gni_la_put(cv, j - k, c, s);
        d[j] = gni_la_rotation(f, g, &c, &s);
        f = c * e[j] + s * d[j + 1];
        d[j + 1] = c * d[j + 1] - s * e[j];
        g = s * e[j + 1];
        e[j + 1] *= c;
        gni_la_put(cu, j - k, c, s);
    }
    e[p - 2] = f;
}

// d[p-1] is 0: rotates e[p-2] away, upwards to k.
static void gni_la_svd_last(double *d, double *e, int64_t k, int64_t p, gni_la_rotations *v) {
    double f = e[p - 2], c, s;
    e[p - 2] = 0.0;
    for (int64_t j = p - 2; j >= k; j--) {
        d[j] = gni_la_rotation(d[j], f, &c, &s);
        if (j != k) {
            f = -s * e[j - 1];
            e[j - 1] *= c;
        }
        gni_la_put(gni_la_rotations_add(v, j, p - 1 - j, 1), 0, c, s);
    }
}

// d[k-1] is 0: rotates e[k-1] away, downwards to p.
static void gni_la_svd_inner(double *d, double *e, int64_t k, int64_t p, gni_la_rotations *u) {
    double f = e[k - 1], c, s;
    e[k - 1] = 0.0;
    for (int64_t j = k; j < p; j++) {
        d[j] = gni_la_rotation(d[j], f, &c, &s);
        f = -s * e[j];
        e[j] *= c;
        gni_la_put(gni_la_rotations_add(u, j, k - 1 - j, 1), 0, c, s);
    }
}

// Singular values of the bidiagonal matrix d, e (n each) into d, unsorted, some of them negative; GVL 8.6.2 with
// the splitting of LINPACK's dsvdc.
static void gni_la_bidiagonal_values(gni_la *w, double *d, double *e, int64_t n, gni_la_rotations *u,
                                     gni_la_rotations *v) {
    const double eps = 2.2204460492503131e-16, tiny = 1e-290;
    int64_t steps = 0;
    for (int64_t p = n; p > 1;) {
        int64_t k = p - 2, at = p - 1;
        for (; k >= 0; k--) {
            if (fabs(e[k]) > tiny + eps * (fabs(d[k]) + fabs(d[k + 1]))) continue;
            e[k] = 0.0;
            break;
        }
        if (k == p - 2) {
            p--;
            continue;
        }
        if (steps++ > 60 * n) {
            w->info = GNI_LA_NO_CONVERGENCE;
            break;
        }
        for (; at > k; at--) { // a diagonal element that is nothing beside its neighbours
            double near_by =
                (at < p - 1 ? fabs(e[at]) : 0.0) + (at > k + 1 ? fabs(e[at - 1]) : 0.0);
            if (fabs(d[at]) > tiny + eps * near_by) continue;
            d[at] = 0.0;
            break;
        }
        if (at == k)
            gni_la_svd_step(d, e, k + 1, p, u, v);
        else if (at == p - 1)
            gni_la_svd_last(d, e, k + 1, p, v);
        else
            gni_la_svd_inner(d, e, at + 1, p, u);
    }
    gni_la_rotations_flush(u);
    gni_la_rotations_flush(v);
}

static int64_t gni_la_svd_memory(int64_t n) {
    int64_t ld = gni_la_ld(n);
    return ld * n + 4 * GNI_LA_PANEL * ld + 5 * gni_la_round(n + 1) + 2 * GNI_LA_PANEL +
           gni_la_block_memory(n, n) +
           GNI_MAX(2 * gni_la_rotations_memory(n), gni_dc_values_memory(n)) + 128;
}

// Singular values of a (n,n) into d, unsorted, and unless they are NULL the vectors as rows of ut and vt (n,n).
// Negative values: the rows of vt belong to the positive ones. Destroys a.
static void gni_la_svd_square(gni_la *w, gni_la_matrix a, double *d, double *ut, double *vt) {
    const int64_t n = a.n, ld = a.rs;
    double *left = gni_la_take(w, ld * n), *e = gni_la_take(w, n + 1);
    double *tau_v = gni_la_take(w, n + 1), *tau_u = gni_la_take(w, n + 1);
    const gni_la_matrix columns = gni_la_rows(left, ld, n, n), rows = gni_la_part(a, 0, 1, n - 1, n - 1);
    gni_la_rotations u, v;
    gni_la_block b;
    gni_la_bidiagonalize(w, a, left, d, e, tau_v, tau_u);
    e[n - 1] = e[n] = 0.0;
    gni_la_block_take(w, &b, n, n);
    if (ut != NULL && vt != NULL && n >= GNI_DC_LEAST) {
        gni_dc_run_values(w, d, e, ut, vt, ld, n);
        gni_la_apply_q(w, columns, tau_v, gni_la_rows(ut, ld, n, n), &b);
        gni_la_apply_q(w, rows, tau_u, gni_la_rows(vt + 1, ld, n, n - 1), &b);
        return;
    }
    if (ut != NULL) gni_la_form_q(w, columns, tau_v, gni_la_rows(ut, ld, n, n), &b);
    if (vt != NULL) {
        gni_la_clear(vt, ld, n, n);
        vt[0] = 1.0;
        if (n > 1) gni_la_form_q(w, rows, tau_u, gni_la_rows(vt + ld + 1, ld, n - 1, n - 1), &b);
    }
    gni_la_rotations_begin(&u, w, ut, ld, n, n);
    gni_la_rotations_begin(&v, w, vt, ld, n, n);
    gni_la_bidiagonal_values(w, d, e, n, &u, &v);
    for (int64_t i = 0; i < n; i++) {
        if (!(d[i] < 0.0)) continue;
        d[i] = -d[i];
        if (vt != NULL) gni_la_negate(vt + i * ld, n);
    }
}
