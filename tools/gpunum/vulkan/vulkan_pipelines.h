// >>vulkan_pipelines
// Compute pipelines out of shaders.h: found by module and specialisation constants, compiled when
// first asked for, here or on threads of their own, and kept in a VkPipelineCache on disk. Only
// this room has a thread in it; what the two sides share is guarded by gni_vk_compiler.mutex.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../vulkan/vulkan_device.h"
#include "../vulkan/vulkan_spirv.h"
#include "../gpu/unpack.h"
#endif

#if GNI_VULKAN

#define GNI_SHADERS_WANTED
#ifndef GPUNUM_SHADERS
#define GPUNUM_SHADERS "shaders.h"
#endif
#include GPUNUM_SHADERS
#undef GNI_SHADERS_WANTED

// ---- modules

// Ends with the block in nobody else's hands.
static void gni_vk_modules_lock(gni_vk_compiler *c, gni_vk_modules *b) {
#ifndef GPUNUM_NO_THREADS
    gni_mutex_lock(&c->mutex);
    while (b->busy) gni_cond_wait(&c->done, &c->mutex);
    b->busy = true;
    gni_mutex_unlock(&c->mutex);
#else
    GNI_UNUSED(c);
    GNI_UNUSED(b);
#endif
}

static void gni_vk_modules_unlock(gni_vk_compiler *c, gni_vk_modules *b) {
#ifndef GPUNUM_NO_THREADS
    gni_mutex_lock(&c->mutex);
    b->busy = false;
    gni_cond_broadcast(&c->done);
    gni_mutex_unlock(&c->mutex);
#else
    GNI_UNUSED(c);
    GNI_UNUSED(b);
#endif
}

// Decodes a block up to byte `end`. What is decoded stays until the device is closed: 10 KB to 1.6 MB.
static VkResult gni_vk_modules_decode(gni_vk *vk, gni_vk_modules *b, const gni_module_block *from, uint32_t end) {
    if (!b->unpack) {
        b->unpack = (gni_unpack *)gni_alloc(vk->gpu.g, sizeof *b->unpack + from->bytes);
        if (!b->unpack) return VK_ERROR_OUT_OF_HOST_MEMORY;
        gni_unpack_begin(b->unpack, from->text, from->characters / 5, (uint8_t *)(b->unpack + 1), from->bytes);
    }
    return gni_unpack_to(b->unpack, end) ? VK_SUCCESS : VK_ERROR_INITIALIZATION_FAILED;
}

// The words of a module; `spare` has room for as many. What was decoded of its block never changes, so that only
// decoding is one thread's at a time.
static VkResult gni_vk_module_words(gni_vk *vk, const gni_module *m, uint32_t *words, uint32_t *spare) {
    gni_vk_modules *b = &vk->compiler.modules[m->block];
    gni_vk_modules_lock(&vk->compiler, b);
    VkResult r = gni_vk_modules_decode(vk, b, &gni_module_blocks[m->block], m->start + m->bytes);
    const uint8_t *tokens = r == VK_SUCCESS ? b->unpack->out : NULL;
    gni_vk_modules_unlock(&vk->compiler, b);
    if (r == VK_SUCCESS && !gni_unpack_words(tokens, m->start, m->start + m->bytes, words, m->words, spare))
        r = VK_ERROR_INITIALIZATION_FAILED;
    return r;
}

// ---- compiling

static bool gni_vk_needs_code(const gni_gpu_kernel *k, uint32_t code) {
    for (uint32_t i = k->first_code; i < k->n_spec; i++)
        if ((k->spec[i] & 2047u) == code) return true;
    return false;
}

// An execution mode for floats of a width and the capability it needs.
typedef struct gni_vk_float_mode {
    uint32_t capability, mode, bits;
} gni_vk_float_mode;
enum { GNI_VK_MODES = 5, GNI_VK_MODE_WORDS = GNI_VK_MODES * 6 };

static int gni_vk_float_modes(const gni_vk *vk, gni_vk_float_mode *out) {
    int n = 0;
    for (uint32_t bits = 16; bits <= 32; bits += 16) {
        if (!(bits == 16 ? vk->gpu.caps.keep_half_denorms : vk->gpu.caps.keep_denorms)) continue;
        out[n].capability = 4464; // DenormPreserve
        out[n].mode = 4459;
        out[n++].bits = bits;
    }
    if (vk->gpu.caps.round_half) {
        out[n].capability = 4467; // RoundingModeRTE
        out[n].mode = 4462;
        out[n++].bits = 16;
    }
    for (uint32_t bits = 16; bits <= 32; bits += 16) {
        if (!(bits == 16 ? vk->gpu.caps.keep_half_nan : vk->gpu.caps.keep_nan)) continue;
        out[n].capability = 4466; // SignedZeroInfNanPreserve
        out[n].mode = 4461;
        out[n++].bits = bits;
    }
    return n;
}

// Copies OpSwitch without the cases that the kernel does not need. Returns the number of words.
static uint32_t gni_vk_cut_switch(const uint32_t *w, const gni_gpu_kernel *k, uint32_t *out) {
    uint32_t count = w[0] >> 16, at = 3;
    out[1] = w[1];
    out[2] = w[2];
    for (uint32_t j = 3; j + 1 < count; j += 2) {
        if (!gni_vk_needs_code(k, w[j])) continue;
        out[at++] = w[j];
        out[at++] = w[j + 1];
    }
    out[0] = at << 16 | 251u;
    return at;
}

// Copies a module with the float modes of the device, what these say of float16 (GNI_S_EXACT_HALVES) and fma (GNI_S_FUSED),
// whether it stores bytes (GNI_S_NARROW_STORES), and without the cases of its large switch that the kernel does not need.
// Drivers inline that switch once for every instruction of a program, so that a full one takes them a second. `out` has
// GNI_VK_MODE_WORDS more than n words. Returns the number of words.
static uint32_t gni_vk_copy_module(const gni_vk *vk, const uint32_t *w, uint32_t n,
                                   const gni_gpu_kernel *k, uint32_t *out) {
    gni_vk_float_mode modes[GNI_VK_MODES];
    int mode_count = gni_vk_float_modes(vk, modes);
    const gni_gpu_caps *caps = &vk->gpu.caps;
    uint32_t at = 5, on[3] = {0, 0, 0}; // ids of constants that are true
    memcpy(out, w, 5 * sizeof *w);
    for (int m = 0; m < mode_count; m++) {
        out[at++] = 2u << 16 | 17u; // OpCapability
        out[at++] = modes[m].capability;
    }
    for (uint32_t i = 5, count; i < n; i += count) {
        uint32_t op = w[i] & 0xffffu;
        count = w[i] >> 16;
        if (op == 251u && count >= 64u && k->first_code) {
            at += gni_vk_cut_switch(w + i, k, out + at);
            continue;
        }
        // Capabilities for stores of bytes and of 16 bits
        if (op == 17u && (w[i + 1] == 4448u || w[i + 1] == 4433u) && !caps->narrow_stores) continue;
        memcpy(out + at, w + i, count * sizeof *w);
        if (op == 71u && count == 4 && w[i + 2] == 1u) { // OpDecorate with SpecId
            if (w[i + 3] == GNI_S_EXACT_HALVES && caps->exact_halves) on[0] = w[i + 1];
            if (w[i + 3] == GNI_S_NARROW_STORES && caps->narrow_stores) on[1] = w[i + 1];
            if (w[i + 3] == GNI_S_FUSED && caps->fused) on[2] = w[i + 1];
        }
        if (op == 49u && (w[i + 2] == on[0] || w[i + 2] == on[1] || w[i + 2] == on[2]))
            out[at] = 3u << 16 | 48u; // a true OpSpecConstant
        at += count;
        if (op != 15u) continue; // OpEntryPoint: modes follow, in any order
        for (int m = 0; m < mode_count; m++) {
            out[at++] = 4u << 16 | 16u; // OpExecutionMode
            out[at++] = w[i + 2];
            out[at++] = modes[m].mode;
            out[at++] = modes[m].bits;
        }
    }
    return at;
}

// The module that the kernel is compiled from. `*specialised`: its constants are in it.
static VkResult gni_vk_make_module(gni_vk *vk, const gni_gpu_kernel *k, VkShaderModule *out,
                                   bool *specialised) {
    const gni_module *from = &gni_modules[vk->compiler.variant[k->module]];
    size_t room = from->words + GNI_VK_MODE_WORDS;
    uint32_t *words = (uint32_t *)gni_alloc(vk->gpu.g, (room + from->words) * sizeof *words), left = 0;
    *out = VK_NULL_HANDLE;
    if (!words) return VK_ERROR_OUT_OF_HOST_MEMORY;
    VkResult r = gni_vk_module_words(vk, from, words + room, words);
    if (r != VK_SUCCESS) {
        gni_free(vk->gpu.g, words);
        return r;
    }
    uint32_t count = gni_vk_copy_module(vk, words + room, from->words, k, words);
    // Where types are not the device's what needs them goes.
    if (k->n_spec > 0 || !vk->gpu.caps.narrow_stores)
        left = gni_spv_specialise(vk->gpu.g, words, count, k->spec, k->n_spec);
    *specialised = left > 0;
    GNI_VK_INFO(VkShaderModuleCreateInfo, info, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
    info.codeSize = (left > 0 ? left : count) * 4u;
    info.pCode = words;
    r = vk->f.vkCreateShaderModule(vk->device, &info, NULL, out);
    if (r != VK_SUCCESS) *out = VK_NULL_HANDLE;
    gni_free(vk->gpu.g, words);
    return r;
}

// Runs on either thread: touches nothing but `p`, blocks of modules, and handles that never change.
static void gni_vk_compile(gni_vk *vk, gni_vk_pipeline *p) {
    VkShaderModule module;
    bool specialised = false;
    p->pipeline = VK_NULL_HANDLE;
    p->result = gni_vk_make_module(vk, &p->kernel, &module, &specialised);
    if (p->result != VK_SUCCESS) return;
    VkSpecializationMapEntry entries[GNI_GPU_MAX_SPEC];
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
    GNI_VK_INFO(gni_vk_required_subgroup, subgroup, GNI_VK_TYPE_REQUIRED_SUBGROUP_SIZE);
    subgroup.size = p->kernel.subgroup;
    GNI_VK_INFO(VkComputePipelineCreateInfo, info, VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.stage.pSpecializationInfo = p->kernel.n_spec && !specialised ? &spec : NULL;
    if (p->kernel.subgroup && vk->gpu.caps.subgroup_control) {
        info.stage.pNext = &subgroup;
        info.stage.flags = 2u; // VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT
    }
    info.layout = vk->compiler.layout;
    info.basePipelineIndex = -1;
    p->result = vk->f.vkCreateComputePipelines(vk->device, vk->compiler.cache, 1, &info, NULL,
                                               &p->pipeline);
    vk->f.vkDestroyShaderModule(vk->device, module, NULL);
}

static void gni_vk_compile_here(gni_vk *vk, gni_vk_pipeline *p) {
    gni_vk_compile(vk, p);
    gni_atomic_store(&p->state, p->result == VK_SUCCESS ? GNI_VK_READY : GNI_VK_FAILED);
}

#ifndef GPUNUM_NO_THREADS

// The queue, which the caller has locked.
static void gni_vk_enqueue(gni_vk_compiler *c, gni_vk_pipeline *p) {
    gni_vk_pipeline **at = &c->queue;
    while (*at && (p->behind || !(*at)->behind)) at = &(*at)->queue_next;
    p->queue_next = *at;
    *at = p;
    c->waiting++;
    gni_atomic_store(&p->state, GNI_VK_QUEUED);
}

static void gni_vk_dequeue(gni_vk_compiler *c, gni_vk_pipeline *p) {
    gni_vk_pipeline **at = &c->queue;
    while (*at != p) at = &(*at)->queue_next;
    *at = p->queue_next;
    c->waiting--;
}

// Kernels that interpret take seconds each: more than one of them would leave no thread to those that
// programs need meanwhile.
static bool gni_vk_has_work(const gni_vk_compiler *c) {
    return c->queue && !(c->queue->behind && c->busy_behind);
}

static void gni_vk_compiler_main(void *arg) {
    gni_vk *vk = (gni_vk *)arg;
    gni_vk_compiler *c = &vk->compiler;
    gni_mutex_lock(&c->mutex);
    for (;;) {
        c->idle++;
        while (!c->quit && !gni_vk_has_work(c)) gni_cond_wait(&c->work, &c->mutex);
        c->idle--;
        if (c->quit) break;
        gni_vk_pipeline *p = c->queue;
        gni_vk_dequeue(c, p);
        gni_atomic_store(&p->state, GNI_VK_COMPILING);
        if (p->behind) c->busy_behind = true;
        gni_mutex_unlock(&c->mutex);
        gni_vk_compile(vk, p);
        gni_mutex_lock(&c->mutex);
        if (p->behind) c->busy_behind = false;
        gni_atomic_store(&p->state, p->result == VK_SUCCESS ? GNI_VK_READY : GNI_VK_FAILED);
        gni_cond_broadcast(&c->done);
    }
    gni_mutex_unlock(&c->mutex);
}

// Threads start when there are more pipelines than threads to compile them. False: there is none.
static bool gni_vk_compile_later(gni_vk *vk, gni_vk_pipeline *p, bool behind) {
    gni_vk_compiler *c = &vk->compiler;
    if (!c->async) return false;
    gni_mutex_lock(&c->mutex);
    if (!c->quit && c->waiting >= c->idle && c->running < GNI_VK_COMPILERS &&
        gni_thread_start(&c->threads[c->running], gni_vk_compiler_main, vk))
        c->running++;
    c->async = !c->quit && c->running > 0;
    if (c->async) {
        p->behind = behind;
        gni_vk_enqueue(c, p);
        gni_cond_signal(&c->work);
    }
    gni_mutex_unlock(&c->mutex);
    return c->async;
}

// Ends with p compiled: by us if the thread has not begun it.
static void gni_vk_compile_now(gni_vk *vk, gni_vk_pipeline *p) {
    gni_vk_compiler *c = &vk->compiler;
    gni_mutex_lock(&c->mutex);
    if (p->state == GNI_VK_QUEUED) {
        gni_vk_dequeue(c, p);
        gni_atomic_store(&p->state, GNI_VK_IDLE);
    }
    while (p->state == GNI_VK_COMPILING) gni_cond_wait(&c->done, &c->mutex);
    bool ours = p->state == GNI_VK_IDLE;
    gni_mutex_unlock(&c->mutex);
    if (ours) gni_vk_compile_here(vk, p);
}

// Ends the threads. Whoever asks for a pipeline compiles it from then on.
static void gni_vk_threads_end(gni_vk_compiler *c) {
    gni_mutex_lock(&c->mutex);
    c->quit = true;
    c->async = false;
    gni_cond_broadcast(&c->work);
    gni_mutex_unlock(&c->mutex);
    while (c->running > 0) gni_thread_join(&c->threads[--c->running]);
}

#ifdef _WIN32 // ends the threads of a process before handlers run
static void gni_vk_watch_exit(gni_vk *vk, bool open) {
    GNI_UNUSED(vk);
    GNI_UNUSED(open);
}
#else
// Programs return from main without gn_close. A thread that compiles then is inside a driver that takes itself apart.
static gni_mutex gni_vk_open_lock = PTHREAD_MUTEX_INITIALIZER;
static gni_vk *gni_vk_open_list;

static void gni_vk_exit(void) {
    gni_mutex_lock(&gni_vk_open_lock);
    for (gni_vk *vk = gni_vk_open_list; vk != NULL; vk = vk->open_next)
        if (vk->forks == gni_forks) gni_vk_threads_end(&vk->compiler);
    gni_mutex_unlock(&gni_vk_open_lock);
}

static void gni_vk_watch_exit(gni_vk *vk, bool open) {
    gni_vk **at = &gni_vk_open_list;
    gni_mutex_lock(&gni_vk_open_lock);
    if (open) vk->forks = gni_forks;
    while (*at != NULL && *at != vk) at = &(*at)->open_next;
    if (open) *at = vk;
    else if (*at != NULL) *at = vk->open_next;
    gni_mutex_unlock(&gni_vk_open_lock);
    // Handlers run in the reverse of their order: this one before those of a driver that is loaded.
    if (open) (void)atexit(gni_vk_exit);
}
#endif

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
    gni_vk_threads_end(c);
    gni_cond_free(&c->work);
    gni_cond_free(&c->done);
    gni_mutex_free(&c->mutex);
    c->locks = false;
}

#else

static bool gni_vk_compile_later(gni_vk *vk, gni_vk_pipeline *p, bool behind) {
    GNI_UNUSED(vk);
    GNI_UNUSED(p);
    GNI_UNUSED(behind);
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
static void gni_vk_watch_exit(gni_vk *vk, bool open) {
    GNI_UNUSED(vk);
    GNI_UNUSED(open);
}

#endif

// ---- the table

static uint64_t gni_vk_kernel_hash(const gni_gpu_kernel *k) {
    uint64_t h = 14695981039346656037u;
    h = (h ^ (uint32_t)k->module) * 1099511628211u;
    h = (h ^ k->n_spec) * 1099511628211u;
    h = (h ^ k->subgroup) * 1099511628211u;
    for (uint32_t i = 0; i < k->n_spec; i++) h = (h ^ k->spec[i]) * 1099511628211u;
    return h ^ (h >> 29);
}

static bool gni_vk_same_kernel(const gni_gpu_kernel *a, const gni_gpu_kernel *b) {
    return a->module == b->module && a->n_spec == b->n_spec && a->subgroup == b->subgroup &&
           memcmp(a->spec, b->spec, a->n_spec * sizeof a->spec[0]) == 0;
}

static gni_vk_pipeline *gni_vk_find_pipeline(const gni_vk_compiler *c, const gni_gpu_kernel *k,
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
        (gni_vk_pipeline **)gni_calloc(vk->gpu.g, capacity * sizeof(gni_vk_pipeline *));
    if (!table) return false;
    c->table = table;
    c->capacity = capacity;
    for (uint32_t i = 0; i < old; i++)
        if (before[i]) gni_vk_enter_pipeline(c, before[i]);
    gni_free(vk->gpu.g, before);
    return true;
}

// Whether this mode has a form of module `i`.
static bool gni_vk_has_module(gni_vk *vk, int i) {
    if (i >= 0 && i < GNI_MODULE_COUNT && vk->compiler.variant[i] >= 0) return true;
    return gni_fail(vk->gpu.g, GN_ERROR_UNSUPPORTED, "kernel %s has no form for a device without buffer addresses",
                    i >= 0 && i < GNI_MODULE_COUNT ? gni_modules[i].name : "?");
}

static gni_vk_pipeline *gni_vk_add_pipeline(gni_vk *vk, const gni_gpu_kernel *k, uint64_t hash) {
    gni_vk_compiler *c = &vk->compiler;
    if (k->n_spec > GNI_GPU_MAX_SPEC || !gni_vk_has_module(vk, k->module) || !gni_vk_grow_table(vk))
        return NULL;
    gni_vk_pipeline *p = (gni_vk_pipeline *)gni_calloc(vk->gpu.g, sizeof(gni_vk_pipeline));
    if (!p) return NULL;
    p->kernel = *k;
    p->gpu.module = k->module;
    p->hash = hash;
    p->name = gni_modules[k->module].name;
    gni_vk_enter_pipeline(c, p);
    c->count++;
    vk->gpu.pipelines = c->count;
    return p;
}

static void gni_vk_report_pipeline(gni_vk *vk, gni_vk_pipeline *p, gni_gpu_mode mode) {
    if (p->result == VK_ERROR_DEVICE_LOST) vk->gpu.lost = true;
    if (!p->reported)
        gni_log(vk->gpu.g, GN_LOG_WARNING, "kernel %s does not compile: %s", p->name,
                gni_vk_result_name(p->result));
    p->reported = true;
    bool memory = p->result == VK_ERROR_OUT_OF_HOST_MEMORY;
    if (memory) gni_atomic_store(&p->state, GNI_VK_IDLE); // there may be some the next time
    if (mode == GNI_GPU_WAIT)
        gni_fail(vk->gpu.g,
                 memory                              ? GN_ERROR_OUT_OF_MEMORY
                 : p->result == VK_ERROR_DEVICE_LOST ? GN_ERROR_DEVICE_LOST
                                                     : GN_ERROR_UNSUPPORTED,
                 "kernel %s does not compile: %s", p->name, gni_vk_result_name(p->result));
}

// NULL: not ready (all but WAIT), or failed, which WAIT reports.
static gni_vk_pipeline *gni_vk_pipeline_get(gni_vk *vk, const gni_gpu_kernel *k,
                                            gni_gpu_mode mode) {
    bool later = mode == GNI_GPU_ASYNC || mode == GNI_GPU_BEHIND;
    uint64_t hash = gni_vk_kernel_hash(k);
    gni_vk_pipeline *p = gni_vk_find_pipeline(&vk->compiler, k, hash);
    if (!p) {
        if (mode == GNI_GPU_PEEK || !gni_vk_usable(vk)) return NULL;
        p = gni_vk_add_pipeline(vk, k, hash);
        if (!p && mode == GNI_GPU_WAIT)
            gni_fail(vk->gpu.g, GN_ERROR_OUT_OF_MEMORY, "no memory for a pipeline");
        if (!p) return NULL;
    }
    int32_t state = gni_atomic_load(&p->state);
    if (state == GNI_VK_READY) return p;
    if (state == GNI_VK_IDLE && later && gni_vk_compile_later(vk, p, mode == GNI_GPU_BEHIND))
        return NULL;
    if (state != GNI_VK_FAILED && (mode == GNI_GPU_WAIT || (later && state == GNI_VK_IDLE)))
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
    return head[0] >= 32 && head[0] <= bytes && head[1] == 1 && head[2] == vk->gpu.caps.vendor_id &&
           head[3] == vk->gpu.caps.device_id &&
           memcmp(data + 16, vk->cache_uuid, VK_UUID_SIZE) == 0;
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
        data = (unsigned char *)gni_alloc(vk->gpu.g, *bytes + 1);
        if (data && (fread(data, 1, *bytes, file) != *bytes ||
                     gni_vk_cache_hash(data, *bytes) != head.hash ||
                     !gni_vk_cache_fits(vk, data, *bytes))) {
            gni_log(vk->gpu.g, GN_LOG_INFO, "pipeline cache %s is of another driver or damaged",
                    vk->compiler.cache_path);
            gni_free(vk->gpu.g, data);
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
    char *temporary = (char *)gni_alloc(vk->gpu.g, room);
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
    gni_free(vk->gpu.g, temporary);
    return ok;
}

static void gni_vk_cache_save(gni_vk *vk) {
    gni_vk_compiler *c = &vk->compiler;
    size_t bytes = 0;
    if (!c->cache_path || !c->cache || c->count == 0 || vk->gpu.lost) return;
    if (vk->f.vkGetPipelineCacheData(vk->device, c->cache, &bytes, NULL) != VK_SUCCESS) return;
    if (bytes == 0 || bytes == c->cache_bytes) return; // nothing was added
    unsigned char *data = (unsigned char *)gni_alloc(vk->gpu.g, bytes);
    if (!data) return;
    VkResult r = vk->f.vkGetPipelineCacheData(vk->device, c->cache, &bytes, data);
    if (r == VK_SUCCESS && gni_vk_cache_fits(vk, data, bytes) &&
        !gni_vk_cache_write(vk, data, bytes))
        gni_log(vk->gpu.g, GN_LOG_WARNING, "pipeline cache %s cannot be written", c->cache_path);
    gni_free(vk->gpu.g, data);
}

// Whether it is there or could be made; the folder that it lies in must exist.
static bool gni_vk_cache_folder(const char *folder) {
#ifdef _WIN32
    DWORD is = GetFileAttributesA(folder);
    if (is == INVALID_FILE_ATTRIBUTES) return CreateDirectoryA(folder, NULL) != 0;
    return (is & FILE_ATTRIBUTE_DIRECTORY) != 0;
#else
    struct stat is;
    if (stat(folder, &is) != 0) return mkdir(folder, 0700) == 0;
    return S_ISDIR(is.st_mode);
#endif
}

// A cache that cannot be had is no error: pipelines compile without one.
static void gni_vk_cache_open(gni_vk *vk, const char *folder) {
    gni_vk_compiler *c = &vk->compiler;
    unsigned char *data = NULL;
    size_t bytes = 0;
    if (folder && folder[0] && !gni_vk_cache_folder(folder)) {
        gni_log(vk->gpu.g, GN_LOG_WARNING, "cache_dir %s is no folder and cannot be made: nothing is cached", folder);
    } else if (folder && folder[0]) {
        size_t room = strlen(folder) + 96;
        c->cache_path = (char *)gni_alloc(vk->gpu.g, room);
        if (c->cache_path) {
            const uint8_t *u = vk->cache_uuid;
            snprintf(c->cache_path, room,
                     "%s/gpunum-%04x-%04x-%08x-%02x%02x%02x%02x%02x%02x%02x%02x.bin", folder,
                     (unsigned)vk->gpu.caps.vendor_id, (unsigned)vk->gpu.caps.device_id,
                     (unsigned)vk->gpu.caps.driver_version, u[0], u[1], u[2], u[3], u[4], u[5],
                     u[6], u[7]);
            data = gni_vk_cache_read(vk, &bytes);
        }
    }
    GNI_VK_INFO(VkPipelineCacheCreateInfo, info, VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
    info.initialDataSize = data ? bytes : 0;
    info.pInitialData = data;
    if (vk->f.vkCreatePipelineCache(vk->device, &info, NULL, &c->cache) != VK_SUCCESS)
        c->cache = VK_NULL_HANDLE;
    c->cache_bytes = data ? bytes : 0;
    gni_free(vk->gpu.g, data);
}

// ---- the tuning file
// What tools/tune measured on a device: how fast kernels are, by which room `gpu_tiles` chooses among kernels that all
// do the same. Text, and a file that is not exactly like this one, or another device's, is ignored:
//
//   gpunum tuning 1 10de 2335 9127c100    vendor, device, driver
//   matmul_96x128 189 138 2               kernel, then its gni_gpu_rates
//   end 1                                 the number of kernels

enum { GNI_VK_MOST_RATE = 1000000, GNI_VK_MOST_RESIDENT = 64 };

static void gni_vk_tuning_path(const gni_vk *vk, const char *folder, char *path, size_t room) {
    snprintf(path, room, "%s/gpunum-tuning-%04x-%04x-%08x.txt", folder,
             (unsigned)vk->gpu.caps.vendor_id, (unsigned)vk->gpu.caps.device_id,
             (unsigned)vk->gpu.caps.driver_version);
}

static void gni_vk_tuning_head(const gni_vk *vk, char *line, size_t room) {
    snprintf(line, room, "gpunum tuning 1 %04x %04x %08x\n", (unsigned)vk->gpu.caps.vendor_id,
             (unsigned)vk->gpu.caps.device_id, (unsigned)vk->gpu.caps.driver_version);
}

static void gni_vk_tuning_line(const char *name, const gni_gpu_rates *r, char *line, size_t room) {
    snprintf(line, room, "%.60s %d %d %d\n", name, r->rate, r->alone, r->resident);
}

// Takes one kernel's line, which has to be what gni_vk_tuning_line would write.
static bool gni_vk_tuning_take(gni_gpu_rates *rates, const char *line) {
    char name[64], again[128];
    gni_gpu_rates r;
    if (sscanf(line, "%60s %7d %7d %3d", name, &r.rate, &r.alone, &r.resident) != 4) return false;
    gni_vk_tuning_line(name, &r, again, sizeof again);
    if (strcmp(line, again) != 0 || r.rate < 1 || r.rate > GNI_VK_MOST_RATE || r.alone < 1 ||
        r.alone > GNI_VK_MOST_RATE || r.resident < 1 || r.resident > GNI_VK_MOST_RESIDENT)
        return false;
    for (int i = 0; i < GNI_MODULE_COUNT; i++) {
        if (strcmp(name, gni_modules[i].name) != 0) continue;
        bool first = rates[i].rate == 0;
        rates[i] = r;
        return first;
    }
    return false;
}

static bool gni_vk_tuning_read(const gni_vk *vk, FILE *file, gni_gpu_rates *rates) {
    char line[128], want[128];
    int count = 0;
    gni_vk_tuning_head(vk, want, sizeof want);
    if (!fgets(line, sizeof line, file) || strcmp(line, want) != 0) return false;
    while (fgets(line, sizeof line, file)) {
        snprintf(want, sizeof want, "end %d\n", count);
        if (strcmp(line, want) == 0) return fgetc(file) == EOF;
        if (!gni_vk_tuning_take(rates, line)) return false;
        count++;
    }
    return false;
}

static void gni_vk_tuning_open(gni_vk *vk, const char *folder) {
    if (!folder || !folder[0]) return;
    size_t room = strlen(folder) + 64;
    char *path = (char *)gni_alloc(vk->gpu.g, room);
    if (!path) return;
    gni_vk_tuning_path(vk, folder, path, room);
    FILE *file = fopen(path, "r");
    gni_gpu_rates *rates = NULL;
    if (file) {
        rates = (gni_gpu_rates *)gni_calloc(vk->gpu.g, GNI_MODULE_COUNT * sizeof(gni_gpu_rates));
        bool ok = rates && gni_vk_tuning_read(vk, file, rates);
        gni_log(vk->gpu.g, GN_LOG_INFO, ok ? "kernels are chosen by %s" : "%s cannot be used",
                path);
        if (!ok) {
            gni_free(vk->gpu.g, rates);
            rates = NULL;
        }
        fclose(file);
    }
    gni_free(vk->gpu.g, path);
    vk->gpu.rates = rates;
}

// ---- opening

// Binding 0 is the block of parameters, 1 to max_buffers are the buffer arguments.
static VkResult gni_vk_make_layout(gni_vk *vk) {
    gni_vk_compiler *c = &vk->compiler;
    VkPushConstantRange push;
    push.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    push.offset = 0;
    push.size = 16;
    GNI_VK_INFO(VkPipelineLayoutCreateInfo, info, VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
    info.pushConstantRangeCount = 1;
    info.pPushConstantRanges = &push;
    if (!vk->gpu.caps.addresses) {
        VkDescriptorSetLayoutBinding bindings[GNI_GPU_MAX_USES + 1];
        memset(bindings, 0, sizeof bindings);
        for (uint32_t i = 0; i <= vk->gpu.caps.max_buffers; i++) {
            bindings[i].binding = i;
            bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
            bindings[i].descriptorCount = 1;
            bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
        }
        GNI_VK_INFO(VkDescriptorSetLayoutCreateInfo, set, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
        set.bindingCount = vk->gpu.caps.max_buffers + 1;
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
    c->variant = (int *)gni_calloc(vk->gpu.g, n * sizeof(int));
    c->modules = (gni_vk_modules *)gni_calloc(vk->gpu.g, (GNI_MODULE_BLOCK_COUNT + 1) * sizeof(gni_vk_modules));
    if (!c->variant || !c->modules) return false;
    for (int i = 0; i < GNI_MODULE_COUNT; i++)
        c->variant[i] = vk->gpu.caps.addresses ? i : gni_vk_bound_variant(i);
    c->async = !(o->vulkan_flags & GN_VULKAN_NO_ASYNC_PIPELINES);
    if (gni_vk_make_layout(vk) != VK_SUCCESS || !gni_vk_thread_open(c)) return false;
    gni_vk_watch_exit(vk, true);
    gni_vk_cache_open(vk, o->cache_dir);
    gni_vk_tuning_open(vk, o->cache_dir);
    return true;
}

static void gni_vk_compiler_close(gni_vk *vk) {
    gni_vk_compiler *c = &vk->compiler;
    gni_vk_watch_exit(vk, false);
    gni_vk_thread_close(c);
    gni_vk_cache_save(vk);
    for (uint32_t i = 0; i < c->capacity; i++) {
        gni_vk_pipeline *p = c->table[i];
        if (!p) continue;
        if (p->pipeline) vk->f.vkDestroyPipeline(vk->device, p->pipeline, NULL);
        gni_free(vk->gpu.g, p);
    }
    if (c->layout) vk->f.vkDestroyPipelineLayout(vk->device, c->layout, NULL);
    if (c->set_layout) vk->f.vkDestroyDescriptorSetLayout(vk->device, c->set_layout, NULL);
    if (c->cache) vk->f.vkDestroyPipelineCache(vk->device, c->cache, NULL);
    if (c->modules)
        for (int i = 0; i < GNI_MODULE_BLOCK_COUNT; i++) gni_free(vk->gpu.g, c->modules[i].unpack);
    gni_free(vk->gpu.g, c->modules);
    gni_free(vk->gpu.g, c->table);
    gni_free(vk->gpu.g, c->variant);
    gni_free(vk->gpu.g, c->cache_path);
    gni_free(vk->gpu.g, vk->gpu.rates);
    vk->gpu.rates = NULL;
    memset(c, 0, sizeof *c);
}

#endif // GNI_VULKAN
