// >>call
// The frame of every public call: its lock, the scopes of its thread, its arguments checked, its result handed over.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/memory.h"
#include "../core/log.h"
#endif

// The scope stack of the calling thread, or NULL.
static gni_stack *gni_stack_here(const gn_context *g) {
    gni_stack *s = g->stacks;
    while (s != NULL && s->owner != g->lock.owner) s = s->next;
    return s;
}

// Whether the thread has one, which counts what it begins. What it cannot count is lost, so that the matching end ends no
// other.
static GNI_NOINLINE bool gni_stack_need(gn_context *g) {
    if (g->stack != NULL) return true;
    gni_stack *s = (gni_stack *)gni_calloc(g, sizeof(gni_stack));
    if (s == NULL) return gni_fail_memory(g, g->call, sizeof(gni_stack));
    s->owner = g->lock.owner;
    s->next = g->stacks;
    g->stacks = g->stack = s;
    return true;
}

static void gni_call_enter(gn_context *g, const char *fn) {
    gni_lock_enter(&g->lock);
    if (g->call_depth++ == g->call_base) g->call = fn;
    if (g->call_depth > 1) return;
    g->learn.calls = (g->learn.calls ^ (uint64_t)(uintptr_t)fn) * 0x100000001b3u;
    g->learn.count += g->learn.count < INT32_MAX;
    if (g->forks != gni_forks) gni_after_fork(g);
    g->call_failed = false;
    g->stack = gni_stack_here(g);
    g->no_grad = g->stack != NULL ? g->stack->no_grad : 0;
    g->autocast = g->stack != NULL ? g->stack->autocast : 0;
}

// Around a function of the caller's, whose calls have names of their own in messages.
typedef struct gni_away {
    const char *call;
    int base;
} gni_away;

static gni_away gni_away_begin(gn_context *g) {
    gni_away a;
    a.call = g->call;
    a.base = g->call_base;
    g->call = NULL;
    g->call_base = g->call_depth;
    return a;
}

static void gni_away_end(gn_context *g, gni_away a) {
    g->call = a.call;
    g->call_base = a.base;
}

static void gni_deliver_reads(gn_context *g, bool wait), gni_buffers_end(gn_context *g);

static void gni_end_plain(gn_context *g) {
    if (g->call_depth == 1) {
        if (g->reads != NULL) gni_deliver_reads(g, false);
        if (g->ended != NULL) gni_buffers_end(g);
        if (g->stack != NULL) {
            g->stack->no_grad = g->no_grad;
            g->stack->autocast = g->autocast;
        }
    }
    g->call_depth--;
    gni_lock_leave(&g->lock);
}

static gn_status gni_end_status(gn_context *g) {
    gn_status status = g->call_failed ? g->status : GN_OK;
    gni_end_plain(g);
    return status;
}

static const char *gni_handle_name(gni_handle_kind kind) {
    static const char *const names[] = {"array", "context", "optimizer", "params", "loader"};
    return names[kind];
}

// With a handle of that kind; NULL for none, and after gni_fail for another one.
static GNI_NOINLINE gn_context *gni_begin_with(const char *fn, const void *handle, gni_handle_kind wanted) {
    const gni_handle_kind kind = gni_kind_of(handle);
    if (kind == GNI_NO_HANDLE) return NULL;
    gn_context *g = ((const gni_handle *)handle)->ctx;
    gni_call_enter(g, fn);
    if (kind == wanted) return g;
    gni_fail(g, GN_ERROR_ARGUMENT, "%s: a gn_%s was given as a gn_%s", fn, gni_handle_name(kind), gni_handle_name(wanted));
    gni_end_plain(g);
    return NULL;
}

// Whether it is one of that kind: else the context of what it is told of that.
static bool gni_is_a(const char *fn, const void *handle, gni_handle_kind kind) {
    if (gni_kind_of(handle) == kind) return true;
    gni_begin_with(fn, handle, kind);
    return false;
}

static GNI_NOINLINE bool gni_begin_context(const char *fn, gn_context *g) {
    return gni_begin_with(fn, g, GNI_IS_CONTEXT) != NULL;
}

// Also of a stale array, and of what was given as an array.
static GNI_NOINLINE gn_context *gni_home_given(const gn_array *a) {
    return gni_kind_of(a) != GNI_NO_HANDLE ? a->ctx : gni_home(a);
}

static gn_context *gni_begin(const char *fn, gn_array *const *arrays, int count) {
    gn_context *g = NULL;
    for (int i = 0; i < count && arrays != NULL && g == NULL; i++)
        if (arrays[i] != NULL) g = gni_home_given(arrays[i]);
    if (g == NULL) return NULL;
    gni_call_enter(g, fn);
    for (int i = 0; i < count; i++) {
        const gn_array *a = arrays[i];
        const gni_handle_kind kind = gni_kind_of(a);
        if (a == NULL) // usually the result of a call that failed: that error came first
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: array argument %d is NULL", fn, i + 1);
        else if (gni_home_given(a) != g)
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: array argument %d belongs to another context", fn,
                     i + 1);
        else if (kind != GNI_IS_ARRAY && kind != GNI_NO_HANDLE)
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: array argument %d is a gn_%s", fn, i + 1, gni_handle_name(kind));
        else if (kind == GNI_NO_HANDLE || (g->call_depth == 1 && a->user_refs <= 0))
            gni_fail(g, GN_ERROR_STALE, "%s: array argument %d was released; gn_keep keeps one beyond its scope", fn, i + 1);
        else
            continue;
        gni_end_plain(g);
        return NULL;
    }
    return g;
}
