// Contexts and values of the tests of gradients and training.

static void close_context(gn_context *g) {
    if (gn_status_get(g) != GN_OK) fail_msg("%s", gn_error(g));
    test_close(g);
}

#undef expect_error
#undef expect_values
static void expect_error(gn_context *g, gn_status status, const char *part) {
    if (gn_status_get(g) != status || strstr(gn_error(g), part) == NULL)
        fail_msg("expected %s (%s), got %s (%s)", gn_status_string(status), part,
                 gn_status_string(gn_status_get(g)), gn_error(g));
    gn_error_clear(g);
}

static void read_doubles(gn_array *a, double *out, int64_t n) {
    assert_non_null(a);
    assert_int_equal(gn_size(a), n);
    GN_SCOPE(gn_context_of(a)) {
        gn_read(gn_cast(a, GN_F64), out, sizeof(double) * (size_t)n);
    }
}

static void expect_values(gn_array *a, const double *want, int64_t n, double tolerance) {
    double got[64];
    read_doubles(a, got, n);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * fmax(1.0, fabs(want[i]))))
            fail_msg("element %d: %.17g, not %.17g", (int)i, got[i], want[i]);
}
