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

static TEST_MAYBE_UNUSED bool is_complex(gn_array *a) { return gn_dtype_of(a) == GN_C64 || gn_dtype_of(a) == GN_C128; }

// The transpose, of complex ones conjugated.
static TEST_MAYBE_UNUSED gn_array *turned(gn_array *a) {
    return is_complex(a) ? gn_conj(gn_swap_axes(a, -1, -2)) : gn_swap_axes(a, -1, -2);
}

static TEST_MAYBE_UNUSED gn_array *normal(gn_context *g, gn_dtype t, gn_shape s) {
    const gn_dtype part = t == GN_C64 ? GN_F32 : GN_F64;
    if (t != GN_C64 && t != GN_C128) return gn_randn(g, t, s);
    gn_array *re = gn_randn(g, part, s);
    return gn_complex(re, gn_randn(g, part, s));
}

static TEST_MAYBE_UNUSED gn_array *wide(gn_array *a) { return gn_cast(a, GN_F64); }

static TEST_MAYBE_UNUSED double eps_of(gn_dtype t) { return t == GN_F64 ? 2.3e-16 : 1.2e-7; }

// lavapipe takes minutes to compile the kernels for 64 rows of float64 and for 128 rows.
static TEST_MAYBE_UNUSED bool is_patient(gn_context *g) { return !test_on_software(g); }

#endif
