// >>cpu
// The CPU backend: jobs cut into tiles that stay in the first cache, spread over the thread pool. No
// result depends on the number of threads. From outside: gni_cpu_map, for room `cpu_jobs`, where the backend's table is.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/evaluate.h"
#include "../cpu/threads.h"
#include "../cpu/cpu_wide.h"
#include "../cpu/cpu_narrow.h"
#include "../cpu/cpu_pairs.h"
#endif

static const gni_cpu_isa *gni_cpu_isa_of(gni_isa isa) { return GNI_OF_ISA(isa, gni_isa_table); }

static int64_t gni_item_size(gn_dtype t) { return (int64_t)gn_dtype_size(t); }

static char *gni_operand_data(const gni_operand *o) {
    return (char *)o->buf->host + o->offset * gni_item_size(o->dtype);
}

// ---- index spaces and tiles

enum {
    GNI_SPACE_OPS = GNI_MAX_INPUTS + GNI_MAX_OUTPUTS,
    GNI_SPACE_RANK = GN_MAX_RANK + 3,
    GNI_SCRATCH = 32768,     // bytes of registers of one worker
    GNI_BLOCK = 1024,        // elements of a register at most, of one narrower than 32 bits as many bytes
    GNI_GRAIN = 32768,       // elements that are worth another thread
    GNI_COPY_TILE = 1 << 15, // elements, where no register is needed
    GNI_CHUNK = 1 << 16,     // elements of one part of a reduction
    GNI_STREAM = 1 << 24,    // bytes of results that are written past the caches
    GNI_PARTS = 2048         // most parts
};

// Dimensions and the operands' strides in bytes. It is cut into tiles, which are one element in all but
// the last three dimensions.
typedef struct gni_space {
    int rank, ops;
    int64_t dim[GNI_SPACE_RANK], tile[GNI_SPACE_RANK];
    int64_t tiles; // in all
    int64_t item[GNI_SPACE_OPS];
    char *base[GNI_SPACE_OPS];
    int64_t stride[GNI_SPACE_OPS][GNI_SPACE_RANK];
} gni_space;

// A place among the tiles: where each operand's part starts, and the extent of the tile.
typedef struct gni_cursor {
    const gni_space *space;
    int64_t at[GNI_SPACE_RANK];
    int64_t ext[3];
    char *p[GNI_SPACE_OPS];
} gni_cursor;

static void gni_space_begin(gni_space *s) { memset(s, 0, sizeof *s); }

static void gni_space_dim(gni_space *s, int64_t n) { s->dim[s->rank++] = n; }

// `base` is for dimension `first` of the job on; those before it are the caller's business.
static void gni_space_operand(gni_space *s, const gni_operand *o, char *base, int first) {
    int k = s->ops++;
    s->base[k] = base;
    s->item[k] = gni_item_size(o->dtype);
    for (int i = 0; i < s->rank; i++) s->stride[k][i] = o->stride[first + i] * s->item[k];
}

static void gni_space_move_dim(gni_space *s, int from, int to) {
    int step = from < to ? 1 : -1;
    for (int i = from; i != to; i += step) {
        int64_t n = s->dim[i];
        s->dim[i] = s->dim[i + step];
        s->dim[i + step] = n;
        for (int k = 0; k < s->ops; k++) {
            int64_t b = s->stride[k][i];
            s->stride[k][i] = s->stride[k][i + step];
            s->stride[k][i + step] = b;
        }
    }
}

// Drops dimensions of size 1 and joins neighbours that every operand steps through evenly, from
// dimension `first` on.
static void gni_space_merge(gni_space *s, int first) {
    int n = first;
    for (int i = first; i < s->rank; i++) {
        if (s->dim[i] == 1) continue;
        bool joins = n > first;
        for (int k = 0; k < s->ops && joins; k++)
            joins = s->stride[k][n - 1] == s->stride[k][i] * s->dim[i];
        if (joins) n--;
        s->dim[n] = joins ? s->dim[n] * s->dim[i] : s->dim[i];
        for (int k = 0; k < s->ops; k++) s->stride[k][n] = s->stride[k][i];
        n++;
    }
    s->rank = n;
}

// Dimensions of size 1 in front, so that there are three.
static void gni_space_pad(gni_space *s) {
    while (s->rank < 3) {
        gni_space_dim(s, 1);
        for (int k = 0; k < s->ops; k++) s->stride[k][s->rank - 1] = 0;
        gni_space_move_dim(s, s->rank - 1, 0);
    }
}

static void gni_space_count(gni_space *s) {
    s->tiles = 1;
    for (int i = 0; i < s->rank; i++)
        s->tiles *= s->dim[i] == 0 ? 0 : (s->dim[i] - 1) / s->tile[i] + 1;
}

// The dimension along which an operand that is far apart along the last one is close together, or -1.
static int gni_space_across(const gni_space *s) {
    int last = s->rank - 1;
    for (int k = 0; k < s->ops && last > 0; k++) {
        int64_t step = s->stride[k][last] < 0 ? -s->stride[k][last] : s->stride[k][last],
                least = step;
        int found = -1;
        if (step <= s->item[k]) continue;
        for (int i = last - 1; i >= 0; i--) {
            int64_t b = s->stride[k][i] < 0 ? -s->stride[k][i] : s->stride[k][i];
            if (b == 0 || b >= least || s->dim[i] < 2) continue;
            least = b;
            found = i;
        }
        if (found >= 0) return found;
    }
    return -1;
}

// Tiles of at most `block` elements, a multiple of 16 where it matters. `fixed`: the order of the
// elements counts, so that dimensions keep their places and tiles are runs of it.
static void gni_space_tile(gni_space *s, int64_t block, bool fixed) {
    int pair = !fixed && s->rank > 2 && s->dim[s->rank - 1] == 2; // parts side by side in all operands move together
    for (int k = 0; k < s->ops; k++) pair = pair && s->stride[k][s->rank - 1] == s->item[k];
    s->rank -= pair;
    int across = fixed ? -1 : gni_space_across(s);
    s->rank += pair;
    if (across >= 0) gni_space_move_dim(s, across, s->rank - 2 - pair);
    gni_space_pad(s);
    int64_t *t = s->tile + s->rank - 3, *d = s->dim + s->rank - 3;
    for (int i = 0; i < s->rank; i++) s->tile[i] = 1;
    if (across >= 0 && pair) {
        t[2] = 2;
        t[0] = GNI_MIN(d[0], 16);
        t[1] = GNI_MIN(d[1], block / 32);
    } else if (across >= 0) {
        t[1] = GNI_MIN(d[1], GNI_MIN(32, block / 16));
        t[2] = GNI_MIN(d[2], GNI_MAX(block / t[1] / 16 * 16, 16));
        if (t[1] == 32) t[2] = GNI_MIN(t[2], 32);
    } else {
        // Long rows, and rows whose vectors come out even, are used where they are.
        t[2] = GNI_MIN(d[2], block);
        if (d[2] < block && (d[2] < 256 || d[2] % 16 != 0)) {
            t[1] = GNI_MIN(d[1], block / GNI_MAX(d[2], 1));
            if (t[1] > 16 && t[1] < d[1]) t[1] &= ~(int64_t)15;
        }
        if (t[2] == d[2] && t[1] == d[1]) {
            t[0] = GNI_MIN(d[0], block / GNI_MAX(d[1] * d[2], 1));
            if (t[0] > 16 && t[0] < d[0]) t[0] &= ~(int64_t)15;
        }
    }
    for (int i = 0; i < 3; i++) t[i] = GNI_MAX(t[i], 1);
    gni_space_count(s);
}

// Dimensions in the order of operand 0's strides, the largest first: sums over any layout run through
// memory in its order.
static void gni_space_sort(gni_space *s) {
    for (int i = 1; i < s->rank && s->ops > 0; i++) {
        int to = i;
        int64_t b = s->stride[0][i] < 0 ? -s->stride[0][i] : s->stride[0][i];
        for (; to > 0 && b != 0; to--) {
            int64_t before =
                s->stride[0][to - 1] < 0 ? -s->stride[0][to - 1] : s->stride[0][to - 1];
            if (before == 0 || before >= b) break;
        }
        gni_space_move_dim(s, i, to);
    }
}

static void gni_cursor_extent(gni_cursor *c) {
    const gni_space *s = c->space;
    for (int i = 0; i < 3; i++) {
        int d = s->rank - 3 + i;
        c->ext[i] = GNI_MIN(s->tile[d], s->dim[d] - c->at[d]);
    }
}

static void gni_cursor_set(gni_cursor *c, const gni_space *s, int64_t tile) {
    c->space = s;
    for (int k = 0; k < s->ops; k++) c->p[k] = s->base[k];
    for (int i = s->rank - 1; i >= 0; i--) {
        int64_t n = (s->dim[i] - 1) / s->tile[i] + 1;
        c->at[i] = tile % n * s->tile[i];
        tile /= n;
        for (int k = 0; k < s->ops; k++) c->p[k] += c->at[i] * s->stride[k][i];
    }
    gni_cursor_extent(c);
}

static void gni_cursor_next(gni_cursor *c) {
    const gni_space *s = c->space;
    for (int i = s->rank - 1; i >= 0; i--) {
        int64_t step = s->tile[i];
        if (c->at[i] + step < s->dim[i]) {
            c->at[i] += step;
            for (int k = 0; k < s->ops; k++) c->p[k] += step * s->stride[k][i];
            break;
        }
        for (int k = 0; k < s->ops; k++) c->p[k] -= c->at[i] * s->stride[k][i];
        c->at[i] = 0;
    }
    gni_cursor_extent(c);
}

static int64_t gni_extent_size(const int64_t ext[3]) { return ext[0] * ext[1] * ext[2]; }

static bool gni_extent_contiguous(const int64_t ext[3], const int64_t stride[3], int64_t item) {
    return (stride[2] == item || ext[2] == 1) && (stride[1] == ext[2] * item || ext[1] == 1) &&
           (stride[0] == ext[1] * ext[2] * item || ext[0] == 1);
}

// ---- moving items

#define GNI_COPY_RUN(name, BYTES)                                                                  \
    static void name(char *d, int64_t ds, const char *s, int64_t ss, int64_t n) {                  \
        for (int64_t i = 0; i < n; i++, d += ds, s += ss) memcpy(d, s, BYTES);                     \
    }
GNI_COPY_RUN(gni_copy_run_1, 1)
GNI_COPY_RUN(gni_copy_run_2, 2)
GNI_COPY_RUN(gni_copy_run_4, 4)
GNI_COPY_RUN(gni_copy_run_8, 8)
GNI_COPY_RUN(gni_copy_run_16, 16)
#undef GNI_COPY_RUN

// An item of up to 8 bytes, again and again in 8.
static uint64_t gni_repeated(const char *s, int64_t item) {
    uint64_t word = (uint8_t)*s;
    uint32_t four;
    uint16_t two;
    if (item == 1) return 0x0101010101010101u * word;
    if (item == 2) return memcpy(&two, s, 2), 0x0001000100010001u * (uint64_t)two;
    if (item == 4) return memcpy(&four, s, 4), (uint64_t)four << 32 | four;
    return memcpy(&word, s, 8), word;
}

// One item n times, in blocks of 64 bytes that vectors write.
static void gni_copy_repeat(char *d, const char *s, int64_t n, int64_t item) {
    uint64_t block[8];
    const int64_t bytes = n * item;
    int64_t i = 0;
    for (int k = 0; k < 8; k++) block[k] = gni_repeated(item == 16 ? s + 8 * (k & 1) : s, item);
    for (; i + 64 <= bytes; i += 64) memcpy(d + i, block, 64);
    if (i < bytes) memcpy(d + i, block, (size_t)(bytes - i));
}

#if defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
typedef uint8_t gni_turn8 __attribute__((vector_size(16)));
typedef uint16_t gni_turn16 __attribute__((vector_size(16)));
typedef uint32_t gni_turn32 __attribute__((vector_size(16)));
typedef uint64_t gni_turn64 __attribute__((vector_size(16)));
#ifdef __clang__
#define GNI_LOW8(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define GNI_HIGH8(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define GNI_LOW16(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define GNI_HIGH16(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define GNI_LOW32(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define GNI_HIGH32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define GNI_LOW64(a, b) __builtin_shufflevector(a, b, 0, 2)
#define GNI_HIGH64(a, b) __builtin_shufflevector(a, b, 1, 3)
#define GNI_EVEN32(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define GNI_ODD32(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#else
static const gni_turn8 gni_low8 = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23},
                       gni_high8 = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
static const gni_turn16 gni_low16 = {0, 8, 1, 9, 2, 10, 3, 11},
                        gni_high16 = {4, 12, 5, 13, 6, 14, 7, 15};
static const gni_turn32 gni_low32 = {0, 4, 1, 5}, gni_high32 = {2, 6, 3, 7}, gni_even32 = {0, 2, 4, 6},
                        gni_odd32 = {1, 3, 5, 7};
static const gni_turn64 gni_low64 = {0, 2}, gni_high64 = {1, 3};
#define GNI_LOW8(a, b) __builtin_shuffle(a, b, gni_low8)
#define GNI_HIGH8(a, b) __builtin_shuffle(a, b, gni_high8)
#define GNI_LOW16(a, b) __builtin_shuffle(a, b, gni_low16)
#define GNI_HIGH16(a, b) __builtin_shuffle(a, b, gni_high16)
#define GNI_LOW32(a, b) __builtin_shuffle(a, b, gni_low32)
#define GNI_HIGH32(a, b) __builtin_shuffle(a, b, gni_high32)
#define GNI_LOW64(a, b) __builtin_shuffle(a, b, gni_low64)
#define GNI_HIGH64(a, b) __builtin_shuffle(a, b, gni_high64)
#define GNI_EVEN32(a, b) __builtin_shuffle(a, b, gni_even32)
#define GNI_ODD32(a, b) __builtin_shuffle(a, b, gni_odd32)
#endif
#endif

// Every second item from s on, as one part of complex numbers is.
static void gni_even_run(char *d, const char *s, int64_t n, int64_t item) {
    int64_t i = 0;
#ifdef GNI_LOW32
    if (item == 4)
        for (gni_turn32 x, y; i + 4 < n; i += 4) {
            memcpy(&x, s + 8 * i, 16), memcpy(&y, s + 8 * i + 16, 16);
            x = GNI_EVEN32(x, y);
            memcpy(d + 4 * i, &x, 16);
        }
    else
        for (gni_turn64 x, y; i + 2 < n; i += 2) {
            memcpy(&x, s + 16 * i, 16), memcpy(&y, s + 16 * i + 16, 16);
            x = GNI_LOW64(x, y);
            memcpy(d + 8 * i, &x, 16);
        }
#endif
    if (item == 4)
        gni_copy_run_4(d + 4 * i, 4, s + 8 * i, 8, n - i);
    else
        gni_copy_run_8(d + 8 * i, 8, s + 16 * i, 16, n - i);
}

// The parts of complex numbers.
static void gni_unpair_run(char *re, char *im, const char *s, int64_t n, int64_t item) {
    int64_t i = 0;
#ifdef GNI_LOW32
    if (item == 4)
        for (gni_turn32 x, y, z; i + 4 <= n; i += 4) {
            memcpy(&x, s + 8 * i, 16), memcpy(&y, s + 8 * i + 16, 16);
            z = GNI_EVEN32(x, y), x = GNI_ODD32(x, y);
            memcpy(re + 4 * i, &z, 16), memcpy(im + 4 * i, &x, 16);
        }
    else
        for (gni_turn64 x, y, z; i + 2 <= n; i += 2) {
            memcpy(&x, s + 16 * i, 16), memcpy(&y, s + 16 * i + 16, 16);
            z = GNI_LOW64(x, y), x = GNI_HIGH64(x, y);
            memcpy(re + 8 * i, &z, 16), memcpy(im + 8 * i, &x, 16);
        }
#endif
    for (; i < n; i++) {
        memcpy(re + i * item, s + 2 * i * item, (size_t)item);
        memcpy(im + i * item, s + (2 * i + 1) * item, (size_t)item);
    }
}

// Items of a and b in turns: complex numbers from their parts.
static void gni_pair_run(char *d, const char *a, const char *b, int64_t n, int64_t item) {
    int64_t i = 0;
#ifdef GNI_LOW32
    if (item == 4)
        for (gni_turn32 x, y, z; i + 4 <= n; i += 4) {
            memcpy(&x, a + 4 * i, 16), memcpy(&y, b + 4 * i, 16);
            z = GNI_LOW32(x, y), x = GNI_HIGH32(x, y);
            memcpy(d + 8 * i, &z, 16), memcpy(d + 8 * i + 16, &x, 16);
        }
    else
        for (gni_turn64 x, y, z; i + 2 <= n; i += 2) {
            memcpy(&x, a + 8 * i, 16), memcpy(&y, b + 8 * i, 16);
            z = GNI_LOW64(x, y), x = GNI_HIGH64(x, y);
            memcpy(d + 16 * i, &z, 16), memcpy(d + 16 * i + 16, &x, 16);
        }
#endif
    for (; i < n; i++) {
        memcpy(d + 2 * i * item, a + i * item, (size_t)item);
        memcpy(d + (2 * i + 1) * item, b + i * item, (size_t)item);
    }
}

static void gni_copy_run(char *d, int64_t ds, const char *s, int64_t ss, int64_t n, int64_t item) {
    if (ds == item && ss == item) {
        // `rep movsb`, which a C library takes from some KB on, crawls where d is a few bytes further in its page.
        const size_t all = (size_t)(n * item), most = ((uintptr_t)d - (uintptr_t)s - 1) % 4096 < 63 ? 2048 : all;
        for (size_t at = 0; at < all && d != s; at += most) memcpy(d + at, s + at, GNI_MIN(most, all - at));
        return;
    }
    if (ds == item && ss == 0 && n * item >= 64) {
        gni_copy_repeat(d, s, n, item);
        return;
    }
    if (ds == item && ss == 2 * item && (item == 4 || item == 8)) {
        gni_even_run(d, s, n, item);
        return;
    }
    switch (item) {
    case 1: gni_copy_run_1(d, ds, s, ss, n); break;
    case 2: gni_copy_run_2(d, ds, s, ss, n); break;
    case 4: gni_copy_run_4(d, ds, s, ss, n); break;
    case 8: gni_copy_run_8(d, ds, s, ss, n); break;
    default: gni_copy_run_16(d, ds, s, ss, n); break;
    }
}

// d[i][j] = s[j][i] for i < rows and j < columns; inside, both sides are contiguous. Squares of items
// that fill vectors of 16 bytes are transposed by interleaving halves, the edges item by item.
#ifdef GNI_LOW32
static void gni_turn_square8(char *d, int64_t ds, const char *s, int64_t ss) {
    gni_turn8 x[16], y[16];
    for (int i = 0; i < 16; i++) memcpy(&x[i], s + i * ss, 16);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 8; i++) y[2 * i] = GNI_LOW8(x[i], x[i + 8]), y[2 * i + 1] = GNI_HIGH8(x[i], x[i + 8]);
        for (int i = 0; i < 8; i++) x[2 * i] = GNI_LOW8(y[i], y[i + 8]), x[2 * i + 1] = GNI_HIGH8(y[i], y[i + 8]);
    }
    for (int i = 0; i < 16; i++) memcpy(d + i * ds, &x[i], 16);
}
GNI_INLINE void gni_turn_square16(char *d, int64_t ds, const char *s, int64_t ss) {
    gni_turn16 x0, x1, x2, x3, x4, x5, x6, x7, y0, y1, y2, y3, y4, y5, y6, y7;
    memcpy(&x0, s, 16), memcpy(&x1, s + ss, 16), memcpy(&x2, s + 2 * ss, 16),
        memcpy(&x3, s + 3 * ss, 16);
    memcpy(&x4, s + 4 * ss, 16), memcpy(&x5, s + 5 * ss, 16), memcpy(&x6, s + 6 * ss, 16);
    memcpy(&x7, s + 7 * ss, 16);
    y0 = GNI_LOW16(x0, x4), y1 = GNI_HIGH16(x0, x4), y2 = GNI_LOW16(x1, x5),
    y3 = GNI_HIGH16(x1, x5);
    y4 = GNI_LOW16(x2, x6), y5 = GNI_HIGH16(x2, x6), y6 = GNI_LOW16(x3, x7),
    y7 = GNI_HIGH16(x3, x7);
    x0 = GNI_LOW16(y0, y4), x1 = GNI_HIGH16(y0, y4), x2 = GNI_LOW16(y1, y5),
    x3 = GNI_HIGH16(y1, y5);
    x4 = GNI_LOW16(y2, y6), x5 = GNI_HIGH16(y2, y6), x6 = GNI_LOW16(y3, y7),
    x7 = GNI_HIGH16(y3, y7);
    y0 = GNI_LOW16(x0, x4), y1 = GNI_HIGH16(x0, x4), y2 = GNI_LOW16(x1, x5),
    y3 = GNI_HIGH16(x1, x5);
    y4 = GNI_LOW16(x2, x6), y5 = GNI_HIGH16(x2, x6), y6 = GNI_LOW16(x3, x7),
    y7 = GNI_HIGH16(x3, x7);
    memcpy(d, &y0, 16), memcpy(d + ds, &y1, 16), memcpy(d + 2 * ds, &y2, 16),
        memcpy(d + 3 * ds, &y3, 16);
    memcpy(d + 4 * ds, &y4, 16), memcpy(d + 5 * ds, &y5, 16), memcpy(d + 6 * ds, &y6, 16);
    memcpy(d + 7 * ds, &y7, 16);
}
GNI_INLINE void gni_turn_square32(char *d, int64_t ds, const char *s, int64_t ss) {
    gni_turn32 x0, x1, x2, x3, y0, y1, y2, y3;
    memcpy(&x0, s, 16), memcpy(&x1, s + ss, 16), memcpy(&x2, s + 2 * ss, 16),
        memcpy(&x3, s + 3 * ss, 16);
    y0 = GNI_LOW32(x0, x2), y1 = GNI_HIGH32(x0, x2), y2 = GNI_LOW32(x1, x3),
    y3 = GNI_HIGH32(x1, x3);
    x0 = GNI_LOW32(y0, y2), x1 = GNI_HIGH32(y0, y2), x2 = GNI_LOW32(y1, y3),
    x3 = GNI_HIGH32(y1, y3);
    memcpy(d, &x0, 16), memcpy(d + ds, &x1, 16), memcpy(d + 2 * ds, &x2, 16),
        memcpy(d + 3 * ds, &x3, 16);
}
GNI_INLINE void gni_turn_square64(char *d, int64_t ds, const char *s, int64_t ss) {
    gni_turn64 x0, x1, y0, y1;
    memcpy(&x0, s, 16), memcpy(&x1, s + ss, 16);
    y0 = GNI_LOW64(x0, x1), y1 = GNI_HIGH64(x0, x1);
    memcpy(d, &y0, 16), memcpy(d + ds, &y1, 16);
}
#define GNI_TURN_SQUARES(N, SQUARE)                                                                \
    for (; i + N <= rows; i += N) {                                                                \
        int64_t j = 0;                                                                             \
        for (; j + N <= columns; j += N)                                                           \
            SQUARE(d + i * ds + j * item, ds, s + j * ss + i * item, ss);                          \
        for (; j < columns; j++)                                                                   \
            gni_copy_run(d + i * ds + j * item, ds, s + j * ss + i * item, item, N, item);         \
    }
#endif

static void gni_turn(char *d, int64_t ds, const char *s, int64_t ss, int64_t rows, int64_t columns,
                     int64_t item) {
    int64_t i = 0;
#ifdef GNI_TURN_SQUARES
    if (item == 1) {
        GNI_TURN_SQUARES(16, gni_turn_square8)
    } else if (item == 2) {
        GNI_TURN_SQUARES(8, gni_turn_square16)
    } else if (item == 4) {
        GNI_TURN_SQUARES(4, gni_turn_square32)
    } else if (item == 8) {
        GNI_TURN_SQUARES(2, gni_turn_square64)
    }
#undef GNI_TURN_SQUARES
#endif
    for (; i < rows; i++) gni_copy_run(d + i * ds, item, s + i * item, ss, columns, item);
}

// Copies a box of items. The runs go where the more scattered side is closest together.
static void gni_copy_box(char *d, const int64_t ds[3], const char *s, const int64_t ss[3],
                         const int64_t ext[3], int64_t item) {
    const int64_t all = ext[2] * item; // of a few neighbours, which are one larger item
    if (ext[2] > 1 && ds[2] == item && ss[2] == item && all <= 16 && (all & (all - 1)) == 0) {
        const int64_t to[3] = {0, ds[0], ds[1]}, from[3] = {0, ss[0], ss[1]}, less[3] = {1, ext[0], ext[1]};
        gni_copy_box(d, to, s, from, less, all);
        return;
    }
    int64_t far1 = GNI_MAX(ds[1] < 0 ? -ds[1] : ds[1], ss[1] < 0 ? -ss[1] : ss[1]);
    int64_t far2 = GNI_MAX(ds[2] < 0 ? -ds[2] : ds[2], ss[2] < 0 ? -ss[2] : ss[2]);
    int run = far1 < far2 && ext[1] >= 4 ? 1 : 2, rows = 3 - run;
    bool transpose = ext[1] > 1 && ext[2] > 1, transposed = ds[1] == item && ss[2] == item;
    transpose = transpose && ((ds[2] == item && ss[1] == item && ss[2] != 0) || transposed);
    for (int64_t i = 0; i < ext[0]; i++, d += ds[0], s += ss[0]) {
        if (transpose && transposed)
            gni_turn(d, ds[2], s, ss[1], ext[2], ext[1], item);
        else if (transpose)
            gni_turn(d, ds[1], s, ss[2], ext[1], ext[2], item);
        else
            for (int64_t j = 0; j < ext[rows]; j++)
                gni_copy_run(d + j * ds[rows], ds[run], s + j * ss[rows], ss[run], ext[run], item);
    }
}

static void gni_dense(const int64_t ext[3], int64_t item, int64_t stride[3]) {
    stride[2] = item;
    stride[1] = item * ext[2];
    stride[0] = item * ext[2] * ext[1];
}

// ---- programs

// How the registers of a program share a worker's scratch memory.
typedef struct gni_plan {
    const gni_program *program;
    const gni_cpu_isa *isa;
    const gni_math *math;
    void (*fill)(void *dst, uint64_t word, int64_t bytes); // of gni_cpu_isa
    int width;                   // bytes of a register's element
    int block;                   // elements of a register
    int slot[GNI_MAX_REGS];      // of each register
    int raw;                     // the slot for items on their way from or to memory
    bool constant;               // one constant is all there is
    bool copied[GNI_MAX_INPUTS]; // first, as they never can be read in place
    int out_of[GNI_MAX_INSNS];   // output that the instruction may write in place, or -1
    gni_kernel kernel[GNI_MAX_INSNS]; // NULL where the op is a rare one
} gni_plan;

static bool gni_reads(uint32_t insn, int reg) {
    return (int)GNI_INSN_A(insn) == reg || (int)GNI_INSN_B(insn) == reg ||
           (int)GNI_INSN_C(insn) == reg;
}

// Instruction after which a register is no longer read; outputs are read at the end.
static int gni_last_use(const gni_program *p, int reg) {
    for (int o = 0; o < p->n_out; o++)
        if (p->out_reg[o] == reg) return p->n_insn;
    for (int i = p->n_insn - 1; i >= 0; i--)
        if (gni_reads(p->insn[i], reg)) return i;
    return -1;
}

// Gives every register a slot: inputs and constants their own, results one that is free by then.
static void gni_plan_slots(gni_plan *plan) {
    const gni_program *p = plan->program;
    int fixed = p->n_in + p->n_const, count = fixed, last[GNI_MAX_REGS], until[GNI_MAX_REGS];
    for (int r = 0; r < fixed + p->n_insn; r++) last[r] = gni_last_use(p, r);
    for (int r = 0; r < fixed; r++) {
        plan->slot[r] = r;
        until[r] = GNI_MAX_REGS;
    }
    for (int i = 0; i < p->n_insn; i++) {
        int s = fixed;
        while (s < count && until[s] > i) s++;
        if (s == count) count++;
        until[s] = last[fixed + i];
        plan->slot[fixed + i] = s;
    }
    plan->raw = count++;
    int most = GNI_SCRATCH / (plan->width * count) & ~63;
    plan->block = GNI_MIN(most, plan->width < 4 ? GNI_BLOCK * 4 / plan->width : GNI_BLOCK);
}

// `out` is NULL for reductions. `narrow`: what gni_narrow_program returned, or GN_DTYPE_COUNT.
static void gni_plan_make(gni_plan *plan, const gni_program *p, const gn_context *g, const gni_operand *in,
                          const gni_operand *out, gn_dtype narrow) {
    memset(plan->copied, 0, sizeof plan->copied); // all else is written below
    plan->program = p;
    plan->constant = p->n_in == 0 && p->n_const == 1 && p->n_insn == 0 && p->n_out == 1;
    const gni_cpu_isa *isa = gni_cpu_isa_of(g->isa);
    plan->isa = p->wide ? isa->wide : isa;
    plan->fill = isa->fill;
    plan->math = gni_math_get(g);
    plan->width = p->wide ? 8 : 4;
    if (narrow != GN_DTYPE_COUNT) plan->width = (int)gn_dtype_size(narrow), plan->isa = gni_narrow_isa_of(narrow);
    gni_plan_slots(plan);
    for (int i = 0; i < p->n_insn; i++) {
        const uint32_t code = GNI_INSN_CODE(p->insn[i]);
        plan->kernel[i] =
            narrow != GN_DTYPE_COUNT ? gni_narrow_kernel(code, narrow) : gni_kernel_of(g, g->isa, p->wide, code);
        plan->out_of[i] = -1;
    }
    for (int o = 0; o < p->n_out && out != NULL; o++) {
        int i = p->out_reg[o] - p->n_in - p->n_const;
        // In-place updates: the old value must not be wanted any more.
        bool free_then = i >= 0;
        for (int k = 0; k < p->n_in; k++) {
            if (in[k].buf != out[o].buf) continue;
            free_then = free_then && gni_last_use(p, k) <= i;
            if (p->n_out > 1) plan->copied[k] = plan->copied[k] || gni_last_use(p, k) == p->n_insn;
        }
        if (free_then) plan->out_of[i] = o;
    }
}

#ifdef GNI_WASM // built to be small
#define gni_cut_program(q, p, isa) false
#else
// Whether an instruction limits register r by a constant that loops of limits take.
static bool gni_is_limit(const gni_program *p, uint32_t insn, gni_op op, int r) {
    const int c = (int)GNI_INSN_B(insn) - p->n_in;
    if (GNI_INSN_CODE(insn) != (uint32_t)op * 3u + GNI_I || (int)GNI_INSN_A(insn) != r || c < 0 || c >= p->n_const)
        return false;
    const int64_t x = p->wide ? (int64_t)p->konst[c] : (int32_t)(uint32_t)(p->konst[c] & UINT32_MAX);
    const int64_t most = (int64_t)1 << (p->wide ? 32 : 24);
    return op == GNI_OP_MAX ? x <= 0 && x >= -most : x >= 0 && x <= most;
}

// p with one instruction for floats that become integers between limits, and without those that cut off what the store of an
// output does as well. False: it has none of either.
static bool gni_cut_program(gni_program *q, const gni_program *p, const gni_cpu_isa *isa) {
    const int first = p->n_in + p->n_const;
    const uint32_t clamped = (uint32_t)GNI_OP_F_TO_I * 3u + (uint32_t)GNI_I;
    int reg[GNI_MAX_REGS], some = 0;
    for (int i = 0; i < p->n_insn; i++) some += GNI_INSN_CODE(p->insn[i]) / 3u >= GNI_OP_F_TO_I;
    if (some == 0) return false;
    *q = *p;
    q->n_insn = 0;
    for (int r = 0; r < first; r++) reg[r] = r;
    for (int i = 0; i < p->n_insn; i++) {
        const int r = first + i;
        const uint32_t insn = p->insn[i], *next = p->insn + i + 1, a = (uint32_t)reg[GNI_INSN_A(insn)];
        uint32_t code = GNI_INSN_CODE(insn), b = GNI_INSN_B(insn), c = GNI_INSN_C(insn);
        const uint32_t op = code / 3u;
        const size_t bytes = op == GNI_OP_WRAP_U8 || op == GNI_OP_WRAP_I8     ? 1
                             : op == GNI_OP_WRAP_U16 || op == GNI_OP_WRAP_I16 ? 2
                             : op == GNI_OP_WRAP_U32 || op == GNI_OP_WRAP_I32 ? 4
                                                                              : 0;
        bool cut = bytes > 0;
        for (int k = i + 1; k < p->n_insn; k++) cut = cut && !gni_reads(p->insn[k], r);
        for (int o = 0; o < p->n_out; o++)
            cut = cut && (p->out_reg[o] != r || (p->out_dtype[o] != GN_BOOL && gn_dtype_size(p->out_dtype[o]) == bytes));
        reg[r] = (int)a;
        if (cut) continue;
        if (op == GNI_OP_F_TO_I && i + 2 < p->n_insn && gni_is_limit(p, next[0], GNI_OP_MAX, r) &&
            gni_is_limit(p, next[1], GNI_OP_MIN, r + 1) && gni_last_use(p, r) == i + 1 && gni_last_use(p, r + 1) == i + 2 &&
            (!p->wide || isa->wide_kernel(clamped) != NULL)) {
            code = clamped, b = GNI_INSN_B(next[0]), c = GNI_INSN_B(next[1]);
            i += 2;
        }
        reg[first + i] = first + q->n_insn;
        q->insn[q->n_insn++] = GNI_INSN(0, code, a, (uint32_t)reg[b], (uint32_t)reg[c]);
    }
    for (int o = 0; o < p->n_out; o++) q->out_reg[o] = reg[p->out_reg[o]];
    return true;
}
#endif

// Products, conjugates and quotients of complex numbers have loops of their own.
static void gni_plan_pairs(gni_plan *plan, const gni_pairs *q) {
    for (int i = 0; i < plan->program->n_insn; i++) {
        if (q->products >> i & 1u) plan->kernel[i] = plan->isa->pair_product;
        if (q->conjugates >> i & 1u) plan->kernel[i] = plan->isa->pair_conj;
        if (q->quotients >> i & 1u) plan->kernel[i] = plan->isa->pair_quotient;
    }
}

// A worker's registers for the tile at hand.
typedef struct gni_eval {
    const gni_plan *plan;
    char *scratch;
    const char *reg[GNI_MAX_REGS];
    const char *have[GNI_MAX_INPUTS]; // what the input's slot holds, and with which extent
    int64_t have_ext[GNI_MAX_INPUTS][3];
} gni_eval;

static char *gni_eval_slot(const gni_eval *e, int slot) {
    return e->scratch + (int64_t)slot * e->plan->block * e->plan->width;
}

// `memory` has GNI_SCRATCH + 64 bytes.
static void gni_eval_begin(gni_eval *e, const gni_plan *plan, char *memory) {
    const gni_program *p = plan->program;
    memset(e->have, 0, sizeof e->have); // the rest is read once it is written
    e->plan = plan;
    e->scratch = memory + (64 - ((uintptr_t)memory & 63));
    for (int c = 0; c < p->n_const; c++) {
        char *to = gni_eval_slot(e, plan->slot[p->n_in + c]);
        uint32_t low = (uint32_t)(p->konst[c] & 0xffffffffu);
        const size_t item = p->wide ? 8 : 4, bytes = (size_t)(plan->block * plan->width);
        size_t n = 0;
        for (; n < bytes && n < 64; n += item)
            memcpy(to + n, p->wide ? (const void *)&p->konst[c] : (const void *)&low, item);
        for (; n < bytes; n *= 2) memcpy(to + n, to, GNI_MIN(n, bytes - n)); // several times as fast as one by one
        e->reg[p->n_in + c] = to;
    }
}

// Kernels work on whole groups of 16: zeros behind the n elements of a slot.
static void gni_eval_pad(const gni_eval *e, char *slot, int64_t n) {
    if ((n & 15) != 0) memset(slot + n * e->plan->width, 0, (size_t)((16 - (n & 15)) * e->plan->width));
}

static void gni_eval_load(gni_eval *e, int k, const char *from, const int64_t stride[3],
                          const int64_t ext[3], int64_t n, bool in_place) {
    const gni_plan *plan = e->plan;
    gn_dtype t = plan->program->in_dtype[k];
    gni_convert_fn load = plan->isa->load[t];
    int64_t item = gni_item_size(t), dense[3];
    bool contiguous = gni_extent_contiguous(ext, stride, item);
    if (contiguous && in_place && load == NULL && !plan->copied[k]) {
        e->reg[k] = from;
        return;
    }
    char *to = gni_eval_slot(e, plan->slot[k]);
    e->reg[k] = to;
    if (e->have[k] == from && memcmp(e->have_ext[k], ext, sizeof e->have_ext[k]) == 0) return;
    e->have[k] = plan->copied[k] ? NULL : from;
    memcpy(e->have_ext[k], ext, sizeof e->have_ext[k]);
    if (!contiguous) {
        char *raw = load == NULL ? to : gni_eval_slot(e, plan->raw);
        gni_dense(ext, item, dense);
        if (stride[2] == 0 && ext[2] * item >= 64 && item <= 8 && plan->fill != NULL)
            for (int64_t i = 0; i < ext[0] * ext[1]; i++) {
                const char *one = from + i / ext[1] * stride[0] + i % ext[1] * stride[1];
                plan->fill(raw + i * dense[1], gni_repeated(one, item), dense[1]);
            }
        else
            gni_copy_box(raw, dense, from, stride, ext, item);
        from = raw;
    }
    if (load != NULL)
        load(to, from, n);
    else if (from != to)
        memcpy(to, from, (size_t)(n * item));
    gni_eval_pad(e, to, n);
}

// n elements of the registers, from number `from` on. `direct[o]` is where output o may be written at once, or NULL, as
// `direct` is for none.
static void gni_eval_run(gni_eval *e, int64_t from, int64_t n, char *const *direct) {
    const gni_plan *plan = e->plan;
    const gni_program *p = plan->program;
    const int64_t at = from * plan->width;
    int count = (int)((n + 15) & ~(int64_t)15);
    for (int i = 0; i < p->n_insn; i++) {
        uint32_t insn = p->insn[i];
        int reg = p->n_in + p->n_const + i, o = plan->out_of[i];
        char *to = direct != NULL && o >= 0 && direct[o] != NULL ? direct[o] : gni_eval_slot(e, plan->slot[reg]);
        const char *a = e->reg[GNI_INSN_A(insn)] + at;
        if (plan->kernel[i] == NULL)
            plan->math->rare(GNI_INSN_CODE(insn), to + at, a, p->wide, count);
        else
            plan->kernel[i](to + at, a, e->reg[GNI_INSN_B(insn)] + at, e->reg[GNI_INSN_C(insn)] + at, count);
        e->reg[reg] = to;
    }
}

static void gni_eval_store(gni_eval *e, int o, char *to, const int64_t stride[3],
                           const int64_t ext[3], int64_t n) {
    const gni_plan *plan = e->plan;
    gn_dtype t = plan->program->out_dtype[o];
    gni_convert_fn store = plan->isa->store[t];
    int64_t item = gni_item_size(t), dense[3];
    const char *from = e->reg[plan->program->out_reg[o]];
    bool contiguous = gni_extent_contiguous(ext, stride, item);
    if (from == to) return;
    if (store != NULL) {
        char *raw = contiguous ? to : gni_eval_slot(e, plan->raw);
        store(raw, from, n);
        if (contiguous) return;
        from = raw;
    }
    gni_dense(ext, item, dense);
    gni_copy_box(to, stride, from, dense, ext, item);
}

// ---- map

typedef struct gni_map_job {
    gni_plan plan;
    gni_space space; // inputs, then outputs
    const gni_cpu_isa *isa;
    bool stream; // outputs past the caches
} gni_map_job;

// Results larger than caches go past them, unless they overwrite what has just been read.
static bool gni_streams(const gni_operand *in, int n_in, const gni_operand *out, int n_out,
                        const gni_space *s) {
    int64_t bytes = 0, n = 1;
    for (int i = 0; i < s->rank; i++) n *= s->dim[i];
    for (int o = 0; o < n_out; o++) {
        bytes += n * gni_item_size(out[o].dtype);
        for (int k = 0; k < n_in; k++)
            if (in[k].buf == out[o].buf) return false;
    }
    return bytes >= GNI_STREAM;
}

// Whether output o and the next one are the parts of complex numbers that follow each other.
static bool gni_map_pair(const gni_map_job *j, char *const *p, int o, const int64_t ext[3]) {
    const gni_space *s = &j->space;
    const gni_program *q = j->plan.program;
    const int k = q->n_in + o;
    const int64_t item = s->item[k], *stride = s->stride[k] + s->rank - 3;
    // Not where they are converted when they are stored.
    if (item < 4 || item != j->plan.width || j->plan.isa->store[q->out_dtype[o]] != NULL ||
        j->plan.isa->store[q->out_dtype[o + 1]] != NULL)
        return false;
    return s->item[k + 1] == item && p[k + 1] == p[k] + item && gni_extent_contiguous(ext, stride, 2 * item) &&
           memcmp(stride, s->stride[k + 1] + s->rank - 3, 3 * sizeof *stride) == 0;
}

// Input k and another one where they are the parts of complex numbers: both into registers. Returns the other one, or 0.
static int gni_map_unpair(const gni_map_job *j, gni_eval *e, char *const *p, int k, const int64_t ext[3], int64_t n) {
    const gni_space *s = &j->space;
    const int64_t item = s->item[k], *stride = s->stride[k] + s->rank - 3;
    if (stride[2] != 2 * item || item < 4 || item != j->plan.width ||
        !gni_extent_contiguous(ext, stride, 2 * item))
        return 0;
    for (int i = k + 1; i < j->plan.program->n_in; i++) {
        if (p[i] != p[k] + item || s->item[i] != item || memcmp(stride, s->stride[i] + s->rank - 3, 3 * sizeof *stride) != 0)
            continue;
        char *re = gni_eval_slot(e, j->plan.slot[k]), *im = gni_eval_slot(e, j->plan.slot[i]);
        gni_unpair_run(re, im, p[k], n, item);
        gni_eval_pad(e, re, n), gni_eval_pad(e, im, n);
        e->reg[k] = re, e->reg[i] = im;
        e->have[k] = e->have[i] = NULL;
        return i;
    }
    return 0;
}

// Output o past the caches. Where one operand takes next to no time, what it has behind this tile is fetched meanwhile;
// longer work gets nothing from that, or loses.
static void gni_map_stream(const gni_map_job *j, const gni_eval *e, char *const *p, int o, int64_t n) {
    const gni_program *g = j->plan.program;
    const char *from = e->reg[g->out_reg[o]];
    const bool light = g->n_in == 1 && g->n_insn == 1 && GNI_INSN_CODE(g->insn[0]) / 3u > GNI_OP_SOFTPLUS;
    j->isa->stream(p[g->n_in + o], from, n * j->space.item[g->n_in + o], light ? p[0] + n * j->space.item[0] : from);
}

// n elements that are all the first constant of a program.
static void gni_map_fill(const gni_plan *plan, char *to, int64_t n, int64_t item) {
    const gni_convert_fn store = plan->isa->store[plan->program->out_dtype[0]];
    const uint64_t bits = plan->program->konst[0];
    const uint32_t low = (uint32_t)bits;
    const void *reg = plan->width == 8 ? (const void *)&bits : (const void *)&low;
    char one[8];
    memcpy(one, reg, (size_t)plan->width);
    if (store != NULL) store(one, reg, 1);
    if (item == 1 || bits == 0)
        memset(to, one[0], (size_t)(n * item));
    else
        gni_copy_repeat(to, one, n, item);
}

// The last few elements, behind `at` whole groups of 16 that were read and written in place: by way of the slots, at the
// same place but where nothing else is in them.
static void gni_map_rest(const gni_map_job *j, gni_eval *e, char *const *p, int64_t at, int64_t rest, char *const *direct) {
    const gni_program *g = j->plan.program;
    const int64_t width = j->plan.width, slot = at >= j->plan.block ? 0 : at;
    for (int k = 0; k < g->n_in; k++) {
        if (e->reg[k] != p[k]) continue;
        char *to = gni_eval_slot(e, j->plan.slot[k]);
        memcpy(to + slot * width, p[k] + at * width, (size_t)(rest * width));
        gni_eval_pad(e, to, slot + rest);
        e->reg[k] = to;
        e->have[k] = NULL;
    }
    gni_eval_run(e, slot, rest, NULL);
    for (int i = 0; i < g->n_insn; i++) {
        const int o = j->plan.out_of[i], reg = g->n_in + g->n_const + i;
        if (o < 0 || direct[o] == NULL) continue;
        memcpy(direct[o] + at * width, e->reg[reg] + slot * width, (size_t)(rest * width));
        e->reg[reg] = direct[o];
    }
}

static void gni_map_tile(const gni_map_job *j, gni_eval *e, char *const *p, const int64_t ext[3]) {
    const gni_space *s = &j->space;
    const gni_program *g = j->plan.program;
    const int64_t n = gni_extent_size(ext), rest = n & 15;
    bool parts = rest != 0 && n > 64, stream[GNI_MAX_OUTPUTS];
    for (int o = 0; o < g->n_out; o++) parts = parts && g->out_reg[o] >= g->n_in;
    const bool whole = rest == 0 || parts; // operands may be read and written where they are
    char *direct[GNI_MAX_OUTPUTS];
    uint32_t there = 0; // inputs that came with another one
    if (j->plan.constant && gni_extent_contiguous(ext, s->stride[0] + s->rank - 3, s->item[0])) {
        gni_map_fill(&j->plan, p[0], n, s->item[0]);
        return;
    }
    if (g->n_insn == 0 && g->n_out == 1 && g->n_in == 1 && g->out_reg[0] == 0 && whole && !j->stream && !j->plan.copied[0]) {
        gni_convert_fn load = gni_narrow_convert(g->in_dtype[0], g->out_dtype[0]); // a conversion that is all there is to do
        if (load == NULL && j->plan.isa->store[g->out_dtype[0]] == NULL) load = j->plan.isa->load[g->in_dtype[0]];
        if (load != NULL && gni_extent_contiguous(ext, s->stride[0] + s->rank - 3, s->item[0]) &&
            gni_extent_contiguous(ext, s->stride[1] + s->rank - 3, s->item[1])) {
            load(p[1], p[0], n);
            return;
        }
    }
    for (int k = 0; k < g->n_in; k++) {
        const int other = there >> k & 1u ? k : gni_map_unpair(j, e, p, k, ext, n);
        there |= 1u << other;
        if (other == 0) gni_eval_load(e, k, p[k], s->stride[k] + s->rank - 3, ext, n, whole);
    }
    for (int o = 0; o < g->n_out; o++) {
        int k = g->n_in + o;
        bool in_place = whole && j->plan.isa->store[g->out_dtype[o]] == NULL &&
                        gni_extent_contiguous(ext, s->stride[k] + s->rank - 3, s->item[k]);
        stream[o] =
            in_place && j->stream && ((n * s->item[k]) & 63) == 0 && ((uintptr_t)p[k] & 63) == 0;
        direct[o] = in_place && !stream[o] ? p[k] : NULL;
    }
    gni_eval_run(e, 0, parts ? n - rest : n, direct);
    if (parts) gni_map_rest(j, e, p, n - rest, rest, direct);
    for (int o = 0; o < g->n_out; o++) {
        char *to = p[g->n_in + o];
        if (o + 1 < g->n_out && gni_map_pair(j, p, o, ext)) {
            gni_pair_run(to, e->reg[g->out_reg[o]], e->reg[g->out_reg[o + 1]], n, s->item[g->n_in + o]);
            o++;
        } else if (stream[o])
            gni_map_stream(j, e, p, o, n);
        else
            gni_eval_store(e, o, to, s->stride[g->n_in + o] + s->rank - 3, ext, n);
    }
}

// A short row that every operand has without gaps, which is what most calls on small arrays are: false if it is another one.
static bool gni_map_short(gni_map_job *j, const gni_map *m) {
    const int64_t n = m->rank == 1 ? m->dim[0] : 0, ext[3] = {1, 1, n};
    gni_space *s = &j->space;
    if (n < 1 || n > j->plan.block) return false;
    s->rank = 3;
    s->ops = m->program.n_in + m->program.n_out;
    for (int k = 0; k < s->ops; k++) {
        const gni_operand *o = k < m->program.n_in ? &m->in[k] : &m->out[k - m->program.n_in];
        if (o->stride[0] != 1) return false;
        s->base[k] = gni_operand_data(o);
        s->item[k] = s->stride[k][2] = gni_item_size(o->dtype);
        s->stride[k][0] = s->stride[k][1] = 0;
    }
    char memory[GNI_SCRATCH + 64];
    gni_eval e;
    gni_eval_begin(&e, &j->plan, memory);
    gni_map_tile(j, &e, s->base, ext);
    return true;
}

static void gni_map_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_map_job *j = (const gni_map_job *)arg;
    char memory[GNI_SCRATCH + 64];
    gni_eval e;
    gni_cursor c;
    GNI_UNUSED(worker);
    gni_eval_begin(&e, &j->plan, memory);
    gni_cursor_set(&c, &j->space, begin);
    for (int64_t t = begin; t < end; t++) {
        gni_map_tile(j, &e, c.p, c.ext);
        gni_cursor_next(&c);
    }
    if (j->stream) j->isa->stream(NULL, NULL, 0, NULL);
}

static void gni_copy_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_map_job *j = (const gni_map_job *)arg;
    const gni_space *s = &j->space;
    const int64_t *from = s->stride[0] + s->rank - 3, *to = s->stride[1] + s->rank - 3;
    gni_cursor c;
    GNI_UNUSED(worker);
    gni_cursor_set(&c, s, begin);
    for (int64_t t = begin; t < end; t++) {
        int64_t bytes = gni_extent_size(c.ext) * s->item[0];
        bool past = j->stream && ((bytes | (int64_t)((uintptr_t)c.p[1] & 63)) & 63) == 0 &&
                    gni_extent_contiguous(c.ext, from, s->item[0]) &&
                    gni_extent_contiguous(c.ext, to, s->item[0]);
        if (past)
            j->isa->stream(c.p[1], c.p[0], bytes, c.p[0]);
        else
            gni_copy_box(c.p[1], to, c.p[0], from, c.ext, s->item[0]);
        gni_cursor_next(&c);
    }
    if (j->stream) j->isa->stream(NULL, NULL, 0, NULL);
}

// Whether it needs no register: a constant, or one op that takes its operands where they are and leaves its result where it
// goes.
static bool gni_map_bare(const gni_map_job *j) {
    const gni_plan *plan = &j->plan;
    const gni_program *p = plan->program;
    const gni_space *s = &j->space;
    bool bare =
        plan->constant || (p->n_insn == 1 && p->n_const == 0 && p->out_reg[0] == p->n_in && plan->kernel[0] != NULL &&
                           plan->out_of[0] == 0 && !j->stream && plan->isa->store[p->out_dtype[0]] == NULL);
    for (int k = 0; k < s->ops; k++) {
        bare = bare && s->rank == 1 && s->stride[k][0] == s->item[k];
        if (k < p->n_in) bare = bare && plan->isa->load[p->in_dtype[k]] == NULL && !plan->copied[k];
    }
    return bare;
}

// Tiles that make up work for one thread; a program's instructions count.
static int64_t gni_tile_grain(const gni_space *s, int work) {
    int64_t tile = 1;
    for (int i = s->rank - 3; i < s->rank; i++) tile *= s->tile[i];
    return GNI_MAX(GNI_GRAIN / (work + 1) / tile, 1);
}

static bool gni_is_copy(const gni_program *p) {
    return p->n_insn == 0 && p->n_out == 1 && p->n_in > 0 && p->out_reg[0] < p->n_in &&
           p->in_dtype[p->out_reg[0]] == p->out_dtype[0];
}

static bool gni_cpu_map(gn_context *g, const void *job) {
    const gni_map *m = (const gni_map *)job;
    gni_pairs pairs;
    const bool paired = gni_pair_map(&pairs, m, gni_cpu_isa_of(g->isa));
    if (paired) m = &pairs.map;
    const gni_program *p = &m->program;
    gni_program less;
    gni_map_job j;
    gni_space *s = &j.space;
    const bool copies = gni_is_copy(p);
    j.isa = gni_cpu_isa_of(g->isa);
    j.stream = false;
    if (!copies) {
        const gn_dtype narrow = gni_narrow_program(&less, p);
        if (narrow != GN_DTYPE_COUNT || (!paired && gni_cut_program(&less, p, j.isa))) p = &less;
        gni_plan_make(&j.plan, p, g, m->in, m->out, narrow);
        if (paired) gni_plan_pairs(&j.plan, &pairs);
        if (gni_map_short(&j, m)) return true;
    }
    gni_space_begin(s);
    for (int i = 0; i < m->rank; i++) gni_space_dim(s, m->dim[i]);
    if (copies) {
        const gni_operand *in = &m->in[p->out_reg[0]];
        gni_space_operand(s, in, gni_operand_data(in), 0);
        gni_space_operand(s, &m->out[0], gni_operand_data(&m->out[0]), 0);
        gni_space_merge(s, 0);
        gni_space_tile(s, gni_space_across(s) >= 0 ? GNI_BLOCK : GNI_COPY_TILE, false);
        j.stream = gni_streams(in, 1, m->out, 1, s);
        gni_parallel(g->pool, s->tiles, gni_tile_grain(s, 0), gni_copy_task, &j);
        return true;
    }
    for (int k = 0; k < p->n_in; k++)
        gni_space_operand(s, &m->in[k], gni_operand_data(&m->in[k]), 0);
    for (int k = 0; k < p->n_out; k++)
        gni_space_operand(s, &m->out[k], gni_operand_data(&m->out[k]), 0);
    gni_space_merge(s, 0);
    j.stream = gni_streams(m->in, p->n_in, m->out, p->n_out, s);
    gni_space_tile(s, gni_map_bare(&j) ? GNI_COPY_TILE : j.plan.block, false);
    gni_parallel(g->pool, s->tiles, gni_tile_grain(s, p->n_insn), gni_map_task, &j);
    return true;
}

// ---- one op on short arrays

#define GNI_SHORT 1024 // elements

// Kernels take groups of 16: what is left over goes by way of the stack. `to` has n elements of `item` bytes.
static void gni_short_run(gni_kernel kernel, char *to, const char *const *from, int64_t n, int64_t item) {
    const int64_t rest = n & 15, whole = n - rest;
    char part[4][16 * 8];
    if (whole > 0) kernel(to, from[0], from[1], from[2], (int)whole);
    if (rest == 0) return;
    for (int i = 0; i < 3; i++) {
        memset(part[i], 0, sizeof part[i]);
        memcpy(part[i], from[i] + whole * item, (size_t)(rest * item));
    }
    kernel(part[3], part[0], part[1], part[2], 16);
    memcpy(to + whole * item, part[3], (size_t)(rest * item));
}

// The instruction that makes a's values of its sources, or GNI_OP_COUNT where they are those already. False: one will not
// do.
static bool gni_short_op(const gn_array *a, gni_op *op) {
    const gni_expr *e = a->expr;
    gni_op more[2];
    *op = e->op;
    if (e->op == GNI_OP_CAST) {
        const int n = gni_convert_ops(e->compute, a->dtype, e->wide, more);
        *op = n == 0 ? GNI_OP_COUNT : more[0];
        return n < 2;
    }
    const bool held = e->compute == GN_F32 || e->compute == GN_I32 || e->compute == GN_F64 || e->compute == GN_I64;
    const bool truth =
        (e->op >= GNI_OP_EQ && e->op <= GNI_OP_LOGICAL_XOR) || (e->op >= GNI_OP_ISNAN && e->op <= GNI_OP_LOGICAL_NOT);
    return held && e->op <= GNI_OP_FMA && a->dtype == (truth ? GN_BOOL : e->compute);
}

// n elements of a source as a register's, where they are or in `reg`; NULL: this is not the way to them.
static const char *gni_short_source(gn_context *g, const gn_array *a, int i, const gni_cpu_isa *isa, void *reg) {
    const gni_expr *e = a->expr;
    const int64_t n = gni_elements(&a->shape), width = e->wide ? 8 : 4;
    gn_array *s = e->src[i];
    const gn_dtype t = gni_source_dtype(e->op, i, e->compute);
    if (s == NULL) {
        const double v = t == GN_F32 ? (double)(float)e->konst[i] : e->konst[i];
        const uint64_t bits = gni_const_bits(v, gni_domain_of(t, e->wide), e->wide);
        const uint32_t low = (uint32_t)bits;
        gni_copy_repeat((char *)reg, e->wide ? (const char *)&bits : (const char *)&low, n, width);
        return (const char *)reg;
    }
    const int64_t have = gni_elements(&s->shape);
    if (s->expr != NULL || s->dtype != t || (have != 1 && !(gni_same_shape(&s->shape, &a->shape) && gni_is_contiguous(s))))
        return NULL;
    if (!gni_buffer_need(g, s->buf, GNI_ON_CPU)) return NULL;
    const char *data = (const char *)s->buf->host + s->offset * gni_item_size(t);
    const bool one = have == 1 && n > 1;
    char first[8];
    if (isa->load[t] == NULL && !one) return data;
    if (isa->load[t] != NULL) isa->load[t](one ? (void *)first : reg, data, one ? 1 : n);
    if (one) gni_copy_repeat((char *)reg, isa->load[t] != NULL ? first : data, n, width);
    return (const char *)reg;
}

static GNI_NOINLINE bool gni_cpu_short(gn_context *g, gn_array *a) { // whose stack is not that of all who evaluate
    double reg[4][GNI_SHORT]; // the sources, where they are not used in place, and the result
    const char *from[3] = {NULL, NULL, NULL};
    const gni_expr *e = a->expr;
    const gn_dtype t = a->dtype;
    const int64_t n = gni_elements(&a->shape), width = e->wide ? 8 : 4;
    gni_op op;
    if (n < 1 || n > GNI_SHORT || gni_is_complex(t) || gni_is_complex(e->compute) || e->op > GNI_OP_CAST ||
        !gni_short_op(a, &op))
        return false;
    if (g->profile != NULL || g->options.log_level == GN_LOG_DEBUG) return false; // which tell of jobs
    const gni_cpu_isa *narrow = gni_cpu_isa_of(g->isa), *isa = e->wide ? narrow->wide : narrow;
    gni_kernel kernel = NULL;
    if (op != GNI_OP_COUNT)
        kernel = gni_kernel_of(g, g->isa, e->wide, GNI_INSN(op, gni_domain_of(e->compute, e->wide), 0, 0, 0));
    if (op != GNI_OP_COUNT && kernel == NULL) return false;
    for (int i = 0; i < e->n_src; i++) {
        from[i] = gni_short_source(g, a, i, isa, reg[i]);
        if (from[i] == NULL) return false;
    }
    for (int i = e->n_src; i < 3; i++) from[i] = from[0];
    gni_buffer *b = gni_buffer_new(g, (uint64_t)(n * gni_item_size(t)));
    if (b == NULL || !gni_buffer_claim(g, b, GNI_ON_CPU)) {
        gni_buffer_release(g, b);
        return false;
    }
    const gni_convert_fn store = isa->store[t];
    char *to = store != NULL ? (char *)reg[3] : (char *)b->host;
    if (kernel != NULL)
        gni_short_run(kernel, to, from, n, width);
    else if (store == NULL)
        memcpy(to, from[0], (size_t)(n * width));
    if (store != NULL) store(b->host, kernel != NULL ? to : from[0], n);
    b->version = 0;
    a->buf = b;
    a->reason = (uint8_t)GNI_WHY_NO_GPU;
    a->on_gpu = false;
    gni_expr_free(g, a);
    return true;
}
