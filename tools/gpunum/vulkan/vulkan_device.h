// >>vulkan_device
// The types of the Vulkan rooms, the choice of a device, its features and limits, and taking over a host's device. Other
// rooms reach all of it through the table in room vulkan_layer, always under the context's lock.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/memory.h"
#include "../core/log.h"
#include "../vulkan/vulkan_loader.h"
#endif

#if GNI_VULKAN

enum {
    GNI_VK_BATCHES = 8,         // command buffers in flight
    GNI_VK_BATCH_COMMANDS = 64, // commands after which a batch is submitted
    GNI_VK_IDLE_COMMANDS = 8,   // every so many it is submitted if the device is idle
    GNI_VK_HAZARDS = 64,        // byte ranges remembered since the last barrier
    GNI_VK_UNIT = 256,          // bytes: granularity and alignment of the pool
    GNI_VK_ADDRESS_BYTES = 128  // of the table of addresses in front of the parameters
};

typedef struct gni_vk_block gni_vk_block; // a gni_gpu_mem's; NULL there for a host's buffer
typedef struct gni_vk_pipeline gni_vk_pipeline;

// ---- private types of the Vulkan rooms from here on

// One VkDeviceMemory under one VkBuffer.
struct gni_vk_block {
    VkDeviceMemory memory;
    VkBuffer buffer;
    uint64_t size, address, last_use; // last_use: the last batch that touches it
    char *mapped;
    struct gni_vk_pool *pool;
    int first;      // its first chunk
    int live;       // allocated chunks
    bool dedicated; // holds one allocation at a time
    gni_vk_block *next;
};

static inline gni_vk_block *gni_vk_block_of(const gni_gpu_mem *m) {
    return (gni_vk_block *)m->block;
}

// A piece of a block, free or allocated. Units of GNI_VK_UNIT bytes.
typedef struct gni_vk_chunk {
    gni_vk_block *block;
    uint32_t start, units;
    int prev, next;           // neighbours in the block, -1 at its ends
    int free_prev, free_next; // in a free list; free_next also links unused chunks and held ones
    uint64_t serial;          // the last batch that touches it
    uint64_t record;          // the last host command buffer that touches it
    uint64_t bytes;           // asked for, while allocated
    bool free;
} gni_vk_chunk;

enum { GNI_VK_CLASS_BITS = 3, GNI_VK_CLASSES = 33 << GNI_VK_CLASS_BITS };

// Memory of one type: blocks cut into chunks, free chunks in lists by size class.
typedef struct gni_vk_pool {
    uint32_t type; // memory type index
    bool host;     // visible to the host
    uint64_t block_bytes;
    gni_vk_block *blocks;
    gni_vk_chunk *chunks;
    int chunk_count, chunk_capacity, spare; // spare: first unused chunk
    int held;                               // freed chunks that a host's commands still use
    int heads[GNI_VK_CLASSES];
    uint64_t used, reserved, peak, limit, count; // count: blocks
} gni_vk_pool;

enum {
    GNI_VK_POOL_DEVICE,
    GNI_VK_POOL_UPLOAD,
    GNI_VK_POOL_PARAMS,
    GNI_VK_POOL_READBACK,
    GNI_VK_POOLS
};

// Host-written memory, used round and round. A mark says which batch reads the bytes before `end`.
typedef struct gni_vk_mark {
    uint64_t serial, end;
} gni_vk_mark;

enum { GNI_VK_MARKS = 64 };
typedef struct gni_vk_ring {
    gni_gpu_mem mem;
    uint64_t size, head, tail; // running byte counts; head - tail <= size
    gni_vk_mark marks[GNI_VK_MARKS];
    uint32_t mark_first, mark_count;
} gni_vk_ring;

// A command buffer and what belongs to it.
typedef struct gni_vk_batch {
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkDescriptorPool descriptors;
    VkQueryPool queries;
    const char *names[GNI_VK_BATCH_COMMANDS]; // of the commands that have timestamps
    uint64_t serial;                          // of the work in it, 0: none
    int count, timed;
} gni_vk_batch;

typedef struct gni_vk_range {
    uint64_t key, begin, end; // key: VkBuffer
    bool write;
} gni_vk_range;

typedef struct gni_vk_stream {
    gni_vk_batch batches[GNI_VK_BATCHES];
    gni_vk_batch *open; // recording, or NULL
    VkSemaphore timeline;
    uint64_t next, submitted, completed; // serials; `next` is the open or the next batch's
    gni_vk_range ranges[GNI_VK_HAZARDS];
    int range_count;
    bool transfers, dispatches; // since the last barrier
    bool all_dirty;             // everything before must be waited for
    bool to_host;               // the open batch writes staging memory that the host reads
    gni_vk_ring upload, params;
    VkPipeline bound;
} gni_vk_stream;

// Parameters and descriptors of commands in a host's command buffer. They live until the host says
// that it is done with the recording they belong to.
typedef struct gni_vk_arena {
    gni_gpu_mem mem;
    uint64_t fill, token;
    VkDescriptorPool descriptors;
    int sets;
    struct gni_vk_arena *next;
} gni_vk_arena;

typedef struct gni_vk_record {
    VkCommandBuffer commands; // NULL: not recording
    uint64_t token, done;
    gni_vk_arena *arenas;
    VkPipeline bound;
} gni_vk_record;

struct gni_vk_pipeline {
    gni_gpu_pipeline gpu; // first
    gni_gpu_kernel kernel;
    uint64_t hash;
    const char *name;
    VkPipeline pipeline;
    VkResult result;
    gni_atomic state;      // GNI_VK_IDLE to GNI_VK_FAILED
    bool reported, behind; // asked for with GNI_GPU_BEHIND
    gni_vk_pipeline *queue_next;
};
enum { GNI_VK_IDLE, GNI_VK_QUEUED, GNI_VK_COMPILING, GNI_VK_READY, GNI_VK_FAILED };

// A block of modules of shaders.h, decoded as far as kernels have needed it.
typedef struct gni_vk_modules {
    struct gni_unpack *unpack; // NULL: none has needed it
    bool busy;                 // a thread is at it
} gni_vk_modules;

enum { GNI_VK_COMPILERS = 4 }; // threads, at most

typedef struct gni_vk_compiler {
    VkPipelineCache cache;
    VkPipelineLayout layout;
    VkDescriptorSetLayout set_layout;
    int *variant;            // index of the module to use in this mode for each, -1: none
    gni_vk_modules *modules; // as gni_module_blocks
    gni_vk_pipeline **table; // open addressing, a power of two
    uint32_t capacity, count;
    char *cache_path;
    size_t cache_bytes; // of the cache as it was loaded
    bool async;
#ifndef GPUNUM_NO_THREADS
    gni_thread threads[GNI_VK_COMPILERS];
    int running, idle, waiting;    // threads, those with nothing to do, pipelines in the queue
    bool locks, quit, busy_behind; // busy_behind: a pipeline of GNI_GPU_BEHIND is being compiled
    gni_mutex mutex;
    gni_cond work, done;
    gni_vk_pipeline *queue; // those of GNI_GPU_BEHIND last
#endif
} gni_vk_compiler;

struct gni_vk {
    gni_gpu gpu; // what every device layer has; first, so that a gni_gpu of this layer is a gni_vk
    gni_vk_functions f;
    gn_vulkan_host host;
    bool adopted; // instance and device are the host's
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family, timestamp_bits, api_version; // api_version: of the instance
    VkPhysicalDeviceMemoryProperties memory;
    uint64_t max_buffer;
    uint8_t cache_uuid[VK_UUID_SIZE];
    gni_vk_pool pools[GNI_VK_POOLS];
    gni_gpu_mem dummy; // bound where a kernel has no argument
    gni_vk_stream stream;
    gni_vk_record record;
    gni_vk_compiler compiler;
    gni_vk *open_next; // of those that are open
    int forks;         // gni_forks when it was: a child of the process has none of its threads
    bool profiling;
    gni_gpu_event *events;
    int event_count, event_capacity;
    uint64_t clock_ns, clock_ticks; // the same moment on gni_now_ns's clock and on the device's
};

static bool gni_vk_flush(gni_vk *vk);
static bool gni_vk_wait(gni_vk *vk);
static void gni_vk_close(gni_vk *vk);
static bool gni_vk_memory_open(gni_vk *vk, const gn_options *o);
static void gni_vk_memory_close(gni_vk *vk);
static bool gni_vk_stream_open(gni_vk *vk);
static void gni_vk_stream_close(gni_vk *vk);
static bool gni_vk_compiler_open(gni_vk *vk, const gn_options *o);
static void gni_vk_compiler_close(gni_vk *vk);
static void gni_vk_record_close(gni_vk *vk);
static bool gni_vk_record_upload(gni_vk *vk, const gni_gpu_mem *dst, uint64_t offset,
                                 const void *src, uint64_t bytes);

// Reports a failed call. After anything but a refused allocation the device counts as lost: no
// later call waits for work that may never end.
static bool gni_vk_check(gni_vk *vk, VkResult r, const char *what) {
    if (r == VK_SUCCESS) return true;
    bool memory = r == VK_ERROR_OUT_OF_HOST_MEMORY || r == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                  r == VK_ERROR_OUT_OF_POOL_MEMORY || r == VK_ERROR_FRAGMENTED_POOL;
    gn_status status = memory ? GN_ERROR_OUT_OF_MEMORY : GN_ERROR_DEVICE_LOST;
    gni_fail(vk->gpu.g, status, "%s: %s (%s)", what, gni_vk_result_name(r), vk->gpu.caps.name);
    if (status == GN_ERROR_DEVICE_LOST) vk->gpu.lost = true;
    return false;
}

static bool gni_vk_usable(gni_vk *vk) {
    if (!vk->gpu.lost) return true;
    return gni_fail(vk->gpu.g, GN_ERROR_DEVICE_LOST, "the Vulkan device %s was lost", vk->gpu.caps.name);
}

// ---- instance

#define GNI_VK_VERSION_1_3 ((uint32_t)((1u << 22) | (3u << 12)))

static bool gni_vk_instance_has(const gni_vk_functions *f, const char *name) {
    VkExtensionProperties list[64]; // a longer list is cut; then the extension counts as missing
    uint32_t count = 64;
    VkResult r = f->vkEnumerateInstanceExtensionProperties(NULL, &count, list);
    if (r != VK_SUCCESS && r != VK_INCOMPLETE) return false;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].extensionName, name) == 0) return true;
    return false;
}

// `used` gets the version that the instance is made for.
static VkInstance gni_vk_make_instance(gni_vk_functions *f, uint32_t *used, char *why,
                                       size_t why_size) {
    if (!gni_vk_find_root(f)) {
        snprintf(why, why_size, "no Vulkan loader was found: it comes with the GPU's driver");
        return NULL;
    }
    uint32_t version = 0;
    bool loaded = gni_vk_load_global(f);
    if (!loaded || !f->vkEnumerateInstanceVersion ||
        f->vkEnumerateInstanceVersion(&version) != VK_SUCCESS || version < VK_API_VERSION_1_2) {
        snprintf(why, why_size, "the Vulkan loader is older than 1.2");
        return NULL;
    }
    bool portability = gni_vk_instance_has(f, "VK_KHR_portability_enumeration");
    const char *extension = "VK_KHR_portability_enumeration";
    GNI_VK_INFO(VkApplicationInfo, app, VK_STRUCTURE_TYPE_APPLICATION_INFO);
    app.pEngineName = "gpunum";
    app.engineVersion = GPUNUM_VERSION;
    app.apiVersion = *used = GNI_MIN(version, GNI_VK_VERSION_1_3);
    GNI_VK_INFO(VkInstanceCreateInfo, info, VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
    info.pApplicationInfo = &app;
    info.flags = portability ? 1u : 0u; // VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
    info.enabledExtensionCount = portability ? 1u : 0u;
    info.ppEnabledExtensionNames = &extension;
    VkInstance instance = NULL;
    VkResult r = f->vkCreateInstance(&info, NULL, &instance);
    if (r != VK_SUCCESS) {
        snprintf(why, why_size, "no Vulkan driver works here (vkCreateInstance: %s)", gni_vk_result_name(r));
        return NULL;
    }
    gni_vk_keep_drivers();
    if (!gni_vk_load_instance(f, instance)) {
        snprintf(why, why_size, "the Vulkan loader lacks functions of Vulkan 1.2");
        if (f->vkDestroyInstance) f->vkDestroyInstance(instance, NULL);
        return NULL;
    }
    return instance;
}

// ---- choice

enum { GNI_VK_MAX_DEVICES = 16, GNI_VK_MAX_FAMILIES = 16 };

// A family with compute and without graphics, so that drawing goes on beside us; else any with
// compute. -1: none.
static int gni_vk_pick_family(const gni_vk_functions *f, VkPhysicalDevice d) {
    VkQueueFamilyProperties list[GNI_VK_MAX_FAMILIES];
    uint32_t count = GNI_VK_MAX_FAMILIES;
    f->vkGetPhysicalDeviceQueueFamilyProperties(d, &count, list);
    int any = -1;
    for (uint32_t i = 0; i < count; i++) {
        if (!(list[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        if (!(list[i].queueFlags & VK_QUEUE_GRAPHICS_BIT)) return (int)i;
        if (any < 0) any = (int)i;
    }
    return any;
}

static gni_gpu_kind gni_vk_kind_of(VkPhysicalDeviceType t) {
    switch (t) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return GNI_GPU_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return GNI_GPU_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return GNI_GPU_CPU;
    default: return GNI_GPU_VIRTUAL;
    }
}

static uint64_t gni_vk_local_bytes(const VkPhysicalDeviceMemoryProperties *m) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < m->memoryHeapCount; i++)
        if ((m->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) &&
            m->memoryHeaps[i].size > most)
            most = m->memoryHeaps[i].size;
    return most;
}

// Copies text into a field of fixed size, cutting what does not fit.
static void gni_vk_text(char *out, size_t size, const char *text) {
    size_t n = strlen(text);
    if (n >= size) n = size - 1;
    memcpy(out, text, n);
    out[n] = 0;
}

// Describes a device; `why` is left empty if it can be used.
static void gni_vk_describe(const gni_vk_functions *f, VkPhysicalDevice d, gn_device_info *out) {
    VkPhysicalDeviceProperties basic;
    f->vkGetPhysicalDeviceProperties(d, &basic);
    memset(out, 0, sizeof *out);
    gni_vk_text(out->name, sizeof out->name, basic.deviceName);
    out->backend = GN_BACKEND_VULKAN;
    out->vendor_id = basic.vendorID;
    out->device_id = basic.deviceID;
    out->driver_version = basic.driverVersion;
    out->api_version = basic.apiVersion;
    gni_gpu_kind kind = gni_vk_kind_of(basic.deviceType);
    out->integrated = kind == GNI_GPU_INTEGRATED || kind == GNI_GPU_CPU;
    out->software = kind == GNI_GPU_CPU;
    VkPhysicalDeviceMemoryProperties memory;
    f->vkGetPhysicalDeviceMemoryProperties(d, &memory);
    out->memory = gni_vk_local_bytes(&memory);
    if (basic.apiVersion < VK_API_VERSION_1_2) {
        snprintf(out->why, sizeof out->why, "its driver has Vulkan %u.%u, 1.2 is needed",
                 (unsigned)(basic.apiVersion >> 22) & 127u,
                 (unsigned)(basic.apiVersion >> 12) & 1023u);
        return;
    }
    GNI_VK_INFO(VkPhysicalDeviceVulkan12Properties, p12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
    GNI_VK_INFO(VkPhysicalDeviceVulkan11Properties, p11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    GNI_VK_INFO(VkPhysicalDeviceProperties2, p, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
    p11.pNext = &p12;
    p.pNext = &p11;
    f->vkGetPhysicalDeviceProperties2(d, &p);
    snprintf(out->driver, sizeof out->driver, "%.60s %.60s", p12.driverName, p12.driverInfo);
    out->subgroup = (int)p11.subgroupSize;
    GNI_VK_INFO(VkPhysicalDeviceVulkan12Features, f12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    GNI_VK_INFO(VkPhysicalDeviceFeatures2, features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
    features.pNext = &f12;
    f->vkGetPhysicalDeviceFeatures2(d, &features);
    out->has_f64 = features.features.shaderFloat64 != 0;
    out->has_i64 = features.features.shaderInt64 != 0;
    if (!f12.timelineSemaphore)
        snprintf(out->why, sizeof out->why, "its driver has no timeline semaphores");
    else if (gni_vk_pick_family(f, d) < 0)
        snprintf(out->why, sizeof out->why, "it has no compute queue");
    out->usable = out->why[0] == 0;
}

static int gni_vk_enumerate(const gni_vk_functions *f, VkInstance instance,
                            VkPhysicalDevice *list) {
    uint32_t count = GNI_VK_MAX_DEVICES;
    VkResult r = f->vkEnumeratePhysicalDevices(instance, &count, list);
    return r == VK_SUCCESS || r == VK_INCOMPLETE ? (int)count : 0;
}

// Every Vulkan device, usable or not. Returns how many there are.
static int gni_vk_list(gn_context *g, gn_device_info *out, int capacity) {
    GNI_UNUSED(g);
    gni_vk_functions f;
    char why[128];
    memset(&f, 0, sizeof f);
    uint32_t version = 0;
    VkInstance instance = gni_vk_make_instance(&f, &version, why, sizeof why);
    int count = 0;
    if (instance) {
        VkPhysicalDevice list[GNI_VK_MAX_DEVICES];
        count = gni_vk_enumerate(&f, instance, list);
        for (int i = 0; i < count && i < capacity; i++) gni_vk_describe(&f, list[i], &out[i]);
        f.vkDestroyInstance(instance, NULL);
    }
    gni_vk_drop_root(&f);
    return count;
}

// Larger is better, 0 is not wanted.
static uint64_t gni_vk_score(const gn_device_info *d, bool automatic) {
    if (!d->usable || (d->software && automatic)) return 0;
    uint64_t rank = d->software ? 1 : 3;
    if (!d->software && !d->integrated) rank = 4;
    return rank << 48 | (d->memory >> 16) | 1u;
}

static bool gni_vk_choose(gni_vk *vk, const gn_options *o, char *why, size_t why_size) {
    VkPhysicalDevice list[GNI_VK_MAX_DEVICES];
    int count = gni_vk_enumerate(&vk->f, vk->instance, list);
    if (count == 0) {
        snprintf(why, why_size, "Vulkan has no device here");
        return false;
    }
    gn_device_info d;
    if (o->device > 0) {
        if (o->device > count) {
            snprintf(why, why_size, "device %d was asked for and there are %d", o->device, count);
            return false;
        }
        vk->physical = list[o->device - 1];
        gni_vk_describe(&vk->f, vk->physical, &d);
        if (!d.usable) snprintf(why, why_size, "%.100s: %.120s", d.name, d.why);
        return d.usable;
    }
    uint64_t best = 0;
    for (int i = 0; i < count; i++) {
        gni_vk_describe(&vk->f, list[i], &d);
        uint64_t score = gni_vk_score(&d, o->backend == GN_BACKEND_AUTO);
        if (score > best) {
            best = score;
            vk->physical = list[i];
        } else if (score == 0 && why[0] == 0) {
            snprintf(why, why_size, "%.100s: %.120s", d.name,
                     d.usable ? "runs on the CPU, where the CPU backend is faster" : d.why);
        }
    }
    return best > 0;
}

// ---- features

// All structures that are asked about and, cut down to what is wanted, given to vkCreateDevice.
typedef struct gni_vk_features {
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    gni_vk_subgroup_size_features subgroup;
    gni_vk_maintenance4_features maintenance4;
    gni_vk_bfloat16_features bfloat16;
    gni_vk_coop_features coop;
    gni_vk_coop2_features coop2;
} gni_vk_features;

// Extensions that are switched on where they exist.
typedef enum gni_vk_extension {
    GNI_VK_EXT_PORTABILITY,
    GNI_VK_EXT_SUBGROUP,
    GNI_VK_EXT_MAINTENANCE4,
    GNI_VK_EXT_BFLOAT16,
    GNI_VK_EXT_COOP,
    GNI_VK_EXT_COOP2,
    GNI_VK_EXT_SM,
    GNI_VK_EXT_AMD_CORE,
    GNI_VK_EXT_COUNT
} gni_vk_extension;

static const char *gni_vk_extension_name(int i) {
    static const char *const names[GNI_VK_EXT_COUNT] = {
        "VK_KHR_portability_subset", "VK_EXT_subgroup_size_control", "VK_KHR_maintenance4",
        "VK_KHR_shader_bfloat16",    "VK_KHR_cooperative_matrix",    "VK_NV_cooperative_matrix2",
        "VK_NV_shader_sm_builtins",  "VK_AMD_shader_core_properties"};
    return names[i];
}

// Which of the extensions the device has. False only when memory ran out.
static bool gni_vk_find_extensions(gni_vk *vk, bool *has) {
    memset(has, 0, GNI_VK_EXT_COUNT * sizeof *has);
    uint32_t count = 0;
    if (vk->f.vkEnumerateDeviceExtensionProperties(vk->physical, NULL, &count, NULL) != VK_SUCCESS)
        return true;
    if (count == 0) return true;
    VkExtensionProperties *list =
        (VkExtensionProperties *)gni_alloc(vk->gpu.g, count * sizeof(VkExtensionProperties));
    if (!list) return false;
    VkResult r = vk->f.vkEnumerateDeviceExtensionProperties(vk->physical, NULL, &count, list);
    if (r != VK_SUCCESS && r != VK_INCOMPLETE) count = 0;
    for (uint32_t i = 0; i < count; i++)
        for (int k = 0; k < GNI_VK_EXT_COUNT; k++)
            if (strcmp(list[i].extensionName, gni_vk_extension_name(k)) == 0) has[k] = true;
    gni_free(vk->gpu.g, list);
    return true;
}

static void gni_vk_link(void ***tail, void *structure, void **next) {
    **tail = structure;
    *tail = next;
}

// Builds the chain of the structures that the device knows.
static void gni_vk_chain_features(gni_vk_features *s, const bool *has) {
    memset(s, 0, sizeof *s);
    s->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    s->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    s->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    s->subgroup.sType = GNI_VK_TYPE_SUBGROUP_SIZE_FEATURES;
    s->maintenance4.sType = GNI_VK_TYPE_MAINTENANCE4_FEATURES;
    s->bfloat16.sType = GNI_VK_TYPE_BFLOAT16_FEATURES;
    s->coop.sType = GNI_VK_TYPE_COOP_FEATURES;
    s->coop2.sType = GNI_VK_TYPE_COOP2_FEATURES;
    void **tail = &s->base.pNext;
    gni_vk_link(&tail, &s->v11, &s->v11.pNext);
    gni_vk_link(&tail, &s->v12, &s->v12.pNext);
    if (has[GNI_VK_EXT_SUBGROUP]) gni_vk_link(&tail, &s->subgroup, &s->subgroup.pNext);
    if (has[GNI_VK_EXT_MAINTENANCE4]) gni_vk_link(&tail, &s->maintenance4, &s->maintenance4.pNext);
    if (has[GNI_VK_EXT_BFLOAT16]) gni_vk_link(&tail, &s->bfloat16, &s->bfloat16.pNext);
    if (has[GNI_VK_EXT_COOP]) gni_vk_link(&tail, &s->coop, &s->coop.pNext);
    if (has[GNI_VK_EXT_COOP2]) gni_vk_link(&tail, &s->coop2, &s->coop2.pNext);
}

// Keeps of what the device has only what kernels use.
static void gni_vk_cut_features(gni_vk_features *s, uint32_t flags) {
    VkPhysicalDeviceFeatures have = s->base.features;
    memset(&s->base.features, 0, sizeof s->base.features);
    bool wide = !(flags & GN_VULKAN_NO_WIDE);
    s->base.features.shaderFloat64 = wide ? have.shaderFloat64 : VK_FALSE;
    s->base.features.shaderInt64 = wide ? have.shaderInt64 : VK_FALSE;
    s->base.features.shaderInt16 = have.shaderInt16;
    VkPhysicalDeviceVulkan11Features v11 = s->v11;
    memset(&s->v11, 0, sizeof s->v11);
    s->v11.sType = v11.sType;
    s->v11.pNext = v11.pNext;
    s->v11.storageBuffer16BitAccess = v11.storageBuffer16BitAccess;
    VkPhysicalDeviceVulkan12Features v12 = s->v12;
    memset(&s->v12, 0, sizeof s->v12);
    s->v12.sType = v12.sType;
    s->v12.pNext = v12.pNext;
    s->v12.timelineSemaphore = v12.timelineSemaphore;
    s->v12.bufferDeviceAddress = v12.bufferDeviceAddress;
    s->v12.shaderBufferInt64Atomics = wide ? v12.shaderBufferInt64Atomics : VK_FALSE;
    s->v12.storageBuffer8BitAccess = v12.storageBuffer8BitAccess;
    s->v12.shaderFloat16 = v12.shaderFloat16;
    s->v12.shaderInt8 = v12.shaderInt8;
    s->v12.shaderSubgroupExtendedTypes = v12.shaderSubgroupExtendedTypes;
    s->v12.vulkanMemoryModel = v12.vulkanMemoryModel;
    s->v12.vulkanMemoryModelDeviceScope = v12.vulkanMemoryModelDeviceScope;
    s->coop.on[1] = VK_FALSE;
    if (flags & GN_VULKAN_NO_ADDRESSES) s->v12.bufferDeviceAddress = VK_FALSE;
}

// For a host's device: only what the host says it switched on. Version 1.2's own structure does not
// tell whether the host asked for the rest, so the rest counts as off.
static void gni_vk_host_features(gni_vk_features *s, const gn_vulkan_host *h, uint32_t flags) {
    bool none[GNI_VK_EXT_COUNT];
    memset(none, 0, sizeof none);
    gni_vk_chain_features(s, none);
    s->v12.timelineSemaphore = h->timeline_semaphore;
    s->v12.bufferDeviceAddress = h->buffer_device_address && !(flags & GN_VULKAN_NO_ADDRESSES);
    s->v11.storageBuffer16BitAccess = s->v12.storageBuffer8BitAccess = h->narrow_storage;
    s->base.features.shaderInt64 = h->shader_int64 && !(flags & GN_VULKAN_NO_WIDE);
    s->base.features.shaderFloat64 = h->shader_float64 && !(flags & GN_VULKAN_NO_WIDE);
}

static void gni_vk_caps_features(gni_gpu_caps *c, const gni_vk_features *s) {
    c->addresses = s->v12.bufferDeviceAddress != 0;
    c->int64 = s->base.features.shaderInt64 != 0;
    c->atomic64 = c->int64 && s->v12.shaderBufferInt64Atomics != 0;
    c->float64 = s->base.features.shaderFloat64 != 0;
    c->float16 = s->v12.shaderFloat16 != 0;
    c->int8 = s->v12.shaderInt8 != 0;
    c->int16 = s->base.features.shaderInt16 != 0;
    c->narrow_stores = s->v12.storageBuffer8BitAccess && s->v11.storageBuffer16BitAccess;
    c->memory_model = s->v12.vulkanMemoryModel != 0;
    c->subgroup_control = s->subgroup.on[0] && s->subgroup.on[1];
    c->bfloat16 = s->bfloat16.on[0] != 0;
    c->bfloat16_coop = s->bfloat16.on[2] != 0;
    c->coop = s->coop.on[0] != 0 && c->memory_model;
    c->coop2 = c->coop && s->coop2.on[0] && s->coop2.on[1];
}

// ---- limits

static uint32_t gni_vk_guess_multiprocessors(const gni_gpu_caps *c) {
    // Nothing but a plausible grid size depends on the guess.
    if (c->kind == GNI_GPU_CPU) return (uint32_t)gni_cpu_count();
    return c->kind == GNI_GPU_INTEGRATED ? 8u : 32u;
}

static void gni_vk_read_limits(gni_vk *vk, const bool *has) {
    GNI_VK_INFO(VkPhysicalDeviceVulkan11Properties, v11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    GNI_VK_INFO(VkPhysicalDeviceVulkan12Properties, v12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
    GNI_VK_INFO(gni_vk_subgroup_properties, subgroup, GNI_VK_TYPE_SUBGROUP_SIZE_PROPERTIES);
    GNI_VK_INFO(gni_vk_maintenance4_properties, maintenance4, GNI_VK_TYPE_MAINTENANCE4_PROPERTIES);
    GNI_VK_INFO(gni_vk_sm_properties, sm, GNI_VK_TYPE_SM_BUILTINS_PROPERTIES);
    GNI_VK_INFO(gni_vk_amd_properties, amd, GNI_VK_TYPE_SHADER_CORE_PROPERTIES_AMD);
    GNI_VK_INFO(gni_vk_coop2_properties, coop2, GNI_VK_TYPE_COOP2_PROPERTIES);
    GNI_VK_INFO(VkPhysicalDeviceProperties2, p, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
    void **tail = &p.pNext;
    gni_vk_link(&tail, &v11, &v11.pNext);
    gni_vk_link(&tail, &v12, &v12.pNext);
    if (has[GNI_VK_EXT_SUBGROUP]) gni_vk_link(&tail, &subgroup, &subgroup.pNext);
    if (has[GNI_VK_EXT_MAINTENANCE4]) gni_vk_link(&tail, &maintenance4, &maintenance4.pNext);
    if (has[GNI_VK_EXT_SM]) gni_vk_link(&tail, &sm, &sm.pNext);
    if (has[GNI_VK_EXT_AMD_CORE]) gni_vk_link(&tail, &amd, &amd.pNext);
    if (has[GNI_VK_EXT_COOP2]) gni_vk_link(&tail, &coop2, &coop2.pNext);
    vk->f.vkGetPhysicalDeviceProperties2(vk->physical, &p);

    gni_gpu_caps *c = &vk->gpu.caps;
    const VkPhysicalDeviceLimits *l = &p.properties.limits;
    gni_vk_text(c->name, sizeof c->name, p.properties.deviceName);
    snprintf(c->driver, sizeof c->driver, "%.60s %.60s", v12.driverName, v12.driverInfo);
    c->kind = gni_vk_kind_of(p.properties.deviceType);
    c->vendor_id = p.properties.vendorID;
    c->fused = c->vendor_id == 0x10de; // NVIDIA, where it was tried
    c->device_id = p.properties.deviceID;
    c->driver_version = p.properties.driverVersion;
    c->api_version = GNI_MIN(p.properties.apiVersion, vk->api_version);
    memcpy(vk->cache_uuid, p.properties.pipelineCacheUUID, VK_UUID_SIZE);
    c->subgroup = c->subgroup_min = c->subgroup_max = v11.subgroupSize;
    c->keep_denorms = v12.shaderDenormPreserveFloat32 &&
                      v12.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
    c->keep_half_denorms =
        v12.shaderDenormPreserveFloat16 &&
        v12.denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
    c->round_half = v12.shaderRoundingModeRTEFloat16 &&
                    v12.roundingModeIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
    c->keep_nan = v12.shaderSignedZeroInfNanPreserveFloat32 != 0;
    c->keep_half_nan = v12.shaderSignedZeroInfNanPreserveFloat16 != 0;
    c->exact_halves = c->keep_half_denorms && c->keep_half_nan && c->round_half && c->keep_nan;
    if (has[GNI_VK_EXT_SUBGROUP]) {
        c->subgroup_min = subgroup.least;
        c->subgroup_max = subgroup.most;
        c->subgroups = subgroup.subgroups_per_workgroup;
        if (!(subgroup.required_stages & VK_SHADER_STAGE_COMPUTE_BIT)) c->subgroup_control = false;
    }
    bool compute = (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    VkSubgroupFeatureFlags ops = compute ? v11.subgroupSupportedOperations : 0;
    c->subgroup_arithmetic = (ops & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0;
    c->subgroup_ballot = (ops & VK_SUBGROUP_FEATURE_BALLOT_BIT) != 0;
    c->subgroup_shuffle = (ops & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
    c->subgroup_vote = (ops & VK_SUBGROUP_FEATURE_VOTE_BIT) != 0;
    c->max_invocations = l->maxComputeWorkGroupInvocations;
    memcpy(c->max_size, l->maxComputeWorkGroupSize, sizeof c->max_size);
    memcpy(c->max_groups, l->maxComputeWorkGroupCount, sizeof c->max_groups);
    c->shared_bytes = l->maxComputeSharedMemorySize;
    c->max_storage_range = l->maxStorageBufferRange;
    c->timestamp_ns = vk->timestamp_bits ? l->timestampPeriod : 0.0f;
    // One descriptor is the parameters'.
    uint32_t descriptors =
        GNI_MIN(l->maxPerStageDescriptorStorageBuffers, l->maxDescriptorSetStorageBuffers);
    descriptors = GNI_MIN(descriptors, l->maxPerStageResources);
    c->max_buffers = c->addresses ? (uint32_t)GNI_GPU_MAX_USES
                                  : GNI_MIN(descriptors - 1u, (uint32_t)GNI_GPU_MAX_USES);
    vk->max_buffer = maintenance4.max_buffer_size ? maintenance4.max_buffer_size : UINT64_MAX;
    c->coop2_reserved_shared = coop2.reserved_shared;
    uint32_t units = amd.engines * amd.arrays_per_engine * amd.units_per_array;
    c->multiprocessors_exact = sm.sms || units || c->kind == GNI_GPU_CPU;
    c->multiprocessors = sm.sms ? sm.sms : units ? units : gni_vk_guess_multiprocessors(c);
    vk->f.vkGetPhysicalDeviceMemoryProperties(vk->physical, &vk->memory);
    c->device_bytes = gni_vk_local_bytes(&vk->memory);
}

static void gni_vk_add_coop(gni_gpu_caps *c, const gni_vk_coop2_dimensions *d) {
    GNI_ZEROED(gni_gpu_coop, s);
    s.m = d->m;
    s.n = d->n;
    s.k = d->k;
    s.a = d->a;
    s.b = d->b;
    s.c = d->c;
    s.result = d->result;
    s.saturating = d->saturating != 0;
    s.workgroup_scope = d->scope == 2;
    s.invocations = d->invocations;
    if (c->coop_count < GNI_GPU_MAX_COOP) c->coops[c->coop_count++] = s;
}

// The matrix shapes that the device multiplies. Leaves the list short when memory runs out.
static void gni_vk_read_coop(gni_vk *vk) {
    gni_vk_get_coop get = NULL;
    uint32_t count = 0;
    if (vk->gpu.caps.coop)
        get = (gni_vk_get_coop)vk->f.root(vk->instance,
                                          "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    if (!get || get(vk->physical, &count, NULL) != VK_SUCCESS || count == 0) return;
    gni_vk_coop_properties *list =
        (gni_vk_coop_properties *)gni_calloc(vk->gpu.g, count * sizeof(gni_vk_coop_properties));
    if (!list) return;
    for (uint32_t i = 0; i < count; i++) list[i].sType = GNI_VK_TYPE_COOP_PROPERTIES;
    if (get(vk->physical, &count, list) < 0) count = 0;
    for (uint32_t i = 0; i < count; i++) {
        GNI_ZEROED(gni_vk_coop2_dimensions, d);
        memcpy(&d, &list[i], offsetof(gni_vk_coop2_dimensions, invocations)); // which begins as those do
        if (d.scope == 2 || d.scope == 3) gni_vk_add_coop(&vk->gpu.caps, &d);
    }
    gni_free(vk->gpu.g, list);
}

static void gni_vk_read_coop2(gni_vk *vk) {
    gni_vk_get_coop2 get = NULL;
    uint32_t count = 0;
    if (vk->gpu.caps.coop2)
        get = (gni_vk_get_coop2)vk->f.root(
            vk->instance, "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV");
    if (!get || get(vk->physical, &count, NULL) != VK_SUCCESS || count == 0) return;
    gni_vk_coop2_dimensions *list =
        (gni_vk_coop2_dimensions *)gni_calloc(vk->gpu.g, count * sizeof(gni_vk_coop2_dimensions));
    if (!list) return;
    for (uint32_t i = 0; i < count; i++) list[i].sType = GNI_VK_TYPE_COOP2_DIMENSIONS;
    if (get(vk->physical, &count, list) < 0) count = 0;
    for (uint32_t i = 0; i < count; i++) gni_vk_add_coop(&vk->gpu.caps, &list[i]);
    gni_free(vk->gpu.g, list);
}

// ---- opening

static bool gni_vk_make_device(gni_vk *vk, gni_vk_features *features, const bool *has, char *why,
                               size_t why_size) {
    const char *names[GNI_VK_EXT_COUNT];
    uint32_t count = 0;
    for (int i = 0; i < GNI_VK_EXT_COUNT; i++)
        if (has[i]) names[count++] = gni_vk_extension_name(i);
    float priority = 1.0f;
    GNI_VK_INFO(VkDeviceQueueCreateInfo, queue, VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
    queue.queueFamilyIndex = vk->family;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    GNI_VK_INFO(VkDeviceCreateInfo, info, VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
    info.pNext = &features->base;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = count;
    info.ppEnabledExtensionNames = names;
    VkResult r = vk->f.vkCreateDevice(vk->physical, &info, NULL, &vk->device);
    if (r == VK_SUCCESS) return true;
    vk->device = NULL;
    snprintf(why, why_size, "%.100s: vkCreateDevice: %s", vk->gpu.caps.name, gni_vk_result_name(r));
    return false;
}

static void gni_vk_read_family(gni_vk *vk) {
    VkQueueFamilyProperties list[GNI_VK_MAX_FAMILIES];
    uint32_t count = GNI_VK_MAX_FAMILIES;
    vk->f.vkGetPhysicalDeviceQueueFamilyProperties(vk->physical, &count, list);
    vk->timestamp_bits = vk->family < count ? list[vk->family].timestampValidBits : 0;
}

static bool gni_vk_open_own(gni_vk *vk, const gn_options *o, char *why, size_t why_size) {
    vk->instance = gni_vk_make_instance(&vk->f, &vk->api_version, why, why_size);
    if (!vk->instance || !gni_vk_choose(vk, o, why, why_size)) return false;
    vk->family = (uint32_t)gni_vk_pick_family(&vk->f, vk->physical);
    gni_vk_read_family(vk);
    bool has[GNI_VK_EXT_COUNT];
    if (!gni_vk_find_extensions(vk, has)) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    has[GNI_VK_EXT_COOP2] = has[GNI_VK_EXT_COOP2] && has[GNI_VK_EXT_COOP];
    gni_vk_features features;
    gni_vk_chain_features(&features, has);
    vk->f.vkGetPhysicalDeviceFeatures2(vk->physical, &features.base);
    gni_vk_cut_features(&features, o->vulkan_flags);
    gni_vk_caps_features(&vk->gpu.caps, &features);
    gni_vk_read_limits(vk, has);
    gni_vk_read_coop(vk);
    gni_vk_read_coop2(vk);
    return gni_vk_make_device(vk, &features, has, why, why_size);
}

static bool gni_vk_open_host(gni_vk *vk, const gn_options *o, char *why, size_t why_size) {
    vk->host = *o->vulkan;
    vk->adopted = true;
    const gn_vulkan_host *h = &vk->host;
    if (!h->instance || !h->physical_device || !h->device || !h->queue) {
        snprintf(why, why_size,
                 "gn_vulkan_host: instance, physical device, device or queue is NULL");
        return false;
    }
    if (h->get_instance_proc_addr)
        memcpy(&vk->f.root, &h->get_instance_proc_addr, sizeof vk->f.root);
    else if (!gni_vk_find_root(&vk->f)) {
        snprintf(why, why_size,
                 "gn_vulkan_host: no get_instance_proc_addr, and no Vulkan loader was found");
        return false;
    }
    vk->instance = (VkInstance)h->instance;
    vk->physical = (VkPhysicalDevice)h->physical_device;
    if (!gni_vk_load_instance(&vk->f, vk->instance)) {
        snprintf(why, why_size, "gn_vulkan_host: its instance lacks functions of Vulkan 1.2");
        return false;
    }
    gn_device_info d;
    gni_vk_describe(&vk->f, vk->physical, &d);
    if (!d.usable || (h->api_version && h->api_version < VK_API_VERSION_1_2)) {
        snprintf(why, why_size, "%.100s: %.120s", d.name,
                 d.usable ? "the host's instance is older than Vulkan 1.2" : d.why);
        return false;
    }
    if (!h->timeline_semaphore) {
        snprintf(why, why_size, "gn_vulkan_host: the host did not switch on timelineSemaphore");
        return false;
    }
    vk->family = h->queue_family;
    vk->api_version = h->api_version ? h->api_version : VK_API_VERSION_1_2;
    gni_vk_read_family(vk);
    bool has[GNI_VK_EXT_COUNT]; // extensions that only add properties need not be switched on
    if (!gni_vk_find_extensions(vk, has)) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    has[GNI_VK_EXT_SUBGROUP] = false;
    gni_vk_features features;
    gni_vk_host_features(&features, h, o->vulkan_flags);
    gni_vk_caps_features(&vk->gpu.caps, &features);
    gni_vk_read_limits(vk, has);
    vk->device = (VkDevice)h->device;
    return true;
}

// NULL and the reason in words when there is no device to be had.
static gni_vk *gni_vk_open(gn_context *g, const gn_options *o, char *why, size_t why_size) {
    why[0] = 0;
    gni_vk *vk = (gni_vk *)gni_calloc(g, sizeof(gni_vk));
    if (!vk) {
        snprintf(why, why_size, "out of memory");
        return NULL;
    }
    vk->gpu.g = g;
    bool ok =
        o->vulkan ? gni_vk_open_host(vk, o, why, why_size) : gni_vk_open_own(vk, o, why, why_size);
    if (ok && !gni_vk_load_device(&vk->f, vk->device)) {
        snprintf(why, why_size, "%.100s: the driver lacks functions of Vulkan 1.2",
                 vk->gpu.caps.name);
        // Nothing but destroying the device is possible, and only if there is a function for it.
        if (!vk->adopted && vk->f.vkDestroyDevice) vk->f.vkDestroyDevice(vk->device, NULL);
        vk->device = NULL;
        ok = false;
    }
    if (ok) {
        if (vk->adopted)
            vk->queue = (VkQueue)vk->host.queue;
        else
            vk->f.vkGetDeviceQueue(vk->device, vk->family, 0, &vk->queue);
        ok = gni_vk_memory_open(vk, o) && gni_vk_stream_open(vk) && gni_vk_compiler_open(vk, o);
        if (!ok)
            snprintf(why, why_size, "%.100s: out of memory while opening it", vk->gpu.caps.name);
    }
    if (!ok) {
        gni_vk_close(vk);
        return NULL;
    }
    why[0] = 0;
    gni_log(g, GN_LOG_INFO, "Vulkan device %s, driver %s, %s, subgroup %u, %u MiB",
            vk->gpu.caps.name, vk->gpu.caps.driver,
            vk->gpu.caps.addresses ? "buffer addresses" : "bindings",
            (unsigned)vk->gpu.caps.subgroup, (unsigned)(vk->gpu.caps.device_bytes >> 20));
    return vk;
}

// Whatever failed, the device may still be at work. A lost one returns at once.
static void gni_vk_wait_queue(gni_vk *vk) {
    if (!vk->queue) return;
    if (vk->host.queue_lock) vk->host.queue_lock(vk->host.user);
    vk->f.vkQueueWaitIdle(vk->queue);
    if (vk->host.queue_unlock) vk->host.queue_unlock(vk->host.user);
}

// Waits for the device and frees everything. Also ends a half-opened or a lost one.
static void gni_vk_close(gni_vk *vk) {
    if (!vk) return;
    if (vk->device) {
        if (!vk->gpu.lost) gni_vk_wait(vk);
        if (vk->gpu.lost) gni_vk_wait_queue(vk);
        gni_vk_compiler_close(vk);
        gni_vk_record_close(vk);
        gni_vk_stream_close(vk);
        gni_vk_memory_close(vk);
        if (!vk->adopted) vk->f.vkDestroyDevice(vk->device, NULL);
    }
    if (vk->instance && !vk->adopted) vk->f.vkDestroyInstance(vk->instance, NULL);
    gni_vk_drop_root(&vk->f);
    gni_free(vk->gpu.g, vk->gpu.jobs);
    gni_free(vk->gpu.g, vk->events);
    gni_free(vk->gpu.g, vk);
}

#endif // GNI_VULKAN
