// >>gpu_factor
// Steps of matrix decompositions on the GPU that are no products: gni_factor, factor.comp.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../gpu/gpu_eigen.h"
#include "../gpu/gpu_reflect.h"
#endif

#if GNI_GPU

static bool gni_job_factor_reaches(const gni_gpu *gpu, const gni_operand *o) {
    if (o->buf == NULL) return true;
    return o->buf->bytes < (uint64_t)GNI_GPU_REACH &&
           (gpu->caps.addresses || o->buf->bytes <= gpu->caps.max_storage_range);
}

// The largest order of a matrix that GNI_FACTOR_CHOLESKY and those behind it take.
static int64_t gni_factor_most(gn_dtype t) { return t == GN_F64 ? 64 : 128; }

static bool gni_job_factor_ok(const gni_gpu *gpu, const gni_factor *f) {
    const gni_gpu_caps *c = &gpu->caps;
    if (f->step >= GNI_FACTOR_SIZE) return gni_job_reflect_ok(gpu, f);
    if (f->step >= GNI_FACTOR_SINGULAR) return gni_job_eigen_ok(gpu, f);
    const bool wide = f->a.dtype == GN_F64;
    if (!(wide ? c->float64 : f->a.dtype == GN_F32) || !c->subgroup_arithmetic) return false;
    if (c->max_buffers < 4 || c->shared_bytes < 32768u || c->max_invocations < 256) return false;
    if (f->order > gni_factor_most(f->a.dtype)) return false;
    if (!c->addresses && f->step >= GNI_FACTOR_CHOLESKY) return false;
    return gni_job_factor_reaches(gpu, &f->a) && gni_job_factor_reaches(gpu, &f->b) &&
           gni_job_factor_reaches(gpu, &f->c) && gni_job_factor_reaches(gpu, &f->d);
}

static void gni_job_factor_use(gni_gpu_use *use, const gni_operand *o, bool write) {
    use->mem = &o->buf->device;
    use->offset = 0;
    use->bytes = o->buf->bytes;
    use->write = write;
}

static bool gni_job_factor_run(gni_gpu *gpu, const gni_factor *f, int module, const int64_t *word,
                               int64_t groups) {
    gni_job_call c;
    memset(&c, 0, sizeof c);
    c.gpu = gpu;
    const bool alone = f->step >= GNI_FACTOR_CHOLESKY, back = f->step == GNI_FACTOR_BACK;
    const int64_t most = (int64_t)gpu->caps.max_groups[0];
    gni_job_factor_use(&c.use[0], &f->a, !alone);
    gni_job_factor_use(&c.use[1], &f->b,
                       f->step != GNI_FACTOR_SOLVE && f->step != GNI_FACTOR_UPDATE);
    gni_job_factor_use(&c.use[2], &f->c, alone ? !back : f->step == GNI_FACTOR_PICK);
    if (alone) gni_job_factor_use(&c.use[3], f->d.buf != NULL ? &f->d : &f->c, !back);
    c.n_use = alone ? 4 : 3;
    c.n_param = GNI_FACTOR_WORDS;
    for (int i = 0; i < GNI_FACTOR_WORDS; i++) c.param[i] = (uint32_t)word[i];
    c.generic.module = module;
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT), groups,
                            gni_job_ceil(groups, most), 1);
}

// How many tiles c has.
static int64_t gni_job_factor_tiles(const gni_factor *f, int64_t size) {
    const int64_t m = gni_job_ceil(f->word[GNI_P_UPDATE_M], size),
                  n = gni_job_ceil(f->word[GNI_P_UPDATE_N], size);
    return f->word[GNI_P_UPDATE_LOWER] != 0 ? m * (m + 1) / 2 : m * n;
}

// The kernel for matrices of this order, and how many workgroups that takes.
static int gni_job_small(const gni_factor *f, int64_t *groups) {
#define GNI_X(type, step)                                                                          \
    {                                                                                              \
        GNI_MODULE_##type##_##step##_16, GNI_MODULE_##type##_##step##_32,                          \
            GNI_MODULE_##type##_##step##_64                                                        \
    }
    static const int modules[2][4][3] = {
        {GNI_X(factor, cholesky), GNI_X(factor, lu), GNI_X(factor, back), GNI_X(factor, qr)},
        {GNI_X(factor64, cholesky), GNI_X(factor64, lu), GNI_X(factor64, back),
         GNI_X(factor64, qr)}};
#undef GNI_X
    static const int largest[4] = {GNI_MODULE_factor_cholesky_128, GNI_MODULE_factor_lu_128,
                                   GNI_MODULE_factor_back_128, GNI_MODULE_factor_qr_128};
    const int wide = f->a.dtype == GN_F64, step = (int)f->step - (int)GNI_FACTOR_CHOLESKY;
    const int size = f->order <= 16 ? 0 : f->order <= 32 ? 1 : f->order <= 64 ? 2 : 3;
    *groups = f->items;
    if (f->step == GNI_FACTOR_BACK)
        *groups *= gni_job_ceil(f->word[GNI_P_SMALL_MORE], 32);
    else if (size == 0)
        *groups = gni_job_ceil(f->items, 2);
    return size == 3 ? largest[step] : modules[wide][step][size];
}

static bool gni_job_factor(gni_gpu *gpu, const gni_factor *f) {
    static const int modules[2][6] = {
        {GNI_MODULE_factor_pick, GNI_MODULE_factor_swap, GNI_MODULE_factor_below,
         GNI_MODULE_factor_solve, GNI_MODULE_factor_root, GNI_MODULE_factor_update},
        {GNI_MODULE_factor64_pick, GNI_MODULE_factor64_swap, GNI_MODULE_factor64_below,
         GNI_MODULE_factor64_solve, GNI_MODULE_factor64_root, GNI_MODULE_factor64_update}};
    const bool wide = f->a.dtype == GN_F64;
    int64_t groups = 1;
    if (f->items == 0) return true;
    if (f->step == GNI_FACTOR_SIZE) return gni_job_reflect_size(gpu, f);
    if (f->step == GNI_FACTOR_LOAD) return gni_job_reflect_load(gpu, f);
    if (f->step == GNI_FACTOR_REFLECT) return gni_job_reflect(gpu, f);
    if (f->step >= GNI_FACTOR_SINGULAR) return gni_job_eigen(gpu, f);
    if (f->step >= GNI_FACTOR_CHOLESKY) {
        const int module = gni_job_small(f, &groups);
        return gni_job_factor_run(gpu, f, module, f->word, groups);
    }
    int module = modules[wide][f->step];
    if (f->step == GNI_FACTOR_PICK) {
        const bool little = gpu->caps.kind == GNI_GPU_CPU || gpu->caps.subgroup_min < 32;
        if (little) module = wide ? GNI_MODULE_factor64_pick_little : GNI_MODULE_factor_pick_little;
        groups = gni_job_ceil(f->items, little ? 128 : 512);
    } else if (f->step == GNI_FACTOR_SOLVE) {
        groups = gni_job_ceil(f->items, wide ? 16 : 32);
    } else if (f->step == GNI_FACTOR_UPDATE) {
        groups = gni_job_factor_tiles(f, 128);
        if (!wide && groups >= 2 * (int64_t)gpu->caps.multiprocessors)
            module = GNI_MODULE_factor_update_128;
        else
            groups = gni_job_factor_tiles(f, 64);
    } else if (f->step != GNI_FACTOR_ROOT) {
        groups = gni_job_ceil(f->items, f->step == GNI_FACTOR_BELOW ? 32 : 64);
    }
    return gni_job_factor_run(gpu, f, module, f->word, groups);
}

#endif // GNI_GPU
