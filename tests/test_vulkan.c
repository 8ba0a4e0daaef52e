// The Vulkan rooms from inside: memory pool, command stream, pipelines and their cache, recording into a
// host's command buffer, and failure of every allocation and of the device. Random work is compared with
// the same work on the CPU, with buffer addresses and with bindings, with the device's memory seen by the
// host and with staging. Skipped where the environment does not name the Vulkan backend.

#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"

#include "test.h"

#ifdef __linux__
#include <sys/wait.h>
#include <unistd.h>
#endif

#if !GNI_VULKAN

int main(void) { return 0; }

#else

// gn_options.vulkan_flags
static const uint32_t modes[] = {0, GN_VULKAN_NO_ADDRESSES, GN_VULKAN_NO_MAPPING,
                                 GN_VULKAN_NO_ADDRESSES | GN_VULKAN_NO_MAPPING | GN_VULKAN_NO_ASYNC_PIPELINES};
enum { MODES = sizeof modes / sizeof modes[0] };

typedef struct fixture {
    gn_context *g; // a CPU context, for its allocator and its errors
    gni_vk *vk;
} fixture;

static bool open_mode(fixture *f, uint32_t flags, uint64_t limit, const char *cache) {
    gn_options o = test_options();
    o.backend = GN_BACKEND_CPU;
    o.vulkan_flags = 0;
    f->g = gn_open(&o);
    if (f->g == NULL) return false;
    o.backend = GN_BACKEND_VULKAN;
    o.vulkan_flags = flags;
    o.memory_limit = limit;
    o.cache_dir = cache;
    char why[256];
    f->vk = gni_vk_open(f->g, &o, why, sizeof why);
    if (f->vk == NULL) print_message("%s\n", why);
    return f->vk != NULL;
}

static void close_mode(fixture *f) {
    gni_vk_close(f->vk);
    if (gn_status_get(f->g) != GN_OK) fail_msg("%s", gn_error(f->g));
    test_close(f->g);
}

static void start(fixture *f, uint32_t flags, uint64_t limit) {
    if (!test_on_vulkan()) skip();
    if (!open_mode(f, flags, limit, NULL)) fail_msg("no device");
}

static void must(const fixture *f, bool ok) {
    if (!ok) fail_msg("%s", gn_error(f->g));
}

static uint64_t random_state = 1;
static uint32_t random_below(uint64_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
}

static gni_vk_pipeline *map_pipeline(gni_vk *vk, uint32_t factor, bool vectors, gni_gpu_mode mode) {
    gni_gpu_kernel k;
    memset(&k, 0, sizeof k);
    k.module = GNI_MODULE_selftest_map;
    k.n_spec = GNI_S_SELFTEST_SPECS;
    k.spec[GNI_S_SELFTEST_FACTOR] = factor;
    k.spec[GNI_S_SELFTEST_VECTORS] = vectors;
    return gni_vk_pipeline_get(vk, &k, mode);
}

static gni_gpu_use use_of(const gni_gpu_mem *m, uint64_t first, uint64_t words, bool write) {
    gni_gpu_use u;
    u.mem = m;
    u.offset = first * 4;
    u.bytes = words * 4;
    u.write = write;
    return u;
}

// Few iterations for each invocation: Mesa's CPU driver ends a loop after 65535.
static uint32_t groups_for(uint64_t words) { return 1 + (uint32_t)(words / 512); }

// ---- random work against a model

enum { BUFFERS = 32, TICKETS = 6 };

typedef struct model_buffer {
    gni_gpu_mem mem;
    uint32_t *words; // what it should hold; NULL: not allocated
    uint64_t count;
} model_buffer;

typedef struct model {
    fixture f;
    model_buffer buffer[BUFFERS];
    gni_gpu_ticket ticket[TICKETS];
    uint32_t *expected[TICKETS];
    uint64_t expected_bytes[TICKETS];
    uint64_t most; // words of the largest buffer
    int refused;
} model;

static void compare_words(const uint32_t *have, const uint32_t *want, uint64_t count, const char *what) {
    for (uint64_t i = 0; i < count; i++)
        if (have[i] != want[i])
            fail_msg("%s: word %llu is %u, not %u", what, (unsigned long long)i, (unsigned)have[i], (unsigned)want[i]);
}

static void model_make(model *m, int i) {
    model_buffer *b = &m->buffer[i];
    uint64_t count = random_below(8) == 0 ? 1 + random_below(m->most) : 1 + random_below(3000);
    if (!gni_vk_alloc(m->f.vk, count * 4, &b->mem)) {
        m->refused++;
        return;
    }
    assert_int_equal(b->mem.offset % 256, 0);
    assert_true(b->mem.size >= count * 4 && b->mem.size % 16 == 0);
    b->count = count;
    b->words = (uint32_t *)malloc((size_t)count * 4);
    for (uint64_t k = 0; k < count; k++) b->words[k] = (uint32_t)k * 3 + random_below(7);
    must(&m->f, gni_vk_upload(m->f.vk, &b->mem, 0, b->words, count * 4));
}

static void model_drop(model *m, int i) {
    gni_vk_free(m->f.vk, &m->buffer[i].mem);
    free(m->buffer[i].words);
    memset(&m->buffer[i], 0, sizeof m->buffer[i]);
}

static void model_finish(model *m, int t, bool wait) {
    if (m->expected[t] == NULL) return;
    if (!gni_vk_ticket_ready(m->f.vk, &m->ticket[t], wait)) {
        must(&m->f, !wait);
        return;
    }
    compare_words((const uint32_t *)m->ticket[t].data, m->expected[t], m->expected_bytes[t] / 4, "ticket");
    gni_vk_ticket_release(m->f.vk, &m->ticket[t]);
    free(m->expected[t]);
    m->expected[t] = NULL;
}

static int model_pick(const model *m) {
    int i = (int)random_below(BUFFERS);
    while (m->buffer[i].words == NULL) i = (i + 1) % BUFFERS;
    return i;
}

// An aligned place for `count` words.
static uint64_t model_place(const model *m, int i, uint64_t count) {
    uint64_t step = m->f.vk->gpu.caps.addresses ? 4 : 64;
    return random_below((m->buffer[i].count - count) / step + 1) * step;
}

// out = factor * in[0] + in[1] + ... + p on the device and in the model.
static void model_map(model *m, int out, uint64_t count, bool vectors) {
    int n_in = 1 + (int)random_below(7), in[7];
    uint64_t first[8];
    gni_gpu_use use[8];
    if (vectors) count &= ~(uint64_t)3;
    if (count == 0) return;
    first[0] = model_place(m, out, count);
    use[0] = use_of(&m->buffer[out].mem, first[0], count, true);
    for (int k = 0; k < n_in; k++) {
        in[k] = model_pick(m);
        if (m->buffer[in[k]].count < count) in[k] = out;
        // In place is allowed, overlapping otherwise is not.
        first[k + 1] = in[k] == out ? first[0] : model_place(m, in[k], count);
        use[k + 1] = use_of(&m->buffer[in[k]].mem, first[k + 1], count, false);
    }
    uint32_t params[3];
    params[0] = (uint32_t)count;
    params[1] = (uint32_t)n_in;
    params[2] = random_below(100);
    uint32_t factor = random_below(5);
    static const gni_gpu_mode how[] = {GNI_GPU_WAIT, GNI_GPU_ASYNC, GNI_GPU_BEHIND};
    gni_vk_pipeline *p = map_pipeline(m->f.vk, factor, vectors, how[random_below(3)]);
    if (p == NULL) return; // not ready
    must(&m->f, gni_vk_dispatch(m->f.vk, p, use, n_in + 1, params, sizeof params, groups_for(count), 1, 1));
    for (uint64_t i = 0; i < count; i++) {
        uint32_t sum = params[2] + factor * m->buffer[in[0]].words[first[1] + i];
        for (int k = 1; k < n_in; k++) sum += m->buffer[in[k]].words[first[k + 1] + i];
        m->buffer[out].words[first[0] + i] = sum;
    }
}

// A sum by all workgroups, in memory that is given back while the device still works with it.
static void model_sum(model *m, int i, uint64_t count) {
    gni_vk *vk = m->f.vk;
    gni_gpu_mem scratch, out;
    if (!gni_vk_alloc(vk, 1000, &scratch)) return;
    if (gni_vk_alloc(vk, 4, &out)) {
        gni_gpu_kernel k;
        memset(&k, 0, sizeof k);
        k.module = GNI_MODULE_selftest_sum;
        gni_vk_pipeline *p = gni_vk_pipeline_get(vk, &k, GNI_GPU_WAIT);
        uint64_t first = model_place(m, i, count);
        gni_gpu_use use[3];
        use[0] = use_of(&m->buffer[i].mem, first, count, false);
        use[1] = use_of(&scratch, 0, 250, true);
        use[2] = use_of(&out, 0, 1, true);
        uint32_t n = (uint32_t)count, have = 0, want = 0;
        must(&m->f, gni_vk_fill(vk, &scratch, 0, 4, 0) && p != NULL);
        must(&m->f, gni_vk_dispatch(vk, p, use, 3, &n, 4, 1 + random_below(200), 1, 1));
        gni_vk_free(vk, &scratch);
        must(&m->f, gni_vk_download(vk, &out, 0, &have, 4));
        gni_vk_free(vk, &out);
        for (uint64_t x = 0; x < count; x++) want += m->buffer[i].words[first + x];
        assert_int_equal(have, want);
    } else {
        gni_vk_free(vk, &scratch);
    }
}

static void model_step(model *m) {
    gni_vk *vk = m->f.vk;
    int i = (int)random_below(BUFFERS);
    if (m->buffer[i].words == NULL) {
        model_make(m, i);
        return;
    }
    model_buffer *b = &m->buffer[i];
    int a = model_pick(m), t = (int)random_below(TICKETS);
    uint64_t count = 1 + random_below(GNI_MIN(b->count, m->buffer[a].count));
    uint64_t to = model_place(m, i, count), from = model_place(m, a, count);
    uint32_t what = random_below(32), word = random_below(1u << 31);
    if (what < 18) {
        model_map(m, i, count, what < 5);
    } else if (what < 20) {
        must(&m->f, gni_vk_fill(vk, &b->mem, to * 4, count * 4, word));
        for (uint64_t x = 0; x < count; x++) b->words[to + x] = word;
    } else if (what < 22 && a != i) {
        must(&m->f, gni_vk_copy(vk, &b->mem, to * 4, &m->buffer[a].mem, from * 4, count * 4));
        memcpy(b->words + to, m->buffer[a].words + from, (size_t)count * 4);
    } else if (what < 24) {
        for (uint64_t x = 0; x < count; x++) b->words[to + x] = word + (uint32_t)x;
        must(&m->f, gni_vk_upload(vk, &b->mem, to * 4, b->words + to, count * 4));
    } else if (what < 26) {
        model_finish(m, t, word & 1);
        if (m->expected[t] != NULL) return;
        m->expected_bytes[t] = count * 4;
        m->expected[t] = (uint32_t *)malloc((size_t)count * 4);
        memcpy(m->expected[t], b->words + to, (size_t)count * 4);
        must(&m->f, gni_vk_download_begin(vk, &b->mem, to * 4, count * 4, &m->ticket[t]));
    } else if (what == 26) {
        model_sum(m, i, count);
    } else if (what == 27) {
        uint32_t *have = (uint32_t *)malloc((size_t)count * 4);
        must(&m->f, gni_vk_download(vk, &b->mem, to * 4, have, count * 4));
        compare_words(have, b->words + to, count, "download");
        free(have);
    } else if (what == 28 && word % 16 == 0) {
        gni_vk_trim(vk);
    } else if (what == 29) {
        must(&m->f, word & 1 ? gni_vk_flush(vk) : gni_vk_wait(vk));
    } else if (what > 29) {
        model_drop(m, i);
    }
}

static void random_work(uint32_t flags, uint64_t seed, int steps, uint64_t most, uint64_t limit) {
    model m;
    memset(&m, 0, sizeof m);
    start(&m.f, flags, limit);
    m.most = most;
    random_state = seed;
    model_make(&m, 0);
    for (int s = 0; s < steps; s++) {
        int alive = 0;
        for (int i = 0; i < BUFFERS; i++) alive += m.buffer[i].words != NULL;
        if (alive == 0) model_make(&m, 0);
        model_step(&m);
    }
    for (int t = 0; t < TICKETS; t++) model_finish(&m, t, true);
    for (int i = 0; i < BUFFERS; i++) {
        model_buffer *b = &m.buffer[i];
        if (b->words == NULL) continue;
        uint32_t *have = (uint32_t *)malloc((size_t)b->count * 4);
        must(&m.f, gni_vk_download(m.f.vk, &b->mem, 0, have, b->count * 4));
        compare_words(have, b->words, b->count, "end");
        free(have);
        model_drop(&m, i);
    }
    gn_memory_stats stats;
    memset(&stats, 0, sizeof stats);
    gni_vk_memory_stats(m.f.vk, &stats);
    assert_int_equal(stats.device_used, 0);
    assert_true(stats.device_peak <= stats.device_limit);
    if (limit) assert_true(stats.device_limit == limit && m.refused > 0);
    gni_vk_trim(m.f.vk);
    gni_vk_memory_stats(m.f.vk, &stats);
    assert_int_equal(stats.device_reserved, 0);
    assert_int_equal(stats.device_blocks, 0);
    close_mode(&m.f);
}

static void test_random_work(void **state) {
    (void)state;
    for (int k = 0; k < MODES; k++)
        for (uint64_t seed = 1; seed <= 2; seed++) random_work(modes[k], seed * 91 + (uint64_t)k, 1500, 100000, 0);
}

static void test_large_buffers(void **state) {
    (void)state;
    for (int k = 0; k < MODES; k++) random_work(modes[k], 5 + (uint64_t)k, 300, 6000000, 0);
}

static void test_limit(void **state) {
    (void)state;
    for (int k = 0; k < MODES; k++) random_work(modes[k], 17, 1200, 60000, (uint64_t)1 << 19);
}

// ---- the pool

static void test_pool_ranges(void **state) {
    (void)state;
    fixture f;
    start(&f, 0, 0);
    enum { COUNT = 200 };
    static gni_gpu_mem mem[COUNT];
    memset(mem, 0, sizeof mem);
    random_state = 3;
    for (int s = 0; s < 20000; s++) {
        int i = (int)random_below(COUNT);
        if (mem[i].handle != 0) {
            gni_vk_free(f.vk, &mem[i]);
            assert_true(mem[i].handle == 0);
            continue;
        }
        uint64_t bytes = random_below(random_below(50) == 0 ? 3000000 : 20000);
        if (!gni_vk_alloc(f.vk, bytes, &mem[i])) fail_msg("refused %d bytes", (int)bytes);
        assert_true(mem[i].size >= bytes && mem[i].offset % 256 == 0);
        for (int k = 0; k < COUNT; k++)
            if (k != i && mem[k].handle == mem[i].handle && mem[k].offset < mem[i].offset + mem[i].size &&
                mem[i].offset < mem[k].offset + mem[k].size)
                fail_msg("two allocations overlap");
    }
    for (int i = 0; i < COUNT; i++)
        if (mem[i].handle != 0) gni_vk_free(f.vk, &mem[i]);
    // Everything merged again: one free chunk in each block.
    for (gni_vk_block *b = f.vk->pools[GNI_VK_POOL_DEVICE].blocks; b != NULL; b = b->next) {
        const gni_vk_chunk *c = &f.vk->pools[GNI_VK_POOL_DEVICE].chunks[b->first];
        assert_true(c->free && c->next < 0 && c->prev < 0 && (uint64_t)c->units * GNI_VK_UNIT == b->size);
    }
    close_mode(&f);
}

static void test_pool_limits(void **state) {
    (void)state;
    fixture f;
    const uint64_t mib = (uint64_t)1 << 20;
    start(&f, 0, 10 * mib);
    gni_gpu_mem a, b, c;
    assert_false(gni_vk_alloc(f.vk, 10 * mib + 1, &a));
    assert_false(gni_vk_alloc(f.vk, UINT64_MAX, &a));
    assert_true(gni_vk_alloc(f.vk, 10 * mib, &a));
    assert_false(gni_vk_alloc(f.vk, 1, &b));
    gni_vk_free(f.vk, &a);
    // The empty block goes back to the driver to make room for blocks of other sizes.
    assert_true(gni_vk_alloc(f.vk, 1, &a) && gni_vk_alloc(f.vk, 4 * mib, &b) && gni_vk_alloc(f.vk, 4 * mib, &c));
    must(&f, gni_vk_fill(f.vk, &b, 0, 4 * mib, 1) && gni_vk_fill(f.vk, &c, 0, 4 * mib, 1));
    gni_vk_free(f.vk, &b); // in use: the next request waits for the device
    gni_vk_free(f.vk, &c);
    assert_true(gni_vk_alloc(f.vk, 9 * mib, &b));
    assert_false(gni_vk_alloc(f.vk, 4 * mib, &c));
    gni_vk_free(f.vk, &a);
    gni_vk_free(f.vk, &b);
    close_mode(&f);
}

// ---- refusals

static void test_refusals(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        fixture f;
        start(&f, modes[k], 0);
        gni_gpu_mem m;
        uint32_t params[3] = {4, 1, 0}, word;
        assert_true(gni_vk_alloc(f.vk, 1024, &m));
        gni_vk_pipeline *p = map_pipeline(f.vk, 1, false, GNI_GPU_WAIT);
        gni_gpu_use use[17];
        for (int i = 0; i < 17; i++) use[i] = use_of(&m, 0, 4, i == 0);
        assert_false(gni_vk_dispatch(f.vk, p, use, 17, params, 12, 1, 1, 1));
        expect_error(f.g, GN_ERROR_ARGUMENT, "dispatch of selftest_map: too many buffers for this device");
        assert_false(gni_vk_dispatch(f.vk, p, use, 2, params, GNI_GPU_MAX_PARAMS + 4, 1, 1, 1));
        expect_error(f.g, GN_ERROR_ARGUMENT, "dispatch of selftest_map: too many parameters");
        use[1].offset = 8;
        assert_false(gni_vk_dispatch(f.vk, p, use, 2, params, 12, 1, 1, 1));
        expect_error(f.g, GN_ERROR_ARGUMENT, "dispatch of selftest_map: a buffer argument is not aligned");
        use[1].offset = 1024;
        assert_false(gni_vk_dispatch(f.vk, p, use, 2, params, 12, 1, 1, 1));
        expect_error(f.g, GN_ERROR_ARGUMENT,
                     "dispatch of selftest_map: a buffer argument reaches outside of its memory");
        use[1].offset = 0;
        assert_true(gni_vk_dispatch(f.vk, p, use, 2, params, 12, 0, 1, 1)); // nothing to do
        assert_false(gni_vk_download(f.vk, &m, 1024, &word, 4));
        expect_error(f.g, GN_ERROR_ARGUMENT, "download: bytes outside of a buffer");
        assert_false(gni_vk_upload(f.vk, &m, UINT64_MAX, &word, 4));
        expect_error(f.g, GN_ERROR_ARGUMENT, "upload: bytes outside of a buffer");
        assert_false(gni_vk_wrap(f.vk, m.handle, 1, 16, &m));
        expect_error(f.g, GN_ERROR_ARGUMENT, NULL);
        gn_options o = test_options();
        char why[256];
        o.device = 99;
        assert_null(gni_vk_open(f.g, &o, why, sizeof why));
        assert_non_null(strstr(why, "device 99 was asked for"));
        close_mode(&f);
    }
}

// ---- a host's command buffer

static VkCommandBuffer host_commands(const gni_vk *vk, VkCommandPool pool) {
    VkCommandBufferAllocateInfo info;
    VkCommandBufferBeginInfo begin;
    VkCommandBuffer c = NULL;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool;
    info.commandBufferCount = 1;
    assert_int_equal(vk->f.vkAllocateCommandBuffers(vk->device, &info, &c), VK_SUCCESS);
    memset(&begin, 0, sizeof begin);
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    assert_int_equal(vk->f.vkBeginCommandBuffer(c, &begin), VK_SUCCESS);
    return c;
}

static void test_recording(void **state) {
    (void)state;
    for (int k = 0; k < MODES; k++) {
        fixture f;
        start(&f, modes[k], 0);
        gni_vk *vk = f.vk;
        VkCommandPoolCreateInfo info;
        VkCommandPool pool = VK_NULL_HANDLE;
        memset(&info, 0, sizeof info);
        info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
        info.queueFamilyIndex = vk->family;
        assert_int_equal(vk->f.vkCreateCommandPool(vk->device, &info, NULL, &pool), VK_SUCCESS);
        gni_vk_pipeline *p = map_pipeline(vk, 2, false, GNI_GPU_WAIT);
        uint32_t data[256], want[256], have[256], params[3] = {256, 2, 1};
        gni_gpu_mem a, b;
        assert_true(gni_vk_alloc(vk, 1024, &a) && gni_vk_alloc(vk, 1024, &b));
        memset(want, 0, sizeof want);
        must(&f, gni_vk_fill(vk, &b, 0, 1024, 0));
        uint64_t token = 0;
        for (uint32_t frame = 0; frame < 5; frame++) {
            for (uint32_t i = 0; i < 256; i++) data[i] = i * (frame + 1);
            must(&f, gni_vk_upload(vk, &a, 0, data, 1024));
            VkCommandBuffer c = host_commands(vk, pool);
            must(&f, gni_vk_record_begin(vk, c));
            gni_gpu_mem temporary, next;
            assert_true(gni_vk_alloc(vk, 1024, &temporary));
            gni_gpu_use use[3];
            use[1] = use_of(&a, 0, 256, false);
            use[2] = use_of(&b, 0, 256, false);
            for (int i = 0; i < 80; i++) { // more than one block of parameters
                use[0] = use_of(&temporary, 0, 256, true);
                must(&f, gni_vk_dispatch(vk, p, use, 3, params, 12, 4, 1, 1));
            }
            use[0] = use_of(&b, 0, 256, true);
            use[1] = use_of(&temporary, 0, 256, false);
            must(&f, gni_vk_dispatch(vk, p, use, 3, params, 12, 4, 1, 1));
            uint64_t kept = temporary.offset, kept_in = temporary.handle;
            gni_vk_free(vk, &temporary);
            token = gni_vk_record_end(vk);
            // The host's commands come later: what they use is not given out again.
            assert_true(gni_vk_alloc(vk, 1024, &next));
            assert_false(next.offset == kept && next.handle == kept_in);
            gni_vk_free(vk, &next);
            VkSubmitInfo submit;
            memset(&submit, 0, sizeof submit);
            submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
            submit.commandBufferCount = 1;
            submit.pCommandBuffers = &c;
            assert_int_equal(vk->f.vkEndCommandBuffer(c), VK_SUCCESS);
            assert_int_equal(vk->f.vkQueueSubmit(vk->queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
            for (uint32_t i = 0; i < 256; i++) want[i] = 2 * (2 * data[i] + want[i] + 1) + want[i] + 1;
            assert_int_equal(vk->f.vkQueueWaitIdle(vk->queue), VK_SUCCESS);
            must(&f, gni_vk_download(vk, &b, 0, have, 1024));
            compare_words(have, want, 256, "recorded");
            if (frame != 1) gni_vk_record_done(vk, token); // a later number includes the earlier ones
        }
        gn_memory_stats stats;
        gni_vk_memory_stats(vk, &stats);
        assert_int_equal(stats.device_used, 2048);
        vk->f.vkDestroyCommandPool(vk->device, pool, NULL);
        gni_vk_free(vk, &a);
        gni_vk_free(vk, &b);
        close_mode(&f);
    }
}

// Writing to views within a host's commands: what was recorded before sees the old values, and nothing waits.
static void test_recorded_writes(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    gn_options o = test_options();
    gn_context *g = test_share(&o);
    gni_vk *vk = (gni_vk *)(void *)g->gpu;
    VkCommandPoolCreateInfo info;
    VkCommandPool pool = VK_NULL_HANDLE;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    info.queueFamilyIndex = vk->family;
    assert_int_equal(vk->f.vkCreateCommandPool(vk->device, &info, NULL, &pool), VK_SUCCESS);
    gn_array *a = gn_to(gn_eval(gn_arange(g, GN_F32, 0, 8, 1)), GN_DEVICE_GPU), *before = gn_mul_s(a, 10);
    gn_array *b = gn_to(gn_eval(gn_ones(g, GN_F32, GN_SHAPE(4))), GN_DEVICE_GPU);
    uint64_t ticket = 0;
    VkCommandBuffer c = host_commands(vk, pool);
    assert_int_equal(gn_vulkan_record_begin(g, c), GN_OK);
    assert_int_equal(gn_assign(gn_index(a, "1::2"), gn_mul_s(b, 5)), GN_OK);
    assert_null(gn_nonzero(a));
    expect_error(g, GN_ERROR_UNSUPPORTED, NULL);
    assert_null(gn_mask(a, gn_gt_s(a, 1)));
    expect_error(g, GN_ERROR_UNSUPPORTED, NULL);
    assert_null(gn_compress(gn_gt_s(a, 1), a, 0));
    expect_error(g, GN_ERROR_UNSUPPORTED, NULL);
    assert_null(gn_histogram(a, 3, 0, 0, NULL));
    expect_error(g, GN_ERROR_UNSUPPORTED, NULL);
    gn_print(b);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_print: a value cannot be read while a host's command buffer is recorded");
    gn_array *counts = gn_eval(gn_histogram(a, 3, 0, 6, NULL)); // of bounds that are given
    assert_int_equal(gn_assign_mask(a, gn_gt_s(a, 5.5), gn_scalar(g, GN_F32, 100)), GN_OK);
    assert_int_equal(gn_vulkan_record_end(g, &ticket), GN_OK);
    VkSubmitInfo submit;
    memset(&submit, 0, sizeof submit);
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &c;
    assert_int_equal(vk->f.vkEndCommandBuffer(c), VK_SUCCESS);
    assert_int_equal(vk->f.vkQueueSubmit(vk->queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
    assert_int_equal(vk->f.vkQueueWaitIdle(vk->queue), VK_SUCCESS);
    gn_vulkan_record_done(g, ticket);
    expect_values(a, 0, 5, 2, 5, 4, 5, 100, 5);
    expect_values(before, 0, 10, 20, 30, 40, 50, 60, 70);
    expect_values(counts, 1, 1, 6);
    vk->f.vkDestroyCommandPool(vk->device, pool, NULL);
    test_close(g);
}

// A host's buffer has what the CPU wrote to the array over it, and the array what the host wrote, after gn_sync.
static void test_wrap_on_cpu(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    gn_options o = test_options();
    o.placement = GN_PLACE_CPU;
    gn_context *g = test_share(&o);
    gni_vk *vk = (gni_vk *)(void *)g->gpu;
    gni_gpu_mem m;
    float have[64], data[64];
    for (int i = 0; i < 64; i++) data[i] = (float)i;
    assert_true(gni_vk_alloc(vk, sizeof data, &m) && gni_vk_upload(vk, &m, 0, data, sizeof data));
    gn_array *x = gn_vulkan_wrap(g, m.handle, m.offset, GN_F32, GN_SHAPE(64));
    for (int round = 0; round < 3; round++) {
        assert_int_equal(gn_assign(x, gn_add_s(x, 0.5)), GN_OK);
        assert_non_null(strstr(gn_explain(x), "on the CPU"));
        assert_int_equal(gn_sync(g), GN_OK);
        assert_true(gni_vk_download(vk, &m, 0, have, sizeof have));
        for (int i = 0; i < 64; i++) assert_true(have[i] == data[i] + 0.5F);
        for (int i = 0; i < 64; i++) data[i] = (float)(i * round);
        assert_true(gni_vk_upload(vk, &m, 0, data, sizeof data));
        assert_true(gn_item(gn_index(x, "5")) == 5.0 * round);
        assert_int_equal(gn_sync(g), GN_OK);
    }
    gn_release(x);
    gni_vk_free(vk, &m);
    test_close(g);
}

// Arrays over a host's buffer that end within a word: the last elements are read and written, what is behind them stays.
static void test_wrap_parts_of_words(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    for (int i = 0; i < 2; i++) {
        gn_options o = test_options();
        o.vulkan_flags = modes[i];
        gn_context *g = test_share(&o);
        gni_vk *vk = (gni_vk *)(void *)g->gpu;
        for (int count = 1; count < 20; count++) {
            gni_gpu_mem m;
            uint8_t data[32], have[32];
            for (int j = 0; j < 32; j++) data[j] = (uint8_t)(3 * j + 1);
            assert_true(gni_vk_alloc(vk, sizeof data, &m) && gni_vk_upload(vk, &m, 0, data, sizeof data));
            gn_array *x = gn_vulkan_wrap(g, m.handle, m.offset, GN_U8, GN_SHAPE(count));
            assert_int_equal(gn_assign(x, gn_add_s(x, 5)), GN_OK);
            assert_int_equal(gn_sync(g), GN_OK);
            assert_true(gni_vk_download(vk, &m, 0, have, sizeof have));
            for (int j = 0; j < 32; j++) assert_int_equal(have[j], data[j] + (j < count ? 5 : 0));
            gn_release(x);
            gni_vk_free(vk, &m);
        }
        test_close(g);
    }
}

// ---- profiling

static void test_profile(void **state) {
    (void)state;
    fixture f;
    start(&f, 0, 0);
    gni_gpu_mem m;
    uint32_t params[3] = {64, 1, 1};
    gni_gpu_event e[64];
    assert_true(gni_vk_alloc(f.vk, 256, &m));
    gni_vk_pipeline *p = map_pipeline(f.vk, 1, false, GNI_GPU_WAIT);
    if (gni_vk_profile(f.vk, true)) {
        uint64_t before = gni_now_ns(), last = 0;
        gni_gpu_use use[2];
        use[0] = use_of(&m, 0, 64, true);
        use[1] = use_of(&m, 0, 64, false);
        for (int i = 0; i < 300; i++) must(&f, gni_vk_dispatch(f.vk, p, use, 2, params, 12, 1, 1, 1));
        int total = 0, n;
        while ((n = gni_vk_profile_fetch(f.vk, e, 64)) > 0) {
            for (int i = 0; i < n; i++) {
                assert_string_equal(e[i].name, "selftest_map");
                assert_true(e[i].begin >= last && e[i].end >= e[i].begin);
                last = e[i].begin;
            }
            total += n;
        }
        assert_int_equal(total, 300);
        // The two clocks were read one after the other.
        assert_true(last + 1000000000u > before && last < gni_now_ns() + 1000000000u);
        assert_true(gni_vk_profile(f.vk, false));
    }
    gni_vk_free(f.vk, &m);
    close_mode(&f);
}

// ---- the pipeline cache

static long file_bytes(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    fseek(file, 0, SEEK_END);
    long n = ftell(file);
    fclose(file);
    return n;
}

static void note_warning(void *user, gn_log_level level, const char *text) {
    if (level == GN_LOG_WARNING) snprintf((char *)user, 512, "%s", text);
}

// A cache_dir that does not exist is made; one that cannot be is told, and nothing else fails.
static void test_cache_folder(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    static const char *const folders[] = {"made_by_test_cache", "none/such", "a_file"};
    char warning[512], path[512];
    remove("a_file");
    fclose(fopen("a_file", "wb"));
    for (int i = 0; i < 3; i++) {
        gn_options o = test_options();
        o.cache_dir = folders[i];
        o.log = note_warning;
        o.log_user = warning;
        warning[0] = 0;
        gn_context *g = test_open_with(&o);
        gn_array *a = gn_add_s(gn_ones(g, GN_F32, GN_SHAPE(5)), 1);
        expect_values(a, 2, 2, 2, 2, 2);
        const gni_vk *vk = (const gni_vk *)(const void *)g->gpu;
        snprintf(path, sizeof path, "%s", i == 0 ? vk->compiler.cache_path : "");
        assert_true(i == 0 || vk->compiler.cache_path == NULL);
        test_close(g);
        if (i == 0) {
            assert_string_equal(warning, "");
            assert_true(file_bytes(path) > 0);
            assert_int_equal(remove(path), 0);
            assert_int_equal(remove(folders[0]), 0);
        } else {
            assert_non_null(strstr(warning, folders[i]));
            assert_non_null(strstr(warning, "cannot be made"));
        }
    }
    remove("a_file");
}

static void test_cache(void **state) {
    (void)state;
    char path[512];
    if (!test_on_vulkan()) skip();
    for (int round = 0; round < 5; round++) {
        fixture f;
        if (!open_mode(&f, 0, 0, ".")) fail_msg("no device");
        if (round == 0) { // as if there had been none
            remove(f.vk->compiler.cache_path);
            f.vk->compiler.cache_bytes = 0;
        }
        if (round == 1 || round == 4) assert_true(f.vk->compiler.cache_bytes > 0);
        if (round == 2 || round == 3) assert_int_equal(f.vk->compiler.cache_bytes, 0);
        assert_non_null(map_pipeline(f.vk, 3, false, GNI_GPU_WAIT));
        snprintf(path, sizeof path, "%s", f.vk->compiler.cache_path);
        close_mode(&f);
        assert_true(file_bytes(path) > 0);
        FILE *file = NULL;
        if (round == 1) { // a damaged file is not given to the driver
            file = fopen(path, "r+b");
            fseek(file, -1, SEEK_END);
            fputc(77, file);
        }
        if (round == 2) { // nor one that is cut off
            file = fopen(path, "wb");
            fputs("gpunumC1", file);
        }
        if (file != NULL) fclose(file);
    }
    remove(path);
}

// ---- modules cut down

// Where spirv-val is, or NULL.
static const char *validator(void) {
    static char path[600];
    const char *root = getenv("GN_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/build/shader-tools/bin/spirv-val", root != NULL ? root : ".");
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    fclose(file);
    return path;
}

static bool has_instruction(const uint32_t *w, uint32_t n, uint32_t op, uint32_t operand) {
    for (uint32_t i = 5; i < n; i += w[i] >> 16)
        if ((w[i] & 0xffffu) == op && (operand == 0 || w[i + 1] == operand)) return true;
    return false;
}

static void check_words(const char *name, const uint32_t *w, uint32_t n) {
    char command[800];
    // bfloat16 is a type that spirv-val may not know.
    if (validator() == NULL || has_instruction(w, n, 17, 5116)) return;
    FILE *file = fopen("module.spv", "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(w, 4, n, file), n);
    fclose(file);
    snprintf(command, sizeof command, "%s --target-env vulkan1.3 module.spv", validator());
    if (system(command) != 0) fail_msg("%s: spirv-val", name);
    remove("module.spv");
}

// The words of module i in memory of exactly their size.
static uint32_t *copy_words(fixture *f, int i, uint32_t *n) {
    const gni_module *m = &gni_modules[i];
    uint32_t *w = (uint32_t *)malloc(m->words * 4u), *spare = (uint32_t *)malloc(m->words * 4u);
    assert_true(w != NULL && spare != NULL);
    assert_int_equal(gni_vk_module_words(f->vk, m, w, spare), VK_SUCCESS);
    free(spare);
    *n = m->words;
    return w;
}

// Every module with several values of its constants: understood, right, without specialisation constants
// and no larger, and nothing is left to do.
static void test_specialise(void **state) {
    (void)state;
    fixture f;
    start(&f, 0, 0);
    random_state = 11;
    for (int m = 0; m < GNI_MODULE_COUNT; m++)
        for (int k = 0; k < 4; k++) {
            uint32_t n, spec[GNI_GPU_MAX_SPEC], *w = copy_words(&f, m, &n);
            for (int i = 0; i < GNI_GPU_MAX_SPEC; i++)
                spec[i] = k == 0 ? 1 : k == 3 ? (uint32_t)(i < 3) : 1 + random_below(k == 1 ? 16 : 4);
            // Lengths of their arrays are quotients; of eigen the fourth is the workgroup's size.
            if (strncmp(gni_modules[m].name, "eigen", 5) == 0) {
                spec[0] = 8u << random_below(3);
                spec[1] = 1u << random_below(3);
                spec[3] = 64;
            }
            if (strncmp(gni_modules[m].name, "attend", 6) == 0) {
                spec[GNI_S_ATTEND_D] = spec[GNI_S_ATTEND_E] = 8u + 8u * random_below(8);
                spec[GNI_S_ATTEND_BLOCKS] = 1u + random_below(2);
                spec[GNI_S_ATTEND_KEYS] = 16u + 16u * random_below(4);
            }
            if (strncmp(gni_modules[m].name, "scan_", 5) == 0) {
                spec[GNI_S_SCAN_THREADS] = 64u << random_below(3);
                spec[GNI_S_SCAN_EACH] = 1u << random_below(4);
                spec[GNI_S_SCAN_LANES] = 8;
            }
            if (strncmp(gni_modules[m].name, "sweep", 5) == 0) {
                spec[GNI_S_SWEEP_EACH] = 1u + random_below(16);
                spec[GNI_S_SWEEP_THREADS] = 64u << random_below(4);
                spec[GNI_S_SWEEP_SUBGROUP] = 8u << random_below(3);
            }
            uint32_t left = gni_spv_specialise(f.g, w, n, spec, GNI_GPU_MAX_SPEC);
            if (left == 0 || left > n) fail_msg("%s: %u of %u words", gni_modules[m].name, (unsigned)left, (unsigned)n);
            for (uint32_t op = 48; op <= 51; op++)
                if (has_instruction(w, left, op, 0)) fail_msg("%s: instruction %u", gni_modules[m].name, (unsigned)op);
            if (k > 0) check_words(gni_modules[m].name, w, left);
            uint32_t again = gni_spv_specialise(f.g, w, left, spec, GNI_GPU_MAX_SPEC);
            assert_int_equal(again, left);
            free(w);
        }
    close_mode(&f);
}

// Everything on the device, by kernels that wait for no others: a CPU would interpret what comes a few times.
static gn_context *open_on_device(void) {
    gn_options o = test_options();
    o.backend = GN_BACKEND_VULKAN;
    o.placement = GN_PLACE_GPU;
    o.vulkan_flags = GN_VULKAN_NO_ASYNC_PIPELINES;
    if (!test_on_vulkan()) skip();
    gn_context *g = gn_open(&o);
    if (g == NULL) fail_msg("%s", gn_open_error());
    return g;
}

// Rows of odd lengths one beside the other, which begin in the middle of words.
static void join_rows(gn_context *g, gn_dtype t) {
    enum { ROWS = 37, ONE = 7, TWO = 13 };
    const size_t size = gn_dtype_size(t);
    uint8_t a[ROWS * ONE * 2], b[ROWS * TWO * 2], y[ROWS * (ONE + TWO) * 2];
    for (size_t i = 0; i < sizeof a; i++) a[i] = (uint8_t)(i * 7 % 101);
    for (size_t i = 0; i < sizeof b; i++) b[i] = (uint8_t)(i * 5 % 103);
    gn_array *in[2] = {gn_array_from(g, t, GN_SHAPE(ROWS, ONE), a), gn_array_from(g, t, GN_SHAPE(ROWS, TWO), b)};
    gn_array *z = gn_concat(in, 2, 1);
    assert_int_equal(gn_read(z, y, ROWS * (ONE + TWO) * size), GN_OK);
    for (size_t r = 0; r < ROWS; r++) {
        assert_memory_equal(y + r * (ONE + TWO) * size, a + r * ONE * size, ONE * size);
        assert_memory_equal(y + (r * (ONE + TWO) + ONE) * size, b + r * TWO * size, TWO * size);
    }
    gn_release(in[0]);
    gn_release(in[1]);
    gn_release(z);
}

// Copies of parts of arrays whose axes are in another order, by elements of every size: as words, by tiles, one by one.
static void test_moves(void **state) {
    (void)state;
    static const gn_dtype types[] = {GN_U8, GN_I16, GN_F32, GN_I64, GN_C128};
    static const int64_t extents[] = {1, 2, 7, 8, 16, 31, 33, 64, 65, 100};
    static uint8_t from[1 << 21], to[1 << 21];
    gn_context *g = open_on_device();
    random_state = 5;
    for (size_t i = 0; i < sizeof from; i++) from[i] = (uint8_t)random_below(256);
    for (int k = 0; k < 150; k++) {
        const size_t size = gn_dtype_size(types[k % 5]);
        gn_shape s = GN_SHAPE(1, 1, 1), part = s;
        int64_t first[3], step[3], at = 0;
        int order[3] = {0, 1, 2};
        for (int i = 0; i < 3; i++) s.dim[i] = extents[random_below(i == (int)random_below(3) ? 4 : 10)];
        if (s.dim[0] * s.dim[1] * s.dim[2] * (int64_t)size > (int64_t)sizeof from) continue;
        for (int i = 2; i > 0; i--) {
            const int other = (int)random_below((uint64_t)i + 1), was = order[i];
            order[i] = order[other];
            order[other] = was;
        }
        gn_scope_begin(g);
        gn_array *x = gn_permute_axes(gn_array_from(g, types[k % 5], s, from), order, 3);
        for (int i = 0; i < 3; i++) {
            const int64_t n = s.dim[order[i]];
            first[i] = random_below(3) == 0 ? random_below((uint64_t)n) : 0;
            part.dim[i] = random_below(3) == 0 ? 1 + random_below((uint64_t)(n - first[i])) : n - first[i];
            step[i] = 1;
            for (int j = order[i] + 1; j < 3; j++) step[i] *= s.dim[j];
            x = gn_slice(x, i, first[i], first[i] + part.dim[i], 1);
        }
        assert_int_equal(gn_read(gn_copy(x), to, (size_t)(part.dim[0] * part.dim[1] * part.dim[2]) * size), GN_OK);
        for (int64_t a = 0; a < part.dim[0]; a++)
            for (int64_t b = 0; b < part.dim[1]; b++)
                for (int64_t c = 0; c < part.dim[2]; c++, at++) {
                    const int64_t i = (first[0] + a) * step[0] + (first[1] + b) * step[1] + (first[2] + c) * step[2];
                    assert_memory_equal(to + (size_t)at * size, from + (size_t)i * size, size);
                }
        gn_scope_end(g);
    }
    test_close(g);
}

// On devices that store no bytes kernels do without the types, and come to the same by atomics.
static void test_without_narrow_stores(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        gn_context *g = open_on_device();
        if (k > 0) g->gpu->caps.narrow_stores = false;
        join_rows(g, GN_U8);
        join_rows(g, GN_I16);
        test_close(g);
    }
    fixture f;
    start(&f, 0, 0);
    f.vk->gpu.caps.narrow_stores = false;
    for (int m = 0; m < GNI_MODULE_COUNT; m++) {
        GNI_ZEROED(gni_gpu_kernel, kernel);
        uint32_t n, *w = copy_words(&f, m, &n), *out = (uint32_t *)malloc((n + GNI_VK_MODE_WORDS) * sizeof *out);
        const uint32_t count = gni_vk_copy_module(f.vk, w, n, &kernel, out);
        const uint32_t left = gni_spv_specialise(f.g, out, count, kernel.spec, 0);
        if (left == 0 || has_instruction(out, left, 17, 4448) || has_instruction(out, left, 17, 4433))
            fail_msg("%s: %u words", gni_modules[m].name, (unsigned)left);
        if (has_instruction(w, n, 17, 4448)) check_words(gni_modules[m].name, out, left);
        free(out);
        free(w);
    }
    close_mode(&f);
}

#ifndef GPUNUM_NO_THREADS

typedef struct reader {
    gni_vk *vk;
    int first; // the modules first, first + 4, ...
    uint32_t **words;
    bool ok;
} reader;

static void reader_main(void *arg) {
    reader *r = (reader *)arg;
    for (int i = r->first; i < GNI_MODULE_COUNT; i += 4) {
        uint32_t *w = (uint32_t *)malloc(gni_modules[i].words * 8u);
        r->ok = r->ok && w != NULL && gni_vk_module_words(r->vk, &gni_modules[i], w, w + gni_modules[i].words) == VK_SUCCESS;
        r->words[i] = w;
    }
}

// Threads that want modules of the same blocks at the same time get what one alone gets.
static void test_modules_on_threads(void **state) {
    (void)state;
    uint32_t *alone[GNI_MODULE_COUNT + 1], *words[GNI_MODULE_COUNT + 1], n;
    fixture f;
    start(&f, 0, 0);
    for (int i = 0; i < GNI_MODULE_COUNT; i++) alone[i] = copy_words(&f, i, &n);
    close_mode(&f);
    for (int round = 0; round < 3; round++) {
        gni_thread threads[4];
        reader readers[4];
        start(&f, 0, 0);
        for (int i = 0; i < 4; i++) {
            reader r = {f.vk, i, words, true};
            readers[i] = r;
            assert_true(gni_thread_start(&threads[i], reader_main, &readers[i]));
        }
        for (int i = 0; i < 4; i++) gni_thread_join(&threads[i]);
        for (int i = 0; i < 4; i++) assert_true(readers[i].ok);
        for (int i = 0; i < GNI_MODULE_COUNT; i++) {
            if (memcmp(alone[i], words[i], gni_modules[i].words * 4u) != 0) fail_msg("%s differs", gni_modules[i].name);
            free(words[i]);
        }
        close_mode(&f);
    }
    for (int i = 0; i < GNI_MODULE_COUNT; i++) free(alone[i]);
}

#endif

// No memory for a block, and its words the next time.
static void test_modules_without_memory(void **state) {
    (void)state;
    fixture f;
    start(&f, 0, 0);
    const gni_module *m = &gni_modules[GNI_MODULE_take];
    uint32_t *w = (uint32_t *)malloc(m->words * 8u), n;
    assert_non_null(w);
    test_heap.until_failure = 0;
    assert_int_equal(gni_vk_module_words(f.vk, m, w, w + m->words), VK_ERROR_OUT_OF_HOST_MEMORY);
    test_heap.until_failure = -1;
    free(w);
    w = copy_words(&f, GNI_MODULE_take, &n);
    assert_int_equal(w[0], 0x07230203);
    free(w);
    close_mode(&f);
}

// The FFT of 1024 points: mostly other radices.
static void test_specialise_leaves_out(void **state) {
    (void)state;
    static const uint32_t spec[7] = {16, 16, 4, 1, 1, 64, 0};
    fixture f;
    start(&f, 0, 0);
    uint32_t n, *w = copy_words(&f, GNI_MODULE_fft_two_64, &n);
    uint32_t left = gni_spv_specialise(f.g, w, n, spec, 7);
    assert_true(left > 0 && left < n / 2);
    check_words("fft_two_64", w, left);
    free(w);
    close_mode(&f);
}

// Damaged modules are refused or make some other module, and no memory leaves a module as it was.
static void test_specialise_refuses(void **state) {
    (void)state;
    static const int modules[] = {GNI_MODULE_selftest_map, GNI_MODULE_take, GNI_MODULE_random};
    static const uint32_t spec[4] = {1, 2, 3, 4};
    fixture f;
    start(&f, 0, 0);
    random_state = 5;
    for (int k = 0; k < 1500; k++) {
        uint32_t n, *w = copy_words(&f, modules[k % 3], &n), ids = w[3];
        for (uint32_t flips = random_below(4); flips > 0; flips--) {
            uint32_t i = 5 + random_below(n - 5);
            w[i] = random_below(2) ? random_below(ids) : w[i] ^ 1u << random_below(32);
        }
        if (random_below(3) == 0) n = 5 + random_below(n - 5);
        assert_true(gni_spv_specialise(f.g, w, n, spec, 4) <= n);
        free(w);
    }
    uint32_t n, *w = copy_words(&f, GNI_MODULE_take, &n), *before = copy_words(&f, GNI_MODULE_take, &n);
    test_heap.until_failure = 0;
    assert_int_equal(gni_spv_specialise(f.g, w, n, spec, 4), 0);
    test_heap.until_failure = -1;
    assert_memory_equal(w, before, n * 4);
    free(before);
    free(w);
    close_mode(&f);
}

// Which kernel a product of n x n matrices gets, as a GPU.
static const char *chosen(fixture *f, int64_t n) {
    gni_matmul m;
    gni_gpu_kind kind = f->vk->gpu.caps.kind;
    int64_t splits;
    memset(&m, 0, sizeof m);
    m.m = m.n = m.k = n;
    f->vk->gpu.caps.kind = GNI_GPU_DISCRETE;
    const gni_job_tile *t = gni_job_pick_tile(&f->vk->gpu, &m, 1, &splits);
    f->vk->gpu.caps.kind = kind;
    assert_true(splits >= 1);
    return gni_modules[t->module].name;
}

// Opens a device with this tuning file, whose first line is right unless `head` says otherwise, and tells whether
// it was used. "" for `text`: no file.
static bool tuned(const char *head, const char *text, const char *expected) {
    fixture f;
    char path[512], line[128];
    if (!open_mode(&f, 0, 0, NULL)) fail_msg("no device");
    gni_vk_tuning_path(f.vk, ".", path, sizeof path);
    gni_vk_tuning_head(f.vk, line, sizeof line);
    close_mode(&f);
    if (text[0] != 0) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%s%s", head != NULL ? head : line, text);
        fclose(file);
    }
    if (!open_mode(&f, 0, 0, ".")) fail_msg("no device");
    bool used = f.vk->gpu.rates != NULL;
    if (expected != NULL) assert_string_equal(chosen(&f, 1024), expected);
    close_mode(&f);
    remove(path);
    return used;
}

static void test_tuning(void **state) {
    (void)state;
    static const char good[] = "matmul_64x64 1000000 1000000 1\nmatmul_32x32 90 50 8\nend 2\n";
    static const char *const bad[] = {
        "matmul_64x64 1000000 1000000 1\n",                          // cut off
        "matmul_64x64 1000000 1000000 1\nend 2\n",                   // a line is missing
        "matmul_64x64 1000000 1000000 1\nend 1\n\n",                 // something after the end
        "matmul_64x64 1000000 1000000 1\nend 1",                     // half a line
        "matmul_64x64 1000000 1000000\nend 1\n",                     // a number is missing
        "matmul_64x64 1000000 1000000 1 1\nend 1\n",                 // one too many
        "matmul_64x64 1000000 1000000 0\nend 1\n",                   // out of range
        "matmul_64x64 1000001 1000000 1\nend 1\n",
        "matmul_64x64 1000000 -1 1\nend 1\n",
        "matmul_64x64 99999999999999999999 1 1\nend 1\n",
        "matmul_64x63 1000000 1000000 1\nend 1\n",                   // no such kernel
        "matmul_64x64 1 1 1\nmatmul_64x64 1 1 1\nend 2\n",           // twice
        "\177ELF\1\2\3", "end\n", "\n",
    };
    if (!test_on_vulkan()) skip();
    fixture f;
    char usual[64];
    if (!open_mode(&f, 0, 0, NULL)) fail_msg("no device");
    snprintf(usual, sizeof usual, "%s", chosen(&f, 1024));
    close_mode(&f);
    assert_string_not_equal(usual, "matmul_64x64");
    assert_false(tuned(NULL, "", usual));
    assert_true(tuned(NULL, good, "matmul_64x64"));
    assert_false(tuned("gpunum tuning 1 0000 0000 00000000\n", good, usual)); // of another device
    assert_false(tuned("gpunum tuning 2 ", good, usual));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (tuned(NULL, bad[i], usual)) fail_msg("bad file %d was used", (int)i);
}

// ---- failures

// Some of everything. False when something failed.
static bool some_work(gni_vk *vk) {
    static uint32_t data[60000];
    gni_gpu_mem m[3];
    gni_gpu_ticket ticket;
    uint32_t params[3] = {60000, 2, 1};
    bool ok = true;
    memset(m, 0, sizeof m);
    memset(&ticket, 0, sizeof ticket);
    for (uint32_t i = 0; i < 60000; i++) data[i] = i;
    for (int i = 0; i < 3; i++) ok = ok && gni_vk_alloc(vk, sizeof data, &m[i]);
    ok = ok && gni_vk_upload(vk, &m[0], 0, data, sizeof data) && gni_vk_upload(vk, &m[1], 0, data, sizeof data);
    for (uint32_t round = 0; ok && round < 20; round++) {
        gni_vk_pipeline *p = map_pipeline(vk, round % 3, false, GNI_GPU_ASYNC);
        if (p == NULL) p = map_pipeline(vk, round % 3, false, GNI_GPU_WAIT);
        gni_gpu_use use[3];
        use[0] = use_of(&m[2], 0, 60000, true);
        use[1] = use_of(&m[0], 0, 60000, false);
        use[2] = use_of(&m[1], 0, 60000, false);
        ok = p != NULL && gni_vk_dispatch(vk, p, use, 3, params, 12, 100, 1, 1);
    }
    ok = ok && gni_vk_copy(vk, &m[1], 0, &m[2], 0, sizeof data);
    ok = ok && gni_vk_upload(vk, &m[1], 0, data, sizeof data);
    ok = ok && gni_vk_download_begin(vk, &m[2], 0, sizeof data, &ticket) && gni_vk_ticket_ready(vk, &ticket, true);
    if (ok)
        for (uint32_t i = 0; i < 60000; i++) // the last factor was 1
            if (((const uint32_t *)ticket.data)[i] != 2 * i + 1) fail_msg("wrong value at %u", (unsigned)i);
    gni_vk_ticket_release(vk, &ticket);
    for (int i = 0; i < 3; i++) gni_vk_free(vk, &m[i]);
    return ok;
}

static void test_allocation_failures(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    for (int k = 0; k < 2; k++) {
        bool failed = true;
        for (int64_t n = 0; failed; n++) {
            gn_options o = test_options();
            o.backend = GN_BACKEND_CPU;
            gn_context *g = test_open_with(&o);
            o.backend = GN_BACKEND_VULKAN;
            o.vulkan_flags = modes[k];
            o.cache_dir = ".";
            char why[256];
            test_heap.until_failure = n;
            gni_vk *vk = gni_vk_open(g, &o, why, sizeof why);
            bool ok = vk != NULL && some_work(vk);
            gni_vk_close(vk);
            failed = test_heap.until_failure == 0;
            test_heap.until_failure = -1;
            if (!failed && !ok) fail_msg("%s", gn_error(g));
            if (gn_status_get(g) != GN_OK && gn_status_get(g) != GN_ERROR_OUT_OF_MEMORY) fail_msg("%s", gn_error(g));
            test_close(g);
        }
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL lost_submit(VkQueue q, uint32_t n, const VkSubmitInfo *info, VkFence fence) {
    (void)q, (void)n, (void)info, (void)fence;
    return VK_ERROR_DEVICE_LOST;
}

static void test_device_lost(void **state) {
    (void)state;
    for (int k = 0; k < MODES; k++) {
        fixture f;
        start(&f, modes[k], 0);
        must(&f, some_work(f.vk));
        gni_gpu_mem m;
        gni_gpu_ticket ticket;
        uint32_t word = 1;
        assert_true(gni_vk_alloc(f.vk, 4, &m));
        must(&f, gni_vk_download_begin(f.vk, &m, 0, 4, &ticket));
        f.vk->f.vkQueueSubmit = lost_submit;
        assert_false(gni_vk_fill(f.vk, &m, 0, 4, 1) && gni_vk_wait(f.vk));
        assert_int_equal(gn_status_get(f.g), GN_ERROR_DEVICE_LOST);
        assert_non_null(strstr(gn_error(f.g), "VK_ERROR_DEVICE_LOST"));
        assert_true(f.vk->gpu.lost);
        // Nothing waits for ever, everything reports.
        assert_false(gni_vk_ticket_ready(f.vk, &ticket, true));
        assert_false(gni_vk_ticket_ready(f.vk, &ticket, false));
        assert_false(gni_vk_download(f.vk, &m, 0, &word, 4));
        assert_false(gni_vk_upload(f.vk, &m, 0, &word, 4));
        assert_false(gni_vk_wait(f.vk));
        assert_false(some_work(f.vk));
        gni_vk_trim(f.vk);
        gni_vk_ticket_release(f.vk, &ticket);
        gni_vk_free(f.vk, &m);
        gni_vk_close(f.vk);
        gn_error_clear(f.g);
        test_close(f.g);
    }
}

// Scans in one pass: where tiles do not say what they come to others find it out, and what was posted before is not taken for
// theirs, also when the numbers of scans begin again. The same bits always.
static void test_scans_that_wait(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    enum { N = 300007 };
    static const gn_dtype types[] = {GN_F32, GN_F64, GN_I64, GN_C64, GN_C128};
    static float x[N];
    static double have[2 * N], want[2 * N];
    gn_context *g = test_open();
    for (int i = 0; i < N; i++) x[i] = (float)(i * 37 % 1001) - 500.0f;
    for (int k = 0; k < 5; k++)
        GN_SCOPE(g) {
            const gn_dtype t = types[k];
            const bool pairs = t == GN_C64 || t == GN_C128;
            gn_array *a = gn_to(gn_array_from(g, GN_F32, GN_SHAPE(N), x), GN_DEVICE_GPU);
            a = gn_eval(gn_cast(pairs ? gn_complex(a, gn_neg(a)) : a, t));
            gn_array *first = gn_cumsum(a, 0), *of = gn_cast(pairs ? gn_sub(gn_real(first), gn_imag(first)) : first, GN_F64);
            const size_t bytes = N * gn_dtype_size(t);
            assert_int_equal(gn_read(of, have, N * sizeof *have), GN_OK);
            double sum = 0;
            for (int i = 0; i < N; i++) {
                sum += (double)x[i];
                assert_true(have[i] == (pairs ? 2.0 : 1.0) * sum); // whole numbers below 2^24
            }
            assert_int_equal(gn_read(first, want, bytes), GN_OK);
            gni_gpu_jobs *ops = gni_job_state(g->gpu);
            if (ops->scan_epoch > 0) ops->scan_epoch = 0xfffd;
            for (int i = 0; i < 6; i++) {
                ops->scan_stall = i % 2 == 1;
                assert_int_equal(gn_read(gn_cumsum(a, 0), have, bytes), GN_OK);
                assert_memory_equal(have, want, bytes);
            }
            ops->scan_stall = false;
        }
    test_close(g);
}

// Of places in one array: the largest value first, of equal ones that in front.
static int by_value_down(const void *a, const void *b) {
    const float *x = *(const float *const *)a, *y = *(const float *const *)b;
    return *x != *y ? (*x < *y ? 1 : -1) : x < y ? -1 : 1;
}

// The largest elements of long rows, when as many were caught as should be, too few and too many.
static void test_top_without_luck(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    enum { ROWS = 2, N = 30011, TAKE = 100 };
    static const uint32_t ranks[] = {0, 1, 200};
    static float x[ROWS][N], top[ROWS][TAKE];
    static const float *order[N];
    static int64_t place[ROWS][TAKE];
    gn_context *g = test_open();
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < N; i++) x[r][i] = (float)((int64_t)i * i * 37 % (r == 0 ? 1000003 : 7)); // few that are alike, and many
    for (int k = 0; k < 3; k++)
        GN_SCOPE(g) {
            gn_array *a = gn_to(gn_array_from(g, GN_F32, GN_SHAPE(ROWS, N), x), GN_DEVICE_GPU), *at;
            gni_gpu_jobs *ops = gni_job_state(g->gpu);
            ops->top_rank = ranks[k];
            gn_array *y = gn_topk(a, TAKE, 1, &at);
            assert_int_equal(gn_read(y, top, sizeof top), GN_OK);
            assert_int_equal(gn_read(at, place, sizeof place), GN_OK);
            ops->top_rank = 0;
            for (int r = 0; r < ROWS; r++) {
                for (int i = 0; i < N; i++) order[i] = &x[r][i];
                qsort(order, N, sizeof *order, by_value_down);
                for (int i = 0; i < TAKE; i++) {
                    assert_int_equal(place[r][i], order[i] - x[r]);
                    assert_true(top[r][i] == *order[i]);
                }
            }
        }
    test_close(g);
}

// So long that a workgroup which finds out about all tiles in front of it goes beyond the rounds that old lavapipe's loops have.
static void test_long_scan(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    enum { N = 2400256 };
    int64_t *have = (int64_t *)malloc(N * sizeof *have), sum = 0;
    gn_context *g = test_open();
    assert_non_null(have);
    GN_SCOPE(g) {
        gn_array *a = gn_to(gn_arange(g, GN_I64, 0, N, 1), GN_DEVICE_GPU);
        assert_int_equal(gn_read(gn_cumsum(a, 0), have, N * sizeof *have), GN_OK);
    }
    for (int i = 0; i < N; i++) {
        sum += i;
        assert_true(have[i] == sum);
    }
    free(have);
    test_close(g);
}

// Sums where some lanes go through their elements again, for NaN, and others do not, in the kernel that interprets.
static void test_sums_again(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    enum { MOST = 33 * 5 };
    static const int shapes[][2] = {{4, 3}, {5, 4}, {7, 3}, {9, 2}, {33, 5}};
    gn_options o = test_options();
    o.vulkan_flags |= GN_VULKAN_NO_SPECIALIZATION;
    gn_context *g = gn_open(&o);
    assert_non_null(g);
    uint32_t r = 1;
    for (int round = 0; round < 20; round++)
        GN_SCOPE(g) {
            const int rows = shapes[round % 5][0], columns = shapes[round % 5][1];
            const gn_dtype t = round / 5 % 2 ? GN_F64 : GN_F32;
            double x[MOST], less[5], want[5], have[5];
            for (int k = 0; k < rows * columns; k++) {
                r = r * 1664525u + 1013904223u;
                x[k] = r >> 24 < 60 ? NAN : (double)(r >> 16 & 7) - 3.0;
            }
            for (int j = 0; j < columns; j++) {
                less[j] = j - 1.0, want[j] = 0;
                for (int i = 0; i < rows; i++) want[j] += (x[i * columns + j] - less[j]) * (x[i * columns + j] - less[j]);
            }
            gn_array *a = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(rows, columns), x), t);
            gn_array *b = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(1, columns), less), t);
            gn_array *y = gn_sum(gn_square(gn_sub(a, b)), 0);
            assert_int_equal(gn_read(gn_cast(y, GN_F64), have, (size_t)columns * 8), GN_OK);
            for (int j = 0; j < columns; j++)
                if (have[j] != want[j] && !(isnan(have[j]) && isnan(want[j])))
                    fail_msg("round %d, column %d: %g, not %g", round, j, have[j], want[j]);
        }
    test_close(g);
}

static void test_list(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    gn_device_info list[8];
    int n = gni_vk_list(NULL, list, 8);
    assert_true(n >= 1);
    assert_int_equal(gni_vk_list(NULL, NULL, 0), n);
    for (int i = 0; i < n && i < 8; i++) {
        assert_true(list[i].name[0] != 0);
        assert_true(list[i].usable == (list[i].why[0] == 0));
        if (list[i].usable) assert_true(list[i].memory > 0 && list[i].subgroup > 0);
    }
}

#if defined(__linux__) && !defined(GPUNUM_NO_THREADS)

// What a program does that returns from main without gn_close, while kernels are being compiled.
static int leave_early(void) {
    gn_options o = test_options();
    o.placement = GN_PLACE_GPU;
    gn_context *g = gn_open(&o);
    if (g == NULL) return 1;
    gn_array *a = gn_normal(g, GN_F32, GN_SHAPE(64, 64), 0, 1), *b = gn_matmul(gn_sin(a), a);
    gn_array *all[3] = {b, gn_sum(gn_exp(b), GN_AXES(1)), gn_sort(a, GN_AXES(1), false)};
    return gn_eval_all(all, 3) == GN_OK ? 0 : 2;
}

// This program as it was started, but for the environment.
static void test_leaves_early(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    extern char **environ;
    char mark[] = "GN_TEST_LEAVES_EARLY=1", *argv[64], *variables[512] = {mark};
    size_t size = 0;
    char *line = (char *)test_read_file("/proc/self/cmdline", &size);
    int n = 0;
    for (size_t i = 0; i < size && n < 63; i += strlen(line + i) + 1) argv[n++] = line + i;
    argv[n] = NULL;
    for (n = 0; n < 510 && environ[n] != NULL; n++) variables[n + 1] = environ[n];
    for (int round = 0; round < 3; round++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            execve("/proc/self/exe", argv, variables);
            _exit(98);
        }
        int status = -1;
        assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
        assert_int_equal(status, 0);
    }
    free(line);
}

#else
static int leave_early(void) { return 0; }
static void test_leaves_early(void **state) { (void)state; }
#endif

int main(void) {
    if (getenv("GN_TEST_LEAVES_EARLY") != NULL) return leave_early();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaves_early),
        cmocka_unit_test(test_list),          cmocka_unit_test(test_random_work), cmocka_unit_test(test_scans_that_wait),
        cmocka_unit_test(test_long_scan),
        cmocka_unit_test(test_sums_again),
        cmocka_unit_test(test_top_without_luck),
        cmocka_unit_test(test_large_buffers), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_pool_ranges),   cmocka_unit_test(test_pool_limits),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_recording), cmocka_unit_test(test_recorded_writes),
        cmocka_unit_test(test_wrap_on_cpu),   cmocka_unit_test(test_wrap_parts_of_words),
        cmocka_unit_test(test_profile),       cmocka_unit_test(test_cache),
        cmocka_unit_test(test_cache_folder),
        cmocka_unit_test(test_specialise),    cmocka_unit_test(test_specialise_leaves_out),
        cmocka_unit_test(test_specialise_refuses), cmocka_unit_test(test_without_narrow_stores),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_modules_without_memory),
#ifndef GPUNUM_NO_THREADS
        cmocka_unit_test(test_modules_on_threads),
#endif
        cmocka_unit_test(test_tuning),
        cmocka_unit_test(test_allocation_failures), cmocka_unit_test(test_device_lost),
    };
    return test_run(tests);
}

#endif
