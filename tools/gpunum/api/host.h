// >>host
// Sharing with other libraries, and with a program that has its own Vulkan device (see gn_options.vulkan).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// DLPack's exchange of arrays in CPU memory, with NumPy, PyTorch and others: https://dmlc.github.io/dlpack. Its dlpack.h
// may be included before or after this header, or not at all.
struct DLManagedTensor;
// Lends the value of `a`, without a copy but where its strides are 0 or negative. Whoever has the tensor calls its `deleter`
// once, from any thread, before gn_close. What is written there is seen where the CPU computes, a copy on a GPU keeps what
// it has.
GPUNUM_API struct DLManagedTensor *gn_to_dlpack(gn_array *a);
// Borrows a tensor as gn_array_wrap does, with its strides: `deleter` is called when the memory is no longer needed, but not
// by a call that fails. GN_ERROR_UNSUPPORTED if it is not in CPU memory.
GPUNUM_API gn_array *gn_from_dlpack(gn_context *g, struct DLManagedTensor *tensor);
// The VkBuffer, byte offset and size that hold `a` on the device. Flushes and waits, so that the buffer
// holds the value; `a` must stay alive and unwritten while the host uses it.
GPUNUM_API gn_status gn_vulkan_buffer(gn_array *a, uint64_t *buffer, uint64_t *offset, uint64_t *size);
// An array over a host's VkBuffer (storage buffer and transfer usage, and shader device address unless
// GN_VULKAN_NO_ADDRESSES), from an offset on that is a multiple of 16, without addresses of 256, and with bytes to fill
// the last 4. The host keeps the buffer alive until the array is gone. Work on it may run on the CPU, too: gn_sync, or
// gn_vulkan_buffer of the array, comes before the host uses the buffer outside of recorded commands. Then it holds what
// was written here, and what the host writes is seen.
GPUNUM_API gn_array *gn_vulkan_wrap(gn_context *g, uint64_t buffer, uint64_t offset, gn_dtype t, gn_shape s);
// Between begin and end, work goes into the host's VkCommandBuffer (recording, outside a render pass)
// instead of gpunum's queue. The host submits it, and when it has finished calls gn_vulkan_record_done
// with the ticket: until then what the commands use is held back. Values cannot be read in between.
GPUNUM_API gn_status gn_vulkan_record_begin(gn_context *g, void *command_buffer);
GPUNUM_API gn_status gn_vulkan_record_end(gn_context *g, uint64_t *ticket);
GPUNUM_API void gn_vulkan_record_done(gn_context *g, uint64_t ticket);
