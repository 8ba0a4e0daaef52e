// >>stream
// Files that are read and written, or memory in their place.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/evaluate.h"
#endif

typedef struct gni_file {
    gn_context *g;
    const char *fn, *path;     // the path of memory is "memory"
    char *partial;             // what is written, if `path` is a file that stays until this is whole, and behind it its name
    FILE *f;                   // or one of these two
    const unsigned char *from; // memory that is read, of `size` bytes
    unsigned char *to;         // memory that is written, of `size` bytes; what does not fit is only counted
    uint64_t size, at;         // bytes in the file (UINT64_MAX: not known, as of a pipe), and read or written so far
    bool sums;                 // crc is that of what is read
    uint32_t crc;
} gni_file;

static void gni_file_close(gni_file *file) {
    if (file->f != NULL) fclose(file->f);
    file->f = NULL;
}

static void gni_file_fail(const gni_file *file, const char *what) {
    int code = errno;
    gni_fail(file->g, GN_ERROR_IO, "%s: cannot %s %.200s: %s", file->fn, what, file->path,
             code != 0 ? strerror(code) : "unknown error");
}

static void gni_file_malformed(const gni_file *file, const char *what) {
    gni_fail(file->g, GN_ERROR_FORMAT, "%s: %.200s: %s", file->fn, file->path, what);
}

static int gni_file_seek_from(FILE *f, uint64_t at, int origin) {
#ifdef _WIN32
    return _fseeki64(f, (long long)at, origin);
#else
    return at <= (uint64_t)LONG_MAX ? fseek(f, (long)at, origin) : -1;
#endif
}

static uint64_t gni_file_measure(FILE *f) {
    if (gni_file_seek_from(f, 0, SEEK_END) != 0) return UINT64_MAX;
#ifdef _WIN32
    long long end = _ftelli64(f);
#else
    long end = ftell(f);
    if (end == LONG_MAX) return UINT64_MAX; // a folder pretends to be as long as can be
#endif
    if (end < 0 || gni_file_seek_from(f, 0, SEEK_SET) != 0) return UINT64_MAX;
    return (uint64_t)end;
}

// Everything but what is opened.
static gni_file gni_file_of(gn_context *g, const char *fn, const char *path) {
    GNI_ZEROED(gni_file, file);
    file.g = g;
    file.fn = fn;
    file.path = path;
    return file;
}

static bool gni_file_has_path(const gni_file *file) {
    if (file->path == NULL) gni_fail(file->g, GN_ERROR_ARGUMENT, "%s: the path is NULL", file->fn);
    return file->path != NULL;
}

static bool gni_file_open(gni_file *file, gn_context *g, const char *fn, const char *path) {
    *file = gni_file_of(g, fn, path);
    if (!gni_file_has_path(file)) return false;
    errno = 0;
    file->f = fopen(path, "rb");
    if (file->f == NULL) {
        gni_file_fail(file, "open");
        return false;
    }
    file->size = gni_file_measure(file->f);
    return true;
}

// Memory to read.
static bool gni_file_open_memory(gni_file *file, gn_context *g, const char *fn, const void *data, size_t bytes) {
    *file = gni_file_of(g, fn, "memory");
    file->from = (const unsigned char *)data;
    file->size = bytes;
    if (data == NULL) gni_fail(g, GN_ERROR_ARGUMENT, "%s: data is NULL", fn);
    return data != NULL;
}

// Zip's check sum of n more bytes, after `crc`; 0 begins.
static uint32_t gni_crc32(uint32_t crc, const unsigned char *p, size_t n) {
    static const uint32_t half[16] = {0u,          0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u,
                                      0x4db26158u, 0x5005713cu, 0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
                                      0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu};
    for (crc = ~crc; n > 0; n--) {
        crc ^= *p++;
        crc = crc >> 4 ^ half[crc & 15u];
        crc = crc >> 4 ^ half[crc & 15u];
    }
    return ~crc;
}

static bool gni_file_read(gni_file *file, void *dst, size_t bytes) {
    errno = 0;
    size_t got = bytes;
    if (file->f != NULL) {
        got = bytes > 0 ? fread(dst, 1, bytes, file->f) : 0;
    } else {
        if (bytes > file->size - file->at) got = (size_t)(file->size - file->at);
        if (got > 0) memcpy(dst, file->from + file->at, got);
    }
    file->at += got;
    if (file->sums) file->crc = gni_crc32(file->crc, (const unsigned char *)dst, got);
    if (got == bytes) return true;
    if (file->f != NULL && ferror(file->f)) {
        gni_file_fail(file, "read");
        return false;
    }
    return gni_fail(file->g, GN_ERROR_FORMAT, "%s: %.200s: the file ends after %llu bytes, %llu more were expected", file->fn,
                    file->path, (unsigned long long)file->at, (unsigned long long)(bytes - got));
}

// Goes to a place that is in the file.
static bool gni_file_seek(gni_file *file, uint64_t at) {
    errno = 0;
    file->at = at;
    if (at <= file->size && (file->f == NULL || gni_file_seek_from(file->f, at, SEEK_SET) == 0)) return true;
    gni_file_fail(file, "seek in");
    return false;
}

// Checks that the file can hold so many more bytes.
static bool gni_file_holds(const gni_file *file, uint64_t bytes) {
    if (file->size == UINT64_MAX || (file->size >= file->at && bytes <= file->size - file->at))
        return true;
    return gni_fail(file->g, GN_ERROR_FORMAT, "%s: %.200s: the header asks for %llu bytes, the file has %llu", file->fn,
                    file->path, (unsigned long long)bytes,
                    (unsigned long long)(file->size >= file->at ? file->size - file->at : 0));
}

// Memory for what a file holds; NULL after gni_fail.
static unsigned char *gni_file_room(const gni_file *file, uint64_t bytes) {
    unsigned char *p = bytes < SIZE_MAX / 2 ? (unsigned char *)gni_alloc(file->g, (size_t)bytes + 1) : NULL;
    if (p == NULL) gni_fail_memory(file->g, file->fn, bytes);
    return p;
}

// All that is left of the file and a zero byte; its length goes to `*bytes`. The caller's to gni_free.
static char *gni_file_all(gni_file *file, size_t *bytes) {
    uint64_t room = file->size - file->at;
    // Files that the system makes up as they are read say 0, or more than there is.
    if (file->f != NULL) room = room == 0 || file->size == UINT64_MAX ? 65536 : room + 1;
    unsigned char *p = gni_file_room(file, room);
    *bytes = 0;
    if (p == NULL) return NULL;
    if (file->f == NULL && gni_file_read(file, p, (size_t)room)) *bytes = (size_t)room;
    while (file->f != NULL) {
        errno = 0;
        *bytes += fread(p + *bytes, 1, (size_t)room - *bytes, file->f);
        if (*bytes < room && !ferror(file->f)) break;
        unsigned char *more = NULL;
        if (*bytes < room)
            gni_file_fail(file, "read");
        else if ((more = gni_file_room(file, room *= 2)) != NULL)
            memcpy(more, p, *bytes);
        gni_free(file->g, p);
        p = more;
        if (p == NULL) return NULL;
    }
    p[*bytes] = 0;
    return (char *)p;
}

// An array as it is written: in C order and on the CPU, before a file is touched. NULL after gni_fail; the caller's to
// gni_unref.
static gn_array *gni_file_data(gn_context *g, gn_array *a, const void **data) {
    gn_array *c = gni_contiguous(g, a);
    *data = c != NULL ? gni_host(g, c) : NULL;
    if (*data != NULL) return c;
    gni_unref(g, c);
    return NULL;
}

#if !defined(_WIN32) && !defined(__cplusplus)
char *realpath(const char *path, char *to); // which strict modes hide
#endif

// A file that has something in it stays as it is until the new one, beside it, is whole; of a link that is the file that it
// leads to. What is empty (a device, say) is written itself, and so is a file in a folder that takes no other.
static bool gni_file_create(gni_file *file) {
    static const char ending[] = ".partial00"; // the first number of a hundred that no file has
    if (!gni_file_has_path(file)) return false;
    FILE *old = fopen(file->path, "rb");
    const uint64_t had = old != NULL ? gni_file_measure(old) : 0;
    if (old != NULL) fclose(old);
    if (had > 0 && had < UINT64_MAX) {
        char *linked = NULL;
#ifndef _WIN32
        linked = realpath(file->path, NULL);
#endif
        const char *path = linked != NULL ? linked : file->path;
        const size_t n = strlen(path), bytes = 2 * n + 1 + sizeof ending;
        file->partial = (char *)gni_alloc(file->g, bytes);
        if (file->partial != NULL) {
            memcpy(file->partial, path, n);
            memcpy(file->partial + n, ending, sizeof ending);
            memcpy(file->partial + n + sizeof ending, path, n + 1);
        }
        free(linked);
        if (file->partial == NULL) return gni_fail_memory(file->g, file->fn, bytes);
        file->f = NULL;
        for (int i = 0; i < 100 && file->f == NULL; i++) {
            file->partial[n + sizeof ending - 3] = (char)('0' + i / 10);
            file->partial[n + sizeof ending - 2] = (char)('0' + i % 10);
            errno = 0;
            file->f = fopen(file->partial, "wbx");
            if (file->f == NULL && errno != EEXIST) break;
        }
#ifndef _WIN32
        struct stat is; // whoever may not read the old one may not read the new one
        if (file->f != NULL && stat(file->path, &is) == 0) chmod(file->partial, is.st_mode & 0777);
#endif
        if (file->f != NULL) return true;
        gni_free(file->g, file->partial);
        file->partial = NULL;
    }
    errno = 0;
    file->f = fopen(file->path, "wb");
    if (file->f == NULL) gni_file_fail(file, "create");
    return file->f != NULL;
}

static void gni_file_write(gni_file *file, const void *data, size_t bytes) {
    errno = 0;
    if (file->f != NULL) {
        if (bytes > 0 && !file->g->call_failed && fwrite(data, 1, bytes, file->f) != bytes) gni_file_fail(file, "write");
    } else if (file->to != NULL && bytes > 0 && file->at <= file->size && bytes <= file->size - file->at) {
        memcpy(file->to + file->at, data, bytes);
    }
    file->at += bytes;
}

// Closes what was written; of a file that is not whole nothing stays: half of an array might pass for one.
static void gni_file_finish(gni_file *file) {
    if (file->f == NULL) return;
    errno = 0;
    if (fflush(file->f) != 0 && !file->g->call_failed) gni_file_fail(file, "write");
    if (fclose(file->f) != 0 && !file->g->call_failed) gni_file_fail(file, "close");
    file->f = NULL;
    if (file->partial != NULL) {
        const char *to = file->partial + strlen(file->partial) + 1;
#ifdef _WIN32 // where a file does not take another's name
        if (!file->g->call_failed) remove(to);
#endif
        if (!file->g->call_failed && rename(file->partial, to) != 0) gni_file_fail(file, "replace");
        if (file->g->call_failed) remove(file->partial);
        gni_free(file->g, file->partial);
        file->partial = NULL;
    } else if (file->g->call_failed) {
        FILE *cut = fopen(file->path, "wb");
        if (cut != NULL) fclose(cut);
    }
}

// What a save to memory returns: the bytes of the whole, 0 after an error.
static size_t gni_file_written(const gni_file *file) {
    return file->g->call_failed || file->at > SIZE_MAX ? 0 : (size_t)file->at;
}
