// >>factor_ops
// The public decompositions and their gradients.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/grad.h"
#include "../ops/linalg_ops.h"
#include "../linalg/factor_batch.h"
#include "../linalg/values_gpu.h"
#endif

static gn_array *gni_complex_solve(gn_context *g, gn_array *a, gn_array *b);
static gn_array *gni_complex_det(gn_context *g, const char *fn, gn_array *a, gn_array **log);
static bool gni_has_zero(gn_array *a);
static gn_array *gni_cofactors(gn_array *a);

// Decompositions of square matrices with one result: gn_inv, gn_det, gn_cholesky.
static gn_array *gni_la_single(const char *fn, gni_la_kind kind, gn_array *a,
                               gni_backward_fn back) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if (gni_is_complex(a->dtype) && (kind == GNI_LA_DET || (kind == GNI_LA_INV && g->gpu != NULL))) {
        gn_scope_begin(g);
        if (!gni_is_square(g, fn, a)) return gni_end_scope(g, NULL);
        return gni_end_scope(g, kind == GNI_LA_DET ? gni_complex_det(g, fn, a, NULL) : gni_complex_solve(g, a, NULL));
    }
    if (gni_is_square(g, fn, a)) {
        gni_la_job d;
        gn_shape batch;
        gn_dtype t = gni_la_dtype(a->dtype);
        gni_la_begin(&d, g, kind, fn, a, &batch);
        gni_la_batch(&d, &batch);
        const int matrix = kind == GNI_LA_DET ? 0 : 2;
        d.k = d.n;
        if (!d.is_complex && (gni_ls_run(&d, a, NULL, &batch, matrix, t, &y) ||
                              gni_lg_run(&d, a, NULL, &batch, matrix, t, &y))) {
            y = gni_lg_result(&d, y, gni_la_result(a->dtype));
        } else {
            gn_array *x = gni_la_input(&d, 0, a, t, &batch, 2);
            if (x != NULL) y = gni_la_output(&d, 0, t, &batch, matrix, d.m, d.n);
            gni_la_finish(&d, &y, 1, gni_la_result(a->dtype));
            gni_unref(g, x);
        }
        if (y != NULL && gni_tracks(g, &a, 1)) gni_record(g, y, fn, back, &a, 1);
    }
    return gni_end(g, y);
}

// ---- complex ones

// The real matrices [re, -im; im, re], which multiply as the complex ones.
static gn_array *gni_embedded(gn_array *a, gn_dtype part) {
    gn_array *re = gn_cast(gn_real(a), part), *im = gn_cast(gn_imag(a), part), *half[2] = {re, gn_neg(im)}, *side[2];
    side[0] = gn_concat(half, 2, -1);
    half[0] = im;
    half[1] = re;
    side[1] = gn_concat(half, 2, -1);
    return gn_concat(side, 2, -2);
}

// a^-1 b of real columns over imaginary ones; b NULL: the first half of the inverse's columns are that.
static gn_array *gni_complex_solve(gn_context *g, gn_array *a, gn_array *b) {
    const gn_dtype part = gni_part_of(b != NULL ? gn_promote(a->dtype, b->dtype) : a->dtype);
    const int64_t n = a->shape.dim[a->shape.rank - 1];
    const int axis = b != NULL && b->shape.rank == 1 ? -1 : -2;
    gn_array *m = gni_embedded(a, part), *halves[2], *y;
    if (b != NULL) {
        halves[0] = gn_cast(gn_real(b), part);
        halves[1] = gn_cast(gn_imag(b), part);
        y = gn_solve(m, gn_concat(halves, 2, axis));
    } else {
        y = gn_slice(gn_inv(m), -1, 0, n, 1);
    }
    GNI_UNUSED(g);
    return gn_complex(gn_slice(y, axis, 0, n, 1), gn_slice(y, axis, n, 2 * n, 1));
}

// gx = h a^-H with h that takes the result's gradient to that of the determinant's logarithm (param[0] as below).
static bool gni_back_complex_det(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *y = node->output, *h = gy;
    if (node->param[0] == 0 && g->no_grad > 0 && gni_has_zero(y)) {
        gx[0] = gn_mul(gn_expand_dims(gy, GN_AXES(-2, -1)), gni_cofactors(node->in[0]));
        return true;
    }
    if (node->param[0] == 0) h = gn_mul(gy, gn_conj(y));
    if (node->param[0] == 1) h = gn_complex(gn_scalar(g, gni_part_of(y->dtype), 0.0), gn_imag(gn_mul(gy, gn_conj(y))));
    gx[0] = gn_mul(gn_expand_dims(h, GN_AXES(-2, -1)), gn_conj(gni_transposed(gn_inv(node->in[0]))));
    return true;
}

// (..., count): that many numbers of each matrix.
static gn_array *gni_la_numbers(gn_context *g, const char *fn, gni_la_kind kind, gn_array *a, int count) {
    gni_la_job d;
    gn_shape batch;
    gn_array *y = NULL;
    const gn_dtype t = gni_la_dtype(a->dtype);
    gni_la_begin(&d, g, kind, fn, a, &batch);
    gni_la_batch(&d, &batch);
    if (kind == GNI_LA_LOG_DET && (gni_ls_run(&d, a, NULL, &batch, 0, t, &y) || gni_lg_run(&d, a, NULL, &batch, 0, t, &y)))
        return gni_adopt(g, y);
    gn_array *x = gni_la_input(&d, 0, a, t, &batch, 2);
    if (x != NULL) y = gni_la_output(&d, 0, d.is_complex ? gni_part_of(t) : t, &batch, 1, count, 1);
    gni_la_finish(&d, &y, 1, t);
    gni_unref(g, x);
    return gni_adopt(g, y);
}

// The determinant, or where there is room for the magnitude's logarithm, that over its magnitude; computed on the CPU.
static gn_array *gni_complex_det(gn_context *g, const char *fn, gn_array *a, gn_array **log) {
    const int which = log != NULL ? 1 : 0;
    if (!gni_is_square(g, fn, a)) return NULL;
    g->no_grad++; // recorded as one op
    gn_array *y = gni_la_numbers(g, fn, GNI_LA_DET, a, 5);
    gn_array *part[5] = {NULL, NULL, NULL, NULL, NULL};
    for (int i = 0; i < 5 && y != NULL; i++) part[i] = gn_squeeze(gn_slice(y, -1, i, i + 1, 1), -1);
    y = gn_complex(part[2 * which], part[2 * which + 1]);
    g->no_grad--;
    gni_note(gni_record(g, y, fn, gni_back_complex_det, &a, 1), which, 0, 0);
    if (log == NULL) return y;
    *log = part[4];
    gni_note(gni_record(g, part[4], fn, gni_back_complex_det, &a, 1), 2, 0, 0);
    return y;
}

// Real determinants as GNI_LA_LOG_DET says, (..., 2).
static gn_array *gni_log_det(gn_context *g, gn_array *a) {
    return gni_is_square(g, g->call, a) ? gni_la_numbers(g, g->call, GNI_LA_LOG_DET, a, 2) : NULL;
}

static bool gni_back_inv(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_det(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_cholesky(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_solve(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_eigh(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_eig(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_qr(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_svd(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);

GPUNUM_API gn_array *gn_inv(gn_array *a) {
    return gni_la_single("gn_inv", GNI_LA_INV, a, gni_back_inv);
}
GPUNUM_API gn_array *gn_det(gn_array *a) {
    return gni_la_single("gn_det", GNI_LA_DET, a, gni_back_det);
}
GPUNUM_API gn_array *gn_cholesky(gn_array *a) {
    return gni_la_single("gn_cholesky", GNI_LA_CHOLESKY, a, gni_back_cholesky);
}

static bool gni_la_solve_shapes(gn_context *g, const gn_array *a, const gn_array *b, int matrix,
                                gn_shape *batch) {
    char ta[200], tb[200];
    if (matrix == 0) return gni_fail(g, GN_ERROR_SHAPE, "gn_solve: the right-hand side is 0-d");
    gn_shape batch_a = gn_shape_from(a->shape.rank - 2, a->shape.dim);
    gn_shape batch_b = gn_shape_from(b->shape.rank - matrix, b->shape.dim);
    int64_t n = a->shape.dim[a->shape.rank - 1], rows = b->shape.dim[b->shape.rank - matrix];
    gni_shape_text(ta, sizeof ta, &a->shape);
    gni_shape_text(tb, sizeof tb, &b->shape);
    if (n != rows)
        gni_fail(g, GN_ERROR_SHAPE, "gn_solve: %s and %s: %lld equations, %lld rows of right-hand sides",
                 ta, tb, (long long)n, (long long)rows);
    else if (!gni_broadcast(&batch_a, &batch_b, batch))
        gni_fail(g, GN_ERROR_SHAPE, "gn_solve: %s and %s: batch dimensions do not broadcast", ta,
                 tb);
    else
        return true;
    return false;
}

static gn_array *gni_la_solve(gn_context *g, gni_la_kind kind, gn_array *a, gn_array *b, bool unit, bool upper) {
    const bool triangle = kind == GNI_LA_TRIANGULAR;
    int matrix = GNI_MIN(b->shape.rank, 2);
    gn_shape batch;
    gni_la_job d;
    gn_array *y = NULL, *xa, *xb = NULL;
    if (!gni_la_solve_shapes(g, a, b, matrix, &batch)) return NULL;
    gn_dtype result = gni_la_result(gn_promote(a->dtype, b->dtype)), t = gni_la_dtype(result);
    gn_shape own;
    gni_la_begin(&d, g, kind, triangle ? "gn_solve_triangular" : "gn_solve", a, &own);
    d.is_complex = gni_is_complex(t);
    d.unit = unit;
    d.upper = upper;
    gni_la_batch(&d, &batch);
    d.k = matrix == 2 ? b->shape.dim[b->shape.rank - 1] : 1;
    const bool on_gpu = d.k > 0 && !d.is_complex;
    if (on_gpu && gni_ls_run(&d, a, b, &batch, matrix, t, &y)) return gni_lg_result(&d, y, result);
    // The kernels for large ones say nothing of a diagonal with 0.
    if (on_gpu && (!triangle || (gni_lg_wanted(g, a, t, d.batch) && (unit || !gni_has_zero(gn_diagonal(a, 0))))) &&
        gni_lg_run(&d, a, b, &batch, matrix, t, &y))
        return gni_lg_result(&d, y, result);
    xa = gni_la_input(&d, 0, a, t, &batch, 2);
    if (xa != NULL) xb = gni_la_input(&d, 1, b, t, &batch, matrix);
    if (xb != NULL) y = gni_la_output(&d, 0, t, &batch, matrix, d.n, d.k);
    gni_la_finish(&d, &y, 1, result);
    gni_unref(g, xa);
    gni_unref(g, xb);
    return y;
}

GPUNUM_API gn_array *gn_solve(gn_array *a, gn_array *b) {
    gn_array *in[2] = {a, b}, *y = NULL;
    gn_context *g = gni_begin("gn_solve", in, 2);
    if (g == NULL) return NULL;
    if (gni_is_complex(a->dtype) || gni_is_complex(b->dtype)) {
        gn_shape batch;
        gn_scope_begin(g);
        bool ok = gni_is_square(g, "gn_solve", a) && gni_la_solve_shapes(g, a, b, GNI_MIN(b->shape.rank, 2), &batch);
        if (!ok || g->gpu != NULL) return gni_end_scope(g, ok ? gni_complex_solve(g, a, b) : NULL);
        const gn_dtype t = gn_promote(a->dtype, b->dtype);
        for (int i = 0; i < 2; i++) in[i] = gni_as(in[i], t);
        if (in[0] != NULL && in[1] != NULL) y = gni_adopt(g, gni_la_solve(g, GNI_LA_SOLVE, in[0], in[1], false, false));
        gni_record(g, y, "gn_solve", gni_back_solve, in, 2);
        return gni_end_scope(g, y);
    }
    if (gni_is_square(g, "gn_solve", a)) y = gni_la_solve(g, GNI_LA_SOLVE, a, b, false, false);
    if (y != NULL && gni_tracks(g, in, 2)) gni_record(g, y, "gn_solve", gni_back_solve, in, 2);
    return gni_end(g, y);
}

// x = l^-1 b, l = a^T with `transposed` (param[1]): gb = l^-H gx, and l's gradient -gb x^H where there is a triangle.
static bool gni_back_triangular(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *a = node->in[0], *b = node->in[1], *x = node->output;
    const bool vector = b->shape.rank == 1, lower = node->param[0] != 0, transposed = node->param[1] != 0;
    const int64_t unit = node->param[2];
    if (vector) {
        gy = gn_expand_dims(gy, -1);
        x = gn_expand_dims(x, -1);
    }
    gn_array *gb = gn_solve_triangular(gni_is_complex(a->dtype) ? gn_conj(a) : a, gy, lower, !transposed, unit != 0);
    if (gni_wanted(node, 0)) {
        gn_array *ga = gn_neg(gn_matmul(gb, gni_adjoint(x)));
        if (transposed) ga = gni_transposed(ga);
        gx[0] = gni_unbroadcast(lower ? gn_tril(ga, -unit) : gn_triu(ga, unit), &a->shape);
    }
    if (gni_wanted(node, 1)) gx[1] = gni_unbroadcast(vector ? gn_squeeze(gb, -1) : gb, &b->shape);
    return true;
}

GPUNUM_API gn_array *gn_solve_triangular(gn_array *a, gn_array *b, bool lower, bool transposed, bool unit) {
    const char *fn = "gn_solve_triangular";
    gn_array *in[2] = {a, b}, *y = NULL;
    gn_shape batch;
    gn_context *g = gni_begin_scope(fn, in, 2);
    if (g == NULL) return NULL;
    if (!gni_is_square(g, fn, a) || !gni_la_solve_shapes(g, a, b, GNI_MIN(b->shape.rank, 2), &batch))
        return gni_end_scope(g, NULL);
    const gn_dtype t = gni_la_result(gn_promote(a->dtype, b->dtype));
    const bool upper = lower == transposed; // which is a lower one read backwards
    const int rows = b->shape.rank == 1 ? -1 : -2;
    for (int i = 0; i < 2; i++) in[i] = gni_as(in[i], t);
    g->no_grad++; // recorded as one op
    a = transposed && in[0] != NULL ? gni_transposed(in[0]) : in[0];
    b = upper ? gn_flip(in[1], rows) : in[1];
    if (upper) a = gn_flip(a, GN_AXES(-2, -1));
    if (a != NULL && b != NULL) y = gni_la_solve(g, GNI_LA_TRIANGULAR, a, b, unit, upper);
    if (y != NULL) y = gni_adopt(g, y);
    if (upper) y = gn_flip(y, rows);
    g->no_grad--;
    gni_note(gni_record(g, y, fn, gni_back_triangular, in, 2), lower, transposed, unit);
    return gni_end_scope(g, y);
}

// Hands the results to the caller, all or none, and ends the call.
static gn_array *gni_la_return(gn_context *g, gn_array **y, gn_array **const *place) {
    for (int i = 1; i < 3; i++)
        if (y[i] != NULL) *place[i] = gni_adopt(g, y[i]);
    y[0] = gni_adopt(g, y[0]);
    for (int i = 1; i < 3 && y[0] == NULL; i++) {
        if (place[i] == NULL) continue;
        gn_release(*place[i]);
        *place[i] = NULL;
    }
    gni_end_plain(g);
    return y[0];
}

// Singular values of matrices at least twice as tall as wide, or as wide as tall, by those of r of their QR, where the GPU
// makes that.
static bool gni_svd_by_qr(gni_la_job *d, gn_array *a, gn_dtype t, gn_array **y, gn_array **const *place) {
    gn_context *g = d->g;
    const bool wide = d->m < d->n, vectors = place[1] != NULL || place[2] != NULL;
    if (GNI_MAX(d->m, d->n) < 2 * GNI_MIN(d->m, d->n) || d->k > GNI_MIN(d->m, d->n)) return false;
    if (!gni_lg_wanted(g, a, t, 1)) return false;
    gn_array *r = NULL, *u = NULL, *vt = NULL;
    g->no_grad++; // recorded as one op
    gn_array *q = gn_qr(wide ? gni_transposed(a) : a, &r), *s = gn_svd(r, false, vectors ? &u : NULL, vectors ? &vt : NULL);
    if (vectors) u = gn_matmul(q, u);
    const bool ok = s != NULL && (!vectors || (u != NULL && gni_materialize(g, u)));
    gn_array *of[3] = {s, wide ? vt : u, wide ? u : vt};
    for (int i = 0; i < 3 && ok; i++) {
        if (i > 0 && place[i] == NULL) continue;
        y[i] = wide && i > 0 ? gni_transposed(of[i]) : of[i];
        if (y[i] == NULL) break;
        gni_ref(y[i]); // the scope's end drops its own
        y[i]->maker = d->fn;
        y[i]->on_gpu = of[i]->on_gpu;
        y[i]->reason = of[i]->reason;
    }
    g->no_grad--;
    return y[0] != NULL || g->call_failed;
}

// gn_qr, gn_eigh, gn_eig and gn_svd: one result that is returned, and others for which there is a place.
static void gni_la_several(gn_context *g, const char *fn, gni_la_kind kind, gn_array *a, bool full,
                           gn_array **y, gn_array **const *place) {
    gni_la_job d;
    gn_shape batch;
    gn_dtype t = gni_la_dtype(a->dtype);
    gni_la_begin(&d, g, kind, fn, a, &batch);
    gni_la_batch(&d, &batch);
    const int64_t m = d.m, n = d.n, k = GNI_MIN(m, n);
    const bool svd = kind == GNI_LA_SVD, qr = kind == GNI_LA_QR, eig = kind == GNI_LA_EIG;
    d.k = full ? GNI_MAX(m, n) : k;
    const gn_dtype result = gni_la_result(a->dtype);
    const bool on_gpu = !d.is_complex;
    if (on_gpu && qr && (gni_ls_qr(&d, a, t, &batch, y) || gni_lg_qr_all(&d, a, t, &batch, y))) {
        if (place[1] == NULL) {
            gni_unref(g, y[1]);
            y[1] = NULL;
        }
        for (int i = 0; i < 2; i++) y[i] = gni_lg_result(&d, y[i], result);
    } else if (on_gpu && !qr && (gni_ls_values(&d, a, t, &batch, full, y, place) ||
                                 (svd && gni_svd_by_qr(&d, a, t, y, place)) ||
                                 gni_lv_values(&d, a, t, &batch, full, y, place))) {
        for (int i = 0; i < 3; i++) y[i] = gni_lg_result(&d, y[i], result);
    } else {
        const gn_dtype first = qr || eig || !d.is_complex ? t : t == GN_C64 ? GN_F32 : GN_F64;
        gn_array *x = gni_la_input(&d, 0, a, t, &batch, 2);
        if (x != NULL) y[0] = gni_la_output(&d, 0, first, &batch, qr ? 2 : 1, qr ? m : k, k);
        if (y[0] != NULL && place[1] != NULL)
            y[1] = gni_la_output(&d, 1, t, &batch, 2, svd ? m : k, !svd ? n : full ? m : k);
        if (y[0] != NULL && place[2] != NULL && !g->call_failed)
            y[2] = gni_la_output(&d, 2, t, &batch, 2, full ? n : k, n);
        gni_la_finish(&d, y, 3, result);
        gni_unref(g, x);
    }
    for (int i = 0; i < 3; i++) {
        // Vectors that only complete a basis are not determined.
        bool more = svd && full && i > 0 && (i == 1 ? m : n) > k;
        gni_backward_fn back = qr ? gni_back_qr : svd ? gni_back_svd : eig ? gni_back_eig : gni_back_eigh;
        gni_note(gni_record(g, y[i], fn, more ? NULL : back, &a, 1), i, 0, 0);
    }
}

static gn_array *gni_la_factors(const char *fn, gni_la_kind kind, gn_array *a, bool full, gn_array **v, gn_array **w) {
    gn_array *y[3] = {NULL, NULL, NULL}, **place[3] = {NULL, v, w}, *x = a;
    for (int i = 1; i < 3; i++)
        if (place[i] != NULL) *place[i] = NULL;
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    const bool any = kind == GNI_LA_QR || kind == GNI_LA_SVD;
    if (any ? !gni_is_matrix(g, fn, a) : !gni_is_square(g, fn, a)) x = NULL;
    else if (kind == GNI_LA_EIG) x = gn_cast(a, gni_complex_of(a->dtype));
    if (x != NULL) gni_la_several(g, fn, kind, x, full && (v != NULL || w != NULL), y, place);
    gn_scope_end(g);
    return gni_la_return(g, y, place);
}

GPUNUM_API gn_array *gn_qr(gn_array *a, gn_array **r) { return gni_la_factors("gn_qr", GNI_LA_QR, a, false, r, NULL); }
GPUNUM_API gn_array *gn_eigh(gn_array *a, gn_array **v) { return gni_la_factors("gn_eigh", GNI_LA_EIGH, a, false, v, NULL); }
GPUNUM_API gn_array *gn_eig(gn_array *a, gn_array **v) { return gni_la_factors("gn_eig", GNI_LA_EIG, a, false, v, NULL); }
GPUNUM_API gn_array *gn_svd(gn_array *a, bool full, gn_array **u, gn_array **vt) {
    return gni_la_factors("gn_svd", GNI_LA_SVD, a, full, u, vt);
}

// ---- gradients

static gn_array *gni_products_before(gn_array *x, int axis);

// x = a^-1 b: gb = a^-H gx, ga = -gb x^H (Giles 2008).
static bool gni_back_solve(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *a = node->in[0], *b = node->in[1], *x = node->output;
    const bool vector = b->shape.rank == 1;
    if (vector) {
        gy = gn_expand_dims(gy, -1);
        x = gn_expand_dims(x, -1);
    }
    gn_array *gb = gn_solve(gni_adjoint(a), gy);
    if (gni_wanted(node, 0))
        gx[0] = gni_unbroadcast(gn_neg(gn_matmul(gb, gni_adjoint(x))), &a->shape);
    if (gni_wanted(node, 1))
        gx[1] = gni_unbroadcast(vector ? gn_squeeze(gb, -1) : gb, &b->shape);
    return true;
}

// -y^H gy y^H
static bool gni_back_inv(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *t = gni_adjoint(node->output);
    gx[0] = gn_neg(gn_matmul(gn_matmul(t, gy), t));
    return true;
}

// Whether a determinant is 0: then there is no inverse.
static bool gni_has_zero(gn_array *a) { return gn_item(gn_any(gn_eq_s(a, 0.0), GN_ALL)) != 0.0; }

// The cofactors of singular matrices, by their singular values: det(u vt) u diag(products of the others) vt; of complex ones
// conjugated.
// Good for one differentiation.
static gn_array *gni_cofactors(gn_array *a) {
    gn_array *u = NULL, *vt = NULL, *s = gn_svd(a, false, &u, &vt);
    if (s == NULL) return NULL;
    int last = s->shape.rank - 1;
    gn_array *before = gni_products_before(s, last);
    gn_array *after = gn_flip(gni_products_before(gn_flip(s, -1), last), -1);
    gn_array *others = gn_expand_dims(gn_mul(before, after), -2);
    gn_array *sign = gn_mul(gn_det(u), gn_det(vt));
    if (gni_is_complex(a->dtype)) sign = gn_conj(sign);
    sign = gn_expand_dims(sign, GN_AXES(-2, -1));
    return gn_mul(sign, gn_matmul(gn_mul(u, others), vt));
}

// gy det a^-T
static bool gni_back_det(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *a = node->in[0], *cofactors;
    gy = gn_expand_dims(gn_expand_dims(gy, -1), -1);
    if (gni_elements(&a->shape) == 0) {
        gx[0] = gn_zeros_like(a);
        return true;
    }
    if (g->no_grad > 0 && gni_has_zero(node->output)) {
        cofactors = gni_cofactors(a);
    } else {
        gn_array *det = gn_expand_dims(gn_expand_dims(node->output, -1), -1);
        cofactors = gn_mul(det, gni_transposed(gn_inv(a)));
    }
    gx[0] = gn_mul(gy, cofactors);
    return true;
}

// With P the lower triangle of l^T gl and its diagonal halved, l^-T P l^-1, made symmetric (Murray 2016).
static bool gni_back_cholesky(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *l = node->output, *t = gni_adjoint(l), *p = gn_matmul(t, gy);
    gn_array *half = gn_mul_s(gn_add(gn_tril(p, 0), gn_tril(p, -1)), 0.5);
    gn_array *s = gni_adjoint(gn_solve(t, gni_adjoint(gn_solve(t, half))));
    gx[0] = gn_mul_s(gn_add(s, gni_adjoint(s)), 0.5);
    return true;
}

// x[i][j] / (w[j] - w[i]), and 0 on the diagonal.
static gn_array *gni_over_gaps(gn_context *g, gn_array *x, gn_array *w) {
    if (x == NULL || w == NULL) return NULL;
    int64_t n = w->shape.dim[w->shape.rank - 1];
    gn_array *gap = gn_sub(gn_expand_dims(w, -2), gn_expand_dims(w, -1));
    gn_array *diagonal = gn_eye(g, GN_BOOL, n, n, 0);
    gn_array *none = gn_scalar(g, w->dtype, 0.0), *one = gn_scalar(g, w->dtype, 1.0);
    return gn_where(diagonal, none, gn_div(x, gn_where(diagonal, one, gap)));
}

// v diag(gw) v^T for the values; v (F o v^T gv) v^T with F[i][j] = 1 / (w[j] - w[i]) for the vectors, made
// symmetric (Giles 2008). Equal values have no derivative of their vectors: infinity or NaN.
static bool gni_back_eigh(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *v = NULL, *w;
    if (node->param[0] == 0) {
        if (gn_eigh(node->in[0], &v) == NULL) return false;
        gx[0] = gn_matmul(gn_mul(v, gn_expand_dims(gy, -2)), gni_adjoint(v));
        return true;
    }
    // The vectors that the loss saw: once more they might be computed elsewhere, with other signs.
    v = node->output;
    w = gn_eigh(node->in[0], NULL);
    gn_array *t = gni_adjoint(v);
    if (w == NULL || t == NULL) return false;
    gn_array *inner = gni_over_gaps(g, gn_matmul(t, gy), w);
    gn_array *s = gn_matmul(gn_matmul(v, inner), t);
    gx[0] = gn_mul_s(gn_add(s, gni_adjoint(s)), 0.5);
    return true;
}

// v^-H (diag(gw) + (v^H gv - v^H v diag(Re(v^H gv))) / conj(w[j] - w[i])) v^H, the last part off the diagonal: vectors keep
// their length (Boeddeker and others 2017).
static bool gni_back_eig(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *v = NULL, *w = gn_eig(node->in[0], &v), *t = gni_adjoint(v), *inner;
    if (w == NULL || t == NULL) return false;
    if (node->param[0] == 0) {
        inner = gn_mul(gn_expand_dims(gy, -1), t);
    } else {
        inner = gn_matmul(t, gy);
        gn_array *along = gn_expand_dims(gn_real(gn_diagonal(inner, 0)), -2);
        inner = gn_matmul(gni_over_gaps(g, gn_sub(inner, gn_mul(gn_matmul(t, v), along)), gn_conj(w)), t);
    }
    gx[0] = gn_solve(t, inner);
    return true;
}

// Of a matrix that is not wide: (gq + q S) r^-T with S symmetric, its lower triangle that of r gr^T - gq^T q
// (Walter and Lehmann 2010). gr may be NULL, and so may gq.
static gn_array *gni_back_qr_tall(gn_array *q, gn_array *r, gn_array *gq, gn_array *gr) {
    gn_array *m = gr != NULL ? gn_matmul(r, gni_adjoint(gr)) : NULL;
    if (gq != NULL) {
        gn_array *x = gn_matmul(gni_adjoint(gq), q);
        m = m != NULL ? gn_sub(m, x) : gn_neg(x);
    }
    gn_array *s = gn_add(gn_tril(m, 0), gni_adjoint(gn_tril(m, -1)));
    if (s != NULL && gni_is_complex(s->dtype)) s = gn_mul_s(gn_add(s, gni_adjoint(s)), 0.5); // the diagonal is real
    gn_array *y = gn_matmul(q, s);
    if (gq != NULL) y = gn_add(y, gq);
    return gni_adjoint(gn_solve(r, gni_adjoint(y)));
}

// A wide matrix is a square one, which has the q, beside q gv.
static bool gni_back_qr(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *a = node->in[0], *r = NULL, *q = gn_qr(a, &r);
    (void)g;
    gn_array *gq = node->param[0] == 0 ? gy : NULL, *gr = node->param[0] == 1 ? gy : NULL;
    if (q == NULL || r == NULL) return false;
    const int64_t m = a->shape.dim[a->shape.rank - 2], n = a->shape.dim[a->shape.rank - 1];
    if (m >= n) {
        gx[0] = gni_back_qr_tall(q, r, gq, gr);
        return true;
    }
    gn_array *part[2], *rest = gn_slice(a, -1, m, n, 1);
    part[1] = gr == NULL ? gn_zeros_like(rest) : gn_matmul(q, gn_slice(gr, -1, m, n, 1));
    if (gr != NULL) {
        gq = gn_matmul(rest, gni_adjoint(gn_slice(gr, -1, m, n, 1)));
        gr = gn_slice(gr, -1, 0, m, 1);
    }
    part[0] = gni_back_qr_tall(q, gn_slice(r, -1, 0, m, 1), gq, gr);
    gx[0] = gn_concat(part, 2, -1);
    return true;
}

// u diag(gs) vt for the values; for u, with F[i][j] = 1 / (s[j]^2 - s[i]^2) and J = F o u^T gu,
// (u (J + J^T) s + (1 - u u^T) gu / s) vt; for v the same of the transpose (Giles 2008; Townsend 2016), of complex ones
// conjugated (Wan and Zhang 2019).
static bool gni_back_svd(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *u = NULL, *vt = NULL, *s = gn_svd(node->in[0], false, &u, &vt);
    if (s == NULL || u == NULL || vt == NULL) return false;
    const bool right = node->param[0] == 2;
    gn_array *row = gn_expand_dims(s, -2);
    if (node->param[0] == 0) {
        gx[0] = gn_matmul(gn_mul(u, gn_expand_dims(gy, -2)), vt);
        return true;
    }
    gn_array *x = right ? gni_adjoint(vt) : u, *other = right ? gni_adjoint(u) : vt;
    gn_array *seen = right ? gni_adjoint(node->output) : node->output;
    // Computed elsewhere they may have other signs than those that the loss saw.
    const bool is_complex = gni_is_complex(gy->dtype); // which is done on the CPU alone
    gn_array *gz = right ? gni_adjoint(gy) : gy, *t;
    if (!is_complex) gz = gn_mul(gz, gn_sign(gn_sum(gn_detach(gn_mul(x, seen)), GN_KEEP(-2))));
    t = gn_matmul(gni_adjoint(x), gz);
    gn_array *j = gni_over_gaps(g, t, gn_square(s));
    gn_array *inner = gn_mul(gn_matmul(x, gn_add(j, gni_adjoint(j))), row);
    if (is_complex) { // half of the phases that u and v have in common are each one's
        gn_array *turn = gn_expand_dims(gn_imag(gn_diagonal(t, 0)), -2);
        turn = gn_div(gn_mul_s(turn, 0.5), row);
        inner = gn_add(inner, gn_mul(x, gn_complex(gn_zeros_like(turn), turn)));
    }
    if (x->shape.dim[x->shape.rank - 2] > x->shape.dim[x->shape.rank - 1])
        inner = gn_add(inner, gn_div(gn_sub(gz, gn_matmul(x, t)), row));
    gn_array *y = gn_matmul(inner, other);
    gx[0] = right ? gni_adjoint(y) : y;
    return true;
}
