// >>array
// Array headers, buffers, references and scopes. Headers live in slabs that stay until gn_close, so that
// a stale pointer can be told from a live one.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/call.h"
#include "../core/learn.h"
#endif

// A slot of a slab holds a header at one of several places, each time at the next, and waits for its turn behind
// others that are free: an address comes back after 12,000 arrays at the soonest. Until then the word there is
// no live header's magic number.
#define GNI_SLOT_BYTES 512
#define GNI_SLOT_STEP 8
#define GNI_SLOTS_FREE 400 // as many wait before one is used again
#define GNI_SLAB_GROUP 4   // slabs made at once

typedef char gni_slot_has_places[sizeof(gn_array) + 64 <= GNI_SLOT_BYTES ? 1 : -1];

// The product of extents, none of which is negative; -1 where bytes of so many elements have no number. 0 wins.
static int64_t gni_extent_product(const int64_t *dim, int rank) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        if (dim[i] == 0) return 0;
    for (int i = 0; i < rank; i++) {
        if ((n | dim[i]) >> 29 != 0 && n > GNI_MOST_ELEMENTS / dim[i]) return -1;
        n *= dim[i]; // the division is left out where it cannot be
    }
    return n;
}

static int64_t gni_elements(const gn_shape *s) { return gni_extent_product(s->dim, s->rank); }

static bool gni_same_shape(const gn_shape *a, const gn_shape *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

static void gni_strides_of(const gn_shape *s, int64_t *stride) {
    int64_t step = gni_elements(s) > 0; // empty arrays may have extents too large to multiply
    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= s->dim[i];
    }
}

static bool gni_is_contiguous(const gn_array *a) {
    int64_t step = 1;
    if (gni_elements(&a->shape) == 0) return true;
    for (int i = a->shape.rank - 1; i >= 0; i--) {
        if (a->shape.dim[i] != 1 && a->stride[i] != step) return false;
        step *= a->shape.dim[i];
    }
    return true;
}

// A gn_axes that is no plain number: its axes in bits 8 to 23, by their low four bits, with a mark above. The marks
// are so far apart that the sum of two sets is none, and the low bits are 0 unless a number was joined to it.
#define GNI_AXES_SET (1 << 24)
#define GNI_AXES_KEEP (1 << 26)
#define GNI_AXES_FAR (1 << 28)   // an axis outside -8 to 7
#define GNI_AXES_TWICE (1 << 29) // an axis named twice
#define GNI_AXES_BITS (0xffff << 8)

static int gni_axis(gn_context *g, const char *fn, int axis, int rank) {
    int at = axis < 0 ? axis + rank : axis;
    if (at >= 0 && at < rank) return at;
    if (axis >= GNI_AXES_SET)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: one axis is asked for, such as 0 or -1, not GN_ALL or a set", fn);
    else
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: axis %d is out of bounds for array of rank %d", fn, axis, rank);
    return -1;
}

GPUNUM_API gn_axes gn_axes_from(int count, const int *axes) {
    gn_axes set = GNI_AXES_SET;
    for (int i = 0; i < count && axes != NULL; i++) {
        const gn_axes bit = 1 << (8 + (axes[i] & 15));
        if (axes[i] < -8 || axes[i] > 7)
            set |= GNI_AXES_FAR;
        else
            set |= set & bit ? GNI_AXES_TWICE : bit;
    }
    return set;
}

GPUNUM_API gn_axes gn_axes_keep(gn_axes axes) {
    return GNI_AXES_KEEP | (axes < GNI_AXES_SET ? gn_axes_from(1, &axes) : axes);
}

static uint32_t gni_axes(gn_context *g, const char *fn, gn_axes axes, int rank, bool *keep) {
    const bool kept = axes >= GNI_AXES_SET && (axes & GNI_AXES_KEEP);
    if (keep != NULL) *keep = kept;
    if (axes < GNI_AXES_SET) {
        const int at = gni_axis(g, fn, axes, rank);
        return at < 0 ? ~0u : 1u << at;
    }
    const gn_axes named = axes & ~GNI_AXES_KEEP;
    if (kept && keep == NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: GN_KEEP is for reductions", fn);
        return ~0u;
    }
    if (named == GN_ALL) return (1u << rank) - 1u;
    const char *wrong = NULL;
    if ((named & ~(GNI_AXES_BITS | GNI_AXES_FAR | GNI_AXES_TWICE)) != GNI_AXES_SET)
        wrong = "sets of axes are not joined to numbers: name all of them in one GN_AXES(0, 1)";
    else if (named & GNI_AXES_FAR)
        wrong = "an axis in GN_AXES or GN_KEEP is not in -8 to 7";
    else if (named & GNI_AXES_TWICE)
        wrong = "duplicate value in axis: GN_AXES names one twice";
    if (wrong != NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %s", fn, wrong);
        return ~0u;
    }
    uint32_t set = 0;
    for (int i = -8; i < 8; i++) {
        if (!(named >> (8 + (i & 15)) & 1)) continue;
        const int at = gni_axis(g, fn, i, rank);
        if (at < 0) return ~0u;
        if (set >> at & 1u) {
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: duplicate value in axis: %d and %d are the same of rank %d", fn, at,
                     at - rank, rank);
            return ~0u;
        }
        set |= 1u << at;
    }
    return set;
}

static gn_axes gni_axes_of(uint32_t set) { return GNI_AXES_SET | (gn_axes)(set << 8); }

static bool gni_broadcast(const gn_shape *a, const gn_shape *b, gn_shape *out) {
    GNI_ZEROED(gn_shape, s);
    s.rank = GNI_MAX(a->rank, b->rank);
    for (int i = 1; i <= s.rank; i++) {
        int64_t da = i <= a->rank ? a->dim[a->rank - i] : 1;
        int64_t db = i <= b->rank ? b->dim[b->rank - i] : 1;
        if (da != db && da != 1 && db != 1) return false;
        s.dim[s.rank - i] = da == 1 ? db : da;
    }
    *out = s;
    return true;
}

// ---- buffers

// CPU memory of arrays is kept for the next array of about that size: fresh pages are slow to touch.
static size_t gni_host_bytes(uint64_t bytes) {
    uint64_t step = 64;
    while (step * 16 <= bytes) step *= 2;
    return (size_t)((bytes + step - 1) / step * step);
}

static void gni_host_cache_drop(gn_context *g, int i) {
    gni_free(g, g->host_cache[i].p);
    g->host_cached -= g->host_cache[i].bytes;
    g->host_cache_count--;
    memmove(&g->host_cache[i], &g->host_cache[i + 1],
            sizeof g->host_cache[0] * (size_t)(g->host_cache_count - i));
}

static void gni_small_cache_trim(gn_context *g) {
    for (int i = 0; i < GNI_SMALL_CLASSES; i++)
        while (g->small_cache[i] != NULL) {
            void *p = g->small_cache[i];
            g->small_cache[i] = *(void **)p;
            gni_free(g, p);
        }
    g->small_cached = 0;
}

static void gni_host_cache_trim(gn_context *g) {
    while (g->host_cache_count > 0) gni_host_cache_drop(g, 0);
    gni_small_cache_trim(g);
}

// The list of small blocks of that size, which gni_host_bytes made: 16 steps of 64, then 8 to each doubling.
static void **gni_small_list(gn_context *g, size_t bytes) {
    size_t step = 64;
    int i = 0;
    for (; step * 16 < bytes; step *= 2) i += 8;
    return &g->small_cache[i + (int)(bytes / step)];
}

static void *gni_host_fresh(gn_context *g, size_t bytes) {
    void *p = gni_alloc(g, bytes);
    if (p != NULL || g->host_cached + g->small_cached == 0) return p;
    gni_host_cache_trim(g);
    return gni_alloc(g, bytes);
}

static void *gni_host_take(gn_context *g, uint64_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL; // where a size_t is that small
    size_t need = gni_host_bytes(bytes);
    if (need < GNI_HOST_CACHE_LEAST) {
        void **list = gni_small_list(g, need), *first = *list;
        if (first == NULL) return gni_host_fresh(g, need);
        *list = *(void **)first;
        g->small_cached -= need;
        return first;
    }
    for (int i = g->host_cache_count - 1; i >= 0; i--) {
        if (g->host_cache[i].bytes != need) continue;
        void *p = g->host_cache[i].p;
        g->host_cache[i].p = NULL;
        gni_host_cache_drop(g, i);
        return p;
    }
    return gni_host_fresh(g, need);
}

static void gni_host_give(gn_context *g, void *p, uint64_t bytes) {
    size_t size = gni_host_bytes(bytes);
    if (size == 0 || size > GNI_HOST_CACHE_BYTES / 2) {
        gni_free(g, p);
        return;
    }
    if (size < GNI_HOST_CACHE_LEAST) {
        if (g->small_cached + size > GNI_SMALL_CACHE_BYTES) gni_small_cache_trim(g);
        void **list = gni_small_list(g, size);
        *(void **)p = *list;
        *list = p;
        g->small_cached += size;
        return;
    }
    while (g->host_cache_count == GNI_HOST_CACHE_SLOTS ||
           g->host_cached + size > GNI_HOST_CACHE_BYTES)
        gni_host_cache_drop(g, 0);
    g->host_cache[g->host_cache_count].p = p;
    g->host_cache[g->host_cache_count].bytes = size;
    g->host_cache_count++;
    g->host_cached += size;
}

static gni_buffer *gni_buffer_new(gn_context *g, uint64_t bytes) {
    gni_buffer *b = (gni_buffer *)gni_host_take(g, sizeof(gni_buffer));
    if (b == NULL) {
        gni_fail_memory(g, "gn_array", sizeof(gni_buffer));
        return NULL;
    }
    memset(b, 0, sizeof *b);
    b->refs = 1;
    b->bytes = bytes;
    return b;
}

static void gni_buffer_drop_host(gn_context *g, gni_buffer *b) {
    if (b->host == NULL || (b->exported && b->refs > 0)) return;
    if (!b->host_borrowed)
        gni_host_give(g, b->host, b->bytes);
    else if (b->host_free != NULL)
        b->host_free(b->host, b->host_user);
    b->host = NULL;
    b->host_borrowed = false;
}

// Whether only pending work holds the buffer, of which views may be many.
static void gni_lazy_count(gn_context *g, gni_buffer *b) {
    const bool counted = b->orphans > 0 && b->orphans == b->refs;
    g->lazy_bytes += ((uint64_t)counted - (uint64_t)b->counted) * b->bytes;
    b->counted = counted;
}

static void gni_even_drop(gn_context *g, gni_buffer *b) {
    if (b->even == NULL) return;
    gni_gpu_free(g->gpu, &b->even->buffer.device);
    gni_free(g, b->even);
    b->even = NULL;
}

static void gni_buffer_release(gn_context *g, gni_buffer *b) {
    if (b == NULL) return;
    b->refs--;
    gni_lazy_count(g, b);
    if (b->refs > 0) return;
    if (b->has_device && !b->device_borrowed) gni_gpu_free(g->gpu, &b->device);
    gni_even_drop(g, b);
    if (b->host_free != NULL) {
        b->next = g->ended;
        g->ended = b;
        return;
    }
    gni_buffer_drop_host(g, b);
    gni_host_give(g, b, sizeof *b);
}

// Lets go of memory that callers lent: their functions may compute, and find no work half done.
static void gni_buffers_end(gn_context *g) {
    const gni_away away = gni_away_begin(g);
    while (g->ended != NULL) {
        gni_buffer *b = g->ended;
        g->ended = b->next;
        g->call_failed = false;
        gni_buffer_drop_host(g, b);
        gni_host_give(g, b, sizeof *b);
    }
    gni_away_end(g, away);
}

// gni_gpu_alloc, which fails the call if there is no room.
GNI_MAYBE_UNUSED static bool gni_gpu_need(gni_gpu *gpu, uint64_t bytes, gni_gpu_mem *mem, const char *what) {
    const bool ok = gni_gpu_alloc(gpu, bytes, mem);
    if (!ok) gni_fail_memory(gpu->g, what, bytes);
    return ok;
}

// Memory on that side, contents undefined. Sizes are padded so that kernels may read whole vectors.
static bool gni_buffer_memory(gn_context *g, gni_buffer *b, uint32_t side) {
    if (side == GNI_ON_CPU) {
        if (b->host != NULL) return true;
        b->host = gni_host_take(g, b->bytes);
        if (b->host == NULL) gni_fail_memory(g, "gn_array", b->bytes);
        return b->host != NULL;
    }
    if (b->has_device) return true;
    if (g->gpu == NULL) return gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_array: this context has no GPU");
    b->has_device = gni_gpu_alloc(g->gpu, GNI_MAX(b->bytes, 16), &b->device);
    if (!b->has_device) gni_fail_memory(g, "gn_array: device memory", b->bytes);
    return b->has_device;
}

// Whether what is on the GPU can be had from there.
static bool gni_gpu_reached(gn_context *g) {
    const bool reached = !GNI_CPU_ALONE && g->gpu != NULL;
    if (!reached)
        gni_fail(g, GN_ERROR_DEVICE_LOST, "gn_array: its data is on the GPU, which stayed with this process's parent");
    return reached;
}

// False also for an index that was none, after gni_fail.
static bool gni_download(gn_context *g, const gni_gpu_mem *from, uint64_t at, void *dst, uint64_t bytes) {
    gni_gpu_ticket t;
    const bool watched = gni_faults_begin(g, &t);
    const bool ok = gni_gpu_download(g->gpu, from, at, dst, bytes);
    return (!watched || gni_faults_end(g, &t)) && ok;
}

static bool gni_buffer_need(gn_context *g, gni_buffer *b, uint32_t side) {
    if (b->where & side) return true;
    if (b->where == GNI_ON_GPU && !gni_gpu_reached(g)) return false;
    if (!gni_buffer_memory(g, b, side)) return false;
    const bool cpu = side == GNI_ON_CPU;
    bool ok = true;
    if (!GNI_CPU_ALONE && b->draw != NULL && b->where == 0)
        ok = b->draw(g, b, side);
    else if (b->where == 0 && cpu)
        memset(b->host, 0, (size_t)b->bytes);
    else if (b->where == 0)
        ok = gni_gpu_fill(g->gpu, &b->device, 0, b->bytes, 0);
    else if (b->bytes > 0)
        ok = cpu ? gni_download(g, &b->device, 0, b->host, b->bytes)
                 : gni_gpu_upload(g->gpu, &b->device, 0, b->host, b->bytes);
    if (ok)
        b->where |= side;
    else
        gni_fail(g, GN_ERROR_DEVICE_LOST, "gn_array: copying %llu bytes %s the GPU failed",
                 (unsigned long long)b->bytes, cpu ? "from" : "to");
    return ok;
}

static bool gni_buffer_claim(gn_context *g, gni_buffer *b, uint32_t side) {
    if (!gni_buffer_memory(g, b, side)) return false;
    if (b->where != 0 || b->draw != NULL) b->version++; // first contents are no overwriting
    b->where = side;
    return true;
}

// ---- headers

static void gni_header_free(gn_context *g, gn_array *a) {
    g->free_count++;
    a->all_next = NULL;
    if (g->free_arrays == NULL)
        g->free_arrays = a;
    else
        g->free_last->all_next = a;
    g->free_last = a;
}

// By way of a pointer: what compilers put in memset's place for some hundred bytes takes several times as long.
static void gni_header_clear(gn_array *a) {
    void *(*volatile clear)(void *, int, size_t) = memset;
    (void)clear(a, 0, sizeof *a);
}

// A slot that no header was in, or NULL without memory.
static gn_array *gni_slot_fresh(gn_context *g) {
    if (g->slots_left == 0) {
        char *block = (char *)gni_alloc(g, (GNI_SLAB_GROUP + 1) * (size_t)GNI_SLAB_BYTES);
        if (block == NULL) return NULL;
        char *first = (char *)(((uintptr_t)block + GNI_SLAB_BYTES - 1) & ~(uintptr_t)(GNI_SLAB_BYTES - 1));
        for (int i = 0; i < GNI_SLAB_GROUP; i++) ((gni_slab *)(first + i * GNI_SLAB_BYTES))->ctx = g;
        gni_slab *slab = (gni_slab *)first;
        slab->block = block;
        slab->next = g->slabs;
        g->slabs = slab;
        g->slot_next = first;
        g->slots_left = GNI_SLAB_GROUP * GNI_SLAB_BYTES / GNI_SLOT_BYTES;
    }
    if (((uintptr_t)g->slot_next & (GNI_SLAB_BYTES - 1)) == 0) { // the slab's own
        g->slot_next += GNI_SLOT_BYTES;
        g->slots_left--;
    }
    gn_array *a = (gn_array *)g->slot_next;
    g->slot_next += GNI_SLOT_BYTES;
    g->slots_left--;
    return a;
}

// The place after that of `a` in its slot.
static gn_array *gni_slot_next(gn_array *a) {
    const size_t at = ((uintptr_t)a & (GNI_SLOT_BYTES - 1)) + GNI_SLOT_STEP;
    const uintptr_t slot = (uintptr_t)a & ~(uintptr_t)(GNI_SLOT_BYTES - 1);
    return (gn_array *)(slot + (at + sizeof(gn_array) <= GNI_SLOT_BYTES ? at : 0));
}

// Into the list of live arrays, in front, and out of it.
static void gni_header_link(gn_context *g, gn_array *a) {
    a->all_prev = NULL;
    a->all_next = g->arrays;
    if (g->arrays != NULL) g->arrays->all_prev = a;
    g->arrays = a;
}

static void gni_header_unlink(gn_context *g, gn_array *a) {
    if (a->all_prev != NULL) a->all_prev->all_next = a->all_next;
    else g->arrays = a->all_next;
    if (a->all_next != NULL) a->all_next->all_prev = a->all_prev;
}

static gn_array *gni_header_new(gn_context *g) {
    gn_array *a = g->free_count >= GNI_SLOTS_FREE ? NULL : gni_slot_fresh(g);
    if (a == NULL) {
        a = g->free_arrays;
        if (a == NULL) {
            gni_fail_memory(g, "gn_array", GNI_SLAB_BYTES);
            return NULL;
        }
        g->free_arrays = a->all_next;
        g->free_count--;
        a = gni_slot_next(a);
    }
    gni_header_clear(a);
    gni_handle_init(g, a, GNI_IS_ARRAY);
    a->refs = 1;
    a->maker = "";
    a->scope_slot = -1;
    gni_header_link(g, a);
    g->array_count++;
    return a;
}

// Every array comes from here, so that none has a shape that nobody checked.
static gn_array *gni_array_new(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s) {
    gn_array *a = gni_shape_ok(g, fn, t, s) ? gni_header_new(g) : NULL;
    if (a == NULL) return NULL;
    a->dtype = t;
    a->shape = *s;
    a->maker = fn;
    gni_strides_of(s, a->stride);
    return a;
}

static gn_array *gni_array_empty(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s) {
    gn_array *a = gni_array_new(g, fn, t, s);
    if (a == NULL) return NULL;
    a->buf = gni_buffer_new(g, (uint64_t)gni_elements(s) * gn_dtype_size(t));
    if (a->buf != NULL) return a;
    gni_unref(g, a);
    return NULL;
}

static gn_array *gni_array_filled(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s,
                                  void **host) {
    gn_array *a = gni_array_empty(g, fn, t, s);
    if (a != NULL && gni_buffer_claim(g, a->buf, GNI_ON_CPU)) {
        *host = a->buf->host;
        return a;
    }
    gni_unref(g, a);
    return NULL;
}

static gn_array *gni_array_view(gn_context *g, const char *fn, gn_array *base, const gn_shape *s,
                                const int64_t *stride, int64_t offset) {
    // `stride` was made of C order then.
    const bool pending = base->expr != NULL;
    if (!gni_materialize(g, base) || (pending && !gni_in_order(g, base))) return NULL;
    gn_array *a = gni_array_new(g, fn, base->dtype, s);
    if (a == NULL) return NULL;
    memcpy(a->stride, stride, sizeof(int64_t) * (size_t)s->rank);
    a->offset = offset;
    a->buf = base->buf;
    a->buf->refs++;
    a->on_gpu = base->on_gpu;
    a->apart = base->apart;
    return a;
}

static void gni_ref(gn_array *a) { a->refs++; }

// Takes everything out of a dying header. What it held is pushed on `todo` through all_next, so that a
// long chain of dependencies is freed without recursion.
static void gni_header_empty(gn_context *g, gn_array *a, gn_array **todo) {
    gni_expr *e = a->expr;
    if (e != NULL) {
        gni_pending_remove(g, a);
        for (int i = 0; i < e->n_src; i++)
            if (e->src[i] != NULL && gni_source_drop(g, e->src[i]))
                gni_header_doom(g, e->src[i], todo);
        gni_free(g, e);
    }
    gni_node *node = a->node;
    if (node != NULL) {
        for (int i = 0; i < node->n_in; i++)
            if (node->in[i] != NULL && --node->in[i]->refs == 0)
                gni_header_doom(g, node->in[i], todo);
        node->n_in = 0;
        gni_node_free(g, node);
    }
    if (a->passed) a->buf->passed--;
    gni_buffer_release(g, a->buf);
}

// Unlinks a header without references from the list of live ones and queues it.
static void gni_header_doom(gn_context *g, gn_array *a, gn_array **todo) {
    gni_header_unlink(g, a);
    g->array_count--;
    a->magic = 0;
    a->all_next = *todo;
    *todo = a;
}

static void gni_unref(gn_context *g, gn_array *a) {
    if (a == NULL || --a->refs > 0) return;
    gn_array *todo = NULL;
    gni_header_doom(g, a, &todo);
    while (todo != NULL) {
        gn_array *dead = todo;
        todo = dead->all_next;
        gni_header_empty(g, dead, &todo);
        dead->expr = NULL;
        dead->node = NULL;
        dead->buf = NULL;
        gni_header_free(g, dead);
    }
}

// ---- owners: the caller (scope 0) or one of the open scopes

static bool gni_scope_add(gn_context *g, gni_stack *stack, int depth, gn_array *a) {
    a->stack = NULL;
    a->scope = 0;
    a->scope_slot = -1;
    if (stack == NULL || depth == 0) return true;
    gni_scope *s = &stack->scopes[depth];
    if (s->count == s->capacity) {
        int capacity = s->capacity > 0 ? 2 * s->capacity : 32;
        gn_array **list =
            (gn_array **)gni_realloc(g, s->list, sizeof(gn_array *) * (size_t)s->count,
                                     sizeof(gn_array *) * (size_t)capacity);
        if (list == NULL) return gni_fail_memory(g, "gn_scope", sizeof(gn_array *) * (size_t)capacity);
        s->list = list;
        s->capacity = capacity;
    }
    a->stack = stack;
    a->scope = depth;
    a->scope_slot = s->count;
    s->list[s->count++] = a;
    return true;
}

static void gni_scope_remove(gn_array *a) {
    if (a->scope_slot < 0) return;
    gni_scope *s = &a->stack->scopes[a->scope];
    gn_array *last = s->list[--s->count];
    s->list[a->scope_slot] = last;
    last->scope_slot = a->scope_slot;
    a->stack = NULL;
    a->scope = 0;
    a->scope_slot = -1;
}

// Whether someone can still ask for the gradient of `a`.
static bool gni_has_owner(const gn_array *a) { return a->user_refs > 0 || a->steppers > 0; }

// Its last owner went: the gradient, which nobody can ask for any more, may be all that holds the array.
static void gni_drop_grad(gn_context *g, gn_array *a) {
    if (a->grad != NULL && !gni_has_owner(a)) gni_set_grad(g, a, NULL);
}

// Whether the caller's references are all gone, but for the one by which an array holds its gradient.
static bool gni_is_lent(gn_context *g, const char *fn, const gn_array *a) {
    if (!a->is_grad || a->user_refs > 1) return false;
    gni_fail(g, GN_ERROR_ARGUMENT,
             "%s: this gradient belongs to the array that gn_grad was asked for; gn_zero_grad drops "
             "it there, gn_retain gives a reference of your own",
             fn);
    return true;
}

// Drops one reference of the caller's or of a scope's.
static void gni_user_release(gn_context *g, gn_array *a) {
    if (--a->user_refs == (a->is_grad ? 1 : 0)) gni_scope_remove(a); // what is left is nobody's to release
    if (a->user_refs == 0) {
        gni_drop_grad(g, a);
        gni_lazy_orphaned(g, a);
    }
    gni_unref(g, a);
}

// Of an array that is `passed`: it has an owner, by which room assign looks for it.
static void gni_set_found(gn_array *a) {
    a->passed = false;
    a->buf->passed--;
}

// The creator's reference becomes the caller's, or that of the scope that is open.
static gn_array *gni_adopt(gn_context *g, gn_array *y) {
    if (y != NULL && y->user_refs > 0) { // has an owner already: hand out a second header
        gn_array *view = gni_array_view(g, y->maker, y, &y->shape, y->stride, y->offset);
        gni_unref(g, y);
        y = view;
    }
    if (y == NULL) return NULL;
    if (y->passed) gni_set_found(y);
    y->user_refs = 1;
    if (!g->call_failed && gni_scope_add(g, g->stack, g->stack != NULL ? g->stack->count : 0, y))
        return y;
    gni_unref(g, y);
    return NULL;
}

static gn_array *gni_end(gn_context *g, gn_array *y) {
    y = gni_adopt(g, y);
    gni_end_plain(g);
    return y;
}

static gn_array *gni_end_scope(gn_context *g, gn_array *y) {
    if (y != NULL) gn_keep(y);
    gn_scope_end(g);
    if (y != NULL && g->call_failed) {
        gn_release(y);
        y = NULL;
    }
    gni_end_plain(g);
    return y;
}

// Room for one more scope on the stack.
static bool gni_stack_grow(gn_context *g, gni_stack *stack) {
    if (stack->count + 2 <= stack->capacity) return true;
    int capacity = GNI_MAX(16, 2 * stack->capacity);
    gni_scope *scopes = (gni_scope *)gni_calloc(g, sizeof(gni_scope) * (size_t)capacity);
    if (scopes == NULL) return gni_fail_memory(g, "gn_scope_begin", sizeof(gni_scope) * (size_t)capacity);
    if (stack->scopes != NULL)
        memcpy(scopes, stack->scopes, sizeof(gni_scope) * (size_t)stack->capacity);
    gni_free(g, stack->scopes);
    stack->scopes = scopes;
    stack->capacity = capacity;
    return true;
}

GPUNUM_API void gn_scope_begin(gn_context *g) {
    if (!gni_begin_context("gn_scope_begin", g)) return;
    if (!gni_stack_need(g))
        g->lost_scopes++;
    else if (g->stack->lost > 0 || !gni_stack_grow(g, g->stack))
        g->stack->lost++;
    else
        g->stack->count++;
    gni_end_plain(g);
}

// gni_begin and a scope, for gni_end_scope.
static gn_context *gni_begin_scope(const char *fn, gn_array *const *arrays, int count) {
    gn_context *g = gni_begin(fn, arrays, count);
    if (g != NULL) gn_scope_begin(g);
    return g;
}
static gn_context *gni_begin_pair(const char *fn, gn_array *a, gn_array *b) {
    gn_array *in[2] = {a, b};
    return gni_begin_scope(fn, in, 2);
}

GPUNUM_API void gn_scope_end(gn_context *g) {
    if (!gni_begin_context("gn_scope_end", g)) return;
    gni_stack *stack = g->stack;
    if (stack != NULL && stack->lost > 0) {
        stack->lost--;
    } else if ((stack == NULL || stack->count == 0) && g->lost_scopes > 0) { // a later call may have made the stack
        g->lost_scopes--;
    } else if (stack == NULL || stack->count == 0) {
        // The first error alone is logged as one.
        if (g->status != GN_OK) gni_log(g, GN_LOG_WARNING, "gn_scope_end: no scope is open");
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_scope_end: no scope is open");
    } else {
        gni_scope *s = &stack->scopes[stack->count];
        while (s->count > 0) {
            gn_array *a = s->list[s->count - 1];
            gni_scope_remove(a);
            gni_user_release(g, a);
        }
        stack->count--;
    }
    if (g->call_depth == 1) gni_learn_scope(g);
    gni_end_plain(g);
}

GPUNUM_API gn_array *gn_keep(gn_array *a) {
    gn_context *g = gni_begin("gn_keep", &a, 1);
    if (g == NULL) return NULL;
    if (gni_is_lent(g, "gn_keep", a)) return gni_end(g, NULL);
    if (a->scope_slot >= 0) {
        gni_stack *stack = a->stack;
        int outer = a->scope - 1;
        gni_scope_remove(a);
        gni_scope_add(g, stack, outer, a);
    }
    gni_end_plain(g);
    return a;
}

GPUNUM_API gn_array *gn_retain(gn_array *a) {
    gn_context *g = gni_begin("gn_retain", &a, 1);
    if (g == NULL) return NULL;
    a->refs++;
    a->user_refs++;
    gni_end_plain(g);
    return a;
}

GPUNUM_API void gn_release(gn_array *a) {
    gn_context *g = gni_begin("gn_release", &a, 1);
    if (g == NULL) return;
    if (!gni_is_lent(g, "gn_release", a)) gni_user_release(g, a);
    gni_end_plain(g);
}

GPUNUM_API void gn_set(gn_array **slot, gn_array *value) {
    if (slot == NULL || *slot == value) return;
    gn_array *old = *slot;
    gn_array *both[2];
    both[0] = value != NULL ? value : old;
    both[1] = old != NULL ? old : value;
    gn_context *g = gni_begin("gn_set", both, 2);
    if (g == NULL) return;
    // Keep what is there when the new value could not be made.
    if ((value == NULL && g->status != GN_OK) ||
        (old != NULL && gni_is_lent(g, "gn_set", old))) {
        gni_end_plain(g);
        return;
    }
    if (value != NULL) {
        if (value->is_grad && value->user_refs == 1) { // lent by gn_grad: the slot gets its own reference
            value->refs++;
            value->user_refs++;
        }
        gni_scope_remove(value);
        if (old != NULL && old->scope_slot >= 0) gni_scope_add(g, old->stack, old->scope, value);
        if (old != NULL && old->wants_grad && value->node == NULL)
            value->wants_grad = gni_is_float(value->dtype);
    }
    *slot = value;
    if (old != NULL) gni_user_release(g, old);
    gni_end_plain(g);
}

// ---- facts

GPUNUM_API gn_shape gn_shape_from(int rank, const int64_t *dims) {
    GNI_ZEROED(gn_shape, s);
    s.rank = rank;
    for (int i = 0; i < rank && i < GN_MAX_RANK; i++) s.dim[i] = dims[i];
    return s;
}

static bool gni_rank_ok(gn_context *g, const char *fn, int rank) {
    if (rank > GN_MAX_RANK)
        gni_fail(g, GN_ERROR_SHAPE, "%s: the rank would be %d, the most is %d", fn, rank, GN_MAX_RANK);
    return rank <= GN_MAX_RANK;
}

static bool gni_shape_ok(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s) {
    char text[200];
    if ((unsigned)t >= (unsigned)GN_DTYPE_COUNT) return gni_fail(g, GN_ERROR_DTYPE, "%s: %d is not a dtype", fn, (int)t);
    if (s->rank < 0 || s->rank > GN_MAX_RANK)
        return gni_fail(g, GN_ERROR_SHAPE, "%s: rank %d is not in 0..%d", fn, s->rank, GN_MAX_RANK);
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] < 0)
            return gni_fail(g, GN_ERROR_SHAPE, "%s: negative dimension in %s", fn, gni_shape_text(text, sizeof text, s));
    if (gni_elements(s) < 0)
        return gni_fail(g, GN_ERROR_SHAPE, "%s: %s has too many elements", fn, gni_shape_text(text, sizeof text, s));
    return true;
}

// True for a live array; a stale one is an error.
static bool gni_known(const char *fn, const gn_array *a) {
    if (a == NULL) return false;
    if (gni_kind_of(a) == GNI_IS_ARRAY) return true;
    gn_array *list = (gn_array *)(uintptr_t)a;
    gni_begin(fn, &list, 1); // says what is wrong
    return false;
}

GPUNUM_API gn_shape gn_shape_of(const gn_array *a) {
    if (gni_known("gn_shape_of", a)) return a->shape;
    return gn_shape_from(0, NULL);
}
GPUNUM_API gn_dtype gn_dtype_of(const gn_array *a) { return gni_known("gn_dtype_of", a) ? a->dtype : GN_F32; }
GPUNUM_API int64_t gn_size(const gn_array *a) {
    return gni_known("gn_size", a) ? gni_elements(&a->shape) : 0;
}
GPUNUM_API size_t gn_bytes(const gn_array *a) {
    return gni_known("gn_bytes", a) ? (size_t)gni_elements(&a->shape) * gn_dtype_size(a->dtype) : 0;
}
GPUNUM_API int gn_rank(const gn_array *a) { return gni_known("gn_rank", a) ? a->shape.rank : 0; }
GPUNUM_API int64_t gn_dim(const gn_array *a, int axis) {
    if (!gni_known("gn_dim", a)) return -1;
    int at = axis < 0 ? axis + a->shape.rank : axis;
    return at >= 0 && at < a->shape.rank ? a->shape.dim[at] : -1;
}
GPUNUM_API gn_context *gn_context_of(const gn_array *a) { return a != NULL ? gni_home_given(a) : NULL; }

GPUNUM_API size_t gn_dtype_size(gn_dtype t) {
    static const uint8_t size[] = {
#define GN_X(name, bytes, numpy, safetensors) bytes,
        GN_DTYPE_LIST(GN_X)
#undef GN_X
    };
    return (unsigned)t < (unsigned)GN_DTYPE_COUNT ? size[t] : 0;
}

GPUNUM_API const char *gn_dtype_name(gn_dtype t) {
    static const char *const text[] = {
#define GN_X(name, bytes, numpy, safetensors) numpy,
        GN_DTYPE_LIST(GN_X)
#undef GN_X
    };
    return (unsigned)t < (unsigned)GN_DTYPE_COUNT ? text[t] : "unknown";
}

static bool gni_is_float(gn_dtype t) {
    return t == GN_F32 || t == GN_F16 || t == GN_BF16 || t == GN_F64;
}
static bool gni_is_complex(gn_dtype t) { return t == GN_C64 || t == GN_C128; }
static bool gni_is_integer(gn_dtype t) {
    return !gni_is_float(t) && !gni_is_complex(t) && t != GN_BOOL;
}
static bool gni_is_unsigned(gn_dtype t) { return t == GN_U8 || t == GN_U16 || t == GN_U32 || t == GN_U64; }
static bool gni_is_wide(gn_dtype t) { return t == GN_F64 || t == GN_I64 || t == GN_U64; }

// The low bits of an integer into an element; bool is its truth.
static void gni_put_int(gn_dtype t, char *p, int64_t v) {
    uint64_t u = t == GN_BOOL ? v != 0 : (uint64_t)v;
    uint32_t w = (uint32_t)(u & 0xffffffffu);
    uint16_t h = (uint16_t)(u & 0xffffu);
    uint8_t b = (uint8_t)(u & 255u);
    switch (gn_dtype_size(t)) {
    case 8: memcpy(p, &u, 8); break;
    case 4: memcpy(p, &w, 4); break;
    case 2: memcpy(p, &h, 2); break;
    default: memcpy(p, &b, 1); break;
    }
}

// The smallest and largest value of an integer dtype.
static void gni_integer_range(gn_dtype t, double *low, double *high) {
    int bits = t == GN_BOOL ? 1 : 8 * (int)gn_dtype_size(t);
    bool natural = t == GN_BOOL || gni_is_unsigned(t);
    double half = (double)((uint64_t)1 << (natural ? bits - 1 : bits - 2)); // of what is above the largest
    *low = natural ? 0.0 : -2.0 * half;
    *high = 2.0 * half - 1.0;
}

// Whether the dtype holds that number, cut off at the point; what a float cannot hold it rounds.
static bool gni_holds(gn_dtype t, double v) {
    double low, high;
    if (!gni_is_integer(t)) return true;
    gni_integer_range(t, &low, &high); // whose 2^63 - 1 is 2^63, and 2^64 - 1 2^64
    return trunc(v) >= low && trunc(v) <= high && v < (t == GN_U64 ? 18446744073709551616.0 : 9223372036854775808.0);
}

static bool gni_number_ok(gn_context *g, const char *fn, gn_dtype t, double v) {
    if (gni_holds(t, v)) return true;
    return gni_fail(g, GN_ERROR_ARGUMENT, "%s: %.17g is outside of %s", fn, v, gn_dtype_name(t));
}

GPUNUM_API gn_dtype gn_promote(gn_dtype a, gn_dtype b) {
    if ((unsigned)a >= (unsigned)GN_DTYPE_COUNT || (unsigned)b >= (unsigned)GN_DTYPE_COUNT)
        return GN_DTYPE_COUNT;
    if (a == b) return a;
    if (gni_is_complex(a) || gni_is_complex(b)) {
        bool big = a == GN_C128 || b == GN_C128 || a == GN_F64 || b == GN_F64;
        return big ? GN_C128 : GN_C64;
    }
    if (a == GN_BOOL) return b;
    if (b == GN_BOOL) return a;
    if (gni_is_float(a) != gni_is_float(b)) return gni_is_float(a) ? a : b;
    if (gni_is_float(a)) return a == GN_F64 || b == GN_F64 ? GN_F64 : GN_F32; // f16 with bf16 too
    if (gni_is_unsigned(a) == gni_is_unsigned(b)) return gn_dtype_size(a) > gn_dtype_size(b) ? a : b;
    gn_dtype u = gni_is_unsigned(a) ? a : b, s = u == a ? b : a;
    if (gn_dtype_size(s) > gn_dtype_size(u)) return s;
    return u == GN_U8 ? GN_I16 : u == GN_U16 ? GN_I32 : u == GN_U32 ? GN_I64 : GN_F64;
}
