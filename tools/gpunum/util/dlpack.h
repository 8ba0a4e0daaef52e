// >>dlpack
// Arrays of other libraries and for them, by DLPack's DLManagedTensor (ABI of versions 0.3 to 0.8 and later).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/host.h"
#include "../core/evaluate.h"
#endif

// The layout of DLPack's structs under names of our own: a user's dlpack.h may be included too. Both sides copy, for C sees
// two types that share memory.
typedef struct gni_dl_managed {
    struct {
        void *data;
        int32_t device_type, device_id;
        int32_t rank;
        uint8_t code, bits;
        uint16_t lanes;
        int64_t *shape, *strides; // in elements; NULL: C order
        uint64_t byte_offset;
    } t;
    void *owner;
    void (*deleter)(struct DLManagedTensor *self);
} gni_dl_managed;

enum { GNI_DL_CPU = 1, GNI_DL_BFLOAT = 4, GNI_DL_BOOL = 6 };

// DLPack's code (int, unsigned, float, opaque, bfloat, complex, bool) and bits of a dtype.
static void gni_dl_dtype(gn_dtype t, uint8_t *code, uint8_t *bits) {
    *bits = (uint8_t)(8 * gn_dtype_size(t));
    *code = (uint8_t)(t == GN_BOOL               ? GNI_DL_BOOL
                      : t == GN_BF16             ? GNI_DL_BFLOAT
                      : gni_is_complex(t)        ? 5
                      : !gni_is_integer(t)       ? 2
                      : gni_is_unsigned(t)       ? 1
                                                 : 0);
}

typedef struct gni_dl_export {
    gni_dl_managed managed;
    int64_t shape[GN_MAX_RANK], strides[GN_MAX_RANK];
} gni_dl_export;

// Runs on the consumer's thread.
static void gni_dl_delete(struct DLManagedTensor *self) {
    gni_dl_managed m;
    if (self == NULL) return;
    memcpy(&m, self, sizeof m);
    gn_array *a = (gn_array *)m.owner;
    gn_context *g = gni_begin("gn_to_dlpack", &a, 1);
    if (g == NULL) return;
    gni_free(g, self);
    gni_user_release(g, a);
    gni_end_plain(g);
}

GPUNUM_API struct DLManagedTensor *gn_to_dlpack(gn_array *a) {
    gn_context *g = gni_begin("gn_to_dlpack", &a, 1);
    if (g == NULL) return NULL;
    gni_dl_export *e = NULL;
    // Others mostly refuse what is repeated or turned round.
    bool plain = gni_materialize(g, a);
    for (int i = 0; plain && i < a->shape.rank; i++) plain = a->stride[i] > 0 || a->shape.dim[i] <= 1;
    gn_array *source = plain ? a : gn_copy(a);
    const char *data = source != NULL ? (const char *)gni_host(g, source) : NULL;
    gn_array *v =
        data != NULL ? gni_array_view(g, "gn_to_dlpack", source, &source->shape, source->stride, source->offset) : NULL;
    if (v != NULL) e = (gni_dl_export *)gni_calloc(g, sizeof *e);
    if (v != NULL && e == NULL) gni_fail_memory(g, "gn_to_dlpack", sizeof *e);
    if (e != NULL) {
        v->user_refs = 1; // the tensor's
        v->buf->exported = true;
        gni_dl_dtype(v->dtype, &e->managed.t.code, &e->managed.t.bits);
        e->managed.t.data = v->buf->bytes > 0 ? (void *)(uintptr_t)data : NULL;
        e->managed.t.device_type = GNI_DL_CPU;
        e->managed.t.lanes = 1;
        e->managed.t.rank = v->shape.rank;
        memcpy(e->shape, v->shape.dim, sizeof e->shape);
        memcpy(e->strides, v->stride, sizeof e->strides);
        e->managed.t.shape = e->shape;
        e->managed.t.strides = e->strides;
        e->managed.owner = v;
        e->managed.deleter = gni_dl_delete;
    } else if (v != NULL) {
        gni_unref(g, v);
    }
    if (source != a) gn_release(source);
    gni_end_plain(g);
    return (struct DLManagedTensor *)(void *)e;
}

static void gni_dl_release(void *data, void *user) {
    struct DLManagedTensor *tensor = (struct DLManagedTensor *)user;
    gni_dl_managed m;
    (void)data;
    memcpy(&m, tensor, sizeof m);
    if (m.deleter != NULL) m.deleter(tensor);
}

// Shape, dtype and strides of a tensor, and of its elements the first and the last one's place; false after gni_fail.
static bool gni_dl_look(gn_context *g, const gni_dl_managed *m, gn_dtype *t, gn_shape *s, int64_t *stride, int64_t *first,
                        int64_t *last) {
    static const char *const fn = "gn_from_dlpack";
    if (m->t.device_type != GNI_DL_CPU)
        return gni_fail(g, GN_ERROR_UNSUPPORTED, "%s: the tensor is on a device of type %d, not in CPU memory (1)", fn,
                        (int)m->t.device_type);
    uint8_t code = 0, bits = 0;
    int k = 0;
    for (; k < GN_DTYPE_COUNT; k++) {
        gni_dl_dtype((gn_dtype)k, &code, &bits);
        if (code == m->t.code && bits == m->t.bits) break;
    }
    if (k == GN_DTYPE_COUNT || m->t.lanes != 1)
        return gni_fail(g, GN_ERROR_DTYPE, "%s: no dtype for code %d with %d bits in %d lanes", fn, m->t.code, m->t.bits,
                        m->t.lanes);
    *t = (gn_dtype)k;
    memset(s, 0, sizeof *s);
    s->rank = m->t.rank;
    for (int i = 0; i < s->rank && i < GN_MAX_RANK && m->t.shape != NULL; i++) s->dim[i] = m->t.shape[i];
    if (!gni_shape_ok(g, fn, *t, s)) return false;
    gni_strides_of(s, stride);
    *first = *last = 0;
    bool fits = s->rank == 0 || m->t.shape != NULL;
    // Places are kept below 2^58, so that their bytes fit as well.
    for (int i = 0; i < s->rank && fits && gni_elements(s) > 0; i++) {
        if (m->t.strides != NULL) stride[i] = s->dim[i] > 1 ? m->t.strides[i] : 0;
        const int64_t steps = s->dim[i] - 1, most = steps > 0 ? (INT64_C(1) << 54) / steps : INT64_MAX;
        fits = stride[i] <= most && stride[i] >= -most;
        if (fits) *(stride[i] < 0 ? first : last) += stride[i] * steps;
    }
    if (!fits)
        gni_fail(g, GN_ERROR_SHAPE, "%s: %s", fn, m->t.shape == NULL ? "the shape is NULL" : "strides beyond all memory");
    return fits;
}

GPUNUM_API gn_array *gn_from_dlpack(gn_context *g, struct DLManagedTensor *tensor) {
    static const char *const fn = "gn_from_dlpack";
    if (!gni_begin_context(fn, g)) return NULL;
    gni_dl_managed m;
    gn_dtype t = GN_F32;
    gn_shape s;
    int64_t stride[GN_MAX_RANK] = {0}, first = 0, last = 0;
    if (tensor == NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the tensor is NULL", fn);
        return gni_end(g, NULL);
    }
    memcpy(&m, tensor, sizeof m);
    if (!gni_dl_look(g, &m, &t, &s, stride, &first, &last)) return gni_end(g, NULL);
    if (gni_elements(&s) == 0) {
        gn_array *y = gni_adopt(g, gni_array_empty(g, fn, t, &s));
        if (y != NULL) gni_dl_release(NULL, tensor);
        gni_end_plain(g);
        return y;
    }
    const int64_t item = (int64_t)gn_dtype_size(t);
    const gn_shape flat = {1, {last - first + 1}};
    gn_array *y = NULL;
    if (m.t.data == NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: data is NULL", fn);
        return gni_end(g, NULL);
    }
    char *data = (char *)m.t.data + m.t.byte_offset;
    if ((uintptr_t)data % (uintptr_t)(item == 16 ? 8 : item) != 0) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: data is not aligned to its items of %d bytes", fn, (int)item);
        return gni_end(g, NULL);
    }
    gn_array *all = gni_array_empty(g, fn, t, &flat);
    if (all != NULL) y = gni_adopt(g, gni_array_view(g, fn, all, &s, stride, -first));
    if (y != NULL) {
        y->buf->host = data + first * item;
        y->buf->host_borrowed = true;
        y->buf->host_free = gni_dl_release;
        y->buf->host_user = tensor;
        y->buf->where = GNI_ON_CPU;
    }
    gni_unref(g, all);
    gni_end_plain(g);
    return y;
}
