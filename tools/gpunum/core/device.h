// >>device
// What a GPU is to everything above its device layer: memory, kernels, the stream of work, all through one table of
// functions. A device layer (Vulkan) fills the table and knows no jobs; the jobs know no layer. All calls are made under
// the context's lock.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/config.h"
#endif

// webgpu.h is the host's: Dawn's or wgpu-native's. In a page webgpu/webgpu_browser is in its place.
#ifdef GPUNUM_USE_WEBGPU
#ifndef __EMSCRIPTEN__
#include <webgpu/webgpu.h>
#endif
#define GNI_WEBGPU 1
#else
#define GNI_WEBGPU 0
#endif

enum {
    GNI_GPU_MAX_SPEC = 48,     // specialisation constants of a kernel
    GNI_GPU_MAX_USES = 16,     // buffer arguments of a dispatch
    GNI_GPU_MAX_PARAMS = 4096, // bytes
    GNI_GPU_MAX_COOP = 64      // matrix shapes remembered
};

// Whether there is a GPU whose programs are texts: without WebGPU a constant.
#define GNI_TEXTS(gpu) (GNI_WEBGPU && (gpu) != NULL && (gpu)->caps.texts)

// Bytes that a kernel may reach from the address of a buffer argument. Drivers compute what they add to it in 32 bits:
// on an H200 a kernel that writes beyond 4 GiB writes to the front again.
#define GNI_GPU_REACH ((int64_t)1 << 32)

typedef struct gni_gpu gni_gpu; // an open device

// Memory of the device.
typedef struct gni_gpu_mem {
    uint64_t handle, offset, size, address; // buffer, byte range in it, device address (0: none)
    void *mapped;                           // NULL if the host cannot see it
    void *block;                            // the layer's own; NULL for a host's buffer
    int cls;                                // size class, for the pool
} gni_gpu_mem;

// A download in flight. Zeroed when idle.
typedef struct gni_gpu_ticket {
    gni_gpu_mem mem; // of the staging pool
    uint64_t serial, bytes;
    const void *data; // NULL: not in use
} gni_gpu_ticket;

// A byte range of `mem` that a dispatch reads or writes; also buffer argument k of its kernel.
// `offset` is a multiple of 16, and of 256 without addresses.
typedef struct gni_gpu_use {
    const gni_gpu_mem *mem;
    uint64_t offset, bytes;
    bool write;
} gni_gpu_use;

typedef struct gni_gpu_pipeline gni_gpu_pipeline;

// One of several dispatches of which none uses what another one writes; x workgroups.
typedef struct gni_gpu_part {
    gni_gpu_pipeline *pipeline;
    const gni_gpu_use *uses;
    int n_use;
    const void *params;
    uint32_t bytes, x;
} gni_gpu_part;

typedef struct gni_gpu_kernel {
    int module; // index into gni_modules of the variant with addresses
    uint32_t n_spec;
    uint32_t spec[GNI_GPU_MAX_SPEC]; // values of constant ids 0 to n_spec - 1
    uint32_t subgroup;               // required size, with full subgroups; 0 = the driver's choice
    // Constants from this id on name, in their low 11 bits, the cases of the module's large switch that
    // are needed; the rest is cut off before the driver sees it. 0 = keep all.
    uint32_t first_code;
} gni_gpu_kernel;

typedef enum gni_gpu_mode {
    GNI_GPU_WAIT,   // compile here if need be
    GNI_GPU_ASYNC,  // compile in the background, NULL until ready
    GNI_GPU_BEHIND, // the same, one at a time and after all that others asked for
    GNI_GPU_PEEK    // NULL if it is not there
} gni_gpu_mode;

// Values of Vulkan's VkComponentTypeKHR.
enum {
    GNI_GPU_COMPONENT_F16 = 0,
    GNI_GPU_COMPONENT_F32 = 1,
    GNI_GPU_COMPONENT_F64 = 2,
    GNI_GPU_COMPONENT_I8 = 3,
    GNI_GPU_COMPONENT_I32 = 5,
    GNI_GPU_COMPONENT_U8 = 7,
    GNI_GPU_COMPONENT_U32 = 9,
    GNI_GPU_COMPONENT_BF16 = 1000141000
};

// A matrix shape: D (m,n) = A (m,k) x B (k,n) + C. For flexible ones m, n and k are granularities
// and `invocations` is the workgroup size they need.
typedef struct gni_gpu_coop {
    uint32_t m, n, k;
    int32_t a, b, c, result; // GNI_GPU_COMPONENT_*
    bool saturating, workgroup_scope;
    uint32_t invocations; // 0: an ordinary shape, of subgroup scope
} gni_gpu_coop;

typedef enum gni_gpu_kind {
    GNI_GPU_DISCRETE,
    GNI_GPU_INTEGRATED,
    GNI_GPU_VIRTUAL,
    GNI_GPU_CPU
} gni_gpu_kind;

typedef struct gni_gpu_caps {
    gni_gpu_kind kind;
    uint32_t vendor_id, device_id, driver_version;
    uint32_t api_version;                          // what both the device and the instance have
    uint32_t subgroup, subgroup_min, subgroup_max; // min = max = subgroup without size control
    bool subgroup_control;                         // gni_gpu_kernel.subgroup works,
    uint32_t subgroups;                            // then of a workgroup, at most
    bool subgroup_arithmetic, subgroup_ballot, subgroup_shuffle, subgroup_vote;
    uint32_t max_invocations, max_size[3], max_groups[3], shared_bytes;
    uint64_t max_storage_range; // bytes of one buffer argument without addresses
    uint32_t max_buffers;       // buffer arguments of one dispatch
    uint64_t max_allocation;    // bytes of one gni_gpu_alloc
    uint64_t device_bytes;      // device-local memory
    bool addresses;             // kernels reach buffers by address, else by bindings, as all texts do
    bool texts;                 // programs become kernels of their own at run time, with only the buffers that they have; no
                                // workgroup waits for another one. See GNI_TEXTS
    bool no_wait;               // for what it computes nobody can wait, as in a page
    uint32_t alone;             // of a CPU whose compiler makes little of barriers, invocations of a subgroup: kernels
                                // without barriers then, where there are
    uint32_t jobs;              // with texts, bits: the kinds of jobs that there are kernels for
    bool mapped;                // device memory is visible to the host and cached there
    bool int64, atomic64, float64, float16, int8, int16, memory_model;
    bool narrow_stores;          // kernels store bytes and 16 bits by themselves
    bool fused;                  // fma of float32 rounds once
    bool keep_denorms, keep_nan; // kernels are told to keep float32 subnormals, infinities and NaN
    bool keep_half_denorms, keep_half_nan; // and float16's, in unpackHalf2x16 too
    bool round_half;             // and to round what becomes float16 to nearest, ties to even
    bool exact_halves;           // all of them: the device's own conversions of float16 are right
    bool bfloat16, bfloat16_coop;
    bool coop, coop2;
    int coop_count;
    gni_gpu_coop coops[GNI_GPU_MAX_COOP];
    uint32_t coop2_reserved_shared; // bytes that workgroup scope takes from shared memory
    uint32_t multiprocessors;       // exact where the driver says it, else an estimate
    bool multiprocessors_exact;
    float timestamp_ns; // nanoseconds of one timestamp tick; 0: no timestamps
    char name[256];
    char driver[128];
} gni_gpu_caps;

// A kernel's figures from a tuning file, as in gni_job_tile; all 0: none.
typedef struct gni_gpu_rates {
    int rate, alone, resident;
} gni_gpu_rates;

// What the device did, on gni_now_ns's clock.
typedef struct gni_gpu_event {
    const char *name; // of the kernel's module
    uint64_t begin, end;
} gni_gpu_event;

// A kernel ready to run, or on its way there. A layer's own begins with this.
struct gni_gpu_pipeline {
    int module;
};

// The functions of a device layer. Those that return bool have told gni_fail why when it is false.
typedef struct gni_gpu_layer {
    const char *name;
    void (*close)(gni_gpu *gpu); // waits for the work under way
    void (*info)(const gni_gpu *gpu, gn_device_info *out);
    // memory: alloc's is at least `bytes`, its contents are undefined; free may come before the work that uses it is over
    bool (*alloc)(gni_gpu *gpu, uint64_t bytes, gni_gpu_mem *out);
    void (*free)(gni_gpu *gpu, gni_gpu_mem *mem);
    void (*trim)(gni_gpu *gpu);
    void (*memory_stats)(const gni_gpu *gpu, gn_memory_stats *out);
    // data, in order with the work; download waits, a ticket's data is there when ticket_ready says so
    bool (*upload)(gni_gpu *gpu, const gni_gpu_mem *dst, uint64_t offset, const void *src,
                   uint64_t bytes);
    bool (*download)(gni_gpu *gpu, const gni_gpu_mem *src, uint64_t offset, void *dst,
                     uint64_t bytes);
    bool (*download_begin)(gni_gpu *gpu, const gni_gpu_mem *src, uint64_t offset, uint64_t bytes,
                           gni_gpu_ticket *t);
    bool (*ticket_ready)(gni_gpu *gpu, gni_gpu_ticket *t, bool wait);
    void (*ticket_release)(gni_gpu *gpu, gni_gpu_ticket *t);
    bool (*fill)(gni_gpu *gpu, const gni_gpu_mem *dst, uint64_t offset, uint64_t bytes,
                 uint32_t word);
    bool (*copy)(gni_gpu *gpu, const gni_gpu_mem *dst, uint64_t to, const gni_gpu_mem *src,
                 uint64_t from, uint64_t bytes);
    // work: dispatch copies the parameters, and `uses` says all that the kernel reads and writes
    gni_gpu_pipeline *(*pipeline_get)(gni_gpu *gpu, const gni_gpu_kernel *k, gni_gpu_mode mode);
    bool (*dispatch)(gni_gpu *gpu, gni_gpu_pipeline *p, const gni_gpu_use *uses, int n_use,
                     const void *params, uint32_t bytes, uint32_t x, uint32_t y, uint32_t z);
    // of kernels with GN_MANY; those of one pipeline that follow each other become one dispatch. NULL where the layer cannot
    bool (*dispatch_many)(gni_gpu *gpu, const gni_gpu_part *parts, int count);
    bool (*flush)(gni_gpu *gpu);
    bool (*wait)(gni_gpu *gpu);
    // watching: events since the last fetch, on gni_now_ns's clock
    bool (*profile)(gni_gpu *gpu, bool on);
    int (*profile_fetch)(gni_gpu *gpu, gni_gpu_event *out, int capacity);
    // sharing with a host's own code; NULL where the layer cannot
    bool (*wrap)(gni_gpu *gpu, uint64_t buffer, uint64_t offset, uint64_t bytes, gni_gpu_mem *out);
    bool (*record_begin)(gni_gpu *gpu, void *commands);
    uint64_t (*record_end)(gni_gpu *gpu);
    void (*record_done)(gni_gpu *gpu, uint64_t token);
} gni_gpu_layer;

// What every layer's device begins with.
struct gni_gpu {
    const gni_gpu_layer *layer;
    gn_context *g;
    gni_gpu_caps caps;
    bool lost;            // a call failed in a way that later calls cannot mend
    uint32_t pipelines;   // made or asked for so far
    gni_gpu_rates *rates; // by module, from a tuning file; NULL: there is none
    const int *kernels;   // with texts, by module; -1: there is none. NULL: there are all
    void *jobs;           // state of room gpu_jobs, freed with the device
};

static inline bool gni_gpu_alloc(gni_gpu *gpu, uint64_t bytes, gni_gpu_mem *out) {
    return gpu->layer->alloc(gpu, bytes, out);
}
// Of a GPU that stayed with this process's parent nothing is freed.
static inline void gni_gpu_free(gni_gpu *gpu, gni_gpu_mem *mem) {
    if (gpu != NULL) gpu->layer->free(gpu, mem);
}
// Whether less than half of the device's memory is taken, so that what could be made again may stay.
GNI_INLINE bool gni_gpu_roomy(const gni_gpu *gpu) {
    GNI_ZEROED(gn_memory_stats, m);
    gpu->layer->memory_stats(gpu, &m);
    return m.device_used < m.device_limit / 2;
}
static inline bool gni_gpu_upload(gni_gpu *gpu, const gni_gpu_mem *dst, uint64_t offset,
                                  const void *src, uint64_t bytes) {
    return gpu->layer->upload(gpu, dst, offset, src, bytes);
}
static inline bool gni_gpu_download(gni_gpu *gpu, const gni_gpu_mem *src, uint64_t offset,
                                    void *dst, uint64_t bytes) {
    return gpu->layer->download(gpu, src, offset, dst, bytes);
}
static inline bool gni_gpu_fill(gni_gpu *gpu, const gni_gpu_mem *dst, uint64_t offset,
                                uint64_t bytes, uint32_t word) {
    return gpu->layer->fill(gpu, dst, offset, bytes, word);
}
static inline gni_gpu_pipeline *gni_gpu_pipeline_get(gni_gpu *gpu, const gni_gpu_kernel *k,
                                                     gni_gpu_mode mode) {
    return gpu->layer->pipeline_get(gpu, k, mode);
}
static inline bool gni_gpu_dispatch(gni_gpu *gpu, gni_gpu_pipeline *p, const gni_gpu_use *uses,
                                    int n_use, const void *params, uint32_t bytes, uint32_t x,
                                    uint32_t y, uint32_t z) {
    return gpu->layer->dispatch(gpu, p, uses, n_use, params, bytes, x, y, z);
}
