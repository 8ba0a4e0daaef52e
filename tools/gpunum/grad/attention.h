// >>attention
// Attention in parts: queries by rows, so that the scores of all of them against all keys are never there at once. The
// gradient computes them again from what the rows' logarithms of sums were. Nothing here is used elsewhere.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu_attend.h"
#include "../ops/random_ops.h"
#include "../grad/gradients.h"
#endif

// Arrays of one part. All have the axes (batch..., key heads, queries' heads for each of them), and behind these
enum {
    GNI_ATTEND_Q,     // (n, d)
    GNI_ATTEND_Y,     // (n, e)
    GNI_ATTEND_LSE,   // (n, 1), log of the sum of exp(scores); 0 where all are -inf
    GNI_ATTEND_GY,    // (n, e), dL/dy
    GNI_ATTEND_DQ,    // (n, d)
    GNI_ATTEND_MASK,  // (n, m); repeated axes have steps of 0
    GNI_ATTEND_DMASK, // (n, m); 1 along axes that the mask repeats
    GNI_ATTEND_K,     // (m, d); one head for the queries' heads, from here on
    GNI_ATTEND_V,     // (m, e)
    GNI_ATTEND_DK,    // (m, d)
    GNI_ATTEND_DV,    // (m, e)
    GNI_ATTEND_ARRAYS
};

typedef struct gni_attend {
    gn_context *g;
    double scale;
    bool causal, back; // the gradient's pass
    int64_t bytes;     // of the scores of a part, at most
    gn_dtype t;        // of scores
    int rank;
    int64_t row;       // of the part's first query, among all
    double dropout;    // of all weights at once, from this place of the stream
    uint64_t seed, counter;
    gn_array *a[GNI_ATTEND_ARRAYS]; // NULL: there is none
} gni_attend;

#define GNI_ATTEND_BYTES ((int64_t)64 << 20) // enough for a GPU to be busy
#define GNI_ATTEND_CACHED ((int64_t)4 << 20) // and for a CPU
#define GNI_ATTEND_ROWS ((int64_t)256) // of causal parts at most, whose keys end with the last row

static int gni_attend_axis(const gni_attend *c, int i, bool keys) {
    if (i == GNI_ATTEND_MASK || i == GNI_ATTEND_DMASK) return c->rank - (keys ? 1 : 2);
    return (i >= GNI_ATTEND_K) == keys ? c->rank - 2 : -1;
}

// Elements first to end of an axis of the heads; or of queries (axis -2) or of keys (-1), which have their place each.
static bool gni_attend_cut(gni_attend *to, const gni_attend *from, int axis, int64_t first, int64_t end) {
    *to = *from;
    for (int i = 0; i < GNI_ATTEND_ARRAYS; i++) {
        gn_array *a = from->a[i];
        const int at = axis < 0 ? gni_attend_axis(from, i, axis == -1) : axis;
        if (a == NULL || at < 0 || (a->shape.dim[at] == 1 && (axis >= 0 || i == GNI_ATTEND_DMASK))) continue;
        if (first == 0 && end == a->shape.dim[at]) continue;
        to->a[i] = gn_slice(a, at, first, end, 1);
        if (to->a[i] == NULL) return false;
    }
    if (axis == -2) to->row = from->row + first;
    return true;
}

// Halves are multiplied as they are, with a result in float32; a product that is recorded is one of float32.
static gn_array *gni_attend_product(const gni_attend *c, gn_array *a, gn_array *b) {
    gn_context *g = c->g;
    if (a == NULL || b == NULL) return NULL;
    if (g->no_grad > 0 && a->dtype == b->dtype && a->dtype != c->t)
        return gni_adopt(g, gni_product_new(g, "gn_attention", a, b, c->t));
    return gn_matmul(gni_as(a, c->t), gni_as(b, c->t));
}

// scale q k^T, masked.
static gn_array *gni_attend_scores(const gni_attend *c) {
    gn_context *g = c->g;
    gn_array *mask = c->a[GNI_ATTEND_MASK], *low = gn_scalar(g, c->t, -GNI_INF), *k = c->a[GNI_ATTEND_K];
    gn_array *s = gn_mul_s(gni_attend_product(c, c->a[GNI_ATTEND_Q], gn_swap_axes(k, -1, -2)), c->scale);
    if (mask != NULL && mask->dtype == GN_BOOL) s = gn_where(mask, s, low);
    else if (mask != NULL) s = gn_where(gn_le_s(mask, GNI_ATTEND_HIDES), low, gn_add(s, gni_as(mask, c->t)));
    if (!c->causal || s == NULL) return s;
    const int64_t n = s->shape.dim[c->rank - 2], m = s->shape.dim[c->rank - 1];
    gn_array *row = gn_arange(g, GN_I32, (double)c->row, (double)(c->row + n), 1.0),
             *key = gn_arange(g, GN_I32, 0.0, (double)m, 1.0);
    return gn_where(gn_ge(gn_expand_dims(row, 1), key), s, low);
}

static gn_array *gni_attend_finite(gn_array *lse) {
    return lse != NULL ? gn_where(gn_eq_s(lse, -GNI_INF), gni_zero_like(lse), lse) : NULL;
}

static bool gni_attend_forward(const gni_attend *c) {
    const gn_dtype t = c->a[GNI_ATTEND_Y]->dtype;
    gn_array *s = gni_attend_scores(c), *p, *lse;
    if (c->a[GNI_ATTEND_LSE] == NULL && c->a[GNI_ATTEND_MASK] == NULL && c->a[GNI_ATTEND_K]->shape.dim[c->rank - 2] > 0) {
        p = gn_softmax(s, -1); // every query has a key
    } else {
        s = gn_eval(s); // read twice
        lse = gni_attend_finite(gn_logsumexp(s, GN_KEEP(-1)));
        p = gn_exp(gn_sub(s, lse));
        if (c->a[GNI_ATTEND_LSE] != NULL && gn_assign(c->a[GNI_ATTEND_LSE], lse) != GN_OK) return false;
    }
    return gn_assign(c->a[GNI_ATTEND_Y], gn_matmul(gni_as(p, t), c->a[GNI_ATTEND_V])) == GN_OK;
}

// Adds x, summed over axes that `to` has once.
static bool gni_attend_add(gn_array *to, gn_array *x) {
    return to == NULL || gn_assign(to, gn_add(to, gni_unbroadcast(x, &to->shape))) == GN_OK;
}

// The derivatives by scores, from the weights p: p (gy v^T - the sum of p gy v^T). That of gy y is the same but for y's
// rounding, which grows with what all of v or k have in common.
static gn_array *gni_attend_ds(const gni_attend *c, gn_array *p, gn_array *gy) {
    gn_array *dp = gn_eval(gni_attend_product(c, gy, gn_swap_axes(c->a[GNI_ATTEND_V], -1, -2)));
    return gn_mul(p, gn_sub(dp, gn_sum(gn_mul(p, dp), GN_KEEP(-1))));
}

static bool gni_attend_backward(const gni_attend *c) {
    gn_array *const *a = c->a;
    gn_array *gy = a[GNI_ATTEND_GY];
    const gn_dtype t = a[GNI_ATTEND_Q]->dtype;
    gn_array *s = gni_attend_scores(c); // large ones have few digits left in the logarithm of their sum
    gn_array *p = gn_eval(a[GNI_ATTEND_MASK] == NULL ? gn_softmax(s, -1) : gn_exp(gn_sub(s, a[GNI_ATTEND_LSE])));
    gn_array *ds = gn_eval(gni_attend_ds(c, p, gy));
    bool ok = ds != NULL && gni_attend_add(a[GNI_ATTEND_DMASK], ds);
    if (ok && a[GNI_ATTEND_DV] != NULL)
        ok = gni_attend_add(a[GNI_ATTEND_DV], gni_attend_product(c, gn_swap_axes(gni_as(p, t), -1, -2), gy));
    if (t != c->t) ds = gn_eval(gn_cast(ds, t));
    if (ok && a[GNI_ATTEND_DQ] != NULL)
        ok = gn_assign(a[GNI_ATTEND_DQ], gn_mul_s(gni_attend_product(c, ds, a[GNI_ATTEND_K]), c->scale)) == GN_OK;
    if (ok && a[GNI_ATTEND_DK] != NULL)
        ok = gni_attend_add(a[GNI_ATTEND_DK],
                            gn_mul_s(gni_attend_product(c, gn_swap_axes(ds, -1, -2), a[GNI_ATTEND_Q]), c->scale));
    return ok;
}

static bool gni_attend_run(const gni_attend *c);

static bool gni_attend_parts(const gni_attend *c, int axis, int64_t count, int64_t each) {
    bool ok = true;
    for (int64_t i = 0; i < count && ok; i += each) {
        gni_attend part;
        const int64_t end = GNI_MIN(count, i + each);
        gn_scope_begin(c->g);
        ok = gni_attend_cut(&part, c, axis, i, end);
        // Keys behind the last query are not seen.
        if (ok && axis == -2 && c->causal) {
            const gni_attend all = part;
            ok = gni_attend_cut(&part, &all, -1, 0, GNI_MIN(c->a[GNI_ATTEND_K]->shape.dim[c->rank - 2], part.row + end - i));
        }
        ok = ok && gni_attend_run(&part);
        gn_scope_end(c->g);
    }
    return ok && !c->g->call_failed;
}

// Cuts until the scores fit.
static bool gni_attend_run(const gni_attend *c) {
    const gn_shape *s = &c->a[GNI_ATTEND_Q]->shape;
    const int64_t rows = s->dim[c->rank - 2], keys = c->a[GNI_ATTEND_K]->shape.dim[c->rank - 2];
    if (gni_elements(&c->a[GNI_ATTEND_Y]->shape) == 0) return true;
    if (c->causal && rows > GNI_ATTEND_ROWS) return gni_attend_parts(c, -2, rows, GNI_ATTEND_ROWS);
    double bytes = (double)rows * (double)keys * (double)gn_dtype_size(c->t);
    for (int i = 0; i < c->rank - 2; i++) bytes *= (double)s->dim[i];
    for (int i = 0; i < c->rank - 2 && bytes > (double)c->bytes; i++)
        if (s->dim[i] > 1)
            return gni_attend_parts(c, i, s->dim[i], GNI_MAX((int64_t)((double)c->bytes * (double)s->dim[i] / bytes), 1));
    if (bytes > (double)c->bytes && rows > 1)
        return gni_attend_parts(c, -2, rows, GNI_MAX((int64_t)((double)c->bytes * (double)rows / bytes), 1));
    return c->back ? gni_attend_backward(c) : gni_attend_forward(c);
}

// ---- as one job

static int64_t gni_attend_heads(const gn_array *k) { return k->shape.rank > 2 ? k->shape.dim[k->shape.rank - 3] : 1; }

// (batches, heads, n, d) as a job reads it, for a GPU rows of neighbours 16 bytes apart. False: not without a copy.
static bool gni_attend_operand(const gn_context *g, const gn_array *a, gni_operand *o) {
    const int rank = a->shape.rank;
    const bool any = g->gpu == NULL;
    gni_take_operand(a, o);
    if (rank > 4 || (a->shape.dim[rank - 1] > 1 && a->stride[rank - 1] != 1) || (!any && a->offset % 8 != 0)) return false;
    for (int i = 0; i < rank - 1; i++) {
        o->stride[4 - rank + i] = a->shape.dim[i] > 1 ? a->stride[i] : 0;
        if (!any && (o->stride[4 - rank + i] % 8 != 0 || o->stride[4 - rank + i] < 0)) return false;
    }
    return true;
}

// x as gni_attend_operand takes it.
static gn_array *gni_attend_given(gn_context *g, gn_array *x, gni_operand *o) {
    if (x != NULL && x->shape.rank > 4)
        x = gn_reshape(x, GN_SHAPE(-1, x->shape.dim[x->shape.rank - 3], x->shape.dim[x->shape.rank - 2],
                                   x->shape.dim[x->shape.rank - 1]));
    if (x == NULL || !gni_materialize(g, x)) return NULL;
    if (!gni_attend_operand(g, x, o)) {
        x = gn_copy(x);
        if (x == NULL || !gni_materialize(g, x) || !gni_attend_operand(g, x, o)) return NULL;
    }
    return x;
}

// (batch..., heads, n, m) of scores.
static gn_shape gni_attend_shape(const gn_array *q, const gn_array *k) {
    gn_shape s = q->shape;
    s.dim[s.rank - 1] = k->shape.dim[s.rank - 2];
    return s;
}

// Whether the CPU's way pays: its vectors are of queries, and a worker has blocks of scores.
static bool gni_attend_pays(const gn_array *q, const gn_array *k, int64_t workspace) {
    const int64_t bytes = 2 * (int64_t)sizeof(float) * GNI_ATTEND_BLOCK_KEYS * (GNI_ATTEND_BLOCK + GNI_ATTEND_PAD);
    return q->shape.dim[q->shape.rank - 2] >= GNI_ATTEND_LEAST && k->shape.dim[k->shape.rank - 2] >= GNI_ATTEND_LEAST_KEYS &&
           (workspace == 0 || workspace >= bytes);
}

static double gni_attend_keep(const gni_attend *c) { return c->dropout < 1.0 ? 1.0 / (1.0 - c->dropout) : 0.0; }
static int64_t gni_attend_over_16(int64_t x) { return (x + 15) / 16; }

// Whether it may be one: asked for before anything is copied for it.
static bool gni_attend_whole(const gn_context *g, const gn_array *q, const gn_array *k, const gn_array *v,
                             const gn_array *mask, int64_t workspace) {
    const int64_t d = q->shape.dim[q->shape.rank - 1], e = v->shape.dim[v->shape.rank - 1];
    if (q->dtype == GN_F64 || gni_elements(&q->shape) == 0 || gni_elements(&k->shape) == 0 || gni_elements(&v->shape) == 0)
        return false;
    if (mask != NULL && q->shape.rank > 4) return false;
    return (g->gpu != NULL && d % 8 == 0 && e % 8 == 0) || gni_attend_pays(q, k, workspace);
}

// A mask as a job reads it, with steps of 0 along axes that it repeats.
static bool gni_attend_mask(gni_attend_job *j, gn_context *g, gn_array *q, gn_array *k, gn_array *mask) {
    const int rank = q->shape.rank;
    if (mask == NULL) return true;
    if (mask->dtype != GN_BOOL) mask = gni_as(mask, GN_F32);
    if (mask == NULL || !gni_materialize(g, mask)) return false;
    mask = gn_broadcast_to(mask, gni_attend_shape(q, k));
    if (mask == NULL || !gni_materialize(g, mask)) return false;
    gni_take_operand(mask, &j->mask);
    for (int i = 0; i < 4; i++)
        j->mask.stride[i] = i >= 4 - rank && mask->shape.dim[i - 4 + rank] > 1 ? mask->stride[i - 4 + rank] : 0;
    return true;
}

// Fills j but for what its step writes. False: not without more memory, or not at all.
static bool gni_attend_job_begin(gni_attend_job *j, const gni_attend *c, gn_array *const *x) {
    gn_context *g = c->g;
    gn_array *q = x[0], *k = x[1], *v = x[2];
    const gn_shape *s = &q->shape;
    const int rank = s->rank;
    memset(j, 0, sizeof *j);
    j->heads = rank > 2 ? s->dim[rank - 3] : 1;
    j->share = j->heads / gni_attend_heads(k);
    j->batches = 1;
    for (int i = 0; i < rank - 3; i++) j->batches *= s->dim[i];
    j->n = s->dim[rank - 2];
    j->m = k->shape.dim[rank - 2];
    j->d = s->dim[rank - 1];
    j->e = v->shape.dim[rank - 1];
    j->scale = c->scale;
    j->causal = c->causal;
    j->below = gni_random_limit(c->dropout);
    j->keep = (float)gni_attend_keep(c);
    j->seed = c->seed;
    j->counter = c->counter;
    return gni_attend_given(g, q, &j->q) != NULL && gni_attend_given(g, k, &j->k) != NULL &&
           gni_attend_given(g, v, &j->v) != NULL && gni_attend_mask(j, g, q, k, x[3]);
}

// (..., heads, n, d), in memory as (..., n, heads, d) where x is.
static gn_array *gni_attend_like(gn_context *g, gn_dtype t, const gn_array *x, gn_shape s) {
    const int h = s.rank - 3;
    if (h < 0 || x->expr != NULL || x->stride[h] >= x->stride[h + 1] || s.dim[h] < 2) return gn_empty(g, t, s);
    const int64_t n = s.dim[h + 1];
    s.dim[h + 1] = s.dim[h];
    s.dim[h] = n;
    return gn_swap_axes(gn_empty(g, t, s), h, h + 1);
}

// Whether j belongs on the CPU and pays there. What a GPU has another way for is left to that.
static bool gni_attend_on_cpu(gn_context *g, gni_attend_job *j, gn_array *const *x, int64_t workspace) {
    gni_job_view v;
    gni_reason why;
    gni_view_job(GNI_JOB_ATTEND, j, &v);
    return gni_place(g, &gni_kind_attend, j, &v, &why) == GNI_ON_CPU && why != GNI_WHY_CPU_ONLY &&
           gni_attend_pays(x[0], x[1], workspace);
}

static bool gni_attend_job_forward(const gni_attend *c, gn_array *const *x, int64_t workspace, gn_array *y) {
    gni_attend_job j;
    gn_context *g = c->g;
    gn_array *lse = c->a[GNI_ATTEND_LSE];
    if (!gni_attend_job_begin(&j, c, x) || gni_attend_given(g, y, &j.y) == NULL) return false;
    if (lse != NULL) gni_take_operand(lse, &j.lse);
    if (j.y.buf != y->buf) return false;
    if (gni_attend_on_cpu(g, &j, x, workspace)) return j.below == 0 && gni_run(g, &gni_kind_attend, &j, y);
    return gni_run_on_gpu(g, &gni_kind_attend, &j, y);
}

static bool gni_attend_job_step(gn_context *g, gni_attend_job *j, gni_attend_step step, gn_array *y) {
    j->step = step;
    return (step == GNI_ATTEND_ALL ? gni_run : gni_run_on_gpu)(g, &gni_kind_attend, j, y);
}

static bool gni_attend_job_backward(const gni_attend *c, gni_node *node, gn_array *gy, gn_array **gx) {
    gni_attend_job j;
    gn_context *g = c->g;
    gn_array *const *x = node->in, *y = node->output;
    if (!gni_attend_whole(g, x[0], x[1], x[2], x[3], node->param[1]) || gy->dtype != x[0]->dtype) return false;
    if (x[3] != NULL && gni_wanted(node, 3)) return false;
    // Rounded first, as the kernels read it: sums with another one would not cancel theirs.
    if (!gni_materialize(g, gy)) return false;
    gn_array *dot = gn_sum(gn_mul(gni_as(gy, GN_F32), gni_as(y, GN_F32)), GN_KEEP(-1));
    if (dot == NULL || !gni_materialize(g, dot) || !gni_materialize(g, x[4])) return false;
    if (!gni_attend_job_begin(&j, c, x) || gni_attend_given(g, gy, &j.gy) == NULL) return false;
    gni_take_operand(dot, &j.dot);
    gni_take_operand(x[4], &j.lse);
    gn_array *to[3];
    j.step = GNI_ATTEND_QUERIES;
    const bool cpu = gni_attend_on_cpu(g, &j, x, node->param[1]);
    if (cpu && j.below > 0) return false;
    for (int i = 0; i < 3; i++) {
        const bool unwanted = !gni_wanted(node, i) && (cpu || i == 0); // a GPU's kernel makes dk and dv
        to[i] = unwanted ? NULL : gni_attend_like(g, cpu && i > 0 ? GN_F32 : x[i]->dtype, x[i], x[i]->shape);
        if (to[i] != NULL && gni_attend_given(g, to[i], i == 0 ? &j.dq : i == 1 ? &j.dk : &j.dv) == NULL) return false;
    }
    for (int i = 0; i < 3 && cpu; i++) gx[i] = to[i];
    if (cpu)
        return !g->call_failed && gni_attend_job_step(g, &j, GNI_ATTEND_ALL,
                                                      to[0] != NULL   ? to[0]
                                                      : to[1] != NULL ? to[1]
                                                                      : to[2]);
    if (g->call_failed || (to[0] != NULL && !gni_attend_job_step(g, &j, GNI_ATTEND_QUERIES, to[0]))) return false;
    if ((gni_wanted(node, 1) || gni_wanted(node, 2)) && !gni_attend_job_step(g, &j, GNI_ATTEND_KEYS, to[1])) return false;
    for (int i = 0; i < 3; i++) gx[i] = gni_wanted(node, i) ? to[i] : NULL;
    return true;
}

// ---- what it is given

// (batch..., heads, n, d) with the axis of heads in two: `heads` and so many for each.
static gn_array *gni_attend_split(gn_array *a, int64_t heads) {
    if (a == NULL) return NULL;
    const int rank = a->shape.rank;
    gn_shape s;
    s.rank = GNI_MAX(rank, 3) + 1;
    const int64_t of = rank > 2 ? a->shape.dim[rank - 3] : 1;
    for (int i = 0; i < rank - 3; i++) s.dim[i] = a->shape.dim[i];
    s.dim[s.rank - 4] = heads;
    s.dim[s.rank - 3] = heads > 0 ? of / heads : 1;
    s.dim[s.rank - 2] = a->shape.dim[rank - 2];
    s.dim[s.rank - 1] = a->shape.dim[rank - 1];
    return gn_reshape(a, s);
}

static bool gni_attend_fits(const gn_array *q, const gn_array *k, const gn_array *v) {
    const int rank = q->shape.rank;
    if (rank < 2 || rank >= GN_MAX_RANK || k->shape.rank != rank || v->shape.rank != rank) return false;
    for (int i = 0; i < rank - 1; i++) {
        if (k->shape.dim[i] != v->shape.dim[i]) return false;
        if (i < rank - 3 && k->shape.dim[i] != q->shape.dim[i]) return false;
    }
    const int64_t heads = gni_attend_heads(k), all = gni_attend_heads(q);
    return k->shape.dim[rank - 1] == q->shape.dim[rank - 1] && (heads > 0 ? all % heads == 0 : all == 0);
}

static bool gni_attend_ok(gn_context *g, gn_array *q, gn_array *k, gn_array *v, gn_array *mask,
                          const gn_attention_options *o) {
    char tq[200], tk[200], tv[200];
    if (!gni_attend_fits(q, k, v)) {
        gni_fail(g, GN_ERROR_SHAPE,
                 "gn_attention: q %s, k %s, v %s are not (..., heads, n, d), (..., key heads, m, d), (..., key heads, m, e)",
                 gni_shape_text(tq, sizeof tq, &q->shape), gni_shape_text(tk, sizeof tk, &k->shape),
                 gni_shape_text(tv, sizeof tv, &v->shape));
        return false;
    }
    if (!gni_is_float(q->dtype) || k->dtype != q->dtype || v->dtype != q->dtype)
        return gni_fail(g, GN_ERROR_DTYPE, "gn_attention: q is %s, k %s and v %s, not one float dtype",
                        gn_dtype_name(q->dtype), gn_dtype_name(k->dtype), gn_dtype_name(v->dtype));
    const gn_shape s = gni_attend_shape(q, k);
    gn_shape joined;
    if (mask != NULL && mask->dtype != GN_BOOL && !gni_is_float(mask->dtype))
        return gni_fail(g, GN_ERROR_DTYPE, "gn_attention: the mask is %s, not bool or a float", gn_dtype_name(mask->dtype));
    if (mask != NULL && (!gni_broadcast(&mask->shape, &s, &joined) || !gni_same_shape(&joined, &s)))
        return gni_fail(g, GN_ERROR_SHAPE, "gn_attention: the mask %s does not broadcast to %s",
                        gni_shape_text(tq, sizeof tq, &mask->shape), gni_shape_text(tk, sizeof tk, &s));
    if (!(o->scale - o->scale == 0.0) || o->workspace < 0)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_attention: scale %g, workspace %lld", o->scale, (long long)o->workspace);
    else if (!(o->dropout >= 0.0 && o->dropout <= 1.0))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_attention: the probability %g is not between 0 and 1", o->dropout);
    return !g->call_failed;
}

static void gni_attend_begin(gni_attend *c, gn_context *g, gn_array *q, gn_array *k, gn_array *v, gn_array *mask,
                             double scale, bool causal, int64_t workspace) {
    const int64_t heads = gni_attend_heads(k);
    memset(c, 0, sizeof *c);
    c->g = g;
    c->scale = scale;
    c->causal = causal;
    c->bytes = workspace > 0 ? workspace : g->gpu != NULL ? GNI_ATTEND_BYTES : GNI_ATTEND_CACHED;
    c->t = q->dtype == GN_F64 ? GN_F64 : GN_F32;
    c->a[GNI_ATTEND_Q] = gni_attend_split(q, heads);
    c->a[GNI_ATTEND_K] = gni_attend_split(k, heads);
    c->a[GNI_ATTEND_V] = gni_attend_split(v, heads);
    if (mask != NULL) c->a[GNI_ATTEND_MASK] = gni_attend_split(gn_broadcast_to(mask, gni_attend_shape(q, k)), heads);
    c->rank = c->a[GNI_ATTEND_Q] != NULL ? c->a[GNI_ATTEND_Q]->shape.rank : 0;
}

// The weights as public calls on all of it at once.
static gn_array *gni_attend_weights(const gni_attend *c) {
    gn_array *s = gni_attend_scores(c), *zero = gn_scalar(c->g, c->t, 0.0);
    gn_array *none = s != NULL ? gn_eq_s(gn_logsumexp(gn_detach(s), GN_KEEP(-1)), -GNI_INF) : NULL;
    return gn_where(none, zero, gn_softmax(gn_where(none, zero, s), -1));
}

// What dropout multiplies the weights by, as attend.glsl has it; NULL without. A block of 4 numbers of the stream is
// of query 16 i + q and key 16 j + k, q and k below 8, and of those 8 behind, in the order i, j, q, k.
static gn_array *gni_attend_staying(const gni_attend *c, const gn_array *weights) {
    static const int order[7] = {0, 1, 5, 3, 2, 6, 4};
    if (c->dropout == 0.0 || weights == NULL) return NULL;
    const gn_shape *s = &weights->shape;
    const int64_t n = s->dim[c->rank - 2], m = s->dim[c->rank - 1], i = gni_attend_over_16(n), j = gni_attend_over_16(m);
    int64_t heads = 1;
    for (int k = 0; k < c->rank - 2; k++) heads *= s->dim[k];
    const gn_shape blocks = {7, {heads, i, j, 8, 8, 2, 2}};
    gn_array *drop = gni_random_below_p(c->g, "gn_attention", &blocks, c->dropout, c->seed, c->counter);
    drop = gn_permute_axes(drop, order, 7);
    drop = gn_reshape(drop, GN_SHAPE(heads, 16 * i, 16 * j));
    drop = gn_reshape(gn_slice(gn_slice(drop, 1, 0, n, 1), 2, 0, m, 1), *s);
    return gn_where(drop, gn_scalar(c->g, c->t, 0.0), gn_scalar(c->g, c->t, gni_attend_keep(c)));
}

static bool gni_attend_dropped(const gni_attend *c) {
    gn_array *p = gni_attend_weights(c), *y = c->a[GNI_ATTEND_Y];
    p = gn_mul(p, gni_attend_staying(c, p));
    return gn_assign(y, gn_matmul(gni_as(p, y->dtype), c->a[GNI_ATTEND_V])) == GN_OK;
}

// The gradients made likewise, to be differentiated again.
static bool gni_attend_graph(gni_attend *c, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *q = c->a[GNI_ATTEND_Q], *k = c->a[GNI_ATTEND_K], *v = c->a[GNI_ATTEND_V], *mask = node->in[3];
    gn_array *p = gni_attend_weights(c), *staying = gni_attend_staying(c, p);
    gy = gni_attend_split(gy, gni_attend_heads(node->in[1]));
    gn_array *dp = gni_attend_product(c, gy, gn_swap_axes(v, -1, -2));
    if (staying != NULL) dp = gn_mul(dp, staying);
    gn_array *ds = gn_mul(p, gn_sub(dp, gn_sum(gn_mul(p, dp), GN_KEEP(-1)))), *back = gn_swap_axes(ds, -1, -2);
    if (back == NULL) return false;
    if (gni_wanted(node, 0)) gx[0] = gn_reshape(gn_mul_s(gni_attend_product(c, ds, k), c->scale), node->in[0]->shape);
    if (gni_wanted(node, 1))
        gx[1] =
            gn_reshape(gni_unbroadcast(gn_mul_s(gni_attend_product(c, back, q), c->scale), &k->shape), node->in[1]->shape);
    if (staying != NULL) p = gn_mul(p, staying);
    if (gni_wanted(node, 2))
        gx[2] =
            gn_reshape(gni_unbroadcast(gni_attend_product(c, gn_swap_axes(p, -1, -2), gy), &v->shape), node->in[2]->shape);
    if (mask != NULL && gni_wanted(node, 3))
        gx[3] = gni_unbroadcast(gn_reshape(ds, gni_attend_shape(node->in[0], node->in[1])), &mask->shape);
    return true;
}

// Where gx[i] is to be written by parts, as (batch..., key heads, heads for each, ...).
static gn_array *gni_attend_gradient(gni_attend *c, gni_node *node, int i, gn_array **gx, gn_dtype t) {
    const gn_array *x = node->in[i];
    if (x == NULL || !gni_wanted(node, i)) return NULL;
    gx[i] =
        i == 0 && gni_elements(&c->a[GNI_ATTEND_Y]->shape) > 0 ? gn_empty(c->g, t, x->shape) : gn_zeros(c->g, t, x->shape);
    const int64_t heads = gni_attend_heads(node->in[1]);
    if (i < 3) return gni_attend_split(gx[i], heads);
    // A mask's axes in front that it lacks; one head may stand for all.
    gn_shape s;
    s.rank = c->rank;
    const int lead = c->rank - 1 - x->shape.rank;
    for (int k = 0; k < c->rank; k++) s.dim[k] = 1;
    for (int k = 0; k < x->shape.rank; k++) {
        const int at = k + lead; // among the axes of scores
        if (at == c->rank - 4 && x->shape.dim[k] != 1) {
            s.dim[at] = heads;
            s.dim[at + 1] = heads > 0 ? x->shape.dim[k] / heads : 1;
        } else if (at != c->rank - 4) {
            s.dim[at < c->rank - 4 ? at : at + 1] = x->shape.dim[k];
        }
    }
    return gn_reshape(gx[i], s);
}

// in: q, k, v, mask, lse. real: the scale, dropout; param: causal, workspace, the place in the stream.
static bool gni_back_attention(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gni_attend c;
    gn_array *k = node->in[1];
    const int64_t heads = gni_attend_heads(k);
    gni_attend_begin(&c, g, node->in[0], k, node->in[2], node->in[3], node->real[0], node->param[0] != 0, node->param[1]);
    c.dropout = node->real[1];
    c.seed = (uint64_t)node->param[2];
    c.counter = (uint64_t)node->param[3];
    if (g->call_failed) return false;
    if (g->no_grad > 0 && gni_attend_job_backward(&c, node, gy, gx)) return true;
    if (g->call_failed) return false;
    if (g->no_grad == 0 || c.dropout > 0.0) return gni_attend_graph(&c, node, gy, gx);
    c.back = true;
    c.a[GNI_ATTEND_Y] = gni_attend_split(node->output, heads);
    c.a[GNI_ATTEND_LSE] = node->in[4];
    c.a[GNI_ATTEND_GY] = gni_attend_split(gy, heads);
    if (g->call_failed) return false;
    c.a[GNI_ATTEND_DQ] = gni_attend_gradient(&c, node, 0, gx, gy->dtype);
    c.a[GNI_ATTEND_DK] = gni_attend_gradient(&c, node, 1, gx, c.t);
    c.a[GNI_ATTEND_DV] = gni_attend_gradient(&c, node, 2, gx, c.t);
    c.a[GNI_ATTEND_DMASK] = gni_attend_gradient(&c, node, 3, gx, c.t);
    return !g->call_failed && gni_attend_run(&c);
}

// Whether float32 operands are rounded to bfloat16: as GN_PRECISION_FAST allows, where a GPU's kernels have matrix units for
// that and the work is worth them.
static bool gni_attend_rounds(const gn_context *g, const gn_array *q, const gn_array *k, const gn_array *v,
                              gn_array *mask) {
#if GNI_GPU
    if (g->precision != GN_PRECISION_FAST || g->gpu == NULL || g->placement == GN_PLACE_CPU) return false;
    if (mask != NULL && (q->shape.rank > 4 || gni_tracks(g, &mask, 1))) return false;
    if (q->dtype != GN_F32 || k->dtype != GN_F32 || v->dtype != GN_F32 || !gni_job_has_units(g->gpu, GN_BF16)) return false;
    const int64_t d = q->shape.dim[q->shape.rank - 1], e = v->shape.dim[v->shape.rank - 1];
    return d % 8 == 0 && e % 8 == 0 && d <= 128 && e <= 128 &&
           (double)gni_elements(&q->shape) * (double)k->shape.dim[k->shape.rank - 2] >= 1 << 22;
#else
    GNI_UNUSED(g);
    GNI_UNUSED(q);
    GNI_UNUSED(k);
    GNI_UNUSED(v);
    GNI_UNUSED(mask);
    return false;
#endif
}

GPUNUM_API gn_array *gn_attention(gn_array *q, gn_array *k, gn_array *v, gn_array *mask,
                                  const gn_attention_options *options) {
    gn_array *in[5];
    GNI_OPTIONS(gn_attention_options, o, options);
    in[0] = q;
    in[1] = k;
    in[2] = v;
    in[3] = mask;
    gn_context *g = gni_begin_scope("gn_attention", in, mask != NULL ? 4 : 3);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if (gni_autocasts(g, in, 3)) {
        gni_autocast_all(g, in, 3);
        return gni_end_scope(g, gn_attention(in[0], in[1], in[2], mask, options));
    }
    if (!gni_attend_ok(g, q, k, v, mask, &o)) return gni_end_scope(g, NULL);
    if (gni_attend_rounds(g, q, k, v, mask)) {
        y = gn_attention(gn_cast(q, GN_BF16), gn_cast(k, GN_BF16), gn_cast(v, GN_BF16), mask, options);
        y = gn_cast(y, GN_F32);
    } else {
        gni_attend c;
        const bool tracks = gni_tracks(g, in, 4);
        const int64_t d = q->shape.dim[q->shape.rank - 1], heads = gni_attend_heads(k);
        const double scale = o.scale != 0.0 ? o.scale : d > 0 ? 1.0 / sqrt((double)d) : 1.0;
        gn_shape s = q->shape;
        s.dim[s.rank - 1] = v->shape.dim[s.rank - 1];
        g->no_grad++; // recorded as one op
        gni_attend_begin(&c, g, q, k, v, mask, scale, o.causal, o.workspace);
        c.dropout = o.dropout;
        c.seed = g->seed;
        c.counter = g->counter;
        if (tracks && c.a[GNI_ATTEND_Q] != NULL) {
            gn_shape rows = c.a[GNI_ATTEND_Q]->shape;
            rows.dim[rows.rank - 1] = 1;
            c.a[GNI_ATTEND_LSE] = gn_empty(g, c.t, rows);
        }
        if (gni_attend_whole(g, q, k, v, mask, o.workspace)) y = gni_attend_like(g, q->dtype, q, s);
        if (o.dropout > 0.0) {
            const gn_shape w = gni_attend_shape(q, k);
            g->counter += (uint64_t)(gni_elements(&w) / GNI_MAX(w.dim[w.rank - 2] * w.dim[w.rank - 1], 1)) *
                          (uint64_t)(gni_attend_over_16(w.dim[w.rank - 2]) * gni_attend_over_16(w.dim[w.rank - 1])) * 64;
        }
        if (y == NULL || !gni_attend_job_forward(&c, in, o.workspace, y)) {
            y = g->call_failed ? NULL : gn_empty(g, q->dtype, s);
            c.a[GNI_ATTEND_Y] = gni_attend_split(y, heads);
            if (g->call_failed || !(o.dropout > 0.0 ? gni_attend_dropped(&c) : gni_attend_run(&c))) y = NULL;
        }
        g->no_grad--;
        in[4] = c.a[GNI_ATTEND_LSE];
        gni_node *node = y != NULL ? gni_record(g, y, "gn_attention", gni_back_attention, in, 5) : NULL;
        if (node != NULL) {
            node->real[0] = scale;
            node->param[0] = o.causal;
            node->param[1] = o.workspace;
            node->real[1] = o.dropout;
            node->param[2] = (int64_t)c.seed;
            node->param[3] = (int64_t)c.counter;
            node->reads_output = true;
        }
    }
    return gni_end_scope(g, y);
}
