// >>cpu_order
// Scans, sorts, searches and counts on the CPU. Order is that of keys: unsigned integers of the element's size that
// compare as the elements do. From outside: gni_cpu_scan, gni_cpu_sort, gni_cpu_search, gni_cpu_counts.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu.h"
#endif

// ---- scans

enum { GNI_SCAN_BLOCK = 1024, GNI_SCAN_CHUNK = 1 << 16, GNI_SCAN_COLUMNS = 256 };

// What the elements so far come to: a, of logsumexp the largest a and b = sum of exp(x - a); integers in i. Of products b is
// not 0 where one of them was far from 1. Of complex numbers a and b are the parts, and i is 1 in front of a first factor.
typedef struct gni_scan_acc {
    double a, b;
    int64_t i;
} gni_scan_acc;

typedef struct gni_scan_job {
    const gni_scan *d;
    const char *x;
    char *y;
    int64_t item, chunk, chunks; // bytes of an element, elements of a part, parts of a row
    bool is_float, totals, pairs; // pairs: parts of complex numbers in turns
    gni_convert_fn load, store;
    gni_scan_acc *parts; // by row and chunk: totals, then what is in front
} gni_scan_job;

static gni_scan_acc gni_scan_none(gni_scan_op op) {
    gni_scan_acc acc = {0.0, 0.0, 0};
    if (op == GNI_SCAN_PROD) acc.a = 1.0, acc.i = 1;
    if (op == GNI_SCAN_MAX || op == GNI_SCAN_LOGSUMEXP) acc.a = -GNI_INF, acc.i = INT64_MIN;
    if (op == GNI_SCAN_MIN) acc.a = GNI_INF, acc.i = INT64_MAX;
    return acc;
}

// (a, b) joined by (x, s), exp(x) s times.
GNI_INLINE void gni_scan_logsumexp(double *a, double *b, double x, double s) {
    if (x == *a || s == 0.0) {
        *b += s;
    } else if (x < *a) {
        *b += s * exp(x - *a);
    } else if (x > *a) {
        *b = (*b == 0.0 ? 0.0 : *b * exp(*a - x)) + s;
        *a = x;
    } else { // NaN, which stays
        *a = x != x ? x : *a;
    }
}

GNI_INLINE double gni_scan_double(gni_scan_op op, double a, double x) {
    if (op == GNI_SCAN_SUM) return a + x;
    if (op == GNI_SCAN_PROD) return a * x;
    if (op == GNI_SCAN_MAX) return a > x || a != a ? a : x;
    return a < x || a != a ? a : x;
}

// The same of numbers: extremes are an instruction each.
GNI_INLINE double gni_scan_number(gni_scan_op op, double a, double x) {
    if (op == GNI_SCAN_MAX) return a > x ? a : x;
    return op == GNI_SCAN_MIN ? (a < x ? a : x) : gni_scan_double(op, a, x);
}

GNI_INLINE int64_t gni_scan_integer(gni_scan_op op, int64_t a, int64_t x) {
    if (op == GNI_SCAN_SUM) return (int64_t)((uint64_t)a + (uint64_t)x);
    if (op == GNI_SCAN_PROD) return (int64_t)((uint64_t)a * (uint64_t)x);
    if (op == GNI_SCAN_MAX) return a > x ? a : x;
    return a < x ? a : x;
}

// The highest bit is set of numbers below 2^-511, from 2^513 on and not finite: products of such in another order may
// overflow or vanish where those in order do not.
GNI_INLINE uint64_t gni_scan_far(double a) {
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return (bits << 1) - ((uint64_t)512 << 53);
}

// Four elements wait for one operation on what is in front of them.
// y may be x, where that was converted: products of four numbers of a narrower dtype are not far.
GNI_INLINE void gni_scan_doubles(gni_scan_op op, double *y, const double *x, int64_t n, gni_scan_acc *acc) {
    double a = acc->a;
    uint64_t beyond = 0, inner = 0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const double x0 = x[i], x01 = gni_scan_number(op, x0, x[i + 1]), x02 = gni_scan_number(op, x01, x[i + 2]);
        const double x23 = gni_scan_number(op, x[i + 2], x[i + 3]), x03 = gni_scan_number(op, x01, x23);
        y[i] = gni_scan_number(op, a, x0);
        y[i + 1] = gni_scan_number(op, a, x01);
        y[i + 2] = gni_scan_number(op, a, x02);
        a = y[i + 3] = gni_scan_number(op, a, x03);
        if (op != GNI_SCAN_PROD) continue;
        beyond |= gni_scan_far(a);
        if (y != x) inner |= gni_scan_far(x01) | gni_scan_far(x02) | gni_scan_far(x23) | gni_scan_far(x03);
    }
    if (inner >> 63 != 0) a = acc->a, i = 0;
    for (; i < n; i++) {
        a = y[i] = gni_scan_number(op, a, x[i]);
        if (op == GNI_SCAN_PROD) beyond |= gni_scan_far(a);
    }
    if (op == GNI_SCAN_PROD && beyond >> 63 != 0) acc->b = 1.0;
    acc->a = a;
}

// The running extreme; where there is NaN, it stays.
GNI_INLINE void gni_scan_extremes(gni_scan_op op, double *y, const double *x, int64_t n, gni_scan_acc *acc) {
    int odd = acc->a != acc->a;
    for (int64_t i = 0; i < n; i++) odd |= x[i] != x[i];
    if (odd == 0) gni_scan_doubles(op, y, x, n, acc);
    for (int64_t i = 0; i < n && odd != 0; i++) acc->a = y[i] = gni_scan_double(op, acc->a, x[i]);
}

GNI_INLINE void gni_scan_integers(gni_scan_op op, int64_t *y, const int64_t *x, int64_t n, gni_scan_acc *acc) {
    int64_t a = acc->i, i = 0;
    for (; i + 4 <= n; i += 4) {
        const int64_t x0 = x[i], x01 = gni_scan_integer(op, x0, x[i + 1]), x02 = gni_scan_integer(op, x01, x[i + 2]);
        const int64_t x03 = gni_scan_integer(op, x02, x[i + 3]);
        y[i] = gni_scan_integer(op, a, x0);
        y[i + 1] = gni_scan_integer(op, a, x01);
        y[i + 2] = gni_scan_integer(op, a, x02);
        y[i + 3] = a = gni_scan_integer(op, a, x03);
    }
    for (; i < n; i++) y[i] = a = gni_scan_integer(op, a, x[i]);
    acc->i = a;
}

static double gni_scan_log(double a, double b) { return a == -GNI_INF || a != a ? a : a + log(b); }

static void gni_scan_registers(gni_scan_op op, bool is_float, void *reg, const void *from, int64_t n, gni_scan_acc *acc) {
    double *y = (double *)reg;
    const double *x = (const double *)from;
    int64_t *whole = (int64_t *)reg;
    const int64_t *k = (const int64_t *)from;
    if (op == GNI_SCAN_LOGSUMEXP) {
        for (int64_t i = 0; i < n; i++) {
            gni_scan_logsumexp(&acc->a, &acc->b, x[i], 1.0);
            y[i] = gni_scan_log(acc->a, acc->b);
        }
        return;
    }
    switch ((int)op * 2 + is_float) {
    case GNI_SCAN_SUM * 2 + 1: gni_scan_doubles(GNI_SCAN_SUM, y, x, n, acc); break;
    case GNI_SCAN_PROD * 2 + 1: gni_scan_doubles(GNI_SCAN_PROD, y, x, n, acc); break;
    case GNI_SCAN_MAX * 2 + 1: gni_scan_extremes(GNI_SCAN_MAX, y, x, n, acc); break;
    case GNI_SCAN_MIN * 2 + 1: gni_scan_extremes(GNI_SCAN_MIN, y, x, n, acc); break;
    case GNI_SCAN_SUM * 2: gni_scan_integers(GNI_SCAN_SUM, whole, k, n, acc); break;
    default: gni_scan_integers(op, whole, k, n, acc); break;
    }
}

// a x of complex numbers, as gn_mul has it.
GNI_INLINE void gni_scan_factor(double *re, double *im, double xr, double xi) {
    const double part = *re * xr - *im * xi;
    *im = *re * xi + *im * xr;
    *re = part;
}

// Sums and products of n / 2 complex numbers, the former in the order of gni_scan_doubles. Products of two complex64 are not
// far.
static void gni_scan_pairs(gni_scan_op op, double *y, const double *x, int64_t n, gni_scan_acc *acc) {
    double re = acc->a, im = acc->b;
    int64_t i = 0;
    for (; op == GNI_SCAN_SUM && i + 8 <= n; i += 8)
        for (int k = 0; k < 2; k++) {
            const double *p = x + i + k, front = k == 0 ? re : im;
            const double x0 = p[0], x01 = x0 + p[2], x02 = x01 + p[4], x03 = x01 + (p[4] + p[6]);
            double *q = y + i + k;
            q[0] = front + x0, q[2] = front + x01, q[4] = front + x02;
            *(k == 0 ? &re : &im) = q[6] = front + x03;
        }
    for (; i < n; i += 2, acc->i = 0) {
        if (op == GNI_SCAN_SUM) re += x[i], im += x[i + 1];
        else if (acc->i != 0) re = x[i], im = x[i + 1];
        else if (y == x && i + 4 <= n) {
            double xr = x[i], xi = x[i + 1], r = re, m = im;
            gni_scan_factor(&r, &m, xr, xi);
            gni_scan_factor(&xr, &xi, x[i + 2], x[i + 3]);
            y[i] = r, y[i + 1] = m;
            gni_scan_factor(&re, &im, xr, xi);
            i += 2;
        } else gni_scan_factor(&re, &im, x[i], x[i + 1]);
        y[i] = re, y[i + 1] = im;
    }
    acc->a = re, acc->b = im;
}

static void gni_scan_join(gni_scan_op op, gni_scan_acc *acc, const gni_scan_acc *more) {
    if (op == GNI_SCAN_LOGSUMEXP)
        gni_scan_logsumexp(&acc->a, &acc->b, more->a, more->b);
    else
        acc->a = gni_scan_double(op, acc->a, more->a);
    if (op == GNI_SCAN_SUM) acc->b += more->b;
    acc->i = gni_scan_integer(op, acc->i, more->i);
}

// n elements of x as registers: where they are, or in reg.
static const void *gni_scan_load(const gni_scan_job *j, void *reg, const char *x, int64_t n) {
    if (j->load == NULL) return x;
    j->load(reg, x, n);
    return reg;
}

// Items are chunks of rows. Chunks are as long for any number of threads, so that results are the same bits.
static void gni_scan_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_scan_job *j = (const gni_scan_job *)arg;
    double block[GNI_SCAN_BLOCK];
    GNI_UNUSED(worker);
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item / j->chunks, from = item % j->chunks * j->chunk;
        const int64_t to = GNI_MIN(j->d->n, from + j->chunk);
        gni_scan_acc acc = j->totals || j->parts == NULL ? gni_scan_none(j->d->op) : j->parts[item];
        for (int64_t i = from; i < to; i += GNI_SCAN_BLOCK) {
            const int64_t n = GNI_MIN(to - i, (int64_t)GNI_SCAN_BLOCK), at = (row * j->d->n + i) * j->item;
            const bool here = j->store == NULL && !j->totals; // in the result itself
            void *reg = here ? (void *)(j->y + at) : (void *)block;
            const void *x = gni_scan_load(j, reg, j->x + at, n);
            if (j->pairs) gni_scan_pairs(j->d->op, (double *)reg, (const double *)x, n, &acc);
            else gni_scan_registers(j->d->op, j->is_float, reg, x, n, &acc);
            if (!here && !j->totals) j->store(j->y + at, reg, n);
        }
        if (j->totals) j->parts[item] = acc;
    }
}

// Items are blocks of columns.
static void gni_scan_columns_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_scan_job *j = (const gni_scan_job *)arg;
    const gni_scan *d = j->d;
    const int64_t blocks = (d->inner - 1) / GNI_SCAN_COLUMNS + 1;
    gni_scan_acc acc[GNI_SCAN_COLUMNS];
    double block[2][GNI_SCAN_COLUMNS];
    GNI_UNUSED(worker);
    for (int64_t item = begin; item < end; item++) {
        const int64_t column = item % blocks * GNI_SCAN_COLUMNS, n = GNI_MIN(d->inner - column, (int64_t)GNI_SCAN_COLUMNS);
        const double *last = NULL; // the row in front
        for (int64_t c = 0; c < n; c++) acc[c] = gni_scan_none(d->op);
        for (int64_t i = 0; i < d->n; i++) {
            const int64_t at = ((item / blocks * d->n + i) * d->inner + column) * j->item;
            double *y = j->store == NULL ? (double *)(void *)(j->y + at) : block[i & 1];
            const double *x = (const double *)gni_scan_load(j, y, j->x + at, n);
            int64_t *whole = (int64_t *)(void *)y;
            const int64_t *k = (const int64_t *)(const void *)x, *front = (const int64_t *)(const void *)last;
            if (d->op == GNI_SCAN_LOGSUMEXP) {
                for (int64_t c = 0; c < n; c++) {
                    gni_scan_logsumexp(&acc[c].a, &acc[c].b, x[c], 1.0);
                    y[c] = gni_scan_log(acc[c].a, acc[c].b);
                }
            } else if (i == 0) {
                if (x != y) memcpy(y, x, (size_t)n * 8);
            } else if (!j->is_float) {
                for (int64_t c = 0; c < n; c++) whole[c] = gni_scan_integer(d->op, front[c], k[c]);
            } else if (d->op == GNI_SCAN_SUM) {
                for (int64_t c = 0; c < n; c++) y[c] = x[c] + last[c];
            } else if (j->pairs) {
                for (int64_t c = 0; c < n; c += 2) {
                    double re = last[c], im = last[c + 1];
                    gni_scan_factor(&re, &im, x[c], x[c + 1]);
                    y[c] = re, y[c + 1] = im;
                }
            } else {
                for (int64_t c = 0; c < n; c++) y[c] = gni_scan_double(d->op, last[c], x[c]);
            }
            if (j->store != NULL) j->store(j->y + at, y, n);
            last = y;
        }
    }
}

static bool gni_cpu_scan(gn_context *g, const void *job) {
    gni_scan own = *(const gni_scan *)job;
    const gni_scan *d = &own;
    GNI_ZEROED(gni_scan_job, j);
    j.d = d;
    j.x = gni_operand_data(&d->in);
    j.y = gni_operand_data(&d->out);
    j.pairs = gni_is_complex(d->in.dtype);
    if (j.pairs) {
        *(d->inner > 1 ? &own.inner : &own.n) *= 2;
        own.in.dtype = gni_part_of(d->in.dtype);
    }
    j.item = gni_item_size(d->in.dtype);
    j.is_float = gni_is_float(d->in.dtype);
    j.load = gni_cpu_isa_of(g->isa)->wide->load[d->in.dtype];
    j.store = gni_cpu_isa_of(g->isa)->wide->store[d->in.dtype];
    if (d->inner > 1) {
        const int64_t work = d->n * GNI_MIN(d->inner, (int64_t)GNI_SCAN_COLUMNS);
        gni_parallel(g->pool, d->outer * ((d->inner - 1) / GNI_SCAN_COLUMNS + 1), GNI_MAX(GNI_GRAIN / work, 1),
                     gni_scan_columns_task, &j);
        return true;
    }
    // Where nothing is rounded, parts only serve threads.
    const bool exact = !j.is_float || d->op == GNI_SCAN_MAX || d->op == GNI_SCAN_MIN;
    const bool whole = (exact && gni_pool_threads(g->pool) == 1) || (j.pairs && d->op == GNI_SCAN_PROD); // those in order
    j.chunk = whole ? d->n : (int64_t)GNI_SCAN_CHUNK << j.pairs;
    j.chunks = (d->n - 1) / j.chunk + 1;
    const int64_t grain = GNI_MAX(GNI_GRAIN / d->n, 1);
    int64_t items = d->outer * j.chunks;
    if (j.chunks > 1) {
        const size_t bytes = (size_t)items * sizeof(gni_scan_acc);
        j.parts = (gni_scan_acc *)gni_alloc(g, bytes);
        if (j.parts == NULL) return gni_fail_memory(g, "scan", bytes);
        j.totals = true;
        gni_parallel(g->pool, items, grain, gni_scan_task, &j);
        j.totals = false;
        gni_scan_acc acc = gni_scan_none(d->op);
        bool beyond = false;
        for (int64_t i = 0; i < items; i++) {
            if (i % j.chunks == 0) acc = gni_scan_none(d->op);
            const gni_scan_acc total = j.parts[i];
            j.parts[i] = acc;
            gni_scan_join(d->op, &acc, &total);
            beyond = beyond || total.b != 0.0 || gni_scan_far(acc.a) >> 63 != 0;
        }
        // In order then: 0 of one part times infinity of the next is NaN.
        if (beyond && j.is_float && d->op == GNI_SCAN_PROD) {
            gni_free(g, j.parts);
            j.parts = NULL;
            j.chunk = d->n;
            j.chunks = 1;
            items = d->outer;
        }
    }
    gni_parallel(g->pool, items, grain, gni_scan_task, &j);
    gni_free(g, j.parts);
    return true;
}

// ---- keys

// How elements become keys and back.
typedef struct gni_key {
    int bytes;
    bool is_float, descending, zeros; // zeros: both have one key
    uint64_t sign, inf, all;          // bits of the sign (0: there is none), of infinity, all of them
} gni_key;

static gni_key gni_key_of_dtype(gn_dtype t, bool descending) {
    gni_key k;
    double low = 0.0, high = 0.0;
    memset(&k, 0, sizeof k);
    k.bytes = (int)gn_dtype_size(t);
    k.all = ~(uint64_t)0 >> (64 - 8 * k.bytes);
    k.is_float = gni_is_float(t);
    k.descending = descending;
    if (gni_is_integer(t)) gni_integer_range(t, &low, &high);
    if (k.is_float || low < 0.0) k.sign = (uint64_t)1 << (8 * k.bytes - 1);
    k.inf = t == GN_F64 ? (uint64_t)0x7ff << 52 : t == GN_F32 ? 0x7f800000u : t == GN_F16 ? 0x7c00u : 0x7f80u;
    return k;
}

// NaN has the largest key, in descending order too: it comes last. Signs are random: no branches.
GNI_INLINE uint64_t gni_key_of(const gni_key *k, bool is_float, uint64_t u) {
    const uint64_t turn = k->sign ^ (k->descending ? k->all : 0);
    if (!is_float) return u ^ turn;
    const uint64_t size = u & ~k->sign, number = 0 - (uint64_t)(size != 0 || !k->zeros);
    u &= number;
    return ((u ^ turn ^ ((0 - (u >> (8 * k->bytes - 1))) & ~k->sign)) | (0 - (uint64_t)(size > k->inf))) & k->all;
}

GNI_INLINE uint64_t gni_key_back(const gni_key *k, uint64_t u) {
    const uint64_t own = u ^ k->sign ^ (k->descending ? k->all : 0);
    if (!k->is_float) return own;
    // All: a NaN.
    return u == k->all ? k->inf | k->inf >> 1 : (own ^ ((0 - (own >> (8 * k->bytes - 1))) & ~k->sign)) & k->all;
}

GNI_INLINE uint64_t gni_get_bits(const void *p, int64_t i, int bytes) {
    if (bytes == 1) return ((const uint8_t *)p)[i];
    if (bytes == 2) return ((const uint16_t *)p)[i];
    if (bytes == 4) return ((const uint32_t *)p)[i];
    return ((const uint64_t *)p)[i];
}

GNI_INLINE void gni_put_bits(void *p, int64_t i, int bytes, uint64_t u) {
    if (bytes == 1) ((uint8_t *)p)[i] = (uint8_t)u;
    else if (bytes == 2) ((uint16_t *)p)[i] = (uint16_t)u;
    else if (bytes == 4) ((uint32_t *)p)[i] = (uint32_t)u;
    else ((uint64_t *)p)[i] = u;
}

// ---- records: what is sorted

// Keys of 4 or 8 bytes; a key and its place in one word, the key above; or each in a word of its own.
typedef enum gni_layout { GNI_LAYOUT_KEY4, GNI_LAYOUT_KEY8, GNI_LAYOUT_PACKED, GNI_LAYOUT_PAIR } gni_layout;

static int64_t gni_record_size(gni_layout r) { return r == GNI_LAYOUT_KEY4 ? 4 : r == GNI_LAYOUT_PAIR ? 16 : 8; }

typedef struct gni_keyed {
    uint64_t key, at;
} gni_keyed;

GNI_INLINE uint64_t gni_record_key(gni_layout r, const void *p, int64_t i) {
    if (r == GNI_LAYOUT_KEY4) return ((const uint32_t *)p)[i];
    if (r == GNI_LAYOUT_PAIR) return ((const gni_keyed *)p)[i].key;
    return ((const uint64_t *)p)[i] >> (r == GNI_LAYOUT_PACKED ? 32 : 0);
}

GNI_INLINE void gni_record_copy(gni_layout r, void *to, int64_t i, const void *from, int64_t k) {
    if (r == GNI_LAYOUT_KEY4) ((uint32_t *)to)[i] = ((const uint32_t *)from)[k];
    else if (r == GNI_LAYOUT_PAIR) ((gni_keyed *)to)[i] = ((const gni_keyed *)from)[k];
    else ((uint64_t *)to)[i] = ((const uint64_t *)from)[k];
}

// Whether record k comes in front of record i. Places make all of them differ, where there are places.
GNI_INLINE bool gni_record_less(gni_layout r, const void *p, int64_t k, const void *q, int64_t i) {
    if (r == GNI_LAYOUT_KEY4) return ((const uint32_t *)p)[k] < ((const uint32_t *)q)[i];
    if (r != GNI_LAYOUT_PAIR) return ((const uint64_t *)p)[k] < ((const uint64_t *)q)[i];
    const gni_keyed *a = (const gni_keyed *)p + k, *b = (const gni_keyed *)q + i;
    return a->key < b->key || (a->key == b->key && a->at < b->at);
}

GNI_INLINE void gni_records_loop(const gni_key *key, bool is_float, int bytes, gni_layout r, const char *x, int64_t n,
                                 int64_t at, void *to) {
    const gni_key k = *key;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t u = gni_key_of(&k, is_float, gni_get_bits(x, i, bytes));
        if (r == GNI_LAYOUT_KEY4) ((uint32_t *)to)[i] = (uint32_t)u;
        if (r == GNI_LAYOUT_KEY8) ((uint64_t *)to)[i] = u;
        if (r == GNI_LAYOUT_PACKED) ((uint64_t *)to)[i] = u << 32 | (uint64_t)(at + i);
        if (r == GNI_LAYOUT_PAIR) ((gni_keyed *)to)[i].key = u, ((gni_keyed *)to)[i].at = (uint64_t)(at + i);
    }
}

// Keys of float32 and of integers, and back: the same in blocks of words that vectors have.
#define GNI_WORDS_LOOP(name, E)                                                                    \
    static void name(const gni_key *k, const uint32_t *x, int64_t n, uint32_t *to) {               \
        const uint32_t turn = (uint32_t)k->sign ^ (k->descending ? ~0u : 0u);                      \
        for (; n >= 16; n -= 16, x += 16, to += 16) {                                              \
            uint32_t r[16];                                                                        \
            for (int i = 0; i < 16; i++) {                                                         \
                const uint32_t u = x[i], own = u ^ turn;                                           \
                r[i] = (E);                                                                        \
            }                                                                                      \
            memcpy(to, r, sizeof r);                                                               \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const uint32_t u = x[i], own = u ^ turn;                                               \
            to[i] = (E);                                                                           \
        }                                                                                          \
    }
GNI_WORDS_LOOP(gni_keys_f32, (own ^ ((0u - (u >> 31)) & 0x7fffffffu)) |
                                 (0u - (uint32_t)((int32_t)(u & 0x7fffffffu) > 0x7f800000)))
GNI_WORDS_LOOP(gni_values_f32, u == ~0u ? 0x7fc00000u : own ^ ((0u - (own >> 31)) & 0x7fffffffu))
GNI_WORDS_LOOP(gni_words_i32, own)
#undef GNI_WORDS_LOOP

// Records of n elements, the first of which is number `at` of its row.
static void gni_records_make(const gni_key *k, gni_layout r, const char *x, int64_t n, int64_t at, void *to) {
    const int bytes = k->bytes;
    if (bytes == 4 && r == GNI_LAYOUT_KEY4)
        (k->is_float ? gni_keys_f32 : gni_words_i32)(k, (const uint32_t *)(const void *)x, n, (uint32_t *)to);
    else if (bytes == 4 && k->is_float && r == GNI_LAYOUT_PACKED)
        gni_records_loop(k, true, 4, GNI_LAYOUT_PACKED, x, n, at, to);
    else if (bytes == 4 && r == GNI_LAYOUT_PACKED) gni_records_loop(k, false, 4, GNI_LAYOUT_PACKED, x, n, at, to);
    else if (bytes == 8 && k->is_float && r == GNI_LAYOUT_KEY8) gni_records_loop(k, true, 8, GNI_LAYOUT_KEY8, x, n, at, to);
    else if (bytes == 8 && r == GNI_LAYOUT_KEY8) gni_records_loop(k, false, 8, GNI_LAYOUT_KEY8, x, n, at, to);
    else gni_records_loop(k, k->is_float, bytes, r, x, n, at, to);
}

// ---- sorts of records

GNI_INLINE void gni_records_insert(gni_layout r, void *p, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        gni_keyed own[1];
        int64_t k = i;
        gni_record_copy(r, own, 0, p, i);
        for (; k > 0 && gni_record_less(r, own, 0, p, k - 1); k--) gni_record_copy(r, p, k, p, k - 1);
        gni_record_copy(r, p, k, own, 0);
    }
}

// By insertion in runs, then by merging; where the result is.
GNI_INLINE void *gni_records_merge(gni_layout r, void *a, void *b, int64_t n) {
    const int64_t size = gni_record_size(r), first = 12;
    for (int64_t i = 0; i < n; i += first) gni_records_insert(r, (char *)a + i * size, GNI_MIN(first, n - i));
    for (int64_t run = first; run < n; run *= 2) {
        for (int64_t at = 0; at < n; at += 2 * run) {
            const int64_t end = GNI_MIN(at + 2 * run, n), middle = GNI_MIN(at + run, end);
            int64_t i = at, k = middle, o = at;
            while (i < middle && k < end) {
                const bool second = gni_record_less(r, a, k, a, i);
                gni_record_copy(r, b, o++, a, second ? k : i);
                k += second;
                i += !second;
            }
            memcpy((char *)b + o * size, (char *)a + i * size, (size_t)((middle - i) * size));
            memcpy((char *)b + (o + middle - i) * size, (char *)a + k * size, (size_t)((end - k) * size));
        }
        void *t = a;
        a = b;
        b = t;
    }
    return a;
}

enum { GNI_DIGITS = 256, GNI_RADIX_LEAST = 600, GNI_RADIX_PARTS = 32 };

GNI_INLINE void gni_radix_count(gni_layout r, const void *p, int64_t n, int shift, uint64_t *count) {
    for (int64_t i = 0; i < n; i++) count[gni_record_key(r, p, i) >> shift & 255u]++;
}

GNI_INLINE void gni_radix_move(gni_layout r, const void *from, void *to, int64_t n, int shift, uint64_t *place) {
    for (int64_t i = 0; i < n; i++)
        gni_record_copy(r, to, (int64_t)place[gni_record_key(r, from, i) >> shift & 255u]++, from, i);
}

// By eight bits of the key at a time, from the lowest on, but for those that all keys share. One look counts all digits.
GNI_INLINE void *gni_records_radix(gni_layout r, void *a, void *b, int64_t n, int bits) {
    uint64_t count[8][GNI_DIGITS];
    memset(count, 0, (size_t)(bits / 8) * sizeof count[0]);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t u = gni_record_key(r, a, i);
        if (r == GNI_LAYOUT_KEY4 || r == GNI_LAYOUT_PACKED) {
            count[0][u & 255u]++;
            if (bits > 8) count[1][u >> 8 & 255u]++;
            if (bits > 16) count[2][u >> 16 & 255u]++, count[3][u >> 24 & 255u]++;
        } else {
            for (int d = 0; d < 8; d++) count[d][u >> (8 * d) & 255u]++;
        }
    }
    for (int shift = 0; shift < bits; shift += 8) {
        uint64_t *place = count[shift / 8], at = 0;
        if (place[gni_record_key(r, a, 0) >> shift & 255u] == (uint64_t)n) continue;
        for (int i = 0; i < GNI_DIGITS; i++) {
            const uint64_t own = place[i];
            place[i] = at;
            at += own;
        }
        gni_radix_move(r, a, b, n, shift, place);
        void *t = a;
        a = b;
        b = t;
    }
    return a;
}

GNI_INLINE void *gni_records_sort_as(gni_layout r, void *a, void *b, int64_t n, int bits) {
    return n < GNI_RADIX_LEAST ? gni_records_merge(r, a, b, n) : gni_records_radix(r, a, b, n, bits);
}

// Sorts n records in `a` with the help of b; says which of the two has the result.
static void *gni_records_sort(gni_layout r, void *a, void *b, int64_t n, int bits) {
    if (n < 2) return a;
    if (r == GNI_LAYOUT_KEY4) return gni_records_sort_as(GNI_LAYOUT_KEY4, a, b, n, bits);
    if (r == GNI_LAYOUT_KEY8) return gni_records_sort_as(GNI_LAYOUT_KEY8, a, b, n, 64);
    if (r == GNI_LAYOUT_PACKED) return gni_records_sort_as(GNI_LAYOUT_PACKED, a, b, n, bits);
    return gni_records_sort_as(GNI_LAYOUT_PAIR, a, b, n, 64);
}

typedef struct gni_sort_job {
    const gni_sort *d;
    const gni_cpu_isa *isa;
    gni_key key;
    gni_layout record;
    bool parted;  // see gni_sort
    int64_t size; // of a record
    const char *x;
    char *y, *index;
    char *work;         // two rows of records for each worker, or for each row if there are fewer
    const char *a;      // of one long row: where the records are, and where they go
    char *b;
    int shift, parts;
    int64_t n, first;   // records there, and the first one that is wanted
    uint64_t *count;    // by part and digit
} gni_sort_job;

GNI_INLINE void gni_values_loop(const gni_key *key, bool is_float, int bytes, gni_layout r, const char *sorted, int64_t n,
                                char *y) {
    const gni_key k = *key;
    for (int64_t i = 0; i < n; i++) {
        gni_key own = k;
        own.is_float = is_float;
        gni_put_bits(y, i, bytes, gni_key_back(&own, gni_record_key(r, sorted, i)));
    }
}

// Elements `from` to `to` of those that are asked for, out of sorted records, as values and places.
static void gni_records_write(const gni_sort_job *j, int64_t row, const char *sorted, int64_t first, int64_t from,
                              int64_t to) {
    const gni_sort *d = j->d;
    const gni_layout r = j->record;
    const int bytes = j->key.bytes;
    if (r < GNI_LAYOUT_PACKED) {
        const char *p = sorted + (first + from) * j->size;
        char *y = j->y + (row * d->count + from) * bytes;
        if (bytes == 4)
            (j->key.is_float ? gni_values_f32 : gni_words_i32)(&j->key, (const uint32_t *)(const void *)p, to - from,
                                                               (uint32_t *)(void *)y);
        else if (bytes == 8 && j->key.is_float) gni_values_loop(&j->key, true, 8, GNI_LAYOUT_KEY8, p, to - from, y);
        else if (bytes == 8) gni_values_loop(&j->key, false, 8, GNI_LAYOUT_KEY8, p, to - from, y);
        else gni_values_loop(&j->key, j->key.is_float, bytes, r, p, to - from, y);
        return;
    }
    for (int64_t i = from; i < to; i++) {
        const int64_t o = row * d->count + i;
        const int64_t at = r == GNI_LAYOUT_PAIR
                               ? (int64_t)((const gni_keyed *)(const void *)sorted)[first + i].at
                               : (int64_t)(((const uint64_t *)(const void *)sorted)[first + i] & UINT32_MAX);
        ((int64_t *)(void *)j->index)[o] = at;
        if (j->y != NULL) gni_put_bits(j->y, o, bytes, gni_get_bits(j->x, row * d->n + at, bytes));
    }
}

enum { GNI_PART_LEAST = 256 }; // fewer are sorted, as are those among which selection leaves the element that is asked for

// Keeps those of n records that may stand at places *first to *first + count of the sorted row: fewer of them, in
// their order, and *first among these. Digits of 11 bits, from the top.
static int64_t gni_records_select(gni_layout r, char *p, int64_t n, int64_t *first, int64_t count, int bits) {
    enum { WIDTH = 11 };
    uint64_t seen[1 << WIDTH];
    int shift = bits > WIDTH ? bits - WIDTH : 0;
    for (; n > GNI_PART_LEAST && n / 2 > count; shift = GNI_MAX(shift - WIDTH, 0)) {
        const uint64_t mask = (1u << WIDTH) - 1u;
        memset(seen, 0, sizeof seen);
        for (int64_t i = 0; i < n; i++) seen[gni_record_key(r, p, i) >> shift & mask]++;
        uint64_t low = 0, high, before = 0, at;
        while (before + seen[low] <= (uint64_t)*first) before += seen[low++];
        if (seen[low] == (uint64_t)n && shift > 0) { // on to the first digit that they do not share
            uint64_t differ = 0;
            for (int64_t i = 1; i < n; i++) differ |= gni_record_key(r, p, i) ^ gni_record_key(r, p, 0);
            while (shift > 0 && differ >> shift == 0) shift -= GNI_MIN(shift, WIDTH);
            shift += WIDTH;
            continue;
        }
        for (at = before, high = low; at + seen[high] < (uint64_t)(*first + count); high++) at += seen[high];
        int64_t kept = 0;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t digit = gni_record_key(r, p, i) >> shift & mask;
            if (digit < low || digit > high) continue;
            gni_record_copy(r, p, kept++, p, i);
        }
        n = kept;
        *first -= (int64_t)before;
        if (low != high || shift == 0) break;
    }
    return n;
}

// Of n records in p those with smaller keys than `key` to the front of `to`, larger ones to its end, and it itself between.
GNI_INLINE void gni_records_divide(gni_layout r, const void *p, int64_t n, uint64_t key, void *to) {
    int64_t low = 0, high = n;
    for (int64_t i = 0; i < n; i++) { // without branches: what is written to the wrong side is written over
        const uint64_t u = gni_record_key(r, p, i);
        gni_record_copy(r, to, low, p, i);
        gni_record_copy(r, to, high - 1, p, i);
        low += u < key;
        high -= u > key;
    }
    for (; low < high; low++) {
        if (r == GNI_LAYOUT_KEY4) ((uint32_t *)to)[low] = (uint32_t)key;
        else ((uint64_t *)to)[low] = key;
    }
}

// The places of smaller keys than `key` to the front, of larger ones to the end, its own between.
GNI_INLINE void gni_places_divide(gni_layout r, const void *p, int64_t n, uint64_t key, int64_t *to) {
    int64_t low = 0, high = n;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t u = gni_record_key(r, p, i);
        to[low] = to[high - 1] = i;
        low += u < key;
        high -= u > key;
    }
    for (int64_t i = 0; low < high; i++) {
        to[low] = i;
        low += gni_record_key(r, p, i) == key;
    }
}

// n keys in a are parted into b, or into `places`, about the one that has `at` of them in front of it.
static void gni_records_part(gni_layout r, const char *a, char *b, int64_t n, int64_t at, int bits, int64_t *places) {
    uint64_t some[GNI_PART_LEAST];
    memcpy(b, a, (size_t)(n * gni_record_size(r)));
    const int64_t left = gni_records_select(r, b, n, &at, 1, bits); // more than GNI_PART_LEAST are all the same
    const void *sorted = left > GNI_PART_LEAST ? b : gni_records_sort(r, b, some, left, bits);
    const uint64_t key = gni_record_key(r, sorted, left > GNI_PART_LEAST ? 0 : at);
    if (places != NULL && r == GNI_LAYOUT_KEY4) gni_places_divide(GNI_LAYOUT_KEY4, a, n, key, places);
    else if (places != NULL) gni_places_divide(GNI_LAYOUT_KEY8, a, n, key, places);
    else if (r == GNI_LAYOUT_KEY4) gni_records_divide(GNI_LAYOUT_KEY4, a, n, key, b);
    else gni_records_divide(GNI_LAYOUT_KEY8, a, n, key, b);
}

// ---- short rows: 16 of them side by side, so that each comparison is one of vectors

enum { GNI_NET_MOST = 256 }; // keys of 64 bits; twice as many of 32

// Batcher's odd-even merge sort of n keys, of 16 rows each; 32-bit keys are left to the SIMD passes.
static void gni_net_64(int64_t *x, int64_t n) {
    for (int64_t p = 1; p < n; p *= 2)
        for (int64_t k = p; k >= 1; k /= 2)
            for (int64_t j = k % p; j + k < n; j += 2 * k)
                for (int64_t i = j; i < GNI_MIN(j + k, n - k); i++) {
                    int64_t *GNI_RESTRICT a = x + GNI_NET_ROWS * i, *GNI_RESTRICT b = a + GNI_NET_ROWS * k;
                    if ((i ^ (i + k)) >= 2 * p) continue; // not of one block of 2 p
                    for (int l = 0; l < GNI_NET_ROWS; l++) {
                        const int64_t u = a[l], v = b[l];
                        a[l] = u < v ? u : v;
                        b[l] = u < v ? v : u;
                    }
                }
}

// Up to 16 rows from `row` on: their keys one after another, then transposed. Vectors compare signed numbers.
static void gni_sort_side_by_side(const gni_sort_job *j, int64_t row, int64_t count) {
    const gni_sort *d = j->d;
    const int64_t n = d->n, size = j->size, all = n * count;
    int64_t side[GNI_NET_ROWS * GNI_NET_MOST], own[GNI_NET_ROWS * GNI_NET_MOST];
    const bool four = j->record == GNI_LAYOUT_KEY4, together = j->record < GNI_LAYOUT_PACKED;
    const uint64_t turn = four ? 0x8000000080000000u : (uint64_t)1 << 63;
    const int64_t words = four ? (all + 1) / 2 : all;
    const char *x = j->x + row * n * j->key.bytes;
    own[words - 1] = 0;
    // Records of places count from the start of a row.
    for (int64_t l = 0; l < (together ? 1 : count); l++)
        gni_records_make(&j->key, j->record, x + l * n * j->key.bytes, together ? all : n, 0, (char *)own + l * n * size);
    for (int64_t i = 0; i < words; i++) own[i] = (int64_t)((uint64_t)own[i] ^ turn);
    if (count < GNI_NET_ROWS) memset(side, 0, (size_t)(GNI_NET_ROWS * n * size));
    gni_turn((char *)side, GNI_NET_ROWS * size, (const char *)own, n * size, n, count, size);
    if (four)
        j->isa->net((int32_t *)(void *)side, n);
    else
        gni_net_64(side, n);
    gni_turn((char *)own, n * size, (const char *)side, GNI_NET_ROWS * size, count, n, size);
    for (int64_t i = 0; i < words; i++) own[i] = (int64_t)((uint64_t)own[i] ^ turn);
    if (together && d->count == n) {
        gni_records_write(j, row, (const char *)own, 0, 0, all);
        return;
    }
    for (int64_t l = 0; l < count; l++)
        gni_records_write(j, row + l, (const char *)own + l * n * size, d->first, 0, d->count);
}

static bool gni_sorts_side_by_side(const gni_sort_job *j) {
    return j->d->n <= GNI_NET_MOST * 8 / j->size && j->d->rows >= GNI_NET_ROWS / 2 && j->record != GNI_LAYOUT_PAIR &&
           (!j->parted || j->y != NULL); // records to be parted have no places
}

GNI_INLINE int64_t gni_records_below(gni_layout r, uint64_t limit, char *p, int64_t kept, int64_t n) {
    for (int64_t i = kept; i < n; i++)
        if (gni_record_key(r, p, i) < limit) gni_record_copy(r, p, kept++, p, i);
    return kept;
}

// Records in `a` among which are the first d->count of a long row: what is not below the last of the first ones so far is
// left out, and when there are `most` the first ones are found.
static int64_t gni_records_first(const gni_sort_job *j, int64_t row, char *a, char *b, int64_t most) {
    const gni_layout r = j->record;
    const int64_t n = j->d->n, count = j->d->count;
    const char *x = j->x + row * n * j->key.bytes;
    uint64_t limit = 0;
    int64_t kept = 0, first = 0;
    for (int64_t i = 0, some = most; i < n; i += some, some = GNI_MIN(n - i, 1024)) {
        gni_records_make(&j->key, r, x + i * j->key.bytes, some, i, a + kept * j->size);
        if (i == 0) kept = some;
        else if (r == GNI_LAYOUT_KEY4) kept = gni_records_below(GNI_LAYOUT_KEY4, limit, a, kept, kept + some);
        else if (r == GNI_LAYOUT_PACKED) kept = gni_records_below(GNI_LAYOUT_PACKED, limit, a, kept, kept + some);
        else kept = gni_records_below(r, limit, a, kept, kept + some);
        if (kept < most) continue;
        kept = gni_records_select(r, a, kept, &first, count, 8 * j->key.bytes);
        memmove(a, gni_records_sort(r, a, b, kept, 8 * j->key.bytes), (size_t)(count * j->size));
        kept = count;
        most *= 2; // as where elements rise
        limit = gni_record_key(r, a, count - 1);
    }
    return kept;
}

// Items are rows.
static void gni_sort_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_sort_job *j = (const gni_sort_job *)arg;
    const gni_sort *d = j->d;
    if (gni_sorts_side_by_side(j)) {
        for (int64_t row = begin; row < end; row += GNI_NET_ROWS)
            gni_sort_side_by_side(j, row, GNI_MIN(end - row, (int64_t)GNI_NET_ROWS));
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        int64_t first = d->first;
        char *a = j->work + 2 * (d->rows < j->parts ? row : worker) * d->n * j->size, *b = a + d->n * j->size;
        const int64_t most = GNI_MAX(8 * d->count, 4096);
        int64_t n = d->n;
        if (!j->parted && first == 0 && n > 4 * most && d->count > 0) n = gni_records_first(j, row, a, b, most);
        else gni_records_make(&j->key, j->record, j->x + row * n * j->key.bytes, n, 0, a);
        if (j->parted) {
            int64_t *places = j->index != NULL ? (int64_t *)(void *)j->index + row * d->n : NULL;
            gni_records_part(j->record, a, b, d->n, d->parted, 8 * j->key.bytes, places);
            if (places == NULL) gni_records_write(j, row, b, 0, 0, d->n);
            continue;
        }
        n = gni_records_select(j->record, a, n, &first, d->count, 8 * j->key.bytes);
        const char *sorted = (const char *)gni_records_sort(j->record, a, b, n, 8 * j->key.bytes);
        gni_records_write(j, row, sorted, first, 0, d->count);
    }
}

// ---- one long row: its parts are dealt out, the same ones in every pass

static int64_t gni_part_begin(const gni_sort_job *j, int64_t n, int64_t part) {
    return n / j->parts * part + GNI_MIN(part, n % j->parts);
}

static void gni_part_make_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_sort_job *j = (const gni_sort_job *)arg;
    GNI_UNUSED(worker);
    for (int64_t p = begin; p < end; p++) {
        const int64_t from = gni_part_begin(j, j->n, p), to = gni_part_begin(j, j->n, p + 1);
        gni_records_make(&j->key, j->record, j->x + from * j->key.bytes, to - from, from, j->b + from * j->size);
    }
}

static void gni_part_count_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_sort_job *j = (const gni_sort_job *)arg;
    GNI_UNUSED(worker);
    for (int64_t p = begin; p < end; p++) {
        const int64_t from = gni_part_begin(j, j->n, p), n = gni_part_begin(j, j->n, p + 1) - from;
        const char *a = j->a + from * j->size;
        uint64_t *count = j->count + p * GNI_DIGITS;
        memset(count, 0, GNI_DIGITS * sizeof *count);
        if (j->record == GNI_LAYOUT_KEY4) gni_radix_count(GNI_LAYOUT_KEY4, a, n, j->shift, count);
        else if (j->record == GNI_LAYOUT_PACKED) gni_radix_count(GNI_LAYOUT_PACKED, a, n, j->shift, count);
        else gni_radix_count(j->record, a, n, j->shift, count);
    }
}

static void gni_part_move_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_sort_job *j = (const gni_sort_job *)arg;
    GNI_UNUSED(worker);
    for (int64_t p = begin; p < end; p++) {
        const int64_t from = gni_part_begin(j, j->n, p), n = gni_part_begin(j, j->n, p + 1) - from;
        const char *a = j->a + from * j->size;
        uint64_t *place = j->count + p * GNI_DIGITS;
        if (j->record == GNI_LAYOUT_KEY4) gni_radix_move(GNI_LAYOUT_KEY4, a, j->b, n, j->shift, place);
        else if (j->record == GNI_LAYOUT_PACKED) gni_radix_move(GNI_LAYOUT_PACKED, a, j->b, n, j->shift, place);
        else gni_radix_move(j->record, a, j->b, n, j->shift, place);
    }
}

static void gni_part_write_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_sort_job *j = (const gni_sort_job *)arg;
    GNI_UNUSED(worker);
    gni_records_write(j, 0, j->a, j->first, gni_part_begin(j, j->d->count, begin), gni_part_begin(j, j->d->count, end));
}

static void gni_sort_long(gn_context *g, gni_sort_job *j) {
    const int64_t parts = j->parts;
    char *a = j->work, *b = a + j->n * j->size;
    j->b = a;
    gni_parallel(g->pool, parts, 1, gni_part_make_task, j);
    for (j->shift = 0; j->shift < 8 * j->key.bytes; j->shift += 8) {
        uint64_t at = 0;
        bool same = false;
        j->a = a;
        j->b = b;
        gni_parallel(g->pool, parts, 1, gni_part_count_task, j);
        for (int i = 0; i < GNI_DIGITS; i++) {
            const uint64_t before = at;
            for (int64_t p = 0; p < parts; p++) {
                uint64_t *place = j->count + p * GNI_DIGITS + i, own = *place;
                *place = at;
                at += own;
            }
            same = same || at - before == (uint64_t)j->n;
        }
        if (same) continue;
        gni_parallel(g->pool, parts, 1, gni_part_move_task, j);
        a = j->b;
        b = j->work == a ? j->work + j->n * j->size : j->work;
    }
    j->a = a;
    gni_parallel(g->pool, parts, 1, gni_part_write_task, j);
}

static bool gni_cpu_sort(gn_context *g, const void *job) {
    const gni_sort *d = (const gni_sort *)job;
    GNI_ZEROED(gni_sort_job, j);
    j.d = d;
    j.isa = gni_cpu_isa_of(g->isa);
    j.key = gni_key_of_dtype(d->in.dtype, d->descending);
    const bool places = d->index.buf != NULL, wide = j.key.bytes == 8;
    j.key.zeros = places;
    j.parted = d->parted > 0 && d->n > GNI_PART_LEAST; // into values or places, not both
    j.record = !places || j.parted ? (wide ? GNI_LAYOUT_KEY8 : GNI_LAYOUT_KEY4)
                       : wide || d->n > UINT32_MAX ? GNI_LAYOUT_PAIR : GNI_LAYOUT_PACKED;
    j.size = gni_record_size(j.record);
    j.x = gni_operand_data(&d->in);
    j.y = d->out.buf != NULL ? gni_operand_data(&d->out) : NULL;
    j.index = places ? gni_operand_data(&d->index) : NULL;
    j.n = d->n;
    j.first = d->first;
    const int threads = gni_pool_threads(g->pool);
    const bool together = !j.parted && d->count > d->n / 4 && d->n >= GNI_GRAIN && d->rows < 2 * threads && threads > 1;
    const uint64_t rows = together ? 1 : (uint64_t)GNI_MIN(d->rows, (int64_t)threads);
    const uint64_t bytes = 2 * rows * (uint64_t)d->n * (uint64_t)j.size, counts = GNI_RADIX_PARTS * GNI_DIGITS * 8;
    j.work = (char *)gni_host_take(g, bytes + counts);
    if (j.work == NULL) return gni_fail_memory(g, "gn_sort", bytes);
    if (together) {
        j.parts = GNI_MIN(threads, GNI_RADIX_PARTS);
        j.count = (uint64_t *)(void *)(j.work + bytes);
        for (int64_t row = 0; row < d->rows; row++) {
            gni_sort_job own = j;
            gni_sort one = *d;
            own.d = &one;
            one.rows = 1;
            own.x += row * d->n * j.key.bytes;
            if (own.y != NULL) own.y += row * d->count * j.key.bytes;
            if (own.index != NULL) own.index += row * d->count * 8;
            gni_sort_long(g, &own);
        }
    } else {
        j.parts = threads; // a work space for each, or for each row
        const int64_t grain = GNI_MAX(GNI_GRAIN / 16 / d->n, 1);
        gni_parallel(g->pool, d->rows, gni_sorts_side_by_side(&j) ? (grain + 15) / 16 * 16 : grain, gni_sort_task, &j);
    }
    gni_host_give(g, j.work, bytes + counts);
    return true;
}

// ---- searches and counts

typedef struct gni_search_job {
    const gni_search *d;
    gni_key key;
    const uint64_t *keys;
    const int32_t *table; // places of keys[0] + i, or NULL
    uint64_t span;        // the last i
    const char *x, *sorted;
    int64_t *out;
} gni_search_job;

// The first of n keys that is not below u, with `right` the first above it.
GNI_INLINE int64_t gni_key_search(const uint64_t *keys, int64_t n, uint64_t u, bool right) {
    const uint64_t *at = keys;
    for (; n > 1; n -= n / 2) at += (int64_t)(right ? at[n / 2 - 1] <= u : at[n / 2 - 1] < u) * (n / 2); // without branches
    return at - keys + (n == 1 && (right ? *at <= u : *at < u));
}

enum { GNI_SEARCHES = 8 }; // under way at once

// The same of several keys, place by place: none waits for another.
GNI_INLINE void gni_keys_search(const uint64_t *keys, int64_t n, const uint64_t *u, bool right, int64_t *out) {
    const uint64_t *at[GNI_SEARCHES];
    for (int i = 0; i < GNI_SEARCHES; i++) at[i] = keys;
    for (; n > 1; n -= n / 2)
        for (int i = 0; i < GNI_SEARCHES; i++)
            at[i] += (int64_t)(right ? at[i][n / 2 - 1] <= u[i] : at[i][n / 2 - 1] < u[i]) * (n / 2);
    for (int i = 0; i < GNI_SEARCHES; i++) out[i] = at[i] - keys + (n == 1 && (right ? *at[i] <= u[i] : *at[i] < u[i]));
}

// Of edges that rise evenly: how many are not above x, from where a product says. NaN goes behind all.
#define GNI_SEARCH(name, T)                                                                                     \
    static void name(const gni_search *d, const T *edge, const T *x, int64_t begin, int64_t end, int64_t *out) { \
        const double start = d->start, scale = d->scale, n = (double)d->n;                                       \
        for (int64_t i = begin; i < end; i++) {                                                                  \
            const double about = ((double)x[i] - start) * scale;                                                 \
            int64_t at = about < 0.0 ? 0 : about < n ? (int64_t)about : d->n;                                     \
            while (at > 0 && edge[at - 1] > x[i]) at--;                                                          \
            while (at < d->n && edge[at] <= x[i]) at++;                                                          \
            out[i] = at;                                                                                         \
        }                                                                                                        \
    }
GNI_SEARCH(gni_search_f32, float)
GNI_SEARCH(gni_search_f64, double)
#undef GNI_SEARCH

static void gni_search_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_search_job *j = (const gni_search_job *)arg;
    GNI_UNUSED(worker);
    if (j->d->scale != 0.0 && j->key.bytes == 8) {
        gni_search_f64(j->d, (const double *)(const void *)j->sorted, (const double *)(const void *)j->x, begin, end,
                       j->out);
        return;
    }
    if (j->d->scale != 0.0) {
        gni_search_f32(j->d, (const float *)(const void *)j->sorted, (const float *)(const void *)j->x, begin, end, j->out);
        return;
    }
    const int64_t n = j->d->n;
    const uint64_t right = j->d->right ? 1 : 0;
    uint64_t u[GNI_SEARCHES], low = 0, span = 0; // keys from low to low + span have the place of the last one
    for (int64_t i = begin; i < end; i += GNI_SEARCHES) {
        const int64_t some = GNI_MIN(end - i, (int64_t)GNI_SEARCHES);
        bool same = i > begin;
        for (int64_t k = 0; k < some; k++)
            u[k] = gni_key_of(&j->key, j->key.is_float, gni_get_bits(j->x, i + k, j->key.bytes));
        if (j->table != NULL) {
            for (int64_t k = 0; k < some; k++) {
                const uint64_t above = u[k] - j->keys[0];
                j->out[i + k] = u[k] < j->keys[0] ? 0 : above > j->span ? n : j->table[above];
            }
            continue;
        }
        for (int64_t k = 0; k < some; k++) same = same && u[k] - low <= span;
        if (same) { // as where values rise
            for (int64_t k = 0; k < some; k++) j->out[i + k] = j->out[i - 1];
            continue;
        }
        if (some == GNI_SEARCHES && right) gni_keys_search(j->keys, n, u, true, j->out + i);
        else if (some == GNI_SEARCHES) gni_keys_search(j->keys, n, u, false, j->out + i);
        for (int64_t k = 0; k < some && some < GNI_SEARCHES; k++)
            j->out[i + k] = gni_key_search(j->keys, n, u[k], j->d->right);
        const int64_t at = j->out[i + some - 1];
        low = at > 0 ? j->keys[at - 1] + 1 - right : 0;
        span = (at < n ? j->keys[at] - right : UINT64_MAX) - low;
    }
}

// The keys of `n` elements, to be freed.
static uint64_t *gni_keys_of(gn_context *g, const gni_key *key, const char *x, int64_t n) {
    uint64_t *keys = (uint64_t *)gni_alloc(g, (size_t)n * 8);
    if (keys == NULL) gni_fail_memory(g, "gn_searchsorted", (uint64_t)n * 8);
    else gni_records_make(key, GNI_LAYOUT_KEY8, x, n, 0, keys);
    return keys;
}

// The places of all keys in the range of the sorted ones, to be freed; NULL where searching is no more work than making it.
static int32_t *gni_search_places(gn_context *g, const gni_search *d, const uint64_t *keys, uint64_t *span) {
    const int64_t n = d->n, most = GNI_MIN(GNI_MAX(8 * n, 1 << 16), d->count / 2);
    *span = keys != NULL && n > 0 ? keys[n - 1] - keys[0] : UINT64_MAX;
    int32_t *table =
        most > 0 && n < INT32_MAX && *span < (uint64_t)most ? (int32_t *)gni_alloc(g, (size_t)(*span + 1) * 4) : NULL;
    for (uint64_t k = 0, i = 0; table != NULL && k <= *span; k++) {
        while (i < (uint64_t)n && keys[i] - keys[0] < k + (d->right ? 1 : 0)) i++;
        table[k] = (int32_t)i;
    }
    return table;
}

static bool gni_cpu_search(gn_context *g, const void *job) {
    const gni_search *d = (const gni_search *)job;
    gni_search_job j;
    j.d = d;
    j.key = gni_key_of_dtype(d->sorted.dtype, false);
    j.key.zeros = true;
    j.sorted = gni_operand_data(&d->sorted);
    uint64_t *keys = d->scale != 0.0 ? NULL : gni_keys_of(g, &j.key, j.sorted, d->n);
    if (keys == NULL && d->scale == 0.0) return false;
    j.keys = keys;
    int32_t *table = gni_search_places(g, d, keys, &j.span);
    j.table = table;
    j.x = gni_operand_data(&d->in);
    j.out = (int64_t *)(void *)gni_operand_data(&d->out);
    gni_parallel(g->pool, d->count, GNI_GRAIN / 16, gni_search_task, &j);
    gni_free(g, table);
    gni_free(g, keys);
    return true;
}

enum { GNI_COUNT_PARTS = 16 };

typedef struct gni_count_job {
    const gni_count *d;
    const int64_t *x;
    const double *weight;
    const gni_search_job *search; // for numbers between edges
    int64_t *counts; // of each part; the first one's are the result's
    int parts;
} gni_count_job;

// Of elements `from` to `to` the places between edges.
static void gni_count_between(const gni_count_job *j, int64_t from, int64_t to, int64_t *counts) {
    int64_t place[1024];
    gni_search_job part = *j->search;
    part.out = place;
    for (int64_t i = from; i < to; i += 1024) {
        const int64_t n = GNI_MIN(to - i, 1024);
        part.x = j->search->x + i * j->search->key.bytes;
        gni_search_task(&part, 0, n, 0);
        for (int64_t k = 0; k < n; k++) {
            const uint64_t at = (uint64_t)place[k] - (uint64_t)j->d->least;
            if (at < (uint64_t)j->d->bins) counts[at]++;
        }
    }
}

static void gni_count_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_count_job *j = (const gni_count_job *)arg;
    const gni_count *d = j->d;
    GNI_UNUSED(worker);
    for (int64_t p = begin; p < end; p++) {
        const int64_t from = d->n / j->parts * p + GNI_MIN(p, d->n % j->parts);
        const int64_t to = d->n / j->parts * (p + 1) + GNI_MIN(p + 1, d->n % j->parts);
        int64_t *counts = j->counts + p * d->bins;
        double *sums = (double *)(void *)counts;
        memset(counts, 0, (size_t)d->bins * 8);
        if (j->search != NULL) {
            gni_count_between(j, from, to, counts);
            continue;
        }
        const uint64_t least = (uint64_t)d->least, bins = (uint64_t)d->bins;
        const int64_t *x = j->x; // what is counted might be what is read, for all that the compiler knows
        const double *weight = j->weight;
        for (int64_t i = from; i < to && weight != NULL; i++) {
            const uint64_t at = (uint64_t)x[i] - least;
            if (at < bins) sums[at] += weight[i];
        }
        for (int64_t i = from; i < to && weight == NULL; i++) {
            const uint64_t at = (uint64_t)x[i] - least;
            if (at < bins) counts[at]++;
        }
    }
}

// Parts are as many for any number of threads: sums of weights are the same bits.
static bool gni_cpu_counts(gn_context *g, const void *job) {
    const gni_count *d = (const gni_count *)job;
    gni_count_job j;
    gni_search between;
    gni_search_job search;
    uint64_t *keys = NULL;
    j.d = d;
    j.search = NULL;
    if (d->edges.buf != NULL) {
        memset(&between, 0, sizeof between);
        between.n = d->bins + 1;
        between.right = true;
        between.start = d->start;
        between.scale = d->scale;
        search.d = &between;
        search.key = gni_key_of_dtype(d->edges.dtype, false);
        search.key.zeros = true;
        search.sorted = gni_operand_data(&d->edges);
        search.x = gni_operand_data(&d->in);
        search.table = NULL;
        search.keys = keys = d->scale != 0.0 ? NULL : gni_keys_of(g, &search.key, search.sorted, between.n);
        if (d->scale == 0.0 && keys == NULL) return false;
        j.search = &search;
    }
    j.x = (const int64_t *)(const void *)gni_operand_data(&d->in);
    j.weight = d->weight.buf != NULL ? (const double *)(const void *)gni_operand_data(&d->weight) : NULL;
    j.parts = (int)GNI_MAX(1, GNI_MIN((int64_t)GNI_COUNT_PARTS, GNI_MIN(d->n / GNI_GRAIN, d->n / GNI_MAX(d->bins, 1))));
    const size_t bytes = (size_t)d->bins * (size_t)j.parts * 8;
    int64_t *out = (int64_t *)(void *)gni_operand_data(&d->out);
    j.counts = j.parts > 1 ? (int64_t *)gni_alloc(g, bytes) : out;
    if (j.counts == NULL) {
        gni_fail_memory(g, "gn_bincount", bytes);
        gni_free(g, keys);
        return false;
    }
    gni_parallel(g->pool, j.parts, 1, gni_count_task, &j);
    gni_free(g, keys);
    if (j.parts == 1) return true;
    memcpy(out, j.counts, (size_t)d->bins * 8);
    for (int p = 1; p < j.parts; p++)
        for (int64_t i = 0; i < d->bins; i++) {
            const int64_t at = p * d->bins + i;
            if (j.weight != NULL)
                ((double *)(void *)out)[i] += ((const double *)(const void *)j.counts)[at];
            else
                out[i] += j.counts[at];
        }
    gni_free(g, j.counts);
    return true;
}
