// >>order_ops
// The public scans and sorts, and what is made of them: places in sorted arrays, quantiles, sets, histograms.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/access.h"
#include "../cpu/cpu_order.h"
#include "../gpu/gpu_backend.h"
#include "../ops/statistics.h"
#endif

// `a`, or where all axes are meant its ravel, and the axis; NULL after gni_fail.
static gn_array *gni_one_axis(gn_context *g, const char *fn, gn_array *a, gn_axes axis, int *at) {
    const int rank = a->shape.rank;
    const uint32_t set = gni_axes(g, fn, axis, rank, NULL);
    *at = 0;
    if (set == ~0u) return NULL;
    if (set == (1u << rank) - 1u) return rank == 1 ? a : gn_ravel(a);
    while (*at < rank && set != 1u << *at) ++*at;
    if (*at < rank) return a;
    gni_fail(g, GN_ERROR_ARGUMENT, "%s: one axis or GN_ALL is asked for, not some", fn);
    return NULL;
}

static gn_array *gni_to_last(gn_array *x, int at) {
    return x == NULL || at == x->shape.rank - 1 ? x : gn_move_axis(x, at, -1);
}
static gn_array *gni_from_last(gn_array *x, int at) {
    return x == NULL || at == x->shape.rank - 1 ? x : gn_move_axis(x, -1, at);
}

static gn_array *gni_bordered(gn_array *x, int at, int64_t before, int64_t behind, double value) {
    int64_t widths[2 * GN_MAX_RANK] = {0};
    if (x == NULL) return NULL;
    widths[2 * at] = before;
    widths[2 * at + 1] = behind;
    return gn_pad(x, widths, 2 * x->shape.rank, GN_PAD_CONSTANT, value);
}

// ---- scans

static gn_array *gni_scanned(gn_context *g, const char *fn, gni_scan_op op, gn_array *x, int at) {
    GNI_ZEROED(gni_scan, job);
    gn_array *from = gni_contiguous(g, x), *y = from != NULL ? gni_array_empty(g, fn, x->dtype, &x->shape) : NULL;
    bool ok = y != NULL;
    if (ok && gni_elements(&x->shape) > 0) {
        job.op = op;
        job.outer = gni_extent_product(x->shape.dim, at);
        job.n = x->shape.dim[at];
        job.inner = gni_extent_product(x->shape.dim + at + 1, x->shape.rank - at - 1);
        gni_take_operand(from, &job.in);
        gni_take_operand(y, &job.out);
        ok = gni_run(g, &gni_kind_scan, &job, y);
    }
    gni_unref(g, from);
    if (ok) return gni_adopt(g, y);
    gni_unref(g, y);
    return NULL;
}

// Sums from the other end.
static gn_array *gni_sums_behind(gn_array *x, int at) { return gn_flip(gn_cumsum(gn_flip(x, at), at), at); }

static bool gni_back_cumsum(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gni_sums_behind(gy, (int)node->param[0]);
    return true;
}

// The product in front of an element times s[i] = gy[i] + x[i + 1] s[i + 1], which holds for zeros too. s by doubling: after
// each step it is the part of the sum over `step` terms, whose factors' product is p.
static bool gni_back_cumprod(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *x = node->in[0], *s = gy;
    const int at = (int)node->param[0];
    const int64_t n = x->shape.dim[at];
    gn_array *p = gni_bordered(gn_slice(x, at, 1, n, 1), at, 0, GNI_MIN(n, 1), 0.0);
    for (int64_t step = 1; step < n; step *= 2) {
        s = gn_add(s, gn_mul(p, gni_bordered(gn_slice(s, at, step, n, 1), at, 0, step, 0.0)));
        if (2 * step < n) p = gn_mul(p, gni_bordered(gn_slice(p, at, step, n, 1), at, 0, step, 0.0));
    }
    gx[0] = gn_mul(s, gni_bordered(gn_slice(gn_cumprod(x, at), at, 0, GNI_MAX(n - 1, 0), 1), at, GNI_MIN(n, 1), 0, 1.0));
    return true;
}

// exp(x) times the sum of exp(log gy - y) behind, for gy above 0 and below 0 apart.
static gn_array *gni_logsumexp_part(gn_array *x, gn_array *y, gn_array *gy, int at) {
    gn_array *none = gn_logical_or(gn_le_s(gy, 0.0), gn_eq_s(y, -GNI_INF));
    gn_array *log = gn_sub(gn_log(gn_where(none, gn_ones_like(gy), gy)), gn_where(none, gn_zeros_like(y), y));
    log = gn_where(none, gn_full_like(gy, -GNI_INF), log);
    return gn_exp(gn_add(x, gn_flip(gn_logcumsumexp(gn_flip(log, at), at), at)));
}

static bool gni_back_logcumsumexp(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    const gn_dtype t = node->in[0]->dtype;
    const int at = (int)node->param[0];
    gn_array *x = gn_dtype_size(t) == 2 ? gn_cast(node->in[0], GN_F32) : node->in[0];
    if (x != NULL && x->shape.dim[at] > 0) { // so that log gy is not lost beside large ones
        g->no_grad++;
        gn_array *top = gn_max(x, GN_KEEP(at));
        top = gn_where(gn_isfinite(top), top, gn_zeros_like(top));
        g->no_grad--;
        x = gn_sub(x, top);
    }
    gn_array *y = gn_logcumsumexp(x, at);
    gy = gni_as(gy, gn_dtype_of(x));
    gx[0] = gni_as(gn_sub(gni_logsumexp_part(x, y, gy, at), gni_logsumexp_part(x, y, gn_neg(gy), at)), t);
    return true;
}

// By doubling.
static gn_array *gni_scan_doubled(gn_array *x, int at, gn_array *(*op)(gn_array *, gn_array *)) {
    const int64_t n = x->shape.dim[at];
    gn_array *part[2];
    for (int64_t step = 1; step < n && x != NULL; step *= 2) {
        part[0] = gn_slice(x, at, 0, step, 1);
        part[1] = op(gn_slice(x, at, step, n, 1), gn_slice(x, at, 0, n - step, 1));
        x = part[0] == NULL || part[1] == NULL ? NULL : gn_concat(part, 2, at);
    }
    return x;
}

enum { GNI_SCAN_FEW = 16 };

// The running logarithm of sums of exponentials, in blocks that are scanned by doubling, and what is in front of each: a scan
// of the blocks' last.
static gn_array *gni_logcumsumexp_made(gn_context *g, gn_array *x, int at) {
    if (x == NULL || x->shape.dim[at] <= GNI_SCAN_FEW || x->shape.rank == GN_MAX_RANK)
        return x == NULL ? NULL : gni_scan_doubled(x, at, gn_logaddexp);
    const int64_t n = x->shape.dim[at], blocks = (n + GNI_SCAN_FEW - 1) / GNI_SCAN_FEW;
    gn_array *part[2];
    gn_shape s = x->shape, one, more = x->shape;
    part[0] = x;
    s.dim[at] = blocks * GNI_SCAN_FEW - n;
    if (s.dim[at] > 0) {
        part[1] = gn_full(g, x->dtype, s, -GNI_INF);
        x = gn_concat(part, 2, at);
    }
    for (int i = more.rank++; i > at; i--) more.dim[i] = more.dim[i - 1];
    more.dim[at] = blocks;
    more.dim[at + 1] = GNI_SCAN_FEW;
    x = gn_reshape(x, more);
    x = x != NULL ? gni_scan_doubled(x, at + 1, gn_logaddexp) : NULL;
    one = more;
    one.dim[at] = one.dim[at + 1] = 1;
    part[1] = gni_logcumsumexp_made(g, gn_squeeze(gn_slice(x, at + 1, GNI_SCAN_FEW - 1, GNI_SCAN_FEW, 1), at + 1), at);
    part[0] = gn_full(g, GN_F64, one, -GNI_INF);
    part[1] = gn_expand_dims(gn_slice(part[1], at, 0, blocks - 1, 1), at + 1);
    s.dim[at] = blocks * GNI_SCAN_FEW;
    return gn_slice(gn_reshape(gn_logaddexp(x, gn_concat(part, 2, at)), s), at, 0, n, 1);
}

// The running extreme y of x as a choice among x's elements, for its derivative: the last that is as large or small.
static gn_array *gni_scan_choice(gn_context *g, gn_array *x, gn_array *y, int at) {
    const int64_t n = x->shape.dim[at];
    x = gni_to_last(x, at);
    y = gni_to_last(y, at);
    g->no_grad++;
    gn_array *hit = gn_logical_or(gn_eq(x, y), gn_isnan(x)), *place = gn_arange(g, GN_I64, 0.0, (double)n, 1.0);
    gn_array *index = gn_cummax(gn_where(hit, place, gn_scalar(g, GN_I64, 0.0)), -1);
    g->no_grad--;
    return gni_from_last(gn_take_along(x, index, -1), at);
}

// Whether there is a GPU that has no such scan: it adds up parts of complex numbers.
static bool gni_scans_parts(gn_context *g, gni_scan_op op, gn_dtype t) {
    GNI_ZEROED(gni_scan, one);
    one.op = op;
    one.in.dtype = one.out.dtype = t;
    return g->gpu != NULL && !gni_backend_gpu()->supports(g, GNI_JOB_SCAN, &one);
}

static gn_array *gni_scan_axis(const char *fn, gni_scan_op op, gn_array *a, gn_axes axis) {
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    int at;
    gn_array *x = gni_one_axis(g, fn, a, axis, &at), *y = NULL;
    const bool sums = op == GNI_SCAN_SUM || op == GNI_SCAN_PROD;
    const bool pairs = x != NULL && gni_is_complex(x->dtype) && sums;
    const bool parts = pairs && op == GNI_SCAN_SUM && gni_scans_parts(g, op, x->dtype);
    if (parts || (pairs && op == GNI_SCAN_PROD && (g->gpu != NULL || gni_tracks(g, &x, 1)))) {
        if (parts) return gni_end_scope(g, gn_complex(gn_cumsum(gn_real(x), at), gn_cumsum(gn_imag(x), at)));
        y = gni_scan_doubled(x, at, gn_mul);
        return gni_end_scope(g, y == a ? gn_copy(a) : y);
    }
    if (x == NULL || (!pairs && !gni_real_only(g, fn, &x, 1))) return gni_end_scope(g, NULL);
    if (x->dtype == GN_U64 && !sums && op != GNI_SCAN_LOGSUMEXP) {
        y = gni_scan_axis(fn, op, gni_flip_sign(x), axis);
        return gni_end_scope(g, y != NULL ? gni_flip_sign(y) : NULL);
    }
    if (!gni_is_float(x->dtype) && !pairs && (sums || op == GNI_SCAN_LOGSUMEXP))
        x = gni_as(x, !sums ? GN_F32 : gni_is_unsigned(x->dtype) ? GN_U64 : GN_I64);
    const bool tracks = x != NULL && gni_tracks(g, &x, 1),
               extreme = op == GNI_SCAN_MAX || op == GNI_SCAN_MIN;
    if (x == NULL) return gni_end_scope(g, NULL);
    g->no_grad++; // recorded as one op
    const int64_t inner = gni_extent_product(x->shape.dim + at + 1, x->shape.rank - at - 1);
    const bool turn = inner > 1 && inner < 16 && x->shape.dim[at] > 1024; // few columns
    gn_array *rows = turn ? gni_to_last(x, at) : x;
    const bool made = op == GNI_SCAN_LOGSUMEXP && rows != NULL && gni_is_there(g, rows) && gni_scans_parts(g, op, x->dtype);
    const int along = turn ? x->shape.rank - 1 : at;
    if (made) y = gni_logcumsumexp_made(g, rows, along);
    else if (rows != NULL && !g->call_failed) y = gni_scanned(g, fn, op, rows, along);
    if (y != NULL && y == rows) y = gn_copy(y);
    if (turn) y = gni_from_last(y, at);
    g->no_grad--;
    if (y != NULL && tracks && extreme) y = gni_scan_choice(g, x, y, at);
    const gni_backward_fn back =
        op == GNI_SCAN_SUM ? gni_back_cumsum : op == GNI_SCAN_PROD ? gni_back_cumprod : gni_back_logcumsumexp;
    if (tracks && !extreme) gni_note(gni_record(g, y, fn, back, &x, 1), at, 0, 0);
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_cumsum(gn_array *a, gn_axes axis) { return gni_scan_axis("gn_cumsum", GNI_SCAN_SUM, a, axis); }
GPUNUM_API gn_array *gn_cumprod(gn_array *a, gn_axes axis) { return gni_scan_axis("gn_cumprod", GNI_SCAN_PROD, a, axis); }
GPUNUM_API gn_array *gn_cummax(gn_array *a, gn_axes axis) { return gni_scan_axis("gn_cummax", GNI_SCAN_MAX, a, axis); }
GPUNUM_API gn_array *gn_cummin(gn_array *a, gn_axes axis) { return gni_scan_axis("gn_cummin", GNI_SCAN_MIN, a, axis); }
GPUNUM_API gn_array *gn_logcumsumexp(gn_array *a, gn_axes axis) {
    return gni_scan_axis("gn_logcumsumexp", GNI_SCAN_LOGSUMEXP, a, axis);
}

// ---- sorts

// Elements `first` to `first` + count of the sorted last axis of x: into *values and *index, those that are not NULL.
// With as many elements as there are from a later one on, they are only parted there (sorted ones are parted everywhere).
static bool gni_sorted(gn_context *g, const char *fn, gn_array *x, int64_t first, int64_t count, bool descending,
                       gn_array **values, gn_array **index) {
    GNI_ZEROED(gni_sort, job);
    gn_shape s = x->shape;
    job.n = s.dim[s.rank - 1];
    s.dim[s.rank - 1] = count;
    gn_array *from = gni_contiguous(g, x), *v = NULL, *i = NULL;
    bool ok = from != NULL;
    if (ok && values != NULL) ok = (v = gni_array_empty(g, fn, x->dtype, &s)) != NULL;
    if (ok && index != NULL) ok = (i = gni_array_empty(g, fn, GN_I64, &s)) != NULL;
    if (ok && gni_elements(&s) > 0) {
        job.rows = gni_extent_product(s.dim, s.rank - 1);
        job.parted = first + count > job.n ? first : 0;
        job.first = job.parted > 0 ? 0 : first;
        job.count = count;
        job.descending = descending;
        gni_take_operand(from, &job.in);
        if (v != NULL) gni_take_operand(v, &job.out);
        if (i != NULL) gni_take_operand(i, &job.index);
        ok = gni_run(g, &gni_kind_sort, &job, v != NULL ? v : i);
    }
    gni_unref(g, from);
    if (!ok) {
        gni_unref(g, v);
        gni_unref(g, i);
        return false;
    }
    if (values != NULL) *values = gni_adopt(g, v);
    if (index != NULL) *index = gni_adopt(g, i);
    return true;
}

// The same along axis `at`, recorded as a choice among x's elements. Without `index` the values, with it places as well.
static gn_array *gni_sorted_axis(gn_context *g, const char *fn, gn_array *x, int at, int64_t first, int64_t count,
                                 bool descending, gn_array **index) {
    gn_array *rows = gni_to_last(x, at), *values = NULL, *places = NULL;
    if (rows == NULL) return NULL;
    const bool tracks = gni_tracks(g, &rows, 1);
    g->no_grad++;
    const bool ok = gni_sorted(g, fn, rows, first, count, descending, tracks ? NULL : &values,
                               tracks || index != NULL ? &places : NULL);
    g->no_grad--;
    if (!ok) return NULL;
    if (tracks) values = gn_take_along(rows, places, -1);
    if (values != NULL && values->node != NULL) values->node->param[2] = 1; // no place comes twice
    if (index != NULL) *index = gni_from_last(places, at);
    return gni_from_last(values, at);
}

GPUNUM_API gn_array *gn_sort(gn_array *a, gn_axes axis, bool descending) {
    gn_context *g = gni_begin_scope("gn_sort", &a, 1);
    if (g == NULL) return NULL;
    int at;
    gn_array *x = gni_one_axis(g, "gn_sort", a, axis, &at), *y = NULL;
    if (x != NULL && gni_real_only(g, "gn_sort", &x, 1))
        y = gni_sorted_axis(g, "gn_sort", x, at, 0, x->shape.dim[at], descending, NULL);
    return gni_end_scope(g, y);
}

// Element kth of n, from the end below 0; -1 after gni_fail.
static int64_t gni_kth(gn_context *g, const char *fn, int64_t kth, int64_t n) {
    if (kth >= -n && kth < n) return kth < 0 ? kth + n : kth;
    gni_fail(g, GN_ERROR_ARGUMENT, "%s: element %lld of %lld is asked for", fn, (long long)kth, (long long)n);
    return -1;
}

// Where the sorted elements are, or with `kth` those parted there.
static gn_array *gni_sorted_places(const char *fn, gn_array *a, gn_axes axis, bool descending, const int64_t *kth) {
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    int at;
    gn_array *x = gni_one_axis(g, fn, a, axis, &at), *y = NULL;
    if (x != NULL && gni_real_only(g, fn, &x, 1)) {
        const int64_t n = x->shape.dim[at], first = kth != NULL ? gni_kth(g, fn, *kth, n) : 0;
        g->no_grad++;
        x = gni_to_last(x, at);
        if (x != NULL && first >= 0) gni_sorted(g, fn, x, first, n, descending, NULL, &y);
        y = gni_from_last(y, at);
        g->no_grad--;
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_argsort(gn_array *a, gn_axes axis, bool descending) {
    return gni_sorted_places("gn_argsort", a, axis, descending, NULL);
}
GPUNUM_API gn_array *gn_argpartition(gn_array *a, int64_t kth, gn_axes axis) {
    return gni_sorted_places("gn_argpartition", a, axis, false, &kth);
}

// Ends a call that gives y and n more arrays, into places that may be NULL; all of them or none.
static gn_array *gni_end_with(gn_context *g, gn_array *y, gn_array *const *more, gn_array **const *place, int n) {
    bool ok = y != NULL;
    for (int i = 0; i < n; i++) {
        if (place[i] == NULL) continue;
        ok = ok && more[i] != NULL;
        *place[i] = ok ? gn_keep(more[i]) : NULL;
    }
    y = gni_end_scope(g, ok ? y : NULL);
    for (int i = 0; i < n && y == NULL; i++) {
        if (place[i] == NULL) continue;
        if (*place[i] != NULL) gn_release(*place[i]);
        *place[i] = NULL;
    }
    return y;
}

GPUNUM_API gn_array *gn_topk(gn_array *a, int64_t k, gn_axes axis, gn_array **indices) {
    if (indices != NULL) *indices = NULL;
    gn_context *g = gni_begin_scope("gn_topk", &a, 1);
    if (g == NULL) return NULL;
    int at;
    gn_array *x = gni_one_axis(g, "gn_topk", a, axis, &at), *y = NULL, *index = NULL;
    if (x != NULL && (k < 0 || k > x->shape.dim[at]))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_topk: %lld of %lld elements are asked for", (long long)k,
                 (long long)x->shape.dim[at]);
    else if (x != NULL && gni_real_only(g, "gn_topk", &x, 1))
        y = gni_sorted_axis(g, "gn_topk", x, at, 0, k, true, indices != NULL ? &index : NULL);
    return gni_end_with(g, y, &index, &indices, 1);
}

GPUNUM_API gn_array *gn_partition(gn_array *a, int64_t kth, gn_axes axis) {
    gn_context *g = gni_begin_scope("gn_partition", &a, 1);
    if (g == NULL) return NULL;
    int at;
    gn_array *x = gni_one_axis(g, "gn_partition", a, axis, &at), *y = NULL;
    const int64_t n = x != NULL ? x->shape.dim[at] : 0, first = x != NULL ? gni_kth(g, "gn_partition", kth, n) : -1;
    if (first >= 0 && gni_real_only(g, "gn_partition", &x, 1))
        y = gni_sorted_axis(g, "gn_partition", x, at, first, n, false, NULL);
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_lexsort(gn_array *const *arrays, int count, int axis) {
    gn_context *g = count > 0 && arrays != NULL ? gni_begin("gn_lexsort", arrays, count) : NULL;
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    g->no_grad++;
    gn_array *y = NULL;
    const int at = gni_axis(g, "gn_lexsort", axis, arrays[0]->shape.rank);
    bool ok = at >= 0;
    for (int i = 1; i < count && ok; i++) ok = gni_join_fits(g, "gn_lexsort", arrays, i, -1);
    for (int i = 0; i < count && ok; i++) {
        gn_array *x = gni_to_last(arrays[i], at);
        x = i == 0 ? gn_argsort(x, -1, false) : gn_argsort(gn_take_along(x, y, -1), -1, false);
        y = i == 0 ? x : gn_take_along(y, x, -1);
        ok = y != NULL;
    }
    y = ok ? gni_from_last(y, at) : NULL;
    g->no_grad--;
    return gni_end_scope(g, y);
}

// ---- quantiles

static bool gni_may_wait(gn_context *g, const char *fn);

// The element at part `q` of the way through each sorted row of x, and the one behind it, as (..., 2); *part is how far it
// is to the latter. NaN comes last and does not count.
static gn_array *gni_counted_pair(gn_context *g, const char *fn, gn_array *x, double q, gn_array **part) {
    const int last = x->shape.rank - 1;
    const int64_t n = x->shape.dim[last];
    const gn_dtype t = x->dtype == GN_F64 || n > 1 << 24 ? GN_F64 : GN_F32, i = n < INT32_MAX ? GN_I32 : GN_I64;
    gn_array *pair[2], *sorted = gni_sorted_axis(g, fn, x, last, 0, n, false, NULL);
    g->no_grad++;
    gn_array *most = gn_maximum_s(gn_sub_s(gn_sum(gn_cast(gn_logical_not(gn_isnan(x)), t), GN_KEEP(-1)), 1.0), 0.0);
    gn_array *at = gn_mul_s(most, q), *first = gn_floor(at);
    *part = gn_sub(at, first);
    pair[0] = gn_cast(first, i);
    pair[1] = gn_cast(gn_ceil(at), i);
    gn_array *index = gn_concat(pair, 2, -1);
    g->no_grad--;
    return gn_take_along(sorted, index, -1);
}

// What is `part` of the way from low to high, both infinite too: low itself for a part of 0.
static gn_array *gni_between(gn_array *low, gn_array *high, gn_array *part) {
    gn_array *rest = gn_sub(high, low), *up = gn_add(low, gn_mul(rest, part));
    gn_array *down = gn_sub(high, gn_mul(rest, gn_rsub_s(part, 1.0)));
    return gn_where(gn_eq_s(part, 0.0), low, gn_where(gn_lt_s(part, 0.5), up, down));
}

// Elements at `count` parts of the way through each row of x, which is sorted once, as (count, ...) of that shape and dtype.
static gn_array *gni_quantile_list(gn_context *g, const char *fn, gn_array *x, const double *q, int64_t count,
                                   const gn_shape *s, gn_dtype t) {
    const int last = x->shape.rank - 1;
    const int64_t n = x->shape.dim[last];
    void *data[3] = {NULL, NULL, NULL};
    const gn_shape line = GN_SHAPE(count);
    gn_array *at[3] = {NULL, NULL, NULL}, *sorted = gni_in_moments(gni_sorted_axis(g, fn, x, last, 0, n, false, NULL));
    if (sorted == NULL) return NULL;
    for (int k = 0; k < 3; k++) { // the element, the one behind it, and how far to that
        at[k] = gni_adopt(g, gni_array_filled(g, fn, k < 2 ? GN_I64 : sorted->dtype, &line, &data[k]));
        if (at[k] == NULL) return NULL;
    }
    for (int64_t i = 0; i < count; i++) {
        const double place = q[i] * (double)(n - 1);
        ((int64_t *)data[0])[i] = (int64_t)place;
        ((int64_t *)data[1])[i] = (int64_t)ceil(place);
        gni_store_double(sorted->dtype, data[2], i, place - floor(place));
    }
    gn_array *y = gni_between(gn_take(sorted, at[0], last), gn_take(sorted, at[1], last), at[2]);
    if (gni_is_float(x->dtype)) y = gni_nan_as(y, gn_isnan(gn_slice(sorted, last, n - 1, n, 1)), GNI_NAN);
    return gni_from_moments(gn_reshape(gn_move_axis(y, last, 0), *s), t);
}

// The `count` parts q, which become the first axis, or for a count below 0 the one.
static gn_array *gni_quantiles(const char *fn, gn_array *a, const double *q, int64_t count, gn_axes axes, bool middle) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    const bool counts = strncmp(fn, "gn_nan", 6) == 0 && gni_has_nan(a->dtype);
    gn_scope_begin(g);
    bool keep;
    int order[GN_MAX_RANK], kept = 0;
    const int rank = a->shape.rank;
    const uint32_t set = gni_axes(g, fn, axes, rank, &keep);
    const int most = strstr(fn, "percentile") != NULL ? 100 : 1;
    for (int64_t i = 0; i < (count < 0 ? 1 : count) && set != ~0u && !g->call_failed; i++)
        if (!(q[i] >= 0.0 && q[i] <= 1.0))
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: %g is not in 0 to %d", fn, most * q[i], most);
    if (g->call_failed || !gni_real_only(g, fn, &a, 1)) return gni_end_scope(g, NULL);
    gn_shape s = gn_shape_from(0, NULL);
    const gn_shape out = gni_reduced_shape(&a->shape, set, keep);
    gn_shape all = out;
    const int64_t n = gni_reduced_count(&a->shape, set);
    const gn_dtype t = gni_is_float(a->dtype) ? a->dtype : GN_F32;
    if (count >= 0) {
        for (int i = GN_MAX_RANK - 1; i > 0; i--) all.dim[i] = all.dim[i - 1];
        all.rank++;
        all.dim[0] = count;
    }
    if (!gni_shape_ok(g, fn, t, &all)) return gni_end_scope(g, NULL);
    if (n == 0 || gni_elements(&all) == 0) return gni_end_scope(g, gn_full(g, t, all, GNI_NAN));
    for (int i = 0; i < rank; i++) {
        if (set >> i & 1u) continue;
        order[s.rank++] = i;
        s.dim[s.rank - 1] = a->shape.dim[i];
    }
    kept = s.rank;
    for (int i = 0; i < rank; i++)
        if (set >> i & 1u) order[kept++] = i;
    if (s.rank < GN_MAX_RANK) s.dim[s.rank] = n; // all elements of a result are the last axis
    s.rank++;
    gn_array *x = s.rank <= GN_MAX_RANK ? gn_reshape(rank > 0 ? gn_permute_axes(a, order, rank) : a, s)
                                        : gn_reshape(a, GN_SHAPE(gni_elements(&out), n));
    if (x == NULL) return gni_end_scope(g, NULL);
    if (count >= 0) return gni_end_scope(g, gni_quantile_list(g, fn, x, q, count, &all, t));
    const double at = *q * (double)(n - 1), first = floor(at), part = at - first;
    const bool pairs = counts || part > 0.0;
    gn_array *parts = NULL, *y;
    if (counts) y = gni_counted_pair(g, fn, x, *q, &parts);
    else y = gni_sorted_axis(g, fn, x, x->shape.rank - 1, (int64_t)first, pairs ? 2 : 1, false, NULL);
    y = gni_in_moments(y);
    if (pairs && middle) {
        y = gn_mean(y, -1);
    } else if (pairs) {
        gn_array *low = gn_slice(y, -1, 0, 1, 1), *high = gn_slice(y, -1, 1, 2, 1);
        if (counts) {
            y = gni_between(low, high, parts);
        } else {
            gn_array *rest = gn_sub(high, low);
            y = part < 0.5 ? gn_add(low, gn_mul_s(rest, part)) : gn_sub(high, gn_mul_s(rest, 1.0 - part));
        }
    }
    y = gn_reshape(y, out);
    if (gni_is_float(a->dtype) && !counts) y = gni_nan_as(y, gn_reshape(gn_any(gn_isnan(x), -1), out), GNI_NAN);
    return gni_end_scope(g, gni_from_moments(y, t));
}

static gn_array *gni_quantile(const char *fn, gn_array *a, double q, gn_axes axes, bool middle) {
    return gni_quantiles(fn, a, &q, -1, axes, middle);
}

GPUNUM_API gn_array *gn_quantiles(gn_array *a, gn_array *q, gn_axes axes) {
    char text[200];
    gn_context *g = gni_begin_pair("gn_quantiles", a, q);
    if (g == NULL) return NULL;
    const int64_t count = q->shape.rank == 1 ? q->shape.dim[0] : 0;
    gn_array *y = NULL;
    if (q->shape.rank != 1)
        gni_fail(g, GN_ERROR_SHAPE, "gn_quantiles: parts %s are not 1-d", gni_shape_text(text, sizeof text, &q->shape));
    if (g->call_failed || !gni_real_only(g, "gn_quantiles", &q, 1) || !gni_may_wait(g, "gn_quantiles"))
        return gni_end_scope(g, NULL);
    const size_t bytes = (size_t)count * sizeof(double);
    double *parts = (double *)gni_alloc(g, bytes + sizeof(double));
    if (parts == NULL) gni_fail_memory(g, "gn_quantiles", bytes);
    else if (gn_read(gn_cast(gn_detach(q), GN_F64), parts, bytes) == GN_OK)
        y = gni_quantiles("gn_quantiles", a, parts, count, axes, false);
    gni_free(g, parts);
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_median(gn_array *a, gn_axes axes) { return gni_quantile("gn_median", a, 0.5, axes, true); }
GPUNUM_API gn_array *gn_quantile(gn_array *a, double q, gn_axes axes) {
    return gni_quantile("gn_quantile", a, q, axes, false);
}
GPUNUM_API gn_array *gn_percentile(gn_array *a, double percent, gn_axes axes) {
    return gni_quantile("gn_percentile", a, percent / 100.0, axes, false);
}
GPUNUM_API gn_array *gn_nanmedian(gn_array *a, gn_axes axes) { return gni_quantile("gn_nanmedian", a, 0.5, axes, true); }
GPUNUM_API gn_array *gn_nanquantile(gn_array *a, double q, gn_axes axes) {
    return gni_quantile("gn_nanquantile", a, q, axes, false);
}
GPUNUM_API gn_array *gn_nanpercentile(gn_array *a, double percent, gn_axes axes) {
    return gni_quantile("gn_nanpercentile", a, percent / 100.0, axes, false);
}

// ---- places in sorted arrays

static double gni_search_scale(double step) {
    const double scale = step > 0.0 ? 1.0 / step : 0.0;
    return scale - scale != 0.0 ? 0.0 : scale;
}

// Where values go into `sorted`; elements that are floats of
// values' dtype and a distance of `step` from `start` on are found sooner, others say 0.
static gn_array *gni_searched(gn_context *g, const char *fn, gn_array *sorted, gn_array *values, bool right, double start,
                              double step) {
    GNI_ZEROED(gni_search, job);
    char text[200];
    gn_array *in[2] = {sorted, values};
    if (sorted == NULL || values == NULL || !gni_real_only(g, fn, in, 2)) return NULL;
    const gn_dtype t = gni_compared(sorted->dtype, values->dtype);
    if (sorted->shape.rank != 1) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: %s is not 1-d", fn, gni_shape_text(text, sizeof text, &sorted->shape));
        return NULL;
    }
    if (sorted->shape.dim[0] == 0) return gn_zeros(g, GN_I64, values->shape);
    g->no_grad++;
    gn_array *s = sorted->dtype == t ? sorted : gn_cast(sorted, t), *v = values->dtype == t ? values : gn_cast(values, t);
    g->no_grad--;
    s = s != NULL && v != NULL ? gni_contiguous(g, s) : NULL;
    v = s != NULL ? gni_contiguous(g, v) : NULL;
    gn_array *y = v != NULL ? gni_array_empty(g, fn, GN_I64, &values->shape) : NULL;
    bool ok = y != NULL;
    if (ok && gni_elements(&values->shape) > 0) {
        job.n = s->shape.dim[0];
        job.count = gni_elements(&values->shape);
        job.right = right;
        job.scale = gni_search_scale(step);
        job.start = start;
        gni_take_operand(s, &job.sorted);
        gni_take_operand(v, &job.in);
        gni_take_operand(y, &job.out);
        ok = gni_run(g, &gni_kind_search, &job, y);
    }
    gni_unref(g, s);
    gni_unref(g, v);
    if (ok) return gni_adopt(g, y);
    gni_unref(g, y);
    return NULL;
}

GPUNUM_API gn_array *gn_searchsorted(gn_array *sorted, gn_array *values, bool right) {
    gn_context *g = gni_begin_pair("gn_searchsorted", sorted, values);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_searched(g, "gn_searchsorted", sorted, values, right, 0.0, 0.0));
}

// Whether the caller may wait for values.
static bool gni_may_wait(gn_context *g, const char *fn) {
    if (!g->host_recording) return true;
    return gni_fail(g, GN_ERROR_UNSUPPORTED, "%s: waits for values, which a host's commands that are recorded cannot", fn);
}

// 1 where the elements of a 1-d array rise or stay, -1 where they fall or stay; 0 after gni_fail. Waits for them, but
// GNI_UNSEEN if it cannot.
enum { GNI_UNSEEN = 2 };
static int gni_direction(gn_context *g, const char *fn, gn_array *a) {
    char text[200];
    if (a->shape.rank != 1) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: %s is not 1-d", fn, gni_shape_text(text, sizeof text, &a->shape));
        return 0;
    }
    const int64_t n = a->shape.dim[0];
    gn_array *front = gn_slice(a, 0, 0, GNI_MAX(n - 1, 0), 1), *behind = gn_slice(a, 0, GNI_MIN(n, 1), n, 1);
    if (!gni_may_wait(g, fn)) return 0;
    if (n > 0 && gni_is_remote(a)) return GNI_UNSEEN;
    if (gn_item(gn_all(gn_le(front, behind), 0)) != 0.0) return 1;
    if (gn_item(gn_all(gn_ge(front, behind), 0)) != 0.0) return -1;
    if (!g->call_failed) gni_fail(g, GN_ERROR_ARGUMENT, "%s: the edges of bins neither rise nor fall", fn);
    return 0;
}

GPUNUM_API gn_array *gn_digitize(gn_array *a, gn_array *bins, bool right) {
    gn_context *g = gni_begin_pair("gn_digitize", a, bins);
    if (g == NULL) return NULL;
    const int up = gni_real_only(g, "gn_digitize", &bins, 1) ? gni_direction(g, "gn_digitize", bins) : 0;
    if (up == 0) return gni_end_scope(g, NULL);
    if (GNI_WEBGPU && up == GNI_UNSEEN) { // the GPU chooses
        const int64_t n = bins->shape.dim[0];
        gn_array *rises = gn_le(gn_slice(bins, 0, 0, 1, 1), gn_slice(bins, 0, GNI_MAX(n - 1, 0), n, 1));
        gn_array *falling = gni_searched(g, "gn_digitize", gn_flip(bins, 0), a, !right, 0.0, 0.0);
        falling = gn_sub(gn_full_int(g, GN_I64, GN_SHAPE(), n), falling);
        gn_array *rising = gni_searched(g, "gn_digitize", bins, a, !right, 0.0, 0.0);
        return gni_end_scope(g, gn_where(gn_reshape(rises, GN_SHAPE()), rising, falling));
    }
    gn_array *y = gni_searched(g, "gn_digitize", up > 0 ? bins : gn_flip(bins, 0), a, !right, 0.0, 0.0);
    return gni_end_scope(g, up > 0 ? y : gn_sub(gn_scalar(g, GN_I64, (double)bins->shape.dim[0]), y));
}

static gn_array *gni_isin(gn_context *g, const char *fn, gn_array *a, gn_array *values) {
    gn_array *list = gn_ravel(values), *in[2] = {a, values}, *y = NULL;
    if (list == NULL || !gni_real_only(g, fn, in, 2)) return NULL;
    const int64_t n = list->shape.dim[0];
    if (n == 0) return gn_zeros(g, GN_BOOL, a->shape);
    const gn_dtype t = gni_compared(a->dtype, values->dtype);
    g->no_grad++;
    if (list->dtype != t) list = gn_cast(list, t);
    if (n > 16) {
        gn_array *s = NULL;
        if (list != NULL) gni_sorted(g, fn, list, 0, n, false, &s, NULL);
        gn_array *at = gni_searched(g, fn, s, a, false, 0.0, 0.0);
        y = gn_eq(gn_take(s, gn_minimum_s(at, (double)(n - 1)), 0), a);
    } else { // few: each is compared
        for (int64_t i = 0; i < n; i++) {
            gn_array *same = gn_eq(a, gn_reshape(gn_slice(list, 0, i, i + 1, 1), GN_SHAPE()));
            y = i == 0 ? same : gn_logical_or(y, same);
        }
    }
    g->no_grad--;
    return y;
}

GPUNUM_API gn_array *gn_isin(gn_array *a, gn_array *values) {
    gn_context *g = gni_begin_pair("gn_isin", a, values);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_isin(g, "gn_isin", a, values));
}

GPUNUM_API gn_array *gn_interp(gn_array *a, gn_array *points, gn_array *values) {
    gn_array *in[3] = {a, points, values};
    char tp[200], tv[200];
    gn_context *g = gni_begin_scope("gn_interp", in, 3);
    if (g == NULL) return NULL;
    if (!gni_real_only(g, "gn_interp", in, 3)) return gni_end_scope(g, NULL);
    const int64_t n = points->shape.rank == 1 ? points->shape.dim[0] : 0;
    if (n == 0 || !gni_same_shape(&points->shape, &values->shape)) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_interp: points %s and values %s: both are 1-d, as long, and not empty",
                 gni_shape_text(tp, sizeof tp, &points->shape), gni_shape_text(tv, sizeof tv, &values->shape));
        return gni_end_scope(g, NULL);
    }
    const gn_dtype t = gn_promote(gn_promote(a->dtype, points->dtype), values->dtype);
    const gn_dtype inner = gni_moments_with(t, a, gni_is_remote(points) ? points : values);
    for (int i = 0; i < 3; i++) in[i] = in[i]->dtype == inner ? in[i] : gn_cast(in[i], inner);
    gn_array *x = in[0], *p = in[1], *v = in[2], *first = gn_slice(v, 0, 0, 1, 1), *last = gn_slice(v, 0, n - 1, n, 1);
    gn_array *y = gn_broadcast_to(gn_reshape(first, GN_SHAPE()), a->shape);
    if (n > 1) {
        gn_array *at = gn_clamp(gn_sub_s(gni_searched(g, "gn_interp", p, x, true, 0.0, 0.0), 1.0), 0.0, (double)(n - 2));
        gn_array *next = gn_add_s(at, 1.0), *x0 = gn_take(p, at, 0), *y0 = gn_take(v, at, 0);
        gn_array *x1 = gn_take(p, next, 0), *y1 = gn_take(v, next, 0), *slope = gn_div(gn_sub(y1, y0), gn_sub(x1, x0));
        y = gn_add(y0, gn_mul(slope, gn_sub(x, x0)));
        // Next to an infinite value: the point's own, that of both neighbours, or the line from its other end.
        gn_array *own = gn_or(gn_eq(x, x0), gn_and(gn_eq(y0, y1), gn_eq(x, x)));
        y = gn_where(gn_isnan(y), gn_where(own, y0, gn_add(y1, gn_mul(slope, gn_sub(x, x1)))), y);
        y = gn_where(gn_lt(x, gn_slice(p, 0, 0, 1, 1)), first, y);
        y = gn_where(gn_ge(x, gn_slice(p, 0, n - 1, n, 1)), last, y);
        y = gn_reshape(y, a->shape);
    } else {
        y = gn_copy(y);
    }
    return gni_end_scope(g, gni_from_moments(y, t));
}

// ---- sets

enum { GNI_ORDER_HOST = 1 << 16 }; // elements that are as soon looked at by the host

// The groups of sorted ones, of which each but the first differs from the one in front of it or not.
static gn_array *gni_groups(gn_array *sorted, gn_array *order, gn_array *differs, const gn_shape *s, gn_array **index,
                            gn_array **inverse, gn_array **counts) {
    gn_array *first = gni_bordered(differs, 0, 1, 0, 1.0), *y = gn_compress(first, sorted, 0);
    if (y == NULL) return NULL;
    const int64_t n = sorted->shape.dim[0];
    if (index != NULL) *index = gn_compress(first, order, 0);
    if (counts != NULL) *counts = gn_diff(gni_bordered(gn_flatnonzero(first), 0, 0, 1, (double)n), 1, 0);
    if (inverse != NULL) {
        gn_array *number = gn_scatter_add(gn_mul_s(order, 0.0), order, gn_sub_s(gn_cumsum(first, 0), 1.0), 0);
        *inverse = gn_reshape(number, *s);
    }
    return y;
}

// The same from the sorted elements and their places where those are: an element is the first of its kind if the one in
// front is another one. NaN are all the last ones.
static gn_array *gni_unique_there(gn_array *a, gn_array *sorted, gn_array *order, gn_array **index, gn_array **inverse,
                                  gn_array **counts) {
    const int64_t n = gni_elements(&sorted->shape);
    gn_array *front = gn_slice(sorted, 0, 0, n - 1, 1), *differs = gn_ne(front, gn_slice(sorted, 0, 1, n, 1));
    if (gni_is_float(sorted->dtype)) differs = gn_logical_and(differs, gn_eq(front, front));
    return gni_groups(sorted, order, differs, &a->shape, index, inverse, counts);
}

// What gn_unique finds: the elements, and those of the others that are not NULL.
static gn_array *gni_unique(gn_context *g, const char *fn, gn_array *a, gn_array **index, gn_array **inverse,
                            gn_array **counts) {
    gn_array *x = gni_real_only(g, fn, &a, 1) ? gn_ravel(a) : NULL, *sorted = NULL, *order = NULL, *y = NULL;
    const bool places = index != NULL || inverse != NULL;
    if (x == NULL || !gni_may_wait(g, fn)) return NULL;
    const int64_t n = x->shape.dim[0];
    g->no_grad++;
    const bool ok = gni_sorted(g, fn, x, 0, n, false, &sorted, places ? &order : NULL);
    if (ok && n > GNI_ORDER_HOST && sorted->buf->where == GNI_ON_GPU)
        y = gni_unique_there(a, sorted, order, index, inverse, counts);
    g->no_grad--;
    if (y != NULL || g->call_failed) return y;
    const void *data = ok ? gni_host(g, sorted) : NULL;
    const int64_t *from = places && data != NULL ? (const int64_t *)gni_host(g, order) : NULL;
    if (data == NULL || (places && from == NULL)) return NULL;
    gni_key key = gni_key_of_dtype(x->dtype, false);
    key.zeros = true;
    int64_t groups = 0, *at = NULL, *who = NULL, *many = NULL;
    uint64_t before = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t u = gni_key_of(&key, key.is_float, gni_get_bits(data, i, key.bytes));
        groups += i == 0 || u != before;
        before = u;
    }
    const gn_shape s = GN_SHAPE(groups);
    void *out = NULL, *p = NULL;
    y = gni_adopt(g, gni_array_filled(g, fn, x->dtype, &s, &out));
    if (y != NULL && index != NULL && (*index = gni_adopt(g, gni_array_filled(g, fn, GN_I64, &s, &p))) != NULL)
        at = (int64_t *)p;
    if (y != NULL && counts != NULL && (*counts = gni_adopt(g, gni_array_filled(g, fn, GN_I64, &s, &p))) != NULL)
        many = (int64_t *)p;
    if (y != NULL && inverse != NULL && (*inverse = gni_adopt(g, gni_array_filled(g, fn, GN_I64, &a->shape, &p))) != NULL)
        who = (int64_t *)p;
    groups = -1;
    for (int64_t i = 0; i < n && !g->call_failed; i++) {
        const uint64_t bits = gni_get_bits(data, i, key.bytes), u = gni_key_of(&key, key.is_float, bits);
        if (i == 0 || u != before) {
            groups++;
            gni_put_bits(out, groups, key.bytes, bits);
            if (at != NULL) at[groups] = from[i];
            if (many != NULL) many[groups] = 0;
        }
        if (who != NULL) who[from[i]] = groups;
        if (many != NULL) many[groups]++;
        before = u;
    }
    return g->call_failed ? NULL : y;
}

GPUNUM_API gn_array *gn_unique(gn_array *a, gn_array **index, gn_array **inverse, gn_array **counts) {
    gn_array *more[3] = {NULL, NULL, NULL}, **place[3];
    place[0] = index;
    place[1] = inverse;
    place[2] = counts;
    for (int i = 0; i < 3; i++)
        if (place[i] != NULL) *place[i] = NULL;
    gn_context *g = gni_begin_scope("gn_unique", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = gni_unique(g, "gn_unique", a, index != NULL ? &more[0] : NULL, inverse != NULL ? &more[1] : NULL,
                             counts != NULL ? &more[2] : NULL);
    return gni_end_with(g, y, more, place, 3);
}

GPUNUM_API gn_array *gn_unique_axis(gn_array *a, int axis, gn_array **index, gn_array **inverse, gn_array **counts) {
    const char *fn = "gn_unique_axis";
    gn_array *more[3] = {NULL, NULL, NULL}, **place[3], *order = NULL, *y = NULL;
    place[0] = index;
    place[1] = inverse;
    place[2] = counts;
    for (int i = 0; i < 3; i++)
        if (place[i] != NULL) *place[i] = NULL;
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    g->no_grad++;
    const int at = gni_axis(g, fn, axis, a->shape.rank);
    gn_array *x = at >= 0 && gni_real_only(g, fn, &a, 1) && gni_may_wait(g, fn) ? gn_move_axis(a, at, 0) : NULL;
    if (x != NULL) {
        gn_shape s = x->shape;
        const int64_t n = s.dim[0], m = gni_extent_product(s.dim + 1, s.rank - 1);
        gn_array *rows = gn_reshape(x, GN_SHAPE(n, m)), *keys = gni_is_float(x->dtype) ? gn_add_s(rows, 0.0) : rows; // no -0
        order = gn_arange(g, GN_I64, 0.0, (double)n, 1.0);
        for (int64_t j = m - 1; j >= 0 && n > 0 && order != NULL; j--) {
            gn_array *key = gn_take(gn_squeeze(gn_slice(keys, 1, j, j + 1, 1), 1), order, 0);
            order = gn_take(order, gn_argsort(key, 0, false), 0);
        }
        rows = gn_take(rows, order, 0);
        gn_array *differs = gn_any(gn_ne(gn_slice(rows, 0, 1, n, 1), gn_slice(rows, 0, 0, n - 1, 1)), 1);
        const gn_shape line = GN_SHAPE(n);
        y = n == 0 ? rows : gni_groups(rows, order, differs, &line, index != NULL ? &more[0] : NULL,
                                       inverse != NULL ? &more[1] : NULL, counts != NULL ? &more[2] : NULL);
        for (int i = 0; i < 3 && n == 0; i++) more[i] = gn_zeros(g, GN_I64, line);
        if (y != NULL) s.dim[0] = y->shape.dim[0];
        y = gn_move_axis(gn_reshape(y, s), 0, at);
    }
    g->no_grad--;
    return gni_end_with(g, y, more, place, 3);
}

static gn_array *gni_raveled_join(gn_array *a, gn_array *b) {
    gn_array *in[2] = {gn_ravel(a), gn_ravel(b)};
    return in[0] != NULL && in[1] != NULL ? gn_concat(in, 2, 0) : NULL;
}

GPUNUM_API gn_array *gn_union1d(gn_array *a, gn_array *b) {
    gn_context *g = gni_begin_pair("gn_union1d", a, b);
    if (g == NULL) return NULL;
    gn_array *both = gni_raveled_join(a, b);
    return gni_end_scope(g, both != NULL ? gni_unique(g, "gn_union1d", both, NULL, NULL, NULL) : NULL);
}

// In the dtype of a set of both: what is one number there is one element.
static gn_array *gni_set_as(gn_array *a, const gn_array *b) { return gni_as(a, gn_promote(a->dtype, b->dtype)); }

// The different elements of `a` that are in b, or that are not.
static gn_array *gni_set_part(gn_context *g, const char *fn, gn_array *a, gn_array *b, bool wanted) {
    gn_array *own = a != NULL && b != NULL ? gni_unique(g, fn, a, NULL, NULL, NULL) : NULL;
    gn_array *in = own != NULL ? gni_isin(g, fn, own, b) : NULL;
    return in != NULL ? gn_compress(wanted ? in : gn_logical_not(in), own, 0) : NULL;
}

GPUNUM_API gn_array *gn_intersect1d(gn_array *a, gn_array *b) {
    gn_context *g = gni_begin_pair("gn_intersect1d", a, b);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_set_part(g, "gn_intersect1d", gni_set_as(a, b), gni_set_as(b, a), true));
}

GPUNUM_API gn_array *gn_setdiff1d(gn_array *a, gn_array *b) {
    gn_context *g = gni_begin_pair("gn_setdiff1d", a, b);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_set_part(g, "gn_setdiff1d", a, b, false));
}

GPUNUM_API gn_array *gn_setxor1d(gn_array *a, gn_array *b) {
    gn_context *g = gni_begin_pair("gn_setxor1d", a, b);
    if (g == NULL) return NULL;
    a = gni_set_as(a, b);
    b = a != NULL ? gni_set_as(b, a) : NULL;
    gn_array *first = gni_set_part(g, "gn_setxor1d", a, b, false), *second = NULL, *both = NULL;
    if (first != NULL) second = gni_set_part(g, "gn_setxor1d", b, a, false);
    if (second != NULL) both = gni_raveled_join(first, second);
    return gni_end_scope(g, both != NULL ? gn_sort(both, 0, false) : NULL);
}

// ---- counts

// How often each of `bins` numbers from `least` on is in x (int64, 1-d), whose other elements count nowhere; or the sums of
// weights (float64). With edges (bins + 1) of x's dtype, float32, a distance of `step` from `start` on or anywhere: how many
// are not above it.
static gn_array *gni_counted(gn_context *g, const char *fn, gn_array *x, gn_array *weights, gn_array *edges, double start,
                             double step, int64_t least, int64_t bins) {
    GNI_ZEROED(gni_count, job);
    const gn_shape s = GN_SHAPE(bins);
    const gn_dtype t = weights != NULL ? GN_F64 : GN_I64;
    if (x == NULL || !gni_shape_ok(g, fn, t, &s)) return NULL;
    job.n = gni_elements(&x->shape);
    job.bins = bins;
    job.least = least;
    job.start = start;
    job.scale = gni_search_scale(step);
    if (job.n == 0) return gn_zeros(g, t, s);
    gn_array *by = weights != NULL ? weights : edges; // of which there is one at most
    gn_array *from = gni_contiguous(g, x), *w = from != NULL && by != NULL ? gni_contiguous(g, by) : NULL;
    gn_array *y = from != NULL && (w != NULL || by == NULL) ? gni_array_empty(g, fn, t, &s) : NULL;
    bool ok = y != NULL;
    if (ok && bins > 0) {
        gni_take_operand(from, &job.in);
        if (w != NULL) gni_take_operand(w, weights != NULL ? &job.weight : &job.edges);
        gni_take_operand(y, &job.out);
        ok = gni_run(g, &gni_kind_count, &job, y);
    }
    gni_unref(g, from);
    gni_unref(g, w);
    if (ok) return gni_adopt(g, y);
    gni_unref(g, y);
    return NULL;
}

// The smallest and the largest of 1-d int64 numbers, neighbours: one look where the CPU has them.
static bool gni_bounds_of(gn_context *g, gn_array *x, int64_t *bounds) {
    if (x == NULL || !gni_materialize(g, x)) return false;
    if (x->buf->where == GNI_ON_GPU)
        return gn_read(gn_min(x, 0), &bounds[0], 8) == GN_OK && gn_read(gn_max(x, 0), &bounds[1], 8) == GN_OK;
    const int64_t *p = (const int64_t *)gni_host(g, x), n = x->shape.dim[0];
    const gni_cpu_isa *wide = gni_cpu_isa_of(g->isa)->wide;
    gni_acc low = {0.0, 0.0, INT64_MAX, 0}, high = {0.0, 0.0, INT64_MIN, 0};
    for (int64_t i = 0; i < n && p != NULL; i += GNI_SUM_BLOCK) {
        wide->fold[(int)GNI_RED_MIN * 3 + (int)GNI_I](&low, p + i, GNI_MIN(n - i, GNI_SUM_BLOCK), 0);
        wide->fold[(int)GNI_RED_MAX * 3 + (int)GNI_I](&high, p + i, GNI_MIN(n - i, GNI_SUM_BLOCK), 0);
    }
    bounds[0] = low.i;
    bounds[1] = high.i;
    return p != NULL;
}

GPUNUM_API gn_array *gn_bincount(gn_array *a, gn_array *weights, int64_t length) {
    gn_array *in[2] = {a, weights};
    char ta[200], tw[200];
    gn_context *g = gni_begin_scope("gn_bincount", in, weights != NULL ? 2 : 1);
    if (g == NULL) return NULL;
    if (a->shape.rank != 1 || (weights != NULL && !gni_same_shape(&a->shape, &weights->shape)))
        gni_fail(g, GN_ERROR_SHAPE, "gn_bincount: %s%s%s: 1-d arrays are asked for, weights of the same length",
                 gni_shape_text(ta, sizeof ta, &a->shape), weights != NULL ? " and " : "",
                 weights != NULL ? gni_shape_text(tw, sizeof tw, &weights->shape) : "");
    else if (length < 0)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_bincount: length %lld is negative", (long long)length);
    else if (!gni_is_integer(a->dtype) && a->dtype != GN_BOOL)
        gni_fail(g, GN_ERROR_DTYPE, "gn_bincount: numbers must be integers, not %s", gn_dtype_name(a->dtype));
    if (g->call_failed || !gni_may_wait(g, "gn_bincount") ||
        (weights != NULL && !gni_real_only(g, "gn_bincount", &weights, 1)))
        return gni_end_scope(g, NULL);
    g->no_grad++;
    gn_array *y = NULL, *x = a->dtype == GN_I64 ? a : gn_cast(gni_signed_indices(g, a), GN_I64),
             *w = gni_as(weights, GN_F64);
    int64_t most[2] = {0, -1}; // smallest and largest
    if (x != NULL && !gni_is_pending(x) && !gni_is_contiguous(x)) x = gn_copy(x);
    // Who cannot look gets as many as were asked for.
    bool blind = weights == NULL && length > 0 && gni_is_remote(x);
    blind = blind && gni_materialize(g, x) && x->buf->where == GNI_ON_GPU;
    if (a->shape.dim[0] > 0 && !blind && !gni_bounds_of(g, x, most)) most[0] = most[1] = -1;
    if (most[0] < 0 && !g->call_failed)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_bincount: %lld is negative", (long long)most[0]);
    const bool beyond = most[1] == INT64_MAX;
    if (!g->call_failed)
        y = gni_counted(g, "gn_bincount", x, w, NULL, 0.0, 0.0, 0, GNI_MAX(length, beyond ? INT64_MAX : most[1] + 1));
    g->no_grad--;
    return gni_end_scope(g, y);
}

// The next larger number, for the last edge: its part has its upper bound.
static void gni_above(gn_dtype t, void *number) {
    if (t == GN_F64) *(double *)number = nextafter(*(double *)number, GNI_INF);
    else *(float *)number = nextafterf(*(float *)number, (float)GNI_INF);
}

// x and bounds of one float dtype: edges, and for the last one the next number.
static gn_array *gni_histogram(gn_context *g, const char *fn, gn_array *x, gn_array *bounds, double start, double step) {
    if (x == NULL || bounds == NULL) return NULL;
    const int64_t bins = bounds->shape.dim[0] - 1;
    const bool joined = x->dtype == GN_F32 && bins <= GNI_COUNT_EDGES && !GNI_TEXTS(g->gpu);
    if (joined) return gni_counted(g, fn, x, NULL, bounds, start, step, 1, bins);
    return gni_counted(g, fn, gni_searched(g, fn, bounds, x, true, start, step), NULL, NULL, 0.0, 0.0, 1, bins);
}

// The bins + 1 edges of equal parts of low to high, both 0: of what is in x; *line has the next number instead of the last.
static gn_array *gni_equal_edges(gn_context *g, const char *fn, gn_array *x, int64_t bins, double *low, double high,
                                 double *step, gn_array **line) {
    void *data = NULL, *more = NULL;
    gn_array *bounds = NULL;
    if (bins < 1 || bins == INT64_MAX) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %lld bins", fn, (long long)bins);
        return NULL;
    }
    if (x == NULL) return NULL;
    const gn_dtype t = x->dtype;
    const gn_shape s = GN_SHAPE(bins + 1);
    if (*low == 0.0 && high == 0.0 && gni_elements(&x->shape) > 0 && gni_is_remote(x)) { // the GPU makes them
        gn_array *least = gn_min(x, GN_KEEP(0)), *most = gn_max(x, GN_KEEP(0));
        gn_array *same = gn_mul_s(gn_cast(gn_eq(least, most), t), 0.5), *part[2];
        gn_array *i = gn_arange(g, t, 0.0, (double)bins, 1.0);
        least = gn_sub(least, same);
        part[1] = most = gn_add(most, same);
        part[0] = gn_add(least, gn_mul(i, gn_div_s(gn_sub(most, least), (double)bins)));
        bounds = gn_concat(part, 2, 0);
        part[1] = gn_nextafter(most, gn_full(g, t, GN_SHAPE(1), GNI_INF));
        *line = gn_concat(part, 2, 0);
        *step = 0.0;
        return bounds;
    }
    if (*low == 0.0 && high == 0.0 && gni_elements(&x->shape) > 0) {
        if (gni_may_wait(g, fn)) *low = gn_item(gn_min(x, 0)), high = gn_item(gn_max(x, 0));
    } else if (*low == 0.0 && high == 0.0) {
        high = 1.0;
    }
    if (!(*low <= high) || *low - *low != 0.0 || high - high != 0.0)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the range %g to %g does not rise or is not finite", fn, *low, high);
    if (*low == high) *low -= 0.5, high += 0.5;
    *line = g->call_failed ? NULL : gni_adopt(g, gni_array_filled(g, fn, t, &s, &more));
    if (*line != NULL) bounds = gni_adopt(g, gni_array_filled(g, fn, t, &s, &data));
    // NumPy's (high - low) / bins to the bit, so that what is on an edge there is on it here. Of halves: no overflow.
    *step = (0.5 * high - 0.5 * *low) / (double)bins * 2.0;
    for (int64_t i = 0; i <= bins && bounds != NULL; i++) {
        const double v = i == bins ? high : *low + (double)i * *step;
        if (t == GN_F64) ((double *)data)[i] = v;
        else ((float *)data)[i] = (float)v;
    }
    if (bounds == NULL) return NULL;
    memcpy(more, data, (size_t)(bins + 1) * gn_dtype_size(t));
    gni_above(t, (char *)more + (size_t)bins * gn_dtype_size(t));
    return bounds;
}

GPUNUM_API gn_array *gn_histogram(gn_array *a, int64_t bins, double low, double high, gn_array **edges) {
    if (edges != NULL) *edges = NULL;
    gn_context *g = gni_begin_scope("gn_histogram", &a, 1);
    if (g == NULL) return NULL;
    double step = 0.0;
    gn_array *line = NULL, *y = NULL;
    g->no_grad++;
    gn_array *x = gni_real_only(g, "gn_histogram", &a, 1) ? gn_ravel(gni_in_moments(a)) : NULL;
    gn_array *bounds = x != NULL ? gni_equal_edges(g, "gn_histogram", x, bins, &low, high, &step, &line) : NULL;
    if (bounds != NULL) y = gni_histogram(g, "gn_histogram", x, line, low, step);
    g->no_grad--;
    return gni_end_with(g, y, &bounds, &edges, 1);
}

// Of n axes, 1 or 2, each with its points, number of bins, low and high, and place for edges.
static gn_array *gni_histogram_with(const char *fn, gn_array **in, int n, gn_array *weights, const int64_t *bins,
                                    const double *range, bool density, gn_array **const *place) {
    char text[200], other[200];
    gn_array *edges[2] = {NULL, NULL}, *at = NULL, *width = NULL, *y = NULL;
    for (int k = 0; k < n; k++)
        if (place[k] != NULL) *place[k] = NULL;
    in[n] = weights;
    const int count = n + (weights != NULL);
    gn_context *g = gni_begin_scope(fn, in, count);
    if (g == NULL) return NULL;
    g->no_grad++;
    for (int k = 1; k < count; k++) {
        if (gni_same_shape(&in[0]->shape, &in[k]->shape)) continue;
        gni_fail(g, GN_ERROR_SHAPE, "%s: %s %s for %s", fn, k < n ? "coordinates" : "weights",
                 gni_shape_text(text, sizeof text, &in[k]->shape), gni_shape_text(other, sizeof other, &in[0]->shape));
        break;
    }
    bool ok = !g->call_failed && gni_real_only(g, fn, in, count);
    for (int k = 0; k < n && ok; k++) { // numbers of parts from 1 on
        double low = range[2 * k], step = 0.0;
        gn_array *line = NULL, *x = gn_ravel(gni_in_moments(in[k])), *part;
        edges[k] = gni_equal_edges(g, fn, x, bins[k], &low, range[2 * k + 1], &step, &line);
        ok = edges[k] != NULL;
        part = gni_searched(g, fn, line, x, true, low, step);
        if (density) {
            x = gn_diff(gn_cast(edges[k], GN_F64), 1, 0);
            width = k == 0 ? x : gn_mul(gn_expand_dims(width, 1), x);
        }
        if (n > 1) part = gn_mul(part, gn_le_s(part, (double)bins[k])); // 0 of what is outside
        gn_array *both = k == 0 ? NULL : gn_and(gn_gt_s(at, 0.0), gn_gt_s(part, 0.0));
        at = k == 0 ? part : gn_mul(gn_add(gn_mul_s(gn_sub_s(at, 1.0), (double)bins[k]), part), both);
    }
    const gn_shape s = gn_shape_from(n, bins);
    if (ok && at != NULL && gni_shape_ok(g, fn, GN_F64, &s)) {
        gn_array *w = weights != NULL ? gn_ravel(gni_as(weights, GN_F64)) : NULL;
        if (!g->call_failed) y = gni_counted(g, fn, at, w, NULL, 0.0, 0.0, 1, gni_elements(&s));
        y = gn_reshape(y, s);
    }
    if (density) {
        y = gn_cast(y, GN_F64);
        y = gn_div(y, gn_mul(gn_sum(y, GN_ALL), width));
    }
    g->no_grad--;
    return gni_end_with(g, y, edges, place, n);
}

GPUNUM_API gn_array *gn_histogram_with(gn_array *a, gn_array *weights, int64_t bins, double low, double high, bool density,
                                       gn_array **edges) {
    gn_array *in[2] = {a, NULL};
    const double range[2] = {low, high};
    return gni_histogram_with("gn_histogram_with", in, 1, weights, &bins, range, density, &edges);
}

GPUNUM_API gn_array *gn_histogram2d(gn_array *x, gn_array *y, gn_array *weights, int64_t x_bins, int64_t y_bins,
                                    double x_low, double x_high, double y_low, double y_high, bool density,
                                    gn_array **x_edges, gn_array **y_edges) {
    gn_array *in[3] = {x, y, NULL}, **place[2] = {x_edges, y_edges};
    const int64_t bins[2] = {x_bins, y_bins};
    const double range[4] = {x_low, x_high, y_low, y_high};
    return gni_histogram_with("gn_histogram2d", in, 2, weights, bins, range, density, place);
}

GPUNUM_API gn_array *gn_histogram_edges(gn_array *a, gn_array *edges) {
    gn_context *g = gni_begin_pair("gn_histogram_edges", a, edges);
    if (g == NULL) return NULL;
    gn_array *in[2] = {a, edges}, *y = NULL;
    g->no_grad++;
    const bool real = gni_real_only(g, "gn_histogram_edges", in, 2);
    const int up = real ? gni_direction(g, "gn_histogram_edges", edges) : 0;
    if (up != 0 && (up < 0 || edges->shape.dim[0] < 2)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_histogram_edges: two or more edges that rise are asked for");
    } else if (up != 0) {
        const gn_dtype t = gni_moments_with(gn_promote(a->dtype, edges->dtype), a, edges);
        const int64_t n = edges->shape.dim[0];
        gn_array *line = gn_cast(edges, t), *part[2] = {gn_slice(line, 0, 0, n - 1, 1), gn_slice(line, 0, n - 1, n, 1)};
        double last = 0.0;
        if (GNI_WEBGPU && up == GNI_UNSEEN) {
            part[1] = gn_nextafter(part[1], gn_full(g, t, GN_SHAPE(1), GNI_INF));
        } else {
            const bool seen = gn_read(part[1], &last, gn_dtype_size(t)) == GN_OK;
            gni_above(t, &last);
            part[1] = seen ? gn_array_from(g, t, GN_SHAPE(1), &last) : NULL;
        }
        y = gni_histogram(g, "gn_histogram_edges", gn_ravel(gn_cast(a, t)), gn_concat(part, 2, 0), 0.0, 0.0);
    }
    g->no_grad--;
    return gni_end_scope(g, y);
}
