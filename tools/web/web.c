// The C side of gpunum.js: what needs a struct or a function pointer.
#include <emscripten.h>
#include <stdio.h>
#include <string.h>

#include "gpunum.h"

EMSCRIPTEN_KEEPALIVE gn_context *gn_web_open(double seed, int threads) {
    gn_options o;
    memset(&o, 0, sizeof o);
    o.seed = (uint64_t)seed;
    o.threads = threads;
    return gn_open(&o);
}

#ifdef GPUNUM_USE_WEBGPU
EM_JS(void, gn_web_opened, (void *user, gn_context *g), {
    Module["gnOpened"](g);
})
// A placement of -1 leaves to the CPU what is done there before a GPU has heard of it, where its operands are.
EMSCRIPTEN_KEEPALIVE void gn_web_open_gpu(double seed, int placement) {
    const gn_thresholds little = {1001, 1001, 32768, 1001, 1001, 1001, 0};
    gn_options o;
    memset(&o, 0, sizeof o);
    o.seed = (uint64_t)seed;
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
    return field == 0 ? (double)s.arrays : (double)s.host_used;
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
