// >>gpu_rows
// Jobs on a GPU that look at a row as a whole: softmax and its kin, norms and their gradients.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../gpu/gpu_jobs.h"
#endif

#if GNI_GPU

// ---- softmax

enum { GNI_ROWS_LONGEST = 16384 }; // of those in registers

static bool gni_job_softmax_ok(const gni_gpu *gpu, const gni_softmax *s) {
    gn_dtype t = s->in.dtype;
    return (t == GN_F32 || gni_job_is_half(t)) && s->n < INT32_MAX / 2 &&
           s->n * (int64_t)gn_dtype_size(t) <= gni_job_most_bytes(gpu);
}

static bool gni_job_softmax_long(gni_job_call *c, int64_t rows, int64_t n) {
    gni_gpu *gpu = c->gpu;
    bool ok = true;
    int64_t groups = gni_job_ceil(n, 4);
    int64_t splits = GNI_MIN(GNI_MIN(gni_job_enough(gpu) / rows, groups / 1024), 256);
    int64_t chunk = splits > 1 ? gni_job_ceil(groups, splits) : groups;
    splits = gni_job_ceil(groups, chunk);
    c->generic.module = GNI_MODULE_softmax_long;
    c->generic.n_spec = GNI_S_SOFTMAX_PHASE + 1;
    c->generic.spec[GNI_S_SOFTMAX_PHASE] =
        splits > 1 ? GNI_F_SOFTMAX_MEASURES : GNI_F_SOFTMAX_MEASURES | GNI_F_SOFTMAX_WRITES;
    c->param[GNI_P_SOFTMAX_SPLITS] = (uint32_t)splits;
    c->param[GNI_P_SOFTMAX_CHUNK] = (uint32_t)chunk;
    if (splits > 1) ok = gni_job_scratch(c, (uint64_t)(rows * splits) * 8, "partial results");
    ok = ok &&
         gni_job_dispatch(c, gni_gpu_pipeline_get(gpu, &c->generic, GNI_GPU_WAIT), rows, splits, 1);
    if (ok && splits > 1) {
        c->generic.spec[GNI_S_SOFTMAX_PHASE] = GNI_F_SOFTMAX_WRITES;
        c->use[2].write = !gpu->caps.addresses; // bindings cannot tell
        if (c->generic.spec[GNI_S_SOFTMAX_KIND] == GNI_LOGSUMEXP) splits = 1;
        ok = gni_job_dispatch(c, gni_gpu_pipeline_get(gpu, &c->generic, GNI_GPU_WAIT), rows, splits,
                              1);
    }
    gni_job_drop_scratch(c);
    return ok;
}

static bool gni_job_softmax_rows(gni_gpu *gpu, const gni_softmax *s);

static bool gni_job_softmax(gni_gpu *gpu, const gni_softmax *s) {
    gni_job_call c;
    const int64_t out_n = s->kind == GNI_LOGSUMEXP ? 2 : s->n;
    int64_t dim[2], out_dim[2], in_stride[2], out_stride[2];
    if (s->rows == 0 || s->n == 0) return true;
    if (s->n > 16 && s->row_stride == s->n && gpu->caps.subgroup_shuffle && !GNI_TEXTS(gpu) && s->n <= GNI_ROWS_LONGEST / 2)
        return gni_job_softmax_rows(gpu, s);
    gni_job_open(&c, gpu);
    dim[0] = out_dim[0] = s->rows;
    dim[1] = s->n;
    in_stride[0] = s->row_stride;
    out_stride[0] = out_dim[1] = out_n;
    in_stride[1] = out_stride[1] = 1;
    uint32_t *in = &c.param[GNI_P_SOFTMAX_IN_BASE], *out = &c.param[GNI_P_SOFTMAX_OUT_BASE];
    if (!gni_job_reach(gpu, &s->in, dim, in_stride, 2, &c.use[0], in) ||
        !gni_job_reach(gpu, &s->out, out_dim, out_stride, 2, &c.use[1], out) ||
        s->rows >= INT32_MAX / 2) {
        gni_softmax part = *s;
        if (s->rows < 2) return false;
        part.rows = s->rows / 2;
        if (!gni_job_softmax(gpu, &part)) return false;
        part.in.offset += part.rows * s->row_stride;
        part.out.offset += part.rows * out_n;
        part.rows = s->rows - part.rows;
        return gni_job_softmax(gpu, &part);
    }
    c.use[1].write = true;
    c.n_use = 2;
    c.n_param = GNI_P_SOFTMAX_WORDS;
    c.param[GNI_P_SOFTMAX_ROWS] = (uint32_t)s->rows;
    c.param[GNI_P_SOFTMAX_N] = (uint32_t)s->n;
    c.param[GNI_P_SOFTMAX_ROW_STRIDE] = (uint32_t)s->row_stride;
    // A team is as small as 4 vectors in each lane's registers allow.
    bool wide = s->n > 8192 && s->n <= 16384 && gpu->caps.max_invocations >= 512;
    int log_threads = wide ? 9 : 8;
    int log_lanes = GNI_MIN(gni_job_log2_up(gni_job_ceil(s->n, s->n <= 16 ? 4 : 16)), log_threads);
    c.generic.spec[GNI_S_SOFTMAX_KIND] = (uint32_t)s->kind;
    c.generic.spec[GNI_S_SOFTMAX_DTYPE] = (uint32_t)s->in.dtype | (uint32_t)s->out.dtype << 4;
    c.generic.spec[GNI_S_SOFTMAX_LOG_LANES] = (uint32_t)log_lanes;
    if (s->n > 8192 && !wide) return gni_job_softmax_long(&c, s->rows, s->n); // which looks where each row begins
    bool in_groups = *in % 4 == 0 && (s->rows == 1 || s->row_stride % 4 == 0);
    bool out_groups = *out % 4 == 0 && s->n % 4 == 0;
    c.generic.spec[GNI_S_SOFTMAX_ALIGNED] = gni_job_flag(in_groups, GNI_F_SOFTMAX_IN_GROUPS) |
                                            gni_job_flag(out_groups, GNI_F_SOFTMAX_OUT_GROUPS);
    c.generic.n_spec = GNI_S_SOFTMAX_PHASE;
    c.generic.module = s->n <= 16     ? GNI_MODULE_softmax_1
                       : s->n <= 4096 ? GNI_MODULE_softmax_4
                       : wide         ? GNI_MODULE_softmax_wide
                                      : GNI_MODULE_softmax_8;
    int64_t groups = gni_job_ceil(s->rows, (int64_t)1 << (log_threads - log_lanes));
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT), groups, 1, 1);
}

// ---- rows

static bool gni_job_rows_ok(const gni_gpu *gpu, const gni_rows *r) {
    const int64_t most = gpu->caps.max_invocations >= 512 ? GNI_ROWS_LONGEST : GNI_ROWS_LONGEST / 2;
    const gn_dtype t = r->x.dtype;
    if (GNI_TEXTS(gpu) || !gpu->caps.subgroup_shuffle || r->n < 1 || r->n > most) return false;
    return (t == GN_F32 || gni_job_is_half(t)) && (r->stretches == 0 || r->period * r->n < GNI_GPU_REACH / 8);
}

// Which kernel, and how many lanes share a row. Returns log2 of that and of a workgroup's lanes. Four vectors in a lane are
// faster than eight, but where short rows are only read.
static int gni_job_rows_plan(int64_t n, bool reads, int *module, int *log_threads) {
    const bool few = n <= 4096 && (!reads || n > 1024);
    *module = few ? GNI_MODULE_rows_4 : n <= 8192 ? GNI_MODULE_rows_8 : GNI_MODULE_rows_wide;
    *log_threads = n <= 8192 ? 8 : 9;
    return GNI_MIN(gni_job_log2_up(gni_job_ceil(n, few ? 16 : 32)), *log_threads);
}

static bool gni_job_rows(gni_gpu *gpu, const gni_rows *r) {
    const gni_operand *const all[GNI_P_ROWS_OPERANDS] = {&r->x, &r->gy, &r->weight, &r->bias, &r->mean, &r->scale, &r->out};
    const bool pairs = r->kind == GNI_ROWS_LOGSUMEXP, sums = pairs || r->kind == GNI_ROWS_VARIANCE,
               writes = r->kind == GNI_ROWS_NORM || r->kind == GNI_ROWS_RMS;
    const int64_t out_n = pairs ? 2 : sums ? 1 : r->n;
    gni_job_call c;
    uint32_t *p = c.param, how = GNI_F_ROWS_GROUPS | GNI_F_ROWS_WEIGHT_GROUPS;
    bool fits = r->rows < INT32_MAX / 2;
    if (r->rows == 0 || r->n == 0) return true;
    gni_job_open(&c, gpu);
    for (int i = 0; i < GNI_P_ROWS_OPERANDS && fits; i++) {
        const bool weight = i == 2 || i == 3, row = i == 4 || i == 5 || (i == 6 && sums);
        int64_t dim[2], stride[2];
        c.use[i] = c.use[0];
        if (all[i]->buf == NULL) continue;
        dim[0] = weight ? GNI_MAX(r->period, 1) : r->rows;
        dim[1] = i == 6 ? out_n : row ? 1 : weight && r->stretches > 0 ? r->stretches : r->n;
        stride[0] = weight ? r->stretches : dim[1];
        stride[1] = 1;
        fits = gni_job_reach(gpu, all[i], dim, stride, 2, &c.use[i], &p[GNI_P_ROWS_BASE + i]);
        c.use[i].write = i == 6 || (writes && row);
        const bool groups = p[GNI_P_ROWS_BASE + i] % 4 == 0 && (weight || r->rows == 1 || r->n % 4 == 0);
        if (!row && !groups) how &= ~(weight ? GNI_F_ROWS_WEIGHT_GROUPS : GNI_F_ROWS_GROUPS);
    }
    if (!fits) {
        gni_rows part = *r;
        gni_operand *const op[GNI_P_ROWS_OPERANDS] = {&part.x,    &part.gy,    &part.weight, &part.bias,
                                                      &part.mean, &part.scale, &part.out};
        const int64_t period = GNI_MAX(r->period, 1), first = r->rows / 2 / period * period;
        if (first == 0) return false;
        part.rows = first;
        if (!gni_job_rows(gpu, &part)) return false;
        for (int i = 0; i < GNI_P_ROWS_OPERANDS; i++)
            if (i != 2 && i != 3) op[i]->offset += first * (i == 6 ? out_n : i == 4 || i == 5 ? 1 : r->n);
        part.rows = r->rows - first;
        return gni_job_rows(gpu, &part);
    }
    const float eps = (float)r->eps;
    int log_threads;
    c.n_use = GNI_P_ROWS_OPERANDS;
    c.n_param = GNI_P_ROWS_WORDS;
    p[GNI_P_ROWS_ROWS] = (uint32_t)r->rows;
    p[GNI_P_ROWS_N] = (uint32_t)r->n;
    memcpy(&p[GNI_P_ROWS_EPS], &eps, sizeof eps);
    p[GNI_P_ROWS_PERIOD] = (uint32_t)GNI_MAX(r->period, 1);
    p[GNI_P_ROWS_STRETCHES] = (uint32_t)r->stretches;
    p[GNI_P_ROWS_INNER] = (uint32_t)r->inner;
    const int log_lanes = gni_job_rows_plan(r->n, r->kind == GNI_ROWS_VARIANCE, &c.generic.module, &log_threads);
    c.generic.n_spec = GNI_S_ROWS_SPECS;
    c.generic.spec[GNI_S_ROWS_KIND] = (uint32_t)r->kind;
    c.generic.spec[GNI_S_ROWS_DTYPES] = (uint32_t)r->x.dtype | (uint32_t)r->gy.dtype << 4 | (uint32_t)r->out.dtype << 8 |
                                        (uint32_t)r->weight.dtype << 12 | (uint32_t)r->bias.dtype << 16;
    c.generic.spec[GNI_S_ROWS_LOG_LANES] = (uint32_t)log_lanes;
    c.generic.spec[GNI_S_ROWS_HOW] = how | gni_job_flag(r->weight.buf != NULL, GNI_F_ROWS_WEIGHT) |
                                     gni_job_flag(r->bias.buf != NULL, GNI_F_ROWS_BIAS) |
                                     gni_job_flag(r->stretches > 0, GNI_F_ROWS_STRETCHES) |
                                     gni_job_flag(r->root, GNI_F_ROWS_ROOT);
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT),
                            gni_job_ceil(r->rows, (int64_t)1 << (log_threads - log_lanes)), 1, 1);
}

// A softmax as that.
static bool gni_job_softmax_rows(gni_gpu *gpu, const gni_softmax *s) {
    GNI_ZEROED(gni_rows, r);
    r.kind = (int)s->kind;
    r.rows = s->rows;
    r.n = s->n;
    r.x = s->in;
    r.out = s->out;
    return gni_job_rows(gpu, &r);
}

#endif // GNI_GPU
