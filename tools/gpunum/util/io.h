// >>io
// Array files: NumPy's .npy (format versions 1 to 3) and MNIST's IDX. Everything in a file is checked
// before memory is asked for.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/files.h"
#include "../ops/arrange.h"
#include "../util/stream.h"
#endif

// Reverses the bytes of n numbers of `size` bytes.
static void gni_swap_bytes(void *data, int64_t n, size_t size) {
    unsigned char *p = (unsigned char *)data;
    for (; n > 0; n--, p += size)
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char byte = p[i];
            p[i] = p[size - 1 - i];
            p[size - 1 - i] = byte;
        }
}

// The data that follows a header, as a new array in C order.
static gn_array *gni_file_array(gni_file *file, gn_dtype t, const gn_shape *s, bool little) {
    if (!gni_shape_ok(file->g, file->fn, t, s)) return NULL;
    int64_t n = gni_elements(s);
    uint64_t bytes = (uint64_t)n * gn_dtype_size(t);
    if (bytes > SIZE_MAX / 2 || !gni_file_holds(file, bytes)) {
        if (!file->g->call_failed) gni_fail_memory(file->g, file->fn, bytes);
        return NULL;
    }
    void *data;
    gn_array *y = gni_array_filled(file->g, file->fn, t, s, &data);
    if (y == NULL) return NULL;
    if (!gni_file_read(file, data, (size_t)bytes)) {
        gni_unref(file->g, y);
        return NULL;
    }
    size_t word = gn_dtype_size(t) / (gni_is_complex(t) ? 2 : 1);
    if (!little && word > 1) gni_swap_bytes(data, (int64_t)(bytes / word), word);
    gni_make_truth(t, data, (size_t)n);
    return y;
}

// ---- the .npy header, a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }

typedef struct gni_npy {
    char descr[16];
    bool fortran;
    gn_shape shape;
    unsigned seen; // keys: 1 descr, 2 fortran_order, 4 shape
} gni_npy;

static void gni_npy_blanks(const char **p) {
    while (**p == ' ' || **p == '\t' || **p == '\n' || **p == '\r') ++*p;
}

static bool gni_npy_accept(const char **p, const char *word) {
    gni_npy_blanks(p);
    size_t n = strlen(word);
    if (strncmp(*p, word, n) != 0) return false;
    *p += n;
    return true;
}

// A Python string without escapes, Python 2's u'' too. Longer ones are cut, they are no key and no dtype.
static bool gni_npy_string(const char **p, char *text, size_t size) {
    gni_npy_blanks(p);
    if (**p == 'u') ++*p;
    char quote = **p;
    if (quote != '\'' && quote != '"') return false;
    size_t n = 0;
    for (++*p; **p != quote; ++*p) {
        if (**p == 0 || **p == '\\') return false;
        if (n + 1 < size) text[n++] = **p;
    }
    ++*p;
    text[n] = 0;
    return true;
}

// "()", "(3,)", "(3, 4)", with Python 2's "3L" as old files have it.
static const char *gni_npy_shape(const char **p, gn_shape *s) {
    *s = gn_shape_from(0, NULL);
    if (!gni_npy_accept(p, "(")) return "the shape is not a tuple";
    while (!gni_npy_accept(p, ")")) {
        gni_npy_blanks(p);
        int64_t v = 0;
        if (**p < '0' || **p > '9') return "the shape is not a tuple of sizes";
        for (; **p >= '0' && **p <= '9'; ++*p) {
            if (v > (INT64_MAX - 9) / 10) return "a dimension is too large";
            v = v * 10 + (**p - '0');
        }
        if (**p == 'L') ++*p;
        if (s->rank == GN_MAX_RANK) return "the array has more than 8 dimensions";
        s->dim[s->rank++] = v;
        if (gni_npy_accept(p, ",")) continue;
        if (!gni_npy_accept(p, ")") || s->rank == 1) return "the shape is not a tuple of sizes";
        break;
    }
    return NULL;
}

// NULL, or what is wrong with the header.
static const char *gni_npy_parse(const char *p, gni_npy *h) {
    if (!gni_npy_accept(&p, "{")) return "the header is not a dict";
    while (!gni_npy_accept(&p, "}")) {
        char key[16];
        if (!gni_npy_string(&p, key, sizeof key) || !gni_npy_accept(&p, ":"))
            return "the header is not a dict";
        unsigned bit = 0;
        if (strcmp(key, "descr") == 0) {
            bit = 1;
            if (gni_npy_accept(&p, "[")) return "arrays of records are not supported";
            if (!gni_npy_string(&p, h->descr, sizeof h->descr)) return "descr is not a string";
        } else if (strcmp(key, "fortran_order") == 0) {
            bit = 2;
            h->fortran = gni_npy_accept(&p, "True");
            if (!h->fortran && !gni_npy_accept(&p, "False")) return "fortran_order is not a bool";
        } else if (strcmp(key, "shape") == 0) {
            bit = 4;
            const char *wrong = gni_npy_shape(&p, &h->shape);
            if (wrong != NULL) return wrong;
        }
        if (bit == 0) return "the header has an unknown key";
        if (h->seen & bit) return "the header has a key twice";
        h->seen |= bit;
        if (!gni_npy_accept(&p, ",") && *p != '}') return "the header is not a dict";
    }
    gni_npy_blanks(&p);
    if (*p != 0) return "something follows the header's dict";
    return h->seen == 7 ? NULL : "the header lacks one of descr, fortran_order, shape";
}

typedef struct gni_npy_type {
    const char *code;
    gn_dtype t;
} gni_npy_type;
static const gni_npy_type gni_npy_types[] = {
    {"f4", GN_F32}, {"f2", GN_F16}, {"f8", GN_F64},  {"i4", GN_I32}, {"i8", GN_I64},  {"u1", GN_U8},
    {"i1", GN_I8},  {"u4", GN_U32}, {"b1", GN_BOOL}, {"c8", GN_C64}, {"c16", GN_C128},
    {"i2", GN_I16}, {"u2", GN_U16}, {"u8", GN_U64}};

// The dtype of a descr such as "<f4" or "float32"; GN_DTYPE_COUNT after gni_fail.
static gn_dtype gni_npy_dtype(const gni_file *file, const char *descr, bool *little) {
    char order = descr[0];
    *little = order != '>';
    const char *code =
        order == '<' || order == '>' || order == '=' || order == '|' ? descr + 1 : descr;
    for (int i = 0; i < GNI_COUNT(gni_npy_types); i++)
        if (strcmp(code, gni_npy_types[i].code) == 0 || strcmp(descr, gn_dtype_name(gni_npy_types[i].t)) == 0)
            return gni_npy_types[i].t;
    gni_fail(file->g, GN_ERROR_DTYPE, "%s: %.200s: dtype '%s' has no counterpart here", file->fn,
             file->path, descr);
    return GN_DTYPE_COUNT;
}

// Reads magic, version and header text. The text is the caller's to gni_free.
static char *gni_npy_read_header(gni_file *file) {
    unsigned char head[12];
    if (!gni_file_read(file, head, 4)) return NULL;
    if (memcmp(head, "PK\3\4", 4) == 0) {
        gni_file_malformed(file, "this is an .npz archive: gn_load_npz reads it");
        return NULL;
    }
    if (!gni_file_read(file, head + 4, 4)) return NULL;
    if (memcmp(head, "\x93NUMPY", 6) != 0) {
        gni_file_malformed(file, "this is not an .npy file");
        return NULL;
    }
    if (head[6] < 1 || head[6] > 3) {
        gni_fail(file->g, GN_ERROR_FORMAT, "%s: %.200s: .npy version %d.%d is not known", file->fn,
                 file->path, head[6], head[7]);
        return NULL;
    }
    size_t digits = head[6] == 1 ? 2 : 4, length = 0;
    if (!gni_file_read(file, head + 8, digits)) return NULL;
    for (size_t i = 0; i < digits; i++) length |= (size_t)head[8 + i] << (8 * i);
    if (length > (1u << 20)) { // NumPy's own headers stay below 64 KiB
        gni_file_malformed(file, "the header is longer than 1 MiB");
        return NULL;
    }
    if (!gni_file_holds(file, length)) return NULL;
    char *text = (char *)gni_alloc(file->g, length + 1);
    if (text == NULL) {
        gni_fail_memory(file->g, file->fn, length + 1);
        return NULL;
    }
    text[length] = 0;
    if (!gni_file_read(file, text, length)) {
        gni_free(file->g, text);
        return NULL;
    }
    if (strlen(text) == length) return text;
    gni_file_malformed(file, "the header holds a zero byte");
    gni_free(file->g, text);
    return NULL;
}

static gn_array *gni_npy_load(gni_file *file) {
    GNI_ZEROED(gni_npy, h);
    char *text = gni_npy_read_header(file);
    if (text == NULL) return NULL;
    const char *wrong = gni_npy_parse(text, &h);
    gni_free(file->g, text);
    if (wrong != NULL) {
        gni_file_malformed(file, wrong);
        return NULL;
    }
    bool little;
    gn_dtype t = gni_npy_dtype(file, h.descr, &little);
    if (t == GN_DTYPE_COUNT) return NULL;
    if (!h.fortran || h.shape.rank < 2) return gni_file_array(file, t, &h.shape, little);
    // Fortran order is C order of the transposed array.
    gn_shape reversed = h.shape;
    int64_t stride[GN_MAX_RANK];
    for (int i = 0; i < h.shape.rank; i++) reversed.dim[i] = h.shape.dim[h.shape.rank - 1 - i];
    gn_array *base = gni_file_array(file, t, &reversed, little);
    if (base == NULL) return NULL;
    for (int i = 0; i < h.shape.rank; i++) stride[i] = base->stride[h.shape.rank - 1 - i];
    gn_array *y = gni_array_view(file->g, file->fn, base, &h.shape, stride, 0);
    gni_unref(file->g, base);
    return y;
}

GPUNUM_API gn_array *gn_load_npy(gn_context *g, const char *path) {
    if (!gni_begin_context("gn_load_npy", g)) return NULL;
    gni_file file;
    gn_array *y = NULL;
    if (gni_file_open(&file, g, "gn_load_npy", path)) {
        y = gni_npy_load(&file);
        gni_file_close(&file);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_load_npy_memory(gn_context *g, const void *data, size_t bytes) {
    if (!gni_begin_context("gn_load_npy_memory", g)) return NULL;
    gni_file file;
    bool ok = gni_file_open_memory(&file, g, "gn_load_npy_memory", data, bytes);
    return gni_end(g, ok ? gni_npy_load(&file) : NULL);
}

// The header of version 1.0, blank-padded so that the data starts at a multiple of 64. Returns its size.
static size_t gni_npy_header(const gn_array *a, char *head, size_t size) {
    const char *code = "";
    for (int i = 0; i < GNI_COUNT(gni_npy_types); i++)
        if (gni_npy_types[i].t == a->dtype) code = gni_npy_types[i].code;
    char order = gn_dtype_size(a->dtype) == 1 ? '|' : '<';
    int at = snprintf(head + 10, size - 10, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                      order, code);
    for (int i = 0; i < a->shape.rank; i++)
        at += snprintf(head + 10 + at, size - 10 - (size_t)at,
                       i > 0                ? ", %lld"
                       : a->shape.rank == 1 ? "%lld,"
                                            : "%lld",
                       (long long)a->shape.dim[i]);
    at += snprintf(head + 10 + at, size - 10 - (size_t)at, "), }");
    size_t total = ((size_t)at + 10 + 1 + 63) / 64 * 64, length = total - 10;
    memset(head + 10 + at, ' ', total - 11 - (size_t)at);
    head[total - 1] = '\n';
    memcpy(head, "\x93NUMPY\1\0", 8);
    head[8] = (char)(length & 255);
    head[9] = (char)(length >> 8);
    return total;
}

static bool gni_npy_has(gn_context *g, const char *fn, gn_dtype t) {
    if (t == GN_BF16) gni_fail(g, GN_ERROR_DTYPE, "%s: .npy has no bfloat16: gn_cast to float32 first", fn);
    return t != GN_BF16;
}

static gn_array *gni_npy_ready(gn_context *g, const char *fn, gn_array *a, const void **data) {
    return gni_npy_has(g, fn, a->dtype) ? gni_file_data(g, a, data) : NULL;
}

static void gni_npy_write(gni_file *file, const gn_array *a, const void *data) {
    char head[512];
    gni_file_write(file, head, gni_npy_header(a, head, sizeof head));
    gni_file_write(file, data, gn_bytes(a));
}

GPUNUM_API gn_status gn_save_npy(gn_array *a, const char *path) {
    gn_context *g = gni_begin("gn_save_npy", &a, 1);
    if (g == NULL) return gni_null_status(a);
    gni_file file = gni_file_of(g, "gn_save_npy", path);
    const void *data;
    gn_array *c = gni_npy_ready(g, file.fn, a, &data); // before the file is touched
    if (c != NULL && gni_file_create(&file)) {
        gni_npy_write(&file, c, data);
        gni_file_finish(&file);
    }
    gni_unref(g, c);
    return gni_end_status(g);
}

GPUNUM_API size_t gn_save_npy_memory(gn_array *a, void *out, size_t capacity) {
    gn_context *g = gni_begin("gn_save_npy_memory", &a, 1);
    if (g == NULL) return 0;
    gni_file file = gni_file_of(g, "gn_save_npy_memory", "memory");
    const void *data;
    gn_array *c = gni_npy_ready(g, file.fn, a, &data);
    file.to = (unsigned char *)out;
    file.size = capacity;
    if (c != NULL) gni_npy_write(&file, c, data);
    gni_unref(g, c);
    size_t bytes = gni_file_written(&file);
    gni_end_plain(g);
    return bytes;
}

// ---- IDX: two zero bytes, dtype, rank, then big-endian 32-bit sizes and data

static gn_array *gni_idx_load(gni_file *file) {
    unsigned char head[4], word[4];
    gn_shape s = gn_shape_from(0, NULL);
    if (!gni_file_read(file, head, 4)) return NULL;
    if (head[0] == 0x1f && head[1] == 0x8b) {
        gni_file_malformed(file, "the file is compressed: gunzip it first");
        return NULL;
    }
    gn_dtype t = head[2] == 0x08   ? GN_U8
                 : head[2] == 0x09 ? GN_I8
                 : head[2] == 0x0b ? GN_I16
                 : head[2] == 0x0c ? GN_I32
                 : head[2] == 0x0d ? GN_F32
                 : head[2] == 0x0e ? GN_F64
                                   : GN_DTYPE_COUNT;
    if (head[0] != 0 || head[1] != 0) {
        gni_file_malformed(file, "this is not an IDX file");
        return NULL;
    }
    if (t == GN_DTYPE_COUNT || head[3] > GN_MAX_RANK) {
        gni_fail(file->g, GN_ERROR_FORMAT,
                 "%s: %.200s: IDX type 0x%02x of rank %d is not supported", file->fn, file->path,
                 head[2], head[3]);
        return NULL;
    }
    for (int i = 0; i < head[3]; i++) {
        if (!gni_file_read(file, word, 4)) return NULL;
        s.dim[s.rank++] = (int64_t)word[0] << 24 | (int64_t)word[1] << 16 | (int64_t)word[2] << 8 |
                          (int64_t)word[3];
    }
    int64_t n = gni_elements(&s);
    uint64_t bytes = n < 0 ? UINT64_MAX : (uint64_t)n * gn_dtype_size(t);
    if (file->size != UINT64_MAX && bytes != file->size - file->at) {
        char text[200];
        gni_fail(file->g, GN_ERROR_FORMAT,
                 "%s: %.200s: the header says %s %s, but %llu bytes of data follow", file->fn,
                 file->path, gn_dtype_name(t), gni_shape_text(text, sizeof text, &s),
                 (unsigned long long)(file->size - file->at));
        return NULL;
    }
    return gni_file_array(file, t, &s, false);
}

GPUNUM_API gn_array *gn_load_idx(gn_context *g, const char *path) {
    if (!gni_begin_context("gn_load_idx", g)) return NULL;
    gni_file file;
    gn_array *y = NULL;
    if (gni_file_open(&file, g, "gn_load_idx", path)) {
        y = gni_idx_load(&file);
        gni_file_close(&file);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_load_idx_memory(gn_context *g, const void *data, size_t bytes) {
    if (!gni_begin_context("gn_load_idx_memory", g)) return NULL;
    gni_file file;
    const bool opened = gni_file_open_memory(&file, g, "gn_load_idx_memory", data, bytes);
    return gni_end(g, opened ? gni_idx_load(&file) : NULL);
}

// ---- CIFAR-10: records of a label and an image, 3 planes of 32 x 32

enum { GNI_CIFAR_IMAGE = 3 * 32 * 32 };

// Records of a file from row `at` on, where there is room for `most`; -1 after gni_fail. NULL for the memory: how many there
// are.
static int64_t gni_cifar_load(gni_file *file, int64_t at, int64_t most, uint8_t *images, uint8_t *labels) {
    const int64_t n = (int64_t)(file->size / (GNI_CIFAR_IMAGE + 1));
    if (file->size == UINT64_MAX || file->size % (GNI_CIFAR_IMAGE + 1) != 0) {
        gni_file_malformed(file, "the size is no multiple of 3073 bytes, a label and an image");
        return -1;
    }
    for (int64_t i = at; images != NULL && i < GNI_MIN(at + n, most); i++) {
        if (!gni_file_read(file, labels + i, 1) || !gni_file_read(file, images + i * GNI_CIFAR_IMAGE, GNI_CIFAR_IMAGE))
            return -1;
        if (labels[i] < 10) continue;
        gni_fail(file->g, GN_ERROR_FORMAT, "%s: %.200s: the label of image %lld is %d, not 0 to 9", file->fn, file->path,
                 (long long)(i - at), labels[i]);
        return -1;
    }
    return n;
}

// All files of the folder, and the end of the call. Their sizes come first, as those of the arrays.
static gn_array *gni_cifar_folder(gn_context *g, const char *fn, const char *folder, bool train, gn_array **labels) {
    gn_array *x = NULL, *y = NULL;
    void *images = NULL, *classes = NULL;
    char path[1024];
    int64_t total = 0;
    for (int pass = 0; pass < 2 && !g->call_failed; pass++) {
        int64_t rows = 0;
        for (int i = 1; i <= (train ? 5 : 1) && !g->call_failed; i++) {
            gni_file file;
            const int length = train ? snprintf(path, sizeof path, "%s/data_batch_%d.bin", folder, i)
                                     : snprintf(path, sizeof path, "%s/test_batch.bin", folder);
            if (length < 0 || length >= (int)sizeof path) {
                gni_fail(g, GN_ERROR_ARGUMENT, "%s: the path is too long", fn);
            } else if (gni_file_open(&file, g, fn, path)) {
                const int64_t n = gni_cifar_load(&file, rows, total, (uint8_t *)images, (uint8_t *)classes);
                gni_file_close(&file);
                rows += n;
            }
        }
        if (pass > 0 && rows != total && !g->call_failed)
            gni_fail(g, GN_ERROR_IO, "%s: %.200s: a file changed while it was read", fn, folder);
        if (pass > 0 || g->call_failed) break;
        total = rows;
        const gn_shape xs = GN_SHAPE(rows, 3, 32, 32), ys = GN_SHAPE(rows);
        x = gni_array_filled(g, fn, GN_U8, &xs, &images);
        if (x != NULL) y = gni_array_filled(g, fn, GN_U8, &ys, &classes);
    }
    gn_array *out[2];
    const bool ok = !g->call_failed;
    if (!ok || labels == NULL) gni_unref(g, y);
    if (!ok) gni_unref(g, x);
    out[0] = ok ? gni_adopt(g, x) : NULL;
    out[1] = ok && labels != NULL ? gni_adopt(g, y) : NULL;
    gni_end_several(g, out, 2);
    if (labels != NULL) *labels = out[1];
    return out[0];
}

GPUNUM_API gn_array *gn_load_cifar10(gn_context *g, const char *folder, bool train, gn_array **labels) {
    if (labels != NULL) *labels = NULL;
    if (!gni_begin_context("gn_load_cifar10", g)) return NULL;
    if (folder != NULL) return gni_cifar_folder(g, "gn_load_cifar10", folder, train, labels);
    gni_fail(g, GN_ERROR_ARGUMENT, "gn_load_cifar10: the folder is NULL");
    return gni_end(g, NULL);
}
