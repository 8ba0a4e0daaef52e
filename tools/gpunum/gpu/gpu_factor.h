// >>gpu_factor
// Decompositions on the GPU, as far as they are no products: batches of eigenvalues and singular values (eigen.glsl),
// reflections that make large matrices tridiagonal or bidiagonal (reflect.comp, reflect_load.comp), panels, triangles and
// batches of small matrices (factor.comp, factor_small.glsl).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../gpu/gpu_jobs.h"
#endif

#if GNI_GPU

// ---- eigenvalues and singular values of batches

// How a matrix lies in a workgroup: as many as fit into 32 invocations share one.
typedef struct gni_job_eigen_plan {
    uint32_t size;              // rows and columns
    uint32_t pairs;             // of columns, in an invocation
    uint32_t threads, matrices; // of a workgroup
    uint32_t shared;            // bytes
} gni_job_eigen_plan;

static bool gni_job_eigen_fit(const gni_gpu_caps *c, const gni_factor *f, gni_job_eigen_plan *p) {
    if (f->order > 128) return false;
    for (p->size = 8; (int64_t)p->size < f->order;) p->size *= 2;
    p->pairs = p->size == 8 ? 4 : p->size == 128 ? 16 : 8;
    const uint32_t half = p->size / 2, own = p->size * (half / p->pairs);
    p->matrices = own < 32 ? 32 / own : 1;
    p->threads = own * p->matrices;
    const uint32_t numbers = p->size * (half + 1) + 5 * own + 3 * p->size;
    const uint32_t bytes = (uint32_t)gn_dtype_size(f->a.dtype);
    p->shared = p->matrices * (numbers * bytes + (p->size + 1) * 4);
    return p->threads <= c->max_invocations && p->threads <= c->max_size[0] &&
           p->shared <= c->shared_bytes;
}

static bool gni_job_eigen_reaches(const gni_operand *o) {
    return o->buf == NULL || o->buf->bytes < (uint64_t)GNI_GPU_REACH;
}

static bool gni_job_eigen_ok(const gni_gpu *gpu, const gni_factor *f) {
    const gni_gpu_caps *c = &gpu->caps;
    gni_job_eigen_plan p;
    if (!(f->a.dtype == GN_F64 ? c->float64 : f->a.dtype == GN_F32)) return false;
    if (c->max_buffers < 5 || !c->addresses || !gni_job_eigen_fit(c, f, &p)) return false;
    return gni_job_eigen_reaches(&f->a) && gni_job_eigen_reaches(&f->b) &&
           gni_job_eigen_reaches(&f->c) && gni_job_eigen_reaches(&f->d) &&
           gni_job_eigen_reaches(&f->e);
}

static bool gni_job_eigen(gni_gpu *gpu, const gni_factor *f) {
    const gni_operand *operands[5];
    gni_job_call c;
    gni_job_eigen_plan p;
    if (!gni_job_eigen_fit(&gpu->caps, f, &p)) return false;
    memset(&c, 0, sizeof c);
    operands[0] = &f->a;
    operands[1] = &f->b;
    operands[2] = &f->c;
    operands[3] = f->d.buf != NULL ? &f->d : &f->b;
    operands[4] = f->e.buf != NULL ? &f->e : &f->b;
    for (int i = 0; i < 5; i++) {
        c.use[i].mem = &operands[i]->buf->device;
        c.use[i].bytes = operands[i]->buf->bytes;
        c.use[i].write = i > 0;
    }
    c.gpu = gpu;
    c.n_use = 5;
    c.n_param = GNI_FACTOR_WORDS;
    for (int i = 0; i < GNI_FACTOR_WORDS; i++) c.param[i] = (uint32_t)f->word[i];
    c.generic.module = f->a.dtype == GN_F64 ? GNI_MODULE_eigen64 : GNI_MODULE_eigen;
    c.generic.n_spec = GNI_S_EIGEN_SPECS;
    c.generic.spec[GNI_S_EIGEN_SIZE] = p.size;
    c.generic.spec[GNI_S_EIGEN_PAIRS] = p.pairs;
    c.generic.spec[GNI_S_EIGEN_MODE] =
        (uint32_t)((int)f->step - (int)GNI_FACTOR_SINGULAR);
    c.generic.spec[GNI_S_EIGEN_THREADS] = p.threads;
    const int64_t groups = gni_job_ceil(f->items, (int64_t)p.matrices);
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT), groups,
                            gni_job_ceil(groups, (int64_t)gpu->caps.max_groups[0]), 1);
}

// ---- reflections

// Words of GNI_FACTOR_SIZE and GNI_FACTOR_LOAD are GNI_P_LOAD_, of GNI_FACTOR_REFLECT GNI_REFLECT_.

enum { GNI_JOB_REFLECT_ROWS = 64, GNI_JOB_REFLECT_SUBGROUPS = 32 }; // of a workgroup, at most

static bool gni_job_reflect_ok(const gni_gpu *gpu, const gni_factor *f) {
    const gni_gpu_caps *c = &gpu->caps;
    const gni_operand *o[3];
    if (!(f->a.dtype == GN_F64 ? c->float64 : f->a.dtype == GN_F32)) return false;
    if (!c->subgroup_arithmetic || c->max_invocations < 256 || c->shared_bytes < 32768u)
        return false;
    // The matrix and its transpose, or the vectors of both sides; of an order below 2^20.
    const uint64_t order = (uint64_t)f->order + 256u;
    const uint64_t most = 2u * order * order * (uint64_t)gn_dtype_size(f->a.dtype);
    if (order >= (uint64_t)1 << 20 || most >= (uint64_t)GNI_GPU_REACH) return false;
    if (!c->addresses && most > c->max_storage_range) return false;
    o[0] = &f->a;
    o[1] = &f->b;
    o[2] = &f->c;
    for (int i = 0; i < 3; i++) {
        if (o[i]->buf == NULL) continue;
        if (o[i]->buf->bytes >= (uint64_t)GNI_GPU_REACH) return false;
        if (!c->addresses && o[i]->buf->bytes > c->max_storage_range) return false;
    }
    return true;
}

static void gni_job_reflect_call(gni_job_call *c, gni_gpu *gpu, const gni_factor *f) {
    const gni_operand *o[3] = {&f->a, &f->b, &f->c};
    gni_job_open(c, gpu);
    for (int i = 0; i < 3 && o[i]->buf != NULL; i++) {
        c->use[i].mem = &o[i]->buf->device;
        c->use[i].bytes = o[i]->buf->bytes;
        c->n_use = i + 1;
    }
}

static bool gni_job_reflect_size(gni_gpu *gpu, const gni_factor *f) {
    gni_job_call c;
    gni_job_reflect_call(&c, gpu, f);
    c.use[1].write = true;
    c.n_param = GNI_P_LOAD_SIZE_WORDS;
    for (int i = 0; i < GNI_P_LOAD_SIZE_WORDS; i++) c.param[i] = (uint32_t)f->word[i];
    c.generic.module = f->a.dtype == GN_F64 ? GNI_MODULE_reflect_size64 : GNI_MODULE_reflect_size;
    const int64_t groups = f->word[GNI_P_LOAD_M];
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT), groups,
                            gni_job_ceil(groups, (int64_t)gpu->caps.max_groups[0]), 1);
}

static bool gni_job_reflect_load(gni_gpu *gpu, const gni_factor *f) {
    gni_job_call c;
    gni_gpu_use to;
    gni_job_reflect_call(&c, gpu, f);
    to = c.use[1]; // the kernel has the state in front
    c.use[1] = c.use[2];
    c.use[2] = to;
    c.use[2].write = true;
    c.n_param = GNI_P_LOAD_WORDS;
    for (int i = 0; i < GNI_P_LOAD_WORDS; i++) c.param[i] = (uint32_t)f->word[i];
    c.generic.module = f->a.dtype == GN_F64 ? GNI_MODULE_reflect_load64 : GNI_MODULE_reflect_load;
    const int64_t *w = f->word;
    const int64_t groups =
        w[GNI_P_LOAD_M] + (w[GNI_P_LOAD_TRANSPOSED_LD] != 0 ? w[GNI_P_LOAD_N] : 0);
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT), groups,
                            gni_job_ceil(groups, (int64_t)gpu->caps.max_groups[0]), 1);
}

// Kernels for short rows, whose invocations are few and sooner together, and for long ones.
typedef struct gni_job_reflect_kernels {
    gni_gpu_pipeline *few, *many;
    int64_t bytes; // of a number
} gni_job_reflect_kernels;

// A dispatch of reflect.comp, for the rows that are multiplied. Of very long ones two workgroups to a multiprocessor
// read more at a time.
static bool gni_job_reflect_step(gni_job_call *c, const gni_job_reflect_kernels *k, int64_t begin,
                                 int64_t end) {
    const int64_t rows = GNI_MAX(end - begin, 0), most = GNI_JOB_REFLECT_ROWS;
    const int64_t columns = c->param[GNI_P_REFLECT_COLUMNS],
                  line = (columns - (int64_t)c->param[GNI_P_REFLECT_ROW]) * k->bytes;
    const int64_t groups =
        GNI_MAX((int64_t)c->gpu->caps.multiprocessors, 1) * (line > 8192 ? 2 : 1);
    gni_gpu_pipeline *p = line > 4096 ? k->many : k->few;
    const int64_t share = GNI_MAX(GNI_MIN(gni_job_ceil(rows, groups), most), 2);
    c->param[GNI_P_REFLECT_BEGIN] = (uint32_t)begin;
    c->param[GNI_P_REFLECT_END] = (uint32_t)end;
    c->param[GNI_P_REFLECT_SHARE] = (uint32_t)share;
    return gni_job_dispatch(c, p, GNI_MAX(gni_job_ceil(rows, share), 1), 1, 1);
}

// Where things are: the matrix and its transpose, numbers, vectors, their products with the matrix, zeros.
typedef struct gni_job_reflect_plan {
    int64_t m, n, matrix, ld, transposed, ld_transposed, numbers, left, right, raw, raw_ld, zero;
} gni_job_reflect_plan;

static bool gni_job_reflect_symmetric(gni_job_call *c, const gni_job_reflect_kernels *k,
                                      const gni_job_reflect_plan *l) {
    uint32_t *w = c->param;
    w[GNI_P_REFLECT_BASE] = (uint32_t)l->matrix;
    w[GNI_P_REFLECT_LD] = (uint32_t)l->ld;
    w[GNI_P_REFLECT_COLUMNS] = (uint32_t)l->n;
    for (int64_t j = 0; j < l->n; j++) {
        w[GNI_P_REFLECT_ROW] = (uint32_t)j;
        w[GNI_P_REFLECT_FIRST] = (uint32_t)(j + 1);
        const int64_t plain = j > 0 ? l->left + (j - 1) * l->ld : l->zero;
        const int64_t raw = j > 0 ? l->raw + (j + 1) % 2 * l->raw_ld : l->zero;
        w[GNI_P_REFLECT_PLAIN_A] = w[GNI_P_REFLECT_PLAIN_B] = (uint32_t)plain;
        w[GNI_P_REFLECT_RAW_A] = w[GNI_P_REFLECT_RAW_B] = (uint32_t)raw;
        w[GNI_P_REFLECT_V] = (uint32_t)(l->left + j * l->ld);
        w[GNI_P_REFLECT_PRODUCT] = (uint32_t)(l->raw + j % 2 * l->raw_ld);
        w[GNI_P_REFLECT_NUMBERS] = (uint32_t)(l->numbers + 2 * j);
        if (!gni_job_reflect_step(c, k, j + 1, l->n)) return false;
    }
    return true;
}

// Columns by rows of the transpose, then rows. Products of two rounds are there: y, y, x, x.
static bool gni_job_reflect_both(gni_job_call *c, const gni_job_reflect_kernels *k,
                                 const gni_job_reflect_plan *l) {
    uint32_t *w = c->param;
    for (int64_t j = 0; j < l->n; j++) {
        const int64_t last = (j + 1) % 2, next = j % 2;
        const uint32_t left = (uint32_t)(j > 0 ? l->left + (j - 1) * l->ld_transposed : l->zero),
                       right = (uint32_t)(j > 0 ? l->right + (j - 1) * l->ld : l->zero),
                       y = (uint32_t)(j > 0 ? l->raw + last * l->raw_ld : l->zero),
                       x = (uint32_t)(j > 0 ? l->raw + (2 + last) * l->raw_ld : l->zero),
                       next_left = (uint32_t)(l->left + j * l->ld_transposed),
                       next_y = (uint32_t)(l->raw + next * l->raw_ld);
        w[GNI_P_REFLECT_BASE] = (uint32_t)l->transposed;
        w[GNI_P_REFLECT_LD] = (uint32_t)l->ld_transposed;
        w[GNI_P_REFLECT_ROW] = w[GNI_P_REFLECT_FIRST] = (uint32_t)j;
        w[GNI_P_REFLECT_COLUMNS] = (uint32_t)l->m;
        w[GNI_P_REFLECT_PLAIN_A] = left;
        w[GNI_P_REFLECT_RAW_A] = y;
        w[GNI_P_REFLECT_PLAIN_B] = right;
        w[GNI_P_REFLECT_RAW_B] = x;
        w[GNI_P_REFLECT_V] = next_left;
        w[GNI_P_REFLECT_PRODUCT] = next_y;
        w[GNI_P_REFLECT_NUMBERS] = (uint32_t)(l->numbers + 4 * j);
        if (!gni_job_reflect_step(c, k, j + 1, l->n)) return false;
        if (j + 1 == l->n) break;
        w[GNI_P_REFLECT_BASE] = (uint32_t)l->matrix;
        w[GNI_P_REFLECT_LD] = (uint32_t)l->ld;
        w[GNI_P_REFLECT_FIRST] = (uint32_t)(j + 1);
        w[GNI_P_REFLECT_COLUMNS] = (uint32_t)l->n;
        w[GNI_P_REFLECT_PLAIN_A] = right;
        w[GNI_P_REFLECT_RAW_A] = x;
        w[GNI_P_REFLECT_PLAIN_B] = next_left;
        w[GNI_P_REFLECT_RAW_B] = next_y;
        w[GNI_P_REFLECT_V] = (uint32_t)(l->right + j * l->ld);
        w[GNI_P_REFLECT_PRODUCT] = (uint32_t)(l->raw + (2 + next) * l->raw_ld);
        w[GNI_P_REFLECT_NUMBERS] += 2;
        if (!gni_job_reflect_step(c, k, j + 1, l->m)) return false;
    }
    return true;
}

static bool gni_job_reflect(gni_gpu *gpu, const gni_factor *f) {
    gni_job_call c;
    gni_job_reflect_plan l;
    const int64_t *w = f->word;
    l.m = w[GNI_REFLECT_M];
    l.n = w[GNI_REFLECT_N];
    l.matrix = w[GNI_REFLECT_MATRIX];
    l.ld = w[GNI_REFLECT_LD];
    l.transposed = w[GNI_REFLECT_TRANSPOSED];
    l.ld_transposed = w[GNI_REFLECT_LD_TRANSPOSED];
    l.numbers = w[GNI_REFLECT_NUMBERS];
    l.left = w[GNI_REFLECT_LEFT];
    l.right = w[GNI_REFLECT_RIGHT];
    l.raw = w[GNI_REFLECT_RAW];
    l.raw_ld = w[GNI_REFLECT_RAW_LD];
    l.zero = w[GNI_REFLECT_ZERO];
    gni_job_reflect_call(&c, gpu, f);
    c.use[0].write = c.use[1].write = true;
    c.n_param = GNI_P_REFLECT_WORDS;
    c.generic.module = f->a.dtype == GN_F64 ? GNI_MODULE_reflect64 : GNI_MODULE_reflect;
    c.generic.n_spec = GNI_S_REFLECT_SPECS;
    const uint32_t most = GNI_MIN(GNI_JOB_REFLECT_SUBGROUPS * GNI_MAX(gpu->caps.subgroup_min, 1u),
                                  GNI_MIN(gpu->caps.max_invocations, gpu->caps.max_size[0]));
    gni_job_reflect_kernels k;
    c.generic.spec[GNI_S_REFLECT_THREADS] = GNI_MIN(256u, most);
    c.generic.spec[GNI_S_REFLECT_SYMMETRIC] = w[GNI_REFLECT_SYMMETRIC] != 0;
    k.bytes = (int64_t)gn_dtype_size(f->a.dtype);
    k.few = k.many = gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT);
    c.generic.spec[GNI_S_REFLECT_THREADS] = GNI_MIN(512u, most);
    if (l.m * k.bytes > 4096) k.many = gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT);
    if (k.few == NULL || k.many == NULL) return false;
    return w[GNI_REFLECT_SYMMETRIC] != 0 ? gni_job_reflect_symmetric(&c, &k, &l)
                                         : gni_job_reflect_both(&c, &k, &l);
}

// ---- panels and triangles

static bool gni_job_factor_reaches(const gni_gpu *gpu, const gni_operand *o) {
    if (o->buf == NULL) return true;
    return o->buf->bytes < (uint64_t)GNI_GPU_REACH &&
           (gpu->caps.addresses || o->buf->bytes <= gpu->caps.max_storage_range);
}

// The largest order of a matrix that GNI_FACTOR_CHOLESKY and those behind it take.
static int64_t gni_factor_most(gn_dtype t) { return t == GN_F64 ? 64 : 128; }

static bool gni_job_factor_ok(const gni_gpu *gpu, const gni_factor *f) {
    const gni_gpu_caps *c = &gpu->caps;
    if (f->step >= GNI_FACTOR_SIZE) return gni_job_reflect_ok(gpu, f);
    if (f->step >= GNI_FACTOR_SINGULAR) return gni_job_eigen_ok(gpu, f);
    const bool wide = f->a.dtype == GN_F64;
    if (!(wide ? c->float64 : f->a.dtype == GN_F32) || !c->subgroup_arithmetic) return false;
    if (c->max_buffers < 4 || c->shared_bytes < 32768u || c->max_invocations < 256) return false;
    if (f->order > gni_factor_most(f->a.dtype)) return false;
    if (!c->addresses && f->step >= GNI_FACTOR_CHOLESKY) return false;
    return gni_job_factor_reaches(gpu, &f->a) && gni_job_factor_reaches(gpu, &f->b) &&
           gni_job_factor_reaches(gpu, &f->c) && gni_job_factor_reaches(gpu, &f->d);
}

static void gni_job_factor_use(gni_gpu_use *use, const gni_operand *o, bool write) {
    use->mem = &o->buf->device;
    use->offset = 0;
    use->bytes = o->buf->bytes;
    use->write = write;
}

static bool gni_job_factor_run(gni_gpu *gpu, const gni_factor *f, int module, const int64_t *word,
                               int64_t groups) {
    gni_job_call c;
    gni_job_open(&c, gpu);
    const bool alone = f->step >= GNI_FACTOR_CHOLESKY, back = f->step == GNI_FACTOR_BACK;
    const int64_t most = (int64_t)gpu->caps.max_groups[0];
    gni_job_factor_use(&c.use[0], &f->a, !alone);
    gni_job_factor_use(&c.use[1], &f->b,
                       f->step != GNI_FACTOR_SOLVE && f->step != GNI_FACTOR_UPDATE);
    gni_job_factor_use(&c.use[2], &f->c, alone ? !back : f->step == GNI_FACTOR_PICK);
    if (alone) gni_job_factor_use(&c.use[3], f->d.buf != NULL ? &f->d : &f->c, !back && f->step < GNI_FACTOR_TRIANGLE);
    c.n_use = alone ? 4 : 3;
    c.n_param = GNI_FACTOR_WORDS;
    for (int i = 0; i < GNI_FACTOR_WORDS; i++) c.param[i] = (uint32_t)word[i];
    c.generic.module = module;
    if (f->step == GNI_FACTOR_TINY) {
        c.generic.n_spec = 2;
        c.generic.spec[GNI_S_TINY_ORDER] = (uint32_t)f->order;
        c.generic.spec[GNI_S_TINY_MODE] = (uint32_t)word[GNI_P_SMALL_MODE];
    }
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT), groups,
                            gni_job_ceil(groups, most), alone ? 1 : word[GNI_P_FACTOR_BATCH]);
}

// How many tiles c has.
static int64_t gni_job_factor_tiles(const gni_factor *f, int64_t size) {
    const int64_t m = gni_job_ceil(f->word[GNI_P_UPDATE_M], size),
                  n = gni_job_ceil(f->word[GNI_P_UPDATE_N], size);
    return f->word[GNI_P_UPDATE_LOWER] != 0 ? m * (m + 1) / 2 : m * n;
}

// The kernel for matrices of this order, and how many workgroups that takes.
static int gni_job_small(const gni_factor *f, int64_t *groups) {
#define GNI_X(type, step)                                                                          \
    {                                                                                              \
        GNI_MODULE_##type##_##step##_16, GNI_MODULE_##type##_##step##_32,                          \
            GNI_MODULE_##type##_##step##_64                                                        \
    }
    static const int modules[2][4][3] = {
        {GNI_X(factor, cholesky), GNI_X(factor, lu), GNI_X(factor, back), GNI_X(factor, qr)},
        {GNI_X(factor64, cholesky), GNI_X(factor64, lu), GNI_X(factor64, back),
         GNI_X(factor64, qr)}};
#undef GNI_X
    static const int largest[4] = {GNI_MODULE_factor_cholesky_128, GNI_MODULE_factor_lu_128,
                                   GNI_MODULE_factor_back_128, GNI_MODULE_factor_qr_128};
    const int wide = f->a.dtype == GN_F64, step = (int)f->step - (int)GNI_FACTOR_CHOLESKY;
    const int size = f->order <= 16 ? 0 : f->order <= 32 ? 1 : f->order <= 64 ? 2 : 3;
    *groups = f->items;
    if (f->step == GNI_FACTOR_TRIANGLE) {
        *groups = gni_job_ceil(f->items * f->word[GNI_P_SMALL_MORE], 32);
        return wide ? GNI_MODULE_factor64_triangle : GNI_MODULE_factor_triangle;
    }
    if (f->step == GNI_FACTOR_TINY) {
        *groups = gni_job_ceil(f->items, 32);
        return wide ? GNI_MODULE_factor64_tiny : GNI_MODULE_factor_tiny;
    }
    if (f->step == GNI_FACTOR_BACK)
        *groups *= gni_job_ceil(f->word[GNI_P_SMALL_MORE], 32);
    else if (size == 0)
        *groups = gni_job_ceil(f->items, 2);
    return size == 3 ? largest[step] : modules[wide][step][size];
}

static bool gni_job_factor(gni_gpu *gpu, const gni_factor *f) {
    static const int modules[2][6] = {
        {GNI_MODULE_factor_pick, GNI_MODULE_factor_swap, GNI_MODULE_factor_below,
         GNI_MODULE_factor_solve, GNI_MODULE_factor_root, GNI_MODULE_factor_update},
        {GNI_MODULE_factor64_pick, GNI_MODULE_factor64_swap, GNI_MODULE_factor64_below,
         GNI_MODULE_factor64_solve, GNI_MODULE_factor64_root, GNI_MODULE_factor64_update}};
    const bool wide = f->a.dtype == GN_F64;
    int64_t groups = 1;
    if (f->items == 0) return true;
    if (f->step == GNI_FACTOR_SIZE) return gni_job_reflect_size(gpu, f);
    if (f->step == GNI_FACTOR_LOAD) return gni_job_reflect_load(gpu, f);
    if (f->step == GNI_FACTOR_REFLECT) return gni_job_reflect(gpu, f);
    if (f->step >= GNI_FACTOR_SINGULAR) return gni_job_eigen(gpu, f);
    if (f->step >= GNI_FACTOR_CHOLESKY) {
        const int module = gni_job_small(f, &groups);
        return gni_job_factor_run(gpu, f, module, f->word, groups);
    }
    int module = modules[wide][f->step];
    if (f->step == GNI_FACTOR_PICK) {
        const bool little = gpu->caps.kind == GNI_GPU_CPU || gpu->caps.subgroup_min < 32;
        if (little) module = wide ? GNI_MODULE_factor64_pick_little : GNI_MODULE_factor_pick_little;
        groups = gni_job_ceil(f->items, little ? 128 : 512);
    } else if (f->step == GNI_FACTOR_SOLVE) {
        groups = gni_job_ceil(f->items, wide ? 16 : 32);
    } else if (f->step == GNI_FACTOR_UPDATE) {
        groups = gni_job_factor_tiles(f, 128);
        if (!wide && groups * f->word[GNI_P_FACTOR_BATCH] >= 2 * (int64_t)gpu->caps.multiprocessors)
            module = GNI_MODULE_factor_update_128;
        else
            groups = gni_job_factor_tiles(f, 64);
    } else if (f->step != GNI_FACTOR_ROOT) {
        groups = gni_job_ceil(f->items, f->step == GNI_FACTOR_BELOW ? 32 : 64);
    }
    return gni_job_factor_run(gpu, f, module, f->word, groups);
}

#endif // GNI_GPU
