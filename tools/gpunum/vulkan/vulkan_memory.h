// >>vulkan_memory
// The pool of device memory and the pools of staging memory. Large blocks come from the driver and
// are cut into chunks of 256 bytes and up; free chunks of a block merge, and wait in lists by size
// (two levels: the power of two and eight steps in it). Requests over half a block get a block of
// their own. Empty blocks are kept for reuse until memory is short or gni_vk_trim is called.
//
// A freed chunk may be given out again while the device still uses it: later commands on the same
// queue are kept in order by byte range. The host must not touch it before its batch is over, which
// gni_vk_idle tells. Commands in a host's command buffer are in no order with ours: chunks that
// such commands use are held back until the host says that they are done.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../vulkan/vulkan_device.h"
#endif

#if GNI_VULKAN

static bool gni_vk_idle(gni_vk *vk, const gni_gpu_mem *m);

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
        vk->gpu.g, p->chunks, (size_t)p->chunk_capacity * item, (size_t)capacity * item);
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
    gni_free(vk->gpu.g, b);
}

static VkResult gni_vk_make_buffer(gni_vk *vk, uint64_t bytes, VkBuffer *out) {
    GNI_VK_INFO(VkBufferCreateInfo, info, VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    if (vk->gpu.caps.addresses) info.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    return vk->f.vkCreateBuffer(vk->device, &info, NULL, out);
}

static uint64_t gni_vk_address_of(gni_vk *vk, VkBuffer b) {
    GNI_VK_INFO(VkBufferDeviceAddressInfo, info, VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
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
    GNI_VK_INFO(VkMemoryAllocateFlagsInfo, flags, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    GNI_VK_INFO(VkMemoryAllocateInfo, info, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
    info.pNext = vk->gpu.caps.addresses ? &flags : NULL;
    info.allocationSize = need.size;
    info.memoryTypeIndex = p->type;
    void *mapped = NULL;
    r = vk->f.vkAllocateMemory(vk->device, &info, NULL, &b->memory);
    if (r == VK_SUCCESS) r = vk->f.vkBindBufferMemory(vk->device, b->buffer, b->memory, 0);
    if (r == VK_SUCCESS && p->host)
        r = vk->f.vkMapMemory(vk->device, b->memory, 0, VK_WHOLE_SIZE, 0, &mapped);
    if (r == VK_SUCCESS) {
        b->mapped = (char *)mapped;
        b->address = vk->gpu.caps.addresses ? gni_vk_address_of(vk, b->buffer) : 0;
        return r;
    }
    vk->f.vkDestroyBuffer(vk->device, b->buffer, NULL);
    if (b->memory) vk->f.vkFreeMemory(vk->device, b->memory, NULL);
    return r;
}

// Adds a block of `bytes`, all of it one free chunk. The caller has reserved two chunks.
static gni_vk_block *gni_vk_add_block(gni_vk *vk, gni_vk_pool *p, uint64_t bytes, bool dedicated) {
    if (vk->gpu.lost || bytes > vk->max_buffer || bytes > p->limit ||
        p->reserved > p->limit - bytes)
        return NULL;
    gni_vk_block *b = (gni_vk_block *)gni_calloc(vk->gpu.g, sizeof(gni_vk_block));
    if (!b) return NULL;
    VkResult r = gni_vk_fill_block(vk, p, b, bytes);
    if (r != VK_SUCCESS) {
        if (r == VK_ERROR_DEVICE_LOST) gni_vk_check(vk, r, "allocating device memory");
        gni_free(vk->gpu.g, b);
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

static bool gni_vk_pool_alloc(gni_vk *vk, gni_vk_pool *p, uint64_t bytes, gni_gpu_mem *out) {
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
    if (i < 0 && !vk->gpu.lost && gni_vk_wait(vk)) {
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
static bool gni_vk_alloc(gni_vk *vk, uint64_t bytes, gni_gpu_mem *out) {
    return gni_vk_pool_alloc(vk, &vk->pools[GNI_VK_POOL_DEVICE], bytes, out);
}

// Commands that use the memory may be recorded or running. Also ends gni_vk_wrap.
static void gni_vk_free(gni_vk *vk, gni_gpu_mem *m) {
    if (m->block) {
        gni_vk_pool *p = gni_vk_block_of(m)->pool;
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
static void gni_vk_touch(gni_vk *vk, const gni_gpu_mem *m) {
    if (!m->block) return;
    gni_vk_chunk *c = &gni_vk_block_of(m)->pool->chunks[m->cls];
    if (vk->record.commands) {
        c->record = vk->record.token;
    } else {
        c->serial = vk->stream.next;
        gni_vk_block_of(m)->last_use = vk->stream.next;
    }
}

// Gives all unused memory back to the driver; waits for work that still uses some of it.
static void gni_vk_trim(gni_vk *vk) {
    int busy = 0;
    for (int k = 0; k < GNI_VK_POOLS; k++) busy += gni_vk_trim_pool(vk, &vk->pools[k]);
    if (busy == 0 || vk->gpu.lost || !gni_vk_wait(vk)) return;
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
                        gni_gpu_mem *out) {
    memset(out, 0, sizeof *out);
    out->cls = -1;
    uint64_t align = vk->gpu.caps.addresses ? 16u : 256u;
    if (!vkbuffer || bytes == 0 || offset % align)
        return gni_fail(vk->gpu.g, GN_ERROR_ARGUMENT,
                        "wrapping a VkBuffer: it is NULL, empty, or its offset is no multiple of %d", (int)align);
    if (vk->gpu.caps.addresses) {
        uint64_t address = gni_vk_address_of(vk, gni_vk_buffer_of(vkbuffer));
        if (address == 0 || address % 16) {
            gni_fail(vk->gpu.g, GN_ERROR_ARGUMENT,
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
    bool shared = vk->gpu.caps.kind == GNI_GPU_INTEGRATED || vk->gpu.caps.kind == GNI_GPU_CPU;
    int device = -1;
    if (shared && !(o->vulkan_flags & GN_VULKAN_NO_MAPPING))
        device = gni_vk_pick_type(vk, bits, local | visible | coherent | cached, 0, 0);
    vk->gpu.caps.mapped = device >= 0;
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
    gni_vk_pool_open(&vk->pools[GNI_VK_POOL_DEVICE], device, vk->gpu.caps.mapped, block, limit);
    gni_vk_pool_open(&vk->pools[GNI_VK_POOL_UPLOAD], upload, true, 32 * mib, UINT64_MAX / 2);
    gni_vk_pool_open(&vk->pools[GNI_VK_POOL_PARAMS], params, true, 8 * mib, UINT64_MAX / 2);
    gni_vk_pool_open(&vk->pools[GNI_VK_POOL_READBACK], readback, true, 64 * mib, UINT64_MAX / 2);
    vk->gpu.caps.max_allocation = GNI_MIN(limit, vk->max_buffer);
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
        gni_free(vk->gpu.g, p->chunks);
        p->chunks = NULL;
    }
}

#endif // GNI_VULKAN
