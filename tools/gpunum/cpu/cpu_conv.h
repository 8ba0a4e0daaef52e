// >>cpu_conv
// Convolutions on the CPU: products with windows of images. From outside: gni_cpu_conv.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/gemm_cpu.h"
#include "../cpu/cpu.h"
#endif

enum {
    GNI_CONV_FEW = 32,       // rows of a product whose windows stay where they are
    GNI_CONV_CHAIN = 1024,   // multiply-adds one after another, at most
    GNI_CONV_COLUMNS = 16,   // of a task
    GNI_CONV_TASK = 1 << 17  // multiply-adds that are worth a thread
};

// Offsets of all combinations of indices, the last one fastest.
static void gni_conv_offsets(int64_t *to, const int64_t *dim, const int64_t *step, int rank) {
    int64_t count = 1;
    to[0] = 0;
    for (int i = 0; i < rank; i++) { // from the end, so that nothing is overwritten that is still read
        for (int64_t q = count; q-- > 0;)
            for (int64_t x = dim[i]; x-- > 0;) to[q * dim[i] + x] = to[q] + x * step[i];
        count *= dim[i];
    }
}

static void gni_conv_comb(const gni_conv *d, int64_t *offsets, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = i % d->comb_taps * d->comb_step;
        offsets[i] += at % d->comb * d->comb_part + at / d->comb;
    }
}

// ---- few rows, for which packing would take longer than they do: windows are read where they are

typedef struct gni_conv_views {
    const gni_gemm_isa *isa;
    const gni_gemm *d;
    int64_t run, runs, each; // columns that are neighbours; such runs of a product, and of a task
} gni_conv_views;

static int64_t gni_conv_run_length(const gni_conv *d, const int64_t *cols) {
    int64_t n = 1;
    while (n < d->n && cols[n] == cols[0] + n) n++;
    return n;
}

static void gni_conv_views_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_conv_views *c = (const gni_conv_views *)arg;
    const gni_gemm *d = c->d;
    const int64_t tasks = (c->runs + c->each - 1) / c->each;
    GNI_UNUSED(worker);
    for (int64_t t = begin; t < end; t++) {
        const int64_t q = t / tasks, first = t % tasks * c->each;
        gni_gemm_views v;
        v.m = d->m;
        v.n = c->run;
        v.k = d->k;
        v.runs = GNI_MIN(c->each, c->runs - first);
        v.a = (const float *)d->a + d->a_off[q];
        v.b = (const float *)d->b + d->b_off[q];
        v.rows = d->b_rows;
        v.starts = d->b_cols + first * c->run;
        v.y = (float *)d->c + d->c_off[q] + first * c->run;
        v.y_rs = d->c_rs;
        c->isa->views(&v);
    }
}

static void gni_conv_views_run(gn_context *g, const gni_gemm_isa *isa, const gni_gemm *d, int64_t run) {
    gni_conv_views c;
    c.isa = isa;
    c.d = d;
    c.run = run;
    c.runs = d->n / run;
    c.each = GNI_MIN(GNI_MAX(GNI_CONV_TASK / (d->m * d->k * run), 1), c.runs);
    const int64_t tasks = (c.runs + c.each - 1) / c.each, work = c.each * run * d->m * d->k;
    gni_parallel(g->pool, d->batch * tasks, 1 + GNI_CONV_TASK / work, gni_conv_views_task, &c);
}

// ---- gradients of weights: both operands are read along rows of images, as they are

typedef struct gni_conv_dots {
    const gni_gemm_isa *isa;
    const gni_conv *d;
    const gni_gemm *m;
    int64_t runs, run, blocks; // rows of all images, their length; blocks of columns
    const int64_t *a_runs;
} gni_conv_dots;

static void gni_conv_dots_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_conv_dots *c = (const gni_conv_dots *)arg;
    const gni_gemm *d = c->m;
    const int64_t some = GNI_MAX(GNI_CONV_CHAIN * 2 / c->run, 1);
    GNI_UNUSED(worker);
    for (int64_t t = begin; t < end; t++) {
        const int64_t q = t / c->blocks, j = t % c->blocks * GNI_CONV_COLUMNS;
        GNI_ZEROED(gni_gemm_dots, v);
        v.m = d->m;
        v.n = GNI_MIN(d->n - j, (int64_t)GNI_CONV_COLUMNS);
        v.k = c->run;
        v.a = (const float *)d->a + d->a_off[q];
        v.a_rs = d->a_rs;
        v.b = (const float *)d->b + d->b_off[q];
        v.cols = d->b_cols + j;
        v.c = (float *)d->c + d->c_off[q] + j;
        v.c_rs = d->c_rs;
        v.c_cs = 1;
        for (int64_t r = 0; r < c->runs; r += some, v.add = true) {
            v.runs = GNI_MIN(some, c->runs - r);
            v.a_runs = c->a_runs + r;
            v.b_runs = d->b_rows + r;
            c->isa->dots(&v);
        }
    }
}

// False where there is no memory.
static bool gni_conv_dots_run(gn_context *g, const gni_gemm_isa *isa, const gni_conv *d, const gni_gemm *m, int64_t run) {
    gni_conv_dots c;
    c.isa = isa;
    c.m = m;
    c.run = run;
    c.runs = d->k / run;
    c.blocks = (d->n + GNI_CONV_COLUMNS - 1) / GNI_CONV_COLUMNS;
    const int64_t each = c.runs / d->k_dim[0], work = d->m * d->k * GNI_MIN(d->n, (int64_t)GNI_CONV_COLUMNS);
    int64_t *a_runs = (int64_t *)gni_alloc(g, (size_t)c.runs * sizeof(int64_t));
    if (a_runs == NULL) return false;
    for (int64_t r = 0; r < c.runs; r++) a_runs[r] = r / each * d->a_jump + r % each * run;
    c.a_runs = a_runs;
    gni_parallel(g->pool, m->batch * c.blocks, 1 + GNI_CONV_TASK / work, gni_conv_dots_task, &c);
    gni_free(g, a_runs);
    return true;
}

// ---- the job

// A product on tiles, whose panels of b are packed from where the windows are; or one of the two above.
static bool gni_conv_choose(gn_context *g, const gni_conv *d, const gni_gemm *m, int64_t run) {
    const gni_gemm_isa *isa = gni_gemm_isa_of((int)g->isa);
    if (d->a_jump != 0) return gni_conv_dots_run(g, isa, d, m, run);
    run = gni_conv_run_length(d, m->b_cols);
    const bool rows = m->in == GN_F32 && m->a_cs == 1 && m->a_rs == m->k && d->m <= GNI_CONV_FEW && d->k <= GNI_CONV_CHAIN;
    if (!rows || run < (isa->f32->clip ? 4 : isa->f32->lanes))
        return gni_gemm_cpu(g, g->pool, g->gemm_work, (int)g->isa, m);
    gni_conv_views_run(g, isa, m, run);
    return true;
}

static bool gni_cpu_conv(gn_context *g, const void *job) {
    const gni_conv *d = (const gni_conv *)job;
    gni_gemm m;
    int64_t k_dim[4], run = 1;
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
    m.c = gni_operand_data(&d->c);
    m.c_rs = d->n;
    m.batch = d->batch_dim[0] * d->batch_dim[1];
    memcpy(k_dim, d->k_dim, sizeof k_dim);
    for (int i = 3; i > 0 && run == 1 && d->a_jump != 0; i--) { // where rows of images begin is enough
        run = k_dim[i];
        k_dim[i] = 1;
    }
    const size_t bytes = (size_t)(d->k / run + d->n + 3 * m.batch) * sizeof(int64_t);
    int64_t *off = (int64_t *)gni_alloc(g, bytes), *rows = off + 3 * m.batch, *cols = rows + d->k / run;
    if (g->gemm_work == NULL) g->gemm_work = (gni_gemm_work *)gni_calloc(g, sizeof(gni_gemm_work));
    bool ok = off != NULL && g->gemm_work != NULL;
    if (ok) {
        gni_conv_offsets(off, d->batch_dim, d->a_batch, 2);
        gni_conv_offsets(off + m.batch, d->batch_dim, d->b_batch, 2);
        for (int64_t q = 0; q < m.batch; q++) off[2 * m.batch + q] = q * d->m * d->n;
        if (d->k > 0) gni_conv_offsets(rows, k_dim, d->b_k, 4);
        gni_conv_offsets(cols, d->n_dim, d->b_n, 4);
        if (d->comb != 0) gni_conv_comb(d, d->a_jump != 0 ? cols : rows, d->a_jump != 0 ? d->n : d->k);
        m.a_off = off;
        m.b_off = off + m.batch;
        m.c_off = off + 2 * m.batch;
        m.b_rows = rows;
        m.b_cols = cols;
        ok = gni_conv_choose(g, d, &m, run);
    }
    if (!ok && !g->call_failed) gni_fail_memory(g, "convolution", bytes);
    gni_free(g, off);
    return ok;
}
