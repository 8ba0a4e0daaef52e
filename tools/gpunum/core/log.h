// >>log
// Log lines and the sticky first error.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/context.h"
#include "../core/internal.h"
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

static bool gni_fail(gn_context *g, gn_status status, const char *format, ...) {
    g->call_failed = true;
    if (g->status != GN_OK || g->trying) return false;
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
    return false;
}

static bool gni_fail_memory(gn_context *g, const char *what, uint64_t bytes) {
    return gni_fail(g, GN_ERROR_OUT_OF_MEMORY, "%s: out of memory (%llu bytes)", what, (unsigned long long)bytes);
}

static const char *gni_shape_text(char *text, size_t size, const gn_shape *s) {
    size_t at = 0;
    for (int i = 0; i < s->rank && i < GN_MAX_RANK && at + 24 < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? "," : "(", (long long)s->dim[i]);
    snprintf(text + at, size - at, s->rank == 0 ? "()" : s->rank == 1 ? ",)" : ")");
    return text;
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
    return gni_kind_of(g) == GNI_IS_CONTEXT ? gni_status_read(g, true) : GN_ERROR_ARGUMENT;
}

GPUNUM_API const char *gn_error(const gn_context *g) {
    if (gni_kind_of(g) != GNI_IS_CONTEXT) return "gn_error: no context";
    return gn_status_get(g) == GN_OK ? "" : g->message; // which stays until gn_error_clear
}

GPUNUM_API void gn_error_clear(gn_context *g) {
    if (gni_kind_of(g) != GNI_IS_CONTEXT) return;
    gni_lock_enter(&g->lock);
    if (g->call_depth == g->call_base) { // what failed in a call under way has to end it
        g->status = GN_OK;
        g->call_failed = false;
        g->message[0] = 0;
    }
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
