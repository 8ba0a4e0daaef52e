// Worker threads in WebAssembly (-pthread): as many as there are, and the same bits with them as without.
#include "gpunum.h"
#include <stdio.h>
#include <string.h>

enum { N = 300 };
static float one[N * N], many[N * N];

// What is cut among threads: a product, a sort, a fused chain.
static bool compute(int threads, float *out) {
    gn_options o;
    memset(&o, 0, sizeof o);
    o.backend = GN_BACKEND_CPU;
    o.threads = threads;
    o.seed = 7;
    gn_context *g = gn_open(&o);
    if (g == NULL) return false;
    gn_device_info info;
    gn_device_get(g, &info);
    bool ok = info.threads == threads;
    GN_SCOPE(g) {
        gn_array *x = gn_randn(g, GN_F32, GN_SHAPE(N, N)), *y = gn_sort(gn_matmul(x, x), 1, false);
        ok = ok && gn_read(gn_add(gn_mul(gn_sin(y), x), gn_softmax(y, 1)), out, sizeof one) == GN_OK;
    }
    gn_close(g);
    return ok;
}

int main(void) {
    const bool ok = compute(1, one) && compute(4, many) && memcmp(one, many, sizeof one) == 0;
    for (int i = 0; i < 20; i++) // threads end with their context
        if (!compute(4, many)) return 1;
    puts(ok ? "the same" : "differs");
    return !ok;
}
