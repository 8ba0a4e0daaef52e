// The log: what is said to whom, gn_log_stderr, GPUNUM_LOG, and what gn_close tells of a program.
#define _POSIX_C_SOURCE 200112L
#include "test.h"

#include <unistd.h>

typedef struct lines {
    char text[4096];
    int count[16]; // by level
} lines;

static void collect(void *user, gn_log_level level, const char *text) {
    lines *l = (lines *)user;
    size_t at = strlen(l->text);
    snprintf(l->text + at, sizeof l->text - at, "%s\n", text);
    l->count[(int)level]++;
}

static gn_options logging(lines *l, gn_log_level level) {
    memset(l, 0, sizeof *l);
    gn_options o = test_options();
    o.log = collect;
    o.log_user = l;
    o.log_level = level;
    return o;
}

static int has(const lines *l, const char *text) { return strstr(l->text, text) != NULL; }

static gn_array *mistake(gn_context *g) {
    return gn_matmul(gn_zeros(g, GN_F32, GN_SHAPE(3, 4)), gn_zeros(g, GN_F32, GN_SHAPE(5, 6)));
}

// ---- what gn_close tells

static void test_unasked_error(void **state) {
    (void)state;
    lines l;
    for (int ask = 0; ask < 5; ask++) {
        gn_options o = logging(&l, GN_LOG_WARNING);
        gn_context *g = test_open_with(&o);
        if (ask == 4) assert_int_equal(gn_status_get(g), GN_OK); // asked before there was one
        assert_null(gn_exp(mistake(g)));
        assert_int_equal(l.count[GN_LOG_ERROR], 1);
        assert_true(has(&l, "gn_matmul: "));
        if (ask == 1) assert_int_not_equal(gn_status_get(g), GN_OK);
        if (ask == 2) assert_non_null(strstr(gn_error(g), "gn_matmul"));
        if (ask == 3) gn_error_clear(g);
        assert_int_equal(l.count[GN_LOG_WARNING], 0);
        test_close(g);
        assert_int_equal(l.count[GN_LOG_WARNING], ask == 0 || ask == 4);
        assert_int_equal(has(&l, "nobody asked for the error"), ask == 0 || ask == 4);
    }
}

static void test_scopes_left_open(void **state) {
    (void)state;
    lines l;
    for (int open = 0; open < 3; open++) {
        gn_options o = logging(&l, GN_LOG_WARNING);
        gn_context *g = test_open_with(&o);
        for (int i = 0; i < open; i++) gn_scope_begin(g);
        gn_no_grad_begin(g);
        if (open != 2) gn_no_grad_end(g);
        GN_SCOPE(g) gn_ones(g, GN_F32, GN_SHAPE(3));
        test_close(g);
        assert_int_equal(l.count[GN_LOG_WARNING], open);
        if (open == 1) assert_true(has(&l, "gn_close: 1 gn_scope_begin without gn_scope_end"));
        if (open == 2) assert_true(has(&l, "gn_close: 2 gn_scope_begin without gn_scope_end"));
        if (open == 2) assert_true(has(&l, "gn_close: 1 gn_no_grad_begin without gn_no_grad_end"));
    }
}

static void test_scope_ends_alone(void **state) {
    (void)state;
    lines l;
    gn_options o = logging(&l, GN_LOG_WARNING);
    gn_context *g = test_open_with(&o);
    for (int i = 0; i < 3; i++) gn_scope_end(g);
    assert_int_equal(l.count[GN_LOG_ERROR], 1);
    assert_int_equal(l.count[GN_LOG_WARNING], 2);
    assert_string_equal(gn_error(g), "gn_scope_end: no scope is open");
    test_close(g);
    assert_int_equal(l.count[GN_LOG_WARNING], 2);
}

static void test_arrays_alive(void **state) {
    (void)state;
    lines l;
    gn_options o = logging(&l, GN_LOG_INFO);
    o.backend = GN_BACKEND_CPU;
    gn_context *g = test_open_with(&o);
    gn_array *a = gn_zeros(g, GN_F64, GN_SHAPE(10, 10));
    gn_eval(a);
    gn_array *row = gn_slice(a, 0, 0, 1, 1); // of the same memory
    gn_array *freed = gn_eval(gn_ones(g, GN_F32, GN_SHAPE(1000)));
    gn_release(freed);
    assert_non_null(row);
    test_close(g);
    assert_int_equal(l.count[GN_LOG_WARNING] + l.count[GN_LOG_ERROR], 0);
    assert_true(has(&l, "gn_close: arrays still alive: 2 (800 bytes)"));

    o = logging(&l, GN_LOG_INFO);
    g = test_open_with(&o);
    GN_SCOPE(g) gn_eval(gn_ones(g, GN_F32, GN_SHAPE(1000)));
    test_close(g);
    assert_false(has(&l, "still alive"));
}

// GN_SCOPE closes its scope however its block ends, and `break` ends no loop around it.
static void test_scope_break(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_memory_stats before, after;
    gn_memory_get(g, &before);
    int rounds = 0;
    for (int i = 0; i < 4; i++)
        GN_SCOPE(g) {
            rounds++;
            gn_zeros(g, GN_F32, GN_SHAPE(5));
            if (i == 1) break;
            if (i == 2) continue;
            gn_zeros(g, GN_F32, GN_SHAPE(5));
        }
    gn_memory_get(g, &after);
    assert_int_equal(rounds, 4);
    assert_int_equal(after.arrays, before.arrays);
}

// ---- stderr

static char *caught; // what `f` wrote to stderr; the caller frees it
static void catch_stderr(void (*f)(void)) {
    fflush(stderr);
    FILE *file = tmpfile();
    assert_non_null(file);
    int old = dup(2);
    assert_true(old >= 0 && dup2(fileno(file), 2) >= 0);
    f();
    fflush(stderr);
    dup2(old, 2);
    close(old);
    long size = (fseek(file, 0, SEEK_END), ftell(file));
    rewind(file);
    caught = (char *)calloc((size_t)size + 1, 1);
    assert_int_equal(fread(caught, 1, (size_t)size, file), size);
    fclose(file);
}

static gn_options plain;
static bool opens;

static void fail_and_close(void) {
    gn_context *g = gn_open(&plain);
    assert_int_equal(g != NULL, opens);
    if (g == NULL) return;
    mistake(g);
    gn_scope_begin(g);
    gn_zeros(g, GN_F32, GN_SHAPE(3));
    test_close(g);
}

static void expect_lines(const char *wanted, int errors, int warnings, int infos) {
    if (wanted != NULL)
        setenv("GPUNUM_LOG", wanted, 1);
    else
        unsetenv("GPUNUM_LOG");
    catch_stderr(fail_and_close);
    unsetenv("GPUNUM_LOG");
    int found[3] = {0, 0, 0};
    for (const char *at = caught; *at != 0; at = strchr(at, '\n') + 1) {
        assert_non_null(strchr(at, '\n'));
        if (strncmp(at, "gpunum error: ", 14) == 0) found[0]++;
        if (strncmp(at, "gpunum warning: ", 16) == 0) found[1]++;
        if (strncmp(at, "gpunum info: ", 13) == 0) found[2]++;
    }
    if (found[0] != errors || found[1] != warnings || (infos < 0 ? found[2] < -infos : found[2] != infos))
        fail_msg("GPUNUM_LOG=%s gave\n%s", wanted != NULL ? wanted : "(unset)", caught);
}

static void test_environment(void **state) {
    (void)state;
    plain = test_options();
    plain.log = NULL;
    plain.log_level = (gn_log_level)0;
    opens = true;
    const char *quiet[] = {NULL, "", "none"};
    for (int i = 0; i < 3; i++) {
        expect_lines(quiet[i], 0, 0, 0);
        assert_string_equal(caught, "");
        free(caught);
    }
    expect_lines("error", 1, 0, 0);
    assert_string_equal(caught, "gpunum error: gn_matmul: (3,4) x (5,6): inner dimensions 4 and 5 differ\n");
    free(caught);
    expect_lines("warning", 1, 2, 0);
    free(caught);
    expect_lines("info", 1, 2, -2); // where it computes, arrays alive
    assert_non_null(strstr(caught, "arrays still alive: 3"));
    free(caught);
    expect_lines("debug", 1, 2, -2);
    free(caught);
    expect_lines("loud", 1, 3, 0);
    assert_non_null(strstr(caught, "GPUNUM_LOG is not error, warning, info or debug"));
    free(caught);

    // A program's own log is its own, and so is its silence.
    lines l;
    plain = logging(&l, GN_LOG_ERROR);
    expect_lines("debug", 0, 0, 0);
    assert_string_equal(caught, "");
    assert_int_equal(l.count[GN_LOG_ERROR], 1);
    free(caught);
    plain.log = NULL;
    plain.log_level = GN_LOG_NONE;
    expect_lines("debug", 0, 0, 0);
    free(caught);
    plain.log = gn_log_stderr;
    plain.log_level = GN_LOG_WARNING;
    expect_lines(NULL, 1, 2, 0);
    free(caught);
    // What cannot be opened has no context whose error could be read.
    plain = test_options();
    plain.log = NULL;
    plain.backend = (gn_backend)77;
    opens = false;
    expect_lines("error", 1, 0, 0);
    assert_non_null(strstr(caught, gn_open_error()));
    free(caught);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unasked_error), cmocka_unit_test(test_scopes_left_open),
        cmocka_unit_test(test_scope_ends_alone), cmocka_unit_test(test_arrays_alive),
        GN_TEST(test_scope_break), cmocka_unit_test(test_environment)};
    return test_run(tests);
}
