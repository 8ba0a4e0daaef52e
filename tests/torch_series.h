// Operands with the numbers that PyTorch got, comparison with what it gave, and a scalar made of all elements.
#ifndef TORCH_SERIES_H
#define TORCH_SERIES_H
#include "test.h"

// The same numbers as series() in torch_emit.py.
static TEST_MAYBE_UNUSED gn_array *series(gn_context *g, gn_dtype t, gn_shape s, double scale, double shift) {
    int n = 1;
    for (int i = 0; i < s.rank; i++) n *= (int)s.dim[i];
    double *values = (double *)malloc(sizeof(double) * (size_t)(n + 1));
    for (int i = 0; i < n; i++) values[i] = ((i * 7919 + 104729) % 1000) / 1000.0 * scale + shift;
    gn_array *a = gn_eval(gn_copy(gn_cast(gn_array_from(g, GN_F64, s, values), t)));
    free(values);
    return a;
}

static TEST_MAYBE_UNUSED void expect_doubles(const char *name, gn_array *a, gn_dtype t, const double *want, int n,
                                             double tolerance) {
    double *got = (double *)malloc(sizeof(double) * (size_t)(n + 1));
    assert_non_null(a);
    if (gn_size(a) != n || gn_dtype_of(a) != t) fail_msg("%s: %d elements of %s", name, (int)gn_size(a), gn_dtype_name(gn_dtype_of(a)));
    assert_int_equal(gn_read(gn_cast(a, GN_F64), got, sizeof(double) * (size_t)n), GN_OK);
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * fmax(1.0, fabs(want[i]))))
            fail_msg("%s: element %d is %.17g, not %.17g", name, i, got[i], want[i]);
    free(got);
}

// One number that depends on each element of y in its own way, for derivatives.
static TEST_MAYBE_UNUSED gn_array *weigh(gn_context *g, gn_array *y) {
    gn_array *factor = gn_reshape(gn_add_s(gn_arange(g, GN_F64, 0, (double)gn_size(y), 1), 1.0), gn_shape_of(y));
    return gn_mean(gn_mul(factor, gn_sin(y)), GN_ALL);
}
#endif
