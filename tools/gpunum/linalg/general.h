// >>general
// Eigenvalues and eigenvectors of matrices that need not be symmetric, on the CPU: of complex numbers, real ones among them.
// From outside: gni_lc_do_eig, and gni_lc_do_solve.
//
// A matrix is balanced, reduced to Hessenberg form by reflections and to a triangle by QR steps with single shifts (GVL 7;
// Parlett and Reinsch 1969; Wilkinson 1965); a real one first by steps with double shifts in real numbers, up to blocks of
// two (Francis 1961).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu.h"
#include "../linalg/complex_factor.h"
#endif

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

// x = x / f for n numbers, `step` apart
static void gni_lc_divide(double *x, int64_t n, int64_t step, const double *f) {
    double over[2] = {1.0, 0.0};
    const bool plain = gni_lc_size(f) > 1e-290 && gni_lc_size(f) < 1e290;
    if (plain) gni_lc_over(over, over, f);
    for (; n > 0; n--, x += step) {
        if (plain) gni_lc_times(x, over);
        else gni_lc_over(x, x, f);
    }
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
            const double f = ldexp(0.5, power), other = ldexp(2.0, -power), all = scale[i] * f;
            if (!(down * f + along * other < 0.95 * (down + along)) || !(all > 1e-140 && all < 1e140)) continue;
            more = true;
            scale[i] = all;
            for (int64_t j = 0; j < n; j++) {
                double *x = a + j * ld + 2 * i, *y = a + i * ld + 2 * j;
                for (int k = 0; k < 2; k++) x[k] *= f;
                for (int k = 0; k < 2; k++) y[k] *= other;
            }
        }
    }
}

// a (n,n), of numbers with `parts` real ones, becomes Z^H a Z, zero below the first subdiagonal. Row k of q, unless it is
// NULL, gets the vector of reflection k from column k + 1 on. Sums are taken in one pass over a, which then changes in one.
static void gni_lc_hessenberg(gni_la *w, double *a, int64_t ld, int64_t n, int64_t parts, double *q, double *tau) {
    double *sums = gni_la_take(w, 4 * ld), *by = sums + parts * ld, *room = gni_la_take(w, ld);
    double *right = gni_la_take(w, 2 * n), *left = gni_la_take(w, 2 * n);
    for (int64_t k = 0; k + 2 < n; k++) {
        const int64_t at = (k + 1) * parts, m = n - k - 1, width = m * parts;
        double *below = a + (k + 1) * ld + at - parts, *v = (q != NULL ? q + k * ld : room) + at, *t = tau + k * parts;
        double f[4], along[2] = {0.0, 0.0};
        for (int64_t i = 0; i < m; i++) memcpy(v + i * parts, below + i * ld, (size_t)parts * sizeof(double));
        if (parts == 2)
            gni_lc_reflector(w, v, m, t, below);
        else
            below[0] = gni_la_reflector(w, v, m, t);
        gni_la_clear(below + ld, ld, m - 1, parts);
        gni_la_clear(left, n, 2, n);
        gni_la_clear(sums, ld, 2, width);
        for (int64_t i = 0; i < width; i++) left[i % parts * n + k + 1 + i / parts] = v[i];
        memcpy(by, v, (size_t)width * sizeof(double));
        if (parts == 2) {
            gni_lc_conj(by, 0, 1, m);
            gni_lc_turn(by + ld, by, width);
        }
        for (int64_t i = 0; i < n; i += 4) {
            const int64_t rows = GNI_MIN(n - i, 4);
            for (int64_t j = 0; j < parts; j++) {
                w->isa->rows_dot(right + j * n + i, a + i * ld + at, ld, by + j * ld, rows, width);
                if (i + rows > k) w->isa->rows_add(sums + j * ld, a + i * ld + at, ld, left + j * n + i, rows, width);
            }
        }
        if (parts == 2) {
            for (int64_t i = 0; i < width; i += 2) {
                sums[i] += sums[ld + i + 1];
                sums[i + 1] -= sums[ld + i];
            }
            gni_lc_turn(sums + ld, sums, width);
        }
        for (int64_t j = 0; j < parts; j++) along[j] = t[0] * w->isa->dot(sums, by + j * ld, width);
        for (int64_t i = 0; i < n; i++) {
            const double x = left[i], y = left[n + i];
            f[0] = x;
            f[1] = y;
            f[parts] = right[i] - x * along[0] + y * along[1];
            if (parts == 2) f[3] = right[n + i] - x * along[1] - y * along[0];
            for (int64_t j = 0; j < 2 * parts; j++) f[j] *= -t[0];
            w->isa->rows_add(a + i * ld + at, sums, ld, f, 2 * parts, width);
        }
    }
}

// Of a real Hessenberg matrix a QR step with both shifts, the values of the rows and columns m - 1 and m, in rows and columns
// low to m. Rows of z change along.
static void gni_lc_double_step(gni_la *w, double *a, int64_t ld, int64_t n, int64_t low, int64_t m, bool odd, double *z,
                               double *room) {
    const int64_t top = z != NULL ? 0 : low, end = z != NULL ? n : m + 1;
    const double *h = a + low * (ld + 1), *e = a + (m - 1) * (ld + 1), f = odd ? 1.5 * fabs(e[ld]) : 0.0;
    double d0 = e[0] + f, d1 = e[ld + 1] + f, size = fabs(h[0] - d1) + fabs(h[ld]), below = h[ld] / size, v[3], tau;
    v[0] = (h[0] - d0) * ((h[0] - d1) / size) - e[1] * (e[ld] / size) + h[1] * below;
    v[1] = (h[0] - d0 + h[ld + 1] - d1) * below;
    v[2] = h[2 * ld + 1] * below;
    for (int64_t k = low; k < m; k++) {
        const int64_t count = GNI_MIN(m - k + 1, 3);
        double *row = a + k * ld + k;
        for (int64_t i = 0; i < count && k > low; i++) v[i] = row[i * ld - 1];
        const double beta = gni_la_reflector(w, v, count, &tau);
        if (k > low) {
            gni_la_clear(row - 1, ld, count, 1);
            row[-1] = beta;
        }
        if (count < 3) v[2] = 0.0;
        for (int side = 0; side < 1 + (z != NULL); side++) {
            double *x = side > 0 ? z + k * ld : row;
            const int64_t width = side > 0 ? n : end - k;
            memcpy(room, x, (size_t)width * sizeof(double));
            w->isa->rows_add(room, x + ld, ld, v + 1, count - 1, width);
            for (int64_t i = 0; i < count; i++) w->isa->axpy(x + i * ld, -tau * v[i], room, width);
        }
        for (int64_t i = top; i <= GNI_MIN(k + 3, m); i++) {
            double *x = a + i * ld + k, s = tau * (x[0] + v[1] * x[1] + v[2] * x[2]);
            x[0] -= s;
            x[1] -= s * v[1];
            x[2] -= s * v[2];
        }
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

// The Hessenberg matrix a becomes a triangle by QR steps with a shift, its diagonal the eigenvalues; one of real numbers a
// triangle but for blocks of two on the diagonal. With z the whole of it, and z changes along.
static void gni_lc_triangle(gni_la *w, double *a, int64_t ld, int64_t n, int64_t parts, double *z, double *room) {
    int64_t left = 30 * GNI_MAX(n, 10), tries = 0;
    double most = 0.0;
    for (int64_t i = 0; i < n; i++) most = GNI_MAX(most, gni_la_norm(w, a + i * ld, parts * n));
    for (int64_t m = n - 1, low; m > 0;) {
        for (low = m; low > 0; low--) { // beside roundings of rounding errors, as of low ranks, steps may not end
            double *sub = a + low * ld + parts * (low - 1), size = 0.0, beside = tries > 9 ? most : 0.0;
            for (int64_t i = 0; i < parts; i++) {
                size += fabs(sub[i]);
                beside += fabs(sub[i - ld]) + fabs(sub[i + parts]);
            }
            if (size > 2.3e-16 * beside + 1e-290) continue;
            gni_la_clear(sub, 0, 1, parts);
            break;
        }
        if (low > m - parts % 2 - 1) {
            m = low - 1;
            tries = 0;
            continue;
        }
        if (left-- == 0) {
            w->info = GNI_LA_NO_CONVERGENCE;
            return;
        }
        tries++;
        if (parts == 1) {
            gni_lc_double_step(w, a, ld, n, low, m, tries % 10 == 0, z, room);
            continue;
        }
        double f[2], g[2], phase[2], shift[2];
        gni_lc_shift(a, ld, m, shift);
        if (tries % 10 == 0) shift[0] += gni_lc_size(a + m * ld + 2 * (m - 1)); // out of a circle
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

// Rows of z become the eigenvectors of the matrix whose triangle and Z^T are here, of length 1 and with a real number where
// they are largest. v (n,2n) and behind a another n rows are written to.
static void gni_lc_vectors(gni_la *w, double *a, double *z, int64_t ld, int64_t n, const double *scale, double *v) {
    enum { PART = 64 }; // vectors at a time
    double *x = gni_la_take(w, 2 * n), *ix = gni_la_take(w, 2 * n), r[2], gap[2], phase[2];
    for (int64_t k = 0; k < n; k++) {
        const double *value = a + k * ld + 2 * k, least = GNI_MAX(2.3e-16 * gni_lc_size(value), 1e-290);
        double *y = v + k * ld;
        gni_la_clear(y, 0, 1, 2 * n);
        y[2 * k] = x[2 * k] = ix[2 * k + 1] = 1.0;
        x[2 * k + 1] = ix[2 * k] = 0.0; // conjugated, and i times that
        for (int64_t i = k - 1; i >= 0; i--) {
            const double *row = a + i * ld;
            const int64_t from = 2 * i + 2, count = 2 * (k - i);
            r[0] = w->isa->dot(row + from, x + from, count);
            r[1] = w->isa->dot(row + from, ix + from, count);
            for (int j = 0; j < 2; j++) gap[j] = value[j] - row[2 * i + j];
            if (gni_lc_size(gap) < least) {
                gap[0] = least;
                gap[1] = 0.0;
            }
            gni_lc_over(y + 2 * i, r, gap);
            const double size = gni_lc_size(y + 2 * i);
            for (int64_t j = 2 * i; j < 2 * k + 2 && size > 1e8; j++) y[j] /= size;
            const int64_t stale = size > 1e8 ? 2 * k + 2 : from;
            memcpy(x + 2 * i, y + 2 * i, (size_t)(stale - 2 * i) * sizeof(double));
            gni_lc_conj(x + 2 * i, 0, 1, stale / 2 - i);
            gni_lc_turn(ix + 2 * i, x + 2 * i, stale - 2 * i);
        }
    }
    for (int64_t i = 0; i < n; i++) gni_lc_pair(a + 2 * i * ld, ld, z + i * ld, 0, 2 * n);
    for (int64_t i = 0; i < n; i += PART) {
        const int64_t rows = GNI_MIN(n - i, (int64_t)PART), count = 2 * (i + rows);
        gni_la_gemm(w, gni_la_rows(z + i * ld, ld, rows, 2 * n), gni_la_rows(v + i * ld, ld, rows, count),
                    gni_la_rows(a, ld, count, 2 * n), false);
    }
    for (int64_t k = 0; k < n; k++, z += ld) {
        int64_t most = 0;
        for (int64_t i = 0; i < 2 * n; i++) z[i] *= scale[i / 2];
        for (int64_t i = 0; i < n; i++)
            if (hypot(z[2 * i], z[2 * i + 1]) > hypot(z[2 * most], z[2 * most + 1])) most = i;
        gni_lc_phase(z + 2 * most, phase);
        phase[1] = -phase[1];
        const double length = gni_la_norm(w, z, 2 * n);
        for (int64_t i = 0; i < n; i++) {
            gni_lc_times(z + 2 * i, phase);
            for (int j = 0; j < 2; j++) z[2 * i + j] /= length;
        }
        z[2 * most + 1] = 0.0;
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

// Real numbers at the beginning of each row become complex ones, or the other way round.
static void gni_lc_widen(double *a, int64_t ld, int64_t n, bool back) {
    for (int64_t i = 0; i < n; i++, a += ld) {
        for (int64_t j = 0; j < n && back; j++) a[j] = a[2 * j];
        for (int64_t j = n - 1; j >= 0 && !back; j--) {
            a[2 * j] = a[j];
            a[2 * j + 1] = 0.0;
        }
    }
}

static void gni_lc_do_eig(gni_la *w, const gni_la_job *d, int64_t index) {
    const int64_t n = d->n, ld = gni_la_ld(2 * n);
    const bool vectors = d->out[1].data != NULL;
    bool real = true;
    int power = 0;
    gni_la_block b;
    if (!gni_la_reserve(w, (vectors ? 4 : 1) * n * ld + 5 * ld + 13 * n + gni_la_block_memory(n, 2 * n) + 128)) return;
    double *a = gni_la_take(w, (vectors ? 2 : 1) * n * ld), *scale = gni_la_take(w, n), *values = gni_la_take(w, 2 * n);
    double *z = vectors ? gni_la_take(w, n * ld) : NULL, *v = vectors ? gni_la_take(w, n * ld) : NULL;
    double *tau = gni_la_take(w, 2 * n);
    gni_la_block_take(w, &b, n, 2 * n);
    gni_lc_load(&d->in[0], index, a, ld, 2, n, n);
    if (!gni_la_scale(a, ld, n, 2 * n, &power)) {
        w->info = GNI_LA_NOT_FINITE;
        return;
    }
    for (int64_t i = 0; i < n && real; i++)
        for (int64_t j = 0; j < n; j++) real = real && a[i * ld + 2 * j + 1] == 0.0;
    gni_lc_balance(a, ld, n, scale);
    if (real) gni_lc_widen(a, ld, n, true);
    gni_lc_hessenberg(w, a, ld, n, real ? 1 : 2, v, tau);
    if (vectors && real) {
        gni_la_unit(z, ld, n, n);
        if (n > 2) gni_la_apply_q(w, gni_la_rows(v + 1, ld, n - 2, n - 1), tau, gni_la_rows(z + 1, ld, n, n - 1), &b);
    } else if (vectors) {
        gni_lc_unit(z, ld, n, n);
        if (n > 2) gni_lc_apply_q(w, v + 2, ld, n - 2, tau, z + 2, ld, n, n - 1, &b);
    }
    if (real) {
        gni_lc_triangle(w, a, ld, n, 1, z, tau);
        gni_lc_widen(a, ld, n, false);
        if (vectors) gni_lc_widen(z, ld, n, false);
    }
    gni_lc_triangle(w, a, ld, n, 2, z, NULL);
    if (w->info != 0) return;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < 2; j++) values[2 * i + j] = ldexp(a[i * ld + 2 * i + j], power);
    if (vectors) gni_lc_vectors(w, a, z, ld, n, scale, v);
    if (real) gni_lc_conjugate(values, n, z, ld, scale);
    gni_lc_store(&d->out[0], false, index, values, 2, n, 1, NULL);
    gni_lc_store(&d->out[1], true, index, z, ld, n, n, NULL);
}

// b = l^-1 b with -l below a's diagonal. Below each row of b (2n,k) is that times i.
static void gni_lc_solve_lower(gni_la *w, double *a, int64_t ld, int64_t n, double *b, int64_t ldb, int64_t k, bool unit) {
    if (n > GNI_LA_LEAF) {
        const int64_t h = gni_la_round(n / 2);
        double *rest = b + 2 * h * ldb;
        gni_lc_solve_lower(w, a, ld, h, b, ldb, k, unit);
        gni_la_gemm(w, gni_la_rows(rest, 2 * ldb, n - h, 2 * k), gni_la_rows(a + h * ld, ld, n - h, 2 * h),
                    gni_la_rows(b, ldb, 2 * h, 2 * k), true);
        gni_lc_solve_lower(w, a + h * (ld + 2), ld, n - h, rest, ldb, k, unit);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double *row = a + i * ld, *y = b + 2 * i * ldb;
        w->isa->rows_add(y, b, ldb, row, 2 * i, 2 * k);
        if (!unit) gni_lc_divide(y, k, 2, row + 2 * i);
        gni_lc_turn(y + ldb, y, 2 * k);
    }
}

// b = l^-1 b with one column, complex or not: rows are read once, one by one.
static void gni_lc_do_column(gni_la *w, const gni_la_job *d, int64_t index) {
    const int64_t n = d->n, parts = d->is_complex ? 2 : 1, size = (int64_t)gn_dtype_size(d->out->t);
    if (!gni_la_reserve(w, 8 * n + 64)) return;
    // Products of a row with re and im are the parts.
    double *row = gni_la_take(w, 8 * n), *y = row + 2 * n, *re = y + 2 * n, *im = re + 2 * n;
    gni_la_operand l = d->in[0], b = d->in[1], to = *d->out;
    for (int64_t p = 0; p < parts; p++, b.data += size) gni_la_load(&b, index, y + p, parts, 1, n, 1);
    const gni_convert_fn load = gni_cpu_isa_of(w->g->isa)->wide->load[l.t];
    const bool back = l.cs == -parts, dense = back || l.cs == parts; // back: from the last number to the first
    int64_t begin = back ? parts * n : 0;
    l.data += gni_la_offset(&l, index) * size, l.rank = 0;
    for (int64_t i = 0; i < n; i++, y += parts, l.data += (l.rs - (l.cs == parts ? 0 : parts)) * size) {
        const double *x = dense && load == NULL ? (const double *)(const void *)l.data : row, *own = back ? x : x + parts * i;
        if (dense && load != NULL) load(row, l.data, parts * (i + 1));
        for (int64_t p = 0; p < parts && !dense; p++, l.data += size) gni_la_load(&l, 0, row + p, 0, parts, 1, i + 1);
        if (back) x += parts;
        y[0] -= w->isa->dot(x, re + begin, parts * i);
        if (parts == 2) y[1] -= w->isa->dot(x, im + begin, 2 * i);
        const bool none = !d->unit && own[0] == 0.0 && own[parts - 1] == 0.0;
        if (none && (d->upper || w->info == 0)) w->info = d->upper ? n - i : i + 1;
        if (parts == 1 && !d->unit) y[0] /= own[0];
        else if (!d->unit) gni_lc_over(y, y, own);
        const int64_t at = back ? begin -= parts : parts * i;
        re[at] = y[0];
        if (parts == 2) im[at] = y[1], re[at + 1] = -y[1], im[at + 1] = y[0];
    }
    if (w->info != 0) return;
    for (int64_t p = 0; p < parts; p++, to.data += size) gni_la_store(&to, index, y - parts * n + p, parts, 1, n, 1, NULL);
}

// As gni_la_lu_columns, with -l below the diagonal. u: room for half the columns, rows twice.
static void gni_lc_lu(gni_la *w, double *a, int64_t ld, int64_t n, int64_t *pivot, double *u, int64_t j0, int64_t j1) {
    if (j1 - j0 > 8) {
        const int64_t done = gni_la_round((j1 - j0) / 2), h = j0 + done, wide = j1 - h, ldu = gni_la_ld(2 * wide);
        double *top = a + j0 * ld + 2 * h;
        gni_lc_lu(w, a, ld, n, pivot, u, j0, h);
        for (int64_t i = 0; i < done; i++) memcpy(u + 2 * i * ldu, top + i * ld, (size_t)(2 * wide) * sizeof *u);
        gni_lc_solve_lower(w, a + j0 * ld + 2 * j0, ld, done, u, ldu, wide, true);
        for (int64_t i = 0; i < done; i++) memcpy(top + i * ld, u + 2 * i * ldu, (size_t)(2 * wide) * sizeof *u);
        double *rest = a + h * ld;
        gni_la_gemm(w, gni_la_rows(rest + 2 * h, ld, n - h, 2 * wide), gni_la_rows(rest + 2 * j0, ld, n - h, 2 * done),
                    gni_la_rows(u, ldu, 2 * done, 2 * wide), true);
        gni_lc_lu(w, a, ld, n, pivot, u, h, j1);
        return;
    }
    for (int64_t j = j0; j < j1; j++) {
        int64_t at = j;
        for (int64_t i = j + 1; i < n; i++)
            if (gni_lc_size(a + i * ld + 2 * j) > gni_lc_size(a + at * ld + 2 * j)) at = i;
        pivot[j] = at;
        double *top = a + j * ld;
        gni_la_swap_rows(top, a + at * ld, 2 * n);
        if (gni_lc_size(top + 2 * j) == 0.0) { // so are all below
            if (w->info == 0) w->info = j + 1;
            continue;
        }
        gni_lc_divide(top + ld + 2 * j, n - j - 1, ld, top + 2 * j);
        for (double *row = top + ld; row < a + n * ld; row += ld) {
            double *f = row + 2 * j;
            f[0] = -f[0], f[1] = -f[1];
            for (int64_t k = 2 * j + 2; k < 2 * j1; k += 2) {
                row[k] += f[0] * top[k] - f[1] * top[k + 1];
                row[k + 1] += f[0] * top[k + 1] + f[1] * top[k];
            }
        }
    }
}

// a^-1 b, a^-1, or of the determinant: itself, that over its magnitude, and the magnitude's logarithm.
static void gni_lc_do_solve(gni_la *w, const gni_la_job *d, int64_t index) {
    const bool triangle = d->kind == GNI_LA_TRIANGULAR;
    if (triangle && d->k == 1) {
        gni_lc_do_column(w, d, index);
        return;
    }
    const int64_t n = d->n, k = d->kind == GNI_LA_DET ? 0 : d->k, half = n / 2 + 8;
    const int64_t ld = gni_la_ld(2 * n), ldb = gni_la_ld(2 * k);
    if (!gni_la_reserve(w, n * (ld + 2 * ldb + 1) + 2 * half * gni_la_ld(2 * half) + 64)) return;
    double *a = gni_la_take(w, n * ld), *b = gni_la_take(w, 2 * n * ldb);
    int64_t *pivot = (int64_t *)(void *)gni_la_take(w, n);
    gni_la_operand from = d->in[0];
    if (!triangle) {
        gni_lc_load(&from, index, a, ld, 2, n, n);
        gni_lc_lu(w, a, ld, n, pivot, gni_la_take(w, 2 * half * gni_la_ld(2 * half)), 0, n);
    }
    for (int64_t i = 0; i < n && triangle; i++, from.data += from.rs * (int64_t)gn_dtype_size(from.t)) {
        gni_lc_load(&from, index, a + i * ld, ld, 2, 1, i + 1);
        for (int64_t j = 0; j < 2 * i; j++) a[i * ld + j] = -a[i * ld + j];
    }
    if (triangle) gni_la_has_diagonal(w, d, a, ld, 2);
    if (d->kind == GNI_LA_DET) {
        double y[5] = {w->info > 0 ? 0.0 : 1.0, 0.0, 0.0, 0.0, 0.0};
        int64_t exponent = 0; // apart, so that no product on the way overflows
        for (int64_t i = 0; i < n && w->info <= 0; i++) {
            int power = 0;
            gni_lc_times(y, a + i * (ld + 2));
            frexp(gni_lc_size(y), &power);
            for (int p = 0; p < 2; p++) y[p] = ldexp(pivot[i] != i ? -y[p] : y[p], -power);
            exponent += power;
        }
        const double size = hypot(y[0], y[1]), by = size == 0.0 ? 1.0 : size;
        const int most = (int)GNI_MAX(-100000, GNI_MIN(exponent, 100000));
        y[2] = y[0] / by, y[3] = y[1] / by, y[4] = log(size) + (double)exponent * GNI_LN2;
        y[0] = ldexp(y[0], most), y[1] = ldexp(y[1], most);
        gni_la_store(&d->out[0], index, y, 1, 1, 5, 1, NULL);
        if (w->info > 0) w->info = 0;
        return;
    }
    if (w->info != 0) return;
    if (d->kind == GNI_LA_INV) gni_lc_unit(b, 2 * ldb, n, n);
    else gni_lc_load(&d->in[1], index, b, 2 * ldb, 2, n, k);
    for (int64_t i = 0; i < n && !triangle; i++) gni_la_swap_rows(b + 2 * i * ldb, b + 2 * pivot[i] * ldb, 2 * k);
    gni_lc_solve_lower(w, a, ld, n, b, ldb, k, !triangle || d->unit);
    for (int64_t i = 0; i < n && !triangle; i++) { // the upper triangle, which is a lower one from the end on
        const int64_t to = n - 1 - i;
        double *row = a + i * ld;
        pivot[i] = to;
        for (int64_t j = 2 * i + 2; j < 2 * n; j++) row[j] = -row[j];
        for (int64_t j = 0; j < n - 1 - j; j++) gni_la_swap_rows(row + 2 * j, row + 2 * (n - 1 - j), 2);
        if (i <= to) continue;
        gni_la_swap_rows(row, a + to * ld, 2 * n);
        gni_la_swap_rows(b + 2 * i * ldb, b + 2 * to * ldb, 2 * k);
    }
    if (!triangle) gni_lc_solve_lower(w, a, ld, n, b, ldb, k, false);
    if (w->info == 0) gni_lc_store(&d->out[0], false, index, b, 2 * ldb, n, k, triangle ? NULL : pivot);
}
