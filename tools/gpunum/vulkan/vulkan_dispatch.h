// >>vulkan_dispatch
// Running a kernel: its parameters and buffers made known to it, into our own stream or into a
// command buffer that a host records.
//
// A host's command buffer is executed by the host, after gn_flush and on the same queue, before
// work that is recorded later and uses its results. Parameters of what was recorded live, and
// memory that it uses is held back, until gni_vk_record_done is told the number that
// gni_vk_record_end gave: gpunum cannot know when the host's submission is over.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../vulkan/vulkan_stream.h"
#endif

#if GNI_VULKAN

// ---- recording into a host's command buffer

static void gni_vk_free_arena(gni_vk *vk, gni_vk_arena *a) {
    if (a->descriptors) vk->f.vkDestroyDescriptorPool(vk->device, a->descriptors, NULL);
    gni_vk_free(vk, &a->mem);
    gni_free(vk->gpu.g, a);
}

// `bytes` of host-visible memory, and a descriptor set if `set`, that live as long as the
// recording.
static gni_vk_arena *gni_vk_arena_take(gni_vk *vk, uint64_t bytes, bool set, uint64_t *offset) {
    gni_vk_arena *a = vk->record.arenas;
    bytes = (bytes + 255u) & ~(uint64_t)255u;
    if (!a || a->token != vk->record.token || a->mem.size - a->fill < bytes ||
        (set && a->sets == GNI_VK_BATCH_COMMANDS)) {
        a = (gni_vk_arena *)gni_calloc(vk->gpu.g, sizeof(gni_vk_arena));
        if (!a) return NULL;
        a->token = vk->record.token;
        bool ok = gni_vk_pool_alloc(vk, &vk->pools[GNI_VK_POOL_PARAMS],
                                    GNI_MAX(bytes, (uint64_t)1 << 16), &a->mem);
        if (ok && !vk->gpu.caps.addresses)
            ok = gni_vk_make_descriptor_pool(vk, &a->descriptors) == VK_SUCCESS;
        if (!ok) {
            gni_fail(vk->gpu.g, GN_ERROR_OUT_OF_MEMORY,
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
    if (!commands || vk->record.commands)
        return gni_fail(vk->gpu.g, GN_ERROR_ARGUMENT, "recording: no command buffer, or one is being recorded already");
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

static bool gni_vk_record_upload(gni_vk *vk, const gni_gpu_mem *dst, uint64_t offset,
                                 const void *src, uint64_t bytes) {
    uint64_t at = 0;
    gni_vk_arena *a = gni_vk_arena_take(vk, bytes, false, &at);
    if (!a) return false;
    memcpy((char *)a->mem.mapped + at, src, (size_t)bytes);
    return gni_vk_copy_named(vk, dst, offset, &a->mem, at, bytes, "upload");
}

// ---- dispatch

enum { GNI_VK_PARTS = 64 }; // in one dispatch

// Everything about a dispatch on its way into a command buffer.
typedef struct gni_vk_call {
    VkCommandBuffer commands;
    const gni_gpu_mem *block; // memory of the parameter block
    uint64_t at, bytes;       // where in it
    VkDescriptorPool sets;
    const gni_gpu_use *uses;
    int n_use;
} gni_vk_call;

static bool gni_vk_refuse(gni_vk *vk, const gni_vk_pipeline *p, const char *what) {
    return gni_fail(vk->gpu.g, GN_ERROR_ARGUMENT, "dispatch of %s: %s", p->name, what);
}

static bool gni_vk_dispatch_fits(gni_vk *vk, const gni_vk_pipeline *p, const gni_gpu_use *uses,
                                 int n_use, uint32_t params_bytes, const uint32_t *groups) {
    if (n_use < 0 || n_use > (int)vk->gpu.caps.max_buffers)
        return gni_vk_refuse(vk, p, "too many buffers for this device");
    if (params_bytes > GNI_GPU_MAX_PARAMS) return gni_vk_refuse(vk, p, "too many parameters");
    for (int i = 0; i < 3; i++)
        if (groups[i] > vk->gpu.caps.max_groups[i])
            return gni_vk_refuse(vk, p, "too many workgroups");
    uint64_t align = vk->gpu.caps.addresses ? 15u : 255u;
    for (int i = 0; i < n_use; i++) {
        const gni_gpu_use *u = &uses[i];
        if (!u->mem && !u->bytes) continue; // a place that the kernel does not use
        if (!u->mem || u->offset > u->mem->size || u->bytes > u->mem->size - u->offset)
            return gni_vk_refuse(vk, p, "a buffer argument reaches outside of its memory");
        if (u->offset & align) return gni_vk_refuse(vk, p, "a buffer argument is not aligned");
        if (!vk->gpu.caps.addresses && u->bytes > vk->gpu.caps.max_storage_range)
            return gni_vk_refuse(vk, p, "a buffer argument is larger than this device can bind");
    }
    return true;
}

static void gni_vk_write_block(char *out, const gni_gpu_use *uses, int n_use, const void *params, uint32_t bytes) {
    uint64_t addresses[GNI_GPU_MAX_USES];
    memset(addresses, 0, sizeof addresses);
    for (int i = 0; i < n_use; i++)
        if (uses[i].mem) addresses[i] = uses[i].mem->address + uses[i].offset;
    memcpy(out, addresses, sizeof addresses);
    if (bytes) memcpy(out + GNI_VK_ADDRESS_BYTES, params, bytes);
}

// Writes the parameter block where the device can read it. May submit the open batch.
static bool gni_vk_put_params(gni_vk *vk, gni_vk_call *d, const void *params,
                              uint32_t params_bytes) {
    d->bytes = (uint64_t)GNI_VK_ADDRESS_BYTES + ((params_bytes + 15u) & ~15u);
    if (vk->record.commands) {
        gni_vk_arena *a = gni_vk_arena_take(vk, d->bytes, !vk->gpu.caps.addresses, &d->at);
        if (!a) return false;
        d->block = &a->mem;
        d->sets = a->descriptors;
    } else {
        d->at = gni_vk_ring_take(vk, &vk->stream.params, d->bytes);
        if (d->at == UINT64_MAX) return false;
        d->block = &vk->stream.params.mem;
    }
    gni_vk_write_block((char *)d->block->mapped + d->at, d->uses, d->n_use, params, params_bytes);
    return true;
}

static void gni_vk_descriptor(VkDescriptorBufferInfo *out, const gni_gpu_mem *m, uint64_t offset,
                              uint64_t bytes) {
    out->buffer = gni_vk_buffer_of(m->handle);
    out->offset = m->offset + offset;
    // Kernels read whole vectors of 16 bytes; memory ends at a multiple of that, a host's buffer
    // may not, but at a word.
    out->range = GNI_MIN((bytes + 15u) & ~(uint64_t)15u, (GNI_MAX(m->size - offset, 1u) + 3u) & ~(uint64_t)3u);
}

static bool gni_vk_bind_buffers(gni_vk *vk, const gni_vk_call *d) {
    VkDescriptorSet set = VK_NULL_HANDLE;
    GNI_VK_INFO(VkDescriptorSetAllocateInfo, info, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
    info.descriptorPool = d->sets;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &vk->compiler.set_layout;
    if (!gni_vk_check(vk, vk->f.vkAllocateDescriptorSets(vk->device, &info, &set),
                      "vkAllocateDescriptorSets"))
        return false;
    uint32_t count = vk->gpu.caps.max_buffers + 1;
    VkDescriptorBufferInfo buffers[GNI_GPU_MAX_USES + 1];
    gni_vk_descriptor(&buffers[0], d->block, d->at, d->bytes);
    // Places that the kernel leaves alone get something that this dispatch writes anyway: checkers take
    // them for used, and no other dispatch is to wait for them.
    VkDescriptorBufferInfo unused;
    gni_vk_descriptor(&unused, &vk->dummy, 0, 256);
    for (int i = 0; i < d->n_use; i++)
        if (d->uses[i].write && d->uses[i].bytes)
            gni_vk_descriptor(&unused, d->uses[i].mem, d->uses[i].offset, d->uses[i].bytes);
    for (uint32_t i = 1; i < count; i++) {
        const gni_gpu_use *u = (int)i <= d->n_use ? &d->uses[i - 1] : NULL;
        buffers[i] = unused;
        if (u && u->bytes) gni_vk_descriptor(&buffers[i], u->mem, u->offset, u->bytes);
    }
    GNI_VK_INFO(VkWriteDescriptorSet, write, VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
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
static bool gni_vk_dispatch(gni_vk *vk, gni_vk_pipeline *p, const gni_gpu_use *uses, int n_use,
                            const void *params, uint32_t params_bytes, uint32_t gx, uint32_t gy,
                            uint32_t gz) {
    uint32_t groups[3] = {gx, gy, gz};
    if (!p || !gni_vk_usable(vk) || !gni_vk_dispatch_fits(vk, p, uses, n_use, params_bytes, groups))
        return false;
    if (gx == 0 || gy == 0 || gz == 0) return true;
    GNI_ZEROED(gni_vk_call, d);
    d.uses = uses;
    d.n_use = n_use;
    if (!gni_vk_put_params(vk, &d, params, params_bytes)) return false;
    d.commands = gni_vk_target(vk);
    if (!d.commands) return false;
    if (!vk->record.commands) d.sets = vk->stream.open->descriptors;
    if (!vk->gpu.caps.addresses && !gni_vk_bind_buffers(vk, &d)) return false;

    gni_vk_range ranges[GNI_GPU_MAX_USES];
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
    if (vk->gpu.caps.addresses) {
        uint64_t push[2] = {d.block->address + d.at, 0};
        vk->f.vkCmdPushConstants(d.commands, vk->compiler.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                 sizeof push, push);
    }
    bool timed = gni_vk_timed_begin(vk, p->name);
    vk->f.vkCmdDispatch(d.commands, gx, gy, gz);
    if (timed) gni_vk_timed_end(vk);
    for (int i = 0; i < n_use; i++)
        if (uses[i].mem) gni_vk_touch(vk, uses[i].mem);
    return gni_vk_recorded(vk);
}

// How many parts from the first one on are one dispatch: of one kernel, and none so large that the others have
// many workgroups that find nothing to do.
static int gni_vk_same_parts(const gni_vk *vk, const gni_gpu_part *parts, int count) {
    int n = 1;
    while (n < count && n < GNI_VK_PARTS && (uint32_t)n < vk->gpu.caps.max_groups[1] &&
           parts[n].pipeline == parts[0].pipeline && parts[n].bytes == parts[0].bytes && parts[n].x / 4 <= parts[0].x &&
           parts[0].x / 4 <= parts[n].x)
        n++;
    return n;
}

// One dispatch of `n` parts, after what is before `all` and meets them.
static bool gni_vk_dispatch_parts(gni_vk *vk, const gni_gpu_part *parts, int n, const gni_gpu_part *all, int all_count) {
    gni_vk_pipeline *p = (gni_vk_pipeline *)parts[0].pipeline;
    const uint64_t each = (uint64_t)GNI_VK_ADDRESS_BYTES + ((parts[0].bytes + 15u) & ~15u);
    uint32_t groups[3] = {0, 1, 1};
    for (int i = 0; i < n; i++) {
        groups[0] = GNI_MAX(groups[0], parts[i].x);
        if (!gni_vk_dispatch_fits(vk, p, parts[i].uses, parts[i].n_use, parts[i].bytes, groups)) return false;
    }
    const uint64_t at = gni_vk_ring_take(vk, &vk->stream.params, each * (uint64_t)n);
    VkCommandBuffer commands = at != UINT64_MAX ? gni_vk_target(vk) : NULL;
    if (!commands) return false;
    const gni_gpu_mem *block = &vk->stream.params.mem;
    for (int i = 0; i < n; i++)
        gni_vk_write_block((char *)block->mapped + at + each * (uint64_t)i, parts[i].uses, parts[i].n_use, parts[i].params,
                           parts[i].bytes);
    bool meets = false;
    for (int i = 0; i < all_count && !meets; i++)
        for (int k = 0; k < all[i].n_use && !meets; k++) {
            const gni_gpu_use *u = &all[i].uses[k];
            if (!u->bytes) continue;
            const gni_vk_range range = gni_vk_range_of(u->mem, u->offset, u->bytes, u->write);
            meets = gni_vk_meets(vk, &range, 1);
        }
    if (meets) gni_vk_part_commands(vk, commands);
    if (vk->stream.bound != p->pipeline) vk->f.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
    vk->stream.bound = p->pipeline;
    uint64_t push[2] = {block->address + at, each};
    vk->f.vkCmdPushConstants(commands, vk->compiler.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, push);
    const bool timed = gni_vk_timed_begin(vk, p->name);
    vk->f.vkCmdDispatch(commands, groups[0], (uint32_t)n, 1);
    if (timed) gni_vk_timed_end(vk);
    vk->stream.dispatches = true;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < parts[i].n_use; k++)
            if (parts[i].uses[k].mem) gni_vk_touch(vk, parts[i].uses[k].mem);
    return gni_vk_recorded(vk);
}

// Whatever comes after these waits for them, for more ranges are not remembered. Only with addresses, into our own stream.
static bool gni_vk_dispatch_many(gni_vk *vk, const gni_gpu_part *parts, int count) {
    bool ok = gni_vk_usable(vk) && vk->gpu.caps.addresses && !vk->record.commands;
    for (int at = 0, n = 0; at < count && ok; at += n) {
        n = gni_vk_same_parts(vk, parts + at, count - at);
        ok = gni_vk_dispatch_parts(vk, parts + at, n, parts, at == 0 ? count : 0);
    }
    vk->stream.all_dirty = true;
    return ok;
}

#endif // GNI_VULKAN
