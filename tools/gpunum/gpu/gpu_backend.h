// >>gpu_backend
// The GPU as one of the backends: which jobs it does, and by which room. From outside: gni_backend_gpu, gni_gather
// and gni_gather_end.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../gpu/gpu_fft.h"
#include "../gpu/gpu_conv.h"
#include "../gpu/gpu_attention.h"
#include "../gpu/gpu_factor.h"
#endif

#if !GNI_GPU

static bool gni_gpu_supports(gn_context *g, gni_job_kind kind, const void *job) {
    GNI_UNUSED(g);
    GNI_UNUSED(kind);
    GNI_UNUSED(job);
    return false;
}

static void gni_gather(gn_context *g, bool on) {
    GNI_UNUSED(g);
    GNI_UNUSED(on);
}
static bool gni_gather_end(gn_context *g) {
    GNI_UNUSED(g);
    return true;
}

static bool gni_gpu_run(gn_context *g, gni_job_kind kind, const void *job) {
    GNI_UNUSED(kind);
    GNI_UNUSED(job);
    return gni_fail(g, GN_ERROR_UNSUPPORTED, "compiled without Vulkan");
}

#else // GNI_GPU

// X(kind, name): kinds of jobs that gni_job_name does, where gni_job_name_ok says so.
#define GNI_GPU_KINDS(X)                                                                           \
    X(REDUCE, reduce) X(SOFTMAX, softmax) X(ROWS, rows) X(POOLING, pooling) X(TAKE, take)          \
    X(SCAN, scan) X(SORT, sort) X(SEARCH, search) X(COUNT, count)                                  \
    X(SCATTER, scatter) X(KEEP, keep) X(RANDOM, random) X(RECUR, recurrence)

static bool gni_gpu_supports(gn_context *g, gni_job_kind kind, const void *job) {
    const gni_gpu *gpu = g->gpu;
    if (!gpu || gpu->caps.max_invocations < GNI_JOB_THREADS) return false;
    if (GNI_TEXTS(gpu) && !(gpu->caps.jobs >> kind & 1u)) return false;
    switch (kind) {
    case GNI_JOB_MAP: {
        const gni_program *p = &((const gni_map *)job)->program;
        if (GNI_TEXTS(gpu) && gni_job_outputs_meet((const gni_map *)job, true)) return false;
        if (gni_job_is_copy64(p) || gni_job_is_copy128((const gni_map *)job)) return gni_job_enough_places(gpu, p, p->n_out);
        return gni_job_program_ok(gpu, p, p->n_out);
    }
#define GNI_X(kind, name)                                                                          \
    case GNI_JOB_##kind: return gni_job_##name##_ok(gpu, (const gni_##name *)job);
        GNI_GPU_KINDS(GNI_X)
#undef GNI_X
    case GNI_JOB_MATMUL: return gni_job_matmul_ok(gpu, (const gni_matmul *)job);
    case GNI_JOB_CONV: {
        GNI_ZEROED(gni_matmul, m);
        m.a.dtype = m.b.dtype = m.c.dtype = ((const gni_conv *)job)->a.dtype;
        return gni_job_matmul_ok(gpu, &m);
    }
    case GNI_JOB_IMAGE: return gni_job_has_windows(gpu);
    case GNI_JOB_WINOGRAD: return gni_job_has_winograd(gpu);
    case GNI_JOB_DEPTH: return gni_job_has_depth(gpu);
    case GNI_JOB_ATTEND: return gni_job_attend_ok(gpu, (const gni_attend_job *)job);
#ifndef GPUNUM_NO_FFT
    case GNI_JOB_FFT: return gni_fft_gpu_supports(g, (const gni_fft *)job);
#endif
#ifndef GPUNUM_NO_LINALG
    case GNI_JOB_FACTOR: return gni_job_factor_ok(gpu, (const gni_factor *)job);
#endif
    default: return false;
    }
}

// Elementwise jobs from here to gni_gather_end, of which none uses what another one writes, may be put together, and other
// work comes before them. What they use stays where it is until then.
static void gni_gather(gn_context *g, bool on) {
    gni_gpu *gpu = g->gpu;
    const bool can = gpu != NULL && gpu->layer->dispatch_many != NULL && gpu->caps.addresses && !g->host_recording;
    gni_gpu_jobs *ops = can ? gni_job_state(gpu) : NULL;
    if (ops != NULL) ops->gathers = on;
}
static bool gni_gather_end(gn_context *g) {
    return g->gpu == NULL || gni_job_run_waiting(g->gpu) || g->call_failed;
}

static bool gni_gpu_run(gn_context *g, gni_job_kind kind, const void *job) {
    gni_gpu *gpu = g->gpu;
    switch (kind) {
    case GNI_JOB_MAP: return gni_job_map(gpu, (const gni_map *)job);
#define GNI_X(kind, name)                                                                          \
    case GNI_JOB_##kind: return gni_job_##name(gpu, (const gni_##name *)job);
        GNI_GPU_KINDS(GNI_X)
#undef GNI_X
    case GNI_JOB_MATMUL:
        return gni_job_matmul(gpu, (const gni_matmul *)job, ((const gni_matmul *)job)->n);
    case GNI_JOB_CONV: return gni_job_conv(gpu, (const gni_conv *)job);
    case GNI_JOB_IMAGE: return gni_job_image(gpu, (const gni_image *)job);
    case GNI_JOB_WINOGRAD: return gni_job_winograd(gpu, (const gni_winograd *)job);
    case GNI_JOB_DEPTH: return gni_job_depth(gpu, (const gni_depth *)job);
    case GNI_JOB_ATTEND: return gni_job_attend(gpu, (const gni_attend_job *)job);
#ifndef GPUNUM_NO_FFT
    case GNI_JOB_FFT: return gni_fft_gpu(g, (const gni_fft *)job);
#endif
#ifndef GPUNUM_NO_LINALG
    case GNI_JOB_FACTOR: return gni_job_factor(gpu, (const gni_factor *)job);
#endif
    default: return false;
    }
}

#endif // GNI_GPU

static const gni_backend_api gni_gpu_backend = {gni_gpu_supports, gni_gpu_run};
static const gni_backend_api *gni_backend_gpu(void) { return &gni_gpu_backend; }
