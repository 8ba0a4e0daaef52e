// What the tests of matrix decompositions and of programs around products share.
#ifndef GN_TEST_MATRICES_H
#define GN_TEST_MATRICES_H

#include "test.h"

static TEST_MAYBE_UNUSED bool is_on_gpu(gn_array *a) {
    return strstr(gn_explain(a), "computed on the GPU") != NULL;
}

// Residuals are computed on the CPU where the device is none: lavapipe takes half a second to compile each of the sums
// over products that they are, and half of what it compiled for these tests were those.
static TEST_MAYBE_UNUSED gn_context *test_residual_context;
static void close_residuals(void) { gn_close(test_residual_context); }

static TEST_MAYBE_UNUSED gn_context *residuals(gn_context *g) {
    if (!test_on_vulkan() || !test_on_software(g)) return g;
    if (test_residual_context == NULL) {
        gn_options o = test_options();
        o.backend = GN_BACKEND_CPU;
        o.placement = GN_PLACE_AUTO;
        memset(&o.allocator, 0, sizeof o.allocator); // what it holds is nobody's leak
        test_residual_context = gn_open(&o);
        assert_non_null(test_residual_context);
        assert_int_equal(atexit(close_residuals), 0);
    }
    return test_residual_context;
}

// gn_gradcheck, which evaluates fn twice for each element. Where the device is lavapipe the CPU does that, and the gradients
// of the device are compared with those.
static TEST_MAYBE_UNUSED double gradients_apart(gn_context *g, gn_function fn, gn_array *const *x, int count, double step, void *user) {
    gn_context *cpu = residuals(g);
    gn_array *y[2], *have[2] = {NULL, NULL}, *want[2] = {NULL, NULL};
    if (cpu == g) return gn_gradcheck(fn, x, count, step, user);
    gn_scope_begin(cpu);
    for (int i = 0; i < count; i++) y[i] = gn_requires_grad(brought(cpu, x[i]), true);
    double error = gn_gradcheck(fn, y, count, step, user);
    bool ok = gn_gradients(fn(g, x, count, user), x, count, false, have) == GN_OK;
    ok = ok && gn_gradients(fn(cpu, y, count, user), y, count, false, want) == GN_OK;
    for (int i = 0; i < count && ok; i++) {
        gn_array *d = gn_div(gn_abs(gn_sub(brought(cpu, have[i]), want[i])), gn_maximum_s(gn_abs(want[i]), 1.0));
        const double most = gn_item(gn_max(d, GN_ALL));
        if (!(most <= error)) error = most;
    }
    gn_scope_end(cpu);
    return ok ? error : (double)NAN;
}

static TEST_MAYBE_UNUSED double largest(gn_array *a) {
    if (gn_size(a) == 0) return 0.0;
    gn_context *g = residuals(gn_context_of(a));
    gn_scope_begin(g);
    const double most = gn_item(gn_max(gn_abs(brought(g, a)), GN_ALL));
    gn_scope_end(g);
    return most;
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

// In float64, where residuals are computed.
static TEST_MAYBE_UNUSED gn_array *wide(gn_array *a) {
    return gn_cast(brought(residuals(gn_context_of(a)), a), GN_F64);
}

// The largest of their differences.
static TEST_MAYBE_UNUSED double differ_by(gn_array *a, gn_array *b) {
    gn_context *g = residuals(gn_context_of(a));
    gn_scope_begin(g);
    const double most = largest(gn_sub(wide(a), wide(b)));
    gn_scope_end(g);
    return most;
}

static TEST_MAYBE_UNUSED double eps_of(gn_dtype t) { return t == GN_F64 ? 2.3e-16 : 1.2e-7; }

// lavapipe takes minutes to compile the kernels for 64 rows of float64 and for 128 rows.
static TEST_MAYBE_UNUSED bool is_patient(gn_context *g) { return !test_on_software(g); }

#endif
