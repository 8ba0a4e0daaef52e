// >>access
// Data in and out of arrays: from, wrap, read, write, item, eval, to.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/views.h"
#include "../core/evaluate.h"
#endif

// An integer of dtype t: truncated and saturated; NaN gives 0. Of uint64 the same bits.
static int64_t gni_double_to_int(gn_dtype t, double x) {
    double low, high;
    gni_integer_range(t, &low, &high);
    if (x != x) return 0;
    if (x <= low) return (int64_t)low;
    if (x >= high) return t == GN_U64 ? -1 : t == GN_I64 ? INT64_MAX : (int64_t)high;
    return t == GN_U64 ? (int64_t)(uint64_t)x : (int64_t)x;
}

// Element i of `data` becomes x, converted as gn_cast does.
static void gni_store_double(gn_dtype t, void *data, int64_t i, double x) {
    switch (t) {
    case GN_F32: ((float *)data)[i] = (float)x; break;
    case GN_F16: ((uint16_t *)data)[i] = gni_f32_to_f16(gni_round_odd(x)); break;
    case GN_BF16: ((uint16_t *)data)[i] = gni_f32_to_bf16(gni_round_odd(x)); break;
    case GN_F64: ((double *)data)[i] = x; break;
    case GN_BOOL: ((uint8_t *)data)[i] = (uint8_t)(x != 0.0); break;
    case GN_C64:
        ((float *)data)[2 * i] = (float)x;
        ((float *)data)[2 * i + 1] = 0.0f;
        break;
    case GN_C128:
        ((double *)data)[2 * i] = x;
        ((double *)data)[2 * i + 1] = 0.0;
        break;
    default: gni_put_int(t, (char *)data + i * (int64_t)gn_dtype_size(t), gni_double_to_int(t, x)); break;
    }
}

// Any byte but 0 means true; the loops count on 1.
static void gni_make_truth(gn_dtype t, void *data, size_t bytes) {
    uint8_t *p = (uint8_t *)data;
    size_t i = 0;
    if (t != GN_BOOL) return;
    for (; i + 16 <= bytes; i += 16)
        for (int k = 0; k < 16; k++) p[i + (size_t)k] = p[i + (size_t)k] != 0;
    for (; i < bytes; i++) p[i] = p[i] != 0;
}

static gn_array *gni_from_bytes(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s,
                                const void *data) {
    void *host = NULL;
    if (!gni_shape_ok(g, fn, t, s)) return NULL;
    size_t bytes = (size_t)gni_elements(s) * gn_dtype_size(t);
    if (data == NULL && bytes > 0) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: data is NULL", fn);
        return NULL;
    }
    gn_array *y = gni_array_filled(g, fn, t, s, &host);
    if (y == NULL) return NULL;
    if (bytes > 0) memcpy(host, data, bytes);
    gni_make_truth(t, host, bytes);
    return y;
}

GPUNUM_API gn_array *gn_array_from(gn_context *g, gn_dtype t, gn_shape s, const void *data) {
    if (!gni_begin_context("gn_array_from", g)) return NULL;
    return gni_end(g, gni_from_bytes(g, "gn_array_from", t, &s, data));
}

GPUNUM_API gn_array *gn_array_wrap(gn_context *g, gn_dtype t, gn_shape s, void *data,
                                   gn_free_fn release, void *user) {
    if (!gni_begin_context("gn_array_wrap", g)) return NULL;
    gn_array *y = NULL;
    if (gni_shape_ok(g, "gn_array_wrap", t, &s)) {
        size_t item = gn_dtype_size(t) == 16 ? 8 : gn_dtype_size(t);
        if (data == NULL)
            gni_fail(g, GN_ERROR_ARGUMENT, "gn_array_wrap: data is NULL");
        else if ((uintptr_t)data % item != 0)
            gni_fail(g, GN_ERROR_ARGUMENT, "gn_array_wrap: data is not aligned to %d bytes",
                     (int)item);
        else
            y = gni_adopt(g, gni_array_empty(g, "gn_array_wrap", t, &s)); // what fails does not release
    }
    if (y != NULL) {
        y->buf->host = data;
        y->buf->host_borrowed = true;
        y->buf->host_free = release;
        y->buf->host_user = user;
        y->buf->where = GNI_ON_CPU;
    }
    gni_end_plain(g);
    return y;
}

// What a function with a status returns when gni_begin found its array to be NULL or stale.
static gn_status gni_null_status(const gn_array *a) {
    const gn_context *g = gn_context_of(a);
    const gn_status status = g != NULL ? gni_status_read(g, false) : GN_OK;
    return status != GN_OK ? status : GN_ERROR_ARGUMENT;
}

// Copies the elements of `a` out in C order.
static bool gni_copy_out(gn_context *g, gn_array *a, void *dst, size_t bytes) {
    gn_array *c = gni_contiguous(g, a);
    if (c == NULL) return false;
    bool ok = c->buf->where != 0 || gni_buffer_need(g, c->buf, GNI_ON_CPU); // never written
    if (ok && bytes > 0) {
        uint64_t at = (uint64_t)c->offset * gn_dtype_size(c->dtype);
        if (c->buf->where & GNI_ON_CPU) {
            memcpy(dst, (const char *)c->buf->host + at, bytes);
        } else {
            ok = gni_gpu_reached(g) && gni_download(g, &c->buf->device, at, dst, bytes);
            if (!ok)
                gni_fail(g, GN_ERROR_DEVICE_LOST, "gn_read: copying %llu bytes from the GPU failed",
                         (unsigned long long)bytes);
        }
    }
    gni_unref(g, c);
    return ok;
}

static bool gni_bytes_fit(gn_context *g, const char *fn, const gn_array *a, const void *p,
                          size_t bytes) {
    if (bytes != gn_bytes(a)) {
        char text[200];
        return gni_fail(g, GN_ERROR_ARGUMENT, "%s: %llu bytes given, %s %s has %llu", fn, (unsigned long long)bytes,
                        gn_dtype_name(a->dtype), gni_shape_text(text, sizeof text, &a->shape),
                        (unsigned long long)gn_bytes(a));
    }
    if (p == NULL && bytes > 0) return gni_fail(g, GN_ERROR_ARGUMENT, "%s: the pointer is NULL", fn);
    return true;
}

GPUNUM_API gn_status gn_read(gn_array *a, void *dst, size_t bytes) {
    gn_context *g = gni_begin("gn_read", &a, 1);
    if (g == NULL) return gni_null_status(a);
    if (gni_bytes_fit(g, "gn_read", a, dst, bytes)) gni_copy_out(g, a, dst, bytes);
    return gni_end_status(g);
}

// Whether an axis steps less far than the axes of smaller steps reach together. No view but of windows does.
static bool gni_elements_overlap(const gn_array *a) {
    for (int i = 0; i < a->shape.rank; i++) {
        int64_t step = a->stride[i] < 0 ? -a->stride[i] : a->stride[i], reach = 0;
        if (a->shape.dim[i] < 2) continue;
        for (int k = 0; k < a->shape.rank; k++) {
            const int64_t other = a->stride[k] < 0 ? -a->stride[k] : a->stride[k];
            if (k != i && (other < step || (other == step && k < i))) reach += (a->shape.dim[k] - 1) * other;
        }
        if (step <= reach) return true;
    }
    return false;
}

// Whether the elements have places of their own; else an error.
static bool gni_can_write(gn_context *g, const char *fn, const gn_array *a) {
    for (int i = 0; i < a->shape.rank; i++) {
        if (a->shape.dim[i] <= 1 || a->stride[i] != 0) continue;
        return gni_fail(g, GN_ERROR_ARGUMENT,
                        "%s: axis %d of this array repeats one element (gn_broadcast_to); write to a gn_copy", fn, i);
    }
    if (!gni_elements_overlap(a)) return true;
    return gni_fail(g, GN_ERROR_ARGUMENT, "%s: elements of this array share memory (gn_sliding_window); write to a gn_copy",
                    fn);
}

GPUNUM_API gn_status gn_write(gn_array *a, const void *src, size_t bytes) {
    gn_context *g = gni_begin("gn_write", &a, 1);
    if (g == NULL) return gni_null_status(a);
    if (!gni_bytes_fit(g, "gn_write", a, src, bytes) || bytes == 0) return gni_end_status(g);
    if (a->node != NULL) {
        gni_fail(g, GN_ERROR_GRADIENT,
                 "gn_write: %s made this array and autograd records it; write to a "
                 "gn_detach'ed copy",
                 a->maker);
        return gni_end_status(g);
    }
    if (!gni_can_write(g, "gn_write", a)) return gni_end_status(g);
    if (!gni_materialize(g, a)) return gni_end_status(g);
    gni_buffer *was = a->buf;
    was->refs++;
    if (!gni_before_overwrite(g, a, 0, 1)) {
        gni_buffer_release(g, was);
        return gni_end_status(g);
    }
    if (gni_is_contiguous(a) && bytes == a->buf->bytes) {
        if (gni_buffer_claim(g, a->buf, GNI_ON_CPU)) {
            memcpy(a->buf->host, src, bytes);
            gni_make_truth(a->dtype, a->buf->host, bytes);
        }
    } else if (a->buf->where != 0 || gni_buffer_need(g, a->buf, GNI_ON_CPU)) {
        gn_array *data = gni_from_bytes(g, "gn_write", a->dtype, &a->shape, src);
        if (data != NULL) gni_copy_into(g, a->buf, a->dtype, a->offset, a->stride, data);
        gni_unref(g, data);
    }
    if (g->call_failed) gni_restore_buffer(g, a, was);
    gni_buffer_release(g, was);
    return gni_end_status(g);
}

// One element at `p` as a double.
static double gni_element(gn_dtype t, const void *p) {
    float f;
    double d;
    int64_t l;
    uint32_t u;
    int32_t i;
    uint16_t h;
    switch (t) {
    case GN_F32: memcpy(&f, p, sizeof f); return (double)f;
    case GN_F16: memcpy(&h, p, sizeof h); return (double)gni_f16_to_f32(h);
    case GN_BF16: memcpy(&h, p, sizeof h); return (double)gni_bf16_to_f32(h);
    case GN_F64: memcpy(&d, p, sizeof d); return d;
    case GN_I32: memcpy(&i, p, sizeof i); return (double)i;
    case GN_I64: memcpy(&l, p, sizeof l); return (double)l;
    case GN_U32: memcpy(&u, p, sizeof u); return (double)u;
    case GN_I8: return (double)*(const int8_t *)p;
    case GN_U64: memcpy(&l, p, sizeof l); return (double)(uint64_t)l;
    case GN_U16: memcpy(&h, p, sizeof h); return (double)h;
    case GN_I16: memcpy(&h, p, sizeof h); return (double)(int16_t)h;
    default: return (double)*(const uint8_t *)p;
    }
}

GPUNUM_API double gn_item(gn_array *a) {
    unsigned char bytes[16];
    gn_context *g = gni_begin("gn_item", &a, 1);
    if (g == NULL) return GNI_NAN;
    double value = GNI_NAN;
    char text[200];
    if (gni_elements(&a->shape) != 1)
        gni_fail(g, GN_ERROR_SHAPE, "gn_item: %s has more or less than one element",
                 gni_shape_text(text, sizeof text, &a->shape));
    else if (gni_is_complex(a->dtype))
        gni_fail(g, GN_ERROR_DTYPE, "gn_item: %s is not a real number", gn_dtype_name(a->dtype));
    else if (gni_copy_out(g, a, bytes, gn_bytes(a)))
        value = gni_element(a->dtype, bytes);
    gni_end_plain(g);
    return value;
}

GPUNUM_API int64_t gn_item_int(gn_array *a) {
    int64_t value = 0;
    gn_context *g = gni_begin("gn_item_int", &a, 1);
    if (g == NULL) return 0;
    char text[200];
    if (gni_elements(&a->shape) != 1) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_item_int: %s has more or less than one element",
                 gni_shape_text(text, sizeof text, &a->shape));
    } else if (gni_is_complex(a->dtype)) {
        gni_fail(g, GN_ERROR_DTYPE, "gn_item_int: %s is not a real number", gn_dtype_name(a->dtype));
    } else {
        gn_scope_begin(g);
        g->no_grad++;
        gn_array *whole = gn_reshape(a->dtype == GN_U64 ? a : gn_cast(a, GN_I64), gn_shape_from(0, NULL));
        g->no_grad--;
        if (whole == NULL || !gni_copy_out(g, whole, &value, sizeof value)) value = 0;
        gn_scope_end(g);
    }
    gni_end_plain(g);
    return value;
}

GPUNUM_API gn_array *gn_eval(gn_array *a) {
    gn_context *g = gni_begin("gn_eval", &a, 1);
    if (g == NULL) return NULL;
    bool ok = gni_materialize(g, a);
    gni_end_plain(g);
    return ok ? a : NULL;
}

GPUNUM_API gn_status gn_eval_all(gn_array **arrays, int count) {
    if (arrays == NULL || count <= 0) return GN_OK;
    gn_context *g = gni_begin("gn_eval_all", arrays, count);
    if (g == NULL) return gni_null_status(arrays[0]);
    for (int i = 0; i < count;) {
        int n = 1; // a run of pending arrays that fit one program
        while (i + n < count && n < GNI_MAX_OUTPUTS && gni_is_pending(arrays[i]) &&
               gni_is_pending(arrays[i + n]) &&
               arrays[i + n]->expr->wide == arrays[i]->expr->wide &&
               gni_same_shape(&arrays[i]->shape, &arrays[i + n]->shape))
            n++;
        if (!gni_is_pending(arrays[i]) ? !gni_materialize(g, arrays[i])
                                       : !gni_evaluate(g, arrays + i, NULL, n))
            break;
        i += n;
    }
    return gni_end_status(g);
}

GPUNUM_API gn_array *gn_to(gn_array *a, gn_device device) {
    gn_context *g = gni_begin("gn_to", &a, 1);
    if (g == NULL) return NULL;
    if (device != GN_DEVICE_CPU && device != GN_DEVICE_GPU) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_to: %d is not a gn_device", (int)device);
        return gni_end(g, NULL);
    }
    uint32_t side = device == GN_DEVICE_GPU && g->gpu != NULL ? GNI_ON_GPU : GNI_ON_CPU;
    // Without a GPU everything is on the CPU, which is as close as it gets.
    bool ok = gni_materialize(g, a) && gni_buffer_need(g, a->buf, side);
    if (ok && device == GN_DEVICE_GPU && side == GNI_ON_GPU && !a->buf->host_borrowed) {
        gni_buffer_drop_host(g, a->buf); // the CPU copy has served its purpose
        a->buf->where = GNI_ON_GPU;
    }
    gni_end_plain(g);
    return ok ? a : NULL;
}
