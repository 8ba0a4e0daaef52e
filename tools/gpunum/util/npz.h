// >>npz
// NumPy's .npz: a zip archive of .npy files, stored or deflated. Everything in it is checked before memory is asked for.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../util/io.h"
#endif

// ---- inflate (RFC 1951)

enum { GNI_INFLATE_BITS = 15, GNI_INFLATE_FAST = 9 };

typedef struct gni_inflate_code {
    uint16_t count[GNI_INFLATE_BITS + 1]; // codes of each length
    uint16_t symbol[288];                 // in the order of their codes
    uint16_t fast[1 << GNI_INFLATE_FAST]; // by the next bits: symbol << 4 | length; 0: a longer code
} gni_inflate_code;

typedef struct gni_inflater {
    const unsigned char *in, *end;
    unsigned char *out;
    size_t at, size;
    uint64_t bits;
    int have; // of them; below 0: the input ended before
    gni_inflate_code literal, distance;
} gni_inflater;

static void gni_inflate_fill(gni_inflater *z) {
    while (z->have <= 48 && z->have >= 0 && z->in < z->end) {
        z->bits |= (uint64_t)*z->in++ << z->have;
        z->have += 8;
    }
}

static uint32_t gni_inflate_take(gni_inflater *z, int count) {
    gni_inflate_fill(z);
    uint32_t v = (uint32_t)(z->bits & (((uint64_t)1 << count) - 1u));
    z->bits >>= count;
    z->have -= count;
    return v;
}

// The code with these lengths of its symbols. False: it says some bits twice, or leaves some out.
static bool gni_inflate_make(gni_inflate_code *c, const unsigned char *length, int n) {
    uint16_t next[GNI_INFLATE_BITS + 2] = {0};
    memset(c, 0, sizeof *c);
    for (int i = 0; i < n; i++) c->count[length[i]]++;
    int codes = n - c->count[0], left = 1;
    c->count[0] = 0;
    for (int k = 1; k <= GNI_INFLATE_BITS; k++) {
        left = 2 * left - c->count[k];
        if (left < 0) return false;
        next[k + 1] = (uint16_t)(next[k] + c->count[k]);
    }
    for (int i = 0; i < n; i++)
        if (length[i] > 0) c->symbol[next[length[i]]++] = (uint16_t)i;
    for (int k = 1, code = 0, at = 0; k <= GNI_INFLATE_FAST; k++, code <<= 1)
        for (int i = 0; i < c->count[k]; i++, code++, at++) {
            int reversed = 0;
            for (int b = 0; b < k; b++) reversed |= (code >> b & 1) << (k - 1 - b);
            for (; reversed < 1 << GNI_INFLATE_FAST; reversed += 1 << k)
                c->fast[reversed] = (uint16_t)(c->symbol[at] << 4 | k);
        }
    return left == 0 || codes <= 1; // a single distance may have a code of one bit
}

static int gni_inflate_symbol(gni_inflater *z, const gni_inflate_code *c) {
    gni_inflate_fill(z);
    int fast = c->fast[z->bits & ((1u << GNI_INFLATE_FAST) - 1u)];
    if (fast != 0) {
        z->bits >>= fast & 15;
        z->have -= fast & 15;
        return fast >> 4;
    }
    int code = 0, first = 0, at = 0;
    for (int k = 1; k <= GNI_INFLATE_BITS; k++) {
        code |= (int)(z->bits >> (k - 1) & 1u);
        if (code - first < c->count[k]) {
            z->bits >>= k;
            z->have -= k;
            return c->symbol[at + code - first];
        }
        at += c->count[k];
        first = (first + c->count[k]) << 1;
        code <<= 1;
    }
    return -1;
}

static bool gni_inflate_stored(gni_inflater *z) {
    if (z->have < 0) return false;
    z->in -= z->have / 8; // what was read ahead
    z->bits = 0;
    z->have = 0;
    if (z->end - z->in < 4) return false;
    size_t n = (size_t)z->in[0] | (size_t)z->in[1] << 8, check = (size_t)z->in[2] | (size_t)z->in[3] << 8;
    z->in += 4;
    if ((n ^ check) != 0xffffu || (size_t)(z->end - z->in) < n || z->size - z->at < n) return false;
    if (n > 0) memcpy(z->out + z->at, z->in, n);
    z->in += n;
    z->at += n;
    return true;
}

static bool gni_inflate_codes(gni_inflater *z, bool fixed) {
    static const unsigned char order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    unsigned char length[288 + 32];
    if (fixed) {
        for (int i = 0; i < 288; i++) length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
        memset(length + 288, 5, 32);
        return gni_inflate_make(&z->literal, length, 288) && gni_inflate_make(&z->distance, length + 288, 32);
    }
    int literals = (int)gni_inflate_take(z, 5) + 257, distances = (int)gni_inflate_take(z, 5) + 1;
    int lengths = (int)gni_inflate_take(z, 4) + 4, n = 0;
    if (literals > 286 || distances > 30) return false;
    memset(length, 0, sizeof length);
    for (int i = 0; i < lengths; i++) length[order[i]] = (unsigned char)gni_inflate_take(z, 3);
    if (!gni_inflate_make(&z->literal, length, 19)) return false;
    while (n < literals + distances) {
        int symbol = gni_inflate_symbol(z, &z->literal), times = 1, value = symbol;
        if (symbol < 0 || z->have < 0 || (symbol == 16 && n == 0)) return false;
        if (symbol >= 16) {
            value = symbol == 16 ? length[n - 1] : 0;
            times = symbol == 16   ? 3 + (int)gni_inflate_take(z, 2)
                    : symbol == 17 ? 3 + (int)gni_inflate_take(z, 3)
                                   : 11 + (int)gni_inflate_take(z, 7);
        }
        if (n + times > literals + distances) return false;
        while (times-- > 0) length[n++] = (unsigned char)value;
    }
    return length[256] > 0 && gni_inflate_make(&z->literal, length, literals) &&
           gni_inflate_make(&z->distance, length + literals, distances);
}

static bool gni_inflate_block(gni_inflater *z) {
    for (;;) {
        int symbol = gni_inflate_symbol(z, &z->literal);
        if (symbol < 0 || z->have < 0) return false;
        if (symbol == 256) return true;
        if (symbol < 256) {
            if (z->at == z->size) return false;
            z->out[z->at++] = (unsigned char)symbol;
            continue;
        }
        // Lengths 3 to 10 one by one, then four to a power of two; 258 has a symbol of its own. Distances: two to each.
        int i = symbol - 257, more = i < 8 || i == 28 ? 0 : (i - 4) / 4;
        if (i > 28) return false;
        size_t n = i < 8 ? (size_t)i + 3 : i == 28 ? 258 : ((size_t)(4 + i % 4) << more) + 3;
        n += gni_inflate_take(z, more);
        i = gni_inflate_symbol(z, &z->distance);
        if (i < 0 || i > 29) return false;
        more = i < 4 ? 0 : (i - 2) / 2;
        size_t back = i < 4 ? (size_t)i + 1 : ((size_t)(2 + i % 2) << more) + 1;
        back += gni_inflate_take(z, more);
        if (z->have < 0 || back > z->at || n > z->size - z->at) return false;
        for (; n > 0; n--, z->at++) z->out[z->at] = z->out[z->at - back];
    }
}

// Unpacks to exactly `size` bytes.
static bool gni_inflate(gni_inflater *z, const unsigned char *in, size_t n, unsigned char *out, size_t size) {
    memset(z, 0, sizeof *z);
    z->in = in;
    z->end = in + n;
    z->out = out;
    z->size = size;
    for (bool last = false, ok; !last;) {
        last = gni_inflate_take(z, 1) != 0;
        uint32_t kind = gni_inflate_take(z, 2);
        ok = z->have >= 0 && kind != 3;
        if (ok) ok = kind == 0 ? gni_inflate_stored(z) : gni_inflate_codes(z, kind == 1) && gni_inflate_block(z);
        if (!ok) return false;
    }
    return z->at == size;
}

// ---- the archive

enum { GNI_ZIP_LOCAL = 0x04034b50, GNI_ZIP_ENTRY = 0x02014b50, GNI_ZIP_END = 0x06054b50, GNI_ZIP_END64 = 0x06064b50,
       GNI_ZIP_LOCATOR = 0x07064b50 };

static uint64_t gni_zip_number(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    for (int i = bytes; i-- > 0;) v = v << 8 | p[i];
    return v;
}

typedef struct gni_zip {
    unsigned char *directory; // the central directory
    uint64_t bytes, count;
} gni_zip;

typedef struct gni_zip_entry {
    const char *name; // not terminated, without .npy
    int name_length;
    int flags, method;
    uint32_t crc;
    uint64_t packed, size, at; // `at`: of its local header
} gni_zip_entry;

// Reads the directory; false after gni_fail. zip->directory is the caller's to gni_free.
static bool gni_zip_open(gni_file *file, gni_zip *zip) {
    memset(zip, 0, sizeof *zip);
    if (file->size == UINT64_MAX || file->size < 22) {
        gni_file_malformed(file, "this is not an .npz archive");
        return false;
    }
    size_t tail = file->size < 65557 + 20 ? (size_t)file->size : 65557 + 20;
    unsigned char *p = gni_file_room(file, tail), head[56];
    bool ok = p != NULL && gni_file_seek(file, file->size - tail) && gni_file_read(file, p, tail);
    size_t i = ok ? tail - 22 : 0; // the end's record, before a comment
    while (ok && i > 0 && gni_zip_number(p + i, 4) != GNI_ZIP_END) i--;
    bool found = ok && gni_zip_number(p + i, 4) == GNI_ZIP_END;
    uint64_t at = 0;
    if (found) {
        zip->count = gni_zip_number(p + i + 10, 2);
        zip->bytes = gni_zip_number(p + i + 12, 4);
        at = gni_zip_number(p + i + 16, 4);
        if (i >= 20 && gni_zip_number(p + i - 20, 4) == GNI_ZIP_LOCATOR) {
            uint64_t end = gni_zip_number(p + i - 12, 8);
            found = end <= file->size && file->size - end >= 56;
            ok = !found || (gni_file_seek(file, end) && gni_file_read(file, head, 56));
            found = found && ok && gni_zip_number(head, 4) == GNI_ZIP_END64;
            zip->count = found ? gni_zip_number(head + 32, 8) : 0;
            zip->bytes = found ? gni_zip_number(head + 40, 8) : 0;
            at = found ? gni_zip_number(head + 48, 8) : 0;
        }
    }
    gni_free(file->g, p);
    if (!ok) return false;
    if (!found || at > file->size || zip->bytes > file->size - at || zip->count > zip->bytes / 46) {
        gni_file_malformed(file, "this is not an .npz archive, or its end is missing");
        return false;
    }
    zip->directory = gni_file_room(file, zip->bytes);
    if (zip->directory == NULL) return false;
    if (gni_file_seek(file, at) && gni_file_read(file, zip->directory, (size_t)zip->bytes)) return true;
    gni_free(file->g, zip->directory);
    return false;
}

// The entry at byte *at of the directory, which moves on to the next. False: the directory is damaged.
static bool gni_zip_next(const gni_zip *zip, uint64_t *at, gni_zip_entry *e) {
    const unsigned char *p = zip->directory + *at, *extra;
    if (zip->bytes - *at < 46 || gni_zip_number(p, 4) != GNI_ZIP_ENTRY) return false;
    uint64_t name = gni_zip_number(p + 28, 2), more = gni_zip_number(p + 30, 2),
             length = 46 + name + more + gni_zip_number(p + 32, 2);
    if (zip->bytes - *at < length) return false;
    e->flags = (int)gni_zip_number(p + 8, 2);
    e->method = (int)gni_zip_number(p + 10, 2);
    e->crc = (uint32_t)gni_zip_number(p + 16, 4);
    e->packed = gni_zip_number(p + 20, 4);
    e->size = gni_zip_number(p + 24, 4);
    e->at = gni_zip_number(p + 42, 4);
    e->name = (const char *)p + 46;
    e->name_length = (int)name;
    if (name > 4 && memcmp(e->name + name - 4, ".npy", 4) == 0) e->name_length -= 4;
    extra = p + 46 + name;
    while (more >= 4) { // numbers that need 64 bits
        uint64_t id = gni_zip_number(extra, 2), n = gni_zip_number(extra + 2, 2);
        if (n > more - 4) return false;
        uint64_t *wide[3] = {&e->size, &e->packed, &e->at};
        const unsigned char *q = extra + 4;
        for (int i = 0; i < 3 && id == 1; i++)
            if (*wide[i] == UINT32_MAX && q + 8 <= extra + 4 + n) {
                *wide[i] = gni_zip_number(q, 8);
                q += 8;
            }
        extra += n + 4;
        more -= n + 4;
    }
    *at += length;
    return true;
}

// Their names, one a line; NULL after gni_fail. The caller's to gni_free.
static char *gni_zip_names(gni_file *file, const gni_zip *zip) {
    char *text = (char *)gni_file_room(file, zip->bytes + zip->count), *p = text;
    gni_zip_entry e;
    uint64_t at = 0;
    if (text == NULL) return NULL;
    for (uint64_t i = 0; i < zip->count; i++) {
        if (!gni_zip_next(zip, &at, &e)) {
            gni_free(file->g, text);
            gni_file_malformed(file, "the archive's directory is damaged");
            return NULL;
        }
        memcpy(p, e.name, (size_t)e.name_length);
        p += e.name_length;
        *p++ = '\n';
    }
    if (p > text) p--;
    *p = 0;
    return text;
}

// The last one with this name, as in NumPy, or the only one. False after gni_fail.
static bool gni_zip_find(gni_file *file, const gni_zip *zip, const char *name, gni_zip_entry *e) {
    const size_t length = name != NULL ? strlen(name) : 0;
    uint64_t at = 0;
    bool found = false;
    gni_zip_entry next;
    if (name != NULL || zip->count == 1)
        for (uint64_t i = 0; i < zip->count; i++) {
            if (!gni_zip_next(zip, &at, &next)) {
                gni_file_malformed(file, "the archive's directory is damaged");
                return false;
            }
            if (name == NULL || (length == (size_t)next.name_length && memcmp(name, next.name, length) == 0)) {
                *e = next;
                found = true;
            }
        }
    if (found) return true;
    char *names = gni_zip_names(file, zip);
    if (names == NULL) return false;
    for (char *p = names; *p; p++)
        if (*p == '\n') *p = ' ';
    if (name == NULL)
        gni_fail(file->g, GN_ERROR_ARGUMENT, "%s: %.200s: which of its %llu arrays? %.200s", file->fn, file->path,
                 (unsigned long long)zip->count, names);
    else
        gni_fail(file->g, GN_ERROR_ARGUMENT, "%s: %.200s: there is no array '%.100s', but: %.200s", file->fn, file->path,
                 name, names);
    gni_free(file->g, names);
    return false;
}

// What is packed, unpacked; NULL after gni_fail. The caller's to gni_free.
static unsigned char *gni_zip_unpack(gni_file *file, const gni_zip_entry *e) {
    if (e->size / 1032 > e->packed) { // no code is denser
        gni_file_malformed(file, "the archive's directory is damaged");
        return NULL;
    }
    unsigned char *in = gni_file_room(file, e->packed), *out = in != NULL ? gni_file_room(file, e->size) : NULL;
    gni_inflater *z = out != NULL ? (gni_inflater *)gni_file_room(file, sizeof *z) : NULL;
    bool ok = z != NULL && gni_file_read(file, in, (size_t)e->packed);
    if (ok &&
        (!gni_inflate(z, in, (size_t)e->packed, out, (size_t)e->size) || gni_crc32(0, out, (size_t)e->size) != e->crc)) {
        gni_file_malformed(file, "the packed data are damaged");
        ok = false;
    }
    gni_free(file->g, z);
    gni_free(file->g, in);
    if (ok) return out;
    gni_free(file->g, out);
    return NULL;
}

static gn_array *gni_zip_array(gni_file *file, const gni_zip_entry *e) {
    unsigned char head[30];
    if (e->flags & 1 || (e->method != 0 && e->method != 8)) {
        gni_file_malformed(file,
                           e->flags & 1 ? "the array is encrypted" : "the array is packed in another way than deflate");
        return NULL;
    }
    if (e->at > file->size || !gni_file_seek(file, e->at) || !gni_file_read(file, head, 30)) {
        if (!file->g->call_failed) gni_file_malformed(file, "the archive's directory is damaged");
        return NULL;
    }
    uint64_t data = file->at + gni_zip_number(head + 26, 2) + gni_zip_number(head + 28, 2);
    if (gni_zip_number(head, 4) != GNI_ZIP_LOCAL || data > file->size || e->packed > file->size - data ||
        (e->method == 0 && e->packed != e->size)) {
        gni_file_malformed(file, "the archive's directory is damaged");
        return NULL;
    }
    if (!gni_file_seek(file, data)) return NULL;
    if (e->method == 8) {
        unsigned char *out = gni_zip_unpack(file, e);
        if (out == NULL) return NULL;
        gni_file inner = gni_file_of(file->g, file->fn, file->path);
        inner.from = out;
        inner.size = e->size;
        gn_array *y = gni_npy_load(&inner);
        gni_free(file->g, out);
        return y;
    }
    file->size = data + e->size;
    file->sums = true;
    file->crc = 0;
    gn_array *y = gni_npy_load(file);
    if (y == NULL || (file->at == file->size && file->crc == e->crc)) return y;
    gni_file_malformed(file, "the data are damaged");
    gni_unref(file->g, y);
    return NULL;
}

static gn_array *gni_npz_load(gni_file *file, const char *name) {
    gni_zip zip;
    gni_zip_entry e;
    gn_array *y = NULL;
    if (gni_zip_open(file, &zip)) {
        if (gni_zip_find(file, &zip, name, &e)) y = gni_zip_array(file, &e);
        gni_free(file->g, zip.directory);
    }
    gni_file_close(file);
    return y;
}

GPUNUM_API gn_array *gn_load_npz(gn_context *g, const char *path, const char *name) {
    if (!gni_begin_context("gn_load_npz", g)) return NULL;
    gni_file file;
    bool ok = gni_file_open(&file, g, "gn_load_npz", path);
    return gni_end(g, ok ? gni_npz_load(&file, name) : NULL);
}

GPUNUM_API gn_array *gn_load_npz_memory(gn_context *g, const void *data, size_t bytes, const char *name) {
    if (!gni_begin_context("gn_load_npz_memory", g)) return NULL;
    gni_file file;
    bool ok = gni_file_open_memory(&file, g, "gn_load_npz_memory", data, bytes);
    return gni_end(g, ok ? gni_npz_load(&file, name) : NULL);
}

static char *gni_npz_names(gni_file *file, bool opened) {
    gn_context *g = file->g;
    gni_zip zip;
    char *names = NULL;
    if (opened) {
        if (gni_zip_open(file, &zip)) {
            names = gni_zip_names(file, &zip);
            gni_free(g, zip.directory);
        }
        gni_file_close(file);
    }
    gni_end_plain(g);
    return names;
}

GPUNUM_API char *gn_npz_names(gn_context *g, const char *path) {
    if (!gni_begin_context("gn_npz_names", g)) return NULL;
    gni_file file;
    const bool opened = gni_file_open(&file, g, "gn_npz_names", path);
    return gni_npz_names(&file, opened);
}

GPUNUM_API char *gn_npz_names_memory(gn_context *g, const void *data, size_t bytes) {
    if (!gni_begin_context("gn_npz_names_memory", g)) return NULL;
    gni_file file;
    const bool opened = gni_file_open_memory(&file, g, "gn_npz_names_memory", data, bytes);
    return gni_npz_names(&file, opened);
}

// ---- writing: every entry is stored, with its numbers in 64 bits as NumPy writes them

static unsigned char *gni_zip_put(unsigned char *p, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) *p++ = (unsigned char)(v >> (8 * i));
    return p;
}

// The local header of an entry, or its line in the directory.
static void gni_zip_write_head(gni_file *file, bool local, const gni_zip_entry *e) {
    unsigned char head[64], *p = gni_zip_put(head, local ? GNI_ZIP_LOCAL : GNI_ZIP_ENTRY, 4);
    if (!local) p = gni_zip_put(p, 45, 2);
    p = gni_zip_put(p, 45, 2); // version that reads it
    p = gni_zip_put(p, 0x800, 2); // names are UTF-8
    p = gni_zip_put(p, 0, 2);
    p = gni_zip_put(p, 0x00210000, 4); // first of January 1980
    p = gni_zip_put(p, e->crc, 4);
    p = gni_zip_put(p, UINT64_MAX, 8); // both sizes: see below
    p = gni_zip_put(p, (uint64_t)e->name_length + 4, 2);
    p = gni_zip_put(p, local ? 20 : 28, 2);
    if (!local) {
        p = gni_zip_put(p, 0, 6);
        p = gni_zip_put(p, 0x01800000, 4); // readable and writable by its owner
        p = gni_zip_put(p, UINT32_MAX, 4);
    }
    gni_file_write(file, head, (size_t)(p - head));
    gni_file_write(file, e->name, (size_t)e->name_length);
    gni_file_write(file, ".npy", 4);
    p = gni_zip_put(head, 1, 2);
    p = gni_zip_put(p, local ? 16 : 24, 2);
    p = gni_zip_put(p, e->size, 8);
    p = gni_zip_put(p, e->size, 8);
    if (!local) p = gni_zip_put(p, e->at, 8);
    gni_file_write(file, head, (size_t)(p - head));
}

static void gni_zip_write_end(gni_file *file, uint64_t at, uint64_t count) {
    unsigned char tail[98], *p = gni_zip_put(tail, GNI_ZIP_END64, 4);
    uint64_t end = file->at, bytes = end - at;
    p = gni_zip_put(p, 44, 8);
    p = gni_zip_put(p, 45 | 45 << 16, 4);
    p = gni_zip_put(p, 0, 8);
    p = gni_zip_put(p, count, 8);
    p = gni_zip_put(p, count, 8);
    p = gni_zip_put(p, bytes, 8);
    p = gni_zip_put(p, at, 8);
    p = gni_zip_put(p, GNI_ZIP_LOCATOR, 4);
    p = gni_zip_put(p, 0, 4);
    p = gni_zip_put(p, end, 8);
    p = gni_zip_put(p, 1, 4);
    p = gni_zip_put(p, GNI_ZIP_END, 4);
    p = gni_zip_put(p, 0, 4);
    p = gni_zip_put(p, UINT64_MAX, 8); // counts, and the size of the directory
    p = gni_zip_put(p, UINT64_MAX, 4); // and where it begins
    p = gni_zip_put(p, 0, 2);
    gni_file_write(file, tail, (size_t)(p - tail));
}

// Checks everything before the file is touched.
static bool gni_npz_ok(const gni_file *file, gn_array *const *arrays, const char *const *names, int count) {
    for (int i = 0; i < count; i++) {
        if (!gni_npy_has(file->g, file->fn, arrays[i]->dtype)) return false;
        const char *name = names != NULL ? names[i] : NULL;
        bool ok = name != NULL && name[0] != 0 && strlen(name) < 256 && strchr(name, '\n') == NULL, twice = false;
        for (int k = 0; ok && k < i && !twice; k++) twice = strcmp(names[k], name) == 0;
        if (ok && !twice) continue;
        return gni_fail(file->g, GN_ERROR_ARGUMENT, "%s: name %d %s", file->fn, i + 1,
                        twice ? "is there twice" : "is NULL, empty, of several lines or longer than 255 bytes");
    }
    return true;
}

static void gni_npz_write(gni_file *file, gn_array *const *arrays, const char *const *names, int count) {
    gn_context *g = file->g;
    gni_zip_entry *entry = (gni_zip_entry *)gni_file_room(file, (uint64_t)count * sizeof *entry);
    for (int i = 0; i < count && entry != NULL && !g->call_failed; i++) {
        const void *data;
        gn_array *c = gni_npy_ready(g, file->fn, arrays[i], &data);
        if (c == NULL) break;
        char head[512];
        size_t length = gni_npy_header(c, head, sizeof head);
        entry[i].name = names[i];
        entry[i].name_length = (int)strlen(names[i]);
        entry[i].at = file->at;
        entry[i].size = length + gn_bytes(c);
        entry[i].crc =
            gni_crc32(gni_crc32(0, (const unsigned char *)head, length), (const unsigned char *)data, gn_bytes(c));
        gni_zip_write_head(file, true, &entry[i]);
        gni_npy_write(file, c, data);
        gni_unref(g, c);
    }
    uint64_t at = file->at;
    for (int i = 0; i < count && entry != NULL && !g->call_failed; i++) gni_zip_write_head(file, false, &entry[i]);
    gni_zip_write_end(file, at, (uint64_t)count);
    gni_free(g, entry);
}

GPUNUM_API gn_status gn_save_npz(const char *path, gn_array *const *arrays, const char *const *names, int count) {
    gn_context *g = gni_begin("gn_save_npz", arrays, count);
    if (g == NULL) return gni_null_status(arrays != NULL && count > 0 ? arrays[0] : NULL);
    gni_file file = gni_file_of(g, "gn_save_npz", path);
    if (gni_npz_ok(&file, arrays, names, count) && gni_file_create(&file)) {
        gni_npz_write(&file, arrays, names, count);
        gni_file_finish(&file);
    }
    return gni_end_status(g);
}

GPUNUM_API size_t gn_save_npz_memory(gn_array *const *arrays, const char *const *names, int count, void *out,
                                     size_t capacity) {
    gn_context *g = gni_begin("gn_save_npz_memory", arrays, count);
    if (g == NULL) return 0;
    gni_file file = gni_file_of(g, "gn_save_npz_memory", "memory");
    file.to = (unsigned char *)out;
    file.size = capacity;
    if (gni_npz_ok(&file, arrays, names, count)) gni_npz_write(&file, arrays, names, count);
    size_t bytes = gni_file_written(&file);
    gni_end_plain(g);
    return bytes;
}
