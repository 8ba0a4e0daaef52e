// Batches of samples: their order, fields of three kinds, ends of epochs, failures, threads, and the files of CIFAR-10.

#include "test.h"

#if !defined(GPUNUM_NO_THREADS) && !defined(_WIN32)
#include <pthread.h>
#include <unistd.h>
#endif

enum { SAMPLES = 23 };

// Samples i: i, and (i, -i, i / 2).
typedef struct samples {
    int32_t one[SAMPLES];
    float three[SAMPLES][3];
} samples;

static void make_samples(samples *s, gn_loader_field *field) {
    for (int i = 0; i < SAMPLES; i++) {
        s->one[i] = i;
        s->three[i][0] = (float)i;
        s->three[i][1] = (float)-i;
        s->three[i][2] = (float)i / 2;
    }
    memset(field, 0, 2 * sizeof *field);
    field[0].data = s->one;
    field[0].t = GN_I32;
    field[0].s = GN_SHAPE();
    field[1].data = s->three;
    field[1].t = GN_F32;
    field[1].s = GN_SHAPE(3);
}

// The next batch's samples into `at`; how many, 0 where the epoch ends. Fields have to agree.
static int next(gn_loader *l, int *at) {
    gn_array *b[2];
    int32_t one[SAMPLES];
    float three[SAMPLES][3];
    if (!gn_loader_next(l, b)) return 0;
    const int n = (int)gn_size(b[0]);
    assert_true(n > 0 && n <= SAMPLES);
    expect_shape(b[0], n);
    expect_shape(b[1], n, 3);
    assert_int_equal(gn_dtype_of(b[0]), GN_I32);
    assert_int_equal(gn_dtype_of(b[1]), GN_F32);
    assert_int_equal(gn_read(b[0], one, sizeof(int32_t) * (size_t)n), GN_OK);
    assert_int_equal(gn_read(b[1], three, 12 * (size_t)n), GN_OK);
    for (int i = 0; i < n; i++) {
        at[i] = one[i];
        if (three[i][0] != (float)one[i] || three[i][1] != (float)-one[i] || three[i][2] != (float)one[i] / 2)
            fail_msg("sample %d: fields do not belong together", one[i]);
    }
    return n;
}

// An epoch's samples in their order; how many.
static int epoch(gn_loader *l, int *at) {
    int n = 0, k;
    while ((k = next(l, at + n)) > 0) n += k;
    return n;
}

static gn_loader *open_loader(gn_context *g, samples *s, int64_t batch, bool shuffle, bool drop, uint64_t seed, int prefetch) {
    gn_loader_field field[2];
    gn_loader_options o;
    make_samples(s, field);
    memset(&o, 0, sizeof o);
    o.batch = batch;
    o.shuffle = shuffle;
    o.drop_last = drop;
    o.seed = seed;
    o.prefetch = prefetch;
    gn_loader *l = gn_loader_new(g, field, 2, SAMPLES, &o);
    assert_non_null(l);
    return l;
}

// Every batch size and depth: each sample once in an epoch, in the same order whatever the batches and the thread.
static void test_order(void **state) {
    gn_context *g = (gn_context *)*state;
    static samples s, t;
    int first[3][SAMPLES];
    for (int prefetch = -1; prefetch < 6; prefetch++)
        for (int batch = 1; batch <= SAMPLES + 2; batch += 1 + batch / 5) {
            gn_loader *l = open_loader(g, &s, batch, true, false, 7, prefetch);
            assert_int_equal(gn_loader_batches(l), (SAMPLES + batch - 1) / batch);
            for (int e = 0; e < 3; e++) {
                int at[SAMPLES], seen[SAMPLES] = {0};
                assert_int_equal(epoch(l, at), SAMPLES);
                for (int i = 0; i < SAMPLES; i++) seen[at[i]]++;
                for (int i = 0; i < SAMPLES; i++) assert_int_equal(seen[i], 1);
                if (prefetch == -1 && batch == 1) memcpy(first[e], at, sizeof at);
                assert_memory_equal(first[e], at, sizeof at);
            }
            gn_loader_free(l);
        }
    assert_memory_not_equal(first[0], first[1], sizeof first[0]);
    // Another seed, another order; without shuffle their own.
    int at[SAMPLES];
    gn_loader *other = open_loader(g, &s, 4, true, false, 8, 0), *plain = open_loader(g, &t, 4, false, true, 8, 0);
    epoch(other, at);
    assert_memory_not_equal(first[0], at, sizeof at);
    assert_int_equal(gn_loader_batches(plain), SAMPLES / 4);
    assert_int_equal(epoch(plain, at), SAMPLES / 4 * 4);
    for (int i = 0; i < SAMPLES / 4 * 4; i++) assert_int_equal(at[i], i);
    gn_loader_free(other);
    gn_loader_free(plain);
    gn_loader_free(NULL);
}

// Fisher and Yates with Philox, said once more: the order is part of what a seed means.
static void test_known_order(void **state) {
    gn_context *g = (gn_context *)*state;
    static samples s;
    static const int expected[2][8] = {{7, 4, 2, 0, 6, 5, 1, 3}, {4, 5, 2, 7, 6, 3, 0, 1}};
    gn_loader_field field[2];
    gn_loader_options o;
    gn_array *b[2];
    int32_t at[8];
    make_samples(&s, field);
    memset(&o, 0, sizeof o);
    o.batch = 8;
    o.shuffle = true;
    o.seed = 0x123456789abcdefu;
    gn_loader *l = gn_loader_new(g, field, 2, 8, &o);
    for (int e = 0; e < 2; e++) {
        assert_true(gn_loader_next(l, b));
        assert_int_equal(gn_read(b[0], at, sizeof at), GN_OK);
        for (int i = 0; i < 8; i++) assert_int_equal(at[i], expected[e][i]);
        assert_false(gn_loader_next(l, b));
    }
    gn_loader_free(l);
}

// Every order of 4 samples is as likely: chi squared over 24 classes, 0.1 % of all streams would exceed 49.7.
static void test_uniform(void **state) {
    gn_context *g = (gn_context *)*state;
    static samples s;
    gn_loader_field field[2];
    gn_loader_options o;
    int count[256] = {0};
    make_samples(&s, field);
    memset(&o, 0, sizeof o);
    o.batch = 4;
    o.shuffle = true;
    gn_loader *l = gn_loader_new(g, field, 1, 4, &o);
    for (int e = 0; e < 4800; e++) {
        gn_array *b;
        int32_t at[4];
        gn_scope_begin(g);
        assert_true(gn_loader_next(l, &b));
        gn_read(b, at, sizeof at);
        assert_false(gn_loader_next(l, &b));
        gn_scope_end(g);
        count[at[0] | at[1] << 2 | at[2] << 4 | at[3] << 6]++;
    }
    double chi = 0;
    int classes = 0;
    for (int i = 0; i < 256; i++)
        if (count[i] > 0) chi += (count[i] - 200.0) * (count[i] - 200.0) / 200, classes++;
    assert_int_equal(classes, 24);
    assert_true(chi < 49.7);
    gn_loader_free(l);
}

// Seeking gives what a loader that came there by itself gives.
static void test_seek(void **state) {
    gn_context *g = (gn_context *)*state;
    static samples s;
    for (int prefetch = -1; prefetch < 4; prefetch++) {
        gn_loader *a = open_loader(g, &s, 5, true, false, 3, prefetch);
        int all[4][SAMPLES], at[SAMPLES];
        for (int e = 0; e < 4; e++) epoch(a, all[e]);
        for (int k = 0; k < 40; k++) {
            const int e = (int)draw(4), b = (int)draw(6), skip_batches = (int)draw(3);
            assert_int_equal(gn_loader_seek(a, e, b), GN_OK);
            const int n = epoch(a, at);
            assert_int_equal(n, b < 5 ? SAMPLES - 5 * b : 0);
            assert_memory_equal(at, all[e] + SAMPLES - n, sizeof(int) * (size_t)n);
            for (int i = 0; i < skip_batches; i++) next(a, at);
        }
        assert_int_equal(gn_loader_seek(a, 0, 7), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, "gn_loader_seek: there is no batch 7 of epoch 0: an epoch has 5");
        assert_int_equal(gn_loader_seek(a, INT64_MAX, 0), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, NULL);
        assert_int_equal(gn_loader_seek(a, -1, 0), GN_ERROR_ARGUMENT);
        expect_error(g, GN_ERROR_ARGUMENT, NULL);
        gn_loader_free(a);
    }
    assert_int_equal(gn_loader_seek(NULL, 0, 0), GN_ERROR_ARGUMENT);
}

// A callback: writes field 1 from field 0, changes field 0, and fails where it is told to.
typedef struct filler {
    int64_t fails_at;
    int calls;
} filler;
static const char *fill(void *user, const int64_t *indices, int64_t count, void *const *out) {
    filler *f = (filler *)user;
    int32_t *one = (int32_t *)out[0];
    double *two = (double *)out[1];
    f->calls++;
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] == f->fails_at) return "sample 11 is damaged";
        if (one[i] != (int32_t)indices[i]) return "field 0 is not filled";
        two[2 * i] = sqrt((double)indices[i]);
        two[2 * i + 1] = (double)count;
        one[i] += 100;
    }
    return NULL;
}

static void test_fill(void **state) {
    gn_context *g = (gn_context *)*state;
    static samples s;
    for (int prefetch = -1; prefetch < 3; prefetch++) {
        gn_loader_field field[2];
        gn_loader_options o;
        filler f = {-1, 0};
        gn_array *b[2];
        make_samples(&s, field);
        field[0].data = NULL; // an array instead, every second of its columns
        gn_array *wide = gn_arange(g, GN_I32, 0, 2 * SAMPLES, 1);
        field[0].array = gn_floor_div_s(gn_slice(wide, 0, 0, GN_NONE, 2), 2);
        field[1].data = NULL;
        field[1].t = GN_F64;
        field[1].s = GN_SHAPE(2);
        memset(&o, 0, sizeof o);
        o.batch = 5;
        o.prefetch = prefetch;
        o.fill = fill;
        o.user = &f;
        f.fails_at = 11;
        gn_loader *l = gn_loader_new(g, field, 2, SAMPLES, &o);
        assert_non_null(l);
        for (int e = 0; e < 2; e++)
            for (int k = 0; k < 6; k++) {
                const bool ok = gn_loader_next(l, b);
                assert_int_equal(ok, k != 2 && k < 5);
                if (!ok) {
                    char text[80];
                    snprintf(text, sizeof text, "gn_loader_next: batch 2 of epoch %d: sample 11 is damaged", e);
                    if (k == 2) expect_error(g, GN_ERROR_IO, text);
                    assert_null(b[0]);
                    assert_null(b[1]);
                    continue;
                }
                const int64_t n = gn_size(b[0]);
                assert_int_equal(gn_item_int(gn_slice(b[0], 0, 0, 1, 1)), 100 + 5 * k);
                expect_shape(b[1], n, 2);
                gn_array *want = gn_sqrt(gn_cast(gn_sub_s(b[0], 100), GN_F64));
                assert_true(gn_allclose(gn_index(b[1], ":, 0"), want, 1e-15, 0, false));
                assert_true(gn_item(gn_min(gn_index(b[1], ":, 1"), GN_ALL)) == (double)n);
            }
        gn_loader_free(l);
        assert_true(f.calls >= 10);
    }
}

// A fill that calls the loader that waits for it, in each of the ways, or another one whose fill does.
#if !defined(GPUNUM_NO_THREADS) && !defined(_WIN32)
static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER; // of what a thread may look at before gn_loader_new is back
static void busy_hold(bool on) { on ? pthread_mutex_lock(&busy_lock) : pthread_mutex_unlock(&busy_lock); }
enum { BUSY_DEPTHS = 4 };
#else
static void busy_hold(bool on) { (void)on; }
enum { BUSY_DEPTHS = 1 };
#endif

typedef struct busy {
    gn_context *g;
    gn_loader *loader;
    int way, told;
} busy;

static const char *busy_fill(void *user, const int64_t *indices, int64_t count, void *const *out) {
    busy *b = (busy *)user;
    gn_array *batch[2];
    (void)indices, (void)count, (void)out;
    if (b->way != 5) busy_hold(true);
    gn_loader *l = b->loader;
    if (b->way != 5) busy_hold(false);
    if (b->way == 0 || b->way == 5) b->told += !gn_loader_next(l, batch);
    if (b->way == 1) b->told += gn_loader_seek(l, 0, 0) == GN_ERROR_UNSUPPORTED;
    if (b->way == 2) gn_loader_free(l), b->told++;
    if (b->way == 3) gn_close(b->g), b->told++;
    if (b->way == 4 && gn_loader_next(l, batch)) {
        b->told++;
        gn_release(batch[0]);
        gn_release(batch[1]);
    }
    return NULL;
}

static void test_fill_that_calls(void **state) {
    gn_context *g = (gn_context *)*state;
    static const char *const names[] = {"gn_loader_next", "gn_loader_seek", "gn_loader_free", "gn_close", "gn_loader_next"};
    static samples s;
    gn_loader_field field[2];
    gn_loader_options o;
    char text[100];
    int at[SAMPLES];
    make_samples(&s, field);
    memset(&o, 0, sizeof o);
    o.batch = 5;
    o.fill = busy_fill;
    for (int depth = 0; depth < BUSY_DEPTHS; depth++)
        for (int way = 0; way < 5; way++) {
            busy outer = {g, NULL, way, 0}, inner = {g, NULL, 5, 0};
            busy_hold(true);
            o.user = &outer;
            o.prefetch = depth == 1 ? 0 : depth - 1;
            gn_loader *l = depth == 0 || way < 4 ? gn_loader_new(g, field, 2, SAMPLES, &o) : NULL, *other = NULL;
            if (way == 4) {
                o.user = &inner;
                o.prefetch = -1;
                other = gn_loader_new(g, field, 2, SAMPLES, &o);
                if (l == NULL) {
                    o.user = &outer;
                    o.prefetch = depth == 1 ? 0 : depth - 1;
                    l = gn_loader_new(g, field, 2, SAMPLES, &o);
                }
                inner.loader = l;
            }
            assert_non_null(l);
            gn_loader_options plain;
            memset(&plain, 0, sizeof plain);
            plain.batch = 5;
            plain.prefetch = -1;
            gn_loader *newer = way == 3 ? gn_loader_new(g, field, 2, SAMPLES, &plain) : NULL; // which a refused gn_close leaves
            outer.loader = way == 4 ? other : l;
            busy_hold(false);
            assert_int_equal(epoch(l, at), SAMPLES);
            assert_true(newer == NULL || epoch(newer, at) == SAMPLES);
            gn_loader_free(l);
            gn_loader_free(other);
            gn_loader_free(newer);
            assert_true(outer.told >= 5 && (way < 4 || inner.told >= 4));
            snprintf(text, sizeof text, "%s: the loader is waiting for this fill", names[way]);
            expect_error(g, GN_ERROR_UNSUPPORTED, text);
        }
}

// Fields of arrays keep what these were; all dtypes; samples without elements.
static void test_arrays(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int t = 0; t < (int)GN_DTYPE_COUNT; t++) {
        gn_loader_field field[2];
        gn_loader_options o;
        gn_array *b[2];
        memset(field, 0, sizeof field);
        memset(&o, 0, sizeof o);
        if (t == GN_C128 && test_on_vulkan()) continue;
        gn_array *a = gn_cast(gn_reshape(gn_arange(g, GN_F32, 0, 42, 1), GN_SHAPE(7, 3, 2)), (gn_dtype)t), *kept = gn_copy(a);
        field[0].array = gn_swap_axes(a, 1, 2);
        field[1].array = gn_zeros(g, GN_F32, GN_SHAPE(7, 0));
        o.batch = 3;
        gn_loader *l = gn_loader_new(g, field, 2, 7, &o);
        assert_non_null(l);
        gn_assign(a, gn_zeros_like(a));
        for (int k = 0; k < 3; k++) {
            assert_true(gn_loader_next(l, b));
            assert_int_equal(gn_dtype_of(b[0]), t);
            expect_shape(b[1], k < 2 ? 3 : 1, 0);
            assert_true(gn_array_equal(b[0], gn_swap_axes(gn_slice(kept, 0, 3 * k, 3 * k + 3, 1), 1, 2), false));
        }
        assert_false(gn_loader_next(l, b));
        gn_loader_free(l);
    }
}

static void test_no_samples(void **state) {
    gn_context *g = (gn_context *)*state;
    static samples s;
    gn_loader_field field[2];
    gn_loader_options o;
    gn_array *b[2];
    make_samples(&s, field);
    memset(&o, 0, sizeof o);
    for (int k = 0; k < 2; k++) {
        o.batch = k > 0 ? INT64_MAX : 0;
        o.drop_last = k > 0;
        gn_loader *l = gn_loader_new(g, field, 2, k > 0 ? SAMPLES : 0, &o);
        assert_non_null(l);
        assert_int_equal(gn_loader_batches(l), 0);
        for (int i = 0; i < 3; i++) assert_false(gn_loader_next(l, b));
        assert_int_equal(gn_loader_seek(l, 5, 0), GN_OK);
        assert_false(gn_loader_next(l, b));
        gn_loader_free(l);
    }
    gn_loader *l = gn_loader_new(g, field, 2, SAMPLES, NULL); // one by one
    assert_int_equal(gn_loader_batches(l), SAMPLES);
    gn_loader_free(l);
    assert_int_equal(gn_loader_batches(NULL), 0);
    assert_false(gn_loader_next(NULL, b));
}

static void test_refused(void **state) {
    gn_context *g = (gn_context *)*state;
    static samples s;
    gn_loader_field field[2];
    gn_loader_options o;
    make_samples(&s, field);
    memset(&o, 0, sizeof o);
#define REFUSED(call, status, text) assert_null(call), expect_error(g, status, text)
    REFUSED(gn_loader_new(g, NULL, 2, SAMPLES, NULL), GN_ERROR_ARGUMENT, "gn_loader_new: 0 fields, 23 samples in batches of 1");
    REFUSED(gn_loader_new(g, field, 0, SAMPLES, NULL), GN_ERROR_ARGUMENT, "gn_loader_new: 0 fields, 23 samples in batches of 1");
    REFUSED(gn_loader_new(g, field, 2, -1, NULL), GN_ERROR_ARGUMENT, NULL);
    REFUSED(gn_loader_new(g, field, 2, INT64_MAX, NULL), GN_ERROR_ARGUMENT, NULL);
    o.batch = -2;
    REFUSED(gn_loader_new(g, field, 2, SAMPLES, &o), GN_ERROR_ARGUMENT, "gn_loader_new: 2 fields, 23 samples in batches of -2");
    o.batch = 2;
    field[0].data = NULL;
    REFUSED(gn_loader_new(g, field, 2, SAMPLES, &o), GN_ERROR_ARGUMENT, "gn_loader_new: field 0 has no samples, and there is no fill");
    field[0].t = (gn_dtype)99;
    REFUSED(gn_loader_new(g, field, 2, SAMPLES, &o), GN_ERROR_DTYPE, NULL);
    field[0].t = GN_I32;
    field[0].s = GN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1);
    REFUSED(gn_loader_new(g, field, 2, SAMPLES, &o), GN_ERROR_SHAPE, "gn_loader_new: samples of rank 8 leave no axis for the batch");
    field[0].s = GN_SHAPE(-1);
    REFUSED(gn_loader_new(g, field, 2, SAMPLES, &o), GN_ERROR_SHAPE, NULL);
    field[0].array = gn_zeros(g, GN_F32, GN_SHAPE(22, 2));
    REFUSED(gn_loader_new(g, field, 2, SAMPLES, &o), GN_ERROR_SHAPE,
            "gn_loader_new: the array of field 0 is (22,2), not of 23 samples");
    gn_context *other = test_open();
    field[0].array = gn_zeros(other, GN_F32, GN_SHAPE(SAMPLES));
    REFUSED(gn_loader_new(g, field, 2, SAMPLES, &o), GN_ERROR_STALE, NULL);
    gn_release(field[0].array);
    gn_close(other);
    make_samples(&s, field);
    gn_loader *l = gn_loader_new(g, field, 2, SAMPLES, &o);
    assert_false(gn_loader_next(l, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_loader_next: no room for the arrays");
    gn_loader_free(l);
    assert_null(gn_loader_new(NULL, field, 2, SAMPLES, &o));
}

static void use_loader(gn_context *g) {
    static samples s;
    gn_loader_field field[2];
    gn_loader_options o;
    make_samples(&s, field);
    memset(&o, 0, sizeof o);
    o.batch = 9;
    o.shuffle = true;
    gn_scope_begin(g);
    field[1].array = gn_ones(g, GN_F32, GN_SHAPE(SAMPLES, 2));
    gn_loader *l = gn_loader_new(g, field, 2, SAMPLES, &o);
    gn_array *b[2];
    for (int k = 0; k < 3 && l != NULL; k++)
        if (!gn_loader_next(l, b)) assert_null(b[1]);
    gn_loader_free(l);
    gn_scope_end(g);
}
static void test_allocations(void **state) {
    (void)state;
    test_most_allocations(use_loader);
}

// gn_close takes loaders and their threads with it.
static void test_close_frees(void **state) {
    (void)state;
    for (int k = 0; k < 20; k++) {
        static samples s, t;
        gn_array *b[2];
        gn_context *g = test_open();
        gn_loader *l = open_loader(g, &s, 1 + k, true, false, 1, k % 4), *idle = open_loader(g, &t, 3, true, false, 1, 0);
        for (int i = 0; i < k; i++)
            if (gn_loader_next(l, b)) gn_release(b[0]), gn_release(b[1]);
        (void)idle;
        test_close(g);
    }
}

#if !defined(GPUNUM_NO_THREADS) && !defined(_WIN32)
// Four threads share a loader, while another computes: each sample once.
typedef struct worker {
    pthread_t thread;
    gn_context *g;
    gn_loader *l;
    int seen[SAMPLES], ends;
} worker;

static void *work(void *user) {
    worker *w = (worker *)user;
    while (w->ends < 30) {
        gn_array *b[2];
        int32_t one[SAMPLES];
        gn_scope_begin(w->g);
        if (!gn_loader_next(w->l, b))
            w->ends++;
        else if (gn_read(b[0], one, gn_bytes(b[0])) == GN_OK)
            for (int64_t i = 0; i < gn_size(b[0]); i++) w->seen[one[i]]++;
        gn_scope_end(w->g);
    }
    return NULL;
}

static void test_threads(void **state) {
    gn_context *g = (gn_context *)*state;
    static samples s;
    for (int prefetch = -1; prefetch < 2; prefetch++) {
        static worker w[4];
        int total[SAMPLES] = {0};
        gn_loader *l = open_loader(g, &s, 3, true, false, 5, prefetch);
        memset(w, 0, sizeof w);
        for (int i = 0; i < 4; i++) {
            w[i].g = g;
            w[i].l = l;
            assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
        }
        for (int i = 0; i < 20; i++) {
            gn_scope_begin(g);
            assert_true(gn_item(gn_sum(gn_ones(g, GN_F32, GN_SHAPE(100)), GN_ALL)) == 100);
            gn_scope_end(g);
        }
        for (int i = 0; i < 4; i++) pthread_join(w[i].thread, NULL);
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < SAMPLES; k++) total[k] += w[i].seen[k];
        for (int k = 0; k < SAMPLES; k++) assert_int_equal(total[k], 120); // 4 threads saw 30 ends each
        gn_loader_free(l);
    }
}

// A callback that uses the context itself, while the caller waits for it.
static const char *fill_from_context(void *user, const int64_t *indices, int64_t count, void *const *out) {
    gn_context *g = (gn_context *)user;
    gn_array *a = gn_arange(g, GN_F32, (double)indices[0], (double)(indices[0] + count), 1);
    const gn_status status = gn_read(a, out[0], (size_t)count * 4);
    gn_release(a);
    return status == GN_OK ? NULL : "gn_read failed";
}
static void test_fill_uses_context(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_loader_field field;
    gn_loader_options o;
    gn_array *b;
    memset(&field, 0, sizeof field);
    memset(&o, 0, sizeof o);
    field.s = GN_SHAPE();
    o.batch = 4;
    o.fill = fill_from_context;
    o.user = g;
    gn_loader *l = gn_loader_new(g, &field, 1, 12, &o);
    for (int k = 0; k < 3; k++) {
        assert_true(gn_loader_next(l, &b));
        expect_values(b, 4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3);
    }
    gn_loader_free(l);
}
#endif

// ---- CIFAR-10

static void write_cifar(const char *path, int images, int first) {
    unsigned char *data = (unsigned char *)malloc((size_t)images * 3073 + 1);
    for (int i = 0; i < images; i++) {
        data[i * 3073] = (unsigned char)((first + i) % 10);
        for (int k = 0; k < 3072; k++) data[i * 3073 + 1 + k] = (unsigned char)(first + i + k % 251);
    }
    test_write_file(path, data, (size_t)images * 3073);
    free(data);
}

static void test_cifar10(void **state) {
    gn_context *g = (gn_context *)*state;
    char name[40];
    gn_array *labels = NULL;
    for (int i = 1; i <= 5; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        write_cifar(name, i == 4 ? 0 : i, 10 * i);
    }
    write_cifar("test_batch.bin", 3, 7);
    gn_array *x = gn_load_cifar10(g, ".", true, &labels);
    expect_shape(x, 11, 3, 32, 32);
    expect_shape(labels, 11);
    assert_int_equal(gn_dtype_of(x), GN_U8);
    assert_int_equal(gn_dtype_of(labels), GN_U8);
    expect_values(labels, 0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 4);
    expect_values(gn_index(x, ":, 0, 0, 0"), 10, 20, 21, 30, 31, 32, 50, 51, 52, 53, 54);
    expect_values(gn_index(x, "10, 2, 31, 30:"), 54 + (3070 % 251), 54 + (3071 % 251));
    expect_shape(gn_load_cifar10(g, ".", false, NULL), 3, 3, 32, 32);
    labels = x;
    assert_null(gn_load_cifar10(g, NULL, true, &labels));
    assert_null(labels);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_load_cifar10: the folder is NULL");
    assert_null(gn_load_cifar10(g, "nowhere", true, &labels));
    expect_error(g, GN_ERROR_IO, "gn_load_cifar10: cannot open nowhere/data_batch_1.bin: No such file or directory");
    static char longer[1100];
    memset(longer, 'a', sizeof longer - 1);
    assert_null(gn_load_cifar10(g, longer, false, &labels));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_load_cifar10: the path is too long");
    test_write_file("data_batch_3.bin", longer, 1000);
    assert_null(gn_load_cifar10(g, ".", true, &labels));
    expect_error(g, GN_ERROR_FORMAT,
                 "gn_load_cifar10: ./data_batch_3.bin: the size is no multiple of 3073 bytes, a label and an image");
    unsigned char *data = (unsigned char *)calloc(2, 3073);
    data[3073] = 10;
    test_write_file("test_batch.bin", data, 6146);
    free(data);
    assert_null(gn_load_cifar10(g, ".", false, &labels));
    expect_error(g, GN_ERROR_FORMAT, "gn_load_cifar10: ./test_batch.bin: the label of image 1 is 10, not 0 to 9");
    assert_null(labels);
}

// Memory of the array of images is the moment at which the file changes.
static int images_then;
static void *changes_cifar(void *user, size_t size) {
    if (size > 3 * 3072) write_cifar("test_batch.bin", images_then, 7);
    return test_allocate(user, size);
}

static void test_changed_cifar(void **state) {
    (void)state;
    gn_options o = test_options();
    o.backend = GN_BACKEND_CPU; // where nobody else asks for memory
    o.allocator.allocate = changes_cifar;
    for (images_then = 1; images_then < 6; images_then++) {
        write_cifar("test_batch.bin", 3, 7);
        gn_context *g = test_open_with(&o);
        write_cifar("test_batch.bin", 3, 7);
        gn_array *labels = NULL, *x = gn_load_cifar10(g, ".", false, &labels);
        assert_int_equal(x != NULL, images_then == 3);
        assert_int_equal(labels != NULL, images_then == 3);
        if (x == NULL) expect_error(g, GN_ERROR_IO, "gn_load_cifar10: .: a file changed while it was read");
        gn_release(x);
        gn_release(labels);
        test_close(g);
    }
}

static void load_cifar(gn_context *g) {
    gn_scope_begin(g);
    gn_array *labels;
    gn_load_cifar10(g, ".", false, &labels);
    gn_scope_end(g);
}
static void test_cifar_allocations(void **state) {
    (void)state;
    write_cifar("test_batch.bin", 3, 7);
    test_most_allocations(load_cifar);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_order), GN_TEST(test_known_order), GN_TEST(test_uniform), GN_TEST(test_seek), GN_TEST(test_fill), GN_TEST(test_fill_that_calls),
        GN_TEST(test_arrays), GN_TEST(test_no_samples), GN_TEST(test_refused), cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_close_frees),
#if !defined(GPUNUM_NO_THREADS) && !defined(_WIN32)
        GN_TEST(test_threads), GN_TEST(test_fill_uses_context),
#endif
        GN_TEST(test_cifar10), cmocka_unit_test(test_changed_cifar), cmocka_unit_test(test_cifar_allocations)};
    return test_run(tests);
}
