// >>reduce_ops
// The public reductions: axes resolved, pending input taken in as the prologue, one job each.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/transforms.h"
#include "../api/macros.h"
#include "../ops/views_ops.h"
#include "../ops/elementwise.h"
#endif

// The shape after reducing the axes in `set`.
static gn_shape gni_reduced_shape(const gn_shape *s, uint32_t set, bool keep) {
    gn_shape out = gn_shape_from(0, NULL);
    for (int i = 0; i < s->rank; i++) {
        if (!(set >> i & 1u))
            out.dim[out.rank++] = s->dim[i];
        else if (keep)
            out.dim[out.rank++] = 1;
    }
    return out;
}

static void gni_reorder_dims(gni_reduce *r, uint32_t set) {
    int order[GN_MAX_RANK], n = 0;
    for (int i = 0; i < r->rank; i++)
        if (!(set >> i & 1u)) order[n++] = i;
    r->kept = n;
    for (int i = 0; i < r->rank; i++)
        if (set >> i & 1u) order[n++] = i;
    gni_reduce old = *r;
    for (int i = 0; i < r->rank; i++) {
        r->dim[i] = old.dim[order[i]];
        for (int k = 0; k < r->program.n_in; k++) r->in[k].stride[i] = old.in[k].stride[order[i]];
    }
}

// The reduction over the axes in `set` of what the builder made.
static void gni_reduce_built(gni_reduce *r, const gni_builder *b, gni_reduction op, gni_domain domain, uint32_t set) {
    memset(r, 0, sizeof *r);
    r->program = b->map.program;
    r->op = op;
    r->domain = domain;
    r->rank = b->map.rank;
    memcpy(r->dim, b->map.dim, sizeof r->dim);
    memcpy(r->in, b->map.in, sizeof r->in);
    gni_reorder_dims(r, set);
}

// Runs it into y, whose place in it the caller has given: anywhere, or `there` on a GPU or not at all.
static bool gni_reduce_to(gn_context *g, gni_reduce *r, gn_array *y, bool there) {
    gni_operand *ops[GNI_MAX_INPUTS];
    const int n = r->program.n_in;
    for (int i = 0; i < n; i++) {
        r->in[i].buf->refs++;
        ops[i] = &r->in[i];
    }
    r->kept = gni_merge_dims(&r->rank, r->dim, ops, n, r->kept);
    const bool ok = there ? gni_run_on_gpu(g, &gni_kind_reduce, r, y) : gni_run(g, &gni_kind_reduce, r, y);
    for (int i = 0; i < n; i++) gni_buffer_release(g, r->in[i].buf);
    return ok;
}

// Reduces `a`, converted to `compute` first, over the axes in `set` into dtype `result`: into y's memory from element
// `at` on, or into a new array where y is NULL. `finish` may be NULL.
static gn_array *gni_reduce_into(gn_context *g, const char *fn, gni_reduction op, gn_array *a, gn_dtype compute,
                                 gn_dtype result, uint32_t set, bool keep, const gni_finish *finish, gn_array *y,
                                 int64_t at) {
    gni_builder b;
    gni_reduce r;
    bool wide = gni_is_wide(compute) || gni_is_wide(a->dtype);
    gn_array *product;
    if (!gni_tree_prepare(g, a, false, &product)) return NULL;
    if (gni_is_pending(a) && !gni_is_const(a) &&
        (a->expr->wide != wide || a->expr->insns + 2 > GNI_MAX_INSNS) && !gni_materialize(g, a))
        return NULL;
    gni_build_begin(&b, g, &a->shape, wide);
    gni_program *p = &b.map.program;
    int reg = gni_build_convert(&b, gni_build_value(&b, a), a->dtype, compute);
    if (b.full) { // shared parts are counted once here, so this is rare
        if (!gni_materialize(g, a)) return NULL;
        gni_build_begin(&b, g, &a->shape, wide);
        reg = gni_build_convert(&b, gni_build_value(&b, a), a->dtype, compute);
    }
    p->n_out = 1;
    p->out_dtype[0] = compute;
    p->out_reg[0] = reg;
    gni_build_finish(p);
    const gni_domain domain = gni_domain_of(compute, wide);
    gni_reduce_built(&r, &b, op, wide && domain == GNI_U ? GNI_I : domain, set); // the same sums and products
    if (finish != NULL) r.finish = *finish;
    gn_shape shape = gni_reduced_shape(&a->shape, set, keep);
    const bool fresh = y == NULL;
    if (fresh) y = gni_array_empty(g, fn, result, &shape);
    if (y == NULL) return NULL;
    r.out.buf = y->buf;
    r.out.dtype = result;
    r.out.offset = at;
    if (gni_reduce_to(g, &r, y, false)) return y;
    if (fresh) gni_unref(g, y);
    return NULL;
}

static gn_array *gni_reduce_axes(gn_context *g, const char *fn, gni_reduction op, gn_array *a,
                                 gn_dtype compute, gn_dtype result, uint32_t set, bool keep) {
    return gni_reduce_into(g, fn, op, a, compute, result, set, keep, NULL, NULL, 0);
}

// Whether reductions also do what is to be done to a sum: as texts they do not.
static bool gni_finishes(const gn_context *g) { return !GNI_TEXTS(g->gpu); }

static void gni_record_reduction(gn_context *g, gn_array *y, const char *fn,
                                 gni_backward_fn backward, gn_array *a, uint32_t set,
                                 bool keep) {
    gni_note(gni_record(g, y, fn, backward, &a, 1), (int64_t)set, keep, 0);
}

// min and max of nothing have no value.
static bool gni_not_empty(gn_context *g, const char *fn, const gn_array *a, uint32_t set) {
    char text[200];
    for (int i = 0; i < a->shape.rank; i++) {
        if (!(set >> i & 1u) || a->shape.dim[i] != 0) continue;
        return gni_fail(g, GN_ERROR_SHAPE, "%s: axis %d of %s is empty", fn, i, gni_shape_text(text, sizeof text, &a->shape));
    }
    return true;
}

// Whether the GPU has no int64: its kernels of 32 bits add integers of so many up in two words.
static bool gni_sums_words(const gn_context *g, const gn_array *a) {
    return !GNI_CPU_ALONE && g->gpu != NULL && !g->gpu->caps.int64 && !gni_is_float(a->dtype) && gn_dtype_size(a->dtype) < 8;
}

// uint64 as int64 of the same order, and back.
static gn_array *gni_flip_sign(gn_array *a) {
    bool natural = gn_dtype_of(a) == GN_U64;
    const double bit = -9223372036854775808.0;
    return natural ? gn_xor_s(gn_cast(a, GN_I64), bit) : gn_cast(gn_xor_s(a, bit), GN_U64);
}

// A product of complex numbers: of the halves of the axes that are reduced, again and again. They stand in front where the
// last axis stays, so that halves are rows of memory, else last.
static gn_array *gni_complex_prod(gn_context *g, gn_array *a, uint32_t set, bool keep) {
    const gn_shape out = gni_reduced_shape(&a->shape, set, keep), kept = gni_reduced_shape(&a->shape, set, false);
    const int front = kept.rank > 0 && (set >> (a->shape.rank - 1) & 1u) == 0, axis = front ? 0 : kept.rank;
    int order[GN_MAX_RANK], at = 0;
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < a->shape.rank; i++)
            if ((int)(set >> i & 1u) != (last == front)) order[at++] = i;
    int64_t n = 1;
    gn_shape s = kept;
    for (int i = 0; i < a->shape.rank; i++) n *= set >> i & 1u ? a->shape.dim[i] : 1;
    if (n == 0) return gn_ones(g, a->dtype, out);
    if (s.rank == GN_MAX_RANK) return gn_reshape(a, out); // nothing is reduced
    memmove(s.dim + axis + front, kept.dim + axis, sizeof(int64_t) * (size_t)(kept.rank - axis));
    s.dim[axis] = n;
    s.rank++;
    gn_array *y = gn_reshape(gn_permute_axes(a, order, a->shape.rank), s);
    for (int64_t half; n > 1 && y != NULL; n = half) {
        gn_array *part[4];
        half = (n + 1) / 2;
        if (n % 4 == 0 && gni_elements(&y->shape) >= 1 << 18) { // twice in one program, past the caches
            half = n / 4;
            for (int k = 0; k < 4; k++) part[k] = gn_slice(y, axis, k * half, (k + 1) * half, 1);
            y = gn_mul(gn_mul(part[0], part[2]), gn_mul(part[1], part[3]));
            continue;
        }
        part[0] = gn_mul(gn_slice(y, axis, 0, n / 2, 1), gn_slice(y, axis, half, n, 1));
        part[1] = n % 2 != 0 ? gn_slice(y, axis, n / 2, half, 1) : NULL;
        y = part[1] != NULL ? gn_concat(part, 2, axis) : part[0];
    }
    return gn_reshape(y, out);
}

// Whether both parts of complex numbers are summed in one pass: as two columns, which are few on a GPU.
static bool gni_sums_both(gn_context *g, gn_array *a, uint32_t set) {
    enum { ENOUGH = 8 };
    const int last = a->shape.rank - 1;
    if (gni_tracks(g, &a, 1) || a->shape.rank == GN_MAX_RANK || !gni_materialize(g, a)) return false;
    return (a->buf->where & GNI_ON_GPU) == 0 || (last >= 0 && (set >> last & 1u) == 0 && a->shape.dim[last] >= ENOUGH);
}
static gn_array *gni_complex_sum(gn_context *g, const char *fn, gn_array *a, uint32_t set, bool keep) {
    gn_shape s = a->shape, out = gni_reduced_shape(&s, set, keep);
    int64_t stride[GN_MAX_RANK];
    for (int i = 0; i < s.rank; i++) stride[i] = 2 * a->stride[i];
    stride[s.rank] = 1;
    s.dim[s.rank++] = 2;
    gn_array *parts = gni_adopt(g, gni_array_view(g, fn, a, &s, stride, 2 * a->offset));
    gn_array *y = parts != NULL ? gni_adopt(g, gni_array_empty(g, fn, a->dtype, &out)) : NULL;
    if (y == NULL) return NULL;
    const gn_dtype t = parts->dtype = gni_part_of(a->dtype);
    return gni_reduce_into(g, fn, GNI_RED_SUM, parts, t, t, set, false, NULL, y, 0);
}

// Sums of long rows on a GPU: of every FOLD-th element first, which are columns. NULL: not of such.
static gn_array *gni_complex_folds(gn_context *g, const char *fn, gn_array *a, uint32_t set, bool keep) {
    enum { FOLD = 64, MANY = 1024 };
    gn_shape s = a->shape;
    const gn_shape out = gni_reduced_shape(&s, set, keep);
    if (set == (1u << s.rank) - 1u && gni_is_contiguous(a)) { // one row
        s.dim[0] = gni_elements(&s);
        s.rank = 1;
        set = 1;
    }
    const int last = s.rank - 1;
    const bool rows = last >= 0 && (set >> last & 1u) != 0 && s.dim[last] >= MANY && a->stride[a->shape.rank - 1] == 1;
    if (!rows || s.rank + 1 >= GN_MAX_RANK) return NULL;
    const int64_t n = s.dim[last], whole = n / FOLD * FOLD;
    gn_array *x = gn_reshape(a, s), *rest = NULL;
    if (whole < n) rest = gn_sum(gn_slice(x, last, whole, n, 1), gni_axes_of(set));
    s.dim[last] = whole / FOLD;
    s.dim[s.rank++] = FOLD;
    x = gn_reshape(gn_slice(x, last, 0, whole, 1), s);
    gn_array *y = x == NULL || !gni_materialize(g, x) ? NULL : gni_complex_sum(g, fn, x, 1u << last, false);
    if (y != NULL) y = gni_complex_sum(g, fn, y, set, false);
    return gn_reshape(whole < n ? gn_add(y, rest) : y, out);
}

static gn_array *gni_simple_reduction(const char *fn, gni_reduction op, gni_backward_fn backward,
                                      gn_array *a, gn_axes axes) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    if (op == GNI_RED_SUM && gni_is_complex(a->dtype)) {
        bool keep_axes;
        const uint32_t which = gni_axes(g, fn, axes, a->shape.rank, &keep_axes);
        gn_scope_begin(g);
        gn_array *y = NULL;
        if (which != ~0u && gni_sums_both(g, a, which))
            y = gni_complex_sum(g, fn, a, which, keep_axes);
        else if (which != ~0u && !gni_tracks(g, &a, 1) && !gni_is_pending(a))
            y = gni_complex_folds(g, fn, a, which, keep_axes);
        if (y == NULL && !g->call_failed) y = gn_complex(gn_sum(gn_real(a), axes), gn_sum(gn_imag(a), axes));
        return gni_end_scope(g, y);
    }
    if (gni_is_complex(a->dtype) && (op == GNI_RED_ANY || op == GNI_RED_ALL)) {
        gn_scope_begin(g);
        return gni_end_scope(g, gni_simple_reduction(fn, op, NULL, gn_ne_s(a, 0.0), axes));
    }
    if (gni_is_complex(a->dtype) && op == GNI_RED_PROD) {
        bool keep_axes;
        const uint32_t which = gni_axes(g, fn, axes, a->shape.rank, &keep_axes);
        gn_scope_begin(g);
        return gni_end_scope(g, which == ~0u ? NULL : gni_complex_prod(g, a, which, keep_axes));
    }
    if (a->dtype == GN_U64 && (op == GNI_RED_MIN || op == GNI_RED_MAX)) {
        gn_scope_begin(g);
        gn_array *y = gni_simple_reduction(fn, op, NULL, gni_flip_sign(a), axes);
        return gni_end_scope(g, y == NULL ? NULL : gni_flip_sign(y));
    }
    gn_array *y = NULL;
    bool keep;
    uint32_t set = gni_axes(g, fn, axes, a->shape.rank, &keep);
    gn_dtype t = a->dtype, compute = t;
    if (op == GNI_RED_SUM || op == GNI_RED_PROD) {
        t = compute = gni_is_float(t) ? t : gni_is_unsigned(t) ? GN_U64 : GN_I64;
        if (gni_sums_words(g, a)) compute = a->dtype == GN_U32 ? GN_U32 : GN_I32;
    }
    if (op == GNI_RED_ANY || op == GNI_RED_ALL) t = compute = GN_BOOL;
    if (set != ~0u && gni_real_only(g, fn, &a, 1)) {
        bool extreme = op == GNI_RED_MIN || op == GNI_RED_MAX;
        if (!extreme || gni_not_empty(g, fn, a, set))
            y = gni_reduce_axes(g, fn, op, a, compute, t, set, keep);
        if (backward != NULL) gni_record_reduction(g, y, fn, backward, a, set, keep);
    }
    return gni_end(g, y);
}

#define GN_X(fn, NAME, loop, form, back)                                                           \
    GPUNUM_API gn_array *fn(gn_array *a, gn_axes axes) {                                          \
        return gni_simple_reduction(#fn, GNI_RED_##NAME, back, a, axes);                           \
    }
GNI_REDUCE_AXES(GN_X)
#undef GN_X

// Elements that one result is made of.
static int64_t gni_reduced_count(const gn_shape *s, uint32_t set) {
    gn_shape part = gni_reduced_shape(s, ~set, false);
    int64_t n = gni_elements(&part);
    return n < 0 ? INT64_MAX : n; // where there is no result
}

// What sums of powers of integers are computed in: float32 holds those of 8 bits.
static gn_dtype gni_moment_dtype(gn_dtype t) {
    if (t == GN_I16 || t == GN_U16 || (!gni_is_complex(t) && gn_dtype_size(t) >= 4 && t != GN_F32)) return GN_F64;
    return GN_F32;
}

// Whether what is computed of `a` may be on a GPU alone for which nobody can wait, as in a page: float64 is the CPU's.
static bool gni_at_remote(gn_array *a) {
    gn_context *g = a == NULL ? NULL : gni_home(a);
    if (g == NULL || g->gpu == NULL || !g->gpu->caps.no_wait || g->placement == GN_PLACE_CPU) return false;
    if (g->placement == GN_PLACE_GPU || gni_elements(&a->shape) >= gni_threshold(g, GNI_JOB_REDUCE)) return true;
    return gni_materialize(g, a) && a->buf != NULL && a->buf->where == GNI_ON_GPU;
}
#define gni_is_remote(a) (GNI_WEBGPU && gni_at_remote(a))

// The dtype for moments of `a` and b, which may be NULL, whose numbers are of dtype t.
static gn_dtype gni_moments_with(gn_dtype t, gn_array *a, gn_array *b) {
    const gn_dtype inner = gni_moment_dtype(t);
    return t != GN_F64 && inner == GN_F64 && (gni_is_remote(a) || gni_is_remote(b)) ? GN_F32 : inner;
}
static gn_dtype gni_moments_of(gn_array *a) { return gni_moments_with(a->dtype, a, NULL); }

GPUNUM_API gn_array *gn_mean(gn_array *a, gn_axes axes) {
    gn_context *g = gni_begin("gn_mean", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL, *total = NULL;
    bool keep;
    uint32_t set = gni_axes(g, "gn_mean", axes, a->shape.rank, &keep);
    if (gni_is_complex(a->dtype)) {
        gn_scope_begin(g);
        return gni_end_scope(g, set == ~0u ? NULL : gn_div_s(gn_sum(a, axes), (double)gni_reduced_count(&a->shape, set)));
    }
    if (set != ~0u && gni_real_only(g, "gn_mean", &a, 1)) {
        gn_dtype t = gni_is_float(a->dtype) ? a->dtype : GN_F32;
        // The sum of many float16 leaves their range long before the mean does; that of int64 wraps.
        bool exact = !gni_is_float(a->dtype) && gn_dtype_size(a->dtype) < 8;
        gn_dtype acc = exact ? GN_I64 : gni_moments_of(a);
        if (gn_dtype_size(a->dtype) < 4 && gni_sums_words(g, a)) acc = GN_F32; // which holds these, and no float64 is there
        const gni_finish by = {true, false, (double)gni_reduced_count(&a->shape, set)};
        const bool once = acc != GN_I64 && gni_finishes(g);
        total = gni_reduce_into(g, "gn_mean", GNI_RED_SUM, a, acc, once ? t : acc, set, keep, once ? &by : NULL, NULL, 0);
        if (once) {
            y = total;
        } else if (total != NULL) {
            gn_array *src[2];
            double konst[2] = {0.0, 0.0};
            src[0] = total;
            src[1] = NULL;
            konst[1] = by.divisor;
            gn_dtype div = acc != GN_I64 ? acc : gni_is_remote(a) ? GN_F32 : GN_F64;
            gn_array *q = gni_apply(g, "gn_mean", GNI_OP_DIV, div, div, src, konst, 2);
            if (q != NULL && div != t) {
                y = gni_apply(g, "gn_mean", GNI_OP_CAST, div, t, &q, NULL, 1);
                gni_unref(g, q);
            } else {
                y = q;
            }
            gni_unref(g, total);
        }
        gni_record_reduction(g, y, "gn_mean", gni_back_mean, a, set, keep);
    }
    return gni_end(g, y);
}

// y: the sums of a and b, which a GPU makes in one pass. False: nothing was done, unless g->call_failed.
static bool gni_sum_two(gn_context *g, gn_array *const *a, uint32_t set, gn_array **y) {
    gni_builder b;
    gni_reduce r;
    gn_array *product;
    const gn_dtype t = a[0]->dtype;
    const bool wide = gni_is_wide(t);
    const gn_shape shape = gni_reduced_shape(&a[0]->shape, set, true);
    const int64_t kept = gni_elements(&shape);
    if (g->gpu == NULL || gni_tracks(g, a, 2) || a[1]->dtype != t || (t != GN_F32 && t != GN_F64)) return false;
    if (kept < 1 || gni_elements(&a[0]->shape) < 1 || !gni_same_shape(&a[0]->shape, &a[1]->shape)) return false;
    for (int i = 0; i < 2; i++) {
        if (!gni_tree_prepare(g, a[i], false, &product)) return false;
        if (gni_is_pending(a[i]) && a[i]->expr->wide != wide) return false;
    }
    gni_build_begin(&b, g, &a[0]->shape, wide);
    gni_program *p = &b.map.program;
    p->n_out = 2;
    for (int i = 0; i < 2; i++) {
        p->out_dtype[i] = t;
        p->out_reg[i] = gni_build_value(&b, a[i]);
    }
    if (b.full) return false;
    gni_build_finish(p);
    gni_reduce_built(&r, &b, GNI_RED_SUM, GNI_F, set);
    const gn_shape pair = GN_SHAPE(2, kept);
    gn_array *both = gni_adopt(g, gni_array_empty(g, g->call, t, &pair));
    if (both == NULL) return false;
    r.out.buf = both->buf;
    r.out.dtype = t;
    r.apart = kept;
    const bool ok = gni_reduce_to(g, &r, both, true);
    for (int i = 0; i < 2 && ok; i++) y[i] = gn_reshape(gn_slice(both, 0, i, i + 1, 1), shape);
    return ok;
}

// The sums of a[0] and a[1], of one shape, over the axes in `set`, which stay with size 1.
static bool gni_sum_pair(gn_context *g, gn_array *const *a, uint32_t set, gn_array **y) {
    y[0] = y[1] = NULL;
    if (a[0] == NULL || a[1] == NULL) return false;
    if (!gni_sum_two(g, a, set, y))
        for (int i = 0; i < 2 && !g->call_failed; i++) y[i] = gn_sum(a[i], GN_KEEP(gni_axes_of(set)));
    return y[0] != NULL && y[1] != NULL;
}

// The float16 or bfloat16 array that `a` is, waiting to be widened to float32, or `a`.
static gn_array *gni_before_widening(gn_array *a) {
    const gni_expr *e = a != NULL ? a->expr : NULL;
    if (e == NULL || e->op != GNI_OP_CAST || a->dtype != GN_F32 || e->src[0] == NULL || gni_is_pending(e->src[0])) return a;
    const gn_dtype t = e->src[0]->dtype;
    return (t == GN_F16 || t == GN_BF16) && e->compute == t && gni_same_shape(&e->src[0]->shape, &a->shape) ? e->src[0] : a;
}

// The same, where that has yet to be computed; NULL: it failed.
static gn_array *gni_widening_of(gn_context *g, gn_array *a) {
    const gni_expr *e = a->expr;
    if (e == NULL || e->op != GNI_OP_CAST || g->gpu == NULL || e->src[0] == NULL) return a;
    return gni_materialize(g, e->src[0]) ? gni_before_widening(a) : NULL;
}

// The mean, unless it is NULL, and the variance of `a`, which has its data, in dtype t over the axes in `set`, which stay
// with size 1, in one pass on a GPU. False: nothing was done, unless g->call_failed.
static bool gni_moments(gn_context *g, gn_array *a, gn_dtype t, uint32_t set, double ddof, gn_array **mean, gn_array **var) {
    gni_builder b;
    gni_reduce r;
    const gn_shape shape = gni_reduced_shape(&a->shape, set, true), pair = GN_SHAPE(2, gni_elements(&shape));
    const double n = (double)gni_reduced_count(&a->shape, set);
    if (g->gpu == NULL || gni_is_pending(a) || gni_elements(&a->shape) < 1 || gni_tracks(g, &a, 1)) return false;
    if ((gni_is_wide(a->dtype) && !gni_is_wide(t)) || !gni_stays_on_gpu(g, a)) return false;
    gni_build_begin(&b, g, &a->shape, gni_is_wide(t));
    gni_program *p = &b.map.program;
    p->n_out = 2;
    p->out_dtype[0] = p->out_dtype[1] = t;
    p->out_reg[0] = p->out_reg[1] = gni_build_convert(&b, gni_build_value(&b, a), a->dtype, t);
    if (b.full) return false;
    gni_build_finish(p);
    gni_reduce_built(&r, &b, GNI_RED_SUM, GNI_F, set);
    gn_array *both = gni_adopt(g, gni_array_empty(g, g->call, t, &pair));
    if (both == NULL) return false;
    r.out.buf = both->buf;
    r.out.dtype = t;
    r.apart = pair.dim[1];
    r.moments = true;
    r.rest = GNI_MAX(n - ddof, 0.0);
    if (!gni_reduce_to(g, &r, both, true)) return false;
    *var = gn_reshape(gn_slice(both, 0, 0, 1, 1), shape);
    if (mean != NULL) *mean = gn_reshape(gn_slice(both, 0, 1, 2, 1), shape);
    return *var != NULL;
}

// A job of rows, whose contiguous operands are x, gy and what else j has; its result, of dtype t and that shape. NULL:
// nothing was done, unless g->call_failed.
static gn_array *gni_rows_run(gn_context *g, gni_rows *j, gn_array *x, gn_array *gy, gn_dtype t, gn_shape shape) {
    gn_array *in[2] = {x, gy}, *y = NULL;
    gni_operand *const op[2] = {&j->x, &j->gy};
    if (g->gpu == NULL || gni_elements(&x->shape) < 1) return NULL;
    for (int i = 0; i < 2; i++) {
        if (in[i] == NULL) continue;
        in[i] = gni_adopt(g, gni_contiguous(g, gni_before_widening(in[i])));
        if (in[i] == NULL) return NULL;
        gni_take_operand(in[i], op[i]);
    }
    y = gni_adopt(g, gni_array_empty(g, g->call, t, &shape));
    if (y == NULL) return NULL;
    gni_take_operand(y, &j->out);
    return gni_run_on_gpu(g, &gni_kind_rows, j, y) ? y : NULL;
}

enum { GNI_ROWS_LEAST = 32 };

// Whether `set` is the last axes of s, and some of them: rows of n elements then.
static bool gni_last_axes(const gn_shape *s, uint32_t set, int *lead, int64_t *rows, int64_t *n) {
    *lead = 0;
    while (*lead < s->rank && !(set >> *lead & 1u)) ++*lead;
    if (*lead == s->rank || set != ((1u << s->rank) - 1u) - ((1u << *lead) - 1u)) return false;
    *rows = gni_extent_product(s->dim, *lead);
    *n = gni_extent_product(s->dim + *lead, s->rank - *lead);
    return true;
}

// The variance over the last axes, those of `set`, or its root, in one pass. NULL: nothing was done, unless g->call_failed.
static gn_array *gni_variance_rows(gn_context *g, gn_array *a, uint32_t set, bool keep, double ddof, bool root) {
    gni_rows j;
    int lead;
    memset(&j, 0, sizeof j);
    if (g->gpu == NULL || gni_is_pending(a) || !gni_is_contiguous(a) || gni_tracks(g, &a, 1) || gni_moments_of(a) != GN_F32 ||
        !gni_is_float(a->dtype) || !gni_last_axes(&a->shape, set, &lead, &j.rows, &j.n))
        return NULL;
    if (j.n < GNI_ROWS_LEAST || j.rows < GNI_ROWS_LEAST) return NULL; // reductions cut few rows into parts
    j.kind = GNI_ROWS_VARIANCE;
    j.root = root;
    j.eps = GNI_MAX((double)j.n - ddof, 0.0);
    return gni_rows_run(g, &j, a, NULL, a->dtype, gni_reduced_shape(&a->shape, set, keep));
}

// The root of a sum of squares. Its slope is infinite at 0, where all the squares' slopes are 0: the gradient
// there is taken to be 0, as in PyTorch, not 0 times infinity.
static gn_array *gni_root(gn_context *g, gn_array *squares) {
    if (squares == NULL || !gni_tracks(g, &squares, 1)) return gn_sqrt(squares);
    gn_array *zero = gn_eq_s(squares, 0.0);
    return gn_where(zero, gn_zeros_like(squares),
                    gn_sqrt(gn_where(zero, gn_ones_like(squares), squares)));
}

// The variance or, before it is rounded, its root.
static gn_array *gni_var(const char *fn, gn_array *a, gn_axes axes, double ddof, bool root) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    bool keep;
    uint32_t set = gni_axes(g, fn, axes, a->shape.rank, &keep);
    gn_scope_begin(g);
    if (set == ~0u) return gni_end_scope(g, NULL);
    if (gni_is_complex(a->dtype)) {
        y = gn_add(gn_var(gn_real(a), axes, ddof), gn_var(gn_imag(a), axes, ddof));
        return gni_end_scope(g, root ? gni_root(g, y) : y);
    }
    const gn_dtype t = gni_is_float(a->dtype) ? a->dtype : GN_F32, inner = gni_moments_of(a);
    y = gni_variance_rows(g, a, set, keep, ddof, root);
    if (y != NULL || g->call_failed) return gni_end_scope(g, y);
    if (gni_moments(g, a, inner, set, ddof, NULL, &y)) {
        y = gn_reshape(y, gni_reduced_shape(&a->shape, set, keep));
    } else {
        gn_array *x = gni_as(a, inner);
        gn_array *centred = gn_square(gn_sub(x, gn_mean(x, GN_KEEP(axes))));
        double n = (double)gni_reduced_count(&a->shape, set) - ddof;
        y = gn_div_s(gn_sum(centred, axes), n > 0.0 ? n : 0.0);
    }
    return gni_end_scope(g, gni_as(root ? gni_root(g, y) : y, t));
}

GPUNUM_API gn_array *gn_var(gn_array *a, gn_axes axes, double ddof) { return gni_var("gn_var", a, axes, ddof, false); }
GPUNUM_API gn_array *gn_std(gn_array *a, gn_axes axes, double ddof) { return gni_var("gn_std", a, axes, ddof, true); }

GPUNUM_API gn_array *gn_norm(gn_array *a, gn_axes axes) {
    gn_context *g = gni_begin_scope("gn_norm", &a, 1);
    if (g == NULL) return NULL;
    const bool parts = gni_is_complex(a->dtype);
    gn_array *x = parts ? gn_real(a) : a;
    gn_dtype t = gn_dtype_of(x), inner = x != NULL ? gni_moments_of(x) : t;
    if (inner != t) x = gn_cast(x, inner);
    gn_array *squares = gn_square(x);
    if (parts) squares = gn_add(squares, gn_square(gn_imag(a)));
    if (!gni_is_float(t)) t = GN_F32;
    const gni_finish root = {false, true, 0.0};
    bool keep;
    const uint32_t set = gni_axes(g, "gn_norm", axes, a->shape.rank, &keep);
    if (set == ~0u || squares == NULL) return gni_end_scope(g, NULL);
    if (gni_tracks(g, &squares, 1) || !gni_finishes(g))
        return gni_end_scope(g, gni_as(gni_root(g, gn_sum(squares, axes)), t));
    gn_array *y = gni_reduce_into(g, "gn_norm", GNI_RED_SUM, squares, inner, t, set, keep, &root, NULL, 0);
    return gni_end_scope(g, gni_adopt(g, y));
}

GPUNUM_API gn_array *gn_count_nonzero(gn_array *a, gn_axes axes) {
    gn_context *g = gni_begin_scope("gn_count_nonzero", &a, 1);
    if (g == NULL) return NULL;
    gn_array *truth = a->dtype == GN_BOOL ? a : gn_ne_s(a, 0.0);
    return gni_end_scope(g, gn_sum(truth, axes));
}

static gn_array *gni_arg_reduction(const char *fn, gni_reduction op, gn_array *a, gn_axes axes);

// Places of more than 32 bits: those of pieces of the axis, and then the piece with the first smallest or largest of theirs.
static gn_array *gni_arg_in_pieces(gn_context *g, const char *fn, gni_reduction op, gn_array *a, int axis) {
    enum { MOST = 64 };
    const int64_t n = a->shape.dim[axis], step = GNI_MAX((int64_t)1 << 30, n / MOST + 1);
    gn_array *value[MOST], *place[MOST];
    int count = 0;
    for (int64_t at = 0; at < n; at += step, count++) {
        gn_array *piece = gn_slice(a, axis, at, GNI_MIN(at + step, n), 1);
        place[count] = gni_arg_reduction(fn, op, piece, GN_KEEP(axis));
        value[count] = gn_take_along(piece, place[count], axis);
        place[count] = gn_add(place[count], gn_full_int(g, GN_I64, GN_SHAPE(), at));
    }
    gn_array *best = gni_arg_reduction(fn, op, gn_concat(value, count, axis), GN_KEEP(axis));
    return gn_take_along(gn_concat(place, count, axis), best, axis);
}

static gn_array *gni_arg_reduction(const char *fn, gni_reduction op, gn_array *a, gn_axes axes) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    if (a->dtype == GN_U64) {
        gn_scope_begin(g);
        return gni_end_scope(g, gni_arg_reduction(fn, op, gni_flip_sign(a), axes));
    }
    gn_array *y = NULL;
    bool keep;
    const int rank = a->shape.rank;
    uint32_t set = gni_axes(g, fn, axes, rank, &keep);
    if (set != ~0u && (set == 0 || (set & (set - 1)) != 0) && set != (1u << rank) - 1u) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: one axis or GN_ALL is asked for, not some", fn);
        set = ~0u;
    }
    if (set != ~0u && gni_real_only(g, fn, &a, 1) && gni_not_empty(g, fn, a, set)) {
        if (gni_reduced_count(&a->shape, set) > INT32_MAX) {
            const bool all = (set & (set - 1)) != 0;
            int axis = 0;
            while (!all && (set >> axis & 1) == 0) axis++;
            gn_scope_begin(g);
            gn_shape s = gni_reduced_shape(&a->shape, set, keep);
            y = gni_arg_in_pieces(g, fn, op, all ? gn_ravel(a) : a, axis);
            return gni_end_scope(g, gn_reshape(y, s));
        }
        const bool words = GNI_TEXTS(g->gpu) && a->dtype == GN_I64 && gni_reads_gpu(a); // which have no places
        if (words) {
            gn_scope_begin(g);
            gn_array *best = op == GNI_RED_ARGMIN ? gn_min(a, GN_KEEP(axes)) : gn_max(a, GN_KEEP(axes));
            return gni_end_scope(g, gni_arg_reduction(fn, GNI_RED_ARGMAX, gn_eq(a, best), axes));
        }
        y = gni_reduce_axes(g, fn, op, a, a->dtype, GN_I64, set, keep); // which GPUs without int64 write, too
    }
    return gni_end(g, y);
}

#define GN_X(fn, NAME, loop, form)                                                                 \
    GPUNUM_API gn_array *fn(gn_array *a, gn_axes axes) {                                           \
        return gni_arg_reduction(#fn, GNI_RED_##NAME, a, axes);                                    \
    }
GNI_REDUCE_PLACE(GN_X)
#undef GN_X

// ---- softmax and its relatives

// Over the last axis of `a`, which is float; logsumexp leaves two numbers of it there, see gni_softmax.
static gn_array *gni_softmax_last(gn_context *g, const char *fn, gni_softmax_kind kind, gn_array *a) {
    const gn_dtype t = kind == GNI_LOGSUMEXP && a->dtype != GN_F64 ? GN_F32 : a->dtype;
    gn_array *x = gni_contiguous(g, a);
    if (x == NULL) return NULL;
    gn_shape shape = a->shape;
    if (kind == GNI_LOGSUMEXP) shape.dim[shape.rank - 1] = 2;
    if (kind == GNI_LOGSUMEXP && a->shape.dim[a->shape.rank - 1] == 0) { // of nothing
        gni_unref(g, x);
        return gni_const(g, fn, t, &shape, -GNI_INF);
    }
    gn_array *y = gni_array_empty(g, fn, t, &shape);
    bool ok = y != NULL;
    if (ok && gni_elements(&a->shape) > 0) {
        GNI_ZEROED(gni_softmax, s);
        s.kind = kind;
        s.n = a->shape.dim[a->shape.rank - 1];
        s.rows = gni_elements(&a->shape) / s.n;
        s.row_stride = s.n;
        s.in.buf = x->buf;
        s.in.dtype = a->dtype;
        s.in.offset = x->offset;
        s.out.buf = y->buf;
        s.out.dtype = t;
        ok = gni_run(g, &gni_kind_softmax, &s, y);
    }
    gni_unref(g, x);
    if (ok) return y;
    gni_unref(g, y);
    return NULL;
}

// Whether what float64 numbers are, which get their data, is made on the GPU: they are there, or all is.
static bool gni_is_there(gn_context *g, gn_array *x) {
    if (g->gpu == NULL || !g->gpu->caps.float64 || g->placement == GN_PLACE_CPU || !gni_materialize(g, x)) return false;
    return gni_stays_on_gpu(g, x);
}

// Over the axes in `set`, which stay, of maxima and sums: of float64 on a GPU, whose kernels of rows are float32's, and of
// many short rows. *y stays NULL where that is not so; false after an error. logsumexp has two results, as in gni_log_sum.
static bool gni_softmax_made(gn_context *g, gni_softmax_kind kind, gn_array *x, uint32_t set, gn_array **top, gn_array **y) {
    enum { FEW = 32, MANY = 2048 };
    if (x == NULL || x->dtype != GN_F64 || gni_elements(&x->shape) == 0) return !g->call_failed;
    const bool lots = gni_reduced_count(&x->shape, set) <= FEW && gni_elements(&x->shape) >= MANY;
    if (!lots && !gni_is_there(g, x)) return !g->call_failed;
    const gn_axes axes = GN_KEEP(gni_axes_of(set));
    gn_array *most = gn_max(x, axes);
    if (kind != GNI_SOFTMAX) most = gn_eval(gn_where(gn_isfinite(most), most, gn_scalar(g, GN_F64, 0.0)));
    gn_array *sum = gn_sum(gn_exp(gn_sub(x, most)), axes);
    if (kind == GNI_SOFTMAX) {
        *y = gn_div(gn_exp(gn_sub(x, most)), sum);
    } else {
        gn_array *log = gn_eval(gn_log(sum));
        *y = kind == GNI_LOGSUMEXP ? log : gn_sub(gn_sub(x, most), log);
    }
    if (kind == GNI_LOGSUMEXP) *top = most;
    return *y != NULL;
}

static gn_array *gni_softmax_axis(const char *fn, gni_softmax_kind kind, gni_backward_fn backward,
                                  gn_array *a, int axis) {
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    if (gni_autocasts_back(g, a)) return gni_end_scope(g, gni_softmax_axis(fn, kind, backward, gn_cast(a, GN_F32), axis));
    gn_array *y = NULL;
    int at = gni_axis(g, fn, axis, a->shape.rank);
    if (at >= 0 && gni_real_only(g, fn, &a, 1)) {
        g->no_grad++; // recorded as one op
        gn_array *x = gni_is_float(a->dtype) ? a : gn_cast(a, GN_F32);
        bool last = at == a->shape.rank - 1, made = gni_softmax_made(g, kind, x, 1u << at, NULL, &y);
        gn_array *moved = !made || y != NULL ? NULL : last ? x : gn_move_axis(x, at, -1);
        if (moved != NULL) {
            gn_array *result = gni_softmax_last(g, fn, kind, moved);
            result = gni_adopt(g, result);
            y = last || result == NULL ? result : gn_move_axis(result, -1, at);
        }
        g->no_grad--;
        gni_note(gni_record(g, y, fn, backward, &a, 1), at, 0, 0);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_softmax(gn_array *a, int axis) {
    return gni_softmax_axis("gn_softmax", GNI_SOFTMAX, gni_back_softmax, a, axis);
}
GPUNUM_API gn_array *gn_log_softmax(gn_array *a, int axis) {
    return gni_softmax_axis("gn_log_softmax", GNI_LOG_SOFTMAX, gni_back_log_softmax, a, axis);
}

// Reduced axes as one behind the others, which are one too.
static gn_array *gni_reduced_rows(gn_array *x, uint32_t set) {
    int order[GN_MAX_RANK], n = 0;
    if (x == NULL) return NULL;
    const gn_shape others = gni_reduced_shape(&x->shape, set, false);
    const int64_t count = gni_reduced_count(&x->shape, set), all = gni_elements(&others);
    for (int i = 0; i < x->shape.rank; i++)
        if (!(set >> i & 1u)) order[n++] = i;
    for (int i = 0; i < x->shape.rank; i++)
        if (set >> i & 1u) order[n++] = i;
    return gn_reshape(n > 0 ? gn_permute_axes(x, order, n) : x, GN_SHAPE(all, count));
}

// The logarithm of the sum of exp(x - top) over the axes in `set`, which stay. Not with the largest x, *top, for which
// rounding would take digits from it.
static gn_array *gni_log_sum(gn_context *g, gn_array *x, uint32_t set, gn_array **top) {
    gn_array *in[2], *y = *top = NULL;
    g->no_grad++;
    gn_array *from = gni_widening_of(g, x);
    if (from != NULL && gni_softmax_made(g, GNI_LOGSUMEXP, from, set, top, &y) && y == NULL) {
        const gn_shape shape = gni_reduced_shape(&x->shape, set, true);
        int64_t stride[GN_MAX_RANK];
        gn_array *both = gni_reduced_rows(from, set);
        if (both != NULL) both = gni_adopt(g, gni_softmax_last(g, g->call, GNI_LOGSUMEXP, both));
        gni_strides_of(&shape, stride);
        for (int i = 0; i < shape.rank; i++) stride[i] *= 2;
        for (int i = 0; i < 2 && both != NULL; i++)
            *(i == 0 ? top : &y) = gni_adopt(g, gni_array_view(g, g->call, both, &shape, stride, both->offset + i));
    }
    g->no_grad--;
    in[0] = x;
    in[1] = *top;
    gni_record(g, y, g->call, gni_back_log_sum, in, 2);
    return y;
}

GPUNUM_API gn_array *gn_logsumexp(gn_array *a, gn_axes axes) {
    gn_context *g = gni_begin_scope("gn_logsumexp", &a, 1);
    if (g == NULL) return NULL;
    if (gni_autocasts_back(g, a)) return gni_end_scope(g, gn_logsumexp(gn_cast(a, GN_F32), axes));
    gn_array *y = NULL;
    bool keep;
    uint32_t set = gni_axes(g, "gn_logsumexp", axes, a->shape.rank, &keep);
    gn_shape shape = gni_reduced_shape(&a->shape, set, keep);
    if (set != ~0u && gni_real_only(g, "gn_logsumexp", &a, 1) &&
        gni_shape_ok(g, "gn_logsumexp", a->dtype, &shape)) {
        gn_array *x = gni_is_float(a->dtype) ? a : gn_cast(a, GN_F32), *top = NULL;
        if (x != NULL) y = gni_log_sum(g, x, set, &top);
        y = gn_add(gn_reshape(top, shape), gn_reshape(y, shape));
        if (y != NULL) y = gni_as(y, x->dtype);
    }
    return gni_end_scope(g, y);
}
