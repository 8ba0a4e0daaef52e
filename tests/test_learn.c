// Placement that learns: what is decided from which times, that nothing of it happens under a fixed placement, and that a loop
// gives the same numbers wherever it runs.
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"

#include "test.h"

// Windows of 8 rounds, each of so many nanoseconds.
static void windows(gni_loop *p, int count, uint64_t each) {
    for (int i = 0; i < count; i++) gni_learn_window(p, 8 * each, 8, false);
}

static gni_loop_state decided(uint64_t cpu, uint64_t warm, uint64_t gpu) {
    gni_loop p;
    memset(&p, 0, sizeof p);
    for (int i = 0; i < 10000 && p.state == GNI_LOOP_WATCHED; i++) windows(&p, 1, cpu);
    assert_int_equal(p.state, GNI_LOOP_WARMED);
    assert_true(p.spent >= 20000000);
    windows(&p, 1, warm);
    assert_int_equal(p.state, GNI_LOOP_TRIED);
    windows(&p, 2, gpu);
    assert_true(gni_learn_settled(&p));
    return p.state;
}

static void test_decisions(void **state) {
    (void)state;
    assert_int_equal(decided(515000, 40000000, 65000), GNI_LOOP_GPU);
    assert_int_equal(decided(515000, 500000, 515000), GNI_LOOP_CPU); // as fast: it stays
    assert_int_equal(decided(515000, 500000, 470000), GNI_LOOP_CPU);
    assert_int_equal(decided(515000, 500000, 450000), GNI_LOOP_GPU);
    assert_int_equal(decided(2000, 1000, 90000), GNI_LOOP_CPU);
    // The faster of two windows counts: something else may have run in one.
    gni_loop p;
    memset(&p, 0, sizeof p);
    windows(&p, 1, 9000000), windows(&p, 1, 500000);
    windows(&p, 1, 1000);
    windows(&p, 1, 9000000), windows(&p, 1, 100000);
    assert_int_equal(p.state, GNI_LOOP_GPU);
    assert_true(p.best[0] == 500000 && p.best[1] == 100000);
    // No trial where a rule had put the work on the GPU.
    memset(&p, 0, sizeof p);
    for (int i = 0; i < 100; i++) gni_learn_window(&p, 80000000, 8, true);
    assert_int_equal(p.state, GNI_LOOP_WATCHED);
}

enum { HIDDEN = 24, BATCH = 16, INPUTS = 12, ROUNDS = 100 };

typedef struct run {
    float loss[ROUNDS];
    char side[ROUNDS + 1]; // where the loss was computed: c, g, t for a trial
    gni_loop_state last;
} run;

// A training loop as it is written first: nothing is moved by hand. Rounds on either side take as many milliseconds more.
static run train(gn_context *g, double cpu_ms, double gpu_ms) {
    run r;
    memset(&r, 0, sizeof r);
    gn_seed(g, 5);
    gn_array *w[2], *data = gn_eval(gn_randn(g, GN_F32, GN_SHAPE(64, INPUTS)));
    w[0] = gn_he_normal(g, GN_F32, GN_SHAPE(INPUTS, HIDDEN));
    w[1] = gn_he_normal(g, GN_F32, GN_SHAPE(HIDDEN, 1));
    gn_optimizer *opt = gn_adam(w, 2, NULL);
    for (int i = 0; i < ROUNDS; i++)
        GN_SCOPE(g) {
            const uint64_t begun = gni_now_ns();
            gn_array *x = gn_slice(data, 0, i % 4 * BATCH, i % 4 * BATCH + BATCH, 1);
            gn_array *y = gn_matmul(gn_relu(gn_matmul(x, w[0])), w[1]);
            gn_array *loss = gn_mse_loss(y, gn_sum(x, GN_KEEP(1)));
            gn_backward(loss);
            gn_step(opt);
            gn_zero_grads(opt);
            r.loss[i] = (float)gn_item(loss);
            const char *text = gn_explain(loss);
            r.side[i] = strstr(text, "on the CPU:") != NULL ? 'c' : strstr(text, "tried on the GPU") != NULL ? 't' : 'g';
            const uint64_t ns = (uint64_t)(1e6 * (r.side[i] == 'c' ? cpu_ms : gpu_ms));
            while (gni_now_ns() - begun < ns) {}
        }
    r.last = g->learn.current != NULL ? g->learn.current->state : GNI_LOOP_WATCHED;
    if (gn_status_get(g) != GN_OK) fail_msg("%s; sides %s", gn_error(g), r.side);
    gn_optimizer_free(opt);
    return r;
}

static run train_in(gn_backend backend, gn_placement placement, bool gpu, double cpu_ms, double gpu_ms) {
    gn_options options;
    memset(&options, 0, sizeof options);
    options.backend = backend;
    options.placement = placement;
    gn_context *g = gn_open(&options);
    assert_non_null(g);
    if (gpu) g->gpu->caps.kind = GNI_GPU_DISCRETE; // what the driver calls a CPU
    const run r = train(g, cpu_ms, gpu_ms);
    gn_close(g);
    return r;
}

static void expect_same_losses(const run *a, const run *b) {
    for (int i = 0; i < ROUNDS; i++)
        if (!(fabs((double)a->loss[i] - (double)b->loss[i]) <= 1e-4 * fabs((double)a->loss[i])))
            fail_msg("round %d: loss %g and %g", i, (double)a->loss[i], (double)b->loss[i]);
}

static void test_loops(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    const run cpu = train_in(GN_BACKEND_CPU, GN_PLACE_AUTO, false, 0, 0);
    assert_int_equal(cpu.last, GNI_LOOP_WATCHED);
    const run gains = train_in(GN_BACKEND_VULKAN, GN_PLACE_AUTO, true, 60, 0);
    assert_int_equal(gains.last, GNI_LOOP_GPU);
    const run loses = train_in(GN_BACKEND_VULKAN, GN_PLACE_AUTO, true, 1.5, 30);
    assert_int_equal(loses.last, GNI_LOOP_CPU);
    const run fixed = train_in(GN_BACKEND_VULKAN, GN_PLACE_CPU, true, 0, 0);
    assert_int_equal(fixed.last, GNI_LOOP_WATCHED);
    gn_context *g = test_open();
    const bool software = test_on_software(g);
    gn_close(g);
    if (software) { // is no other machine
        const run same = train_in(GN_BACKEND_VULKAN, GN_PLACE_AUTO, false, 1.5, 0);
        assert_int_equal(same.last, GNI_LOOP_WATCHED);
        assert_memory_equal(cpu.loss, same.loss, sizeof cpu.loss);
    }
    expect_same_losses(&cpu, &gains);
    expect_same_losses(&cpu, &loses);
    assert_memory_equal(cpu.loss, fixed.loss, sizeof cpu.loss);
    // One trial, and no way back from what was decided.
    for (int k = 0; k < 2; k++) {
        const char *side = (k == 0 ? &gains : &loses)->side, *at = side;
        at += strspn(at, "c");
        assert_true(at - side >= 16 && at - side <= 40);
        const size_t tried = strspn(at, k == 0 ? "tg" : "tg");
        assert_true(tried >= 24);
        at += tried;
        assert_int_equal(strlen(at), strspn(at, "c"));
        assert_true(k == 0 ? *at == 0 : *at == 'c');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decisions), cmocka_unit_test(test_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
