// >>gpu_places
// Jobs with indices on the GPU: take and scatter, and what is told of indices that are none. A kernel sets a flag, which the
// next wait for the device's work reads.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../gpu/gpu_order.h"
#endif

#if !GNI_GPU

static bool gni_faults_begin(gn_context *g, gni_gpu_ticket *t) {
    GNI_UNUSED(g);
    GNI_UNUSED(t);
    return false;
}

static bool gni_faults_end(gn_context *g, gni_gpu_ticket *t) {
    GNI_UNUSED(g);
    GNI_UNUSED(t);
    return true;
}

#else

// ---- flags

// Its flag as the next buffer argument.
static bool gni_job_fault(gni_job_call *c, const gni_places *at) {
    gni_gpu_jobs *ops = gni_job_state(c->gpu);
    const uint64_t bytes = (uint64_t)GNI_JOB_FAULTS * GNI_JOB_FAULT_BYTES;
    if (!ops) return gni_fail_memory(c->gpu->g, at->fn, sizeof(gni_gpu_jobs));
    if (!ops->has_faults) {
        if (!gni_gpu_need(c->gpu, bytes, &ops->faults, at->fn)) return false;
        ops->has_faults = gni_gpu_fill(c->gpu, &ops->faults, 0, bytes, 0);
        if (!ops->has_faults) return false;
    }
    const int k = ops->next_fault;
    if (!at->checked) {
        ops->fault[k].fn = at->fn;
        ops->fault[k].axis = at->axis;
        ops->fault[k].extent = at->extent;
        ops->watch = true;
        ops->next_fault = (k + 1) % GNI_JOB_FAULTS;
    }
    gni_gpu_use *use = &c->use[c->n_use++];
    use->mem = &ops->faults;
    use->offset = (uint64_t)k * GNI_JOB_FAULT_BYTES;
    use->bytes = 16;
    use->write = !at->checked;
    return true;
}

// Starts to read the flags, if a job since the last time may have set one; gni_faults_end must follow then.
static bool gni_faults_begin(gn_context *g, gni_gpu_ticket *t) {
    gni_gpu_jobs *ops = g->gpu != NULL ? (gni_gpu_jobs *)g->gpu->jobs : NULL;
    memset(t, 0, sizeof *t);
    if (ops == NULL || !ops->watch || g->gpu->lost || g->host_recording) return false;
    if (!g->gpu->layer->download_begin(g->gpu, &ops->faults, 0, (uint64_t)GNI_JOB_FAULTS * GNI_JOB_FAULT_BYTES, t))
        return false;
    ops->watch = false;
    return true;
}

// Waits for them. False after gni_fail where one is set.
static bool gni_faults_end(gn_context *g, gni_gpu_ticket *t) {
    gni_gpu_jobs *ops = g->gpu != NULL ? (gni_gpu_jobs *)g->gpu->jobs : NULL;
    int found = -1;
    if (ops == NULL) return true;
    if (g->gpu->layer->ticket_ready(g->gpu, t, true))
        for (int i = 0; i < GNI_JOB_FAULTS && found < 0; i++) {
            const int k = (ops->next_fault + i) % GNI_JOB_FAULTS; // the oldest first
            uint32_t word;
            memcpy(&word, (const char *)t->data + k * GNI_JOB_FAULT_BYTES, sizeof word);
            if (word != 0) found = k;
        }
    g->gpu->layer->ticket_release(g->gpu, t);
    if (found < 0) return true;
    gni_gpu_fill(g->gpu, &ops->faults, 0, (uint64_t)GNI_JOB_FAULTS * GNI_JOB_FAULT_BYTES, 0);
    const char *by = ops->fault[found].fn;
    return gni_fail(g, GN_ERROR_ARGUMENT, "an index of %s is out of bounds for axis %d with size %lld", by,
                    ops->fault[found].axis, (long long)ops->fault[found].extent);
}

// ---- take

static int64_t gni_places_indices(const gni_places *at) { return at->along ? at->outer * at->count * at->inner : at->count; }

// log2 of the largest piece, up to 16 bytes, that rows and both places are made of; with an index for each of an element.
static int gni_job_take_unit(const gni_take *t) {
    int64_t size = (int64_t)gn_dtype_size(t->in.dtype);
    uint64_t bits = (uint64_t)((t->at.along ? 1 : t->at.inner) * size) | 16u;
    if (!t->at.along) bits |= (uint64_t)(t->in.offset * size) | (uint64_t)(t->out.offset * size);
    int unit = 0;
    while (!(bits >> unit & 1u)) unit++;
    return unit;
}

static bool gni_job_index_ok(gn_dtype t) { return t == GN_I32 || t == GN_I64 || t == GN_U32; }

static bool gni_job_take_ok(const gni_gpu *gpu, const gni_take *t) {
    const gni_places *at = &t->at;
    int64_t size = (int64_t)gn_dtype_size(t->in.dtype), unit = (int64_t)1 << gni_job_take_unit(t);
    int64_t most = gni_job_most_bytes(gpu), in = at->extent * at->inner * size, out = at->count * at->inner * size;
    int64_t indices = (at->along ? at->count * at->inner : at->count) * (int64_t)gn_dtype_size(t->index.dtype);
    return gni_job_index_ok(t->index.dtype) && t->in.dtype == t->out.dtype && at->extent < INT32_MAX &&
           at->count < INT32_MAX / 2 && in / unit < INT32_MAX / 2 && out / unit < INT32_MAX / 2 && in < most && out < most &&
           indices < most;
}

// The parameters that kernels share, in units of `inner` to a row.
static bool gni_job_places(gni_job_call *c, const gni_places *at, const gni_operand *in, const gni_operand *index,
                           const gni_operand *out, int64_t in_items, int64_t out_items, int64_t inner) {
    const int64_t one = 1, indices = gni_places_indices(at);
    uint32_t *p = c->param;
    if (!gni_job_reach(c->gpu, in, &in_items, &one, 1, &c->use[0], &p[GNI_P_TAKE_IN_BASE]) ||
        !gni_job_reach(c->gpu, index, &indices, &one, 1, &c->use[1], &p[GNI_P_TAKE_INDEX_BASE]) ||
        !gni_job_reach(c->gpu, out, &out_items, &one, 1, &c->use[2], &p[GNI_P_TAKE_OUT_BASE]))
        return false;
    c->use[2].write = true;
    c->n_use = 3;
    gni_job_divider(inner, &p[GNI_P_TAKE_INNER]);
    gni_job_divider(at->count, &p[GNI_P_TAKE_COUNT]);
    p[GNI_P_TAKE_EXTENT] = (uint32_t)at->extent;
    c->generic.spec[GNI_S_TAKE_INDEX_DTYPE] = (uint32_t)index->dtype;
    c->generic.spec[GNI_S_TAKE_ALONG] = at->along;
    return true;
}

static bool gni_job_take(gni_gpu *gpu, const gni_take *t) {
    gni_job_call c;
    const gni_places *at = &t->at;
    int unit = gni_job_take_unit(t);
    int64_t size = (int64_t)gn_dtype_size(t->in.dtype), inner = at->inner * size >> unit;
    int64_t in = at->outer * at->extent * at->inner, out = at->outer * at->count * at->inner;
    if (out == 0) return true;
    if (at->extent == 0) return false;
    gni_job_open(&c, gpu);
    bool fits = (in * size >> unit) < INT32_MAX && (out * size >> unit) < INT32_MAX - 4 * GNI_JOB_THREADS &&
                gni_job_places(&c, at, &t->in, &t->index, &t->out, in, out, inner);
    if (!fits) {
        gni_take part = *t;
        if (at->outer < 2) return false;
        part.at.outer = at->outer / 2;
        if (!gni_job_take(gpu, &part)) return false;
        part.in.offset += part.at.outer * at->extent * at->inner;
        part.out.offset += part.at.outer * at->count * at->inner;
        if (at->along) part.index.offset += part.at.outer * at->count * at->inner;
        part.at.outer = at->outer - part.at.outer;
        return gni_job_take(gpu, &part);
    }
    if (!gni_job_fault(&c, at)) return false;
    uint32_t *p = c.param, *from = &p[GNI_P_TAKE_IN_BASE], *to = &p[GNI_P_TAKE_OUT_BASE];
    c.n_param = GNI_P_TAKE_WORDS;
    p[GNI_P_TAKE_N] = (uint32_t)(out * size >> unit);
    *from = (uint32_t)((int64_t)*from * size >> unit);
    *to = (uint32_t)((int64_t)*to * size >> unit);
    c.generic.module = GNI_MODULE_take;
    c.generic.n_spec = GNI_S_TAKE_SPECS;
    c.generic.spec[GNI_S_TAKE_UNIT] = (uint32_t)unit;
    int64_t work = p[GNI_P_TAKE_N];
    if (unit < 2) work = gni_job_ceil(work, unit == 1 ? 2 : 4);
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT),
                            gni_job_ceil(work, 256), 1, 1);
}

// ---- scatter

enum {
    GNI_SCATTER_MANY = 1 << 21, // places, past which caches hold too few of them
    GNI_SCATTER_LIMIT = 1 << 14 // elements of a workgroup at least
};

static bool gni_job_scatter_ok(const gni_gpu *gpu, const gni_scatter *t) {
    const gni_places *at = &t->at;
    const gn_dtype d = t->out.dtype;
    const int64_t most = gni_job_most_bytes(gpu), in = at->outer * at->count * at->inner,
                  out = at->outer * at->extent * at->inner;
    const bool word = d == GN_F32 || d == GN_I32 || d == GN_U32,
               wide = (d == GN_I64 || d == GN_U64) && t->op == GNI_SCATTER_ADD;
    const bool put = t->op == GNI_SCATTER_PUT && !GNI_TEXTS(gpu) && gn_dtype_size(d) >= 4;
    return (put || (t->op != GNI_SCATTER_PUT && (word || wide))) && gni_job_index_ok(t->index.dtype) && in < INT32_MAX / 4 &&
           out < INT32_MAX / 8 && in * 8 < most && out * 12 < most - 32 && at->extent < INT32_MAX;
}

static bool gni_job_scatter_step(gni_job_call *c, uint32_t step, int64_t work) {
    c->generic.spec[GNI_S_SCATTER_STEP] = step;
    return gni_job_dispatch(c, gni_gpu_pipeline_get(c->gpu, &c->generic, GNI_GPU_WAIT), gni_job_ceil(work, 256), 1, 1);
}

// Elements of 4 bytes that go to more places than a device's caches hold are sorted by their places' first bits: neighbours
// in time are neighbours in memory then. c's elements and indices become those, in *mem.
static bool gni_job_scatter_near(gni_job_call *c, const gni_scatter *t, int64_t in, int64_t out, gni_gpu_mem *mem) {
    gni_gpu *gpu = c->gpu;
    const uint64_t bytes = ((uint64_t)in * 4 + 255) / 256 * 256;
    if (!gni_gpu_need(gpu, 3 * bytes, mem, t->at.fn)) return false;
    const gni_gpu_use place = gni_order_use(mem, 0, bytes), pairs = gni_order_use(mem, bytes, 2 * bytes), spare = c->use[4];
    c->use[4] = place;
    bool ok = gni_job_scatter_step(c, GNI_SCATTER_PLACES, in) &&
              gni_job_part(gpu, in, GNI_MAX(gni_job_log2_up(out) - 8, 0), &place, &c->use[0], c->param[GNI_P_TAKE_IN_BASE],
                           &pairs, bytes);
    c->use[4] = spare;
    c->use[1] = gni_order_use(mem, bytes, bytes);
    c->use[0] = gni_order_use(mem, 2 * bytes, bytes);
    c->use[0].write = c->use[1].write = false;
    c->param[GNI_P_TAKE_IN_BASE] = 0;
    c->generic.spec[GNI_S_SCATTER_PAIRS] = 1;
    return ok;
}

// Whether a workgroup has room for sums, and two digits of 8 bits tell apart what workgroups hold.
static bool gni_job_scatter_holds(const gni_gpu *gpu, int64_t in, int64_t out) {
    const gni_gpu_caps *c = &gpu->caps;
    const bool fits = out <= (int64_t)GNI_SCATTER_HELD << 16 && in * 16 < gni_job_most_bytes(gpu) - 1024;
    const bool held = c->addresses && c->shared_bytes >= 12 * GNI_SCATTER_HELD + 16;
    return fits && held && gni_sweep_tile(gpu, in, false).threads > 0;
}

// Sums of floats: elements sorted by two digits of their places down to the few that a workgroup holds.
static bool gni_job_scatter_sums(gni_job_call *c, const gni_scatter *t, int64_t in, int64_t out) {
    gni_gpu *gpu = c->gpu;
    const int held = gni_job_log2_up(GNI_SCATTER_HELD);
    const int64_t limit = GNI_MAX((int64_t)GNI_SCATTER_LIMIT, 4 * (in / gni_job_ceil(out, GNI_SCATTER_HELD)));
    const uint64_t bytes = ((uint64_t)in * 4 + 255) / 256 * 256, counts = gni_part_counts(gpu, in);
    const uint64_t zeros = 2 * counts, more = zeros + (uint64_t)(in / limit + 1) * 16;
    gni_gpu_mem mem, count;
    if (!gni_gpu_need(gpu, 4 * bytes, &mem, t->at.fn)) return false;
    if (!gni_gpu_alloc(gpu, more, &count)) {
        gni_gpu_free(gpu, &mem);
        return gni_fail_memory(gpu->g, t->at.fn, more);
    }
    gni_gpu_use word[4];
    for (int i = 0; i < 4; i++) word[i] = gni_order_use(&mem, (uint64_t)i * bytes, bytes);
    const gni_gpu_use half[2] = {gni_order_use(&mem, 0, 2 * bytes), gni_order_use(&mem, 2 * bytes, 2 * bytes)};
    const gni_gpu_use digit[2] = {gni_order_use(&count, 0, counts), gni_order_use(&count, counts, counts)};
    const gni_gpu_use scratch = c->use[4], sums = c->use[2], values = c->use[0];
    const uint32_t base = c->param[GNI_P_TAKE_IN_BASE];
    gni_job_call part;
    c->use[2] = gni_order_use(&count, 0, zeros);
    c->use[2].write = true;
    c->use[4] = word[0];
    c->use[4].write = true;
    c->param[GNI_P_SCATTER_SHIFT] = (uint32_t)held;
    c->param[GNI_P_SCATTER_SECOND] = (uint32_t)(counts / 4);
    c->param[GNI_P_SCATTER_LIMIT] = (uint32_t)limit;
    c->generic.module = GNI_MODULE_sums_tally;
    bool ok = gni_gpu_fill(gpu, &count, 0, zeros + 16, 0) &&
              gni_job_scatter_step(c, GNI_SCATTER_PLACES,
                                   GNI_MIN(gni_job_ceil(in, 16), (int64_t)GNI_MAX(gpu->caps.multiprocessors, 1u) * 2048));
    gni_part_call(&part, gpu, in, held, &word[0], &values, &half[1], bytes);
    ok = ok && gni_part_move(&part, &digit[0], base);
    gni_part_call(&part, gpu, in, held + 8, &word[2], &word[3], &half[0], bytes);
    ok = ok && gni_part_move(&part, &digit[1], 0);
    c->use[0] = word[1];
    c->use[1] = word[0];
    c->use[0].write = c->use[1].write = false;
    c->use[2] = sums;
    c->use[3] = gni_order_use(&count, zeros, more - zeros);
    c->use[3].write = true;
    c->use[4] = scratch;
    c->param[GNI_P_TAKE_IN_BASE] = 0;
    c->generic.module = GNI_MODULE_sums_held;
    ok = ok && gni_job_dispatch(c, gni_gpu_pipeline_get(gpu, &c->generic, GNI_GPU_WAIT), gni_job_ceil(out, GNI_SCATTER_HELD),
                                1, 1);
    c->generic.module = GNI_MODULE_sums_more;
    for (uint32_t step = 0; step < 3; step++) {
        static const uint32_t steps[] = {GNI_SCATTER_MEASURE, GNI_SCATTER_ADD_FLOAT, GNI_SCATTER_FINISH};
        ok = ok && gni_job_scatter_step(c, steps[step], (int64_t)GNI_MAX(gpu->caps.multiprocessors, 1u) * 1024);
    }
    gni_gpu_free(gpu, &mem);
    gni_gpu_free(gpu, &count);
    return ok;
}

// What the result is before, as the next buffer argument, or copied where no kernel goes through all places.
static bool gni_job_scatter_base(gni_job_call *c, const gni_scatter *t, int64_t out) {
    const int64_t one = 1, size = (int64_t)gn_dtype_size(t->out.dtype);
    const bool all = t->op != GNI_SCATTER_ADD || t->out.dtype == GN_F32;
    gni_gpu_use from = c->use[2];
    uint32_t base = c->param[GNI_P_TAKE_OUT_BASE];
    if (t->base.buf != NULL) {
        if (!gni_job_reach(c->gpu, &t->base, &out, &one, 1, &from, &base)) return false;
        if (!all || GNI_TEXTS(c->gpu)) {
            const uint64_t to = c->use[2].offset + (uint64_t)c->param[GNI_P_TAKE_OUT_BASE] * (uint64_t)size;
            return c->gpu->layer->copy(c->gpu, c->use[2].mem, to, from.mem, from.offset + (uint64_t)base * (uint64_t)size,
                                       (uint64_t)(out * size));
        }
    }
    if (GNI_TEXTS(c->gpu)) return true;
    c->use[c->n_use] = from;
    c->use[c->n_use++].write = false;
    c->param[GNI_P_SCATTER_BASE] = base;
    return true;
}

static bool gni_job_scatter(gni_gpu *gpu, const gni_scatter *t) {
    gni_job_call c;
    const gni_places *at = &t->at;
    const int64_t in = at->outer * at->count * at->inner, out = at->outer * at->extent * at->inner;
    const bool wide = gn_dtype_size(t->out.dtype) == 8, floats = t->op == GNI_SCATTER_ADD && t->out.dtype == GN_F32;
    if (in == 0) return true;
    gni_job_open(&c, gpu);
    if (!gni_job_places(&c, at, &t->in, &t->index, &t->out, in, out, at->inner) || !gni_job_fault(&c, at)) return false;
    const bool put = t->op == GNI_SCATTER_PUT;
    const int64_t some = gpu->caps.kind == GNI_GPU_CPU ? 1 << 13 : GNI_SCATTER_MANY; // so that tests see it
    // Whole numbers for one row after the other, which is in a cache, go there as they come.
    const bool local = !floats && !put && at->outer > 1 && at->extent * at->inner < some / 16;
    const bool held = floats && in >= some && out >= some && at->inner < 8 && gni_job_scatter_holds(gpu, in, out);
    // Odd ends are filled slowly.
    const uint64_t bytes = (uint64_t)(floats ? (out * 12 + 19) / 16 * 16 : put ? (out * 4 + 15) / 16 * 16 : 16);
    bool ok = gni_job_scratch(&c, bytes, at->fn);
    if (ok && !held && (floats || put)) ok = gni_gpu_fill(gpu, &c.scratch[0], 0, bytes, 0);
    ok = ok && gni_job_scatter_base(&c, t, out);
    c.n_param = GNI_P_SCATTER_WORDS;
    c.param[GNI_P_TAKE_N] = (uint32_t)in;
    c.param[GNI_P_SCATTER_PLACES] = (uint32_t)out;
    c.param[GNI_P_SCATTER_BITS] = (uint32_t)(61 - gni_job_log2_up(at->count));
    c.generic.module = GNI_MODULE_scatter;
    c.generic.n_spec = GNI_S_SCATTER_SPECS;
    c.generic.spec[GNI_S_SCATTER_DTYPE] = (uint32_t)t->out.dtype;
    c.generic.spec[GNI_S_SCATTER_LEAST] = t->op == GNI_SCATTER_MIN;
    if (held) {
        ok = ok && gni_job_scatter_sums(&c, t, in, out);
        gni_job_drop_scratch(&c);
        return ok;
    }
    GNI_ZEROED(gni_gpu_mem, pairs);
    // Numbers alone take less room.
    const int64_t least = put && gpu->caps.kind != GNI_GPU_CPU ? 8 * some : some;
    const bool many = in >= least && out >= least && at->inner < 8 && !local; // elements of rows are neighbours as they come
    const bool near_ones = ok && many && gn_dtype_size(t->out.dtype) == 4 && gni_sweep_tile(gpu, in, false).threads > 0;
    if (near_ones) ok = gni_job_scatter_near(&c, t, in, out, &pairs);
    if (floats) {
        const bool at_once = !near_ones && gpu->caps.atomic64 && gpu->caps.addresses;
        ok = ok && gni_job_scatter_step(&c, GNI_SCATTER_MEASURE, in);
        if (at_once) c.generic.module = GNI_MODULE_sums_add;
        ok = ok && gni_job_scatter_step(&c, GNI_SCATTER_ADD_FLOAT, in);
        c.generic.module = GNI_MODULE_scatter;
        ok = ok && gni_job_scatter_step(&c, GNI_SCATTER_FINISH, out);
    } else if (put)
        ok = ok && gni_job_scatter_step(&c, GNI_SCATTER_NUMBER, in) && gni_job_scatter_step(&c, GNI_SCATTER_PUT_LAST, out);
    else if (t->op == GNI_SCATTER_ADD)
        ok = ok && gni_job_scatter_step(&c, wide ? GNI_SCATTER_ADD_WIDE : GNI_SCATTER_ADD_WORD, in);
    else
        ok = ok && gni_job_scatter_step(&c, GNI_SCATTER_TO_KEYS, out) && gni_job_scatter_step(&c, GNI_SCATTER_EXTREME, in) &&
             gni_job_scatter_step(&c, GNI_SCATTER_FROM_KEYS, out);
    if (near_ones) gni_gpu_free(gpu, &pairs);
    gni_job_drop_scratch(&c);
    return ok;
}

// ---- what is true

static bool gni_job_keep_ok(const gni_gpu *gpu, const gni_keep *k) {
    const int64_t most = gni_job_most_bytes(gpu), size = k->in.buf != NULL ? (int64_t)gn_dtype_size(k->in.dtype) : 8;
    return k->n < INT32_MAX / 2 && k->n * size < most && k->count * GNI_MAX(k->rank, 1) < INT32_MAX / 2 &&
           k->count * GNI_MAX(k->rank, 1) * size < most && gpu->caps.max_buffers >= 4 &&
           gpu->caps.subgroup_arithmetic && gpu->caps.shared_bytes >= 17408 && gpu->caps.subgroup >= 4 &&
           (gpu->caps.subgroup_control ? gpu->caps.subgroup * gpu->caps.subgroups >= GNI_JOB_THREADS
                                       : gpu->caps.subgroup_min == gpu->caps.subgroup_max);
}

static bool gni_job_keep(gni_gpu *gpu, const gni_keep *k) {
    gni_job_call c;
    const int64_t one = 1, chunks = gni_keep_chunks(k->n), rows = GNI_MAX(k->rank, 1);
    const bool counts = k->out.buf == NULL, places = k->in.buf == NULL;
    gni_job_open(&c, gpu);
    uint32_t *p = c.param, zero;
    const int64_t all = k->count * rows;
    if (!gni_job_reach(gpu, &k->mask, &k->n, &one, 1, &c.use[0], &p[GNI_P_KEEP_BASE]) ||
        !gni_job_reach(gpu, &k->counts, &chunks, &one, 1, &c.use[2], &zero))
        return false;
    c.use[2].write = counts;
    c.use[1] = c.use[0];
    c.use[3] = c.use[2];
    if (!places && !gni_job_reach(gpu, &k->in, &k->n, &one, 1, &c.use[1], &p[GNI_P_KEEP_IN_BASE])) return false;
    if (!counts && !gni_job_reach(gpu, &k->out, &all, &one, 1, &c.use[3], &p[GNI_P_KEEP_OUT_BASE])) return false;
    c.use[3].write = true;
    c.n_use = 4;
    c.n_param = GNI_P_KEEP_WORDS;
    p[GNI_P_KEEP_CHUNK] = (uint32_t)gni_keep_chunk(k->n);
    p[GNI_P_KEEP_END] = p[GNI_P_KEEP_BASE] + (uint32_t)k->n;
    p[GNI_P_KEEP_COUNT_ALL] = (uint32_t)k->count;
    for (int i = 0; i < k->rank; i++) p[GNI_P_KEEP_DIM + i] = (uint32_t)k->dim[i];
    c.generic.module = GNI_MODULE_keep;
    c.generic.subgroup = gpu->caps.subgroup_control ? gpu->caps.subgroup : 0;
    c.generic.n_spec = GNI_S_KEEP_SPECS;
    c.generic.spec[GNI_S_KEEP_STEP] = counts ? GNI_KEEP_COUNT : places ? GNI_KEEP_PLACES : GNI_KEEP_ELEMENTS;
    c.generic.spec[GNI_S_KEEP_UNIT] = places ? 3 : (uint32_t)gni_job_log2_up((int64_t)gn_dtype_size(k->in.dtype));
    c.generic.spec[GNI_S_KEEP_RANK] = (uint32_t)k->rank;
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT), chunks, 1, 1);
}

#endif // GNI_GPU
