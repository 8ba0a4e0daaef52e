// >>open
// gn_open and gn_close, devices, synchronisation, statistics, and the bridges to a host's Vulkan.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/host.h"
#include "../cpu/gemm_cpu.h"
#include "../vulkan/vulkan_layer.h"
#include "../webgpu/webgpu_layer.h"
#include "../gpu/gpu_fft_tables.h"
#include "../ops/async.h"
#include "../grad/autograd.h"
#include "../util/profile.h"
#include "../util/loader.h"
#endif

// The last failure of gn_open on this thread: there is no context yet to keep it.
typedef struct gni_open_result {
    gn_status status;
    char text[640];
} gni_open_result;

static gni_open_result *gni_open_last(void) {
    static GNI_THREAD_LOCAL gni_open_result last;
    return &last;
}

GPUNUM_API const char *gn_open_error(void) { return gni_open_last()->text; }
GPUNUM_API gn_status gn_open_status(void) { return gni_open_last()->status; }
GPUNUM_API uint32_t gn_version(void) { return GPUNUM_VERSION; }
GPUNUM_API size_t gn_options_size(void) { return sizeof(gn_options); }

static gn_context *gni_open_fail(const gn_options *o, gn_context *g, gn_status status, const char *why) {
    gni_open_result *last = gni_open_last();
    last->status = status;
    snprintf(last->text, sizeof last->text, "gn_open: %s", why);
    bool logged = g != NULL && g->status != GN_OK;
    if (g != NULL) g->status = GN_OK; // gn_open_error has it
    gn_close(g);
    if (!logged && o->log != NULL && o->log_level != GN_LOG_NONE) o->log(o->log_user, GN_LOG_ERROR, last->text);
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
    gni_handle_init(g, g, GNI_IS_CONTEXT);
    g->allocator = allocator;
    g->options = *o;
    g->options.cache_dir = NULL;
    gni_place_as_asked(g);
    if (!gni_mutex_init(&g->lock.mutex) || !gni_mutex_init(&g->stats_lock)) {
        allocator.release(allocator.user, g, sizeof(gn_context));
        return NULL;
    }
    g->seed = o->seed;
    gni_atomic_add(&gni_contexts, 1);
    gni_watch_forks();
    g->forks = gni_forks;
    return g;
}

static void gni_cpu_info(const gn_context *g, gn_device_info *info, const char *why) {
#if defined(GNI_WASM)
    static const char *const isa[] = {"", "WebAssembly SIMD128", "", ""};
#else
    static const char *const isa[] = {"plain C", "SIMD base", "AVX2", "AVX-512"};
#endif
    static const int lanes[] = {1, 4, 8, 16};
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "CPU, %d threads, %s", gni_pool_threads(g->pool),
             isa[g->isa]);
    snprintf(info->why, sizeof info->why, "%s", why);
    info->backend = GN_BACKEND_CPU;
    info->usable = true;
    info->has_f64 = info->has_i64 = true;
    info->threads = gni_pool_threads(g->pool);
    info->subgroup = lanes[g->isa];
}

// Nothing that the parent's threads or its driver work on is touched; what they hold goes with the process.
static void gni_after_fork(gn_context *g) {
    g->forks = gni_forks;
    gni_free(g, g->pool);
    g->pool = NULL; // one thread
    if (g->gpu == NULL) return;
    g->gpu = NULL;
    g->host_recording = false;
    gni_cpu_info(g, &g->info, "the GPU stayed with the parent of this process");
    gni_log(g, GN_LOG_WARNING, "%s: after fork() the child computes on the CPU", g->call);
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
    if (o->backend != GN_BACKEND_WEBGPU) g->gpu = gni_vk_gpu_open(g, o, why, size);
    if (GNI_WEBGPU ? g->gpu == NULL && o->backend != GN_BACKEND_VULKAN && g->status == GN_OK
                   : o->backend == GN_BACKEND_WEBGPU)
        g->gpu = gni_wg_gpu_open(g, o, why, size);
    if (g->gpu != NULL) g->gpu->layer->info(g->gpu, &g->info);
    return g->gpu != NULL || o->backend == GN_BACKEND_AUTO;
}

// The first field that is out of range, or NULL.
static const char *gni_options_wrong(const gn_options *o) {
    if ((unsigned)o->backend > GN_BACKEND_WEBGPU) return "backend";
    if ((unsigned)o->placement > GN_PLACE_STAY) return "placement";
    if (o->threads < 0) return "threads";
    if (o->device < 0) return "device";
    if ((unsigned)o->cpu > GN_CPU_AVX512) return "cpu";
    if ((unsigned)o->matmul > GN_PRECISION_HIGH) return "matmul";
    return (unsigned)o->log_level > GN_LOG_DEBUG ? "log_level" : NULL;
}

GPUNUM_API gn_context *gn_open_version(const gn_options *options, uint32_t version,
                                       size_t options_size) {
    gn_options o;
    char why[256] = "";
    memset(&o, 0, sizeof o);
    gni_open_last()->status = GN_OK;
    gni_open_last()->text[0] = 0;
    const uint32_t like = GPUNUM_VERSION < 10000 ? 100 : 10000; // versions that are alike down to this fit
    if (version > GPUNUM_VERSION || version / like != GPUNUM_VERSION / like || options_size > sizeof o) {
        gni_log_environment(&o);
        snprintf(why, sizeof why,
                 "the caller was compiled with gpunum.h %u.%u.%u and gn_options of %u bytes, the implementation is "
                 "%d.%d.%d with %u bytes: compile both with the same header",
                 version / 10000, version / 100 % 100, version % 100, (unsigned)options_size, GPUNUM_VERSION / 10000,
                 GPUNUM_VERSION / 100 % 100, GPUNUM_VERSION % 100, (unsigned)sizeof o);
        return gni_open_fail(&o, NULL, GN_ERROR_VERSION, why);
    }
    // An older caller's smaller struct leaves the fields it does not know zero.
    if (options != NULL) memcpy(&o, options, options_size);
    gni_log_environment(&o);
    const char *wrong = gni_options_wrong(&o);
    if (wrong != NULL) {
        snprintf(why, sizeof why, "gn_options.%s is out of range", wrong);
        return gni_open_fail(&o, NULL, GN_ERROR_ARGUMENT, why);
    }
#ifdef GNI_STACK
    if (emscripten_stack_get_free() < GNI_STACK)
        return gni_open_fail(&o, NULL, GN_ERROR_UNSUPPORTED, "the stack is too small: link with -sSTACK_SIZE=1MB");
#endif
    gn_context *g = gni_context_new(&o);
    if (g == NULL) return gni_open_fail(&o, NULL, GN_ERROR_OUT_OF_MEMORY, "out of memory");
    g->isa = gni_isa_choose(o.cpu);
    int threads = o.threads > 0 ? o.threads : gni_cpu_count();
    g->pool = gni_pool_open(g, threads);
    if (o.cache_dir != NULL) {
        char *copy = (char *)gni_alloc(g, strlen(o.cache_dir) + 1);
        if (copy == NULL) return gni_open_fail(&o, g, GN_ERROR_OUT_OF_MEMORY, "out of memory");
        memcpy(copy, o.cache_dir, strlen(o.cache_dir) + 1);
        g->options.cache_dir = copy;
    }
    bool ok = gni_open_gpu(g, &o, why, sizeof why);
    g->options.vulkan = NULL; // the caller's memory
    if (!ok || g->status != GN_OK) {
        char text[600];
        snprintf(text, sizeof text, "%s", g->status != GN_OK ? g->message : why);
        return gni_open_fail(&o, g, g->status != GN_OK ? g->status : GN_ERROR_UNSUPPORTED, text);
    }
    if (g->gpu == NULL) gni_cpu_info(g, &g->info, why);
    gni_log(g, GN_LOG_INFO, "gpunum computes on %s%s%s", g->info.name, why[0] ? "; not on a GPU: " : "", why);
    return g;
}

#if GNI_WEBGPU && defined(__EMSCRIPTEN__)
typedef struct gni_open_later {
    gn_options options;
    uint32_t version;
    size_t size;
    gn_opened_fn done;
    void *user;
} gni_open_later;

static void gni_open_ready(void *user) {
    gni_open_later l = *(gni_open_later *)user;
    free(user); // the caller's allocator is of use when there is a context
    l.done(l.user, gn_open_version(l.size > 0 ? &l.options : NULL, l.version, l.size));
}

// Leaves the opening to the page's loop. False: nothing there has to be waited for.
static bool gni_open_later_begin(const gn_options *o, uint32_t version, size_t size, gn_opened_fn done, void *user) {
    if (size > sizeof *o || (o != NULL && o->backend == GN_BACKEND_CPU)) return false;
    gni_open_later *l = (gni_open_later *)calloc(1, sizeof *l);
    if (l == NULL) return false;
    if (o != NULL) memcpy(&l->options, o, size);
    l->size = o != NULL ? size : 0;
    l->version = version;
    l->done = done;
    l->user = user;
    if (gni_wg_browser_prepare(gni_open_ready, l)) return true;
    free(l);
    return false;
}
#endif

GPUNUM_API void gn_open_async_version(const gn_options *options, uint32_t version, size_t options_size, gn_opened_fn done,
                                      void *user) {
    if (done == NULL) return;
#if GNI_WEBGPU && defined(__EMSCRIPTEN__)
    if (gni_open_later_begin(options, version, options_size, done, user)) return;
#endif
    done(user, gn_open_version(options, version, options_size));
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

// What a program may want to know about itself at its end.
static void gni_close_report(gn_context *g) {
    int scopes = g->lost_scopes, no_grad = g->lost_no_grad, arrays = 0;
    uint64_t bytes = 0;
    for (const gni_stack *s = g->stacks; s != NULL; s = s->next) {
        scopes += s->count + s->lost;
        no_grad += s->no_grad;
    }
    if (g->status != GN_OK && !g->told)
        gni_log(g, GN_LOG_WARNING, "gn_close: nobody asked for the error (gn_status_get, gn_error): %s", g->message);
    if (scopes > 0) gni_log(g, GN_LOG_WARNING, "gn_close: %d gn_scope_begin without gn_scope_end", scopes);
    if (no_grad > 0) gni_log(g, GN_LOG_WARNING, "gn_close: %d gn_no_grad_begin without gn_no_grad_end", no_grad);
    for (const gn_array *a = g->arrays; a != NULL; a = a->all_next) {
        if (a->user_refs <= 0) continue;
        arrays++;
        if (a->buf == NULL || a->buf->read == UINT64_MAX) continue;
        bytes += a->buf->bytes;
        a->buf->read = UINT64_MAX; // counted: nothing is read any more
    }
    if (arrays > 0)
        gni_log(g, GN_LOG_INFO, "gn_close: arrays still alive: %d (%llu bytes)", arrays, (unsigned long long)bytes);
}

// What the CPU makes again when it is needed.
static void gni_kept_free(gn_context *g) {
    if (g->gemm_work != NULL) gni_gemm_work_free(g, g->gemm_work);
#ifndef GPUNUM_NO_FFT
    gni_fft_free(g);
#endif
}

GPUNUM_API void gn_close(gn_context *g) {
    if (!gni_begin_context("gn_close", g)) return;
    const bool inside = g->call_depth > 1;
    if (inside) gni_fail(g, GN_ERROR_ARGUMENT, "gn_close: called within another call on this context");
    gni_end_plain(g);
    if (inside) return;
    for (gn_loader *l = g->loaders; l != NULL; l = l->next)
        if (!gni_loader_ready(l, "gn_close", false)) return;
    while (g->loaders != NULL) gn_loader_free(g->loaders); // their threads may be inside calls
    if (!gni_begin_context("gn_close", g)) return;
    gni_deliver_reads(g, true);
    while (g->optimizers != NULL) gn_optimizer_free(g->optimizers);
    while (g->params != NULL) gn_params_free(g->params);
    gni_buffers_end(g);
    gni_close_report(g);
    // Whatever holds what: none goes before all have let go of each other.
    for (gn_array *a = g->arrays; a != NULL; a = a->all_next) a->refs++;
    for (gn_array *a = g->arrays; a != NULL; a = a->all_next) {
        if (a->expr != NULL) gni_expr_free(g, a);
        if (a->node != NULL) gni_node_free(g, a->node);
        a->node = NULL;
        a->grad = NULL;
    }
    while (g->arrays != NULL) {
        g->arrays->refs = 1;
        gni_unref(g, g->arrays);
        gni_buffers_end(g);
    }
    gni_kept_free(g);
#ifndef GPUNUM_NO_FFT
    gni_fft_gpu_free(g);
#endif
    gni_host_cache_trim(g);
    gni_stacks_free(g);
    gni_profile_free(g);
    gni_free(g, g->gemm_work);
    if (g->gpu != NULL) g->gpu->layer->close(g->gpu);
    gni_pool_close(g->pool);
    while (g->slabs != NULL) {
        gni_slab *slab = g->slabs;
        g->slabs = slab->next;
        gni_free(g, slab->block);
    }
    gni_free(g, (void *)(uintptr_t)g->options.cache_dir);
    g->call_depth = 0;
    gni_lock_leave(&g->lock);
    gni_mutex_free(&g->lock.mutex);
    gni_mutex_free(&g->stats_lock);
    gn_allocator allocator = g->allocator;
    g->handle.magic = 0;
    gni_atomic_add(&gni_contexts, -1);
    allocator.release(allocator.user, g, sizeof(gn_context));
}

GPUNUM_API void gn_device_get(const gn_context *g, gn_device_info *out) {
    if (out == NULL) return;
    memset(out, 0, sizeof *out);
    if (gni_is_a("gn_device_get", g, GNI_IS_CONTEXT)) *out = g->info;
}

GPUNUM_API int gn_device_list(gn_device_info *out, int capacity) {
    return gni_vk_list(NULL, out, out != NULL ? capacity : 0);
}

GPUNUM_API gn_status gn_flush(gn_context *g) {
    if (!gni_begin_context("gn_flush", g)) return GN_ERROR_ARGUMENT;
    if (g->gpu != NULL && !g->gpu->layer->flush(g->gpu))
        gni_fail(g, GN_ERROR_DEVICE_LOST, "gn_flush: submitting failed");
    return gni_end_status(g);
}

// The host's buffers get what the CPU wrote to the arrays over them. What they hold then is the value.
static void gni_wraps_return(gn_context *g) {
    for (gn_array *a = g->arrays; a != NULL; a = a->all_next)
        if (a->buf != NULL && a->buf->device_borrowed && gni_buffer_need(g, a->buf, GNI_ON_GPU)) a->buf->where = GNI_ON_GPU;
}

GPUNUM_API gn_status gn_sync(gn_context *g) {
    gni_gpu_ticket faults;
    if (!gni_begin_context("gn_sync", g)) return GN_ERROR_ARGUMENT;
    if (g->wraps && !g->host_recording) gni_wraps_return(g);
    if (gni_faults_begin(g, &faults)) gni_faults_end(g, &faults);
    if (g->gpu != NULL && !g->gpu->layer->wait(g->gpu))
        gni_fail(g, GN_ERROR_DEVICE_LOST, "gn_sync: waiting failed");
    gni_deliver_reads(g, true);
    return gni_end_status(g);
}

GPUNUM_API void gn_memory_get(gn_context *g, gn_memory_stats *out) {
    if (out == NULL) return;
    memset(out, 0, sizeof *out);
    if (!gni_begin_context("gn_memory_get", g)) return;
    if (g->gpu != NULL) g->gpu->layer->memory_stats(g->gpu, out);
    gni_count_get(g, &out->host_used, &out->host_peak);
    out->arrays = g->array_count;
    gni_end_plain(g);
}

GPUNUM_API void gn_memory_trim(gn_context *g) {
    if (!gni_begin_context("gn_memory_trim", g)) return;
    if (g->call_depth == 1) gni_kept_free(g);
    gni_host_cache_trim(g);
    if (g->gpu != NULL) g->gpu->layer->trim(g->gpu);
    gni_end_plain(g);
}

// ---- a host's own Vulkan

GPUNUM_API gn_status gn_vulkan_buffer(gn_array *a, uint64_t *buffer, uint64_t *offset,
                                      uint64_t *size) {
    gn_context *g = gni_begin("gn_vulkan_buffer", &a, 1);
    if (g == NULL) return gni_null_status(a);
    if (buffer == NULL || offset == NULL || size == NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_vulkan_buffer: an output pointer is NULL");
    else if (g->gpu == NULL)
        gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_vulkan_buffer: this context has no GPU");
    else if (g->gpu->layer->wrap == NULL)
        gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_vulkan_buffer: this context does not compute with Vulkan");
    else if (gni_materialize(g, a) && !gni_is_contiguous(a))
        gni_fail(g, GN_ERROR_SHAPE,
                 "gn_vulkan_buffer: the array is a strided view; gn_copy it first");
    else if (!g->call_failed && gni_buffer_need(g, a->buf, GNI_ON_GPU) &&
             g->gpu->layer->wait(g->gpu)) {
        gni_buffer_drop_host(g, a->buf); // the host may write: the device copy is the only true one
        a->buf->where = GNI_ON_GPU;
        *buffer = a->buf->device.handle;
        *offset = a->buf->device.offset + (uint64_t)a->offset * gn_dtype_size(a->dtype);
        *size = gn_bytes(a);
    }
    return gni_end_status(g);
}

GPUNUM_API gn_array *gn_vulkan_wrap(gn_context *g, uint64_t buffer, uint64_t offset, gn_dtype t,
                                    gn_shape s) {
    if (!gni_begin_context("gn_vulkan_wrap", g)) return NULL;
    gn_array *y = NULL;
    if (g->gpu == NULL)
        gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_vulkan_wrap: this context has no GPU");
    else if (g->gpu->layer->wrap == NULL)
        gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_vulkan_wrap: this context does not compute with Vulkan");
    else
        y = gni_array_empty(g, "gn_vulkan_wrap", t, &s);
    if (y != NULL) {
        if (g->gpu->layer->wrap(g->gpu, buffer, offset, y->buf->bytes, &y->buf->device)) {
            y->buf->has_device = y->buf->device_borrowed = g->wraps = true;
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
    if (g->gpu == NULL)
        gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_vulkan_record_begin: this context has no GPU");
    else if (g->gpu->layer->wrap == NULL)
        gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_vulkan_record_begin: this context does not compute with Vulkan");
    else if (g->host_recording)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_vulkan_record_begin: already recording");
    else if (command_buffer == NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_vulkan_record_begin: no command buffer");
    else if (g->gpu->layer->record_begin(g->gpu, command_buffer))
        g->host_recording = true;
    else if (!g->call_failed)
        gni_fail(g, GN_ERROR_UNSUPPORTED, "gn_vulkan_record_begin: the device refused");
    return gni_end_status(g);
}

GPUNUM_API gn_status gn_vulkan_record_end(gn_context *g, uint64_t *ticket) {
    if (!gni_begin_context("gn_vulkan_record_end", g)) return GN_ERROR_ARGUMENT;
    if (ticket != NULL) *ticket = 0;
    if (!g->host_recording) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_vulkan_record_end: not recording");
    } else {
        uint64_t number = g->gpu->layer->record_end(g->gpu);
        if (ticket != NULL) *ticket = number;
    }
    g->host_recording = false;
    return gni_end_status(g);
}

GPUNUM_API void gn_vulkan_record_done(gn_context *g, uint64_t ticket) {
    if (!gni_begin_context("gn_vulkan_record_done", g)) return;
    if (g->gpu != NULL && g->gpu->layer->record_done != NULL) g->gpu->layer->record_done(g->gpu, ticket);
    gni_end_plain(g);
}
