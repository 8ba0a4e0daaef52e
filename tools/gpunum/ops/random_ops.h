// >>random_ops
// Random arrays. Every call takes the next Philox blocks of the context's counter, as many on every
// backend, so that the numbers do not depend on where they are made.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/random.h"
#include "../core/place.h"
#include "../cpu/cpu_jobs.h"
#endif

GPUNUM_API void gn_seed(gn_context *g, uint64_t seed) {
    if (!gni_begin_context("gn_seed", g)) return;
    g->seed = seed;
    g->counter = 0;
    gni_end_plain(g);
}

// Runs one random job into a new array; `job` says the kind and its range.
static gn_array *gni_random_array(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s,
                                  gni_random *job) {
    gn_array *y = gni_array_empty(g, fn, t, s);
    if (y == NULL) return NULL;
    job->seed = g->seed;
    job->counter = g->counter;
    job->n = gni_elements(s);
    memset(&job->out, 0, sizeof job->out);
    job->out.buf = y->buf;
    job->out.dtype = t;
    job->out.stride[0] = 1;
    int64_t per_block = gni_random_pairs(job) ? 2 : 4;
    g->counter += (uint64_t)(job->n / per_block + (job->n % per_block != 0));
    if (gni_run(g, GNI_JOB_RANDOM, job, y)) return y;
    gni_unref(g, y);
    return NULL;
}

static bool gni_need_float(gn_context *g, const char *fn, gn_dtype t) {
    if (gni_is_float(t)) return true;
    gni_fail(g, GN_ERROR_DTYPE, "%s: %s is not a float dtype", fn, gn_dtype_name(t));
    return false;
}

static gn_array *gni_public_random(const char *fn, gn_context *g, gn_dtype t, const gn_shape *s,
                                   gni_random_kind kind) {
    if (!gni_begin_context(fn, g)) return NULL;
    gni_random job;
    memset(&job, 0, sizeof job);
    job.kind = kind;
    gn_array *y = NULL;
    if (gni_shape_ok(g, fn, t, s) && gni_need_float(g, fn, t))
        y = gni_random_array(g, fn, t, s, &job);
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_rand(gn_context *g, gn_dtype t, gn_shape s) {
    return gni_public_random("gn_rand", g, t, &s, GNI_RAND_UNIFORM);
}

GPUNUM_API gn_array *gn_randn(gn_context *g, gn_dtype t, gn_shape s) {
    return gni_public_random("gn_randn", g, t, &s, GNI_RAND_NORMAL);
}

// offset + scale * numbers of that kind. Halves are computed in float32 and rounded once.
static gn_array *gni_random_scaled(const char *fn, gn_context *g, gn_dtype t, const gn_shape *s,
                                   gni_random_kind kind, double scale, double offset) {
    if (!gni_begin_context(fn, g)) return NULL;
    gn_array *y = NULL;
    gn_scope_begin(g);
    if (!(fabs(scale) < GNI_INF && fabs(offset) < GNI_INF)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the range is not finite", fn);
    } else if (gni_shape_ok(g, fn, t, s) && gni_need_float(g, fn, t)) {
        gn_dtype made = t == GN_F64 ? GN_F64 : GN_F32;
        y = gn_add_s(gn_mul_s(gni_public_random(fn, g, made, s, kind), scale), offset);
        if (made != t) y = gn_cast(y, t);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_uniform(gn_context *g, gn_dtype t, gn_shape s, double low, double high) {
    return gni_random_scaled("gn_uniform", g, t, &s, GNI_RAND_UNIFORM, high - low, low);
}

GPUNUM_API gn_array *gn_normal(gn_context *g, gn_dtype t, gn_shape s, double mean,
                               double deviation) {
    if (deviation < 0.0 && g != NULL) {
        gni_begin_context("gn_normal", g);
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_normal: the deviation %g is negative", deviation);
        return gni_end(g, NULL);
    }
    return gni_random_scaled("gn_normal", g, t, &s, GNI_RAND_NORMAL, deviation, mean);
}

// Whether integers from `low` to `most` fit the dtype.
static bool gni_range_fits(gn_dtype t, int64_t low, int64_t most) {
    double least, largest;
    gni_integer_range(t, &least, &largest);
    return (double)low >= least && (double)most <= largest;
}

GPUNUM_API gn_array *gn_randint(gn_context *g, gn_dtype t, gn_shape s, int64_t low, int64_t high) {
    const char *fn = "gn_randint";
    if (!gni_begin_context(fn, g)) return NULL;
    gn_array *y = NULL;
    if (!gni_shape_ok(g, fn, t, &s)) return gni_end(g, NULL);
    if (!gni_is_integer(t) && t != GN_BOOL) {
        gni_fail(g, GN_ERROR_DTYPE, "%s: %s is not an integer dtype", fn, gn_dtype_name(t));
    } else if (low >= high) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: low %lld is not below high %lld", fn, (long long)low,
                 (long long)high);
    } else if (!gni_range_fits(t, low, high - 1)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %lld to %lld does not fit %s", fn, (long long)low,
                 (long long)high - 1, gn_dtype_name(t));
    } else {
        gni_random job;
        memset(&job, 0, sizeof job);
        job.kind = GNI_RAND_RANGE;
        job.low = low;
        job.range = (uint64_t)high - (uint64_t)low;
        y = gni_random_array(g, fn, t, &s, &job);
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_bernoulli(gn_context *g, gn_dtype t, gn_shape s, double p) {
    const char *fn = "gn_bernoulli";
    if (!gni_begin_context(fn, g)) return NULL;
    gn_array *y = NULL;
    gn_scope_begin(g);
    if (!(p >= 0.0 && p <= 1.0))
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the probability %g is not between 0 and 1", fn, p);
    else if (gni_shape_ok(g, fn, t, &s))
        y = gn_cast(gn_lt_s(gni_public_random(fn, g, GN_F32, &s, GNI_RAND_UNIFORM), p), t);
    return gni_end_scope(g, y);
}

// ---- permutations

enum { GNI_DRAWS = 4096 };

// Random words for work on the CPU, made in batches.
typedef struct gni_draws {
    gn_context *g;
    gni_buffer *buf;
    int64_t at, have, batch;
    bool failed;
} gni_draws;

static uint32_t gni_draw(gni_draws *d) {
    if (d->at == d->have && !d->failed) {
        gni_random job;
        memset(&job, 0, sizeof job);
        job.kind = GNI_RAND_BITS;
        job.seed = d->g->seed;
        job.counter = d->g->counter;
        job.n = d->batch;
        job.out.buf = d->buf;
        job.out.dtype = GN_U32;
        job.out.stride[0] = 1;
        d->g->counter += (uint64_t)d->batch / 4;
        d->failed = !gni_buffer_claim(d->g, d->buf, GNI_ON_CPU) ||
                    !gni_backend_cpu()->run(d->g, GNI_JOB_RANDOM, &job);
        d->at = 0;
        d->have = d->batch;
    }
    return d->failed ? 0u : ((const uint32_t *)d->buf->host)[d->at++];
}

// Unbiased in [0, range): Lemire, Fast Random Integer Generation in an Interval (2019); beyond 32 bits
// numbers that are too large are drawn again.
static uint64_t gni_draw_below(gni_draws *d, uint64_t range) {
    if (range <= UINT32_MAX) {
        uint32_t r = (uint32_t)range;
        uint64_t product = (uint64_t)gni_draw(d) * r;
        if ((uint32_t)product < r) {
            uint32_t least = (0u - r) % r;
            while ((uint32_t)product < least && !d->failed) product = (uint64_t)gni_draw(d) * r;
        }
        return product >> 32;
    }
    uint64_t mask = range - 1, x = 0;
    for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    do {
        x = (uint64_t)gni_draw(d) << 32;
        x = (x | gni_draw(d)) & mask;
    } while (x >= range && !d->failed);
    return x;
}

// Fisher-Yates.
static bool gni_shuffled(gn_context *g, gn_dtype t, void *data, int64_t n) {
    const size_t item = gn_dtype_size(t);
    char *p = (char *)data, other[8];
    for (int64_t i = 0; i < n; i++) gni_put_int(t, p + (size_t)i * item, i);
    gni_draws d;
    memset(&d, 0, sizeof d);
    d.g = g;
    d.batch = GNI_MIN((n + 3) / 4 * 4, (int64_t)GNI_DRAWS);
    d.buf = gni_buffer_new(g, (uint64_t)d.batch * 4);
    if (d.buf == NULL) return false;
    for (int64_t i = n - 1; i > 0 && !d.failed; i--) {
        size_t k = (size_t)gni_draw_below(&d, (uint64_t)i + 1) * item, last = (size_t)i * item;
        memcpy(other, p + k, item);
        memcpy(p + k, p + last, item);
        memcpy(p + last, other, item);
    }
    gni_buffer_release(g, d.buf);
    return !d.failed;
}

GPUNUM_API gn_array *gn_permutation(gn_context *g, gn_dtype t, int64_t n) {
    if (!gni_begin_context("gn_permutation", g)) return NULL;
    gn_shape s = gn_shape_from(1, &n);
    void *data = NULL;
    bool ok = gni_shape_ok(g, "gn_permutation", t, &s);
    if (ok && !gni_is_integer(t)) {
        gni_fail(g, GN_ERROR_DTYPE, "gn_permutation: %s is not an integer dtype", gn_dtype_name(t));
        ok = false;
    } else if (ok && n > 0 && !gni_range_fits(t, 0, n - 1)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_permutation: 0 to %lld does not fit %s", (long long)n - 1,
                 gn_dtype_name(t));
        ok = false;
    }
    gn_array *y = ok ? gni_array_filled(g, "gn_permutation", t, &s, &data) : NULL;
    if (y != NULL && n > 1 && !gni_shuffled(g, t, data, n)) {
        gni_unref(g, y);
        y = NULL;
    } else if (y != NULL && n == 1) {
        memset(data, 0, gn_dtype_size(t));
    }
    return gni_end(g, y);
}
