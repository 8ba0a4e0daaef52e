// >>gpu_matmul
// Matrix products on the GPU: the way of each, what it is fused with, splits of k, and operands that are moved first.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu_jobs.h"
#include "../gpu/gpu_tiles.h"
#endif

#if GNI_GPU

// ---- the program of a fused product

// Whether a kernel's words have room for the program, whose inputs are in[first] on.
static bool gni_job_words_have(const gni_matmul *m, const gni_program *p, const gni_operand *in,
                               int first) {
    if (p->n_in - first > GNI_JOB_STORE_INPUTS || p->n_insn > GNI_JOB_STORE_INSNS) return false;
    for (int i = 0; i < p->n_insn; i++) {
        uint32_t code = GNI_INSN_CODE(p->insn[i]);
        if (!gni_in_stores((gni_op)(code / 3u), (gni_domain)(code % 3u))) return false;
    }
    // One step leads from each batch to the next.
    for (int k = first; k < p->n_in; k++)
        for (int i = 0; i + 1 < m->batch_rank; i++)
            if (in[k].stride[i] != in[k].stride[i + 1] * m->batch_dim[i + 1]) return false;
    return true;
}

// Register 0 of the words is the sum of products; inputs of a program that has none begin with register 1.
static uint32_t gni_job_word_reg(const gni_program *p, uint32_t r, int first) {
    return r < (uint32_t)p->n_in ? r + (uint32_t)(1 - first) : gni_job_reg(p, r);
}

// All of the words but what they say of inputs.
static void gni_job_put_words(gni_job_call *c, const gni_program *p, int first) {
    uint32_t *spec = c->generic.spec, *w = &c->param[GNI_P_STORE + GNI_P_STORE_CONST];
    memset(spec + c->generic.n_spec, 0, (GNI_S_STORE - c->generic.n_spec) * sizeof *spec);
    spec[GNI_S_STORE] = 1u | (uint32_t)(p->n_in - first) << 4 | (uint32_t)p->n_insn << 8 |
              gni_job_word_reg(p, (uint32_t)p->out_reg[0], first) << 16;
    spec[GNI_S_STORE_INPUTS] = 0;
    for (int i = 0; i < p->n_const; i++) w[i] = (uint32_t)p->konst[i];
    c->n_param = GNI_P_STORE + GNI_P_STORE_WORDS;
    for (int i = 0; i < p->n_insn; i++) {
        uint32_t insn = p->insn[i];
        spec[GNI_S_STORE_STEPS + i] = GNI_INSN_CODE(insn) | gni_job_word_reg(p, GNI_INSN_A(insn), first) << 11 |
                      gni_job_word_reg(p, GNI_INSN_B(insn), first) << 18 |
                      gni_job_word_reg(p, GNI_INSN_C(insn), first) << 25;
    }
    c->generic.first_code = GNI_S_STORE_STEPS;
    c->generic.n_spec = GNI_S_STORE_STEPS + (uint32_t)p->n_insn;
}

static uint32_t gni_job_store_input(const gni_operand *o, bool one, bool groups) {
    return (uint32_t)o->dtype | (one ? GNI_F_STORE_ONE : gni_job_flag(groups, GNI_F_STORE_GROUPS));
}

// The program as words of epilogue.glsl: specialisation constants, parameters and buffer arguments.
// `vector`: its rows are the elements of the result.
static bool gni_job_put_store(gni_job_call *c, const gni_matmul *m, bool vector) {
    static const int place[GNI_JOB_STORE_INPUTS] = {3, 6, 7};
    const gni_program *p = &m->program;
    uint32_t *inputs = &c->generic.spec[GNI_S_STORE_INPUTS], *w = &c->param[GNI_P_STORE];
    gni_job_put_words(c, p, 1);
    for (int k = 1; k < p->n_in; k++, w += 4) {
        const gni_operand *o = &m->in[k];
        int64_t down = o->stride[GNI_ALONG_M], across = o->stride[GNI_ALONG_N];
        int64_t batch = m->batch_rank > 0 ? o->stride[m->batch_rank - 1] : 0;
        gni_gpu_use *use = &c->use[place[k - 1]];
        if (!gni_job_matrix_reach(c->gpu, m, o, m->m, down, m->n, across, o->stride, use, &w[0]))
            return false;
        bool one = across == 0 || m->n == 1 || vector,
             group = across == 1 && w[0] % 4 == 0 && (down % 4 == 0 || m->m == 1) && batch % 4 == 0;
        w[1] = (uint32_t)(vector && m->m == 1 ? across : down);
        w[2] = (uint32_t)across;
        w[3] = (uint32_t)batch;
        *inputs |= gni_job_store_input(o, one, group) << (8 * (k - 1));
    }
    return true;
}

// The pipeline of a product. With a program it is NULL while that is not compiled, for then (or where
// compiling costs more than a pass over memory) the program runs by itself.
static gni_gpu_pipeline *gni_job_matmul_pipeline(gni_job_call *c, const gni_matmul *m) {
    gni_gpu *gpu = c->gpu;
    if (!m->fused && m->prologue == 0) {
        c->generic.first_code = c->generic.n_spec; // none: drivers need not see the instructions
        return gni_gpu_pipeline_get(gpu, &c->generic, GNI_GPU_WAIT);
    }
    if (gpu->g->options.vulkan_flags & GN_VULKAN_NO_ASYNC_PIPELINES)
        return gni_gpu_pipeline_get(gpu, &c->generic, GNI_GPU_WAIT);
    gni_gpu_pipeline *p = gni_gpu_pipeline_get(gpu, &c->generic, GNI_GPU_PEEK);
    if (p == NULL && gni_job_seen(gpu, &c->generic))
        gni_gpu_pipeline_get(gpu, &c->generic, GNI_GPU_ASYNC);
    return p;
}

static bool gni_job_store_pays(const gni_gpu *gpu, const gni_matmul *m) {
    uint32_t flags = gpu->g->options.vulkan_flags;
    if (!gpu->caps.addresses || (flags & GN_VULKAN_NO_SPECIALIZATION)) return false;
    // A CPU compiles on the cores that it computes with.
    if (gpu->caps.kind == GNI_GPU_CPU && !(flags & GN_VULKAN_NO_ASYNC_PIPELINES)) return false;
    return gni_job_words_have(m, &m->program, m->in, 1);
}

// The program of an operand that is made while it is read, as words of prologue.glsl. The kernel's layout is known.
static bool gni_job_put_load(gni_job_call *c, const gni_matmul *m) {
    const gni_program *p = &m->load;
    const bool first = m->prologue == 1;
    const uint32_t layout = c->generic.spec[GNI_S_MATMUL_LAYOUT];
    // In memory neighbours follow each other along the operand's other dimension, not along k.
    const bool along = first ? (layout & GNI_F_MATMUL_A_ALONG_M) != 0
                             : (layout & GNI_F_MATMUL_B_ALONG_K) == 0;
    uint32_t *inputs = &c->generic.spec[GNI_S_STORE_INPUTS], *w = &c->param[GNI_P_STORE];
    const int place[GNI_JOB_STORE_INPUTS] = {m->prologue - 1, 6, 7};
    gni_job_put_words(c, p, 0);
    for (int k = 0; k < p->n_in; k++, w += 4) {
        const gni_operand *o = &m->load_in[k];
        int64_t down = o->stride[GNI_ALONG_M], across = o->stride[GNI_ALONG_N];
        int64_t step = along == first ? down : across, other = along == first ? across : down;
        int64_t batch = m->batch_rank > 0 ? o->stride[m->batch_rank - 1] : 0;
        gni_gpu_use *use = &c->use[place[k]];
        if (!gni_job_matrix_reach(c->gpu, m, o, first ? m->m : m->k, down, first ? m->k : m->n,
                                  across, o->stride, use, &w[0]))
            return false;
        bool group = step == 1 && w[0] % 4 == 0 && other % 4 == 0 && batch % 4 == 0;
        w[1] = (uint32_t)(first ? down : across);
        w[2] = (uint32_t)(first ? across : down);
        w[3] = (uint32_t)batch;
        *inputs |= gni_job_store_input(o, step == 0, group) << (8 * k);
    }
    c->generic.spec[GNI_S_PROLOGUE] = (uint32_t)m->prologue;
    return true;
}

// A fused product with its program as a pass of its own over the sums.
typedef struct gni_job_apart {
    gni_matmul plain; // the product alone
    gni_map job;
    gni_buffer buffer; // the sums, where c cannot hold them
} gni_job_apart;

static bool gni_job_apart_begin(gni_gpu *gpu, const gni_matmul *m, gni_job_apart *p) {
    int64_t step = 1, n = m->batch_rank + 2;
    memset(&p->job, 0, sizeof p->job);
    memset(&p->buffer, 0, sizeof p->buffer);
    p->plain = *m;
    p->job.program = m->program;
    p->job.rank = (int)n;
    memcpy(p->job.in, m->in, sizeof p->job.in);
    p->job.out[0] = m->c;
    for (int64_t i = n - 1; i >= 0; i--) {
        int64_t from = i;
        if (i == n - 1) from = GNI_ALONG_N;
        if (i == n - 2) from = GNI_ALONG_M;
        p->job.dim[i] = i == n - 1 ? m->n : i == n - 2 ? m->m : m->batch_dim[i];
        for (int k = 1; k < m->program.n_in; k++) p->job.in[k].stride[i] = m->in[k].stride[from];
        p->job.out[0].stride[i] = step;
        step *= p->job.dim[i];
    }
    p->plain.fused = false;
    p->plain.c.dtype = GN_F32;
    if (m->c.dtype != GN_F32) {
        if (!gni_gpu_need(gpu, (uint64_t)step * 4, &p->buffer.device, "gn_matmul")) return false;
        p->plain.c.buf = &p->buffer;
        p->plain.c.offset = 0;
    }
    p->job.in[0] = p->job.out[0];
    p->job.in[0].buf = p->plain.c.buf;
    p->job.in[0].offset = p->plain.c.offset;
    p->job.in[0].dtype = GN_F32;
    gni_map_merge(&p->job);
    return true;
}

// `ok`: whether the product is there.
static bool gni_job_apart_end(gni_gpu *gpu, gni_job_apart *p, bool ok) {
    ok = ok && gni_job_map(gpu, &p->job);
    if (p->plain.c.buf == &p->buffer) gni_gpu_free(gpu, &p->buffer.device);
    return ok;
}

static bool gni_job_matmul(gni_gpu *gpu, const gni_matmul *m, int64_t row);
static bool gni_job_matmul_apart(gni_gpu *gpu, const gni_matmul *m) {
    gni_job_apart p;
    return gni_job_apart_begin(gpu, m, &p) && gni_job_apart_end(gpu, &p, gni_job_matmul(gpu, &p.plain, m->n));
}

// How many counters the parts of k of one tile need.
static int64_t gni_job_join_counters(int64_t splits) {
    int64_t n = 0;
    for (int64_t left = splits; left > 1; n += left) left = gni_job_ceil(left, GNI_JOB_JOIN);
    return n;
}

// The layout's flags for the store of c.
static uint32_t gni_job_store_layout(const gni_job_call *c, const gni_matmul *m, int64_t row) {
    bool groups = c->param[GNI_P_MATMUL_C_BASE] % 4 == 0 && row % 4 == 0;
    return gni_job_flag(groups, GNI_F_MATMUL_C_GROUPS) |
           gni_job_flag(m->bias.buf != NULL, GNI_F_MATMUL_BIAS) |
           gni_job_flag(m->act == 1, GNI_F_MATMUL_RELU);
}

static void gni_job_put_dtypes(gni_job_call *c, const gni_matmul *m) {
    c->generic.spec[GNI_S_MATMUL_A_DTYPE] = (uint32_t)m->a.dtype;
    c->generic.spec[GNI_S_MATMUL_B_DTYPE] = (uint32_t)m->b.dtype;
    c->generic.spec[GNI_S_MATMUL_C_DTYPE] = (uint32_t)m->c.dtype;
}

// How operands are read, of what gni_job_operand_layout says.
static uint32_t gni_job_layout_flags(uint32_t a, uint32_t b) {
    return gni_job_flag(a & GNI_JOB_ALONG_M, GNI_F_MATMUL_A_ALONG_M) |
           gni_job_flag(a & GNI_JOB_GROUPS, GNI_F_MATMUL_A_GROUPS) |
           gni_job_flag(!(b & GNI_JOB_ALONG_M), GNI_F_MATMUL_B_ALONG_K) |
           gni_job_flag(b & GNI_JOB_GROUPS, GNI_F_MATMUL_B_GROUPS);
}

// More for results of 16 bits.
static uint32_t gni_job_half_store(const gni_job_call *c, int64_t row) {
    bool eights = c->param[GNI_P_MATMUL_C_BASE] % 8 == 0 && row % 8 == 0;
    return gni_job_flag(eights, GNI_F_MATMUL_C_EIGHTS);
}

// Whether the sums of b's columns are better made by the kernel than by a pass over b. On an H200 the kernel takes
// a twentieth more time for them, a tenth with matrix units; a dispatch is 2 us, and b is read at 4 TB/s.
static bool gni_job_sums_pay(const gni_gpu *gpu, const gni_job_tile *t, const gni_matmul *m,
                             int64_t splits) {
    double share = t->units ? 0.1 : 0.05,
           bytes = (double)m->k * (double)m->n * (double)gn_dtype_size(m->b.dtype);
    return gpu->caps.kind == GNI_GPU_CPU ||
           share * gni_job_tile_time(gpu, t, m, 1, splits) < 2.0 + bytes / 4e6;
}

// Of room `gpu_conv`.
static void gni_job_put_windows(gni_job_call *c, const gni_job_tile *t, uint32_t *layout);

// Where what is largest in the operands lies: behind them, as winograd.comp and image.comp leave it.
static void gni_job_put_floats(gni_job_call *c, const gni_matmul *m, int64_t batches, bool along_k) {
    uint32_t *w = c->param;
    c->n_param = GNI_P_FLOATS_WORDS;
    for (int i = 0; i < 2 && c->windows != NULL; i++) {
        const gni_magnitudes *of = &c->windows->largest[i];
        uint32_t *p = &w[i == 0 ? GNI_P_FLOATS_A_LARGEST : GNI_P_FLOATS_B_LARGEST];
        p[0] = (uint32_t)of->from;
        p[1] = (uint32_t)of->groups;
        gni_job_divider(of->each, &p[2]);
        p[5] = (uint32_t)of->places;
    }
    if (c->windows != NULL) return;
    w[GNI_P_FLOATS_A_LARGEST] = w[GNI_P_MATMUL_A_BASE] + (uint32_t)(batches * m->m * m->k);
    w[GNI_P_FLOATS_A_LARGEST + 1] = (uint32_t)gni_job_ceil(m->k, GNI_FLOATS_LINE);
    w[GNI_P_FLOATS_B_LARGEST] = w[GNI_P_MATMUL_B_BASE] + (uint32_t)(batches * m->n * m->k);
    w[GNI_P_FLOATS_B_LARGEST + 1] = (uint32_t)gni_job_ceil(along_k ? m->k : m->n, GNI_FLOATS_LINE);
}

static bool gni_job_matmul_sums(gni_gpu *gpu, const gni_matmul *m);
static bool gni_job_prologue_apart(gni_gpu *gpu, const gni_matmul *m, bool tiled);

static bool gni_job_matmul_tiled(gni_job_call *c, const gni_matmul *m, int64_t batches,
                                 int64_t row) {
    int64_t splits = 1, one = 1;
    const gni_job_tile *t = gni_job_pick_tile(c->gpu, m, batches, &splits);
    bool sums = m->sums.buf != NULL;
    // Kernels that are texts have neither windows nor programs nor sums of columns in their tiles.
    if (GNI_TEXTS(c->gpu) && c->windows != NULL) t = &gni_job_cpu_tile;
    const bool text = GNI_TEXTS(c->gpu) && t->module != GNI_MODULE_matmul_32x32s && t->module != gni_job_int_tile.module;
    if (sums && (text || !gni_job_sums_pay(c->gpu, t, m, splits))) return gni_job_matmul_sums(c->gpu, m);
    int64_t group = m->c.dtype == GN_F64 ? 2 : t->units ? 8 : 4;
    int64_t down = gni_job_ceil(m->m, t->bm), across = gni_job_ceil(m->n, t->bn),
            tiles = down * across * batches;
    uint32_t a = gni_job_operand_layout(m->m, m->a_rs, m->k, m->a_cs, c->param[GNI_P_MATMUL_A_BASE],
                                        gni_job_batch_even(m, m->a_batch, group), group);
    uint32_t b = gni_job_operand_layout(m->n, m->b_cs, m->k, m->b_rs, c->param[GNI_P_MATMUL_B_BASE],
                                        gni_job_batch_even(m, m->b_batch, group), group);
    int64_t whole = gni_job_whole_tiles(c->gpu, t, tiles, splits);
    if (!t->units && whole + (tiles - whole) * splits > (int64_t)c->gpu->caps.max_groups[0]) {
        splits = 1;
        whole = tiles;
    }
    c->generic.module = t->module;
    c->generic.n_spec = GNI_S_MATMUL_SPECS;
    c->generic.subgroup = t->units && c->gpu->caps.subgroup_control ? 32 : 0;
    gni_job_put_dtypes(c, m);
    uint32_t *layout = &c->generic.spec[GNI_S_MATMUL_LAYOUT];
    *layout = gni_job_layout_flags(a, b) | gni_job_flag(t->units && (a & GNI_JOB_NEIGHBOURS), GNI_F_MATMUL_A_RUNS) |
              gni_job_flag(t->units && (b & GNI_JOB_NEIGHBOURS), GNI_F_MATMUL_B_RUNS) |
              gni_job_store_layout(c, m, row);
    gni_log(c->gpu->g, GN_LOG_DEBUG, "gn_matmul: kernel %s, %d part%s of k in %d of %d tiles",
            gni_modules[t->module].name, (int)splits, splits > 1 ? "s" : "",
            (int)(splits > 1 ? tiles - whole : tiles), (int)tiles);
    if (splits > 1) *layout |= GNI_F_MATMUL_SPLITS;
    if (m->k % t->bk == 0) *layout |= GNI_F_MATMUL_WHOLE;
    if (t->units) *layout |= gni_job_half_store(c, row);
    if (t->units && m->k > 0 && m->k % t->bk == 0 && m->m % t->bm == 0 && m->n % t->bn == 0)
        *layout |= GNI_F_MATMUL_INSIDE;
    c->param[GNI_P_MATMUL_TILES_M] = (uint32_t)down;
    c->param[GNI_P_MATMUL_TILES_N] = (uint32_t)across;
    c->param[GNI_P_MATMUL_C_ROW] = (uint32_t)row;
    int64_t part = (int64_t)(t->bm + sums) * t->bn * (m->c.dtype == GN_F64 ? 8 : 4);
    int64_t rest = tiles - whole, counters = rest * gni_job_join_counters(splits);
    c->param[GNI_P_MATMUL_WHOLE_TILES] = (uint32_t)whole;
    // On an H200, few multiply-adds in large tiles do not hide what a program at the store waits for.
    // Tiles of 128x128 have twice the invocations for it.
    bool apart = text || (m->fused && !t->units && m->k <= 128 && t->bm * t->bn >= 64 * 128 &&
                          t->module != GNI_MODULE_matmul_128x128);
    if (m->fused && (apart || !gni_job_put_store(c, m, false)))
        return gni_job_matmul_apart(c->gpu, m);
    if (m->prologue != 0 && !gni_job_put_load(c, m)) return gni_job_prologue_apart(c->gpu, m, true);
    if (c->spare.mem != NULL) *layout |= GNI_F_MATMUL_SPARE;
    if (sums) *layout |= GNI_F_MATMUL_SUMS;
    if (c->windows != NULL) gni_job_put_windows(c, t, layout);
    if (m->in_parts && t->units) gni_job_put_floats(c, m, batches, !(b & GNI_JOB_ALONG_M));
    gni_gpu_pipeline *pipeline = gni_job_matmul_pipeline(c, m);
    if (pipeline != NULL && m->prologue != 0)
        gni_log(c->gpu->g, GN_LOG_DEBUG, "gn_matmul: makes operand %d while it reads it", m->prologue);
    if (pipeline == NULL && !c->gpu->g->call_failed && m->prologue != 0)
        return gni_job_prologue_apart(c->gpu, m, true);
    if (pipeline == NULL)
        return m->fused && !c->gpu->g->call_failed && gni_job_matmul_apart(c->gpu, m);
    bool flat = splits > 1 && !t->units; // whole tiles and parts of others in one row of workgroups
    bool ok = gni_job_split_k(c, m->k, t->bk, splits, rest, part, counters, &splits);
    if (m->fused || m->prologue != 0) c->n_use = GNI_JOB_STORE_USES;
    if (c->spare.mem != NULL || sums) {
        c->use[6] = c->spare;
        c->n_use = 7;
    }
    if (sums && !gni_job_reach(c->gpu, &m->sums, &m->n, &one, 1, &c->use[6], &c->param[GNI_P_MATMUL_BIAS_BASE]))
        ok = false;
    c->use[6].write = sums;
    if (flat)
        ok = ok && gni_job_dispatch(c, pipeline, whole + rest * splits, 1, 1);
    else
        ok = ok && gni_job_dispatch(c, pipeline, down * across, splits, batches);
    gni_job_drop_scratch(c);
    return ok;
}

// Whether the large operand of matvec lies in aligned groups of this many elements.
static bool gni_job_vector_groups(const gni_job_call *c, const gni_matmul *m, bool columns,
                                  int64_t group) {
    bool lines = columns ? m->k == 1 || m->a_cs % group == 0
                         : m->a_cs == 1 && (m->m == 1 || m->a_rs % group == 0);
    return lines && c->param[GNI_P_MATMUL_A_BASE] % group == 0 && gni_job_batch_even(m, m->a_batch, group);
}

// `m` as the kernel sees it: a is the large operand, its rows the long dimension. `flip`: c, which is as
// `job` says, is the transpose of the kernel's.
static bool gni_job_matvec(gni_job_call *c, const gni_matmul *job, const gni_matmul *m,
                           int64_t batches, int64_t row, bool flip) {
    gni_gpu *gpu = c->gpu;
    bool columns = m->a_rs == 1 && m->a_cs != 1;
    bool x_groups = gni_job_vector_groups(c, m, columns, 4),
         eights = gni_job_is_half(m->a.dtype) && gni_job_vector_groups(c, m, columns, 8);
    bool y_groups = !columns && m->b_rs == 1 && (m->n == 1 || m->b_cs % 4 == 0) &&
                    c->param[GNI_P_MATMUL_B_BASE] % 4 == 0 && gni_job_batch_even(m, m->b_batch, 4);
    int64_t piece = eights ? 8 : 4; // elements in a load
    int64_t units = columns ? gni_job_ceil(m->m, piece) : m->m;
    int64_t steps = columns ? m->k : gni_job_ceil(m->k, piece);
    int log_lanes = columns
                        ? GNI_MIN(8 - GNI_MIN(gni_job_log2_up(units), 5), gni_job_log2_up(steps))
                        : GNI_MIN(gni_job_log2_up(gni_job_ceil(steps, 8)), eights ? 6 : 7);
    if (units == 1 && steps >= (int64_t)8 << 8) log_lanes = 8; // no lanes without work
    int64_t blocks = gni_job_ceil(units, (int64_t)256 >> log_lanes), splits = 1;
    int64_t want = gni_job_enough(gpu) / GNI_MAX(blocks * batches, 1);
    if (want > 1 && !GNI_TEXTS(gpu)) splits = GNI_MIN(GNI_MIN(want, steps / ((int64_t)8 << log_lanes)), 512);
    c->generic.module = GNI_MODULE_matvec;
    c->generic.n_spec = GNI_S_MATVEC_SPECS;
    gni_job_put_dtypes(c, m);
    c->generic.spec[GNI_S_MATMUL_LAYOUT] =
        gni_job_flag(columns, GNI_F_MATVEC_COLUMNS) |
        gni_job_flag(x_groups, GNI_F_MATVEC_X_GROUPS) |
        gni_job_flag(y_groups, GNI_F_MATVEC_Y_GROUPS) | gni_job_flag(eights, GNI_F_MATVEC_EIGHTS) |
        gni_job_flag(m->bias.buf != NULL, GNI_F_MATVEC_BIAS) |
        gni_job_flag(m->act == 1, GNI_F_MATVEC_RELU);
    c->generic.spec[GNI_S_MATVEC_LOG_LANES] = (uint32_t)log_lanes;
    c->param[GNI_P_MATVEC_C_LONG] = flip ? 1u : (uint32_t)row;
    c->param[GNI_P_MATVEC_BIAS_LONG] = flip;
    c->param[GNI_P_MATVEC_C_BATCH] = (uint32_t)((flip ? 1 : m->m) * row);
    if (m->fused && !gni_job_put_store(c, job, true)) return gni_job_matmul_apart(gpu, job);
    gni_gpu_pipeline *pipeline = gni_job_matmul_pipeline(c, m);
    if (pipeline == NULL) return m->fused && !gpu->g->call_failed && gni_job_matmul_apart(gpu, job);
    int64_t part = columns && eights ? 32 : 16;
    bool ok =
        gni_job_split_k(c, m->k, piece, splits, batches * units, part, batches * blocks, &splits);
    if (m->fused) c->n_use = GNI_JOB_STORE_USES;
    ok = ok && gni_job_dispatch(c, pipeline, blocks, splits, batches);
    gni_job_drop_scratch(c);
    return ok;
}

// `c` with its operands exchanged: the transposed product.
static gni_matmul gni_job_flipped(const gni_matmul *m) {
    gni_matmul f = *m;
    f.m = m->n;
    f.n = m->m;
    f.a = m->b;
    f.b = m->a;
    f.a_rs = m->b_cs;
    f.a_cs = m->b_rs;
    f.b_rs = m->a_cs;
    f.b_cs = m->a_rs;
    memcpy(f.a_batch, m->b_batch, sizeof f.a_batch);
    memcpy(f.b_batch, m->a_batch, sizeof f.b_batch);
    return f;
}

static bool gni_job_matmul_split(gni_job_call *c, const gni_matmul *m, int64_t batches, int64_t row,
                                 bool *ok);

// The sum over k in two halves, the second by way of memory of its own. No batches, nothing fused.
static bool gni_job_matmul_halves(gni_gpu *gpu, const gni_matmul *m, int64_t row) {
    gni_matmul part = *m;
    gni_buffer buffer;
    gni_map job;
    const uint64_t bytes = (uint64_t)(m->m * m->n) * gn_dtype_size(m->c.dtype);
    const int64_t half = gni_job_half(m->k);
    memset(&job, 0, sizeof job);
    memset(&buffer, 0, sizeof buffer);
    part.k = half;
    part.act = 0;
    if (!gni_job_matmul(gpu, &part, row)) return false;
    if (!gni_gpu_need(gpu, bytes, &buffer.device, "gn_matmul")) return false;
    part.k = m->k - half;
    part.a.offset += half * m->a_cs;
    part.b.offset += half * m->b_rs;
    part.bias.buf = NULL;
    part.c.buf = &buffer;
    part.c.offset = 0;
    job.program.n_in = 2;
    job.program.n_out = 1;
    job.program.n_insn = m->act == 1 ? 2 : 1;
    job.program.in_dtype[0] = job.program.in_dtype[1] = job.program.out_dtype[0] = m->c.dtype;
    job.program.insn[0] = GNI_INSN(GNI_OP_ADD, GNI_F, 0, 1, 0);
    job.program.insn[1] = GNI_INSN(GNI_OP_RELU, GNI_F, 2, 0, 0);
    job.program.out_reg[0] = 1 + job.program.n_insn;
    job.rank = 2;
    job.dim[0] = m->m;
    job.dim[1] = m->n;
    job.in[0] = job.out[0] = m->c;
    job.in[1] = part.c;
    job.in[0].stride[0] = job.out[0].stride[0] = row;
    job.in[1].stride[0] = m->n;
    job.in[0].stride[1] = job.in[1].stride[1] = job.out[0].stride[1] = 1;
    gni_map_merge(&job);
    bool ok = gni_job_matmul(gpu, &part, m->n) && gni_job_map(gpu, &job);
    gni_gpu_free(gpu, &buffer.device);
    return ok;
}

// In two parts, along batches, rows or columns. `row` is the distance of rows in c.
static bool gni_job_matmul_parts(gni_gpu *gpu, const gni_matmul *m, int64_t row) {
    gni_matmul part = *m;
    int64_t half;
    part.in_parts = false; // what is largest lies behind all of an operand
    for (int d = 0; d < m->batch_rank; d++) {
        if (m->batch_dim[d] < 2) continue;
        int64_t inner = m->m * row;
        for (int i = d + 1; i < m->batch_rank; i++) inner *= m->batch_dim[i];
        half = m->batch_dim[d] / 2;
        part.batch_dim[d] = half;
        if (!gni_job_matmul(gpu, &part, row)) return false;
        part.batch_dim[d] = m->batch_dim[d] - half;
        part.a.offset += half * m->a_batch[d];
        part.b.offset += half * m->b_batch[d];
        part.c.offset += half * inner;
        return gni_job_matmul(gpu, &part, row);
    }
    if (gni_job_is_far(gpu, m)) return gni_job_matmul_halves(gpu, m, row);
    if (m->m >= m->n && m->m > 1) {
        half = gni_job_half(m->m);
        part.m = half;
        if (!gni_job_matmul(gpu, &part, row)) return false;
        part.m = m->m - half;
        part.a.offset += half * m->a_rs;
        part.c.offset += half * row;
        return gni_job_matmul(gpu, &part, row);
    }
    if (m->n < 2) return false;
    half = gni_job_half(m->n);
    part.n = half;
    if (!gni_job_matmul(gpu, &part, row)) return false;
    part.n = m->n - half;
    part.b.offset += half * m->b_cs;
    part.bias.offset += half;
    part.c.offset += half;
    return gni_job_matmul(gpu, &part, row);
}

// ---- GN_PRECISION_FAST

// The elements that an operand reaches, as they lie in memory: the first one's number, and how many.
static int64_t gni_job_span(const gni_matmul *m, const gni_operand *o, int64_t rows, int64_t rs,
                            int64_t columns, int64_t cs, const int64_t *batch, int64_t *low) {
    int64_t high = o->offset, dim[GN_MAX_RANK + 2], stride[GN_MAX_RANK + 2];
    *low = o->offset;
    memcpy(dim, m->batch_dim, sizeof m->batch_dim);
    memcpy(stride, batch, sizeof m->a_batch);
    dim[m->batch_rank] = rows;
    stride[m->batch_rank] = rs;
    dim[m->batch_rank + 1] = columns;
    stride[m->batch_rank + 1] = cs;
    for (int i = 0; i < m->batch_rank + 2; i++) {
        int64_t step = (dim[i] - 1) * stride[i];
        if (step < 0)
            *low += step;
        else
            high += step;
    }
    return high - *low + 1;
}

// Lines of neighbours, to the dtype that `to` has.
static bool gni_job_copy_lines(gni_gpu *gpu, const gni_operand *from, int64_t from_step, const gni_operand *to,
                               int64_t to_step, int64_t lines, int64_t length) {
    GNI_ZEROED(gni_map, job);
    job.program.n_in = job.program.n_out = 1;
    job.program.in_dtype[0] = from->dtype;
    job.program.out_dtype[0] = to->dtype;
    job.rank = 2;
    job.dim[0] = lines;
    job.dim[1] = length;
    job.in[0] = *from;
    job.in[0].stride[0] = from_step;
    job.out[0] = *to;
    job.out[0].stride[0] = to_step;
    job.in[0].stride[1] = job.out[0].stride[1] = 1;
    gni_map_merge(&job);
    return gni_job_map(gpu, &job);
}

// A bfloat16 copy of everything between an operand's first and last element, so that strides stay what they are.
// `buffer` is freed with gni_gpu_free(gpu, &buffer->device).
static bool gni_job_narrowed(gni_gpu *gpu, gni_operand *o, int64_t low, int64_t count,
                             gni_buffer *buffer) {
    gni_operand from = *o, to;
    memset(buffer, 0, sizeof *buffer);
    if (!gni_gpu_alloc(gpu, (uint64_t)count * 2, &buffer->device)) return false;
    from.offset = low;
    o->buf = buffer;
    o->dtype = GN_BF16;
    o->offset -= low;
    to = *o;
    to.offset = 0;
    if (gni_job_copy_lines(gpu, &from, 0, &to, 0, 1, count)) return true;
    gni_gpu_free(gpu, &buffer->device);
    return false;
}

// Whether float32 operands are worth rounding first: enough work for each element, few elements between those
// that are used.
static bool gni_job_wants_fast(const gni_gpu *gpu, const gni_matmul *m, const int64_t *spans) {
    if (gpu->g->precision != GN_PRECISION_FAST || m->a.dtype != GN_F32 || m->b.dtype != GN_F32)
        return false;
    if (!gni_job_has_units(gpu, GN_BF16) || m->m < 64 || m->n < 64 || m->k < 64) return false;
    int64_t batches = 1;
    for (int i = 0; i < m->batch_rank; i++) batches *= m->batch_dim[i];
    return spans[0] / 2 <= batches * m->m * m->k && spans[1] / 2 <= batches * m->k * m->n;
}

// False when the exact kernel has to do it; `ok` says how it went otherwise.
static bool gni_job_matmul_fast(gni_gpu *gpu, const gni_matmul *m, int64_t row, bool *ok) {
    int64_t low[2], span[2];
    gni_buffer buffer[2];
    span[0] = gni_job_span(m, &m->a, m->m, m->a_rs, m->k, m->a_cs, m->a_batch, &low[0]);
    span[1] = gni_job_span(m, &m->b, m->k, m->b_rs, m->n, m->b_cs, m->b_batch, &low[1]);
    if (!gni_job_wants_fast(gpu, m, span)) return false;
    gni_matmul fast = *m;
    if (!gni_job_narrowed(gpu, &fast.a, low[0], span[0], &buffer[0])) return false;
    if (!gni_job_narrowed(gpu, &fast.b, low[1], span[1], &buffer[1])) {
        gni_gpu_free(gpu, &buffer[0].device);
        return false;
    }
    *ok = gni_job_matmul(gpu, &fast, row);
    gni_gpu_free(gpu, &buffer[0].device);
    gni_gpu_free(gpu, &buffer[1].device);
    return true;
}

// ---- lines that do not begin at 16 bytes

enum { GNI_JOB_EVEN_LEAST = 512 }; // multiply-adds for each element from which a pass over it pays

static int64_t gni_job_even_pitch(int64_t length) { return 8 * gni_job_ceil(length, 8); }

static bool gni_job_even_room(gni_gpu *gpu, int64_t lines, int64_t length, gni_buffer *buffer) {
    memset(buffer, 0, sizeof *buffer);
    return gni_gpu_alloc(gpu, (uint64_t)(lines * gni_job_even_pitch(length)) * 2, &buffer->device);
}

// Whether the lines of an operand, rows x k, are worth moving. `often`: its elements are multiplied often enough.
static bool gni_job_wants_even(const gni_operand *o, int64_t rows, int64_t rs, int64_t k, int64_t cs, bool often,
                               gni_lines *l) {
    const uint32_t layout = gni_job_operand_layout(rows, rs, k, cs, (uint32_t)(o->offset % 8), true, 8);
    const bool along = (layout & GNI_JOB_ALONG_M) != 0;
    l->lines = along ? k : rows;
    l->length = along ? rows : k;
    l->step = along ? cs : rs;
    return often && (layout & GNI_JOB_NEIGHBOURS) && !(layout & GNI_JOB_GROUPS) && l->step >= l->length &&
           l->length > 8;
}

// Whether moved lines may stay with their array, for the next product of it: nobody else writes the array.
static bool gni_job_may_keep(const gni_gpu *gpu, const gni_buffer *b) {
    return b->refs > 0 && !b->exported && !b->host_borrowed && !b->device_borrowed && !gpu->g->host_recording;
}

// What was kept of these lines, or NULL.
static gni_even *gni_job_kept_even(const gni_gpu *gpu, const gni_operand *o, const gni_lines *l) {
    gni_even *e = gni_job_may_keep(gpu, o->buf) ? o->buf->even : NULL;
    const bool same = e != NULL && e->version == o->buf->version && e->offset == o->offset &&
                      memcmp(&e->lines, l, sizeof *l) == 0;
    return same ? e : NULL;
}

// Takes over the memory of moved lines, or leaves it and gives NULL.
static gni_even *gni_job_keep_even(gni_gpu *gpu, const gni_operand *o, const gni_lines *l, gni_buffer *moved) {
    const bool keeps = gni_job_may_keep(gpu, o->buf) && gni_gpu_roomy(gpu);
    gni_even *e = keeps ? (gni_even *)gni_calloc(gpu->g, sizeof(gni_even)) : NULL;
    if (e == NULL) return NULL;
    gni_even_drop(gpu->g, o->buf);
    e->buffer = *moved;
    e->version = o->buf->version;
    e->offset = o->offset;
    e->lines = *l;
    memset(moved, 0, sizeof *moved);
    o->buf->even = e;
    return e;
}

// Between lines go the first elements of the next one, so that what is written is one run. `buffer` is freed by the caller.
static bool gni_job_evened(gni_gpu *gpu, gni_operand *o, const gni_lines *l, int64_t *rs, int64_t *cs,
                           gni_buffer *buffer) {
    const int64_t pitch = gni_job_even_pitch(l->length), last = l->lines - 1;
    const bool along = l->step == *cs && *rs == 1;
    gni_even *kept = gni_job_kept_even(gpu, o, l);
    gni_operand to = *o, from = *o, end;
    if (kept == NULL) {
        if (!gni_job_even_room(gpu, l->lines, l->length, buffer)) return false;
        to.buf = buffer;
        to.offset = 0;
        end = to;
        from.offset += last * l->step;
        end.offset += last * pitch;
        if ((last > 0 && !gni_job_copy_lines(gpu, o, l->step, &to, pitch, last, pitch)) ||
            !gni_job_copy_lines(gpu, &from, l->step, &end, pitch, 1, l->length))
            return false;
        kept = gni_job_keep_even(gpu, o, l, buffer);
    }
    o->buf = kept != NULL ? &kept->buffer : buffer;
    o->offset = 0;
    *rs = along ? 1 : pitch;
    *cs = along ? pitch : 1;
    return true;
}

// Copies of 2 passes over memory, where matrix units would wait longer for loads and stores of single elements: false where
// the product is done as it is; `ok` says how it went otherwise.
static bool gni_job_matmul_even(gni_gpu *gpu, const gni_matmul *m, int64_t row, bool *ok) {
    const gni_gpu_jobs *ops = gni_job_state(gpu);
    const bool force = ops != NULL && ops->even_force;
    const int64_t least = force ? 2 : 128, often = force ? 1 : GNI_JOB_EVEN_LEAST;
    gni_matmul x = *m;
    gni_buffer buffer[3];
    gni_lines lines[2];
    bool even[3];
    if (!gni_job_is_half(m->a.dtype) || m->a.dtype != m->b.dtype || m->prologue != 0) return false;
    if (gni_extent_product(m->batch_dim, m->batch_rank) != 1 || (!force && !gni_job_has_units(gpu, m->a.dtype)))
        return false;
    if (GNI_MIN(GNI_MIN(m->m, m->n), m->k) < least) return false;
    memset(buffer, 0, sizeof buffer);
    even[0] = gni_job_wants_even(&m->a, m->m, m->a_rs, m->k, m->a_cs, m->n >= often, &lines[0]);
    even[1] = gni_job_wants_even(&m->b, m->n, m->b_cs, m->k, m->b_rs, m->m >= often, &lines[1]);
    even[2] = gni_job_is_half(m->c.dtype) && row == m->n && row % 8 != 0 && m->k >= often && !m->fused;
    if (!even[0] && !even[1] && !even[2]) return false;
    const int64_t pitch = even[2] ? gni_job_even_pitch(row) : row;
    *ok = (!even[0] || gni_job_evened(gpu, &x.a, &lines[0], &x.a_rs, &x.a_cs, &buffer[0])) &&
          (!even[1] || gni_job_evened(gpu, &x.b, &lines[1], &x.b_cs, &x.b_rs, &buffer[1])) &&
          (!even[2] || gni_job_even_room(gpu, m->m, row, &buffer[2]));
    const bool room = *ok;
    if (room && even[2]) {
        x.c.buf = &buffer[2];
        x.c.offset = 0;
    }
    *ok =
        room && gni_job_matmul(gpu, &x, pitch) && (!even[2] || gni_job_copy_lines(gpu, &x.c, pitch, &m->c, row, m->m, row));
    for (int i = 0; i < 3; i++) gni_gpu_free(gpu, &buffer[i].device);
    return room || gpu->g->call_failed;
}

// ---- k = 1

// A product of columns and rows is all writing, which elementwise kernels do best.
static bool gni_job_is_outer(const gni_matmul *m) {
    return m->k == 1 && m->a.dtype == GN_F32 && m->b.dtype == GN_F32 && m->c.dtype == GN_F32 &&
           m->bias.buf == NULL && m->act == 0 && !m->fused && m->batch_rank + 2 <= GN_MAX_RANK;
}

static bool gni_job_matmul_outer(gni_gpu *gpu, const gni_matmul *m, int64_t row) {
    gni_map job;
    int rank = m->batch_rank + 2;
    int64_t step = m->m * row;
    memset(&job, 0, sizeof job);
    job.program.n_in = 2;
    job.program.n_out = job.program.n_insn = 1;
    job.program.in_dtype[0] = job.program.in_dtype[1] = job.program.out_dtype[0] = GN_F32;
    job.program.insn[0] = GNI_INSN(GNI_OP_MUL, GNI_F, 0, 1, 0);
    job.program.out_reg[0] = 2;
    job.rank = rank;
    job.in[0] = m->a;
    job.in[1] = m->b;
    job.out[0] = m->c;
    for (int i = rank - 3; i >= 0; step *= m->batch_dim[i--]) {
        job.dim[i] = m->batch_dim[i];
        job.in[0].stride[i] = m->a_batch[i];
        job.in[1].stride[i] = m->b_batch[i];
        job.out[0].stride[i] = step;
    }
    job.dim[rank - 2] = m->m;
    job.dim[rank - 1] = m->n;
    job.in[0].stride[rank - 2] = m->a_rs;
    job.in[1].stride[rank - 1] = m->b_cs;
    job.in[0].stride[rank - 1] = job.in[1].stride[rank - 2] = 0;
    job.out[0].stride[rank - 2] = row;
    job.out[0].stride[rank - 1] = 1;
    gni_map_merge(&job);
    return gni_job_map(gpu, &job);
}

// ---- batches of small ones

enum {
    GNI_JOB_SMALL_BATCHES = 64, // at least
    GNI_JOB_SMALL_AREA = 1024,  // elements of c at most, of float32 and of others
    GNI_JOB_SMALL_OTHERS = 256,
    GNI_JOB_SMALL_DEPTH = 64, // k at most, and of vectors, which have a kernel of their own
    GNI_JOB_SMALL_VECTOR = 16
};

static int64_t gni_job_squares(const gni_matmul *m) {
    const int64_t each = m->c.dtype == GN_F64 ? 2 : 4;
    return gni_job_ceil(m->m, each) * gni_job_ceil(m->n, each);
}

// Whether tiles of workgroups would be mostly empty: an invocation makes a square of c by itself (products.comp).
static bool gni_job_is_small(const gni_gpu *gpu, const gni_matmul *m, int64_t batches) {
    const bool wide = m->c.dtype == GN_F64, narrow = m->c.dtype == GN_F32 && !gni_job_is_half(m->a.dtype);
    const bool vector = !wide && (m->m == 1 || m->n == 1);
    if (!gpu->caps.addresses || !(wide || m->c.dtype == GN_F32 || gni_job_is_half(m->c.dtype))) return false;
    if (m->prologue != 0 || m->sums.buf != NULL || m->in_parts || batches < GNI_JOB_SMALL_BATCHES || m->k < 1) return false;
    return m->k <= (vector ? GNI_JOB_SMALL_VECTOR : GNI_JOB_SMALL_DEPTH) &&
           m->m * m->n <= (narrow ? GNI_JOB_SMALL_AREA : GNI_JOB_SMALL_OTHERS) &&
           batches * gni_job_squares(m) < INT32_MAX / 2;
}

static bool gni_job_matmul_small(gni_job_call *c, const gni_matmul *m, int64_t batches, int64_t row) {
    const bool wide = m->c.dtype == GN_F64;
    const int64_t group = wide ? 2 : 4;
    const uint32_t *p = c->param, a = gni_job_operand_layout(m->m, m->a_rs, m->k, m->a_cs, p[GNI_P_MATMUL_A_BASE],
                                                             gni_job_batch_even(m, m->a_batch, group), group),
                   b = gni_job_operand_layout(m->n, m->b_cs, m->k, m->b_rs, p[GNI_P_MATMUL_B_BASE],
                                              gni_job_batch_even(m, m->b_batch, group), group);
    c->generic.module = wide ? GNI_MODULE_products64 : GNI_MODULE_products;
    c->generic.n_spec = GNI_S_MATMUL_SPECS;
    gni_job_put_dtypes(c, m);
    const bool whole = m->m % group == 0 && m->n % group == 0 && m->k % group == 0;
    c->generic.spec[GNI_S_MATMUL_LAYOUT] =
        gni_job_layout_flags(a, b) | gni_job_store_layout(c, m, row) | gni_job_flag(whole, GNI_F_MATMUL_WHOLE);
    c->param[GNI_P_MATMUL_C_ROW] = (uint32_t)row;
    if (m->fused && !gni_job_put_store(c, m, false)) return gni_job_matmul_apart(c->gpu, m);
    gni_gpu_pipeline *pipeline = gni_job_matmul_pipeline(c, m);
    if (pipeline == NULL) return m->fused && !c->gpu->g->call_failed && gni_job_matmul_apart(c->gpu, m);
    if (m->fused) c->n_use = GNI_JOB_STORE_USES;
    return gni_job_dispatch(c, pipeline, gni_job_ceil(batches * gni_job_squares(m), 256), 1, 1);
}

// ---- the sums of b's columns

// By a pass of its own over b.
static bool gni_job_sums_run(gni_gpu *gpu, const gni_matmul *m) {
    GNI_ZEROED(gni_reduce, r);
    r.program.n_in = r.program.n_out = 1;
    r.program.in_dtype[0] = r.program.out_dtype[0] = m->b.dtype;
    r.op = GNI_RED_SUM;
    r.rank = 2;
    r.kept = 1;
    r.dim[0] = m->n;
    r.dim[1] = m->k;
    r.in[0] = m->b;
    r.in[0].stride[0] = m->b_cs;
    r.in[0].stride[1] = m->b_rs;
    r.out = m->sums;
    return gni_job_reduce(gpu, &r);
}

// Where the kernel of the product has no part that makes them.
static bool gni_job_matmul_sums(gni_gpu *gpu, const gni_matmul *m) {
    gni_matmul plain = *m;
    plain.sums.buf = NULL;
    return gni_job_matmul(gpu, &plain, m->n) && gni_job_sums_run(gpu, m);
}

// Whether the product goes to kernels that cannot make them, or that round b first (GN_PRECISION_FAST).
static bool gni_job_sums_apart(const gni_gpu *gpu, const gni_matmul *m) {
    bool rounds = gpu->g->precision == GN_PRECISION_FAST && m->b.dtype == GN_F32;
    return !gpu->caps.addresses || rounds || m->m == 1 || m->n == 1 || gni_job_is_outer(m);
}

// ---- an operand that is made while it is read

// As a sum of products, with the vector as one more input: reductions run any program on the way.
static void gni_job_prologue_reduction(const gni_matmul *m, gni_reduce *r) {
    const gni_program *p = &m->load;
    const gni_operand *v = m->prologue == 1 ? &m->b : &m->a;
    const int64_t *v_batch = m->prologue == 1 ? m->b_batch : m->a_batch;
    gni_operand *ops[GNI_MAX_INPUTS];
    int n = p->n_in, last = m->batch_rank + 1;
    bool down = m->prologue == 2;
    memset(r, 0, sizeof *r);
    r->program = *p;
    r->program.n_in = n + 1;
    r->program.in_dtype[n] = GN_F32;
    // Registers after the inputs make room for the vector.
    for (int i = 0; i < p->n_insn; i++) {
        uint32_t w = p->insn[i], a = GNI_INSN_A(w), b = GNI_INSN_B(w), c = GNI_INSN_C(w);
        r->program.insn[i] = GNI_INSN_CODE(w) | (a + (a >= (uint32_t)n)) << 11 |
                             (b + (b >= (uint32_t)n)) << 18 | (c + (c >= (uint32_t)n)) << 25;
    }
    int made = p->out_reg[0] + (p->out_reg[0] >= n);
    r->program.insn[p->n_insn] = GNI_INSN(GNI_OP_MUL, GNI_F, (uint32_t)made, (uint32_t)n, 0);
    r->program.n_insn = p->n_insn + 1;
    r->program.out_reg[0] = n + 1 + p->n_const + p->n_insn;
    r->op = GNI_RED_SUM;
    r->domain = GNI_F;
    r->rank = m->batch_rank + 2;
    r->kept = m->batch_rank + 1;
    for (int i = 0; i < m->batch_rank; i++) r->dim[i] = m->batch_dim[i];
    r->dim[last - 1] = down ? m->n : m->m;
    r->dim[last] = m->k;
    for (int k = 0; k <= n; k++) {
        const gni_operand *from = k < n ? &m->load_in[k] : v;
        gni_operand *to = ops[k] = &r->in[k];
        *to = *from;
        memset(to->stride, 0, sizeof to->stride);
        for (int i = 0; i < m->batch_rank; i++)
            to->stride[i] = k < n ? from->stride[i] : v_batch[i];
        to->stride[last - 1] = k < n ? from->stride[down ? GNI_ALONG_N : GNI_ALONG_M] : 0;
        to->stride[last] = k < n  ? from->stride[down ? GNI_ALONG_M : GNI_ALONG_N]
                           : down ? m->a_cs
                                  : m->b_rs;
    }
    r->out = m->c;
    r->compiled = true; // interpreted, it would be slower than two passes
    r->kept = gni_merge_dims(&r->rank, r->dim, ops, n + 1, r->kept);
}

// By a pass of its own. `tiled`: the sums come from the tiles that would have made the operand.
static bool gni_job_prologue_apart(gni_gpu *gpu, const gni_matmul *m, bool tiled) {
    gni_buffer buffer;
    gni_map job;
    gni_matmul plain;
    memset(&buffer, 0, sizeof buffer);
    const uint64_t bytes = (uint64_t)gni_prologue_apart(m, &plain, &job, &buffer) * sizeof(float);
    if (!gni_gpu_need(gpu, bytes, &buffer.device, "gn_matmul")) return false;
    plain.as_prologue = tiled;
    bool ok = gni_job_map(gpu, &job) && gni_job_matmul(gpu, &plain, m->n);
    gni_gpu_free(gpu, &buffer.device);
    return ok;
}

// The input that says how the operand is best read: one with all of its elements, neighbours if that can be.
static const gni_operand *gni_job_prologue_main(const gni_matmul *m) {
    const gni_operand *best = &m->load_in[0];
    int most = -1;
    for (int k = 0; k < m->load.n_in; k++) {
        const gni_operand *o = &m->load_in[k];
        int64_t down = o->stride[GNI_ALONG_M], across = o->stride[GNI_ALONG_N];
        int worth = 2 * (down != 0 && across != 0) + (down == 1 || across == 1);
        if (worth <= most) continue;
        most = worth;
        best = o;
    }
    return best;
}

// Whether the product takes less than one of an operand that is there and a pass before it: on an H200 that takes
// 3 us and a microsecond for 3 MB that it reads or writes.
static bool gni_job_prologue_pays(const gni_gpu *gpu, const gni_matmul *m, int64_t batches) {
    gni_matmul plain = *m;
    int64_t splits, apart;
    plain.prologue = 0;
    if (gni_job_is_small(gpu, &plain, batches)) return false;
    // A CPU compiles on the cores that it computes with.
    if (gpu->caps.kind == GNI_GPU_CPU)
        return (gpu->g->options.vulkan_flags & GN_VULKAN_NO_ASYNC_PIPELINES) != 0;
    // These may round operands first, or take them apart.
    if (gpu->g->precision != GN_PRECISION_F32 && m->m >= 64 && m->n >= 64 && m->k >= 64)
        return false;
    const gni_job_tile *t = gni_job_pick_tile(gpu, m, batches, &splits);
    const gni_job_tile *u = gni_job_pick_tile(gpu, &plain, batches, &apart);
    double elements = (double)batches * (double)m->k * (double)(m->prologue == 1 ? m->m : m->n);
    // What caches do not hold is read from memory by each row or column of tiles.
    if ((m->prologue == 1 ? m->n > t->bn : m->m > t->bm) && elements > 8e6) return false;
    return gni_job_tile_time(gpu, t, m, batches, splits) * 1.05 <
           gni_job_tile_time(gpu, u, m, batches, apart) + 3.0 + elements * 8.0 / 3e6;
}

// Whether kernels of tiles can make the operand at all.
static bool gni_job_prologue_has(const gni_gpu *gpu, const gni_matmul *m) {
    if (!gpu->caps.addresses || (gpu->g->options.vulkan_flags & GN_VULKAN_NO_SPECIALIZATION))
        return false;
    return m->load.n_in > 0 && gni_job_words_have(m, &m->load, m->load_in, 0) && !gni_job_is_far(gpu, m);
}

// By a kernel of tiles that reads the operand once or a few times. False where none does; `ok` says how it went
// otherwise.
static bool gni_job_prologue_tiled(gni_gpu *gpu, const gni_matmul *job, bool *ok) {
    gni_job_call c;
    gni_gpu_use use[4];
    uint32_t base[4] = {0, 0, 0, 0};
    gni_matmul m = *job;
    int64_t batches = 1, c_batch[GN_MAX_RANK], step = m.m * m.n, one = 1;
    const gni_operand *o = gni_job_prologue_main(job);
    const bool first = m.prologue == 1;
    if (!gni_job_prologue_has(gpu, job)) return false;
    for (int i = m.batch_rank - 1; i >= 0; i--) {
        c_batch[i] = step;
        step *= m.batch_dim[i];
        batches *= m.batch_dim[i];
    }
    *(first ? &m.a : &m.b) = *o;
    (first ? &m.a : &m.b)->dtype = GN_F32;
    *(first ? &m.a_rs : &m.b_rs) = o->stride[GNI_ALONG_M];
    *(first ? &m.a_cs : &m.b_cs) = o->stride[GNI_ALONG_N];
    memcpy(first ? m.a_batch : m.b_batch, o->stride, sizeof m.a_batch);
    const gni_operand *a = first ? o : &m.a, *b = first ? &m.b : o;
    bool fits =
        batches <= (int64_t)gpu->caps.max_groups[2] && m.m < INT32_MAX / 2 && m.n < INT32_MAX / 2 &&
        gni_job_ceil(m.m, 8) * gni_job_ceil(m.n, 8) <= (int64_t)gpu->caps.max_groups[0] &&
        gni_job_matrix_reach(gpu, &m, a, m.m, m.a_rs, m.k, m.a_cs, m.a_batch, &use[0], &base[0]) &&
        gni_job_matrix_reach(gpu, &m, b, m.k, m.b_rs, m.n, m.b_cs, m.b_batch, &use[1], &base[1]) &&
        gni_job_matrix_reach(gpu, &m, &m.c, m.m, m.n, m.n, 1, c_batch, &use[2], &base[2]);
    if (!fits || !gni_job_prologue_pays(gpu, &m, batches)) return false;
    use[2].write = true;
    use[3] = use[1];
    *ok = m.bias.buf == NULL || gni_job_reach(gpu, &m.bias, &m.n, &one, 1, &use[3], &base[3]);
    if (!*ok) return true;
    gni_job_open(&c, gpu);
    gni_job_matrix_params(&c, &m, batches, use, base);
    c.use[6] = c.use[7] = use[1];
    *ok = gni_job_matmul_tiled(&c, &m, batches, m.n);
    return true;
}

// The two round differently, so that which kernels are compiled already must not choose between them.
static bool gni_job_matmul_prologue(gni_gpu *gpu, const gni_matmul *m) {
    gni_reduce r;
    bool ok = true;
    const int64_t width = m->prologue == 1 ? m->n : m->m;
    if (width > 1) {
        int64_t batches = gni_extent_product(m->batch_dim, m->batch_rank);
        // An outer product or one with a vector is better off with what is there.
        if (m->k == 1 || m->m == 1 || m->n == 1) return gni_job_prologue_apart(gpu, m, false);
        // One of two programs is a pass of its own, over the smaller array.
        if (m->fused && 2 * width <= m->k && gni_job_prologue_has(gpu, m) &&
            gni_job_prologue_pays(gpu, m, batches))
            return gni_job_matmul_apart(gpu, m);
        if (!m->fused && gni_job_prologue_tiled(gpu, m, &ok)) return ok;
        return gni_job_prologue_apart(gpu, m, false);
    }
    gni_job_prologue_reduction(m, &r);
    return gni_job_reduce_ok(gpu, &r) ? gni_job_reduce(gpu, &r)
                                      : gni_job_prologue_apart(gpu, m, false);
}

// ---- the job

static bool gni_job_matmul(gni_gpu *gpu, const gni_matmul *m, int64_t row) {
    gni_job_call c;
    gni_gpu_use use[4];
    uint32_t base[4] = {0, 0, 0, 0};
    int64_t batches = 1, c_batch[GN_MAX_RANK], step = m->m * row, one = 1;
    for (int i = m->batch_rank - 1; i >= 0; i--) {
        c_batch[i] = step;
        step *= m->batch_dim[i];
        batches *= m->batch_dim[i];
    }
    if (m->m == 0 || m->n == 0 || batches == 0) return true;
    if (m->prologue != 0) return gni_job_matmul_prologue(gpu, m);
    if (GNI_WEBGPU && gni_job_matmul_is_sums(gpu, m)) {
        gni_reduce sums;
        gni_job_matmul_as_sums(m, &sums);
        if (m->c.dtype != GN_F32 || gni_job_reduce_ok(gpu, &sums)) return gni_job_reduce(gpu, &sums);
    }
    bool done = true, tiled = m->as_prologue;
    if (m->sums.buf != NULL && gni_job_sums_apart(gpu, m)) return gni_job_matmul_sums(gpu, m);
    if (!tiled && gni_job_is_outer(m)) return gni_job_matmul_outer(gpu, m, row);
    if (!tiled && m->k > 0 && gni_job_matmul_fast(gpu, m, row, &done)) return done;
    if (!tiled && gni_job_matmul_even(gpu, m, row, &done)) return done;
    if (m->fused && !gni_job_store_pays(gpu, m)) return gni_job_matmul_apart(gpu, m);
    bool real = m->c.dtype == GN_F32 || gni_job_is_half(m->c.dtype);
    const bool squares = !tiled && gni_job_is_small(gpu, m, batches);
    bool flip = real && m->m == 1 && !tiled && !squares;
    gni_matmul x = flip ? gni_job_flipped(m) : *m;
    bool fits =
        batches <= (squares || (x.n == 1 && real) ? INT32_MAX - 1 : (int64_t)gpu->caps.max_groups[2]) &&
        m->m < INT32_MAX / 2 && m->n < INT32_MAX / 2 &&
        gni_job_ceil(m->m, 32) * gni_job_ceil(m->n, 32) <= (int64_t)gpu->caps.max_groups[0] &&
        gni_job_matrix_reach(gpu, m, &x.a, x.m, x.a_rs, x.k, x.a_cs, x.a_batch, &use[0],
                             &base[0]) &&
        gni_job_matrix_reach(gpu, m, &x.b, x.k, x.b_rs, x.n, x.b_cs, x.b_batch, &use[1],
                             &base[1]) &&
        gni_job_matrix_reach(gpu, m, &m->c, m->m, row, m->n, 1, c_batch, &use[2], &base[2]);
    if (!fits && m->sums.buf != NULL) return gni_job_matmul_sums(gpu, m);
    if (!fits) return m->fused ? gni_job_matmul_apart(gpu, m) : gni_job_matmul_parts(gpu, m, row);
    use[2].write = true;
    use[3] = use[1];
    if (m->bias.buf != NULL && !gni_job_reach(gpu, &m->bias, &m->n, &one, 1, &use[3], &base[3]))
        return false;
    gni_job_open(&c, gpu);
    gni_job_matrix_params(&c, &x, batches, use, base);
    if (squares) return gni_job_matmul_small(&c, &x, batches, row);
    if (real && x.n == 1 && !tiled) return gni_job_matvec(&c, m, &x, batches, row, flip);
    if (!tiled && !m->in_parts && gni_job_matmul_split(&c, &x, batches, row, &done)) return done;
    return gni_job_matmul_tiled(&c, &x, batches, row);
}

#endif // GNI_GPU
