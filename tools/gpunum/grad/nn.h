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
    gn_array *sum[2] = {gni_matmul_named(g, "gn_linear", in[0], in[1]), in[2]}, *y = NULL;
    gn_dtype t = in[2]->dtype;
    if (sum[0] != NULL) y = gni_apply(g, "gn_linear", GNI_OP_ADD, t, t, sum, NULL, 2);
    gni_unref(g, sum[0]);
    gni_record(g, y, "gn_linear", gni_back_linear, in, 3);
    return y;
}

GPUNUM_API gn_array *gn_linear(gn_array *x, gn_array *w, gn_array *b) {
    gn_array *in[3] = {x, w, b};
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

// (a s)' = s + s (1 - s) a v'. What is 0 at both ends is multiplied first: v' grows without bound. Where a's square is out
// of range it is 0 or 1, as it is further in.
static bool gni_back_gelu_tanh(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *a = gn_clamp(gni_half_up(node->in[0]), -1e6, 1e6), *s = gni_gelu_gate(a);
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

// ---- dropout: the numbers are drawn again where the gradient needs them

static gn_array *gni_dropped(gn_context *g, gn_array *x, double p, uint64_t seed, uint64_t counter);

// real[0]: p, param: the place in the stream.
static bool gni_back_dropout(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gx[0] = gni_dropped(g, gy, node->real[0], (uint64_t)node->param[0], (uint64_t)node->param[1]);
    return true;
}

static gn_array *gni_dropped(gn_context *g, gn_array *x, double p, uint64_t seed, uint64_t counter) {
    g->no_grad++; // recorded as one op
    gn_array *drop = gni_random_below_p(g, "gn_dropout", &x->shape, p, seed, counter);
    // The factor last: halves are rounded once, in the store.
    gn_array *y = gn_mul_s(gn_where(drop, gni_zero_like(x), x), p < 1.0 ? 1.0 / (1.0 - p) : 0.0);
    g->no_grad--;
    gni_node *node = gni_record(g, y, "gn_dropout", gni_back_dropout, &x, 1);
    if (node != NULL) {
        node->param[0] = (int64_t)seed;
        node->param[1] = (int64_t)counter;
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
        y = gni_dropped(g, x, p, g->seed, g->counter);
        g->counter += gni_random_blocks(&x->shape);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_embedding(gn_array *indices, gn_array *table, int64_t padding) {
    gn_context *g = gni_begin_pair("gn_embedding", indices, table);
    if (g == NULL) return NULL;
    const int64_t rows = table->shape.rank == 2 ? table->shape.dim[0] : -1;
    const int64_t at = padding < 0 && rows > 0 ? padding + rows : padding;
    char text[200];
    gn_array *y = NULL;
    if (rows < 0 || !gni_is_float(table->dtype))
        gni_fail(g, rows < 0 ? GN_ERROR_SHAPE : GN_ERROR_DTYPE, "gn_embedding: the table is %s %s, not a float (rows, size)",
                 gn_dtype_name(table->dtype), gni_shape_text(text, sizeof text, &table->shape));
    else if (padding != GN_NONE && (at < 0 || at >= rows))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_embedding: padding %lld of %lld rows", (long long)padding, (long long)rows);
    else if (gni_need_integers(g, "gn_embedding", indices) && gni_rank_ok(g, "gn_embedding", indices->shape.rank + 1))
        y = gni_adopt(g, gni_take_any(g, "gn_embedding", table, indices, 0, false));
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
    return gni_fail(g, GN_ERROR_SHAPE, "%s: %s is not (in, out) or (out, in, kernel...)", fn,
                    gni_shape_text(text, sizeof text, s));
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
