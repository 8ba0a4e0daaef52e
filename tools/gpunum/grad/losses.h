// >>losses
// The losses that are made of other ops: lazy, so that a loss and its reduction are one pass. Nothing here is used
// elsewhere.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../grad/gradients.h"
#endif

typedef struct gni_loss {
    gn_context *g;
    gn_dtype t;      // of the result
    gn_array *x, *y; // prediction and target
} gni_loss;

// Begins a loss of a float array, a target of the same shape and `count` - 2 more, with a setting from 0 on; a scope is open
// afterwards.
static bool gni_loss_begin(gni_loss *l, const char *fn, gn_array *x, gn_array *y, gn_array *more, int count,
                           double setting) {
    gn_array *in[3];
    char tx[200], ty[200];
    in[0] = x;
    in[1] = y;
    in[2] = more;
    gn_context *g = l->g = gni_begin(fn, in, count);
    if (g == NULL) return false;
    if (!gni_same_shape(&x->shape, &y->shape)) // broadcasting hides mistakes here
        gni_fail(g, GN_ERROR_SHAPE, "%s: prediction %s and target %s have different shapes", fn,
                 gni_shape_text(tx, sizeof tx, &x->shape), gni_shape_text(ty, sizeof ty, &y->shape));
    else if (!gni_is_float(x->dtype) || gni_is_complex(y->dtype))
        gni_fail(g, GN_ERROR_DTYPE, "%s: the prediction is %s and the target %s, not a float and a real number", fn,
                 gn_dtype_name(x->dtype), gn_dtype_name(y->dtype));
    else if (!(setting >= 0.0 && setting < GNI_INF))
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %g is no number from 0 on", fn, setting);
    if (g->call_failed) {
        gni_end_plain(g);
        return false;
    }
    gn_scope_begin(g);
    l->t = gni_autocasts_back(g, x) ? GN_F32 : x->dtype;
    l->x = gni_half_up(x);
    l->y = gni_half_up(y);
    if (l->x != NULL && l->y != NULL) return true;
    gni_end_scope(g, NULL);
    return false;
}

// Ends what gni_loss_begin began: `each` reduced, and rounded to the prediction's dtype.
static gn_array *gni_loss_end(const gni_loss *l, gn_array *each, gn_reduction r) {
    gn_array *y = each;
    const double rows = each != NULL && each->shape.rank > 0 ? (double)each->shape.dim[0] : 1.0;
    if ((unsigned)r > GN_REDUCE_BATCH_MEAN)
        gni_fail(l->g, GN_ERROR_ARGUMENT, "%s: %d is not a gn_reduction", l->g->call, (int)r);
    if (r == GN_REDUCE_SUM || r == GN_REDUCE_BATCH_MEAN) y = gn_sum(y, GN_ALL);
    if (r == GN_REDUCE_BATCH_MEAN) y = gn_div_s(y, rows);
    if (r == GN_REDUCE_MEAN) y = gn_mean(y, GN_ALL);
    if (y != NULL && y->dtype != l->t) y = gn_cast(y, l->t);
    return gni_end_scope(l->g, y);
}

static gn_array *gni_mse(const char *fn, gn_array *x, gn_array *y, gn_reduction r) {
    gni_loss l;
    return gni_loss_begin(&l, fn, x, y, NULL, 2, 0.0) ? gni_loss_end(&l, gn_square(gn_sub(l.x, l.y)), r) : NULL;
}

GPUNUM_API gn_array *gn_mse_loss(gn_array *prediction, gn_array *target) {
    return gni_mse("gn_mse_loss", prediction, target, GN_REDUCE_MEAN);
}
GPUNUM_API gn_array *gn_mse_loss_with(gn_array *prediction, gn_array *target, gn_reduction r) {
    return gni_mse("gn_mse_loss_with", prediction, target, r);
}

// With m = d between -beta and beta: m (d - m / 2) / beta, whose derivative is finite where d is infinite. Not of |d|, which
// has no second derivative at 0.
static gn_array *gni_huber(const char *fn, gn_array *x, gn_array *y, double beta, double factor, gn_reduction r) {
    gni_loss l;
    if (!gni_loss_begin(&l, fn, x, y, NULL, 2, beta)) return NULL;
    if (factor == 0.0) gni_fail(l.g, GN_ERROR_ARGUMENT, "%s: delta is 0, as every loss would be", fn);
    gn_array *d = gn_sub(l.x, l.y);
    if (beta > 0.0) {
        gn_array *m = gn_clamp(d, -beta, beta);
        d = gn_mul_s(gn_mul(m, gn_sub(d, gn_mul_s(m, 0.5))), factor / beta);
    } else {
        d = gn_abs(d);
    }
    return gni_loss_end(&l, d, r);
}

GPUNUM_API gn_array *gn_l1_loss(gn_array *prediction, gn_array *target, gn_reduction r) {
    return gni_huber("gn_l1_loss", prediction, target, 0.0, 1.0, r);
}
GPUNUM_API gn_array *gn_smooth_l1_loss(gn_array *prediction, gn_array *target, double beta, gn_reduction r) {
    return gni_huber("gn_smooth_l1_loss", prediction, target, beta, 1.0, r);
}
GPUNUM_API gn_array *gn_huber_loss(gn_array *prediction, gn_array *target, double delta, gn_reduction r) {
    return gni_huber("gn_huber_loss", prediction, target, delta, delta, r);
}

// Both logarithms, of p and of 1 - p.
static void gni_bce_logs(gn_array *p, gn_array **log_p, gn_array **log_q) {
    *log_p = gn_maximum_s(gn_log(p), -100.0);
    *log_q = gn_maximum_s(gn_log1p(gn_neg(p)), -100.0);
}

// in: p, target. Finite at 0 and 1, as in PyTorch.
static bool gni_back_bce(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *p = node->in[0], *target = node->in[1], *log_p, *log_q;
    GNI_UNUSED(g);
    if (gni_wanted(node, 0)) {
        gn_array *spread = gn_maximum_s(gn_mul(p, gn_rsub_s(p, 1.0)), 1e-12);
        gx[0] = gn_mul(gy, gn_div(gn_sub(p, target), spread));
    }
    if (gni_wanted(node, 1)) {
        gni_bce_logs(p, &log_p, &log_q);
        gx[1] = gn_mul(gy, gn_sub(log_q, log_p));
    }
    return true;
}

GPUNUM_API gn_array *gn_bce_loss(gn_array *p, gn_array *target, gn_reduction r) {
    gni_loss l;
    gn_array *log_p, *log_q, *in[2];
    if (!gni_loss_begin(&l, "gn_bce_loss", p, target, NULL, 2, 0.0)) return NULL;
    if (!gni_is_float(l.y->dtype)) l.y = gn_cast(l.y, l.x->dtype);
    in[0] = l.x;
    in[1] = l.y;
    l.g->no_grad++; // recorded as one op
    gni_bce_logs(l.x, &log_p, &log_q);
    gn_array *each = gn_sub(gn_mul(gn_add_s(l.y, -1.0), log_q), gn_mul(l.y, log_p));
    l.g->no_grad--;
    if (each != NULL) gni_record(l.g, each, "gn_bce_loss", gni_back_bce, in, 2);
    return gni_loss_end(&l, each, r);
}

GPUNUM_API gn_array *gn_bce_with_logits(gn_array *logits, gn_array *target, gn_array *pos_weight, gn_reduction r) {
    gni_loss l;
    if (!gni_loss_begin(&l, "gn_bce_with_logits", logits, target, pos_weight, pos_weight != NULL ? 3 : 2, 0.0)) return NULL;
    if (!gni_is_float(l.y->dtype)) l.y = gn_cast(l.y, l.x->dtype);
    gn_array *miss = gn_softplus(gn_neg(l.x));
    if (pos_weight != NULL) miss = gn_mul(miss, gn_add_s(gn_mul(gn_add_s(pos_weight, -1.0), l.y), 1.0));
    gn_array *each = gn_add(gn_mul(gn_rsub_s(l.y, 1.0), l.x), miss);
    if (each != NULL && !gni_same_shape(&each->shape, &l.x->shape))
        gni_fail(l.g, GN_ERROR_SHAPE, "gn_bce_with_logits: pos_weight has more axes or elements than the logits");
    return gni_loss_end(&l, each, r);
}

GPUNUM_API gn_array *gn_kl_div(gn_array *log_q, gn_array *target, bool log_target, gn_reduction r) {
    gni_loss l;
    if (!gni_loss_begin(&l, "gn_kl_div", log_q, target, NULL, 2, 0.0)) return NULL;
    if (log_target) return gni_loss_end(&l, gn_mul(gn_exp(l.y), gn_sub(l.y, l.x)), r);
    gn_array *none = gn_eq_s(l.y, 0.0); // 0 log 0 is 0
    gn_array *log_t = gn_log(gn_where(none, gn_scalar(l.g, l.y->dtype, 1.0), l.y));
    return gni_loss_end(&l, gn_mul(l.y, gn_sub(log_t, l.x)), r);
}

// The length of the vectors along the axis, `eps` or more.
static gn_array *gni_length(gn_array *x, int axis, double eps) {
    return gn_sqrt(gn_maximum_s(gn_sum(gn_square(x), axis), eps * eps));
}

GPUNUM_API gn_array *gn_cosine_similarity(gn_array *a, gn_array *b, int axis, double eps) {
    static const char *const fn = "gn_cosine_similarity";
    gn_context *g = gni_begin_pair(fn, a, b);
    if (g == NULL) return NULL;
    const gn_dtype t = gn_promote(a->dtype, b->dtype);
    if (!gni_is_float(t) || !(eps >= 0.0)) {
        gni_fail(g, gni_is_float(t) ? GN_ERROR_ARGUMENT : GN_ERROR_DTYPE, "%s: %s numbers, eps %g", fn, gn_dtype_name(t),
                 eps);
        return gni_end_scope(g, NULL);
    }
    const gn_dtype wide = t == GN_F64 ? t : GN_F32; // of both: lengths have the precision of what they are of
    gn_array *x = gni_as(a, wide), *y = gni_as(b, wide), *product = gn_mul(x, y);
    const int at = product == NULL ? -1 : gni_axis(g, fn, axis, product->shape.rank);
    if (at < 0) return gni_end_scope(g, NULL);
    x = gn_broadcast_to(x, product->shape);
    y = gn_broadcast_to(y, product->shape);
    gn_array *cosine = gn_div(gn_sum(product, at), gn_mul(gni_length(x, at, eps), gni_length(y, at, eps)));
    return gni_end_scope(g, cosine == NULL || cosine->dtype == t ? cosine : gn_cast(cosine, t));
}

GPUNUM_API gn_array *gn_cosine_embedding_loss(gn_array *a, gn_array *b, gn_array *labels, double margin, gn_reduction r) {
    static const char *const fn = "gn_cosine_embedding_loss";
    gni_loss l;
    gn_array *cosine = NULL, *each = NULL;
    if (!gni_loss_begin(&l, fn, a, b, labels, 3, 0.0)) return NULL;
    if (l.x->shape.rank == 1 || l.x->shape.rank == 2) cosine = gn_cosine_similarity(l.x, l.y, -1, 1e-8);
    if (cosine != NULL && gni_same_shape(&cosine->shape, &labels->shape)) {
        gn_array *apart = gn_mul(gn_relu(gn_add_s(cosine, -margin)), gn_eq_s(labels, -1.0));
        each = gn_where(gn_eq_s(labels, 1.0), gn_rsub_s(cosine, 1.0), apart);
    } else {
        gni_fail(l.g, GN_ERROR_SHAPE, "%s: not rows (n, d) and labels (n)", fn);
    }
    return gni_loss_end(&l, each, r);
}

// ---- losses of classes

// Where the label is the one that is ignored, or another one. No double has all labels.
static gn_array *gni_ignored(gn_context *g, gn_array *labels, int64_t ignored, bool same) {
    const int64_t exact = (int64_t)1 << 53;
    if (ignored >= -exact && ignored <= exact)
        return same ? gn_eq_s(labels, (double)ignored) : gn_ne_s(labels, (double)ignored);
    gn_array *whole = gn_full_int(g, GN_I64, gn_shape_from(0, NULL), ignored);
    return same ? gn_eq(labels, whole) : gn_ne(labels, whole);
}

// Where the class along x's axis is the label, pending; *all: the classes, on that axis. Labels are compared in the dtype of
// these: of int64 all that is fused with the answer would be in 64 bits.
static gn_array *gni_label_hits(gn_context *g, gn_array *labels, const gn_array *x, int axis, gn_array **all) {
    gn_shape column = x->shape;
    const int64_t classes = column.dim[axis];
    for (int i = 0; i < column.rank; i++) column.dim[i] = i == axis ? classes : 1;
    *all = gn_reshape(gn_arange(g, classes > INT32_MAX ? GN_I64 : GN_I32, 0.0, (double)classes, 1.0), column);
    gn_array *y = *all != NULL ? gni_as(labels, (*all)->dtype) : NULL;
    return y != NULL && gni_materialize(g, y) ? gn_eq(y, *all) : NULL;
}

// Labels as indices of the classes, those that are ignored as 0. One that there is not is told at once where the CPU has
// them, else by the job that takes these indices: there a negative one is none, either. The scope's; NULL after gni_fail.
static gn_array *gni_label_places(gn_context *g, const char *fn, gn_array *labels, int64_t classes, bool ignores,
                                  int64_t ignored) {
    gn_array *at = gni_adopt(g, gni_take_indices(g, labels));
    const int64_t n = gni_elements(&labels->shape);
    if (at == NULL || n == 0) return at;
    gn_array *zero = gn_scalar(g, at->dtype, 0.0);
    if (at->buf->where == GNI_ON_GPU) {
        gn_array *found = gn_where(gn_lt_s(at, 0.0), gn_scalar(g, at->dtype, (double)classes), at);
        return ignores ? gn_where(gni_ignored(g, at, ignored, true), zero, found) : found;
    }
    const void *data = gni_host(g, at);
    if (data == NULL) return NULL;
    bool some = false;
    for (int64_t i = 0; i < n; i++) {
        const int64_t label = at->dtype == GN_I64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
        if (label >= 0 && label < classes) continue;
        some = ignores && label == ignored;
        if (some) continue;
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: label %lld is none of %lld classes", fn, (long long)label, (long long)classes);
        return NULL;
    }
    return some ? gn_where(gni_ignored(g, at, ignored, true), zero, at) : at;
}

// in: x, one hot (bool, pending), and of logits the parts of logsumexp: (softmax(x) - one hot) gy, or -gy where it is.
static bool gni_back_label_losses(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *x = node->in[0], *hit = node->in[1], *top = node->in[2];
    if (top == NULL) {
        gx[0] = gn_where(hit, gn_neg(gy), gn_scalar(g, gy->dtype, 0.0));
        return true;
    }
    gn_array *p = g->no_grad > 0 ? gn_exp(gn_sub(gn_sub(x, top), node->in[3])) : gn_softmax(x, (int)node->param[0]);
    gx[0] = gn_mul(gn_sub(p, gn_cast(hit, x->dtype)), gy);
    return true;
}

// -log(p) of the labels, with the axis; x are logits or log(p) itself. These are read once, and it is recorded as one op.
static gn_array *gni_label_losses(gn_context *g, const char *fn, gn_array *x, gn_array *labels, gn_array *places, int axis,
                                  bool logits) {
    gn_array *in[4], *all;
    memset(in, 0, sizeof in);
    in[0] = x;
    if (gni_tracks(g, in, 1)) in[1] = gni_label_hits(g, labels, x, axis, &all);
    g->no_grad++;
    gn_array *from = gni_widening_of(g, x), *y = NULL;
    if (from != NULL) y = gni_as(gni_adopt(g, gni_take_any(g, fn, from, places, axis, true)), x->dtype);
    if (logits) in[3] = gni_log_sum(g, x, 1u << axis, &in[2]);
    y = logits ? gn_sub(in[3], gn_sub(y, in[2])) : gn_neg(y);
    g->no_grad--;
    gni_note(gni_record(g, y, fn, gni_back_label_losses, in, 4), axis, 0, 0);
    return y;
}

static bool gni_class_loss_ok(gn_context *g, const char *fn, const gn_array *x, const gn_array *labels,
                              const gn_cross_entropy_options *o, int axis, bool logits) {
    char tx[200], ty[200];
    gn_shape rows = gni_reduced_shape(&x->shape, 1u << axis, false);
    const bool fits = x->shape.rank > 0 && x->shape.dim[axis] > 0 && gni_same_shape(&rows, &labels->shape);
    const gn_array *w = o->weight;
    if (!fits)
        gni_fail(g, GN_ERROR_SHAPE, "%s: %s and labels %s are not (n, classes, ...) and (n, ...)", fn,
                 gni_shape_text(tx, sizeof tx, &x->shape), gni_shape_text(ty, sizeof ty, &labels->shape));
    else if (!gni_is_float(x->dtype) || !gni_is_integer(labels->dtype) || (w != NULL && !gni_is_float(w->dtype)))
        gni_fail(g, GN_ERROR_DTYPE, "%s: %s and labels %s are not floats and integers, or weights no floats", fn,
                 gn_dtype_name(x->dtype), gn_dtype_name(labels->dtype));
    else if (w != NULL && (w->shape.rank != 1 || w->shape.dim[0] != x->shape.dim[axis]))
        gni_fail(g, GN_ERROR_SHAPE, "%s: weight %s for %lld classes", fn, gni_shape_text(tx, sizeof tx, &w->shape),
                 (long long)x->shape.dim[axis]);
    else if (!(o->label_smoothing >= 0.0 && o->label_smoothing <= (logits ? 1.0 : 0.0)))
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: label smoothing %g", fn, o->label_smoothing);
    else if ((unsigned)o->reduction > GN_REDUCE_NONE)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: reduction %d", fn, (int)o->reduction);
    return !g->call_failed;
}

// The sum over the classes of -w target log(p): neither an array of log-probabilities nor one of targets is made.
static gn_array *gni_class_losses(gn_context *g, const char *fn, gn_array *x, gn_array *labels,
                                  const gn_cross_entropy_options *o, int axis, bool logits) {
    const int64_t classes = x->shape.dim[axis];
    const double kept = 1.0 - o->label_smoothing, spread = o->label_smoothing / (double)classes;
    const gn_dtype t = x->dtype;
    gn_array *none = gn_scalar(g, t, 0.0), *w = o->weight, *row_weight = NULL, *counts = NULL, *all, *top, *each;
    labels = gn_expand_dims(labels, axis);
    gn_array *places = labels != NULL ? gni_label_places(g, fn, labels, classes, o->ignores, o->ignored) : NULL;
    if (places == NULL) return NULL;
    if (o->ignores) counts = gni_ignored(g, labels, o->ignored, false);
    if (w != NULL) {
        w = gni_as(w, t);
        row_weight = gni_adopt(g, gni_take_any(g, fn, w, places, 0, false));
    }
    if (spread > 0.0) {
        gn_array *hit = gni_label_hits(g, labels, x, axis, &all), *log = gni_log_sum(g, x, 1u << axis, &top);
        if (hit == NULL || log == NULL) return NULL;
        if (w == NULL && (places->buf == NULL || places->buf->where == GNI_ON_GPU)) // that job looks at them
            gni_adopt(g, gni_take_any(g, fn, gn_ravel(all), places, 0, false));
        each = gn_mul(gn_sub(x, top), gn_where(hit, gn_scalar(g, t, kept + spread), gn_scalar(g, t, spread)));
        if (w != NULL) {
            each = gn_mul(each, gn_reshape(w, all->shape));
            log = gn_mul(log, gn_add(gn_mul_s(row_weight, kept), gn_mul_s(gn_sum(w, GN_ALL), spread)));
        }
        each = gn_sub(log, gn_sum(each, GN_KEEP(axis)));
    } else {
        each = gni_label_losses(g, fn, x, labels, places, axis, logits);
        if (w != NULL) each = gn_mul(each, row_weight);
    }
    if (counts != NULL) each = gn_where(counts, each, none);
    if (o->reduction == GN_REDUCE_NONE) return gn_squeeze(each, axis);
    if (o->reduction == GN_REDUCE_SUM) return gn_sum(each, GN_ALL);
    if (row_weight == NULL && counts == NULL) return gn_mean(each, GN_ALL);
    if (row_weight == NULL) row_weight = gn_cast(counts, t);
    else if (counts != NULL) row_weight = gn_where(counts, row_weight, none);
    return gn_div(gn_sum(each, GN_ALL), gn_sum(row_weight, GN_ALL));
}

static gn_array *gni_class_loss(const char *fn, gn_array *x, gn_array *labels, const gn_cross_entropy_options *options,
                                bool logits) {
    gn_cross_entropy_options o;
    gn_array *in[3];
    memset(&o, 0, sizeof o);
    if (options != NULL) o = *options;
    in[0] = x;
    in[1] = labels;
    in[2] = o.weight;
    gn_context *g = gni_begin(fn, in, o.weight != NULL ? 3 : 2);
    if (g == NULL) return NULL;
    const int axis = x->shape.rank > 1;
    if (!gni_class_loss_ok(g, fn, x, labels, &o, axis, logits)) return gni_end(g, NULL);
    gn_scope_begin(g);
    gn_array *inner = gni_half_up(x), *y = inner != NULL ? gni_class_losses(g, fn, inner, labels, &o, axis, logits) : NULL;
    return gni_end_scope(g, gni_autocasts_back(g, x) ? y : gni_as(y, x->dtype));
}

GPUNUM_API gn_array *gn_cross_entropy(gn_array *logits, gn_array *labels) {
    return gni_class_loss("gn_cross_entropy", logits, labels, NULL, true);
}
GPUNUM_API gn_array *gn_cross_entropy_with(gn_array *logits, gn_array *labels, const gn_cross_entropy_options *options) {
    return gni_class_loss("gn_cross_entropy_with", logits, labels, options, true);
}
GPUNUM_API gn_array *gn_nll_loss(gn_array *log_p, gn_array *labels, const gn_cross_entropy_options *options) {
    return gni_class_loss("gn_nll_loss", log_p, labels, options, false);
}
