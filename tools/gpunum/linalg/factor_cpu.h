// >>factor_cpu
// Decompositions of a batch on the CPU: one matrix in, its results out; threads, errors, operands and results.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/evaluate.h"
#include "../linalg/decompose.h"
#endif

typedef enum gni_la_kind {
    GNI_LA_SOLVE,
    GNI_LA_TRIANGULAR, // of the lower triangle
    GNI_LA_INV,
    GNI_LA_DET,
    GNI_LA_LOG_DET, // a number within 2^-GNI_DET_RANGE and its inverse, and the power of 2 that is missing
    GNI_LA_CHOLESKY,
    GNI_LA_QR,
    GNI_LA_EIGH,
    GNI_LA_EIG,
    GNI_LA_SVD
} gni_la_kind;

// A matrix of each item of the batch. `dim` and `step` are of the batch's dimensions, steps in elements.
typedef struct gni_la_operand {
    char *data; // NULL: not there
    gn_dtype t;
    int64_t rs, cs;
    int rank;
    int64_t dim[GN_MAX_RANK], step[GN_MAX_RANK];
} gni_la_operand;

typedef struct gni_la_job {
    gn_context *g;
    gni_la_kind kind;
    bool is_complex; // left to room complex_factor
    bool unit, upper; // of triangles: with a diagonal of 1; read backwards, so that an upper one is lower
    const char *fn;
    int64_t batch, m, n, k; // matrices a (m,n); k columns of b or of u
    gni_la_operand in[2], out[3];
    int64_t *info; // of each matrix
    gni_la *workers;
} gni_la_job;

static int64_t gni_la_offset(const gni_la_operand *o, int64_t index) {
    int64_t at = 0;
    for (int i = o->rank - 1; i >= 0; i--) {
        at += index % o->dim[i] * o->step[i];
        index /= o->dim[i];
    }
    return at;
}

// Copies a matrix in, element (i,j) to to[i * rs + j * cs].
static void gni_la_load(const gni_la_operand *o, int64_t index, double *to, int64_t rs, int64_t cs,
                        int64_t m, int64_t n) {
    int64_t at = gni_la_offset(o, index);
    for (int64_t i = 0; i < m; i++, at += o->rs, to += rs) {
        const double *x = (const double *)(void *)o->data + at;
        const float *y = (const float *)(void *)o->data + at;
        if (o->t == GN_F64 && o->cs == 1 && cs == 1) memcpy(to, x, (size_t)n * sizeof *x);
        else if (o->t == GN_F64) for (int64_t j = 0; j < n; j++) to[j * cs] = x[j * o->cs];
        else for (int64_t j = 0; j < n; j++) to[j * cs] = (double)y[j * o->cs];
    }
}

static void gni_la_put_element(const gni_la_operand *o, int64_t at, double x) {
    if (o->t == GN_F64)
        ((double *)(void *)o->data)[at] = x;
    else
        ((float *)(void *)o->data)[at] = (float)x;
}

// Copies a matrix out. Row i of it is row order[i] of `from` unless `order` is NULL.
static void gni_la_store(const gni_la_operand *o, int64_t index, const double *from, int64_t rs,
                         int64_t cs, int64_t m, int64_t n, const int64_t *order) {
    if (o->data == NULL) return;
    int64_t at = gni_la_offset(o, index);
    for (int64_t i = 0; i < m; i++) {
        const double *row = from + (order != NULL ? order[i] : i) * rs;
        for (int64_t j = 0; j < n; j++)
            gni_la_put_element(o, at + i * o->rs + j * o->cs, row[j * cs]);
    }
}

// The same out into the columns of the result: column i is row order[i] of `from`.
static void gni_la_store_columns(const gni_la_operand *o, int64_t index, const double *from,
                                 int64_t ld, int64_t m, int64_t n, const int64_t *order) {
    gni_la_operand transposed = *o;
    transposed.rs = o->cs;
    transposed.cs = o->rs;
    gni_la_store(&transposed, index, from, ld, 1, n, m, order);
}

// Divides by a power of two that makes the largest element about 1, and returns that power: squares must
// not overflow. False if an element is NaN or infinite.
static bool gni_la_scale(double *a, int64_t ld, int64_t m, int64_t n, int *power) {
    double most = 0.0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            if (!(fabs(a[i * ld + j]) <= 1.7976931348623157e308)) return false;
            most = GNI_MAX(most, fabs(a[i * ld + j]));
        }
    *power = 0;
    if (most == 0.0) return true;
    frexp(most, power);
    // In two steps: the inverse of the smallest numbers is no number.
    const double factor = ldexp(1.0, -*power / 2), other = ldexp(1.0, -*power - -*power / 2);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) a[i * ld + j] = a[i * ld + j] * factor * other;
    return true;
}

// ---- one matrix

// Whether no number on the triangle's diagonal, `step` from column to column, is 0; w->info tells of the first one.
static bool gni_la_has_diagonal(gni_la *w, const gni_la_job *d, const double *a, int64_t ld, int64_t step) {
    for (int64_t i = d->n - 1; i >= 0 && !d->unit; i--) {
        const double *x = a + (d->upper ? d->n - 1 - i : i) * (ld + step);
        if (x[0] == 0.0 && x[step - 1] == 0.0) w->info = i + 1;
    }
    return w->info == 0;
}

static bool gni_la_is_det(const gni_la_job *d) { return d->kind == GNI_LA_DET || d->kind == GNI_LA_LOG_DET; }

// det times 2^exponent as what `kind` asks for.
static void gni_la_put_det(const gni_la_job *d, int64_t index, double det, int64_t exponent) {
    const bool apart = d->kind == GNI_LA_LOG_DET;
    const int64_t within = GNI_MAX(-GNI_DET_RANGE, GNI_MIN(exponent, GNI_DET_RANGE));
    const double y[2] = {ldexp(det, (int)(apart ? within : GNI_MAX(-100000, GNI_MIN(exponent, 100000)))),
                         (double)(exponent - within)};
    gni_la_store(&d->out[0], index, y, 1, 1, apart ? 2 : 1, 1, NULL);
}

static void gni_la_do_solve(gni_la *w, const gni_la_job *d, int64_t index) {
    const bool triangle = d->kind == GNI_LA_TRIANGULAR, given = triangle || d->kind == GNI_LA_SOLVE;
    const int64_t n = d->n, k = given ? d->k : d->kind == GNI_LA_INV ? n : 0;
    const int64_t ld = gni_la_ld(n), ldb = k == 1 ? 1 : gni_la_ld(k);
    if (!gni_la_reserve(w, n * (ld + ldb) + n * n / 4 + 2 * n + 64)) return;
    double *a = gni_la_take(w, n * ld), *b = gni_la_take(w, n * ldb);
    int64_t *pivot = (int64_t *)(void *)gni_la_take(w, n);
    w->aside = gni_la_take(w, n * n / 4);
    gni_la_load(&d->in[0], index, a, ld, 1, n, n);
    if (triangle) gni_la_has_diagonal(w, d, a, ld, 1);
    else gni_la_lu(w, gni_la_rows(a, ld, n, n), pivot);
    if (gni_la_is_det(d)) {
        int64_t exponent = 0; // apart, so that no product on the way overflows
        double det = 1.0;
        for (int64_t i = 0; i < n; i++) {
            int e = 0;
            det = frexp(det * (pivot[i] != i ? -a[i * ld + i] : a[i * ld + i]), &e);
            exponent += e;
        }
        gni_la_put_det(d, index, w->info > 0 ? 0.0 : det, exponent); // never -0
        if (w->info > 0) w->info = 0;
        return;
    }
    if (w->info != 0) return;
    if (given) {
        gni_la_load(&d->in[1], index, b, ldb, 1, n, k);
    } else {
        gni_la_unit(b, ldb, n, n);
    }
    if (triangle) gni_la_solve_lower(w, gni_la_rows(a, ld, n, n), gni_la_rows(b, ldb, n, k), d->unit);
    else gni_la_lu_solve(w, gni_la_rows(a, ld, n, n), pivot, gni_la_rows(b, ldb, n, k));
    gni_la_store(&d->out[0], index, b, ldb, 1, n, k, NULL);
}

static void gni_la_do_cholesky(gni_la *w, const gni_la_job *d, int64_t index) {
    const int64_t n = d->n, ld = gni_la_ld(n);
    if (!gni_la_reserve(w, n * ld + n * n / 4 + 64)) return;
    double *a = gni_la_take(w, n * ld);
    w->aside = gni_la_take(w, n * n / 4);
    gni_la_load(&d->in[0], index, a, ld, 1, n, n);
    gni_la_cholesky(w, gni_la_rows(a, ld, n, n), 0);
    if (w->info != 0) return;
    for (int64_t i = 0; i < n; i++)
        memset(a + i * ld + i + 1, 0, (size_t)(n - i - 1) * sizeof(double));
    gni_la_store(&d->out[0], index, a, ld, 1, n, n, NULL);
}

static void gni_la_do_qr(gni_la *w, const gni_la_job *d, int64_t index) {
    const int64_t m = d->m, n = d->n, k = GNI_MIN(m, n), ld = gni_la_ld(m);
    gni_la_block b;
    if (!gni_la_reserve(w, ld * (n + k) + k + gni_la_block_memory(n, m) + 64)) return;
    double *at = gni_la_take(w, n * ld), *q = gni_la_take(w, k * ld), *tau = gni_la_take(w, k);
    gni_la_block_take(w, &b, n, m);
    gni_la_load(&d->in[0], index, at, 1, ld, m, n);
    gni_la_qr(w, gni_la_rows(at, ld, n, m), tau, &b);
    gni_la_form_q(w, gni_la_rows(at, ld, k, m), tau, gni_la_rows(q, ld, k, m), &b);
    for (int64_t j = 0; j < k; j++) {
        memset(at + j * ld + j + 1, 0, (size_t)(m - j - 1) * sizeof(double));
        if (at[j * ld + j] >= 0.0) continue;
        for (int64_t i = 0; i < m; i++) q[j * ld + i] = -q[j * ld + i];
        for (int64_t i = j; i < n; i++) at[i * ld + j] = -at[i * ld + j];
    }
    gni_la_store_columns(&d->out[0], index, q, ld, m, k, NULL);
    gni_la_store_columns(&d->out[1], index, at, ld, k, n, NULL);
}

static void gni_la_store_scaled(const gni_la_operand *o, int64_t index, double *x, int64_t n,
                                int power, const int64_t *order) {
    for (int64_t i = 0; i < n; i++) x[i] = ldexp(x[i], power);
    gni_la_store(o, index, x, 1, 1, n, 1, order);
}

static void gni_la_do_eigh(gni_la *w, const gni_la_job *d, int64_t index) {
    const int64_t n = d->n, ld = gni_la_ld(n);
    const bool vectors = d->out[1].data != NULL;
    int power = 0;
    if (!gni_la_reserve(w, 2 * n * ld + 2 * n + gni_la_eigh_memory(n, vectors) + 64)) return;
    double *a = gni_la_take(w, n * ld), *z = vectors ? gni_la_take(w, n * ld) : NULL,
           *values = gni_la_take(w, n);
    int64_t *order = (int64_t *)(void *)gni_la_take(w, n);
    gni_la_load(&d->in[0], index, a, ld, 1, n, n);
    for (int64_t i = 0; i < n; i++) // the lower triangle counts
        for (int64_t j = 0; j < i; j++) a[j * ld + i] = a[i * ld + j];
    if (!gni_la_scale(a, ld, n, n, &power)) {
        w->info = GNI_LA_NOT_FINITE;
        return;
    }
    if (n > 0) gni_la_eigh(w, gni_la_rows(a, ld, n, n), values, z);
    if (w->info != 0) return;
    gni_la_order(values, n, false, order);
    gni_la_store_scaled(&d->out[0], index, values, n, power, order);
    if (vectors) gni_la_store_columns(&d->out[1], index, z, ld, n, n, order);
}

// A tall matrix is the Q of its QR times a square one, a wide one is taken transposed.
static void gni_la_do_svd(gni_la *w, const gni_la_job *d, int64_t index) {
    const bool wide = d->m < d->n;
    const int64_t m = wide ? d->n : d->m, n = wide ? d->m : d->n, k = d->k;
    const int64_t ld = gni_la_ld(n), ldm = gni_la_ld(m);
    const gni_la_operand *tall = wide ? &d->out[2] : &d->out[1],
                         *square = wide ? &d->out[1] : &d->out[2];
    const bool vectors = tall->data != NULL || square->data != NULL;
    int power = 0;
    int64_t need = 3 * n * ld + ldm * (n + 2 * k) + 3 * n + gni_la_svd_memory(n) +
                   gni_la_block_memory(k, m) + 128;
    if (!gni_la_reserve(w, need)) return;
    double *at = gni_la_take(w, n * ldm), *a = gni_la_take(w, n * ld), *values = gni_la_take(w, n);
    double *ut = vectors ? gni_la_take(w, n * ld) : NULL,
           *vt = vectors ? gni_la_take(w, n * ld) : NULL;
    double *tau = gni_la_take(w, n), *q = NULL, *qu = NULL;
    int64_t *order = (int64_t *)(void *)gni_la_take(w, n);
    gni_la_load(&d->in[0], index, at, wide ? ldm : 1, wide ? 1 : ldm, d->m, d->n);
    if (!gni_la_scale(at, ldm, n, m, &power)) {
        w->info = GNI_LA_NOT_FINITE;
        return;
    }
    if (m > n) {
        gni_la_block b;
        gni_la_block_take(w, &b, k, m);
        gni_la_qr(w, gni_la_rows(at, ldm, n, m), tau, &b);
        if (vectors) {
            q = gni_la_take(w, k * ldm);
            qu = gni_la_take(w, n * ldm);
            gni_la_form_q(w, gni_la_rows(at, ldm, n, m), tau, gni_la_rows(q, ldm, k, m), &b);
        }
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) a[i * ld + j] = m > n && j < i ? 0.0 : at[j * ldm + i];
    if (n > 0) gni_la_svd_square(w, gni_la_rows(a, ld, n, n), values, ut, vt);
    if (w->info != 0) return;
    gni_la_order(values, n, true, order);
    gni_la_store_scaled(&d->out[0], index, values, n, power, order);
    if (!vectors) return;
    if (q != NULL)
        gni_la_gemm(w, gni_la_rows(qu, ldm, n, m), gni_la_rows(ut, ld, n, n), gni_la_rows(q, ldm, n, m), false);
    // What is tall is u, or for a wide matrix v; each has its vectors in columns but vt.
    gni_la_operand long_side = *tall, short_side = *square;
    gni_la_operand *v = wide ? &long_side : &short_side;
    int64_t rs = v->rs;
    v->rs = v->cs;
    v->cs = rs;
    gni_la_store_columns(&short_side, index, vt, ld, n, n, order);
    gni_la_store_columns(&long_side, index, q != NULL ? qu : ut, q != NULL ? ldm : ld, m, n, order);
    if (k == n || long_side.data == NULL) return;
    long_side.data += n * long_side.cs * (int64_t)gn_dtype_size(long_side.t);
    gni_la_store_columns(&long_side, index, q + n * ldm, ldm, m, k - n, NULL);
}

static void gni_la_do(gni_la *w, const gni_la_job *d, int64_t index) {
    switch (d->kind) {
    case GNI_LA_CHOLESKY: gni_la_do_cholesky(w, d, index); break;
    case GNI_LA_QR: gni_la_do_qr(w, d, index); break;
    case GNI_LA_EIGH: gni_la_do_eigh(w, d, index); break;
    case GNI_LA_SVD: gni_la_do_svd(w, d, index); break;
    default: gni_la_do_solve(w, d, index);
    }
}

static void gni_lc_do(gni_la *w, const gni_la_job *d, int64_t index); // of the room below

static void gni_la_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_la_job *d = (const gni_la_job *)arg;
    gni_la *w = &d->workers[worker];
    for (int64_t i = begin; i < end; i++) {
        w->info = 0;
        if (d->is_complex || (d->kind == GNI_LA_TRIANGULAR && d->k == 1))
            gni_lc_do(w, d, i);
        else
            gni_la_do(w, d, i);
        d->info[i] = w->info;
    }
}

// Reports what went wrong with the first matrix that something went wrong with.
static bool gni_la_report(const gni_la_job *d) {
    char which[64];
    for (int64_t i = 0; i < d->batch && d->info != NULL; i++) {
        long long info = (long long)d->info[i];
        if (info == 0) continue;
        if (d->batch == 1)
            snprintf(which, sizeof which, "the matrix");
        else
            snprintf(which, sizeof which, "matrix %lld of %lld", (long long)i, (long long)d->batch);
        if (info == GNI_LA_NO_MEMORY)
            gni_fail_memory(d->g, d->fn, (uint64_t)d->m * (uint64_t)d->n * sizeof(double));
        else if (info == GNI_LA_NOT_FINITE)
            gni_fail(d->g, GN_ERROR_ARGUMENT, "%s: %s holds NaN or infinity", d->fn, which);
        else if (info == GNI_LA_NO_CONVERGENCE)
            gni_fail(d->g, GN_ERROR_ARGUMENT, "%s: %s did not converge", d->fn, which);
        else if (d->kind == GNI_LA_CHOLESKY)
            gni_fail(d->g, GN_ERROR_ARGUMENT,
                     "%s: %s is not positive definite (its leading %lld x %lld block is not)",
                     d->fn, which, info, info);
        else
            gni_fail(d->g, GN_ERROR_ARGUMENT, "%s: %s is singular (pivot %lld is 0)", d->fn, which,
                     info - 1);
        return false;
    }
    return true;
}

// A matrix for each thread, or all threads for one matrix after the other.
static bool gni_la_run(gni_la_job *d) {
    gn_context *g = d->g;
    if (d->batch == 0) return true;
    const int threads = gni_pool_threads(g->pool);
    const double size = (double)d->m * (double)d->n, work = size * (double)GNI_MIN(d->m, d->n);
    const bool apart = d->batch > 1 && (size < 128.0 * 128.0 || d->batch >= 2 * threads);
    const int count = apart ? threads : 1;
    const size_t bytes = (size_t)count * sizeof(gni_la) + (size_t)d->batch * sizeof(int64_t);
    d->workers = (gni_la *)gni_calloc(g, bytes);
    if (d->workers == NULL) return gni_fail_memory(g, d->fn, bytes);
    d->info = (int64_t *)(void *)(d->workers + count);
    for (int i = 0; i < count; i++) {
        d->workers[i].g = g;
        d->workers[i].pool = apart ? NULL : g->pool;
        d->workers[i].isa = gni_la_isa_of((int)g->isa);
    }
    if (apart)
        gni_parallel(g->pool, d->batch, 1 + (int64_t)(20000.0 / (work + 100.0)), gni_la_task, d);
    else
        gni_la_task(d, 0, d->batch, 0);
    for (int i = 0; i < count; i++) gni_la_free(&d->workers[i]);
    bool ok = gni_la_report(d);
    gni_free(g, d->workers);
    return ok;
}

// ---- the public decompositions

// float32, float64 or complex: what is computed and returned, before halves are rounded.
static gn_dtype gni_la_dtype(gn_dtype t) { return t == GN_F64 || gni_is_complex(t) ? t : GN_F32; }

// Describes the matrices of `a`, with its last `matrix` axes (2, 1: one column, 0), over the batch's shape.
static void gni_la_describe(gni_la_operand *o, const gn_array *a, const gn_shape *batch,
                            int matrix) {
    int own = a->shape.rank - matrix, each = gni_is_complex(a->dtype) ? 2 : 1; // of real numbers
    o->t = each == 1 ? a->dtype : a->dtype == GN_C64 ? GN_F32 : GN_F64;
    o->rank = batch->rank;
    o->rs = matrix > 0 ? each * a->stride[own] : 0;
    o->cs = matrix > 1 ? each * a->stride[own + 1] : 0;
    for (int i = 0; i < batch->rank; i++) {
        int axis = i - batch->rank + own;
        o->dim[i] = batch->dim[i];
        o->step[i] = axis >= 0 && a->shape.dim[axis] != 1 ? each * a->stride[axis] : 0;
    }
}

// The operand in the dtype of the computation, on the CPU. One reference; NULL after gni_fail.
static gn_array *gni_la_input(gni_la_job *d, int i, gn_array *a, gn_dtype t, const gn_shape *batch,
                              int matrix) {
    gn_context *g = d->g;
    gn_array *x = a;
    if (a->dtype == t)
        gni_ref(x);
    else
        x = gni_apply(g, d->fn, GNI_OP_CAST, a->dtype, t, &x, NULL, 1);
    const void *data = x != NULL ? gni_host(g, x) : NULL;
    if (data == NULL) {
        gni_unref(g, x);
        return NULL;
    }
    gni_la_describe(&d->in[i], x, batch, matrix);
    d->in[i].data = (char *)x->buf->host + x->offset * (int64_t)gn_dtype_size(t);
    return x;
}

// A result of the batch's shape with up to two more axes.
static gn_array *gni_la_output(gni_la_job *d, int i, gn_dtype t, const gn_shape *batch, int matrix,
                               int64_t m, int64_t n) {
    gn_shape s = *batch;
    void *data = NULL;
    if (matrix > 0) s.dim[s.rank++] = m;
    if (matrix > 1) s.dim[s.rank++] = n;
    gn_array *y = gni_array_filled(d->g, d->fn, t, &s, &data);
    if (y == NULL) return NULL;
    gni_la_describe(&d->out[i], y, batch, matrix);
    d->out[i].data = (char *)data;
    return y;
}

static void gni_la_begin(gni_la_job *d, gn_context *g, gni_la_kind kind, const char *fn,
                         const gn_array *a, gn_shape *batch) {
    memset(d, 0, sizeof *d);
    d->g = g;
    d->kind = kind;
    d->is_complex = gni_is_complex(a->dtype);
    d->fn = fn;
    d->m = a->shape.dim[a->shape.rank - 2];
    d->n = a->shape.dim[a->shape.rank - 1];
    *batch = gn_shape_from(a->shape.rank - 2, a->shape.dim);
}

static void gni_la_batch(gni_la_job *d, const gn_shape *batch) {
    d->batch = GNI_MAX(gni_extent_product(batch->dim, batch->rank), 0);
}

// Runs a decomposition of `in` into the `count` results; a NULL place in `y` stays out. Results are of the
// operand's dtype. All or none: false after gni_fail.
static bool gni_la_finish(gni_la_job *d, gn_array **y, int count, gn_dtype result) {
    bool any = false; // elements to compute: batches without them may be of any size
    for (int i = 0; i < count; i++) any = any || (y[i] != NULL && gni_elements(&y[i]->shape) > 0);
    bool ok = !d->g->call_failed && (!any || gni_la_run(d));
    for (int i = 0; i < count; i++) {
        if (y[i] == NULL) continue;
        gn_array *cast = y[i];
        if (ok && y[i]->dtype != result && !gni_is_complex(result)) // values of complex matrices are real
            cast = gni_apply(d->g, d->fn, GNI_OP_CAST, y[i]->dtype, result, &y[i], NULL, 1);
        if (cast != y[i] || !ok) gni_unref(d->g, y[i]);
        y[i] = ok ? cast : NULL;
        ok = ok && cast != NULL;
    }
    for (int i = 0; i < count && !ok; i++) {
        gni_unref(d->g, y[i]);
        y[i] = NULL;
    }
    return ok;
}

static gn_dtype gni_la_result(gn_dtype t) { return gni_is_float(t) || gni_is_complex(t) ? t : GN_F32; }
