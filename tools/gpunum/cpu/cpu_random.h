// >>cpu_random
// Random numbers on the CPU: uniform and normal ones, ranges, distributions.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/access.h"
#include "../cpu/cpu.h"
#endif

typedef struct gni_random_job {
    const gni_random *d;
    const gni_random_isa *isa;
    gni_convert_fn store; // of bool
    char *out;
    bool pairs; // an element is two words
} gni_random_job;

static uint64_t gni_mulhi64(uint64_t a, uint64_t b) {
    uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    uint64_t mid = a1 * b0 + ((a0 * b0) >> 32), low = a0 * b1 + (mid & 0xffffffffu);
    return a1 * b1 + (mid >> 32) + (low >> 32);
}

static uint64_t gni_random_pair(const uint32_t *w) { return (uint64_t)w[1] << 32 | w[0]; }

static void gni_random_range(const gni_random_job *j, const uint32_t *w, char *to, int64_t n) {
    const gni_random *d = j->d;
    int64_t item = gni_item_size(d->out.dtype);
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = j->pairs ? gni_mulhi64(gni_random_pair(w + 2 * i), d->range)
                              : ((uint64_t)w[i] * d->range) >> 32;
        gni_put_int(d->out.dtype, to + i * item, (int64_t)((uint64_t)d->low + x));
    }
}

// -log(u) for 0 < u <= 1: u = 2^k m with m near 1, log(m) as the series of 2 atanh((m - 1) / (m + 1)).
static double gni_random_log(double u) {
    uint64_t bits;
    memcpy(&bits, &u, 8);
    bits -= 0x3fe6a09e667f3bcdu; // sqrt(1/2)
    int64_t k = (int64_t)bits >> 52;
    bits = (bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu;
    double m;
    memcpy(&m, &bits, 8);
    static const double odd[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                                 1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
    double s = (m - 1.0) / (m + 1.0), z = s * s, p = 0.0;
    for (int i = 0; i < 11; i++) p = (p + odd[i]) * z;
    return -((double)k * GNI_LN2 + (s + s) * (p + 1.0));
}

// log Gamma(x) for x from 1 on, by Stirling's series.
static double gni_random_lgamma(double x) {
    static const double c[] = {-0.029550653594771242,   0.00641025641025641,   -0.0019175269175269176, 0.0008417508417508417,
                               -0.0005952380952380953, 0.0007936507936507937, -0.002777777777777778,  0.08333333333333333};
    double product = 1.0, p = 0.0;
    for (; x < 8.0; x += 1.0) product *= x;
    const double u = 1.0 / x, z = u * u;
    for (int i = 0; i < GNI_COUNT(c); i++) p = p * z + c[i];
    return gni_random_log(product) - (x - 0.5) * gni_random_log(x) - x + (0.91893853320467274178 + p * u);
}

// A normal pair is the two elements of a block (Box & Muller 1958): the angle is one of eight octants,
// which are exchanges and signs, and 50 bits within it. Only + - * / and the square root: the same bits everywhere.
static void gni_random_normal_pair(uint64_t a, uint64_t b, double *n0, double *n1) {
    double u = 1.0 - (double)(a >> 11) * 1.1102230246251565e-16;
    double r = sqrt(2.0 * gni_random_log(u));
    static const double sine[] = {1.0 / 272, 1.0 / 210, 1.0 / 156, 1.0 / 110,
                                  1.0 / 72,  1.0 / 42,  1.0 / 20,  1.0 / 6};
    static const double cosine[] = {1.0 / 240, 1.0 / 182, 1.0 / 132, 1.0 / 90,
                                    1.0 / 56,  1.0 / 30,  1.0 / 12,  1.0 / 2};
    double x = ((double)(b >> 11 & 0x3ffffffffffffu) + 0.5) * 6.9757369960172635e-16, z = x * x,
           p = 0.0, q = 0.0;
    for (int i = 0; i < 8; i++) {
        p = (1.0 - p) * (z * sine[i]);
        q = (1.0 - q) * (z * cosine[i]);
    }
    p = r * (x * (1.0 - p)); // sine
    q = r * (1.0 - q);       // cosine
    bool swap = (b >> 61 & 1) != 0;
    *n0 = swap ? q : p;
    *n1 = swap ? p : q;
    if (b >> 63 != 0) *n0 = -*n0;
    if ((b >> 62 & 1) != 0) *n1 = -*n1;
}

static void gni_random_doubles(const gni_random_job *j, const uint32_t *w, double *to, int64_t n) {
    if (j->d->kind == GNI_RAND_UNIFORM) {
        for (int64_t i = 0; i < n; i++)
            to[i] = (double)(gni_random_pair(w + 2 * i) >> 11) * 1.1102230246251565e-16;
        return;
    }
    for (int64_t i = 0; i < n; i += 2) {
        double n0, n1;
        gni_random_normal_pair(gni_random_pair(w + 2 * i), gni_random_pair(w + 2 * i + 2), &n0, &n1);
        to[i] = n0;
        if (i + 1 < n) to[i + 1] = n1;
    }
}

// Uniform halves take the leading bits that they can hold, since rounding could give 1.
static void gni_random_halves(const gni_random_job *j, const uint32_t *w, uint16_t *to, int64_t n) {
    bool bf16 = j->d->out.dtype == GN_BF16;
    for (int64_t i = 0; i < n; i++) {
        float f;
        memcpy(&f, &w[i], 4);
        if (j->d->kind == GNI_RAND_UNIFORM && !j->d->scaled)
            f = bf16 ? (float)(w[i] >> 24) * 0.00390625f : (float)(w[i] >> 21) * 0.00048828125f;
        to[i] = bf16 ? gni_f32_to_bf16(f) : gni_f32_to_f16(f);
    }
}

enum { GNI_RANDOM_BLOCKS = 256 }; // Philox blocks made at once

// 1 where the 24 bits of a uniform number are below `most`, which is at most 2^24, else 0.
static void gni_random_below(uint32_t *w, int64_t blocks, uint32_t most) {
    for (int64_t b = 0; b < blocks; b += 4)
        for (int i = 0; i < 16; i++) w[4 * b + i] = ((w[4 * b + i] >> 8) - most) >> 31;
}

// Items are runs of GNI_RANDOM_BLOCKS blocks.
static void gni_random_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_random_job *j = (const gni_random_job *)arg;
    const gni_random *d = j->d;
    int64_t per = j->pairs ? 2 : 4, item = gni_item_size(d->out.dtype);
    uint32_t w[4 * GNI_RANDOM_BLOCKS + 4];
    GNI_UNUSED(worker);
    for (int64_t t = begin; t < end; t++) {
        int64_t at = t * GNI_RANDOM_BLOCKS * per, n = GNI_MIN(d->n - at, GNI_RANDOM_BLOCKS * per);
        int64_t blocks = (n - 1) / per + 1;
        uint64_t first = d->counter + (uint64_t)t * GNI_RANDOM_BLOCKS;
        char *to = j->out + at * item;
        bool in_place = item == 4 && n % 4 == 0 && d->kind != GNI_RAND_RANGE;
        void *made = in_place ? (void *)to : (void *)w;
        bool words = j->pairs || d->kind == GNI_RAND_BITS || d->kind == GNI_RAND_RANGE || d->kind == GNI_RAND_BELOW ||
                     (item == 2 && d->kind == GNI_RAND_UNIFORM && !d->scaled);
        if (words)
            j->isa->bits((uint32_t *)made, d->seed, first, 0, blocks);
        else if (d->kind == GNI_RAND_UNIFORM)
            j->isa->uniform((float *)made, d->seed, first, d->by, blocks);
        else if (d->kind == GNI_RAND_DECAYING)
            j->isa->decaying((float *)made, d->seed, first, d->by, blocks);
        else
            j->isa->normal((float *)made, d->seed, first, d->by, blocks);
        if (in_place) continue;
        if (d->kind == GNI_RAND_RANGE) {
            gni_random_range(j, w, to, n);
        } else if (d->kind == GNI_RAND_BELOW) {
            gni_random_below(w, blocks, (uint32_t)d->range);
            j->store(to, w, n);
        } else if (item == 8) {
            gni_random_doubles(j, w, (double *)(void *)to, n);
        } else if (item == 2) {
            gni_random_halves(j, w, (uint16_t *)(void *)to, n);
        } else {
            memcpy(to, w, (size_t)(n * 4));
        }
    }
}

// exp(x) for x between -700 and 700: 2^n and a series of what is left.
static double gni_random_exp(double x) {
    static const double part[] = {1.0 / 14, 1.0 / 13, 1.0 / 12, 1.0 / 11, 1.0 / 10, 1.0 / 9, 1.0 / 8,
                                  1.0 / 7,  1.0 / 6,  1.0 / 5,  1.0 / 4,  1.0 / 3,  1.0 / 2, 1.0};
    const double n = floor(x * 1.4426950408889634 + 0.5);
    const double r = (x - n * 0.69314718036912382) - n * 1.9082149292705877e-10; // ln 2, of which 32 bits first
    double p = 1.0, scale;
    for (int i = 0; i < GNI_COUNT(part); i++) p = 1.0 + r * part[i] * p;
    const uint64_t bits = (uint64_t)((int64_t)n + 1023) << 52;
    memcpy(&scale, &bits, 8);
    return p * scale;
}

// ---- distributions: an element's own words are Philox blocks of its counter with a third word that the common streams
// leave at 0. What is returned takes + - * / and the square root alone: the same bits everywhere (draw.comp).

enum { GNI_DRAW_RUN = 256 }; // elements of an item of work

// The low bits of the fourth word, which keep streams apart.
enum { GNI_STREAM_ELEMENT, GNI_STREAM_SEED, GNI_STREAM_LOADER, GNI_STREAM_PERMUTATION, GNI_STREAM_BITS = 2 };

typedef struct gni_element_stream {
    uint64_t seed, counter, word[2];
    uint32_t block, tag;
    int at;
} gni_element_stream;

// Philox4x32-10 of a counter of 128 bits. Words go in pairs: as single ones they would be written apart and read together.
static void gni_philox(uint64_t low, uint64_t high, uint64_t key, uint64_t *word) {
    uint32_t k0 = (uint32_t)(key & 0xffffffffu), k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < 10; i++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        const uint64_t a = (low & 0xffffffffu) * 0xd2511f53u, b = (high & 0xffffffffu) * 0xcd9e8d57u;
        low = (b >> 32 ^ low >> 32 ^ k0) | b << 32;
        high = (a >> 32 ^ high >> 32 ^ k1) | a << 32;
    }
    word[0] = low;
    word[1] = high;
}

static gni_element_stream gni_element_of(uint64_t seed, uint64_t counter, uint32_t tag) {
    gni_element_stream s;
    s.seed = seed;
    s.counter = counter;
    s.tag = tag;
    s.block = 0;
    s.at = 2;
    return s;
}

static void gni_element_more(gni_element_stream *s) {
    gni_philox(s->counter, (uint64_t)s->tag << 32 | ++s->block, s->seed, s->word);
    s->at = 0;
}

// In (0, 1].
static double gni_element_uniform(gni_element_stream *s) {
    if (s->at > 1) gni_element_more(s);
    return 1.0 - (double)(s->word[s->at++] >> 11) * 1.1102230246251565e-16;
}

static double gni_element_normal(gni_element_stream *s) {
    double x, other;
    if (s->at != 0) gni_element_more(s);
    gni_random_normal_pair(s->word[0], s->word[1], &x, &other);
    s->at = 2;
    return x;
}

static double gni_element_exponential(gni_element_stream *s) { return gni_random_log(gni_element_uniform(s)); }

// Marsaglia & Tsang (2000) for a shape of 1 and more; *log_boost is to be added to the logarithm of what smaller ones have.
// Their bound answers most tests without logarithms; it keeps further off than rounding may take those.
static double gni_element_gamma(gni_element_stream *s, const double *p, double *log_boost) {
    const double shape = p[GNI_D_GAMMA_SHAPE], d = p[GNI_D_GAMMA_D], c = p[GNI_D_GAMMA_C];
    *log_boost = 0.0;
    for (;;) {
        const double x = gni_element_normal(s), u = 1.0 + c * x, v = u * u * u;
        if (u <= 0.0) continue;
        const double y = gni_element_uniform(s), sure = 1.0 - 0.0331 * (x * x) * (x * x) - 1e-14 * d;
        if (y >= sure && -gni_random_log(y) >= 0.5 * x * x + d * (1.0 - v - gni_random_log(v))) continue;
        if (shape < 1.0) *log_boost = -gni_element_exponential(s) / shape;
        return d * v;
    }
}

// Hoermann, The transformed rejection method for generating Poisson random variables (1993); small means by products.
static double gni_element_poisson(gni_element_stream *s, const double *p) {
    double k = 0.0;
    if (p[GNI_D_LEAST] > 0.0) {
        for (double product = gni_element_uniform(s); product > p[GNI_D_LEAST]; product *= gni_element_uniform(s)) k += 1.0;
        return k;
    }
    const double mean = p[GNI_D_MEAN], a = p[GNI_D_A], b = p[GNI_D_B];
    for (;;) {
        const double u = gni_element_uniform(s) - 0.5, v = gni_element_uniform(s), near_end = 0.5 - fabs(u);
        if (near_end <= 0.0) continue;
        k = floor((2.0 * a / near_end + b) * u + mean + 0.43);
        if (near_end >= 0.07 && v <= p[GNI_D_TOP]) return k;
        if (k < 0.0 || (near_end < 0.013 && v > near_end)) continue;
        const double have = -gni_random_log(v * p[GNI_D_FACTOR] / (a / (near_end * near_end) + b));
        if (have <= k * p[GNI_D_LOG] - mean - gni_random_lgamma(k + 1.0)) return k;
    }
}

// Hoermann, The generation of binomial random variates (1993), BTRS; small means by the gaps between successes.
static double gni_element_binomial(gni_element_stream *s, const double *p) {
    const double n = p[GNI_D_TRIALS], mode = p[GNI_D_MODE], a = p[GNI_D_A], b = p[GNI_D_B];
    double k = 0.0;
    bool takes = false;
    if (p[GNI_D_LEAST] > 0.0) {
        double at = floor(gni_element_exponential(s) / p[GNI_D_LEAST]) + 1.0;
        for (; at <= n; k += 1.0) at += floor(gni_element_exponential(s) / p[GNI_D_LEAST]) + 1.0;
        takes = true;
    }
    while (!takes) {
        const double u = gni_element_uniform(s) - 0.5, v = gni_element_uniform(s), near_end = 0.5 - fabs(u);
        if (near_end <= 0.0) continue;
        k = floor((2.0 * a / near_end + b) * u + p[GNI_D_MEAN] + 0.5);
        if (k < 0.0 || k > n) continue;
        takes = near_end >= 0.07 && v <= p[GNI_D_TOP];
        if (takes) break;
        const double have = -gni_random_log(v * p[GNI_D_FACTOR] / (a / (near_end * near_end) + b));
        takes = have <= p[GNI_D_HEIGHT] - gni_random_lgamma(k + 1.0) - gni_random_lgamma(n - k + 1.0) +
                            (k - mode) * p[GNI_D_LOG];
    }
    return p[GNI_D_SWAP] != 0.0 ? n - k : k;
}

typedef enum gni_truncated_way {
    GNI_CUT_EVENLY, // rejected from even numbers, from exponential ones, from all normal ones
    GNI_CUT_TAIL,
    GNI_CUT_NORMAL,
    GNI_CUT_POINT, // one number as far as the deviation's digits tell
    GNI_CUT_FAR    // an exponential distribution but for rounding; not on a GPU
} gni_truncated_way;

// Robert, Simulation of truncated normal variables (1995).
static double gni_element_truncated(gni_element_stream *s, const double *p) {
    const double low = p[GNI_D_LOW], high = p[GNI_D_HIGH], rate = p[GNI_D_RATE], peak = p[GNI_D_PEAK];
    const gni_truncated_way way = (gni_truncated_way)(int)p[GNI_D_WAY];
    if (way == GNI_CUT_POINT) return low;
    if (way == GNI_CUT_FAR) return low - log1p(expm1(-low * (high - low)) * (1.0 - gni_element_uniform(s))) / low;
    for (;;) {
        double x;
        if (way == GNI_CUT_EVENLY) {
            x = low + gni_element_uniform(s) * (high - low);
            if (gni_element_exponential(s) < 0.5 * (x - peak) * (x + peak)) continue;
        } else if (way == GNI_CUT_TAIL) {
            x = low + gni_element_exponential(s) / rate;
            if (gni_element_exponential(s) < 0.5 * (x - rate) * (x - rate)) continue;
        } else {
            x = gni_element_normal(s);
        }
        if (x >= low && x <= high) return x;
    }
}

static double gni_element_draw(const gni_random *d, gni_element_stream *s) {
    const double *p = d->numbers;
    double boost = 0.0, more = 0.0, x, y;
    switch (d->kind) {
    case GNI_RAND_EXPONENTIAL: return p[GNI_D_SCALE] * gni_element_exponential(s);
    case GNI_RAND_GAMMA:
        x = gni_element_gamma(s, p, &boost);
        return p[GNI_D_SCALE] * (boost == 0.0 ? x : boost < -700.0 ? 0.0 : x * gni_random_exp(boost));
    case GNI_RAND_BETA: // by logarithms: both may be below the smallest number
        x = gni_element_gamma(s, p, &boost);
        y = gni_element_gamma(s, p + GNI_D_GAMMA_OTHER, &more);
        more -= boost;
        return more > 700.0 ? 0.0 : 1.0 / (1.0 + y / x * (more < -700.0 ? 0.0 : gni_random_exp(more)));
    case GNI_RAND_POISSON: return gni_element_poisson(s, p);
    case GNI_RAND_BINOMIAL: return gni_element_binomial(s, p);
    default:
        x = p[GNI_D_CENTER] + p[GNI_D_SPREAD] * gni_element_truncated(s, p);
        return GNI_MAX(p[GNI_D_BOUND], GNI_MIN(x, p[GNI_D_BOUND + 1]));
    }
}

// Number x of a permutation: rounds that exchange the halves of its bits as block ciphers do (Luby & Rackoff 1988), again
// where the result is no number of it (Black & Rogaway 2002). What makes a half other is MurmurHash3's last step (Appleby).
// Of GNI_PLACES numbers at once, whose multiplications overlap.
enum { GNI_PLACES = 16 }; // which GNI_DRAW_RUN is a multiple of
static void gni_random_places(const gni_random *d, uint64_t *x) {
    uint32_t half[2][GNI_PLACES], mask[2], key[GNI_D_ROUNDS], open = UINT32_MAX; // open: one is no number of it yet
    bool done[GNI_PLACES] = {false};
    const int low = (int)d->low;
    mask[0] = ((uint32_t)1 << low) - 1u;
    mask[1] = (d->range - 1) >> (2 * low) == 0 ? mask[0] : 2u * mask[0] + 1u;
    memcpy(key, d->numbers, sizeof key);
    while (open != 0) {
        for (int l = 0; l < GNI_PLACES; l++) {
            half[0][l] = (uint32_t)x[l] & mask[0];
            half[1][l] = (uint32_t)(x[l] >> low);
        }
        for (int i = 0; i < GNI_D_ROUNDS; i++) {
            const uint32_t *from = half[i & 1], k = key[i], m = mask[~i & 1];
            uint32_t *to = half[~i & 1];
            uint32_t h[GNI_PLACES];
            for (int l = 0; l < GNI_PLACES; l++) {
                h[l] = from[l] ^ k;
                h[l] = (h[l] ^ h[l] >> 16) * 0x85ebca6bu;
                h[l] = (h[l] ^ h[l] >> 13) * 0xc2b2ae35u;
            }
            for (int l = 0; l < GNI_PLACES; l++) to[l] ^= (h[l] ^ h[l] >> 16) & m;
        }
        open = 0;
        for (int l = 0; l < GNI_PLACES; l++) {
            const uint64_t next = (uint64_t)half[1][l] << low | half[0][l];
            x[l] = done[l] ? x[l] : next;
            done[l] = x[l] < d->range;
            open |= !done[l];
        }
    }
}

static void gni_permute_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_random_job *j = (const gni_random_job *)arg;
    const gni_random *d = j->d;
    const int64_t item = gni_item_size(d->out.dtype);
    GNI_UNUSED(worker);
    end = GNI_MIN(end * GNI_DRAW_RUN, d->n);
    for (int64_t at = begin * GNI_DRAW_RUN; at < end; at += GNI_PLACES) {
        uint64_t x[GNI_PLACES];
        for (int k = 0; k < GNI_PLACES; k++) x[k] = d->counter + (uint64_t)GNI_MIN(at + k, end - 1);
        gni_random_places(d, x);
        for (int k = 0; k < GNI_PLACES && at + k < end; k++)
            gni_put_int(d->out.dtype, j->out + (at + k) * item, (int64_t)x[k]);
    }
}

static void gni_draw_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_random_job *j = (const gni_random_job *)arg;
    const gni_random *d = j->d;
    uint32_t w[4 * GNI_DRAW_RUN];
    GNI_UNUSED(worker);
    end = GNI_MIN(end * GNI_DRAW_RUN, d->n);
    for (int64_t at = begin * GNI_DRAW_RUN; at < end; at += GNI_DRAW_RUN) {
        const int64_t n = GNI_MIN(end - at, (int64_t)GNI_DRAW_RUN);
        const uint64_t first = d->counter + (uint64_t)at;
        j->isa->bits(w, d->seed, first, 1, n);
        for (int64_t i = 0; i < n; i++) {
            gni_element_stream s = gni_element_of(d->seed, first + (uint64_t)i, GNI_STREAM_ELEMENT);
            s.word[0] = gni_random_pair(w + 4 * i);
            s.word[1] = gni_random_pair(w + 4 * i + 2);
            s.block = 1;
            s.at = 0;
            gni_store_double(d->out.dtype, j->out, at + i, gni_element_draw(d, &s));
        }
    }
}

static bool gni_cpu_random(gn_context *g, const void *job) {
    const gni_random *d = (const gni_random *)job;
    gni_random_job j;
    if (d->n <= 0) return true;
    j.d = d;
    j.isa = GNI_OF_ISA(g->isa, gni_random_table);
    j.store = gni_cpu_isa_of(g->isa)->store[GN_BOOL];
    j.out = gni_operand_data(&d->out);
    j.pairs = gni_random_pairs(d);
    const bool draws = d->kind >= GNI_RAND_EXPONENTIAL;
    const int64_t run = draws ? GNI_DRAW_RUN : GNI_RANDOM_BLOCKS * (j.pairs ? 2 : 4);
    gni_parallel(g->pool, (d->n - 1) / run + 1, draws ? 4 : 8,
                 d->kind == GNI_RAND_PERMUTATION ? gni_permute_task : draws ? gni_draw_task : gni_random_task, &j);
    return true;
}

static bool gni_cpu_takes_random(const gn_context *g, const void *job) {
    GNI_UNUSED(g);
    const gni_random *d = (const gni_random *)job;
    const gn_dtype t = d->out.dtype;
    if (d->kind == GNI_RAND_BITS) return t == GN_U32 || t == GN_I32;
    if (d->kind == GNI_RAND_BELOW) return t == GN_BOOL;
    if (d->kind >= GNI_RAND_EXPONENTIAL) return gni_is_float(t) || gni_is_integer(t);
    return d->kind == GNI_RAND_RANGE ? gni_is_integer(t) || t == GN_BOOL : gni_is_float(t);
}
