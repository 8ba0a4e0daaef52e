// >>norm
// Normalisation. One op with a derivative of its own, for all axes that moments are taken over. Nothing here is used
// elsewhere.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu_norm.h"
#include "../ops/random_ops.h"
#include "../grad/gradients.h"
#endif

enum { GNI_NORM_X, GNI_NORM_W, GNI_NORM_B, GNI_NORM_MEAN, GNI_NORM_SCALE, GNI_NORM_OPERANDS };

// The mean, unless it is NULL, and 1 / sqrt(variance + eps) over the axes, which stay with size 1.
static void gni_norm_moments(gn_context *g, gn_array *x, uint32_t set, double eps, gn_array **mean, gn_array **var,
                             gn_array **scale) {
    const gn_axes axes = GN_KEEP(gni_axes_of(set));
    gn_array *all[3] = {NULL, NULL, NULL};
    gn_array *from = g->gpu == NULL ? NULL : gni_tracks(g, &x, 1) ? x : gni_before_widening(x);
    if (mean != NULL && from != NULL && gni_materialize(g, from) &&
        gni_moments(g, from, x->dtype, set, 0.0, mean, &all[0])) {
        *scale = gn_rsqrt(gn_add_s(all[0], eps));
        all[1] = *mean;
        all[2] = *scale;
        gn_eval_all(all, 3);
        if (var != NULL) *var = all[0];
        return;
    }
    if (g->call_failed) return;
    if (mean != NULL) *mean = gn_mean(x, axes);
    gn_array *v = gn_mean(gn_square(mean != NULL ? gn_sub(x, *mean) : x), axes);
    if (var != NULL) *var = v;
    *scale = gn_rsqrt(gn_add_s(v, eps));
}

// Describes normalisation over the last axes, `set`, as work on rows. False: it is none.
static bool gni_norm_rows(gni_rows *j, const gn_array *x, uint32_t set, const gn_array *w) {
    const gn_shape *s = &x->shape;
    int lead;
    memset(j, 0, sizeof *j);
    if (x->dtype != GN_F32 || !gni_last_axes(s, set, &lead, &j->rows, &j->n)) return false;
    if (w == NULL) return true;
    bool each = true;
    for (int i = 0; i < s->rank; i++) each = each && w->shape.dim[i] == (i < lead ? 1 : s->dim[i]);
    if (each) return true;
    // Of groups of channels: (n, groups, channels, ...) and (1, groups, channels, 1).
    if (lead != 2 || s->rank != 4 || w->shape.dim[0] != 1 || w->shape.dim[3] != 1) return false;
    j->period = s->dim[1];
    j->stretches = s->dim[2];
    j->inner = s->dim[3];
    return w->shape.dim[1] == j->period && w->shape.dim[2] == j->stretches;
}

// Makes an array that the job reads its operand. False after gni_fail.
static bool gni_norm_operand(gn_context *g, gni_operand *o, gn_array *a) {
    if (a == NULL) return true;
    a = gni_adopt(g, gni_contiguous(g, a));
    if (a != NULL) gni_take_operand(a, o);
    return a != NULL;
}

// Weights as the job reads them: those of places of a row in their own dtype.
static gn_array *gni_norm_weight(const gni_rows *j, gn_array *a) { return j->stretches > 0 ? a : gni_before_widening(a); }

// All of it in one pass. NULL: nothing was done, unless g->call_failed.
static gn_array *gni_norm_forward_rows(gn_context *g, gn_array **in, uint32_t set, bool centred, double eps, gn_dtype t) {
    gni_rows j;
    gn_array *x = in[GNI_NORM_X], *w = in[GNI_NORM_W], *b = in[GNI_NORM_B], *moment[2] = {NULL, NULL};
    gni_operand *const op[2] = {&j.mean, &j.scale};
    if (g->gpu == NULL || !gni_norm_rows(&j, x, set, w != NULL ? w : b)) return NULL;
    j.kind = centred ? GNI_ROWS_NORM : GNI_ROWS_RMS;
    j.eps = eps;
    if (!gni_norm_operand(g, &j.weight, gni_norm_weight(&j, w)) || !gni_norm_operand(g, &j.bias, gni_norm_weight(&j, b)))
        return NULL;
    const gn_shape s = gni_reduced_shape(&x->shape, set, true);
    for (int i = centred ? 0 : 1; i < 2; i++) {
        moment[i] = gni_adopt(g, gni_array_empty(g, g->call, GN_F32, &s));
        if (moment[i] == NULL) return NULL;
        op[i]->buf = moment[i]->buf;
        op[i]->dtype = GN_F32;
    }
    gn_array *y = gni_rows_run(g, &j, x, NULL, t, x->shape);
    if (y == NULL) return NULL;
    in[GNI_NORM_MEAN] = moment[0];
    in[GNI_NORM_SCALE] = moment[1];
    return y;
}

static gn_array *gni_norm_back_rows(gn_context *g, const gni_node *node, gn_array *gy) {
    gni_rows j;
    gn_array *x = node->in[GNI_NORM_X], *w = node->in[GNI_NORM_W];
    if (g->gpu == NULL || g->no_grad == 0 || !gni_norm_rows(&j, x, (uint32_t)node->param[0], w)) return NULL;
    j.kind = node->in[GNI_NORM_MEAN] != NULL ? GNI_ROWS_BACK_NORM : GNI_ROWS_BACK_RMS;
    if (!gni_norm_operand(g, &j.weight, gni_norm_weight(&j, w)) || !gni_norm_operand(g, &j.mean, node->in[GNI_NORM_MEAN]) ||
        !gni_norm_operand(g, &j.scale, node->in[GNI_NORM_SCALE]))
        return NULL;
    return gni_rows_run(g, &j, x, gy, (gn_dtype)node->param[1], x->shape);
}

// ---- on a CPU that is alone

// Describes normalisation of x over the axes of `set` as work on rows or, by channel, on what lies in pieces. False: it is
// neither.
static bool gni_norm_plain(const gn_context *g, gni_norm_job *j, const gn_array *x, uint32_t set, const gn_array *w) {
    gni_rows r;
    const gn_shape *s = &x->shape;
    if (g->gpu != NULL || x->dtype != GN_F32) return false;
    memset(j, 0, sizeof *j);
    if (gni_norm_rows(&r, x, set, w)) {
        j->rows = r.rows;
        j->n = j->step = j->piece = j->apart = r.n;
        if (r.stretches == 0) return true;
        j->by_piece = true;
        j->period = r.period;
        j->piece = j->apart = r.inner;
        return j->piece >= 16;
    }
    if (s->rank < 3 || set != (((1u << s->rank) - 1u) & ~2u)) return false;
    j->by_row = true;
    j->rows = s->dim[1];
    j->step = j->piece = gni_extent_product(s->dim + 2, s->rank - 2);
    j->n = s->dim[0] * j->piece;
    j->apart = j->rows * j->piece;
    return j->piece >= 16 && (w == NULL || gni_elements(&w->shape) == j->rows);
}

static bool gni_norm_read(gn_context *g, const float **to, gn_array *a) {
    if (a == NULL) return true;
    a = gni_adopt(g, gni_contiguous(g, a));
    if (a != NULL) *to = (const float *)gni_host(g, a);
    return a != NULL && !g->call_failed;
}

static gn_array *gni_norm_made(gn_context *g, const gn_shape *s, float **to) {
    void *data = NULL;
    gn_array *a = gni_adopt(g, gni_array_filled(g, g->call, GN_F32, s, &data));
    *to = (float *)data;
    return a;
}

// NULL: nothing was done, unless g->call_failed.
static gn_array *gni_norm_forward_plain(gn_context *g, gn_array **in, uint32_t set, bool centred, double eps, gn_dtype t,
                                        gn_array **var) {
    gni_norm_job j;
    gn_array *x = in[GNI_NORM_X], *w = in[GNI_NORM_W], *b = in[GNI_NORM_B], *mean = NULL;
    if (t != GN_F32 || !gni_norm_plain(g, &j, x, set, w != NULL ? w : b)) return NULL;
    const gn_shape s = gni_reduced_shape(&x->shape, set, true);
    j.centred = centred;
    j.eps = eps;
    if (!gni_norm_read(g, &j.x, x) || !gni_norm_read(g, &j.w, w) || !gni_norm_read(g, &j.b, b)) return NULL;
    gn_array *y = gni_norm_made(g, &x->shape, &j.y), *scale = gni_norm_made(g, &s, &j.scale);
    *var = gni_norm_made(g, &s, &j.var);
    if (centred) mean = gni_norm_made(g, &s, &j.mean);
    if (y == NULL || scale == NULL || *var == NULL || (centred && mean == NULL)) return NULL;
    gni_cpu_norm(g, &j);
    in[GNI_NORM_MEAN] = mean;
    in[GNI_NORM_SCALE] = scale;
    return y;
}

// What comes to x and, by channel, to w and b. False: nothing was done, unless g->call_failed.
static bool gni_norm_back_plain(gn_context *g, const gni_node *node, gn_array *gy, gn_array **gx) {
    gni_norm_job j;
    gn_array *x = node->in[GNI_NORM_X], *w = node->in[GNI_NORM_W], *b = node->in[GNI_NORM_B], *to[3] = {NULL, NULL, NULL};
    const float *mean = NULL, *scale = NULL;
    const gn_array *shape = w != NULL ? w : b;
    if (g->no_grad == 0 || gy->dtype != GN_F32 || !gni_norm_plain(g, &j, x, (uint32_t)node->param[0], shape)) return false;
    j.centred = node->in[GNI_NORM_MEAN] != NULL;
    if (!gni_norm_read(g, &j.x, x) || !gni_norm_read(g, &j.gy, gy) || !gni_norm_read(g, &j.w, w) ||
        !gni_norm_read(g, &mean, node->in[GNI_NORM_MEAN]) || !gni_norm_read(g, &scale, node->in[GNI_NORM_SCALE]))
        return false;
    to[0] = gni_norm_made(g, &x->shape, &j.y);
    // But by channel in parts, which are summed afterwards.
    const int64_t parts = j.by_piece ? x->shape.dim[0] : (j.rows + GNI_NORM_BLOCK - 1) / GNI_NORM_BLOCK;
    for (int i = 1; i < 3 && shape != NULL; i++) {
        const gn_shape s = j.by_row ? shape->shape : GN_SHAPE(parts, gni_elements(&shape->shape));
        if (node->in[i] != NULL && gni_wanted(node, i)) to[i] = gni_norm_made(g, &s, i == 1 ? &j.gw : &j.gb);
    }
    if (g->call_failed) return false;
    j.mean = (float *)(uintptr_t)mean; // read alone
    j.scale = (float *)(uintptr_t)scale;
    gni_cpu_norm(g, &j);
    for (int i = 0; i < 3; i++)
        if (node->in[i] != NULL && gni_wanted(node, i))
            gx[i] = i > 0 && !j.by_row ? gn_reshape(gn_sum(to[i], 0), shape->shape) : to[i];
    return true;
}

// The sums of gy and of gy z over the axes along which w and b do not vary, as far as they are asked for: of one shape.
static void gni_norm_back_weights(gn_context *g, gn_array *gy, gn_array *z, const gn_array *w, bool product, bool sum,
                                  gn_array **y) {
    gn_array *in[2];
    uint32_t set = 0;
    y[0] = y[1] = NULL;
    for (int i = 0; i < w->shape.rank; i++) set |= (uint32_t)(w->shape.dim[i] == 1 && gy->shape.dim[i] != 1) << i;
    in[0] = gy;
    in[1] = product ? gn_mul(gy, z) : NULL;
    if (product && sum && set != 0) gni_sum_pair(g, in, set, y);
    else if (sum) y[0] = gni_unbroadcast(gy, &w->shape);
    if (product && (!sum || set == 0)) y[1] = gni_unbroadcast(in[1], &w->shape);
}

// How many arrays of so many elements a pending one reads.
static int gni_norm_reads(const gn_array *a, int64_t elements, uint32_t walk) {
    gni_expr *e = gni_is_pending(a) ? a->expr : NULL;
    int reads = 0;
    if (e == NULL) return gni_elements(&a->shape) >= elements;
    if (e->walk == walk) return 0;
    e->walk = walk;
    for (int i = 0; i < e->n_src; i++) reads += e->src[i] != NULL ? gni_norm_reads(e->src[i], elements, walk) : 0;
    return reads;
}

// With z = (x - mean) scale and h = gy w: scale (h - mean(h) - z mean(h z)). Sums over the axes of w serve where w does not
// vary along those of the moments.
static bool gni_back_norm(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *x = node->in[GNI_NORM_X], *w = node->in[GNI_NORM_W], *b = node->in[GNI_NORM_B],
             *mean = node->in[GNI_NORM_MEAN], *scale = node->in[GNI_NORM_SCALE], *sum = NULL, *product = NULL;
    const uint32_t set = (uint32_t)node->param[0];
    const bool centred = mean != NULL;
    // They depend on x.
    if (g->no_grad == 0) gni_norm_moments(g, x, set, node->real[0], centred ? &mean : NULL, NULL, &scale);
    gn_array *z = gn_mul(centred ? gn_sub(x, mean) : x, scale);
    const bool shared = w != NULL && gni_same_shape(&w->shape, &node->in[GNI_NORM_SCALE]->shape);
    gn_array *weights[2] = {NULL, NULL}, *parts[2] = {NULL, NULL};
    gy = gni_as(gy, x->dtype);
    if (gy == NULL || z == NULL) return false;
    // Sums and the gradient of x both read it, and what comes by other ways may: of many arrays it is made once.
    if (gni_norm_reads(gy, gni_elements(&x->shape), ++g->walk) > 2 && !gni_materialize(g, gy)) return false;
    gx[GNI_NORM_X] = gni_wanted(node, GNI_NORM_X) ? gni_norm_back_rows(g, node, gy) : NULL;
    if (g->call_failed) return false;
    if (gx[GNI_NORM_X] == NULL && gni_norm_back_plain(g, node, gy, gx) && (gx[GNI_NORM_W] != NULL || gx[GNI_NORM_B] != NULL))
        return true;
    if (g->call_failed) return false;
    // Sums over the places that have one weight and one mean serve for all.
    uint32_t common = set;
    for (int i = 0; w != NULL && i < x->shape.rank; i++) common &= ~((uint32_t)(w->shape.dim[i] != 1) << i);
    if (w != NULL && centred && !shared && common != 0 && gx[GNI_NORM_X] == NULL) {
        gn_array *in[2] = {gy, gn_mul(gy, z)};
        if (!gni_sum_pair(g, in, common, parts)) return false;
        weights[0] = gni_unbroadcast(parts[0], &w->shape);
        weights[1] = gni_unbroadcast(parts[1], &w->shape);
    } else if (w != NULL || b != NULL)
        gni_norm_back_weights(g, gy, z, w != NULL ? w : b, w != NULL && (gni_wanted(node, GNI_NORM_W) || shared),
                              (b != NULL && gni_wanted(node, GNI_NORM_B)) || (shared && centred), weights);
    sum = weights[0];
    product = weights[1];
    if (gni_wanted(node, GNI_NORM_W)) gx[GNI_NORM_W] = product;
    if (b != NULL && gni_wanted(node, GNI_NORM_B)) gx[GNI_NORM_B] = sum;
    if (!gni_wanted(node, GNI_NORM_X) || gx[GNI_NORM_X] != NULL) return true;
    gn_array *h = w != NULL ? gn_mul(gy, w) : gy, *of_h = NULL, *of_product;
    const gn_axes axes = GN_KEEP(gni_axes_of(set));
    if (shared) {
        const double n = (double)gni_elements(&x->shape) / (double)GNI_MAX(gni_elements(&w->shape), 1);
        gn_array *by = gn_mul_s(w, 1.0 / n);
        of_product = gn_mul(product, by);
        if (centred) of_h = gn_mul(sum, by);
    } else if (parts[0] != NULL) {
        const double n = (double)gni_reduced_count(&x->shape, set);
        of_h = gn_mul_s(gn_sum(gn_mul(parts[0], w), axes), 1.0 / n);
        of_product = gn_mul_s(gn_sum(gn_mul(parts[1], w), axes), 1.0 / n);
    } else if (centred) {
        gn_array *pair[2], *sums[2];
        const double n = (double)gni_reduced_count(&x->shape, set);
        pair[0] = h;
        pair[1] = gn_mul(h, z);
        gni_sum_pair(g, pair, set, sums);
        of_h = gn_mul_s(sums[0], 1.0 / n);
        of_product = gn_mul_s(sums[1], 1.0 / n);
    } else {
        of_product = gn_mean(gn_mul(h, z), axes);
    }
    gn_array *rest = gn_sub(h, gn_mul(z, of_product));
    gx[GNI_NORM_X] = gn_mul(of_h != NULL ? gn_sub(rest, of_h) : rest, scale);
    return true;
}

// x over the axes of `set`, in dtype t; w and b have x's rank or are NULL. *mean, where mean is not NULL, and *var get the
// moments.
static gn_array *gni_normalised(gn_context *g, gn_array *x, uint32_t set, gn_array *w, gn_array *b, bool centred, double eps,
                                gn_dtype t, gn_array **moments) {
    gn_array *in[GNI_NORM_OPERANDS] = {NULL, NULL, NULL, NULL, NULL}, *var = NULL;
    in[GNI_NORM_X] = x;
    in[GNI_NORM_W] = w;
    in[GNI_NORM_B] = b;
    if (gni_elements(&x->shape) == 0) { // whose moments may be too many
        x = w != NULL ? gn_mul(x, w) : gn_mul_s(x, 1.0);
        return b != NULL ? gn_add(x, b) : x;
    }
    g->no_grad++; // recorded as one op
    gn_array *y = moments == NULL ? gni_norm_forward_rows(g, in, set, centred, eps, t) : NULL;
    if (y == NULL && !g->call_failed) y = gni_norm_forward_plain(g, in, set, centred, eps, t, &var);
    if (y == NULL && !g->call_failed) {
        gni_norm_moments(g, x, set, eps, centred ? &in[GNI_NORM_MEAN] : NULL, &var, &in[GNI_NORM_SCALE]);
        y = gn_mul(centred ? gn_sub(x, in[GNI_NORM_MEAN]) : x, in[GNI_NORM_SCALE]);
        if (w != NULL) y = gn_mul(y, w);
        if (b != NULL) y = gn_add(y, b);
        if (y != NULL && y->dtype != t) y = gn_cast(y, t);
    }
    g->no_grad--;
    if (y == NULL) return NULL;
    if (moments != NULL) moments[0] = in[GNI_NORM_MEAN], moments[1] = var;
    gni_node *node = gni_record(g, y, "normalisation", gni_back_norm, in, GNI_NORM_OPERANDS);
    if (node != NULL) {
        node->param[0] = set;
        node->param[1] = t; // what x was before it was widened
        node->real[0] = eps;
        node->remade = centred;
    }
    return y;
}

// ---- the public functions

typedef struct gni_norm {
    gn_context *g;
    const char *fn;
    gn_dtype t; // of the result
    gn_array *x, *w, *b;
} gni_norm;

// Begins a call with its arrays; afterwards a scope is open, and x, w and b are in the dtype of the computation.
static bool gni_norm_begin(gni_norm *n, const char *fn, gn_array *x, gn_array *w, gn_array *b, gn_array *mean, gn_array *var,
                           double eps) {
    gn_array *in[5], *list[5];
    int count = 0;
    in[0] = x;
    in[1] = w;
    in[2] = b;
    in[3] = mean;
    in[4] = var;
    for (int i = 0; i < 5; i++)
        if (i == 0 || in[i] != NULL) list[count++] = in[i];
    gn_context *g = n->g = gni_begin(fn, list, count);
    if (g == NULL) return false;
    gn_scope_begin(g);
    n->fn = fn;
    n->t = x->dtype;
    for (int i = 0; i < count; i++)
        if (!gni_need_float(g, fn, list[i]->dtype)) return false;
    if (!(eps >= 0.0 && eps < GNI_INF)) return gni_fail(g, GN_ERROR_ARGUMENT, "%s: eps %g is no number from 0 on", fn, eps);
    const gn_dtype t = n->t == GN_F64 ? GN_F64 : GN_F32;
    n->x = x->dtype != t ? gn_cast(x, t) : x;
    n->w = w != NULL && w->dtype != t ? gn_cast(w, t) : w;
    n->b = b != NULL && b->dtype != t ? gn_cast(b, t) : b;
    return n->x != NULL && (w == NULL || n->w != NULL) && (b == NULL || n->b != NULL);
}

static gn_array *gni_norm_end(const gni_norm *n, gn_array *y) {
    if (n->g == NULL) return NULL;
    return gni_end_scope(n->g, y != NULL && y->dtype != n->t ? gn_cast(y, n->t) : y);
}

// An argument in another shape, in the dtype of the computation: what waits to be widened is read as it is.
static gn_array *gni_norm_shaped(const gni_norm *n, gn_array *a, gn_shape s) {
    return gni_as(gn_reshape(a, s), n->t == GN_F64 ? GN_F64 : GN_F32);
}

static bool gni_norm_misfit(const gni_norm *n, const char *name, const gn_array *a, const char *what) {
    char tx[200], ta[200];
    return gni_fail(n->g, GN_ERROR_SHAPE, "%s: %s %s for x %s: %s", n->fn, name, gni_shape_text(ta, sizeof ta, &a->shape),
                    gni_shape_text(tx, sizeof tx, &n->x->shape), what);
}

// An array by channel as one that broadcasts to x. False after gni_fail.
static bool gni_norm_by_channel(const gni_norm *n, const char *name, gn_array **a) {
    gn_shape s = n->x->shape;
    if (*a == NULL) return true;
    if ((*a)->shape.rank != 1 || (*a)->shape.dim[0] != s.dim[1])
        return gni_norm_misfit(n, name, *a, "not one number for each channel");
    for (int i = 0; i < s.rank; i++)
        if (i != 1) s.dim[i] = 1;
    *a = gn_reshape(*a, s);
    return *a != NULL;
}

static bool gni_norm_channels(gni_norm *n) {
    if (n->x->shape.rank < 2) return gni_norm_misfit(n, "x", n->x, "not (n, channels, ...)");
    return gni_norm_by_channel(n, "w", &n->w) && gni_norm_by_channel(n, "b", &n->b);
}

// Whether a running moment can be written: known before the first one is. False after gni_fail.
static bool gni_norm_follows(gn_context *g, gn_array *running) {
    return running == NULL || (gni_materialize(g, running) && gni_can_write(g, "gn_batch_norm", running));
}

// Whether a program may write all of its buffer: no record has to hear of it.
static bool gni_norm_is_whole(const gn_array *a) {
    return a->node == NULL && a->buf->where != 0 && gni_is_contiguous(a) && gn_bytes(a) == a->buf->bytes;
}

// running = (1 - momentum) running + momentum batch, in place: of both moments or of none.
static void gni_norm_follow(gn_array *const running[2], gn_array *const batch[2], double momentum, const double factor[2]) {
    gn_array *next[2];
    for (int i = 0; i < 2; i++) {
        gn_array *part = gn_mul_s(gn_reshape(batch[i], running[i]->shape), momentum * factor[i]);
        next[i] = gn_cast(gn_add(gn_mul_s(running[i], 1.0 - momentum), part), running[i]->dtype);
    }
    if (next[0] != NULL && next[1] != NULL && running[0]->buf != running[1]->buf && gni_norm_is_whole(running[0]) &&
        gni_norm_is_whole(running[1])) {
        gni_evaluate(running[0]->ctx, next, running, 2);
        return;
    }
    if (gn_eval_all(next, 2) != GN_OK) return;
    for (int i = 0; i < 2; i++) gn_assign(running[i], next[i]);
}

GPUNUM_API gn_array *gn_batch_norm(gn_array *x, gn_array *mean, gn_array *var, gn_array *w, gn_array *b, bool training,
                                   double momentum, double eps) {
    gni_norm n;
    gn_array *y = NULL, *moments[2], *by_mean = mean, *by_var = var;
    if (!gni_norm_begin(&n, "gn_batch_norm", x, w, b, mean, var, eps) || !gni_norm_channels(&n) ||
        !gni_norm_by_channel(&n, "mean", &by_mean) || !gni_norm_by_channel(&n, "var", &by_var))
        return gni_norm_end(&n, NULL);
    gn_context *g = n.g;
    const uint32_t set = ((1u << n.x->shape.rank) - 1u) & ~2u;
    const int64_t channels = n.x->shape.dim[1], all = gni_elements(&n.x->shape), each = channels > 0 ? all / channels : 0;
    if ((mean == NULL) != (var == NULL) || (!training && mean == NULL)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_batch_norm: no running %s", mean == NULL ? "mean" : "variance");
    } else if (!(momentum >= 0.0 && momentum <= 1.0)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_batch_norm: momentum %g is not between 0 and 1", momentum);
    } else if (training && mean != NULL && mean == var) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_batch_norm: the running mean is the running variance");
    } else if (!training) {
        gn_array *scale = gn_rsqrt(gn_add_s(gn_cast(by_var, n.x->dtype), eps));
        if (n.w != NULL) scale = gn_mul(scale, n.w);
        y = gn_mul(gn_sub(n.x, by_mean), gn_eval(scale));
        if (n.b != NULL) y = gn_add(y, n.b);
        if (y != NULL && y->dtype != n.x->dtype) y = gn_cast(y, n.x->dtype);
    } else if (each < 2 && channels > 0) {
        gni_norm_misfit(&n, "x", n.x, "less than two numbers for a channel");
    } else if (gni_norm_follows(g, mean) && gni_norm_follows(g, var)) {
        y = gni_normalised(g, n.x, set, n.w, n.b, true, eps, n.t, moments);
        const double factor[2] = {1.0, (double)each / (double)(each - 1)};
        gn_array *running[2] = {mean, var};
        g->no_grad++;
        if (y != NULL && mean != NULL && all > 0 && !g->repeats) gni_norm_follow(running, moments, momentum, factor);
        g->no_grad--;
    }
    return gni_norm_end(&n, y);
}

// Over the last axes, with weights of their sizes.
static gn_array *gni_layer_norm(const char *fn, gn_array *x, int axes, gn_array *w, gn_array *b, bool centred, double eps) {
    gni_norm n;
    if (!gni_norm_begin(&n, fn, x, w, b, NULL, NULL, eps)) return gni_norm_end(&n, NULL);
    const int rank = n.x->shape.rank, lead = rank - axes;
    if (axes < 1 || axes > rank) {
        gni_fail(n.g, GN_ERROR_ARGUMENT, "%s: %d axes of rank %d", fn, axes, rank);
        return gni_norm_end(&n, NULL);
    }
    const gn_shape last = gn_shape_from(axes, n.x->shape.dim + lead);
    for (int i = 0; i < 2; i++) {
        gn_array **a = i == 0 ? &n.w : &n.b;
        gn_shape s = n.x->shape;
        for (int k = 0; k < lead; k++) s.dim[k] = 1;
        if (*a != NULL && !gni_same_shape(&(*a)->shape, &last))
            gni_norm_misfit(&n, i == 0 ? "w" : "b", *a, "not the sizes of its last axes");
        else if (*a != NULL)
            *a = gni_norm_shaped(&n, i == 0 ? w : b, s);
    }
    const uint32_t set = ((1u << rank) - 1u) & ~((1u << lead) - 1u);
    return gni_norm_end(&n, n.g->call_failed ? NULL : gni_normalised(n.g, n.x, set, n.w, n.b, centred, eps, n.t, NULL));
}

GPUNUM_API gn_array *gn_layer_norm(gn_array *x, int axes, gn_array *w, gn_array *b, double eps) {
    return gni_layer_norm("gn_layer_norm", x, axes, w, b, true, eps);
}
GPUNUM_API gn_array *gn_rms_norm(gn_array *x, int axes, gn_array *w, double eps) {
    return gni_layer_norm("gn_rms_norm", x, axes, w, NULL, false, eps);
}

// each: as many groups as channels.
static gn_array *gni_group_norm(const char *fn, gn_array *x, bool each, int64_t groups, gn_array *w, gn_array *b,
                                double eps) {
    gni_norm n;
    if (!gni_norm_begin(&n, fn, x, w, b, NULL, NULL, eps)) return gni_norm_end(&n, NULL);
    if (n.x->shape.rank < 2) {
        gni_norm_misfit(&n, "x", n.x, "not (n, channels, ...)");
        return gni_norm_end(&n, NULL);
    }
    const gn_shape s = n.x->shape;
    const int64_t channels = s.dim[1], inner = gni_extent_product(s.dim + 2, s.rank - 2);
    if (each) groups = channels;
    if (!each && (groups < 1 || channels % groups != 0)) {
        gni_fail(n.g, GN_ERROR_ARGUMENT, "%s: %lld groups of %lld channels", fn, (long long)groups, (long long)channels);
        return gni_norm_end(&n, NULL);
    }
    if (gni_elements(&s) == 0)
        return gni_norm_end(&n, gni_norm_channels(&n) ? gni_normalised(n.g, n.x, 0, n.w, n.b, true, eps, n.t, NULL) : NULL);
    if ((each ? 1 : s.dim[0]) * (channels / groups) * inner < 2) { // as PyTorch does: of an instance, or of all
        gni_norm_misfit(&n, "x", n.x, "less than two numbers to be normalised");
        return gni_norm_end(&n, NULL);
    }
    gn_array *by[2] = {n.w, n.b};
    for (int i = 0; i < 2; i++) {
        gn_array *a = by[i];
        if (a == NULL) continue;
        if (a->shape.rank != 1 || a->shape.dim[0] != channels) {
            gni_norm_misfit(&n, i == 0 ? "w" : "b", a, "not one number for each channel");
            return gni_norm_end(&n, NULL);
        }
        by[i] = gn_reshape(a, GN_SHAPE(1, groups, channels / groups, 1));
    }
    n.x = gni_norm_shaped(&n, x, GN_SHAPE(s.dim[0], groups, channels / groups, inner));
    gn_array *y = n.x == NULL ? NULL : gni_normalised(n.g, n.x, 12u, by[0], by[1], true, eps, n.t, NULL);
    return gni_norm_end(&n, gn_reshape(y, s));
}

GPUNUM_API gn_array *gn_group_norm(gn_array *x, int64_t groups, gn_array *w, gn_array *b, double eps) {
    return gni_group_norm("gn_group_norm", x, false, groups, w, b, eps);
}
GPUNUM_API gn_array *gn_instance_norm(gn_array *x, gn_array *w, gn_array *b, double eps) {
    return gni_group_norm("gn_instance_norm", x, true, 0, w, b, eps);
}
