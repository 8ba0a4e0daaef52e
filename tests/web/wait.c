// A program that waits for the GPU where a page's program cannot without JSPI: check_pages.mjs runs it.
#include "gpunum.h"
#include <stdio.h>
#include <string.h>

int main(void) {
    gn_options o;
    float v[12], sum = 0;
    memset(&o, 0, sizeof o);
    o.backend = GN_BACKEND_WEBGPU;
    o.placement = GN_PLACE_GPU;
    gn_context *g = gn_open(&o);
    if (g == NULL) {
        puts(gn_open_error());
        return 1;
    }
    gn_scope_begin(g);
    gn_array *a = gn_reshape(gn_arange(g, GN_F32, 0, 12, 1), GN_SHAPE(3, 4)), *y = gn_eval(gn_add_s(gn_mul(a, a), 1));
    const double item = gn_item(gn_slice(gn_ravel(y), 0, 11, 12, 1));
    if (gn_sync(g) == GN_OK && gn_read(y, v, sizeof v) == GN_OK)
        for (int i = 0; i < 12; i++) sum += v[i];
    gn_read_async(gn_add_s(y, 1), v, sizeof v, NULL, NULL); // refused in words
    const bool refused = gn_status_get(g) == GN_ERROR_ARGUMENT;
    gn_error_clear(g);
    // Where it has to wait inside: the shape of the one is a value, the other has no kernel.
    const int64_t found = gn_dim(gn_compress(gn_gt_s(gn_ravel(y), 50), gn_ravel(y), 0), 0);
    const double trace = gn_item(gn_sum(gn_eigvalsh(gn_matmul(a, gn_transpose(a))), GN_ALL));
    gn_array *bad = gn_take(a, gn_full(g, GN_I32, GN_SHAPE(1), 7), 0);
    const bool seen = gn_read(bad, v, 4 * sizeof *v) == GN_ERROR_ARGUMENT;
    gn_error_clear(g);
    const char *where = strstr(gn_explain(y), "on the GPU") != NULL ? "GPU" : "CPU";
    printf("%s: %g %g %d %d %.1f %d\n", where, item, (double)sum, refused, (int)found, trace, seen);
    gn_scope_end(g);
    gn_close(g);
    return 0;
}
