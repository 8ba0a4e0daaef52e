// >>fft_cpu
// The FFT on the CPU: plans and their cache, transforms of contiguous numbers.
// From outside: gni_fft_free, gni_ft_factor, and what room `fft jobs` runs.
//
// A length of primes up to 13 is done as a b: column transforms of a points, a twist, row transforms
// of b points, both W at a time (Bailey's four-step with the transpose inside the twist). Short ones are
// done W at a time over the batch, or by their sums when there is one; others by Bluestein's convolution.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/circle.h"
#include "../cpu/threads.h"
#endif

static const gni_ft_isa *gni_ft_isa_of(int isa, bool wide) {
    return wide ? GNI_OF_ISA(isa, gni_ft_table_f64) : GNI_OF_ISA(isa, gni_ft_table_f32);
}

// ---- factors and tables

// Points of a circle of n. For float tables they are products of a coarse and a fine one: a sine takes ten
// times as long, and the products' error of 2^-52 vanishes in the rounding.
typedef struct gni_ft_circle {
    int64_t n;
    int shift;
    double *fine, *coarse; // exp(-2 pi i k / n) for k < 2^shift, and for multiples of that; or NULL
} gni_ft_circle;

static bool gni_ft_circle_make(gn_context *g, gni_ft_circle *c, int64_t n, bool wide) {
    memset(c, 0, sizeof *c);
    c->n = n;
    if (wide || n < 256) return true;
    while ((int64_t)1 << (2 * c->shift) < n) c->shift++;
    const int64_t fine = (int64_t)1 << c->shift, coarse = (n >> c->shift) + 1;
    c->fine = (double *)gni_alloc(g, (size_t)(fine + coarse) * 2 * sizeof(double));
    if (c->fine == NULL) return false;
    c->coarse = c->fine + 2 * fine;
    for (int64_t k = 0; k < fine; k++) gni_ft_twiddle(k, n, &c->fine[2 * k], &c->fine[2 * k + 1]);
    for (int64_t k = 0; k < coarse; k++)
        gni_ft_twiddle(k << c->shift, n, &c->coarse[2 * k], &c->coarse[2 * k + 1]);
    return true;
}

static void gni_ft_circle_free(gn_context *g, gni_ft_circle *c) { gni_free(g, c->fine); }

// exp(-2 pi i k / n), 0 <= k
static void gni_ft_circle_get(const gni_ft_circle *c, int64_t k, double *re, double *im) {
    if (c->fine == NULL) {
        gni_ft_twiddle(k, c->n, re, im);
        return;
    }
    k %= c->n;
    const double *a = c->coarse + 2 * (k >> c->shift),
                 *b = c->fine + 2 * (k & (((int64_t)1 << c->shift) - 1));
    *re = a[0] * b[0] - a[1] * b[1];
    *im = a[0] * b[1] + a[1] * b[0];
}

static void gni_ft_set(void *table, bool wide, int64_t i, double re, double im) {
    if (wide) {
        ((double *)table)[2 * i] = re;
        ((double *)table)[2 * i + 1] = im;
    } else {
        ((float *)table)[2 * i] = (float)re;
        ((float *)table)[2 * i + 1] = (float)im;
    }
}

static size_t gni_ft_item(bool wide) { return wide ? 16 : 8; }

// The radices of n, or 0 when it has a prime factor above 13.
static int gni_ft_factor(int64_t n, int max_radix, int *radix) {
    static const int odd[] = {13, 11, 7, 9, 5, 3};
    int count = 0, twos = 0;
    if (n < 1) return 0;
    while (n % 2 == 0) n /= 2, twos++;
    const int most = max_radix >= 16 ? 4 : 3, passes = (twos + most - 1) / most;
    for (int i = 0; i < passes; i++)
        radix[count++] = 1 << (twos / passes + (i < twos % passes ? 1 : 0));
    for (int i = 0; i < GNI_COUNT(odd); i++)
        while (n % odd[i] == 0) n /= odd[i], radix[count++] = odd[i];
    return n == 1 ? count : 0;
}

// The same with primes up to GNI_FT_MAX_PRIME, which the CPU sums directly.
static int gni_ft_radices(int64_t n, int max_radix, int *radix) {
    static const int known[] = {17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, GNI_FT_MAX_PRIME};
    int count = 0, primes[16];
    for (int i = 0; i < GNI_COUNT(known); i++)
        while (n % known[i] == 0 && count < 16) n /= known[i], primes[count++] = known[i];
    int rest = gni_ft_factor(n, max_radix, radix);
    if (n > 1 && rest == 0) return 0;
    for (int i = 0; i < count; i++) radix[rest++] = primes[i];
    return rest;
}

static void gni_ft_lane_free(gn_context *g, gni_ft_lane *f) {
    gni_free(g, f->table);
    f->table = NULL;
}

// Primes from 7 on may have no butterfly of their own.
static bool gni_ft_has_circle(int radix) {
    return radix > 16 || radix == 7 || radix == 11 || radix == 13;
}

// n divides the number of points of the circle.
static bool gni_ft_lane_make(gn_context *g, const gni_ft_isa *isa, bool wide, int64_t n,
                             const gni_ft_circle *circle, gni_ft_lane *f) {
    int radix[64];
    memset(f, 0, sizeof *f);
    f->n = n;
    f->count = gni_ft_radices(n, isa->max_radix, radix);
    int64_t size = 0, s = 1;
    for (int i = 0; i < f->count; i++) {
        gni_ft_pass *p = &f->pass[i];
        p->radix = radix[i];
        p->s = s;
        s *= radix[i];
        p->m = n / s;
        size += p->m * (radix[i] - 1) + (gni_ft_has_circle(radix[i]) ? radix[i] : 0);
    }
    f->table = gni_alloc(g, (size_t)(size + 1) * gni_ft_item(wide));
    if (f->table == NULL) return false;
    int64_t at = 0;
    for (int i = 0; i < f->count; i++) {
        gni_ft_pass *p = &f->pass[i];
        p->twiddle = (char *)f->table + (size_t)at * gni_ft_item(wide);
        for (int64_t j = 0; j < p->m; j++)
            for (int q = 1; q < p->radix; q++) {
                double re, im;
                gni_ft_circle_get(circle, j * q * p->s * (circle->n / n), &re, &im);
                gni_ft_set(f->table, wide, at++, re, im);
            }
        p->circle = (char *)f->table + (size_t)at * gni_ft_item(wide);
        for (int q = 0; q < p->radix && gni_ft_has_circle(p->radix); q++) {
            double re, im;
            gni_ft_twiddle(q, p->radix, &re, &im);
            gni_ft_set(f->table, wide, at++, re, -im);
        }
    }
    return true;
}

// ---- plans

typedef enum gni_ft_form {
    GNI_FT_ROWS,    // transforms of contiguous numbers, few
    GNI_FT_BATCH,   // and W or more of them
    GNI_FT_COLUMNS, // W at a time, side by side in memory
    GNI_FT_FOLD     // the factors that a real transform of 2 n points needs
} gni_ft_form;

typedef enum gni_ft_method {
    GNI_FT_SIDE_BY_SIDE,
    GNI_FT_TINY,
    GNI_FT_SMALL,
    GNI_FT_STEPS,
    GNI_FT_DIRECT,
    GNI_FT_CHIRP
} gni_ft_method;

#define GNI_FT_FOLD_BLOCK                                                                          \
    1024                  // factors kept of a fold; the others are products with one for each block
#define GNI_FT_FULL 32768 // up to this length each element has its own factor in the twist

typedef struct gni_ft_plan {
    struct gni_ft_plan *next;
    gni_ft_form form;
    int64_t n;
    bool wide;
    uint64_t used; // number of the call that used it last
    size_t bytes;
    const gni_ft_isa *isa;
    gni_ft_method method;
    gni_ft_lane a, b;         // STEPS: both; otherwise b
    int64_t groups;           // of W columns
    bool head;                // a is W
    void *twiddle, *more;        // of the twist; of a fold, and of sums: `twiddle`
    struct gni_ft_plan *conv; // CHIRP: of the convolution
    void *chirp, *kernel;
    size_t shared, each; // bytes of work: one part, and one for each thread that takes part
} gni_ft_plan;

// Kept from call to call.
typedef struct gni_fft_state {
    gni_ft_plan *plans;
    size_t plan_bytes;
    uint64_t call;
    void *work;
    size_t work_bytes;
} gni_fft_state;

#define GNI_FT_PLAN_BYTES ((size_t)64 << 20)  // of all plans; more only while one call needs them
#define GNI_FT_WORK_BYTES ((size_t)256 << 20) // of memory kept between calls
#define GNI_FT_AHEAD_LEAST ((uint64_t)1 << 20)  // of all rows and results: less stays in the caches
#define GNI_FT_AHEAD_MOST ((uint64_t)256 << 10) // of a row and its result
#define GNI_FT_PACK_BYTES ((int64_t)256 << 10) // of a block of columns
#define GNI_FT_PACK_LEAST ((uint64_t)4 << 20)  // of an array whose columns are copied

static void gni_ft_plan_free(gn_context *g, gni_ft_plan *p) {
    if (p == NULL) return;
    gni_ft_plan_free(g, p->conv);
    gni_ft_lane_free(g, &p->a);
    gni_ft_lane_free(g, &p->b);
    gni_free(g, p->twiddle);
    gni_free(g, p->more);
    gni_free(g, p->chirp);
    gni_free(g, p->kernel);
    gni_free(g, p);
}

static void gni_fft_free(gn_context *g) {
    gni_fft_state *s = g->fft;
    if (s == NULL) return;
    while (s->plans != NULL) {
        gni_ft_plan *p = s->plans;
        s->plans = p->next;
        gni_ft_plan_free(g, p);
    }
    gni_free(g, s->work);
    gni_free(g, s);
    g->fft = NULL;
}

// Time of one lane transform of n points, per row, in about cycles.
static double gni_ft_lane_cost(const gni_ft_isa *isa, int64_t n, bool wide) {
    static const double cost[17] = {0,   0, 2.6, 3.2, 3.0,  4.2, 0, 6.0, 4.0,
                                    5.0, 0, 9.0, 0,   11.0, 0,   0, 5.2};
    int radix[64];
    int count = gni_ft_radices(n, isa->max_radix, radix);
    double sum = 0.0, bytes = (double)n * 2.0 * (double)isa->lanes * (double)gni_ft_item(wide);
    if (count == 0) return -1.0;
    for (int i = 0; i < count; i++) sum += radix[i] > 16 ? 2.0 + 0.6 * radix[i] : cost[radix[i]];
    return bytes > 800e3 ? sum * 2.5 : bytes > 44e3 ? sum * 1.4 : sum;
}

// Cuts n into a b as cheaply as can be had, in about cycles. Negative: it has no such factors.
static double gni_ft_cut(const gni_ft_isa *isa, int64_t n, bool wide, int64_t *best_a) {
    const int64_t w = isa->lanes;
    double best = -1.0;
    for (int64_t d = 1; d <= n / d; d++)
        for (int both = 0; n % d == 0 && both < 2; both++) {
            const int64_t a = both ? n / d : d, b = n / a;
            if (a < w || b < w) continue;
            double first = gni_ft_lane_cost(isa, a, wide), second = gni_ft_lane_cost(isa, b, wide);
            if (first < 0.0 || second < 0.0) continue;
            first = a == w && n <= GNI_FT_FULL ? 9.0 : first + 6.0;
            double cost =
                (double)((b + w - 1) / w * a) * first + (double)((a + w - 1) / w * b) * second;
            if (best < 0.0 || cost < best) {
                best = cost;
                *best_a = a;
            }
        }
    return best;
}

// What lane l of w holds: GNI_FT_P of room `fft micro`.
static int64_t gni_ft_number(int64_t l, int64_t w, bool wide) {
    return wide ? l % 2 * (w / 2) + l / 2 : l % 4 / 2 * (w / 2) + l / 4 * 2 + l % 2;
}

// Factors exp(-2 pi i j k / n) of the twist: for each group of columns and each row a vector, or, for
// long transforms, a vector for each row and a scalar for each row and group.
static bool gni_ft_make_twist(gn_context *g, gni_ft_plan *p, const gni_ft_circle *circle) {
    const int64_t w = p->isa->lanes, a = p->a.n, b = p->b.n;
    const bool full = p->n <= GNI_FT_FULL;
    const size_t item = gni_ft_item(p->wide);
    p->groups = (b + w - 1) / w;
    p->head = full && a == w && p->isa->head != NULL;
    p->twiddle = gni_alloc(g, (size_t)((full ? p->groups : 1) * a * w) * item);
    p->more = full ? NULL : gni_alloc(g, (size_t)(p->groups * a) * item);
    if (p->twiddle == NULL || (!full && p->more == NULL)) return false;
    for (int64_t group = 0; group < (full ? p->groups : 1); group++)
        for (int64_t k = 0; k < a; k++)
            for (int64_t l = 0; l < w; l++) {
                double re, im;
                const int64_t at = gni_ft_number(l, w, p->wide);
                int64_t j = !full ? at : b < w ? at % b : GNI_MIN(group * w, b - w) + at;
                gni_ft_circle_get(circle, j * k, &re, &im);
                char *v = (char *)p->twiddle + (size_t)((group * a + k) * w) * item;
                if (p->wide)
                    ((double *)(void *)v)[l] = re, ((double *)(void *)v)[w + l] = im;
                else
                    ((float *)(void *)v)[l] = (float)re, ((float *)(void *)v)[w + l] = (float)im;
            }
    for (int64_t group = 0; group < p->groups && !full; group++)
        for (int64_t k = 0; k < a; k++) {
            double re, im;
            gni_ft_circle_get(circle, GNI_MIN(group * w, b - w) * k, &re, &im);
            gni_ft_set(p->more, p->wide, group * a + k, re, im);
        }
    p->bytes += (size_t)((full ? p->groups * w : w + p->groups) * a) * item;
    return true;
}

static gni_ft_plan *gni_ft_plan_make(gn_context *g, gni_ft_form form, int64_t n, bool wide);
static void gni_ft_transform(const gni_ft_plan *p, gni_pool *pool, const void *src, void *dst,
                             double scale, bool swap, char *work);

// A smooth length of at least `n` that is cut well.
static int64_t gni_ft_smooth_above(const gni_ft_isa *isa, int64_t n, bool wide) {
    static const int64_t odd[] = {1, 3, 5, 9, 15};
    int64_t best = 0, a;
    double best_cost = -1.0;
    for (int i = 0; i < GNI_COUNT(odd); i++) {
        int64_t m = odd[i];
        while (m < n) m *= 2;
        if (gni_ft_cut(isa, m, wide, &a) < 0.0) continue;
        double cost = (double)m * (i == 0 ? 1.0 : 1.06);
        if (best == 0 || cost < best_cost) best = m, best_cost = cost;
    }
    if (best == 0)
        for (best = 1; best < n;) best *= 2;
    return best;
}

// Bluestein: j k = (j^2 + k^2 - (j - k)^2) / 2 makes the transform a convolution with a chirp.
static bool gni_ft_make_chirp(gn_context *g, gni_ft_plan *p) {
    const int64_t n = p->n, m = gni_ft_smooth_above(p->isa, 2 * n - 1, p->wide);
    const size_t item = gni_ft_item(p->wide);
    p->conv = gni_ft_plan_make(g, GNI_FT_ROWS, m, p->wide);
    p->chirp = gni_alloc(g, (size_t)n * item);
    p->kernel = gni_alloc(g, (size_t)m * item);
    void *time = gni_calloc(g, (size_t)m * item);
    char *work = p->conv != NULL ? (char *)gni_alloc(g, p->conv->shared + p->conv->each) : NULL;
    gni_ft_circle circle;
    bool ok = gni_ft_circle_make(g, &circle, 2 * n, p->wide) && p->chirp != NULL &&
              p->kernel != NULL && time != NULL && work != NULL;
    uint64_t square = 0; // j^2 mod 2 n
    for (int64_t j = 0; j < n && ok; j++) {
        double re, im;
        gni_ft_circle_get(&circle, (int64_t)square, &re, &im);
        gni_ft_set(p->chirp, p->wide, j, re, im);
        gni_ft_set(time, p->wide, j, re, -im);
        if (j > 0) gni_ft_set(time, p->wide, m - j, re, -im);
        square += 2 * (uint64_t)j + 1; // below 4 n
        if (square >= 2 * (uint64_t)n) square -= 2 * (uint64_t)n;
    }
    if (ok) gni_ft_transform(p->conv, NULL, time, p->kernel, 1.0 / (double)m, false, work);
    gni_ft_circle_free(g, &circle);
    gni_free(g, time);
    gni_free(g, work);
    if (!ok) return false;
    p->bytes += (size_t)(n + m) * item + p->conv->bytes;
    p->shared = 2 * (size_t)m * item + p->conv->shared;
    p->each = p->conv->each;
    return true;
}

static bool gni_ft_make_fold(gn_context *g, gni_ft_plan *p) {
    const int64_t size = GNI_MIN(p->n / 2 + 1, GNI_FT_FOLD_BLOCK);
    p->twiddle = gni_alloc(g, (size_t)size * gni_ft_item(p->wide));
    if (p->twiddle == NULL) return false;
    p->bytes += (size_t)size * gni_ft_item(p->wide);
    for (int64_t k = 0; k < size; k++) {
        double re, im;
        gni_ft_twiddle(k, 2 * p->n, &re, &im);
        gni_ft_set(p->twiddle, p->wide, k, re, im);
    }
    return true;
}

// Whether a smooth length is cut, and into what. Few short rows fill narrower vectors better.
static bool gni_ft_in_steps(gn_context *g, gni_ft_plan *p, int64_t *a) {
    double cost = -1.0;
    if (p->form == GNI_FT_COLUMNS || (p->isa->lanes == 1 && p->n <= 16384)) return false;
    for (int isa = (int)g->isa; isa >= 0; isa--) {
        const gni_ft_isa *one = gni_ft_isa_of(isa, p->wide);
        if (isa < (int)g->isa && (one->lanes == 1 || p->form == GNI_FT_BATCH)) break;
        cost = gni_ft_cut(one, p->n, p->wide, a);
        if (cost < 0.0) continue;
        p->isa = one;
        break;
    }
    // Side by side two transpositions come on top.
    const double side =
        ((double)p->n / p->isa->lanes) * (gni_ft_lane_cost(p->isa, p->n, p->wide) + 10.0);
    return cost >= 0.0 && (p->form == GNI_FT_ROWS || cost < side);
}

// Whether lanes times a divisor of them make the length; one transform by itself must fill the vectors.
static bool gni_ft_is_small(gn_context *g, gni_ft_plan *p) {
    for (int isa = (int)g->isa; isa >= 0 && p->form != GNI_FT_COLUMNS; isa--) {
        const gni_ft_isa *one = gni_ft_isa_of(isa, p->wide);
        const int64_t w = one->lanes, b = p->n / w;
        if (one->whole == NULL) return false;
        if (p->n % w != 0 || b > w || w % b != 0 || (b < w && (p->form == GNI_FT_ROWS || p->n <= GNI_FT_MAX_TINY)))
            continue;
        p->isa = one;
        return true;
    }
    return false;
}

// Whether one transform by itself is done by its sums: where it would fill one lane of each vector, or short
// ones.
static bool gni_ft_is_direct(const gn_context *g, const gni_ft_plan *p, bool steps) {
    const bool narrow = p->isa != gni_ft_isa_of((int)g->isa, p->wide);
    return p->form == GNI_FT_ROWS && p->n >= 3 &&
           p->n <= (!steps   ? GNI_FT_MAX_DIRECT
                    : narrow ? GNI_FT_MAX_DIRECT / 2
                             : 0);
}

// The cosines and sines of gni_ft_direct, in the order of use.
static bool gni_ft_make_direct(gn_context *g, gni_ft_plan *p) {
    // The least lanes that take half of the frequencies.
    for (int isa = (int)g->isa; isa > 0; isa--) {
        const gni_ft_isa *one = gni_ft_isa_of(isa, p->wide);
        if (one->lanes > 1 && (isa == (int)g->isa || one->lanes >= p->n / 2)) p->isa = one;
    }
    const int64_t w = p->isa->lanes, h = (p->n - 1) / 2, blocks = (p->n / 2 + w - 1) / w;
    const size_t bytes = (size_t)(blocks * h * w) * gni_ft_item(p->wide);
    p->method = GNI_FT_DIRECT;
    p->twiddle = gni_alloc(g, bytes);
    if (p->twiddle == NULL) return false;
    p->bytes += bytes;
    for (int64_t i = 0; i < blocks * h * w; i++) {
        const int64_t l = i % w, q = i / w % h + 1, v = i / w / h;
        const int64_t k = v * w + gni_ft_number(l, w, p->wide) + 1, at = 2 * (i / w * w) + l;
        double re, im;
        gni_ft_twiddle(k * q, p->n, &re, &im);
        if (q == h) re = k % 2 == 0 ? 1.0 : -1.0; // of the number without a mirror image
        if (p->wide)
            ((double *)p->twiddle)[at] = re, ((double *)p->twiddle)[at + w] = -im;
        else
            ((float *)p->twiddle)[at] = (float)re, ((float *)p->twiddle)[at + w] = (float)-im;
    }
    return true;
}

static bool gni_ft_make_smooth(gn_context *g, gni_ft_plan *p, const gni_ft_circle *circle) {
    int64_t a = 0;
    if (p->form == GNI_FT_BATCH && GNI_FT_IS_TINY(p->n) && p->isa->tiny != NULL) {
        p->method = GNI_FT_TINY;
        // Vectors of eight numbers are worth their longer shuffles where several rows fill them.
        if (p->isa->lanes == 16 && p->n != 2 && p->n != 4)
            p->isa = gni_ft_isa_of((int)g->isa - 1, p->wide);
        return true;
    }
    if (gni_ft_is_small(g, p)) {
        p->method = GNI_FT_SMALL;
        p->a.n = p->isa->lanes;
        p->b.n = p->n / p->a.n;
        return gni_ft_make_twist(g, p, circle);
    }
    const bool steps = gni_ft_in_steps(g, p, &a);
    if (gni_ft_is_direct(g, p, steps)) return gni_ft_make_direct(g, p);
    if (steps) {
        const size_t row = (size_t)p->isa->lanes * gni_ft_item(p->wide);
        p->method = GNI_FT_STEPS;
        if (!gni_ft_lane_make(g, p->isa, p->wide, a, circle, &p->a) ||
            !gni_ft_lane_make(g, p->isa, p->wide, p->n / a, circle, &p->b) ||
            !gni_ft_make_twist(g, p, circle))
            return false;
        p->bytes += (size_t)(p->a.n + p->b.n) * gni_ft_item(p->wide);
        p->shared = (size_t)((a + p->isa->lanes - 1) / p->isa->lanes * p->b.n) * row;
        p->each = 2 * (size_t)GNI_MAX(p->a.n, p->b.n) * row;
        return true;
    }
    p->method = GNI_FT_SIDE_BY_SIDE;
    // Vectors longer than a row would be filled number by number.
    for (int isa = (int)g->isa; isa > 0 && p->form != GNI_FT_COLUMNS && p->isa->lanes > p->n; isa--)
        if (gni_ft_isa_of(isa, p->wide)->lanes > 1) p->isa = gni_ft_isa_of(isa, p->wide);
    if (!gni_ft_lane_make(g, p->isa, p->wide, p->n, circle, &p->b)) return false;
    p->bytes += (size_t)p->n * gni_ft_item(p->wide);
    p->each = 2 * (size_t)(p->n * p->isa->lanes) * gni_ft_item(p->wide);
    return true;
}

static bool gni_ft_make_rows(gn_context *g, gni_ft_plan *p) {
    int radix[64];
    gni_ft_circle circle;
    if (p->n > 1 && gni_ft_radices(p->n, p->isa->max_radix, radix) == 0) {
        p->method = GNI_FT_CHIRP;
        return gni_ft_make_chirp(g, p);
    }
    bool ok = gni_ft_circle_make(g, &circle, p->n, p->wide) && gni_ft_make_smooth(g, p, &circle);
    gni_ft_circle_free(g, &circle);
    return ok;
}

static gni_ft_plan *gni_ft_plan_make(gn_context *g, gni_ft_form form, int64_t n, bool wide) {
    gni_ft_plan *p = (gni_ft_plan *)gni_calloc(g, sizeof(gni_ft_plan));
    if (p == NULL) return NULL;
    p->form = form;
    p->n = n;
    p->wide = wide;
    p->isa = gni_ft_isa_of((int)g->isa, wide);
    p->bytes = sizeof *p;
    if (form == GNI_FT_FOLD ? gni_ft_make_fold(g, p) : gni_ft_make_rows(g, p)) return p;
    gni_ft_plan_free(g, p);
    return NULL;
}

// Drops what has not been used for longest until `room` more bytes fit.
static void gni_ft_evict(gn_context *g, size_t room) {
    gni_fft_state *s = g->fft;
    while (s->plan_bytes + room > GNI_FT_PLAN_BYTES) {
        gni_ft_plan **oldest = NULL;
        for (gni_ft_plan **at = &s->plans; *at != NULL; at = &(*at)->next)
            if ((*at)->used != s->call && (oldest == NULL || (*at)->used < (*oldest)->used))
                oldest = at;
        if (oldest == NULL) return;
        gni_ft_plan *p = *oldest;
        *oldest = p->next;
        s->plan_bytes -= p->bytes;
        gni_ft_plan_free(g, p);
    }
}

static const gni_ft_plan *gni_ft_plan_get(gn_context *g, gni_ft_form form, int64_t n, bool wide) {
    gni_fft_state *s = g->fft;
    for (gni_ft_plan **at = &s->plans; *at != NULL; at = &(*at)->next) {
        gni_ft_plan *p = *at;
        if (p->n != n || p->form != form || p->wide != wide) continue;
        *at = p->next;
        p->next = s->plans;
        s->plans = p;
        p->used = s->call;
        return p;
    }
    gni_ft_plan *p = gni_ft_plan_make(g, form, n, wide);
    if (p == NULL) return NULL;
    gni_ft_evict(g, p->bytes);
    p->used = s->call;
    p->next = s->plans;
    s->plans = p;
    s->plan_bytes += p->bytes;
    return p;
}

// ---- transforms of contiguous numbers

typedef struct gni_ft_steps {
    const gni_ft_plan *p;
    const char *src;
    char *dst, *rows, *each;
    int64_t next_src, next_dst; // bytes to the row that follows; 0: it is not fetched early
    double scale;
    bool swap;
} gni_ft_steps;

// To the second-level cache. A first level that is full drops requests, and hardware does not foresee the order in which
// a row's lines are used.
static void gni_ft_fetch(const char *p, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += 64) {
        GNI_FT_PREFETCH_2(p + at);
        GNI_FT_KEPT;
    }
}

// Part `i` of `parts` of the next row and of its result: many at once would be dropped too.
static void gni_ft_fetch_next(const gni_ft_steps *t, int64_t i, int64_t parts) {
    const int64_t bytes = t->p->n * (int64_t)gni_ft_item(t->p->wide);
    const int64_t begin = bytes * i / parts, end = bytes * (i + 1) / parts;
    gni_ft_fetch(t->src + t->next_src + begin, end - begin);
    gni_ft_fetch(t->dst + t->next_dst + begin, end - begin);
}

static void gni_ft_step_1(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_ft_steps *t = (const gni_ft_steps *)arg;
    const gni_ft_plan *p = t->p;
    const int64_t w = p->isa->lanes, a = p->a.n, b = p->b.n;
    const size_t item = gni_ft_item(p->wide);
    const bool full = p->more == NULL;
    // The last group reaches back into the one before it: one task does both.
    if (end == p->groups - 1 && b % w != 0) end = p->groups;
    for (int64_t group = begin; group < end; group++) {
        const int64_t j = GNI_MIN(group * w, b - w);
        const char *twiddle = (const char *)p->twiddle + (full ? (size_t)(group * a * w) * item : 0);
        if (t->next_src != 0) gni_ft_fetch_next(t, 2 * group, 3 * p->groups);
        if (p->head) {
            p->isa->head(t->src, b, j, twiddle, t->swap, t->rows);
            if (t->next_src != 0) gni_ft_fetch_next(t, 2 * group + 1, 3 * p->groups);
            continue;
        }
        void *x = p->isa->columns_in(&p->a, t->src + (size_t)j * item, b, t->swap,
                                     t->each + (size_t)worker * p->each);
        const char *more = full ? NULL : (const char *)p->more + (size_t)(group * a) * item;
        if (t->next_src != 0) gni_ft_fetch_next(t, 2 * group + 1, 3 * p->groups);
        p->isa->twist(x, a, b, j, twiddle, more, t->rows);
    }
}

static void gni_ft_step_2(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_ft_steps *t = (const gni_ft_steps *)arg;
    const gni_ft_plan *p = t->p;
    const int64_t w = p->isa->lanes, a = p->a.n, b = p->b.n, blocks = (a + w - 1) / w;
    const size_t item = gni_ft_item(p->wide);
    if (end == blocks - 1 && a % w != 0) end = blocks;
    for (int64_t i = begin; i < end; i++) {
        const int64_t k = GNI_MIN(i * w, a - w);
        if (t->next_src != 0) gni_ft_fetch_next(t, 2 * blocks + i, 3 * blocks);
        p->isa->columns_out(&p->b, t->rows + (size_t)(i * b * w) * item, t->dst + (size_t)k * item,
                            a, t->scale, t->swap, t->each + (size_t)worker * p->each);
    }
}

// A convolution does not give a constant's zeros. Whether there is one, with its transform.
static bool gni_ft_constant(const gni_ft_plan *p, const void *src, void *dst, double scale) {
    const size_t item = gni_ft_item(p->wide);
    if (memcmp(src, (const char *)src + item, (size_t)(p->n - 1) * item) != 0) return false;
    double re = p->wide ? ((const double *)src)[0] : (double)((const float *)src)[0];
    double im = p->wide ? ((const double *)src)[1] : (double)((const float *)src)[1];
    if (re - re != 0.0 || im - im != 0.0) return false; // not finite
    memset(dst, 0, (size_t)p->n * item);
    gni_ft_set(dst, p->wide, 0, re * (double)p->n * scale, im * (double)p->n * scale);
    return true;
}

// In two steps. `next_src` and `next_dst` as in gni_ft_steps.
static void gni_ft_two_steps(const gni_ft_plan *p, gni_pool *pool, const void *src, void *dst,
                             int64_t next_src, int64_t next_dst, double scale, bool swap,
                             char *work) {
    gni_ft_steps t;
    const int64_t w = p->isa->lanes, blocks = (p->a.n + w - 1) / w;
    t.p = p;
    t.src = (const char *)src;
    t.dst = (char *)dst;
    t.rows = work;
    t.each = work + p->shared;
    t.next_src = next_src;
    t.next_dst = next_dst;
    t.scale = scale;
    t.swap = swap;
    // A last one that reaches back is done with the one before it.
    int64_t one = p->groups - (p->b.n % w != 0 && p->groups > 1 ? 1 : 0);
    int64_t two = blocks - (p->a.n % w != 0 && blocks > 1 ? 1 : 0);
    gni_parallel(pool, one, 1, gni_ft_step_1, &t);
    gni_parallel(pool, two, 1, gni_ft_step_2, &t);
}

static void gni_ft_transform(const gni_ft_plan *p, gni_pool *pool, const void *src, void *dst,
                             double scale, bool swap, char *work) {
    if (p->method == GNI_FT_SIDE_BY_SIDE) {
        p->isa->batch(&p->b, src, p->n, dst, p->n, 1, scale, swap, work);
    } else if (p->method == GNI_FT_SMALL) {
        p->isa->whole(src, p->n, dst, p->n, (int)p->b.n, 1, p->twiddle, scale, swap);
    } else if (p->method == GNI_FT_DIRECT) {
        p->isa->direct(src, dst, (int)p->n, p->twiddle, scale, swap);
    } else if (p->method == GNI_FT_STEPS) {
        gni_ft_two_steps(p, pool, src, dst, 0, 0, scale, swap, work);
    } else if (!gni_ft_constant(p, src, dst, scale)) {
        const gni_ft_plan *c = p->conv;
        const size_t item = gni_ft_item(p->wide);
        char *x = work, *y = work + (size_t)c->n * item, *rest = y + (size_t)c->n * item;
        p->isa->product(x, src, p->chirp, p->n, 1.0, swap, false);
        memset(x + (size_t)p->n * item, 0, (size_t)(c->n - p->n) * item);
        gni_ft_transform(c, pool, x, y, 1.0, false, rest);
        p->isa->product(y, y, p->kernel, c->n, 1.0, false, false);
        gni_ft_transform(c, pool, y, x, 1.0, true, rest);
        p->isa->product(dst, x, p->chirp, p->n, scale, false, swap);
    }
}

// `count` of them, `src_ld` and `dst_ld` numbers apart. With `reach` > 0 there are that many, and those that follow are
// fetched early.
static void gni_ft_rows(const gni_ft_plan *p, gni_pool *pool, const char *src, int64_t src_ld,
                        char *dst, int64_t dst_ld, int64_t count, int64_t reach, double scale,
                        bool swap, char *work) {
    const int64_t w = p->isa->lanes, unit = p->method == GNI_FT_SIDE_BY_SIDE ? w : 1;
    const int64_t item = (int64_t)gni_ft_item(p->wide);
    if (p->method == GNI_FT_TINY) {
        p->isa->tiny(src, src_ld, dst, dst_ld, (int)p->n, count, scale, swap);
        return;
    }
    if (p->method == GNI_FT_SMALL) {
        p->isa->whole(src, src_ld, dst, dst_ld, (int)p->b.n, count, p->twiddle, scale, swap);
        return;
    }
    for (int64_t i = 0; i < count; i += unit) {
        const char *a = src + i * src_ld * item;
        char *b = dst + i * dst_ld * item;
        const bool more = i + 1 < reach;
        if (p->method == GNI_FT_SIDE_BY_SIDE)
            p->isa->batch(&p->b, a, src_ld, b, dst_ld, (int)GNI_MIN(w, count - i), scale, swap,
                          work);
        else if (p->method == GNI_FT_STEPS)
            gni_ft_two_steps(p, pool, a, b, more ? src_ld * item : 0, more ? dst_ld * item : 0,
                             scale, swap, work);
        else
            gni_ft_transform(p, pool, a, b, scale, swap, work);
    }
}
