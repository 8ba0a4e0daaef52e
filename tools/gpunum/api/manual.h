//
// NumPy arrays, FFT and training with autograd for C and C++ programs: on any GPU that has Vulkan, and on
// the CPU where there is none. One header, with precompiled kernels beside it in shaders.h.
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
//             gn_print(gn_mean(p, 0));
//         }
//         if (gn_status_get(g)) fprintf(stderr, "%s\n", gn_error(g));
//         gn_close(g);
//     }
//
//     cc -O2 app.c -lm -lpthread -ldl
//
// Contents
//
//     CONTENTS
//
// Manual
//
// Arrays. A gn_array has a dtype, a shape of up to 8 dimensions and 64-bit sizes. Elementwise ops are
// lazy: they build an expression, and a chain of them runs as one pass over memory when a value is
// needed. So are products of float32, float16 and bfloat16 matrices, which run the chain that follows them
// (bias, activation, scale, residual, cast) where they store their result. Nothing waits for the GPU until a
// value is read (gn_read, gn_item, gn_print).
//
// Lifetime. A new array belongs to the scope that is open, which drops it at its end, or to the caller
// when none is open (gn_release). gn_keep hands it outwards, gn_retain adds a reference, and in loops
// gn_set(&w, f(w)) replaces a variable. gn_close frees whatever is left. Scopes belong to the thread that
// opened them.
//
// Errors. Nothing aborts or prints. A function that makes an array returns NULL on failure and the
// context keeps the first error (gn_status_get, gn_error) until gn_error_clear. Its message starts with the function
// that was called. Every function accepts NULL arrays, so check once at the end of a chain. A released array is an
// error, GN_ERROR_STALE, as long as its address is not another one's: for 10,000 arrays at least. A handle of another
// kind, an optimizer in the place of an array, is GN_ERROR_ARGUMENT.
//
// Log. gn_options.log is told errors as they happen, and at gn_close of errors that nobody asked for, scopes that are
// still open and arrays still alive. GPUNUM_LOG=error, warning, info or debug in the environment writes to stderr what
// a program takes no log of; nothing else does.
//
// dtypes. float32, float16, bfloat16, bool and integers of 8, 16 and 32 bits work everywhere; float64, int64 and uint64
// on the CPU, and on GPUs that have them as far as these can compute with them, otherwise those ops run on the CPU;
// complex64 and complex128 can be made, viewed, copied, read, transformed (gn_fft) and computed with (gn_complex's
// comment says by what). Promotion follows the array API standard, uint64 and a signed dtype give float64 as in NumPy
// (but compare exactly); tools/gpunum/ARRAY_API.md compares function by function. Integers with floats give the float's
// dtype, and functions that need a float turn integers into float32. float16 and bfloat16 round after every op.
//
// Placement. With a GPU, each op runs where its operands are; work on CPU data goes to the GPU when it is
// large enough (gn_options.thresholds). Smaller work is tried there when it repeats: rounds of a loop, each in a scope and
// with the same calls, are timed on both sides once the loop has taken 20 ms, and go on where they were faster by a tenth
// (the trial waits for pipelines that were never compiled). gn_to moves data, gn_options.placement forces a side, gn_explain
// tells why an array was computed where it was.
//
// Accuracy. float32 means float32. exp, log, sin, cos, tanh and erf are within 2 ulp over the whole range
// on the CPU and the GPU, other functions within 4; + - * and sqrt are correctly rounded on the CPU, and
// division and sqrt within 1 ulp on the GPU. Where a float16 or bfloat16 is all that becomes of them, Vulkan's own
// arithmetic computes exp, expm1, log, log2, log1p, sin, cos, sqrt, tanh, erf, sigmoid, silu, gelu and softplus: within .51
// ulp of that dtype. Sums are compensated or pairwise. The same input on the same device gives the same bits on every run.
// GPUs may flush subnormal numbers to zero.
//
// Threads. Any thread may use a context; calls on one context are serialised by a lock inside it.
// Scopes and gn_no_grad_begin count per thread. In the child of a fork() a context computes on one thread of the
// CPU: its other threads and its GPU, and with that the data that is only there, stayed with the parent. No other
// thread may be inside a call while the process forks.
//
// Switches, defined before including (all but the first two in the implementing file only):
//     GPUNUM_IMPLEMENTATION   compile the implementation here
//     GPUNUM_STATIC           every function static, for a single file
//     GPUNUM_NO_VULKAN        CPU only; needs no Vulkan headers
//     GPUNUM_USE_VOLK         take vkGetInstanceProcAddr from volk instead of opening the loader
//                             (also where the implementation comes before volk.h in one file)
//     GPUNUM_USE_WEBGPU       a device layer on webgpu.h beside that of Vulkan, or with GPUNUM_NO_VULKAN instead of it
//                             (GN_BACKEND_WEBGPU): link Dawn; in a page that is the browser. Kernels: shaders_wgsl.h
//     GPUNUM_NO_THREADS       no threads and no locks
//     GPUNUM_NO_SIMD          plain C kernels only
//                             (Emscripten: the first of these always; the others without -pthread, without -msimd128)
//     GPUNUM_NO_AVX512        leaves the widest of x86's instruction sets out, a third of the compile time
//     GPUNUM_NO_FFT           no transforms: they and convolutions that need them are GN_ERROR_UNSUPPORTED
//     GPUNUM_NO_LINALG        no decompositions (gn_solve to gn_svd): they are GN_ERROR_UNSUPPORTED
//     GPUNUM_USE_CBLAS        cblas_sgemm and cblas_dgemm (32-bit sizes), which you link, for all but small
//                             matrix products on the CPU, with that library's rounding and threads
//     GPUNUM_SELF             how this file includes itself, if it was renamed (default "gpunum.h")
//     GPUNUM_SHADERS          where the kernels are (default "shaders.h"), and GPUNUM_SHADERS_WGSL (default
//                             "shaders_wgsl.h")
//     GPUNUM_API              overrides how public functions are declared
//
// Names. A getter of an array is its word alone (gn_size, gn_rank, gn_grad), with _of where the word is a type's
// (gn_shape_of, gn_dtype_of, gn_context_of); a getter of a context or an optimizer ends in _get (gn_status_get,
// gn_device_get, gn_memory_get, gn_lr_get).
//
// In a page. Emscripten compiles this header as it is: emcc -O2 -msimd128 -sALLOW_MEMORY_GROWTH -sSTACK_SIZE=1MB, and
// with -mrelaxed-simd for browsers that have fused multiply-add. It computes on the CPU there, and with
// GPUNUM_USE_WEBGPU on the GPU where the browser has WebGPU (no other webgpu.h in the implementing file). What waits
// for a GPU, gn_open, gn_read, gn_item and gn_sync, works in a program that is linked with -sJSPI or -sASYNCIFY; one
// that is not, calls gn_open_async, gn_read_async and gn_poll, and whatever would wait is GN_ERROR_UNSUPPORTED. What is
// computed in float64 of integers elsewhere (means, variances, medians, bounds of histograms) is of float32 there on a GPU.
// GN_PLACE_GPU keeps small work there, too. gpunum.js (tools/web) is the same in JavaScript.
//
// Other languages. Every macro has a function behind it: gn_open gn_open_version (with gn_version() and
// gn_options_size(); options may be NULL), gn_open_async gn_open_async_version, GN_SCOPE gn_scope_begin and
// gn_scope_end, GN_SHAPE gn_shape_from, GN_AXES gn_axes_from, GN_KEEP gn_axes_keep, gn_permute gn_permute_axes,
// gn_einsum gn_einsum_list.
//
// Changes from 0.1 to 0.2, with what to write instead:
//     gn_sum(a, GN_AXIS(1))               gn_sum(a, 1); a plain number is that axis, so gn_sum(a, 0) is axis 0
//     GN_AXIS(0) | GN_AXIS(2)             GN_AXES(0, 2); GN_AXES() is the empty set; an axis named twice is an error
//     GN_AXIS(1) | GN_KEEP                GN_KEEP(1), GN_KEEP(GN_AXES(0, 2)), GN_KEEP(GN_ALL)
//     gn_argmax(a, GN_FLAT)               gn_argmax(a, GN_ALL); gn_argmin and gn_argmax take GN_KEEP
//     gn_one_hot(indices, classes, t)     gn_one_hot(indices, t, classes)
//     gn_permutation(g, n)                gn_permutation(g, t, n)
//     gn_he_normal(g, s)                  gn_he_normal(g, t, s), and gn_xavier_uniform too
//     gn_get_lr, gn_set_lr                gn_lr_get, gn_lr_set
//     gn_log_level                        rises from GN_LOG_ERROR to GN_LOG_DEBUG; 0 is GN_LOG_DEFAULT, warnings
//     break in GN_SCOPE                   closes the scope, where it left it open; it ends no loop around it
//     a log function for stderr           gn_log_stderr, or GPUNUM_LOG in the environment
//     int32 of gn_argmin and gn_argmax    int64
//     gn_qr                               r's diagonal is never negative, whichever backend computes it
//     sections of a gn_array              gn_split, gn_array_split, gn_unstack; and gn_roll, gn_tile, gn_repeat, gn_pad,
//                                         gn_diff, gn_meshgrid, gn_clip, nan-forms of reductions, gn_lstsq, gn_pinv and
//                                         more are new
//     what numpy or a loop did            gn_sort, gn_argsort, gn_topk, gn_cumsum, gn_unique, gn_quantile, gn_histogram;
//                                         gn_assign, gn_take_along, gn_put_along, gn_scatter_add, gn_mask, gn_nonzero;
//                                         gn_gamma, gn_choice, gn_shuffle; gn_load_npz, gn_load_csv; GN_I16, GN_U16 and
//                                         GN_U64 are new
//     sums of unsigned integers           are uint64, as NumPy's; uint8 with int8 is int16
//
// What it does not do: sparse arrays, strings, dates, ragged shapes, distributed arrays.
