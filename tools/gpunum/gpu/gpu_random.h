// >>gpu_random
// Random numbers on a GPU: random.comp, draw.comp. From outside: gni_job_random_ok and gni_job_random.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu_random.h"
#include "../gpu/gpu_jobs.h"
#endif

#if GNI_GPU

// What takes float64 or int64, which draw.comp has.
static bool gni_job_is_draw(const gni_random *r) {
    if (r->kind >= GNI_RAND_EXPONENTIAL) return true;
    const gn_dtype t = r->out.dtype;
    return t == GN_F64 || (r->kind == GNI_RAND_RANGE && r->range > (uint64_t)1 << 32);
}

static bool gni_job_random_ok(const gni_gpu *gpu, const gni_random *r) {
    if (gni_job_is_draw(r)) {
        if (!gpu->caps.addresses || !gpu->caps.float64 || !gpu->caps.int64) return false;
        if (r->kind == GNI_RAND_TRUNCATED && r->numbers[GNI_D_WAY] > (double)GNI_CUT_NORMAL) return false;
        if (r->kind == GNI_RAND_STEPS) return true;
        if (r->kind == GNI_RAND_PERMUTATION) return gn_dtype_size(r->out.dtype) >= 4;
        return r->kind < GNI_RAND_EXPONENTIAL || r->out.dtype == GN_F32 || r->out.dtype == GN_F64;
    }
    bool real = r->kind == GNI_RAND_UNIFORM || r->kind == GNI_RAND_NORMAL || r->kind == GNI_RAND_DECAYING;
    if (real) return r->out.dtype == GN_F32 || gni_job_is_half(r->out.dtype);
    if (r->kind == GNI_RAND_BELOW) return r->out.dtype == GN_BOOL;
    return gn_dtype_size(r->out.dtype) >= 4 && r->range <= (uint64_t)1 << 32;
}

static bool gni_job_random(gni_gpu *gpu, const gni_random *r) {
    gni_job_call c;
    const bool draw = gni_job_is_draw(r);
    int64_t one = 1;
    if (r->n == 0) return true;
    gni_job_open(&c, gpu);
    if (!gni_job_reach(gpu, &r->out, &r->n, &one, 1, &c.use[0], &c.param[GNI_P_RANDOM_OUT_BASE]) ||
        r->n > INT32_MAX - 1024) {
        gni_random part = *r;
        if (r->n < 8) return false;
        part.n = r->n / 2 / 4 * 4;
        if (!gni_job_random(gpu, &part)) return false;
        part.counter += (uint64_t)(part.n / gni_random_each(r));
        part.out.offset += part.n;
        part.n = r->n - part.n;
        return gni_job_random(gpu, &part);
    }
    c.use[0].write = true;
    c.n_use = 1;
    c.param[GNI_P_RANDOM_N] = (uint32_t)r->n;
    c.param[GNI_P_RANDOM_COUNTER] = (uint32_t)r->counter;
    c.param[GNI_P_RANDOM_COUNTER + 1] = (uint32_t)(r->counter >> 32);
    c.param[GNI_P_RANDOM_KEY] = (uint32_t)r->seed;
    c.param[GNI_P_RANDOM_KEY + 1] = (uint32_t)(r->seed >> 32);
    if (draw) {
        c.n_param = GNI_P_DRAW_WORDS;
        memcpy(&c.param[GNI_P_DRAW_LOW], &r->low, 8);
        memcpy(&c.param[GNI_P_DRAW_RANGE], &r->range, 8);
        memcpy(&c.param[GNI_P_DRAW_NUMBERS], r->numbers, sizeof r->numbers);
        c.generic.module = GNI_MODULE_draw;
    } else {
        c.n_param = GNI_P_RANDOM_WORDS;
        c.param[GNI_P_RANDOM_LOW] = (uint32_t)r->low;
        c.param[GNI_P_RANDOM_RANGE] = (uint32_t)r->range;
        // Uniform halves take the leading bits that they can hold, since rounding could give 1.
        const gn_dtype t = r->scaled ? GN_F32 : r->out.dtype;
        if (r->kind == GNI_RAND_UNIFORM) c.param[GNI_P_RANDOM_LOW] = t == GN_F16 ? 11 : t == GN_BF16 ? 8 : 24;
        memcpy(&c.param[GNI_P_RANDOM_SCALE], r->by, sizeof r->by);
        if (r->kind == GNI_RAND_RANGE) c.param[GNI_P_RANDOM_LOW_HIGH] = (uint32_t)((uint64_t)r->low >> 32);
        c.generic.module = GNI_MODULE_random;
    }
    c.generic.n_spec = GNI_S_RANDOM_SPECS;
    c.generic.spec[GNI_S_RANDOM_KIND] = (uint32_t)r->kind;
    c.generic.spec[GNI_S_RANDOM_PAIRS] = gni_random_pairs(r);
    c.generic.spec[GNI_S_RANDOM_DTYPE] = (uint32_t)r->out.dtype;
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT),
                            gni_job_ceil(r->n, r->kind >= GNI_RAND_EXPONENTIAL ? 512 : 4096), 1, 1);
}

#endif // GNI_GPU
