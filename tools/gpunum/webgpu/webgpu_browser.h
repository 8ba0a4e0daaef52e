// >>webgpu_browser
// In a page: the part of webgpu.h that the WebGPU layer calls, on the browser's own WebGPU. Objects are places in a table
// that the module's JavaScript keeps, futures are promises. A promise is only kept when C returns to the page, or while C is
// suspended by JSPI or Asyncify; a program that is linked with neither waits for nothing. From outside: what webgpu.h has,
// gni_wg_browser_waits, gni_wg_browser_prepare.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/internal.h"
#endif

#if GNI_WEBGPU && defined(__EMSCRIPTEN__)

#include <emscripten.h>

// ---- declarations as in webgpu.h, as far as they are needed

#define WGPU_STRLEN SIZE_MAX
typedef struct gni_wj_object *WGPUInstance, *WGPUAdapter, *WGPUDevice, *WGPUQueue, *WGPUBuffer, *WGPUShaderModule,
    *WGPUPipelineLayout, *WGPUBindGroupLayout, *WGPUBindGroup, *WGPUComputePipeline, *WGPUCommandEncoder,
    *WGPUComputePassEncoder, *WGPUCommandBuffer;
typedef uint64_t WGPUBufferUsage;
typedef enum {
    WGPUCallbackMode_WaitAnyOnly = 1,
    WGPUCallbackMode_AllowProcessEvents,
    WGPUCallbackMode_AllowSpontaneous
} WGPUCallbackMode;
// Of what a future brings: 1 where it went well.
typedef enum { WGPURequestAdapterStatus_Success = 1 } WGPURequestAdapterStatus;
typedef enum { WGPURequestDeviceStatus_Success = 1 } WGPURequestDeviceStatus;
typedef enum { WGPUMapAsyncStatus_Success = 1 } WGPUMapAsyncStatus;
typedef enum { WGPUQueueWorkDoneStatus_Success = 1 } WGPUQueueWorkDoneStatus;
typedef enum { WGPUWaitStatus_Success = 1, WGPUWaitStatus_Error } WGPUWaitStatus;
typedef enum { WGPUErrorType_NoError = 1, WGPUErrorType_Validation, WGPUErrorType_OutOfMemory } WGPUErrorType;
typedef enum {
    WGPUDeviceLostReason_Unknown = 1,
    WGPUDeviceLostReason_Destroyed,
    WGPUDeviceLostReason_CallbackCancelled
} WGPUDeviceLostReason;
typedef enum { WGPUFeatureLevel_Core = 1 } WGPUFeatureLevel;
typedef enum { WGPUPowerPreference_HighPerformance = 1 } WGPUPowerPreference;
typedef enum { WGPUInstanceFeatureName_TimedWaitAny = 1 } WGPUInstanceFeatureName;
typedef enum { WGPUAdapterType_DiscreteGPU = 1, WGPUAdapterType_IntegratedGPU, WGPUAdapterType_CPU } WGPUAdapterType;
typedef enum { WGPUBackendType_Null = 1, WGPUBackendType_WebGPU } WGPUBackendType;
typedef enum { WGPUBufferMapState_Unmapped = 1, WGPUBufferMapState_Pending, WGPUBufferMapState_Mapped } WGPUBufferMapState;
typedef enum {
    WGPUBufferBindingType_Uniform = 1,
    WGPUBufferBindingType_Storage,
    WGPUBufferBindingType_ReadOnlyStorage
} WGPUBufferBindingType;
typedef enum { WGPUSType_ShaderSourceWGSL = 1 } WGPUSType;
// GPUBufferUsage, GPUShaderStage and GPUMapMode of the browser.
enum { WGPUMapMode_Read = 1, WGPUShaderStage_Compute = 4 };
enum {
    WGPUBufferUsage_MapRead = 1,
    WGPUBufferUsage_CopySrc = 4,
    WGPUBufferUsage_CopyDst = 8,
    WGPUBufferUsage_Uniform = 64,
    WGPUBufferUsage_Storage = 128
};

typedef struct { const char *data; size_t length; } WGPUStringView;
typedef struct { uint64_t id; } WGPUFuture;
typedef struct { WGPUFuture future; bool completed; } WGPUFutureWaitInfo;
typedef struct { size_t requiredFeatureCount; const WGPUInstanceFeatureName *requiredFeatures; } WGPUInstanceDescriptor;
typedef struct { WGPUFeatureLevel featureLevel; WGPUPowerPreference powerPreference; } WGPURequestAdapterOptions;

#define GNI_WJ_CALLBACK(name, ...)                                                                     \
    typedef void (*name##Callback)(__VA_ARGS__, WGPUStringView message, void *user, void *unused); \
    typedef struct { WGPUCallbackMode mode; name##Callback callback; void *userdata1, *userdata2; } name##CallbackInfo
GNI_WJ_CALLBACK(WGPURequestAdapter, WGPURequestAdapterStatus status, WGPUAdapter adapter);
GNI_WJ_CALLBACK(WGPURequestDevice, WGPURequestDeviceStatus status, WGPUDevice device);
GNI_WJ_CALLBACK(WGPUBufferMap, WGPUMapAsyncStatus status);
GNI_WJ_CALLBACK(WGPUQueueWorkDone, WGPUQueueWorkDoneStatus status);
GNI_WJ_CALLBACK(WGPUDeviceLost, WGPUDevice const *device, WGPUDeviceLostReason reason);
GNI_WJ_CALLBACK(WGPUUncapturedError, WGPUDevice const *device, WGPUErrorType type);
#undef GNI_WJ_CALLBACK

typedef struct {
    uint32_t maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupSizeX, maxComputeWorkgroupSizeY, maxComputeWorkgroupSizeZ,
        maxComputeWorkgroupsPerDimension, maxComputeWorkgroupStorageSize, maxStorageBuffersPerShaderStage;
    uint64_t maxStorageBufferBindingSize, maxBufferSize;
} WGPULimits;
typedef struct {
    WGPUStringView device, description;
    WGPUAdapterType adapterType;
    WGPUBackendType backendType;
    uint32_t vendorID, deviceID, subgroupMinSize, subgroupMaxSize;
} WGPUAdapterInfo;
typedef struct {
    const WGPULimits *requiredLimits;
    WGPUDeviceLostCallbackInfo deviceLostCallbackInfo;
    WGPUUncapturedErrorCallbackInfo uncapturedErrorCallbackInfo;
} WGPUDeviceDescriptor;
typedef struct { WGPUBufferUsage usage; uint64_t size; } WGPUBufferDescriptor;
typedef struct { WGPUSType sType; } WGPUChainedStruct;
typedef struct { WGPUChainedStruct chain; WGPUStringView code; } WGPUShaderSourceWGSL;
typedef struct { const WGPUChainedStruct *nextInChain; } WGPUShaderModuleDescriptor;
typedef struct {
    uint32_t binding;
    uint64_t visibility;
    struct { WGPUBufferBindingType type; bool hasDynamicOffset; uint64_t minBindingSize; } buffer;
} WGPUBindGroupLayoutEntry;
typedef struct { size_t entryCount; const WGPUBindGroupLayoutEntry *entries; } WGPUBindGroupLayoutDescriptor;
typedef struct { uint32_t binding; WGPUBuffer buffer; uint64_t offset, size; } WGPUBindGroupEntry;
typedef struct { WGPUBindGroupLayout layout; size_t entryCount; const WGPUBindGroupEntry *entries; } WGPUBindGroupDescriptor;
typedef struct { size_t bindGroupLayoutCount; const WGPUBindGroupLayout *bindGroupLayouts; } WGPUPipelineLayoutDescriptor;
typedef struct { WGPUStringView key; double value; } WGPUConstantEntry;
typedef struct {
    WGPUPipelineLayout layout;
    struct {
        WGPUShaderModule module;
        WGPUStringView entryPoint;
        size_t constantCount;
        const WGPUConstantEntry *constants;
    } compute;
} WGPUComputePipelineDescriptor;

// ---- JavaScript

EM_JS_DEPS(gni_wj, "$UTF8ToString,$stringToUTF8,$getWasmTableEntry")

// The module's state. Of futures, `kind` and so on are what gni_wj_call takes. 0: the browser has no WebGPU.
EM_JS(int, gni_wj_start, (void), {
    if (typeof navigator === "undefined" || !navigator["gpu"]) return 0;
    if (Module["gnGpu"]) return 1;
    const S = Module["gnGpu"] = { objects: [null], unused: [], futures: new Map(), last: 0, ready: null };
    S.put = x => {
        const at = S.unused.length > 0 ? S.unused.pop() : S.objects.length;
        S.objects[at] = x;
        return at;
    };
    S.future = (kind, mode, callback, user) => {
        const f = { kind, mode, callback, user, done: false, status: 0, handle: 0, text: "" };
        S.futures.set(++S.last, f);
        return f;
    };
    S.promise = (f, p, made) => {
        f.wait = p.then(x => {
            f.status = 1;
            if (made) made(x);
        }).catch(e => {
            f.status = 0;
            f.text = String(e && e.message ? e.message : e);
        }).then(() => { f.done = true; });
        return S.last;
    };
    S.say = (kind, callback, user, status, text) => {
        const f = S.future(kind, 3, callback, user);
        Object.assign(f, { status, text: String(text), done: true });
    };
    S.adapter = () => navigator["gpu"].requestAdapter({ powerPreference: "high-performance" }).then(a => {
        if (!a) throw new Error("the browser has no adapter");
        return a;
    });
    S.device = a => {
        const requiredLimits = {},
              more = [ "maxBufferSize", "maxStorageBufferBindingSize", "maxStorageBuffersPerShaderStage",
                       "maxComputeWorkgroupStorageSize" ];
        for (const l of more) requiredLimits[l] = a.limits[l];
        return a.requestDevice({ requiredLimits });
    };
    return 1;
})
// Gets the adapter and the device, which the next requests find there, and calls back.
EM_JS(void, gni_wj_prepare, (void *done, void *user), {
    const S = Module["gnGpu"];
    let ready = {};
    const call = () => {
        S.ready = ready;
        getWasmTableEntry(done)(user);
        S.ready = null;
    };
    S.adapter().then(adapter => {
        ready.adapter = adapter;
        return S.device(adapter);
    }).then(device => { ready.device = device; }, e => { ready = { why: e }; }).then(call);
})
EM_JS(int, gni_wj_adapter, (int mode, void *callback, void *user), {
    const S = Module["gnGpu"], f = S.future(1, mode, callback, user), made = a => { f.handle = S.put(a); };
    if (!S.ready) return S.promise(f, S.adapter(), made);
    f.done = true;
    f.status = S.ready.adapter ? 1 : 0;
    if (S.ready.adapter) made(S.ready.adapter);
    else f.text = String(S.ready.why && S.ready.why.message ? S.ready.why.message : S.ready.why);
    return S.last;
})
EM_JS(int, gni_wj_device, (int adapter, int mode, void *callback, void *user, void *lost, void *lostUser, void *error,
                          void *errorUser), {
    const S = Module["gnGpu"], f = S.future(2, mode, callback, user), made = d => {
        f.handle = S.put(d);
        d.lost.then(i => S.say(5, lost, lostUser, i.reason === "destroyed" ? 2 : 1, i.message));
        d.addEventListener("uncapturederror", e => {
            e.preventDefault();
            S.say(6, error, errorUser, e.error instanceof GPUOutOfMemoryError ? 3 : 2, e.error.message);
        });
    };
    if (!S.ready) return S.promise(f, S.device(S.objects[adapter]), made);
    f.done = true;
    f.status = 1;
    made(S.ready.device);
    return S.last;
})
EM_JS(int, gni_wj_map, (int buffer, double offset, double size, int mode, void *callback, void *user), {
    const S = Module["gnGpu"], f = S.future(3, mode, callback, user);
    return S.promise(f, S.objects[buffer].mapAsync(1, offset, size));
})
EM_JS(int, gni_wj_done, (int queue, int mode, void *callback, void *user), {
    const S = Module["gnGpu"], f = S.future(4, mode, callback, user);
    return S.promise(f, S.objects[queue].onSubmittedWorkDone());
})
// Whether a future is there; of id 0, the first one that may call back now, or 0.
EM_JS(int, gni_wj_ready, (int id), {
    const S = Module["gnGpu"];
    if (id) return S.futures.get(id).done ? id : 0;
    for (const [i, f] of S.futures) if (f.done && f.mode > 1) return i;
    return 0;
})
EM_JS(int, gni_wj_waits, (void), { return typeof Asyncify !== "undefined" ? 1 : 0; })
EM_ASYNC_JS(void, gni_wj_wait, (int id), { await Module["gnGpu"].futures.get(id).wait; })
EM_JS(void, gni_wj_take, (int id, int32_t *out, char *text, int room), {
    const S = Module["gnGpu"], f = S.futures.get(id);
    S.futures.delete(id);
    [f.kind, f.callback, f.user, f.status, f.handle].forEach((x, i) => { HEAP32[(out >> 2) + i] = x; });
    stringToUTF8(f.text, text, room);
})
EM_JS(void, gni_wj_drop, (int at), {
    const S = Module["gnGpu"];
    S.objects[at] = null;
    S.unused.push(at);
})
EM_JS(void, gni_wj_info, (int adapter, char *name, int room, double *out), {
    const i = Module["gnGpu"].objects[adapter].info || {};
    stringToUTF8(i.description || [i.vendor, i.architecture].filter(Boolean).join(" "), name, room);
    HEAPF64[out >> 3] = i.isFallbackAdapter ? 1 : 0;
    HEAPF64[(out >> 3) + 3] = i.vendor == "nvidia" ? 0x10de : 0;
    HEAPF64[(out >> 3) + 1] = i.subgroupMinSize || 0;
    HEAPF64[(out >> 3) + 2] = i.subgroupMaxSize || 0;
})
EM_JS(double, gni_wj_limit, (int device, const char *name),
      { return Module["gnGpu"].objects[device].limits[UTF8ToString(name)]; })
EM_JS(int, gni_wj_queue, (int device), {
    const S = Module["gnGpu"];
    S.queue = S.objects[device].queue;
    return S.put(S.queue);
})
EM_JS(void, gni_wj_destroy, (int at), { Module["gnGpu"].objects[at].destroy(); })
EM_JS(int, gni_wj_buffer, (int device, double size, int usage), {
    const S = Module["gnGpu"];
    return S.put(S.objects[device].createBuffer({ size, usage }));
})
EM_JS(void, gni_wj_write, (int queue, int buffer, double offset, const void *data, double size), {
    const S = Module["gnGpu"];
    S.objects[queue].writeBuffer(S.objects[buffer], offset, HEAPU8, data >>> 0, size);
})
EM_JS(int, gni_wj_state, (int buffer), {
    return ["unmapped", "pending", "mapped"].indexOf(Module["gnGpu"].objects[buffer].mapState) + 1;
})
// The mapped bytes, copied to `to`, which stays with the buffer until gni_wj_unmap hands it back.
EM_JS(void, gni_wj_mapped, (int buffer, double offset, double size, void *to), {
    const b = Module["gnGpu"].objects[buffer];
    HEAPU8.set(new Uint8Array(b.getMappedRange(offset, size)), to >>> 0);
    b.gnCopy = to;
})
EM_JS(void *, gni_wj_unmap, (int buffer), {
    const b = Module["gnGpu"].objects[buffer], copy = b.gnCopy || 0;
    b.gnCopy = 0;
    b.unmap();
    return copy;
})
EM_JS(int, gni_wj_module, (int device, const char *text, int length), {
    const S = Module["gnGpu"];
    return S.put(S.objects[device].createShaderModule({ code: UTF8ToString(text, length) }));
})
EM_JS(int, gni_wj_layout, (int device, const int32_t *entry, int count), {
    const S = Module["gnGpu"], entries = [];
    for (let i = 0; i < count; i++) {
        const [binding, type, least] = HEAP32.subarray((entry >> 2) + 3 * i, (entry >> 2) + 3 * i + 3);
        const words = ["uniform", "storage", "read-only-storage"];
        const buffer = { type: words[type - 1], hasDynamicOffset: type === 1, minBindingSize: least };
        entries.push({ binding, visibility: 4, buffer });
    }
    return S.put(S.objects[device].createBindGroupLayout({ entries }));
})
EM_JS(int, gni_wj_pipeline_layout, (int device, int layout), {
    const S = Module["gnGpu"];
    return S.put(S.objects[device].createPipelineLayout({ bindGroupLayouts: [S.objects[layout]] }));
})
EM_JS(int, gni_wj_pipeline, (int device, int layout, int module, const char *const *key, const double *value, int count), {
    const S = Module["gnGpu"], constants = {};
    for (let i = 0; i < count; i++) constants[UTF8ToString(HEAPU32[(key >> 2) + i])] = HEAPF64[(value >> 3) + i];
    const compute = { module: S.objects[module], entryPoint: "main", constants };
    return S.put(S.objects[device].createComputePipeline({ layout: S.objects[layout], compute }));
})
EM_JS(int, gni_wj_group, (int device, int layout, const double *entry, int count), {
    const S = Module["gnGpu"], entries = [];
    for (let i = 0; i < count; i++) {
        const [binding, buffer, offset, size] = HEAPF64.subarray((entry >> 3) + 4 * i, (entry >> 3) + 4 * i + 4);
        entries.push({ binding, resource: { buffer: S.objects[buffer], offset, size } });
    }
    return S.put(S.objects[device].createBindGroup({ layout: S.objects[layout], entries }));
})
EM_JS(int, gni_wj_encoder, (int device), {
    const S = Module["gnGpu"];
    return S.put(S.objects[device].createCommandEncoder());
})
EM_JS(int, gni_wj_pass, (int encoder), {
    const S = Module["gnGpu"];
    return S.put(S.objects[encoder].beginComputePass());
})
EM_JS(void, gni_wj_use, (int pass, int pipeline), {
    const S = Module["gnGpu"];
    S.objects[pass].setPipeline(S.objects[pipeline]);
})
EM_JS(void, gni_wj_bind, (int pass, int group, uint32_t offset), {
    const S = Module["gnGpu"];
    S.objects[pass].setBindGroup(0, S.objects[group], [offset >>> 0]);
})
EM_JS(void, gni_wj_dispatch, (int pass, uint32_t x, uint32_t y, uint32_t z), {
    Module["gnGpu"].objects[pass].dispatchWorkgroups(x >>> 0, y >>> 0, z >>> 0);
})
EM_JS(void, gni_wj_end, (int pass), { Module["gnGpu"].objects[pass].end(); })
EM_JS(void, gni_wj_copy, (int encoder, int from, double at, int to, double where, double size), {
    const S = Module["gnGpu"];
    S.objects[encoder].copyBufferToBuffer(S.objects[from], at, S.objects[to], where, size);
})
EM_JS(void, gni_wj_clear, (int encoder, int buffer, double at, double size), {
    const S = Module["gnGpu"];
    S.objects[encoder].clearBuffer(S.objects[buffer], at, size);
})
EM_JS(int, gni_wj_finish, (int encoder), {
    const S = Module["gnGpu"];
    return S.put(S.objects[encoder].finish());
})
EM_JS(void, gni_wj_submit, (int queue, int commands), {
    const S = Module["gnGpu"];
    S.objects[queue].submit([S.objects[commands]]);
})

// ---- webgpu.h's functions

#define GNI_WJ(object) ((int)(intptr_t)(object))
#define GNI_WJ_FROM(T, number) ((T)(intptr_t)(number))

// Whether a call can wait here; else what would wait must be left to gn_open_async, gn_read_async and gn_poll.
static bool gni_wg_browser_waits(void) { return gni_wj_waits() != 0; }

// False: there is no WebGPU, and nothing is called back.
static bool gni_wg_browser_prepare(void (*done)(void *user), void *user) {
    if (!gni_wj_start()) return false;
    gni_wj_prepare((void *)done, user);
    return true;
}

static void gni_wj_call(int id) {
    int32_t v[5]; // kind, callback, user, status, handle
    char text[512];
    WGPUStringView view;
    gni_wj_take(id, v, text, (int)sizeof text);
    view.data = text;
    view.length = strlen(text);
    void *const f = GNI_WJ_FROM(void *, v[1]), *const user = GNI_WJ_FROM(void *, v[2]);
    WGPUAdapter const object = GNI_WJ_FROM(WGPUAdapter, v[4]);
    switch (v[0]) {
    case 1: ((WGPURequestAdapterCallback)f)((WGPURequestAdapterStatus)v[3], object, view, user, NULL); break;
    case 2: ((WGPURequestDeviceCallback)f)((WGPURequestDeviceStatus)v[3], object, view, user, NULL); break;
    case 3: ((WGPUBufferMapCallback)f)((WGPUMapAsyncStatus)v[3], view, user, NULL); break;
    case 4: ((WGPUQueueWorkDoneCallback)f)((WGPUQueueWorkDoneStatus)v[3], view, user, NULL); break;
    case 5: ((WGPUDeviceLostCallback)f)(NULL, (WGPUDeviceLostReason)v[3], view, user, NULL); break;
    default: ((WGPUUncapturedErrorCallback)f)(NULL, (WGPUErrorType)v[3], view, user, NULL); break;
    }
}

static WGPUInstance wgpuCreateInstance(const WGPUInstanceDescriptor *d) {
    GNI_UNUSED(d);
    return GNI_WJ_FROM(WGPUInstance, gni_wj_start());
}
static void wgpuInstanceRelease(WGPUInstance i) { GNI_UNUSED(i); }
static void wgpuInstanceProcessEvents(WGPUInstance i) {
    GNI_UNUSED(i);
    for (int id; (id = gni_wj_ready(0)) != 0;) gni_wj_call(id);
}
static WGPUWaitStatus wgpuInstanceWaitAny(WGPUInstance i, size_t count, WGPUFutureWaitInfo *info, uint64_t timeout) {
    const int id = (int)info->future.id;
    GNI_UNUSED(count), GNI_UNUSED(timeout);
    if (!gni_wj_ready(id)) {
        if (!gni_wj_waits()) return WGPUWaitStatus_Error;
        gni_wj_wait(id);
    }
    wgpuInstanceProcessEvents(i); // what the device said until then comes first
    gni_wj_call(id);
    return WGPUWaitStatus_Success;
}
static WGPUFuture gni_wj_future(int id) {
    WGPUFuture f;
    f.id = (uint64_t)id;
    return f;
}
static WGPUFuture wgpuInstanceRequestAdapter(WGPUInstance i, const WGPURequestAdapterOptions *o,
                                             WGPURequestAdapterCallbackInfo c) {
    GNI_UNUSED(i), GNI_UNUSED(o);
    return gni_wj_future(gni_wj_adapter((int)c.mode, (void *)c.callback, c.userdata1));
}
static WGPUFuture wgpuAdapterRequestDevice(WGPUAdapter a, const WGPUDeviceDescriptor *d, WGPURequestDeviceCallbackInfo c) {
    const WGPUDeviceLostCallbackInfo *lost = &d->deviceLostCallbackInfo;
    const WGPUUncapturedErrorCallbackInfo *error = &d->uncapturedErrorCallbackInfo;
    return gni_wj_future(gni_wj_device(GNI_WJ(a), (int)c.mode, (void *)c.callback, c.userdata1, (void *)lost->callback,
                                       lost->userdata1, (void *)error->callback, error->userdata1));
}
static WGPUFuture wgpuBufferMapAsync(WGPUBuffer b, int mode, size_t offset, size_t size, WGPUBufferMapCallbackInfo c) {
    GNI_UNUSED(mode);
    return gni_wj_future(gni_wj_map(GNI_WJ(b), (double)offset, (double)size, (int)c.mode, (void *)c.callback, c.userdata1));
}
static WGPUFuture wgpuQueueOnSubmittedWorkDone(WGPUQueue q, WGPUQueueWorkDoneCallbackInfo c) {
    return gni_wj_future(gni_wj_done(GNI_WJ(q), (int)c.mode, (void *)c.callback, c.userdata1));
}

#define GNI_WJ_RELEASE(name) static void wgpu##name##Release(WGPU##name o) { gni_wj_drop(GNI_WJ(o)); }
GNI_WJ_RELEASE(Adapter)
GNI_WJ_RELEASE(Device)
GNI_WJ_RELEASE(Queue)
GNI_WJ_RELEASE(Buffer)
GNI_WJ_RELEASE(ShaderModule)
GNI_WJ_RELEASE(PipelineLayout)
GNI_WJ_RELEASE(BindGroupLayout)
GNI_WJ_RELEASE(BindGroup)
GNI_WJ_RELEASE(ComputePipeline)
GNI_WJ_RELEASE(CommandEncoder)
GNI_WJ_RELEASE(ComputePassEncoder)
GNI_WJ_RELEASE(CommandBuffer)
#undef GNI_WJ_RELEASE

// Browsers do not say which kind of GPU it is, but whether it is one.
static void wgpuAdapterGetInfo(WGPUAdapter a, WGPUAdapterInfo *out) {
    double v[4];
    char *name = (char *)calloc(1, 256);
    if (name) gni_wj_info(GNI_WJ(a), name, 256, v);
    out->description.data = name;
    out->description.length = name ? strlen(name) : 0;
    out->backendType = WGPUBackendType_WebGPU;
    out->adapterType = name && v[0] != 0 ? WGPUAdapterType_CPU : WGPUAdapterType_DiscreteGPU;
    out->vendorID = name ? (uint32_t)v[3] : 0;
    out->subgroupMinSize = name ? (uint32_t)v[1] : 0;
    out->subgroupMaxSize = name ? (uint32_t)v[2] : 0;
}
static void wgpuAdapterInfoFreeMembers(WGPUAdapterInfo i) { free((void *)(uintptr_t)i.description.data); }
static void wgpuDeviceGetLimits(WGPUDevice d, WGPULimits *out) {
#define GNI_X(T, name) out->name = (T)gni_wj_limit(GNI_WJ(d), #name);
    GNI_X(uint32_t, maxComputeInvocationsPerWorkgroup)
    GNI_X(uint32_t, maxComputeWorkgroupSizeX)
    GNI_X(uint32_t, maxComputeWorkgroupSizeY)
    GNI_X(uint32_t, maxComputeWorkgroupSizeZ)
    GNI_X(uint32_t, maxComputeWorkgroupsPerDimension)
    GNI_X(uint32_t, maxComputeWorkgroupStorageSize)
    GNI_X(uint32_t, maxStorageBuffersPerShaderStage)
    GNI_X(uint64_t, maxStorageBufferBindingSize)
    GNI_X(uint64_t, maxBufferSize)
#undef GNI_X
}
static WGPUQueue wgpuDeviceGetQueue(WGPUDevice d) { return GNI_WJ_FROM(WGPUQueue, gni_wj_queue(GNI_WJ(d))); }
static void wgpuDeviceDestroy(WGPUDevice d) { gni_wj_destroy(GNI_WJ(d)); }

static WGPUBuffer wgpuDeviceCreateBuffer(WGPUDevice d, const WGPUBufferDescriptor *b) {
    return GNI_WJ_FROM(WGPUBuffer, gni_wj_buffer(GNI_WJ(d), (double)b->size, (int)b->usage));
}
static void wgpuBufferDestroy(WGPUBuffer b) { gni_wj_destroy(GNI_WJ(b)); }
static WGPUBufferMapState wgpuBufferGetMapState(WGPUBuffer b) { return (WGPUBufferMapState)gni_wj_state(GNI_WJ(b)); }
static const void *wgpuBufferGetConstMappedRange(WGPUBuffer b, size_t offset, size_t size) {
    void *copy = malloc(size);
    if (copy) gni_wj_mapped(GNI_WJ(b), (double)offset, (double)size, copy);
    return copy;
}
static void wgpuBufferUnmap(WGPUBuffer b) { free(gni_wj_unmap(GNI_WJ(b))); }
static void wgpuQueueWriteBuffer(WGPUQueue q, WGPUBuffer b, uint64_t offset, const void *data, size_t size) {
    gni_wj_write(GNI_WJ(q), GNI_WJ(b), (double)offset, data, (double)size);
}
static void wgpuQueueSubmit(WGPUQueue q, size_t count, const WGPUCommandBuffer *c) {
    for (size_t i = 0; i < count; i++) gni_wj_submit(GNI_WJ(q), GNI_WJ(c[i]));
}

static WGPUShaderModule wgpuDeviceCreateShaderModule(WGPUDevice d, const WGPUShaderModuleDescriptor *m) {
    const WGPUShaderSourceWGSL *s = (const WGPUShaderSourceWGSL *)(const void *)m->nextInChain; // its first member
    return GNI_WJ_FROM(WGPUShaderModule, gni_wj_module(GNI_WJ(d), s->code.data, (int)s->code.length));
}
static WGPUBindGroupLayout wgpuDeviceCreateBindGroupLayout(WGPUDevice d, const WGPUBindGroupLayoutDescriptor *l) {
    int32_t entry[3 * (GNI_GPU_MAX_USES + 1)];
    for (size_t i = 0; i < l->entryCount; i++) {
        entry[3 * i] = (int32_t)l->entries[i].binding;
        entry[3 * i + 1] = (int32_t)l->entries[i].buffer.type;
        entry[3 * i + 2] = (int32_t)l->entries[i].buffer.minBindingSize;
    }
    return GNI_WJ_FROM(WGPUBindGroupLayout, gni_wj_layout(GNI_WJ(d), entry, (int)l->entryCount));
}
static WGPUPipelineLayout wgpuDeviceCreatePipelineLayout(WGPUDevice d, const WGPUPipelineLayoutDescriptor *l) {
    return GNI_WJ_FROM(WGPUPipelineLayout, gni_wj_pipeline_layout(GNI_WJ(d), GNI_WJ(l->bindGroupLayouts[0])));
}
static WGPUComputePipeline wgpuDeviceCreateComputePipeline(WGPUDevice d, const WGPUComputePipelineDescriptor *p) {
    const char *key[GNI_GPU_MAX_SPEC];
    double value[GNI_GPU_MAX_SPEC];
    const int count = (int)p->compute.constantCount;
    for (int i = 0; i < count; i++) {
        key[i] = p->compute.constants[i].key.data;
        value[i] = p->compute.constants[i].value;
    }
    const int made = gni_wj_pipeline(GNI_WJ(d), GNI_WJ(p->layout), GNI_WJ(p->compute.module), key, value, count);
    return GNI_WJ_FROM(WGPUComputePipeline, made);
}
static WGPUBindGroup wgpuDeviceCreateBindGroup(WGPUDevice d, const WGPUBindGroupDescriptor *g) {
    double entry[4 * (GNI_GPU_MAX_USES + 1)];
    for (size_t i = 0; i < g->entryCount; i++) {
        const WGPUBindGroupEntry *e = &g->entries[i];
        entry[4 * i] = (double)e->binding;
        entry[4 * i + 1] = (double)GNI_WJ(e->buffer);
        entry[4 * i + 2] = (double)e->offset;
        entry[4 * i + 3] = (double)e->size;
    }
    return GNI_WJ_FROM(WGPUBindGroup, gni_wj_group(GNI_WJ(d), GNI_WJ(g->layout), entry, (int)g->entryCount));
}

static WGPUCommandEncoder wgpuDeviceCreateCommandEncoder(WGPUDevice d, const void *none) {
    GNI_UNUSED(none);
    return GNI_WJ_FROM(WGPUCommandEncoder, gni_wj_encoder(GNI_WJ(d)));
}
static WGPUComputePassEncoder wgpuCommandEncoderBeginComputePass(WGPUCommandEncoder e, const void *none) {
    GNI_UNUSED(none);
    return GNI_WJ_FROM(WGPUComputePassEncoder, gni_wj_pass(GNI_WJ(e)));
}
static void wgpuComputePassEncoderSetPipeline(WGPUComputePassEncoder p, WGPUComputePipeline pipeline) {
    gni_wj_use(GNI_WJ(p), GNI_WJ(pipeline));
}
static void wgpuComputePassEncoderSetBindGroup(WGPUComputePassEncoder p, uint32_t place, WGPUBindGroup g, size_t count,
                                              const uint32_t *offset) {
    GNI_UNUSED(place), GNI_UNUSED(count);
    gni_wj_bind(GNI_WJ(p), GNI_WJ(g), *offset);
}
static void wgpuComputePassEncoderDispatchWorkgroups(WGPUComputePassEncoder p, uint32_t x, uint32_t y, uint32_t z) {
    gni_wj_dispatch(GNI_WJ(p), x, y, z);
}
static void wgpuComputePassEncoderEnd(WGPUComputePassEncoder p) { gni_wj_end(GNI_WJ(p)); }
static void wgpuCommandEncoderCopyBufferToBuffer(WGPUCommandEncoder e, WGPUBuffer from, uint64_t at, WGPUBuffer to,
                                                 uint64_t where, uint64_t size) {
    gni_wj_copy(GNI_WJ(e), GNI_WJ(from), (double)at, GNI_WJ(to), (double)where, (double)size);
}
static void wgpuCommandEncoderClearBuffer(WGPUCommandEncoder e, WGPUBuffer b, uint64_t at, uint64_t size) {
    gni_wj_clear(GNI_WJ(e), GNI_WJ(b), (double)at, (double)size);
}
static WGPUCommandBuffer wgpuCommandEncoderFinish(WGPUCommandEncoder e, const void *none) {
    GNI_UNUSED(none);
    return GNI_WJ_FROM(WGPUCommandBuffer, gni_wj_finish(GNI_WJ(e)));
}

#endif // GNI_WEBGPU && __EMSCRIPTEN__
