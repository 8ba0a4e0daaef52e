// >>webgpu_device
// WebGPU as a device layer, through webgpu.h: the device, its memory, the stream of commands. From outside: gni_wg_gpu_open.
//
// An array's memory is one GPUBuffer. Freed ones stay in lists by size class. Commands are recorded into one compute pass
// as long as nothing but dispatches comes, and submitted together; the parameters of all of them are one uniform buffer,
// which is written in front of the submit. What the device complains about comes back later: gni_wg_checked asks.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/memory.h"
#include "../core/log.h"
#include "../gpu/unpack.h"
#endif

#if GNI_WEBGPU

#ifdef __EMSCRIPTEN__
#define GNI_WG_BROWSER 1
#else
#define GNI_WG_BROWSER 0
#endif

#ifndef GNI_SHADERS_H // kernels are called by their numbers
#define GNI_SHADERS_WANTED
#ifndef GPUNUM_SHADERS
#define GPUNUM_SHADERS "shaders.h"
#endif
#include GPUNUM_SHADERS
#undef GNI_SHADERS_WANTED
#endif

enum {
    GNI_WG_PARAM_BYTES = 1024, // of a dispatch: GN_WGSL_WORDS of wgsl.glsl
    GNI_WG_BATCH = 256,        // dispatches of a batch
    GNI_WG_CLASSES = 160,      // of sizes
    GNI_WG_GROUPS = 512,       // bind groups remembered, a power of two
    GNI_WG_STAGES = 8          // buffers for reading that are kept
};

typedef struct gni_wg_block {
    WGPUBuffer buffer;
    uint64_t size, serial; // of the batch that used it last
    uint32_t number;       // of no other block
    int cls;
    struct gni_wg_block *next;              // of those that are kept
    struct gni_wg_block *later, *earlier; // of all
} gni_wg_block;

typedef struct gni_wg_stage { // memory that can be mapped
    WGPUBuffer buffer;
    uint64_t size;
} gni_wg_stage;

typedef struct gni_wg_pipeline {
    gni_gpu_pipeline gpu;
    gni_gpu_kernel kernel;
    uint64_t hash;
    const char *name;
    WGPUComputePipeline pipeline;
    WGPUBindGroupLayout layout;
    uint32_t buffers, written; // bit k: buffer argument k is bound, may be written
    bool failed;
    struct gni_wg_pipeline *next; // of the same place in the table
} gni_wg_pipeline;

typedef struct gni_wg_group {
    WGPUBindGroup group;
    const gni_wg_pipeline *pipeline;
    int count;
    uint32_t number[GNI_GPU_MAX_USES];
    uint64_t offset[GNI_GPU_MAX_USES], bytes[GNI_GPU_MAX_USES];
} gni_wg_group;

typedef struct gni_wg_function { // of the library that programs are written with
    const char *name, *needs, *body;
    int name_length, needs_length, body_length;
    uint32_t mark;
} gni_wg_function;

typedef struct gni_wg {
    gni_gpu gpu;
    WGPUInstance instance;
    WGPUAdapter adapter;
    WGPUDevice device;
    WGPUQueue queue;
    char driver[128];
    // memory
    gni_wg_block *kept[GNI_WG_CLASSES], *all;
    uint64_t used, reserved, peak, limit, blocks, max_buffer;
    uint32_t next_number;
    gni_wg_stage stages[GNI_WG_STAGES];
    // the open batch
    WGPUCommandEncoder encoder;
    WGPUComputePassEncoder pass;
    const gni_wg_pipeline *bound;
    uint64_t serial; // of the open batch
    int dispatches;
    WGPUBuffer params;
    uint8_t *params_host;
    gni_wg_block *spare[GNI_GPU_MAX_USES]; // for places that a kernel has and a dispatch does not use
    // kernels
    gni_wg_pipeline *pipelines[256];
    gni_wg_group groups[GNI_WG_GROUPS];
    int *variant; // of a module: its kernel in WGSL, -1: none
    gni_unpack **unpacked;
    gni_wg_function *functions;
    int function_count;
    uint32_t mark;
    // what a callback has to tell
    bool waits; // calls can wait for one
    bool answered, ok;
    char text[400];
    char complaint[400]; // the device's first one that nobody asked about
    gn_status complaint_status;
} gni_wg;

// ---- answers

static WGPUStringView gni_wg_view(const char *text) {
    WGPUStringView v;
    v.data = text;
    v.length = text ? strlen(text) : 0;
    return v;
}

static void gni_wg_words(char *out, size_t room, WGPUStringView v) {
    size_t n = v.length == WGPU_STRLEN ? (v.data ? strlen(v.data) : 0) : v.length;
    if (n > room - 1) n = room - 1;
    if (v.data) memcpy(out, v.data, n);
    out[v.data ? n : 0] = 0;
    for (char *p = out; *p; p++)
        if (*p == '\n') *p = ' ';
}

static void gni_wg_answer(gni_wg *w, bool ok, WGPUStringView message) {
    w->answered = true;
    w->ok = ok;
    gni_wg_words(w->text, sizeof w->text, message);
}

static bool gni_wg_await(gni_wg *w, WGPUFuture future) {
    GNI_ZEROED(WGPUFutureWaitInfo, info);
    info.future = future;
    w->answered = false;
    snprintf(w->text, sizeof w->text, "what waits for a GPU needs a program that was linked with -sJSPI or -sASYNCIFY; "
                                      "without, gn_open_async, gn_read_async and gn_poll");
    return wgpuInstanceWaitAny(w->instance, 1, &info, UINT64_MAX) == WGPUWaitStatus_Success && w->answered && w->ok;
}

static void gni_wg_on_adapter(WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView message, void *user,
                              void *unused) {
    gni_wg *w = (gni_wg *)user;
    GNI_UNUSED(unused);
    w->adapter = adapter;
    gni_wg_answer(w, status == WGPURequestAdapterStatus_Success, message);
}

static void gni_wg_on_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message, void *user,
                             void *unused) {
    gni_wg *w = (gni_wg *)user;
    GNI_UNUSED(unused);
    w->device = device;
    gni_wg_answer(w, status == WGPURequestDeviceStatus_Success, message);
}

static void gni_wg_on_map(WGPUMapAsyncStatus status, WGPUStringView message, void *user, void *unused) {
    GNI_UNUSED(unused);
    gni_wg_answer((gni_wg *)user, status == WGPUMapAsyncStatus_Success, message);
}

static void gni_wg_on_done(WGPUQueueWorkDoneStatus status, WGPUStringView message, void *user, void *unused) {
    GNI_UNUSED(unused);
    gni_wg_answer((gni_wg *)user, status == WGPUQueueWorkDoneStatus_Success, message);
}

#if !GNI_WG_BROWSER
static void gni_wg_on_scope(WGPUPopErrorScopeStatus status, WGPUErrorType type, WGPUStringView message, void *user,
                            void *unused) {
    GNI_UNUSED(unused);
    gni_wg_answer((gni_wg *)user, status == WGPUPopErrorScopeStatus_Success && type == WGPUErrorType_NoError, message);
}
#endif

static void gni_wg_complain(gni_wg *w, gn_status status, WGPUStringView message) {
    if (w->complaint_status != GN_OK) return;
    gni_wg_words(w->complaint, sizeof w->complaint, message);
    w->complaint_status = status;
}

static void gni_wg_on_error(WGPUDevice const *device, WGPUErrorType type, WGPUStringView message, void *user,
                            void *unused) {
    GNI_UNUSED(device);
    GNI_UNUSED(unused);
    gni_wg_complain((gni_wg *)user, type == WGPUErrorType_OutOfMemory ? GN_ERROR_OUT_OF_MEMORY : GN_ERROR_UNSUPPORTED,
                    message);
}

static void gni_wg_on_lost(WGPUDevice const *device, WGPUDeviceLostReason reason, WGPUStringView message, void *user,
                           void *unused) {
    gni_wg *w = (gni_wg *)user;
    GNI_UNUSED(device);
    GNI_UNUSED(unused);
    if (reason == WGPUDeviceLostReason_Destroyed || reason == WGPUDeviceLostReason_CallbackCancelled) return;
    w->gpu.lost = true;
    w->complaint_status = GN_OK;
    gni_wg_complain(w, GN_ERROR_DEVICE_LOST, message);
}

// Reports what the device complained about since somebody asked.
static bool gni_wg_checked(gni_wg *w) {
    if (GNI_WG_BROWSER) wgpuInstanceProcessEvents(w->instance);
    if (w->complaint_status == GN_OK && !w->gpu.lost) return true;
    gni_fail(w->gpu.g, w->gpu.lost ? GN_ERROR_DEVICE_LOST : w->complaint_status, "WebGPU device %s%s: %s",
             w->gpu.caps.name, w->gpu.lost ? " was lost" : "", w->complaint);
    w->complaint_status = GN_OK;
    return false;
}

// ---- memory

// Sizes are of four steps an octave, from 256 bytes on.
static int gni_wg_class(uint64_t bytes, uint64_t *size) {
    uint64_t step = 64;
    int c = 0;
    while (step * 8 < bytes) {
        step *= 2;
        c += 4;
    }
    uint64_t units = GNI_MAX((bytes + step - 1) / step, 4);
    *size = units * step;
    return c + (int)(units - 4);
}

static WGPUBuffer gni_wg_buffer(gni_wg *w, uint64_t size, WGPUBufferUsage usage) {
    GNI_ZEROED(WGPUBufferDescriptor, d);
    d.usage = usage;
    d.size = size;
#if GNI_WG_BROWSER // which says later that there was no memory
    return wgpuDeviceCreateBuffer(w->device, &d);
#else
    GNI_ZEROED(WGPUPopErrorScopeCallbackInfo, info);
    info.mode = WGPUCallbackMode_WaitAnyOnly;
    info.callback = gni_wg_on_scope;
    info.userdata1 = w;
    wgpuDevicePushErrorScope(w->device, WGPUErrorFilter_OutOfMemory);
    WGPUBuffer b = wgpuDeviceCreateBuffer(w->device, &d);
    if (gni_wg_await(w, wgpuDevicePopErrorScope(w->device, info))) return b;
    if (b) wgpuBufferRelease(b);
    return NULL;
#endif
}

static void gni_wg_block_free(gni_wg *w, gni_wg_block *b) {
    w->reserved -= b->size;
    w->blocks--;
    if (b->later) b->later->earlier = b->earlier;
    if (b->earlier) b->earlier->later = b->later;
    else w->all = b->later;
    wgpuBufferDestroy(b->buffer);
    wgpuBufferRelease(b->buffer);
    gni_free(w->gpu.g, b);
}

static void gni_wg_trim(gni_gpu *d) {
    gni_wg *w = (gni_wg *)d;
    for (int c = 0; c < GNI_WG_CLASSES; c++) {
        gni_wg_block **at = &w->kept[c];
        while (*at) {
            gni_wg_block *b = *at;
            if (b->serial == w->serial) { // commands not yet submitted name it
                at = &b->next;
                continue;
            }
            *at = b->next;
            gni_wg_block_free(w, b);
        }
    }
}

static gni_wg_block *gni_wg_block_new(gni_wg *w, int cls, uint64_t size) {
    if (size > w->max_buffer) return NULL;
    if (w->limit && w->reserved + size > w->limit) gni_wg_trim(&w->gpu);
    if (w->limit && w->reserved + size > w->limit) return NULL;
    gni_wg_block *b = (gni_wg_block *)gni_calloc(w->gpu.g, sizeof *b);
    if (!b) return NULL;
    const WGPUBufferUsage usage = WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
    b->buffer = gni_wg_buffer(w, size, usage);
    if (!b->buffer) {
        gni_wg_trim(&w->gpu);
        b->buffer = gni_wg_buffer(w, size, usage);
    }
    if (!b->buffer) {
        gni_free(w->gpu.g, b);
        return NULL;
    }
    b->size = size;
    b->cls = cls;
    b->number = ++w->next_number;
    b->later = w->all;
    if (w->all) w->all->earlier = b;
    w->all = b;
    w->blocks++;
    w->reserved += size;
    w->peak = GNI_MAX(w->peak, w->reserved);
    return b;
}

static bool gni_wg_alloc(gni_gpu *d, uint64_t bytes, gni_gpu_mem *out) {
    gni_wg *w = (gni_wg *)d;
    uint64_t size;
    memset(out, 0, sizeof *out);
    if (d->lost || bytes > w->max_buffer) return false;
    int cls = gni_wg_class(bytes, &size);
    if (size > w->max_buffer) size = w->max_buffer / 16 * 16;
    gni_wg_block *b = w->kept[cls];
    if (b && b->size >= bytes) w->kept[cls] = b->next;
    else b = gni_wg_block_new(w, cls, size);
    if (!b) return false;
    w->used += b->size;
    out->handle = (uint64_t)(uintptr_t)b->buffer;
    out->size = b->size;
    out->block = b;
    out->cls = b->cls;
    return true;
}

static void gni_wg_free(gni_gpu *d, gni_gpu_mem *mem) {
    gni_wg *w = (gni_wg *)d;
    gni_wg_block *b = (gni_wg_block *)mem->block;
    if (b) {
        w->used -= b->size;
        b->next = w->kept[b->cls];
        w->kept[b->cls] = b;
    }
    memset(mem, 0, sizeof *mem);
}

static void gni_wg_memory_stats(const gni_gpu *d, gn_memory_stats *out) {
    const gni_wg *w = (const gni_wg *)d;
    out->device_used = w->used;
    out->device_reserved = w->reserved;
    out->device_peak = w->peak;
    out->device_limit = w->limit;
    out->device_blocks = w->blocks;
}

// ---- the stream

static WGPUBuffer gni_wg_touch(gni_wg *w, const gni_gpu_mem *m) {
    gni_wg_block *b = (gni_wg_block *)m->block;
    b->serial = w->serial;
    return b->buffer;
}

static void gni_wg_end_pass(gni_wg *w) {
    if (!w->pass) return;
    wgpuComputePassEncoderEnd(w->pass);
    wgpuComputePassEncoderRelease(w->pass);
    w->pass = NULL;
    w->bound = NULL;
}

// For a command that is no dispatch.
static WGPUCommandEncoder gni_wg_encoder(gni_wg *w) {
    if (!w->encoder) w->encoder = wgpuDeviceCreateCommandEncoder(w->device, NULL);
    gni_wg_end_pass(w);
    return w->encoder;
}

static bool gni_wg_flush(gni_gpu *d) {
    gni_wg *w = (gni_wg *)d;
    if (w->encoder) {
        gni_wg_end_pass(w);
        if (w->dispatches > 0)
            wgpuQueueWriteBuffer(w->queue, w->params, 0, w->params_host, (size_t)w->dispatches * GNI_WG_PARAM_BYTES);
        WGPUCommandBuffer commands = wgpuCommandEncoderFinish(w->encoder, NULL);
        wgpuQueueSubmit(w->queue, 1, &commands);
        wgpuCommandBufferRelease(commands);
        wgpuCommandEncoderRelease(w->encoder);
        w->encoder = NULL;
        w->dispatches = 0;
        w->serial++;
    }
    return gni_wg_checked(w);
}

static bool gni_wg_can_wait(gni_wg *w) {
    if (w->waits) return true;
    gni_fail(w->gpu.g, GN_ERROR_UNSUPPORTED,
             "%s: the value is on the GPU, for which a page cannot wait: read() and host() of JavaScript do not, nor "
             "gn_read_async and gn_poll, and programs linked with -sJSPI or -sASYNCIFY can",
             w->gpu.g->call);
    return false;
}

static bool gni_wg_wait(gni_gpu *d) {
    gni_wg *w = (gni_wg *)d;
    WGPUQueueWorkDoneCallbackInfo info;
    if (!gni_wg_flush(d)) return false;
    memset(&info, 0, sizeof info);
    info.mode = WGPUCallbackMode_WaitAnyOnly;
    info.callback = gni_wg_on_done;
    info.userdata1 = w;
    if (!gni_wg_can_wait(w)) return false;
    bool ok = gni_wg_await(w, wgpuQueueOnSubmittedWorkDone(w->queue, info));
    if (!ok) gni_fail(d->g, GN_ERROR_DEVICE_LOST, "WebGPU device %s: waiting failed: %s", d->caps.name, w->text);
    return ok && gni_wg_checked(w);
}

// Uploads reach whole words. The bytes behind the last ones of an array are nobody's.
static bool gni_wg_upload(gni_gpu *d, const gni_gpu_mem *dst, uint64_t offset, const void *src, uint64_t bytes) {
    gni_wg *w = (gni_wg *)d;
    const gni_wg_block *b = (const gni_wg_block *)dst->block;
    if (b->serial == w->serial && !gni_wg_flush(d)) return false;
    uint64_t whole = bytes & ~(uint64_t)3;
    const uint64_t piece = (uint64_t)64 << 20;
    for (uint64_t at = 0; at < whole; at += piece)
        wgpuQueueWriteBuffer(w->queue, b->buffer, offset + at, (const char *)src + at, (size_t)GNI_MIN(piece, whole - at));
    if (bytes > whole) {
        uint32_t last = 0;
        memcpy(&last, (const char *)src + whole, (size_t)(bytes - whole));
        wgpuQueueWriteBuffer(w->queue, b->buffer, offset + whole, &last, 4);
    }
    return gni_wg_checked(w);
}

static bool gni_wg_stage_take(gni_wg *w, uint64_t bytes, gni_wg_stage *out) {
    for (int i = 0; i < GNI_WG_STAGES; i++) {
        gni_wg_stage *s = &w->stages[i];
        if (!s->buffer || s->size < bytes || s->size / 4 > bytes + 65536) continue;
        *out = *s;
        memset(s, 0, sizeof *s);
        return true;
    }
    gni_wg_class(bytes, &out->size);
    out->buffer = gni_wg_buffer(w, out->size, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
    if (!out->buffer) gni_fail_memory(w->gpu.g, "memory for reading", bytes);
    return out->buffer != NULL;
}

static void gni_wg_stage_give(gni_wg *w, gni_wg_stage *s) {
    if (!s->buffer) return;
    int place = (int)(w->serial % GNI_WG_STAGES);
    for (int i = 0; i < GNI_WG_STAGES; i++)
        if (!w->stages[i].buffer) place = i;
    if (w->stages[place].buffer) {
        wgpuBufferDestroy(w->stages[place].buffer);
        wgpuBufferRelease(w->stages[place].buffer);
    }
    w->stages[place] = *s;
    memset(s, 0, sizeof *s);
}

// A ticket's memory is a stage: `handle` its buffer, `size` its size, `offset` the bytes in front of the data.
static bool gni_wg_download_begin(gni_gpu *d, const gni_gpu_mem *src, uint64_t offset, uint64_t bytes, gni_gpu_ticket *t) {
    gni_wg *w = (gni_wg *)d;
    gni_wg_stage s;
    uint64_t start = offset & ~(uint64_t)3, end = (offset + bytes + 3) & ~(uint64_t)3;
    memset(t, 0, sizeof *t);
    if (!gni_wg_checked(w) || !gni_wg_stage_take(w, end - start, &s)) return false;
    WGPUCommandEncoder e = gni_wg_encoder(w);
    wgpuCommandEncoderCopyBufferToBuffer(e, gni_wg_touch(w, src), start, s.buffer, 0, end - start);
    t->mem.handle = (uint64_t)(uintptr_t)s.buffer;
    t->mem.size = s.size;
    t->mem.offset = offset - start;
    t->bytes = bytes;
    t->serial = w->serial;
    t->data = s.buffer; // in use; becomes the data
    if (gni_wg_flush(d)) return true;
    gni_wg_stage_give(w, &s);
    memset(t, 0, sizeof *t);
    return false;
}

static void gni_wg_on_polled_map(WGPUMapAsyncStatus status, WGPUStringView message, void *user, void *unused) {
    GNI_UNUSED(status), GNI_UNUSED(message), GNI_UNUSED(user), GNI_UNUSED(unused); // the buffer is asked
}

// The buffer's bytes of a ticket become visible; `polled` where nobody waits for it. The state of a map that was
// begun is the buffer's own; t->mem.cls says that one was.
static WGPUFuture gni_wg_map(gni_wg *w, gni_gpu_ticket *t, bool polled) {
    GNI_ZEROED(WGPUBufferMapCallbackInfo, info);
    info.mode = polled ? WGPUCallbackMode_AllowProcessEvents : WGPUCallbackMode_WaitAnyOnly;
    info.callback = polled ? gni_wg_on_polled_map : gni_wg_on_map;
    info.userdata1 = w;
    t->mem.cls = 1;
    WGPUFuture f = wgpuBufferMapAsync((WGPUBuffer)(uintptr_t)t->mem.handle, WGPUMapMode_Read, 0,
                                      (size_t)((t->mem.offset + t->bytes + 3) & ~(uint64_t)3), info);
    t->mem.address = f.id; // a map needs none
    return f;
}

// Waits for a map that was begun. In a page promises are only kept while C is suspended.
static void gni_wg_map_wait(gni_wg *w, const gni_gpu_ticket *t) {
#if GNI_WG_BROWSER
    WGPUFuture f;
    f.id = t->mem.address;
    gni_wg_await(w, f);
#else
    do wgpuInstanceProcessEvents(w->instance);
    while (wgpuBufferGetMapState((WGPUBuffer)(uintptr_t)t->mem.handle) == WGPUBufferMapState_Pending);
#endif
}

static bool gni_wg_ticket_ready(gni_gpu *d, gni_gpu_ticket *t, bool wait) {
    gni_wg *w = (gni_wg *)d;
    WGPUBuffer b = (WGPUBuffer)(uintptr_t)t->mem.handle;
    if (!t->data) return false;
    if (t->mem.mapped) return true;
    bool ok = true;
    if (t->mem.cls == 0 && !w->waits) gni_wg_map(w, t, true);
    if (wait && t->mem.cls == 0) {
        ok = gni_wg_await(w, gni_wg_map(w, t, false));
    } else {
        if (t->mem.cls == 0) gni_wg_map(w, t, true);
        wgpuInstanceProcessEvents(w->instance);
        if (wait && wgpuBufferGetMapState(b) == WGPUBufferMapState_Pending && gni_wg_can_wait(w)) gni_wg_map_wait(w, t);
        if (wgpuBufferGetMapState(b) == WGPUBufferMapState_Pending) return false;
        ok = wgpuBufferGetMapState(b) == WGPUBufferMapState_Mapped;
    }
    if (!ok) {
        if (gni_wg_checked(w))
            gni_fail(d->g, GN_ERROR_DEVICE_LOST, "WebGPU device %s: reading failed: %s", d->caps.name, w->text);
        return false;
    }
    const size_t bytes = (size_t)((t->mem.offset + t->bytes + 3) & ~(uint64_t)3);
    const char *data = (const char *)wgpuBufferGetConstMappedRange(b, 0, bytes);
    if (!data) return gni_fail_memory(d->g, "memory for reading", bytes);
    t->mem.mapped = (void *)(uintptr_t)data;
    t->data = data + t->mem.offset;
    return gni_wg_checked(w);
}

static void gni_wg_ticket_release(gni_gpu *d, gni_gpu_ticket *t) {
    gni_wg_stage s;
    s.buffer = (WGPUBuffer)(uintptr_t)t->mem.handle;
    s.size = t->mem.size;
    if (t->mem.cls != 0) wgpuBufferUnmap(s.buffer); // ends a map that is under way, too
    if (t->data) gni_wg_stage_give((gni_wg *)d, &s);
    memset(t, 0, sizeof *t);
}

static bool gni_wg_download(gni_gpu *d, const gni_gpu_mem *src, uint64_t offset, void *dst, uint64_t bytes) {
    const uint64_t piece = (uint64_t)64 << 20;
    for (uint64_t at = 0; at < bytes; at += piece) {
        gni_gpu_ticket t;
        uint64_t n = GNI_MIN(piece, bytes - at);
        if (!gni_wg_download_begin(d, src, offset + at, n, &t)) return false;
        bool ok = gni_wg_ticket_ready(d, &t, true);
        if (ok) memcpy((char *)dst + at, t.data, (size_t)n);
        gni_wg_ticket_release(d, &t);
        if (!ok) return false;
    }
    return true;
}

// Whole words. Those of 0 are the device's; others are few.
static bool gni_wg_fill(gni_gpu *d, const gni_gpu_mem *dst, uint64_t offset, uint64_t bytes, uint32_t word) {
    gni_wg *w = (gni_wg *)d;
    bytes = (bytes + 3) & ~(uint64_t)3;
    if (bytes == 0) return true;
    if (word == 0) {
        WGPUCommandEncoder e = gni_wg_encoder(w);
        wgpuCommandEncoderClearBuffer(e, gni_wg_touch(w, dst), offset, bytes);
        return true;
    }
    uint32_t some[1024];
    for (int i = 0; i < 1024; i++) some[i] = word;
    for (uint64_t at = 0; at < bytes; at += sizeof some)
        if (!gni_wg_upload(d, dst, offset + at, some, GNI_MIN(sizeof some, bytes - at))) return false;
    return true;
}

// Offsets are multiples of 4. A buffer is not copied to itself, so that this goes through another one then.
static bool gni_wg_copy(gni_gpu *d, const gni_gpu_mem *dst, uint64_t to, const gni_gpu_mem *src, uint64_t from,
                        uint64_t bytes) {
    gni_wg *w = (gni_wg *)d;
    bytes = (bytes + 3) & ~(uint64_t)3;
    if (bytes == 0) return true;
    if (dst->block == src->block) {
        gni_gpu_mem between;
        if (!gni_wg_alloc(d, bytes, &between)) return gni_fail_memory(d->g, "a copy", bytes);
        bool ok = gni_wg_copy(d, &between, 0, src, from, bytes) && gni_wg_copy(d, dst, to, &between, 0, bytes);
        gni_wg_free(d, &between);
        return ok;
    }
    WGPUCommandEncoder e = gni_wg_encoder(w);
    wgpuCommandEncoderCopyBufferToBuffer(e, gni_wg_touch(w, src), from, gni_wg_touch(w, dst), to, bytes);
    return true;
}

#endif // GNI_WEBGPU
