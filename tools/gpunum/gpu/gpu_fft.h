// >>gpu_fft
// The FFT on the GPU: the passes that a length is cut into, Bluestein's convolution for the other
// lengths. From outside: gni_fft_gpu_supports, gni_fft_gpu.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/array.h"
#include "../gpu/gpu_fft_tables.h"
#endif

#if GNI_GPU

// ---- cutting a length into passes

// Points that a workgroup of the kernel for all lengths holds.
static int64_t gni_fft_gpu_points(const gni_gpu *gpu) {
    if (gpu->caps.alone || gpu->g->fft_gpu->doubles) return 1024;
    return gpu->caps.shared_bytes >= 49152 ? 3072 : gpu->caps.shared_bytes >= 32768 ? 2048 : 1024;
}

// Kernels for one length take a device made of CPU threads a second to compile.
static bool gni_fft_gpu_slow(const gni_gpu *gpu) {
    return gpu->caps.kind == GNI_GPU_CPU &&
           !(gpu->g->options.vulkan_flags & GN_VULKAN_NO_ASYNC_PIPELINES);
}

// Points that kernels for one length, a power of two, do in one workgroup; 0 without these.
static int64_t gni_fft_gpu_largest(const gni_gpu *gpu) {
    if (gni_fft_gpu_slow(gpu) || !gpu->caps.addresses || gpu->caps.shared_bytes < 49152 || gpu->caps.max_invocations < 512)
        return 0;
    return gpu->g->fft_gpu->doubles ? GNI_FFT_GPU_LARGEST_DOUBLES : GNI_FFT_GPU_LARGEST;
}

static bool gni_fft_gpu_has_special(const gni_gpu *gpu, int64_t n, bool apart, bool pairs);

// Parts of at most `points` each, as equal as can be, the largest first; where the kernels for one length do both
// of two powers of two, the smaller one, because its pass across both ways is the dearer one. Returns how many.
static int gni_fft_gpu_cut_now(const gni_gpu *gpu, int64_t n, bool apart, int64_t *part) {
    const int64_t points = gni_fft_gpu_points(gpu), largest = gni_fft_gpu_largest(gpu);
    const int64_t two = largest != 0 ? 2048 : GNI_MIN(points, 2048);
    int64_t divisor[512], best = INT64_MAX;
    int count = 0, parts = 0;
    if (!gni_fft_gpu_smooth(n)) return 0;
    part[0] = n;
    if (n <= points && (n <= two || !apart)) return 1;
    if ((n & (n - 1)) == 0 && n <= largest && !apart) return 1;
    if (n <= (apart ? two : largest) && gni_fft_gpu_has_special(gpu, n, apart, false)) return 1;
    for (int64_t d = 2; d <= GNI_MAX(points, two) && count < GNI_COUNT(divisor); d++)
        if (n % d == 0) divisor[count++] = d;
    for (int i = 0; i < count; i++) {
        int64_t rest = n / divisor[i], most = GNI_MAX(divisor[i], rest);
        if (most > two || most >= best || (most > points && !gni_fft_gpu_has_special(gpu, most, true, true))) continue;
        best = most;
        part[0] = GNI_MAX(divisor[i], rest);
        part[1] = GNI_MIN(divisor[i], rest);
        parts = 2;
    }
    if (parts == 2 && (n & (n - 1)) == 0 && largest != 0) {
        best = part[0];
        part[0] = part[1];
        part[1] = best;
    }
    if (parts == 2) return 2;
    for (int i = 0; i < count; i++)
        for (int k = i; k < count; k++) {
            if (n / divisor[i] % divisor[k] != 0) continue;
            int64_t rest = n / divisor[i] / divisor[k], most = GNI_MAX(divisor[k], rest);
            if (rest < divisor[k] || most > points || most >= best) continue;
            best = most;
            part[0] = rest;
            part[1] = divisor[k];
            part[2] = divisor[i];
            parts = 3;
        }
    return parts == 0 && n <= points ? 1 : parts;
}

static int gni_fft_gpu_cut(gn_context *g, int64_t n, bool apart, int64_t *part) {
    gni_fft_gpu_parts *c = &g->fft_gpu->cuts[(uint64_t)(n * 2 + apart) % GNI_FFT_GPU_CUTS];
    if (c->n != n || c->apart != apart || c->doubles != g->fft_gpu->doubles) {
        c->n = n;
        c->apart = apart;
        c->doubles = g->fft_gpu->doubles;
        c->count = gni_fft_gpu_cut_now(g->gpu, n, apart, c->part);
    }
    memcpy(part, c->part, sizeof c->part);
    return c->count;
}

// Whether a transform takes several passes although one could do it: neighbouring points are not next to each
// other, or so few lines that they would leave most of the device idle.
static bool gni_fft_gpu_apart(const gni_fft *f, int64_t n, const gni_fft_gpu_end *in,
                              const gni_fft_gpu_end *out) {
    if (in->step != 1 || out->step != 1) return true;
    return n == GNI_FFT_GPU_LARGEST && gni_extent_product(f->dim, f->rank) < GNI_FFT_GPU_MANY;
}

// The length of the convolution for a transform of n points.
static int64_t gni_fft_gpu_convolution(int64_t n) {
    int64_t m = 64, best;
    while (m < 2 * n - 1) m *= 2;
    best = m;
    for (int64_t odd = 3; odd <= 15; odd += 2) {
        int64_t try_m = odd;
        if (odd == 11 || odd == 13) continue;
        while (try_m < 2 * n - 1) try_m *= 2;
        if (try_m % 16 == 0 && (double)try_m * 1.1 < (double)best) best = try_m;
    }
    return best;
}

// ---- one pass

// The modules of fft.comp, smallest workgroups first.
typedef struct gni_fft_gpu_module {
    int module, prime;  // largest prime factor of its radices
    int threads, cells; // of a workgroup: invocations, and points that its memory has room for
    bool split;         // a cell is a real number
    int hold;           // points that an invocation can hold
    int halves;         // in which points are exchanged
    int powers;         // turns that its memory has room for
    bool doubles;
} gni_fft_gpu_module;

static const gni_fft_gpu_module gni_fft_gpu_modules[] = {
    {GNI_MODULE_fft_two_64, 2, 64, 1344, false, 20, 1, 64, false},
    {GNI_MODULE_fft_two_128, 2, 128, 2688, false, 20, 1, 128, false},
    {GNI_MODULE_fft_two_128s, 2, 128, 2688, true, 20, 1, 128, false},
    {GNI_MODULE_fft_two_256, 2, 256, 5376, true, 20, 1, 256, false},
    {GNI_MODULE_fft_two_256w, 2, 256, 4864, false, 20, 1, 256, false},
    {GNI_MODULE_fft_two_512, 2, 512, 10752, true, 20, 1, 512, false},
    {GNI_MODULE_fft_deep_128, 2, 128, 4480, true, 32, 1, 256, false},
    {GNI_MODULE_fft_deep_256, 2, 256, 8960, true, 32, 1, 512, false},
    {GNI_MODULE_fft_deep_512, 2, 512, 8960, true, 32, 2, 512, false},
    {GNI_MODULE_fft_five_64, 5, 64, 1280, true, 20, 1, 64, false},
    {GNI_MODULE_fft_five_96, 5, 96, 2112, true, 20, 1, 96, false},
    {GNI_MODULE_fft_five_128, 5, 128, 2560, false, 20, 1, 128, false},
    {GNI_MODULE_fft_five_160, 5, 160, 3424, true, 20, 1, 160, false},
    {GNI_MODULE_fft_five_256, 5, 256, 5632, true, 20, 1, 256, false},
    {GNI_MODULE_fft_five_512, 5, 512, 10752, true, 20, 1, 512, false},
    {GNI_MODULE_fft_all_256, 13, 256, 5632, true, 20, 1, 256, false},
    {GNI_MODULE_fft_two_128d, 2, 128, 2688, true, 20, 1, 128, true},
    {GNI_MODULE_fft_two_256d, 2, 256, 5376, true, 20, 1, 256, true},
    {GNI_MODULE_fft_five_128d, 5, 128, 2560, true, 20, 1, 128, true},
    {GNI_MODULE_fft_five_256d, 5, 256, 5632, true, 20, 1, 256, true},
    {GNI_MODULE_fft_all_256d, 13, 256, 5632, true, 20, 1, 256, true},
};

// Which of them does a pass best, measured on an H200; the first row that fits counts, and where its module does
// not fit the device, the first module that has enough lines. Small workgroups wait less for each other at
// barriers, large ones read and write more numbers next to each other in passes across lines.
// Alone: lines that do not fill the device. Few: a pass across lines that does not. Folds: such a pass that begins or ends a
// transform of real numbers. Last: one that reads lines as they are and writes across them. Full: lines that fill the
// device, if the module has work for seven eighths of its invocations.
enum {
    GNI_FFT_GPU_ALONE,
    GNI_FFT_GPU_FULL,
    GNI_FFT_GPU_ROWS,
    GNI_FFT_GPU_FEW,
    GNI_FFT_GPU_FOLDS,
    GNI_FFT_GPU_LAST,
    GNI_FFT_GPU_ACROSS
};

typedef struct gni_fft_gpu_choice {
    int prime, kind;
    int64_t points; // of a line, at most
    int module;
    int hold; // points of an invocation, at most
} gni_fft_gpu_choice;

static const gni_fft_gpu_choice gni_fft_gpu_choices[] = {
    {2, GNI_FFT_GPU_ALONE, 1024, GNI_MODULE_fft_two_64, 16},
    {2, GNI_FFT_GPU_ALONE, 2048, GNI_MODULE_fft_two_128, 16}, // one line each
    {2, GNI_FFT_GPU_ALONE, 4096, GNI_MODULE_fft_two_256, 16},
    {2, GNI_FFT_GPU_ROWS, 256, GNI_MODULE_fft_two_64, 16}, // barriers of two subgroups
    {2, GNI_FFT_GPU_ROWS, 2048, GNI_MODULE_fft_two_128s, 16},
    {2, GNI_FFT_GPU_ROWS, 4096, GNI_MODULE_fft_deep_128, 32},
    {2, GNI_FFT_GPU_ROWS, 8192, GNI_MODULE_fft_deep_256, 32}, // two workgroups fit
    {2, GNI_FFT_GPU_ROWS, 16384, GNI_MODULE_fft_deep_512, 32},
    {2, GNI_FFT_GPU_FOLDS, 256, GNI_MODULE_fft_two_256, 16}, // half mirror images
    {2, GNI_FFT_GPU_FOLDS, 1024, GNI_MODULE_fft_two_256w, 16},
    {2, GNI_FFT_GPU_FOLDS, 16384, GNI_MODULE_fft_two_512, 16},
    {2, GNI_FFT_GPU_FEW, 256, GNI_MODULE_fft_two_64, 16}, // one transform of 2^16 is 64 workgroups
    {2, GNI_FFT_GPU_FEW, 512, GNI_MODULE_fft_two_128, 16},
    {2, GNI_FFT_GPU_FEW, 1024, GNI_MODULE_fft_deep_256, 32},
    {2, GNI_FFT_GPU_FEW, 2048, GNI_MODULE_fft_deep_512, 32},
    {2, GNI_FFT_GPU_LAST, 256, GNI_MODULE_fft_two_128, 16},
    {2, GNI_FFT_GPU_LAST, 512, GNI_MODULE_fft_two_256, 16},
    {2, GNI_FFT_GPU_LAST, 2048, GNI_MODULE_fft_deep_256, 32},
    {2, GNI_FFT_GPU_ACROSS, 64, GNI_MODULE_fft_two_256, 8},     // 32 lines
    {2, GNI_FFT_GPU_ACROSS, 512, GNI_MODULE_fft_two_256, 16},   // 32, 16 or 8 lines
    {2, GNI_FFT_GPU_ACROSS, 1024, GNI_MODULE_fft_deep_256, 32}, // 8 lines: 64 bytes
    {2, GNI_FFT_GPU_ACROSS, 16384, GNI_MODULE_fft_deep_512, 32},
    {5, GNI_FFT_GPU_ROWS, 512, GNI_MODULE_fft_five_128, 20},
    {5, GNI_FFT_GPU_FULL, 960, GNI_MODULE_fft_five_64, 20}, // a line
    {5, GNI_FFT_GPU_FULL, 960, GNI_MODULE_fft_five_96, 20},
    {5, GNI_FFT_GPU_ROWS, 960, GNI_MODULE_fft_five_64, 20},
    {5, GNI_FFT_GPU_FULL, 1280, GNI_MODULE_fft_five_64, 20},
    {5, GNI_FFT_GPU_FULL, 1920, GNI_MODULE_fft_five_96, 20},
    {5, GNI_FFT_GPU_FULL, 2560, GNI_MODULE_fft_five_128, 20},
    {5, GNI_FFT_GPU_FULL, 2560, GNI_MODULE_fft_five_160, 20}, // three lines of 1000
    {5, GNI_FFT_GPU_ROWS, 1280, GNI_MODULE_fft_five_64, 20},
    {5, GNI_FFT_GPU_ROWS, 8192, GNI_MODULE_fft_five_512, 10},
    {5, GNI_FFT_GPU_ACROSS, 512, GNI_MODULE_fft_five_256, 20}, // nine lines of 243
    {5, GNI_FFT_GPU_ACROSS, 8192, GNI_MODULE_fft_five_512, 20},
};

// How a pass is done by a kernel of its own.
typedef struct gni_fft_gpu_special {
    int module;          // of gni_fft_gpu_modules
    int64_t lines, team; // of a workgroup, and invocations of a line
} gni_fft_gpu_special;

// Invocations of a line, so that none of them holds more points than it can and few hold fewer.
static int64_t gni_fft_gpu_team(int64_t n, const int *radix, int stages, int most, int registers) {
    int64_t best = 0, least = INT64_MAX;
    for (int64_t hold = 8; hold <= most; hold++) {
        int64_t team = (n + hold - 1) / hold, sum = 0;
        for (int i = 0; i < stages; i++) {
            int64_t each = (n / radix[i] + team - 1) / team * radix[i];
            sum = each > registers || sum == INT64_MAX ? INT64_MAX : sum + each * team;
        }
        if (sum <= least && sum < INT64_MAX) least = sum, best = team;
    }
    return best;
}

// Points of shared memory that a workgroup needs, as fft.comp lays them out.
static int64_t gni_fft_gpu_cells(const int *radix, int stages, int64_t lines, int64_t team,
                                 uint32_t flags, int64_t banks, int halves) {
    const uint32_t across = flags & (GNI_F_FFT_ACROSS_IN | GNI_F_FFT_ACROSS_OUT);
    const bool woven = across == (GNI_F_FFT_ACROSS_IN | GNI_F_FFT_ACROSS_OUT);
    int64_t n = woven ? lines : 1, step = n, most = 0;
    for (int i = 0; i < stages; i++) n *= radix[i];
    most = n /= halves;
    for (int i = 0; i + 1 < stages; i++) {
        const int64_t cells = step * radix[i];
        const int64_t unit = cells < banks && banks % cells == 0 ? banks : cells;
        int64_t amount = (step - cells) & (banks - 1);
        if (amount * 4 > cells) amount = 0;
        if (step == 1) amount = 1 - (radix[i] & 1);
        if (unit == banks) amount = step;
        if (step >= banks) amount = 0;
        most = GNI_MAX(most, n + (n - 1) / unit * amount);
        step = cells;
    }
    if (woven) return most + 1;
    const int64_t round = (most + banks) / banks * banks;
    if (across) return lines * (round + (lines >= banks ? 1 : banks / lines));
    return lines * (team < banks ? round + team : most | 1);
}

// Bytes of a module's cells.
static int64_t gni_fft_gpu_cell(const gni_fft_gpu_module *m) {
    return (int64_t)gni_ft_item(m->doubles) / (m->split ? 2 : 1);
}

// Lines that a workgroup of a module does.
static int64_t gni_fft_gpu_lines(const gni_fft_gpu_module *m, const int *radix, int stages,
                                 int64_t team, uint32_t flags) {
    int64_t lines = m->threads / team;
    const int64_t banks = 128 / gni_fft_gpu_cell(m);
    while (lines > 0 && gni_fft_gpu_cells(radix, stages, lines, team, flags, banks, m->halves) > m->cells)
        lines--;
    return flags & GNI_F_FFT_FOLD_OUT && lines > 1 ? lines & ~(int64_t)1 : lines;
}

static bool gni_fft_gpu_has_module(const gni_gpu *gpu, const gni_fft_gpu_module *m) {
    const int64_t bytes = m->cells * gni_fft_gpu_cell(m) + m->powers * (int64_t)gni_ft_item(m->doubles);
    return bytes <= (int64_t)gpu->caps.shared_bytes && m->threads <= (int64_t)gpu->caps.max_invocations &&
           m->doubles == gpu->g->fft_gpu->doubles;
}

// Lines of a workgroup if this module does the pass, 0 if it cannot.
static int64_t gni_fft_gpu_try(const gni_gpu *gpu, int module, int64_t n, uint32_t flags,
                               const int *radix, int stages, int most, gni_fft_gpu_special *k) {
    const gni_fft_gpu_module *m = &gni_fft_gpu_modules[module];
    k->module = module;
    k->team = gni_fft_gpu_team(n, radix, stages, GNI_MIN(most, m->hold), m->hold);
    k->lines = 0;
    const bool woven = (flags & GNI_F_FFT_FOLD_OUT) && (flags & GNI_F_FFT_ACROSS_OUT);
    if (k->team != 0 && gni_fft_gpu_has_module(gpu, m) && !(woven && m->halves > 1))
        k->lines = gni_fft_gpu_lines(m, radix, stages, k->team, flags);
    return k->lines;
}

// False: this pass is done by the kernel for all lengths.
static bool gni_fft_gpu_specialise(const gni_gpu *gpu, int64_t n, int64_t lines, uint32_t flags,
                                   bool pairs, const int *radix, int stages,
                                   gni_fft_gpu_special *k) {
    const bool across = (flags & (GNI_F_FFT_ACROSS_IN | GNI_F_FFT_ACROSS_OUT)) != 0;
    const uint32_t folds = GNI_F_FFT_FOLD_IN | GNI_F_FFT_FOLD_OUT | GNI_F_FFT_HALF_IN;
    const bool few = lines * n < 8192 * (int64_t)gpu->caps.multiprocessors;
    const int64_t least = pairs ? 2 : 1, wanted = across ? 4 : least;
    if (n < 64 || n > GNI_FFT_GPU_LARGEST || stages > GNI_FFT_GPU_SPECIAL_STAGES ||
        gni_fft_gpu_slow(gpu) || !gpu->caps.addresses)
        return false;
    int prime = 2;
    for (int i = 0; i < stages; i++)
        prime = GNI_MAX(prime, radix[i] == 7 || radix[i] == 11 || radix[i] == 13 ? 13
                               : (radix[i] & (radix[i] - 1)) != 0                ? 5
                                                                                 : 2);
    for (int i = 0; i < GNI_COUNT(gni_fft_gpu_choices) && !gpu->g->fft_gpu->doubles; i++) {
        const gni_fft_gpu_choice *c = &gni_fft_gpu_choices[i];
        const bool fits = c->kind == GNI_FFT_GPU_ALONE   ? !across && few
                          : c->kind == GNI_FFT_GPU_FULL  ? !across && !few
                          : c->kind == GNI_FFT_GPU_ROWS  ? !across
                          : c->kind == GNI_FFT_GPU_FEW   ? across && few
                          : c->kind == GNI_FFT_GPU_FOLDS ? across && (flags & folds)
                          : c->kind == GNI_FFT_GPU_LAST ? across && !(flags & GNI_F_FFT_ACROSS_IN)
                                                        : across;
        if (c->prime != prime || !fits || n > c->points) continue;
        bool done = false;
        for (int m = 0; m < GNI_COUNT(gni_fft_gpu_modules) && !done; m++)
            done = gni_fft_gpu_modules[m].module == c->module &&
                   gni_fft_gpu_try(gpu, m, n, flags, radix, stages, c->hold, k) >= least;
        if (c->kind == GNI_FFT_GPU_FULL &&
            (!done || k->lines * k->team * 8 < gni_fft_gpu_modules[k->module].threads * 7))
            continue;
        if (done) return true;
        break;
    }
    GNI_ZEROED(gni_fft_gpu_special, best);
    for (int m = 0; m < GNI_COUNT(gni_fft_gpu_modules) && best.lines < wanted; m++)
        if (gni_fft_gpu_modules[m].prime == prime &&
            gni_fft_gpu_try(gpu, m, n, flags, radix, stages, gni_fft_gpu_modules[m].hold, k) >
                best.lines)
            best = *k;
    *k = best;
    return best.lines >= least;
}

// Whether a kernel of one length does lines of so many float64 points, which may be more than the kernel for all lengths.
static bool gni_fft_gpu_has_special(const gni_gpu *gpu, int64_t n, bool apart, bool pairs) {
    int radix[64];
    gni_fft_gpu_special k;
    const int stages = gni_fft_gpu_factor(n, radix);
    const uint32_t flags = GNI_F_FFT_FOLD_OUT | (apart ? (uint32_t)GNI_F_FFT_ACROSS_OUT : 0u);
    return gpu->g->fft_gpu->doubles && stages > 0 &&
           gni_fft_gpu_specialise(gpu, n, 1, flags, pairs, radix, stages, &k);
}

enum { GNI_FFT_GPU_TWOS = 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16 }; // one kernel for powers of two, one for the rest

static uint32_t gni_fft_gpu_radices(const uint32_t *param) {
    uint32_t bits = 0;
    for (int i = 0; i < GNI_FFT_GPU_STAGES; i++) bits |= 1u << param[GNI_P_FFT_RADIX + i];
    return bits;
}

// The kernel of one length for a pass, or the one for all lengths. `deep`: its radices are gni_fft_gpu_deep's.
static gni_gpu_pipeline *gni_fft_gpu_pipeline(gni_gpu *gpu, const gni_fft_gpu_pass *p,
                                              uint32_t *param, int64_t lines, gni_gpu_mode mode,
                                              int64_t *each, bool *deep) {
    const int64_t points = gni_fft_gpu_points(gpu), n = param[GNI_P_FFT_POINTS];
    const bool pairs = (param[GNI_P_FFT_FLAGS] & GNI_F_FFT_FOLD_OUT) && param[GNI_P_FFT_OUT_SPAN] > 1;
    const bool slow = gni_fft_gpu_slow(gpu), doubles = gpu->g->fft_gpu->doubles;
    int radix[64], stages = doubles ? 0 : gni_fft_gpu_deep(n, param[GNI_P_FFT_FLAGS], radix);
    gni_gpu_kernel kernel;
    gni_fft_gpu_special special;
    memset(&kernel, 0, sizeof kernel);
    *deep = stages > 0 &&
            gni_fft_gpu_specialise(gpu, n, lines, param[GNI_P_FFT_FLAGS], pairs, radix, stages, &special);
    if (!*deep) stages = gni_fft_gpu_factor(n, radix);
    if (stages > GNI_FFT_GPU_STAGES) return NULL;
    for (int i = 0; i < GNI_FFT_GPU_STAGES; i++)
        param[GNI_P_FFT_RADIX + i] = i < stages ? (uint32_t)radix[i] : 1;
    int64_t all = points / n;
    if (pairs) all &= ~(int64_t)1;
    if (*deep || gni_fft_gpu_specialise(gpu, n, lines, param[GNI_P_FFT_FLAGS], pairs, radix, stages, &special)) {
        kernel.module = gni_fft_gpu_modules[special.module].module;
        kernel.n_spec = GNI_S_FFT_SPECS;
        for (int i = 0; i < GNI_FFT_GPU_SPECIAL_STAGES; i++)
            kernel.spec[GNI_S_FFT_RADIX + i] = param[GNI_P_FFT_RADIX + i];
        kernel.spec[GNI_S_FFT_LINES] = (uint32_t)special.lines;
        kernel.spec[GNI_S_FFT_TEAM] = (uint32_t)special.team;
        kernel.spec[GNI_S_FFT_FLAGS] = param[GNI_P_FFT_FLAGS];
        // Distances of constants stay far below 32 bits of bytes.
        if ((p->in_fixed || p->in_step == 1) && n * p->in_step <= GNI_FFT_GPU_FIXED >> doubles)
            kernel.spec[GNI_S_FFT_STEP_IN] = param[GNI_P_FFT_IN_STEP];
        if ((p->out_fixed || p->out_step == 1) && n * p->out_step <= GNI_FFT_GPU_FIXED >> doubles)
            kernel.spec[GNI_S_FFT_STEP_OUT] = param[GNI_P_FFT_OUT_STEP];
        *each = special.lines;
        return gni_gpu_pipeline_get(gpu, &kernel, mode);
    }
    const bool alone = gpu->caps.alone && !pairs; // a line of each invocation
    *each = alone ? 4 : GNI_MIN(all, pairs ? INT64_MAX : lines);
    if (*each < 1) return NULL;
    while ((*each & (*each - 1)) != 0) *each &= *each - 1; // the power of two below
    param[GNI_P_FFT_TOGETHER] = (uint32_t)*each;
    kernel.module = doubles                  ? GNI_MODULE_fft_any_1kd
                    : points == 3072 || alone ? GNI_MODULE_fft_any_3k
                    : points == 2048 ? GNI_MODULE_fft_any_2k
                                     : GNI_MODULE_fft_any_1k;
    kernel.n_spec = GNI_S_FFT_ANY_SPECS;
    const uint32_t own = gni_fft_gpu_radices(param), twos = GNI_FFT_GPU_TWOS; // bit 1: none
    const uint32_t radices = !slow ? own : own & ~(twos | 2u) ? UINT32_MAX : twos;
    kernel.spec[GNI_S_FFT_ANY_FLAGS] = slow && !alone ? GNI_F_FFT_PARAMETER : param[GNI_P_FFT_FLAGS];
    kernel.spec[GNI_S_FFT_ANY_RADICES] = slow && !alone ? UINT32_MAX : radices;
    return gni_gpu_pipeline_get(gpu, &kernel, mode);
}

// 1 / n as a double or as two floats.
static void gni_fft_gpu_inverse(uint32_t *word, int64_t n, bool doubles) {
    const double inverse = 1.0 / (double)GNI_MAX(n, 1);
    if (doubles) memcpy(word, &inverse, 8);
    else gni_fft_gpu_two_floats(word, inverse);
}

static void gni_fft_gpu_params(const gni_fft_gpu_pass *p, bool doubles, const gni_fft_gpu_end *in,
                               const gni_fft_gpu_end *out, uint32_t flags, double scale,
                               uint32_t *param) {
    for (int i = 0; i < p->rank; i++) {
        uint32_t *word = &param[GNI_P_FFT_DIM + GNI_P_FFT_DIM_WORDS * i], shift = 0;
        const uint64_t size = (uint64_t)p->dim[i][0]; // at least 2
        while (((uint64_t)1 << shift) < size) shift++;
        word[0] = (uint32_t)size;
        word[1] = (uint32_t)((((uint64_t)1 << (31 + shift)) + size - 1) / size);
        word[2] = shift - 1;
        for (int k = 1; k < 5; k++) word[2 + k] = (uint32_t)p->dim[i][k];
    }
    param[GNI_P_FFT_IN] = (uint32_t)in->offset;
    param[GNI_P_FFT_IN_STEP] = (uint32_t)p->in_step;
    param[GNI_P_FFT_IN_COUNT] = (uint32_t)GNI_MIN(in->count, UINT32_MAX);
    param[GNI_P_FFT_OUT] = (uint32_t)out->offset;
    param[GNI_P_FFT_OUT_STEP] = (uint32_t)p->out_step;
    param[GNI_P_FFT_OUT_COUNT] = (uint32_t)GNI_MIN(out->count, UINT32_MAX);
    if (doubles) memcpy(&param[GNI_P_FFT_SCALE], &scale, 8);
    else param[GNI_P_FFT_SCALE] = gni_fft_gpu_bits(scale);
    param[GNI_P_FFT_SPAN] = (uint32_t)p->span;
    param[GNI_P_FFT_OUT_SPAN] = (uint32_t)p->out_span;
    param[GNI_P_FFT_TWIST] = (uint32_t)p->twist;
    param[GNI_P_FFT_FULL] = (uint32_t)p->full;
    param[GNI_P_FFT_RANK] = (uint32_t)p->rank;
    param[GNI_P_FFT_FLAGS] = flags;
    param[GNI_P_FFT_POINTS] = (uint32_t)p->n;
    gni_fft_gpu_inverse(&param[GNI_P_FFT_TWIST_INVERSE], p->twist, doubles);
    gni_fft_gpu_inverse(&param[GNI_P_FFT_FOLD_INVERSE], 2 * p->full, doubles);
    param[GNI_P_FFT_IN_EACH] = (uint32_t)in->each;
    param[GNI_P_FFT_OUT_EACH] = (uint32_t)out->each;
}

// With GNI_GPU_ASYNC only compiles what will be needed.
static bool gni_fft_gpu_dispatch(gn_context *g, const gni_fft_gpu_pass *p,
                                 const gni_fft_gpu_end *in, const gni_fft_gpu_end *out,
                                 uint32_t flags, double scale, gni_gpu_mode mode) {
    gni_gpu *gpu = g->gpu;
    gni_gpu_use use[5];
    uint32_t param[GNI_P_FFT_DIM + GNI_FFT_GPU_MAX_DIMS * GNI_P_FFT_DIM_WORDS];
    int64_t lines = 1, each;
    bool deep;
    memset(use, 0, sizeof use);
    memset(param, 0, sizeof param);
    for (int i = 0; i < p->rank; i++) lines *= p->dim[i][0];
    gni_fft_gpu_params(p, g->fft_gpu->doubles, in, out, flags, scale, param);
    param[GNI_P_FFT_LINES] = (uint32_t)lines;
    const gni_fft_gpu_table *fold = NULL;
    if ((flags & (GNI_F_FFT_FOLD_IN | GNI_F_FFT_FOLD_OUT)) && p->full <= GNI_FFT_GPU_FOLDED) {
        fold = gni_fft_gpu_table_get(g, GNI_FFT_GPU_FOLD, p->full, 0);
        if (fold == NULL) return false;
        flags |= GNI_F_FFT_FOLD_TABLE;
    }
    param[GNI_P_FFT_FLAGS] = flags;
    gni_gpu_pipeline *pipeline = gni_fft_gpu_pipeline(gpu, p, param, lines, mode, &each, &deep);
    const gni_fft_gpu_table *roots =
        gni_fft_gpu_table_get(g, deep ? GNI_FFT_GPU_DEEP : GNI_FFT_GPU_ROOTS, p->n, 0);
    if (roots == NULL) return false;
    for (int i = 2; i < 5; i++) {
        const gni_fft_gpu_table *t = i == 3 ? in->factor : i == 4 ? out->factor : NULL;
        if (i > 2 && fold != NULL) t = fold;
        use[i].mem = t != NULL ? &t->mem : &roots->mem;
        use[i].bytes = gni_fft_gpu_bytes(g, t != NULL ? t->size : roots->size);
    }
    use[0].mem = in->mem;
    use[0].offset = in->start;
    use[0].bytes = in->bytes;
    use[1].mem = out->mem;
    use[1].offset = out->start;
    use[1].bytes = out->bytes;
    use[1].write = true;
    if (mode == GNI_GPU_ASYNC) return true;
    if (pipeline == NULL) return false;
    int64_t groups = (lines + each - 1) / each;
    if ((flags & GNI_F_FFT_FOLD_OUT) &&
        p->out_span > 1) // each group has as many lines from the front as from the back
        groups = lines / p->out_span * ((p->out_span / 2 + each / 2 - 1) / (each / 2));
    int64_t x = GNI_MIN(groups, (int64_t)gpu->caps.max_groups[0]), y = (groups + x - 1) / x;
    if (lines > INT32_MAX || y > (int64_t)gpu->caps.max_groups[1]) return false;
    return gni_gpu_dispatch(gpu, pipeline, use, 5, param,
                            (uint32_t)((GNI_P_FFT_DIM + p->rank * GNI_P_FFT_DIM_WORDS) * 4),
                            (uint32_t)x, (uint32_t)y, 1);
}

static void gni_fft_gpu_dim(gni_fft_gpu_pass *p, int64_t size, int64_t in, int64_t out,
                            int64_t unit, int64_t out_unit) {
    if (size == 1) return;
    int64_t *d = p->dim[p->rank++];
    d[0] = size, d[1] = in, d[2] = out, d[3] = unit, d[4] = out_unit;
}

static gni_fft_gpu_end gni_fft_gpu_middle(const gni_gpu_mem *mem, uint64_t bytes) {
    GNI_ZEROED(gni_fft_gpu_end, e);
    e.mem = mem;
    e.bytes = bytes;
    e.count = INT64_MAX;
    return e;
}

static void gni_fft_gpu_batch(gni_fft_gpu_pass *p, const gni_fft *f, int skip,
                              const gni_fft_gpu_end *in, const gni_fft_gpu_end *out) {
    for (int i = 0; i < f->rank; i++)
        if (f->dim[i] != 1 && i != skip)
            gni_fft_gpu_dim(p, f->dim[i], in->stride[i], out->stride[i], 0, 0);
}

// Rows of n numbers, or with `fast` columns: that dimension's numbers follow each other.
static gni_fft_gpu_end gni_fft_gpu_between(const gni_fft *f, int64_t n, int fast,
                                           const gni_gpu_mem *mem, uint64_t bytes) {
    gni_fft_gpu_end e = gni_fft_gpu_middle(mem, bytes);
    e.step = fast >= 0 ? f->dim[fast] : 1;
    int64_t rest = n * gni_extent_product(f->dim, f->rank);
    if (fast >= 0) e.stride[fast] = 1;
    for (int i = 0; i < f->rank; i++) {
        if (i == fast) continue;
        rest /= GNI_MAX(f->dim[i], 1);
        e.stride[i] = rest;
    }
    return e;
}

// One pass: the dimension whose lines lie next to each other comes first when the points do not.
static bool gni_fft_gpu_single(gn_context *g, const gni_fft *f, int64_t n,
                               const gni_fft_gpu_end *in, const gni_fft_gpu_end *out, double scale,
                               gni_gpu_mode mode) {
    gni_fft_gpu_pass p;
    uint32_t flags = in->flags | out->flags;
    memset(&p, 0, sizeof p);
    p.n = n;
    p.full = f->n;
    p.span = p.out_span = 1;
    p.in_step = in->step;
    p.out_step = out->step;
    gni_fft_gpu_batch(&p, f, -1, in, out);
    for (int i = 1; i < p.rank; i++) {
        if (in->step == 1 || p.dim[i][1] != 1) continue;
        int64_t old[5];
        memcpy(old, p.dim[0], sizeof old);
        memcpy(p.dim[0], p.dim[i], sizeof old);
        memcpy(p.dim[i], old, sizeof old);
        break;
    }
    if (p.rank > 0 && in->step != 1 && p.dim[0][1] == 1) flags |= GNI_F_FFT_ACROSS_IN;
    if (p.rank > 0 && out->step != 1 && p.dim[0][2] == 1) flags |= GNI_F_FFT_ACROSS_OUT;
    if (in->count < n) flags |= GNI_F_FFT_CUT_IN;
    if (out->count < n) flags |= GNI_F_FFT_CUT_OUT;
    return gni_fft_gpu_dispatch(g, &p, in, out, flags, scale, mode);
}

// A dimension of the batch along which numbers follow each other, where the points do not; or -1.
static int gni_fft_gpu_fast(const gni_fft *f, const gni_fft_gpu_end *in,
                            const gni_fft_gpu_end *out) {
    if (in->step == 1 || (out->flags & GNI_F_FFT_FOLD_OUT)) return -1;
    for (int i = 0; i < f->rank; i++)
        if (f->dim[i] >= 8 && in->stride[i] == 1 && out->stride[i] == 1) return i;
    return -1;
}

// The passes of part[0] = a, then, for three parts, b, and c points. All are compiled at the same time.
static bool gni_fft_gpu_several(gn_context *g, const gni_fft *f, int64_t n, const int64_t *part,
                                int parts, const gni_fft_gpu_end *in, const gni_fft_gpu_end *out,
                                double scale, const gni_gpu_mem *temporary, gni_gpu_mode mode) {
    const int64_t a = part[0], m = n / a, b = parts == 3 ? part[1] : 1, c = m / b;
    const int fast = gni_fft_gpu_fast(f, in, out);
    const bool half = (in->flags & (GNI_F_FFT_HALF_IN | GNI_F_FFT_FOLD_IN)) != 0;
    const uint32_t across = GNI_F_FFT_ACROSS_IN | GNI_F_FFT_ACROSS_OUT;
    gni_fft_gpu_pass pass[3];
    gni_fft_gpu_end middle = gni_fft_gpu_between(f, n, fast, temporary,
                                                 gni_fft_gpu_bytes(g, n * gni_extent_product(f->dim, f->rank)));
    const int64_t step = middle.step;
    uint32_t flags[3] = {0};
    memset(pass, 0, sizeof pass);
    for (int i = 0; i < 3; i++) {
        pass[i].full = f->n;
        pass[i].in_fixed = fast < 0 && (i > 0 || in->step == 1);
        pass[i].out_fixed = fast < 0 && (i < 2 || out->step == 1);
        if (fast >= 0) gni_fft_gpu_dim(&pass[i], f->dim[fast], 1, 1, 0, 0);
    }
    pass[0].n = a;
    pass[0].twist = n;
    pass[0].span = m;
    pass[0].in_step = half ? in->step : m * in->step;
    pass[0].out_step = m * step;
    gni_fft_gpu_dim(&pass[0], m, half ? 0 : in->step, step, 1, 0);
    gni_fft_gpu_batch(&pass[0], f, fast, in, &middle);
    flags[0] = in->flags | across | GNI_F_FFT_TWIST | (in->count < n ? GNI_F_FFT_CUT_IN : 0);
    pass[1].n = b; // in place
    pass[1].twist = m;
    pass[1].in_step = pass[1].out_step = c * step;
    gni_fft_gpu_dim(&pass[1], c, step, step, 1, 0);
    gni_fft_gpu_dim(&pass[1], a, m * step, m * step, 0, 0);
    gni_fft_gpu_batch(&pass[1], f, fast, &middle, &middle);
    flags[1] = across | GNI_F_FFT_TWIST;
    pass[2].n = c;
    pass[2].in_step = step;
    pass[2].out_step = a * b * out->step;
    pass[2].out_span = a * b;
    gni_fft_gpu_dim(&pass[2], a, m * step, out->step, 0, 1);
    if (b > 1) gni_fft_gpu_dim(&pass[2], b, c * step, a * out->step, 0, a);
    gni_fft_gpu_batch(&pass[2], f, fast, &middle, out);
    flags[2] = out->flags | (fast >= 0 ? across : GNI_F_FFT_ACROSS_OUT) |
               (out->count < n ? GNI_F_FFT_CUT_OUT : 0);
    for (int ahead = 1; ahead >= (mode == GNI_GPU_ASYNC ? 1 : 0); ahead--)
        for (int i = mode == GNI_GPU_ASYNC ? 0 : ahead; i < 3; i++) {
            if (i == 1 && b == 1) continue;
            if (!gni_fft_gpu_dispatch(g, &pass[i], i == 0 ? in : &middle, i == 2 ? out : &middle,
                                      flags[i], i == 2 ? scale : 1.0,
                                      ahead ? GNI_GPU_ASYNC : GNI_GPU_WAIT))
                return false;
        }
    return true;
}

// With GNI_GPU_ASYNC only compiles what will be needed.
static bool gni_fft_gpu_transform(gn_context *g, const gni_fft *f, int64_t n,
                                  const gni_fft_gpu_end *in, const gni_fft_gpu_end *out,
                                  double scale, gni_gpu_mode mode) {
    int64_t part[3];
    gni_gpu_mem temporary;
    int parts = gni_fft_gpu_cut(g, n, gni_fft_gpu_apart(f, n, in, out), part);
    if (parts == 1) return gni_fft_gpu_single(g, f, n, in, out, scale, mode);
    if (parts == 0) return false;
    if (parts == 2 && (out->flags & GNI_F_FFT_FOLD_OUT) && part[1] > GNI_MAX(part[0], 256)) {
        const int64_t last = part[0]; // a long last pass has few lines for their mirror images
        part[0] = part[1];
        part[1] = last;
    }
    memset(&temporary, 0, sizeof temporary);
    if (mode == GNI_GPU_ASYNC)
        return gni_fft_gpu_several(g, f, n, part, parts, in, out, scale, &temporary, mode);
    uint64_t bytes = gni_fft_gpu_bytes(g, n * gni_extent_product(f->dim, f->rank));
    if (!gni_gpu_need(g->gpu, bytes, &temporary, "gn_fft: device memory")) return false;
    bool ok = gni_fft_gpu_several(g, f, n, part, parts, in, out, scale, &temporary, mode);
    gni_gpu_free(g->gpu, &temporary);
    return ok;
}

// The chirp's conjugate, there and mirrored, transformed by the same kernels.
static bool gni_fft_gpu_make_kernel_doubles(gn_context *g, const gni_fft_gpu_table *t) {
    const uint64_t bytes = gni_fft_gpu_bytes(g, t->size);
    gni_fft f;
    gni_gpu_mem conjugate;
    memset(&f, 0, sizeof f);
    f.n = t->size;
    if (!gni_gpu_alloc(g->gpu, bytes, &conjugate)) return false;
    const gni_fft_gpu_end in = gni_fft_gpu_between(&f, t->size, -1, &conjugate, bytes);
    const gni_fft_gpu_end out = gni_fft_gpu_between(&f, t->size, -1, &t->mem, bytes);
    const bool ok = gni_fft_gpu_upload(g, t, &conjugate) &&
                    gni_fft_gpu_transform(g, &f, t->size, &in, &out, 1.0 / (double)t->size, GNI_GPU_WAIT);
    gni_gpu_free(g->gpu, &conjugate);
    return ok;
}

// Bluestein: times the chirp, convolved with its conjugate, times the chirp.
static bool gni_fft_gpu_chirped(gn_context *g, const gni_fft *f, gni_fft_gpu_end *in,
                                gni_fft_gpu_end *out) {
    const int64_t n = f->n, m = gni_fft_gpu_convolution(n);
    uint64_t bytes = gni_fft_gpu_bytes(g, m * gni_extent_product(f->dim, f->rank));
    gni_gpu_mem temporary;
    if (!gni_gpu_need(g->gpu, bytes, &temporary, "gn_fft: device memory")) return false;
    gni_fft_gpu_end first = gni_fft_gpu_between(f, m, -1, &temporary, bytes), second = first;
    first.flags = GNI_F_FFT_FACTOR_OUT;
    second.flags = GNI_F_FFT_SWAP_IN;
    in->flags |= GNI_F_FFT_FACTOR_IN;
    in->count = GNI_MIN(in->count, n);
    out->flags |= GNI_F_FFT_SWAP_OUT | GNI_F_FFT_FACTOR_OUT |
                  (f->inverse ? GNI_F_FFT_SWAP_OUT_2 : 0u);
    if (!g->fft_gpu->doubles) gni_fft_gpu_wide_pipeline(g->gpu, GNI_GPU_ASYNC); // all compile at the same time
    bool ok = gni_fft_gpu_transform(g, f, m, in, &first, 1.0, GNI_GPU_ASYNC) &&
              gni_fft_gpu_transform(g, f, m, &second, out, f->scale, GNI_GPU_ASYNC);
    if (ok) {
        in->factor = out->factor = gni_fft_gpu_table_get(g, GNI_FFT_GPU_CHIRP, n, 0);
        first.factor =
            in->factor != NULL ? gni_fft_gpu_table_get(g, GNI_FFT_GPU_KERNEL, n, m) : NULL;
        if (first.factor == NULL) gni_fail_memory(g, "gn_fft: device memory", gni_fft_gpu_bytes(g, m));
    }
    ok = first.factor != NULL && gni_fft_gpu_transform(g, f, m, in, &first, 1.0, GNI_GPU_WAIT) &&
         gni_fft_gpu_transform(g, f, m, &second, out, f->scale, GNI_GPU_WAIT);
    gni_gpu_free(g->gpu, &temporary);
    return ok;
}

// Elements of a line of the input, or the output.
static int64_t gni_fft_gpu_count(const gni_fft *f, bool output) {
    if (!output) return f->n_in;
    return f->kind == GNI_FFT_R2C ? f->n / 2 + 1 : f->n;
}

// Points that the passes work on: more than the transform's where it is done as a convolution.
static int64_t gni_fft_gpu_worked(gn_context *g, const gni_fft *f) {
    int64_t part[3];
    return gni_fft_gpu_cut(g, f->n, false, part) > 0 ? f->n : gni_fft_gpu_convolution(f->n);
}

// Bytes from the first to the last element of the input, or the output: of one line, or of all with `first` given,
// which gets the first one's place in the buffer.
static int64_t gni_fft_gpu_extent(const gni_fft *f, bool output, int64_t *first) {
    const gni_operand *o = output ? &f->out : &f->in;
    const int64_t step = (gni_fft_gpu_count(f, output) - 1) * (output ? f->out_step : f->in_step);
    int64_t low = GNI_MIN(step, 0), high = GNI_MAX(step, 0);
    for (int i = 0; i < f->rank && first != NULL; i++) {
        const int64_t reach = (f->dim[i] - 1) * o->stride[i];
        low += GNI_MIN(reach, 0);
        high += GNI_MAX(reach, 0);
    }
    if (first != NULL) *first = o->offset + low;
    return (high - low + 1) * (int64_t)gn_dtype_size(o->dtype);
}

static void gni_fft_gpu_begin(gn_context *g, const gni_fft *f) {
    g->fft_gpu->call++;
    g->fft_gpu->doubles = f->in.dtype == GN_F64 || f->in.dtype == GN_C128;
}

static bool gni_fft_gpu_supports(gn_context *g, const gni_fft *f) {
    const gni_gpu *gpu = g->gpu;
    int64_t part[3], batch = gni_extent_product(f->dim, f->rank);
    if (g->fft_gpu == NULL)
        g->fft_gpu = (gni_fft_gpu_state *)gni_calloc(g, sizeof(gni_fft_gpu_state));
    if (g->fft_gpu == NULL || gpu->caps.shared_bytes < 16384 ||
        gpu->caps.max_invocations < GNI_FFT_GPU_THREADS || gpu->caps.max_buffers < 5)
        return false;
    gni_fft_gpu_begin(g, f);
    if (g->fft_gpu->doubles && !(gpu->caps.float64 && gpu->caps.addresses && gpu->caps.shared_bytes >= 32768)) return false;
    int64_t n = gni_fft_gpu_worked(g, f);
    // A line has to be within a kernel's reach; more of them are done in parts.
    if (n > GNI_GPU_REACH / (int64_t)gni_fft_gpu_bytes(g, 1) || batch > INT64_MAX / 16 / n ||
        gni_fft_gpu_cut(g, n, false, part) == 0)
        return false;
    if (f->in.buf == NULL || f->out.buf == NULL) return false;
    if (gpu->caps.addresses)
        return gni_fft_gpu_extent(f, false, NULL) <= GNI_GPU_REACH &&
               gni_fft_gpu_extent(f, true, NULL) <= GNI_GPU_REACH;
    return f->in.buf->bytes <= gpu->caps.max_storage_range &&
           f->out.buf->bytes <= gpu->caps.max_storage_range &&
           (uint64_t)(n * batch) * 8 <= gpu->caps.max_storage_range;
}

// Real numbers next to each other are used as complex ones where they lie; otherwise pair by pair.
static uint32_t gni_fft_gpu_pair(gni_fft_gpu_end *e, int rank, uint32_t flag) {
    bool even = e->step == 1 && e->offset % 2 == 0 && e->count % 2 == 0;
    for (int i = 0; i < rank; i++) even = even && e->stride[i] % 2 == 0;
    e->each = e->step;
    e->step *= 2;
    if (!even) return flag;
    e->step = 1;
    e->offset /= 2;
    e->count /= 2;
    for (int i = 0; i < rank; i++) e->stride[i] /= 2;
    return 0;
}

// Transforms of real data of n points, n even, as complex ones of n / 2. False: not for this length.
static bool gni_fft_gpu_halves(gn_context *g, const gni_fft *f, const gni_fft_gpu_end *in,
                               const gni_fft_gpu_end *out, bool *ok) {
    gni_fft h = *f;
    gni_fft_gpu_end a = *in, b = *out;
    int64_t part[3];
    if (f->kind == GNI_FFT_C2C || f->n % 2 != 0 || f->n < 4) return false;
    const bool forward = f->kind == GNI_FFT_R2C;
    h.n = f->n / 2;
    if (forward) {
        a.flags = gni_fft_gpu_pair(&a, f->rank, GNI_F_FFT_PAIR_IN);
        b.flags = GNI_F_FFT_FOLD_OUT | (f->inverse ? GNI_F_FFT_CONJ : 0u);
        b.each = b.step;
        b.count = h.n;
    } else {
        b.flags = gni_fft_gpu_pair(&b, f->rank, GNI_F_FFT_PAIR_OUT) | GNI_F_FFT_SWAP_OUT;
        b.count = h.n;
        a.flags = GNI_F_FFT_FOLD_IN | GNI_F_FFT_SWAP_IN |
                  (f->inverse ? 0u : GNI_F_FFT_CONJ);
    }
    int parts = gni_fft_gpu_cut(g, h.n, gni_fft_gpu_apart(f, h.n, &a, &b), part);
    // The fold wants pairs of lines in the last pass.
    const int64_t last = parts > 0 ? part[parts - 1] : 0;
    const bool fits = 2 * last <= gni_fft_gpu_points(g->gpu) ||
                      (gni_fft_gpu_largest(g->gpu) >= last && (last & (last - 1)) == 0);
    if (parts == 0 || (forward && parts > 1 && (h.n / last % 2 != 0 || !fits))) return false;
    *ok = gni_fft_gpu_transform(g, &h, h.n, &a, &b, f->scale, GNI_GPU_WAIT);
    return true;
}

// An operand's place from a start that keeps pairs of numbers and vectors aligned.
static gni_fft_gpu_end gni_fft_gpu_operand(const gni_fft *f, bool output) {
    const gni_operand *o = output ? &f->out : &f->in;
    const int64_t size = (int64_t)gn_dtype_size(o->dtype);
    int64_t first = 0, start;
    gni_fft_gpu_extent(f, output, &first);
    start = GNI_MAX(first, 0) * size / 256 * 256;
    gni_fft_gpu_end e = gni_fft_gpu_middle(&o->buf->device, o->buf->bytes - (uint64_t)start);
    e.start = (uint64_t)start;
    e.offset = o->offset - start / size;
    e.step = output ? f->out_step : f->in_step;
    e.count = gni_fft_gpu_count(f, output);
    return e;
}

static bool gni_fft_gpu_run(gn_context *g, const gni_fft *f) {
    gni_fft_gpu_end in, out;
    int64_t part[3];
    bool ok = false;
    in = gni_fft_gpu_operand(f, false);
    out = gni_fft_gpu_operand(f, true);
    memcpy(in.stride, f->in.stride, sizeof in.stride);
    memcpy(out.stride, f->out.stride, sizeof out.stride);
    if (gni_fft_gpu_halves(g, f, &in, &out, &ok)) return ok;
    if (!gni_is_complex(f->in.dtype)) in.flags |= GNI_F_FFT_REAL_IN;
    if (f->kind == GNI_FFT_C2R) in.flags |= GNI_F_FFT_HALF_IN, out.flags |= GNI_F_FFT_REAL_OUT;
    if (f->inverse) in.flags |= GNI_F_FFT_SWAP_IN;
    if (gni_fft_gpu_cut(g, f->n, in.step != 1 || out.step != 1, part) == 0)
        return gni_fft_gpu_chirped(g, f, &in, &out);
    if (f->inverse) out.flags |= GNI_F_FFT_SWAP_OUT;
    return gni_fft_gpu_transform(g, f, f->n, &in, &out, f->scale, GNI_GPU_WAIT);
}

// Whether the lines, or the numbers between two passes, are more than a kernel reaches, or counts.
static bool gni_fft_gpu_too_far(gn_context *g, const gni_fft *f, int64_t batch) {
    int64_t first;
    return batch > GNI_GPU_REACH / (int64_t)gni_fft_gpu_bytes(g, gni_fft_gpu_worked(g, f)) ||
           gni_fft_gpu_extent(f, false, &first) > GNI_GPU_REACH ||
           gni_fft_gpu_extent(f, true, &first) > GNI_GPU_REACH;
}

static bool gni_fft_gpu_in_parts(gn_context *g, const gni_fft *f) {
    gni_fft half = *f;
    const int64_t batch = gni_extent_product(f->dim, f->rank);
    int widest = 0;
    // One line is within reach, or would not have been taken on.
    if (batch == 1 || !g->gpu->caps.addresses || !gni_fft_gpu_too_far(g, f, batch))
        return gni_fft_gpu_run(g, f);
    for (int i = 1; i < f->rank; i++)
        if (f->dim[i] > f->dim[widest]) widest = i;
    half.dim[widest] = f->dim[widest] / 2;
    if (!gni_fft_gpu_in_parts(g, &half)) return false;
    half.in.offset += half.dim[widest] * f->in.stride[widest];
    half.out.offset += half.dim[widest] * f->out.stride[widest];
    half.dim[widest] = f->dim[widest] - half.dim[widest];
    return gni_fft_gpu_in_parts(g, &half);
}

// Operands are on the GPU.
static bool gni_fft_gpu(gn_context *g, const gni_fft *f) {
    gni_fft_gpu_begin(g, f); // the state was made when support was asked for
    return gni_extent_product(f->dim, f->rank) == 0 || gni_fft_gpu_in_parts(g, f);
}

#else

static void gni_fft_gpu_free(gn_context *g) { GNI_UNUSED(g); }

#endif // GNI_GPU
