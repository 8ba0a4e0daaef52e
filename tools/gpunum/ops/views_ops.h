// >>views_ops
// Arrays that look at other arrays' memory, and the joins and gathers that fill new memory.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/views.h"
#include "../core/evaluate.h"
#include "../core/place.h"
#endif

// ---- reshape

// Strides that show a's elements as shape `s` in C order, if there are any. Old axes are gathered from
// the innermost into runs of even steps, and new axes are cut from the runs.
static bool gni_reshape_strides(const gn_array *a, const gn_shape *s, int64_t *stride) {
    gni_strides_of(s, stride);
    if (gni_elements(s) == 0) return true;
    const int64_t *dim = a->shape.dim;
    int at = a->shape.rank;
    int64_t left = 1, step = 0; // elements of the run not handed out, and their distance
    for (int i = s->rank - 1; i >= 0; i--) {
        if (s->dim[i] == 1) continue;
        if (left == 1) {
            while (dim[at - 1] == 1) at--;
            left = dim[--at];
            step = a->stride[at];
            for (; at > 0 && (dim[at - 1] == 1 || a->stride[at - 1] == step * left); at--)
                left *= dim[at - 1];
        }
        if (left % s->dim[i] != 0) return false;
        stride[i] = step;
        step *= s->dim[i];
        left /= s->dim[i];
    }
    return true;
}

// Fills in a -1 and checks the size; false after gni_fail.
static bool gni_reshape_resolve(gn_context *g, const char *fn, const gn_array *a, gn_shape *s) {
    char text[200];
    int unknown = -1;
    int64_t n = gni_elements(&a->shape);
    gn_shape known = *s;
    if (s->rank < 0 || s->rank > GN_MAX_RANK) return gni_shape_ok(g, fn, a->dtype, s);
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] != -1) continue;
        if (unknown >= 0)
            return gni_fail(g, GN_ERROR_SHAPE, "%s: only one dimension may be -1: %s", fn,
                            gni_shape_text(text, sizeof text, s));
        unknown = i;
        known.dim[i] = 1;
    }
    if (!gni_shape_ok(g, fn, a->dtype, &known)) return false;
    int64_t rest = gni_elements(&known);
    if (unknown >= 0 ? rest == 0 || n % rest != 0 : rest != n)
        return gni_fail(g, GN_ERROR_SHAPE, "%s: cannot reshape array of size %lld into shape %s", fn, (long long)n,
                        gni_shape_text(text, sizeof text, s));
    if (unknown >= 0) s->dim[unknown] = n / rest;
    return true;
}

// A view of shape `s`, or of a copy; recorded.
static gn_array *gni_reshaped(gn_context *g, const char *fn, gn_array *a, gn_shape s) {
    int64_t stride[GN_MAX_RANK];
    if (!gni_reshape_resolve(g, fn, a, &s)) return NULL;
    gn_array *y;
    if (gni_reshape_strides(a, &s, stride)) {
        y = gni_array_view(g, fn, a, &s, stride, a->offset);
    } else {
        gn_array *copy = gni_contiguous(g, a);
        if (copy == NULL) return NULL;
        gni_strides_of(&s, stride);
        y = gni_array_view(g, fn, copy, &s, stride, copy->offset);
        gni_unref(g, copy);
    }
    gni_node *n = gni_record(g, y, fn, gni_back_reshape, &a, 1);
    if (n != NULL) n->shape = a->shape;
    return y;
}

GPUNUM_API gn_array *gn_reshape(gn_array *a, gn_shape s) {
    gn_context *g = gni_begin("gn_reshape", &a, 1);
    return g == NULL ? NULL : gni_end(g, gni_reshaped(g, "gn_reshape", a, s));
}

GPUNUM_API gn_array *gn_ravel(gn_array *a) {
    gn_context *g = gni_begin("gn_ravel", &a, 1);
    if (g == NULL) return NULL;
    int64_t n = gni_elements(&a->shape);
    return gni_end(g, gni_reshaped(g, "gn_ravel", a, gn_shape_from(1, &n)));
}

GPUNUM_API gn_array *gn_expand_dims(gn_array *a, gn_axes axes) {
    gn_context *g = gni_begin("gn_expand_dims", &a, 1);
    if (g == NULL) return NULL;
    gn_shape s = a->shape;
    int rank = s.rank + 1;
    if (axes >= GNI_AXES_SET) {
        rank = s.rank;
        for (gn_axes left = axes & GNI_AXES_BITS; left != 0; left &= left - 1) rank++;
    }
    if (axes == GN_ALL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_expand_dims: GN_ALL does not say which axes are made, GN_AXES(0, -1) does");
        return gni_end(g, NULL);
    }
    uint32_t set = gni_axes(g, "gn_expand_dims", axes, rank, NULL);
    if (set == ~0u || !gni_rank_ok(g, "gn_expand_dims", rank)) return gni_end(g, NULL);
    for (int i = rank - 1, from = s.rank; i >= 0; i--) s.dim[i] = set >> i & 1u ? 1 : s.dim[--from];
    s.rank = rank;
    return gni_end(g, gni_reshaped(g, "gn_expand_dims", a, s));
}

GPUNUM_API gn_array *gn_squeeze(gn_array *a, gn_axes axes) {
    gn_context *g = gni_begin("gn_squeeze", &a, 1);
    if (g == NULL) return NULL;
    uint32_t set = gni_axes(g, "gn_squeeze", axes, a->shape.rank, NULL);
    if (set == ~0u) return gni_end(g, NULL);
    gn_shape s = gn_shape_from(0, NULL);
    for (int i = 0; i < a->shape.rank; i++) {
        bool drop = (set >> i) & 1u;
        if (drop && a->shape.dim[i] != 1 && axes != GN_ALL) {
            char text[200];
            gni_fail(g, GN_ERROR_SHAPE, "gn_squeeze: axis %d of %s has size %lld, not 1", i,
                     gni_shape_text(text, sizeof text, &a->shape), (long long)a->shape.dim[i]);
            return gni_end(g, NULL);
        }
        if (!drop || a->shape.dim[i] != 1) s.dim[s.rank++] = a->shape.dim[i];
    }
    return gni_end(g, gni_reshaped(g, "gn_squeeze", a, s));
}

// ---- order of axes

// `axes` is a permutation.
static gn_array *gni_permuted(gn_context *g, const char *fn, gn_array *a, const int *axes) {
    if (!gni_materialize(g, a)) return NULL;
    gn_shape s = a->shape;
    int64_t stride[GN_MAX_RANK];
    for (int i = 0; i < s.rank; i++) {
        s.dim[i] = a->shape.dim[axes[i]];
        stride[i] = a->stride[axes[i]];
    }
    gn_array *y = gni_array_view(g, fn, a, &s, stride, a->offset);
    gni_node *n = gni_record(g, y, fn, gni_back_permute, &a, 1);
    for (int i = 0; n != NULL && i < s.rank; i++) n->param[i] = axes[i];
    return y;
}

GPUNUM_API gn_array *gn_permute_axes(gn_array *a, const int *axes, int count) {
    gn_context *g = gni_begin("gn_permute_axes", &a, 1);
    if (g == NULL) return NULL;
    int order[GN_MAX_RANK];
    uint32_t seen = 0;
    if (count != a->shape.rank || (axes == NULL && count > 0)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_permute_axes: %d axes for an array of rank %d",
                 axes ? count : 0, a->shape.rank);
        return gni_end(g, NULL);
    }
    for (int i = 0; i < count; i++) {
        order[i] = gni_axis(g, "gn_permute_axes", axes[i], count);
        if (order[i] < 0) return gni_end(g, NULL);
        if (seen & (1u << order[i])) {
            gni_fail(g, GN_ERROR_ARGUMENT, "gn_permute_axes: axis %d comes twice", order[i]);
            return gni_end(g, NULL);
        }
        seen |= 1u << order[i];
    }
    return gni_end(g, gni_permuted(g, "gn_permute_axes", a, order));
}

GPUNUM_API gn_array *gn_transpose(gn_array *a) {
    gn_context *g = gni_begin("gn_transpose", &a, 1);
    if (g == NULL) return NULL;
    int order[GN_MAX_RANK];
    for (int i = 0; i < a->shape.rank; i++) order[i] = a->shape.rank - 1 - i;
    return gni_end(g, gni_permuted(g, "gn_transpose", a, order));
}

GPUNUM_API gn_array *gn_swap_axes(gn_array *a, int axis1, int axis2) {
    gn_context *g = gni_begin("gn_swap_axes", &a, 1);
    if (g == NULL) return NULL;
    int order[GN_MAX_RANK];
    int i1 = gni_axis(g, "gn_swap_axes", axis1, a->shape.rank);
    int i2 = i1 < 0 ? -1 : gni_axis(g, "gn_swap_axes", axis2, a->shape.rank);
    if (i2 < 0) return gni_end(g, NULL);
    for (int i = 0; i < a->shape.rank; i++) order[i] = i == i1 ? i2 : i == i2 ? i1 : i;
    return gni_end(g, gni_permuted(g, "gn_swap_axes", a, order));
}

GPUNUM_API gn_array *gn_move_axis(gn_array *a, int from, int to) {
    gn_context *g = gni_begin("gn_move_axis", &a, 1);
    if (g == NULL) return NULL;
    int order[GN_MAX_RANK];
    int source = gni_axis(g, "gn_move_axis", from, a->shape.rank);
    int target = source < 0 ? -1 : gni_axis(g, "gn_move_axis", to, a->shape.rank);
    if (target < 0) return gni_end(g, NULL);
    for (int i = 0, next = 0; i < a->shape.rank; i++) {
        if (next == source) next++;
        order[i] = i == target ? source : next++;
    }
    return gni_end(g, gni_permuted(g, "gn_move_axis", a, order));
}

// ---- broadcasting, slices

GPUNUM_API gn_array *gn_broadcast_to(gn_array *a, gn_shape s) {
    gn_context *g = gni_begin("gn_broadcast_to", &a, 1);
    if (g == NULL) return NULL;
    if (!gni_shape_ok(g, "gn_broadcast_to", a->dtype, &s) || !gni_materialize(g, a))
        return gni_end(g, NULL);
    int64_t stride[GN_MAX_RANK] = {0, 0, 0, 0, 0, 0, 0, 0};
    int lead = s.rank - a->shape.rank;
    bool fits = lead >= 0;
    for (int i = 0; fits && i < a->shape.rank; i++) {
        fits = a->shape.dim[i] == 1 || a->shape.dim[i] == s.dim[lead + i];
        if (a->shape.dim[i] != 1) stride[lead + i] = a->stride[i];
    }
    if (!fits) {
        char from[200], to[200];
        gni_fail(g, GN_ERROR_SHAPE, "gn_broadcast_to: shape %s does not broadcast to %s",
                 gni_shape_text(from, sizeof from, &a->shape), gni_shape_text(to, sizeof to, &s));
        return gni_end(g, NULL);
    }
    gn_array *y = gni_array_view(g, "gn_broadcast_to", a, &s, stride, a->offset);
    gni_node *n = gni_record(g, y, "gn_broadcast_to", gni_back_broadcast, &a, 1);
    if (n != NULL) n->shape = a->shape;
    return gni_end(g, y);
}

// Python's rules for start:stop:step over n elements. Returns how many are taken; start and step then say
// where. step is not 0.
static int64_t gni_slice_range(int64_t n, int64_t *start, int64_t stop, int64_t *step) {
    if (*step == GN_NONE) *step = 1;
    bool up = *step > 0;
    int64_t low = up ? 0 : -1, high = up ? n : n - 1; // what start and stop are clamped to
    int64_t from = *start, to = stop;
    if (from == GN_NONE)
        from = up ? low : high;
    else
        from = GNI_MIN(GNI_MAX(from < 0 ? from + n : from, low), high);
    if (to == GN_NONE)
        to = up ? high : low;
    else
        to = GNI_MIN(GNI_MAX(to < 0 ? to + n : to, low), high);
    int64_t count = 0;
    if (up && from < to) count = (to - from - 1) / *step + 1;
    if (!up && to < from) count = (from - to - 1) / -*step + 1;
    if (count <= 1) *step = 1; // a huge step must not overflow a stride
    *start = count == 0 ? 0 : from;
    return count;
}

static gn_array *gni_sliced(gn_context *g, const char *fn, gn_array *a, int axis, int64_t start,
                            int64_t stop, int64_t step) {
    if (!gni_materialize(g, a)) return NULL;
    gn_shape s = a->shape;
    int64_t stride[GN_MAX_RANK];
    memcpy(stride, a->stride, sizeof stride);
    s.dim[axis] = gni_slice_range(s.dim[axis], &start, stop, &step);
    stride[axis] *= step;
    gn_array *y = gni_array_view(g, fn, a, &s, stride, a->offset + start * a->stride[axis]);
    gni_node *n = gni_record(g, y, fn, gni_back_slice, &a, 1);
    gni_note(n, axis, start, step);
    if (n != NULL) n->shape = a->shape;
    return y;
}

GPUNUM_API gn_array *gn_slice(gn_array *a, int axis, int64_t start, int64_t stop, int64_t step) {
    gn_context *g = gni_begin("gn_slice", &a, 1);
    if (g == NULL) return NULL;
    int at = gni_axis(g, "gn_slice", axis, a->shape.rank);
    if (at >= 0 && step == 0) gni_fail(g, GN_ERROR_ARGUMENT, "gn_slice: the step is 0");
    return gni_end(g, at < 0 || step == 0 ? NULL
                                          : gni_sliced(g, "gn_slice", a, at, start, stop, step));
}

GPUNUM_API gn_array *gn_flip(gn_array *a, gn_axes axes) {
    gn_context *g = gni_begin("gn_flip", &a, 1);
    if (g == NULL) return NULL;
    uint32_t set = gni_axes(g, "gn_flip", axes, a->shape.rank, NULL);
    if (set == ~0u || !gni_materialize(g, a)) return gni_end(g, NULL);
    int64_t stride[GN_MAX_RANK], offset = a->offset;
    for (int i = 0; i < a->shape.rank; i++) {
        stride[i] = a->stride[i];
        if (!((set >> i) & 1u) || gni_elements(&a->shape) == 0) continue;
        offset += (a->shape.dim[i] - 1) * stride[i];
        stride[i] = -stride[i];
    }
    gn_array *y = gni_array_view(g, "gn_flip", a, &a->shape, stride, offset);
    gni_note(gni_record(g, y, "gn_flip", gni_back_flip, &a, 1), (int64_t)set, 0, 0);
    return gni_end(g, y);
}

// ---- indexing by text

typedef enum gni_item_kind {
    GNI_ITEM_INT,
    GNI_ITEM_SLICE,
    GNI_ITEM_ELLIPSIS,
    GNI_ITEM_NEW
} gni_item_kind;
typedef struct gni_item {
    gni_item_kind kind;
    int64_t start, stop, step; // an integer is in `start`
} gni_item;

enum { GNI_MAX_ITEMS = 2 * GN_MAX_RANK + 1 };

typedef struct gni_subscript {
    const char *text, *at;
    const char *wrong;  // NULL, or what is wrong at `at`
    int count, indexed; // items, and how many of them stand for an axis of the source
    bool ellipsis;
    gni_item item[GNI_MAX_ITEMS];
} gni_subscript;

static void gni_skip_blanks(gni_subscript *p) {
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r') p->at++;
}

static bool gni_accept(gni_subscript *p, const char *word) {
    size_t n = strlen(word);
    gni_skip_blanks(p);
    if (strncmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

// An optional integer; beyond 63 bits it saturates, like any index that is out of range.
static bool gni_accept_int(gni_subscript *p, int64_t *value) {
    gni_skip_blanks(p);
    const char *start = p->at, *digit = start;
    bool negative = *digit == '-';
    if (*digit == '-' || *digit == '+') digit++;
    if (*digit < '0' || *digit > '9') return false;
    int64_t v = 0;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        v = v > (INT64_MAX - 9) / 10 ? INT64_MAX : v * 10 + (*digit - '0');
    *value = negative ? -v : v;
    p->at = digit;
    return true;
}

static void gni_parse_item(gni_subscript *p, gni_item *item) {
    item->kind = GNI_ITEM_SLICE;
    item->start = item->stop = item->step = GN_NONE;
    if (gni_accept(p, "...")) {
        item->kind = GNI_ITEM_ELLIPSIS;
        if (p->ellipsis) p->wrong = "a second ellipsis";
        p->ellipsis = true;
        return;
    }
    if (gni_accept(p, "None") || gni_accept(p, "newaxis")) {
        item->kind = GNI_ITEM_NEW;
        return;
    }
    p->indexed++;
    bool number = gni_accept_int(p, &item->start);
    if (!gni_accept(p, ":")) {
        item->kind = GNI_ITEM_INT;
        if (!number) p->wrong = "an integer, a slice, '...' or None was expected";
        return;
    }
    gni_accept_int(p, &item->stop);
    if (!gni_accept(p, ":")) return;
    gni_skip_blanks(p);
    const char *before = p->at;
    if (!gni_accept_int(p, &item->step) || item->step != 0) return;
    p->at = before;
    p->wrong = "the step is 0";
}

static void gni_parse_subscript(gni_subscript *p) {
    gni_skip_blanks(p);
    while (*p->at != 0 && p->wrong == NULL) {
        if (p->count == GNI_MAX_ITEMS) {
            p->wrong = "too many items";
            return;
        }
        gni_parse_item(p, &p->item[p->count++]);
        gni_skip_blanks(p);
        if (p->wrong != NULL || *p->at == 0) return;
        if (!gni_accept(p, ",")) p->wrong = "',' was expected";
        gni_skip_blanks(p);
    }
}

// One place of an axis, which stays with size 1.
static gn_array *gni_one_place(gn_context *g, const char *fn, gn_array *a, int axis, int64_t i) {
    const int64_t n = a->shape.dim[axis];
    if (i < -n || i >= n) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: index %lld is out of bounds for axis %d with size %lld", fn, (long long)i, axis,
                 (long long)n);
        return NULL;
    }
    if (i < 0) i += n;
    return gni_sliced(g, fn, a, axis, i, i + 1, 1);
}

// Takes one integer or slice out of the array; the axis stays, with size 1 for an integer.
static gn_array *gni_index_axis(gn_context *g, gn_array *a, int axis, const gni_item *item) {
    const int64_t i = item->start;
    if (item->kind != GNI_ITEM_SLICE) return gni_one_place(g, "gn_index", a, axis, i);
    if (i == GN_NONE && item->stop == GN_NONE && (item->step == GN_NONE || item->step == 1)) {
        gni_ref(a);
        return a;
    }
    return gni_sliced(g, "gn_index", a, axis, i, item->stop, item->step);
}

static gn_array *gni_indexed(gn_context *g, gn_array *a, const gni_subscript *p) {
    gn_shape s = gn_shape_from(0, NULL);
    int axis = 0,
        kept = a->shape.rank - p->indexed; // axes that the ellipsis, or the end, stands for
    gn_array *y = a;
    gni_ref(y);
    for (int i = 0; i <= p->count; i++) {
        bool whole = i == p->count ? !p->ellipsis : p->item[i].kind == GNI_ITEM_ELLIPSIS;
        for (int k = 0; whole && k < kept; k++, axis++)
            if (s.rank++ < GN_MAX_RANK) s.dim[s.rank - 1] = a->shape.dim[axis];
        if (i == p->count || whole) continue;
        const gni_item *item = &p->item[i];
        if (item->kind == GNI_ITEM_NEW) {
            if (s.rank++ < GN_MAX_RANK) s.dim[s.rank - 1] = 1;
            continue;
        }
        gn_array *next = gni_index_axis(g, y, axis, item);
        gni_unref(g, y);
        y = next;
        if (y == NULL) return NULL;
        if (item->kind == GNI_ITEM_SLICE && s.rank++ < GN_MAX_RANK)
            s.dim[s.rank - 1] = y->shape.dim[axis];
        axis++;
    }
    if (y != a && gni_same_shape(&y->shape, &s)) return y;
    gn_array *z = gni_reshaped(g, "gn_index", y, s);
    gni_unref(g, y);
    return z;
}

GPUNUM_API gn_array *gn_index(gn_array *a, const char *subscript) {
    gn_context *g = gni_begin("gn_index", &a, 1);
    if (g == NULL) return NULL;
    GNI_ZEROED(gni_subscript, p);
    p.text = p.at = subscript != NULL ? subscript : "";
    gni_parse_subscript(&p);
    if (p.wrong != NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_index: %s at character %d of \"%.200s\"", p.wrong,
                 (int)(p.at - p.text) + 1, p.text);
        return gni_end(g, NULL);
    }
    if (p.indexed > a->shape.rank) {
        gni_fail(g, GN_ERROR_ARGUMENT,
                 "gn_index: \"%.200s\" has %d indices for an array of rank %d", p.text, p.indexed,
                 a->shape.rank);
        return gni_end(g, NULL);
    }
    return gni_end(g, gni_indexed(g, a, &p));
}

GPUNUM_API gn_array *gn_at(gn_array *a, int64_t i) {
    gn_context *g = gni_begin("gn_at", &a, 1);
    if (g == NULL) return NULL;
    gn_array *one = gni_axis(g, "gn_at", 0, a->shape.rank) == 0 ? gni_one_place(g, "gn_at", a, 0, i) : NULL, *y = NULL;
    if (one != NULL) y = gni_reshaped(g, "gn_at", one, gn_shape_from(one->shape.rank - 1, one->shape.dim + 1));
    gni_unref(g, one);
    return gni_end(g, y);
}

// ---- joins

// The dtype that all of them promote to; GN_DTYPE_COUNT after gni_fail.
static gn_dtype gni_join_dtype(gn_context *g, const char *fn, gn_array *const *arrays, int count) {
    gn_dtype t = arrays[0]->dtype;
    for (int i = 1; i < count; i++) {
        gn_dtype both = gn_promote(t, arrays[i]->dtype);
        if (both == GN_DTYPE_COUNT) {
            gni_fail(g, GN_ERROR_DTYPE, "%s: %s and %s have no common dtype", fn, gn_dtype_name(t),
                     gn_dtype_name(arrays[i]->dtype));
            return both;
        }
        t = both;
    }
    return t;
}

// Copies array i to place[i] (elements) of y and records the join. Arrays of another dtype are cast first
// when gradients flow, since the cast's own record turns the gradient back.
static bool gni_join(gn_context *g, const char *fn, gn_array *y, gn_array *const *arrays, int count,
                     const int64_t *place, const int64_t *stride, gni_backward_fn backward,
                     int axis) {
    for (int i = 0; i < count; i++) {
        if (gni_elements(&arrays[i]->shape) == 0) continue;
        if (!gni_copy_into(g, y->buf, y->dtype, place[i], stride, arrays[i])) return false;
    }
    if (!gni_tracks(g, arrays, count)) return true;
    gn_array **in = (gn_array **)gni_alloc(g, sizeof(gn_array *) * (size_t)count);
    if (in == NULL) return gni_fail_memory(g, fn, sizeof(gn_array *) * (size_t)count);
    bool ok = true;
    for (int i = 0; i < count && ok; i++) {
        bool same = arrays[i]->dtype == y->dtype || !gni_tracks(g, &arrays[i], 1);
        in[i] = same ? arrays[i] : gn_cast(arrays[i], y->dtype);
        ok = in[i] != NULL;
    }
    gni_node *n = ok ? gni_record(g, y, fn, backward, in, count) : NULL;
    if (n != NULL) n->param[0] = axis;
    gni_free(g, in);
    return n != NULL;
}

// Whether array i fits to array 0 on every axis but one (or all with axis -1).
static bool gni_join_fits(gn_context *g, const char *fn, gn_array *const *arrays, int i, int axis) {
    const gn_shape *a = &arrays[0]->shape, *b = &arrays[i]->shape;
    bool fits = a->rank == b->rank;
    for (int k = 0; fits && k < a->rank; k++) fits = k == axis || a->dim[k] == b->dim[k];
    if (fits) return true;
    char ta[200], tb[200];
    gni_fail(g, GN_ERROR_SHAPE,
             axis < 0 ? "%s: array 0 has shape %s, array %d has %s"
                      : "%s: array 0 has shape %s, array %d has %s: only axis %d may differ",
             fn, gni_shape_text(ta, sizeof ta, a), i, gni_shape_text(tb, sizeof tb, b), axis);
    return false;
}

static gn_array *gni_concatenated(gn_context *g, gn_dtype t, gn_array *const *arrays, int count, int axis,
                                  int64_t *place) {
    const char *fn = "gn_concat";
    gn_shape s = arrays[0]->shape;
    if (s.rank == 0) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: arrays of rank 0 have no axis to join: use gn_stack", fn);
        return NULL;
    }
    int at = gni_axis(g, fn, axis, s.rank);
    if (at < 0) return NULL;
    s.dim[at] = 0;
    for (int i = 0; i < count; i++) {
        if (!gni_join_fits(g, fn, arrays, i, at)) return NULL;
        place[i] = s.dim[at];
        if (arrays[i]->shape.dim[at] > INT64_MAX - s.dim[at]) { // of arrays without elements
            gni_fail(g, GN_ERROR_SHAPE, "%s: axis %d would be longer than 2^63 - 1", fn, at);
            return NULL;
        }
        s.dim[at] += arrays[i]->shape.dim[at];
    }
    gn_array *y = gni_array_empty(g, fn, t, &s);
    if (y == NULL) return NULL;
    for (int i = 0; i < count; i++) place[i] *= y->stride[at];
    if (gni_join(g, fn, y, arrays, count, place, y->stride, gni_back_concat, at)) return y;
    gni_unref(g, y);
    return NULL;
}

static gn_array *gni_stacked(gn_context *g, gn_dtype t, gn_array *const *arrays, int count, int axis,
                             int64_t *place) {
    const char *fn = "gn_stack";
    gn_shape s = arrays[0]->shape;
    int at = gni_axis(g, fn, axis, s.rank + 1);
    if (at < 0) return NULL;
    for (int i = 1; i < count; i++)
        if (!gni_join_fits(g, fn, arrays, i, -1)) return NULL;
    if (!gni_rank_ok(g, fn, s.rank + 1)) return NULL;
    for (int i = s.rank++; i > at; i--) s.dim[i] = s.dim[i - 1];
    s.dim[at] = count;
    gn_array *y = gni_array_empty(g, fn, t, &s);
    if (y == NULL) return NULL;
    int64_t stride[GN_MAX_RANK]; // of one array's place
    for (int i = 0; i < s.rank - 1; i++) stride[i] = y->stride[i < at ? i : i + 1];
    for (int i = 0; i < count; i++) place[i] = i * y->stride[at];
    if (gni_join(g, fn, y, arrays, count, place, stride, gni_back_stack, at)) return y;
    gni_unref(g, y);
    return NULL;
}

static gn_array *gni_public_join(const char *fn, gn_array *const *arrays, int count, int axis,
                                 bool stack) {
    gn_context *g = count > 0 && arrays != NULL ? gni_begin(fn, arrays, count) : NULL;
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    const size_t bytes = (sizeof(int64_t) + sizeof(gn_array *)) * (size_t)count;
    int64_t *place = (int64_t *)gni_alloc(g, bytes);
    if (place == NULL) {
        gni_fail_memory(g, fn, bytes);
        return gni_end(g, NULL);
    }
    gn_scope_begin(g); // for casts
    gn_array **parts = (gn_array **)(void *)(place + count);
    const gn_dtype t = gni_join_dtype(g, fn, arrays, count);
    bool ok = t != GN_DTYPE_COUNT;
    for (int i = 0; i < count && ok; i++) { // programs have no complex registers
        parts[i] = gni_is_complex(t) && arrays[i]->dtype != t ? gn_cast(arrays[i], t) : arrays[i];
        ok = parts[i] != NULL;
    }
    if (ok) y = stack ? gni_stacked(g, t, parts, count, axis, place) : gni_concatenated(g, t, parts, count, axis, place);
    gn_scope_end(g);
    gni_free(g, place);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_concat(gn_array *const *arrays, int count, int axis) {
    return gni_public_join("gn_concat", arrays, count, axis, false);
}

GPUNUM_API gn_array *gn_stack(gn_array *const *arrays, int count, int axis) {
    return gni_public_join("gn_stack", arrays, count, axis, true);
}

// ---- gathers

static bool gni_need_integers(gn_context *g, const char *fn, const gn_array *indices) {
    if (gni_is_integer(indices->dtype)) return true;
    return gni_fail(g, GN_ERROR_DTYPE, "%s: indices must be integers, not %s", fn, gn_dtype_name(indices->dtype));
}

// uint64 numbers as int64: from 2^63 on the largest there is, which no axis has. The scope's.
static gn_array *gni_signed_indices(gn_context *g, gn_array *a) {
    return a->dtype != GN_U64 ? a
                              : gn_cast(gn_minimum(a, gn_full_int(g, GN_U64, gn_shape_from(0, NULL), INT64_MAX)), GN_I64);
}

// The indices in C order as int32 or int64; one reference.
static gn_array *gni_take_indices(gn_context *g, gn_array *indices) {
    gn_dtype t = indices->dtype;
    if (t == GN_I32 || t == GN_I64) return gni_contiguous(g, indices);
    if (t == GN_U64) {
        gn_scope_begin(g);
        indices = gni_signed_indices(g, indices);
        indices = indices != NULL ? gni_contiguous(g, indices) : NULL;
        gn_scope_end(g);
        return indices;
    }
    t = t == GN_U32 ? GN_I64 : GN_I32;
    gn_array *y = gni_array_empty(g, "gn_take", t, &indices->shape);
    if (y != NULL && gni_copy_into(g, y->buf, t, 0, y->stride, indices)) return y;
    gni_unref(g, y);
    return NULL;
}

static void gni_take_operand(const gn_array *a, gni_operand *o) {
    memset(o, 0, sizeof *o);
    o->buf = a->buf;
    o->dtype = a->dtype;
    o->offset = a->offset;
}

static GNI_MAYBE_UNUSED void gni_take_strided(const gn_array *a, gni_operand *o) {
    gni_take_operand(a, o);
    for (int i = 0; i < a->shape.rank; i++) o->stride[i] = a->stride[i];
}

// Indices that the CPU has are checked, unless they are never looked at, or by a job that is the CPU's for sure.
static bool gni_indices_in_range(gn_context *g, gni_places *at, const gn_array *indices) {
    gni_operand o;
    at->checked = at->outer == 0 || (at->along && at->inner == 0);
    if (at->checked || (indices->buf->where == GNI_ON_GPU && (at->inner > 0 || g->host_recording))) return true;
    if (g->gpu == NULL && at->inner > 0) return true;
    if (!gni_buffer_need(g, indices->buf, GNI_ON_CPU)) return false;
    gni_take_operand(indices, &o);
    at->checked = gni_indices_ok(g, at, &o);
    return at->checked;
}

// The places in the axis of an array of that shape. With `along` the indices have its shape but for the axis.
static bool gni_places_of(gn_context *g, const char *fn, const gn_shape *s, const gn_array *indices, int axis, bool along,
                          gni_places *at) {
    memset(at, 0, sizeof *at);
    at->fn = fn;
    at->axis = axis;
    at->along = along;
    at->extent = s->dim[axis];
    at->count = along ? indices->shape.dim[axis] : gni_elements(&indices->shape);
    at->outer = gni_extent_product(s->dim, axis);
    at->inner = gni_extent_product(s->dim + axis + 1, s->rank - axis - 1);
    if (at->inner < 0) at->inner = 0; // beside an empty axis
    if (at->outer < 0) at->outer = 0;
    if (at->extent == 0 && at->outer > 0 && at->inner > 0 && at->count > 0)
        return gni_fail(g, GN_ERROR_ARGUMENT, "%s: cannot take from axis %d with size 0", fn, axis);
    return gni_indices_in_range(g, at, indices);
}

// `source` and `indices` are in C order.
static gn_array *gni_taken(gn_context *g, const char *fn, gn_array *source, gn_array *indices, int axis, bool along) {
    gn_shape s = gn_shape_from(0, NULL);
    gni_take job;
    for (int i = 0; i < axis; i++) s.dim[s.rank++] = source->shape.dim[i];
    if (along)
        s.dim[s.rank++] = indices->shape.dim[axis];
    else
        for (int i = 0; i < indices->shape.rank; i++) s.dim[s.rank++] = indices->shape.dim[i];
    for (int i = axis + 1; i < source->shape.rank; i++) s.dim[s.rank++] = source->shape.dim[i];
    if (!gni_shape_ok(g, fn, source->dtype, &s)) return NULL;
    if (!gni_places_of(g, fn, &source->shape, indices, axis, along, &job.at)) return NULL;
    gn_array *y = gni_array_empty(g, fn, source->dtype, &s);
    if (y == NULL || gni_elements(&s) == 0) return y;
    gni_take_operand(source, &job.in);
    gni_take_operand(indices, &job.index);
    gni_take_operand(y, &job.out);
    if (gni_run(g, &gni_kind_take, &job, y)) return y;
    gni_unref(g, y);
    return NULL;
}

// The same of any, recorded.
static gn_array *gni_take_any(gn_context *g, const char *fn, gn_array *a, gn_array *indices, int axis, bool along) {
    gn_array *source = a != NULL && indices != NULL ? gni_contiguous(g, a) : NULL, *in[2], *y = NULL;
    in[0] = a;
    in[1] = source != NULL ? gni_take_indices(g, indices) : NULL;
    if (in[1] != NULL) y = gni_taken(g, fn, source, in[1], axis, along);
    gni_note(gni_record(g, y, fn, gni_back_take, in, 2), axis, along, 0);
    gni_unref(g, source);
    gni_unref(g, in[1]);
    return y;
}

GPUNUM_API gn_array *gn_take(gn_array *a, gn_array *indices, int axis) {
    gn_array *in[2] = {a, indices};
    gn_context *g = gni_begin("gn_take", in, 2);
    if (g == NULL) return NULL;
    int at = gni_axis(g, "gn_take", axis, a->shape.rank);
    if (at < 0 || !gni_need_integers(g, "gn_take", indices) ||
        !gni_rank_ok(g, "gn_take", a->shape.rank - 1 + indices->shape.rank))
        return gni_end(g, NULL);
    return gni_end(g, gni_take_any(g, "gn_take", a, indices, at, false));
}

GPUNUM_API gn_array *gn_one_hot(gn_array *indices, gn_dtype t, int64_t classes) {
    gn_context *g = gni_begin("gn_one_hot", &indices, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    gn_scope_begin(g);
    if (classes < 1) { // 0: likely the dtype in the place of the number
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_one_hot: %lld classes", (long long)classes);
    } else if (gni_rank_ok(g, "gn_one_hot", indices->shape.rank + 1) && gni_need_integers(g, "gn_one_hot", indices)) {
        gn_shape s = indices->shape;
        s.dim[s.rank++] = classes;
        if (!gni_shape_ok(g, "gn_one_hot", t, &s)) return gni_end_scope(g, NULL);
        if (gni_elements(&s) == 0) return gni_end_scope(g, gn_zeros(g, t, s));
        gn_array *all =
            gn_arange(g, classes > INT32_MAX ? GN_I64 : GN_I32, 0.0, (double)classes, 1.0);
        y = gn_cast(gn_eq(gn_expand_dims(indices, -1), all), t);
    }
    return gni_end_scope(g, y);
}
