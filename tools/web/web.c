// The C side of gpunum.js: what needs a struct or a function pointer.
#include <emscripten.h>
#include <stdio.h>
#include <string.h>

#include "gpunum.h"
#include "layout.h" // of make_js.py

// `log` is a gn_log_level, GN_LOG_DEFAULT: none.
static gn_options gn_web_options(uint64_t seed, int log) {
    gn_options o;
    memset(&o, 0, sizeof o);
    o.seed = seed;
    o.log = log != GN_LOG_DEFAULT ? gn_log_stderr : NULL;
    o.log_level = (gn_log_level)log;
    return o;
}
EMSCRIPTEN_KEEPALIVE gn_context *gn_web_open(uint64_t seed, int log, int threads) {
    gn_options o = gn_web_options(seed, log);
    o.threads = threads;
    return gn_open(&o);
}

#ifdef GPUNUM_USE_WEBGPU
EM_JS(void, gn_web_opened, (void *user, gn_context *g), {
    Module["gnOpened"](g);
})
// A placement of -1 leaves to the CPU what is done there before a GPU has heard of it, where its operands are.
EMSCRIPTEN_KEEPALIVE void gn_web_open_gpu(uint64_t seed, int log, int placement) {
    const gn_thresholds little = {1001, 1001, 32768, 1001, 1001, 1001, 0};
    gn_options o = gn_web_options(seed, log);
    o.backend = GN_BACKEND_WEBGPU;
    if (placement < 0) o.thresholds = little;
    else o.placement = (gn_placement)placement;
    gn_open_async(&o, gn_web_opened, NULL);
}
#endif

// Field 0: its name, 1: why there is no GPU.
EMSCRIPTEN_KEEPALIVE const char *gn_web_device(const gn_context *g, int field) {
    static char text[512];
    gn_device_info info;
    gn_device_get(g, &info);
    snprintf(text, sizeof text, "%s", field == 0 ? info.name : info.why);
    return text;
}
// Field 0: the backend, 1: threads of the CPU.
EMSCRIPTEN_KEEPALIVE int gn_web_number(const gn_context *g, int field) {
    gn_device_info info;
    gn_device_get(g, &info);
    return field == 0 ? (int)info.backend : info.threads;
}

EMSCRIPTEN_KEEPALIVE double gn_web_memory(gn_context *g, int field) {
    gn_memory_stats s;
    gn_memory_get(g, &s);
    return (double)(field == 0 ? s.arrays : field == 1 ? s.host_used : s.device_used);
}

// state[0] becomes 1 when the data is there, state[1] the status.
static void gn_web_done(void *user, gn_status status) {
    int *state = (int *)user;
    state[0] = 1;
    state[1] = (int)status;
}
EMSCRIPTEN_KEEPALIVE void gn_web_read(gn_array *a, void *dst, size_t bytes, int *state) {
    state[0] = state[1] = 0;
    gn_read_async(a, dst, bytes, gn_web_done, state);
}

// Samples are the rows of the arrays. Batches are made when they are asked for: a page's worker does not start while it waits.
EMSCRIPTEN_KEEPALIVE gn_loader *gn_web_loader(gn_context *g, gn_array *const *arrays, int count, int64_t batch, bool shuffle,
                                              bool drop_last, uint64_t seed) {
    gn_loader_field fields[32];
    gn_loader_options o;
    memset(&o, 0, sizeof o);
    memset(fields, 0, sizeof fields);
    for (int i = 0; i < count && i < 32; i++) fields[i].array = arrays[i];
    o.batch = batch;
    o.shuffle = shuffle;
    o.drop_last = drop_last;
    o.seed = seed;
    o.prefetch = -1;
    return gn_loader_new(g, fields, count, gn_dim(arrays[0], 0), &o);
}

// ---- functions of JavaScript, by number. A record that has one keeps an array with it, whose end lets go of the function.

EM_JS(gn_array *, gn_web_call, (int number, gn_array *const *inputs, int count), {
    return Module["gnCall"](number, inputs, count);
})
EM_JS(void, gn_web_derive, (int number, gn_array *const *inputs, int count, gn_array *out, gn_array *gy, gn_array **gx), {
    Module["gnDerive"](number, inputs, count, out, gy, gx);
})
EM_JS(void, gn_web_forget, (int number), {
    Module["gnForget"](number);
})

static gn_array *gn_web_function(gn_context *g, gn_array *const *in, int count, void *user) {
    (void)g;
    return gn_web_call((int)(intptr_t)user, in, count);
}
static gn_array *gn_web_forward(gn_context *g, gn_array *const *in, int count, void *user) {
    return gn_web_function(g, in, count - 1, user);
}
static void gn_web_backward(gn_context *g, gn_array *const *in, int count, gn_array *out, gn_array *gy, gn_array **gx,
                            void *user) {
    (void)g;
    gn_web_derive((int)(intptr_t)user, in, count - 1, out, gy, gx);
}
static void gn_web_end(void *data, void *user) {
    (void)data;
    gn_web_forget((int)(intptr_t)user);
}

// `in` has room for one more. `derived`: by a function of its own, else a checkpoint.
EMSCRIPTEN_KEEPALIVE gn_array *gn_web_custom(gn_context *g, gn_array **in, int count, int number, bool derived) {
    static unsigned char nothing;
    void *user = (void *)(intptr_t)number;
    in[count] = gn_array_wrap(g, GN_U8, gn_shape_from(0, NULL), &nothing, gn_web_end, user);
    if (in[count] == NULL) gn_web_forget(number);
    gn_array *y = derived ? gn_custom(gn_web_forward, gn_web_backward, in, count + 1, user) :
                            gn_checkpoint(gn_web_forward, in, count + 1, user);
    gn_release(in[count]);
    return y;
}
EMSCRIPTEN_KEEPALIVE double gn_web_gradcheck(gn_array *const *in, int count, double step, int number) {
    return gn_gradcheck(gn_web_function, in, count, step, (void *)(intptr_t)number);
}
