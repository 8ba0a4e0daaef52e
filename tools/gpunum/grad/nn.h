// >>nn
// Layers and losses.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../ops/random_ops.h"
#include "../grad/gradients.h"
#endif

GPUNUM_API void gn_autocast_begin(gn_context *g, gn_dtype t) {
    if (!gni_begin_context("gn_autocast_begin", g)) return;
    const uint64_t bits = t == GN_F16 ? GNI_AUTOCAST_F16 : t == GN_BF16 ? GNI_AUTOCAST_BF16 : GNI_AUTOCAST_OFF;
    if (t != GN_F16 && t != GN_BF16 && t != GN_F32)
        gni_fail(g, GN_ERROR_DTYPE, "gn_autocast_begin: %s is not float16, bfloat16 or float32", gn_dtype_name(t));
    else if (g->autocast >> 62 != 0)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_autocast_begin: 32 of them are open");
    if (!gni_stack_need(g) || g->autocast >> 62 != 0)
        g->lost_autocast++;
    else
        g->autocast = g->autocast << 2 | bits; // after a wrong dtype too: an end will follow
    gni_end_plain(g);
}

GPUNUM_API void gn_autocast_end(gn_context *g) {
    if (!gni_begin_context("gn_autocast_end", g)) return;
    if (g->lost_autocast > 0 && (g->autocast == 0 || g->autocast >> 62 != 0)) // outside of all others, or the innermost
        g->lost_autocast--;
    else if (g->autocast == 0)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_autocast_end: no gn_autocast_begin before it");
    else
        g->autocast >>= 2;
    gni_end_plain(g);
}

// Matrix product and bias, recorded as one op. One reference for the caller.
static gn_array *gni_fused_linear(gn_context *g, gn_array *const *in) {
    gn_array *sum[2], *y = NULL;
    sum[0] = gni_matmul_named(g, "gn_linear", in[0], in[1]);
    sum[1] = in[2];
    gn_dtype t = in[2]->dtype;
    if (sum[0] != NULL) y = gni_apply(g, "gn_linear", GNI_OP_ADD, t, t, sum, NULL, 2);
    gni_unref(g, sum[0]);
    gni_record(g, y, "gn_linear", gni_back_linear, in, 3);
    return y;
}

GPUNUM_API gn_array *gn_linear(gn_array *x, gn_array *w, gn_array *b) {
    gn_array *in[3];
    in[0] = x;
    in[1] = w;
    in[2] = b;
    gn_context *g = gni_begin("gn_linear", in, b != NULL ? 3 : 2);
    if (g == NULL) return NULL;
    if (gni_autocasts(g, in, b != NULL ? 3 : 2)) {
        gn_scope_begin(g);
        gni_autocast_all(g, in, b != NULL ? 3 : 2);
        return gni_end_scope(g, gn_linear(in[0], in[1], in[2]));
    }
    if (w->shape.rank != 2 || x->shape.rank < 1 ||
        x->shape.dim[x->shape.rank - 1] != w->shape.dim[0] ||
        (b != NULL && (b->shape.rank != 1 || b->shape.dim[0] != w->shape.dim[1]))) {
        char tx[200], tw[200], tb[200];
        gni_fail(g, GN_ERROR_SHAPE,
                 "gn_linear: x %s, w %s, b %s are not (..., in), (in, out), (out)%s",
                 gni_shape_text(tx, sizeof tx, &x->shape), gni_shape_text(tw, sizeof tw, &w->shape),
                 b != NULL ? gni_shape_text(tb, sizeof tb, &b->shape) : "none",
                 w->shape.rank == 2 && x->shape.rank > 0 && x->shape.dim[x->shape.rank - 1] == w->shape.dim[1]
                     ? ": gn_transpose a w that is (out, in)" : "");
        return gni_end(g, NULL);
    }
    bool sums32 = x->dtype == GN_F32 || x->dtype == GN_F16 || x->dtype == GN_BF16;
    if (b != NULL && sums32 && w->dtype == x->dtype && b->dtype == x->dtype)
        return gni_end(g, gni_fused_linear(g, in));
    gn_scope_begin(g);
    gn_array *y = gn_matmul(x, w);
    return gni_end_scope(g, b != NULL ? gn_add(y, b) : y);
}

// a s with s = sigmoid(v), v = 2 k a (1 + c a^2): 1 + tanh(v / 2) is 2 s.
static gn_array *gni_gelu_gate(gn_array *a) {
    return gn_sigmoid(gn_mul(gn_add_s(gn_mul_s(gn_square(a), GNI_GELU_CUBE * GNI_GELU_SLOPE), GNI_GELU_SLOPE), a));
}

// (a s)' = s + s (1 - s) a v'. What is 0 at both ends is multiplied first: v' grows without bound.
static bool gni_back_gelu_tanh(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *a = gni_half_up(node->in[0]), *s = gni_gelu_gate(a);
    gn_array *slope = gn_add_s(gn_mul_s(gn_square(a), 3.0 * GNI_GELU_CUBE * GNI_GELU_SLOPE), GNI_GELU_SLOPE);
    GNI_UNUSED(g);
    gx[0] = gni_slope_by(gy, gn_add(gn_mul(gn_mul(gn_mul(s, gn_rsub_s(s, 1.0)), a), slope), s));
    return true;
}

GPUNUM_API gn_array *gn_gelu_tanh(gn_array *a) {
    gn_context *g = gni_begin("gn_gelu_tanh", &a, 1);
    if (g == NULL) return NULL;
    if (!gni_need_float(g, "gn_gelu_tanh", a->dtype)) return gni_end(g, NULL);
    gn_scope_begin(g);
    g->no_grad++; // recorded as one op
    gn_array *x = gni_half_up(a), *y = gni_as(gn_mul(x, gni_gelu_gate(x)), a->dtype);
    g->no_grad--;
    gni_record(g, y, "gn_gelu_tanh", gni_back_gelu_tanh, &a, 1);
    return gni_end_scope(g, y);
}

// d loss / d logits = (softmax(logits) - one hot) gy / n. in: logits, one hot (bool, pending), logsumexp.
static bool gni_back_cross_entropy(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *logits = node->in[0], *picked = gn_cast(node->in[1], logits->dtype);
    gn_array *p = g->no_grad > 0 ? gn_exp(gn_sub(logits, node->in[2])) : gn_softmax(logits, 1);
    double n = (double)GNI_MAX(logits->shape.dim[0], 1);
    gx[0] = gn_mul(gn_sub(p, picked), gn_div_s(gy, n));
    return true;
}

static bool gni_cross_entropy_ok(gn_context *g, const gn_array *logits, const gn_array *labels) {
    char ta[200], tb[200];
    if (logits->shape.rank != 2 || labels->shape.rank != 1 ||
        labels->shape.dim[0] != logits->shape.dim[0]) {
        gni_fail(g, GN_ERROR_SHAPE,
                 "gn_cross_entropy: logits %s and labels %s are not (n, classes) and (n)",
                 gni_shape_text(ta, sizeof ta, &logits->shape),
                 gni_shape_text(tb, sizeof tb, &labels->shape));
        return false;
    }
    if (!gni_is_float(logits->dtype) || !gni_is_integer(labels->dtype)) {
        gni_fail(g, GN_ERROR_DTYPE,
                 "gn_cross_entropy: logits are %s and labels %s, not floats and integers",
                 gn_dtype_name(logits->dtype), gn_dtype_name(labels->dtype));
        return false;
    }
    return true;
}

// Where the label is the one that is ignored, or another one. No double has all labels.
static gn_array *gni_ignored(gn_context *g, gn_array *labels, int64_t ignored, bool same) {
    const int64_t exact = (int64_t)1 << 53;
    if (ignored >= -exact && ignored <= exact)
        return same ? gn_eq_s(labels, (double)ignored) : gn_ne_s(labels, (double)ignored);
    gn_array *whole = gn_full_int(g, GN_I64, gn_shape_from(0, NULL), ignored);
    return same ? gn_eq(labels, whole) : gn_ne(labels, whole);
}

// Labels to compare with all classes, in the dtype of these: of int64 all that is fused with the answer would be in 64 bits.
static gn_array *gni_labels_as(gn_context *g, gn_array *labels, const gn_array *all) {
    gn_array *y = all != NULL && all->dtype != labels->dtype ? gn_cast(labels, all->dtype) : labels;
    return y != NULL && gni_materialize(g, y) ? y : NULL;
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

GPUNUM_API gn_array *gn_cross_entropy(gn_array *logits, gn_array *labels) {
    gn_array *in[3];
    in[0] = logits;
    in[1] = labels;
    gn_context *g = gni_begin("gn_cross_entropy", in, 2);
    if (g == NULL) return NULL;
    if (!gni_cross_entropy_ok(g, logits, labels)) return gni_end(g, NULL);
    if (logits->dtype == GN_F16 || logits->dtype == GN_BF16) { // read as they are, and rounded once
        gn_scope_begin(g);
        gn_array *y = gn_cross_entropy(gn_cast(logits, GN_F32), labels);
        return gni_end_scope(g, gni_autocasts_back(g, logits) ? y : gni_as(y, logits->dtype));
    }
    gn_scope_begin(g);
    const bool tracked = gni_tracks(g, &logits, 1);
    g->no_grad++; // recorded as one op
    int64_t classes = logits->shape.dim[1];
    gn_array *at = gni_label_places(g, "gn_cross_entropy", labels, classes, false, 0), *y = NULL, *hit = NULL, *lse = NULL;
    if (at != NULL) {
        gn_array *from = gni_widening_of(g, logits);
        gn_array *picked =
            from == NULL ? NULL : gni_adopt(g, gni_take_any(g, "gn_cross_entropy", from, gn_expand_dims(at, 1), 1, true));
        if (picked != NULL && from != logits) picked = gn_cast(picked, logits->dtype);
        if (tracked) {
            gn_array *all = gn_arange(g, classes > INT32_MAX ? GN_I64 : GN_I32, 0.0, (double)classes, 1.0);
            hit = gn_eq(gn_expand_dims(gni_labels_as(g, labels, all), 1), all);
        }
        lse = gn_logsumexp(logits, GN_KEEP(1));
        y = gn_mean(gn_sub(lse, picked), GN_ALL);
    }
    g->no_grad--;
    in[1] = hit;
    in[2] = lse;
    gni_record(g, y, "gn_cross_entropy", gni_back_cross_entropy, in, 3);
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_mse_loss(gn_array *prediction, gn_array *target) {
    gn_array *in[2];
    in[0] = prediction;
    in[1] = target;
    gn_context *g = gni_begin("gn_mse_loss", in, 2);
    if (g == NULL) return NULL;
    if (gni_autocasts_back(g, prediction)) {
        gn_scope_begin(g);
        return gni_end_scope(g, gn_mse_loss(gn_cast(prediction, GN_F32), target));
    }
    if (!gni_same_shape(&prediction->shape, &target->shape)) { // broadcasting hides mistakes here
        char ta[200], tb[200];
        gni_fail(g, GN_ERROR_SHAPE,
                 "gn_mse_loss: prediction %s and target %s have different shapes",
                 gni_shape_text(ta, sizeof ta, &prediction->shape),
                 gni_shape_text(tb, sizeof tb, &target->shape));
        return gni_end(g, NULL);
    }
    gn_scope_begin(g);
    return gni_end_scope(g, gn_mean(gn_square(gn_sub(prediction, target)), GN_ALL));
}

// ---- dropout: the numbers are drawn again where the gradient needs them

static gn_array *gni_dropped(gn_context *g, gn_array *x, double p, gni_random *job);

// real[0]: p, param: the place in the stream.
static bool gni_back_dropout(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gni_random job;
    memset(&job, 0, sizeof job);
    job.seed = (uint64_t)node->param[0];
    job.counter = (uint64_t)node->param[1];
    gx[0] = gni_dropped(g, gy, node->real[0], &job);
    return true;
}

static gn_array *gni_dropped(gn_context *g, gn_array *x, double p, gni_random *job) {
    const bool near_gpu = g->near_gpu;
    g->no_grad++; // recorded as one op
    g->near_gpu = near_gpu || gni_reads_gpu(x);
    gn_array *drop = gni_random_below_p(g, "gn_dropout", &x->shape, p, job);
    g->near_gpu = near_gpu;
    gn_array *y = gn_where(drop, gni_zero_like(x), gn_mul_s(x, 1.0 / (1.0 - p)));
    g->no_grad--;
    gni_node *node = gni_record(g, y, "gn_dropout", gni_back_dropout, &x, 1);
    if (node != NULL) {
        node->param[0] = (int64_t)job->seed;
        node->param[1] = (int64_t)job->counter;
        node->real[0] = p;
    }
    return y;
}

GPUNUM_API gn_array *gn_dropout(gn_array *x, double p, bool training) {
    gn_context *g = gni_begin("gn_dropout", &x, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    gn_scope_begin(g);
    if (!(p >= 0.0 && p <= 1.0)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_dropout: the probability %g is not between 0 and 1", p);
    } else if (gni_need_float(g, "gn_dropout", x->dtype) && (!training || p == 0.0)) {
        y = gn_cast(x, x->dtype);
    } else if (!g->call_failed) {
        gni_random job;
        memset(&job, 0, sizeof job);
        job.seed = g->seed;
        job.counter = g->counter;
        y = gni_dropped(g, x, p, &job);
        g->counter += ((uint64_t)gni_elements(&x->shape) + 3) / 4;
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_embedding(gn_array *indices, gn_array *table, int64_t padding) {
    gn_array *in[2];
    in[0] = indices;
    in[1] = table;
    gn_context *g = gni_begin("gn_embedding", in, 2);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    const int64_t rows = table->shape.rank == 2 ? table->shape.dim[0] : -1;
    const int64_t at = padding < 0 && rows > 0 ? padding + rows : padding;
    char text[200];
    gn_array *y = NULL;
    if (rows < 0 || !gni_is_float(table->dtype))
        gni_fail(g, rows < 0 ? GN_ERROR_SHAPE : GN_ERROR_DTYPE, "gn_embedding: the table is %s %s, not a float (rows, size)",
                 gn_dtype_name(table->dtype), gni_shape_text(text, sizeof text, &table->shape));
    else if (padding != GN_NONE && (at < 0 || at >= rows))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_embedding: padding %lld of %lld rows", (long long)padding, (long long)rows);
    else
        y = gn_take(table, indices, 0);
    if (y != NULL && padding != GN_NONE && gn_needs_grad(y)) { // the same numbers by a way that no gradient goes back on
        const bool fits = indices->dtype == GN_I64 || (indices->dtype == GN_I32 && rows <= INT32_MAX);
        gn_array *i = fits ? indices : gn_cast(indices, GN_I64);
        gn_array *pads = gn_logical_or(gn_eq_s(i, (double)at), gn_eq_s(i, (double)(at - rows)));
        y = gn_where(gn_expand_dims(pads, -1), gn_detach(y), y);
    }
    return gni_end_scope(g, y);
}

// The numbers that go into each element of a result and come out of each one: fan[0] and fan[1].
static bool gni_is_layer(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s, double *fan) {
    char text[200];
    if (!gni_shape_ok(g, fn, t, s) || !gni_need_float(g, fn, t)) return false;
    const int64_t taps = s->rank > 2 ? gni_extent_product(s->dim + 2, s->rank - 2) : 1;
    if (s->rank >= 2 && s->dim[0] > 0 && s->dim[1] > 0 && taps > 0) {
        fan[0] = (double)s->dim[s->rank == 2 ? 0 : 1] * (double)taps;
        fan[1] = (double)s->dim[s->rank == 2 ? 1 : 0] * (double)taps;
        return true;
    }
    gni_fail(g, GN_ERROR_SHAPE, "%s: %s is not (in, out) or (out, in, kernel...)", fn, gni_shape_text(text, sizeof text, s));
    return false;
}

// Normal with variance 2 / in: keeps the variance through relu (He et al., 2015, arXiv:1502.01852).
GPUNUM_API gn_array *gn_he_normal(gn_context *g, gn_dtype t, gn_shape s) {
    double fan[2];
    if (!gni_begin_context("gn_he_normal", g)) return NULL;
    gn_scope_begin(g);
    gn_array *w = NULL;
    if (gni_is_layer(g, "gn_he_normal", t, &s, fan)) w = gn_requires_grad(gn_normal(g, t, s, 0.0, sqrt(2.0 / fan[0])), true);
    return gni_end_scope(g, w);
}

// Uniform with variance 2 / (in + out) (Glorot and Bengio, 2010).
GPUNUM_API gn_array *gn_xavier_uniform(gn_context *g, gn_dtype t, gn_shape s) {
    double fan[2];
    if (!gni_begin_context("gn_xavier_uniform", g)) return NULL;
    gn_scope_begin(g);
    gn_array *w = NULL;
    if (gni_is_layer(g, "gn_xavier_uniform", t, &s, fan)) {
        const double limit = sqrt(6.0 / (fan[0] + fan[1]));
        w = gn_requires_grad(gn_uniform(g, t, s, -limit, limit), true);
    }
    return gni_end_scope(g, w);
}
