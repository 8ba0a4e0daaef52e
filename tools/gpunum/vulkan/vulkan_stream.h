// >>vulkan_stream
// The stream of commands: batches (a command buffer each, several in flight, counted by one
// timeline semaphore), barriers where byte ranges meet, and the way of data to and from the device.
// What a batch uses carries the batch's serial number, so that it is known when it is free.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/threads.h"
#include "../vulkan/vulkan_memory.h"
#endif

#if GNI_VULKAN

static bool gni_vk_check_lost(gni_vk *vk, VkResult r, const char *what) {
    if (gni_vk_check(vk, r, what)) return true;
    vk->gpu.lost = true; // recorded work is gone, whatever the reason
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
    if (vk->gpu.lost) return gni_vk_usable(vk);
    // A sleeping thread wakes late: look for a few microseconds first. A device made of CPU threads
    // needs the core that would be looking.
    uint64_t start = vk->gpu.caps.kind == GNI_GPU_CPU ? 0 : gni_now_ns();
    do {
        if (!gni_vk_poll(vk)) return false;
        if (serial <= s->completed) return true;
    } while (start && gni_now_ns() - start < 40000u);
    GNI_VK_INFO(VkSemaphoreWaitInfo, info, VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
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
static bool gni_vk_idle(gni_vk *vk, const gni_gpu_mem *m) {
    if (!m->block) return false;
    const gni_vk_chunk *c = &gni_vk_block_of(m)->pool->chunks[m->cls];
    if (c->record > vk->record.done) return false;
    if (c->serial <= vk->stream.completed) return true;
    return c->serial <= vk->stream.submitted && gni_vk_poll(vk) &&
           c->serial <= vk->stream.completed;
}

// ---- timestamps

static uint64_t gni_vk_host_time(const gni_vk *vk, uint64_t ticks) {
    uint64_t mask = vk->timestamp_bits >= 64 ? UINT64_MAX : ((uint64_t)1 << vk->timestamp_bits) - 1;
    double ns = (double)((ticks - vk->clock_ticks) & mask) * (double)vk->gpu.caps.timestamp_ns;
    return vk->clock_ns + (uint64_t)ns;
}

// Turns the timestamps of a finished batch into events. Events are dropped when memory runs out.
static void gni_vk_collect(gni_vk *vk, gni_vk_batch *b) {
    uint64_t ticks[2 * GNI_VK_BATCH_COMMANDS];
    int n = b->timed;
    b->timed = 0;
    if (n == 0 || vk->gpu.lost) return;
    VkResult r = vk->f.vkGetQueryPoolResults(vk->device, b->queries, 0, (uint32_t)(2 * n),
                                             sizeof ticks, ticks, 8, VK_QUERY_RESULT_64_BIT);
    if (r != VK_SUCCESS) return;
    if (vk->event_count + n > vk->event_capacity) {
        int capacity = GNI_MAX(2 * vk->event_capacity, vk->event_count + n);
        size_t item = sizeof(gni_gpu_event);
        gni_gpu_event *grown = (gni_gpu_event *)gni_realloc(
            vk->gpu.g, vk->events, (size_t)vk->event_capacity * item, (size_t)capacity * item);
        if (!grown) return;
        vk->events = grown;
        vk->event_capacity = capacity;
    }
    for (int i = 0; i < n; i++) {
        gni_gpu_event *e = &vk->events[vk->event_count++];
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
    size.descriptorCount = GNI_VK_BATCH_COMMANDS * (vk->gpu.caps.max_buffers + 1u);
    GNI_VK_INFO(VkDescriptorPoolCreateInfo, info, VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
    info.maxSets = GNI_VK_BATCH_COMMANDS;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    return vk->f.vkCreateDescriptorPool(vk->device, &info, NULL, out);
}

static VkResult gni_vk_make_queries(gni_vk *vk, VkQueryPool *out) {
    GNI_VK_INFO(VkQueryPoolCreateInfo, info, VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = 2 * GNI_VK_BATCH_COMMANDS;
    return vk->f.vkCreateQueryPool(vk->device, &info, NULL, out);
}

static VkResult gni_vk_make_batch(gni_vk *vk, gni_vk_batch *b) {
    GNI_VK_INFO(VkCommandPoolCreateInfo, pool, VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool.queueFamilyIndex = vk->family;
    VkResult r = vk->f.vkCreateCommandPool(vk->device, &pool, NULL, &b->pool);
    if (r == VK_SUCCESS) {
        GNI_VK_INFO(VkCommandBufferAllocateInfo, info, VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
        info.commandPool = b->pool;
        info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
        info.commandBufferCount = 1;
        r = vk->f.vkAllocateCommandBuffers(vk->device, &info, &b->commands);
    }
    if (r == VK_SUCCESS && !vk->gpu.caps.addresses)
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
    GNI_VK_INFO(VkCommandBufferBeginInfo, info, VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
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
    GNI_VK_INFO(VkMemoryBarrier, b, VK_STRUCTURE_TYPE_MEMORY_BARRIER);
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
    if (!b || vk->gpu.lost) return gni_vk_usable(vk);
    // The end of a batch makes nothing visible to the host by itself.
    if (s->to_host || vk->gpu.caps.mapped)
        gni_vk_barrier(vk, b->commands, GNI_VK_STAGES, GNI_VK_WRITES, VK_PIPELINE_STAGE_HOST_BIT,
                       VK_ACCESS_HOST_READ_BIT);
    s->to_host = false;
    if (!gni_vk_check_lost(vk, vk->f.vkEndCommandBuffer(b->commands), "ending a command buffer"))
        return false;
    GNI_VK_INFO(VkTimelineSemaphoreSubmitInfo, timeline, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    timeline.signalSemaphoreValueCount = 1;
    timeline.pSignalSemaphoreValues = &s->next;
    GNI_VK_INFO(VkSubmitInfo, info, VK_STRUCTURE_TYPE_SUBMIT_INFO);
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

// Whether one of `uses` meets a command since the last barrier.
static bool gni_vk_meets(const gni_vk *vk, const gni_vk_range *uses, int n) {
    const gni_vk_stream *s = &vk->stream;
    bool meet = s->all_dirty;
    for (int k = 0; k < n && !meet; k++) {
        for (int i = 0; i < s->range_count && !meet; i++) {
            const gni_vk_range *r = &s->ranges[i];
            meet = r->key == uses[k].key && (r->write || uses[k].write) && r->begin < uses[k].end &&
                   uses[k].begin < r->end;
        }
    }
    return meet;
}

// Puts a barrier after all commands since the last one.
static void gni_vk_part_commands(gni_vk *vk, VkCommandBuffer c) {
    gni_vk_stream *s = &vk->stream;
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

// Puts a barrier in front of a command that uses `uses` if an earlier one since the last barrier
// meets it.
static void gni_vk_order(gni_vk *vk, VkCommandBuffer c, const gni_vk_range *uses, int n,
                         bool transfer) {
    gni_vk_stream *s = &vk->stream;
    if (s->range_count + n > GNI_VK_HAZARDS || gni_vk_meets(vk, uses, n)) gni_vk_part_commands(vk, c);
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

static gni_vk_range gni_vk_range_of(const gni_gpu_mem *m, uint64_t offset, uint64_t bytes,
                                    bool write) {
    gni_vk_range r;
    r.key = m->handle;
    r.begin = m->offset + offset;
    r.end = r.begin + bytes;
    r.write = write;
    return r;
}

static bool gni_vk_inside(gni_vk *vk, const gni_gpu_mem *m, uint64_t offset, uint64_t bytes,
                          const char *what) {
    if (offset <= m->size && bytes <= m->size - offset) return true;
    return gni_fail(vk->gpu.g, GN_ERROR_ARGUMENT, "%s: bytes outside of a buffer", what);
}

// Where commands go: the host's command buffer while one is being recorded, else the open batch.
static VkCommandBuffer gni_vk_target(gni_vk *vk) {
    if (vk->record.commands) return vk->record.commands;
    gni_vk_batch *b = gni_vk_begin(vk);
    return b ? b->commands : NULL;
}

static bool gni_vk_copy_named(gni_vk *vk, const gni_gpu_mem *dst, uint64_t doff,
                              const gni_gpu_mem *src, uint64_t soff, uint64_t bytes,
                              const char *name) {
    VkCommandBuffer c = gni_vk_target(vk);
    if (!c) return false;
    gni_vk_range uses[2] = {gni_vk_range_of(dst, doff, bytes, true), gni_vk_range_of(src, soff, bytes, false)};
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
GNI_MAYBE_UNUSED static bool gni_vk_copy(gni_vk *vk, const gni_gpu_mem *dst, uint64_t doff,
                                         const gni_gpu_mem *src, uint64_t soff, uint64_t bytes) {
    if (bytes == 0) return true;
    if (!gni_vk_inside(vk, dst, doff, bytes, "copy") ||
        !gni_vk_inside(vk, src, soff, bytes, "copy"))
        return false;
    return gni_vk_copy_named(vk, dst, doff, src, soff, bytes, "copy");
}

// Repeats a 32-bit word. `offset` is a multiple of 4; `bytes` is rounded up to one.
GNI_MAYBE_UNUSED static bool gni_vk_fill(gni_vk *vk, const gni_gpu_mem *dst, uint64_t offset,
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
    gni_gpu_mem mem;
    if (!gni_vk_pool_alloc(vk, &vk->pools[pool], bytes, &mem)) {
        if (r->size) return true; // the small one still does
        return gni_fail(vk->gpu.g, GN_ERROR_OUT_OF_MEMORY, "no staging memory of %d KiB", (int)(bytes >> 10));
    }
    if (r->size) gni_vk_free(vk, &r->mem);
    memset(r, 0, sizeof *r);
    r->mem = mem;
    r->size = bytes;
    return true;
}

// ---- data in and out

enum {
    GNI_VK_COPY_BLOCK = 256 << 10,
    GNI_VK_LITTLE = 2048 // bytes, at most 65536
};

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
    gni_parallel(vk->gpu.g->pool, blocks, 2, gni_vk_host_copy_task, &c);
}

static uint64_t gni_vk_staging_bytes(const gni_vk *vk) {
    return vk->gpu.caps.mapped ? (uint64_t)4 << 20 : (uint64_t)32 << 20;
}

// A little data goes with the commands.
static bool gni_vk_upload_little(gni_vk *vk, const gni_gpu_mem *dst, uint64_t offset, const void *src, uint64_t bytes) {
    VkCommandBuffer c = gni_vk_target(vk);
    if (!c) return false;
    const gni_vk_range use = gni_vk_range_of(dst, offset, bytes, true);
    gni_vk_order(vk, c, &use, 1, true);
    const bool timed = gni_vk_timed_begin(vk, "upload");
    vk->f.vkCmdUpdateBuffer(c, gni_vk_buffer_of(dst->handle), dst->offset + offset, bytes, src);
    if (timed) gni_vk_timed_end(vk);
    gni_vk_touch(vk, dst);
    return gni_vk_recorded(vk);
}

// `src` may be reused on return.
static bool gni_vk_upload(gni_vk *vk, const gni_gpu_mem *dst, uint64_t offset, const void *src,
                          uint64_t bytes) {
    if (bytes == 0) return true;
    if (!gni_vk_usable(vk) || !gni_vk_inside(vk, dst, offset, bytes, "upload")) return false;
    if (vk->record.commands) return gni_vk_record_upload(vk, dst, offset, src, bytes);
    if (dst->mapped && gni_vk_idle(vk, dst)) {
        gni_vk_host_memcpy(vk, (char *)dst->mapped + offset, src, bytes);
        return true;
    }
    if (bytes <= GNI_VK_LITTLE && ((dst->offset + offset) | bytes) % 4 == 0)
        return gni_vk_upload_little(vk, dst, offset, src, bytes);
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
static bool gni_vk_download_begin(gni_vk *vk, const gni_gpu_mem *src, uint64_t offset,
                                  uint64_t bytes, gni_gpu_ticket *t) {
    memset(t, 0, sizeof *t);
    if (!gni_vk_usable(vk) || !gni_vk_inside(vk, src, offset, bytes, "download")) return false;
    if (vk->record.commands)
        return gni_fail(vk->gpu.g, GN_ERROR_ARGUMENT, "a value cannot be read while a host's command buffer is recorded");
    if (!gni_vk_pool_alloc(vk, &vk->pools[GNI_VK_POOL_READBACK], bytes, &t->mem))
        return gni_fail(vk->gpu.g, GN_ERROR_OUT_OF_MEMORY, "no staging memory of %.0f bytes", (double)bytes);
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
static bool gni_vk_ticket_ready(gni_vk *vk, gni_gpu_ticket *t, bool wait) {
    if (!t->data) return false;
    if (t->bytes == 0 || t->serial <= vk->stream.completed) return true;
    if (wait) return gni_vk_wait_serial(vk, t->serial);
    if (t->serial > vk->stream.submitted && !gni_vk_flush(vk)) return false;
    return !vk->gpu.lost && gni_vk_poll(vk) && t->serial <= vk->stream.completed;
}

static void gni_vk_ticket_release(gni_vk *vk, gni_gpu_ticket *t) {
    if (t->data) gni_vk_free(vk, &t->mem);
    memset(t, 0, sizeof *t);
}

// Pieces through two tickets: the host copies one out while the device copies the next.
static bool gni_vk_download_staged(gni_vk *vk, const gni_gpu_mem *src, uint64_t offset, char *dst,
                                   uint64_t bytes) {
    gni_gpu_ticket t[2];
    memset(t, 0, sizeof t);
    uint64_t piece = GNI_MIN(bytes, (uint64_t)8 << 20), asked = 0, done = 0;
    bool ok = true;
    for (int i = 0; ok && done < bytes; i ^= 1) {
        while (ok && asked < bytes && asked < done + 2 * piece) {
            gni_gpu_ticket *next = &t[(asked / piece) & 1];
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
static bool gni_vk_download(gni_vk *vk, const gni_gpu_mem *src, uint64_t offset, void *dst,
                            uint64_t bytes) {
    if (bytes == 0) return true;
    if (!gni_vk_usable(vk) || !gni_vk_inside(vk, src, offset, bytes, "download")) return false;
    if (!src->mapped || vk->record.commands)
        return gni_vk_download_staged(vk, src, offset, (char *)dst, bytes);
    const gni_vk_chunk *c = &gni_vk_block_of(src)->pool->chunks[src->cls];
    if (!gni_vk_wait_serial(vk, c->serial)) return false;
    gni_vk_host_memcpy(vk, dst, (const char *)src->mapped + offset, bytes);
    return true;
}

// ---- opening

static bool gni_vk_stream_open(gni_vk *vk) {
    gni_vk_stream *s = &vk->stream;
    GNI_VK_INFO(VkSemaphoreTypeCreateInfo, type, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    GNI_VK_INFO(VkSemaphoreCreateInfo, info, VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
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
static bool gni_vk_profile(gni_vk *vk, bool on) {
    if (vk->gpu.caps.timestamp_ns <= 0.0f || vk->gpu.lost) return false;
    if (!gni_vk_wait(vk)) return false;
    bool was = vk->profiling;
    vk->profiling = on;
    if (on && !was && !gni_vk_calibrate(vk)) vk->profiling = false;
    return vk->profiling == on;
}

// Waits, then hands out up to `capacity` of the events so far, oldest first. Returns how many.
static int gni_vk_profile_fetch(gni_vk *vk, gni_gpu_event *out, int capacity) {
    if (!vk->gpu.lost && gni_vk_wait(vk))
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
