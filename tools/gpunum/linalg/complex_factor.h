// >>complex_factor
// Cholesky, QR, eigenvalues and singular values of complex matrices on the CPU. From outside: gni_lc_do (lc: linear
// algebra of complex numbers) and, for the room below, what it does with one number, row or reflection.
//
// A row of n complex numbers is one of 2n real ones, the parts in turns. On it a reflection I - tau v v^H with a real tau is
// the product of two real ones, with v and i v, which are orthogonal there: the blocks of reflections of room `decompose`
// take those as two. Such reflections leave complex numbers on diagonals; the phases are taken out of what is left, which is
// real: a bidiagonal or tridiagonal matrix.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../linalg/divide.h"
#include "../linalg/factor_cpu.h"
#endif

enum { GNI_LC_PANEL = GNI_LA_PANEL / 2 };

// y = i x for n real numbers.
static void gni_lc_turn(double *y, const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 2) {
        y[i] = -x[i + 1];
        y[i + 1] = x[i];
    }
}

static void gni_lc_conj(double *a, int64_t ld, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) a[i * ld + 2 * j + 1] = -a[i * ld + 2 * j + 1];
}

// x = x y
static void gni_lc_times(double *x, const double *y) {
    const double re = x[0] * y[0] - x[1] * y[1];
    x[1] = x[0] * y[1] + x[1] * y[0];
    x[0] = re;
}

// z = |z| phase; returns the magnitude. The phase of 0 is 1.
static double gni_lc_phase(const double *z, double *phase) {
    const double up = fabs(z[0]) + fabs(z[1]) < 1e-290 ? 1e200 : 1.0, x = z[0] * up, y = z[1] * up, size = hypot(x, y);
    phase[0] = size == 0.0 ? 1.0 : x / size;
    phase[1] = size == 0.0 ? 0.0 : y / size;
    return size / up;
}

// gni_la_reflector of n complex numbers, with a complex beta and a real tau, which is stored for both real reflections.
static void gni_lc_reflector(const gni_la *w, double *x, int64_t n, double *tau, double *beta) {
    double phase[2], alpha = gni_lc_phase(x, phase), rest = gni_la_norm(w, x + 2, 2 * n - 2), size = hypot(alpha, rest);
    beta[0] = x[0];
    beta[1] = x[1];
    tau[0] = tau[1] = 0.0;
    if (rest != 0.0 && size < 1e-290) { // numbers near the smallest ones have too few digits for tau
        for (int64_t i = 0; i < 2 * n; i++) x[i] *= 1e200;
        gni_lc_reflector(w, x, n, tau, beta);
        beta[0] *= 1e-200;
        beta[1] *= 1e-200;
        return;
    }
    x[0] = 1.0;
    x[1] = 0.0;
    if (rest == 0.0) return;
    tau[0] = tau[1] = (alpha + size) / size;
    beta[0] = -phase[0] * size;
    beta[1] = -phase[1] * size;
    phase[0] /= alpha + size;
    phase[1] /= -(alpha + size);
    for (int64_t i = 2; i < 2 * n; i += 2) gni_lc_times(x + i, phase);
}

// ---- blocks of reflections

// As gni_la_block_load.
static void gni_lc_block_load(gni_la *w, gni_la_block *b, const double *a, int64_t ld, int64_t n, int64_t j0, int64_t jb,
                              const double *tau) {
    n = 2 * (n - j0);
    a += j0 * ld + 2 * j0;
    for (int64_t j = 0; j < 2 * jb; j += 2) {
        double *v = b->v + j * b->ldv;
        memset(v, 0, (size_t)(j + 2) * sizeof(double));
        v[j] = 1.0;
        memcpy(v + j + 2, a + j / 2 * ld + j + 2, (size_t)(n - j - 2) * sizeof(double));
        gni_lc_turn(v + b->ldv, v, n);
    }
    gni_la_block_factor(w, b, 2 * jb, n, tau + 2 * j0);
}

// As gni_la_qr: rows of at (n,2m) are columns of a (m,n).
static void gni_lc_qr(gni_la *w, double *at, int64_t ld, int64_t m, int64_t n, double *tau, gni_la_block *b) {
    const int64_t k = GNI_MIN(m, n);
    for (int64_t j0 = 0; j0 < k; j0 += GNI_LC_PANEL) {
        const int64_t jb = GNI_MIN((int64_t)GNI_LC_PANEL, k - j0), end = j0 + jb;
        for (int64_t j = j0; j < end; j++) {
            const int64_t left = 2 * (m - j);
            double *v = at + j * ld + 2 * j, *iv = b->v, beta[2];
            gni_lc_reflector(w, v, m - j, tau + 2 * j, beta);
            gni_lc_turn(iv, v, left);
            for (int64_t r = j + 1; r < end && tau[2 * j] != 0.0; r++) {
                double *c = at + r * ld + 2 * j, im = w->isa->dot(iv, c, left);
                w->isa->axpy(c, -tau[2 * j] * w->isa->dot(v, c, left), v, left);
                w->isa->axpy(c, -tau[2 * j] * im, iv, left);
            }
            v[0] = beta[0];
            v[1] = beta[1];
        }
        if (end >= n) break;
        gni_lc_block_load(w, b, at, ld, m, j0, jb, tau);
        gni_la_block_apply(w, b, 2 * jb, gni_la_rows(at + end * ld + 2 * j0, ld, n - end, 2 * (m - j0)), false);
    }
}

// Rows of c (m,2n) are columns x that become Q x, for the product Q of `count` reflections of n numbers in rows of a.
static void gni_lc_apply_q(gni_la *w, double *a, int64_t lda, int64_t count, const double *tau, double *c, int64_t ldc,
                           int64_t m, int64_t n, gni_la_block *b) {
    for (int64_t j0 = count > 0 ? (count - 1) / GNI_LC_PANEL * GNI_LC_PANEL : -1; j0 >= 0; j0 -= GNI_LC_PANEL) {
        const int64_t jb = GNI_MIN((int64_t)GNI_LC_PANEL, count - j0);
        gni_lc_block_load(w, b, a, lda, n, j0, jb, tau);
        gni_la_block_apply(w, b, 2 * jb, gni_la_rows(c + 2 * j0, ldc, m, 2 * (n - j0)), true);
    }
}

// The first m rows of the unit matrix.
static void gni_lc_unit(double *a, int64_t ld, int64_t m, int64_t n) {
    gni_la_clear(a, ld, m, 2 * n);
    for (int64_t i = 0; i < m; i++) a[i * ld + 2 * i] = 1.0;
}

// ---- products with a vector

typedef struct gni_lc_product {
    const gni_la_isa *isa;
    const double *a, *x, *ix;
    double *y;
    int64_t lda, m, n;
} gni_lc_product;

static void gni_lc_rows_dot_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_lc_product *p = (const gni_lc_product *)arg;
    GNI_UNUSED(worker);
    for (int64_t i = 4 * begin; i < GNI_MIN(4 * end, p->m); i += 4) {
        const int64_t rows = GNI_MIN(p->m - i, 4);
        double re[4], im[4];
        p->isa->rows_dot(re, p->a + i * p->lda, p->lda, p->x, rows, p->n);
        p->isa->rows_dot(im, p->a + i * p->lda, p->lda, p->ix, rows, p->n);
        for (int64_t k = 0; k < rows; k++) {
            p->y[2 * (i + k)] = re[k];
            p->y[2 * (i + k) + 1] = -im[k];
        }
    }
}

// The sum of a's rows with the real parts of x goes to y, that with the imaginary ones to a row behind it.
static void gni_lc_rows_add_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_lc_product *p = (const gni_lc_product *)arg;
    const int64_t from = 64 * begin, width = GNI_MIN(64 * end, p->n) - from;
    GNI_UNUSED(worker);
    for (int64_t i = 0; i < p->m; i += 4) {
        const int64_t rows = GNI_MIN(p->m - i, 4);
        const double *a = p->a + i * p->lda + from;
        double f[2][4];
        for (int64_t k = 0; k < 2 * rows; k++) f[k % 2][k / 2] = p->x[2 * i + k];
        for (int k = 0; k < 2; k++) p->isa->rows_add(p->y + k * p->n + from, a, p->lda, f[k], rows, width);
    }
}

// y = conj(a) x with ix = i x, or where there is `room` for 2n numbers y = a^T x, of m rows of n / 2 complex numbers.
static void gni_lc_times_vector(gni_la *w, double *y, const double *a, int64_t ld, int64_t m, int64_t n, const double *x,
                                const double *ix, double *room) {
    gni_lc_product p;
    const bool transposed = room != NULL;
    p.isa = w->isa;
    p.a = a;
    p.x = x;
    p.ix = ix;
    p.y = transposed ? room : y;
    p.lda = ld;
    p.m = m;
    p.n = n;
    if (!transposed) {
        gni_parallel(w->pool, (m + 3) / 4, GNI_MAX(8192 / GNI_MAX(n, 1), 1), gni_lc_rows_dot_task, &p);
        return;
    }
    memset(room, 0, (size_t)(2 * n) * sizeof(double));
    gni_parallel(w->pool, (n + 63) / 64, GNI_MAX(512 / GNI_MAX(m, 1), 1), gni_lc_rows_add_task, &p);
    gni_lc_turn(y, room + n, n);
    for (int64_t i = 0; i < n; i++) y[i] += room[i];
}

// y (n) -= the sum of `count` rows of `a` with the factors in a column.
static void gni_lc_less(gni_la *w, double *y, const double *a, const double *factors, int64_t ld, int64_t count, int64_t n) {
    double f[2 * GNI_LA_PANEL];
    for (int64_t k = 0; k < count; k++) f[k] = -factors[k * ld];
    w->isa->rows_add(y, a, ld, f, count, n);
}

// The same with the products of rows of b and x (m).
static void gni_lc_less_products(gni_la *w, double *y, const double *a, const double *b, const double *x, int64_t ld,
                                 int64_t count, int64_t n, int64_t m) {
    double f[2 * GNI_LA_PANEL];
    w->isa->rows_dot(f, b, ld, x, count, m);
    gni_la_negate(f, count);
    w->isa->rows_add(y, a, ld, f, count, n);
}

// A vector behind `from` zeros, and i times it in the next row.
static void gni_lc_pair(double *row, int64_t ld, const double *x, int64_t from, int64_t n) {
    gni_la_padded(row, x, from, n);
    gni_lc_turn(row + ld, row, n);
}

// ---- eigenvalues

// As gni_la_tridiagonalize, of all of a (n,2n), whose rows are columns of the matrix: Q D T D^H Q^H with the phases that
// come out on the diagonal of D, and a real T.
static void gni_lc_tridiagonalize(gni_la *w, gni_la_matrix a, double *d, double *e, double *tau, double *phase) {
    enum { MOST = 2 * GNI_LC_PANEL };
    const int64_t n = a.m, ld = a.rs;
    double *vs = gni_la_take(w, 2 * MOST * ld), *minus = gni_la_take(w, 2 * MOST * n), beta[2];
    phase[0] = 1.0;
    phase[1] = 0.0;
    for (int64_t j0 = 0; j0 < n; j0 += GNI_LC_PANEL) {
        const int64_t jb = GNI_MIN((int64_t)GNI_LC_PANEL, n - j0), end = j0 + jb, rest = n - end;
        double *ws = vs + 2 * jb * ld;
        for (int64_t j = j0; j < end; j++) {
            const int64_t done = 2 * (j - j0), from = 2 * (j + 1), left = 2 * n - from;
            double *row = a.p + j * ld, *v = row + from, *pv = vs + done * ld, *p = ws + done * ld;
            gni_lc_less(w, row + 2 * j, vs + 2 * j, ws + 2 * j, ld, done, left + 2);
            gni_lc_less(w, row + 2 * j, ws + 2 * j, vs + 2 * j, ld, done, left + 2);
            d[j] = row[2 * j];
            if (left == 0) break;
            gni_lc_reflector(w, v, left / 2, tau + 2 * j, beta);
            e[j] = gni_lc_phase(beta, phase + from);
            gni_lc_times(phase + from, phase + from - 2);
            gni_lc_pair(pv, ld, v, from, 2 * n);
            gni_la_padded(p, NULL, 2 * n, 2 * n);
            gni_lc_times_vector(w, p + from, a.p + (j + 1) * ld + from, ld, left / 2, left, v, pv + ld + from, NULL);
            gni_lc_less_products(w, p + from, vs + from, ws + from, v, ld, done, left, left);
            gni_lc_less_products(w, p + from, ws + from, vs + from, v, ld, done, left, left);
            for (int64_t k = from; k < 2 * n; k++) p[k] *= tau[2 * j];
            w->isa->axpy(p + from, -0.5 * tau[2 * j] * w->isa->dot(p + from, v, left), v, left);
            gni_lc_turn(p + ld, p, 2 * n);
        }
        if (rest == 0) break;
        for (int64_t i = 0; i < 4 * jb; i++)
            for (int64_t k = 0; k < rest; k++)
                minus[i * rest + k] = -vs[(i < 2 * jb ? i + 2 * jb : i - 2 * jb) * ld + 2 * (end + k)];
        gni_la_gemm(w, gni_la_part(a, end, 2 * end, rest, 2 * rest),
                    gni_la_transposed(gni_la_rows(minus, rest, 4 * jb, rest)),
                    gni_la_rows(vs + 2 * end, ld, 4 * jb, 2 * rest), true);
    }
}

// Real rows x (n,n) times the phases of their columns.
static void gni_lc_turned(double *y, int64_t ld, const double *x, int64_t ldx, const double *phase, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < 2 * n; j++) y[i * ld + j] = x[i * ldx + j / 2] * phase[j];
}

// Eigenvalues of the Hermitian a, of which all is there, into d, unsorted, and unless z is NULL the vectors as its rows.
static void gni_lc_eigh(gni_la *w, gni_la_matrix a, double *d, double *z) {
    const int64_t n = a.m, ld = a.rs, ldr = gni_la_ld(n);
    double *e = gni_la_take(w, n + 1), *tau = gni_la_take(w, 2 * n), *phase = gni_la_take(w, 2 * n), *real = NULL;
    gni_la_rotations rotations;
    gni_la_block b;
    gni_lc_tridiagonalize(w, a, d, e, tau, phase);
    if (z != NULL) {
        real = gni_la_take(w, n * ldr);
        gni_la_block_take(w, &b, n, 2 * n);
        gni_la_unit(real, ldr, n, n);
    }
    if (z != NULL && n >= GNI_DC_LEAST) {
        gni_dc_run(w, d, e, real, ldr, n);
    } else {
        gni_la_rotations_begin(&rotations, w, real, ldr, n, n);
        gni_la_tridiagonal_values(w, d, e, n, &rotations);
    }
    if (z == NULL) return;
    gni_lc_turned(z, ld, real, ldr, phase, n);
    gni_lc_apply_q(w, a.p + 2, ld, n - 1, tau, z + 2, ld, n, n - 1, &b);
}

// ---- singular values

// As gni_la_bidiagonalize, of the matrix whose conjugate is c (n,2n): Q D B E^H P^H with the phases D and E, and a real B.
// The vectors of Q are left in rows of vs, those of P in c.
static void gni_lc_bidiagonalize(gni_la *w, gni_la_matrix c, double *vs, double *d, double *e, double *tau_v, double *tau_u,
                                 double *phase_left, double *phase_right) {
    enum { MOST = 4 * GNI_LC_PANEL };
    const int64_t n = c.m, ld = c.rs;
    double *left = gni_la_take(w, MOST * ld), *right = gni_la_take(w, MOST * ld), *room = gni_la_take(w, 4 * n);
    double beta[2];
    phase_right[0] = 1.0;
    phase_right[1] = 0.0;
    for (int64_t j0 = 0; j0 < n; j0 += GNI_LC_PANEL) {
        const int64_t jb = GNI_MIN((int64_t)GNI_LC_PANEL, n - j0), end = j0 + jb;
        for (int64_t j = j0; j < end; j++) {
            const int64_t done = 4 * (j - j0), at = 2 * j, from = at + 2, rest = 2 * n - from;
            double *row = c.p + j * ld, *v = vs + j * ld + at, *u = row + from;
            double *l = left + done * ld, *r = right + done * ld, *y = r + from, *z = l + 2 * ld + from;
            for (int64_t i = 0; i <= rest; i += 2) {
                v[i] = c.p[(j + i / 2) * ld + at];
                v[i + 1] = -c.p[(j + i / 2) * ld + at + 1];
            }
            gni_lc_less(w, v, left + at, right + at, ld, done, rest + 2);
            gni_lc_reflector(w, v, n - j, tau_v + at, beta);
            d[j] = gni_lc_phase(beta, phase_left + at);
            gni_lc_times(phase_left + at, phase_right + at);
            gni_lc_pair(l, ld, v, at, 2 * n);
            gni_la_clear(l + 2 * ld, ld, 2, 2 * n);
            gni_la_clear(r, ld, 4, 2 * n);
            if (rest == 0) break;
            gni_lc_times_vector(w, y, row + from, ld, n - j, rest, v, NULL, room);
            gni_lc_less_products(w, y, right + from, left + at, v, ld, done, rest, rest + 2);
            for (int64_t k = 0; k < rest; k++) y[k] *= tau_v[at];
            gni_lc_turn(y + ld, y, rest);
            gni_lc_less(w, u, right + from, left + at, ld, done + 2, rest);
            gni_lc_reflector(w, u, rest / 2, tau_u + at, beta);
            e[j] = gni_lc_phase(beta, phase_right + from);
            gni_lc_times(phase_right + from, phase_left + at);
            gni_lc_pair(r + 2 * ld, ld, u, from, 2 * n);
            gni_lc_times_vector(w, z, u + ld, ld, rest / 2, rest, u, r + 3 * ld + from, NULL);
            gni_lc_less_products(w, z, left + from, right + from, u, ld, done + 2, rest, rest);
            for (int64_t k = 0; k < rest; k++) z[k] *= tau_u[at];
            gni_lc_turn(z + ld, z, rest);
        }
        if (end >= n) break;
        gni_la_matrix factors = gni_la_transposed(gni_la_rows(left + 2 * end, ld, 4 * jb, n - end));
        factors.rs = 2;
        for (int64_t i = 0; i < 4 * jb; i++) gni_la_negate(right + i * ld + 2 * end, 2 * (n - end));
        gni_la_gemm(w, gni_la_part(c, end, 2 * end, n - end, 2 * (n - end)), factors,
                    gni_la_rows(right + 2 * end, ld, 4 * jb, 2 * (n - end)), true);
    }
}

// Singular values of the matrix whose conjugate is c (n,2n) into d, unsorted, and unless they are NULL the vectors u and v
// as rows of ut and vt.
static void gni_lc_svd_square(gni_la *w, gni_la_matrix c, double *d, double *ut, double *vt) {
    const int64_t n = c.m, ld = c.rs, ldr = gni_la_ld(n);
    double *vs = gni_la_take(w, n * ld), *e = gni_la_take(w, n + 1), *tau = gni_la_take(w, 4 * n),
           *phase = gni_la_take(w, 4 * n);
    double *real_u = ut != NULL ? gni_la_take(w, n * ldr) : NULL, *real_v = ut != NULL ? gni_la_take(w, n * ldr) : NULL;
    gni_la_rotations u, v;
    gni_la_block b;
    gni_lc_bidiagonalize(w, c, vs, d, e, tau, tau + 2 * n, phase, phase + 2 * n);
    e[n - 1] = e[n] = 0.0;
    if (ut != NULL && n >= GNI_DC_LEAST) {
        gni_dc_run_values(w, d, e, real_u, real_v, ldr, n);
    } else {
        if (ut != NULL) {
            gni_la_unit(real_u, ldr, n, n);
            gni_la_unit(real_v, ldr, n, n);
        }
        gni_la_rotations_begin(&u, w, real_u, ldr, n, n);
        gni_la_rotations_begin(&v, w, real_v, ldr, n, n);
        gni_la_bidiagonal_values(w, d, e, n, &u, &v);
        for (int64_t i = 0; i < n; i++) {
            if (!(d[i] < 0.0)) continue;
            d[i] = -d[i];
            if (ut != NULL) gni_la_negate(real_v + i * ldr, n);
        }
    }
    if (ut == NULL) return;
    gni_la_block_take(w, &b, n, 2 * n);
    gni_lc_turned(ut, ld, real_u, ldr, phase, n);
    gni_lc_turned(vt, ld, real_v, ldr, phase + 2 * n, n);
    gni_lc_apply_q(w, vs, ld, n, tau, ut, ld, n, n, &b);
    gni_lc_apply_q(w, c.p + 2, ld, n - 1, tau + 2 * n, vt + 2, ld, n, n - 1, &b);
}

// ---- one matrix

// As gni_la_load: element (i,j) to to[i * rs + j * cs], its imaginary part behind it.
static void gni_lc_load(const gni_la_operand *o, int64_t index, double *to, int64_t rs, int64_t cs, int64_t m, int64_t n) {
    gni_la_operand im = *o;
    if (o->cs == 2 && cs == 2) {
        im.cs = 1;
        gni_la_load(&im, index, to, rs, 1, m, 2 * n);
        return;
    }
    im.data += gn_dtype_size(o->t);
    gni_la_load(o, index, to, rs, cs, m, n);
    gni_la_load(&im, index, to + 1, rs, cs, m, n);
}

// m rows of `from` are rows of the result, or its columns.
static void gni_lc_store(const gni_la_operand *o, bool columns, int64_t index, const double *from, int64_t ld, int64_t m,
                         int64_t n, const int64_t *order) {
    if (o->data == NULL) return;
    gni_la_operand part = *o;
    part.rs = columns ? o->cs : o->rs;
    part.cs = columns ? o->rs : o->cs;
    gni_la_store(&part, index, from, ld, 2, m, n, order);
    part.data += gn_dtype_size(o->t);
    gni_la_store(&part, index, from + 1, ld, 2, m, n, order);
}

// The factor of the real matrix with [re, -im; im, re] in the place of each number is that of the complex one. Of every two
// rows the first is computed, a strip of columns at a time.
static void gni_lc_cholesky(gni_la *w, const gni_la_job *d, int64_t index) {
    const int64_t n = d->n, ld = gni_la_ld(2 * n);
    if (!gni_la_reserve(w, 2 * n * ld + n * n + 64)) return;
    double *a = gni_la_take(w, 2 * n * ld);
    w->aside = gni_la_take(w, n * n);
    gni_lc_load(&d->in[0], index, a, 2 * ld, 2, n, n);
    gni_lc_conj(a, 2 * ld, n, n);
    for (int64_t j = 0; j < 2 * n; j += GNI_LA_LEAF) {
        const int64_t width = GNI_MIN((int64_t)GNI_LA_LEAF, 2 * n - j), rows = n - j / 2;
        double *row = a + j * ld, *block = row + j;
        if (j > 0)
            gni_la_subtract(w, gni_la_rows(block, 2 * ld, rows, width), gni_la_rows(row, 2 * ld, rows, j),
                            gni_la_transposed(gni_la_rows(row, ld, width, j)));
        for (int64_t i = 0; i < width; i += 2) {
            block[i * ld + i + 1] = 0.0; // the diagonal is real
            gni_lc_turn(block + (i + 1) * ld, block + i * ld, i + 2);
        }
        const int64_t bad = w->isa->cholesky(block, ld, width);
        if (bad > 0) {
            w->info = (j + bad + 1) / 2;
            return;
        }
        w->isa->solve_right(block, ld, width, block + width * ld, 2 * ld, rows - width / 2);
        for (int64_t i = width; i < 2 * rows; i += 2) gni_lc_turn(block + (i + 1) * ld, block + i * ld, width);
    }
    gni_lc_conj(a, 2 * ld, n, n);
    for (int64_t i = 0; i < n; i++) memset(a + 2 * i * ld + 2 * i + 1, 0, (size_t)(2 * (n - i) - 1) * sizeof(double));
    gni_lc_store(&d->out[0], false, index, a, 2 * ld, n, n, NULL);
}

static void gni_lc_do_qr(gni_la *w, const gni_la_job *d, int64_t index) {
    const int64_t m = d->m, n = d->n, k = GNI_MIN(m, n), ld = gni_la_ld(2 * m);
    gni_la_block b;
    if (!gni_la_reserve(w, ld * (n + k) + 2 * k + gni_la_block_memory(n, 2 * m) + 64)) return;
    double *at = gni_la_take(w, n * ld), *q = gni_la_take(w, k * ld), *tau = gni_la_take(w, 2 * k), phase[2];
    gni_la_block_take(w, &b, n, 2 * m);
    gni_lc_load(&d->in[0], index, at, 2, ld, m, n);
    gni_lc_qr(w, at, ld, m, n, tau, &b);
    gni_lc_unit(q, ld, k, m);
    gni_lc_apply_q(w, at, ld, k, tau, q, ld, k, m, &b);
    for (int64_t j = 0; j < k; j++) {
        double *r = at + j * ld + 2 * j, size = gni_lc_phase(r, phase);
        memset(r + 2, 0, (size_t)(2 * (m - j) - 2) * sizeof(double));
        for (int64_t i = 0; i < m; i++) gni_lc_times(q + j * ld + 2 * i, phase);
        phase[1] = -phase[1];
        for (int64_t i = j + 1; i < n; i++) gni_lc_times(at + i * ld + 2 * j, phase);
        r[0] = size;
        r[1] = 0.0;
    }
    gni_lc_store(&d->out[0], true, index, q, ld, k, m, NULL);
    gni_lc_store(&d->out[1], true, index, at, ld, n, k, NULL);
}

static void gni_lc_do_eigh(gni_la *w, const gni_la_job *d, int64_t index) {
    const int64_t n = d->n, ld = gni_la_ld(2 * n);
    const bool vectors = d->out[1].data != NULL;
    int power = 0;
    int64_t need = (vectors ? 2 : 1) * n * ld + 2 * GNI_LA_PANEL * (ld + n) + 8 * n + 256;
    if (vectors) need += n * gni_la_ld(n) + gni_la_block_memory(n, 2 * n) + gni_la_rotations_memory(n) + gni_dc_memory(n);
    if (!gni_la_reserve(w, need)) return;
    double *a = gni_la_take(w, n * ld), *z = vectors ? gni_la_take(w, n * ld) : NULL, *values = gni_la_take(w, n);
    int64_t *order = (int64_t *)(void *)gni_la_take(w, n);
    gni_lc_load(&d->in[0], index, a, 2, ld, n, n);
    for (int64_t i = 0; i < n; i++) { // the lower triangle counts
        a[i * ld + 2 * i + 1] = 0.0;
        for (int64_t j = 0; j < i; j++) {
            a[i * ld + 2 * j] = a[j * ld + 2 * i];
            a[i * ld + 2 * j + 1] = -a[j * ld + 2 * i + 1];
        }
    }
    if (!gni_la_scale(a, ld, n, 2 * n, &power)) {
        w->info = GNI_LA_NOT_FINITE;
        return;
    }
    if (n > 0) gni_lc_eigh(w, gni_la_rows(a, ld, n, 2 * n), values, z);
    if (w->info != 0) return;
    gni_la_order(values, n, false, order);
    gni_la_store_scaled(&d->out[0], index, values, n, power, order);
    gni_lc_store(&d->out[1], true, index, z, ld, n, n, order);
}

// A tall matrix is the Q of its QR times a square one; of a wide one that of a^H is taken.
static void gni_lc_do_svd(gni_la *w, const gni_la_job *d, int64_t index) {
    const bool wide = d->m < d->n, vectors = d->out[1].data != NULL || d->out[2].data != NULL;
    const int64_t m = wide ? d->n : d->m, n = wide ? d->m : d->n, k = d->k, ld = gni_la_ld(2 * n), ldm = gni_la_ld(2 * m);
    int power = 0;
    int64_t need = n * ldm + (2 * n + 4 * GNI_LA_PANEL) * ld + 20 * n + gni_la_block_memory(k, 2 * m) + 512;
    if (vectors)
        need += 2 * n * (ld + gni_la_ld(n)) + k * ldm + gni_la_block_memory(n, 2 * n) +
                GNI_MAX(2 * gni_la_rotations_memory(n), gni_dc_values_memory(n));
    if (!gni_la_reserve(w, need)) return;
    double *at = gni_la_take(w, n * ldm), *c = gni_la_take(w, n * ld), *values = gni_la_take(w, n),
           *tau = gni_la_take(w, 2 * n);
    double *ut = vectors ? gni_la_take(w, n * ld) : NULL, *vt = vectors ? gni_la_take(w, n * ld) : NULL, *u = ut;
    int64_t *order = (int64_t *)(void *)gni_la_take(w, n), ldu = ld;
    gni_la_block b;
    gni_lc_load(&d->in[0], index, at, wide ? ldm : 2, wide ? 2 : ldm, d->m, d->n);
    if (wide) gni_lc_conj(at, ldm, n, m);
    if (!gni_la_scale(at, ldm, n, 2 * m, &power)) {
        w->info = GNI_LA_NOT_FINITE;
        return;
    }
    gni_la_block_take(w, &b, k, 2 * m);
    if (m > n) gni_lc_qr(w, at, ldm, m, n, tau, &b);
    gni_la_clear(c, ld, n, 2 * n);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < (m > n ? j + 1 : n); i++)
            memcpy(c + i * ld + 2 * j, at + j * ldm + 2 * i, 2 * sizeof(double));
    gni_lc_conj(c, ld, n, n);
    if (n > 0) gni_lc_svd_square(w, gni_la_rows(c, ld, n, 2 * n), values, ut, vt);
    if (w->info != 0) return;
    gni_la_order(values, n, true, order);
    gni_la_store_scaled(&d->out[0], index, values, n, power, order);
    if (!vectors) return;
    if (m > n) {
        ldu = ldm;
        u = gni_la_take(w, k * ldm);
        gni_lc_unit(u, ldm, k, m);
        for (int64_t i = 0; i < n; i++) memcpy(u + i * ldm, ut + i * ld, (size_t)(2 * n) * sizeof(double));
        gni_lc_apply_q(w, at, ldm, n, tau, u, ldm, k, m, &b);
    }
    gni_la_operand tall = d->out[wide ? 2 : 1];
    const gni_la_operand *square = &d->out[wide ? 1 : 2];
    if (wide)
        gni_lc_conj(u, ldu, k, m);
    else
        gni_lc_conj(vt, ld, n, n);
    gni_lc_store(square, wide, index, vt, ld, n, n, order);
    gni_lc_store(&tall, !wide, index, u, ldu, n, m, order);
    if (k == n || tall.data == NULL) return;
    tall.data += n * (wide ? tall.rs : tall.cs) * (int64_t)gn_dtype_size(tall.t);
    gni_lc_store(&tall, !wide, index, u + n * ldu, ldu, k - n, m, NULL);
}

// Of the room below.
static void gni_lc_do_eig(gni_la *w, const gni_la_job *d, int64_t index);
static void gni_lc_do_solve(gni_la *w, const gni_la_job *d, int64_t index);

static void gni_lc_do(gni_la *w, const gni_la_job *d, int64_t index) {
    switch (d->kind) {
    case GNI_LA_CHOLESKY: gni_lc_cholesky(w, d, index); break;
    case GNI_LA_QR: gni_lc_do_qr(w, d, index); break;
    case GNI_LA_EIGH: gni_lc_do_eigh(w, d, index); break;
    case GNI_LA_EIG: gni_lc_do_eig(w, d, index); break;
    case GNI_LA_SVD: gni_lc_do_svd(w, d, index); break;
    default: gni_lc_do_solve(w, d, index);
    }
}
