// >>profile
// Spans of work written as a Chrome trace (JSON, "X" events). From outside: gni_profile_span while
// g->profile is set, gni_profile_free.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/watch.h"
#include "../core/call.h"
#endif

enum { GNI_PROFILE_NAME = 48, GNI_TRACK_CPU = 0, GNI_TRACK_GPU = 1, GNI_TRACKS = 2 };

typedef struct gni_span {
    uint64_t start, end; // of gni_now_ns
    int track;
    char name[GNI_PROFILE_NAME];
} gni_span;

struct gni_profile {
    uint64_t start;
    bool device;   // the device takes times of its own
    bool fetching; // they are being entered
    gni_span *span;
    size_t count, capacity;
    uint64_t dropped; // for lack of memory
};

static void gni_profile_free(gn_context *g) {
    if (g->profile == NULL) return;
    gni_free(g, g->profile->span);
    gni_free(g, g->profile);
    g->profile = NULL;
}

static void gni_profile_span(gn_context *g, const char *name, uint64_t start_ns, uint64_t end_ns,
                             int track) {
    struct gni_profile *p = g->profile;
    if (p == NULL || start_ns < p->start || end_ns < start_ns || track < 0 || track >= GNI_TRACKS)
        return;
    // Of the device's work this is the time that it took to record.
    if (p->device && !p->fetching) track = GNI_TRACK_CPU;
    if (p->count == p->capacity) {
        size_t capacity = p->capacity > 0 ? 2 * p->capacity : 256;
        gni_span *more = (gni_span *)gni_realloc(g, p->span, sizeof(gni_span) * p->count,
                                                 sizeof(gni_span) * capacity);
        if (more == NULL) {
            p->dropped++;
            return;
        }
        p->span = more;
        p->capacity = capacity;
    }
    gni_span *s = &p->span[p->count++];
    s->start = start_ns;
    s->end = end_ns;
    s->track = track;
    snprintf(s->name, sizeof s->name, "%s", name);
}

// Enters what the device did since the last time.
static void gni_profile_fetch(gn_context *g) {
    gni_gpu_event events[64];
    struct gni_profile *p = g->profile;
    p->fetching = true;
    for (int n = 1; n > 0 && g->gpu != NULL && p->device;) {
        n = g->gpu->layer->profile_fetch(g->gpu, events, GNI_COUNT(events));
        for (int i = 0; i < n; i++)
            gni_profile_span(g, events[i].name, events[i].begin, events[i].end, GNI_TRACK_GPU);
    }
    p->fetching = false;
}

static void gni_profile_start(gn_context *g) {
    struct gni_profile *p = g->profile;
    p->start = UINT64_MAX; // so that nothing from before is entered
    p->device = g->gpu != NULL && g->gpu->layer->profile(g->gpu, true);
    gni_profile_fetch(g);
    p->start = gni_now_ns();
}

GPUNUM_API void gn_profile_begin(gn_context *g) {
    if (!gni_begin_context("gn_profile_begin", g)) return;
    gni_profile_free(g); // a profile that was not ended
    g->profile = (struct gni_profile *)gni_calloc(g, sizeof(struct gni_profile));
    if (g->profile == NULL)
        gni_fail_memory(g, "gn_profile_begin", sizeof(struct gni_profile));
    else
        gni_profile_start(g);
    gni_end_plain(g);
}

// Bytes of the UTF-8 character at p, 0 if it is none.
static size_t gni_utf8_length(const unsigned char *p) {
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    int more = *p >= 0xf8 ? 0 : *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : *p >= 0xc0 ? 1 : 0;
    if (*p < 0x80) return 1;
    if (more == 0) return 0;
    uint32_t c = *p & (0x3fu >> more);
    for (int i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    bool fine = c >= least[more] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
    return fine ? (size_t)more + 1 : 0;
}

static void gni_json_string(FILE *f, const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    fputc('"', f);
    while (*p != 0) {
        size_t n = gni_utf8_length(p);
        if (*p == '"' || *p == '\\')
            fprintf(f, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            fprintf(f, "\\u%04x", *p);
        else if (n == 0)
            fputs("\\ufffd", f);
        else
            fwrite(p, 1, n, f);
        p += n > 0 ? n : 1;
    }
    fputc('"', f);
}

// Microseconds with three digits, by integers: no locale writes a comma.
static void gni_json_us(FILE *f, uint64_t ns) {
    fprintf(f, "%llu.%03u", (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

static void gni_profile_write(gn_context *g, FILE *f) {
    static const char *const track[GNI_TRACKS] = {"CPU", "GPU"};
    const struct gni_profile *p = g->profile;
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"device\":", f);
    gni_json_string(f, g->info.name);
    fprintf(f, ",\"dropped\":%llu},\"traceEvents\":[\n", (unsigned long long)p->dropped);
    for (int i = 0; i < GNI_TRACKS; i++)
        fprintf(
            f,
            "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"%s\"}}%s",
            i + 1, track[i], i + 1 < GNI_TRACKS || p->count > 0 ? ",\n" : "\n");
    for (size_t i = 0; i < p->count; i++) {
        const gni_span *s = &p->span[i];
        fputs("{\"name\":", f);
        gni_json_string(f, s->name);
        fprintf(f, ",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":", s->track + 1);
        gni_json_us(f, s->start - p->start);
        fputs(",\"dur\":", f);
        gni_json_us(f, s->end - s->start);
        fputs(i + 1 < p->count ? "},\n" : "}\n", f);
    }
    fputs("]}\n", f);
}

GPUNUM_API gn_status gn_profile_end(gn_context *g, const char *path) {
    if (!gni_begin_context("gn_profile_end", g)) return GN_ERROR_ARGUMENT;
    gn_sync(g); // spans of work still under way
    if (g->profile != NULL) {
        gni_profile_fetch(g);
        if (g->profile->device && g->gpu != NULL) g->gpu->layer->profile(g->gpu, false);
    }
    if (g->profile == NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_profile_end: gn_profile_begin was not called");
    } else if (path == NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_profile_end: the path is NULL");
    } else {
        errno = 0;
        FILE *f = fopen(path, "wb");
        bool ok = f != NULL;
        if (ok) {
            gni_profile_write(g, f);
            ok = fflush(f) == 0 && !ferror(f);
            ok = fclose(f) == 0 && ok;
        }
        if (!ok)
            gni_fail(g, GN_ERROR_IO, "gn_profile_end: cannot write %.200s: %s", path,
                     strerror(errno));
    }
    gni_profile_free(g);
    return gni_end_status(g);
}
