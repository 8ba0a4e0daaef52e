// >>random_ops
// Random arrays. Every call takes the next Philox blocks of the context's counter, as many on every
// backend, so that the numbers do not depend on where they are made.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/random.h"
#include "../cpu/cpu_random.h"
#include "../ops/order_ops.h"
#endif

GPUNUM_API void gn_seed(gn_context *g, uint64_t seed) {
    if (!gni_begin_context("gn_seed", g)) return;
    g->seed = seed;
    g->counter = 0;
    gni_end_plain(g);
}

// Runs one random job into a new array; `job` says the kind, its range and the numbers' place in the stream.
static gn_array *gni_random_at(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s, gni_random *job) {
    gn_array *y = gni_array_empty(g, fn, t, s);
    if (y == NULL) return NULL;
    job->n = gni_elements(s);
    memset(&job->out, 0, sizeof job->out);
    job->out.buf = y->buf;
    job->out.dtype = t;
    job->out.stride[0] = 1;
    if (!job->scaled) job->by[0] = 1.0f;
    if (gni_run(g, &gni_kind_random, job, y)) return y;
    gni_unref(g, y);
    return NULL;
}

// The next numbers of the context's stream.
static gn_array *gni_random_array(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s, gni_random *job) {
    job->seed = g->seed;
    job->counter = g->counter;
    gn_array *y = gni_random_at(g, fn, t, s, job);
    const int64_t each = gni_random_each(job);
    g->counter += (uint64_t)(job->n / each + (job->n % each != 0));
    return y;
}

static bool gni_need_float(gn_context *g, const char *fn, gn_dtype t) {
    if (gni_is_float(t)) return true;
    gni_fail(g, GN_ERROR_DTYPE, "%s: %s is not a float dtype", fn, gn_dtype_name(t));
    return false;
}

static gn_array *gni_public_random(const char *fn, gn_context *g, gn_dtype t, const gn_shape *s,
                                   gni_random_kind kind) {
    if (!gni_begin_context(fn, g)) return NULL;
    GNI_ZEROED(gni_random, job);
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
    const double most = t == GN_F64 ? GNI_INF : 3.402823467e38; // of what it is computed in
    if (!(fabs(scale) < most && fabs(offset) < most)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the range is not finite", fn);
    } else if (gni_shape_ok(g, fn, t, s) && gni_need_float(g, fn, t)) {
        GNI_ZEROED(gni_random, job);
        job.kind = kind;
        job.scaled = t != GN_F64;
        job.by[0] = (float)scale;
        job.by[1] = (float)offset;
        y = gni_adopt(g, gni_random_array(g, fn, t, s, &job));
        if (t == GN_F64) y = gn_add_s(gn_mul_s(y, scale), offset);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_uniform(gn_context *g, gn_dtype t, gn_shape s, double low, double high) {
    return gni_random_scaled("gn_uniform", g, t, &s, GNI_RAND_UNIFORM, high - low, low);
}

GPUNUM_API gn_array *gn_normal(gn_context *g, gn_dtype t, gn_shape s, double mean,
                               double deviation) {
    if (deviation < 0.0 && gni_begin_context("gn_normal", g)) {
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
        GNI_ZEROED(gni_random, job);
        job.kind = GNI_RAND_RANGE;
        job.low = low;
        job.range = (uint64_t)high - (uint64_t)low;
        // A GPU makes integers of 32 and 64 bits; shorter ones are the low bits of these.
        const gn_dtype made = g->gpu != NULL && gn_dtype_size(t) < 4 ? GN_I32 : t;
        y = gni_random_array(g, fn, made, &s, &job);
        if (y != NULL && made != t) {
            gn_scope_begin(g);
            return gni_end_scope(g, gn_cast(gni_adopt(g, y), t));
        }
    }
    return gni_end(g, y);
}

// What the upper 24 bits of a number's are below where it is below p.
static uint32_t gni_random_limit(double p) { return (uint32_t)ceil((double)(float)p * 16777216.0); }

static bool gni_draw_truths(gn_context *g, gni_buffer *b, uint32_t side) {
    GNI_ZEROED(gni_random, job);
    job.kind = GNI_RAND_BELOW;
    job.seed = b->seed;
    job.counter = b->counter;
    job.range = b->limit;
    job.n = (int64_t)b->bytes;
    job.out.buf = b;
    job.out.dtype = GN_BOOL;
    job.out.stride[0] = 1;
    return gni_run_at(g, &gni_kind_random, &job, side);
}

// Whether the uniform number (float32) of each place of the stream from there on is below p, for a program that asks: on
// the CPU comparing is part of it, and a GPU may draw them in it (gni_is_undrawn).
static gn_array *gni_random_below_p(gn_context *g, const char *fn, const gn_shape *s, double p, uint64_t seed,
                                    uint64_t counter) {
    GNI_ZEROED(gni_random, job);
    job.seed = seed;
    job.counter = counter;
    job.kind = GNI_RAND_UNIFORM;
    if (g->gpu == NULL) return gn_lt_s(gni_adopt(g, gni_random_at(g, fn, GN_F32, s, &job)), p);
    gn_array *y = gni_adopt(g, gni_array_empty(g, fn, GN_BOOL, s));
    if (y == NULL) return NULL;
    y->buf->draw = gni_draw_truths;
    y->buf->drawn = GN_BOOL;
    y->buf->seed = seed;
    y->buf->counter = counter;
    y->buf->limit = gni_random_limit(p);
    return y;
}
// Blocks of the stream that it takes.
static uint64_t gni_random_blocks(const gn_shape *s) { return ((uint64_t)gni_elements(s) + 3) / 4; }

GPUNUM_API gn_array *gn_bernoulli(gn_context *g, gn_dtype t, gn_shape s, double p) {
    const char *fn = "gn_bernoulli";
    if (!gni_begin_context(fn, g)) return NULL;
    gn_array *y = NULL;
    gn_scope_begin(g);
    if (!(p >= 0.0 && p <= 1.0)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the probability %g is not between 0 and 1", fn, p);
    } else if (gni_shape_ok(g, fn, t, &s)) {
        y = gni_random_below_p(g, fn, &s, p, g->seed, g->counter);
        g->counter += gni_random_blocks(&s);
        if (y != NULL && t != GN_BOOL) y = gn_cast(y, t);
    }
    return gni_end_scope(g, y);
}

// ---- distributions

// One number from each element's own stream. `wrong`: what is wrong with the parameters p, or NULL.
static gn_array *gni_distributed(const char *fn, gn_context *g, gn_dtype t, const gn_shape *s, gni_random *job,
                                 const char *wrong, double p0, double p1) {
    if (!gni_begin_context(fn, g)) return NULL;
    const bool counts = job->kind == GNI_RAND_POISSON || job->kind == GNI_RAND_BINOMIAL;
    // A GPU makes floats of 32 and 64 bits.
    const gn_dtype made = g->gpu == NULL || t == GN_F32 || !g->gpu->caps.float64 ? t : GN_F64;
    gn_array *y = NULL;
    if (!gni_shape_ok(g, fn, t, s)) return gni_end(g, NULL);
    gn_scope_begin(g);
    if (wrong != NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %s (%g, %g)", fn, wrong, p0, p1);
    else if (counts && !gni_is_float(t) && !gni_is_integer(t))
        gni_fail(g, GN_ERROR_DTYPE, "%s: %s is neither a float nor an integer dtype", fn, gn_dtype_name(t));
    else if (counts || gni_need_float(g, fn, t))
        y = gni_adopt(g, gni_random_array(g, fn, made, s, job));
    if (y != NULL && made != t) y = gn_cast(y, t);
    return gni_end_scope(g, y);
}

static bool gni_is_positive(double x) { return x > 0.0 && x < GNI_INF; }

static gni_random gni_random_of(gni_random_kind kind) {
    GNI_ZEROED(gni_random, job);
    job.kind = kind;
    job.numbers[GNI_D_SCALE] = 1.0;
    return job;
}

static void gni_gamma_numbers(double *p, double shape) {
    const double a = shape < 1.0 ? shape + 1.0 : shape;
    p[GNI_D_GAMMA_SHAPE] = shape;
    p[GNI_D_GAMMA_D] = a - 1.0 / 3.0;
    p[GNI_D_GAMMA_C] = 1.0 / sqrt(9.0 * p[GNI_D_GAMMA_D]);
}

GPUNUM_API gn_array *gn_exponential(gn_context *g, gn_dtype t, gn_shape s, double scale) {
    gni_random job = gni_random_of(GNI_RAND_EXPONENTIAL);
    const bool ok = scale == 0.0 || gni_is_positive(scale);
    if (t != GN_F64 && scale > 1e-30 && scale < 1e30)
        return gni_random_scaled("gn_exponential", g, t, &s, GNI_RAND_DECAYING, scale, 0.0);
    job.numbers[GNI_D_SCALE] = scale;
    return gni_distributed("gn_exponential", g, t, &s, &job, ok ? NULL : "the scale is no number from 0 on", scale, 0.0);
}

GPUNUM_API gn_array *gn_gamma(gn_context *g, gn_dtype t, gn_shape s, double shape, double scale) {
    gni_random job = gni_random_of(GNI_RAND_GAMMA);
    const bool ok = gni_is_positive(shape) && gni_is_positive(scale);
    gni_gamma_numbers(job.numbers, shape);
    job.numbers[GNI_D_SCALE] = scale;
    return gni_distributed("gn_gamma", g, t, &s, &job, ok ? NULL : "shape and scale are not both above 0", shape, scale);
}

GPUNUM_API gn_array *gn_beta(gn_context *g, gn_dtype t, gn_shape s, double a, double b) {
    gni_random job = gni_random_of(GNI_RAND_BETA);
    const bool ok = gni_is_positive(a) && gni_is_positive(b);
    // Where both are tiny all but their ratio rounds away: kept from logarithms that are both infinite.
    const double scale = a < 1e-290 && b < 1e-290 ? 1e60 : 1.0;
    gni_gamma_numbers(job.numbers, a * scale);
    gni_gamma_numbers(job.numbers + GNI_D_GAMMA_OTHER, b * scale);
    return gni_distributed("gn_beta", g, t, &s, &job, ok ? NULL : "a and b are not both above 0", a, b);
}

GPUNUM_API gn_array *gn_poisson(gn_context *g, gn_dtype t, gn_shape s, double mean) {
    gni_random job = gni_random_of(GNI_RAND_POISSON);
    double *p = job.numbers;
    const bool ok = mean >= 0.0 && mean <= 1e12;
    if (ok && mean < 10.0) {
        p[GNI_D_LEAST] = exp(-mean);
    } else if (ok) {
        p[GNI_D_MEAN] = mean;
        p[GNI_D_B] = 0.931 + 2.53 * sqrt(mean);
        p[GNI_D_A] = -0.059 + 0.02483 * p[GNI_D_B];
        p[GNI_D_LOG] = log(mean);
        p[GNI_D_FACTOR] = 1.1239 + 1.1328 / (p[GNI_D_B] - 3.4);
        p[GNI_D_TOP] = 0.9277 - 3.6224 / (p[GNI_D_B] - 2.0);
    }
    return gni_distributed("gn_poisson", g, t, &s, &job, ok ? NULL : "the mean is not between 0 and 1e12", mean, 0.0);
}

GPUNUM_API gn_array *gn_binomial(gn_context *g, gn_dtype t, gn_shape s, int64_t n, double p) {
    gni_random job = gni_random_of(GNI_RAND_BINOMIAL);
    double *v = job.numbers;
    const bool ok = n >= 0 && n <= 1000000000000 && p >= 0.0 && p <= 1.0;
    const double few = p > 0.5 ? 1.0 - p : p, many = p > 0.5 ? p : 1.0 - p, size = (double)n, mean = size * few;
    v[GNI_D_TRIALS] = size;
    v[GNI_D_SWAP] = p > 0.5;
    if (ok && mean < 10.0) {
        // Of none a gap ends beyond all trials.
        v[GNI_D_LEAST] = mean == 0.0 ? 1e-300 : -log1p(-few);
    } else if (ok) {
        const double spread = sqrt(mean * many);
        v[GNI_D_MEAN] = mean;
        v[GNI_D_B] = 1.15 + 2.53 * spread;
        v[GNI_D_A] = -0.0873 + 0.0248 * v[GNI_D_B] + 0.01 * few;
        v[GNI_D_FACTOR] = (2.83 + 5.1 / v[GNI_D_B]) * spread;
        v[GNI_D_TOP] = 0.92 - 4.2 / v[GNI_D_B];
        v[GNI_D_MODE] = floor((size + 1.0) * few);
        v[GNI_D_HEIGHT] = gni_random_lgamma(v[GNI_D_MODE] + 1.0) + gni_random_lgamma(size - v[GNI_D_MODE] + 1.0);
        v[GNI_D_LOG] = log(few / many);
    }
    return gni_distributed("gn_binomial", g, t, &s, &job, ok ? NULL : "n is not from 0 to 1e12 or p not from 0 to 1",
                           size, p);
}

GPUNUM_API gn_array *gn_truncated_normal(gn_context *g, gn_dtype t, gn_shape s, double mean, double deviation, double low,
                                         double high) {
    gni_random job = gni_random_of(GNI_RAND_TRUNCATED);
    double *p = job.numbers, from = (low - mean) / deviation, to = (high - mean) / deviation;
    const bool ok = gni_is_positive(deviation) && fabs(mean) < GNI_INF && low < high, below = to <= 0.0;
    gni_truncated_way way = from >= to ? GNI_CUT_POINT : GNI_CUT_NORMAL;
    p[GNI_D_SPREAD] = below && way != GNI_CUT_POINT ? -deviation : deviation;
    p[GNI_D_LOW] = below && way != GNI_CUT_POINT ? -to : from;
    p[GNI_D_HIGH] = below ? -from : to;
    from = p[GNI_D_LOW];
    to = p[GNI_D_HIGH];
    p[GNI_D_CENTER] = mean;
    p[GNI_D_BOUND] = low;
    p[GNI_D_BOUND + 1] = high;
    p[GNI_D_PEAK] = from > 0.0 ? from : 0.0;
    p[GNI_D_RATE] = 0.5 * (from + sqrt(from * from + 4.0));
    if (way != GNI_CUT_POINT && from > 1e7) way = GNI_CUT_FAR;
    else if (way != GNI_CUT_POINT && to - from < (from > 0.0 ? 1.0 / p[GNI_D_RATE] : 2.5)) way = GNI_CUT_EVENLY;
    else if (way != GNI_CUT_POINT && from > 0.0) way = GNI_CUT_TAIL;
    p[GNI_D_WAY] = (double)way;
    return gni_distributed("gn_truncated_normal", g, t, &s, &job,
                           ok ? NULL : "the deviation is not above 0 or low not below high", low, high);
}

GPUNUM_API uint64_t gn_seed_split(gn_context *g) {
    if (!gni_begin_context("gn_seed_split", g)) return 0;
    gni_element_stream s = gni_element_of(g->seed, g->counter++, GNI_STREAM_SEED);
    gni_element_more(&s);
    gni_end_plain(g);
    return s.word[0];
}

// ---- permutations

enum {
    GNI_DRAWS = 4096,
    GNI_SHUFFLED = 32768 // up to so many are shuffled one after the other; longer permutations are worked out place by place
};

// Random words for work on the CPU, made in batches.
typedef struct gni_draws {
    gn_context *g;
    gni_buffer *buf;
    int64_t at, have, batch;
    bool failed;
} gni_draws;

static uint32_t gni_draw(gni_draws *d) {
    if (d->at == d->have && !d->failed) {
        GNI_ZEROED(gni_random, job);
        job.kind = GNI_RAND_BITS;
        job.seed = d->g->seed;
        job.counter = d->g->counter;
        job.n = d->batch;
        job.out.buf = d->buf;
        job.out.dtype = GN_U32;
        job.out.stride[0] = 1;
        d->g->counter += (uint64_t)d->batch / 4;
        d->failed = !gni_buffer_claim(d->g, d->buf, GNI_ON_CPU) ||
                    !gni_cpu_random(d->g, &job);
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
    if (ok && n > GNI_SHUFFLED) {
        gni_random job = gni_random_of(GNI_RAND_PERMUTATION);
        for (int b = 0; b < GNI_D_ROUNDS / 4; b++) {
            gni_element_stream e = gni_element_of(g->seed, g->counter++, GNI_STREAM_PERMUTATION);
            gni_element_more(&e);
            memcpy((char *)job.numbers + 16 * b, e.word, 16);
        }
        job.range = (uint64_t)n;
        while ((uint64_t)(n - 1) >> (2 * job.low + 1) != 0) job.low++;
        return gni_end(g, gni_random_at(g, "gn_permutation", t, &s, &job));
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

// `k` of n without replacement, with weights: the first to come of n that each have waited for exponentially distributed
// times (Efraimidis & Spirakis 2006).
static gn_array *gni_choice_apart(gn_context *g, const gn_shape *s, int64_t n, int64_t k, gn_array *weights) {
    if (weights == NULL) return gn_reshape(gn_slice(gn_permutation(g, GN_I64, n), 0, 0, k, 1), *s);
    gn_array *times = gn_div(gn_exponential(g, GN_F64, GN_SHAPE(n), 1.0), weights);
    return gn_reshape(gn_slice(gn_argsort(times, 0, false), 0, 0, k, 1), *s);
}

GPUNUM_API gn_array *gn_choice(gn_context *g, gn_shape s, int64_t n, bool replace, gn_array *weights) {
    static const char *const fn = "gn_choice";
    gn_context *home = weights != NULL ? gni_begin(fn, &weights, 1) : gni_begin_context(fn, g) ? g : NULL;
    if (home != g && home != NULL) {
        gni_fail(home, GN_ERROR_ARGUMENT, "%s: the weights belong to another context", fn);
        return gni_end(home, NULL);
    }
    if (home == NULL) return NULL;
    gn_array *y = NULL;
    gn_scope_begin(g);
    const int64_t k = gni_shape_ok(g, fn, GN_I64, &s) ? gni_elements(&s) : 0;
    double total = 1.0, least = 0.0, some = (double)n;
    if (weights != NULL && (weights->shape.rank != 1 || weights->shape.dim[0] != n))
        gni_fail(g, GN_ERROR_SHAPE, "%s: the weights are not one for each of %lld", fn, (long long)n);
    else if (n < 0 || (n == 0 && k > 0))
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: there is nothing to choose from", fn);
    else if (weights != NULL && gni_may_wait(g, fn) && gni_real_only(g, fn, &weights, 1) && n > 0) {
        g->no_grad++;
        weights = gn_cast(weights, GN_F64);
        total = gn_item(gn_sum(weights, GN_ALL));
        least = gn_item(gn_min(weights, GN_ALL));
        some = gn_item(gn_count_nonzero(weights, GN_ALL));
        g->no_grad--;
    }
    if (!g->call_failed && (!(least >= 0.0) || !gni_is_positive(total)))
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the weights are not numbers from 0 on with some above", fn);
    if (!g->call_failed && !replace && (double)k > some)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %lld without replacement of %g", fn, (long long)k, some);
    if (!g->call_failed && k == 0)
        y = gn_zeros(g, GN_I64, s);
    else if (!g->call_failed && !replace)
        y = gni_choice_apart(g, &s, n, k, weights);
    else if (!g->call_failed && weights == NULL)
        y = gn_randint(g, GN_I64, s, 0, n);
    else if (!g->call_failed) {
        gn_array *sums = gn_cumsum(weights, 0), *last = gn_slice(sums, 0, n - 1, n, 1);
        // Rounding leaves u below 1, and a product with the sum of all at most that: what has no weight is never taken.
        gn_array *u = gn_mul(gn_rand(g, GN_F64, s), last);
        y = gn_minimum(gn_searchsorted(sums, u, true), gn_searchsorted(sums, last, false));
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_shuffle(gn_array *a, int axis) {
    gn_context *g = gni_begin("gn_shuffle", &a, 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    int at = axis < 0 ? axis + a->shape.rank : axis;
    if (at < 0 || at >= a->shape.rank) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_shuffle: axis %d is not one of %d", axis, a->shape.rank);
        return gni_end_scope(g, NULL);
    }
    return gni_end_scope(g, gn_take(a, gn_permutation(g, GN_I64, a->shape.dim[at]), at));
}
