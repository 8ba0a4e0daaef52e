// >>gpu_eigen
// Eigenvalues and singular values of batches on the GPU: eigen.glsl.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../gpu/gpu_jobs.h"
#endif

#if GNI_GPU

// How a matrix lies in a workgroup: as many as fit into 32 invocations share one.
typedef struct gni_job_eigen_plan {
    uint32_t size;              // rows and columns
    uint32_t pairs;             // of columns, in an invocation
    uint32_t threads, matrices; // of a workgroup
    uint32_t shared;            // bytes
} gni_job_eigen_plan;

static bool gni_job_eigen_fit(const gni_gpu_caps *c, const gni_factor *f, gni_job_eigen_plan *p) {
    if (f->order > 128) return false;
    for (p->size = 8; (int64_t)p->size < f->order;) p->size *= 2;
    p->pairs = p->size == 8 ? 4 : p->size == 128 ? 16 : 8;
    const uint32_t half = p->size / 2, own = p->size * (half / p->pairs);
    p->matrices = own < 32 ? 32 / own : 1;
    p->threads = own * p->matrices;
    const uint32_t numbers = p->size * (half + 1) + 5 * own + 3 * p->size;
    const uint32_t bytes = (uint32_t)gn_dtype_size(f->a.dtype);
    p->shared = p->matrices * (numbers * bytes + (p->size + 1) * 4);
    return p->threads <= c->max_invocations && p->threads <= c->max_size[0] &&
           p->shared <= c->shared_bytes;
}

static bool gni_job_eigen_reaches(const gni_operand *o) {
    return o->buf == NULL || o->buf->bytes < (uint64_t)GNI_GPU_REACH;
}

static bool gni_job_eigen_ok(const gni_gpu *gpu, const gni_factor *f) {
    const gni_gpu_caps *c = &gpu->caps;
    gni_job_eigen_plan p;
    if (!(f->a.dtype == GN_F64 ? c->float64 : f->a.dtype == GN_F32)) return false;
    if (c->max_buffers < 5 || !c->addresses || !gni_job_eigen_fit(c, f, &p)) return false;
    return gni_job_eigen_reaches(&f->a) && gni_job_eigen_reaches(&f->b) &&
           gni_job_eigen_reaches(&f->c) && gni_job_eigen_reaches(&f->d) &&
           gni_job_eigen_reaches(&f->e);
}

static bool gni_job_eigen(gni_gpu *gpu, const gni_factor *f) {
    const gni_operand *operands[5];
    gni_job_call c;
    gni_job_eigen_plan p;
    if (!gni_job_eigen_fit(&gpu->caps, f, &p)) return false;
    memset(&c, 0, sizeof c);
    operands[0] = &f->a;
    operands[1] = &f->b;
    operands[2] = &f->c;
    operands[3] = f->d.buf != NULL ? &f->d : &f->b;
    operands[4] = f->e.buf != NULL ? &f->e : &f->b;
    for (int i = 0; i < 5; i++) {
        c.use[i].mem = &operands[i]->buf->device;
        c.use[i].bytes = operands[i]->buf->bytes;
        c.use[i].write = i > 0;
    }
    c.gpu = gpu;
    c.n_use = 5;
    c.n_param = GNI_FACTOR_WORDS;
    for (int i = 0; i < GNI_FACTOR_WORDS; i++) c.param[i] = (uint32_t)f->word[i];
    c.generic.module = f->a.dtype == GN_F64 ? GNI_MODULE_eigen64 : GNI_MODULE_eigen;
    c.generic.n_spec = GNI_S_EIGEN_SPECS;
    c.generic.spec[GNI_S_EIGEN_SIZE] = p.size;
    c.generic.spec[GNI_S_EIGEN_PAIRS] = p.pairs;
    c.generic.spec[GNI_S_EIGEN_MODE] =
        (uint32_t)((int)f->step - (int)GNI_FACTOR_SINGULAR);
    c.generic.spec[GNI_S_EIGEN_THREADS] = p.threads;
    const int64_t groups = gni_job_ceil(f->items, (int64_t)p.matrices);
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT), groups,
                            gni_job_ceil(groups, (int64_t)gpu->caps.max_groups[0]), 1);
}

#endif // GNI_GPU
