// >>gpu_jobs
// Jobs on the GPU: which kernel of tools/shaders does one, in how many pieces, with which
// specialisation constants and parameters. Room `gpu_backend` calls them.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../vulkan/vulkan_pipelines.h"
#include "../gpu/gpu_words.h"
#endif

#if GNI_GPU

enum {
    GNI_JOB_THREADS = 256,     // of a workgroup
    GNI_JOB_HITS = 1024,       // programs remembered,
    GNI_JOB_HIT_SET = 4,       // in sets of so many
    GNI_JOB_LOG_CHOICES = 6,   // log2 of the choices remembered
    GNI_JOB_FEW = 4,           // pipelines of a program that is over soon
    GNI_JOB_FEW_SLOW = 24,     // the same where the kernels that interpret take as long as these to compile
    GNI_JOB_SEEN = 1,          // times that a program has come before it is compiled,
    GNI_JOB_SEEN_SLOW = 3,     // and on a CPU, which takes far longer to compile it; at most 3
    GNI_JOB_COUNTERS = 1 << 14, // words
    GNI_JOB_FAULTS = 32,
    GNI_JOB_FAULT_BYTES = 256 // of each flag, so that jobs do not wait for each other
};

typedef uint32_t gni_operand_kind; // GNI_K_

// Kernels know dtypes by these numbers.
typedef char gni_job_dtypes_agree[GN_F32 == GNI_T_F32 && GN_F16 == GNI_T_F16 && GN_BF16 == GNI_T_BF16 &&
                                  GN_F64 == GNI_T_F64 && GN_I32 == GNI_T_I32 && GN_I64 == GNI_T_I64 &&
                                  GN_U8 == GNI_T_U8 && GN_I8 == GNI_T_I8 && GN_U32 == GNI_T_U32 &&
                                  GN_BOOL == GNI_T_BOOL && GN_C64 == GNI_T_C64 &&
                                  GN_I16 == GNI_T_I16 && GN_U16 == GNI_T_U16 && GN_U64 == GNI_T_U64
                                      ? 1
                                      : -1];

// A choice of room gpu_tiles.
typedef struct gni_job_choice {
    int64_t m, n, k, batches, splits;
    const struct gni_job_tile *among, *tile;
} gni_job_choice;

// An elementwise dispatch that waits for others like it.
enum { GNI_JOB_WAITING = 32 };
typedef struct gni_job_waiting {
    gni_gpu_pipeline *pipeline;
    int64_t blocks;
    gni_gpu_use use[GNI_MAX_INPUTS + GNI_MAX_OUTPUTS];
    int n_use;
    uint32_t n_param, param[GNI_P_PROGRAM_WORDS];
} gni_job_waiting;

// What this room remembers of a device. Zeroed memory is its first state; nothing in it needs freeing
// but itself.
typedef struct gni_gpu_jobs {
    uint64_t seen[GNI_JOB_HITS]; // hashes of specialised kernels that were asked for
    gni_gpu_mem counters;        // zeros; kernels leave zeros behind
    bool has_counters;
    uint32_t next_counter;
    gni_gpu_mem faults; // a flag for each of the last jobs that look at indices, which are not known to be good
    bool has_faults, watch;
    int next_fault;
    struct {
        const char *fn;
        int axis;
        int64_t extent;
    } fault[GNI_JOB_FAULTS];
    gni_gpu_mem scan_posts; // of scans in one pass, and the number that theirs have
    uint64_t scan_bytes;
    uint32_t scan_epoch;
    bool scan_stall; // tests: some tiles do not say what they come to
    uint32_t top_rank; // tests: in the place of the rank, unless it is 0
    // Of room `gpu_attention`, for float16 and bfloat16: flags, GNI_F_ATTEND_ASKS among them where the device was asked.
    uint8_t attend_same[2];
    gni_job_choice choices[1 << GNI_JOB_LOG_CHOICES];
    gni_job_waiting waiting[GNI_JOB_WAITING];
    int n_waiting;
    bool gathers;
    bool even_force; // tests: lines of 16 bits that do not begin at 16 bytes are moved, whatever it takes
    bool floats_force; // tests: products of tiles are taken apart wherever they can be
    int winograd_force; // tests: 1 asks for it wherever it can work, 2 image by image, -1 never
    int split_force; // tests: 1 to 3 asks for that mode of room `gpu_split` and above wherever it can work, -1 never
} gni_gpu_jobs;

// A dispatch being put together.
typedef struct gni_job_call {
    gni_gpu *gpu;
    gni_gpu_use use[GNI_GPU_MAX_USES];
    int n_use;
    uint32_t param[GNI_P_PROGRAM_WORDS];
    uint32_t n_param;
    gni_gpu_kernel special, generic;
    gni_gpu_mem scratch[2];
    int n_scratch;
    gni_gpu_use spare; // of gni_job_matmul_tiled: see room `gpu_split`
    const gni_conv *windows; // of gni_job_matmul_tiled: how b's rows and columns are counted
    bool waits;        // for `special` to be compiled
} gni_job_call;

static void gni_job_open(gni_job_call *c, gni_gpu *gpu) {
    memset(c, 0, sizeof *c);
    c->gpu = gpu;
}

static gni_gpu_jobs *gni_job_state(gni_gpu *gpu) {
    if (!gpu->jobs) gpu->jobs = gni_calloc(gpu->g, sizeof(gni_gpu_jobs));
    return (gni_gpu_jobs *)gpu->jobs;
}

static uint32_t gni_job_flag(bool on, uint32_t flag) { return on ? flag : 0; }

static int64_t gni_job_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int gni_job_log2_up(int64_t x) {
    int n = 0;
    while (((int64_t)1 << n) < x) n++;
    return n;
}

// Whether the device's layer has a kernel; that of every other one does.
static bool gni_job_has(const gni_gpu *gpu, int module) { return gpu->kernels == NULL || gpu->kernels[module] >= 0; }

// ---- operands

// Bytes of a buffer argument that begins anywhere.
static int64_t gni_job_most_bytes(const gni_gpu *gpu) {
    int64_t most = GNI_GPU_REACH;
    if (!gpu->caps.addresses) most = (int64_t)GNI_MIN(gpu->caps.max_storage_range, (uint64_t)most);
    return most - 256;
}

// The range of `o` that `rank` dimensions reach, as a buffer argument, and where in it index 0 is, in
// elements. False when that is more than one dispatch can address.
static bool gni_job_reach(const gni_gpu *gpu, const gni_operand *o, const int64_t *dim,
                          const int64_t *stride, int rank, gni_gpu_use *use, uint32_t *base) {
    int64_t size = (int64_t)gn_dtype_size(o->dtype), low = o->offset, high = o->offset;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dim[i] == 0) empty = true;
        int64_t step = (dim[i] - 1) * stride[i];
        if (dim[i] > 0 && step < 0) low += step;
        if (dim[i] > 0 && step > 0) high += step;
    }
    int64_t align = gpu->caps.addresses ? 16 : 256;
    int64_t start = low * size / align * align, end = (high + 1) * size;
    use->mem = &o->buf->device;
    use->offset = (uint64_t)start;
    use->bytes = (uint64_t)(end - start);
    use->write = false;
    if (empty || use->offset + use->bytes > use->mem->size) { // nothing is read
        use->offset = 0;
        use->bytes = GNI_MIN(use->mem->size, 16);
        *base = 0;
        return empty;
    }
    if (GNI_TEXTS(gpu) && use->mem->size <= gpu->caps.max_storage_range) { // views have one buffer argument
        use->offset = 0;
        use->bytes = use->mem->size;
        start = 0;
    }
    *base = (uint32_t)((o->offset * size - start) / size);
    return (end - start) / GNI_MIN(size, 4) < INT32_MAX && end - start <= GNI_GPU_REACH &&
           (gpu->caps.addresses || use->bytes <= gpu->caps.max_storage_range);
}

// Extent, multiplier and shift: i / d == (mulhigh(i, multiplier) + i) >> shift for i < 2^31.
static void gni_job_divider(int64_t d, uint32_t *out) {
    d = GNI_MAX(d, 1); // of an empty dimension nothing is looked up
    int s = gni_job_log2_up(d);
    out[0] = (uint32_t)d;
    out[1] = (uint32_t)((((((uint64_t)1 << s) - (uint64_t)d) << 32) / (uint64_t)d) + 1);
    out[2] = (uint32_t)s;
}

// The index spaces of program.glsl: dimension i of the kernel is dimension from[i] of the job.
typedef struct gni_job_space {
    int vectors, scalars;
    int64_t dim[GN_MAX_RANK];
    int from[GN_MAX_RANK];
} gni_job_space;

static int64_t gni_job_stride(const gni_job_space *s, const gni_operand *o, int i) {
    return s->from[i] < 0 ? 0 : o->stride[s->from[i]];
}

static bool gni_job_even_steps(const gni_job_space *s, const gni_operand *o, int first, int last,
                               int64_t group) {
    for (int i = first; i < last; i++)
        if (s->dim[i] > 1 && gni_job_stride(s, o, i) % group != 0) return false;
    return true;
}

static gni_operand_kind gni_operand_kind_of(const gni_job_space *s, const gni_operand *o,
                                            uint32_t base, int64_t group, bool output) {
    bool still = true, flat = true;
    int64_t step = 1;
    for (int i = s->vectors - 1; i >= 0; i--) {
        int64_t stride = gni_job_stride(s, o, i);
        if (s->dim[i] == 1) continue;
        still = still && stride == 0;
        flat = flat && stride == step;
        step *= s->dim[i];
    }
    if (still && !output) return GNI_K_SCALAR;
    int inner = s->vectors - 1;
    // Groups of short elements are not written as a whole by wide kernels.
    bool groups = base % group == 0 && !(output && group == 2 && gn_dtype_size(o->dtype) < 4) &&
                  gni_job_even_steps(s, o, s->vectors, s->vectors + s->scalars, group);
    if (flat) return groups ? GNI_K_VEC : GNI_K_FLAT;
    if (s->dim[inner] % group != 0) return GNI_K_ANY;
    int64_t stride = gni_job_stride(s, o, inner);
    if (stride == 0 && !output) return GNI_K_ROWREP;
    groups = groups && gni_job_even_steps(s, o, 0, inner, group);
    return stride == 1 && groups ? GNI_K_ROWVEC : GNI_K_ROWSTEP;
}

static void gni_job_put_space(gni_job_call *c, const gni_job_space *s) {
    for (int i = 0; i < s->vectors + s->scalars; i++)
        gni_job_divider(s->dim[i], &c->param[GNI_P_PROGRAM_DIM + 3 * i]);
}

// The buffer argument of a program's output or what comes after it: they follow the inputs, but bindings
// have places of their own.
static gni_gpu_use *gni_job_out_use(gni_job_call *c, int output, int n_in) {
    int k = output + (c->gpu->caps.addresses ? n_in : GNI_MAX_INPUTS);
    c->n_use = GNI_MAX(c->n_use, k + 1);
    return &c->use[k];
}

// Adds `o` as a buffer argument and as operand `slot` (0 to 7 inputs, from 8 on outputs).
static bool gni_job_put_operand(gni_job_call *c, const gni_job_space *s, const gni_operand *o,
                                int slot, int64_t group, gni_operand_kind *kind, int n_in) {
    int64_t stride[GN_MAX_RANK];
    int rank = s->vectors + s->scalars;
    uint32_t base;
    for (int i = 0; i < rank; i++) stride[i] = gni_job_stride(s, o, i);
    gni_gpu_use *use = slot < GNI_MAX_INPUTS ? &c->use[c->n_use++]
                                             : gni_job_out_use(c, slot - GNI_MAX_INPUTS, n_in);
    if (!gni_job_reach(c->gpu, o, s->dim, stride, rank, use, &base)) return false;
    use->write = slot >= GNI_MAX_INPUTS;
    uint32_t *p = &c->param[GNI_P_PROGRAM_OP + 9 * slot];
    p[0] = base;
    for (int i = 0; i < rank; i++) p[1 + i] = (uint32_t)stride[i];
    *kind = gni_operand_kind_of(s, o, base, group, slot >= GNI_MAX_INPUTS);
    return true;
}

// ---- programs

// Whether the interpreter lacks something of it.
static bool gni_job_has_functions(const gni_program *p) {
    for (int i = 0; i < p->n_insn && p->wide; i++) {
        uint32_t code = GNI_INSN_CODE(p->insn[i]);
        if (code % 3u == GNI_F && gni_is_function64((gni_op)(code / 3u))) return true;
    }
    return false;
}

static bool gni_job_is_long(gn_dtype t) { return gni_is_wide(t) || t == GN_C64; }

// Eight-byte elements that only move, or are filled in.
static bool gni_job_is_copy64(const gni_program *p) {
    if (p->n_insn > 0 || p->n_out == 0) return false;
    for (int i = 0; i < p->n_in; i++)
        if (!gni_job_is_long(p->in_dtype[i])) return false;
    for (int i = 0; i < p->n_out; i++) {
        if (!gni_job_is_long(p->out_dtype[i])) return false;
        if (p->out_reg[i] < p->n_in && p->in_dtype[p->out_reg[i]] != p->out_dtype[i]) return false;
    }
    return true;
}

// Elements that an invocation takes at a time.
static int64_t gni_job_group(const gni_gpu *gpu, const gni_program *p) {
    return gni_job_is_copy64(p) || (p->wide && !(GNI_WEBGPU && gpu->caps.texts)) ? 2 : 4;
}

// Complex128 that only moves: GPUs take it as two elements of 8 bytes.
static bool gni_job_is_copy128(const gni_map *m) {
    const gni_program *p = &m->program;
    return p->n_insn == 0 && p->n_in == 1 && p->n_out == 1 && p->in_dtype[0] == GN_C128 && p->out_dtype[0] == GN_C128 &&
           m->rank < GN_MAX_RANK;
}

static gni_map gni_job_halves(const gni_map *m) {
    gni_map h = *m;
    gni_operand *o[2] = {&h.in[0], &h.out[0]};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < m->rank; i++) o[k]->stride[i] *= 2;
        o[k]->stride[m->rank] = 1;
        o[k]->offset *= 2;
        o[k]->dtype = GN_C64;
    }
    h.program.in_dtype[0] = h.program.out_dtype[0] = GN_C64;
    h.dim[h.rank++] = 2;
    return h;
}

static bool gni_job_enough_places(const gni_gpu *gpu, const gni_program *p, int extra_buffers) {
    // With bindings kernels declare all that programs may have.
    bool own = gpu->caps.addresses || gpu->caps.texts;
    int places = own ? p->n_in + extra_buffers : GNI_MAX_INPUTS + GNI_MAX_OUTPUTS;
    return (uint32_t)places <= gpu->caps.max_buffers;
}

static bool gni_job_program_ok(const gni_gpu *gpu, const gni_program *p, int extra_buffers) {
    if (!gni_job_enough_places(gpu, p, extra_buffers)) return false;
    for (int i = 0; i < p->n_insn; i++)
        if ((!p->wide || (GNI_WEBGPU && gpu->caps.texts)) && GNI_INSN_CODE(p->insn[i]) >= GNI_OP_TRIGAMMA * 3u) return false;
    if (GNI_WEBGPU && p->wide && gpu->caps.texts) return gni_job_short(p);
    if (p->wide) {
        if (!gpu->caps.int64 || !gpu->caps.float64) return false;
        if ((gpu->g->options.vulkan_flags & GN_VULKAN_NO_SPECIALIZATION) && gni_job_has_functions(p)) return false;
    }
    for (int i = 0; i < p->n_in; i++)
        if (gni_is_complex(p->in_dtype[i]) || (!p->wide && gni_job_is_long(p->in_dtype[i]))) return false;
    for (int i = 0; i < p->n_out; i++)
        if (gni_is_complex(p->out_dtype[i]) || (!p->wide && gni_job_is_long(p->out_dtype[i])))
            return false;
    return true;
}

static uint32_t gni_job_reg(const gni_program *p, uint32_t r) {
    if (r < (uint32_t)p->n_in) return r;
    if (r < (uint32_t)(p->n_in + p->n_const)) return r - (uint32_t)p->n_in + 8u;
    return r - (uint32_t)(p->n_in + p->n_const) + 16u;
}

// Whether an op has a form for results that only become 16-bit floats.
static bool gni_job_has_coarse(uint32_t code) {
    switch (code) {
#define GN_X(NAME, form) case GNI_OP_##NAME * 3u + GNI_F:
        GNI_UNARY_COARSE(GN_X) return true;
#undef GN_X
    default: return false;
    }
}

// The instructions, as bits, of whose results nothing becomes but float16 and bfloat16, maybe by way of products.
static uint64_t gni_job_short_ends(const gni_gpu *gpu, const gni_program *p) {
    uint64_t set = 0;
    if (p->wide || gpu->caps.texts || !gpu->caps.keep_nan) return 0;
    for (int i = p->n_insn; i-- > 0;) {
        const int reg = p->n_in + p->n_const + i;
        bool ends = true;
        for (int k = i + 1; k < p->n_insn && ends; k++) {
            const uint32_t w = p->insn[k], op = GNI_INSN_CODE(w) / 3u;
            if ((int)GNI_INSN_A(w) == reg || (int)GNI_INSN_B(w) == reg || (int)GNI_INSN_C(w) == reg)
                ends = op == GNI_OP_ROUND_F16 || op == GNI_OP_ROUND_BF16 || (op == GNI_OP_MUL && (set >> k & 1u) != 0);
        }
        for (int k = 0; k < p->n_out && ends; k++)
            if (p->out_reg[k] == reg) ends = p->out_dtype[k] == GN_F16 || p->out_dtype[k] == GN_BF16;
        set |= (uint64_t)ends << i;
    }
    return set;
}

// The words that say what the program is, and the constants.
static void gni_job_put_program(gni_job_call *c, const gni_program *p, const gni_job_space *s,
                                const gni_operand_kind *in_kind, const gni_operand_kind *out_kind) {
    uint32_t *w = c->param;
    bool coords = false;
    for (int i = 0; i < p->n_in; i++) {
        w[GNI_P_PROGRAM_IN_DTYPES] |= (uint32_t)p->in_dtype[i] << (4 * i);
        w[GNI_P_PROGRAM_IN_KINDS] |= in_kind[i] << (4 * i);
        coords = coords || in_kind[i] >= GNI_K_ROWVEC;
    }
    for (int i = 0; i < p->n_out; i++) {
        w[GNI_P_PROGRAM_OUTPUTS] |=
            (uint32_t)p->out_dtype[i] << (4 * i) | out_kind[i] << (16 + 4 * i);
        w[GNI_P_PROGRAM_OUT_REGS] |= gni_job_reg(p, (uint32_t)p->out_reg[i]) << (8 * i);
        coords = coords || out_kind[i] >= GNI_K_ROWVEC;
    }
    w[GNI_P_PROGRAM_COUNTS] = (uint32_t)p->n_in | (uint32_t)p->n_out << 4 |
                              (uint32_t)p->n_insn << 8 | (uint32_t)s->vectors << 16 |
                              (uint32_t)s->scalars << 20 | (uint32_t)coords << 24;
    const uint64_t ends = gni_job_short_ends(c->gpu, p);
    for (int i = 0; i < p->n_insn; i++) {
        uint32_t insn = p->insn[i];
        const bool coarse = (ends >> i & 1u) != 0 && gni_job_has_coarse(GNI_INSN_CODE(insn));
        w[GNI_P_PROGRAM_STEPS + i] =
            GNI_INSN_CODE(insn) | (coarse ? GNI_INSN_COARSE : 0u) |
            gni_job_reg(p, GNI_INSN_A(insn)) << 11 |
            gni_job_reg(p, GNI_INSN_B(insn)) << 18 | gni_job_reg(p, GNI_INSN_C(insn)) << 25;
    }
    for (int i = 0; i < p->n_const; i++) {
        const uint64_t bits = GNI_WEBGPU && c->gpu->caps.texts ? gni_job_const(p, i) : p->konst[i];
        w[GNI_P_PROGRAM_CONST + 2 * i] = (uint32_t)bits;
        w[GNI_P_PROGRAM_CONST + 2 * i + 1] = (uint32_t)(bits >> 32);
    }
    c->n_param = GNI_P_PROGRAM_WORDS;
}

// ---- kernels

static uint64_t gni_job_hash(const gni_gpu_kernel *k) {
    uint64_t h = 1469598103934665603u ^ (uint64_t)k->module;
    for (uint32_t i = 0; i < k->n_spec; i++) h = (h ^ k->spec[i]) * 1099511628211u;
    return h | 1u;
}

// Whether the kernel was asked for before. Programs that come once are not worth a pipeline, nor on a CPU those that come
// a few times.
static bool gni_job_seen(gni_gpu *gpu, const gni_gpu_kernel *k) {
    gni_gpu_jobs *ops = gni_job_state(gpu);
    if (!ops) return true;
    // The last ones of each set: with one place, two that take turns would push each other out forever. Two bits count.
    const uint64_t times = gpu->caps.kind == GNI_GPU_CPU ? GNI_JOB_SEEN_SLOW : GNI_JOB_SEEN;
    const uint64_t h = gni_job_hash(k) & ~(uint64_t)3;
    uint64_t *set = &ops->seen[(h >> 32) % (GNI_JOB_HITS / GNI_JOB_HIT_SET) * GNI_JOB_HIT_SET];
    for (int i = 0; i < GNI_JOB_HIT_SET; i++)
        if ((set[i] & ~(uint64_t)3) == h) {
            if ((set[i] & 3u) >= times) return true;
            set[i]++;
            return false;
        }
    memmove(set + 1, set, (GNI_JOB_HIT_SET - 1) * sizeof *set);
    set[0] = h | 1u;
    return false;
}

// The specialised pipeline if it is there. Else the one that interprets, whose compilation takes far
// longer, but only once: until it is there, the specialised one is worth waiting for. gn_close waits for what
// is being compiled, so that programs of a few kernels do without it. A CPU compiles on the cores that it
// computes with: there, programs that come a few times are interpreted, after the first few.
// c->special.module -1: there is none, and so with c->generic.
static gni_gpu_pipeline *gni_job_pipeline(gni_job_call *c) {
    gni_gpu *gpu = c->gpu;
    uint32_t flags = gpu->g->options.vulkan_flags;
    if (gpu->caps.texts || c->generic.module < 0) return gni_gpu_pipeline_get(gpu, &c->special, GNI_GPU_WAIT);
    if (c->special.module < 0 || (flags & GN_VULKAN_NO_SPECIALIZATION))
        return gni_gpu_pipeline_get(gpu, &c->generic, GNI_GPU_WAIT);
    if (flags & GN_VULKAN_NO_ASYNC_PIPELINES)
        return gni_gpu_pipeline_get(gpu, &c->special, GNI_GPU_WAIT);
    gni_gpu_pipeline *p = gni_gpu_pipeline_get(gpu, &c->special, GNI_GPU_PEEK);
    if (p) return p;
    bool slow = gpu->caps.kind == GNI_GPU_CPU;
    bool few = (int)gpu->pipelines < (slow ? GNI_JOB_FEW_SLOW : GNI_JOB_FEW);
    if (c->waits && !slow) return gni_gpu_pipeline_get(gpu, &c->special, GNI_GPU_WAIT);
    p = gni_gpu_pipeline_get(gpu, &c->generic,
                             few    ? GNI_GPU_PEEK
                             : slow ? GNI_GPU_WAIT
                                    : GNI_GPU_BEHIND);
    if (!p) return gni_gpu_pipeline_get(gpu, &c->special, GNI_GPU_WAIT);
    if (gni_job_seen(gpu, &c->special)) gni_gpu_pipeline_get(gpu, &c->special, GNI_GPU_ASYNC);
    return p;
}

static bool gni_job_dispatch(gni_job_call *c, gni_gpu_pipeline *p, int64_t gx, int64_t gy,
                             int64_t gz) {
    if (!p) return false;
    const uint32_t *most = c->gpu->caps.max_groups;
    uint32_t x = (uint32_t)GNI_MIN(gx, (int64_t)most[0]), y = (uint32_t)gy,
             z = (uint32_t)GNI_MIN(gz, (int64_t)most[2]);
    return gni_gpu_dispatch(c->gpu, p, c->use, c->n_use, c->param, c->n_param * 4u, x, y, z);
}

// ---- scratch

static bool gni_job_scratch(gni_job_call *c, uint64_t bytes, const char *what) {
    gni_gpu_mem *m = &c->scratch[c->n_scratch];
    if (!gni_gpu_need(c->gpu, bytes, m, what)) return false;
    c->n_scratch++;
    gni_gpu_use *use = &c->use[c->n_use++];
    use->mem = m;
    use->offset = 0;
    use->bytes = bytes;
    use->write = true;
    return true;
}

static void gni_job_drop_scratch(gni_job_call *c) {
    for (int i = 0; i < c->n_scratch; i++) gni_gpu_free(c->gpu, &c->scratch[i]);
    c->n_scratch = 0;
}

// `count` words of zeros as the next buffer argument; `first` is the first one's index in it.
static bool gni_job_counters(gni_job_call *c, int64_t count, uint32_t *first) {
    gni_gpu_jobs *ops = gni_job_state(c->gpu);
    uint32_t words = (uint32_t)(count + 63) & ~63u;
    *first = 0;
    if (!ops || words > GNI_JOB_COUNTERS) {
        if (!gni_job_scratch(c, (uint64_t)words * 4, "counters")) return false;
        return gni_gpu_fill(c->gpu, &c->scratch[c->n_scratch - 1], 0, (uint64_t)words * 4, 0);
    }
    if (!ops->has_counters) {
        if (!gni_gpu_need(c->gpu, GNI_JOB_COUNTERS * 4, &ops->counters, "counters")) return false;
        ops->has_counters = gni_gpu_fill(c->gpu, &ops->counters, 0, GNI_JOB_COUNTERS * 4, 0);
        if (!ops->has_counters) return false;
    }
    // Round and round, so that jobs near each other do not wait for each other's counters.
    if (ops->next_counter + words > GNI_JOB_COUNTERS) ops->next_counter = 0;
    gni_gpu_use *use = &c->use[c->n_use++];
    use->mem = &ops->counters;
    use->offset = ops->next_counter * 4u;
    use->bytes = words * 4u;
    use->write = true;
    ops->next_counter += words;
    return true;
}

// ---- elementwise

static void gni_job_set_modules(gni_job_call *c, const gni_program *p, int special, int generic) {
    c->generic.module = gni_job_has_functions(p) ? -1 : generic;
    c->special.module = special;
    c->special.n_spec = GNI_P_PROGRAM_STEPS + (uint32_t)p->n_insn;
    memcpy(c->special.spec, c->param, c->special.n_spec * sizeof(uint32_t));
    c->special.first_code = GNI_P_PROGRAM_STEPS;
}

// Which kernel: their names are those of the `//! variant` lines in elementwise.comp.
static void gni_job_map_modules(gni_job_call *c, const gni_program *p, bool little) {
    int special = p->wide ? GNI_MODULE_map_wide_24 : little ? GNI_MODULE_map_8 : GNI_MODULE_map_24;
    int generic = p->wide ? GNI_MODULE_map_wide_generic : GNI_MODULE_map_generic;
    if (gni_job_is_copy64(p)) {
        special = c->gpu->caps.texts ? GNI_MODULE_map_copy64 : little ? GNI_MODULE_map_copy64_8 : -1;
        generic = GNI_MODULE_map_copy64;
    }
    gni_job_set_modules(c, p, special, generic);
}

// Instructions that are long code.
static int gni_job_long_steps(const gni_program *p) {
    int n = 0;
    for (int i = 0; i < p->n_insn; i++) {
        uint32_t op = GNI_INSN_CODE(p->insn[i]) / 3u;
        n += op < GNI_OP_NEG || (op >= GNI_OP_FLOOR_DIV && op <= GNI_OP_POW) ||
             (op >= GNI_OP_ATAN2 && op <= GNI_OP_ROOT_SIZE) || op >= GNI_OP_ERFC;
    }
    return n;
}

// log2 of the groups that an invocation takes: several where their arithmetic takes long, or where they have few bytes.
static uint32_t gni_job_map_groups(const gni_gpu *gpu, const gni_map *m) {
    if (gpu->caps.kind == GNI_GPU_CPU) return m->program.n_insn == 0; // its compilers are slow
    bool bytes = gn_dtype_size(m->out[0].dtype) == 1;
    for (int i = 0; i < m->program.n_in; i++) bytes = bytes && gn_dtype_size(m->program.in_dtype[i]) == 1;
    if (bytes) return 2;
    return gni_job_long_steps(&m->program) > 0 || gn_dtype_size(m->out[0].dtype) == 2;
}

// ---- tiles

// Whether rows of a result that follow each other without gaps are better written as one stretch, each element read where
// it is: short ones fill a tile's rows badly, and where they do not begin at groups of four, tiles write one by one.
static bool gni_job_is_stretch(const gni_map *m) {
    const int64_t row = m->dim[m->rank - 1];
    const bool little = gn_dtype_size(m->out[0].dtype) < 4;
    if (m->out[0].stride[m->rank - 2] != row) return false;
    return row % 4 != 0 ? little || row < 512 : row < 32 && (little || row > 8);
}

// The dimension along which some input's elements are neighbours where the last one's are not, or -1.
static int gni_job_tile_dim(const gni_map *m) {
    int last = m->rank - 1;
    if (m->rank < 2 || m->rank > 4 || m->dim[last] < 8 || m->out[0].stride[last] != 1) return -1;
    if (gni_job_is_stretch(m)) return -1;
    for (int i = 0; i < m->program.n_in; i++) {
        const int64_t *s = m->in[i].stride;
        if (s[last] == 0 || s[last] == 1) continue;
        for (int d = 0; d < last; d++)
            if ((s[d] == 1 || s[d] == -1) && m->dim[d] >= 8) return d;
    }
    return -1;
}

static gni_operand_kind gni_job_tile_kind(const gni_map *m, const gni_operand *o, uint32_t base,
                                          int row, int64_t group, bool output) {
    int last = m->rank - 1;
    bool still = true, even = base % group == 0,
         even_rows = even; // in all dimensions but the last, but `row`
    for (int i = 0; i < m->rank; i++) {
        still = still && (o->stride[i] == 0 || m->dim[i] == 1);
        even = even && (i == last || o->stride[i] % group == 0);
        even_rows = even_rows && (i == row || o->stride[i] % group == 0);
    }
    if (still && !output) return GNI_K_SCALAR;
    if (o->stride[last] == 1 && even) return GNI_K_ROWVEC;
    if (o->stride[row] == 1 && even_rows && !output) return GNI_K_COLVEC;
    return o->stride[last] == 0 && !output ? GNI_K_ROWREP : GNI_K_ANY;
}

// Tells the specialised kernel to go by tiles whose rows are dimension `row`. Returns how many.
static int64_t gni_job_map_tiles(gni_job_call *c, const gni_map *m, int row, int64_t group, int64_t n) {
    int last = m->rank - 1;
    int64_t rows = m->dim[row], columns = m->dim[last], between = 1;
    int64_t across = gni_job_ceil(columns, 16 * group), down = gni_job_ceil(rows, 64);
    uint32_t *k = c->param, *w = c->special.spec;
    for (int i = row + 1; i < last; i++) between *= m->dim[i];
    k[GNI_P_MAP_ROW_DIM] = (uint32_t)row;
    k[GNI_P_MAP_ROWS] = (uint32_t)rows;
    k[GNI_P_MAP_BETWEEN] = (uint32_t)between;
    k[GNI_P_MAP_ACROSS] = (uint32_t)across;
    k[GNI_P_MAP_DOWN] = (uint32_t)down;
    w[GNI_P_PROGRAM_IN_KINDS] = 0;
    for (int i = 0; i < m->program.n_in; i++)
        w[GNI_P_PROGRAM_IN_KINDS] |=
            gni_job_tile_kind(m, &m->in[i], k[GNI_P_PROGRAM_OP + 9 * i], row, group, false) << (4 * i);
    gni_operand_kind out =
        gni_job_tile_kind(m, &m->out[0], k[GNI_P_PROGRAM_OP + 9 * GNI_MAX_INPUTS], row, group, true);
    if (GNI_TEXTS(c->gpu) && columns % group != 0 && out == GNI_K_ROWVEC) out = GNI_K_ANY;
    w[GNI_P_PROGRAM_OUTPUTS] = (w[GNI_P_PROGRAM_OUTPUTS] & 0xffffu) | out << 16;
    w[GNI_P_PROGRAM_HOW] = (w[GNI_P_PROGRAM_HOW] & ~255u) | 2u | 1u << 4; // beside gni_job_shared_buffers
    return n / (rows * columns) * across * down;
}

// Whether a brief kernel that is a text goes by tiles, where there are some: of words, on GPUs.
static bool gni_job_text_tiles_fit(const gni_gpu *gpu, const gni_map *m) {
    const gni_program *p = &m->program;
    bool fit = GNI_TEXTS(gpu) && gpu->caps.kind != GNI_GPU_CPU && p->n_out == 1 && !p->wide &&
               gn_dtype_size(m->out[0].dtype) == 4;
    for (int i = 0; i < p->n_in; i++) fit = fit && gn_dtype_size(m->in[i].dtype) == 4;
    return fit;
}

// Where kernels are texts: which inputs are read from an output's buffer.
static uint32_t gni_job_shared_buffers(const gni_job_call *c, const gni_program *p) {
    uint32_t bits = 0;
    for (int i = 0; c->gpu->caps.texts && i < p->n_in && i < 6; i++) {
        for (int k = 0; k < p->n_out; k++) {
            const gni_gpu_use *in = &c->use[i], *out = &c->use[GNI_MAX_INPUTS + k];
            if (in->mem == out->mem && in->offset == out->offset && in->bytes == out->bytes)
                bits |= (uint32_t)(k + 1) << (8 + 4 * i);
        }
    }
    return bits;
}

// Finds among n operands the parts of complex numbers; real ones among the first `most`.
static void gni_job_find_parts(const gni_map *m, const gni_operand *o, int most, int n, gni_operand_kind *kind,
                               uint32_t *how) {
    for (int i = 0; i < most; i++)
        for (int k = 0; k < n; k++) {
            int64_t odd = o[i].offset;
            if (o[i].buf != o[k].buf || o[i].offset + 1 != o[k].offset || o[i].dtype != o[k].dtype) continue;
            for (int d = 0; d < m->rank; d++) odd |= o[i].stride[d] | (o[i].stride[d] != o[k].stride[d]);
            if (odd % 2 != 0 || gn_dtype_size(o[i].dtype) != (m->program.wide ? 8 : 4)) continue;
            kind[i] = GNI_K_RE;
            kind[k] = GNI_K_IM;
            *how |= (uint32_t)i * (1u << (8 + 3 * i) | 1u << (8 + 3 * k));
        }
}

// Whether the output's elements are written one by one, and not by atomics.
static bool gni_job_map_spreads(const gni_job_call *c, const gni_program *p, const gni_operand_kind *out) {
    const gni_gpu_caps *caps = &c->gpu->caps;
    const size_t least = caps->addresses && caps->narrow_stores ? 2 : 4;
    if (caps->texts || c->special.module < 0 || p->n_out == 0) return false;
    for (int i = 0; i < p->n_out; i++)
        if (gn_dtype_size(p->out_dtype[i]) < least || out[i] == GNI_K_VEC || out[i] == GNI_K_ROWVEC) return false;
    return true;
}

// Tells the specialised kernel that neighbouring invocations are to write neighbours: then groups are not in any operand.
static void gni_job_map_spread(gni_job_call *c, const gni_map *m, gni_operand_kind *in, gni_operand_kind *out) {
    const gni_program *p = &m->program;
    uint32_t *w = c->special.spec;
    bool coords = false;
    if (p->n_out == 2 && c->gpu->caps.addresses) { // not in little kernels
        gni_job_find_parts(m, m->in, p->n_in, p->n_in, in, &w[GNI_P_PROGRAM_HOW]);
        gni_job_find_parts(m, m->out, 1, 2, out, &w[GNI_P_PROGRAM_HOW]);
    }
    w[GNI_P_PROGRAM_IN_KINDS] = 0;
    w[GNI_P_PROGRAM_OUTPUTS] &= 0xffffu;
    for (int i = 0; i < p->n_in + p->n_out; i++) {
        const gni_operand_kind kind = i < p->n_in ? in[i] : out[i - p->n_in], flat = kind == GNI_K_VEC ? GNI_K_FLAT : kind,
                               alone = flat == GNI_K_SCALAR || flat == GNI_K_FLAT || flat >= GNI_K_RE ? flat : GNI_K_ANY;
        coords = coords || alone >= GNI_K_ANY;
        if (i < p->n_in) w[GNI_P_PROGRAM_IN_KINDS] |= alone << (4 * i);
        else w[GNI_P_PROGRAM_OUTPUTS] |= alone << (16 + 4 * (i - p->n_in));
    }
    w[GNI_P_PROGRAM_COUNTS] |= (uint32_t)coords << 24;
    w[GNI_P_PROGRAM_HOW] |= 1u << 5;
}

// ---- elementwise jobs of which none uses what another one writes, in few dispatches

static int gni_job_by_size(const void *a, const void *b) {
    const gni_job_waiting *x = *(const gni_job_waiting *const *)a, *y = *(const gni_job_waiting *const *)b;
    if (x->pipeline != y->pipeline) return x->pipeline < y->pipeline ? -1 : 1;
    if (x->blocks != y->blocks) return x->blocks < y->blocks ? -1 : 1;
    return x < y ? -1 : 1;
}

static bool gni_job_run_waiting(gni_gpu *gpu) {
    gni_gpu_jobs *ops = (gni_gpu_jobs *)gpu->jobs;
    const gni_job_waiting *list[GNI_JOB_WAITING];
    gni_gpu_part parts[GNI_JOB_WAITING];
    if (ops == NULL || ops->n_waiting == 0) return true;
    const int n = ops->n_waiting;
    ops->n_waiting = 0;
    for (int i = 0; i < n; i++) list[i] = &ops->waiting[i];
    qsort((void *)list, (size_t)n, sizeof list[0], gni_job_by_size);
    for (int i = 0; i < n; i++) {
        const gni_job_waiting *w = list[i];
        parts[i].pipeline = w->pipeline;
        parts[i].uses = w->use;
        parts[i].n_use = w->n_use;
        parts[i].params = w->param;
        parts[i].bytes = w->n_param * 4u;
        parts[i].x = (uint32_t)GNI_MIN(w->blocks, (int64_t)gpu->caps.max_groups[0]);
    }
    return gpu->layer->dispatch_many(gpu, parts, n);
}

// Whether the dispatch waits for gni_gather_end; of jobs between gni_gather and that.
static bool gni_job_waits(const gni_job_call *c, gni_gpu_pipeline *pipeline, int64_t blocks, bool *ok) {
    gni_gpu_jobs *ops = (gni_gpu_jobs *)c->gpu->jobs;
    if (ops == NULL || !ops->gathers || pipeline == NULL || c->n_scratch > 0) return false;
    *ok = ops->n_waiting < GNI_JOB_WAITING || gni_job_run_waiting(c->gpu);
    gni_job_waiting *w = &ops->waiting[ops->n_waiting];
    if (!*ok) return true;
    w->pipeline = pipeline;
    w->blocks = blocks;
    memcpy(w->use, c->use, (size_t)c->n_use * sizeof c->use[0]);
    w->n_use = c->n_use;
    memcpy(w->param, c->param, c->n_param * sizeof c->param[0]);
    w->n_param = c->n_param;
    ops->n_waiting++;
    return true;
}

// One dispatch. `*fits` says whether it was possible; nothing is reported when it was not.
// Whether elements lie in the order of the job's.
static bool gni_job_in_order(const gni_map *m, const gni_operand *o) {
    int64_t step = 1;
    bool is = o->offset % 4 == 0;
    for (int i = m->rank; i-- > 0; step *= m->dim[i]) is = is && (o->stride[i] == step || m->dim[i] == 1);
    return is;
}

// Truth values that are undrawn stay so where the kernel can draw four after the other. False: no memory.
static bool gni_job_draws(gni_gpu *gpu, gni_map *m) {
    gni_program *p = &m->program;
    bool here = gpu->caps.addresses && !p->wide && gni_job_tile_dim(m) < 0;
    for (int i = 0; i < p->n_out; i++) here = here && gni_job_in_order(m, &m->out[i]);
    for (int i = 0; i < p->n_in; i++) {
        gni_operand *o = &m->in[i];
        if (!gni_is_undrawn(o->buf)) continue;
        const bool stays = here && gni_job_in_order(m, o);
        p->in_dtype[i] = o->dtype = stays ? GN_U32 : GN_BOOL;
        if (!stays && !gni_buffer_need(gpu->g, o->buf, GNI_ON_GPU)) return false;
    }
    return true;
}

static void gni_job_put_drawn(gni_job_call *c, const gni_operand *o, const gni_operand *out, int slot) {
    gni_gpu_use *use = &c->use[c->n_use++]; // there has to be one
    const uint64_t block = o->buf->counter + (uint64_t)o->offset / 4;
    const uint32_t words[5] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)o->buf->seed,
                               (uint32_t)(o->buf->seed >> 32), o->buf->limit};
    use->mem = &out->buf->device;
    use->bytes = GNI_MIN(use->mem->size, 16);
    memcpy(&c->param[GNI_P_PROGRAM_OP + 9 * slot + 1], words, sizeof words);
}

static bool gni_job_map_once(gni_gpu *gpu, const gni_map *m, int64_t n, bool *fits) {
    gni_job_call c;
    gni_job_space s;
    gni_operand_kind in[GNI_MAX_INPUTS], out[GNI_MAX_OUTPUTS];
    const gni_program *p = &m->program;
    memset(&c, 0, sizeof c);
    memset(&s, 0, sizeof s);
    c.gpu = gpu;
    s.vectors = GNI_MAX(m->rank, 1);
    s.dim[0] = 1;
    s.from[0] = -1;
    for (int i = 0; i < m->rank; i++) {
        s.dim[i] = m->dim[i];
        s.from[i] = i;
    }
    int64_t group = gni_job_group(gpu, p);
    *fits = n < INT32_MAX - 32 * GNI_JOB_THREADS;
    for (int i = 0; i < p->n_in && *fits; i++) {
        in[i] = GNI_K_DRAWN;
        if (gni_is_undrawn(m->in[i].buf)) gni_job_put_drawn(&c, &m->in[i], &m->out[0], i);
        else *fits = gni_job_put_operand(&c, &s, &m->in[i], i, group, &in[i], p->n_in);
    }
    for (int i = 0; i < p->n_out && *fits; i++)
        *fits = gni_job_put_operand(&c, &s, &m->out[i], GNI_MAX_INPUTS + i, group, &out[i], p->n_in);
    if (!*fits) return true;
    const bool brief = p->n_in <= 3 && p->n_out <= 1 && p->n_insn <= 8 && m->rank <= 4;
    bool little = brief && (!p->wide || gni_job_is_copy64(p)) && gpu->caps.addresses;
    gni_job_put_space(&c, &s);
    gni_job_put_program(&c, p, &s, in, out);
    gni_job_map_modules(&c, p, little);
    c.special.spec[GNI_P_PROGRAM_HOW] = gni_job_map_groups(gpu, m) | gni_job_shared_buffers(&c, p);
    int64_t blocks =
        gni_job_ceil(gni_job_ceil(n, group), (int64_t)GNI_JOB_THREADS << (c.special.spec[GNI_P_PROGRAM_HOW] & 3u));
    int row = (little && c.special.module >= 0) || (brief && gni_job_text_tiles_fit(gpu, m)) ? gni_job_tile_dim(m) : -1;
    if (row >= 0) blocks = gni_job_map_tiles(&c, m, row, group, n);
    else if (gni_job_map_spreads(&c, p, out)) gni_job_map_spread(&c, m, in, out);
    c.param[GNI_P_MAP_N] = (uint32_t)n;
    c.param[GNI_P_MAP_BLOCKS] = (uint32_t)blocks;
    gni_gpu_pipeline *pipeline = gni_job_pipeline(&c);
    if (pipeline && pipeline->module != c.special.module)
        blocks = gni_job_ceil(gni_job_ceil(n, group), GNI_JOB_THREADS);
    bool ok = true;
    if (gni_job_waits(&c, pipeline, blocks, &ok)) return ok;
    return gni_job_dispatch(&c, pipeline, blocks, 1, 1);
}

// The dimension from `first` on whose halving helps most: the one over which an operand spreads widest.
// -1: none can be halved.
static int gni_job_widest(const int64_t *dim, int first, int rank, const gni_operand *const *op,
                          int n_op) {
    int best = -1;
    int64_t most = 0;
    for (int d = first; d < rank; d++) {
        int64_t reach = 0;
        if (dim[d] < 2) continue;
        for (int k = 0; k < n_op; k++) {
            int64_t step = op[k]->stride[d] < 0 ? -op[k]->stride[d] : op[k]->stride[d];
            reach = GNI_MAX(reach, step * (int64_t)gn_dtype_size(op[k]->dtype) * (dim[d] - 1));
        }
        if (best < 0 || reach > most) {
            best = d;
            most = reach;
        }
    }
    return best;
}

// Where to cut a dimension in two so that groups stay aligned.
static int64_t gni_job_half(int64_t n) {
    int64_t h = n / 2;
    return h > 64 ? h / 64 * 64 : GNI_MAX(h, 1);
}

// Makes the dimension along which the output's elements are neighbours the last one.
static void gni_job_transpose(gni_map *m) {
    int last = m->rank - 1;
    if (m->program.n_out == 0 || m->rank < 2 || m->out[0].stride[last] == 1) return;
    for (int d = 0; d < last; d++) {
        if (m->out[0].stride[d] != 1 || m->dim[d] == 1) continue;
        int64_t t = m->dim[d];
        m->dim[d] = m->dim[last];
        m->dim[last] = t;
        for (int i = 0; i < m->program.n_in + m->program.n_out; i++) {
            int64_t *s = i < m->program.n_in ? m->in[i].stride : m->out[i - m->program.n_in].stride;
            t = s[d];
            s[d] = s[last];
            s[last] = t;
        }
        return;
    }
}

// Whether outputs share a buffer, as the parts of complex numbers do; `read`: one that the job reads, too.
static bool gni_job_outputs_meet(const gni_map *m, bool read) {
    for (int i = 1; i < m->program.n_out; i++)
        for (int k = 0; k < i; k++) {
            if (m->out[k].buf != m->out[i].buf) continue;
            if (!read) return true;
            for (int j = 0; j < m->program.n_in; j++)
                if (m->in[j].buf == m->out[i].buf) return true;
        }
    return false;
}

// Makes words of short elements that only move, neighbours together. False: they do not.
static bool gni_job_pack(gni_map *m) {
    gni_program *p = &m->program;
    const int last = m->rank - 1;
    if (p->n_insn > 0 || p->n_in != 1 || p->n_out != 1 || p->in_dtype[0] != p->out_dtype[0] || last < 0) return false;
    const int64_t size = (int64_t)gn_dtype_size(p->in_dtype[0]), each = 4 / size;
    gni_operand *o[2] = {&m->in[0], &m->out[0]};
    if (size >= 4 || p->out_reg[0] != 0 || m->dim[last] % each != 0) return false;
    for (int k = 0; k < 2; k++) {
        if (o[k]->stride[last] != 1 || o[k]->offset % each != 0) return false;
        for (int i = 0; i < last; i++)
            if (o[k]->stride[i] % each != 0) return false;
    }
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < last; i++) o[k]->stride[i] /= each;
        o[k]->offset /= each;
        o[k]->dtype = GN_U32;
    }
    m->dim[last] /= each;
    p->in_dtype[0] = p->out_dtype[0] = GN_U32;
    return true;
}

static bool gni_job_map(gni_gpu *gpu, const gni_map *m) {
    bool fits = false;
    int64_t n = 1;
    for (int i = 0; i < m->rank; i++) n *= m->dim[i];
    if (n == 0) return true;
    if (gni_job_is_copy128(m)) {
        const gni_map halves = gni_job_halves(m);
        return gni_job_map(gpu, &halves);
    }
    if (gpu->caps.texts && gni_job_outputs_meet(m, false)) { // bound once each: one after the other
        gni_map one = *m;
        one.program.n_out = 1;
        for (int i = 0; i < m->program.n_out; i++) {
            one.out[0] = m->out[i];
            one.program.out_dtype[0] = m->program.out_dtype[i];
            one.program.out_reg[0] = m->program.out_reg[i];
            if (!gni_job_map(gpu, &one)) return false;
        }
        return true;
    }
    gni_map transposed = *m;
    gni_job_transpose(&transposed);
    if (!gni_job_draws(gpu, &transposed)) return false;
    m = &transposed;
    if (gni_job_pack(&transposed)) return gni_job_map(gpu, m);
    if (!gni_job_map_once(gpu, m, n, &fits)) return false;
    if (fits) return true;
    const gni_operand *op[GNI_MAX_INPUTS + GNI_MAX_OUTPUTS];
    int n_op = 0;
    for (int i = 0; i < m->program.n_in; i++) op[n_op++] = &m->in[i];
    for (int i = 0; i < m->program.n_out; i++) op[n_op++] = &m->out[i];
    int d = gni_job_widest(m->dim, 0, m->rank, op, n_op);
    if (d < 0) return false;
    gni_map part = *m;
    int64_t half = gni_job_half(m->dim[d]);
    part.dim[d] = half;
    if (!gni_job_map(gpu, &part)) return false;
    part.dim[d] = m->dim[d] - half;
    for (int i = 0; i < m->program.n_in; i++) part.in[i].offset += half * m->in[i].stride[d];
    for (int i = 0; i < m->program.n_out; i++) part.out[i].offset += half * m->out[i].stride[d];
    return gni_job_map(gpu, &part);
}

// ---- reductions

// How one job is cut up. A plan holds for all pieces of the reduced dimensions.
typedef struct gni_job_plan {
    bool columns, pair; // pair: of two results
    int log_lanes;
    int64_t kept, units, blocks, group;
} gni_job_plan;

// Columns when neighbours in memory are kept, not reduced.
static bool gni_job_by_columns(const gni_reduce *r) {
    int64_t rows = 0, columns = 0;
    if (r->kept == 0) return false;
    if (r->kept == r->rank) return true;
    for (int i = 0; i < r->program.n_in; i++) {
        int64_t size = (int64_t)gn_dtype_size(r->in[i].dtype);
        int64_t along = r->in[i].stride[r->rank - 1], across = r->in[i].stride[r->kept - 1];
        if (along == 0 || across == 0) continue; // it is small and stays in caches
        if (along == 1) rows += size;
        if (across == 1) columns += size;
    }
    return columns > rows;
}

static void gni_job_reduce_space(const gni_reduce *r, bool columns, gni_job_space *s) {
    memset(s, 0, sizeof *s);
    int n = 0, first = columns ? 0 : r->kept, last = columns ? r->kept : r->rank;
    for (int i = first; i < last; i++, n++) {
        s->dim[n] = r->dim[i];
        s->from[n] = i;
    }
    if (n == 0) { // one element
        s->dim[0] = 1;
        s->from[0] = -1;
        n = 1;
    }
    s->vectors = n;
    for (int i = 0; i < r->rank; i++) {
        if (i >= first && i < last) continue;
        s->dim[n] = r->dim[i];
        s->from[n++] = i;
    }
    s->scalars = n - s->vectors;
}

enum { GNI_JOB_ALONE = 32 }; // units, from which on an invocation takes one where barriers are dear

static void gni_job_reduce_plan(const gni_gpu *gpu, const gni_reduce *r, int64_t kept,
                                int64_t reduced, gni_job_plan *p) {
    p->columns = gni_job_by_columns(r);
    p->pair = r->apart > 0;
    p->group = gni_job_group(gpu, &r->program);
    p->kept = kept;
    p->units = p->columns ? gni_job_ceil(kept, p->group) : kept;
    int64_t steps = p->columns ? reduced : gni_job_ceil(reduced, p->group);
    if (p->columns) {
        // At least 32 neighbouring groups for a lane's row, as long as there are so many.
        int across = GNI_MIN(gni_job_log2_up(p->units), 5);
        p->log_lanes = GNI_MIN(8 - across, gni_job_log2_up(steps));
    } else {
        // As few lanes as keep the device busy: what they hold must be joined in the end, which for short rows is most of
        // the work. Rows of 100 and 500 on an H100: 27 and 27 us of 10M elements by 8 and 32 lanes, 17 and 17 by these.
        int most = GNI_MIN(8, gni_job_log2_up(gni_job_ceil(steps, 4)));
        p->log_lanes = GNI_MIN(GNI_MAX(GNI_MIN(gni_job_log2_up(steps) - 4, 5), 2), most);
        while (p->log_lanes < most &&
               p->units >> (8 - p->log_lanes) < 6 * (int64_t)gpu->caps.multiprocessors)
            p->log_lanes++;
    }
    int64_t threads = 256;
    if (gpu->caps.alone) { // barriers are dear: none, or within a subgroup
        const bool each = p->units >= GNI_JOB_ALONE;
        threads = each ? 16 : gpu->caps.alone;
        p->log_lanes = each ? 0 : GNI_MIN(p->log_lanes, gni_job_log2_up(threads));
    }
    p->blocks = gni_job_ceil(p->units, threads >> p->log_lanes);
}

// Workgroups that keep the device busy.
static int64_t gni_job_enough(const gni_gpu *gpu) {
    return (int64_t)gpu->caps.multiprocessors * (gpu->caps.kind == GNI_GPU_CPU ? 2 : 8);
}

// Workgroups that a reduction is split into: what is at work at the same time, since each has several
// loads under way, and a last round of few would keep the rest waiting. Of pairs there is more to join in the end.
static int64_t gni_job_enough_splits(const gni_gpu *gpu, const gni_job_plan *p, int64_t steps) {
    const int64_t all = (int64_t)gpu->caps.multiprocessors * (gpu->caps.kind == GNI_GPU_CPU ? 2 : GNI_TEXTS(gpu) ? 16 : 4);
    return p->pair && steps * GNI_MAX(p->blocks, 1) < all * ((int64_t)32 << p->log_lanes) ? all / 2 : all;
}

static int64_t gni_job_splits(const gni_gpu *gpu, const gni_job_plan *p, int64_t steps,
                              int64_t *chunk) {
    int64_t most = steps / ((int64_t)8 << p->log_lanes),
            want = gni_job_enough_splits(gpu, p, steps) / GNI_MAX(p->blocks, 1);
    // lavapipe leaves loops after 65535 rounds of all that an invocation has run, an interpreter's among them.
    if (gpu->caps.kind == GNI_GPU_CPU) want = GNI_MAX(want, steps >> (10 + p->log_lanes));
    int64_t splits = GNI_MAX(GNI_MIN(GNI_MIN(most, want), 1024), 1);
    *chunk = GNI_MAX(gni_job_ceil(steps, splits), 1);
    return GNI_MAX(gni_job_ceil(steps, *chunk), 1);
}

static bool gni_job_is_half(gn_dtype t) { return t == GN_F16 || t == GN_BF16; }

static void gni_job_reduce_modules(gni_job_call *c, const gni_reduce *r, const gni_job_space *s) {
    const gni_program *p = &r->program;
    bool little = p->n_in <= 3 && p->n_insn <= 8 && s->vectors <= 4 && s->scalars <= 4 &&
                  c->gpu->caps.addresses;
    int special = p->wide  ? GNI_MODULE_reduce_wide_24
                  : little ? GNI_MODULE_reduce_8
                           : GNI_MODULE_reduce_24;
    gni_job_set_modules(c, p, special,
                        p->wide ? GNI_MODULE_reduce_wide_generic : GNI_MODULE_reduce_generic);
    int read = 0; // inputs that vary along what is reduced: the others stay in caches
    for (int i = 0; i < p->n_in; i++) {
        bool varies = false;
        for (int d = r->kept; d < r->rank; d++) varies = varies || (r->in[i].stride[d] != 0 && r->dim[d] > 1);
        read += varies;
    }
    uint32_t steps = read <= 3 && gni_job_long_steps(p) == 0 ? 2 : read <= 4 ? 1 : 0;
    // Groups of halves are half as many bytes.
    const bool rows = (c->param[GNI_P_PROGRAM_HOW] >> 8 & 1u) == 0 && p->n_in == 1 && gni_job_is_half(p->in_dtype[0]);
    if (special == GNI_MODULE_reduce_8 && rows && read == 1 && steps == 2 &&
        c->param[GNI_P_REDUCE_CHUNK] >> (c->param[GNI_P_PROGRAM_HOW] >> 9 & 15u) >= 8)
        steps = 3;
    if (c->gpu->caps.kind == GNI_GPU_CPU && p->n_insn > 0) steps = 0; // its compilers are slow
    c->special.spec[GNI_P_PROGRAM_HOW] |= steps << 20;
    c->param[GNI_P_PROGRAM_HOW] |= steps << 20;
}

// A number in the arithmetic of the job's program.
static void gni_job_put_real(uint32_t *k, const gni_reduce *r, double v) {
    const float x = (float)v;
    if (r->program.wide) memcpy(k, &v, sizeof v);
    else memcpy(k, &x, sizeof x);
}

// Of n elements every workgroup looks at some first: of columns root n; rows, whose lanes have four neighbours each, at
// fewer.
static void gni_job_put_moments(uint32_t *k, const gni_reduce *r, const gni_job_plan *p, int64_t n) {
    const int64_t each = p->columns ? 1 : p->group, lanes = (int64_t)1 << p->log_lanes,
                  some = (int64_t)sqrt((double)n) / (p->columns ? 1 : 64) + 1;
    const double of[2] = {(double)n, r->rest};
    k[GNI_P_PROGRAM_HOW] |= GNI_F_REDUCE_MOMENTS;
    k[GNI_P_REDUCE_SAMPLES] = (uint32_t)GNI_MIN(gni_job_ceil(n, each), gni_job_ceil(some, lanes) * lanes);
    for (int i = 0; i < 2; i++) gni_job_put_real(&k[GNI_P_REDUCE_COUNT + 2 * i], r, of[i]);
}

// A piece of the reduced elements, `splits` of all `total`. False in *fits: too large, nothing was done.
// With `dry` only asks.
static bool gni_job_reduce_piece(gni_job_call *c, const gni_reduce *r, const gni_job_plan *plan,
                                 int64_t reduced, int64_t index, int64_t chunk, int64_t splits,
                                 int64_t first, int64_t total, bool dry, bool *fits) {
    gni_job_space s;
    gni_operand_kind in[GNI_MAX_INPUTS], out[GNI_MAX_OUTPUTS];
    gni_gpu_use partials[2] = {c->use[0], c->use[1]};
    int n_partials = c->n_scratch > 0 || total > 1 ? 2 : 0;
    gni_job_reduce_space(r, plan->columns, &s);
    c->n_use = 0;
    memset(c->use, 0, sizeof c->use);
    memset(c->param, 0, sizeof c->param);
    *fits = reduced < INT32_MAX - 16 * 4 * GNI_JOB_THREADS &&
            plan->kept < INT32_MAX - 4 * GNI_JOB_THREADS;
    for (int i = 0; i < r->program.n_in && *fits; i++)
        *fits = gni_job_put_operand(c, &s, &r->in[i], i, plan->group, &in[i], r->program.n_in);
    gni_operand y = r->out;
    int64_t step[2], count[2];
    count[0] = r->apart > 0 ? 2 : 1;
    count[1] = plan->kept;
    step[0] = r->apart;
    step[1] = 1;
    uint32_t base = 0;
    gni_gpu_use *use = gni_job_out_use(c, 0, r->program.n_in);
    *fits = *fits && gni_job_reach(c->gpu, &y, count, step, 2, use, &base);
    if (!*fits || dry) return true;
    use->write = true;
    c->param[GNI_P_PROGRAM_OP + 9 * GNI_MAX_INPUTS] = base;
    for (int i = 0; i < n_partials; i++) *gni_job_out_use(c, 1 + i, r->program.n_in) = partials[i];
    out[0] = out[1] = GNI_K_FLAT;
    gni_job_put_space(c, &s);
    gni_job_put_program(c, &r->program, &s, in, out);
    uint32_t *k = c->param;
    k[GNI_P_PROGRAM_HOW] = ((uint32_t)r->op * 3u + (uint32_t)r->domain) |
                           (uint32_t)plan->columns << 8 | (uint32_t)plan->log_lanes << 9 |
                           (uint32_t)r->out.dtype << 16 | (r->finish.divides ? GNI_F_REDUCE_DIVIDE : 0u) |
                           (r->finish.roots ? GNI_F_REDUCE_ROOT : 0u);
    k[GNI_P_REDUCE_KEPT] = (uint32_t)plan->kept;
    k[GNI_P_REDUCE_REDUCED] = (uint32_t)reduced;
    k[GNI_P_REDUCE_UNITS] = (uint32_t)plan->units;
    k[GNI_P_REDUCE_CHUNK] = (uint32_t)chunk;
    k[GNI_P_REDUCE_SPLITS] = (uint32_t)total;
    k[GNI_P_REDUCE_SPLIT0] = (uint32_t)first;
    k[GNI_P_REDUCE_INDEX0] = (uint32_t)index;
    k[GNI_P_REDUCE_APART] = (uint32_t)r->apart;
    if (r->moments) gni_job_put_moments(k, r, plan, reduced);
    else gni_job_put_real(k + GNI_P_REDUCE_COUNT, r, r->finish.divisor);
    gni_job_reduce_modules(c, r, &s);
    if (GNI_TEXTS(c->gpu) && total > 1) c->special.spec[GNI_P_PROGRAM_HOW] |= GNI_F_REDUCE_PARTIAL;
    c->waits = r->compiled;
    return gni_job_dispatch(c, gni_job_pipeline(c), plan->blocks, splits, 1);
}

// Where no workgroup can wait for the others: joins the partial results of all.
static bool gni_job_reduce_join(gni_job_call *c, const gni_job_plan *plan) {
    uint32_t *w = c->special.spec;
    w[GNI_P_PROGRAM_COUNTS] = 1u << 4; // one output, and nothing else
    w[GNI_P_PROGRAM_IN_DTYPES] = w[GNI_P_PROGRAM_IN_KINDS] = 0;
    w[GNI_P_PROGRAM_HOW] = (w[GNI_P_PROGRAM_HOW] & ~GNI_F_REDUCE_PARTIAL) | GNI_F_REDUCE_JOIN;
    c->special.n_spec = GNI_P_PROGRAM_STEPS;
    return gni_job_dispatch(c, gni_job_pipeline(c), plan->blocks, 1, 1);
}

// The outermost reduced dimension in pieces of `step`, in dispatches that finish together.
static bool gni_job_reduce_pieces(gni_gpu *gpu, const gni_reduce *r, const gni_job_plan *plan,
                                  int64_t reduced, int64_t step) {
    gni_job_call c;
    int64_t extent = r->kept < r->rank ? r->dim[r->kept] : 1,
            inner = extent > 0 ? reduced / extent : 0;
    int64_t chunk = 1, last_chunk = 1, pieces = GNI_MAX(gni_job_ceil(extent, GNI_MAX(step, 1)), 1);
    int64_t rest = extent - (pieces - 1) * step, per_step = plan->columns ? 1 : plan->group;
    int64_t splits =
        gni_job_splits(gpu, plan, gni_job_ceil(GNI_MIN(step, extent) * inner, per_step), &chunk);
    int64_t last = gni_job_splits(gpu, plan, gni_job_ceil(rest * inner, per_step), &last_chunk);
    int64_t total = (pieces - 1) * splits + last;
    bool ok = true, fits = true;
    uint32_t counter = 0;
    gni_job_open(&c, gpu);
    if (total > 1) {
        ok = gni_job_scratch(&c, (uint64_t)(plan->units * total) * (r->apart > 0 ? 64 : 32), "partial results") &&
             (GNI_TEXTS(gpu) || gni_job_counters(&c, plan->blocks, &counter));
    }
    gni_gpu_use scratch[2] = {c.use[0], c.use[1]};
    for (int64_t i = 0; i < pieces && ok; i++) {
        gni_reduce part = *r;
        int64_t start = i * step, count = i + 1 < pieces ? step : rest;
        if (pieces > 1) {
            part.dim[r->kept] = count;
            for (int k = 0; k < r->program.n_in; k++)
                part.in[k].offset += start * r->in[k].stride[r->kept];
        }
        c.use[0] = scratch[0];
        c.use[1] = scratch[1];
        bool at_end = i + 1 == pieces;
        ok = gni_job_reduce_piece(&c, &part, plan, count * inner, start * inner,
                                  at_end ? last_chunk : chunk, at_end ? last : splits, i * splits,
                                  total, false, &fits) &&
             fits;
    }
    if (ok && GNI_TEXTS(gpu) && total > 1) ok = gni_job_reduce_join(&c, plan);
    gni_job_drop_scratch(&c);
    return ok;
}

static void gni_job_swap_dims(gni_reduce *r, int a, int b) {
    int64_t t = r->dim[a];
    r->dim[a] = r->dim[b];
    r->dim[b] = t;
    for (int i = 0; i < r->program.n_in; i++) {
        t = r->in[i].stride[a];
        r->in[i].stride[a] = r->in[i].stride[b];
        r->in[i].stride[b] = t;
    }
}

// The reduced dimension along which an input reaches furthest; the first where their order tells the result's.
static int gni_job_widest_reduced(const gni_reduce *r) {
    if (r->op == GNI_RED_ARGMIN || r->op == GNI_RED_ARGMAX) return r->kept;
    const gni_operand *op[GNI_MAX_INPUTS];
    for (int i = 0; i < r->program.n_in; i++) op[i] = &r->in[i];
    return GNI_MAX(r->kept, gni_job_widest(r->dim, r->kept, r->rank, op, r->program.n_in));
}

static bool gni_job_reduce(gni_gpu *gpu, const gni_reduce *r) {
    gni_job_call c;
    gni_job_plan plan;
    int64_t kept = 1, reduced = 1;
    for (int i = 0; i < r->kept; i++) kept *= r->dim[i];
    for (int i = r->kept; i < r->rank; i++) reduced *= r->dim[i];
    if (kept == 0) return true;
    gni_job_reduce_plan(gpu, r, kept, reduced, &plan);
    gni_job_open(&c, gpu);
    bool fits = false;
    int64_t extent = r->kept < r->rank ? r->dim[r->kept] : 1, step = extent;
    for (;;) {
        gni_reduce part = *r;
        if (r->kept < r->rank) part.dim[r->kept] = step;
        int64_t some = extent > 0 ? reduced / extent * step : 0;
        gni_job_reduce_piece(&c, &part, &plan, some, 0, 1, 1, 0, 1, true, &fits);
        if (fits) return gni_job_reduce_pieces(gpu, r, &plan, reduced, step);
        if (step <= 1 || r->moments) break;
        step = gni_job_half(step);
    }
    // Cutting the outermost reduced dimension was not enough.
    if (r->moments) return false;
    gni_reduce part = *r;
    int widest = gni_job_widest_reduced(r);
    if (widest > r->kept) {
        gni_job_swap_dims(&part, r->kept, widest);
        return gni_job_reduce(gpu, &part);
    }
    if (r->kept > 1 && r->dim[0] == 1) {
        for (int i = 1; i < r->rank; i++) gni_job_swap_dims(&part, i - 1, i);
        part.kept--;
        part.rank--;
        return gni_job_reduce(gpu, &part);
    }
    if (r->kept == 0 || r->dim[0] < 2) return false;
    int64_t half = gni_job_half(r->dim[0]);
    part.dim[0] = half;
    if (!gni_job_reduce(gpu, &part)) return false;
    part.dim[0] = r->dim[0] - half;
    part.out.offset += half * (kept / r->dim[0]);
    for (int i = 0; i < r->program.n_in; i++) part.in[i].offset += half * r->in[i].stride[0];
    return gni_job_reduce(gpu, &part);
}

// Whether the reduced dimensions reach further than a kernel does, whatever the one that is cut is cut to.
static bool gni_job_reduce_is_far(const gni_gpu *gpu, const gni_reduce *r) {
    int cut = gni_job_widest_reduced(r);
    for (int i = 0; i < r->program.n_in; i++) {
        int64_t size = (int64_t)gn_dtype_size(r->in[i].dtype), reach = size;
        for (int d = r->kept; d < r->rank; d++) {
            int64_t step = r->in[i].stride[d] * size;
            if (d != cut) reach += (r->dim[d] - 1) * (step < 0 ? -step : step);
        }
        if (reach > gni_job_most_bytes(gpu)) return true;
    }
    return false;
}

// Whether one dispatch reaches all inputs.
static bool gni_job_at_once(const gni_gpu *gpu, const gni_reduce *r) {
    gni_gpu_use use;
    uint32_t base;
    int64_t n = 1;
    for (int i = 0; i < r->rank; i++) n *= r->dim[i];
    for (int i = 0; i < r->program.n_in; i++)
        if (!gni_job_reach(gpu, &r->in[i], r->dim, r->in[i].stride, r->rank, &use, &base)) return false;
    return n < INT32_MAX / 2;
}

static bool gni_job_reduce_ok(const gni_gpu *gpu, const gni_reduce *r) {
    gn_dtype t = r->out.dtype;
    bool wide = r->program.wide, index = r->op == GNI_RED_ARGMIN || r->op == GNI_RED_ARGMAX;
    if (!gni_job_program_ok(gpu, &r->program, GNI_TEXTS(gpu) ? 1 : 3) || gni_is_complex(t)) return false;
    if (gni_job_reduce_is_far(gpu, r) || (r->apart > 0 && GNI_TEXTS(gpu))) return false;
    if (r->moments && !gni_job_at_once(gpu, r)) return false;
    if (wide && GNI_TEXTS(gpu) && r->domain != GNI_F) { // words: no places, no extremes of uint32
        if (index) return false;
        if (r->op == GNI_RED_MIN || r->op == GNI_RED_MAX) return t != GN_U32;
        if (r->op == GNI_RED_SUM || r->op == GNI_RED_PROD) return t == GN_I64 || t == GN_U64;
    }
    if (index) return t == GN_I32 || t == GN_I64;
    if (r->op == GNI_RED_ANY || r->op == GNI_RED_ALL) return t == GN_BOOL;
    if (r->domain == GNI_F) return t == GN_F32 || gni_job_is_half(t) || (wide && t == GN_F64 && gpu->caps.float64);
    return t != GN_F32 && t != GN_F64 && !gni_job_is_half(t) && !(wide && r->domain == GNI_U);
}

#endif // GNI_GPU
