// >>log
// Log lines, the sticky first error, and the frame around every public call.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/context.h"
#include "../core/memory.h"
#endif

static void gni_log(gn_context *g, gn_log_level level, const char *format, ...) {
    const gn_log_level most = g->options.log_level == GN_LOG_DEFAULT ? GN_LOG_WARNING : g->options.log_level;
    if (g->options.log == NULL || level > most) return;
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    g->options.log(g->options.log_user, level, text);
}

static const gn_log_level gni_log_levels[] = {GN_LOG_ERROR, GN_LOG_WARNING, GN_LOG_INFO, GN_LOG_DEBUG};
static const char *const gni_log_names[] = {"error", "warning", "info", "debug"};

GPUNUM_API void gn_log_stderr(void *user, gn_log_level level, const char *text) {
    GNI_UNUSED(user);
    for (int i = 0; i < 4; i++)
        if (gni_log_levels[i] == level) fprintf(stderr, "gpunum %s: %s\n", gni_log_names[i], text);
}

// GPUNUM_LOG asks for lines on stderr where the program takes none itself and does not forbid them.
static void gni_log_environment(gn_options *o) {
    const char *wanted = getenv("GPUNUM_LOG");
    if (wanted == NULL || wanted[0] == 0 || strcmp(wanted, "none") == 0) return;
    if (o->log != NULL || o->log_level == GN_LOG_NONE) return;
    o->log = gn_log_stderr;
    o->log_level = GN_LOG_WARNING;
    for (int i = 0; i < 4; i++) {
        if (strcmp(wanted, gni_log_names[i]) != 0) continue;
        o->log_level = gni_log_levels[i];
        return;
    }
    gn_log_stderr(NULL, GN_LOG_WARNING, "GPUNUM_LOG is not error, warning, info or debug; taken for warning");
}

static void gni_fail(gn_context *g, gn_status status, const char *format, ...) {
    g->call_failed = true;
    if (g->status != GN_OK) return;
    g->status = status;
    g->told = false;
    char text[sizeof g->message - 80]; // two names are shorter than that
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    // Public functions are made of others: the caller knows the one that was called.
    const char *call = g->call != NULL ? g->call : "", *part = g->part != NULL ? g->part : "";
    const size_t name = strncmp(text, "gn_", 3) == 0 ? strcspn(text, ": ") : 0;
    const bool named = name > 0 && text[name] == ':';
    if (call[0] == 0 || (named && strncmp(text, call, name) == 0 && call[name] == 0))
        call = part = "";
    snprintf(g->message, sizeof g->message, "%s%s%s%s%s", call, call[0] ? ": " : "", part,
             part[0] ? ": " : "", text + (call[0] && named ? name + 2 : 0));
    gni_log(g, GN_LOG_ERROR, "%s", g->message);
}

static void gni_fail_memory(gn_context *g, const char *what, uint64_t bytes) {
    gni_fail(g, GN_ERROR_OUT_OF_MEMORY, "%s: out of memory (%llu bytes)", what,
             (unsigned long long)bytes);
}

static const char *gni_shape_text(char *text, size_t size, const gn_shape *s) {
    size_t at = 0;
    for (int i = 0; i < s->rank && i < GN_MAX_RANK && at + 24 < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? "," : "(", (long long)s->dim[i]);
    snprintf(text + at, size - at, s->rank == 0 ? "()" : s->rank == 1 ? ",)" : ")");
    return text;
}

// The scope stack of the calling thread, made when `make` says so.
static gni_stack *gni_stack_here(gn_context *g, bool make) {
    for (gni_stack *s = g->stacks; s != NULL; s = s->next)
        if (s->owner == g->lock.owner) return s;
    if (!make) return NULL;
    gni_stack *s = (gni_stack *)gni_calloc(g, sizeof(gni_stack));
    if (s == NULL) {
        gni_fail_memory(g, "gn_scope_begin", sizeof(gni_stack));
        return NULL;
    }
    s->owner = g->lock.owner;
    s->next = g->stacks;
    g->stacks = s;
    return s;
}

static void gni_call_enter(gn_context *g, const char *fn) {
    gni_lock_enter(&g->lock);
    if (g->call_depth++ > 0) return;
    g->call = fn;
    if (g->forks != gni_forks) gni_after_fork(g);
    g->call_failed = false;
    g->stack = gni_stack_here(g, false);
    g->no_grad = g->stack != NULL ? g->stack->no_grad : 0;
}

static void gni_deliver_reads(gn_context *g, bool wait);

static void gni_end_plain(gn_context *g) {
    if (g->call_depth == 1) {
        if (g->reads != NULL) gni_deliver_reads(g, false);
        if (g->stack == NULL && g->no_grad > 0) g->stack = gni_stack_here(g, true);
        if (g->stack != NULL) g->stack->no_grad = g->no_grad;
    }
    g->call_depth--;
    gni_lock_leave(&g->lock);
}

static gn_status gni_end_status(gn_context *g) {
    gn_status status = g->call_failed ? g->status : GN_OK;
    gni_end_plain(g);
    return status;
}

static bool gni_begin_context(const char *fn, gn_context *g) {
    if (g == NULL) return false;
    gni_call_enter(g, fn);
    return true;
}

static gn_context *gni_begin(const char *fn, gn_array *const *arrays, int count) {
    gn_context *g = NULL;
    for (int i = 0; i < count && arrays != NULL && g == NULL; i++)
        if (arrays[i] != NULL) g = gni_home(arrays[i]);
    if (g == NULL) return NULL;
    gni_call_enter(g, fn);
    for (int i = 0; i < count; i++) {
        const gn_array *a = arrays[i];
        if (a == NULL) // usually the result of a call that failed: that error came first
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: array argument %d is NULL", fn, i + 1);
        else if (gni_home(a) != g)
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: array argument %d belongs to another context", fn,
                     i + 1);
        else if (a->mark != gni_mark_of(a) || (g->call_depth == 1 && a->user_refs <= 0))
            gni_fail(g, GN_ERROR_STALE, "%s: array argument %d was released", fn, i + 1);
        else
            continue;
        gni_end_plain(g);
        return NULL;
    }
    return g;
}

static gn_status gni_status_read(const gn_context *g, bool told) {
    gn_context *shared = (gn_context *)(uintptr_t)g; // another thread may be writing it
    gni_lock_enter(&shared->lock);
    gn_status status = shared->status;
    if (status != GN_OK && told) shared->told = true;
    gni_lock_leave(&shared->lock);
    return status;
}

GPUNUM_API gn_status gn_status_get(const gn_context *g) {
    return g != NULL ? gni_status_read(g, true) : GN_ERROR_ARGUMENT;
}

GPUNUM_API const char *gn_error(const gn_context *g) {
    if (g == NULL) return "gn_error: no context";
    return gn_status_get(g) == GN_OK ? "" : g->message; // which stays until gn_error_clear
}

GPUNUM_API void gn_error_clear(gn_context *g) {
    if (g == NULL) return;
    gni_lock_enter(&g->lock);
    g->status = GN_OK;
    g->call_failed = false;
    g->message[0] = 0;
    gni_lock_leave(&g->lock);
}

GPUNUM_API const char *gn_status_string(gn_status status) {
    static const char *const text[] = {
#define GN_X(name, words) words,
        GN_STATUS_LIST(GN_X)
#undef GN_X
    };
    return (unsigned)status < (unsigned)GN_STATUS_COUNT ? text[status] : "unknown status";
}
