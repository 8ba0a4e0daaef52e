// >>memory
// CPU memory, counted, through the user's allocator. Each block starts with a header that knows its size.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/internal.h"
#endif

#define GNI_ALIGN 64u
#define GNI_LARGE_BLOCK ((size_t)4 << 20)

typedef struct gni_block_head {
    void *base; // what the allocator returned
    size_t total;
} gni_block_head;

// What is held, and the most of it so far. Memory comes and goes outside of the context's lock too; where
// 64-bit atomics are plain instructions they are cheaper than another lock.
#if defined(GNI_GNU) && (defined(__x86_64__) || defined(__aarch64__))
static void gni_count_add(gn_context *g, uint64_t bytes) {
    const uint64_t used = __atomic_add_fetch(&g->host_used, bytes, __ATOMIC_RELAXED);
    uint64_t peak = __atomic_load_n(&g->host_peak, __ATOMIC_RELAXED);
    while (used > peak && !__atomic_compare_exchange_n(&g->host_peak, &peak, used, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
static void gni_count_sub(gn_context *g, uint64_t bytes) {
    (void)__atomic_sub_fetch(&g->host_used, bytes, __ATOMIC_RELAXED);
}
static void gni_count_get(gn_context *g, uint64_t *used, uint64_t *peak) {
    *used = __atomic_load_n(&g->host_used, __ATOMIC_RELAXED);
    *peak = __atomic_load_n(&g->host_peak, __ATOMIC_RELAXED);
}
#else
static void gni_count_add(gn_context *g, uint64_t bytes) {
    gni_mutex_lock(&g->stats_lock);
    g->host_used += bytes;
    if (g->host_used > g->host_peak) g->host_peak = g->host_used;
    gni_mutex_unlock(&g->stats_lock);
}
static void gni_count_sub(gn_context *g, uint64_t bytes) {
    gni_mutex_lock(&g->stats_lock);
    g->host_used -= bytes;
    gni_mutex_unlock(&g->stats_lock);
}
static void gni_count_get(gn_context *g, uint64_t *used, uint64_t *peak) {
    gni_mutex_lock(&g->stats_lock);
    *used = g->host_used;
    *peak = g->host_peak;
    gni_mutex_unlock(&g->stats_lock);
}
#endif

static void *gni_alloc(gn_context *g, size_t bytes) {
    if (bytes > SIZE_MAX - 2 * GNI_ALIGN) return NULL;
    size_t total = bytes + 2 * GNI_ALIGN;
    void *base = g->allocator.allocate(g->allocator.user, total);
    if (base == NULL) return NULL;
    uintptr_t at =
        ((uintptr_t)base + sizeof(gni_block_head) + GNI_ALIGN - 1) & ~(uintptr_t)(GNI_ALIGN - 1);
    gni_block_head *head = (gni_block_head *)(at - sizeof(gni_block_head));
    head->base = base;
    head->total = total;
    gni_count_add(g, total);
    return (void *)at;
}

static void *gni_calloc(gn_context *g, size_t bytes) {
    void *p = gni_alloc(g, bytes);
    if (p != NULL) memset(p, 0, bytes);
    return p;
}

static void gni_free(gn_context *g, void *p) {
    if (p == NULL) return;
    gni_block_head *head = (gni_block_head *)((uintptr_t)p - sizeof(gni_block_head));
    void *base = head->base;
    size_t total = head->total;
    gni_count_sub(g, total);
    g->allocator.release(g->allocator.user, base, total);
}

static void *gni_realloc(gn_context *g, void *p, size_t old_bytes, size_t new_bytes) {
    void *q = gni_alloc(g, new_bytes);
    if (q == NULL) return NULL;
    if (p != NULL) memcpy(q, p, GNI_MIN(old_bytes, new_bytes));
    gni_free(g, p);
    return q;
}

// A pass over pages of 4 KB spends up to half of its time on looking them up: large blocks ask for larger pages.
static void *gni_default_allocate(void *user, size_t size) {
    GNI_UNUSED(user);
    void *p = malloc(size);
#ifdef MADV_HUGEPAGE
    if (p != NULL && size >= GNI_LARGE_BLOCK) {
        const uintptr_t page = 1 << 16, begin = ((uintptr_t)p + page - 1) & ~(page - 1),
                        end = ((uintptr_t)p + size) & ~(page - 1);
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE); // a wish: it may be refused
    }
#endif
    return p;
}

static void gni_default_release(void *user, void *data, size_t size) {
    GNI_UNUSED(user);
    GNI_UNUSED(size);
    free(data);
}
