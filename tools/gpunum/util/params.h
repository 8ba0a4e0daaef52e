// >>params
// Named arrays, and files of them: safetensors. Everything in a file is checked before memory is asked for: the header is
// read strictly, and its offsets have to cover the data without gaps and overlaps.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../grad/optim.h"
#include "../util/io.h"
#include "../util/profile.h"
#endif

typedef struct gni_named {
    char *name, *text; // the text of metadata
    gn_array *a;         // or this, which the list is an owner of
    uint64_t begin, end; // in a file's data
    gn_dtype t;          // as a file's header has it
    gn_shape shape;
    bool state;          // of an optimizer
} gni_named;

typedef struct gni_names {
    gni_named *item;
    int count, capacity;
} gni_names;

struct gn_params {
    gni_handle handle;
    gn_params *next;
    gni_names arrays, notes;
};

enum { GNI_SAFETENSORS_MOST = 100000000 }; // bytes of a header, as the format has it

static bool gni_is_utf8(const char *text, size_t n) {
    const unsigned char *p = (const unsigned char *)text; // a zero byte, which is none, ends it
    for (size_t at = 0, length; at < n; at += length)
        if ((length = gni_utf8_length(p + at)) == 0 || length > n - at) return false;
    return true;
}

static void gni_names_free(gn_context *g, gni_names *n) {
    for (int i = 0; i < n->count; i++) {
        if (n->item[i].a != NULL) gni_user_release(g, n->item[i].a);
        gni_free(g, n->item[i].name);
        gni_free(g, n->item[i].text);
    }
    gni_free(g, n->item);
}

static char *gni_text_copy(gn_context *g, const char *text) {
    const size_t bytes = strlen(text) + 1;
    char *copy = (char *)gni_alloc(g, bytes);
    if (copy == NULL) gni_fail_memory(g, g->call, bytes);
    else memcpy(copy, text, bytes);
    return copy;
}

// One more, with a name and nothing else; NULL after gni_fail.
static gni_named *gni_names_add(gn_context *g, gni_names *n, const char *name) {
    if (n->count == n->capacity) {
        const int capacity = n->capacity < INT32_MAX / 2 ? GNI_MAX(16, 2 * n->capacity) : 0;
        const size_t had = sizeof(gni_named) * (size_t)n->capacity, bytes = sizeof(gni_named) * (size_t)capacity;
        gni_named *item = capacity > 0 ? (gni_named *)gni_realloc(g, n->item, had, bytes) : NULL;
        if (item == NULL) {
            gni_fail_memory(g, g->call, bytes);
            return NULL;
        }
        n->item = item;
        n->capacity = capacity;
    }
    gni_named *e = &n->item[n->count];
    memset(e, 0, sizeof *e);
    e->name = gni_text_copy(g, name);
    if (e->name == NULL) return NULL;
    n->count++;
    return e;
}

static gni_named *gni_names_find(const gni_names *n, const char *name) {
    for (int i = 0; i < n->count; i++)
        if (strcmp(n->item[i].name, name) == 0) return &n->item[i];
    return NULL;
}

// ---- the list

static gn_params *gni_params_new(gn_context *g) {
    gn_params *p = (gn_params *)gni_calloc(g, sizeof(gn_params));
    if (p == NULL) {
        gni_fail_memory(g, g->call, sizeof(gn_params));
        return NULL;
    }
    gni_handle_init(g, p, GNI_IS_PARAMS);
    p->next = g->params;
    g->params = p;
    return p;
}

static void gni_params_release(gn_params *p) {
    gn_context *g = p->handle.ctx;
    gn_params **at = &g->params;
    while (*at != NULL && *at != p) at = &(*at)->next;
    if (*at == p) *at = p->next;
    gni_names_free(g, &p->arrays);
    gni_names_free(g, &p->notes);
    p->handle.magic = 0;
    gni_free(g, p);
}

GPUNUM_API gn_params *gn_params_new(gn_context *g) {
    if (!gni_begin_context("gn_params_new", g)) return NULL;
    gn_params *p = gni_params_new(g);
    gni_end_plain(g);
    return p;
}

GPUNUM_API void gn_params_free(gn_params *p) {
    gn_context *g = gni_begin_with("gn_params_free", p, GNI_IS_PARAMS);
    if (g == NULL) return;
    gni_params_release(p);
    gni_end_plain(g);
}

// Whether a name may be there: text in UTF-8 that is not the format's own.
static bool gni_name_ok(gn_context *g, const char *name) {
    const bool ok = name != NULL && name[0] != 0 && strcmp(name, "__metadata__") != 0 && gni_is_utf8(name, strlen(name));
    if (!ok) gni_fail(g, GN_ERROR_ARGUMENT, "%s: the name is NULL, empty, __metadata__ or not UTF-8", g->call);
    return ok;
}

// Names are there once, but an optimizer's may come in the place of what an optimizer had there. False after gni_fail.
static bool gni_params_has_room(gn_params *p, const char *name, bool state) {
    const gni_named *e = gni_names_find(&p->arrays, name);
    if (e == NULL || (state && e->state)) return true;
    return gni_fail(p->handle.ctx, GN_ERROR_ARGUMENT, "%s: there is a '%.200s' already", p->handle.ctx->call, name);
}

static void gni_params_put(gn_params *p, const char *name, gn_array *a, bool state) {
    gn_context *g = p->handle.ctx;
    if (!gni_params_has_room(p, name, state)) return;
    gni_named *e = gni_names_find(&p->arrays, name);
    if (e == NULL) e = gni_names_add(g, &p->arrays, name);
    if (e == NULL || e->a == a) return;
    gni_ref(a);
    a->user_refs++;
    if (e->a != NULL) gni_user_release(g, e->a);
    e->a = a;
    e->state = state;
}

GPUNUM_API gn_status gn_params_add(gn_params *p, const char *name, gn_array *a) {
    gn_context *g = gni_begin("gn_params_add", &a, 1);
    if (g == NULL) return gni_null_status(a);
    if (gni_home_of(p, GNI_IS_PARAMS) != g)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_params_add: the list is none, or of another context");
    else if (gni_name_ok(g, name) && !g->call_failed)
        gni_params_put(p, name, a, false);
    return gni_end_status(g);
}

GPUNUM_API int gn_params_count(const gn_params *p) {
    gn_context *g = gni_begin_with("gn_params_count", p, GNI_IS_PARAMS);
    if (g == NULL) return 0;
    const int count = p->arrays.count;
    gni_end_plain(g);
    return count;
}

GPUNUM_API const char *gn_params_name(const gn_params *p, int i) {
    gn_context *g = gni_begin_with("gn_params_name", p, GNI_IS_PARAMS);
    if (g == NULL) return NULL;
    const char *name = i >= 0 && i < p->arrays.count ? p->arrays.item[i].name : NULL;
    gni_end_plain(g);
    return name;
}

GPUNUM_API gn_array *gn_params_at(const gn_params *p, int i) {
    gn_context *g = gni_begin_with("gn_params_at", p, GNI_IS_PARAMS);
    if (g == NULL) return NULL;
    gn_array *a = i >= 0 && i < p->arrays.count ? p->arrays.item[i].a : NULL;
    gni_end_plain(g);
    return a;
}

GPUNUM_API gn_array *gn_params_get(const gn_params *p, const char *name) {
    gn_context *g = name != NULL ? gni_begin_with("gn_params_get", p, GNI_IS_PARAMS) : NULL;
    if (g == NULL) return NULL;
    const gni_named *e = gni_names_find(&p->arrays, name);
    gn_array *a = e != NULL ? e->a : NULL;
    gni_end_plain(g);
    return a;
}

GPUNUM_API gn_status gn_params_note(gn_params *p, const char *key, const char *text) {
    gn_context *g = gni_begin_with("gn_params_note", p, GNI_IS_PARAMS);
    if (g == NULL) return GN_ERROR_ARGUMENT;
    if (key == NULL || text == NULL || !gni_is_utf8(key, strlen(key)) || !gni_is_utf8(text, strlen(text))) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_params_note: the key or the text is NULL or not UTF-8");
        return gni_end_status(g);
    }
    gni_named *e = gni_names_find(&p->notes, key);
    char *copy = gni_text_copy(g, text);
    if (e == NULL && copy != NULL) e = gni_names_add(g, &p->notes, key);
    if (e != NULL && copy != NULL) {
        gni_free(g, e->text);
        e->text = copy;
    } else {
        gni_free(g, copy);
    }
    return gni_end_status(g);
}

GPUNUM_API const char *gn_params_noted(const gn_params *p, const char *key) {
    gn_context *g = key != NULL ? gni_begin_with("gn_params_noted", p, GNI_IS_PARAMS) : NULL;
    if (g == NULL) return NULL;
    const gni_named *e = gni_names_find(&p->notes, key);
    const char *text = e != NULL ? e->text : NULL;
    gni_end_plain(g);
    return text;
}

// ---- saving

static void gni_json_put(gni_file *file, const char *text) {
    gni_file_write(file, "\"", 1);
    for (; *text != 0; text++) {
        char escape[8];
        if (*text == '"' || *text == '\\')
            gni_file_write(file, escape, (size_t)snprintf(escape, sizeof escape, "\\%c", *text));
        else if ((unsigned char)*text < 32)
            gni_file_write(file, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*text));
        else
            gni_file_write(file, text, 1);
    }
    gni_file_write(file, "\"", 1);
}

static const char *const gni_safetensors_names[] = {
#define GN_X(name, bytes, numpy, safetensors) safetensors,
    GN_DTYPE_LIST(GN_X)
#undef GN_X
};

static void gni_safetensors_header(gni_file *file, const gn_params *p) {
    char text[64];
    const char *comma = "";
    gni_file_write(file, "{", 1);
    if (p->notes.count > 0) gni_file_write(file, "\"__metadata__\":{", 16);
    for (int i = 0; i < p->notes.count; i++) {
        if (i > 0) gni_file_write(file, ",", 1);
        gni_json_put(file, p->notes.item[i].name);
        gni_file_write(file, ":", 1);
        gni_json_put(file, p->notes.item[i].text);
    }
    if (p->notes.count > 0) gni_file_write(file, comma = "}", 1);
    for (int i = 0; i < p->arrays.count; i++) {
        const gni_named *e = &p->arrays.item[i];
        if (comma[0] != 0) gni_file_write(file, ",", 1);
        comma = ",";
        gni_json_put(file, e->name);
        int n = snprintf(text, sizeof text, ":{\"dtype\":\"%s\",\"shape\":[", gni_safetensors_names[e->a->dtype]);
        gni_file_write(file, text, (size_t)n);
        for (int k = 0; k < e->a->shape.rank; k++) {
            n = snprintf(text, sizeof text, k > 0 ? ",%lld" : "%lld", (long long)e->a->shape.dim[k]);
            gni_file_write(file, text, (size_t)n);
        }
        n = snprintf(text, sizeof text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)e->begin,
                     (unsigned long long)e->end);
        gni_file_write(file, text, (size_t)n);
    }
    gni_file_write(file, "}", 1);
}

// Lays the data out, wide elements first so that all are aligned; false after gni_fail.
static bool gni_params_lay(const gn_params *p) {
    uint64_t at = 0;
    for (size_t size = 8; size > 0; size /= 2)
        for (int i = 0; i < p->arrays.count; i++) {
            gni_named *e = &p->arrays.item[i];
            if (gn_dtype_size(e->a->dtype) != size) continue;
            e->begin = at;
            e->end = at += gn_bytes(e->a);
        }
    for (int i = 0; i < p->arrays.count; i++) {
        if (p->arrays.item[i].a->dtype != GN_C128) continue;
        return gni_fail(p->handle.ctx, GN_ERROR_DTYPE, "%s: %.200s is complex128, which safetensors has not",
                        p->handle.ctx->call, p->arrays.item[i].name);
    }
    return !p->handle.ctx->call_failed;
}

static void gni_params_write(gni_file *file, const gn_params *p) {
    gn_context *g = p->handle.ctx;
    unsigned char head[8];
    gni_file count = gni_file_of(g, file->fn, file->path);
    gni_safetensors_header(&count, p);
    const uint64_t bytes = (count.at + 7) / 8 * 8;
    for (int i = 0; i < 8; i++) head[i] = (unsigned char)(bytes >> (8 * i));
    gni_file_write(file, head, 8);
    gni_safetensors_header(file, p);
    gni_file_write(file, "       ", (size_t)(bytes - count.at));
    for (size_t size = 8; size > 0; size /= 2)
        for (int i = 0; i < p->arrays.count && !g->call_failed; i++) {
            gn_array *a = p->arrays.item[i].a;
            if (gn_dtype_size(a->dtype) != size) continue;
            const void *data;
            gn_array *c = gni_file_data(g, a, &data);
            if (c != NULL) gni_file_write(file, data, gn_bytes(c));
            gni_unref(g, c);
        }
}

GPUNUM_API gn_status gn_params_save(const gn_params *p, const char *path) {
    gn_context *g = gni_begin_with("gn_params_save", p, GNI_IS_PARAMS);
    if (g == NULL) return GN_ERROR_ARGUMENT;
    gni_file file = gni_file_of(g, "gn_params_save", path);
    // Before the file is touched.
    for (int i = 0; i < p->arrays.count && !g->call_failed; i++) gni_materialize(g, p->arrays.item[i].a);
    if (!g->call_failed && gni_params_lay(p) && gni_file_create(&file)) {
        gni_params_write(&file, p);
        gni_file_finish(&file);
    }
    return gni_end_status(g);
}

GPUNUM_API size_t gn_params_save_memory(const gn_params *p, void *out, size_t capacity) {
    gn_context *g = gni_begin_with("gn_params_save_memory", p, GNI_IS_PARAMS);
    if (g == NULL) return 0;
    gni_file file = gni_file_of(g, "gn_params_save_memory", "memory");
    file.to = (unsigned char *)out;
    file.size = capacity;
    if (gni_params_lay(p)) gni_params_write(&file, p);
    const size_t bytes = gni_file_written(&file);
    gni_end_plain(g);
    return bytes;
}

// ---- loading: the header is JSON, of which only what the format has is taken

typedef struct gni_json {
    char *p;         // a zero byte ends it
    const char *why; // what is wrong
    char told[64];   // that, where it names something of the file
} gni_json;

static void gni_json_blanks(gni_json *j) {
    while (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r') j->p++;
}

static bool gni_json_is(gni_json *j, char c) {
    gni_json_blanks(j);
    if (*j->p != c) return false;
    j->p++;
    return true;
}

static bool gni_json_wrong(gni_json *j, const char *why) {
    if (j->why == NULL) j->why = why;
    return false;
}

static bool gni_json_need(gni_json *j, char c) {
    return gni_json_is(j, c) || gni_json_wrong(j, "the header is not JSON, or not safetensors'");
}

// Four digits of a code unit; -1 if they are none.
static int gni_json_unit(const char *p) {
    int v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        v = v << 4 | digit;
    }
    return v;
}

// The code point after \u, as UTF-8 at *to; false: it is none, or zero.
static bool gni_json_point(gni_json *j, char **to) {
    int v = gni_json_unit(j->p);
    if (v <= 0 || (v >= 0xdc00 && v < 0xe000)) return false;
    j->p += 4;
    if (v >= 0xd800 && v < 0xdc00) {
        const int low = j->p[0] == '\\' && j->p[1] == 'u' ? gni_json_unit(j->p + 2) : -1;
        if (low < 0xdc00 || low >= 0xe000) return false;
        j->p += 6;
        v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
    }
    const int more = v < 0x80 ? 0 : v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
    *(*to)++ = (char)(more == 0 ? v : (0xff00 >> (more + 1) & 0xff) | v >> 6 * more);
    for (int i = more; i-- > 0;) *(*to)++ = (char)(0x80 | (v >> 6 * i & 63));
    return true;
}

// A string, unescaped in its place and ended by a zero byte; NULL: it is none.
static char *gni_json_take(gni_json *j) {
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (!gni_json_need(j, '"')) return NULL;
    char *start = j->p, *to = start;
    bool ok = true;
    while (ok && *j->p != '"') {
        const char c = *j->p++;
        if (c != '\\') {
            ok = (unsigned char)c >= 32; // the end of the text is not
            *to++ = c;
            continue;
        }
        const char *known = *j->p != 0 ? strchr(escapes, *j->p) : NULL;
        ok = known != NULL || *j->p == 'u';
        if (ok) j->p++;
        if (known != NULL) *to++ = meant[known - escapes];
        else ok = ok && gni_json_point(j, &to);
    }
    if (!ok || !gni_is_utf8(start, (size_t)(to - start))) {
        gni_json_wrong(j, "a string of the header is damaged");
        return NULL;
    }
    j->p++;
    *to = 0;
    return start;
}

static bool gni_json_number(gni_json *j, uint64_t *v) {
    gni_json_blanks(j);
    const char *start = j->p;
    for (*v = 0; *j->p >= '0' && *j->p <= '9' && *v <= (INT64_MAX - 9) / 10; j->p++) *v = *v * 10 + (uint64_t)(*j->p - '0');
    const bool more = (*j->p >= '0' && *j->p <= '9') || *j->p == '.' || *j->p == 'e' || *j->p == 'E';
    if (j->p > start && !more && (*start != '0' || j->p == start + 1)) return true;
    return gni_json_wrong(j, "a number of the header is not an integer from 0 on, or too large");
}

static bool gni_json_dtype(gni_json *j, gn_dtype *t) {
    const char *text = gni_json_take(j);
    for (int i = 0; text != NULL && i < GN_DTYPE_COUNT; i++)
        if (i != GN_C128 && strcmp(text, gni_safetensors_names[i]) == 0) {
            *t = (gn_dtype)i;
            return true;
        }
    snprintf(j->told, sizeof j->told, "dtype '%.20s' has no counterpart here", text != NULL ? text : "");
    return gni_json_wrong(j, j->told);
}

static bool gni_json_shape(gni_json *j, gn_shape *s) {
    uint64_t v;
    *s = gn_shape_from(0, NULL);
    if (!gni_json_need(j, '[')) return false;
    if (gni_json_is(j, ']')) return true;
    do {
        if (s->rank == GN_MAX_RANK) return gni_json_wrong(j, "an array has more than 8 dimensions");
        if (!gni_json_number(j, &v)) return false;
        s->dim[s->rank++] = (int64_t)v;
    } while (gni_json_is(j, ','));
    return gni_json_need(j, ']');
}

// {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
static bool gni_json_entry(gni_json *j, gni_named *e) {
    unsigned seen = 0, bit;
    if (!gni_json_need(j, '{')) return false;
    do {
        const char *key = gni_json_take(j);
        if (key == NULL || !gni_json_need(j, ':')) return false;
        bit = strcmp(key, "dtype") == 0 ? 1 : strcmp(key, "shape") == 0 ? 2 : strcmp(key, "data_offsets") == 0 ? 4 : 0;
        if (bit == 0 || (seen & bit) != 0)
            return gni_json_wrong(j, "an array of the header has a key that is not known, or one twice");
        seen |= bit;
        if (bit == 1 ? !gni_json_dtype(j, &e->t) : bit == 2 && !gni_json_shape(j, &e->shape)) return false;
        if (bit == 4 && !(gni_json_need(j, '[') && gni_json_number(j, &e->begin) && gni_json_need(j, ',') &&
                          gni_json_number(j, &e->end) && gni_json_need(j, ']')))
            return false;
    } while (gni_json_is(j, ','));
    if (seen != 7) return gni_json_wrong(j, "an array of the header lacks one of dtype, shape, data_offsets");
    return gni_json_need(j, '}');
}

static bool gni_json_notes(gni_json *j, gn_params *p) {
    if (!gni_json_need(j, '{')) return false;
    if (gni_json_is(j, '}')) return true;
    do {
        const char *key = gni_json_take(j);
        gni_named *e = key != NULL && gni_json_need(j, ':') ? gni_names_add(p->handle.ctx, &p->notes, key) : NULL;
        const char *text = e != NULL ? gni_json_take(j) : NULL;
        if (text == NULL || (e->text = gni_text_copy(p->handle.ctx, text)) == NULL) return false;
    } while (gni_json_is(j, ','));
    return gni_json_need(j, '}');
}

static bool gni_json_header(gni_json *j, gn_params *p) {
    bool noted = false;
    if (!gni_json_need(j, '{')) return false;
    if (!gni_json_is(j, '}')) {
        do {
            const char *name = gni_json_take(j);
            if (name == NULL || !gni_json_need(j, ':')) return false;
            const bool notes = strcmp(name, "__metadata__") == 0;
            if (notes && noted) return gni_json_wrong(j, "a name is there twice");
            noted = noted || notes;
            gni_named *e = notes ? NULL : gni_names_add(p->handle.ctx, &p->arrays, name);
            if (notes ? !gni_json_notes(j, p) : e == NULL || !gni_json_entry(j, e)) return false;
        } while (gni_json_is(j, ','));
        if (!gni_json_need(j, '}')) return false;
    }
    gni_json_blanks(j);
    return *j->p == 0 || gni_json_wrong(j, "something follows the header's object");
}

static int gni_by_name(const void *a, const void *b) {
    return strcmp((*(gni_named *const *)a)->name, (*(gni_named *const *)b)->name);
}

static int gni_by_place(const void *a, const void *b) {
    const gni_named *x = *(gni_named *const *)a, *y = *(gni_named *const *)b;
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : x->end != y->end ? (x->end < y->end ? -1 : 1) : 0;
}

// The entries in the order of their data, which they cover whole: `bytes` of it. NULL after gni_fail; the caller's to
// gni_free.
static gni_named **gni_params_in_order(const gni_file *file, const gni_names *n, bool places, uint64_t bytes) {
    gni_named **order = (gni_named **)(void *)gni_file_room(file, sizeof(gni_named *) * (uint64_t)n->count);
    const char *why = NULL;
    uint64_t at = 0;
    for (int i = 0; i < n->count && order != NULL; i++) order[i] = &n->item[i];
    if (order == NULL) return NULL;
    qsort(order, (size_t)n->count, sizeof *order, gni_by_name);
    for (int i = 1; i < n->count && why == NULL; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0) why = "a name is there twice";
    if (places) qsort(order, (size_t)n->count, sizeof *order, gni_by_place);
    for (int i = 0; i < n->count && places && why == NULL; i++) {
        const gni_named *e = order[i];
        const int64_t elements = gni_elements(&e->shape);
        if (e->name[0] == 0 || elements < 0 || (uint64_t)elements > UINT64_MAX / 16)
            why = "an array has no name, or more elements than there can be";
        else if (e->begin != at || e->end < at || e->end - at != (uint64_t)elements * gn_dtype_size(e->t))
            why = "the places of the arrays have gaps, overlap, or are not of their size";
        at = e->end;
    }
    if (places && why == NULL && at != bytes) why = "the arrays do not fill the file";
    if (why == NULL) return order;
    gni_file_malformed(file, why);
    gni_free(file->g, order);
    return NULL;
}

static bool gni_safetensors_read(gni_file *file, gn_params *p) {
    gn_context *g = file->g;
    unsigned char head[8];
    uint64_t bytes = 0;
    if (!gni_file_read(file, head, 8)) return false;
    for (int i = 8; i-- > 0;) bytes = bytes << 8 | head[i];
    if (file->size == UINT64_MAX || bytes > GNI_SAFETENSORS_MOST || bytes > file->size - 8) {
        gni_file_malformed(file, "the header would be longer than the file, or than 100 MB");
        return false;
    }
    gni_json j;
    char *text = j.p = (char *)gni_file_room(file, bytes);
    bool ok = text != NULL && gni_file_read(file, text, (size_t)bytes);
    j.why = NULL;
    if (ok) text[bytes] = 0;
    if (ok && strlen(text) != bytes) ok = gni_json_wrong(&j, "the header holds a zero byte");
    ok = ok && gni_json_header(&j, p);
    gni_free(g, text);
    if (!ok && !g->call_failed) gni_file_malformed(file, j.why != NULL ? j.why : "the header is damaged");
    gni_named **order = ok ? gni_params_in_order(file, &p->notes, false, 0) : NULL;
    ok = order != NULL;
    gni_free(g, order);
    order = ok ? gni_params_in_order(file, &p->arrays, true, file->size - 8 - bytes) : NULL;
    for (int i = 0; i < p->arrays.count && order != NULL && !g->call_failed; i++) {
        gn_array *a = gni_file_seek(file, 8 + bytes + order[i]->begin)
                          ? gni_file_array(file, order[i]->t, &order[i]->shape, true)
                          : NULL;
        if (a != NULL) a->user_refs++;
        order[i]->a = a;
    }
    gni_free(g, order);
    return !g->call_failed;
}

// All arrays of a file that was opened, which is closed afterwards.
static gn_params *gni_safetensors_load(gni_file *file) {
    gn_params *p = gni_params_new(file->g);
    if (p != NULL && !gni_safetensors_read(file, p)) {
        gni_params_release(p);
        p = NULL;
    }
    gni_file_close(file);
    return p;
}

GPUNUM_API gn_params *gn_load_safetensors(gn_context *g, const char *path) {
    if (!gni_begin_context("gn_load_safetensors", g)) return NULL;
    gni_file file;
    gn_params *p = gni_file_open(&file, g, "gn_load_safetensors", path) ? gni_safetensors_load(&file) : NULL;
    gni_end_plain(g);
    return p;
}

GPUNUM_API gn_params *gn_load_safetensors_memory(gn_context *g, const void *data, size_t bytes) {
    if (!gni_begin_context("gn_load_safetensors_memory", g)) return NULL;
    gni_file file;
    gn_params *p =
        gni_file_open_memory(&file, g, "gn_load_safetensors_memory", data, bytes) ? gni_safetensors_load(&file) : NULL;
    gni_end_plain(g);
    return p;
}

// Values that are to be written over arrays of their shapes: all of them, or where memory runs out none.
typedef struct gni_writes {
    gn_array **item; // to, value, to, value, ...
    int count;
} gni_writes;

// Everything that may fail of writing `from` over `to`, in to's dtype.
static void gni_writes_add(gn_context *g, gni_writes *w, gn_array *from, gn_array *to) {
    const void *data;
    const size_t had = 2 * sizeof *w->item * (size_t)w->count;
    gn_array *reader, **item = (gn_array **)gni_realloc(g, w->item, had, had + 2 * sizeof *w->item);
    if (item == NULL) {
        gni_fail_memory(g, g->call, had);
        return;
    }
    w->item = item;
    gn_scope_begin(g);
    g->no_grad++;
    gn_array *value = from->dtype != to->dtype ? gn_cast(from, to->dtype) : from;
    value = value != NULL ? gni_file_data(g, value, &data) : NULL;
    if (value != NULL) {
        item[2 * w->count] = to;
        item[2 * w->count++ + 1] = value;
        bool ok = gni_elements(&to->shape) == 0 || gni_materialize(g, to);
        if (ok && to->buf != NULL)
            ok = gn_bytes(to) == to->buf->bytes ? gni_buffer_memory(g, to->buf, GNI_ON_CPU)
                                                : gni_buffer_need(g, to->buf, GNI_ON_CPU);
        while (ok && to->buf != NULL && (reader = gni_find_reader(g, to, 0)) != NULL) ok = gni_materialize(g, reader);
    }
    g->no_grad--;
    gn_scope_end(g);
}

// Writes unless something failed.
static void gni_writes_end(gn_context *g, gni_writes *w) {
    for (int i = 0; i < w->count; i++) {
        gn_array *to = w->item[2 * i], *value = w->item[2 * i + 1];
        const int64_t count = g->call_failed ? 0 : gni_elements(&to->shape);
        const size_t size = gn_dtype_size(to->dtype);
        const bool whole = gni_is_contiguous(to);
        const char *data = count > 0 ? (const char *)value->buf->host + (size_t)value->offset * size : NULL;
        int64_t at = to->offset, index[GN_MAX_RANK] = {0};
        if (count > 0) gni_buffer_claim(g, to->buf, GNI_ON_CPU);
        for (int64_t k = 0; k < (whole ? GNI_MIN(count, 1) : count); k++, data += size) {
            memcpy((char *)to->buf->host + (size_t)at * size, data, whole ? (size_t)count * size : size);
            for (int d = to->shape.rank - 1; d >= 0; d--) {
                at += to->stride[d];
                if (++index[d] < to->shape.dim[d]) break;
                at -= to->stride[d] * index[d];
                index[d] = 0;
            }
        }
        gni_unref(g, value);
    }
    gni_free(g, w->item);
}

static bool gni_params_fit(gn_context *g, const gn_array *from, const gn_array *to, const char *name) {
    char tx[200], ty[200];
    if (to->node != NULL) return gni_fail(g, GN_ERROR_GRADIENT, "%s: %s made %.200s", g->call, to->maker, name);
    if (from != NULL && gni_same_shape(&from->shape, &to->shape) && gni_is_complex(from->dtype) == gni_is_complex(to->dtype))
        return gni_is_pending(to) || gni_elements(&to->shape) == 0 || gni_can_write(g, g->call, to);
    if (from == NULL)
        gni_fail(g, GN_ERROR_FORMAT, "%s: there is no %.200s", g->call, name);
    else
        gni_fail(g, GN_ERROR_SHAPE, "%s: %.200s is %s %s and not %s %s", g->call, name, gn_dtype_name(from->dtype),
                 gni_shape_text(tx, sizeof tx, &from->shape), gn_dtype_name(to->dtype),
                 gni_shape_text(ty, sizeof ty, &to->shape));
    return false;
}

// What `of` has beside the names in `from`, as a list of its own; *rest may be NULL.
static void gni_params_rest(gn_params *of, gn_params *from, gn_params **rest) {
    gn_params *p = rest != NULL && !of->handle.ctx->call_failed ? gni_params_new(of->handle.ctx) : NULL;
    if (rest != NULL) *rest = p;
    for (int i = 0; i < of->arrays.count && p != NULL; i++) {
        const gni_named *e = &of->arrays.item[i];
        if (gni_names_find(&from->arrays, e->name) == NULL) gni_params_put(p, e->name, e->a, false);
    }
}

// All are compared before the first is written.
static void gni_params_take(gn_params *p, gn_params *from, bool matching) {
    gn_context *g = p->handle.ctx;
    gni_writes writes = {NULL, 0};
    for (int i = 0; i < p->arrays.count && !g->call_failed; i++) {
        const gni_named *e = &p->arrays.item[i];
        gn_array *a = gn_params_get(from, e->name);
        if (a != NULL || !matching) gni_params_fit(g, a, e->a, e->name);
    }
    for (int i = 0; i < from->arrays.count && !g->call_failed && !matching && from->arrays.count != p->arrays.count; i++)
        if (gni_names_find(&p->arrays, from->arrays.item[i].name) == NULL)
            gni_fail(g, GN_ERROR_FORMAT,
                     "%s: nothing takes the file's %.200s; to take a part of it: gn_params_load_matching", g->call,
                     from->arrays.item[i].name);
    for (int i = 0; i < p->arrays.count && !g->call_failed; i++) {
        const gni_named *e = &p->arrays.item[i];
        gn_array *a = gn_params_get(from, e->name);
        if (a != NULL) gni_writes_add(g, &writes, a, e->a);
    }
    gni_writes_end(g, &writes);
    if (g->call_failed) return;
    gni_names notes = p->notes;
    p->notes = from->notes;
    from->notes = notes;
}

static gn_status gni_params_load(gn_params *p, gni_file *file, bool opened) {
    gn_params *from = opened ? gni_safetensors_load(file) : NULL;
    if (from != NULL) {
        gni_params_take(p, from, false);
        gni_params_release(from);
    }
    return gni_end_status(p->handle.ctx);
}

GPUNUM_API gn_status gn_params_load(gn_params *p, const char *path) {
    gn_context *g = gni_begin_with("gn_params_load", p, GNI_IS_PARAMS);
    if (g == NULL) return GN_ERROR_ARGUMENT;
    gni_file file;
    const bool opened = gni_file_open(&file, g, "gn_params_load", path);
    return gni_params_load(p, &file, opened);
}

GPUNUM_API gn_status gn_params_load_memory(gn_params *p, const void *data, size_t bytes) {
    gn_context *g = gni_begin_with("gn_params_load_memory", p, GNI_IS_PARAMS);
    if (g == NULL) return GN_ERROR_ARGUMENT;
    gni_file file;
    const bool opened = gni_file_open_memory(&file, g, "gn_params_load_memory", data, bytes);
    return gni_params_load(p, &file, opened);
}

// Whether a call with these lists begins; they are NULL until it has gone well.
static bool gni_matching_begin(gn_params *p, const char *fn, gn_params **missing, gn_params **unused) {
    if (missing != NULL) *missing = NULL;
    if (unused != NULL) *unused = NULL;
    return gni_begin_with(fn, p, GNI_IS_PARAMS) != NULL;
}

static gn_status gni_params_load_matching(gn_params *p, gni_file *file, bool opened, gn_params **missing,
                                          gn_params **unused) {
    gn_context *g = p->handle.ctx;
    gn_params *from = opened ? gni_safetensors_load(file) : NULL, **lists[2];
    lists[0] = missing, lists[1] = unused;
    if (from != NULL) {
        gni_params_rest(p, from, missing);
        gni_params_rest(from, p, unused);
        if (!g->call_failed) gni_params_take(p, from, true);
        gni_params_release(from);
    }
    for (int i = 0; i < 2 && g->call_failed; i++) {
        if (lists[i] == NULL || *lists[i] == NULL) continue;
        gni_params_release(*lists[i]);
        *lists[i] = NULL;
    }
    return gni_end_status(g);
}

GPUNUM_API gn_status gn_params_load_matching(gn_params *p, const char *path, gn_params **missing, gn_params **unused) {
    if (!gni_matching_begin(p, "gn_params_load_matching", missing, unused)) return GN_ERROR_ARGUMENT;
    gni_file file;
    const bool opened = gni_file_open(&file, p->handle.ctx, "gn_params_load_matching", path);
    return gni_params_load_matching(p, &file, opened, missing, unused);
}

GPUNUM_API gn_status gn_params_load_matching_memory(gn_params *p, const void *data, size_t bytes, gn_params **missing,
                                                    gn_params **unused) {
    if (!gni_matching_begin(p, "gn_params_load_matching_memory", missing, unused)) return GN_ERROR_ARGUMENT;
    gni_file file;
    const bool opened = gni_file_open_memory(&file, p->handle.ctx, "gn_params_load_matching_memory", data, bytes);
    return gni_params_load_matching(p, &file, opened, missing, unused);
}

// ---- optimizers: their states as NAME.PARAMETER.STATE, and NAME.numbers: the rate, seed and place of the random stream in
// halves, above the seed's first one the kind from 1 on (0: an older file), and the steps of each parameter. Where some have
// settings of their own, NAME.settings: those of each.

enum { GNI_OPTIMIZER_NUMBERS = 5 };

static bool gni_optimizer_named(gn_params *p, const char *fn, const char *name, const gn_optimizer *opt) {
    gn_context *g = gni_begin_with(fn, p, GNI_IS_PARAMS);
    if (g == NULL) return false;
    if (gni_optimizer_ok(g, fn, opt) && gni_name_ok(g, name) && strlen(name) > 200)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: a name of more than 200 bytes", fn);
    if (!g->call_failed) return true;
    gni_end_plain(g);
    return false;
}

static void gni_state_name(char *text, size_t size, const char *name, int item, int state) {
    if (item < 0) snprintf(text, size, "%s.%s", name, state == 0 ? "numbers" : "settings");
    else snprintf(text, size, "%s.%d.%d", name, item, state);
}

GPUNUM_API gn_status gn_params_add_optimizer(gn_params *p, const char *name, gn_optimizer *opt) {
    static const char *const fn = "gn_params_add_optimizer";
    char text[256];
    void *data = NULL;
    if (p == NULL || opt == NULL || !gni_optimizer_named(p, fn, name, opt)) return GN_ERROR_ARGUMENT;
    gn_context *g = p->handle.ctx;
    for (int i = -1; i < opt->count; i++) // before the first is added
        for (int k = 0; k < (i < 0 ? 1 + opt->own : gni_states_of(opt, &opt->items[i])) && !g->call_failed; k++) {
            gni_state_name(text, sizeof text, name, i, k);
            gni_params_has_room(p, text, true);
        }
    for (int i = 0; i < opt->count && !g->call_failed && gni_states(g, opt, &opt->items[i]); i++)
        for (int k = 0; k < gni_states_of(opt, &opt->items[i]) && !g->call_failed; k++) {
            gni_state_name(text, sizeof text, name, i, k);
            gni_params_put(p, text, opt->items[i].state[k], true);
        }
    const int64_t count = GNI_OPTIMIZER_NUMBERS + opt->count;
    const gn_shape s = gn_shape_from(1, &count);
    gn_array *numbers = !g->call_failed ? gni_array_filled(g, fn, GN_F64, &s, &data) : NULL;
    if (numbers != NULL) {
        double *v = (double *)data;
        v[0] = opt->lr;
        v[1] = (double)(((uint64_t)opt->kind + 1) << 32 | g->seed >> 32), v[2] = (double)(g->seed & 0xffffffffu);
        v[3] = (double)(g->counter >> 32), v[4] = (double)(g->counter & 0xffffffffu);
        for (int i = 0; i < opt->count; i++) v[GNI_OPTIMIZER_NUMBERS + i] = (double)opt->items[i].steps;
        gni_state_name(text, sizeof text, name, -1, 0);
        gni_params_put(p, text, numbers, true);
        gni_unref(g, numbers);
    }
    const gn_shape table = GN_SHAPE(opt->count, GNI_GROUP_NUMBERS);
    gn_array *settings = opt->own && !g->call_failed ? gni_array_filled(g, fn, GN_F64, &table, &data) : NULL;
    if (settings != NULL) {
        for (int i = 0; i < opt->count; i++) memcpy((gni_group *)data + i, &opt->items[i].set, sizeof(gni_group));
        gni_state_name(text, sizeof text, name, -1, 1);
        gni_params_put(p, text, settings, true);
        gni_unref(g, settings);
    }
    return gni_end_status(g);
}

// The settings of an optimizer's items in a list, or NULL, after gni_fail unless there are none: numbers that leave each its
// states. The caller has a reference.
static gn_array *gni_optimizer_settings(const gn_optimizer *opt, gn_params *p, const char *name, const gni_group **sets) {
    gn_context *g = p->handle.ctx;
    const gn_shape table = GN_SHAPE(opt->count, GNI_GROUP_NUMBERS);
    const void *data = NULL;
    gn_array *a = opt->own ? gn_params_get(p, name) : NULL;
    bool ok = a != NULL && a->dtype == GN_F64 && gni_same_shape(&a->shape, &table);
    a = ok ? gni_file_data(g, a, &data) : NULL;
    *sets = (const gni_group *)data;
    ok = a != NULL;
    for (int i = 0; i < opt->count && ok; i++) {
        gni_optimized item = opt->items[i];
        const int states = gni_states_of(opt, &item);
        const double *v = (const double *)(const void *)&(*sets)[i];
        for (int k = 0; k < GNI_GROUP_NUMBERS && ok; k++)
            ok = v[k] >= 0.0 && (k < GNI_GROUP_FLAGS || v[k] == 0.0 || v[k] == 1.0);
        item.set = (*sets)[i];
        ok = ok && item.set.beta1 < 1.0 && item.set.beta2 < 1.0 && gni_states_of(opt, &item) == states;
    }
    if (ok || !opt->own) return a;
    if (!g->call_failed) gni_fail(g, GN_ERROR_FORMAT, "%s: %s are not those of these parameters", g->call, name);
    gni_unref(g, a);
    return NULL;
}

GPUNUM_API gn_status gn_optimizer_restore(gn_optimizer *opt, gn_params *p, const char *name) {
    static const char *const fn = "gn_optimizer_restore";
    char text[256];
    if (p == NULL || opt == NULL || !gni_optimizer_named(p, fn, name, opt)) return GN_ERROR_ARGUMENT;
    gn_context *g = p->handle.ctx;
    gni_writes writes = {NULL, 0};
    const gni_group *sets = NULL;
    gni_state_name(text, sizeof text, name, -1, 0);
    gn_array *numbers = gn_params_get(p, text);
    const int64_t count = GNI_OPTIMIZER_NUMBERS + opt->count;
    const bool fits =
        numbers != NULL && numbers->dtype == GN_F64 && numbers->shape.rank == 1 && numbers->shape.dim[0] == count;
    gn_array *c = fits ? gni_contiguous(g, numbers) : NULL;
    const double *v = c != NULL ? (const double *)gni_host(g, c) : NULL;
    bool ok = v != NULL && v[0] >= 0.0;
    for (int i = 1; i < count && ok; i++)
        ok = v[i] >= 0.0 && v[i] <= (i > 1 && i < GNI_OPTIMIZER_NUMBERS ? 4294967295.0 : 9007199254740992.0) &&
             v[i] == floor(v[i]);
    const uint64_t kind = ok ? (uint64_t)v[1] >> 32 : 0;
    if (!ok && !g->call_failed)
        gni_fail(g, GN_ERROR_FORMAT, "%s: %s is not that of an optimizer with %d parameters", fn, text, opt->count);
    if (kind != 0 && kind != (uint64_t)opt->kind + 1)
        gni_fail(g, GN_ERROR_FORMAT, "%s: %s is of another kind of optimizer", fn, text);
    gni_state_name(text, sizeof text, name, -1, 1);
    gn_array *settings = !g->call_failed ? gni_optimizer_settings(opt, p, text, &sets) : NULL;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < opt->count && !g->call_failed && gni_states(g, opt, &opt->items[i]); i++)
            for (int k = 0, states = gni_states_of(opt, &opt->items[i]); k <= states && !g->call_failed; k++) {
                gni_state_name(text, sizeof text, name, i, k);
                if (k == states) {
                    if (gni_names_find(&p->arrays, text) != NULL)
                        gni_fail(g, GN_ERROR_FORMAT, "%s: %s is of another kind of optimizer", fn, text);
                    break;
                }
                gn_array *state = opt->items[i].state[k], *from = gn_params_get(p, text);
                if (pass == 0) gni_params_fit(g, from, state, text);
                else if (from != state) gni_writes_add(g, &writes, from, state);
            }
    gni_writes_end(g, &writes);
    if (!g->call_failed) {
        opt->lr = v[0];
        g->seed = (uint64_t)v[1] << 32 | (uint64_t)v[2];
        g->counter = (uint64_t)v[3] << 32 | (uint64_t)v[4];
        for (int i = 0; i < opt->count; i++) opt->items[i].steps = (int64_t)v[GNI_OPTIMIZER_NUMBERS + i];
        for (int i = 0; i < opt->count && settings != NULL; i++) opt->items[i].set = sets[i];
    }
    gni_unref(g, c);
    gni_unref(g, settings);
    return gni_end_status(g);
}
