// >>products
// Kronecker and cross products, norms, powers, pseudo-inverses: compositions of products and decompositions.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../ops/arrange.h"
#include "../linalg/factor_ops.h"
#include "../ops/order_ops.h"
#endif

GPUNUM_API gn_array *gn_kron(gn_array *a, gn_array *b) {
    gn_array *in[2] = {a, b};
    gn_context *g = gni_begin_scope("gn_kron", in, 2);
    if (g == NULL) return NULL;
    // An axis of both becomes two, a's in front; one of size 1 in either is one.
    const int rank = GNI_MAX(a->shape.rank, b->shape.rank);
    gn_shape sa = gni_shape_of_rank(0), sb = sa, s = gni_shape_of_rank(rank);
    int n = 0;
    for (int i = 0; i < rank; i++) {
        const int ia = i - rank + a->shape.rank, ib = i - rank + b->shape.rank;
        const int64_t na = ia < 0 ? 1 : a->shape.dim[ia], nb = ib < 0 ? 1 : b->shape.dim[ib];
        s.dim[i] = gni_extent_times(na, nb);
        for (int k = 0; k < 2; k++) {
            if (k == 0 ? na == 1 : nb == 1 && na != 1) continue;
            if (n++ >= GN_MAX_RANK) continue;
            sa.dim[sa.rank++] = k == 0 ? na : 1;
            sb.dim[sb.rank++] = k == 0 ? 1 : nb;
        }
    }
    if (n > GN_MAX_RANK)
        gni_fail(g, GN_ERROR_SHAPE, "gn_kron: the product has %d axes on the way, the most is %d", n, GN_MAX_RANK);
    if (n > GN_MAX_RANK || !gni_shape_ok(g, "gn_kron", a->dtype, &s)) return gni_end_scope(g, NULL);
    return gni_end_scope(g, gn_reshape(gn_mul(gn_reshape(a, sa), gn_reshape(b, sb)), s));
}

GPUNUM_API gn_array *gn_cross(gn_array *a, gn_array *b, int axis) {
    gn_array *in[2], *part[3];
    char ta[200], tb[200];
    in[0] = a;
    in[1] = b;
    gn_context *g = gni_begin_scope("gn_cross", in, 2);
    if (g == NULL) return NULL;
    const int ia = gni_axis(g, "gn_cross", axis, a->shape.rank),
              ib = ia < 0 ? -1 : gni_axis(g, "gn_cross", axis, b->shape.rank);
    if (ib < 0) return gni_end_scope(g, NULL);
    if (a->shape.dim[ia] != 3 || b->shape.dim[ib] != 3) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_cross: axis %d of %s or %s has not 3 elements", axis,
                 gni_shape_text(ta, sizeof ta, &a->shape), gni_shape_text(tb, sizeof tb, &b->shape));
        return gni_end_scope(g, NULL);
    }
    a = gn_move_axis(a, axis, -1);
    b = gn_move_axis(b, axis, -1);
    for (int i = 0; i < 3; i++) {
        const int next = (i + 1) % 3, last = (i + 2) % 3;
        part[i] = gn_sub(gn_mul(gn_slice(a, -1, next, next + 1, 1), gn_slice(b, -1, last, last + 1, 1)),
                         gn_mul(gn_slice(a, -1, last, last + 1, 1), gn_slice(b, -1, next, next + 1, 1)));
    }
    return gni_end_scope(g, gn_move_axis(gn_concat(part, 3, -1), -1, axis));
}

// ---- norms

// x to the power 1 / order; where x is 0 so is the gradient, as of gn_norm.
static gn_array *gni_root_of_order(gn_context *g, gn_array *x, double order) {
    if (x == NULL || order == 1.0) return x;
    if (!gni_tracks(g, &x, 1)) return gn_pow_s(x, 1.0 / order);
    gn_array *zero = gn_eq_s(x, 0.0);
    return gn_where(zero, gn_full_like(x, order > 0.0 ? 0.0 : GNI_INF),
                    gn_pow_s(gn_where(zero, gn_ones_like(x), x), 1.0 / order));
}

GPUNUM_API gn_array *gn_vector_norm(gn_array *a, gn_axes axes, double order) {
    gn_context *g = gni_begin_scope("gn_vector_norm", &a, 1);
    if (g == NULL) return NULL;
    if (order != order) gni_fail(g, GN_ERROR_ARGUMENT, "gn_vector_norm: the order is NaN");
    if (order != order) return gni_end_scope(g, NULL);
    if (order == 2.0) return gni_end_scope(g, gn_norm(a, axes));
    gn_array *x = gn_abs(gni_in_moments(a)), *y; // of numbers wider than integers, whose smallest one has no magnitude there
    if (x == NULL) return gni_end_scope(g, NULL);
    const gn_dtype t = gni_is_complex(a->dtype) ? x->dtype : gni_is_float(a->dtype) ? a->dtype : GN_F32;
    if (order == GNI_INF)
        y = gn_max(x, axes);
    else if (order == -GNI_INF)
        y = gn_min(x, axes);
    else if (order == 0.0)
        y = gn_cast(gn_count_nonzero(x, axes), t);
    else {
        gn_array *by = NULL; // what counts most: powers of ratios to that stay within the dtype's range
        if (fabs(order) >= 2.0 && gn_size(x) > 0) {
            by = (order > 0.0 ? gn_max : gn_min)(gn_detach(x), gn_axes_keep(axes));
            by = gn_where(gn_eq_s(gn_div(by, by), 1.0), by, gn_ones_like(by)); // 0, infinite or NaN: as it is
            x = gn_div(x, by);
        }
        if (order == 3.0) x = gn_mul(gn_square(x), x);
        else if (order != 1.0) x = gn_pow_s(order == 4.0 ? gn_square(x) : x, order == 4.0 ? 2.0 : order);
        y = gni_root_of_order(g, gn_sum(x, axes), order);
        if (by != NULL) y = gn_mul(y, gn_reshape(by, gn_shape_of(y)));
    }
    return gni_end_scope(g, gni_from_moments(y, t));
}

GPUNUM_API gn_array *gn_matrix_norm(gn_array *a, gn_norm_order order) {
    gn_context *g = gni_begin_scope("gn_matrix_norm", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if (!gni_is_matrix(g, "gn_matrix_norm", a)) return gni_end_scope(g, NULL);
    switch (order) {
    case GN_NORM_FROBENIUS: y = gn_norm(a, GN_AXES(-2, -1)); break;
    case GN_NORM_NUCLEAR: y = gn_sum(gn_svd(a, false, NULL, NULL), -1); break;
    case GN_NORM_2: y = gn_max(gn_svd(a, false, NULL, NULL), -1); break;
    case GN_NORM_MINUS_2: y = gn_min(gn_svd(a, false, NULL, NULL), -1); break;
    case GN_NORM_1: y = gn_max(gn_vector_norm(a, -2, 1.0), -1); break;
    case GN_NORM_MINUS_1: y = gn_min(gn_vector_norm(a, -2, 1.0), -1); break;
    case GN_NORM_INF: y = gn_max(gn_vector_norm(a, -1, 1.0), -1); break;
    case GN_NORM_MINUS_INF: y = gn_min(gn_vector_norm(a, -1, 1.0), -1); break;
    default: gni_fail(g, GN_ERROR_ARGUMENT, "gn_matrix_norm: %d is not a gn_norm_order", (int)order);
    }
    return gni_end_scope(g, y);
}

// ---- powers, singular values, least squares

GPUNUM_API gn_array *gn_matrix_power(gn_array *a, int64_t n) {
    gn_context *g = gni_begin_scope("gn_matrix_power", &a, 1);
    if (g == NULL) return NULL;
    if (!gni_is_square(g, "gn_matrix_power", a)) return gni_end_scope(g, NULL);
    const int64_t m = a->shape.dim[a->shape.rank - 1];
    if (n == 0 || n == 1)
        return gni_end_scope(g, gn_copy(n == 1 ? a : gn_broadcast_to(gn_eye(g, a->dtype, m, m, 0), a->shape)));
    gn_array *square = n < 0 ? gn_inv(a) : a, *y = NULL;
    for (uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n; left > 0 && square != NULL; left >>= 1) {
        if (left & 1) y = y != NULL ? gn_matmul(y, square) : square;
        if (left > 1) square = gn_matmul(square, square);
    }
    return gni_end_scope(g, square != NULL ? y : NULL);
}

// Scaling and squaring with the Pade approximation of degree 13, which is good for norms up to 5.37 (Higham 2005).
GPUNUM_API gn_array *gn_expm(gn_array *a) {
    static const double pade[] = {64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800.,
                                  129060195264000.,   10559470521600.,    670442572800.,     33522128640.,
                                  1323241920.,        40840800.,          960960.,           16380., 182., 1.};
    gn_context *g = gni_begin_scope("gn_expm", &a, 1);
    if (g == NULL) return NULL;
    if (!gni_is_square(g, "gn_expm", a) || !gni_may_wait(g, "gn_expm")) return gni_end_scope(g, NULL);
    gn_array *x = gni_in_moments(a), *power[4], *part[2], *times, *y;
    if (gni_elements(&a->shape) == 0) return gni_end_scope(g, gni_from_moments(gn_copy(x), a->dtype));
    g->no_grad++; // whatever the scale, the result is the same
    times = gn_ceil(gn_log2(gn_mul_s(gn_matrix_norm(x, GN_NORM_1), 1.0 / 5.37)));
    times = gn_eval(gn_maximum_s(gni_nan_as(times, gn_logical_not(gn_isfinite(times)), 0.0), 0.0));
    const double most = gn_item(gn_max(times, GN_ALL));
    gn_array *scale = gn_expand_dims(gn_exp2(gn_neg(times)), GN_AXES(-2, -1));
    g->no_grad--;
    x = gn_mul(x, scale);
    power[0] = x == NULL ? NULL : gn_eye(g, x->dtype, x->shape.dim[x->shape.rank - 1], x->shape.dim[x->shape.rank - 1], 0);
    power[1] = gn_matmul(x, x);
    power[2] = gn_matmul(power[1], power[1]);
    power[3] = gn_matmul(power[2], power[1]);
    for (int k = 0; k < 2; k++) { // even and odd powers
        gn_array *sum[2] = {NULL, NULL};
        for (int i = 0; i < 7; i++) {
            gn_array *term = gn_mul_s(power[i < 4 ? i : i - 3], pade[2 * i + k] / pade[0]);
            sum[i / 4] = i % 4 == 0 ? term : gn_add(sum[i / 4], term);
        }
        part[k] = gn_add(sum[0], gn_matmul(power[3], sum[1]));
    }
    part[1] = gn_matmul(x, part[1]);
    y = gn_solve(gn_sub(part[0], part[1]), gn_add(part[0], part[1]));
    for (int i = 0; i < most && y != NULL; i++) {
        gn_array *square = gn_matmul(y, y);
        y = a->shape.rank == 2 ? square : gn_where(gn_expand_dims(gn_gt_s(times, i), GN_AXES(-2, -1)), square, y);
    }
    return gni_end_scope(g, gni_from_moments(y, a->dtype));
}

GPUNUM_API gn_array *gn_eigvalsh(gn_array *a) {
    gn_context *g = gni_begin("gn_eigvalsh", &a, 1);
    return g == NULL ? NULL : (gn_scope_begin(g), gni_end_scope(g, gn_eigh(a, NULL)));
}

GPUNUM_API gn_array *gn_eigvals(gn_array *a) {
    gn_context *g = gni_begin("gn_eigvals", &a, 1);
    return g == NULL ? NULL : (gn_scope_begin(g), gni_end_scope(g, gn_eig(a, NULL)));
}

GPUNUM_API gn_array *gn_svdvals(gn_array *a) {
    gn_context *g = gni_begin("gn_svdvals", &a, 1);
    return g == NULL ? NULL : (gn_scope_begin(g), gni_end_scope(g, gn_svd(a, false, NULL, NULL)));
}

GPUNUM_API gn_array *gn_cond(gn_array *a) {
    gn_context *g = gni_begin_scope("gn_cond", &a, 1);
    if (g == NULL) return NULL;
    gn_array *s = gn_svd(a, false, NULL, NULL), *least = s == NULL ? NULL : gn_min(s, -1);
    gn_array *none = gn_eq_s(least, 0.0);
    return gni_end_scope(g, gni_nan_as(gn_div(gn_max(s, -1), gni_nan_as(least, none, 1.0)), none, GNI_INF));
}

// The part of the largest singular value that those which count exceed; below 0 stands for the larger extent times epsilon.
static double gni_rtol(const gn_array *a, gn_dtype t, double rtol) {
    const int rank = a->shape.rank, digits = gni_part_of(t) == GN_F64 ? 52 : t == GN_F16 ? 10 : t == GN_BF16 ? 7 : 23;
    return rtol >= 0.0 ? rtol : ldexp((double)GNI_MAX(a->shape.dim[rank - 1], a->shape.dim[rank - 2]), -digits);
}

// Which singular values count.
static gn_array *gni_singular(const gn_array *a, gn_array *s, double rtol) {
    if (s == NULL) return NULL;
    if (s->shape.dim[s->shape.rank - 1] == 0) return gn_gt_s(s, 0.0);
    return gn_gt(s, gn_mul_s(gn_max(s, GN_KEEP(-1)), gni_rtol(a, s->dtype, rtol)));
}

GPUNUM_API gn_array *gn_matrix_rank(gn_array *a, double rtol) {
    gn_context *g = gni_begin_scope("gn_matrix_rank", &a, 1);
    if (g == NULL) return NULL;
    g->no_grad++; // a count
    gn_array *y = gn_sum(gni_singular(a, gn_svd(a, false, NULL, NULL), rtol), -1);
    g->no_grad--;
    return gni_end_scope(g, y);
}

// Above the largest singular values by less than the 16th root of the order, and rounding.
static gn_array *gni_norm_bound(gn_array *x) {
    gn_array *size = gn_norm(x, GN_KEEP(GN_AXES(-2, -1))), *y = gn_div(x, size);
    y = gn_matmul(gni_adjoint(y), y);
    for (int i = 0; i < 2; i++) y = gn_matmul(y, y);
    return gn_mul(size, gn_pow_s(gn_norm(y, GN_KEEP(GN_AXES(-2, -1))), 0.125));
}

// The pseudo-inverse, or that of `a` times b, by QR; NULL unless all singular values surely count.
static gn_array *gni_by_triangle(gn_context *g, gn_array *a, gn_array *b, double rtol) {
    gn_array *r = NULL, *q;
    if (gn_size(a) == 0 || a->dtype == GN_F16 || a->dtype == GN_BF16) return NULL;
    const int64_t m = gn_dim(a, -2), n = gn_dim(a, -1), least = GNI_MIN(m, n);
    const bool wide = m < n;
    // Of many little ones a GPU has the values in one kernel; random square ones have conditions of some times their order.
    if (a->shape.rank > 2 && GNI_MAX(m, n) <= 128 && gni_reads_gpu(a)) return NULL;
    if (GNI_MAX(m, n) < 2 * least && (double)least * gni_rtol(a, a->dtype, -1.0) > 0.02) return NULL;
    q = gn_qr(wide ? gni_adjoint(a) : a, &r);
    if (r == NULL || !(gn_item(gn_min(gn_abs(gn_diagonal(r, 0)), GN_ALL)) > 0.0)) return NULL;
    gn_array *inverse = gn_solve_triangular(r, gn_eye(g, r->dtype, least, least, 0), false, false, false);
    const double condition = gn_item(gn_max(gn_mul(gni_norm_bound(r), gni_norm_bound(inverse)), GN_ALL));
    if (!(1.1 * condition * gni_rtol(a, r->dtype, rtol) < 1.0)) return NULL;
    if (b == NULL) return wide ? gn_matmul(q, gni_adjoint(inverse)) : gn_matmul(inverse, gni_adjoint(q));
    if (wide) return gn_matmul(q, gn_solve_triangular(gni_adjoint(r), b, true, false, false));
    return gn_solve_triangular(r, gn_matmul(gni_adjoint(q), b), false, false, false);
}

// The pseudo-inverse, or that of `a` times b: v diag(1 / s) (u^T b) of a = u diag(s) v^T over the singular values that count.
// Into *count, unless it is NULL, goes how many these are.
static gn_array *gni_pseudo(gn_context *g, gn_array *a, gn_array *b, double rtol, gn_array **count) {
    gn_array *u = NULL, *vt = NULL;
    g->no_grad++; // recorded as one op
    gn_array *whole = gni_by_triangle(g, a, b, rtol);
    if (whole != NULL) {
        gn_shape batch = a->shape;
        batch.rank -= 2;
        if (count != NULL) *count = gn_full(g, GN_I64, batch, (double)GNI_MIN(gn_dim(a, -2), gn_dim(a, -1)));
        g->no_grad--;
        return whole;
    }
    gn_array *s = gn_svd(a, false, &u, &vt), *counts = gni_singular(a, s, rtol);
    if (count != NULL) *count = gn_sum(counts, -1);
    gn_array *inverse = gn_where(counts, gn_recip(gn_where(counts, s, gn_ones_like(s))), gn_zeros_like(s));
    gn_array *right = gni_adjoint(u);
    if (b != NULL) right = gn_matmul(right, b);
    gn_array *y = gn_matmul(gni_adjoint(vt), gn_mul(gn_expand_dims(inverse, -1), right));
    g->no_grad--;
    return y;
}

// The gradient of a's pseudo-inverse p, where its rank stays (Golub and Pereyra 1973).
static gn_array *gni_pinv_gradient(gn_array *a, gn_array *p, gn_array *gp) {
    gn_array *pt = gni_adjoint(p), *gt = gni_adjoint(gp), *along = gn_matmul(gn_matmul(pt, gp), pt);
    gn_array *left = gn_matmul(gn_matmul(gt, p), pt), *right = gn_matmul(gn_matmul(pt, p), gt);
    left = gn_sub(left, gn_matmul(a, gn_matmul(p, left)));
    right = gn_sub(right, gn_matmul(gn_matmul(right, p), a));
    return gn_sub(gn_add(left, right), along);
}

static bool gni_back_pinv(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *a = node->in[0];
    gx[0] = gni_pinv_gradient(a, gn_pinv(a, node->real[0]), gy);
    return true;
}

GPUNUM_API gn_array *gn_pinv(gn_array *a, double rtol) {
    gn_context *g = gni_begin_scope("gn_pinv", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = gni_pseudo(g, a, NULL, rtol, NULL);
    gni_node *node = y != NULL && gni_tracks(g, &a, 1) ? gni_record(g, y, "gn_pinv", gni_back_pinv, &a, 1) : NULL;
    if (node != NULL) node->real[0] = rtol;
    return gni_end_scope(g, y);
}

// x = p b
static bool gni_back_lstsq(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *a = node->in[0], *b = node->in[1], *p = gn_pinv(a, node->real[0]);
    if (gni_wanted(node, 0))
        gx[0] = gni_unbroadcast(gni_pinv_gradient(a, p, gn_matmul(gy, gni_adjoint(b))), &a->shape);
    if (gni_wanted(node, 1)) gx[1] = gni_unbroadcast(gn_matmul(gni_adjoint(p), gy), &b->shape);
    return true;
}

GPUNUM_API gn_array *gn_lstsq(gn_array *a, gn_array *b, double rtol, gn_array **residuals, gn_array **matrix_rank) {
    gn_array *in[2], *y = NULL, *squares = NULL, *count = NULL;
    if (residuals != NULL) *residuals = NULL;
    if (matrix_rank != NULL) *matrix_rank = NULL;
    char ta[200], tb[200];
    in[0] = a;
    in[1] = b;
    gn_context *g = gni_begin_scope("gn_lstsq", in, 2);
    if (g == NULL) return NULL;
    const int rank = b->shape.rank;
    if (!gni_is_matrix(g, "gn_lstsq", a)) return gni_end_scope(g, NULL);
    if (rank == 0 || b->shape.dim[GNI_MAX(rank - 2, 0)] != a->shape.dim[a->shape.rank - 2]) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_lstsq: %s and %s: the rows are not as many",
                 gni_shape_text(ta, sizeof ta, &a->shape), gni_shape_text(tb, sizeof tb, &b->shape));
        return gni_end_scope(g, NULL);
    }
    gn_dtype t = gn_promote(a->dtype, b->dtype); // both, or singular values have the precision of a's
    if (!gni_is_float(t) && !gni_is_complex(t)) t = GN_F32;
    for (int i = 0; i < 2; i++) in[i] = gni_as(in[i], t);
    a = in[0];
    if (rank == 1) in[1] = gn_expand_dims(in[1], 1);
    if (a != NULL && in[1] != NULL) y = gni_pseudo(g, a, in[1], rtol, matrix_rank != NULL ? &count : NULL);
    gni_node *node = y != NULL && gni_tracks(g, in, 2) ? gni_record(g, y, "gn_lstsq", gni_back_lstsq, in, 2) : NULL;
    if (node != NULL) node->real[0] = rtol;
    if (y != NULL && residuals != NULL) {
        squares = gn_sub(gn_matmul(a, y), in[1]);
        squares = gn_sum(gni_is_complex(y->dtype) ? gn_real(gn_mul(squares, gn_conj(squares))) : gn_square(squares), -2);
        squares = gn_keep(rank == 1 ? gn_squeeze(squares, -1) : squares);
    }
    if (count != NULL) count = gn_keep(count);
    y = gni_end_scope(g, rank == 1 ? gn_squeeze(y, -1) : y);
    if (y == NULL) {
        gn_release(squares);
        gn_release(count);
        return NULL;
    }
    if (residuals != NULL) *residuals = squares;
    if (matrix_rank != NULL) *matrix_rank = count;
    return y;
}

// ---- determinants by their logarithm

static bool gni_back_slogdet(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_mul(gn_expand_dims(gy, GN_AXES(-2, -1)), gni_transposed(gn_inv(node->in[0])));
    return true;
}

// Both results or none.
static gn_array *gni_slogdet_end(gn_context *g, gn_array *sign, gn_array *log, gn_array **logdet) {
    if (logdet != NULL) *logdet = gn_keep(log);
    sign = gni_end_scope(g, sign);
    if (sign != NULL || logdet == NULL || *logdet == NULL) return sign;
    gn_release(*logdet);
    *logdet = NULL;
    return NULL;
}

GPUNUM_API gn_array *gn_slogdet(gn_array *a, gn_array **logdet) {
    if (logdet != NULL) *logdet = NULL;
    gn_context *g = gni_begin_scope("gn_slogdet", &a, 1);
    if (g == NULL) return NULL;
    if (gni_is_complex(a->dtype)) {
        gn_array *size = NULL, *turn = gni_complex_det(g, "gn_slogdet", a, &size);
        return gni_slogdet_end(g, turn, size, logdet);
    }
    g->no_grad++; // the sign has no slope, the logarithm one of its own
    gn_array *x = gni_in_moments(a), *both = x != NULL ? gni_log_det(g, x) : NULL;
    gn_array *det = gn_squeeze(gn_slice(both, -1, 0, 1, 1), -1), *exponent = gn_squeeze(gn_slice(both, -1, 1, 2, 1), -1);
    gn_array *log = gni_from_moments(gn_add(gn_log(gn_abs(det)), gn_mul_s(exponent, GNI_LN2)), a->dtype);
    g->no_grad--;
    if (log != NULL && gni_tracks(g, &a, 1)) gni_record(g, log, "gn_slogdet", gni_back_slogdet, &a, 1);
    return gni_slogdet_end(g, gni_from_moments(gn_sign(det), a->dtype), log, logdet);
}
