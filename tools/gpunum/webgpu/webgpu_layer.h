// >>webgpu_layer
// Kernels on a WebGPU device, and its functions as a device layer. From outside: gni_wg_gpu_open.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../webgpu/webgpu_browser.h"
#include "../webgpu/webgpu_kernels.h"
#endif

#if GNI_WEBGPU

// ---- pipelines

static bool gni_wg_is_program(int module) {
    return module == GNI_MODULE_map_24 || module == GNI_MODULE_map_copy64 || module == GNI_MODULE_reduce_24 ||
           module == GNI_MODULE_map_wide_24 || module == GNI_MODULE_reduce_wide_24;
}

static uint64_t gni_wg_kernel_hash(const gni_gpu_kernel *k) {
    uint64_t h = (14695981039346656037u ^ (uint32_t)k->module) * 1099511628211u;
    for (uint32_t i = 0; i < k->n_spec; i++) h = (h ^ k->spec[i]) * 1099511628211u;
    return h ^ h >> 29;
}

static WGPUBindGroupLayout gni_wg_layout(gni_wg *w, uint32_t buffers, uint32_t written) {
    WGPUBindGroupLayoutEntry e[GNI_GPU_MAX_USES + 1];
    WGPUBindGroupLayoutDescriptor d;
    size_t n = 1;
    memset(e, 0, sizeof e);
    memset(&d, 0, sizeof d);
    e[0].visibility = WGPUShaderStage_Compute;
    e[0].buffer.type = WGPUBufferBindingType_Uniform;
    e[0].buffer.hasDynamicOffset = true;
    e[0].buffer.minBindingSize = GNI_WG_PARAM_BYTES;
    for (uint32_t k = 0; k < GNI_GPU_MAX_USES; k++) {
        if (!(buffers >> k & 1u)) continue;
        e[n].binding = k + 1;
        e[n].visibility = WGPUShaderStage_Compute;
        e[n++].buffer.type = written >> k & 1u ? WGPUBufferBindingType_Storage : WGPUBufferBindingType_ReadOnlyStorage;
    }
    d.entryCount = n;
    d.entries = e;
    return wgpuDeviceCreateBindGroupLayout(w->device, &d);
}

static void gni_wg_compile(gni_wg *w, gni_wg_pipeline *p, WGPUStringView text, uint32_t specs) {
    WGPUConstantEntry constants[GNI_GPU_MAX_SPEC];
    char keys[GNI_GPU_MAX_SPEC][4];
    WGPUShaderSourceWGSL source;
    WGPUShaderModuleDescriptor md;
    WGPUPipelineLayoutDescriptor ld;
    WGPUComputePipelineDescriptor d;
    memset(constants, 0, sizeof constants);
    memset(&source, 0, sizeof source);
    memset(&md, 0, sizeof md);
    memset(&ld, 0, sizeof ld);
    memset(&d, 0, sizeof d);
    p->layout = gni_wg_layout(w, p->buffers, p->written);
#if !GNI_WG_BROWSER // which says later what does not compile
    GNI_ZEROED(WGPUPopErrorScopeCallbackInfo, info);
    wgpuDevicePushErrorScope(w->device, WGPUErrorFilter_Validation);
#endif
    source.chain.sType = WGPUSType_ShaderSourceWGSL;
    source.code = text;
    md.nextInChain = &source.chain;
    WGPUShaderModule module = wgpuDeviceCreateShaderModule(w->device, &md);
    ld.bindGroupLayoutCount = 1;
    ld.bindGroupLayouts = &p->layout;
    d.layout = wgpuDeviceCreatePipelineLayout(w->device, &ld);
    d.compute.module = module;
    d.compute.entryPoint = gni_wg_view("main");
    for (uint32_t i = 0; i < p->kernel.n_spec && i < 32; i++) {
        if (!(specs >> i & 1u)) continue;
        snprintf(keys[i], sizeof keys[i], "%u", i % 100u);
        constants[d.compute.constantCount].key = gni_wg_view(keys[i]);
        constants[d.compute.constantCount++].value = (double)p->kernel.spec[i];
    }
    d.compute.constants = constants;
    p->pipeline = wgpuDeviceCreateComputePipeline(w->device, &d);
    wgpuPipelineLayoutRelease(d.layout);
    wgpuShaderModuleRelease(module);
#if !GNI_WG_BROWSER
    info.mode = WGPUCallbackMode_WaitAnyOnly;
    info.callback = gni_wg_on_scope;
    info.userdata1 = w;
    p->failed = !gni_wg_await(w, wgpuDevicePopErrorScope(w->device, info));
    if (p->failed) gni_log(w->gpu.g, GN_LOG_WARNING, "kernel %s does not compile: %s", p->name, w->text);
#endif
}

// False, after gni_fail: there is no text to compile.
static bool gni_wg_make(gni_wg *w, gni_wg_pipeline *p) {
    WGPUStringView text;
    if (gni_wg_is_program(p->kernel.module) || gni_wg_is_own(w, &p->kernel)) {
        char *made = gni_wg_program(w, &p->kernel, &p->buffers, &p->written);
        if (!made) return false;
        gni_log(w->gpu.g, GN_LOG_DEBUG, "a program of %d bytes", (int)strlen(made));
        gni_wg_compile(w, p, gni_wg_view(made), 0);
        gni_free(w->gpu.g, made);
        return true;
    }
    const gni_wgsl_kernel *k = &gni_wgsl_kernels[w->variant[p->kernel.module]];
    const char *block = gni_wg_text_get(w, k->block, k->start + k->bytes);
    if (!block) return false;
    p->buffers = k->buffers;
    p->written = k->written;
    text.data = block + k->start;
    text.length = k->bytes;
    gni_wg_compile(w, p, text, k->specs);
    return true;
}

static gni_gpu_pipeline *gni_wg_pipeline_get(gni_gpu *d, const gni_gpu_kernel *k, gni_gpu_mode mode) {
    gni_wg *w = (gni_wg *)d;
    uint64_t hash = gni_wg_kernel_hash(k);
    gni_wg_pipeline *p = w->pipelines[hash & 255u];
    while (p && (p->hash != hash || p->kernel.module != k->module || p->kernel.n_spec != k->n_spec ||
                 memcmp(p->kernel.spec, k->spec, k->n_spec * sizeof k->spec[0]) != 0))
        p = p->next;
    if (!p) {
        if (mode == GNI_GPU_PEEK || !gni_wg_checked(w)) return NULL;
        bool has =
            k->module >= 0 && k->module < GNI_MODULE_COUNT && (gni_wg_is_program(k->module) || w->variant[k->module] >= 0);
        if (!has) {
            gni_fail(d->g, GN_ERROR_UNSUPPORTED, "kernel %s has no form for WebGPU",
                     k->module >= 0 && k->module < GNI_MODULE_COUNT ? gni_modules[k->module].name : "");
            return NULL;
        }
        p = (gni_wg_pipeline *)gni_calloc(d->g, sizeof *p);
        if (!p) {
            gni_fail_memory(d->g, "a pipeline", sizeof *p);
            return NULL;
        }
        p->kernel = *k;
        p->gpu.module = k->module;
        p->hash = hash;
        p->name = gni_modules[k->module].name;
        if (!gni_wg_make(w, p)) { // there may be memory the next time
            gni_free(d->g, p);
            return NULL;
        }
        p->next = w->pipelines[hash & 255u];
        w->pipelines[hash & 255u] = p;
        d->pipelines++;
    }
    if (!p->failed) return &p->gpu;
    if (mode == GNI_GPU_WAIT) gni_fail(d->g, GN_ERROR_UNSUPPORTED, "kernel %s does not compile: %s", p->name, w->text);
    return NULL;
}

// ---- dispatch

static bool gni_wg_refuse(gni_wg *w, const gni_wg_pipeline *p, const char *what) {
    return gni_fail(w->gpu.g, GN_ERROR_ARGUMENT, "dispatch of %s: %s", p->name, what);
}

static bool gni_wg_no_spare(gni_wg *w) {
    return gni_fail_memory(w->gpu.g, "what a kernel does not use", 256);
}

// Arguments as they are bound: with other memory in the place of what must not be bound twice.
typedef struct gni_wg_call {
    gni_gpu_use use[GNI_GPU_MAX_USES];
    gni_gpu_mem copies[GNI_GPU_MAX_USES], spares[GNI_GPU_MAX_USES];
    int n_copies;
} gni_wg_call;

// Something for a place that a dispatch does not use.
static bool gni_wg_spare(gni_wg *w, gni_wg_call *c, int i) {
    if (!w->spare[i]) w->spare[i] = gni_wg_block_new(w, 0, 256);
    if (!w->spare[i]) return false;
    c->spares[i].block = w->spare[i];
    c->spares[i].size = 256;
    c->use[i].mem = &c->spares[i];
    c->use[i].offset = 0;
    c->use[i].bytes = 256;
    c->use[i].write = false;
    return true;
}

// What a dispatch writes is bound once: what else reads its buffer reads a copy, and where an argument comes twice, the
// kernel does not use the second place.
static bool gni_wg_apart(gni_wg *w, const gni_wg_pipeline *p, gni_wg_call *c) {
    for (int i = 0; i < GNI_GPU_MAX_USES; i++) {
        if (!(p->buffers >> i & 1u)) continue;
        for (int j = 0; j < GNI_GPU_MAX_USES; j++) {
            if (j == i || !(p->buffers >> j & 1u) || c->use[i].mem->block != c->use[j].mem->block) continue;
            if (!((p->written >> i | p->written >> j) & 1u)) continue;
            bool both = p->written >> i & p->written >> j & 1u;
            const gni_gpu_use *a = &c->use[i], *b = &c->use[j];
            if (both && (a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset)) continue;
            int k = (both ? a->write : p->written >> i & 1u) ? j : i; // which one is only read
            if (both && a->write && b->write) {
                if (a->offset != b->offset || a->bytes != b->bytes)
                    return gni_wg_refuse(w, p, "a buffer is to be written twice");
                if (!gni_wg_spare(w, c, GNI_MAX(i, j))) return gni_wg_no_spare(w);
                continue;
            }
            gni_gpu_mem *m = &c->copies[c->n_copies];
            uint64_t bytes = (c->use[k].bytes + 15u) & ~(uint64_t)15u;
            if (!gni_wg_alloc(&w->gpu, bytes, m)) return gni_fail_memory(w->gpu.g, "a copy of an argument", bytes);
            c->n_copies++;
            bytes = GNI_MIN(bytes, c->use[k].mem->size - c->use[k].offset);
            if (!gni_wg_copy(&w->gpu, m, 0, c->use[k].mem, c->use[k].offset, bytes)) return false;
            c->use[k].mem = m;
            c->use[k].offset = 0;
        }
    }
    return true;
}

static bool gni_wg_arguments(gni_wg *w, const gni_wg_pipeline *p, const gni_gpu_use *uses, int n_use, gni_wg_call *c) {
    memset(c, 0, sizeof *c);
    for (int i = 0; i < GNI_GPU_MAX_USES; i++) {
        gni_gpu_use *u = &c->use[i];
        if (i < n_use) *u = uses[i];
        if (!(p->buffers >> i & 1u)) continue;
        if ((!u->mem || u->bytes == 0) && !gni_wg_spare(w, c, i)) return gni_wg_no_spare(w);
        if (u->offset > u->mem->size || u->bytes > u->mem->size - u->offset)
            return gni_wg_refuse(w, p, "a buffer argument reaches outside of its memory");
        if (u->offset & 255u) return gni_wg_refuse(w, p, "a buffer argument is not aligned");
        if (u->bytes > w->gpu.caps.max_storage_range)
            return gni_wg_refuse(w, p, "a buffer argument is larger than this device can bind");
        u->bytes = GNI_MIN((u->bytes + 15u) & ~(uint64_t)15u, (u->mem->size - u->offset) & ~(uint64_t)3u);
    }
    return gni_wg_apart(w, p, c);
}

// The bind group of these arguments, remembered.
static WGPUBindGroup gni_wg_bind_group(gni_wg *w, const gni_wg_pipeline *p, const gni_wg_call *c) {
    WGPUBindGroupEntry e[GNI_GPU_MAX_USES + 1];
    GNI_ZEROED(gni_wg_group, g);
    g.pipeline = p;
    uint64_t h = (uint64_t)(uintptr_t)p;
    for (int k = 0; k < GNI_GPU_MAX_USES; k++) {
        if (!(p->buffers >> k & 1u)) continue;
        g.number[g.count] = ((const gni_wg_block *)c->use[k].mem->block)->number;
        g.offset[g.count] = c->use[k].offset;
        g.bytes[g.count] = c->use[k].bytes;
        h = (h ^ g.number[g.count]) * 1099511628211u;
        h = (h ^ g.offset[g.count]) * 1099511628211u;
        h = (h ^ g.bytes[g.count++]) * 1099511628211u;
    }
    gni_wg_group *at = &w->groups[(h ^ h >> 31) & (GNI_WG_GROUPS - 1)];
    g.group = at->group;
    if (at->group && memcmp(at, &g, sizeof g) == 0) return at->group;
    if (at->group) wgpuBindGroupRelease(at->group);
    WGPUBindGroupDescriptor d;
    memset(e, 0, sizeof e);
    memset(&d, 0, sizeof d);
    e[0].buffer = w->params;
    e[0].size = GNI_WG_PARAM_BYTES;
    for (int k = 0, n = 1; k < GNI_GPU_MAX_USES; k++) {
        if (!(p->buffers >> k & 1u)) continue;
        e[n].binding = (uint32_t)k + 1;
        e[n].buffer = ((const gni_wg_block *)c->use[k].mem->block)->buffer;
        e[n].offset = c->use[k].offset;
        e[n++].size = c->use[k].bytes;
    }
    d.layout = p->layout;
    d.entryCount = (size_t)g.count + 1;
    d.entries = e;
    g.group = wgpuDeviceCreateBindGroup(w->device, &d);
    memcpy(at, &g, sizeof g);
    return g.group;
}

static bool gni_wg_dispatch(gni_gpu *d, gni_gpu_pipeline *pipeline, const gni_gpu_use *uses, int n_use, const void *params,
                            uint32_t bytes, uint32_t x, uint32_t y, uint32_t z) {
    gni_wg *w = (gni_wg *)d;
    const gni_wg_pipeline *p = (const gni_wg_pipeline *)pipeline;
    gni_wg_call c;
    if (!p || !gni_wg_checked(w)) return false;
    if (n_use > GNI_GPU_MAX_USES) return gni_wg_refuse(w, p, "too many buffers");
    if (bytes > GNI_WG_PARAM_BYTES - 4) return gni_wg_refuse(w, p, "too many parameters");
    if (x > d->caps.max_groups[0] || y > d->caps.max_groups[1] || z > d->caps.max_groups[2])
        return gni_wg_refuse(w, p, "too many workgroups");
    if (x == 0 || y == 0 || z == 0) return true;
    if (w->dispatches == GNI_WG_BATCH && !gni_wg_flush(d)) return false;
    bool ok = gni_wg_arguments(w, p, uses, n_use, &c);
    if (ok) {
        if (!w->encoder) w->encoder = wgpuDeviceCreateCommandEncoder(w->device, NULL);
        if (!w->pass) w->pass = wgpuCommandEncoderBeginComputePass(w->encoder, NULL);
        uint32_t at = (uint32_t)w->dispatches++ * (uint32_t)GNI_WG_PARAM_BYTES;
        memset(w->params_host + at, 0, GNI_WG_PARAM_BYTES);
        if (bytes > 0) memcpy(w->params_host + at, params, bytes);
        if (w->bound != p) wgpuComputePassEncoderSetPipeline(w->pass, p->pipeline);
        w->bound = p;
        wgpuComputePassEncoderSetBindGroup(w->pass, 0, gni_wg_bind_group(w, p, &c), 1, &at);
        wgpuComputePassEncoderDispatchWorkgroups(w->pass, x, y, z);
        for (int i = 0; i < GNI_GPU_MAX_USES; i++)
            if (p->buffers >> i & 1u) gni_wg_touch(w, c.use[i].mem);
    }
    for (int i = 0; i < c.n_copies; i++) gni_wg_free(d, &c.copies[i]);
    return ok;
}

// ---- watching

static bool gni_wg_profile(gni_gpu *d, bool on) {
    GNI_UNUSED(d);
    GNI_UNUSED(on);
    return true; // there are no time stamps
}

static int gni_wg_profile_fetch(gni_gpu *d, gni_gpu_event *out, int capacity) {
    GNI_UNUSED(d);
    GNI_UNUSED(out);
    GNI_UNUSED(capacity);
    return 0;
}

static void gni_wg_info(const gni_gpu *d, gn_device_info *out) {
    const gni_wg *w = (const gni_wg *)d;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", d->caps.name);
    snprintf(out->driver, sizeof out->driver, "%s", w->driver);
    out->backend = GN_BACKEND_WEBGPU;
    out->usable = true;
    out->integrated = d->caps.kind == GNI_GPU_INTEGRATED;
    out->software = d->caps.kind == GNI_GPU_CPU;
    out->multiprocessors = (int)d->caps.multiprocessors;
    out->subgroup = (int)d->caps.subgroup;
    out->vendor_id = d->caps.vendor_id;
    out->device_id = d->caps.device_id;
}

// ---- opening and closing

static void gni_wg_close(gni_gpu *d) {
    gni_wg *w = (gni_wg *)d;
    gn_context *g = d->g;
    if (w->device) {
        if (!d->lost && w->queue && w->waits) gni_wg_wait(d);
        gni_wg_end_pass(w);
        if (w->encoder) wgpuCommandEncoderRelease(w->encoder);
        for (int i = 0; i < GNI_WG_GROUPS; i++)
            if (w->groups[i].group) wgpuBindGroupRelease(w->groups[i].group);
        while (w->all) gni_wg_block_free(w, w->all);
        for (int i = 0; i < GNI_WG_STAGES; i++)
            if (w->stages[i].buffer) wgpuBufferRelease(w->stages[i].buffer);
        for (int i = 0; i < 256; i++) {
            while (w->pipelines[i]) {
                gni_wg_pipeline *p = w->pipelines[i];
                w->pipelines[i] = p->next;
                if (p->pipeline) wgpuComputePipelineRelease(p->pipeline);
                if (p->layout) wgpuBindGroupLayoutRelease(p->layout);
                gni_free(g, p);
            }
        }
        if (w->params) wgpuBufferRelease(w->params);
        if (w->queue) wgpuQueueRelease(w->queue);
        wgpuDeviceDestroy(w->device);
        wgpuDeviceRelease(w->device);
    }
    if (w->adapter) wgpuAdapterRelease(w->adapter);
    if (w->instance) wgpuInstanceRelease(w->instance);
    for (int i = 0; w->unpacked && i < GNI_WGSL_BLOCK_COUNT; i++) gni_free(g, w->unpacked[i]);
    gni_free(g, w->unpacked);
    gni_free(g, w->functions);
    gni_free(g, w->variant);
    gni_free(g, w->params_host);
    gni_free(g, d->jobs);
    gni_free(g, w);
}

static bool gni_wg_open_device(gni_wg *w) {
    WGPUInstanceFeatureName feature = WGPUInstanceFeatureName_TimedWaitAny;
    WGPUInstanceDescriptor instance;
    WGPURequestAdapterOptions wanted;
    WGPURequestAdapterCallbackInfo adapter;
    WGPURequestDeviceCallbackInfo device;
    WGPUDeviceDescriptor d;
    memset(&instance, 0, sizeof instance);
    memset(&wanted, 0, sizeof wanted);
    memset(&adapter, 0, sizeof adapter);
    memset(&device, 0, sizeof device);
    memset(&d, 0, sizeof d);
    instance.requiredFeatureCount = 1;
    instance.requiredFeatures = &feature;
    w->instance = wgpuCreateInstance(&instance);
    if (!w->instance) {
        snprintf(w->text, sizeof w->text, "this %s has no WebGPU", GNI_WG_BROWSER ? "browser" : "library");
        return false;
    }
    wanted.featureLevel = WGPUFeatureLevel_Core;
    wanted.powerPreference = WGPUPowerPreference_HighPerformance;
    adapter.mode = WGPUCallbackMode_WaitAnyOnly;
    adapter.callback = gni_wg_on_adapter;
    adapter.userdata1 = w;
    if (!gni_wg_await(w, wgpuInstanceRequestAdapter(w->instance, &wanted, adapter)) || !w->adapter) return false;
#if !GNI_WG_BROWSER // whose half asks for the same
    WGPULimits has, wanted_limits;
    memset(&has, 0, sizeof has);
    memset(&wanted_limits, 0xff, sizeof wanted_limits); // those that every device has
    wanted_limits.nextInChain = NULL;
    if (wgpuAdapterGetLimits(w->adapter, &has) == WGPUStatus_Success) {
        wanted_limits.maxBufferSize = has.maxBufferSize;
        wanted_limits.maxStorageBufferBindingSize = has.maxStorageBufferBindingSize;
        wanted_limits.maxStorageBuffersPerShaderStage = has.maxStorageBuffersPerShaderStage;
        wanted_limits.maxComputeWorkgroupStorageSize = has.maxComputeWorkgroupStorageSize;
    }
    d.requiredLimits = &wanted_limits;
#endif
    device.mode = WGPUCallbackMode_WaitAnyOnly;
    device.callback = gni_wg_on_device;
    device.userdata1 = w;
    d.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
    d.deviceLostCallbackInfo.callback = gni_wg_on_lost;
    d.deviceLostCallbackInfo.userdata1 = w;
    d.uncapturedErrorCallbackInfo.callback = gni_wg_on_error;
    d.uncapturedErrorCallbackInfo.userdata1 = w;
    if (!gni_wg_await(w, wgpuAdapterRequestDevice(w->adapter, &d, device)) || !w->device) return false;
    w->queue = wgpuDeviceGetQueue(w->device);
    return true;
}

// False: of a device that does nothing, as tests of other things have it.
static bool gni_wg_caps(gni_wg *w) {
    gni_gpu_caps *c = &w->gpu.caps;
    WGPUAdapterInfo info;
    WGPULimits l;
    char device[128], description[128];
    memset(&info, 0, sizeof info);
    memset(&l, 0, sizeof l);
    wgpuAdapterGetInfo(w->adapter, &info);
    wgpuDeviceGetLimits(w->device, &l);
    gni_wg_words(device, sizeof device, info.device);
    gni_wg_words(description, sizeof description, info.description);
    snprintf(c->name, sizeof c->name, "%s", device[0] ? device : description[0] ? description : "unnamed");
    snprintf(w->driver, sizeof w->driver, "WebGPU%s%.100s", description[0] ? ", " : "", description);
    snprintf(c->driver, sizeof c->driver, "%s", w->driver);
    c->kind = info.adapterType == WGPUAdapterType_CPU             ? GNI_GPU_CPU
              : info.adapterType == WGPUAdapterType_IntegratedGPU ? GNI_GPU_INTEGRATED
                                                                  : GNI_GPU_DISCRETE;
    c->vendor_id = info.vendorID;
    c->device_id = info.deviceID;
    c->subgroup = c->subgroup_min = GNI_MAX(info.subgroupMinSize, 4u);
    c->subgroup_max = GNI_MAX(info.subgroupMaxSize, 4u);
    c->max_invocations = l.maxComputeInvocationsPerWorkgroup;
    c->max_size[0] = l.maxComputeWorkgroupSizeX;
    c->max_size[1] = l.maxComputeWorkgroupSizeY;
    c->max_size[2] = l.maxComputeWorkgroupSizeZ;
    for (int i = 0; i < 3; i++) c->max_groups[i] = l.maxComputeWorkgroupsPerDimension;
    c->shared_bytes = l.maxComputeWorkgroupStorageSize;
    c->max_storage_range = l.maxStorageBufferBindingSize;
    c->max_buffers = GNI_MIN(l.maxStorageBuffersPerShaderStage, (uint32_t)GNI_GPU_MAX_USES);
    c->max_allocation = w->max_buffer = l.maxBufferSize;
    c->texts = true;
    c->no_wait = !w->waits;
    c->jobs = ~(1u << GNI_JOB_FACTOR);
    c->fused = c->vendor_id == 0x10de; // NVIDIA, as with Vulkan
    // Nobody says; a browser does not tell small GPUs from large ones either.
    c->multiprocessors = c->kind == GNI_GPU_CPU ? 4 : c->kind == GNI_GPU_INTEGRATED ? 16 : 64;
    c->alone = c->kind == GNI_GPU_CPU ? GNI_MIN(c->subgroup, 64u) : 0;
    bool real = info.backendType != WGPUBackendType_Null;
    wgpuAdapterInfoFreeMembers(info);
    return real;
}

static bool gni_wg_tables(gni_wg *w) {
    gn_context *g = w->gpu.g;
    w->variant = (int *)gni_alloc(g, (size_t)GNI_MODULE_COUNT * sizeof(int));
    w->unpacked = (gni_unpack **)gni_calloc(g, (size_t)GNI_WGSL_BLOCK_COUNT * sizeof(gni_unpack *));
    w->params_host = (uint8_t *)gni_alloc(g, (size_t)GNI_WG_BATCH * GNI_WG_PARAM_BYTES);
    if (!w->variant || !w->unpacked || !w->params_host) return false;
    for (int i = 0; i < GNI_MODULE_COUNT; i++) w->variant[i] = -1;
    for (int i = 0; gni_wgsl_kernels[i].module >= 0; i++) // a second form is one without barriers
        if (w->gpu.caps.alone || w->variant[gni_wgsl_kernels[i].module] < 0) w->variant[gni_wgsl_kernels[i].module] = i;
    for (int i = 0; i < (int)GNI_COUNT(gni_wg_tiles); i++) w->variant[gni_wg_tiles[i].module] = 0; // written at run time
    w->gpu.kernels = w->variant;
    w->params =
        gni_wg_buffer(w, (uint64_t)GNI_WG_BATCH * GNI_WG_PARAM_BYTES, WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst);
    return w->params != NULL;
}

static const gni_gpu_layer gni_webgpu_layer = {"webgpu",
                                               gni_wg_close,
                                               gni_wg_info,
                                               gni_wg_alloc,
                                               gni_wg_free,
                                               gni_wg_trim,
                                               gni_wg_memory_stats,
                                               gni_wg_upload,
                                               gni_wg_download,
                                               gni_wg_download_begin,
                                               gni_wg_ticket_ready,
                                               gni_wg_ticket_release,
                                               gni_wg_fill,
                                               gni_wg_copy,
                                               gni_wg_pipeline_get,
                                               gni_wg_dispatch,
                                               NULL,
                                               gni_wg_flush,
                                               gni_wg_wait,
                                               gni_wg_profile,
                                               gni_wg_profile_fetch,
                                               NULL,
                                               NULL,
                                               NULL,
                                               NULL};

static gni_gpu *gni_wg_gpu_open(gn_context *g, const gn_options *o, char *why, size_t why_size) {
    gni_wg *w = (gni_wg *)gni_calloc(g, sizeof *w);
    if (!w) {
        snprintf(why, why_size, "WebGPU: out of memory");
        return NULL;
    }
    w->gpu.layer = &gni_webgpu_layer;
    w->gpu.g = g;
    w->serial = 1;
    w->limit = o->memory_limit;
#if GNI_WG_BROWSER
    w->waits = gni_wg_browser_waits();
#else
    w->waits = true;
#endif
    if (!gni_wg_open_device(w)) {
        snprintf(why, why_size, "WebGPU: no device%s%.180s", w->text[0] ? ": " : "", w->text);
    } else if (!gni_wg_caps(w)) {
        snprintf(why, why_size, "WebGPU: no device but one that does nothing");
    } else if (o->backend == GN_BACKEND_AUTO && w->gpu.caps.kind == GNI_GPU_CPU) {
        snprintf(why, why_size, "WebGPU: %.150s is made of software", w->gpu.caps.name);
    } else if (!gni_wg_tables(w)) {
        snprintf(why, why_size, "WebGPU: out of memory");
    } else {
        return &w->gpu;
    }
    gni_wg_close(&w->gpu);
    return NULL;
}

#else // GNI_WEBGPU

static gni_gpu *gni_wg_gpu_open(gn_context *g, const gn_options *o, char *why, size_t why_size) {
    GNI_UNUSED(g);
    GNI_UNUSED(o);
    snprintf(why, why_size, "compiled without GPUNUM_USE_WEBGPU");
    return NULL;
}

#endif // GNI_WEBGPU
