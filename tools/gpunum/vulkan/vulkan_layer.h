// >>vulkan_layer
// Vulkan's functions as a device layer. From outside: gni_vk_gpu_open, gni_vk_list.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../vulkan/vulkan_pipelines.h"
#include "../vulkan/vulkan_dispatch.h"
#endif

#if GNI_VULKAN

static void gni_vk_layer_close(gni_gpu *d) { gni_vk_close((gni_vk *)d); }
// What the device of an open context can do, beyond what every device tells.
static void gni_vk_layer_info(const gni_gpu *d, gn_device_info *out) {
    const gni_vk *vk = (const gni_vk *)d;
    gni_vk_describe(&vk->f, vk->physical, out);
    out->usable = true;
    out->subgroup = (int)d->caps.subgroup;
    out->multiprocessors = (int)d->caps.multiprocessors;
    out->has_f64 = d->caps.float64;
    out->has_i64 = d->caps.int64;
}
static bool gni_vk_layer_alloc(gni_gpu *d, uint64_t bytes, gni_gpu_mem *out) {
    return gni_vk_alloc((gni_vk *)d, bytes, out);
}
static void gni_vk_layer_free(gni_gpu *d, gni_gpu_mem *mem) { gni_vk_free((gni_vk *)d, mem); }
static void gni_vk_layer_trim(gni_gpu *d) { gni_vk_trim((gni_vk *)d); }
static void gni_vk_layer_memory_stats(const gni_gpu *d, gn_memory_stats *out) {
    gni_vk_memory_stats((const gni_vk *)d, out);
}
static bool gni_vk_layer_upload(gni_gpu *d, const gni_gpu_mem *dst, uint64_t offset,
                                const void *src, uint64_t bytes) {
    return gni_vk_upload((gni_vk *)d, dst, offset, src, bytes);
}
static bool gni_vk_layer_download(gni_gpu *d, const gni_gpu_mem *src, uint64_t offset, void *dst,
                                  uint64_t bytes) {
    return gni_vk_download((gni_vk *)d, src, offset, dst, bytes);
}
static bool gni_vk_layer_download_begin(gni_gpu *d, const gni_gpu_mem *src, uint64_t offset,
                                        uint64_t bytes, gni_gpu_ticket *t) {
    return gni_vk_download_begin((gni_vk *)d, src, offset, bytes, t);
}
static bool gni_vk_layer_ticket_ready(gni_gpu *d, gni_gpu_ticket *t, bool wait) {
    return gni_vk_ticket_ready((gni_vk *)d, t, wait);
}
static void gni_vk_layer_ticket_release(gni_gpu *d, gni_gpu_ticket *t) {
    gni_vk_ticket_release((gni_vk *)d, t);
}
static bool gni_vk_layer_fill(gni_gpu *d, const gni_gpu_mem *dst, uint64_t offset, uint64_t bytes,
                              uint32_t word) {
    return gni_vk_fill((gni_vk *)d, dst, offset, bytes, word);
}
static bool gni_vk_layer_copy(gni_gpu *d, const gni_gpu_mem *dst, uint64_t to,
                              const gni_gpu_mem *src, uint64_t from, uint64_t bytes) {
    return gni_vk_copy((gni_vk *)d, dst, to, src, from, bytes);
}
static gni_gpu_pipeline *gni_vk_layer_pipeline_get(gni_gpu *d, const gni_gpu_kernel *k,
                                                   gni_gpu_mode mode) {
    return (gni_gpu_pipeline *)gni_vk_pipeline_get((gni_vk *)d, k, mode);
}
static bool gni_vk_layer_dispatch(gni_gpu *d, gni_gpu_pipeline *p, const gni_gpu_use *uses,
                                  int n_use, const void *params, uint32_t bytes, uint32_t x,
                                  uint32_t y, uint32_t z) {
    return gni_vk_dispatch((gni_vk *)d, (gni_vk_pipeline *)p, uses, n_use, params, bytes, x, y, z);
}
static bool gni_vk_layer_dispatch_many(gni_gpu *d, const gni_gpu_part *parts, int count) {
    return gni_vk_dispatch_many((gni_vk *)d, parts, count);
}
static bool gni_vk_layer_flush(gni_gpu *d) { return gni_vk_flush((gni_vk *)d); }
static bool gni_vk_layer_wait(gni_gpu *d) { return gni_vk_wait((gni_vk *)d); }
static bool gni_vk_layer_profile(gni_gpu *d, bool on) { return gni_vk_profile((gni_vk *)d, on); }
static int gni_vk_layer_profile_fetch(gni_gpu *d, gni_gpu_event *out, int capacity) {
    return gni_vk_profile_fetch((gni_vk *)d, out, capacity);
}
static bool gni_vk_layer_wrap(gni_gpu *d, uint64_t buffer, uint64_t offset, uint64_t bytes,
                              gni_gpu_mem *out) {
    return gni_vk_wrap((gni_vk *)d, buffer, offset, bytes, out);
}
static bool gni_vk_layer_record_begin(gni_gpu *d, void *commands) {
    return gni_vk_record_begin((gni_vk *)d, commands);
}
static uint64_t gni_vk_layer_record_end(gni_gpu *d) { return gni_vk_record_end((gni_vk *)d); }
static void gni_vk_layer_record_done(gni_gpu *d, uint64_t token) {
    gni_vk_record_done((gni_vk *)d, token);
}

static const gni_gpu_layer gni_vulkan_layer = {"vulkan",
                                               gni_vk_layer_close,
                                               gni_vk_layer_info,
                                               gni_vk_layer_alloc,
                                               gni_vk_layer_free,
                                               gni_vk_layer_trim,
                                               gni_vk_layer_memory_stats,
                                               gni_vk_layer_upload,
                                               gni_vk_layer_download,
                                               gni_vk_layer_download_begin,
                                               gni_vk_layer_ticket_ready,
                                               gni_vk_layer_ticket_release,
                                               gni_vk_layer_fill,
                                               gni_vk_layer_copy,
                                               gni_vk_layer_pipeline_get,
                                               gni_vk_layer_dispatch,
                                               gni_vk_layer_dispatch_many,
                                               gni_vk_layer_flush,
                                               gni_vk_layer_wait,
                                               gni_vk_layer_profile,
                                               gni_vk_layer_profile_fetch,
                                               gni_vk_layer_wrap,
                                               gni_vk_layer_record_begin,
                                               gni_vk_layer_record_end,
                                               gni_vk_layer_record_done};

static gni_gpu *gni_vk_gpu_open(gn_context *g, const gn_options *o, char *why, size_t why_size) {
    gni_vk *vk = gni_vk_open(g, o, why, why_size);
    if (vk == NULL) return NULL;
    vk->gpu.layer = &gni_vulkan_layer;
    return &vk->gpu;
}

#else // GNI_VULKAN

static int gni_vk_list(gn_context *g, gn_device_info *out, int capacity) {
    GNI_UNUSED(g);
    GNI_UNUSED(out);
    return 0 * capacity;
}

static gni_gpu *gni_vk_gpu_open(gn_context *g, const gn_options *o, char *why, size_t why_size) {
    GNI_UNUSED(g);
    GNI_UNUSED(o);
#ifdef __EMSCRIPTEN__
    snprintf(why, why_size, "WebAssembly has no Vulkan");
#elif defined(GPUNUM_NO_VULKAN)
    snprintf(why, why_size, "compiled with GPUNUM_NO_VULKAN");
#else
    snprintf(why, why_size, "compiled without Vulkan headers");
#endif
    return NULL;
}

#endif // GNI_VULKAN
