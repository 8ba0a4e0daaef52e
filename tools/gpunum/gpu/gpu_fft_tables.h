// >>gpu_fft_tables
// The FFT on the GPU: its types, radices and tables. Used by room `fft gpu`; from outside: gni_fft_gpu_free.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/fft_cpu.h"
#include "../vulkan/vulkan_pipelines.h"
#endif

#if GNI_GPU

enum {
    GNI_FFT_GPU_MAX_DIMS = GN_MAX_RANK + 2,
    GNI_FFT_GPU_STAGES = 6,
    GNI_FFT_GPU_SPECIAL_STAGES = 4, // of kernels for one length
    GNI_FFT_GPU_REGISTERS = 20,     // points that an invocation of theirs can hold
    GNI_FFT_GPU_LARGEST = 16384,    // points of a line of theirs
    GNI_FFT_GPU_LARGEST_DOUBLES = 4096,
    GNI_FFT_GPU_MANY = 32, // lines from which those of GNI_FFT_GPU_LARGEST points are one pass
    GNI_FFT_GPU_FIXED = 1 << 27, // points apart up to which a kernel knows the step between them
    GNI_FFT_GPU_FOLDED = 65536,  // points up to which the turns of a fold are a table
    GNI_FFT_GPU_THREADS = 256
};

#define GNI_FFT_GPU_TABLE_BYTES                                                                    \
    ((uint64_t)64 << 20) // of all tables; more only while one call needs them

typedef enum gni_fft_gpu_kind {
    GNI_FFT_GPU_ROOTS, // for each stage but the last, of radix r: exp(-2 pi i j q / (r m)) at (q - 1) m + j, j < m
    GNI_FFT_GPU_DEEP,   // the same with the radices of gni_fft_gpu_deep
    GNI_FFT_GPU_FOLD,   // exp(-pi i k / n), k <= n
    GNI_FFT_GPU_CIRCLE, // exp(-2 pi i k / n) as fft_wide.comp has it
    GNI_FFT_GPU_CHIRP,  // exp(-pi i k^2 / n), k < n
    GNI_FFT_GPU_KERNEL // the spectrum of the chirp's conjugate in a convolution of `size` points, over size
} gni_fft_gpu_kind;

typedef struct gni_fft_gpu_table {
    struct gni_fft_gpu_table *next;
    gni_fft_gpu_kind kind;
    int64_t n, size; // numbers that it has
    bool doubles;    // these are of float64
    uint64_t used;
    gni_gpu_mem mem;
} gni_fft_gpu_table;

// How a length is cut into passes.
typedef struct gni_fft_gpu_parts {
    int64_t n, part[3];
    bool apart; // the points do not follow each other in memory
    bool doubles;
    int count;  // 0: it is not
} gni_fft_gpu_parts;

#define GNI_FFT_GPU_CUTS 16 // remembered

typedef struct gni_fft_gpu_state {
    gni_fft_gpu_table *tables;
    uint64_t bytes, call;
    bool doubles; // the call's numbers are of float64
    gni_fft_gpu_parts cuts[GNI_FFT_GPU_CUTS];
} gni_fft_gpu_state;

// One end of a transform: where its points are for each line of the batch.
typedef struct gni_fft_gpu_end {
    const gni_gpu_mem *mem;
    uint64_t start, bytes;       // of what the kernels are given
    int64_t offset, step, count; // numbers beyond `count` are zero, or not written
    int64_t each;                // step between elements where a pair of them is a number
    int64_t stride[GN_MAX_RANK];
    uint32_t flags;
    const gni_fft_gpu_table *factor;
} gni_fft_gpu_end;

typedef struct gni_fft_gpu_pass {
    int64_t n;     // points
    int64_t full;  // of the whole transform
    int64_t twist; // of the one that this is the first part of
    int64_t span, out_span, in_step, out_step;
    bool in_fixed, out_fixed; // the steps are the length's, not an array's
    int rank;
    int64_t dim[GNI_FFT_GPU_MAX_DIMS][5]; // size, in, out, unit, out unit
} gni_fft_gpu_pass;

// The radices of n, as few as can be; 0 when it has a prime factor above 13. At most 64.
static int gni_fft_gpu_factor(int64_t n, int *radix) {
    static const int prime[] = {13, 11, 7, 5, 3, 2};
    int power[6] = {0}, best = INT_MAX, best_six = 0, best_ten = 0, count = 0;
    for (int i = 0; i < 6; i++)
        while (n % prime[i] == 0) n /= prime[i], power[i]++;
    if (n != 1) return 0;
    for (int ten = 0; ten <= GNI_MIN(power[3], power[5]); ten++)
        for (int six = 0; six <= GNI_MIN(power[4], power[5] - ten); six++) {
            int stages = power[3] + (power[4] - six + 1) / 2 + six + (power[5] - ten - six + 3) / 4;
            if (stages < best) best = stages, best_six = six, best_ten = ten;
        }
    const int twos = power[5] - best_six - best_ten, passes = (twos + 3) / 4;
    for (int i = 0; i < passes; i++)
        radix[count++] = 1 << (twos / passes + (i < twos % passes ? 1 : 0));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < power[i]; k++) radix[count++] = prime[i];
    for (int i = 0; i < best_ten; i++) radix[count++] = 10;
    for (int i = 0; i + 1 < power[4] - best_six; i += 2) radix[count++] = 9;
    for (int i = 0; i < best_six; i++) radix[count++] = 6;
    for (int i = best_ten; i < power[3]; i++) radix[count++] = 5;
    if ((power[4] - best_six) % 2 != 0) radix[count++] = 3;
    return count;
}

// Radices of lengths that kernels for one length do with up to 32 points in an invocation. Across lines, a
// fold leaves no registers for that.
static int gni_fft_gpu_deep(int64_t n, uint32_t flags, int *radix) {
    static const int list[][5] = {
        {1024, 1, 32, 32, 1}, {8192, 0, 16, 32, 16}, {16384, 0, 32, 16, 32}};
    const uint32_t folds = GNI_F_FFT_FOLD_IN | GNI_F_FFT_FOLD_OUT | GNI_F_FFT_HALF_IN;
    const int across = (flags & (GNI_F_FFT_ACROSS_IN | GNI_F_FFT_ACROSS_OUT)) != 0;
    for (int i = 0; i < GNI_COUNT(list); i++) {
        if (list[i][0] != n || list[i][1] != across || (across && (flags & folds))) continue;
        for (int k = 0; k < 3; k++) radix[k] = list[i][2 + k];
        return radix[2] == 1 ? 2 : 3;
    }
    return 0;
}

static int gni_fft_gpu_radices_of(gni_fft_gpu_kind kind, int64_t n, int *radix) {
    // Of each length there is only one list.
    int count =
        kind == GNI_FFT_GPU_DEEP ? gni_fft_gpu_deep(n, 0, radix) : gni_fft_gpu_factor(n, radix);
    return count == 0 && kind == GNI_FFT_GPU_DEEP
               ? gni_fft_gpu_deep(n, GNI_F_FFT_ACROSS_OUT, radix)
               : count;
}

static bool gni_fft_gpu_smooth(int64_t n) {
    int radix[64];
    return n == 1 || gni_fft_gpu_factor(n, radix) > 0;
}

// Points of a circle that are next to each other in its table, as a power of two; multiples of that many follow.
static int gni_fft_gpu_circle_shift(int64_t n) {
    int shift = 0;
    while ((int64_t)1 << (2 * shift) < n) shift++;
    return shift;
}

static int64_t gni_fft_gpu_table_size(gni_fft_gpu_kind kind, int64_t n, int64_t size) {
    int radix[64], count;
    int64_t sum = 0;
    if (kind == GNI_FFT_GPU_KERNEL) return size;
    if (kind == GNI_FFT_GPU_CHIRP) return n;
    if (kind == GNI_FFT_GPU_FOLD) return n + 1;
    if (kind == GNI_FFT_GPU_CIRCLE) {
        const int shift = gni_fft_gpu_circle_shift(n);
        return 2 * (((int64_t)1 << shift) + (n >> shift) + 1);
    }
    count = gni_fft_gpu_radices_of(kind, n, radix);
    for (int i = 0; i + 1 < count; i++) {
        n /= radix[i];
        sum += (radix[i] - 1) * n;
    }
    return GNI_MAX(sum, 1);
}

// Bytes of the call's complex numbers.
static uint64_t gni_fft_gpu_bytes(const gn_context *g, int64_t numbers) {
    return (uint64_t)numbers * gni_ft_item(g->fft_gpu->doubles);
}

static uint32_t gni_fft_gpu_bits(double value) {
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

// A number as the sum of two floats.
static void gni_fft_gpu_two_floats(uint32_t *word, double value) {
    word[0] = gni_fft_gpu_bits(value);
    word[1] = gni_fft_gpu_bits(value - (double)(float)value);
}

// Points of a circle as sums of two floats.
static void gni_fft_gpu_fill_circle(int64_t n, float *out) {
    const int shift = gni_fft_gpu_circle_shift(n);
    const int64_t fine = (int64_t)1 << shift, coarse = (n >> shift) + 1;
    for (int64_t i = 0; i < fine + coarse; i++, out += 4) {
        double re, im;
        gni_ft_twiddle(i < fine ? i : (i - fine) << shift, n, &re, &im);
        out[0] = (float)re;
        out[1] = (float)(re - (double)out[0]);
        out[2] = (float)im;
        out[3] = (float)(im - (double)out[2]);
    }
}

static void gni_fft_gpu_fill_roots(const gni_fft_gpu_table *t, const gni_ft_circle *c, void *out) {
    int radix[64], count = gni_fft_gpu_radices_of(t->kind, t->n, radix);
    for (int64_t i = 0, step = 1, at = 0; i + 1 < count; step *= radix[i++]) {
        const int64_t m = t->n / step / radix[i];
        for (int q = 1; q < radix[i]; q++)
            for (int64_t j = 0; j < m; j++) {
                double re, im;
                gni_ft_circle_get(c, j * q * step, &re, &im);
                gni_ft_set(out, t->doubles, at++, re, im);
            }
    }
}

// Each number of a table of float64; and what is transformed to become the spectrum of the chirp's conjugate.
static void gni_fft_gpu_fill_each(const gni_fft_gpu_table *t, const gni_ft_circle *c, void *out) {
    for (int64_t i = 0; i < t->size; i++) {
        const int64_t k = t->kind == GNI_FFT_GPU_KERNEL && i >= t->n ? t->size - i : i;
        double re = 0.0, im = 0.0;
        if (t->kind == GNI_FFT_GPU_FOLD) gni_ft_circle_get(c, k, &re, &im);
        else if (k < t->n) gni_ft_circle_get(c, (int64_t)((uint64_t)k * (uint64_t)k % (uint64_t)(2 * t->n)), &re, &im);
        gni_ft_set(out, t->doubles, i, re, t->kind == GNI_FFT_GPU_KERNEL ? -im : im);
    }
}

// The numbers of a table of floats are products of two in float64: an exact evaluation costs ten times as much.
static bool gni_fft_gpu_fill(gn_context *g, const gni_fft_gpu_table *t, void *out) {
    const bool roots = t->kind == GNI_FFT_GPU_ROOTS || t->kind == GNI_FFT_GPU_DEEP;
    gni_ft_circle c;
    if (t->kind == GNI_FFT_GPU_CIRCLE) {
        gni_fft_gpu_fill_circle(t->n, (float *)out);
        return true;
    }
    if (!gni_ft_circle_make(g, &c, roots ? t->n : 2 * t->n, t->doubles)) return false;
    if (roots) gni_fft_gpu_fill_roots(t, &c, out);
    else gni_fft_gpu_fill_each(t, &c, out);
    gni_ft_circle_free(g, &c);
    return true;
}

static void gni_fft_gpu_table_free(gn_context *g, gni_fft_gpu_table *t) {
    gni_gpu_free(g->gpu, &t->mem);
    gni_free(g, t);
}

static void gni_fft_gpu_free(gn_context *g) {
    gni_fft_gpu_state *s = g->fft_gpu;
    if (s == NULL) return;
    while (s->tables != NULL) {
        gni_fft_gpu_table *t = s->tables;
        s->tables = t->next;
        gni_fft_gpu_table_free(g, t);
    }
    gni_free(g, s);
    g->fft_gpu = NULL;
}

// Drops the tables that have not been used for longest.
static void gni_fft_gpu_evict(gn_context *g, uint64_t room) {
    gni_fft_gpu_state *s = g->fft_gpu;
    while (s->bytes + room > GNI_FFT_GPU_TABLE_BYTES) {
        gni_fft_gpu_table **oldest = NULL;
        for (gni_fft_gpu_table **at = &s->tables; *at != NULL; at = &(*at)->next)
            if ((*at)->used != s->call && (oldest == NULL || (*at)->used < (*oldest)->used))
                oldest = at;
        if (oldest == NULL) return;
        gni_fft_gpu_table *t = *oldest;
        *oldest = t->next;
        s->bytes -= t->mem.size;
        gni_fft_gpu_table_free(g, t);
    }
}

// In pieces that need no more staging memory than there is for little things.
static bool gni_fft_gpu_upload(gn_context *g, const gni_fft_gpu_table *t, const gni_gpu_mem *mem) {
    const uint64_t bytes = gni_fft_gpu_bytes(g, t->size), most = (uint64_t)256 << 10;
    char *data = (char *)gni_alloc(g, (size_t)bytes);
    bool ok = data != NULL && gni_fft_gpu_fill(g, t, data);
    for (uint64_t at = 0; at < bytes && ok; at += most)
        ok = gni_gpu_upload(g->gpu, mem, at, data + at, GNI_MIN(bytes - at, most));
    gni_free(g, data);
    return ok;
}

static bool gni_fft_gpu_make_chirp(gn_context *g, const gni_fft_gpu_table *t);
static bool gni_fft_gpu_make_kernel(gn_context *g, const gni_fft_gpu_table *t);
static bool gni_fft_gpu_make_kernel_doubles(gn_context *g, const gni_fft_gpu_table *t); // in room gpu_fft

static bool gni_fft_gpu_table_make(gn_context *g, const gni_fft_gpu_table *t) {
    if (t->kind == GNI_FFT_GPU_KERNEL)
        return t->doubles ? gni_fft_gpu_make_kernel_doubles(g, t) : gni_fft_gpu_make_kernel(g, t);
    if (t->kind == GNI_FFT_GPU_CHIRP && !t->doubles) return gni_fft_gpu_make_chirp(g, t);
    return gni_fft_gpu_upload(g, t, &t->mem);
}

static const gni_fft_gpu_table *gni_fft_gpu_table_get(gn_context *g, gni_fft_gpu_kind kind,
                                                      int64_t n, int64_t size) {
    gni_fft_gpu_state *s = g->fft_gpu;
    size = gni_fft_gpu_table_size(kind, n, size);
    for (gni_fft_gpu_table *t = s->tables; t != NULL; t = t->next)
        if (t->kind == kind && t->n == n && t->size == size && t->doubles == s->doubles) {
            t->used = s->call;
            return t;
        }
    gni_fft_gpu_table *t = (gni_fft_gpu_table *)gni_calloc(g, sizeof(gni_fft_gpu_table));
    if (t == NULL) return NULL;
    t->kind = kind;
    t->n = n;
    t->size = size;
    t->doubles = s->doubles;
    t->used = s->call;
    gni_fft_gpu_evict(g, gni_fft_gpu_bytes(g, size));
    if (!gni_gpu_alloc(g->gpu, gni_fft_gpu_bytes(g, GNI_MAX(size, 2)), &t->mem)) {
        gni_free(g, t);
        return NULL;
    }
    if (!gni_fft_gpu_table_make(g, t)) {
        gni_fft_gpu_table_free(g, t);
        return NULL;
    }
    s->bytes += t->mem.size;
    t->next = s->tables;
    s->tables = t;
    return t;
}

// ---- tables that the device makes
// Those of a convolution: memory of their size, used for the first time, would cost the host more than all else.

// A pass of fft_wide.comp.
typedef struct gni_fft_gpu_wide {
    const gni_fft_gpu_table *circle;
    int64_t points, radix, step, chirp;
    uint32_t flags;
    double scale;
} gni_fft_gpu_wide;

enum { GNI_FFT_GPU_WIDE_GROUP = 64 };

static gni_gpu_pipeline *gni_fft_gpu_wide_pipeline(gni_gpu *gpu, gni_gpu_mode mode) {
    GNI_ZEROED(gni_gpu_kernel, kernel);
    kernel.module = GNI_MODULE_fft_wide;
    return gni_gpu_pipeline_get(gpu, &kernel, mode);
}

// The first and second parts of numbers, or the first alone.
static void gni_fft_gpu_wide_use(gni_gpu_use *use, const gni_gpu_mem *mem, int64_t points,
                                 bool both, bool write) {
    for (int i = 0; i < 2; i++) {
        use[i].mem = both ? mem + i : mem;
        use[i].bytes = (uint64_t)points * 8;
        use[i].write = write;
    }
}

static bool gni_fft_gpu_wide_pass(gn_context *g, const gni_fft_gpu_wide *w, const gni_gpu_mem *from,
                                  const gni_gpu_mem *to) {
    gni_gpu *gpu = g->gpu;
    gni_gpu_use use[5];
    uint32_t param[GNI_P_FFT_WIDE_WORDS];
    const int64_t groups = (w->points + GNI_FFT_GPU_WIDE_GROUP - 1) / GNI_FFT_GPU_WIDE_GROUP;
    const int64_t x = GNI_MIN(groups, (int64_t)gpu->caps.max_groups[0]), y = (groups + x - 1) / x;
    memset(use, 0, sizeof use);
    gni_fft_gpu_wide_use(&use[2], to, w->points, !(w->flags & GNI_F_FFT_WIDE_LAST), true);
    use[4].mem = &w->circle->mem;
    use[4].bytes = (uint64_t)w->circle->size * 8;
    use[0] = use[1] = use[4];
    if (from != NULL) gni_fft_gpu_wide_use(&use[0], from, w->points, true, false);
    param[GNI_P_FFT_WIDE_POINTS] = (uint32_t)w->points;
    param[GNI_P_FFT_WIDE_RADIX] = (uint32_t)w->radix;
    param[GNI_P_FFT_WIDE_STEP] = (uint32_t)w->step;
    param[GNI_P_FFT_WIDE_CHIRP] = (uint32_t)w->chirp;
    param[GNI_P_FFT_WIDE_FLAGS] = w->flags;
    param[GNI_P_FFT_WIDE_SHIFT] = (uint32_t)gni_fft_gpu_circle_shift(w->circle->n);
    gni_fft_gpu_two_floats(&param[GNI_P_FFT_WIDE_SCALE], w->scale);
    return y <= (int64_t)gpu->caps.max_groups[1] &&
           gni_gpu_dispatch(gpu, gni_fft_gpu_wide_pipeline(gpu, GNI_GPU_WAIT), use, 5, param,
                            sizeof param, (uint32_t)x, (uint32_t)y, 1);
}

static bool gni_fft_gpu_make_chirp(gn_context *g, const gni_fft_gpu_table *t) {
    GNI_ZEROED(gni_fft_gpu_wide, w);
    w.circle = gni_fft_gpu_table_get(g, GNI_FFT_GPU_CIRCLE, 2 * t->n, 0);
    w.points = w.chirp = t->n;
    w.flags = GNI_F_FFT_WIDE_LAST;
    w.scale = 1.0;
    return w.circle != NULL && gni_fft_gpu_wide_pass(g, &w, NULL, &t->mem);
}

// The chirp's conjugate, there and mirrored, and the stages of its transform, between two pairs of `mem`.
static bool gni_fft_gpu_fill_kernel(gn_context *g, const gni_fft_gpu_table *t,
                                    const gni_gpu_mem *mem) {
    GNI_ZEROED(gni_fft_gpu_wide, w);
    w.circle = gni_fft_gpu_table_get(g, GNI_FFT_GPU_CIRCLE, 2 * t->n, 0);
    w.points = t->size;
    w.chirp = t->n;
    w.flags = GNI_F_FFT_WIDE_CONJ;
    w.step = 1;
    w.scale = 1.0 / (double)t->size;
    bool ok = w.circle != NULL && gni_fft_gpu_wide_pass(g, &w, NULL, mem);
    w.circle = gni_fft_gpu_table_get(g, GNI_FFT_GPU_CIRCLE, t->size, 0);
    w.chirp = 0;
    ok = ok && w.circle != NULL;
    for (int source = 0; w.step < t->size && ok; source = 2 - source, w.step *= w.radix) {
        const int64_t rest = t->size / w.step; // no other primes than 2, 3, 5 and 7
        w.radix = rest % 4 == 0 ? 4 : rest % 2 == 0 ? 2 : rest % 3 == 0 ? 3 : rest % 5 == 0 ? 5 : 7;
        w.flags = rest == w.radix ? (uint32_t)GNI_F_FFT_WIDE_LAST : 0u;
        ok = gni_fft_gpu_wide_pass(g, &w, &mem[source],
                                   rest == w.radix ? &t->mem : &mem[2 - source]);
    }
    return ok;
}

// Each part has memory of its own: drivers limit the size of a buffer.
static bool gni_fft_gpu_make_kernel(gn_context *g, const gni_fft_gpu_table *t) {
    gni_gpu_mem mem[4];
    int count = 0;
    while (count < 4 && gni_gpu_alloc(g->gpu, (uint64_t)t->size * 8, &mem[count])) count++;
    bool ok = count == 4 && gni_fft_gpu_fill_kernel(g, t, mem);
    while (count > 0) gni_gpu_free(g->gpu, &mem[--count]);
    return ok;
}

#endif // GNI_GPU
