// >>csv
// Tables of numbers as text: a strict CSV, which takes nothing for a number that is none.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/files.h"
#include "../api/macros.h"
#include "../util/stream.h"
#include "../util/print.h"
#endif

typedef struct gni_csv {
    gni_file *file;
    const char *at, *end; // what is left of the text
    int64_t line;
    char delimiter;
    gn_dtype t;
    char point[8]; // what strtod takes for the decimal point
    char field[1208]; // the longest double in full takes 1077
} gni_csv;

static void gni_csv_begin(gni_csv *c, gni_file *file, gn_dtype t, char delimiter) {
    const struct lconv *local = localeconv();
    memset(c, 0, sizeof *c);
    c->file = file;
    c->t = t;
    c->delimiter = delimiter != 0 ? delimiter : ',';
    snprintf(c->point, sizeof c->point, "%s", local != NULL && local->decimal_point[0] != 0 ? local->decimal_point : ".");
}

// Delimiters that numbers and lines need themselves are refused, and dtypes that are no single number.
static bool gni_csv_ok(const gni_csv *c) {
    gn_context *g = c->file->g;
    if ((unsigned)c->t >= GN_DTYPE_COUNT || gni_is_complex(c->t))
        return gni_fail(g, GN_ERROR_DTYPE, "%s: %s has no form in a table of numbers", c->file->fn,
                        (unsigned)c->t < GN_DTYPE_COUNT ? gn_dtype_name(c->t) : "an unknown dtype");
    bool word = (c->delimiter >= '0' && c->delimiter <= '9') || (c->delimiter >= 'a' && c->delimiter <= 'z') ||
                (c->delimiter >= 'A' && c->delimiter <= 'Z');
    if (word || strchr("+-._\"'\n\r", c->delimiter) != NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: '%c' cannot separate numbers", c->file->fn, c->delimiter);
    return !g->call_failed;
}

// ---- reading

static bool gni_csv_fail(const gni_csv *c, int64_t column, const char *what) {
    return gni_fail(c->file->g, GN_ERROR_FORMAT, "%s: %.200s: line %lld, column %lld: %s", c->file->fn, c->file->path,
                    (long long)c->line, (long long)column + 1, what);
}

// Goes to the next line that is not blank. False: there is none.
static bool gni_csv_line(gni_csv *c) {
    while (c->at < c->end) {
        const char *p = c->at;
        c->line++;
        while (p < c->end && (*p == ' ' || *p == '\t') && *p != c->delimiter) p++;
        if (p < c->end && *p != '\n' && *p != '\r') return true;
        while (p < c->end && *p != '\n') p++;
        c->at = p < c->end ? p + 1 : p;
    }
    return false;
}

static void gni_csv_skip_line(gni_csv *c) {
    while (c->at < c->end && *c->at != '\n') c->at++;
    if (c->at < c->end) c->at++;
    c->line++;
}

// Takes one field, without blanks or quotes around it, to c->field. `*last`: its line ends there.
static bool gni_csv_field(gni_csv *c, int64_t column, bool *last) {
    const char *p = c->at, *stop;
    while (p < c->end && *p != c->delimiter && *p != '\n') p++;
    stop = p;
    *last = p == c->end || *p == '\n';
    const char *from = c->at;
    c->at = p < c->end ? p + 1 : p;
    if (*last && stop > from && stop[-1] == '\r') stop--;
    for (int quoted = 0;; quoted++) { // blanks, and within quotes blanks again
        while (from < stop && (*from == ' ' || *from == '\t')) from++;
        while (stop > from && (stop[-1] == ' ' || stop[-1] == '\t')) stop--;
        if (quoted > 0 || stop - from < 2 || *from != '"' || stop[-1] != '"') break;
        from++;
        stop--;
    }
    size_t n = (size_t)(stop - from);
    if (n == 0) return gni_csv_fail(c, column, "there is no number");
    if (n + sizeof c->point > sizeof c->field) return gni_csv_fail(c, column, "the number is longer than 1200 characters");
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (from[i] == 0) return gni_csv_fail(c, column, "there is a zero byte");
        size_t width = from[i] == '.' ? strlen(c->point) : 1;
        if (k + width >= sizeof c->field) return gni_csv_fail(c, column, "this is not a number");
        memcpy(c->field + k, from[i] == '.' ? c->point : from + i, width);
        k += width;
    }
    c->field[k] = 0;
    return true;
}

static bool gni_csv_not(const gni_csv *c, int64_t column, const char *what) {
    char text[192];
    snprintf(text, sizeof text, "'%.60s' is %s %s", c->field, what, gn_dtype_name(c->t));
    return gni_csv_fail(c, column, text);
}

// Stores the field as one element.
static bool gni_csv_store(const gni_csv *c, int64_t column, char *out) {
    const char *s = c->field;
    char *rest = NULL;
    size_t size = gn_dtype_size(c->t);
    errno = 0;
    if (c->t == GN_BOOL) {
        bool yes = strcmp(s, "1") == 0 || strcmp(s, "true") == 0 || strcmp(s, "True") == 0;
        if (!yes && strcmp(s, "0") != 0 && strcmp(s, "false") != 0 && strcmp(s, "False") != 0)
            return gni_csv_not(c, column, "not a number of dtype");
        *out = (char)yes;
        return true;
    }
    if (gni_is_float(c->t)) {
        if (strpbrk(s, "xX()") != NULL) return gni_csv_not(c, column, "not a number of dtype"); // hexadecimal
        float f = c->t == GN_F64 ? 0.0f : strtof(s, &rest);
        double d = c->t == GN_F32 ? 0.0 : strtod(s, &rest);
        if (rest == s || *rest != 0) return gni_csv_not(c, column, "not a number of dtype");
        if (c->t == GN_F64) memcpy(out, &d, sizeof d);
        if (c->t == GN_F32) memcpy(out, &f, sizeof f);
        uint16_t h = c->t == GN_F16    ? gni_f32_to_f16(gni_round_odd(d))
                     : c->t == GN_BF16 ? gni_f32_to_bf16(gni_round_odd(d))
                                       : 0;
        if (size == 2) memcpy(out, &h, sizeof h);
        return true;
    }
    bool natural = c->t == GN_U8 || c->t == GN_U16 || c->t == GN_U32 || c->t == GN_U64;
    uint64_t u = 0;
    int64_t v = 0;
    if (natural)
        u = strtoull(s, &rest, 10);
    else
        v = strtoll(s, &rest, 10);
    if (rest == s || *rest != 0) return gni_csv_not(c, column, "not a number of dtype");
    int bits = (int)size * 8;
    bool fits = errno == 0 && (natural ? *s != '-' && (bits == 64 || u >> bits == 0)
                                       : bits == 64 || (v >= -((int64_t)1 << (bits - 1)) && v < (int64_t)1 << (bits - 1)));
    if (!fits) return gni_csv_not(c, column, "out of the range of");
    if (!natural) u = (uint64_t)v;
    uint8_t b = (uint8_t)u;
    uint16_t h = (uint16_t)u;
    uint32_t w = (uint32_t)u;
    memcpy(out, size == 1 ? (void *)&b : size == 2 ? (void *)&h : size == 4 ? (void *)&w : (void *)&u, size);
    return true;
}

// Counts lines, and the columns of the first.
static bool gni_csv_measure(gni_csv c, gn_shape *s) {
    *s = GN_SHAPE(0, 0);
    for (; gni_csv_line(&c); s->dim[0]++) {
        for (bool last = s->dim[0] > 0; !last; s->dim[1]++)
            if (!gni_csv_field(&c, s->dim[1], &last)) return false;
        if (s->dim[0] > 0) gni_csv_skip_line(&c);
    }
    return true;
}

static gn_array *gni_csv_rows(gni_csv *c) {
    gn_context *g = c->file->g;
    gn_shape s;
    void *data;
    if (!gni_csv_measure(*c, &s)) return NULL;
    gn_array *y = gni_array_filled(g, c->file->fn, c->t, &s, &data);
    if (y == NULL) return NULL;
    char *out = (char *)data, text[96];
    bool ok = true;
    while (ok && gni_csv_line(c)) {
        int64_t column = 0;
        for (bool last = false; ok && !last; column++, out += gn_dtype_size(c->t)) {
            ok = gni_csv_field(c, column, &last);
            if (ok && (column == s.dim[1] || (last && column + 1 < s.dim[1]))) {
                snprintf(text, sizeof text, "the lines before have %lld columns", (long long)s.dim[1]);
                ok = gni_csv_fail(c, column, text);
            }
            ok = ok && gni_csv_store(c, column, out);
        }
    }
    if (ok) return y;
    gni_unref(g, y);
    return NULL;
}

static gn_array *gni_csv_load(gni_file *file, gn_dtype t, int skip, char delimiter) {
    gni_csv c;
    gni_csv_begin(&c, file, t, delimiter);
    if (skip < 0) gni_fail(file->g, GN_ERROR_ARGUMENT, "%s: %d lines to skip", file->fn, skip);
    if (skip < 0 || !gni_csv_ok(&c)) return NULL;
    size_t bytes;
    char *text = gni_file_all(file, &bytes);
    if (text == NULL) return NULL;
    c.at = text;
    c.end = text + bytes;
    if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) c.at += 3; // a byte order mark
    for (int i = 0; i < skip; i++) gni_csv_skip_line(&c);
    gn_array *y = gni_csv_rows(&c);
    gni_free(file->g, text);
    return y;
}

GPUNUM_API gn_array *gn_load_csv(gn_context *g, const char *path, gn_dtype t, int skip_lines, char delimiter) {
    if (!gni_begin_context("gn_load_csv", g)) return NULL;
    gni_file file;
    gn_array *y = NULL;
    if (gni_file_open(&file, g, "gn_load_csv", path)) {
        y = gni_csv_load(&file, t, skip_lines, delimiter);
        gni_file_close(&file);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_load_csv_memory(gn_context *g, const void *text, size_t bytes, gn_dtype t, int skip_lines,
                                        char delimiter) {
    if (!gni_begin_context("gn_load_csv_memory", g)) return NULL;
    gni_file file;
    bool ok = gni_file_open_memory(&file, g, "gn_load_csv_memory", text, bytes);
    return gni_end(g, ok ? gni_csv_load(&file, t, skip_lines, delimiter) : NULL);
}

// ---- writing

// The shortest text from which the same number is read.
static int gni_csv_number(const gni_csv *c, const char *p, char *text, size_t size) {
    if (!gni_is_float(c->t)) {
        gni_word w;
        gni_integer_text(c->t, p, &w);
        memcpy(text, w.text, (size_t)w.n);
        return w.n;
    }
    double v = gni_element(c->t, p);
    if (v - v != 0.0) return snprintf(text, size, "%s", v != v ? "nan" : v > 0.0 ? "inf" : "-inf");
    const double normal = ldexp(1.0, c->t == GN_F64 ? -1022 : c->t == GN_F16 ? -14 : -126);
    int digits = c->t == GN_F64 ? 15 : c->t == GN_F32 ? 6 : c->t == GN_F16 ? 3 : 2, n = 0;
    const int most = digits + 3;
    if (fabs(v) < normal) digits = 1; // subnormal numbers have fewer digits
    for (; digits <= most; digits++) {
        n = snprintf(text, size, "%.*g", digits, v);
        double back = c->t == GN_F64 ? strtod(text, NULL) : (double)strtof(text, NULL);
        if (c->t == GN_F16) back = (double)gni_f16_to_f32(gni_f32_to_f16((float)back));
        if (c->t == GN_BF16) back = (double)gni_bf16_to_f32(gni_f32_to_bf16((float)back));
        if (back == v) break;
    }
    char *point = strstr(text, c->point);
    size_t width = strlen(c->point);
    if (point == NULL) return n;
    *point = '.';
    memmove(point + 1, point + width, strlen(point + width) + 1);
    return n - (int)width + 1;
}

static void gni_csv_write(gni_file *file, const gn_array *a, const void *data, const char *header, char delimiter) {
    gni_csv c;
    gni_csv_begin(&c, file, a->dtype, delimiter);
    const char *p = (const char *)data;
    int64_t rows = a->shape.rank > 0 ? a->shape.dim[0] : 1, columns = a->shape.rank > 1 ? a->shape.dim[1] : 1;
    char text[sizeof(gni_word)];
    if (header != NULL) {
        gni_file_write(file, header, strlen(header));
        gni_file_write(file, "\n", 1);
    }
    for (int64_t i = 0; i < rows && columns > 0; i++)
        for (int64_t k = 0; k < columns; k++, p += gn_dtype_size(a->dtype)) {
            int n = gni_csv_number(&c, p, text, sizeof text - 1);
            text[n] = k + 1 < columns ? c.delimiter : '\n';
            gni_file_write(file, text, (size_t)n + 1);
        }
}

// The table in C order on the CPU; NULL after gni_fail. The caller's to gni_unref.
static gn_array *gni_csv_ready(gni_file *file, gn_array *a, const char *header, char delimiter, const void **data) {
    gni_csv c;
    gn_context *g = file->g;
    gni_csv_begin(&c, file, a->dtype, delimiter);
    if (!gni_csv_ok(&c)) return NULL;
    if (a->shape.rank > 2)
        gni_fail(g, GN_ERROR_SHAPE, "%s: an array of %d dimensions is no table", file->fn, a->shape.rank);
    else if (header != NULL && strpbrk(header, "\n\r") != NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the header has more than one line", file->fn);
    return g->call_failed ? NULL : gni_file_data(g, a, data);
}

GPUNUM_API gn_status gn_save_csv(gn_array *a, const char *path, const char *header, char delimiter) {
    gn_context *g = gni_begin("gn_save_csv", &a, 1);
    if (g == NULL) return gni_null_status(a);
    gni_file file = gni_file_of(g, "gn_save_csv", path);
    const void *data;
    gn_array *c = gni_csv_ready(&file, a, header, delimiter, &data);
    if (c != NULL && gni_file_create(&file)) {
        gni_csv_write(&file, c, data, header, delimiter);
        gni_file_finish(&file);
    }
    gni_unref(g, c);
    return gni_end_status(g);
}

GPUNUM_API size_t gn_save_csv_memory(gn_array *a, const char *header, char delimiter, void *out, size_t capacity) {
    gn_context *g = gni_begin("gn_save_csv_memory", &a, 1);
    if (g == NULL) return 0;
    gni_file file = gni_file_of(g, "gn_save_csv_memory", "memory");
    const void *data;
    gn_array *c = gni_csv_ready(&file, a, header, delimiter, &data);
    file.to = (unsigned char *)out;
    file.size = capacity;
    if (c != NULL) gni_csv_write(&file, c, data, header, delimiter);
    gni_unref(g, c);
    size_t bytes = gni_file_written(&file);
    gni_end_plain(g);
    return bytes;
}
