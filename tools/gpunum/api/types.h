// >>types
// What every call shares: status codes, dtypes, shapes, options and the callbacks in them.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

#define GPUNUM_VERSION 200 /* major * 10000 + minor * 100 + patch */
#define GN_MAX_RANK 8

// GPUNUM_API overrides how public functions are declared (default: extern, or static with GPUNUM_STATIC).
#ifndef GPUNUM_API
#ifdef GPUNUM_STATIC
#define GPUNUM_API static
#else
#define GPUNUM_API extern
#endif
#endif

typedef struct gn_context gn_context; // a device, its memory and its stream of work
typedef struct gn_array gn_array;     // a typed n-dimensional array, or a promise of one

// X(name, text). The text is what gn_status_string returns.
#define GN_STATUS_LIST(X)                                                                          \
    X(GN_OK, "ok")                                                                                 \
    X(GN_ERROR_ARGUMENT, "bad argument")                                                           \
    X(GN_ERROR_SHAPE, "shapes do not fit")                                                         \
    X(GN_ERROR_DTYPE, "dtype not supported here")                                                  \
    X(GN_ERROR_OUT_OF_MEMORY, "out of memory")                                                     \
    X(GN_ERROR_DEVICE_LOST, "device lost")                                                         \
    X(GN_ERROR_IO, "file error")                                                                   \
    X(GN_ERROR_FORMAT, "file format not understood")                                               \
    X(GN_ERROR_UNSUPPORTED, "not supported")                                                       \
    X(GN_ERROR_GRADIENT, "no gradient")                                                            \
    X(GN_ERROR_STALE, "array was released")                                                        \
    X(GN_ERROR_VERSION, "header and implementation differ")
typedef enum gn_status {
#define GN_X(name, text) name,
    GN_STATUS_LIST(GN_X)
#undef GN_X
    GN_STATUS_COUNT
} gn_status;

// X(NAME, bytes, NumPy's name, safetensors' name)
#define GN_DTYPE_LIST(X)                                                                           \
    X(GN_F32, 4, "float32", "F32")                                                                 \
    X(GN_F16, 2, "float16", "F16")                                                                 \
    X(GN_BF16, 2, "bfloat16", "BF16")                                                              \
    X(GN_F64, 8, "float64", "F64")                                                                 \
    X(GN_I32, 4, "int32", "I32")                                                                   \
    X(GN_I64, 8, "int64", "I64")                                                                   \
    X(GN_U8, 1, "uint8", "U8")                                                                     \
    X(GN_I8, 1, "int8", "I8")                                                                      \
    X(GN_U32, 4, "uint32", "U32")                                                                  \
    X(GN_BOOL, 1, "bool", "BOOL")                                                                  \
    X(GN_C64, 8, "complex64", "C64")                                                               \
    X(GN_C128, 16, "complex128", "C128")                                                           \
    X(GN_I16, 2, "int16", "I16")                                                                   \
    X(GN_U16, 2, "uint16", "U16")                                                                  \
    X(GN_U64, 8, "uint64", "U64")
typedef enum gn_dtype {
#define GN_X(name, bytes, numpy, safetensors) name,
    GN_DTYPE_LIST(GN_X)
#undef GN_X
    GN_DTYPE_COUNT
} gn_dtype;

typedef struct gn_shape {
    int rank;                 // 0 to GN_MAX_RANK; 0 is a single value without axes
    int64_t dim[GN_MAX_RANK]; // in elements, outermost first
} gn_shape;

// The axes that a function works on. A plain number is that axis, negative ones count from the end: gn_sum(a, 0),
// gn_sum(a, -1). GN_ALL is every axis, GN_AXES(0, 2) a set and GN_AXES() the empty one. GN_KEEP(axes), of any of
// these, has reductions keep the reduced axes with size 1: gn_mean(a, GN_KEEP(1)), gn_sum(a, GN_KEEP(GN_AXES(0, -1))).
// Sets are made by these names alone: numbers joined to one by | or +, an axis named twice and an axis outside -8
// to 7 are errors.
typedef int gn_axes;
#define GN_ALL (1 << 30)
#define GN_KEEP(axes) gn_axes_keep(axes)
GPUNUM_API gn_axes gn_axes_from(int count, const int *axes); // GN_AXES from a list
GPUNUM_API gn_axes gn_axes_keep(gn_axes axes);

typedef enum gn_backend {
    GN_BACKEND_AUTO,   // the best GPU through Vulkan if there is one, else the CPU
    GN_BACKEND_CPU,    // CPU only
    GN_BACKEND_VULKAN, // any Vulkan device, software ones too; gn_open fails without one
    GN_BACKEND_WEBGPU  // where compiled with GPUNUM_USE_WEBGPU, else gn_open fails with GN_ERROR_UNSUPPORTED
} gn_backend;

typedef enum gn_placement {
    GN_PLACE_AUTO, // per op, from its size, its family and where the operands are; per loop, from how long its rounds take
    GN_PLACE_CPU,  // every op on the CPU
    GN_PLACE_GPU,  // every op that the GPU can do on the GPU
    GN_PLACE_STAY  // where the largest operand is
} gn_placement;

typedef enum gn_precision {
    GN_PRECISION_F32,  // float32 inputs give float32 results, every product and sum rounded as float32
    // Float32 operands may be rounded to bfloat16 for matrix units, in products, convolutions and attention.
    GN_PRECISION_FAST,
    // Large float32 products go through matrix units in two float16 parts that hold an operand to 2^-23, or three of
    // bfloat16 where its range asks for that, summed in float32 (after Ootomo and Yokota, 2022). Takes 6 bytes of
    // memory for each element of the operands. Errors are about a third of GN_PRECISION_F32's on most data, but
    // larger where neighbouring products cancel; infinities and NaN come out the same. Where the device has no such
    // units, and for small products: GN_PRECISION_F32.
    //
    // Convolutions with kernels of 3x3 and a stride of 1 go by tiles of 4x4 results (Winograd, 1980; on Vulkan): a quarter
    // of the multiplications, up to 1 GiB of memory, of which a forward pass leaves 2.25 times x until the gradient of w,
    // while most memory is free. Errors are about twice those of GN_PRECISION_F32, and of what is largest in a tile of 6x6
    // and its channels; results that are not finite are those of GN_PRECISION_F32. With channels in eights their products
    // take the two float16 parts, with one scale for 128 tiles that follow each other and one for 64 kernels, or, where
    // weights get their gradient, for 64 channels of many tiles: numbers below 2^-29 of the largest one there are held to
    // 2^-51 of that. Other convolutions, of 8 channels and more, take the two parts with one scale for all weights and one
    // for the images of 128 results that follow each other, or, where weights get their gradient, for many images: what
    // is as small beside the largest number there is held as above. Results that are not finite are those of
    // GN_PRECISION_F32.
    GN_PRECISION_HIGH
} gn_precision;

typedef enum gn_device { GN_DEVICE_CPU, GN_DEVICE_GPU } gn_device;

typedef enum gn_cpu {
    GN_CPU_BEST, // the widest instruction set the CPU has
    GN_CPU_PLAIN,
    GN_CPU_BASE, // SSE2 on x86-64, NEON on ARM, SIMD128 in WebAssembly
    GN_CPU_AVX2,
    GN_CPU_AVX512
} gn_cpu;

typedef enum gn_log_level {
    GN_LOG_DEFAULT, // in gn_options: GN_LOG_WARNING
    GN_LOG_NONE,    // in gn_options: nothing
    GN_LOG_ERROR,
    GN_LOG_WARNING,
    GN_LOG_INFO, // device choice, placement rules, pipeline cache
    GN_LOG_DEBUG // every placement decision
} gn_log_level;

typedef void (*gn_log_fn)(void *user, gn_log_level level, const char *text);
typedef void (*gn_free_fn)(void *data, void *user);
typedef void (*gn_done_fn)(void *user, gn_status status);
typedef void (*gn_opened_fn)(void *user, gn_context *g); // NULL: gn_open_error and gn_open_status say why

// Replaces malloc and free. `size` is given back to `release`. All three may be called from any thread.
typedef struct gn_allocator {
    void *(*allocate)(void *user, size_t size); // NULL: out of memory; at least malloc's alignment
    void (*release)(void *user, void *data, size_t size);
    void *user;
} gn_allocator;

// Smallest number of elements (of the result, or of the input for reductions; m*n*k for matmul) for
// which GN_PLACE_AUTO takes the GPU when all operands are on the CPU. 0 = built-in default. linalg: of the
// matrices of one decomposition; those that are on the GPU stay there from a quarter of it on. Where the
// default holds, operands of 16 MiB and more that were read on the CPU twice since they were last written go to
// the GPU, but for memory of gn_array_wrap, and elementwise results of 16 times their operands' bytes do so as
// random numbers do.
typedef struct gn_thresholds {
    int64_t elementwise, reduction, matmul, random, copy, fft, linalg;
} gn_thresholds;

// A host's own Vulkan device. Handles are passed as void *, so that this half needs no Vulkan header.
typedef struct gn_vulkan_host {
    void *instance, *physical_device, *device, *queue; // VkInstance, VkPhysicalDevice, VkDevice, VkQueue
    uint32_t queue_family;                             // of `queue`; it must support compute
    uint32_t api_version;                              // the instance's, 0 = Vulkan 1.2
    void *get_instance_proc_addr;                      // PFN_vkGetInstanceProcAddr; NULL = find the loader
    // What the host switched on when it made the device. Without timelineSemaphore gn_open fails.
    bool timeline_semaphore, buffer_device_address, shader_int64, shader_float64;
    bool narrow_storage; // storageBuffer8BitAccess and storageBuffer16BitAccess: short elements are stored faster
    // Called around vkQueueSubmit when other threads use the queue; NULL = they do not.
    void (*queue_lock)(void *user);
    void (*queue_unlock)(void *user);
    void *user;
} gn_vulkan_host;

enum { // gn_options.vulkan_flags, for tests and for odd drivers
    GN_VULKAN_NO_ADDRESSES = 1,       // bind buffers by descriptors even where addresses work
    GN_VULKAN_NO_ASYNC_PIPELINES = 2, // compile pipelines in the call that needs them
    GN_VULKAN_NO_SPECIALIZATION = 4,  // always interpret programs on the device
    GN_VULKAN_NO_WIDE = 8,            // no float64 and int64 on the device
    GN_VULKAN_NO_MAPPING = 16         // the host never touches device memory, as on a discrete GPU
};

// A zeroed gn_options is valid and means: defaults for everything.
typedef struct gn_options {
    gn_backend backend;
    int device;             // 1-based index into gn_device_list; 0 = best
    gn_placement placement; // where ops run when there is a GPU
    gn_precision matmul;
    uint64_t memory_limit; // bytes of device memory; 0 = no limit but the device's
    int threads;           // CPU threads; 0 = as many as the machine has
    gn_cpu cpu;            // widest instruction set to use
    uint64_t seed;         // of the random numbers; 0 is one as all others: each run draws the same
    // Folder for the pipeline cache and what tools/tune measured, made where only the last part of its path is missing;
    // one that cannot be had is a warning in the log. NULL = none.
    const char *cache_dir;
    gn_thresholds thresholds;
    gn_allocator allocator; // {0} = malloc and free
    gn_log_fn log;          // NULL = silent, unless GPUNUM_LOG is set in the environment; gn_log_stderr is one
    void *log_user;
    gn_log_level log_level; // this and what is more urgent
    const gn_vulkan_host *vulkan; // NULL = own device
    uint32_t vulkan_flags;
} gn_options;

typedef struct gn_device_info {
    char name[256];
    char driver[128];
    char why[256];       // empty, or why the GPU (or this device) is not used, in words
    gn_backend backend;  // GN_BACKEND_CPU or GN_BACKEND_VULKAN
    bool usable;
    bool integrated;     // shares memory with the CPU
    bool software;       // a Vulkan device that runs on the CPU
    bool has_f64, has_i64;
    uint64_t memory;     // bytes of device memory; 0 if not known
    int threads;         // CPU threads, 0 for a GPU
    int multiprocessors; // 0 if not known
    int subgroup;        // SIMD width in float32 lanes
    uint32_t vendor_id, device_id, driver_version, api_version; // Vulkan's; 0 for the CPU
} gn_device_info;

typedef struct gn_memory_stats {
    uint64_t host_used, host_peak;             // bytes of CPU memory held through gn_allocator
    uint64_t device_used;                      // bytes of device memory in live arrays
    uint64_t device_reserved, device_peak;     // taken from the driver, and the most that was
    uint64_t device_limit, device_blocks;
    uint64_t arrays;                           // arrays alive
} gn_memory_stats;
