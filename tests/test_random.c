// Random numbers: the bits of Philox, their statistics, and that every backend makes the same.

#include "test.h"

// Exactly, or for normal numbers within 1e-6 (of which float32 logarithms and sines are good).
static bool like(gn_array *a, const test_array *e, bool exact) {
    if (exact || a == NULL || gn_dtype_of(a) != e->t || gn_size(a) != e->n)
        return test_same_bytes(a, e);
    void *have = malloc(e->bytes + 1);
    bool same = gn_read(a, have, e->bytes) == GN_OK;
    double bound = e->t == GN_F64 ? 1e-13 : 2e-6;
    for (int64_t i = 0; i < e->n && same; i++) {
        double x = test_element(e->t, have, i), y = test_element(e->t, e->data, i);
        same = fabs(x - y) <= bound * (1 + fabs(y));
        if (!same) print_error("element %lld is %.9g, expected %.9g\n", (long long)i, x, y);
    }
    free(have);
    return same;
}

static void test_philox(void **state) {
    gn_context *g = (gn_context *)*state;
    test_cases c;
    char kind[16];
    if (!test_cases_open(&c, "random")) skip();
    for (int32_t i = 0; i < c.count; i++) {
        uint64_t seed;
        test_take_bytes(&c, &seed, sizeof seed);
        gn_seed(g, seed);
        for (int32_t n = test_take_int(&c); n > 0; n--) {
            test_array e;
            int64_t low, high;
            test_take_text(&c, kind, sizeof kind);
            test_take_bytes(&c, &low, sizeof low);
            test_take_bytes(&c, &high, sizeof high);
            test_take_array(&c, &e);
            gn_array *a = strcmp(kind, "rand") == 0    ? gn_rand(g, e.t, e.s)
                          : strcmp(kind, "randn") == 0 ? gn_randn(g, e.t, e.s)
                                                       : gn_randint(g, e.t, e.s, low, high);
            if (!like(a, &e, strcmp(kind, "randn") != 0))
                fail_msg("seed %llu: %s %s, %d calls from the end: %s", (unsigned long long)seed,
                         kind, gn_dtype_name(e.t), (int)n, gn_error(g));
        }
    }
    test_cases_close(&c);
}

static gn_array *make_uniform(gn_context *g, gn_dtype t, gn_shape s) { return gn_rand(g, t, s); }
static gn_array *make_normal(gn_context *g, gn_dtype t, gn_shape s) { return gn_randn(g, t, s); }
static gn_array *make_between(gn_context *g, gn_dtype t, gn_shape s) { return gn_uniform(g, t, s, -1.3, 2.9); }
static gn_array *make_wider(gn_context *g, gn_dtype t, gn_shape s) { return gn_normal(g, t, s, 1.1, 2.3); }
static gn_array *make_truths(gn_context *g, gn_dtype t, gn_shape s) { return gn_bernoulli(g, t, s, 0.3); }
// Truth values that programs ask for: along memory's order, across it, for a sum, for two programs, and those of a view.
static gn_array *make_dropped(gn_context *g, gn_dtype t, gn_shape s) {
    gn_array *all[4], *x = gn_full(g, t, GN_SHAPE(s.dim[0], 3), 1.5), *y = gn_dropout(x, 0.4, true);
    all[0] = gn_add(y, x);
    all[1] = gn_dropout(gn_transpose(x), 0.4, true);
    all[1] = gn_add(gn_transpose(all[1]), gn_copy(gn_transpose(gn_transpose(y))));
    all[2] = gn_where(gn_slice(gn_bernoulli(g, GN_BOOL, GN_SHAPE(s.dim[0] + 4, 3), 0.6), 0, 4, s.dim[0] + 4, 1), x, y);
    all[3] = gn_tile(gn_expand_dims(gn_sum(gn_dropout(x, 0.1, true), 1), 1), GN_SHAPE(1, 3));
    return gn_concat(all, 4, 1);
}
static gn_array *make_range(gn_context *g, gn_dtype t, gn_shape s) { return gn_randint(g, t, s, -5, 120); }
static gn_array *make_wide_range(gn_context *g, gn_dtype t, gn_shape s) {
    return gn_randint(g, t, s, -7, (int64_t)(t == GN_I32 ? INT32_MAX : INT64_MAX));
}
static gn_array *make_exponential(gn_context *g, gn_dtype t, gn_shape s) { return gn_exponential(g, t, s, 1.7); }
static gn_array *make_gamma(gn_context *g, gn_dtype t, gn_shape s) { return gn_gamma(g, t, s, 3.3, 0.7); }
static gn_array *make_small_gamma(gn_context *g, gn_dtype t, gn_shape s) { return gn_gamma(g, t, s, 0.11, 2); }
static gn_array *make_beta(gn_context *g, gn_dtype t, gn_shape s) { return gn_beta(g, t, s, 0.4, 2.5); }
static gn_array *make_small_beta(gn_context *g, gn_dtype t, gn_shape s) { return gn_beta(g, t, s, 0.003, 0.001); }
static gn_array *make_few(gn_context *g, gn_dtype t, gn_shape s) { return gn_poisson(g, t, s, 3.5); }
static gn_array *make_many(gn_context *g, gn_dtype t, gn_shape s) { return gn_poisson(g, t, s, 80); }
static gn_array *make_huge(gn_context *g, gn_dtype t, gn_shape s) { return gn_poisson(g, t, s, 1e11); }
static gn_array *make_huge_trials(gn_context *g, gn_dtype t, gn_shape s) { return gn_binomial(g, t, s, 1000000000000, 0.3); }
static gn_array *make_tiny_beta(gn_context *g, gn_dtype t, gn_shape s) { return gn_beta(g, t, s, 5e-324, 1e-323); }
static gn_array *make_trials(gn_context *g, gn_dtype t, gn_shape s) { return gn_binomial(g, t, s, 30, 0.8); }
static gn_array *make_many_trials(gn_context *g, gn_dtype t, gn_shape s) { return gn_binomial(g, t, s, 100, 0.41); }
static gn_array *make_cut(gn_context *g, gn_dtype t, gn_shape s) { return gn_truncated_normal(g, t, s, 1, 2, -3, 0.5); }
static gn_array *make_tail(gn_context *g, gn_dtype t, gn_shape s) {
    return gn_truncated_normal(g, t, s, 1, 2, 9, (double)INFINITY);
}
static gn_array *make_low_tail(gn_context *g, gn_dtype t, gn_shape s) {
    return gn_truncated_normal(g, t, s, 1, 2, -(double)INFINITY, -5);
}
static gn_array *make_whole(gn_context *g, gn_dtype t, gn_shape s) { return gn_truncated_normal(g, t, s, 1, 2, -9, 30); }
static gn_array *make_permutation(gn_context *g, gn_dtype t, gn_shape s) { return gn_permutation(g, t, 5 * s.dim[0]); }
static gn_array *make_far(gn_context *g, gn_dtype t, gn_shape s) { return gn_truncated_normal(g, t, s, 0, 1, 2e7, 3e7); }

// The numbers of this test's backend and of the plain CPU, bit for bit.
static void test_same_everywhere(void **state) {
    static const struct {
        const char *name;
        gn_array *(*make)(gn_context *g, gn_dtype t, gn_shape s);
        char kinds; // of dtypes: floats, integers, both
    } makers[] = {
        {"rand", make_uniform, 'f'}, {"randn", make_normal, 'f'}, {"randint", make_range, 'i'}, {"uniform", make_between, 'f'},
        {"normal", make_wider, 'f'}, {"bernoulli", make_truths, 'b'}, {"dropout", make_dropped, 'f'},
        {"randint, wide", make_wide_range, 'w'}, {"exponential", make_exponential, 'f'}, {"gamma", make_gamma, 'f'},
        {"gamma(0.11)", make_small_gamma, 'f'}, {"beta", make_beta, 'f'}, {"beta, small", make_small_beta, 'f'},
        {"poisson(3.5)", make_few, 'b'}, {"poisson(80)", make_many, 'b'}, {"binomial(30)", make_trials, 'b'},
        {"binomial(100)", make_many_trials, 'b'}, {"truncated", make_cut, 'f'}, {"tail", make_tail, 'f'},
        {"low tail", make_low_tail, 'f'}, {"truncated far out", make_whole, 'f'}, {"far", make_far, 'f'},
        {"permutation", make_permutation, 'w'}, {"poisson(1e11)", make_huge, 'b'}, {"binomial(1e12)", make_huge_trials, 'b'},
        {"beta, tiny", make_tiny_beta, 'f'},
    };
    gn_context *g = (gn_context *)*state;
    gn_options o = test_options();
    o.backend = GN_BACKEND_CPU;
    o.cpu = GN_CPU_PLAIN;
    o.threads = 1;
    gn_context *plain = test_open_with(&o);
    static const gn_dtype types[] = {GN_F32, GN_F64, GN_F16, GN_BF16, GN_I8, GN_I16, GN_I32, GN_I64};
    gn_seed(g, 99);
    gn_seed(plain, 99);
    bool all_same = true;
    for (int m = 0; m < (int)(sizeof makers / sizeof *makers); m++) {
        const char kinds = makers[m].kinds;
        for (int i = kinds == 'i' ? 4 : kinds == 'w' ? 6 : 0; i < (kinds == 'f' ? 4 : 8); i++) {
            gn_dtype t = types[i];
            gn_shape s = GN_SHAPE(10007);
            gn_scope_begin(g);
            gn_array *a = gn_keep(makers[m].make(g, t, s));
            gn_scope_end(g);
            gn_scope_begin(plain);
            gn_array *b = gn_keep(makers[m].make(plain, t, s));
            gn_scope_end(plain);
            assert_true(a != NULL && b != NULL);
            size_t bytes = gn_bytes(a);
            unsigned char *x = (unsigned char *)malloc(2 * bytes);
            assert_int_equal(gn_read(a, x, bytes), GN_OK);
            assert_int_equal(gn_read(b, x + bytes, bytes), GN_OK);
            size_t differ = 0;
            for (size_t k = 0; k < bytes; k += gn_dtype_size(t))
                differ += memcmp(x + k, x + bytes + k, gn_dtype_size(t)) != 0;
            if (differ > 0) print_error("%s %s: %lld of 10007 differ\n", makers[m].name, gn_dtype_name(t), (long long)differ);
            free(x);
            gn_release(a);
            gn_release(b);
            all_same = all_same && differ == 0;
        }
    }
    assert_true(all_same);
    gn_close(plain);
}

// Bounds are six standard deviations wide.
static void test_statistics(void **state) {
    gn_context *g = (gn_context *)*state;
    const double n = 200000, six = 6 / sqrt(n);
    gn_seed(g, 2024);
    gn_array *u = gn_uniform(g, GN_F32, GN_SHAPE(200000), -3, 5);
    assert_true(gn_item(gn_min(u, GN_ALL)) >= -3 && gn_item(gn_max(u, GN_ALL)) <= 5);
    assert_true(fabs(gn_item(gn_mean(u, GN_ALL)) - 1) < six * 8 / sqrt(12));
    assert_true(fabs(gn_item(gn_var(u, GN_ALL, 0)) - 64.0 / 12) < six * 64 / sqrt(180));
    gn_array *ends = gn_beta(g, GN_F64, GN_SHAPE(200000), 5e-324, 1e-323); // 1 a third of the time, else 0
    assert_true(gn_array_equal(ends, gn_square(ends), false));
    assert_true(fabs(gn_item(gn_mean(ends, GN_ALL)) - 1.0 / 3) < six * sqrt(2) / 3);
    static const gn_dtype types[] = {GN_F32, GN_F64};
    for (int i = 0; i < 2; i++) {
        gn_array *z = gn_normal(g, types[i], GN_SHAPE(200000), 2, 3);
        assert_true(fabs(gn_item(gn_mean(z, GN_ALL)) - 2) < six * 3);
        assert_true(fabs(gn_item(gn_var(z, GN_ALL, 0)) - 9) < six * 9 * sqrt(2));
        z = gn_randn(g, types[i], GN_SHAPE(200000));
        gn_array *far = gn_gt_s(gn_abs(z), 1.959963984540054); // one in twenty
        assert_true(fabs(gn_item(gn_count_nonzero(far, GN_ALL)) / n - 0.05) <
                    six * sqrt(0.05 * 0.95));
    }
    for (int i = 0; i < 40; i++) { // what the uniform numbers of that place in the stream say
        static const double odds[] = {0.0, 1.0, 0.5, 0.3, 1e-7, 0.99999999, 5.9604644775390625e-08, 0.1};
        const double p = odds[i % 8];
        const int64_t size = i < 8 ? i : i < 16 ? 100003 : 1000 + i;
        gn_seed(g, 100 + (unsigned)i);
        gn_array *want = gn_lt_s(gn_rand(g, GN_F32, GN_SHAPE(size)), p);
        gn_seed(g, 100 + (unsigned)i);
        assert_true(gn_array_equal(gn_bernoulli(g, GN_BOOL, GN_SHAPE(size), p), want, false));
    }
    gn_array *coin = gn_bernoulli(g, GN_F32, GN_SHAPE(200000), 0.3);
    assert_int_equal(gn_dtype_of(coin), GN_F32);
    assert_true(fabs(gn_item(gn_mean(coin, GN_ALL)) - 0.3) < six * sqrt(0.3 * 0.7));
    assert_true(gn_item(gn_sum(gn_bernoulli(g, GN_U8, GN_SHAPE(1000), 0), GN_ALL)) == 0);
    assert_true(gn_item(gn_sum(gn_bernoulli(g, GN_BOOL, GN_SHAPE(1000), 1), GN_ALL)) == 1000);
    gn_array *die = gn_randint(g, GN_I32, GN_SHAPE(200000), 1, 7);
    for (int k = 1; k <= 6; k++) {
        double share = gn_item(gn_count_nonzero(gn_eq_s(die, k), GN_ALL)) / n;
        assert_true(fabs(share - 1.0 / 6) < six * sqrt(5.0 / 36));
    }
    gn_array *half = gn_rand(g, GN_F16, GN_SHAPE(200000));
    assert_true(gn_item(gn_max(half, GN_ALL)) < 1);
    assert_true(gn_item(gn_max(gn_rand(g, GN_BF16, GN_SHAPE(20000)), GN_ALL)) < 1);
}

static void test_permutation(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t sizes[] = {0, 1, 2, 3, 17, 1000, 100003};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t n = sizes[i];
        gn_array *p = gn_permutation(g, GN_I32, n);
        assert_int_equal(gn_dtype_of(p), GN_I32);
        assert_true(gn_size(p) == n);
        int32_t *at = (int32_t *)malloc(sizeof(int32_t) * (size_t)(n + 1));
        char *seen = (char *)calloc((size_t)n + 1, 1);
        assert_int_equal(gn_read(p, at, gn_bytes(p)), GN_OK);
        for (int64_t k = 0; k < n; k++) {
            assert_true(at[k] >= 0 && at[k] < n && !seen[at[k]]);
            seen[at[k]] = 1;
        }
        free(at);
        free(seen);
    }
    // Long ones: where a number of one sixteenth goes, and what follows a number of one.
    for (int64_t n = 32769; n < 200000; n = n * 2 + 1001) {
        double to[256] = {0}, after[256] = {0}, chi[2] = {0, 0};
        gn_array *p = gn_permutation(g, GN_I64, n);
        int64_t *at = (int64_t *)malloc(sizeof(int64_t) * (size_t)n);
        assert_int_equal(gn_read(p, at, gn_bytes(p)), GN_OK);
        for (int64_t k = 0; k < n; k++) {
            to[16 * (k * 16 / n) + at[k] * 16 / n]++;
            after[16 * (at[k] * 16 / n) + at[(k + 1) % n] * 16 / n]++;
        }
        for (int k = 0; k < 256; k++) {
            const double e = (double)n / 256;
            chi[0] += (to[k] - e) * (to[k] - e) / e;
            chi[1] += (after[k] - e) * (after[k] - e) / e;
        }
        // 225 degrees of freedom: seven standard deviations
        for (int k = 0; k < 2; k++) assert_true(chi[k] > 225 - 7 * 21.2 && chi[k] < 225 + 7 * 21.2);
        free(at);
        for (int k = 0; k < 3; k++) {
            static const gn_dtype longer[] = {GN_I32, GN_U32, GN_U16};
            if (k == 2 && n > 65536) continue;
            gn_seed(g, 11);
            gn_array *first = gn_permutation(g, GN_I64, n);
            gn_seed(g, 11);
            assert_true(gn_array_equal(first, gn_permutation(g, longer[k], n), false));
        }
    }
    // The same order in every dtype that holds it.
    static const gn_dtype types[] = {GN_I32, GN_I64, GN_U8, GN_I8, GN_U32};
    for (int64_t n = 0; n <= 128; n += 16) {
        double first[128], other[128];
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
            gn_seed(g, 5);
            gn_array *p = gn_permutation(g, types[i], n);
            assert_int_equal(gn_dtype_of(p), types[i]);
            assert_int_equal(gn_read(gn_cast(p, GN_F64), i == 0 ? first : other, sizeof(double) * (size_t)n), GN_OK);
            if (i > 0) assert_memory_equal(first, other, sizeof(double) * (size_t)n);
        }
    }
    // All 24 orders of four, equally often.
    int count[256] = {0}, orders = 0;
    for (int k = 0; k < 24000; k++) {
        int32_t p[4];
        gn_array *a = gn_permutation(g, GN_I32, 4);
        assert_int_equal(gn_read(a, p, sizeof p), GN_OK);
        gn_release(a);
        count[p[0] | p[1] << 2 | p[2] << 4 | p[3] << 6]++;
    }
    for (int k = 0; k < 256; k++) {
        orders += count[k] > 0;
        if (count[k] > 0) assert_true(abs(count[k] - 1000) < 190);
    }
    assert_int_equal(orders, 24);
    gn_seed(g, 5);
    gn_array *a = gn_permutation(g, GN_I32, 50), *b = gn_permutation(g, GN_I32, 50);
    gn_seed(g, 5);
    gn_array *c = gn_permutation(g, GN_I32, 50);
    assert_true(gn_item(gn_all(gn_eq(a, c), GN_ALL)) == 1);
    assert_true(gn_item(gn_all(gn_eq(a, b), GN_ALL)) == 0);
}

// Saved for SciPy to look at.
static void test_distributions(void **state) {
    gn_context *g = (gn_context *)*state;
    const gn_shape n = GN_SHAPE(20000);
    if (getenv("GN_PYTHON") == NULL || *getenv("GN_PYTHON") == 0) skip();
    gn_seed(g, 20261122);
    FILE *f = fopen("random.txt", "w");
    assert_non_null(f);
    int count = 0;
    char name[40];
#define SAVE(text, array)                                                                          \
    do {                                                                                           \
        snprintf(name, sizeof name, "random.%d.npy", count++);                                     \
        assert_int_equal(gn_save_npy((array), name), GN_OK);                                       \
        fprintf(f, "%s %s\n", name, text);                                                         \
    } while (0)
    SAVE("expon(0,3)", gn_exponential(g, GN_F64, n, 3));
    SAVE("expon(0,0.25)", gn_exponential(g, GN_F32, n, 0.25));
    SAVE("expon(0,1)", gn_exponential(g, GN_F16, n, 1));
    SAVE("gamma(0.05)", gn_gamma(g, GN_F64, n, 0.05, 1));
    SAVE("gamma(0.7,0,2)", gn_gamma(g, GN_F64, n, 0.7, 2));
    SAVE("gamma(1)", gn_gamma(g, GN_F32, n, 1, 1));
    SAVE("gamma(40,0,0.5)", gn_gamma(g, GN_F64, n, 40, 0.5));
    SAVE("beta(0.3,0.6)", gn_beta(g, GN_F64, n, 0.3, 0.6));
    SAVE("beta(0.02,3)", gn_beta(g, GN_F64, n, 0.02, 3));
    SAVE("beta(5,2)", gn_beta(g, GN_F64, n, 5, 2));
    SAVE("truncnorm(-1,2)", gn_truncated_normal(g, GN_F64, n, 0, 1, -1, 2));
    SAVE("truncnorm(3,inf)", gn_truncated_normal(g, GN_F64, n, 0, 1, 3, (double)INFINITY));
    SAVE("truncnorm(-inf,-4,1,2)", gn_truncated_normal(g, GN_F64, n, 1, 2, -(double)INFINITY, -7));
    SAVE("truncnorm(0.2,0.6)", gn_truncated_normal(g, GN_F64, n, 0, 1, 0.2, 0.6));
    SAVE("truncnorm(-3,4,1,2)", gn_truncated_normal(g, GN_F64, n, 1, 2, -5, 9));
    SAVE("poisson(0.3)", gn_poisson(g, GN_I64, n, 0.3));
    SAVE("poisson(9.5)", gn_poisson(g, GN_U16, n, 9.5));
    SAVE("poisson(10.5)", gn_poisson(g, GN_I32, n, 10.5));
    SAVE("poisson(400)", gn_poisson(g, GN_F64, n, 400));
    SAVE("binom(7,0.9)", gn_binomial(g, GN_U8, n, 7, 0.9));
    SAVE("binom(1000,0.004)", gn_binomial(g, GN_I64, n, 1000, 0.004));
    SAVE("binom(50,0.5)", gn_binomial(g, GN_I64, n, 50, 0.5));
    SAVE("binom(5000,0.83)", gn_binomial(g, GN_I64, n, 5000, 0.83));
    const float weights[] = {1, 0, 5, 0.5f, 0, 2, 0};
    gn_array *w = gn_array_from(g, GN_F32, GN_SHAPE(7), weights);
    SAVE("weights(1,0,5,0.5,0,2,0)", gn_choice(g, n, 7, true, w));
    SAVE("weights(1,1,1,1,1)", gn_choice(g, n, 5, true, NULL));
    gn_array *first[500];
    for (int i = 0; i < 500; i++) first[i] = gn_choice(g, GN_SHAPE(4), 7, false, w);
    SAVE("apart(1,0,5,0.5,0,2,0)", gn_stack(first, 500, 0));
    for (int i = 0; i < 500; i++) first[i] = gn_choice(g, GN_SHAPE(1), 4, false, NULL);
    SAVE("weights(1,1,1,1)", gn_concat(first, 500, 0));
    fclose(f);
    assert_true(test_make_cases("random_check", "random.txt"));
}

static void test_own_streams(void **state) {
    gn_context *g = (gn_context *)*state;
    // An element is the same whatever its neighbours and the number of them are.
    gn_seed(g, 7);
    gn_array *a = gn_gamma(g, GN_F64, GN_SHAPE(1000), 0.6, 1);
    gn_seed(g, 7);
    gn_array *b = gn_gamma(g, GN_F64, GN_SHAPE(300), 0.6, 1);
    assert_true(gn_item(gn_all(gn_eq(b, gn_slice(a, 0, 0, 300, 1)), GN_ALL)) == 1);
    const uint64_t s0 = gn_seed_split(g), s1 = gn_seed_split(g);
    assert_true(s0 != s1);
    gn_seed(g, 7);
    gn_gamma(g, GN_F64, GN_SHAPE(300), 0.6, 1);
    assert_true(gn_seed_split(g) == s0);
    gn_seed(g, s0);
    b = gn_rand(g, GN_F32, GN_SHAPE(64));
    gn_seed(g, s1);
    assert_true(gn_item(gn_any(gn_eq(b, gn_rand(g, GN_F32, GN_SHAPE(64))), GN_ALL)) == 0);
    a = gn_reshape(gn_arange(g, GN_F32, 0, 60, 1), GN_SHAPE(3, 20));
    b = gn_shuffle(a, -1);
    assert_true(gn_item(gn_all(gn_eq(gn_sort(b, -1, false), a), GN_ALL)) == 1);
    assert_true(gn_item(gn_all(gn_eq(b, a), GN_ALL)) == 0);
    expect_shape(gn_choice(g, GN_SHAPE(0, 3), 0, true, NULL), 0, 3);
    expect_values(gn_sort(gn_choice(g, GN_SHAPE(5), 5, false, NULL), 0, false), 0, 1, 2, 3, 4);
    expect_values(gn_poisson(g, GN_U8, GN_SHAPE(2), 1e6), 255, 255);
    expect_values(gn_binomial(g, GN_F32, GN_SHAPE(2), 12, 1), 12, 12);
    expect_values(gn_exponential(g, GN_F16, GN_SHAPE(2), 0), 0, 0);
    // Ends that are one number in units of the deviation.
    assert_true(gn_item(gn_truncated_normal(g, GN_F64, GN_SHAPE(), 0, 1e300, -1e-300, -1e-310)) <= -1e-310);
    const double far_out = gn_item(gn_truncated_normal(g, GN_F64, GN_SHAPE(), 0, 1, 1e12, 1e300));
    assert_true(far_out >= 1e12 && far_out < 1.0001e12);
    assert_null(gn_gamma(g, GN_F32, GN_SHAPE(2), 0, 1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_gamma: shape and scale are not both above 0 (0, 1)");
    assert_null(gn_beta(g, GN_I32, GN_SHAPE(2), 1, 1));
    expect_error(g, GN_ERROR_DTYPE, "gn_beta: int32 is not a float dtype");
    assert_null(gn_poisson(g, GN_C64, GN_SHAPE(2), 1));
    expect_error(g, GN_ERROR_DTYPE, "gn_poisson: complex64 is neither a float nor an integer dtype");
    assert_null(gn_binomial(g, GN_I32, GN_SHAPE(2), -1, 0.5));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_truncated_normal(g, GN_F32, GN_SHAPE(2), 0, 1, 2, 2));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_choice(g, GN_SHAPE(6), 5, false, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_choice: 6 without replacement of 5");
    assert_null(gn_choice(g, GN_SHAPE(6), 0, true, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_choice: there is nothing to choose from");
    assert_null(gn_choice(g, GN_SHAPE(1), 60, true, a));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_choice(g, GN_SHAPE(1), 3, true, gn_arange(g, GN_F32, -1, 2, 1)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_choice: the weights are not numbers from 0 on with some above");
    assert_null(gn_shuffle(a, 2));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_shuffle: axis 2 is not one of 2");
}

static void test_refused(void **state) {
    gn_context *g = (gn_context *)*state;
    assert_null(gn_rand(g, GN_I32, GN_SHAPE(2)));
    expect_error(g, GN_ERROR_DTYPE, "gn_rand: int32 is not a float dtype");
    assert_null(gn_randn(g, GN_F32, GN_SHAPE(-2)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_uniform(g, GN_F32, GN_SHAPE(2), 0, INFINITY));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_uniform: the range is not finite");
    assert_null(gn_uniform(g, GN_BF16, GN_SHAPE(3), -3e38, 3e38)); // nor in float32
    expect_error(g, GN_ERROR_ARGUMENT, "gn_uniform: the range is not finite");
    assert_non_null(gn_uniform(g, GN_F64, GN_SHAPE(3), -3e38, 3e38));
    assert_non_null(gn_uniform(g, GN_F32, GN_SHAPE(3), -3e38, 4e37));
    assert_null(gn_normal(g, GN_F32, GN_SHAPE(2), 0, -1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_normal: the deviation -1 is negative");
    assert_null(gn_randint(g, GN_I32, GN_SHAPE(2), 3, 3));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_randint: low 3 is not below high 3");
    assert_null(gn_randint(g, GN_I8, GN_SHAPE(2), 0, 129));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_randint: 0 to 128 does not fit int8");
    assert_null(gn_randint(g, GN_F32, GN_SHAPE(2), 0, 3));
    expect_error(g, GN_ERROR_DTYPE, "gn_randint: float32 is not an integer dtype");
    assert_null(gn_bernoulli(g, GN_F32, GN_SHAPE(2), 1.5));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_bernoulli: the probability 1.5 is not between 0 and 1");
    assert_null(gn_bernoulli(g, GN_F32, GN_SHAPE(2), NAN));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_permutation(g, GN_I32, -1));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_permutation(g, GN_I8, 129));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_permutation: 0 to 128 does not fit int8");
    assert_null(gn_permutation(g, GN_F32, 3));
    expect_error(g, GN_ERROR_DTYPE, "gn_permutation: float32 is not an integer dtype");
    assert_null(gn_rand(NULL, GN_F32, GN_SHAPE(2)));
    assert_null(gn_normal(NULL, GN_F32, GN_SHAPE(2), 0, -1));
    gn_seed(NULL, 1);
}

static void everything(gn_context *g) {
    gn_scope_begin(g);
    gn_eval(gn_uniform(g, GN_F16, GN_SHAPE(100), 1, 2));
    gn_eval(gn_bernoulli(g, GN_I32, GN_SHAPE(100), 0.5));
    gn_permutation(g, GN_I32, 10000);
    gn_gamma(g, GN_F32, GN_SHAPE(1000), 2, 1);
    gn_choice(g, GN_SHAPE(10), 30, false, gn_arange(g, GN_F32, 0, 30, 1));
    gn_scope_end(g);
}

static void test_out_of_memory(void **state) {
    (void)state;
    test_most_allocations(everything);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_philox),     GN_TEST(test_same_everywhere),
        GN_TEST(test_statistics), GN_TEST(test_permutation),
        GN_TEST(test_distributions), GN_TEST(test_own_streams),
        GN_TEST(test_refused),    cmocka_unit_test(test_out_of_memory),
    };
    return test_run(tests);
}
