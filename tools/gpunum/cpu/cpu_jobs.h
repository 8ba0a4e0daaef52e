// >>cpu_jobs
// The other jobs on the CPU (softmax, take, random, matmul), and which of all jobs the CPU takes.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/gemm_cpu.h"
#include "../cpu/cpu_special.h"
#include "../cpu/cpu_reduce.h"
#endif

enum { GNI_SOFT_BLOCK = 2048, GNI_SOFT_PARTS = 64 };

typedef struct gni_softmax_job {
    const gni_softmax *d;
    const gni_softmax_fns *fns;
    int64_t item, out_item; // bytes of an element
    gni_convert_fn load, store;
    int64_t blocks;          // of a row
    gni_softmax_part *parts; // of the row at hand
    const char *x;
    char *y;
    double most, sum;
} gni_softmax_job;

// Block b's statistics; a softmax in float32 or float64 stores its terms on the way.
static gni_softmax_part gni_softmax_block(const gni_softmax_job *j, int64_t b) {
    int64_t at = b * GNI_SOFT_BLOCK, n = GNI_MIN(j->d->n - at, (int64_t)GNI_SOFT_BLOCK);
    const char *x = j->x + at * j->item;
    float f[GNI_SOFT_BLOCK];
    if (j->load != NULL) {
        j->load(f, x, n);
        return j->fns->stats(NULL, f, n);
    }
    return j->fns->stats(j->d->kind == GNI_SOFTMAX ? j->y + at * j->item : NULL, x, n);
}

static void gni_softmax_finish(const gni_softmax_job *j, int64_t b) {
    int64_t at = b * GNI_SOFT_BLOCK, n = GNI_MIN(j->d->n - at, (int64_t)GNI_SOFT_BLOCK);
    const char *x = j->x + at * j->item;
    char *y = j->y + at * j->item;
    float f[GNI_SOFT_BLOCK];
    bool finite = fabs(j->most) < GNI_INF;
    const void *from = x;
    void *to = y;
    if (j->load != NULL) {
        j->load(f, x, n);
        from = to = f;
    }
    if (j->d->kind == GNI_LOG_SOFTMAX)
        j->fns->emit_log(to, from, n, finite ? j->most : 0.0, finite ? log(j->sum) : j->most);
    else if (!finite)
        j->fns->scale(to, from, n, GNI_NAN);
    else if (j->load != NULL)
        j->fns->emit(to, from, n, j->most, 1.0 / j->sum);
    else
        j->fns->scale(to, to, n, exp(j->parts[b].most - j->most) / j->sum);
    if (j->store != NULL) j->store(y, f, n);
}

// The row's largest element and sum from those of its blocks, in order.
static void gni_softmax_join(gni_softmax_job *j) {
    j->most = -GNI_INF;
    j->sum = 0.0;
    for (int64_t b = 0; b < j->blocks && j->most == j->most; b++)
        if (!(j->parts[b].most <= j->most)) j->most = j->parts[b].most;
    if (!(fabs(j->most) < GNI_INF)) return;
    for (int64_t b = 0; b < j->blocks; b++)
        j->sum += j->parts[b].sum * exp(j->parts[b].most - j->most);
}

static void gni_softmax_row(gni_softmax_job *j, int64_t row) {
    j->x = gni_operand_data(&j->d->in) + row * j->d->row_stride * j->item;
    j->y = gni_operand_data(&j->d->out) + row * (j->d->kind == GNI_LOGSUMEXP ? 2 : j->d->n) * j->out_item;
}

static void gni_softmax_end(const gni_softmax_job *j) {
    if (j->d->kind != GNI_LOGSUMEXP) return;
    const bool finite = fabs(j->most) < GNI_INF;
    gni_put_float(j->d->out.dtype, j->y, finite ? j->most : 0.0);
    gni_put_float(j->d->out.dtype, j->y + j->out_item, finite ? log(j->sum) : j->most);
}

static void gni_softmax_rows_task(void *arg, int64_t begin, int64_t end, int worker) {
    gni_softmax_job j = *(const gni_softmax_job *)arg;
    gni_softmax_part parts[GNI_SOFT_PARTS];
    GNI_UNUSED(worker);
    j.parts = parts;
    for (int64_t row = begin; row < end; row++) {
        gni_softmax_row(&j, row);
        for (int64_t b = 0; b < j.blocks; b++) parts[b] = gni_softmax_block(&j, b);
        gni_softmax_join(&j);
        for (int64_t b = 0; b < j.blocks && j.d->kind != GNI_LOGSUMEXP; b++)
            gni_softmax_finish(&j, b);
        gni_softmax_end(&j);
    }
}

static void gni_softmax_blocks_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_softmax_job *j = (const gni_softmax_job *)arg;
    GNI_UNUSED(worker);
    for (int64_t b = begin; b < end; b++) j->parts[b] = gni_softmax_block(j, b);
}

static void gni_softmax_finish_task(void *arg, int64_t begin, int64_t end, int worker) {
    GNI_UNUSED(worker);
    for (int64_t b = begin; b < end; b++) gni_softmax_finish((const gni_softmax_job *)arg, b);
}

// Many short rows: several at a time, transposed into columns.
static void gni_softmax_short_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_softmax_job *j = (const gni_softmax_job *)arg;
    const gni_softmax *d = j->d;
    int64_t n = d->n, out = d->kind == GNI_LOGSUMEXP ? 2 : n,
            per = GNI_SOFT_BLOCK / n & ~(int64_t)15;
    float t[GNI_SOFT_BLOCK], raw[GNI_SOFT_BLOCK];
    GNI_UNUSED(worker);
    for (int64_t row = begin; row < end; row += per) {
        int64_t rows = GNI_MIN(per, end - row), wide = (rows + 15) & ~(int64_t)15,
                step = d->row_stride * j->item;
        const char *x = gni_operand_data(&d->in) + row * step;
        char *y = gni_operand_data(&d->out) + row * out * j->out_item;
        if (j->load != NULL) {
            for (int64_t i = 0; i < rows; i++) j->load(raw + i * n, x + i * step, n);
            x = (const char *)raw;
            step = n * 4;
        }
        if (wide != rows) memset(t, 0, sizeof(float) * (size_t)(wide * n));
        gni_turn((char *)t, wide * 4, x, step, n, rows, 4);
        j->fns->columns(t, n, wide, d->kind);
        gni_turn(j->store != NULL ? (char *)raw : y, out * 4, (const char *)t, wide * 4, rows, out,
                 4);
        if (j->store != NULL) j->store(y, raw, rows * out);
    }
}

static bool gni_cpu_softmax(gn_context *g, const void *job) {
    const gni_softmax *d = (const gni_softmax *)job;
    GNI_ZEROED(gni_softmax_job, j);
    j.d = d;
    j.item = gni_item_size(d->in.dtype);
    j.out_item = gni_item_size(d->out.dtype);
    j.fns = d->in.dtype == GN_F64 ? GNI_OF_ISA(g->isa, gni_wide_softmax_table) : GNI_OF_ISA(g->isa, gni_softmax_table);
    if (j.item == 2) {
        j.load = gni_cpu_isa_of(g->isa)->load[d->in.dtype];
        if (j.out_item == 2) j.store = gni_cpu_isa_of(g->isa)->store[d->in.dtype];
    }
    if (d->n > (d->kind == GNI_LOGSUMEXP) && d->n <= 64 && d->rows >= 8 && j.item <= 4) {
        gni_parallel(g->pool, d->rows, GNI_MAX(GNI_GRAIN / 4 / d->n & ~(int64_t)15, 16),
                     gni_softmax_short_task, &j);
        return true;
    }
    j.blocks = d->n == 0 ? 0 : (d->n - 1) / GNI_SOFT_BLOCK + 1;
    if (j.blocks <= GNI_SOFT_PARTS) {
        gni_parallel(g->pool, d->rows, GNI_MAX(GNI_GRAIN / 8 / GNI_MAX(d->n, 1), 1),
                     gni_softmax_rows_task, &j);
        return true;
    }
    size_t bytes = (size_t)j.blocks * sizeof(gni_softmax_part);
    j.parts = (gni_softmax_part *)gni_alloc(g, bytes);
    if (j.parts == NULL) return gni_fail_memory(g, "gn_softmax", bytes);
    for (int64_t row = 0; row < d->rows; row++) {
        gni_softmax_row(&j, row);
        gni_parallel(g->pool, j.blocks, 4, gni_softmax_blocks_task, &j);
        gni_softmax_join(&j);
        if (d->kind != GNI_LOGSUMEXP)
            gni_parallel(g->pool, j.blocks, 4, gni_softmax_finish_task, &j);
        gni_softmax_end(&j);
    }
    gni_free(g, j.parts);
    return true;
}

// ---- take

typedef struct gni_take_job {
    const gni_take *d;
    const char *in, *index;
    char *out;
    int64_t run;      // bytes of a row
    gni_atomic wrong; // one was none
} gni_take_job;

static int64_t gni_index_at(gn_dtype t, const char *p, int64_t i) {
    int64_t v;
    int32_t w;
    memcpy(&w, p + 4 * i, 4);
    if (t == GN_U32) return (int64_t)(uint32_t)w;
    if (t == GN_I32) return w;
    memcpy(&v, p + 8 * i, 8);
    return v;
}

// The first of n indices that is none, or -1.
static int64_t gni_wrong_index(const gni_cpu_isa *isa, const gni_places *at, gn_dtype t, const char *index, int64_t n) {
    const gni_fold_fn *fold = t == GN_I64 ? isa->wide->fold : isa->fold;
    const int domain = (int)(t == GN_U32 ? GNI_U : GNI_I);
    for (int64_t i = 0; i < n; i += GNI_SUM_BLOCK) {
        const int64_t some = GNI_MIN(n - i, GNI_SUM_BLOCK);
        gni_acc low = {0.0, 0.0, at->extent - 1, 0}, high = {0.0, 0.0, 0, 0};
        if (at->extent > INT32_MAX && t != GN_I64) {
            if (t == GN_U32) high.i = at->extent; // of int32 none is
        } else {
            fold[(int)GNI_RED_MIN * 3 + domain](&low, index + i * gni_item_size(t), some, 0);
            fold[(int)GNI_RED_MAX * 3 + domain](&high, index + i * gni_item_size(t), some, 0);
        }
        for (int64_t k = i; k < i + some && (low.i < -at->extent || high.i >= at->extent); k++) {
            const int64_t v = gni_index_at(t, index, k);
            if (v < -at->extent || v >= at->extent) return k;
        }
    }
    return -1;
}

static bool gni_indices_ok(gn_context *g, const gni_places *at, const gni_operand *index) {
    const char *p = gni_operand_data(index);
    const int64_t n = at->along ? at->outer * at->count * at->inner : at->count;
    const int64_t wrong = at->checked ? -1 : gni_wrong_index(gni_cpu_isa_of(g->isa), at, index->dtype, p, n);
    if (wrong < 0) return true;
    return gni_fail(g, GN_ERROR_ARGUMENT, "%s: index %lld is out of bounds for axis %d with size %lld", at->fn,
                    (long long)gni_index_at(index->dtype, p, wrong), at->axis, (long long)at->extent);
}

static void gni_move_item(char *to, const char *from, int64_t bytes) {
    switch (bytes) {
    case 1: *to = *from; break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, (size_t)bytes); break;
    }
}

// Rows at indices that count up, `from` being the start of their axis; false at one that is none.
#define GNI_TAKE(BYTES, I)                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                               \
        int64_t at = (int64_t)((const I *)(const void *)index)[i];                                  \
        if ((uint64_t)at >= (uint64_t)extent) {                                                     \
            at = (int64_t)((uint64_t)at + (uint64_t)extent);                                        \
            if ((uint64_t)at >= (uint64_t)extent) return false;                                     \
        }                                                                                           \
        memcpy(to + i * (BYTES), from + at * (BYTES), (size_t)(BYTES));                             \
    }                                                                                               \
    return true;
#define GNI_TAKE_ROWS(I)                                                                            \
    switch (item) {                                                                                 \
    case 1: GNI_TAKE(1, I)                                                                          \
    case 2: GNI_TAKE(2, I)                                                                          \
    case 4: GNI_TAKE(4, I)                                                                          \
    case 8: GNI_TAKE(8, I)                                                                          \
    case 16: GNI_TAKE(16, I)                                                                        \
    case 32: GNI_TAKE(32, I)                                                                        \
    case 64: GNI_TAKE(64, I)                                                                        \
    default: GNI_TAKE(item, I)                                                                      \
    }
static bool gni_take_rows_64(char *to, const char *from, const char *index, int64_t n, int64_t extent, int64_t item) {
    GNI_TAKE_ROWS(int64_t)
}
static bool gni_take_rows_32(char *to, const char *from, const char *index, int64_t n, int64_t extent, int64_t item) {
    GNI_TAKE_ROWS(int32_t)
}
#undef GNI_TAKE_ROWS
#undef GNI_TAKE

static void gni_take_task(void *arg, int64_t begin, int64_t end, int worker) {
    gni_take_job *j = (gni_take_job *)arg;
    const gni_places *d = &j->d->at;
    const gn_dtype t = j->d->index.dtype;
    const int64_t each = d->along ? d->inner : 1, item = j->run / each;
    GNI_UNUSED(worker);
    int64_t c = begin % d->count; // divisions take as long as all the rest
    const char *from = j->in + begin / d->count * d->extent * j->run;
    char *to = j->out + begin * j->run;
    while (begin < end && each == 1 && t != GN_U32) {
        const int64_t n = GNI_MIN(end - begin, d->count - c);
        const char *index = j->index + (d->along ? begin : c) * gni_item_size(t);
        if (!(t == GN_I64 ? gni_take_rows_64 : gni_take_rows_32)(to, from, index, n, d->extent, item)) {
            gni_atomic_store(&j->wrong, 1);
            return;
        }
        begin += n;
        to += n * item;
        if ((c += n) < d->count) continue;
        c = 0;
        from += d->extent * item;
    }
    for (int64_t i = begin; i < end; i++, to += j->run) {
        for (int64_t u = 0; u < each; u++) {
            int64_t at = gni_index_at(t, j->index, d->along ? i * each + u : c);
            if (at < 0) at += d->extent;
            gni_move_item(to + u * item, from + at * j->run + u * item, item);
        }
        if (++c < d->count) continue;
        c = 0;
        from += d->extent * j->run;
    }
}

static bool gni_cpu_take(gn_context *g, const void *job) {
    const gni_take *d = (const gni_take *)job;
    gni_take_job j;
    j.d = d;
    j.in = gni_operand_data(&d->in);
    j.index = gni_operand_data(&d->index);
    j.out = gni_operand_data(&d->out);
    j.run = d->at.inner * gni_item_size(d->in.dtype);
    // Where each index is used once, it is looked at then.
    const bool once = j.run > 0 && d->index.dtype != GN_U32 && (d->at.along ? d->at.inner == 1 : d->at.outer == 1);
    if (!once && !gni_indices_ok(g, &d->at, &d->index)) return false;
    if (j.run == 0) return true;
    gni_atomic_store(&j.wrong, 0);
    int64_t grain = GNI_MAX(GNI_GRAIN * 2 / (j.run + 8), 1);
    gni_parallel(g->pool, d->at.outer * d->at.count, grain, gni_take_task, &j);
    return gni_atomic_load(&j.wrong) == 0 || gni_indices_ok(g, &d->at, &d->index);
}

// ---- scatter

typedef struct gni_scatter_job {
    const gni_scatter *d;
    const char *in, *index, *base;
    char *out;
    int64_t parts; // of the inner dimension
    int pair;      // 1: of complex numbers, whose parts are added as neighbours
} gni_scatter_job;

#define GNI_SCATTER_TYPE(name, T, S)                                                                                  \
    GNI_INLINE void name##_one(T *to, T x, gni_scatter_op op) {                                                       \
        if (op == GNI_SCATTER_ADD)                                                                                    \
            *to = (T)((S)*to + (S)x);                                                                                 \
        else if (op == GNI_SCATTER_PUT || x != x || (op == GNI_SCATTER_MAX ? x > *to : x < *to))                      \
            *to = x;                                                                                                  \
    }                                                                                                                 \
    GNI_INLINE void name##_sixteen(T *GNI_RESTRICT to, const T *GNI_RESTRICT x) {                                     \
        for (int k = 0; k < 16; k++) to[k] = (T)((S)to[k] + (S)x[k]);                                                 \
    }                                                                                                                 \
    static void name(const gni_scatter_job *j, int64_t o, int64_t first, int64_t last) {                              \
        const gni_places *d = &j->d->at;                                                                              \
        const gni_scatter_op op = j->d->op;                                                                           \
        const gn_dtype t = j->d->index.dtype;                                                                         \
        const int64_t inner = d->inner << j->pair, *place = (const int64_t *)(const void *)j->index;                  \
        T *out = (T *)(void *)j->out + o * d->extent * inner;                                                         \
        const T *in = (const T *)(const void *)j->in + o * d->count * inner;                                          \
        int64_t c = 0;                                                                                                \
        if (d->inner == 1 && t == GN_I64) /* in one loop */                                                           \
            for (place += d->along ? o * d->count : 0; c < d->count; c++, in += inner) {                              \
                T *to = out + (place[c] < 0 ? place[c] + d->extent : place[c]) * inner;                               \
                name##_one(to, in[0], op);                                                                            \
                if (inner > 1) name##_one(to + 1, in[1], op);                                                         \
            }                                                                                                         \
        for (; c < d->count; c++, in += inner) {                                                                      \
            int64_t u = first, at = d->along ? 0 : gni_index_at(t, j->index, c);                                      \
            if (!d->along && op == GNI_SCATTER_ADD)                                                                   \
                for (T *to = out + (at < 0 ? at + d->extent : at) * inner; u + 16 <= last; u += 16)                   \
                    name##_sixteen(to + u, in + u);                                                                   \
            for (; u < last; u++) {                                                                                   \
                if (d->along) at = gni_index_at(t, j->index, (o * d->count + c) * d->inner + (u >> j->pair));         \
                name##_one(out + (at < 0 ? at + d->extent : at) * inner + u, in[u], op);                              \
            }                                                                                                         \
        }                                                                                                             \
    }
GNI_SCATTER_TYPE(gni_scatter_f32, float, float)
GNI_SCATTER_TYPE(gni_scatter_f64, double, double)
GNI_SCATTER_TYPE(gni_scatter_i32, int32_t, uint32_t)
GNI_SCATTER_TYPE(gni_scatter_u32, uint32_t, uint32_t)
GNI_SCATTER_TYPE(gni_scatter_i64, int64_t, uint64_t)
GNI_SCATTER_TYPE(gni_scatter_u64, uint64_t, uint64_t)
#undef GNI_SCATTER_TYPE

static void gni_scatter_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_scatter_job *j = (const gni_scatter_job *)arg;
    const int64_t inner = j->d->at.inner << j->pair;
    GNI_UNUSED(worker);
    for (int64_t i = begin; i < end; i++) {
        const int64_t part = i % j->parts, first = inner / j->parts * part,
                      last = part + 1 < j->parts ? inner / j->parts * (part + 1) : inner;
        switch (j->d->out.dtype) {
        case GN_C64:
        case GN_F32: gni_scatter_f32(j, i / j->parts, first, last); break;
        case GN_C128:
        case GN_F64: gni_scatter_f64(j, i / j->parts, first, last); break;
        case GN_I32: gni_scatter_i32(j, i / j->parts, first, last); break;
        case GN_U32: gni_scatter_u32(j, i / j->parts, first, last); break;
        case GN_U64: gni_scatter_u64(j, i / j->parts, first, last); break;
        default: gni_scatter_i64(j, i / j->parts, first, last); break;
        }
    }
}

static void gni_scatter_base_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_scatter_job *j = (const gni_scatter_job *)arg;
    const int64_t size = gni_item_size(j->d->out.dtype);
    GNI_UNUSED(worker);
    memcpy(j->out + begin * size, j->base + begin * size, (size_t)((end - begin) * size));
}

static bool gni_cpu_scatter(gn_context *g, const void *job) {
    const gni_scatter *d = (const gni_scatter *)job;
    gni_scatter_job j;
    const int threads = gni_pool_threads(g->pool);
    const int64_t work = d->at.outer * d->at.count * d->at.inner;
    j.d = d;
    j.in = gni_operand_data(&d->in);
    j.index = gni_operand_data(&d->index);
    j.out = gni_operand_data(&d->out);
    j.pair = gni_is_complex(d->out.dtype);
    j.parts = work > GNI_GRAIN && d->at.outer < threads ? GNI_MAX(GNI_MIN(threads, d->at.inner / 16), 1) : 1;
    if (!gni_indices_ok(g, &d->at, &d->index)) return false;
    if (d->base.buf != NULL) {
        j.base = gni_operand_data(&d->base);
        gni_parallel(g->pool, d->at.outer * d->at.extent * d->at.inner, GNI_GRAIN, gni_scatter_base_task, &j);
    }
    if (work == 0) return true;
    gni_parallel(g->pool, d->at.outer * j.parts, GNI_MAX(GNI_GRAIN * j.parts / (work / d->at.outer + 1), 1),
                 gni_scatter_task, &j);
    return true;
}

// ---- matmul

// What a product's store needs of a program.
typedef struct gni_product_store {
    const gni_matmul *d;
    gni_plan plan;
} gni_product_store;

// The map over one block of the product, (1, rows, cols). gni_map_tile's space: input 0 is the sums.
static void gni_product_space(const gni_product_store *j, const gni_gemm_part *t, gni_space *s) {
    const gni_matmul *d = j->d;
    gni_space_begin(s);
    s->rank = 3;
    for (int k = 0; k <= d->program.n_in; k++) {
        const gni_operand *o = k < d->program.n_in ? &d->in[k] : &d->c;
        int64_t item = k == 0 ? 4 : gni_item_size(o->dtype), row = 0, col = 0, at = 0;
        s->ops++;
        s->item[k] = item;
        if (k == 0) {
            row = t->sum_rs;
            col = t->sum_cs;
        } else if (o == &d->c) {
            row = d->n;
            col = 1;
            at = (t->batch * d->m + t->row) * d->n + t->col;
        } else {
            row = o->stride[GNI_ALONG_M];
            col = o->stride[GNI_ALONG_N];
            at = t->row * row + t->col * col;
            for (int64_t i = d->batch_rank - 1, rest = t->batch; i >= 0; i--) {
                at += rest % d->batch_dim[i] * o->stride[i];
                rest /= d->batch_dim[i];
            }
        }
        s->base[k] = k == 0 ? (char *)(uintptr_t)t->sum : gni_operand_data(o) + at * item;
        s->stride[k][1] = row * item;
        s->stride[k][2] = col * item;
    }
}

// The map over (rows, cols) of its space's last two dimensions, in tiles.
static void gni_map_block(const gni_map_job *j, gni_eval *e, int64_t row_count, int64_t col_count) {
    const int64_t block = j->plan.block;
    char *p[GNI_SPACE_OPS];
    bool joined = true; // rows follow each other in memory
    for (int k = 0; k < j->space.ops; k++)
        joined = joined && j->space.stride[k][1] == col_count * j->space.stride[k][2];
    if (joined) {
        col_count *= row_count;
        row_count = 1;
    }
    // Long rows, and rows whose vectors come out even, are used where they are.
    bool several = col_count < block && (col_count < 256 || col_count % 16 != 0);
    int64_t rows = several ? GNI_MIN(row_count, block / col_count) : 1;
    if (rows > 16 && rows < row_count) rows &= ~(int64_t)15;
    for (int64_t i = 0; i < row_count; i += rows)
        for (int64_t q = 0, cols; q < col_count; q += cols) {
            int64_t ext[3], left = col_count - q;
            cols = GNI_MIN(left, block & ~(int64_t)15);
            if (!several && left < block && left > 15) cols = left & ~(int64_t)15;
            ext[0] = 1;
            ext[1] = GNI_MIN(rows, row_count - i);
            ext[2] = cols;
            for (int k = 0; k < j->space.ops; k++)
                p[k] = j->space.base[k] + i * j->space.stride[k][1] + q * j->space.stride[k][2];
            gni_map_tile(j, e, p, ext);
        }
}

static void gni_product_store_part(const void *arg, const gni_gemm_part *t) {
    const gni_product_store *store = (const gni_product_store *)arg;
    char memory[GNI_SCRATCH + 64];
    gni_map_job j;
    gni_eval e;
    j.plan = store->plan;
    j.isa = NULL;
    j.stream = false;
    gni_product_space(store, t, &j.space);
    gni_eval_begin(&e, &j.plan, memory);
    gni_map_block(&j, &e, t->rows, t->cols);
}

static void gni_product_plan(gn_context *g, const gni_matmul *d, gni_product_store *store) {
    gni_operand in[GNI_MAX_INPUTS];
    memcpy(in, d->in, sizeof in);
    in[0].buf = d->c.buf; // sums may be there
    store->d = d;
    gni_plan_make(&store->plan, &d->program, g, in, &d->c, GN_DTYPE_COUNT);
}

// ---- an operand that is made while it is read, by a vector

enum { GNI_PROLOGUE_ROWS = 8, GNI_PROLOGUE_COLS = 2048 }; // made at once: they stay in the second cache

typedef struct gni_prologue_job {
    const gni_matmul *d;
    gni_plan plan;
    const gni_gemm_isa *isa;
    bool down;          // sums go down the operand's columns
    int64_t rows, cols; // of the operand
    int64_t each;       // rows or columns of a task
    int64_t tasks;      // for each batch
    const float *vector;
    int64_t step; // of the vector
    float *work;  // of all workers
} gni_prologue_job;

// Bases and strides for one batch, from row and column on. The last operand is the worker's memory, rows of
// `cols`.
static void gni_prologue_space(const gni_prologue_job *j, gni_space *s, int64_t batch, int64_t row,
                            int64_t col, int64_t cols, float *to) {
    const gni_matmul *d = j->d;
    gni_space_begin(s);
    s->rank = 3;
    s->ops = d->load.n_in + 1;
    for (int k = 0; k < d->load.n_in; k++) {
        const gni_operand *o = &d->load_in[k];
        int64_t item = gni_item_size(o->dtype);
        int64_t at = row * o->stride[GNI_ALONG_M] + col * o->stride[GNI_ALONG_N];
        for (int64_t i = d->batch_rank - 1, rest = batch; i >= 0; i--) {
            at += rest % d->batch_dim[i] * o->stride[i];
            rest /= d->batch_dim[i];
        }
        s->item[k] = item;
        s->base[k] = gni_operand_data(o) + at * item;
        s->stride[k][1] = o->stride[GNI_ALONG_M] * item;
        s->stride[k][2] = o->stride[GNI_ALONG_N] * item;
    }
    s->item[d->load.n_in] = 4;
    s->base[d->load.n_in] = (char *)to;
    s->stride[d->load.n_in][1] = cols * 4;
    s->stride[d->load.n_in][2] = 4;
}

// y[0..count) of so many rows times the vector, or of the vector times so many columns, from `first` on. `made` has
// room for the block, and after it for GNI_PROLOGUE_COLS elements of the vector.
static void gni_prologue_block(const gni_prologue_job *j, gni_eval *e, int64_t batch, int64_t first,
                            int64_t count, const float *vector, float *y, float *made) {
    float *aside = made + GNI_PROLOGUE_ROWS * GNI_PROLOGUE_COLS;
    const int64_t deep = j->down ? GNI_PROLOGUE_ROWS : GNI_PROLOGUE_COLS,
                  end = j->down ? j->rows : j->cols;
    gni_map_job map;
    map.plan = j->plan;
    map.isa = NULL;
    map.stream = false;
    if (j->down) memset(y, 0, (size_t)count * sizeof *y);
    for (int64_t k = 0; k < end; k += deep) {
        const int64_t n = GNI_MIN(deep, end - k);
        const int64_t rows = j->down ? n : count, cols = j->down ? count : n;
        gni_prologue_space(j, &map.space, batch, j->down ? k : first, j->down ? first : k, cols, made);
        gni_map_block(&map, e, rows, cols);
        if (j->down) {
            gni_gemm_rows t;
            t.n = count;
            t.k = n;
            t.s = vector + k * j->step;
            t.s_stride = j->step;
            t.b = made;
            t.b_rs = cols;
            t.y = y;
            j->isa->add_rows(&t);
        } else {
            GNI_ZEROED(gni_gemm_dots, t);
            if (j->step != 1)
                for (int64_t i = 0; i < n; i++) aside[i] = vector[(k + i) * j->step];
            t.m = 1;
            t.n = count;
            t.k = n;
            t.a = j->step != 1 ? aside : vector + k;
            t.a_rs = n;
            t.b = made;
            t.b_cs = cols;
            t.c = y;
            t.c_rs = count;
            t.c_cs = 1;
            t.add = k > 0;
            j->isa->dots(&t);
        }
    }
}

static void gni_prologue_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_prologue_job *j = (const gni_prologue_job *)arg;
    const gni_matmul *d = j->d;
    const int64_t wide = j->down ? j->cols : j->rows;
    char memory[GNI_SCRATCH + 64];
    gni_eval e;
    gni_eval_begin(&e, &j->plan, memory);
    for (int64_t t = begin; t < end; t++) {
        int64_t batch = t / j->tasks, first = t % j->tasks * j->each, at = 0;
        for (int64_t i = d->batch_rank - 1, rest = batch; i >= 0; i--) {
            at += rest % d->batch_dim[i] * (d->prologue == 1 ? d->b_batch[i] : d->a_batch[i]);
            rest /= d->batch_dim[i];
        }
        float *y = (float *)(void *)gni_operand_data(&d->c) + batch * wide + first;
        float *made = j->work + worker * (GNI_PROLOGUE_ROWS + 1) * GNI_PROLOGUE_COLS;
        gni_prologue_block(j, &e, batch, first, GNI_MIN(j->each, wide - first), j->vector + at, y,
                        made);
    }
}

// A product with a prologue as two steps: the map that makes the operand in `memory`, whose elements are counted, and the
// plain product of it.
static int64_t gni_prologue_apart(const gni_matmul *m, gni_matmul *plain, gni_map *job,
                               gni_buffer *memory) {
    const bool first = m->prologue == 1;
    const int n = m->batch_rank;
    gni_operand *to = first ? &plain->a : &plain->b;
    *plain = *m;
    plain->prologue = 0;
    memset(job, 0, sizeof *job);
    job->program = m->load;
    job->rank = n + 2;
    memcpy(job->in, m->load_in, sizeof job->in);
    job->dim[n] = first ? m->m : m->k;
    job->dim[n + 1] = first ? m->k : m->n;
    for (int k = 0; k < m->load.n_in; k++) {
        job->in[k].stride[n] = m->load_in[k].stride[GNI_ALONG_M];
        job->in[k].stride[n + 1] = m->load_in[k].stride[GNI_ALONG_N];
    }
    memset(to, 0, sizeof *to); // dtype 0 is float32
    to->buf = memory;
    job->out[0] = *to;
    int64_t step = 1;
    for (int i = n + 1; i >= 0; step *= job->dim[i--]) {
        if (i < n) job->dim[i] = m->batch_dim[i];
        job->out[0].stride[i] = step;
        if (i < n) (first ? plain->a_batch : plain->b_batch)[i] = step;
    }
    *(first ? &plain->a_rs : &plain->b_rs) = job->dim[n + 1];
    *(first ? &plain->a_cs : &plain->b_cs) = 1;
    gni_map_merge(job);
    return step;
}

// Reading less than float32 would be, from memory, by a vector, is what it is for: in the caches two passes are as
// fast.
static bool gni_cpu_prologue_pays(const gni_matmul *d, int64_t elements) {
    int64_t bytes = 0;
    if ((d->prologue == 1 ? d->n : d->m) != 1) return false;
    for (int k = 0; k < d->load.n_in; k++)
        if (d->load_in[k].stride[GNI_ALONG_M] != 0 && d->load_in[k].stride[GNI_ALONG_N] != 0)
            bytes += gni_item_size(d->load_in[k].dtype);
    return elements >= (int64_t)1 << 21 && bytes < 4;
}

static bool gni_cpu_prologue_apart(gn_context *g, const gni_matmul *plain, const gni_map *job,
                                gni_buffer *memory, int64_t elements) {
    memory->host = gni_alloc(g, (size_t)elements * sizeof(float));
    if (memory->host == NULL) return gni_fail_memory(g, "gn_matmul", (uint64_t)elements * sizeof(float));
    bool ok = gni_cpu_map(g, job) && gni_cpu_matmul(g, plain);
    gni_free(g, memory->host);
    return ok;
}

static bool gni_cpu_matmul_prologue(gn_context *g, const gni_matmul *d) {
    gni_prologue_job j;
    gni_matmul plain;
    gni_map job;
    GNI_ZEROED(gni_buffer, memory);
    const int64_t elements = gni_prologue_apart(d, &plain, &job, &memory);
    if (!gni_cpu_prologue_pays(d, elements))
        return gni_cpu_prologue_apart(g, &plain, &job, &memory, elements);
    const gni_operand *v = d->prologue == 1 ? &d->b : &d->a;
    j.d = d;
    j.isa = gni_gemm_isa_of((int)g->isa);
    j.down = d->prologue == 2;
    j.rows = j.down ? d->k : d->m;
    j.cols = j.down ? d->n : d->k;
    j.each = j.down ? GNI_PROLOGUE_COLS : GNI_PROLOGUE_ROWS;
    j.tasks = ((j.down ? j.cols : j.rows) + j.each - 1) / j.each;
    j.vector = (const float *)(const void *)gni_operand_data(v);
    j.step = j.down ? d->a_cs : d->b_rs;
    gni_plan_make(&j.plan, &d->load, g, d->load_in, NULL, GN_DTYPE_COUNT);
    int64_t batches = 1;
    for (int i = 0; i < d->batch_rank; i++) batches *= d->batch_dim[i];
    if (g->gemm_work == NULL) g->gemm_work = (gni_gemm_work *)gni_calloc(g, sizeof(gni_gemm_work));
    size_t bytes = (size_t)gni_pool_threads(g->pool) * (GNI_PROLOGUE_ROWS + 1) * GNI_PROLOGUE_COLS * 4;
    if (g->gemm_work == NULL || !gni_gemm_reserve(g, g->gemm_work, bytes)) return gni_fail_memory(g, "gn_matmul", bytes);
    j.work = (float *)g->gemm_work->data;
    int64_t work = j.each * (j.down ? j.rows : j.cols); // elements of a task
    gni_parallel(g->pool, batches * j.tasks, 1 + GNI_GRAIN / GNI_MAX(work, 1), gni_prologue_task, &j);
    return true;
}

static bool gni_cpu_matmul(gn_context *g, const void *job) {
    const gni_matmul *d = (const gni_matmul *)job;
    gni_gemm m;
    if (d->prologue != 0) return gni_cpu_matmul_prologue(g, d);
    memset(&m, 0, sizeof m);
    m.in = d->a.dtype;
    m.out = d->c.dtype;
    m.m = d->m;
    m.n = d->n;
    m.k = d->k;
    m.a = gni_operand_data(&d->a);
    m.a_rs = d->a_rs;
    m.a_cs = d->a_cs;
    m.b = gni_operand_data(&d->b);
    m.b_rs = d->b_rs;
    m.b_cs = d->b_cs;
    m.c = gni_operand_data(&d->c);
    m.c_rs = d->n;
    m.act = d->act;
    if (d->bias.buf != NULL) m.bias = (const float *)(const void *)gni_operand_data(&d->bias);
    gni_product_store store;
    // Float16's and bfloat16's are rounded at the end.
    const bool narrow = d->sums.buf != NULL && d->sums.dtype != GN_F32;
    if (d->sums.buf != NULL) m.column_sums = (float *)(void *)gni_operand_data(&d->sums);
    if (narrow) m.column_sums = (float *)gni_alloc(g, (size_t)d->n * sizeof(float));
    if (narrow && m.column_sums == NULL) return gni_fail_memory(g, "gn_matmul", (size_t)d->n * sizeof(float));
    if (d->fused) {
        gni_product_plan(g, d, &store);
        m.store = gni_product_store_part;
        m.store_arg = &store;
    }
    m.batch = 1;
    for (int i = 0; i < d->batch_rank; i++) m.batch *= d->batch_dim[i];
    int64_t *off = NULL;
    if (m.batch > 1) {
        size_t bytes = (size_t)m.batch * 3 * sizeof(int64_t);
        off = (int64_t *)gni_alloc(g, bytes);
        if (off == NULL) return gni_fail_memory(g, "gn_matmul", bytes);
        for (int64_t q = 0; q < m.batch; q++) {
            int64_t rest = q, a = 0, b = 0;
            for (int i = d->batch_rank - 1; i >= 0; i--) {
                a += rest % d->batch_dim[i] * d->a_batch[i];
                b += rest % d->batch_dim[i] * d->b_batch[i];
                rest /= d->batch_dim[i];
            }
            off[q] = a;
            off[m.batch + q] = b;
            off[2 * m.batch + q] = q * d->m * d->n;
        }
        m.a_off = off;
        m.b_off = off + m.batch;
        m.c_off = off + 2 * m.batch;
    }
    if (g->gemm_work == NULL) g->gemm_work = (gni_gemm_work *)gni_calloc(g, sizeof(gni_gemm_work));
    bool ok = g->gemm_work != NULL && gni_gemm_cpu(g, g->pool, g->gemm_work, (int)g->isa, &m);
    if (!ok && !g->call_failed) gni_fail_memory(g, "gn_matmul", sizeof(gni_gemm_work));
    gni_free(g, off);
    if (narrow) {
        const gni_gemm_isa *isa = gni_gemm_isa_of((int)g->isa);
        uint16_t *to = (uint16_t *)(void *)gni_operand_data(&d->sums);
        if (ok && d->sums.dtype == GN_F16) isa->narrow_f16(to, m.column_sums, d->n);
        if (ok && d->sums.dtype == GN_BF16) isa->narrow_bf16(to, m.column_sums, d->n);
        gni_free(g, m.column_sums);
    }
    return ok;
}

// ---- which jobs

// Registers take every dtype but the complex ones, which can only be copied; 64-bit dtypes take wide ones.
static bool gni_cpu_runs(const gn_context *g, const gni_program *p) {
    bool odd = false, wide = false;
    for (int i = 0; i < p->n_in; i++) {
        odd = odd || p->in_dtype[i] == GN_C64 || p->in_dtype[i] == GN_C128;
        wide = wide || gni_is_wide(p->in_dtype[i]);
    }
    for (int o = 0; o < p->n_out; o++) {
        odd = odd || p->out_dtype[o] == GN_C64 || p->out_dtype[o] == GN_C128;
        wide = wide || gni_is_wide(p->out_dtype[o]);
    }
    if (gni_is_copy(p)) return true;
    for (int i = 0; i < p->n_insn; i++)
        if (GNI_INSN_CODE(p->insn[i]) >= GNI_OP_COUNT * 3u ||
            (gni_kernel_of(g, GNI_ISA_PLAIN, p->wide, GNI_INSN_CODE(p->insn[i])) == NULL &&
             !gni_is_rare(GNI_INSN_CODE(p->insn[i]))))
            return false;
    return !odd && (!wide || p->wide);
}

static bool gni_cpu_takes_any(const gn_context *g, const void *job) { return g != NULL && job != NULL; }
static bool gni_cpu_takes_none(const gn_context *g, const void *job) { return g == NULL || job == NULL; }

static bool gni_cpu_takes_map(const gn_context *g, const void *job) {
    return gni_cpu_runs(g, &((const gni_map *)job)->program);
}

static bool gni_cpu_takes_reduce(const gn_context *g, const void *job) {
    const gni_reduce *r = (const gni_reduce *)job;
    return gni_cpu_runs(g, &r->program) && r->out.dtype != GN_C64 && r->out.dtype != GN_C128 && r->in[0].dtype != GN_C64;
}

static bool gni_cpu_takes_softmax(const gn_context *g, const void *job) {
    GNI_UNUSED(g);
    return gni_is_float(((const gni_softmax *)job)->in.dtype);
}

static bool gni_cpu_takes_matmul(const gn_context *g, const void *job) {
    const gni_matmul *m = (const gni_matmul *)job;
    const gn_dtype t = m->a.dtype;
    if ((m->fused && !gni_cpu_runs(g, &m->program)) || (m->prologue != 0 && !gni_cpu_runs(g, &m->load))) return false;
    return gni_is_float(t) || t == GN_I32 || t == GN_I64;
}

static bool gni_cpu_takes_conv(const gn_context *g, const void *job) {
    GNI_UNUSED(g);
    const gni_conv *c = (const gni_conv *)job;
    return gni_is_float(c->a.dtype) && c->c_run == 0;
}

static bool gni_cpu_takes_take(const gn_context *g, const void *job) {
    GNI_UNUSED(g);
    const gn_dtype t = ((const gni_take *)job)->index.dtype;
    return t == GN_I32 || t == GN_I64 || t == GN_U32; // others are converted
}
