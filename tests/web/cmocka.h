// The part of cmocka's interface that the tests use, for compilers that there is no cmocka for.

#ifndef GPUNUM_TEST_CMOCKA_H
#define GPUNUM_TEST_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);
struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test_func;
    CMFixtureFunction setup_func, teardown_func;
    void *initial_state;
};
#define cmocka_unit_test(f) \
    { #f, f, NULL, NULL, NULL }
#define cmocka_unit_test_setup_teardown(f, setup, teardown) \
    { #f, f, setup, teardown, NULL }

static jmp_buf cm_out;
enum { CM_FAILED = 1, CM_SKIPPED = 2 };

#define print_error(...) fprintf(stderr, __VA_ARGS__)
#define print_message(...) printf(__VA_ARGS__)

__attribute__((noreturn, unused)) static void _fail(const char *file, int line) {
    fprintf(stderr, "%s:%d: failed\n", file, line);
    longjmp(cm_out, CM_FAILED);
}
#define fail() _fail(__FILE__, __LINE__)
#define fail_msg(...)                 \
    do {                              \
        fprintf(stderr, __VA_ARGS__); \
        fputc('\n', stderr);          \
        fail();                       \
    } while (0)
#define skip() longjmp(cm_out, CM_SKIPPED)

// What is compared are integers and addresses, of which the first is printed.
__attribute__((unused)) static void cm_compare(uint64_t a, uint64_t b, int want, const char *text, const char *file, int line) {
    if ((a == b) == want) return;
    fprintf(stderr, "%s: %lld, %lld\n", text, (long long)a, (long long)b);
    _fail(file, line);
}
#define cm_integer(x) ((uint64_t)(x))
#define cm_address(x) ((uint64_t)(uintptr_t)(x))
#define assert_true(x) cm_compare((x) ? 1u : 0u, 1, 1, #x, __FILE__, __LINE__)
#define assert_false(x) cm_compare((x) ? 1u : 0u, 0, 1, #x, __FILE__, __LINE__)
#define assert_null(x) cm_compare(cm_address(x), 0, 1, #x, __FILE__, __LINE__)
#define assert_non_null(x) cm_compare(cm_address(x), 0, 0, #x, __FILE__, __LINE__)
#define assert_int_equal(a, b) cm_compare(cm_integer(a), cm_integer(b), 1, #a " == " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) cm_compare(cm_integer(a), cm_integer(b), 0, #a " != " #b, __FILE__, __LINE__)
#define assert_ptr_equal(a, b) cm_compare(cm_address(a), cm_address(b), 1, #a " == " #b, __FILE__, __LINE__)
#define assert_ptr_not_equal(a, b) cm_compare(cm_address(a), cm_address(b), 0, #a " != " #b, __FILE__, __LINE__)
#define assert_in_range(x, low, high)                                                                        \
    cm_compare(cm_integer(x) >= cm_integer(low) && cm_integer(x) <= cm_integer(high), 1, 1, #x, __FILE__, __LINE__)
#define assert_memory_equal(a, b, n) cm_compare(memcmp((a), (b), (n)) == 0, 1, 1, #a " == " #b, __FILE__, __LINE__)
#define assert_string_equal(a, b) cm_text((a), (b), 1, __FILE__, __LINE__)
#define assert_string_not_equal(a, b) cm_text((a), (b), 0, __FILE__, __LINE__)
__attribute__((unused)) static void cm_text(const char *a, const char *b, int want, const char *file, int line) {
    if ((strcmp(a, b) == 0) == want) return;
    fprintf(stderr, "\"%s\"\n\"%s\"\n", a, b);
    _fail(file, line);
}

// How many tests failed. Kept out of the functions that call setjmp: what they change must outlive the jump.
static int cm_call(const struct CMUnitTest *t, void **state) {
    const int how = setjmp(cm_out);
    if (how == 0) t->test_func(state);
    return how;
}
static int cm_fixture(CMFixtureFunction f, void **state) {
    const int how = setjmp(cm_out);
    return how == 0 ? f != NULL && f(state) != 0 : how;
}
// Tests that are left out: CM_WITHOUT in the environment has their names between spaces.
static int cm_left_out(const char *name) {
    const char *at = getenv("CM_WITHOUT");
    const size_t n = strlen(name);
    for (; at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, n) == 0 && (at[n] == ' ' || at[n] == 0)) return 1;
    }
    return 0;
}
__attribute__((unused)) static int cm_run(const struct CMUnitTest *tests, int count, CMFixtureFunction setup,
                                          CMFixtureFunction teardown) {
    int failed = 0, skipped = 0, left_out = 0;
    void *group = NULL;
    if (cm_fixture(setup, &group)) return 1;
    for (int i = 0; i < count; i++) {
        if (cm_left_out(tests[i].name)) {
            left_out++;
            continue;
        }
        void *state = tests[i].initial_state != NULL ? tests[i].initial_state : group;
        int how = cm_fixture(tests[i].setup_func, &state) ? CM_FAILED : cm_call(&tests[i], &state);
        if (cm_fixture(tests[i].teardown_func, &state)) how = CM_FAILED;
        if (how == CM_FAILED) fprintf(stderr, "%s failed\n", tests[i].name);
        failed += how == CM_FAILED;
        skipped += how == CM_SKIPPED;
    }
    if (cm_fixture(teardown, &group)) failed++;
    printf("%d tests, %d failed, %d skipped, %d left out\n", count, failed, skipped, left_out);
    return failed;
}
#define cmocka_run_group_tests(tests, setup, teardown) \
    cm_run((tests), (int)(sizeof(tests) / sizeof((tests)[0])), (setup), (teardown))

#endif
