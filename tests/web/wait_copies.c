// Waits for a device in node, where copies.js stands for one: with JSPI and with Asyncify.
#include "gpunum.h"
#include <stdio.h>
#include <string.h>

int main(void) {
    gn_options o;
    float v[1000], sum = 0, last = 0;
    memset(&o, 0, sizeof o);
    o.backend = GN_BACKEND_WEBGPU;
    o.placement = GN_PLACE_GPU;
    gn_context *g = gn_open(&o); // waits for the adapter and for the device
    if (g == NULL) {
        puts(gn_open_error());
        return 1;
    }
    gn_scope_begin(g);
    for (int i = 0; i < 1000; i++) v[i] = (float)i;
    gn_array *a = gn_to(gn_array_from(g, GN_F32, GN_SHAPE(1000), v), GN_DEVICE_GPU), *zero = gn_eval(gn_zeros(g, GN_F32, GN_SHAPE(1000)));
    const bool there = strstr(gn_explain(a), "on the GPU") != NULL && strstr(gn_explain(zero), "on the GPU") != NULL;
    memset(v, 1, sizeof v);
    const bool read = gn_read(zero, v, sizeof v) == GN_OK;
    for (int i = 0; i < 1000; i++) sum += v[i];
    const double item = gn_item(gn_slice(zero, 0, 999, 1000, 1));
    const bool synced = gn_sync(g) == GN_OK, again = gn_read(a, v, sizeof v) == GN_OK;
    last = v[999];
    gn_scope_end(g);
    gn_close(g);
    printf("%d %d %g %g %d %d %g\n", there, read, (double)sum, item, synced, again, (double)last);
    return 0;
}
