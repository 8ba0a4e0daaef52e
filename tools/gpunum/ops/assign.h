// >>assign
// Writing to views. What autograd knows of every array that shows the memory changes with it: each gets a record of its own,
// and what was recorded before refers to a header that nobody else has, with the record that the array had. From outside:
// gni_assign.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/place.h"
#include "../ops/create.h"
#endif

// Whether two arrays are the same elements in the same order.
static bool gni_same_elements(const gn_array *a, const gn_array *b) {
    if (a->buf != b->buf || a->dtype != b->dtype || a->offset != b->offset || !gni_same_shape(&a->shape, &b->shape))
        return false;
    for (int i = 0; i < a->shape.rank; i++)
        if (a->shape.dim[i] > 1 && a->stride[i] != b->stride[i]) return false;
    return true;
}

// The array without what gn_broadcast_to repeats.
static gn_array gni_once(const gn_array *a) {
    gn_array once = *a;
    for (int i = 0; i < once.shape.rank; i++)
        if (once.stride[i] == 0) once.shape.dim[i] = 1;
    return once;
}

// ---- derivatives: a buffer's elements as a 1-d array, of which a view takes some, and which are 0 but where they are put

static gn_array *gni_flat_put(gn_context *g, gn_array *x, int64_t n, const int64_t *stride, int64_t offset);

static bool gni_back_flat_view(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gx[0] = gni_flat_put(g, gy, node->param[9], node->param, node->param[8]);
    return true;
}

static void gni_flat_note(gni_node *node, const gn_array *x, const int64_t *stride, int64_t offset) {
    if (node == NULL) return;
    memcpy(node->param, stride, sizeof(int64_t) * GN_MAX_RANK);
    node->param[8] = offset;
    node->shape = x->shape;
}

static gn_array *gni_flat_view(gn_context *g, gn_array *flat, const gn_shape *s, const int64_t *stride, int64_t offset) {
    gn_array *whole = flat != NULL ? gni_contiguous(g, flat) : NULL;
    if (whole == NULL) return NULL;
    gn_array *y = gni_array_view(g, "gn_assign", whole, s, stride, whole->offset + offset);
    gni_unref(g, whole);
    gni_node *node = y != NULL ? gni_record(g, y, "gn_assign", gni_back_flat_view, &flat, 1) : NULL;
    gni_flat_note(node, flat, stride, offset);
    if (node != NULL) node->param[9] = flat->shape.dim[0];
    return gni_adopt(g, y);
}

static bool gni_back_flat_put(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gx[0] = gni_flat_view(g, gy, &node->shape, node->param, node->param[8]);
    return true;
}

static gn_array *gni_flat_put(gn_context *g, gn_array *x, int64_t n, const int64_t *stride, int64_t offset) {
    const gn_shape s = gn_shape_from(1, &n);
    if (x == NULL) return NULL;
    gn_array *y = gni_make_full(g, "gn_assign", x->dtype, &s, 0.0);
    if (y != NULL && gni_materialize(g, y) && (gni_elements(&x->shape) == 0 ||
                                               gni_copy_into(g, y->buf, y->dtype, offset, stride, x)))
        gni_flat_note(gni_record(g, y, "gn_assign", gni_back_flat_put, &x, 1), x, stride, offset);
    return gni_adopt(g, y);
}

// in[0]: the array before, NULL where nothing of it is left or autograd does not know it; in[1]: the value, or NULL; param
// and shape: where it went.
static bool gni_back_assign(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    const gn_array *y = node->output;
    gn_array target = *y, *flat;
    int64_t low, high, from, to;
    const int64_t size = (int64_t)gn_dtype_size(y->dtype);
    target.shape = node->shape;
    target.offset = node->param[8];
    memcpy(target.stride, node->param, sizeof target.stride);
    gni_reach(y, &low, &high);
    gni_reach(&target, &from, &to);
    const bool inside = gni_is_contiguous(y) && low <= from && to <= high;
    const int64_t base = (inside ? low : GNI_MIN(low, from)) / size, n = (inside ? high : GNI_MAX(high, to)) / size - base;
    const gn_array once = gni_once(y);
    flat = inside ? gn_ravel(gy) : gni_flat_put(g, gni_unbroadcast(gy, &once.shape), n, y->stride, y->offset - base);
    if (gni_wanted(node, 1))
        gx[1] =
            gni_unbroadcast(gni_flat_view(g, flat, &node->shape, node->param, target.offset - base), &node->in[1]->shape);
    if (gni_wanted(node, 0)) {
        gn_array *hit = gni_flat_put(g, gn_ones(g, GN_BOOL, node->shape), n, node->param, target.offset - base);
        gx[0] = gn_where(gni_flat_view(g, hit, &y->shape, y->stride, y->offset - base), gn_scalar(g, gy->dtype, 0.0), gy);
    }
    return true;
}

// ---- records

// An array that shows the memory, and what becomes of it.
typedef struct gni_rewrite {
    gn_array *now, *old; // `old` gets the record that there is
    gni_node *node;      // the new one, or NULL: it is constant
} gni_rewrite;

static void gni_rewrites_drop(gn_context *g, gni_rewrite *rewrites, int count) {
    for (int i = 0; i < count; i++) {
        if (rewrites[i].node != NULL) gni_node_free(g, rewrites[i].node);
        gni_unref(g, rewrites[i].old);
    }
    gni_free(g, rewrites);
}

// Whether autograd has to know that `a` is written to through `by`.
static bool gni_is_rewritten(const gn_array *a, const gn_array *by) {
    return a->buf == by->buf && a->apart == by->apart && gni_has_owner(a) && gni_may_overlap(a, by);
}

static bool gni_rewrite_make(gn_context *g, const char *fn, gni_rewrite *rewrite, gn_array *h, gn_array *a,
                             gn_array *value) {
    const bool known = h->node != NULL, same = gni_same_elements(h, a);
    const gn_array once = gni_once(h);
    const bool plain = h->dtype == a->dtype && !gni_elements_overlap(&once);
    rewrite->now = h;
    rewrite->node = NULL;
    rewrite->old = gni_array_new(g, h->maker, h->dtype, &h->shape);
    if (rewrite->old == NULL) return false;
    memcpy(rewrite->old->stride, h->stride, sizeof h->stride);
    rewrite->old->offset = h->offset;
    rewrite->old->buf = h->buf;
    h->buf->refs++;
    if (value == NULL && same) return true;
    rewrite->node = gni_node_new(g, fn, 2);
    if (rewrite->node == NULL) return false;
    rewrite->node->in[0] = known && !same ? rewrite->old : NULL;
    rewrite->node->in[1] = value;
    for (int i = 0; i < 2; i++)
        if (rewrite->node->in[i] != NULL) gni_ref(rewrite->node->in[i]);
    rewrite->node->backward = plain ? gni_back_assign : NULL;
    gni_flat_note(rewrite->node, a, a->stride, a->offset);
    return true;
}

// Prepares the records of all arrays that change, before anything does: what can fail fails here. *rewrites NULL: there are
// none.
static bool gni_rewrites_make(gn_context *g, const char *fn, gn_array *a, gn_array *value, gni_rewrite **rewrites,
                              int *count) {
    *rewrites = NULL;
    *count = 0;
    if (g->no_grad > 0 || g->derivatives == NULL) return true;
    if (!gni_tracks(g, &value, 1)) value = NULL;
    bool any = value != NULL;
    if (a->passed) gni_set_found(a);
    int n = 0, left = a->buf->refs - a->buf->passed;
    // Those that show this memory come to the front: the next write finds them among the arrays made since.
    for (gn_array *h = left == 1 ? a : g->arrays, *next; h != NULL && left > 0; h = next) {
        next = h->all_next;
        if (h->buf != a->buf || h->passed) continue;
        left--;
        if (!gni_has_owner(h)) {
            h->passed = true;
            h->buf->passed++;
            continue;
        }
        gni_header_unlink(g, h);
        gni_header_link(g, h);
        if (!gni_is_rewritten(h, a)) continue;
        n++;
        any = any || h->node != NULL;
        if (!h->wants_grad || h->node != NULL) continue;
        gni_fail(g, GN_ERROR_GRADIENT,
                 "%s: this memory is that of a leaf that requires a gradient; write to it between gn_no_grad_begin and "
                 "gn_no_grad_end, or to a gn_copy",
                 fn);
        return false;
    }
    if (!any) return true;
    gni_rewrite *list = (gni_rewrite *)gni_calloc(g, sizeof(gni_rewrite) * (size_t)n);
    if (list == NULL) return gni_fail_memory(g, fn, sizeof(gni_rewrite) * (size_t)n);
    int made = 0;
    bool ok = true;
    for (gn_array *h = g->arrays, *next; h != NULL && ok && made < n; h = next) {
        next = h->all_next; // new headers come in front
        if (gni_is_rewritten(h, a)) ok = gni_rewrite_make(g, fn, &list[made++], h, a, value);
    }
    if (!ok) {
        gni_rewrites_drop(g, list, made);
        return false;
    }
    *rewrites = list;
    *count = made;
    return true;
}

// After the writing.
static void gni_rewrites_take(gn_context *g, gni_rewrite *rewrites, int count) {
    int64_t left = 0; // references to them that may be those of records
    for (int i = 0; i < count; i++) {
        gn_array *now = rewrites[i].now, *old = rewrites[i].old;
        old->node = now->node;
        if (old->node != NULL) old->node->output = old;
        now->node = NULL;
        now->rewritten = i + 1;
        left += now->refs - now->user_refs - now->lazy_refs;
    }
    for (gn_array *p = g->arrays; p != NULL && left > 0; p = p->all_next)
        for (int k = 0; p->node != NULL && k < p->node->n_in; k++) {
            gn_array *now = p->node->in[k];
            if (now == NULL || now->rewritten == 0) continue;
            gn_array *old = rewrites[now->rewritten - 1].old;
            p->node->in[k] = old;
            gni_ref(old);
            now->refs--; // it has an owner
            left--;
        }
    for (int i = 0; i < count; i++) {
        gni_node *node = rewrites[i].node;
        rewrites[i].now->node = node;
        rewrites[i].now->rewritten = 0;
        rewrites[i].node = NULL;
        if (node == NULL) continue;
        node->output = rewrites[i].now;
        node->serial = ++g->serial;
        node->made = rewrites[i].now->buf->version;
    }
    gni_rewrites_drop(g, rewrites, count);
}

// ---- the values

// One program from the value to the view. What is pending is taken in, unless it does not fit or its elements repeat.
static bool gni_assign_run(gn_context *g, gn_array *a, gn_array *value) {
    gni_builder b;
    int order[GN_MAX_RANK];
    const bool wide = gni_is_wide(a->dtype) || gni_is_wide(value->dtype);
    if (gni_is_pending(value) && !gni_is_const(value) &&
        (gni_has_product(value) || gni_is_complex(value->dtype) || (wide && !value->expr->wide) ||
         gni_elements(&value->shape) < gni_elements(&a->shape)) &&
        !gni_materialize(g, value))
        return false;
    for (int pass = 0;; pass++) {
        gni_build_begin(&b, g, &a->shape, wide || (gni_is_pending(value) && value->expr->wide));
        b.map.program.out_reg[0] = gni_build_convert(&b, gni_build_value(&b, value), value->dtype, a->dtype);
        if (!b.full && (g->gpu != NULL || !gni_is_pending(value) || !gni_map_order(&b.map, order))) break;
        if (pass > 0 || !gni_materialize(g, value)) return false;
    }
    b.map.program.n_out = 1;
    b.map.program.out_dtype[0] = a->dtype;
    gni_build_finish(&b.map.program);
    gni_operand_of(a, a->shape.rank, &b.map.out[0]);
    gni_map_merge(&b.map);
    return gni_run(g, &gni_kind_map, &b.map, NULL);
}

static bool gni_assign_data(gn_context *g, gn_array *a, gn_array *value) {
    gni_buffer *was = a->buf;
    was->refs++;
    bool ok = gni_before_overwrite(g, a, 0, 1);
    const bool whole = gni_is_contiguous(a) && gn_bytes(a) == a->buf->bytes;
    if (ok && a->buf->where == 0 && !whole) // never written: the rest is zeros
        ok = gni_buffer_need(g, a->buf, g->host_recording ? GNI_ON_GPU : GNI_ON_CPU);
    ok = ok && gni_assign_run(g, a, value);
    if (!ok) gni_restore_buffer(g, a, was);
    gni_buffer_release(g, was);
    return ok;
}

// Inside a scope.
static bool gni_assign(gn_context *g, const char *fn, gn_array *a, gn_array *value) {
    char from[200], to[200];
    gn_shape s = value->shape;
    gni_rewrite *rewrites;
    int count, lead = 0;
    while (s.rank - lead > a->shape.rank && s.dim[lead] == 1) lead++;
    s = gn_shape_from(s.rank - lead, s.dim + lead);
    if (!gni_broadcast(&a->shape, &s, &s) || !gni_same_shape(&s, &a->shape))
        return gni_fail(g, GN_ERROR_SHAPE, "%s: shape %s does not broadcast to %s", fn,
                        gni_shape_text(from, sizeof from, &value->shape), gni_shape_text(to, sizeof to, &a->shape));
    if (gni_elements(&a->shape) == 0) return true;
    if (!gni_materialize(g, a) || !gni_can_write(g, fn, a)) return false;
    if (a->apart == value->apart && gni_same_elements(a, value)) return true;
    if (a->dtype != value->dtype && (gni_is_complex(a->dtype) || gni_is_complex(value->dtype)))
        value = gn_cast(value, a->dtype);
    if (value != NULL && gni_may_overlap(a, value)) value = gn_copy(value);
    if (value != NULL && lead > 0)
        value = gn_reshape(value, gn_shape_from(value->shape.rank - lead, value->shape.dim + lead));
    if (value == NULL || !gni_rewrites_make(g, fn, a, value, &rewrites, &count)) return false;
    if (gni_assign_data(g, a, value)) {
        gni_rewrites_take(g, rewrites, count);
        return true;
    }
    gni_rewrites_drop(g, rewrites, count);
    return false;
}

GPUNUM_API gn_status gn_assign(gn_array *a, gn_array *value) {
    gn_context *g = gni_begin_pair("gn_assign", a, value);
    if (g == NULL) return gni_null_status(a != NULL ? a : value);
    gni_assign(g, "gn_assign", a, value);
    gn_scope_end(g);
    return gni_end_status(g);
}
