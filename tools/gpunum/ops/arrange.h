// >>arrange
// Arrays cut up, repeated, padded and shifted: compositions of views, joins and gathers, which bring their derivatives.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/macros.h"
#include "../ops/create.h"
#include "../ops/views_ops.h"
#endif

static gn_shape gni_shape_of_rank(int rank) {
    gn_shape s = gn_shape_from(0, NULL);
    s.rank = rank;
    return s;
}

// Without elements, of that shape, and what autograd knows of `a`.
static gn_array *gni_nothing(gn_array *a, gn_shape s) {
    return gn_reshape(gni_elements(&a->shape) == 0 ? a : gn_slice(gn_ravel(a), 0, 0, 0, 1), s);
}

// The product of extents, or so large a number that no array has it.
static int64_t gni_extent_times(int64_t n, int64_t times) {
    return n > 0 && times > INT64_MAX / n ? INT64_MAX : n * times;
}

// ---- shifts

// Element `at` of the axis becomes the first one.
static gn_array *gni_rolled(gn_array *a, int axis, int64_t at) {
    gn_array *part[2] = {gn_slice(a, axis, at, GN_NONE, 1), gn_slice(a, axis, 0, at, 1)};
    return gn_concat(part, 2, axis);
}

// Where the element stands that a shift brings to the front of n.
static int64_t gni_roll_start(int64_t n, int64_t shift) { return shift % n > 0 ? n - shift % n : -(shift % n); }

GPUNUM_API gn_array *gn_roll(gn_array *a, int64_t shift, gn_axes axes) {
    gn_context *g = gni_begin_scope("gn_roll", &a, 1);
    if (g == NULL) return NULL;
    const uint32_t set = gni_axes(g, "gn_roll", axes, a->shape.rank, NULL);
    const int64_t n = gni_elements(&a->shape);
    gn_array *y = a;
    if (axes == GN_ALL && n > 0) y = gn_reshape(gni_rolled(gn_ravel(a), 0, gni_roll_start(n, shift)), a->shape);
    for (int i = 0; i < a->shape.rank && n > 0 && y != NULL && axes != GN_ALL && set != ~0u; i++)
        if (set >> i & 1u) y = gni_rolled(y, i, gni_roll_start(a->shape.dim[i], shift));
    return gni_end_scope(g, set == ~0u ? NULL : y == a ? gn_copy(a) : y);
}

GPUNUM_API gn_array *gn_rot90(gn_array *a, int k, int axis1, int axis2) {
    gn_context *g = gni_begin_scope("gn_rot90", &a, 1);
    if (g == NULL) return NULL;
    const int from = gni_axis(g, "gn_rot90", axis1, a->shape.rank);
    const int to = from < 0 ? -1 : gni_axis(g, "gn_rot90", axis2, a->shape.rank);
    gn_array *y = NULL;
    if (to >= 0 && from == to) gni_fail(g, GN_ERROR_ARGUMENT, "gn_rot90: axis %d twice", axis1);
    else if (to >= 0) y = k & 1 ? gn_swap_axes(a, from, to) : gn_reshape(a, a->shape);
    if (y != NULL && (k & 3)) y = gn_flip(y, (k & 3) == 2 ? GN_AXES(from, to) : (k & 3) == 1 ? from : to);
    return gni_end_scope(g, y);
}

// ---- repetitions

// A repetition of a single element is a view until here.
static gn_array *gni_unrepeated(gn_array *y) { return y != NULL && gni_elements_overlap(y) ? gn_copy(y) : y; }

static gn_array *gni_tiled(gn_array *a, gn_shape repeats, const gn_shape *result) {
    // A repeated axis becomes two, the first of them repeats; others are joined to their left neighbours.
    gn_shape s, once;
    int last = 0, lead = repeats.rank - (a != NULL ? a->shape.rank : 0), n = 0;
    int64_t from[2 * GN_MAX_RANK + 1], to[2 * GN_MAX_RANK + 1];
    if (a == NULL) return NULL;
    for (int i = 0; i < repeats.rank; i++) {
        const int64_t extent = i < lead ? 1 : a->shape.dim[i - lead];
        if (repeats.dim[i] != 1) {
            last = i;
            from[n] = 1;
            to[n++] = repeats.dim[i];
        } else if (n > 0) {
            to[n - 1] = from[n - 1] *= extent;
            continue;
        }
        from[n] = to[n] = extent;
        n++;
    }
    if (n <= GN_MAX_RANK)
        return gn_reshape(gn_broadcast_to(gn_reshape(a, gn_shape_from(n, from)), gn_shape_from(n, to)), *result);
    // Too many axes at once: the innermost one goes first.
    once = s = repeats;
    for (int i = 0; i < repeats.rank; i++) {
        if (i != last) once.dim[i] = 1;
        s.dim[i] = once.dim[i] * (i < lead ? 1 : a->shape.dim[i - lead]);
    }
    a = gni_tiled(a, once, &s);
    repeats.dim[last] = 1;
    return gni_tiled(a, repeats, result);
}

GPUNUM_API gn_array *gn_tile(gn_array *a, gn_shape repeats) {
    gn_context *g = gni_begin_scope("gn_tile", &a, 1);
    if (g == NULL) return NULL;
    bool bad = repeats.rank < 0 || repeats.rank > GN_MAX_RANK;
    for (int i = 0; !bad && i < repeats.rank; i++) bad = repeats.dim[i] < 0;
    if (bad && !gni_shape_ok(g, "gn_tile", a->dtype, &repeats)) return gni_end_scope(g, NULL);
    const int lead = GNI_MAX(a->shape.rank - repeats.rank, 0), rank = lead + repeats.rank;
    gn_shape all = gni_shape_of_rank(GNI_MIN(rank, GN_MAX_RANK)), s = all;
    bool once = true;
    for (int i = 0; i < rank; i++) {
        all.dim[i] = i < lead ? 1 : repeats.dim[i - lead];
        s.dim[i] = gni_extent_times(all.dim[i], i < rank - a->shape.rank ? 1 : a->shape.dim[i - rank + a->shape.rank]);
        once = once && all.dim[i] == 1;
    }
    if (!gni_shape_ok(g, "gn_tile", a->dtype, &s)) return gni_end_scope(g, NULL);
    if (gni_elements(&s) == 0) return gni_end_scope(g, gni_nothing(a, s));
    return gni_end_scope(g, once ? gn_reshape(gn_copy(a), s) : gni_unrepeated(gni_tiled(a, all, &s)));
}

GPUNUM_API gn_array *gn_repeat(gn_array *a, int64_t repeats, gn_axes axis) {
    gn_context *g = gni_begin_scope("gn_repeat", &a, 1);
    if (g == NULL) return NULL;
    gn_array *x = axis == GN_ALL ? gn_ravel(a) : a;
    const int at = x == NULL ? -1 : axis == GN_ALL ? 0 : gni_axis(g, "gn_repeat", axis, a->shape.rank);
    if (repeats < 0) gni_fail(g, GN_ERROR_ARGUMENT, "gn_repeat: %lld repetitions", (long long)repeats);
    if (at < 0 || repeats < 0) return gni_end_scope(g, NULL);
    gn_shape s = x->shape;
    const int64_t n = s.dim[at];
    s.dim[at] = gni_extent_times(n, repeats);
    if (!gni_shape_ok(g, "gn_repeat", a->dtype, &s)) return gni_end_scope(g, NULL);
    if (gni_elements(&s) == 0) return gni_end_scope(g, gni_nothing(x, s));
    if (repeats == 1) return gni_end_scope(g, gn_copy(x));
    const int64_t inner = gni_extent_product(s.dim + at + 1, s.rank - at - 1), rows = gni_extent_product(s.dim, at) * n;
    gn_array *y = gn_broadcast_to(gn_reshape(x, GN_SHAPE(rows, 1, inner)), GN_SHAPE(rows, repeats, inner));
    return gni_end_scope(g, gni_unrepeated(gn_reshape(y, s)));
}

// ---- borders

static bool gni_back_pad(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    for (int i = 0; i < node->shape.rank; i++)
        gy = gn_slice(gy, i, node->param[i], node->param[i] + node->shape.dim[i], 1);
    gx[0] = gy;
    return true;
}

// The same of halves on a GPU where the last two axes alone grow: a copy into rows that begin anywhere would write each by
// itself. NULL: nothing was done, unless g->call_failed.
static gn_array *gni_pad_halves(gn_context *g, gn_array *a, const int64_t *before, const gn_shape *s, double value) {
    gni_pooling j;
    const int lead = s->rank - 2;
    const bool half = a->dtype == GN_F16 || a->dtype == GN_BF16, exact = fabs(value) <= 256.0 && floor(value) == value;
    if (g->gpu == NULL || lead < 0 || !half || !exact || gni_is_pending(a) || !gni_is_contiguous(a) ||
        gni_elements(&a->shape) < 1)
        return NULL;
    for (int i = 0; i < lead; i++)
        if (s->dim[i] != a->shape.dim[i]) return NULL;
    memset(&j, 0, sizeof j);
    j.step = GNI_POOL_FRAME;
    j.value = (float)value;
    j.n = gni_extent_product(s->dim, lead);
    for (int i = 0; i < 2; i++) {
        j.size[i] = j.stride[i] = j.dilation[i] = 1;
        j.from[i] = a->shape.dim[lead + i];
        j.to[i] = s->dim[lead + i];
        j.pad[i] = before[lead + i];
    }
    gn_array *y = gni_array_empty(g, "gn_pad", a->dtype, s);
    if (y == NULL) return NULL;
    gni_take_operand(a, &j.in);
    gni_take_operand(y, &j.out);
    if (gni_run_on_gpu(g, &gni_kind_pooling, &j, y)) return y;
    gni_unref(g, y);
    return NULL;
}

// `a` from before[i] on within an array of that shape that is full of `value`.
static gn_array *gni_pad_constant(gn_context *g, gn_array *a, const int64_t *before, const gn_shape *s, double value) {
    gn_array *y = gni_pad_halves(g, a, before, s, value);
    int64_t offset = 0;
    if (y == NULL && !g->call_failed) {
        y = gni_make_full(g, "gn_pad", a->dtype, s, value);
        if (y == NULL || !gni_materialize(g, y)) return y;
        for (int i = 0; i < s->rank; i++) offset += before[i] * y->stride[i];
        if (gni_elements(&a->shape) > 0 && !gni_copy_into(g, y->buf, y->dtype, offset, y->stride, a)) return y;
    }
    gni_node *node = gni_tracks(g, &a, 1) ? gni_record(g, y, "gn_pad", gni_back_pad, &a, 1) : NULL;
    if (node == NULL) return y;
    node->shape = a->shape;
    for (int i = 0; i < s->rank; i++) node->param[i] = before[i];
    return y;
}

// Which of n elements stands at place i, that may lie outside of them.
static int64_t gni_pad_source(gn_pad_mode mode, int64_t i, int64_t n) {
    if (mode == GN_PAD_EDGE) return GNI_MAX(0, GNI_MIN(i, n - 1));
    const int64_t edge = mode == GN_PAD_SYMMETRIC, period = mode == GN_PAD_WRAP ? n : GNI_MAX(1, 2 * (n - 1 + edge));
    const int64_t at = (i % period + period) % period;
    return at < n ? at : period - edge - at;
}

// Places first to first + count - 1 of an axis, that may lie outside of it.
static gn_array *gni_pad_part(gn_context *g, gn_array *a, int axis, gn_pad_mode mode, int64_t first, int64_t count) {
    void *data = NULL;
    const gn_dtype t = count < INT32_MAX ? GN_I32 : GN_I64;
    const gn_shape s = gn_shape_from(1, &count);
    gn_array *index = gni_array_filled(g, "gn_pad", t, &s, &data);
    for (int64_t i = 0; i < count && index != NULL; i++) {
        const int64_t from = gni_pad_source(mode, first + i, a->shape.dim[axis]);
        if (t == GN_I32)
            ((int32_t *)data)[i] = (int32_t)from;
        else
            ((int64_t *)data)[i] = from;
    }
    return gn_take(a, gni_adopt(g, index), axis);
}

static gn_array *gni_pad_axis(gn_context *g, gn_array *a, int axis, gn_pad_mode mode, int64_t before, int64_t count) {
    const int64_t n = a->shape.dim[axis], behind = count - n - before;
    enum { FEW = 4096 };
    gn_array *part[3];
    int parts = 0;
    if (n == 0) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_pad: axis %d is empty: around it there is only GN_PAD_CONSTANT", axis);
        return NULL;
    }
    if (g->gpu != NULL || before + behind > n || gni_elements(&a->shape) < FEW || !gni_is_contiguous(a))
        return gni_pad_part(g, a, axis, mode, -before, count); // one kernel, or few copies
    if (before > 0) part[parts++] = gni_pad_part(g, a, axis, mode, -before, before);
    part[parts++] = a;
    if (behind > 0) part[parts++] = gni_pad_part(g, a, axis, mode, n, behind);
    return gn_concat(part, parts, axis);
}

GPUNUM_API gn_array *gn_pad(gn_array *a, const int64_t *widths, int count, gn_pad_mode mode, double value) {
    gn_context *g = gni_begin_scope("gn_pad", &a, 1);
    if (g == NULL) return NULL;
    gn_shape s = a->shape;
    int64_t before[GN_MAX_RANK] = {0};
    const int rank = s.rank;
    if (count < 0 || (count != 1 && count != 2 && count != 2 * rank) || (widths == NULL && count > 0))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_pad: %d widths for rank %d: one, two, or two for each axis", count, rank);
    else if ((unsigned)mode > (unsigned)GN_PAD_WRAP)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_pad: %d is not a gn_pad_mode", (int)mode);
    for (int i = 0; i < rank && !g->call_failed; i++) {
        const int64_t *w = widths + (count > 2 ? 2 * i : 0), behind = w[count > 1];
        before[i] = w[0];
        if (w[0] < 0 || behind < 0)
            gni_fail(g, GN_ERROR_ARGUMENT, "gn_pad: width %lld is negative", (long long)GNI_MIN(w[0], behind));
        else
            s.dim[i] = w[0] > INT64_MAX - behind || s.dim[i] > INT64_MAX - w[0] - behind ? INT64_MAX
                                                                                         : s.dim[i] + w[0] + behind;
    }
    if (g->call_failed || !gni_shape_ok(g, "gn_pad", a->dtype, &s)) return gni_end_scope(g, NULL);
    if (mode == GN_PAD_CONSTANT) return gni_end_scope(g, gni_adopt(g, gni_pad_constant(g, a, before, &s, value)));
    gn_array *y = a;
    for (int i = 0; i < rank && y != NULL; i++)
        if (s.dim[i] != a->shape.dim[i]) y = gni_pad_axis(g, y, i, mode, before[i], s.dim[i]);
    return gni_end_scope(g, y == a ? gn_copy(a) : y);
}

// ---- parts, as views

// Ends a call that made several arrays: all of them are the caller's, or none.
static gn_status gni_end_several(gn_context *g, gn_array **y, int count) {
    for (int i = 0; i < count && g->call_failed; i++) {
        if (y[i] != NULL) gni_user_release(g, y[i]);
        y[i] = NULL;
    }
    return gni_end_status(g);
}

// `count` parts along an axis, the first of them longer by one where they cannot be alike; that axis goes with `drop`.
static void gni_cut(gn_context *g, const char *fn, gn_array *a, int axis, int count, bool drop, gn_array **parts) {
    const int64_t n = a->shape.dim[axis];
    for (int64_t i = 0, from = 0; i < count && !g->call_failed; i++) {
        const int64_t to = from + n / count + (i < n % count);
        gn_array *y = gni_sliced(g, fn, a, axis, from, to, 1);
        if (y != NULL && drop) {
            gn_shape s = y->shape;
            for (int k = axis; k < s.rank - 1; k++) s.dim[k] = s.dim[k + 1];
            s.rank--;
            gn_array *z = gni_reshaped(g, fn, y, s);
            gni_unref(g, y);
            y = z;
        }
        parts[i] = gni_adopt(g, y);
        from = to;
    }
}

static gn_status gni_split(const char *fn, gn_array *a, int sections, int axis, bool even, gn_array **parts) {
    char text[200];
    for (int i = 0; i < sections && parts != NULL; i++) parts[i] = NULL;
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return gni_null_status(a);
    const int at = gni_axis(g, fn, axis, a->shape.rank);
    if (sections < 1 || parts == NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %d parts%s", fn, sections, parts == NULL ? ", and no room for them" : "");
    else if (at >= 0 && even && a->shape.dim[at] % sections != 0)
        gni_fail(g, GN_ERROR_SHAPE, "%s: axis %d of %s cannot be cut into %d equal parts", fn, at,
                 gni_shape_text(text, sizeof text, &a->shape), sections);
    else if (at >= 0)
        gni_cut(g, fn, a, at, sections, false, parts);
    return gni_end_several(g, parts, parts != NULL ? sections : 0);
}

GPUNUM_API gn_status gn_split(gn_array *a, int sections, int axis, gn_array **parts) {
    return gni_split("gn_split", a, sections, axis, true, parts);
}
GPUNUM_API gn_status gn_array_split(gn_array *a, int sections, int axis, gn_array **parts) {
    return gni_split("gn_array_split", a, sections, axis, false, parts);
}

GPUNUM_API gn_status gn_split_at(gn_array *a, const int64_t *places, int count, int axis, gn_array **parts) {
    for (int i = 0; i <= count && parts != NULL; i++) parts[i] = NULL;
    gn_context *g = gni_begin("gn_split_at", &a, 1);
    if (g == NULL) return gni_null_status(a);
    const int at = gni_axis(g, "gn_split_at", axis, a->shape.rank);
    if (count < 0 || parts == NULL || (places == NULL && count > 0))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_split_at: %d places%s", count,
                 parts == NULL ? ", and no room for the parts" : "");
    for (int i = 0; i <= count && !g->call_failed; i++)
        parts[i] = gni_adopt(
            g, gni_sliced(g, "gn_split_at", a, at, i > 0 ? places[i - 1] : GN_NONE, i < count ? places[i] : GN_NONE, 1));
    return gni_end_several(g, parts, parts != NULL ? count + 1 : 0);
}

GPUNUM_API gn_status gn_unstack(gn_array *a, int axis, gn_array **parts, int count) {
    char text[200];
    for (int i = 0; i < count && parts != NULL; i++) parts[i] = NULL;
    gn_context *g = gni_begin("gn_unstack", &a, 1);
    if (g == NULL) return gni_null_status(a);
    const int at = gni_axis(g, "gn_unstack", axis, a->shape.rank);
    if (at >= 0 && a->shape.dim[at] != count)
        gni_fail(g, GN_ERROR_SHAPE, "gn_unstack: axis %d of %s is not %d arrays", at,
                 gni_shape_text(text, sizeof text, &a->shape), count);
    else if (parts == NULL && count > 0)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_unstack: no room for the arrays");
    else if (at >= 0 && count > 0)
        gni_cut(g, "gn_unstack", a, at, count, true, parts);
    return gni_end_several(g, parts, parts != NULL ? count : 0);
}

GPUNUM_API gn_status gn_meshgrid(gn_array *const *arrays, int count, bool ij, gn_array **grids) {
    for (int i = 0; i < count && grids != NULL; i++) grids[i] = NULL;
    gn_context *g = count > 0 && arrays != NULL ? gni_begin("gn_meshgrid", arrays, count) : NULL;
    if (g == NULL) return count > 0 && arrays != NULL ? gni_null_status(arrays[0]) : GN_ERROR_ARGUMENT;
    gn_shape all = gni_shape_of_rank(GNI_MIN(count, GN_MAX_RANK));
    if (gni_rank_ok(g, "gn_meshgrid", count) && grids == NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_meshgrid: no room for the grids");
    const bool swap = !ij && count > 1; // the first array runs along axis 1
    for (int i = 0; i < count && !g->call_failed; i++) all.dim[swap && i < 2 ? 1 - i : i] = gni_elements(&arrays[i]->shape);
    gn_scope_begin(g);
    for (int i = 0; i < count && !g->call_failed; i++) {
        gn_shape s = all;
        for (int k = 0; k < count; k++)
            if (k != (swap && i < 2 ? 1 - i : i)) s.dim[k] = 1;
        grids[i] = gn_keep(gn_broadcast_to(gn_reshape(arrays[i], s), all));
    }
    gn_scope_end(g);
    return gni_end_several(g, grids, grids != NULL ? count : 0);
}

// ---- neighbours

GPUNUM_API gn_array *gn_diff(gn_array *a, int n, int axis) {
    gn_context *g = gni_begin_scope("gn_diff", &a, 1);
    if (g == NULL) return NULL;
    const int at = gni_axis(g, "gn_diff", axis, a->shape.rank);
    if (n < 0) gni_fail(g, GN_ERROR_ARGUMENT, "gn_diff: %d times", n);
    if (at < 0 || n < 0) return gni_end_scope(g, NULL);
    gn_array *y = n == 0 ? gn_copy(a) : gn_reshape(a, a->shape);
    for (; n > 0 && y != NULL && y->shape.dim[at] > 0; n--) {
        gn_array *next = gn_slice(y, at, 1, GN_NONE, 1), *last = gn_slice(y, at, 0, -1, 1);
        y = a->dtype == GN_BOOL ? gn_ne(next, last) : gn_sub(next, last);
    }
    return gni_end_scope(g, y);
}

// The windows of an axis as that axis and one behind it. For autograd it is what gn_take makes of their places.
static gn_array *gni_windows(gn_context *g, gn_array *a, int axis, int64_t window) {
    if (!gni_materialize(g, a)) return NULL;
    gn_shape s = gni_shape_of_rank(a->shape.rank + 1);
    int64_t stride[GN_MAX_RANK];
    for (int i = 0; i < s.rank; i++) {
        s.dim[i] = a->shape.dim[i <= axis ? i : i - 1];
        stride[i] = a->stride[i <= axis ? i : i - 1];
    }
    const int64_t n = s.dim[axis] - window + 1;
    s.dim[axis] = n;
    s.dim[axis + 1] = window;
    gn_array *y = gni_array_view(g, "gn_sliding_window", a, &s, stride, a->offset);
    if (y == NULL || !gni_tracks(g, &a, 1)) return y;
    const gn_dtype t = a->shape.dim[axis] < INT32_MAX ? GN_I32 : GN_I64;
    gn_array *in[2] = {a, gn_add(gn_expand_dims(gn_arange(g, t, 0, (double)n, 1), 1), gn_arange(g, t, 0, (double)window, 1))};
    gni_note(in[1] != NULL ? gni_record(g, y, "gn_sliding_window", gni_back_take, in, 2) : NULL, axis, 0, 0);
    return y;
}

GPUNUM_API gn_array *gn_sliding_window(gn_array *a, int64_t window, int axis) {
    gn_context *g = gni_begin_scope("gn_sliding_window", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    const int rank = a->shape.rank, at = gni_axis(g, "gn_sliding_window", axis, rank);
    if (at < 0 || !gni_rank_ok(g, "gn_sliding_window", rank + 1)) return gni_end_scope(g, NULL);
    if (window < 1 || window > a->shape.dim[at])
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_sliding_window: a window of %lld on axis %d with size %lld", (long long)window,
                 at, (long long)a->shape.dim[at]);
    else
        y = gn_move_axis(gni_adopt(g, gni_windows(g, a, at, window)), at + 1, -1);
    return gni_end_scope(g, y);
}
