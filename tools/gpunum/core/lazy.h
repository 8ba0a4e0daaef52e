// >>lazy
// Elementwise work stays an expression until somebody needs the value, which room `evaluate` then computes. From outside:
// gni_apply and gni_const make expressions; product and evaluate also take gni_expr_new and gni_convert_ops.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/array.h"
#endif

static void gni_pending_add(gn_context *g, gn_array *a) {
    a->expr->prev = g->pending_last;
    a->expr->next = NULL;
    if (g->pending_last != NULL)
        g->pending_last->expr->next = a;
    else
        g->pending_first = a;
    g->pending_last = a;
}

static void gni_pending_remove(gn_context *g, gn_array *a) {
    gni_expr *e = a->expr;
    if (e->prev != NULL)
        e->prev->expr->next = e->next;
    else
        g->pending_first = e->next;
    if (e->next != NULL)
        e->next->expr->prev = e->prev;
    else
        g->pending_last = e->prev;
    if (g->pending_read == a) g->pending_read = e->next;
}

static void gni_source_add(gn_array *src) {
    src->refs++;
    src->lazy_refs++;
    if (src->buf != NULL) src->buf->readers++;
}

static bool gni_source_drop(gn_context *g, gn_array *src) {
    if (src->buf != NULL) src->buf->readers--;
    if (--src->lazy_refs == 0 && src->orphan) {
        src->orphan = false;
        src->buf->orphans--;
        gni_lazy_count(g, src->buf);
    }
    return --src->refs == 0;
}

// Drops an expression that has been computed.
static void gni_expr_free(gn_context *g, gn_array *a) {
    gni_expr *e = a->expr;
    gni_pending_remove(g, a);
    a->expr = NULL;
    if (a->buf != NULL) a->buf->readers += a->lazy_refs;
    for (int i = 0; i < e->n_src; i++) {
        if (e->src[i] == NULL) continue;
        e->src[i]->refs++; // gni_unref does the freeing
        gni_source_drop(g, e->src[i]);
        gni_unref(g, e->src[i]);
    }
    gni_free(g, e);
}

static void gni_lazy_orphaned(gn_context *g, gn_array *a) {
    if (a->buf == NULL || a->lazy_refs == 0 || a->orphan) return;
    a->orphan = true;
    a->buf->orphans++;
    gni_lazy_count(g, a->buf);
    while (g->lazy_bytes > GNI_LAZY_BYTES) {
        gn_array *reader = NULL;
        for (gn_array *p = g->pending_first; p != NULL && reader == NULL; p = p->expr->next)
            for (int i = 0; i < p->expr->n_src && !p->expr->consumed; i++)
                if (p->expr->src[i] != NULL && p->expr->src[i]->orphan && p->expr->src[i]->buf->counted) reader = p;
        if (reader == NULL || !gni_materialize(g, reader)) return;
    }
}

// ---- dtypes and register domains

static gni_domain gni_domain_of(gn_dtype t, bool wide) {
    if (gni_is_float(t)) return GNI_F;
    return (t == GN_U32 && !wide) || t == GN_U64 ? GNI_U : GNI_I;
}

// The instructions that turn a register of dtype `from` into one of dtype `to`; at most two.
static int gni_convert_ops(gn_dtype from, gn_dtype to, bool wide, gni_op *op) {
    int n = 0;
    if (from == to) return 0;
    if (to == GN_BOOL) {
        op[n++] = GNI_OP_TO_BOOL;
        return n;
    }
    bool from_float = gni_is_float(from), to_float = gni_is_float(to), natural = from == GN_BOOL || from == GN_U8;
    if (from_float && !to_float) op[n++] = gni_domain_of(to, wide) == GNI_U ? GNI_OP_F_TO_U : GNI_OP_F_TO_I;
    // Integers that the register's float does not hold would be rounded twice.
    bool twice = wide ? (from == GN_I64 || from == GN_U64) && to != GN_F64
                      : (from == GN_I32 || from == GN_U32) && to == GN_BF16;
    if (!from_float && to_float)
        op[n++] = twice                                ? GNI_OP_TO_ODD
                  : gni_domain_of(from, wide) == GNI_U ? GNI_OP_U_TO_F
                                                       : GNI_OP_I_TO_F;
    switch (to) {
    case GN_F16: op[n++] = GNI_OP_ROUND_F16; break;
    case GN_BF16: op[n++] = GNI_OP_ROUND_BF16; break;
    case GN_F32:
        if (wide && from != GN_F16 && from != GN_BF16) op[n++] = GNI_OP_ROUND_F32;
        break;
    case GN_U8:
        if (from != GN_BOOL) op[n++] = GNI_OP_WRAP_U8;
        break;
    case GN_I8:
        if (from != GN_BOOL) op[n++] = GNI_OP_WRAP_I8;
        break;
    case GN_U16:
        if (!natural) op[n++] = GNI_OP_WRAP_U16;
        break;
    case GN_I16:
        if (!natural && from != GN_I8) op[n++] = GNI_OP_WRAP_I16;
        break;
    case GN_U32:
        if (wide && !natural && from != GN_U16) op[n++] = GNI_OP_WRAP_U32;
        break;
    case GN_I32:
        if (wide && (from_float || gn_dtype_size(from) >= 4)) op[n++] = GNI_OP_WRAP_I32;
        break;
    default: break;
    }
    return n;
}

// Floats saturate on their way to an integer dtype narrower than the register: two instructions and two
// constants in the place of the wrapping that gni_convert_ops names.
static bool gni_saturates(gn_dtype from, gni_op op) {
    return gni_is_float(from) && op >= GNI_OP_WRAP_U8 && op <= GNI_OP_WRAP_I16 && op != GNI_OP_TO_ODD;
}

// The instruction that brings the raw result of an op computed in `t` back to the values of `t`.
static bool gni_normalize_op(gni_op op, gn_dtype t, bool wide, gni_op *out) {
    if (op >= GNI_OP_EQ && op <= GNI_OP_LOGICAL_XOR) return false;
    if (op >= GNI_OP_ISNAN && op <= GNI_OP_LOGICAL_NOT) return false;
    if (op == GNI_OP_WHERE || op == GNI_OP_CAST || op == GNI_OP_MIN || op == GNI_OP_MAX || op >= GNI_OP_COUNT)
        return false;
    switch (t) {
    case GN_F16: *out = GNI_OP_ROUND_F16; break;
    case GN_BF16: *out = GNI_OP_ROUND_BF16; break;
    case GN_F32:
        if (!wide) return false;
        *out = GNI_OP_ROUND_F32;
        break;
    case GN_U8: *out = GNI_OP_WRAP_U8; break;
    case GN_I8: *out = GNI_OP_WRAP_I8; break;
    case GN_U16: *out = GNI_OP_WRAP_U16; break;
    case GN_I16: *out = GNI_OP_WRAP_I16; break;
    case GN_BOOL: *out = GNI_OP_TO_BOOL; break;
    case GN_U32:
        if (!wide) return false;
        *out = GNI_OP_WRAP_U32;
        break;
    case GN_I32:
        if (!wide) return false;
        *out = GNI_OP_WRAP_I32;
        break;
    default: return false;
    }
    return !(op <= GNI_OP_RELU && op >= GNI_OP_NEG && op != GNI_OP_SQUARE && gni_is_float(t));
}

// What source i of an op is converted to.
static gn_dtype gni_source_dtype(gni_op op, int i, gn_dtype compute) {
    return op == GNI_OP_WHERE && i == 0 ? GN_BOOL : compute;
}

// ---- making expressions

static bool gni_is_part(gni_op op) { return op == GNI_OP_REAL || op == GNI_OP_IMAG; }
static bool gni_is_pending(const gn_array *a) { return a != NULL && a->expr != NULL; }
static bool gni_is_product(const gn_array *a) {
    return gni_is_pending(a) && a->expr->op == GNI_OP_PRODUCT;
}
static bool gni_has_product(const gn_array *a) {
    return gni_is_pending(a) && a->expr->products > 0;
}
static bool gni_is_const(const gn_array *a) {
    return gni_is_pending(a) && a->expr->op == GNI_OP_CONST;
}

static int gni_convert_cost(gn_dtype from, gn_dtype to, bool wide, int *consts) {
    gni_op ops[2];
    int n = gni_convert_ops(from, to, wide, ops);
    if (n == 0 || !gni_saturates(from, ops[n - 1])) return n;
    *consts += 2;
    return n + 1;
}

// Instructions of the node itself: conversions of the sources, the op, rounding. Adds its constants.
static int gni_own_insns(const gni_expr *e, gn_dtype result, int *consts) {
    gni_op fix;
    int n = e->op == GNI_OP_CAST || e->op == GNI_OP_COMPLEX ? 0 : 1;
    if (gni_is_part(e->op)) return 0;
    for (int i = 0; i < e->n_src; i++)
        if (e->src[i] != NULL)
            n += gni_convert_cost(e->src[i]->dtype, gni_source_dtype(e->op, i, e->compute), e->wide,
                                  consts);
    if (gni_normalize_op(e->op, e->compute, e->wide, &fix)) n++;
    if (e->op == GNI_OP_CAST) n += gni_convert_cost(e->compute, result, e->wide, consts);
    return n;
}

// The complex array that a part is of, without conversions to its own dtype.
static gn_array *gni_whole(gn_array *a) {
    while (gni_is_pending(a) && a->expr->op == GNI_OP_CAST) a = a->expr->src[0];
    return a;
}

// Whether it is data, or a part of some.
static bool gni_is_input(const gn_array *a) {
    return !gni_is_pending(a) || (gni_is_part(a->expr->op) && !gni_is_pending(gni_whole(a->expr->src[0])));
}

static void gni_expr_measure(gni_expr *e, gn_dtype result) {
    e->leaves = 0;
    e->consts = 0;
    e->products = 0;
    e->shares = false;
    e->insns = gni_own_insns(e, result, &e->consts);
    for (int i = 0; i < e->n_src; i++) {
        const gn_array *s = e->src[i];
        if (s == NULL)
            e->consts++;
        else if (gni_is_input(s))
            e->leaves++;
        else {
            e->insns += s->expr->insns;
            e->leaves += s->expr->leaves;
            e->consts += s->expr->consts;
            e->products += s->expr->products;
            e->shares = e->shares || s->expr->shares;
        }
    }
}

// What a program of a tree needs, each part of it counted once.
typedef struct gni_tree {
    int insns, leaves, consts, values; // values: how many of the constants are in `value`
    const void *leaf[GNI_MAX_INPUTS];
    double value[GNI_MAX_CONSTS][2];
    gn_dtype dtype[GNI_MAX_CONSTS];
    gn_array *most; // the pending complex array in it that needs most, or NULL
} gni_tree;

static void gni_tree_leaf(gni_tree *t, const void *leaf) {
    for (int i = 0; i < t->leaves && i < GNI_MAX_INPUTS; i++)
        if (t->leaf[i] == leaf) return;
    if (t->leaves < GNI_MAX_INPUTS) t->leaf[t->leaves] = leaf;
    t->leaves++;
}

static void gni_tree_const(gni_tree *t, double value, double low, gn_dtype dtype) {
    double both[2];
    both[0] = value, both[1] = low;
    for (int i = 0; i < t->values; i++)
        if (t->dtype[i] == dtype && memcmp(t->value[i], both, sizeof both) == 0) return;
    if (t->values < GNI_MAX_CONSTS) {
        memcpy(t->value[t->values], both, sizeof both);
        t->dtype[t->values++] = dtype;
    }
    t->consts++;
}

static void gni_tree_take(gni_tree *t, gn_array *a, uint32_t walk) {
    gni_expr *e = a->expr;
    int from = 0, to = e->n_src;
    e->walk = walk;
    if (gni_is_part(e->op)) {
        from = e->op == GNI_OP_IMAG, to = from + 1;
        a = gni_whole(e->src[0]);
        if (!gni_is_pending(a)) {
            gni_tree_leaf(t, (const char *)a + from);
            return;
        }
        e = a->expr;
        if (t->most == NULL || e->insns > t->most->expr->insns) t->most = a;
    }
    t->insns += gni_own_insns(e, a->dtype, &t->consts);
    for (int i = from; i < to; i++) {
        gn_array *s = e->src[i];
        if (s == NULL)
            gni_tree_const(t, e->konst[i], 0.0, gni_source_dtype(e->op, i, e->compute));
        else if (gni_is_const(s))
            gni_tree_const(t, s->expr->konst[0], s->expr->konst[1], s->dtype);
        else if (!gni_is_pending(s) || gni_is_product(s))
            gni_tree_leaf(t, s);
        else if (s->expr->walk != walk)
            gni_tree_take(t, s, walk);
    }
}

// Computes a source. A part of a complex array is read from that.
static bool gni_settle(gn_context *g, gn_array *s) {
    return gni_materialize(g, gni_is_part(s->expr->op) ? s->expr->src[0] : s);
}

// How many operands a program may read that writes `results`: kernels that are texts bind each.
static int gni_most_inputs(const gn_context *g, int results) {
    const gni_gpu *gpu = g->gpu;
    if (!GNI_TEXTS(gpu)) return GNI_MAX_INPUTS;
    return GNI_MIN((int)GNI_MAX_INPUTS, (int)gpu->caps.max_buffers - results);
}

static bool gni_expr_beyond(const gni_expr *e, int inputs) {
    return e->insns > GNI_MAX_INSNS || e->leaves > inputs || e->consts > GNI_MAX_CONSTS;
}

// Computes sources that must not be fused: of the other register width, repeated by broadcasting at some
// cost, or too many for one program.
static bool gni_expr_bound(gn_context *g, gn_array *y) {
    gni_expr *e = y->expr;
    const int inputs = gni_most_inputs(g, gni_is_complex(y->dtype) ? 2 : 1);
    int64_t size = gni_elements(&y->shape);
    for (int i = 0; i < e->n_src; i++) {
        gn_array *s = e->src[i];
        if (s == NULL || gni_is_input(s) || gni_is_const(s)) continue;
        bool repeated = s->expr->insns > 2 && gni_elements(&s->shape) * 2 <= size;
        repeated = repeated || (s->expr->products > 0 && (e->op == GNI_OP_COMPLEX || gni_elements(&s->shape) != size));
        if ((s->expr->wide != e->wide || repeated) && !gni_settle(g, s)) return false;
    }
    gni_expr_measure(e, y->dtype);
    while (gni_expr_beyond(e, inputs)) {
        gn_array *largest = NULL;
        GNI_ZEROED(gni_tree, t);
        gni_tree_take(&t, y, ++g->walk);
        e->insns = t.insns, e->leaves = t.leaves, e->consts = t.consts;
        e->shares = true;
        if (!gni_expr_beyond(e, inputs)) break;
        for (int i = 0; i < e->n_src && t.most == NULL; i++) {
            gn_array *s = e->src[i];
            if (s != NULL && !gni_is_input(s) && !(gni_is_const(s) && s->shape.rank == 0))
                if (largest == NULL || s->expr->insns > largest->expr->insns) largest = s;
        }
        if (t.most != NULL) largest = t.most;
        if (largest == NULL) break; // cannot be: one op fits
        if (!gni_materialize(g, largest)) return false;
        gni_expr_measure(e, y->dtype);
    }
    return true;
}

static gn_array *gni_expr_new(gn_context *g, const char *fn, gni_op op, gn_dtype compute,
                              gn_dtype result, const gn_shape *s) {
    gn_array *y = gni_array_new(g, fn, result, s);
    if (y == NULL) return NULL;
    gni_expr *e = (gni_expr *)gni_calloc(g, sizeof(gni_expr));
    if (e == NULL) {
        gni_fail_memory(g, "gn_array", sizeof(gni_expr));
        gni_unref(g, y);
        return NULL;
    }
    e->op = op;
    e->compute = compute;
    e->wide = gni_is_wide(compute) || gni_is_wide(result);
    y->expr = e;
    gni_pending_add(g, y);
    return y;
}

static gn_array *gni_const(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s,
                           double value) {
    gn_array *y = gni_expr_new(g, fn, GNI_OP_CONST, t, t, s);
    if (y == NULL) return NULL;
    if (gni_is_integer(t)) { // a value of `t` at once, since programs read it without storing it
        double low, high;
        gni_integer_range(t, &low, &high);
        value = value != value ? 0.0 : GNI_MIN(GNI_MAX(value, low), high);
    }
    y->expr->konst[0] = value;
    y->expr->consts = 1;
    return y;
}

static gn_array *gni_apply(gn_context *g, const char *fn, gni_op op, gn_dtype compute,
                           gn_dtype result, gn_array *const *src, const double *konst, int n_src) {
    gn_shape shape = gn_shape_from(0, NULL);
    bool any = false;
    for (int i = 0; i < n_src; i++) {
        gn_shape joined;
        if (src[i] == NULL || (any && gni_same_shape(&shape, &src[i]->shape))) continue;
        if (!any) {
            shape = src[i]->shape;
            any = true;
            continue;
        }
        if (!gni_broadcast(&shape, &src[i]->shape, &joined)) {
            char ta[200], tb[200];
            gni_fail(g, GN_ERROR_SHAPE, "%s: shapes %s and %s do not broadcast", fn,
                     gni_shape_text(ta, sizeof ta, &src[0]->shape),
                     gni_shape_text(tb, sizeof tb, &src[i]->shape));
            return NULL;
        }
        shape = joined;
    }
    gn_array *y = gni_expr_new(g, fn, op, compute, result, &shape);
    if (y == NULL) return NULL;
    gni_expr *e = y->expr;
    const bool truth = compute == GN_BOOL && result == GN_BOOL; // the same in registers of either width
    e->n_src = n_src;
    for (int i = 0; i < n_src; i++) {
        e->src[i] = src[i];
        if (src[i] == NULL) {
            e->konst[i] = konst[i];
            continue;
        }
        gni_source_add(src[i]);
        e->wide = e->wide || gni_is_wide(src[i]->dtype) || (truth && gni_is_pending(src[i]) && src[i]->expr->wide);
    }
    if (!gni_expr_bound(g, y)) {
        gni_unref(g, y);
        return NULL;
    }
    return y;
}
