// >>gemm_cpu
// The matrix product on the CPU: which path, which blocks, which threads. From outside: gni_gemm,
// gni_gemm_work, gni_gemm_work_free, gni_gemm_cpu.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/half.h"
#include "../cpu/threads.h"
#endif

// Sums (rows,cols) of one of the products, from c's row and column `row` and `col` on.
typedef struct gni_gemm_part {
    const float *sum;
    int64_t sum_rs, sum_cs; // elements
    int64_t batch, row, col, rows, cols;
} gni_gemm_part;
typedef void (*gni_gemm_store_fn)(const void *arg, const gni_gemm_part *part);

// c (m,n) = act(a (m,k) b (k,n) + bias), or with c added before bias and act when `accumulate` is set.
// Strides are in elements and may be 0 or negative for a and b. `in` is that of a and b: F32, F16, BF16,
// F64, I32 or I64; `out` is the same, or for F16 and BF16 also F32 (they are summed in float32 and
// rounded once). c must not overlap a or b.
typedef struct gni_gemm {
    gn_dtype in, out;
    int64_t m, n, k;
    const void *a;
    int64_t a_rs, a_cs;
    const void *b;
    int64_t b_rs, b_cs;
    const int64_t *b_rows, *b_cols; // NULL, or where the rows (k) and columns (n) of b are; b_rs and b_cs are 0 then
    void *c;
    int64_t c_rs; // columns of c are contiguous
    bool accumulate;
    const float *bias; // (n) or NULL; not for F64 and integers
    int act;           // 0 none, 1 relu
    int64_t batch;     // products, with these offsets in elements (NULL: all zero)
    const int64_t *a_off, *b_off, *c_off;
    // Takes blocks of finished float32 sums, by any thread, and writes them to c; then bias and act are
    // not used. Sums of float32 products into a float32 c are c itself.
    gni_gemm_store_fn store; // NULL: the sums, rounded to `out`
    const void *store_arg;
    float *column_sums; // (n) of b, or NULL; of one product, of F32, F16 or BF16
} gni_gemm;

// Memory and facts kept from call to call. Zeroed at the start; one call at a time.
typedef struct gni_gemm_work {
    void *data;
    size_t bytes;
    int64_t l2; // bytes of the second cache; 0 = not asked yet
    int pairs;  // 1: the CPU multiplies pairs of bfloat16, -1: not; 0 = not asked, which virtual machines are slow at
} gni_gemm_work;

typedef enum gni_gemm_path {
    GNI_GEMM_BY_TILES, // register tiles over panels, or over operands where they are
    GNI_GEMM_BY_DOTS,  // few rows or columns, the other operand contiguous along k
    GNI_GEMM_BY_ROWS   // one row or column, the matrix contiguous along it
} gni_gemm_path;

#define GNI_GEMM_DEEP 4096    // bytes of a row of a panel: k is cut to this, or to half
#define GNI_GEMM_WIDE 4194304 // bytes of a packed block of b
#define GNI_GEMM_DOTS_MOST 16 // rows of the narrow operand that still go by dots
#define GNI_GEMM_SMALL 64     // sides of products that are not worth planning
#define GNI_GEMM_MAX_LANES 16
#define GNI_GEMM_THREADED 130000.0 // multiply-adds below which one thread is faster

typedef struct gni_gemm_job {
    // The product that is computed: the caller's, or its transpose when `transposed`; the row or the few
    // rows are then always a's.
    int64_t m, n, k;
    const char *a, *b;
    char *c;
    int64_t a_rs, a_cs, b_rs, b_cs, c_rs, c_cs;
    bool transposed;
    const gni_gemm *d;
    const gni_gemm_isa *isa;
    const gni_gemm_family *family;
    gni_gemm_pack_fn pack;
    gni_gemm_path path;
    int64_t in_bytes, sum_bytes, out_bytes; // of an element of a and b, of a sum, of c
    int64_t pair;    // elements along k that are packed into one, of sum_bytes
    bool sums_apart; // c is too narrow to hold sums while k is cut
    bool sums_here;  // the tasks make column_sums
    bool pack_a, pack_b, fetch;
    int64_t mc, nc, kc;     // a packed block of a is (mc,kc), of b (kc,nc)
    int64_t task_m, task_n; // of c, per task
    int64_t tasks_m, tasks_n;
    int64_t a_bytes, b_bytes, apart_bytes; // of a worker's memory
    char *work;
} gni_gemm_job;

static const gni_gemm_isa *gni_gemm_isa_of(int isa) { return GNI_OF_ISA(isa, gni_gemm_isa); }
static const gni_la_isa *gni_la_isa_of(int isa) { return GNI_OF_ISA(isa, gni_la_isa); }

static int64_t gni_gemm_round(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

static float gni_gemm_widen(gn_dtype t, const void *p, int64_t i) {
    if (t == GN_F16) return gni_f16_to_f32(((const uint16_t *)p)[i]);
    if (t == GN_BF16) return gni_bf16_to_f32(((const uint16_t *)p)[i]);
    return ((const float *)p)[i];
}

// Whether tiles do bias and act to sums that c is too narrow for.
static bool gni_gemm_finishes_apart(const gni_gemm_job *j) {
    return j->sums_apart && !j->transposed && !j->d->accumulate && j->d->store == NULL && j->k > 0 &&
           (j->d->out == GN_F16 || j->d->out == GN_BF16);
}

// What is done to a block of c after its last k where no `store` does it. The tiles have done float32's
// bias and act already; this does what they cannot.
// `sum` (rows,cols) holds the float32 sums when c has another type; it is worked on.
static void gni_gemm_finish(const gni_gemm_job *j, void *c, int64_t rows, int64_t cols, int64_t j0,
                            float *sum) {
    const gni_gemm *d = j->d;
    const bool done = gni_gemm_finishes_apart(j);
    for (int64_t i = 0; sum != NULL && i < rows; i++, sum += cols) {
        const int64_t at = i * d->c_rs;
        for (int64_t q = 0; d->accumulate && q < cols; q++)
            sum[q] += gni_gemm_widen(d->out, c, at + q);
        for (int64_t q = 0; !done && d->bias != NULL && q < cols; q++) sum[q] += d->bias[j0 + q];
        for (int64_t q = 0; !done && d->act == 1 && q < cols; q++) sum[q] = sum[q] < 0 ? 0 : sum[q];
        if (d->out == GN_F16) {
            j->isa->narrow_f16((uint16_t *)c + at, sum, cols);
        } else if (d->out == GN_BF16) {
            j->isa->narrow_bf16((uint16_t *)c + at, sum, cols);
        } else {
            memcpy((float *)c + at, sum, (size_t)cols * sizeof *sum);
        }
    }
    if (sum != NULL) return;
    if (d->act != 1 || d->out == GN_F32) return;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t q = i * d->c_rs; q < i * d->c_rs + cols; q++) {
            if (d->out == GN_F64 && ((double *)c)[q] < 0) ((double *)c)[q] = 0;
            if (d->out == GN_I32 && ((int32_t *)c)[q] < 0) ((int32_t *)c)[q] = 0;
            if (d->out == GN_I64 && ((int64_t *)c)[q] < 0) ((int64_t *)c)[q] = 0;
        }
    }
}

// Rows of the next panel of a when `left` remain: full tiles, the last two of about equal height. Where there is no tile
// of as many, the next larger one, or two in the place of the last.
static int64_t gni_gemm_panel_rows(const gni_gemm_family *f, int64_t left) {
    int64_t rows = left >= 2 * f->rows ? f->rows : left > f->rows ? (left + 1) / 2 : left;
    if (f->tile[0][rows] == NULL && rows > 8) rows = left > f->rows ? rows + 1 : (rows + 1) / 2;
    while (f->tile[0][rows] == NULL) rows--;
    return rows;
}

// Columns of the next panel of b when `left` remain.
static int64_t gni_gemm_panel_cols(const gni_gemm_family *f, int64_t left) {
    const int64_t lanes = f->lanes;
    if (f->tile[2][1] == NULL || left > lanes + lanes / 2) return left > lanes ? 2 * lanes : lanes;
    return left > lanes / 2 ? lanes : lanes / 2;
}

// The tiles for panels of that width.
static gni_gemm_tile_fn const *gni_gemm_tiles_of(const gni_gemm_family *f, int64_t width) {
    return f->tile[width > f->lanes ? 1 : width < f->lanes ? 2 : 0];
}

// A block of c: what one task computes.
typedef struct gni_gemm_block {
    const gni_gemm_job *job;
    const char *a, *b; // first of the block's rows and columns
    char *c;
    int64_t index, i0, j0; // of the product, of the first row and column
    int64_t rows, cols;
    const float *bias; // of the block's first column (or first row, when transposed)
    char *pack_a, *pack_b;
    float *apart; // sums (rows,cols), or where a transposed tile waits
} gni_gemm_block;

// Hands finished sums of the block to the caller: (mc,nc) from (ic,jc) on.
static void gni_gemm_give(const gni_gemm_block *s, int64_t ic, int64_t mc, int64_t jc, int64_t nc) {
    const gni_gemm_job *j = s->job;
    const int64_t rs = j->sums_apart ? s->cols : j->c_rs, cs = j->sums_apart ? 1 : j->c_cs;
    const float *sum = j->sums_apart ? s->apart : (const float *)(const void *)s->c;
    gni_gemm_part p;
    p.sum = sum + ic * rs + jc * cs;
    p.sum_rs = j->transposed ? cs : rs;
    p.sum_cs = j->transposed ? rs : cs;
    p.batch = s->index;
    p.row = j->transposed ? s->j0 + jc : s->i0 + ic;
    p.col = j->transposed ? s->i0 + ic : s->j0 + jc;
    p.rows = j->transposed ? nc : mc;
    p.cols = j->transposed ? mc : nc;
    j->d->store(j->d->store_arg, &p);
}

// Steps of a tile over kc elements.
static int64_t gni_gemm_steps(const gni_gemm_job *j, int64_t kc) {
    return (kc + j->pair - 1) / j->pair;
}

// Packs kc rows of w of b's columns from `col` on, which are where b_rows and b_cols say.
static void gni_gemm_gather(const gni_gemm_job *j, char *to, int64_t width, const char *from, int64_t col, int64_t w,
                            int64_t pc, int64_t kc) {
    enum { ROWS = 16 };
    const int64_t *rows = j->d->b_rows + pc, *cols = j->d->b_cols + col;
    if (j->d->in == GN_F32) {
        j->isa->gather((float *)(void *)to, width, (const float *)(const void *)from, rows, cols, w, kc);
        return;
    }
    if (j->in_bytes == 8) {
        for (int64_t p = 0; p < kc; p++, to += width * 8) {
            const uint64_t *s = (const uint64_t *)(const void *)from + rows[p];
            uint64_t *d = (uint64_t *)(void *)to;
            for (int64_t i = 0; i < w; i++) d[i] = s[cols[i]];
            for (int64_t i = w; i < width; i++) d[i] = 0;
        }
        return;
    }
    uint16_t part[ROWS * 2 * GNI_GEMM_MAX_LANES]; // narrow ones are widened as they are packed
    for (int64_t p = 0; p < kc; p += ROWS, to += ROWS * width * j->sum_bytes) {
        const int64_t some = GNI_MIN(kc - p, (int64_t)ROWS);
        for (int64_t q = 0; q < some; q++) {
            const uint16_t *s = (const uint16_t *)(const void *)from + rows[p + q];
            for (int64_t i = 0; i < w; i++) part[q * w + i] = s[cols[i]];
        }
        j->pack(to, width, part, 1, w, w, some);
    }
}

static void gni_gemm_pack_b(const gni_gemm_block *s, int64_t jc, int64_t nc, int64_t pc,
                            int64_t kc) {
    const gni_gemm_job *j = s->job;
    const int64_t steps = gni_gemm_steps(j, kc);
    char *to = s->pack_b;
    for (int64_t q = 0; q < nc;) {
        const int64_t width = gni_gemm_panel_cols(j->family, nc - q), w = GNI_MIN(width, nc - q);
        if (j->pack_b || (w < width && !j->family->clip)) {
            const char *from = s->b + (pc * j->b_rs + (jc + q) * j->b_cs) * j->in_bytes;
            if (j->d->b_rows != NULL)
                gni_gemm_gather(j, to, width, from, s->j0 + jc + q, w, pc, kc);
            else
                j->pack(to, width, from, j->b_cs, j->b_rs, w, kc);
            to += width * steps * j->sum_bytes;
        }
        q += width;
    }
}

static void gni_gemm_pack_a(const gni_gemm_block *s, int64_t ic, int64_t mc, int64_t pc,
                            int64_t kc) {
    const gni_gemm_job *j = s->job;
    const int64_t steps = gni_gemm_steps(j, kc);
    char *to = s->pack_a;
    for (int64_t i = 0; i < mc;) {
        const int64_t rows = gni_gemm_panel_rows(j->family, mc - i);
        const char *from = s->a + ((ic + i) * j->a_rs + pc * j->a_cs) * j->in_bytes;
        j->pack(to, rows, from, j->a_rs, j->a_cs, rows, kc);
        to += rows * steps * j->sum_bytes;
        i += rows;
    }
}

// A tile of the transposed product, (rows,width) by way of memory that stays close.
static void gni_gemm_transposed_tile(const gni_gemm_block *s, const gni_gemm_tile *t,
                                 gni_gemm_tile_fn tile, int64_t rows, int64_t width) {
    gni_gemm_tile aside = *t;
    aside.add = false;
    aside.act = 0;
    aside.bias = NULL;
    aside.c = s->apart;
    aside.c_rs = width;
    aside.cols = s->job->family->clip ? t->cols : (int)width;
    tile(&aside);
    s->job->isa->put_transposed(t, s->apart, rows, t->cols, width);
}

// The tiles of one panel of b, nc columns wide or less, for mc rows of a from row ic.
static void gni_gemm_panel(const gni_gemm_block *s, gni_gemm_tile *t, int64_t ic, int64_t mc,
                           int64_t jq, int64_t pc, int64_t width) {
    const gni_gemm_job *j = s->job;
    gni_gemm_tile_fn const *tile = gni_gemm_tiles_of(j->family, width);
    const float *bias = t->bias;
    const char *packed_a = s->pack_a;
    for (int64_t i = 0; i < mc;) {
        const int64_t rows = gni_gemm_panel_rows(j->family, mc - i);
        if (j->pack_a) {
            t->a = packed_a;
            t->a_rs = 1;
            t->a_cs = rows;
            packed_a += rows * t->k * j->sum_bytes;
        } else {
            t->a = s->a + ((ic + i) * j->a_rs + pc * j->a_cs) * j->in_bytes;
        }
        if (j->transposed) {
            t->c = s->c + ((ic + i) * j->c_rs + jq * j->c_cs) * j->sum_bytes;
            if (bias != NULL) t->bias = bias + ic + i;
            gni_gemm_transposed_tile(s, t, tile[rows], rows, width);
        } else {
            char *c = j->sums_apart ? (char *)s->apart : s->c;
            t->c = c + ((ic + i) * t->c_rs + jq) * j->sum_bytes;
            tile[rows](t);
        }
        i += rows;
    }
}

// All tiles of the block of c at (ic,jc), (mc,nc), for k from pc to pc + kc.
static void gni_gemm_tiles(const gni_gemm_block *s, int64_t ic, int64_t mc, int64_t jc, int64_t nc,
                           int64_t pc, int64_t kc) {
    const gni_gemm_job *j = s->job;
    const bool last = pc + kc >= j->k && (j->sums_apart ? gni_gemm_finishes_apart(j) : j->d->out == GN_F32);
    const char *packed_b = s->pack_b;
    gni_gemm_tile t;
    t.lines = t.a_jump = 0;
    t.k = gni_gemm_steps(j, kc);
    t.a_rs = j->a_rs;
    t.a_cs = j->a_cs;
    t.act = last ? j->d->act : 0;
    t.fetch = j->fetch;
    t.add = pc > 0 || (j->d->accumulate && !j->sums_apart);
    t.c_rs = j->sums_apart ? s->cols : j->transposed ? j->c_cs : j->c_rs;
    for (int64_t q = 0; q < nc;) {
        const int64_t width = gni_gemm_panel_cols(j->family, nc - q);
        t.cols = (int)GNI_MIN(width, nc - q);
        t.bias = !last || s->bias == NULL ? NULL : j->transposed ? s->bias : s->bias + jc + q;
        if (j->pack_b || (t.cols < width && !j->family->clip)) {
            t.b = packed_b;
            t.b_rs = width;
            packed_b += width * t.k * j->sum_bytes;
        } else {
            t.b = s->b + (pc * j->b_rs + jc + q) * j->in_bytes;
            t.b_rs = j->b_rs;
        }
        gni_gemm_panel(s, &t, ic, mc, jc + q, pc, width);
        q += width;
    }
}

// Columns that are summed at a time, and rows that are widened or transposed for it.
enum { GNI_GEMM_SUMS = 64 };

// sum (n) += the columns of a block b (k,n) of d's b.
static void gni_gemm_add_block(const gni_gemm_isa *isa, const gni_gemm *d, const char *b, int64_t n,
                               int64_t k, float *sum) {
    static const float one = 1;
    float transposed[GNI_GEMM_SUMS * GNI_GEMM_SUMS + GNI_GEMM_MAX_LANES];
    const int64_t item = d->in == GN_F32 ? 4 : 2;
    const gni_gemm_pack_fn pack = d->in == GN_F16    ? isa->pack_f16
                                  : d->in == GN_BF16 ? isa->pack_bf16
                                                     : isa->pack_f32;
    const bool there = d->in == GN_F32 && d->b_cs == 1;
    gni_gemm_rows t;
    t.n = n;
    t.s = &one;
    t.s_stride = 0;
    t.y = sum;
    for (int64_t l = 0; l < k; l += t.k, b += t.k * d->b_rs * item) {
        t.k = there ? k : GNI_MIN(k - l, (int64_t)GNI_GEMM_SUMS);
        t.b = there ? (const float *)(const void *)b : transposed;
        t.b_rs = there ? d->b_rs : n;
        if (!there) pack(transposed, n, b, d->b_cs, d->b_rs, n, t.k);
        isa->add_rows(&t);
    }
}

// Adds the sums over rows pc to pc + kc of b's columns jc to jc + nc, or makes them for pc 0.
static void gni_gemm_add_columns(const gni_gemm_isa *isa, const gni_gemm *d, int64_t jc, int64_t nc,
                                 int64_t pc, int64_t kc) {
    const int64_t item = d->in == GN_F32 ? 4 : 2;
    float sum[GNI_GEMM_SUMS];
    for (int64_t q = jc, n; q < jc + nc; q += n) {
        n = GNI_MIN(jc + nc - q, (int64_t)GNI_GEMM_SUMS);
        memset(sum, 0, sizeof sum);
        gni_gemm_add_block(isa, d, (const char *)d->b + (pc * d->b_rs + q * d->b_cs) * item, n, kc,
                           sum);
        for (int64_t i = 0; i < n; i++)
            d->column_sums[q + i] = sum[i] + (pc > 0 ? d->column_sums[q + i] : 0.0f);
    }
}

static void gni_gemm_run_tiles(const gni_gemm_block *s) {
    const gni_gemm_job *j = s->job;
    for (int64_t jc = 0; jc < s->cols; jc += j->nc) {
        const int64_t nc = GNI_MIN(j->nc, s->cols - jc);
        for (int64_t pc = 0; pc < j->k; pc += j->kc) {
            const int64_t kc = GNI_MIN(j->kc, j->k - pc);
            gni_gemm_pack_b(s, jc, nc, pc, kc);
            if (j->sums_here && s->i0 == 0)
                gni_gemm_add_columns(j->isa, j->d, s->j0 + jc, nc, pc, kc);
            for (int64_t ic = 0; ic < s->rows; ic += j->mc) {
                const int64_t mc = GNI_MIN(j->mc, s->rows - ic);
                if (j->pack_a) gni_gemm_pack_a(s, ic, mc, pc, kc);
                gni_gemm_tiles(s, ic, mc, jc, nc, pc, kc);
                // While the sums are in the caches.
                if (j->d->store != NULL && pc + kc >= j->k && !j->sums_apart)
                    gni_gemm_give(s, ic, mc, jc, nc);
            }
        }
    }
}

static void gni_gemm_run_dots(const gni_gemm_block *s) {
    const gni_gemm_job *j = s->job;
    gni_gemm_dots t;
    t.runs = 0;
    t.m = s->rows;
    t.n = s->cols;
    t.b_cs = j->b_cs;
    t.c = (float *)(void *)s->c;
    t.c_rs = j->c_rs;
    t.c_cs = j->c_cs;
    t.bias_rs = j->transposed ? 1 : 0;
    t.bias_cs = j->transposed ? 0 : 1;
    for (int64_t pc = 0; pc < j->k; pc += j->kc) {
        t.k = GNI_MIN(j->kc, j->k - pc);
        const float *a = (const float *)(const void *)s->a + pc * j->a_cs;
        if (j->pack_a) {
            j->pack(s->pack_a, t.k, a, j->a_cs, j->a_rs, t.k, t.m);
            a = (const float *)(const void *)s->pack_a;
        }
        t.a = a;
        t.a_rs = j->pack_a ? t.k : j->a_rs;
        t.b = (const float *)(const void *)s->b + pc;
        t.add = pc > 0 || j->d->accumulate;
        t.act = pc + t.k < j->k ? 0 : j->d->act;
        t.bias = pc + t.k < j->k ? NULL : s->bias;
        j->isa->dots(&t);
    }
}

static void gni_gemm_run_rows(const gni_gemm_block *s) {
    const gni_gemm_job *j = s->job;
    const gni_gemm *d = j->d;
    float *c = (float *)(void *)s->c, *y = j->c_cs == 1 && !d->accumulate ? c : s->apart;
    gni_gemm_rows t;
    t.n = s->cols;
    t.k = j->k;
    t.s = (const float *)(const void *)s->a;
    t.s_stride = j->a_cs;
    t.b = (const float *)(const void *)s->b;
    t.b_rs = j->b_rs;
    t.y = y;
    memset(y, 0, (size_t)t.n * sizeof *y);
    j->isa->add_rows(&t);
    if (y == c && d->bias == NULL && d->act == 0) return;
    for (int64_t i = 0; i < t.n; i++) {
        float v = y[i];
        if (d->accumulate) v += c[i * j->c_cs];
        if (d->bias != NULL) v += s->bias[j->transposed ? 0 : i];
        c[i * j->c_cs] = d->act == 1 && v < 0 ? 0 : v;
    }
}

static void gni_gemm_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_gemm_job *j = (const gni_gemm_job *)arg;
    const gni_gemm *d = j->d;
    gni_gemm_block s;
    s.job = j;
    s.pack_a = j->work + worker * (j->a_bytes + j->b_bytes + j->apart_bytes);
    s.pack_b = s.pack_a + j->a_bytes;
    s.apart = (float *)(void *)(s.pack_b + j->b_bytes);
    for (int64_t task = begin; task < end; task++) {
        const int64_t index = task / (j->tasks_m * j->tasks_n),
                      rest = task % (j->tasks_m * j->tasks_n);
        const int64_t i0 = rest / j->tasks_n * j->task_m, j0 = rest % j->tasks_n * j->task_n;
        const int64_t *a_off = j->transposed ? d->b_off : d->a_off,
                      *b_off = j->transposed ? d->a_off : d->b_off;
        s.index = index;
        s.i0 = i0;
        s.j0 = j0;
        s.rows = GNI_MIN(j->task_m, j->m - i0);
        s.cols = GNI_MIN(j->task_n, j->n - j0);
        s.bias = d->bias == NULL ? NULL : d->bias + (j->transposed ? i0 : j0);
        s.a = j->a + ((a_off != NULL ? a_off[index] : 0) + i0 * j->a_rs) * j->in_bytes;
        s.b = j->b + ((b_off != NULL ? b_off[index] : 0) + j0 * j->b_cs) * j->in_bytes;
        s.c = j->c + ((d->c_off != NULL ? d->c_off[index] : 0) + i0 * j->c_rs + j0 * j->c_cs) *
                         j->out_bytes;
        if (j->path == GNI_GEMM_BY_DOTS) {
            gni_gemm_run_dots(&s);
        } else if (j->path == GNI_GEMM_BY_ROWS) {
            gni_gemm_run_rows(&s);
        } else {
            gni_gemm_run_tiles(&s);
            if (!j->transposed && d->store == NULL)
                gni_gemm_finish(j, s.c, s.rows, s.cols, j0, j->sums_apart ? s.apart : NULL);
        }
        if (d->store != NULL && (j->sums_apart || j->path != GNI_GEMM_BY_TILES))
            gni_gemm_give(&s, 0, s.rows, 0, s.cols);
    }
}

// Rows of all products, which c holds (or which are 0, without terms): to the caller.
static void gni_gemm_give_task(void *arg, int64_t begin, int64_t end, int worker) {
    static const float zero = 0;
    const gni_gemm *d = (const gni_gemm *)arg;
    GNI_UNUSED(worker);
    for (int64_t i = begin; i < end; i++) {
        const int64_t c_off = d->c_off != NULL ? d->c_off[i / d->m] : 0;
        gni_gemm_part p;
        p.batch = i / d->m;
        p.row = i % d->m;
        p.col = 0;
        p.rows = GNI_MIN(d->m - p.row, end - i);
        p.cols = d->n;
        p.sum = d->k > 0 ? (const float *)d->c + c_off + p.row * d->c_rs : &zero;
        p.sum_rs = d->k > 0 ? d->c_rs : 0;
        p.sum_cs = d->k > 0;
        d->store(d->store_arg, &p);
        i += p.rows - 1;
    }
}

static void gni_gemm_give_all(gni_pool *pool, const gni_gemm *d) {
    gni_gemm all = *d;
    gni_parallel(pool, d->batch * d->m, 1 + 32768 / d->n, gni_gemm_give_task, &all);
}

// k = 0: sums of nothing.
static void gni_gemm_empty(const gni_gemm_job *j) {
    const gni_gemm *d = j->d;
    for (int64_t q = 0; q < d->batch; q++) {
        char *c = (char *)d->c + (d->c_off != NULL ? d->c_off[q] : 0) * j->out_bytes;
        for (int64_t i = 0; i < d->m; i++, c += d->c_rs * j->out_bytes) {
            if (!d->accumulate) memset(c, 0, (size_t)(d->n * j->out_bytes));
            if (j->family != j->isa->f32) { // numbers without bias
                gni_gemm_finish(j, c, 1, d->n, 0, NULL);
                continue;
            }
            for (int64_t x = 0; x < d->n; x++) {
                float zero = 0;
                gni_gemm_finish(j, c + x * j->out_bytes, 1, 1, x, &zero);
            }
        }
    }
}

static void gni_gemm_choose_family(gni_gemm_job *j) {
    const gni_gemm *d = j->d;
    const bool wide = d->in == GN_F64 || d->in == GN_I64,
               half = d->in == GN_F16 || d->in == GN_BF16;
    j->in_bytes = wide ? 8 : half ? 2 : 4;
    j->sum_bytes = wide ? 8 : 4;
    j->pair = 1;
    j->out_bytes = wide ? 8 : d->out == GN_F16 || d->out == GN_BF16 ? 2 : 4;
    j->family = d->in == GN_F64   ? j->isa->f64
                : d->in == GN_I64 ? j->isa->i64
                : d->in == GN_I32 ? j->isa->i32
                                  : j->isa->f32;
    j->pack = wide               ? j->isa->pack_64
              : d->in == GN_F16  ? j->isa->pack_f16
              : d->in == GN_BF16 ? j->isa->pack_bf16
                                 : j->isa->pack_f32;
    j->sums_apart = j->out_bytes < j->sum_bytes;
}

static void gni_gemm_take_operands(gni_gemm_job *j, bool transposed) {
    const gni_gemm *d = j->d;
    j->transposed = transposed;
    j->c = (char *)d->c;
    j->k = d->k;
    if (transposed) {
        j->m = d->n, j->n = d->m;
        j->a = (const char *)d->b, j->a_rs = d->b_cs, j->a_cs = d->b_rs;
        j->b = (const char *)d->a, j->b_rs = d->a_cs, j->b_cs = d->a_rs;
        j->c_rs = 1, j->c_cs = d->c_rs;
    } else {
        j->m = d->m, j->n = d->n;
        j->a = (const char *)d->a, j->a_rs = d->a_rs, j->a_cs = d->a_cs;
        j->b = (const char *)d->b, j->b_rs = d->b_rs, j->b_cs = d->b_cs;
        j->c_rs = d->c_rs, j->c_cs = 1;
    }
}

// m rows of b's narrow partner, the other operand contiguous along k: do dots beat tiles?
static bool gni_gemm_dots_pay(const gni_gemm_job *j, int64_t m, bool contiguous) {
    if (m > GNI_GEMM_DOTS_MOST) return false;
    if (m <= 4 && contiguous) return true;
    const int64_t lanes = j->family->lanes;
    return j->k >= 8 * lanes * (m <= lanes / 2 ? 1 : 4);
}

// Lines this far apart fall into one set of the first cache.
static bool gni_gemm_collide(const gni_gemm_job *j, int64_t stride) {
    return stride != 0 && stride * j->in_bytes % 4096 == 0;
}

// Operands are read where they are as long as the caches stand that.
static void gni_gemm_choose_packing(gni_gemm_job *j, int64_t l2) {
    const int64_t much = 3 * l2 / j->in_bytes, lanes = j->family->lanes;
    if (j->a_cs == 1 || j->a_rs == 1) {
        j->pack_a = j->n > 4 * lanes && gni_gemm_collide(j, j->a_cs == 1 ? j->a_rs : j->a_cs);
        if (j->n > 16 * lanes && j->m * j->k > much) j->pack_a = true;
    } else {
        j->pack_a = j->n > 4 * lanes;
    }
    j->pack_b = j->b_cs != 1 || (j->m > 64 && j->k > 128 && gni_gemm_collide(j, j->b_rs)) ||
                (j->m > 192 && j->k * j->n > much);
}

// Which path, from the whole product, so that no cut into tasks changes the order of any sum.
static void gni_gemm_choose_path(gni_gemm_job *j, const gni_gemm_work *w) {
    const gni_gemm *d = j->d;
    const int64_t lanes = j->family->lanes;
    const bool f32 = d->in == GN_F32 && d->out == GN_F32;
    j->path = GNI_GEMM_BY_TILES;
    j->pack_a = j->pack_b = true;
    j->fetch = d->m * d->n * j->sum_bytes > w->l2 / 2;
    gni_gemm_take_operands(j, false);
    if (j->in_bytes < j->sum_bytes) return;
    if (d->b_rows != NULL) {
        gni_gemm_choose_packing(j, w->l2);
        j->pack_b = true;
        return;
    }
    if (f32 && d->b_rs == 1 && gni_gemm_dots_pay(j, d->m, d->a_cs == 1)) {
        j->path = GNI_GEMM_BY_DOTS;
        j->pack_a = d->a_cs != 1;
        return;
    }
    if (f32 && d->a_cs == 1 && gni_gemm_dots_pay(j, d->n, d->b_rs == 1)) {
        j->path = GNI_GEMM_BY_DOTS;
        gni_gemm_take_operands(j, true);
        j->pack_a = d->b_rs != 1;
        return;
    }
    if (f32 && ((d->m == 1 && d->b_cs == 1) || (d->n == 1 && d->a_rs == 1))) {
        j->path = GNI_GEMM_BY_ROWS;
        gni_gemm_take_operands(j, d->m != 1 || d->b_cs != 1);
        return;
    }
    // Lanes that would be left empty at the right edge may be full along the other side.
    if (f32 && d->n < 2 * lanes && d->m > 2 * d->n && d->a_rs == 1 && d->n % lanes != 0)
        gni_gemm_take_operands(j, true);
    gni_gemm_choose_packing(j, w->l2);
}

static void gni_gemm_choose_blocks(gni_gemm_job *j, const gni_gemm_work *w) {
    if (j->path == GNI_GEMM_BY_ROWS) {
        j->kc = j->k;
        return;
    }
    if (j->path == GNI_GEMM_BY_DOTS) {
        j->kc = 6144 / j->m / 64 * 64;
        return;
    }
    const int64_t most = w->l2 < 1048576 ? GNI_GEMM_DEEP / 2 : GNI_GEMM_DEEP;
    const int64_t deep = most / j->sum_bytes * j->pair, cuts = (j->k + deep - 1) / deep;
    j->kc = gni_gemm_round((j->k + cuts - 1) / cuts, j->pair);
    const int64_t bytes = gni_gemm_steps(j, j->kc) * j->sum_bytes;
    j->mc = GNI_MAX(w->l2 / 4 / bytes / j->family->rows, 1) * j->family->rows;
    j->nc = GNI_MAX(GNI_GEMM_WIDE / bytes / (2 * j->family->lanes), 1) * 2 * j->family->lanes;
}

// Cuts c into tasks. A finer cut packs more often, a coarser one leaves threads idle.
static void gni_gemm_choose_tasks(gni_gemm_job *j, int threads) {
    const int64_t lanes = j->family->lanes;
    int64_t best_m = 1, best_n = 1;
    double best = 0;
    for (int64_t tm = 1; tm <= threads; tm++) {
        const int64_t tn = threads / tm;
        const int64_t rows = (j->m + tm - 1) / tm,
                      cols = gni_gemm_round((j->n + tn - 1) / tn, lanes);
        // Packing an element costs about as much as this many multiply-adds.
        const double pack =
            (j->pack_a ? 4.0 : 1.0) * (double)rows + (j->pack_b ? 4.0 : 1.0) * (double)cols;
        const double cost = (double)rows * (double)cols + pack;
        if (tm == 1 || cost < best) best = cost, best_m = tm, best_n = tn;
    }
    j->task_m = (j->m + best_m - 1) / best_m;
    j->task_n = GNI_MIN(gni_gemm_round((j->n + best_n - 1) / best_n, lanes), j->n);
}

static void gni_gemm_count_tasks(gni_gemm_job *j) {
    if (j->sums_apart) {
        j->task_m = GNI_MIN(j->task_m, 512);
        j->task_n = GNI_MIN(j->task_n, 1024);
    }
    j->tasks_m = (j->m + j->task_m - 1) / j->task_m;
    j->tasks_n = (j->n + j->task_n - 1) / j->task_n;
}

static void gni_gemm_choose_memory(gni_gemm_job *j) {
    const int64_t wide = 2 * j->family->lanes, pad = 128;
    j->a_bytes = j->b_bytes = j->apart_bytes = 0;
    if (j->path == GNI_GEMM_BY_ROWS) {
        if (j->d->accumulate || j->c_cs != 1) j->apart_bytes = gni_gemm_round(j->task_n * 4, 64);
        return;
    }
    const int64_t kc = gni_gemm_steps(j, GNI_MIN(j->kc, j->k));
    const int64_t rows = j->path == GNI_GEMM_BY_TILES ? GNI_MIN(j->mc, j->task_m) : j->task_m;
    if (j->pack_a) j->a_bytes = gni_gemm_round(rows * kc * j->sum_bytes + pad, 64);
    if (j->path == GNI_GEMM_BY_DOTS) return;
    const int64_t cols = j->pack_b ? gni_gemm_round(GNI_MIN(j->nc, j->task_n), wide) : wide;
    if (j->pack_b || !j->family->clip)
        j->b_bytes = gni_gemm_round(cols * kc * j->sum_bytes + pad, 64);
    if (j->sums_apart) j->apart_bytes = gni_gemm_round(j->task_m * j->task_n * 4, 64);
    if (j->transposed) j->apart_bytes = wide * GNI_GEMM_MAX_ROWS * 4;
}

static bool gni_gemm_reserve(gn_context *g, gni_gemm_work *w, size_t bytes) {
    if (bytes <= w->bytes) return true;
    gni_free(g, w->data);
    w->bytes = 0;
    w->data = gni_alloc(g, bytes);
    if (w->data == NULL) return false;
    w->bytes = bytes;
    return true;
}

static void gni_gemm_work_free(gn_context *g, gni_gemm_work *w) {
    gni_free(g, w->data);
    w->data = NULL;
    w->bytes = 0;
}

static int64_t gni_gemm_ask_l2(void) {
    long bytes = 0;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    if (bytes < 128 * 1024) bytes = 512 * 1024;
    return (int64_t)GNI_MIN(bytes, 2048L * 1024);
}

// A product too small for planning: tiles over a and b where they are, edges by way of the stack.
static void gni_gemm_small(const gni_gemm_isa *isa, const gni_gemm *d) {
    const bool wide = d->in == GN_F64;
    const gni_gemm_family *f = wide ? isa->f64 : isa->f32;
    const gni_gemm_pack_fn pack = wide ? isa->pack_64 : isa->pack_f32;
    const int64_t size = wide ? 8 : 4;
    union {
        float f32[(GNI_GEMM_SMALL * 2 + 1) * GNI_GEMM_MAX_LANES];
        double f64[(GNI_GEMM_SMALL * 2 + 1) * GNI_GEMM_MAX_LANES / 2];
    } edge;
    gni_gemm_tile t;
    t.lines = t.a_jump = 0;
    t.k = d->k;
    t.a_rs = d->a_rs;
    t.a_cs = d->a_cs;
    t.c_rs = d->c_rs;
    t.act = d->act;
    t.add = d->accumulate;
    t.fetch = false;
    for (int64_t q = 0; q < d->n;) {
        const int64_t width = gni_gemm_panel_cols(f, d->n - q);
        const char *b = (const char *)d->b + q * d->b_cs * size;
        gni_gemm_tile_fn const *tile = gni_gemm_tiles_of(f, width);
        t.cols = (int)GNI_MIN(width, d->n - q);
        t.bias = d->bias == NULL ? NULL : d->bias + q;
        t.b = b;
        t.b_rs = d->b_rs;
        if ((t.cols < width && !f->clip) || d->b_cs != 1) {
            pack(&edge, width, b, d->b_cs, d->b_rs, t.cols, d->k);
            t.b = &edge;
            t.b_rs = width;
        }
        for (int64_t i = 0; i < d->m;) {
            const int64_t rows = gni_gemm_panel_rows(f, d->m - i);
            t.a = (const char *)d->a + i * d->a_rs * size;
            t.c = (char *)d->c + (i * d->c_rs + q) * size;
            tile[rows](&t);
            i += rows;
        }
        q += width;
    }
}

static bool gni_gemm_is_small(const gni_gemm *d) {
    if (d->b_rows != NULL) return false;
    if (d->in != d->out || !(d->in == GN_F32 || (d->in == GN_F64 && d->act == 0))) return false;
    return d->batch == 1 && d->a_off == NULL && d->b_off == NULL && d->c_off == NULL && d->m >= 4 &&
           d->m <= GNI_GEMM_SMALL && d->n >= 4 && d->n <= GNI_GEMM_SMALL && d->k > 0 &&
           d->k <= GNI_GEMM_SMALL;
}

#ifdef GNI_X86
static uint32_t gni_gemm_cpuid(uint32_t leaf, uint32_t part) {
    uint32_t a = leaf, b, c = part, d;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return a;
}
// Whether the CPU has AVX512-BF16.
static bool gni_gemm_ask_pairs(void) {
    if (gni_gemm_cpuid(0, 0) < 7 || gni_gemm_cpuid(7, 0) < 1) return false;
    return (gni_gemm_cpuid(7, 1) >> 5 & 1u) != 0;
}
#else
static bool gni_gemm_ask_pairs(void) { return false; }
#endif

// The smallest biased exponent of the bfloat16 numbers of an (outer,inner) operand, zeros aside: 0 when
// one is subnormal.
typedef struct gni_gemm_least {
    const uint16_t *p;
    int64_t outer, inner, os, is;
    const gni_gemm_isa *isa;
    int64_t part;        // rows per part
    uint16_t result[64]; // by part
} gni_gemm_least;

static void gni_gemm_least_task(void *arg, int64_t begin, int64_t end, int worker) {
    gni_gemm_least *l = (gni_gemm_least *)arg;
    GNI_UNUSED(worker);
    for (int64_t part = begin; part < end; part++) {
        uint16_t least = 0xFFFF;
        const int64_t stop = GNI_MIN((part + 1) * l->part, l->outer);
        for (int64_t i = part * l->part; i < stop; i++) {
            const uint16_t *p = l->p + i * l->os;
            int64_t q = 0;
            if (l->is == 1) q = l->isa->least(p, l->inner, &least);
            for (; q < l->inner; q++) {
                // Less one, zero is the largest.
                const uint16_t v = (uint16_t)((p[q * l->is] & 0x7FFF) - 1);
                least = v < least ? v : least;
            }
        }
        l->result[part] = least;
    }
}

static int gni_gemm_least_exponent(gni_pool *pool, const gni_gemm_isa *isa, const void *p,
                                   int64_t rows, int64_t cols, int64_t rs, int64_t cs) {
    gni_gemm_least l;
    l.p = (const uint16_t *)p;
    l.isa = isa;
    l.outer = cs == 1 ? rows : cols;
    l.inner = cs == 1 ? cols : rows;
    l.os = cs == 1 ? rs : cs;
    l.is = cs == 1 ? cs : rs;
    l.part = (l.outer + 63) / 64;
    const int64_t parts = (l.outer + l.part - 1) / l.part;
    gni_parallel(pool, parts, 1 + 65536 / (l.part * l.inner), gni_gemm_least_task, &l);
    int least = 0xFFFF;
    for (int64_t i = 0; i < parts; i++) least = GNI_MIN(least, (int)l.result[i]);
    return least == 0xFFFF ? 255 : (least + 1) >> 7;
}

// bfloat16 by the CPU's own product of pairs, which takes subnormal operands and sums for zero: only when
// there can be none. Each product is a multiple of 2^(ea + eb - 268), for the least exponents ea and eb,
// and so is each sum, rounded or not; then the result is that of multiply-adds in order, to the bit.
static void gni_gemm_choose_pairs(gni_gemm_job *j, gni_pool *pool, const gni_gemm_work *w) {
    const gni_gemm *d = j->d;
    if (w->pairs < 1 || j->isa->bf16 == NULL || d->in != GN_BF16 || d->batch != 1 || d->b_rows != NULL) return;
    if (d->m < 8 || d->n < 8 || d->k < 16) return;
    const int a = gni_gemm_least_exponent(pool, j->isa, d->a, d->m, d->k, d->a_rs, d->a_cs);
    const int b = gni_gemm_least_exponent(pool, j->isa, d->b, d->k, d->n, d->b_rs, d->b_cs);
    if (a < 1 || b < 1 || a + b < 268 - 126) return;
    j->family = j->isa->bf16;
    j->pack = j->isa->pack_pairs;
    j->pair = 2;
}

#ifdef GPUNUM_USE_CBLAS
// Other names for the constants of a cblas.h that the program may have included or not.
#if defined(CBLAS_H) || defined(__MKL_CBLAS_H__)
#define GNI_CBLAS_ROWS CblasRowMajor
#define GNI_CBLAS_PLAIN CblasNoTrans
#define GNI_CBLAS_TURN CblasTrans
#else
#define GNI_CBLAS_ROWS 101
#define GNI_CBLAS_PLAIN 111
#define GNI_CBLAS_TURN 112
#ifdef __cplusplus
extern "C" {
#endif
void cblas_sgemm(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                 const float *a, int a_step, const float *b, int b_step, float beta, float *c,
                 int c_step);
void cblas_dgemm(int order, int turn_a, int turn_b, int m, int n, int k, double alpha,
                 const double *a, int a_step, const double *b, int b_step, double beta, double *c,
                 int c_step);
#ifdef __cplusplus
}
#endif
#endif

#define GNI_GEMM_BLAS_SIDE 16       // sides below which BLAS is slower
#define GNI_GEMM_BLAS_WORK 200000.0 // multiply-adds

// Whether BLAS can say a matrix of (rows,cols) with these strides; its step is then *step.
static bool gni_gemm_blas_matrix(int64_t rows, int64_t cols, int64_t rs, int64_t cs,
                                 int64_t *step) {
    *step = cs == 1 ? rs : cs;
    return (cs == 1 && rs >= cols && rs <= INT_MAX) || (rs == 1 && cs >= rows && cs <= INT_MAX);
}

static void gni_gemm_blas_finish(const gni_gemm *d, int64_t c_off) {
    for (int64_t i = 0; i < d->m; i++) {
        const int64_t at = c_off + i * d->c_rs;
        for (int64_t q = 0; q < d->n; q++) {
            if (d->out == GN_F64) {
                double *c = (double *)d->c + at + q;
                if (d->act == 1 && *c < 0) *c = 0;
            } else {
                float *c = (float *)d->c + at + q;
                if (d->bias != NULL) *c += d->bias[q];
                if (d->act == 1 && *c < 0) *c = 0;
            }
        }
    }
}

// False: not done, and nothing has been touched.
static bool gni_gemm_blas(const gni_gemm *d) {
    int64_t a_step, b_step;
    if (d->in != d->out || (d->in != GN_F32 && d->in != GN_F64) || d->b_rows != NULL) return false;
    if ((double)d->m * (double)d->n * (double)d->k < GNI_GEMM_BLAS_WORK) return false;
    if (GNI_MIN(GNI_MIN(d->m, d->n), d->k) < GNI_GEMM_BLAS_SIDE) return false;
    if (GNI_MAX(GNI_MAX(d->m, d->n), GNI_MAX(d->k, d->c_rs)) > INT_MAX) return false;
    if (!gni_gemm_blas_matrix(d->m, d->k, d->a_rs, d->a_cs, &a_step)) return false;
    if (!gni_gemm_blas_matrix(d->k, d->n, d->b_rs, d->b_cs, &b_step)) return false;
    const int m = (int)d->m, n = (int)d->n, k = (int)d->k, beta = d->accumulate ? 1 : 0;
    for (int64_t q = 0; q < d->batch; q++) {
        const int64_t a = d->a_off != NULL ? d->a_off[q] : 0,
                      b = d->b_off != NULL ? d->b_off[q] : 0;
        const int64_t c = d->c_off != NULL ? d->c_off[q] : 0;
        if (d->in == GN_F32) {
            cblas_sgemm(GNI_CBLAS_ROWS, d->a_cs == 1 ? GNI_CBLAS_PLAIN : GNI_CBLAS_TURN,
                        d->b_cs == 1 ? GNI_CBLAS_PLAIN : GNI_CBLAS_TURN, m, n, k, 1,
                        (const float *)d->a + a, (int)a_step, (const float *)d->b + b, (int)b_step,
                        (float)beta, (float *)d->c + c, (int)d->c_rs);
        } else {
            cblas_dgemm(GNI_CBLAS_ROWS, d->a_cs == 1 ? GNI_CBLAS_PLAIN : GNI_CBLAS_TURN,
                        d->b_cs == 1 ? GNI_CBLAS_PLAIN : GNI_CBLAS_TURN, m, n, k, 1,
                        (const double *)d->a + a, (int)a_step, (const double *)d->b + b,
                        (int)b_step, beta, (double *)d->c + c, (int)d->c_rs);
        }
        if (d->bias != NULL || d->act != 0) gni_gemm_blas_finish(d, c);
    }
    return true;
}
#endif

typedef struct gni_gemm_columns {
    const gni_gemm_isa *isa;
    const gni_gemm *d;
} gni_gemm_columns;

// Items are groups of 64 columns.
static void gni_gemm_columns_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_gemm_columns *c = (const gni_gemm_columns *)arg;
    const int64_t jc = begin * 64, nc = GNI_MIN(end * 64, c->d->n) - jc;
    GNI_UNUSED(worker);
    for (int64_t pc = 0; pc == 0 || pc < c->d->k; pc += 1024)
        gni_gemm_add_columns(c->isa, c->d, jc, nc, pc, GNI_MIN(c->d->k - pc, 1024));
}

static void gni_gemm_sum_columns(gni_pool *pool, const gni_gemm_isa *isa, const gni_gemm *d) {
    gni_gemm_columns c;
    if (d->column_sums == NULL) return;
    c.isa = isa;
    c.d = d;
    gni_parallel(pool, (d->n + 63) / 64, 1 + 1024 / GNI_MAX(d->k, 1), gni_gemm_columns_task, &c);
}

// Products of float64 matrices and vectors, by the vector loops of the decompositions.
typedef struct gni_gemm_vector {
    const gni_la_isa *isa;
    const gni_gemm *d;
    bool row, dots;    // m is 1; the matrix is contiguous along k
    int64_t ld, items; // of the matrix; groups of 64 results a product
} gni_gemm_vector;

static bool gni_gemm_is_vector(const gni_gemm *d, gni_gemm_vector *v) {
    v->d = d;
    v->row = d->m == 1;
    const int64_t along = v->row ? d->b_rs : d->a_cs, across = v->row ? d->b_cs : d->a_rs,
                  x = v->row ? d->a_cs : d->b_rs;
    v->dots = across != 1 || (along == 1 && d->m == 1 && d->n == 1);
    v->ld = v->dots ? across : along;
    v->items = ((v->row ? d->n : d->m) + 63) / 64;
    const bool stored = d->out == GN_F64 && !d->accumulate && (v->row || d->c_rs == 1);
    return d->in == GN_F64 && d->b_rows == NULL && stored && (v->row || d->n == 1) && d->k > 0 &&
           (d->k == 1 || (x == 1 && (along == 1 || !v->dots)));
}

static void gni_gemm_vector_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_gemm_vector *v = (const gni_gemm_vector *)arg;
    const gni_gemm *d = v->d;
    GNI_UNUSED(worker);
    for (int64_t next; begin < end; begin = next) {
        const int64_t q = begin / v->items, at = (begin - q * v->items) * 64;
        next = GNI_MIN(end, (q + 1) * v->items);
        const int64_t n = GNI_MIN((next - begin) * 64, (v->row ? d->n : d->m) - at);
        const double *a = (const double *)d->a + (d->a_off != NULL ? d->a_off[q] : 0),
                     *b = (const double *)d->b + (d->b_off != NULL ? d->b_off[q] : 0);
        double *y = (double *)d->c + (d->c_off != NULL ? d->c_off[q] : 0) + at;
        const double *matrix = (v->row ? b : a) + (v->dots ? at * v->ld : at), *x = v->row ? a : b;
        if (v->dots) {
            v->isa->rows_dot(y, matrix, v->ld, x, n, d->k);
        } else {
            memset(y, 0, (size_t)n * sizeof *y);
            v->isa->rows_add(y, matrix, v->ld, x, d->k, n);
        }
    }
}

// False only when there is no memory. isa: 0 plain, 1 base, 2 AVX2, 3 AVX-512.
// The same operands give the same bits for any number of threads (but which NaN a NaN is may differ).
static bool gni_gemm_cpu(gn_context *g, gni_pool *pool, gni_gemm_work *w, int isa,
                         const gni_gemm *d) {
    if (d->m <= 0 || d->n <= 0 || d->batch <= 0) return true;
#ifdef GPUNUM_USE_CBLAS
    if (gni_gemm_blas(d)) {
        if (d->store != NULL) gni_gemm_give_all(pool, d);
        gni_gemm_sum_columns(pool, gni_gemm_isa_of(isa), d);
        return true;
    }
#endif
    const int threads = gni_pool_threads(pool);
    const double work = (double)d->m * (double)d->n * (double)d->k * (double)d->batch;
    gni_gemm_job j;
    gni_gemm_vector v;
    j.d = d;
    j.isa = gni_gemm_isa_of(isa);
    j.sums_apart = j.transposed = false; // until a way is chosen
    if (gni_gemm_is_vector(d, &v)) {
        v.isa = gni_la_isa_of(isa);
        gni_parallel(pool, d->batch * v.items, GNI_MAX(1024 / d->k, 1), gni_gemm_vector_task, &v);
        return true;
    }
    if (gni_gemm_is_small(d) && (threads == 1 || work < GNI_GEMM_THREADED)) {
        gni_gemm_small(j.isa, d);
        gni_gemm_sum_columns(pool, j.isa, d);
        if (d->store != NULL) gni_gemm_give_all(pool, d);
        return true;
    }
    gni_gemm_choose_family(&j);
    if (d->k <= 0) {
        gni_gemm_sum_columns(pool, j.isa, d);
        if (d->store != NULL)
            gni_gemm_give_all(pool, d);
        else
            gni_gemm_empty(&j);
        return true;
    }
    if (w->l2 == 0) w->l2 = gni_gemm_ask_l2();
    if (d->in == GN_BF16 && w->pairs == 0) w->pairs = gni_gemm_ask_pairs() ? 1 : -1;
    gni_gemm_choose_pairs(&j, pool, w);
    gni_gemm_choose_path(&j, w);
    j.sums_here = d->column_sums != NULL && j.path == GNI_GEMM_BY_TILES && !j.transposed;
    if (!j.sums_here) gni_gemm_sum_columns(pool, j.isa, d);
    gni_gemm_choose_blocks(&j, w);
    j.task_m = j.m;
    j.task_n = j.n;
    if (work >= GNI_GEMM_THREADED && d->batch < 2 * threads && threads > 1)
        gni_gemm_choose_tasks(&j, threads);
    gni_gemm_count_tasks(&j);
    gni_gemm_choose_memory(&j);
    const int64_t tasks = d->batch * j.tasks_m * j.tasks_n;
    const int64_t grain = work < GNI_GEMM_THREADED ? tasks : 1;
    const int64_t each = j.a_bytes + j.b_bytes + j.apart_bytes;
    if (!gni_gemm_reserve(g, w, (size_t)GNI_MAX(each * (tasks > grain ? threads : 1), 1))) return false;
    j.work = (char *)w->data;
    gni_parallel(pool, tasks, grain, gni_gemm_task, &j);
    return true;
}
