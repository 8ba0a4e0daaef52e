// >>random_ops
// Random arrays. Every call takes the next Philox blocks of the context's counter, as many on every
// backend, so that the numbers do not depend on where they are made.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/random.h"
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
    if (gni_run(g, &gni_kind_random, job, y)) return y;
    gni_unref(g, y);
    return NULL;
}

// The next numbers of the context's stream.
static gn_array *gni_random_array(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s, gni_random *job) {
    job->seed = g->seed;
    job->counter = g->counter;
    gn_array *y = gni_random_at(g, fn, t, s, job);
    int64_t per_block = gni_random_pairs(job) ? 2 : 4;
    g->counter += (uint64_t)(job->n / per_block + (job->n % per_block != 0));
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
        gni_random job;
        memset(&job, 0, sizeof job);
        job.kind = GNI_RAND_RANGE;
        job.low = low;
        job.range = (uint64_t)high - (uint64_t)low;
        y = gni_random_array(g, fn, t, &s, &job);
    }
    return gni_end(g, y);
}

// Whether the uniform number (float32) of each place of the stream that job says is below p. On a GPU truth values are a
// quarter of what numbers are in memory; on the CPU comparing is part of the program that asks.
static gn_array *gni_random_below_p(gn_context *g, const char *fn, const gn_shape *s, double p, gni_random *job) {
    if (g->gpu == NULL) {
        job->kind = GNI_RAND_UNIFORM;
        return gn_lt_s(gni_adopt(g, gni_random_at(g, fn, GN_F32, s, job)), p);
    }
    job->kind = GNI_RAND_BELOW;
    job->range = (uint64_t)ceil((double)(float)p * 16777216.0);
    return gni_adopt(g, gni_random_at(g, fn, GN_BOOL, s, job));
}

GPUNUM_API gn_array *gn_bernoulli(gn_context *g, gn_dtype t, gn_shape s, double p) {
    const char *fn = "gn_bernoulli";
    if (!gni_begin_context(fn, g)) return NULL;
    gn_array *y = NULL;
    gn_scope_begin(g);
    if (!(p >= 0.0 && p <= 1.0)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the probability %g is not between 0 and 1", fn, p);
    } else if (gni_shape_ok(g, fn, t, &s)) {
        gni_random job;
        memset(&job, 0, sizeof job);
        job.seed = g->seed;
        job.counter = g->counter;
        y = gni_random_below_p(g, fn, &s, p, &job);
        g->counter += ((uint64_t)job.n + 3) / 4;
        if (y != NULL && t != GN_BOOL) y = gn_cast(y, t);
    }
    return gni_end_scope(g, y);
}

// ---- distributions: numbers of the CPU, by element

typedef enum gni_distribution {
    GNI_EXPONENTIAL, // p: scale
    GNI_GAMMA,       // shape, scale
    GNI_BETA,        // a, b
    GNI_POISSON,     // mean
    GNI_BINOMIAL,    // number of trials, probability
    GNI_TRUNCATED    // bounds of a standard normal number, mean, deviation
} gni_distribution;

typedef struct gni_distribution_job {
    gni_distribution kind;
    double p[4];
    gn_dtype t;
    char *out;
    int64_t n;
    uint64_t seed, counter;
} gni_distribution_job;

enum { GNI_DISTRIBUTION_RUN = 256 }; // elements of an item of work

// An element's own words: Philox blocks of its counter with a third word that the common streams leave at 0.
typedef struct gni_element_stream {
    uint32_t counter[4], key[2], word[4];
    int at;
} gni_element_stream;

static void gni_philox_block(const uint32_t *counter, const uint32_t *key, uint32_t *word) {
    uint32_t c[4], k0 = key[0], k1 = key[1];
    memcpy(c, counter, sizeof c);
    for (int i = 0; i < 10; i++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        const uint64_t a = (uint64_t)c[0] * 0xd2511f53u, b = (uint64_t)c[2] * 0xcd9e8d57u;
        const uint32_t w1 = c[1], w3 = c[3];
        c[0] = (uint32_t)(b >> 32) ^ w1 ^ k0;
        c[1] = (uint32_t)(b & 0xffffffffu);
        c[2] = (uint32_t)(a >> 32) ^ w3 ^ k1;
        c[3] = (uint32_t)(a & 0xffffffffu);
    }
    memcpy(word, c, sizeof c);
}

static gni_element_stream gni_element_of(uint64_t seed, uint64_t counter, uint32_t tag) {
    gni_element_stream s;
    memset(&s, 0, sizeof s);
    s.counter[0] = (uint32_t)(counter & 0xffffffffu);
    s.counter[1] = (uint32_t)(counter >> 32);
    s.counter[3] = tag;
    s.key[0] = (uint32_t)(seed & 0xffffffffu);
    s.key[1] = (uint32_t)(seed >> 32);
    s.at = 4;
    return s;
}

static void gni_element_more(gni_element_stream *s) {
    s->counter[2]++;
    gni_philox_block(s->counter, s->key, s->word);
    s->at = 0;
}

// In (0, 1].
static double gni_element_uniform(gni_element_stream *s) {
    if (s->at > 2) gni_element_more(s);
    const uint64_t pair = gni_random_pair(s->word + s->at);
    s->at += 2;
    return 1.0 - (double)(pair >> 11) * 1.1102230246251565e-16;
}

static double gni_element_normal(gni_element_stream *s) {
    double x, other;
    gni_element_more(s);
    gni_random_normal_pair(s->word, &x, &other);
    s->at = 4;
    return x;
}

static double gni_element_exponential(gni_element_stream *s) { return gni_random_log(gni_element_uniform(s)); }

// Marsaglia & Tsang (2000) for a shape of 1 and more; *log_boost is to be added to the logarithm of what smaller ones have.
static double gni_element_gamma(gni_element_stream *s, double shape, double *log_boost) {
    const double a = shape < 1.0 ? shape + 1.0 : shape, d = a - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    *log_boost = 0.0;
    for (;;) {
        const double x = gni_element_normal(s), u = 1.0 + c * x, v = u * u * u;
        if (u <= 0.0) continue;
        if (-gni_element_exponential(s) >= 0.5 * x * x + d * (1.0 - v - gni_random_log(v))) continue;
        if (shape < 1.0) *log_boost = -gni_element_exponential(s) / shape;
        return d * v;
    }
}

// Hoermann, The transformed rejection method for generating Poisson random variables (1993); small means by products.
static double gni_element_poisson(gni_element_stream *s, double mean) {
    double k = 0.0;
    if (mean < 10.0) {
        const double least = exp(-mean);
        for (double product = gni_element_uniform(s); product > least; product *= gni_element_uniform(s)) k += 1.0;
        return k;
    }
    const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b, log_mean = log(mean);
    const double inverse = 1.1239 + 1.1328 / (b - 3.4), most = 0.9277 - 3.6224 / (b - 2.0);
    for (;;) {
        const double u = gni_element_uniform(s) - 0.5, v = gni_element_uniform(s), near_end = 0.5 - fabs(u);
        if (near_end <= 0.0) continue;
        k = floor((2.0 * a / near_end + b) * u + mean + 0.43);
        if (near_end >= 0.07 && v <= most) return k;
        if (k < 0.0 || (near_end < 0.013 && v > near_end)) continue;
        if (log(v * inverse / (a / (near_end * near_end) + b)) <= k * log_mean - mean - gni_dlgamma(k + 1.0)) return k;
    }
}

// Hoermann, The generation of binomial random variates (1993), BTRS; small means by the gaps between successes.
static double gni_element_binomial(gni_element_stream *s, double n, double p) {
    const bool swap = p > 0.5;
    const double q = swap ? p : 1.0 - p;
    double k = 0.0;
    p = swap ? 1.0 - p : p;
    if (p == 0.0 || n == 0.0) return swap ? n : 0.0;
    if (n * p < 10.0) {
        const double log_q = -log1p(-p);
        for (double at = 0.0;; k += 1.0) {
            at += floor(gni_element_exponential(s) / log_q) + 1.0;
            if (at > n) return swap ? n - k : k;
        }
    }
    const double spread = sqrt(n * p * q), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double alpha = (2.83 + 5.1 / b) * spread, most = 0.92 - 4.2 / b, mode = floor((n + 1.0) * p);
    const double height = gni_dlgamma(mode + 1.0) + gni_dlgamma(n - mode + 1.0), odds = log(p / q);
    for (;;) {
        const double u = gni_element_uniform(s) - 0.5, v = gni_element_uniform(s), near_end = 0.5 - fabs(u);
        if (near_end <= 0.0) continue;
        k = floor((2.0 * a / near_end + b) * u + n * p + 0.5);
        if (k < 0.0 || k > n) continue;
        bool takes = near_end >= 0.07 && v <= most;
        takes = takes || log(v * alpha / (a / (near_end * near_end) + b)) <=
                             height - gni_dlgamma(k + 1.0) - gni_dlgamma(n - k + 1.0) + (k - mode) * odds;
        if (takes) return swap ? n - k : k;
    }
}

// Robert, Simulation of truncated normal variables (1995).
static double gni_element_truncated(gni_element_stream *s, double low, double high) {
    if (low >= high) return low; // one number as far as the deviation's digits tell
    if (high <= 0.0) return -gni_element_truncated(s, -high, -low);
    if (low > 1e7) { // an exponential distribution but for rounding
        const double cut = -expm1(-low * (high - low));
        return low - log1p(-cut * (1.0 - gni_element_uniform(s))) / low;
    }
    const double peak = low > 0.0 ? low : 0.0, rate = 0.5 * (low + sqrt(low * low + 4.0));
    const bool even = high - low < (low > 0.0 ? 1.0 / rate : 2.5); // evenly, or else from a distribution with tails
    for (;;) {
        double x;
        if (even) {
            x = low + gni_element_uniform(s) * (high - low);
            if (gni_element_exponential(s) < 0.5 * (x - peak) * (x + peak)) continue;
        } else if (low > 0.0) {
            x = low + gni_element_exponential(s) / rate;
            if (gni_element_exponential(s) < 0.5 * (x - rate) * (x - rate)) continue;
        } else {
            x = gni_element_normal(s);
        }
        if (x >= low && x <= high) return x;
    }
}

static double gni_element_draw(const gni_distribution_job *j, gni_element_stream *s) {
    const double *p = j->p;
    double boost = 0.0, more = 0.0, x, y;
    switch (j->kind) {
    case GNI_EXPONENTIAL: return p[0] * gni_element_exponential(s);
    case GNI_GAMMA:
        x = gni_element_gamma(s, p[0], &boost);
        return p[1] * (boost == 0.0 ? x : x * exp(boost));
    case GNI_BETA: // by logarithms: both may be below the smallest number
        x = gni_element_gamma(s, p[0], &boost);
        y = gni_element_gamma(s, p[1], &more);
        return 1.0 / (1.0 + y / x * exp(more - boost));
    case GNI_POISSON: return gni_element_poisson(s, p[0]);
    case GNI_BINOMIAL: return gni_element_binomial(s, p[0], p[1]);
    default:
        x = p[2] + p[3] * gni_element_truncated(s, (p[0] - p[2]) / p[3], (p[1] - p[2]) / p[3]);
        return GNI_MAX(p[0], GNI_MIN(x, p[1]));
    }
}

static void gni_distribution_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_distribution_job *j = (const gni_distribution_job *)arg;
    GNI_UNUSED(worker);
    for (int64_t i = begin * GNI_DISTRIBUTION_RUN; i < GNI_MIN(end * GNI_DISTRIBUTION_RUN, j->n); i++) {
        gni_element_stream s = gni_element_of(j->seed, j->counter + (uint64_t)i, 0);
        gni_store_double(j->t, j->out, i, gni_element_draw(j, &s));
    }
}

// `wrong`: what is wrong with the parameters, or NULL.
static gn_array *gni_distributed(const char *fn, gn_context *g, gn_dtype t, const gn_shape *s, gni_distribution kind,
                                 const double *p, const char *wrong) {
    if (!gni_begin_context(fn, g)) return NULL;
    const bool counts = kind == GNI_POISSON || kind == GNI_BINOMIAL;
    gni_distribution_job j;
    memset(&j, 0, sizeof j);
    void *data = NULL;
    gn_array *y = NULL;
    if (!gni_shape_ok(g, fn, t, s)) return gni_end(g, NULL);
    if (wrong != NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %s (%g, %g)", fn, wrong, p[0], p[1]);
    else if (counts && !gni_is_float(t) && !gni_is_integer(t))
        gni_fail(g, GN_ERROR_DTYPE, "%s: %s is neither a float nor an integer dtype", fn, gn_dtype_name(t));
    else if (counts || gni_need_float(g, fn, t))
        y = gni_array_filled(g, fn, t, s, &data);
    if (y == NULL) return gni_end(g, NULL);
    j.kind = kind;
    memcpy(j.p, p, sizeof j.p);
    j.t = t;
    j.out = (char *)data;
    j.n = gni_elements(s);
    j.seed = g->seed;
    j.counter = g->counter;
    g->counter += (uint64_t)j.n;
    if (j.n > 0) gni_parallel(g->pool, (j.n - 1) / GNI_DISTRIBUTION_RUN + 1, 4, gni_distribution_task, &j);
    return gni_end(g, y);
}

static bool gni_is_positive(double x) { return x > 0.0 && x < GNI_INF; }

GPUNUM_API gn_array *gn_exponential(gn_context *g, gn_dtype t, gn_shape s, double scale) {
    const double p[4] = {scale, 0.0, 0.0, 0.0};
    const bool ok = scale == 0.0 || gni_is_positive(scale);
    return gni_distributed("gn_exponential", g, t, &s, GNI_EXPONENTIAL, p, ok ? NULL : "the scale is no number from 0 on");
}

GPUNUM_API gn_array *gn_gamma(gn_context *g, gn_dtype t, gn_shape s, double shape, double scale) {
    const double p[4] = {shape, scale, 0.0, 0.0};
    const bool ok = gni_is_positive(shape) && gni_is_positive(scale);
    return gni_distributed("gn_gamma", g, t, &s, GNI_GAMMA, p, ok ? NULL : "shape and scale are not both above 0");
}

GPUNUM_API gn_array *gn_beta(gn_context *g, gn_dtype t, gn_shape s, double a, double b) {
    const double p[4] = {a, b, 0.0, 0.0};
    const bool ok = gni_is_positive(a) && gni_is_positive(b);
    return gni_distributed("gn_beta", g, t, &s, GNI_BETA, p, ok ? NULL : "a and b are not both above 0");
}

GPUNUM_API gn_array *gn_poisson(gn_context *g, gn_dtype t, gn_shape s, double mean) {
    const double p[4] = {mean, 0.0, 0.0, 0.0};
    const bool ok = mean >= 0.0 && mean <= 1e12;
    return gni_distributed("gn_poisson", g, t, &s, GNI_POISSON, p, ok ? NULL : "the mean is not between 0 and 1e12");
}

GPUNUM_API gn_array *gn_binomial(gn_context *g, gn_dtype t, gn_shape s, int64_t n, double p) {
    const double q[4] = {(double)n, p, 0.0, 0.0};
    const bool ok = n >= 0 && n <= 1000000000000 && p >= 0.0 && p <= 1.0;
    return gni_distributed("gn_binomial", g, t, &s, GNI_BINOMIAL, q,
                           ok ? NULL : "n is not from 0 to 1e12 or p not from 0 to 1");
}

GPUNUM_API gn_array *gn_truncated_normal(gn_context *g, gn_dtype t, gn_shape s, double mean, double deviation, double low,
                                         double high) {
    const double p[4] = {low, high, mean, deviation};
    const bool ok = gni_is_positive(deviation) && fabs(mean) < GNI_INF && low < high;
    return gni_distributed("gn_truncated_normal", g, t, &s, GNI_TRUNCATED, p,
                           ok ? NULL : "the deviation is not above 0 or low not below high");
}

GPUNUM_API uint64_t gn_seed_split(gn_context *g) {
    if (!gni_begin_context("gn_seed_split", g)) return 0;
    gni_element_stream s = gni_element_of(g->seed, g->counter++, 1);
    gni_element_more(&s);
    gni_end_plain(g);
    return gni_random_pair(s.word);
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
