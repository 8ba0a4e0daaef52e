// >>indexing
// Gathers and scatters by an index for each element, and masks: what is where they are true. From outside: gni_scattered.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../ops/arrange.h"
#include "../ops/assign.h"
#include "../ops/order_ops.h"
#endif

// ---- scatter

// in: the array before, the values, the indices; param: axis, whether each element has an index, the op
static bool gni_back_scatter(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *index = node->in[2], *a = node->in[0], *x = node->in[1], *y = node->output;
    const int axis = (int)node->param[0];
    const bool along = node->param[1] != 0;
    if (node->param[2] == GNI_SCATTER_ADD) {
        gx[0] = gy;
        if (gni_wanted(node, 1)) gx[1] = gni_adopt(g, gni_take_any(g, node->name, gy, index, axis, along));
        return true;
    }
    // Elements that share the extreme value share the gradient.
    gn_array *from = gn_cast(gn_eq(x, gni_adopt(g, gni_take_any(g, node->name, y, index, axis, along))), gy->dtype);
    gn_array *kept = gn_cast(gn_eq(a, y), gy->dtype);
    gn_array *count = gni_scattered(g, node->name, GNI_SCATTER_ADD, kept, index, from, axis, along);
    gn_array *share = gn_div(gy, gn_maximum_s(count, 1)); // NaN has none
    gx[0] = gn_mul(share, kept);
    if (gni_wanted(node, 1)) gx[1] = gn_mul(from, gni_adopt(g, gni_take_any(g, node->name, share, index, axis, along)));
    return true;
}

// `a` and then `values` at the places that the index names; of one dtype that a gni_scatter has.
static gn_array *gni_scattered(gn_context *g, const char *fn, gni_scatter_op op, gn_array *a, gn_array *index,
                               gn_array *values, int axis, bool along) {
    gn_array *in[3] = {a, values, index};
    gni_scatter job;
    if (a == NULL || values == NULL || index == NULL) return NULL;
    gn_array *from = gni_contiguous(g, values), *places = gni_take_indices(g, index);
    gn_array *y = gni_array_empty(g, fn, a->dtype, &a->shape);
    bool ok = from != NULL && places != NULL && y != NULL && gni_places_of(g, fn, &a->shape, places, axis, along, &job.at);
    if (ok && gni_elements(&a->shape) > 0) {
        const bool some = gni_elements(&values->shape) > 0, is_there = some && !gni_is_pending(a) && gni_is_contiguous(a);
        job.op = op;
        memset(&job.base, 0, sizeof job.base);
        if (is_there) gni_take_operand(a, &job.base);
        else ok = gni_assign_run(g, y, a);
        if (ok && some) {
            gni_take_operand(from, &job.in);
            gni_take_operand(places, &job.index);
            gni_take_operand(y, &job.out);
            ok = gni_run(g, &gni_kind_scatter, &job, y);
        }
    }
    gni_unref(g, from);
    gni_unref(g, places);
    if (!ok) {
        gni_unref(g, y);
        return NULL;
    }
    gni_note(gni_record(g, y, fn, gni_back_scatter, in, 3), axis, along, op);
    return gni_adopt(g, y);
}

// What elements of that dtype are scattered as.
static gn_dtype gni_scatter_dtype(gn_dtype t) {
    if (t == GN_F32 || t == GN_F64 || t == GN_I32 || t == GN_I64 || t == GN_U32 || t == GN_U64) return t;
    return gni_is_float(t) ? GN_F32 : GN_I32;
}

// The indices broadcast to a shape that differs from a's on the axis alone, as int32 or int64 in C order. Where they are the
// same for all other axes, only those: *along is false then. Both of these are the scope's.
static gn_array *gni_index_along(gn_context *g, const char *fn, const gn_array *a, gn_array *indices, int axis, gn_shape *s,
                                 bool *along) {
    char from[200], to[200];
    gn_shape own = indices->shape, other = a->shape, all;
    if (!gni_need_integers(g, fn, indices)) return NULL;
    bool fits = own.rank == other.rank;
    if (fits) other.dim[axis] = own.dim[axis];
    if (!fits || !gni_broadcast(&own, &other, &all)) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: indices %s for %s: beside axis %d they have its shape, or 1", fn,
                 gni_shape_text(from, sizeof from, &own), gni_shape_text(to, sizeof to, &a->shape), axis);
        return NULL;
    }
    *s = all;
    *along = gni_elements(&own) != own.dim[axis] || gni_elements(&own) == 0;
    gn_array *index = *along ? gn_broadcast_to(indices, all) : gn_ravel(indices);
    return index == NULL ? NULL : gni_adopt(g, gni_take_indices(g, index));
}

GPUNUM_API gn_array *gn_take_along(gn_array *a, gn_array *indices, int axis) {
    gn_context *g = gni_begin_pair("gn_take_along", a, indices);
    if (g == NULL) return NULL;
    const int at = gni_axis(g, "gn_take_along", axis, a->shape.rank);
    bool along;
    gn_shape s;
    gn_array *index = at < 0 ? NULL : gni_index_along(g, "gn_take_along", a, indices, at, &s, &along);
    if (index == NULL) return gni_end_scope(g, NULL);
    s.dim[at] = a->shape.dim[at];
    gn_array *x = gni_same_shape(&s, &a->shape) ? a : gn_broadcast_to(a, s);
    return gni_end_scope(g, x == NULL ? NULL : gni_adopt(g, gni_take_any(g, "gn_take_along", x, index, at, along)));
}

// The indices and the values for them, made fit to `a`.
static bool gni_scatter_operands(gn_context *g, const char *fn, gn_array *a, gn_array *indices, gn_array *values, int axis,
                                 gn_array **index, gn_array **x, bool *along) {
    gn_shape s, want = a->shape;
    char from[200], to[200];
    *index = gni_index_along(g, fn, a, indices, axis, &s, along);
    if (*index == NULL) return false;
    want.dim[axis] = s.dim[axis];
    if (!gni_same_shape(&s, &want))
        return gni_fail(g, GN_ERROR_SHAPE, "%s: indices %s for %s: beside axis %d they have its shape, or 1", fn,
                        gni_shape_text(from, sizeof from, &indices->shape), gni_shape_text(to, sizeof to, &a->shape), axis);
    *x = gn_broadcast_to(values, s);
    return *x != NULL;
}

static gn_array *gni_scatter_parts(gn_context *g, const char *fn, gni_scatter_op op, gn_array *a, gn_array *index,
                                   gn_array *x, int axis, bool along) {
    if (a == NULL || x == NULL) return NULL;
    if (gni_is_complex(a->dtype) && g->gpu != NULL) {
        gn_array *re = gni_scatter_parts(g, fn, op, gn_real(a), index, gn_real(x), axis, along);
        return gn_complex(re, gni_scatter_parts(g, fn, op, gn_imag(a), index, gn_imag(x), axis, along));
    }
    const gn_dtype t = a->dtype, inner = gni_is_complex(t) ? t : gni_scatter_dtype(t);
    if (t == GN_BOOL && op == GNI_SCATTER_ADD) op = GNI_SCATTER_MAX;
    if (t != x->dtype) x = gn_cast(x, t);
    if (t != inner) x = gn_cast(x, inner);
    gn_array *y = gni_scattered(g, fn, op, t != inner ? gn_cast(a, inner) : a, index, x, axis, along);
    return t != inner ? gn_cast(y, t) : y;
}

static gn_array *gni_scatter_public(const char *fn, gni_scatter_op op, gn_array *a, gn_array *indices, gn_array *values,
                                    int axis) {
    gn_array *in[3] = {a, indices, values}, *index, *x;
    gn_context *g = gni_begin_scope(fn, in, 3);
    if (g == NULL) return NULL;
    const int at = gni_axis(g, fn, axis, a->shape.rank);
    bool along, ok = at >= 0 && (op == GNI_SCATTER_ADD || gni_real_only(g, fn, in, 3));
    if (!ok || !gni_scatter_operands(g, fn, a, indices, values, at, &index, &x, &along)) return gni_end_scope(g, NULL);
    if (gni_is_complex(x->dtype) != gni_is_complex(a->dtype)) x = gn_cast(x, a->dtype);
    return gni_end_scope(g, gni_scatter_parts(g, fn, op, a, index, x, at, along));
}

GPUNUM_API gn_array *gn_scatter_add(gn_array *a, gn_array *indices, gn_array *values, int axis) {
    return gni_scatter_public("gn_scatter_add", GNI_SCATTER_ADD, a, indices, values, axis);
}
GPUNUM_API gn_array *gn_scatter_max(gn_array *a, gn_array *indices, gn_array *values, int axis) {
    return gni_scatter_public("gn_scatter_max", GNI_SCATTER_MAX, a, indices, values, axis);
}
GPUNUM_API gn_array *gn_scatter_min(gn_array *a, gn_array *indices, gn_array *values, int axis) {
    return gni_scatter_public("gn_scatter_min", GNI_SCATTER_MIN, a, indices, values, axis);
}

// Zeros of the shape of `a`, or of one line of it, that are made where it is: constants alone are made on the CPU.
static gn_array *gni_zeros_beside(gn_array *a, gn_dtype t, int axis, bool all) {
    const int rank = a->shape.rank;
    for (int i = 0; i < rank && !all && a != NULL; i++)
        if (i != axis && a->shape.dim[i] > 1) a = gn_slice(a, i, 0, 1, 1);
    return gn_mul_s(gn_cast(gn_ne(a, a), t), 0);
}

// The last value for a place wins, in whatever order they are looked at: first the number of that value is found.
GPUNUM_API gn_array *gn_put_along(gn_array *a, gn_array *indices, gn_array *values, int axis) {
    const char *fn = "gn_put_along";
    gn_array *in[3] = {a, indices, values}, *index, *x;
    gn_context *g = gni_begin_scope(fn, in, 3);
    if (g == NULL) return NULL;
    const int at = gni_axis(g, fn, axis, a->shape.rank);
    bool along;
    if (at < 0 || !gni_scatter_operands(g, fn, a, indices, values, at, &index, &x, &along)) return gni_end_scope(g, NULL);
    if (gni_elements(&x->shape) == 0) return gni_end_scope(g, gn_copy(a));
    // In their order.
    if (!GNI_TEXTS(g->gpu) && !gni_tracks(g, in, 3) && gni_scatter_dtype(a->dtype) == a->dtype &&
        !gni_is_complex(x->dtype))
        return gni_end_scope(
            g, gni_scattered(g, fn, GNI_SCATTER_PUT, a, index, x->dtype != a->dtype ? gn_cast(x, a->dtype) : x, at, along));
    const gn_dtype t = x->shape.dim[at] < INT32_MAX ? GN_I32 : GN_I64;
    gn_array *number = gn_cast(gn_cumsum(gn_add_s(gni_zeros_beside(x, t, at, false), 1), at), t);
    if (along) number = gn_broadcast_to(number, x->shape);
    gn_array *none = gni_zeros_beside(a, t, at, along);
    gn_array *last = gni_scattered(g, fn, GNI_SCATTER_MAX, none, index, number, at, along);
    gn_array *place = gn_maximum_s(gn_add_s(last, -1), 0);
    gn_array *new_ones = gn_take_along(x, place, at);
    if (new_ones != NULL && new_ones->dtype != a->dtype) new_ones = gn_cast(new_ones, a->dtype);
    return gni_end_scope(g, gn_where(gn_gt_s(last, 0), new_ones, a));
}

// ---- places by an index array for each axis

// Their numbers in C order where the first axes are dim, as of gn_ravel_multi_index; int32 or int64, the scope's.
static gn_array *gni_joined_indices(gn_context *g, const char *fn, gn_array *const *indices, int count, const int64_t *dim,
                                    int64_t n) {
    gn_dtype t = n < INT32_MAX ? GN_I32 : GN_I64;
    gn_array *y = NULL, *inside = NULL;
    for (int i = 0; i < count; i++)
        if (dim[i] > INT32_MAX) t = GN_I64;
    g->no_grad++;
    for (int i = 0; i < count; i++) {
        gn_array *k = gni_need_integers(g, fn, indices[i]) ? gni_signed_indices(g, indices[i]) : NULL;
        gn_array *extent = gn_full_int(g, t, GN_SHAPE(), dim[i]);
        gn_array *is = gn_logical_and(gn_ge(k, gn_neg(extent)), gn_lt(k, extent));
        if (k != NULL) k = gn_cast(k, t);
        k = gn_where(gn_lt_s(k, 0.0), gn_add(k, extent), k);
        y = i == 0 ? k : gn_add(gn_mul(y, extent), k);
        inside = i == 0 ? is : gn_logical_and(inside, is);
        if (y == NULL || inside == NULL) break;
    }
    if (y != NULL) y = gn_where(inside, y, gn_full_int(g, t, GN_SHAPE(), n));
    g->no_grad--;
    return y;
}

// Begins a call and a scope: `a` with the first axes as one, and the numbers of places on it. *rows is NULL after an error.
static gn_context *gni_begin_places(const char *fn, gn_array *a, gn_array *const *indices, int count, gn_array **value,
                                    gn_array **rows, gn_array **index) {
    gn_array *in[GN_MAX_RANK + 2];
    char text[200];
    int n = 0;
    if (count > 0 && indices == NULL) return NULL;
    in[n++] = a;
    for (int i = 0; i < count && i < GN_MAX_RANK; i++) in[n++] = indices[i];
    if (value != NULL) in[n++] = *value;
    gn_context *g = gni_begin(fn, in, n);
    *rows = *index = NULL;
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    gn_shape s = gn_shape_from(count == 1, a->shape.dim);
    if (count < 1 || count > a->shape.rank) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %d index arrays for %s", fn, count, gni_shape_text(text, sizeof text, &a->shape));
        return g;
    }
    if (count > 1) s.dim[s.rank++] = gni_extent_product(a->shape.dim, count);
    if (s.dim[0] < 0)
        gni_fail(g, GN_ERROR_SHAPE, "%s: the first %d axes of %s have too many elements", fn, count,
                 gni_shape_text(text, sizeof text, &a->shape));
    else if (count > 1) *index = gni_joined_indices(g, fn, indices, count, a->shape.dim, s.dim[0]);
    else if (gni_need_integers(g, fn, indices[0])) *index = gn_copy(indices[0]); // whose memory may be a's
    for (int i = count; i < a->shape.rank; i++) s.dim[s.rank++] = a->shape.dim[i];
    if (*index != NULL && gni_rank_ok(g, fn, (*index)->shape.rank + s.rank - 1)) *rows = count == 1 ? a : gn_reshape(a, s);
    return g;
}

GPUNUM_API gn_array *gn_index_arrays(gn_array *a, gn_array *const *indices, int count) {
    const char *fn = "gn_index_arrays";
    gn_array *rows, *index;
    gn_context *g = gni_begin_places(fn, a, indices, count, NULL, &rows, &index);
    if (g == NULL) return NULL;
    return gni_end_scope(g, rows == NULL ? NULL : gni_adopt(g, gni_take_any(g, fn, rows, index, 0, false)));
}

// Writes the values to those places among a's rows where it has them in its own memory one behind the other and autograd is
// not concerned: what else it has is not looked at. False: otherwise, or after an error.
static bool gni_put_in_place(gn_context *g, const char *fn, gn_array *a, gn_array *rows, gn_array *index, gn_array *values) {
    gn_array *in[2] = {a, values};
    gni_scatter job;
    gni_rewrite *rewrites;
    int count;
    memset(&job, 0, sizeof job);
    if (gni_is_pending(a) || !gni_is_contiguous(a) || GNI_TEXTS(g->gpu) || gni_tracks(g, in, 2) ||
        gni_scatter_dtype(a->dtype) != a->dtype || gni_is_complex(values->dtype) || gni_elements(&values->shape) == 0)
        return false;
    if (!gni_can_write(g, fn, a) || !gni_rewrites_make(g, fn, a, NULL, &rewrites, &count)) return false;
    gni_rewrites_drop(g, rewrites, count);
    if (count > 0) return false;
    if (values->dtype != a->dtype) values = gn_cast(values, a->dtype);
    if (values != NULL && gni_may_overlap(a, values)) values = gn_copy(values);
    gn_array *from = values != NULL ? gni_contiguous(g, values) : NULL, *places = gni_take_indices(g, index);
    gni_buffer *was = a->buf;
    was->refs++;
    bool ok = from != NULL && places != NULL && gni_places_of(g, fn, &rows->shape, places, 0, false, &job.at) &&
              gni_before_overwrite(g, a, 0, 1);
    if (ok && was->where == 0) ok = gni_buffer_need(g, was, g->host_recording ? GNI_ON_GPU : GNI_ON_CPU); // zeros
    if (ok) {
        job.op = GNI_SCATTER_PUT;
        gni_take_operand(a, &job.out);
        if (a->buf != was) job.base = job.out, job.base.buf = was; // its readers have kept it
        gni_take_operand(from, &job.in);
        gni_take_operand(places, &job.index);
        ok = gni_run(g, &gni_kind_scatter, &job, NULL);
    }
    if (!ok) gni_restore_buffer(g, a, was);
    gni_buffer_release(g, was);
    gni_unref(g, from);
    gni_unref(g, places);
    return ok;
}

GPUNUM_API gn_status gn_assign_arrays(gn_array *a, gn_array *const *indices, int count, gn_array *value) {
    const char *fn = "gn_assign_arrays";
    gn_array *rows = NULL, *index = NULL;
    gn_context *g = gni_begin_places(fn, a, indices, count, &value, &rows, &index);
    if (g == NULL) return gni_null_status(a != NULL ? a : value);
    if (rows != NULL) {
        gn_shape s = rows->shape, all = index->shape, line = gni_shape_of_rank(s.rank);
        for (int i = 1; i < s.rank; i++) all.dim[all.rank++] = s.dim[i], line.dim[i] = 1;
        s.dim[0] = line.dim[0] = gni_elements(&index->shape);
        gn_array *values = gn_reshape(gn_broadcast_to(value, all), s);
        if (values != NULL && !gni_put_in_place(g, fn, a, rows, index, values) && !g->call_failed) {
            gn_array *y = gn_reshape(gn_put_along(rows, gn_reshape(index, line), values, 0), a->shape);
            if (y != NULL) gni_assign(g, fn, a, y);
        }
    }
    gn_scope_end(g);
    return gni_end_status(g);
}

GPUNUM_API gn_array *gn_ravel_multi_index(gn_array *const *indices, int count, gn_shape s) {
    const char *fn = "gn_ravel_multi_index";
    gn_context *g = count > 0 && indices != NULL ? gni_begin(fn, indices, count) : NULL;
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    char text[200];
    gn_array *y = NULL;
    if (gni_shape_ok(g, fn, GN_I8, &s)) {
        if (count != s.rank)
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: %d index arrays for %s", fn, count, gni_shape_text(text, sizeof text, &s));
        else if ((y = gni_joined_indices(g, fn, indices, count, s.dim, gni_elements(&s))) != NULL)
            y = gn_cast(y, GN_I64);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_unravel_index(gn_array *a, gn_shape s) {
    const char *fn = "gn_unravel_index";
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *row[GN_MAX_RANK];
    if (!gni_need_integers(g, fn, a) || !gni_shape_ok(g, fn, GN_I8, &s)) return gni_end_scope(g, NULL);
    if (s.rank == 0) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: rank 0 has no axes that an index could be on", fn);
        return gni_end_scope(g, NULL);
    }
    gn_array *k = gni_signed_indices(g, a), *n = gn_full_int(g, GN_I64, GN_SHAPE(), gni_elements(&s));
    if (k != NULL) k = gn_cast(k, GN_I64);
    k = gn_where(gn_lt_s(k, 0.0), gn_add(k, n), k);
    for (int i = s.rank - 1; i > 0; i--) {
        gn_array *d = gn_full_int(g, GN_I64, GN_SHAPE(), s.dim[i]);
        row[i] = gn_mod(k, d);
        k = gn_floor_div(k, d);
    }
    row[0] = k; // what is out of range stays so
    return gni_end_scope(g, gn_stack(row, s.rank, 0));
}

// ---- what is true

// Of each element in C order whether it is true; the scope's.
static gn_array *gni_truth_of(gn_context *g, const char *fn, gn_array *a) {
    if (!gni_may_wait(g, fn)) return NULL;
    gn_array *truth = a->dtype == GN_BOOL ? a : gn_ne_s(a, 0.0);
    return truth != NULL ? gni_adopt(g, gni_contiguous(g, truth)) : NULL;
}

// A byte for each, and how many are true.
static const uint8_t *gni_truth(gn_context *g, const char *fn, gn_array *a, int64_t *count) {
    gn_array *truth = gni_truth_of(g, fn, a);
    const uint8_t *p = truth != NULL ? (const uint8_t *)gni_host(g, truth) : NULL;
    const int64_t n = p != NULL ? gni_elements(&truth->shape) : 0;
    int64_t sum = 0, i = 0;
    for (uint64_t eight; i + 8 <= n; i += 8) {
        memcpy(&eight, p + i, 8);
        sum += (int64_t)(eight * 0x0101010101010101u >> 56);
    }
    for (; i < n; i++) sum += p[i];
    *count = sum;
    return p;
}

// The same as gni_true_places where the device alone has the elements; with `x`, which has as many, what is there in it.
// *done is false where it cannot do that.
static gn_array *gni_true_on_device(gn_context *g, const char *fn, gn_array *truth, gn_array *x, bool flat, bool *done) {
    gn_shape s = truth->shape;
    const int64_t n = gni_elements(&s), chunks = gni_keep_chunks(n);
    const gn_shape line = gn_shape_from(1, &chunks);
    GNI_ZEROED(gni_keep, job);
    job.n = n;
    job.count = n; // at most
    job.rank = x != NULL ? 0 : flat ? 1 : s.rank;
    memcpy(job.dim, s.dim, sizeof job.dim);
    gni_take_operand(truth, &job.mask);
    if (x != NULL) gni_take_operand(x, &job.in);
    *done = gni_backend_gpu()->supports(g, GNI_JOB_KEEP, &job);
    if (!*done) return NULL;
    gn_array *counts = gni_adopt(g, gni_array_empty(g, fn, GN_I32, &line)), *y = NULL;
    if (counts == NULL) return NULL;
    gni_take_operand(counts, &job.counts);
    if (!gni_run(g, &gni_kind_keep, &job, counts)) return NULL;
    const int32_t *each = (const int32_t *)gni_host(g, counts);
    if (each == NULL) return NULL;
    job.count = 0;
    for (int64_t i = 0; i < chunks; i++) job.count += each[i];
    s = x == NULL && !flat ? GN_SHAPE(s.rank, job.count) : gn_shape_from(1, &job.count);
    y = gni_adopt(g, gni_array_empty(g, fn, x != NULL ? x->dtype : GN_I64, &s));
    if (y == NULL || job.count == 0) return y;
    gni_take_operand(y, &job.out);
    return gni_run(g, &gni_kind_keep, &job, y) ? y : NULL;
}

enum { GNI_TRUE_ON_DEVICE = 1 << 12 }; // elements: fewer are as soon looked at here

static bool gni_is_there_alone(const gn_context *g, const gn_array *truth) {
    return truth->buf->where == GNI_ON_GPU && g->gpu != NULL && g->placement != GN_PLACE_CPU &&
           gni_elements(&truth->shape) >= GNI_TRUE_ON_DEVICE;
}

// Their numbers, (rank, count) with a row for each axis, or (count) of the raveled array.
static gn_array *gni_true_places(gn_context *g, const char *fn, gn_array *a, bool flat) {
    int64_t count, *to = NULL;
    gn_array *on = gni_truth_of(g, fn, a), *there;
    bool done;
    if (on == NULL) return NULL;
    if (gni_is_there_alone(g, on)) {
        there = gni_true_on_device(g, fn, on, NULL, flat, &done);
        if (done) return there;
    }
    const uint8_t *truth = gni_truth(g, fn, on, &count);
    gn_shape s = GN_SHAPE(a->shape.rank, count);
    if (flat) s = gn_shape_from(1, &count);
    gn_array *y = truth != NULL ? gni_array_filled(g, fn, GN_I64, &s, (void **)&to) : NULL;
    if (y == NULL || count == 0) return gni_adopt(g, y);
    const int last = flat ? 0 : a->shape.rank - 1;
    int64_t *row = to + last * count, k = 0;
    for (int64_t i = 0; k < count; i++) { // whose branch can be foreseen
        row[k] = i;
        k += truth[i];
    }
    for (int axis = 0; axis < last; axis++) {
        const int64_t inner = gni_extent_product(a->shape.dim + axis + 1, last - axis);
        for (k = 0; k < count; k++) to[axis * count + k] = row[k] / inner % a->shape.dim[axis];
    }
    for (k = 0; k < count && last > 0; k++) row[k] %= a->shape.dim[last];
    return gni_adopt(g, y);
}

// Those along an axis of x where `m` is true, which may be shorter; the scope's.
static gn_array *gni_true_elements(gn_context *g, const char *fn, gn_array *m, gn_array *x, int at) {
    const int64_t n = gni_elements(&m->shape);
    bool done = false;
    gn_array *y = NULL;
    if (gni_elements(&x->shape) == x->shape.dim[at] && n == x->shape.dim[at] && n >= GNI_TRUE_ON_DEVICE &&
        !gni_tracks(g, &x, 1)) {
        gn_array *truth = gni_truth_of(g, fn, m), *from = truth != NULL ? gni_adopt(g, gni_contiguous(g, x)) : NULL;
        if (from == NULL) return NULL;
        if (gni_is_there_alone(g, truth) && (from->buf->where & GNI_ON_GPU))
            y = gni_true_on_device(g, fn, truth, from, true, &done);
        if (y != NULL && x->shape.rank > 1) {
            gn_shape s = x->shape;
            s.dim[at] = gni_elements(&y->shape);
            y = gn_reshape(y, s);
        }
        if (done) return y;
        m = truth;
    }
    gn_array *index = gni_true_places(g, fn, m, true);
    return index != NULL ? gni_adopt(g, gni_take_any(g, fn, x, index, at, false)) : NULL;
}

GPUNUM_API gn_array *gn_flatnonzero(gn_array *a) {
    gn_context *g = gni_begin_scope("gn_flatnonzero", &a, 1);
    if (g == NULL) return NULL;
    return gni_end_scope(g, gni_true_places(g, "gn_flatnonzero", a, true));
}

GPUNUM_API gn_array *gn_nonzero(gn_array *a) {
    gn_context *g = gni_begin_scope("gn_nonzero", &a, 1);
    if (g == NULL) return NULL;
    if (a->shape.rank == 0) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_nonzero: rank 0 has no axes that a place could be on");
        return gni_end_scope(g, NULL);
    }
    return gni_end_scope(g, gni_true_places(g, "gn_nonzero", a, false));
}

GPUNUM_API gn_array *gn_compress(gn_array *condition, gn_array *a, gn_axes axis) {
    gn_context *g = gni_begin_pair("gn_compress", condition, a);
    if (g == NULL) return NULL;
    char text[200];
    gn_array *x = axis == GN_ALL ? gn_ravel(a) : a;
    const int at = x == NULL ? -1 : axis == GN_ALL ? 0 : gni_axis(g, "gn_compress", axis, a->shape.rank);
    if (at >= 0 && (condition->shape.rank != 1 || condition->shape.dim[0] > x->shape.dim[at]))
        gni_fail(g, GN_ERROR_SHAPE, "gn_compress: condition %s for an axis of %lld",
                 gni_shape_text(text, sizeof text, &condition->shape), (long long)x->shape.dim[at]);
    if (at < 0 || g->call_failed) return gni_end_scope(g, NULL);
    return gni_end_scope(g, gni_true_elements(g, "gn_compress", condition, x, at));
}

GPUNUM_API gn_array *gn_repeat_counts(gn_array *a, gn_array *counts, gn_axes axis) {
    const char *fn = "gn_repeat_counts";
    gn_context *g = gni_begin_pair(fn, a, counts);
    if (g == NULL) return NULL;
    char text[200];
    int64_t total = 0, *to = NULL;
    gn_array *x = axis == GN_ALL ? gn_ravel(a) : a, *each = NULL;
    const int at = x == NULL ? -1 : axis == GN_ALL ? 0 : gni_axis(g, fn, axis, a->shape.rank);
    const int64_t n = at >= 0 ? x->shape.dim[at] : 0, given = gni_elements(&counts->shape);
    if (at >= 0 && (counts->shape.rank != 1 || (given != n && given != 1)))
        gni_fail(g, GN_ERROR_SHAPE, "%s: counts %s for an axis of %lld", fn,
                 gni_shape_text(text, sizeof text, &counts->shape), (long long)n);
    gn_array *wide = at >= 0 && !g->call_failed && gni_need_integers(g, fn, counts) && gni_may_wait(g, fn)
                         ? gn_cast(gni_signed_indices(g, counts), GN_I64)
                         : NULL;
    if (wide != NULL) each = gni_adopt(g, gni_contiguous(g, wide));
    const int64_t *p = each != NULL ? (const int64_t *)gni_host(g, each) : NULL;
    if (p == NULL) return gni_end_scope(g, NULL);
    for (int64_t i = 0; i < n && !g->call_failed; i++) {
        const int64_t k = p[given == 1 ? 0 : i];
        if (k < 0) gni_fail(g, GN_ERROR_ARGUMENT, "%s: %lld repetitions", fn, (long long)k);
        else total = total > INT64_MAX - k ? INT64_MAX : total + k;
    }
    const gn_shape s = gn_shape_from(1, &total);
    gn_array *index = g->call_failed ? NULL : gni_array_filled(g, fn, GN_I64, &s, (void **)&to);
    if (index == NULL) return gni_end_scope(g, NULL);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = p[given == 1 ? 0 : i]; k > 0; k--) *to++ = i;
    return gni_end_scope(g, gni_adopt(g, gni_take_any(g, fn, x, gni_adopt(g, index), at, false)));
}

// Whether the mask covers a's leading axes; `s` gets (covered, rest...).
static bool gni_mask_fits(gn_context *g, const char *fn, const gn_array *a, const gn_array *m, gn_shape *s) {
    char ta[200], tm[200];
    bool fits = m->shape.rank <= a->shape.rank;
    for (int i = 0; fits && i < m->shape.rank; i++) fits = m->shape.dim[i] == a->shape.dim[i];
    if (m->dtype != GN_BOOL)
        gni_fail(g, GN_ERROR_DTYPE, "%s: the mask is %s, not bool; gn_take is for indices", fn, gn_dtype_name(m->dtype));
    else if (!fits)
        gni_fail(g, GN_ERROR_SHAPE, "%s: mask %s does not cover the first axes of %s", fn,
                 gni_shape_text(tm, sizeof tm, &m->shape), gni_shape_text(ta, sizeof ta, &a->shape));
    if (g->call_failed || !gni_rank_ok(g, fn, 1 + a->shape.rank - m->shape.rank)) return false;
    *s = gni_shape_of_rank(1 + a->shape.rank - m->shape.rank);
    s->dim[0] = gni_elements(&m->shape);
    for (int i = 1; i < s->rank; i++) s->dim[i] = a->shape.dim[m->shape.rank + i - 1];
    return true;
}

GPUNUM_API gn_array *gn_mask(gn_array *a, gn_array *m) {
    gn_array *in[2];
    gn_shape s;
    in[0] = a;
    in[1] = m;
    gn_context *g = gni_begin_scope("gn_mask", in, 2);
    if (g == NULL) return NULL;
    gn_array *rows = gni_mask_fits(g, "gn_mask", a, m, &s) ? gn_reshape(a, s) : NULL;
    return gni_end_scope(g, rows != NULL ? gni_true_elements(g, "gn_mask", m, rows, 0) : NULL);
}

// A row of values for each that is true, as many rows as there are elements of the mask: others are not looked at.
static gn_array *gni_masked_rows(gn_context *g, const char *fn, gn_array *m, gn_array *value, gn_shape s) {
    int64_t count = 0, *to = NULL, k = 0, n = s.dim[0];
    const gn_shape line = gn_shape_from(1, &n);
    char tv[200], ts[200];
    gn_array *on = gni_truth_of(g, fn, m), *sums = NULL, *number = NULL;
    if (on == NULL) return NULL;
    const uint8_t *truth = NULL;
    if (gni_is_there_alone(g, on)) {
        sums = gn_cumsum(on, GN_ALL);
        const double all_of = gn_item(gn_slice(sums, 0, n - 1, n, 1));
        if (all_of != all_of) return NULL;
        count = (int64_t)all_of;
    } else {
        truth = gni_truth(g, fn, on, &count);
    }
    if ((truth == NULL && sums == NULL) || g->call_failed) return NULL;
    gn_shape all;
    s.dim[0] = count;
    if (!gni_broadcast(&value->shape, &s, &all) || !gni_same_shape(&all, &s)) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: shape %s does not broadcast to %s, what the mask names", fn,
                 gni_shape_text(tv, sizeof tv, &value->shape), gni_shape_text(ts, sizeof ts, &s));
        return NULL;
    }
    if (count == 0) return NULL; // nothing is written
    if (sums != NULL) { // of one that is true: less one
        number = gn_maximum_s(gn_sub_s(sums, 1.0), 0.0);
    } else {
        number = gni_array_filled(g, fn, GN_I64, &line, (void **)&to);
        for (int64_t i = 0; number != NULL && i < n; i++) {
            to[i] = GNI_MIN(k, count - 1);
            k += truth[i];
        }
        number = gni_adopt(g, number);
    }
    if (number == NULL) return NULL;
    return gni_adopt(g, gni_take_any(g, fn, value, number, 0, false));
}

GPUNUM_API gn_status gn_assign_mask(gn_array *a, gn_array *m, gn_array *value) {
    const char *fn = "gn_assign_mask";
    gn_array *in[3];
    gn_shape s, wide;
    in[0] = a;
    in[1] = m;
    in[2] = value;
    gn_context *g = gni_begin_scope(fn, in, 3);
    if (g == NULL) return gni_null_status(a != NULL ? a : m != NULL ? m : value);
    if (gni_mask_fits(g, fn, a, m, &s)) {
        gn_array *x = value, *y = NULL;
        if (value->shape.rank > s.rank) {
            gni_fail(g, GN_ERROR_SHAPE, "%s: a value of rank %d for one of rank %d, what the mask names", fn,
                     value->shape.rank, s.rank);
        } else if (value->shape.rank == s.rank && value->shape.dim[0] == 1) {
            x = gn_squeeze(value, 0);
        } else if (value->shape.rank == s.rank) {
            x = gni_masked_rows(g, fn, m, value, s);
            wide = a->shape;
            for (int i = m->shape.rank; i < wide.rank && x != NULL; i++) wide.dim[i] = x->shape.dim[i - m->shape.rank + 1];
            if (x != NULL) x = gn_reshape(x, wide);
        }
        wide = m->shape;
        wide.rank = a->shape.rank;
        for (int i = m->shape.rank; i < wide.rank; i++) wide.dim[i] = 1;
        if (x != NULL && x->dtype != a->dtype) x = gn_cast(x, a->dtype);
        if (x != NULL && !g->call_failed) y = gn_where(gn_reshape(m, wide), x, a);
        if (y != NULL) gni_assign(g, fn, a, y);
    }
    gn_scope_end(g);
    return gni_end_status(g);
}
