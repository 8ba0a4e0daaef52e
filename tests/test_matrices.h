// What the tests of matrix decompositions share.
#ifndef GN_TEST_MATRICES_H
#define GN_TEST_MATRICES_H

#include "test.h"

static TEST_MAYBE_UNUSED bool is_on_gpu(gn_array *a) {
    return strstr(gn_explain(a), "computed on the GPU") != NULL;
}

static TEST_MAYBE_UNUSED double largest(gn_array *a) {
    return gn_size(a) == 0 ? 0.0 : gn_item(gn_max(gn_abs(a), GN_ALL));
}

static TEST_MAYBE_UNUSED gn_array *turned(gn_array *a) { return gn_swap_axes(a, -1, -2); }

static TEST_MAYBE_UNUSED gn_array *wide(gn_array *a) { return gn_cast(a, GN_F64); }

static TEST_MAYBE_UNUSED double eps_of(gn_dtype t) { return t == GN_F64 ? 2.3e-16 : 1.2e-7; }

// A CPU that plays GPU takes minutes to compile the kernels for 64 rows of float64 and for 128 rows.
static TEST_MAYBE_UNUSED bool is_patient(gn_context *g) {
    gn_device_info info;
    gn_device_get(g, &info);
    return strstr(info.name, "llvmpipe") == NULL;
}

#endif
