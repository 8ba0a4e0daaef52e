// >>vulkan_loader
// The Vulkan headers, the private table of function pointers and where it is filled from.
// GNI_VULKAN is 1 where the Vulkan rooms exist. No vk* symbol is defined or linked.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/internal.h"
#endif

// Headers older than 1.2 do not know timeline semaphores. The host's own include comes first if
// there is one, and its choice of prototypes stays as it is: vulkan_core.h only, so that a later
// vulkan.h still adds its window system parts.
#if !defined(GPUNUM_NO_VULKAN)
#if defined(GPUNUM_USE_VOLK) && !defined(VOLK_H_)
#include <volk.h>
#elif !defined(VULKAN_CORE_H_) && defined(__has_include)
#if __has_include(<vulkan/vulkan_core.h>)
#include <vulkan/vulkan_core.h>
#endif
#endif
#endif

#if !defined(GPUNUM_NO_VULKAN) && defined(VK_VERSION_1_2)
#define GNI_VULKAN 1
#else
#define GNI_VULKAN 0
#endif
#define GNI_GPU (GNI_VULKAN || GNI_WEBGPU) // there is a device layer, and so the GPU rooms

typedef struct gni_vk gni_vk; // an open Vulkan device: memory, stream, pipelines

#if GNI_VULKAN

#ifndef _WIN32
#include <dlfcn.h> // volk uses it too
#endif

// Functions by what they are loaded from: nothing, an instance, a device.
#define GNI_VK_GLOBAL_FUNCTIONS(X)                                                                 \
    X(vkEnumerateInstanceExtensionProperties)                                                      \
    X(vkCreateInstance)

#define GNI_VK_INSTANCE_FUNCTIONS(X)                                                               \
    X(vkDestroyInstance)                                                                           \
    X(vkEnumeratePhysicalDevices)                                                                  \
    X(vkEnumerateDeviceExtensionProperties)                                                        \
    X(vkGetPhysicalDeviceProperties)                                                               \
    X(vkGetPhysicalDeviceProperties2)                                                              \
    X(vkGetPhysicalDeviceFeatures2)                                                                \
    X(vkGetPhysicalDeviceMemoryProperties)                                                         \
    X(vkGetPhysicalDeviceQueueFamilyProperties)                                                    \
    X(vkCreateDevice)                                                                              \
    X(vkGetDeviceProcAddr)

#define GNI_VK_DEVICE_FUNCTIONS(X)                                                                 \
    X(vkDestroyDevice)                                                                             \
    X(vkGetDeviceQueue)                                                                            \
    X(vkQueueSubmit)                                                                               \
    X(vkQueueWaitIdle)                                                                             \
    X(vkAllocateMemory)                                                                            \
    X(vkFreeMemory)                                                                                \
    X(vkMapMemory)                                                                                 \
    X(vkCreateBuffer)                                                                              \
    X(vkDestroyBuffer)                                                                             \
    X(vkGetBufferMemoryRequirements)                                                               \
    X(vkBindBufferMemory)                                                                          \
    X(vkGetBufferDeviceAddress)                                                                    \
    X(vkCreateCommandPool)                                                                         \
    X(vkDestroyCommandPool)                                                                        \
    X(vkResetCommandPool)                                                                          \
    X(vkAllocateCommandBuffers)                                                                    \
    X(vkBeginCommandBuffer)                                                                        \
    X(vkEndCommandBuffer)                                                                          \
    X(vkCmdPipelineBarrier)                                                                        \
    X(vkCmdCopyBuffer)                                                                             \
    X(vkCmdFillBuffer)                                                                             \
    X(vkCmdUpdateBuffer)                                                                           \
    X(vkCmdBindPipeline)                                                                           \
    X(vkCmdBindDescriptorSets)                                                                     \
    X(vkCmdPushConstants)                                                                          \
    X(vkCmdDispatch)                                                                               \
    X(vkCmdResetQueryPool)                                                                         \
    X(vkCmdWriteTimestamp)                                                                         \
    X(vkCreateQueryPool)                                                                           \
    X(vkDestroyQueryPool)                                                                          \
    X(vkGetQueryPoolResults)                                                                       \
    X(vkCreateSemaphore)                                                                           \
    X(vkDestroySemaphore)                                                                          \
    X(vkWaitSemaphores)                                                                            \
    X(vkGetSemaphoreCounterValue)                                                                  \
    X(vkCreateShaderModule)                                                                        \
    X(vkDestroyShaderModule)                                                                       \
    X(vkCreatePipelineCache)                                                                       \
    X(vkDestroyPipelineCache)                                                                      \
    X(vkGetPipelineCacheData)                                                                      \
    X(vkCreateComputePipelines)                                                                    \
    X(vkDestroyPipeline)                                                                           \
    X(vkCreatePipelineLayout)                                                                      \
    X(vkDestroyPipelineLayout)                                                                     \
    X(vkCreateDescriptorSetLayout)                                                                 \
    X(vkDestroyDescriptorSetLayout)                                                                \
    X(vkCreateDescriptorPool)                                                                      \
    X(vkDestroyDescriptorPool)                                                                     \
    X(vkResetDescriptorPool)                                                                       \
    X(vkAllocateDescriptorSets)                                                                    \
    X(vkUpdateDescriptorSets)

// Members keep their vk prefix: without it windows.h would rename some of them.
typedef struct gni_vk_functions {
    PFN_vkGetInstanceProcAddr root;
    PFN_vkEnumerateInstanceVersion vkEnumerateInstanceVersion; // NULL: a Vulkan 1.0 loader
    void *library;                                             // what dlopen gave, or NULL
#define GNI_X(name) PFN_##name name;
    GNI_VK_GLOBAL_FUNCTIONS(GNI_X)
    GNI_VK_INSTANCE_FUNCTIONS(GNI_X)
    GNI_VK_DEVICE_FUNCTIONS(GNI_X)
#undef GNI_X
} gni_vk_functions;

// Newer than Vulkan 1.2: our own copies under our own names, so that old and new headers compile to
// the same code. Values and layouts are those of the Vulkan registry.
#define GNI_VK_TYPE_BFLOAT16_FEATURES ((VkStructureType)1000141000)
#define GNI_VK_TYPE_SM_BUILTINS_PROPERTIES ((VkStructureType)1000154001)
#define GNI_VK_TYPE_SUBGROUP_SIZE_PROPERTIES ((VkStructureType)1000225000)
#define GNI_VK_TYPE_REQUIRED_SUBGROUP_SIZE ((VkStructureType)1000225001)
#define GNI_VK_TYPE_SUBGROUP_SIZE_FEATURES ((VkStructureType)1000225002)
#define GNI_VK_TYPE_SHADER_CORE_PROPERTIES_AMD ((VkStructureType)1000185000)
#define GNI_VK_TYPE_MAINTENANCE4_FEATURES ((VkStructureType)1000413000)
#define GNI_VK_TYPE_MAINTENANCE4_PROPERTIES ((VkStructureType)1000413001)
#define GNI_VK_TYPE_COOP_FEATURES ((VkStructureType)1000506000)
#define GNI_VK_TYPE_COOP_PROPERTIES ((VkStructureType)1000506001)
#define GNI_VK_TYPE_COOP2_FEATURES ((VkStructureType)1000593000)
#define GNI_VK_TYPE_COOP2_DIMENSIONS ((VkStructureType)1000593001)
#define GNI_VK_TYPE_COOP2_PROPERTIES ((VkStructureType)1000593002)

// What every chained structure of switches looks like: a header, then VkBool32s.
#define GNI_VK_SWITCHES(name, count)                                                               \
    typedef struct name {                                                                          \
        VkStructureType sType;                                                                     \
        void *pNext;                                                                               \
        VkBool32 on[count];                                                                        \
    } name
GNI_VK_SWITCHES(gni_vk_bfloat16_features, 3);      // type, dot product, cooperative matrix
GNI_VK_SWITCHES(gni_vk_subgroup_size_features, 2); // size control, full subgroups
GNI_VK_SWITCHES(gni_vk_maintenance4_features, 1);
GNI_VK_SWITCHES(gni_vk_coop_features, 2); // cooperative matrix, robust access
// Workgroup scope, flexible dimensions, reductions, conversions, per element, tensors, block loads.
GNI_VK_SWITCHES(gni_vk_coop2_features, 7);
#undef GNI_VK_SWITCHES

typedef struct gni_vk_sm_properties {
    VkStructureType sType;
    void *pNext;
    uint32_t sms, warps_per_sm;
} gni_vk_sm_properties;

typedef struct gni_vk_amd_properties {
    VkStructureType sType;
    void *pNext;
    uint32_t engines, arrays_per_engine, units_per_array, rest[11];
} gni_vk_amd_properties;

typedef struct gni_vk_subgroup_properties {
    VkStructureType sType;
    void *pNext;
    uint32_t least, most, subgroups_per_workgroup;
    VkShaderStageFlags required_stages;
} gni_vk_subgroup_properties;

typedef struct gni_vk_required_subgroup {
    VkStructureType sType;
    void *pNext;
    uint32_t size;
} gni_vk_required_subgroup;

typedef struct gni_vk_maintenance4_properties {
    VkStructureType sType;
    void *pNext;
    VkDeviceSize max_buffer_size;
} gni_vk_maintenance4_properties;

typedef struct gni_vk_coop_properties {
    VkStructureType sType;
    void *pNext;
    uint32_t m, n, k;
    int32_t a, b, c, result; // VkComponentTypeKHR
    VkBool32 saturating;
    int32_t scope; // VkScopeKHR
} gni_vk_coop_properties;

typedef struct gni_vk_coop2_dimensions {
    VkStructureType sType;
    void *pNext;
    uint32_t m, n, k; // granularity
    int32_t a, b, c, result;
    VkBool32 saturating;
    int32_t scope;
    uint32_t invocations;
} gni_vk_coop2_dimensions;

typedef struct gni_vk_coop2_properties {
    VkStructureType sType;
    void *pNext;
    uint32_t max_invocations, max_dimension, reserved_shared;
} gni_vk_coop2_properties;

// Declares a structure that says what it is.
#define GNI_VK_INFO(type, name, number) \
    GNI_ZEROED(type, name);             \
    name.sType = number

typedef VkResult(VKAPI_PTR *gni_vk_get_coop)(VkPhysicalDevice, uint32_t *,
                                             gni_vk_coop_properties *);
typedef VkResult(VKAPI_PTR *gni_vk_get_coop2)(VkPhysicalDevice, uint32_t *,
                                              gni_vk_coop2_dimensions *);

static const char *gni_vk_result_name(VkResult r) {
    switch ((int)r) {
#define GNI_X(name)                                                                                \
    case name: return #name;
        GNI_X(VK_SUCCESS)
        GNI_X(VK_NOT_READY)
        GNI_X(VK_TIMEOUT)
        GNI_X(VK_INCOMPLETE)
        GNI_X(VK_ERROR_OUT_OF_HOST_MEMORY)
        GNI_X(VK_ERROR_OUT_OF_DEVICE_MEMORY)
        GNI_X(VK_ERROR_INITIALIZATION_FAILED)
        GNI_X(VK_ERROR_DEVICE_LOST)
        GNI_X(VK_ERROR_MEMORY_MAP_FAILED)
        GNI_X(VK_ERROR_LAYER_NOT_PRESENT)
        GNI_X(VK_ERROR_EXTENSION_NOT_PRESENT)
        GNI_X(VK_ERROR_FEATURE_NOT_PRESENT)
        GNI_X(VK_ERROR_INCOMPATIBLE_DRIVER)
        GNI_X(VK_ERROR_TOO_MANY_OBJECTS)
        GNI_X(VK_ERROR_FRAGMENTED_POOL)
        GNI_X(VK_ERROR_OUT_OF_POOL_MEMORY)
        GNI_X(VK_ERROR_INVALID_EXTERNAL_HANDLE)
        GNI_X(VK_ERROR_FRAGMENTATION)
        GNI_X(VK_ERROR_UNKNOWN)
#undef GNI_X
    default: return "unknown VkResult";
    }
}

// Non-dispatchable handles are pointers on 64-bit machines and integers on others.
static uint64_t gni_vk_buffer_number(VkBuffer b) {
    uint64_t n = 0;
    memcpy(&n, &b, sizeof b);
    return n;
}

static VkBuffer gni_vk_buffer_of(uint64_t n) {
    VkBuffer b = VK_NULL_HANDLE;
    memcpy(&b, &n, sizeof b);
    return b;
}

#if defined(VOLK_H_)
static bool gni_vk_find_root(gni_vk_functions *f) {
    // volkInitialize only finds the loader; volkLoadInstance and volkLoadDevice are the host's to
    // call.
    if (!vkGetInstanceProcAddr && volkInitialize() != VK_SUCCESS) return false;
    f->root = vkGetInstanceProcAddr;
    return f->root != NULL;
}
static void gni_vk_drop_root(gni_vk_functions *f) { f->root = NULL; }
#elif defined(_WIN32)
static bool gni_vk_find_root(gni_vk_functions *f) {
    HMODULE library = LoadLibraryA("vulkan-1.dll");
    if (!library) return false;
    FARPROC p = GetProcAddress(library, "vkGetInstanceProcAddr");
    memcpy(&f->root, &p, sizeof p);
    f->library = (void *)library;
    return f->root != NULL;
}
static void gni_vk_drop_root(gni_vk_functions *f) {
    if (f->library) FreeLibrary((HMODULE)f->library);
    f->library = NULL;
    f->root = NULL;
}
#else
// Once loaded it stays: some drivers fail to load again after they were unloaded often.
#ifdef RTLD_NODELETE
#define GNI_VK_DLOPEN_KEEP RTLD_NODELETE
#else
#define GNI_VK_DLOPEN_KEEP 0
#endif
static bool gni_vk_find_root(gni_vk_functions *f) {
    static const char *const names[] = {
#ifdef __APPLE__
        "libvulkan.dylib", "libvulkan.1.dylib", "libMoltenVK.dylib"
#else
        "libvulkan.so.1", "libvulkan.so"
#endif
    };
    for (int i = 0; i < GNI_COUNT(names) && !f->library; i++)
        f->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | GNI_VK_DLOPEN_KEEP);
    if (!f->library) return false;
    void *p = dlsym(f->library, "vkGetInstanceProcAddr");
    memcpy(&f->root, &p, sizeof p);
    return f->root != NULL;
}
static void gni_vk_drop_root(gni_vk_functions *f) {
    if (f->library) dlclose(f->library);
    f->library = NULL;
    f->root = NULL;
}
#endif

// Drivers that fail to load again after they were unloaded some 30 times stay, once the loader has them.
static void gni_vk_keep_drivers(void) {
#if defined(RTLD_NODELETE) && defined(RTLD_NOLOAD)
    static const char *const names[] = {"libGLX_nvidia.so.0", "libEGL_nvidia.so.0"};
    for (int i = 0; i < GNI_COUNT(names); i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
        if (library) dlclose(library);
    }
#endif
}

static bool gni_vk_load_global(gni_vk_functions *f) {
    f->vkEnumerateInstanceVersion =
        (PFN_vkEnumerateInstanceVersion)f->root(NULL, "vkEnumerateInstanceVersion");
#define GNI_X(name) f->name = (PFN_##name)f->root(NULL, #name);
    GNI_VK_GLOBAL_FUNCTIONS(GNI_X)
#undef GNI_X
    return f->vkCreateInstance && f->vkEnumerateInstanceExtensionProperties;
}

static bool gni_vk_load_instance(gni_vk_functions *f, VkInstance instance) {
    bool all = true;
#define GNI_X(name)                                                                                \
    f->name = (PFN_##name)f->root(instance, #name);                                                \
    all = all && f->name;
    GNI_VK_INSTANCE_FUNCTIONS(GNI_X)
#undef GNI_X
    return all;
}

static bool gni_vk_load_device(gni_vk_functions *f, VkDevice device) {
    bool all = true;
#define GNI_X(name)                                                                                \
    f->name = (PFN_##name)f->vkGetDeviceProcAddr(device, #name);                                   \
    all = all && f->name;
    GNI_VK_DEVICE_FUNCTIONS(GNI_X)
#undef GNI_X
    return all;
}

#endif // GNI_VULKAN
