// >>gpu_recur
// The steps of recurrent networks on the GPU, a dispatch each: recur.comp, or recur_half.comp on matrix units. From outside:
// gni_job_recurrence_ok and gni_job_recurrence.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../gpu/gpu_tiles.h"
#endif

#if GNI_GPU

// Above this many products in a step, three times as many back, matrix products are faster.
#define GNI_RECUR_MOST ((int64_t)48 << 20)

static bool gni_job_recurrence_ok(const gni_gpu *gpu, const gni_recurrence *r) {
    const double work = (double)r->batch * (double)r->h * (double)r->h * 4.0;
    bool ok = gpu->caps.addresses && gpu->caps.max_invocations >= 256;
    if (r->half != GN_F32)
        ok = ok && r->h % 16 == 0 && gpu->caps.shared_bytes >= 32 << 10 && gni_job_has_units(gpu, r->half);
    else
        ok = ok && r->h % 4 == 0 && work <= (double)GNI_RECUR_MOST * (r->back ? 3.0 : 1.0);
    for (int i = 0; i < 6 && ok; i++) ok = r->in[i].buf == NULL || r->in[i].buf->bytes < (uint64_t)GNI_GPU_REACH;
    for (int i = 0; i < 4 && ok; i++) ok = r->out[i].buf == NULL || r->out[i].buf->bytes < (uint64_t)GNI_GPU_REACH;
    return ok;
}

// Buffer k of the kernel: from element `at` of the operand on.
static void gni_job_recur_use(gni_job_call *c, int k, const gni_operand *o, int64_t at, bool write) {
    gni_gpu_use *use = &c->use[k];
    use->mem = &o->buf->device;
    use->bytes = o->buf->bytes;
    use->write = write;
    c->param[GNI_P_RECUR_BASE + k] = (uint32_t)(o->offset + at);
}

// Tiles of the i-th step to be done, and of the one done before.
static void gni_job_recur_tiles(gni_job_call *c, const gni_recurrence *r, int64_t i) {
    const int64_t all = gni_job_ceil(r->batch, 16) * 16 * r->h * (r->back ? r->lstm ? 4 : 3 : 1);
    gni_job_recur_use(c, 2, i == 0 && !r->back ? &r->in[5] : &r->out[3], i > 0 ? (i - 1) % 2 * all : 0, false);
    gni_job_recur_use(c, 8, &r->out[3], i % 2 * all, true);
    c->n_use = 9;
}

// Step t, after which t - 1 or t + 1 are done: `last` of them, outside where there is none.
static void gni_job_recur_forward(gni_job_call *c, const gni_recurrence *r, int64_t t, int64_t last, bool ends) {
    const int64_t step = r->batch * r->h, gates = (r->lstm ? 4 : 3) * step, end = r->n * step;
    const bool first = last < 0 || last >= r->n;
    const gni_operand *y = &r->out[0], *state = r->keep && r->lstm ? &r->out[2] : y; // c without a gradient: behind all h
    const bool apart = state != y;
    gni_job_recur_use(c, 0, &r->in[0], t * gates, false);
    gni_job_recur_use(c, 1, &r->in[1], 0, false);
    gni_job_recur_use(c, r->half != GN_F32 ? 7 : 2, first ? &r->in[2] : y, first ? 0 : last * step, false);
    if (!r->lstm || first) gni_job_recur_use(c, 3, &r->in[3], 0, false);
    else gni_job_recur_use(c, 3, state, apart ? last * step : end, false);
    gni_job_recur_use(c, 4, y, t * step, true);
    gni_job_recur_use(c, 5, r->keep ? &r->out[1] : y, t * gates, true);
    gni_job_recur_use(c, 6, state, apart ? t * step : r->lstm ? end : 0, true);
    c->param[GNI_P_RECUR_LAST] = (uint32_t)(y->offset + end);
    c->param[GNI_P_RECUR_FLAGS] = gni_job_flag(r->keep, GNI_RECUR_KEEPS) | gni_job_flag(ends && r->lstm, GNI_RECUR_LAST) |
                                  gni_job_flag(r->bias, GNI_RECUR_BIAS);
    c->n_use = 7;
}

// Step t, or with t < 0 or t >= n what is behind all: the first state's derivative.
static void gni_job_recur_back(gni_job_call *c, const gni_recurrence *r, int64_t t, int64_t last, bool first) {
    const int64_t step = r->batch * r->h, gates = (r->lstm ? 4 : 3) * step;
    const bool ends = t < 0 || t >= r->n, begins = last < 0 || last >= r->n;
    const int64_t at = ends ? 0 : t, behind = r->reversed ? t - 1 : t + 1;
    gni_job_recur_use(c, 0, &r->in[0], at * step, false);
    gni_job_recur_use(c, 1, &r->in[1], 0, false);
    gni_job_recur_use(c, 2, &r->out[0], first ? 0 : behind * 4 * step, false);
    gni_job_recur_use(c, 3, &r->in[2], at * gates, false);
    gni_job_recur_use(c, 4, &r->in[3], at * step, false);
    if (!r->lstm) gni_job_recur_use(c, 5, &r->in[4], at * step, false);
    else gni_job_recur_use(c, 5, begins ? &r->in[4] : &r->in[3], begins ? 0 : last * step, false);
    gni_job_recur_use(c, 6, &r->out[1], 0, true);
    gni_job_recur_use(c, 7, &r->out[ends ? 2 : 0], at * 4 * step, true);
    c->param[GNI_P_RECUR_LAST] = (uint32_t)(r->in[0].offset + r->n * step);
    c->param[GNI_P_RECUR_FLAGS] = gni_job_flag(first, GNI_RECUR_FIRST) | gni_job_flag(ends, GNI_RECUR_LAST);
    c->n_use = 8;
}

// For recur_half.comp: how many subgroups share a sum and how many tiles of rows each has, so that there are many workgroups.
// How many tiles of rows a workgroup has.
static int64_t gni_job_recur_split(const gni_gpu *gpu, const gni_recurrence *r, uint32_t *spec) {
    const int64_t units = r->h / 16, blocks = gni_job_ceil(r->batch, 16), many = units * (!r->back ? 1 : r->lstm ? 4 : 3);
    const int64_t enough = GNI_MAX((int64_t)gpu->caps.multiprocessors, 16);
    int64_t tiles = r->back ? 4 : 1, groups = 1;
    while (tiles > 1 && units * gni_job_ceil(blocks, tiles) < enough / 2) tiles /= 2;
    while (tiles * groups < 4 && units * gni_job_ceil(blocks, tiles * groups) > enough) groups *= 2;
    const int64_t split = 8 / groups, share = many % split == 0 ? many / split : 1;
    spec[GNI_S_RECUR_BACK] = r->back;
    spec[GNI_S_RECUR_DTYPE] = (uint32_t)r->half;
    spec[GNI_S_RECUR_SPLIT] = (uint32_t)split;
    spec[GNI_S_RECUR_TILES] = (uint32_t)tiles;
    spec[GNI_S_RECUR_AHEAD] = share % 4 == 0 ? 4 : share % 2 == 0 ? 2 : 1;
    return tiles * groups;
}

static bool gni_job_recurrence(gni_gpu *gpu, const gni_recurrence *r) {
    int64_t units = 8, rows = 16;
    GNI_ZEROED(gni_job_call, c);
    c.gpu = gpu;
    c.n_param = GNI_P_RECUR_WORDS;
    c.param[GNI_P_RECUR_BATCH] = (uint32_t)r->batch;
    c.param[GNI_P_RECUR_H] = (uint32_t)r->h;
    c.generic.module = r->back ? GNI_MODULE_recur_back : GNI_MODULE_recur;
    c.generic.n_spec = GNI_S_RECUR_SPECS;
    c.generic.spec[GNI_S_RECUR_LSTM] = r->lstm;
    if (r->half != GN_F32) {
        c.generic.module = r->half == GN_BF16 ? GNI_MODULE_recur_bfloat : GNI_MODULE_recur_half;
        c.generic.subgroup = gpu->caps.subgroup_control ? 32 : 0;
        c.generic.n_spec = GNI_S_RECUR_HALF_SPECS;
        rows = 16 * gni_job_recur_split(gpu, r, c.generic.spec);
        units = 16;
    }
    gni_gpu_pipeline *pipeline = gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT);
    bool ok = pipeline != NULL;
    for (int64_t i = 0; i < r->n + r->back && ok; i++) {
        const int64_t t = r->reversed != r->back ? r->n - 1 - i : i, before = r->reversed ? t + 1 : t - 1;
        if (r->back) gni_job_recur_back(&c, r, t, before, i == 0);
        else gni_job_recur_forward(&c, r, t, before, i == r->n - 1);
        if (r->half != GN_F32) gni_job_recur_tiles(&c, r, i);
        ok = gni_job_dispatch(&c, pipeline, gni_job_ceil(r->h, units), gni_job_ceil(r->batch, rows), 1);
    }
    return ok;
}

#endif // GNI_GPU
