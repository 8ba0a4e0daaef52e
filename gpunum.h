// gpunum.h - version 0.1.0 - MIT or public domain (see the end of this file, or LICENSE)
//
// NumPy arrays, training with autograd and, in time, FFT for C and C++ programs: on any GPU that has
// Vulkan, and on the CPU where there is none. One header, with precompiled kernels beside it in shaders.h.
//
// Quick start
//
//     #define GPUNUM_IMPLEMENTATION // in exactly one file
//     #include "gpunum.h"
//
//     int main(void) {
//         gn_context *g = gn_open(NULL); // best GPU, else the CPU
//         GN_SCOPE(g) {                  // frees what is made inside
//             gn_array *x = gn_randn(g, GN_F32, GN_SHAPE(1000, 784));
//             gn_array *w = gn_randn(g, GN_F32, GN_SHAPE(784, 10));
//             gn_array *p = gn_softmax(gn_matmul(x, w), -1);
//             gn_print(gn_mean(p, GN_AXIS(0)));
//         }
//         if (gn_status_get(g)) fprintf(stderr, "%s\n", gn_error(g));
//         gn_close(g);
//     }
//
//     cc -O2 app.c -lm -lpthread -ldl
//
// Contents
//
//     types            What every call shares
//     context          Opening and closing, errors, devices, synchronisation
//     arrays           Making arrays, reading them, and who owns them
//     views            Views share memory with their source
//     reductions       `axes` is a bit set
//     linalg           Matrix product
//     random           Philox 4x32-10, counter based
//     grad             Reverse-mode differentiation
//     train            Layers, losses and optimizers
//     files            NumPy's .npy and MNIST's IDX.
//     watch            Profiles in Chrome's trace format
//     host             Sharing with a program that has its own Vulkan device (see
//     optable          What each elementwise op is, said once
//     transforms       Fourier, cosine and sine transforms, complex numbers, convolution
//     config           Switches resolved, system headers, compiler set-up
//     platform         Threads, locks, atomics and clocks
//     structs          Every internal type that more than one room uses
//     internal         The functions that rooms offer each other, by the room that defines them
//     memory           CPU memory, counted, through the user's allocator
//     log              Log lines, the sticky first error
//     half             float16 and bfloat16 to and from float32, one value at a time
//     array            Array headers, buffers, references and scopes
//     create           Arrays from nothing
//     views_ops        Arrays that look at other arrays' memory
//     lazy             Elementwise work stays an expression until somebody needs the value
//     place            Which backend runs a job, and bringing the operands there
//     access           Data in and out of arrays
//     threads          The CPU thread pool
//     passes           Compiles the SIMD rooms once per instruction set
//     simd             Vectors of one SIMD pass
//     vmath            The float32 functions of one SIMD pass
//     cpu_kernels      Loops of the CPU backend, compiled per pass
//     gemm_micro       Register tiles, dot products and panel packing of the matrix product
//     fft_micro        Butterflies and passes of the FFT
//     simd_end         Takes the short names of one SIMD pass back
//     gemm_cpu         The matrix product on the CPU: which path, which blocks, which threads
//     fft_cpu          The FFT on the CPU: plans and their cache, transforms of rows
//     cpu_wide         The CPU backend's loops over 64-bit registers
//     cpu              The CPU backend
//     cpu_reduce       Reductions on the CPU: what was gathered so far
//     cpu_jobs         The other jobs on the CPU (softmax, take, random
//     vk_loader        The Vulkan headers, the private table of function pointers and where it
//     vk_device        The types of all Vulkan rooms, the choice of a device
//     vk_memory        The pool of device memory and the pools of staging memory
//     vk_stream        The stream of commands
//     vk_pipelines     Compute pipelines out of shaders.h
//     vk_dispatch      Running a kernel
//     fft_vk           The FFT on the GPU: tables, the passes that a length is cut into
//     vk_ops           Jobs on the Vulkan device
//     async            gn_read_async
//     elementwise      The public elementwise functions, from the op tables
//     reduce_ops       The public reductions
//     matmul           The public matrix product
//     fft              The public transforms
//     random_ops       Random arrays
//     autograd         The record of what was computed, and the pass back over it
//     gradients        The derivative of each op, as public calls
//     nn               Layers and losses
//     optim            Optimizers
//     io               Array files
//     print            Arrays as text, laid out as NumPy's repr does
//     profile          Spans of work written as a Chrome trace (JSON, "X" events)
//     open             gn_open and gn_close, devices, synchronisation, statistics
//
// Manual
//
// Arrays. A gn_array has a dtype, a shape of up to 8 dimensions and 64-bit sizes. Elementwise ops are
// lazy: they build an expression, and a chain of them runs as one pass over memory when a value is
// needed. Nothing waits for the GPU until a value is read (gn_read, gn_item, gn_print).
//
// Lifetime. A new array belongs to the scope that is open, which drops it at its end, or to the caller
// when none is open (gn_release). gn_keep hands it outwards, gn_retain adds a reference, and in loops
// gn_set(&w, f(w)) replaces a variable. gn_close frees whatever is left. Scopes belong to the thread that
// opened them.
//
// Errors. Nothing aborts or prints. A function that makes an array returns NULL on failure and the
// context keeps the first error (gn_status_get, gn_error) until gn_error_clear. Every function accepts
// NULL arrays, so check once at the end of a chain.
//
// dtypes. float32, float16, bfloat16, int32, uint8 and bool work everywhere; int8 and uint32 too; float64
// and int64 on the CPU, and on GPUs that have them as far as these can compute with them, otherwise those
// ops run on the CPU; complex64 and complex128 are storage: they can be made, viewed, copied and read.
// Promotion follows the array API standard; integers with floats give the float's dtype, and functions
// that need a float turn integers into float32. float16 and bfloat16 round after every op.
//
// Placement. With a GPU, each op runs where its operands are; work on CPU data goes to the GPU when it is
// large enough (gn_options.thresholds). gn_to moves data, gn_options.placement forces a side, gn_explain
// tells why an array was computed where it was.
//
// Accuracy. float32 means float32. exp, log, sin, cos, tanh and erf are within 2 ulp over the whole range
// on the CPU and the GPU, other functions within 4; + - * and sqrt are correctly rounded on the CPU, and
// division and sqrt within 1 ulp on the GPU. Sums are compensated or pairwise. The same input on the same device
// gives the same bits on every run. GPUs may flush subnormal numbers to zero.
//
// Threads. Any thread may use a context; calls on one context are serialised by a lock inside it.
// Scopes and gn_no_grad_begin count per thread.
//
// Switches, defined before including (all but the first two in the implementing file only):
//     GPUNUM_IMPLEMENTATION   compile the implementation here
//     GPUNUM_STATIC           every function static, for a single file
//     GPUNUM_NO_VULKAN        CPU only; needs no Vulkan headers
//     GPUNUM_USE_VOLK         take vkGetInstanceProcAddr from volk instead of opening the loader
//                             (also where the implementation comes before volk.h in one file)
//     GPUNUM_NO_THREADS       no threads and no locks
//     GPUNUM_NO_SIMD          plain C kernels only
//     GPUNUM_USE_CBLAS        cblas_sgemm and cblas_dgemm (32-bit sizes), which you link, for all but small
//                             matrix products on the CPU, with that library's rounding and threads
//     GPUNUM_SELF             how this file includes itself, if it was renamed (default "gpunum.h")
//     GPUNUM_SHADERS          where the kernels are (default "shaders.h")
//     GPUNUM_API              overrides how public functions are declared
//
// What it does not do: sparse arrays, strings, dates, ragged shapes, distributed arrays.
// ------------------------------------------------------------------------------------------
// >>types
// What every call shares: status codes, dtypes, shapes, options and the callbacks in them.

#ifndef GPUNUM_H
#define GPUNUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPUNUM_VERSION 100 /* major * 10000 + minor * 100 + patch */
#define GN_MAX_RANK 8

// GPUNUM_API overrides how public functions are declared (default: extern, or static with GPUNUM_STATIC).
#ifndef GPUNUM_API
#ifdef GPUNUM_STATIC
#define GPUNUM_API static
#else
#define GPUNUM_API extern
#endif
#endif

#ifdef __cplusplus
extern "C" {
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
    X(GN_C128, 16, "complex128", "C128")
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

typedef enum gn_backend {
    GN_BACKEND_AUTO,   // the best GPU through Vulkan if there is one, else the CPU
    GN_BACKEND_CPU,    // CPU only
    GN_BACKEND_VULKAN, // any Vulkan device, software ones too; gn_open fails without one
    GN_BACKEND_WEBGPU  // reserved: gn_open fails with GN_ERROR_UNSUPPORTED
} gn_backend;

typedef enum gn_placement {
    GN_PLACE_AUTO, // per op, from its size, its family and where the operands are
    GN_PLACE_CPU,  // every op on the CPU
    GN_PLACE_GPU,  // every op that the GPU can do on the GPU
    GN_PLACE_STAY  // where the largest operand is
} gn_placement;

typedef enum gn_precision {
    GN_PRECISION_F32, // float32 inputs give float32 results
    GN_PRECISION_FAST // matrix units with half precision inputs may be used for float32
} gn_precision;

typedef enum gn_device { GN_DEVICE_CPU, GN_DEVICE_GPU } gn_device;

typedef enum gn_cpu {
    GN_CPU_BEST, // the widest instruction set the CPU has
    GN_CPU_PLAIN,
    GN_CPU_BASE, // SSE2 on x86-64, NEON on ARM
    GN_CPU_AVX2,
    GN_CPU_AVX512
} gn_cpu;

typedef enum gn_log_level {
    GN_LOG_WARNING, // default
    GN_LOG_ERROR,   // only errors
    GN_LOG_INFO,    // device choice, placement rules, pipeline cache
    GN_LOG_DEBUG,   // every placement decision
    GN_LOG_NONE
} gn_log_level;

typedef void (*gn_log_fn)(void *user, gn_log_level level, const char *text);
typedef void (*gn_free_fn)(void *data, void *user);
typedef void (*gn_done_fn)(void *user, gn_status status);

// Replaces malloc and free. `size` is given back to `release`. All three may be called from any thread.
typedef struct gn_allocator {
    void *(*allocate)(void *user, size_t size); // NULL: out of memory; at least malloc's alignment
    void (*release)(void *user, void *data, size_t size);
    void *user;
} gn_allocator;

// Smallest number of elements (of the result, or of the input for reductions; m*n*k for matmul) for
// which GN_PLACE_AUTO takes the GPU when all operands are on the CPU. 0 = built-in default.
typedef struct gn_thresholds {
    int64_t elementwise, reduction, matmul, random, copy;
} gn_thresholds;

// A host's own Vulkan device. Handles are passed as void *, so that this half needs no Vulkan header.
typedef struct gn_vulkan_host {
    void *instance, *physical_device, *device, *queue; // VkInstance, VkPhysicalDevice, VkDevice, VkQueue
    uint32_t queue_family;                             // of `queue`; it must support compute
    uint32_t api_version;                              // the instance's, 0 = Vulkan 1.2
    void *get_instance_proc_addr;                      // PFN_vkGetInstanceProcAddr; NULL = find the loader
    // What the host switched on when it made the device. Without timelineSemaphore gn_open fails.
    bool timeline_semaphore, buffer_device_address, shader_int64, shader_float64;
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
    uint64_t seed;         // of the random numbers
    const char *cache_dir; // an existing folder for the pipeline cache; NULL = none
    gn_thresholds thresholds;
    gn_allocator allocator; // {0} = malloc and free
    gn_log_fn log;          // NULL = silent
    void *log_user;
    gn_log_level log_level;
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

// ------------------------------------------------------------------------------------------
// >>context
// Opening and closing, errors, devices, synchronisation. Any thread may use a context; calls on one
// context are serialised inside.

// Opens a context. `options` may be NULL. GN_BACKEND_AUTO always gives a working context; the other
// backends return NULL when they cannot be had (gn_open_error says why).
// The macro passes the version and size of the options this file was compiled with.
#define gn_open(options) gn_open_version((options), GPUNUM_VERSION, sizeof(gn_options))
GPUNUM_API gn_context *gn_open_version(const gn_options *options, uint32_t version, size_t options_size);
// Why the last gn_open on this thread returned NULL; "" if it did not.
GPUNUM_API const char *gn_open_error(void);
// Waits for the device, then frees everything, arrays still alive included. NULL is ignored.
GPUNUM_API void gn_close(gn_context *g);

// The first error since the last clear; later errors are dropped until gn_error_clear.
GPUNUM_API gn_status gn_status_get(const gn_context *g);
// Its message, such as "gn_matmul: (3,4) x (5,6): inner dimensions 4 and 5 differ"; "" if none.
// Valid until the next gn_error_clear or gn_close.
GPUNUM_API const char *gn_error(const gn_context *g);
GPUNUM_API void gn_error_clear(gn_context *g);
GPUNUM_API const char *gn_status_string(gn_status status);

// Writes up to `capacity` devices and returns how many there are. `out` may be NULL if capacity is 0.
// Entry i is device number i + 1 in gn_options.device. The CPU backend is not in the list.
GPUNUM_API int gn_device_list(gn_device_info *out, int capacity);
// The device that `g` computes on; `why` says why it is not a GPU when it is not.
GPUNUM_API void gn_device_get(const gn_context *g, gn_device_info *out);

GPUNUM_API gn_status gn_flush(gn_context *g); // submit recorded work, do not wait
GPUNUM_API gn_status gn_sync(gn_context *g);  // wait for everything; delivers gn_read_async callbacks

GPUNUM_API void gn_memory_get(gn_context *g, gn_memory_stats *out);
GPUNUM_API void gn_memory_trim(gn_context *g); // give unused memory back to the system and the driver

// ------------------------------------------------------------------------------------------
// >>arrays
// Making arrays, reading them, and who owns them.
//
// A new array has one reference. Inside a scope the scope owns it and drops it at the scope's end;
// outside any scope the caller owns it and calls gn_release. gn_close frees what is left.
// Every function that takes an array accepts NULL, does nothing and returns NULL or 0: check once, at
// the end of a chain.

#define GN_SCOPE_NAME2(line) gni_scope_##line
#define GN_SCOPE_NAME(line) GN_SCOPE_NAME2(line)
// GN_SCOPE(g) { ... }: gn_scope_begin and gn_scope_end around a block. Do not leave the block by
// return, goto or an outer break; `continue` and `break` end the block and the scope is still closed.
#define GN_SCOPE(g)                                                                                \
    for (int GN_SCOPE_NAME(__LINE__) = (gn_scope_begin(g), 1); GN_SCOPE_NAME(__LINE__);            \
         GN_SCOPE_NAME(__LINE__) = 0, gn_scope_end(g))
GPUNUM_API void gn_scope_begin(gn_context *g);
GPUNUM_API void gn_scope_end(gn_context *g);
GPUNUM_API gn_array *gn_keep(gn_array *a);   // moves `a` to the enclosing scope, or to the caller; returns a
GPUNUM_API gn_array *gn_retain(gn_array *a); // one more reference, owned by the caller; returns a
GPUNUM_API void gn_release(gn_array *a);     // one reference less
// Releases *slot and stores `value` there, which takes the old array's place: its owner, and if it was
// a parameter its requires_grad. Takes over the caller's reference to `value`.
// A NULL value after an error leaves the slot as it was.
GPUNUM_API void gn_set(gn_array **slot, gn_array *value);

GPUNUM_API gn_shape gn_shape_from(int rank, const int64_t *dims);

// Copies gn_size x itemsize bytes in C order from `data`.
GPUNUM_API gn_array *gn_array_from(gn_context *g, gn_dtype t, gn_shape s, const void *data);
// Borrows `data` (C order, aligned to the item); it must stay valid until `release` is called with it.
// `release` may be NULL. The CPU backend reads and writes it in place.
GPUNUM_API gn_array *gn_array_wrap(gn_context *g, gn_dtype t, gn_shape s, void *data,
                                   gn_free_fn release, void *user);
GPUNUM_API gn_array *gn_empty(gn_context *g, gn_dtype t, gn_shape s); // contents undefined
GPUNUM_API gn_array *gn_zeros(gn_context *g, gn_dtype t, gn_shape s);
GPUNUM_API gn_array *gn_ones(gn_context *g, gn_dtype t, gn_shape s);
GPUNUM_API gn_array *gn_full(gn_context *g, gn_dtype t, gn_shape s, double value);
GPUNUM_API gn_array *gn_scalar(gn_context *g, gn_dtype t, double value); // 0-d
GPUNUM_API gn_array *gn_eye(gn_context *g, gn_dtype t, int64_t n, int64_t m, int64_t k); // (n, m), ones on diagonal k
// start, start + step, ... while before stop; length ceil((stop - start) / step).
GPUNUM_API gn_array *gn_arange(gn_context *g, gn_dtype t, double start, double stop, double step);
GPUNUM_API gn_array *gn_linspace(gn_context *g, gn_dtype t, double start, double stop, int64_t count);
GPUNUM_API gn_array *gn_zeros_like(gn_array *a);
GPUNUM_API gn_array *gn_ones_like(gn_array *a);
GPUNUM_API gn_array *gn_full_like(gn_array *a, double value);

// Evaluates and copies out in C order. `bytes` must be gn_bytes(a).
GPUNUM_API gn_status gn_read(gn_array *a, void *dst, size_t bytes);
// The same without waiting: `done` is called once, from a later gn_ call on this context (gn_sync at the
// latest, or gn_close), on the thread that made that call. `dst` must stay valid until then.
GPUNUM_API void gn_read_async(gn_array *a, void *dst, size_t bytes, gn_done_fn done, void *user);
// Overwrites the elements of `a` (C order); views of the same memory see it. An error for an array
// whose value autograd still needs is reported by gn_backward.
GPUNUM_API gn_status gn_write(gn_array *a, const void *src, size_t bytes);
// The value of a 1-element array as double (NaN on error). int64 beyond 2^53 loses digits: use gn_read.
GPUNUM_API double gn_item(gn_array *a);

GPUNUM_API gn_shape gn_shape_of(const gn_array *a);
GPUNUM_API gn_dtype gn_dtype_of(const gn_array *a);
GPUNUM_API int64_t gn_size(const gn_array *a);  // elements
GPUNUM_API size_t gn_bytes(const gn_array *a);  // elements x itemsize
GPUNUM_API int gn_rank(const gn_array *a);
GPUNUM_API int64_t gn_dim(const gn_array *a, int axis); // negative axes count from the end; -1 on error
GPUNUM_API gn_context *gn_context_of(const gn_array *a);
GPUNUM_API size_t gn_dtype_size(gn_dtype t);
GPUNUM_API const char *gn_dtype_name(gn_dtype t); // NumPy's name, "float32"
GPUNUM_API gn_dtype gn_promote(gn_dtype a, gn_dtype b); // GN_DTYPE_COUNT if they have no common dtype

GPUNUM_API gn_array *gn_cast(gn_array *a, gn_dtype t); // floats to integers truncate and saturate, NaN gives 0
GPUNUM_API gn_array *gn_copy(gn_array *a);             // own memory, C order
GPUNUM_API gn_array *gn_eval(gn_array *a);             // starts computing `a` now; returns a
GPUNUM_API gn_status gn_eval_all(gn_array **arrays, int count); // several at once, sharing common work
GPUNUM_API gn_array *gn_to(gn_array *a, gn_device device); // a copy of the data there; returns a
// Why `a` was or will be computed where it is: "gn_matmul (128,784) x (784,256) on GPU: ...". Valid until
// the next gn_explain on this context.
GPUNUM_API const char *gn_explain(gn_array *a);

// NumPy's repr layout, summarised beyond 1000 elements. gn_to_string's result is freed with gn_string_free.
typedef struct gn_print_options {
    int precision;     // digits after the point; 0 = 8
    int64_t threshold; // summarise above so many elements; 0 = 1000
    int edge_items;    // shown at each edge of a summary; 0 = 3
    int line_width;    // 0 = 75
} gn_print_options;
GPUNUM_API void gn_print(gn_array *a); // to stdout, the one function that prints
GPUNUM_API char *gn_to_string(gn_array *a, const gn_print_options *options); // options may be NULL
GPUNUM_API void gn_string_free(gn_context *g, char *text);

// ------------------------------------------------------------------------------------------
// >>views
// Views share memory with their source: no copy where strides allow. Evaluates a lazy source.

GPUNUM_API gn_array *gn_reshape(gn_array *a, gn_shape s); // one dimension may be -1; copies if strides force it
GPUNUM_API gn_array *gn_ravel(gn_array *a);               // 1-d
GPUNUM_API gn_array *gn_permute_axes(gn_array *a, const int *axes, int count);
GPUNUM_API gn_array *gn_transpose(gn_array *a); // all axes reversed
GPUNUM_API gn_array *gn_swap_axes(gn_array *a, int axis1, int axis2);
GPUNUM_API gn_array *gn_move_axis(gn_array *a, int from, int to);
GPUNUM_API gn_array *gn_expand_dims(gn_array *a, int axis); // a new axis of size 1 before `axis`
GPUNUM_API gn_array *gn_squeeze(gn_array *a, uint32_t axes); // GN_ALL: every axis of size 1
GPUNUM_API gn_array *gn_broadcast_to(gn_array *a, gn_shape s);
// a[..., start:stop:step, ...] on one axis, NumPy's rules; GN_NONE leaves start or stop out.
#define GN_NONE INT64_MIN
GPUNUM_API gn_array *gn_slice(gn_array *a, int axis, int64_t start, int64_t stop, int64_t step);
// NumPy's basic indexing as text: "1:5, ::-2, ..., -1, None".
GPUNUM_API gn_array *gn_index(gn_array *a, const char *subscript);
GPUNUM_API gn_array *gn_flip(gn_array *a, uint32_t axes); // GN_ALL: every axis

// Joins and gathers: new arrays.
GPUNUM_API gn_array *gn_concat(gn_array *const *arrays, int count, int axis);
GPUNUM_API gn_array *gn_stack(gn_array *const *arrays, int count, int axis); // along a new axis
// Rows of `a` along `axis` picked by integer `indices` (any shape; negative count from the end; out of
// range gives an error on the CPU, and on the GPU when the indices are on the CPU, else clamps).
GPUNUM_API gn_array *gn_take(gn_array *a, gn_array *indices, int axis);
GPUNUM_API gn_array *gn_one_hot(gn_array *indices, int64_t classes, gn_dtype t); // shape + (classes)

// ------------------------------------------------------------------------------------------
// >>reductions
// `axes` is a bit set: GN_ALL, or GN_AXIS(0) | GN_AXIS(-1), with GN_KEEP to keep reduced axes as size 1.

#define GN_ALL 0u
#define GN_AXIS(i) (1u << ((unsigned)(i) & 15u)) /* -8 to 7 */
#define GN_KEEP 0x10000u

GPUNUM_API gn_array *gn_sum(gn_array *a, uint32_t axes);  // integers and bool sum to int64
GPUNUM_API gn_array *gn_prod(gn_array *a, uint32_t axes); // likewise
GPUNUM_API gn_array *gn_mean(gn_array *a, uint32_t axes); // integers give float32
GPUNUM_API gn_array *gn_min(gn_array *a, uint32_t axes);  // NaN if there is one; an empty axis is an error
GPUNUM_API gn_array *gn_max(gn_array *a, uint32_t axes);
GPUNUM_API gn_array *gn_var(gn_array *a, uint32_t axes, int ddof); // over n - ddof
GPUNUM_API gn_array *gn_std(gn_array *a, uint32_t axes, int ddof);
GPUNUM_API gn_array *gn_any(gn_array *a, uint32_t axes); // bool
GPUNUM_API gn_array *gn_all(gn_array *a, uint32_t axes);
GPUNUM_API gn_array *gn_count_nonzero(gn_array *a, uint32_t axes); // int64
GPUNUM_API gn_array *gn_norm(gn_array *a, uint32_t axes);          // root of the sum of squares
GPUNUM_API gn_array *gn_logsumexp(gn_array *a, uint32_t axes);
// Index of the first smallest or largest element, NaN counts as such; int32. GN_FLAT: of the raveled array.
#define GN_FLAT INT32_MIN
GPUNUM_API gn_array *gn_argmin(gn_array *a, int axis);
GPUNUM_API gn_array *gn_argmax(gn_array *a, int axis);
GPUNUM_API gn_array *gn_softmax(gn_array *a, int axis);
GPUNUM_API gn_array *gn_log_softmax(gn_array *a, int axis);

// ------------------------------------------------------------------------------------------
// >>linalg
// Matrix product. More is to come here.

// NumPy's matmul: (..., m, k) x (..., k, n) -> (..., m, n), batches broadcast, 1-d operands as in NumPy.
// Transposed views cost nothing. float16 and bfloat16 accumulate in float32.
GPUNUM_API gn_array *gn_matmul(gn_array *a, gn_array *b);

// ------------------------------------------------------------------------------------------
// >>random
// Philox 4x32-10, counter based: the same seed gives the same numbers on every backend, bit for bit.

GPUNUM_API void gn_seed(gn_context *g, uint64_t seed);
GPUNUM_API gn_array *gn_rand(gn_context *g, gn_dtype t, gn_shape s);  // uniform in [0, 1)
GPUNUM_API gn_array *gn_randn(gn_context *g, gn_dtype t, gn_shape s); // standard normal
GPUNUM_API gn_array *gn_uniform(gn_context *g, gn_dtype t, gn_shape s, double low, double high);
GPUNUM_API gn_array *gn_normal(gn_context *g, gn_dtype t, gn_shape s, double mean, double deviation);
GPUNUM_API gn_array *gn_randint(gn_context *g, gn_dtype t, gn_shape s, int64_t low, int64_t high); // [low, high)
GPUNUM_API gn_array *gn_bernoulli(gn_context *g, gn_dtype t, gn_shape s, double p); // 1 with probability p
GPUNUM_API gn_array *gn_permutation(gn_context *g, int64_t n); // 0 to n - 1 in random order; int32, int64 from 2^31 on

// ------------------------------------------------------------------------------------------
// >>grad
// Reverse-mode differentiation: ops on arrays that require a gradient are recorded, gn_backward runs
// the record back. Gradients are ordinary arrays, computed lazily on the same device.

GPUNUM_API gn_array *gn_requires_grad(gn_array *a, bool on); // float arrays that no op made; returns a
GPUNUM_API bool gn_needs_grad(const gn_array *a);            // requires one, or depends on one that does
// Adds d loss / d x to gn_grad(x) of every x that requires it. `loss` has one element.
GPUNUM_API gn_status gn_backward(gn_array *loss);
GPUNUM_API gn_array *gn_grad(gn_array *a); // borrowed, NULL if there is none; gn_retain to keep it
GPUNUM_API void gn_zero_grad(gn_array *a);
GPUNUM_API gn_array *gn_detach(gn_array *a); // the same memory, not recorded
GPUNUM_API void gn_no_grad_begin(gn_context *g);
GPUNUM_API void gn_no_grad_end(gn_context *g);
// d loss / d params[i] into out[i] (new arrays) without touching gn_grad; an unused parameter gives zeros.
// With create_graph the gradients can be differentiated again.
GPUNUM_API gn_status gn_gradients(gn_array *loss, gn_array *const *params, int count, bool create_graph,
                                  gn_array **out);
// Compares gradients of `fn` (returns a 1-element array) at float64 or float32 `inputs` with central differences.
// Returns the largest error, |analytic - numeric| / max(1, |numeric|); NaN on failure.
typedef gn_array *(*gn_function)(gn_context *g, gn_array *const *inputs, int count, void *user);
GPUNUM_API double gn_gradcheck(gn_function fn, gn_array *const *inputs, int count, double step, void *user);

// ------------------------------------------------------------------------------------------
// >>train
// Layers, losses and optimizers.

// x (..., in) times w (in, out) plus b (out); b may be NULL.
GPUNUM_API gn_array *gn_linear(gn_array *x, gn_array *w, gn_array *b);
// Mean over rows of logsumexp(logits) - logits[label]; logits (n, classes), labels (n) integers.
GPUNUM_API gn_array *gn_cross_entropy(gn_array *logits, gn_array *labels);
GPUNUM_API gn_array *gn_mse_loss(gn_array *prediction, gn_array *target); // mean of squares
// Weights for a layer of shape s = (in, out): He for relu, Glorot for tanh and linear layers. float32,
// requires_grad on.
GPUNUM_API gn_array *gn_he_normal(gn_context *g, gn_shape s);
GPUNUM_API gn_array *gn_xavier_uniform(gn_context *g, gn_shape s);

typedef struct gn_optimizer gn_optimizer;
typedef struct gn_sgd_options {
    double lr, momentum, dampening, weight_decay; // lr 0 = 0.01
    bool nesterov;
} gn_sgd_options;
typedef struct gn_adam_options {
    double lr, beta1, beta2, eps, weight_decay; // 0 = 1e-3, 0.9, 0.999, 1e-8 and for AdamW 0.01
} gn_adam_options;
// The optimizer holds a reference to each parameter and updates it in place. `options` may be NULL.
GPUNUM_API gn_optimizer *gn_sgd(gn_array *const *params, int count, const gn_sgd_options *options);
GPUNUM_API gn_optimizer *gn_adam(gn_array *const *params, int count, const gn_adam_options *options);
GPUNUM_API gn_optimizer *gn_adamw(gn_array *const *params, int count, const gn_adam_options *options);
GPUNUM_API gn_status gn_step(gn_optimizer *opt);   // parameters without a gradient stay as they are
GPUNUM_API void gn_zero_grads(gn_optimizer *opt);
GPUNUM_API void gn_set_lr(gn_optimizer *opt, double lr);
GPUNUM_API double gn_get_lr(const gn_optimizer *opt);
GPUNUM_API void gn_optimizer_free(gn_optimizer *opt); // gn_close frees those still alive

// ------------------------------------------------------------------------------------------
// >>files
// NumPy's .npy and MNIST's IDX.

GPUNUM_API gn_array *gn_load_npy(gn_context *g, const char *path);
GPUNUM_API gn_status gn_save_npy(gn_array *a, const char *path); // version 1.0, C order; bfloat16 is refused
GPUNUM_API gn_array *gn_load_idx(gn_context *g, const char *path); // ubyte, byte, int, float, double

// ------------------------------------------------------------------------------------------
// >>watch
// Profiles in Chrome's trace format.

GPUNUM_API void gn_profile_begin(gn_context *g);
GPUNUM_API gn_status gn_profile_end(gn_context *g, const char *path);

// ------------------------------------------------------------------------------------------
// >>host
// Sharing with a program that has its own Vulkan device (see gn_options.vulkan).

// The VkBuffer, byte offset and size that hold `a` on the device. Flushes and waits, so that the buffer
// holds the value; `a` must stay alive and unwritten while the host uses it.
GPUNUM_API gn_status gn_vulkan_buffer(gn_array *a, uint64_t *buffer, uint64_t *offset, uint64_t *size);
// An array over a host's VkBuffer (storage buffer and transfer usage, and shader device address unless
// GN_VULKAN_NO_ADDRESSES). The host keeps the buffer alive until the array is gone.
GPUNUM_API gn_array *gn_vulkan_wrap(gn_context *g, uint64_t buffer, uint64_t offset, gn_dtype t, gn_shape s);
// Between begin and end, work goes into the host's VkCommandBuffer (recording, outside a render pass)
// instead of gpunum's queue. The host submits it, and when it has finished calls gn_vulkan_record_done
// with the ticket: until then what the commands use is held back. Values cannot be read in between.
GPUNUM_API gn_status gn_vulkan_record_begin(gn_context *g, void *command_buffer);
GPUNUM_API gn_status gn_vulkan_record_end(gn_context *g, uint64_t *ticket);
GPUNUM_API void gn_vulkan_record_done(gn_context *g, uint64_t ticket);
// ------------------------------------------------------------------------------------------
// >>optable
// What each elementwise op is, said once: enum, API, CPU loops, shader cases and gradients all come
// from these tables. Columns:
//   fn     the public function      NAME  of the enum GNI_OP_NAME
//   F      float32 vectors a, b, c of the SIMD pass      D  double      I  integers of type T, UT unsigned
//   gF, gI the same in GLSL (float, and int or uint), see tools/shaders/ops.glsl
//   d...   derivative with respect to each operand from gy (of the result), a, b and y, as public calls
// Results of the BOOL tables are masks in F and gF, truth values in D and I.
//
// Float ops turn integers into float32. ANY ops keep the promoted dtype.
//
//      fn              NAME        F                       D                   gF              da
#define GNI_UNARY_FLOAT(X) \
    X(gn_sqrt,        SQRT,       gni_vsqrt(a),           sqrt(a),            "gn_sqrt(a)",   gn_div(gn_mul_s(gy, 0.5), y)) \
    X(gn_rsqrt,       RSQRT,      gni_vrsqrt(a),          1.0 / sqrt(a),      "gn_rsqrt(a)",  gn_mul_s(gn_mul(gy, gn_div(y, a)), -0.5)) \
    X(gn_cbrt,        CBRT,       gni_vcbrt(a),           cbrt(a),            "gn_cbrt(a)",   gn_div(gy, gn_mul_s(gn_square(y), 3.0))) \
    X(gn_recip,       RECIP,      gni_vset(1.0f) / a,     1.0 / a,            "gn_div(GN_F(1.0), a)", gn_neg(gn_mul(gy, gn_square(y)))) \
    X(gn_exp,         EXP,        gni_vexp(a),            exp(a),             "gn_exp(a)",    gn_mul(gy, y)) \
    X(gn_exp2,        EXP2,       gni_vexp2(a),           exp2(a),            "gn_exp2(a)",   gn_mul(gy, gn_mul_s(y, GNI_LN2))) \
    X(gn_expm1,       EXPM1,      gni_vexpm1(a),          expm1(a),           "gn_expm1(a)",  gn_mul(gy, gn_add_s(y, 1.0))) \
    X(gn_log,         LOG,        gni_vlog(a),            log(a),             "gn_log(a)",    gn_div(gy, a)) \
    X(gn_log2,        LOG2,       gni_vlog2(a),           log2(a),            "gn_log2(a)",   gn_div(gy, gn_mul_s(a, GNI_LN2))) \
    X(gn_log10,       LOG10,      gni_vlog10(a),          log10(a),           "gn_log10(a)",  gn_div(gy, gn_mul_s(a, GNI_LN10))) \
    X(gn_log1p,       LOG1P,      gni_vlog1p(a),          log1p(a),           "gn_log1p(a)",  gn_div(gy, gn_add_s(a, 1.0))) \
    X(gn_sin,         SIN,        gni_vsin(a),            sin(a),             "gn_sin(a)",    gn_mul(gy, gn_cos(a))) \
    X(gn_cos,         COS,        gni_vcos(a),            cos(a),             "gn_cos(a)",    gn_neg(gn_mul(gy, gn_sin(a)))) \
    X(gn_tan,         TAN,        gni_vtan(a),            tan(a),             "gn_tan(a)",    gn_mul(gy, gn_add_s(gn_square(y), 1.0))) \
    X(gn_asin,        ASIN,       gni_vasin(a),           asin(a),            "gn_asin(a)",   gn_mul(gy, gn_rsqrt(gn_rsub_s(gn_square(a), 1.0)))) \
    X(gn_acos,        ACOS,       gni_vacos(a),           acos(a),            "gn_acos(a)",   gn_neg(gn_mul(gy, gn_rsqrt(gn_rsub_s(gn_square(a), 1.0))))) \
    X(gn_atan,        ATAN,       gni_vatan(a),           atan(a),            "gn_atan(a)",   gn_div(gy, gn_add_s(gn_square(a), 1.0))) \
    X(gn_sinh,        SINH,       gni_vsinh(a),           sinh(a),            "gn_sinh(a)",   gn_mul(gy, gn_cosh(a))) \
    X(gn_cosh,        COSH,       gni_vcosh(a),           cosh(a),            "gn_cosh(a)",   gn_mul(gy, gn_sinh(a))) \
    X(gn_tanh,        TANH,       gni_vtanh(a),           tanh(a),            "gn_tanh(a)",   gn_mul(gy, gn_rsub_s(gn_square(y), 1.0))) \
    X(gn_asinh,       ASINH,      gni_vasinh(a),          asinh(a),           "gn_asinh(a)",  gn_mul(gy, gn_rsqrt(gn_add_s(gn_square(a), 1.0)))) \
    X(gn_acosh,       ACOSH,      gni_vacosh(a),          acosh(a),           "gn_acosh(a)",  gn_mul(gy, gn_rsqrt(gn_add_s(gn_square(a), -1.0)))) \
    X(gn_atanh,       ATANH,      gni_vatanh(a),          atanh(a),           "gn_atanh(a)",  gn_div(gy, gn_rsub_s(gn_square(a), 1.0))) \
    X(gn_erf,         ERF,        gni_verf(a),            erf(a),             "gn_erf(a)",    gn_mul(gy, gn_mul_s(gn_exp(gn_neg(gn_square(a))), GNI_2_SQRTPI))) \
    X(gn_sigmoid,     SIGMOID,    gni_vsigmoid(a),        gni_dsigmoid(a),    "gn_sigmoid(a)", gn_mul(gy, gn_mul(y, gn_rsub_s(y, 1.0)))) \
    X(gn_silu,        SILU,       gni_vsilu(a),           gni_dsilu(a),       "gn_silu(a)",   gni_grad_silu(gy, a)) \
    X(gn_gelu,        GELU,       gni_vgelu(a),           gni_dgelu(a),       "gn_gelu(a)",   gni_grad_gelu(gy, a)) \
    X(gn_softplus,    SOFTPLUS,   gni_vsoftplus(a),       gni_dsoftplus(a),   "gn_softplus(a)", gn_mul(gy, gn_sigmoid(a)))

//      fn              NAME        F                       D                   I                    gF              gI        da
#define GNI_UNARY_ANY(X) \
    X(gn_neg,         NEG,        -a,                     -a,                 (T)((UT)0 - (UT)a),  "-a",           "-a",     gn_neg(gy)) \
    X(gn_abs,         ABS,        gni_vabs(a),            fabs(a),            GNI_T(gni_iabs)(a),  "abs(a)",       "GN_ABS_INT(a)", gn_mul(gy, gn_sign(a))) \
    X(gn_sign,        SIGN,       gni_vsign(a),           gni_dsign(a),       GNI_T(gni_isign)(a), "gn_sign(a)",   "GN_SIGN_INT(a)", gn_zeros_like(gy)) \
    X(gn_square,      SQUARE,     a * a,                  a * a,              (T)((UT)a * (UT)a),  "a * a",        "a * a",  gn_mul(gy, gn_mul_s(a, 2.0))) \
    X(gn_floor,       FLOOR,      gni_vfloor(a),          floor(a),           a,                   "floor(a)",     "a",      gn_zeros_like(gy)) \
    X(gn_ceil,        CEIL,       gni_vceil(a),           ceil(a),            a,                   "ceil(a)",      "a",      gn_zeros_like(gy)) \
    X(gn_round,       ROUND,      gni_vrint(a),           gni_drint(a),       a,                   "gn_rint(a)",   "a",      gn_zeros_like(gy)) \
    X(gn_trunc,       TRUNC,      gni_vtrunc(a),          trunc(a),           a,                   "trunc(a)",     "a",      gn_zeros_like(gy)) \
    X(gn_relu,        RELU,       gni_vmaxc(a, gni_vset(0.0f)), gni_dmax(a, 0.0), GNI_T(gni_irelu)(a), "gn_max(a, GN_F(0.0))", "GN_RELU_INT(a)", gni_grad_relu(gy, y))

//      fn              NAME        F                       D                   I               gF                       gI
#define GNI_UNARY_BOOL(X) \
    X(gn_isnan,       ISNAN,      gni_vne(a, a),          a != a,             (T)(0 * a),     "gn_isnan(a)",           "notEqual(a, a)") \
    X(gn_isinf,       ISINF,      gni_veq(gni_vabs(a), gni_vinf()), fabs(a) == GNI_INF, (T)(0 * a), "gn_isinf(a)",     "notEqual(a, a)") \
    X(gn_isfinite,    ISFINITE,   gni_vlt(gni_vabs(a), gni_vinf()), fabs(a) < GNI_INF, (T)(0 * a + 1), "gn_isfinite(a)", "equal(a, a)") \
    X(gn_logical_not, LOGICAL_NOT, gni_veq(a, gni_vset(0.0f)), a == 0.0,      a == 0,         "equal(a, GN_F(0.0))",   "equal(a, GN_ZERO_INT)")

//      fn              NAME        F                       D                   gF                da, db
#define GNI_BINARY_FLOAT(X) \
    X(gn_div,         DIV,        a / b,                  a / b,              "gn_div(a, b)",   gn_div(gy, b), gn_neg(gn_div(gn_mul(gy, y), b))) \
    X(gn_atan2,       ATAN2,      gni_vatan2(a, b),       atan2(a, b),        "gn_atan2(a, b)", gn_div(gn_mul(gy, b), gni_sum_squares(a, b)), gn_neg(gn_div(gn_mul(gy, a), gni_sum_squares(a, b)))) \
    X(gn_hypot,       HYPOT,      gni_vhypot(a, b),       hypot(a, b),        "gn_hypot(a, b)", gn_mul(gy, gn_div(a, y)), gn_mul(gy, gn_div(b, y)))

//      fn              NAME        F                       D                   I                        gF                  gI              da, db
#define GNI_BINARY_ANY(X) \
    X(gn_add,         ADD,        a + b,                  a + b,              (T)((UT)a + (UT)b),      "a + b",            "a + b",        gy, gy) \
    X(gn_sub,         SUB,        a - b,                  a - b,              (T)((UT)a - (UT)b),      "a - b",            "a - b",        gy, gn_neg(gy)) \
    X(gn_mul,         MUL,        a * b,                  a * b,              (T)((UT)a * (UT)b),      "a * b",            "a * b",        gn_mul(gy, b), gn_mul(gy, a)) \
    X(gn_floor_div,   FLOOR_DIV,  gni_vfloor_div(a, b),   gni_dfloor_div(a, b), GNI_T(gni_ifloor_div)(a, b), "gn_floor_div(a, b)", "GN_FLOOR_DIV_INT(a, b)", gn_zeros_like(gy), gn_zeros_like(gy)) \
    X(gn_mod,         MOD,        gni_vmod(a, b),         gni_dmod(a, b),     GNI_T(gni_imod)(a, b),   "gn_mod(a, b)",     "GN_MOD_INT(a, b)", gy, gn_neg(gn_mul(gy, gn_floor_div(a, b)))) \
    X(gn_pow,         POW,        gni_vpow(a, b),         pow(a, b),          GNI_T(gni_ipow)(a, b),   "gn_pow(a, b)",     "GN_POW_INT(a, b)", gni_grad_pow_base(gy, a, b), gni_grad_pow_exponent(gy, a, b, y)) \
    X(gn_minimum,     MIN,        gni_vmin(a, b),         gni_dmin(a, b),     a < b ? a : b,           "gn_min(a, b)",     "min(a, b)",    gni_grad_pick(gy, b, a), gni_grad_pick(gy, a, b)) \
    X(gn_maximum,     MAX,        gni_vmax(a, b),         gni_dmax(a, b),     a > b ? a : b,           "gn_max(a, b)",     "max(a, b)",    gni_grad_pick(gy, a, b), gni_grad_pick(gy, b, a))

//      fn              NAME        F                       D            I             gF                        gI
#define GNI_COMPARE(X) \
    X(gn_eq,          EQ,         gni_veq(a, b),          a == b,      a == b,       "equal(a, b)",            "equal(a, b)") \
    X(gn_ne,          NE,         gni_vne(a, b),          a != b,      a != b,       "gn_not_equal(a, b)",     "notEqual(a, b)") \
    X(gn_lt,          LT,         gni_vlt(a, b),          a < b,       a < b,        "lessThan(a, b)",         "lessThan(a, b)") \
    X(gn_le,          LE,         gni_vle(a, b),          a <= b,      a <= b,       "lessThanEqual(a, b)",    "lessThanEqual(a, b)") \
    X(gn_gt,          GT,         gni_vgt(a, b),          a > b,       a > b,        "greaterThan(a, b)",      "greaterThan(a, b)") \
    X(gn_ge,          GE,         gni_vge(a, b),          a >= b,      a >= b,       "greaterThanEqual(a, b)", "greaterThanEqual(a, b)") \
    X(gn_logical_and, LOGICAL_AND, gni_vtruth(a) & gni_vtruth(b), a != 0.0 && b != 0.0, a != 0 && b != 0, "GN_AND(gn_truth(a), gn_truth(b))", "GN_AND(GN_TRUTH_INT(a), GN_TRUTH_INT(b))") \
    X(gn_logical_or,  LOGICAL_OR, gni_vtruth(a) | gni_vtruth(b), a != 0.0 || b != 0.0, a != 0 || b != 0, "GN_OR(gn_truth(a), gn_truth(b))", "GN_OR(GN_TRUTH_INT(a), GN_TRUTH_INT(b))") \
    X(gn_logical_xor, LOGICAL_XOR, gni_vtruth(a) ^ gni_vtruth(b), (a != 0.0) != (b != 0.0), (a != 0) != (b != 0), "GN_XOR(gn_truth(a), gn_truth(b))", "GN_XOR(GN_TRUTH_INT(a), GN_TRUTH_INT(b))")

// Bitwise on integers, logical on bool. Shifts by less than 0 or by the width and more give 0 (-1 for
// right shifts of negative numbers).
#define GNI_BINARY_INT(X) \
    X(gn_and, AND, (T)(a & b), "a & b") \
    X(gn_or, OR, (T)(a | b), "a | b") \
    X(gn_xor, XOR, (T)(a ^ b), "a ^ b") \
    X(gn_shl, SHL, GNI_T(gni_ishl)(a, b), "GN_SHL_INT(a, b)") \
    X(gn_shr, SHR, GNI_T(gni_ishr)(a, b), "GN_SHR_INT(a, b)")

// One function per row: gn_array *gn_sin(gn_array *a), gn_array *gn_add(gn_array *a, gn_array *b) with
// NumPy broadcasting and promotion, gn_array *gn_add_s(gn_array *a, double b) with a Python-like scalar
// that keeps the dtype of `a` (an integer array and a fraction give float32).
#define GN_X(fn, NAME, F, D, gF, da) GPUNUM_API gn_array *fn(gn_array *a);
GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da) GPUNUM_API gn_array *fn(gn_array *a);
GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) GPUNUM_API gn_array *fn(gn_array *a);
GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db)                                                           \
    GPUNUM_API gn_array *fn(gn_array *a, gn_array *b);                                             \
    GPUNUM_API gn_array *fn##_s(gn_array *a, double b);
GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db)                                                    \
    GPUNUM_API gn_array *fn(gn_array *a, gn_array *b);                                             \
    GPUNUM_API gn_array *fn##_s(gn_array *a, double b);
GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    GPUNUM_API gn_array *fn(gn_array *a, gn_array *b);                                             \
    GPUNUM_API gn_array *fn##_s(gn_array *a, double b);
GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI)                                                                      \
    GPUNUM_API gn_array *fn(gn_array *a, gn_array *b);                                             \
    GPUNUM_API gn_array *fn##_s(gn_array *a, double b);
GNI_BINARY_INT(GN_X)
#undef GN_X

GPUNUM_API gn_array *gn_rsub_s(gn_array *a, double b); // b - a
GPUNUM_API gn_array *gn_rdiv_s(gn_array *a, double b); // b / a
GPUNUM_API gn_array *gn_rpow_s(gn_array *a, double b); // b to the power a
GPUNUM_API gn_array *gn_leaky_relu(gn_array *a, double slope);
GPUNUM_API gn_array *gn_elu(gn_array *a, double alpha);
GPUNUM_API gn_array *gn_clamp(gn_array *a, double low, double high);
GPUNUM_API gn_array *gn_where(gn_array *condition, gn_array *a, gn_array *b); // a where true, else b
GPUNUM_API gn_array *gn_fma(gn_array *a, gn_array *b, gn_array *c);           // a * b + c
GPUNUM_API gn_array *gn_lerp(gn_array *a, gn_array *b, gn_array *t);          // a + t * (b - a)

// ------------------------------------------------------------------------------------------
// >>transforms
// Fourier, cosine and sine transforms, complex numbers, convolution. Any length, any axis of any view.
//
// float32 and smaller inputs give complex64, float64 gives complex128; integers become float32. `n` cuts
// the axis or pads it with zeros, 0 keeps its length. Any length works; products of primes up to 13
// are fastest. Everything is differentiable; the gradient of a complex array z is dL/d Re z + i dL/d Im z.

typedef enum gn_fft_norm {
    GN_FFT_BACKWARD, // 1 / n on the inverse transform
    GN_FFT_ORTHO,    // 1 / sqrt(n) on both
    GN_FFT_FORWARD   // 1 / n on the forward transform
} gn_fft_norm;

// y[k] = sum over j of x[j] exp(-2 pi i j k / n); gn_ifft has exp(+...). Complex in and out; real input works.
GPUNUM_API gn_array *gn_fft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_ifft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
// Real input of n points to the n / 2 + 1 numbers that say all, and back to n real points (n = 0: 2 (m - 1)
// for m numbers). As in NumPy the imaginary part of the first and, for even n, of the last one is ignored.
GPUNUM_API gn_array *gn_rfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_irfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
// The other way round: half a Hermitian signal to its real spectrum of n points, and back.
GPUNUM_API gn_array *gn_hfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_ihfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
// Over the last two axes.
GPUNUM_API gn_array *gn_fft2(gn_array *a, gn_fft_norm norm);
GPUNUM_API gn_array *gn_ifft2(gn_array *a, gn_fft_norm norm);
// Over `count` axes; n[i] is the length on axes[i]. NULL for n keeps all lengths, NULL for axes means the last
// `count` ones, and count 0 all. The real forms do the last of the axes as gn_rfft and gn_irfft do.
GPUNUM_API gn_array *gn_fftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm);
GPUNUM_API gn_array *gn_ifftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm);
GPUNUM_API gn_array *gn_rfftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm);
GPUNUM_API gn_array *gn_irfftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm);
// Cosine and sine transforms of real input, type 1 to 4, with SciPy's definitions and norms; GN_FFT_ORTHO gives
// orthogonal matrices, gn_dst types 2 and 3 (whose first element old SciPys scale instead of the last) too.
GPUNUM_API gn_array *gn_dct(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_idct(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_dst(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_idst(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm);

// The frequencies of gn_fft's (n) and gn_rfft's (n / 2 + 1) results for samples `d` apart; t is GN_F32 or GN_F64.
GPUNUM_API gn_array *gn_fftfreq(gn_context *g, gn_dtype t, int64_t n, double d);
GPUNUM_API gn_array *gn_rfftfreq(gn_context *g, gn_dtype t, int64_t n, double d);
// Frequency 0 to the middle of each axis in `axes` (GN_ALL: every one), and back.
GPUNUM_API gn_array *gn_fftshift(gn_array *a, uint32_t axes);
GPUNUM_API gn_array *gn_ifftshift(gn_array *a, uint32_t axes);

// Parts of complex arrays are views of the same memory. Real arrays are their own real part.
GPUNUM_API gn_array *gn_real(gn_array *a);
GPUNUM_API gn_array *gn_imag(gn_array *a);
GPUNUM_API gn_array *gn_complex(gn_array *re, gn_array *im); // broadcasts
GPUNUM_API gn_array *gn_conj(gn_array *a);
GPUNUM_API gn_array *gn_angle(gn_array *a); // in radians, -pi to pi

typedef enum gn_convolution {
    GN_CONV_FULL, // every overlap: n + m - 1
    GN_CONV_SAME, // the middle of it
    GN_CONV_VALID // only whole overlaps
} gn_convolution;

// 1-d, with NumPy's rules (the longer operand says what "same" and "valid" mean). Short kernels are summed
// directly, long ones by FFT.
GPUNUM_API gn_array *gn_convolve(gn_array *a, gn_array *b, gn_convolution mode);
GPUNUM_API gn_array *gn_correlate(gn_array *a, gn_array *b, gn_convolution mode); // NumPy: with b's conjugate
// 2-d and of any rank, with SciPy's rules (`a` says what "same" means).
GPUNUM_API gn_array *gn_convolve2d(gn_array *a, gn_array *b, gn_convolution mode);
GPUNUM_API gn_array *gn_fftconvolve(gn_array *a, gn_array *b, gn_convolution mode); // always by FFT

#ifdef __cplusplus
} // extern "C"
#endif

// GN_SHAPE(2, 3): a gn_shape by value. GN_SHAPE() is 0-d.
#ifdef __cplusplus
template <class... Dim> inline gn_shape gni_shape_pack(Dim... dims) {
    const int64_t list[] = {0, static_cast<int64_t>(dims)...};
    return gn_shape_from(static_cast<int>(sizeof...(dims)), list + 1);
}
#define GN_SHAPE(...) gni_shape_pack(__VA_ARGS__)
template <class... Axis> inline gn_array *gn_permute(gn_array *a, Axis... axes) {
    const int list[] = {0, static_cast<int>(axes)...};
    return gn_permute_axes(a, list + 1, static_cast<int>(sizeof...(axes)));
}
#else
#define GN_SHAPE(...)                                                                              \
    gn_shape_from((int)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t)) - 1,                \
                  (int64_t[]){0, __VA_ARGS__} + 1)
// gn_permute(a, 2, 0, 1): axis i of the result is axis axes[i] of `a`.
#define gn_permute(a, ...)                                                                         \
    gn_permute_axes((a), (int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))
#endif

#endif // GPUNUM_H

#if defined(GPUNUM_IMPLEMENTATION) && !defined(GNI_SIMD_PASS) && !defined(GPUNUM_IMPLEMENTED)
#define GPUNUM_IMPLEMENTED
// ------------------------------------------------------------------------------------------
// >>config
// Switches resolved, system headers, compiler set-up. Nothing here has state.

#ifdef __FAST_MATH__
#error "gpunum.h: -ffast-math breaks NaN, Inf and rounding; compile the implementation without it"
#endif

// The SIMD rooms are compiled by including this file again under the name it is known by.
#ifndef GPUNUM_SELF
#define GPUNUM_SELF "gpunum.h"
#endif

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <sys/time.h>
#include <unistd.h>
#ifndef GPUNUM_NO_THREADS
#include <pthread.h>
#include <sched.h>
#endif
#endif

#if defined(__GNUC__) || defined(__clang__)
#define GNI_GNU 1
#endif
#if defined(__x86_64__) && defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD) && !defined(_WIN32)
#define GNI_X86 1 // AVX code of gcc on Windows misaligns the stack
#include <immintrin.h>
#elif defined(__aarch64__) && defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
#define GNI_NEON 1
#include <arm_neon.h>
#endif

// A product and a sum round separately unless a kernel asks for a fused multiply-add: the same bits
// from every compiler and every flag.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" // in g++'s own avx512fintrin.h
#ifndef __OPTIMIZE__ // intrinsics are macros then, and warn where they are used
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#endif

#define GNI_UNUSED(x) ((void)(x))
#define GNI_CAST(T, x) ((T)(x))
#define GNI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define GNI_MAX(a, b) ((a) > (b) ? (a) : (b))
#define GNI_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#if defined(GNI_GNU)
#define GNI_RESTRICT __restrict__
// For helpers of kernels: a call inside an inner loop would cost more than they do.
#define GNI_INLINE static inline __attribute__((always_inline))
#define GNI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define GNI_NOINLINE __attribute__((noinline))
#define GNI_MAYBE_UNUSED __attribute__((unused))
#else
#define GNI_RESTRICT __restrict
#define GNI_INLINE static inline
#define GNI_PRINTF(text, first)
#define GNI_NOINLINE __declspec(noinline)
#define GNI_MAYBE_UNUSED
#endif
#ifdef __MINGW32__
#undef GNI_PRINTF
#define GNI_PRINTF(text, first) __attribute__((format(gnu_printf, text, first)))
#endif

#define GNI_INF ((double)INFINITY)
#define GNI_NAN ((double)NAN)
#define GNI_LN2 0.69314718055994530942
#define GNI_LN10 2.30258509299404568402
#define GNI_2_SQRTPI 1.12837916709551257390
#define GNI_SQRT1_2 0.70710678118654752440
#define GNI_1_SQRT2PI 0.39894228040143267794

// ------------------------------------------------------------------------------------------
// >>platform
// Threads, locks, atomics and clocks. With GPUNUM_NO_THREADS locks vanish and threads do not start.

#if defined(_WIN32)
typedef CRITICAL_SECTION gni_mutex;
typedef CONDITION_VARIABLE gni_cond;
static bool gni_mutex_init(gni_mutex *m) {
    InitializeCriticalSection(m);
    return true;
}
static void gni_mutex_free(gni_mutex *m) { DeleteCriticalSection(m); }
static void gni_mutex_lock(gni_mutex *m) { EnterCriticalSection(m); }
static void gni_mutex_unlock(gni_mutex *m) { LeaveCriticalSection(m); }
static bool gni_cond_init(gni_cond *c) {
    InitializeConditionVariable(c);
    return true;
}
static void gni_cond_free(gni_cond *c) { GNI_UNUSED(c); }
static void gni_cond_wait(gni_cond *c, gni_mutex *m) { SleepConditionVariableCS(c, m, INFINITE); }
static void gni_cond_signal(gni_cond *c) { WakeConditionVariable(c); }
static void gni_cond_broadcast(gni_cond *c) { WakeAllConditionVariable(c); }
#elif defined(GPUNUM_NO_THREADS)
typedef int gni_mutex;
typedef int gni_cond;
static bool gni_mutex_init(gni_mutex *m) {
    *m = 0;
    return true;
}
static void gni_mutex_free(gni_mutex *m) { GNI_UNUSED(m); }
static void gni_mutex_lock(gni_mutex *m) { GNI_UNUSED(m); }
static void gni_mutex_unlock(gni_mutex *m) { GNI_UNUSED(m); }
#else
typedef pthread_mutex_t gni_mutex;
typedef pthread_cond_t gni_cond;
static bool gni_mutex_init(gni_mutex *m) { return pthread_mutex_init(m, NULL) == 0; }
static void gni_mutex_free(gni_mutex *m) { pthread_mutex_destroy(m); }
static void gni_mutex_lock(gni_mutex *m) { pthread_mutex_lock(m); }
static void gni_mutex_unlock(gni_mutex *m) { pthread_mutex_unlock(m); }
static bool gni_cond_init(gni_cond *c) { return pthread_cond_init(c, NULL) == 0; }
static void gni_cond_free(gni_cond *c) { pthread_cond_destroy(c); }
static void gni_cond_wait(gni_cond *c, gni_mutex *m) { pthread_cond_wait(c, m); }
static void gni_cond_signal(gni_cond *c) { pthread_cond_signal(c); }
static void gni_cond_broadcast(gni_cond *c) { pthread_cond_broadcast(c); }
#endif

#ifndef GPUNUM_NO_THREADS
typedef struct gni_thread {
    void (*fn)(void *arg);
    void *arg;
#ifdef _WIN32
    HANDLE handle;
#else
    pthread_t handle;
#endif
} gni_thread;

#ifdef _WIN32
static DWORD WINAPI gni_thread_main(LPVOID p) {
    gni_thread *t = (gni_thread *)p;
    t->fn(t->arg);
    return 0;
}
#else
static void *gni_thread_main(void *p) {
    gni_thread *t = (gni_thread *)p;
    t->fn(t->arg);
    return NULL;
}
#endif

// `t` must stay where it is until gni_thread_join.
static bool gni_thread_start(gni_thread *t, void (*fn)(void *arg), void *arg) {
    t->fn = fn;
    t->arg = arg;
#ifdef _WIN32
    t->handle = CreateThread(NULL, 0, gni_thread_main, t, 0, NULL);
    return t->handle != NULL;
#else
    return pthread_create(&t->handle, NULL, gni_thread_main, t) == 0;
#endif
}

static void gni_thread_join(gni_thread *t) {
#ifdef _WIN32
    WaitForSingleObject(t->handle, INFINITE);
    CloseHandle(t->handle);
#else
    pthread_join(t->handle, NULL);
#endif
}
#endif // GPUNUM_NO_THREADS

// Gives the processor to whoever else wants it.
GNI_MAYBE_UNUSED static void gni_thread_yield(void) {
#if defined(_WIN32)
    SwitchToThread();
#elif !defined(GPUNUM_NO_THREADS)
    sched_yield();
#endif
}

// Tells the processor that this is a waiting loop.
GNI_INLINE void gni_cpu_pause(void) {
#if defined(__x86_64__) && defined(GNI_GNU)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(GNI_GNU)
    __asm__ volatile("yield");
#endif
}

// Sequentially consistent 32-bit atomics.
#ifdef GNI_GNU
typedef int32_t gni_atomic;
#define gni_atomic_load(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define gni_atomic_store(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define gni_atomic_add(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST) // returns the old value
#else
typedef volatile LONG gni_atomic;
#define gni_atomic_load(p) InterlockedCompareExchange((p), 0, 0)
#define gni_atomic_store(p, v) ((void)InterlockedExchange((p), (v)))
#define gni_atomic_add(p, v) InterlockedExchangeAdd((p), (v))
#endif

#if defined(__cplusplus)
#define GNI_THREAD_LOCAL thread_local
#elif defined(GNI_GNU)
#define GNI_THREAD_LOCAL __thread
#else
#define GNI_THREAD_LOCAL __declspec(thread)
#endif

// A recursive lock: public functions call each other. The owner is known by the address of a variable
// of its thread, since strict ISO modes hide POSIX's own recursive mutexes.
typedef struct gni_lock {
    gni_mutex mutex;
#ifdef GNI_GNU
    const void *owner;
#else
    void *volatile owner;
#endif
    int depth;
} gni_lock;

static void gni_lock_enter(gni_lock *l) {
    static GNI_THREAD_LOCAL char self;
#ifdef GNI_GNU
    bool mine = __atomic_load_n(&l->owner, __ATOMIC_RELAXED) == (const void *)&self;
#else
    bool mine = l->owner == (void *)&self;
#endif
    if (!mine) {
        gni_mutex_lock(&l->mutex);
#ifdef GNI_GNU
        __atomic_store_n(&l->owner, (const void *)&self, __ATOMIC_RELAXED);
#else
        l->owner = (void *)&self;
#endif
    }
    l->depth++;
}

static void gni_lock_leave(gni_lock *l) {
    if (--l->depth > 0) return;
#ifdef GNI_GNU
    __atomic_store_n(&l->owner, (const void *)NULL, __ATOMIC_RELAXED);
#else
    l->owner = NULL;
#endif
    gni_mutex_unlock(&l->mutex);
}

static uint64_t gni_now_ns(void) {
#ifdef _WIN32
    LARGE_INTEGER f, t;
    QueryPerformanceFrequency(&f);
    QueryPerformanceCounter(&t);
    return (uint64_t)((double)t.QuadPart * 1e9 / (double)f.QuadPart);
#elif defined(CLOCK_MONOTONIC)
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#else
    // Strict ISO modes hide clock_gettime.
    struct timeval t;
    gettimeofday(&t, NULL);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
#endif
}

static int gni_cpu_count(void) {
#ifdef _WIN32
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (int)info.dwNumberOfProcessors;
#elif defined(_SC_NPROCESSORS_ONLN)
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
#else
    return 1;
#endif
}

// Where the hardware does not tell, gni_isa_best is the pass that every CPU of the target runs.
typedef enum gni_isa { GNI_ISA_PLAIN, GNI_ISA_BASE, GNI_ISA_AVX2, GNI_ISA_AVX512, GNI_ISA_COUNT } gni_isa;
static gni_isa gni_isa_best(void) {
#ifdef GNI_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return GNI_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return GNI_ISA_AVX2;
    return GNI_ISA_BASE;
#elif defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
    return GNI_ISA_BASE;
#else
    return GNI_ISA_PLAIN;
#endif
}

// ------------------------------------------------------------------------------------------
// >>structs
// Every internal type that more than one room uses, and how they hold each other:
// gn_array -> gni_buffer (memory) or gni_expr (not computed yet), gn_array -> gni_node (its record for
// autograd) -> input arrays. Rooms reach each other through the functions declared here.

enum {
    GNI_MAX_INPUTS = 8,   // operands a program reads
    GNI_MAX_OUTPUTS = 4,  // operands it writes
    GNI_MAX_CONSTS = 8,   // immediates
    GNI_MAX_INSNS = 24,   // instructions
    GNI_MAX_REGS = GNI_MAX_INPUTS + GNI_MAX_CONSTS + GNI_MAX_INSNS,
    GNI_ON_CPU = 1,
    GNI_ON_GPU = 2
};

// CPU memory of freed arrays that is kept for later ones.
enum { GNI_HOST_CACHE_SLOTS = 64, GNI_HOST_CACHE_LEAST = 1 << 14 };
#define GNI_HOST_CACHE_BYTES ((uint64_t)512 << 20)

// Work that is pending may hold so many bytes that nobody else refers to before it is done.
#define GNI_LAZY_BYTES ((uint64_t)256 << 20)

// Op names, in table order. Ops without a row of their own come last.
typedef enum gni_op {
#define GN_X(fn, NAME, F, D, gF, da) GNI_OP_##NAME,
    GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da) GNI_OP_##NAME,
    GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) GNI_OP_##NAME,
    GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) GNI_OP_##NAME,
    GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) GNI_OP_##NAME,
    GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) GNI_OP_##NAME,
    GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI) GNI_OP_##NAME,
    GNI_BINARY_INT(GN_X)
#undef GN_X
    GNI_OP_WHERE,  // a != 0 ? b : c
    GNI_OP_FMA,    // a * b + c, rounded once where the hardware can
    GNI_OP_CAST,   // becomes one of the conversions below
    GNI_OP_CONST,  // every element is konst[0]
    GNI_OP_I_TO_F, // conversions between register domains; in wide programs F is double, I int64
    GNI_OP_U_TO_F,
    GNI_OP_F_TO_I, // truncates and saturates, NaN gives 0
    GNI_OP_F_TO_U,
    GNI_OP_TO_BOOL,    // x != 0
    GNI_OP_ROUND_F16,  // F to F: the nearest float16 value
    GNI_OP_ROUND_BF16,
    GNI_OP_ROUND_F32,  // wide programs only
    GNI_OP_WRAP_U8,    // I to I: keep the low bits
    GNI_OP_WRAP_I8,
    GNI_OP_WRAP_U32,   // wide programs only
    GNI_OP_WRAP_I32,   // wide programs only
    GNI_OP_COUNT
} gni_op;

// What a register holds. Narrow programs use F, I and U (32 bits), wide ones F (double) and I (int64).
typedef enum gni_domain { GNI_F, GNI_I, GNI_U, GNI_DOMAINS } gni_domain;

// One instruction in one word: op * 3 + domain in bits 0-10, operand registers in 11-17, 18-24, 25-31.
// Instruction i writes register n_in + n_const + i.
#define GNI_INSN(op, domain, a, b, c)                                                              \
    ((uint32_t)((uint32_t)(op) * 3u + (uint32_t)(domain)) | ((uint32_t)(a) << 11) |                \
     ((uint32_t)(b) << 18) | ((uint32_t)(c) << 25))
#define GNI_INSN_CODE(insn) ((insn) & 0x7ffu)
#define GNI_INSN_A(insn) (((insn) >> 11) & 127u)
#define GNI_INSN_B(insn) (((insn) >> 18) & 127u)
#define GNI_INSN_C(insn) ((insn) >> 25)

// Memory of one or more arrays, on the CPU, on the GPU, or on both with the same contents.
typedef struct gni_vk_mem {
    uint64_t handle, offset, size, address; // VkBuffer, byte range in it, device address (0: none)
    void *mapped;                           // NULL if the host cannot see it
    struct gni_vk_block *block;
    int cls; // size class, for the pool
} gni_vk_mem;

// A download in flight. Zeroed when idle.
typedef struct gni_vk_ticket {
    gni_vk_mem mem; // of the staging pool
    uint64_t serial, bytes;
    const void *data; // NULL: not in use
} gni_vk_ticket;

typedef struct gni_buffer {
    int32_t refs;
    uint32_t version; // of the contents; autograd compares it
    uint32_t where;   // GNI_ON_CPU | GNI_ON_GPU: which sides hold the current contents
    uint64_t bytes;
    void *host;       // NULL: no CPU memory yet
    gn_free_fn host_free; // of borrowed memory
    void *host_user;
    bool host_borrowed, device_borrowed;
    bool has_device;
    gni_vk_mem device;
} gni_buffer;

// Elementwise work not done yet. Sources broadcast against the array's shape.
typedef struct gni_expr {
    gni_op op;
    gn_dtype compute;  // dtype the sources are converted to before the op
    gn_array *src[3];  // a reference each; NULL: the constant beside it
    double konst[3];
    int n_src;
    int insns, leaves, consts; // of the tree below, upper bounds
    bool wide;
    gn_array *prev, *next; // the context's list of pending arrays, oldest first
    uint32_t mark;         // of the program being built, and the register it got there
    int reg;
} gni_expr;

typedef struct gni_node gni_node;

struct gn_array {
    uint32_t magic; // GNI_ALIVE; anything else is a stale or foreign pointer
    int32_t refs;      // all references
    int32_t user_refs; // of the caller and of scopes
    gn_context *ctx;
    gn_dtype dtype;
    gn_shape shape;
    int64_t stride[GN_MAX_RANK]; // elements, may be 0 or negative
    int64_t offset;              // elements from the buffer's start
    gni_buffer *buf;             // NULL: `expr` says how to compute it
    gni_expr *expr;
    struct gni_stack *stack;  // owning scope: its thread's stack, its depth and the place in its list
    int scope, scope_slot;    // slot -1: owned by the caller
    bool wants_grad;          // gn_requires_grad
    int32_t lazy_refs;        // pending expressions that read this array
    bool orphan;              // only pending work holds it; counted in the context's lazy_bytes
    uint8_t reason;           // gni_reason, why it was computed where it was
    bool on_gpu;              // where that was
    gni_node *node;           // how autograd gets from here to the inputs
    gn_array *grad;
    const char *maker;        // public name of the function that made it
    gn_array *all_prev, *all_next; // the context's list of live arrays; `all_next` links free ones
};

// One recorded op. `backward` turns the gradient of `output` into gradients of the inputs.
typedef bool (*gni_backward_fn)(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
struct gni_node {
    const char *name;
    gni_backward_fn backward;
    gn_array *output;   // not counted: the output holds the node
    int n_in;
    gn_array **in;      // a reference each
    uint32_t *version;  // of in[i] when recorded
    uint64_t serial;    // recording order
    int64_t param[12];  // the op's own
    double real[2];
    gn_shape shape;
    uint32_t visited;   // mark of the pass under way
    gn_array *gy;       // gradient gathered during the pass
};

// What one input or output of a job is: elements at buf + (offset + sum of index * stride) * itemsize.
typedef struct gni_operand {
    gni_buffer *buf;
    gn_dtype dtype;
    int64_t offset;
    int64_t stride[GN_MAX_RANK]; // per dimension of the job; 0 broadcasts
} gni_operand;

typedef struct gni_program {
    bool wide; // 64-bit registers
    int n_in, n_const, n_insn, n_out;
    gn_dtype in_dtype[GNI_MAX_INPUTS], out_dtype[GNI_MAX_OUTPUTS];
    uint64_t konst[GNI_MAX_CONSTS]; // bits of the register
    uint32_t insn[GNI_MAX_INSNS];
    int out_reg[GNI_MAX_OUTPUTS];
} gni_program;

// An elementwise program over an index space. Equal neighbours of dimensions are merged beforehand.
typedef struct gni_map {
    gni_program program;
    int rank;
    int64_t dim[GN_MAX_RANK];
    gni_operand in[GNI_MAX_INPUTS], out[GNI_MAX_OUTPUTS];
} gni_map;

typedef enum gni_reduction {
    GNI_RED_SUM, GNI_RED_PROD, GNI_RED_MIN, GNI_RED_MAX, GNI_RED_ANY, GNI_RED_ALL,
    GNI_RED_ARGMIN, GNI_RED_ARGMAX, GNI_RED_COUNT
} gni_reduction;

// Reduces the one output of a program. Dimensions 0 to kept-1 are kept, the rest are reduced; the
// result is contiguous over the kept ones. `domain` is that of the reduced register.
typedef struct gni_reduce {
    gni_program program;
    gni_reduction op;
    gni_domain domain;
    int rank, kept;
    int64_t dim[GN_MAX_RANK];
    gni_operand in[GNI_MAX_INPUTS], out; // out.dtype: of the result
} gni_reduce;

typedef enum gni_softmax_kind { GNI_SOFTMAX, GNI_LOG_SOFTMAX, GNI_LOGSUMEXP } gni_softmax_kind;
// Rows of `n` elements; the input has any row stride and unit stride inside, the output is contiguous
// (rows, n), or (rows) for logsumexp. float32, float16, bfloat16; float64 on the CPU.
typedef struct gni_softmax {
    gni_softmax_kind kind;
    int64_t rows, n, row_stride;
    gni_operand in, out;
} gni_softmax;

// c (batch, m, n) contiguous = a (batch, m, k) times b (batch, k, n), any strides; up to 6 batch dimensions.
typedef struct gni_matmul {
    int64_t m, n, k;
    int batch_rank;
    int64_t batch_dim[GN_MAX_RANK], a_batch[GN_MAX_RANK], b_batch[GN_MAX_RANK];
    int64_t a_rs, a_cs, b_rs, b_cs;
    gni_operand a, b, c;     // stride[] unused
    gni_operand bias;        // (n) float32 contiguous, buf NULL: none
    int act;                 // 0 none, 1 relu
} gni_matmul;

// out (outer, count, inner) = in (outer, extent, inner)[:, indices, :], all contiguous.
typedef struct gni_take {
    int64_t outer, extent, inner, count;
    gni_operand in, index, out;
} gni_take;

typedef enum gni_random_kind { GNI_RAND_UNIFORM, GNI_RAND_NORMAL, GNI_RAND_BITS, GNI_RAND_RANGE } gni_random_kind;
// Element i comes from Philox block `counter` + i / 4, word i % 4. Elements of two words (see
// gni_random_pairs) come two from a block.
typedef struct gni_random {
    gni_random_kind kind;
    uint64_t seed, counter;
    int64_t n;
    int64_t low;
    uint64_t range; // GNI_RAND_RANGE: low + [0, range)
    gni_operand out;
} gni_random;

// With one word, some numbers of a range would come more often than others by range / 2^32 of their
// share. That shows from about 2^20 on.
GNI_INLINE bool gni_random_pairs(const gni_random *r) {
    if (r->kind == GNI_RAND_RANGE) return r->range > (uint64_t)1 << 20;
    return r->out.dtype == GN_F64;
}

typedef enum gni_fft_kind { GNI_FFT_C2C, GNI_FFT_R2C, GNI_FFT_C2R } gni_fft_kind;
// Transforms of n points along one axis, over all other dimensions: sums with exp(-2 pi i j k / n), or
// exp(+...) for `inverse`, times `scale`. Real spectra have n / 2 + 1 numbers; C2R takes the others to be
// their conjugates. Of the axis n_in elements exist, zeros follow. Both sides are of one precision;
// the input of C2C may be real.
typedef struct gni_fft {
    gni_fft_kind kind;
    bool inverse;
    int rank; // of the other dimensions
    int64_t dim[GN_MAX_RANK];
    int64_t n, n_in, in_step, out_step; // steps along the axis, in elements
    double scale;
    gni_operand in, out; // strides over the other dimensions
} gni_fft;

// A backend. Every function returns false after gni_fail, or when it does not do the job: `supports`
// is asked first. Operands are where the backend wants them when it is called.
typedef enum gni_job_kind { GNI_JOB_MAP, GNI_JOB_REDUCE, GNI_JOB_SOFTMAX, GNI_JOB_MATMUL, GNI_JOB_TAKE, GNI_JOB_RANDOM,
               GNI_JOB_FFT } gni_job_kind;
typedef struct gni_backend_api {
    const char *name;
    uint32_t side; // GNI_ON_CPU or GNI_ON_GPU
    bool (*supports)(gn_context *g, gni_job_kind kind, const void *job);
    bool (*run)(gn_context *g, gni_job_kind kind, const void *job);
} gni_backend_api;

typedef struct gni_scope {
    gn_array **list;
    int count, capacity;
} gni_scope;

// The open scopes of one thread. scopes[0] is unused: it stands for the caller.
typedef struct gni_stack {
    const void *owner;
    gni_scope *scopes;
    int count, capacity;
    int lost;    // scopes begun when there was no memory for them
    int no_grad; // of this thread, between calls
    struct gni_stack *next;
} gni_stack;

typedef struct gni_read {
    gn_array *array;
    void *dst;
    size_t bytes;
    gn_done_fn done;
    void *user;
    bool on_gpu;
    gni_vk_ticket ticket;
    struct gni_read *next;
} gni_read;


struct gn_context {
    gni_lock lock;
    gn_options options; // strings copied
    gn_allocator allocator;
    gn_status status;
    bool call_failed; // something failed inside the public call under way
    int call_depth;
    char message[512];
    char explain[512];
    gn_device_info info;
    gni_isa isa;
    struct gni_pool *pool;
    struct gni_vk *vk; // NULL: no GPU
    struct gni_gemm_work *gemm_work;
    struct gni_fft_vk_state *fft_vk; // tables of the GPU's transforms
    struct gni_fft_state *fft; // plans and memory of the CPU's transforms; NULL until the first
    // memory
    gni_mutex stats_lock;
    uint64_t host_used, host_peak;
    struct {
        void *p;
        size_t bytes;
    } host_cache[GNI_HOST_CACHE_SLOTS]; // freed CPU memory of arrays, oldest first
    int host_cache_count;
    uint64_t host_cached; // its bytes
    // arrays
    gn_array *arrays, *free_arrays;
    struct gni_slab *slabs;
    uint64_t array_count;
    gni_stack *stacks; // one for each thread that has open scopes
    gni_stack *stack;  // of the thread inside the lock; NULL: it has none
    int lost_scopes;   // begun when there was no memory for a stack
    // lazy
    gn_array *pending_first, *pending_last;
    uint64_t lazy_bytes; // memory held only by pending work
    uint32_t mark;
    // autograd
    int no_grad; // of the thread inside the lock
    uint64_t serial;
    gn_optimizer *optimizers;
    // random
    uint64_t seed, counter;
    // reads under way, oldest first
    gni_read *reads;
    bool delivering;
    struct gni_profile *profile;
    bool recording; // into a host's command buffer
};

#define GNI_ALIVE 0x6e756d21u
#define GNI_DEAD 0x64656164u

// ------------------------------------------------------------------------------------------
// >>internal
// The functions that rooms offer each other, by the room that defines them.

// memory: gni_alloc'd blocks are 64-byte aligned; NULL when there is none left, which the caller reports.
static void *gni_alloc(gn_context *g, size_t bytes);
static void *gni_calloc(gn_context *g, size_t bytes);
static void *gni_realloc(gn_context *g, void *p, size_t old_bytes, size_t new_bytes); // p stays valid on failure
static void gni_free(gn_context *g, void *p);

// log and errors: the first failure is kept on the context, each one makes the public call return NULL.
static void gni_fail(gn_context *g, gn_status status, const char *format, ...) GNI_PRINTF(3, 4);
static void gni_fail_memory(gn_context *g, const char *what, uint64_t bytes);
static void gni_log(gn_context *g, gn_log_level level, const char *format, ...) GNI_PRINTF(3, 4);
static const char *gni_shape_text(char *text, size_t size, const gn_shape *s); // "(3,4)"

// calls: every public function that takes arrays starts with gni_begin, which checks them and takes the
// lock, and ends with one of the others. gni_begin returns NULL (unlocked) when one is NULL or stale.
static gn_context *gni_begin(const char *fn, gn_array *const *arrays, int count);
static bool gni_begin_context(const char *fn, gn_context *g); // for functions that take a context
static gn_array *gni_end(gn_context *g, gn_array *y); // y's creator reference becomes the caller's (or its
                                                      // scope's); NULL if anything failed inside
static gn_array *gni_adopt(gn_context *g, gn_array *y); // gni_end's hand-over without the end
static gn_status gni_end_status(gn_context *g);       // GN_OK, or the status of the failure inside
static void gni_end_plain(gn_context *g);
// For functions made of public calls: gni_begin; gn_scope_begin(g); ...; return gni_end_scope(g, y).
static gn_array *gni_end_scope(gn_context *g, gn_array *y);

// array: makers return one reference that belongs to their caller, to be passed to gni_end or gni_unref.
static gn_array *gni_array_new(gn_context *g, gn_dtype t, const gn_shape *s); // no memory yet, C order strides
static gn_array *gni_array_filled(gn_context *g, gn_dtype t, const gn_shape *s, void **host); // with CPU memory to fill
static gn_array *gni_array_view(gn_context *g, gn_array *base, const gn_shape *s, const int64_t *stride,
                                int64_t offset); // materializes base; offset counts from the buffer's start
static void gni_ref(gn_array *a);
static void gni_unref(gn_context *g, gn_array *a); // NULL is ignored
static int64_t gni_elements(const gn_shape *s);     // -1 if it overflows int64
static bool gni_same_shape(const gn_shape *a, const gn_shape *b);
static void gni_strides_of(const gn_shape *s, int64_t *stride); // C order
static bool gni_is_contiguous(const gn_array *a);   // C order
static int gni_axis(gn_context *g, const char *fn, int axis, int rank); // -1 after gni_fail
static bool gni_broadcast(const gn_shape *a, const gn_shape *b, gn_shape *out);
static gni_buffer *gni_buffer_new(gn_context *g, uint64_t bytes); // no memory yet
static void gni_buffer_release(gn_context *g, gni_buffer *b);
// Makes the contents valid on that side (copying from the other), with memory there.
static bool gni_buffer_need(gn_context *g, gni_buffer *b, uint32_t side);
// Gives memory on that side to overwrite whole, and declares it the only valid one.
static bool gni_buffer_claim(gn_context *g, gni_buffer *b, uint32_t side);

static void gni_header_doom(gn_context *g, gn_array *a, gn_array **todo);
static bool gni_shape_ok(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s); // or gni_fail

// vk memory
static bool gni_vk_alloc(struct gni_vk *vk, uint64_t bytes, gni_vk_mem *out);
static void gni_vk_free(struct gni_vk *vk, gni_vk_mem *mem);
static bool gni_vk_upload(struct gni_vk *vk, const gni_vk_mem *dst, uint64_t offset, const void *src, uint64_t bytes);
static bool gni_vk_download(struct gni_vk *vk, const gni_vk_mem *src, uint64_t offset, void *dst, uint64_t bytes);

// lazy
static void gni_pending_remove(gn_context *g, gn_array *a);
static bool gni_source_drop(gn_context *g, gn_array *src); // true: that was its last reference
static void gni_lazy_orphaned(gn_context *g, gn_array *a); // the caller let go of it
static bool gni_materialize(gn_context *g, gn_array *a); // a->buf afterwards
static gn_array *gni_contiguous(gn_context *g, gn_array *a); // a itself (one more reference) or a C order copy
static const void *gni_host(gn_context *g, gn_array *a); // materialized, on the CPU; pointer to its first element
// Before the contents of `a` are overwritten: gives pending work that reads them the old contents.
static bool gni_before_write(gn_context *g, gn_array *a);
static bool gni_before_overwrite(gn_context *g, gn_array *a, uint32_t mark, int held);
// Copies `src` (any dtype that converts, any strides) into a strided place of `dst`.
static bool gni_copy_into(gn_context *g, gni_buffer *dst, gn_dtype t, int64_t offset, const int64_t *stride,
                          gn_array *src);
// Computes several arrays of one shape in one program, into `into[i]`'s own memory where into[i] is not NULL
// (same shape and dtype, contiguous; its pending readers keep the old values).
static bool gni_evaluate(gn_context *g, gn_array *const *roots, gn_array *const *into, int count);
static bool gni_run(gn_context *g, gni_job_kind kind, void *job, gn_array *y); // places, moves, runs; y gets the result

// backends
static const gni_backend_api *gni_backend_cpu(void), *gni_backend_vulkan(void);
static bool gni_vk_lost(const struct gni_vk *vk);
static void gni_profile_span(gn_context *g, const char *name, uint64_t start_ns, uint64_t end_ns, int track);

// elementwise (unlocked makers behind the public ops)
static gn_array *gni_apply(gn_context *g, const char *fn, gni_op op, gn_dtype compute, gn_dtype result,
                           gn_array *const *src, const double *konst, int n_src); // lazy; src[i] NULL: konst[i]
static gn_array *gni_const(gn_context *g, gn_dtype t, const gn_shape *s, double value);

// autograd
static bool gni_tracks(const gn_context *g, gn_array *const *in, int n_in); // recording, and one of them needs it
// Records how y was made. NULL when nothing needs a gradient or memory ran out (then gni_fail).
static gni_node *gni_record(gn_context *g, gn_array *y, const char *name, gni_backward_fn backward,
                            gn_array *const *in, int n_in);
static void gni_node_free(gn_context *g, gni_node *node);

// gradients: how the gradient of a result reaches its operands, one function per kind of op.
static bool gni_back_elementwise(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_sum(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_mean(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_prod(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_minmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_logsumexp(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_softmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_log_softmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_matmul(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_reshape(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_permute(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_broadcast(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_slice(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_flip(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_concat(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_stack(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_take(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_copy(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
// What a backward function reads: bit i for the value of in[i], GNI_READS_OUTPUT for that of the output.
#define GNI_READS_OUTPUT 0x80000000u
static uint32_t gni_back_reads(const gni_node *node);
static bool gni_wants_grad(const gn_array *a); // requires a gradient, or depends on one that does
static bool gni_wanted(const gni_node *node,
                       int i); // the pass under way needs the gradient of in[i]
static void gni_set_grad(gn_context *g, gn_array *a,
                         gn_array *grad); // takes over a reference to grad; NULL drops
static bool gni_back_linear(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static gn_array *gni_unbroadcast(gn_array *gx, const gn_shape *shape); // sums over repeated elements

// ------------------------------------------------------------------------------------------
// >>memory
// CPU memory, counted, through the user's allocator. Each block starts with a header that knows its size.

#define GNI_ALIGN 64u

typedef struct gni_block_head {
    void *base; // what the allocator returned
    size_t total;
} gni_block_head;

static void *gni_alloc(gn_context *g, size_t bytes) {
    if (bytes > SIZE_MAX - 2 * GNI_ALIGN) return NULL;
    size_t total = bytes + 2 * GNI_ALIGN;
    void *base = g->allocator.allocate(g->allocator.user, total);
    if (base == NULL) return NULL;
    uintptr_t at = ((uintptr_t)base + sizeof(gni_block_head) + GNI_ALIGN - 1) & ~(uintptr_t)(GNI_ALIGN - 1);
    gni_block_head *head = (gni_block_head *)(at - sizeof(gni_block_head));
    head->base = base;
    head->total = total;
    gni_mutex_lock(&g->stats_lock);
    g->host_used += total;
    if (g->host_used > g->host_peak) g->host_peak = g->host_used;
    gni_mutex_unlock(&g->stats_lock);
    return (void *)at;
}

static void *gni_calloc(gn_context *g, size_t bytes) {
    void *p = gni_alloc(g, bytes);
    if (p != NULL) memset(p, 0, bytes);
    return p;
}

static void gni_free(gn_context *g, void *p) {
    if (p == NULL) return;
    gni_block_head *head = (gni_block_head *)((uintptr_t)p - sizeof(gni_block_head));
    void *base = head->base;
    size_t total = head->total;
    gni_mutex_lock(&g->stats_lock);
    g->host_used -= total;
    gni_mutex_unlock(&g->stats_lock);
    g->allocator.release(g->allocator.user, base, total);
}

static void *gni_realloc(gn_context *g, void *p, size_t old_bytes, size_t new_bytes) {
    void *q = gni_alloc(g, new_bytes);
    if (q == NULL) return NULL;
    if (p != NULL) memcpy(q, p, GNI_MIN(old_bytes, new_bytes));
    gni_free(g, p);
    return q;
}

static void *gni_default_allocate(void *user, size_t size) {
    GNI_UNUSED(user);
    return malloc(size);
}

static void gni_default_release(void *user, void *data, size_t size) {
    GNI_UNUSED(user);
    GNI_UNUSED(size);
    free(data);
}

// ------------------------------------------------------------------------------------------
// >>log
// Log lines, the sticky first error, and the frame around every public call.

static void gni_log(gn_context *g, gn_log_level level, const char *format, ...) {
    static const int rank[] = {1, 0, 2, 3, -1}; // of each gn_log_level, by how much it lets through
    if (g->options.log == NULL || g->options.log_level == GN_LOG_NONE) return;
    if (rank[level] > rank[g->options.log_level]) return;
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    g->options.log(g->options.log_user, level, text);
}

static void gni_fail(gn_context *g, gn_status status, const char *format, ...) {
    g->call_failed = true;
    if (g->status != GN_OK) return;
    g->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(g->message, sizeof g->message, format, args);
    va_end(args);
    gni_log(g, GN_LOG_ERROR, "%s", g->message);
}

static void gni_fail_memory(gn_context *g, const char *what, uint64_t bytes) {
    gni_fail(g, GN_ERROR_OUT_OF_MEMORY, "%s: out of memory (%llu bytes)", what, (unsigned long long)bytes);
}

static const char *gni_shape_text(char *text, size_t size, const gn_shape *s) {
    size_t at = 0;
    for (int i = 0; i < s->rank && at + 24 < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? "," : "(", (long long)s->dim[i]);
    snprintf(text + at, size - at, s->rank == 0 ? "()" : s->rank == 1 ? ",)" : ")");
    return text;
}

// The scope stack of the calling thread, made when `make` says so.
static gni_stack *gni_stack_here(gn_context *g, bool make) {
    for (gni_stack *s = g->stacks; s != NULL; s = s->next)
        if (s->owner == g->lock.owner) return s;
    if (!make) return NULL;
    gni_stack *s = (gni_stack *)gni_calloc(g, sizeof(gni_stack));
    if (s == NULL) {
        gni_fail_memory(g, "gn_scope_begin", sizeof(gni_stack));
        return NULL;
    }
    s->owner = g->lock.owner;
    s->next = g->stacks;
    g->stacks = s;
    return s;
}

static void gni_call_enter(gn_context *g) {
    gni_lock_enter(&g->lock);
    if (g->call_depth++ > 0) return;
    g->call_failed = false;
    g->stack = gni_stack_here(g, false);
    g->no_grad = g->stack != NULL ? g->stack->no_grad : 0;
}

static void gni_deliver_reads(gn_context *g, bool wait);

static void gni_end_plain(gn_context *g) {
    if (g->call_depth == 1) {
        if (g->reads != NULL) gni_deliver_reads(g, false);
        if (g->stack == NULL && g->no_grad > 0) g->stack = gni_stack_here(g, true);
        if (g->stack != NULL) g->stack->no_grad = g->no_grad;
    }
    g->call_depth--;
    gni_lock_leave(&g->lock);
}

static gn_status gni_end_status(gn_context *g) {
    gn_status status = g->call_failed ? g->status : GN_OK;
    gni_end_plain(g);
    return status;
}

static bool gni_begin_context(const char *fn, gn_context *g) {
    GNI_UNUSED(fn);
    if (g == NULL) return false;
    gni_call_enter(g);
    return true;
}

static gn_context *gni_begin(const char *fn, gn_array *const *arrays, int count) {
    gn_context *g = NULL;
    for (int i = 0; i < count && g == NULL; i++)
        if (arrays[i] != NULL) g = arrays[i]->ctx;
    if (g == NULL) return NULL;
    gni_call_enter(g);
    for (int i = 0; i < count; i++) {
        const gn_array *a = arrays[i];
        if (a == NULL) // usually the result of a call that failed: that error came first
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: array argument %d is NULL", fn, i + 1);
        else if (a->ctx != g)
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: array argument %d belongs to another context", fn, i + 1);
        else if (a->magic != GNI_ALIVE || (g->call_depth == 1 && a->user_refs <= 0))
            gni_fail(g, GN_ERROR_STALE, "%s: array argument %d was released", fn, i + 1);
        else
            continue;
        gni_end_plain(g);
        return NULL;
    }
    return g;
}

GPUNUM_API gn_status gn_status_get(const gn_context *g) { return g == NULL ? GN_ERROR_ARGUMENT : g->status; }

GPUNUM_API const char *gn_error(const gn_context *g) {
    return g == NULL ? "gn_error: no context" : g->message;
}

GPUNUM_API void gn_error_clear(gn_context *g) {
    if (g == NULL) return;
    gni_lock_enter(&g->lock);
    g->status = GN_OK;
    g->call_failed = false;
    g->message[0] = 0;
    gni_lock_leave(&g->lock);
}

GPUNUM_API const char *gn_status_string(gn_status status) {
    static const char *const text[] = {
#define GN_X(name, words) words,
        GN_STATUS_LIST(GN_X)
#undef GN_X
    };
    return (unsigned)status < (unsigned)GN_STATUS_COUNT ? text[status] : "unknown status";
}
// >>half
// float16 and bfloat16 to and from float32, one value at a time, by integer code: round to nearest even, subnormals
// exact, infinities kept, NaN stays NaN. The vector forms are in the simd room.

static inline uint32_t gni_f32_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float gni_bits_f32(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float gni_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, em = (uint32_t)(h & 0x7fffu) << 13;
    // A subnormal's mantissa is put under the exponent of 2^-14 and that 2^-14 taken away again.
    if (em < 0x00800000u)
        em = gni_f32_bits(gni_bits_f32(em + 0x38800000u) - 6.103515625e-05f);
    else if (em >= 0x0f800000u)
        em |= 0x7f800000u;
    else
        em += 0x38000000u;
    return gni_bits_f32(em | sign);
}

static inline uint16_t gni_f32_to_f16(float x) {
    uint32_t u = gni_f32_bits(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu, r;
    if (a > 0x7f800000u)
        r = ((a >> 13) & 0x3ffu) | 0x7e00u;
    else if (a >= 0x47800000u)
        r = 0x7c00u;
    else if (a < 0x38800000u) // adding 0.5 lines the bits up with float16's subnormals and rounds
        r = gni_f32_bits(gni_bits_f32(a) + 0.5f) - 0x3f000000u;
    else
        r = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
    return (uint16_t)(r | sign);
}

static inline float gni_bf16_to_f32(uint16_t h) { return gni_bits_f32((uint32_t)h << 16); }

static inline uint16_t gni_f32_to_bf16(float x) {
    uint32_t u = gni_f32_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

// ------------------------------------------------------------------------------------------
// >>array
// Array headers, buffers, references and scopes. Headers live in slabs that stay until gn_close, so that
// a stale pointer can be told from a live one.

#define GNI_SLAB_ARRAYS 128

typedef struct gni_slab {
    struct gni_slab *next;
    gn_array arrays[GNI_SLAB_ARRAYS];
} gni_slab;

static int64_t gni_elements(const gn_shape *s) {
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] == 0) return 0;
    for (int i = 0; i < s->rank; i++) {
        if (n > INT64_MAX / 16 / s->dim[i]) return -1; // in bytes too
        n *= s->dim[i];
    }
    return n;
}

static bool gni_same_shape(const gn_shape *a, const gn_shape *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

static void gni_strides_of(const gn_shape *s, int64_t *stride) {
    int64_t step = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = step;
        // Empty arrays may have extents whose product does not fit.
        const int64_t extent = GNI_MAX(s->dim[i], 1);
        step = step > INT64_MAX / extent ? INT64_MAX : step * extent;
    }
}

static bool gni_is_contiguous(const gn_array *a) {
    int64_t step = 1;
    for (int i = a->shape.rank - 1; i >= 0; i--) {
        if (a->shape.dim[i] == 0) return true;
        if (a->shape.dim[i] != 1 && a->stride[i] != step) return false;
        step *= a->shape.dim[i];
    }
    return true;
}

static int gni_axis(gn_context *g, const char *fn, int axis, int rank) {
    int at = axis < 0 ? axis + rank : axis;
    if (at >= 0 && at < rank) return at;
    gni_fail(g, GN_ERROR_ARGUMENT, "%s: axis %d is out of bounds for array of rank %d", fn, axis, rank);
    return -1;
}

static bool gni_broadcast(const gn_shape *a, const gn_shape *b, gn_shape *out) {
    gn_shape s;
    memset(&s, 0, sizeof s);
    s.rank = GNI_MAX(a->rank, b->rank);
    for (int i = 1; i <= s.rank; i++) {
        int64_t da = i <= a->rank ? a->dim[a->rank - i] : 1;
        int64_t db = i <= b->rank ? b->dim[b->rank - i] : 1;
        if (da != db && da != 1 && db != 1) return false;
        s.dim[s.rank - i] = da == 1 ? db : da;
    }
    *out = s;
    return true;
}

// ---- buffers

static gni_buffer *gni_buffer_new(gn_context *g, uint64_t bytes) {
    gni_buffer *b = (gni_buffer *)gni_calloc(g, sizeof(gni_buffer));
    if (b == NULL) {
        gni_fail_memory(g, "gn_array", sizeof(gni_buffer));
        return NULL;
    }
    b->refs = 1;
    b->bytes = bytes;
    return b;
}

// CPU memory of arrays is kept for the next array of about that size: fresh pages are slow to touch.
static size_t gni_host_bytes(uint64_t bytes) {
    uint64_t step = 64;
    while (step * 16 <= bytes) step *= 2;
    return (size_t)((bytes + step - 1) / step * step);
}

static void gni_host_cache_drop(gn_context *g, int i) {
    gni_free(g, g->host_cache[i].p);
    g->host_cached -= g->host_cache[i].bytes;
    g->host_cache_count--;
    memmove(&g->host_cache[i], &g->host_cache[i + 1], sizeof g->host_cache[0] * (size_t)(g->host_cache_count - i));
}

static void gni_host_cache_trim(gn_context *g) {
    while (g->host_cache_count > 0) gni_host_cache_drop(g, 0);
}

static void *gni_host_take(gn_context *g, uint64_t bytes) {
    size_t need = gni_host_bytes(bytes);
    for (int i = g->host_cache_count - 1; i >= 0; i--) {
        if (g->host_cache[i].bytes != need) continue;
        void *p = g->host_cache[i].p;
        g->host_cache[i].p = NULL;
        gni_host_cache_drop(g, i);
        return p;
    }
    void *p = gni_alloc(g, need);
    if (p != NULL || g->host_cache_count == 0) return p;
    gni_host_cache_trim(g);
    return gni_alloc(g, need);
}

static void gni_host_give(gn_context *g, void *p, uint64_t bytes) {
    size_t size = gni_host_bytes(bytes);
    if (size < GNI_HOST_CACHE_LEAST || size > GNI_HOST_CACHE_BYTES / 2) {
        gni_free(g, p);
        return;
    }
    while (g->host_cache_count == GNI_HOST_CACHE_SLOTS || g->host_cached + size > GNI_HOST_CACHE_BYTES)
        gni_host_cache_drop(g, 0);
    g->host_cache[g->host_cache_count].p = p;
    g->host_cache[g->host_cache_count].bytes = size;
    g->host_cache_count++;
    g->host_cached += size;
}

static void gni_buffer_drop_host(gn_context *g, gni_buffer *b) {
    if (b->host == NULL) return;
    if (!b->host_borrowed) gni_host_give(g, b->host, b->bytes);
    else if (b->host_free != NULL) b->host_free(b->host, b->host_user);
    b->host = NULL;
    b->host_borrowed = false;
}

static void gni_buffer_release(gn_context *g, gni_buffer *b) {
    if (b == NULL || --b->refs > 0) return;
    gni_buffer_drop_host(g, b);
    if (b->has_device && !b->device_borrowed) gni_vk_free(g->vk, &b->device);
    gni_free(g, b);
}

// Memory on that side, contents undefined. Sizes are padded so that kernels may read whole vectors.
static bool gni_buffer_memory(gn_context *g, gni_buffer *b, uint32_t side) {
    if (side == GNI_ON_CPU) {
        if (b->host != NULL) return true;
        b->host = gni_host_take(g, b->bytes);
        if (b->host == NULL) gni_fail_memory(g, "gn_array", b->bytes);
        return b->host != NULL;
    }
    if (b->has_device) return true;
    if (g->vk == NULL) {
        gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_array: this context has no GPU");
        return false;
    }
    b->has_device = gni_vk_alloc(g->vk, GNI_MAX(b->bytes, 16), &b->device);
    if (!b->has_device) gni_fail_memory(g, "gn_array: device memory", b->bytes);
    return b->has_device;
}

static bool gni_buffer_need(gn_context *g, gni_buffer *b, uint32_t side) {
    if (b->where & side) return true;
    if (!gni_buffer_memory(g, b, side)) return false;
    if (b->where != 0 && b->bytes > 0) {
        bool moved = side == GNI_ON_CPU ? gni_vk_download(g->vk, &b->device, 0, b->host, b->bytes)
                                        : gni_vk_upload(g->vk, &b->device, 0, b->host, b->bytes);
        if (!moved) {
            gni_fail(g, GN_ERROR_DEVICE_LOST, "gn_array: copying %llu bytes %s the GPU failed",
                     (unsigned long long)b->bytes, side == GNI_ON_CPU ? "from" : "to");
            return false;
        }
    }
    b->where |= side;
    return true;
}

static bool gni_buffer_claim(gn_context *g, gni_buffer *b, uint32_t side) {
    if (!gni_buffer_memory(g, b, side)) return false;
    if (b->where != 0) b->version++; // first contents are no overwriting
    b->where = side;
    return true;
}

// ---- headers

static gn_array *gni_header_new(gn_context *g) {
    if (g->free_arrays == NULL) {
        gni_slab *slab = (gni_slab *)gni_calloc(g, sizeof(gni_slab));
        if (slab == NULL) {
            gni_fail_memory(g, "gn_array", sizeof(gni_slab));
            return NULL;
        }
        slab->next = g->slabs;
        g->slabs = slab;
        for (int i = GNI_SLAB_ARRAYS - 1; i >= 0; i--) {
            slab->arrays[i].ctx = g;
            slab->arrays[i].magic = GNI_DEAD;
            slab->arrays[i].all_next = g->free_arrays;
            g->free_arrays = &slab->arrays[i];
        }
    }
    gn_array *a = g->free_arrays;
    g->free_arrays = a->all_next;
    memset(a, 0, sizeof *a);
    a->magic = GNI_ALIVE;
    a->ctx = g;
    a->refs = 1;
    a->maker = "";
    a->scope_slot = -1;
    a->all_next = g->arrays;
    if (g->arrays != NULL) g->arrays->all_prev = a;
    g->arrays = a;
    g->array_count++;
    return a;
}

static gn_array *gni_array_new(gn_context *g, gn_dtype t, const gn_shape *s) {
    gn_array *a = gni_header_new(g);
    if (a == NULL) return NULL;
    a->dtype = t;
    a->shape = *s;
    gni_strides_of(s, a->stride);
    return a;
}

static gn_array *gni_array_filled(gn_context *g, gn_dtype t, const gn_shape *s, void **host) {
    gn_array *a = gni_array_new(g, t, s);
    if (a == NULL) return NULL;
    a->buf = gni_buffer_new(g, (uint64_t)gni_elements(s) * gn_dtype_size(t));
    if (a->buf == NULL || !gni_buffer_claim(g, a->buf, GNI_ON_CPU)) {
        gni_unref(g, a);
        return NULL;
    }
    *host = a->buf->host;
    return a;
}

static gn_array *gni_array_view(gn_context *g, gn_array *base, const gn_shape *s, const int64_t *stride,
                                int64_t offset) {
    if (!gni_materialize(g, base)) return NULL;
    gn_array *a = gni_array_new(g, base->dtype, s);
    if (a == NULL) return NULL;
    memcpy(a->stride, stride, sizeof(int64_t) * (size_t)s->rank);
    a->offset = offset;
    a->buf = base->buf;
    a->buf->refs++;
    a->on_gpu = base->on_gpu;
    return a;
}

static void gni_ref(gn_array *a) { a->refs++; }

// Takes everything out of a dying header. What it held is pushed on `todo` through all_next, so that a
// long chain of dependencies is freed without recursion.
static void gni_header_empty(gn_context *g, gn_array *a, gn_array **todo) {
    gni_expr *e = a->expr;
    if (e != NULL) {
        gni_pending_remove(g, a);
        for (int i = 0; i < e->n_src; i++)
            if (e->src[i] != NULL && gni_source_drop(g, e->src[i])) gni_header_doom(g, e->src[i], todo);
        gni_free(g, e);
    }
    gni_node *node = a->node;
    if (node != NULL) {
        for (int i = 0; i < node->n_in; i++)
            if (node->in[i] != NULL && --node->in[i]->refs == 0) gni_header_doom(g, node->in[i], todo);
        node->n_in = 0;
        gni_node_free(g, node);
    }
    if (a->grad != NULL) {
        a->grad->user_refs--;
        if (--a->grad->refs == 0) gni_header_doom(g, a->grad, todo);
    }
    gni_buffer_release(g, a->buf);
}

// Unlinks a header without references from the list of live ones and queues it.
static void gni_header_doom(gn_context *g, gn_array *a, gn_array **todo) {
    if (a->all_prev != NULL) a->all_prev->all_next = a->all_next;
    else g->arrays = a->all_next;
    if (a->all_next != NULL) a->all_next->all_prev = a->all_prev;
    g->array_count--;
    a->magic = GNI_DEAD;
    a->all_next = *todo;
    *todo = a;
}

static void gni_unref(gn_context *g, gn_array *a) {
    if (a == NULL || --a->refs > 0) return;
    gn_array *todo = NULL;
    gni_header_doom(g, a, &todo);
    while (todo != NULL) {
        gn_array *dead = todo;
        todo = dead->all_next;
        gni_header_empty(g, dead, &todo);
        dead->expr = NULL;
        dead->node = NULL;
        dead->grad = NULL;
        dead->buf = NULL;
        dead->all_next = g->free_arrays;
        g->free_arrays = dead;
    }
}

// ---- owners: the caller (scope 0) or one of the open scopes

static bool gni_scope_add(gn_context *g, gni_stack *stack, int depth, gn_array *a) {
    a->stack = NULL;
    a->scope = 0;
    a->scope_slot = -1;
    if (stack == NULL || depth == 0) return true;
    gni_scope *s = &stack->scopes[depth];
    if (s->count == s->capacity) {
        int capacity = s->capacity > 0 ? 2 * s->capacity : 32;
        gn_array **list = (gn_array **)gni_realloc(g, s->list, sizeof(gn_array *) * (size_t)s->count,
                                                   sizeof(gn_array *) * (size_t)capacity);
        if (list == NULL) {
            gni_fail_memory(g, "gn_scope", sizeof(gn_array *) * (size_t)capacity);
            return false;
        }
        s->list = list;
        s->capacity = capacity;
    }
    a->stack = stack;
    a->scope = depth;
    a->scope_slot = s->count;
    s->list[s->count++] = a;
    return true;
}

static void gni_scope_remove(gn_array *a) {
    if (a->scope_slot < 0) return;
    gni_scope *s = &a->stack->scopes[a->scope];
    gn_array *last = s->list[--s->count];
    s->list[a->scope_slot] = last;
    last->scope_slot = a->scope_slot;
    a->stack = NULL;
    a->scope = 0;
    a->scope_slot = -1;
}

// Drops one reference of the caller's or of a scope's.
static void gni_user_release(gn_context *g, gn_array *a) {
    if (--a->user_refs == 0) {
        gni_scope_remove(a);
        gni_lazy_orphaned(g, a);
    }
    gni_unref(g, a);
}

// The creator's reference becomes the caller's, or that of the scope that is open.
static gn_array *gni_adopt(gn_context *g, gn_array *y) {
    if (y != NULL && y->user_refs > 0) { // has an owner already: hand out a second header
        gn_array *view = gni_array_view(g, y, &y->shape, y->stride, y->offset);
        gni_unref(g, y);
        y = view;
    }
    if (y == NULL) return NULL;
    y->user_refs = 1;
    if (!g->call_failed && gni_scope_add(g, g->stack, g->stack != NULL ? g->stack->count : 0, y)) return y;
    gni_unref(g, y);
    return NULL;
}

static gn_array *gni_end(gn_context *g, gn_array *y) {
    y = gni_adopt(g, y);
    gni_end_plain(g);
    return y;
}

static gn_array *gni_end_scope(gn_context *g, gn_array *y) {
    if (y != NULL) gn_keep(y);
    gn_scope_end(g);
    if (y != NULL && g->call_failed) {
        gn_release(y);
        y = NULL;
    }
    gni_end_plain(g);
    return y;
}

// Room for one more scope on the stack.
static bool gni_stack_grow(gn_context *g, gni_stack *stack) {
    if (stack->count + 2 <= stack->capacity) return true;
    int capacity = GNI_MAX(16, 2 * stack->capacity);
    gni_scope *scopes = (gni_scope *)gni_calloc(g, sizeof(gni_scope) * (size_t)capacity);
    if (scopes == NULL) {
        gni_fail_memory(g, "gn_scope_begin", sizeof(gni_scope) * (size_t)capacity);
        return false;
    }
    if (stack->scopes != NULL) memcpy(scopes, stack->scopes, sizeof(gni_scope) * (size_t)stack->capacity);
    gni_free(g, stack->scopes);
    stack->scopes = scopes;
    stack->capacity = capacity;
    return true;
}

GPUNUM_API void gn_scope_begin(gn_context *g) {
    if (!gni_begin_context("gn_scope_begin", g)) return;
    if (g->stack == NULL) g->stack = gni_stack_here(g, true);
    if (g->stack == NULL) g->lost_scopes++; // so that the matching gn_scope_end closes no other
    else if (g->stack->lost > 0 || !gni_stack_grow(g, g->stack)) g->stack->lost++;
    else g->stack->count++;
    gni_end_plain(g);
}

GPUNUM_API void gn_scope_end(gn_context *g) {
    if (!gni_begin_context("gn_scope_end", g)) return;
    gni_stack *stack = g->stack;
    if (stack == NULL && g->lost_scopes > 0) {
        g->lost_scopes--;
    } else if (stack != NULL && stack->lost > 0) {
        stack->lost--;
    } else if (stack == NULL || stack->count == 0) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_scope_end: no scope is open");
    } else {
        gni_scope *s = &stack->scopes[stack->count];
        while (s->count > 0) {
            gn_array *a = s->list[s->count - 1];
            gni_scope_remove(a);
            gni_user_release(g, a);
        }
        stack->count--;
    }
    gni_end_plain(g);
}

GPUNUM_API gn_array *gn_keep(gn_array *a) {
    gn_context *g = gni_begin("gn_keep", &a, 1);
    if (g == NULL) return NULL;
    if (a->scope_slot >= 0) {
        gni_stack *stack = a->stack;
        int outer = a->scope - 1;
        gni_scope_remove(a);
        gni_scope_add(g, stack, outer, a);
    }
    gni_end_plain(g);
    return a;
}

GPUNUM_API gn_array *gn_retain(gn_array *a) {
    gn_context *g = gni_begin("gn_retain", &a, 1);
    if (g == NULL) return NULL;
    a->refs++;
    a->user_refs++;
    gni_end_plain(g);
    return a;
}

GPUNUM_API void gn_release(gn_array *a) {
    gn_context *g = gni_begin("gn_release", &a, 1);
    if (g == NULL) return;
    gni_user_release(g, a);
    gni_end_plain(g);
}

GPUNUM_API void gn_set(gn_array **slot, gn_array *value) {
    if (slot == NULL || *slot == value) return;
    gn_array *old = *slot;
    gn_array *both[2];
    both[0] = value != NULL ? value : old;
    both[1] = old != NULL ? old : value;
    gn_context *g = gni_begin("gn_set", both, 2);
    if (g == NULL) return;
    if (value == NULL && g->status != GN_OK) { // keep what is there: the new value could not be made
        gni_end_plain(g);
        return;
    }
    if (value != NULL) {
        gni_scope_remove(value);
        if (old != NULL && old->scope_slot >= 0) gni_scope_add(g, old->stack, old->scope, value);
        if (old != NULL && old->wants_grad && value->node == NULL) value->wants_grad = true;
    }
    *slot = value;
    if (old != NULL) gni_user_release(g, old);
    gni_end_plain(g);
}

// ---- facts

GPUNUM_API gn_shape gn_shape_from(int rank, const int64_t *dims) {
    gn_shape s;
    memset(&s, 0, sizeof s);
    s.rank = rank;
    for (int i = 0; i < rank && i < GN_MAX_RANK; i++) s.dim[i] = dims[i];
    return s;
}

// Reports a shape that no array can have.
static bool gni_shape_ok(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s) {
    char text[200];
    if ((unsigned)t >= (unsigned)GN_DTYPE_COUNT) {
        gni_fail(g, GN_ERROR_DTYPE, "%s: %d is not a dtype", fn, (int)t);
        return false;
    }
    if (s->rank < 0 || s->rank > GN_MAX_RANK) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: rank %d is not in 0..%d", fn, s->rank, GN_MAX_RANK);
        return false;
    }
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] < 0) {
            gni_fail(g, GN_ERROR_SHAPE, "%s: negative dimension in %s", fn, gni_shape_text(text, sizeof text, s));
            return false;
        }
    if (gni_elements(s) < 0) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: %s has too many elements", fn, gni_shape_text(text, sizeof text, s));
        return false;
    }
    return true;
}

static bool gni_known(const gn_array *a) { return a != NULL && a->magic == GNI_ALIVE; }

GPUNUM_API gn_shape gn_shape_of(const gn_array *a) {
    if (gni_known(a)) return a->shape;
    return gn_shape_from(0, NULL);
}
GPUNUM_API gn_dtype gn_dtype_of(const gn_array *a) { return gni_known(a) ? a->dtype : GN_F32; }
GPUNUM_API int64_t gn_size(const gn_array *a) { return gni_known(a) ? gni_elements(&a->shape) : 0; }
GPUNUM_API size_t gn_bytes(const gn_array *a) {
    return gni_known(a) ? (size_t)gni_elements(&a->shape) * gn_dtype_size(a->dtype) : 0;
}
GPUNUM_API int gn_rank(const gn_array *a) { return gni_known(a) ? a->shape.rank : 0; }
GPUNUM_API int64_t gn_dim(const gn_array *a, int axis) {
    if (!gni_known(a)) return -1;
    int at = axis < 0 ? axis + a->shape.rank : axis;
    return at >= 0 && at < a->shape.rank ? a->shape.dim[at] : -1;
}
GPUNUM_API gn_context *gn_context_of(const gn_array *a) { return a != NULL ? a->ctx : NULL; }

GPUNUM_API size_t gn_dtype_size(gn_dtype t) {
    static const uint8_t size[] = {
#define GN_X(name, bytes, numpy, safetensors) bytes,
        GN_DTYPE_LIST(GN_X)
#undef GN_X
    };
    return (unsigned)t < (unsigned)GN_DTYPE_COUNT ? size[t] : 0;
}

GPUNUM_API const char *gn_dtype_name(gn_dtype t) {
    static const char *const text[] = {
#define GN_X(name, bytes, numpy, safetensors) numpy,
        GN_DTYPE_LIST(GN_X)
#undef GN_X
    };
    return (unsigned)t < (unsigned)GN_DTYPE_COUNT ? text[t] : "unknown";
}

static bool gni_is_float(gn_dtype t) { return t == GN_F32 || t == GN_F16 || t == GN_BF16 || t == GN_F64; }
static bool gni_is_complex(gn_dtype t) { return t == GN_C64 || t == GN_C128; }
static bool gni_is_integer(gn_dtype t) { return !gni_is_float(t) && !gni_is_complex(t) && t != GN_BOOL; }
static bool gni_is_wide(gn_dtype t) { return t == GN_F64 || t == GN_I64; }

GPUNUM_API gn_dtype gn_promote(gn_dtype a, gn_dtype b) {
    if ((unsigned)a >= (unsigned)GN_DTYPE_COUNT || (unsigned)b >= (unsigned)GN_DTYPE_COUNT)
        return GN_DTYPE_COUNT;
    if (a == b) return a;
    if (gni_is_complex(a) || gni_is_complex(b)) {
        bool big = a == GN_C128 || b == GN_C128 || a == GN_F64 || b == GN_F64;
        return big ? GN_C128 : GN_C64;
    }
    if (a == GN_BOOL) return b;
    if (b == GN_BOOL) return a;
    if (gni_is_float(a) != gni_is_float(b)) return gni_is_float(a) ? a : b;
    if (gni_is_float(a)) return a == GN_F64 || b == GN_F64 ? GN_F64 : GN_F32; // f16 with bf16 too
    if (a == GN_I64 || b == GN_I64) return GN_I64;
    bool has_u32 = a == GN_U32 || b == GN_U32, has_u8 = a == GN_U8 || b == GN_U8;
    if (has_u32) return has_u8 ? GN_U32 : GN_I64;
    return GN_I32; // i32 with a smaller one, u8 with i8
}

// ------------------------------------------------------------------------------------------
// >>create
// Arrays from nothing: constants (lazy) and sequences (computed in double on the CPU, as NumPy does).
// From outside: gni_store_double.

// The float next to x that has an odd last bit where x is not a float: rounding it once more to fewer
// bits gives what rounding x would.
static float gni_round_odd(double x) {
    float f = (float)x;
    if ((double)f == x || x != x || fabs(x) >= 3.4028234663852886e38) return f;
    uint32_t u = gni_f32_bits(f);
    if (fabs((double)f) > fabs(x)) u--;
    return gni_bits_f32(u | 1u);
}

// Truncates and saturates; NaN gives 0.
static int64_t gni_double_to_int(double x, double low, double high) {
    if (x != x) return 0;
    if (x <= low) return (int64_t)low;
    if (x >= high) return high >= 9223372036854775807.0 ? INT64_MAX : (int64_t)high;
    return (int64_t)x;
}

// Element i of `data` becomes x, converted as gn_cast does.
static void gni_store_double(gn_dtype t, void *data, int64_t i, double x) {
    switch (t) {
    case GN_F32: ((float *)data)[i] = (float)x; break;
    case GN_F16: ((uint16_t *)data)[i] = gni_f32_to_f16(gni_round_odd(x)); break;
    case GN_BF16: ((uint16_t *)data)[i] = gni_f32_to_bf16(gni_round_odd(x)); break;
    case GN_F64: ((double *)data)[i] = x; break;
    case GN_I32:
        ((int32_t *)data)[i] = (int32_t)gni_double_to_int(x, -2147483648.0, 2147483647.0);
        break;
    case GN_I64:
        ((int64_t *)data)[i] = gni_double_to_int(x, -9223372036854775808.0, 9223372036854775807.0);
        break;
    case GN_U8: ((uint8_t *)data)[i] = (uint8_t)gni_double_to_int(x, 0.0, 255.0); break;
    case GN_I8: ((int8_t *)data)[i] = (int8_t)gni_double_to_int(x, -128.0, 127.0); break;
    case GN_U32: ((uint32_t *)data)[i] = (uint32_t)gni_double_to_int(x, 0.0, 4294967295.0); break;
    case GN_BOOL: ((uint8_t *)data)[i] = (uint8_t)(x != 0.0); break;
    case GN_C64:
        ((float *)data)[2 * i] = (float)x;
        ((float *)data)[2 * i + 1] = 0.0f;
        break;
    case GN_C128:
        ((double *)data)[2 * i] = x;
        ((double *)data)[2 * i + 1] = 0.0;
        break;
    default: break;
    }
}

static gn_array *gni_make_full(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s,
                               double value) {
    if (!gni_shape_ok(g, fn, t, s)) return NULL;
    gn_array *y;
    if (t != GN_C64 && t != GN_C128) {
        y = gni_const(g, t, s, value);
    } else { // programs have no complex registers
        void *data;
        y = gni_array_filled(g, t, s, &data);
        int64_t n = gni_elements(s);
        for (int64_t i = 0; y != NULL && i < n; i++) gni_store_double(t, data, i, value);
    }
    if (y != NULL) y->maker = fn;
    return y;
}

static gn_array *gni_public_full(const char *fn, gn_context *g, gn_dtype t, const gn_shape *s,
                                 double value) {
    if (!gni_begin_context(fn, g)) return NULL;
    return gni_end(g, gni_make_full(g, fn, t, s, value));
}

static gn_array *gni_public_full_like(const char *fn, gn_array *a, double value) {
    gn_context *g = gni_begin(fn, &a, 1);
    return g == NULL ? NULL : gni_end(g, gni_make_full(g, fn, a->dtype, &a->shape, value));
}

GPUNUM_API gn_array *gn_zeros(gn_context *g, gn_dtype t, gn_shape s) {
    return gni_public_full("gn_zeros", g, t, &s, 0.0);
}

GPUNUM_API gn_array *gn_ones(gn_context *g, gn_dtype t, gn_shape s) {
    return gni_public_full("gn_ones", g, t, &s, 1.0);
}

GPUNUM_API gn_array *gn_full(gn_context *g, gn_dtype t, gn_shape s, double value) {
    return gni_public_full("gn_full", g, t, &s, value);
}

GPUNUM_API gn_array *gn_scalar(gn_context *g, gn_dtype t, double value) {
    gn_shape s = gn_shape_from(0, NULL);
    return gni_public_full("gn_scalar", g, t, &s, value);
}

GPUNUM_API gn_array *gn_zeros_like(gn_array *a) {
    return gni_public_full_like("gn_zeros_like", a, 0.0);
}

GPUNUM_API gn_array *gn_ones_like(gn_array *a) {
    return gni_public_full_like("gn_ones_like", a, 1.0);
}

GPUNUM_API gn_array *gn_full_like(gn_array *a, double value) {
    return gni_public_full_like("gn_full_like", a, value);
}

// CPU memory for an array that the caller fills.
static gn_array *gni_make_filled(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s,
                                 void **data) {
    if (!gni_shape_ok(g, fn, t, s)) return NULL;
    gn_array *y = gni_array_filled(g, t, s, data);
    if (y != NULL) y->maker = fn;
    return y;
}

GPUNUM_API gn_array *gn_empty(gn_context *g, gn_dtype t, gn_shape s) {
    if (!gni_begin_context("gn_empty", g)) return NULL;
    gn_array *y = gni_shape_ok(g, "gn_empty", t, &s) ? gni_array_new(g, t, &s) : NULL;
    if (y != NULL) y->maker = "gn_empty";
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_eye(gn_context *g, gn_dtype t, int64_t n, int64_t m, int64_t k) {
    if (!gni_begin_context("gn_eye", g)) return NULL;
    gn_shape s = {2, {n, m}};
    void *data;
    gn_array *y = gni_make_filled(g, "gn_eye", t, &s, &data);
    if (y == NULL) return gni_end(g, NULL);
    memset(data, 0, (size_t)(n * m) * gn_dtype_size(t)); // zero of every dtype is zero bits
    int64_t row = k < 0 ? (k < -n ? n : -k) : 0;
    for (; row < n && k < m - row; row++) gni_store_double(t, data, row * m + row + k, 1.0);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_arange(gn_context *g, gn_dtype t, double start, double stop, double step) {
    if (!gni_begin_context("gn_arange", g)) return NULL;
    double length = ceil((stop - start) / step);
    if (!(fabs(length) < GNI_INF)) {
        gni_fail(g, GN_ERROR_ARGUMENT,
                 "gn_arange: cannot compute the length from start %g, stop %g, step %g", start,
                 stop, step);
        return gni_end(g, NULL);
    }
    if (length >= 9e18) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_arange: %g elements are too many", length);
        return gni_end(g, NULL);
    }
    int64_t n = length > 0.0 ? (int64_t)length : 0;
    gn_shape s = {1, {n}};
    void *data;
    gn_array *y = gni_make_filled(g, "gn_arange", t, &s, &data);
    // NumPy's rule: the distance of the first two values, not `step`, is what is repeated.
    double delta = (start + step) - start;
    for (int64_t i = 0; y != NULL && i < n; i++)
        gni_store_double(t, data, i, start + (double)i * delta);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_linspace(gn_context *g, gn_dtype t, double start, double stop,
                                 int64_t count) {
    if (!gni_begin_context("gn_linspace", g)) return NULL;
    gn_shape s = {1, {count}};
    void *data;
    gn_array *y = gni_make_filled(g, "gn_linspace", t, &s, &data);
    if (y == NULL) return gni_end(g, NULL);
    double divisions = (double)(count - 1), delta = stop - start, step = delta / divisions;
    bool whole = t == GN_I32 || t == GN_I64 || t == GN_U8 || t == GN_I8 || t == GN_U32;
    for (int64_t i = 0; i < count; i++) {
        double x = count == 1 ? start
                   : step == 0
                       ? (double)i / divisions * delta + start // step is below the smallest number
                       : (double)i * step + start;
        if (i > 0 && i == count - 1) x = stop;
        gni_store_double(t, data, i, whole ? floor(x) : x);
    }
    return gni_end(g, y);
}

// ------------------------------------------------------------------------------------------
// >>views_ops
// Arrays that look at other arrays' memory, and the joins and gathers that fill new memory.

// ---- axes

// Turns a set of GN_AXIS bits into a set of axes of the array; false after gni_fail.
static bool gni_view_axes(gn_context *g, const char *fn, uint32_t bits, int rank, uint32_t *axes) {
    *axes = 0;
    if (bits == GN_ALL) {
        *axes = (1u << rank) - 1u;
        return true;
    }
    if (bits & ~0xffffu) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: 0x%x is not a set of GN_AXIS", fn, (unsigned)bits);
        return false;
    }
    for (int i = -GN_MAX_RANK; i < GN_MAX_RANK; i++) {
        if (!(bits & GN_AXIS(i))) continue;
        int axis = gni_axis(g, fn, i, rank);
        if (axis < 0) return false;
        *axes |= 1u << axis;
    }
    return true;
}

static gn_array *gni_view_of(gn_context *g, const char *fn, gn_array *a, const gn_shape *s,
                             const int64_t *stride, int64_t offset) {
    gn_array *y = gni_array_view(g, a, s, stride, offset);
    if (y != NULL) y->maker = fn;
    return y;
}

// ---- reshape

// Strides that show a's elements as shape `s` in C order, if there are any. Old axes are gathered from
// the innermost into runs of even steps, and new axes are cut from the runs.
static bool gni_reshape_strides(const gn_array *a, const gn_shape *s, int64_t *stride) {
    gni_strides_of(s, stride);
    if (gni_elements(s) == 0) return true;
    const int64_t *dim = a->shape.dim;
    int at = a->shape.rank;
    int64_t left = 1, step = 0; // elements of the run not handed out, and their distance
    for (int i = s->rank - 1; i >= 0; i--) {
        if (s->dim[i] == 1) continue;
        if (left == 1) {
            while (dim[at - 1] == 1) at--;
            left = dim[--at];
            step = a->stride[at];
            for (; at > 0 && (dim[at - 1] == 1 || a->stride[at - 1] == step * left); at--)
                left *= dim[at - 1];
        }
        if (left % s->dim[i] != 0) return false;
        stride[i] = step;
        step *= s->dim[i];
        left /= s->dim[i];
    }
    return true;
}

// Fills in a -1 and checks the size; false after gni_fail.
static bool gni_reshape_resolve(gn_context *g, const char *fn, const gn_array *a, gn_shape *s) {
    char text[200];
    int unknown = -1;
    int64_t n = gni_elements(&a->shape);
    gn_shape known = *s;
    if (s->rank < 0 || s->rank > GN_MAX_RANK) return gni_shape_ok(g, fn, a->dtype, s);
    gni_shape_text(text, sizeof text, s);
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] != -1) continue;
        if (unknown >= 0) {
            gni_fail(g, GN_ERROR_SHAPE, "%s: only one dimension may be -1: %s", fn, text);
            return false;
        }
        unknown = i;
        known.dim[i] = 1;
    }
    if (!gni_shape_ok(g, fn, a->dtype, &known)) return false;
    int64_t rest = gni_elements(&known);
    if (unknown >= 0 ? rest == 0 || n % rest != 0 : rest != n) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: cannot reshape array of size %lld into shape %s", fn,
                 (long long)n, text);
        return false;
    }
    if (unknown >= 0) s->dim[unknown] = n / rest;
    return true;
}

// A view of shape `s`, or of a copy; recorded.
static gn_array *gni_reshaped(gn_context *g, const char *fn, gn_array *a, gn_shape s) {
    int64_t stride[GN_MAX_RANK];
    if (!gni_reshape_resolve(g, fn, a, &s) || !gni_materialize(g, a)) return NULL;
    gn_array *y;
    if (gni_reshape_strides(a, &s, stride)) {
        y = gni_view_of(g, fn, a, &s, stride, a->offset);
    } else {
        gn_array *copy = gni_contiguous(g, a);
        if (copy == NULL) return NULL;
        gni_strides_of(&s, stride);
        y = gni_view_of(g, fn, copy, &s, stride, copy->offset);
        gni_unref(g, copy);
    }
    if (y != NULL && gni_tracks(g, &a, 1)) {
        gni_node *n = gni_record(g, y, fn, gni_back_reshape, &a, 1);
        if (n != NULL) n->shape = a->shape;
    }
    return y;
}

GPUNUM_API gn_array *gn_reshape(gn_array *a, gn_shape s) {
    gn_context *g = gni_begin("gn_reshape", &a, 1);
    return g == NULL ? NULL : gni_end(g, gni_reshaped(g, "gn_reshape", a, s));
}

GPUNUM_API gn_array *gn_ravel(gn_array *a) {
    gn_context *g = gni_begin("gn_ravel", &a, 1);
    if (g == NULL) return NULL;
    int64_t n = gni_elements(&a->shape);
    return gni_end(g, gni_reshaped(g, "gn_ravel", a, gn_shape_from(1, &n)));
}

GPUNUM_API gn_array *gn_expand_dims(gn_array *a, int axis) {
    gn_context *g = gni_begin("gn_expand_dims", &a, 1);
    if (g == NULL) return NULL;
    gn_shape s = a->shape;
    int at = gni_axis(g, "gn_expand_dims", axis, s.rank + 1);
    if (at < 0) return gni_end(g, NULL);
    if (s.rank == GN_MAX_RANK) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_expand_dims: the rank would be %d, the most is %d",
                 s.rank + 1, GN_MAX_RANK);
        return gni_end(g, NULL);
    }
    for (int i = s.rank++; i > at; i--) s.dim[i] = s.dim[i - 1];
    s.dim[at] = 1;
    return gni_end(g, gni_reshaped(g, "gn_expand_dims", a, s));
}

GPUNUM_API gn_array *gn_squeeze(gn_array *a, uint32_t axes) {
    gn_context *g = gni_begin("gn_squeeze", &a, 1);
    if (g == NULL) return NULL;
    uint32_t set;
    if (!gni_view_axes(g, "gn_squeeze", axes, a->shape.rank, &set)) return gni_end(g, NULL);
    gn_shape s = gn_shape_from(0, NULL);
    for (int i = 0; i < a->shape.rank; i++) {
        bool drop = (set >> i) & 1u;
        if (drop && a->shape.dim[i] != 1 && axes != GN_ALL) {
            char text[200];
            gni_fail(g, GN_ERROR_SHAPE, "gn_squeeze: axis %d of %s has size %lld, not 1", i,
                     gni_shape_text(text, sizeof text, &a->shape), (long long)a->shape.dim[i]);
            return gni_end(g, NULL);
        }
        if (!drop || a->shape.dim[i] != 1) s.dim[s.rank++] = a->shape.dim[i];
    }
    return gni_end(g, gni_reshaped(g, "gn_squeeze", a, s));
}

// ---- order of axes

// `axes` is a permutation.
static gn_array *gni_permuted(gn_context *g, const char *fn, gn_array *a, const int *axes) {
    if (!gni_materialize(g, a)) return NULL;
    gn_shape s = a->shape;
    int64_t stride[GN_MAX_RANK];
    for (int i = 0; i < s.rank; i++) {
        s.dim[i] = a->shape.dim[axes[i]];
        stride[i] = a->stride[axes[i]];
    }
    gn_array *y = gni_view_of(g, fn, a, &s, stride, a->offset);
    if (y != NULL && gni_tracks(g, &a, 1)) {
        gni_node *n = gni_record(g, y, fn, gni_back_permute, &a, 1);
        for (int i = 0; n != NULL && i < s.rank; i++) n->param[i] = axes[i];
    }
    return y;
}

GPUNUM_API gn_array *gn_permute_axes(gn_array *a, const int *axes, int count) {
    gn_context *g = gni_begin("gn_permute_axes", &a, 1);
    if (g == NULL) return NULL;
    int order[GN_MAX_RANK];
    uint32_t seen = 0;
    if (count != a->shape.rank || (axes == NULL && count > 0)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_permute_axes: %d axes for an array of rank %d",
                 axes ? count : 0, a->shape.rank);
        return gni_end(g, NULL);
    }
    for (int i = 0; i < count; i++) {
        order[i] = gni_axis(g, "gn_permute_axes", axes[i], count);
        if (order[i] < 0) return gni_end(g, NULL);
        if (seen & (1u << order[i])) {
            gni_fail(g, GN_ERROR_ARGUMENT, "gn_permute_axes: axis %d comes twice", order[i]);
            return gni_end(g, NULL);
        }
        seen |= 1u << order[i];
    }
    return gni_end(g, gni_permuted(g, "gn_permute_axes", a, order));
}

GPUNUM_API gn_array *gn_transpose(gn_array *a) {
    gn_context *g = gni_begin("gn_transpose", &a, 1);
    if (g == NULL) return NULL;
    int order[GN_MAX_RANK];
    for (int i = 0; i < a->shape.rank; i++) order[i] = a->shape.rank - 1 - i;
    return gni_end(g, gni_permuted(g, "gn_transpose", a, order));
}

GPUNUM_API gn_array *gn_swap_axes(gn_array *a, int axis1, int axis2) {
    gn_context *g = gni_begin("gn_swap_axes", &a, 1);
    if (g == NULL) return NULL;
    int order[GN_MAX_RANK];
    int i1 = gni_axis(g, "gn_swap_axes", axis1, a->shape.rank);
    int i2 = i1 < 0 ? -1 : gni_axis(g, "gn_swap_axes", axis2, a->shape.rank);
    if (i2 < 0) return gni_end(g, NULL);
    for (int i = 0; i < a->shape.rank; i++) order[i] = i == i1 ? i2 : i == i2 ? i1 : i;
    return gni_end(g, gni_permuted(g, "gn_swap_axes", a, order));
}

GPUNUM_API gn_array *gn_move_axis(gn_array *a, int from, int to) {
    gn_context *g = gni_begin("gn_move_axis", &a, 1);
    if (g == NULL) return NULL;
    int order[GN_MAX_RANK];
    int source = gni_axis(g, "gn_move_axis", from, a->shape.rank);
    int target = source < 0 ? -1 : gni_axis(g, "gn_move_axis", to, a->shape.rank);
    if (target < 0) return gni_end(g, NULL);
    for (int i = 0, next = 0; i < a->shape.rank; i++) {
        if (next == source) next++;
        order[i] = i == target ? source : next++;
    }
    return gni_end(g, gni_permuted(g, "gn_move_axis", a, order));
}

// ---- broadcasting, slices

GPUNUM_API gn_array *gn_broadcast_to(gn_array *a, gn_shape s) {
    gn_context *g = gni_begin("gn_broadcast_to", &a, 1);
    if (g == NULL) return NULL;
    if (!gni_shape_ok(g, "gn_broadcast_to", a->dtype, &s) || !gni_materialize(g, a))
        return gni_end(g, NULL);
    int64_t stride[GN_MAX_RANK] = {0, 0, 0, 0, 0, 0, 0, 0};
    int lead = s.rank - a->shape.rank;
    bool fits = lead >= 0;
    for (int i = 0; fits && i < a->shape.rank; i++) {
        fits = a->shape.dim[i] == 1 || a->shape.dim[i] == s.dim[lead + i];
        if (a->shape.dim[i] != 1) stride[lead + i] = a->stride[i];
    }
    if (!fits) {
        char from[200], to[200];
        gni_fail(g, GN_ERROR_SHAPE, "gn_broadcast_to: shape %s does not broadcast to %s",
                 gni_shape_text(from, sizeof from, &a->shape), gni_shape_text(to, sizeof to, &s));
        return gni_end(g, NULL);
    }
    gn_array *y = gni_view_of(g, "gn_broadcast_to", a, &s, stride, a->offset);
    if (y != NULL && gni_tracks(g, &a, 1)) {
        gni_node *n = gni_record(g, y, "gn_broadcast_to", gni_back_broadcast, &a, 1);
        if (n != NULL) n->shape = a->shape;
    }
    return gni_end(g, y);
}

// Python's rules for start:stop:step over n elements. Returns how many are taken; start and step then say
// where. step is not 0.
static int64_t gni_slice_range(int64_t n, int64_t *start, int64_t stop, int64_t *step) {
    if (*step == GN_NONE) *step = 1;
    bool up = *step > 0;
    int64_t low = up ? 0 : -1, high = up ? n : n - 1; // what start and stop are clamped to
    int64_t from = *start, to = stop;
    if (from == GN_NONE)
        from = up ? low : high;
    else
        from = GNI_MIN(GNI_MAX(from < 0 ? from + n : from, low), high);
    if (to == GN_NONE)
        to = up ? high : low;
    else
        to = GNI_MIN(GNI_MAX(to < 0 ? to + n : to, low), high);
    int64_t count = 0;
    if (up && from < to) count = (to - from - 1) / *step + 1;
    if (!up && to < from) count = (from - to - 1) / -*step + 1;
    if (count <= 1) *step = 1; // a huge step must not overflow a stride
    *start = count == 0 ? 0 : from;
    return count;
}

static gn_array *gni_sliced(gn_context *g, const char *fn, gn_array *a, int axis, int64_t start,
                            int64_t stop, int64_t step) {
    if (!gni_materialize(g, a)) return NULL;
    gn_shape s = a->shape;
    int64_t stride[GN_MAX_RANK];
    memcpy(stride, a->stride, sizeof stride);
    s.dim[axis] = gni_slice_range(s.dim[axis], &start, stop, &step);
    stride[axis] *= step;
    gn_array *y = gni_view_of(g, fn, a, &s, stride, a->offset + start * a->stride[axis]);
    if (y != NULL && gni_tracks(g, &a, 1)) {
        gni_node *n = gni_record(g, y, fn, gni_back_slice, &a, 1);
        if (n != NULL) {
            n->param[0] = axis;
            n->param[1] = start;
            n->param[2] = step;
            n->shape = a->shape;
        }
    }
    return y;
}

GPUNUM_API gn_array *gn_slice(gn_array *a, int axis, int64_t start, int64_t stop, int64_t step) {
    gn_context *g = gni_begin("gn_slice", &a, 1);
    if (g == NULL) return NULL;
    int at = gni_axis(g, "gn_slice", axis, a->shape.rank);
    if (at >= 0 && step == 0) gni_fail(g, GN_ERROR_ARGUMENT, "gn_slice: the step is 0");
    return gni_end(g, at < 0 || step == 0 ? NULL
                                          : gni_sliced(g, "gn_slice", a, at, start, stop, step));
}

GPUNUM_API gn_array *gn_flip(gn_array *a, uint32_t axes) {
    gn_context *g = gni_begin("gn_flip", &a, 1);
    if (g == NULL) return NULL;
    uint32_t set;
    if (!gni_view_axes(g, "gn_flip", axes, a->shape.rank, &set) || !gni_materialize(g, a))
        return gni_end(g, NULL);
    int64_t stride[GN_MAX_RANK], offset = a->offset;
    for (int i = 0; i < a->shape.rank; i++) {
        stride[i] = a->stride[i];
        if (!((set >> i) & 1u) || a->shape.dim[i] == 0) continue;
        offset += (a->shape.dim[i] - 1) * stride[i];
        stride[i] = -stride[i];
    }
    gn_array *y = gni_view_of(g, "gn_flip", a, &a->shape, stride, offset);
    if (y != NULL && gni_tracks(g, &a, 1)) {
        gni_node *n = gni_record(g, y, "gn_flip", gni_back_flip, &a, 1);
        if (n != NULL) n->param[0] = (int64_t)set;
    }
    return gni_end(g, y);
}

// ---- indexing by text

typedef enum gni_item_kind {
    GNI_ITEM_INT,
    GNI_ITEM_SLICE,
    GNI_ITEM_ELLIPSIS,
    GNI_ITEM_NEW
} gni_item_kind;
typedef struct gni_item {
    gni_item_kind kind;
    int64_t start, stop, step; // an integer is in `start`
} gni_item;

enum { GNI_MAX_ITEMS = 2 * GN_MAX_RANK + 1 };

typedef struct gni_subscript {
    const char *text, *at;
    const char *wrong;  // NULL, or what is wrong at `at`
    int count, indexed; // items, and how many of them stand for an axis of the source
    bool ellipsis;
    gni_item item[GNI_MAX_ITEMS];
} gni_subscript;

static void gni_skip_blanks(gni_subscript *p) {
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r') p->at++;
}

static bool gni_accept(gni_subscript *p, const char *word) {
    size_t n = strlen(word);
    gni_skip_blanks(p);
    if (strncmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

// An optional integer; beyond 63 bits it saturates, like any index that is out of range.
static bool gni_accept_int(gni_subscript *p, int64_t *value) {
    gni_skip_blanks(p);
    const char *start = p->at, *digit = start;
    bool negative = *digit == '-';
    if (*digit == '-' || *digit == '+') digit++;
    if (*digit < '0' || *digit > '9') return false;
    int64_t v = 0;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        v = v > (INT64_MAX - 9) / 10 ? INT64_MAX : v * 10 + (*digit - '0');
    *value = negative ? -v : v;
    p->at = digit;
    return true;
}

static void gni_parse_item(gni_subscript *p, gni_item *item) {
    item->kind = GNI_ITEM_SLICE;
    item->start = item->stop = item->step = GN_NONE;
    if (gni_accept(p, "...")) {
        item->kind = GNI_ITEM_ELLIPSIS;
        if (p->ellipsis) p->wrong = "a second ellipsis";
        p->ellipsis = true;
        return;
    }
    if (gni_accept(p, "None") || gni_accept(p, "newaxis")) {
        item->kind = GNI_ITEM_NEW;
        return;
    }
    p->indexed++;
    bool number = gni_accept_int(p, &item->start);
    if (!gni_accept(p, ":")) {
        item->kind = GNI_ITEM_INT;
        if (!number) p->wrong = "an integer, a slice, '...' or None was expected";
        return;
    }
    gni_accept_int(p, &item->stop);
    if (!gni_accept(p, ":")) return;
    gni_skip_blanks(p);
    const char *before = p->at;
    if (!gni_accept_int(p, &item->step) || item->step != 0) return;
    p->at = before;
    p->wrong = "the step is 0";
}

static void gni_parse_subscript(gni_subscript *p) {
    gni_skip_blanks(p);
    while (*p->at != 0 && p->wrong == NULL) {
        if (p->count == GNI_MAX_ITEMS) {
            p->wrong = "too many items";
            return;
        }
        gni_parse_item(p, &p->item[p->count++]);
        gni_skip_blanks(p);
        if (p->wrong != NULL || *p->at == 0) return;
        if (!gni_accept(p, ",")) p->wrong = "',' was expected";
        gni_skip_blanks(p);
    }
}

// Takes one integer or slice out of the array; the axis stays, with size 1 for an integer.
static gn_array *gni_index_axis(gn_context *g, gn_array *a, int axis, const gni_item *item) {
    int64_t n = a->shape.dim[axis], i = item->start;
    if (item->kind == GNI_ITEM_SLICE) {
        if (i == GN_NONE && item->stop == GN_NONE && (item->step == GN_NONE || item->step == 1)) {
            gni_ref(a);
            return a;
        }
        return gni_sliced(g, "gn_index", a, axis, i, item->stop, item->step);
    }
    if (i < -n || i >= n) {
        gni_fail(g, GN_ERROR_ARGUMENT,
                 "gn_index: index %lld is out of bounds for axis %d with size %lld", (long long)i,
                 axis, (long long)n);
        return NULL;
    }
    if (i < 0) i += n;
    return gni_sliced(g, "gn_index", a, axis, i, i + 1, 1);
}

static gn_array *gni_indexed(gn_context *g, gn_array *a, const gni_subscript *p) {
    gn_shape s = gn_shape_from(0, NULL);
    int axis = 0,
        kept = a->shape.rank - p->indexed; // axes that the ellipsis, or the end, stands for
    gn_array *y = a;
    gni_ref(y);
    for (int i = 0; i <= p->count; i++) {
        bool whole = i == p->count ? !p->ellipsis : p->item[i].kind == GNI_ITEM_ELLIPSIS;
        for (int k = 0; whole && k < kept; k++, axis++)
            if (s.rank++ < GN_MAX_RANK) s.dim[s.rank - 1] = a->shape.dim[axis];
        if (i == p->count || whole) continue;
        const gni_item *item = &p->item[i];
        if (item->kind == GNI_ITEM_NEW) {
            if (s.rank++ < GN_MAX_RANK) s.dim[s.rank - 1] = 1;
            continue;
        }
        gn_array *next = gni_index_axis(g, y, axis, item);
        gni_unref(g, y);
        y = next;
        if (y == NULL) return NULL;
        if (item->kind == GNI_ITEM_SLICE && s.rank++ < GN_MAX_RANK)
            s.dim[s.rank - 1] = y->shape.dim[axis];
        axis++;
    }
    if (y != a && gni_same_shape(&y->shape, &s)) return y;
    gn_array *z = gni_reshaped(g, "gn_index", y, s);
    gni_unref(g, y);
    return z;
}

GPUNUM_API gn_array *gn_index(gn_array *a, const char *subscript) {
    gn_context *g = gni_begin("gn_index", &a, 1);
    if (g == NULL) return NULL;
    gni_subscript p;
    memset(&p, 0, sizeof p);
    p.text = p.at = subscript != NULL ? subscript : "";
    gni_parse_subscript(&p);
    if (p.wrong != NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_index: %s at character %d of \"%.200s\"", p.wrong,
                 (int)(p.at - p.text) + 1, p.text);
        return gni_end(g, NULL);
    }
    if (p.indexed > a->shape.rank) {
        gni_fail(g, GN_ERROR_ARGUMENT,
                 "gn_index: \"%.200s\" has %d indices for an array of rank %d", p.text, p.indexed,
                 a->shape.rank);
        return gni_end(g, NULL);
    }
    return gni_end(g, gni_indexed(g, a, &p));
}

// ---- joins

// The dtype that all of them promote to; GN_DTYPE_COUNT after gni_fail.
static gn_dtype gni_join_dtype(gn_context *g, const char *fn, gn_array *const *arrays, int count) {
    gn_dtype t = arrays[0]->dtype;
    for (int i = 1; i < count; i++) {
        gn_dtype both = gn_promote(t, arrays[i]->dtype);
        if (both == GN_DTYPE_COUNT) {
            gni_fail(g, GN_ERROR_DTYPE, "%s: %s and %s have no common dtype", fn, gn_dtype_name(t),
                     gn_dtype_name(arrays[i]->dtype));
            return both;
        }
        t = both;
    }
    return t;
}

// Copies array i to place[i] (elements) of y and records the join. Arrays of another dtype are cast first
// when gradients flow, since the cast's own record turns the gradient back.
static bool gni_join(gn_context *g, const char *fn, gn_array *y, gn_array *const *arrays, int count,
                     const int64_t *place, const int64_t *stride, gni_backward_fn backward,
                     int axis) {
    y->buf = gni_buffer_new(g, (uint64_t)gni_elements(&y->shape) * gn_dtype_size(y->dtype));
    if (y->buf == NULL) return false;
    for (int i = 0; i < count; i++) {
        if (gni_elements(&arrays[i]->shape) == 0) continue;
        if (!gni_copy_into(g, y->buf, y->dtype, place[i], stride, arrays[i])) return false;
    }
    if (!gni_tracks(g, arrays, count)) return true;
    gn_array **in = (gn_array **)gni_alloc(g, sizeof(gn_array *) * (size_t)count);
    if (in == NULL) {
        gni_fail_memory(g, fn, sizeof(gn_array *) * (size_t)count);
        return false;
    }
    bool ok = true;
    for (int i = 0; i < count && ok; i++) {
        bool same = arrays[i]->dtype == y->dtype || !gni_tracks(g, &arrays[i], 1);
        in[i] = same ? arrays[i] : gn_cast(arrays[i], y->dtype);
        ok = in[i] != NULL;
    }
    gni_node *n = ok ? gni_record(g, y, fn, backward, in, count) : NULL;
    if (n != NULL) n->param[0] = axis;
    gni_free(g, in);
    return n != NULL;
}

// Whether array i fits to array 0 on every axis but one (or all with axis -1).
static bool gni_join_fits(gn_context *g, const char *fn, gn_array *const *arrays, int i, int axis) {
    const gn_shape *a = &arrays[0]->shape, *b = &arrays[i]->shape;
    bool fits = a->rank == b->rank;
    for (int k = 0; fits && k < a->rank; k++) fits = k == axis || a->dim[k] == b->dim[k];
    if (fits) return true;
    char ta[200], tb[200];
    gni_fail(g, GN_ERROR_SHAPE,
             axis < 0 ? "%s: array 0 has shape %s, array %d has %s"
                      : "%s: array 0 has shape %s, array %d has %s: only axis %d may differ",
             fn, gni_shape_text(ta, sizeof ta, a), i, gni_shape_text(tb, sizeof tb, b), axis);
    return false;
}

static gn_array *gni_concatenated(gn_context *g, gn_array *const *arrays, int count, int axis,
                                  int64_t *place) {
    const char *fn = "gn_concat";
    gn_shape s = arrays[0]->shape;
    if (s.rank == 0) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: arrays of rank 0 have no axis to join: use gn_stack", fn);
        return NULL;
    }
    int at = gni_axis(g, fn, axis, s.rank);
    gn_dtype t = at < 0 ? GN_DTYPE_COUNT : gni_join_dtype(g, fn, arrays, count);
    if (t == GN_DTYPE_COUNT) return NULL;
    s.dim[at] = 0;
    for (int i = 0; i < count; i++) {
        if (!gni_join_fits(g, fn, arrays, i, at)) return NULL;
        place[i] = s.dim[at];
        if (arrays[i]->shape.dim[at] > INT64_MAX - s.dim[at])
            s.dim[at] = INT64_MAX;
        else
            s.dim[at] += arrays[i]->shape.dim[at];
    }
    if (!gni_shape_ok(g, fn, t, &s)) return NULL;
    gn_array *y = gni_array_new(g, t, &s);
    if (y == NULL) return NULL;
    y->maker = fn;
    for (int i = 0; i < count; i++) place[i] *= y->stride[at];
    if (gni_join(g, fn, y, arrays, count, place, y->stride, gni_back_concat, at)) return y;
    gni_unref(g, y);
    return NULL;
}

static gn_array *gni_stacked(gn_context *g, gn_array *const *arrays, int count, int axis,
                             int64_t *place) {
    const char *fn = "gn_stack";
    gn_shape s = arrays[0]->shape;
    int at = gni_axis(g, fn, axis, s.rank + 1);
    gn_dtype t = at < 0 ? GN_DTYPE_COUNT : gni_join_dtype(g, fn, arrays, count);
    if (t == GN_DTYPE_COUNT) return NULL;
    for (int i = 1; i < count; i++)
        if (!gni_join_fits(g, fn, arrays, i, -1)) return NULL;
    if (s.rank == GN_MAX_RANK) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: the rank would be %d, the most is %d", fn, s.rank + 1,
                 GN_MAX_RANK);
        return NULL;
    }
    for (int i = s.rank++; i > at; i--) s.dim[i] = s.dim[i - 1];
    s.dim[at] = count;
    if (!gni_shape_ok(g, fn, t, &s)) return NULL;
    gn_array *y = gni_array_new(g, t, &s);
    if (y == NULL) return NULL;
    y->maker = fn;
    int64_t stride[GN_MAX_RANK]; // of one array's place
    for (int i = 0; i < s.rank - 1; i++) stride[i] = y->stride[i < at ? i : i + 1];
    for (int i = 0; i < count; i++) place[i] = i * y->stride[at];
    if (gni_join(g, fn, y, arrays, count, place, stride, gni_back_stack, at)) return y;
    gni_unref(g, y);
    return NULL;
}

static gn_array *gni_public_join(const char *fn, gn_array *const *arrays, int count, int axis,
                                 bool stack) {
    gn_context *g = count > 0 && arrays != NULL ? gni_begin(fn, arrays, count) : NULL;
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    int64_t *place = (int64_t *)gni_alloc(g, sizeof(int64_t) * (size_t)count);
    if (place == NULL) {
        gni_fail_memory(g, fn, sizeof(int64_t) * (size_t)count);
        return gni_end(g, NULL);
    }
    gn_scope_begin(g); // for casts
    y = stack ? gni_stacked(g, arrays, count, axis, place)
              : gni_concatenated(g, arrays, count, axis, place);
    gn_scope_end(g);
    gni_free(g, place);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_concat(gn_array *const *arrays, int count, int axis) {
    return gni_public_join("gn_concat", arrays, count, axis, false);
}

GPUNUM_API gn_array *gn_stack(gn_array *const *arrays, int count, int axis) {
    return gni_public_join("gn_stack", arrays, count, axis, true);
}

// ---- gathers

static bool gni_need_integers(gn_context *g, const char *fn, const gn_array *indices) {
    if (gni_is_integer(indices->dtype)) return true;
    gni_fail(g, GN_ERROR_DTYPE, "%s: indices must be integers, not %s", fn,
             gn_dtype_name(indices->dtype));
    return false;
}

// The indices in C order as int32 or int64; one reference.
static gn_array *gni_take_indices(gn_context *g, gn_array *indices) {
    gn_dtype t = indices->dtype;
    if (t == GN_I32 || t == GN_I64) return gni_contiguous(g, indices);
    gn_array *y = gni_array_new(g, t == GN_U32 ? GN_I64 : GN_I32, &indices->shape);
    if (y == NULL) return NULL;
    y->buf = gni_buffer_new(g, (uint64_t)gni_elements(&y->shape) * gn_dtype_size(y->dtype));
    if (y->buf != NULL && gni_copy_into(g, y->buf, y->dtype, 0, y->stride, indices)) return y;
    gni_unref(g, y);
    return NULL;
}

// Indices that the CPU has are checked.
static bool gni_take_in_range(gn_context *g, const gn_array *indices, int64_t extent, int axis) {
    if (!(indices->buf->where & GNI_ON_CPU)) return true;
    const int32_t *i32 = (const int32_t *)indices->buf->host + indices->offset;
    const int64_t *i64 = (const int64_t *)indices->buf->host + indices->offset;
    int64_t n = gni_elements(&indices->shape);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = indices->dtype == GN_I64 ? i64[i] : i32[i];
        if (at >= -extent && at < extent) continue;
        gni_fail(g, GN_ERROR_ARGUMENT,
                 "gn_take: index %lld is out of bounds for axis %d with size %lld", (long long)at,
                 axis, (long long)extent);
        return false;
    }
    return true;
}

static void gni_take_operand(const gn_array *a, gni_operand *o) {
    memset(o, 0, sizeof *o);
    o->buf = a->buf;
    o->dtype = a->dtype;
    o->offset = a->offset;
}

// `source` and `indices` are in C order.
static gn_array *gni_taken(gn_context *g, gn_array *source, gn_array *indices, int axis) {
    gn_shape s = gn_shape_from(0, NULL);
    gni_take job;
    memset(&job, 0, sizeof job);
    job.outer = job.inner = 1;
    job.extent = source->shape.dim[axis];
    job.count = gni_elements(&indices->shape);
    for (int i = 0; i < axis; i++) s.dim[s.rank++] = source->shape.dim[i];
    for (int i = 0; i < indices->shape.rank; i++) s.dim[s.rank++] = indices->shape.dim[i];
    for (int i = axis + 1; i < source->shape.rank; i++) s.dim[s.rank++] = source->shape.dim[i];
    if (!gni_shape_ok(g, "gn_take", source->dtype, &s)) return NULL;
    int64_t n = gni_elements(&s);
    if (n > 0 && job.extent == 0) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_take: cannot take from axis %d with size 0", axis);
        return NULL;
    }
    bool none = false; // no row is looked at
    for (int i = 0; i < axis; i++) none = none || s.dim[i] == 0;
    if (!none && !gni_take_in_range(g, indices, job.extent, axis)) return NULL;
    gn_array *y = gni_array_new(g, source->dtype, &s);
    if (y == NULL) return NULL;
    y->maker = "gn_take";
    for (int i = 0; i < axis && n > 0; i++) job.outer *= source->shape.dim[i];
    for (int i = axis + 1; i < source->shape.rank && n > 0; i++) job.inner *= source->shape.dim[i];
    y->buf = gni_buffer_new(g, (uint64_t)n * gn_dtype_size(y->dtype));
    gni_take_operand(source, &job.in);
    gni_take_operand(indices, &job.index);
    if (y->buf != NULL) gni_take_operand(y, &job.out);
    if (y->buf == NULL || (n > 0 && !gni_run(g, GNI_JOB_TAKE, &job, y))) {
        gni_unref(g, y);
        return NULL;
    }
    return y;
}

GPUNUM_API gn_array *gn_take(gn_array *a, gn_array *indices, int axis) {
    gn_array *in[2];
    in[0] = a;
    in[1] = indices;
    gn_context *g = gni_begin("gn_take", in, 2);
    if (g == NULL) return NULL;
    int at = gni_axis(g, "gn_take", axis, a->shape.rank);
    if (at < 0 || !gni_need_integers(g, "gn_take", indices)) return gni_end(g, NULL);
    if (a->shape.rank - 1 + indices->shape.rank > GN_MAX_RANK) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_take: the rank would be %d, the most is %d",
                 a->shape.rank - 1 + indices->shape.rank, GN_MAX_RANK);
        return gni_end(g, NULL);
    }
    gn_array *source = gni_contiguous(g, a), *index = NULL, *y = NULL;
    if (source != NULL) index = gni_take_indices(g, indices);
    if (index != NULL) y = gni_taken(g, source, index, at);
    gni_unref(g, source);
    gni_unref(g, index);
    if (y != NULL && gni_tracks(g, &a, 1)) {
        gni_node *n = gni_record(g, y, "gn_take", gni_back_take, in, 2);
        if (n != NULL) n->param[0] = at;
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_one_hot(gn_array *indices, int64_t classes, gn_dtype t) {
    gn_context *g = gni_begin("gn_one_hot", &indices, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    gn_scope_begin(g);
    if (classes < 0) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_one_hot: %lld classes", (long long)classes);
    } else if (indices->shape.rank == GN_MAX_RANK) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_one_hot: the rank would be %d, the most is %d",
                 GN_MAX_RANK + 1, GN_MAX_RANK);
    } else if (gni_need_integers(g, "gn_one_hot", indices)) {
        gn_array *all =
            gn_arange(g, classes > INT32_MAX ? GN_I64 : GN_I32, 0.0, (double)classes, 1.0);
        y = gn_cast(gn_eq(gn_expand_dims(indices, -1), all), t);
    }
    return gni_end_scope(g, y);
}

// ------------------------------------------------------------------------------------------
// >>lazy
// Elementwise work stays an expression until somebody needs the value. From outside: gni_apply and
// gni_const make expressions, gni_materialize and gni_evaluate compute them.

static void gni_pending_add(gn_context *g, gn_array *a) {
    a->expr->prev = g->pending_last;
    a->expr->next = NULL;
    if (g->pending_last != NULL) g->pending_last->expr->next = a;
    else g->pending_first = a;
    g->pending_last = a;
}

static void gni_pending_remove(gn_context *g, gn_array *a) {
    gni_expr *e = a->expr;
    if (e->prev != NULL) e->prev->expr->next = e->next;
    else g->pending_first = e->next;
    if (e->next != NULL) e->next->expr->prev = e->prev;
    else g->pending_last = e->prev;
}

static bool gni_source_drop(gn_context *g, gn_array *src) {
    if (--src->lazy_refs == 0 && src->orphan) {
        src->orphan = false;
        g->lazy_bytes -= src->buf->bytes;
    }
    return --src->refs == 0;
}

// Drops an expression that has been computed.
static void gni_expr_free(gn_context *g, gn_array *a) {
    gni_expr *e = a->expr;
    gni_pending_remove(g, a);
    a->expr = NULL;
    for (int i = 0; i < e->n_src; i++) {
        if (e->src[i] == NULL) continue;
        e->src[i]->refs++; // gni_unref does the freeing
        gni_source_drop(g, e->src[i]);
        gni_unref(g, e->src[i]);
    }
    gni_free(g, e);
}

static void gni_lazy_orphaned(gn_context *g, gn_array *a) {
    if (a->buf == NULL || a->lazy_refs == 0 || a->orphan) return;
    a->orphan = true;
    g->lazy_bytes += a->buf->bytes;
    while (g->lazy_bytes > GNI_LAZY_BYTES) {
        gn_array *reader = NULL;
        for (gn_array *p = g->pending_first; p != NULL && reader == NULL; p = p->expr->next)
            for (int i = 0; i < p->expr->n_src; i++)
                if (p->expr->src[i] != NULL && p->expr->src[i]->orphan) reader = p;
        if (reader == NULL || !gni_materialize(g, reader)) return;
    }
}

// ---- dtypes and register domains

// The smallest and largest value of an integer dtype.
static void gni_integer_range(gn_dtype t, double *low, double *high) {
    *low = t == GN_I64 ? -9223372036854775808.0 : t == GN_I32 ? -2147483648.0 : t == GN_I8 ? -128.0 : 0.0;
    *high = t == GN_I64   ? 9223372036854775807.0
            : t == GN_I32 ? 2147483647.0
            : t == GN_U32 ? 4294967295.0
            : t == GN_I8  ? 127.0
            : t == GN_U8  ? 255.0
                          : 1.0;
}

static gni_domain gni_domain_of(gn_dtype t, bool wide) {
    if (gni_is_float(t)) return GNI_F;
    return t == GN_U32 && !wide ? GNI_U : GNI_I;
}

// The instructions that turn a register of dtype `from` into one of dtype `to`; at most two.
static int gni_convert_ops(gn_dtype from, gn_dtype to, bool wide, gni_op *op) {
    int n = 0;
    if (from == to) return 0;
    if (to == GN_BOOL) {
        op[n++] = GNI_OP_TO_BOOL;
        return n;
    }
    bool from_float = gni_is_float(from), to_float = gni_is_float(to);
    if (from_float && !to_float) op[n++] = to == GN_U32 && !wide ? GNI_OP_F_TO_U : GNI_OP_F_TO_I;
    if (!from_float && to_float) op[n++] = from == GN_U32 && !wide ? GNI_OP_U_TO_F : GNI_OP_I_TO_F;
    switch (to) {
    case GN_F16: op[n++] = GNI_OP_ROUND_F16; break;
    case GN_BF16: op[n++] = GNI_OP_ROUND_BF16; break;
    case GN_F32:
        if (wide && from != GN_F16 && from != GN_BF16) op[n++] = GNI_OP_ROUND_F32;
        break;
    case GN_U8:
        if (from != GN_BOOL) op[n++] = GNI_OP_WRAP_U8;
        break;
    case GN_I8:
        if (from != GN_BOOL) op[n++] = GNI_OP_WRAP_I8;
        break;
    case GN_U32:
        if (wide && from != GN_BOOL && from != GN_U8) op[n++] = GNI_OP_WRAP_U32;
        break;
    case GN_I32:
        if (wide && from != GN_BOOL && from != GN_U8 && from != GN_I8) op[n++] = GNI_OP_WRAP_I32;
        break;
    default: break;
    }
    return n;
}

// Floats saturate on their way to an integer dtype narrower than the register: two instructions and two
// constants in the place of the wrapping that gni_convert_ops names.
static bool gni_saturates(gn_dtype from, gni_op op) {
    return gni_is_float(from) && op >= GNI_OP_WRAP_U8 && op <= GNI_OP_WRAP_I32;
}

// The instruction that brings the raw result of an op computed in `t` back to the values of `t`.
static bool gni_normalize_op(gni_op op, gn_dtype t, bool wide, gni_op *out) {
    if (op >= GNI_OP_EQ && op <= GNI_OP_LOGICAL_XOR) return false;
    if (op >= GNI_OP_ISNAN && op <= GNI_OP_LOGICAL_NOT) return false;
    if (op == GNI_OP_WHERE || op == GNI_OP_CAST || op == GNI_OP_MIN || op == GNI_OP_MAX) return false;
    switch (t) {
    case GN_F16: *out = GNI_OP_ROUND_F16; break;
    case GN_BF16: *out = GNI_OP_ROUND_BF16; break;
    case GN_F32:
        if (!wide) return false;
        *out = GNI_OP_ROUND_F32;
        break;
    case GN_U8: *out = GNI_OP_WRAP_U8; break;
    case GN_I8: *out = GNI_OP_WRAP_I8; break;
    case GN_BOOL: *out = GNI_OP_TO_BOOL; break;
    case GN_U32:
        if (!wide) return false;
        *out = GNI_OP_WRAP_U32;
        break;
    case GN_I32:
        if (!wide) return false;
        *out = GNI_OP_WRAP_I32;
        break;
    default: return false;
    }
    return !(op <= GNI_OP_RELU && op >= GNI_OP_NEG && op != GNI_OP_SQUARE && gni_is_float(t));
}

// What source i of an op is converted to.
static gn_dtype gni_source_dtype(gni_op op, int i, gn_dtype compute) {
    return op == GNI_OP_WHERE && i == 0 ? GN_BOOL : compute;
}

// ---- making expressions

static int gni_convert_cost(gn_dtype from, gn_dtype to, bool wide, int *consts) {
    gni_op ops[2];
    int n = gni_convert_ops(from, to, wide, ops);
    if (n == 0 || !gni_saturates(from, ops[n - 1])) return n;
    *consts += 2;
    return n + 1;
}

// Instructions of the node itself: conversions of the sources, the op, rounding. Adds its constants.
static int gni_own_insns(const gni_expr *e, gn_dtype result, int *consts) {
    gni_op fix;
    int n = e->op == GNI_OP_CAST ? 0 : 1;
    for (int i = 0; i < e->n_src; i++)
        if (e->src[i] != NULL)
            n += gni_convert_cost(e->src[i]->dtype, gni_source_dtype(e->op, i, e->compute), e->wide, consts);
    if (gni_normalize_op(e->op, e->compute, e->wide, &fix)) n++;
    if (e->op == GNI_OP_CAST) n += gni_convert_cost(e->compute, result, e->wide, consts);
    return n;
}

static bool gni_is_pending(const gn_array *a) { return a != NULL && a->expr != NULL; }
static bool gni_is_const(const gn_array *a) { return gni_is_pending(a) && a->expr->op == GNI_OP_CONST; }

static void gni_expr_measure(gni_expr *e, gn_dtype result) {
    e->leaves = 0;
    e->consts = 0;
    e->insns = gni_own_insns(e, result, &e->consts);
    for (int i = 0; i < e->n_src; i++) {
        const gn_array *s = e->src[i];
        if (s == NULL) e->consts++;
        else if (!gni_is_pending(s)) e->leaves++;
        else {
            e->insns += s->expr->insns;
            e->leaves += s->expr->leaves;
            e->consts += s->expr->consts;
        }
    }
}

// Computes sources that must not be fused: of the other register width, repeated by broadcasting at some
// cost, or too many for one program.
static bool gni_expr_bound(gn_context *g, gn_array *y) {
    gni_expr *e = y->expr;
    int64_t size = gni_elements(&y->shape);
    for (int i = 0; i < e->n_src; i++) {
        gn_array *s = e->src[i];
        if (!gni_is_pending(s) || gni_is_const(s)) continue;
        bool repeated = s->expr->insns > 2 && gni_elements(&s->shape) * 2 <= size;
        if ((s->expr->wide != e->wide || repeated) && !gni_materialize(g, s)) return false;
    }
    gni_expr_measure(e, y->dtype);
    while (e->insns > GNI_MAX_INSNS || e->leaves > GNI_MAX_INPUTS || e->consts > GNI_MAX_CONSTS) {
        gn_array *largest = NULL;
        for (int i = 0; i < e->n_src; i++) {
            gn_array *s = e->src[i];
            if (gni_is_pending(s) && !(gni_is_const(s) && s->shape.rank == 0))
                if (largest == NULL || s->expr->insns > largest->expr->insns) largest = s;
        }
        if (largest == NULL) break; // cannot be: one op fits
        if (!gni_materialize(g, largest)) return false;
        gni_expr_measure(e, y->dtype);
    }
    return true;
}

static gn_array *gni_expr_new(gn_context *g, gni_op op, gn_dtype compute, gn_dtype result, const gn_shape *s) {
    gn_array *y = gni_array_new(g, result, s);
    if (y == NULL) return NULL;
    gni_expr *e = (gni_expr *)gni_calloc(g, sizeof(gni_expr));
    if (e == NULL) {
        gni_fail_memory(g, "gn_array", sizeof(gni_expr));
        gni_unref(g, y);
        return NULL;
    }
    e->op = op;
    e->compute = compute;
    e->wide = gni_is_wide(compute) || gni_is_wide(result);
    y->expr = e;
    gni_pending_add(g, y);
    return y;
}

static gn_array *gni_const(gn_context *g, gn_dtype t, const gn_shape *s, double value) {
    gn_array *y = gni_expr_new(g, GNI_OP_CONST, t, t, s);
    if (y == NULL) return NULL;
    y->expr->konst[0] = value;
    y->expr->consts = 1;
    return y;
}

static gn_array *gni_apply(gn_context *g, const char *fn, gni_op op, gn_dtype compute, gn_dtype result,
                           gn_array *const *src, const double *konst, int n_src) {
    gn_shape shape = gn_shape_from(0, NULL);
    for (int i = 0; i < n_src; i++) {
        gn_shape joined;
        if (src[i] == NULL) continue;
        if (!gni_broadcast(&shape, &src[i]->shape, &joined)) {
            char ta[200], tb[200];
            gni_fail(g, GN_ERROR_SHAPE, "%s: shapes %s and %s do not broadcast", fn,
                     gni_shape_text(ta, sizeof ta, &src[0]->shape),
                     gni_shape_text(tb, sizeof tb, &src[i]->shape));
            return NULL;
        }
        shape = joined;
    }
    gn_array *y = gni_expr_new(g, op, compute, result, &shape);
    if (y == NULL) return NULL;
    y->maker = fn;
    gni_expr *e = y->expr;
    e->n_src = n_src;
    for (int i = 0; i < n_src; i++) {
        e->src[i] = src[i];
        if (src[i] == NULL) {
            e->konst[i] = konst[i];
            continue;
        }
        src[i]->refs++;
        src[i]->lazy_refs++;
        e->wide = e->wide || gni_is_wide(src[i]->dtype);
    }
    if (!gni_expr_bound(g, y)) {
        gni_unref(g, y);
        return NULL;
    }
    return y;
}

// ---- from expressions to programs

typedef struct gni_builder {
    gni_map map;
    uint32_t mark; // expressions with this mark are in the program already
    bool full;     // it does not fit
} gni_builder;

static uint64_t gni_const_bits(double v, gni_domain d, bool wide) {
    if (d == GNI_F) {
        uint64_t bits = 0;
        float f = (float)v;
        if (wide) memcpy(&bits, &v, sizeof v);
        else memcpy(&bits, &f, sizeof f);
        return bits;
    }
    // Integers wrap like the results of integer arithmetic; beyond int64 and NaN there is nothing to wrap.
    if (v != v) return 0;
    int64_t i = v <= -9223372036854775808.0 ? INT64_MIN : v >= 9223372036854775807.0 ? INT64_MAX : (int64_t)v;
    return wide ? (uint64_t)i : (uint64_t)(uint32_t)i;
}

static int gni_build_const(gni_builder *b, double v, gn_dtype t) {
    gni_program *p = &b->map.program;
    if (t == GN_F16) v = (double)gni_f16_to_f32(gni_f32_to_f16((float)v));
    if (t == GN_BF16) v = (double)gni_bf16_to_f32(gni_f32_to_bf16((float)v));
    if (t == GN_F32) v = (double)(float)v;
    if (t == GN_BOOL) v = v != 0.0 ? 1.0 : 0.0;
    uint64_t bits = gni_const_bits(v, gni_domain_of(t, p->wide), p->wide);
    for (int i = 0; i < p->n_const; i++)
        if (p->konst[i] == bits) return GNI_MAX_INPUTS + i;
    if (p->n_const == GNI_MAX_CONSTS) {
        b->full = true;
        return 0;
    }
    p->konst[p->n_const] = bits;
    return GNI_MAX_INPUTS + p->n_const++;
}

// Strides of an operand broadcast against the job's dimensions.
static void gni_operand_of(const gn_array *a, int rank, gni_operand *o) {
    memset(o, 0, sizeof *o);
    o->buf = a->buf;
    o->dtype = a->dtype;
    o->offset = a->offset;
    for (int i = 0; i < a->shape.rank; i++) {
        int at = rank - a->shape.rank + i;
        o->stride[at] = a->shape.dim[i] == 1 ? 0 : a->stride[i];
    }
}

static int gni_build_input(gni_builder *b, const gn_array *a) {
    gni_program *p = &b->map.program;
    gni_operand o;
    gni_operand_of(a, b->map.rank, &o);
    for (int i = 0; i < p->n_in; i++) {
        const gni_operand *have = &b->map.in[i];
        if (have->buf == o.buf && have->offset == o.offset && have->dtype == o.dtype &&
            memcmp(have->stride, o.stride, sizeof o.stride) == 0)
            return i;
    }
    if (p->n_in == GNI_MAX_INPUTS) {
        b->full = true;
        return 0;
    }
    b->map.in[p->n_in] = o;
    p->in_dtype[p->n_in] = a->dtype;
    return p->n_in++;
}

// While a program is built, inputs are registers 0.., constants GNI_MAX_INPUTS.., results
// GNI_MAX_INPUTS + GNI_MAX_CONSTS..; gni_build_finish packs them.
static int gni_build_insn(gni_builder *b, gni_op op, gni_domain d, const int *r) {
    gni_program *p = &b->map.program;
    uint32_t insn = GNI_INSN(op, d, r[0], r[1], r[2]);
    for (int i = 0; i < p->n_insn; i++)
        if (p->insn[i] == insn) return GNI_MAX_INPUTS + GNI_MAX_CONSTS + i;
    if (p->n_insn == GNI_MAX_INSNS) {
        b->full = true;
        return 0;
    }
    p->insn[p->n_insn] = insn;
    return GNI_MAX_INPUTS + GNI_MAX_CONSTS + p->n_insn++;
}

static int gni_build_convert(gni_builder *b, int reg, gn_dtype from, gn_dtype to) {
    gni_op ops[2];
    bool wide = b->map.program.wide;
    int n = gni_convert_ops(from, to, wide, ops);
    for (int i = 0; i < n; i++) {
        int r[3] = {0, 0, 0};
        r[0] = reg;
        // Rounding and wrapping act on what the conversion before them made.
        gni_domain d = gni_domain_of(i == 0 ? from : to, wide);
        if (ops[i] == GNI_OP_WRAP_U8 || ops[i] == GNI_OP_WRAP_I8) d = GNI_I;
        if (gni_saturates(from, ops[i])) {
            double low, high;
            gni_integer_range(to, &low, &high);
            gn_dtype t = wide ? GN_I64 : GN_I32;
            r[1] = gni_build_const(b, low, t);
            r[0] = gni_build_insn(b, GNI_OP_MAX, GNI_I, r);
            r[1] = gni_build_const(b, high, t);
            reg = gni_build_insn(b, GNI_OP_MIN, GNI_I, r);
            continue;
        }
        reg = gni_build_insn(b, ops[i], d, r);
    }
    return reg;
}

static int gni_build_value(gni_builder *b, gn_array *a) {
    gni_expr *e = a->expr;
    if (e == NULL) return gni_build_input(b, a);
    if (e->mark == b->mark) return e->reg;
    bool wide = b->map.program.wide;
    int r[3] = {0, 0, 0};
    if (e->op == GNI_OP_CONST) return gni_build_const(b, e->konst[0], a->dtype);
    for (int i = 0; i < e->n_src; i++) {
        gn_dtype t = gni_source_dtype(e->op, i, e->compute);
        if (e->src[i] == NULL) r[i] = gni_build_const(b, e->konst[i], t);
        else r[i] = gni_build_convert(b, gni_build_value(b, e->src[i]), e->src[i]->dtype, t);
    }
    gni_op fix;
    int reg = r[0];
    if (e->op == GNI_OP_CAST) {
        reg = gni_build_convert(b, r[0], e->compute, a->dtype);
    } else {
        reg = gni_build_insn(b, e->op, gni_domain_of(e->compute, wide), r);
        if (gni_normalize_op(e->op, e->compute, wide, &fix)) {
            int f[3] = {0, 0, 0};
            f[0] = reg;
            reg = gni_build_insn(b, fix, gni_domain_of(e->compute, wide), f);
        }
    }
    e->mark = b->mark;
    e->reg = reg;
    return reg;
}

static uint32_t gni_pack_reg(const gni_program *p, uint32_t r) {
    if (r < GNI_MAX_INPUTS) return r;
    if (r < GNI_MAX_INPUTS + GNI_MAX_CONSTS) return r - GNI_MAX_INPUTS + (uint32_t)p->n_in;
    return r - GNI_MAX_INPUTS - GNI_MAX_CONSTS + (uint32_t)(p->n_in + p->n_const);
}

static void gni_build_finish(gni_program *p) {
    for (int i = 0; i < p->n_insn; i++) {
        uint32_t w = p->insn[i];
        p->insn[i] = GNI_INSN_CODE(w) | (gni_pack_reg(p, GNI_INSN_A(w)) << 11) |
                     (gni_pack_reg(p, GNI_INSN_B(w)) << 18) | (gni_pack_reg(p, GNI_INSN_C(w)) << 25);
    }
    for (int i = 0; i < p->n_out; i++)
        p->out_reg[i] = (int)gni_pack_reg(p, (uint32_t)p->out_reg[i]);
}

// Drops dimensions of size 1 and merges neighbours that every operand steps through evenly; the first
// `kept` dimensions are not merged with the rest. Returns how many of the kept ones remain.
static int gni_merge_dims(int *rank, int64_t *dim, gni_operand **op, int n_op, int kept) {
    int out = 0, out_kept = 0;
    for (int i = 0; i < *rank; i++) {
        if (dim[i] == 1) continue;
        bool join = out > 0 && !(i >= kept && out == out_kept);
        for (int k = 0; k < n_op && join; k++) join = op[k]->stride[out - 1] == op[k]->stride[i] * dim[i];
        if (join) {
            dim[out - 1] *= dim[i];
            for (int k = 0; k < n_op; k++) op[k]->stride[out - 1] = op[k]->stride[i];
            continue;
        }
        dim[out] = dim[i];
        for (int k = 0; k < n_op; k++) op[k]->stride[out] = op[k]->stride[i];
        out++;
        if (i < kept) out_kept = out;
    }
    for (int i = out; i < GN_MAX_RANK; i++) {
        dim[i] = 1;
        for (int k = 0; k < n_op; k++) op[k]->stride[i] = 0;
    }
    *rank = GNI_MAX(out, 1); // a single element still has one dimension
    return out_kept;
}

static void gni_map_merge(gni_map *m) {
    gni_operand *op[GNI_MAX_INPUTS + GNI_MAX_OUTPUTS];
    int n = 0;
    for (int i = 0; i < m->program.n_in; i++) op[n++] = &m->in[i];
    for (int i = 0; i < m->program.n_out; i++) op[n++] = &m->out[i];
    gni_merge_dims(&m->rank, m->dim, op, n, m->rank);
}

static void gni_build_begin(gni_builder *b, gn_context *g, const gn_shape *s, bool wide) {
    memset(b, 0, sizeof *b);
    b->map.rank = s->rank;
    memcpy(b->map.dim, s->dim, sizeof s->dim);
    b->map.program.wide = wide;
    b->mark = ++g->mark;
}

// ---- computing

// The program of several pending arrays of one shape.
static bool gni_build_roots(gni_builder *b, gn_context *g, gn_array *const *roots, int count) {
    gni_build_begin(b, g, &roots[0]->shape, roots[0]->expr->wide);
    for (int i = 0; i < count; i++) {
        if (roots[i]->expr->wide != b->map.program.wide) return false;
        b->map.program.out_dtype[i] = roots[i]->dtype;
        b->map.program.out_reg[i] = gni_build_value(b, roots[i]);
    }
    b->map.program.n_out = count;
    if (b->full) return false;
    gni_build_finish(&b->map.program);
    return true;
}

// Runs the program with its outputs in fresh buffers, or in those of `into`.
static bool gni_evaluate_fused(gn_context *g, gni_builder *b, gn_array *const *roots, gn_array *const *into,
                               int count) {
    gni_buffer *fresh[GNI_MAX_OUTPUTS] = {NULL, NULL, NULL, NULL};
    gni_map *m = &b->map;
    bool ok = true;
    // Held, since making room for the outputs may take a buffer away from the array it came from.
    for (int i = 0; i < m->program.n_in; i++) m->in[i].buf->refs++;
    for (int i = 0; i < count && ok; i++) {
        gni_operand *o = &m->out[i];
        memset(o, 0, sizeof *o);
        o->dtype = roots[i]->dtype;
        gni_strides_of(&roots[i]->shape, o->stride);
        if (into != NULL && into[i] != NULL) {
            int held = 0;
            for (int k = 0; k < m->program.n_in; k++) held += m->in[k].buf == into[i]->buf;
            ok = gni_before_overwrite(g, into[i], b->mark, held);
            o->buf = into[i]->buf;
            o->offset = into[i]->offset;
        } else {
            fresh[i] = gni_buffer_new(g, (uint64_t)gni_elements(&roots[i]->shape) * gn_dtype_size(o->dtype));
            o->buf = fresh[i];
            ok = fresh[i] != NULL;
        }
    }
    if (ok) {
        gni_map_merge(m);
        ok = gni_run(g, GNI_JOB_MAP, m, roots[0]);
    }
    for (int i = 0; i < m->program.n_in; i++) gni_buffer_release(g, m->in[i].buf);
    for (int i = 0; i < count; i++) {
        if (!ok) {
            gni_buffer_release(g, fresh[i]);
            continue;
        }
        roots[i]->reason = roots[0]->reason;
        roots[i]->on_gpu = roots[0]->on_gpu;
        roots[i]->buf = fresh[i];
        if (fresh[i] == NULL) { // the result lives in into[i]'s memory
            roots[i]->buf = into[i]->buf;
            roots[i]->offset = into[i]->offset;
            roots[i]->buf->refs++;
        }
        gni_expr_free(g, roots[i]);
    }
    return ok;
}

static bool gni_evaluate(gn_context *g, gn_array *const *roots, gn_array *const *into, int count) {
    gni_builder b;
    bool fuse = count <= GNI_MAX_OUTPUTS;
    for (int i = 0; i < count; i++)
        fuse = fuse && gni_is_pending(roots[i]) && gni_same_shape(&roots[i]->shape, &roots[0]->shape);
    for (int i = 0; i < count && fuse; i++)
        for (int k = 0; k < i; k++) fuse = fuse && roots[i] != roots[k];
    if (fuse && gni_build_roots(&b, g, roots, count)) return gni_evaluate_fused(g, &b, roots, into, count);
    if (count == 1 && into == NULL && gni_is_pending(roots[0])) {
        gni_fail(g, GN_ERROR_UNSUPPORTED, "%s: expression does not fit one program", roots[0]->maker);
        return false;
    }
    for (int i = 0; i < count; i++)
        if (!gni_materialize(g, roots[i])) return false;
    for (int i = 0; i < count && into != NULL; i++) {
        if (into[i] == NULL) continue;
        if (!gni_before_write(g, into[i])) return false;
        if (!gni_copy_into(g, into[i]->buf, into[i]->dtype, into[i]->offset, into[i]->stride, roots[i]))
            return false;
    }
    return true;
}

static bool gni_materialize(gn_context *g, gn_array *a) {
    if (a->buf != NULL) return true;
    if (a->expr == NULL) { // gn_empty, or what a failed call left
        a->buf = gni_buffer_new(g, (uint64_t)gni_elements(&a->shape) * gn_dtype_size(a->dtype));
        return a->buf != NULL;
    }
    return gni_evaluate(g, &a, NULL, 1);
}

static bool gni_copy_into(gn_context *g, gni_buffer *dst, gn_dtype t, int64_t offset, const int64_t *stride,
                          gn_array *src) {
    gni_builder b;
    if (!gni_materialize(g, src)) return false;
    gni_build_begin(&b, g, &src->shape, gni_is_wide(src->dtype) || gni_is_wide(t));
    gni_program *p = &b.map.program;
    int reg = gni_build_input(&b, src);
    p->out_dtype[0] = t;
    p->out_reg[0] = gni_build_convert(&b, reg, src->dtype, t);
    p->n_out = 1;
    gni_build_finish(p);
    gni_operand *o = &b.map.out[0];
    memset(o, 0, sizeof *o);
    o->buf = dst;
    o->dtype = t;
    o->offset = offset;
    memcpy(o->stride, stride, sizeof(int64_t) * (size_t)src->shape.rank);
    gni_map_merge(&b.map);
    return gni_run(g, GNI_JOB_MAP, &b.map, NULL);
}

static gn_array *gni_contiguous(gn_context *g, gn_array *a) {
    if (!gni_materialize(g, a)) return NULL;
    if (gni_is_contiguous(a)) {
        a->refs++;
        return a;
    }
    gn_array *y = gni_array_new(g, a->dtype, &a->shape);
    if (y == NULL) return NULL;
    y->buf = gni_buffer_new(g, (uint64_t)gni_elements(&a->shape) * gn_dtype_size(a->dtype));
    if (y->buf == NULL || !gni_copy_into(g, y->buf, y->dtype, 0, y->stride, a)) {
        gni_unref(g, y);
        return NULL;
    }
    return y;
}

static const void *gni_host(gn_context *g, gn_array *a) {
    if (!gni_materialize(g, a) || !gni_buffer_need(g, a->buf, GNI_ON_CPU)) return NULL;
    return (const char *)a->buf->host + a->offset * (int64_t)gn_dtype_size(a->dtype);
}

// Whether pending work outside the program with that mark reads that memory.
static bool gni_reads_buffer(const gn_array *p, const gni_buffer *buf, uint32_t mark) {
    if (mark != 0 && p->expr->mark == mark) return false;
    for (int i = 0; i < p->expr->n_src; i++)
        if (p->expr->src[i] != NULL && p->expr->src[i]->buf == buf) return true;
    return false;
}

static gn_array *gni_find_reader(const gn_context *g, const gni_buffer *buf, uint32_t mark) {
    for (gn_array *p = g->pending_first; p != NULL; p = p->expr->next)
        if (gni_reads_buffer(p, buf, mark)) return p;
    return NULL;
}

// Gives `a` a buffer of its own with undefined contents; pending readers keep the old one.
static bool gni_swap_buffer(gn_context *g, gn_array *a, uint32_t mark) {
    gn_array *old = gni_array_new(g, a->dtype, &a->shape);
    gni_buffer *fresh = gni_buffer_new(g, a->buf->bytes);
    if (old == NULL || fresh == NULL) {
        gni_unref(g, old);
        gni_buffer_release(g, fresh);
        return false;
    }
    gni_buffer *was = a->buf;
    fresh->version = was->version + 1;
    old->buf = was;
    old->offset = a->offset;
    memcpy(old->stride, a->stride, sizeof a->stride);
    for (gn_array *p = g->pending_first; p != NULL; p = p->expr->next) {
        if (!gni_reads_buffer(p, was, mark)) continue;
        for (int i = 0; i < p->expr->n_src; i++) {
            if (p->expr->src[i] != a) continue;
            p->expr->src[i] = old;
            old->refs++;
            old->lazy_refs++;
            a->refs--;
            a->lazy_refs--;
        }
    }
    a->buf = fresh;
    gni_unref(g, old);
    return true;
}

// `held`: references to the buffer that the program with that mark holds for itself.
static bool gni_before_overwrite(gn_context *g, gn_array *a, uint32_t mark, int held) {
    if (!gni_materialize(g, a)) return false;
    if (gni_find_reader(g, a->buf, mark) == NULL) return true;
    // When only `a` shows the buffer and all of it goes, a new one is cheaper than computing the readers.
    bool whole = a->buf->refs - held == 1 && !a->buf->host_borrowed && !a->buf->device_borrowed &&
                 gni_is_contiguous(a) && gn_bytes(a) == a->buf->bytes;
    if (whole) return gni_swap_buffer(g, a, mark);
    for (;;) {
        gn_array *reader = gni_find_reader(g, a->buf, mark);
        if (reader == NULL) return true;
        if (!gni_materialize(g, reader)) return false;
    }
}

static bool gni_before_write(gn_context *g, gn_array *a) { return gni_before_overwrite(g, a, 0, 0); }

// ------------------------------------------------------------------------------------------
// >>place
// Which backend runs a job, and bringing the operands there. From outside: gni_run, gn_explain.

// X(name, text): why a job ran where it ran.
#define GNI_REASONS(X)                                                                             \
    X(NONE, "not computed yet")                                                                    \
    X(NO_GPU, "the context has no GPU")                                                            \
    X(CPU_ONLY, "the GPU backend does not do this op with these dtypes")                           \
    X(GPU_ONLY, "the CPU backend does not do this op")                                             \
    X(POLICY, "gn_options.placement says so")                                                      \
    X(STAYS, "the largest operand is there")                                                       \
    X(RESIDENT, "operands are on the GPU already")                                                 \
    X(MOSTLY_CPU, "nearly all operand bytes are on the CPU")                                       \
    X(LARGE, "large enough to be worth the GPU")                                                   \
    X(SMALL, "too small to be worth the GPU")                                                      \
    X(NO_ROOM, "device memory is full")                                                            \
    X(LOST, "the device was lost")
typedef enum gni_reason {
#define GN_X(name, text) GNI_WHY_##name,
    GNI_REASONS(GN_X)
#undef GN_X
    GNI_WHY_COUNT
} gni_reason;

// The operands of any job, outputs last.
typedef struct gni_job_view {
    gni_operand *op[GNI_MAX_INPUTS + GNI_MAX_OUTPUTS];
    int n_in, n;
    int64_t size; // what the thresholds count
    const char *name;
} gni_job_view;

static int64_t gni_product(const int64_t *dim, int rank) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dim[i];
    return n;
}

static void gni_view_job(gni_job_kind kind, void *job, gni_job_view *v) {
    memset(v, 0, sizeof *v);
    if (kind == GNI_JOB_MAP) {
        gni_map *m = (gni_map *)job;
        for (int i = 0; i < m->program.n_in; i++) v->op[v->n++] = &m->in[i];
        v->n_in = v->n;
        for (int i = 0; i < m->program.n_out; i++) v->op[v->n++] = &m->out[i];
        v->size = gni_product(m->dim, m->rank);
        v->name = "elementwise";
    } else if (kind == GNI_JOB_REDUCE) {
        gni_reduce *r = (gni_reduce *)job;
        for (int i = 0; i < r->program.n_in; i++) v->op[v->n++] = &r->in[i];
        v->n_in = v->n;
        v->op[v->n++] = &r->out;
        v->size = gni_product(r->dim, r->rank);
        v->name = "reduce";
    } else if (kind == GNI_JOB_SOFTMAX) {
        gni_softmax *s = (gni_softmax *)job;
        v->op[v->n++] = &s->in;
        v->n_in = v->n;
        v->op[v->n++] = &s->out;
        v->size = s->rows * s->n;
        v->name = "softmax";
    } else if (kind == GNI_JOB_MATMUL) {
        gni_matmul *m = (gni_matmul *)job;
        v->op[v->n++] = &m->a;
        v->op[v->n++] = &m->b;
        if (m->bias.buf != NULL) v->op[v->n++] = &m->bias;
        v->n_in = v->n;
        v->op[v->n++] = &m->c;
        double work = (double)m->m * (double)m->n * (double)GNI_MAX(m->k, 1) *
                      (double)gni_product(m->batch_dim, m->batch_rank);
        v->size = work < 9e18 ? (int64_t)work : INT64_MAX;
        v->name = "matmul";
    } else if (kind == GNI_JOB_TAKE) {
        gni_take *t = (gni_take *)job;
        v->op[v->n++] = &t->in;
        v->op[v->n++] = &t->index;
        v->n_in = v->n;
        v->op[v->n++] = &t->out;
        v->size = t->outer * t->count * t->inner;
        v->name = "take";
    } else if (kind == GNI_JOB_FFT) {
        gni_fft *f = (gni_fft *)job;
        v->op[v->n++] = &f->in;
        v->n_in = v->n;
        v->op[v->n++] = &f->out;
        v->size = gni_product(f->dim, f->rank) * f->n;
        v->name = "fft";
    } else {
        gni_random *r = (gni_random *)job;
        v->op[v->n++] = &r->out;
        v->size = r->n;
        v->name = "random";
    }
}

static int64_t gni_threshold(const gn_context *g, gni_job_kind kind) {
    // Where the GPU overtakes two AVX-512 cores when the operands have to be uploaded, measured on an H200.
    static const gn_thresholds fallback = {4 << 20, 4 << 20, 32 << 20, 4 << 20, 16 << 20};
    const gn_thresholds *t = &g->options.thresholds;
    switch (kind) {
    case GNI_JOB_MAP: return t->elementwise > 0 ? t->elementwise : fallback.elementwise;
    case GNI_JOB_REDUCE:
    case GNI_JOB_SOFTMAX: return t->reduction > 0 ? t->reduction : fallback.reduction;
    case GNI_JOB_MATMUL: return t->matmul > 0 ? t->matmul : fallback.matmul;
    case GNI_JOB_RANDOM: return t->random > 0 ? t->random : fallback.random;
    default: return t->copy > 0 ? t->copy : fallback.copy;
    }
}

static uint32_t gni_place_auto(const gn_context *g, gni_job_kind kind, const gni_job_view *v, gni_reason *why) {
    uint64_t cpu_only = 0, gpu_only = 0;
    for (int i = 0; i < v->n_in; i++) {
        if (v->op[i]->buf->where == GNI_ON_CPU) cpu_only += v->op[i]->buf->bytes;
        if (v->op[i]->buf->where == GNI_ON_GPU) gpu_only += v->op[i]->buf->bytes;
    }
    if (gpu_only > 0) {
        // Bringing data back waits for the GPU, so it must save much.
        bool heavy = cpu_only > ((uint64_t)64 << 20) && cpu_only / 16 > gpu_only;
        *why = heavy ? GNI_WHY_MOSTLY_CPU : GNI_WHY_RESIDENT;
        return heavy ? GNI_ON_CPU : GNI_ON_GPU;
    }
    bool large = v->size >= gni_threshold(g, kind);
    *why = large ? GNI_WHY_LARGE : GNI_WHY_SMALL;
    return large ? GNI_ON_GPU : GNI_ON_CPU;
}

static uint32_t gni_place(gn_context *g, gni_job_kind kind, const void *job, const gni_job_view *v,
                          gni_reason *why) {
    *why = GNI_WHY_NO_GPU;
    if (g->vk == NULL) return GNI_ON_CPU;
    *why = GNI_WHY_LOST;
    if (gni_vk_lost(g->vk)) return GNI_ON_CPU;
    *why = GNI_WHY_CPU_ONLY;
    if (!gni_backend_vulkan()->supports(g, kind, job)) return GNI_ON_CPU;
    *why = GNI_WHY_GPU_ONLY;
    if (g->recording || !gni_backend_cpu()->supports(g, kind, job)) return GNI_ON_GPU;
    *why = GNI_WHY_POLICY;
    if (g->options.placement == GN_PLACE_CPU) return GNI_ON_CPU;
    if (g->options.placement == GN_PLACE_GPU) return GNI_ON_GPU;
    if (g->options.placement == GN_PLACE_STAY && v->n_in > 0) {
        const gni_buffer *largest = v->op[0]->buf;
        for (int i = 1; i < v->n_in; i++)
            if (v->op[i]->buf->bytes > largest->bytes) largest = v->op[i]->buf;
        *why = GNI_WHY_STAYS;
        return largest->where & GNI_ON_CPU ? GNI_ON_CPU : GNI_ON_GPU;
    }
    return gni_place_auto(g, kind, v, why);
}

// Memory for every operand, without an error when there is none: the CPU can take the job then.
static bool gni_device_room(gn_context *g, const gni_job_view *v) {
    for (int i = 0; i < v->n; i++) {
        gni_buffer *b = v->op[i]->buf;
        if (b->has_device) continue;
        b->has_device = gni_vk_alloc(g->vk, GNI_MAX(b->bytes, 16), &b->device);
        if (!b->has_device) return false;
    }
    return true;
}

static bool gni_bring(gn_context *g, const gni_job_view *v, uint32_t side) {
    for (int i = 0; i < v->n_in; i++)
        if (!gni_buffer_need(g, v->op[i]->buf, side)) return false;
    for (int i = v->n_in; i < v->n; i++) {
        // A place inside a buffer leaves the rest of it as it was.
        bool fresh = v->op[i]->buf->where == 0;
        if (!gni_buffer_need(g, v->op[i]->buf, side)) return false;
        v->op[i]->buf->where = side;
        if (!fresh) v->op[i]->buf->version++; // first contents are no overwriting
    }
    return true;
}

static bool gni_run(gn_context *g, gni_job_kind kind, void *job, gn_array *y) {
    gni_job_view v;
    gni_reason why;
    gni_view_job(kind, job, &v);
    uint32_t side = gni_place(g, kind, job, &v, &why);
    if (side == GNI_ON_GPU && why != GNI_WHY_GPU_ONLY && !gni_device_room(g, &v)) {
        side = GNI_ON_CPU;
        why = GNI_WHY_NO_ROOM;
        gni_log(g, GN_LOG_INFO, "%s of %lld elements runs on the CPU: device memory is full", v.name,
                (long long)v.size);
    }
    if (y != NULL) {
        y->reason = (uint8_t)why;
        y->on_gpu = side == GNI_ON_GPU;
    }
    uint64_t start = g->profile != NULL ? gni_now_ns() : 0;
    if (!gni_bring(g, &v, side)) return false;
    const gni_backend_api *api = side == GNI_ON_GPU ? gni_backend_vulkan() : gni_backend_cpu();
    gni_log(g, GN_LOG_DEBUG, "%s of %lld elements on %s", v.name, (long long)v.size, api->name);
    bool ok = api->run(g, kind, job);
    if (!ok && !g->call_failed)
        gni_fail(g, GN_ERROR_OUT_OF_MEMORY, "%s: out of memory in the %s backend", v.name, api->name);
    if (g->profile != NULL) gni_profile_span(g, v.name, start, gni_now_ns(), side == GNI_ON_GPU ? 1 : 0);
    return ok;
}

GPUNUM_API const char *gn_explain(gn_array *a) {
    static const char *const text[] = {
#define GN_X(name, words) words,
        GNI_REASONS(GN_X)
#undef GN_X
    };
    gn_context *g = gni_begin("gn_explain", &a, 1);
    if (g == NULL) return "";
    char shape[200];
    const char *maker = a->maker != NULL && a->maker[0] ? a->maker : "array";
    gni_shape_text(shape, sizeof shape, &a->shape);
    const char *type = gn_dtype_name(a->dtype);
    if (gni_is_pending(a))
        snprintf(g->explain, sizeof g->explain, "%s %s %s: pending, up to %d instructions over %d inputs", maker,
                 shape, type, a->expr->insns, a->expr->leaves);
    else if (a->reason == GNI_WHY_NONE)
        snprintf(g->explain, sizeof g->explain, "%s %s %s: data, on %s", maker, shape, type,
                 a->buf == NULL || a->buf->where == 0 ? "neither side"
                 : a->buf->where == GNI_ON_CPU        ? "the CPU"
                 : a->buf->where == GNI_ON_GPU        ? "the GPU"
                                                      : "the CPU and the GPU");
    else
        snprintf(g->explain, sizeof g->explain, "%s %s %s: computed on the %s: %s", maker, shape, type,
                 a->on_gpu ? "GPU" : "CPU", text[a->reason]);
    const char *result = g->explain;
    gni_end_plain(g);
    return result;
}

// ------------------------------------------------------------------------------------------
// >>access
// Data in and out of arrays: from, wrap, read, write, item, eval, to.

static gn_array *gni_from_bytes(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s, const void *data) {
    void *host = NULL;
    if (!gni_shape_ok(g, fn, t, s)) return NULL;
    size_t bytes = (size_t)gni_elements(s) * gn_dtype_size(t);
    if (data == NULL && bytes > 0) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: data is NULL", fn);
        return NULL;
    }
    gn_array *y = gni_array_filled(g, t, s, &host);
    if (y == NULL) return NULL;
    y->maker = fn;
    if (bytes > 0) memcpy(host, data, bytes);
    if (t == GN_BOOL) // any byte but 0 means true
        for (size_t i = 0; i < bytes; i++) ((uint8_t *)host)[i] = ((uint8_t *)host)[i] != 0;
    return y;
}

GPUNUM_API gn_array *gn_array_from(gn_context *g, gn_dtype t, gn_shape s, const void *data) {
    if (!gni_begin_context("gn_array_from", g)) return NULL;
    return gni_end(g, gni_from_bytes(g, "gn_array_from", t, &s, data));
}

GPUNUM_API gn_array *gn_array_wrap(gn_context *g, gn_dtype t, gn_shape s, void *data, gn_free_fn release,
                                   void *user) {
    if (!gni_begin_context("gn_array_wrap", g)) return NULL;
    gn_array *y = NULL;
    if (gni_shape_ok(g, "gn_array_wrap", t, &s)) {
        size_t item = gn_dtype_size(t) == 16 ? 8 : gn_dtype_size(t);
        if (data == NULL)
            gni_fail(g, GN_ERROR_ARGUMENT, "gn_array_wrap: data is NULL");
        else if ((uintptr_t)data % item != 0)
            gni_fail(g, GN_ERROR_ARGUMENT, "gn_array_wrap: data is not aligned to %d bytes", (int)item);
        else
            y = gni_array_new(g, t, &s);
    }
    if (y != NULL) {
        y->maker = "gn_array_wrap";
        y->buf = gni_buffer_new(g, (uint64_t)gni_elements(&s) * gn_dtype_size(t));
        if (y->buf == NULL) {
            gni_unref(g, y);
            y = NULL;
        } else {
            y->buf->host = data;
            y->buf->host_borrowed = true;
            y->buf->host_free = release;
            y->buf->host_user = user;
            y->buf->where = GNI_ON_CPU;
        }
    }
    return gni_end(g, y);
}

// What a function with a status returns when gni_begin found its array to be NULL or stale.
static gn_status gni_null_status(const gn_array *a) {
    gn_status status = a != NULL ? a->ctx->status : GN_ERROR_ARGUMENT;
    return status != GN_OK ? status : GN_ERROR_ARGUMENT;
}

// Copies the elements of `a` out in C order.
static bool gni_copy_out(gn_context *g, gn_array *a, void *dst, size_t bytes) {
    gn_array *c = gni_contiguous(g, a);
    if (c == NULL) return false;
    bool ok = true;
    if (bytes > 0) {
        uint64_t at = (uint64_t)c->offset * gn_dtype_size(c->dtype);
        if (c->buf->where & GNI_ON_CPU) {
            memcpy(dst, (const char *)c->buf->host + at, bytes);
        } else if (c->buf->where & GNI_ON_GPU) {
            ok = gni_vk_download(g->vk, &c->buf->device, at, dst, bytes);
            if (!ok) gni_fail(g, GN_ERROR_DEVICE_LOST, "gn_read: copying %llu bytes from the GPU failed",
                              (unsigned long long)bytes);
        } else {
            memset(dst, 0, bytes); // gn_empty, never written
        }
    }
    gni_unref(g, c);
    return ok;
}

static bool gni_bytes_fit(gn_context *g, const char *fn, const gn_array *a, const void *p, size_t bytes) {
    if (bytes != gn_bytes(a)) {
        char text[200];
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %llu bytes given, %s %s has %llu", fn, (unsigned long long)bytes,
                 gn_dtype_name(a->dtype), gni_shape_text(text, sizeof text, &a->shape),
                 (unsigned long long)gn_bytes(a));
        return false;
    }
    if (p == NULL && bytes > 0) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the pointer is NULL", fn);
        return false;
    }
    return true;
}

GPUNUM_API gn_status gn_read(gn_array *a, void *dst, size_t bytes) {
    gn_context *g = gni_begin("gn_read", &a, 1);
    if (g == NULL) return gni_null_status(a);
    if (gni_bytes_fit(g, "gn_read", a, dst, bytes)) gni_copy_out(g, a, dst, bytes);
    return gni_end_status(g);
}

GPUNUM_API gn_status gn_write(gn_array *a, const void *src, size_t bytes) {
    gn_context *g = gni_begin("gn_write", &a, 1);
    if (g == NULL) return gni_null_status(a);
    if (!gni_bytes_fit(g, "gn_write", a, src, bytes) || bytes == 0) return gni_end_status(g);
    if (a->node != NULL) {
        gni_fail(g, GN_ERROR_GRADIENT, "gn_write: %s made this array and autograd records it; write to a "
                 "gn_detach'ed copy", a->maker);
        return gni_end_status(g);
    }
    if (!gni_before_write(g, a)) return gni_end_status(g);
    if (gni_is_contiguous(a) && bytes == a->buf->bytes) {
        if (gni_buffer_claim(g, a->buf, GNI_ON_CPU)) memcpy(a->buf->host, src, bytes);
    } else {
        gn_array *data = gni_from_bytes(g, "gn_write", a->dtype, &a->shape, src);
        if (data != NULL) gni_copy_into(g, a->buf, a->dtype, a->offset, a->stride, data);
        gni_unref(g, data);
    }
    return gni_end_status(g);
}

// One element at `p` as a double.
static double gni_element(gn_dtype t, const void *p) {
    float f;
    double d;
    int64_t l;
    uint32_t u;
    int32_t i;
    uint16_t h;
    switch (t) {
    case GN_F32: memcpy(&f, p, sizeof f); return (double)f;
    case GN_F16: memcpy(&h, p, sizeof h); return (double)gni_f16_to_f32(h);
    case GN_BF16: memcpy(&h, p, sizeof h); return (double)gni_bf16_to_f32(h);
    case GN_F64: memcpy(&d, p, sizeof d); return d;
    case GN_I32: memcpy(&i, p, sizeof i); return (double)i;
    case GN_I64: memcpy(&l, p, sizeof l); return (double)l;
    case GN_U32: memcpy(&u, p, sizeof u); return (double)u;
    case GN_I8: return (double)*(const int8_t *)p;
    default: return (double)*(const uint8_t *)p;
    }
}

GPUNUM_API double gn_item(gn_array *a) {
    unsigned char bytes[16];
    gn_context *g = gni_begin("gn_item", &a, 1);
    if (g == NULL) return GNI_NAN;
    double value = GNI_NAN;
    char text[200];
    if (gni_elements(&a->shape) != 1)
        gni_fail(g, GN_ERROR_SHAPE, "gn_item: %s has more or less than one element",
                 gni_shape_text(text, sizeof text, &a->shape));
    else if (gni_is_complex(a->dtype))
        gni_fail(g, GN_ERROR_DTYPE, "gn_item: %s is not a real number", gn_dtype_name(a->dtype));
    else if (gni_copy_out(g, a, bytes, gn_bytes(a)))
        value = gni_element(a->dtype, bytes);
    gni_end_plain(g);
    return value;
}

GPUNUM_API gn_array *gn_eval(gn_array *a) {
    gn_context *g = gni_begin("gn_eval", &a, 1);
    if (g == NULL) return NULL;
    bool ok = gni_materialize(g, a);
    gni_end_plain(g);
    return ok ? a : NULL;
}

GPUNUM_API gn_status gn_eval_all(gn_array **arrays, int count) {
    if (arrays == NULL || count <= 0) return GN_OK;
    gn_context *g = gni_begin("gn_eval_all", arrays, count);
    if (g == NULL) return gni_null_status(arrays[0]);
    for (int i = 0; i < count;) {
        int n = 1; // a run of pending arrays that fit one program
        while (i + n < count && n < GNI_MAX_OUTPUTS && gni_is_pending(arrays[i]) &&
               gni_is_pending(arrays[i + n]) && arrays[i + n]->expr->wide == arrays[i]->expr->wide &&
               gni_same_shape(&arrays[i]->shape, &arrays[i + n]->shape))
            n++;
        if (!gni_is_pending(arrays[i]) ? !gni_materialize(g, arrays[i])
                                       : !gni_evaluate(g, arrays + i, NULL, n))
            break;
        i += n;
    }
    return gni_end_status(g);
}

GPUNUM_API gn_array *gn_to(gn_array *a, gn_device device) {
    gn_context *g = gni_begin("gn_to", &a, 1);
    if (g == NULL) return NULL;
    uint32_t side = device == GN_DEVICE_GPU && g->vk != NULL ? GNI_ON_GPU : GNI_ON_CPU;
    // Without a GPU everything is on the CPU, which is as close as it gets.
    bool ok = gni_materialize(g, a) && gni_buffer_need(g, a->buf, side);
    if (ok && device == GN_DEVICE_GPU && side == GNI_ON_GPU && !a->buf->host_borrowed) {
        gni_buffer_drop_host(g, a->buf); // the CPU copy has served its purpose
        a->buf->where = GNI_ON_GPU;
    }
    gni_end_plain(g);
    return ok ? a : NULL;
}
// ------------------------------------------------------------------------------------------
// >>threads
// The CPU thread pool. From outside: gni_pool_open, gni_pool_close, gni_pool_threads, gni_parallel.

typedef struct gni_pool gni_pool;
typedef void (*gni_task_fn)(void *arg, int64_t begin, int64_t end, int worker);

#ifdef GPUNUM_NO_THREADS

static gni_pool *gni_pool_open(gn_context *g, int threads) {
    GNI_UNUSED(g);
    GNI_UNUSED(threads);
    return NULL;
}

static void gni_pool_close(gni_pool *p) {
    GNI_UNUSED(p);
}

static int gni_pool_threads(const gni_pool *p) {
    GNI_UNUSED(p);
    return 1;
}

static void gni_parallel(gni_pool *p, int64_t items, int64_t grain, gni_task_fn fn, void *arg) {
    GNI_UNUSED(p);
    GNI_UNUSED(grain);
    if (items > 0) fn(arg, 0, items, 0);
}

#else

#define GNI_POOL_MAX 256          // threads of one pool
#define GNI_POOL_CLOSED (1 << 20) // in `active`: no job is open, larger than any count of workers
#define GNI_POOL_SPIN_NS 40000u   // how long an idle worker looks for work before it sleeps
#define GNI_POOL_CHUNKS 8         // chunks per thread: enough to even out, few enough to stay cheap

// An atomic on a cache line of its own.
typedef struct gni_pool_atomic {
    gni_atomic value;
    char pad[64 - sizeof(gni_atomic)];
} gni_pool_atomic;

typedef struct gni_pool_worker {
    gni_pool *pool;
    gni_thread thread;
    int index;
} gni_pool_worker;

// One job at a time. Its fields are written while `active` holds GNI_POOL_CLOSED, which no worker
// reads past; taking GNI_POOL_CLOSED away publishes them.
struct gni_pool {
    gni_pool_atomic generation; // changes when a job opens or the pool closes
    gni_pool_atomic active;     // workers inside the job, plus GNI_POOL_CLOSED
    gni_pool_atomic next;       // first chunk that nobody has taken
    gni_pool_atomic busy;       // callers inside gni_parallel: all but the first run inline
    gni_pool_atomic sleeping;   // workers that wait on `wake`
    gni_pool_atomic waiting;    // the caller waits on `done`
    gni_pool_atomic quit;
    gni_task_fn fn;
    void *arg;
    int64_t items, chunk;
    int32_t chunks;
    int threads; // with the caller
    gni_mutex lock;
    gni_cond wake, done;
    gn_context *g;
    gni_pool_worker worker[GNI_POOL_MAX];
};

static void gni_pool_pause(int round) {
    // Yielding now and then lets a thread that has our core finish the work we wait for.
    if ((round & 63) == 63) {
        gni_thread_yield();
    } else {
        gni_cpu_pause();
    }
}

static void gni_pool_work(gni_pool *p, int worker) {
    for (;;) {
        int32_t i = gni_atomic_add(&p->next.value, 1);
        if (i >= p->chunks) return;
        int64_t begin = i * p->chunk;
        p->fn(p->arg, begin, GNI_MIN(begin + p->chunk, p->items), worker);
    }
}

// Takes part in the open job, if there is one.
static void gni_pool_join(gni_pool *p, int worker) {
    if (gni_atomic_add(&p->active.value, 1) < GNI_POOL_CLOSED) gni_pool_work(p, worker);
    gni_atomic_add(&p->active.value, -1);
    if (gni_atomic_load(&p->waiting.value) == 0) return;
    gni_mutex_lock(&p->lock);
    gni_cond_signal(&p->done);
    gni_mutex_unlock(&p->lock);
}

// Returns the generation once it differs from `seen`: spins first, as the next job of a training step
// is microseconds away, then sleeps.
static int32_t gni_pool_idle(gni_pool *p, int32_t seen) {
    uint64_t start = gni_now_ns();
    for (int round = 1;; round++) {
        int32_t now = gni_atomic_load(&p->generation.value);
        if (now != seen) return now;
        gni_pool_pause(round);
        if ((round & 31) == 0 && gni_now_ns() - start > GNI_POOL_SPIN_NS) break;
    }
    gni_mutex_lock(&p->lock);
    gni_atomic_add(&p->sleeping.value, 1);
    while (gni_atomic_load(&p->generation.value) == seen) gni_cond_wait(&p->wake, &p->lock);
    gni_atomic_add(&p->sleeping.value, -1);
    gni_mutex_unlock(&p->lock);
    return gni_atomic_load(&p->generation.value);
}

static void gni_pool_main(void *arg) {
    gni_pool_worker *w = (gni_pool_worker *)arg;
    gni_pool *p = w->pool;
    for (int32_t seen = 0;;) {
        seen = gni_pool_idle(p, seen);
        if (gni_atomic_load(&p->quit.value) != 0) return;
        gni_pool_join(p, w->index);
    }
}

static void gni_pool_wake(gni_pool *p) {
    gni_atomic_add(&p->generation.value, 1);
    if (gni_atomic_load(&p->sleeping.value) == 0) return;
    gni_mutex_lock(&p->lock);
    gni_cond_broadcast(&p->wake);
    gni_mutex_unlock(&p->lock);
}

static void gni_pool_close(gni_pool *p) {
    if (p == NULL) return;
    gni_atomic_store(&p->quit.value, 1);
    gni_pool_wake(p);
    for (int i = 1; i < p->threads; i++) gni_thread_join(&p->worker[i].thread);
    gni_cond_free(&p->done);
    gni_cond_free(&p->wake);
    gni_mutex_free(&p->lock);
    gni_free(p->g, p);
}

// `threads` counts the caller's own; 0 means one for each CPU. NULL (no memory, or one thread only) is
// a pool too: everything then runs inline.
static gni_pool *gni_pool_open(gn_context *g, int threads) {
    int count = threads > 0 ? threads : gni_cpu_count();
    count = GNI_MIN(count, GNI_POOL_MAX);
    if (count < 2) return NULL;
    gni_pool *p = (gni_pool *)gni_calloc(g, sizeof *p);
    if (p == NULL) return NULL;
    p->g = g;
    gni_mutex_init(&p->lock);
    gni_cond_init(&p->wake);
    gni_cond_init(&p->done);
    gni_atomic_store(&p->active.value, GNI_POOL_CLOSED);
    for (p->threads = 1; p->threads < count; p->threads++) {
        gni_pool_worker *w = &p->worker[p->threads];
        w->pool = p;
        w->index = p->threads;
        if (!gni_thread_start(&w->thread, gni_pool_main, w)) break; // fewer threads will do
    }
    return p;
}

static int gni_pool_threads(const gni_pool *p) {
    return p == NULL ? 1 : p->threads;
}

// Waits until no worker is inside the closed job.
static void gni_pool_drain(gni_pool *p) {
    uint64_t start = gni_now_ns();
    for (int round = 1;; round++) {
        if (gni_atomic_load(&p->active.value) == GNI_POOL_CLOSED) return;
        gni_pool_pause(round);
        if ((round & 31) == 0 && gni_now_ns() - start > GNI_POOL_SPIN_NS) break;
    }
    gni_atomic_store(&p->waiting.value, 1);
    gni_mutex_lock(&p->lock);
    while (gni_atomic_load(&p->active.value) != GNI_POOL_CLOSED) gni_cond_wait(&p->done, &p->lock);
    gni_mutex_unlock(&p->lock);
    gni_atomic_store(&p->waiting.value, 0);
}

// Calls fn on parts of [0, items) and returns when all are done. `begin` is always a multiple of `grain`.
// `worker` is below gni_pool_threads(p) and no two calls of one job run under the same number at the same
// time: scratch memory that belongs to this job may be indexed by it. Runs inline, as worker 0, when
// items <= grain, without a pool, and inside of another gni_parallel of the same pool.
// How the parts are cut depends on the number of threads: what fn computes must not depend on it.
static void gni_parallel(gni_pool *p, int64_t items, int64_t grain, gni_task_fn fn, void *arg) {
    if (items <= 0) return;
    if (grain < 1) grain = 1;
    if (p == NULL || p->threads < 2 || items <= grain) {
        fn(arg, 0, items, 0);
        return;
    }
    if (gni_atomic_add(&p->busy.value, 1) != 0) {
        fn(arg, 0, items, 0);
        gni_atomic_add(&p->busy.value, -1);
        return;
    }
    int64_t grains = (items - 1) / grain + 1;
    int64_t most = (int64_t)p->threads * GNI_POOL_CHUNKS;
    p->chunk = grains <= most ? grain : ((grains - 1) / most + 1) * grain;
    p->chunks = (int32_t)((items - 1) / p->chunk + 1);
    p->items = items;
    p->fn = fn;
    p->arg = arg;
    gni_atomic_store(&p->next.value, 0);
    gni_atomic_add(&p->active.value, -GNI_POOL_CLOSED);
    gni_pool_wake(p);
    gni_pool_work(p, 0);
    gni_atomic_add(&p->active.value, GNI_POOL_CLOSED);
    gni_pool_drain(p);
    gni_atomic_add(&p->busy.value, -1);
}

#endif

// ------------------------------------------------------------------------------------------
// >>passes
// Compiles the SIMD rooms once per instruction set, by including this file again with GNI_SIMD_PASS
// set, and says what every pass offers. From outside: gni_cpu_isa
// and the types in it.

// One instruction on a block: n elements, a multiple of 16; dst may be any of the sources.
typedef void (*gni_kernel)(void *dst, const void *a, const void *b, const void *c, int n);
// n elements of memory to a register, or of a register to memory.
typedef void (*gni_convert_fn)(void *dst, const void *src, int64_t n);

// What a reduction has gathered so far. `d` is for floats, `i` for integers and truth values; `e` is
// what rounding took away from `d` in a wide sum, `at` the place of the smallest or largest.
typedef struct gni_acc {
    double d, e;
    int64_t i, at;
} gni_acc;
// Takes n elements in; `at` is the place of the first. A place is an index among the reduced elements.
typedef void (*gni_fold_fn)(gni_acc *acc, const void *x, int64_t n, int64_t at);

// Accumulators of neighbouring columns: 8 bytes each in `v` (float64 sums and products, int64, float32
// or int32 extremes), `e` and `at` as in gni_acc.
typedef struct gni_acc_columns {
    void *v;
    double *e;
    int64_t *at;
} gni_acc_columns;
// Takes `rows` rows of n columns in, row r at x + r * stride elements and with place at + r.
typedef void (*gni_fold_columns_fn)(gni_acc_columns *acc, const void *x, int64_t rows, int64_t stride,
                                    int64_t n, int64_t at);

// Pieces of a softmax row. `stats` finds the largest element and the sum of exp(x - it), and stores the
// terms at y unless that is NULL; the others make y from x.
typedef struct gni_softmax_part {
    double most, sum;
} gni_softmax_part;
typedef struct gni_softmax_fns {
    gni_softmax_part (*stats)(void *y, const void *x, int64_t n);
    void (*scale)(void *y, const void *x, int64_t n, double factor);              // x * factor
    void (*emit)(void *y, const void *x, int64_t n, double most, double factor);  // exp(x - most) * factor
    void (*emit_log)(void *y, const void *x, int64_t n, double most, double low); // x - most - low
    void (*columns)(float *x, int64_t n, int64_t rows, gni_softmax_kind kind);    // many short rows, turned
} gni_softmax_fns;

// What one pass offers. Kernels are indexed by GNI_INSN_CODE, folds by reduction * 3 + domain.
typedef struct gni_cpu_isa {
    gni_kernel const *kernel;
    gni_convert_fn const *load, *store; // by dtype, NULL where the register is the same as memory
    gni_fold_fn const *fold;
    gni_fold_columns_fn const *fold_columns;
    const gni_softmax_fns *softmax;
    // Philox blocks first to first + blocks - 1, four words each.
    void (*bits)(uint32_t *dst, uint64_t seed, uint64_t first, int64_t blocks);
    void (*uniform)(float *dst, uint64_t seed, uint64_t first, int64_t blocks);
    void (*normal)(float *dst, uint64_t seed, uint64_t first, int64_t blocks);
    void (*stream)(void *dst, const void *src, int64_t bytes);
} gni_cpu_isa;

#define GNI_SIMD_PASS 1

#define GNI_PASS_PLAIN 1
#define GNI_VW 1
#define GNI_FN(name) name##_plain
#include GPUNUM_SELF
#undef GNI_PASS_PLAIN
#undef GNI_VW
#undef GNI_FN

#if defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#define GNI_PASS_BASE 1
#define GNI_GEMM_HAS_BASE 1
#define GNI_VW 4
#define GNI_FN(name) name##_base
#include GPUNUM_SELF
#undef GNI_PASS_BASE
#undef GNI_VW
#undef GNI_FN
#endif

#ifdef GNI_X86
#define GNI_PASS_AVX2 1
#define GNI_GEMM_HAS_AVX2 1
#define GNI_VW 8
#define GNI_FN(name) name##_avx2
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi2")
#endif
#include GPUNUM_SELF
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef GNI_PASS_AVX2
#undef GNI_VW
#undef GNI_FN

#define GNI_PASS_AVX512 1
#define GNI_GEMM_HAS_AVX512 1
#define GNI_VW 16
#define GNI_FN(name) name##_avx512
#ifdef __clang__
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2"))),              \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2")
#endif
#include GPUNUM_SELF
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef GNI_PASS_AVX512
#undef GNI_VW
#undef GNI_FN
#endif

#undef GNI_SIMD_PASS
#endif // implementation, first half

#ifdef GNI_SIMD_PASS
// >>simd
// Vectors of one SIMD pass: GNI_VW lanes of float, int32 or uint32, and what can be done with them.
// Compiled once per pass; the rooms of the same pass use the short names, which 79-simd-end.h takes back.
// A mask is a gni_vi with lanes 0 or -1. A gni_vk is the pass's cheapest mask (a bit mask on AVX-512): the gni_k...
// functions make and use it; gni_kmask turns it into a gni_vi.

#define gni_vf GNI_FN(gni_vecf)
#define gni_vi GNI_FN(gni_veci)
#define gni_vu GNI_FN(gni_vecu)
#define gni_vh GNI_FN(gni_vech) // uint16 lanes, only to narrow and widen
#define gni_vk GNI_FN(gni_veck)

#if GNI_VW == 1
typedef float gni_vf;
typedef int32_t gni_vi;
typedef uint32_t gni_vu;
typedef uint16_t gni_vh;
#else
typedef float gni_vf __attribute__((vector_size(GNI_VW * 4)));
typedef int32_t gni_vi __attribute__((vector_size(GNI_VW * 4)));
typedef uint32_t gni_vu __attribute__((vector_size(GNI_VW * 4)));
typedef uint16_t gni_vh __attribute__((vector_size(GNI_VW * 2)));
#endif
#if defined(GNI_PASS_AVX512)
typedef __mmask16 gni_vk;
#else
typedef gni_vi gni_vk;
#endif

// What the base pass is made of, and whether gni_vfma rounds once.
#if GNI_VW == 4 && (defined(__SSE2__) || defined(_M_X64))
#define GNI_V_SSE2 1
#else
#define GNI_V_SSE2 0
#endif
#if GNI_VW == 4 && defined(__aarch64__) && defined(__ARM_NEON)
#define GNI_V_NEON 1
#else
#define GNI_V_NEON 0
#endif
#if defined(GNI_PASS_AVX512) || defined(GNI_PASS_AVX2) || GNI_V_NEON
#define GNI_V_FUSED 1
#else
#define GNI_V_FUSED 0
#endif

// Bit casts, and int32 <-> uint32 (the same bits).
#define gni_vf_bits GNI_FN(gni_s_bits)
#define gni_vi_float GNI_FN(gni_s_float)
#define gni_vf_ubits GNI_FN(gni_s_ubits)
#define gni_vu_float GNI_FN(gni_s_ufloat)
#define gni_vi_u(x) ((gni_vu)(x))
#define gni_vu_i(x) ((gni_vi)(x))

GNI_INLINE gni_vi gni_vf_bits(gni_vf x) {
    gni_vi r;
    memcpy(&r, &x, sizeof r);
    return r;
}
GNI_INLINE gni_vf gni_vi_float(gni_vi x) {
    gni_vf r;
    memcpy(&r, &x, sizeof r);
    return r;
}
GNI_INLINE gni_vu gni_vf_ubits(gni_vf x) { return gni_vi_u(gni_vf_bits(x)); }
GNI_INLINE gni_vf gni_vu_float(gni_vu x) { return gni_vi_float(gni_vu_i(x)); }

// Loads and stores need no alignment. The ...n forms touch only the first n lanes (0 <= n <= GNI_VW) and load 0 beyond.
#define gni_vload GNI_FN(gni_s_load)
#define gni_vloadi GNI_FN(gni_s_loadi)
#define gni_vloadu GNI_FN(gni_s_loadu)
#define gni_vloadh GNI_FN(gni_s_loadh)
#define gni_vloadn GNI_FN(gni_s_loadn)
#define gni_vloadin GNI_FN(gni_s_loadin)
#define gni_vstore GNI_FN(gni_s_store)
#define gni_vstorei GNI_FN(gni_s_storei)
#define gni_vstoreu GNI_FN(gni_s_storeu)
#define gni_vstoreh GNI_FN(gni_s_storeh)
#define gni_vstoren GNI_FN(gni_s_storen)
#define gni_vstorein GNI_FN(gni_s_storein)

GNI_INLINE gni_vf gni_vload(const float *p) {
    gni_vf r;
    memcpy(&r, p, sizeof r);
    return r;
}
GNI_INLINE gni_vi gni_vloadi(const int32_t *p) {
    gni_vi r;
    memcpy(&r, p, sizeof r);
    return r;
}
GNI_INLINE gni_vu gni_vloadu(const uint32_t *p) {
    gni_vu r;
    memcpy(&r, p, sizeof r);
    return r;
}
GNI_INLINE gni_vh gni_vloadh(const uint16_t *p) {
    gni_vh r;
    memcpy(&r, p, sizeof r);
    return r;
}
GNI_INLINE void gni_vstore(float *p, gni_vf v) { memcpy(p, &v, sizeof v); }
GNI_INLINE void gni_vstorei(int32_t *p, gni_vi v) { memcpy(p, &v, sizeof v); }
GNI_INLINE void gni_vstoreu(uint32_t *p, gni_vu v) { memcpy(p, &v, sizeof v); }
GNI_INLINE void gni_vstoreh(uint16_t *p, gni_vh v) { memcpy(p, &v, sizeof v); }

GNI_INLINE gni_vf gni_vloadn(const float *p, int n) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
#else
    float t[GNI_VW] = {0};
    memcpy(t, p, sizeof(float) * (size_t)n);
    return gni_vload(t);
#endif
}
GNI_INLINE gni_vi gni_vloadin(const int32_t *p, int n) {
#if defined(GNI_PASS_AVX512)
    return (gni_vi)_mm512_maskz_loadu_epi32((__mmask16)((1u << n) - 1u), p);
#else
    int32_t t[GNI_VW] = {0};
    memcpy(t, p, sizeof(int32_t) * (size_t)n);
    return gni_vloadi(t);
#endif
}
GNI_INLINE void gni_vstoren(float *p, gni_vf v, int n) {
#if defined(GNI_PASS_AVX512)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
#else
    memcpy(p, &v, sizeof(float) * (size_t)n);
#endif
}
GNI_INLINE void gni_vstorein(int32_t *p, gni_vi v, int n) {
#if defined(GNI_PASS_AVX512)
    _mm512_mask_storeu_epi32(p, (__mmask16)((1u << n) - 1u), (__m512i)v);
#else
    memcpy(p, &v, sizeof(int32_t) * (size_t)n);
#endif
}

#define gni_vset GNI_FN(gni_s_set)
#define gni_vseti GNI_FN(gni_s_seti)
#define gni_vsetu GNI_FN(gni_s_setu)
#define gni_viota GNI_FN(gni_s_iota)

GNI_INLINE gni_vf gni_vset(float x) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_set1_ps(x);
#elif GNI_VW == 8
    gni_vf r = {x, x, x, x, x, x, x, x};
    return r;
#elif GNI_VW == 4
    gni_vf r = {x, x, x, x};
    return r;
#else
    return x;
#endif
}
GNI_INLINE gni_vi gni_vseti(int32_t x) {
#if defined(GNI_PASS_AVX512)
    return (gni_vi)_mm512_set1_epi32(x);
#elif GNI_VW == 8
    gni_vi r = {x, x, x, x, x, x, x, x};
    return r;
#elif GNI_VW == 4
    gni_vi r = {x, x, x, x};
    return r;
#else
    return x;
#endif
}
GNI_INLINE gni_vu gni_vsetu(uint32_t x) { return gni_vi_u(gni_vseti((int32_t)x)); }
// Lanes 0, 1, 2, ...
GNI_INLINE gni_vi gni_viota(void) {
    static const int32_t t[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return gni_vloadi(t);
}

// a * b + c: rounds once where GNI_V_FUSED, else twice.
#define gni_vfma GNI_FN(gni_s_fma)
#define gni_vfnma GNI_FN(gni_s_fnma) // c - a * b
#define gni_vsqrt GNI_FN(gni_s_sqrt)
#define gni_vabs GNI_FN(gni_s_abs)
#define gni_vneg GNI_FN(gni_s_neg)
#define gni_vcopysign GNI_FN(gni_s_copysign)

GNI_INLINE gni_vf gni_vfma(gni_vf a, gni_vf b, gni_vf c) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif GNI_V_NEON
    return (gni_vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}
GNI_INLINE gni_vf gni_vfnma(gni_vf a, gni_vf b, gni_vf c) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_fnmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif GNI_V_NEON
    return (gni_vf)vfmsq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return c - a * b;
#endif
}
GNI_INLINE gni_vf gni_vsqrt(gni_vf x) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_sqrt_ps((__m512)x);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_sqrt_ps((__m256)x);
#elif GNI_V_SSE2
    return (gni_vf)_mm_sqrt_ps((__m128)x);
#elif GNI_V_NEON
    return (gni_vf)vsqrtq_f32((float32x4_t)x);
#elif GNI_VW == 1
    return sqrtf(x);
#else
    for (int i = 0; i < GNI_VW; i++) x[i] = sqrtf(x[i]);
    return x;
#endif
}
GNI_INLINE gni_vf gni_vabs(gni_vf x) { return gni_vi_float(gni_vf_bits(x) & 0x7fffffff); }
GNI_INLINE gni_vf gni_vneg(gni_vf x) { return -x; }
// The magnitude of x with the sign of s.
GNI_INLINE gni_vf gni_vcopysign(gni_vf x, gni_vf s) {
    return gni_vu_float((gni_vf_ubits(x) & 0x7fffffffu) | (gni_vf_ubits(s) & 0x80000000u));
}

// Comparisons to a gni_vk. With a NaN operand only gni_kne is true.
#define gni_klt GNI_FN(gni_s_klt)
#define gni_kle GNI_FN(gni_s_kle)
#define gni_keq GNI_FN(gni_s_keq)
#define gni_kne GNI_FN(gni_s_kne)
#define gni_knan GNI_FN(gni_s_knan)
#define gni_kieq GNI_FN(gni_s_kieq)
#define gni_kilt GNI_FN(gni_s_kilt)
#define gni_kult GNI_FN(gni_s_kult)
#define gni_kgt(a, b) gni_klt(b, a)
#define gni_kge(a, b) gni_kle(b, a)
#define gni_kigt(a, b) gni_kilt(b, a)
#define gni_kmask GNI_FN(gni_s_kmask)
#define gni_kfrom GNI_FN(gni_s_kfrom)
#define gni_kand GNI_FN(gni_s_kand)
#define gni_kor GNI_FN(gni_s_kor)
#define gni_knot GNI_FN(gni_s_knot)
#define gni_kany GNI_FN(gni_s_kany)
#define gni_ksel GNI_FN(gni_s_ksel)
#define gni_kseli GNI_FN(gni_s_kseli)
#define gni_kselu(k, a, b) gni_vi_u(gni_kseli(k, gni_vu_i(a), gni_vu_i(b)))

#if defined(GNI_PASS_AVX512)
GNI_INLINE gni_vk gni_klt(gni_vf a, gni_vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
}
GNI_INLINE gni_vk gni_kle(gni_vf a, gni_vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LE_OQ);
}
GNI_INLINE gni_vk gni_keq(gni_vf a, gni_vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
}
GNI_INLINE gni_vk gni_kne(gni_vf a, gni_vf b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NEQ_UQ);
}
GNI_INLINE gni_vk gni_kieq(gni_vi a, gni_vi b) {
    return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b);
}
GNI_INLINE gni_vk gni_kilt(gni_vi a, gni_vi b) {
    return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b);
}
GNI_INLINE gni_vk gni_kult(gni_vu a, gni_vu b) {
    return _mm512_cmplt_epu32_mask((__m512i)a, (__m512i)b);
}
GNI_INLINE gni_vi gni_kmask(gni_vk k) { return (gni_vi)_mm512_movm_epi32(k); }
GNI_INLINE gni_vk gni_kfrom(gni_vi m) { return _mm512_movepi32_mask((__m512i)m); }
GNI_INLINE gni_vk gni_kand(gni_vk a, gni_vk b) { return (gni_vk)(a & b); }
GNI_INLINE gni_vk gni_kor(gni_vk a, gni_vk b) { return (gni_vk)(a | b); }
GNI_INLINE gni_vk gni_knot(gni_vk a) { return (gni_vk)~a; }
GNI_INLINE int gni_kany(gni_vk k) { return k != 0; }
GNI_INLINE gni_vf gni_ksel(gni_vk k, gni_vf a, gni_vf b) {
    return (gni_vf)_mm512_mask_blend_ps(k, (__m512)b, (__m512)a);
}
GNI_INLINE gni_vi gni_kseli(gni_vk k, gni_vi a, gni_vi b) {
    return (gni_vi)_mm512_mask_blend_epi32(k, (__m512i)b, (__m512i)a);
}
#elif GNI_VW == 1
GNI_INLINE gni_vk gni_klt(gni_vf a, gni_vf b) { return -(int32_t)(a < b); }
GNI_INLINE gni_vk gni_kle(gni_vf a, gni_vf b) { return -(int32_t)(a <= b); }
GNI_INLINE gni_vk gni_keq(gni_vf a, gni_vf b) { return -(int32_t)(a == b); }
GNI_INLINE gni_vk gni_kne(gni_vf a, gni_vf b) { return -(int32_t)(a != b); }
GNI_INLINE gni_vk gni_kieq(gni_vi a, gni_vi b) { return -(int32_t)(a == b); }
GNI_INLINE gni_vk gni_kilt(gni_vi a, gni_vi b) { return -(int32_t)(a < b); }
GNI_INLINE gni_vk gni_kult(gni_vu a, gni_vu b) { return -(int32_t)(a < b); }
GNI_INLINE gni_vi gni_kmask(gni_vk k) { return k; }
GNI_INLINE gni_vk gni_kfrom(gni_vi m) { return m; }
GNI_INLINE gni_vk gni_kand(gni_vk a, gni_vk b) { return a & b; }
GNI_INLINE gni_vk gni_kor(gni_vk a, gni_vk b) { return a | b; }
GNI_INLINE gni_vk gni_knot(gni_vk a) { return ~a; }
GNI_INLINE int gni_kany(gni_vk k) { return k != 0; }
GNI_INLINE gni_vf gni_ksel(gni_vk k, gni_vf a, gni_vf b) { return k ? a : b; }
GNI_INLINE gni_vi gni_kseli(gni_vk k, gni_vi a, gni_vi b) { return k ? a : b; }
#else
GNI_INLINE gni_vk gni_klt(gni_vf a, gni_vf b) { return (gni_vk)(a < b); }
GNI_INLINE gni_vk gni_kle(gni_vf a, gni_vf b) { return (gni_vk)(a <= b); }
GNI_INLINE gni_vk gni_keq(gni_vf a, gni_vf b) { return (gni_vk)(a == b); }
GNI_INLINE gni_vk gni_kne(gni_vf a, gni_vf b) { return (gni_vk)(a != b); }
GNI_INLINE gni_vk gni_kieq(gni_vi a, gni_vi b) { return (gni_vk)(a == b); }
GNI_INLINE gni_vk gni_kilt(gni_vi a, gni_vi b) { return (gni_vk)(a < b); }
GNI_INLINE gni_vk gni_kult(gni_vu a, gni_vu b) { return (gni_vk)(a < b); }
GNI_INLINE gni_vi gni_kmask(gni_vk k) { return k; }
GNI_INLINE gni_vk gni_kfrom(gni_vi m) { return m; }
GNI_INLINE gni_vk gni_kand(gni_vk a, gni_vk b) { return a & b; }
GNI_INLINE gni_vk gni_kor(gni_vk a, gni_vk b) { return a | b; }
GNI_INLINE gni_vk gni_knot(gni_vk a) { return ~a; }
GNI_INLINE int gni_kany(gni_vk k) {
#if defined(GNI_PASS_AVX2)
    return _mm256_movemask_ps((__m256)k) != 0;
#elif GNI_V_SSE2
    return _mm_movemask_ps((__m128)k) != 0;
#elif GNI_V_NEON
    return vmaxvq_u32((uint32x4_t)k) != 0;
#else
    int32_t any = 0;
    for (int i = 0; i < GNI_VW; i++) any |= k[i];
    return any != 0;
#endif
}
GNI_INLINE gni_vi gni_kseli(gni_vk k, gni_vi a, gni_vi b) {
#if defined(GNI_PASS_AVX2)
    return (gni_vi)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)k);
#elif GNI_V_NEON
    return (gni_vi)vbslq_s32((uint32x4_t)k, (int32x4_t)a, (int32x4_t)b);
#else
    return (k & a) | (~k & b);
#endif
}
GNI_INLINE gni_vf gni_ksel(gni_vk k, gni_vf a, gni_vf b) {
    return gni_vi_float(gni_kseli(k, gni_vf_bits(a), gni_vf_bits(b)));
}
#endif
GNI_INLINE gni_vk gni_knan(gni_vf x) { return gni_kne(x, x); }

// The same with masks as 0 / -1 lanes.
#define gni_vlt(a, b) gni_kmask(gni_klt(a, b))
#define gni_vle(a, b) gni_kmask(gni_kle(a, b))
#define gni_vgt(a, b) gni_kmask(gni_klt(b, a))
#define gni_vge(a, b) gni_kmask(gni_kle(b, a))
#define gni_veq(a, b) gni_kmask(gni_keq(a, b))
#define gni_vne(a, b) gni_kmask(gni_kne(a, b))
#define gni_visnan(a) gni_kmask(gni_knan(a))
#define gni_vieq(a, b) gni_kmask(gni_kieq(a, b))
#define gni_vilt(a, b) gni_kmask(gni_kilt(a, b))
#define gni_vsel(m, a, b) gni_ksel(gni_kfrom(m), a, b)
#define gni_vseli(m, a, b) gni_kseli(gni_kfrom(m), a, b)
#define gni_vmask01 GNI_FN(gni_s_mask01)
GNI_INLINE gni_vi gni_vmask01(gni_vi m) { return m & 1; } // lanes 0 / -1 to 0 / 1

// Minimum and maximum; a NaN in either operand gives NaN. Which of -0 and +0 comes out is not said.
#define gni_vmin GNI_FN(gni_s_min)
#define gni_vmax GNI_FN(gni_s_max)
// The same where x is known or wanted to win when it is NaN and the bound is not: clamping with a constant.
#define gni_vminc GNI_FN(gni_s_minc)
#define gni_vmaxc GNI_FN(gni_s_maxc)

GNI_INLINE gni_vf gni_vminc(gni_vf x, gni_vf bound) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_min_ps((__m512)bound, (__m512)x);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_min_ps((__m256)bound, (__m256)x);
#elif GNI_V_SSE2
    return (gni_vf)_mm_min_ps((__m128)bound, (__m128)x);
#elif GNI_V_NEON
    return (gni_vf)vminq_f32((float32x4_t)x, (float32x4_t)bound);
#else
    return gni_ksel(gni_klt(bound, x), bound, x);
#endif
}
GNI_INLINE gni_vf gni_vmaxc(gni_vf x, gni_vf bound) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_max_ps((__m512)bound, (__m512)x);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_max_ps((__m256)bound, (__m256)x);
#elif GNI_V_SSE2
    return (gni_vf)_mm_max_ps((__m128)bound, (__m128)x);
#elif GNI_V_NEON
    return (gni_vf)vmaxq_f32((float32x4_t)x, (float32x4_t)bound);
#else
    return gni_ksel(gni_klt(x, bound), bound, x);
#endif
}
GNI_INLINE gni_vf gni_vmin(gni_vf a, gni_vf b) {
    return gni_ksel(gni_knan(b), b, gni_vminc(a, b));
}
GNI_INLINE gni_vf gni_vmax(gni_vf a, gni_vf b) {
    return gni_ksel(gni_knan(b), b, gni_vmaxc(a, b));
}

// Rounding to an integral float; the sign of zero is kept. gni_vrint rounds half to even.
#define gni_vrint GNI_FN(gni_s_rint)
#define gni_vfloor GNI_FN(gni_s_floor)
#define gni_vceil GNI_FN(gni_s_ceil)
#define gni_vtrunc GNI_FN(gni_s_trunc)

#if defined(GNI_PASS_AVX512)
#define GNI_V_ROUND(x, mode) (gni_vf) _mm512_roundscale_ps((__m512)(x), mode)
#elif defined(GNI_PASS_AVX2)
#define GNI_V_ROUND(x, mode) (gni_vf) _mm256_round_ps((__m256)(x), mode)
#endif
#if defined(GNI_V_ROUND)
GNI_INLINE gni_vf gni_vrint(gni_vf x) { return GNI_V_ROUND(x, 0x8); }
GNI_INLINE gni_vf gni_vfloor(gni_vf x) { return GNI_V_ROUND(x, 0x9); }
GNI_INLINE gni_vf gni_vceil(gni_vf x) { return GNI_V_ROUND(x, 0xa); }
GNI_INLINE gni_vf gni_vtrunc(gni_vf x) { return GNI_V_ROUND(x, 0xb); }
#undef GNI_V_ROUND
#elif GNI_V_NEON
GNI_INLINE gni_vf gni_vrint(gni_vf x) { return (gni_vf)vrndnq_f32((float32x4_t)x); }
GNI_INLINE gni_vf gni_vfloor(gni_vf x) { return (gni_vf)vrndmq_f32((float32x4_t)x); }
GNI_INLINE gni_vf gni_vceil(gni_vf x) { return (gni_vf)vrndpq_f32((float32x4_t)x); }
GNI_INLINE gni_vf gni_vtrunc(gni_vf x) { return (gni_vf)vrndq_f32((float32x4_t)x); }
#else
// Adding and taking away 2^23 leaves no room for a fraction; from 2^23 on there is none anyway.
GNI_INLINE gni_vf gni_vrint(gni_vf x) {
    gni_vf a = gni_vabs(x), big = gni_vset(8388608.0f);
    gni_vf r = gni_vcopysign((a + big) - big, x);
    return gni_ksel(gni_klt(a, big), r, x);
}
GNI_INLINE gni_vf gni_vfloor(gni_vf x) {
    gni_vf r = gni_vrint(x), zero = gni_vset(0.0f);
    return gni_vcopysign(r - gni_ksel(gni_kgt(r, x), gni_vset(1.0f), zero), x);
}
GNI_INLINE gni_vf gni_vceil(gni_vf x) {
    gni_vf r = gni_vrint(x), zero = gni_vset(0.0f);
    return gni_vcopysign(r + gni_ksel(gni_klt(r, x), gni_vset(1.0f), zero), x);
}
GNI_INLINE gni_vf gni_vtrunc(gni_vf x) { return gni_vcopysign(gni_vfloor(gni_vabs(x)), x); }
#endif

// Conversions between floats and integers. To integer: truncates, saturates, NaN gives 0.
#define gni_vtoi GNI_FN(gni_s_toi)
#define gni_vtou GNI_FN(gni_s_tou)
#define gni_vtoi_fast GNI_FN(gni_s_toi_fast)
#define gni_itov GNI_FN(gni_s_itov)
#define gni_utov GNI_FN(gni_s_utov)

// For |x| < 2^31 only.
GNI_INLINE gni_vi gni_vtoi_fast(gni_vf x) {
#if defined(GNI_PASS_AVX512)
    return (gni_vi)_mm512_cvttps_epi32((__m512)x);
#elif defined(GNI_PASS_AVX2)
    return (gni_vi)_mm256_cvttps_epi32((__m256)x);
#elif GNI_V_SSE2
    return (gni_vi)_mm_cvttps_epi32((__m128)x);
#elif GNI_V_NEON
    return (gni_vi)vcvtq_s32_f32((float32x4_t)x);
#elif GNI_VW == 1
    return (int32_t)x;
#else
    return __builtin_convertvector(x, gni_vi);
#endif
}
GNI_INLINE gni_vi gni_vtoi(gni_vf x) {
    gni_vf top = gni_vset(2147483648.0f);
    gni_vk in = gni_kand(gni_klt(x, top), gni_kge(x, -top));
    gni_vi r = gni_vtoi_fast(gni_ksel(in, x, gni_vset(0.0f)));
    r = gni_kseli(gni_kge(x, top), gni_vseti(INT32_MAX), r);
    return gni_kseli(gni_klt(x, -top), gni_vseti(INT32_MIN), r);
}
GNI_INLINE gni_vu gni_vtou(gni_vf x) {
    gni_vf half = gni_vset(2147483648.0f), top = gni_vset(4294967296.0f);
    gni_vk in = gni_kand(gni_klt(x, top), gni_kge(x, gni_vset(0.0f)));
    gni_vf y = gni_ksel(in, x, gni_vset(0.0f));
    gni_vk high = gni_kge(y, half);
    gni_vu r = gni_vi_u(gni_vtoi_fast(gni_ksel(high, y - half, y)));
    r ^= gni_vi_u(gni_kmask(high)) & 0x80000000u;
    return r | gni_vi_u(gni_vge(x, top));
}
GNI_INLINE gni_vf gni_itov(gni_vi x) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_cvtepi32_ps((__m512i)x);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_cvtepi32_ps((__m256i)x);
#elif GNI_V_SSE2
    return (gni_vf)_mm_cvtepi32_ps((__m128i)x);
#elif GNI_VW == 1
    return (float)x;
#else
    return __builtin_convertvector(x, gni_vf);
#endif
}
// Two exact halves and one rounding add: correct for every value, and the same on every pass.
GNI_INLINE gni_vf gni_utov(gni_vu x) {
    gni_vf high = gni_itov(gni_vu_i(x >> 16)), low = gni_itov(gni_vu_i(x & 0xffffu));
    return high * gni_vset(65536.0f) + low;
}

// float16 and bfloat16: round to nearest even, subnormals exact, NaN stays NaN.
// gni_vf16_float and gni_vfloat_f16 work on the low 16 bits of each lane, the loads and stores on packed uint16.
#define gni_vwiden GNI_FN(gni_s_widen)
#define gni_vnarrow GNI_FN(gni_s_narrow)
#define gni_vf16_float GNI_FN(gni_s_f16_float)
#define gni_vfloat_f16 GNI_FN(gni_s_float_f16)
#define gni_vbf16_float GNI_FN(gni_s_bf16_float)
#define gni_vfloat_bf16 GNI_FN(gni_s_float_bf16)
#define gni_vload_f16 GNI_FN(gni_s_load_f16)
#define gni_vstore_f16 GNI_FN(gni_s_store_f16)
#define gni_vload_bf16 GNI_FN(gni_s_load_bf16)
#define gni_vstore_bf16 GNI_FN(gni_s_store_bf16)

GNI_INLINE gni_vu gni_vwiden(gni_vh x) {
#if GNI_VW == 1
    return x;
#else
    return __builtin_convertvector(x, gni_vu);
#endif
}
// Keeps the low 16 bits of each lane.
GNI_INLINE gni_vh gni_vnarrow(gni_vu x) {
#if GNI_VW == 1
    return (gni_vh)(x & 0xffffu);
#else
    return __builtin_convertvector(x, gni_vh);
#endif
}
GNI_INLINE gni_vf gni_vf16_float(gni_vu h) {
    gni_vu em = (h & 0x7fffu) << 13, sign = (h & 0x8000u) << 16;
    gni_vf normal = gni_vu_float(em + 0x38000000u);
    // A subnormal's mantissa is put under the exponent of 2^-14 and that 2^-14 taken away again.
    gni_vf sub = gni_vu_float(em + 0x38800000u) - gni_vset(6.103515625e-05f);
    gni_vf top = gni_vu_float(em | 0x7f800000u);
    gni_vf r = gni_ksel(gni_kult(em, gni_vsetu(0x00800000u)), sub, normal);
    r = gni_ksel(gni_kult(em, gni_vsetu(0x0f800000u)), r, top);
    return gni_vu_float(gni_vf_ubits(r) | sign);
}
GNI_INLINE gni_vu gni_vfloat_f16(gni_vf x) {
    gni_vu u = gni_vf_ubits(x), a = u & 0x7fffffffu, sign = (u >> 16) & 0x8000u;
    gni_vu normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
    // Adding 0.5 lines the bits up with float16's subnormals and rounds.
    gni_vu sub = gni_vf_ubits(gni_vu_float(a) + gni_vset(0.5f)) - 0x3f000000u;
    gni_vu r = gni_kselu(gni_kult(a, gni_vsetu(0x38800000u)), sub, normal);
    r = gni_kselu(gni_kult(a, gni_vsetu(0x47800000u)), r, gni_vsetu(0x7c00u));
    r = gni_kselu(gni_kult(gni_vsetu(0x7f800000u), a), ((a >> 13) & 0x3ffu) | 0x7e00u, r);
    return r | sign;
}
GNI_INLINE gni_vf gni_vbf16_float(gni_vu h) { return gni_vu_float(h << 16); }
GNI_INLINE gni_vu gni_vfloat_bf16(gni_vf x) {
    gni_vu u = gni_vf_ubits(x);
    gni_vu r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return gni_kselu(gni_knan(x), (u >> 16) | 0x40u, r);
}
GNI_INLINE gni_vf gni_vload_f16(const uint16_t *p) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_cvtph_ps((__m256i)gni_vloadh(p));
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_cvtph_ps((__m128i)gni_vloadh(p));
#elif GNI_V_NEON
    return (gni_vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#else
    return gni_vf16_float(gni_vwiden(gni_vloadh(p)));
#endif
}
GNI_INLINE void gni_vstore_f16(uint16_t *p, gni_vf x) {
#if defined(GNI_PASS_AVX512)
    gni_vstoreh(p, (gni_vh)_mm512_cvtps_ph((__m512)x, 0x8));
#elif defined(GNI_PASS_AVX2)
    gni_vstoreh(p, (gni_vh)_mm256_cvtps_ph((__m256)x, 0x0));
#elif GNI_V_NEON
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)x)));
#else
    gni_vstoreh(p, gni_vnarrow(gni_vfloat_f16(x)));
#endif
}
GNI_INLINE gni_vf gni_vload_bf16(const uint16_t *p) {
    return gni_vbf16_float(gni_vwiden(gni_vloadh(p)));
}
GNI_INLINE void gni_vstore_bf16(uint16_t *p, gni_vf x) {
    gni_vstoreh(p, gni_vnarrow(gni_vfloat_bf16(x)));
}

// The 64-bit products of a and b, lane by lane, as high and low words.
#define gni_vmulhilo GNI_FN(gni_s_mulhilo)
GNI_INLINE void gni_vmulhilo(gni_vu a, gni_vu b, gni_vu *hi, gni_vu *lo) {
#if defined(GNI_PASS_AVX512)
    __m512i even = _mm512_mul_epu32((__m512i)a, (__m512i)b);
    __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32),
                                   _mm512_srli_epi64((__m512i)b, 32));
    *hi = (gni_vu)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    *lo = a * b;
#elif defined(GNI_PASS_AVX2)
    __m256i even = _mm256_mul_epu32((__m256i)a, (__m256i)b);
    __m256i odd =
        _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), _mm256_srli_epi64((__m256i)b, 32));
    *hi = (gni_vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *lo = a * b;
#elif GNI_V_SSE2
    __m128i even = _mm_mul_epu32((__m128i)a, (__m128i)b);
    __m128i odd = _mm_mul_epu32(_mm_srli_epi64((__m128i)a, 32), _mm_srli_epi64((__m128i)b, 32));
    const __m128i low = _mm_set_epi32(0, -1, 0, -1);
    *hi = (gni_vu)_mm_or_si128(_mm_srli_epi64(even, 32), _mm_andnot_si128(low, odd));
    *lo = (gni_vu)_mm_or_si128(_mm_and_si128(even, low), _mm_slli_epi64(odd, 32));
#elif GNI_VW == 1
    uint64_t p = (uint64_t)a * b;
    *hi = (uint32_t)(p >> 32);
    *lo = (uint32_t)(p & 0xffffffffu);
#else
    gni_vu h;
    for (int i = 0; i < GNI_VW; i++) h[i] = (uint32_t)(((uint64_t)a[i] * b[i]) >> 32);
    *hi = h;
    *lo = a * b;
#endif
}
// >>vmath
// The float32 functions of one SIMD pass: gni_vexp, gni_vsin, ... from vectors to vectors, every lane by itself.
// Range reduction and polynomials are the textbook ones (Muller, Elementary Functions; Cody & Waite 1980); the
// coefficients come from tools/fit_math.py, the measured errors from tools/ulp.c. tools/shaders/math.glsl has the same.

#define gni_vmad GNI_FN(gni_vm_mad)
#define gni_vhead GNI_FN(gni_vm_head)
#define gni_vpow2 GNI_FN(gni_vm_pow2)
#define gni_vscale GNI_FN(gni_vm_scale)
#define gni_vsignof GNI_FN(gni_vm_signof)
#define gni_vxor GNI_FN(gni_vm_xor)

// Adding this leaves x, rounded to an integer, in the low bits of the sum; |x| < 2^22.
#define GNI_V_MAGIC 12582912.0f
#define GNI_V_MAGIC_BITS 0x4b400000u

// a * b + c: one step of a polynomial.
GNI_INLINE gni_vf gni_vmad(gni_vf a, gni_vf b, float c) { return gni_vfma(a, b, gni_vset(c)); }
// The first 12 bits of x: products of two heads are exact, with or without a fused multiply-add.
GNI_INLINE gni_vf gni_vhead(gni_vf x) { return gni_vu_float(gni_vf_ubits(x) & 0xfffff000u); }
GNI_INLINE gni_vu gni_vsignof(gni_vf x) { return gni_vf_ubits(x) & 0x80000000u; }
GNI_INLINE gni_vf gni_vxor(gni_vf x, gni_vu bits) { return gni_vu_float(gni_vf_ubits(x) ^ bits); }
// 2^n for -126 <= n <= 127.
GNI_INLINE gni_vf gni_vpow2(gni_vi n) { return gni_vu_float((gni_vi_u(n) + 127u) << 23); }
// y 2^n for t = GNI_V_MAGIC + n, |n| <= 252; one rounding when the result is subnormal.
GNI_INLINE gni_vf gni_vscale(gni_vf y, gni_vf t) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_scalef_ps((__m512)y, (__m512)(t - gni_vset(GNI_V_MAGIC)));
#else
    gni_vi n = gni_vu_i(gni_vf_ubits(t) - GNI_V_MAGIC_BITS), half = n >> 1;
    return y * gni_vpow2(half) * gni_vpow2(gni_vu_i(gni_vi_u(n) - gni_vi_u(half)));
#endif
}

// ---- exp and its kin

#define gni_vexp_reduce GNI_FN(gni_vm_exp_reduce)
#define gni_vexp_poly GNI_FN(gni_vm_exp_poly)
#define gni_vexp_mid GNI_FN(gni_vm_exp_mid)
#define gni_vexp2_poly GNI_FN(gni_vm_exp2_poly)
#define gni_vexp GNI_FN(gni_vm_exp)
#define gni_vexp2 GNI_FN(gni_vm_exp2)
#define gni_vexpm1 GNI_FN(gni_vm_expm1)

// x = n ln 2 + r, |r| <= ln(2)/2, t = GNI_V_MAGIC + n.
GNI_INLINE gni_vf gni_vexp_reduce(gni_vf x, gni_vf *t) {
    *t = gni_vmad(x, gni_vset(1.44269502f), GNI_V_MAGIC);
    gni_vf n = *t - gni_vset(GNI_V_MAGIC);
    gni_vf r = gni_vfnma(n, gni_vset(0.693145752f), x);
    return gni_vfnma(n, gni_vset(1.42860677e-06f), r);
}
// exp(r) - 1 for |r| <= ln(2)/2.
GNI_INLINE gni_vf gni_vexp_poly(gni_vf r) {
    gni_vf p = gni_vset(0.00138219551f);
    p = gni_vmad(p, r, 0.0083690444f);
    p = gni_vmad(p, r, 0.0416682586f);
    p = gni_vmad(p, r, 0.166665182f);
    p = gni_vmad(p, r, 0.49999994f);
    return gni_vfma(p, r * r, r);
}
// exp(x) for |x| < 80; another x gives some number.
GNI_INLINE gni_vf gni_vexp_mid(gni_vf x) {
    gni_vf t, y = gni_vexp_poly(gni_vexp_reduce(x, &t)) + gni_vset(1.0f);
    return gni_vu_float(gni_vf_ubits(y) + (gni_vf_ubits(t) << 23));
}
GNI_INLINE gni_vf gni_vexp(gni_vf x) {
    gni_vf t, y = gni_vminc(gni_vmaxc(x, gni_vset(-104.0f)), gni_vset(89.0f));
    y = gni_vexp_poly(gni_vexp_reduce(y, &t)) + gni_vset(1.0f);
    return gni_vscale(y, t);
}
// 2^r - 1 for |r| <= 1/2.
GNI_INLINE gni_vf gni_vexp2_poly(gni_vf r) {
    gni_vf p = gni_vset(0.000153269313f);
    p = gni_vmad(p, r, 0.00133912405f);
    p = gni_vmad(p, r, 0.00961850584f);
    p = gni_vmad(p, r, 0.0555035919f);
    p = gni_vmad(p, r, 0.240226477f);
    p = gni_vmad(p, r, 0.693147182f);
    return p * r;
}
GNI_INLINE gni_vf gni_vexp2(gni_vf x) {
    gni_vf y = gni_vminc(gni_vmaxc(x, gni_vset(-151.0f)), gni_vset(129.0f));
    gni_vf t = y + gni_vset(GNI_V_MAGIC), n = t - gni_vset(GNI_V_MAGIC);
    return gni_vscale(gni_vexp2_poly(y - n) + gni_vset(1.0f), t);
}
GNI_INLINE gni_vf gni_vexpm1(gni_vf x) {
    gni_vf t, y = gni_vminc(gni_vmaxc(x, gni_vset(-18.0f)), gni_vset(89.0f));
    gni_vf p = gni_vexp_poly(gni_vexp_reduce(y, &t));
    // 2^n (p + 1) - 1 at half size, so that n = 128 does not overflow early.
    gni_vf s = gni_vu_float((gni_vf_ubits(t) << 23) + 0x3f000000u);
    y = gni_vfma(s, p, s - gni_vset(0.5f));
    y = gni_ksel(gni_keq(t, gni_vset(GNI_V_MAGIC)), p, y + y);
    return gni_vcopysign(y, x);
}

// ---- log and its kin

#define gni_vlog_bits GNI_FN(gni_vm_log_bits)
#define gni_vlog_split GNI_FN(gni_vm_log_split)
#define gni_vlog_poly GNI_FN(gni_vm_log_poly)
#define gni_vlog_near1 GNI_FN(gni_vm_log_near1)
#define gni_vlog GNI_FN(gni_vm_log)
#define gni_vlog2 GNI_FN(gni_vm_log2)
#define gni_vlog10 GNI_FN(gni_vm_log10)
#define gni_vlog1p GNI_FN(gni_vm_log1p)

// x = 2^k m, sqrt(1/2) <= m < sqrt(2), for normal x > 0.
GNI_INLINE gni_vf gni_vlog_bits(gni_vf x, gni_vf *k) {
    gni_vu u = gni_vf_ubits(x) - 0x3f3504f3u;
    *k = gni_itov(gni_vu_i(u) >> 23);
    return gni_vu_float((u & 0x007fffffu) + 0x3f3504f3u);
}
// The same for every x, returning f = m - 1. Where the logarithm is NaN or infinite, k or f is made so that the sum of their parts is.
GNI_INLINE gni_vf gni_vlog_split(gni_vf x, gni_vf *k) {
#if defined(GNI_PASS_AVX512)
    __m512 m = _mm512_getmant_ps((__m512)x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
    __m512 e = _mm512_getexp_ps((__m512)x);
    __mmask16 upper = _mm512_cmp_ps_mask(m, _mm512_set1_ps(1.41421354f), _CMP_GE_OQ);
    m = _mm512_mask_mul_ps(m, upper, m, _mm512_set1_ps(0.5f));
    *k = (gni_vf)_mm512_mask_add_ps(e, upper, e, _mm512_set1_ps(1.0f));
    return (gni_vf)m - gni_vset(1.0f);
#else
    gni_vf least = gni_vset(1.17549435e-38f), zero = gni_vset(0.0f), inf = gni_vset(INFINITY);
    gni_vk usual = gni_kand(gni_kge(x, least), gni_klt(x, inf));
    gni_vf f = gni_vlog_bits(x, k) - gni_vset(1.0f);
    if (gni_kany(gni_knot(usual))) {
        gni_vf k2, f2 = gni_vlog_bits(x * gni_vset(8388608.0f), &k2) - gni_vset(1.0f);
        gni_vk sub = gni_kand(gni_kgt(x, zero), gni_klt(x, least));
        // +Inf and NaN stay themselves, 0 gives -Inf, what is below 0 NaN.
        gni_vf k3 = gni_ksel(gni_keq(x, zero), -inf, gni_ksel(gni_klt(x, zero), inf - inf, x));
        f = gni_ksel(usual, f, gni_ksel(sub, f2, zero));
        *k = gni_ksel(usual, *k, gni_ksel(sub, k2 - gni_vset(23.0f), k3));
    }
    return f;
#endif
}
// log(1 + f) - f + add for sqrt(1/2) <= 1 + f < sqrt(2).
GNI_INLINE gni_vf gni_vlog_poly(gni_vf f, gni_vf add) {
    gni_vf z = f * f, p = gni_vset(-0.0763620213f);
    p = gni_vmad(p, f, 0.127620921f);
    p = gni_vmad(p, f, -0.131596208f);
    p = gni_vmad(p, f, 0.142015889f);
    p = gni_vmad(p, f, -0.166234091f);
    p = gni_vmad(p, f, 0.200012416f);
    p = gni_vmad(p, f, -0.250008196f);
    p = gni_vmad(p, f, 0.333333313f);
    p = gni_vfma(p, f * z, add);
    return gni_vfma(z, gni_vset(-0.5f), p);
}
// log(2^k (1 + f)).
GNI_INLINE gni_vf gni_vlog_near1(gni_vf k, gni_vf f) {
    gni_vf y = f + gni_vlog_poly(f, k * gni_vset(1.42860677e-06f));
    return gni_vfma(k, gni_vset(0.693145752f), y);
}
GNI_INLINE gni_vf gni_vlog(gni_vf x) {
    gni_vf k, f = gni_vlog_split(x, &k);
    return gni_vlog_near1(k, f);
}
GNI_INLINE gni_vf gni_vlog2(gni_vf x) {
    gni_vf k, f = gni_vlog_split(x, &k), y = f + gni_vlog_poly(f, gni_vset(0.0f));
    gni_vf low = gni_vfma(y, gni_vset(1.92596303e-08f), k);
    return gni_vfma(y, gni_vset(1.44269502f), low);
}
GNI_INLINE gni_vf gni_vlog10(gni_vf x) {
    gni_vf k, f = gni_vlog_split(x, &k), y = f + gni_vlog_poly(f, gni_vset(0.0f));
    gni_vf low = gni_vfma(y, gni_vset(0.434294492f), k * gni_vset(4.60503907e-06f));
    return gni_vfma(k, gni_vset(0.301025391f), low);
}
// log(2^up (1 + x)) for x > -1 that is finite; other x give some number.
#define gni_vlog1p_up GNI_FN(gni_vm_log1p_up)
GNI_INLINE gni_vf gni_vlog1p_up(gni_vf x, gni_vf up) {
    gni_vf one = gni_vset(1.0f), high = gni_vmaxc(x, one), low = gni_vminc(x, one);
    gni_vf k, sum = high + low, m = gni_vlog_bits(sum, &k);
    // What the sum lost to rounding, brought to the scale of m: half of it times 2^(1-k).
    gni_vf lost = low - (sum - high);
    gni_vf scale = gni_vu_float(0x40000000u - (gni_vf_ubits(sum) - gni_vf_ubits(m)));
    gni_vf f = gni_vfma(lost * scale, gni_vset(0.5f), m - one);
    return gni_vlog_near1(k + up, f);
}
GNI_INLINE gni_vf gni_vlog1p(gni_vf x) {
    gni_vf zero = gni_vset(0.0f), inf = gni_vset(INFINITY), edge = gni_vset(-1.0f);
    gni_vf y = gni_vcopysign(gni_vlog1p_up(x, zero), x);
    gni_vf odd = gni_ksel(gni_keq(x, edge), -inf, gni_ksel(gni_klt(x, edge), inf - inf, x));
    return gni_ksel(gni_kand(gni_kgt(x, edge), gni_klt(x, inf)), y, odd);
}

// ---- sin, cos, tan

#define gni_vpi_rest GNI_FN(gni_vm_pi_rest)
#define gni_vpi_rest_big GNI_FN(gni_vm_pi_rest_big)
#define gni_vtrig_rare GNI_FN(gni_vm_trig_rare)
#define gni_vsin_poly GNI_FN(gni_vm_sin_poly)
#define gni_vsin GNI_FN(gni_vm_sin)
#define gni_vcos GNI_FN(gni_vm_cos)
#define gni_vtan GNI_FN(gni_vm_tan)

#define GNI_V_PIO2 1.57079637f
#define GNI_V_PIO2_LO -4.37113883e-08f

// a - h pi for h a multiple of 1/2 near a / pi, a <= GNI_V_TRIG_MAX (Cody & Waite). Either the products are exact by
// themselves, or the fused multiply-add keeps what they lose.
#if GNI_V_FUSED
#define GNI_V_TRIG_MAX 131072.0f
GNI_INLINE gni_vf gni_vpi_rest(gni_vf a, gni_vf h) {
    gni_vf r = gni_vfnma(h, gni_vset(3.14159274f), a);
    r = gni_vfma(h, gni_vset(8.74227766e-08f), r);
    return gni_vfma(h, gni_vset(3.43024902e-15f), r);
}
#else
#define GNI_V_TRIG_MAX 12800.0f
GNI_INLINE gni_vf gni_vpi_rest(gni_vf a, gni_vf h) {
    gni_vf b = (a - h * gni_vset(3.140625f)) - h * gni_vset(0.000967502594f), c = h * gni_vset(1.50990672e-07f);
    // All exact so far; what the next difference loses is put back, so that only the last one rounds.
    gni_vf r = b - c, lost = (b - r) - c;
    return r + (lost - h * gni_vset(5.12668814e-12f));
}
#endif

// The same for any finite a > 1000 (Payne & Hanek 1983): a / pi mod 2 as a 64-bit fraction, from the 96 bits of 1 / pi
// that matter for a's exponent. *n gets the multiple of pi (or of pi/2 with halves = 1) that was taken off, mod 2 (4).
// shift is added to a first, in units of pi/2.
static float gni_vpi_rest_big(float a, int halves, uint32_t shift, uint32_t *n) {
    static const uint32_t inv_pi[9] = {0,           0x517cc1b7u, 0x27220a94u, 0xfe13abe8u, 0xfa9a6ee0u,
                                       0x6db14accu, 0x9e21c820u, 0xff28b1d5u, 0xef5de2b0u};
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    // a = m 2^e; the window starts at the bit of 1 / pi that weighs 2^-e.
    uint32_t start = (bits >> 23) - 150u + 31u, word = start >> 5, left = start & 31u, w[3];
    uint64_t m = (bits & 0x7fffffu) | 0x800000u;
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t two = ((uint64_t)inv_pi[word + i] << 32) | inv_pi[word + i + 1];
        w[i] = (uint32_t)((two << left) >> 32);
    }
    uint64_t p = ((m * w[0]) << 32) + m * w[1] + ((m * w[2]) >> 32) + ((uint64_t)shift << 62);
    int unit = halves ? 62 : 63;
    uint64_t count = ((p >> (unit - 1)) + 1) >> 1;
    *n = (uint32_t)count;
    p -= count << unit;
    double rest = p >> 63 ? -(double)(~p + 1) : (double)p;
    return (float)(rest * (3.14159265358979323846 / 9223372036854775808.0));
}
// Puts the rests of the finite lanes above GNI_V_TRIG_MAX into r, and the lowest bit of the count into the top bit of sign.
static gni_vf gni_vtrig_rare(gni_vf a, gni_vf r, gni_vu *sign, int halves, uint32_t shift) {
    float av[GNI_VW], rv[GNI_VW];
    uint32_t sv[GNI_VW];
    gni_vstore(av, a);
    gni_vstore(rv, r);
    gni_vstoreu(sv, *sign);
    for (int i = 0; i < GNI_VW; i++) {
        uint32_t n;
        if (!(av[i] > GNI_V_TRIG_MAX && av[i] <= 3.40282347e+38f)) continue;
        rv[i] = gni_vpi_rest_big(av[i], halves, shift, &n);
        sv[i] = n << 31;
    }
    *sign = gni_vloadu(sv);
    return gni_vload(rv);
}
// sin(r) for |r| <= pi/2.
GNI_INLINE gni_vf gni_vsin_poly(gni_vf r) {
    gni_vf z = r * r, p = gni_vset(2.60572824e-06f);
    p = gni_vmad(p, z, -0.000198096546f);
    p = gni_vmad(p, z, 0.00833306834f);
    // z^2 p + z c instead of z (z p + c): half the error at pi/2
    p = gni_vfma(z, gni_vset(-0.166666597f), p * (z * z));
    p = gni_vfma(p, r, r);
#if !GNI_V_FUSED
    // The roundings of products would be too much near pi/2: there it is the cosine of what is missing.
    gni_vf a = gni_vabs(r), w = (gni_vset(GNI_V_PIO2) - a) + gni_vset(GNI_V_PIO2_LO), v = w * w;
    gni_vf c = gni_vset(2.44318762e-05f);
    c = gni_vmad(c, v, -0.00138873071f);
    c = gni_vmad(c, v, 0.0416666456f);
    c = (v * v) * c - v * gni_vset(0.5f);
    p = gni_ksel(gni_kgt(a, gni_vset(0.785398185f)), gni_vcopysign(c + gni_vset(1.0f), r), p);
#endif
    return p;
}
GNI_INLINE gni_vf gni_vsin(gni_vf x) {
    gni_vf a = gni_vabs(x), t = gni_vmad(a, gni_vset(0.318309873f), GNI_V_MAGIC);
    gni_vf r = gni_vpi_rest(a, t - gni_vset(GNI_V_MAGIC));
    gni_vu sign = gni_vf_ubits(t) << 31;
    gni_vk rare = gni_kgt(a, gni_vset(GNI_V_TRIG_MAX));
    if (gni_kany(rare)) r = gni_vtrig_rare(a, r, &sign, 0, 0);
    return gni_vxor(gni_vsin_poly(r), sign ^ gni_vsignof(x));
}
// cos(a) = -sin(r) (-1)^j for a = (j + 1/2) pi + r.
GNI_INLINE gni_vf gni_vcos(gni_vf x) {
    gni_vf a = gni_vabs(x), t = gni_vmad(a, gni_vset(0.318309873f), -0.5f) + gni_vset(GNI_V_MAGIC);
    gni_vf r = gni_vpi_rest(a, (t - gni_vset(GNI_V_MAGIC)) + gni_vset(0.5f));
    gni_vu sign = ~gni_vf_ubits(t) << 31;
    gni_vk rare = gni_kgt(a, gni_vset(GNI_V_TRIG_MAX));
    if (gni_kany(rare)) r = gni_vtrig_rare(a, r, &sign, 0, 1);
    return gni_vxor(gni_vsin_poly(r), sign);
}
GNI_INLINE gni_vf gni_vtan(gni_vf x) {
    gni_vf a = gni_vabs(x), t = gni_vmad(a, gni_vset(0.636619747f), GNI_V_MAGIC);
    gni_vf r = gni_vpi_rest(a, (t - gni_vset(GNI_V_MAGIC)) * gni_vset(0.5f));
    gni_vu odd = gni_vf_ubits(t) << 31;
    gni_vk rare = gni_kgt(a, gni_vset(GNI_V_TRIG_MAX));
    if (gni_kany(rare)) r = gni_vtrig_rare(a, r, &odd, 1, 0);
    gni_vf z = r * r, p = gni_vset(0.00944519881f);
    p = gni_vmad(p, z, 0.0030206563f);
    p = gni_vmad(p, z, 0.0244908202f);
    p = gni_vmad(p, z, 0.0533946529f);
    p = gni_vmad(p, z, 0.13338995f);
    p = gni_vmad(p, z, 0.333331496f);
    p = gni_vfma(p * z, r, r);
    p = gni_ksel(gni_kilt(gni_vu_i(odd), gni_vseti(0)), gni_vset(-1.0f) / p, p);
    return gni_vxor(p, gni_vsignof(x));
}

// ---- asin, acos, atan, atan2

#define gni_vasin_poly GNI_FN(gni_vm_asin_poly)
#define gni_vatan_poly GNI_FN(gni_vm_atan_poly)
#define gni_vasin GNI_FN(gni_vm_asin)
#define gni_vacos GNI_FN(gni_vm_acos)
#define gni_vatan GNI_FN(gni_vm_atan)
#define gni_vatan2 GNI_FN(gni_vm_atan2)

// asin(a) for a <= 1/2, else asin(sqrt((1 - a) / 2)) with *upper set: asin(a) is pi/2 minus twice that.
GNI_INLINE gni_vf gni_vasin_poly(gni_vf a, gni_vk *upper) {
    gni_vf half = gni_vset(0.5f), folded = gni_vfnma(a, half, half);
    *upper = gni_kgt(a, half);
    gni_vf z = gni_ksel(*upper, folded, a * a), s = gni_ksel(*upper, gni_vsqrt(folded), a);
    gni_vf p = gni_vset(0.0421581976f);
    p = gni_vmad(p, z, 0.0241848044f);
    p = gni_vmad(p, z, 0.0454691499f);
    p = gni_vmad(p, z, 0.0749530941f);
    p = gni_vmad(p, z, 0.166667521f);
    return gni_vfma(p * z, s, s);
}
GNI_INLINE gni_vf gni_vasin(gni_vf x) {
    gni_vk upper;
    gni_vf p = gni_vasin_poly(gni_vabs(x), &upper), twice = p + p;
    gni_vf q = gni_vset(GNI_V_PIO2) - (twice - gni_vset(GNI_V_PIO2_LO));
    return gni_vcopysign(gni_ksel(upper, q, p), x);
}
GNI_INLINE gni_vf gni_vacos(gni_vf x) {
    gni_vk upper, below = gni_klt(x, gni_vset(0.0f));
    gni_vf p = gni_vasin_poly(gni_vabs(x), &upper), twice = p + p, low = gni_vset(GNI_V_PIO2_LO);
    gni_vf mid = gni_vset(GNI_V_PIO2) - (gni_vcopysign(p, x) - low);
    gni_vf end = gni_ksel(below, gni_vset(2 * GNI_V_PIO2) - (twice - (low + low)), twice);
    return gni_ksel(upper, end, mid);
}
// atan(t) for 0 <= t <= 1.
GNI_INLINE gni_vf gni_vatan_poly(gni_vf t) {
    gni_vf z = t * t, p = gni_vset(-0.00178292743f);
    p = gni_vmad(p, z, 0.0108690094f);
    p = gni_vmad(p, z, -0.0310973749f);
    p = gni_vmad(p, z, 0.0578816198f);
    p = gni_vmad(p, z, -0.0839931294f);
    p = gni_vmad(p, z, 0.109508812f);
    p = gni_vmad(p, z, -0.142640159f);
    p = gni_vmad(p, z, 0.199985296f);
    p = gni_vmad(p, z, -0.333332986f);
    return gni_vfma(p * z, t, t);
}
GNI_INLINE gni_vf gni_vatan(gni_vf x) {
    gni_vf a = gni_vabs(x), one = gni_vset(1.0f);
    gni_vk upper = gni_kgt(a, one);
    gni_vf p = gni_vatan_poly(gni_ksel(upper, one / a, a));
    gni_vf q = gni_vset(GNI_V_PIO2) - (p - gni_vset(GNI_V_PIO2_LO));
    return gni_vcopysign(gni_ksel(upper, q, p), x);
}
GNI_INLINE gni_vf gni_vatan2(gni_vf y, gni_vf x) {
    gni_vf ay = gni_vabs(y), ax = gni_vabs(x), low = gni_vset(GNI_V_PIO2_LO);
    gni_vk steep = gni_kgt(ay, ax);
    gni_vf num = gni_ksel(steep, ax, ay), den = gni_ksel(steep, ay, ax), t = num / den;
    // 0/0 stands for 0 and Inf/Inf for 1.
    gni_vf one = gni_vset(1.0f), zero = gni_vset(0.0f);
    t = gni_ksel(gni_keq(num, den), gni_ksel(gni_kgt(den, zero), one, zero), t);
    gni_vf p = gni_vatan_poly(t);
    p = gni_ksel(steep, gni_vset(GNI_V_PIO2) - (p - low), p);
    gni_vk left = gni_kilt(gni_vf_bits(x), gni_vseti(0));
    p = gni_ksel(left, gni_vset(2 * GNI_V_PIO2) - (p - (low + low)), p);
    return gni_vcopysign(p, y);
}

// ---- hyperbolic functions

#define gni_vhyp_parts GNI_FN(gni_vm_hyp_parts)
#define gni_vsinh GNI_FN(gni_vm_sinh)
#define gni_vcosh GNI_FN(gni_vm_cosh)
#define gni_vtanh GNI_FN(gni_vm_tanh)
#define gni_vasinh GNI_FN(gni_vm_asinh)
#define gni_vacosh GNI_FN(gni_vm_acosh)
#define gni_vatanh GNI_FN(gni_vm_atanh)

// a = n ln 2 + r, *c = cosh(r), *s = sinh(r), *up = 2^(n-2), *down = 2^(-n-2), for 0 <= a < 89.5.
GNI_INLINE void gni_vhyp_parts(gni_vf a, gni_vf *c, gni_vf *s, gni_vf *up, gni_vf *down) {
    gni_vf t, r = gni_vexp_reduce(a, &t), z = r * r, p = gni_vset(0.0013935871f);
    gni_vu n = gni_vf_ubits(t) << 23;
    *up = gni_vu_float(0x3e800000u + n);
    // 2^(-n-2) no longer matters from n = 30 on, and has to stay normal.
    n = gni_kselu(gni_klt(t, gni_vset(GNI_V_MAGIC + 60.0f)), n, gni_vsetu(60u << 23));
    *down = gni_vu_float(0x3e800000u - n);
    p = gni_vmad(p, z, 0.0416664556f);
    p = gni_vmad(p, z, 0.5f);
    *c = gni_vmad(p, z, 1.0f);
    p = gni_vset(0.000199729344f);
    p = gni_vmad(p, z, 0.00833317637f);
    p = gni_vmad(p, z, 0.166666672f);
    *s = gni_vfma(p * z, r, r);
}
// sinh(a) = (2^n - 2^-n)/2 cosh(r) + (2^n + 2^-n)/2 sinh(r); everything at half size, so that it overflows last.
GNI_INLINE gni_vf gni_vsinh(gni_vf x) {
    gni_vf a = gni_vminc(gni_vabs(x), gni_vset(89.45f)), c, s, up, down;
    gni_vhyp_parts(a, &c, &s, &up, &down);
    gni_vf y = gni_vfma(up - down, c, (up + down) * s);
    y = gni_ksel(gni_keq(up, gni_vset(0.25f)), s, y + y);
    return gni_vcopysign(y, x);
}
GNI_INLINE gni_vf gni_vcosh(gni_vf x) {
    gni_vf a = gni_vminc(gni_vabs(x), gni_vset(89.45f)), c, s, up, down;
    gni_vhyp_parts(a, &c, &s, &up, &down);
    gni_vf y = gni_vfma(up - down, s, (up + down) * c);
    return y + y;
}
GNI_INLINE gni_vf gni_vtanh(gni_vf x) {
    gni_vf a = gni_vabs(x), z = a * a, one = gni_vset(1.0f), p = gni_vset(-0.00569228595f);
    p = gni_vmad(p, z, 0.0206281636f);
    p = gni_vmad(p, z, -0.0537365153f);
    p = gni_vmad(p, z, 0.133314058f);
    p = gni_vmad(p, z, -0.333332807f);
    p = gni_vfma(p * z, a, a);
    // From 0.625 on it is 1 - 2 / (exp(2 a) + 1), and what exp's argument lacks in precision does not show.
    gni_vf b = gni_vminc(a, gni_vset(9.5f)), scale = gni_vset(2.88539004f);
    gni_vf t = gni_vmad(b, scale, GNI_V_MAGIC);
    gni_vf r = gni_vfma(b, scale, gni_vset(GNI_V_MAGIC) - t);
    gni_vf e = gni_vexp2_poly(r) + one;
    e = gni_vu_float(gni_vf_ubits(e) + (gni_vf_ubits(t) << 23)) + one;
    gni_vf q = one - gni_vset(2.0f) / e;
    return gni_vcopysign(gni_ksel(gni_kge(a, gni_vset(0.625f)), q, p), x);
}
GNI_INLINE gni_vf gni_vasinh(gni_vf x) {
    gni_vf a = gni_vabs(x), one = gni_vset(1.0f), zero = gni_vset(0.0f);
    gni_vk big = gni_kge(a, gni_vset(268435456.0f));
    gni_vf z = a * a, v = a + z / (one + gni_vsqrt(z + one));
    // From 2^28 on asinh(a) is log(2 a).
    gni_vf y = gni_vlog1p_up(gni_ksel(big, a, v), gni_ksel(big, one, zero));
    y = gni_ksel(gni_klt(a, gni_vset(INFINITY)), y, a);
    return gni_vcopysign(y, x);
}
GNI_INLINE gni_vf gni_vacosh(gni_vf x) {
    gni_vf one = gni_vset(1.0f), zero = gni_vset(0.0f), inf = gni_vset(INFINITY), t = x - one;
    gni_vk big = gni_kge(x, gni_vset(268435456.0f));
    gni_vf v = t + gni_vsqrt(gni_vfma(t, t, t + t));
    gni_vf y = gni_vlog1p_up(gni_ksel(big, x, v), gni_ksel(big, one, zero));
    return gni_ksel(gni_kand(gni_kge(x, one), gni_klt(x, inf)), y, gni_ksel(gni_klt(x, one), inf - inf, x));
}
GNI_INLINE gni_vf gni_vatanh(gni_vf x) {
    gni_vf a = gni_vabs(x), one = gni_vset(1.0f), inf = gni_vset(INFINITY);
    gni_vf y = gni_vset(0.5f) * gni_vlog1p_up((a + a) / (one - a), gni_vset(0.0f));
    gni_vf odd = gni_ksel(gni_keq(a, one), inf, gni_ksel(gni_kgt(a, one), inf - inf, x));
    // half of it would lose the last bit of a subnormal
    y = gni_ksel(gni_klt(a, gni_vset(1e-4f)), gni_vfma(a * gni_vset(0.333333343f), a * a, a), y);
    return gni_vcopysign(gni_ksel(gni_klt(a, one), y, odd), x);
}

// ---- erf, gelu, sigmoid, softplus

#define gni_verf GNI_FN(gni_vm_erf)
#define gni_vgelu GNI_FN(gni_vm_gelu)
#define gni_vsigmoid GNI_FN(gni_vm_sigmoid)
#define gni_vsoftplus GNI_FN(gni_vm_softplus)

GNI_INLINE gni_vf gni_verf(gni_vf x) {
    gni_vf a = gni_vabs(x), z = a * a, p = gni_vset(-0.000595957681f);
    p = gni_vmad(p, z, 0.00498735206f);
    p = gni_vmad(p, z, -0.0267629661f);
    p = gni_vmad(p, z, 0.11281731f);
    p = gni_vmad(p, z, -0.376124889f);
    p = gni_vmad(p, z, 0.128379151f);
    p = gni_vfma(p, a, a);
    // 1 - exp(q(a)) further out
    gni_vf b = gni_vminc(a, gni_vset(3.95f)), q = gni_vset(0.000194772438f);
    q = gni_vmad(q, b, -0.00303177396f);
    q = gni_vmad(q, b, 0.0221812353f);
    q = gni_vmad(q, b, -0.103836671f);
    q = gni_vmad(q, b, -0.637290597f);
    q = gni_vmad(q, b, -1.12761116f);
    q = gni_vmad(q, b, -0.000211310442f);
    q = gni_vset(1.0f) - gni_vexp_mid(q);
    return gni_vcopysign(gni_ksel(gni_kge(a, gni_vset(0.93f)), q, p), x);
}
// gelu(x) = x Phi(x) = max(x, 0) - t Phi(-t), t = |x|; Phi(-t) is exp(-t^2 / 2) / (t + 3) times a polynomial in
// (t - 3)/(t + 3) (after Shepherd & Laframboise 1981).
GNI_INLINE gni_vf gni_vgelu(gni_vf x) {
    gni_vf t = gni_vminc(gni_vabs(x), gni_vset(14.5f)), three = gni_vset(3.0f);
    gni_vf v = t / (t + three), u = gni_vmad(v, gni_vset(2.0f), -1.0f), p = gni_vset(6.67413406e-05f);
    p = gni_vmad(p, u, -0.000191920946f);
    p = gni_vmad(p, u, -0.000970534864f);
    p = gni_vmad(p, u, 0.00100017991f);
    p = gni_vmad(p, u, 0.00695027504f);
    p = gni_vmad(p, u, -0.0104551166f);
    p = gni_vmad(p, u, -0.0472608879f);
    p = gni_vmad(p, u, 0.230016679f);
    p = gni_vmad(p, u, -0.509332001f);
    p = gni_vmad(p, u, 0.729083717f);
    // t^2 / 2 exactly, as an exact square and the small rest
    gni_vf head = gni_vhead(t), high = head * head * gni_vset(-0.5f);
    gni_vf low = (t - head) * (t + head) * gni_vset(-0.5f);
    gni_vf s = gni_vmad(high + low, gni_vset(1.44269502f), GNI_V_MAGIC), n = s - gni_vset(GNI_V_MAGIC);
    gni_vf r = gni_vfnma(n, gni_vset(0.693145752f), high);
    r = gni_vfnma(n, gni_vset(1.42860677e-06f), r + low);
    p = gni_vfma(p, gni_vexp_poly(r), p);
    gni_vf y = gni_vmaxc(x, gni_vset(0.0f)) - gni_vscale(v * p, s);
    // Near 0 the sum about Phi(0) is the better one.
    gni_vf z = x * x, q = gni_vset(-0.00112265977f);
    q = gni_vmad(q, z, 0.00996110681f);
    q = gni_vmad(q, z, -0.066489473f);
    q = gni_vmad(q, z, 0.398942262f);
    q = gni_vfma(q, z, x * gni_vset(0.5f));
    return gni_vcopysign(gni_ksel(gni_klt(t, gni_vset(0.5f)), q, y), x);
}
GNI_INLINE gni_vf gni_vsigmoid(gni_vf x) {
    gni_vf one = gni_vset(1.0f), e = gni_vexp(-gni_vabs(x));
    return gni_ksel(gni_klt(x, gni_vset(0.0f)), e, one) / (e + one);
}
GNI_INLINE gni_vf gni_vsoftplus(gni_vf x) {
    gni_vf zero = gni_vset(0.0f);
    return gni_vmaxc(x, zero) + gni_vlog1p_up(gni_vexp(-gni_vabs(x)), zero);
}

// ---- cbrt, hypot, pow

#define gni_vcbrt GNI_FN(gni_vm_cbrt)
#define gni_vhypot GNI_FN(gni_vm_hypot)
#define gni_vlog2_pair GNI_FN(gni_vm_log2_pair)
#define gni_vexp2_pair GNI_FN(gni_vm_exp2_pair)
#define gni_vpow_product GNI_FN(gni_vm_pow_product)
#define gni_vpow_end GNI_FN(gni_vm_pow_end)
#define gni_vpow_rare GNI_FN(gni_vm_pow_rare)
#define gni_vpow GNI_FN(gni_vm_pow)

// A third-order and a Newton step for y = x^(-1/3) from a guess made with the exponent bits (no division), then x y^2 and
// one more step there.
GNI_INLINE gni_vf gni_vcbrt(gni_vf x) {
    gni_vf a = gni_vabs(x), third = gni_vset(0.333333343f), one = gni_vset(1.0f);
    gni_vf least = gni_vset(1.17549435e-38f), inf = gni_vset(INFINITY), back = one;
    gni_vk usual = gni_kand(gni_kge(a, least), gni_klt(a, inf));
    int rare = gni_kany(gni_knot(usual));
    if (rare) {
        gni_vk sub = gni_klt(a, least);
        back = gni_ksel(sub, gni_vset(0.00390625f), one);
        a = gni_ksel(sub, a * gni_vset(16777216.0f), a);
    }
    gni_vf guess = gni_vfnma(gni_itov(gni_vf_bits(a)), third, gni_vset(1419967116.0f));
    gni_vf y = gni_vi_float(gni_vtoi_fast(guess)), e = gni_vfnma(a * y * y, y, one);
    y = gni_vfma(y * e, gni_vmad(e, gni_vset(0.222222224f), 0.333333343f), y);
    e = gni_vfnma(a * y * y, y, one);
    y = gni_vfma(y * e, third, y);
    gni_vf w = y * y, c = a * w, c2 = c * c;
    // rest = a - c^3 to more than the precision of c^2
#if GNI_V_FUSED
    gni_vf rest = gni_vfnma(c2, c, a);
    rest = gni_vfnma(gni_vfma(c, c, -c2), c, rest);
#else
    gni_vf head = gni_vhead(c), d = c - head, low = d * (c + head), h2 = gni_vhead(head * head);
    c2 = head * head;
    gni_vf rest = (a - h2 * head) - ((c2 - h2) * head + (c2 * d + low * c));
#endif
    c = gni_vfma(rest, w * third, c);
    if (rare) {
        c = gni_ksel(gni_kand(gni_kgt(a, gni_vset(0.0f)), gni_klt(a, inf)), c * back, a);
    }
    return gni_vcopysign(c, x);
}
GNI_INLINE gni_vf gni_vhypot(gni_vf x, gni_vf y) {
    gni_vf ax = gni_vabs(x), ay = gni_vabs(y), inf = gni_vset(INFINITY), one = gni_vset(1.0f);
    gni_vk steep = gni_kgt(ay, ax);
    gni_vf a = gni_ksel(steep, ay, ax), b = gni_ksel(steep, ax, ay);
    gni_vk big = gni_kgt(a, gni_vset(1e18f)), tiny = gni_klt(a, gni_vset(1e-15f));
    gni_vf scale = gni_ksel(big, gni_vset(8.47032947e-22f), gni_ksel(tiny, gni_vset(1.2676506e+30f), one));
    gni_vf back = gni_ksel(big, gni_vset(1.18059162e+21f), gni_ksel(tiny, gni_vset(7.88860905e-31f), one));
    a = a * scale;
    b = b * scale;
    // a^2 + b^2 with the square of a's head exact
    gni_vf head = gni_vhead(a), low = gni_vfma(a - head, a + head, b * b);
    gni_vf r = gni_vsqrt(gni_vfma(head, head, low)) * back;
    return gni_ksel(gni_kor(gni_keq(ax, inf), gni_keq(ay, inf)), inf, r);
}
// log2(x) as a 12-bit head and a rest, for normal x > 0: log((1 + s)/(1 - s)) with s = (m - 1)/(m + 1).
GNI_INLINE gni_vf gni_vlog2_pair(gni_vf x, gni_vf *rest) {
    gni_vf k, one = gni_vset(1.0f), m = gni_vlog_bits(x, &k), f = m - one, inv = one / (m + one);
    gni_vf dh = gni_vhead(m + one), dl = m - (dh - one), sh = gni_vhead(f * inv);
    gni_vf sl = gni_vfnma(sh, dl, gni_vfnma(sh, dh, f)) * inv, s = sh + sl, z = s * s;
    gni_vf p = gni_vmad(z, gni_vset(0.336952269f), 0.411908448f), q = gni_vmad(z, gni_vset(0.577078998f), 0.961796701f);
    p = gni_vfma(p, z * z, q);
    // 2 / ln(2) is 2.88476562 (12 bits) + 0.000624456792
    gni_vf top = sh * gni_vset(2.88476562f), sum = k + top;
    gni_vf low = gni_vfma(s, gni_vset(0.000624456792f), p * (s * z));
    low = gni_vfma(sl, gni_vset(2.88476562f), low) + ((k - sum) + top);
    gni_vf head = gni_vhead(sum + low);
    *rest = (sum - head) + low;
    return head;
}
// 2^(d + low), |d + low| <= 1/2, to little more than half an ulp, so that small whole powers come out exact.
GNI_INLINE gni_vf gni_vexp2_pair(gni_vf d, gni_vf low) {
    gni_vf one = gni_vset(1.0f), r = d + low, head = gni_vhead(r), tail = ((d - r) + low) + (r - head);
    gni_vf w = r * r, p = gni_vmad(r, gni_vset(0.000153269313f), 0.00133912405f);
    gni_vf q = gni_vmad(r, gni_vset(0.00961850584f), 0.0555035919f);
    p = gni_vfma(gni_vfma(p, w, q), r, gni_vset(0.240226477f));
    // ln(2) is 0.693115234 (12 bits) + 3.19461849e-05
    gni_vf top = head * gni_vset(0.693115234f), sum = one + top;
    p = gni_vfma(p, w, head * gni_vset(3.19461849e-05f));
    p = gni_vfma(tail, gni_vset(0.693147182f), p);
    return sum + (((one - sum) + top) + p);
}
// y (head + rest) in two parts: *z is exact, *low has what is missing.
GNI_INLINE void gni_vpow_product(gni_vf y, gni_vf head, gni_vf rest, gni_vf *z, gni_vf *low) {
    gni_vf yh = gni_vhead(y);
    *z = yh * head;
    *low = gni_vfma(y - yh, head, y * rest);
}
GNI_INLINE gni_vf gni_vpow_end(gni_vf z, gni_vf low) {
    gni_vf t = (z + low) + gni_vset(GNI_V_MAGIC), n = t - gni_vset(GNI_V_MAGIC);
    return gni_vscale(gni_vexp2_pair(z - n, low), t);
}
// pow for all arguments, with C99's special cases.
static gni_vf gni_vpow_rare(gni_vf x, gni_vf y) {
    gni_vf zero = gni_vset(0.0f), one = gni_vset(1.0f), inf = gni_vset(INFINITY), limit = gni_vset(1099511627776.0f);
    gni_vf a = gni_vabs(x), ay = gni_vabs(y), bound = gni_vset(200.0f), z, low, rest;
    gni_vk sub = gni_klt(a, gni_vset(1.17549435e-38f));
    gni_vf head = gni_vlog2_pair(gni_ksel(sub, a * gni_vset(8388608.0f), a), &rest);
    gni_vf shift = gni_ksel(sub, gni_vset(-23.0f), zero), sum = head + shift, h = gni_vhead(sum);
    rest = rest + ((head - sum) + shift) + (sum - h);
    gni_vpow_product(gni_vmaxc(gni_vminc(y, limit), -limit), h, rest, &z, &low);
    z = gni_vmaxc(gni_vminc(z, bound), -bound);
    low = gni_vmaxc(gni_vminc(low, one), -one);
    gni_vf r = gni_vpow_end(z, low);

    gni_vf half = y * gni_vset(0.5f);
    gni_vk whole = gni_keq(gni_vtrunc(y), y), below = gni_klt(y, zero);
    gni_vk odd = gni_kand(gni_kand(whole, gni_kne(gni_vtrunc(half), half)), gni_klt(ay, gni_vset(16777216.0f)));
    r = gni_ksel(gni_keq(a, zero), gni_ksel(below, inf, zero), r);
    r = gni_ksel(gni_keq(a, inf), gni_ksel(below, zero, inf), r);
    r = gni_ksel(gni_keq(a, one), one, r);
    gni_vk minus = gni_kilt(gni_vf_bits(x), gni_vseti(0));
    r = gni_ksel(gni_kand(minus, odd), -r, r);
    gni_vk none = gni_kand(gni_kand(gni_klt(x, zero), gni_kgt(x, -inf)), gni_knot(whole));
    r = gni_ksel(none, inf - inf, r);
    r = gni_ksel(gni_kor(gni_knan(x), gni_knan(y)), x + y, r);
    return gni_ksel(gni_kor(gni_keq(x, one), gni_keq(y, zero)), one, r);
}
GNI_INLINE gni_vf gni_vpow(gni_vf x, gni_vf y) {
    gni_vf rest, head = gni_vlog2_pair(x, &rest), z, low;
    gni_vpow_product(y, head, rest, &z, &low);
    gni_vf r = gni_vpow_end(z, low);
    gni_vk usual = gni_kand(gni_kge(x, gni_vset(1.17549435e-38f)), gni_klt(x, gni_vset(INFINITY)));
    usual = gni_kand(usual, gni_kle(gni_vabs(z + low), gni_vset(200.0f)));
    if (gni_kany(gni_knot(usual))) r = gni_ksel(usual, r, gni_vpow_rare(x, y));
    return r;
}

// ---- remainders

#define gni_vfmod GNI_FN(gni_vm_fmod)
#define gni_vfmod_rare GNI_FN(gni_vm_fmod_rare)
#define gni_vmod GNI_FN(gni_vm_mod)
#define gni_vfloor_div GNI_FN(gni_vm_floor_div)

static gni_vf gni_vfmod_rare(gni_vf a, gni_vf b, gni_vf r, gni_vk usual) {
    float av[GNI_VW], bv[GNI_VW], rv[GNI_VW];
    int32_t skip[GNI_VW];
    gni_vstore(av, a);
    gni_vstore(bv, b);
    gni_vstore(rv, r);
    gni_vstorei(skip, gni_kmask(usual));
    for (int i = 0; i < GNI_VW; i++)
        if (!skip[i]) rv[i] = fmodf(av[i], bv[i]);
    return gni_vload(rv);
}
// C's fmod, exact. A quotient of few enough bits makes the products exact; the other lanes go to the C library.
GNI_INLINE gni_vf gni_vfmod(gni_vf x, gni_vf y) {
    gni_vf a = gni_vabs(x), b = gni_vabs(y), q = a / b, n = gni_vtrunc(q);
#if GNI_V_FUSED
    gni_vf limit = gni_vset(4194304.0f), r = gni_vfnma(n, b, a);
#else
    gni_vf limit = gni_vset(1024.0f), head = gni_vhead(b), r = (a - n * head) - n * (b - head);
#endif
    // Rounding can only have made the quotient too large.
    r = gni_ksel(gni_klt(r, gni_vset(0.0f)), r + b, r);
    gni_vk usual = gni_kand(gni_klt(q, limit), gni_klt(b, gni_vset(INFINITY)));
    if (gni_kany(gni_knot(usual))) r = gni_vfmod_rare(a, b, r, usual);
    return gni_vcopysign(r, x);
}
// Python's and NumPy's %: the result has the sign of y.
GNI_INLINE gni_vf gni_vmod(gni_vf x, gni_vf y) {
    gni_vf r = gni_vfmod(x, y), zero = gni_vset(0.0f);
    gni_vi differ = gni_vf_bits(gni_vxor(r, gni_vsignof(y)));
    gni_vf fixed = gni_ksel(gni_kilt(differ, gni_vseti(0)), r + y, r);
    return gni_ksel(gni_keq(r, zero), gni_vcopysign(zero, y), fixed);
}
// NumPy's floor_divide: (x - mod) / y put back on the integer it should be.
GNI_INLINE gni_vf gni_vfloor_div(gni_vf x, gni_vf y) {
    gni_vf r = gni_vfmod(x, y), zero = gni_vset(0.0f), one = gni_vset(1.0f);
    gni_vf q = (x - r) / y;
    gni_vk less = gni_kand(gni_kilt(gni_vf_bits(gni_vxor(r, gni_vsignof(y))), gni_vseti(0)), gni_kne(r, zero));
    q = gni_ksel(less, q - one, q);
    gni_vf f = gni_vfloor(q);
    f = gni_ksel(gni_kgt(q - f, gni_vset(0.5f)), f + one, f);
    f = gni_ksel(gni_keq(q, zero), gni_vcopysign(zero, gni_vxor(x, gni_vsignof(y))), f);
    return gni_ksel(gni_keq(y, zero), x / y, f);
}

// ---- random numbers: the same bits on every pass and on the GPU, so nothing here is fused, divided or left to a library

#define gni_vphilox GNI_FN(gni_vm_philox)
#define gni_vmuladd GNI_FN(gni_vm_muladd)
#define gni_vexponential GNI_FN(gni_vm_exponential)
#define gni_vnormal2 GNI_FN(gni_vm_normal2)

// Philox 4x32-10 (Salmon et al., SC 2011) of one counter per lane: out[0..3].
GNI_INLINE void gni_vphilox(gni_vu c0, gni_vu c1, gni_vu c2, gni_vu c3, uint32_t k0, uint32_t k1, gni_vu *out) {
    for (int i = 0; i < 10; i++) {
        gni_vu h0, l0, h1, l1;
        gni_vmulhilo(c0, gni_vsetu(0xd2511f53u), &h0, &l0);
        gni_vmulhilo(c2, gni_vsetu(0xcd9e8d57u), &h1, &l1);
        c0 = h1 ^ c1 ^ gni_vsetu(k0);
        c1 = l1;
        c2 = h0 ^ c3 ^ gni_vsetu(k1);
        c3 = l0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}
// a * b + c in two roundings.
GNI_INLINE gni_vf gni_vmuladd(gni_vf a, gni_vf b, float c) { return a * b + gni_vset(c); }

// -log((bits + 1/2) / 2^32): exponentially distributed, from 1.2e-10 to 22.9.
GNI_INLINE gni_vf gni_vexponential(gni_vu bits) {
    gni_vf one = gni_vset(1.0f), zero = gni_vset(0.0f);
    // The upper half is turned round, so that v / 2^32 is u or 1 - u with all its bits.
    gni_vk upper = gni_kilt(gni_vu_i(bits), gni_vseti(0));
    gni_vu w = gni_kselu(upper, ~bits, bits);
    gni_vf v = gni_itov(gni_vu_i(w >> 12)) * gni_vset(4096.0f) + (gni_itov(gni_vu_i(w & 0xfffu)) + gni_vset(0.5f));
    gni_vf p = v * gni_vset(2.32830644e-10f), k, m = gni_vlog_bits(v, &k);
    // log(u) = k ln 2 + log(1 + f)
    gni_vk folded = gni_kgt(p, gni_vset(0.292893231f));
    gni_vf f1 = gni_ksel(folded, one - (p + p), -p), k1 = gni_ksel(folded, -one, zero);
    gni_vf f = gni_ksel(upper, f1, m - one);
    k = gni_ksel(upper, k1, k - gni_vset(32.0f));
    gni_vf z = f * f, q = gni_vset(-0.0763620213f);
    q = gni_vmuladd(q, f, 0.127620921f);
    q = gni_vmuladd(q, f, -0.131596208f);
    q = gni_vmuladd(q, f, 0.142015889f);
    q = gni_vmuladd(q, f, -0.166234091f);
    q = gni_vmuladd(q, f, 0.200012416f);
    q = gni_vmuladd(q, f, -0.250008196f);
    q = gni_vmuladd(q, f, 0.333333313f);
    q = q * (f * z) + k * gni_vset(1.42860677e-06f);
    q = z * gni_vset(0.5f) - q;
    return (q - f) - k * gni_vset(0.693145752f);
}
// Two independent standard normals from two random words (Box & Muller 1958). The angle is one of eight octants, which
// are exchanges and signs, and 23 bits within it.
GNI_INLINE void gni_vnormal2(gni_vu a, gni_vu b, gni_vf *n0, gni_vf *n1) {
    gni_vf s = gni_vexponential(a);
    s = s + s;
    // 1 / sqrt(s) by Newton's iteration from a guess made with the exponent bits
    gni_vf y = gni_vu_float(0x5f3759dfu - (gni_vf_ubits(s) >> 1)), h = s * gni_vset(0.5f);
    y = y * (gni_vset(1.5f) - h * y * y);
    y = y * (gni_vset(1.5f) - h * y * y);
    y = y * (gni_vset(1.5f) - h * y * y);
    gni_vf r = s * y;
    gni_vf t = (gni_itov(gni_vu_i((b >> 6) & 0x7fffffu)) + gni_vset(0.5f)) * gni_vset(1.1920929e-07f), z = t * t;
    gni_vf p = gni_vset(-3.66091626e-05f), q = gni_vset(3.49402467e-06f);
    p = gni_vmuladd(p, z, 0.00249101641f);
    p = gni_vmuladd(p, z, -0.0807458311f);
    p = gni_vmuladd(p, z, 0.785398185f);
    q = gni_vmuladd(q, z, -0.000325868663f);
    q = gni_vmuladd(q, z, 0.0158542842f);
    q = gni_vmuladd(q, z, -0.308425128f);
    p = r * (p * t);
    q = r * (q * z + gni_vset(1.0f));
    gni_vk swap = gni_kieq(gni_vu_i(b & 0x20000000u), gni_vseti(0));
    *n0 = gni_vxor(gni_ksel(swap, p, q), b & 0x80000000u);
    *n1 = gni_vxor(gni_ksel(swap, q, p), (b << 1) & 0x80000000u);
}

// ------------------------------------------------------------------------------------------
// >>cpu_kernels
// Loops of the CPU backend, compiled per pass: one kernel per op and register domain, conversions,
// folds for reductions, softmax pieces, random numbers. From outside: the table GNI_FN(gni_isa_table).

#ifdef GNI_PASS_PLAIN // the first pass: what all of them share

// Integers wrap; dividing by zero gives 0. Division rounds down and the remainder has the divisor's sign.
#define GNI_DEFINE_SIGNED(S, T, UT, BITS)                                                          \
    GNI_INLINE T gni_iabs_##S(T a) {                                                               \
        return (T)(a < 0 ? (UT)0 - (UT)a : (UT)a);                                                 \
    }                                                                                              \
    GNI_INLINE T gni_isign_##S(T a) {                                                              \
        return (T)((a > 0) - (a < 0));                                                             \
    }                                                                                              \
    GNI_INLINE T gni_irelu_##S(T a) {                                                              \
        return a > 0 ? a : 0;                                                                      \
    }                                                                                              \
    GNI_INLINE T gni_ifloor_div_##S(T a, T b) {                                                    \
        if (b == 0) return 0;                                                                      \
        if (b == -1) return (T)((UT)0 - (UT)a);                                                    \
        return (T)(a / b - (T)(a % b != 0 && (a < 0) != (b < 0)));                                 \
    }                                                                                              \
    GNI_INLINE T gni_imod_##S(T a, T b) {                                                          \
        if (b == 0 || b == -1) return 0;                                                           \
        T r = (T)(a % b);                                                                          \
        return (T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);                                      \
    }                                                                                              \
    GNI_INLINE T gni_ipow_##S(T a, T b) {                                                          \
        if (b < 0) return (T)(a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0);                 \
        UT r = 1, x = (UT)a;                                                                       \
        for (UT e = (UT)b; e != 0; e >>= 1, x *= x)                                                \
            if ((e & 1u) != 0) r *= x;                                                             \
        return (T)r;                                                                               \
    }                                                                                              \
    GNI_INLINE T gni_ishl_##S(T a, T b) {                                                          \
        return b < 0 || b >= BITS ? 0 : (T)((UT)a << b);                                           \
    }                                                                                              \
    GNI_INLINE T gni_ishr_##S(T a, T b) {                                                          \
        return (T)(a >> (b < 0 || b >= BITS ? BITS - 1 : b));                                      \
    }
GNI_DEFINE_SIGNED(i32, int32_t, uint32_t, 32)
GNI_DEFINE_SIGNED(i64, int64_t, uint64_t, 64)
#undef GNI_DEFINE_SIGNED

GNI_INLINE uint32_t gni_iabs_u32(uint32_t a) {
    return a;
}
GNI_INLINE uint32_t gni_isign_u32(uint32_t a) {
    return a != 0;
}
GNI_INLINE uint32_t gni_irelu_u32(uint32_t a) {
    return a;
}
GNI_INLINE uint32_t gni_ifloor_div_u32(uint32_t a, uint32_t b) {
    return b == 0 ? 0 : a / b;
}
GNI_INLINE uint32_t gni_imod_u32(uint32_t a, uint32_t b) {
    return b == 0 ? 0 : a % b;
}
GNI_INLINE uint32_t gni_ipow_u32(uint32_t a, uint32_t b) {
    uint32_t r = 1;
    for (; b != 0; b >>= 1, a *= a)
        if ((b & 1u) != 0) r *= a;
    return r;
}
GNI_INLINE uint32_t gni_ishl_u32(uint32_t a, uint32_t b) {
    return b >= 32 ? 0 : a << b;
}
GNI_INLINE uint32_t gni_ishr_u32(uint32_t a, uint32_t b) {
    return b >= 32 ? 0 : a >> b;
}

#define GNI_SUM_BLOCK 1024  // elements summed in float32 before float64 takes over
#define GNI_COLUMN_BLOCK 32 // the same for rows of column sums
#define GNI_BAND 1024       // columns at once at most

#endif // GNI_PASS_PLAIN

// ---- vector functions that only ops need

#define gni_vinf GNI_FN(gni_ck_inf)
#define gni_vsign GNI_FN(gni_ck_sign)
#define gni_vtruth GNI_FN(gni_ck_truth)
#define gni_vrsqrt GNI_FN(gni_ck_rsqrt)
#define gni_vsilu GNI_FN(gni_ck_silu)

GNI_INLINE gni_vf gni_vinf(void) {
    return gni_vset((float)INFINITY);
}
GNI_INLINE gni_vf gni_vsign(gni_vf a) {
    gni_vf zero = gni_vset(0.0f), one = gni_vset(1.0f);
    gni_vf r = gni_ksel(gni_kgt(a, zero), one, gni_ksel(gni_klt(a, zero), -one, zero));
    return gni_ksel(gni_knan(a), a, r);
}
GNI_INLINE gni_vi gni_vtruth(gni_vf a) {
    return gni_vne(a, gni_vset(0.0f));
}
GNI_INLINE gni_vf gni_vrsqrt(gni_vf a) {
    return gni_vset(1.0f) / gni_vsqrt(a);
}
// a * sigmoid(a); far down the product stays normal for longer than the sigmoid does.
GNI_INLINE gni_vf gni_vsilu(gni_vf a) {
    gni_vf y = a * gni_vsigmoid(a);
    gni_vk below = gni_klt(a, gni_vset(-80.0f));
    if (!gni_kany(below)) return y;
    gni_vf b = gni_vmaxc(a, gni_vset(-300.0f)), h = gni_vexp(b * gni_vset(0.5f));
    return gni_ksel(below, b * h * h, y);
}
// ---- kernels

#define GNI_KERNEL(name) static void GNI_FN(name)(void *dst, const void *pa, const void *pb, const void *pc, int n)

// float32 operands a, b, c; the result is stored by PUT.
#define GNI_PUT_FLOAT(x) gni_vstore((float *)dst + i, (x))
#define GNI_PUT_TRUTH(x) gni_vstorei((int32_t *)dst + i, gni_vmask01(x))
#define GNI_FLOAT_1(name, PUT, F)                                                                  \
    GNI_KERNEL(name) {                                                                             \
        GNI_UNUSED(pb);                                                                            \
        GNI_UNUSED(pc);                                                                            \
        for (int i = 0; i < n; i += GNI_VW) {                                                      \
            gni_vf a = gni_vload((const float *)pa + i);                                           \
            PUT(F);                                                                                \
        }                                                                                          \
    }
#define GNI_FLOAT_2(name, PUT, F)                                                                  \
    GNI_KERNEL(name) {                                                                             \
        GNI_UNUSED(pc);                                                                            \
        for (int i = 0; i < n; i += GNI_VW) {                                                      \
            gni_vf a = gni_vload((const float *)pa + i);                                           \
            gni_vf b = gni_vload((const float *)pb + i);                                           \
            PUT(F);                                                                                \
        }                                                                                          \
    }
#define GN_X(fn, NAME, F, D, gF, da) GNI_FLOAT_1(gni_kf_##NAME, GNI_PUT_FLOAT, F)
GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da) GNI_FLOAT_1(gni_kf_##NAME, GNI_PUT_FLOAT, F)
GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) GNI_FLOAT_1(gni_kf_##NAME, GNI_PUT_TRUTH, F)
GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) GNI_FLOAT_2(gni_kf_##NAME, GNI_PUT_FLOAT, F)
GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) GNI_FLOAT_2(gni_kf_##NAME, GNI_PUT_FLOAT, F)
GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) GNI_FLOAT_2(gni_kf_##NAME, GNI_PUT_TRUTH, F)
GNI_COMPARE(GN_X)
#undef GN_X
GNI_FLOAT_1(gni_kf_TO_BOOL, GNI_PUT_TRUTH, gni_vtruth(a))

// Integer operands, 16 at a time in loops of fixed length, which compilers turn into vectors.
#define GNI_INT_1(name, TT, UU, I)                                                                 \
    GNI_KERNEL(name) {                                                                             \
        typedef TT T;                                                                              \
        typedef UU UT;                                                                             \
        GNI_UNUSED(pb);                                                                            \
        GNI_UNUSED(pc);                                                                            \
        GNI_UNUSED((UT)0);                                                                         \
        for (int i = 0; i < n; i += 16) {                                                          \
            T x[16], r[16];                                                                        \
            memcpy(x, (const T *)pa + i, sizeof x);                                                \
            for (int j = 0; j < 16; j++) {                                                         \
                T a = x[j];                                                                        \
                r[j] = (T)(I);                                                                     \
            }                                                                                      \
            memcpy((T *)dst + i, r, sizeof r);                                                     \
        }                                                                                          \
    }
#define GNI_INT_2(name, TT, UU, I)                                                                 \
    GNI_KERNEL(name) {                                                                             \
        typedef TT T;                                                                              \
        typedef UU UT;                                                                             \
        GNI_UNUSED(pc);                                                                            \
        GNI_UNUSED((UT)0);                                                                         \
        for (int i = 0; i < n; i += 16) {                                                          \
            T x[16], y[16], r[16];                                                                 \
            memcpy(x, (const T *)pa + i, sizeof x);                                                \
            memcpy(y, (const T *)pb + i, sizeof y);                                                \
            for (int j = 0; j < 16; j++) {                                                         \
                T a = x[j], b = y[j];                                                              \
                r[j] = (T)(I);                                                                     \
            }                                                                                      \
            memcpy((T *)dst + i, r, sizeof r);                                                     \
        }                                                                                          \
    }
#define GNI_INT_TABLES                                                                             \
    GNI_UNARY_ANY(GNI_X1) GNI_UNARY_BOOL(GNI_X1B) GNI_BINARY_ANY(GNI_X2) GNI_COMPARE(GNI_X2B)      \
    GNI_BINARY_INT(GNI_X2I)

#define GNI_T(name) name##_i32
#define GNI_X1(fn, NAME, F, D, I, gF, gI, da) GNI_INT_1(gni_ki_##NAME, int32_t, uint32_t, I)
#define GNI_X1B(fn, NAME, F, D, I, gF, gI) GNI_INT_1(gni_ki_##NAME, int32_t, uint32_t, I)
#define GNI_X2(fn, NAME, F, D, I, gF, gI, da, db) GNI_INT_2(gni_ki_##NAME, int32_t, uint32_t, I)
#define GNI_X2B(fn, NAME, F, D, I, gF, gI) GNI_INT_2(gni_ki_##NAME, int32_t, uint32_t, I)
#define GNI_X2I(fn, NAME, I, gI) GNI_INT_2(gni_ki_##NAME, int32_t, uint32_t, I)
GNI_INT_TABLES
#undef GNI_T
#undef GNI_X1
#undef GNI_X1B
#undef GNI_X2
#undef GNI_X2B
#undef GNI_X2I
#define GNI_T(name) name##_u32
#define GNI_X1(fn, NAME, F, D, I, gF, gI, da) GNI_INT_1(gni_ku_##NAME, uint32_t, uint32_t, I)
#define GNI_X1B(fn, NAME, F, D, I, gF, gI) GNI_INT_1(gni_ku_##NAME, uint32_t, uint32_t, I)
#define GNI_X2(fn, NAME, F, D, I, gF, gI, da, db) GNI_INT_2(gni_ku_##NAME, uint32_t, uint32_t, I)
#define GNI_X2B(fn, NAME, F, D, I, gF, gI) GNI_INT_2(gni_ku_##NAME, uint32_t, uint32_t, I)
#define GNI_X2I(fn, NAME, I, gI) GNI_INT_2(gni_ku_##NAME, uint32_t, uint32_t, I)
GNI_INT_TABLES
#undef GNI_T
#undef GNI_X1
#undef GNI_X1B
#undef GNI_X2
#undef GNI_X2B
#undef GNI_X2I
#undef GNI_INT_TABLES

// Ops without a row in the tables.
#define GNI_VECTOR_1(name, load, TP, store, TR, F)                                                 \
    GNI_KERNEL(name) {                                                                             \
        GNI_UNUSED(pb);                                                                            \
        GNI_UNUSED(pc);                                                                            \
        for (int i = 0; i < n; i += GNI_VW) store((TR *)dst + i, F(load((const TP *)pa + i)));     \
    }
#define gni_vround_f16 GNI_FN(gni_ck_round_f16)
#define gni_vround_bf16 GNI_FN(gni_ck_round_bf16)
#define gni_vwrap_i8 GNI_FN(gni_ck_wrap_i8)
GNI_INLINE gni_vf gni_vround_f16(gni_vf x) {
    uint16_t h[GNI_VW];
    gni_vstore_f16(h, x);
    return gni_vload_f16(h);
}
GNI_INLINE gni_vf gni_vround_bf16(gni_vf x) {
    return gni_vbf16_float(gni_vfloat_bf16(x));
}
GNI_INLINE gni_vi gni_vwrap_i8(gni_vi x) {
    return gni_vu_i(gni_vi_u(x) << 24) >> 24;
}
#define GNI_WRAP_U8(x) ((x) & 255)
#define GNI_SAME(x) (x)
GNI_VECTOR_1(gni_kx_I_TO_F, gni_vloadi, int32_t, gni_vstore, float, gni_itov)
GNI_VECTOR_1(gni_kx_U_TO_F, gni_vloadu, uint32_t, gni_vstore, float, gni_utov)
GNI_VECTOR_1(gni_kx_F_TO_I, gni_vload, float, gni_vstorei, int32_t, gni_vtoi)
GNI_VECTOR_1(gni_kx_F_TO_U, gni_vload, float, gni_vstoreu, uint32_t, gni_vtou)
GNI_VECTOR_1(gni_kx_ROUND_F16, gni_vload, float, gni_vstore, float, gni_vround_f16)
GNI_VECTOR_1(gni_kx_ROUND_BF16, gni_vload, float, gni_vstore, float, gni_vround_bf16)
GNI_VECTOR_1(gni_kx_WRAP_U8, gni_vloadi, int32_t, gni_vstorei, int32_t, GNI_WRAP_U8)
GNI_VECTOR_1(gni_kx_WRAP_I8, gni_vloadi, int32_t, gni_vstorei, int32_t, gni_vwrap_i8)
GNI_VECTOR_1(gni_kx_COPY, gni_vloadi, int32_t, gni_vstorei, int32_t, GNI_SAME)
GNI_INT_1(gni_ki_TO_BOOL, int32_t, uint32_t, a != 0)
#undef GNI_VECTOR_1
#undef GNI_WRAP_U8
#undef GNI_SAME

GNI_KERNEL(gni_kx_WHERE) {
    for (int i = 0; i < n; i += GNI_VW) {
        gni_vk no = gni_kieq(gni_vloadi((const int32_t *)pa + i), gni_vseti(0));
        gni_vi b = gni_vloadi((const int32_t *)pb + i), c = gni_vloadi((const int32_t *)pc + i);
        gni_vstorei((int32_t *)dst + i, gni_kseli(no, c, b));
    }
}
GNI_KERNEL(gni_kf_FMA) {
    for (int i = 0; i < n; i += GNI_VW) {
        gni_vf a = gni_vload((const float *)pa + i), b = gni_vload((const float *)pb + i);
        gni_vf c = gni_vload((const float *)pc + i);
#if GNI_V_FUSED
        gni_vstore((float *)dst + i, gni_vfma(a, b, c));
#else
        // The product is exact in float64, and so is rounding the sum twice but for rare ties.
        float x[GNI_VW], y[GNI_VW], z[GNI_VW];
        gni_vstore(x, a);
        gni_vstore(y, b);
        gni_vstore(z, c);
        for (int j = 0; j < GNI_VW; j++) x[j] = (float)((double)x[j] * (double)y[j] + (double)z[j]);
        memcpy((float *)dst + i, x, sizeof x);
#endif
    }
}
GNI_KERNEL(gni_ki_FMA) {
    for (int i = 0; i < n; i += GNI_VW) {
        gni_vu a = gni_vloadu((const uint32_t *)pa + i), b = gni_vloadu((const uint32_t *)pb + i);
        gni_vstoreu((uint32_t *)dst + i, a * b + gni_vloadu((const uint32_t *)pc + i));
    }
}

static const gni_kernel GNI_FN(gni_kernels_narrow)[GNI_OP_COUNT * 3] = {
#define GN_X(fn, NAME, F, D, gF, da) GNI_FN(gni_kf_##NAME), NULL, NULL,
    GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da)                                                        \
    GNI_FN(gni_kf_##NAME), GNI_FN(gni_ki_##NAME), GNI_FN(gni_ku_##NAME),
    GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    GNI_FN(gni_kf_##NAME), GNI_FN(gni_ki_##NAME), GNI_FN(gni_ku_##NAME),
    GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) GNI_FN(gni_kf_##NAME), NULL, NULL,
    GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db)                                                    \
    GNI_FN(gni_kf_##NAME), GNI_FN(gni_ki_##NAME), GNI_FN(gni_ku_##NAME),
    GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    GNI_FN(gni_kf_##NAME), GNI_FN(gni_ki_##NAME), GNI_FN(gni_ku_##NAME),
    GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI) NULL, GNI_FN(gni_ki_##NAME), GNI_FN(gni_ku_##NAME),
    GNI_BINARY_INT(GN_X)
#undef GN_X
#define GNI_SAME(name) GNI_FN(name), GNI_FN(name), GNI_FN(name)
    GNI_SAME(gni_kx_WHERE),
    GNI_FN(gni_kf_FMA), GNI_FN(gni_ki_FMA), GNI_FN(gni_ki_FMA),
    GNI_SAME(gni_kx_COPY),       // CAST
    GNI_SAME(gni_kx_COPY),       // CONST
    GNI_SAME(gni_kx_I_TO_F),
    GNI_SAME(gni_kx_U_TO_F),
    GNI_SAME(gni_kx_F_TO_I),
    GNI_SAME(gni_kx_F_TO_U),
    GNI_FN(gni_kf_TO_BOOL), GNI_FN(gni_ki_TO_BOOL), GNI_FN(gni_ki_TO_BOOL),
    GNI_SAME(gni_kx_ROUND_F16),
    GNI_SAME(gni_kx_ROUND_BF16),
    GNI_SAME(gni_kx_COPY),       // ROUND_F32
    GNI_SAME(gni_kx_WRAP_U8),
    GNI_SAME(gni_kx_WRAP_I8),
    GNI_SAME(gni_kx_COPY),       // WRAP_U32
    GNI_SAME(gni_kx_COPY),       // WRAP_I32
#undef GNI_SAME
};

// ---- memory to registers and back

#define GNI_LOAD_HALF(name, load)                                                                  \
    static void GNI_FN(name)(void *dst, const void *src, int64_t n) {                              \
        float *d = (float *)dst;                                                                   \
        const uint16_t *s = (const uint16_t *)src;                                                 \
        int64_t i = 0;                                                                             \
        for (; i + GNI_VW <= n; i += GNI_VW) gni_vstore(d + i, load(s + i));                       \
        if (i == n) return;                                                                        \
        uint16_t h[GNI_VW] = {0};                                                                  \
        float f[GNI_VW];                                                                           \
        memcpy(h, s + i, sizeof(uint16_t) * (size_t)(n - i));                                      \
        gni_vstore(f, load(h));                                                                    \
        memcpy(d + i, f, sizeof(float) * (size_t)(n - i));                                         \
    }
#define GNI_STORE_HALF(name, store)                                                                \
    static void GNI_FN(name)(void *dst, const void *src, int64_t n) {                              \
        uint16_t *d = (uint16_t *)dst;                                                             \
        const float *s = (const float *)src;                                                       \
        int64_t i = 0;                                                                             \
        for (; i + GNI_VW <= n; i += GNI_VW) store(d + i, gni_vload(s + i));                       \
        if (i == n) return;                                                                        \
        uint16_t h[GNI_VW];                                                                        \
        store(h, gni_vloadn(s + i, (int)(n - i)));                                                 \
        memcpy(d + i, h, sizeof(uint16_t) * (size_t)(n - i));                                      \
    }
// 8-bit items, GNI_VW at a time.
#define gni_vb GNI_FN(gni_vecb)
#define gni_vload_u8 GNI_FN(gni_ck_load_u8)
#define gni_vload_i8 GNI_FN(gni_ck_load_i8)
#define gni_vstore_8 GNI_FN(gni_ck_store_8)
#if GNI_VW > 1
typedef uint8_t gni_vb __attribute__((vector_size(GNI_VW)));
#endif
GNI_INLINE gni_vi gni_vload_u8(const uint8_t *p) {
#if defined(GNI_PASS_AVX512)
    return (gni_vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif defined(GNI_PASS_AVX2)
    return (gni_vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
#elif GNI_V_SSE2
    int32_t t;
    memcpy(&t, p, sizeof t);
    __m128i zero = _mm_setzero_si128(), x = _mm_cvtsi32_si128(t);
    return (gni_vi)_mm_unpacklo_epi16(_mm_unpacklo_epi8(x, zero), zero);
#elif GNI_VW == 1
    return *p;
#else
    gni_vb t;
    memcpy(&t, p, sizeof t);
    return __builtin_convertvector(t, gni_vi);
#endif
}
GNI_INLINE gni_vi gni_vload_i8(const uint8_t *p) {
    return gni_vwrap_i8(gni_vload_u8(p));
}
// The low 8 bits of each lane.
GNI_INLINE void gni_vstore_8(uint8_t *p, gni_vi x) {
#if defined(GNI_PASS_AVX512)
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8((__m512i)x));
#elif defined(GNI_PASS_AVX2) || GNI_V_SSE2
    gni_vi y = x & 255;
#if defined(GNI_PASS_AVX2)
    __m128i t = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)y), _mm256_extracti128_si256((__m256i)y, 1));
#else
    __m128i t = _mm_packs_epi32((__m128i)y, (__m128i)y);
#endif
    t = _mm_packus_epi16(t, t);
    memcpy(p, &t, GNI_VW);
#elif GNI_VW == 1
    *p = (uint8_t)(x & 255);
#else
    gni_vb t = __builtin_convertvector(x & 255, gni_vb);
    memcpy(p, &t, sizeof t);
#endif
}
#define GNI_LOAD_8(name, T, load)                                                                  \
    static void GNI_FN(name)(void *dst, const void *src, int64_t n) {                              \
        int32_t *d = (int32_t *)dst;                                                               \
        const uint8_t *s = (const uint8_t *)src;                                                   \
        int64_t i = 0;                                                                             \
        for (; i + GNI_VW <= n; i += GNI_VW) gni_vstorei(d + i, load(s + i));                      \
        for (; i < n; i++) d[i] = (T)s[i];                                                         \
    }
#define GNI_STORE_8(name, V, E)                                                                    \
    static void GNI_FN(name)(void *dst, const void *src, int64_t n) {                              \
        uint8_t *d = (uint8_t *)dst;                                                               \
        const int32_t *s = (const int32_t *)src;                                                   \
        int64_t i = 0;                                                                             \
        for (; i + GNI_VW <= n; i += GNI_VW) {                                                     \
            gni_vi x = gni_vloadi(s + i);                                                          \
            gni_vstore_8(d + i, V);                                                                \
        }                                                                                          \
        for (; i < n; i++) d[i] = (uint8_t)E(s[i]);                                                \
    }
#define GNI_TRUTH(x) ((x) != 0)
#define GNI_LOW(x) ((x) & 255)
GNI_LOAD_HALF(gni_load_f16, gni_vload_f16)
GNI_LOAD_HALF(gni_load_bf16, gni_vload_bf16)
GNI_STORE_HALF(gni_store_f16, gni_vstore_f16)
GNI_STORE_HALF(gni_store_bf16, gni_vstore_bf16)
GNI_LOAD_8(gni_load_u8, uint8_t, gni_vload_u8)
GNI_LOAD_8(gni_load_i8, int8_t, gni_vload_i8)
GNI_STORE_8(gni_store_u8, x, GNI_LOW)
GNI_STORE_8(gni_store_bool, gni_kmask(gni_knot(gni_kieq(x, gni_vseti(0)))) & 1, GNI_TRUTH)
#undef GNI_LOAD_HALF
#undef GNI_STORE_HALF
#undef GNI_LOAD_8
#undef GNI_STORE_8
#undef GNI_TRUTH
#undef GNI_LOW

// By dtype: F32, F16, BF16, F64, I32, I64, U8, I8, U32, BOOL, C64, C128.
static const gni_convert_fn GNI_FN(gni_load_table)[GN_DTYPE_COUNT] = {
    NULL, GNI_FN(gni_load_f16), GNI_FN(gni_load_bf16), NULL, NULL, NULL, GNI_FN(gni_load_u8),
    GNI_FN(gni_load_i8), NULL, GNI_FN(gni_load_u8), NULL, NULL};
static const gni_convert_fn GNI_FN(gni_store_table)[GN_DTYPE_COUNT] = {
    NULL, GNI_FN(gni_store_f16), GNI_FN(gni_store_bf16), NULL, NULL, NULL, GNI_FN(gni_store_u8),
    GNI_FN(gni_store_u8), NULL, GNI_FN(gni_store_bool), NULL, NULL};

// Registers to memory past the caches, for results that no cache could hold. Both sides are aligned to
// 64 bytes; without a destination it waits until all has arrived.
static void GNI_FN(gni_stream)(void *dst, const void *src, int64_t bytes) {
#if defined(GNI_PASS_AVX512) || defined(GNI_PASS_AVX2) || GNI_V_SSE2
    char *d = (char *)dst;
    const char *s = (const char *)src;
    if (d == NULL) _mm_sfence();
    for (int64_t i = 0; i < bytes; i += 64) {
#if defined(GNI_PASS_AVX512)
        _mm512_stream_si512((__m512i *)(void *)(d + i), _mm512_loadu_si512((const void *)(s + i)));
#elif defined(GNI_PASS_AVX2)
        _mm256_stream_si256((__m256i *)(void *)(d + i), _mm256_loadu_si256((const __m256i *)(const void *)(s + i)));
        _mm256_stream_si256((__m256i *)(void *)(d + i + 32), _mm256_loadu_si256((const __m256i *)(const void *)(s + i + 32)));
#else
        for (int k = 0; k < 64; k += 16)
            _mm_stream_si128((__m128i *)(void *)(d + i + k), _mm_loadu_si128((const __m128i *)(const void *)(s + i + k)));
#endif
    }
#else
    if (dst != NULL) memcpy(dst, src, (size_t)bytes);
#endif
}

// ---- folds of contiguous elements

// 64 running sums whatever the width of a vector, joined in one order: the same bits from every pass.
static double GNI_FN(gni_sum_block)(const float *x, int64_t n) {
    float lane[16];
    int64_t whole = n & ~(int64_t)63;
    for (int g = 0; g < 16; g += GNI_VW) {
        gni_vf s[4], a = gni_vset(0.0f), b = a, c = a, d = a;
        const float *p = x + g;
        for (int64_t i = 0; i < whole; i += 64, p += 64) {
            a += gni_vload(p);
            b += gni_vload(p + 16);
            c += gni_vload(p + 32);
            d += gni_vload(p + 48);
        }
        s[0] = a, s[1] = b, s[2] = c, s[3] = d;
        for (int64_t i = whole + g, k = 0; i < n; i += 16, k++)
            s[k] += n - i >= GNI_VW ? gni_vload(x + i) : gni_vloadn(x + i, (int)(n - i));
        gni_vstore(lane + g, (s[0] + s[2]) + (s[1] + s[3]));
    }
    double t[8];
    for (int i = 0; i < 8; i++) t[i] = (double)lane[i] + (double)lane[i + 8];
    return ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]));
}
static void GNI_FN(gni_fold_sum_f)(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    GNI_UNUSED(at);
    for (int64_t i = 0; i < n; i += GNI_SUM_BLOCK)
        acc->d += GNI_FN(gni_sum_block)((const float *)x + i, GNI_MIN(n - i, GNI_SUM_BLOCK));
}
static void GNI_FN(gni_fold_prod_f)(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    const float *p = (const float *)x;
    double s[16];
    int64_t i = 0;
    GNI_UNUSED(at);
    for (int j = 0; j < 16; j++) s[j] = 1.0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) s[j] *= (double)p[i + j];
    for (; i < n; i++) s[i & 15] *= (double)p[i];
    for (int h = 8; h > 0; h /= 2)
        for (int j = 0; j < h; j++) s[j] *= s[j + h];
    acc->d *= s[0];
}

// The smallest (PICK gni_vminc) or largest element; NaN if there is one.
#define GNI_EXTREME_BLOCK(name, PICK)                                                              \
    static float GNI_FN(name)(const float *p, int64_t n) {                                         \
        float t[4 * GNI_VW];                                                                       \
        if (n < 4 * GNI_VW) { /* too few for vectors: fill up with the first */                    \
            for (int i = 0; i < 4 * GNI_VW; i++) t[i] = p[i < n ? i : 0];                          \
            p = t;                                                                                 \
            n = 4 * GNI_VW;                                                                        \
        }                                                                                          \
        gni_vf a = gni_vload(p), b = gni_vload(p + GNI_VW), c = gni_vload(p + 2 * GNI_VW),         \
               d = gni_vload(p + 3 * GNI_VW);                                                      \
        gni_vk nan = gni_kor(gni_kor(gni_knan(a), gni_knan(b)), gni_kor(gni_knan(c), gni_knan(d))); \
        for (int64_t i = 4 * GNI_VW; i < n; i += 4 * GNI_VW) {                                     \
            i = GNI_MIN(i, n - 4 * GNI_VW); /* the last vectors overlap those before */            \
            gni_vf x = gni_vload(p + i), y = gni_vload(p + i + GNI_VW);                            \
            gni_vf z = gni_vload(p + i + 2 * GNI_VW), w = gni_vload(p + i + 3 * GNI_VW);           \
            nan = gni_kor(nan, gni_kor(gni_knan(x), gni_knan(y)));                                 \
            nan = gni_kor(nan, gni_kor(gni_knan(z), gni_knan(w)));                                 \
            a = PICK(a, x);                                                                        \
            b = PICK(b, y);                                                                        \
            c = PICK(c, z);                                                                        \
            d = PICK(d, w);                                                                        \
        }                                                                                          \
        if (gni_kany(nan)) return (float)NAN;                                                      \
        gni_vstore(t, PICK(PICK(a, b), PICK(c, d)));                                               \
        for (int h = GNI_VW / 2; h > 0; h /= 2)                                                    \
            for (int j = 0; j < h; j++)                                                            \
                if (GNI_BETTER(t[j + h], t[j])) t[j] = t[j + h];                                   \
        return t[0];                                                                               \
    }
#define GNI_FOLD_EXTREME(name, BLOCK)                                                              \
    static void GNI_FN(name)(gni_acc *acc, const void *x, int64_t n, int64_t at) {                 \
        GNI_UNUSED(at);                                                                            \
        if (n <= 0 || acc->d != acc->d) return;                                                    \
        double m = (double)GNI_FN(BLOCK)((const float *)x, n);                                     \
        if (m != m || GNI_BETTER(m, acc->d)) acc->d = m;                                           \
    }
// The place as well: a block is searched only when it has something better.
#define GNI_FOLD_PLACE(name, BLOCK)                                                                \
    static void GNI_FN(name)(gni_acc *acc, const void *x, int64_t n, int64_t at) {                 \
        const float *p = (const float *)x;                                                         \
        for (int64_t i = 0; i < n && acc->d == acc->d; i += GNI_SUM_BLOCK) {                       \
            int64_t m = GNI_MIN(n - i, GNI_SUM_BLOCK), j = 0;                                      \
            float best = GNI_FN(BLOCK)(p + i, m);                                                  \
            if (best == best && !GNI_BETTER((double)best, acc->d)) continue;                       \
            while (j < m && !(best == best ? p[i + j] == best : p[i + j] != p[i + j])) j++;        \
            acc->d = (double)best;                                                                 \
            acc->at = at + i + j;                                                                  \
        }                                                                                          \
    }
#define GNI_BETTER(x, y) ((x) < (y))
GNI_EXTREME_BLOCK(gni_min_block, gni_vminc)
GNI_FOLD_EXTREME(gni_fold_min_f, gni_min_block)
GNI_FOLD_PLACE(gni_fold_argmin_f, gni_min_block)
#undef GNI_BETTER
#define GNI_BETTER(x, y) ((x) > (y))
GNI_EXTREME_BLOCK(gni_max_block, gni_vmaxc)
GNI_FOLD_EXTREME(gni_fold_max_f, gni_max_block)
GNI_FOLD_PLACE(gni_fold_argmax_f, gni_max_block)
#undef GNI_BETTER
#undef GNI_EXTREME_BLOCK
#undef GNI_FOLD_EXTREME
#undef GNI_FOLD_PLACE

// Truth: all stops at the first 0, any at the first that is not.
#define GNI_FOLD_TRUTH(name, T, STOP, VALUE)                                                       \
    static void GNI_FN(name)(gni_acc *acc, const void *x, int64_t n, int64_t at) {                 \
        const T *p = (const T *)x;                                                                 \
        int64_t i = 0;                                                                             \
        GNI_UNUSED(at);                                                                            \
        for (; i + 64 <= n && acc->i != VALUE; i += 64) {                                          \
            int found = 0;                                                                         \
            for (int j = 0; j < 64; j++) found |= p[i + j] STOP 0;                                 \
            if (found) acc->i = VALUE;                                                             \
        }                                                                                          \
        for (; i < n && acc->i != VALUE; i++)                                                      \
            if (p[i] STOP 0) acc->i = VALUE;                                                       \
    }
GNI_FOLD_TRUTH(gni_fold_any_f, float, !=, 1)
GNI_FOLD_TRUTH(gni_fold_all_f, float, ==, 0)
GNI_FOLD_TRUTH(gni_fold_any_i, int32_t, !=, 1)
GNI_FOLD_TRUTH(gni_fold_all_i, int32_t, ==, 0)
#undef GNI_FOLD_TRUTH

#define GNI_FOLD_INT(name, T, UNIT, STEP)                                                          \
    static void GNI_FN(name)(gni_acc *acc, const void *x, int64_t n, int64_t at) {                 \
        const T *p = (const T *)x;                                                                 \
        uint64_t s[16];                                                                            \
        int64_t i = 0;                                                                             \
        GNI_UNUSED(at);                                                                            \
        for (int j = 0; j < 16; j++) s[j] = UNIT;                                                  \
        for (; i + 16 <= n; i += 16)                                                               \
            for (int j = 0; j < 16; j++) s[j] STEP(uint64_t)(int64_t)p[i + j];                     \
        for (; i < n; i++) s[0] STEP(uint64_t)(int64_t)p[i];                                       \
        uint64_t r = (uint64_t)acc->i;                                                             \
        for (int j = 0; j < 16; j++) r STEP s[j];                                                  \
        acc->i = (int64_t)r;                                                                       \
    }
#define GNI_FOLD_INT_EXTREME(name, T, OP)                                                          \
    static void GNI_FN(name)(gni_acc *acc, const void *x, int64_t n, int64_t at) {                 \
        const T *p = (const T *)x;                                                                 \
        T s[16];                                                                                   \
        int64_t i = 0;                                                                             \
        GNI_UNUSED(at);                                                                            \
        for (int j = 0; j < 16; j++) s[j] = (T)acc->i;                                             \
        for (; i + 16 <= n; i += 16)                                                               \
            for (int j = 0; j < 16; j++) s[j] = p[i + j] OP s[j] ? p[i + j] : s[j];                \
        for (; i < n; i++) s[0] = p[i] OP s[0] ? p[i] : s[0];                                      \
        for (int j = 0; j < 16; j++)                                                               \
            if ((int64_t)s[j] OP acc->i) acc->i = (int64_t)s[j];                                   \
    }
#define GNI_FOLD_INT_PLACE(name, FOLD, T)                                                          \
    static void GNI_FN(name)(gni_acc *acc, const void *x, int64_t n, int64_t at) {                 \
        const T *p = (const T *)x;                                                                 \
        for (int64_t i = 0; i < n; i += GNI_SUM_BLOCK) {                                           \
            int64_t m = GNI_MIN(n - i, GNI_SUM_BLOCK), before = acc->i, j = 0;                     \
            GNI_FN(FOLD)(acc, p + i, m, 0);                                                        \
            if (acc->i == before) continue;                                                        \
            while ((int64_t)p[i + j] != acc->i) j++;                                               \
            acc->at = at + i + j;                                                                  \
        }                                                                                          \
    }
GNI_FOLD_INT(gni_fold_sum_i, int32_t, 0, +=)
GNI_FOLD_INT(gni_fold_sum_u, uint32_t, 0, +=)
GNI_FOLD_INT(gni_fold_prod_i, int32_t, 1, *=)
GNI_FOLD_INT(gni_fold_prod_u, uint32_t, 1, *=)
GNI_FOLD_INT_EXTREME(gni_fold_min_i, int32_t, <)
GNI_FOLD_INT_EXTREME(gni_fold_min_u, uint32_t, <)
GNI_FOLD_INT_EXTREME(gni_fold_max_i, int32_t, >)
GNI_FOLD_INT_EXTREME(gni_fold_max_u, uint32_t, >)
GNI_FOLD_INT_PLACE(gni_fold_argmin_i, gni_fold_min_i, int32_t)
GNI_FOLD_INT_PLACE(gni_fold_argmin_u, gni_fold_min_u, uint32_t)
GNI_FOLD_INT_PLACE(gni_fold_argmax_i, gni_fold_max_i, int32_t)
GNI_FOLD_INT_PLACE(gni_fold_argmax_u, gni_fold_max_u, uint32_t)
#undef GNI_FOLD_INT
#undef GNI_FOLD_INT_EXTREME
#undef GNI_FOLD_INT_PLACE

#define GNI_ROW(op) GNI_FN(gni_fold_##op##_f), GNI_FN(gni_fold_##op##_i), GNI_FN(gni_fold_##op##_u)
static const gni_fold_fn GNI_FN(gni_fold_table)[GNI_RED_COUNT * 3] = {
    GNI_ROW(sum), GNI_ROW(prod), GNI_ROW(min), GNI_ROW(max),
    GNI_FN(gni_fold_any_f), GNI_FN(gni_fold_any_i), GNI_FN(gni_fold_any_i),
    GNI_FN(gni_fold_all_f), GNI_FN(gni_fold_all_i), GNI_FN(gni_fold_all_i),
    GNI_ROW(argmin), GNI_ROW(argmax)};
#undef GNI_ROW

// ---- folds of columns

// Four rows at a time, each read from one end to the other: `t` gathers up to GNI_COLUMN_BLOCK rows.
static void GNI_FN(gni_columns_sum_f)(gni_acc_columns *acc, const void *x, int64_t rows, int64_t stride,
                                      int64_t n, int64_t at) {
    float t[GNI_BAND];
    double *v = (double *)acc->v;
    GNI_UNUSED(at);
    for (int64_t r0 = 0; r0 < rows; r0 += GNI_COLUMN_BLOCK) {
        int64_t last = GNI_MIN(r0 + GNI_COLUMN_BLOCK, rows), whole = n & ~(int64_t)(GNI_VW - 1);
        memset(t, 0, sizeof(float) * (size_t)n);
        for (int64_t r = r0; r < last; r += 4) {
            const float *p = (const float *)x + r * stride;
            int64_t have = last - r, c = 0;
            if (have >= 4) {
                const float *q = p + stride, *u = q + stride, *w = u + stride;
                for (; c < whole; c += GNI_VW)
                    gni_vstore(t + c, gni_vload(t + c) + ((gni_vload(p + c) + gni_vload(q + c)) +
                                                          (gni_vload(u + c) + gni_vload(w + c))));
                for (; c < n; c++) t[c] += (p[c] + q[c]) + (u[c] + w[c]);
                continue;
            }
            for (int64_t k = 0; k < have; k++, p += stride) {
                for (c = 0; c < whole; c += GNI_VW) gni_vstore(t + c, gni_vload(t + c) + gni_vload(p + c));
                for (; c < n; c++) t[c] += p[c];
            }
        }
        int64_t c = 0;
        for (; c + 16 <= n; c += 16)
            for (int j = 0; j < 16; j++) v[c + j] += (double)t[c + j];
        for (; c < n; c++) v[c] += (double)t[c];
    }
}

// The columns' extremes, and their places.
#define GNI_COLUMNS_EXTREME(name, PICK, BETTER)                                                    \
    static void GNI_FN(name)(gni_acc_columns *acc, const void *x, int64_t rows, int64_t stride,    \
                             int64_t n, int64_t at) {                                              \
        float *v = (float *)acc->v;                                                                \
        GNI_UNUSED(at);                                                                            \
        for (int64_t r = 0; r < rows;) {                                                           \
            const float *p = (const float *)x + r * stride;                                        \
            int64_t step = rows - r >= 4 ? stride : 0, c = 0;                                      \
            r += step != 0 ? 4 : 1;                                                                \
            for (; c + GNI_VW <= n; c += GNI_VW) {                                                 \
                gni_vf m = gni_vload(p + c);                                                       \
                if (step != 0)                                                                     \
                    m = PICK(PICK(m, gni_vload(p + step + c)),                                     \
                             PICK(gni_vload(p + 2 * step + c), gni_vload(p + 3 * step + c)));      \
                gni_vstore(v + c, PICK(gni_vload(v + c), m));                                      \
            }                                                                                      \
            for (; c < n; c++)                                                                     \
                for (int k = 0; k < (step != 0 ? 4 : 1); k++) {                                    \
                    float y = p[k * step + c];                                                     \
                    if (v[c] == v[c] && (y != y || y BETTER v[c])) v[c] = y;                       \
                }                                                                                  \
        }                                                                                          \
    }
#define GNI_COLUMNS_PLACE(name, BETTER_K, BETTER)                                                  \
    static void GNI_FN(name)(gni_acc_columns *acc, const void *x, int64_t rows, int64_t stride,    \
                             int64_t n, int64_t at) {                                              \
        float *v = (float *)acc->v;                                                                \
        int32_t where[GNI_BAND];                                                                   \
        for (int64_t c = 0; c < n; c++) where[c] = -1;                                             \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const float *p = (const float *)x + r * stride;                                        \
            int64_t c = 0;                                                                         \
            for (; c + GNI_VW <= n; c += GNI_VW) {                                                 \
                gni_vf m = gni_vload(v + c), y = gni_vload(p + c);                                 \
                gni_vk k = gni_kor(BETTER_K(y, m), gni_kand(gni_knan(y), gni_knot(gni_knan(m))));  \
                if (!gni_kany(k)) continue;                                                        \
                gni_vstore(v + c, gni_ksel(k, y, m));                                              \
                gni_vstorei(where + c, gni_kseli(k, gni_vseti((int32_t)r), gni_vloadi(where + c))); \
            }                                                                                      \
            for (; c < n; c++) {                                                                   \
                if (v[c] != v[c] || !(p[c] != p[c] || p[c] BETTER v[c])) continue;                 \
                v[c] = p[c];                                                                       \
                where[c] = (int32_t)r;                                                             \
            }                                                                                      \
        }                                                                                          \
        for (int64_t c = 0; c < n; c++)                                                            \
            if (where[c] >= 0) acc->at[c] = at + where[c];                                         \
    }
GNI_COLUMNS_EXTREME(gni_columns_min_f, gni_vmin, <)
GNI_COLUMNS_EXTREME(gni_columns_max_f, gni_vmax, >)
GNI_COLUMNS_PLACE(gni_columns_argmin_f, gni_klt, <)
GNI_COLUMNS_PLACE(gni_columns_argmax_f, gni_kgt, >)
#undef GNI_COLUMNS_EXTREME
#undef GNI_COLUMNS_PLACE

// The rest element by element: S is the accumulator, y the element.
#define GNI_COLUMNS(name, T, S, STEP)                                                              \
    static void GNI_FN(name)(gni_acc_columns *acc, const void *x, int64_t rows, int64_t stride,    \
                             int64_t n, int64_t at) {                                              \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            S *GNI_RESTRICT v = (S *)acc->v;                                                       \
            const T *GNI_RESTRICT p = (const T *)x + r * stride;                                   \
            int64_t c = 0, row = at + r;                                                           \
            GNI_UNUSED(row);                                                                       \
            for (; c < n; c++) {                                                                   \
                T y = p[c];                                                                        \
                STEP;                                                                              \
            }                                                                                      \
        }                                                                                          \
    }
#define GNI_PLACE_STEP(OP)                                                                         \
    if (y OP v[c]) {                                                                               \
        v[c] = y;                                                                                  \
        acc->at[c] = row;                                                                          \
    }
GNI_COLUMNS(gni_columns_prod_f, float, double, v[c] *= (double)y)
GNI_COLUMNS(gni_columns_sum_i, int32_t, uint64_t, v[c] += (uint64_t)(int64_t)y)
GNI_COLUMNS(gni_columns_sum_u, uint32_t, uint64_t, v[c] += (uint64_t)y)
GNI_COLUMNS(gni_columns_prod_i, int32_t, uint64_t, v[c] *= (uint64_t)(int64_t)y)
GNI_COLUMNS(gni_columns_prod_u, uint32_t, uint64_t, v[c] *= (uint64_t)y)
GNI_COLUMNS(gni_columns_min_i, int32_t, int32_t, v[c] = y < v[c] ? y : v[c])
GNI_COLUMNS(gni_columns_min_u, uint32_t, uint32_t, v[c] = y < v[c] ? y : v[c])
GNI_COLUMNS(gni_columns_max_i, int32_t, int32_t, v[c] = y > v[c] ? y : v[c])
GNI_COLUMNS(gni_columns_max_u, uint32_t, uint32_t, v[c] = y > v[c] ? y : v[c])
GNI_COLUMNS(gni_columns_any_f, float, int32_t, v[c] |= (int32_t)(y != 0))
GNI_COLUMNS(gni_columns_any_i, int32_t, int32_t, v[c] |= (int32_t)(y != 0))
GNI_COLUMNS(gni_columns_all_f, float, int32_t, v[c] &= (int32_t)(y != 0))
GNI_COLUMNS(gni_columns_all_i, int32_t, int32_t, v[c] &= (int32_t)(y != 0))
GNI_COLUMNS(gni_columns_argmin_i, int32_t, int32_t, GNI_PLACE_STEP(<))
GNI_COLUMNS(gni_columns_argmin_u, uint32_t, uint32_t, GNI_PLACE_STEP(<))
GNI_COLUMNS(gni_columns_argmax_i, int32_t, int32_t, GNI_PLACE_STEP(>))
GNI_COLUMNS(gni_columns_argmax_u, uint32_t, uint32_t, GNI_PLACE_STEP(>))
#undef GNI_COLUMNS
#undef GNI_PLACE_STEP

#define GNI_ROW(op) GNI_FN(gni_columns_##op##_f), GNI_FN(gni_columns_##op##_i), GNI_FN(gni_columns_##op##_u)
static const gni_fold_columns_fn GNI_FN(gni_columns_table)[GNI_RED_COUNT * 3] = {
    GNI_ROW(sum), GNI_ROW(prod), GNI_ROW(min), GNI_ROW(max),
    GNI_FN(gni_columns_any_f), GNI_FN(gni_columns_any_i), GNI_FN(gni_columns_any_i),
    GNI_FN(gni_columns_all_f), GNI_FN(gni_columns_all_i), GNI_FN(gni_columns_all_i),
    GNI_ROW(argmin), GNI_ROW(argmax)};
#undef GNI_ROW

// ---- softmax

static gni_softmax_part GNI_FN(gni_softmax_stats)(void *dst, const void *src, int64_t n) {
    const float *x = (const float *)src;
    float *y = (float *)dst, t[GNI_VW];
    gni_softmax_part part;
    float most = GNI_FN(gni_max_block)(x, n);
    part.most = (double)most;
    part.sum = 0.0;
    if (!(most < (float)INFINITY)) part.sum = GNI_NAN; // +Inf or NaN: the caller sees it in `most`
    if (!(most < (float)INFINITY) || most == -(float)INFINITY) {
        if (y != NULL) memset(y, 0, sizeof(float) * (size_t)n);
        return part;
    }
    gni_vf m = gni_vset(most), s0 = gni_vset(0.0f), s1 = s0;
    int64_t i = 0;
    for (; i + 2 * GNI_VW <= n; i += 2 * GNI_VW) {
        gni_vf e0 = gni_vexp(gni_vload(x + i) - m), e1 = gni_vexp(gni_vload(x + i + GNI_VW) - m);
        s0 += e0;
        s1 += e1;
        if (y == NULL) continue;
        gni_vstore(y + i, e0);
        gni_vstore(y + i + GNI_VW, e1);
    }
    for (; i < n; i += GNI_VW) {
        int64_t left = GNI_MIN(n - i, GNI_VW);
        for (int j = 0; j < GNI_VW; j++) t[j] = j < left ? x[i + j] : -(float)INFINITY;
        gni_vf e0 = gni_vexp(gni_vload(t) - m);
        s0 += e0;
        if (y != NULL) gni_vstoren(y + i, e0, (int)left);
    }
    gni_vstore(t, s0 + s1);
    for (int j = 0; j < GNI_VW; j++) part.sum += (double)t[j];
    return part;
}
#define GNI_SOFTMAX_EMIT(name, PARAMS, SETUP, F)                                                   \
    static void GNI_FN(name) PARAMS {                                                              \
        const float *x = (const float *)src;                                                       \
        float *y = (float *)dst;                                                                   \
        int64_t i = 0;                                                                             \
        SETUP;                                                                                     \
        for (; i + GNI_VW <= n; i += GNI_VW) {                                                     \
            gni_vf a = gni_vload(x + i);                                                           \
            gni_vstore(y + i, F);                                                                  \
        }                                                                                          \
        if (i < n) {                                                                               \
            gni_vf a = gni_vloadn(x + i, (int)(n - i));                                            \
            gni_vstoren(y + i, F, (int)(n - i));                                                   \
        }                                                                                          \
    }
GNI_SOFTMAX_EMIT(gni_softmax_scale, (void *dst, const void *src, int64_t n, double factor),
                 gni_vf f = gni_vset((float)factor), a * f)
GNI_SOFTMAX_EMIT(gni_softmax_emit, (void *dst, const void *src, int64_t n, double most, double factor),
                 gni_vf m = gni_vset((float)most); gni_vf f = gni_vset((float)factor), gni_vexp(a - m) * f)
GNI_SOFTMAX_EMIT(gni_softmax_emit_log, (void *dst, const void *src, int64_t n, double most, double low),
                 gni_vf m = gni_vset((float)most); gni_vf f = gni_vset((float)low), (a - m) - f)
#undef GNI_SOFTMAX_EMIT
// Short rows side by side: x (n, rows), rows a multiple of 16. The result takes the place of x, or for
// logsumexp of its first row.
static void GNI_FN(gni_softmax_columns)(float *x, int64_t n, int64_t rows, gni_softmax_kind kind) {
    for (int64_t r = 0; r < rows; r += GNI_VW) {
        float *p = x + r;
        gni_vf m = gni_vload(p), s = gni_vset(0.0f), zero = s;
        for (int64_t i = 1; i < n; i++) m = gni_vmax(m, gni_vload(p + i * rows));
        if (kind != GNI_SOFTMAX) m = gni_ksel(gni_klt(gni_vabs(m), gni_vinf()), m, zero);
        for (int64_t i = 0; i < n; i++) {
            gni_vf e = gni_vexp(gni_vload(p + i * rows) - m);
            s += e;
            if (kind == GNI_SOFTMAX) gni_vstore(p + i * rows, e);
        }
        if (kind == GNI_SOFTMAX) {
            for (int64_t i = 0; i < n; i++) gni_vstore(p + i * rows, gni_vload(p + i * rows) / s);
            continue;
        }
        s = gni_vlog(s);
        if (kind == GNI_LOGSUMEXP) gni_vstore(p, m + s);
        for (int64_t i = 0; i < n && kind == GNI_LOG_SOFTMAX; i++)
            gni_vstore(p + i * rows, (gni_vload(p + i * rows) - m) - s);
    }
}
static const gni_softmax_fns GNI_FN(gni_softmax_table) = {
    GNI_FN(gni_softmax_stats), GNI_FN(gni_softmax_scale), GNI_FN(gni_softmax_emit),
    GNI_FN(gni_softmax_emit_log), GNI_FN(gni_softmax_columns)};

// ---- random

// GNI_VW Philox blocks at once. The lanes' blocks are numbered so that turning groups of four lanes
// leaves every vector with four blocks' words in order.
#define gni_vblocks GNI_FN(gni_ck_blocks)
#define gni_vturn GNI_FN(gni_ck_turn)
GNI_INLINE void gni_vblocks(uint64_t seed, uint64_t first, gni_vu w[4]) {
#if GNI_VW == 16
    static const uint32_t order[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
#elif GNI_VW == 8
    static const uint32_t order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
#else
    static const uint32_t order[4] = {0, 1, 2, 3};
#endif
    gni_vu lane = gni_vloadu(order), lo = gni_vsetu((uint32_t)first) + lane;
    gni_vu carry = gni_vi_u(gni_kmask(gni_kult(lo, lane))) & gni_vsetu(1);
    gni_vu hi = gni_vsetu((uint32_t)(first >> 32)) + carry;
    gni_vphilox(lo, hi, gni_vsetu(0), gni_vsetu(0), (uint32_t)seed, (uint32_t)(seed >> 32), w);
}
// Stores w[k] of lane j as element 4 * j' + k, j' being the lane's block: 4 * GNI_VW words.
GNI_INLINE void gni_vturn(uint32_t *dst, const gni_vu w[4]) {
#if GNI_VW == 16
    __m512i a = _mm512_unpacklo_epi32((__m512i)w[0], (__m512i)w[1]);
    __m512i b = _mm512_unpackhi_epi32((__m512i)w[0], (__m512i)w[1]);
    __m512i c = _mm512_unpacklo_epi32((__m512i)w[2], (__m512i)w[3]);
    __m512i d = _mm512_unpackhi_epi32((__m512i)w[2], (__m512i)w[3]);
    gni_vstoreu(dst, (gni_vu)_mm512_unpacklo_epi64(a, c));
    gni_vstoreu(dst + 16, (gni_vu)_mm512_unpackhi_epi64(a, c));
    gni_vstoreu(dst + 32, (gni_vu)_mm512_unpacklo_epi64(b, d));
    gni_vstoreu(dst + 48, (gni_vu)_mm512_unpackhi_epi64(b, d));
#elif GNI_VW == 8
    __m256i a = _mm256_unpacklo_epi32((__m256i)w[0], (__m256i)w[1]);
    __m256i b = _mm256_unpackhi_epi32((__m256i)w[0], (__m256i)w[1]);
    __m256i c = _mm256_unpacklo_epi32((__m256i)w[2], (__m256i)w[3]);
    __m256i d = _mm256_unpackhi_epi32((__m256i)w[2], (__m256i)w[3]);
    gni_vstoreu(dst, (gni_vu)_mm256_unpacklo_epi64(a, c));
    gni_vstoreu(dst + 8, (gni_vu)_mm256_unpackhi_epi64(a, c));
    gni_vstoreu(dst + 16, (gni_vu)_mm256_unpacklo_epi64(b, d));
    gni_vstoreu(dst + 24, (gni_vu)_mm256_unpackhi_epi64(b, d));
#elif GNI_V_SSE2
    __m128i a = _mm_unpacklo_epi32((__m128i)w[0], (__m128i)w[1]);
    __m128i b = _mm_unpackhi_epi32((__m128i)w[0], (__m128i)w[1]);
    __m128i c = _mm_unpacklo_epi32((__m128i)w[2], (__m128i)w[3]);
    __m128i d = _mm_unpackhi_epi32((__m128i)w[2], (__m128i)w[3]);
    gni_vstoreu(dst, (gni_vu)_mm_unpacklo_epi64(a, c));
    gni_vstoreu(dst + 4, (gni_vu)_mm_unpackhi_epi64(a, c));
    gni_vstoreu(dst + 8, (gni_vu)_mm_unpacklo_epi64(b, d));
    gni_vstoreu(dst + 12, (gni_vu)_mm_unpackhi_epi64(b, d));
#else
    uint32_t t[4][GNI_VW];
    for (int k = 0; k < 4; k++) gni_vstoreu(t[k], w[k]);
    for (int j = 0; j < GNI_VW; j++)
        for (int k = 0; k < 4; k++) dst[4 * j + k] = t[k][j];
#endif
}
#define GNI_RANDOM(name, T, MAKE)                                                                  \
    static void GNI_FN(name)(T *dst, uint64_t seed, uint64_t first, int64_t blocks) {              \
        for (int64_t i = 0; i < blocks; i += GNI_VW) {                                             \
            gni_vu w[4];                                                                           \
            uint32_t t[4 * GNI_VW];                                                                \
            gni_vblocks(seed, first + (uint64_t)i, w);                                             \
            MAKE;                                                                                  \
            if (i + GNI_VW <= blocks) {                                                            \
                gni_vturn((uint32_t *)(void *)(dst + 4 * i), w);                                   \
                continue;                                                                          \
            }                                                                                      \
            gni_vturn(t, w);                                                                       \
            memcpy(dst + 4 * i, t, sizeof(uint32_t) * 4 * (size_t)(blocks - i));                   \
        }                                                                                          \
    }
#define GNI_UNIT(x) gni_vf_ubits(gni_itov(gni_vu_i((x) >> 8)) * gni_vset(5.9604644775390625e-8f))
#define GNI_MAKE_UNIFORM                                                                           \
    w[0] = GNI_UNIT(w[0]);                                                                         \
    w[1] = GNI_UNIT(w[1]);                                                                         \
    w[2] = GNI_UNIT(w[2]);                                                                         \
    w[3] = GNI_UNIT(w[3])
#define GNI_MAKE_NORMAL                                                                            \
    for (int k = 0; k < 4; k += 2) {                                                               \
        gni_vf x, y;                                                                               \
        gni_vnormal2(w[k], w[k + 1], &x, &y);                                                      \
        w[k] = gni_vf_ubits(x);                                                                    \
        w[k + 1] = gni_vf_ubits(y);                                                                \
    }
GNI_RANDOM(gni_random_bits, uint32_t, (void)0)
GNI_RANDOM(gni_random_uniform, float, GNI_MAKE_UNIFORM)
GNI_RANDOM(gni_random_normal, float, GNI_MAKE_NORMAL)
#undef GNI_RANDOM
#undef GNI_UNIT
#undef GNI_MAKE_UNIFORM
#undef GNI_MAKE_NORMAL

static const gni_cpu_isa GNI_FN(gni_isa_table) = {
    GNI_FN(gni_kernels_narrow), GNI_FN(gni_load_table),   GNI_FN(gni_store_table),
    GNI_FN(gni_fold_table),     GNI_FN(gni_columns_table), &GNI_FN(gni_softmax_table),
    GNI_FN(gni_random_bits),    GNI_FN(gni_random_uniform), GNI_FN(gni_random_normal), GNI_FN(gni_stream)};

#undef GNI_KERNEL
#undef GNI_PUT_FLOAT
#undef GNI_PUT_TRUTH
#undef GNI_FLOAT_1
#undef GNI_FLOAT_2
#undef GNI_INT_1
#undef GNI_INT_2
#undef gni_vinf
#undef gni_vsign
#undef gni_vtruth
#undef gni_vrsqrt
#undef gni_vsilu
#undef gni_vround_f16
#undef gni_vround_bf16
#undef gni_vwrap_i8
#undef gni_vturn
#undef gni_vb
#undef gni_vload_u8
#undef gni_vload_i8
#undef gni_vstore_8
#undef gni_vblocks
// ------------------------------------------------------------------------------------------
// >>gemm_micro
// Register tiles, dot products and panel packing of the matrix product, once per instruction set.
// From outside: the table GNI_FN(gni_gemm_isa), and the types at the start.

#ifndef GNI_GEMM_TYPES
#define GNI_GEMM_TYPES

#define GNI_GEMM_MAX_ROWS 16 // more than the rows of any tile

// One register tile: c (rows,cols) = a (rows,k) b (k,cols), strides in elements.
typedef struct gni_gemm_tile {
    int64_t k;
    const void *a; // (i,p) at a + i * a_rs + p * a_cs
    int64_t a_rs, a_cs;
    const void *b; // row p at b + p * b_rs; the tile's full width is read, but where tiles clip
    int64_t b_rs;
    void *c;
    int64_t c_rs;
    int cols;          // columns of c that exist
    int act;           // 0 none, 1 relu
    bool add;          // to what c holds
    bool fetch;        // c comes from far away
    const float *bias; // (cols) or NULL
} gni_gemm_tile;

typedef void (*gni_gemm_tile_fn)(const gni_gemm_tile *t);

// d[p * dw + i] = s[i * is + p * ps] for i < w and p < k, 0 for w <= i < dw. May write up to one vector
// past the end of d.
typedef void (*gni_gemm_pack_fn)(void *d, int64_t dw, const void *s, int64_t is, int64_t ps,
                                 int64_t w, int64_t k);

// Tiles of one kind of number.
typedef struct gni_gemm_family {
    int rows;  // of the largest tile
    int lanes; // columns of a narrow tile; a wide one has two times as many, a half one half as many
    bool clip; // nothing of b is read past the columns that exist
    // [0 narrow, 1 wide, 2 half][rows], NULL where there is none
    gni_gemm_tile_fn tile[3][GNI_GEMM_MAX_ROWS + 1];
} gni_gemm_family;

// Rows of a against columns of b, both contiguous along k: c[i * c_rs + j * c_cs].
typedef struct gni_gemm_dots {
    int64_t m, n, k;
    const float *a;
    int64_t a_rs;
    const float *b;
    int64_t b_cs;
    float *c;
    int64_t c_rs, c_cs;
    bool add;
    int act;
    const float *bias;
    int64_t bias_rs, bias_cs;
} gni_gemm_dots;

// y (n) += s (k) b (k,n) with rows of b contiguous.
typedef struct gni_gemm_rows {
    int64_t n, k;
    const float *s;
    int64_t s_stride;
    const float *b;
    int64_t b_rs;
    float *y;
} gni_gemm_rows;

typedef struct gni_gemm_isa {
    const gni_gemm_family *f32, *f64, *i32, *i64;
    const gni_gemm_family *bf16; // packed in pairs along k; NULL where there is no such product
    gni_gemm_pack_fn pack_f32, pack_f16, pack_bf16, pack_64, pack_pairs;
    void (*dots)(const gni_gemm_dots *d);
    void (*add_rows)(const gni_gemm_rows *d);
    // s (rows,cols) with rows of `width` into c as (cols,rows): c[j * c_rs + i], bias along i
    void (*put_turned)(const gni_gemm_tile *t, const float *s, int64_t rows, int64_t cols,
                       int64_t width);
} gni_gemm_isa;

// Tiles are written out by macros, so that every accumulator is a variable of its own: compilers keep
// those in registers at any level of optimisation.
// X(F, row, group, row in group); groups of four rows share a pointer. F is the family.
#define GNI_GM_R1(X, F)  X(F, 0, 0, 0)
#define GNI_GM_R2(X, F)  GNI_GM_R1(X, F) X(F, 1, 0, 1)
#define GNI_GM_R3(X, F)  GNI_GM_R2(X, F) X(F, 2, 0, 2)
#define GNI_GM_R4(X, F)  GNI_GM_R3(X, F) X(F, 3, 0, 3)
#define GNI_GM_R5(X, F)  GNI_GM_R4(X, F) X(F, 4, 1, 0)
#define GNI_GM_R6(X, F)  GNI_GM_R5(X, F) X(F, 5, 1, 1)
#define GNI_GM_R7(X, F)  GNI_GM_R6(X, F) X(F, 6, 1, 2)
#define GNI_GM_R8(X, F)  GNI_GM_R7(X, F) X(F, 7, 1, 3)
#define GNI_GM_R9(X, F)  GNI_GM_R8(X, F) X(F, 8, 2, 0)
#define GNI_GM_R10(X, F) GNI_GM_R9(X, F) X(F, 9, 2, 1)
#define GNI_GM_R11(X, F) GNI_GM_R10(X, F) X(F, 10, 2, 2)
#define GNI_GM_R12(X, F) GNI_GM_R11(X, F) X(F, 11, 2, 3)
#define GNI_GM_R13(X, F) GNI_GM_R12(X, F) X(F, 12, 3, 0)
#define GNI_GM_R14(X, F) GNI_GM_R13(X, F) X(F, 13, 3, 1)
#define GNI_GM_G1(X, F)  X(F, 0)
#define GNI_GM_G2(X, F)  X(F, 0)
#define GNI_GM_G3(X, F)  X(F, 0)
#define GNI_GM_G4(X, F)  X(F, 0)
#define GNI_GM_G5(X, F)  X(F, 0) X(F, 1)
#define GNI_GM_G6(X, F)  GNI_GM_G5(X, F)
#define GNI_GM_G7(X, F)  GNI_GM_G5(X, F)
#define GNI_GM_G8(X, F)  GNI_GM_G5(X, F)
#define GNI_GM_G9(X, F)  GNI_GM_G5(X, F) X(F, 2)
#define GNI_GM_G10(X, F) GNI_GM_G9(X, F)
#define GNI_GM_G11(X, F) GNI_GM_G9(X, F)
#define GNI_GM_G12(X, F) GNI_GM_G9(X, F)
#define GNI_GM_G13(X, F) GNI_GM_G9(X, F) X(F, 3)
#define GNI_GM_G14(X, F) GNI_GM_G13(X, F)

// What a family F gives: A_F the type of operands, T_F that of c, V_F a vector of it, LANES_F; SET_F,
// FMA_F, STORE_F; GET_F and PUT_F of part i of a row; BEGIN_F, SUM_F, EDGE_F, EPILOGUE_F and END_F, of
// which a tile is made.
#define GNI_GM_POINTER(F, q) const GNI_GM_A_##F *a##q = (const GNI_GM_A_##F *)t->a + 4 * q * a_rs;
#define GNI_GM_ADVANCE(F, q) a##q += a_cs;
// Lines of c would otherwise be waited for at the end of the tile.
#define GNI_GM_FETCH1(F, r, q, s) \
    __builtin_prefetch(w, 1);     \
    w += c_rs;
#define GNI_GM_FETCH2(F, r, q, s)                \
    __builtin_prefetch(w, 1);                    \
    __builtin_prefetch(w + GNI_GM_LANES_##F, 1); \
    w += c_rs;
#define GNI_GM_ZERO1(F, r, q, s) GNI_GM_V_##F c##r##_0 = GNI_GM_ZERO_##F;
#define GNI_GM_ZERO2(F, r, q, s) \
    GNI_GM_V_##F c##r##_0 = GNI_GM_ZERO_##F, c##r##_1 = GNI_GM_ZERO_##F;
#define GNI_GM_STEP1(F, r, q, s)        \
    x = GNI_GM_SET_##F(a##q[s * a_rs]); \
    c##r##_0 = GNI_GM_FMA_##F(x, b0, c##r##_0);
#define GNI_GM_STEP2(F, r, q, s)                \
    x = GNI_GM_SET_##F(a##q[s * a_rs]);         \
    c##r##_0 = GNI_GM_FMA_##F(x, b0, c##r##_0); \
    c##r##_1 = GNI_GM_FMA_##F(x, b1, c##r##_1);
#define GNI_GM_ADD1(F, r, q, s)                 \
    c##r##_0 = GNI_GM_GET_##F(w, 0) + c##r##_0; \
    w += c_rs;
#define GNI_GM_ADD2(F, r, q, s)                 \
    c##r##_0 = GNI_GM_GET_##F(w, 0) + c##r##_0; \
    c##r##_1 = GNI_GM_GET_##F(w, 1) + c##r##_1; \
    w += c_rs;
#define GNI_GM_BIAS1(F, r, q, s) c##r##_0 = c##r##_0 + bias0;
#define GNI_GM_BIAS2(F, r, q, s) \
    c##r##_0 = c##r##_0 + bias0; \
    c##r##_1 = c##r##_1 + bias1;
#define GNI_GM_ACT1(F, r, q, s) c##r##_0 = GNI_GM_RELU_##F(c##r##_0);
#define GNI_GM_ACT2(F, r, q, s)           \
    c##r##_0 = GNI_GM_RELU_##F(c##r##_0); \
    c##r##_1 = GNI_GM_RELU_##F(c##r##_1);
#define GNI_GM_PUT1(F, r, q, s)     \
    GNI_GM_PUT_##F(w, 0, c##r##_0); \
    w += c_rs;
#define GNI_GM_PUT2(F, r, q, s)     \
    GNI_GM_PUT_##F(w, 0, c##r##_0); \
    GNI_GM_PUT_##F(w, 1, c##r##_1); \
    w += c_rs;
#define GNI_GM_WHOLE1(F, r, q, s)  \
    GNI_GM_STORE_##F(w, c##r##_0); \
    w += c_rs;
#define GNI_GM_WHOLE2(F, r, q, s)                     \
    GNI_GM_STORE_##F(w, c##r##_0);                    \
    GNI_GM_STORE_##F(w + GNI_GM_LANES_##F, c##r##_1); \
    w += c_rs;
#define GNI_GM_SPILL1(F, r, q, s) GNI_GM_STORE_##F(spill + r * GNI_GM_LANES_##F, c##r##_0);
#define GNI_GM_SPILL2(F, r, q, s)                                 \
    GNI_GM_STORE_##F(spill + 2 * r * GNI_GM_LANES_##F, c##r##_0); \
    GNI_GM_STORE_##F(spill + (2 * r + 1) * GNI_GM_LANES_##F, c##r##_1);
#define GNI_GM_B1(TAKE)   b0 = TAKE(b, 0)
#define GNI_GM_B2(TAKE)   b0 = TAKE(b, 0), b1 = TAKE(b, 1)
#define GNI_GM_BIASES1(F) bias0 = GNI_GM_GET_##F(t->bias, 0)
#define GNI_GM_BIASES2(F) bias0 = GNI_GM_GET_##F(t->bias, 0), bias1 = GNI_GM_GET_##F(t->bias, 1)
// The compiler is not to know that it has seen c's rows before: it would keep the address of each in
// memory from one use to the next.
#define GNI_GM_FORGET(pointer) __asm__("" : "+r"(pointer))

#define GNI_GM_SUM(F, R, N, TAKE)          \
    for (int64_t p = t->k; p > 0; p--) {   \
        GNI_GM_V_##F x, GNI_GM_B##N(TAKE); \
        b += b_rs;                         \
        GNI_GM_R##R(GNI_GM_STEP##N, F);    \
        GNI_GM_G##R(GNI_GM_ADVANCE, F);    \
    }

// The tile of R rows and N vectors. Every element is one chain of multiply-adds in the order of k, so
// that its bits do not depend on the tile it falls into.
#define GNI_GM_VECTOR_TILE(F, R, N)                                                   \
    static void GNI_FN(gni_gm_##F##_##R##_##N)(const gni_gemm_tile *t) {              \
        const int64_t a_rs = t->a_rs, a_cs = t->a_cs, b_rs = t->b_rs, c_rs = t->c_rs; \
        const GNI_GM_A_##F *b = (const GNI_GM_A_##F *)t->b;                           \
        GNI_GM_T_##F *w = (GNI_GM_T_##F *)t->c;                                       \
        GNI_GM_BEGIN_##F(F, R, N);                                                    \
        if (t->fetch) {                                                               \
            GNI_GM_R##R(GNI_GM_FETCH##N, F);                                          \
        }                                                                             \
        GNI_GM_G##R(GNI_GM_POINTER, F);                                               \
        GNI_GM_R##R(GNI_GM_ZERO##N, F);                                               \
        GNI_GM_SUM_##F(F, R, N);                                                      \
        GNI_GM_EDGE_##F(F, R, N);                                                     \
        if (t->add) {                                                                 \
            w = (GNI_GM_T_##F *)t->c;                                                 \
            GNI_GM_FORGET(w);                                                         \
            GNI_GM_R##R(GNI_GM_ADD##N, F);                                            \
        }                                                                             \
        GNI_GM_EPILOGUE_##F(F, R, N);                                                 \
        w = (GNI_GM_T_##F *)t->c;                                                     \
        GNI_GM_FORGET(w);                                                             \
        GNI_GM_END_##F(F, R, N);                                                      \
    }

// The same in plain C, in the form that compilers vectorise where they can.
#define GNI_GM_PLAIN_TILE(F, R, N)                                                           \
    static void GNI_FN(gni_gm_##F##_##R##_##N)(const gni_gemm_tile *t) {                     \
        GNI_GM_T_##F sum[R * N * 4] = {0};                                                   \
        const GNI_GM_T_##F *a = (const GNI_GM_T_##F *)t->a, *b = (const GNI_GM_T_##F *)t->b; \
        for (int64_t p = 0; p < t->k; p++, a += t->a_cs, b += t->b_rs) {                     \
            for (int i = 0; i < R; i++) {                                                    \
                GNI_GM_T_##F x = a[i * t->a_rs];                                             \
                for (int j = 0; j < N * 4; j++) sum[i * N * 4 + j] += x * b[j];              \
            }                                                                                \
        }                                                                                    \
        gni_gm_put_##F(t, sum, R, N * 4);                                                    \
    }

// What families put at the end of a tile.
#define GNI_GM_SPILL_EDGE(F, R, N)                        \
    if (t->cols != N * GNI_GM_LANES_##F) {                \
        GNI_GM_T_##F spill[R * N * GNI_GM_LANES_##F];     \
        GNI_GM_R##R(GNI_GM_SPILL##N, F);                  \
        gni_gm_put_##F(t, spill, R, N *GNI_GM_LANES_##F); \
        return;                                           \
    }
#define GNI_GM_NOTHING(F, R, N)   (void)0
#define GNI_GM_STORE_ALL(F, R, N) GNI_GM_R##R(GNI_GM_WHOLE##N, F)
// Masks cost something, in the sum above all.
#define GNI_GM_SUM_PARTS(F, R, N)            \
    if (t->cols == N * GNI_GM_LANES_##F) {   \
        GNI_GM_SUM(F, R, N, GNI_GM_TAKE_##F) \
    } else {                                 \
        GNI_GM_SUM(F, R, N, GNI_GM_GET_##F)  \
    }
#define GNI_GM_STORE_PARTS(F, R, N)        \
    if (t->cols == N * GNI_GM_LANES_##F) { \
        GNI_GM_R##R(GNI_GM_WHOLE##N, F);   \
        return;                            \
    }                                      \
    GNI_GM_R##R(GNI_GM_PUT##N, F)
#define GNI_GM_BIAS_ACT(F, R, N)          \
    if (t->bias != NULL) {                \
        GNI_GM_V_##F GNI_GM_BIASES##N(F); \
        GNI_GM_R##R(GNI_GM_BIAS##N, F);   \
    }                                     \
    if (t->act == 1) {                    \
        GNI_GM_R##R(GNI_GM_ACT##N, F);    \
    }

// Defines the tiles of a family of at most `rows` rows, by N vectors.
#define GNI_GM_MAKE4(KIND, F, N) \
    GNI_GM_##KIND##_TILE(F, 1, N) GNI_GM_##KIND##_TILE(F, 2, N) GNI_GM_##KIND##_TILE(F, 4, N)
#define GNI_GM_MAKE6(KIND, F, N) \
    GNI_GM_MAKE4(KIND, F, N)     \
    GNI_GM_##KIND##_TILE(F, 3, N) GNI_GM_##KIND##_TILE(F, 5, N) GNI_GM_##KIND##_TILE(F, 6, N)
#define GNI_GM_MAKE8(KIND, F, N) GNI_GM_MAKE4(KIND, F, N) GNI_GM_##KIND##_TILE(F, 8, N)
#define GNI_GM_MAKE14(KIND, F, N)                                                             \
    GNI_GM_MAKE6(KIND, F, N)                                                                  \
    GNI_GM_##KIND##_TILE(F, 7, N) GNI_GM_##KIND##_TILE(F, 8, N) GNI_GM_##KIND##_TILE(F, 9, N) \
        GNI_GM_##KIND##_TILE(F, 10, N) GNI_GM_##KIND##_TILE(F, 11, N)                         \
            GNI_GM_##KIND##_TILE(F, 12, N) GNI_GM_##KIND##_TILE(F, 13, N)                     \
                GNI_GM_##KIND##_TILE(F, 14, N)
// Their table by rows.
#define GNI_GM_TILES4(F, N)                                                 \
    {                                                                       \
        NULL, GNI_FN(gni_gm_##F##_1_##N), GNI_FN(gni_gm_##F##_2_##N), NULL, \
            GNI_FN(gni_gm_##F##_4_##N)                                      \
    }
#define GNI_GM_TILES6(F, N)                                                                       \
    {                                                                                             \
        NULL, GNI_FN(gni_gm_##F##_1_##N), GNI_FN(gni_gm_##F##_2_##N), GNI_FN(gni_gm_##F##_3_##N), \
            GNI_FN(gni_gm_##F##_4_##N), GNI_FN(gni_gm_##F##_5_##N), GNI_FN(gni_gm_##F##_6_##N)    \
    }
#define GNI_GM_TILES8(F, N)                                                          \
    {                                                                                \
        NULL, GNI_FN(gni_gm_##F##_1_##N), GNI_FN(gni_gm_##F##_2_##N), NULL,          \
            GNI_FN(gni_gm_##F##_4_##N), NULL, NULL, NULL, GNI_FN(gni_gm_##F##_8_##N) \
    }
#define GNI_GM_TILES14(F, N)                                                                       \
    {                                                                                              \
        NULL, GNI_FN(gni_gm_##F##_1_##N), GNI_FN(gni_gm_##F##_2_##N), GNI_FN(gni_gm_##F##_3_##N),  \
            GNI_FN(gni_gm_##F##_4_##N), GNI_FN(gni_gm_##F##_5_##N), GNI_FN(gni_gm_##F##_6_##N),    \
            GNI_FN(gni_gm_##F##_7_##N), GNI_FN(gni_gm_##F##_8_##N), GNI_FN(gni_gm_##F##_9_##N),    \
            GNI_FN(gni_gm_##F##_10_##N), GNI_FN(gni_gm_##F##_11_##N), GNI_FN(gni_gm_##F##_12_##N), \
            GNI_FN(gni_gm_##F##_13_##N), GNI_FN(gni_gm_##F##_14_##N)                               \
    }
#define GNI_GM_JOIN_(a, b) a##b
#define GNI_GM_JOIN(a, b)  GNI_GM_JOIN_(a, b)
// A family's narrow and wide tiles, and the table NAME of it.
#define GNI_GM_FAMILY(NAME, KIND, F, most, lanes)                                                 \
    GNI_GM_JOIN(GNI_GM_MAKE, most)                                                                \
    (KIND, F, 1) GNI_GM_JOIN(GNI_GM_MAKE, most)(KIND, F, 2) static const gni_gemm_family NAME = { \
        most,                                                                                     \
        lanes,                                                                                    \
        false,                                                                                    \
        {GNI_GM_JOIN(GNI_GM_TILES, most)(F, 1), GNI_GM_JOIN(GNI_GM_TILES, most)(F, 2), {NULL}}};

// float32
#define GNI_GM_A_f32                 float
#define GNI_GM_T_f32                 float
#define GNI_GM_V_f32                 gni_vf
#define GNI_GM_LANES_f32             GNI_VW
#define GNI_GM_ZERO_f32              gni_vset(0)
#define GNI_GM_SET_f32(x)            gni_vset(x)
#define GNI_GM_FMA_f32(a, b, c)      gni_vfma(a, b, c)
#define GNI_GM_STORE_f32(p, v)       gni_vstore(p, v)
#define GNI_GM_GET_f32(p, i)         gni_vload((p) + i * GNI_VW)
#define GNI_GM_SUM_f32(F, R, N)      GNI_GM_SUM(F, R, N, GNI_GM_GET_f32)
#define GNI_GM_RELU_f32(v)           GNI_FN(gni_gm_relu)(v)
#define GNI_GM_BEGIN_f32(F, R, N)    GNI_GM_NOTHING(F, R, N)
#define GNI_GM_EDGE_f32(F, R, N)     GNI_GM_SPILL_EDGE(F, R, N)
#define GNI_GM_END_f32(F, R, N)      GNI_GM_STORE_ALL(F, R, N)
#define GNI_GM_EPILOGUE_f32(F, R, N) GNI_GM_BIAS_ACT(F, R, N)

// float32 whose edges are masked
#define GNI_GM_A_m32                 float
#define GNI_GM_T_m32                 float
#define GNI_GM_V_m32                 __m512
#define GNI_GM_LANES_m32             16
#define GNI_GM_ZERO_m32              _mm512_setzero_ps()
#define GNI_GM_SET_m32(x)            _mm512_set1_ps(x)
#define GNI_GM_FMA_m32(a, b, c)      _mm512_fmadd_ps(a, b, c)
#define GNI_GM_STORE_m32(p, v)       _mm512_storeu_ps(p, v)
#define GNI_GM_TAKE_m32(p, i)        _mm512_loadu_ps((p) + i * 16)
#define GNI_GM_SUM_m32(F, R, N)      GNI_GM_SUM_PARTS(F, R, N)
#define GNI_GM_GET_m32(p, i)         _mm512_maskz_loadu_ps(mask##i, (p) + i * 16)
#define GNI_GM_PUT_m32(p, i, v)      _mm512_mask_storeu_ps((p) + i * 16, mask##i, v)
#define GNI_GM_RELU_m32(v)           _mm512_maskz_max_ps(0xFFFF, _mm512_setzero_ps(), v) // keeps NaN
#define GNI_GM_MASKS1                mask0 = GNI_FN(gni_gm_mask)(t->cols)
#define GNI_GM_MASKS2                GNI_GM_MASKS1, mask1 = GNI_FN(gni_gm_mask)(t->cols - 16)
#define GNI_GM_BEGIN_m32(F, R, N)    const __mmask16 GNI_GM_MASKS##N
#define GNI_GM_EDGE_m32(F, R, N)     GNI_GM_NOTHING(F, R, N)
#define GNI_GM_END_m32(F, R, N)      GNI_GM_STORE_PARTS(F, R, N)
#define GNI_GM_EPILOGUE_m32(F, R, N) GNI_GM_BIAS_ACT(F, R, N)

// float32, 8 columns or less: half the cost on CPUs that take 512 bits in two steps
#define GNI_GM_A_h32                 float
#define GNI_GM_T_h32                 float
#define GNI_GM_V_h32                 __m256
#define GNI_GM_LANES_h32             8
#define GNI_GM_ZERO_h32              _mm256_setzero_ps()
#define GNI_GM_SET_h32(x)            _mm256_set1_ps(x)
#define GNI_GM_FMA_h32(a, b, c)      _mm256_fmadd_ps(a, b, c)
#define GNI_GM_STORE_h32(p, v)       _mm256_storeu_ps(p, v)
#define GNI_GM_TAKE_h32(p, i)        _mm256_loadu_ps(p)
#define GNI_GM_SUM_h32(F, R, N)      GNI_GM_SUM_PARTS(F, R, N)
#define GNI_GM_GET_h32(p, i)         _mm256_maskz_loadu_ps(mask, p)
#define GNI_GM_PUT_h32(p, i, v)      _mm256_mask_storeu_ps(p, mask, v)
#define GNI_GM_RELU_h32(v)           _mm256_max_ps(_mm256_setzero_ps(), v)
#define GNI_GM_BEGIN_h32(F, R, N)    const __mmask8 mask = (__mmask8)GNI_FN(gni_gm_mask)(t->cols)
#define GNI_GM_EDGE_h32(F, R, N)     GNI_GM_NOTHING(F, R, N)
#define GNI_GM_END_h32(F, R, N)      GNI_GM_STORE_PARTS(F, R, N)
#define GNI_GM_EPILOGUE_h32(F, R, N) GNI_GM_BIAS_ACT(F, R, N)

// bfloat16 in pairs, summed in float32
#define GNI_GM_A_b16                 uint32_t
#define GNI_GM_T_b16                 float
#define GNI_GM_V_b16                 __m512
#define GNI_GM_LANES_b16             16
#define GNI_GM_ZERO_b16              _mm512_setzero_ps()
#define GNI_GM_SET_b16(x)            _mm512_castsi512_ps(_mm512_set1_epi32((int)(x)))
#define GNI_GM_FMA_b16(a, b, c)      GNI_FN(gni_gm_pairs)(a, b, c)
#define GNI_GM_STORE_b16(p, v)       _mm512_storeu_ps(p, v)
#define GNI_GM_TAKE_b16(p, i)        _mm512_loadu_ps((p) + i * 16)
#define GNI_GM_SUM_b16(F, R, N)      GNI_GM_SUM(F, R, N, GNI_GM_TAKE_b16)
#define GNI_GM_GET_b16(p, i)         GNI_GM_GET_m32(p, i)
#define GNI_GM_PUT_b16(p, i, v)      GNI_GM_PUT_m32(p, i, v)
#define GNI_GM_RELU_b16(v)           GNI_GM_RELU_m32(v)
#define GNI_GM_BEGIN_b16(F, R, N)    GNI_GM_BEGIN_m32(F, R, N)
#define GNI_GM_EDGE_b16(F, R, N)     GNI_GM_NOTHING(F, R, N)
#define GNI_GM_END_b16(F, R, N)      GNI_GM_STORE_PARTS(F, R, N)
#define GNI_GM_EPILOGUE_b16(F, R, N) GNI_GM_BIAS_ACT(F, R, N)

// float64
#define GNI_GM_A_f64                 double
#define GNI_GM_T_f64                 double
#define GNI_GM_V_f64                 GNI_FN(gni_gm_vd)
#define GNI_GM_LANES_f64             (GNI_VW / 2)
#define GNI_GM_ZERO_f64              GNI_FN(gni_gm_setd)(0)
#define GNI_GM_SET_f64(x)            GNI_FN(gni_gm_setd)(x)
#define GNI_GM_FMA_f64(a, b, c)      GNI_FN(gni_gm_fmad)(a, b, c)
#define GNI_GM_LOAD_f64(p)           GNI_FN(gni_gm_loadd)(p)
#define GNI_GM_STORE_f64(p, v)       memcpy(p, &(v), sizeof(v))
#define GNI_GM_GET_f64(p, i)         GNI_GM_LOAD_f64((p) + i * GNI_GM_LANES_f64)
#define GNI_GM_SUM_f64(F, R, N)      GNI_GM_SUM(F, R, N, GNI_GM_GET_f64)
#define GNI_GM_BEGIN_f64(F, R, N)    GNI_GM_NOTHING(F, R, N)
#define GNI_GM_EDGE_f64(F, R, N)     GNI_GM_SPILL_EDGE(F, R, N)
#define GNI_GM_END_f64(F, R, N)      GNI_GM_STORE_ALL(F, R, N)
#define GNI_GM_EPILOGUE_f64(F, R, N) GNI_GM_NOTHING(F, R, N)

// int32 and int64, unsigned so that they wrap
#define GNI_GM_A_i32                 uint32_t
#define GNI_GM_T_i32                 uint32_t
#define GNI_GM_V_i32                 gni_vu
#define GNI_GM_LANES_i32             GNI_VW
#define GNI_GM_ZERO_i32              gni_vsetu(0)
#define GNI_GM_SET_i32(x)            gni_vsetu(x)
#define GNI_GM_FMA_i32(a, b, c)      ((a) * (b) + (c))
#define GNI_GM_STORE_i32(p, v)       gni_vstoreu(p, v)
#define GNI_GM_GET_i32(p, i)         gni_vloadu((p) + i * GNI_VW)
#define GNI_GM_SUM_i32(F, R, N)      GNI_GM_SUM(F, R, N, GNI_GM_GET_i32)
#define GNI_GM_BEGIN_i32(F, R, N)    GNI_GM_NOTHING(F, R, N)
#define GNI_GM_EDGE_i32(F, R, N)     GNI_GM_SPILL_EDGE(F, R, N)
#define GNI_GM_END_i32(F, R, N)      GNI_GM_STORE_ALL(F, R, N)
#define GNI_GM_EPILOGUE_i32(F, R, N) GNI_GM_NOTHING(F, R, N)

#define GNI_GM_A_i64                 uint64_t
#define GNI_GM_T_i64                 uint64_t
#define GNI_GM_V_i64                 GNI_FN(gni_gm_vl)
#define GNI_GM_LANES_i64             (GNI_VW / 2)
#define GNI_GM_ZERO_i64              GNI_FN(gni_gm_setl)(0)
#define GNI_GM_SET_i64(x)            GNI_FN(gni_gm_setl)(x)
#define GNI_GM_FMA_i64(a, b, c)      ((a) * (b) + (c))
#define GNI_GM_LOAD_i64(p)           GNI_FN(gni_gm_loadl)(p)
#define GNI_GM_STORE_i64(p, v)       memcpy(p, &(v), sizeof(v))
#define GNI_GM_GET_i64(p, i)         GNI_GM_LOAD_i64((p) + i * GNI_GM_LANES_i64)
#define GNI_GM_SUM_i64(F, R, N)      GNI_GM_SUM(F, R, N, GNI_GM_GET_i64)
#define GNI_GM_BEGIN_i64(F, R, N)    GNI_GM_NOTHING(F, R, N)
#define GNI_GM_EDGE_i64(F, R, N)     GNI_GM_SPILL_EDGE(F, R, N)
#define GNI_GM_END_i64(F, R, N)      GNI_GM_STORE_ALL(F, R, N)
#define GNI_GM_EPILOGUE_i64(F, R, N) GNI_GM_NOTHING(F, R, N)

// Stores `spill` (rows,width) where t says, clipped to its columns.
static void gni_gm_put_f32(const gni_gemm_tile *t, const float *spill, int rows, int width) {
    float *c = (float *)t->c;
    for (int i = 0; i < rows; i++, c += t->c_rs, spill += width) {
        for (int j = 0; j < t->cols; j++) {
            float v = t->add ? c[j] + spill[j] : spill[j];
            if (t->bias != NULL) v += t->bias[j];
            c[j] = t->act == 1 && v < 0 ? 0 : v;
        }
    }
}

#define GNI_GM_DEFINE_PUT(F)                                                                \
    static void gni_gm_put_##F(const gni_gemm_tile *t, const GNI_GM_T_##F *spill, int rows, \
                               int width) {                                                 \
        GNI_GM_T_##F *c = (GNI_GM_T_##F *)t->c;                                             \
        for (int i = 0; i < rows; i++, c += t->c_rs, spill += width) {                      \
            for (int j = 0; j < t->cols; j++) c[j] = t->add ? c[j] + spill[j] : spill[j];   \
        }                                                                                   \
    }
GNI_GM_DEFINE_PUT(f64)
GNI_GM_DEFINE_PUT(i32)
GNI_GM_DEFINE_PUT(i64)

static void gni_gm_put_turned_any(const gni_gemm_tile *t, const float *s, int64_t rows,
                                  int64_t cols, int64_t width) {
    float *c = (float *)t->c;
    for (int64_t j = 0; j < cols; j++, c += t->c_rs) {
        for (int64_t i = 0; i < rows; i++) {
            float v = s[i * width + j];
            if (t->add) v = c[i] + v;
            if (t->bias != NULL) v += t->bias[i];
            c[i] = t->act == 1 && v < 0 ? 0 : v;
        }
    }
}

// Four columns of row i from j, or as many as there are.
static void gni_gm_put_dots(const gni_gemm_dots *d, int64_t i, int64_t j, const float *total) {
    float *c = d->c + i * d->c_rs + j * d->c_cs;
    const int64_t n = GNI_MIN(d->n - j, 4);
    for (int64_t q = 0; q < n; q++, c += d->c_cs) {
        float v = d->add ? *c + total[q] : total[q];
        if (d->bias != NULL) v += d->bias[i * d->bias_rs + (j + q) * d->bias_cs];
        *c = d->act == 1 && v < 0 ? 0 : v;
    }
}

// Packing for any strides.
#define GNI_GM_DEFINE_PACK(TYPE, D, S, CONVERT)                                            \
    static void gni_gm_pack_any_##TYPE(void *dst, int64_t dw, const void *src, int64_t is, \
                                       int64_t ps, int64_t w, int64_t k) {                 \
        D *d = (D *)dst;                                                                   \
        const S *s = (const S *)src;                                                       \
        for (int64_t p = 0; p < k; p++, d += dw, s += ps) {                                \
            for (int64_t i = 0; i < w; i++) d[i] = CONVERT(s[i * is]);                     \
            for (int64_t i = w; i < dw; i++) d[i] = 0;                                     \
        }                                                                                  \
    }
#define GNI_GM_SAME(x) (x)
GNI_GM_DEFINE_PACK(f32, float, float, GNI_GM_SAME)
GNI_GM_DEFINE_PACK(f16, float, uint16_t, gni_f16_to_f32)
GNI_GM_DEFINE_PACK(bf16, float, uint16_t, gni_bf16_to_f32)
GNI_GM_DEFINE_PACK(64, uint64_t, uint64_t, GNI_GM_SAME)

#endif // GNI_GEMM_TYPES

#if defined(GNI_PASS_PLAIN)

GNI_GM_FAMILY(GNI_FN(gni_gm_family_f32), PLAIN, f32, 4, 4)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_f64), PLAIN, f64, 4, 4)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_i32), PLAIN, i32, 4, 4)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_i64), PLAIN, i64, 4, 4)

static void GNI_FN(gni_gm_dots)(const gni_gemm_dots *d) {
    for (int64_t i = 0; i < d->m; i++) {
        for (int64_t j = 0; j < d->n; j += 4) {
            float total[4] = {0};
            for (int64_t q = 0; q < GNI_MIN(d->n - j, 4); q++) {
                const float *a = d->a + i * d->a_rs, *b = d->b + (j + q) * d->b_cs;
                float sum[8] = {0};
                int64_t p = 0;
                for (; p + 8 <= d->k; p += 8) {
                    for (int l = 0; l < 8; l++) sum[l] += a[p + l] * b[p + l];
                }
                for (; p < d->k; p++) sum[p & 7] += a[p] * b[p];
                for (int l = 0; l < 4; l++) sum[l] += sum[l + 4];
                total[q] = (sum[0] + sum[2]) + (sum[1] + sum[3]);
            }
            gni_gm_put_dots(d, i, j, total);
        }
    }
}

static void GNI_FN(gni_gm_add_rows)(const gni_gemm_rows *d) {
    for (int64_t p = 0; p < d->k; p++) {
        const float x = d->s[p * d->s_stride], *b = d->b + p * d->b_rs;
        for (int64_t j = 0; j < d->n; j++) d->y[j] += x * b[j];
    }
}

#else // a pass with vectors

// Vectors of double (vd) and of uint64 (vl).
typedef double GNI_FN(gni_gm_vd) __attribute__((vector_size(GNI_VW * 4)));
typedef uint64_t GNI_FN(gni_gm_vl) __attribute__((vector_size(GNI_VW * 4)));

GNI_INLINE GNI_FN(gni_gm_vd) GNI_FN(gni_gm_loadd)(const double *p) {
    GNI_FN(gni_gm_vd) v;
    memcpy(&v, p, sizeof v);
    return v;
}
GNI_INLINE GNI_FN(gni_gm_vl) GNI_FN(gni_gm_loadl)(const uint64_t *p) {
    GNI_FN(gni_gm_vl) v;
    memcpy(&v, p, sizeof v);
    return v;
}
GNI_INLINE GNI_FN(gni_gm_vd) GNI_FN(gni_gm_setd)(double x) {
#if defined(GNI_PASS_AVX512)
    return (GNI_FN(gni_gm_vd))_mm512_set1_pd(x);
#elif GNI_VW == 8
    GNI_FN(gni_gm_vd) v = {x, x, x, x};
    return v;
#else
    GNI_FN(gni_gm_vd) v = {x, x};
    return v;
#endif
}
GNI_INLINE GNI_FN(gni_gm_vl) GNI_FN(gni_gm_setl)(uint64_t x) {
    GNI_FN(gni_gm_vl) v = {0};
    return v + x;
}
GNI_INLINE GNI_FN(gni_gm_vd)
    GNI_FN(gni_gm_fmad)(GNI_FN(gni_gm_vd) a, GNI_FN(gni_gm_vd) b, GNI_FN(gni_gm_vd) c) {
#if defined(GNI_PASS_AVX512)
    return (GNI_FN(gni_gm_vd))_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(GNI_PASS_AVX2)
    return (GNI_FN(gni_gm_vd))_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif GNI_V_NEON
    return (GNI_FN(gni_gm_vd))vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    return a * b + c;
#endif
}
// NaN stays.
GNI_INLINE gni_vf GNI_FN(gni_gm_relu)(gni_vf v) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)GNI_GM_RELU_m32((__m512)v);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_max_ps(_mm256_setzero_ps(), (__m256)v);
#else
    return gni_vi_float(gni_vf_bits(v) & ~(gni_vi)(v < 0));
#endif
}

#if defined(GNI_PASS_AVX512)
GNI_INLINE __mmask16 GNI_FN(gni_gm_mask)(int64_t n) {
    return (__mmask16)(n >= 16 ? 0xFFFF : n <= 0 ? 0 : (1 << n) - 1);
}

// c + a * b for the upper half of each pair, then for the lower one, each rounded once. Written so
// because not every compiler that makes AVX-512 has a name for it.
GNI_INLINE __m512 GNI_FN(gni_gm_pairs)(__m512 a, __m512 b, __m512 c) {
    __asm__("{vdpbf16ps %2, %1, %0|vdpbf16ps %0, %1, %2}" : "+v"(c) : "v"(a), "v"(b));
    return c;
}

GNI_GM_MAKE14(VECTOR, m32, 1)
GNI_GM_MAKE14(VECTOR, m32, 2)
GNI_GM_MAKE14(VECTOR, h32, 1)
static const gni_gemm_family GNI_FN(gni_gm_family_f32) = {
    14, 16, true, {GNI_GM_TILES14(m32, 1), GNI_GM_TILES14(m32, 2), GNI_GM_TILES14(h32, 1)}};
GNI_GM_FAMILY(GNI_FN(gni_gm_family_bf16), VECTOR, b16, 8, 16)
#define GNI_GM_MOST 8
#elif defined(__aarch64__)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_f32), VECTOR, f32, 8, GNI_VW)
#define GNI_GM_MOST 8
#else
GNI_GM_FAMILY(GNI_FN(gni_gm_family_f32), VECTOR, f32, 6, GNI_VW)
#define GNI_GM_MOST 4
#endif
GNI_GM_FAMILY(GNI_FN(gni_gm_family_f64), VECTOR, f64, GNI_GM_MOST, (GNI_VW / 2))
GNI_GM_FAMILY(GNI_FN(gni_gm_family_i32), VECTOR, i32, GNI_GM_MOST, GNI_VW)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_i64), VECTOR, i64, GNI_GM_MOST, (GNI_VW / 2))
#undef GNI_GM_MOST

// n lanes from p, zero in the others; reads nothing past them.
GNI_INLINE gni_vf GNI_FN(gni_gm_part_f32)(const float *p, int64_t n) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_maskz_loadu_ps(GNI_FN(gni_gm_mask)(n), p);
#else
    if (n >= GNI_VW) return gni_vload(p);
    float part[GNI_VW] = {0};
    for (int64_t i = 0; i < n; i++) part[i] = p[i];
    return gni_vload(part);
#endif
}
GNI_INLINE void GNI_FN(gni_gm_put_part)(float *p, gni_vf v, int64_t n) {
#if defined(GNI_PASS_AVX512)
    _mm512_mask_storeu_ps(p, GNI_FN(gni_gm_mask)(n), (__m512)v);
#else
    if (n >= GNI_VW) {
        gni_vstore(p, v);
        return;
    }
    float part[GNI_VW];
    gni_vstore(part, v);
    for (int64_t i = 0; i < n; i++) p[i] = part[i];
#endif
}
#if defined(GNI_PASS_AVX512)
// Masked forms: the plain ones make gcc 12 warn in C++ about its own header.
GNI_INLINE gni_vf GNI_FN(gni_gm_part_f16)(const uint16_t *p, int64_t n) {
    return (gni_vf)_mm512_maskz_cvtph_ps(0xFFFF,
                                         _mm256_maskz_loadu_epi16(GNI_FN(gni_gm_mask)(n), p));
}
GNI_INLINE gni_vf GNI_FN(gni_gm_part_bf16)(const uint16_t *p, int64_t n) {
    __m256i h = _mm256_maskz_loadu_epi16(GNI_FN(gni_gm_mask)(n), p);
    __m512i u = _mm512_maskz_cvtepu16_epi32(0xFFFF, h);
    return (gni_vf)_mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xFFFF, u, 16));
}
#elif defined(GNI_PASS_AVX2)
GNI_INLINE __m128i GNI_FN(gni_gm_part_16)(const uint16_t *p, int64_t n) {
    uint16_t part[8] = {0};
    if (n < 8) {
        for (int64_t i = 0; i < n; i++) part[i] = p[i];
        p = part;
    }
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}
GNI_INLINE gni_vf GNI_FN(gni_gm_part_f16)(const uint16_t *p, int64_t n) {
    return (gni_vf)_mm256_cvtph_ps(GNI_FN(gni_gm_part_16)(p, n));
}
GNI_INLINE gni_vf GNI_FN(gni_gm_part_bf16)(const uint16_t *p, int64_t n) {
    __m256i u = _mm256_cvtepu16_epi32(GNI_FN(gni_gm_part_16)(p, n));
    return (gni_vf)_mm256_castsi256_ps(_mm256_slli_epi32(u, 16));
}
#endif

// The totals of four vectors.
GNI_INLINE void GNI_FN(gni_gm_totals)(float *to, gni_vf v0, gni_vf v1, gni_vf v2, gni_vf v3) {
#if defined(GNI_PASS_AVX512) || defined(GNI_PASS_AVX2)
#if defined(GNI_PASS_AVX512)
#define GNI_GM_FOLD(v)                                    \
    (_mm512_maskz_extractf32x8_ps(0xFF, (__m512)(v), 0) + \
     _mm512_maskz_extractf32x8_ps(0xFF, (__m512)(v), 1))
#else
#define GNI_GM_FOLD(v) ((__m256)(v))
#endif
    __m256 h01 = _mm256_hadd_ps(GNI_GM_FOLD(v0), GNI_GM_FOLD(v1));
    __m256 h23 = _mm256_hadd_ps(GNI_GM_FOLD(v2), GNI_GM_FOLD(v3));
    h01 = _mm256_hadd_ps(h01, h23);
    _mm_storeu_ps(to, _mm256_extractf128_ps(h01, 0) + _mm256_extractf128_ps(h01, 1));
#undef GNI_GM_FOLD
#else
    float part[4][GNI_VW];
    gni_vstore(part[0], v0);
    gni_vstore(part[1], v1);
    gni_vstore(part[2], v2);
    gni_vstore(part[3], v3);
    for (int i = 0; i < 4; i++) to[i] = (part[i][0] + part[i][1]) + (part[i][2] + part[i][3]);
#endif
}

// R rows of a against four columns of b (the last one again where there are fewer).
#define GNI_GM_DOT_ZERO(F, r, q, s) \
    gni_vf c##r##_0 = gni_vset(0), c##r##_1 = c##r##_0, c##r##_2 = c##r##_0, c##r##_3 = c##r##_0;
#define GNI_GM_DOT_STEP(LOAD, r, q, s)    \
    x = LOAD(a + r * a_rs + p, k - p);    \
    c##r##_0 = gni_vfma(x, y0, c##r##_0); \
    c##r##_1 = gni_vfma(x, y1, c##r##_1); \
    c##r##_2 = gni_vfma(x, y2, c##r##_2); \
    c##r##_3 = gni_vfma(x, y3, c##r##_3);
#define GNI_GM_DOT_STEPS(LOAD, R)                       \
    y0 = LOAD(b0 + p, k - p), y1 = LOAD(b1 + p, k - p); \
    y2 = LOAD(b2 + p, k - p), y3 = LOAD(b3 + p, k - p); \
    GNI_GM_R##R(GNI_GM_DOT_STEP, LOAD);
#define GNI_GM_DOT_PUT(F, r, q, s)                                        \
    GNI_FN(gni_gm_totals)(total, c##r##_0, c##r##_1, c##r##_2, c##r##_3); \
    gni_gm_put_dots(d, i + r, j, total);
#define GNI_GM_WHOLE(p, n) gni_vload(p)
#define GNI_GM_DOT(R)                                                                  \
    static void GNI_FN(gni_gm_dot_##R)(const gni_gemm_dots *d, int64_t i, int64_t j) { \
        const int64_t n = d->n - j, k = d->k, a_rs = d->a_rs;                          \
        const float *a = d->a + i * a_rs, *b0 = d->b + j * d->b_cs;                    \
        const float *b1 = n > 1 ? b0 + d->b_cs : b0, *b2 = n > 2 ? b1 + d->b_cs : b1;  \
        const float *b3 = n > 3 ? b2 + d->b_cs : b2;                                   \
        gni_vf x, y0, y1, y2, y3;                                                      \
        GNI_GM_R##R(GNI_GM_DOT_ZERO, f32);                                             \
        int64_t p = 0;                                                                 \
        for (; p + GNI_VW <= k; p += GNI_VW) {                                         \
            GNI_GM_DOT_STEPS(GNI_GM_WHOLE, R)                                          \
        }                                                                              \
        if (p < k) {                                                                   \
            GNI_GM_DOT_STEPS(GNI_FN(gni_gm_part_f32), R)                               \
        }                                                                              \
        float total[4];                                                                \
        GNI_GM_R##R(GNI_GM_DOT_PUT, f32);                                              \
    }
GNI_GM_DOT(1)
GNI_GM_DOT(2)
GNI_GM_DOT(4)
#undef GNI_GM_DOT
#undef GNI_GM_DOT_ZERO
#undef GNI_GM_DOT_STEP
#undef GNI_GM_DOT_STEPS
#undef GNI_GM_DOT_PUT
#undef GNI_GM_WHOLE

static void GNI_FN(gni_gm_dots)(const gni_gemm_dots *d) {
    for (int64_t j = 0; j < d->n; j += 4) {
        int64_t i = 0;
        for (; i + 4 <= d->m; i += 4) GNI_FN(gni_gm_dot_4)(d, i, j);
        for (; i + 2 <= d->m; i += 2) GNI_FN(gni_gm_dot_2)(d, i, j);
        for (; i < d->m; i++) GNI_FN(gni_gm_dot_1)(d, i, j);
    }
}

// y (n) += x (8) b (8,n).
static void GNI_FN(gni_gm_add_8_rows)(float *y, const float *s, int64_t s_stride, const float *b,
                                      int64_t rs, int64_t n) {
    gni_vf x[8];
    for (int i = 0; i < 8; i++) x[i] = gni_vset(s[i * s_stride]);
    int64_t j = 0;
    for (; j + GNI_VW <= n; j += GNI_VW, b += GNI_VW) {
        gni_vf v = gni_vload(y + j);
        v = gni_vfma(x[0], gni_vload(b), v);
        v = gni_vfma(x[1], gni_vload(b + rs), v);
        v = gni_vfma(x[2], gni_vload(b + 2 * rs), v);
        v = gni_vfma(x[3], gni_vload(b + 3 * rs), v);
        v = gni_vfma(x[4], gni_vload(b + 4 * rs), v);
        v = gni_vfma(x[5], gni_vload(b + 5 * rs), v);
        v = gni_vfma(x[6], gni_vload(b + 6 * rs), v);
        v = gni_vfma(x[7], gni_vload(b + 7 * rs), v);
        gni_vstore(y + j, v);
    }
    if (j == n) return;
    gni_vf v = GNI_FN(gni_gm_part_f32)(y + j, n - j);
    for (int i = 0; i < 8; i++) v = gni_vfma(x[i], GNI_FN(gni_gm_part_f32)(b + i * rs, n - j), v);
    GNI_FN(gni_gm_put_part)(y + j, v, n - j);
}

// Over pieces of y that stay in the first cache.
static void GNI_FN(gni_gm_add_rows)(const gni_gemm_rows *d) {
    const int64_t piece = 2048;
    for (int64_t j0 = 0; j0 < d->n; j0 += piece) {
        const int64_t n = GNI_MIN(d->n - j0, piece);
        float *y = d->y + j0;
        const float *b = d->b + j0, *s = d->s;
        int64_t p = 0;
        for (; p + 8 <= d->k; p += 8, b += 8 * d->b_rs, s += 8 * d->s_stride)
            GNI_FN(gni_gm_add_8_rows)(y, s, d->s_stride, b, d->b_rs, n);
        for (; p < d->k; p++, b += d->b_rs, s += d->s_stride) {
            const gni_vf x = gni_vset(*s);
            for (int64_t j = 0; j < n; j += GNI_VW) {
                gni_vf v = GNI_FN(gni_gm_part_f32)(y + j, n - j);
                v = gni_vfma(x, GNI_FN(gni_gm_part_f32)(b + j, n - j), v);
                GNI_FN(gni_gm_put_part)(y + j, v, n - j);
            }
        }
    }
}
#endif // GNI_PASS_PLAIN

#if defined(GNI_PASS_AVX512) || defined(GNI_PASS_AVX2)
// A square of r[0] to r[GNI_VW - 1], turned.
#if defined(GNI_PASS_AVX512)
GNI_INLINE void GNI_FN(gni_gm_turn)(gni_vf *v) {
    __m512 t[16], r[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_maskz_unpacklo_ps(0xFFFF, (__m512)v[i], (__m512)v[i + 1]);
        t[i + 1] = _mm512_maskz_unpackhi_ps(0xFFFF, (__m512)v[i], (__m512)v[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        __m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]);
        __m512d c = _mm512_castps_pd(t[i + 2]), e = _mm512_castps_pd(t[i + 3]);
        r[i] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xFF, a, c));
        r[i + 1] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xFF, a, c));
        r[i + 2] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xFF, b, e));
        r[i + 3] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xFF, b, e));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_maskz_shuffle_f32x4(0xFFFF, r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_maskz_shuffle_f32x4(0xFFFF, r[i], r[i + 4], 0xDD);
        t[i + 8] = _mm512_maskz_shuffle_f32x4(0xFFFF, r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_maskz_shuffle_f32x4(0xFFFF, r[i + 8], r[i + 12], 0xDD);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = (gni_vf)_mm512_maskz_shuffle_f32x4(0xFFFF, t[i], t[i + 8], 0x88);
        v[i + 4] = (gni_vf)_mm512_maskz_shuffle_f32x4(0xFFFF, t[i + 4], t[i + 12], 0x88);
        v[i + 8] = (gni_vf)_mm512_maskz_shuffle_f32x4(0xFFFF, t[i], t[i + 8], 0xDD);
        v[i + 12] = (gni_vf)_mm512_maskz_shuffle_f32x4(0xFFFF, t[i + 4], t[i + 12], 0xDD);
    }
}
#else
GNI_INLINE void GNI_FN(gni_gm_turn)(gni_vf *v) {
    __m256 t[8], u[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps((__m256)v[i], (__m256)v[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps((__m256)v[i], (__m256)v[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = (gni_vf)_mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        v[i + 4] = (gni_vf)_mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}
#endif

// Loads a square of rows i0 and on from column p, turns it and stores it in d.
#define GNI_GM_TURN_SQUARE(LOAD)                                       \
    gni_vf r[GNI_VW];                                                  \
    _Pragma("GCC unroll 16") for (int i = 0; i < GNI_VW; i++) r[i] =   \
        i0 + i < w ? LOAD(s + (i0 + i) * is + p, k - p) : gni_vset(0); \
    GNI_FN(gni_gm_turn)(r);

#define GNI_GM_VECTOR_PACK(TYPE, S)                                                            \
    static void GNI_FN(gni_gm_turn_##TYPE)(float *d, int64_t dw, const S *s, int64_t is,       \
                                           int64_t w, int64_t k) {                             \
        for (int64_t i0 = 0; i0 < dw; i0 += GNI_VW) {                                          \
            const int64_t width = i0 == 0 ? GNI_VW : dw - i0;                                  \
            for (int64_t p = 0; p < k; p += GNI_VW) {                                          \
                GNI_GM_TURN_SQUARE(GNI_FN(gni_gm_part_##TYPE))                                 \
                float *to = d + p * dw + i0;                                                   \
                for (int i = 0; i < GNI_VW && i < k - p; i++)                                  \
                    GNI_FN(gni_gm_put_part)(to + i * dw, r[i], width);                         \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    static void GNI_FN(gni_gm_pack_##TYPE)(void *dst, int64_t dw, const void *src, int64_t is, \
                                           int64_t ps, int64_t w, int64_t k) {                 \
        float *d = (float *)dst;                                                               \
        const S *s = (const S *)src;                                                           \
        if (is == 1) {                                                                         \
            for (int64_t p = 0; p < k; p++, d += dw, s += ps) {                                \
                gni_vstore(d, GNI_FN(gni_gm_part_##TYPE)(s, w));                               \
                for (int64_t i = GNI_VW; i < dw; i += GNI_VW) GNI_FN(gni_gm_put_part)          \
                (d + i, GNI_FN(gni_gm_part_##TYPE)(s + i, w - i), dw - i);                     \
            }                                                                                  \
        } else if (ps == 1) {                                                                  \
            GNI_FN(gni_gm_turn_##TYPE)(d, dw, s, is, w, k);                                    \
        } else {                                                                               \
            gni_gm_pack_any_##TYPE(dst, dw, src, is, ps, w, k);                                \
        }                                                                                      \
    }
GNI_GM_VECTOR_PACK(f32, float)
GNI_GM_VECTOR_PACK(f16, uint16_t)
GNI_GM_VECTOR_PACK(bf16, uint16_t)

static void GNI_FN(gni_gm_put_turned)(const gni_gemm_tile *t, const float *s, int64_t rows,
                                      int64_t cols, int64_t width) {
    for (int64_t i0 = 0; i0 < rows; i0 += GNI_VW) {
        const gni_vf bias =
            t->bias == NULL ? gni_vset(-0.0f) : GNI_FN(gni_gm_part_f32)(t->bias + i0, rows - i0);
        for (int64_t p = 0; p < cols; p += GNI_VW) {
            const int64_t w = rows, is = width, k = cols;
            GNI_GM_TURN_SQUARE(GNI_FN(gni_gm_part_f32))
            float *c = (float *)t->c + p * t->c_rs + i0;
            for (int q = 0; q < GNI_VW && p + q < cols; q++, c += t->c_rs) {
                gni_vf v = r[q];
                if (t->add) v = GNI_FN(gni_gm_part_f32)(c, rows - i0) + v;
                v = v + bias;
                if (t->act == 1) v = GNI_FN(gni_gm_relu)(v);
                GNI_FN(gni_gm_put_part)(c, v, rows - i0);
            }
        }
    }
}
#define GNI_GM_PACK(TYPE) GNI_FN(gni_gm_pack_##TYPE)
#define GNI_GM_PUT_TURNED GNI_FN(gni_gm_put_turned)
#else
#define GNI_GM_PACK(TYPE) gni_gm_pack_any_##TYPE
#define GNI_GM_PUT_TURNED gni_gm_put_turned_any
#endif

#if defined(GNI_PASS_AVX512)
// Pairs of neighbours along p, the first in the upper half (it is the one multiplied first); n of them are
// halves, an odd last one is paired with zero.
GNI_INLINE gni_vf GNI_FN(gni_gm_part_pairs)(const uint16_t *p, int64_t n) {
    const __mmask32 mask = n >= 32 ? 0xFFFFFFFFu : n <= 0 ? 0 : (1u << n) - 1u;
    __m512i v = _mm512_maskz_loadu_epi16(mask, p);
    return (gni_vf)_mm512_castsi512_ps(_mm512_maskz_rol_epi32(0xFFFF, v, 16));
}

// Two rows as pairs.
GNI_INLINE gni_vf GNI_FN(gni_gm_zip_pairs)(const uint16_t *first, const uint16_t *second,
                                           int64_t n) {
    const __mmask16 mask = GNI_FN(gni_gm_mask)(n), next = second != NULL ? mask : 0;
    __m512i x = _mm512_maskz_cvtepu16_epi32(0xFFFF, _mm256_maskz_loadu_epi16(mask, first));
    __m512i y = _mm512_maskz_cvtepu16_epi32(
        0xFFFF, _mm256_maskz_loadu_epi16(next, next != 0 ? second : first));
    return (gni_vf)_mm512_castsi512_ps(_mm512_or_si512(_mm512_maskz_slli_epi32(0xFFFF, x, 16), y));
}

static void GNI_FN(gni_gm_pack_pairs)(void *dst, int64_t dw, const void *src, int64_t is,
                                      int64_t ps, int64_t w, int64_t k) {
    const uint16_t *s = (const uint16_t *)src;
    if (ps == 1 && is != 1) {
        for (int64_t i0 = 0; i0 < dw; i0 += 16) {
            float *to = (float *)dst + i0;
            for (int64_t p = 0; p < k; p += 32) {
                GNI_GM_TURN_SQUARE(GNI_FN(gni_gm_part_pairs))
                for (int i = 0; i < 16 && 2 * i < k - p; i++, to += dw)
                    GNI_FN(gni_gm_put_part)(to, r[i], i0 == 0 ? 16 : dw - i0);
            }
        }
        return;
    }
    for (int64_t p = 0; p < k; p += 2, s += 2 * ps) {
        float *to = (float *)dst + p / 2 * dw;
        const uint16_t *next = p + 1 < k ? s + ps : NULL;
        if (is == 1) {
            gni_vstore(to, GNI_FN(gni_gm_zip_pairs)(s, next, w));
            if (dw > 16) GNI_FN(gni_gm_put_part)
            (to + 16, GNI_FN(gni_gm_zip_pairs)(s + 16, next == NULL ? next : next + 16, w - 16),
             dw - 16);
            continue;
        }
        for (int64_t i = 0; i < dw; i++) {
            uint32_t pair = 0;
            if (i < w) pair = (uint32_t)s[i * is] << 16 | (next != NULL ? next[i * is] : 0u);
            memcpy(to + i, &pair, sizeof pair);
        }
    }
}
#define GNI_GM_PAIRS      &GNI_FN(gni_gm_family_bf16)
#define GNI_GM_PACK_PAIRS GNI_FN(gni_gm_pack_pairs)
#else
#define GNI_GM_PAIRS      NULL
#define GNI_GM_PACK_PAIRS NULL
#endif

static const gni_gemm_isa GNI_FN(gni_gemm_isa) = {&GNI_FN(gni_gm_family_f32),
                                                  &GNI_FN(gni_gm_family_f64),
                                                  &GNI_FN(gni_gm_family_i32),
                                                  &GNI_FN(gni_gm_family_i64),
                                                  GNI_GM_PAIRS,
                                                  GNI_GM_PACK(f32),
                                                  GNI_GM_PACK(f16),
                                                  GNI_GM_PACK(bf16),
                                                  gni_gm_pack_any_64,
                                                  GNI_GM_PACK_PAIRS,
                                                  GNI_FN(gni_gm_dots),
                                                  GNI_FN(gni_gm_add_rows),
                                                  GNI_GM_PUT_TURNED};
#undef GNI_GM_PAIRS
#undef GNI_GM_PACK_PAIRS
#undef GNI_GM_PACK
#undef GNI_GM_PUT_TURNED
#undef GNI_GM_TURN_SQUARE
#undef GNI_GM_VECTOR_PACK
#endif // GNI_SIMD_PASS
#ifdef GNI_FFT_PASS
// ------------------------------------------------------------------------------------------
// >>fft_micro
// Butterflies and passes of the FFT, once per instruction set and precision (GNI_FT_T, GNI_FT_W lanes).
// Compiled by room `fft cpu`, which also holds the types; from outside: the table GNI_FT(gni_ft_isa).
//
// A row is one complex vector: W real parts, then W imaginary parts. W transforms run side by side,
// one per lane; between the passes nothing is shuffled. Stockham's order: a pass of radix r reads rows
// k + s (j + m q), q < r, and writes rows k + s (r j + q), turned by exp(-2 pi i j q / (r m)).

#if GNI_FT_W == 1
typedef GNI_FT_T GNI_FT(gni_ft_v);
#else
typedef GNI_FT_T GNI_FT(gni_ft_v) __attribute__((vector_size(GNI_FT_W * sizeof(GNI_FT_T))));
typedef GNI_FT_I GNI_FT(gni_ft_vi) __attribute__((vector_size(GNI_FT_W * sizeof(GNI_FT_T))));
#endif
typedef struct GNI_FT(gni_ft_c) {
    GNI_FT(gni_ft_v) r, i;
} GNI_FT(gni_ft_c);

#define gni_fv GNI_FT(gni_ft_v)
#define gni_fvi GNI_FT(gni_ft_vi)
#define gni_fc GNI_FT(gni_ft_c)
#define gni_fload GNI_FT(gni_ft_load)
#define gni_fstore GNI_FT(gni_ft_store)
#define gni_fset GNI_FT(gni_ft_set)
#define gni_ffma GNI_FT(gni_ft_fma)
#define gni_ffnma GNI_FT(gni_ft_fnma)
#define gni_fadd GNI_FT(gni_ft_add)
#define gni_fsub GNI_FT(gni_ft_sub)
#define gni_fmul GNI_FT(gni_ft_mul)
#define gni_fmadd GNI_FT(gni_ft_madd)
#define gni_fpair GNI_FT(gni_ft_pair)
#define gni_fturn GNI_FT(gni_ft_turn)
#define gni_fcmul GNI_FT(gni_ft_cmul)
#define gni_fbf2 GNI_FT(gni_ft_bf2)
#define gni_fbf3 GNI_FT(gni_ft_bf3)
#define gni_fbf4 GNI_FT(gni_ft_bf4)
#define gni_fbf5 GNI_FT(gni_ft_bf5)
#define gni_fbf7 GNI_FT(gni_ft_bf7)
#define gni_fbf8 GNI_FT(gni_ft_bf8)
#define gni_fbf9 GNI_FT(gni_ft_bf9)
#define gni_fbf11 GNI_FT(gni_ft_bf11)
#define gni_fbf13 GNI_FT(gni_ft_bf13)
#define gni_fbf16 GNI_FT(gni_ft_bf16)
#define gni_feven GNI_FT(gni_ft_even)
#define gni_fodd GNI_FT(gni_ft_odd)
#define gni_flow GNI_FT(gni_ft_low)
#define gni_fhigh GNI_FT(gni_ft_high)
#define gni_freverse GNI_FT(gni_ft_reverse)
#define gni_fget GNI_FT(gni_ft_get)
#define gni_fput GNI_FT(gni_ft_put)
#define gni_ftranspose GNI_FT(gni_ft_transpose)

GNI_FT_INLINE gni_fv gni_fload(const GNI_FT_T *p) {
    gni_fv r;
    memcpy(&r, p, sizeof r);
    return r;
}
GNI_FT_INLINE void gni_fstore(GNI_FT_T *p, gni_fv v) { memcpy(p, &v, sizeof v); }

#if GNI_FT_W == 1
GNI_FT_INLINE gni_fv gni_fset(GNI_FT_T s) { return s; }
#else
GNI_FT_INLINE gni_fv gni_fset(GNI_FT_T s) {
#if GNI_FT_W == 2
    gni_fv r = {s, s};
#elif GNI_FT_W == 4
    gni_fv r = {s, s, s, s};
#elif GNI_FT_W == 8
    gni_fv r = {s, s, s, s, s, s, s, s};
#else
    gni_fv r = {s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s};
#endif
    return r;
}
#endif

// a b + c and c - a b, rounded once where the hardware can.
GNI_FT_INLINE gni_fv gni_ffma(gni_fv a, gni_fv b, gni_fv c) { return GNI_FT_FMA(a, b, c); }
GNI_FT_INLINE gni_fv gni_ffnma(gni_fv a, gni_fv b, gni_fv c) { return GNI_FT_FNMA(a, b, c); }

// ---- complex vectors

GNI_FT_INLINE gni_fc gni_fadd(gni_fc a, gni_fc b) {
    a.r = a.r + b.r;
    a.i = a.i + b.i;
    return a;
}
GNI_FT_INLINE gni_fc gni_fsub(gni_fc a, gni_fc b) {
    a.r = a.r - b.r;
    a.i = a.i - b.i;
    return a;
}
GNI_FT_INLINE gni_fc gni_fmul(double s, gni_fc a) {
    a.r = a.r * gni_fset((GNI_FT_T)s);
    a.i = a.i * gni_fset((GNI_FT_T)s);
    return a;
}
GNI_FT_INLINE gni_fc gni_fmadd(double s, gni_fc a, gni_fc b) { // s a + b
    b.r = gni_ffma(gni_fset((GNI_FT_T)s), a.r, b.r);
    b.i = gni_ffma(gni_fset((GNI_FT_T)s), a.i, b.i);
    return b;
}
// x = a - i b, y = a + i b
GNI_FT_INLINE void gni_fpair(gni_fc a, gni_fc b, gni_fc *x, gni_fc *y) {
    x->r = a.r + b.i;
    x->i = a.i - b.r;
    y->r = a.r - b.i;
    y->i = a.i + b.r;
}
GNI_FT_INLINE gni_fc gni_fcmul(gni_fc a, gni_fv wr, gni_fv wi) {
    gni_fc y;
    y.r = gni_ffnma(a.i, wi, a.r * wr);
    y.i = gni_ffma(a.i, wr, a.r * wi);
    return y;
}
GNI_FT_INLINE gni_fc gni_fturn(gni_fc a, double c, double s) { // a (c - i s)
    gni_fc y;
    y.r = gni_ffma(gni_fset((GNI_FT_T)s), a.i, gni_fset((GNI_FT_T)c) * a.r);
    y.i = gni_ffnma(gni_fset((GNI_FT_T)s), a.r, gni_fset((GNI_FT_T)c) * a.i);
    return y;
}

// ---- butterflies: x becomes its DFT. Equal inputs give exact zeros.

GNI_FT_INLINE void gni_fbf2(gni_fc *x) {
    gni_fc a = x[0];
    x[0] = gni_fadd(a, x[1]);
    x[1] = gni_fsub(a, x[1]);
}

GNI_FT_INLINE void gni_fbf3(gni_fc *x) {
    gni_fc t = gni_fadd(x[1], x[2]), d = gni_fmul(GNI_FT_S3, gni_fsub(x[1], x[2]));
    gni_fc a = gni_fmadd(-0.5, t, x[0]);
    x[0] = gni_fadd(x[0], t);
    gni_fpair(a, d, &x[1], &x[2]);
}

GNI_FT_INLINE void gni_fbf4(gni_fc *x) {
    gni_fc a = gni_fadd(x[0], x[2]), b = gni_fsub(x[0], x[2]);
    gni_fc c = gni_fadd(x[1], x[3]), d = gni_fsub(x[1], x[3]);
    x[0] = gni_fadd(a, c);
    x[2] = gni_fsub(a, c);
    gni_fpair(b, d, &x[1], &x[3]);
}

GNI_FT_INLINE void gni_fbf5(gni_fc *x) {
    gni_fc t1 = gni_fadd(x[1], x[4]), d1 = gni_fsub(x[1], x[4]);
    gni_fc t2 = gni_fadd(x[2], x[3]), d2 = gni_fsub(x[2], x[3]);
    gni_fc t = gni_fadd(t1, t2), u = gni_fsub(t1, t2), m = gni_fmadd(-0.25, t, x[0]);
    gni_fc b1 = gni_fmadd(GNI_FT_S5_2, d2, gni_fmul(GNI_FT_S5_1, d1));
    gni_fc b2 = gni_fmadd(-GNI_FT_S5_1, d2, gni_fmul(GNI_FT_S5_2, d1));
    x[0] = gni_fadd(x[0], t);
    gni_fpair(gni_fmadd(GNI_FT_SQRT5_4, u, m), b1, &x[1], &x[4]);
    gni_fpair(gni_fmadd(-GNI_FT_SQRT5_4, u, m), b2, &x[2], &x[3]);
}

// e + h (r, i) and e - h (r, i): the odd half of an 8-point butterfly, turned by an eighth.
#define GNI_FT_EIGHTH(e, re, im, y, z)                                                             \
    {                                                                                              \
        gni_fv p = re, q = im, h = gni_fset((GNI_FT_T)GNI_FT_SQRT1_2);                             \
        y.r = gni_ffma(h, p, e.r);                                                                 \
        y.i = gni_ffma(h, q, e.i);                                                                 \
        z.r = gni_ffnma(h, p, e.r);                                                                \
        z.i = gni_ffnma(h, q, e.i);                                                                \
    }

GNI_FT_INLINE void gni_fbf8(gni_fc *x) {
    gni_fc e[4], o[4];
    e[0] = x[0], e[1] = x[2], e[2] = x[4], e[3] = x[6];
    o[0] = x[1], o[1] = x[3], o[2] = x[5], o[3] = x[7];
    gni_fbf4(e);
    gni_fbf4(o);
    x[0] = gni_fadd(e[0], o[0]);
    x[4] = gni_fsub(e[0], o[0]);
    GNI_FT_EIGHTH(e[1], o[1].r + o[1].i, o[1].i - o[1].r, x[1], x[5]);
    gni_fpair(e[2], o[2], &x[2], &x[6]);
    GNI_FT_EIGHTH(e[3], o[3].i - o[3].r, -o[3].i - o[3].r, x[3], x[7]);
}

GNI_FT_INLINE void gni_fbf9(gni_fc *x) {
    gni_fc a[3], b[3], c[3];
    a[0] = x[0], a[1] = x[3], a[2] = x[6];
    b[0] = x[1], b[1] = x[4], b[2] = x[7];
    c[0] = x[2], c[1] = x[5], c[2] = x[8];
    gni_fbf3(a);
    gni_fbf3(b);
    gni_fbf3(c);
    b[1] = gni_fturn(b[1], GNI_FT_C9_1, GNI_FT_S9_1);
    c[1] = gni_fturn(c[1], GNI_FT_C9_2, GNI_FT_S9_2);
    b[2] = gni_fturn(b[2], GNI_FT_C9_2, GNI_FT_S9_2);
    c[2] = gni_fturn(c[2], GNI_FT_C9_4, GNI_FT_S9_4);
    gni_fc t[3];
    t[0] = a[0], t[1] = b[0], t[2] = c[0];
    gni_fbf3(t);
    x[0] = t[0], x[3] = t[1], x[6] = t[2];
    t[0] = a[1], t[1] = b[1], t[2] = c[1];
    gni_fbf3(t);
    x[1] = t[0], x[4] = t[1], x[7] = t[2];
    t[0] = a[2], t[1] = b[2], t[2] = c[2];
    gni_fbf3(t);
    x[2] = t[0], x[5] = t[1], x[8] = t[2];
}

GNI_FT_INLINE void gni_fbf16(gni_fc *x) {
    gni_fc a[4], b[4], c[4], d[4], t[4];
    a[0] = x[0], a[1] = x[4], a[2] = x[8], a[3] = x[12];
    b[0] = x[1], b[1] = x[5], b[2] = x[9], b[3] = x[13];
    c[0] = x[2], c[1] = x[6], c[2] = x[10], c[3] = x[14];
    d[0] = x[3], d[1] = x[7], d[2] = x[11], d[3] = x[15];
    gni_fbf4(a);
    gni_fbf4(b);
    gni_fbf4(c);
    gni_fbf4(d);
    t[0] = a[0], t[1] = b[0], t[2] = c[0], t[3] = d[0];
    gni_fbf4(t);
    x[0] = t[0], x[4] = t[1], x[8] = t[2], x[12] = t[3];
    t[0] = a[1], t[1] = gni_fturn(b[1], GNI_FT_C16, GNI_FT_S16);
    t[2] = gni_fturn(c[1], GNI_FT_SQRT1_2, GNI_FT_SQRT1_2);
    t[3] = gni_fturn(d[1], GNI_FT_S16, GNI_FT_C16);
    gni_fbf4(t);
    x[1] = t[0], x[5] = t[1], x[9] = t[2], x[13] = t[3];
    // A quarter turn of c[2] is in the signs.
    gni_fc p, q;
    gni_fpair(a[2], c[2], &p, &q);
    b[2] = gni_fturn(b[2], GNI_FT_SQRT1_2, GNI_FT_SQRT1_2);
    d[2] = gni_fturn(d[2], -GNI_FT_SQRT1_2, GNI_FT_SQRT1_2);
    t[0] = gni_fadd(b[2], d[2]), t[1] = gni_fsub(b[2], d[2]);
    x[2] = gni_fadd(p, t[0]), x[10] = gni_fsub(p, t[0]);
    gni_fpair(q, t[1], &x[6], &x[14]);
    t[0] = a[3], t[1] = gni_fturn(b[3], GNI_FT_S16, GNI_FT_C16);
    t[2] = gni_fturn(c[3], -GNI_FT_SQRT1_2, GNI_FT_SQRT1_2);
    t[3] = gni_fturn(d[3], -GNI_FT_C16, -GNI_FT_S16);
    gni_fbf4(t);
    x[3] = t[0], x[7] = t[1], x[11] = t[2], x[15] = t[3];
}

GNI_FT_INLINE void gni_fbf7(gni_fc *x) {
    gni_fc t1 = gni_fadd(x[1], x[6]), d1 = gni_fsub(x[1], x[6]);
    gni_fc t2 = gni_fadd(x[2], x[5]), d2 = gni_fsub(x[2], x[5]);
    gni_fc t3 = gni_fadd(x[3], x[4]), d3 = gni_fsub(x[3], x[4]);
    gni_fc a, b, base = gni_fmadd(-0.5, t3, x[0]), sum = gni_fadd(x[0], t1);
    sum = gni_fadd(sum, t2);
    sum = gni_fadd(sum, t3);
    t1 = gni_fsub(t1, t3);
    t2 = gni_fsub(t2, t3);
    x[0] = sum;
    a = gni_fmadd(GNI_FT_C7_1, t1, base);
    a = gni_fmadd(GNI_FT_C7_2, t2, a);
    b = gni_fmul(GNI_FT_S7_1, d1);
    b = gni_fmadd(GNI_FT_S7_2, d2, b);
    b = gni_fmadd(GNI_FT_S7_3, d3, b);
    gni_fpair(a, b, &x[1], &x[6]);
    a = gni_fmadd(GNI_FT_C7_2, t1, base);
    a = gni_fmadd(GNI_FT_C7_3, t2, a);
    b = gni_fmul(GNI_FT_S7_2, d1);
    b = gni_fmadd(-GNI_FT_S7_3, d2, b);
    b = gni_fmadd(-GNI_FT_S7_1, d3, b);
    gni_fpair(a, b, &x[2], &x[5]);
    a = gni_fmadd(GNI_FT_C7_3, t1, base);
    a = gni_fmadd(GNI_FT_C7_1, t2, a);
    b = gni_fmul(GNI_FT_S7_3, d1);
    b = gni_fmadd(-GNI_FT_S7_1, d2, b);
    b = gni_fmadd(GNI_FT_S7_2, d3, b);
    gni_fpair(a, b, &x[3], &x[4]);
}

GNI_FT_INLINE void gni_fbf11(gni_fc *x) {
    gni_fc t1 = gni_fadd(x[1], x[10]), d1 = gni_fsub(x[1], x[10]);
    gni_fc t2 = gni_fadd(x[2], x[9]), d2 = gni_fsub(x[2], x[9]);
    gni_fc t3 = gni_fadd(x[3], x[8]), d3 = gni_fsub(x[3], x[8]);
    gni_fc t4 = gni_fadd(x[4], x[7]), d4 = gni_fsub(x[4], x[7]);
    gni_fc t5 = gni_fadd(x[5], x[6]), d5 = gni_fsub(x[5], x[6]);
    gni_fc a, b, base = gni_fmadd(-0.5, t5, x[0]), sum = gni_fadd(x[0], t1);
    sum = gni_fadd(sum, t2);
    sum = gni_fadd(sum, t3);
    sum = gni_fadd(sum, t4);
    sum = gni_fadd(sum, t5);
    t1 = gni_fsub(t1, t5);
    t2 = gni_fsub(t2, t5);
    t3 = gni_fsub(t3, t5);
    t4 = gni_fsub(t4, t5);
    x[0] = sum;
    a = gni_fmadd(GNI_FT_C11_1, t1, base);
    a = gni_fmadd(GNI_FT_C11_2, t2, a);
    a = gni_fmadd(GNI_FT_C11_3, t3, a);
    a = gni_fmadd(GNI_FT_C11_4, t4, a);
    b = gni_fmul(GNI_FT_S11_1, d1);
    b = gni_fmadd(GNI_FT_S11_2, d2, b);
    b = gni_fmadd(GNI_FT_S11_3, d3, b);
    b = gni_fmadd(GNI_FT_S11_4, d4, b);
    b = gni_fmadd(GNI_FT_S11_5, d5, b);
    gni_fpair(a, b, &x[1], &x[10]);
    a = gni_fmadd(GNI_FT_C11_2, t1, base);
    a = gni_fmadd(GNI_FT_C11_4, t2, a);
    a = gni_fmadd(GNI_FT_C11_5, t3, a);
    a = gni_fmadd(GNI_FT_C11_3, t4, a);
    b = gni_fmul(GNI_FT_S11_2, d1);
    b = gni_fmadd(GNI_FT_S11_4, d2, b);
    b = gni_fmadd(-GNI_FT_S11_5, d3, b);
    b = gni_fmadd(-GNI_FT_S11_3, d4, b);
    b = gni_fmadd(-GNI_FT_S11_1, d5, b);
    gni_fpair(a, b, &x[2], &x[9]);
    a = gni_fmadd(GNI_FT_C11_3, t1, base);
    a = gni_fmadd(GNI_FT_C11_5, t2, a);
    a = gni_fmadd(GNI_FT_C11_2, t3, a);
    a = gni_fmadd(GNI_FT_C11_1, t4, a);
    b = gni_fmul(GNI_FT_S11_3, d1);
    b = gni_fmadd(-GNI_FT_S11_5, d2, b);
    b = gni_fmadd(-GNI_FT_S11_2, d3, b);
    b = gni_fmadd(GNI_FT_S11_1, d4, b);
    b = gni_fmadd(GNI_FT_S11_4, d5, b);
    gni_fpair(a, b, &x[3], &x[8]);
    a = gni_fmadd(GNI_FT_C11_4, t1, base);
    a = gni_fmadd(GNI_FT_C11_3, t2, a);
    a = gni_fmadd(GNI_FT_C11_1, t3, a);
    a = gni_fmadd(GNI_FT_C11_5, t4, a);
    b = gni_fmul(GNI_FT_S11_4, d1);
    b = gni_fmadd(-GNI_FT_S11_3, d2, b);
    b = gni_fmadd(GNI_FT_S11_1, d3, b);
    b = gni_fmadd(GNI_FT_S11_5, d4, b);
    b = gni_fmadd(-GNI_FT_S11_2, d5, b);
    gni_fpair(a, b, &x[4], &x[7]);
    a = gni_fmadd(GNI_FT_C11_5, t1, base);
    a = gni_fmadd(GNI_FT_C11_1, t2, a);
    a = gni_fmadd(GNI_FT_C11_4, t3, a);
    a = gni_fmadd(GNI_FT_C11_2, t4, a);
    b = gni_fmul(GNI_FT_S11_5, d1);
    b = gni_fmadd(-GNI_FT_S11_1, d2, b);
    b = gni_fmadd(GNI_FT_S11_4, d3, b);
    b = gni_fmadd(-GNI_FT_S11_2, d4, b);
    b = gni_fmadd(GNI_FT_S11_3, d5, b);
    gni_fpair(a, b, &x[5], &x[6]);
}

GNI_FT_INLINE void gni_fbf13(gni_fc *x) {
    gni_fc t1 = gni_fadd(x[1], x[12]), d1 = gni_fsub(x[1], x[12]);
    gni_fc t2 = gni_fadd(x[2], x[11]), d2 = gni_fsub(x[2], x[11]);
    gni_fc t3 = gni_fadd(x[3], x[10]), d3 = gni_fsub(x[3], x[10]);
    gni_fc t4 = gni_fadd(x[4], x[9]), d4 = gni_fsub(x[4], x[9]);
    gni_fc t5 = gni_fadd(x[5], x[8]), d5 = gni_fsub(x[5], x[8]);
    gni_fc t6 = gni_fadd(x[6], x[7]), d6 = gni_fsub(x[6], x[7]);
    gni_fc a, b, base = gni_fmadd(-0.5, t6, x[0]), sum = gni_fadd(x[0], t1);
    sum = gni_fadd(sum, t2);
    sum = gni_fadd(sum, t3);
    sum = gni_fadd(sum, t4);
    sum = gni_fadd(sum, t5);
    sum = gni_fadd(sum, t6);
    t1 = gni_fsub(t1, t6);
    t2 = gni_fsub(t2, t6);
    t3 = gni_fsub(t3, t6);
    t4 = gni_fsub(t4, t6);
    t5 = gni_fsub(t5, t6);
    x[0] = sum;
    a = gni_fmadd(GNI_FT_C13_1, t1, base);
    a = gni_fmadd(GNI_FT_C13_2, t2, a);
    a = gni_fmadd(GNI_FT_C13_3, t3, a);
    a = gni_fmadd(GNI_FT_C13_4, t4, a);
    a = gni_fmadd(GNI_FT_C13_5, t5, a);
    b = gni_fmul(GNI_FT_S13_1, d1);
    b = gni_fmadd(GNI_FT_S13_2, d2, b);
    b = gni_fmadd(GNI_FT_S13_3, d3, b);
    b = gni_fmadd(GNI_FT_S13_4, d4, b);
    b = gni_fmadd(GNI_FT_S13_5, d5, b);
    b = gni_fmadd(GNI_FT_S13_6, d6, b);
    gni_fpair(a, b, &x[1], &x[12]);
    a = gni_fmadd(GNI_FT_C13_2, t1, base);
    a = gni_fmadd(GNI_FT_C13_4, t2, a);
    a = gni_fmadd(GNI_FT_C13_6, t3, a);
    a = gni_fmadd(GNI_FT_C13_5, t4, a);
    a = gni_fmadd(GNI_FT_C13_3, t5, a);
    b = gni_fmul(GNI_FT_S13_2, d1);
    b = gni_fmadd(GNI_FT_S13_4, d2, b);
    b = gni_fmadd(GNI_FT_S13_6, d3, b);
    b = gni_fmadd(-GNI_FT_S13_5, d4, b);
    b = gni_fmadd(-GNI_FT_S13_3, d5, b);
    b = gni_fmadd(-GNI_FT_S13_1, d6, b);
    gni_fpair(a, b, &x[2], &x[11]);
    a = gni_fmadd(GNI_FT_C13_3, t1, base);
    a = gni_fmadd(GNI_FT_C13_6, t2, a);
    a = gni_fmadd(GNI_FT_C13_4, t3, a);
    a = gni_fmadd(GNI_FT_C13_1, t4, a);
    a = gni_fmadd(GNI_FT_C13_2, t5, a);
    b = gni_fmul(GNI_FT_S13_3, d1);
    b = gni_fmadd(GNI_FT_S13_6, d2, b);
    b = gni_fmadd(-GNI_FT_S13_4, d3, b);
    b = gni_fmadd(-GNI_FT_S13_1, d4, b);
    b = gni_fmadd(GNI_FT_S13_2, d5, b);
    b = gni_fmadd(GNI_FT_S13_5, d6, b);
    gni_fpair(a, b, &x[3], &x[10]);
    a = gni_fmadd(GNI_FT_C13_4, t1, base);
    a = gni_fmadd(GNI_FT_C13_5, t2, a);
    a = gni_fmadd(GNI_FT_C13_1, t3, a);
    a = gni_fmadd(GNI_FT_C13_3, t4, a);
    a = gni_fmadd(GNI_FT_C13_6, t5, a);
    b = gni_fmul(GNI_FT_S13_4, d1);
    b = gni_fmadd(-GNI_FT_S13_5, d2, b);
    b = gni_fmadd(-GNI_FT_S13_1, d3, b);
    b = gni_fmadd(GNI_FT_S13_3, d4, b);
    b = gni_fmadd(-GNI_FT_S13_6, d5, b);
    b = gni_fmadd(-GNI_FT_S13_2, d6, b);
    gni_fpair(a, b, &x[4], &x[9]);
    a = gni_fmadd(GNI_FT_C13_5, t1, base);
    a = gni_fmadd(GNI_FT_C13_3, t2, a);
    a = gni_fmadd(GNI_FT_C13_2, t3, a);
    a = gni_fmadd(GNI_FT_C13_6, t4, a);
    a = gni_fmadd(GNI_FT_C13_1, t5, a);
    b = gni_fmul(GNI_FT_S13_5, d1);
    b = gni_fmadd(-GNI_FT_S13_3, d2, b);
    b = gni_fmadd(GNI_FT_S13_2, d3, b);
    b = gni_fmadd(-GNI_FT_S13_6, d4, b);
    b = gni_fmadd(-GNI_FT_S13_1, d5, b);
    b = gni_fmadd(GNI_FT_S13_4, d6, b);
    gni_fpair(a, b, &x[5], &x[8]);
    a = gni_fmadd(GNI_FT_C13_6, t1, base);
    a = gni_fmadd(GNI_FT_C13_1, t2, a);
    a = gni_fmadd(GNI_FT_C13_5, t3, a);
    a = gni_fmadd(GNI_FT_C13_2, t4, a);
    a = gni_fmadd(GNI_FT_C13_4, t5, a);
    b = gni_fmul(GNI_FT_S13_6, d1);
    b = gni_fmadd(-GNI_FT_S13_1, d2, b);
    b = gni_fmadd(GNI_FT_S13_5, d3, b);
    b = gni_fmadd(-GNI_FT_S13_2, d4, b);
    b = gni_fmadd(GNI_FT_S13_4, d5, b);
    b = gni_fmadd(-GNI_FT_S13_3, d6, b);
    gni_fpair(a, b, &x[6], &x[7]);
}

// ---- shuffles

#if GNI_FT_W > 1
#if defined(__clang__)
#define GNI_FT_SHUFFLE(name, ...)                                                                  \
    GNI_FT_INLINE gni_fv GNI_FT(name)(gni_fv a, gni_fv b) { return __builtin_shufflevector(a, b, __VA_ARGS__); }
#else
#define GNI_FT_SHUFFLE(name, ...)                                                                  \
    GNI_FT_INLINE gni_fv GNI_FT(name)(gni_fv a, gni_fv b) {                                        \
        const gni_fvi mask = {__VA_ARGS__};                                                        \
        return __builtin_shuffle(a, b, mask);                                                      \
    }
#endif

// gni_ft_t<b>l and h: blocks of b lanes; even blocks of a and b side by side, and odd ones.
#if GNI_FT_W == 2
GNI_FT_SHUFFLE(gni_ft_even, 0, 2)
GNI_FT_SHUFFLE(gni_ft_odd, 1, 3)
GNI_FT_SHUFFLE(gni_ft_low, 0, 2)
GNI_FT_SHUFFLE(gni_ft_high, 1, 3)
GNI_FT_SHUFFLE(gni_ft_reverse, 1, 0)
GNI_FT_SHUFFLE(gni_ft_t1l, 0, 2)
GNI_FT_SHUFFLE(gni_ft_t1h, 1, 3)
#elif GNI_FT_W == 4
GNI_FT_SHUFFLE(gni_ft_even, 0, 2, 4, 6)
GNI_FT_SHUFFLE(gni_ft_odd, 1, 3, 5, 7)
GNI_FT_SHUFFLE(gni_ft_low, 0, 4, 1, 5)
GNI_FT_SHUFFLE(gni_ft_high, 2, 6, 3, 7)
GNI_FT_SHUFFLE(gni_ft_reverse, 3, 2, 1, 0)
GNI_FT_SHUFFLE(gni_ft_t1l, 0, 4, 2, 6)
GNI_FT_SHUFFLE(gni_ft_t1h, 1, 5, 3, 7)
GNI_FT_SHUFFLE(gni_ft_t2l, 0, 1, 4, 5)
GNI_FT_SHUFFLE(gni_ft_t2h, 2, 3, 6, 7)
#elif GNI_FT_W == 8
GNI_FT_SHUFFLE(gni_ft_even, 0, 2, 4, 6, 8, 10, 12, 14)
GNI_FT_SHUFFLE(gni_ft_odd, 1, 3, 5, 7, 9, 11, 13, 15)
GNI_FT_SHUFFLE(gni_ft_low, 0, 8, 1, 9, 2, 10, 3, 11)
GNI_FT_SHUFFLE(gni_ft_high, 4, 12, 5, 13, 6, 14, 7, 15)
GNI_FT_SHUFFLE(gni_ft_reverse, 7, 6, 5, 4, 3, 2, 1, 0)
GNI_FT_SHUFFLE(gni_ft_t1l, 0, 8, 2, 10, 4, 12, 6, 14)
GNI_FT_SHUFFLE(gni_ft_t1h, 1, 9, 3, 11, 5, 13, 7, 15)
GNI_FT_SHUFFLE(gni_ft_t2l, 0, 1, 8, 9, 4, 5, 12, 13)
GNI_FT_SHUFFLE(gni_ft_t2h, 2, 3, 10, 11, 6, 7, 14, 15)
GNI_FT_SHUFFLE(gni_ft_t4l, 0, 1, 2, 3, 8, 9, 10, 11)
GNI_FT_SHUFFLE(gni_ft_t4h, 4, 5, 6, 7, 12, 13, 14, 15)
#else
GNI_FT_SHUFFLE(gni_ft_even, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
GNI_FT_SHUFFLE(gni_ft_odd, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
GNI_FT_SHUFFLE(gni_ft_low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
GNI_FT_SHUFFLE(gni_ft_high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
GNI_FT_SHUFFLE(gni_ft_reverse, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
GNI_FT_SHUFFLE(gni_ft_t1l, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30)
GNI_FT_SHUFFLE(gni_ft_t1h, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)
GNI_FT_SHUFFLE(gni_ft_t2l, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
GNI_FT_SHUFFLE(gni_ft_t2h, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
GNI_FT_SHUFFLE(gni_ft_t4l, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27)
GNI_FT_SHUFFLE(gni_ft_t4h, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)
GNI_FT_SHUFFLE(gni_ft_t8l, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
GNI_FT_SHUFFLE(gni_ft_t8h, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#endif
#undef GNI_FT_SHUFFLE
#endif

// W complex numbers as they lie in memory; `swap` exchanges the parts, which turns a transform into
// its inverse when it is done on the way in and on the way out.
GNI_FT_INLINE gni_fc gni_fget(const GNI_FT_T *p, bool swap) {
    gni_fc y;
#if GNI_FT_W == 1
    gni_fv e = p[0], o = p[1];
#else
    gni_fv a = gni_fload(p), b = gni_fload(p + GNI_FT_W), e = gni_feven(a, b), o = gni_fodd(a, b);
#endif
    y.r = swap ? o : e;
    y.i = swap ? e : o;
    return y;
}
GNI_FT_INLINE void gni_fput(GNI_FT_T *p, gni_fc x, bool swap) {
    gni_fv e = swap ? x.i : x.r, o = swap ? x.r : x.i;
#if GNI_FT_W == 1
    p[0] = e;
    p[1] = o;
#else
    gni_fstore(p, gni_flow(e, o));
    gni_fstore(p + GNI_FT_W, gni_fhigh(e, o));
#endif
}

// Lane l of x[q] and lane q of x[l] change places: blocks first, then what is in them.
#define GNI_FT_SWAP(b, p, q)                                                                       \
    {                                                                                              \
        gni_fc l = x[p], h = x[q];                                                                 \
        x[p].r = GNI_FT(gni_ft_t##b##l)(l.r, h.r);                                                 \
        x[q].r = GNI_FT(gni_ft_t##b##h)(l.r, h.r);                                                 \
        x[p].i = GNI_FT(gni_ft_t##b##l)(l.i, h.i);                                                 \
        x[q].i = GNI_FT(gni_ft_t##b##h)(l.i, h.i);                                                 \
    }
#define GNI_FT_T2(o) GNI_FT_SWAP(1, o, o + 1)
#define GNI_FT_T4(o) GNI_FT_SWAP(2, o, o + 2) GNI_FT_SWAP(2, o + 1, o + 3) GNI_FT_T2(o) GNI_FT_T2(o + 2)
#define GNI_FT_T8(o)                                                                               \
    GNI_FT_SWAP(4, o, o + 4)                                                                       \
    GNI_FT_SWAP(4, o + 1, o + 5) GNI_FT_SWAP(4, o + 2, o + 6) GNI_FT_SWAP(4, o + 3, o + 7)         \
    GNI_FT_T4(o) GNI_FT_T4(o + 4)
#define GNI_FT_T16(o)                                                                              \
    GNI_FT_SWAP(8, o, o + 8)                                                                       \
    GNI_FT_SWAP(8, o + 1, o + 9) GNI_FT_SWAP(8, o + 2, o + 10) GNI_FT_SWAP(8, o + 3, o + 11)       \
    GNI_FT_SWAP(8, o + 4, o + 12) GNI_FT_SWAP(8, o + 5, o + 13) GNI_FT_SWAP(8, o + 6, o + 14)      \
    GNI_FT_SWAP(8, o + 7, o + 15) GNI_FT_T8(o) GNI_FT_T8(o + 8)

GNI_FT_INLINE void gni_ftranspose(gni_fc *x) {
#if GNI_FT_W == 2
    GNI_FT_T2(0)
#elif GNI_FT_W == 4
    GNI_FT_T4(0)
#elif GNI_FT_W == 8
    GNI_FT_T8(0)
#elif GNI_FT_W == 16
    GNI_FT_T16(0)
#else
    GNI_UNUSED(x);
#endif
}

// ---- passes

// X(q) for q = 0 to n - 1.
#define GNI_FT_E2(X) X(0) X(1)
#define GNI_FT_E3(X) GNI_FT_E2(X) X(2)
#define GNI_FT_E4(X) GNI_FT_E3(X) X(3)
#define GNI_FT_E5(X) GNI_FT_E4(X) X(4)
#define GNI_FT_E7(X) GNI_FT_E5(X) X(5) X(6)
#define GNI_FT_E8(X) GNI_FT_E7(X) X(7)
#define GNI_FT_E9(X) GNI_FT_E8(X) X(8)
#define GNI_FT_E11(X) GNI_FT_E9(X) X(9) X(10)
#define GNI_FT_E13(X) GNI_FT_E11(X) X(11) X(12)
#define GNI_FT_E16(X) GNI_FT_E13(X) X(13) X(14) X(15)

#define GNI_FT_LOAD(q)                                                                             \
    x[q].r = gni_fload(a + q * step);                                                              \
    x[q].i = gni_fload(a + q * step + GNI_FT_W);
#define GNI_FT_GET(q)                                                                              \
    GNI_FT_PREFETCH(a + q * step + ld);                                                            \
    GNI_FT_PREFETCH(a + q * step + ld + GNI_FT_W);                                                 \
    x[q] = gni_fget(a + q * step, swap);
#define GNI_FT_TURN(q)                                                                             \
    if (q > 0) x[q] = gni_fcmul(x[q], gni_fset(w[2 * q]), gni_fset(w[2 * q + 1]));
#define GNI_FT_STORE(q)                                                                            \
    gni_fstore(b + q * out, x[q].r);                                                               \
    gni_fstore(b + q * out + GNI_FT_W, x[q].i);
#define GNI_FT_PUT(q)                                                                              \
    x[q].r = x[q].r * gni_fset(scale);                                                             \
    x[q].i = x[q].i * gni_fset(scale);                                                             \
    gni_fput(b + q * out, x[q], swap);

// Rows to rows; memory (numbers one after the other, rows `ld` apart) to rows, always the first pass;
// rows to memory, always the last.
#define GNI_FT_PASS(R)                                                                             \
    static void GNI_FT(gni_ft_mid##R)(const gni_ft_pass *p, const GNI_FT_T *src, GNI_FT_T *dst) {  \
        const int64_t s = p->s, m = p->m, step = s * m * 2 * GNI_FT_W, out = s * 2 * GNI_FT_W;     \
        const GNI_FT_T *w = (const GNI_FT_T *)p->turn - 2;                                         \
        for (int64_t j = 0; j < m; j++, w += 2 * (R - 1)) {                                        \
            const GNI_FT_T *a = src + j * out;                                                     \
            GNI_FT_T *b = dst + j * out * R;                                                       \
            for (int64_t k = 0; k < s; k++, a += 2 * GNI_FT_W, b += 2 * GNI_FT_W) {                \
                gni_fc x[R];                                                                       \
                GNI_FT_E##R(GNI_FT_LOAD) gni_fbf##R(x);                                            \
                GNI_FT_E##R(GNI_FT_TURN) GNI_FT_E##R(GNI_FT_STORE)                                 \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void GNI_FT(gni_ft_first##R)(const gni_ft_pass *p, const GNI_FT_T *src, int64_t ld,     \
                                        GNI_FT_T *dst, bool swap) {                                \
        const int64_t m = p->m, step = m * ld, out = 2 * GNI_FT_W;                                 \
        const GNI_FT_T *w = (const GNI_FT_T *)p->turn - 2;                                         \
        for (int64_t j = 0; j < m; j++, w += 2 * (R - 1)) {                                        \
            const GNI_FT_T *a = src + j * ld;                                                      \
            GNI_FT_T *b = dst + j * out * R;                                                       \
            gni_fc x[R];                                                                           \
            GNI_FT_E##R(GNI_FT_GET) gni_fbf##R(x);                                                 \
            GNI_FT_E##R(GNI_FT_TURN) GNI_FT_E##R(GNI_FT_STORE)                                     \
        }                                                                                          \
    }                                                                                              \
    static void GNI_FT(gni_ft_last##R)(const gni_ft_pass *p, const GNI_FT_T *src, GNI_FT_T *dst,   \
                                       int64_t ld, GNI_FT_T scale, bool swap) {                    \
        const int64_t s = p->s, step = s * 2 * GNI_FT_W, out = s * ld;                             \
        for (int64_t k = 0; k < s; k++) {                                                          \
            const GNI_FT_T *a = src + k * 2 * GNI_FT_W;                                            \
            GNI_FT_T *b = dst + k * ld;                                                            \
            gni_fc x[R];                                                                           \
            GNI_FT_E##R(GNI_FT_LOAD) gni_fbf##R(x);                                                \
            GNI_FT_E##R(GNI_FT_PUT)                                                                \
        }                                                                                          \
    }

GNI_FT_PASS(2)
GNI_FT_PASS(3)
GNI_FT_PASS(4)
GNI_FT_PASS(5)
GNI_FT_PASS(7)
GNI_FT_PASS(8)
GNI_FT_PASS(9)
GNI_FT_PASS(11)
GNI_FT_PASS(13)
#if GNI_FT_MAX_RADIX >= 16
GNI_FT_PASS(16)
#endif

static void GNI_FT(gni_ft_mid)(const gni_ft_pass *p, const GNI_FT_T *src, GNI_FT_T *dst) {
    switch (p->radix) {
    case 2: GNI_FT(gni_ft_mid2)(p, src, dst); break;
    case 3: GNI_FT(gni_ft_mid3)(p, src, dst); break;
    case 4: GNI_FT(gni_ft_mid4)(p, src, dst); break;
    case 5: GNI_FT(gni_ft_mid5)(p, src, dst); break;
    case 7: GNI_FT(gni_ft_mid7)(p, src, dst); break;
    case 8: GNI_FT(gni_ft_mid8)(p, src, dst); break;
    case 9: GNI_FT(gni_ft_mid9)(p, src, dst); break;
    case 11: GNI_FT(gni_ft_mid11)(p, src, dst); break;
    case 13: GNI_FT(gni_ft_mid13)(p, src, dst); break;
#if GNI_FT_MAX_RADIX >= 16
    case 16: GNI_FT(gni_ft_mid16)(p, src, dst); break;
#endif
    default: break;
    }
}

static void GNI_FT(gni_ft_first)(const gni_ft_pass *p, const GNI_FT_T *src, int64_t ld, GNI_FT_T *dst, bool swap) {
    switch (p->radix) {
    case 2: GNI_FT(gni_ft_first2)(p, src, ld, dst, swap); break;
    case 3: GNI_FT(gni_ft_first3)(p, src, ld, dst, swap); break;
    case 4: GNI_FT(gni_ft_first4)(p, src, ld, dst, swap); break;
    case 5: GNI_FT(gni_ft_first5)(p, src, ld, dst, swap); break;
    case 7: GNI_FT(gni_ft_first7)(p, src, ld, dst, swap); break;
    case 8: GNI_FT(gni_ft_first8)(p, src, ld, dst, swap); break;
    case 9: GNI_FT(gni_ft_first9)(p, src, ld, dst, swap); break;
    case 11: GNI_FT(gni_ft_first11)(p, src, ld, dst, swap); break;
    case 13: GNI_FT(gni_ft_first13)(p, src, ld, dst, swap); break;
#if GNI_FT_MAX_RADIX >= 16
    case 16: GNI_FT(gni_ft_first16)(p, src, ld, dst, swap); break;
#endif
    default: break;
    }
}

static void GNI_FT(gni_ft_last)(const gni_ft_pass *p, const GNI_FT_T *src, GNI_FT_T *dst, int64_t ld,
                                GNI_FT_T scale, bool swap) {
    switch (p->radix) {
    case 2: GNI_FT(gni_ft_last2)(p, src, dst, ld, scale, swap); break;
    case 3: GNI_FT(gni_ft_last3)(p, src, dst, ld, scale, swap); break;
    case 4: GNI_FT(gni_ft_last4)(p, src, dst, ld, scale, swap); break;
    case 5: GNI_FT(gni_ft_last5)(p, src, dst, ld, scale, swap); break;
    case 7: GNI_FT(gni_ft_last7)(p, src, dst, ld, scale, swap); break;
    case 8: GNI_FT(gni_ft_last8)(p, src, dst, ld, scale, swap); break;
    case 9: GNI_FT(gni_ft_last9)(p, src, dst, ld, scale, swap); break;
    case 11: GNI_FT(gni_ft_last11)(p, src, dst, ld, scale, swap); break;
    case 13: GNI_FT(gni_ft_last13)(p, src, dst, ld, scale, swap); break;
#if GNI_FT_MAX_RADIX >= 16
    case 16: GNI_FT(gni_ft_last16)(p, src, dst, ld, scale, swap); break;
#endif
    default: break;
    }
}

// ---- W transforms side by side. `work` has room for 2 n rows, where `n` is the length.

// The remaining passes of rows in `x`; where the result is.
static GNI_FT_T *GNI_FT(gni_ft_passes)(const gni_ft_lane *f, int from, int to, GNI_FT_T *x, GNI_FT_T *work) {
    GNI_FT_T *half[2];
    half[0] = work;
    half[1] = work + f->n * 2 * GNI_FT_W;
    for (int i = from; i < to; i++) {
        GNI_FT_T *y = x == half[0] ? half[1] : half[0];
        GNI_FT(gni_ft_mid)(&f->pass[i], x, y);
        x = y;
    }
    return x;
}

// Columns of memory to rows in `work`.
static void *GNI_FT(gni_ft_columns_in)(const gni_ft_lane *f, const void *src, int64_t ld, bool swap, void *work) {
    GNI_FT_T *w = (GNI_FT_T *)work;
    GNI_FT(gni_ft_first)(&f->pass[0], (const GNI_FT_T *)src, 2 * ld, w, swap);
    return GNI_FT(gni_ft_passes)(f, 1, f->count, w, w);
}

// Rows (which stay as they are unless they are in `work`) to columns of memory.
static void GNI_FT(gni_ft_columns_out)(const gni_ft_lane *f, void *rows, void *dst, int64_t ld, double scale,
                                       bool swap, void *work) {
    GNI_FT_T *x = GNI_FT(gni_ft_passes)(f, 0, f->count - 1, (GNI_FT_T *)rows, (GNI_FT_T *)work);
    GNI_FT(gni_ft_last)(&f->pass[f->count - 1], x, (GNI_FT_T *)dst, 2 * ld, (GNI_FT_T)scale, swap);
}

// Columns of memory to columns of memory, which may be the same.
static void GNI_FT(gni_ft_columns)(const gni_ft_lane *f, const void *src, int64_t src_ld, void *dst, int64_t dst_ld,
                                   double scale, bool swap, void *work) {
    GNI_FT_T *w = (GNI_FT_T *)work;
    if (f->count == 1) {
        for (int64_t q = 0; q < f->n; q++) {
            gni_fc x = gni_fget((const GNI_FT_T *)src + 2 * q * src_ld, swap);
            gni_fstore(w + 2 * q * GNI_FT_W, x.r);
            gni_fstore(w + 2 * q * GNI_FT_W + GNI_FT_W, x.i);
        }
    } else {
        GNI_FT(gni_ft_first)(&f->pass[0], (const GNI_FT_T *)src, 2 * src_ld, w, swap);
        w = GNI_FT(gni_ft_passes)(f, 1, f->count - 1, w, (GNI_FT_T *)work);
    }
    GNI_FT(gni_ft_last)(&f->pass[f->count - 1], w, (GNI_FT_T *)dst, 2 * dst_ld, (GNI_FT_T)scale, swap);
}

// `count` <= W transforms of contiguous memory, `src_ld` and `dst_ld` numbers apart.
static void GNI_FT(gni_ft_batch)(const gni_ft_lane *f, const void *src, int64_t src_ld, void *dst, int64_t dst_ld,
                                 int count, double scale, bool swap, void *work) {
    const GNI_FT_T *a = (const GNI_FT_T *)src;
    GNI_FT_T *b = (GNI_FT_T *)dst, *w = (GNI_FT_T *)work, *x = w;
    const int64_t n = f->n;
    const int re = swap ? 1 : 0;
    const bool whole = count == GNI_FT_W && n >= GNI_FT_W;
    for (int64_t at = 0; whole && at < n; at += GNI_FT_W) {
        gni_fc t[GNI_FT_W];
        const int64_t j = GNI_MIN(at, n - GNI_FT_W);
        for (int l = 0; l < GNI_FT_W; l++) t[l] = gni_fget(a + 2 * (l * src_ld + j), swap);
        gni_ftranspose(t);
        for (int l = 0; l < GNI_FT_W; l++) {
            gni_fstore(w + 2 * (j + l) * GNI_FT_W, t[l].r);
            gni_fstore(w + 2 * (j + l) * GNI_FT_W + GNI_FT_W, t[l].i);
        }
    }
    for (int l = 0; !whole && l < GNI_FT_W; l++) {
        const GNI_FT_T *from = a + 2 * GNI_MIN(l, count - 1) * src_ld;
        for (int64_t j = 0; j < n; j++) {
            w[2 * j * GNI_FT_W + l] = from[2 * j + re];
            w[2 * j * GNI_FT_W + GNI_FT_W + l] = from[2 * j + 1 - re];
        }
    }
    x = GNI_FT(gni_ft_passes)(f, 0, f->count, w, w);
    for (int64_t at = 0; whole && at < n; at += GNI_FT_W) {
        gni_fc t[GNI_FT_W];
        const int64_t j = GNI_MIN(at, n - GNI_FT_W);
        for (int l = 0; l < GNI_FT_W; l++) {
            t[l].r = gni_fload(x + 2 * (j + l) * GNI_FT_W) * gni_fset((GNI_FT_T)scale);
            t[l].i = gni_fload(x + 2 * (j + l) * GNI_FT_W + GNI_FT_W) * gni_fset((GNI_FT_T)scale);
        }
        gni_ftranspose(t);
        for (int l = 0; l < GNI_FT_W; l++) gni_fput(b + 2 * (l * dst_ld + j), t[l], swap);
    }
    for (int l = 0; !whole && l < count; l++) {
        GNI_FT_T *to = b + 2 * l * dst_ld;
        for (int64_t j = 0; j < n; j++) {
            to[2 * j + re] = x[2 * j * GNI_FT_W + l] * (GNI_FT_T)scale;
            to[2 * j + 1 - re] = x[2 * j * GNI_FT_W + GNI_FT_W + l] * (GNI_FT_T)scale;
        }
    }
}

// ---- between the two steps of a long transform of a b points

#define GNI_FT_TWIST(q)                                                                            \
    {                                                                                              \
        const GNI_FT_T *u = turn + 2 * (k + q) * GNI_FT_W;                                         \
        gni_fv wr = gni_fload(u), wi = gni_fload(u + GNI_FT_W);                                    \
        x[q].r = gni_fload(rows + 2 * (k + q) * GNI_FT_W);                                         \
        x[q].i = gni_fload(rows + 2 * (k + q) * GNI_FT_W + GNI_FT_W);                              \
        if (more != NULL) {                                                                        \
            gni_fc v;                                                                              \
            v.r = wr;                                                                              \
            v.i = wi;                                                                              \
            v = gni_fcmul(v, gni_fset(more[2 * (k + q)]), gni_fset(more[2 * (k + q) + 1]));        \
            wr = v.r;                                                                              \
            wi = v.i;                                                                              \
        }                                                                                          \
        x[q] = gni_fcmul(x[q], wr, wi);                                                            \
    }
#define GNI_FT_OUT(q)                                                                              \
    gni_fstore(to + 2 * q * GNI_FT_W, x[q].r);                                                     \
    gni_fstore(to + 2 * q * GNI_FT_W + GNI_FT_W, x[q].i);
#define GNI_FT_TURN_V(q)                                                                           \
    if (q > 0)                                                                                     \
        x[q] = gni_fcmul(x[q], gni_fload(u + 2 * q * GNI_FT_W), gni_fload(u + 2 * q * GNI_FT_W + GNI_FT_W));

#if GNI_FT_W == 1
#define GNI_FT_EACH(X) X(0)
#define GNI_FT_BFW(x) GNI_UNUSED(x)
#elif GNI_FT_W == 2
#define GNI_FT_EACH GNI_FT_E2
#define GNI_FT_BFW gni_fbf2
#elif GNI_FT_W == 4
#define GNI_FT_EACH GNI_FT_E4
#define GNI_FT_BFW gni_fbf4
#elif GNI_FT_W == 8
#define GNI_FT_EACH GNI_FT_E8
#define GNI_FT_BFW gni_fbf8
#else
#define GNI_FT_EACH GNI_FT_E16
#define GNI_FT_BFW gni_fbf16
#endif

// Column transforms of a points to the rows of the second step: number j + l of block k / W, for the W
// columns from j on. `turn` has a vector for each row, `more` (or NULL) a factor for each.
static void GNI_FT(gni_ft_twist)(const void *columns, int64_t a, int64_t b, int64_t j, const void *table,
                                 const void *factors, void *dst) {
    const GNI_FT_T *rows = (const GNI_FT_T *)columns, *turn = (const GNI_FT_T *)table;
    const GNI_FT_T *more = (const GNI_FT_T *)factors;
    GNI_FT_T *to = (GNI_FT_T *)dst + 2 * j * GNI_FT_W;
    for (int64_t at = 0; at < a; at += GNI_FT_W, to += 2 * b * GNI_FT_W) {
        const int64_t k = GNI_MIN(at, a - GNI_FT_W);
        gni_fc x[GNI_FT_W];
        GNI_FT_EACH(GNI_FT_TWIST)
        gni_ftranspose(x);
        GNI_FT_EACH(GNI_FT_OUT)
    }
}

// The whole first step with a = W for the W columns from j on.
static void GNI_FT(gni_ft_head)(const void *src, int64_t b, int64_t j, const void *table, bool swap, void *dst) {
    const int64_t step = 2 * b, ld = 2 * GNI_FT_W;
    const GNI_FT_T *a = (const GNI_FT_T *)src + 2 * j, *u = (const GNI_FT_T *)table;
    GNI_FT_T *to = (GNI_FT_T *)dst + 2 * j * GNI_FT_W;
    gni_fc x[GNI_FT_W];
    GNI_FT_EACH(GNI_FT_GET)
    GNI_FT_BFW(x);
    GNI_FT_EACH(GNI_FT_TURN_V)
    gni_ftranspose(x);
    GNI_FT_EACH(GNI_FT_OUT)
}

// ---- helpers of real transforms and of Bluestein's

// y = scale x w, element by element.
static void GNI_FT(gni_ft_product)(void *dst, const void *src, const void *factors, int64_t n, double scale,
                                   bool swap_in, bool swap_out) {
    const GNI_FT_T *a = (const GNI_FT_T *)src, *w = (const GNI_FT_T *)factors;
    GNI_FT_T *b = (GNI_FT_T *)dst;
    int64_t k = 0;
    for (; k + GNI_FT_W <= n; k += GNI_FT_W) {
        gni_fc x = gni_fget(a + 2 * k, swap_in), t = gni_fget(w + 2 * k, false);
        x = gni_fcmul(x, t.r, t.i);
        x.r = x.r * gni_fset((GNI_FT_T)scale);
        x.i = x.i * gni_fset((GNI_FT_T)scale);
        gni_fput(b + 2 * k, x, swap_out);
    }
    for (; k < n; k++) {
        GNI_FT_T re = a[2 * k + (swap_in ? 1 : 0)], im = a[2 * k + (swap_in ? 0 : 1)];
        GNI_FT_T yr = (re * w[2 * k] - im * w[2 * k + 1]) * (GNI_FT_T)scale;
        GNI_FT_T yi = (re * w[2 * k + 1] + im * w[2 * k]) * (GNI_FT_T)scale;
        b[2 * k + (swap_out ? 1 : 0)] = yr;
        b[2 * k + (swap_out ? 0 : 1)] = yi;
    }
}

// Pairs k, h - k of a real transform of 2 h points and the complex one of h points over its even and
// odd elements, for k = from to to - 1 <= h / 2. turn[k] = exp(-pi i k / h) = table[k - from] times (cr, ci).
//   z to x:  e = (z[k] + z*[h-k]) / 2, o = (z[k] - z*[h-k]) / 2, x[k] = e - i turn o, x[h-k] = (e + i turn o)*
//   x to z:  the same with +i turn* and without the halves.
// `conj` takes the complex conjugate of x. In place too.
static void GNI_FT(gni_ft_fold)(void *dst, const void *src, const void *factors, int64_t from, int64_t to, int64_t h,
                                double cr, double ci, bool back, bool conj) {
    const GNI_FT_T *z = (const GNI_FT_T *)src, *w = (const GNI_FT_T *)factors - 2 * from;
    GNI_FT_T *y = (GNI_FT_T *)dst;
    const GNI_FT_T half = (GNI_FT_T)(back ? 1.0 : 0.5), sign = back ? (GNI_FT_T)-1 : (GNI_FT_T)1;
    const GNI_FT_T in = (GNI_FT_T)(back && conj ? -1 : 1), out = (GNI_FT_T)(!back && conj ? -1 : 1);
    const GNI_FT_T fr = (GNI_FT_T)cr, fi = (GNI_FT_T)ci;
    int64_t k = from;
#if GNI_FT_W > 1
    for (; k + GNI_FT_W <= to && 2 * (k + GNI_FT_W - 1) < h; k += GNI_FT_W) {
        const int64_t r = h - k - GNI_FT_W + 1; // the mirror images, backwards
        gni_fc a = gni_fget(z + 2 * k, false), b = gni_fget(z + 2 * r, false), t = gni_fget(w + 2 * k, false);
        b.r = gni_freverse(b.r, b.r);
        b.i = gni_freverse(b.i, b.i);
        gni_fv er = (a.r + b.r) * gni_fset(half), ei = (a.i - b.i) * gni_fset(half * in);
        gni_fc o;
        o.r = (a.r - b.r) * gni_fset(half);
        o.i = (a.i + b.i) * gni_fset(half * in);
        t = gni_fcmul(t, gni_fset(fr), gni_fset(fi));
        o = gni_fcmul(o, t.r, t.i * gni_fset(sign));
        // -i o forwards, +i o back
        gni_fv vr = o.i * gni_fset(sign), vi = o.r * gni_fset(-sign);
        a.r = er + vr;
        a.i = (ei + vi) * gni_fset(out);
        b.r = er - vr;
        b.i = (vi - ei) * gni_fset(out);
        b.r = gni_freverse(b.r, b.r);
        b.i = gni_freverse(b.i, b.i);
        gni_fput(y + 2 * k, a, false);
        gni_fput(y + 2 * r, b, false);
    }
#endif
    for (; k < to; k++) {
        const int64_t r = h - k;
        const GNI_FT_T ar = z[2 * k], ai = z[2 * k + 1] * in, br = z[2 * r], bi = z[2 * r + 1] * in;
        const GNI_FT_T tr = w[2 * k] * fr - w[2 * k + 1] * fi, ti = (w[2 * k] * fi + w[2 * k + 1] * fr) * sign;
        const GNI_FT_T er = (ar + br) * half, ei = (ai - bi) * half, pr = (ar - br) * half, pi = (ai + bi) * half;
        const GNI_FT_T vr = (pr * ti + pi * tr) * sign, vi = -(pr * tr - pi * ti) * sign;
        y[2 * k] = er + vr;
        y[2 * k + 1] = (ei + vi) * out;
        if (r == k) continue;
        y[2 * r] = er - vr;
        y[2 * r + 1] = (vi - ei) * out;
    }
}

static const gni_ft_isa GNI_FT(gni_ft_table) = {
    GNI_FT_W,
    GNI_FT_MAX_RADIX,
    GNI_FT(gni_ft_columns_in),
    GNI_FT(gni_ft_columns_out),
    GNI_FT(gni_ft_columns),
    GNI_FT(gni_ft_batch),
    GNI_FT(gni_ft_twist),
    GNI_FT(gni_ft_head),
    GNI_FT(gni_ft_product),
    GNI_FT(gni_ft_fold)};

#undef gni_fv
#undef gni_fvi
#undef gni_fc
#undef gni_fload
#undef gni_fstore
#undef gni_fset
#undef gni_ffma
#undef gni_ffnma
#undef gni_fadd
#undef gni_fsub
#undef gni_fmul
#undef gni_fmadd
#undef gni_fpair
#undef gni_fturn
#undef gni_fcmul
#undef gni_fbf2
#undef gni_fbf3
#undef gni_fbf4
#undef gni_fbf5
#undef gni_fbf7
#undef gni_fbf8
#undef gni_fbf9
#undef gni_fbf11
#undef gni_fbf13
#undef gni_fbf16
#undef gni_feven
#undef gni_fodd
#undef gni_flow
#undef gni_fhigh
#undef gni_freverse
#undef gni_fget
#undef gni_fput
#undef gni_ftranspose
#undef GNI_FT_EIGHTH
#undef GNI_FT_SWAP
#undef GNI_FT_T2
#undef GNI_FT_T4
#undef GNI_FT_T8
#undef GNI_FT_T16
#undef GNI_FT_E2
#undef GNI_FT_E3
#undef GNI_FT_E4
#undef GNI_FT_E5
#undef GNI_FT_E7
#undef GNI_FT_E8
#undef GNI_FT_E9
#undef GNI_FT_E11
#undef GNI_FT_E13
#undef GNI_FT_E16
#undef GNI_FT_LOAD
#undef GNI_FT_GET
#undef GNI_FT_TURN
#undef GNI_FT_STORE
#undef GNI_FT_PUT
#undef GNI_FT_PASS
#undef GNI_FT_TWIST
#undef GNI_FT_OUT
#undef GNI_FT_TURN_V
#undef GNI_FT_EACH
#undef GNI_FT_BFW
#endif // GNI_FFT_PASS
#ifdef GNI_SIMD_PASS
// >>simd_end
// Takes the short names of one SIMD pass back. Last room of a pass.

#undef gni_vf
#undef gni_vi
#undef gni_vu
#undef gni_vh
#undef gni_vk
#undef GNI_V_SSE2
#undef GNI_V_NEON
#undef GNI_V_FUSED
#undef gni_vf_bits
#undef gni_vi_float
#undef gni_vf_ubits
#undef gni_vu_float
#undef gni_vi_u
#undef gni_vu_i
#undef gni_vload
#undef gni_vloadi
#undef gni_vloadu
#undef gni_vloadh
#undef gni_vloadn
#undef gni_vloadin
#undef gni_vstore
#undef gni_vstorei
#undef gni_vstoreu
#undef gni_vstoreh
#undef gni_vstoren
#undef gni_vstorein
#undef gni_vset
#undef gni_vseti
#undef gni_vsetu
#undef gni_viota
#undef gni_vfma
#undef gni_vfnma
#undef gni_vsqrt
#undef gni_vabs
#undef gni_vneg
#undef gni_vcopysign
#undef gni_klt
#undef gni_kle
#undef gni_keq
#undef gni_kne
#undef gni_knan
#undef gni_kieq
#undef gni_kilt
#undef gni_kult
#undef gni_kgt
#undef gni_kge
#undef gni_kigt
#undef gni_kmask
#undef gni_kfrom
#undef gni_kand
#undef gni_kor
#undef gni_knot
#undef gni_kany
#undef gni_ksel
#undef gni_kseli
#undef gni_kselu
#undef gni_vlt
#undef gni_vle
#undef gni_vgt
#undef gni_vge
#undef gni_veq
#undef gni_vne
#undef gni_visnan
#undef gni_vieq
#undef gni_vilt
#undef gni_vsel
#undef gni_vseli
#undef gni_vmask01
#undef gni_vmin
#undef gni_vmax
#undef gni_vminc
#undef gni_vmaxc
#undef gni_vrint
#undef gni_vfloor
#undef gni_vceil
#undef gni_vtrunc
#undef gni_vtoi
#undef gni_vtou
#undef gni_vtoi_fast
#undef gni_itov
#undef gni_utov
#undef gni_vwiden
#undef gni_vnarrow
#undef gni_vf16_float
#undef gni_vfloat_f16
#undef gni_vbf16_float
#undef gni_vfloat_bf16
#undef gni_vload_f16
#undef gni_vstore_f16
#undef gni_vload_bf16
#undef gni_vstore_bf16
#undef gni_vmulhilo
#undef gni_vmad
#undef gni_vhead
#undef gni_vpow2
#undef gni_vscale
#undef gni_vsignof
#undef gni_vxor
#undef GNI_V_MAGIC
#undef GNI_V_MAGIC_BITS
#undef gni_vexp_reduce
#undef gni_vexp_poly
#undef gni_vexp_mid
#undef gni_vexp2_poly
#undef gni_vexp
#undef gni_vexp2
#undef gni_vexpm1
#undef gni_vlog_bits
#undef gni_vlog_split
#undef gni_vlog_poly
#undef gni_vlog_near1
#undef gni_vlog
#undef gni_vlog2
#undef gni_vlog10
#undef gni_vlog1p
#undef gni_vlog1p_up
#undef gni_vpi_rest
#undef gni_vpi_rest_big
#undef gni_vtrig_rare
#undef gni_vsin_poly
#undef gni_vsin
#undef gni_vcos
#undef gni_vtan
#undef GNI_V_TRIG_MAX
#undef gni_vasin_poly
#undef gni_vatan_poly
#undef gni_vasin
#undef gni_vacos
#undef gni_vatan
#undef gni_vatan2
#undef GNI_V_PIO2
#undef GNI_V_PIO2_LO
#undef gni_vhyp_parts
#undef gni_vsinh
#undef gni_vcosh
#undef gni_vtanh
#undef gni_vasinh
#undef gni_vacosh
#undef gni_vatanh
#undef gni_verf
#undef gni_vgelu
#undef gni_vsigmoid
#undef gni_vsoftplus
#undef gni_vcbrt
#undef gni_vhypot
#undef gni_vlog2_pair
#undef gni_vpow_rare
#undef gni_vpow
#undef gni_vfmod
#undef gni_vfmod_rare
#undef gni_vmod
#undef gni_vfloor_div
#undef gni_vphilox
#undef gni_vmuladd
#undef gni_vexponential
#undef gni_vnormal2
#endif // GNI_SIMD_PASS

#if defined(GPUNUM_IMPLEMENTATION) && !defined(GNI_SIMD_PASS) && !defined(GPUNUM_IMPLEMENTED_2)
#define GPUNUM_IMPLEMENTED_2
// ------------------------------------------------------------------------------------------
// >>gemm_cpu
// The matrix product on the CPU: which path, which blocks, which threads. From outside: gni_gemm,
// gni_gemm_work, gni_gemm_work_free, gni_gemm_cpu.

// c (m,n) = act(a (m,k) b (k,n) + bias), or with c added before bias and act when `accumulate` is set.
// Strides are in elements and may be 0 or negative for a and b. `in` is that of a and b: F32, F16, BF16,
// F64, I32 or I64; `out` is the same, or for F16 and BF16 also F32 (they are summed in float32 and
// rounded once). c must not overlap a or b.
typedef struct gni_gemm {
    gn_dtype in, out;
    int64_t m, n, k;
    const void *a;
    int64_t a_rs, a_cs;
    const void *b;
    int64_t b_rs, b_cs;
    void *c;
    int64_t c_rs; // columns of c are contiguous
    bool accumulate;
    const float *bias; // (n) or NULL; not for F64 and integers
    int act;           // 0 none, 1 relu
    int64_t batch;     // products, with these offsets in elements (NULL: all zero)
    const int64_t *a_off, *b_off, *c_off;
} gni_gemm;

// Memory and facts kept from call to call. Zeroed at the start; one call at a time.
typedef struct gni_gemm_work {
    void *data;
    size_t bytes;
    int64_t l2; // bytes of the second cache; 0 = not asked yet
    bool pairs; // the CPU multiplies pairs of bfloat16
} gni_gemm_work;

typedef enum gni_gemm_path {
    GNI_GEMM_BY_TILES, // register tiles over panels, or over operands where they are
    GNI_GEMM_BY_DOTS,  // few rows or columns, the other operand contiguous along k
    GNI_GEMM_BY_ROWS   // one row or column, the matrix contiguous along it
} gni_gemm_path;

#define GNI_GEMM_DEEP      2048    // bytes of a row of a panel: k is cut to this
#define GNI_GEMM_WIDE      4194304 // bytes of a packed block of b
#define GNI_GEMM_DOTS_MOST 16      // rows of the narrow operand that still go by dots
#define GNI_GEMM_SMALL     64      // sides of products that are not worth planning
#define GNI_GEMM_MAX_LANES 16
#define GNI_GEMM_THREADED  130000.0 // multiply-adds below which one thread is faster

typedef struct gni_gemm_job {
    // The product that is computed: the caller's, or its transpose when `turned`; the row or the few
    // rows are then always a's.
    int64_t m, n, k;
    const char *a, *b;
    char *c;
    int64_t a_rs, a_cs, b_rs, b_cs, c_rs, c_cs;
    bool turned;
    const gni_gemm *d;
    const gni_gemm_isa *isa;
    const gni_gemm_family *family;
    gni_gemm_pack_fn pack;
    gni_gemm_path path;
    int64_t in_bytes, sum_bytes, out_bytes; // of an element of a and b, of a sum, of c
    int64_t pair;    // elements along k that are packed into one, of sum_bytes
    bool sums_apart; // c is too narrow to hold sums while k is cut
    bool pack_a, pack_b, fetch;
    int64_t mc, nc, kc;     // a packed block of a is (mc,kc), of b (kc,nc)
    int64_t task_m, task_n; // of c, per task
    int64_t tasks_m, tasks_n;
    int64_t a_bytes, b_bytes, apart_bytes; // of a worker's memory
    char *work;
} gni_gemm_job;

static const gni_gemm_isa *gni_gemm_isa_of(int isa) {
#ifdef GNI_X86
    if (isa >= 3) return &gni_gemm_isa_avx512;
#endif
#ifdef GNI_X86
    if (isa >= 2) return &gni_gemm_isa_avx2;
#endif
#if defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
    if (isa >= 1) return &gni_gemm_isa_base;
#endif
    GNI_UNUSED(isa);
    return &gni_gemm_isa_plain;
}

static int64_t gni_gemm_round(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

static float gni_gemm_widen(gn_dtype t, const void *p, int64_t i) {
    if (t == GN_F16) return gni_f16_to_f32(((const uint16_t *)p)[i]);
    if (t == GN_BF16) return gni_bf16_to_f32(((const uint16_t *)p)[i]);
    return ((const float *)p)[i];
}

static void gni_gemm_narrow(gn_dtype t, void *p, int64_t i, float v) {
    if (t == GN_F16) {
        ((uint16_t *)p)[i] = gni_f32_to_f16(v);
    } else if (t == GN_BF16) {
        ((uint16_t *)p)[i] = gni_f32_to_bf16(v);
    } else {
        ((float *)p)[i] = v;
    }
}

// What is done to a block of c after its last k: the place for a general epilogue. The tiles have done
// float32's bias and act already; this does what they cannot.
// `sum` (rows,cols) holds the float32 sums when c has another type.
static void gni_gemm_finish(const gni_gemm_job *j, void *c, int64_t rows, int64_t cols, int64_t j0,
                            const float *sum) {
    const gni_gemm *d = j->d;
    if (sum != NULL) {
        for (int64_t i = 0; i < rows; i++, sum += cols) {
            for (int64_t q = 0; q < cols; q++) {
                float v = sum[q];
                if (d->accumulate) v += gni_gemm_widen(d->out, c, i * d->c_rs + q);
                if (d->bias != NULL) v += d->bias[j0 + q];
                gni_gemm_narrow(d->out, c, i * d->c_rs + q, d->act == 1 && v < 0 ? 0 : v);
            }
        }
        return;
    }
    if (d->act != 1 || d->out == GN_F32) return;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t q = i * d->c_rs; q < i * d->c_rs + cols; q++) {
            if (d->out == GN_F64 && ((double *)c)[q] < 0) ((double *)c)[q] = 0;
            if (d->out == GN_I32 && ((int32_t *)c)[q] < 0) ((int32_t *)c)[q] = 0;
            if (d->out == GN_I64 && ((int64_t *)c)[q] < 0) ((int64_t *)c)[q] = 0;
        }
    }
}

// Rows of the next panel of a when `left` remain: full tiles, the last two of about equal height.
static int64_t gni_gemm_panel_rows(const gni_gemm_family *f, int64_t left) {
    int64_t rows = left >= 2 * f->rows ? f->rows : left > f->rows ? (left + 1) / 2 : left;
    while (f->tile[0][rows] == NULL) rows--;
    return rows;
}

// Columns of the next panel of b when `left` remain.
static int64_t gni_gemm_panel_cols(const gni_gemm_family *f, int64_t left) {
    const int64_t lanes = f->lanes;
    if (f->tile[2][1] == NULL || left > lanes + lanes / 2) return left > lanes ? 2 * lanes : lanes;
    return left > lanes / 2 ? lanes : lanes / 2;
}

// The tiles for panels of that width.
static gni_gemm_tile_fn const *gni_gemm_tiles_of(const gni_gemm_family *f, int64_t width) {
    return f->tile[width > f->lanes ? 1 : width < f->lanes ? 2 : 0];
}

// A block of c: what one task computes.
typedef struct gni_gemm_block {
    const gni_gemm_job *job;
    const char *a, *b; // first of the block's rows and columns
    char *c;
    int64_t rows, cols;
    const float *bias; // of the block's first column (or first row, when turned)
    char *pack_a, *pack_b;
    float *apart; // sums (rows,cols), or where a turned tile waits
} gni_gemm_block;

// Steps of a tile over kc elements.
static int64_t gni_gemm_steps(const gni_gemm_job *j, int64_t kc) {
    return (kc + j->pair - 1) / j->pair;
}

static void gni_gemm_pack_b(const gni_gemm_block *s, int64_t jc, int64_t nc, int64_t pc,
                            int64_t kc) {
    const gni_gemm_job *j = s->job;
    const int64_t steps = gni_gemm_steps(j, kc);
    char *to = s->pack_b;
    for (int64_t q = 0; q < nc;) {
        const int64_t width = gni_gemm_panel_cols(j->family, nc - q), w = GNI_MIN(width, nc - q);
        if (j->pack_b || (w < width && !j->family->clip)) {
            const char *from = s->b + (pc * j->b_rs + (jc + q) * j->b_cs) * j->in_bytes;
            j->pack(to, width, from, j->b_cs, j->b_rs, w, kc);
            to += width * steps * j->sum_bytes;
        }
        q += width;
    }
}

static void gni_gemm_pack_a(const gni_gemm_block *s, int64_t ic, int64_t mc, int64_t pc,
                            int64_t kc) {
    const gni_gemm_job *j = s->job;
    const int64_t steps = gni_gemm_steps(j, kc);
    char *to = s->pack_a;
    for (int64_t i = 0; i < mc;) {
        const int64_t rows = gni_gemm_panel_rows(j->family, mc - i);
        const char *from = s->a + ((ic + i) * j->a_rs + pc * j->a_cs) * j->in_bytes;
        j->pack(to, rows, from, j->a_rs, j->a_cs, rows, kc);
        to += rows * steps * j->sum_bytes;
        i += rows;
    }
}

// A tile of the transposed product, (rows,width) by way of memory that stays close.
static void gni_gemm_turned_tile(const gni_gemm_block *s, const gni_gemm_tile *t,
                                 gni_gemm_tile_fn tile, int64_t rows, int64_t width) {
    gni_gemm_tile aside = *t;
    aside.add = false;
    aside.act = 0;
    aside.bias = NULL;
    aside.c = s->apart;
    aside.c_rs = width;
    aside.cols = s->job->family->clip ? t->cols : (int)width;
    tile(&aside);
    s->job->isa->put_turned(t, s->apart, rows, t->cols, width);
}

// The tiles of one panel of b, nc columns wide or less, for mc rows of a from row ic.
static void gni_gemm_panel(const gni_gemm_block *s, gni_gemm_tile *t, int64_t ic, int64_t mc,
                           int64_t jq, int64_t pc, int64_t width) {
    const gni_gemm_job *j = s->job;
    gni_gemm_tile_fn const *tile = gni_gemm_tiles_of(j->family, width);
    const float *bias = t->bias;
    const char *packed_a = s->pack_a;
    for (int64_t i = 0; i < mc;) {
        const int64_t rows = gni_gemm_panel_rows(j->family, mc - i);
        if (j->pack_a) {
            t->a = packed_a;
            t->a_rs = 1;
            t->a_cs = rows;
            packed_a += rows * t->k * j->sum_bytes;
        } else {
            t->a = s->a + ((ic + i) * j->a_rs + pc * j->a_cs) * j->in_bytes;
        }
        if (j->turned) {
            t->c = s->c + ((ic + i) * j->c_rs + jq * j->c_cs) * j->sum_bytes;
            if (bias != NULL) t->bias = bias + ic + i;
            gni_gemm_turned_tile(s, t, tile[rows], rows, width);
        } else {
            char *c = j->sums_apart ? (char *)s->apart : s->c;
            t->c = c + ((ic + i) * t->c_rs + jq) * j->sum_bytes;
            tile[rows](t);
        }
        i += rows;
    }
}

// All tiles of the block of c at (ic,jc), (mc,nc), for k from pc to pc + kc.
static void gni_gemm_tiles(const gni_gemm_block *s, int64_t ic, int64_t mc, int64_t jc, int64_t nc,
                           int64_t pc, int64_t kc) {
    const gni_gemm_job *j = s->job;
    const bool last = pc + kc >= j->k && !j->sums_apart && j->d->out == GN_F32;
    const char *packed_b = s->pack_b;
    gni_gemm_tile t;
    t.k = gni_gemm_steps(j, kc);
    t.a_rs = j->a_rs;
    t.a_cs = j->a_cs;
    t.act = last ? j->d->act : 0;
    t.fetch = j->fetch;
    t.add = pc > 0 || (j->d->accumulate && !j->sums_apart);
    t.c_rs = j->sums_apart ? s->cols : j->turned ? j->c_cs : j->c_rs;
    for (int64_t q = 0; q < nc;) {
        const int64_t width = gni_gemm_panel_cols(j->family, nc - q);
        t.cols = (int)GNI_MIN(width, nc - q);
        t.bias = !last || s->bias == NULL ? NULL : j->turned ? s->bias : s->bias + jc + q;
        if (j->pack_b || (t.cols < width && !j->family->clip)) {
            t.b = packed_b;
            t.b_rs = width;
            packed_b += width * t.k * j->sum_bytes;
        } else {
            t.b = s->b + (pc * j->b_rs + jc + q) * j->in_bytes;
            t.b_rs = j->b_rs;
        }
        gni_gemm_panel(s, &t, ic, mc, jc + q, pc, width);
        q += width;
    }
}

static void gni_gemm_run_tiles(const gni_gemm_block *s) {
    const gni_gemm_job *j = s->job;
    for (int64_t jc = 0; jc < s->cols; jc += j->nc) {
        const int64_t nc = GNI_MIN(j->nc, s->cols - jc);
        for (int64_t pc = 0; pc < j->k; pc += j->kc) {
            const int64_t kc = GNI_MIN(j->kc, j->k - pc);
            gni_gemm_pack_b(s, jc, nc, pc, kc);
            for (int64_t ic = 0; ic < s->rows; ic += j->mc) {
                const int64_t mc = GNI_MIN(j->mc, s->rows - ic);
                if (j->pack_a) gni_gemm_pack_a(s, ic, mc, pc, kc);
                gni_gemm_tiles(s, ic, mc, jc, nc, pc, kc);
            }
        }
    }
}

static void gni_gemm_run_dots(const gni_gemm_block *s) {
    const gni_gemm_job *j = s->job;
    gni_gemm_dots t;
    t.m = s->rows;
    t.n = s->cols;
    t.b_cs = j->b_cs;
    t.c = (float *)(void *)s->c;
    t.c_rs = j->c_rs;
    t.c_cs = j->c_cs;
    t.bias_rs = j->turned ? 1 : 0;
    t.bias_cs = j->turned ? 0 : 1;
    for (int64_t pc = 0; pc < j->k; pc += j->kc) {
        t.k = GNI_MIN(j->kc, j->k - pc);
        const float *a = (const float *)(const void *)s->a + pc * j->a_cs;
        if (j->pack_a) {
            j->pack(s->pack_a, t.k, a, j->a_cs, j->a_rs, t.k, t.m);
            a = (const float *)(const void *)s->pack_a;
        }
        t.a = a;
        t.a_rs = j->pack_a ? t.k : j->a_rs;
        t.b = (const float *)(const void *)s->b + pc;
        t.add = pc > 0 || j->d->accumulate;
        t.act = pc + t.k < j->k ? 0 : j->d->act;
        t.bias = pc + t.k < j->k ? NULL : s->bias;
        j->isa->dots(&t);
    }
}

static void gni_gemm_run_rows(const gni_gemm_block *s) {
    const gni_gemm_job *j = s->job;
    const gni_gemm *d = j->d;
    float *c = (float *)(void *)s->c, *y = j->c_cs == 1 && !d->accumulate ? c : s->apart;
    gni_gemm_rows t;
    t.n = s->cols;
    t.k = j->k;
    t.s = (const float *)(const void *)s->a;
    t.s_stride = j->a_cs;
    t.b = (const float *)(const void *)s->b;
    t.b_rs = j->b_rs;
    t.y = y;
    memset(y, 0, (size_t)t.n * sizeof *y);
    j->isa->add_rows(&t);
    if (y == c && d->bias == NULL && d->act == 0) return;
    for (int64_t i = 0; i < t.n; i++) {
        float v = y[i];
        if (d->accumulate) v += c[i * j->c_cs];
        if (d->bias != NULL) v += s->bias[j->turned ? 0 : i];
        c[i * j->c_cs] = d->act == 1 && v < 0 ? 0 : v;
    }
}

static void gni_gemm_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_gemm_job *j = (const gni_gemm_job *)arg;
    const gni_gemm *d = j->d;
    gni_gemm_block s;
    s.job = j;
    s.pack_a = j->work + worker * (j->a_bytes + j->b_bytes + j->apart_bytes);
    s.pack_b = s.pack_a + j->a_bytes;
    s.apart = (float *)(void *)(s.pack_b + j->b_bytes);
    for (int64_t task = begin; task < end; task++) {
        const int64_t index = task / (j->tasks_m * j->tasks_n),
                      rest = task % (j->tasks_m * j->tasks_n);
        const int64_t i0 = rest / j->tasks_n * j->task_m, j0 = rest % j->tasks_n * j->task_n;
        const int64_t *a_off = j->turned ? d->b_off : d->a_off,
                      *b_off = j->turned ? d->a_off : d->b_off;
        s.rows = GNI_MIN(j->task_m, j->m - i0);
        s.cols = GNI_MIN(j->task_n, j->n - j0);
        s.bias = d->bias == NULL ? NULL : d->bias + (j->turned ? i0 : j0);
        s.a = j->a + ((a_off != NULL ? a_off[index] : 0) + i0 * j->a_rs) * j->in_bytes;
        s.b = j->b + ((b_off != NULL ? b_off[index] : 0) + j0 * j->b_cs) * j->in_bytes;
        s.c = j->c + ((d->c_off != NULL ? d->c_off[index] : 0) + i0 * j->c_rs + j0 * j->c_cs) *
                         j->out_bytes;
        if (j->path == GNI_GEMM_BY_DOTS) {
            gni_gemm_run_dots(&s);
        } else if (j->path == GNI_GEMM_BY_ROWS) {
            gni_gemm_run_rows(&s);
        } else {
            gni_gemm_run_tiles(&s);
            if (!j->turned)
                gni_gemm_finish(j, s.c, s.rows, s.cols, j0, j->sums_apart ? s.apart : NULL);
        }
    }
}

// k = 0: sums of nothing.
static void gni_gemm_empty(const gni_gemm_job *j) {
    const gni_gemm *d = j->d;
    const float zero = 0;
    for (int64_t q = 0; q < d->batch; q++) {
        char *c = (char *)d->c + (d->c_off != NULL ? d->c_off[q] : 0) * j->out_bytes;
        for (int64_t i = 0; i < d->m; i++, c += d->c_rs * j->out_bytes) {
            if (!d->accumulate) memset(c, 0, (size_t)(d->n * j->out_bytes));
            if (j->family != j->isa->f32) { // numbers without bias
                gni_gemm_finish(j, c, 1, d->n, 0, NULL);
                continue;
            }
            for (int64_t x = 0; x < d->n; x++)
                gni_gemm_finish(j, c + x * j->out_bytes, 1, 1, x, &zero);
        }
    }
}

static void gni_gemm_choose_family(gni_gemm_job *j) {
    const gni_gemm *d = j->d;
    const bool wide = d->in == GN_F64 || d->in == GN_I64,
               half = d->in == GN_F16 || d->in == GN_BF16;
    j->in_bytes = wide ? 8 : half ? 2 : 4;
    j->sum_bytes = wide ? 8 : 4;
    j->pair = 1;
    j->out_bytes = wide ? 8 : d->out == GN_F16 || d->out == GN_BF16 ? 2 : 4;
    j->family = d->in == GN_F64   ? j->isa->f64
                : d->in == GN_I64 ? j->isa->i64
                : d->in == GN_I32 ? j->isa->i32
                                  : j->isa->f32;
    j->pack = wide               ? j->isa->pack_64
              : d->in == GN_F16  ? j->isa->pack_f16
              : d->in == GN_BF16 ? j->isa->pack_bf16
                                 : j->isa->pack_f32;
    j->sums_apart = j->out_bytes < j->sum_bytes;
}

static void gni_gemm_take_operands(gni_gemm_job *j, bool turned) {
    const gni_gemm *d = j->d;
    j->turned = turned;
    j->c = (char *)d->c;
    j->k = d->k;
    if (turned) {
        j->m = d->n, j->n = d->m;
        j->a = (const char *)d->b, j->a_rs = d->b_cs, j->a_cs = d->b_rs;
        j->b = (const char *)d->a, j->b_rs = d->a_cs, j->b_cs = d->a_rs;
        j->c_rs = 1, j->c_cs = d->c_rs;
    } else {
        j->m = d->m, j->n = d->n;
        j->a = (const char *)d->a, j->a_rs = d->a_rs, j->a_cs = d->a_cs;
        j->b = (const char *)d->b, j->b_rs = d->b_rs, j->b_cs = d->b_cs;
        j->c_rs = d->c_rs, j->c_cs = 1;
    }
}

// m rows of b's narrow partner, the other operand contiguous along k: do dots beat tiles?
static bool gni_gemm_dots_pay(const gni_gemm_job *j, int64_t m, bool contiguous) {
    if (m > GNI_GEMM_DOTS_MOST) return false;
    if (m <= 4 && contiguous) return true;
    const int64_t lanes = j->family->lanes;
    return j->k >= 8 * lanes * (m <= lanes / 2 ? 1 : 4);
}

// Lines this far apart fall into one set of the first cache.
static bool gni_gemm_collide(const gni_gemm_job *j, int64_t stride) {
    return stride != 0 && stride * j->in_bytes % 4096 == 0;
}

// Operands are read where they are as long as the caches stand that.
static void gni_gemm_choose_packing(gni_gemm_job *j, int64_t l2) {
    const int64_t much = 3 * l2 / j->in_bytes, lanes = j->family->lanes;
    if (j->a_cs == 1 || j->a_rs == 1) {
        j->pack_a = j->n > 4 * lanes && gni_gemm_collide(j, j->a_cs == 1 ? j->a_rs : j->a_cs);
        if (j->n > 16 * lanes && j->m * j->k > much) j->pack_a = true;
    } else {
        j->pack_a = j->n > 4 * lanes;
    }
    j->pack_b = j->b_cs != 1 || (j->m > 64 && j->k > 128 && gni_gemm_collide(j, j->b_rs)) ||
                (j->m > 192 && j->k * j->n > much);
}

// Which path, from the whole product, so that no cut into tasks changes the order of any sum.
static void gni_gemm_choose_path(gni_gemm_job *j, const gni_gemm_work *w) {
    const gni_gemm *d = j->d;
    const int64_t lanes = j->family->lanes;
    const bool f32 = d->in == GN_F32 && d->out == GN_F32;
    j->path = GNI_GEMM_BY_TILES;
    j->pack_a = j->pack_b = true;
    j->fetch = d->m * d->n * j->sum_bytes > w->l2 / 2;
    gni_gemm_take_operands(j, false);
    if (j->in_bytes < j->sum_bytes) return;
    if (f32 && d->b_rs == 1 && gni_gemm_dots_pay(j, d->m, d->a_cs == 1)) {
        j->path = GNI_GEMM_BY_DOTS;
        j->pack_a = d->a_cs != 1;
        return;
    }
    if (f32 && d->a_cs == 1 && gni_gemm_dots_pay(j, d->n, d->b_rs == 1)) {
        j->path = GNI_GEMM_BY_DOTS;
        gni_gemm_take_operands(j, true);
        j->pack_a = d->b_rs != 1;
        return;
    }
    if (f32 && ((d->m == 1 && d->b_cs == 1) || (d->n == 1 && d->a_rs == 1))) {
        j->path = GNI_GEMM_BY_ROWS;
        gni_gemm_take_operands(j, d->m != 1 || d->b_cs != 1);
        return;
    }
    // Lanes that would be left empty at the right edge may be full along the other side.
    if (f32 && d->n < 2 * lanes && d->m > 2 * d->n && d->a_rs == 1 && d->n % lanes != 0)
        gni_gemm_take_operands(j, true);
    gni_gemm_choose_packing(j, w->l2);
}

static void gni_gemm_choose_blocks(gni_gemm_job *j, const gni_gemm_work *w) {
    if (j->path == GNI_GEMM_BY_ROWS) {
        j->kc = j->k;
        return;
    }
    if (j->path == GNI_GEMM_BY_DOTS) {
        j->kc = 6144 / j->m / 64 * 64;
        return;
    }
    const int64_t deep = GNI_GEMM_DEEP / j->sum_bytes * j->pair, cuts = (j->k + deep - 1) / deep;
    j->kc = gni_gemm_round((j->k + cuts - 1) / cuts, j->pair);
    const int64_t bytes = gni_gemm_steps(j, j->kc) * j->sum_bytes;
    j->mc = GNI_MAX(w->l2 / 4 / bytes / j->family->rows, 1) * j->family->rows;
    j->nc = GNI_MAX(GNI_GEMM_WIDE / bytes / (2 * j->family->lanes), 1) * 2 * j->family->lanes;
}

// Cuts c into tasks. A finer cut packs more often, a coarser one leaves threads idle.
static void gni_gemm_choose_tasks(gni_gemm_job *j, int threads) {
    const int64_t lanes = j->family->lanes;
    int64_t best_m = 1, best_n = 1;
    double best = 0;
    for (int64_t tm = 1; tm <= threads; tm++) {
        const int64_t tn = threads / tm;
        const int64_t rows = (j->m + tm - 1) / tm,
                      cols = gni_gemm_round((j->n + tn - 1) / tn, lanes);
        // Packing an element costs about as much as this many multiply-adds.
        const double pack =
            (j->pack_a ? 4.0 : 1.0) * (double)rows + (j->pack_b ? 4.0 : 1.0) * (double)cols;
        const double cost = (double)rows * (double)cols + pack;
        if (tm == 1 || cost < best) best = cost, best_m = tm, best_n = tn;
    }
    j->task_m = (j->m + best_m - 1) / best_m;
    j->task_n = GNI_MIN(gni_gemm_round((j->n + best_n - 1) / best_n, lanes), j->n);
}

static void gni_gemm_count_tasks(gni_gemm_job *j) {
    if (j->sums_apart) {
        j->task_m = GNI_MIN(j->task_m, 512);
        j->task_n = GNI_MIN(j->task_n, 1024);
    }
    j->tasks_m = (j->m + j->task_m - 1) / j->task_m;
    j->tasks_n = (j->n + j->task_n - 1) / j->task_n;
}

static void gni_gemm_choose_memory(gni_gemm_job *j) {
    const int64_t wide = 2 * j->family->lanes, pad = 128;
    j->a_bytes = j->b_bytes = j->apart_bytes = 0;
    if (j->path == GNI_GEMM_BY_ROWS) {
        if (j->d->accumulate || j->c_cs != 1) j->apart_bytes = gni_gemm_round(j->task_n * 4, 64);
        return;
    }
    const int64_t kc = gni_gemm_steps(j, GNI_MIN(j->kc, j->k));
    const int64_t rows = j->path == GNI_GEMM_BY_TILES ? GNI_MIN(j->mc, j->task_m) : j->task_m;
    if (j->pack_a) j->a_bytes = gni_gemm_round(rows * kc * j->sum_bytes + pad, 64);
    if (j->path == GNI_GEMM_BY_DOTS) return;
    const int64_t cols = j->pack_b ? gni_gemm_round(GNI_MIN(j->nc, j->task_n), wide) : wide;
    if (j->pack_b || !j->family->clip)
        j->b_bytes = gni_gemm_round(cols * kc * j->sum_bytes + pad, 64);
    if (j->sums_apart) j->apart_bytes = gni_gemm_round(j->task_m * j->task_n * 4, 64);
    if (j->turned) j->apart_bytes = wide * GNI_GEMM_MAX_ROWS * 4;
}

static bool gni_gemm_reserve(gn_context *g, gni_gemm_work *w, size_t bytes) {
    if (bytes <= w->bytes) return true;
    gni_free(g, w->data);
    w->bytes = 0;
    w->data = gni_alloc(g, bytes);
    if (w->data == NULL) return false;
    w->bytes = bytes;
    return true;
}

static void gni_gemm_work_free(gn_context *g, gni_gemm_work *w) {
    gni_free(g, w->data);
    w->data = NULL;
    w->bytes = 0;
}

static int64_t gni_gemm_ask_l2(void) {
    long bytes = 0;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    if (bytes < 128 * 1024) bytes = 512 * 1024;
    return (int64_t)GNI_MIN(bytes, 2048L * 1024);
}

// A product too small for planning: tiles over a and b where they are, edges by way of the stack.
static void gni_gemm_small(const gni_gemm_isa *isa, const gni_gemm *d) {
    const gni_gemm_family *f = isa->f32;
    float edge[GNI_GEMM_SMALL * 2 * GNI_GEMM_MAX_LANES + GNI_GEMM_MAX_LANES];
    gni_gemm_tile t;
    t.k = d->k;
    t.a_rs = d->a_rs;
    t.a_cs = d->a_cs;
    t.c_rs = d->c_rs;
    t.act = d->act;
    t.add = d->accumulate;
    t.fetch = false;
    for (int64_t q = 0; q < d->n;) {
        const int64_t width = gni_gemm_panel_cols(f, d->n - q);
        const float *b = (const float *)d->b + q * d->b_cs;
        gni_gemm_tile_fn const *tile = gni_gemm_tiles_of(f, width);
        t.cols = (int)GNI_MIN(width, d->n - q);
        t.bias = d->bias == NULL ? NULL : d->bias + q;
        t.b = b;
        t.b_rs = d->b_rs;
        if ((t.cols < width && !f->clip) || d->b_cs != 1) {
            isa->pack_f32(edge, width, b, d->b_cs, d->b_rs, t.cols, d->k);
            t.b = edge;
            t.b_rs = width;
        }
        for (int64_t i = 0; i < d->m;) {
            const int64_t rows = gni_gemm_panel_rows(f, d->m - i);
            t.a = (const float *)d->a + i * d->a_rs;
            t.c = (float *)d->c + i * d->c_rs + q;
            tile[rows](&t);
            i += rows;
        }
        q += width;
    }
}

static bool gni_gemm_is_small(const gni_gemm *d) {
    return d->in == GN_F32 && d->out == GN_F32 && d->batch == 1 && d->a_off == NULL &&
           d->b_off == NULL && d->c_off == NULL && d->m >= 4 && d->m <= GNI_GEMM_SMALL &&
           d->n >= 4 && d->n <= GNI_GEMM_SMALL && d->k > 0 && d->k <= GNI_GEMM_SMALL;
}

#ifdef GNI_X86
static uint32_t gni_gemm_cpuid(uint32_t leaf, uint32_t part) {
    uint32_t a = leaf, b, c = part, d;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return a;
}
// Whether the CPU has AVX512-BF16.
static bool gni_gemm_ask_pairs(void) {
    if (gni_gemm_cpuid(0, 0) < 7 || gni_gemm_cpuid(7, 0) < 1) return false;
    return (gni_gemm_cpuid(7, 1) >> 5 & 1u) != 0;
}
#else
static bool gni_gemm_ask_pairs(void) { return false; }
#endif

// The smallest biased exponent of the bfloat16 numbers of an (outer,inner) operand, zeros aside: 0 when
// one is subnormal.
typedef struct gni_gemm_least {
    const uint16_t *p;
    int64_t outer, inner, os, is;
    int64_t part;        // rows per part
    uint16_t result[64]; // by part
} gni_gemm_least;

static void gni_gemm_least_task(void *arg, int64_t begin, int64_t end, int worker) {
    gni_gemm_least *l = (gni_gemm_least *)arg;
    GNI_UNUSED(worker);
    for (int64_t part = begin; part < end; part++) {
        uint16_t least = 0xFFFF;
        const int64_t stop = GNI_MIN((part + 1) * l->part, l->outer);
        for (int64_t i = part * l->part; i < stop; i++) {
            const uint16_t *p = l->p + i * l->os;
            for (int64_t q = 0; q < l->inner; q++) {
                // Less one, zero is the largest.
                const uint16_t v = (uint16_t)((p[q * l->is] & 0x7FFF) - 1);
                least = v < least ? v : least;
            }
        }
        l->result[part] = least;
    }
}

static int gni_gemm_least_exponent(gni_pool *pool, const void *p, int64_t rows, int64_t cols,
                                   int64_t rs, int64_t cs) {
    gni_gemm_least l;
    l.p = (const uint16_t *)p;
    l.outer = cs == 1 ? rows : cols;
    l.inner = cs == 1 ? cols : rows;
    l.os = cs == 1 ? rs : cs;
    l.is = cs == 1 ? cs : rs;
    l.part = (l.outer + 63) / 64;
    const int64_t parts = (l.outer + l.part - 1) / l.part;
    gni_parallel(pool, parts, 1 + 65536 / (l.part * l.inner), gni_gemm_least_task, &l);
    int least = 0xFFFF;
    for (int64_t i = 0; i < parts; i++) least = GNI_MIN(least, (int)l.result[i]);
    return least == 0xFFFF ? 255 : (least + 1) >> 7;
}

// bfloat16 by the CPU's own product of pairs, which takes subnormal operands and sums for zero: only when
// there can be none. Each product is a multiple of 2^(ea + eb - 268), for the least exponents ea and eb,
// and so is each sum, rounded or not; then the result is that of multiply-adds in order, to the bit.
static void gni_gemm_choose_pairs(gni_gemm_job *j, gni_pool *pool, const gni_gemm_work *w) {
    const gni_gemm *d = j->d;
    if (!w->pairs || j->isa->bf16 == NULL || d->in != GN_BF16 || d->batch != 1) return;
    if (d->m < 8 || d->n < 8 || d->k < 16) return;
    const int a = gni_gemm_least_exponent(pool, d->a, d->m, d->k, d->a_rs, d->a_cs);
    const int b = gni_gemm_least_exponent(pool, d->b, d->k, d->n, d->b_rs, d->b_cs);
    if (a < 1 || b < 1 || a + b < 268 - 126) return;
    j->family = j->isa->bf16;
    j->pack = j->isa->pack_pairs;
    j->pair = 2;
}

#ifdef GPUNUM_USE_CBLAS
// Other names for the constants of a cblas.h that the program may have included or not.
#if defined(CBLAS_H) || defined(__MKL_CBLAS_H__)
#define GNI_CBLAS_ROWS  CblasRowMajor
#define GNI_CBLAS_PLAIN CblasNoTrans
#define GNI_CBLAS_TURN  CblasTrans
#else
#define GNI_CBLAS_ROWS  101
#define GNI_CBLAS_PLAIN 111
#define GNI_CBLAS_TURN  112
#ifdef __cplusplus
extern "C" {
#endif
void cblas_sgemm(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                 const float *a, int a_step, const float *b, int b_step, float beta, float *c,
                 int c_step);
void cblas_dgemm(int order, int turn_a, int turn_b, int m, int n, int k, double alpha,
                 const double *a, int a_step, const double *b, int b_step, double beta, double *c,
                 int c_step);
#ifdef __cplusplus
}
#endif
#endif

#define GNI_GEMM_BLAS_SIDE 16       // sides below which BLAS is slower
#define GNI_GEMM_BLAS_WORK 200000.0 // multiply-adds

// Whether BLAS can say a matrix of (rows,cols) with these strides; its step is then *step.
static bool gni_gemm_blas_matrix(int64_t rows, int64_t cols, int64_t rs, int64_t cs,
                                 int64_t *step) {
    *step = cs == 1 ? rs : cs;
    return (cs == 1 && rs >= cols && rs <= INT_MAX) || (rs == 1 && cs >= rows && cs <= INT_MAX);
}

static void gni_gemm_blas_finish(const gni_gemm *d, int64_t c_off) {
    for (int64_t i = 0; i < d->m; i++) {
        const int64_t at = c_off + i * d->c_rs;
        for (int64_t q = 0; q < d->n; q++) {
            if (d->out == GN_F64) {
                double *c = (double *)d->c + at + q;
                if (d->act == 1 && *c < 0) *c = 0;
            } else {
                float *c = (float *)d->c + at + q;
                if (d->bias != NULL) *c += d->bias[q];
                if (d->act == 1 && *c < 0) *c = 0;
            }
        }
    }
}

// False: not done, and nothing has been touched.
static bool gni_gemm_blas(const gni_gemm *d) {
    int64_t a_step, b_step;
    if (d->in != d->out || (d->in != GN_F32 && d->in != GN_F64)) return false;
    if ((double)d->m * (double)d->n * (double)d->k < GNI_GEMM_BLAS_WORK) return false;
    if (GNI_MIN(GNI_MIN(d->m, d->n), d->k) < GNI_GEMM_BLAS_SIDE) return false;
    if (GNI_MAX(GNI_MAX(d->m, d->n), GNI_MAX(d->k, d->c_rs)) > INT_MAX) return false;
    if (!gni_gemm_blas_matrix(d->m, d->k, d->a_rs, d->a_cs, &a_step)) return false;
    if (!gni_gemm_blas_matrix(d->k, d->n, d->b_rs, d->b_cs, &b_step)) return false;
    const int m = (int)d->m, n = (int)d->n, k = (int)d->k, beta = d->accumulate ? 1 : 0;
    for (int64_t q = 0; q < d->batch; q++) {
        const int64_t a = d->a_off != NULL ? d->a_off[q] : 0,
                      b = d->b_off != NULL ? d->b_off[q] : 0;
        const int64_t c = d->c_off != NULL ? d->c_off[q] : 0;
        if (d->in == GN_F32) {
            cblas_sgemm(GNI_CBLAS_ROWS, d->a_cs == 1 ? GNI_CBLAS_PLAIN : GNI_CBLAS_TURN,
                        d->b_cs == 1 ? GNI_CBLAS_PLAIN : GNI_CBLAS_TURN, m, n, k, 1,
                        (const float *)d->a + a, (int)a_step, (const float *)d->b + b, (int)b_step,
                        (float)beta, (float *)d->c + c, (int)d->c_rs);
        } else {
            cblas_dgemm(GNI_CBLAS_ROWS, d->a_cs == 1 ? GNI_CBLAS_PLAIN : GNI_CBLAS_TURN,
                        d->b_cs == 1 ? GNI_CBLAS_PLAIN : GNI_CBLAS_TURN, m, n, k, 1,
                        (const double *)d->a + a, (int)a_step, (const double *)d->b + b,
                        (int)b_step, beta, (double *)d->c + c, (int)d->c_rs);
        }
        if (d->bias != NULL || d->act != 0) gni_gemm_blas_finish(d, c);
    }
    return true;
}
#endif

// False only when there is no memory. isa: 0 plain, 1 base, 2 AVX2, 3 AVX-512.
// The same operands give the same bits for any number of threads (but which NaN a NaN is may differ).
static bool gni_gemm_cpu(gn_context *g, gni_pool *pool, gni_gemm_work *w, int isa,
                         const gni_gemm *d) {
    if (d->m <= 0 || d->n <= 0 || d->batch <= 0) return true;
#ifdef GPUNUM_USE_CBLAS
    if (gni_gemm_blas(d)) return true;
#endif
    const int threads = gni_pool_threads(pool);
    const double work = (double)d->m * (double)d->n * (double)d->k * (double)d->batch;
    gni_gemm_job j;
    j.d = d;
    j.isa = gni_gemm_isa_of(isa);
    if (gni_gemm_is_small(d) && (threads == 1 || work < GNI_GEMM_THREADED)) {
        gni_gemm_small(j.isa, d);
        return true;
    }
    gni_gemm_choose_family(&j);
    if (d->k <= 0) {
        gni_gemm_empty(&j);
        return true;
    }
    if (w->l2 == 0) {
        w->l2 = gni_gemm_ask_l2();
        w->pairs = gni_gemm_ask_pairs();
    }
    gni_gemm_choose_pairs(&j, pool, w);
    gni_gemm_choose_path(&j, w);
    gni_gemm_choose_blocks(&j, w);
    j.task_m = j.m;
    j.task_n = j.n;
    if (work >= GNI_GEMM_THREADED && d->batch < 2 * threads && threads > 1)
        gni_gemm_choose_tasks(&j, threads);
    gni_gemm_count_tasks(&j);
    gni_gemm_choose_memory(&j);
    const int64_t tasks = d->batch * j.tasks_m * j.tasks_n;
    const int64_t grain = work < GNI_GEMM_THREADED ? tasks : 1;
    const int64_t each = j.a_bytes + j.b_bytes + j.apart_bytes;
    if (!gni_gemm_reserve(g, w, (size_t)(each * (tasks > grain ? threads : 1)))) return false;
    j.work = (char *)w->data;
    gni_parallel(pool, tasks, grain, gni_gemm_task, &j);
    return true;
}
// ------------------------------------------------------------------------------------------
// >>fft_cpu
// The FFT on the CPU: plans and their cache, transforms of rows, of columns and of real data, threads.
// From outside: gni_fft_cpu, gni_fft_free, gni_ft_turn, gni_ft_factor.
//
// A length of primes up to 13 is done as a b: column transforms of a points, a twist, row transforms
// of b points, both W at a time (Bailey's four-step with the transpose inside the twist). Short ones are
// done W at a time over the batch, others by Bluestein's convolution.

#define GNI_FT_MAX_PASSES 40

typedef struct gni_ft_pass {
    int radix;
    int64_t s, m;     // product of the radices before and after
    const void *turn; // (m, radix - 1) complex factors
} gni_ft_pass;

// A transform of n points on rows.
typedef struct gni_ft_lane {
    int64_t n;
    int count;
    gni_ft_pass pass[GNI_FT_MAX_PASSES];
    void *table;
} gni_ft_lane;

// What one instruction set offers in one precision; said in room `fft micro`.
typedef struct gni_ft_isa {
    int lanes, max_radix;
    void *(*columns_in)(const gni_ft_lane *f, const void *src, int64_t ld, bool swap, void *work);
    void (*columns_out)(const gni_ft_lane *f, void *rows, void *dst, int64_t ld, double scale, bool swap,
                        void *work);
    void (*columns)(const gni_ft_lane *f, const void *src, int64_t src_ld, void *dst, int64_t dst_ld, double scale,
                    bool swap, void *work);
    void (*batch)(const gni_ft_lane *f, const void *src, int64_t src_ld, void *dst, int64_t dst_ld, int count,
                  double scale, bool swap, void *work);
    void (*twist)(const void *columns, int64_t a, int64_t b, int64_t j, const void *table, const void *factors,
                  void *dst);
    void (*head)(const void *src, int64_t b, int64_t j, const void *table, bool swap, void *dst);
    void (*product)(void *dst, const void *src, const void *factors, int64_t n, double scale, bool swap_in,
                    bool swap_out);
    void (*fold)(void *dst, const void *src, const void *factors, int64_t from, int64_t to, int64_t h, double cr,
                 double ci, bool back, bool conj);
} gni_ft_isa;

// Constants of the butterflies: cosines and sines of 2 pi i / p.
#define GNI_FT_S5_1 0.9510565162951535721164
#define GNI_FT_S5_2 0.5877852522924731291687
#define GNI_FT_C7_1 0.623489801858733530525
#define GNI_FT_S7_1 0.7818314824680298087084
#define GNI_FT_C7_2 -0.2225209339563144042889
#define GNI_FT_S7_2 0.9749279121818236070181
#define GNI_FT_C7_3 -0.9009688679024191262361
#define GNI_FT_S7_3 0.4338837391175581204758
#define GNI_FT_C9_1 0.7660444431189780352024
#define GNI_FT_S9_1 0.6427876096865393263226
#define GNI_FT_C9_2 0.1736481776669303488517
#define GNI_FT_S9_2 0.9848077530122080593667
#define GNI_FT_C9_4 -0.9396926207859083840541
#define GNI_FT_S9_4 0.3420201433256687330441
#define GNI_FT_C11_1 0.8412535328311811688618
#define GNI_FT_S11_1 0.5406408174555975821076
#define GNI_FT_C11_2 0.4154150130018864255293
#define GNI_FT_S11_2 0.9096319953545183714117
#define GNI_FT_C11_3 -0.1423148382732851404438
#define GNI_FT_S11_3 0.9898214418809327323761
#define GNI_FT_C11_4 -0.6548607339452850640569
#define GNI_FT_S11_4 0.755749574354258283774
#define GNI_FT_C11_5 -0.9594929736144973898904
#define GNI_FT_S11_5 0.2817325568414296977114
#define GNI_FT_C13_1 0.8854560256532098959004
#define GNI_FT_S13_1 0.464723172043768545656
#define GNI_FT_C13_2 0.5680647467311558025118
#define GNI_FT_S13_2 0.8229838658936563945796
#define GNI_FT_C13_3 0.1205366802553230533491
#define GNI_FT_S13_3 0.9927088740980539928008
#define GNI_FT_C13_4 -0.3546048870425356259696
#define GNI_FT_S13_4 0.9350162426854148234398
#define GNI_FT_C13_5 -0.7485107481711010986346
#define GNI_FT_S13_5 0.6631226582407952023768
#define GNI_FT_C13_6 -0.970941817426052027157
#define GNI_FT_S13_6 0.2393156642875577671488
#define GNI_FT_S3 0.8660254037844386467637
#define GNI_FT_SQRT5_4 0.5590169943749474241023
#define GNI_FT_SQRT1_2 0.7071067811865475244008
#define GNI_FT_C16 0.9238795325112867561282
#define GNI_FT_S16 0.3826834323650897717285

// ---- room `fft micro`, once per instruction set and precision

#ifdef GNI_GNU
#define GNI_FT_INLINE static inline __attribute__((always_inline))
#define GNI_FT_PREFETCH(p) __builtin_prefetch(p)
#else
#define GNI_FT_INLINE static inline
#define GNI_FT_PREFETCH(p) GNI_UNUSED(p)
#endif
#define GNI_FT_FMA(a, b, c) ((a) * (b) + (c))
#define GNI_FT_FNMA(a, b, c) ((c) - (a) * (b))
#define GNI_FT_MAX_RADIX 8
#define GNI_FFT_PASS 1

#define GNI_FT_T float
#define GNI_FT_I int32_t
#define GNI_FT_W 1
#define GNI_FT(name) name##_f32_plain
#include GPUNUM_SELF
#undef GNI_FT_T
#undef GNI_FT_I
#undef GNI_FT
#define GNI_FT_T double
#define GNI_FT_I int64_t
#define GNI_FT(name) name##_f64_plain
#include GPUNUM_SELF
#undef GNI_FT_W
#undef GNI_FT

#if defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
#ifdef GNI_NEON
#undef GNI_FT_FMA
#undef GNI_FT_FNMA
#undef GNI_FT_MAX_RADIX
#define GNI_FT_FMA(a, b, c) ((gni_fv)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)vfmsq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#define GNI_FT_MAX_RADIX 16
#endif
#define GNI_FT_W 2
#define GNI_FT(name) name##_f64_base
#include GPUNUM_SELF
#undef GNI_FT_T
#undef GNI_FT_I
#undef GNI_FT_W
#undef GNI_FT
#define GNI_FT_T float
#define GNI_FT_I int32_t
#define GNI_FT_W 4
#define GNI_FT(name) name##_f32_base
#ifdef GNI_NEON
#undef GNI_FT_FMA
#undef GNI_FT_FNMA
#define GNI_FT_FMA(a, b, c) ((gni_fv)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)vfmsq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#endif
#include GPUNUM_SELF
#undef GNI_FT_W
#undef GNI_FT
#endif

#undef GNI_FT_T
#undef GNI_FT_I
#undef GNI_FT_FMA
#undef GNI_FT_FNMA

#ifdef GNI_X86
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi2")
#endif
#define GNI_FT_T float
#define GNI_FT_I int32_t
#define GNI_FT_W 8
#define GNI_FT(name) name##_f32_avx2
#define GNI_FT_FMA(a, b, c) ((gni_fv)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)_mm256_fnmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#include GPUNUM_SELF
#undef GNI_FT_T
#undef GNI_FT_I
#undef GNI_FT_W
#undef GNI_FT
#undef GNI_FT_FMA
#undef GNI_FT_FNMA
#define GNI_FT_T double
#define GNI_FT_I int64_t
#define GNI_FT_W 4
#define GNI_FT(name) name##_f64_avx2
#define GNI_FT_FMA(a, b, c) ((gni_fv)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)_mm256_fnmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#include GPUNUM_SELF
#undef GNI_FT_T
#undef GNI_FT_I
#undef GNI_FT_W
#undef GNI_FT
#undef GNI_FT_FMA
#undef GNI_FT_FNMA
#ifdef __clang__
#pragma clang attribute pop
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2"))),              \
    apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2")
#endif
#undef GNI_FT_MAX_RADIX
#define GNI_FT_MAX_RADIX 16
#define GNI_FT_T float
#define GNI_FT_I int32_t
#define GNI_FT_W 16
#define GNI_FT(name) name##_f32_avx512
#define GNI_FT_FMA(a, b, c) ((gni_fv)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)_mm512_fnmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#include GPUNUM_SELF
#undef GNI_FT_T
#undef GNI_FT_I
#undef GNI_FT_W
#undef GNI_FT
#undef GNI_FT_FMA
#undef GNI_FT_FNMA
#define GNI_FT_T double
#define GNI_FT_I int64_t
#define GNI_FT_W 8
#define GNI_FT(name) name##_f64_avx512
#define GNI_FT_FMA(a, b, c) ((gni_fv)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define GNI_FT_FNMA(a, b, c) ((gni_fv)_mm512_fnmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#include GPUNUM_SELF
#undef GNI_FT_T
#undef GNI_FT_I
#undef GNI_FT_W
#undef GNI_FT
#undef GNI_FT_FMA
#undef GNI_FT_FNMA
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif // GNI_X86
#undef GNI_FT_MAX_RADIX
#undef GNI_FFT_PASS

static const gni_ft_isa *gni_ft_isa_of(int isa, bool wide) {
#ifdef GNI_X86
    if (isa >= 3) return wide ? &gni_ft_table_f64_avx512 : &gni_ft_table_f32_avx512;
    if (isa >= 2) return wide ? &gni_ft_table_f64_avx2 : &gni_ft_table_f32_avx2;
#endif
#if defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
    if (isa >= 1) return wide ? &gni_ft_table_f64_base : &gni_ft_table_f32_base;
#endif
    GNI_UNUSED(isa);
    return wide ? &gni_ft_table_f64_plain : &gni_ft_table_f32_plain;
}

// ---- factors and tables

// exp(-2 pi i k / n), correctly rounded but for the last bit's ties: the angle is reduced exactly to an
// eighth of a turn and carried in two parts.
static void gni_ft_turn(int64_t k, int64_t n, double *re, double *im) {
    k %= n;
    if (k < 0) k += n;
    // k / n = octant / 8 + rest / (8 n), with n below 2^60
    int64_t rest = 8 * (k % n), octant = rest / n;
    rest -= octant * n;
    if (octant & 1) rest = n - rest; // measured from the next axis or diagonal
    const double pi4 = 0.78539816339744830962, pi4_low = 3.0616169978683829e-17;
    double q = (double)rest / (double)n;
    double back = fma(-q, (double)n, (double)rest) / (double)n;
    double angle = q * pi4, low = fma(q, pi4, -angle) + q * pi4_low + back * pi4;
    double c = cos(angle), s = sin(angle), cr = c - s * low, sr = s + c * low;
    double a = cr, b = sr; // of the angle within the octant
    if (((octant + 1) >> 1) & 1) a = sr, b = cr;
    *re = octant >= 2 && octant < 6 ? -a : a;
    *im = octant < 4 ? -b : b;
}

static void gni_ft_set(void *table, bool wide, int64_t i, double re, double im) {
    if (wide) {
        ((double *)table)[2 * i] = re;
        ((double *)table)[2 * i + 1] = im;
    } else {
        ((float *)table)[2 * i] = (float)re;
        ((float *)table)[2 * i + 1] = (float)im;
    }
}

static size_t gni_ft_item(bool wide) { return wide ? 16 : 8; }

// The radices of n, or 0 when it has a prime factor above 13.
static int gni_ft_factor(int64_t n, int max_radix, int *radix) {
    static const int odd[] = {13, 11, 7, 9, 5, 3};
    int count = 0, twos = 0;
    if (n < 1) return 0;
    while (n % 2 == 0) n /= 2, twos++;
    const int most = max_radix >= 16 ? 4 : 3, passes = (twos + most - 1) / most;
    for (int i = 0; i < passes; i++) radix[count++] = 1 << (twos / passes + (i < twos % passes ? 1 : 0));
    for (int i = 0; i < GNI_COUNT(odd); i++)
        while (n % odd[i] == 0) n /= odd[i], radix[count++] = odd[i];
    return n == 1 ? count : 0;
}

static void gni_ft_lane_free(gn_context *g, gni_ft_lane *f) {
    gni_free(g, f->table);
    f->table = NULL;
}

static bool gni_ft_lane_make(gn_context *g, const gni_ft_isa *isa, bool wide, int64_t n, gni_ft_lane *f) {
    int radix[64];
    memset(f, 0, sizeof *f);
    f->n = n;
    f->count = gni_ft_factor(n, isa->max_radix, radix);
    int64_t size = 0, s = 1;
    for (int i = 0; i < f->count; i++) {
        gni_ft_pass *p = &f->pass[i];
        p->radix = radix[i];
        p->s = s;
        s *= radix[i];
        p->m = n / s;
        size += p->m * (radix[i] - 1);
    }
    f->table = gni_alloc(g, (size_t)(size + 1) * gni_ft_item(wide));
    if (f->table == NULL) return false;
    int64_t at = 0;
    for (int i = 0; i < f->count; i++) {
        gni_ft_pass *p = &f->pass[i];
        p->turn = (char *)f->table + (size_t)at * gni_ft_item(wide);
        for (int64_t j = 0; j < p->m; j++)
            for (int q = 1; q < p->radix; q++) {
                double re, im;
                gni_ft_turn(j * q, p->m * p->radix, &re, &im);
                gni_ft_set(f->table, wide, at++, re, im);
            }
    }
    return true;
}

// ---- plans

typedef enum gni_ft_form {
    GNI_FT_ROWS,    // transforms of contiguous numbers
    GNI_FT_COLUMNS, // W at a time, side by side in memory
    GNI_FT_FOLD     // the factors that a real transform of 2 n points needs
} gni_ft_form;

typedef enum gni_ft_method { GNI_FT_SIDE_BY_SIDE, GNI_FT_STEPS, GNI_FT_CHIRP } gni_ft_method;

#define GNI_FT_FOLD_BLOCK 1024 // factors kept of a fold; the others are products with one for each block
#define GNI_FT_FULL 32768      // up to this length each element has its own factor in the twist

typedef struct gni_ft_plan {
    struct gni_ft_plan *next;
    gni_ft_form form;
    int64_t n;
    bool wide;
    uint64_t used; // number of the call that used it last
    size_t bytes;
    const gni_ft_isa *isa;
    gni_ft_method method;
    gni_ft_lane a, b;   // STEPS: both; otherwise b
    int64_t groups;     // of W columns
    bool head;          // a is W
    void *turn, *more;  // of the twist; of a fold: `turn`
    struct gni_ft_plan *conv; // CHIRP: of the convolution
    void *chirp, *kernel;
    size_t shared, each; // bytes of work: one part, and one for each thread that takes part
} gni_ft_plan;

// Kept from call to call.
typedef struct gni_fft_state {
    gni_ft_plan *plans;
    size_t plan_bytes;
    uint64_t call;
    void *work;
    size_t work_bytes;
} gni_fft_state;

#define GNI_FT_PLAN_BYTES ((size_t)64 << 20) // of all plans; more only while one call needs them
#define GNI_FT_WORK_BYTES ((size_t)256 << 20) // of memory kept between calls

static void gni_ft_plan_free(gn_context *g, gni_ft_plan *p) {
    if (p == NULL) return;
    gni_ft_plan_free(g, p->conv);
    gni_ft_lane_free(g, &p->a);
    gni_ft_lane_free(g, &p->b);
    gni_free(g, p->turn);
    gni_free(g, p->more);
    gni_free(g, p->chirp);
    gni_free(g, p->kernel);
    gni_free(g, p);
}

static void gni_fft_free(gn_context *g) {
    gni_fft_state *s = g->fft;
    if (s == NULL) return;
    while (s->plans != NULL) {
        gni_ft_plan *p = s->plans;
        s->plans = p->next;
        gni_ft_plan_free(g, p);
    }
    gni_free(g, s->work);
    gni_free(g, s);
    g->fft = NULL;
}

// Time of one lane transform of n points, per row, in about cycles.
static double gni_ft_lane_cost(const gni_ft_isa *isa, int64_t n, bool wide) {
    static const double cost[17] = {0, 0, 2.6, 3.2, 3.0, 4.2, 0, 6.0, 4.0, 5.0, 0, 9.0, 0, 11.0, 0, 0, 5.2};
    int radix[64];
    int count = gni_ft_factor(n, isa->max_radix, radix);
    double sum = 0.0, bytes = (double)n * 2.0 * (double)isa->lanes * (double)gni_ft_item(wide);
    if (count == 0) return -1.0;
    for (int i = 0; i < count; i++) sum += cost[radix[i]];
    return bytes > 800e3 ? sum * 2.5 : bytes > 44e3 ? sum * 1.4 : sum;
}

// Cuts n into a b as cheaply as can be had. False: it has no such factors.
static bool gni_ft_cut(const gni_ft_isa *isa, int64_t n, bool wide, int64_t *best_a) {
    const int64_t w = isa->lanes;
    double best = -1.0;
    for (int64_t a = w; a <= n / w; a++) {
        if (n % a != 0) continue;
        const int64_t b = n / a;
        double first = gni_ft_lane_cost(isa, a, wide), second = gni_ft_lane_cost(isa, b, wide);
        if (first < 0.0 || second < 0.0) continue;
        first = a == w && n <= GNI_FT_FULL ? 9.0 : first + 6.0;
        double cost = (double)((b + w - 1) / w * a) * first + (double)((a + w - 1) / w * b) * second;
        if (best < 0.0 || cost < best) {
            best = cost;
            *best_a = a;
        }
    }
    return best >= 0.0;
}

// Factors exp(-2 pi i j k / n) of the twist: for each group of columns and each row a vector, or, for
// long transforms, a vector for each row and a scalar for each row and group.
static bool gni_ft_make_twist(gn_context *g, gni_ft_plan *p) {
    const int64_t w = p->isa->lanes, a = p->a.n, b = p->b.n;
    const bool full = p->n <= GNI_FT_FULL;
    const size_t item = gni_ft_item(p->wide);
    p->groups = (b + w - 1) / w;
    p->head = full && a == w && w > 1;
    p->turn = gni_alloc(g, (size_t)((full ? p->groups : 1) * a * w) * item);
    p->more = full ? NULL : gni_alloc(g, (size_t)(p->groups * a) * item);
    if (p->turn == NULL || (!full && p->more == NULL)) return false;
    for (int64_t group = 0; group < (full ? p->groups : 1); group++)
        for (int64_t k = 0; k < a; k++)
            for (int64_t l = 0; l < w; l++) {
                double re, im;
                int64_t j = full ? GNI_MIN(group * w, b - w) + l : l;
                gni_ft_turn(j * k, p->n, &re, &im);
                char *v = (char *)p->turn + (size_t)((group * a + k) * w) * item;
                if (p->wide) ((double *)(void *)v)[l] = re, ((double *)(void *)v)[w + l] = im;
                else ((float *)(void *)v)[l] = (float)re, ((float *)(void *)v)[w + l] = (float)im;
            }
    for (int64_t group = 0; group < p->groups && !full; group++)
        for (int64_t k = 0; k < a; k++) {
            double re, im;
            gni_ft_turn(GNI_MIN(group * w, b - w) * k, p->n, &re, &im);
            gni_ft_set(p->more, p->wide, group * a + k, re, im);
        }
    p->bytes += (size_t)((full ? p->groups * w : w + p->groups) * a) * item;
    return true;
}

static gni_ft_plan *gni_ft_plan_make(gn_context *g, gni_ft_form form, int64_t n, bool wide);
static void gni_ft_transform(const gni_ft_plan *p, gni_pool *pool, const void *src, void *dst, double scale,
                             bool swap, char *work);

// A smooth length of at least `n` that is cut well.
static int64_t gni_ft_smooth_above(const gni_ft_isa *isa, int64_t n, bool wide) {
    static const int64_t odd[] = {1, 3, 5, 9, 15};
    int64_t best = 0, a;
    double best_cost = -1.0;
    for (int i = 0; i < GNI_COUNT(odd); i++) {
        int64_t m = odd[i];
        while (m < n) m *= 2;
        if (!gni_ft_cut(isa, m, wide, &a)) continue;
        double cost = (double)m * (i == 0 ? 1.0 : 1.06);
        if (best == 0 || cost < best_cost) best = m, best_cost = cost;
    }
    if (best == 0)
        for (best = 1; best < n;) best *= 2;
    return best;
}

// Bluestein: j k = (j^2 + k^2 - (j - k)^2) / 2 makes the transform a convolution with a chirp.
static bool gni_ft_make_chirp(gn_context *g, gni_ft_plan *p) {
    const int64_t n = p->n, m = gni_ft_smooth_above(p->isa, 2 * n - 1, p->wide);
    const size_t item = gni_ft_item(p->wide);
    p->conv = gni_ft_plan_make(g, GNI_FT_ROWS, m, p->wide);
    p->chirp = gni_alloc(g, (size_t)n * item);
    p->kernel = gni_alloc(g, (size_t)m * item);
    void *time = gni_calloc(g, (size_t)m * item);
    char *work = p->conv != NULL ? (char *)gni_alloc(g, p->conv->shared + p->conv->each) : NULL;
    bool ok = p->chirp != NULL && p->kernel != NULL && time != NULL && work != NULL;
    uint64_t square = 0; // j^2 mod 2 n
    for (int64_t j = 0; j < n && ok; j++) {
        double re, im;
        gni_ft_turn((int64_t)square, 2 * n, &re, &im);
        gni_ft_set(p->chirp, p->wide, j, re, im);
        gni_ft_set(time, p->wide, j, re, -im);
        if (j > 0) gni_ft_set(time, p->wide, m - j, re, -im);
        square = (square + 2 * (uint64_t)j + 1) % (2 * (uint64_t)n);
    }
    if (ok) gni_ft_transform(p->conv, NULL, time, p->kernel, 1.0 / (double)m, false, work);
    gni_free(g, time);
    gni_free(g, work);
    if (!ok) return false;
    p->bytes += (size_t)(n + m) * item + p->conv->bytes;
    p->shared = 2 * (size_t)m * item + p->conv->shared;
    p->each = p->conv->each;
    return true;
}

static bool gni_ft_make_fold(gn_context *g, gni_ft_plan *p) {
    const int64_t size = GNI_MIN(p->n / 2 + 1, GNI_FT_FOLD_BLOCK);
    p->turn = gni_alloc(g, (size_t)size * gni_ft_item(p->wide));
    if (p->turn == NULL) return false;
    p->bytes += (size_t)size * gni_ft_item(p->wide);
    for (int64_t k = 0; k < size; k++) {
        double re, im;
        gni_ft_turn(k, 2 * p->n, &re, &im);
        gni_ft_set(p->turn, p->wide, k, re, im);
    }
    return true;
}

static bool gni_ft_make_rows(gn_context *g, gni_ft_plan *p) {
    const size_t row = (size_t)p->isa->lanes * gni_ft_item(p->wide);
    int radix[64];
    int64_t a = 0;
    if (p->n > 1 && gni_ft_factor(p->n, p->isa->max_radix, radix) == 0) {
        p->method = GNI_FT_CHIRP;
        return gni_ft_make_chirp(g, p);
    }
    if (p->form == GNI_FT_ROWS && (p->isa->lanes > 1 || p->n > 16384) && gni_ft_cut(p->isa, p->n, p->wide, &a)) {
        p->method = GNI_FT_STEPS;
        if (!gni_ft_lane_make(g, p->isa, p->wide, a, &p->a) ||
            !gni_ft_lane_make(g, p->isa, p->wide, p->n / a, &p->b) || !gni_ft_make_twist(g, p))
            return false;
        p->bytes += (size_t)(p->a.n + p->b.n) * gni_ft_item(p->wide);
        p->shared = (size_t)((a + p->isa->lanes - 1) / p->isa->lanes * p->b.n) * row;
        p->each = 2 * (size_t)GNI_MAX(p->a.n, p->b.n) * row;
        return true;
    }
    p->method = GNI_FT_SIDE_BY_SIDE;
    if (!gni_ft_lane_make(g, p->isa, p->wide, p->n, &p->b)) return false;
    p->bytes += (size_t)p->n * gni_ft_item(p->wide);
    p->each = 2 * (size_t)p->n * row;
    return true;
}

static gni_ft_plan *gni_ft_plan_make(gn_context *g, gni_ft_form form, int64_t n, bool wide) {
    gni_ft_plan *p = (gni_ft_plan *)gni_calloc(g, sizeof(gni_ft_plan));
    if (p == NULL) return NULL;
    p->form = form;
    p->n = n;
    p->wide = wide;
    p->isa = gni_ft_isa_of((int)g->isa, wide);
    p->bytes = sizeof *p;
    if (form == GNI_FT_FOLD ? gni_ft_make_fold(g, p) : gni_ft_make_rows(g, p)) return p;
    gni_ft_plan_free(g, p);
    return NULL;
}

// Drops what has not been used for longest until `room` more bytes fit.
static void gni_ft_evict(gn_context *g, size_t room) {
    gni_fft_state *s = g->fft;
    while (s->plan_bytes + room > GNI_FT_PLAN_BYTES) {
        gni_ft_plan **oldest = NULL;
        for (gni_ft_plan **at = &s->plans; *at != NULL; at = &(*at)->next)
            if ((*at)->used != s->call && (oldest == NULL || (*at)->used < (*oldest)->used)) oldest = at;
        if (oldest == NULL) return;
        gni_ft_plan *p = *oldest;
        *oldest = p->next;
        s->plan_bytes -= p->bytes;
        gni_ft_plan_free(g, p);
    }
}

static const gni_ft_plan *gni_ft_plan_get(gn_context *g, gni_ft_form form, int64_t n, bool wide) {
    gni_fft_state *s = g->fft;
    for (gni_ft_plan **at = &s->plans; *at != NULL; at = &(*at)->next) {
        gni_ft_plan *p = *at;
        if (p->n != n || p->form != form || p->wide != wide) continue;
        *at = p->next;
        p->next = s->plans;
        s->plans = p;
        p->used = s->call;
        return p;
    }
    gni_ft_plan *p = gni_ft_plan_make(g, form, n, wide);
    if (p == NULL) return NULL;
    gni_ft_evict(g, p->bytes);
    p->used = s->call;
    p->next = s->plans;
    s->plans = p;
    s->plan_bytes += p->bytes;
    return p;
}

// ---- transforms of contiguous numbers

typedef struct gni_ft_steps {
    const gni_ft_plan *p;
    const char *src;
    char *dst, *rows, *each;
    double scale;
    bool swap;
} gni_ft_steps;

static void gni_ft_step_1(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_ft_steps *t = (const gni_ft_steps *)arg;
    const gni_ft_plan *p = t->p;
    const int64_t w = p->isa->lanes, a = p->a.n, b = p->b.n;
    const size_t item = gni_ft_item(p->wide);
    const bool full = p->more == NULL;
    // The last group reaches back into the one before it: one task does both.
    if (end == p->groups - 1 && b % w != 0) end = p->groups;
    for (int64_t group = begin; group < end; group++) {
        const int64_t j = GNI_MIN(group * w, b - w);
        const char *turn = (const char *)p->turn + (full ? (size_t)(group * a * w) * item : 0);
        if (p->head) {
            p->isa->head(t->src, b, j, turn, t->swap, t->rows);
            continue;
        }
        void *x = p->isa->columns_in(&p->a, t->src + (size_t)j * item, b, t->swap, t->each + (size_t)worker * p->each);
        const char *more = full ? NULL : (const char *)p->more + (size_t)(group * a) * item;
        p->isa->twist(x, a, b, j, turn, more, t->rows);
    }
}

static void gni_ft_step_2(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_ft_steps *t = (const gni_ft_steps *)arg;
    const gni_ft_plan *p = t->p;
    const int64_t w = p->isa->lanes, a = p->a.n, b = p->b.n, blocks = (a + w - 1) / w;
    const size_t item = gni_ft_item(p->wide);
    if (end == blocks - 1 && a % w != 0) end = blocks;
    for (int64_t i = begin; i < end; i++) {
        const int64_t k = GNI_MIN(i * w, a - w);
        p->isa->columns_out(&p->b, t->rows + (size_t)(i * b * w) * item, t->dst + (size_t)k * item, a, t->scale,
                            t->swap, t->each + (size_t)worker * p->each);
    }
}

static void gni_ft_transform(const gni_ft_plan *p, gni_pool *pool, const void *src, void *dst, double scale,
                             bool swap, char *work) {
    if (p->method == GNI_FT_SIDE_BY_SIDE) {
        p->isa->batch(&p->b, src, p->n, dst, p->n, 1, scale, swap, work);
    } else if (p->method == GNI_FT_STEPS) {
        gni_ft_steps t;
        const int64_t w = p->isa->lanes, blocks = (p->a.n + w - 1) / w;
        t.p = p;
        t.src = (const char *)src;
        t.dst = (char *)dst;
        t.rows = work;
        t.each = work + p->shared;
        t.scale = scale;
        t.swap = swap;
        // A last one that reaches back is done with the one before it.
        int64_t one = p->groups - (p->b.n % w != 0 && p->groups > 1 ? 1 : 0);
        int64_t two = blocks - (p->a.n % w != 0 && blocks > 1 ? 1 : 0);
        gni_parallel(pool, one, 1, gni_ft_step_1, &t);
        gni_parallel(pool, two, 1, gni_ft_step_2, &t);
    } else {
        const gni_ft_plan *c = p->conv;
        const size_t item = gni_ft_item(p->wide);
        char *x = work, *y = work + (size_t)c->n * item, *rest = y + (size_t)c->n * item;
        p->isa->product(x, src, p->chirp, p->n, 1.0, swap, false);
        memset(x + (size_t)p->n * item, 0, (size_t)(c->n - p->n) * item);
        gni_ft_transform(c, pool, x, y, 1.0, false, rest);
        p->isa->product(y, y, p->kernel, c->n, 1.0, false, false);
        gni_ft_transform(c, pool, y, x, 1.0, true, rest);
        p->isa->product(dst, x, p->chirp, p->n, scale, false, swap);
    }
}

// `count` of them, `src_ld` and `dst_ld` numbers apart.
static void gni_ft_rows(const gni_ft_plan *p, gni_pool *pool, const char *src, int64_t src_ld, char *dst,
                        int64_t dst_ld, int64_t count, double scale, bool swap, char *work) {
    const int64_t w = p->isa->lanes, unit = p->method == GNI_FT_SIDE_BY_SIDE ? w : 1;
    const size_t item = gni_ft_item(p->wide);
    for (int64_t i = 0; i < count; i += unit) {
        const char *a = src + (size_t)(i * src_ld) * item;
        char *b = dst + (size_t)(i * dst_ld) * item;
        if (p->method == GNI_FT_SIDE_BY_SIDE)
            p->isa->batch(&p->b, a, src_ld, b, dst_ld, (int)GNI_MIN(w, count - i), scale, swap, work);
        else
            gni_ft_transform(p, pool, a, b, scale, swap, work);
    }
}

// ---- jobs

typedef struct gni_ft_run {
    const gni_fft *f;
    const gni_ft_plan *p, *fold; // fold: NULL unless the data is real and n even
    gni_pool *inner;             // threads inside each transform, or NULL
    const char *in;
    char *out;
    size_t real, in_item, out_item; // bytes
    int64_t batch, group;           // rows, and how many are done together
    int64_t in_row, out_row;        // complex numbers of a gathered row and of a finished one
    char *work;                     // of each worker: gathered rows, finished rows, the plan's
    size_t in_bytes, out_bytes, work_bytes;
    int64_t axis, sets;             // columns: dimension along which they lie, sets of W in it
} gni_ft_run;

static void gni_ft_offsets(const gni_fft *f, int64_t row, int skip, int64_t *in, int64_t *out) {
    *in = f->in.offset;
    *out = f->out.offset;
    for (int d = f->rank - 1; d >= 0; d--) {
        if (d == skip) continue;
        const int64_t at = row % f->dim[d];
        row /= f->dim[d];
        *in += at * f->in.stride[d];
        *out += at * f->out.stride[d];
    }
}

// Copies items of 4, 8 or 16 bytes; all steps in bytes.
static void gni_ft_copy(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n, size_t item) {
    if (item == 4) {
        for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) memcpy(dst, src, 4);
    } else if (item == 8) {
        for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) memcpy(dst, src, 8);
    } else {
        for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) memcpy(dst, src, 16);
    }
}

// Whether the offsets of `count` rows are evenly spaced, and by how much.
static bool gni_ft_even_rows(const int64_t *at, int64_t count, int64_t *ld) {
    *ld = count > 1 ? at[1] - at[0] : 0;
    for (int64_t i = 2; i < count; i++)
        if (at[i] - at[i - 1] != *ld) return false;
    return true;
}

// Rows to contiguous memory, behind their end zeros; real data becomes complex where that is needed.
static void gni_ft_gather(const gni_ft_run *r, const int64_t *at, int64_t count, char *dst) {
    const gni_fft *f = r->f;
    const bool widen = r->in_item == r->real && r->fold == NULL;
    const int64_t step = (int64_t)(widen ? 2 * r->real : r->in_item), src_step = f->in_step * (int64_t)r->in_item;
    const size_t row = (size_t)r->in_row * 2 * r->real;
    if (widen || f->n_in * step < (int64_t)row) memset(dst, 0, row * (size_t)count);
    int64_t ld;
    if (gni_ft_even_rows(at, count, &ld) && count > 1 && llabs((long long)ld) < llabs((long long)f->in_step)) {
        for (int64_t j = 0; j < f->n_in; j++)
            gni_ft_copy(dst + j * step, (int64_t)row, r->in + at[0] * (int64_t)r->in_item + j * src_step,
                        ld * (int64_t)r->in_item, count, r->in_item);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        gni_ft_copy(dst + (size_t)i * row, step, r->in + at[i] * (int64_t)r->in_item, src_step, f->n_in, r->in_item);
}

// The first `n` items of finished rows to where they belong.
static void gni_ft_scatter(const gni_ft_run *r, const int64_t *at, int64_t count, const char *src, size_t row,
                           int64_t src_step, int64_t n) {
    const int64_t step = r->f->out_step * (int64_t)r->out_item;
    int64_t ld;
    if (gni_ft_even_rows(at, count, &ld) && count > 1 && llabs((long long)ld) < llabs((long long)r->f->out_step)) {
        for (int64_t j = 0; j < n; j++)
            gni_ft_copy(r->out + at[0] * (int64_t)r->out_item + j * step, ld * (int64_t)r->out_item, src + j * src_step,
                        (int64_t)row, count, r->out_item);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        gni_ft_copy(r->out + at[i] * (int64_t)r->out_item, step, src + (size_t)i * row, src_step, n, r->out_item);
}

static void gni_ft_put_ends(char *dst, const char *src, int64_t h, bool wide, bool back) {
    const double *d = (const double *)(const void *)src;
    const float *s = (const float *)(const void *)src;
    int64_t last = back ? 2 * h : 1; // x[h], or the imaginary part of z[0]
    if (wide) {
        double *y = (double *)(void *)dst, sum = d[0] + d[last], difference = d[0] - d[last];
        y[0] = sum;
        if (back) y[1] = difference;
        else y[1] = 0.0, y[2 * h] = difference, y[2 * h + 1] = 0.0;
    } else {
        float *y = (float *)(void *)dst, sum = s[0] + s[last], difference = s[0] - s[last];
        y[0] = sum;
        if (back) y[1] = difference;
        else y[1] = 0.0f, y[2 * h] = difference, y[2 * h + 1] = 0.0f;
    }
}

// Between the spectrum of 2 h real numbers and that of h complex ones.
static void gni_ft_fold_row(const gni_ft_run *r, char *dst, const char *src, bool back, bool conj) {
    const int64_t h = r->fold->n, end = h / 2 + 1;
    for (int64_t from = 0; from < end; from += GNI_FT_FOLD_BLOCK) {
        double cr, ci;
        int64_t skip = from == 0 ? 1 : 0;
        gni_ft_turn(from, 2 * h, &cr, &ci);
        r->fold->isa->fold(dst, src, (const char *)r->fold->turn + (size_t)skip * 2 * r->real, from + skip,
                           GNI_MIN(from + GNI_FT_FOLD_BLOCK, end), h, cr, ci, back, conj);
    }
    gni_ft_put_ends(dst, src, h, r->p->wide, back);
}

// The other half of the spectrum of real data.
static void gni_ft_mirror(const gni_ft_run *r, char *row) {
    const int64_t n = r->f->n;
    for (int64_t k = 1; 2 * k < n + (n & 1); k++) {
        if (r->p->wide) {
            double *x = (double *)(void *)row;
            x[2 * (n - k)] = x[2 * k];
            x[2 * (n - k) + 1] = -x[2 * k + 1];
        } else {
            float *x = (float *)(void *)row;
            x[2 * (n - k)] = x[2 * k];
            x[2 * (n - k) + 1] = -x[2 * k + 1];
        }
    }
}

// Transforms rows that lie in `src`; the results go to `dst`, both with their distances in complex numbers.
static void gni_ft_do_rows(const gni_ft_run *r, const char *src, int64_t src_ld, char *dst, int64_t dst_ld,
                           int64_t count, char *middle, char *work) {
    const gni_fft *f = r->f;
    const size_t item = 2 * r->real;
    const int64_t h = f->n / 2;
    if (f->kind == GNI_FFT_C2R && r->fold != NULL) {
        for (int64_t i = 0; i < count; i++)
            gni_ft_fold_row(r, middle + (size_t)(i * h) * item, src + (size_t)(i * src_ld) * item, true, !f->inverse);
        gni_ft_rows(r->p, r->inner, middle, h, dst, dst_ld, count, f->scale, true, work);
        return;
    }
    if (r->fold == NULL) {
        gni_ft_rows(r->p, r->inner, src, src_ld, dst, dst_ld, count, f->scale, f->inverse, work);
        return;
    }
    gni_ft_rows(r->p, r->inner, src, src_ld, dst, dst_ld, count, f->scale, false, work);
    for (int64_t i = 0; i < count; i++) {
        char *row = dst + (size_t)(i * dst_ld) * item;
        gni_ft_fold_row(r, row, row, false, f->inverse);
        if (f->kind == GNI_FFT_C2C) gni_ft_mirror(r, row);
    }
}

static void gni_ft_group(const gni_ft_run *r, int64_t first, int64_t count, char *work) {
    const gni_fft *f = r->f;
    const int64_t per = (int64_t)(2 * r->real); // bytes of a complex number
    int64_t in[16], out[16], in_ld = 0, out_ld = 0;
    for (int64_t i = 0; i < count; i++) gni_ft_offsets(f, first + i, -1, &in[i], &out[i]);
    char *rows = work, *done = work + r->in_bytes, *middle = done + r->out_bytes;
    char *rest = middle + (f->kind == GNI_FFT_C2R ? r->in_bytes : 0);
    const bool odd_c2r = f->kind == GNI_FFT_C2R && r->fold == NULL;
    // A row is used where it lies when it is whole and its numbers follow each other.
    const bool packs = r->fold != NULL && f->kind != GNI_FFT_C2R; // pairs of real numbers as complex ones
    bool direct = f->in_step == 1 && !odd_c2r && (packs ? f->n_in == f->n : r->in_item == 2 * r->real && f->n_in == r->in_row) &&
                  gni_ft_even_rows(in, count, &in_ld) && (in_ld * (int64_t)r->in_item) % per == 0 && in_ld >= 0;
    const char *src = direct ? r->in + in[0] * (int64_t)r->in_item : rows;
    int64_t src_ld = direct ? in_ld * (int64_t)r->in_item / per : r->in_row;
    if (!direct) gni_ft_gather(r, in, count, rows);
    if (odd_c2r) // the rest of the spectrum follows from the first half
        for (int64_t i = 0; i < count; i++) {
            char *row = rows + (size_t)(i * r->in_row * per);
            memset(row + r->real, 0, r->real);
            gni_ft_mirror(r, row);
        }
    bool whole = f->kind == GNI_FFT_C2R ? r->fold != NULL : f->kind == GNI_FFT_C2C || r->fold != NULL;
    bool put = whole && f->out_step == 1 && gni_ft_even_rows(out, count, &out_ld) &&
               (out_ld * (int64_t)r->out_item) % per == 0 && out_ld >= 0;
    char *dst = put ? r->out + out[0] * (int64_t)r->out_item : done;
    int64_t dst_ld = put ? out_ld * (int64_t)r->out_item / per : r->out_row;
    gni_ft_do_rows(r, src, src_ld, dst, dst_ld, count, middle, rest);
    if (put) return;
    const int64_t n = f->kind == GNI_FFT_R2C ? f->n / 2 + 1 : f->n;
    const int64_t step = f->kind == GNI_FFT_C2R && r->fold != NULL ? (int64_t)r->real : per;
    gni_ft_scatter(r, out, count, done, (size_t)(r->out_row * per), step, n);
}

static void gni_ft_groups(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_ft_run *r = (const gni_ft_run *)arg;
    char *work = r->work + (size_t)worker * r->work_bytes;
    for (int64_t i = begin; i < end; i++)
        gni_ft_group(r, i * r->group, GNI_MIN(r->group, r->batch - i * r->group), work);
}

static void gni_ft_column_sets(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_ft_run *r = (const gni_ft_run *)arg;
    const gni_fft *f = r->f;
    const gni_ft_isa *isa = r->p->isa;
    const int64_t width = f->dim[r->axis], w = isa->lanes;
    char *work = r->work + (size_t)worker * r->work_bytes;
    for (int64_t i = begin; i < end; i++) {
        int64_t in, out, at = i % r->sets * w;
        gni_ft_offsets(f, i / r->sets, (int)r->axis, &in, &out);
        for (int64_t last = i % r->sets == r->sets - 1 && width % w != 0 ? width - w : at; at <= last;
             at = at < last ? last : last + 1)
            isa->columns(&r->p->b, r->in + (in + at) * (int64_t)r->in_item, f->in_step,
                         r->out + (out + at) * (int64_t)r->out_item, f->out_step, f->scale, f->inverse, work);
    }
}

// The dimension along which both sides have their numbers next to each other, or -1.
static int gni_ft_column_axis(const gni_fft *f, const gni_ft_isa *isa) {
    int radix[64];
    if (f->kind != GNI_FFT_C2C || f->n_in != f->n || f->n < 2 || f->n > 8192) return -1;
    if (f->in_step == 1 || gni_ft_factor(f->n, isa->max_radix, radix) == 0) return -1;
    for (int d = 0; d < f->rank; d++)
        if (f->in.stride[d] == 1 && f->out.stride[d] == 1 && f->dim[d] >= isa->lanes) return d;
    return -1;
}

static bool gni_ft_reserve(gn_context *g, size_t bytes) {
    gni_fft_state *s = g->fft;
    if (bytes <= s->work_bytes) return true;
    gni_free(g, s->work);
    s->work_bytes = 0;
    s->work = gni_alloc(g, bytes);
    if (s->work == NULL) return false;
    s->work_bytes = bytes;
    return true;
}

static bool gni_ft_prepare(gn_context *g, gni_ft_run *r) {
    const gni_fft *f = r->f;
    const bool wide = f->out.dtype == GN_F64 || f->out.dtype == GN_C128;
    const int threads = gni_pool_threads(g->pool);
    r->real = wide ? 8 : 4;
    r->in_item = gn_dtype_size(f->in.dtype);
    r->out_item = gn_dtype_size(f->out.dtype);
    r->batch = gni_product(f->dim, f->rank);
    r->axis = r->in_item == 2 * r->real ? gni_ft_column_axis(f, gni_ft_isa_of((int)g->isa, wide)) : -1;
    if (r->axis >= 0) {
        r->p = gni_ft_plan_get(g, GNI_FT_COLUMNS, f->n, wide);
        if (r->p == NULL) return false;
        r->sets = GNI_MAX(f->dim[r->axis] / r->p->isa->lanes, 1);
        r->work_bytes = r->p->each;
        return gni_ft_reserve(g, r->work_bytes * (size_t)threads);
    }
    const bool halves = f->n % 2 == 0 && (f->kind != GNI_FFT_C2C || r->in_item == r->real);
    r->p = gni_ft_plan_get(g, GNI_FT_ROWS, halves ? f->n / 2 : f->n, wide);
    r->fold = halves ? gni_ft_plan_get(g, GNI_FT_FOLD, f->n / 2, wide) : NULL;
    if (r->p == NULL || (halves && r->fold == NULL)) return false;
    r->in_row = !halves ? f->n : f->kind == GNI_FFT_C2R ? f->n / 2 + 1 : f->n / 2;
    r->out_row = !halves || f->kind == GNI_FFT_C2C ? f->n : f->kind == GNI_FFT_R2C ? f->n / 2 + 1 : f->n / 2;
    r->group = f->n * (int64_t)r->real > 65536 ? 1 : GNI_MIN(r->p->isa->lanes, 16);
    if (r->group < 4 && f->n * (int64_t)r->real <= 65536) r->group = 4;
    const int64_t groups = (r->batch + r->group - 1) / r->group;
    if (groups < 2 * threads && f->n >= 16384) r->inner = g->pool;
    r->in_bytes = ((size_t)(r->group * r->in_row) * 2 * r->real + 127) & ~(size_t)63;
    r->out_bytes = ((size_t)(r->group * r->out_row) * 2 * r->real + 127) & ~(size_t)63;
    r->work_bytes = (f->kind == GNI_FFT_C2R ? 2 : 1) * r->in_bytes + r->out_bytes + r->p->shared +
                    r->p->each * (size_t)(r->inner != NULL ? threads : 1);
    return gni_ft_reserve(g, r->work_bytes * (size_t)(r->inner != NULL ? 1 : threads));
}

static bool gni_fft_cpu_supports(const gni_fft *f) {
    const bool wide = f->out.dtype == GN_F64 || f->out.dtype == GN_C128;
    return wide ? f->in.dtype == GN_F64 || f->in.dtype == GN_C128 : f->in.dtype == GN_F32 || f->in.dtype == GN_C64;
}

// Operands are on the CPU.
static bool gni_fft_cpu(gn_context *g, const gni_fft *f) {
    gni_ft_run r;
    memset(&r, 0, sizeof r);
    if (g->fft == NULL) g->fft = (gni_fft_state *)gni_calloc(g, sizeof(gni_fft_state));
    r.f = f;
    bool ok = g->fft != NULL;
    if (ok) g->fft->call++;
    if (!ok || !gni_ft_prepare(g, &r)) {
        gni_fail_memory(g, "gn_fft", (uint64_t)f->n * 16);
        return false;
    }
    if (r.batch == 0) return true;
    r.in = (const char *)f->in.buf->host;
    r.out = (char *)f->out.buf->host;
    r.work = (char *)g->fft->work;
    if (r.axis >= 0) {
        const int64_t each = f->n * r.p->isa->lanes;
        gni_parallel(g->pool, r.batch / f->dim[r.axis] * r.sets, 1 + 16384 / each, gni_ft_column_sets, &r);
    } else if (r.inner != NULL) {
        gni_ft_groups(&r, 0, (r.batch + r.group - 1) / r.group, 0);
    } else {
        gni_parallel(g->pool, (r.batch + r.group - 1) / r.group, 1 + 16384 / (f->n * r.group), gni_ft_groups, &r);
    }
    if (g->fft->work_bytes > GNI_FT_WORK_BYTES) {
        gni_free(g, g->fft->work);
        g->fft->work = NULL;
        g->fft->work_bytes = 0;
    }
    return true;
}

// ------------------------------------------------------------------------------------------
// >>cpu_wide
// The CPU backend's loops over 64-bit registers, float64 and int64. From outside: gni_isa_wide, whose
// random functions are NULL.

// ---- float64 functions that C does not have

GNI_INLINE double gni_dsigmoid(double a) {
    double e = exp(-fabs(a));
    return (a >= 0.0 ? 1.0 : e) / (1.0 + e);
}
GNI_INLINE double gni_dsilu(double a) {
    return a == -GNI_INF ? -0.0 : a * gni_dsigmoid(a);
}
GNI_INLINE double gni_dsoftplus(double a) {
    return (a > 0.0 ? a : a == a ? 0.0 : a) + log1p(exp(-fabs(a)));
}
GNI_INLINE double gni_dgelu(double a) {
    return a == -GNI_INF ? -0.0 : 0.5 * a * erfc(-a * GNI_SQRT1_2);
}
GNI_INLINE double gni_dsign(double a) {
    return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a == a ? 0.0 : a;
}
GNI_INLINE double gni_drint(double a) {
    return rint(a);
}
GNI_INLINE double gni_dmin(double a, double b) {
    return a < b || a != a ? a : b;
}
GNI_INLINE double gni_dmax(double a, double b) {
    return a > b || a != a ? a : b;
}
// The remainder has the divisor's sign, as in Python and NumPy.
GNI_INLINE double gni_dmod(double a, double b) {
    double r = fmod(a, b);
    if (r == 0.0) return copysign(0.0, b);
    return (r < 0.0) != (b < 0.0) ? r + b : r;
}
GNI_INLINE double gni_dfloor_div(double a, double b) {
    if (b == 0.0) return a / b;
    double r = fmod(a, b), q = (a - r) / b;
    if (r != 0.0 && (r < 0.0) != (b < 0.0)) q -= 1.0;
    if (q == 0.0) return copysign(0.0, a / b);
    double y = floor(q);
    return q - y > 0.5 ? y + 1.0 : y;
}
// To float32 by truncation, with a last bit that says whether anything was cut off: rounding that to a
// shorter format gives what rounding x would.
GNI_INLINE float gni_dodd(double x) {
    float f = (float)x;
    if ((double)f == x || x != x) return f;
    uint32_t u = gni_f32_bits(f);
    if (fabs((double)f) > fabs(x)) u--;
    return gni_bits_f32(u | 1u);
}
GNI_INLINE double gni_dround_f16(double x) {
    return (double)gni_f16_to_f32(gni_f32_to_f16(gni_dodd(x)));
}
GNI_INLINE double gni_dround_bf16(double x) {
    return (double)gni_bf16_to_f32(gni_f32_to_bf16(gni_dodd(x)));
}
GNI_INLINE int64_t gni_dtoi(double x) {
    if (x >= 9223372036854775808.0) return INT64_MAX;
    if (x < -9223372036854775808.0) return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}
GNI_INLINE int64_t gni_dtou(double x) {
    return x >= 4294967295.0 ? (int64_t)UINT32_MAX : x > 0.0 ? (int64_t)x : 0;
}

// ---- kernels

#define GNI_WIDE(name, TA, TB, TC, TR, E)                                                          \
    static void name(void *dst, const void *pa, const void *pb, const void *pc, int n) {           \
        const TA *xa = (const TA *)pa;                                                             \
        const TB *xb = (const TB *)pb;                                                             \
        const TC *xc = (const TC *)pc;                                                             \
        TR *d = (TR *)dst;                                                                         \
        GNI_UNUSED(xb);                                                                            \
        GNI_UNUSED(xc);                                                                            \
        for (int i = 0; i < n; i += 16) {                                                          \
            TR r[16];                                                                              \
            for (int j = 0; j < 16; j++) r[j] = (TR)(E);                                           \
            memcpy(d + i, r, sizeof r);                                                            \
        }                                                                                          \
    }
#define GNI_WIDE_1(name, TA, TR, E)                                                                \
    GNI_INLINE TR name##_one(TA a) {                                                               \
        typedef TA T;                                                                              \
        typedef uint64_t UT;                                                                       \
        GNI_UNUSED((T)0);                                                                          \
        GNI_UNUSED((UT)0);                                                                         \
        return (TR)(E);                                                                            \
    }                                                                                              \
    GNI_WIDE(name, TA, TA, TA, TR, name##_one(xa[i + j]))
#define GNI_WIDE_2(name, TA, TR, E)                                                                \
    GNI_INLINE TR name##_one(TA a, TA b) {                                                         \
        typedef TA T;                                                                              \
        typedef uint64_t UT;                                                                       \
        GNI_UNUSED((T)0);                                                                          \
        GNI_UNUSED((UT)0);                                                                         \
        return (TR)(E);                                                                            \
    }                                                                                              \
    GNI_WIDE(name, TA, TA, TA, TR, name##_one(xa[i + j], xb[i + j]))

#define GNI_T(name) name##_i64
#define GN_X(fn, NAME, F, D, gF, da) GNI_WIDE_1(gni_wf_##NAME, double, double, D)
GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da)                                                        \
    GNI_WIDE_1(gni_wf_##NAME, double, double, D)                                                   \
    GNI_WIDE_1(gni_wi_##NAME, int64_t, int64_t, I)
GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    GNI_WIDE_1(gni_wf_##NAME, double, int64_t, D)                                                  \
    GNI_WIDE_1(gni_wi_##NAME, int64_t, int64_t, I)
GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) GNI_WIDE_2(gni_wf_##NAME, double, double, D)
GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db)                                                    \
    GNI_WIDE_2(gni_wf_##NAME, double, double, D)                                                   \
    GNI_WIDE_2(gni_wi_##NAME, int64_t, int64_t, I)
GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    GNI_WIDE_2(gni_wf_##NAME, double, int64_t, D)                                                  \
    GNI_WIDE_2(gni_wi_##NAME, int64_t, int64_t, I)
GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI) GNI_WIDE_2(gni_wi_##NAME, int64_t, int64_t, I)
GNI_BINARY_INT(GN_X)
#undef GN_X
#undef GNI_T

GNI_WIDE(gni_wx_WHERE, int64_t, int64_t, int64_t, int64_t, xa[i + j] != 0 ? xb[i + j] : xc[i + j])
GNI_WIDE(gni_wf_FMA, double, double, double, double, fma(xa[i + j], xb[i + j], xc[i + j]))
GNI_WIDE(gni_wi_FMA, uint64_t, uint64_t, uint64_t, uint64_t, xa[i + j] * xb[i + j] + xc[i + j])
GNI_WIDE_1(gni_wx_COPY, uint64_t, uint64_t, a)
GNI_WIDE_1(gni_wx_I_TO_F, int64_t, double, a)
GNI_WIDE_1(gni_wx_F_TO_I, double, int64_t, gni_dtoi(a))
GNI_WIDE_1(gni_wx_F_TO_U, double, int64_t, gni_dtou(a))
GNI_WIDE_1(gni_wf_TO_BOOL, double, int64_t, a != 0.0)
GNI_WIDE_1(gni_wi_TO_BOOL, int64_t, int64_t, a != 0)
GNI_WIDE_1(gni_wx_ROUND_F16, double, double, gni_dround_f16(a))
GNI_WIDE_1(gni_wx_ROUND_BF16, double, double, gni_dround_bf16(a))
GNI_WIDE_1(gni_wx_ROUND_F32, double, double, (float)a)
GNI_WIDE_1(gni_wx_WRAP_U8, int64_t, int64_t, a & 255)
GNI_WIDE_1(gni_wx_WRAP_I8, int64_t, int64_t, ((a & 255) ^ 128) - 128)
GNI_WIDE_1(gni_wx_WRAP_U32, int64_t, int64_t, a & (int64_t)UINT32_MAX)
GNI_WIDE_1(gni_wx_WRAP_I32, int64_t, int64_t, ((a & (int64_t)UINT32_MAX) ^ 0x80000000) - 0x80000000)
#undef GNI_WIDE
#undef GNI_WIDE_1
#undef GNI_WIDE_2

static const gni_kernel gni_kernels_wide[GNI_OP_COUNT * 3] = {
#define GN_X(fn, NAME, F, D, gF, da) gni_wf_##NAME, NULL, NULL,
    GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da) gni_wf_##NAME, gni_wi_##NAME, gni_wi_##NAME,
    GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) gni_wf_##NAME, gni_wi_##NAME, gni_wi_##NAME,
    GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) gni_wf_##NAME, NULL, NULL,
    GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) gni_wf_##NAME, gni_wi_##NAME, gni_wi_##NAME,
    GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) gni_wf_##NAME, gni_wi_##NAME, gni_wi_##NAME,
    GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI) NULL, gni_wi_##NAME, gni_wi_##NAME,
    GNI_BINARY_INT(GN_X)
#undef GN_X
#define GNI_SAME(name) name, name, name
    GNI_SAME(gni_wx_WHERE),
    gni_wf_FMA, gni_wi_FMA, gni_wi_FMA,
    GNI_SAME(gni_wx_COPY), // CAST
    GNI_SAME(gni_wx_COPY), // CONST
    GNI_SAME(gni_wx_I_TO_F),
    GNI_SAME(gni_wx_I_TO_F), // U_TO_F
    GNI_SAME(gni_wx_F_TO_I),
    GNI_SAME(gni_wx_F_TO_U),
    gni_wf_TO_BOOL, gni_wi_TO_BOOL, gni_wi_TO_BOOL,
    GNI_SAME(gni_wx_ROUND_F16),
    GNI_SAME(gni_wx_ROUND_BF16),
    GNI_SAME(gni_wx_ROUND_F32),
    GNI_SAME(gni_wx_WRAP_U8),
    GNI_SAME(gni_wx_WRAP_I8),
    GNI_SAME(gni_wx_WRAP_U32),
    GNI_SAME(gni_wx_WRAP_I32),
#undef GNI_SAME
};

// ---- memory to registers and back

#define GNI_CONVERT(name, TR, TS, E)                                                               \
    static void name(void *dst, const void *src, int64_t n) {                                      \
        TR *GNI_RESTRICT d = (TR *)dst;                                                            \
        const TS *GNI_RESTRICT s = (const TS *)src;                                                \
        int64_t i = 0;                                                                             \
        for (; i + 16 <= n; i += 16) {                                                             \
            TR r[16];                                                                              \
            for (int j = 0; j < 16; j++) r[j] = (TR)E(s[i + j]);                                   \
            memcpy(d + i, r, sizeof r);                                                            \
        }                                                                                          \
        for (; i < n; i++) d[i] = (TR)E(s[i]);                                                     \
    }
#define GNI_F16_OF(x) gni_f32_to_f16(gni_dodd(x))
#define GNI_BF16_OF(x) gni_f32_to_bf16(gni_dodd(x))
#define GNI_TRUTH(x) ((x) != 0)
#define GNI_LOW8(x) ((x) & 255)
#define GNI_LOW32(x) ((x) & (int64_t)UINT32_MAX)
GNI_CONVERT(gni_wide_load_f32, double, float, )
GNI_CONVERT(gni_wide_load_f16, double, uint16_t, gni_f16_to_f32)
GNI_CONVERT(gni_wide_load_bf16, double, uint16_t, gni_bf16_to_f32)
GNI_CONVERT(gni_wide_load_i32, int64_t, int32_t, )
GNI_CONVERT(gni_wide_load_u32, int64_t, uint32_t, )
GNI_CONVERT(gni_wide_load_u8, int64_t, uint8_t, )
GNI_CONVERT(gni_wide_load_i8, int64_t, int8_t, )
GNI_CONVERT(gni_wide_store_f32, float, double, )
GNI_CONVERT(gni_wide_store_f16, uint16_t, double, GNI_F16_OF)
GNI_CONVERT(gni_wide_store_bf16, uint16_t, double, GNI_BF16_OF)
GNI_CONVERT(gni_wide_store_32, uint32_t, int64_t, GNI_LOW32)
GNI_CONVERT(gni_wide_store_8, uint8_t, int64_t, GNI_LOW8)
GNI_CONVERT(gni_wide_store_bool, uint8_t, int64_t, GNI_TRUTH)
#undef GNI_CONVERT
#undef GNI_F16_OF
#undef GNI_BF16_OF
#undef GNI_TRUTH
#undef GNI_LOW8
#undef GNI_LOW32

// By dtype: F32, F16, BF16, F64, I32, I64, U8, I8, U32, BOOL, C64, C128.
static const gni_convert_fn gni_wide_load_table[GN_DTYPE_COUNT] = {
    gni_wide_load_f32, gni_wide_load_f16, gni_wide_load_bf16, NULL, gni_wide_load_i32, NULL,
    gni_wide_load_u8,  gni_wide_load_i8,  gni_wide_load_u32,  gni_wide_load_u8, NULL, NULL};
static const gni_convert_fn gni_wide_store_table[GN_DTYPE_COUNT] = {
    gni_wide_store_f32, gni_wide_store_f16, gni_wide_store_bf16, NULL, gni_wide_store_32, NULL,
    gni_wide_store_8,   gni_wide_store_8,   gni_wide_store_32,   gni_wide_store_bool, NULL, NULL};

// ---- folds of contiguous elements

// acc += x, keeping what rounding takes away (Neumaier 1974).
static void gni_acc_add(double *d, double *e, double x) {
    double t = *d + x;
    *e += fabs(*d) >= fabs(x) ? (*d - t) + x : (x - t) + *d;
    *d = t;
}

static void gni_wide_fold_sum_f(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    GNI_UNUSED(at);
    for (int64_t i = 0; i < n; i += 256) {
        const double *p = (const double *)x + i;
        int64_t m = GNI_MIN(n - i, 256), k = 0;
        double s[16] = {0};
        for (; k + 16 <= m; k += 16)
            for (int j = 0; j < 16; j++) s[j] += p[k + j];
        for (int j = 0; k < m; k++, j++) s[j] += p[k];
        for (int h = 8; h > 0; h /= 2)
            for (int j = 0; j < h; j++) s[j] += s[j + h];
        gni_acc_add(&acc->d, &acc->e, s[0]);
    }
}
static void gni_wide_fold_prod_f(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    const double *p = (const double *)x;
    GNI_UNUSED(at);
    for (int64_t i = 0; i < n; i++) acc->d *= p[i];
}
#define GNI_FOLD_EXTREME(name, OP)                                                                 \
    static void name(gni_acc *acc, const void *x, int64_t n, int64_t at) {                         \
        const double *p = (const double *)x;                                                       \
        double s[8];                                                                               \
        int64_t i = 0;                                                                             \
        int nan = acc->d != acc->d;                                                                \
        GNI_UNUSED(at);                                                                            \
        for (int j = 0; j < 8; j++) s[j] = acc->d;                                                 \
        for (; i + 8 <= n; i += 8)                                                                 \
            for (int j = 0; j < 8; j++) {                                                          \
                nan |= p[i + j] != p[i + j];                                                       \
                s[j] = p[i + j] OP s[j] ? p[i + j] : s[j];                                         \
            }                                                                                      \
        for (; i < n; i++) {                                                                       \
            nan |= p[i] != p[i];                                                                   \
            s[0] = p[i] OP s[0] ? p[i] : s[0];                                                     \
        }                                                                                          \
        for (int j = 1; j < 8; j++) s[0] = s[j] OP s[0] ? s[j] : s[0];                             \
        acc->d = nan ? GNI_NAN : s[0];                                                             \
    }
#define GNI_FOLD_PLACE(name, OP)                                                                   \
    static void name(gni_acc *acc, const void *x, int64_t n, int64_t at) {                         \
        const double *p = (const double *)x;                                                       \
        for (int64_t i = 0; i < n && acc->d == acc->d; i++) {                                      \
            if (!(p[i] OP acc->d) && p[i] == p[i]) continue;                                       \
            acc->d = p[i];                                                                         \
            acc->at = at + i;                                                                      \
        }                                                                                          \
    }
GNI_FOLD_EXTREME(gni_wide_fold_min_f, <)
GNI_FOLD_EXTREME(gni_wide_fold_max_f, >)
GNI_FOLD_PLACE(gni_wide_fold_argmin_f, <)
GNI_FOLD_PLACE(gni_wide_fold_argmax_f, >)
#undef GNI_FOLD_EXTREME
#undef GNI_FOLD_PLACE

#define GNI_FOLD(name, T, INIT, STEP, END)                                                         \
    static void name(gni_acc *acc, const void *x, int64_t n, int64_t at) {                         \
        const T *p = (const T *)x;                                                                 \
        INIT;                                                                                      \
        GNI_UNUSED(at);                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T y = p[i];                                                                            \
            STEP;                                                                                  \
        }                                                                                          \
        END;                                                                                       \
    }
#define GNI_PLACE(OP)                                                                              \
    if (y OP r) {                                                                                  \
        r = y;                                                                                     \
        acc->at = at + i;                                                                          \
    }
GNI_FOLD(gni_wide_fold_sum_i, int64_t, uint64_t r = (uint64_t)acc->i, r += (uint64_t)y, acc->i = (int64_t)r)
GNI_FOLD(gni_wide_fold_prod_i, int64_t, uint64_t r = (uint64_t)acc->i, r *= (uint64_t)y, acc->i = (int64_t)r)
GNI_FOLD(gni_wide_fold_min_i, int64_t, int64_t r = acc->i, r = y < r ? y : r, acc->i = r)
GNI_FOLD(gni_wide_fold_max_i, int64_t, int64_t r = acc->i, r = y > r ? y : r, acc->i = r)
GNI_FOLD(gni_wide_fold_argmin_i, int64_t, int64_t r = acc->i, GNI_PLACE(<), acc->i = r)
GNI_FOLD(gni_wide_fold_argmax_i, int64_t, int64_t r = acc->i, GNI_PLACE(>), acc->i = r)
GNI_FOLD(gni_wide_fold_any_f, double, int r = acc->i != 0, r |= y != 0.0, acc->i = r)
GNI_FOLD(gni_wide_fold_any_i, int64_t, int r = acc->i != 0, r |= y != 0, acc->i = r)
GNI_FOLD(gni_wide_fold_all_f, double, int r = acc->i != 0, r &= y != 0.0, acc->i = r)
GNI_FOLD(gni_wide_fold_all_i, int64_t, int r = acc->i != 0, r &= y != 0, acc->i = r)
#undef GNI_FOLD
#undef GNI_PLACE

#define GNI_ROW(op) gni_wide_fold_##op##_f, gni_wide_fold_##op##_i, gni_wide_fold_##op##_i
static const gni_fold_fn gni_wide_fold_table[GNI_RED_COUNT * 3] = {
    GNI_ROW(sum), GNI_ROW(prod), GNI_ROW(min), GNI_ROW(max),
    GNI_ROW(any), GNI_ROW(all),  GNI_ROW(argmin), GNI_ROW(argmax)};
#undef GNI_ROW

// ---- folds of columns

static void gni_wide_columns_sum_f(gni_acc_columns *acc, const void *x, int64_t rows, int64_t stride, int64_t n,
                                   int64_t at) {
    double t[GNI_BAND], *v = (double *)acc->v;
    GNI_UNUSED(at);
    for (int64_t r0 = 0; r0 < rows; r0 += GNI_COLUMN_BLOCK) {
        int64_t last = GNI_MIN(r0 + GNI_COLUMN_BLOCK, rows), whole = n & ~(int64_t)7;
        for (int64_t c = 0; c < n; c++) t[c] = 0.0;
        for (int64_t r = r0; r < last; r++) {
            const double *p = (const double *)x + r * stride;
            for (int64_t c = 0; c < whole; c += 8) {
                double y[8];
                for (int j = 0; j < 8; j++) y[j] = t[c + j] + p[c + j];
                memcpy(t + c, y, sizeof y);
            }
            for (int64_t c = whole; c < n; c++) t[c] += p[c];
        }
        for (int64_t c = 0; c < n; c++) gni_acc_add(&v[c], &acc->e[c], t[c]);
    }
}

#define GNI_COLUMNS(name, T, S, STEP)                                                              \
    static void name(gni_acc_columns *acc, const void *x, int64_t rows, int64_t stride, int64_t n, \
                     int64_t at) {                                                                 \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            S *GNI_RESTRICT v = (S *)acc->v;                                                       \
            const T *GNI_RESTRICT p = (const T *)x + r * stride;                                   \
            int64_t row = at + r;                                                                  \
            GNI_UNUSED(row);                                                                       \
            for (int64_t c = 0; c < n; c++) {                                                      \
                T y = p[c];                                                                        \
                STEP;                                                                              \
            }                                                                                      \
        }                                                                                          \
    }
#define GNI_PLACE_STEP(BETTER)                                                                     \
    if (BETTER) {                                                                                  \
        v[c] = y;                                                                                  \
        acc->at[c] = row;                                                                          \
    }
GNI_COLUMNS(gni_wide_columns_prod_f, double, double, v[c] *= y)
GNI_COLUMNS(gni_wide_columns_min_f, double, double, v[c] = y < v[c] || y != y ? y : v[c])
GNI_COLUMNS(gni_wide_columns_max_f, double, double, v[c] = y > v[c] || y != y ? y : v[c])
GNI_COLUMNS(gni_wide_columns_argmin_f, double, double, GNI_PLACE_STEP(v[c] == v[c] && (y < v[c] || y != y)))
GNI_COLUMNS(gni_wide_columns_argmax_f, double, double, GNI_PLACE_STEP(v[c] == v[c] && (y > v[c] || y != y)))
GNI_COLUMNS(gni_wide_columns_any_f, double, int32_t, v[c] |= (int32_t)(y != 0.0))
GNI_COLUMNS(gni_wide_columns_all_f, double, int32_t, v[c] &= (int32_t)(y != 0.0))
GNI_COLUMNS(gni_wide_columns_sum_i, int64_t, uint64_t, v[c] += (uint64_t)y)
GNI_COLUMNS(gni_wide_columns_prod_i, int64_t, uint64_t, v[c] *= (uint64_t)y)
GNI_COLUMNS(gni_wide_columns_min_i, int64_t, int64_t, v[c] = y < v[c] ? y : v[c])
GNI_COLUMNS(gni_wide_columns_max_i, int64_t, int64_t, v[c] = y > v[c] ? y : v[c])
GNI_COLUMNS(gni_wide_columns_any_i, int64_t, int32_t, v[c] |= (int32_t)(y != 0))
GNI_COLUMNS(gni_wide_columns_all_i, int64_t, int32_t, v[c] &= (int32_t)(y != 0))
GNI_COLUMNS(gni_wide_columns_argmin_i, int64_t, int64_t, GNI_PLACE_STEP(y < v[c]))
GNI_COLUMNS(gni_wide_columns_argmax_i, int64_t, int64_t, GNI_PLACE_STEP(y > v[c]))
#undef GNI_COLUMNS
#undef GNI_PLACE_STEP

#define GNI_ROW(op) gni_wide_columns_##op##_f, gni_wide_columns_##op##_i, gni_wide_columns_##op##_i
static const gni_fold_columns_fn gni_wide_columns_table[GNI_RED_COUNT * 3] = {
    GNI_ROW(sum), GNI_ROW(prod), GNI_ROW(min), GNI_ROW(max),
    GNI_ROW(any), GNI_ROW(all),  GNI_ROW(argmin), GNI_ROW(argmax)};
#undef GNI_ROW

// ---- softmax

static gni_softmax_part gni_wide_softmax_stats(void *dst, const void *src, int64_t n) {
    const double *x = (const double *)src;
    double *y = (double *)dst, low = 0.0;
    gni_softmax_part part;
    gni_acc acc = {0, 0, 0, 0};
    acc.d = -GNI_INF;
    gni_wide_fold_max_f(&acc, x, n, 0);
    part.most = acc.d;
    part.sum = part.most < GNI_INF ? 0.0 : GNI_NAN;
    bool terms = part.most < GNI_INF && part.most > -GNI_INF;
    for (int64_t i = 0; i < n; i++) {
        double e = terms ? exp(x[i] - part.most) : 0.0;
        if (terms) gni_acc_add(&part.sum, &low, e);
        if (y != NULL) y[i] = e;
    }
    part.sum += low;
    return part;
}
static void gni_wide_softmax_scale(void *dst, const void *src, int64_t n, double factor) {
    for (int64_t i = 0; i < n; i++) ((double *)dst)[i] = ((const double *)src)[i] * factor;
}
static void gni_wide_softmax_emit(void *dst, const void *src, int64_t n, double most, double factor) {
    for (int64_t i = 0; i < n; i++) ((double *)dst)[i] = exp(((const double *)src)[i] - most) * factor;
}
static void gni_wide_softmax_emit_log(void *dst, const void *src, int64_t n, double most, double low) {
    for (int64_t i = 0; i < n; i++) ((double *)dst)[i] = ((const double *)src)[i] - most - low;
}
static const gni_softmax_fns gni_wide_softmax_table = {gni_wide_softmax_stats, gni_wide_softmax_scale,
                                                       gni_wide_softmax_emit, gni_wide_softmax_emit_log, NULL};

static const gni_cpu_isa gni_isa_wide = {
    gni_kernels_wide,       gni_wide_load_table,     gni_wide_store_table, gni_wide_fold_table,
    gni_wide_columns_table, &gni_wide_softmax_table, NULL, NULL, NULL, NULL};

// ------------------------------------------------------------------------------------------
// >>cpu
// The CPU backend: jobs cut into tiles that stay in the first cache, spread over the thread pool. No
// result depends on the number of threads. From outside: gni_cpu_api.

static const gni_cpu_isa *gni_cpu_isa_of(gni_isa isa) {
    switch (isa) {
#ifdef GNI_X86
    case GNI_ISA_AVX512: return &gni_isa_table_avx512;
    case GNI_ISA_AVX2: return &gni_isa_table_avx2;
#endif
#if defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
    case GNI_ISA_BASE: return &gni_isa_table_base;
#endif
    default: return &gni_isa_table_plain;
    }
}

static int64_t gni_item_size(gn_dtype t) {
    return (int64_t)gn_dtype_size(t);
}

static char *gni_operand_data(const gni_operand *o) {
    return (char *)o->buf->host + o->offset * gni_item_size(o->dtype);
}

// ---- index spaces and tiles

enum {
    GNI_SPACE_OPS = GNI_MAX_INPUTS + GNI_MAX_OUTPUTS,
    GNI_SPACE_RANK = GN_MAX_RANK + 3,
    GNI_SCRATCH = 32768,      // bytes of registers of one worker
    GNI_BLOCK = 1024,         // elements of a register at most
    GNI_GRAIN = 32768,        // elements that are worth another thread
    GNI_COPY_TILE = 1 << 15,  // elements, where no register is needed
    GNI_CHUNK = 1 << 16,      // elements of one part of a reduction
    GNI_STREAM = 1 << 24,     // bytes of results that are written past the caches
    GNI_PARTS = 2048          // most parts
};

// Dimensions and the operands' strides in bytes. It is cut into tiles, which are one element in all but
// the last three dimensions.
typedef struct gni_space {
    int rank, ops;
    int64_t dim[GNI_SPACE_RANK], tile[GNI_SPACE_RANK];
    int64_t tiles; // in all
    int64_t item[GNI_SPACE_OPS];
    char *base[GNI_SPACE_OPS];
    int64_t stride[GNI_SPACE_OPS][GNI_SPACE_RANK];
} gni_space;

// A place among the tiles: where each operand's part starts, and the extent of the tile.
typedef struct gni_cursor {
    const gni_space *space;
    int64_t at[GNI_SPACE_RANK];
    int64_t ext[3];
    char *p[GNI_SPACE_OPS];
} gni_cursor;

static void gni_space_begin(gni_space *s) {
    memset(s, 0, sizeof *s);
}

static void gni_space_dim(gni_space *s, int64_t n) {
    s->dim[s->rank++] = n;
}

// `base` is for dimension `first` of the job on; those before it are the caller's business.
static void gni_space_operand(gni_space *s, const gni_operand *o, char *base, int first) {
    int k = s->ops++;
    s->base[k] = base;
    s->item[k] = gni_item_size(o->dtype);
    for (int i = 0; i < s->rank; i++) s->stride[k][i] = o->stride[first + i] * s->item[k];
}

static void gni_space_move_dim(gni_space *s, int from, int to) {
    int step = from < to ? 1 : -1;
    for (int i = from; i != to; i += step) {
        int64_t n = s->dim[i];
        s->dim[i] = s->dim[i + step];
        s->dim[i + step] = n;
        for (int k = 0; k < s->ops; k++) {
            int64_t b = s->stride[k][i];
            s->stride[k][i] = s->stride[k][i + step];
            s->stride[k][i + step] = b;
        }
    }
}

// Drops dimensions of size 1 and joins neighbours that every operand steps through evenly, from
// dimension `first` on.
static void gni_space_merge(gni_space *s, int first) {
    int n = first;
    for (int i = first; i < s->rank; i++) {
        if (s->dim[i] == 1) continue;
        bool joins = n > first;
        for (int k = 0; k < s->ops && joins; k++) joins = s->stride[k][n - 1] == s->stride[k][i] * s->dim[i];
        if (joins) n--;
        s->dim[n] = joins ? s->dim[n] * s->dim[i] : s->dim[i];
        for (int k = 0; k < s->ops; k++) s->stride[k][n] = s->stride[k][i];
        n++;
    }
    s->rank = n;
}

// Dimensions of size 1 in front, so that there are three.
static void gni_space_pad(gni_space *s) {
    while (s->rank < 3) {
        gni_space_dim(s, 1);
        for (int k = 0; k < s->ops; k++) s->stride[k][s->rank - 1] = 0;
        gni_space_move_dim(s, s->rank - 1, 0);
    }
}

static void gni_space_count(gni_space *s) {
    s->tiles = 1;
    for (int i = 0; i < s->rank; i++)
        s->tiles *= s->dim[i] == 0 ? 0 : (s->dim[i] - 1) / s->tile[i] + 1;
}

// The dimension along which an operand that is far apart along the last one is close together, or -1.
static int gni_space_across(const gni_space *s) {
    int last = s->rank - 1;
    for (int k = 0; k < s->ops && last > 0; k++) {
        int64_t step = s->stride[k][last] < 0 ? -s->stride[k][last] : s->stride[k][last], least = step;
        int found = -1;
        if (step <= s->item[k]) continue;
        for (int i = last - 1; i >= 0; i--) {
            int64_t b = s->stride[k][i] < 0 ? -s->stride[k][i] : s->stride[k][i];
            if (b == 0 || b >= least || s->dim[i] < 2) continue;
            least = b;
            found = i;
        }
        if (found >= 0) return found;
    }
    return -1;
}

// Tiles of at most `block` elements, a multiple of 16 where it matters. `fixed`: the order of the
// elements counts, so that dimensions keep their places and tiles are runs of it.
static void gni_space_tile(gni_space *s, int64_t block, bool fixed) {
    int across = fixed ? -1 : gni_space_across(s);
    if (across >= 0) gni_space_move_dim(s, across, s->rank - 2);
    gni_space_pad(s);
    int64_t *t = s->tile + s->rank - 3, *d = s->dim + s->rank - 3;
    for (int i = 0; i < s->rank; i++) s->tile[i] = 1;
    if (across >= 0) {
        t[1] = GNI_MIN(d[1], GNI_MIN(32, block / 16));
        t[2] = GNI_MIN(d[2], GNI_MAX(block / t[1] / 16 * 16, 16));
        if (t[1] == 32) t[2] = GNI_MIN(t[2], 32);
    } else {
        // Long rows, and rows whose vectors come out even, are used where they are.
        t[2] = GNI_MIN(d[2], block);
        if (d[2] < block && (d[2] < 256 || d[2] % 16 != 0)) {
            t[1] = GNI_MIN(d[1], block / GNI_MAX(d[2], 1));
            if (t[1] > 16 && t[1] < d[1]) t[1] &= ~(int64_t)15;
        }
        if (t[2] == d[2] && t[1] == d[1]) {
            t[0] = GNI_MIN(d[0], block / GNI_MAX(d[1] * d[2], 1));
            if (t[0] > 16 && t[0] < d[0]) t[0] &= ~(int64_t)15;
        }
    }
    for (int i = 0; i < 3; i++) t[i] = GNI_MAX(t[i], 1);
    gni_space_count(s);
}

// Dimensions in the order of operand 0's strides, the largest first: sums over any layout run through
// memory in its order.
static void gni_space_sort(gni_space *s) {
    for (int i = 1; i < s->rank && s->ops > 0; i++) {
        int to = i;
        int64_t b = s->stride[0][i] < 0 ? -s->stride[0][i] : s->stride[0][i];
        for (; to > 0 && b != 0; to--) {
            int64_t before = s->stride[0][to - 1] < 0 ? -s->stride[0][to - 1] : s->stride[0][to - 1];
            if (before == 0 || before >= b) break;
        }
        gni_space_move_dim(s, i, to);
    }
}

static void gni_cursor_extent(gni_cursor *c) {
    const gni_space *s = c->space;
    for (int i = 0; i < 3; i++) {
        int d = s->rank - 3 + i;
        c->ext[i] = GNI_MIN(s->tile[d], s->dim[d] - c->at[d]);
    }
}

static void gni_cursor_set(gni_cursor *c, const gni_space *s, int64_t tile) {
    c->space = s;
    for (int k = 0; k < s->ops; k++) c->p[k] = s->base[k];
    for (int i = s->rank - 1; i >= 0; i--) {
        int64_t n = (s->dim[i] - 1) / s->tile[i] + 1;
        c->at[i] = tile % n * s->tile[i];
        tile /= n;
        for (int k = 0; k < s->ops; k++) c->p[k] += c->at[i] * s->stride[k][i];
    }
    gni_cursor_extent(c);
}

static void gni_cursor_next(gni_cursor *c) {
    const gni_space *s = c->space;
    for (int i = s->rank - 1; i >= 0; i--) {
        int64_t step = s->tile[i];
        if (c->at[i] + step < s->dim[i]) {
            c->at[i] += step;
            for (int k = 0; k < s->ops; k++) c->p[k] += step * s->stride[k][i];
            break;
        }
        for (int k = 0; k < s->ops; k++) c->p[k] -= c->at[i] * s->stride[k][i];
        c->at[i] = 0;
    }
    gni_cursor_extent(c);
}

static int64_t gni_extent_size(const int64_t ext[3]) {
    return ext[0] * ext[1] * ext[2];
}

static bool gni_extent_contiguous(const int64_t ext[3], const int64_t stride[3], int64_t item) {
    return (stride[2] == item || ext[2] == 1) && (stride[1] == ext[2] * item || ext[1] == 1) &&
           (stride[0] == ext[1] * ext[2] * item || ext[0] == 1);
}

// ---- moving items

#define GNI_COPY_RUN(name, BYTES)                                                                  \
    static void name(char *d, int64_t ds, const char *s, int64_t ss, int64_t n) {                  \
        for (int64_t i = 0; i < n; i++, d += ds, s += ss) memcpy(d, s, BYTES);                     \
    }
GNI_COPY_RUN(gni_copy_run_1, 1)
GNI_COPY_RUN(gni_copy_run_2, 2)
GNI_COPY_RUN(gni_copy_run_4, 4)
GNI_COPY_RUN(gni_copy_run_8, 8)
GNI_COPY_RUN(gni_copy_run_16, 16)
#undef GNI_COPY_RUN

static void gni_copy_run(char *d, int64_t ds, const char *s, int64_t ss, int64_t n, int64_t item) {
    if (ds == item && ss == item) {
        if (d != s) memcpy(d, s, (size_t)(n * item));
        return;
    }
    switch (item) {
    case 1: gni_copy_run_1(d, ds, s, ss, n); break;
    case 2: gni_copy_run_2(d, ds, s, ss, n); break;
    case 4: gni_copy_run_4(d, ds, s, ss, n); break;
    case 8: gni_copy_run_8(d, ds, s, ss, n); break;
    default: gni_copy_run_16(d, ds, s, ss, n); break;
    }
}

// d[i][j] = s[j][i] for i < rows and j < columns; inside, both sides are contiguous. Squares of items
// that fill vectors of 16 bytes are turned by interleaving halves, the edges item by item.
#if defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
typedef uint16_t gni_turn16 __attribute__((vector_size(16)));
typedef uint32_t gni_turn32 __attribute__((vector_size(16)));
typedef uint64_t gni_turn64 __attribute__((vector_size(16)));
#ifdef __clang__
#define GNI_LOW16(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define GNI_HIGH16(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define GNI_LOW32(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define GNI_HIGH32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define GNI_LOW64(a, b) __builtin_shufflevector(a, b, 0, 2)
#define GNI_HIGH64(a, b) __builtin_shufflevector(a, b, 1, 3)
#else
static const gni_turn16 gni_low16 = {0, 8, 1, 9, 2, 10, 3, 11}, gni_high16 = {4, 12, 5, 13, 6, 14, 7, 15};
static const gni_turn32 gni_low32 = {0, 4, 1, 5}, gni_high32 = {2, 6, 3, 7};
static const gni_turn64 gni_low64 = {0, 2}, gni_high64 = {1, 3};
#define GNI_LOW16(a, b) __builtin_shuffle(a, b, gni_low16)
#define GNI_HIGH16(a, b) __builtin_shuffle(a, b, gni_high16)
#define GNI_LOW32(a, b) __builtin_shuffle(a, b, gni_low32)
#define GNI_HIGH32(a, b) __builtin_shuffle(a, b, gni_high32)
#define GNI_LOW64(a, b) __builtin_shuffle(a, b, gni_low64)
#define GNI_HIGH64(a, b) __builtin_shuffle(a, b, gni_high64)
#endif
GNI_INLINE void gni_turn_square16(char *d, int64_t ds, const char *s, int64_t ss) {
    gni_turn16 x0, x1, x2, x3, x4, x5, x6, x7, y0, y1, y2, y3, y4, y5, y6, y7;
    memcpy(&x0, s, 16), memcpy(&x1, s + ss, 16), memcpy(&x2, s + 2 * ss, 16), memcpy(&x3, s + 3 * ss, 16);
    memcpy(&x4, s + 4 * ss, 16), memcpy(&x5, s + 5 * ss, 16), memcpy(&x6, s + 6 * ss, 16);
    memcpy(&x7, s + 7 * ss, 16);
    y0 = GNI_LOW16(x0, x4), y1 = GNI_HIGH16(x0, x4), y2 = GNI_LOW16(x1, x5), y3 = GNI_HIGH16(x1, x5);
    y4 = GNI_LOW16(x2, x6), y5 = GNI_HIGH16(x2, x6), y6 = GNI_LOW16(x3, x7), y7 = GNI_HIGH16(x3, x7);
    x0 = GNI_LOW16(y0, y4), x1 = GNI_HIGH16(y0, y4), x2 = GNI_LOW16(y1, y5), x3 = GNI_HIGH16(y1, y5);
    x4 = GNI_LOW16(y2, y6), x5 = GNI_HIGH16(y2, y6), x6 = GNI_LOW16(y3, y7), x7 = GNI_HIGH16(y3, y7);
    y0 = GNI_LOW16(x0, x4), y1 = GNI_HIGH16(x0, x4), y2 = GNI_LOW16(x1, x5), y3 = GNI_HIGH16(x1, x5);
    y4 = GNI_LOW16(x2, x6), y5 = GNI_HIGH16(x2, x6), y6 = GNI_LOW16(x3, x7), y7 = GNI_HIGH16(x3, x7);
    memcpy(d, &y0, 16), memcpy(d + ds, &y1, 16), memcpy(d + 2 * ds, &y2, 16), memcpy(d + 3 * ds, &y3, 16);
    memcpy(d + 4 * ds, &y4, 16), memcpy(d + 5 * ds, &y5, 16), memcpy(d + 6 * ds, &y6, 16);
    memcpy(d + 7 * ds, &y7, 16);
}
GNI_INLINE void gni_turn_square32(char *d, int64_t ds, const char *s, int64_t ss) {
    gni_turn32 x0, x1, x2, x3, y0, y1, y2, y3;
    memcpy(&x0, s, 16), memcpy(&x1, s + ss, 16), memcpy(&x2, s + 2 * ss, 16), memcpy(&x3, s + 3 * ss, 16);
    y0 = GNI_LOW32(x0, x2), y1 = GNI_HIGH32(x0, x2), y2 = GNI_LOW32(x1, x3), y3 = GNI_HIGH32(x1, x3);
    x0 = GNI_LOW32(y0, y2), x1 = GNI_HIGH32(y0, y2), x2 = GNI_LOW32(y1, y3), x3 = GNI_HIGH32(y1, y3);
    memcpy(d, &x0, 16), memcpy(d + ds, &x1, 16), memcpy(d + 2 * ds, &x2, 16), memcpy(d + 3 * ds, &x3, 16);
}
GNI_INLINE void gni_turn_square64(char *d, int64_t ds, const char *s, int64_t ss) {
    gni_turn64 x0, x1, y0, y1;
    memcpy(&x0, s, 16), memcpy(&x1, s + ss, 16);
    y0 = GNI_LOW64(x0, x1), y1 = GNI_HIGH64(x0, x1);
    memcpy(d, &y0, 16), memcpy(d + ds, &y1, 16);
}
#undef GNI_LOW16
#undef GNI_HIGH16
#undef GNI_LOW32
#undef GNI_HIGH32
#undef GNI_LOW64
#undef GNI_HIGH64
#define GNI_TURN_SQUARES(N, SQUARE)                                                                \
    for (; i + N <= rows; i += N) {                                                                \
        int64_t j = 0;                                                                             \
        for (; j + N <= columns; j += N) SQUARE(d + i * ds + j * item, ds, s + j * ss + i * item, ss); \
        for (; j < columns; j++)                                                                   \
            gni_copy_run(d + i * ds + j * item, ds, s + j * ss + i * item, item, N, item);         \
    }
#endif

static void gni_turn(char *d, int64_t ds, const char *s, int64_t ss, int64_t rows, int64_t columns, int64_t item) {
    int64_t i = 0;
#ifdef GNI_TURN_SQUARES
    if (item == 2) {
        GNI_TURN_SQUARES(8, gni_turn_square16)
    } else if (item == 4) {
        GNI_TURN_SQUARES(4, gni_turn_square32)
    } else if (item == 8) {
        GNI_TURN_SQUARES(2, gni_turn_square64)
    }
#undef GNI_TURN_SQUARES
#endif
    for (; i < rows; i++) gni_copy_run(d + i * ds, item, s + i * item, ss, columns, item);
}

// Copies a box of items. The runs go where the more scattered side is closest together.
static void gni_copy_box(char *d, const int64_t ds[3], const char *s, const int64_t ss[3], const int64_t ext[3],
                         int64_t item) {
    int64_t far1 = GNI_MAX(ds[1] < 0 ? -ds[1] : ds[1], ss[1] < 0 ? -ss[1] : ss[1]);
    int64_t far2 = GNI_MAX(ds[2] < 0 ? -ds[2] : ds[2], ss[2] < 0 ? -ss[2] : ss[2]);
    int run = far1 < far2 && ext[1] >= 4 ? 1 : 2, rows = 3 - run;
    bool turn = ext[1] > 1 && ext[2] > 1, turned = ds[1] == item && ss[2] == item;
    turn = turn && ((ds[2] == item && ss[1] == item) || turned);
    for (int64_t i = 0; i < ext[0]; i++, d += ds[0], s += ss[0]) {
        if (turn && turned) gni_turn(d, ds[2], s, ss[1], ext[2], ext[1], item);
        else if (turn) gni_turn(d, ds[1], s, ss[2], ext[1], ext[2], item);
        else
            for (int64_t j = 0; j < ext[rows]; j++)
                gni_copy_run(d + j * ds[rows], ds[run], s + j * ss[rows], ss[run], ext[run], item);
    }
}

static void gni_dense(const int64_t ext[3], int64_t item, int64_t stride[3]) {
    stride[2] = item;
    stride[1] = item * ext[2];
    stride[0] = item * ext[2] * ext[1];
}

// ---- programs

// How the registers of a program share a worker's scratch memory.
typedef struct gni_plan {
    const gni_program *program;
    const gni_cpu_isa *isa;
    int width;                         // bytes of a register's element
    int block;                         // elements of a register
    int slot[GNI_MAX_REGS];            // of each register
    int raw;                           // the slot for items on their way from or to memory
    bool gather[GNI_MAX_INPUTS];       // never read in place
    int out_of[GNI_MAX_INSNS];         // output that the instruction may write in place, or -1
} gni_plan;

static bool gni_reads(uint32_t insn, int reg) {
    return (int)GNI_INSN_A(insn) == reg || (int)GNI_INSN_B(insn) == reg || (int)GNI_INSN_C(insn) == reg;
}

// Instruction after which a register is no longer read; outputs are read at the end.
static int gni_last_use(const gni_program *p, int reg) {
    for (int o = 0; o < p->n_out; o++)
        if (p->out_reg[o] == reg) return p->n_insn;
    for (int i = p->n_insn - 1; i >= 0; i--)
        if (gni_reads(p->insn[i], reg)) return i;
    return -1;
}

// Gives every register a slot: inputs and constants their own, results one that is free by then.
static void gni_plan_slots(gni_plan *plan) {
    const gni_program *p = plan->program;
    int fixed = p->n_in + p->n_const, count = fixed, last[GNI_MAX_REGS], until[GNI_MAX_REGS];
    for (int r = 0; r < fixed + p->n_insn; r++) last[r] = gni_last_use(p, r);
    for (int r = 0; r < fixed; r++) {
        plan->slot[r] = r;
        until[r] = GNI_MAX_REGS;
    }
    for (int i = 0; i < p->n_insn; i++) {
        int s = fixed;
        while (s < count && until[s] > i) s++;
        if (s == count) count++;
        until[s] = last[fixed + i];
        plan->slot[fixed + i] = s;
    }
    plan->raw = count++;
    int most = GNI_SCRATCH / (plan->width * count) & ~63;
    plan->block = GNI_MIN(most, GNI_BLOCK);
}

// `out` is NULL for reductions.
static void gni_plan_make(gni_plan *plan, const gni_program *p, gni_isa isa, const gni_operand *in,
                          const gni_operand *out) {
    memset(plan, 0, sizeof *plan);
    plan->program = p;
    plan->isa = p->wide ? &gni_isa_wide : gni_cpu_isa_of(isa);
    plan->width = p->wide ? 8 : 4;
    gni_plan_slots(plan);
    for (int i = 0; i < p->n_insn; i++) plan->out_of[i] = -1;
    for (int o = 0; o < p->n_out && out != NULL; o++) {
        int i = p->out_reg[o] - p->n_in - p->n_const;
        // In-place updates: the old value must not be wanted any more.
        bool free_then = i >= 0;
        for (int k = 0; k < p->n_in; k++) {
            if (in[k].buf != out[o].buf) continue;
            free_then = free_then && gni_last_use(p, k) <= i;
            if (p->n_out > 1) plan->gather[k] = plan->gather[k] || gni_last_use(p, k) == p->n_insn;
        }
        if (free_then) plan->out_of[i] = o;
    }
}

// A worker's registers for the tile at hand.
typedef struct gni_eval {
    const gni_plan *plan;
    char *scratch;
    const char *reg[GNI_MAX_REGS];
    const char *have[GNI_MAX_INPUTS]; // what the input's slot holds, and with which extent
    int64_t have_ext[GNI_MAX_INPUTS][3];
} gni_eval;

static char *gni_eval_slot(const gni_eval *e, int slot) {
    return e->scratch + (int64_t)slot * e->plan->block * e->plan->width;
}

// `memory` has GNI_SCRATCH + 64 bytes.
static void gni_eval_begin(gni_eval *e, const gni_plan *plan, char *memory) {
    const gni_program *p = plan->program;
    memset(e, 0, sizeof *e);
    e->plan = plan;
    e->scratch = memory + (64 - ((uintptr_t)memory & 63));
    for (int c = 0; c < p->n_const; c++) {
        char *to = gni_eval_slot(e, plan->slot[p->n_in + c]);
        uint32_t low = (uint32_t)(p->konst[c] & 0xffffffffu);
        for (int i = 0; i < plan->block; i++) {
            if (p->wide) memcpy(to + 8 * i, &p->konst[c], 8);
            else memcpy(to + 4 * i, &low, 4);
        }
        e->reg[p->n_in + c] = to;
    }
}

static void gni_eval_load(gni_eval *e, int k, const char *from, const int64_t stride[3], const int64_t ext[3],
                          int64_t n, bool in_place) {
    const gni_plan *plan = e->plan;
    gn_dtype t = plan->program->in_dtype[k];
    gni_convert_fn load = plan->isa->load[t];
    int64_t item = gni_item_size(t), dense[3];
    bool contiguous = gni_extent_contiguous(ext, stride, item);
    if (contiguous && in_place && load == NULL && !plan->gather[k]) {
        e->reg[k] = from;
        return;
    }
    char *to = gni_eval_slot(e, plan->slot[k]);
    e->reg[k] = to;
    if (e->have[k] == from && memcmp(e->have_ext[k], ext, sizeof e->have_ext[k]) == 0) return;
    e->have[k] = plan->gather[k] ? NULL : from;
    memcpy(e->have_ext[k], ext, sizeof e->have_ext[k]);
    if (!contiguous) {
        char *raw = load == NULL ? to : gni_eval_slot(e, plan->raw);
        gni_dense(ext, item, dense);
        gni_copy_box(raw, dense, from, stride, ext, item);
        from = raw;
    }
    if (load != NULL) load(to, from, n);
    else if (from != to) memcpy(to, from, (size_t)(n * item));
    // Kernels work on whole groups of 16.
    if ((n & 15) != 0) memset(to + n * plan->width, 0, (size_t)((16 - (n & 15)) * plan->width));
}

// `direct[o]` is where output o may be written at once, or NULL.
static void gni_eval_run(gni_eval *e, int64_t n, char *const *direct) {
    const gni_plan *plan = e->plan;
    const gni_program *p = plan->program;
    int count = (int)((n + 15) & ~(int64_t)15);
    for (int i = 0; i < p->n_insn; i++) {
        uint32_t insn = p->insn[i];
        int reg = p->n_in + p->n_const + i, o = plan->out_of[i];
        char *to = o >= 0 && direct[o] != NULL ? direct[o] : gni_eval_slot(e, plan->slot[reg]);
        plan->isa->kernel[GNI_INSN_CODE(insn)](to, e->reg[GNI_INSN_A(insn)], e->reg[GNI_INSN_B(insn)],
                                               e->reg[GNI_INSN_C(insn)], count);
        e->reg[reg] = to;
    }
}

static void gni_eval_store(gni_eval *e, int o, char *to, const int64_t stride[3], const int64_t ext[3], int64_t n) {
    const gni_plan *plan = e->plan;
    gn_dtype t = plan->program->out_dtype[o];
    gni_convert_fn store = plan->isa->store[t];
    int64_t item = gni_item_size(t), dense[3];
    const char *from = e->reg[plan->program->out_reg[o]];
    bool contiguous = gni_extent_contiguous(ext, stride, item);
    if (from == to) return;
    if (store != NULL) {
        char *raw = contiguous ? to : gni_eval_slot(e, plan->raw);
        store(raw, from, n);
        if (contiguous) return;
        from = raw;
    }
    gni_dense(ext, item, dense);
    gni_copy_box(to, stride, from, dense, ext, item);
}

// ---- map

typedef struct gni_map_job {
    gni_plan plan;
    gni_space space; // inputs, then outputs
    const gni_cpu_isa *isa;
    bool stream; // outputs past the caches
} gni_map_job;

// Results larger than caches go past them, unless they overwrite what has just been read.
static bool gni_streams(const gni_operand *in, int n_in, const gni_operand *out, int n_out, const gni_space *s) {
    int64_t bytes = 0, n = 1;
    for (int i = 0; i < s->rank; i++) n *= s->dim[i];
    for (int o = 0; o < n_out; o++) {
        bytes += n * gni_item_size(out[o].dtype);
        for (int k = 0; k < n_in; k++)
            if (in[k].buf == out[o].buf) return false;
    }
    return bytes >= GNI_STREAM;
}

static void gni_map_tile(const gni_map_job *j, gni_eval *e, char *const *p, const int64_t ext[3]) {
    const gni_space *s = &j->space;
    const gni_program *g = j->plan.program;
    int64_t n = gni_extent_size(ext);
    bool whole = (n & 15) == 0, stream[GNI_MAX_OUTPUTS];
    char *direct[GNI_MAX_OUTPUTS];
    for (int k = 0; k < g->n_in; k++)
        gni_eval_load(e, k, p[k], s->stride[k] + s->rank - 3, ext, n, whole);
    for (int o = 0; o < g->n_out; o++) {
        int k = g->n_in + o;
        bool in_place = whole && j->plan.isa->store[g->out_dtype[o]] == NULL &&
                        gni_extent_contiguous(ext, s->stride[k] + s->rank - 3, s->item[k]);
        stream[o] = in_place && j->stream && ((n * s->item[k]) & 63) == 0 && ((uintptr_t)p[k] & 63) == 0;
        direct[o] = in_place && !stream[o] ? p[k] : NULL;
    }
    gni_eval_run(e, n, direct);
    for (int o = 0; o < g->n_out; o++) {
        char *to = p[g->n_in + o];
        if (stream[o]) j->isa->stream(to, e->reg[g->out_reg[o]], n * s->item[g->n_in + o]);
        else gni_eval_store(e, o, to, s->stride[g->n_in + o] + s->rank - 3, ext, n);
    }
}

static void gni_map_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_map_job *j = (const gni_map_job *)arg;
    char memory[GNI_SCRATCH + 64], *p[GNI_SPACE_OPS];
    gni_eval e;
    gni_cursor c;
    GNI_UNUSED(worker);
    gni_eval_begin(&e, &j->plan, memory);
    gni_cursor_set(&c, &j->space, begin);
    for (int64_t t = begin; t < end; t++) {
        int64_t n = gni_extent_size(c.ext), rest = n & 15;
        if (rest != 0 && n == c.ext[2] && n > 64) {
            // The whole groups of a row in place, the rest of it by itself.
            int64_t ext[3] = {1, 1, 0};
            ext[2] = n - rest;
            gni_map_tile(j, &e, c.p, ext);
            for (int k = 0; k < j->space.ops; k++)
                p[k] = c.p[k] + ext[2] * j->space.stride[k][j->space.rank - 1];
            ext[2] = rest;
            gni_map_tile(j, &e, p, ext);
        } else {
            gni_map_tile(j, &e, c.p, c.ext);
        }
        gni_cursor_next(&c);
    }
    if (j->stream) j->isa->stream(NULL, NULL, 0);
}

static void gni_copy_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_map_job *j = (const gni_map_job *)arg;
    const gni_space *s = &j->space;
    const int64_t *from = s->stride[0] + s->rank - 3, *to = s->stride[1] + s->rank - 3;
    gni_cursor c;
    GNI_UNUSED(worker);
    gni_cursor_set(&c, s, begin);
    for (int64_t t = begin; t < end; t++) {
        int64_t bytes = gni_extent_size(c.ext) * s->item[0];
        bool past = j->stream && ((bytes | (int64_t)((uintptr_t)c.p[1] & 63)) & 63) == 0 &&
                    gni_extent_contiguous(c.ext, from, s->item[0]) && gni_extent_contiguous(c.ext, to, s->item[0]);
        if (past) j->isa->stream(c.p[1], c.p[0], bytes);
        else gni_copy_box(c.p[1], to, c.p[0], from, c.ext, s->item[0]);
        gni_cursor_next(&c);
    }
    if (j->stream) j->isa->stream(NULL, NULL, 0);
}

// Tiles that make up work for one thread; a program's instructions count.
static int64_t gni_tile_grain(const gni_space *s, int work) {
    int64_t tile = 1;
    for (int i = s->rank - 3; i < s->rank; i++) tile *= s->tile[i];
    return GNI_MAX(GNI_GRAIN / (work + 1) / tile, 1);
}

static bool gni_is_copy(const gni_program *p) {
    return p->n_insn == 0 && p->n_out == 1 && p->n_in > 0 && p->out_reg[0] < p->n_in &&
           p->in_dtype[p->out_reg[0]] == p->out_dtype[0];
}

static bool gni_cpu_map(gn_context *g, const gni_map *m) {
    const gni_program *p = &m->program;
    gni_map_job j;
    gni_space *s = &j.space;
    gni_space_begin(s);
    j.isa = gni_cpu_isa_of(g->isa);
    for (int i = 0; i < m->rank; i++) gni_space_dim(s, m->dim[i]);
    if (gni_is_copy(p)) {
        const gni_operand *in = &m->in[p->out_reg[0]];
        gni_space_operand(s, in, gni_operand_data(in), 0);
        gni_space_operand(s, &m->out[0], gni_operand_data(&m->out[0]), 0);
        gni_space_merge(s, 0);
        gni_space_tile(s, gni_space_across(s) >= 0 ? GNI_BLOCK : GNI_COPY_TILE, false);
        j.stream = gni_streams(in, 1, m->out, 1, s);
        gni_parallel(g->pool, s->tiles, gni_tile_grain(s, 0), gni_copy_task, &j);
        return true;
    }
    for (int k = 0; k < p->n_in; k++) gni_space_operand(s, &m->in[k], gni_operand_data(&m->in[k]), 0);
    for (int k = 0; k < p->n_out; k++) gni_space_operand(s, &m->out[k], gni_operand_data(&m->out[k]), 0);
    gni_plan_make(&j.plan, p, g->isa, m->in, m->out);
    gni_space_merge(s, 0);
    gni_space_tile(s, j.plan.block, false);
    j.stream = gni_streams(m->in, p->n_in, m->out, p->n_out, s);
    gni_parallel(g->pool, s->tiles, gni_tile_grain(s, p->n_insn), gni_map_task, &j);
    return true;
}

// ------------------------------------------------------------------------------------------
// >>cpu_reduce
// Reductions on the CPU: what was gathered so far, and the ways along rows and columns.

typedef struct gni_reduce_job {
    const gni_reduce *r;
    gni_plan plan;
    gni_space space;       // of a tile's dimensions
    int64_t rows, columns; // kept elements: outer ones, and neighbours reduced side by side
    int64_t row_dim[GN_MAX_RANK], row_stride[GNI_MAX_INPUTS][GN_MAX_RANK];
    int row_rank;
    int64_t row;           // elements of a short row
    int64_t band;          // columns at once
    bool in_place;         // rows of memory are taken in where they are
    int64_t parts, part;   // parts of each reduction, tiles of a part
    gni_acc *acc;          // of each part, NULL if there is one only
    char *out;
} gni_reduce_job;

static bool gni_acc_is_float(const gni_reduce *r) {
    return r->domain == GNI_F;
}

static void gni_acc_begin(const gni_reduce *r, gni_acc *a, int64_t at) {
    bool wide = r->program.wide;
    int64_t least = wide ? INT64_MIN : r->domain == GNI_U ? 0 : INT32_MIN;
    int64_t most = wide ? INT64_MAX : r->domain == GNI_U ? (int64_t)UINT32_MAX : INT32_MAX;
    a->d = a->e = 0.0;
    a->i = 0;
    a->at = at;
    switch (r->op) {
    case GNI_RED_PROD:
        a->d = 1.0;
        a->i = 1;
        break;
    case GNI_RED_MIN:
    case GNI_RED_ARGMIN:
        a->d = GNI_INF;
        a->i = most;
        break;
    case GNI_RED_MAX:
    case GNI_RED_ARGMAX:
        a->d = -GNI_INF;
        a->i = least;
        break;
    case GNI_RED_ALL: a->i = 1; break;
    default: break;
    }
}

// Takes in what a later part has gathered.
static void gni_acc_join(const gni_reduce *r, gni_acc *a, const gni_acc *b) {
    bool real = gni_acc_is_float(r), better = false;
    switch (r->op) {
    case GNI_RED_SUM:
        gni_acc_add(&a->d, &a->e, b->d);
        a->e += b->e;
        a->i = (int64_t)((uint64_t)a->i + (uint64_t)b->i);
        break;
    case GNI_RED_PROD:
        a->d *= b->d;
        a->i = (int64_t)((uint64_t)a->i * (uint64_t)b->i);
        break;
    case GNI_RED_ANY: a->i |= b->i; break;
    case GNI_RED_ALL: a->i &= b->i; break;
    case GNI_RED_MIN:
    case GNI_RED_ARGMIN:
        better = real ? a->d == a->d && (b->d != b->d || b->d < a->d) : b->i < a->i;
        break;
    default: better = real ? a->d == a->d && (b->d != b->d || b->d > a->d) : b->i > a->i; break;
    }
    if (better) *a = *b;
}

static void gni_put_float(gn_dtype t, char *p, double v) {
    float f = (float)v;
    uint16_t h;
    switch (t) {
    case GN_F64: memcpy(p, &v, 8); break;
    case GN_F32: memcpy(p, &f, 4); break;
    case GN_F16:
        h = gni_f32_to_f16(gni_dodd(v));
        memcpy(p, &h, 2);
        break;
    default:
        h = gni_f32_to_bf16(gni_dodd(v));
        memcpy(p, &h, 2);
        break;
    }
}

static void gni_put_int(gn_dtype t, char *p, int64_t v) {
    uint32_t w = (uint32_t)((uint64_t)v & 0xffffffffu);
    uint8_t b = (uint8_t)(t == GN_BOOL ? v != 0 : (int)(v & 255));
    switch (gni_item_size(t)) {
    case 8: memcpy(p, &v, 8); break;
    case 4: memcpy(p, &w, 4); break;
    default: memcpy(p, &b, 1); break;
    }
}

static void gni_acc_store(const gni_reduce_job *j, int64_t index, const gni_acc *a) {
    const gni_reduce *r = j->r;
    gn_dtype t = r->out.dtype;
    char *p = j->out + index * gni_item_size(t);
    bool place = r->op == GNI_RED_ARGMIN || r->op == GNI_RED_ARGMAX;
    bool truth = r->op == GNI_RED_ANY || r->op == GNI_RED_ALL;
    bool real = gni_acc_is_float(r) && !place && !truth, to_real = gni_domain_of(t, true) == GNI_F;
    double d = fabs(a->d) < GNI_INF ? a->d + a->e : a->d;
    int64_t i = place ? a->at : a->i;
    if (to_real) gni_put_float(t, p, real ? d : (double)i);
    else gni_put_int(t, p, real ? gni_dtoi(d) : i);
}

// ---- reductions along rows: one kept element after another

// The place of a tile's first element among the reduced ones.
static int64_t gni_cursor_place(const gni_cursor *c, int first) {
    int64_t at = 0;
    for (int i = first; i < c->space->rank; i++) at = at * c->space->dim[i] + c->at[i];
    return at;
}

// Evaluates the program on a tile; returns the reduced register.
static const char *gni_reduce_tile(const gni_reduce_job *j, gni_eval *e, char *const *p, const int64_t ext[3]) {
    static char *const none[GNI_MAX_OUTPUTS] = {NULL, NULL, NULL, NULL};
    const gni_space *s = &j->space;
    const gni_program *g = j->plan.program;
    int64_t n = gni_extent_size(ext);
    bool whole = g->n_insn == 0 || (n & 15) == 0;
    for (int k = 0; k < g->n_in; k++)
        gni_eval_load(e, k, p[k], s->stride[k] + s->rank - 3, ext, n, whole);
    gni_eval_run(e, n, none);
    return e->reg[g->out_reg[0]];
}

// Kept element `row` shifts the operands by so much.
static void gni_reduce_shift(const gni_reduce_job *j, int64_t row, int64_t *shift) {
    for (int k = 0; k < j->space.ops; k++) shift[k] = 0;
    for (int i = j->row_rank - 1; i >= 0; i--) {
        int64_t at = row % j->row_dim[i];
        row /= j->row_dim[i];
        for (int k = 0; k < j->space.ops; k++) shift[k] += at * j->row_stride[k][i];
    }
}

static void gni_reduce_rows_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_reduce_job *j = (const gni_reduce_job *)arg;
    const gni_reduce *r = j->r;
    gni_fold_fn fold = j->plan.isa->fold[(int)r->op * 3 + (int)r->domain];
    char memory[GNI_SCRATCH + 64], *p[GNI_SPACE_OPS];
    int64_t shift[GNI_SPACE_OPS];
    gni_eval e;
    gni_cursor c;
    GNI_UNUSED(worker);
    gni_eval_begin(&e, &j->plan, memory);
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item / j->parts, first = item % j->parts * j->part;
        int64_t last = GNI_MIN(first + j->part, j->space.tiles);
        gni_acc acc;
        gni_reduce_shift(j, row, shift);
        gni_cursor_set(&c, &j->space, first);
        gni_acc_begin(r, &acc, gni_cursor_place(&c, 0));
        for (int64_t t = first; t < last; t++) {
            for (int k = 0; k < j->space.ops; k++) p[k] = c.p[k] + shift[k];
            const char *x = gni_reduce_tile(j, &e, p, c.ext);
            fold(&acc, x, gni_extent_size(c.ext), gni_cursor_place(&c, 0));
            gni_cursor_next(&c);
        }
        if (j->acc != NULL) j->acc[item] = acc;
        else gni_acc_store(j, row, &acc);
    }
}

// Short rows: a tile has many of them, whole. The last `row_rank` dimensions of the space are reduced.
static void gni_reduce_short_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_reduce_job *j = (const gni_reduce_job *)arg;
    const gni_reduce *r = j->r;
    gni_fold_fn fold = j->plan.isa->fold[(int)r->op * 3 + (int)r->domain];
    char memory[GNI_SCRATCH + 64];
    gni_eval e;
    gni_cursor c;
    GNI_UNUSED(worker);
    gni_eval_begin(&e, &j->plan, memory);
    gni_cursor_set(&c, &j->space, begin);
    for (int64_t t = begin; t < end; t++) {
        const char *x = gni_reduce_tile(j, &e, c.p, c.ext);
        int64_t rows = gni_extent_size(c.ext) / j->row, index = 0;
        for (int i = 0; i < c.space->rank - j->row_rank; i++) index = index * c.space->dim[i] + c.at[i];
        for (int64_t i = 0; i < rows; i++) {
            gni_acc acc;
            gni_acc_begin(r, &acc, 0);
            fold(&acc, x + i * j->row * j->plan.width, j->row, 0);
            gni_acc_store(j, index + i, &acc);
        }
        gni_cursor_next(&c);
    }
}

// ---- reductions along columns: neighbouring kept elements side by side

static void gni_columns_begin(const gni_reduce *r, gni_acc_columns *a, int64_t n, int64_t at) {
    gni_acc one;
    gni_acc_begin(r, &one, at);
    float f = (float)one.d;
    bool truth = r->op == GNI_RED_ANY || r->op == GNI_RED_ALL;
    bool sums = r->op == GNI_RED_SUM || r->op == GNI_RED_PROD;
    bool narrow = truth || (!sums && !r->program.wide);
    for (int64_t c = 0; c < n; c++) {
        a->e[c] = 0.0;
        a->at[c] = at;
        if (narrow && !truth && r->domain == GNI_F) ((float *)a->v)[c] = f;
        else if (narrow) ((uint32_t *)a->v)[c] = (uint32_t)((uint64_t)one.i & 0xffffffffu);
        else if (r->domain == GNI_F) ((double *)a->v)[c] = one.d;
        else ((int64_t *)a->v)[c] = one.i;
    }
}

static void gni_columns_get(const gni_reduce *r, const gni_acc_columns *a, int64_t c, gni_acc *acc) {
    bool truth = r->op == GNI_RED_ANY || r->op == GNI_RED_ALL;
    bool sums = r->op == GNI_RED_SUM || r->op == GNI_RED_PROD;
    bool narrow = truth || (!sums && !r->program.wide);
    acc->d = 0.0;
    acc->i = 0;
    acc->e = a->e[c];
    acc->at = a->at[c];
    if (narrow && !truth && r->domain == GNI_F) acc->d = (double)((const float *)a->v)[c];
    else if (narrow && r->domain == GNI_U) acc->i = (int64_t)((const uint32_t *)a->v)[c];
    else if (narrow) acc->i = (int64_t)((const int32_t *)a->v)[c];
    else if (r->domain == GNI_F) acc->d = ((const double *)a->v)[c];
    else acc->i = ((const int64_t *)a->v)[c];
}

// An item is a part of a band of columns of a row.
static void gni_reduce_columns_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_reduce_job *j = (const gni_reduce_job *)arg;
    const gni_reduce *r = j->r;
    gni_fold_columns_fn fold = j->plan.isa->fold_columns[(int)r->op * 3 + (int)r->domain];
    char memory[GNI_SCRATCH + 64], *p[GNI_SPACE_OPS];
    double v[GNI_BAND], low[GNI_BAND];
    int64_t at[GNI_BAND], shift[GNI_SPACE_OPS], bands = (j->columns - 1) / j->band + 1;
    gni_acc_columns acc;
    gni_eval e;
    gni_cursor c;
    GNI_UNUSED(worker);
    acc.v = v;
    acc.e = low;
    acc.at = at;
    gni_eval_begin(&e, &j->plan, memory);
    for (int64_t item = begin; item < end; item++) {
        int64_t index = item / j->parts, first = item % j->parts * j->part;
        int64_t last = GNI_MIN(first + j->part, j->space.tiles);
        int64_t row = index / bands, column = index % bands * j->band, n = GNI_MIN(j->band, j->columns - column);
        int rank = j->space.rank;
        gni_reduce_shift(j, row, shift);
        for (int k = 0; k < j->space.ops; k++) shift[k] += column * j->space.stride[k][rank - 1];
        gni_cursor_set(&c, &j->space, first);
        gni_columns_begin(r, &acc, n, gni_cursor_place(&c, 0) / j->space.dim[rank - 1]);
        for (int64_t t = first; t < last; t++) {
            int64_t ext[3], place = gni_cursor_place(&c, 0) / j->space.dim[rank - 1];
            memcpy(ext, c.ext, sizeof ext);
            ext[2] = n;
            for (int k = 0; k < j->space.ops; k++) p[k] = c.p[k] + shift[k];
            int64_t stride = n, rows = ext[0] * ext[1];
            const char *x = NULL;
            if (j->in_place) {
                x = p[0];
                stride = j->space.stride[0][rank - 2] / j->plan.width;
            } else {
                x = gni_reduce_tile(j, &e, p, ext);
            }
            fold(&acc, x, rows, stride, n, place);
            gni_cursor_next(&c);
        }
        for (int64_t i = 0; i < n; i++) {
            gni_acc one;
            gni_columns_get(r, &acc, i, &one);
            if (j->acc != NULL) j->acc[(row * j->columns + column + i) * j->parts + item % j->parts] = one;
            else gni_acc_store(j, row * j->columns + column + i, &one);
        }
    }
}

// ---- reductions: which way

// Whether neighbours in memory are kept ones, judged by the first input that tells.
static bool gni_reduce_by_columns(const gni_reduce *r) {
    int kept = r->kept;
    for (int k = 0; k < r->program.n_in && kept > 0; k++) {
        int64_t a = r->in[k].stride[kept - 1], b = 0;
        for (int i = kept; i < r->rank; i++) {
            int64_t s = r->in[k].stride[i] < 0 ? -r->in[k].stride[i] : r->in[k].stride[i];
            if (s != 0 && r->dim[i] > 1 && (b == 0 || s < b)) b = s;
        }
        a = a < 0 ? -a : a;
        if (a != 0 || b != 0) return a != 0 && (b == 0 || a < b);
    }
    return false;
}

// The space of the dimensions from `first` on, neighbours joined. Places are counted in C order.
static void gni_reduce_space(gni_reduce_job *j, int first) {
    const gni_reduce *r = j->r;
    gni_space *s = &j->space;
    gni_space_begin(s);
    for (int i = first; i < r->rank; i++) gni_space_dim(s, r->dim[i]);
    for (int k = 0; k < r->program.n_in; k++) gni_space_operand(s, &r->in[k], gni_operand_data(&r->in[k]), first);
    if (r->op != GNI_RED_ARGMIN && r->op != GNI_RED_ARGMAX && first == r->kept) gni_space_sort(s);
    gni_space_merge(s, 0);
}

// Whether the reduced register is an input as it lies in memory, contiguous along the last dimension.
static bool gni_reduce_bare(const gni_reduce_job *j) {
    const gni_program *p = &j->r->program;
    const gni_space *s = &j->space;
    return p->n_insn == 0 && s->ops == 1 && p->out_reg[0] == 0 && j->plan.isa->load[p->in_dtype[0]] == NULL &&
           s->stride[0][s->rank - 1] == s->item[0];
}

// The first `count` dimensions are stepped through outside of the space.
static void gni_reduce_outer(gni_reduce_job *j, int count) {
    const gni_reduce *r = j->r;
    j->row_rank = count;
    j->rows = 1;
    for (int i = 0; i < count; i++) {
        j->rows *= r->dim[i];
        j->row_dim[i] = r->dim[i];
        for (int k = 0; k < r->program.n_in; k++)
            j->row_stride[k][i] = r->in[k].stride[i] * gni_item_size(r->in[k].dtype);
    }
}

// Cuts each of `count` reductions of `n` elements into parts, for want of other work to share out.
static void gni_reduce_parts(gni_reduce_job *j, int64_t count, int64_t n, int64_t most) {
    int64_t tiles = j->space.tiles, per_tile = GNI_MAX(n / tiles, 1);
    j->part = tiles;
    if (count < 64) j->part = GNI_MAX((tiles - 1) / most + 1, GNI_CHUNK / per_tile + 1);
    j->parts = (tiles - 1) / j->part + 1;
}

static bool gni_reduce_run(gn_context *g, gni_reduce_job *j, int64_t items, int64_t n, gni_task_fn task) {
    int64_t results = j->rows * j->columns;
    if (j->parts > 1) {
        size_t bytes = (size_t)(results * j->parts) * sizeof(gni_acc);
        j->acc = (gni_acc *)gni_alloc(g, bytes);
        if (j->acc == NULL) {
            gni_fail_memory(g, "reduction", bytes);
            return false;
        }
    }
    gni_parallel(g->pool, items * j->parts, GNI_GRAIN * j->parts / GNI_MAX(n, 1), task, j);
    if (j->acc == NULL) return true;
    for (int64_t i = 0; i < results; i++) {
        gni_acc acc = j->acc[i * j->parts];
        for (int64_t k = 1; k < j->parts; k++) gni_acc_join(j->r, &acc, &j->acc[i * j->parts + k]);
        gni_acc_store(j, i, &acc);
    }
    gni_free(g, j->acc);
    return true;
}

static bool gni_reduce_columns(gn_context *g, gni_reduce_job *j, int64_t n) {
    const gni_reduce *r = j->r;
    gni_space *s = &j->space;
    int last = r->kept - 1;
    int64_t block = j->plan.block;
    gni_reduce_outer(j, last);
    gni_reduce_space(j, r->kept);
    j->columns = r->dim[last];
    gni_space_pad(s);
    gni_space_dim(s, 1);
    for (int k = 0; k < s->ops; k++)
        s->stride[k][s->rank - 1] = r->in[k].stride[last] * gni_item_size(r->in[k].dtype);
    // Bands as wide as a block lets them be with all rows, but no fewer than some rows or columns.
    j->in_place = gni_reduce_bare(j);
    j->band = j->in_place ? GNI_BAND : n <= 64 ? block / n & ~(int64_t)15 : 128;
    j->band = GNI_MIN(j->columns, GNI_MIN(GNI_MAX(j->band, 16), GNI_BAND));
    s->dim[s->rank - 1] = j->band; // one tile wide: the band at hand
    int64_t *t = s->tile + s->rank - 3, *d = s->dim + s->rank - 3;
    for (int i = 0; i < s->rank; i++) s->tile[i] = 1;
    t[2] = j->band;
    t[1] = GNI_MIN(d[1], j->in_place ? 8 * GNI_COLUMN_BLOCK : GNI_MAX(block / j->band, 1));
    if (t[1] == d[1] && !j->in_place) t[0] = GNI_MAX(GNI_MIN(d[0], block / (j->band * d[1])), 1);
    gni_space_count(s);
    int64_t items = j->rows * ((j->columns - 1) / j->band + 1);
    gni_reduce_parts(j, items, n * j->band, 32);
    return gni_reduce_run(g, j, items, n * j->band, gni_reduce_columns_task);
}

// Rows short enough for a tile to have several.
static bool gni_reduce_short(gn_context *g, gni_reduce_job *j, int64_t n) {
    const gni_reduce *r = j->r;
    gni_space *s = &j->space;
    int reduced = GNI_MAX(s->rank, 1);
    gni_space rows = *s;
    gni_space_pad(&rows);
    gni_space_begin(s);
    for (int i = 0; i < r->kept; i++) gni_space_dim(s, r->dim[i]);
    for (int k = 0; k < r->program.n_in; k++) gni_space_operand(s, &r->in[k], gni_operand_data(&r->in[k]), 0);
    for (int i = rows.rank - reduced; i < rows.rank; i++) {
        gni_space_dim(s, rows.dim[i]);
        for (int k = 0; k < s->ops; k++) s->stride[k][s->rank - 1] = rows.stride[k][i];
    }
    gni_space_pad(s);
    int at = s->rank - reduced - 1;
    for (int i = 0; i < s->rank; i++) s->tile[i] = i > at ? s->dim[i] : 1;
    s->tile[at] = GNI_MIN(s->dim[at], j->plan.block / n);
    if (s->tile[at] > 16 && s->tile[at] < s->dim[at]) s->tile[at] &= ~(int64_t)15;
    gni_space_count(s);
    j->row = n;
    j->row_rank = reduced;
    gni_parallel(g->pool, s->tiles, GNI_GRAIN / GNI_BLOCK, gni_reduce_short_task, j);
    return true;
}

static bool gni_reduce_rows(gn_context *g, gni_reduce_job *j, int64_t n) {
    const gni_reduce *r = j->r;
    gni_space *s = &j->space;
    gni_reduce_outer(j, r->kept);
    gni_reduce_space(j, r->kept);
    if (r->kept > 0 && s->rank <= 2 && n <= j->plan.block / 4) return gni_reduce_short(g, j, n);
    bool large = s->rank == 1 && gni_reduce_bare(j); // read where it is, it needs no register
    gni_space_tile(s, large ? 8 * GNI_BLOCK : j->plan.block, true);
    gni_reduce_parts(j, j->rows, n, GNI_PARTS);
    return gni_reduce_run(g, j, j->rows, n, gni_reduce_rows_task);
}

// Small integers need no 64-bit registers: folds of 32-bit ones gather in 64 bits all the same.
static bool gni_reduce_narrowed(const gni_reduce *r, gni_reduce *narrow) {
    const gni_program *p = &r->program;
    if (!p->wide || p->n_insn != 0 || p->out_reg[0] >= p->n_in || r->domain != GNI_I) return false;
    gn_dtype t = p->in_dtype[p->out_reg[0]];
    if (t != GN_I32 && t != GN_U32 && t != GN_U8 && t != GN_I8 && t != GN_BOOL) return false;
    *narrow = *r;
    narrow->in[0] = r->in[p->out_reg[0]];
    narrow->program.wide = false;
    narrow->program.n_in = 1;
    narrow->program.n_const = 0;
    narrow->program.in_dtype[0] = t;
    narrow->program.out_reg[0] = 0;
    narrow->domain = t == GN_U32 ? GNI_U : GNI_I;
    return true;
}

static bool gni_cpu_reduce(gn_context *g, const gni_reduce *r) {
    gni_reduce_job j;
    memset(&j, 0, sizeof j);
    j.r = r;
    j.columns = 1;
    j.out = gni_operand_data(&r->out);
    int64_t results = 1, n = 1;
    for (int i = 0; i < r->kept; i++) results *= r->dim[i];
    for (int i = r->kept; i < r->rank; i++) n *= r->dim[i];
    if (n == 0) {
        gni_acc acc;
        gni_acc_begin(r, &acc, 0);
        for (int64_t i = 0; i < results; i++) gni_acc_store(&j, i, &acc);
    }
    if (n == 0 || results == 0) return true;
    gni_reduce narrow;
    if (gni_reduce_narrowed(r, &narrow)) j.r = r = &narrow;
    gni_plan_make(&j.plan, &r->program, g->isa, r->in, NULL);
    // Short rows are turned into columns.
    bool columns = gni_reduce_by_columns(r) || (n <= 32 && r->kept > 0 && r->dim[r->kept - 1] >= 16);
    return columns ? gni_reduce_columns(g, &j, n) : gni_reduce_rows(g, &j, n);
}

// ------------------------------------------------------------------------------------------
// >>cpu_jobs
// The other jobs on the CPU (softmax, take, random, matmul) and the backend's table.

enum { GNI_SOFT_BLOCK = 2048, GNI_SOFT_PARTS = 64 };

typedef struct gni_softmax_job {
    const gni_softmax *d;
    const gni_cpu_isa *isa;
    int64_t item, width;     // bytes of an element in memory and in a register
    gni_convert_fn load, store;
    int64_t blocks;          // of a row
    gni_softmax_part *parts; // of the row at hand
    const char *x;
    char *y;
    double most, sum;
} gni_softmax_job;

// Block b's statistics; a softmax in float32 or float64 stores its terms on the way.
static gni_softmax_part gni_softmax_block(const gni_softmax_job *j, int64_t b) {
    int64_t at = b * GNI_SOFT_BLOCK, n = GNI_MIN(j->d->n - at, (int64_t)GNI_SOFT_BLOCK);
    const char *x = j->x + at * j->item;
    float f[GNI_SOFT_BLOCK];
    if (j->load != NULL) {
        j->load(f, x, n);
        return j->isa->softmax->stats(NULL, f, n);
    }
    return j->isa->softmax->stats(j->d->kind == GNI_SOFTMAX ? j->y + at * j->item : NULL, x, n);
}

static void gni_softmax_finish(const gni_softmax_job *j, int64_t b) {
    const gni_softmax_fns *fns = j->isa->softmax;
    int64_t at = b * GNI_SOFT_BLOCK, n = GNI_MIN(j->d->n - at, (int64_t)GNI_SOFT_BLOCK);
    const char *x = j->x + at * j->item;
    char *y = j->y + at * j->item;
    float f[GNI_SOFT_BLOCK];
    bool finite = fabs(j->most) < GNI_INF;
    const void *from = x;
    void *to = y;
    if (j->load != NULL) {
        j->load(f, x, n);
        from = to = f;
    }
    if (j->d->kind == GNI_LOG_SOFTMAX)
        fns->emit_log(to, from, n, finite ? j->most : 0.0, finite ? log(j->sum) : j->most);
    else if (!finite)
        fns->scale(to, from, n, GNI_NAN);
    else if (j->load != NULL)
        fns->emit(to, from, n, j->most, 1.0 / j->sum);
    else
        fns->scale(to, to, n, exp(j->parts[b].most - j->most) / j->sum);
    if (j->store != NULL) j->store(y, f, n);
}

// The row's largest element and sum from those of its blocks, in order.
static void gni_softmax_join(gni_softmax_job *j) {
    j->most = -GNI_INF;
    j->sum = 0.0;
    for (int64_t b = 0; b < j->blocks && j->most == j->most; b++)
        if (!(j->parts[b].most <= j->most)) j->most = j->parts[b].most;
    if (!(fabs(j->most) < GNI_INF)) return;
    for (int64_t b = 0; b < j->blocks; b++) j->sum += j->parts[b].sum * exp(j->parts[b].most - j->most);
}

static void gni_softmax_row(gni_softmax_job *j, int64_t row) {
    j->x = gni_operand_data(&j->d->in) + row * j->d->row_stride * j->item;
    j->y = gni_operand_data(&j->d->out) + row * (j->d->kind == GNI_LOGSUMEXP ? 1 : j->d->n) * j->item;
}

static void gni_softmax_end(const gni_softmax_job *j) {
    if (j->d->kind != GNI_LOGSUMEXP) return;
    gni_put_float(j->d->out.dtype, j->y, fabs(j->most) < GNI_INF ? j->most + log(j->sum) : j->most);
}

static void gni_softmax_rows_task(void *arg, int64_t begin, int64_t end, int worker) {
    gni_softmax_job j = *(const gni_softmax_job *)arg;
    gni_softmax_part parts[GNI_SOFT_PARTS];
    GNI_UNUSED(worker);
    j.parts = parts;
    for (int64_t row = begin; row < end; row++) {
        gni_softmax_row(&j, row);
        for (int64_t b = 0; b < j.blocks; b++) parts[b] = gni_softmax_block(&j, b);
        gni_softmax_join(&j);
        for (int64_t b = 0; b < j.blocks && j.d->kind != GNI_LOGSUMEXP; b++) gni_softmax_finish(&j, b);
        gni_softmax_end(&j);
    }
}

static void gni_softmax_blocks_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_softmax_job *j = (const gni_softmax_job *)arg;
    GNI_UNUSED(worker);
    for (int64_t b = begin; b < end; b++) j->parts[b] = gni_softmax_block(j, b);
}

static void gni_softmax_finish_task(void *arg, int64_t begin, int64_t end, int worker) {
    GNI_UNUSED(worker);
    for (int64_t b = begin; b < end; b++) gni_softmax_finish((const gni_softmax_job *)arg, b);
}

// Many short rows: several at a time, turned into columns.
static void gni_softmax_short_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_softmax_job *j = (const gni_softmax_job *)arg;
    const gni_softmax *d = j->d;
    int64_t n = d->n, out = d->kind == GNI_LOGSUMEXP ? 1 : n, per = GNI_SOFT_BLOCK / n & ~(int64_t)15;
    float t[GNI_SOFT_BLOCK], raw[GNI_SOFT_BLOCK];
    GNI_UNUSED(worker);
    for (int64_t row = begin; row < end; row += per) {
        int64_t rows = GNI_MIN(per, end - row), wide = (rows + 15) & ~(int64_t)15, step = d->row_stride * j->item;
        const char *x = gni_operand_data(&d->in) + row * step;
        char *y = gni_operand_data(&d->out) + row * out * j->item;
        if (j->load != NULL) {
            for (int64_t i = 0; i < rows; i++) j->load(raw + i * n, x + i * step, n);
            x = (const char *)raw;
            step = n * 4;
        }
        if (wide != rows) memset(t, 0, sizeof(float) * (size_t)(wide * n));
        gni_turn((char *)t, wide * 4, x, step, n, rows, 4);
        j->isa->softmax->columns(t, n, wide, d->kind);
        gni_turn(j->store != NULL ? (char *)raw : y, out * 4, (const char *)t, wide * 4, rows, out, 4);
        if (j->store != NULL) j->store(y, raw, rows * out);
    }
}

static bool gni_cpu_softmax(gn_context *g, const gni_softmax *d) {
    gni_softmax_job j;
    memset(&j, 0, sizeof j);
    j.d = d;
    j.item = gni_item_size(d->in.dtype);
    j.isa = d->in.dtype == GN_F64 ? &gni_isa_wide : gni_cpu_isa_of(g->isa);
    if (j.item == 2) {
        j.load = j.isa->load[d->in.dtype];
        j.store = j.isa->store[d->in.dtype];
    }
    if (d->n > 0 && d->n <= 64 && d->rows >= 8 && j.item <= 4) {
        gni_parallel(g->pool, d->rows, GNI_MAX(GNI_GRAIN / 4 / d->n & ~(int64_t)15, 16), gni_softmax_short_task, &j);
        return true;
    }
    j.blocks = d->n == 0 ? 0 : (d->n - 1) / GNI_SOFT_BLOCK + 1;
    if (j.blocks <= GNI_SOFT_PARTS) {
        gni_parallel(g->pool, d->rows, GNI_MAX(GNI_GRAIN / 8 / GNI_MAX(d->n, 1), 1), gni_softmax_rows_task, &j);
        return true;
    }
    size_t bytes = (size_t)j.blocks * sizeof(gni_softmax_part);
    j.parts = (gni_softmax_part *)gni_alloc(g, bytes);
    if (j.parts == NULL) {
        gni_fail_memory(g, "gn_softmax", bytes);
        return false;
    }
    for (int64_t row = 0; row < d->rows; row++) {
        gni_softmax_row(&j, row);
        gni_parallel(g->pool, j.blocks, 4, gni_softmax_blocks_task, &j);
        gni_softmax_join(&j);
        if (d->kind != GNI_LOGSUMEXP) gni_parallel(g->pool, j.blocks, 4, gni_softmax_finish_task, &j);
        gni_softmax_end(&j);
    }
    gni_free(g, j.parts);
    return true;
}

// ---- take

typedef struct gni_take_job {
    const gni_take *d;
    const char *in, *index;
    char *out;
    int64_t run; // bytes of a row
} gni_take_job;

static int64_t gni_index_at(gn_dtype t, const char *p, int64_t i) {
    int64_t v;
    int32_t w;
    uint32_t u;
    switch (t) {
    case GN_I64: memcpy(&v, p + 8 * i, 8); return v;
    case GN_I32: memcpy(&w, p + 4 * i, 4); return w;
    case GN_U32: memcpy(&u, p + 4 * i, 4); return (int64_t)u;
    case GN_I8: return (int8_t)p[i];
    default: return (uint8_t)p[i];
    }
}

static void gni_take_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_take_job *j = (const gni_take_job *)arg;
    const gni_take *d = j->d;
    GNI_UNUSED(worker);
    for (int64_t i = begin; i < end; i++) {
        int64_t outer = i / d->count, at = gni_index_at(d->index.dtype, j->index, i % d->count);
        if (at < 0) at += d->extent;
        const char *from = j->in + (outer * d->extent + at) * j->run;
        char *to = j->out + i * j->run;
        switch (j->run) {
        case 1: *to = *from; break;
        case 4: memcpy(to, from, 4); break;
        case 8: memcpy(to, from, 8); break;
        default: memcpy(to, from, (size_t)j->run); break;
        }
    }
}

static bool gni_cpu_take(gn_context *g, const gni_take *d) {
    gni_take_job j;
    j.d = d;
    j.in = gni_operand_data(&d->in);
    j.index = gni_operand_data(&d->index);
    j.out = gni_operand_data(&d->out);
    j.run = d->inner * gni_item_size(d->in.dtype);
    for (int64_t i = 0; i < d->count; i++) {
        int64_t at = gni_index_at(d->index.dtype, j.index, i);
        if (at >= -d->extent && at < d->extent) continue;
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_take: index %lld out of range for axis of size %lld", (long long)at,
                 (long long)d->extent);
        return false;
    }
    if (j.run == 0) return true;
    int64_t grain = GNI_MAX(GNI_GRAIN * 2 / (j.run + 8), 1);
    gni_parallel(g->pool, d->outer * d->count, grain, gni_take_task, &j);
    return true;
}

// ---- random

typedef struct gni_random_job {
    const gni_random *d;
    const gni_cpu_isa *isa;
    char *out;
    bool pairs; // an element is two words
} gni_random_job;

static uint64_t gni_mulhi64(uint64_t a, uint64_t b) {
    uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    uint64_t mid = a1 * b0 + ((a0 * b0) >> 32), low = a0 * b1 + (mid & 0xffffffffu);
    return a1 * b1 + (mid >> 32) + (low >> 32);
}

static uint64_t gni_random_pair(const uint32_t *w) {
    return (uint64_t)w[1] << 32 | w[0];
}

static void gni_random_range(const gni_random_job *j, const uint32_t *w, char *to, int64_t n) {
    const gni_random *d = j->d;
    int64_t item = gni_item_size(d->out.dtype);
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = j->pairs ? gni_mulhi64(gni_random_pair(w + 2 * i), d->range)
                              : ((uint64_t)w[i] * d->range) >> 32;
        gni_put_int(d->out.dtype, to + i * item, (int64_t)((uint64_t)d->low + x));
    }
}

// -log(u) for 0 < u <= 1: u = 2^k m with m near 1, log(m) as the series of 2 atanh((m - 1) / (m + 1)).
static double gni_random_log(double u) {
    uint64_t bits;
    memcpy(&bits, &u, 8);
    bits -= 0x3fe6a09e667f3bcdu; // sqrt(1/2)
    int64_t k = (int64_t)bits >> 52;
    bits = (bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu;
    double m;
    memcpy(&m, &bits, 8);
    static const double odd[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                                 1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
    double s = (m - 1.0) / (m + 1.0), z = s * s, p = 0.0;
    for (int i = 0; i < 11; i++) p = (p + odd[i]) * z;
    return -((double)k * GNI_LN2 + (s + s) * (p + 1.0));
}

// A normal pair is the two elements of a block (Box & Muller 1958): the angle is one of eight octants,
// which are exchanges and signs, and 50 bits within it. Only + - * / and the square root: the same bits everywhere.
static void gni_random_normal_pair(const uint32_t *w, double *n0, double *n1) {
    uint64_t b = gni_random_pair(w + 2);
    double u = 1.0 - (double)(gni_random_pair(w) >> 11) * 1.1102230246251565e-16;
    double r = sqrt(2.0 * gni_random_log(u));
    static const double sine[] = {1.0 / 272, 1.0 / 210, 1.0 / 156, 1.0 / 110, 1.0 / 72, 1.0 / 42, 1.0 / 20, 1.0 / 6};
    static const double cosine[] = {1.0 / 240, 1.0 / 182, 1.0 / 132, 1.0 / 90, 1.0 / 56, 1.0 / 30, 1.0 / 12, 1.0 / 2};
    double x = ((double)(b >> 11 & 0x3ffffffffffffu) + 0.5) * 6.9757369960172635e-16, z = x * x, p = 0.0, q = 0.0;
    for (int i = 0; i < 8; i++) {
        p = (1.0 - p) * (z * sine[i]);
        q = (1.0 - q) * (z * cosine[i]);
    }
    p = r * (x * (1.0 - p)); // sine
    q = r * (1.0 - q);       // cosine
    bool swap = (b >> 61 & 1) != 0;
    *n0 = swap ? q : p;
    *n1 = swap ? p : q;
    if (b >> 63 != 0) *n0 = -*n0;
    if ((b >> 62 & 1) != 0) *n1 = -*n1;
}

static void gni_random_doubles(const gni_random_job *j, const uint32_t *w, double *to, int64_t n) {
    if (j->d->kind == GNI_RAND_UNIFORM) {
        for (int64_t i = 0; i < n; i++) to[i] = (double)(gni_random_pair(w + 2 * i) >> 11) * 1.1102230246251565e-16;
        return;
    }
    for (int64_t i = 0; i < n; i += 2) {
        double n0, n1;
        gni_random_normal_pair(w + 2 * i, &n0, &n1);
        to[i] = n0;
        if (i + 1 < n) to[i + 1] = n1;
    }
}

// Uniform halves take the leading bits that they can hold, since rounding could give 1.
static void gni_random_halves(const gni_random_job *j, const uint32_t *w, uint16_t *to, int64_t n) {
    bool bf16 = j->d->out.dtype == GN_BF16;
    for (int64_t i = 0; i < n; i++) {
        float f;
        memcpy(&f, &w[i], 4);
        if (j->d->kind == GNI_RAND_UNIFORM)
            f = bf16 ? (float)(w[i] >> 24) * 0.00390625f : (float)(w[i] >> 21) * 0.00048828125f;
        to[i] = bf16 ? gni_f32_to_bf16(f) : gni_f32_to_f16(f);
    }
}

enum { GNI_RANDOM_BLOCKS = 256 }; // Philox blocks made at once

// Items are runs of GNI_RANDOM_BLOCKS blocks.
static void gni_random_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_random_job *j = (const gni_random_job *)arg;
    const gni_random *d = j->d;
    int64_t per = j->pairs ? 2 : 4, item = gni_item_size(d->out.dtype);
    uint32_t w[4 * GNI_RANDOM_BLOCKS + 4];
    GNI_UNUSED(worker);
    for (int64_t t = begin; t < end; t++) {
        int64_t at = t * GNI_RANDOM_BLOCKS * per, n = GNI_MIN(d->n - at, GNI_RANDOM_BLOCKS * per);
        int64_t blocks = (n - 1) / per + 1;
        uint64_t first = d->counter + (uint64_t)t * GNI_RANDOM_BLOCKS;
        char *to = j->out + at * item;
        bool in_place = item == 4 && n % 4 == 0 && d->kind != GNI_RAND_RANGE;
        void *made = in_place ? (void *)to : (void *)w;
        bool words = j->pairs || d->kind == GNI_RAND_BITS || d->kind == GNI_RAND_RANGE ||
                     (item == 2 && d->kind == GNI_RAND_UNIFORM);
        if (words) j->isa->bits((uint32_t *)made, d->seed, first, blocks);
        else if (d->kind == GNI_RAND_UNIFORM) j->isa->uniform((float *)made, d->seed, first, blocks);
        else j->isa->normal((float *)made, d->seed, first, blocks);
        if (in_place) continue;
        if (d->kind == GNI_RAND_RANGE) gni_random_range(j, w, to, n);
        else if (item == 8) gni_random_doubles(j, w, (double *)(void *)to, n);
        else if (item == 2) gni_random_halves(j, w, (uint16_t *)(void *)to, n);
        else memcpy(to, w, (size_t)(n * 4));
    }
}

static bool gni_cpu_random(gn_context *g, const gni_random *d) {
    gni_random_job j;
    j.d = d;
    j.isa = gni_cpu_isa_of(g->isa);
    j.out = gni_operand_data(&d->out);
    j.pairs = gni_random_pairs(d);
    int64_t run = GNI_RANDOM_BLOCKS * (j.pairs ? 2 : 4);
    if (d->n > 0) gni_parallel(g->pool, (d->n - 1) / run + 1, 8, gni_random_task, &j);
    return true;
}

// ---- matmul

static bool gni_cpu_matmul(gn_context *g, const gni_matmul *d) {
    gni_gemm m;
    memset(&m, 0, sizeof m);
    m.in = d->a.dtype;
    m.out = d->c.dtype;
    m.m = d->m;
    m.n = d->n;
    m.k = d->k;
    m.a = gni_operand_data(&d->a);
    m.a_rs = d->a_rs;
    m.a_cs = d->a_cs;
    m.b = gni_operand_data(&d->b);
    m.b_rs = d->b_rs;
    m.b_cs = d->b_cs;
    m.c = gni_operand_data(&d->c);
    m.c_rs = d->n;
    m.act = d->act;
    if (d->bias.buf != NULL) m.bias = (const float *)(const void *)gni_operand_data(&d->bias);
    m.batch = 1;
    for (int i = 0; i < d->batch_rank; i++) m.batch *= d->batch_dim[i];
    int64_t *off = NULL;
    if (m.batch > 1) {
        size_t bytes = (size_t)m.batch * 3 * sizeof(int64_t);
        off = (int64_t *)gni_alloc(g, bytes);
        if (off == NULL) {
            gni_fail_memory(g, "gn_matmul", bytes);
            return false;
        }
        for (int64_t q = 0; q < m.batch; q++) {
            int64_t rest = q, a = 0, b = 0;
            for (int i = d->batch_rank - 1; i >= 0; i--) {
                a += rest % d->batch_dim[i] * d->a_batch[i];
                b += rest % d->batch_dim[i] * d->b_batch[i];
                rest /= d->batch_dim[i];
            }
            off[q] = a;
            off[m.batch + q] = b;
            off[2 * m.batch + q] = q * d->m * d->n;
        }
        m.a_off = off;
        m.b_off = off + m.batch;
        m.c_off = off + 2 * m.batch;
    }
    if (g->gemm_work == NULL) g->gemm_work = (gni_gemm_work *)gni_calloc(g, sizeof(gni_gemm_work));
    bool ok = g->gemm_work != NULL && gni_gemm_cpu(g, g->pool, g->gemm_work, (int)g->isa, &m);
    if (!ok && !g->call_failed) gni_fail_memory(g, "gn_matmul", sizeof(gni_gemm_work));
    gni_free(g, off);
    return ok;
}

// ---- the backend

// Registers take every dtype but the complex ones, which can only be copied; 64-bit dtypes take wide ones.
static bool gni_cpu_runs(const gni_program *p) {
    bool odd = false, wide = false;
    for (int i = 0; i < p->n_in; i++) {
        odd = odd || p->in_dtype[i] == GN_C64 || p->in_dtype[i] == GN_C128;
        wide = wide || p->in_dtype[i] == GN_F64 || p->in_dtype[i] == GN_I64;
    }
    for (int o = 0; o < p->n_out; o++) {
        odd = odd || p->out_dtype[o] == GN_C64 || p->out_dtype[o] == GN_C128;
        wide = wide || p->out_dtype[o] == GN_F64 || p->out_dtype[o] == GN_I64;
    }
    if (gni_is_copy(p)) return true;
    const gni_kernel *kernel = p->wide ? gni_kernels_wide : gni_kernels_narrow_plain;
    for (int i = 0; i < p->n_insn; i++)
        if (GNI_INSN_CODE(p->insn[i]) >= GNI_OP_COUNT * 3u || kernel[GNI_INSN_CODE(p->insn[i])] == NULL) return false;
    return !odd && (!wide || p->wide);
}

static bool gni_cpu_supports(gn_context *g, gni_job_kind kind, const void *job) {
    GNI_UNUSED(g);
    switch (kind) {
    case GNI_JOB_MAP: return gni_cpu_runs(&((const gni_map *)job)->program);
    case GNI_JOB_REDUCE: {
        const gni_reduce *r = (const gni_reduce *)job;
        return gni_cpu_runs(&r->program) && r->out.dtype != GN_C64 && r->out.dtype != GN_C128 && r->in[0].dtype != GN_C64;
    }
    case GNI_JOB_SOFTMAX: {
        gn_dtype t = ((const gni_softmax *)job)->in.dtype;
        return t == GN_F32 || t == GN_F64 || t == GN_F16 || t == GN_BF16;
    }
    case GNI_JOB_MATMUL: {
        gn_dtype t = ((const gni_matmul *)job)->a.dtype;
        return t == GN_F32 || t == GN_F64 || t == GN_F16 || t == GN_BF16 || t == GN_I32 || t == GN_I64;
    }
    case GNI_JOB_TAKE: {
        gn_dtype t = ((const gni_take *)job)->index.dtype;
        return t == GN_I32 || t == GN_I64 || t == GN_U8 || t == GN_I8 || t == GN_U32;
    }
    case GNI_JOB_FFT: return gni_fft_cpu_supports((const gni_fft *)job);
    case GNI_JOB_RANDOM: {
        const gni_random *d = (const gni_random *)job;
        gn_dtype t = d->out.dtype;
        if (d->kind == GNI_RAND_BITS) return t == GN_U32 || t == GN_I32;
        if (d->kind == GNI_RAND_RANGE) return gni_domain_of(t, true) == GNI_I && t != GN_C64 && t != GN_C128;
        return t == GN_F32 || t == GN_F64 || t == GN_F16 || t == GN_BF16;
    }
    default: return false;
    }
}

static bool gni_cpu_run(gn_context *g, gni_job_kind kind, const void *job) {
    switch (kind) {
    case GNI_JOB_MAP: return gni_cpu_map(g, (const gni_map *)job);
    case GNI_JOB_REDUCE: return gni_cpu_reduce(g, (const gni_reduce *)job);
    case GNI_JOB_SOFTMAX: return gni_cpu_softmax(g, (const gni_softmax *)job);
    case GNI_JOB_MATMUL: return gni_cpu_matmul(g, (const gni_matmul *)job);
    case GNI_JOB_TAKE: return gni_cpu_take(g, (const gni_take *)job);
    case GNI_JOB_RANDOM: return gni_cpu_random(g, (const gni_random *)job);
    case GNI_JOB_FFT: return gni_fft_cpu(g, (const gni_fft *)job);
    default: return false;
    }
}

static const gni_backend_api gni_cpu_api = {"cpu", GNI_ON_CPU, gni_cpu_supports, gni_cpu_run};
// ------------------------------------------------------------------------------------------
// >>vk_loader
// The Vulkan headers, the private table of function pointers and where it is filled from.
// GNI_VULKAN is 1 where the Vulkan rooms exist; without them gni_vk_open gives the reason and
// nothing else does. No vk* symbol is defined or linked.

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

typedef struct gni_vk gni_vk; // an open Vulkan device: memory, stream, pipelines

#if !GNI_VULKAN

// What other rooms call no matter what; a device never comes to be, so all but the first two are
// never run.
GNI_MAYBE_UNUSED static int gni_vk_list(gn_context *g, gn_device_info *out, int capacity) {
    GNI_UNUSED(g);
    GNI_UNUSED(out);
    GNI_UNUSED(capacity);
    return 0;
}

GNI_MAYBE_UNUSED static gni_vk *gni_vk_open(gn_context *g, const gn_options *o, char *why,
                                            size_t why_size) {
    GNI_UNUSED(g);
    GNI_UNUSED(o);
#ifdef GPUNUM_NO_VULKAN
    snprintf(why, why_size, "compiled with GPUNUM_NO_VULKAN");
#else
    snprintf(why, why_size, "compiled without Vulkan headers");
#endif
    return NULL;
}

GNI_MAYBE_UNUSED static void gni_vk_close(gni_vk *vk) { GNI_UNUSED(vk); }
GNI_MAYBE_UNUSED static bool gni_vk_lost(const gni_vk *vk) { return vk != NULL; }
GNI_MAYBE_UNUSED static bool gni_vk_flush(gni_vk *vk) { return vk == NULL; }
GNI_MAYBE_UNUSED static bool gni_vk_wait(gni_vk *vk) { return vk == NULL; }
GNI_MAYBE_UNUSED static void gni_vk_trim(gni_vk *vk) { GNI_UNUSED(vk); }
GNI_MAYBE_UNUSED static void gni_vk_memory_stats(const gni_vk *vk, gn_memory_stats *out) {
    GNI_UNUSED(vk);
    GNI_UNUSED(out);
}
GNI_MAYBE_UNUSED static bool gni_vk_alloc(gni_vk *vk, uint64_t bytes, gni_vk_mem *out) {
    GNI_UNUSED(bytes);
    GNI_UNUSED(out);
    return vk == NULL && out == NULL;
}
GNI_MAYBE_UNUSED static void gni_vk_free(gni_vk *vk, gni_vk_mem *m) {
    GNI_UNUSED(vk);
    GNI_UNUSED(m);
}
GNI_MAYBE_UNUSED static bool gni_vk_upload(gni_vk *vk, const gni_vk_mem *dst, uint64_t offset,
                                           const void *src, uint64_t bytes) {
    GNI_UNUSED(dst);
    GNI_UNUSED(src);
    GNI_UNUSED(offset + bytes);
    return vk == NULL;
}
GNI_MAYBE_UNUSED static bool gni_vk_download(gni_vk *vk, const gni_vk_mem *src, uint64_t offset,
                                             void *dst, uint64_t bytes) {
    GNI_UNUSED(src);
    GNI_UNUSED(dst);
    GNI_UNUSED(offset + bytes);
    return vk == NULL;
}

GNI_MAYBE_UNUSED static bool gni_vk_download_begin(gni_vk *vk, const gni_vk_mem *src,
                                                   uint64_t offset, uint64_t bytes,
                                                   gni_vk_ticket *t) {
    GNI_UNUSED(src);
    GNI_UNUSED(t);
    GNI_UNUSED(offset + bytes);
    return vk == NULL;
}
GNI_MAYBE_UNUSED static bool gni_vk_ticket_ready(gni_vk *vk, gni_vk_ticket *t, bool wait) {
    GNI_UNUSED(t);
    GNI_UNUSED(wait);
    return vk == NULL;
}
GNI_MAYBE_UNUSED static const void *gni_vk_ticket_data(const gni_vk_ticket *t) { return t->data; }
GNI_MAYBE_UNUSED static void gni_vk_ticket_release(gni_vk *vk, gni_vk_ticket *t) {
    GNI_UNUSED(vk);
    GNI_UNUSED(t);
}

#else // GNI_VULKAN

#if !defined(VOLK_H_) && !defined(_WIN32)
#include <dlfcn.h>
#endif

// Functions by what they are loaded from: nothing, an instance, a device.
#define GNI_VK_GLOBAL_FUNCTIONS(X)            \
    X(vkEnumerateInstanceExtensionProperties) \
    X(vkCreateInstance)

#define GNI_VK_INSTANCE_FUNCTIONS(X)            \
    X(vkDestroyInstance)                        \
    X(vkEnumeratePhysicalDevices)               \
    X(vkEnumerateDeviceExtensionProperties)     \
    X(vkGetPhysicalDeviceProperties)            \
    X(vkGetPhysicalDeviceProperties2)           \
    X(vkGetPhysicalDeviceFeatures2)             \
    X(vkGetPhysicalDeviceMemoryProperties)      \
    X(vkGetPhysicalDeviceQueueFamilyProperties) \
    X(vkCreateDevice)                           \
    X(vkGetDeviceProcAddr)

#define GNI_VK_DEVICE_FUNCTIONS(X)   \
    X(vkDestroyDevice)               \
    X(vkGetDeviceQueue)              \
    X(vkQueueSubmit)                 \
    X(vkQueueWaitIdle)               \
    X(vkAllocateMemory)              \
    X(vkFreeMemory)                  \
    X(vkMapMemory)                   \
    X(vkCreateBuffer)                \
    X(vkDestroyBuffer)               \
    X(vkGetBufferMemoryRequirements) \
    X(vkBindBufferMemory)            \
    X(vkGetBufferDeviceAddress)      \
    X(vkCreateCommandPool)           \
    X(vkDestroyCommandPool)          \
    X(vkResetCommandPool)            \
    X(vkAllocateCommandBuffers)      \
    X(vkBeginCommandBuffer)          \
    X(vkEndCommandBuffer)            \
    X(vkCmdPipelineBarrier)          \
    X(vkCmdCopyBuffer)               \
    X(vkCmdFillBuffer)               \
    X(vkCmdBindPipeline)             \
    X(vkCmdBindDescriptorSets)       \
    X(vkCmdPushConstants)            \
    X(vkCmdDispatch)                 \
    X(vkCmdResetQueryPool)           \
    X(vkCmdWriteTimestamp)           \
    X(vkCreateQueryPool)             \
    X(vkDestroyQueryPool)            \
    X(vkGetQueryPoolResults)         \
    X(vkCreateSemaphore)             \
    X(vkDestroySemaphore)            \
    X(vkWaitSemaphores)              \
    X(vkGetSemaphoreCounterValue)    \
    X(vkCreateShaderModule)          \
    X(vkDestroyShaderModule)         \
    X(vkCreatePipelineCache)         \
    X(vkDestroyPipelineCache)        \
    X(vkGetPipelineCacheData)        \
    X(vkCreateComputePipelines)      \
    X(vkDestroyPipeline)             \
    X(vkCreatePipelineLayout)        \
    X(vkDestroyPipelineLayout)       \
    X(vkCreateDescriptorSetLayout)   \
    X(vkDestroyDescriptorSetLayout)  \
    X(vkCreateDescriptorPool)        \
    X(vkDestroyDescriptorPool)       \
    X(vkResetDescriptorPool)         \
    X(vkAllocateDescriptorSets)      \
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
#define GNI_VK_TYPE_BFLOAT16_FEATURES          ((VkStructureType)1000141000)
#define GNI_VK_TYPE_SM_BUILTINS_PROPERTIES     ((VkStructureType)1000154001)
#define GNI_VK_TYPE_SUBGROUP_SIZE_PROPERTIES   ((VkStructureType)1000225000)
#define GNI_VK_TYPE_REQUIRED_SUBGROUP_SIZE     ((VkStructureType)1000225001)
#define GNI_VK_TYPE_SUBGROUP_SIZE_FEATURES     ((VkStructureType)1000225002)
#define GNI_VK_TYPE_SHADER_CORE_PROPERTIES_AMD ((VkStructureType)1000185000)
#define GNI_VK_TYPE_MAINTENANCE4_FEATURES      ((VkStructureType)1000413000)
#define GNI_VK_TYPE_MAINTENANCE4_PROPERTIES    ((VkStructureType)1000413001)
#define GNI_VK_TYPE_COOP_FEATURES              ((VkStructureType)1000506000)
#define GNI_VK_TYPE_COOP_PROPERTIES            ((VkStructureType)1000506001)
#define GNI_VK_TYPE_COOP2_FEATURES             ((VkStructureType)1000593000)
#define GNI_VK_TYPE_COOP2_DIMENSIONS           ((VkStructureType)1000593001)
#define GNI_VK_TYPE_COOP2_PROPERTIES           ((VkStructureType)1000593002)

// What every chained structure of switches looks like: a header, then VkBool32s.
#define GNI_VK_SWITCHES(name, count) \
    typedef struct name {            \
        VkStructureType sType;       \
        void *pNext;                 \
        VkBool32 on[count];          \
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

typedef VkResult(VKAPI_PTR *gni_vk_get_coop)(VkPhysicalDevice, uint32_t *,
                                             gni_vk_coop_properties *);
typedef VkResult(VKAPI_PTR *gni_vk_get_coop2)(VkPhysicalDevice, uint32_t *,
                                              gni_vk_coop2_dimensions *);

static const char *gni_vk_result_name(VkResult r) {
    switch ((int)r) {
#define GNI_X(name) \
    case name:      \
        return #name;
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
#define GNI_X(name)                                 \
    f->name = (PFN_##name)f->root(instance, #name); \
    all = all && f->name;
    GNI_VK_INSTANCE_FUNCTIONS(GNI_X)
#undef GNI_X
    return all;
}

static bool gni_vk_load_device(gni_vk_functions *f, VkDevice device) {
    bool all = true;
#define GNI_X(name)                                              \
    f->name = (PFN_##name)f->vkGetDeviceProcAddr(device, #name); \
    all = all && f->name;
    GNI_VK_DEVICE_FUNCTIONS(GNI_X)
#undef GNI_X
    return all;
}

#endif // GNI_VULKAN
// ------------------------------------------------------------------------------------------
// >>vk_device
// The types of all Vulkan rooms, the choice of a device, its features and limits, and taking over a
// host's device. Outside the Vulkan rooms only the functions named in the list below are used,
// always under the context's lock.
//
//   open, close, list     gni_vk_open, gni_vk_close, gni_vk_list, gni_vk_caps_get
//   memory                gni_vk_alloc, gni_vk_free, gni_vk_trim, gni_vk_memory_stats, gni_vk_wrap
//   data                  gni_vk_upload, gni_vk_download, gni_vk_download_begin,
//                         gni_vk_ticket_ready, _data, _release, gni_vk_copy, gni_vk_fill
//   work                  gni_vk_pipeline_get, gni_vk_dispatch, gni_vk_flush, gni_vk_wait
//   watching              gni_vk_profile, gni_vk_profile_fetch
//   in a host's commands  gni_vk_record_begin, gni_vk_record_end, gni_vk_record_done

#if GNI_VULKAN

enum {
    GNI_VK_MAX_SPEC = 48,       // specialisation constants of a kernel
    GNI_VK_MAX_USES = 16,       // buffer arguments of a dispatch
    GNI_VK_MAX_PARAMS = 4096,   // bytes
    GNI_VK_MAX_COOP = 64,       // matrix shapes remembered
    GNI_VK_BATCHES = 8,         // command buffers in flight
    GNI_VK_BATCH_COMMANDS = 64, // commands after which a batch is submitted
    GNI_VK_IDLE_COMMANDS = 8,   // every so many it is submitted if the device is idle
    GNI_VK_HAZARDS = 64,        // byte ranges remembered since the last barrier
    GNI_VK_UNIT = 256,          // bytes: granularity and alignment of the pool
    GNI_VK_ADDRESS_BYTES = 128  // of the table of addresses in front of the parameters
};

typedef struct gni_vk_block gni_vk_block; // a gni_vk_mem's; NULL there for a host's buffer
typedef struct gni_vk_pipeline gni_vk_pipeline;

// A byte range of `mem` that a dispatch reads or writes; also buffer argument k of its kernel.
// `offset` is a multiple of 16, and of 256 without addresses.
typedef struct gni_vk_use {
    const gni_vk_mem *mem;
    uint64_t offset, bytes;
    bool write;
} gni_vk_use;

typedef struct gni_vk_kernel {
    int module; // index into gni_modules of the variant with addresses
    uint32_t n_spec;
    uint32_t spec[GNI_VK_MAX_SPEC]; // values of constant ids 0 to n_spec - 1
    uint32_t subgroup;              // required size, with full subgroups; 0 = the driver's choice
    // Constants from this id on name, in their low 11 bits, the cases of the module's large switch that
    // are needed; the rest is cut off before the driver sees it. 0 = keep all.
    uint32_t first_code;
} gni_vk_kernel;

typedef enum gni_vk_mode {
    GNI_VK_WAIT,  // compile here if need be
    GNI_VK_ASYNC, // compile in the background, NULL until ready
    GNI_VK_PEEK   // NULL if it is not there
} gni_vk_mode;

// Values of Vulkan's VkComponentTypeKHR.
enum {
    GNI_VK_COMPONENT_F16 = 0,
    GNI_VK_COMPONENT_F32 = 1,
    GNI_VK_COMPONENT_F64 = 2,
    GNI_VK_COMPONENT_I8 = 3,
    GNI_VK_COMPONENT_I32 = 5,
    GNI_VK_COMPONENT_U8 = 7,
    GNI_VK_COMPONENT_U32 = 9,
    GNI_VK_COMPONENT_BF16 = 1000141000
};

// A matrix shape: D (m,n) = A (m,k) x B (k,n) + C. For flexible ones m, n and k are granularities
// and `invocations` is the workgroup size they need.
typedef struct gni_vk_coop {
    uint32_t m, n, k;
    int32_t a, b, c, result; // GNI_VK_COMPONENT_*
    bool saturating, workgroup_scope;
    uint32_t invocations; // 0: an ordinary shape, of subgroup scope
} gni_vk_coop;

typedef enum gni_vk_kind {
    GNI_VK_DISCRETE,
    GNI_VK_INTEGRATED,
    GNI_VK_VIRTUAL,
    GNI_VK_CPU
} gni_vk_kind;

typedef struct gni_vk_caps {
    gni_vk_kind kind;
    uint32_t vendor_id, device_id, driver_version;
    uint32_t api_version;                          // what both the device and the instance have
    uint32_t subgroup, subgroup_min, subgroup_max; // min = max = subgroup without size control
    bool subgroup_control;                         // gni_vk_kernel.subgroup works
    bool subgroup_arithmetic, subgroup_ballot, subgroup_shuffle, subgroup_vote;
    uint32_t max_invocations, max_size[3], max_groups[3], shared_bytes;
    uint64_t max_storage_range; // bytes of one buffer argument without addresses
    uint32_t max_buffers;       // buffer arguments of one dispatch
    uint64_t max_allocation;    // bytes of one gni_vk_alloc
    uint64_t device_bytes;      // device-local memory
    bool addresses;             // kernels reach buffers by address, else by bindings
    bool mapped;                // device memory is visible to the host and cached there
    bool int64, float64, float16, int8, int16, storage8, storage16, memory_model;
    bool bfloat16, bfloat16_coop;
    bool coop, coop2;
    int coop_count;
    gni_vk_coop coops[GNI_VK_MAX_COOP];
    uint32_t coop2_reserved_shared; // bytes that workgroup scope takes from shared memory
    uint32_t multiprocessors;       // exact where the driver says it, else an estimate
    bool multiprocessors_exact;
    float timestamp_ns; // nanoseconds of one timestamp tick; 0: no timestamps
    char name[256];
    char driver[128];
} gni_vk_caps;

typedef struct gni_vk_event {
    const char *name;    // of the kernel's module
    uint64_t begin, end; // on gni_now_ns's clock
} gni_vk_event;

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
    gni_vk_mem mem;
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
    gni_vk_mem mem;
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
    gni_vk_kernel kernel;
    uint64_t hash;
    const char *name;
    VkShaderModule module;
    VkPipeline pipeline;
    VkResult result;
    gni_atomic state; // GNI_VK_IDLE to GNI_VK_FAILED
    bool reported;
    gni_vk_pipeline *queue_next;
};
enum { GNI_VK_IDLE, GNI_VK_QUEUED, GNI_VK_COMPILING, GNI_VK_READY, GNI_VK_FAILED };

typedef struct gni_vk_compiler {
    VkPipelineCache cache;
    VkPipelineLayout layout;
    VkDescriptorSetLayout set_layout;
    VkShaderModule *modules; // as gni_modules; made when first needed
    int *variant;            // index of the module to use in this mode, -1: none
    gni_vk_pipeline **table; // open addressing, a power of two
    uint32_t capacity, count;
    char *cache_path;
    size_t cache_bytes; // of the cache as it was loaded
    bool async;
#ifndef GPUNUM_NO_THREADS
    gni_thread thread;
    bool locks, running, quit;
    gni_mutex mutex;
    gni_cond work, done;
    gni_vk_pipeline *queue, *queue_last;
#endif
} gni_vk_compiler;

#define GNI_VK_HAS_OPS 1
struct gni_vk {
    gn_context *g;
    gni_vk_functions f;
    gni_vk_caps caps;
    gn_vulkan_host host;
    bool adopted; // instance and device are the host's
    bool lost;    // a call failed in a way that later calls cannot mend
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family, timestamp_bits, api_version; // api_version: of the instance
    VkPhysicalDeviceMemoryProperties memory;
    uint64_t max_buffer;
    uint8_t cache_uuid[VK_UUID_SIZE];
    gni_vk_pool pools[GNI_VK_POOLS];
    gni_vk_mem dummy; // bound where a kernel has no argument
    gni_vk_stream stream;
    gni_vk_record record;
    gni_vk_compiler compiler;
    bool profiling;
    gni_vk_event *events;
    int event_count, event_capacity;
    void *ops;                      // state of the room above; gni_free'd with the rest
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
static bool gni_vk_record_upload(gni_vk *vk, const gni_vk_mem *dst, uint64_t offset,
                                 const void *src, uint64_t bytes);

// Reports a failed call. After anything but a refused allocation the device counts as lost: no
// later call waits for work that may never end.
static bool gni_vk_check(gni_vk *vk, VkResult r, const char *what) {
    if (r == VK_SUCCESS) return true;
    bool memory = r == VK_ERROR_OUT_OF_HOST_MEMORY || r == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                  r == VK_ERROR_OUT_OF_POOL_MEMORY || r == VK_ERROR_FRAGMENTED_POOL;
    gn_status status = memory ? GN_ERROR_OUT_OF_MEMORY : GN_ERROR_DEVICE_LOST;
    gni_fail(vk->g, status, "%s: %s (%s)", what, gni_vk_result_name(r), vk->caps.name);
    if (status == GN_ERROR_DEVICE_LOST) vk->lost = true;
    return false;
}

static bool gni_vk_lost(const gni_vk *vk) { return vk->lost; }

static bool gni_vk_usable(gni_vk *vk) {
    if (!vk->lost) return true;
    gni_fail(vk->g, GN_ERROR_DEVICE_LOST, "the Vulkan device %s was lost", vk->caps.name);
    return false;
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
        snprintf(why, why_size, "no Vulkan loader was found");
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
    VkApplicationInfo app;
    memset(&app, 0, sizeof app);
    app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    app.pEngineName = "gpunum";
    app.engineVersion = GPUNUM_VERSION;
    app.apiVersion = *used = GNI_MIN(version, GNI_VK_VERSION_1_3);
    VkInstanceCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &app;
    info.flags = portability ? 1u : 0u; // VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
    info.enabledExtensionCount = portability ? 1u : 0u;
    info.ppEnabledExtensionNames = &extension;
    VkInstance instance = NULL;
    VkResult r = f->vkCreateInstance(&info, NULL, &instance);
    if (r != VK_SUCCESS) {
        snprintf(why, why_size, "vkCreateInstance: %s", gni_vk_result_name(r));
        return NULL;
    }
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

static gni_vk_kind gni_vk_kind_of(VkPhysicalDeviceType t) {
    switch (t) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return GNI_VK_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return GNI_VK_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return GNI_VK_CPU;
    default: return GNI_VK_VIRTUAL;
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
    gni_vk_kind kind = gni_vk_kind_of(basic.deviceType);
    out->integrated = kind == GNI_VK_INTEGRATED || kind == GNI_VK_CPU;
    out->software = kind == GNI_VK_CPU;
    VkPhysicalDeviceMemoryProperties memory;
    f->vkGetPhysicalDeviceMemoryProperties(d, &memory);
    out->memory = gni_vk_local_bytes(&memory);
    if (basic.apiVersion < VK_API_VERSION_1_2) {
        snprintf(out->why, sizeof out->why, "its driver has Vulkan %u.%u, 1.2 is needed",
                 (unsigned)(basic.apiVersion >> 22) & 127u,
                 (unsigned)(basic.apiVersion >> 12) & 1023u);
        return;
    }
    VkPhysicalDeviceVulkan12Properties p12;
    VkPhysicalDeviceVulkan11Properties p11;
    VkPhysicalDeviceProperties2 p;
    memset(&p12, 0, sizeof p12);
    memset(&p11, 0, sizeof p11);
    memset(&p, 0, sizeof p);
    p12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    p11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
    p11.pNext = &p12;
    p.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    p.pNext = &p11;
    f->vkGetPhysicalDeviceProperties2(d, &p);
    snprintf(out->driver, sizeof out->driver, "%.60s %.60s", p12.driverName, p12.driverInfo);
    out->subgroup = (int)p11.subgroupSize;
    VkPhysicalDeviceVulkan12Features f12;
    VkPhysicalDeviceFeatures2 features;
    memset(&f12, 0, sizeof f12);
    memset(&features, 0, sizeof features);
    f12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
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
        (VkExtensionProperties *)gni_alloc(vk->g, count * sizeof(VkExtensionProperties));
    if (!list) return false;
    VkResult r = vk->f.vkEnumerateDeviceExtensionProperties(vk->physical, NULL, &count, list);
    if (r != VK_SUCCESS && r != VK_INCOMPLETE) count = 0;
    for (uint32_t i = 0; i < count; i++)
        for (int k = 0; k < GNI_VK_EXT_COUNT; k++)
            if (strcmp(list[i].extensionName, gni_vk_extension_name(k)) == 0) has[k] = true;
    gni_free(vk->g, list);
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
    s->base.features.shaderInt64 = h->shader_int64 && !(flags & GN_VULKAN_NO_WIDE);
    s->base.features.shaderFloat64 = h->shader_float64 && !(flags & GN_VULKAN_NO_WIDE);
}

static void gni_vk_caps_features(gni_vk_caps *c, const gni_vk_features *s) {
    c->addresses = s->v12.bufferDeviceAddress != 0;
    c->int64 = s->base.features.shaderInt64 != 0;
    c->float64 = s->base.features.shaderFloat64 != 0;
    c->float16 = s->v12.shaderFloat16 != 0;
    c->int8 = s->v12.shaderInt8 != 0;
    c->int16 = s->base.features.shaderInt16 != 0;
    c->storage8 = s->v12.storageBuffer8BitAccess != 0;
    c->storage16 = s->v11.storageBuffer16BitAccess != 0;
    c->memory_model = s->v12.vulkanMemoryModel != 0;
    c->subgroup_control = s->subgroup.on[0] && s->subgroup.on[1];
    c->bfloat16 = s->bfloat16.on[0] != 0;
    c->bfloat16_coop = s->bfloat16.on[2] != 0;
    c->coop = s->coop.on[0] != 0 && c->memory_model;
    c->coop2 = c->coop && s->coop2.on[0] && s->coop2.on[1];
}

// ---- limits

static uint32_t gni_vk_guess_multiprocessors(const gni_vk_caps *c) {
    // Nothing but a plausible grid size depends on the guess.
    if (c->kind == GNI_VK_CPU) return (uint32_t)gni_cpu_count();
    return c->kind == GNI_VK_INTEGRATED ? 8u : 32u;
}

static void gni_vk_read_limits(gni_vk *vk, const bool *has) {
    VkPhysicalDeviceVulkan11Properties v11;
    VkPhysicalDeviceVulkan12Properties v12;
    gni_vk_subgroup_properties subgroup;
    gni_vk_maintenance4_properties maintenance4;
    gni_vk_sm_properties sm;
    gni_vk_amd_properties amd;
    gni_vk_coop2_properties coop2;
    VkPhysicalDeviceProperties2 p;
    memset(&v11, 0, sizeof v11);
    memset(&v12, 0, sizeof v12);
    memset(&subgroup, 0, sizeof subgroup);
    memset(&maintenance4, 0, sizeof maintenance4);
    memset(&sm, 0, sizeof sm);
    memset(&amd, 0, sizeof amd);
    memset(&coop2, 0, sizeof coop2);
    memset(&p, 0, sizeof p);
    p.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
    v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    subgroup.sType = GNI_VK_TYPE_SUBGROUP_SIZE_PROPERTIES;
    maintenance4.sType = GNI_VK_TYPE_MAINTENANCE4_PROPERTIES;
    sm.sType = GNI_VK_TYPE_SM_BUILTINS_PROPERTIES;
    amd.sType = GNI_VK_TYPE_SHADER_CORE_PROPERTIES_AMD;
    coop2.sType = GNI_VK_TYPE_COOP2_PROPERTIES;
    void **tail = &p.pNext;
    gni_vk_link(&tail, &v11, &v11.pNext);
    gni_vk_link(&tail, &v12, &v12.pNext);
    if (has[GNI_VK_EXT_SUBGROUP]) gni_vk_link(&tail, &subgroup, &subgroup.pNext);
    if (has[GNI_VK_EXT_MAINTENANCE4]) gni_vk_link(&tail, &maintenance4, &maintenance4.pNext);
    if (has[GNI_VK_EXT_SM]) gni_vk_link(&tail, &sm, &sm.pNext);
    if (has[GNI_VK_EXT_AMD_CORE]) gni_vk_link(&tail, &amd, &amd.pNext);
    if (has[GNI_VK_EXT_COOP2]) gni_vk_link(&tail, &coop2, &coop2.pNext);
    vk->f.vkGetPhysicalDeviceProperties2(vk->physical, &p);

    gni_vk_caps *c = &vk->caps;
    const VkPhysicalDeviceLimits *l = &p.properties.limits;
    gni_vk_text(c->name, sizeof c->name, p.properties.deviceName);
    snprintf(c->driver, sizeof c->driver, "%.60s %.60s", v12.driverName, v12.driverInfo);
    c->kind = gni_vk_kind_of(p.properties.deviceType);
    c->vendor_id = p.properties.vendorID;
    c->device_id = p.properties.deviceID;
    c->driver_version = p.properties.driverVersion;
    c->api_version = GNI_MIN(p.properties.apiVersion, vk->api_version);
    memcpy(vk->cache_uuid, p.properties.pipelineCacheUUID, VK_UUID_SIZE);
    c->subgroup = c->subgroup_min = c->subgroup_max = v11.subgroupSize;
    if (has[GNI_VK_EXT_SUBGROUP]) {
        c->subgroup_min = subgroup.least;
        c->subgroup_max = subgroup.most;
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
    c->max_buffers = c->addresses ? (uint32_t)GNI_VK_MAX_USES
                                  : GNI_MIN(descriptors - 1u, (uint32_t)GNI_VK_MAX_USES);
    vk->max_buffer = maintenance4.max_buffer_size ? maintenance4.max_buffer_size : UINT64_MAX;
    c->coop2_reserved_shared = coop2.reserved_shared;
    uint32_t units = amd.engines * amd.arrays_per_engine * amd.units_per_array;
    c->multiprocessors_exact = sm.sms || units || c->kind == GNI_VK_CPU;
    c->multiprocessors = sm.sms ? sm.sms : units ? units : gni_vk_guess_multiprocessors(c);
    vk->f.vkGetPhysicalDeviceMemoryProperties(vk->physical, &vk->memory);
    c->device_bytes = gni_vk_local_bytes(&vk->memory);
}

static void gni_vk_add_coop(gni_vk_caps *c, const gni_vk_coop *shape) {
    if (c->coop_count < GNI_VK_MAX_COOP) c->coops[c->coop_count++] = *shape;
}

// The matrix shapes that the device multiplies. Leaves the list short when memory runs out.
static void gni_vk_read_coop(gni_vk *vk) {
    gni_vk_get_coop get = NULL;
    uint32_t count = 0;
    if (vk->caps.coop)
        get = (gni_vk_get_coop)vk->f.root(vk->instance,
                                          "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    if (!get || get(vk->physical, &count, NULL) != VK_SUCCESS || count == 0) return;
    gni_vk_coop_properties *list =
        (gni_vk_coop_properties *)gni_calloc(vk->g, count * sizeof(gni_vk_coop_properties));
    if (!list) return;
    for (uint32_t i = 0; i < count; i++) list[i].sType = GNI_VK_TYPE_COOP_PROPERTIES;
    if (get(vk->physical, &count, list) < 0) count = 0;
    for (uint32_t i = 0; i < count; i++) {
        gni_vk_coop s;
        memset(&s, 0, sizeof s);
        s.m = list[i].m;
        s.n = list[i].n;
        s.k = list[i].k;
        s.a = list[i].a;
        s.b = list[i].b;
        s.c = list[i].c;
        s.result = list[i].result;
        s.saturating = list[i].saturating != 0;
        s.workgroup_scope = list[i].scope == 2;
        if (list[i].scope == 2 || list[i].scope == 3) gni_vk_add_coop(&vk->caps, &s);
    }
    gni_free(vk->g, list);
}

static void gni_vk_read_coop2(gni_vk *vk) {
    gni_vk_get_coop2 get = NULL;
    uint32_t count = 0;
    if (vk->caps.coop2)
        get = (gni_vk_get_coop2)vk->f.root(
            vk->instance, "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV");
    if (!get || get(vk->physical, &count, NULL) != VK_SUCCESS || count == 0) return;
    gni_vk_coop2_dimensions *list =
        (gni_vk_coop2_dimensions *)gni_calloc(vk->g, count * sizeof(gni_vk_coop2_dimensions));
    if (!list) return;
    for (uint32_t i = 0; i < count; i++) list[i].sType = GNI_VK_TYPE_COOP2_DIMENSIONS;
    if (get(vk->physical, &count, list) < 0) count = 0;
    for (uint32_t i = 0; i < count; i++) {
        gni_vk_coop s;
        memset(&s, 0, sizeof s);
        s.m = list[i].m;
        s.n = list[i].n;
        s.k = list[i].k;
        s.a = list[i].a;
        s.b = list[i].b;
        s.c = list[i].c;
        s.result = list[i].result;
        s.saturating = list[i].saturating != 0;
        s.workgroup_scope = list[i].scope == 2;
        s.invocations = list[i].invocations;
        gni_vk_add_coop(&vk->caps, &s);
    }
    gni_free(vk->g, list);
}

// ---- opening

static bool gni_vk_make_device(gni_vk *vk, gni_vk_features *features, const bool *has, char *why,
                               size_t why_size) {
    const char *names[GNI_VK_EXT_COUNT];
    uint32_t count = 0;
    for (int i = 0; i < GNI_VK_EXT_COUNT; i++)
        if (has[i]) names[count++] = gni_vk_extension_name(i);
    float priority = 1.0f;
    VkDeviceQueueCreateInfo queue;
    memset(&queue, 0, sizeof queue);
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueFamilyIndex = vk->family;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &features->base;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = count;
    info.ppEnabledExtensionNames = names;
    VkResult r = vk->f.vkCreateDevice(vk->physical, &info, NULL, &vk->device);
    if (r == VK_SUCCESS) return true;
    vk->device = NULL;
    snprintf(why, why_size, "%.100s: vkCreateDevice: %s", vk->caps.name, gni_vk_result_name(r));
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
    gni_vk_caps_features(&vk->caps, &features);
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
    gni_vk_caps_features(&vk->caps, &features);
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
    vk->g = g;
    bool ok =
        o->vulkan ? gni_vk_open_host(vk, o, why, why_size) : gni_vk_open_own(vk, o, why, why_size);
    if (ok && !gni_vk_load_device(&vk->f, vk->device)) {
        snprintf(why, why_size, "%.100s: the driver lacks functions of Vulkan 1.2", vk->caps.name);
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
        if (!ok) snprintf(why, why_size, "%.100s: out of memory while opening it", vk->caps.name);
    }
    if (!ok) {
        gni_vk_close(vk);
        return NULL;
    }
    why[0] = 0;
    gni_log(g, GN_LOG_INFO, "Vulkan device %s, driver %s, %s, subgroup %u, %u MiB", vk->caps.name,
            vk->caps.driver, vk->caps.addresses ? "buffer addresses" : "bindings",
            (unsigned)vk->caps.subgroup, (unsigned)(vk->caps.device_bytes >> 20));
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
        if (!vk->lost) gni_vk_wait(vk);
        if (vk->lost) gni_vk_wait_queue(vk);
        gni_vk_compiler_close(vk);
        gni_vk_record_close(vk);
        gni_vk_stream_close(vk);
        gni_vk_memory_close(vk);
        if (!vk->adopted) vk->f.vkDestroyDevice(vk->device, NULL);
    }
    if (vk->instance && !vk->adopted) vk->f.vkDestroyInstance(vk->instance, NULL);
    gni_vk_drop_root(&vk->f);
    gni_free(vk->g, vk->ops);
    gni_free(vk->g, vk->events);
    gni_free(vk->g, vk);
}

GNI_MAYBE_UNUSED static const gni_vk_caps *gni_vk_caps_get(const gni_vk *vk) { return &vk->caps; }

#endif // GNI_VULKAN
// ------------------------------------------------------------------------------------------
// >>vk_memory
// The pool of device memory and the pools of staging memory. Large blocks come from the driver and
// are cut into chunks of 256 bytes and up; free chunks of a block merge, and wait in lists by size
// (two levels: the power of two and eight steps in it). Requests over half a block get a block of
// their own. Empty blocks are kept for reuse until memory is short or gni_vk_trim is called.
//
// A freed chunk may be given out again while the device still uses it: later commands on the same
// queue are kept in order by byte range. The host must not touch it before its batch is over, which
// gni_vk_idle tells. Commands in a host's command buffer are in no order with ours: chunks that
// such commands use are held back until the host says that they are done.

#if GNI_VULKAN

static bool gni_vk_idle(gni_vk *vk, const gni_vk_mem *m);

// ---- chunks

static int gni_vk_log2(uint32_t x) {
    int n = 0;
    while (x >>= 1) n++;
    return n;
}

static int gni_vk_class(uint32_t units) {
    if (units < (1u << GNI_VK_CLASS_BITS)) return (int)units;
    int log = gni_vk_log2(units);
    int step = (int)(units >> (log - GNI_VK_CLASS_BITS)) & ((1 << GNI_VK_CLASS_BITS) - 1);
    return ((log - GNI_VK_CLASS_BITS + 1) << GNI_VK_CLASS_BITS) | step;
}

// So that the next `count` calls of gni_vk_new_chunk cannot fail.
static bool gni_vk_reserve_chunks(gni_vk *vk, gni_vk_pool *p, int count) {
    int spare = p->chunk_capacity - p->chunk_count;
    for (int i = p->spare; i >= 0 && spare < count; i = p->chunks[i].free_next) spare++;
    if (spare >= count) return true;
    int capacity = p->chunk_capacity ? 2 * p->chunk_capacity : 64;
    size_t item = sizeof(gni_vk_chunk);
    gni_vk_chunk *grown = (gni_vk_chunk *)gni_realloc(
        vk->g, p->chunks, (size_t)p->chunk_capacity * item, (size_t)capacity * item);
    if (!grown) return false;
    p->chunks = grown;
    p->chunk_capacity = capacity;
    return true;
}

static int gni_vk_new_chunk(gni_vk_pool *p) {
    int i = p->spare;
    if (i >= 0)
        p->spare = p->chunks[i].free_next;
    else
        i = p->chunk_count++;
    memset(&p->chunks[i], 0, sizeof p->chunks[i]);
    p->chunks[i].prev = p->chunks[i].next = -1;
    return i;
}

static void gni_vk_drop_chunk(gni_vk_pool *p, int i) {
    p->chunks[i].block = NULL;
    p->chunks[i].free = false;
    p->chunks[i].free_next = p->spare;
    p->spare = i;
}

static void gni_vk_list_chunk(gni_vk_pool *p, int i) {
    gni_vk_chunk *c = &p->chunks[i];
    c->free = true;
    if (c->block->dedicated) return;
    int k = gni_vk_class(c->units);
    c->free_prev = -1;
    c->free_next = p->heads[k];
    if (p->heads[k] >= 0) p->chunks[p->heads[k]].free_prev = i;
    p->heads[k] = i;
}

static void gni_vk_unlist_chunk(gni_vk_pool *p, int i) {
    gni_vk_chunk *c = &p->chunks[i];
    c->free = false;
    if (c->block->dedicated) return;
    if (c->free_prev >= 0)
        p->chunks[c->free_prev].free_next = c->free_next;
    else
        p->heads[gni_vk_class(c->units)] = c->free_next;
    if (c->free_next >= 0) p->chunks[c->free_next].free_prev = c->free_prev;
}

// A free chunk of at least `units`, or -1.
static int gni_vk_find_chunk(const gni_vk_pool *p, uint32_t units) {
    int k = gni_vk_class(units);
    int tries = 32; // the first list may hold chunks a little too small
    for (int i = p->heads[k]; i >= 0 && tries > 0; i = p->chunks[i].free_next, tries--)
        if (p->chunks[i].units >= units) return i;
    for (k++; k < GNI_VK_CLASSES; k++)
        if (p->heads[k] >= 0) return p->heads[k];
    return -1;
}

// Takes `units` off the start of free chunk i. The caller has reserved a chunk.
static void gni_vk_take_chunk(gni_vk_pool *p, int i, uint32_t units) {
    gni_vk_unlist_chunk(p, i);
    gni_vk_chunk *c = &p->chunks[i];
    if (c->block->dedicated || c->units == units) return;
    int rest = gni_vk_new_chunk(p);
    gni_vk_chunk *r = &p->chunks[rest];
    c = &p->chunks[i];
    r->block = c->block;
    r->start = c->start + units;
    r->units = c->units - units;
    r->serial = c->serial;
    r->record = c->record;
    r->prev = i;
    r->next = c->next;
    if (c->next >= 0) p->chunks[c->next].prev = rest;
    c->next = rest;
    c->units = units;
    gni_vk_list_chunk(p, rest);
}

// Merges free chunk `b` into its left neighbour `a`; neither is in a list.
static void gni_vk_merge_chunks(gni_vk_pool *p, int a, int b) {
    gni_vk_chunk *l = &p->chunks[a], *r = &p->chunks[b];
    l->units += r->units;
    l->serial = GNI_MAX(l->serial, r->serial);
    l->record = GNI_MAX(l->record, r->record);
    l->next = r->next;
    if (r->next >= 0) p->chunks[r->next].prev = a;
    gni_vk_drop_chunk(p, b);
}

static void gni_vk_release_chunk(gni_vk_pool *p, int i) {
    gni_vk_chunk *c = &p->chunks[i];
    p->used -= c->bytes;
    c->bytes = 0;
    c->block->live--;
    if (c->next >= 0 && p->chunks[c->next].free) {
        gni_vk_unlist_chunk(p, c->next);
        gni_vk_merge_chunks(p, i, c->next);
    }
    if (c->prev >= 0 && p->chunks[c->prev].free) {
        int left = c->prev;
        gni_vk_unlist_chunk(p, left);
        gni_vk_merge_chunks(p, left, i);
        i = left;
    }
    gni_vk_list_chunk(p, i);
}

// ---- blocks

static void gni_vk_destroy_block(gni_vk *vk, gni_vk_block *b) {
    vk->f.vkDestroyBuffer(vk->device, b->buffer, NULL);
    vk->f.vkFreeMemory(vk->device, b->memory, NULL);
    gni_free(vk->g, b);
}

static VkResult gni_vk_make_buffer(gni_vk *vk, uint64_t bytes, VkBuffer *out) {
    VkBufferCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    if (vk->caps.addresses) info.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    return vk->f.vkCreateBuffer(vk->device, &info, NULL, out);
}

static uint64_t gni_vk_address_of(gni_vk *vk, VkBuffer b) {
    VkBufferDeviceAddressInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
    info.buffer = b;
    return vk->f.vkGetBufferDeviceAddress(vk->device, &info);
}

// The driver's part of a block; on failure nothing is left of it.
static VkResult gni_vk_fill_block(gni_vk *vk, const gni_vk_pool *p, gni_vk_block *b,
                                  uint64_t bytes) {
    VkResult r = gni_vk_make_buffer(vk, bytes, &b->buffer);
    if (r != VK_SUCCESS) return r;
    VkMemoryRequirements need;
    vk->f.vkGetBufferMemoryRequirements(vk->device, b->buffer, &need);
    VkMemoryAllocateFlagsInfo flags;
    memset(&flags, 0, sizeof flags);
    flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.pNext = vk->caps.addresses ? &flags : NULL;
    info.allocationSize = need.size;
    info.memoryTypeIndex = p->type;
    void *mapped = NULL;
    r = vk->f.vkAllocateMemory(vk->device, &info, NULL, &b->memory);
    if (r == VK_SUCCESS) r = vk->f.vkBindBufferMemory(vk->device, b->buffer, b->memory, 0);
    if (r == VK_SUCCESS && p->host)
        r = vk->f.vkMapMemory(vk->device, b->memory, 0, VK_WHOLE_SIZE, 0, &mapped);
    if (r == VK_SUCCESS) {
        b->mapped = (char *)mapped;
        b->address = vk->caps.addresses ? gni_vk_address_of(vk, b->buffer) : 0;
        return r;
    }
    vk->f.vkDestroyBuffer(vk->device, b->buffer, NULL);
    if (b->memory) vk->f.vkFreeMemory(vk->device, b->memory, NULL);
    return r;
}

// Adds a block of `bytes`, all of it one free chunk. The caller has reserved two chunks.
static gni_vk_block *gni_vk_add_block(gni_vk *vk, gni_vk_pool *p, uint64_t bytes, bool dedicated) {
    if (vk->lost || bytes > vk->max_buffer || bytes > p->limit || p->reserved > p->limit - bytes)
        return NULL;
    gni_vk_block *b = (gni_vk_block *)gni_calloc(vk->g, sizeof(gni_vk_block));
    if (!b) return NULL;
    VkResult r = gni_vk_fill_block(vk, p, b, bytes);
    if (r != VK_SUCCESS) {
        if (r == VK_ERROR_DEVICE_LOST) gni_vk_check(vk, r, "allocating device memory");
        gni_free(vk->g, b);
        return NULL;
    }
    b->pool = p;
    b->size = bytes;
    b->dedicated = dedicated;
    b->next = p->blocks;
    p->blocks = b;
    p->reserved += bytes;
    p->peak = GNI_MAX(p->peak, p->reserved);
    p->count++;
    b->first = gni_vk_new_chunk(p);
    p->chunks[b->first].block = b;
    p->chunks[b->first].units = (uint32_t)(bytes / GNI_VK_UNIT);
    gni_vk_list_chunk(p, b->first);
    return b;
}

// Gives empty blocks that no running batch uses back to the driver. Returns how many empty ones
// stayed.
static int gni_vk_trim_pool(gni_vk *vk, gni_vk_pool *p) {
    int busy = 0;
    gni_vk_block **at = &p->blocks;
    while (*at) {
        gni_vk_block *b = *at;
        if (b->live == 0 && b->last_use <= vk->stream.completed) {
            *at = b->next;
            gni_vk_unlist_chunk(p, b->first);
            gni_vk_drop_chunk(p, b->first);
            p->reserved -= b->size;
            p->count--;
            gni_vk_destroy_block(vk, b);
        } else {
            busy += b->live == 0;
            at = &b->next;
        }
    }
    return busy;
}

// ---- allocation

// Smallest empty dedicated block that does not waste more than a quarter of itself.
static gni_vk_block *gni_vk_find_dedicated(const gni_vk_pool *p, uint64_t bytes) {
    gni_vk_block *best = NULL;
    for (gni_vk_block *b = p->blocks; b; b = b->next)
        if (b->dedicated && b->live == 0 && b->size >= bytes && b->size - bytes <= b->size / 4 &&
            (!best || b->size < best->size))
            best = b;
    return best;
}

// A new block for pieces: large if it can be, never smaller than `bytes`.
static bool gni_vk_grow(gni_vk *vk, gni_vk_pool *p, uint64_t bytes) {
    // The first blocks are small, so that small programs stay small.
    uint64_t want = GNI_MIN(GNI_MAX(p->reserved, p->block_bytes / 8), p->block_bytes);
    for (; want > bytes; want /= 2)
        if (gni_vk_add_block(vk, p, want, false)) return true;
    return gni_vk_add_block(vk, p, bytes, false) != NULL;
}

// One attempt with the blocks there are, and with a new one if `grow`.
static int gni_vk_try(gni_vk *vk, gni_vk_pool *p, uint64_t bytes, bool grow) {
    uint32_t units = (uint32_t)((bytes + GNI_VK_UNIT - 1) / GNI_VK_UNIT);
    uint64_t whole = (uint64_t)units * GNI_VK_UNIT;
    if (!gni_vk_reserve_chunks(vk, p, 3)) return -1;
    int i = -1;
    if (whole > p->block_bytes / 2) {
        gni_vk_block *b = gni_vk_find_dedicated(p, whole);
        if (!b && grow) b = gni_vk_add_block(vk, p, whole, true);
        i = b ? b->first : gni_vk_find_chunk(p, units);
    } else {
        i = gni_vk_find_chunk(p, units);
        if (i < 0 && grow && gni_vk_grow(vk, p, whole)) i = gni_vk_find_chunk(p, units);
    }
    if (i >= 0) gni_vk_take_chunk(p, i, units);
    return i;
}

static bool gni_vk_pool_alloc(gni_vk *vk, gni_vk_pool *p, uint64_t bytes, gni_vk_mem *out) {
    memset(out, 0, sizeof *out);
    out->cls = -1;
    if (!gni_vk_usable(vk)) return false;
    if (bytes == 0) bytes = 16;
    if (bytes > p->limit || bytes > vk->max_buffer) return false;
    if (bytes > (uint64_t)UINT32_MAX * (GNI_VK_UNIT / 2))
        return false; // units are counted in 32 bits
    uint64_t size = (bytes + 15u) & ~(uint64_t)15u;
    int i = gni_vk_try(vk, p, size, true);
    if (i < 0) {
        gni_vk_trim_pool(vk, p);
        i = gni_vk_try(vk, p, size, true);
    }
    if (i < 0 && !vk->lost && gni_vk_wait(vk)) {
        gni_vk_trim_pool(vk, p);
        i = gni_vk_try(vk, p, size, true);
    }
    if (i < 0) return false;
    gni_vk_chunk *c = &p->chunks[i];
    gni_vk_block *b = c->block;
    uint64_t start = (uint64_t)c->start * GNI_VK_UNIT;
    c->bytes = size;
    b->live++;
    p->used += size;
    out->handle = gni_vk_buffer_number(b->buffer);
    out->offset = start;
    out->size = size;
    out->address = b->address ? b->address + start : 0;
    out->mapped = b->mapped ? b->mapped + start : NULL;
    out->block = b;
    out->cls = i;
    return true;
}

// Device memory, 256-byte aligned. False when it is over the limit or the driver refuses; nothing
// is reported then, since the caller may try with less.
static bool gni_vk_alloc(gni_vk *vk, uint64_t bytes, gni_vk_mem *out) {
    return gni_vk_pool_alloc(vk, &vk->pools[GNI_VK_POOL_DEVICE], bytes, out);
}

// Commands that use the memory may be recorded or running. Also ends gni_vk_wrap.
static void gni_vk_free(gni_vk *vk, gni_vk_mem *m) {
    if (m->block) {
        gni_vk_pool *p = m->block->pool;
        gni_vk_chunk *c = &p->chunks[m->cls];
        if (c->record > vk->record.done) {
            c->free_next = p->held;
            p->held = m->cls;
        } else {
            gni_vk_release_chunk(p, m->cls);
        }
    }
    memset(m, 0, sizeof *m);
    m->cls = -1;
}

// Gives out what a host's commands held back, as far as they are done.
static void gni_vk_release_held(gni_vk *vk) {
    for (int k = 0; k < GNI_VK_POOLS; k++) {
        gni_vk_pool *p = &vk->pools[k];
        int i = p->held;
        p->held = -1;
        while (i >= 0) {
            int next = p->chunks[i].free_next;
            if (p->chunks[i].record > vk->record.done) {
                p->chunks[i].free_next = p->held;
                p->held = i;
            } else {
                gni_vk_release_chunk(p, i);
            }
            i = next;
        }
    }
}

// The open batch (or the host's command buffer that is being recorded) uses `m`.
static void gni_vk_touch(gni_vk *vk, const gni_vk_mem *m) {
    if (!m->block) return;
    gni_vk_chunk *c = &m->block->pool->chunks[m->cls];
    if (vk->record.commands) {
        c->record = vk->record.token;
    } else {
        c->serial = vk->stream.next;
        m->block->last_use = vk->stream.next;
    }
}

// Gives all unused memory back to the driver; waits for work that still uses some of it.
static void gni_vk_trim(gni_vk *vk) {
    int busy = 0;
    for (int k = 0; k < GNI_VK_POOLS; k++) busy += gni_vk_trim_pool(vk, &vk->pools[k]);
    if (busy == 0 || vk->lost || !gni_vk_wait(vk)) return;
    for (int k = 0; k < GNI_VK_POOLS; k++) gni_vk_trim_pool(vk, &vk->pools[k]);
}

// Fills the device_* fields.
static void gni_vk_memory_stats(const gni_vk *vk, gn_memory_stats *out) {
    const gni_vk_pool *p = &vk->pools[GNI_VK_POOL_DEVICE];
    out->device_used = p->used;
    out->device_reserved = p->reserved;
    out->device_peak = p->peak;
    out->device_limit = p->limit;
    out->device_blocks = p->count;
}

// Makes a host's VkBuffer usable. It must outlive the use of `out` and the work that uses it:
// gn_sync before destroying it. Its offset is a multiple of 16, of 256 without addresses.
static bool gni_vk_wrap(gni_vk *vk, uint64_t vkbuffer, uint64_t offset, uint64_t bytes,
                        gni_vk_mem *out) {
    memset(out, 0, sizeof *out);
    out->cls = -1;
    uint64_t align = vk->caps.addresses ? 16u : 256u;
    if (!vkbuffer || bytes == 0 || offset % align) {
        gni_fail(vk->g, GN_ERROR_ARGUMENT,
                 "wrapping a VkBuffer: it is NULL, empty, or its offset is no multiple of %d",
                 (int)align);
        return false;
    }
    if (vk->caps.addresses) {
        uint64_t address = gni_vk_address_of(vk, gni_vk_buffer_of(vkbuffer));
        if (address == 0 || address % 16) {
            gni_fail(
                vk->g, GN_ERROR_ARGUMENT,
                "wrapping a VkBuffer: it has no device address (create it with "
                "VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, its memory with "
                 "VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT)");
            return false;
        }
        out->address = address + offset;
    }
    out->handle = vkbuffer;
    out->offset = offset;
    out->size = bytes;
    return true;
}

// ---- opening

// The memory type among `bits` that has all of `need` and as many of `want` as possible, none of
// `avoid` if that can be had. -1: none.
static int gni_vk_pick_type(const gni_vk *vk, uint32_t bits, VkFlags need, VkFlags want,
                            VkFlags avoid) {
    int best = -1, best_score = -1;
    for (uint32_t i = 0; i < vk->memory.memoryTypeCount; i++) {
        VkFlags flags = vk->memory.memoryTypes[i].propertyFlags;
        if (!(bits & (1u << i)) || (flags & need) != need) continue;
        // Further flags mark memory that is slow or unusable for us: lazy, protected, device-
        // coherent.
        if (flags & ~(VkFlags)15u) continue;
        int score = 8;
        for (VkFlags b = 1; b <= 8u; b <<= 1)
            score += ((flags & b & want) ? 8 : 0) - ((flags & b & avoid) ? 1 : 0);
        if (score > best_score) {
            best = (int)i;
            best_score = score;
        }
    }
    return best;
}

static void gni_vk_pool_open(gni_vk_pool *p, int type, bool host, uint64_t block_bytes,
                             uint64_t limit) {
    memset(p, 0, sizeof *p);
    p->type = (uint32_t)type;
    p->host = host;
    p->block_bytes = block_bytes;
    p->limit = limit;
    p->spare = p->held = -1;
    for (int i = 0; i < GNI_VK_CLASSES; i++) p->heads[i] = -1;
}

// Memory types for buffers like ours, by the driver's word.
static uint32_t gni_vk_type_bits(gni_vk *vk) {
    VkBuffer probe = VK_NULL_HANDLE;
    if (gni_vk_make_buffer(vk, 4096, &probe) != VK_SUCCESS) return 0;
    VkMemoryRequirements need;
    vk->f.vkGetBufferMemoryRequirements(vk->device, probe, &need);
    vk->f.vkDestroyBuffer(vk->device, probe, NULL);
    return need.memoryTypeBits;
}

static bool gni_vk_memory_open(gni_vk *vk, const gn_options *o) {
    uint64_t limit = o->memory_limit;
    const VkFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                  visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    const VkFlags coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                  cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    uint32_t bits = gni_vk_type_bits(vk);
    bool shared = vk->caps.kind == GNI_VK_INTEGRATED || vk->caps.kind == GNI_VK_CPU;
    int device = -1;
    if (shared && !(o->vulkan_flags & GN_VULKAN_NO_MAPPING))
        device = gni_vk_pick_type(vk, bits, local | visible | coherent | cached, 0, 0);
    vk->caps.mapped = device >= 0;
    if (device < 0) device = gni_vk_pick_type(vk, bits, local, 0, visible | cached);
    if (device < 0) device = gni_vk_pick_type(vk, bits, 0, local, 0);
    int upload = gni_vk_pick_type(vk, bits, visible | coherent, 0, local | cached);
    int params = gni_vk_pick_type(vk, bits, visible | coherent, local, cached);
    int readback = gni_vk_pick_type(vk, bits, visible | coherent, cached, local);
    if (device < 0 || upload < 0 || params < 0 || readback < 0) return false;

    uint64_t heap = vk->memory.memoryHeaps[vk->memory.memoryTypes[device].heapIndex].size;
    if (limit == 0 || limit > heap) limit = heap;
    const uint64_t mib = (uint64_t)1 << 20;
    uint64_t block = GNI_MIN(GNI_MAX(heap / 64, 16 * mib), 256 * mib) & ~(mib - 1);
    gni_vk_pool_open(&vk->pools[GNI_VK_POOL_DEVICE], device, vk->caps.mapped, block, limit);
    gni_vk_pool_open(&vk->pools[GNI_VK_POOL_UPLOAD], upload, true, 32 * mib, UINT64_MAX / 2);
    gni_vk_pool_open(&vk->pools[GNI_VK_POOL_PARAMS], params, true, 8 * mib, UINT64_MAX / 2);
    gni_vk_pool_open(&vk->pools[GNI_VK_POOL_READBACK], readback, true, 64 * mib, UINT64_MAX / 2);
    vk->caps.max_allocation = GNI_MIN(limit, vk->max_buffer);
    return true;
}

static void gni_vk_memory_close(gni_vk *vk) {
    for (int k = 0; k < GNI_VK_POOLS; k++) {
        gni_vk_pool *p = &vk->pools[k];
        while (p->blocks) {
            gni_vk_block *b = p->blocks;
            p->blocks = b->next;
            gni_vk_destroy_block(vk, b);
        }
        gni_free(vk->g, p->chunks);
        p->chunks = NULL;
    }
}

#endif // GNI_VULKAN
// ------------------------------------------------------------------------------------------
// >>vk_stream
// The stream of commands: batches (a command buffer each, several in flight, counted by one
// timeline semaphore), barriers where byte ranges meet, and the way of data to and from the device.
// What a batch uses carries the batch's serial number, so that it is known when it is free.

#if GNI_VULKAN

static bool gni_vk_check_lost(gni_vk *vk, VkResult r, const char *what) {
    if (gni_vk_check(vk, r, what)) return true;
    vk->lost = true; // recorded work is gone, whatever the reason
    return false;
}

// ---- waiting

// Asks how far the device is.
static bool gni_vk_poll(gni_vk *vk) {
    uint64_t value = 0;
    VkResult r = vk->f.vkGetSemaphoreCounterValue(vk->device, vk->stream.timeline, &value);
    if (r != VK_SUCCESS) return gni_vk_check_lost(vk, r, "reading the timeline");
    // A lost device may show any value.
    if (value > vk->stream.completed && value <= vk->stream.submitted) vk->stream.completed = value;
    return true;
}

static bool gni_vk_wait_serial(gni_vk *vk, uint64_t serial) {
    gni_vk_stream *s = &vk->stream;
    if (serial <= s->completed) return true;
    if (serial > s->submitted && !gni_vk_flush(vk)) return false;
    if (vk->lost) return gni_vk_usable(vk);
    // A sleeping thread wakes late: look for a few microseconds first. A device made of CPU threads
    // needs the core that would be looking.
    uint64_t start = vk->caps.kind == GNI_VK_CPU ? 0 : gni_now_ns();
    do {
        if (!gni_vk_poll(vk)) return false;
        if (serial <= s->completed) return true;
    } while (start && gni_now_ns() - start < 40000u);
    VkSemaphoreWaitInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    info.semaphoreCount = 1;
    info.pSemaphores = &s->timeline;
    info.pValues = &serial;
    VkResult r;
    do r = vk->f.vkWaitSemaphores(vk->device, &info, 1000000000u);
    while (r == VK_TIMEOUT);
    if (!gni_vk_check_lost(vk, r, "waiting for the device")) return false;
    if (s->completed < serial) s->completed = serial;
    return true;
}

static bool gni_vk_wait(gni_vk *vk) {
    return gni_vk_flush(vk) && gni_vk_wait_serial(vk, vk->stream.submitted);
}

// True if no recorded or running command uses the memory: the host may touch it.
static bool gni_vk_idle(gni_vk *vk, const gni_vk_mem *m) {
    if (!m->block) return false;
    const gni_vk_chunk *c = &m->block->pool->chunks[m->cls];
    if (c->record > vk->record.done) return false;
    if (c->serial <= vk->stream.completed) return true;
    return c->serial <= vk->stream.submitted && gni_vk_poll(vk) &&
           c->serial <= vk->stream.completed;
}

// ---- timestamps

static uint64_t gni_vk_host_time(const gni_vk *vk, uint64_t ticks) {
    uint64_t mask = vk->timestamp_bits >= 64 ? UINT64_MAX : ((uint64_t)1 << vk->timestamp_bits) - 1;
    double ns = (double)((ticks - vk->clock_ticks) & mask) * (double)vk->caps.timestamp_ns;
    return vk->clock_ns + (uint64_t)ns;
}

// Turns the timestamps of a finished batch into events. Events are dropped when memory runs out.
static void gni_vk_collect(gni_vk *vk, gni_vk_batch *b) {
    uint64_t ticks[2 * GNI_VK_BATCH_COMMANDS];
    int n = b->timed;
    b->timed = 0;
    if (n == 0 || vk->lost) return;
    VkResult r = vk->f.vkGetQueryPoolResults(vk->device, b->queries, 0, (uint32_t)(2 * n),
                                             sizeof ticks, ticks, 8, VK_QUERY_RESULT_64_BIT);
    if (r != VK_SUCCESS) return;
    if (vk->event_count + n > vk->event_capacity) {
        int capacity = GNI_MAX(2 * vk->event_capacity, vk->event_count + n);
        size_t item = sizeof(gni_vk_event);
        gni_vk_event *grown = (gni_vk_event *)gni_realloc(
            vk->g, vk->events, (size_t)vk->event_capacity * item, (size_t)capacity * item);
        if (!grown) return;
        vk->events = grown;
        vk->event_capacity = capacity;
    }
    for (int i = 0; i < n; i++) {
        gni_vk_event *e = &vk->events[vk->event_count++];
        e->name = b->names[i];
        e->begin = gni_vk_host_time(vk, ticks[2 * i]);
        e->end = gni_vk_host_time(vk, ticks[2 * i + 1]);
    }
}

// A command of that name begins: true if its time is taken, then gni_vk_timed_end follows it.
static bool gni_vk_timed_begin(gni_vk *vk, const char *name) {
    gni_vk_batch *b = vk->stream.open;
    if (!vk->profiling || vk->record.commands || !b || !b->queries ||
        b->timed == GNI_VK_BATCH_COMMANDS)
        return false;
    b->names[b->timed] = name;
    vk->f.vkCmdWriteTimestamp(b->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, b->queries,
                              (uint32_t)(2 * b->timed));
    return true;
}

static void gni_vk_timed_end(gni_vk *vk) {
    gni_vk_batch *b = vk->stream.open;
    vk->f.vkCmdWriteTimestamp(b->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, b->queries,
                              (uint32_t)(2 * b->timed + 1));
    b->timed++;
}

// ---- batches

static void gni_vk_free_batch(gni_vk *vk, gni_vk_batch *b) {
    if (b->pool) vk->f.vkDestroyCommandPool(vk->device, b->pool, NULL);
    if (b->descriptors) vk->f.vkDestroyDescriptorPool(vk->device, b->descriptors, NULL);
    if (b->queries) vk->f.vkDestroyQueryPool(vk->device, b->queries, NULL);
    memset(b, 0, sizeof *b);
}

static VkResult gni_vk_make_descriptor_pool(gni_vk *vk, VkDescriptorPool *out) {
    VkDescriptorPoolSize size;
    size.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    size.descriptorCount = GNI_VK_BATCH_COMMANDS * (vk->caps.max_buffers + 1u);
    VkDescriptorPoolCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = GNI_VK_BATCH_COMMANDS;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    return vk->f.vkCreateDescriptorPool(vk->device, &info, NULL, out);
}

static VkResult gni_vk_make_queries(gni_vk *vk, VkQueryPool *out) {
    VkQueryPoolCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = 2 * GNI_VK_BATCH_COMMANDS;
    return vk->f.vkCreateQueryPool(vk->device, &info, NULL, out);
}

static VkResult gni_vk_make_batch(gni_vk *vk, gni_vk_batch *b) {
    VkCommandPoolCreateInfo pool;
    memset(&pool, 0, sizeof pool);
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool.queueFamilyIndex = vk->family;
    VkResult r = vk->f.vkCreateCommandPool(vk->device, &pool, NULL, &b->pool);
    if (r == VK_SUCCESS) {
        VkCommandBufferAllocateInfo info;
        memset(&info, 0, sizeof info);
        info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
        info.commandPool = b->pool;
        info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
        info.commandBufferCount = 1;
        r = vk->f.vkAllocateCommandBuffers(vk->device, &info, &b->commands);
    }
    if (r == VK_SUCCESS && !vk->caps.addresses)
        r = gni_vk_make_descriptor_pool(vk, &b->descriptors);
    if (r != VK_SUCCESS) gni_vk_free_batch(vk, b);
    return r;
}

// The batch that takes commands, a fresh one if there is none; NULL after a failure.
static gni_vk_batch *gni_vk_begin(gni_vk *vk) {
    gni_vk_stream *s = &vk->stream;
    if (s->open) return s->open;
    if (!gni_vk_usable(vk)) return NULL;
    gni_vk_batch *b = &s->batches[s->next % GNI_VK_BATCHES];
    if (!gni_vk_wait_serial(vk, b->serial)) return NULL;
    gni_vk_collect(vk, b);
    if (!b->pool && !gni_vk_check(vk, gni_vk_make_batch(vk, b), "making a command buffer"))
        return NULL;
    if (vk->profiling && !b->queries && gni_vk_make_queries(vk, &b->queries) != VK_SUCCESS)
        b->queries = VK_NULL_HANDLE;
    b->serial = 0;
    b->count = 0;
    VkCommandBufferBeginInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    VkResult r = vk->f.vkResetCommandPool(vk->device, b->pool, 0);
    if (r == VK_SUCCESS && b->descriptors)
        r = vk->f.vkResetDescriptorPool(vk->device, b->descriptors, 0);
    if (r == VK_SUCCESS) r = vk->f.vkBeginCommandBuffer(b->commands, &info);
    if (!gni_vk_check(vk, r, "beginning a command buffer")) return NULL;
    if (vk->profiling && b->queries)
        vk->f.vkCmdResetQueryPool(b->commands, b->queries, 0, 2 * GNI_VK_BATCH_COMMANDS);
    s->bound = VK_NULL_HANDLE;
    s->open = b;
    return b;
}

static void gni_vk_barrier(gni_vk *vk, VkCommandBuffer c, VkPipelineStageFlags from,
                           VkAccessFlags written, VkPipelineStageFlags to, VkAccessFlags used) {
    VkMemoryBarrier b;
    memset(&b, 0, sizeof b);
    b.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    b.srcAccessMask = written;
    b.dstAccessMask = used;
    vk->f.vkCmdPipelineBarrier(c, from, to, 0, 1, &b, 0, NULL, 0, NULL);
}

enum {
    GNI_VK_STAGES = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
    GNI_VK_WRITES = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
    GNI_VK_ACCESSES = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT | GNI_VK_WRITES
};

// Submits what is recorded; does not wait.
static bool gni_vk_flush(gni_vk *vk) {
    gni_vk_stream *s = &vk->stream;
    gni_vk_batch *b = s->open;
    s->open = NULL;
    if (!b || vk->lost) return gni_vk_usable(vk);
    // The end of a batch makes nothing visible to the host by itself.
    if (s->to_host || vk->caps.mapped)
        gni_vk_barrier(vk, b->commands, GNI_VK_STAGES, GNI_VK_WRITES, VK_PIPELINE_STAGE_HOST_BIT,
                       VK_ACCESS_HOST_READ_BIT);
    s->to_host = false;
    if (!gni_vk_check_lost(vk, vk->f.vkEndCommandBuffer(b->commands), "ending a command buffer"))
        return false;
    VkTimelineSemaphoreSubmitInfo timeline;
    memset(&timeline, 0, sizeof timeline);
    timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    timeline.signalSemaphoreValueCount = 1;
    timeline.pSignalSemaphoreValues = &s->next;
    VkSubmitInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.pNext = &timeline;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &b->commands;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &s->timeline;
    if (vk->host.queue_lock) vk->host.queue_lock(vk->host.user);
    VkResult r = vk->f.vkQueueSubmit(vk->queue, 1, &info, VK_NULL_HANDLE);
    if (vk->host.queue_unlock) vk->host.queue_unlock(vk->host.user);
    if (!gni_vk_check_lost(vk, r, "vkQueueSubmit")) return false;
    b->serial = s->submitted = s->next++;
    return true;
}

// A command was recorded: submits when the batch is full, or worth it because the device has
// nothing to do.
static bool gni_vk_recorded(gni_vk *vk) {
    if (vk->record.commands) return true;
    gni_vk_stream *s = &vk->stream;
    int count = ++s->open->count;
    if (count >= GNI_VK_BATCH_COMMANDS) return gni_vk_flush(vk);
    if (count % GNI_VK_IDLE_COMMANDS) return true;
    if (!gni_vk_poll(vk)) return false;
    return s->completed == s->submitted ? gni_vk_flush(vk) : true;
}

// ---- order

// Puts a barrier in front of a command that uses `uses` if an earlier one since the last barrier
// meets it.
static void gni_vk_order(gni_vk *vk, VkCommandBuffer c, const gni_vk_range *uses, int n,
                         bool transfer) {
    gni_vk_stream *s = &vk->stream;
    bool meet = s->all_dirty || s->range_count + n > GNI_VK_HAZARDS;
    for (int k = 0; k < n && !meet; k++) {
        for (int i = 0; i < s->range_count && !meet; i++) {
            const gni_vk_range *r = &s->ranges[i];
            meet = r->key == uses[k].key && (r->write || uses[k].write) && r->begin < uses[k].end &&
                   uses[k].begin < r->end;
        }
    }
    if (meet) {
        VkPipelineStageFlags from = 0;
        VkAccessFlags written = 0;
        if (s->dispatches)
            from |= VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, written |= VK_ACCESS_SHADER_WRITE_BIT;
        if (s->transfers)
            from |= VK_PIPELINE_STAGE_TRANSFER_BIT, written |= VK_ACCESS_TRANSFER_WRITE_BIT;
        if (s->all_dirty)
            from = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, written = VK_ACCESS_MEMORY_WRITE_BIT;
        gni_vk_barrier(vk, c, from, written, GNI_VK_STAGES, GNI_VK_ACCESSES);
        s->range_count = 0;
        s->dispatches = s->transfers = s->all_dirty = false;
    }
    for (int k = 0; k < n; k++) {
        bool known = false; // a repeated input takes no second entry
        for (int i = 0; i < s->range_count && !known; i++) {
            const gni_vk_range *r = &s->ranges[i];
            known = r->key == uses[k].key && r->write == uses[k].write &&
                    r->begin <= uses[k].begin && uses[k].end <= r->end;
        }
        if (!known) s->ranges[s->range_count++] = uses[k];
    }
    if (transfer)
        s->transfers = true;
    else
        s->dispatches = true;
}

static gni_vk_range gni_vk_range_of(const gni_vk_mem *m, uint64_t offset, uint64_t bytes,
                                    bool write) {
    gni_vk_range r;
    r.key = m->handle;
    r.begin = m->offset + offset;
    r.end = r.begin + bytes;
    r.write = write;
    return r;
}

static bool gni_vk_inside(gni_vk *vk, const gni_vk_mem *m, uint64_t offset, uint64_t bytes,
                          const char *what) {
    if (offset <= m->size && bytes <= m->size - offset) return true;
    gni_fail(vk->g, GN_ERROR_ARGUMENT, "%s: bytes outside of a buffer", what);
    return false;
}

// Where commands go: the host's command buffer while one is being recorded, else the open batch.
static VkCommandBuffer gni_vk_target(gni_vk *vk) {
    if (vk->record.commands) return vk->record.commands;
    gni_vk_batch *b = gni_vk_begin(vk);
    return b ? b->commands : NULL;
}

static bool gni_vk_copy_named(gni_vk *vk, const gni_vk_mem *dst, uint64_t doff,
                              const gni_vk_mem *src, uint64_t soff, uint64_t bytes,
                              const char *name) {
    VkCommandBuffer c = gni_vk_target(vk);
    if (!c) return false;
    gni_vk_range uses[2];
    uses[0] = gni_vk_range_of(dst, doff, bytes, true);
    uses[1] = gni_vk_range_of(src, soff, bytes, false);
    gni_vk_order(vk, c, uses, 2, true);
    VkBufferCopy region;
    region.srcOffset = src->offset + soff;
    region.dstOffset = dst->offset + doff;
    region.size = bytes;
    bool timed = gni_vk_timed_begin(vk, name);
    vk->f.vkCmdCopyBuffer(c, gni_vk_buffer_of(src->handle), gni_vk_buffer_of(dst->handle), 1,
                          &region);
    if (timed) gni_vk_timed_end(vk);
    gni_vk_touch(vk, dst);
    gni_vk_touch(vk, src);
    return gni_vk_recorded(vk);
}

// Device to device. The two ranges do not overlap.
GNI_MAYBE_UNUSED static bool gni_vk_copy(gni_vk *vk, const gni_vk_mem *dst, uint64_t doff,
                                         const gni_vk_mem *src, uint64_t soff, uint64_t bytes) {
    if (bytes == 0) return true;
    if (!gni_vk_inside(vk, dst, doff, bytes, "copy") ||
        !gni_vk_inside(vk, src, soff, bytes, "copy"))
        return false;
    return gni_vk_copy_named(vk, dst, doff, src, soff, bytes, "copy");
}

// Repeats a 32-bit word. `offset` is a multiple of 4; `bytes` is rounded up to one.
GNI_MAYBE_UNUSED static bool gni_vk_fill(gni_vk *vk, const gni_vk_mem *dst, uint64_t offset,
                                         uint64_t bytes, uint32_t word) {
    if (bytes == 0) return true;
    bytes = (bytes + 3u) & ~(uint64_t)3u;
    if (!gni_vk_inside(vk, dst, offset, bytes, "fill")) return false;
    VkCommandBuffer c = gni_vk_target(vk);
    if (!c) return false;
    gni_vk_range use = gni_vk_range_of(dst, offset, bytes, true);
    gni_vk_order(vk, c, &use, 1, true);
    bool timed = gni_vk_timed_begin(vk, "fill");
    vk->f.vkCmdFillBuffer(c, gni_vk_buffer_of(dst->handle), dst->offset + offset, bytes, word);
    if (timed) gni_vk_timed_end(vk);
    gni_vk_touch(vk, dst);
    return gni_vk_recorded(vk);
}

// ---- rings

// Frees what finished batches have read, waiting for one if `wait`.
static bool gni_vk_ring_retire(gni_vk *vk, gni_vk_ring *r, bool wait) {
    if (r->mark_count && wait && !gni_vk_wait_serial(vk, r->marks[r->mark_first].serial))
        return false;
    while (r->mark_count && r->marks[r->mark_first].serial <= vk->stream.completed) {
        r->tail = r->marks[r->mark_first].end;
        r->mark_first = (r->mark_first + 1) % GNI_VK_MARKS;
        r->mark_count--;
    }
    return true;
}

// `bytes` of the ring for the open or next batch. May submit the open batch: call it before
// gni_vk_target. Returns the offset in the ring's memory, or UINT64_MAX.
static uint64_t gni_vk_ring_take(gni_vk *vk, gni_vk_ring *r, uint64_t bytes) {
    bytes = (bytes + 255u) & ~(uint64_t)255u;
    if (bytes > r->size || !gni_vk_ring_retire(vk, r, false)) return UINT64_MAX;
    // The beginning again and again stays in the host's caches.
    if (r->mark_count == 0) r->head = r->tail = 0;
    uint64_t at = r->head % r->size;
    uint64_t skip = at + bytes > r->size ? r->size - at : 0;
    while (r->head + skip + bytes - r->tail > r->size) {
        if (!gni_vk_ring_retire(vk, r, true)) return UINT64_MAX;
        if (r->mark_count == 0) {
            r->head = r->tail = 0;
            skip = 0;
        }
    }
    uint64_t offset = (r->head + skip) % r->size;
    r->head += skip + bytes;
    uint32_t last = (r->mark_first + r->mark_count + GNI_VK_MARKS - 1) % GNI_VK_MARKS;
    if (r->mark_count == 0 || r->marks[last].serial != vk->stream.next) {
        if (r->mark_count == GNI_VK_MARKS && !gni_vk_ring_retire(vk, r, true)) return UINT64_MAX;
        last = (r->mark_first + r->mark_count++) % GNI_VK_MARKS;
        r->marks[last].serial = vk->stream.next;
    }
    r->marks[last].end = r->head;
    return offset;
}

// Makes the ring at least `bytes` large, in memory of that pool.
static bool gni_vk_ring_size(gni_vk *vk, gni_vk_ring *r, int pool, uint64_t bytes) {
    if (r->size >= bytes) return true;
    if (r->size && !gni_vk_wait(vk)) return false;
    gni_vk_mem mem;
    if (!gni_vk_pool_alloc(vk, &vk->pools[pool], bytes, &mem)) {
        if (r->size) return true; // the small one still does
        gni_fail(vk->g, GN_ERROR_OUT_OF_MEMORY, "no staging memory of %d KiB", (int)(bytes >> 10));
        return false;
    }
    if (r->size) gni_vk_free(vk, &r->mem);
    memset(r, 0, sizeof *r);
    r->mem = mem;
    r->size = bytes;
    return true;
}

// ---- data in and out

enum { GNI_VK_COPY_BLOCK = 256 << 10 };

typedef struct gni_vk_host_copy {
    char *to;
    const char *from;
    uint64_t bytes;
} gni_vk_host_copy;

static void gni_vk_host_copy_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_vk_host_copy *c = (const gni_vk_host_copy *)arg;
    uint64_t at = (uint64_t)begin * GNI_VK_COPY_BLOCK;
    uint64_t stop = GNI_MIN((uint64_t)end * GNI_VK_COPY_BLOCK, c->bytes);
    GNI_UNUSED(worker);
    memcpy(c->to + at, c->from + at, (size_t)(stop - at));
}

// One thread does not fill the bus.
static void gni_vk_host_memcpy(gni_vk *vk, void *to, const void *from, uint64_t bytes) {
    gni_vk_host_copy c;
    c.to = (char *)to;
    c.from = (const char *)from;
    c.bytes = bytes;
    int64_t blocks = (int64_t)((bytes + GNI_VK_COPY_BLOCK - 1) / GNI_VK_COPY_BLOCK);
    gni_parallel(vk->g->pool, blocks, 2, gni_vk_host_copy_task, &c);
}

static uint64_t gni_vk_staging_bytes(const gni_vk *vk) {
    return vk->caps.mapped ? (uint64_t)4 << 20 : (uint64_t)32 << 20;
}

// `src` may be reused on return.
static bool gni_vk_upload(gni_vk *vk, const gni_vk_mem *dst, uint64_t offset, const void *src,
                          uint64_t bytes) {
    if (bytes == 0) return true;
    if (!gni_vk_usable(vk) || !gni_vk_inside(vk, dst, offset, bytes, "upload")) return false;
    if (vk->record.commands) return gni_vk_record_upload(vk, dst, offset, src, bytes);
    if (dst->mapped && gni_vk_idle(vk, dst)) {
        gni_vk_host_memcpy(vk, (char *)dst->mapped + offset, src, bytes);
        return true;
    }
    gni_vk_ring *r = &vk->stream.upload;
    uint64_t little = (uint64_t)1 << 20;
    uint64_t wanted = bytes > little / 4 ? gni_vk_staging_bytes(vk) : little;
    if (!gni_vk_ring_size(vk, r, GNI_VK_POOL_UPLOAD, wanted)) return false;
    const char *from = (const char *)src;
    while (bytes) {
        // Pieces, so that the device copies one while the host writes the next.
        uint64_t piece = GNI_MIN(bytes, r->size / 4);
        uint64_t at = gni_vk_ring_take(vk, r, piece);
        if (at == UINT64_MAX) return false;
        gni_vk_host_memcpy(vk, (char *)r->mem.mapped + at, from, piece);
        if (!gni_vk_copy_named(vk, dst, offset, &r->mem, at, piece, "upload")) return false;
        from += piece;
        offset += piece;
        bytes -= piece;
        if (bytes && !gni_vk_flush(vk)) return false;
    }
    return true;
}

// Starts copying to the host. The source may change or be freed afterwards.
static bool gni_vk_download_begin(gni_vk *vk, const gni_vk_mem *src, uint64_t offset,
                                  uint64_t bytes, gni_vk_ticket *t) {
    memset(t, 0, sizeof *t);
    if (!gni_vk_usable(vk) || !gni_vk_inside(vk, src, offset, bytes, "download")) return false;
    if (vk->record.commands) {
        gni_fail(vk->g, GN_ERROR_ARGUMENT,
                 "a value cannot be read while a host's command buffer is recorded");
        return false;
    }
    if (!gni_vk_pool_alloc(vk, &vk->pools[GNI_VK_POOL_READBACK], bytes, &t->mem)) {
        gni_fail(vk->g, GN_ERROR_OUT_OF_MEMORY, "no staging memory of %.0f bytes", (double)bytes);
        return false;
    }
    vk->stream.to_host = true;
    t->serial = vk->stream.next;
    // Recording may submit the batch, so its number is taken before.
    if (bytes && !gni_vk_copy_named(vk, &t->mem, 0, src, offset, bytes, "download")) {
        gni_vk_free(vk, &t->mem);
        return false;
    }
    t->bytes = bytes;
    t->data = t->mem.mapped;
    return true;
}

// True once the data is there. With `wait` false means failure.
static bool gni_vk_ticket_ready(gni_vk *vk, gni_vk_ticket *t, bool wait) {
    if (!t->data) return false;
    if (t->bytes == 0 || t->serial <= vk->stream.completed) return true;
    if (wait) return gni_vk_wait_serial(vk, t->serial);
    if (t->serial > vk->stream.submitted && !gni_vk_flush(vk)) return false;
    return !vk->lost && gni_vk_poll(vk) && t->serial <= vk->stream.completed;
}

static const void *gni_vk_ticket_data(const gni_vk_ticket *t) { return t->data; }

static void gni_vk_ticket_release(gni_vk *vk, gni_vk_ticket *t) {
    if (t->data) gni_vk_free(vk, &t->mem);
    memset(t, 0, sizeof *t);
}

// Pieces through two tickets: the host copies one out while the device copies the next.
static bool gni_vk_download_staged(gni_vk *vk, const gni_vk_mem *src, uint64_t offset, char *dst,
                                   uint64_t bytes) {
    gni_vk_ticket t[2];
    memset(t, 0, sizeof t);
    uint64_t piece = GNI_MIN(bytes, (uint64_t)8 << 20), asked = 0, done = 0;
    bool ok = true;
    for (int i = 0; ok && done < bytes; i ^= 1) {
        while (ok && asked < bytes && asked < done + 2 * piece) {
            gni_vk_ticket *next = &t[(asked / piece) & 1];
            uint64_t n = GNI_MIN(piece, bytes - asked);
            ok = gni_vk_download_begin(vk, src, offset + asked, n, next) && gni_vk_flush(vk);
            asked += n;
        }
        ok = ok && gni_vk_ticket_ready(vk, &t[i], true);
        if (!ok) break;
        gni_vk_host_memcpy(vk, dst + done, t[i].data, t[i].bytes);
        done += t[i].bytes;
        gni_vk_ticket_release(vk, &t[i]);
    }
    gni_vk_ticket_release(vk, &t[0]);
    gni_vk_ticket_release(vk, &t[1]);
    return ok;
}

// Blocks until `dst` is filled.
static bool gni_vk_download(gni_vk *vk, const gni_vk_mem *src, uint64_t offset, void *dst,
                            uint64_t bytes) {
    if (bytes == 0) return true;
    if (!gni_vk_usable(vk) || !gni_vk_inside(vk, src, offset, bytes, "download")) return false;
    if (!src->mapped || vk->record.commands)
        return gni_vk_download_staged(vk, src, offset, (char *)dst, bytes);
    const gni_vk_chunk *c = &src->block->pool->chunks[src->cls];
    if (!gni_vk_wait_serial(vk, c->serial)) return false;
    gni_vk_host_memcpy(vk, dst, (const char *)src->mapped + offset, bytes);
    return true;
}

// ---- opening

static bool gni_vk_stream_open(gni_vk *vk) {
    gni_vk_stream *s = &vk->stream;
    VkSemaphoreTypeCreateInfo type;
    memset(&type, 0, sizeof type);
    type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    info.pNext = &type;
    if (vk->f.vkCreateSemaphore(vk->device, &info, NULL, &s->timeline) != VK_SUCCESS) {
        s->timeline = VK_NULL_HANDLE;
        return false;
    }
    s->next = 1;
    return gni_vk_ring_size(vk, &s->params, GNI_VK_POOL_PARAMS, (uint64_t)1 << 20) &&
           gni_vk_pool_alloc(vk, &vk->pools[GNI_VK_POOL_PARAMS], 256, &vk->dummy);
}

static void gni_vk_stream_close(gni_vk *vk) {
    gni_vk_stream *s = &vk->stream;
    for (int i = 0; i < GNI_VK_BATCHES; i++) gni_vk_free_batch(vk, &s->batches[i]);
    if (s->timeline) vk->f.vkDestroySemaphore(vk->device, s->timeline, NULL);
    s->timeline = VK_NULL_HANDLE;
}

// ---- profiling

// Device time that belongs to a known host time.
static bool gni_vk_calibrate(gni_vk *vk) {
    if (!gni_vk_wait(vk)) return false;
    gni_vk_batch *b = gni_vk_begin(vk);
    if (!b || !b->queries) return false;
    vk->f.vkCmdWriteTimestamp(b->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, b->queries, 0);
    uint64_t serial = vk->stream.next, ticks = 0;
    if (!gni_vk_wait_serial(vk, serial)) return false;
    vk->clock_ns = gni_now_ns();
    VkResult r = vk->f.vkGetQueryPoolResults(vk->device, b->queries, 0, 1, sizeof ticks, &ticks, 8,
                                             VK_QUERY_RESULT_64_BIT);
    vk->clock_ticks = ticks;
    return r == VK_SUCCESS;
}

// Switches the taking of times on or off. False: the device has no timestamps.
GNI_MAYBE_UNUSED static bool gni_vk_profile(gni_vk *vk, bool on) {
    if (vk->caps.timestamp_ns <= 0.0f || vk->lost) return false;
    if (!gni_vk_wait(vk)) return false;
    bool was = vk->profiling;
    vk->profiling = on;
    if (on && !was && !gni_vk_calibrate(vk)) vk->profiling = false;
    return vk->profiling == on;
}

// Waits, then hands out up to `capacity` of the events so far, oldest first. Returns how many.
GNI_MAYBE_UNUSED static int gni_vk_profile_fetch(gni_vk *vk, gni_vk_event *out, int capacity) {
    if (!vk->lost && gni_vk_wait(vk))
        for (uint64_t i = 0; i < GNI_VK_BATCHES; i++)
            gni_vk_collect(vk, &vk->stream.batches[(vk->stream.next + i) % GNI_VK_BATCHES]);
    int n = GNI_MIN(capacity, vk->event_count);
    if (n <= 0) return 0;
    memcpy(out, vk->events, (size_t)n * sizeof *out);
    vk->event_count -= n;
    memmove(vk->events, vk->events + n, (size_t)vk->event_count * sizeof *out);
    return n;
}

#endif // GNI_VULKAN
// ------------------------------------------------------------------------------------------
// >>vk_pipelines
// Compute pipelines out of shaders.h: found by module and specialisation constants, compiled when
// first asked for, here or on a thread of their own, and kept in a VkPipelineCache on disk. Only
// this room has a thread in it; what the two sides share is guarded by gni_vk_compiler.mutex.

#if GNI_VULKAN

#define GNI_SHADERS_WANTED
#include "shaders.h"
#undef GNI_SHADERS_WANTED

// ---- compiling

static bool gni_vk_needs_code(const gni_vk_kernel *k, uint32_t code) {
    for (uint32_t i = k->first_code; i < k->n_spec; i++)
        if ((k->spec[i] & 2047u) == code) return true;
    return false;
}

// Copies a module without the cases of its large switch that the kernel does not need; their blocks stay
// behind, unreachable. Drivers inline that switch once for every instruction of a program, so that a
// full one takes them a second. Returns the number of words.
static uint32_t gni_vk_prune(const uint32_t *w, uint32_t n, const gni_vk_kernel *k, uint32_t *out) {
    uint32_t at = 5;
    memcpy(out, w, 5 * sizeof *w);
    for (uint32_t i = 5, count; i < n; i += count) {
        count = w[i] >> 16;
        if ((w[i] & 0xffffu) != 251u || count < 64u) { // OpSwitch
            memcpy(out + at, w + i, count * sizeof *w);
            at += count;
            continue;
        }
        uint32_t start = at;
        out[at++] = 0;
        out[at++] = w[i + 1];
        out[at++] = w[i + 2];
        for (uint32_t j = 3; j + 1 < count; j += 2) {
            if (!gni_vk_needs_code(k, w[i + j])) continue;
            out[at++] = w[i + j];
            out[at++] = w[i + j + 1];
        }
        out[start] = (at - start) << 16 | 251u;
    }
    return at;
}

// The kernel's own module, or VK_NULL_HANDLE: the common one does.
static VkShaderModule gni_vk_pruned_module(gni_vk *vk, const gni_vk_kernel *k) {
    VkShaderModule m = VK_NULL_HANDLE;
    const gni_module *from = &gni_modules[vk->compiler.variant[k->module]];
    uint32_t *words = k->first_code ? (uint32_t *)gni_alloc(vk->g, from->bytes) : NULL;
    if (!words) return m;
    VkShaderModuleCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    info.codeSize = gni_vk_prune(from->words, from->bytes / 4, k, words) * 4u;
    info.pCode = words;
    if (vk->f.vkCreateShaderModule(vk->device, &info, NULL, &m) != VK_SUCCESS) m = VK_NULL_HANDLE;
    gni_free(vk->g, words);
    return m;
}

// Runs on either thread: touches nothing but `p` and handles that never change.
static void gni_vk_compile(gni_vk *vk, gni_vk_pipeline *p) {
    VkSpecializationMapEntry entries[GNI_VK_MAX_SPEC];
    for (uint32_t i = 0; i < p->kernel.n_spec; i++) {
        entries[i].constantID = i;
        entries[i].offset = i * 4u;
        entries[i].size = 4;
    }
    VkSpecializationInfo spec;
    spec.mapEntryCount = p->kernel.n_spec;
    spec.pMapEntries = entries;
    spec.dataSize = p->kernel.n_spec * 4u;
    spec.pData = p->kernel.spec;
    gni_vk_required_subgroup subgroup;
    memset(&subgroup, 0, sizeof subgroup);
    subgroup.sType = GNI_VK_TYPE_REQUIRED_SUBGROUP_SIZE;
    subgroup.size = p->kernel.subgroup;
    VkComputePipelineCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    VkShaderModule own = gni_vk_pruned_module(vk, &p->kernel);
    info.stage.module = own ? own : p->module;
    info.stage.pName = "main";
    info.stage.pSpecializationInfo = p->kernel.n_spec ? &spec : NULL;
    if (p->kernel.subgroup && vk->caps.subgroup_control) {
        info.stage.pNext = &subgroup;
        info.stage.flags = 2u; // VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT
    }
    info.layout = vk->compiler.layout;
    info.basePipelineIndex = -1;
    p->pipeline = VK_NULL_HANDLE;
    p->result = vk->f.vkCreateComputePipelines(vk->device, vk->compiler.cache, 1, &info, NULL,
                                               &p->pipeline);
    if (own) vk->f.vkDestroyShaderModule(vk->device, own, NULL);
}

static void gni_vk_compile_here(gni_vk *vk, gni_vk_pipeline *p) {
    gni_vk_compile(vk, p);
    gni_atomic_store(&p->state, p->result == VK_SUCCESS ? GNI_VK_READY : GNI_VK_FAILED);
}

#ifndef GPUNUM_NO_THREADS

static void gni_vk_compiler_main(void *arg) {
    gni_vk *vk = (gni_vk *)arg;
    gni_vk_compiler *c = &vk->compiler;
    gni_mutex_lock(&c->mutex);
    for (;;) {
        while (!c->quit && !c->queue) gni_cond_wait(&c->work, &c->mutex);
        if (c->quit) break;
        gni_vk_pipeline *p = c->queue;
        c->queue = p->queue_next;
        if (!c->queue) c->queue_last = NULL;
        gni_atomic_store(&p->state, GNI_VK_COMPILING);
        gni_mutex_unlock(&c->mutex);
        gni_vk_compile(vk, p);
        gni_mutex_lock(&c->mutex);
        gni_atomic_store(&p->state, p->result == VK_SUCCESS ? GNI_VK_READY : GNI_VK_FAILED);
        gni_cond_broadcast(&c->done);
    }
    gni_mutex_unlock(&c->mutex);
}

// The thread starts with the first pipeline that it is given. False: there is none.
static bool gni_vk_compile_later(gni_vk *vk, gni_vk_pipeline *p) {
    gni_vk_compiler *c = &vk->compiler;
    if (!c->async) return false;
    if (!c->running) c->running = gni_thread_start(&c->thread, gni_vk_compiler_main, vk);
    if (!c->running) {
        c->async = false;
        return false;
    }
    gni_mutex_lock(&c->mutex);
    gni_atomic_store(&p->state, GNI_VK_QUEUED);
    p->queue_next = NULL;
    if (c->queue_last)
        c->queue_last->queue_next = p;
    else
        c->queue = p;
    c->queue_last = p;
    gni_cond_signal(&c->work);
    gni_mutex_unlock(&c->mutex);
    return true;
}

// Ends with p compiled: by us if the thread has not begun it.
static void gni_vk_compile_now(gni_vk *vk, gni_vk_pipeline *p) {
    gni_vk_compiler *c = &vk->compiler;
    gni_mutex_lock(&c->mutex);
    if (p->state == GNI_VK_QUEUED) {
        gni_vk_pipeline *before = NULL;
        for (gni_vk_pipeline *q = c->queue; q != p; q = q->queue_next) before = q;
        if (before)
            before->queue_next = p->queue_next;
        else
            c->queue = p->queue_next;
        if (c->queue_last == p) c->queue_last = before;
        gni_atomic_store(&p->state, GNI_VK_IDLE);
    }
    while (p->state == GNI_VK_COMPILING) gni_cond_wait(&c->done, &c->mutex);
    bool ours = p->state == GNI_VK_IDLE;
    gni_mutex_unlock(&c->mutex);
    if (ours) gni_vk_compile_here(vk, p);
}

static bool gni_vk_thread_open(gni_vk_compiler *c) {
    if (!gni_mutex_init(&c->mutex)) return false;
    if (!gni_cond_init(&c->work)) {
        gni_mutex_free(&c->mutex);
        return false;
    }
    if (!gni_cond_init(&c->done)) {
        gni_cond_free(&c->work);
        gni_mutex_free(&c->mutex);
        return false;
    }
    c->locks = true;
    return true;
}

static void gni_vk_thread_close(gni_vk_compiler *c) {
    if (!c->locks) return;
    if (c->running) {
        gni_mutex_lock(&c->mutex);
        c->quit = true;
        gni_cond_signal(&c->work);
        gni_mutex_unlock(&c->mutex);
        gni_thread_join(&c->thread);
        c->running = false;
    }
    gni_cond_free(&c->work);
    gni_cond_free(&c->done);
    gni_mutex_free(&c->mutex);
    c->locks = false;
}

#else

static bool gni_vk_compile_later(gni_vk *vk, gni_vk_pipeline *p) {
    GNI_UNUSED(vk);
    GNI_UNUSED(p);
    return false;
}
static void gni_vk_compile_now(gni_vk *vk, gni_vk_pipeline *p) {
    if (p->state == GNI_VK_IDLE) gni_vk_compile_here(vk, p);
}
static bool gni_vk_thread_open(gni_vk_compiler *c) {
    c->async = false;
    return true;
}
static void gni_vk_thread_close(gni_vk_compiler *c) { GNI_UNUSED(c); }

#endif

// ---- the table

static uint64_t gni_vk_kernel_hash(const gni_vk_kernel *k) {
    uint64_t h = 14695981039346656037u;
    h = (h ^ (uint32_t)k->module) * 1099511628211u;
    h = (h ^ k->n_spec) * 1099511628211u;
    h = (h ^ k->subgroup) * 1099511628211u;
    for (uint32_t i = 0; i < k->n_spec; i++) h = (h ^ k->spec[i]) * 1099511628211u;
    return h ^ (h >> 29);
}

static bool gni_vk_same_kernel(const gni_vk_kernel *a, const gni_vk_kernel *b) {
    return a->module == b->module && a->n_spec == b->n_spec && a->subgroup == b->subgroup &&
           memcmp(a->spec, b->spec, a->n_spec * sizeof a->spec[0]) == 0;
}

static gni_vk_pipeline *gni_vk_find_pipeline(const gni_vk_compiler *c, const gni_vk_kernel *k,
                                             uint64_t hash) {
    if (c->capacity == 0) return NULL;
    for (uint64_t i = hash;; i++) {
        gni_vk_pipeline *p = c->table[i & (c->capacity - 1)];
        if (!p || (p->hash == hash && gni_vk_same_kernel(&p->kernel, k))) return p;
    }
}

static void gni_vk_enter_pipeline(gni_vk_compiler *c, gni_vk_pipeline *p) {
    uint64_t i = p->hash;
    while (c->table[i & (c->capacity - 1)]) i++;
    c->table[i & (c->capacity - 1)] = p;
}

static bool gni_vk_grow_table(gni_vk *vk) {
    gni_vk_compiler *c = &vk->compiler;
    if (c->count * 2 < c->capacity) return true;
    uint32_t old = c->capacity;
    gni_vk_pipeline **before = c->table;
    uint32_t capacity = old ? old * 2 : 64;
    gni_vk_pipeline **table =
        (gni_vk_pipeline **)gni_calloc(vk->g, capacity * sizeof(gni_vk_pipeline *));
    if (!table) return false;
    c->table = table;
    c->capacity = capacity;
    for (uint32_t i = 0; i < old; i++)
        if (before[i]) gni_vk_enter_pipeline(c, before[i]);
    gni_free(vk->g, before);
    return true;
}

// The shader module that this mode uses for module `i`, made when first needed.
static VkShaderModule gni_vk_module(gni_vk *vk, int i) {
    gni_vk_compiler *c = &vk->compiler;
    if (i < 0 || i >= GNI_MODULE_COUNT || c->variant[i] < 0) {
        gni_fail(vk->g, GN_ERROR_UNSUPPORTED,
                 "kernel %s has no form for a device without buffer addresses",
                 i >= 0 && i < GNI_MODULE_COUNT ? gni_modules[i].name : "?");
        return VK_NULL_HANDLE;
    }
    int v = c->variant[i];
    if (c->modules[v]) return c->modules[v];
    VkShaderModuleCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    info.codeSize = gni_modules[v].bytes;
    info.pCode = gni_modules[v].words;
    VkResult r = vk->f.vkCreateShaderModule(vk->device, &info, NULL, &c->modules[v]);
    if (r != VK_SUCCESS) c->modules[v] = VK_NULL_HANDLE;
    gni_vk_check(vk, r, "vkCreateShaderModule");
    return c->modules[v];
}

static gni_vk_pipeline *gni_vk_add_pipeline(gni_vk *vk, const gni_vk_kernel *k, uint64_t hash) {
    gni_vk_compiler *c = &vk->compiler;
    if (k->n_spec > GNI_VK_MAX_SPEC || !gni_vk_grow_table(vk)) return NULL;
    VkShaderModule module = gni_vk_module(vk, k->module);
    if (!module) return NULL;
    gni_vk_pipeline *p = (gni_vk_pipeline *)gni_calloc(vk->g, sizeof(gni_vk_pipeline));
    if (!p) return NULL;
    p->kernel = *k;
    p->hash = hash;
    p->name = gni_modules[k->module].name;
    p->module = module;
    gni_vk_enter_pipeline(c, p);
    c->count++;
    return p;
}

static void gni_vk_report_pipeline(gni_vk *vk, gni_vk_pipeline *p, gni_vk_mode mode) {
    if (p->result == VK_ERROR_DEVICE_LOST) vk->lost = true;
    if (!p->reported)
        gni_log(vk->g, GN_LOG_WARNING, "kernel %s does not compile: %s", p->name,
                gni_vk_result_name(p->result));
    p->reported = true;
    if (mode == GNI_VK_WAIT)
        gni_fail(vk->g,
                 p->result == VK_ERROR_DEVICE_LOST ? GN_ERROR_DEVICE_LOST : GN_ERROR_UNSUPPORTED,
                 "kernel %s does not compile: %s", p->name, gni_vk_result_name(p->result));
}

// NULL: not ready (ASYNC, PEEK), or failed, which WAIT reports.
static gni_vk_pipeline *gni_vk_pipeline_get(gni_vk *vk, const gni_vk_kernel *k, gni_vk_mode mode) {
    uint64_t hash = gni_vk_kernel_hash(k);
    gni_vk_pipeline *p = gni_vk_find_pipeline(&vk->compiler, k, hash);
    if (!p) {
        if (mode == GNI_VK_PEEK || !gni_vk_usable(vk)) return NULL;
        p = gni_vk_add_pipeline(vk, k, hash);
        if (!p && mode == GNI_VK_WAIT)
            gni_fail(vk->g, GN_ERROR_OUT_OF_MEMORY, "no memory for a pipeline");
        if (!p) return NULL;
    }
    int32_t state = gni_atomic_load(&p->state);
    if (state == GNI_VK_READY) return p;
    if (state == GNI_VK_IDLE && mode == GNI_VK_ASYNC && gni_vk_compile_later(vk, p)) return NULL;
    if (state != GNI_VK_FAILED &&
        (mode == GNI_VK_WAIT || (mode == GNI_VK_ASYNC && state == GNI_VK_IDLE)))
        gni_vk_compile_now(vk, p);
    state = gni_atomic_load(&p->state);
    if (state == GNI_VK_FAILED) gni_vk_report_pipeline(vk, p, mode);
    return state == GNI_VK_READY ? p : NULL;
}

// ---- the cache file
// Our own header (drivers trust what they are given), then what the driver wrote.

typedef struct gni_vk_cache_head {
    char magic[8];
    uint64_t bytes, hash;
} gni_vk_cache_head;

static uint64_t gni_vk_cache_hash(const unsigned char *p, size_t n) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}

// Vulkan's own header: length, version, vendor, device, UUID.
static bool gni_vk_cache_fits(const gni_vk *vk, const unsigned char *data, size_t bytes) {
    uint32_t head[4];
    if (bytes < 16 + VK_UUID_SIZE) return false;
    memcpy(head, data, sizeof head);
    return head[0] >= 32 && head[0] <= bytes && head[1] == 1 && head[2] == vk->caps.vendor_id &&
           head[3] == vk->caps.device_id && memcmp(data + 16, vk->cache_uuid, VK_UUID_SIZE) == 0;
}

// What the file holds, or NULL: none there, cut short, damaged, another driver's.
static unsigned char *gni_vk_cache_read(gni_vk *vk, size_t *bytes) {
    unsigned char *data = NULL;
    FILE *file = fopen(vk->compiler.cache_path, "rb");
    if (!file) return NULL;
    gni_vk_cache_head head;
    if (fread(&head, sizeof head, 1, file) == 1 && memcmp(head.magic, "gpunumC1", 8) == 0 &&
        head.bytes <= (uint64_t)1 << 30) {
        *bytes = (size_t)head.bytes;
        data = (unsigned char *)gni_alloc(vk->g, *bytes + 1);
        if (data && (fread(data, 1, *bytes, file) != *bytes ||
                     gni_vk_cache_hash(data, *bytes) != head.hash ||
                     !gni_vk_cache_fits(vk, data, *bytes))) {
            gni_log(vk->g, GN_LOG_INFO, "pipeline cache %s is of another driver or damaged",
                    vk->compiler.cache_path);
            gni_free(vk->g, data);
            data = NULL;
        }
    }
    fclose(file);
    return data;
}

// To a name of its own first, so that a reader never sees half a file.
static bool gni_vk_cache_write(gni_vk *vk, const unsigned char *data, size_t bytes) {
    const char *path = vk->compiler.cache_path;
    size_t room = strlen(path) + 40;
    char *temporary = (char *)gni_alloc(vk->g, room);
    if (!temporary) return false;
    snprintf(temporary, room, "%s.%llx", path,
             (unsigned long long)(gni_now_ns() ^ (uint64_t)(uintptr_t)vk));
    FILE *file = fopen(temporary, "wb");
    bool ok = file != NULL;
    if (file) {
        gni_vk_cache_head head;
        memcpy(head.magic, "gpunumC1", 8);
        head.bytes = bytes;
        head.hash = gni_vk_cache_hash(data, bytes);
        ok = fwrite(&head, sizeof head, 1, file) == 1 && fwrite(data, 1, bytes, file) == bytes;
        ok = fclose(file) == 0 && ok;
#ifdef _WIN32
        if (ok) remove(path); // rename does not replace there
#endif
        ok = ok && rename(temporary, path) == 0;
        if (!ok) remove(temporary);
    }
    gni_free(vk->g, temporary);
    return ok;
}

static void gni_vk_cache_save(gni_vk *vk) {
    gni_vk_compiler *c = &vk->compiler;
    size_t bytes = 0;
    if (!c->cache_path || !c->cache || c->count == 0 || vk->lost) return;
    if (vk->f.vkGetPipelineCacheData(vk->device, c->cache, &bytes, NULL) != VK_SUCCESS) return;
    if (bytes == 0 || bytes == c->cache_bytes) return; // nothing was added
    unsigned char *data = (unsigned char *)gni_alloc(vk->g, bytes);
    if (!data) return;
    VkResult r = vk->f.vkGetPipelineCacheData(vk->device, c->cache, &bytes, data);
    if (r == VK_SUCCESS && gni_vk_cache_fits(vk, data, bytes) &&
        !gni_vk_cache_write(vk, data, bytes))
        gni_log(vk->g, GN_LOG_WARNING, "pipeline cache %s cannot be written", c->cache_path);
    gni_free(vk->g, data);
}

// A cache that cannot be had is no error: pipelines compile without one.
static void gni_vk_cache_open(gni_vk *vk, const char *folder) {
    gni_vk_compiler *c = &vk->compiler;
    unsigned char *data = NULL;
    size_t bytes = 0;
    if (folder && folder[0]) {
        size_t room = strlen(folder) + 96;
        c->cache_path = (char *)gni_alloc(vk->g, room);
        if (c->cache_path) {
            const uint8_t *u = vk->cache_uuid;
            snprintf(c->cache_path, room,
                     "%s/gpunum-%04x-%04x-%08x-%02x%02x%02x%02x%02x%02x%02x%02x.bin", folder,
                     (unsigned)vk->caps.vendor_id, (unsigned)vk->caps.device_id,
                     (unsigned)vk->caps.driver_version, u[0], u[1], u[2], u[3], u[4], u[5], u[6],
                     u[7]);
            data = gni_vk_cache_read(vk, &bytes);
        }
    }
    VkPipelineCacheCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
    info.initialDataSize = data ? bytes : 0;
    info.pInitialData = data;
    if (vk->f.vkCreatePipelineCache(vk->device, &info, NULL, &c->cache) != VK_SUCCESS)
        c->cache = VK_NULL_HANDLE;
    c->cache_bytes = data ? bytes : 0;
    gni_free(vk->g, data);
}

// ---- opening

// Binding 0 is the block of parameters, 1 to max_buffers are the buffer arguments.
static VkResult gni_vk_make_layout(gni_vk *vk) {
    gni_vk_compiler *c = &vk->compiler;
    VkPushConstantRange push;
    push.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    push.offset = 0;
    push.size = 16;
    VkPipelineLayoutCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    info.pushConstantRangeCount = 1;
    info.pPushConstantRanges = &push;
    if (!vk->caps.addresses) {
        VkDescriptorSetLayoutBinding bindings[GNI_VK_MAX_USES + 1];
        memset(bindings, 0, sizeof bindings);
        for (uint32_t i = 0; i <= vk->caps.max_buffers; i++) {
            bindings[i].binding = i;
            bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
            bindings[i].descriptorCount = 1;
            bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
        }
        VkDescriptorSetLayoutCreateInfo set;
        memset(&set, 0, sizeof set);
        set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
        set.bindingCount = vk->caps.max_buffers + 1;
        set.pBindings = bindings;
        VkResult r = vk->f.vkCreateDescriptorSetLayout(vk->device, &set, NULL, &c->set_layout);
        if (r != VK_SUCCESS) return r;
        info.setLayoutCount = 1;
        info.pSetLayouts = &c->set_layout;
    }
    return vk->f.vkCreatePipelineLayout(vk->device, &info, NULL, &c->layout);
}

// NAME_b for NAME, mostly the next one.
static int gni_vk_bound_variant(int i) {
    size_t n = strlen(gni_modules[i].name);
    for (int k = 1; k < GNI_MODULE_COUNT; k++) {
        int j = (i + k) % GNI_MODULE_COUNT;
        const char *name = gni_modules[j].name;
        if (strncmp(name, gni_modules[i].name, n) == 0 && strcmp(name + n, "_b") == 0) return j;
    }
    return -1;
}

static bool gni_vk_compiler_open(gni_vk *vk, const gn_options *o) {
    gni_vk_compiler *c = &vk->compiler;
    size_t n = (size_t)GNI_MODULE_COUNT + 1;
    c->modules = (VkShaderModule *)gni_calloc(vk->g, n * sizeof(VkShaderModule));
    c->variant = (int *)gni_calloc(vk->g, n * sizeof(int));
    if (!c->modules || !c->variant) return false;
    for (int i = 0; i < GNI_MODULE_COUNT; i++)
        c->variant[i] = vk->caps.addresses ? i : gni_vk_bound_variant(i);
    c->async = !(o->vulkan_flags & GN_VULKAN_NO_ASYNC_PIPELINES);
    if (gni_vk_make_layout(vk) != VK_SUCCESS || !gni_vk_thread_open(c)) return false;
    gni_vk_cache_open(vk, o->cache_dir);
    return true;
}

static void gni_vk_compiler_close(gni_vk *vk) {
    gni_vk_compiler *c = &vk->compiler;
    gni_vk_thread_close(c);
    gni_vk_cache_save(vk);
    for (uint32_t i = 0; i < c->capacity; i++) {
        gni_vk_pipeline *p = c->table[i];
        if (!p) continue;
        if (p->pipeline) vk->f.vkDestroyPipeline(vk->device, p->pipeline, NULL);
        gni_free(vk->g, p);
    }
    for (int i = 0; c->modules && i < GNI_MODULE_COUNT; i++)
        if (c->modules[i]) vk->f.vkDestroyShaderModule(vk->device, c->modules[i], NULL);
    if (c->layout) vk->f.vkDestroyPipelineLayout(vk->device, c->layout, NULL);
    if (c->set_layout) vk->f.vkDestroyDescriptorSetLayout(vk->device, c->set_layout, NULL);
    if (c->cache) vk->f.vkDestroyPipelineCache(vk->device, c->cache, NULL);
    gni_free(vk->g, c->table);
    gni_free(vk->g, c->modules);
    gni_free(vk->g, c->variant);
    gni_free(vk->g, c->cache_path);
    memset(c, 0, sizeof *c);
}

#endif // GNI_VULKAN
// ------------------------------------------------------------------------------------------
// >>vk_dispatch
// Running a kernel: its parameters and buffers made known to it, into our own stream or into a
// command buffer that a host records.
//
// A host's command buffer is executed by the host, after gn_flush and on the same queue, before
// work that is recorded later and uses its results. Parameters of what was recorded live, and
// memory that it uses is held back, until gni_vk_record_done is told the number that
// gni_vk_record_end gave: gpunum cannot know when the host's submission is over.

#if GNI_VULKAN

// ---- recording into a host's command buffer

static void gni_vk_free_arena(gni_vk *vk, gni_vk_arena *a) {
    if (a->descriptors) vk->f.vkDestroyDescriptorPool(vk->device, a->descriptors, NULL);
    gni_vk_free(vk, &a->mem);
    gni_free(vk->g, a);
}

// `bytes` of host-visible memory, and a descriptor set if `set`, that live as long as the
// recording.
static gni_vk_arena *gni_vk_arena_take(gni_vk *vk, uint64_t bytes, bool set, uint64_t *offset) {
    gni_vk_arena *a = vk->record.arenas;
    bytes = (bytes + 255u) & ~(uint64_t)255u;
    if (!a || a->token != vk->record.token || a->mem.size - a->fill < bytes ||
        (set && a->sets == GNI_VK_BATCH_COMMANDS)) {
        a = (gni_vk_arena *)gni_calloc(vk->g, sizeof(gni_vk_arena));
        if (!a) return NULL;
        a->token = vk->record.token;
        bool ok = gni_vk_pool_alloc(vk, &vk->pools[GNI_VK_POOL_PARAMS],
                                    GNI_MAX(bytes, (uint64_t)1 << 16), &a->mem);
        if (ok && !vk->caps.addresses)
            ok = gni_vk_make_descriptor_pool(vk, &a->descriptors) == VK_SUCCESS;
        if (!ok) {
            gni_fail(vk->g, GN_ERROR_OUT_OF_MEMORY,
                     "no memory for the parameters of recorded commands");
            gni_vk_free_arena(vk, a);
            return NULL;
        }
        a->next = vk->record.arenas;
        vk->record.arenas = a;
    }
    *offset = a->fill;
    a->fill += bytes;
    a->sets += set;
    return a;
}

// Between this and gni_vk_record_end commands go into `commands`, a VkCommandBuffer in recording
// state. What was recorded before is submitted, so that the host's submission comes after it.
static bool gni_vk_record_begin(gni_vk *vk, void *commands) {
    if (!commands || vk->record.commands) {
        gni_fail(vk->g, GN_ERROR_ARGUMENT,
                 "recording: no command buffer, or one is being recorded already");
        return false;
    }
    if (!gni_vk_usable(vk) || !gni_vk_flush(vk)) return false;
    vk->record.commands = (VkCommandBuffer)commands;
    vk->record.token++;
    vk->record.bound = VK_NULL_HANDLE;
    // Whatever the host and we did before is over and visible.
    vk->stream.all_dirty = true;
    return true;
}

// Returns the number to give to gni_vk_record_done.
static uint64_t gni_vk_record_end(gni_vk *vk) {
    if (!vk->record.commands) return 0;
    gni_vk_barrier(vk, vk->record.commands, GNI_VK_STAGES, GNI_VK_WRITES,
                   VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                   VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT);
    vk->record.commands = NULL;
    vk->stream.all_dirty = true;
    return vk->record.token;
}

// The device is done with all recordings up to `token`.
static void gni_vk_record_done(gni_vk *vk, uint64_t token) {
    if (token <= vk->record.done || token > vk->record.token) return;
    vk->record.done = token;
    gni_vk_arena **at = &vk->record.arenas;
    while (*at) {
        gni_vk_arena *a = *at;
        if (a->token <= token) {
            *at = a->next;
            gni_vk_free_arena(vk, a);
        } else {
            at = &a->next;
        }
    }
    gni_vk_release_held(vk);
}

static void gni_vk_record_close(gni_vk *vk) {
    vk->record.commands = NULL;
    gni_vk_record_done(vk, vk->record.token);
}

static bool gni_vk_record_upload(gni_vk *vk, const gni_vk_mem *dst, uint64_t offset,
                                 const void *src, uint64_t bytes) {
    uint64_t at = 0;
    gni_vk_arena *a = gni_vk_arena_take(vk, bytes, false, &at);
    if (!a) return false;
    memcpy((char *)a->mem.mapped + at, src, (size_t)bytes);
    return gni_vk_copy_named(vk, dst, offset, &a->mem, at, bytes, "upload");
}

// ---- dispatch

// Everything about a dispatch on its way into a command buffer.
typedef struct gni_vk_call {
    VkCommandBuffer commands;
    const gni_vk_mem *block; // memory of the parameter block
    uint64_t at, bytes;      // where in it
    VkDescriptorPool sets;
    const gni_vk_use *uses;
    int n_use;
} gni_vk_call;

static bool gni_vk_refuse(gni_vk *vk, const gni_vk_pipeline *p, const char *what) {
    gni_fail(vk->g, GN_ERROR_ARGUMENT, "dispatch of %s: %s", p->name, what);
    return false;
}

static bool gni_vk_dispatch_fits(gni_vk *vk, const gni_vk_pipeline *p, const gni_vk_use *uses,
                                 int n_use, uint32_t params_bytes, const uint32_t *groups) {
    if (n_use < 0 || n_use > (int)vk->caps.max_buffers)
        return gni_vk_refuse(vk, p, "too many buffers for this device");
    if (params_bytes > GNI_VK_MAX_PARAMS) return gni_vk_refuse(vk, p, "too many parameters");
    for (int i = 0; i < 3; i++)
        if (groups[i] > vk->caps.max_groups[i]) return gni_vk_refuse(vk, p, "too many workgroups");
    uint64_t align = vk->caps.addresses ? 15u : 255u;
    for (int i = 0; i < n_use; i++) {
        const gni_vk_use *u = &uses[i];
        if (!u->mem || u->offset > u->mem->size || u->bytes > u->mem->size - u->offset)
            return gni_vk_refuse(vk, p, "a buffer argument reaches outside of its memory");
        if (u->offset & align) return gni_vk_refuse(vk, p, "a buffer argument is not aligned");
        if (!vk->caps.addresses && u->bytes > vk->caps.max_storage_range)
            return gni_vk_refuse(vk, p, "a buffer argument is larger than this device can bind");
    }
    return true;
}

// Writes the parameter block where the device can read it. May submit the open batch.
static bool gni_vk_put_params(gni_vk *vk, gni_vk_call *d, const void *params,
                              uint32_t params_bytes) {
    d->bytes = (uint64_t)GNI_VK_ADDRESS_BYTES + ((params_bytes + 15u) & ~15u);
    if (vk->record.commands) {
        gni_vk_arena *a = gni_vk_arena_take(vk, d->bytes, !vk->caps.addresses, &d->at);
        if (!a) return false;
        d->block = &a->mem;
        d->sets = a->descriptors;
    } else {
        d->at = gni_vk_ring_take(vk, &vk->stream.params, d->bytes);
        if (d->at == UINT64_MAX) return false;
        d->block = &vk->stream.params.mem;
    }
    char *out = (char *)d->block->mapped + d->at;
    uint64_t addresses[GNI_VK_MAX_USES];
    memset(addresses, 0, sizeof addresses);
    for (int i = 0; i < d->n_use; i++) addresses[i] = d->uses[i].mem->address + d->uses[i].offset;
    memcpy(out, addresses, sizeof addresses);
    if (params_bytes) memcpy(out + GNI_VK_ADDRESS_BYTES, params, params_bytes);
    return true;
}

static void gni_vk_descriptor(VkDescriptorBufferInfo *out, const gni_vk_mem *m, uint64_t offset,
                              uint64_t bytes) {
    out->buffer = gni_vk_buffer_of(m->handle);
    out->offset = m->offset + offset;
    // Kernels read whole vectors of 16 bytes; memory ends at a multiple of that, a host's buffer
    // may not.
    out->range = GNI_MIN((bytes + 15u) & ~(uint64_t)15u, GNI_MAX(m->size - offset, 4u));
}

static bool gni_vk_bind_buffers(gni_vk *vk, const gni_vk_call *d) {
    VkDescriptorSet set = VK_NULL_HANDLE;
    VkDescriptorSetAllocateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = d->sets;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &vk->compiler.set_layout;
    if (!gni_vk_check(vk, vk->f.vkAllocateDescriptorSets(vk->device, &info, &set),
                      "vkAllocateDescriptorSets"))
        return false;
    uint32_t count = vk->caps.max_buffers + 1;
    VkDescriptorBufferInfo buffers[GNI_VK_MAX_USES + 1];
    gni_vk_descriptor(&buffers[0], d->block, d->at, d->bytes);
    for (uint32_t i = 1; i < count; i++) {
        const gni_vk_use *u = (int)i <= d->n_use ? &d->uses[i - 1] : NULL;
        if (u && u->bytes)
            gni_vk_descriptor(&buffers[i], u->mem, u->offset, u->bytes);
        else
            gni_vk_descriptor(&buffers[i], &vk->dummy, 0, 256);
    }
    VkWriteDescriptorSet write;
    memset(&write, 0, sizeof write);
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = set;
    write.descriptorCount = count; // runs on into the following bindings
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = buffers;
    vk->f.vkUpdateDescriptorSets(vk->device, 1, &write, 0, NULL);
    vk->f.vkCmdBindDescriptorSets(d->commands, VK_PIPELINE_BIND_POINT_COMPUTE, vk->compiler.layout,
                                  0, 1, &set, 0, NULL);
    return true;
}

// Runs a kernel over a grid of workgroups. `params` is copied. The caller's uses say all that it
// reads and writes.
static bool gni_vk_dispatch(gni_vk *vk, gni_vk_pipeline *p, const gni_vk_use *uses, int n_use,
                            const void *params, uint32_t params_bytes, uint32_t gx, uint32_t gy,
                            uint32_t gz) {
    uint32_t groups[3];
    groups[0] = gx;
    groups[1] = gy;
    groups[2] = gz;
    if (!p || !gni_vk_usable(vk) || !gni_vk_dispatch_fits(vk, p, uses, n_use, params_bytes, groups))
        return false;
    if (gx == 0 || gy == 0 || gz == 0) return true;
    gni_vk_call d;
    memset(&d, 0, sizeof d);
    d.uses = uses;
    d.n_use = n_use;
    if (!gni_vk_put_params(vk, &d, params, params_bytes)) return false;
    d.commands = gni_vk_target(vk);
    if (!d.commands) return false;
    if (!vk->record.commands) d.sets = vk->stream.open->descriptors;
    if (!vk->caps.addresses && !gni_vk_bind_buffers(vk, &d)) return false;

    gni_vk_range ranges[GNI_VK_MAX_USES];
    int n = 0;
    for (int i = 0; i < n_use; i++)
        if (uses[i].bytes)
            ranges[n++] =
                gni_vk_range_of(uses[i].mem, uses[i].offset, uses[i].bytes, uses[i].write);
    gni_vk_order(vk, d.commands, ranges, n, false);

    VkPipeline *bound = vk->record.commands ? &vk->record.bound : &vk->stream.bound;
    if (*bound != p->pipeline)
        vk->f.vkCmdBindPipeline(d.commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
    *bound = p->pipeline;
    if (vk->caps.addresses) {
        uint64_t push[2];
        push[0] = d.block->address + d.at;
        push[1] = 0;
        vk->f.vkCmdPushConstants(d.commands, vk->compiler.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                 sizeof push, push);
    }
    bool timed = gni_vk_timed_begin(vk, p->name);
    vk->f.vkCmdDispatch(d.commands, gx, gy, gz);
    if (timed) gni_vk_timed_end(vk);
    for (int i = 0; i < n_use; i++) gni_vk_touch(vk, uses[i].mem);
    return gni_vk_recorded(vk);
}

#endif // GNI_VULKAN
// ------------------------------------------------------------------------------------------
// >>fft_vk
// The FFT on the GPU: tables, the passes that a length is cut into, Bluestein's convolution for the other
// lengths. From outside: gni_fft_vk_supports, gni_fft_vk, gni_fft_vk_free.

#if GNI_VULKAN

// Flags and parameter words of fft.comp.
enum {
    GNI_FV_REAL_IN = 1,
    GNI_FV_HALF_IN = 2,
    GNI_FV_REAL_OUT = 4,
    GNI_FV_FACTOR_IN = 8,
    GNI_FV_FACTOR_OUT = 16,
    GNI_FV_TWIST = 32,
    GNI_FV_SWAP_IN = 64,
    GNI_FV_SWAP_IN_2 = 128,
    GNI_FV_SWAP_OUT = 256,
    GNI_FV_SWAP_OUT_2 = 512,
    GNI_FV_ACROSS_IN = 1024,
    GNI_FV_ACROSS_OUT = 2048,
    GNI_FV_RADIX = 16, // first word of the radices,
    GNI_FV_DIM = 22,   // and of the dimensions
    GNI_FV_DIM_WORDS = 5,
    GNI_FV_MAX_DIMS = GN_MAX_RANK + 2,
    GNI_FV_STAGES = 6,
    GNI_FV_THREADS = 256
};

#define GNI_FV_TABLE_BYTES ((uint64_t)64 << 20) // of all tables; more only while one call needs them

typedef enum gni_fv_kind {
    GNI_FV_ROOTS,  // exp(-2 pi i k / n), k < n
    GNI_FV_HALVES, // the same for large n: its low bits' factors, then those of the high bits
    GNI_FV_CHIRP,  // exp(-pi i k^2 / n), k < n
    GNI_FV_KERNEL  // the spectrum of the chirp's conjugate in a convolution of `size` points, over size
} gni_fv_kind;

typedef struct gni_fv_table {
    struct gni_fv_table *next;
    gni_fv_kind kind;
    int64_t n, size; // numbers that it has
    uint64_t used;
    gni_vk_mem mem;
} gni_fv_table;

typedef struct gni_fft_vk_state {
    gni_fv_table *tables;
    uint64_t bytes, call;
} gni_fft_vk_state;

// One end of a transform: where its points are for each line of the batch.
typedef struct gni_fv_end {
    const gni_vk_mem *mem;
    uint64_t bytes;
    int64_t offset, step, count; // numbers beyond `count` are zero, or not written
    int64_t stride[GN_MAX_RANK];
    uint32_t flags;
    const gni_fv_table *factor;
} gni_fv_end;

typedef struct gni_fv_pass {
    int64_t n;    // points
    int64_t full; // of the whole transform
    int64_t span, out_span, in_step, out_step;
    int rank;
    int64_t dim[GNI_FV_MAX_DIMS][GNI_FV_DIM_WORDS]; // size, in, out, unit, out unit
    const gni_fv_table *halves;
} gni_fv_pass;

static int gni_fv_low_bits(int64_t n) {
    int bits = 1;
    while (((int64_t)1 << 2 * bits) < n) bits++;
    return bits;
}

static int64_t gni_fv_table_size(gni_fv_kind kind, int64_t n, int64_t size) {
    if (kind == GNI_FV_KERNEL) return size;
    if (kind != GNI_FV_HALVES) return n;
    int low = gni_fv_low_bits(n);
    return ((int64_t)1 << low) + ((n - 1) >> low) + 1;
}

// exp(-pi i j^2 / n) for j = 0, 1, ...: j^2 mod 2 n is kept in `square`.
static void gni_fv_chirp_next(int64_t n, int64_t j, uint64_t *square, double *re, double *im) {
    gni_ft_turn((int64_t)*square, 2 * n, re, im);
    *square = (*square + 2 * (uint64_t)j + 1) % (2 * (uint64_t)n);
}

static bool gni_fv_fill_kernel(gn_context *g, int64_t n, int64_t size, float *out) {
    gni_ft_plan *p = gni_ft_plan_make(g, GNI_FT_ROWS, size, true);
    double *time = (double *)gni_calloc(g, (size_t)size * 16), *freq = (double *)gni_alloc(g, (size_t)size * 16);
    char *work = p != NULL ? (char *)gni_alloc(g, p->shared + p->each) : NULL;
    bool ok = time != NULL && freq != NULL && work != NULL;
    uint64_t square = 0;
    for (int64_t j = 0; j < n && ok; j++) {
        double re, im;
        int64_t mirror = j == 0 ? 0 : size - j;
        gni_fv_chirp_next(n, j, &square, &re, &im);
        time[2 * j] = time[2 * mirror] = re;
        time[2 * j + 1] = time[2 * mirror + 1] = -im;
    }
    if (ok) gni_ft_transform(p, NULL, time, freq, 1.0 / (double)size, false, work);
    for (int64_t i = 0; i < 2 * size && ok; i++) out[i] = (float)freq[i];
    gni_free(g, work);
    gni_free(g, freq);
    gni_free(g, time);
    gni_ft_plan_free(g, p);
    return ok;
}

static bool gni_fv_fill(gn_context *g, const gni_fv_table *t, float *out) {
    uint64_t square = 0;
    int low = gni_fv_low_bits(t->n);
    if (t->kind == GNI_FV_KERNEL) return gni_fv_fill_kernel(g, t->n, t->size, out);
    for (int64_t i = 0; i < t->size; i++) {
        double re, im;
        int64_t first = (int64_t)1 << low;
        if (t->kind == GNI_FV_CHIRP) gni_fv_chirp_next(t->n, i, &square, &re, &im);
        else gni_ft_turn(t->kind == GNI_FV_ROOTS || i < first ? i : (i - first) << low, t->n, &re, &im);
        out[2 * i] = (float)re;
        out[2 * i + 1] = (float)im;
    }
    return true;
}

static void gni_fv_table_free(gn_context *g, gni_fv_table *t) {
    gni_vk_free(g->vk, &t->mem);
    gni_free(g, t);
}

static void gni_fft_vk_free(gn_context *g) {
    gni_fft_vk_state *s = g->fft_vk;
    if (s == NULL) return;
    while (s->tables != NULL) {
        gni_fv_table *t = s->tables;
        s->tables = t->next;
        gni_fv_table_free(g, t);
    }
    gni_free(g, s);
    g->fft_vk = NULL;
}

// Drops the tables that have not been used for longest.
static void gni_fv_evict(gn_context *g, uint64_t room) {
    gni_fft_vk_state *s = g->fft_vk;
    while (s->bytes + room > GNI_FV_TABLE_BYTES) {
        gni_fv_table **oldest = NULL;
        for (gni_fv_table **at = &s->tables; *at != NULL; at = &(*at)->next)
            if ((*at)->used != s->call && (oldest == NULL || (*at)->used < (*oldest)->used)) oldest = at;
        if (oldest == NULL) return;
        gni_fv_table *t = *oldest;
        *oldest = t->next;
        s->bytes -= t->mem.size;
        gni_fv_table_free(g, t);
    }
}

static const gni_fv_table *gni_fv_table_get(gn_context *g, gni_fv_kind kind, int64_t n, int64_t size) {
    gni_fft_vk_state *s = g->fft_vk;
    size = gni_fv_table_size(kind, n, size);
    for (gni_fv_table *t = s->tables; t != NULL; t = t->next)
        if (t->kind == kind && t->n == n && t->size == size) {
            t->used = s->call;
            return t;
        }
    gni_fv_table *t = (gni_fv_table *)gni_calloc(g, sizeof(gni_fv_table));
    float *data = (float *)gni_alloc(g, (size_t)size * 8 + 16);
    if (t != NULL) {
        t->kind = kind;
        t->n = n;
        t->size = size;
        t->used = s->call;
        gni_fv_evict(g, (uint64_t)size * 8);
    }
    bool ok = t != NULL && data != NULL && gni_fv_fill(g, t, data) &&
              gni_vk_alloc(g->vk, GNI_MAX((uint64_t)size * 8, 16), &t->mem);
    if (ok && !gni_vk_upload(g->vk, &t->mem, 0, data, (uint64_t)size * 8)) {
        gni_vk_free(g->vk, &t->mem);
        ok = false;
    }
    gni_free(g, data);
    if (!ok) {
        gni_free(g, t);
        return NULL;
    }
    s->bytes += t->mem.size;
    t->next = s->tables;
    s->tables = t;
    return t;
}

// ---- cutting a length into passes

// Points that a workgroup holds.
static int64_t gni_fv_points(const gni_vk *vk) {
    return vk->caps.shared_bytes >= 49152 ? 3072 : vk->caps.shared_bytes >= 32768 ? 2048 : 1024;
}

// At most three parts of at most `points` each, as equal as can be. Returns how many, 0 if there are none.
static int gni_fv_cut(int64_t n, int64_t points, int64_t *part) {
    int64_t divisor[512], best = INT64_MAX;
    int radix[64], count = 0, parts = 0;
    if (gni_ft_factor(n, 16, radix) == 0 && n > 1) return 0;
    if (n <= points) {
        part[0] = n;
        return 1;
    }
    for (int64_t d = 2; d <= points && count < GNI_COUNT(divisor); d++)
        if (n % d == 0) divisor[count++] = d;
    for (int i = 0; i < count; i++) {
        int64_t rest = n / divisor[i], most = GNI_MAX(divisor[i], rest);
        if (rest > points || most >= best) continue;
        best = most;
        part[0] = divisor[i];
        part[1] = rest;
        parts = 2;
    }
    // Few lines in a workgroup read memory in crumbs; a third pass costs less.
    if (parts == 2 && best <= points / 4) return 2;
    int64_t three = INT64_MAX;
    for (int i = 0; i < count; i++)
        for (int k = i; k < count; k++) {
            if (n / divisor[i] % divisor[k] != 0) continue;
            int64_t rest = n / divisor[i] / divisor[k], most = GNI_MAX(divisor[k], rest);
            if (rest < divisor[k] || most > points || most >= three || most >= best) continue;
            three = most;
            part[0] = divisor[k];
            part[1] = divisor[i];
            part[2] = rest;
            parts = 3;
        }
    return parts;
}

// The length of the convolution for a transform of n points.
static int64_t gni_fv_convolution(int64_t n) {
    int64_t m = 64, best;
    while (m < 2 * n - 1) m *= 2;
    best = m;
    for (int64_t odd = 3; odd <= 15; odd += 2) {
        int64_t try_m = odd;
        if (odd == 11 || odd == 13) continue;
        while (try_m < 2 * n - 1) try_m *= 2;
        if (try_m % 16 == 0 && (double)try_m * 1.1 < (double)best) best = try_m;
    }
    return best;
}

// ---- one pass

// For powers of two one of their own once it is compiled, until then and for the others the one that does
// all; they round alike.
static gni_vk_pipeline *gni_fv_pipeline(gni_vk *vk, const uint32_t *param, int stages) {
    gni_vk_kernel kernel;
    const int64_t points = gni_fv_points(vk), n = param[15];
    memset(&kernel, 0, sizeof kernel);
    if ((n & (n - 1)) == 0 && n >= 64 && stages <= 3) {
        kernel.module = points == 3072 ? GNI_MODULE_fft_two_3k : points == 2048 ? GNI_MODULE_fft_two_2k : GNI_MODULE_fft_two_1k;
        kernel.n_spec = 5;
        for (int i = 0; i < 3; i++) kernel.spec[i] = param[GNI_FV_RADIX + i];
        kernel.spec[3] = param[14];
        kernel.spec[4] = param[13];
        gni_vk_pipeline *p = gni_vk_pipeline_get(vk, &kernel, GNI_VK_ASYNC);
        if (p != NULL) return p;
        memset(&kernel, 0, sizeof kernel);
    }
    kernel.module = points == 3072 ? GNI_MODULE_fft_any_3k : points == 2048 ? GNI_MODULE_fft_any_2k : GNI_MODULE_fft_any_1k;
    return gni_vk_pipeline_get(vk, &kernel, GNI_VK_WAIT);
}

static bool gni_fv_dispatch(gn_context *g, const gni_fv_pass *p, const gni_fv_end *in, const gni_fv_end *out,
                            uint32_t flags, double scale) {
    gni_vk *vk = g->vk;
    gni_vk_use use[6];
    uint32_t param[GNI_FV_DIM + GNI_FV_MAX_DIMS * GNI_FV_DIM_WORDS];
    const gni_fv_table *roots = gni_fv_table_get(g, GNI_FV_ROOTS, p->n, 0);
    int radix[64], stages = gni_ft_factor(p->n, 16, radix);
    if (roots == NULL || stages > GNI_FV_STAGES) return false;
    int64_t lines = 1, points = gni_fv_points(vk);
    memset(use, 0, sizeof use);
    memset(param, 0, sizeof param);
    for (int i = 0; i < p->rank; i++) {
        lines *= p->dim[i][0];
        for (int k = 0; k < GNI_FV_DIM_WORDS; k++)
            param[GNI_FV_DIM + GNI_FV_DIM_WORDS * i + k] = (uint32_t)p->dim[i][k];
    }
    int64_t each = GNI_MIN(GNI_MAX(points / p->n, 1), lines);
    while (each > 1 && (each & (each - 1)) != 0) each &= each - 1; // the power of two below
    for (int i = 0; i < GNI_FV_STAGES; i++) param[GNI_FV_RADIX + i] = i < stages ? (uint32_t)radix[i] : 1;
    param[0] = (uint32_t)lines;
    param[1] = (uint32_t)in->offset;
    param[2] = (uint32_t)p->in_step;
    param[3] = (uint32_t)GNI_MIN(in->count, UINT32_MAX);
    param[4] = (uint32_t)out->offset;
    param[5] = (uint32_t)p->out_step;
    param[6] = (uint32_t)GNI_MIN(out->count, UINT32_MAX);
    float s = (float)scale;
    memcpy(&param[7], &s, 4);
    param[8] = (uint32_t)p->span;
    param[9] = (uint32_t)p->out_span;
    param[10] = p->halves != NULL ? (uint32_t)gni_fv_low_bits(p->halves->n) : 0;
    param[11] = (uint32_t)p->full;
    param[12] = (uint32_t)p->rank;
    param[13] = flags;
    param[14] = (uint32_t)each;
    param[15] = (uint32_t)p->n;
    for (int i = 2; i < 6; i++) {
        const gni_fv_table *t = i == 3 ? p->halves : i == 4 ? in->factor : i == 5 ? out->factor : NULL;
        use[i].mem = t != NULL ? &t->mem : &roots->mem;
        use[i].bytes = (uint64_t)(t != NULL ? t->size : roots->size) * 8;
    }
    use[0].mem = in->mem;
    use[0].bytes = in->bytes;
    use[1].mem = out->mem;
    use[1].bytes = out->bytes;
    use[1].write = true;
    int64_t groups = (lines + each - 1) / each, x = GNI_MIN(groups, (int64_t)vk->caps.max_groups[0]);
    int64_t y = (groups + x - 1) / x;
    if (lines > INT32_MAX || y > (int64_t)vk->caps.max_groups[1]) return false;
    return gni_vk_dispatch(vk, gni_fv_pipeline(vk, param, stages), use, 6, param,
                           (uint32_t)((GNI_FV_DIM + p->rank * GNI_FV_DIM_WORDS) * 4), (uint32_t)x, (uint32_t)y, 1);
}

static void gni_fv_dim(gni_fv_pass *p, int64_t size, int64_t in, int64_t out, int64_t unit, int64_t out_unit) {
    int64_t *d = p->dim[p->rank++];
    d[0] = size, d[1] = in, d[2] = out, d[3] = unit, d[4] = out_unit;
}

static gni_fv_end gni_fv_middle(const gni_vk_mem *mem, uint64_t bytes) {
    gni_fv_end e;
    memset(&e, 0, sizeof e);
    e.mem = mem;
    e.bytes = bytes;
    e.count = INT64_MAX;
    return e;
}

// The dimensions of the batch: NULL means rows of n numbers that follow each other.
static void gni_fv_batch(gni_fv_pass *p, const gni_fft *f, int64_t n, const gni_fv_end *in, const gni_fv_end *out) {
    int64_t rest = n * gni_product(f->dim, f->rank);
    for (int i = 0; i < f->rank; i++) {
        rest /= GNI_MAX(f->dim[i], 1);
        if (f->dim[i] != 1) gni_fv_dim(p, f->dim[i], in ? in->stride[i] : rest, out ? out->stride[i] : rest, 0, 0);
    }
}

// One pass: the dimension whose lines lie next to each other comes first when the points do not.
static bool gni_fv_single(gn_context *g, const gni_fft *f, int64_t n, const gni_fv_end *in, const gni_fv_end *out,
                          double scale) {
    gni_fv_pass p;
    uint32_t flags = in->flags | out->flags;
    memset(&p, 0, sizeof p);
    p.n = n;
    p.full = f->n;
    p.span = p.out_span = 1;
    p.in_step = in->step;
    p.out_step = out->step;
    gni_fv_batch(&p, f, n, in, out);
    for (int i = 1; i < p.rank; i++) {
        if (in->step == 1 || p.dim[i][1] != 1) continue;
        int64_t old[GNI_FV_DIM_WORDS];
        memcpy(old, p.dim[0], sizeof old);
        memcpy(p.dim[0], p.dim[i], sizeof old);
        memcpy(p.dim[i], old, sizeof old);
        break;
    }
    if (p.rank > 0 && in->step != 1 && p.dim[0][1] == 1) flags |= GNI_FV_ACROSS_IN;
    if (p.rank > 0 && out->step != 1 && p.dim[0][2] == 1) flags |= GNI_FV_ACROSS_OUT;
    return gni_fv_dispatch(g, &p, in, out, flags, scale);
}

static bool gni_fv_several(gn_context *g, const gni_fft *f, int64_t n, const int64_t *part, int parts,
                           const gni_fv_end *in, const gni_fv_end *out, double scale, const gni_vk_mem *temporary) {
    const int64_t a = part[0], m = n / a;
    gni_fv_pass p;
    gni_fv_end middle = gni_fv_middle(temporary, (uint64_t)(n * gni_product(f->dim, f->rank)) * 8);
    memset(&p, 0, sizeof p);
    p.n = a;
    p.full = f->n;
    p.span = m;
    p.in_step = m * in->step;
    p.out_step = m;
    p.halves = gni_fv_table_get(g, GNI_FV_HALVES, n, 0);
    gni_fv_dim(&p, m, in->flags & GNI_FV_HALF_IN ? 0 : in->step, 1, 1, 0);
    gni_fv_batch(&p, f, n, in, NULL);
    if (in->flags & GNI_FV_HALF_IN) p.in_step = in->step;
    uint32_t across = GNI_FV_ACROSS_IN | GNI_FV_ACROSS_OUT | GNI_FV_TWIST;
    if (p.halves == NULL || !gni_fv_dispatch(g, &p, in, &middle, in->flags | across, 1.0)) return false;
    int64_t b = 1, c = m;
    if (parts == 3) { // in place
        b = part[1];
        c = part[2];
        memset(&p, 0, sizeof p);
        p.n = b;
        p.full = f->n;
        p.in_step = p.out_step = c;
        p.halves = gni_fv_table_get(g, GNI_FV_HALVES, m, 0);
        gni_fv_dim(&p, c, 1, 1, 1, 0);
        gni_fv_dim(&p, a, m, m, 0, 0);
        gni_fv_batch(&p, f, n, NULL, NULL);
        if (p.halves == NULL || !gni_fv_dispatch(g, &p, &middle, &middle, across, 1.0)) return false;
    }
    memset(&p, 0, sizeof p);
    p.n = c;
    p.full = f->n;
    p.in_step = 1;
    p.out_step = a * b * out->step;
    p.out_span = a * b;
    gni_fv_dim(&p, a, m, out->step, 0, 1);
    if (b > 1) gni_fv_dim(&p, b, c, a * out->step, 0, a);
    gni_fv_batch(&p, f, n, NULL, out);
    return gni_fv_dispatch(g, &p, &middle, out, out->flags | GNI_FV_ACROSS_OUT, scale);
}

static bool gni_fv_transform(gn_context *g, const gni_fft *f, int64_t n, const gni_fv_end *in, const gni_fv_end *out,
                             double scale) {
    int64_t part[3];
    gni_vk_mem temporary;
    int parts = gni_fv_cut(n, gni_fv_points(g->vk), part);
    if (parts == 1) return gni_fv_single(g, f, n, in, out, scale);
    if (parts == 0) return false;
    uint64_t bytes = (uint64_t)(n * gni_product(f->dim, f->rank)) * 8;
    if (!gni_vk_alloc(g->vk, bytes, &temporary)) {
        gni_fail_memory(g, "gn_fft: device memory", bytes);
        return false;
    }
    bool ok = gni_fv_several(g, f, n, part, parts, in, out, scale, &temporary);
    gni_vk_free(g->vk, &temporary);
    return ok;
}

// Bluestein: times the chirp, convolved with its conjugate, times the chirp.
static bool gni_fv_chirped(gn_context *g, const gni_fft *f, gni_fv_end *in, gni_fv_end *out) {
    const int64_t n = f->n, m = gni_fv_convolution(n);
    const gni_fv_table *chirp = gni_fv_table_get(g, GNI_FV_CHIRP, n, 0);
    const gni_fv_table *spectrum = gni_fv_table_get(g, GNI_FV_KERNEL, n, m);
    uint64_t bytes = (uint64_t)(m * gni_product(f->dim, f->rank)) * 8;
    gni_vk_mem temporary;
    if (chirp == NULL || spectrum == NULL || !gni_vk_alloc(g->vk, bytes, &temporary)) {
        gni_fail_memory(g, "gn_fft: device memory", bytes);
        return false;
    }
    gni_fv_end middle = gni_fv_middle(&temporary, bytes);
    int64_t rest = m * gni_product(f->dim, f->rank);
    for (int i = 0; i < f->rank; i++) {
        rest /= GNI_MAX(f->dim[i], 1);
        middle.stride[i] = rest;
    }
    middle.step = 1;
    middle.flags = GNI_FV_FACTOR_OUT;
    middle.factor = spectrum;
    in->flags |= GNI_FV_FACTOR_IN;
    in->factor = chirp;
    bool ok = gni_fv_transform(g, f, m, in, &middle, 1.0);
    middle.flags = GNI_FV_SWAP_IN;
    middle.factor = NULL;
    out->flags = (out->flags & ~(uint32_t)GNI_FV_SWAP_OUT) | GNI_FV_SWAP_OUT | GNI_FV_FACTOR_OUT |
                 (f->inverse ? GNI_FV_SWAP_OUT_2 : 0);
    out->factor = chirp;
    ok = ok && gni_fv_transform(g, f, m, &middle, out, f->scale);
    gni_vk_free(g->vk, &temporary);
    return ok;
}

static bool gni_fft_vk_supports(gn_context *g, const gni_fft *f) {
    const gni_vk *vk = g->vk;
    int64_t part[3], batch = gni_product(f->dim, f->rank), points = gni_fv_points(vk);
    if (vk->caps.shared_bytes < 16384 || vk->caps.max_invocations < GNI_FV_THREADS || vk->caps.max_buffers < 6)
        return false;
    if (f->in.dtype != GN_F32 && f->in.dtype != GN_C64) return false;
    int64_t n = gni_fv_cut(f->n, points, part) > 0 ? f->n : gni_fv_convolution(f->n);
    // Kernels count numbers with 32 bits.
    if (f->n > INT32_MAX / 4 || n > INT32_MAX / 2 || batch > INT32_MAX / n || gni_fv_cut(n, points, part) == 0) return false;
    const gni_operand *both[2];
    both[0] = &f->in;
    both[1] = &f->out;
    for (int i = 0; i < 2; i++) {
        if (both[i]->buf == NULL || both[i]->buf->bytes / gn_dtype_size(both[i]->dtype) > INT32_MAX) return false;
        if (!vk->caps.addresses && both[i]->buf->bytes > vk->caps.max_storage_range) return false;
    }
    return vk->caps.addresses || (uint64_t)(n * batch) * 8 <= vk->caps.max_storage_range;
}

// Operands are on the GPU. Real transforms are done on complex numbers.
static bool gni_fft_vk(gn_context *g, const gni_fft *f) {
    gni_fv_end in, out;
    int64_t part[3];
    if (g->fft_vk == NULL) g->fft_vk = (gni_fft_vk_state *)gni_calloc(g, sizeof(gni_fft_vk_state));
    if (g->fft_vk == NULL) {
        gni_fail_memory(g, "gn_fft", sizeof(gni_fft_vk_state));
        return false;
    }
    g->fft_vk->call++;
    if (gni_product(f->dim, f->rank) == 0) return true;
    in = gni_fv_middle(&f->in.buf->device, f->in.buf->bytes);
    out = gni_fv_middle(&f->out.buf->device, f->out.buf->bytes);
    in.offset = f->in.offset;
    in.step = f->in_step;
    in.count = f->n_in;
    out.offset = f->out.offset;
    out.step = f->out_step;
    out.count = f->kind == GNI_FFT_R2C ? f->n / 2 + 1 : f->n;
    memcpy(in.stride, f->in.stride, sizeof in.stride);
    memcpy(out.stride, f->out.stride, sizeof out.stride);
    if (f->in.dtype == GN_F32) in.flags |= GNI_FV_REAL_IN;
    if (f->kind == GNI_FFT_C2R) in.flags |= GNI_FV_HALF_IN, out.flags |= GNI_FV_REAL_OUT;
    if (f->inverse) in.flags |= GNI_FV_SWAP_IN;
    if (gni_fv_cut(f->n, gni_fv_points(g->vk), part) == 0) return gni_fv_chirped(g, f, &in, &out);
    if (f->inverse) out.flags |= GNI_FV_SWAP_OUT;
    return gni_fv_transform(g, f, f->n, &in, &out, f->scale);
}

#else

static void gni_fft_vk_free(gn_context *g) { GNI_UNUSED(g); }

#endif // GNI_VULKAN
// ------------------------------------------------------------------------------------------
// >>vk_ops
// Jobs on the Vulkan device: which kernel of tools/shaders does one, in how many pieces, with which
// specialisation constants and parameters. From outside: gni_vulkan_api.

#if !GNI_VULKAN

static bool gni_vk_supports(gn_context *g, gni_job_kind kind, const void *job) {
    GNI_UNUSED(g);
    GNI_UNUSED(kind);
    GNI_UNUSED(job);
    return false;
}

static bool gni_vk_run(gn_context *g, gni_job_kind kind, const void *job) {
    GNI_UNUSED(kind);
    GNI_UNUSED(job);
    gni_fail(g, GN_ERROR_UNSUPPORTED, "compiled without Vulkan");
    return false;
}

#else // GNI_VULKAN

enum {
    GNI_VKO_KERNEL = 32, // words of program.glsl's parameters
    GNI_VKO_DIM = 48,
    GNI_VKO_OP = 72,
    GNI_VKO_CONST = 180,
    GNI_VKO_PARAMS = 196,
    GNI_VKO_THREADS = 256,    // of a workgroup
    GNI_VKO_HITS = 256,       // programs remembered
    GNI_VKO_COUNTERS = 1 << 14 // words
};

// How a kernel finds the elements of an operand: GN_K_* of program.glsl.
typedef enum gni_vko_kind {
    GNI_VKO_SCALAR,
    GNI_VKO_VEC,
    GNI_VKO_FLAT,
    GNI_VKO_ROWVEC,
    GNI_VKO_ROWREP,
    GNI_VKO_ROWSTEP,
    GNI_VKO_ANY
} gni_vko_kind;

// What this room remembers of a device. Zeroed memory is its first state; nothing in it needs freeing
// but itself.
typedef struct gni_vk_ops {
    uint64_t seen[GNI_VKO_HITS]; // hashes of specialised kernels that were asked for
    gni_vk_mem counters;         // zeros; kernels leave zeros behind
    bool has_counters;
    uint32_t next_counter;
} gni_vk_ops;

// A dispatch being put together.
typedef struct gni_vko_call {
    gni_vk *vk;
    gni_vk_use use[GNI_VK_MAX_USES];
    int n_use;
    uint32_t param[GNI_VKO_PARAMS];
    uint32_t n_param;
    gni_vk_kernel special, generic;
    gni_vk_mem scratch[2];
    int n_scratch;
} gni_vko_call;

#ifdef GNI_VK_HAS_OPS
static gni_vk_ops *gni_vko_state(gni_vk *vk) {
    if (!vk->ops) vk->ops = gni_calloc(vk->g, sizeof(gni_vk_ops));
    return (gni_vk_ops *)vk->ops;
}
#else
static gni_vk_ops *gni_vko_state(gni_vk *vk) {
    GNI_UNUSED(vk);
    return NULL;
}
#endif

static int64_t gni_vko_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int gni_vko_log2_up(int64_t x) {
    int n = 0;
    while (((int64_t)1 << n) < x) n++;
    return n;
}

// ---- operands

// The range of `o` that `rank` dimensions reach, as a buffer argument, and where in it index 0 is, in
// elements. False when that is more than one dispatch can address.
static bool gni_vko_reach(const gni_vk *vk, const gni_operand *o, const int64_t *dim, const int64_t *stride, int rank,
                          gni_vk_use *use, uint32_t *base) {
    int64_t size = (int64_t)gn_dtype_size(o->dtype), low = o->offset, high = o->offset;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dim[i] == 0) empty = true;
        int64_t step = (dim[i] - 1) * stride[i];
        if (dim[i] > 0 && step < 0) low += step;
        if (dim[i] > 0 && step > 0) high += step;
    }
    int64_t align = vk->caps.addresses ? 16 : 256;
    int64_t start = low * size / align * align, end = (high + 1) * size;
    use->mem = &o->buf->device;
    use->offset = (uint64_t)start;
    use->bytes = (uint64_t)(end - start);
    use->write = false;
    if (empty || use->offset + use->bytes > use->mem->size) { // nothing is read
        use->offset = 0;
        use->bytes = GNI_MIN(use->mem->size, 16);
        *base = 0;
        return empty;
    }
    *base = (uint32_t)((o->offset * size - start) / size);
    return (end - start) / GNI_MIN(size, 4) < INT32_MAX && (vk->caps.addresses || use->bytes <= vk->caps.max_storage_range);
}

// Extent, multiplier and shift: i / d == (mulhigh(i, multiplier) + i) >> shift for i < 2^31.
static void gni_vko_divider(int64_t d, uint32_t *out) {
    d = GNI_MAX(d, 1); // of an empty dimension nothing is looked up
    int s = gni_vko_log2_up(d);
    out[0] = (uint32_t)d;
    out[1] = (uint32_t)((((((uint64_t)1 << s) - (uint64_t)d) << 32) / (uint64_t)d) + 1);
    out[2] = (uint32_t)s;
}

// The index spaces of program.glsl: dimension i of the kernel is dimension from[i] of the job.
typedef struct gni_vko_space {
    int vectors, scalars;
    int64_t dim[GN_MAX_RANK];
    int from[GN_MAX_RANK];
} gni_vko_space;

static int64_t gni_vko_stride(const gni_vko_space *s, const gni_operand *o, int i) {
    return s->from[i] < 0 ? 0 : o->stride[s->from[i]];
}

static bool gni_vko_even_steps(const gni_vko_space *s, const gni_operand *o, int first, int last, int64_t group) {
    for (int i = first; i < last; i++)
        if (s->dim[i] > 1 && gni_vko_stride(s, o, i) % group != 0) return false;
    return true;
}

static gni_vko_kind gni_vko_kind_of(const gni_vko_space *s, const gni_operand *o, uint32_t base, int64_t group,
                                    bool output) {
    bool still = true, flat = true;
    int64_t step = 1;
    for (int i = s->vectors - 1; i >= 0; i--) {
        int64_t stride = gni_vko_stride(s, o, i);
        if (s->dim[i] == 1) continue;
        still = still && stride == 0;
        flat = flat && stride == step;
        step *= s->dim[i];
    }
    if (still && !output) return GNI_VKO_SCALAR;
    int inner = s->vectors - 1;
    // Groups of short elements are not written as a whole by wide kernels.
    bool groups = base % group == 0 && !(output && group == 2 && gn_dtype_size(o->dtype) < 4) &&
                  gni_vko_even_steps(s, o, s->vectors, s->vectors + s->scalars, group);
    if (flat) return groups ? GNI_VKO_VEC : GNI_VKO_FLAT;
    if (s->dim[inner] % group != 0) return GNI_VKO_ANY;
    int64_t stride = gni_vko_stride(s, o, inner);
    if (stride == 0 && !output) return GNI_VKO_ROWREP;
    groups = groups && gni_vko_even_steps(s, o, 0, inner, group);
    return stride == 1 && groups ? GNI_VKO_ROWVEC : GNI_VKO_ROWSTEP;
}

static void gni_vko_put_space(gni_vko_call *c, const gni_vko_space *s) {
    for (int i = 0; i < s->vectors + s->scalars; i++) gni_vko_divider(s->dim[i], &c->param[GNI_VKO_DIM + 3 * i]);
}

// Adds `o` as the next buffer argument and as operand `slot` (0 to 7 inputs, from 8 on outputs).
static bool gni_vko_put_operand(gni_vko_call *c, const gni_vko_space *s, const gni_operand *o, int slot, int64_t group,
                                gni_vko_kind *kind) {
    int64_t stride[GN_MAX_RANK];
    int rank = s->vectors + s->scalars;
    uint32_t base;
    for (int i = 0; i < rank; i++) stride[i] = gni_vko_stride(s, o, i);
    gni_vk_use *use = &c->use[c->n_use];
    if (!gni_vko_reach(c->vk, o, s->dim, stride, rank, use, &base)) return false;
    use->write = slot >= GNI_MAX_INPUTS;
    c->n_use++;
    uint32_t *p = &c->param[GNI_VKO_OP + 9 * slot];
    p[0] = base;
    for (int i = 0; i < rank; i++) p[1 + i] = (uint32_t)stride[i];
    *kind = gni_vko_kind_of(s, o, base, group, slot >= GNI_MAX_INPUTS);
    return true;
}

// ---- programs

// Instructions that wide.glsl has.
static bool gni_vko_wide_has(uint32_t code) {
    uint32_t op = code / 3u, domain = code % 3u;
    if (op >= GNI_OP_WHERE && op != GNI_OP_FMA) return true;
    if (domain == GNI_U) return false;
    if (domain == GNI_I) return true;
    switch (op) {
    case GNI_OP_SQRT:
    case GNI_OP_RSQRT:
    case GNI_OP_RECIP:
    case GNI_OP_DIV: return true;
    case GNI_OP_FLOOR_DIV:
    case GNI_OP_MOD:
    case GNI_OP_POW:
    case GNI_OP_ATAN2:
    case GNI_OP_HYPOT: return false;
    default: return op >= GNI_OP_NEG;
    }
}

static bool gni_vko_is_long(gn_dtype t) { return t == GN_F64 || t == GN_I64 || t == GN_C64; }

// Eight-byte elements that only move, or are filled in.
static bool gni_vko_is_copy64(const gni_program *p) {
    if (p->n_insn > 0 || p->n_out == 0) return false;
    for (int i = 0; i < p->n_in; i++)
        if (!gni_vko_is_long(p->in_dtype[i])) return false;
    for (int i = 0; i < p->n_out; i++) {
        if (!gni_vko_is_long(p->out_dtype[i])) return false;
        if (p->out_reg[i] < p->n_in && p->in_dtype[p->out_reg[i]] != p->out_dtype[i]) return false;
    }
    return true;
}

static bool gni_vko_program_ok(const gni_vk *vk, const gni_program *p, int extra_buffers) {
    if ((uint32_t)(p->n_in + extra_buffers) > vk->caps.max_buffers) return false;
    if (p->wide) {
        if (!vk->caps.int64 || !vk->caps.float64) return false;
        for (int i = 0; i < p->n_insn; i++)
            if (!gni_vko_wide_has(GNI_INSN_CODE(p->insn[i]))) return false;
    }
    for (int i = 0; i < p->n_in; i++)
        if (p->in_dtype[i] >= GN_C64 || (!p->wide && gni_vko_is_long(p->in_dtype[i]))) return false;
    for (int i = 0; i < p->n_out; i++)
        if (p->out_dtype[i] >= GN_C64 || (!p->wide && gni_vko_is_long(p->out_dtype[i]))) return false;
    return true;
}

static uint32_t gni_vko_reg(const gni_program *p, uint32_t r) {
    if (r < (uint32_t)p->n_in) return r;
    if (r < (uint32_t)(p->n_in + p->n_const)) return r - (uint32_t)p->n_in + 8u;
    return r - (uint32_t)(p->n_in + p->n_const) + 16u;
}

// Words 0 to 29 and the constants.
static void gni_vko_put_program(gni_vko_call *c, const gni_program *p, const gni_vko_space *s,
                                const gni_vko_kind *in_kind, const gni_vko_kind *out_kind) {
    uint32_t *w = c->param;
    bool coords = false;
    for (int i = 0; i < p->n_in; i++) {
        w[1] |= (uint32_t)p->in_dtype[i] << (4 * i);
        w[2] |= (uint32_t)in_kind[i] << (4 * i);
        coords = coords || in_kind[i] >= GNI_VKO_ROWVEC;
    }
    for (int i = 0; i < p->n_out; i++) {
        w[3] |= (uint32_t)p->out_dtype[i] << (4 * i) | (uint32_t)out_kind[i] << (16 + 4 * i);
        w[4] |= gni_vko_reg(p, (uint32_t)p->out_reg[i]) << (8 * i);
        coords = coords || out_kind[i] >= GNI_VKO_ROWVEC;
    }
    w[0] = (uint32_t)p->n_in | (uint32_t)p->n_out << 4 | (uint32_t)p->n_insn << 8 | (uint32_t)s->vectors << 16 |
           (uint32_t)s->scalars << 20 | (uint32_t)coords << 24;
    for (int i = 0; i < p->n_insn; i++) {
        uint32_t insn = p->insn[i];
        w[6 + i] = GNI_INSN_CODE(insn) | gni_vko_reg(p, GNI_INSN_A(insn)) << 11 | gni_vko_reg(p, GNI_INSN_B(insn)) << 18 |
                   gni_vko_reg(p, GNI_INSN_C(insn)) << 25;
    }
    for (int i = 0; i < p->n_const; i++) {
        w[GNI_VKO_CONST + 2 * i] = (uint32_t)p->konst[i];
        w[GNI_VKO_CONST + 2 * i + 1] = (uint32_t)(p->konst[i] >> 32);
    }
    c->n_param = GNI_VKO_PARAMS;
}

// ---- kernels

static uint64_t gni_vko_hash(const gni_vk_kernel *k) {
    uint64_t h = 1469598103934665603u ^ (uint64_t)k->module;
    for (uint32_t i = 0; i < k->n_spec; i++) h = (h ^ k->spec[i]) * 1099511628211u;
    return h | 1u;
}

// Whether the kernel was asked for before. Programs that come once are not worth a pipeline.
static bool gni_vko_seen(gni_vk *vk, const gni_vk_kernel *k) {
    gni_vk_ops *ops = gni_vko_state(vk);
    if (!ops) return true;
    uint64_t h = gni_vko_hash(k), at = (h >> 32) % GNI_VKO_HITS;
    bool seen = ops->seen[at] == h;
    ops->seen[at] = h;
    return seen;
}

// The specialised pipeline if it is there, else the one that interprets; `special` may lack a module (-1).
static gni_vk_pipeline *gni_vko_pipeline(gni_vko_call *c) {
    gni_vk *vk = c->vk;
    uint32_t flags = vk->g->options.vulkan_flags;
    // Specialised modules come with addresses only.
    bool have = c->special.module >= 0 && vk->caps.addresses && !(flags & GN_VULKAN_NO_SPECIALIZATION);
    if (have && (flags & GN_VULKAN_NO_ASYNC_PIPELINES)) return gni_vk_pipeline_get(vk, &c->special, GNI_VK_WAIT);
    if (have) {
        gni_vk_mode mode = gni_vko_seen(vk, &c->special) ? GNI_VK_ASYNC : GNI_VK_PEEK;
        gni_vk_pipeline *p = gni_vk_pipeline_get(vk, &c->special, mode);
        if (p) return p;
    }
    return gni_vk_pipeline_get(vk, &c->generic, GNI_VK_WAIT);
}

static bool gni_vko_dispatch(gni_vko_call *c, gni_vk_pipeline *p, int64_t gx, int64_t gy, int64_t gz) {
    if (!p) return false;
    const uint32_t *most = c->vk->caps.max_groups;
    uint32_t x = (uint32_t)GNI_MIN(gx, (int64_t)most[0]), y = (uint32_t)gy, z = (uint32_t)GNI_MIN(gz, (int64_t)most[2]);
    return gni_vk_dispatch(c->vk, p, c->use, c->n_use, c->param, c->n_param * 4u, x, y, z);
}

// ---- scratch

static bool gni_vko_scratch(gni_vko_call *c, uint64_t bytes, const char *what) {
    gni_vk_mem *m = &c->scratch[c->n_scratch];
    if (!gni_vk_alloc(c->vk, bytes, m)) {
        gni_fail_memory(c->vk->g, what, bytes);
        return false;
    }
    c->n_scratch++;
    gni_vk_use *use = &c->use[c->n_use++];
    use->mem = m;
    use->offset = 0;
    use->bytes = bytes;
    use->write = true;
    return true;
}

static void gni_vko_drop_scratch(gni_vko_call *c) {
    for (int i = 0; i < c->n_scratch; i++) gni_vk_free(c->vk, &c->scratch[i]);
    c->n_scratch = 0;
}

// `count` words of zeros as the next buffer argument; `first` is the first one's index in it.
static bool gni_vko_counters(gni_vko_call *c, int64_t count, uint32_t *first) {
    gni_vk_ops *ops = gni_vko_state(c->vk);
    uint32_t words = (uint32_t)(count + 63) & ~63u;
    *first = 0;
    if (!ops || words > GNI_VKO_COUNTERS) {
        if (!gni_vko_scratch(c, (uint64_t)words * 4, "counters")) return false;
        return gni_vk_fill(c->vk, &c->scratch[c->n_scratch - 1], 0, (uint64_t)words * 4, 0);
    }
    if (!ops->has_counters) {
        if (!gni_vk_alloc(c->vk, GNI_VKO_COUNTERS * 4, &ops->counters)) {
            gni_fail_memory(c->vk->g, "counters", GNI_VKO_COUNTERS * 4);
            return false;
        }
        ops->has_counters = gni_vk_fill(c->vk, &ops->counters, 0, GNI_VKO_COUNTERS * 4, 0);
        if (!ops->has_counters) return false;
    }
    // Round and round, so that jobs near each other do not wait for each other's counters.
    if (ops->next_counter + words > GNI_VKO_COUNTERS) ops->next_counter = 0;
    gni_vk_use *use = &c->use[c->n_use++];
    use->mem = &ops->counters;
    use->offset = ops->next_counter * 4u;
    use->bytes = words * 4u;
    use->write = true;
    ops->next_counter += words;
    return true;
}

// ---- elementwise

static void gni_vko_set_modules(gni_vko_call *c, const gni_program *p, int special, int generic) {
    c->generic.module = generic;
    c->special.module = special;
    c->special.n_spec = 6u + (uint32_t)p->n_insn;
    memcpy(c->special.spec, c->param, c->special.n_spec * sizeof(uint32_t));
#ifdef GNI_VK_HAS_OPS
    c->special.first_code = 6;
#endif
}

static void gni_vko_map_modules(gni_vko_call *c, const gni_program *p, const gni_vko_space *s) {
    bool little = p->n_in <= 3 && p->n_out <= 1 && p->n_insn <= 8;
    int special = p->wide ? GNI_MODULE_map_wide_24 : little ? GNI_MODULE_map_8 : GNI_MODULE_map_24;
    int generic = p->wide ? GNI_MODULE_map_wide_generic : GNI_MODULE_map_generic;
    if (gni_vko_is_copy64(p)) {
        special = -1;
        generic = GNI_MODULE_map_copy64;
    }
    gni_vko_set_modules(c, p, s->vectors > 4 ? -1 : special, generic);
}

// One dispatch. `*fits` says whether it was possible; nothing is reported when it was not.
static bool gni_vko_map_once(gni_vk *vk, const gni_map *m, int64_t n, bool *fits) {
    gni_vko_call c;
    gni_vko_space s;
    gni_vko_kind in[GNI_MAX_INPUTS], out[GNI_MAX_OUTPUTS];
    const gni_program *p = &m->program;
    memset(&c, 0, sizeof c);
    memset(&s, 0, sizeof s);
    c.vk = vk;
    s.vectors = GNI_MAX(m->rank, 1);
    s.dim[0] = 1;
    s.from[0] = -1;
    for (int i = 0; i < m->rank; i++) {
        s.dim[i] = m->dim[i];
        s.from[i] = i;
    }
    int64_t group = p->wide || gni_vko_is_copy64(p) ? 2 : 4;
    *fits = n < INT32_MAX - 4 * GNI_VKO_THREADS;
    for (int i = 0; i < p->n_in && *fits; i++) *fits = gni_vko_put_operand(&c, &s, &m->in[i], i, group, &in[i]);
    for (int i = 0; i < p->n_out && *fits; i++)
        *fits = gni_vko_put_operand(&c, &s, &m->out[i], GNI_MAX_INPUTS + i, group, &out[i]);
    if (!*fits) return true;
    gni_vko_put_space(&c, &s);
    gni_vko_put_program(&c, p, &s, in, out);
    c.param[GNI_VKO_KERNEL] = (uint32_t)n;
    gni_vko_map_modules(&c, p, &s);
    int64_t groups = gni_vko_ceil(gni_vko_ceil(n, group), GNI_VKO_THREADS);
    return gni_vko_dispatch(&c, gni_vko_pipeline(&c), groups, 1, 1);
}

// The dimension whose halving helps most: the one over which an operand spreads widest.
static int gni_vko_widest(const int64_t *dim, int rank, const gni_operand *const *op, int n_op) {
    int best = -1;
    int64_t most = 0;
    for (int d = 0; d < rank; d++) {
        int64_t reach = 0;
        if (dim[d] < 2) continue;
        for (int k = 0; k < n_op; k++) {
            int64_t step = op[k]->stride[d] < 0 ? -op[k]->stride[d] : op[k]->stride[d];
            reach = GNI_MAX(reach, step * (int64_t)gn_dtype_size(op[k]->dtype) * (dim[d] - 1));
        }
        if (best < 0 || reach > most) {
            best = d;
            most = reach;
        }
    }
    return best;
}

// Where to cut a dimension in two so that groups stay aligned.
static int64_t gni_vko_half(int64_t n) {
    int64_t h = n / 2;
    return h > 64 ? h / 64 * 64 : GNI_MAX(h, 1);
}

static bool gni_vko_map(gni_vk *vk, const gni_map *m) {
    bool fits = false;
    int64_t n = 1;
    for (int i = 0; i < m->rank; i++) n *= m->dim[i];
    if (n == 0) return true;
    if (!gni_vko_map_once(vk, m, n, &fits)) return false;
    if (fits) return true;
    const gni_operand *op[GNI_MAX_INPUTS + GNI_MAX_OUTPUTS];
    int n_op = 0;
    for (int i = 0; i < m->program.n_in; i++) op[n_op++] = &m->in[i];
    for (int i = 0; i < m->program.n_out; i++) op[n_op++] = &m->out[i];
    int d = gni_vko_widest(m->dim, m->rank, op, n_op);
    if (d < 0) return false;
    gni_map part = *m;
    int64_t half = gni_vko_half(m->dim[d]);
    part.dim[d] = half;
    if (!gni_vko_map(vk, &part)) return false;
    part.dim[d] = m->dim[d] - half;
    for (int i = 0; i < m->program.n_in; i++) part.in[i].offset += half * m->in[i].stride[d];
    for (int i = 0; i < m->program.n_out; i++) part.out[i].offset += half * m->out[i].stride[d];
    return gni_vko_map(vk, &part);
}

// ---- reductions

// How one job is cut up. A plan holds for all pieces of the reduced dimensions.
typedef struct gni_vko_plan {
    bool columns;
    int log_lanes;
    int64_t kept, units, blocks, group;
} gni_vko_plan;

// Columns when neighbours in memory are kept, not reduced.
static bool gni_vko_by_columns(const gni_reduce *r) {
    int64_t rows = 0, columns = 0;
    if (r->kept == 0) return false;
    if (r->kept == r->rank) return true;
    for (int i = 0; i < r->program.n_in; i++) {
        int64_t size = (int64_t)gn_dtype_size(r->in[i].dtype);
        if (r->in[i].stride[r->rank - 1] == 1) rows += size;
        if (r->in[i].stride[r->kept - 1] == 1) columns += size;
    }
    return columns > rows;
}

static void gni_vko_reduce_space(const gni_reduce *r, bool columns, gni_vko_space *s) {
    memset(s, 0, sizeof *s);
    int n = 0, first = columns ? 0 : r->kept, last = columns ? r->kept : r->rank;
    for (int i = first; i < last; i++, n++) {
        s->dim[n] = r->dim[i];
        s->from[n] = i;
    }
    if (n == 0) { // one element
        s->dim[0] = 1;
        s->from[0] = -1;
        n = 1;
    }
    s->vectors = n;
    for (int i = 0; i < r->rank; i++) {
        if (i >= first && i < last) continue;
        s->dim[n] = r->dim[i];
        s->from[n++] = i;
    }
    s->scalars = n - s->vectors;
}

static void gni_vko_reduce_plan(const gni_reduce *r, int64_t kept, int64_t reduced, gni_vko_plan *p) {
    p->columns = gni_vko_by_columns(r);
    p->group = r->program.wide ? 2 : 4;
    p->kept = kept;
    p->units = p->columns ? gni_vko_ceil(kept, p->group) : kept;
    int64_t steps = p->columns ? reduced : gni_vko_ceil(reduced, p->group);
    if (p->columns) {
        // At least 32 neighbouring groups for a lane's row, as long as there are so many.
        int across = GNI_MIN(gni_vko_log2_up(p->units), 5);
        p->log_lanes = GNI_MIN(8 - across, gni_vko_log2_up(steps));
    } else {
        p->log_lanes = GNI_MIN(8, gni_vko_log2_up(gni_vko_ceil(steps, 4)));
    }
    p->blocks = gni_vko_ceil(p->units, (int64_t)256 >> p->log_lanes);
}

// Workgroups that keep the device busy.
static int64_t gni_vko_enough(const gni_vk *vk) {
    return (int64_t)vk->caps.multiprocessors * (vk->caps.kind == GNI_VK_CPU ? 2 : 8);
}

static int64_t gni_vko_splits(const gni_vk *vk, const gni_vko_plan *p, int64_t steps, int64_t *chunk) {
    int64_t most = steps / ((int64_t)8 << p->log_lanes), want = gni_vko_enough(vk) / GNI_MAX(p->blocks, 1);
    int64_t splits = GNI_MAX(GNI_MIN(GNI_MIN(most, want), 1024), 1);
    *chunk = GNI_MAX(gni_vko_ceil(steps, splits), 1);
    return GNI_MAX(gni_vko_ceil(steps, *chunk), 1);
}

static void gni_vko_reduce_modules(gni_vko_call *c, const gni_reduce *r, const gni_vko_space *s) {
    const gni_program *p = &r->program;
    bool little = p->n_in <= 3 && p->n_insn <= 8 && s->vectors <= 4 && s->scalars <= 4;
    int special = p->wide ? GNI_MODULE_reduce_wide_8 : GNI_MODULE_reduce_8;
    gni_vko_set_modules(c, p, little ? special : -1, p->wide ? GNI_MODULE_reduce_wide_generic : GNI_MODULE_reduce_generic);
}

// A piece of the reduced elements, `splits` of all `total`. False in *fits: too large, nothing was done.
// With `dry` only asks.
static bool gni_vko_reduce_piece(gni_vko_call *c, const gni_reduce *r, const gni_vko_plan *plan, int64_t reduced,
                                 int64_t index, int64_t chunk, int64_t splits, int64_t first, int64_t total, bool dry,
                                 bool *fits) {
    gni_vko_space s;
    gni_vko_kind in[GNI_MAX_INPUTS], out[GNI_MAX_OUTPUTS];
    gni_vk_use partials[2] = {c->use[0], c->use[1]};
    int n_partials = c->n_scratch > 0 || total > 1 ? 2 : 0;
    gni_vko_reduce_space(r, plan->columns, &s);
    c->n_use = 0;
    memset(c->param, 0, sizeof c->param);
    *fits = reduced < INT32_MAX - 4 * GNI_VKO_THREADS && plan->kept < INT32_MAX - 4 * GNI_VKO_THREADS;
    for (int i = 0; i < r->program.n_in && *fits; i++)
        *fits = gni_vko_put_operand(c, &s, &r->in[i], i, plan->group, &in[i]);
    gni_operand y = r->out;
    int64_t one = 1;
    uint32_t base = 0;
    gni_vk_use *use = &c->use[c->n_use++];
    *fits = *fits && gni_vko_reach(c->vk, &y, &plan->kept, &one, 1, use, &base);
    if (!*fits || dry) return true;
    use->write = true;
    c->param[GNI_VKO_OP + 9 * GNI_MAX_INPUTS] = base;
    for (int i = 0; i < n_partials; i++) c->use[c->n_use++] = partials[i];
    out[0] = GNI_VKO_FLAT;
    gni_vko_put_space(c, &s);
    gni_vko_put_program(c, &r->program, &s, in, out);
    c->param[5] = ((uint32_t)r->op * 3u + (uint32_t)r->domain) | (uint32_t)plan->columns << 8 |
                  (uint32_t)plan->log_lanes << 9 | (uint32_t)r->out.dtype << 16;
    uint32_t *k = &c->param[GNI_VKO_KERNEL];
    k[0] = (uint32_t)plan->kept;
    k[1] = (uint32_t)reduced;
    k[2] = (uint32_t)plan->units;
    k[3] = (uint32_t)chunk;
    k[4] = (uint32_t)total;
    k[5] = (uint32_t)first;
    k[6] = (uint32_t)index;
    gni_vko_reduce_modules(c, r, &s);
    return gni_vko_dispatch(c, gni_vko_pipeline(c), plan->blocks, splits, 1);
}

// The outermost reduced dimension in pieces of `step`, in dispatches that finish together.
static bool gni_vko_reduce_pieces(gni_vk *vk, const gni_reduce *r, const gni_vko_plan *plan, int64_t reduced,
                                  int64_t step) {
    gni_vko_call c;
    int64_t extent = r->kept < r->rank ? r->dim[r->kept] : 1, inner = extent > 0 ? reduced / extent : 0;
    int64_t chunk = 1, last_chunk = 1, pieces = GNI_MAX(gni_vko_ceil(extent, GNI_MAX(step, 1)), 1);
    int64_t rest = extent - (pieces - 1) * step, per_step = plan->columns ? 1 : plan->group;
    int64_t splits = gni_vko_splits(vk, plan, gni_vko_ceil(GNI_MIN(step, extent) * inner, per_step), &chunk);
    int64_t last = gni_vko_splits(vk, plan, gni_vko_ceil(rest * inner, per_step), &last_chunk);
    int64_t total = (pieces - 1) * splits + last;
    bool ok = true, fits = true;
    uint32_t counter = 0;
    memset(&c, 0, sizeof c);
    c.vk = vk;
    if (total > 1) {
        ok = gni_vko_scratch(&c, (uint64_t)(plan->units * total) * 32, "partial results") &&
             gni_vko_counters(&c, plan->blocks, &counter);
    }
    gni_vk_use scratch[2] = {c.use[0], c.use[1]};
    for (int64_t i = 0; i < pieces && ok; i++) {
        gni_reduce part = *r;
        int64_t start = i * step, count = i + 1 < pieces ? step : rest;
        if (pieces > 1) {
            part.dim[r->kept] = count;
            for (int k = 0; k < r->program.n_in; k++) part.in[k].offset += start * r->in[k].stride[r->kept];
        }
        c.use[0] = scratch[0];
        c.use[1] = scratch[1];
        bool at_end = i + 1 == pieces;
        ok = gni_vko_reduce_piece(&c, &part, plan, count * inner, start * inner, at_end ? last_chunk : chunk,
                                  at_end ? last : splits, i * splits, total, false, &fits) && fits;
    }
    gni_vko_drop_scratch(&c);
    return ok;
}

static bool gni_vko_reduce(gni_vk *vk, const gni_reduce *r) {
    gni_vko_call c;
    gni_vko_plan plan;
    int64_t kept = 1, reduced = 1;
    for (int i = 0; i < r->kept; i++) kept *= r->dim[i];
    for (int i = r->kept; i < r->rank; i++) reduced *= r->dim[i];
    if (kept == 0) return true;
    gni_vko_reduce_plan(r, kept, reduced, &plan);
    memset(&c, 0, sizeof c);
    c.vk = vk;
    bool fits = false;
    int64_t extent = r->kept < r->rank ? r->dim[r->kept] : 1, step = extent;
    for (;;) {
        gni_reduce part = *r;
        if (r->kept < r->rank) part.dim[r->kept] = step;
        int64_t some = extent > 0 ? reduced / extent * step : 0;
        gni_vko_reduce_piece(&c, &part, &plan, some, 0, 1, 1, 0, 1, true, &fits);
        if (fits) return gni_vko_reduce_pieces(vk, r, &plan, reduced, step);
        if (step <= 1) break;
        step = gni_vko_half(step);
    }
    // Cutting the outermost reduced dimension was not enough.
    if (r->kept == 0 || r->dim[0] < 2) return false;
    gni_reduce part = *r;
    int64_t half = gni_vko_half(r->dim[0]);
    part.dim[0] = half;
    if (!gni_vko_reduce(vk, &part)) return false;
    part.dim[0] = r->dim[0] - half;
    part.out.offset += half * (kept / r->dim[0]);
    for (int i = 0; i < r->program.n_in; i++) part.in[i].offset += half * r->in[i].stride[0];
    return gni_vko_reduce(vk, &part);
}

static bool gni_vko_is_half(gn_dtype t) { return t == GN_F16 || t == GN_BF16; }

static bool gni_vko_reduce_ok(const gni_vk *vk, const gni_reduce *r) {
    gn_dtype t = r->out.dtype;
    bool wide = r->program.wide, index = r->op == GNI_RED_ARGMIN || r->op == GNI_RED_ARGMAX;
    if (!gni_vko_program_ok(vk, &r->program, 3) || t >= GN_C64) return false;
    if (index) return t == GN_I32 || t == GN_I64;
    if (r->op == GNI_RED_ANY || r->op == GNI_RED_ALL) return t == GN_BOOL;
    if (r->domain == GNI_F) return t == GN_F32 || gni_vko_is_half(t) || (wide && t == GN_F64);
    return t != GN_F32 && t != GN_F64 && !gni_vko_is_half(t) && !(wide && r->domain == GNI_U);
}

// ---- softmax

static bool gni_vko_softmax_ok(const gni_softmax *s) {
    gn_dtype t = s->in.dtype;
    return (t == GN_F32 || gni_vko_is_half(t)) && s->out.dtype == t && s->n < INT32_MAX / 2;
}

static bool gni_vko_softmax_long(gni_vko_call *c, int64_t rows, int64_t n) {
    gni_vk *vk = c->vk;
    bool ok = true;
    int64_t groups = gni_vko_ceil(n, 4);
    int64_t splits = GNI_MIN(GNI_MIN(gni_vko_enough(vk) / rows, groups / 1024), 256);
    int64_t chunk = splits > 1 ? gni_vko_ceil(groups, splits) : groups;
    splits = gni_vko_ceil(groups, chunk);
    c->generic.module = GNI_MODULE_softmax_long;
    c->generic.n_spec = 5;
    c->generic.spec[4] = splits > 1 ? 1 : 3;
    c->param[5] = (uint32_t)splits;
    c->param[6] = (uint32_t)chunk;
    if (splits > 1) ok = gni_vko_scratch(c, (uint64_t)(rows * splits) * 8, "partial results");
    ok = ok && gni_vko_dispatch(c, gni_vk_pipeline_get(vk, &c->generic, GNI_VK_WAIT), rows, splits, 1);
    if (ok && splits > 1) {
        c->generic.spec[4] = 2;
        c->use[2].write = false;
        if (c->generic.spec[0] == GNI_LOGSUMEXP) splits = 1;
        ok = gni_vko_dispatch(c, gni_vk_pipeline_get(vk, &c->generic, GNI_VK_WAIT), rows, splits, 1);
    }
    gni_vko_drop_scratch(c);
    return ok;
}

static bool gni_vko_softmax(gni_vk *vk, const gni_softmax *s) {
    gni_vko_call c;
    int64_t out_n = s->kind == GNI_LOGSUMEXP ? 1 : s->n, dim[2], in_stride[2], out_stride[2];
    if (s->rows == 0 || s->n == 0) return true;
    memset(&c, 0, sizeof c);
    c.vk = vk;
    dim[0] = s->rows;
    dim[1] = s->n;
    in_stride[0] = s->row_stride;
    in_stride[1] = 1;
    out_stride[0] = out_n;
    out_stride[1] = s->kind == GNI_LOGSUMEXP ? 0 : 1;
    if (!gni_vko_reach(vk, &s->in, dim, in_stride, 2, &c.use[0], &c.param[3]) ||
        !gni_vko_reach(vk, &s->out, dim, out_stride, 2, &c.use[1], &c.param[4]) || s->rows >= INT32_MAX / 2) {
        gni_softmax part = *s;
        if (s->rows < 2) return false;
        part.rows = s->rows / 2;
        if (!gni_vko_softmax(vk, &part)) return false;
        part.in.offset += part.rows * s->row_stride;
        part.out.offset += part.rows * out_n;
        part.rows = s->rows - part.rows;
        return gni_vko_softmax(vk, &part);
    }
    c.use[1].write = true;
    c.n_use = 2;
    c.n_param = 8;
    c.param[0] = (uint32_t)s->rows;
    c.param[1] = (uint32_t)s->n;
    c.param[2] = (uint32_t)s->row_stride;
    int log_lanes = GNI_MIN(gni_vko_log2_up(gni_vko_ceil(s->n, 4)), 8);
    c.generic.spec[0] = (uint32_t)s->kind;
    c.generic.spec[1] = (uint32_t)s->in.dtype;
    c.generic.spec[2] = (uint32_t)log_lanes;
    c.generic.spec[3] = (uint32_t)(c.param[3] % 4 == 0 && (s->rows == 1 || s->row_stride % 4 == 0)) |
                        (uint32_t)(c.param[4] % 4 == 0 && (s->rows == 1 || s->n % 4 == 0)) << 1;
    if (s->n > 16384) return gni_vko_softmax_long(&c, s->rows, s->n);
    c.generic.n_spec = 4;
    c.generic.module = s->n <= 1024   ? GNI_MODULE_softmax_1
                       : s->n <= 4096 ? GNI_MODULE_softmax_4
                                      : GNI_MODULE_softmax_16;
    int64_t groups = gni_vko_ceil(s->rows, (int64_t)256 >> log_lanes);
    return gni_vko_dispatch(&c, gni_vk_pipeline_get(vk, &c.generic, GNI_VK_WAIT), groups, 1, 1);
}

// ---- take

// log2 of the largest piece, up to 16 bytes, that rows and both places are made of.
static int gni_vko_take_unit(const gni_take *t) {
    int64_t size = (int64_t)gn_dtype_size(t->in.dtype);
    uint64_t bits = (uint64_t)(t->inner * size) | (uint64_t)(t->in.offset * size) | (uint64_t)(t->out.offset * size) | 16u;
    int unit = 0;
    while (!(bits >> unit & 1u)) unit++;
    return unit;
}

static bool gni_vko_take_ok(const gni_vk *vk, const gni_take *t) {
    gn_dtype i = t->index.dtype;
    int64_t size = (int64_t)gn_dtype_size(t->in.dtype), unit = (int64_t)1 << gni_vko_take_unit(t);
    int64_t most = vk->caps.addresses ? INT64_MAX : (int64_t)GNI_MIN(vk->caps.max_storage_range, (uint64_t)INT64_MAX);
    int64_t in = t->extent * t->inner * size, out = t->count * t->inner * size;
    bool integers = i == GN_I32 || i == GN_I64 || i == GN_U32 || i == GN_U8 || i == GN_I8;
    return integers && t->in.dtype == t->out.dtype && t->extent < INT32_MAX && t->count < INT32_MAX / 2 &&
           in / unit < INT32_MAX / 2 && out / unit < INT32_MAX / 2 && in < most - 256 && out < most - 256 &&
           t->count * (int64_t)gn_dtype_size(i) < most - 256;
}

static bool gni_vko_take(gni_vk *vk, const gni_take *t) {
    gni_vko_call c;
    int unit = gni_vko_take_unit(t);
    int64_t size = (int64_t)gn_dtype_size(t->in.dtype), inner = t->inner * size >> unit, one = 1;
    int64_t in = t->outer * t->extent * t->inner, out = t->outer * t->count * t->inner;
    if (out == 0) return true;
    if (t->extent == 0) return false;
    memset(&c, 0, sizeof c);
    c.vk = vk;
    bool fits = (in * size >> unit) < INT32_MAX && (out * size >> unit) < INT32_MAX - 4 * GNI_VKO_THREADS &&
                gni_vko_reach(vk, &t->in, &in, &one, 1, &c.use[0], &c.param[8]) &&
                gni_vko_reach(vk, &t->index, &t->count, &one, 1, &c.use[1], &c.param[9]) &&
                gni_vko_reach(vk, &t->out, &out, &one, 1, &c.use[2], &c.param[10]);
    if (!fits) {
        gni_take part = *t;
        if (t->outer < 2) return false;
        part.outer = t->outer / 2;
        if (!gni_vko_take(vk, &part)) return false;
        part.in.offset += part.outer * t->extent * t->inner;
        part.out.offset += part.outer * t->count * t->inner;
        part.outer = t->outer - part.outer;
        return gni_vko_take(vk, &part);
    }
    c.use[2].write = true;
    c.n_use = 3;
    c.n_param = 11;
    c.param[0] = (uint32_t)(out * size >> unit);
    gni_vko_divider(inner, &c.param[1]);
    gni_vko_divider(t->count, &c.param[4]);
    c.param[7] = (uint32_t)t->extent;
    c.param[8] = (uint32_t)((int64_t)c.param[8] * size >> unit);
    c.param[10] = (uint32_t)((int64_t)c.param[10] * size >> unit);
    c.generic.module = GNI_MODULE_take;
    c.generic.n_spec = 2;
    c.generic.spec[0] = (uint32_t)t->index.dtype;
    c.generic.spec[1] = (uint32_t)unit;
    int64_t work = unit >= 2 ? (int64_t)c.param[0] : gni_vko_ceil(c.param[0], unit == 1 ? 2 : 4);
    return gni_vko_dispatch(&c, gni_vk_pipeline_get(vk, &c.generic, GNI_VK_WAIT), gni_vko_ceil(work, 256), 1, 1);
}

// ---- random

static bool gni_vko_random_ok(const gni_random *r) {
    bool real = r->kind == GNI_RAND_UNIFORM || r->kind == GNI_RAND_NORMAL;
    if (real) return r->out.dtype == GN_F32;
    return (r->out.dtype == GN_U32 || r->out.dtype == GN_I32) && r->range <= (uint64_t)1 << 32;
}

static bool gni_vko_random(gni_vk *vk, const gni_random *r) {
    gni_vko_call c;
    int64_t one = 1;
    if (r->n == 0) return true;
    memset(&c, 0, sizeof c);
    c.vk = vk;
    if (!gni_vko_reach(vk, &r->out, &r->n, &one, 1, &c.use[0], &c.param[1]) || r->n > INT32_MAX - 1024) {
        gni_random part = *r;
        if (r->n < 8) return false;
        part.n = r->n / 2 / 4 * 4;
        if (!gni_vko_random(vk, &part)) return false;
        part.counter += (uint64_t)part.n / (gni_random_pairs(r) ? 2 : 4);
        part.out.offset += part.n;
        part.n = r->n - part.n;
        return gni_vko_random(vk, &part);
    }
    c.use[0].write = true;
    c.n_use = 1;
    c.n_param = 8;
    c.param[0] = (uint32_t)r->n;
    c.param[2] = (uint32_t)r->counter;
    c.param[3] = (uint32_t)(r->counter >> 32);
    c.param[4] = (uint32_t)r->seed;
    c.param[5] = (uint32_t)(r->seed >> 32);
    c.param[6] = (uint32_t)r->low;
    c.param[7] = (uint32_t)r->range;
    c.generic.module = GNI_MODULE_random;
    c.generic.n_spec = 2;
    c.generic.spec[0] = (uint32_t)r->kind;
    c.generic.spec[1] = gni_random_pairs(r);
    return gni_vko_dispatch(&c, gni_vk_pipeline_get(vk, &c.generic, GNI_VK_WAIT), gni_vko_ceil(r->n, 1024), 1, 1);
}

// ---- matrix products

typedef struct gni_vko_tile {
    int module, bm, bn, bk;
    uint32_t shared; // bytes
} gni_vko_tile;

enum { GNI_VKO_REAL_TILES = 3, GNI_VKO_INT_TILE = 3, GNI_VKO_F64_TILE = 4 };
// Largest first.
static const gni_vko_tile gni_vko_tiles[] = {
    {GNI_MODULE_matmul_128, 128, 128, 16, 16900}, {GNI_MODULE_matmul_64, 64, 64, 16, 8708},
    {GNI_MODULE_matmul_32, 32, 32, 32, 9220},     {GNI_MODULE_matmul_int_64, 64, 64, 16, 8708},
    {GNI_MODULE_matmul_f64_32, 32, 32, 16, 8708},
};

static bool gni_vko_matmul_ok(const gni_vk *vk, const gni_matmul *m) {
    gn_dtype a = m->a.dtype, b = m->b.dtype, t = m->c.dtype;
    if (vk->caps.max_buffers < 6 || m->k >= INT32_MAX || m->batch_rank > GN_MAX_RANK) return false;
    bool real = (a == GN_F32 || gni_vko_is_half(a)) && (b == GN_F32 || gni_vko_is_half(b)) &&
                (t == GN_F32 || gni_vko_is_half(t));
    bool plain = a == b && a == t && m->bias.buf == NULL && m->act == 0;
    if (real) return m->bias.buf == NULL || m->bias.dtype == GN_F32;
    if (plain && (a == GN_I32 || a == GN_U32)) return true;
    return plain && a == GN_F64 && vk->caps.float64 && vk->caps.int64;
}

// Largest tile that leaves no multiprocessor idle; small ones split k instead.
static const gni_vko_tile *gni_vko_pick_tile(const gni_vk *vk, const gni_matmul *m, int64_t batches) {
    if (m->c.dtype == GN_F64) return &gni_vko_tiles[GNI_VKO_F64_TILE];
    if (m->c.dtype == GN_I32 || m->c.dtype == GN_U32) return &gni_vko_tiles[GNI_VKO_INT_TILE];
    // A CPU's tiles are small, since its compilers are slow with much unrolled code.
    bool cpu = vk->caps.kind == GNI_VK_CPU;
    int64_t units = cpu ? 8 : (int64_t)vk->caps.multiprocessors;
    for (int i = cpu; i < GNI_VKO_REAL_TILES - 1; i++) {
        const gni_vko_tile *t = &gni_vko_tiles[i];
        int64_t tiles = gni_vko_ceil(m->m, t->bm) * gni_vko_ceil(m->n, t->bn) * batches;
        if (t->shared <= vk->caps.shared_bytes && tiles * (i + 1) >= units) return t;
    }
    return &gni_vko_tiles[GNI_VKO_REAL_TILES - 1];
}

// What both kinds of matrix kernels are told. The strides are those of the kernel's own a and b.
static void gni_vko_matrix_params(gni_vko_call *c, const gni_matmul *m, int64_t batches, const gni_vk_use *use,
                                  const uint32_t *base) {
    for (int i = 0; i < 4; i++) c->use[i] = use[i];
    c->n_use = 4;
    c->n_param = 48;
    uint32_t *p = c->param;
    p[0] = (uint32_t)m->m;
    p[1] = (uint32_t)m->n;
    p[2] = (uint32_t)m->k;
    p[3] = (uint32_t)batches;
    p[4] = base[0];
    p[5] = (uint32_t)m->a_rs;
    p[6] = (uint32_t)m->a_cs;
    p[7] = base[1];
    p[8] = (uint32_t)m->b_rs;
    p[9] = (uint32_t)m->b_cs;
    p[10] = base[2];
    p[11] = base[3];
    p[12] = 1;
    p[13] = (uint32_t)GNI_MAX(m->k, 1);
    p[17] = (uint32_t)m->batch_rank;
    for (int i = 0; i < m->batch_rank; i++) {
        p[18 + 3 * i] = (uint32_t)m->batch_dim[i];
        p[19 + 3 * i] = (uint32_t)m->a_batch[i];
        p[20 + 3 * i] = (uint32_t)m->b_batch[i];
    }
}

static bool gni_vko_batch_even(const gni_matmul *m, const int64_t *stride, int64_t group) {
    for (int i = 0; i < m->batch_rank; i++)
        if (m->batch_dim[i] > 1 && stride[i] % group != 0) return false;
    return true;
}

// Splits k over `splits` workgroups per tile, with room for what they leave: `part_bytes` each.
static bool gni_vko_split_k(gni_vko_call *c, int64_t k, int64_t unit, int64_t splits, int64_t tiles, int64_t part_bytes,
                            int64_t counters, int64_t *used) {
    int64_t chunk = gni_vko_ceil(gni_vko_ceil(k, GNI_MAX(splits, 1)), unit) * unit;
    *used = k > 0 ? gni_vko_ceil(k, chunk) : 1;
    c->param[12] = (uint32_t)*used;
    c->param[13] = (uint32_t)GNI_MAX(chunk, 1);
    c->param[14] = 0;
    if (*used <= 1) return true;
    return gni_vko_scratch(c, (uint64_t)(tiles * *used * part_bytes), "partial products") &&
           gni_vko_counters(c, counters, &c->param[14]);
}

static bool gni_vko_matmul_tiled(gni_vko_call *c, const gni_matmul *m, int64_t batches, int64_t row) {
    const gni_vk *vk = c->vk;
    const gni_vko_tile *t = gni_vko_pick_tile(vk, m, batches);
    int64_t group = m->c.dtype == GN_F64 ? 2 : 4;
    int64_t down = gni_vko_ceil(m->m, t->bm), across = gni_vko_ceil(m->n, t->bn), tiles = down * across * batches;
    bool along_m = m->a_cs != 1 && (m->a_rs == 1 || m->k == 1), along_k = m->b_cs != 1 && m->b_rs == 1;
    bool a_groups = (along_m ? m->a_rs == 1 && (m->k == 1 || m->a_cs % group == 0)
                             : m->a_cs == 1 && (m->m == 1 || m->a_rs % group == 0)) &&
                    c->param[4] % group == 0 && gni_vko_batch_even(m, m->a_batch, group);
    bool b_groups = (along_k ? m->n == 1 || m->b_cs % group == 0 : m->b_cs == 1 && (m->k == 1 || m->b_rs % group == 0)) &&
                    c->param[7] % group == 0 && gni_vko_batch_even(m, m->b_batch, group);
    bool c_groups = c->param[10] % group == 0 && row % group == 0;
    c->generic.module = t->module;
    c->generic.n_spec = 4;
    c->generic.spec[0] = (uint32_t)m->a.dtype;
    c->generic.spec[1] = (uint32_t)m->b.dtype;
    c->generic.spec[2] = (uint32_t)m->c.dtype;
    c->generic.spec[3] = (uint32_t)along_m | (uint32_t)a_groups << 1 | (uint32_t)along_k << 2 |
                         (uint32_t)b_groups << 3 | (uint32_t)c_groups << 4 | (uint32_t)(m->bias.buf != NULL) << 5 |
                         (uint32_t)(m->act == 1) << 6;
    c->param[15] = (uint32_t)down;
    c->param[16] = (uint32_t)across;
    c->param[46] = (uint32_t)row;
    int64_t splits = 1, enough = vk->caps.kind == GNI_VK_CPU ? 1 : 2 * (int64_t)vk->caps.multiprocessors;
    if (tiles * 2 <= enough) splits = GNI_MIN(GNI_MIN(enough / tiles, m->k / (4 * t->bk)), 64);
    int64_t part = (int64_t)t->bm * t->bn * (m->c.dtype == GN_F64 ? 8 : 4);
    bool ok = down * across < INT32_MAX && gni_vko_split_k(c, m->k, t->bk, splits, tiles, part, tiles, &splits);
    ok = ok && gni_vko_dispatch(c, gni_vk_pipeline_get(c->vk, &c->generic, GNI_VK_WAIT), down * across, splits, batches);
    gni_vko_drop_scratch(c);
    return ok;
}

// `m` as the kernel sees it: a is the large operand, its rows the long dimension. `flip`: c is the
// transpose of the kernel's.
static bool gni_vko_matvec(gni_vko_call *c, const gni_matmul *m, int64_t batches, int64_t row, bool flip) {
    const gni_vk *vk = c->vk;
    bool columns = m->a_rs == 1 && m->a_cs != 1;
    bool even = c->param[4] % 4 == 0 && gni_vko_batch_even(m, m->a_batch, 4);
    bool x_groups = even && (columns ? m->k == 1 || m->a_cs % 4 == 0
                                     : m->a_cs == 1 && (m->m == 1 || m->a_rs % 4 == 0));
    bool y_groups = !columns && m->b_rs == 1 && (m->n == 1 || m->b_cs % 4 == 0) && c->param[7] % 4 == 0 &&
                    gni_vko_batch_even(m, m->b_batch, 4);
    int64_t units = columns ? gni_vko_ceil(m->m, 4) : m->m;
    int64_t steps = columns ? m->k : gni_vko_ceil(m->k, 4);
    int log_lanes = columns ? GNI_MIN(8 - GNI_MIN(gni_vko_log2_up(units), 5), gni_vko_log2_up(steps))
                            : GNI_MIN(gni_vko_log2_up(gni_vko_ceil(steps, 4)), 8);
    int64_t blocks = gni_vko_ceil(units, (int64_t)256 >> log_lanes), splits = 1;
    int64_t want = gni_vko_enough(vk) / GNI_MAX(blocks * batches, 1);
    if (want > 1) splits = GNI_MIN(GNI_MIN(want, steps / ((int64_t)8 << log_lanes)), 64);
    c->generic.module = m->n == 1 ? GNI_MODULE_matvec_1 : GNI_MODULE_matvec_8;
    c->generic.n_spec = 6;
    c->generic.spec[0] = (uint32_t)m->a.dtype;
    c->generic.spec[1] = (uint32_t)m->b.dtype;
    c->generic.spec[2] = (uint32_t)m->c.dtype;
    c->generic.spec[3] = (uint32_t)columns | (uint32_t)x_groups << 1 | (uint32_t)y_groups << 2 |
                         (uint32_t)(m->bias.buf != NULL) << 5 | (uint32_t)(m->act == 1) << 6;
    c->generic.spec[4] = (uint32_t)log_lanes;
    c->generic.spec[5] = (uint32_t)m->n;
    c->param[42] = flip ? 1u : (uint32_t)row;
    c->param[43] = flip ? (uint32_t)row : 1u;
    c->param[44] = flip;
    c->param[45] = !flip;
    c->param[47] = (uint32_t)((flip ? m->n : m->m) * row);
    bool ok = gni_vko_split_k(c, m->k, 4, splits, batches * units, 16 * m->n, batches * blocks, &splits);
    ok = ok && gni_vko_dispatch(c, gni_vk_pipeline_get(c->vk, &c->generic, GNI_VK_WAIT), blocks, splits, batches);
    gni_vko_drop_scratch(c);
    return ok;
}

// `c` with its operands exchanged: the transposed product.
static gni_matmul gni_vko_flipped(const gni_matmul *m) {
    gni_matmul f = *m;
    f.m = m->n;
    f.n = m->m;
    f.a = m->b;
    f.b = m->a;
    f.a_rs = m->b_cs;
    f.a_cs = m->b_rs;
    f.b_rs = m->a_cs;
    f.b_cs = m->a_rs;
    memcpy(f.a_batch, m->b_batch, sizeof f.a_batch);
    memcpy(f.b_batch, m->a_batch, sizeof f.b_batch);
    return f;
}

// A buffer argument for a matrix of m x n elements and its batches.
static bool gni_vko_matrix_reach(const gni_vk *vk, const gni_matmul *m, const gni_operand *o, int64_t rows, int64_t rs,
                                 int64_t columns, int64_t cs, const int64_t *batch, gni_vk_use *use, uint32_t *base) {
    int64_t dim[GN_MAX_RANK + 2], stride[GN_MAX_RANK + 2];
    for (int i = 0; i < m->batch_rank; i++) {
        dim[i] = m->batch_dim[i];
        stride[i] = batch[i];
    }
    dim[m->batch_rank] = rows;
    stride[m->batch_rank] = rs;
    dim[m->batch_rank + 1] = columns;
    stride[m->batch_rank + 1] = cs;
    return gni_vko_reach(vk, o, dim, stride, m->batch_rank + 2, use, base);
}

static bool gni_vko_matmul(gni_vk *vk, const gni_matmul *m, int64_t row);

// In two parts, along batches, rows or columns. `row` is the distance of rows in c.
static bool gni_vko_matmul_parts(gni_vk *vk, const gni_matmul *m, int64_t row) {
    gni_matmul part = *m;
    int64_t half;
    for (int d = 0; d < m->batch_rank; d++) {
        if (m->batch_dim[d] < 2) continue;
        int64_t inner = m->m * row;
        for (int i = d + 1; i < m->batch_rank; i++) inner *= m->batch_dim[i];
        half = m->batch_dim[d] / 2;
        part.batch_dim[d] = half;
        if (!gni_vko_matmul(vk, &part, row)) return false;
        part.batch_dim[d] = m->batch_dim[d] - half;
        part.a.offset += half * m->a_batch[d];
        part.b.offset += half * m->b_batch[d];
        part.c.offset += half * inner;
        return gni_vko_matmul(vk, &part, row);
    }
    if (m->m >= m->n && m->m > 1) {
        half = gni_vko_half(m->m);
        part.m = half;
        if (!gni_vko_matmul(vk, &part, row)) return false;
        part.m = m->m - half;
        part.a.offset += half * m->a_rs;
        part.c.offset += half * row;
        return gni_vko_matmul(vk, &part, row);
    }
    if (m->n < 2) return false;
    half = gni_vko_half(m->n);
    part.n = half;
    if (!gni_vko_matmul(vk, &part, row)) return false;
    part.n = m->n - half;
    part.b.offset += half * m->b_cs;
    part.bias.offset += half;
    part.c.offset += half;
    return gni_vko_matmul(vk, &part, row);
}

static bool gni_vko_matmul(gni_vk *vk, const gni_matmul *m, int64_t row) {
    gni_vko_call c;
    gni_vk_use use[4];
    uint32_t base[4] = {0, 0, 0, 0};
    int64_t batches = 1, c_batch[GN_MAX_RANK], step = m->m * row, one = 1;
    for (int i = m->batch_rank - 1; i >= 0; i--) {
        c_batch[i] = step;
        step *= m->batch_dim[i];
        batches *= m->batch_dim[i];
    }
    if (m->m == 0 || m->n == 0 || batches == 0) return true;
    bool real = m->c.dtype == GN_F32 || gni_vko_is_half(m->c.dtype);
    bool flip = real && m->m < m->n && m->m <= 8;
    gni_matmul x = flip ? gni_vko_flipped(m) : *m;
    bool fits = batches < INT32_MAX && m->m < INT32_MAX / 2 && m->n < INT32_MAX / 2 &&
                gni_vko_matrix_reach(vk, m, &x.a, x.m, x.a_rs, x.k, x.a_cs, x.a_batch, &use[0], &base[0]) &&
                gni_vko_matrix_reach(vk, m, &x.b, x.k, x.b_rs, x.n, x.b_cs, x.b_batch, &use[1], &base[1]) &&
                gni_vko_matrix_reach(vk, m, &m->c, m->m, row, m->n, 1, c_batch, &use[2], &base[2]);
    if (!fits) return gni_vko_matmul_parts(vk, m, row);
    use[2].write = true;
    use[3] = use[1];
    if (m->bias.buf != NULL && !gni_vko_reach(vk, &m->bias, &m->n, &one, 1, &use[3], &base[3])) return false;
    memset(&c, 0, sizeof c);
    c.vk = vk;
    gni_vko_matrix_params(&c, &x, batches, use, base);
    if (real && x.n <= 8) return gni_vko_matvec(&c, &x, batches, row, flip);
    return gni_vko_matmul_tiled(&c, &x, batches, row);
}

// ---- the backend

static bool gni_vk_supports(gn_context *g, gni_job_kind kind, const void *job) {
    const gni_vk *vk = g->vk;
    if (!vk || vk->caps.max_invocations < GNI_VKO_THREADS) return false;
    switch (kind) {
    case GNI_JOB_MAP: {
        const gni_program *p = &((const gni_map *)job)->program;
        if (gni_vko_is_copy64(p)) return (uint32_t)(p->n_in + p->n_out) <= vk->caps.max_buffers;
        return gni_vko_program_ok(vk, p, p->n_out);
    }
    case GNI_JOB_REDUCE: return gni_vko_reduce_ok(vk, (const gni_reduce *)job);
    case GNI_JOB_SOFTMAX: return gni_vko_softmax_ok((const gni_softmax *)job);
    case GNI_JOB_MATMUL: return gni_vko_matmul_ok(vk, (const gni_matmul *)job);
    case GNI_JOB_TAKE: return gni_vko_take_ok(vk, (const gni_take *)job);
    case GNI_JOB_RANDOM: return gni_vko_random_ok((const gni_random *)job);
    case GNI_JOB_FFT: return gni_fft_vk_supports(g, (const gni_fft *)job);
    default: return false;
    }
}

static bool gni_vk_run(gn_context *g, gni_job_kind kind, const void *job) {
    gni_vk *vk = g->vk;
    switch (kind) {
    case GNI_JOB_MAP: return gni_vko_map(vk, (const gni_map *)job);
    case GNI_JOB_REDUCE: return gni_vko_reduce(vk, (const gni_reduce *)job);
    case GNI_JOB_SOFTMAX: return gni_vko_softmax(vk, (const gni_softmax *)job);
    case GNI_JOB_MATMUL: return gni_vko_matmul(vk, (const gni_matmul *)job, ((const gni_matmul *)job)->n);
    case GNI_JOB_TAKE: return gni_vko_take(vk, (const gni_take *)job);
    case GNI_JOB_RANDOM: return gni_vko_random(vk, (const gni_random *)job);
    case GNI_JOB_FFT: return gni_fft_vk(g, (const gni_fft *)job);
    default: return false;
    }
}

#endif // GNI_VULKAN

static const gni_backend_api gni_vulkan_api = {"vulkan", GNI_ON_GPU, gni_vk_supports, gni_vk_run};

// ------------------------------------------------------------------------------------------
// >>async
// gn_read_async: reads that do not wait. Callbacks run inside later calls on the context.

static void gni_read_finish(gn_context *g, gni_read *r, bool ok) {
    gn_status status = ok ? GN_OK : g->status != GN_OK ? g->status : GN_ERROR_DEVICE_LOST;
    gni_unref(g, r->array);
    r->done(r->user, status);
    gni_free(g, r);
}

// Calls back for reads that are there, in order; with `wait` for all of them.
static void gni_deliver_reads(gn_context *g, bool wait) {
    if (g->delivering) return; // a callback called us
    g->delivering = true;
    while (g->reads != NULL) {
        gni_read *r = g->reads;
#if GNI_VULKAN
        if (r->on_gpu && !gni_vk_ticket_ready(g->vk, &r->ticket, wait)) {
            if (!wait && !gni_vk_lost(g->vk)) break;
            g->reads = r->next;
            gni_vk_ticket_release(g->vk, &r->ticket);
            gni_read_finish(g, r, false);
            continue;
        }
        g->reads = r->next;
        if (r->on_gpu) {
            memcpy(r->dst, gni_vk_ticket_data(&r->ticket), r->bytes);
            gni_vk_ticket_release(g->vk, &r->ticket);
            gni_read_finish(g, r, true);
            continue;
        }
#else
        GNI_UNUSED(wait);
        g->reads = r->next;
#endif
        gni_read_finish(g, r, gni_copy_out(g, r->array, r->dst, r->bytes));
    }
    g->delivering = false;
}

GPUNUM_API void gn_read_async(gn_array *a, void *dst, size_t bytes, gn_done_fn done, void *user) {
    gn_context *g = gni_begin("gn_read_async", &a, 1);
    if (g == NULL || done == NULL) {
        if (g != NULL) {
            gni_fail(g, GN_ERROR_ARGUMENT, "gn_read_async: done is NULL");
            gni_end_plain(g);
        }
        if (done != NULL) done(user, gni_null_status(a));
        return;
    }
    gni_read *r = NULL;
    gn_array *c = NULL;
    if (gni_bytes_fit(g, "gn_read_async", a, dst, bytes)) c = gni_contiguous(g, a);
    if (c != NULL) r = (gni_read *)gni_calloc(g, sizeof(gni_read));
    if (c != NULL && r == NULL) gni_fail_memory(g, "gn_read_async", sizeof(gni_read));
#if GNI_VULKAN
    if (r != NULL && c->buf->where == GNI_ON_GPU && bytes > 0) {
        uint64_t at = (uint64_t)c->offset * gn_dtype_size(c->dtype);
        r->on_gpu = gni_vk_download_begin(g->vk, &c->buf->device, at, bytes, &r->ticket);
        if (!r->on_gpu) {
            gni_fail(g, GN_ERROR_DEVICE_LOST, "gn_read_async: copying from the GPU could not start");
            gni_free(g, r);
            r = NULL;
        }
    }
#endif
    if (r == NULL) {
        gn_status status = g->status;
        gni_unref(g, c);
        gni_end_plain(g);
        done(user, status);
        return;
    }
    r->array = c;
    r->dst = dst;
    r->bytes = bytes;
    r->done = done;
    r->user = user;
    gni_read **end = &g->reads;
    while (*end != NULL) end = &(*end)->next;
    *end = r;
    if (r->on_gpu) gni_vk_flush(g->vk);
    gni_end_plain(g);
}

// ------------------------------------------------------------------------------------------
// >>elementwise
// The public elementwise functions, from the op tables: dtype rules, recording, one expression each.

static bool gni_real_only(gn_context *g, const char *fn, gn_array *const *in, int n) {
    for (int i = 0; i < n; i++) {
        if (!gni_is_complex(in[i]->dtype)) continue;
        gni_fail(g, GN_ERROR_DTYPE, "%s: %s is not supported here", fn, gn_dtype_name(in[i]->dtype));
        return false;
    }
    return true;
}

// Records an elementwise op; `which` operand (1 or 2) was the constant, 0 for none.
static void gni_record_op(gn_context *g, gn_array *y, const char *fn, gni_op op, gn_array *const *in, int n,
                          int which, double konst) {
    if (y == NULL || !gni_tracks(g, in, n)) return;
    gni_node *node = gni_record(g, y, fn, gni_back_elementwise, in, n);
    if (node == NULL) return;
    node->param[0] = (int64_t)op;
    node->param[1] = which;
    node->real[0] = konst;
}

static gn_array *gni_unary(const char *fn, gni_op op, gn_array *a) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    gn_dtype t = a->dtype;
    if (op <= GNI_OP_SOFTPLUS && !gni_is_float(t)) t = GN_F32;
    bool truth = op >= GNI_OP_ISNAN && op <= GNI_OP_LOGICAL_NOT;
    if (a->dtype == GN_BOOL && op == GNI_OP_NEG)
        gni_fail(g, GN_ERROR_DTYPE, "%s: bool has no negative; use gn_logical_not", fn);
    else if (gni_real_only(g, fn, &a, 1))
        y = gni_apply(g, fn, op, t, truth ? GN_BOOL : t, &a, NULL, 1);
    if (!truth) gni_record_op(g, y, fn, op, &a, 1, 0, 0.0);
    return gni_end(g, y);
}

// The dtype a binary op computes in, from the promoted one.
static gn_dtype gni_binary_dtype(gni_op op, gn_dtype t) {
    if (op >= GNI_OP_DIV && op <= GNI_OP_HYPOT && !gni_is_float(t)) return GN_F32;
    if (t == GN_BOOL && (op == GNI_OP_FLOOR_DIV || op == GNI_OP_MOD || op == GNI_OP_POW)) return GN_I8;
    if (t == GN_BOOL && (op == GNI_OP_SHL || op == GNI_OP_SHR)) return GN_I8;
    return t;
}

static bool gni_binary_ok(gn_context *g, const char *fn, gni_op op, gn_dtype t) {
    if (op == GNI_OP_SUB && t == GN_BOOL) {
        gni_fail(g, GN_ERROR_DTYPE, "%s: bool minus bool is not defined; use gn_xor or gn_logical_xor", fn);
        return false;
    }
    if (op >= GNI_OP_AND && op <= GNI_OP_SHR && gni_is_float(t)) {
        gni_fail(g, GN_ERROR_DTYPE, "%s: %s is not an integer or bool", fn, gn_dtype_name(t));
        return false;
    }
    return true;
}

static bool gni_is_compare(gni_op op) { return op >= GNI_OP_EQ && op <= GNI_OP_LOGICAL_XOR; }

static gn_array *gni_binary(const char *fn, gni_op op, gn_array *a, gn_array *b) {
    gn_array *in[2];
    in[0] = a;
    in[1] = b;
    gn_context *g = gni_begin(fn, in, 2);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if (gni_real_only(g, fn, in, 2)) {
        gn_dtype t = gni_binary_dtype(op, gn_promote(a->dtype, b->dtype));
        if (gni_binary_ok(g, fn, op, t))
            y = gni_apply(g, fn, op, t, gni_is_compare(op) ? GN_BOOL : t, in, NULL, 2);
    }
    if (!gni_is_compare(op)) gni_record_op(g, y, fn, op, in, 2, 0, 0.0);
    return gni_end(g, y);
}

// A scalar keeps the array's dtype, unless that is an integer and the scalar is not.
static gn_dtype gni_scalar_dtype(gn_dtype t, double s) {
    if (gni_is_float(t)) return t;
    if (s != floor(s) || s - s != 0.0) return GN_F32;
    return t == GN_BOOL && s != 0.0 && s != 1.0 ? GN_I32 : t;
}

// A scalar that an integer dtype cannot hold: comparisons see its true value, minimum and maximum the
// nearest one there is, arithmetic wraps.
static gn_dtype gni_scalar_fit(gni_op op, gn_dtype t, double *s) {
    double low, high;
    if (gni_is_float(t)) return t;
    gni_integer_range(t, &low, &high);
    if (*s >= low && *s <= high) return t;
    if (op >= GNI_OP_EQ && op <= GNI_OP_GE) return t == GN_I64 ? GN_F64 : GN_I64;
    if (op == GNI_OP_MIN || op == GNI_OP_MAX) *s = *s < low ? low : high;
    return t;
}

static gn_array *gni_binary_s(const char *fn, gni_op op, gn_array *a, double s, bool scalar_first) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    gn_array *src[2];
    double konst[2];
    src[scalar_first] = a;
    src[!scalar_first] = NULL;
    konst[scalar_first] = 0.0;
    konst[!scalar_first] = s;
    if (gni_real_only(g, fn, &a, 1)) {
        gn_dtype t = gni_binary_dtype(op, gni_scalar_dtype(a->dtype, s));
        t = gni_scalar_fit(op, t, &konst[!scalar_first]);
        if (gni_binary_ok(g, fn, op, t))
            y = gni_apply(g, fn, op, t, gni_is_compare(op) ? GN_BOOL : t, src, konst, 2);
    }
    if (!gni_is_compare(op)) gni_record_op(g, y, fn, op, &a, 1, scalar_first ? 1 : 2, s);
    return gni_end(g, y);
}

#define GN_X(fn, NAME, F, D, gF, da)                                                               \
    GPUNUM_API gn_array *fn(gn_array *a) { return gni_unary(#fn, GNI_OP_##NAME, a); }
GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da)                                                        \
    GPUNUM_API gn_array *fn(gn_array *a) { return gni_unary(#fn, GNI_OP_##NAME, a); }
GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    GPUNUM_API gn_array *fn(gn_array *a) { return gni_unary(#fn, GNI_OP_##NAME, a); }
GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GNI_BINARY_FUNCTIONS(fn, NAME)                                                             \
    GPUNUM_API gn_array *fn(gn_array *a, gn_array *b) {                                            \
        return gni_binary(#fn, GNI_OP_##NAME, a, b);                                               \
    }                                                                                              \
    GPUNUM_API gn_array *fn##_s(gn_array *a, double b) {                                           \
        return gni_binary_s(#fn "_s", GNI_OP_##NAME, a, b, false);                                 \
    }
#define GN_X(fn, NAME, F, D, gF, da, db) GNI_BINARY_FUNCTIONS(fn, NAME)
GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) GNI_BINARY_FUNCTIONS(fn, NAME)
GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) GNI_BINARY_FUNCTIONS(fn, NAME)
GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI) GNI_BINARY_FUNCTIONS(fn, NAME)
GNI_BINARY_INT(GN_X)
#undef GN_X

GPUNUM_API gn_array *gn_rsub_s(gn_array *a, double b) {
    return gni_binary_s("gn_rsub_s", GNI_OP_SUB, a, b, true);
}
GPUNUM_API gn_array *gn_rdiv_s(gn_array *a, double b) {
    return gni_binary_s("gn_rdiv_s", GNI_OP_DIV, a, b, true);
}
GPUNUM_API gn_array *gn_rpow_s(gn_array *a, double b) {
    return gni_binary_s("gn_rpow_s", GNI_OP_POW, a, b, true);
}

GPUNUM_API gn_array *gn_where(gn_array *condition, gn_array *a, gn_array *b) {
    gn_array *in[3];
    in[0] = condition;
    in[1] = a;
    in[2] = b;
    gn_context *g = gni_begin("gn_where", in, 3);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if (gni_real_only(g, "gn_where", in, 3)) {
        gn_dtype t = gn_promote(a->dtype, b->dtype);
        y = gni_apply(g, "gn_where", GNI_OP_WHERE, t, t, in, NULL, 3);
    }
    gni_record_op(g, y, "gn_where", GNI_OP_WHERE, in, 3, 0, 0.0);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_fma(gn_array *a, gn_array *b, gn_array *c) {
    gn_array *in[3];
    in[0] = a;
    in[1] = b;
    in[2] = c;
    gn_context *g = gni_begin("gn_fma", in, 3);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if (gni_real_only(g, "gn_fma", in, 3)) {
        gn_dtype t = gn_promote(gn_promote(a->dtype, b->dtype), c->dtype);
        y = gni_apply(g, "gn_fma", GNI_OP_FMA, t, t, in, NULL, 3);
    }
    gni_record_op(g, y, "gn_fma", GNI_OP_FMA, in, 3, 0, 0.0);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_lerp(gn_array *a, gn_array *b, gn_array *t) {
    gn_array *in[3];
    in[0] = a;
    in[1] = b;
    in[2] = t;
    gn_context *g = gni_begin("gn_lerp", in, 3);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    return gni_end_scope(g, gn_add(a, gn_mul(t, gn_sub(b, a))));
}

GPUNUM_API gn_array *gn_clamp(gn_array *a, double low, double high) {
    gn_context *g = gni_begin("gn_clamp", &a, 1);
    if (g == NULL) return NULL;
    if (low > high) gni_fail(g, GN_ERROR_ARGUMENT, "gn_clamp: low %g is above high %g", low, high);
    gn_scope_begin(g);
    return gni_end_scope(g, gn_minimum_s(gn_maximum_s(a, low), high));
}

GPUNUM_API gn_array *gn_leaky_relu(gn_array *a, double slope) {
    gn_context *g = gni_begin("gn_leaky_relu", &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    return gni_end_scope(g, gn_where(gn_gt_s(a, 0.0), a, gn_mul_s(a, slope)));
}

GPUNUM_API gn_array *gn_elu(gn_array *a, double alpha) {
    gn_context *g = gni_begin("gn_elu", &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    // The unused branch must stay finite, or its gradient would be 0 times infinity.
    gn_array *negative = gn_mul_s(gn_expm1(gn_minimum_s(a, 0.0)), alpha);
    return gni_end_scope(g, gn_where(gn_gt_s(a, 0.0), a, negative));
}

GPUNUM_API gn_array *gn_cast(gn_array *a, gn_dtype t) {
    gn_context *g = gni_begin("gn_cast", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if ((unsigned)t >= (unsigned)GN_DTYPE_COUNT)
        gni_fail(g, GN_ERROR_DTYPE, "gn_cast: %d is not a dtype", (int)t);
    else if (t != a->dtype && (gni_is_complex(t) || gni_is_complex(a->dtype)))
        gni_fail(g, GN_ERROR_DTYPE, "gn_cast: %s to %s is not supported", gn_dtype_name(a->dtype), gn_dtype_name(t));
    else
        y = gni_apply(g, "gn_cast", GNI_OP_CAST, a->dtype, t, &a, NULL, 1);
    if (gni_is_float(t)) gni_record_op(g, y, "gn_cast", GNI_OP_CAST, &a, 1, 0, 0.0);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_copy(gn_array *a) {
    gn_context *g = gni_begin("gn_copy", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = gni_apply(g, "gn_copy", GNI_OP_CAST, a->dtype, a->dtype, &a, NULL, 1);
    if (y != NULL && !gni_materialize(g, y)) {
        gni_unref(g, y);
        y = NULL;
    }
    if (y != NULL && gni_tracks(g, &a, 1)) gni_record(g, y, "gn_copy", gni_back_copy, &a, 1);
    return gni_end(g, y);
}

// ------------------------------------------------------------------------------------------
// >>reduce_ops
// The public reductions: axes resolved, pending input taken in as the prologue, one job each.

// The axes as a set of bits 0 to rank - 1, or ~0u after gni_fail.
static uint32_t gni_axes(gn_context *g, const char *fn, uint32_t axes, int rank) {
    uint32_t set = 0, bits = axes & 0xffffu;
    if (bits == 0) return (1u << rank) - 1u;
    for (int i = 0; i < 16; i++) {
        if (!(bits >> i & 1u)) continue;
        int at = gni_axis(g, fn, i < 8 ? i : i - 16, rank);
        if (at < 0) return ~0u;
        set |= 1u << at;
    }
    return set;
}

// The shape after reducing the axes in `set`.
static gn_shape gni_reduced_shape(const gn_shape *s, uint32_t set, bool keep) {
    gn_shape out = gn_shape_from(0, NULL);
    for (int i = 0; i < s->rank; i++) {
        if (!(set >> i & 1u)) out.dim[out.rank++] = s->dim[i];
        else if (keep) out.dim[out.rank++] = 1;
    }
    return out;
}

static void gni_reorder_dims(gni_reduce *r, uint32_t set) {
    int order[GN_MAX_RANK], n = 0;
    for (int i = 0; i < r->rank; i++)
        if (!(set >> i & 1u)) order[n++] = i;
    r->kept = n;
    for (int i = 0; i < r->rank; i++)
        if (set >> i & 1u) order[n++] = i;
    gni_reduce old = *r;
    for (int i = 0; i < r->rank; i++) {
        r->dim[i] = old.dim[order[i]];
        for (int k = 0; k < r->program.n_in; k++) r->in[k].stride[i] = old.in[k].stride[order[i]];
    }
}

// Reduces `a`, converted to `compute` first, over the axes in `set` into dtype `result`.
static gn_array *gni_reduce_axes(gn_context *g, const char *fn, gni_reduction op, gn_array *a, gn_dtype compute,
                                 gn_dtype result, uint32_t set, bool keep) {
    gni_builder b;
    gni_reduce r;
    bool wide = gni_is_wide(compute) || gni_is_wide(a->dtype);
    if (gni_is_pending(a) && !gni_is_const(a) && (a->expr->wide != wide || a->expr->insns + 2 > GNI_MAX_INSNS) &&
        !gni_materialize(g, a))
        return NULL;
    gni_build_begin(&b, g, &a->shape, wide);
    gni_program *p = &b.map.program;
    int reg = gni_build_convert(&b, gni_build_value(&b, a), a->dtype, compute);
    if (b.full) { // shared parts are counted once here, so this is rare
        if (!gni_materialize(g, a)) return NULL;
        gni_build_begin(&b, g, &a->shape, wide);
        reg = gni_build_convert(&b, gni_build_value(&b, a), a->dtype, compute);
    }
    p->n_out = 1;
    p->out_dtype[0] = compute;
    p->out_reg[0] = reg;
    gni_build_finish(p);
    memset(&r, 0, sizeof r);
    r.program = *p;
    r.op = op;
    r.domain = gni_domain_of(compute, wide);
    r.rank = b.map.rank;
    memcpy(r.dim, b.map.dim, sizeof r.dim);
    memcpy(r.in, b.map.in, sizeof r.in);
    gni_reorder_dims(&r, set);
    gn_shape shape = gni_reduced_shape(&a->shape, set, keep);
    gn_array *y = gni_array_new(g, result, &shape);
    if (y == NULL) return NULL;
    y->maker = fn;
    y->buf = gni_buffer_new(g, (uint64_t)gni_elements(&shape) * gn_dtype_size(result));
    if (y->buf != NULL) {
        gni_operand *ops[GNI_MAX_INPUTS + 1];
        int n = 0;
        for (int i = 0; i < r.program.n_in; i++) {
            r.in[i].buf->refs++;
            ops[n++] = &r.in[i];
        }
        r.out.buf = y->buf;
        r.out.dtype = result;
        r.kept = gni_merge_dims(&r.rank, r.dim, ops, n, r.kept);
        bool ok = gni_run(g, GNI_JOB_REDUCE, &r, y);
        for (int i = 0; i < r.program.n_in; i++) gni_buffer_release(g, r.in[i].buf);
        if (ok) return y;
    }
    gni_unref(g, y);
    return NULL;
}

static void gni_record_reduction(gn_context *g, gn_array *y, const char *fn, gni_backward_fn backward, gn_array *a,
                                 uint32_t set, uint32_t axes) {
    if (y == NULL || !gni_tracks(g, &a, 1)) return;
    gni_node *node = gni_record(g, y, fn, backward, &a, 1);
    if (node == NULL) return;
    node->param[0] = (int64_t)set;
    node->param[1] = (axes & GN_KEEP) != 0;
}

// min and max of nothing have no value.
static bool gni_not_empty(gn_context *g, const char *fn, const gn_array *a, uint32_t set) {
    char text[200];
    for (int i = 0; i < a->shape.rank; i++) {
        if (!(set >> i & 1u) || a->shape.dim[i] != 0) continue;
        gni_fail(g, GN_ERROR_SHAPE, "%s: axis %d of %s is empty", fn, i,
                 gni_shape_text(text, sizeof text, &a->shape));
        return false;
    }
    return true;
}

static gn_array *gni_simple_reduction(const char *fn, gni_reduction op, gni_backward_fn backward, gn_array *a,
                                      uint32_t axes) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    uint32_t set = gni_axes(g, fn, axes, a->shape.rank);
    bool keep = (axes & GN_KEEP) != 0;
    gn_dtype t = a->dtype, compute = t;
    if (op == GNI_RED_SUM || op == GNI_RED_PROD) t = compute = gni_is_float(t) ? t : GN_I64;
    if (op == GNI_RED_ANY || op == GNI_RED_ALL) t = compute = GN_BOOL;
    if (set != ~0u && gni_real_only(g, fn, &a, 1)) {
        bool extreme = op == GNI_RED_MIN || op == GNI_RED_MAX;
        if (!extreme || gni_not_empty(g, fn, a, set)) y = gni_reduce_axes(g, fn, op, a, compute, t, set, keep);
        if (backward != NULL) gni_record_reduction(g, y, fn, backward, a, set, axes);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_sum(gn_array *a, uint32_t axes) {
    return gni_simple_reduction("gn_sum", GNI_RED_SUM, gni_back_sum, a, axes);
}
GPUNUM_API gn_array *gn_prod(gn_array *a, uint32_t axes) {
    return gni_simple_reduction("gn_prod", GNI_RED_PROD, gni_back_prod, a, axes);
}
GPUNUM_API gn_array *gn_min(gn_array *a, uint32_t axes) {
    return gni_simple_reduction("gn_min", GNI_RED_MIN, gni_back_minmax, a, axes);
}
GPUNUM_API gn_array *gn_max(gn_array *a, uint32_t axes) {
    return gni_simple_reduction("gn_max", GNI_RED_MAX, gni_back_minmax, a, axes);
}
GPUNUM_API gn_array *gn_any(gn_array *a, uint32_t axes) {
    return gni_simple_reduction("gn_any", GNI_RED_ANY, NULL, a, axes);
}
GPUNUM_API gn_array *gn_all(gn_array *a, uint32_t axes) {
    return gni_simple_reduction("gn_all", GNI_RED_ALL, NULL, a, axes);
}

// Elements that one result is made of.
static int64_t gni_reduced_count(const gn_shape *s, uint32_t set) {
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        if (set >> i & 1u) n *= s->dim[i];
    return n;
}

GPUNUM_API gn_array *gn_mean(gn_array *a, uint32_t axes) {
    gn_context *g = gni_begin("gn_mean", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL, *total = NULL;
    uint32_t set = gni_axes(g, "gn_mean", axes, a->shape.rank);
    if (set != ~0u && gni_real_only(g, "gn_mean", &a, 1)) {
        gn_dtype t = gni_is_float(a->dtype) ? a->dtype : GN_F32;
        // The sum of many float16 leaves their range long before the mean does.
        gn_dtype acc = gni_is_float(a->dtype) ? (t == GN_F64 ? GN_F64 : GN_F32) : GN_I64;
        total = gni_reduce_axes(g, "gn_mean", GNI_RED_SUM, a, acc, acc, set, (axes & GN_KEEP) != 0);
        if (total != NULL) {
            gn_array *src[2];
            double konst[2] = {0.0, 0.0};
            src[0] = total;
            src[1] = NULL;
            konst[1] = (double)gni_reduced_count(&a->shape, set);
            gn_dtype div = acc == GN_I64 ? GN_F64 : acc;
            gn_array *q = gni_apply(g, "gn_mean", GNI_OP_DIV, div, div, src, konst, 2);
            if (q != NULL && div != t) {
                y = gni_apply(g, "gn_mean", GNI_OP_CAST, div, t, &q, NULL, 1);
                gni_unref(g, q);
            } else {
                y = q;
            }
            gni_unref(g, total);
        }
        gni_record_reduction(g, y, "gn_mean", gni_back_mean, a, set, axes);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_var(gn_array *a, uint32_t axes, int ddof) {
    gn_context *g = gni_begin("gn_var", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    uint32_t set = gni_axes(g, "gn_var", axes, a->shape.rank);
    gn_scope_begin(g);
    if (set != ~0u && gni_real_only(g, "gn_var", &a, 1)) {
        gn_dtype t = gni_is_float(a->dtype) ? a->dtype : GN_F32;
        gn_array *x = t == GN_F16 || t == GN_BF16 || t != a->dtype ? gn_cast(a, t == GN_F64 ? t : GN_F32) : a;
        gn_array *centred = gn_square(gn_sub(x, gn_mean(x, axes | GN_KEEP)));
        double n = (double)gni_reduced_count(&a->shape, set) - (double)ddof;
        y = gn_div_s(gn_sum(centred, axes), n > 0.0 ? n : 0.0);
        if (gn_dtype_of(y) != t) y = gn_cast(y, t);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_std(gn_array *a, uint32_t axes, int ddof) {
    gn_context *g = gni_begin("gn_std", &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    return gni_end_scope(g, gn_sqrt(gn_var(a, axes, ddof)));
}

GPUNUM_API gn_array *gn_norm(gn_array *a, uint32_t axes) {
    gn_context *g = gni_begin("gn_norm", &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    gn_array *x = a->dtype == GN_F32 || a->dtype == GN_F64 ? a : gn_cast(a, GN_F32);
    gn_array *y = gn_sqrt(gn_sum(gn_square(x), axes));
    if (gni_is_float(a->dtype) && gn_dtype_of(y) != a->dtype) y = gn_cast(y, a->dtype);
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_count_nonzero(gn_array *a, uint32_t axes) {
    gn_context *g = gni_begin("gn_count_nonzero", &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    gn_array *truth = a->dtype == GN_BOOL ? a : gn_ne_s(a, 0.0);
    return gni_end_scope(g, gn_sum(truth, axes));
}

static gn_array *gni_arg_reduction(const char *fn, gni_reduction op, gn_array *a, int axis) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    uint32_t set = (1u << a->shape.rank) - 1u;
    if (axis != GN_FLAT) {
        int at = gni_axis(g, fn, axis, a->shape.rank);
        set = at < 0 ? ~0u : 1u << at;
    }
    if (set != ~0u && gni_real_only(g, fn, &a, 1) && gni_not_empty(g, fn, a, set)) {
        if (gni_reduced_count(&a->shape, set) > INT32_MAX)
            gni_fail(g, GN_ERROR_SHAPE, "%s: more than 2^31 - 1 elements to choose from", fn);
        else
            y = gni_reduce_axes(g, fn, op, a, a->dtype, GN_I32, set, false);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_argmin(gn_array *a, int axis) {
    return gni_arg_reduction("gn_argmin", GNI_RED_ARGMIN, a, axis);
}
GPUNUM_API gn_array *gn_argmax(gn_array *a, int axis) {
    return gni_arg_reduction("gn_argmax", GNI_RED_ARGMAX, a, axis);
}

// ---- softmax and its relatives

// Over the last axis of `a`, which is float; logsumexp drops that axis.
static gn_array *gni_softmax_last(gn_context *g, const char *fn, gni_softmax_kind kind, gn_array *a) {
    gn_array *x = gni_contiguous(g, a);
    if (x == NULL) return NULL;
    gn_shape shape = a->shape;
    if (kind == GNI_LOGSUMEXP) shape.dim[--shape.rank] = 0;
    gn_array *y = gni_array_new(g, a->dtype, &shape);
    if (y != NULL) y->buf = gni_buffer_new(g, (uint64_t)gni_elements(&shape) * gn_dtype_size(a->dtype));
    bool ok = y != NULL && y->buf != NULL;
    if (ok && kind == GNI_LOGSUMEXP && a->shape.dim[a->shape.rank - 1] == 0) { // of nothing
        gni_unref(g, x);
        gni_unref(g, y);
        return gni_const(g, a->dtype, &shape, -GNI_INF);
    }
    if (ok) {
        gni_softmax s;
        memset(&s, 0, sizeof s);
        y->maker = fn;
        s.kind = kind;
        s.n = a->shape.dim[a->shape.rank - 1];
        s.rows = s.n > 0 ? gni_elements(&a->shape) / s.n : gni_elements(&shape);
        s.row_stride = s.n;
        s.in.buf = x->buf;
        s.in.dtype = a->dtype;
        s.in.offset = x->offset;
        s.out.buf = y->buf;
        s.out.dtype = a->dtype;
        ok = gni_run(g, GNI_JOB_SOFTMAX, &s, y);
    }
    gni_unref(g, x);
    if (ok) return y;
    gni_unref(g, y);
    return NULL;
}

static gn_array *gni_softmax_axis(const char *fn, gni_softmax_kind kind, gni_backward_fn backward, gn_array *a,
                                  int axis) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    gn_array *y = NULL;
    int at = gni_axis(g, fn, axis, a->shape.rank);
    if (at >= 0 && gni_real_only(g, fn, &a, 1)) {
        g->no_grad++; // recorded as one op
        gn_array *x = gni_is_float(a->dtype) ? a : gn_cast(a, GN_F32);
        bool last = at == a->shape.rank - 1;
        gn_array *moved = last ? x : gn_move_axis(x, at, -1);
        if (moved != NULL) {
            gn_array *result = gni_softmax_last(g, fn, kind, moved);
            result = gni_adopt(g, result);
            y = last || result == NULL ? result : gn_move_axis(result, -1, at);
        }
        g->no_grad--;
        if (y != NULL && gni_tracks(g, &a, 1)) {
            gni_node *node = gni_record(g, y, fn, backward, &a, 1);
            if (node != NULL) node->param[0] = at;
        }
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_softmax(gn_array *a, int axis) {
    return gni_softmax_axis("gn_softmax", GNI_SOFTMAX, gni_back_softmax, a, axis);
}
GPUNUM_API gn_array *gn_log_softmax(gn_array *a, int axis) {
    return gni_softmax_axis("gn_log_softmax", GNI_LOG_SOFTMAX, gni_back_log_softmax, a, axis);
}

GPUNUM_API gn_array *gn_logsumexp(gn_array *a, uint32_t axes) {
    gn_context *g = gni_begin("gn_logsumexp", &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    gn_array *y = NULL;
    uint32_t set = gni_axes(g, "gn_logsumexp", axes, a->shape.rank);
    if (set != ~0u && gni_real_only(g, "gn_logsumexp", &a, 1)) {
        g->no_grad++;
        gn_array *x = gni_is_float(a->dtype) ? a : gn_cast(a, GN_F32);
        // Reduced axes to the back, as one.
        int order[GN_MAX_RANK], n = 0;
        gn_shape flat = gni_reduced_shape(&a->shape, set, false);
        for (int i = 0; i < a->shape.rank; i++)
            if (!(set >> i & 1u)) order[n++] = i;
        for (int i = 0; i < a->shape.rank; i++)
            if (set >> i & 1u) order[n++] = i;
        gn_array *moved = a->shape.rank > 0 ? gn_permute_axes(x, order, n) : x;
        flat.dim[flat.rank++] = gni_reduced_count(&a->shape, set);
        gn_array *rows = gn_reshape(moved, flat);
        gn_array *result = rows != NULL ? gni_softmax_last(g, "gn_logsumexp", GNI_LOGSUMEXP, rows) : NULL;
        result = gni_adopt(g, result);
        gn_shape shape = gni_reduced_shape(&a->shape, set, (axes & GN_KEEP) != 0);
        y = result != NULL && (axes & GN_KEEP) ? gn_reshape(result, shape) : result;
        g->no_grad--;
        gni_record_reduction(g, y, "gn_logsumexp", gni_back_logsumexp, a, set, axes);
    }
    return gni_end_scope(g, y);
}

// ------------------------------------------------------------------------------------------
// >>matmul
// The public matrix product: NumPy's shapes, dtypes and broadcasting turned into one job.

// Dtype the product is computed in; operands of other dtypes are cast to it first.
static gn_dtype gni_matmul_dtype(gn_dtype t) {
    if (gni_is_float(t) || t == GN_I32 || t == GN_I64) return t;
    return t == GN_U32 ? GN_I64 : GN_I32;
}

static bool gni_matmul_misfit(gn_context *g, const char *fn, const gn_array *a, const gn_array *b, const char *why) {
    char ta[200], tb[200];
    gni_fail(g, GN_ERROR_SHAPE, "%s: %s x %s%s", fn, gni_shape_text(ta, sizeof ta, &a->shape),
             gni_shape_text(tb, sizeof tb, &b->shape), why);
    return false;
}

// Shapes of the job, with 1-d operands seen as a row and a column. False after gni_fail.
static bool gni_matmul_shapes(gn_context *g, const char *fn, const gn_array *a, const gn_array *b, gni_matmul *m,
                              gn_shape *out) {
    int ra = a->shape.rank, rb = b->shape.rank;
    if (ra == 0 || rb == 0) {
        return gni_matmul_misfit(g, fn, a, b, ": a 0-d operand; use gn_mul");
    }
    m->m = ra > 1 ? a->shape.dim[ra - 2] : 1;
    m->k = a->shape.dim[ra - 1];
    m->n = rb > 1 ? b->shape.dim[rb - 1] : 1;
    int64_t kb = rb > 1 ? b->shape.dim[rb - 2] : b->shape.dim[0];
    if (m->k != kb) {
        char why[100];
        snprintf(why, sizeof why, ": inner dimensions %lld and %lld differ", (long long)m->k, (long long)kb);
        return gni_matmul_misfit(g, fn, a, b, why);
    }
    m->a_rs = ra > 1 ? a->stride[ra - 2] : 0;
    m->a_cs = a->stride[ra - 1];
    m->b_rs = rb > 1 ? b->stride[rb - 2] : b->stride[0];
    m->b_cs = rb > 1 ? b->stride[rb - 1] : 0;
    gn_shape batch_a = gn_shape_from(GNI_MAX(ra - 2, 0), a->shape.dim);
    gn_shape batch_b = gn_shape_from(GNI_MAX(rb - 2, 0), b->shape.dim);
    if (!gni_broadcast(&batch_a, &batch_b, out))
        return gni_matmul_misfit(g, fn, a, b, ": batch dimensions do not broadcast");
    m->batch_rank = out->rank;
    for (int i = 0; i < out->rank; i++) {
        int ia = i - out->rank + batch_a.rank, ib = i - out->rank + batch_b.rank;
        m->batch_dim[i] = out->dim[i];
        m->a_batch[i] = ia >= 0 && batch_a.dim[ia] != 1 ? a->stride[ia] : 0;
        m->b_batch[i] = ib >= 0 && batch_b.dim[ib] != 1 ? b->stride[ib] : 0;
    }
    if (ra > 1) out->dim[out->rank++] = m->m;
    if (rb > 1) out->dim[out->rank++] = m->n;
    return true;
}

// Batches that both operands step through evenly become one; a batch of row blocks over one matrix b
// becomes more rows.
static void gni_matmul_merge(gni_matmul *m) {
    int out = 0;
    for (int i = 0; i < m->batch_rank; i++) {
        if (m->batch_dim[i] == 1) continue;
        if (out > 0 && m->a_batch[out - 1] == m->a_batch[i] * m->batch_dim[i] &&
            m->b_batch[out - 1] == m->b_batch[i] * m->batch_dim[i]) {
            m->batch_dim[out - 1] *= m->batch_dim[i];
            m->a_batch[out - 1] = m->a_batch[i];
            m->b_batch[out - 1] = m->b_batch[i];
            continue;
        }
        m->batch_dim[out] = m->batch_dim[i];
        m->a_batch[out] = m->a_batch[i];
        m->b_batch[out] = m->b_batch[i];
        out++;
    }
    m->batch_rank = out;
    if (out > 0 && m->b_batch[out - 1] == 0 && (m->a_batch[out - 1] == m->m * m->a_rs || m->m == 1)) {
        if (m->m == 1) m->a_rs = m->a_batch[out - 1];
        m->m *= m->batch_dim[out - 1];
        m->batch_rank = out - 1;
    }
}

// a x b (+ bias along n, then relu when act is 1). Operands have the same, supported dtype.
static gn_array *gni_matmul_run(gn_context *g, const char *fn, gn_array *a, gn_array *b, gn_array *bias, int act) {
    gni_matmul m;
    gn_shape shape;
    memset(&m, 0, sizeof m);
    if (!gni_materialize(g, a) || !gni_materialize(g, b)) return NULL;
    if (bias != NULL && !gni_materialize(g, bias)) return NULL;
    if (!gni_matmul_shapes(g, fn, a, b, &m, &shape)) return NULL;
    if (!gni_shape_ok(g, fn, a->dtype, &shape)) return NULL;
    gn_array *y = gni_array_new(g, a->dtype, &shape);
    if (y == NULL) return NULL;
    y->maker = fn;
    y->buf = gni_buffer_new(g, (uint64_t)gni_elements(&shape) * gn_dtype_size(a->dtype));
    if (y->buf == NULL) {
        gni_unref(g, y);
        return NULL;
    }
    gni_matmul_merge(&m);
    m.a.buf = a->buf;
    m.a.offset = a->offset;
    m.b.buf = b->buf;
    m.b.offset = b->offset;
    m.c.buf = y->buf;
    m.a.dtype = m.b.dtype = m.c.dtype = a->dtype;
    m.act = act;
    if (bias != NULL) {
        m.bias.buf = bias->buf;
        m.bias.offset = bias->offset;
        m.bias.dtype = bias->dtype;
    }
    if (!gni_run(g, GNI_JOB_MATMUL, &m, y)) {
        gni_unref(g, y);
        return NULL;
    }
    return y;
}

// gn_matmul's work under another name, with an optional fused bias of shape (n) and relu. Not recorded.
static gn_array *gni_matmul_bias(gn_context *g, const char *fn, gn_array *a, gn_array *b, gn_array *bias,
                                 int act) {
    gn_array *in[2];
    in[0] = a;
    in[1] = b;
    if (!gni_real_only(g, fn, in, 2)) return NULL;
    gn_dtype result = gn_promote(a->dtype, b->dtype), t = gni_matmul_dtype(result);
    for (int i = 0; i < 2; i++) {
        if (in[i]->dtype == t) in[i]->refs++;
        else in[i] = gni_apply(g, fn, GNI_OP_CAST, in[i]->dtype, t, &in[i], NULL, 1);
    }
    gn_array *y = NULL;
    if (in[0] != NULL && in[1] != NULL) y = gni_matmul_run(g, fn, in[0], in[1], bias, act);
    gni_unref(g, in[0]);
    gni_unref(g, in[1]);
    if (y != NULL && t != result) {
        gn_array *cast = gni_apply(g, fn, GNI_OP_CAST, t, result, &y, NULL, 1);
        gni_unref(g, y);
        y = cast;
    }
    return y;
}

GPUNUM_API gn_array *gn_matmul(gn_array *a, gn_array *b) {
    gn_array *in[2];
    in[0] = a;
    in[1] = b;
    gn_context *g = gni_begin("gn_matmul", in, 2);
    if (g == NULL) return NULL;
    gn_array *y = gni_matmul_bias(g, "gn_matmul", a, b, NULL, 0);
    if (y != NULL && gni_tracks(g, in, 2)) gni_record(g, y, "gn_matmul", gni_back_matmul, in, 2);
    return gni_end(g, y);
}

// ------------------------------------------------------------------------------------------
// >>fft
// The public transforms: dtypes, shapes and norms turned into one job for each axis; cosine and sine
// transforms, complex parts and convolutions as compositions of public calls, so that they differentiate.

static gn_array *gni_unbroadcast(gn_array *gx, const gn_shape *shape);
static gn_array *gni_scatter_slice(gn_context *g, gn_array *x, const gn_shape *s, int axis, int64_t start,
                                   int64_t step);

static gn_dtype gni_complex_of(gn_dtype t) { return t == GN_F64 || t == GN_C128 ? GN_C128 : GN_C64; }
static gn_dtype gni_part_of(gn_dtype t) { return t == GN_F64 || t == GN_C128 ? GN_F64 : GN_F32; }

// ---- complex numbers and their parts

static bool gni_back_real(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *zero = gn_scalar(g, gy->dtype, 0.0);
    gx[0] = node->param[0] == 0 ? gn_complex(gy, zero) : gn_complex(zero, gy);
    return true;
}

static bool gni_back_complex(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    for (int i = 0; i < 2; i++)
        if (gni_wanted(node, i))
            gx[i] = gni_unbroadcast(i == 0 ? gn_real(gy) : gn_imag(gy), &node->in[i]->shape);
    return true;
}

// The real (0) or imaginary (1) parts as a view.
static gn_array *gni_part(const char *fn, gn_array *a, int which) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    int64_t stride[GN_MAX_RANK];
    for (int i = 0; i < a->shape.rank; i++) stride[i] = 2 * a->stride[i];
    gn_array *y = gni_array_view(g, a, &a->shape, stride, 0);
    if (y != NULL) {
        y->dtype = gni_part_of(a->dtype);
        y->offset = 2 * a->offset + which;
        y->maker = fn;
        gni_node *node = gni_tracks(g, &a, 1) ? gni_record(g, y, fn, gni_back_real, &a, 1) : NULL;
        if (node != NULL) node->param[0] = which;
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_real(gn_array *a) {
    if (!gni_known(a) || gni_is_complex(a->dtype)) return gni_part("gn_real", a, 0);
    return gn_reshape(a, a->shape);
}

GPUNUM_API gn_array *gn_imag(gn_array *a) {
    if (!gni_known(a) || gni_is_complex(a->dtype)) return gni_part("gn_imag", a, 1);
    return gn_zeros_like(a);
}

// One program that writes both parts, of dtype t; what is pending is taken in.
static bool gni_complex_program(gn_context *g, gni_builder *b, gn_array *const *in, gn_array *y, gn_dtype t) {
    gni_build_begin(b, g, &y->shape, t == GN_F64 || gni_is_wide(in[0]->dtype) || gni_is_wide(in[1]->dtype));
    for (int i = 0; i < 2; i++) {
        bool pending = gni_is_pending(in[i]) && !gni_is_const(in[i]);
        if (pending && in[i]->expr->wide != b->map.program.wide && !gni_materialize(g, in[i])) return false;
    }
    gni_program *p = &b->map.program;
    for (int i = 0; i < 2; i++) {
        gni_operand *o = &b->map.out[i];
        p->out_reg[i] = gni_build_convert(b, gni_build_value(b, in[i]), in[i]->dtype, t);
        p->out_dtype[i] = t;
        o->buf = y->buf;
        o->dtype = t;
        o->offset = i;
        for (int d = 0; d < y->shape.rank; d++) o->stride[d] = 2 * y->stride[d];
    }
    p->n_out = 2;
    gni_build_finish(p);
    return true;
}

static bool gni_complex_fill(gn_context *g, gn_array *const *in, gn_array *y, gn_dtype t) {
    gni_builder b;
    y->buf = gni_buffer_new(g, (uint64_t)gni_elements(&y->shape) * gn_dtype_size(y->dtype));
    if (y->buf == NULL || !gni_complex_program(g, &b, in, y, t)) return false;
    if (b.full && (!gni_materialize(g, in[0]) || !gni_materialize(g, in[1]) || !gni_complex_program(g, &b, in, y, t)))
        return false;
    for (int i = 0; i < b.map.program.n_in; i++) b.map.in[i].buf->refs++;
    gni_map_merge(&b.map);
    bool ok = gni_run(g, GNI_JOB_MAP, &b.map, y);
    for (int i = 0; i < b.map.program.n_in; i++) gni_buffer_release(g, b.map.in[i].buf);
    return ok;
}

GPUNUM_API gn_array *gn_complex(gn_array *re, gn_array *im) {
    gn_array *in[2], *y = NULL;
    gn_shape shape;
    in[0] = re;
    in[1] = im;
    gn_context *g = gni_begin("gn_complex", in, 2);
    if (g == NULL) return NULL;
    char ta[200], tb[200];
    if (!gni_broadcast(&re->shape, &im->shape, &shape)) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_complex: shapes %s and %s do not broadcast",
                 gni_shape_text(ta, sizeof ta, &re->shape), gni_shape_text(tb, sizeof tb, &im->shape));
    } else if (gni_real_only(g, "gn_complex", in, 2)) {
        gn_dtype t = re->dtype == GN_F64 || im->dtype == GN_F64 ? GN_F64 : GN_F32;
        y = gni_array_new(g, gni_complex_of(t), &shape);
        if (y != NULL) y->maker = "gn_complex";
        if (y != NULL && !gni_complex_fill(g, in, y, t)) {
            gni_unref(g, y);
            y = NULL;
        }
        if (y != NULL && gni_tracks(g, in, 2)) gni_record(g, y, "gn_complex", gni_back_complex, in, 2);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_conj(gn_array *a) {
    gn_context *g = gni_begin("gn_conj", &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    gn_array *y = gni_is_complex(a->dtype) ? gn_complex(gn_real(a), gn_neg(gn_imag(a))) : gn_reshape(a, a->shape);
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_angle(gn_array *a) {
    gn_context *g = gni_begin("gn_angle", &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    return gni_end_scope(g, gn_atan2(gn_imag(a), gn_real(a)));
}

// Sum and product of arrays of which one or both may be complex.
static gn_array *gni_complex_add(gn_array *a, gn_array *b) {
    return gn_complex(gn_add(gn_real(a), gn_real(b)), gn_add(gn_imag(a), gn_imag(b)));
}

static gn_array *gni_complex_mul(gn_array *a, gn_array *b) {
    gn_array *ar = gn_real(a), *ai = gn_imag(a), *br = gn_real(b), *bi = gn_imag(b);
    return gn_complex(gn_sub(gn_mul(ar, br), gn_mul(ai, bi)), gn_add(gn_mul(ar, bi), gn_mul(ai, br)));
}

// ---- one axis

static bool gni_back_fft(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);

// The transform as a public call; `axis` counts from 0, n is the number of points.
static gn_array *gni_fft_axis(const char *fn, gni_fft_kind kind, bool inverse, int64_t n, int axis, double scale,
                              gn_array *a) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    gn_shape shape = a->shape;
    gn_dtype real = gni_part_of(a->dtype);
    shape.dim[axis] = kind == GNI_FFT_R2C ? n / 2 + 1 : n;
    gn_dtype t = kind == GNI_FFT_C2R ? real : gni_complex_of(a->dtype);
    gni_fft f;
    memset(&f, 0, sizeof f);
    if (gni_shape_ok(g, fn, t, &shape) && gni_materialize(g, a)) y = gni_array_new(g, t, &shape);
    if (y == NULL) return gni_end(g, NULL);
    y->maker = fn;
    f.kind = kind;
    f.inverse = inverse;
    f.n = n;
    f.n_in = GNI_MIN(a->shape.dim[axis], kind == GNI_FFT_C2R ? n / 2 + 1 : n);
    f.scale = scale;
    f.in.buf = a->buf;
    f.in.dtype = a->dtype;
    f.in.offset = a->offset;
    f.in_step = a->stride[axis];
    f.out.dtype = t;
    f.out_step = y->stride[axis];
    for (int i = 0; i < shape.rank; i++) {
        if (i == axis) continue;
        f.dim[f.rank] = shape.dim[i];
        f.in.stride[f.rank] = a->stride[i];
        f.out.stride[f.rank++] = y->stride[i];
    }
    y->buf = gni_buffer_new(g, (uint64_t)gni_elements(&shape) * gn_dtype_size(t));
    f.out.buf = y->buf;
    a->buf->refs++;
    bool ok = y->buf != NULL && gni_run(g, GNI_JOB_FFT, &f, y);
    gni_buffer_release(g, f.in.buf);
    if (!ok) {
        gni_unref(g, y);
        return gni_end(g, NULL);
    }
    gni_node *node = gni_tracks(g, &a, 1) ? gni_record(g, y, fn, gni_back_fft, &a, 1) : NULL;
    if (node != NULL) {
        node->param[0] = (int64_t)kind;
        node->param[1] = inverse;
        node->param[2] = n;
        node->param[3] = axis;
        node->real[0] = scale;
    }
    return gni_end(g, y);
}

// The axis cut or padded with zeros.
static gn_array *gni_resize_axis(gn_array *a, int axis, int64_t n) {
    if (a == NULL || a->shape.dim[axis] == n) return a;
    if (a->shape.dim[axis] > n) return gn_slice(a, axis, 0, n, 1);
    gn_shape s = a->shape;
    s.dim[axis] = n;
    return gni_scatter_slice(a->ctx, a, &s, axis, 0, 1);
}

// A vector along `axis` of an array of that rank.
static gn_array *gni_along(gn_array *v, int axis, int rank) {
    if (v == NULL) return NULL;
    gn_shape s = gn_shape_from(1, v->shape.dim);
    for (int i = axis + 1; i < rank; i++) s.dim[s.rank++] = 1;
    return gn_reshape(v, s);
}

// Every element of a real signal takes part in the spectrum two times, but for the first and, for even
// n, the last number of it.
static gn_array *gni_half_weights(gn_context *g, gn_dtype t, int64_t n) {
    gn_shape s = gn_shape_from(1, &n);
    void *data = NULL;
    s.dim[0] = n / 2 + 1;
    if (!gni_begin_context("gn_irfft", g)) return NULL;
    gn_array *w = gni_array_filled(g, t, &s, &data);
    for (int64_t k = 0; w != NULL && k <= n / 2; k++) gni_store_double(t, data, k, k == 0 || 2 * k == n ? 1.0 : 2.0);
    return gni_end(g, w);
}

// The adjoint: the conjugate transform of gy.
static bool gni_back_fft(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gni_fft_kind kind = (gni_fft_kind)node->param[0];
    bool inverse = node->param[1] == 0;
    int64_t n = node->param[2];
    int axis = (int)node->param[3];
    gn_array *a = node->in[0], *y;
    if (kind == GNI_FFT_C2R) {
        y = gni_fft_axis(node->name, GNI_FFT_R2C, inverse, n, axis, node->real[0], gy);
        gn_array *w = gni_along(gni_half_weights(g, gy->dtype, n), axis, a->shape.rank);
        y = gn_complex(gn_mul(gn_real(y), w), gn_mul(gn_imag(y), w));
    } else {
        y = gni_fft_axis(node->name, GNI_FFT_C2C, inverse, n, axis, node->real[0], gy);
    }
    y = gni_resize_axis(y, axis, a->shape.dim[axis]);
    gx[0] = gni_is_complex(a->dtype) ? y : gn_real(y);
    return true;
}

static double gni_fft_scale(gn_fft_norm norm, bool inverse, double n) {
    if (norm == GN_FFT_ORTHO) return 1.0 / sqrt(n);
    return (norm == GN_FFT_FORWARD) != inverse ? 1.0 / n : 1.0;
}

// Input as the transforms take it: float32, float64, complex64 or complex128.
static gn_array *gni_fft_input(gn_array *a, gni_fft_kind kind) {
    if (a == NULL) return NULL;
    bool ready = a->dtype == GN_F32 || a->dtype == GN_F64 || gni_is_complex(a->dtype);
    gn_array *x = ready ? a : gn_cast(a, GN_F32);
    if (kind == GNI_FFT_C2R && x != NULL && !gni_is_complex(x->dtype))
        x = gn_complex(x, gn_scalar(x->ctx, x->dtype, 0.0));
    return x;
}

// Checks what the user gave; false after gni_fail. *n becomes the number of points.
static bool gni_fft_checked(gn_context *g, const char *fn, gni_fft_kind kind, const gn_array *a, int64_t *n, int *axis,
                            gn_fft_norm norm) {
    if (a->shape.rank == 0) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: an array of rank 0 has no axis", fn);
        return false;
    }
    *axis = gni_axis(g, fn, *axis, a->shape.rank);
    if (*axis < 0) return false;
    int64_t length = a->shape.dim[*axis];
    if (*n == 0) *n = kind == GNI_FFT_C2R ? 2 * (length - 1) : length;
    if (*n < 1) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %lld is not a number of points", fn, (long long)*n);
        return false;
    }
    if ((unsigned)norm > GN_FFT_FORWARD) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %d is not a gn_fft_norm", fn, (int)norm);
        return false;
    }
    if (kind == GNI_FFT_R2C && gni_is_complex(a->dtype)) {
        gni_fail(g, GN_ERROR_DTYPE, "%s: the input must be real, it is %s", fn, gn_dtype_name(a->dtype));
        return false;
    }
    return true;
}

// `inverse` is the sign of the exponent, `backward` which of the two directions the norm takes it for.
static gn_array *gni_fft_one(const char *fn, gni_fft_kind kind, bool inverse, bool backward, gn_array *a, int64_t n,
                             int axis, gn_fft_norm norm) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    gn_array *y = NULL;
    if (gni_fft_checked(g, fn, kind, a, &n, &axis, norm))
        y = gni_fft_axis(fn, kind, inverse, n, axis, gni_fft_scale(norm, backward, (double)n), gni_fft_input(a, kind));
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_fft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_fft", GNI_FFT_C2C, false, false, a, n, axis, norm);
}
GPUNUM_API gn_array *gn_ifft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_ifft", GNI_FFT_C2C, true, true, a, n, axis, norm);
}
GPUNUM_API gn_array *gn_rfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_rfft", GNI_FFT_R2C, false, false, a, n, axis, norm);
}
GPUNUM_API gn_array *gn_irfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_irfft", GNI_FFT_C2R, true, true, a, n, axis, norm);
}
GPUNUM_API gn_array *gn_hfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_hfft", GNI_FFT_C2R, false, false, a, n, axis, norm);
}
GPUNUM_API gn_array *gn_ihfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_ihfft", GNI_FFT_R2C, true, true, a, n, axis, norm);
}

// ---- several axes

// Resolves axes and lengths; -1 after gni_fail, otherwise how many. `last` is the kind of the last one.
static int gni_fft_axes(gn_context *g, const char *fn, gni_fft_kind last, const gn_array *a, const int64_t *n,
                        const int *axes, int count, gn_fft_norm norm, int64_t *points, int *axis) {
    if (count == 0) count = a->shape.rank;
    if (count < 1 || count > a->shape.rank) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %d axes of an array of rank %d", fn, count, a->shape.rank);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        points[i] = n != NULL ? n[i] : 0;
        axis[i] = axes != NULL ? axes[i] : i - count;
        if (!gni_fft_checked(g, fn, i == count - 1 ? last : GNI_FFT_C2C, a, &points[i], &axis[i], norm)) return -1;
        for (int k = 0; k < i; k++) {
            if (axis[k] != axis[i]) continue;
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: axis %d is given more than once", fn, axis[i]);
            return -1;
        }
    }
    return count;
}

static gn_array *gni_fft_many(const char *fn, gni_fft_kind last, bool inverse, gn_array *a, const int64_t *n,
                              const int *axes, int count, gn_fft_norm norm) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    int64_t points[GN_MAX_RANK];
    int axis[GN_MAX_RANK];
    gn_array *y = NULL;
    count = gni_fft_axes(g, fn, last, a, n, axes, count, norm, points, axis);
    if (count > 0) {
        y = gni_fft_input(a, last);
        // The real side comes first on the way forward and last on the way back.
        for (int i = 0; i < count && y != NULL; i++) {
            int at = last == GNI_FFT_C2R ? i : count - 1 - i;
            double scale = gni_fft_scale(norm, inverse, (double)points[at]);
            gni_fft_kind kind = at == count - 1 ? last : GNI_FFT_C2C;
            y = gni_fft_axis(fn, kind, inverse, points[at], axis[at], scale, y);
        }
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_fftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm) {
    return gni_fft_many("gn_fftn", GNI_FFT_C2C, false, a, n, axes, count, norm);
}
GPUNUM_API gn_array *gn_ifftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm) {
    return gni_fft_many("gn_ifftn", GNI_FFT_C2C, true, a, n, axes, count, norm);
}
GPUNUM_API gn_array *gn_rfftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm) {
    return gni_fft_many("gn_rfftn", GNI_FFT_R2C, false, a, n, axes, count, norm);
}
GPUNUM_API gn_array *gn_irfftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm) {
    return gni_fft_many("gn_irfftn", GNI_FFT_C2R, true, a, n, axes, count, norm);
}
GPUNUM_API gn_array *gn_fft2(gn_array *a, gn_fft_norm norm) {
    return gni_fft_many("gn_fft2", GNI_FFT_C2C, false, a, NULL, NULL, 2, norm);
}
GPUNUM_API gn_array *gn_ifft2(gn_array *a, gn_fft_norm norm) {
    return gni_fft_many("gn_ifft2", GNI_FFT_C2C, true, a, NULL, NULL, 2, norm);
}

// ---- frequencies and shifts

static gn_array *gni_frequencies(const char *fn, gn_context *g, gn_dtype t, int64_t n, double d, bool half) {
    if (!gni_begin_context(fn, g)) return NULL;
    gn_array *y = NULL;
    void *data = NULL;
    if (n < 1 || !(d > 0.0 || d < 0.0)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %lld samples %g apart", fn, (long long)n, d);
    } else if (t != GN_F32 && t != GN_F64) {
        gni_fail(g, GN_ERROR_DTYPE, "%s: %s is neither float32 nor float64", fn, gn_dtype_name(t));
    } else {
        gn_shape s = gn_shape_from(1, &n);
        if (half) s.dim[0] = n / 2 + 1;
        y = gni_array_filled(g, t, &s, &data);
        for (int64_t i = 0; y != NULL && i < s.dim[0]; i++) {
            int64_t k = half || 2 * i < n ? i : i - n;
            gni_store_double(t, data, i, (double)k / ((double)n * d));
        }
    }
    if (y != NULL) y->maker = fn;
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_fftfreq(gn_context *g, gn_dtype t, int64_t n, double d) {
    return gni_frequencies("gn_fftfreq", g, t, n, d, false);
}
GPUNUM_API gn_array *gn_rfftfreq(gn_context *g, gn_dtype t, int64_t n, double d) {
    return gni_frequencies("gn_rfftfreq", g, t, n, d, true);
}

static gn_array *gni_shift(const char *fn, gn_array *a, uint32_t axes, bool back) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    uint32_t set = gni_axes(g, fn, axes, a->shape.rank);
    gn_array *y = set == ~0u ? NULL : gn_reshape(a, a->shape);
    for (int i = 0; i < a->shape.rank && y != NULL; i++) {
        int64_t n = a->shape.dim[i], at = back ? n / 2 : n - n / 2; // what becomes element 0
        if (!(set >> i & 1u) || n < 2) continue;
        gn_array *part[2];
        part[0] = gn_slice(y, i, at, n, 1);
        part[1] = gn_slice(y, i, 0, at, 1);
        y = gn_concat(part, 2, i);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_fftshift(gn_array *a, uint32_t axes) { return gni_shift("gn_fftshift", a, axes, false); }
GPUNUM_API gn_array *gn_ifftshift(gn_array *a, uint32_t axes) { return gni_shift("gn_ifftshift", a, axes, true); }

// ---- cosine and sine transforms of the last axis

// Element k is the real (part 0) or imaginary part (1) of exp(-2 pi i (a k + b) / period) times scale.
static gn_array *gni_turns(gn_context *g, gn_dtype t, int64_t n, int64_t a, int64_t b, int64_t period, int part,
                           double scale) {
    gn_shape s = gn_shape_from(1, &n);
    void *data = NULL;
    if (!gni_begin_context("gn_dct", g)) return NULL;
    gn_array *y = gni_array_filled(g, t, &s, &data);
    for (int64_t k = 0; y != NULL && k < n; k++) {
        double re, im;
        gni_ft_turn(a * k + b, period, &re, &im);
        gni_store_double(t, data, k, scale * (part == 0 ? re : im));
    }
    return gni_end(g, y);
}

// The first and last elements of the last axis times factors.
static gn_array *gni_scale_ends(gn_array *x, double first, double last) {
    if (x == NULL || (first == 1.0 && last == 1.0)) return x;
    gn_context *g = x->ctx;
    int64_t n = x->shape.dim[x->shape.rank - 1];
    gn_shape s = gn_shape_from(1, &n);
    void *data = NULL;
    if (!gni_begin_context("gn_dct", g)) return NULL;
    gn_array *w = gni_array_filled(g, x->dtype, &s, &data);
    for (int64_t k = 0; w != NULL && k < n; k++)
        gni_store_double(x->dtype, data, k, k == 0 ? (n == 1 ? first * last : first) : k == n - 1 ? last : 1.0);
    return gn_mul(x, gni_end(g, w));
}

// Even elements, then the odd ones backwards; or the inverse of that order.
static gn_array *gni_fold_order(gn_context *g, int64_t n, bool back) {
    gn_shape s = gn_shape_from(1, &n);
    void *data = NULL;
    if (!gni_begin_context("gn_dct", g)) return NULL;
    gn_array *y = gni_array_filled(g, GN_I64, &s, &data);
    for (int64_t i = 0; y != NULL && i < n; i++) {
        int64_t even = (n + 1) / 2, from = i < even ? 2 * i : 2 * (n - 1 - i) + 1;
        ((int64_t *)data)[back ? from : i] = back ? i : from;
    }
    return gni_end(g, y);
}

// 2 sum x[j] cos(pi k (2 j + 1) / (2 n)), by a Fourier transform of n points (Makhoul 1980).
static gn_array *gni_dct_2(gn_context *g, gn_array *x, int64_t n) {
    int last = x->shape.rank - 1;
    gn_array *v = gn_take(x, gni_fold_order(g, n, false), last);
    gn_array *f = gni_fft_axis("gn_dct", GNI_FFT_C2C, false, n, last, 2.0, v);
    return gn_sub(gn_mul(gn_real(f), gni_turns(g, x->dtype, n, 1, 0, 4 * n, 0, 1.0)),
                  gn_mul(gn_imag(f), gni_turns(g, x->dtype, n, 1, 0, 4 * n, 1, 1.0)));
}

// x[0] + 2 sum x[j] cos(pi (2 k + 1) j / (2 n)), the same backwards.
static gn_array *gni_dct_3(gn_context *g, gn_array *x, int64_t n) {
    int last = x->shape.rank - 1;
    int64_t h = n / 2;
    gn_array *a = gn_slice(x, last, 0, h + 1, 1);
    if (n > 1) {
        gn_array *c = gni_turns(g, x->dtype, h + 1, 1, 0, 4 * n, 0, 1.0);
        gn_array *s = gni_turns(g, x->dtype, h + 1, 1, 0, 4 * n, 1, -1.0);
        // x[n - k], and 0 for k = 0
        gn_array *b = gn_flip(gn_slice(x, last, n - h, n, 1), GN_AXIS(-1));
        gn_shape shape = a != NULL ? a->shape : gn_shape_from(0, NULL);
        if (a == NULL || b == NULL) return NULL;
        b = gni_scatter_slice(g, b, &shape, last, 1, 1);
        a = gn_complex(gn_add(gn_mul(a, c), gn_mul(b, s)), gn_sub(gn_mul(a, s), gn_mul(b, c)));
    } else {
        a = gn_complex(a, gn_scalar(g, x->dtype, 0.0));
    }
    gn_array *v = gni_fft_axis("gn_dct", GNI_FFT_C2R, true, n, last, 1.0, a);
    return gn_take(v, gni_fold_order(g, n, true), last);
}

// x[0] + (-1)^k x[n-1] + 2 sum x[j] cos(pi k j / (n - 1)): an even sequence's transform.
static gn_array *gni_dct_1(gn_context *g, gn_array *x, int64_t n) {
    int last = x->shape.rank - 1;
    gn_array *part[2];
    GNI_UNUSED(g);
    part[0] = x;
    part[1] = gn_flip(gn_slice(x, last, 1, n - 1, 1), GN_AXIS(-1));
    gn_array *even = n > 2 ? gn_concat(part, 2, last) : x;
    return gn_real(gni_fft_axis("gn_dct", GNI_FFT_R2C, false, 2 * (n - 1), last, 1.0, even));
}

// 2 sum x[j] cos(pi (2 k + 1) (2 j + 1) / (4 n)), by a transform of 2 n points.
static gn_array *gni_dct_4(gn_context *g, gn_array *x, int64_t n) {
    int last = x->shape.rank - 1;
    gn_array *z = gn_complex(gn_mul(x, gni_turns(g, x->dtype, n, 1, 0, 4 * n, 0, 1.0)),
                             gn_mul(x, gni_turns(g, x->dtype, n, 1, 0, 4 * n, 1, 1.0)));
    gn_array *f = gn_slice(gni_fft_axis("gn_dct", GNI_FFT_C2C, false, 2 * n, last, 2.0, z), last, 0, n, 1);
    return gn_sub(gn_mul(gn_real(f), gni_turns(g, x->dtype, n, 2, 1, 8 * n, 0, 1.0)),
                  gn_mul(gn_imag(f), gni_turns(g, x->dtype, n, 2, 1, 8 * n, 1, 1.0)));
}

// 2 sum x[j] sin(pi (k + 1) (j + 1) / (n + 1)): an odd sequence's transform.
static gn_array *gni_dst_1(gn_context *g, gn_array *x, int64_t n) {
    int last = x->shape.rank - 1;
    gn_array *part[4];
    gn_shape s = x->shape;
    s.dim[last] = 1;
    part[0] = part[2] = gn_zeros(g, x->dtype, s);
    part[1] = x;
    part[3] = gn_neg(gn_flip(x, GN_AXIS(-1)));
    gn_array *f = gni_fft_axis("gn_dst", GNI_FFT_R2C, false, 2 * (n + 1), last, -1.0, gn_concat(part, 4, last));
    return gn_slice(gn_imag(f), last, 1, n + 1, 1);
}

// 1, -1, 1, ... on the last axis.
static gn_array *gni_alternate(gn_context *g, gn_array *x, int64_t n) {
    return x == NULL ? NULL : gn_mul(x, gni_turns(g, x->dtype, n, 1, 0, 2, 0, 1.0));
}

static gn_array *gni_cosine(gn_context *g, gn_array *x, int type, int64_t n, bool sine) {
    gn_array *y;
    if (type == 1) return sine ? gni_dst_1(g, x, n) : gni_dct_1(g, x, n);
    if (type == 2) {
        y = gni_dct_2(g, sine ? gni_alternate(g, x, n) : x, n);
        return sine ? gn_flip(y, GN_AXIS(-1)) : y;
    }
    if (sine) x = gn_flip(x, GN_AXIS(-1));
    if (x == NULL) return NULL;
    y = type == 3 ? gni_dct_3(g, x, n) : gni_dct_4(g, x, n);
    return sine ? gni_alternate(g, y, n) : y;
}

// `type` is that of the sum that is computed; `backward` says how the norm counts it.
static gn_array *gni_trigonometric(const char *fn, gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm,
                                   bool sine, bool backward) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    gn_array *y = NULL;
    bool ok = gni_fft_checked(g, fn, GNI_FFT_R2C, a, &n, &axis, norm);
    if (ok && (type < 1 || type > 4)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: type %d is not in 1..4", fn, type);
    } else if (ok && type == 1 && !sine && n < 2) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: type 1 needs two points or more", fn);
    } else if (ok) {
        const bool ortho = norm == GN_FFT_ORTHO;
        const double root = sqrt(2.0), period = 2.0 * (double)(type != 1 ? n : sine ? n + 1 : n - 1);
        gn_array *x = gni_resize_axis(gni_fft_input(a, GNI_FFT_R2C), axis, n);
        x = gn_move_axis(x, axis, -1);
        // The matrix is orthogonal once its edges are scaled.
        if (ortho && type == 1 && !sine) x = gni_scale_ends(x, root, root);
        if (ortho && type == 3) x = gni_scale_ends(x, sine ? 1.0 : root, sine ? root : 1.0);
        if (x != NULL) y = gni_cosine(g, x, type, n, sine);
        if (ortho && type == 1 && !sine) y = gni_scale_ends(y, 1.0 / root, 1.0 / root);
        if (ortho && type == 2) y = gni_scale_ends(y, sine ? 1.0 : 1.0 / root, sine ? 1.0 / root : 1.0);
        double scale = gni_fft_scale(norm, backward, period);
        if (scale != 1.0) y = gn_mul_s(y, scale);
        y = gn_move_axis(y, -1, axis);
    }
    return gni_end_scope(g, y);
}

static int gni_inverse_type(int type) { return type == 2 ? 3 : type == 3 ? 2 : type; }

GPUNUM_API gn_array *gn_dct(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm) {
    return gni_trigonometric("gn_dct", a, type, n, axis, norm, false, false);
}
GPUNUM_API gn_array *gn_idct(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm) {
    return gni_trigonometric("gn_idct", a, gni_inverse_type(type), n, axis, norm, false, true);
}
GPUNUM_API gn_array *gn_dst(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm) {
    return gni_trigonometric("gn_dst", a, type, n, axis, norm, true, false);
}
GPUNUM_API gn_array *gn_idst(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm) {
    return gni_trigonometric("gn_idst", a, gni_inverse_type(type), n, axis, norm, true, true);
}

// ---- convolution

#define GNI_CONV_DIRECT 32 // kernels of so many elements are summed directly

// The next length that transforms well.
static int64_t gni_fft_good_length(int64_t n) {
    int radix[64];
    while (gni_ft_factor(n, 16, radix) == 0 && n > 1) n++;
    return n;
}

// All overlaps by FFT; every axis.
static gn_array *gni_convolve_fft(gn_array *a, gn_array *b, const gn_shape *full) {
    int64_t n[GN_MAX_RANK] = {0};
    int rank = full->rank;
    bool cplx = gni_is_complex(a->dtype) || gni_is_complex(b->dtype);
    for (int i = 0; i < rank; i++) n[i] = gni_fft_good_length(full->dim[i]);
    gni_fft_kind in = cplx ? GNI_FFT_C2C : GNI_FFT_R2C, out = cplx ? GNI_FFT_C2C : GNI_FFT_C2R;
    gn_array *fa = gni_fft_many("gn_convolve", in, false, a, n, NULL, rank, GN_FFT_BACKWARD);
    gn_array *fb = gni_fft_many("gn_convolve", in, false, b, n, NULL, rank, GN_FFT_BACKWARD);
    gn_array *y = gni_fft_many("gn_convolve", out, true, gni_complex_mul(fa, fb), n, NULL, rank, GN_FFT_BACKWARD);
    for (int i = 0; i < rank; i++) y = gn_slice(y, i, 0, full->dim[i], 1);
    return y;
}

// All overlaps as a sum of shifted copies of `a`, one for each element of the kernel `b`.
static gn_array *gni_convolve_direct(gn_array *a, gn_array *b, const gn_shape *full) {
    gn_array *x = a, *y = NULL;
    int rank = full->rank;
    int64_t count = gni_elements(&b->shape);
    gn_context *g = a->ctx;
    for (int i = 0; i < rank && x != NULL; i++) { // zeros on both sides
        gn_shape s = x->shape;
        s.dim[i] = full->dim[i] + b->shape.dim[i] - 1;
        x = gni_scatter_slice(g, x, &s, i, b->shape.dim[i] - 1, 1);
    }
    for (int64_t e = 0; e < count && x != NULL; e++) {
        gn_array *part = x, *factor = b;
        int64_t rest = e;
        for (int i = rank - 1; i >= 0; i--) {
            int64_t m = b->shape.dim[i], at = rest % m;
            rest /= m;
            part = gn_slice(part, i, m - 1 - at, m - 1 - at + full->dim[i], 1);
            factor = gn_slice(factor, i, at, at + 1, 1);
        }
        gn_array *term = gn_mul(part, factor);
        y = y == NULL ? term : gn_add(y, term);
    }
    return y;
}

// The middle of all overlaps, `start` and `count` for each axis.
static gn_array *gni_convolve_cut(gn_array *y, const gn_shape *a, const gn_shape *b, gn_convolution mode) {
    for (int i = 0; i < a->rank && y != NULL && mode != GN_CONV_FULL; i++) {
        int64_t n = a->dim[i], m = b->dim[i];
        int64_t start = mode == GN_CONV_SAME ? (m - 1) / 2 : m - 1;
        int64_t count = mode == GN_CONV_SAME ? n : n - m + 1;
        y = gn_slice(y, i, start, start + count, 1);
    }
    return y;
}

// Checks the operands; false after gni_fail.
static bool gni_convolve_ok(gn_context *g, const char *fn, const gn_array *a, const gn_array *b, int rank,
                            gn_convolution mode) {
    char ta[200], tb[200];
    bool fits = a->shape.rank == b->shape.rank && a->shape.rank > 0 && (rank == 0 || a->shape.rank == rank);
    if (!fits || gni_elements(&a->shape) == 0 || gni_elements(&b->shape) == 0) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: shapes %s and %s%s", fn, gni_shape_text(ta, sizeof ta, &a->shape),
                 gni_shape_text(tb, sizeof tb, &b->shape),
                 fits ? ": there is nothing to convolve" : rank == 1   ? " are not 1-d"
                                                       : rank == 2 ? " are not 2-d"
                                                                   : " differ in rank");
        return false;
    }
    if ((unsigned)mode > GN_CONV_VALID) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %d is not a gn_convolution", fn, (int)mode);
        return false;
    }
    return true;
}

// `rank` 0: any. With `fft` the direct sum is not considered.
static gn_array *gni_convolved(const char *fn, gn_array *a, gn_array *b, int rank, gn_convolution mode, bool fft) {
    gn_array *in[2];
    in[0] = a;
    in[1] = b;
    gn_context *g = gni_begin(fn, in, 2);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    gn_array *y = NULL;
    if (gni_convolve_ok(g, fn, a, b, rank, mode)) {
        bool cplx = gni_is_complex(a->dtype) || gni_is_complex(b->dtype);
        gn_dtype t = gn_promote(a->dtype, b->dtype);
        gn_shape full = a->shape;
        bool swap = true; // for "valid" one operand must cover the other
        for (int i = 0; i < full.rank; i++) {
            full.dim[i] += b->shape.dim[i] - 1;
            swap = swap && a->shape.dim[i] <= b->shape.dim[i];
        }
        for (int i = 0; i < full.rank && mode == GN_CONV_VALID && !swap; i++)
            if (a->shape.dim[i] < b->shape.dim[i])
                gni_fail(g, GN_ERROR_SHAPE, "%s: neither operand covers the other on every axis", fn);
        // Whole numbers stay exact while the sums are below 2^53.
        bool whole = !gni_is_float(t) && !cplx;
        gn_array *x = whole ? gn_cast(a, GN_F64) : a, *k = whole ? gn_cast(b, GN_F64) : b;
        bool small_b = gni_elements(&b->shape) <= GNI_CONV_DIRECT, small_a = gni_elements(&a->shape) <= GNI_CONV_DIRECT;
        if (g->call_failed || x == NULL || k == NULL) y = NULL;
        else if (!fft && !cplx && (small_a || small_b))
            y = small_b ? gni_convolve_direct(x, k, &full) : gni_convolve_direct(k, x, &full);
        else y = gni_convolve_fft(x, k, &full);
        bool turned = mode == GN_CONV_VALID && swap;
        y = gni_convolve_cut(y, turned ? &b->shape : &a->shape, turned ? &a->shape : &b->shape, mode);
        if (whole) y = gn_cast(gn_round(y), t == GN_BOOL ? GN_BOOL : t);
        else if (!cplx && y != NULL && y->dtype != t) y = gn_cast(y, t);
        if (y == a || y == b) y = gn_reshape(y, y->shape);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_convolve(gn_array *a, gn_array *b, gn_convolution mode) {
    if (gni_known(a) && gni_known(b) && gn_size(a) < gn_size(b)) return gni_convolved("gn_convolve", b, a, 1, mode, false);
    return gni_convolved("gn_convolve", a, b, 1, mode, false);
}

GPUNUM_API gn_array *gn_correlate(gn_array *a, gn_array *b, gn_convolution mode) {
    gn_array *in[2];
    in[0] = a;
    in[1] = b;
    gn_context *g = gni_begin("gn_correlate", in, 2);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    gn_array *y = NULL;
    if (gni_convolve_ok(g, "gn_correlate", a, b, 1, mode)) {
        gn_array *c = gni_is_complex(b->dtype) ? gn_conj(b) : b;
        if (gn_size(a) >= gn_size(b)) y = gni_convolved("gn_correlate", a, gn_flip(c, GN_ALL), 1, mode, false);
        else y = gn_flip(gni_convolved("gn_correlate", c, gn_flip(a, GN_ALL), 1, mode, false), GN_ALL);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_convolve2d(gn_array *a, gn_array *b, gn_convolution mode) {
    return gni_convolved("gn_convolve2d", a, b, 2, mode, false);
}

GPUNUM_API gn_array *gn_fftconvolve(gn_array *a, gn_array *b, gn_convolution mode) {
    return gni_convolved("gn_fftconvolve", a, b, 0, mode, true);
}

// ------------------------------------------------------------------------------------------
// >>random_ops
// Random arrays. Every call takes the next Philox blocks of the context's counter, as many on every
// backend, so that the numbers do not depend on where they are made.

GPUNUM_API void gn_seed(gn_context *g, uint64_t seed) {
    if (!gni_begin_context("gn_seed", g)) return;
    g->seed = seed;
    g->counter = 0;
    gni_end_plain(g);
}

// Runs one random job into a new array; `job` says the kind and its range.
static gn_array *gni_random_array(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s,
                                  gni_random *job) {
    gn_array *y = gni_array_new(g, t, s);
    if (y == NULL) return NULL;
    y->maker = fn;
    job->seed = g->seed;
    job->counter = g->counter;
    job->n = gni_elements(s);
    y->buf = gni_buffer_new(g, (uint64_t)job->n * gn_dtype_size(t));
    if (y->buf == NULL) {
        gni_unref(g, y);
        return NULL;
    }
    memset(&job->out, 0, sizeof job->out);
    job->out.buf = y->buf;
    job->out.dtype = t;
    job->out.stride[0] = 1;
    int64_t per_block = gni_random_pairs(job) ? 2 : 4;
    g->counter += (uint64_t)(job->n / per_block + (job->n % per_block != 0));
    if (job->n == 0 || gni_run(g, GNI_JOB_RANDOM, job, y)) return y;
    gni_unref(g, y);
    return NULL;
}

static bool gni_need_float(gn_context *g, const char *fn, gn_dtype t) {
    if (gni_is_float(t)) return true;
    gni_fail(g, GN_ERROR_DTYPE, "%s: %s is not a float dtype", fn, gn_dtype_name(t));
    return false;
}

static gn_array *gni_public_random(const char *fn, gn_context *g, gn_dtype t, const gn_shape *s,
                                   gni_random_kind kind) {
    if (!gni_begin_context(fn, g)) return NULL;
    gni_random job;
    memset(&job, 0, sizeof job);
    job.kind = kind;
    gn_array *y = NULL;
    if (gni_shape_ok(g, fn, t, s) && gni_need_float(g, fn, t))
        y = gni_random_array(g, fn, t, s, &job);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_rand(gn_context *g, gn_dtype t, gn_shape s) {
    return gni_public_random("gn_rand", g, t, &s, GNI_RAND_UNIFORM);
}

GPUNUM_API gn_array *gn_randn(gn_context *g, gn_dtype t, gn_shape s) {
    return gni_public_random("gn_randn", g, t, &s, GNI_RAND_NORMAL);
}

// offset + scale * numbers of that kind. Halves are computed in float32 and rounded once.
static gn_array *gni_random_scaled(const char *fn, gn_context *g, gn_dtype t, const gn_shape *s,
                                   gni_random_kind kind, double scale, double offset) {
    if (!gni_begin_context(fn, g)) return NULL;
    gn_array *y = NULL;
    gn_scope_begin(g);
    if (!(fabs(scale) < GNI_INF && fabs(offset) < GNI_INF)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the range is not finite", fn);
    } else if (gni_shape_ok(g, fn, t, s) && gni_need_float(g, fn, t)) {
        gn_dtype made = t == GN_F64 ? GN_F64 : GN_F32;
        y = gn_add_s(gn_mul_s(gni_public_random(fn, g, made, s, kind), scale), offset);
        if (made != t) y = gn_cast(y, t);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_uniform(gn_context *g, gn_dtype t, gn_shape s, double low, double high) {
    return gni_random_scaled("gn_uniform", g, t, &s, GNI_RAND_UNIFORM, high - low, low);
}

GPUNUM_API gn_array *gn_normal(gn_context *g, gn_dtype t, gn_shape s, double mean,
                               double deviation) {
    if (deviation < 0.0 && g != NULL) {
        gni_begin_context("gn_normal", g);
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_normal: the deviation %g is negative", deviation);
        return gni_end(g, NULL);
    }
    return gni_random_scaled("gn_normal", g, t, &s, GNI_RAND_NORMAL, deviation, mean);
}

// Whether integers from `low` to `most` fit the dtype.
static bool gni_range_fits(gn_dtype t, int64_t low, int64_t most) {
    switch (t) {
    case GN_I64: return true;
    case GN_I32: return low >= INT32_MIN && most <= INT32_MAX;
    case GN_I8: return low >= INT8_MIN && most <= INT8_MAX;
    case GN_U32: return low >= 0 && most <= UINT32_MAX;
    case GN_U8: return low >= 0 && most <= UINT8_MAX;
    case GN_BOOL: return low >= 0 && most <= 1;
    default: return false;
    }
}

GPUNUM_API gn_array *gn_randint(gn_context *g, gn_dtype t, gn_shape s, int64_t low, int64_t high) {
    const char *fn = "gn_randint";
    if (!gni_begin_context(fn, g)) return NULL;
    gn_array *y = NULL;
    if (!gni_shape_ok(g, fn, t, &s)) return gni_end(g, NULL);
    if (!gni_is_integer(t) && t != GN_BOOL) {
        gni_fail(g, GN_ERROR_DTYPE, "%s: %s is not an integer dtype", fn, gn_dtype_name(t));
    } else if (low >= high) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: low %lld is not below high %lld", fn, (long long)low,
                 (long long)high);
    } else if (!gni_range_fits(t, low, high - 1)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %lld to %lld does not fit %s", fn, (long long)low,
                 (long long)high - 1, gn_dtype_name(t));
    } else {
        gni_random job;
        memset(&job, 0, sizeof job);
        job.kind = GNI_RAND_RANGE;
        job.low = low;
        job.range = (uint64_t)high - (uint64_t)low;
        y = gni_random_array(g, fn, t, &s, &job);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_bernoulli(gn_context *g, gn_dtype t, gn_shape s, double p) {
    const char *fn = "gn_bernoulli";
    if (!gni_begin_context(fn, g)) return NULL;
    gn_array *y = NULL;
    gn_scope_begin(g);
    if (!(p >= 0.0 && p <= 1.0))
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the probability %g is not between 0 and 1", fn, p);
    else if (gni_shape_ok(g, fn, t, &s))
        y = gn_cast(gn_lt_s(gni_public_random(fn, g, GN_F32, &s, GNI_RAND_UNIFORM), p), t);
    return gni_end_scope(g, y);
}

// ---- permutations

enum { GNI_DRAWS = 4096 };

// Random words for work on the CPU, made in batches.
typedef struct gni_draws {
    gn_context *g;
    gni_buffer *buf;
    int64_t at, have, batch;
    bool failed;
} gni_draws;

static uint32_t gni_draw(gni_draws *d) {
    if (d->at == d->have && !d->failed) {
        gni_random job;
        memset(&job, 0, sizeof job);
        job.kind = GNI_RAND_BITS;
        job.seed = d->g->seed;
        job.counter = d->g->counter;
        job.n = d->batch;
        job.out.buf = d->buf;
        job.out.dtype = GN_U32;
        job.out.stride[0] = 1;
        d->g->counter += (uint64_t)d->batch / 4;
        d->failed = !gni_buffer_claim(d->g, d->buf, GNI_ON_CPU) ||
                    !gni_backend_cpu()->run(d->g, GNI_JOB_RANDOM, &job);
        d->at = 0;
        d->have = d->batch;
    }
    return d->failed ? 0u : ((const uint32_t *)d->buf->host)[d->at++];
}

// Unbiased in [0, range): Lemire, Fast Random Integer Generation in an Interval (2019); beyond 32 bits
// numbers that are too large are drawn again.
static uint64_t gni_draw_below(gni_draws *d, uint64_t range) {
    if (range <= UINT32_MAX) {
        uint32_t r = (uint32_t)range;
        uint64_t product = (uint64_t)gni_draw(d) * r;
        if ((uint32_t)product < r) {
            uint32_t least = (0u - r) % r;
            while ((uint32_t)product < least && !d->failed) product = (uint64_t)gni_draw(d) * r;
        }
        return product >> 32;
    }
    uint64_t mask = range - 1, x = 0;
    for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    do {
        x = (uint64_t)gni_draw(d) << 32;
        x = (x | gni_draw(d)) & mask;
    } while (x >= range && !d->failed);
    return x;
}

// Fisher-Yates.
static bool gni_shuffled(gn_context *g, gn_dtype t, void *data, int64_t n) {
    int32_t *p32 = (int32_t *)data;
    int64_t *p64 = (int64_t *)data;
    for (int64_t i = 0; i < n; i++) {
        if (t == GN_I32)
            p32[i] = (int32_t)i;
        else
            p64[i] = i;
    }
    gni_draws d;
    memset(&d, 0, sizeof d);
    d.g = g;
    d.batch = GNI_MIN((n + 3) / 4 * 4, (int64_t)GNI_DRAWS);
    d.buf = gni_buffer_new(g, (uint64_t)d.batch * 4);
    if (d.buf == NULL) return false;
    for (int64_t i = n - 1; i > 0 && !d.failed; i--) {
        int64_t k = (int64_t)gni_draw_below(&d, (uint64_t)i + 1);
        if (t == GN_I32) {
            int32_t other = p32[k];
            p32[k] = p32[i];
            p32[i] = other;
        } else {
            int64_t other = p64[k];
            p64[k] = p64[i];
            p64[i] = other;
        }
    }
    gni_buffer_release(g, d.buf);
    return !d.failed;
}

GPUNUM_API gn_array *gn_permutation(gn_context *g, int64_t n) {
    if (!gni_begin_context("gn_permutation", g)) return NULL;
    gn_dtype t = n > INT32_MAX ? GN_I64 : GN_I32;
    gn_shape s = gn_shape_from(1, &n);
    void *data = NULL;
    gn_array *y =
        gni_shape_ok(g, "gn_permutation", t, &s) ? gni_array_filled(g, t, &s, &data) : NULL;
    if (y != NULL) y->maker = "gn_permutation";
    if (y != NULL && n > 1 && !gni_shuffled(g, t, data, n)) {
        gni_unref(g, y);
        y = NULL;
    } else if (y != NULL && n == 1) {
        memset(data, 0, gn_dtype_size(t));
    }
    return gni_end(g, y);
}

// ------------------------------------------------------------------------------------------
// >>autograd
// The record of what was computed, and the pass back over it. An array owns the record of the op that
// made it; a record holds references to the op's operands. From outside: gni_tracks and gni_record
// around every differentiable op.

static bool gni_wants_grad(const gn_array *a) { return a->wants_grad || a->node != NULL; }

static bool gni_tracks(const gn_context *g, gn_array *const *in, int n_in) {
    if (g->no_grad > 0) return false;
    for (int i = 0; i < n_in; i++)
        if (in[i] != NULL && gni_wants_grad(in[i])) return true;
    return false;
}

static uint32_t gni_version(const gn_array *a) { return a->buf != NULL ? a->buf->version : 0; }

static gni_node *gni_node_new(gn_context *g, const char *name, int n_in) {
    size_t bytes = sizeof(gni_node) + (size_t)n_in * (sizeof(gn_array *) + sizeof(uint32_t));
    gni_node *node = (gni_node *)gni_calloc(g, bytes);
    if (node == NULL) {
        gni_fail_memory(g, name, bytes);
        return NULL;
    }
    node->name = name;
    node->n_in = n_in;
    node->in = (gn_array **)(void *)(node + 1);
    node->version = (uint32_t *)(void *)(node->in + n_in);
    return node;
}

static gni_node *gni_record(gn_context *g, gn_array *y, const char *name, gni_backward_fn backward,
                            gn_array *const *in, int n_in) {
    if (y == NULL || !gni_tracks(g, in, n_in)) return NULL;
    if (!gni_is_float(y->dtype) && !gni_is_complex(y->dtype)) return NULL;
    gni_node *node = gni_node_new(g, name, n_in);
    if (node == NULL) return NULL;
    node->backward = backward;
    node->serial = ++g->serial;
    for (int i = 0; i < n_in; i++) {
        node->in[i] = in[i];
        if (in[i] == NULL) continue;
        gni_ref(in[i]);
        node->version[i] = gni_version(in[i]);
    }
    if (y->node != NULL) gni_node_free(g, y->node);
    node->output = y;
    y->node = node;
    return node;
}

static void gni_node_drop_inputs(gn_context *g, gni_node *node) {
    int n = node->n_in;
    node->n_in = 0;
    for (int i = 0; i < n; i++) gni_unref(g, node->in[i]);
}

static void gni_node_free(gn_context *g, gni_node *node) {
    gni_node_drop_inputs(g, node);
    gni_unref(g, node->gy);
    gni_free(g, node);
}

// ---- the pass

enum {
    GNI_VISITED = 1, // bits of gni_node.visited: is on the list of the pass,
    GNI_TARGET = 2,  // its gradient is asked for,
    GNI_NEEDED = 4   // or leads to one that is
};

typedef struct gni_pass {
    gn_context *g;
    const char *fn;
    bool leaves;     // every array that requires a gradient is a target
    bool keep;       // the graph stays usable
    gn_array **list; // all arrays with a record under the loss, a reference each
    int64_t count, capacity;
    int widest; // operands of a record
} gni_pass;

// Stands in for the record of a graph that was released.
static bool gni_back_used(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g)
    , GNI_UNUSED(node)
    , GNI_UNUSED(gy)
    , GNI_UNUSED(gx);
    return false;
}

static bool gni_wanted(const gni_node *node, int i) {
    const gn_array *a = node->in[i];
    return a != NULL && a->node != NULL && (a->node->visited & GNI_NEEDED) != 0;
}

static bool gni_is_leaf(const gni_node *node) { return node->serial == 0; }

static bool gni_is_target(const gni_pass *p, const gni_node *node) {
    return (node->visited & GNI_TARGET) != 0 || (p->leaves && gni_is_leaf(node));
}

// Puts `a` on the list once. Arrays without a record get one for the time of the pass.
static bool gni_pass_add(gni_pass *p, gn_array *a) {
    gn_context *g = p->g;
    if (a->node != NULL && (a->node->visited & GNI_VISITED)) return true;
    if (p->count == p->capacity) {
        int64_t capacity = p->capacity > 0 ? 2 * p->capacity : 64;
        gn_array **list =
            (gn_array **)gni_realloc(g, p->list, sizeof(gn_array *) * (size_t)p->capacity,
                                     sizeof(gn_array *) * (size_t)capacity);
        if (list == NULL) {
            gni_fail_memory(g, p->fn, sizeof(gn_array *) * (size_t)capacity);
            return false;
        }
        p->list = list;
        p->capacity = capacity;
    }
    if (a->node == NULL) {
        a->node = gni_node_new(g, p->fn, 0);
        if (a->node == NULL) return false;
        a->node->output = a;
    }
    gni_ref(a);
    a->node->visited = GNI_VISITED;
    p->widest = GNI_MAX(p->widest, a->node->n_in);
    p->list[p->count++] = a;
    return true;
}

static bool gni_pass_collect(gni_pass *p, gn_array *loss) {
    if (!gni_pass_add(p, loss)) return false;
    for (int64_t at = 0; at < p->count; at++) {
        const gni_node *node = p->list[at]->node;
        for (int i = 0; i < node->n_in; i++) {
            gn_array *a = node->in[i];
            if (a == NULL || (a->node == NULL && !(p->leaves && a->wants_grad))) continue;
            if (!gni_pass_add(p, a)) return false;
        }
    }
    return true;
}

static void gni_sift_down(gn_array **list, int64_t at, int64_t count) {
    gn_array *moving = list[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && list[child + 1]->node->serial < list[child]->node->serial) child++;
        if (list[child]->node->serial >= moving->node->serial) break;
        list[at] = list[child];
        at = child;
    }
    list[at] = moving;
}

// Latest op first: an op was always recorded after those that made its operands.
static void gni_pass_sort(gni_pass *p) {
    bool sorted = true;
    for (int64_t i = 1; i < p->count && sorted; i++)
        sorted = p->list[i - 1]->node->serial >= p->list[i]->node->serial;
    if (sorted) return;
    for (int64_t i = p->count / 2; i-- > 0;) gni_sift_down(p->list, i, p->count);
    for (int64_t end = p->count - 1; end > 0; end--) {
        gn_array *least = p->list[0];
        p->list[0] = p->list[end];
        p->list[end] = least;
        gni_sift_down(p->list, 0, end);
    }
}

// Marks what lies between the loss and the targets.
static void gni_pass_mark(gni_pass *p) {
    for (int64_t at = p->count; at-- > 0;) {
        gni_node *node = p->list[at]->node;
        // What lies below a part that was used before is not known any more: gni_pass_check reports it.
        bool needed = gni_is_target(p, node) || node->backward == gni_back_used;
        for (int i = 0; i < node->n_in && !needed; i++) needed = gni_wanted(node, i);
        if (needed) node->visited |= GNI_NEEDED;
    }
}

static gn_array *gni_gradient_sum(gn_array *a, gn_array *b) {
    if (a == NULL || b == NULL) return NULL;
    return gni_is_complex(a->dtype) ? gni_complex_add(a, b) : gn_add(a, b);
}

static gn_array *gni_gradient_as(gn_array *gx, gn_dtype t) {
    if (gx->dtype == t) return gx;
    if (gni_is_complex(gx->dtype) && !gni_is_complex(t))
        gx = gn_real(gx); // moves along the real axis only
    if (gx != NULL && gni_is_complex(t)) gx = gn_complex(gn_real(gx), gn_imag(gx));
    return gx == NULL || gx->dtype == t ? gx : gn_cast(gx, t);
}

// Adds gx to the gradient of operand i.
static bool gni_pass_give(gni_pass *p, gni_node *node, int i, gn_array *gx) {
    gn_context *g = p->g;
    gn_array *a = node->in[i];
    if (gx == NULL) {
        if (!g->call_failed)
            gni_fail(g, GN_ERROR_GRADIENT, "%s: %s has no derivative with respect to operand %d",
                     p->fn, node->name, i + 1);
        return false;
    }
    if (!gni_same_shape(&gx->shape, &a->shape)) {
        char ta[200], tb[200];
        gni_fail(g, GN_ERROR_GRADIENT, "%s: the gradient of %s has shape %s, its operand %s", p->fn,
                 node->name, gni_shape_text(ta, sizeof ta, &gx->shape),
                 gni_shape_text(tb, sizeof tb, &a->shape));
        return false;
    }
    gx = gni_gradient_as(gx, a->dtype);
    if (a->node->gy != NULL) gx = gni_gradient_sum(a->node->gy, gx);
    if (gx == NULL) return false;
    gni_ref(gx);
    gni_unref(g, a->node->gy);
    a->node->gy = gx;
    return true;
}

// Whether the values that the backward function will read are still those of the forward pass.
static bool gni_pass_check(gni_pass *p, const gni_node *node) {
    gn_context *g = p->g;
    char text[200];
    if (node->backward == gni_back_used) {
        gni_fail(g, GN_ERROR_GRADIENT,
                 "%s: the graph was already used; compute the loss again, or differentiate it with "
                 "gn_gradients and create_graph the first time",
                 p->fn);
        return false;
    }
    if (node->backward == NULL) {
        gni_fail(g, GN_ERROR_GRADIENT, "%s: %s has no derivative", p->fn, node->name);
        return false;
    }
    uint32_t reads = gni_back_reads(node);
    for (int i = 0; i < node->n_in; i++) {
        const gn_array *a = node->in[i];
        if (a == NULL || !(reads & (1u << GNI_MIN(i, 30))) || gni_version(a) == node->version[i])
            continue;
        gni_fail(
            g, GN_ERROR_GRADIENT,
            "%s: operand %d of %s, %s %s, was overwritten by gn_write or gn_step after it was used",
            p->fn, i + 1, node->name, gn_dtype_name(a->dtype),
            gni_shape_text(text, sizeof text, &a->shape));
        return false;
    }
    if ((reads & GNI_READS_OUTPUT) && gni_version(node->output) != 0) {
        gni_fail(g, GN_ERROR_GRADIENT, "%s: the result of %s, %s %s, was overwritten by gn_write",
                 p->fn, node->name, gn_dtype_name(node->output->dtype),
                 gni_shape_text(text, sizeof text, &node->output->shape));
        return false;
    }
    return true;
}

// Takes the gradient of one array on to the operands that it was made of.
static bool gni_pass_step(gni_pass *p, gni_node *node, gn_array **gx) {
    bool onward = false;
    for (int i = 0; i < node->n_in && !onward; i++) onward = gni_wanted(node, i);
    onward = onward || node->backward == gni_back_used;
    if (node->gy == NULL || gni_is_leaf(node) || !onward) return true;
    if (!gni_pass_check(p, node)) return false;
    memset(gx, 0, sizeof(gn_array *) * (size_t)node->n_in);
    gn_scope_begin(p->g);
    bool ok = node->backward(p->g, node, node->gy, gx);
    for (int i = 0; i < node->n_in && ok; i++)
        if (gni_wanted(node, i)) ok = gni_pass_give(p, node, i, gx[i]);
    gn_scope_end(p->g);
    if (!p->keep) {
        node->backward = gni_back_used;
        gni_node_drop_inputs(p->g, node);
    }
    return ok && !p->g->call_failed;
}

// Lets go of list[at]: of its record too where that was made for the pass only.
static void gni_pass_leave(gni_pass *p, int64_t at) {
    gn_array *a = p->list[at];
    gni_node *node = a != NULL ? a->node : NULL;
    p->list[at] = NULL;
    if (node != NULL) {
        node->visited = 0;
        gni_unref(p->g, node->gy);
        node->gy = NULL;
        if (gni_is_leaf(node)) {
            a->node = NULL;
            gni_node_free(p->g, node);
        }
    }
    gni_unref(p->g, a);
}

// Runs the pass. Afterwards the targets are the only ones left on the list, their gradients in node->gy.
static bool gni_pass_run(gni_pass *p, gn_array *loss) {
    gn_context *g = p->g;
    if (!gni_is_float(loss->dtype) || gni_elements(&loss->shape) != 1) {
        char text[200];
        gni_fail(g, GN_ERROR_GRADIENT,
                 "%s: the loss is %s %s, it must be one floating point number", p->fn,
                 gn_dtype_name(loss->dtype), gni_shape_text(text, sizeof text, &loss->shape));
        return false;
    }
    if (!gni_wants_grad(loss)) {
        gni_fail(g, GN_ERROR_GRADIENT, "%s: the loss depends on no array that requires a gradient",
                 p->fn);
        return false;
    }
    if (!gni_pass_collect(p, loss)) return false;
    gni_pass_sort(p);
    gni_pass_mark(p);
    gn_array **gx = (gn_array **)gni_alloc(g, sizeof(gn_array *) * (size_t)GNI_MAX(p->widest, 1));
    if (gx == NULL) gni_fail_memory(g, p->fn, sizeof(gn_array *) * (size_t)p->widest);
    loss->node->gy = gni_const(g, loss->dtype, &loss->shape, 1.0);
    bool ok = gx != NULL && loss->node->gy != NULL;
    for (int64_t at = 0; at < p->count && ok; at++) {
        gni_node *node = p->list[at]->node;
        ok = gni_pass_step(p, node, gx);
        if (!gni_is_target(p, node)) gni_pass_leave(p, at);
    }
    gni_free(g, gx);
    return ok;
}

static void gni_pass_end(gni_pass *p) {
    for (int64_t at = 0; at < p->count; at++) gni_pass_leave(p, at);
    gni_free(p->g, p->list);
}

static void gni_set_grad(gn_context *g, gn_array *a, gn_array *grad) {
    gn_array *old = a->grad;
    if (grad != NULL) grad->user_refs++;
    a->grad = grad;
    if (old != NULL) gni_user_release(g, old);
}

// What gn_grad(a) will be: the sum with what is there, in C order, and nobody else's array.
static gn_array *gni_grad_sum(gn_context *g, gn_array *a, gn_array *gy) {
    gn_scope_begin(g);
    gn_array *y = gy;
    if (a->grad != NULL)
        y = gni_gradient_sum(a->grad, gy);
    else if (gy->user_refs > 0 || (gy->buf != NULL && !gni_is_contiguous(gy)))
        y = gn_copy(gy);
    if (y != NULL) gni_ref(y);
    gn_scope_end(g);
    return y;
}

// All or nothing: the sums first, which may fail.
static bool gni_pass_accumulate(gni_pass *p) {
    gn_context *g = p->g;
    bool ok = true;
    int64_t done = 0;
    for (; done < p->count && ok; done++) {
        gn_array *a = p->list[done];
        if (a == NULL || a->node->gy == NULL) continue;
        gn_array *sum = gni_grad_sum(g, a, a->node->gy);
        ok = sum != NULL && !g->call_failed;
        if (!ok) {
            gni_unref(g, sum);
            break;
        }
        gni_unref(g, a->node->gy);
        a->node->gy = sum;
        sum->user_refs++; // tells the next leaf that this one is taken
    }
    for (int64_t at = 0; at < done; at++) {
        gn_array *a = p->list[at];
        if (a == NULL || a->node->gy == NULL) continue;
        a->node->gy->user_refs--;
        if (!ok) continue;
        gni_set_grad(g, a, a->node->gy);
        a->node->gy = NULL;
    }
    return ok;
}

GPUNUM_API gn_status gn_backward(gn_array *loss) {
    gn_context *g = gni_begin("gn_backward", &loss, 1);
    if (g == NULL) return gni_null_status(loss);
    gni_pass p;
    memset(&p, 0, sizeof p);
    p.g = g;
    p.fn = "gn_backward";
    p.leaves = true;
    g->no_grad++;
    if (gni_pass_run(&p, loss)) gni_pass_accumulate(&p);
    gni_pass_end(&p);
    g->no_grad--;
    return gni_end_status(g);
}

// A gradient as a new array of the caller's (or of the open scope).
static gn_array *gni_gradient_out(gn_context *g, gn_array *param, gn_array *gy) {
    if (gy == NULL) return gn_zeros_like(param);
    if (gy->user_refs > 0) return gn_reshape(gy, gy->shape); // asked for twice
    gni_ref(gy);
    return gni_adopt(g, gy);
}

static void gni_gradients(gni_pass *p, gn_array *loss, gn_array *const *params, int count,
                          gn_array **out) {
    gn_context *g = p->g;
    for (int i = 0; i < count; i++) {
        if (!gni_pass_add(p, params[i])) return;
        params[i]->node->visited |= GNI_TARGET;
    }
    if (!gni_pass_run(p, loss)) return;
    for (int i = 0; i < count; i++) {
        out[i] = gni_gradient_out(g, params[i], params[i]->node->gy);
        if (out[i] == NULL) return;
    }
}

GPUNUM_API gn_status gn_gradients(gn_array *loss, gn_array *const *params, int count,
                                  bool create_graph, gn_array **out) {
    for (int i = 0; i < count; i++) out[i] = NULL;
    gn_context *g = gni_begin("gn_gradients", &loss, 1);
    if (g == NULL) return gni_null_status(loss);
    for (int i = 0; i < count && !g->call_failed; i++) {
        if (params[i] == NULL || params[i]->ctx != g || params[i]->magic != GNI_ALIVE)
            gni_fail(g, GN_ERROR_ARGUMENT,
                     "gn_gradients: parameter %d is not an array of this context", i + 1);
        else if (!gni_wants_grad(params[i]))
            gni_fail(g, GN_ERROR_GRADIENT, "gn_gradients: parameter %d does not require a gradient",
                     i + 1);
    }
    if (count <= 0 || g->call_failed) return gni_end_status(g);
    gni_pass p;
    memset(&p, 0, sizeof p);
    p.g = g;
    p.fn = "gn_gradients";
    p.keep = create_graph;
    int no_grad = g->no_grad;
    g->no_grad = create_graph ? 0 : no_grad + 1;
    gni_gradients(&p, loss, params, count, out);
    gni_pass_end(&p);
    g->no_grad = no_grad;
    for (int i = 0; i < count && g->call_failed; i++) {
        if (out[i] != NULL) gni_user_release(g, out[i]);
        out[i] = NULL;
    }
    return gni_end_status(g);
}

// ---- what the user says about arrays

GPUNUM_API gn_array *gn_requires_grad(gn_array *a, bool on) {
    gn_context *g = gni_begin("gn_requires_grad", &a, 1);
    if (g == NULL) return NULL;
    if (a->node != NULL)
        gni_fail(
            g, GN_ERROR_GRADIENT,
            "gn_requires_grad: only leaf arrays can change it, this one was made by %s; use gn_detach",
            a->node->name);
    else if (on && !gni_is_float(a->dtype))
        gni_fail(g, GN_ERROR_DTYPE,
                 "gn_requires_grad: only floating point arrays can, this one is %s",
                 gn_dtype_name(a->dtype));
    else
        a->wants_grad = on;
    return gni_end_status(g) == GN_OK ? a : NULL;
}

GPUNUM_API bool gn_needs_grad(const gn_array *a) { return gni_known(a) && gni_wants_grad(a); }

GPUNUM_API gn_array *gn_grad(gn_array *a) {
    gn_context *g = gni_begin("gn_grad", &a, 1);
    if (g == NULL) return NULL;
    gn_array *grad = a->grad;
    gni_end_plain(g);
    return grad;
}

GPUNUM_API void gn_zero_grad(gn_array *a) {
    gn_context *g = gni_begin("gn_zero_grad", &a, 1);
    if (g == NULL) return;
    gni_set_grad(g, a, NULL);
    gni_end_plain(g);
}

GPUNUM_API gn_array *gn_detach(gn_array *a) {
    gn_context *g = gni_begin("gn_detach", &a, 1);
    if (g == NULL) return NULL;
    if (!gni_materialize(g, a)) return gni_end(g, NULL);
    gn_array *y = gni_array_view(g, a, &a->shape, a->stride, a->offset);
    if (y != NULL) y->maker = "gn_detach";
    return gni_end(g, y);
}

GPUNUM_API void gn_no_grad_begin(gn_context *g) {
    if (!gni_begin_context("gn_no_grad_begin", g)) return;
    g->no_grad++;
    gni_end_plain(g);
}

GPUNUM_API void gn_no_grad_end(gn_context *g) {
    if (!gni_begin_context("gn_no_grad_end", g)) return;
    if (g->no_grad > 0)
        g->no_grad--;
    else
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_no_grad_end: no gn_no_grad_begin before it");
    gni_end_plain(g);
}

// ---- gn_gradcheck: made of public calls only, since `fn` is the caller's code

typedef struct gni_check {
    gn_context *g;
    gn_function fn;
    gn_array *const *inputs;
    int count;
    void *user;
} gni_check;

static double gni_check_value(const gni_check *c) {
    double value = GNI_NAN;
    gn_scope_begin(c->g);
    // Recorded as well: `fn` may take gradients of its own.
    gn_array *y = c->fn(c->g, c->inputs, c->count, c->user);
    if (y != NULL) value = gn_item(y);
    gn_scope_end(c->g);
    return value;
}

static double gni_check_failed(gn_context *g, size_t bytes) {
    if (gni_begin_context("gn_gradcheck", g)) {
        gni_fail_memory(g, "gn_gradcheck", bytes);
        gni_end_plain(g);
    }
    return GNI_NAN;
}

static double gni_check_get(const void *data, gn_dtype t, int64_t i) {
    return t == GN_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

// The value at element i of `input`, moved by `by`; `at` receives where it really is.
static double gni_check_moved(const gni_check *c, gn_array *input, void *data, int64_t i, double by,
                              double *at) {
    double x = gni_check_get(data, input->dtype, i);
    gni_store_double(input->dtype, data, i, x + by);
    *at = gni_check_get(data, input->dtype, i);
    double y = gn_write(input, data, gn_bytes(input)) == GN_OK ? gni_check_value(c) : GNI_NAN;
    gni_store_double(input->dtype, data, i, x);
    return y;
}

// Largest error over the elements of one input, whose gradient is `grad`.
static double gni_check_input(const gni_check *c, gn_array *input, gn_array *grad, double step) {
    gn_context *g = c->g;
    double worst = 0.0;
    size_t bytes = gn_bytes(input);
    void *x = gni_alloc(g, 2 * bytes + 1);
    if (x == NULL) return gni_check_failed(g, 2 * bytes);
    void *d = (char *)x + bytes;
    bool ok = gn_read(input, x, bytes) == GN_OK && gn_read(grad, d, bytes) == GN_OK;
    for (int64_t i = 0; i < gn_size(input) && ok; i++) {
        double high, low;
        double rise = gni_check_moved(c, input, x, i, step, &high);
        rise -= gni_check_moved(c, input, x, i, -step, &low);
        double numeric = rise / (high - low);
        double error =
            fabs(gni_check_get(d, input->dtype, i) - numeric) / GNI_MAX(1.0, fabs(numeric));
        if (!(error <= worst)) worst = error; // a NaN stays
        ok = worst == worst;
    }
    if (gn_write(input, x, bytes) != GN_OK) ok = false;
    gni_free(g, x);
    return ok ? worst : GNI_NAN;
}

static double gni_check_all(const gni_check *c, double step) {
    gn_context *g = c->g;
    size_t bytes = sizeof(gn_array *) * (size_t)c->count;
    gn_array **params = (gn_array **)gni_calloc(g, 2 * bytes);
    if (params == NULL) return gni_check_failed(g, 2 * bytes);
    gn_array **grads = params + c->count;
    int n = 0;
    double worst = 0.0;
    for (int i = 0; i < c->count; i++)
        if (gn_needs_grad(c->inputs[i])) params[n++] = c->inputs[i];
    gn_scope_begin(g);
    gn_array *y = c->fn(g, c->inputs, c->count, c->user);
    if (y == NULL || gn_gradients(y, params, n, false, grads) != GN_OK) worst = GNI_NAN;
    for (int i = 0; i < n && worst == worst; i++) {
        // Central differences: the error of the formula, step^2, and of rounding, eps / step, are about equal.
        double h = step > 0.0 ? step : params[i]->dtype == GN_F64 ? 1e-5 : 5e-3;
        double error = gni_check_input(c, params[i], grads[i], h);
        if (!(error <= worst)) worst = error;
    }
    gn_scope_end(g);
    gni_free(g, params);
    return worst;
}

GPUNUM_API double gn_gradcheck(gn_function fn, gn_array *const *inputs, int count, double step,
                               void *user) {
    gni_check c;
    if (fn == NULL || count <= 0) return GNI_NAN;
    c.g = gni_begin("gn_gradcheck", inputs, count);
    if (c.g == NULL) return GNI_NAN;
    c.fn = fn;
    c.inputs = inputs;
    c.count = count;
    c.user = user;
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (!gni_wants_grad(inputs[i])) continue;
        any = true;
        if (inputs[i]->dtype != GN_F32 && inputs[i]->dtype != GN_F64)
            gni_fail(c.g, GN_ERROR_DTYPE, "gn_gradcheck: input %d is %s, not float64 or float32",
                     i + 1, gn_dtype_name(inputs[i]->dtype));
    }
    if (!any) gni_fail(c.g, GN_ERROR_GRADIENT, "gn_gradcheck: no input requires a gradient");
    if (gni_end_status(c.g) != GN_OK) return GNI_NAN;
    return gni_check_all(&c, step);
}

// ------------------------------------------------------------------------------------------
// >>gradients
// The derivative of each op, as public calls, so that it can be differentiated again. A backward
// function gets the gradient gy of its result and puts those of the operands that gni_wanted names into
// gx; they belong to the scope that gn_backward holds open around it. Elementwise ops: table `optable`.

// Sums over what broadcasting repeated: from gx's shape back to `shape`.
static gn_array *gni_unbroadcast(gn_array *gx, const gn_shape *shape) {
    if (gx == NULL || gni_same_shape(&gx->shape, shape)) return gx;
    int lead = gx->shape.rank - shape->rank;
    uint32_t axes = 0;
    for (int i = 0; i < gx->shape.rank; i++)
        if (i < lead || (shape->dim[i - lead] == 1 && gx->shape.dim[i] != 1)) axes |= GN_AXIS(i);
    if (axes != 0) gx = gn_sum(gx, axes | GN_KEEP);
    return gx == NULL || gni_same_shape(&gx->shape, shape) ? gx : gn_reshape(gx, *shape);
}

static gn_array *gni_zero_like(const gn_array *a) { return gn_scalar(a->ctx, a->dtype, 0.0); }

// ---- elementwise: what the derivative columns call

static gn_array *gni_sum_squares(gn_array *a, gn_array *b) {
    return gn_add(gn_square(a), gn_square(b));
}

// y (x sigmoid(x))' = s (1 + x (1 - s))
static gn_array *gni_grad_silu(gn_array *gy, gn_array *a) {
    gn_array *s = gn_sigmoid(a);
    return gn_mul(gy, gn_mul(s, gn_add_s(gn_mul(a, gn_rsub_s(s, 1.0)), 1.0)));
}

// (x Phi(x))' = Phi(x) + x phi(x) with the normal distribution's Phi and phi.
static gn_array *gni_grad_gelu(gn_array *gy, gn_array *a) {
    gn_array *phi = gn_mul_s(gn_exp(gn_mul_s(gn_square(a), -0.5)), GNI_1_SQRT2PI);
    gn_array *big_phi = gn_mul_s(gn_add_s(gn_erf(gn_mul_s(a, GNI_SQRT1_2)), 1.0), 0.5);
    return gn_mul(gy, gn_add(big_phi, gn_mul(a, phi)));
}

// 0 at 0, as in PyTorch. A choice, not a product: infinity times 0 would be NaN.
static gn_array *gni_grad_relu(gn_array *gy, gn_array *y) {
    return gn_where(gn_le_s(y, 0.0), gni_zero_like(gy), gy);
}

// To the larger of a and b; equal operands share.
static gn_array *gni_grad_pick(gn_array *gy, gn_array *a, gn_array *b) {
    gn_array *share = gn_add(gn_cast(gn_gt(a, b), gy->dtype), gn_cast(gn_ge(a, b), gy->dtype));
    return gn_mul(gy, gn_mul_s(share, 0.5));
}

// b a^(b - 1), and 0 for b = 0 whatever a is.
static gn_array *gni_grad_pow_base(gn_array *gy, gn_array *a, gn_array *b) {
    gn_array *slope = gn_mul(b, gn_pow(a, gn_add_s(b, -1.0)));
    return gn_where(gn_eq_s(b, 0.0), gni_zero_like(gy), gn_mul(gy, slope));
}

// y log a, and 0 where 0^b stays 0.
static gn_array *gni_grad_pow_exponent(gn_array *gy, gn_array *a, gn_array *b, gn_array *y) {
    gn_array *flat = gn_logical_and(gn_eq_s(a, 0.0), gn_ge_s(b, 0.0));
    return gn_where(flat, gni_zero_like(gy), gn_mul(gy, gn_mul(y, gn_log(a))));
}

static gn_array *gni_derivative_unary(gni_op op, gn_array *gy, gn_array *a, gn_array *y) {
    switch (op) {
#define GN_X(fn, NAME, F, D, gF, da) \
    case GNI_OP_##NAME: return da;
        GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da) \
    case GNI_OP_##NAME: return da;
        GNI_UNARY_ANY(GN_X)
#undef GN_X
    default: return NULL;
    }
}

static gn_array *gni_derivative_first(gni_op op, gn_array *gy, gn_array *a, gn_array *b,
                                      gn_array *y) {
    GNI_UNUSED(y);
    switch (op) {
#define GN_X(fn, NAME, F, D, gF, da, db) \
    case GNI_OP_##NAME: return da;
        GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) \
    case GNI_OP_##NAME: return da;
        GNI_BINARY_ANY(GN_X)
#undef GN_X
    default: return NULL;
    }
}

static gn_array *gni_derivative_second(gni_op op, gn_array *gy, gn_array *a, gn_array *b,
                                       gn_array *y) {
    switch (op) {
#define GN_X(fn, NAME, F, D, gF, da, db) \
    case GNI_OP_##NAME: return db;
        GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) \
    case GNI_OP_##NAME: return db;
        GNI_BINARY_ANY(GN_X)
#undef GN_X
    default: return NULL;
    }
}

// The derivative columns as text: first operand, second operand.
static const char *gni_derivative_text(gni_op op, int operand) {
    switch (op) {
#define GN_X(fn, NAME, F, D, gF, da) \
    case GNI_OP_##NAME: return #da;
        GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da) \
    case GNI_OP_##NAME: return #da;
        GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) \
    case GNI_OP_##NAME: return operand == 0 ? #da : #db;
        GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) \
    case GNI_OP_##NAME: return operand == 0 ? #da : #db;
        GNI_BINARY_ANY(GN_X)
#undef GN_X
    default: return "";
    }
}

// Whether the expression uses the one-letter variable.
static bool gni_mentions(const char *text, char name) {
    char before = ' ';
    for (; *text != 0; before = *text++) {
        if (*text != name) continue;
        bool starts = before == ' ' || before == '(';
        if (starts && (text[1] == 0 || text[1] == ',' || text[1] == ')')) return true;
    }
    return false;
}

static bool gni_is_unary(gni_op op) { return op < GNI_OP_ISNAN; }

// With one operand a constant there is one array; it stands for operand 1 (b) when the constant was first.
static int gni_operand_place(const gni_node *node, int i) { return node->param[1] == 1 ? 1 : i; }

static uint32_t gni_elementwise_reads(const gni_node *node) {
    gni_op op = (gni_op)node->param[0];
    uint32_t reads = 0;
    if (op == GNI_OP_WHERE) return 1;
    if (op == GNI_OP_CAST) return 0;
    if (op == GNI_OP_FMA) return (gni_wanted(node, 0) ? 2u : 0u) | (gni_wanted(node, 1) ? 1u : 0u);
    for (int i = 0; i < node->n_in; i++) {
        if (!gni_wanted(node, i)) continue;
        const char *text = gni_derivative_text(op, gni_operand_place(node, i));
        if (gni_mentions(text, 'y')) reads |= GNI_READS_OUTPUT;
        for (int k = 0; k < node->n_in; k++)
            if (gni_mentions(text, gni_operand_place(node, k) == 0 ? 'a' : 'b')) reads |= 1u << k;
    }
    return reads;
}

// x op c and c op x. Powers and bounds have a simpler derivative than with two arrays.
static gn_array *gni_derivative_scalar(gni_node *node, gn_array *gy) {
    gni_op op = (gni_op)node->param[0];
    gn_array *x = node->in[0], *y = node->output;
    double c = node->real[0];
    bool first = node->param[1] == 1;
    if (op == GNI_OP_POW && !first)
        return c == 0.0 ? gn_zeros_like(gy) : gn_mul(gy, gn_mul_s(gn_pow_s(x, c - 1.0), c));
    if (op == GNI_OP_POW && c > 0.0) return gn_mul(gy, gn_mul_s(y, log(c)));
    if (op == GNI_OP_MAX) return gn_where(gn_ge_s(x, c), gy, gni_zero_like(gy));
    if (op == GNI_OP_MIN) return gn_where(gn_le_s(x, c), gy, gni_zero_like(gy));
    gn_array *konst = gn_scalar(gy->ctx, y->dtype, c);
    return first ? gni_derivative_second(op, gy, konst, x, y)
                 : gni_derivative_first(op, gy, x, konst, y);
}

static bool gni_back_elementwise(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gni_op op = (gni_op)node->param[0];
    gn_array **in = node->in, *y = node->output;
    GNI_UNUSED(g);
    if (op == GNI_OP_WHERE) {
        if (gni_wanted(node, 1)) gx[1] = gn_where(in[0], gy, gni_zero_like(gy));
        if (gni_wanted(node, 2)) gx[2] = gn_where(in[0], gni_zero_like(gy), gy);
    } else if (op == GNI_OP_FMA) {
        if (gni_wanted(node, 0)) gx[0] = gn_mul(gy, in[1]);
        if (gni_wanted(node, 1)) gx[1] = gn_mul(gy, in[0]);
        gx[2] = gy;
    } else if (op == GNI_OP_CAST) {
        gx[0] = gy;
    } else if (node->param[1] != 0) {
        gx[0] = gni_derivative_scalar(node, gy);
    } else if (gni_is_unary(op)) {
        gx[0] = gni_derivative_unary(op, gy, in[0], y);
    } else {
        if (gni_wanted(node, 0)) gx[0] = gni_derivative_first(op, gy, in[0], in[1], y);
        if (gni_wanted(node, 1)) gx[1] = gni_derivative_second(op, gy, in[0], in[1], y);
    }
    for (int i = 0; i < node->n_in; i++)
        if (gni_wanted(node, i)) gx[i] = gni_unbroadcast(gx[i], &in[i]->shape);
    return true;
}

static bool gni_back_copy(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g)
    , GNI_UNUSED(node);
    gx[0] = gy;
    return true;
}

// ---- reductions: param[0] the axes as bits, param[1] whether they were kept as size 1

// A result of the reduction in the shape that it has with the axes kept.
static gn_array *gni_with_axes(const gni_node *node, gn_array *r) {
    gn_shape s = node->in[0]->shape;
    for (int i = 0; i < s.rank; i++)
        if (node->param[0] >> i & 1) s.dim[i] = 1;
    return r == NULL || gni_same_shape(&r->shape, &s) ? r : gn_reshape(r, s);
}

static uint32_t gni_kept_axes(const gni_node *node) { return (uint32_t)node->param[0] | GN_KEEP; }

static bool gni_back_sum(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_broadcast_to(gni_with_axes(node, gy), node->in[0]->shape);
    return true;
}

static bool gni_back_mean(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    int64_t all = gni_elements(&node->in[0]->shape), kept = gni_elements(&node->output->shape);
    double n = kept > 0 ? (double)all / (double)kept : 1.0;
    return gni_back_sum(g, node, gn_div_s(gy, n), gx);
}

// x moved back by `by` along the axis, ones in front.
static gn_array *gni_shifted(gn_array *x, int axis, int64_t by) {
    gn_array *part[2];
    gn_shape s = x->shape;
    s.dim[axis] = by;
    part[0] = gn_ones(x->ctx, x->dtype, s);
    part[1] = gn_slice(x, axis, 0, x->shape.dim[axis] - by, 1);
    return gn_concat(part, 2, axis);
}

// Element i is the product of those before it, by doubling the span.
static gn_array *gni_products_before(gn_array *x, int axis) {
    if (x == NULL) return NULL;
    gn_array *p = gni_shifted(x, axis, 1);
    for (int64_t span = 1; p != NULL && span < x->shape.dim[axis]; span *= 2)
        p = gn_mul(p, gni_shifted(p, axis, span));
    return p;
}

// Exact for products with zeros, and differentiable any number of times.
static gn_array *gni_products_of_others(const gni_node *node) {
    gn_array *x = node->in[0];
    int order[GN_MAX_RANK], back[GN_MAX_RANK], rank = x->shape.rank, n = 0;
    gn_shape moved_shape, flat = gn_shape_from(0, NULL);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < rank; i++)
            if ((node->param[0] >> i & 1) == pass) order[n++] = i;
    int64_t reduced = 1;
    for (int i = 0; i < rank; i++) {
        back[order[i]] = i;
        if (node->param[0] >> order[i] & 1)
            reduced *= x->shape.dim[order[i]];
        else
            flat.dim[flat.rank++] = x->shape.dim[order[i]];
    }
    flat.dim[flat.rank++] = reduced;
    gn_array *moved = gn_permute_axes(x, order, rank);
    if (moved == NULL) return NULL;
    moved_shape = moved->shape;
    gn_array *rows = gn_reshape(moved, flat);
    if (rows == NULL) return NULL;
    int last = flat.rank - 1;
    gn_array *before = gni_products_before(rows, last);
    gn_array *after = gni_products_before(gn_flip(rows, GN_AXIS(last)), last);
    gn_array *others = gn_mul(before, gn_flip(after, GN_AXIS(last)));
    return gn_permute_axes(gn_reshape(others, moved_shape), back, rank);
}

// The same by division, good for one differentiation: rows with one zero have a product of the others
// only there, rows with more have none.
static gn_array *gni_quotients(const gni_node *node) {
    gn_array *x = node->in[0];
    gn_array *zero = gn_eq_s(x, 0.0);
    gn_array *zeros = gn_sum(gn_cast(zero, GN_F32), gni_kept_axes(node));
    gn_array *rest = gn_where(zero, gn_scalar(x->ctx, x->dtype, 1.0), x);
    gn_array *product = gn_prod(rest, gni_kept_axes(node));
    gn_array *none = gni_zero_like(x);
    gn_array *at_zero = gn_where(gn_le_s(zeros, 1.0), product, none);
    gn_array *elsewhere = gn_where(gn_eq_s(zeros, 0.0), gn_div(product, rest), none);
    return gn_where(zero, at_zero, elsewhere);
}

static bool gni_back_prod(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *others = NULL;
    if (gni_elements(&node->in[0]->shape) == 0)
        others = gn_zeros_like(node->in[0]);
    else
        others = g->no_grad > 0 ? gni_quotients(node) : gni_products_of_others(node);
    gx[0] = gn_mul(gni_with_axes(node, gy), others);
    return true;
}

// Elements that share the extreme value share the gradient.
static bool gni_back_minmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *hit = gn_eq(node->in[0], gni_with_axes(node, node->output));
    hit = gn_cast(hit, gy->dtype == GN_F64 ? GN_F64 : GN_F32); // counts beyond 2048 are no float16
    gx[0] = gn_mul(gn_div(gni_with_axes(node, gy), gn_sum(hit, gni_kept_axes(node))), hit);
    return true;
}

static bool gni_back_logsumexp(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *p = gn_exp(gn_sub(node->in[0], gni_with_axes(node, node->output)));
    gx[0] = gn_mul(gni_with_axes(node, gy), p);
    return true;
}

// param[0] is the axis.
static bool gni_back_softmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *y = node->output;
    gn_array *dot = gn_sum(gn_mul(gy, y), GN_AXIS(node->param[0]) | GN_KEEP);
    gx[0] = gn_mul(y, gn_sub(gy, dot));
    return true;
}

static bool gni_back_log_softmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *total = gn_sum(gy, GN_AXIS(node->param[0]) | GN_KEEP);
    gx[0] = gn_sub(gy, gn_mul(gn_exp(node->output), total));
    return true;
}

// ---- matmul

// `a` with an axis of size 1 inserted before `axis`.
static gn_array *gni_with_axis(gn_array *a, int axis, bool insert) {
    return insert ? gn_expand_dims(a, axis) : a;
}

// (..., m, n) as (rows, n).
static gn_array *gni_as_rows(gn_array *a) {
    if (a == NULL) return NULL;
    gn_shape s = gn_shape_from(2, a->shape.dim);
    s.dim[1] = a->shape.dim[a->shape.rank - 1];
    s.dim[0] = 1;
    for (int i = 0; i < a->shape.rank - 1; i++) s.dim[0] *= a->shape.dim[i];
    return gn_reshape(a, s);
}

static gn_array *gni_matmul_grad_b(gn_array *a, gn_array *b, gn_array *gy) {
    if (a == NULL || b == NULL) return NULL;
    if (b->shape.rank == 2 && a->shape.rank > 2)
        return gn_matmul(gn_transpose(gni_as_rows(a)), gni_as_rows(gy));
    return gni_unbroadcast(gn_matmul(gn_swap_axes(a, -1, -2), gy), &b->shape);
}

// 1-d operands take part as a row and as a column.
static bool gni_back_matmul(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    bool row = node->in[0]->shape.rank == 1, column = node->in[1]->shape.rank == 1;
    gn_array *a = gni_with_axis(node->in[0], 0, row), *b = gni_with_axis(node->in[1], 1, column);
    if (column) gy = gn_expand_dims(gy, -1);
    if (row) gy = gn_expand_dims(gy, -2);
    if (a == NULL || b == NULL || gy == NULL) return false;
    if (gni_wanted(node, 0)) {
        gx[0] = gni_unbroadcast(gn_matmul(gy, gn_swap_axes(b, -1, -2)), &a->shape);
        if (row) gx[0] = gn_reshape(gx[0], node->in[0]->shape);
    }
    if (gni_wanted(node, 1)) {
        gx[1] = gni_matmul_grad_b(a, b, gy);
        if (column) gx[1] = gn_reshape(gx[1], node->in[1]->shape);
    }
    return true;
}

// x w + b
static bool gni_back_linear(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    if (gni_wanted(node, 2)) gx[2] = gni_unbroadcast(gy, &node->in[2]->shape);
    return gni_back_matmul(g, node, gy, gx);
}

// ---- views

static bool gni_back_reshape(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_reshape(gy, node->shape);
    return true;
}

static bool gni_back_permute(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    int back[GN_MAX_RANK], rank = gy->shape.rank;
    for (int i = 0; i < rank; i++) back[node->param[i]] = i;
    gx[0] = gn_permute_axes(gy, back, rank);
    return true;
}

static bool gni_back_broadcast(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gni_unbroadcast(gy, &node->shape);
    return true;
}

static bool gni_back_flip(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = node->param[0] != 0 ? gn_flip(gy, (uint32_t)node->param[0]) : gy;
    return true;
}

// The opposite of a slice is its scatter, and the other way round. param: axis, start, step; the slice's
// length is that of the scattered array on the axis.
static bool gni_back_scatter_slice(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    int axis = (int)node->param[0];
    int64_t start = node->param[1], step = node->param[2];
    int64_t stop = start + step * node->in[0]->shape.dim[axis];
    gx[0] = gn_slice(gy, axis, start, stop < 0 ? GN_NONE : stop, step);
    return true;
}

// Zeros of shape `s` with x at [start::step] of the axis.
static gn_array *gni_scatter_slice(gn_context *g, gn_array *x, const gn_shape *s, int axis,
                                   int64_t start, int64_t step) {
    if (gni_begin("gn_slice", &x, 1) == NULL) return NULL;
    gn_array *y = gni_make_full(g, "gn_slice", x->dtype, s, 0.0);
    int64_t stride[GN_MAX_RANK];
    bool ok = y != NULL && gni_materialize(g, y);
    if (ok && gni_elements(&x->shape) > 0) {
        memcpy(stride, y->stride, sizeof stride);
        stride[axis] *= step;
        ok = gni_copy_into(g, y->buf, y->dtype, start * y->stride[axis], stride, x);
    }
    gni_node *node = ok ? gni_record(g, y, "gn_slice", gni_back_scatter_slice, &x, 1) : NULL;
    if (node != NULL) {
        node->param[0] = axis;
        node->param[1] = start;
        node->param[2] = step;
    }
    return gni_end(g, y);
}

static bool gni_back_slice(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gx[0] =
        gni_scatter_slice(g, gy, &node->shape, (int)node->param[0], node->param[1], node->param[2]);
    return true;
}

static bool gni_back_concat(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    int axis = (int)node->param[0];
    int64_t from = 0;
    for (int i = 0; i < node->n_in; i++) {
        int64_t to = from + node->in[i]->shape.dim[axis];
        if (gni_wanted(node, i)) gx[i] = gn_slice(gy, axis, from, to, 1);
        from = to;
    }
    return true;
}

static bool gni_back_stack(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    int axis = (int)node->param[0];
    for (int i = 0; i < node->n_in; i++)
        if (gni_wanted(node, i))
            gx[i] = gn_reshape(gn_slice(gy, axis, i, i + 1, 1), node->in[i]->shape);
    return true;
}

// ---- take

static int64_t gni_label_at(const gn_array *index, const void *data, int64_t i, int64_t extent) {
    int64_t at = index->dtype == GN_I64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
    if (at < 0) at += extent;
    return GNI_MAX(0, GNI_MIN(at, extent - 1)); // out of range clamps, as in gn_take on the GPU
}

// y (outer, extent, inner) += x (outer, count, inner) at [:, index, :], in the order of the index.
static void gni_scatter_add(const gn_array *index, const void *places, const void *x, gn_array *y,
                            int axis) {
    int64_t outer = 1, inner = 1, extent = y->shape.dim[axis], count = gni_elements(&index->shape);
    for (int i = 0; i < axis; i++) outer *= y->shape.dim[i];
    for (int i = axis + 1; i < y->shape.rank; i++) inner *= y->shape.dim[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < count; i++) {
            int64_t from = (o * count + i) * inner;
            int64_t to = (o * extent + gni_label_at(index, places, i, extent)) * inner;
            const float *xf = (const float *)x + from;
            const double *xd = (const double *)x + from;
            float *yf = (float *)y->buf->host + to;
            double *yd = (double *)y->buf->host + to;
            if (y->dtype == GN_F64)
                for (int64_t k = 0; k < inner; k++) yd[k] += xd[k];
            else
                for (int64_t k = 0; k < inner; k++) yf[k] += xf[k];
        }
}

static bool gni_back_scatter_rows(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_take(gy, node->in[1], (int)node->param[0]);
    return true;
}

// Zeros of shape `s` to which x, float32 or float64, is added at the places along `axis` that `indices`
// names. On the CPU, one after the other: the same sum every time.
static gn_array *gni_scatter_rows(gn_context *g, gn_array *x, gn_array *indices, const gn_shape *s,
                                  int axis) {
    gn_array *in[2];
    in[0] = x;
    in[1] = indices;
    if (gni_begin("gn_take", in, 2) == NULL) return NULL;
    void *data = NULL;
    gn_array *y = gni_array_filled(g, x->dtype, s, &data);
    gn_array *rows = gni_contiguous(g, x), *index = gni_take_indices(g, indices);
    const void *from = rows != NULL ? gni_host(g, rows) : NULL;
    const void *places = index != NULL ? gni_host(g, index) : NULL;
    bool ok = y != NULL && from != NULL && places != NULL;
    if (ok) {
        memset(data, 0, (size_t)gni_elements(s) * gn_dtype_size(x->dtype));
        gni_scatter_add(index, places, from, y, axis);
    }
    gni_unref(g, rows);
    gni_unref(g, index);
    if (!ok) {
        gni_unref(g, y);
        return gni_end(g, NULL);
    }
    y->maker = "gn_take";
    gni_node *node = gni_record(g, y, "gn_take", gni_back_scatter_rows, in, 2);
    if (node != NULL) node->param[0] = axis;
    return gni_end(g, y);
}

static bool gni_back_take(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    if (gy->dtype != GN_F64 && gy->dtype != GN_F32)
        gy = gn_cast(gy, GN_F32); // halves are summed wider
    gx[0] = gni_scatter_rows(g, gy, node->in[1], &node->in[0]->shape, (int)node->param[0]);
    return true;
}

// ---- what each of them reads

static uint32_t gni_back_reads(const gni_node *node) {
    gni_backward_fn back = node->backward;
    if (back == gni_back_elementwise) return gni_elementwise_reads(node);
    if (back == gni_back_matmul || back == gni_back_linear)
        return (gni_wanted(node, 0) ? 2u : 0u) | (gni_wanted(node, 1) ? 1u : 0u);
    if (back == gni_back_sum || back == gni_back_mean || back == gni_back_reshape ||
        back == gni_back_permute || back == gni_back_broadcast || back == gni_back_slice ||
        back == gni_back_scatter_slice || back == gni_back_flip || back == gni_back_concat ||
        back == gni_back_stack || back == gni_back_copy || back == gni_back_fft || back == gni_back_real ||
        back == gni_back_complex)
        return 0;
    if (back == gni_back_take || back == gni_back_scatter_rows) return 2;
    if (back == gni_back_softmax || back == gni_back_log_softmax) return GNI_READS_OUTPUT;
    if (back == gni_back_minmax || back == gni_back_logsumexp) return 1u | GNI_READS_OUTPUT;
    return ~0u & ~GNI_READS_OUTPUT; // all operands
}

// ------------------------------------------------------------------------------------------
// >>nn
// Layers and losses.

// Matrix product and bias in one go. One reference for the caller.
static gn_array *gni_fused_linear(gn_context *g, gn_array *const *in) {
    gn_array *bias = gni_contiguous(g, in[2]);
    gn_array *y = bias != NULL ? gni_matmul_bias(g, "gn_linear", in[0], in[1], bias, 0) : NULL;
    gni_unref(g, bias);
    gni_record(g, y, "gn_linear", gni_back_linear, in, 3);
    return y;
}

GPUNUM_API gn_array *gn_linear(gn_array *x, gn_array *w, gn_array *b) {
    gn_array *in[3];
    in[0] = x;
    in[1] = w;
    in[2] = b;
    gn_context *g = gni_begin("gn_linear", in, b != NULL ? 3 : 2);
    if (g == NULL) return NULL;
    if (w->shape.rank != 2 || x->shape.rank < 1 ||
        x->shape.dim[x->shape.rank - 1] != w->shape.dim[0] ||
        (b != NULL && (b->shape.rank != 1 || b->shape.dim[0] != w->shape.dim[1]))) {
        char tx[200], tw[200], tb[200];
        gni_fail(g, GN_ERROR_SHAPE,
                 "gn_linear: x %s, w %s, b %s are not (..., in), (in, out), (out)",
                 gni_shape_text(tx, sizeof tx, &x->shape), gni_shape_text(tw, sizeof tw, &w->shape),
                 b != NULL ? gni_shape_text(tb, sizeof tb, &b->shape) : "none");
        return gni_end(g, NULL);
    }
    if (b != NULL && x->dtype == GN_F32 && w->dtype == GN_F32 && b->dtype == GN_F32)
        return gni_end(g, gni_fused_linear(g, in));
    gn_scope_begin(g);
    gn_array *y = gn_matmul(x, w);
    return gni_end_scope(g, b != NULL ? gn_add(y, b) : y);
}

// d loss / d logits = (softmax(logits) - one hot) gy / n. in: logits, one hot (bool, pending), logsumexp.
static bool gni_back_cross_entropy(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *logits = node->in[0], *picked = gn_cast(node->in[1], logits->dtype);
    gn_array *p = g->no_grad > 0 ? gn_exp(gn_sub(logits, node->in[2])) : gn_softmax(logits, 1);
    double n = (double)GNI_MAX(logits->shape.dim[0], 1);
    gx[0] = gn_mul(gn_sub(p, picked), gn_div_s(gy, n));
    return true;
}

static bool gni_cross_entropy_ok(gn_context *g, const gn_array *logits, const gn_array *labels) {
    char ta[200], tb[200];
    if (logits->shape.rank != 2 || labels->shape.rank != 1 ||
        labels->shape.dim[0] != logits->shape.dim[0]) {
        gni_fail(g, GN_ERROR_SHAPE,
                 "gn_cross_entropy: logits %s and labels %s are not (n, classes) and (n)",
                 gni_shape_text(ta, sizeof ta, &logits->shape),
                 gni_shape_text(tb, sizeof tb, &labels->shape));
        return false;
    }
    if (!gni_is_float(logits->dtype) || !gni_is_integer(labels->dtype)) {
        gni_fail(g, GN_ERROR_DTYPE,
                 "gn_cross_entropy: logits are %s and labels %s, not floats and integers",
                 gn_dtype_name(logits->dtype), gn_dtype_name(labels->dtype));
        return false;
    }
    return true;
}

GPUNUM_API gn_array *gn_cross_entropy(gn_array *logits, gn_array *labels) {
    gn_array *in[3];
    in[0] = logits;
    in[1] = labels;
    gn_context *g = gni_begin("gn_cross_entropy", in, 2);
    if (g == NULL) return NULL;
    if (!gni_cross_entropy_ok(g, logits, labels)) return gni_end(g, NULL);
    gn_scope_begin(g);
    g->no_grad++; // recorded as one op
    int64_t classes = logits->shape.dim[1];
    gn_array *all = gn_arange(g, classes > INT32_MAX ? GN_I64 : GN_I32, 0.0, (double)classes, 1.0);
    gn_array *hit = gn_eq(gn_expand_dims(labels, 1), all);
    gn_array *lse = gn_logsumexp(logits, GN_AXIS(1) | GN_KEEP);
    // The largest of what is left where the label is: a label out of range leaves -inf, an infinite loss.
    gn_array *rest = gn_where(hit, logits, gn_scalar(g, logits->dtype, -GNI_INF));
    gn_array *y = gn_mean(gn_sub(lse, gn_max(rest, GN_AXIS(1) | GN_KEEP)), GN_ALL);
    g->no_grad--;
    in[1] = hit;
    in[2] = lse;
    gni_record(g, y, "gn_cross_entropy", gni_back_cross_entropy, in, 3);
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_mse_loss(gn_array *prediction, gn_array *target) {
    gn_array *in[2];
    in[0] = prediction;
    in[1] = target;
    gn_context *g = gni_begin("gn_mse_loss", in, 2);
    if (g == NULL) return NULL;
    if (!gni_same_shape(&prediction->shape, &target->shape)) { // broadcasting hides mistakes here
        char ta[200], tb[200];
        gni_fail(g, GN_ERROR_SHAPE,
                 "gn_mse_loss: prediction %s and target %s have different shapes",
                 gni_shape_text(ta, sizeof ta, &prediction->shape),
                 gni_shape_text(tb, sizeof tb, &target->shape));
        return gni_end(g, NULL);
    }
    gn_scope_begin(g);
    return gni_end_scope(g, gn_mean(gn_square(gn_sub(prediction, target)), GN_ALL));
}

static bool gni_is_layer_shape(gn_context *g, const char *fn, const gn_shape *s) {
    char text[200];
    if (s->rank == 2 && s->dim[0] > 0 && s->dim[1] > 0) return true;
    gni_fail(g, GN_ERROR_SHAPE, "%s: %s is not (in, out)", fn,
             gni_shape_text(text, sizeof text, s));
    return false;
}

// Normal with variance 2 / in: keeps the variance through relu (He et al., 2015, arXiv:1502.01852).
GPUNUM_API gn_array *gn_he_normal(gn_context *g, gn_shape s) {
    if (!gni_begin_context("gn_he_normal", g)) return NULL;
    gn_scope_begin(g);
    gn_array *w = NULL;
    if (gni_is_layer_shape(g, "gn_he_normal", &s))
        w = gn_requires_grad(gn_normal(g, GN_F32, s, 0.0, sqrt(2.0 / (double)s.dim[0])), true);
    return gni_end_scope(g, w);
}

// Uniform with variance 2 / (in + out) (Glorot and Bengio, 2010).
GPUNUM_API gn_array *gn_xavier_uniform(gn_context *g, gn_shape s) {
    if (!gni_begin_context("gn_xavier_uniform", g)) return NULL;
    gn_scope_begin(g);
    gn_array *w = NULL;
    if (gni_is_layer_shape(g, "gn_xavier_uniform", &s)) {
        double limit = sqrt(6.0 / ((double)s.dim[0] + (double)s.dim[1]));
        w = gn_requires_grad(gn_uniform(g, GN_F32, s, -limit, limit), true);
    }
    return gni_end_scope(g, w);
}

// ------------------------------------------------------------------------------------------
// >>optim
// Optimizers. A step is one program per parameter, which writes the parameter and its state in place.

typedef enum gni_optimizer_kind { GNI_SGD, GNI_ADAM, GNI_ADAMW } gni_optimizer_kind;

typedef struct gni_optimized {
    gn_array *param, *m, *v; // v: Adam's second moment
    int64_t steps;
} gni_optimized;

struct gn_optimizer {
    gn_context *ctx;
    gn_optimizer *next;
    gni_optimizer_kind kind;
    const char *name;
    int count;
    gni_optimized *items;
    double lr, weight_decay;
    double momentum, dampening; // SGD
    bool nesterov;
    double beta1, beta2, eps; // Adam
};

static void gni_optimizer_release(gn_context *g, gn_optimizer *opt) {
    for (int i = 0; i < opt->count; i++) {
        gni_unref(g, opt->items[i].param);
        gni_unref(g, opt->items[i].m);
        gni_unref(g, opt->items[i].v);
    }
    gni_free(g, opt->items);
    gni_free(g, opt);
}

static bool gni_can_optimize(gn_context *g, const char *fn, gn_array *const *params, int i) {
    const gn_array *a = params[i];
    const char *why = !gni_is_float(a->dtype) ? "it is not floating point"
                      : a->node != NULL       ? "an op made it"
                      : a->buf != NULL && !gni_is_contiguous(a)
                          ? "it is not in C order, gn_copy makes it so"
                          : NULL;
    for (int k = 0; k < i && why == NULL; k++)
        if (params[k] == a) why = "it is given twice";
    if (why != NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: parameter %d cannot be optimized: %s", fn, i + 1, why);
    return why == NULL;
}

// Negative and NaN settings are mistakes.
static bool gni_settings_ok(gn_context *g, const char *fn, const double *settings, int count) {
    for (int i = 0; i < count; i++) {
        if (settings[i] >= 0.0) continue;
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %g is not a setting, all are 0 or more", fn,
                 settings[i]);
        return false;
    }
    return true;
}

static gn_optimizer *gni_optimizer_new(gn_context *g, const char *fn, gni_optimizer_kind kind,
                                       gn_array *const *params, int count) {
    for (int i = 0; i < count; i++)
        if (!gni_can_optimize(g, fn, params, i)) return NULL;
    gn_optimizer *opt = (gn_optimizer *)gni_calloc(g, sizeof(gn_optimizer));
    gni_optimized *items = (gni_optimized *)gni_calloc(g, sizeof(gni_optimized) * (size_t)count);
    if (opt == NULL || items == NULL) {
        gni_fail_memory(g, fn, sizeof(gni_optimized) * (size_t)count);
        gni_free(g, opt);
        gni_free(g, items);
        return NULL;
    }
    opt->ctx = g;
    opt->kind = kind;
    opt->name = fn;
    opt->count = count;
    opt->items = items;
    for (int i = 0; i < count; i++) {
        items[i].param = params[i];
        gni_ref(params[i]);
    }
    opt->next = g->optimizers;
    g->optimizers = opt;
    return opt;
}

GPUNUM_API gn_optimizer *gn_sgd(gn_array *const *params, int count, const gn_sgd_options *options) {
    gn_context *g = gni_begin("gn_sgd", params, count);
    if (g == NULL) return NULL;
    gn_sgd_options o;
    memset(&o, 0, sizeof o);
    if (options != NULL) o = *options;
    double settings[4];
    settings[0] = o.lr, settings[1] = o.momentum, settings[2] = o.dampening,
    settings[3] = o.weight_decay;
    gn_optimizer *opt = NULL;
    if (o.nesterov && (o.momentum == 0.0 || o.dampening != 0.0))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_sgd: nesterov needs momentum and no dampening");
    else if (gni_settings_ok(g, "gn_sgd", settings, 4))
        opt = gni_optimizer_new(g, "gn_sgd", GNI_SGD, params, count);
    if (opt != NULL) {
        opt->lr = o.lr > 0.0 ? o.lr : 0.01;
        opt->momentum = o.momentum;
        opt->dampening = o.dampening;
        opt->weight_decay = o.weight_decay;
        opt->nesterov = o.nesterov;
    }
    gni_end_plain(g);
    return opt;
}

static gn_optimizer *gni_adam(const char *fn, gni_optimizer_kind kind, gn_array *const *params,
                              int count, const gn_adam_options *options) {
    gn_context *g = gni_begin(fn, params, count);
    if (g == NULL) return NULL;
    gn_adam_options o;
    memset(&o, 0, sizeof o);
    if (options != NULL) o = *options;
    double settings[5];
    settings[0] = o.lr, settings[1] = o.beta1, settings[2] = o.beta2, settings[3] = o.eps;
    settings[4] = o.weight_decay;
    gn_optimizer *opt = NULL;
    if (o.beta1 >= 1.0 || o.beta2 >= 1.0)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: beta1 %g and beta2 %g must be below 1", fn, o.beta1,
                 o.beta2);
    else if (gni_settings_ok(g, fn, settings, 5))
        opt = gni_optimizer_new(g, fn, kind, params, count);
    if (opt != NULL) {
        opt->lr = o.lr > 0.0 ? o.lr : 1e-3;
        opt->beta1 = o.beta1 > 0.0 ? o.beta1 : 0.9;
        opt->beta2 = o.beta2 > 0.0 ? o.beta2 : 0.999;
        opt->eps = o.eps > 0.0 ? o.eps : 1e-8;
        opt->weight_decay = o.weight_decay > 0.0 || kind == GNI_ADAM ? o.weight_decay : 0.01;
    }
    gni_end_plain(g);
    return opt;
}

GPUNUM_API gn_optimizer *gn_adam(gn_array *const *params, int count,
                                 const gn_adam_options *options) {
    return gni_adam("gn_adam", GNI_ADAM, params, count, options);
}

GPUNUM_API gn_optimizer *gn_adamw(gn_array *const *params, int count,
                                  const gn_adam_options *options) {
    return gni_adam("gn_adamw", GNI_ADAMW, params, count, options);
}

// ---- steps. Half precision parameters are updated in float32 and keep float32 state.

static gn_array *gni_as(gn_array *a, gn_dtype t) { return gn_dtype_of(a) == t ? a : gn_cast(a, t); }

// Zero-filled state in memory of its own.
static bool gni_state(gn_context *g, gn_array **state, const gn_array *param, gn_dtype t) {
    if (*state == NULL) *state = gni_const(g, t, &param->shape, 0.0);
    return *state != NULL && gni_materialize(g, *state);
}

// roots[0] becomes the parameter, roots[1] the momentum; both in `t`. Sutskever et al., 2013, as PyTorch has it.
static int gni_sgd_step(const gn_optimizer *opt, gni_optimized *item, gn_array *grad, gn_dtype t,
                        gn_array **roots) {
    gn_array *p = gni_as(item->param, t), *d = gni_as(grad, t);
    if (opt->weight_decay != 0.0) d = gn_add(d, gn_mul_s(p, opt->weight_decay));
    if (opt->momentum == 0.0) {
        roots[0] = gn_sub(p, gn_mul_s(d, opt->lr));
        return 1;
    }
    // The first gradient becomes the momentum as it is; the program stays the same.
    bool first = item->steps == 0;
    double keep = first ? 0.0 : opt->momentum, add = first ? 1.0 : 1.0 - opt->dampening;
    roots[1] = gn_add(gn_mul_s(item->m, keep), gn_mul_s(d, add));
    gn_array *move = opt->nesterov ? gn_add(d, gn_mul_s(roots[1], opt->momentum)) : roots[1];
    roots[0] = gn_sub(p, gn_mul_s(move, opt->lr));
    return 2;
}

// Kingma and Ba, 2015, arXiv:1412.6980; AdamW: Loshchilov and Hutter, 2019, arXiv:1711.05101.
static int gni_adam_step(const gn_optimizer *opt, gni_optimized *item, gn_array *grad, gn_dtype t,
                         gn_array **roots) {
    gn_array *p = gni_as(item->param, t), *d = gni_as(grad, t);
    double n = (double)(item->steps + 1);
    double correct1 = 1.0 - pow(opt->beta1, n), correct2 = 1.0 - pow(opt->beta2, n);
    if (opt->weight_decay != 0.0 && opt->kind == GNI_ADAMW)
        p = gn_mul_s(p, 1.0 - opt->lr * opt->weight_decay);
    if (opt->weight_decay != 0.0 && opt->kind == GNI_ADAM)
        d = gn_add(d, gn_mul_s(p, opt->weight_decay));
    roots[1] = gn_add(gn_mul_s(item->m, opt->beta1), gn_mul_s(d, 1.0 - opt->beta1));
    roots[2] = gn_add(gn_mul_s(item->v, opt->beta2), gn_mul_s(gn_square(d), 1.0 - opt->beta2));
    gn_array *size = gn_add_s(gn_mul_s(gn_sqrt(roots[2]), 1.0 / sqrt(correct2)), opt->eps);
    roots[0] = gn_sub(p, gn_mul_s(gn_div(roots[1], size), opt->lr / correct1));
    return 3;
}

static void gni_step_one(gn_context *g, gn_optimizer *opt, gni_optimized *item) {
    gn_array *p = item->param, *grad = p->grad, *roots[3], *into[3];
    if (grad == NULL || gni_elements(&p->shape) == 0) return;
    gn_dtype t = p->dtype == GN_F64 ? GN_F64 : GN_F32;
    bool adam = opt->kind != GNI_SGD;
    // A pending gradient may read the very memory that the step overwrites.
    if (!gni_materialize(g, p) || !gni_materialize(g, grad)) return;
    if ((adam || opt->momentum != 0.0) && !gni_state(g, &item->m, p, t)) return;
    if (adam && !gni_state(g, &item->v, p, t)) return;
    gn_scope_begin(g);
    int count =
        adam ? gni_adam_step(opt, item, grad, t, roots) : gni_sgd_step(opt, item, grad, t, roots);
    roots[0] = gni_as(roots[0], p->dtype);
    into[0] = p;
    into[1] = item->m;
    into[2] = item->v;
    if (!g->call_failed && gni_evaluate(g, roots, into, count)) item->steps++;
    gn_scope_end(g);
}

GPUNUM_API gn_status gn_step(gn_optimizer *opt) {
    if (opt == NULL) return GN_ERROR_ARGUMENT;
    gn_context *g = opt->ctx;
    if (!gni_begin_context("gn_step", g)) return GN_ERROR_ARGUMENT;
    g->no_grad++;
    for (int i = 0; i < opt->count && !g->call_failed; i++) gni_step_one(g, opt, &opt->items[i]);
    g->no_grad--;
    return gni_end_status(g);
}

GPUNUM_API void gn_zero_grads(gn_optimizer *opt) {
    if (opt == NULL || !gni_begin_context("gn_zero_grads", opt->ctx)) return;
    for (int i = 0; i < opt->count; i++) gni_set_grad(opt->ctx, opt->items[i].param, NULL);
    gni_end_plain(opt->ctx);
}

GPUNUM_API void gn_set_lr(gn_optimizer *opt, double lr) {
    if (opt == NULL || !gni_begin_context("gn_set_lr", opt->ctx)) return;
    if (gni_settings_ok(opt->ctx, "gn_set_lr", &lr, 1)) opt->lr = lr;
    gni_end_plain(opt->ctx);
}

GPUNUM_API double gn_get_lr(const gn_optimizer *opt) { return opt != NULL ? opt->lr : GNI_NAN; }

GPUNUM_API void gn_optimizer_free(gn_optimizer *opt) {
    if (opt == NULL) return;
    gn_context *g = opt->ctx;
    if (!gni_begin_context("gn_optimizer_free", g)) return;
    gn_optimizer **at = &g->optimizers;
    while (*at != NULL && *at != opt) at = &(*at)->next;
    if (*at == opt) {
        *at = opt->next;
        gni_optimizer_release(g, opt);
    }
    gni_end_plain(g);
}

// ------------------------------------------------------------------------------------------
// >>io
// Array files: NumPy's .npy (format versions 1 to 3) and MNIST's IDX. Everything in a file is checked
// before memory is asked for.

typedef struct gni_file {
    gn_context *g;
    const char *fn, *path;
    FILE *f;
    uint64_t size, at; // bytes in the file (UINT64_MAX: not known, as of a pipe), and read so far
} gni_file;

static void gni_file_close(gni_file *file) {
    if (file->f != NULL) fclose(file->f);
    file->f = NULL;
}

static void gni_file_fail(const gni_file *file, const char *what) {
    int code = errno;
    gni_fail(file->g, GN_ERROR_IO, "%s: cannot %s %.200s: %s", file->fn, what, file->path,
             code != 0 ? strerror(code) : "unknown error");
}

static void gni_file_malformed(const gni_file *file, const char *what) {
    gni_fail(file->g, GN_ERROR_FORMAT, "%s: %.200s: %s", file->fn, file->path, what);
}

static uint64_t gni_file_measure(FILE *f) {
#ifdef _WIN32
    if (_fseeki64(f, 0, SEEK_END) != 0) return UINT64_MAX;
    long long end = _ftelli64(f);
    if (end < 0 || _fseeki64(f, 0, SEEK_SET) != 0) return UINT64_MAX;
#else
    if (fseek(f, 0, SEEK_END) != 0) return UINT64_MAX;
    long end = ftell(f);
    // A folder pretends to be as long as can be.
    if (end < 0 || fseek(f, 0, SEEK_SET) != 0 || end == LONG_MAX) return UINT64_MAX;
#endif
    return (uint64_t)end;
}

static bool gni_file_open(gni_file *file, gn_context *g, const char *fn, const char *path) {
    memset(file, 0, sizeof *file);
    file->g = g;
    file->fn = fn;
    file->path = path;
    if (path == NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the path is NULL", fn);
        return false;
    }
    errno = 0;
    file->f = fopen(path, "rb");
    if (file->f == NULL) {
        gni_file_fail(file, "open");
        return false;
    }
    file->size = gni_file_measure(file->f);
    return true;
}

static bool gni_file_read(gni_file *file, void *dst, size_t bytes) {
    errno = 0;
    size_t got = bytes > 0 ? fread(dst, 1, bytes, file->f) : 0;
    file->at += got;
    if (got == bytes) return true;
    if (ferror(file->f)) {
        gni_file_fail(file, "read");
        return false;
    }
    gni_fail(file->g, GN_ERROR_FORMAT,
             "%s: %.200s: the file ends after %llu bytes, %llu more were expected", file->fn,
             file->path, (unsigned long long)file->at, (unsigned long long)(bytes - got));
    return false;
}

// Checks that the file can hold so many more bytes.
static bool gni_file_holds(const gni_file *file, uint64_t bytes) {
    if (file->size == UINT64_MAX || (file->size >= file->at && bytes <= file->size - file->at))
        return true;
    gni_fail(file->g, GN_ERROR_FORMAT,
             "%s: %.200s: the header asks for %llu bytes, the file has %llu", file->fn, file->path,
             (unsigned long long)bytes,
             (unsigned long long)(file->size >= file->at ? file->size - file->at : 0));
    return false;
}

static bool gni_little_endian(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

// Reverses the bytes of n numbers of `size` bytes.
static void gni_swap_bytes(void *data, int64_t n, size_t size) {
    unsigned char *p = (unsigned char *)data;
    for (; n > 0; n--, p += size)
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char byte = p[i];
            p[i] = p[size - 1 - i];
            p[size - 1 - i] = byte;
        }
}

// The data that follows a header, as a new array in C order.
static gn_array *gni_file_array(gni_file *file, gn_dtype t, const gn_shape *s, bool little) {
    if (!gni_shape_ok(file->g, file->fn, t, s)) return NULL;
    int64_t n = gni_elements(s);
    uint64_t bytes = (uint64_t)n * gn_dtype_size(t);
    if (bytes > SIZE_MAX / 2 || !gni_file_holds(file, bytes)) {
        if (!file->g->call_failed) gni_fail_memory(file->g, file->fn, bytes);
        return NULL;
    }
    void *data;
    gn_array *y = gni_array_filled(file->g, t, s, &data);
    if (y == NULL) return NULL;
    y->maker = file->fn;
    if (!gni_file_read(file, data, (size_t)bytes)) {
        gni_unref(file->g, y);
        return NULL;
    }
    size_t word = gn_dtype_size(t) / (gni_is_complex(t) ? 2 : 1);
    if (little != gni_little_endian() && word > 1)
        gni_swap_bytes(data, (int64_t)(bytes / word), word);
    if (t == GN_BOOL)
        for (int64_t i = 0; i < n; i++) ((uint8_t *)data)[i] = ((uint8_t *)data)[i] != 0;
    return y;
}

// ---- the .npy header, a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }

typedef struct gni_npy {
    char descr[16];
    bool fortran;
    gn_shape shape;
    unsigned seen; // keys: 1 descr, 2 fortran_order, 4 shape
} gni_npy;

static void gni_npy_blanks(const char **p) {
    while (**p == ' ' || **p == '\t' || **p == '\n' || **p == '\r') ++*p;
}

static bool gni_npy_accept(const char **p, const char *word) {
    gni_npy_blanks(p);
    size_t n = strlen(word);
    if (strncmp(*p, word, n) != 0) return false;
    *p += n;
    return true;
}

// A Python string without escapes. Longer ones are cut, they are no key and no dtype.
static bool gni_npy_string(const char **p, char *text, size_t size) {
    gni_npy_blanks(p);
    char quote = **p;
    if (quote != '\'' && quote != '"') return false;
    size_t n = 0;
    for (++*p; **p != quote; ++*p) {
        if (**p == 0 || **p == '\\') return false;
        if (n + 1 < size) text[n++] = **p;
    }
    ++*p;
    text[n] = 0;
    return true;
}

// "()", "(3,)", "(3, 4)", with Python 2's "3L" as old files have it.
static const char *gni_npy_shape(const char **p, gn_shape *s) {
    *s = gn_shape_from(0, NULL);
    if (!gni_npy_accept(p, "(")) return "the shape is not a tuple";
    while (!gni_npy_accept(p, ")")) {
        gni_npy_blanks(p);
        int64_t v = 0;
        if (**p < '0' || **p > '9') return "the shape is not a tuple of sizes";
        for (; **p >= '0' && **p <= '9'; ++*p) {
            if (v > (INT64_MAX - 9) / 10) return "a dimension is too large";
            v = v * 10 + (**p - '0');
        }
        if (**p == 'L') ++*p;
        if (s->rank == GN_MAX_RANK) return "the array has more than 8 dimensions";
        s->dim[s->rank++] = v;
        if (gni_npy_accept(p, ",")) continue;
        if (!gni_npy_accept(p, ")") || s->rank == 1) return "the shape is not a tuple of sizes";
        break;
    }
    return NULL;
}

// NULL, or what is wrong with the header.
static const char *gni_npy_parse(const char *p, gni_npy *h) {
    if (!gni_npy_accept(&p, "{")) return "the header is not a dict";
    while (!gni_npy_accept(&p, "}")) {
        char key[16];
        if (!gni_npy_string(&p, key, sizeof key) || !gni_npy_accept(&p, ":"))
            return "the header is not a dict";
        unsigned bit = 0;
        if (strcmp(key, "descr") == 0) {
            bit = 1;
            if (gni_npy_accept(&p, "[")) return "arrays of records are not supported";
            if (!gni_npy_string(&p, h->descr, sizeof h->descr)) return "descr is not a string";
        } else if (strcmp(key, "fortran_order") == 0) {
            bit = 2;
            h->fortran = gni_npy_accept(&p, "True");
            if (!h->fortran && !gni_npy_accept(&p, "False")) return "fortran_order is not a bool";
        } else if (strcmp(key, "shape") == 0) {
            bit = 4;
            const char *wrong = gni_npy_shape(&p, &h->shape);
            if (wrong != NULL) return wrong;
        }
        if (bit == 0) return "the header has an unknown key";
        if (h->seen & bit) return "the header has a key twice";
        h->seen |= bit;
        if (!gni_npy_accept(&p, ",") && *p != '}') return "the header is not a dict";
    }
    gni_npy_blanks(&p);
    if (*p != 0) return "something follows the header's dict";
    return h->seen == 7 ? NULL : "the header lacks one of descr, fortran_order, shape";
}

typedef struct gni_npy_type {
    const char *code;
    gn_dtype t;
} gni_npy_type;
static const gni_npy_type gni_npy_types[] = {
    {"f4", GN_F32}, {"f2", GN_F16}, {"f8", GN_F64},  {"i4", GN_I32}, {"i8", GN_I64},  {"u1", GN_U8},
    {"i1", GN_I8},  {"u4", GN_U32}, {"b1", GN_BOOL}, {"c8", GN_C64}, {"c16", GN_C128}};

// The dtype of a descr such as "<f4"; GN_DTYPE_COUNT after gni_fail.
static gn_dtype gni_npy_dtype(const gni_file *file, const char *descr, bool *little) {
    char order = descr[0];
    *little = order == '<' || (order != '>' && gni_little_endian());
    const char *code =
        order == '<' || order == '>' || order == '=' || order == '|' ? descr + 1 : descr;
    for (int i = 0; i < GNI_COUNT(gni_npy_types); i++)
        if (strcmp(code, gni_npy_types[i].code) == 0) return gni_npy_types[i].t;
    gni_fail(file->g, GN_ERROR_DTYPE, "%s: %.200s: dtype '%s' has no counterpart here", file->fn,
             file->path, descr);
    return GN_DTYPE_COUNT;
}

// Reads magic, version and header text. The text is the caller's to gni_free.
static char *gni_npy_read_header(gni_file *file) {
    unsigned char head[12];
    if (!gni_file_read(file, head, 4)) return NULL;
    if (memcmp(head, "PK\3\4", 4) == 0) {
        gni_file_malformed(file, "this is an .npz archive: unpack it first");
        return NULL;
    }
    if (!gni_file_read(file, head + 4, 4)) return NULL;
    if (memcmp(head, "\x93NUMPY", 6) != 0) {
        gni_file_malformed(file, "this is not an .npy file");
        return NULL;
    }
    if (head[6] < 1 || head[6] > 3) {
        gni_fail(file->g, GN_ERROR_FORMAT, "%s: %.200s: .npy version %d.%d is not known", file->fn,
                 file->path, head[6], head[7]);
        return NULL;
    }
    size_t digits = head[6] == 1 ? 2 : 4, length = 0;
    if (!gni_file_read(file, head + 8, digits)) return NULL;
    for (size_t i = 0; i < digits; i++) length |= (size_t)head[8 + i] << (8 * i);
    if (length > (1u << 20)) { // NumPy's own headers stay below 64 KiB
        gni_file_malformed(file, "the header is longer than 1 MiB");
        return NULL;
    }
    if (!gni_file_holds(file, length)) return NULL;
    char *text = (char *)gni_alloc(file->g, length + 1);
    if (text == NULL) {
        gni_fail_memory(file->g, file->fn, length + 1);
        return NULL;
    }
    text[length] = 0;
    if (!gni_file_read(file, text, length)) {
        gni_free(file->g, text);
        return NULL;
    }
    if (strlen(text) == length) return text;
    gni_file_malformed(file, "the header holds a zero byte");
    gni_free(file->g, text);
    return NULL;
}

static gn_array *gni_npy_load(gni_file *file) {
    gni_npy h;
    memset(&h, 0, sizeof h);
    char *text = gni_npy_read_header(file);
    if (text == NULL) return NULL;
    const char *wrong = gni_npy_parse(text, &h);
    gni_free(file->g, text);
    if (wrong != NULL) {
        gni_file_malformed(file, wrong);
        return NULL;
    }
    bool little;
    gn_dtype t = gni_npy_dtype(file, h.descr, &little);
    if (t == GN_DTYPE_COUNT) return NULL;
    if (!h.fortran || h.shape.rank < 2) return gni_file_array(file, t, &h.shape, little);
    // Fortran order is C order of the transposed array.
    gn_shape reversed = h.shape;
    int64_t stride[GN_MAX_RANK];
    for (int i = 0; i < h.shape.rank; i++) reversed.dim[i] = h.shape.dim[h.shape.rank - 1 - i];
    gn_array *base = gni_file_array(file, t, &reversed, little);
    if (base == NULL) return NULL;
    for (int i = 0; i < h.shape.rank; i++) stride[i] = base->stride[h.shape.rank - 1 - i];
    gn_array *y = gni_array_view(file->g, base, &h.shape, stride, 0);
    gni_unref(file->g, base);
    if (y != NULL) y->maker = file->fn;
    return y;
}

GPUNUM_API gn_array *gn_load_npy(gn_context *g, const char *path) {
    if (!gni_begin_context("gn_load_npy", g)) return NULL;
    gni_file file;
    gn_array *y = NULL;
    if (gni_file_open(&file, g, "gn_load_npy", path)) {
        y = gni_npy_load(&file);
        gni_file_close(&file);
    }
    return gni_end(g, y);
}

// The header of version 1.0, blank-padded so that the data starts at a multiple of 64. Returns its size.
static size_t gni_npy_header(const gn_array *a, char *head, size_t size) {
    const char *code = "";
    for (int i = 0; i < GNI_COUNT(gni_npy_types); i++)
        if (gni_npy_types[i].t == a->dtype) code = gni_npy_types[i].code;
    char order = gn_dtype_size(a->dtype) == 1 ? '|' : gni_little_endian() ? '<' : '>';
    int at = snprintf(head + 10, size - 10, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                      order, code);
    for (int i = 0; i < a->shape.rank; i++)
        at += snprintf(head + 10 + at, size - 10 - (size_t)at,
                       i > 0                ? ", %lld"
                       : a->shape.rank == 1 ? "%lld,"
                                            : "%lld",
                       (long long)a->shape.dim[i]);
    at += snprintf(head + 10 + at, size - 10 - (size_t)at, "), }");
    size_t total = ((size_t)at + 10 + 1 + 63) / 64 * 64, length = total - 10;
    memset(head + 10 + at, ' ', total - 11 - (size_t)at);
    head[total - 1] = '\n';
    memcpy(head, "\x93NUMPY\1\0", 8);
    head[8] = (char)(length & 255);
    head[9] = (char)(length >> 8);
    return total;
}

static void gni_npy_save(gni_file *file, gn_array *a) {
    gn_context *g = file->g;
    if (file->path == NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the path is NULL", file->fn);
        return;
    }
    if (a->dtype == GN_BF16) {
        gni_fail(g, GN_ERROR_DTYPE, "%s: .npy has no bfloat16: gn_cast to float32 first", file->fn);
        return;
    }
    gn_array *c = gni_contiguous(g, a); // before the file is touched
    const void *data = c != NULL ? gni_host(g, c) : NULL;
    if (data != NULL) {
        char head[512];
        size_t length = gni_npy_header(a, head, sizeof head), bytes = gn_bytes(a);
        errno = 0;
        file->f = fopen(file->path, "wb");
        if (file->f == NULL) {
            gni_file_fail(file, "create");
        } else {
            bool ok = fwrite(head, 1, length, file->f) == length &&
                      (bytes == 0 || fwrite(data, 1, bytes, file->f) == bytes);
            ok = fflush(file->f) == 0 && ok;
            if (!ok) gni_file_fail(file, "write");
            ok = fclose(file->f) == 0 && ok;
            if (!ok && !g->call_failed) gni_file_fail(file, "close");
            file->f = NULL;
            if (!ok) { // an empty file is no array, half of one might pass for it
                FILE *cut = fopen(file->path, "wb");
                if (cut != NULL) fclose(cut);
            }
        }
    }
    gni_unref(g, c);
}

GPUNUM_API gn_status gn_save_npy(gn_array *a, const char *path) {
    gn_context *g = gni_begin("gn_save_npy", &a, 1);
    if (g == NULL) return gni_null_status(a);
    gni_file file;
    memset(&file, 0, sizeof file);
    file.g = g;
    file.fn = "gn_save_npy";
    file.path = path;
    gni_npy_save(&file, a);
    return gni_end_status(g);
}

// ---- IDX: two zero bytes, dtype, rank, then big-endian 32-bit sizes and data

static gn_array *gni_idx_load(gni_file *file) {
    unsigned char head[4], word[4];
    gn_shape s = gn_shape_from(0, NULL);
    if (!gni_file_read(file, head, 4)) return NULL;
    if (head[0] == 0x1f && head[1] == 0x8b) {
        gni_file_malformed(file, "the file is compressed: gunzip it first");
        return NULL;
    }
    gn_dtype t = head[2] == 0x08   ? GN_U8
                 : head[2] == 0x09 ? GN_I8
                 : head[2] == 0x0c ? GN_I32
                 : head[2] == 0x0d ? GN_F32
                 : head[2] == 0x0e ? GN_F64
                                   : GN_DTYPE_COUNT;
    if (head[0] != 0 || head[1] != 0) {
        gni_file_malformed(file, "this is not an IDX file");
        return NULL;
    }
    if (t == GN_DTYPE_COUNT || head[3] > GN_MAX_RANK) {
        gni_fail(file->g, GN_ERROR_FORMAT,
                 "%s: %.200s: IDX type 0x%02x of rank %d is not supported", file->fn, file->path,
                 head[2], head[3]);
        return NULL;
    }
    for (int i = 0; i < head[3]; i++) {
        if (!gni_file_read(file, word, 4)) return NULL;
        s.dim[s.rank++] = (int64_t)word[0] << 24 | (int64_t)word[1] << 16 | (int64_t)word[2] << 8 |
                          (int64_t)word[3];
    }
    int64_t n = gni_elements(&s);
    uint64_t bytes = n < 0 ? UINT64_MAX : (uint64_t)n * gn_dtype_size(t);
    if (file->size != UINT64_MAX && bytes != file->size - file->at) {
        char text[200];
        gni_fail(file->g, GN_ERROR_FORMAT,
                 "%s: %.200s: the header says %s %s, but %llu bytes of data follow", file->fn,
                 file->path, gn_dtype_name(t), gni_shape_text(text, sizeof text, &s),
                 (unsigned long long)(file->size - file->at));
        return NULL;
    }
    return gni_file_array(file, t, &s, false);
}

GPUNUM_API gn_array *gn_load_idx(gn_context *g, const char *path) {
    if (!gni_begin_context("gn_load_idx", g)) return NULL;
    gni_file file;
    gn_array *y = NULL;
    if (gni_file_open(&file, g, "gn_load_idx", path)) {
        y = gni_idx_load(&file);
        gni_file_close(&file);
    }
    return gni_end(g, y);
}

// ------------------------------------------------------------------------------------------
// >>print
// Arrays as text, laid out as NumPy's repr does. Nothing here is needed by other rooms.

// ---- shortest digits: Steele and White, How to Print Floating-Point Numbers Accurately (1990)

enum { GNI_BIG_WORDS = 40, GNI_MAX_DIGITS = 40 }; // 2^1076 x 10 fits

typedef struct gni_big {
    int n; // words in use, the least significant first
    uint32_t w[GNI_BIG_WORDS];
} gni_big;

static void gni_big_set(gni_big *b, uint64_t v) {
    b->w[0] = (uint32_t)v;
    b->w[1] = (uint32_t)(v >> 32);
    b->n = b->w[1] != 0 ? 2 : b->w[0] != 0 ? 1 : 0;
}

static void gni_big_scale(gni_big *b, uint32_t factor) {
    uint64_t carry = 0;
    for (int i = 0; i < b->n; i++) {
        carry += (uint64_t)b->w[i] * factor;
        b->w[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry != 0 && b->n < GNI_BIG_WORDS) b->w[b->n++] = (uint32_t)carry;
}

static void gni_big_shift(gni_big *b, int bits) {
    for (; bits >= 31; bits -= 31) gni_big_scale(b, 1u << 31);
    gni_big_scale(b, 1u << bits);
}

static void gni_big_times_ten_to(gni_big *b, int power) {
    for (; power >= 9; power -= 9) gni_big_scale(b, 1000000000u);
    for (; power > 0; power--) gni_big_scale(b, 10u);
}

static int gni_big_compare(const gni_big *a, const gni_big *b) {
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->w[i] != b->w[i]) return a->w[i] < b->w[i] ? -1 : 1;
    return 0;
}

static void gni_big_add(gni_big *a, const gni_big *b) {
    uint64_t carry = 0;
    for (int i = 0; i < b->n || carry != 0; i++) {
        if (i == GNI_BIG_WORDS) return;
        if (i >= a->n) a->w[a->n++] = 0;
        carry += (uint64_t)a->w[i] + (i < b->n ? b->w[i] : 0u);
        a->w[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

// b is not larger than a.
static void gni_big_subtract(gni_big *a, const gni_big *b) {
    uint64_t borrow = 0;
    for (int i = 0; i < a->n; i++) {
        uint64_t d = (uint64_t)a->w[i] - (i < b->n ? b->w[i] : 0u) - borrow;
        a->w[i] = (uint32_t)d;
        borrow = (d >> 32) & 1u;
    }
    while (a->n > 0 && a->w[a->n - 1] == 0) a->n--;
}

// A float taken apart: (-1)^negative x mantissa x 2^exponent.
typedef struct gni_parts {
    bool negative, nan, inf;
    bool lopsided; // the next smaller number is nearer than the next larger one
    uint64_t mantissa;
    int exponent;
} gni_parts;

static gni_parts gni_take_apart(gn_dtype t, const void *p) {
    static const int fraction_bits[] = {23, 10, 7, 52},
                     bias[] = {127, 15, 127, 1023}; // f32, f16, bf16, f64
    uint64_t u = 0;
    uint32_t u32;
    uint16_t u16;
    if (t == GN_F64) {
        memcpy(&u, p, sizeof u);
    } else if (t == GN_F32) {
        memcpy(&u32, p, sizeof u32);
        u = u32;
    } else {
        memcpy(&u16, p, sizeof u16);
        u = u16;
    }
    int bits = fraction_bits[t], width = 8 * (int)gn_dtype_size(t) - 1 - bits;
    uint64_t fraction = u & (((uint64_t)1 << bits) - 1),
             field = (u >> bits) & (((uint64_t)1 << width) - 1);
    gni_parts x;
    x.negative = (u >> (bits + width)) & 1u;
    x.nan = x.inf = false;
    if (field == ((uint64_t)1 << width) - 1) {
        x.nan = fraction != 0;
        x.inf = fraction == 0;
    }
    x.lopsided = fraction == 0 && field > 1;
    x.mantissa = field == 0 ? fraction : fraction | ((uint64_t)1 << bits);
    x.exponent = (field == 0 ? 1 : (int)field) - bias[t] - bits;
    return x;
}

// Decimal digits; the first stands for 10^exponent. No digits: zero.
typedef struct gni_digits {
    int count, exponent;
    char digit[GNI_MAX_DIGITS];
} gni_digits;

static void gni_digits_round_up(gni_digits *d) {
    while (d->count > 0 && d->digit[d->count - 1] == '9') d->count--;
    if (d->count > 0) {
        d->digit[d->count - 1]++;
        return;
    }
    d->digit[d->count++] = '1';
    d->exponent++;
}

// The number as a fraction r / s in [1, 10) times 10^k, and half the distances to its neighbours, over s too.
typedef struct gni_fraction {
    gni_big r, s, low, high;
    int k;
} gni_fraction;

static void gni_fraction_of(const gni_parts *x, gni_fraction *f) {
    int extra = x->lopsided ? 2 : 1, e = x->exponent, top = 63;
    gni_big_set(&f->r, x->mantissa);
    gni_big_set(&f->s, 1);
    gni_big_set(&f->low, 1);
    gni_big_shift(&f->r, extra + GNI_MAX(e, 0));
    gni_big_shift(&f->s, extra + GNI_MAX(-e, 0));
    gni_big_shift(&f->low, GNI_MAX(e, 0));
    while (!((x->mantissa >> top) & 1u)) top--;
    f->k = (int)floor((top + e) * 0.30102999566398119521); // right or one too small
    if (f->k >= 0) {
        gni_big_times_ten_to(&f->s, f->k);
    } else {
        gni_big_times_ten_to(&f->r, -f->k);
        gni_big_times_ten_to(&f->low, -f->k);
    }
    gni_big ten = f->s;
    gni_big_scale(&ten, 10);
    if (gni_big_compare(&f->r, &ten) >= 0) {
        f->s = ten;
        f->k++;
    }
    f->high = f->low;
    if (x->lopsided) gni_big_scale(&f->high, 2);
}

// The fewest digits that tell the number from its neighbours, but none below 10^cutoff, and at least
// those down to 10^least. With `relative` both count from the first digit.
static void gni_digits_of(const gni_parts *x, int cutoff, int least, bool relative, gni_digits *d) {
    d->count = d->exponent = 0;
    if (x->mantissa == 0) return;
    gni_fraction f;
    gni_fraction_of(x, &f);
    if (relative) {
        cutoff += f.k;
        least += f.k;
    }
    if (f.k < cutoff - 1) return;
    if (f.k < cutoff) { // it may still round up to the last digit
        gni_big_scale(&f.s, 10);
        f.k++;
    }
    d->exponent = f.k;
    bool even = x->mantissa % 2 == 0, low, high; // reading rounds ties to an even mantissa
    for (int at = f.k;; at--) {
        int digit = 0;
        for (; gni_big_compare(&f.r, &f.s) >= 0; digit++) gni_big_subtract(&f.r, &f.s);
        d->digit[d->count++] = (char)('0' + digit);
        gni_big above = f.r;
        gni_big_add(&above, &f.high);
        int from_low = gni_big_compare(&f.r, &f.low), to_high = gni_big_compare(&above, &f.s);
        low = even ? from_low <= 0 : from_low < 0;
        high = even ? to_high >= 0 : to_high > 0;
        if (((low || high) && at <= least) || at == cutoff || d->count == GNI_MAX_DIGITS) break;
        gni_big_scale(&f.r, 10);
        gni_big_scale(&f.low, 10);
        gni_big_scale(&f.high, 10);
    }
    bool up = high;
    if (low == high) { // to nearest, ties to even
        gni_big_scale(&f.r, 2);
        int half = gni_big_compare(&f.r, &f.s);
        up = half > 0 || (half == 0 && (d->digit[d->count - 1] - '0') % 2 != 0);
    }
    if (up) gni_digits_round_up(d);
}

// ---- one float

// How the floats of one array are written.
typedef struct gni_float_format {
    gn_dtype t;
    bool scientific, plus; // plus: positive numbers have a sign too
    int precision;         // most digits after the point
    int left, right;       // columns before and after the point
    int exponent;          // columns of the exponent's digits
    double most, least;    // largest and smallest absolute value but 0, while it is set up
    bool any, any_finite, odd, minus_inf; // numbers but 0; finite ones; NaN or infinities; -inf
} gni_float_format;

typedef struct gni_word {
    int n;
    char text[160];
} gni_word;

static void gni_word_add(gni_word *w, char c, int times) {
    for (; times > 0 && w->n < (int)sizeof w->text - 1; times--) w->text[w->n++] = c;
}

// The digits as text without padding, down to `zeros` places after the point at least. `point` is where
// the point is, `mantissa` where an exponent starts (or the end).
static void gni_float_body(const gni_float_format *f, const gni_parts *x, int zeros, gni_word *w,
                           int *point, int *mantissa) {
    gni_digits d;
    // What pads a number up to the point, or to the others' precision, are more of its own digits.
    if (f->scientific)
        gni_digits_of(x, -f->precision, -zeros, true, &d);
    else
        gni_digits_of(x, -f->precision, 0, false, &d);
    int first = d.count == 0 ? 0 : d.exponent, whole = f->scientific ? 1 : GNI_MAX(first + 1, 1);
    w->n = 0;
    if (x->negative)
        gni_word_add(w, '-', 1);
    else if (f->plus)
        gni_word_add(w, '+', 1);
    for (int i = 0; i < whole; i++) {
        int at = f->scientific ? i : i + GNI_MIN(first + 1, 1) - 1;
        gni_word_add(w, at >= 0 && at < d.count ? d.digit[at] : '0', 1);
    }
    *point = w->n;
    gni_word_add(w, '.', 1);
    int start =
        f->scientific ? 1 : first + 1; // the digit after the point, negative for zeros before it
    for (int i = start; i < d.count; i++) gni_word_add(w, i < 0 ? '0' : d.digit[i], 1);
    while (w->text[w->n - 1] == '0') w->n--;
    gni_word_add(w, '0', zeros - (w->n - *point - 1));
    *mantissa = w->n;
    if (!f->scientific) return;
    int size = first < 0 ? -first : first;
    gni_word_add(w, 'e', 1);
    gni_word_add(w, first < 0 ? '-' : '+', 1);
    if (f->exponent >= 3 || size >= 100) gni_word_add(w, (char)('0' + size / 100), 1);
    gni_word_add(w, (char)('0' + size / 10 % 10), 1);
    gni_word_add(w, (char)('0' + size % 10), 1);
}

// First look at a number: which notation.
static void gni_float_look(gni_float_format *f, const void *p) {
    gni_parts x = gni_take_apart(f->t, p);
    if (x.nan || x.inf) {
        f->odd = true;
        f->minus_inf = f->minus_inf || (x.inf && x.negative);
        return;
    }
    f->any_finite = true;
    double v = fabs(gni_element(f->t, p));
    if (v == 0.0) return;
    f->most = f->any ? GNI_MAX(f->most, v) : v;
    f->least = f->any ? GNI_MIN(f->least, v) : v;
    f->any = true;
}

static void gni_float_choose(gni_float_format *f) {
    f->exponent = 2;
    f->scientific = false;
    if (!f->any) return;
    double ratio = f->most / f->least; // in the array's own precision, as NumPy has it
    if (f->t != GN_F64) ratio = (double)((float)f->most / (float)f->least);
    if (f->t == GN_F16) ratio = (double)gni_f16_to_f32(gni_f32_to_f16((float)ratio));
    f->scientific = f->most >= 1e8 || f->least < 1e-4 || ratio > 1000.0;
}

// Second look: how many columns.
static void gni_float_measure(gni_float_format *f, const void *p) {
    gni_parts x = gni_take_apart(f->t, p);
    gni_word w;
    int point, mantissa;
    if (x.nan || x.inf) return;
    gni_float_body(f, &x, 0, &w, &point, &mantissa);
    f->left = GNI_MAX(f->left, point);
    f->right = GNI_MAX(f->right, mantissa - point - 1);
    if (f->scientific) f->exponent = GNI_MAX(f->exponent, w.n - mantissa - 2);
}

static void gni_float_settle(gni_float_format *f) {
    if (f->scientific) {
        f->precision = f->right;
        f->right += f->exponent + 2; // what NaN and Inf are padded to
    }
    if (!f->odd) return;
    int width = GNI_MAX(3, 3 + (f->plus || f->minus_inf ? 1 : 0)) - (f->right + 1);
    f->left = GNI_MAX(f->left, width);
}

static void gni_float_text(const gni_float_format *f, const void *p, gni_word *w) {
    gni_parts x = gni_take_apart(f->t, p);
    int point, mantissa;
    if (x.nan || x.inf) {
        const char *sign = x.inf && x.negative ? "-" : f->plus ? "+" : "";
        int blanks = f->left + f->right + 1 - 3 - (int)strlen(sign);
        w->n = snprintf(w->text, sizeof w->text, "%*s%s%s", GNI_MAX(blanks, 0), "", sign,
                        x.nan ? "nan" : "inf");
        return;
    }
    gni_word body;
    gni_float_body(f, &x, f->scientific ? f->precision : 0, &body, &point, &mantissa);
    w->n = 0;
    gni_word_add(w, ' ', f->left - point);
    for (int i = 0; i < body.n; i++) gni_word_add(w, body.text[i], 1);
    if (!f->scientific) gni_word_add(w, ' ', f->right - (body.n - point - 1));
}

// ---- one element of any dtype

typedef struct gni_printer {
    gn_context *g;
    const gn_array *a;
    gn_print_options o;
    bool summary;
    gni_float_format real, imag;
    int width; // of integers
    char *text;
    size_t n, capacity;
    bool failed;
    size_t line; // where the line under construction starts
} gni_printer;

static gn_dtype gni_part_dtype(gn_dtype t) {
    return t == GN_C64 ? GN_F32 : t == GN_C128 ? GN_F64 : t;
}

static void gni_integer_text(gn_dtype t, const void *p, gni_word *w) {
    int64_t v = 0;
    if (t == GN_I64)
        memcpy(&v, p, sizeof v); // as a double it would lose digits
    else
        v = (int64_t)gni_element(t, p);
    w->n = snprintf(w->text, sizeof w->text, "%lld", (long long)v);
}

static void gni_element_text(const gni_printer *pr, const char *p, gni_word *w) {
    gn_dtype t = pr->a->dtype;
    if (t == GN_BOOL) {
        w->n = snprintf(w->text, sizeof w->text, "%*s", pr->a->shape.rank > 0 ? 5 : 0,
                        *p ? "True" : "False");
    } else if (gni_is_float(t)) {
        gni_float_text(&pr->real, p, w);
    } else if (gni_is_complex(t)) {
        gni_word imag;
        gni_float_text(&pr->real, p, w);
        gni_float_text(&pr->imag, p + gn_dtype_size(t) / 2, &imag);
        int end = imag.n; // the j comes before the padding
        while (end > 0 && imag.text[end - 1] == ' ') end--;
        for (int i = 0; i < end; i++) gni_word_add(w, imag.text[i], 1);
        gni_word_add(w, 'j', 1);
        gni_word_add(w, ' ', imag.n - end);
    } else {
        gni_word v;
        gni_integer_text(t, p, &v);
        w->n = 0;
        gni_word_add(w, ' ', pr->width - v.n);
        for (int i = 0; i < v.n; i++) gni_word_add(w, v.text[i], 1);
    }
    w->text[w->n] = 0;
}

// ---- the formats, from the elements that will be shown

static bool gni_print_cuts(const gni_printer *pr, int axis) {
    return pr->summary && pr->a->shape.dim[axis] > 2 * (int64_t)pr->o.edge_items;
}

static void gni_print_visit(gni_printer *pr, int axis, const char *p, int look) {
    const gn_array *a = pr->a;
    gn_dtype t = a->dtype;
    if (axis < a->shape.rank) {
        int64_t n = a->shape.dim[axis], step = a->stride[axis] * (int64_t)gn_dtype_size(t),
                edge = pr->o.edge_items;
        for (int64_t i = 0; i < n; i++) {
            if (i == edge && gni_print_cuts(pr, axis)) i = n - edge;
            gni_print_visit(pr, axis + 1, p + i * step, look);
        }
        return;
    }
    if (gni_is_float(t) || gni_is_complex(t)) {
        (look == 0 ? gni_float_look(&pr->real, p) : gni_float_measure(&pr->real, p));
        p += gn_dtype_size(t) / 2;
        if (gni_is_complex(t))
            (look == 0 ? gni_float_look(&pr->imag, p) : gni_float_measure(&pr->imag, p));
    } else if (look == 0 && t != GN_BOOL) {
        gni_word w;
        gni_integer_text(t, p, &w);
        pr->width = GNI_MAX(pr->width, w.n);
    }
}

static void gni_print_formats(gni_printer *pr, const char *p) {
    gni_float_format start;
    memset(&start, 0, sizeof start);
    start.t = gni_part_dtype(pr->a->dtype);
    start.precision = pr->o.precision;
    pr->real = pr->imag = start;
    pr->imag.plus = true;
    gni_print_visit(pr, 0, p, 0);
    if (gni_is_integer(pr->a->dtype) || pr->a->dtype == GN_BOOL) return;
    gni_float_choose(&pr->real);
    gni_float_choose(&pr->imag);
    gni_print_visit(pr, 0, p, 1);
    gni_float_settle(&pr->real);
    gni_float_settle(&pr->imag);
}

// ---- layout

static void gni_print_add(gni_printer *pr, const char *text, size_t n) {
    if (pr->n + n + 1 > pr->capacity && !pr->failed) {
        size_t capacity = GNI_MAX(2 * pr->capacity, pr->n + n + 256);
        char *more = (char *)gni_realloc(pr->g, pr->text, pr->n, capacity);
        if (more == NULL) {
            gni_fail_memory(pr->g, "gn_to_string", capacity);
            pr->failed = true;
        } else {
            pr->text = more;
            pr->capacity = capacity;
        }
    }
    if (pr->failed) return;
    memcpy(pr->text + pr->n, text, n);
    pr->n += n;
    pr->text[pr->n] = 0;
}

static void gni_print_text(gni_printer *pr, const char *text) {
    gni_print_add(pr, text, strlen(text));
}

static void gni_print_newlines(gni_printer *pr, int count, int indent) {
    while (pr->n > 0 && !pr->failed && pr->text[pr->n - 1] == ' ') pr->n--;
    for (int i = 0; i < count; i++) gni_print_text(pr, "\n");
    pr->line = pr->n;
    for (int i = 0; i < indent; i++) gni_print_text(pr, " ");
}

// A word of the last axis, on the next line where it does not fit.
static void gni_print_word(gni_printer *pr, const char *word, int n, int indent, int width) {
    int column = (int)(pr->n - pr->line);
    if (column + n > width && column > indent) gni_print_newlines(pr, 1, indent);
    gni_print_add(pr, word, (size_t)n);
}

// `indent` is the column after this axis's bracket, `width` what is left of the line at its depth.
static void gni_print_axis(gni_printer *pr, int axis, const char *p, int indent, int width) {
    const gn_array *a = pr->a;
    int inner = a->shape.rank - 1 - axis; // axes below this one
    int64_t n = a->shape.dim[axis], edge = pr->o.edge_items;
    int64_t step = a->stride[axis] * (int64_t)gn_dtype_size(a->dtype);
    bool cut = gni_print_cuts(pr, axis);
    gni_print_text(pr, "[");
    for (int64_t i = 0; i < n && !pr->failed; i++) {
        if (i > 0 && inner > 0) gni_print_newlines(pr, inner, indent);
        if (i == edge && cut) {
            if (inner == 0)
                gni_print_word(pr, "...", 3, indent, width - 1);
            else
                gni_print_text(pr, "...");
            gni_print_text(pr, inner == 0 ? ", " : ",");
            if (inner > 0) gni_print_newlines(pr, inner, indent);
            i = n - edge;
        }
        if (inner == 0) {
            gni_word w;
            gni_element_text(pr, p + i * step, &w);
            gni_print_word(pr, w.text, w.n, indent, width - 1);
        } else {
            gni_print_axis(pr, axis + 1, p + i * step, indent + 1, width - 1);
        }
        if (i + 1 < n) gni_print_text(pr, inner == 0 ? ", " : ",");
    }
    gni_print_text(pr, "]");
}

static void gni_print_body(gni_printer *pr, int64_t size) {
    const gn_array *a = pr->a;
    if (size == 0) {
        gni_print_text(pr, "[]");
        if (a->shape.rank == 1) return;
        gni_print_text(pr, ", shape=(");
        for (int i = 0; i < a->shape.rank; i++) {
            char dim[32];
            snprintf(dim, sizeof dim, "%s%lld", i > 0 ? ", " : "", (long long)a->shape.dim[i]);
            gni_print_text(pr, dim);
        }
        gni_print_text(pr, ")");
        return;
    }
    const char *p = (const char *)gni_host(pr->g, (gn_array *)(uintptr_t)a);
    if (p == NULL) {
        pr->failed = true;
        return;
    }
    pr->summary = size > pr->o.threshold;
    gni_print_formats(pr, p);
    if (a->shape.rank > 0) {
        gni_print_axis(pr, 0, p, 7,
                       pr->o.line_width - 1); // after "array(["; the closing bracket counts
    } else {
        gni_word w;
        gni_element_text(pr, p, &w);
        gni_print_text(pr, w.text);
    }
}

static void gni_print_array(gni_printer *pr) {
    gn_dtype t = pr->a->dtype;
    int64_t size = gni_elements(&pr->a->shape);
    gni_print_text(pr, "array(");
    gni_print_body(pr, size);
    // Python's own kinds of number go without saying.
    if (size > 0 && (t == GN_I64 || t == GN_F64 || t == GN_BOOL || t == GN_C128)) {
        gni_print_text(pr, ")");
        return;
    }
    char dtype[32];
    int n = snprintf(dtype, sizeof dtype, "dtype=%s)", gn_dtype_name(t));
    gni_print_text(pr, ",");
    if ((int)(pr->n - pr->line) + n + 1 > pr->o.line_width)
        gni_print_newlines(pr, 1, 6);
    else
        gni_print_text(pr, " ");
    gni_print_text(pr, dtype);
}

GPUNUM_API char *gn_to_string(gn_array *a, const gn_print_options *options) {
    gn_context *g = gni_begin("gn_to_string", &a, 1);
    if (g == NULL) return NULL;
    gni_printer pr;
    memset(&pr, 0, sizeof pr);
    pr.g = g;
    pr.a = a;
    if (options != NULL) pr.o = *options;
    if (pr.o.precision < 0 || pr.o.threshold < 0 || pr.o.edge_items < 0 || pr.o.line_width < 0) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_to_string: negative options");
        gni_end_plain(g);
        return NULL;
    }
    if (pr.o.precision == 0) pr.o.precision = 8;
    if (pr.o.threshold == 0) pr.o.threshold = 1000;
    if (pr.o.edge_items == 0) pr.o.edge_items = 3;
    if (pr.o.line_width == 0) pr.o.line_width = 75;
    if (pr.o.precision > GNI_MAX_DIGITS) pr.o.precision = GNI_MAX_DIGITS;
    if (gni_materialize(g, a)) gni_print_array(&pr);
    if (pr.failed || g->call_failed) {
        gni_free(g, pr.text);
        pr.text = NULL;
    }
    gni_end_plain(g);
    return pr.text;
}

GPUNUM_API void gn_string_free(gn_context *g, char *text) {
    if (g != NULL) gni_free(g, text);
}

GPUNUM_API void gn_print(gn_array *a) {
    char *text = gn_to_string(a, NULL);
    if (text == NULL) return;
    fputs(text, stdout);
    fputc('\n', stdout);
    gn_string_free(gn_context_of(a), text);
}

// ------------------------------------------------------------------------------------------
// >>profile
// Spans of work written as a Chrome trace (JSON, "X" events). From outside: gni_profile_span while
// g->profile is set, gni_profile_free.

enum { GNI_PROFILE_NAME = 48, GNI_TRACK_CPU = 0, GNI_TRACK_GPU = 1, GNI_TRACKS = 2 };

typedef struct gni_span {
    uint64_t start, end; // of gni_now_ns
    int track;
    char name[GNI_PROFILE_NAME];
} gni_span;

struct gni_profile {
    uint64_t start;
    gni_span *span;
    size_t count, capacity;
    uint64_t dropped; // for lack of memory
};

static void gni_profile_free(gn_context *g) {
    if (g->profile == NULL) return;
    gni_free(g, g->profile->span);
    gni_free(g, g->profile);
    g->profile = NULL;
}

static void gni_profile_span(gn_context *g, const char *name, uint64_t start_ns, uint64_t end_ns,
                             int track) {
    struct gni_profile *p = g->profile;
    if (p == NULL || start_ns < p->start || end_ns < start_ns || track < 0 || track >= GNI_TRACKS)
        return;
    if (p->count == p->capacity) {
        size_t capacity = p->capacity > 0 ? 2 * p->capacity : 256;
        gni_span *more = (gni_span *)gni_realloc(g, p->span, sizeof(gni_span) * p->count,
                                                 sizeof(gni_span) * capacity);
        if (more == NULL) {
            p->dropped++;
            return;
        }
        p->span = more;
        p->capacity = capacity;
    }
    gni_span *s = &p->span[p->count++];
    s->start = start_ns;
    s->end = end_ns;
    s->track = track;
    snprintf(s->name, sizeof s->name, "%s", name);
}

GPUNUM_API void gn_profile_begin(gn_context *g) {
    if (!gni_begin_context("gn_profile_begin", g)) return;
    gni_profile_free(g); // a profile that was not ended
    g->profile = (struct gni_profile *)gni_calloc(g, sizeof(struct gni_profile));
    if (g->profile == NULL)
        gni_fail_memory(g, "gn_profile_begin", sizeof(struct gni_profile));
    else
        g->profile->start = gni_now_ns();
    gni_end_plain(g);
}

// Bytes of the UTF-8 character at p, 0 if it is none.
static size_t gni_utf8_length(const unsigned char *p) {
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    int more = *p >= 0xf8 ? 0 : *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : *p >= 0xc0 ? 1 : 0;
    if (*p < 0x80) return 1;
    if (more == 0) return 0;
    uint32_t c = *p & (0x3fu >> more);
    for (int i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    bool fine = c >= least[more] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
    return fine ? (size_t)more + 1 : 0;
}

static void gni_json_string(FILE *f, const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    fputc('"', f);
    while (*p != 0) {
        size_t n = gni_utf8_length(p);
        if (*p == '"' || *p == '\\')
            fprintf(f, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            fprintf(f, "\\u%04x", *p);
        else if (n == 0)
            fputs("\\ufffd", f);
        else
            fwrite(p, 1, n, f);
        p += n > 0 ? n : 1;
    }
    fputc('"', f);
}

// Microseconds with three digits, by integers: no locale writes a comma.
static void gni_json_us(FILE *f, uint64_t ns) {
    fprintf(f, "%llu.%03u", (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

static void gni_profile_write(gn_context *g, FILE *f) {
    static const char *const track[GNI_TRACKS] = {"CPU", "GPU"};
    const struct gni_profile *p = g->profile;
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"device\":", f);
    gni_json_string(f, g->info.name);
    fprintf(f, ",\"dropped\":%llu},\"traceEvents\":[\n", (unsigned long long)p->dropped);
    for (int i = 0; i < GNI_TRACKS; i++)
        fprintf(
            f,
            "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"%s\"}}%s",
            i + 1, track[i], i + 1 < GNI_TRACKS || p->count > 0 ? ",\n" : "\n");
    for (size_t i = 0; i < p->count; i++) {
        const gni_span *s = &p->span[i];
        fputs("{\"name\":", f);
        gni_json_string(f, s->name);
        fprintf(f, ",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":", s->track + 1);
        gni_json_us(f, s->start - p->start);
        fputs(",\"dur\":", f);
        gni_json_us(f, s->end - s->start);
        fputs(i + 1 < p->count ? "},\n" : "}\n", f);
    }
    fputs("]}\n", f);
}

GPUNUM_API gn_status gn_profile_end(gn_context *g, const char *path) {
    if (!gni_begin_context("gn_profile_end", g)) return GN_ERROR_ARGUMENT;
    gn_sync(g); // spans of work still under way
    if (g->profile == NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_profile_end: gn_profile_begin was not called");
    } else if (path == NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_profile_end: the path is NULL");
    } else {
        errno = 0;
        FILE *f = fopen(path, "wb");
        bool ok = f != NULL;
        if (ok) {
            gni_profile_write(g, f);
            ok = fflush(f) == 0 && !ferror(f);
            ok = fclose(f) == 0 && ok;
        }
        if (!ok)
            gni_fail(g, GN_ERROR_IO, "gn_profile_end: cannot write %.200s: %s", path,
                     strerror(errno));
    }
    gni_profile_free(g);
    return gni_end_status(g);
}

// ------------------------------------------------------------------------------------------
// >>open
// gn_open and gn_close, devices, synchronisation, statistics, and the bridges to a host's Vulkan.

static const gni_backend_api *gni_backend_cpu(void) { return &gni_cpu_api; }
static const gni_backend_api *gni_backend_vulkan(void) { return &gni_vulkan_api; }

// What the device of an open context can do, beyond what every device tells.
static void gni_vk_info(const gni_vk *vk, gn_device_info *out) {
#if GNI_VULKAN
    gni_vk_describe(&vk->f, vk->physical, out);
    out->usable = true;
    out->subgroup = (int)vk->caps.subgroup;
    out->multiprocessors = (int)vk->caps.multiprocessors;
    out->has_f64 = vk->caps.float64;
    out->has_i64 = vk->caps.int64;
#else
    GNI_UNUSED(vk);
    memset(out, 0, sizeof *out);
#endif
}

enum { GNI_OPEN_TEXT = 640 };

// The last failure of gn_open on this thread: there is no context yet to keep it.
static char *gni_open_text(void) {
    static GNI_THREAD_LOCAL char text[GNI_OPEN_TEXT];
    return text;
}

GPUNUM_API const char *gn_open_error(void) { return gni_open_text(); }

static gn_context *gni_open_fail(gn_context *g, const char *why) {
    snprintf(gni_open_text(), GNI_OPEN_TEXT, "gn_open: %s", why);
    if (g != NULL) gn_close(g);
    return NULL;
}

static gn_context *gni_context_new(const gn_options *o) {
    gn_allocator allocator = o->allocator;
    if (allocator.allocate == NULL || allocator.release == NULL) {
        allocator.allocate = gni_default_allocate;
        allocator.release = gni_default_release;
    }
    gn_context *g = (gn_context *)allocator.allocate(allocator.user, sizeof(gn_context));
    if (g == NULL) return NULL;
    memset(g, 0, sizeof *g);
    g->allocator = allocator;
    g->options = *o;
    g->options.cache_dir = NULL;
    if (!gni_mutex_init(&g->lock.mutex) || !gni_mutex_init(&g->stats_lock)) {
        allocator.release(allocator.user, g, sizeof(gn_context));
        return NULL;
    }
    g->seed = o->seed;
    return g;
}

static void gni_cpu_info(const gn_context *g, gn_device_info *info, const char *why) {
    static const char *const isa[] = {"plain C", "SIMD base", "AVX2", "AVX-512"};
    static const int lanes[] = {1, 4, 8, 16};
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "CPU, %d threads, %s", gni_pool_threads(g->pool), isa[g->isa]);
    snprintf(info->why, sizeof info->why, "%s", why);
    info->backend = GN_BACKEND_CPU;
    info->usable = true;
    info->has_f64 = info->has_i64 = true;
    info->threads = gni_pool_threads(g->pool);
    info->subgroup = lanes[g->isa];
}

static gni_isa gni_isa_choose(gn_cpu wanted) {
    gni_isa best = gni_isa_best();
    if (wanted == GN_CPU_BEST) return best;
    gni_isa isa = (gni_isa)((int)wanted - (int)GN_CPU_PLAIN);
    return (int)isa < (int)best ? isa : best;
}

// Opens the GPU when the options want one. False: the context cannot be had.
static bool gni_open_gpu(gn_context *g, const gn_options *o, char *why, size_t size) {
    if (o->backend == GN_BACKEND_CPU) {
        snprintf(why, size, "gn_options.backend asks for the CPU");
        return true;
    }
    g->vk = gni_vk_open(g, o, why, size);
    if (g->vk != NULL) gni_vk_info(g->vk, &g->info);
    return g->vk != NULL || o->backend == GN_BACKEND_AUTO;
}

GPUNUM_API gn_context *gn_open_version(const gn_options *options, uint32_t version, size_t options_size) {
    gn_options o;
    char why[256] = "";
    memset(&o, 0, sizeof o);
    gni_open_text()[0] = 0;
    // An older caller's smaller struct leaves the fields it does not know zero.
    if (options != NULL) memcpy(&o, options, GNI_MIN(options_size, sizeof o));
    if (version / 10000 != GPUNUM_VERSION / 10000)
        return gni_open_fail(NULL, "this file was compiled with another major version of gpunum.h than the implementation");
    if (o.backend == GN_BACKEND_WEBGPU) return gni_open_fail(NULL, "the WebGPU backend does not exist yet");
    if ((unsigned)o.backend > GN_BACKEND_WEBGPU || (unsigned)o.placement > GN_PLACE_STAY || o.threads < 0 ||
        o.device < 0 || (unsigned)o.cpu > GN_CPU_AVX512)
        return gni_open_fail(NULL, "gn_options has a field out of range");
    gn_context *g = gni_context_new(&o);
    if (g == NULL) return gni_open_fail(NULL, "out of memory");
    g->isa = gni_isa_choose(o.cpu);
    int threads = o.threads > 0 ? o.threads : gni_cpu_count();
    g->pool = gni_pool_open(g, threads);
    if (o.cache_dir != NULL) {
        char *copy = (char *)gni_alloc(g, strlen(o.cache_dir) + 1);
        if (copy == NULL) return gni_open_fail(g, "out of memory");
        memcpy(copy, o.cache_dir, strlen(o.cache_dir) + 1);
        g->options.cache_dir = copy;
    }
    bool ok = gni_open_gpu(g, &o, why, sizeof why);
    g->options.vulkan = NULL; // the caller's memory
    if (!ok || g->status != GN_OK) {
        char text[600];
        snprintf(text, sizeof text, "%s", g->status != GN_OK ? g->message : why);
        return gni_open_fail(g, text);
    }
    if (g->vk == NULL) gni_cpu_info(g, &g->info, why);
    gni_log(g, GN_LOG_INFO, "gpunum computes on %s%s%s", g->info.name, why[0] ? ": " : "", why);
    return g;
}

static void gni_stacks_free(gn_context *g) {
    while (g->stacks != NULL) {
        gni_stack *s = g->stacks;
        g->stacks = s->next;
        for (int i = 0; i < s->capacity; i++) gni_free(g, s->scopes[i].list);
        gni_free(g, s->scopes);
        gni_free(g, s);
    }
}

GPUNUM_API void gn_close(gn_context *g) {
    if (g == NULL) return;
    gni_call_enter(g);
    gni_deliver_reads(g, true);
    while (g->optimizers != NULL) gn_optimizer_free(g->optimizers);
    while (g->arrays != NULL) { // whatever holds what: every buffer goes when its last array does
        gn_array *a = g->arrays;
        a->refs++;
        if (a->expr != NULL) gni_expr_free(g, a);
        if (a->node != NULL) gni_node_free(g, a->node);
        a->node = NULL;
        gni_buffer_release(g, a->buf);
        a->buf = NULL;
        if (a->grad != NULL) {
            a->grad->user_refs--;
            gni_unref(g, a->grad);
            a->grad = NULL;
        }
        a->refs = 1;
        gni_unref(g, a);
    }
    gni_host_cache_trim(g);
    gni_stacks_free(g);
    gni_profile_free(g);
    if (g->gemm_work != NULL) gni_gemm_work_free(g, g->gemm_work);
    gni_free(g, g->gemm_work);
    gni_fft_free(g);
    gni_fft_vk_free(g);
    gni_vk_close(g->vk);
    gni_pool_close(g->pool);
    while (g->slabs != NULL) {
        gni_slab *slab = g->slabs;
        g->slabs = slab->next;
        gni_free(g, slab);
    }
    gni_free(g, (void *)(uintptr_t)g->options.cache_dir);
    g->call_depth = 0;
    gni_lock_leave(&g->lock);
    gni_mutex_free(&g->lock.mutex);
    gni_mutex_free(&g->stats_lock);
    gn_allocator allocator = g->allocator;
    allocator.release(allocator.user, g, sizeof(gn_context));
}

GPUNUM_API void gn_device_get(const gn_context *g, gn_device_info *out) {
    if (out == NULL) return;
    memset(out, 0, sizeof *out);
    if (g != NULL) *out = g->info;
}

GPUNUM_API int gn_device_list(gn_device_info *out, int capacity) {
    return gni_vk_list(NULL, out, out != NULL ? capacity : 0);
}

GPUNUM_API gn_status gn_flush(gn_context *g) {
    if (!gni_begin_context("gn_flush", g)) return GN_ERROR_ARGUMENT;
    if (g->vk != NULL && !gni_vk_flush(g->vk)) gni_fail(g, GN_ERROR_DEVICE_LOST, "gn_flush: submitting failed");
    return gni_end_status(g);
}

GPUNUM_API gn_status gn_sync(gn_context *g) {
    if (!gni_begin_context("gn_sync", g)) return GN_ERROR_ARGUMENT;
    if (g->vk != NULL && !gni_vk_wait(g->vk)) gni_fail(g, GN_ERROR_DEVICE_LOST, "gn_sync: waiting failed");
    gni_deliver_reads(g, true);
    return gni_end_status(g);
}

GPUNUM_API void gn_memory_get(gn_context *g, gn_memory_stats *out) {
    if (out == NULL) return;
    memset(out, 0, sizeof *out);
    if (!gni_begin_context("gn_memory_get", g)) return;
    if (g->vk != NULL) gni_vk_memory_stats(g->vk, out);
    gni_mutex_lock(&g->stats_lock);
    out->host_used = g->host_used;
    out->host_peak = g->host_peak;
    gni_mutex_unlock(&g->stats_lock);
    out->arrays = g->array_count;
    gni_end_plain(g);
}

GPUNUM_API void gn_memory_trim(gn_context *g) {
    if (!gni_begin_context("gn_memory_trim", g)) return;
    gni_host_cache_trim(g);
    if (g->vk != NULL) gni_vk_trim(g->vk);
    gni_end_plain(g);
}

// ---- a host's own Vulkan

GPUNUM_API gn_status gn_vulkan_buffer(gn_array *a, uint64_t *buffer, uint64_t *offset, uint64_t *size) {
    gn_context *g = gni_begin("gn_vulkan_buffer", &a, 1);
    if (g == NULL) return gni_null_status(a);
    if (buffer == NULL || offset == NULL || size == NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_vulkan_buffer: an output pointer is NULL");
    else if (g->vk == NULL)
        gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_vulkan_buffer: this context has no GPU");
    else if (gni_materialize(g, a) && !gni_is_contiguous(a))
        gni_fail(g, GN_ERROR_SHAPE, "gn_vulkan_buffer: the array is a strided view; gn_copy it first");
    else if (!g->call_failed && gni_buffer_need(g, a->buf, GNI_ON_GPU) && gni_vk_wait(g->vk)) {
        gni_buffer_drop_host(g, a->buf); // the host may write: the device copy is the only true one
        a->buf->where = GNI_ON_GPU;
        *buffer = a->buf->device.handle;
        *offset = a->buf->device.offset + (uint64_t)a->offset * gn_dtype_size(a->dtype);
        *size = gn_bytes(a);
    }
    return gni_end_status(g);
}

#if !GNI_VULKAN // what the functions below would call, were there ever a device
static bool gni_vk_wrap(gni_vk *vk, uint64_t buffer, uint64_t offset, uint64_t bytes, gni_vk_mem *out) {
    GNI_UNUSED(buffer + offset + bytes);
    return vk == NULL && out == NULL;
}
static bool gni_vk_record_begin(gni_vk *vk, void *commands) { return vk == NULL && commands == NULL; }
static uint64_t gni_vk_record_end(gni_vk *vk) { return vk != NULL; }
static void gni_vk_record_done(gni_vk *vk, uint64_t ticket) { GNI_UNUSED(vk != NULL && ticket > 0); }
#endif

GPUNUM_API gn_array *gn_vulkan_wrap(gn_context *g, uint64_t buffer, uint64_t offset, gn_dtype t, gn_shape s) {
    if (!gni_begin_context("gn_vulkan_wrap", g)) return NULL;
    gn_array *y = NULL;
    if (g->vk == NULL) gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_vulkan_wrap: this context has no GPU");
    else if (gni_shape_ok(g, "gn_vulkan_wrap", t, &s)) y = gni_array_new(g, t, &s);
    if (y != NULL) {
        uint64_t bytes = (uint64_t)gni_elements(&s) * gn_dtype_size(t);
        y->maker = "gn_vulkan_wrap";
        y->buf = gni_buffer_new(g, bytes);
        bool ok = y->buf != NULL && gni_vk_wrap(g->vk, buffer, offset, bytes, &y->buf->device);
        if (ok) {
            y->buf->has_device = y->buf->device_borrowed = true;
            y->buf->where = GNI_ON_GPU;
        } else {
            if (!g->call_failed)
                gni_fail(g, GN_ERROR_ARGUMENT, "gn_vulkan_wrap: the buffer cannot be used");
            gni_unref(g, y);
            y = NULL;
        }
    }
    return gni_end(g, y);
}

GPUNUM_API gn_status gn_vulkan_record_begin(gn_context *g, void *command_buffer) {
    if (!gni_begin_context("gn_vulkan_record_begin", g)) return GN_ERROR_ARGUMENT;
    if (g->vk == NULL) gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_vulkan_record_begin: this context has no GPU");
    else if (g->recording) gni_fail(g, GN_ERROR_ARGUMENT, "gn_vulkan_record_begin: already recording");
    else if (command_buffer == NULL) gni_fail(g, GN_ERROR_ARGUMENT, "gn_vulkan_record_begin: no command buffer");
    else if (gni_vk_record_begin(g->vk, command_buffer)) g->recording = true;
    else if (!g->call_failed) gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_vulkan_record_begin: the device refused");
    return gni_end_status(g);
}

GPUNUM_API gn_status gn_vulkan_record_end(gn_context *g, uint64_t *ticket) {
    if (!gni_begin_context("gn_vulkan_record_end", g)) return GN_ERROR_ARGUMENT;
    if (ticket != NULL) *ticket = 0;
    if (!g->recording) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_vulkan_record_end: not recording");
    } else {
        uint64_t number = gni_vk_record_end(g->vk);
        if (ticket != NULL) *ticket = number;
    }
    g->recording = false;
    return gni_end_status(g);
}

GPUNUM_API void gn_vulkan_record_done(gn_context *g, uint64_t ticket) {
    if (!gni_begin_context("gn_vulkan_record_done", g)) return;
    if (g->vk != NULL) gni_vk_record_done(g->vk, ticket);
    gni_end_plain(g);
}

#if defined(__clang__)
#pragma STDC FP_CONTRACT DEFAULT
#elif defined(__GNUC__)
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif
#endif // implementation, second half
