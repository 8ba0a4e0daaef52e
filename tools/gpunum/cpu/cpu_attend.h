// >>cpu_attend
// Attention on the CPU. Scores have a query in each column, so that keys and values are read where they are, all passes over
// them are passes over vectors, and only blocks of them are there at a time. From outside: gni_cpu_attend,
// gni_cpu_takes_attend.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/gemm_cpu.h"
#include "../cpu/cpu.h"
#endif

enum {
    GNI_ATTEND_BLOCK = 64,      // queries of a block
    GNI_ATTEND_BLOCK_KEYS = 96, // and keys at most: a worker has one or, for a gradient, two such blocks of float32
    GNI_ATTEND_LEAST = 8,       // queries, and keys, below which products and a softmax are as fast
    GNI_ATTEND_LEAST_KEYS = 32,
    GNI_ATTEND_PAD = 16,    // between rows of a block, which are not to fall into the same sets of a cache
    GNI_ATTEND_APART = 128, // rows that are a multiple of so many elements apart do as well, and are copied
    GNI_ATTEND_CHUNK = 4    // blocks of keys of a task
};

typedef struct gni_attend_cpu {
    const gni_attend_job *a;
    const gni_gemm_isa *gemm;
    const gni_gemm_family *f;
    const gni_attend_isa *isa;
    gni_convert_fn load, store; // of halves, or NULL
    gni_gemm_pack_fn pack;
    int64_t item;               // bytes of an element
    int64_t keys;               // of a block
    int64_t blocks;             // of a head's queries
    int64_t chunks, chunk;      // of a head's keys, and how many they are
    int64_t wide_d, wide_e;     // between rows of q and of gy
    int64_t floats;             // of a worker
    float *work;
    gni_attend_step step;
} gni_attend_cpu;

// What a worker has of one block of queries of one head.
typedef struct gni_attend_block {
    const gni_attend_cpu *c;
    int64_t batch, head, row, n; // the first query, and how many
    float *qt, *gt;              // q scaled and gy, in panels (d,width) and (e,width)
    float *q, *gy;               // (n,d), (n,e)
    float *s, *ds;               // (keys,n) of scores, then of weights; of their derivatives
    float *o;                    // (e,n) of y or (d,n) of dq
    float *k, *v;                // (keys,d), (keys,e) where they are not read in place
    float *most, *sum, *keep;    // (n); most is lse and sum is dot for a gradient
} gni_attend_block;

static GNI_NOINLINE char *gni_attend_at(const gni_operand *o, int64_t batch, int64_t head, int64_t row) {
    const int64_t at = batch * o->stride[0] + head * o->stride[1] + row * o->stride[2];
    return gni_operand_data(o) + at * gni_item_size(o->dtype);
}

static int64_t gni_attend_step_of(void) { return GNI_ATTEND_BLOCK + GNI_ATTEND_PAD; }

static float *gni_attend_cut_room(float **at, int64_t n) {
    float *p = *at;
    if (p != NULL) *at = p + gni_gemm_round(n, 16) + 16; // packing writes a vector past the end
    return p;
}

// Sets the block's places in a worker's memory. Without memory (at is NULL) how many floats they are.
static int64_t gni_attend_rooms(gni_attend_block *b, const gni_attend_cpu *c, float *at) {
    const gni_attend_job *a = c->a;
    const bool back = c->step != GNI_ATTEND_FORWARD;
    const int64_t most = GNI_ATTEND_BLOCK, step = gni_attend_step_of();
    const int64_t size[12] = {a->d * most,
                              back ? a->e * most : 0,
                              back ? most * c->wide_d : 0,
                              most * GNI_MAX(c->wide_d, c->wide_e),
                              c->keys * step,
                              back ? c->keys * step : 0,
                              GNI_MAX(a->d, a->e) * step,
                              c->keys * (a->d + GNI_ATTEND_PAD),
                              c->keys * (a->e + GNI_ATTEND_PAD),
                              most,
                              most,
                              most};
    float **const to[12] = {&b->qt, &b->gt, &b->q, &b->gy, &b->s, &b->ds, &b->o, &b->k, &b->v, &b->most, &b->sum, &b->keep};
    int64_t all = 0;
    b->c = c;
    for (int i = 0; i < 12; i++) {
        if (at != NULL) *to[i] = gni_attend_cut_room(&at, size[i]);
        all += gni_gemm_round(size[i], 16) + 16;
    }
    return all;
}

static int64_t gni_attend_width(const gni_attend_cpu *c, int64_t left) {
    return left > c->f->lanes ? 2 * c->f->lanes : c->f->lanes;
}

// A product on tiles: to (rows,width) = a (rows,k) b (k,width), or added to it; of its columns `cols` are there.
static void gni_attend_tiles(const gni_gemm_family *f, const float *a, int64_t a_rs, int64_t a_cs, const float *b,
                             int64_t b_rs, float *to, int64_t to_rs, int64_t rows, int64_t k, int64_t width, int64_t cols,
                             bool add) {
    gni_gemm_tile_fn const *tile = gni_gemm_tiles_of(f, width);
    GNI_ZEROED(gni_gemm_tile, t);
    t.k = k;
    t.a_rs = a_rs;
    t.a_cs = a_cs;
    t.b = b;
    t.b_rs = b_rs;
    t.c_rs = to_rs;
    t.cols = (int)cols;
    t.add = add;
    for (int64_t i = 0, some; i < rows; i += some) {
        some = gni_gemm_panel_rows(f, rows - i);
        t.a = a + i * a_rs;
        t.c = to + i * to_rs;
        tile[some](&t);
    }
}

// to (rows,n) += a (rows,k) b (k,n), where b's rows go on as far as a panel does.
static void gni_attend_wide(const gni_attend_cpu *c, const float *a, int64_t a_rs, const float *b, int64_t b_rs, float *to,
                            int64_t to_rs, int64_t rows, int64_t k, int64_t n) {
    for (int64_t j = 0, width; j < n; j += width) {
        width = gni_attend_width(c, n - j);
        gni_attend_tiles(c->f, a, a_rs, 1, b + j, b_rs, to + j, to_rs, rows, k, width, GNI_MIN(width, n - j), true);
    }
}

// `width` elements of a row as float32.
static void gni_attend_load(const gni_attend_cpu *c, float *to, const char *from, int64_t width) {
    if (c->load != NULL)
        c->load(to, from, width);
    else
        memcpy(to, from, (size_t)width * sizeof(float));
}

// n rows of keys or values from `row` on as float32, `room` if they cannot stay.
static const float *gni_attend_rows(const gni_attend_block *b, const gni_operand *o, int64_t row, int64_t n, int64_t width,
                                    float *room, int64_t *rs) {
    const gni_attend_cpu *c = b->c;
    const char *from = gni_attend_at(o, b->batch, b->head / c->a->share, row);
    const int64_t step = o->stride[2] * c->item;
    *rs = o->stride[2];
    if (c->load == NULL && o->stride[2] % GNI_ATTEND_APART != 0) return (const float *)(const void *)from;
    *rs = width + GNI_ATTEND_PAD;
    for (int64_t i = 0; i < n; i++, from += step) gni_attend_load(c, room + i * *rs, from, width);
    return room;
}

// n rows of a query's operand, `width` of their elements, with zeros around them.
static void gni_attend_copy(const gni_attend_block *b, const gni_operand *o, int64_t width, float *to, int64_t step) {
    for (int64_t i = 0; i < b->n; i++, to += step) {
        gni_attend_load(b->c, to, gni_attend_at(o, b->batch, b->head, b->row + i), width);
        memset(to + width, 0, (size_t)(step - width) * sizeof(float));
    }
}

// The same rows in panels of columns, times a factor.
static void gni_attend_turn(const gni_attend_block *b, const gni_operand *o, int64_t width, float *to, float factor) {
    const gni_attend_cpu *c = b->c;
    for (int64_t i = 0; i < 2 * c->f->lanes; i++) b->keep[i] = factor;
    for (int64_t j = 0, w; j < b->n; j += w) {
        w = gni_attend_width(c, b->n - j);
        c->pack(to, w, gni_attend_at(o, b->batch, b->head, b->row + j), o->stride[2], 1, GNI_MIN(w, b->n - j), width);
        if (factor != 1.0f) c->isa->times(to, w, width, w, b->keep);
        to += width * w;
    }
}

static float gni_attend_added(float x) { return x <= (float)GNI_ATTEND_HIDES ? -(float)INFINITY : x; }

// A mask's rows are read one after the other; one that all queries share, a key at a time.
static void gni_attend_mask_scores(const gni_operand *m, const char *at, float *s, int64_t queries, int64_t keys) {
    const int64_t rs = m->stride[2], ks = m->stride[3], step = gni_attend_step_of();
    const bool *seen = (const bool *)(const void *)at;
    const float *f = (const float *)(const void *)at;
    const float low = -(float)INFINITY;
    if (m->dtype == GN_BOOL && rs == 0) {
        for (int64_t i = 0; i < keys; i++)
            for (int64_t q = 0; q < queries && !seen[i * ks]; q++) s[i * step + q] = low;
    } else if (m->dtype == GN_BOOL) {
        for (int64_t q = 0; q < queries; q++)
            for (int64_t i = 0; i < keys; i++) { // branches would be guessed wrong
                uint32_t bits;
                const uint32_t keep = (uint32_t)-(int32_t)seen[q * rs + i * ks];
                memcpy(&bits, &s[i * step + q], sizeof bits);
                bits = (bits & keep) | (0xff800000u & ~keep);
                memcpy(&s[i * step + q], &bits, sizeof bits);
            }
    } else if (rs == 0) {
        for (int64_t i = 0; i < keys; i++) {
            const float x = gni_attend_added(f[i * ks]);
            for (int64_t q = 0; q < queries; q++) s[i * step + q] += x;
        }
    } else {
        for (int64_t q = 0; q < queries; q++)
            for (int64_t i = 0; i < keys; i++) s[i * step + q] += gni_attend_added(f[q * rs + i * ks]);
    }
}

// What a query does not see, in columns from j on and keys from `key` on: -infinity.
static void gni_attend_hide(const gni_attend_block *b, float *s, int64_t j, int64_t width, int64_t key, int64_t keys) {
    const gni_attend_job *a = b->c->a;
    const gni_operand *m = &a->mask;
    const int64_t first = b->row + j;
    if (m->buf != NULL)
        gni_attend_mask_scores(m, gni_attend_at(m, b->batch, b->head, first) + key * m->stride[3] * gni_item_size(m->dtype),
                               s, GNI_MIN(width, b->n - j), keys);
    for (int64_t i = 0; i < keys && a->causal; i++)
        for (int64_t q = 0, end = GNI_MIN(width, key + i - first); q < end; q++)
            s[i * gni_attend_step_of() + q] = -(float)INFINITY;
}

static bool gni_attend_hides(const gni_attend_block *b, int64_t j, int64_t last_key) {
    return b->c->a->mask.buf != NULL || (b->c->a->causal && last_key > b->row + j);
}

// The end of the keys that the block sees.
static int64_t gni_attend_end(const gni_attend_block *b, int64_t end) {
    return b->c->a->causal ? GNI_MIN(end, b->row + b->n) : end;
}

// o (width,n) becomes rows of an operand.
static void gni_attend_put_rows(const gni_attend_block *b, const gni_operand *o, int64_t width) {
    const gni_attend_cpu *c = b->c;
    GNI_ZEROED(gni_gemm_tile, t);
    char *to = gni_attend_at(o, b->batch, b->head, b->row);
    t.c = c->store != NULL ? (void *)b->gy : (void *)to;
    t.c_rs = c->store != NULL ? width : o->stride[2];
    c->gemm->put_transposed(&t, b->o, width, b->n, gni_attend_step_of());
    for (int64_t i = 0; i < b->n && c->store != NULL; i++)
        c->store(to + i * o->stride[2] * c->item, b->gy + i * width, width);
}

// ---- forward: the largest score, and sums with it, as they are so far

static void gni_attend_weigh(const gni_attend_block *b, int64_t key, int64_t keys) {
    const gni_attend_cpu *c = b->c;
    const gni_attend_job *a = c->a;
    const int64_t step = gni_attend_step_of();
    int64_t k_rs, v_rs;
    const float *k = gni_attend_rows(b, &a->k, key, keys, a->d, b->k, &k_rs),
                *v = gni_attend_rows(b, &a->v, key, keys, a->e, b->v, &v_rs);
    for (int64_t j = 0, width; j < b->n; j += width) {
        width = gni_attend_width(c, b->n - j);
        gni_attend_tiles(c->f, k, k_rs, 1, b->qt + j * a->d, width, b->s + j, step, keys, a->d, width, width, false);
        if (gni_attend_hides(b, j, key + keys - 1)) gni_attend_hide(b, b->s + j, j, width, key, keys);
        const bool more = c->isa->fold(b->s + j, step, keys, width, b->most + j, b->sum + j, b->keep + j);
        if (more && key > 0) c->isa->times(b->o + j, step, a->e, width, b->keep + j);
        gni_attend_tiles(c->f, v, 1, v_rs, b->s + j, step, b->o + j, step, a->e, keys, width, width, key > 0);
    }
}

static void gni_attend_forward_block(const gni_attend_block *b) {
    const gni_attend_cpu *c = b->c;
    const gni_attend_job *a = c->a;
    const int64_t end = gni_attend_end(b, a->m);
    // Without a mask a query sees keys: where no score is above -infinity, there is no answer.
    const float none = a->mask.buf != NULL ? 0.0f : (float)NAN;
    for (int i = 0; i < GNI_ATTEND_BLOCK; i++) b->most[i] = -(float)INFINITY, b->sum[i] = 0.0f;
    gni_attend_turn(b, &a->q, a->d, b->qt, (float)a->scale);
    for (int64_t key = 0; key < end; key += c->keys) gni_attend_weigh(b, key, GNI_MIN(c->keys, end - key));
    for (int64_t i = 0; i < b->n; i++) {
        const bool seen = b->sum[i] != 0.0f;
        if (a->lse.buf != NULL)
            ((float *)(void *)gni_operand_data(&a->lse))[(b->batch * a->heads + b->head) * a->n + b->row + i] =
                seen ? b->most[i] + logf(b->sum[i]) : none;
        b->keep[i] = seen ? 1.0f / b->sum[i] : none;
    }
    for (int64_t j = 0, width; j < b->n; j += width) {
        width = gni_attend_width(c, b->n - j);
        c->isa->times(b->o + j, gni_attend_step_of(), a->e, width, b->keep + j);
    }
    gni_attend_put_rows(b, &a->y, a->e);
}

// ---- the gradient

// Of keys from `key` on: adds to dk and dv what this block gives them, and to o what they give dq.
static void gni_attend_back_keys(const gni_attend_block *b, int64_t key, int64_t keys, bool first, bool queries,
                                 bool others) {
    const gni_attend_cpu *c = b->c;
    const gni_attend_job *a = c->a;
    const int64_t step = gni_attend_step_of(), head = b->head / a->share;
    int64_t k_rs, v_rs;
    const float *k = gni_attend_rows(b, &a->k, key, keys, a->d, b->k, &k_rs),
                *v = gni_attend_rows(b, &a->v, key, keys, a->e, b->v, &v_rs);
    for (int64_t j = 0, width; j < b->n; j += width) {
        width = gni_attend_width(c, b->n - j);
        gni_attend_tiles(c->f, k, k_rs, 1, b->qt + j * a->d, width, b->s + j, step, keys, a->d, width, width, false);
        if (gni_attend_hides(b, j, key + keys - 1)) gni_attend_hide(b, b->s + j, j, width, key, keys);
        gni_attend_tiles(c->f, v, v_rs, 1, b->gt + j * a->e, width, b->ds + j, step, keys, a->e, width, width, false);
        c->isa->back(b->s + j, b->ds + j, step, keys, width, b->most + j, b->sum + j, (float)a->scale);
        if (queries) gni_attend_tiles(c->f, k, 1, k_rs, b->ds + j, step, b->o + j, step, a->d, keys, width, width, !first);
    }
    if (others && a->dv.buf != NULL)
        gni_attend_wide(c, b->s, step, b->gy, c->wide_e, (float *)(void *)gni_attend_at(&a->dv, b->batch, head, key),
                        a->dv.stride[2], keys, b->n, a->e);
    if (others && a->dk.buf != NULL)
        gni_attend_wide(c, b->ds, step, b->q, c->wide_d, (float *)(void *)gni_attend_at(&a->dk, b->batch, head, key),
                        a->dk.stride[2], keys, b->n, a->d);
}

// Keys from `from` to `to`.
static void gni_attend_back_block(const gni_attend_block *b, int64_t from, int64_t to, bool queries, bool others) {
    const gni_attend_cpu *c = b->c;
    const gni_attend_job *a = c->a;
    const int64_t end = gni_attend_end(b, to), at = (b->batch * a->heads + b->head) * a->n + b->row;
    if (from >= end) return;
    memset(b->most, 0, GNI_ATTEND_BLOCK * sizeof(float));
    memset(b->sum, 0, GNI_ATTEND_BLOCK * sizeof(float));
    memcpy(b->most, (const float *)(const void *)gni_operand_data(&a->lse) + at, (size_t)b->n * sizeof(float));
    memcpy(b->sum, (const float *)(const void *)gni_operand_data(&a->dot) + at, (size_t)b->n * sizeof(float));
    gni_attend_turn(b, &a->q, a->d, b->qt, (float)a->scale);
    gni_attend_turn(b, &a->gy, a->e, b->gt, 1.0f);
    if (others) gni_attend_copy(b, &a->q, a->d, b->q, c->wide_d);
    if (others) gni_attend_copy(b, &a->gy, a->e, b->gy, c->wide_e);
    for (int64_t key = from; key < end; key += c->keys)
        gni_attend_back_keys(b, key, GNI_MIN(c->keys, end - key), key == from, queries, others);
    if (queries) gni_attend_put_rows(b, &a->dq, a->d);
}

// Gradients of a key head's keys from `from` to `to` start from zeros.
static void gni_attend_zero(const gni_attend_block *b, const gni_operand *o, int64_t from, int64_t to, int64_t width) {
    if (o->buf == NULL) return;
    for (int64_t i = from; i < to; i++)
        memset(gni_attend_at(o, b->batch, b->head / b->c->a->share, i), 0, (size_t)width * sizeof(float));
}

// ---- the job

static void gni_attend_begin_block(gni_attend_block *b, int64_t head, int64_t block) {
    const gni_attend_job *a = b->c->a;
    b->batch = head / a->heads;
    b->head = head % a->heads;
    b->row = block * GNI_ATTEND_BLOCK;
    b->n = GNI_MIN(a->n - b->row, (int64_t)GNI_ATTEND_BLOCK);
}

// Items are blocks of queries, or with keys' gradients chunks of keys, of all heads.
static void gni_attend_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_attend_cpu *c = (const gni_attend_cpu *)arg;
    const gni_attend_job *a = c->a;
    gni_attend_block b;
    gni_attend_rooms(&b, c, c->work + worker * c->floats);
    for (int64_t i = begin; i < end; i++) {
        if (c->step == GNI_ATTEND_FORWARD || c->step == GNI_ATTEND_QUERIES) {
            gni_attend_begin_block(&b, i / c->blocks, i % c->blocks);
            if (c->step == GNI_ATTEND_FORWARD)
                gni_attend_forward_block(&b);
            else
                gni_attend_back_block(&b, 0, a->m, true, false);
            continue;
        }
        const int64_t from = i % c->chunks * c->chunk, to = GNI_MIN(a->m, from + c->chunk), head = i / c->chunks * a->share;
        gni_attend_begin_block(&b, head, 0);
        gni_attend_zero(&b, &a->dk, from, to, a->d);
        gni_attend_zero(&b, &a->dv, from, to, a->e);
        for (int64_t q = 0; q < a->share * c->blocks; q++) {
            gni_attend_begin_block(&b, head + q / c->blocks, q % c->blocks);
            gni_attend_back_block(&b, from, to, c->step == GNI_ATTEND_ALL && a->dq.buf != NULL, true);
        }
    }
}

static bool gni_attend_run_step(gn_context *g, gni_attend_cpu *c, gni_attend_step step) {
    const gni_attend_job *a = c->a;
    const int64_t heads = a->batches * a->heads;
    const bool blocks = step == GNI_ATTEND_FORWARD || step == GNI_ATTEND_QUERIES;
    c->step = step;
    c->chunk = step == GNI_ATTEND_KEYS ? GNI_ATTEND_CHUNK * c->keys : a->m;
    c->chunks = (a->m + c->chunk - 1) / c->chunk;
    gni_attend_block b;
    c->floats = gni_attend_rooms(&b, c, NULL);
    const size_t bytes = (size_t)gni_pool_threads(g->pool) * (size_t)c->floats * sizeof(float);
    if (g->gemm_work == NULL) g->gemm_work = (gni_gemm_work *)gni_calloc(g, sizeof(gni_gemm_work));
    if (g->gemm_work == NULL || !gni_gemm_reserve(g, g->gemm_work, bytes)) return gni_fail_memory(g, "gn_attention", bytes);
    c->work = (float *)g->gemm_work->data;
    const int64_t items = blocks ? heads * c->blocks : heads / a->share * c->chunks;
    const double work = (double)heads * (double)a->n * (double)a->m * (double)(a->d + a->e);
    gni_parallel(g->pool, items, work < 4.0 * GNI_GEMM_THREADED ? items : 1, gni_attend_task, c);
    return true;
}

static bool gni_cpu_attend(gn_context *g, const void *job) {
    const gni_attend_job *a = (const gni_attend_job *)job;
    GNI_ZEROED(gni_attend_cpu, c);
    c.a = a;
    c.gemm = gni_gemm_isa_of((int)g->isa);
    c.f = c.gemm->f32;
    c.isa = GNI_OF_ISA(g->isa, gni_attend_table);
    c.item = gni_item_size(a->q.dtype);
    c.pack = a->q.dtype == GN_F16 ? c.gemm->pack_f16 : a->q.dtype == GN_BF16 ? c.gemm->pack_bf16 : c.gemm->pack_f32;
    if (c.item == 2) {
        c.load = gni_cpu_isa_of(g->isa)->load[a->q.dtype];
        c.store = gni_cpu_isa_of(g->isa)->store[a->q.dtype];
    }
    c.keys = GNI_ATTEND_BLOCK_KEYS / c.f->rows * c.f->rows;
    c.blocks = (a->n + GNI_ATTEND_BLOCK - 1) / GNI_ATTEND_BLOCK;
    c.wide_d = gni_gemm_round(a->d, 2 * c.f->lanes) + GNI_ATTEND_PAD;
    c.wide_e = gni_gemm_round(a->e, 2 * c.f->lanes) + GNI_ATTEND_PAD;
    if (a->step != GNI_ATTEND_ALL) return gni_attend_run_step(g, &c, a->step);
    // All at once is five products, by queries and by keys are three and four: those have more tasks. The sums are the same.
    const int64_t threads = gni_pool_threads(g->pool), heads = a->batches * a->heads / a->share,
                  rounds = (heads + threads - 1) / threads;
    if (a->dk.buf == NULL && a->dv.buf == NULL) return gni_attend_run_step(g, &c, GNI_ATTEND_QUERIES);
    if (a->dq.buf == NULL) return gni_attend_run_step(g, &c, GNI_ATTEND_KEYS);
    if (5 * rounds * threads <= 7 * heads) return gni_attend_run_step(g, &c, GNI_ATTEND_ALL);
    return gni_attend_run_step(g, &c, GNI_ATTEND_QUERIES) && gni_attend_run_step(g, &c, GNI_ATTEND_KEYS);
}

static bool gni_cpu_takes_attend(const gn_context *g, const void *job) {
    const gni_attend_job *a = (const gni_attend_job *)job;
    GNI_UNUSED(g);
    return a->q.dtype != GN_F64 && a->m > 0 && a->d > 0 && a->e > 0;
}
