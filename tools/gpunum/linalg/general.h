// >>general
// Eigenvalues and eigenvectors of matrices that need not be symmetric, on the CPU: of complex numbers, real ones among them.
// From outside: gni_lc_do_eig, and gni_lc_do_triangular, which solves with complex triangles.
//
// A matrix is balanced, reduced to Hessenberg form by reflections and to a triangle by QR steps with single shifts (GVL 7;
// Parlett and Reinsch 1969; Wilkinson 1965).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../linalg/complex_factor.h"
#endif

// y += f x for n complex numbers.
static void gni_lc_add(double *y, const double *f, const double *x, int64_t n) {
    const double re = f[0], im = f[1];
    for (int64_t i = 0; i < 2 * n; i += 2) {
        y[i] += re * x[i] - im * x[i + 1];
        y[i + 1] += re * x[i + 1] + im * x[i];
    }
}

// y = x / f
static void gni_lc_over(double *y, const double *x, const double *f) {
    double turn[2];
    const double size = gni_lc_phase(f, turn);
    turn[1] = -turn[1];
    y[0] = x[0] / size;
    y[1] = x[1] / size;
    gni_lc_times(y, turn);
}

static double gni_lc_size(const double *x) { return fabs(x[0]) + fabs(x[1]); }

// Rows of a (m,n) become (I - tau u v^T) a. y has room for a row.
static void gni_lc_reflect(double *a, int64_t ld, int64_t m, int64_t n, double tau, const double *u, const double *v,
                           double *y) {
    gni_la_clear(y, 0, 1, 2 * n);
    for (int64_t i = 0; i < m; i++) gni_lc_add(y, v + 2 * i, a + i * ld, n);
    for (int64_t i = 0; i < 2 * n; i++) y[i] *= -tau;
    for (int64_t i = 0; i < m; i++) gni_lc_add(a + i * ld, u + 2 * i, y, n);
}

// x and y, numbers that are `step` apart, become c x + s y and c y - conj(s) x; of columns s is conjugated.
static void gni_lc_rotate(double *x, double *y, int64_t step, int64_t n, double c, double re, double im) {
    for (int64_t i = 0; i < n; i++, x += step, y += step) {
        const double x0 = x[0], x1 = x[1], y0 = y[0], y1 = y[1];
        x[0] = c * x0 + re * y0 - im * y1;
        x[1] = c * x1 + re * y1 + im * y0;
        y[0] = c * y0 - re * x0 - im * x1;
        y[1] = c * y1 - re * x1 + im * x0;
    }
}

// Row i and column i times inverse powers of two that make them about as long (Parlett and Reinsch 1969); scale (n) is their
// product.
static void gni_lc_balance(double *a, int64_t ld, int64_t n, double *scale) {
    bool more = true;
    for (int64_t i = 0; i < n; i++) scale[i] = 1.0;
    for (int round = 0; more && round < 100; round++) {
        more = false;
        for (int64_t i = 0; i < n; i++) {
            double down = 0.0, along = 0.0;
            int power = 0;
            for (int64_t j = 0; j < n; j++) {
                down += j != i ? gni_lc_size(a + j * ld + 2 * i) : 0.0;
                along += j != i ? gni_lc_size(a + i * ld + 2 * j) : 0.0;
            }
            if (down == 0.0 || along == 0.0) continue;
            frexp(sqrt(along) / sqrt(down), &power);
            const double f = ldexp(0.5, power), other = ldexp(2.0, -power);
            if (!(down * f + along * other < 0.95 * (down + along))) continue;
            more = true;
            scale[i] *= f;
            for (int64_t j = 0; j < n; j++) {
                double *x = a + j * ld + 2 * i, *y = a + i * ld + 2 * j;
                for (int k = 0; k < 2; k++) x[k] *= f;
                for (int k = 0; k < 2; k++) y[k] *= other;
            }
        }
    }
}

// a becomes Z^H a Z, zero below the first subdiagonal; rows of z, unless it is NULL, become those of Z^T.
static void gni_lc_hessenberg(gni_la *w, double *a, int64_t ld, int64_t n, double *z) {
    double *v = gni_la_take(w, 2 * n), *conj = gni_la_take(w, 2 * n), *room = gni_la_take(w, 2 * n), tau[2], s[2];
    for (int64_t k = 0; k + 2 < n; k++) {
        const int64_t m = n - k - 1;
        double *below = a + (k + 1) * ld + 2 * k;
        for (int64_t i = 0; i < m; i++) memcpy(v + 2 * i, below + i * ld, 2 * sizeof(double));
        gni_lc_reflector(w, v, m, tau, below);
        for (int64_t i = 1; i < m; i++) gni_la_clear(below + i * ld, 0, 1, 2);
        memcpy(conj, v, (size_t)(2 * m) * sizeof(double));
        gni_lc_conj(conj, 0, 1, m);
        gni_lc_reflect(below + 2, ld, m, m, tau[0], v, conj, room);
        for (int64_t i = 0; i < n; i++) {
            double *row = a + i * ld + 2 * (k + 1);
            s[0] = s[1] = 0.0;
            for (int64_t j = 0; j < m; j++) gni_lc_add(s, v + 2 * j, row + 2 * j, 1);
            for (int j = 0; j < 2; j++) s[j] *= -tau[0];
            gni_lc_add(row, s, conj, m);
        }
        if (z != NULL) gni_lc_reflect(z + (k + 1) * ld, ld, m, n, tau[0], conj, v, room);
    }
}

// The eigenvalue of the rows and columns m - 1 and m that is next to the last element (Wilkinson 1968).
static void gni_lc_shift(const double *a, int64_t ld, int64_t m, double *shift) {
    const double *b = a + (m - 1) * ld + 2 * m, *c = b + ld - 2, *d = c + 2;
    double t[2], q[2], bc[2], size, root;
    for (int i = 0; i < 2; i++) {
        shift[i] = d[i];
        bc[i] = b[i];
        q[i] = t[i] = 0.5 * (b[i - 2] - d[i]);
    }
    gni_lc_times(bc, c);
    gni_lc_times(q, t);
    for (int i = 0; i < 2; i++) q[i] += bc[i];
    size = hypot(q[0], q[1]);
    root = sqrt(0.5 * (size + fabs(q[0]))); // of q, of which the larger part has all digits
    const double other = root > 0.0 ? 0.5 * q[1] / root : 0.0;
    q[1] = q[0] < 0.0 ? root : other;
    q[0] = q[0] < 0.0 ? other : root;
    const double sign = q[0] * t[0] + q[1] * t[1] < 0.0 ? -1.0 : 1.0;
    for (int i = 0; i < 2; i++) t[i] += sign * q[i];
    if (gni_lc_size(t) == 0.0) return;
    gni_lc_over(q, bc, t);
    for (int i = 0; i < 2; i++) shift[i] -= q[i];
}

// The Hessenberg matrix a becomes a triangle by QR steps with a shift, its diagonal the eigenvalues; with z the whole of it,
// and z changes along.
static void gni_lc_triangle(gni_la *w, double *a, int64_t ld, int64_t n, double *z) {
    int64_t left = 30 * GNI_MAX(n, 10), tries = 0;
    for (int64_t m = n - 1, low; m > 0;) {
        for (low = m; low > 0; low--) {
            double *sub = a + low * ld + 2 * (low - 1);
            if (gni_lc_size(sub) > 2.3e-16 * (gni_lc_size(sub - ld) + gni_lc_size(sub + 2)) + 1e-290) continue;
            sub[0] = sub[1] = 0.0;
            break;
        }
        if (low == m) {
            m--;
            tries = 0;
            continue;
        }
        if (left-- == 0) {
            w->info = GNI_LA_NO_CONVERGENCE;
            return;
        }
        double f[2], g[2], phase[2], shift[2];
        gni_lc_shift(a, ld, m, shift);
        if (++tries % 10 == 0) shift[0] += gni_lc_size(a + m * ld + 2 * (m - 1)); // out of a circle
        for (int64_t k = low; k < m; k++) {
            const int64_t from = k > low ? k - 1 : k, top = z != NULL ? 0 : low, end = z != NULL ? n : m + 1;
            double *row = a + k * ld;
            for (int i = 0; i < 2; i++) {
                f[i] = row[2 * from + i] - (k > low ? 0.0 : shift[i]);
                g[i] = row[ld + 2 * from + i];
            }
            const double x = gni_lc_phase(f, phase), y = hypot(g[0], g[1]), size = hypot(x, y);
            const double by = size > 0.0 ? 1.0 / size : 1.0, c = size > 0.0 ? x * by : 1.0;
            g[1] = -g[1];
            gni_lc_times(g, phase);
            for (int i = 0; i < 2; i++) g[i] *= by;
            gni_lc_rotate(row + 2 * from, row + ld + 2 * from, 2, end - from, c, g[0], g[1]);
            if (k > low) row[ld + 2 * from] = row[ld + 2 * from + 1] = 0.0;
            double *column = a + top * ld + 2 * k;
            gni_lc_rotate(column, column + 2, ld, GNI_MIN(k + 2, m) + 1 - top, c, g[0], -g[1]);
            if (z != NULL) gni_lc_rotate(z + k * ld, z + (k + 1) * ld, 2, n, c, g[0], -g[1]);
        }
    }
}

// Rows of v become the eigenvectors of the matrix whose triangle and Z^T are here, of length 1 and with a real number where
// they are largest.
static void gni_lc_vectors(gni_la *w, const double *a, const double *z, int64_t ld, int64_t n, const double *scale,
                           double *v) {
    double *x = gni_la_take(w, 2 * n), r[2], gap[2], phase[2];
    for (int64_t k = 0; k < n; k++, v += ld) {
        const double *value = a + k * ld + 2 * k, least = GNI_MAX(2.3e-16 * gni_lc_size(value), 1e-290);
        gni_lc_unit(x, 0, 1, n);
        gni_la_clear(v, 0, 1, 2 * n);
        x[0] = k > 0 ? 0.0 : 1.0;
        x[2 * k] = 1.0;
        for (int64_t i = k - 1; i >= 0; i--) {
            const double *row = a + i * ld;
            r[0] = r[1] = 0.0;
            for (int64_t j = i + 1; j <= k; j++) gni_lc_add(r, x + 2 * j, row + 2 * j, 1);
            for (int j = 0; j < 2; j++) gap[j] = value[j] - row[2 * i + j];
            if (gni_lc_size(gap) < least) {
                gap[0] = least;
                gap[1] = 0.0;
            }
            gni_lc_over(x + 2 * i, r, gap);
            const double size = gni_lc_size(x + 2 * i);
            for (int64_t j = 2 * i; j <= 2 * k + 1 && size > 1e8; j++) x[j] /= size;
        }
        for (int64_t j = 0; j <= k; j++) gni_lc_add(v, x + 2 * j, z + j * ld, n);
        int64_t most = 0;
        for (int64_t i = 0; i < n; i++) {
            for (int j = 0; j < 2; j++) v[2 * i + j] *= scale[i];
            if (hypot(v[2 * i], v[2 * i + 1]) > hypot(v[2 * most], v[2 * most + 1])) most = i;
        }
        gni_lc_phase(v + 2 * most, phase);
        phase[1] = -phase[1];
        const double length = gni_la_norm(w, v, 2 * n);
        for (int64_t i = 0; i < n; i++) {
            gni_lc_times(v + 2 * i, phase);
            for (int j = 0; j < 2; j++) v[2 * i + j] /= length;
        }
        v[2 * most + 1] = 0.0;
    }
}

// Values of a real matrix that are real or conjugated but for roundings become so. taken (n) is written to.
static void gni_lc_conjugate(double *x, int64_t n, double *v, int64_t ld, double *taken) {
    double slack = 0.0;
    for (int64_t i = 0; i < n; i++) {
        slack = GNI_MAX(slack, 1e-15 * (double)n * gni_lc_size(x + 2 * i));
        taken[i] = 0.0;
    }
    for (int64_t i = 0; i < n; i++) {
        const double *a = x + 2 * i;
        double least = 2.0 * a[1];
        int64_t at = i;
        for (int64_t j = 0; j < n && a[1] > 0.0; j++) {
            const double *b = x + 2 * j, off = fabs(a[0] - b[0]) + fabs(a[1] + b[1]);
            if (b[1] >= 0.0 || taken[j] != 0.0 || off > least) continue;
            least = off;
            at = j;
        }
        if (at == i || least > slack) continue;
        taken[i] = taken[at] = 1.0;
        x[2 * at] = a[0];
        x[2 * at + 1] = -a[1];
        if (v == NULL) continue;
        memcpy(v + at * ld, v + i * ld, (size_t)(2 * n) * sizeof(double));
        gni_lc_conj(v + at * ld, 0, 1, n);
    }
    for (int64_t i = 0; i < n; i++)
        if (taken[i] == 0.0 && fabs(x[2 * i + 1]) <= slack) x[2 * i + 1] = 0.0;
}

static void gni_lc_do_eig(gni_la *w, const gni_la_job *d, int64_t index) {
    const int64_t n = d->n, ld = gni_la_ld(2 * n);
    const bool vectors = d->out[1].data != NULL;
    bool real = true;
    int power = 0;
    if (!gni_la_reserve(w, (vectors ? 3 : 1) * n * ld + 11 * n + 128)) return;
    double *a = gni_la_take(w, n * ld), *scale = gni_la_take(w, n), *values = gni_la_take(w, 2 * n);
    double *z = vectors ? gni_la_take(w, n * ld) : NULL, *v = vectors ? gni_la_take(w, n * ld) : NULL;
    gni_lc_load(&d->in[0], index, a, ld, 2, n, n);
    if (!gni_la_scale(a, ld, n, 2 * n, &power)) {
        w->info = GNI_LA_NOT_FINITE;
        return;
    }
    for (int64_t i = 0; i < n && real; i++)
        for (int64_t j = 0; j < n; j++) real = real && a[i * ld + 2 * j + 1] == 0.0;
    if (vectors) gni_lc_unit(z, ld, n, n);
    gni_lc_balance(a, ld, n, scale);
    gni_lc_hessenberg(w, a, ld, n, z);
    gni_lc_triangle(w, a, ld, n, z);
    if (w->info != 0) return;
    if (vectors) gni_lc_vectors(w, a, z, ld, n, scale, v);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < 2; j++) values[2 * i + j] = ldexp(a[i * ld + 2 * i + j], power);
    if (real) gni_lc_conjugate(values, n, v, ld, scale);
    gni_lc_store(&d->out[0], false, index, values, 2, n, 1, NULL);
    gni_lc_store(&d->out[1], true, index, v, ld, n, n, NULL);
}

// b = l^-1 b
static void gni_lc_do_triangular(gni_la *w, const gni_la_job *d, int64_t index) {
    const int64_t n = d->n, k = d->k, ld = gni_la_ld(2 * n), ldb = gni_la_ld(2 * k);
    if (!gni_la_reserve(w, n * (ld + ldb) + 16)) return;
    double *a = gni_la_take(w, n * ld), *b = gni_la_take(w, n * ldb);
    gni_lc_load(&d->in[0], index, a, ld, 2, n, n);
    gni_lc_load(&d->in[1], index, b, ldb, 2, n, k);
    if (!gni_la_has_diagonal(w, d, a, ld, 2)) return;
    for (int64_t i = 0; i < n; i++) {
        double *row = a + i * ld, *y = b + i * ldb;
        for (int64_t j = 0; j < 2 * i; j++) row[j] = -row[j];
        for (int64_t j = 0; j < i; j++) gni_lc_add(y, row + 2 * j, b + j * ldb, k);
        for (int64_t j = 0; j < k && !d->unit; j++) gni_lc_over(y + 2 * j, y + 2 * j, row + 2 * i);
    }
    gni_lc_store(&d->out[0], false, index, b, ldb, n, k, NULL);
}
