// The rooms of gpunum.h in their order: its table of contents. tools/make_header.py joins them into the header that
// users take; programs of this repository compile from here. README.md beside this file is the map.
#define GNI_ROOMS // rooms include nothing themselves
#include "api/manual.h"

#ifndef GPUNUM_H
#define GPUNUM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#include "api/types.h"               // What every call shares
#include "api/context.h"             // Opening and closing, errors, devices, synchronisation
#include "api/arrays.h"              // Making arrays, reading them, and who owns them
#include "api/elementwise_api.h"     // Elementwise functions
#include "api/views.h"               // Arrays that share memory with their source
#include "api/reductions.h"          // Sums, extremes and softmax over axes
#include "api/order.h"               // Scans, sorts, quantiles, sets, histograms
#include "api/linalg.h"              // Products, sums of products and decompositions of matrices
#include "api/random.h"              // Philox 4x32-10, counter based
#include "api/grad.h"                // Reverse-mode differentiation
#include "api/train.h"               // Layers, losses and optimizers
#include "api/data.h"                // Batches of samples for training, and images as they are varied
#include "api/files.h"               // NumPy's .npy and MNIST's IDX
#include "api/watch.h"               // Profiles in Chrome's trace format
#include "api/host.h"                // Sharing with other libraries and with a program that has its own Vulkan device
#include "api/transforms.h"          // Fourier, cosine and sine transforms, complex numbers, convolution
#include "api/curves_api.h"          // Derivatives, integrals and polynomials of samples, windows
#ifdef __cplusplus
} // extern "C"
#endif
#include "api/macros.h"              // Lists of arguments as macros and templates
#include "api/cpp.h"                 // gn::array and gn::context, in C++
#endif // GPUNUM_H

#if defined(GPUNUM_IMPLEMENTATION) && !defined(GNI_SIMD_PASS) && !defined(GPUNUM_IMPLEMENTED) &&                   \
    (!defined(GPUNUM_PART) || GPUNUM_PART)
#define GPUNUM_IMPLEMENTED
#include "core/config.h"             // Switches resolved, system headers, compiler set-up
#include "core/optable.h"            // What each elementwise op is, said once
#include "core/kinds.h"              // The numbers of ops, domains, reductions
#include "core/tables.h"             // What one SIMD pass offers
#include "core/integers.h"           // Integer arithmetic as the ops define it
#include "core/half.h"               // float16 and bfloat16 to and from float32, one value at a time
#include "simd/passes.h"             // Compiles the SIMD rooms once per instruction set
#endif

#if defined(GNI_SIMD_PASS) && !defined(GNI_FFT_PASS)
#include "simd/simd.h"               // Vectors of one SIMD pass
#include "simd/vmath.h"              // The float32 functions of one SIMD pass
#include "simd/fold_kernels.h"       // Folds of reductions, compiled per pass
#include "simd/cpu_kernels.h"        // Loops of the CPU backend, compiled per pass
#include "simd/dmath.h"              // Vectors of 64-bit lanes, and float64 functions of them
#include "simd/wide_kernels.h"       // The same for registers of 64 bits, and the table of both
#include "simd/linalg_micro.h"       // Loops of the matrix decompositions over rows of float64
#include "simd/gemm_micro.h"         // Register tiles, dot products and panel packing of the matrix product
#ifndef GPUNUM_NO_FFT
#define GNI_FFT_PASS 32 // the precision, 64 after it
#endif
#endif
#ifdef GNI_FFT_PASS
GNI_O1_BEGIN
GNI_O1_VECTORS
#include "simd/fft_numbers.h"        // What the FFT rooms are compiled with, float32 or float64
#include "simd/fft_micro.h"          // Butterflies of the FFT, on vectors
#include "simd/fft_passes.h"         // Passes of the FFT over rows of vectors, columns, batches and short lengths
GNI_O1_END
#include "simd/fft_end.h"            // Compiles them for float64 after float32
#endif
#if defined(GNI_SIMD_PASS) && !defined(GNI_FFT_PASS)
#include "simd/simd_end.h"           // Takes the short names of one SIMD pass back
#endif

#if defined(GPUNUM_IMPLEMENTED) && !defined(GNI_SIMD_PASS) && !defined(GNI_PASSES_ONLY) && !defined(GPUNUM_IMPLEMENTED_2)
#define GPUNUM_IMPLEMENTED_2
#include "core/platform.h"           // Threads, locks, atomics and clocks
#include "core/device.h"             // What a GPU is: one table of functions that a device layer fills
#include "core/slots.h"              // What kernels and their callers agree on: parameters, constants, flags
#include "core/structs.h"            // Every internal type that more than one room uses
#include "core/internal.h"           // The functions that rooms offer each other, by the room that defines them
#include "core/circle.h"             // Points of the unit circle
#include "core/memory.h"             // CPU memory, counted, through the user's allocator
#include "core/log.h"                // Log lines and the sticky first error
#include "core/call.h"               // The frame of every public call
#include "core/learn.h"              // Which side a loop was faster on
#include "core/array.h"              // Array headers, buffers, references and scopes
#include "core/lazy.h"               // Elementwise work stays an expression until somebody needs the value
#include "core/evaluate.h"           // Pending expressions become one program, which runs
#include "core/place.h"              // Which backend runs a job, and bringing the operands there
#include "core/product.h"            // A pending product and the elementwise work around it, as one job
#include "core/access.h"             // Data in and out of arrays
#include "ops/create.h"              // Arrays from nothing
#include "ops/views_ops.h"           // Arrays that look at other arrays' memory
#include "cpu/threads.h"             // The CPU thread pool
#include "cpu/gemm_cpu.h"            // The matrix product on the CPU: which path, which blocks, which threads
#ifndef GPUNUM_NO_FFT
#include "cpu/fft_cpu.h"             // The FFT on the CPU: plans and their cache, transforms of rows
#include "cpu/fft_jobs.h"            // Its jobs: axes, columns, real data, threads
#endif
GNI_O1_BEGIN
#include "cpu/cpu_special.h"         // Elementwise functions that are rare and long
GNI_O1_END
#include "cpu/cpu_wide.h"            // The CPU backend's ops on 64-bit registers that are no loops of vectors
#include "cpu/cpu_narrow.h"          // Elementwise programs on items of 8 and 16 bits
#include "cpu/cpu_pairs.h"           // Elementwise programs on complex numbers as they lie in memory
#include "cpu/cpu.h"                 // The CPU backend
GNI_OS_BEGIN
GNI_OS_END
#include "cpu/cpu_reduce.h"          // Reductions on the CPU, along rows and columns
#include "cpu/cpu_order.h"           // Scans, sorts, searches and counts on the CPU
#include "cpu/cpu_norm.h"            // Normalisation on the CPU
#include "cpu/cpu_conv.h"            // Convolutions on the CPU: products with windows of images
#include "cpu/cpu_attend.h"          // Attention on the CPU
#include "cpu/cpu_random.h"          // Random numbers on the CPU: uniform and normal ones, ranges, distributions
#include "cpu/cpu_jobs.h"            // The other jobs on the CPU: softmax, take, matmul
GNI_OS_BEGIN
#include "cpu/conv_last.h"           // Convolutions on the CPU of images with channels last
#include "vulkan/vulkan_loader.h"    // The Vulkan headers and the private table of function pointers
#include "vulkan/vulkan_device.h"    // The types of all Vulkan rooms, the choice of a device
#include "vulkan/vulkan_memory.h"    // The pool of device memory and the pools of staging memory
#include "vulkan/vulkan_stream.h"    // The stream of commands: batches, barriers, data to and from the device
GNI_OS_END
GNI_O1_BEGIN
#include "vulkan/vulkan_spirv.h"     // Cuts a SPIR-V module down to what one set of specialisation constants leaves of it
#include "gpu/unpack.h"          // Kernels out of the text that shaders.h keeps them in
GNI_O1_END
GNI_OS_BEGIN
#include "vulkan/vulkan_pipelines.h" // Compute pipelines out of shaders.h
#include "vulkan/vulkan_dispatch.h"  // Running a kernel
#include "vulkan/vulkan_layer.h"     // Its functions as a device layer
#include "webgpu/webgpu_browser.h"   // The part of webgpu.h that is needed, on a browser's own WebGPU
#include "webgpu/webgpu_device.h"    // A WebGPU device: its memory, its stream of commands
#include "webgpu/webgpu_programs.h"  // Elementwise programs and reductions as WGSL, written at run time
#include "webgpu/webgpu_kernels.h"   // Softmax and products as WGSL, written at run time
#include "webgpu/webgpu_layer.h"     // Kernels on a WebGPU device, and its functions as a device layer
#ifndef GPUNUM_NO_FFT
#include "gpu/gpu_fft_tables.h"      // Tables of the FFT on the GPU, made by the host or by the device
#include "gpu/gpu_fft.h"             // The FFT on the GPU: the passes that a length is cut into
#endif
#include "gpu/gpu_words.h"           // Programs of int64 for GPUs that have none
#include "gpu/gpu_jobs.h"            // Jobs on a GPU: elementwise programs, reductions, copies, random numbers
#include "gpu/gpu_rows.h"            // Jobs on a GPU over rows as a whole: softmax, norms
#include "gpu/gpu_order.h"           // Scans, sorts, searches and counts on a GPU
#include "gpu/gpu_random.h"          // Random numbers on a GPU
#include "gpu/gpu_places.h"          // Jobs with indices on a GPU: take, scatter, and what is told of indices that are none
#include "gpu/gpu_tiles.h"           // Which kernel and which tile computes a matrix product on a GPU
#include "gpu/gpu_recur.h"           // The steps of recurrent networks on a GPU
#include "gpu/gpu_matmul.h"          // Matrix products on a GPU: fused, split along k, on matrix units
#include "gpu/gpu_conv.h"            // Convolutions on a GPU: images with their channels last, products that read windows
#include "gpu/gpu_attention.h"       // Attention on the GPU, as one job
#include "gpu/gpu_split.h"           // float32 products on matrix units: operands in parts, chosen by the device
#ifndef GPUNUM_NO_LINALG
#include "gpu/gpu_factor.h"        // Matrix decompositions on the GPU, as far as they are no products
#endif
#include "gpu/gpu_backend.h"         // The GPU as one of the backends: which jobs it does, and by which room
GNI_OS_END
#include "ops/async.h"               // gn_read_async
#include "ops/elementwise.h"         // The public elementwise functions, from the op tables
GNI_O1_BEGIN
#include "ops/arrange.h"             // Arrays cut up, repeated, padded and shifted
GNI_O1_END
#include "ops/reduce_ops.h"          // The public reductions
#include "ops/matmul.h"              // The public matrix product
GNI_OS_BEGIN
#include "ops/linalg_ops.h"          // Diagonals and triangles, einsum and its relatives
GNI_OS_END
#ifndef GPUNUM_NO_LINALG
#include "linalg/decompose.h"        // Matrix decompositions of one matrix on the CPU
#include "linalg/divide.h"           // Eigenvectors and singular vectors by divide and conquer
#include "linalg/factor_cpu.h"       // Decompositions of a batch on the CPU
#endif
GNI_O1_BEGIN
#ifndef GPUNUM_NO_LINALG
#include "linalg/complex_factor.h"   // Decompositions of complex matrices on the CPU
#endif
GNI_O1_END
GNI_OS_BEGIN
#ifndef GPUNUM_NO_LINALG
#include "linalg/general.h"          // Eigenvalues of matrices that need not be symmetric
#include "linalg/factor_gpu.h"       // Decompositions of large matrices on the GPU, by blocks
#include "linalg/factor_batch.h"     // The same on the GPU: large matrices, batches of small ones
#include "linalg/values_gpu.h"       // Eigenvalues and singular values of large matrices on the GPU
#include "linalg/factor_ops.h"       // The public decompositions and their gradients
#else
#include "linalg/factor_none.h"      // What they say where they are left out
#endif
GNI_OS_END
GNI_O1_BEGIN
#include "ops/complex.h"             // Complex arrays: parts and arithmetic
GNI_O1_END
GNI_OS_BEGIN
#include "ops/statistics.h"          // Reductions without NaN, means with weights, covariances, nearness
GNI_OS_END
GNI_O1_BEGIN
#include "ops/assign.h"              // Writing to views
GNI_O1_END
GNI_OS_BEGIN
#include "ops/order_ops.h"           // The public scans and sorts, quantiles, sets, histograms
GNI_OS_END
GNI_O1_BEGIN
#include "ops/indexing.h"            // Gathers and scatters by an index for each element, masks
GNI_O1_END
GNI_OS_BEGIN
#include "linalg/products.h"         // Kronecker and cross products, norms, powers, pseudo-inverses
#include "ops/fft.h"                 // The public transforms
#include "ops/curves.h"              // Derivatives, integrals and polynomials of samples, windows
GNI_OS_END
GNI_O1_BEGIN
#include "ops/random_ops.h"          // Random arrays
GNI_O1_END
GNI_OS_BEGIN
#include "ops/augment.h"             // Images varied at random, and sampled anywhere
GNI_OS_END
#include "grad/autograd.h"           // The record of what was computed, and the pass back over it
#include "grad/gradients.h"          // The derivative of each op, as public calls
GNI_OS_BEGIN
#include "grad/nn.h"                 // Layers and losses
#include "grad/depthwise.h"          // Convolutions of each channel with a kernel of its own, on a GPU
#include "grad/winograd.h"           // Convolutions with kernels of 3x3 by tiles, on a GPU
#include "grad/conv.h"               // Convolutions, as products whose one operand is windows
#include "grad/attention.h"          // Attention in parts
#include "grad/sequences.h"          // Layers over sequences: rotary embedding, recurrent networks
GNI_OS_END
GNI_O1_BEGIN
#include "grad/pool.h"               // Pooling and images of another size
GNI_O1_END
GNI_OS_BEGIN
#include "grad/norm.h"               // Normalisation over batches, layers and groups
#include "grad/losses.h"             // The losses that are made of other ops
#include "grad/custom.h"             // The caller's own ops in autograd's record
#include "grad/optim.h"              // Optimizers
#include "grad/schedules.h"          // Learning rates as functions of the step's number
#include "util/stream.h"             // Files and memory that are read and written
#include "util/io.h"                 // Array files: .npy and IDX
GNI_OS_END
GNI_O1_BEGIN
#include "util/npz.h"                // Archives of arrays, inflate
#include "util/print.h"              // Arrays as text, laid out as NumPy's repr does
#include "util/csv.h"                // Tables of numbers as text
GNI_O1_END
GNI_OS_BEGIN
#include "util/dlpack.h"             // Arrays of other libraries and for them
#include "util/profile.h"            // Spans of work written as a Chrome trace (JSON, "X" events)
#include "util/params.h"             // Named arrays, and files of them: safetensors
#include "util/loader.h"             // Samples dealt out in batches by a thread
#include "util/open.h"               // gn_open and gn_close, devices, synchronisation, statistics
GNI_OS_END
#endif

#if defined(GPUNUM_IMPLEMENTED) && !defined(GNI_SIMD_PASS) && !defined(GPUNUM_RESTORED)
#define GPUNUM_RESTORED
#include "core/config_end.h"         // Takes the set-up of the compiler back
#endif
