// >>linalg_ops
// Diagonals and triangles, einsum and its relatives, as compositions of public calls.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/macros.h"
#include "../ops/create.h"
#include "../ops/matmul.h"
#endif

// ---- diagonals and triangles

static gn_array *gni_diagonal_view(gn_context *g, const char *fn, gn_array *a, int row, int column,
                                   int64_t k);

// Elements of the diagonal j - i = k of an (n, m) matrix; 0 if it lies outside.
static int64_t gni_diagonal_length(int64_t n, int64_t m, int64_t k) {
    if (k >= 0) return k >= m ? 0 : GNI_MIN(n, m - k);
    return k <= -n ? 0 : GNI_MIN(n + k, m);
}

static bool gni_back_scatter_diagonal(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    if (gni_begin("gn_diagonal", &gy, 1) == NULL) return false;
    gx[0] = gni_end(g, gni_diagonal_view(g, "gn_diagonal", gy, (int)node->param[0],
                                         (int)node->param[1], node->param[2]));
    return true;
}

// Zeros of shape `s` with x on diagonal k of the axes `row` and `column`: the opposite of the view.
static gn_array *gni_scatter_diagonal(gn_context *g, gn_array *x, const gn_shape *s, int row,
                                      int column, int64_t k) {
    if (gni_begin("gn_diagonal", &x, 1) == NULL) return NULL;
    gn_array *y = gni_make_full(g, "gn_diagonal", x->dtype, s, 0.0);
    bool ok = y != NULL && gni_materialize(g, y);
    if (ok && gni_elements(&x->shape) > 0) {
        int64_t stride[GN_MAX_RANK];
        int n = 0;
        for (int i = 0; i < s->rank; i++)
            if (i != column) stride[n++] = y->stride[i] + (i == row ? y->stride[column] : 0);
        int64_t offset = k >= 0 ? k * y->stride[column] : -k * y->stride[row];
        ok = gni_copy_into(g, y->buf, y->dtype, offset, stride, x);
    }
    gni_note(ok ? gni_record(g, y, "gn_diagonal", gni_back_scatter_diagonal, &x, 1) : NULL, row, column, k);
    return gni_end(g, y);
}

static bool gni_back_diagonal(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gx[0] = gni_scatter_diagonal(g, gy, &node->shape, (int)node->param[0], (int)node->param[1],
                                 node->param[2]);
    return true;
}

// Diagonal k of two axes as a view; it takes the place of the axis `row`, the axis `column` goes.
static gn_array *gni_diagonal_view(gn_context *g, const char *fn, gn_array *a, int row, int column,
                                   int64_t k) {
    if (!gni_materialize(g, a)) return NULL;
    gn_shape s = gn_shape_from(0, NULL);
    int64_t stride[GN_MAX_RANK];
    int64_t length = gni_diagonal_length(a->shape.dim[row], a->shape.dim[column], k);
    for (int i = 0; i < a->shape.rank; i++) {
        if (i == column) continue;
        stride[s.rank] = a->stride[i] + (i == row ? a->stride[column] : 0);
        s.dim[s.rank++] = i == row ? length : a->shape.dim[i];
    }
    int64_t offset = length == 0 ? 0 : k >= 0 ? k * a->stride[column] : -k * a->stride[row];
    gn_array *y = gni_array_view(g, fn, a, &s, stride, a->offset + offset);
    gni_node *node = gni_record(g, y, fn, gni_back_diagonal, &a, 1);
    gni_note(node, row, column, k);
    if (node != NULL) node->shape = a->shape;
    return y;
}

// Whether the array has the rank of a matrix or of a batch of them; false after gni_fail.
static bool gni_is_matrix(gn_context *g, const char *fn, const gn_array *a) {
    char text[200];
    if (a->shape.rank >= 2) return true;
    return gni_fail(g, GN_ERROR_SHAPE, "%s: %s is not a matrix or a batch of matrices", fn,
                    gni_shape_text(text, sizeof text, &a->shape));
}

static bool gni_is_square(gn_context *g, const char *fn, const gn_array *a) {
    char text[200];
    int rank = a->shape.rank;
    if (!gni_is_matrix(g, fn, a)) return false;
    if (a->shape.dim[rank - 1] == a->shape.dim[rank - 2]) return true;
    return gni_fail(g, GN_ERROR_SHAPE, "%s: %s: the matrices are not square", fn,
                    gni_shape_text(text, sizeof text, &a->shape));
}

static gn_array *gni_transposed(gn_array *a) { return gn_swap_axes(a, -1, -2); }

// The same conjugated.
static gn_array *gni_adjoint(gn_array *a) {
    return a != NULL && gni_is_complex(a->dtype) ? gn_conj(gni_transposed(a)) : gni_transposed(a);
}

static gn_array *gni_diagonal(const char *fn, gn_array *a, int64_t k) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    int rank = a->shape.rank;
    gn_array *y =
        gni_is_matrix(g, fn, a) ? gni_diagonal_view(g, fn, a, rank - 2, rank - 1, k) : NULL;
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_diagonal(gn_array *a, int64_t k) {
    return gni_diagonal("gn_diagonal", a, k);
}

GPUNUM_API gn_array *gn_diag(gn_array *a, int64_t k) {
    gn_context *g = gni_begin_scope("gn_diag", &a, 1);
    if (g == NULL) return NULL;
    gn_shape s = GN_SHAPE(0, 0);
    char text[200];
    if (a->shape.rank == 2) return gni_end_scope(g, gn_copy(gni_diagonal("gn_diag", a, k)));
    if (a->shape.rank == 1) {
        const int64_t n = a->shape.dim[0];
        const uint64_t away = k < 0 ? 0 - (uint64_t)k : (uint64_t)k;
        s.dim[0] = s.dim[1] = away > (uint64_t)(INT64_MAX - n) ? INT64_MAX : n + (int64_t)away;
        if (gni_shape_ok(g, "gn_diag", a->dtype, &s)) return gni_end_scope(g, gni_scatter_diagonal(g, a, &s, 0, 1, k));
    } else {
        gni_fail(g, GN_ERROR_SHAPE, "gn_diag: %s is neither 1-d nor 2-d", gni_shape_text(text, sizeof text, &a->shape));
    }
    return gni_end_scope(g, NULL);
}

GPUNUM_API gn_array *gn_trace(gn_array *a, int64_t k) {
    gn_context *g = gni_begin_scope("gn_trace", &a, 1);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gn_sum(gni_diagonal("gn_trace", a, k), -1));
}

// Elements with j - i <= k (lower) or j - i >= k; the others become 0.
static gn_array *gni_triangle(const char *fn, gn_array *a, int64_t k, bool lower) {
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if (gni_elements(&a->shape) == 0 && a->shape.rank >= 2) {
        y = gn_reshape(a, a->shape);
    } else if (gni_is_matrix(g, fn, a)) {
        int64_t n = a->shape.dim[a->shape.rank - 2], m = a->shape.dim[a->shape.rank - 1];
        k = GNI_MAX(-n, GNI_MIN(k, m));
        gn_dtype t = n < INT32_MAX / 2 && m < INT32_MAX / 2 ? GN_I32 : GN_I64;
        gn_array *i = gn_expand_dims(gn_arange(g, t, (double)k, (double)(k + n), 1.0), -1);
        gn_array *j = gn_arange(g, t, 0.0, (double)m, 1.0);
        y = gn_where(lower ? gn_le(j, i) : gn_ge(j, i), a, gn_scalar(g, a->dtype, 0.0));
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_tril(gn_array *a, int64_t k) { return gni_triangle("gn_tril", a, k, true); }
GPUNUM_API gn_array *gn_triu(gn_array *a, int64_t k) {
    return gni_triangle("gn_triu", a, k, false);
}

// ---- contraction of two arrays whose axes have labels

// Labels 0 to 51 are letters, those from GNI_DOTS on the dimensions of an ellipsis.
enum { GNI_DOTS = 52, GNI_LABELS = GNI_DOTS + GN_MAX_RANK };

typedef struct gni_term {
    gn_array *a; // NULL: something failed
    int rank;
    int label[GN_MAX_RANK]; // of each axis, all different
} gni_term;

static uint64_t gni_label_bit(int label) { return (uint64_t)1 << label; }

static uint64_t gni_term_labels(const gni_term *t) {
    uint64_t set = 0;
    for (int i = 0; i < t->rank; i++) set |= gni_label_bit(t->label[i]);
    return set;
}

static int gni_term_axis(const gni_term *t, int label) {
    for (int i = 0; i < t->rank; i++)
        if (t->label[i] == label) return i;
    return -1;
}

// Sums over the axes whose labels are in `set`. Integers keep their dtype, as in NumPy's einsum.
static void gni_term_sum(gni_term *t, uint64_t set) {
    uint32_t axes = 0;
    int n = 0;
    for (int i = 0; i < t->rank; i++) {
        if (set & gni_label_bit(t->label[i]))
            axes |= 1u << i;
        else
            t->label[n++] = t->label[i];
    }
    if (axes == 0 || t->a == NULL) return;
    gn_dtype dtype = t->a->dtype;
    t->a = gn_sum(t->a, gni_axes_of(axes));
    t->rank = n;
    if (t->a != NULL && t->a->dtype != dtype) t->a = gn_cast(t->a, dtype);
}

// Brings the axes into the order of `labels`; those that the term has not become axes of size 1.
static gn_array *gni_term_arranged(const gni_term *t, const int *labels, int count) {
    int order[GN_MAX_RANK], n = 0;
    gn_shape s = gn_shape_from(0, NULL);
    if (t->a == NULL || count > GN_MAX_RANK) return NULL;
    for (int i = 0; i < count; i++) {
        int axis = gni_term_axis(t, labels[i]);
        if (axis >= 0) order[n++] = axis;
        s.dim[s.rank++] = axis >= 0 ? t->a->shape.dim[axis] : 1;
    }
    bool as_is = true;
    for (int i = 0; i < n; i++) as_is = as_is && order[i] == i;
    gn_array *y = as_is ? t->a : gn_permute_axes(t->a, order, n);
    return y == NULL || gni_same_shape(&y->shape, &s) ? y : gn_reshape(y, s);
}

// What the axes of two terms are to their product, and how far they reach.
typedef struct gni_pair {
    int batch[GN_MAX_RANK], left[GN_MAX_RANK], right[GN_MAX_RANK], inner[GN_MAX_RANK];
    int n_batch, n_left, n_right, n_inner;
} gni_pair;

// An axis of size 1 that stands against a larger one repeats: it is left out, and if the product sums over
// that label, the other term is summed beforehand.
static void gni_pair_broadcast(gni_term *a, gni_term *b, uint64_t keep) {
    uint64_t both = gni_term_labels(a) & gni_term_labels(b);
    for (int label = 0; label < GNI_LABELS && a->a != NULL && b->a != NULL; label++) {
        if (!(both & gni_label_bit(label))) continue;
        int64_t na = a->a->shape.dim[gni_term_axis(a, label)],
                nb = b->a->shape.dim[gni_term_axis(b, label)];
        if (na == nb) continue;
        gni_term_sum(na == 1 ? a : b, gni_label_bit(label));
        if (!(keep & gni_label_bit(label))) gni_term_sum(na == 1 ? b : a, gni_label_bit(label));
    }
}

static void gni_pair_sort(gni_pair *p, const gni_term *a, const gni_term *b, uint64_t keep) {
    memset(p, 0, sizeof *p);
    for (int i = 0; i < a->rank; i++) {
        int label = a->label[i];
        if (gni_term_axis(b, label) < 0)
            p->left[p->n_left++] = label;
        else if (keep & gni_label_bit(label))
            p->batch[p->n_batch++] = label;
        else
            p->inner[p->n_inner++] = label;
    }
    for (int i = 0; i < b->rank; i++)
        if (gni_term_axis(a, b->label[i]) < 0) p->right[p->n_right++] = b->label[i];
}

// The term as (batch..., rows, columns), each of the two made of any number of axes.
static gn_array *gni_pair_operand(const gni_term *t, const gni_pair *p, const int *rows, int n_rows,
                                  const int *columns, int n_columns) {
    int order[3 * GN_MAX_RANK], n = 0;
    for (int i = 0; i < p->n_batch; i++) order[n++] = p->batch[i];
    for (int i = 0; i < n_rows; i++) order[n++] = rows[i];
    for (int i = 0; i < n_columns; i++) order[n++] = columns[i];
    gn_array *y = gni_term_arranged(t, order, n);
    if (y == NULL) return NULL;
    int merged = p->n_batch > GN_MAX_RANK - 2 ? p->n_batch - 1 : 0; // batch axes that become one
    gn_shape s = gn_shape_from(0, NULL);
    while (s.rank < p->n_batch - merged + 2) s.dim[s.rank++] = 1;
    for (int i = 0; i < n; i++) {
        int at =
            i < p->n_batch ? GNI_MAX(i - merged, 0) : s.rank - (i < p->n_batch + n_rows ? 2 : 1);
        const int64_t extent = y->shape.dim[i];
        // Without elements it may not fit; what is made of it then has none either, or too many.
        s.dim[at] = extent > 0 && s.dim[at] > INT64_MAX / extent ? INT64_MAX : s.dim[at] * extent;
    }
    return gni_same_shape(&y->shape, &s) ? y : gn_reshape(y, s);
}

static gn_array *gni_pair_matmul(const gni_term *a, const gni_term *b, const gni_pair *p,
                                 const gn_shape *s) {
    gn_array *x = gni_pair_operand(a, p, p->left, p->n_left, p->inner, p->n_inner);
    gn_array *y = gn_matmul(x, gni_pair_operand(b, p, p->inner, p->n_inner, p->right, p->n_right));
    return y == NULL || gni_same_shape(&y->shape, s) ? y : gn_reshape(y, *s);
}

// Without labels to sum over, or with nothing else than those, the product is elementwise and stays lazy.
static gn_array *gni_pair_mul(const gni_term *a, const gni_term *b, const gni_pair *p,
                              const int *labels, int count) {
    int all[2 * GN_MAX_RANK];
    uint32_t axes = 0;
    memcpy(all, labels, sizeof(int) * (size_t)count);
    for (int i = 0; i < p->n_inner; i++) {
        axes |= 1u << count;
        all[count++] = p->inner[i];
    }
    gn_array *x = gni_term_arranged(a, all, count);
    gn_array *y = gn_mul(x, gni_term_arranged(b, all, count));
    return axes != 0 ? gn_sum(y, gni_axes_of(axes)) : y;
}

// The product of two terms, summed over the labels that they share and that are not in `keep`.
static gni_term gni_contract(gn_context *g, const char *fn, gni_term a, gni_term b, uint64_t keep) {
    gni_term y;
    gni_pair p;
    memset(&y, 0, sizeof y);
    gni_pair_broadcast(&a, &b, keep);
    if (a.a == NULL || b.a == NULL) return y;
    gni_pair_sort(&p, &a, &b, keep);
    int labels[3 * GN_MAX_RANK], n = 0;
    for (int i = 0; i < p.n_batch; i++) labels[n++] = p.batch[i];
    for (int i = 0; i < p.n_left; i++) labels[n++] = p.left[i];
    for (int i = 0; i < p.n_right; i++) labels[n++] = p.right[i];
    if (n > GN_MAX_RANK) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: a product of two operands has rank %d, the limit is %d",
                 fn, n, GN_MAX_RANK);
        return y;
    }
    gn_shape s = gn_shape_from(0, NULL);
    for (int i = 0; i < n; i++) {
        bool right = i >= p.n_batch + p.n_left;
        s.dim[s.rank++] = right ? b.a->shape.dim[gni_term_axis(&b, labels[i])]
                                : a.a->shape.dim[gni_term_axis(&a, labels[i])];
    }
    gn_dtype t = gn_promote(a.a->dtype, b.a->dtype);
    bool narrow = t == GN_F16 || t == GN_BF16; // gn_matmul sums these in float32
    bool dots = p.n_left + p.n_right == 0 && n + p.n_inner <= GN_MAX_RANK && !narrow;
    y.rank = n;
    memcpy(y.label, labels, sizeof(int) * (size_t)n);
    y.a = p.n_inner == 0 || dots ? gni_pair_mul(&a, &b, &p, labels, n)
                                 : gni_pair_matmul(&a, &b, &p, &s);
    if (y.a != NULL && y.a->dtype != t) y.a = gn_cast(y.a, t);
    return y;
}

// ---- products

GPUNUM_API gn_array *gn_outer(gn_array *a, gn_array *b) {
    gn_context *g = gni_begin_pair("gn_outer", a, b);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gn_mul(gn_reshape(a, GN_SHAPE(-1, 1)), gn_reshape(b, GN_SHAPE(1, -1))));
}

// Axes of one operand of a tensordot, from 0 on; false after gni_fail.
static bool gni_tensordot_axes(gn_context *g, const gn_array *a, const int *axes, int count,
                               bool first, int *out) {
    int rank = a->shape.rank;
    if (count < 0 || count > rank)
        return gni_fail(g, GN_ERROR_ARGUMENT, "gn_tensordot: %d axes of an array of rank %d", count, rank);
    for (int i = 0; i < count; i++) {
        out[i] = axes != NULL ? gni_axis(g, "gn_tensordot", axes[i], rank)
                 : first      ? rank - count + i
                              : i;
        if (out[i] < 0) return false;
        for (int k = 0; k < i; k++) {
            if (out[k] != out[i]) continue;
            return gni_fail(g, GN_ERROR_ARGUMENT, "gn_tensordot: axis %d is named twice", out[i]);
        }
    }
    return true;
}

static gn_array *gni_tensordot(gn_context *g, gn_array *a, gn_array *b, const int *at_a,
                               const int *at_b, int count) {
    gni_term ta, tb;
    uint64_t keep = 0;
    char text_a[200], text_b[200];
    memset(&ta, 0, sizeof ta);
    memset(&tb, 0, sizeof tb);
    ta.a = a;
    tb.a = b;
    ta.rank = a->shape.rank;
    tb.rank = b->shape.rank;
    for (int i = 0; i < ta.rank; i++) ta.label[i] = i;
    for (int i = 0; i < tb.rank; i++) tb.label[i] = GN_MAX_RANK + i;
    for (int i = 0; i < count; i++) {
        int64_t n = a->shape.dim[at_a[i]], m = b->shape.dim[at_b[i]];
        tb.label[at_b[i]] = at_a[i];
        if (n == m) continue;
        gni_fail(g, GN_ERROR_SHAPE,
                 "gn_tensordot: %s x %s: axes %d and %d have %lld and %lld elements",
                 gni_shape_text(text_a, sizeof text_a, &a->shape),
                 gni_shape_text(text_b, sizeof text_b, &b->shape), at_a[i], at_b[i], (long long)n,
                 (long long)m);
        return NULL;
    }
    keep = (gni_term_labels(&ta) | gni_term_labels(&tb)) &
           ~(gni_term_labels(&ta) & gni_term_labels(&tb));
    return gni_contract(g, "gn_tensordot", ta, tb, keep).a;
}

GPUNUM_API gn_array *gn_tensordot(gn_array *a, gn_array *b, const int *a_axes, const int *b_axes,
                                  int count) {
    gn_array *in[2] = {a, b}, *y = NULL;
    int at_a[GN_MAX_RANK] = {0}, at_b[GN_MAX_RANK] = {0};
    gn_context *g = gni_begin_scope("gn_tensordot", in, 2);
    if (g == NULL) return NULL;
    if (gni_tensordot_axes(g, a, a_axes, count, true, at_a) &&
        gni_tensordot_axes(g, b, b_axes, count, false, at_b))
        y = gni_tensordot(g, a, b, at_a, at_b, count);
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_dot(gn_array *a, gn_array *b) {
    gn_array *y = NULL;
    gn_context *g = gni_begin_pair("gn_dot", a, b);
    if (g == NULL) return NULL;
    int ra = a->shape.rank, rb = b->shape.rank, at = rb >= 2 ? rb - 2 : 0;
    char ta[200], tb[200];
    if (ra == 0 || rb == 0) {
        y = gn_mul(a, b);
    } else if (a->shape.dim[ra - 1] != b->shape.dim[at]) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_dot: %s x %s: %lld and %lld elements are summed over",
                 gni_shape_text(ta, sizeof ta, &a->shape), gni_shape_text(tb, sizeof tb, &b->shape),
                 (long long)a->shape.dim[ra - 1], (long long)b->shape.dim[at]);
    } else if (rb <= 2) {
        y = gn_matmul(a, b);
    } else {
        int at_a[1] = {ra - 1};
        y = gni_tensordot(g, a, b, at_a, &at, 1);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_vecdot(gn_array *a, gn_array *b, int axis) {
    gn_context *g = gni_begin_pair("gn_vecdot", a, b);
    if (g == NULL) return NULL;
    char ta[200], tb[200];
    const int ra = a->shape.rank, rb = b->shape.rank, rank = GNI_MAX(ra, rb);
    const gn_dtype t = gn_promote(a->dtype, b->dtype);
    axis = gni_axis(g, "gn_vecdot", axis, rank);
    if (axis < 0) return gni_end_scope(g, NULL);
    const int ia = axis - rank + ra, ib = axis - rank + rb;
    if (ia < 0 || ib < 0 || a->shape.dim[ia] != b->shape.dim[ib]) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_vecdot: %s and %s: axis %d is not of one length",
                 gni_shape_text(ta, sizeof ta, &a->shape), gni_shape_text(tb, sizeof tb, &b->shape), axis);
        return gni_end_scope(g, NULL);
    }
    gn_array *y = gni_adopt(g, gni_pair_dot(g, "gn_vecdot", a, b, true));
    if (y == NULL && !g->call_failed) y = gn_sum(gn_mul(gn_conj(a), b), axis);
    return gni_end_scope(g, y != NULL && y->dtype != t ? gn_cast(y, t) : y);
}

// ---- einsum

typedef struct gni_einsum {
    gn_context *g;
    const char *text;
    int count; // terms that are left
    gni_term *term;
    int dots;                // dimensions of the ellipsis
    int64_t dim[GNI_LABELS]; // extent of each label, 0 if it has none yet
    int seen[GNI_LABELS];    // how often the operands name it
    int out[GN_MAX_RANK], n_out;
    uint64_t out_set;
} gni_einsum;

static bool gni_einsum_fail(const gni_einsum *e, const char *format, ...) GNI_PRINTF(2, 3);
static bool gni_einsum_fail(const gni_einsum *e, const char *format, ...) {
    char why[200];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return gni_fail(e->g, GN_ERROR_ARGUMENT, "gn_einsum: \"%.100s\": %s", e->text, why);
}

static int gni_letter(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    return -1;
}

static char gni_letter_of(int label) {
    return label < 26 ? (char)('A' + label) : label < GNI_DOTS ? (char)('a' + label - 26) : '.';
}

// One operand's subscripts, or the result's: labels of the letters in order. *dots is where the ellipsis
// stands among them, -1 without one. Returns how many letters, or -1 after gni_fail.
static int gni_einsum_letters(const gni_einsum *e, const char **at, int *labels, int *dots) {
    int n = 0;
    *dots = -1;
    for (;; (*at)++) {
        const char *c = *at;
        if (*c == 0 || *c == ',' || (c[0] == '-' && c[1] == '>')) return n;
        if (*c == ' ' || *c == '\t') continue;
        if (*c == '.') {
            if (c[1] != '.' || c[2] != '.' || *dots >= 0) {
                gni_einsum_fail(e, "a point that is not part of one ellipsis");
                return -1;
            }
            *dots = n;
            *at += 2;
        } else if (gni_letter(*c) < 0) {
            gni_einsum_fail(e, "'%c' is neither a letter nor ',' nor \"->\"", *c);
            return -1;
        } else if (n == GN_MAX_RANK) {
            gni_einsum_fail(e, "more than %d letters in one term", GN_MAX_RANK);
            return -1;
        } else {
            labels[n++] = gni_letter(*c);
        }
    }
}

// Takes an axis of `label` in: its extent, and the diagonal where the operand has that label already.
static bool gni_einsum_axis(gni_einsum *e, gni_term *t, int index, int axis, int label) {
    int64_t n = t->a->shape.dim[axis];
    int before = gni_term_axis(t, label);
    if (before >= 0) {
        int64_t m = t->a->shape.dim[before];
        if (n != m)
            return gni_einsum_fail(e, "'%c' stands for %lld and %lld elements of operand %d",
                                   gni_letter_of(label), (long long)m, (long long)n, index + 1);
        if (gni_begin("gn_einsum", &t->a, 1) == NULL) return false;
        t->a = gni_end(e->g, gni_diagonal_view(e->g, "gn_einsum", t->a, before, axis, 0));
        return t->a != NULL;
    }
    if (e->dim[label] < 0 || e->dim[label] == 1) e->dim[label] = n;
    if (n != e->dim[label] && n != 1)
        return gni_einsum_fail(e, "'%c' stands for %lld elements, and for %lld in operand %d",
                               gni_letter_of(label), (long long)e->dim[label], (long long)n,
                               index + 1);
    t->label[t->rank++] = label;
    e->seen[label]++;
    return true;
}

static bool gni_einsum_operand(gni_einsum *e, int index, const int *labels, int n, int dots) {
    gni_term *t = &e->term[index];
    int rank = t->a->shape.rank, more = rank - n;
    if (more < 0 || (dots < 0 && more > 0))
        return gni_einsum_fail(e, "operand %d has rank %d, its subscripts name %d axes", index + 1,
                               rank, n);
    e->dots = GNI_MAX(e->dots, more);
    for (int i = 0, axis = 0; i < rank; i++) {
        int label = i < dots || dots < 0 ? labels[i]
                    : i < dots + more    ? GNI_LABELS - more + (i - dots)
                                         : labels[i - more];
        int held = t->rank;
        if (!gni_einsum_axis(e, t, index, axis, label)) return false;
        if (t->rank > held) axis++;
    }
    return true;
}

// What stands behind "->", or without that the letters that are named once, in order.
static bool gni_einsum_output(gni_einsum *e, const char *at, const int *implicit) {
    int labels[GN_MAX_RANK], n = 0, dots = 0, named[GNI_LABELS] = {0};
    if (implicit == NULL) {
        n = gni_einsum_letters(e, &at, labels, &dots);
        if (n < 0) return false;
        if (*at != 0) return gni_einsum_fail(e, "the result has more than one term");
        if (dots < 0 && e->dots > 0)
            return gni_einsum_fail(e, "the result has no ellipsis for %d axes", e->dots);
    } else {
        for (int label = 0; label < GNI_DOTS; label++) {
            if (implicit[label] != 1) continue;
            if (n == GN_MAX_RANK)
                return gni_einsum_fail(e, "the result has more than %d axes", GN_MAX_RANK);
            labels[n++] = label;
        }
    }
    if (n + e->dots > GN_MAX_RANK)
        return gni_einsum_fail(e, "the result has more than %d axes", GN_MAX_RANK);
    for (int i = 0; i <= n; i++) {
        for (int k = 0; k < e->dots && i == dots; k++)
            e->out[e->n_out++] = GNI_LABELS - e->dots + k;
        if (i == n) break;
        if (e->seen[labels[i]] == 0)
            return gni_einsum_fail(e, "no operand has '%c'", gni_letter_of(labels[i]));
        if (named[labels[i]]++)
            return gni_einsum_fail(e, "the result names '%c' twice", gni_letter_of(labels[i]));
        e->out[e->n_out++] = labels[i];
    }
    for (int i = 0; i < e->n_out; i++) e->out_set |= gni_label_bit(e->out[i]);
    return true;
}

static bool gni_einsum_parse(gni_einsum *e) {
    const char *at = e->text;
    int named[GNI_LABELS] = {0};
    for (int i = 0; i < GNI_LABELS; i++) e->dim[i] = -1;
    for (int i = 0;; i++, at++) {
        int labels[GN_MAX_RANK], dots, n = gni_einsum_letters(e, &at, labels, &dots);
        if (n < 0) return false;
        if (i == e->count)
            return gni_einsum_fail(e, "names more operands than the %d given", e->count);
        for (int k = 0; k < n; k++) named[labels[k]]++;
        if (!gni_einsum_operand(e, i, labels, n, dots)) return false;
        if (*at == ',') continue;
        if (i + 1 < e->count)
            return gni_einsum_fail(e, "names %d operands, %d are given", i + 1, e->count);
        return *at == 0 ? gni_einsum_output(e, at, named) : gni_einsum_output(e, at + 2, NULL);
    }
}

// Labels that the result or a term other than i and j needs.
static uint64_t gni_einsum_needed(const gni_einsum *e, int i, int j) {
    uint64_t set = e->out_set;
    for (int k = 0; k < e->count; k++)
        if (k != i && k != j) set |= gni_term_labels(&e->term[k]);
    return set;
}

static double gni_einsum_volume(const gni_einsum *e, uint64_t set) {
    double n = 1.0;
    for (int label = 0; label < GNI_LABELS; label++)
        if (set & gni_label_bit(label)) n *= (double)e->dim[label];
    return n;
}

// Multiplies the two terms whose product grows the least over what they hold themselves; of those the
// cheapest pair.
static void gni_einsum_step(gni_einsum *e) {
    int best_i = 0, best_j = 1;
    double best = 0.0, best_work = 0.0;
    for (int i = 0; i < e->count; i++) {
        for (int j = i + 1; j < e->count; j++) {
            uint64_t a = gni_term_labels(&e->term[i]), b = gni_term_labels(&e->term[j]);
            double work = gni_einsum_volume(e, a | b);
            double growth = gni_einsum_volume(e, (a | b) & gni_einsum_needed(e, i, j)) -
                            gni_einsum_volume(e, a) - gni_einsum_volume(e, b);
            bool first = i == 0 && j == 1;
            if (!first && (growth > best || (growth == best && work >= best_work))) continue;
            best = growth;
            best_work = work;
            best_i = i;
            best_j = j;
        }
    }
    uint64_t keep = gni_einsum_needed(e, best_i, best_j);
    e->term[best_i] = gni_contract(e->g, "gn_einsum", e->term[best_i], e->term[best_j], keep);
    e->count--;
    for (int k = best_j; k < e->count; k++) e->term[k] = e->term[k + 1];
}

static gn_array *gni_einsum_run(gni_einsum *e) {
    for (int i = 0; i < e->count; i++)
        gni_term_sum(&e->term[i], gni_term_labels(&e->term[i]) & ~gni_einsum_needed(e, i, i));
    while (e->count > 1 && !e->g->call_failed) gni_einsum_step(e);
    return e->g->call_failed ? NULL : gni_term_arranged(&e->term[0], e->out, e->n_out);
}

GPUNUM_API gn_array *gn_einsum_list(gn_context *g, const char *subscripts, gn_array *const *arrays,
                                    int count) {
    GNI_ZEROED(gni_einsum, e);
    if (g == NULL || arrays == NULL || count < 1 || subscripts == NULL) {
        if (!gni_begin_context("gn_einsum", g)) return NULL;
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_einsum: no %s",
                 subscripts == NULL ? "subscripts" : "operands");
        return gni_end(g, NULL);
    }
    gn_context *home = gni_begin("gn_einsum", arrays, count);
    if (home != g) {
        if (home != NULL) gni_end_plain(home);
        if (!gni_begin_context("gn_einsum", g)) return NULL;
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_einsum: operands are NULL or belong to another context");
        return gni_end(g, NULL);
    }
    gn_scope_begin(home);
    gn_array *y = NULL;
    size_t bytes = sizeof(gni_term) * (size_t)count;
    e.g = home;
    e.text = subscripts;
    e.count = count;
    e.term = (gni_term *)gni_calloc(home, bytes);
    if (e.term == NULL) {
        gni_fail_memory(home, "gn_einsum", bytes);
    } else {
        gn_dtype t = arrays[0]->dtype;
        for (int i = 0; i < count; i++) {
            e.term[i].a = arrays[i];
            t = gn_promote(t, arrays[i]->dtype);
        }
        if (gni_einsum_parse(&e)) y = gni_einsum_run(&e);
        if (y != NULL && y->dtype != t) y = gn_cast(y, t);
        for (int i = 0; i < count && y != NULL; i++)
            if (y == arrays[i]) y = gn_reshape(y, y->shape);
    }
    gni_free(home, e.term);
    return gni_end_scope(home, y);
}
