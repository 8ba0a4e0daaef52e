// >>create
// Arrays from nothing: constants (lazy) and sequences (computed in double on the CPU, as NumPy does).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/access.h"
#endif

#define GNI_STEPS_DRAWN 256 // from so many on they are not made at once

// start + i step for all i, and the last one `last` unless that is NULL; the common dtypes in loops of their own, over 16,
// which compilers turn into vectors.
#define GNI_STEPS_OF(T)                                                                            \
    for (; i + 16 <= n; i += 16, at += 16.0)                                                       \
        for (int j = 0; j < 16; j++) ((T *)data + i)[j] = (T)(start + (at + (double)j) * step);    \
    for (; i < n; i++) ((T *)data)[i] = (T)(start + (double)i * step);
static GNI_NOINLINE void gni_store_steps(gn_dtype t, void *data, int64_t n, double start, double step, const double *last) {
    const double most = GNI_MAX(fabs(start), fabs(start + (double)n * step));
    int64_t i = 0;
    double at = 0.0;
    if (t == GN_F32) {
        GNI_STEPS_OF(float)
    } else if (t == GN_F64) {
        GNI_STEPS_OF(double)
    } else if (t == GN_I32 && most < 2147483647.0) { // none is saturated
        GNI_STEPS_OF(int32_t)
    } else if (t == GN_I64 && most < 9e18) {
        GNI_STEPS_OF(int64_t)
    } else {
        for (; i < n; i++) gni_store_double(t, data, i, start + (double)i * step);
    }
    if (last != NULL) gni_store_double(t, data, n - 1, gni_is_integer(t) ? floor(*last) : *last);
}
#undef GNI_STEPS_OF

static bool gni_draw_steps(gn_context *g, gni_buffer *b, uint32_t side) {
    GNI_ZEROED(gni_random, job);
    job.kind = GNI_RAND_STEPS;
    job.n = (int64_t)(b->bytes / gn_dtype_size(b->drawn));
    job.range = b->ends ? (uint64_t)job.n : 0;
    job.numbers[GNI_D_FIRST] = b->first;
    job.numbers[GNI_D_STEP] = b->step;
    job.numbers[GNI_D_LAST] = b->last;
    job.out.buf = b;
    job.out.dtype = b->drawn;
    job.out.stride[0] = 1;
    if (side == GNI_ON_GPU && gni_backend_gpu()->supports(g, GNI_JOB_RANDOM, &job))
        return gni_backend_gpu()->run(g, GNI_JOB_RANDOM, &job);
    if (!gni_buffer_memory(g, b, GNI_ON_CPU)) return false;
    gni_store_steps(b->drawn, b->host, job.n, b->first, b->step, b->ends ? &b->last : NULL);
    b->where |= GNI_ON_CPU;
    return side == GNI_ON_CPU || gni_gpu_upload(g->gpu, &b->device, 0, b->host, b->bytes);
}

// (n): first + i step, and the last one `last` unless that is NULL; where there is a GPU made where it is read first.
static gn_array *gni_steps(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s, double first, double step,
                           const double *last) {
    const int64_t n = s->dim[0];
    const double most = GNI_MAX(fabs(first), fabs(first + (double)n * step));
    const bool fits = t == GN_F32 || t == GN_F64 || (t == GN_I32 && most < 2147483647.0) || (t == GN_I64 && most < 9e18);
    void *data;
    gn_array *y;
    // For very many there may be no memory, which is said at once.
    if (GNI_CPU_ALONE || g->gpu == NULL || !fits || n < GNI_STEPS_DRAWN || n > INT32_MAX) {
        y = gni_array_filled(g, fn, t, s, &data);
        if (y != NULL) gni_store_steps(t, data, n, first, step, last);
        return y;
    }
    y = gni_array_empty(g, fn, t, s);
    if (y == NULL) return NULL;
    y->buf->draw = gni_draw_steps;
    y->buf->drawn = t;
    y->buf->first = first;
    y->buf->step = step;
    y->buf->ends = last != NULL;
    if (last != NULL) y->buf->last = *last;
    return y;
}

static gn_array *gni_make_full(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s,
                               double value) {
    if (!gni_shape_ok(g, fn, t, s) || !gni_number_ok(g, fn, t, value)) return NULL;
    if (t != GN_C64 && t != GN_C128) return gni_const(g, fn, t, s, value);
    const gn_shape one = gn_shape_from(0, NULL); // programs have no complex constants: copies of one number
    const int64_t stride[GN_MAX_RANK] = {0};
    void *data;
    gn_array *x = gni_array_filled(g, fn, t, &one, &data), *view = NULL, *y = NULL;
    if (x != NULL) {
        gni_store_double(t, data, 0, value);
        view = gni_array_view(g, fn, x, s, stride, x->offset);
    }
    if (view != NULL) y = gni_apply(g, fn, GNI_OP_CAST, t, t, &view, NULL, 1);
    if (y != NULL && !gni_materialize(g, y)) {
        gni_unref(g, y);
        y = NULL;
    }
    gni_unref(g, view);
    gni_unref(g, x);
    return y;
}

static gn_array *gni_public_full(const char *fn, gn_context *g, gn_dtype t, const gn_shape *s,
                                 double value) {
    if (!gni_begin_context(fn, g)) return NULL;
    return gni_end(g, gni_make_full(g, fn, t, s, value));
}

static gn_array *gni_public_full_like(const char *fn, gn_array *a, double value) {
    gn_context *g = gni_begin(fn, &a, 1);
    return g == NULL ? NULL : gni_end(g, gni_make_full(g, fn, a->dtype, &a->shape, value));
}

GPUNUM_API gn_array *gn_zeros(gn_context *g, gn_dtype t, gn_shape s) {
    return gni_public_full("gn_zeros", g, t, &s, 0.0);
}

GPUNUM_API gn_array *gn_ones(gn_context *g, gn_dtype t, gn_shape s) {
    return gni_public_full("gn_ones", g, t, &s, 1.0);
}

GPUNUM_API gn_array *gn_full(gn_context *g, gn_dtype t, gn_shape s, double value) {
    return gni_public_full("gn_full", g, t, &s, value);
}

GPUNUM_API gn_array *gn_full_int(gn_context *g, gn_dtype t, gn_shape s, int64_t value) {
    static const char *const fn = "gn_full_int";
    if (!gni_begin_context(fn, g)) return NULL;
    gn_scope_begin(g);
    gn_array *y = NULL;
    if (gni_shape_ok(g, fn, t, &s)) {
        double low = 0.0, high = 0.0;
        if (gni_is_integer(t)) gni_integer_range(t, &low, &high);
        if (high != 0.0 && gn_dtype_size(t) < 8 ? (double)value < low || (double)value > high : t == GN_U64 && value < 0)
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: %lld is outside of %s", fn, (long long)value, gn_dtype_name(t));
        else if (value >> 52 == 0) // float64 holds it
            return gni_end_scope(g, gni_adopt(g, gni_make_full(g, fn, t, &s, (double)value)));
        else
            y = gni_adopt(g, gni_const(g, fn, GN_I64, &s, (double)(value & ~(int64_t)1023)));
        if (y != NULL) {
            y->expr->konst[1] = (double)(value & 1023);
            if (t != GN_I64) y = gn_cast(y, t);
        }
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_full_from(gn_context *g, gn_dtype t, gn_shape s, const void *value) {
    if (!gni_begin_context("gn_full_from", g)) return NULL;
    gn_scope_begin(g);
    gn_array *y = NULL;
    if (value == NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_full_from: value is NULL");
    else if (gni_shape_ok(g, "gn_full_from", t, &s))
        y = gn_copy(gn_broadcast_to(gn_array_from(g, t, gn_shape_from(0, NULL), value), s));
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_scalar(gn_context *g, gn_dtype t, double value) {
    gn_shape s = gn_shape_from(0, NULL);
    return gni_public_full("gn_scalar", g, t, &s, value);
}

GPUNUM_API gn_array *gn_zeros_like(gn_array *a) {
    return gni_public_full_like("gn_zeros_like", a, 0.0);
}

GPUNUM_API gn_array *gn_ones_like(gn_array *a) {
    return gni_public_full_like("gn_ones_like", a, 1.0);
}

GPUNUM_API gn_array *gn_full_like(gn_array *a, double value) {
    return gni_public_full_like("gn_full_like", a, value);
}

GPUNUM_API gn_array *gn_empty(gn_context *g, gn_dtype t, gn_shape s) {
    if (!gni_begin_context("gn_empty", g)) return NULL;
    return gni_end(g, gni_array_empty(g, "gn_empty", t, &s));
}

GPUNUM_API gn_array *gn_empty_like(gn_array *a) {
    gn_context *g = gni_begin("gn_empty_like", &a, 1);
    return g == NULL ? NULL : gni_end(g, gni_array_empty(g, "gn_empty_like", a->dtype, &a->shape));
}

// Of large ones a GPU makes more in the same time than a CPU sends it, and a pending one is mostly never stored.
static gn_array *gni_pending_eye(gn_context *g, gn_dtype t, int64_t n, int64_t m, int64_t k) {
    gn_scope_begin(g);
    k = GNI_MAX(-n, GNI_MIN(k, m));
    gn_dtype index = n < INT32_MAX / 2 && m < INT32_MAX / 2 ? GN_I32 : GN_I64;
    gn_array *i = gn_expand_dims(gn_arange(g, index, (double)k, (double)(k + n), 1.0), -1);
    gn_array *y = gn_cast(gn_eq(gn_arange(g, index, 0.0, (double)m, 1.0), i), t);
    if (y != NULL) y->maker = "gn_eye";
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_eye(gn_context *g, gn_dtype t, int64_t n, int64_t m, int64_t k) {
    if (!gni_begin_context("gn_eye", g)) return NULL;
    gn_shape s = {2, {n, m}};
    void *data;
    if (g->gpu != NULL && !gni_is_complex(t) && n > 64 && m > 64 && gni_shape_ok(g, "gn_eye", t, &s))
        return gni_pending_eye(g, t, n, m, k);
    gn_array *y = gni_array_filled(g, "gn_eye", t, &s, &data);
    if (y == NULL) return gni_end(g, NULL);
    memset(data, 0, (size_t)(n * m) * gn_dtype_size(t)); // zero of every dtype is zero bits
    int64_t row = k < 0 ? (k < -n ? n : -k) : 0;
    for (; row < n && k < m - row; row++) gni_store_double(t, data, row * m + row + k, 1.0);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_arange(gn_context *g, gn_dtype t, double start, double stop, double step) {
    if (!gni_begin_context("gn_arange", g)) return NULL;
    double length = ceil((stop - start) / step);
    if (!(fabs(length) < GNI_INF)) {
        gni_fail(g, GN_ERROR_ARGUMENT,
                 "gn_arange: cannot compute the length from start %g, stop %g, step %g", start,
                 stop, step);
        return gni_end(g, NULL);
    }
    if (length >= 9e18) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_arange: %g elements are too many", length);
        return gni_end(g, NULL);
    }
    int64_t n = length > 0.0 ? (int64_t)length : 0;
    gn_shape s = {1, {n}};
    // NumPy's rule: the distance of the first two values, not `step`, is what is repeated.
    double delta = (start + step) - start, last = start + (double)(n - 1) * delta;
    bool ok = gni_shape_ok(g, "gn_arange", t, &s);
    if (n > 0) ok = ok && gni_number_ok(g, "gn_arange", t, start) && gni_number_ok(g, "gn_arange", t, last);
    return gni_end(g, ok ? gni_steps(g, "gn_arange", t, &s, start, delta, NULL) : NULL);
}

// Numbers at even distances, the last one of them `stop` or, if that is left open, the next one would be; with `base` that
// to their power.
static gn_array *gni_spaced(const char *fn, gn_context *g, gn_dtype t, double start, double stop, int64_t count,
                            const double *base, bool open) {
    if (!gni_begin_context(fn, g)) return NULL;
    gn_shape s = {1, {count}};
    void *data;
    bool ok = gni_shape_ok(g, fn, t, &s);
    if (count > 0) ok = ok && gni_number_ok(g, fn, t, base != NULL ? pow(*base, start) : floor(start));
    double divisions = open ? (double)count : (double)count - 1.0, delta = stop - start, step = delta / divisions;
    const double last = open ? start + ((double)count - 1.0) * step : stop;
    if (count > 1) ok = ok && gni_number_ok(g, fn, t, base != NULL ? pow(*base, last) : floor(last));
    const bool whole = gni_is_integer(t);
    if (ok && base == NULL && count > 1 && step != 0 && (!whole || (start >= 0 && stop >= 0))) // floor is cutting off
        return gni_end(g, gni_steps(g, fn, t, &s, start, step, open ? NULL : &stop));
    gn_array *y = ok ? gni_array_filled(g, fn, t, &s, &data) : NULL;
    for (int64_t i = 0; y != NULL && i < count; i++) {
        double x = count == 1 ? start
                   : step == 0
                       ? (double)i / divisions * delta + start // step is below the smallest number
                       : (double)i * step + start;
        if (i > 0 && i == count - 1 && !open) x = stop;
        gni_store_double(t, data, i, base != NULL ? pow(*base, x) : whole ? floor(x) : x);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_linspace(gn_context *g, gn_dtype t, double start, double stop,
                                 int64_t count) {
    return gni_spaced("gn_linspace", g, t, start, stop, count, NULL, false);
}

GPUNUM_API gn_array *gn_linspace_open(gn_context *g, gn_dtype t, double start, double stop, int64_t count) {
    return gni_spaced("gn_linspace_open", g, t, start, stop, count, NULL, true);
}

GPUNUM_API gn_array *gn_logspace(gn_context *g, gn_dtype t, double start, double stop, int64_t count, double base) {
    return gni_spaced("gn_logspace", g, t, start, stop, count, &base, false);
}
