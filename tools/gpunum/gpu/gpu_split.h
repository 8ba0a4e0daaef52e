// >>gpu_split
// GN_PRECISION_HIGH, float32 products on matrix units: operands as sums of float16 numbers, or of bfloat16
// ones where rows span too much, products of the parts summed in float32 outside of the units. Only the device
// knows what the operands hold, so everything that may be needed is recorded, and what the scan does not
// choose ends at once.
// tools/shaders/split.comp tells the scheme, tools/matmul_error.c what it is worth.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../gpu/gpu_matmul.h"
#endif

#if GNI_GPU

// Kernels of both modes for one size of tile: mode 0's figures, mode 1's module.
typedef struct gni_job_split_tile {
    gni_job_tile tile;
    int module3;
} gni_job_split_tile;

static const gni_job_split_tile gni_job_split_tiles[] = {
    {{GNI_MODULE_matmul_split_128x128, 128, 128, 32, 40964, 470, 315, 2, 96, true},
     GNI_MODULE_matmul_split3_128x128},
};

// An operand on its way into parts: a, or b with rows and columns exchanged.
typedef struct gni_job_split_side {
    int64_t rows, padded, batches; // batches 1 where all are the same
    int64_t step_row, step;        // strides
    const int64_t *batch;
    uint32_t base, info, layout;   // info: first word of the rows' magnitudes
    int64_t groups, pieces, piece; // the scan's grid, and its part of k
    gni_gpu_use use, packed;
} gni_job_split_side;

typedef struct gni_job_split {
    gni_job_call *c;
    const gni_matmul *m;
    const gni_job_tile *tile;
    int module3;
    int64_t batches, splits, slices;
    gni_job_split_side side[2];
    gni_gpu_mem mem;
    gni_gpu_use control;
    int force;
} gni_job_split;

static bool gni_job_split_side_init(gni_job_split *p, int i) {
    const gni_matmul *m = p->m;
    gni_job_split_side *s = &p->side[i];
    bool same = true;
    s->batch = i == 0 ? m->a_batch : m->b_batch;
    s->rows = i == 0 ? m->m : m->n;
    s->step_row = i == 0 ? m->a_rs : m->b_cs;
    s->step = i == 0 ? m->a_cs : m->b_rs;
    s->base = p->c->param[i == 0 ? GNI_P_MATMUL_A_BASE : GNI_P_MATMUL_B_BASE];
    s->use = p->c->use[i];
    for (int d = 0; d < m->batch_rank; d++)
        if (m->batch_dim[d] > 1 && s->batch[d] != 0) same = false;
    s->batches = same ? 1 : p->batches;
    int64_t unit = i == 0 ? p->tile->bm : p->tile->bn;
    s->padded = gni_job_ceil(s->rows, unit) * unit;
    uint32_t layout = gni_job_operand_layout(s->rows, s->step_row, m->k, s->step, s->base,
                                             gni_job_batch_even(m, s->batch, 4), 4);
    s->layout = gni_job_flag(layout & GNI_JOB_ALONG_M, GNI_F_SPLIT_ALONG_ROWS) |
                gni_job_flag(layout & GNI_JOB_GROUPS, GNI_F_SPLIT_GROUPS);
    s->groups = gni_job_ceil(s->rows, layout & GNI_JOB_ALONG_M ? 64 : 16);
    int64_t want = gni_job_enough(p->c->gpu) / GNI_MAX(s->groups * s->batches, 1);
    want = GNI_MAX(GNI_MIN(want, m->k / 256), 1);
    s->piece = gni_job_ceil(gni_job_ceil(m->k, want), 256) * 256;
    s->pieces = gni_job_ceil(m->k, s->piece);
    return s->batches * s->padded * p->slices * 96 < GNI_GPU_REACH && s->batches < 65536 &&
           s->groups * s->pieces * s->batches < INT32_MAX / 2;
}

// One piece of memory for everything: control words, magnitudes, parts of a, parts of b.
static bool gni_job_split_room(gni_job_split *p) {
    uint64_t words = GNI_SPLIT_CONTROL;
    for (int i = 0; i < 2; i++) {
        p->side[i].info = (uint32_t)words;
        words += (uint64_t)(2 * p->side[i].batches * p->side[i].padded);
    }
    if (words >= (uint64_t)GNI_GPU_REACH / 4) return false;
    uint64_t control = (words * 4 + 255u) & ~(uint64_t)255u, size = control;
    for (int i = 0; i < 2; i++) {
        gni_job_split_side *s = &p->side[i];
        s->packed.mem = &p->mem;
        s->packed.offset = size;
        s->packed.bytes = (uint64_t)(s->batches * s->padded * p->slices) * 96u;
        size += s->packed.bytes;
    }
    p->control.mem = &p->mem;
    p->control.bytes = control;
    return gni_gpu_alloc(p->c->gpu, size, &p->mem) &&
           gni_gpu_fill(p->c->gpu, &p->mem, 0, control, 0);
}

// What split_scan and split_pack are told about one operand.
static bool gni_job_split_side_run(const gni_job_split *p, int i, bool pack, bool bfloat) {
    gni_job_call c;
    const gni_matmul *m = p->m;
    const gni_job_split_side *s = &p->side[i], *a = &p->side[0], *b = &p->side[1];
    memset(&c, 0, sizeof c);
    c.gpu = p->c->gpu;
    c.generic.module = pack ? GNI_MODULE_split_pack : GNI_MODULE_split_scan;
    c.generic.n_spec = GNI_S_SPLIT_SPECS;
    c.generic.spec[GNI_S_SPLIT_LAYOUT] = s->layout;
    c.use[0] = s->use;
    c.use[5] = p->control;
    c.use[5].write = !pack;
    if (pack) {
        c.use[2] = s->packed;
        c.use[2].write = true;
    }
    c.n_use = 6;
    uint32_t *q = c.param;
    q[GNI_P_SPLIT_ROWS] = (uint32_t)s->rows;
    q[GNI_P_SPLIT_LENGTH] = (uint32_t)m->k;
    q[GNI_P_SPLIT_BASE] = s->base;
    q[GNI_P_SPLIT_STEP_ROW] = (uint32_t)s->step_row;
    q[GNI_P_SPLIT_STEP] = (uint32_t)s->step;
    q[GNI_P_SPLIT_PADDED] = (uint32_t)s->padded;
    q[GNI_P_SPLIT_SLICES] = (uint32_t)p->slices;
    q[GNI_P_SPLIT_INFO] = s->info;
    q[GNI_P_SPLIT_PIECE] = (uint32_t)s->piece;
    q[GNI_P_SPLIT_WORKGROUPS] = (uint32_t)(a->groups * a->pieces * a->batches + b->groups * b->pieces * b->batches);
    q[GNI_P_SPLIT_FIRST_INFO] = GNI_SPLIT_CONTROL;
    q[GNI_P_SPLIT_TOTAL_A] = (uint32_t)(a->padded * a->batches);
    q[GNI_P_SPLIT_TOTAL_B] = (uint32_t)(b->padded * b->batches);
    q[GNI_P_SPLIT_LEAST_MODE] = (uint32_t)GNI_MAX(p->force - 1, 0);
    q[GNI_P_SPLIT_RANK] = s->batches > 1 ? (uint32_t)m->batch_rank : 0u;
    q[GNI_P_SPLIT_BFLOAT] = bfloat;
    for (int d = 0; d < m->batch_rank; d++) {
        q[GNI_P_SPLIT_DIM + 2 * d] = (uint32_t)m->batch_dim[d];
        q[GNI_P_SPLIT_DIM + 2 * d + 1] = (uint32_t)s->batch[d];
    }
    c.n_param = GNI_P_SPLIT_WORDS;
    int64_t x = pack ? s->padded / 32 : s->groups,
            y = pack ? GNI_MIN(gni_job_ceil(p->slices, 4), 65535) : s->pieces;
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(c.gpu, &c.generic, GNI_GPU_WAIT), x, y,
                            s->batches);
}

// A call of matmul_half.comp on what was packed.
static gni_job_call gni_job_split_call(const gni_job_split *p, int module, int64_t row) {
    gni_job_call c = *p->c;
    c.generic.module = module;
    c.generic.n_spec = GNI_S_MATMUL_SPECS;
    c.generic.subgroup = c.gpu->caps.subgroup_control ? 32 : 0;
    c.generic.spec[GNI_S_MATMUL_A_DTYPE] = c.generic.spec[GNI_S_MATMUL_B_DTYPE] = GN_F32;
    c.generic.spec[GNI_S_MATMUL_C_DTYPE] = (uint32_t)p->m->c.dtype;
    c.generic.spec[GNI_S_MATMUL_LAYOUT] = gni_job_store_layout(&c, p->m, row);
    c.param[GNI_P_MATMUL_C_ROW] = (uint32_t)row;
    uint32_t *q = c.param;
    q[GNI_P_PARTS_PADDED_M] = (uint32_t)p->side[0].padded;
    q[GNI_P_PARTS_PADDED_N] = (uint32_t)p->side[1].padded;
    q[GNI_P_PARTS_SLICES] = (uint32_t)p->slices;
    q[GNI_P_PARTS_A_PACKED] = (uint32_t)p->side[0].batches;
    q[GNI_P_PARTS_B_PACKED] = (uint32_t)p->side[1].batches;
    q[GNI_P_PARTS_A_INFO] = p->side[0].info;
    q[GNI_P_PARTS_B_INFO] = p->side[1].info;
    c.n_param = GNI_P_PARTS_WORDS;
    return c;
}

static bool gni_job_split_product(const gni_job_split *p, int mode, int64_t row) {
    gni_job_call c = gni_job_split_call(p, mode == 0 ? p->tile->module : p->module3, row);
    int64_t down = p->side[0].padded / p->tile->bm, across = p->side[1].padded / p->tile->bn,
            tiles = down * across * p->batches, splits = p->splits;
    c.param[GNI_P_MATMUL_TILES_M] = (uint32_t)down;
    c.param[GNI_P_MATMUL_TILES_N] = (uint32_t)across;
    bool ok = gni_job_split_k(&c, p->m->k, p->tile->bk, splits, tiles,
                              (int64_t)p->tile->bm * p->tile->bn * 4,
                              tiles * gni_job_join_counters(splits), &splits);
    if (splits > 1) c.generic.spec[GNI_S_MATMUL_LAYOUT] |= GNI_F_MATMUL_SPLITS;
    for (int i = 0; i < 2; i++) c.use[i] = p->side[i].packed;
    c.use[6] = p->control;
    c.n_use = 7;
    ok = ok && gni_job_dispatch(&c, gni_gpu_pipeline_get(c.gpu, &c.generic, GNI_GPU_WAIT),
                                down * across, splits, p->batches);
    gni_job_drop_scratch(&c);
    return ok;
}

static bool gni_job_split_patch(const gni_job_split *p, int64_t row) {
    gni_job_call c = gni_job_split_call(p, GNI_MODULE_matmul_patch, row);
    c.generic.subgroup = 0;
    c.use[6] = p->control;
    c.n_use = 7;
    int64_t units = GNI_MAX(gni_job_ceil(p->m->n, 4), p->m->m);
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(c.gpu, &c.generic, GNI_GPU_WAIT),
                            GNI_MIN(gni_job_ceil(units, 8), 32), 2 * GNI_SPLIT_PATCHES,
                            p->batches);
}

// Microseconds that the scan and the packing take, with what is recorded in vain.
static double gni_job_split_overhead(const gni_job_split *p) {
    double bytes = 0.0;
    for (int i = 0; i < 2; i++)
        bytes += 12.0 * (double)p->side[i].batches * (double)p->side[i].rows * (double)p->m->k;
    return 25.0 + bytes / 2.6e6;
}

// Whether the kernels can do it.
static bool gni_job_split_fits(const gni_job_split *p) {
    const gni_matmul *m = p->m;
    const gni_gpu *gpu = p->c->gpu;
    if (m->a.dtype != GN_F32 || m->b.dtype != GN_F32 || p->force < 0) return false;
    return gni_job_has_units(gpu, GN_F16) && gpu->caps.max_buffers >= 7 && m->m > 1 && m->n > 1 &&
           m->k > 0 && p->batches < 65536 && p->tile->shared <= gpu->caps.shared_bytes;
}

// Whether they are faster than the exact ones, and the number of parts of k.
static bool gni_job_split_pays(gni_job_split *p) {
    const gni_gpu *gpu = p->c->gpu;
    double least = 0.0;
    for (int64_t s = 1; s <= 64 && (s == 1 || p->m->k >= s * 8 * p->tile->bk); s *= 2) {
        double time = gni_job_tile_time(gpu, p->tile, p->m, p->batches, s);
        if (s > 1 && time >= least) continue;
        least = time;
        p->splits = s;
    }
    if (p->force > 0) return true;
    // Parts hold an element to 2^-23 and not to 2^-24, which shorter sums would show.
    if (p->m->k < 512) return false;
    int64_t splits;
    const gni_job_tile *exact = gni_job_pick_tile(gpu, p->m, p->batches, &splits);
    return least + gni_job_split_overhead(p) <
           gni_job_tile_time(gpu, exact, p->m, p->batches, splits);
}

// How it is to be done; false where the exact kernels are better.
static bool gni_job_split_plan(gni_job_split *p, gni_job_call *c, const gni_matmul *m,
                               int64_t batches) {
    gni_gpu_jobs *ops = gni_job_state(c->gpu);
    memset(p, 0, sizeof *p);
    p->c = c;
    p->m = m;
    p->batches = batches;
    p->force = ops ? ops->split_force : 0;
    if (p->force == 0 && c->gpu->g->precision != GN_PRECISION_HIGH) return false;
    p->tile = &gni_job_split_tiles[0].tile;
    p->module3 = gni_job_split_tiles[0].module3;
    p->splits = 1;
    p->slices = gni_job_ceil(m->k, p->tile->bk) * (p->tile->bk / 16);
    return gni_job_split_fits(p) && gni_job_split_side_init(p, 0) &&
           gni_job_split_side_init(p, 1) && gni_job_split_pays(p);
}

// What is recorded for a product that is planned; `c` writes m's result.
static bool gni_job_split_run(gni_job_split *p, int64_t row) {
    gni_job_call *c = p->c;
    bool bfloat = gni_job_has_units(c->gpu, GN_BF16), ok = true;
    for (int i = 0; i < 4; i++) ok = ok && gni_job_split_side_run(p, i & 1, i > 1, bfloat);
    for (int mode = 0; mode < 1 + bfloat; mode++) ok = ok && gni_job_split_product(p, mode, row);
    gni_job_call exact = *c;
    exact.spare = p->control;
    return ok && gni_job_matmul_tiled(&exact, p->m, p->batches, row) && gni_job_split_patch(p, row);
}

// False: the exact kernel has to do it. `ok` says how it went otherwise. A program at the store and the sums of b's
// columns are passes of their own.
static bool gni_job_matmul_split(gni_job_call *c, const gni_matmul *m, int64_t batches, int64_t row,
                                 bool *ok) {
    gni_job_split p;
    gni_job_apart apart;
    gni_gpu *gpu = c->gpu;
    if (!gni_job_split_plan(&p, c, m, batches)) return false;
    if (!gni_job_split_room(&p)) {
        gni_gpu_free(gpu, &p.mem);
        return false;
    }
    gni_log(gpu->g, GN_LOG_DEBUG, "gn_matmul: kernel %s, %d part%s of k",
            gni_modules[p.tile->module].name, (int)p.splits, p.splits > 1 ? "s" : "");
    *ok = true;
    if (m->fused) {
        int64_t size[1] = {batches * m->m * m->n}, step[1];
        step[0] = 1;
        *ok = gni_job_apart_begin(gpu, m, &apart);
        *ok = *ok && gni_job_reach(gpu, &apart.plain.c, size, step, 1, &c->use[2],
                                   &c->param[GNI_P_MATMUL_C_BASE]);
        c->use[2].write = true;
    } else {
        apart.plain = *m;
        apart.plain.sums.buf = NULL;
    }
    p.m = &apart.plain;
    *ok = *ok && gni_job_split_run(&p, row);
    gni_gpu_free(gpu, &p.mem);
    if (m->fused) *ok = gni_job_apart_end(gpu, &apart, *ok);
    if (m->sums.buf != NULL) *ok = *ok && gni_job_sums_run(gpu, m);
    return true;
}

#endif // GNI_GPU
