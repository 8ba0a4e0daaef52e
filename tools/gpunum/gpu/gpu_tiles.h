// >>gpu_tiles
// Which kernel and which tile computes a matrix product on the GPU, and the words that tell a kernel where operands are.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../gpu/gpu_jobs.h"
#endif

#if GNI_GPU

// A kernel for one size of tile. `rate`: its multiply-adds per microsecond on one multiprocessor of an H200,
// in thousands, with enough workgroups there, and `alone` with one. `begins`: steps of k that its beginning and its
// end take as long as.
typedef struct gni_job_tile {
    int module, bm, bn, bk;
    uint32_t shared;           // bytes
    int rate, alone, resident; // resident: workgroups that a multiprocessor runs at once
    int begins;
    bool units;
} gni_job_tile;

// All but GNI_TILES_BARE of the first may make an operand while they read it (prologue.glsl).
enum { GNI_TILES_BARE = 3 };
static const gni_job_tile gni_job_real_tiles[] = {
    {GNI_MODULE_matmul_96x128, 96, 128, 16, 29700, 189, 163, 2, 48, false},
    {GNI_MODULE_matmul_128x128, 128, 128, 32, 16900, 176, 165, 2, 48, false},
    {GNI_MODULE_matmul_64x128, 64, 128, 16, 25604, 180, 152, 3, 48, false},
    {GNI_MODULE_matmul_64x64, 64, 64, 16, 17412, 156, 128, 4, 48, false},
    {GNI_MODULE_matmul_64x64_4, 64, 64, 32, 34820, 120, 150, 2, 48, false},
    {GNI_MODULE_matmul_128x32, 128, 32, 32, 43012, 125, 89, 2, 48, false},
    {GNI_MODULE_matmul_32x128, 32, 128, 32, 43012, 125, 89, 2, 48, false},
    {GNI_MODULE_matmul_32x64, 32, 64, 32, 26628, 115, 110, 2, 48, false},
    {GNI_MODULE_matmul_128x16, 128, 16, 32, 38916, 96, 51, 2, 48, false},
    {GNI_MODULE_matmul_16x128, 16, 128, 32, 38916, 110, 80, 2, 48, false},
    {GNI_MODULE_matmul_128x8, 128, 8, 32, 36868, 66, 37, 2, 48, false},
    {GNI_MODULE_matmul_8x128, 8, 128, 32, 36868, 93, 68, 2, 48, false},
    {GNI_MODULE_matmul_32x32, 32, 32, 32, 18436, 100, 88, 3, 48, false},
};
#define GNI_HALF_TILES(type)                                                                       \
    {                                                                                              \
        {GNI_MODULE_matmul_##type##_128x128, 128, 128, 64, 36868, 1250, 1060, 2, 192, true},       \
        {GNI_MODULE_matmul_##type##_64x128, 64, 128, 64, 27652, 1000, 680, 4, 192, true},          \
        {GNI_MODULE_matmul_##type##_64x64, 64, 64, 64, 18436, 800, 540, 3, 192, true},             \
        {GNI_MODULE_matmul_##type##_32x64, 32, 64, 64, 14340, 550, 340, 4, 192, true},             \
    }
static const gni_job_tile gni_job_half_tiles[] = GNI_HALF_TILES(half), gni_job_bfloat_tiles[] = GNI_HALF_TILES(bfloat);
// Of float32 that the kernel takes apart (matmul_floats.glsl).
static const gni_job_tile gni_job_float_tiles[] = {
    {GNI_MODULE_matmul_floats_128x128, 128, 128, 32, 41512, 337, 337, 1, 96, true},
    {GNI_MODULE_matmul_floats_64x128, 64, 128, 32, 31272, 318, 180, 2, 96, true},
    {GNI_MODULE_matmul_floats_64x64, 64, 64, 32, 20760, 230, 120, 4, 96, true},
};
static const gni_job_tile gni_job_int_tile = {
    GNI_MODULE_matmul_int_64, 64, 64, 16, 8708, 100, 50, 2, 48, false};
// A CPU's tiles are small, since its compilers are slow with much unrolled code: the last of these, and the next, which
// kernels that are texts have as well, for what is not in gni_job_text_tiles.
static const gni_job_tile gni_job_f64_tiles[] = {
    {GNI_MODULE_matmul_f64_128x128, 128, 128, 8, 33284, 88, 84, 1, 40, false},
    {GNI_MODULE_matmul_f64_64x64, 64, 64, 8, 16900, 78, 39, 2, 12, false},
    {GNI_MODULE_matmul_f64_64x32, 64, 32, 16, 25604, 65, 31, 3, 12, false},
    {GNI_MODULE_matmul_f64_32, 32, 32, 16, 8708, 40, 12, 4, 12, false},
};
static const gni_job_tile gni_job_cpu_tile = {
    GNI_MODULE_matmul_32x32s, 32, 32, 16, 9220, 100, 100, 1, 48, false};
#if GNI_WEBGPU
// Of float32 alone, without a program or windows: what the WebGPU layer writes at run time (webgpu_kernels). An H200's
// rates; since nobody says how many multiprocessors there are, what is left in a last round counts little.
static const gni_job_tile gni_job_text_tiles[] = {
    {GNI_MODULE_matmul_64x128, 64, 128, 16, 12288, 151, 151, 1, 48, false},
    {GNI_MODULE_matmul_64x64, 64, 64, 16, 16384, 138, 75, 2, 48, false},
    {GNI_MODULE_matmul_32x64, 32, 64, 16, 12288, 132, 36, 4, 48, false},
};
#endif

enum {
    GNI_JOB_STORE_INPUTS = 3, // epilogue.glsl's limits, beside the product
    GNI_JOB_STORE_INSNS = 8,
    GNI_JOB_STORE_USES = 8 // buffer arguments of the kernel
};
enum { GNI_JOB_JOIN = 16 }; // parts of k that are added up at once: matrix.glsl's GN_JOIN

// Whether a row of a, or a column of b, alone reaches further than a kernel does.
static bool gni_job_is_far(const gni_gpu *gpu, const gni_matmul *m) {
    int64_t a = m->a_cs * (int64_t)gn_dtype_size(m->a.dtype),
            b = m->b_rs * (int64_t)gn_dtype_size(m->b.dtype),
            most = GNI_MAX(GNI_MAX(a, -a), GNI_MAX(b, -b));
    return m->k > 1 && most > gni_job_most_bytes(gpu) / m->k;
}

// Whether kernels that are texts make a product as sums of products: of int64, whose dtypes are the same then, and on a GPU a
// few long sums of float32, which tiles have nobody to share with.
static bool gni_job_matmul_is_sums(const gni_gpu *gpu, const gni_matmul *m) {
    const gn_dtype t = m->c.dtype;
    if (!GNI_TEXTS(gpu) || m->batch_rank > GN_MAX_RANK - 3) return false;
    if (t == GN_I64 || t == GN_U64) return true;
    return gpu->caps.kind != GNI_GPU_CPU && t == GN_F32 && m->a.dtype == t && m->b.dtype == t && !m->fused &&
           m->bias.buf == NULL && m->act == 0 && m->sums.buf == NULL && m->prologue == 0 && m->k >= 4096 && m->m <= 8 &&
           m->n <= 8;
}

// The product as sums of products, over batches, m, n and k.
static void gni_job_matmul_as_sums(const gni_matmul *m, gni_reduce *r) {
    gni_operand *op[2];
    memset(r, 0, sizeof *r);
    const gni_domain domain = m->c.dtype == GN_F32 ? GNI_F : GNI_I;
    r->op = GNI_RED_SUM;
    r->domain = domain;
    r->rank = m->batch_rank + 3;
    r->in[0] = m->a, r->in[1] = m->b, r->out = m->c;
    for (int i = 0; i < 2; i++) {
        op[i] = &r->in[i];
        memset(op[i]->stride, 0, sizeof op[i]->stride);
        memcpy(op[i]->stride, i == 0 ? m->a_batch : m->b_batch, (size_t)m->batch_rank * sizeof(int64_t));
        r->program.in_dtype[i] = m->a.dtype;
    }
    memcpy(r->dim, m->batch_dim, (size_t)m->batch_rank * sizeof(int64_t));
    const int at = m->batch_rank;
    r->dim[at] = m->m, r->dim[at + 1] = m->n, r->dim[at + 2] = m->k;
    op[0]->stride[at] = m->a_rs, op[0]->stride[at + 2] = m->a_cs;
    op[1]->stride[at + 1] = m->b_cs, op[1]->stride[at + 2] = m->b_rs;
    r->program.wide = domain == GNI_I;
    r->program.n_in = 2;
    r->program.n_insn = r->program.n_out = 1;
    r->program.insn[0] = GNI_INSN(GNI_OP_MUL, domain, 0, 1, 0);
    r->program.out_dtype[0] = m->c.dtype;
    r->program.out_reg[0] = 2;
    r->kept = gni_merge_dims(&r->rank, r->dim, op, 2, at + 2);
}

static bool gni_job_matmul_ok(const gni_gpu *gpu, const gni_matmul *m) {
    gn_dtype a = m->a.dtype, b = m->b.dtype, t = m->c.dtype;
    if (gpu->caps.max_buffers < 6 || m->k >= INT32_MAX || m->batch_rank > GN_MAX_RANK) return false;
    bool real = (a == GN_F32 || gni_job_is_half(a)) && (b == GN_F32 || gni_job_is_half(b)) &&
                (t == GN_F32 || gni_job_is_half(t));
    bool plain = a == b && a == t && m->bias.buf == NULL && m->act == 0;
    if (m->fused && !gni_job_program_ok(gpu, &m->program, 1)) return false;
    if (m->prologue != 0 && !gni_job_program_ok(gpu, &m->load, 1)) return false;
    if (real) return m->bias.buf == NULL || m->bias.dtype == GN_F32;
    if (gni_job_is_far(gpu, m)) return false;
    if (GNI_TEXTS(gpu) && plain && (a == GN_I64 || a == GN_U64)) {
        gni_reduce r;
        return m->batch_rank <= GN_MAX_RANK - 3 && (gni_job_matmul_as_sums(m, &r), gni_job_reduce_ok(gpu, &r));
    }
    if (plain && (a == GN_I32 || a == GN_U32)) return gni_job_has(gpu, gni_job_int_tile.module);
    return plain && a == GN_F64 && gpu->caps.float64 && gpu->caps.int64;
}

// ---- which kernel

// Whether subgroups multiply 16x16x16 of this type of component into sums of that one.
static bool gni_job_has_shape(const gni_gpu_caps *c, int32_t in, int32_t sum) {
    for (int i = 0; i < c->coop_count; i++) {
        const gni_gpu_coop *s = &c->coops[i];
        if (s->m == 16 && s->n == 16 && s->k == 16 && s->a == in && s->b == in && s->c == sum &&
            s->result == sum && !s->saturating && !s->workgroup_scope && s->invocations == 0)
            return true;
    }
    return false;
}

// Whether the device multiplies 16x16x16 of this dtype into float32 sums, in subgroups of 32. Sums on their way to
// float16 are rounded as a matrix of the unit's, which is a type that it has to have.
static bool gni_job_has_units(const gni_gpu *gpu, gn_dtype t) {
    const gni_gpu_caps *c = &gpu->caps;
    bool subgroups = c->subgroup_control ? c->subgroup_min <= 32 && c->subgroup_max >= 32
                                         : c->subgroup_min == 32 && c->subgroup_max == 32;
    bool types = t == GN_F16 ? c->float16 : t == GN_BF16 && c->bfloat16 && c->bfloat16_coop;
    int32_t in = t == GN_F16 ? GNI_GPU_COMPONENT_F16 : GNI_GPU_COMPONENT_BF16;
    if (!c->coop || !c->addresses || !subgroups || !types) return false;
    return gni_job_has_shape(c, in, GNI_GPU_COMPONENT_F32) &&
           (t != GN_F16 || gni_job_has_shape(c, in, GNI_GPU_COMPONENT_F16));
}

// Sizes from which matrix units pay.
static bool gni_job_suits_units(const gni_matmul *m) { return m->m > 1 && m->n > 1 && m->k >= 16; }

// Steps of k that a part of `chunk` takes as long as: a workgroup has its beginning and its end.
static double gni_job_tile_steps(const gni_job_tile *t, int64_t chunk) {
    return (double)(chunk + t->begins);
}

static gni_gpu_rates gni_job_tile_rates(const gni_gpu *gpu, const gni_job_tile *t) {
    gni_gpu_rates own;
    own.rate = t->rate;
    own.alone = t->alone;
    own.resident = t->resident;
    const gni_gpu_rates *tuned = gpu->rates ? &gpu->rates[t->module] : &own;
    return tuned->rate == 0 ? own : *tuned;
}

// Multiply-adds per microsecond with `each` workgroups on a multiprocessor.
static double gni_job_tile_rate(const gni_gpu *gpu, const gni_job_tile *t, int64_t each) {
    gni_gpu_rates r = gni_job_tile_rates(gpu, t);
    if (each >= r.resident) return r.rate * 1000.0;
    return 1000.0 * (r.alone + (r.rate - r.alone) * (double)(each - 1) / (double)(r.resident - 1));
}

// Of so many tiles, those that come whole where k is in `splits` parts: as many as all multiprocessors
// have an equal share of.
static int64_t gni_job_whole_tiles(const gni_gpu *gpu, const gni_job_tile *t, int64_t tiles,
                                   int64_t splits) {
    int64_t units = (int64_t)gpu->caps.multiprocessors;
    if (splits == 1) return tiles;
    return t->units ? 0 : tiles / units * units;
}

// Microseconds, about, that `whole` tiles and after them `parts` of others take, and their steps of k.
static double gni_job_wave_time(const gni_gpu *gpu, const gni_job_tile *t, int64_t whole,
                                double whole_steps, int64_t parts, double part_steps) {
    int64_t units = (int64_t)gpu->caps.multiprocessors,
            resident = gni_job_tile_rates(gpu, t).resident,
            each = GNI_MIN(resident, gni_job_ceil(whole + parts, units)), room = units * each,
            over = whole % room;
    // In one step of all that a multiprocessor runs at once, and in how many steps.
    double area = (double)t->bm * (double)t->bn,
           step = area * (double)each / gni_job_tile_rate(gpu, t, each),
           steps = (double)(whole / room) * whole_steps;
    if (over == 0) return step * (steps + (double)gni_job_ceil(parts, room) * part_steps);
    int64_t free_room = room - over, fit = free_room * (int64_t)(whole_steps / part_steps);
    if (parts > fit)
        return step * (steps + whole_steps + (double)gni_job_ceil(parts - fit, room) * part_steps);
    // The last whole tiles have their multiprocessors for themselves after a while. But without parts two go
    // wherever two have just ended.
    int64_t left = parts == 0 && resident <= 2 ? each : gni_job_ceil(over, units);
    double beside = (double)gni_job_ceil(parts, free_room) * part_steps;
    return step * (steps + beside) +
           (whole_steps - beside) * area * (double)left / gni_job_tile_rate(gpu, t, left);
}

// Microseconds, about, that this tile takes with k in `splits` parts.
static double gni_job_tile_time(const gni_gpu *gpu, const gni_job_tile *t, const gni_matmul *m,
                                int64_t batches, int64_t splits) {
    int64_t units = (int64_t)gpu->caps.multiprocessors;
    int64_t tiles = gni_job_ceil(m->m, t->bm) * gni_job_ceil(m->n, t->bn) * batches;
    int64_t chunk = gni_job_ceil(gni_job_ceil(m->k, splits), t->bk) * t->bk,
            each = gni_job_ceil(tiles * splits, units), whole = tiles;
    double area = (double)t->bm * (double)t->bn, time, bytes;
    if (t->units) {
        // What is left of the last round has its multiprocessors for itself.
        const int64_t resident = gni_job_tile_rates(gpu, t).resident, left = m->in_parts ? each % resident : 0;
        time = (double)(each - left) / gni_job_tile_rate(gpu, t, each);
        if (left > 0) time += (double)left / gni_job_tile_rate(gpu, t, left);
        time *= area * gni_job_tile_steps(t, chunk);
        bytes = (double)(splits * batches) * (double)m->m * (double)m->n * 8.0 / 3e6;
    } else {
        whole = gni_job_whole_tiles(gpu, t, tiles, splits);
        int64_t parts = (tiles - whole) * splits;
        time = gni_job_wave_time(gpu, t, whole, gni_job_tile_steps(t, m->k), parts,
                                 gni_job_tile_steps(t, chunk));
        bytes = (double)parts * area * 8.0 / 5e6;
    }
    // Parts are written and read once, and each time that they are joined someone waits for the last one.
    if (splits > 1) time += bytes;
    // Kernels of float64 have no registers to spare for it.
    if (splits > 1 && m->c.dtype == GN_F64) time *= 1.08;
    for (int64_t left = splits; left > 1; left = gni_job_ceil(left, GNI_JOB_JOIN)) time += 2.5;
    return time;
}

// The number of parts to try after `splits`.
static int64_t gni_job_more_splits(const gni_job_tile *t, int64_t splits) {
    if (t->units) { // in steps of a sixteenth to an eighth, by way of all powers of two
        int64_t step = 1;
        while (32 * step <= splits) step *= 2;
        return splits + step;
    }
    if (splits >= 16) return 2 * splits;
    return splits < 8 ? splits + 1 : splits + 4;
}

// Where the choice for such a product is remembered. Its tile is NULL when it is yet to be made; NULL if nowhere.
static gni_job_choice *gni_job_known_choice(const gni_gpu *gpu, const gni_job_tile *tiles,
                                            const gni_matmul *m, int64_t batches) {
    gni_gpu_jobs *ops = (gni_gpu_jobs *)gpu->jobs;
    if (ops == NULL) return NULL;
    uint64_t hash =
        (((uint64_t)m->m * 31 + (uint64_t)m->n) * 31 + (uint64_t)m->k) * 31 + (uint64_t)batches;
    // Both kinds of one product are asked for in turn.
    hash = hash * 31 + (uint64_t)(uintptr_t)tiles;
    gni_job_choice *c = &ops->choices[(hash * 0x9e3779b97f4a7c15u) >> (64 - GNI_JOB_LOG_CHOICES)];
    if (c->m == m->m && c->n == m->n && c->k == m->k && c->batches == batches && c->among == tiles)
        return c;
    c->m = m->m;
    c->n = m->n;
    c->k = m->k;
    c->batches = batches;
    c->among = tiles;
    c->tile = NULL;
    return c;
}

// The tile of `count` and the number of parts of k that take the least time.
static const gni_job_tile *gni_job_best_tile(const gni_gpu *gpu, const gni_job_tile *tiles, int count, const gni_matmul *m,
                                             int64_t batches, int64_t *splits) {
    const gni_job_tile *best = NULL;
    *splits = 1;
    gni_job_choice *known = gni_job_known_choice(gpu, tiles, m, batches);
    if (known != NULL && known->tile != NULL) {
        *splits = known->splits;
        return known->tile;
    }
    double least = 0.0;
    for (int i = 0; i < count; i++) {
        const gni_job_tile *t = &tiles[i];
        if (t->shared > gpu->caps.shared_bytes && i < count - 1) continue;
        if (!gni_job_has(gpu, t->module)) continue;
        for (int64_t s = 1; s <= (GNI_TEXTS(gpu) ? 1 : 1024) && (s == 1 || m->k >= s * 4 * t->bk);
             s = gni_job_more_splits(t, s)) {
            double time = gni_job_tile_time(gpu, t, m, batches, s);
            // Of units the times are less sure: powers of two, unless another number fills the device visibly better.
            if (t->units && (s & (s - 1)) != 0) time *= 1.05;
            if (best != NULL && time >= least) continue;
            best = t;
            least = time;
            *splits = s;
        }
    }
    if (known != NULL) {
        known->tile = best;
        known->splits = *splits;
    }
    return best;
}

static const gni_job_tile *gni_job_pick_tile(const gni_gpu *gpu, const gni_matmul *m, int64_t batches, int64_t *splits) {
    const gni_job_tile *tiles = gni_job_real_tiles;
    int count = (int)(sizeof gni_job_real_tiles / sizeof gni_job_real_tiles[0]);
    if (m->c.dtype == GN_F64) {
        const int all = (int)(sizeof gni_job_f64_tiles / sizeof gni_job_f64_tiles[0]);
        count = gpu->caps.kind == GNI_GPU_CPU ? 1 : all;
        tiles = gni_job_f64_tiles + (all - count);
    } else if (m->c.dtype == GN_I32 || m->c.dtype == GN_U32) {
        tiles = &gni_job_int_tile;
        count = 1;
    } else if (m->a.dtype == m->b.dtype && gni_job_has_units(gpu, m->a.dtype) &&
               gni_job_suits_units(m)) {
        tiles = m->a.dtype == GN_F16 ? gni_job_half_tiles : gni_job_bfloat_tiles;
        count = (int)(sizeof gni_job_half_tiles / sizeof gni_job_half_tiles[0]);
    } else if (gpu->caps.kind == GNI_GPU_CPU || GNI_TEXTS(gpu)) {
        tiles = &gni_job_cpu_tile;
        count = 1;
#if GNI_WEBGPU
        if (gpu->caps.kind != GNI_GPU_CPU && m->a.dtype == GN_F32 && m->b.dtype == GN_F32 && m->c.dtype == GN_F32) {
            tiles = gni_job_text_tiles;
            count = (int)GNI_COUNT(gni_job_text_tiles);
        }
#endif
    } else if (m->prologue != 0 || m->as_prologue) {
        tiles += GNI_TILES_BARE;
        count -= GNI_TILES_BARE;
    }
    const gni_job_tile *t = gni_job_best_tile(gpu, tiles, count, m, batches, splits);
    if (!m->in_parts) return t;
    int64_t parts;
    const gni_job_tile *u =
        gni_job_best_tile(gpu, gni_job_float_tiles, (int)GNI_COUNT(gni_job_float_tiles), m, batches, &parts);
    const gni_gpu_jobs *ops = (gni_gpu_jobs *)gpu->jobs;
    const bool force = ops != NULL && ops->floats_force;
    if (!force && gni_job_tile_time(gpu, u, m, batches, parts) >= gni_job_tile_time(gpu, t, m, batches, *splits)) return t;
    *splits = parts;
    return u;
}

// What both kinds of matrix kernels are told. The strides are those of the kernel's own a and b.
static void gni_job_matrix_params(gni_job_call *c, const gni_matmul *m, int64_t batches,
                                  const gni_gpu_use *use, const uint32_t *base) {
    for (int i = 0; i < 4; i++) c->use[i] = use[i];
    c->n_use = 4;
    c->n_param = GNI_P_MATMUL_WORDS;
    uint32_t *p = c->param;
    p[GNI_P_MATMUL_M] = (uint32_t)m->m;
    p[GNI_P_MATMUL_N] = (uint32_t)m->n;
    p[GNI_P_MATMUL_K] = (uint32_t)m->k;
    p[GNI_P_MATMUL_BATCHES] = (uint32_t)batches;
    p[GNI_P_MATMUL_A_BASE] = base[0];
    p[GNI_P_MATMUL_A_ROW] = (uint32_t)m->a_rs;
    p[GNI_P_MATMUL_A_COLUMN] = (uint32_t)m->a_cs;
    p[GNI_P_MATMUL_B_BASE] = base[1];
    p[GNI_P_MATMUL_B_ROW] = (uint32_t)m->b_rs;
    p[GNI_P_MATMUL_B_COLUMN] = (uint32_t)m->b_cs;
    p[GNI_P_MATMUL_C_BASE] = base[2];
    p[GNI_P_MATMUL_BIAS_BASE] = base[3];
    p[GNI_P_MATMUL_SPLITS] = 1;
    p[GNI_P_MATMUL_CHUNK] = (uint32_t)GNI_MAX(m->k, 1);
    p[GNI_P_MATMUL_BATCH_RANK] = (uint32_t)m->batch_rank;
    for (int i = 0; i < m->batch_rank; i++) {
        uint32_t *d = &p[GNI_P_MATMUL_BATCH + 3 * i];
        d[0] = (uint32_t)m->batch_dim[i];
        d[1] = (uint32_t)m->a_batch[i];
        d[2] = (uint32_t)m->b_batch[i];
    }
    p[GNI_P_MATMUL_STRIPE] = 8;
}

static bool gni_job_batch_even(const gni_matmul *m, const int64_t *stride, int64_t group) {
    for (int i = 0; i < m->batch_rank; i++)
        if (m->batch_dim[i] > 1 && stride[i] % group != 0) return false;
    return true;
}

// Splits k over `splits` workgroups per tile, with room for what they leave: `part_bytes` each.
static bool gni_job_split_k(gni_job_call *c, int64_t k, int64_t unit, int64_t splits, int64_t tiles,
                            int64_t part_bytes, int64_t counters, int64_t *used) {
    int64_t chunk = gni_job_ceil(gni_job_ceil(k, GNI_MAX(splits, 1)), unit) * unit;
    *used = k > 0 ? gni_job_ceil(k, chunk) : 1;
    c->param[GNI_P_MATMUL_SPLITS] = (uint32_t)*used;
    c->param[GNI_P_MATMUL_CHUNK] = (uint32_t)GNI_MAX(chunk, 1);
    c->param[GNI_P_MATMUL_COUNTER0] = 0;
    if (*used <= 1) return true;
    return gni_job_scratch(c, (uint64_t)(tiles * *used * part_bytes), "partial products") &&
           gni_job_counters(c, counters, &c->param[GNI_P_MATMUL_COUNTER0]);
}

enum { GNI_JOB_ALONG_M = 1, GNI_JOB_GROUPS = 2, GNI_JOB_NEIGHBOURS = 4 };

// How a kernel reads an operand, which is m x k with these strides.
static uint32_t gni_job_operand_layout(int64_t m, int64_t rs, int64_t k, int64_t cs, uint32_t base,
                                       bool even, int64_t group) {
    bool along_m = cs != 1 && (rs == 1 || k == 1),
         neighbours = along_m ? rs == 1 || m == 1 : cs == 1 || k == 1;
    int64_t step = along_m ? cs : rs, lines = along_m ? k : m;
    bool groups = neighbours && even && (lines == 1 || step % group == 0) && base % group == 0;
    return gni_job_flag(along_m, GNI_JOB_ALONG_M) | gni_job_flag(groups, GNI_JOB_GROUPS) |
           gni_job_flag(neighbours, GNI_JOB_NEIGHBOURS);
}

// A buffer argument for a matrix of m x n elements and its batches.
static bool gni_job_matrix_reach(const gni_gpu *gpu, const gni_matmul *m, const gni_operand *o,
                                 int64_t rows, int64_t rs, int64_t columns, int64_t cs,
                                 const int64_t *batch, gni_gpu_use *use, uint32_t *base) {
    int64_t dim[GN_MAX_RANK + 2], stride[GN_MAX_RANK + 2];
    for (int i = 0; i < m->batch_rank; i++) {
        dim[i] = m->batch_dim[i];
        stride[i] = batch[i];
    }
    dim[m->batch_rank] = rows;
    stride[m->batch_rank] = rs;
    dim[m->batch_rank + 1] = columns;
    stride[m->batch_rank + 1] = cs;
    return gni_job_reach(gpu, o, dim, stride, m->batch_rank + 2, use, base);
}

#endif // GNI_GPU
