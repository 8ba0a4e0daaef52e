// >>gpu_attention
// Attention on the GPU: which of attention.comp's kernels, with which tiles, or attend.comp where there are no matrix units
// for it. Room `attention` has another way where these do not fit.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../gpu/gpu_tiles.h"
#endif

#if GNI_GPU

// Whether its rows are to be read in groups of 8, by 32 bits.
static bool gni_attend_reads(const gni_attend_job *a, const gni_operand *o, int64_t heads, int64_t rows, int64_t row) {
    int64_t reach = row;
    const int64_t dim[3] = {a->batches, heads, rows};
    for (int i = 0; i < 3; i++) {
        if (o->stride[i] % 8 != 0 || o->stride[i] < 0) return false;
        reach += (dim[i] - 1) * o->stride[i];
    }
    return o->offset % 8 == 0 && reach * (int64_t)gn_dtype_size(a->q.dtype) < GNI_GPU_REACH - 256;
}

// Of scores whose powers of 2 are taken.
static float gni_attend_scale(const gni_attend_job *a) { return (float)(a->scale * 1.4426950408889634); }

static bool gni_attend_on_units(const gni_gpu *gpu, const gni_attend_job *a) {
    const gni_gpu_caps *c = &gpu->caps;
    return gni_job_is_half(a->q.dtype) && gni_job_has_units(gpu, a->q.dtype) && c->shared_bytes >= 48 << 10 &&
           c->subgroup_vote && c->subgroup_shuffle;
}

static bool gni_job_attend_ok(const gni_gpu *gpu, const gni_attend_job *a) {
    const gn_dtype t = a->q.dtype;
    if (a->step == GNI_ATTEND_ALL) return false;
    for (int i = 0; i < 4 && a->mask.buf != NULL; i++)
        if (a->mask.stride[i] < 0) return false;
    if (!(gni_attend_scale(a) > 0.0f)) return false; // what is masked would not be the least
    if (t == GN_F64 || !gpu->caps.addresses) return false;
    if (gpu->caps.shared_bytes < (a->below > 0 ? 31u : 27u) << 10) return false;
    // On an H200 wider heads, which registers do not hold, are up to three times as fast in parts.
    if (a->d % 8 != 0 || a->e % 8 != 0 || a->d > 128 || a->e > 128 || a->d == 0 || a->e == 0) return false;
    if (a->heads > 65535 || a->batches > 65535 || a->n > INT32_MAX / 2 || a->m > INT32_MAX / 2 || a->m == 0) return false;
    const int64_t key_heads = a->heads / a->share;
    return gni_attend_reads(a, &a->q, a->heads, a->n, a->d) && gni_attend_reads(a, &a->k, key_heads, a->m, a->d) &&
           gni_attend_reads(a, &a->v, key_heads, a->m, a->e) && a->batches * a->heads * a->n < INT32_MAX / 4;
}

static bool gni_attend_put(gni_job_call *c, const gni_attend_job *a, const gni_operand *o, int at, int param, int64_t heads,
                           int64_t rows, int64_t row) {
    const int64_t dim[4] = {a->batches, heads, rows, row}, stride[4] = {o->stride[0], o->stride[1], o->stride[2], 1};
    uint32_t base;
    if (o->buf == NULL) return true;
    if (!gni_job_reach(c->gpu, o, dim, stride, 4, &c->use[at], &base)) return false;
    c->param[param] = base / 8;
    for (int i = 0; i < 3; i++) c->param[param + 1 + i] = (uint32_t)(o->stride[i] / 8);
    return true;
}

// The mask, and what dropout draws.
static bool gni_attend_put_rest(gni_job_call *c, const gni_attend_job *a) {
    const int64_t dim[4] = {a->batches, a->heads, a->n, a->m};
    const gni_operand *m = &a->mask;
    for (int i = 0; i < 4 && m->buf != NULL; i++) c->param[GNI_P_ATTEND_MASK + 1 + i] = (uint32_t)m->stride[i];
    memcpy(&c->param[GNI_P_ATTEND_KEY], &a->seed, 8);
    memcpy(&c->param[GNI_P_ATTEND_COUNTER], &a->counter, 8);
    c->param[GNI_P_ATTEND_BELOW] = a->below;
    memcpy(&c->param[GNI_P_ATTEND_KEEP], &a->keep, 4);
    return m->buf == NULL || gni_job_reach(c->gpu, m, dim, m->stride, 4, &c->use[8], &c->param[GNI_P_ATTEND_MASK]);
}

static uint32_t gni_attend_flags(const gni_attend_job *a) {
    return gni_job_flag(a->causal, GNI_F_ATTEND_CAUSAL) | gni_job_flag(a->lse.buf != NULL, GNI_F_ATTEND_LSE) |
           gni_job_flag(a->q.dtype == GN_BF16, GNI_F_ATTEND_BF16) | gni_job_flag(a->mask.buf != NULL, GNI_F_ATTEND_MASK) |
           gni_job_flag(a->mask.buf != NULL && a->mask.dtype == GN_BOOL, GNI_F_ATTEND_TRUTHS) |
           gni_job_flag(a->mask.buf != NULL && a->mask.stride[2] == 0, GNI_F_ATTEND_OF_KEYS) |
           gni_job_flag(a->below > 0, GNI_F_ATTEND_DROPS);
}

static bool gni_attend_put_row(gni_job_call *c, const gni_attend_job *a, const gni_operand *o, int at, int param) {
    const int64_t one = 1, all = a->batches * a->heads * a->n;
    return o->buf == NULL || gni_job_reach(c->gpu, o, &all, &one, 1, &c->use[at], &c->param[param]);
}

// Whether the units' sums and first operands have their elements in the same places, and whether these are where
// attention.comp knows them to be, and whether conversions cut off, as flags. Drivers do not tell: a kernel finds out, once.
// 0 where that cannot be waited for.
static uint32_t gni_attend_same(gni_gpu *gpu, gn_dtype t) {
    gni_gpu_jobs *ops = gni_job_state(gpu);
    uint8_t *known = ops != NULL ? &ops->attend_same[t == GN_BF16] : NULL;
    gni_job_call c;
    const uint32_t spec[GNI_S_ATTEND_SPECS] = {16, 16, GNI_F_ATTEND_ASKS | gni_job_flag(t == GN_BF16, GNI_F_ATTEND_BF16), 1,
                                               16};
    const uint32_t all = GNI_F_ATTEND_SAME | GNI_F_ATTEND_KNOWN | GNI_F_ATTEND_CUTS;
    uint32_t found = 0;
    if (known == NULL || *known != 0 || gpu->g->host_recording) return known != NULL ? *known & all : 0;
    gni_job_open(&c, gpu);
    if (!gni_job_scratch(&c, 512, "gn_attention")) return 0;
    for (c.n_use = 1; c.n_use < 5; c.n_use++) c.use[c.n_use] = c.use[0];
    c.param[GNI_P_ATTEND_N] = c.param[GNI_P_ATTEND_M] = c.param[GNI_P_ATTEND_SHARE] = 1;
    c.param[GNI_P_ATTEND_LSE] = 64;
    c.n_param = GNI_P_ATTEND_WORDS;
    c.generic.module = t == GN_BF16 ? GNI_MODULE_attend_bfloat : GNI_MODULE_attend_half;
    c.generic.subgroup = gpu->caps.subgroup_control ? 32 : 0;
    c.generic.n_spec = GNI_S_ATTEND_SPECS;
    memcpy(c.generic.spec, spec, sizeof spec);
    if (gni_gpu_fill(gpu, &c.scratch[0], 0, 512, 0) &&
        gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT), 1, 1, 1) &&
        gni_gpu_download(gpu, &c.scratch[0], 256, &found, sizeof found))
        *known = (uint8_t)((found & all) | GNI_F_ATTEND_ASKS);
    gni_job_drop_scratch(&c);
    return *known & all;
}

// By attend.comp, from what c has but for its kernel.
static bool gni_attend_plain(gni_job_call *c, const gni_attend_job *a) {
    const bool keys = a->step == GNI_ATTEND_KEYS;
    uint32_t *spec = c->generic.spec;
    c->generic.module = GNI_MODULE_attend;
    c->generic.n_spec = GNI_S_ATTEND_DTYPE + 1;
    spec[GNI_S_ATTEND_D] = (uint32_t)a->d;
    spec[GNI_S_ATTEND_E] = (uint32_t)a->e;
    spec[GNI_S_ATTEND_FLAGS] = gni_attend_flags(a);
    spec[GNI_S_ATTEND_STEP] = (uint32_t)a->step;
    spec[GNI_S_ATTEND_DTYPE] = (uint32_t)a->q.dtype;
    return gni_job_dispatch(c, gni_gpu_pipeline_get(c->gpu, &c->generic, GNI_GPU_WAIT),
                            gni_job_ceil(keys ? a->m : a->n, 64), keys ? a->heads / a->share : a->heads, a->batches);
}

static bool gni_job_attend(gni_gpu *gpu, const gni_attend_job *a) {
    gni_job_call c;
    const int64_t key_heads = a->heads / a->share;
    const bool forward = a->step == GNI_ATTEND_FORWARD, keys = a->step == GNI_ATTEND_KEYS, bfloat = a->q.dtype == GN_BF16;
    gni_job_open(&c, gpu);
    bool ok = gni_attend_put(&c, a, &a->q, 0, GNI_P_ATTEND_Q, a->heads, a->n, a->d) &&
              gni_attend_put(&c, a, &a->k, 1, GNI_P_ATTEND_K, key_heads, a->m, a->d) &&
              gni_attend_put(&c, a, &a->v, 2, GNI_P_ATTEND_V, key_heads, a->m, a->e) &&
              gni_attend_put_row(&c, a, &a->lse, 4, GNI_P_ATTEND_LSE) && gni_attend_put_rest(&c, a);
    c.n_use = a->mask.buf != NULL ? 9 : forward ? (a->lse.buf != NULL ? 5 : 4) : keys ? 8 : 7;
    if (forward)
        ok = ok && gni_attend_put(&c, a, &a->y, 3, GNI_P_ATTEND_Y, a->heads, a->n, a->e);
    else
        ok = ok && gni_attend_put(&c, a, &a->gy, 5, GNI_P_ATTEND_GY, a->heads, a->n, a->e) &&
             gni_attend_put_row(&c, a, &a->dot, 6, GNI_P_ATTEND_DOT);
    if (a->step == GNI_ATTEND_QUERIES) ok = ok && gni_attend_put(&c, a, &a->dq, 3, GNI_P_ATTEND_Y, a->heads, a->n, a->d);
    if (keys)
        ok = ok && gni_attend_put(&c, a, &a->dk, 3, GNI_P_ATTEND_Y, key_heads, a->m, a->d) &&
             gni_attend_put(&c, a, &a->dv, 7, GNI_P_ATTEND_DV, key_heads, a->m, a->e);
    if (!ok) return false;
    // What gni_job_reach fills is read, until something else is said.
    c.use[3].write = true;
    c.use[4].write = forward && a->lse.buf != NULL;
    c.use[7].write = keys;
    c.param[GNI_P_ATTEND_N] = (uint32_t)a->n;
    c.param[GNI_P_ATTEND_M] = (uint32_t)a->m;
    c.param[GNI_P_ATTEND_SHARE] = (uint32_t)a->share;
    const float scale = gni_attend_scale(a);
    memcpy(&c.param[GNI_P_ATTEND_SCALE], &scale, 4);
    c.n_param = GNI_P_ATTEND_WORDS;
    if (!gni_attend_on_units(gpu, a)) return gni_attend_plain(&c, a);
    // What registers hold of a subgroup's rows, and shared memory of the others', twice.
    const bool wide = a->d > 64 || a->e > 64;
    // Half the rows, where there are few workgroups otherwise, or most of what a causal one goes through is hidden from
    // some.
    const int64_t all_rows = keys ? a->m : a->n, all_heads = (keys ? key_heads : a->heads) * a->batches,
                  groups = gni_job_ceil(all_rows, 128) * all_heads;
    const int blocks = wide || groups <= (int64_t)gpu->caps.multiprocessors || (a->causal && all_rows <= 256) ? 1 : 2;
    static const int modules[3][2] = {{GNI_MODULE_attend_half, GNI_MODULE_attend_bfloat},
                                      {GNI_MODULE_attend_half_queries, GNI_MODULE_attend_bfloat_queries},
                                      {GNI_MODULE_attend_half_keys, GNI_MODULE_attend_bfloat_keys}};
    c.generic.module = modules[a->step][bfloat];
    c.generic.subgroup = gpu->caps.subgroup_control ? 32 : 0;
    c.generic.n_spec = GNI_S_ATTEND_SPECS;
    c.generic.spec[GNI_S_ATTEND_D] = (uint32_t)a->d;
    c.generic.spec[GNI_S_ATTEND_E] = (uint32_t)a->e;
    c.generic.spec[GNI_S_ATTEND_BLOCKS] = (uint32_t)blocks;
    c.generic.spec[GNI_S_ATTEND_KEYS] = wide ? 32 : 64;
    c.generic.spec[GNI_S_ATTEND_FLAGS] = gni_attend_same(gpu, a->q.dtype) | gni_attend_flags(a);
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT),
                            gni_job_ceil(all_rows, 64 * blocks), keys ? key_heads : a->heads, a->batches);
}

#endif // GNI_GPU
