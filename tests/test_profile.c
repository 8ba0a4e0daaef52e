// Profiles in Chrome's trace format.

#include "test.h"

static void test_trace(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_rand(g, GN_F32, GN_SHAPE(64, 64));
    gn_profile_begin(g);
    gn_profile_begin(g); // starts again
    for (int i = 0; i < 400; i++) gn_eval(gn_add_s(a, i));
    gn_eval(gn_matmul(a, a));
    assert_int_equal(gn_profile_end(g, "trace.json"), GN_OK);
    size_t size;
    char *text = (char *)test_read_file("trace.json", &size);
    assert_true(strncmp(text, "{\"displayTimeUnit\"", 18) == 0);
    assert_non_null(strstr(text, "\"name\":\"matmul\",\"ph\":\"X\""));
    assert_non_null(strstr(text, "\"name\":\"elementwise\""));
    if (test_on_vulkan()) { // the device's own times, by kernel
        const char *map = strstr(text, "\"name\":\"map_");
        assert_non_null(map);
        assert_non_null(strstr(map, "\"ph\":\"X\",\"pid\":1,\"tid\":2"));
        assert_null(strstr(text, "\"name\":\"elementwise\",\"ph\":\"X\",\"pid\":1,\"tid\":2"));
    }
    free(text);
    test_make_cases("trace_check", "trace.json");
    // An empty one is valid too.
    gn_profile_begin(g);
    assert_int_equal(gn_profile_end(g, "empty.json"), GN_OK);
    text = (char *)test_read_file("empty.json", &size);
    assert_true(size > 4 && strcmp(text + size - 5, "}\n]}\n") == 0);
    free(text);
}

static void test_refused(void **state) {
    gn_context *g = (gn_context *)*state;
    assert_int_equal(gn_profile_end(g, "trace.json"), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_profile_end: gn_profile_begin was not called");
    gn_profile_begin(g);
    assert_int_equal(gn_profile_end(g, "no/such/folder.json"), GN_ERROR_IO);
    expect_error(g, GN_ERROR_IO, "gn_profile_end: cannot write no/such/folder.json: No such file or directory");
    gn_profile_begin(g);
    assert_int_equal(gn_profile_end(g, NULL), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_profile_end: the path is NULL");
    gn_profile_begin(NULL);
    assert_int_equal(gn_profile_end(NULL, "x"), GN_ERROR_ARGUMENT);
    gn_profile_begin(g); // gn_close frees it
}

static void profile_some(gn_context *g) {
    gn_scope_begin(g);
    gn_profile_begin(g);
    // Enough for the list of spans to grow; on a device every try compiles a pipeline.
    int evaluations = test_on_vulkan() ? 3 : 300;
    for (int i = 0; i < evaluations; i++) gn_release(gn_keep(gn_eval(gn_ones(g, GN_F32, GN_SHAPE(3)))));
    gn_profile_end(g, "memory.json");
    gn_scope_end(g);
}

static void test_out_of_memory(void **state) {
    (void)state;
    test_every_allocation(profile_some);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_trace),
        GN_TEST(test_refused),
        cmocka_unit_test(test_out_of_memory),
    };
    return test_run(tests);
}
