// >>place
// Which backend runs a job, and bringing the operands there. From outside: gni_run, gn_explain.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/lazy.h"
#endif

// X(name, text): why a job ran where it ran.
#define GNI_REASONS(X)                                                                             \
    X(NONE, "not computed yet")                                                                    \
    X(NO_GPU, "the context has no GPU")                                                            \
    X(CPU_ONLY, "the GPU backend does not do this op with these dtypes")                           \
    X(GPU_ONLY, "the CPU backend does not do this op")                                             \
    X(POLICY, "gn_options.placement says so")                                                      \
    X(STAYS, "the largest operand is there")                                                       \
    X(RESIDENT, "operands are on the GPU already")                                                 \
    X(MOSTLY_CPU, "nearly all operand bytes are on the CPU")                                       \
    X(LARGE, "large enough to be worth the GPU")                                                   \
    X(AGAIN, "read so often that its operands are worth moving to the GPU")                        \
    X(BOTH, "operands are on both sides, and the GPU reads them faster")                           \
    X(SMALL, "too small to be worth the GPU")                                                      \
    X(TRIAL, "the loop that it is in was being tried on the GPU")                                  \
    X(LOOP, "the loop that it is in was measured to be faster there")                              \
    X(NO_ROOM, "device memory is full")                                                            \
    X(LOST, "the device was lost")
typedef enum gni_reason {
#define GN_X(name, text) GNI_WHY_##name,
    GNI_REASONS(GN_X)
#undef GN_X
        GNI_WHY_COUNT
} gni_reason;

// The operands of any job, outputs last.
typedef struct gni_job_view {
    gni_operand *op[GNI_MAX_INPUTS + GNI_MAX_OUTPUTS];
    int n_in, n;
    int64_t size; // what the thresholds count
    const char *name;
    bool draws; // on a GPU, what is undrawn
} gni_job_view;

// Those of the operands that there are, results from number n_in on.
static GNI_NOINLINE void gni_view_some(gni_job_view *v, const char *name, int64_t size, gni_operand *const *op, int n_in,
                                       int n) {
    v->name = name;
    v->size = size;
    for (int i = 0; i < n; i++) {
        if (i == n_in) v->n_in = v->n;
        if (op[i] != NULL && op[i]->buf != NULL) v->op[v->n++] = op[i];
    }
}
#define GNI_VIEW(name, size, n_in, ...)                                                            \
    do {                                                                                           \
        gni_operand *const list[] = {__VA_ARGS__};                                                 \
        gni_view_some(v, name, size, list, n_in, (int)(sizeof list / sizeof *list));               \
    } while (0)

static int64_t gni_view_work(int64_t m, int64_t n, int64_t k, int64_t times) {
    const double work = (double)m * (double)n * (double)GNI_MAX(k, 1) * (double)times;
    return work < 9e18 ? (int64_t)work : INT64_MAX;
}

static void gni_view_matmul(gni_matmul *m, gni_job_view *v) {
    if (m->prologue != 1) v->op[v->n++] = &m->a;
    if (m->prologue != 2) v->op[v->n++] = &m->b;
    for (int i = 0; m->prologue != 0 && i < m->load.n_in; i++) v->op[v->n++] = &m->load_in[i];
    if (m->bias.buf != NULL) v->op[v->n++] = &m->bias;
    for (int i = 1; m->fused && i < m->program.n_in; i++) v->op[v->n++] = &m->in[i];
    GNI_VIEW("matmul", gni_view_work(m->m, m->n, m->k, gni_extent_product(m->batch_dim, m->batch_rank)), 0, &m->c, &m->sums);
}

static void gni_view_factor(gni_factor *f, gni_job_view *v) {
    const int step = (int)f->step;
    const bool reads = step >= GNI_FACTOR_CHOLESKY && step != GNI_FACTOR_REFLECT, back = step == GNI_FACTOR_BACK,
               d = back || step == GNI_FACTOR_TRIANGLE || step == GNI_FACTOR_TINY, values = step >= GNI_FACTOR_SINGULAR,
               more = values || step == GNI_FACTOR_LU || step == GNI_FACTOR_QR;
    GNI_VIEW("factor", f->items, 3, reads ? &f->a : NULL, back ? &f->c : NULL, d ? &f->d : NULL, reads ? NULL : &f->a, &f->b,
             back ? NULL : &f->c, more ? &f->d : NULL, values ? &f->e : NULL);
}

static void gni_view_attend(gni_attend_job *a, gni_job_view *v) {
    const bool back = a->step != GNI_ATTEND_FORWARD, dq = back && a->step != GNI_ATTEND_KEYS,
               dk = back && a->step != GNI_ATTEND_QUERIES;
    GNI_VIEW("attention", gni_view_work(a->n, a->m, a->d + a->e, a->heads * a->batches), 7, &a->q, &a->k, &a->v,
             back ? &a->gy : NULL, back ? &a->lse : NULL, back ? &a->dot : NULL, &a->mask, back ? NULL : &a->y,
             back ? NULL : &a->lse, dq ? &a->dq : NULL, dk ? &a->dk : NULL, dk ? &a->dv : NULL);
}

static void gni_view_job(gni_job_kind kind, void *job, gni_job_view *v) {
    v->n_in = v->n = 0;
    v->draws = kind == GNI_JOB_MAP;
    if (kind == GNI_JOB_MAP) {
        gni_map *m = (gni_map *)job;
        for (int i = 0; i < m->program.n_in; i++) v->op[v->n++] = &m->in[i];
        v->n_in = v->n;
        for (int i = 0; i < m->program.n_out; i++) v->op[v->n++] = &m->out[i];
        v->size = gni_extent_product(m->dim, m->rank);
        v->name = "elementwise";
    } else if (kind == GNI_JOB_REDUCE) {
        gni_reduce *r = (gni_reduce *)job;
        for (int i = 0; i < r->program.n_in; i++) v->op[v->n++] = &r->in[i];
        GNI_VIEW("reduce", gni_extent_product(r->dim, r->rank), 0, &r->out);
    } else if (kind == GNI_JOB_SOFTMAX) {
        gni_softmax *s = (gni_softmax *)job;
        GNI_VIEW("softmax", s->rows * s->n, 1, &s->in, &s->out);
    } else if (kind == GNI_JOB_ROWS) {
        gni_rows *r = (gni_rows *)job;
        const bool writes = r->kind == GNI_ROWS_NORM || r->kind == GNI_ROWS_RMS;
        GNI_VIEW("rows", r->rows * r->n, writes ? 4 : 6, &r->x, &r->gy, &r->weight, &r->bias, &r->mean, &r->scale, &r->out);
    } else if (kind == GNI_JOB_MATMUL) {
        gni_view_matmul((gni_matmul *)job, v);
    } else if (kind == GNI_JOB_CONV) {
        gni_conv *c = (gni_conv *)job;
        GNI_VIEW("convolution", gni_view_work(c->m, c->n, c->k, gni_extent_product(c->batch_dim, 2)), 2, &c->a, &c->b, &c->c);
    } else if (kind == GNI_JOB_RECUR) {
        gni_recurrence *r = (gni_recurrence *)job;
        gni_operand *i = r->in, *o = r->out;
        GNI_VIEW("recurrence", r->n * r->batch * r->h * r->h, 6, i, i + 1, i + 2, i + 3, i + 4, i + 5, o, o + 1, o + 2,
                 o + 3);
    } else if (kind == GNI_JOB_IMAGE) {
        gni_image *m = (gni_image *)job;
        GNI_VIEW("image", m->n * m->width * gni_extent_product(m->size, 3), 1, &m->in, &m->out);
    } else if (kind == GNI_JOB_DEPTH) {
        gni_depth *d = (gni_depth *)job;
        const int64_t taps = d->n * d->c * d->to[0] * d->to[1] * d->k[0] * d->k[1];
        GNI_VIEW("depthwise convolution", taps, 2, &d->in, &d->other, &d->out);
    } else if (kind == GNI_JOB_POOLING) {
        gni_pooling *j = (gni_pooling *)job;
        GNI_VIEW("pooling", j->n * j->to[0] * j->to[1], 2, &j->in, &j->taps, &j->out, &j->places);
    } else if (kind == GNI_JOB_WINOGRAD) {
        gni_winograd *m = (gni_winograd *)job;
        gni_operand *u = m->use;
        GNI_VIEW("convolution", (m->c + m->o) * m->n * gni_extent_product(m->out, 2), 3, &u[0], &u[2], &u[3], &u[1]);
    } else if (kind == GNI_JOB_TAKE) {
        gni_take *t = (gni_take *)job;
        GNI_VIEW("take", t->at.outer * t->at.count * t->at.inner, 2, &t->in, &t->index, &t->out);
    } else if (kind == GNI_JOB_SCATTER) {
        gni_scatter *t = (gni_scatter *)job;
        GNI_VIEW("scatter", t->at.outer * t->at.count * t->at.inner, 3, &t->in, &t->index, &t->base, &t->out);
    } else if (kind == GNI_JOB_KEEP) {
        gni_keep *k = (gni_keep *)job;
        const bool moves = k->out.buf != NULL;
        GNI_VIEW("keep", k->n, 3, &k->mask, moves ? &k->counts : NULL, &k->in, moves ? &k->out : &k->counts);
    } else if (kind == GNI_JOB_FFT) {
        gni_fft *f = (gni_fft *)job;
        GNI_VIEW("fft", gni_extent_product(f->dim, f->rank) * f->n, 1, &f->in, &f->out);
    } else if (kind == GNI_JOB_FACTOR) {
        gni_view_factor((gni_factor *)job, v);
    } else if (kind == GNI_JOB_SCAN) {
        gni_scan *s = (gni_scan *)job;
        GNI_VIEW("scan", s->outer * s->n * s->inner, 1, &s->in, &s->out);
    } else if (kind == GNI_JOB_SORT) {
        gni_sort *s = (gni_sort *)job;
        GNI_VIEW("sort", s->rows * s->n, 1, &s->in, &s->out, &s->index);
    } else if (kind == GNI_JOB_SEARCH) {
        gni_search *s = (gni_search *)job;
        GNI_VIEW("search", s->count, 2, &s->sorted, &s->in, &s->out);
    } else if (kind == GNI_JOB_COUNT) {
        gni_count *c = (gni_count *)job;
        GNI_VIEW("count", c->n, 3, &c->in, &c->weight, &c->edges, &c->out);
    } else if (kind == GNI_JOB_ATTEND) {
        gni_view_attend((gni_attend_job *)job, v);
    } else {
        gni_random *r = (gni_random *)job;
        GNI_VIEW("random", r->n, 0, &r->out);
    }
}
#undef GNI_VIEW

static int64_t gni_threshold_of(const gn_thresholds *t, gni_job_kind kind) {
    switch (kind) {
    case GNI_JOB_MAP: return t->elementwise;
    case GNI_JOB_REDUCE:
    case GNI_JOB_SCAN:
    case GNI_JOB_SORT:
    case GNI_JOB_SEARCH:
    case GNI_JOB_COUNT:
    case GNI_JOB_ROWS:
    case GNI_JOB_SOFTMAX: return t->reduction;
    case GNI_JOB_CONV:
    case GNI_JOB_DEPTH:
    case GNI_JOB_ATTEND:
    case GNI_JOB_RECUR:
    case GNI_JOB_MATMUL: return t->matmul;
    case GNI_JOB_RANDOM: return t->random;
    case GNI_JOB_FFT: return t->fft;
    case GNI_JOB_FACTOR: return t->linalg;
    default: return t->copy;
    }
}

// tools/calibrate on an H200 and 16 AVX-512 cores: random numbers, matrix products and copies pay from
// here on, operands on the CPU. A single sum or sigmoid never pays there for its upload; the first
// two stand for the ops that usually follow on the same data. Those for transforms and
// decompositions are estimates.
static const gn_thresholds gni_thresholds = {16 << 20, 16 << 20,  256 << 20, 256 << 10,
                                             64 << 20, 256 << 10, 256 << 10};

static int64_t gni_threshold(const gn_context *g, gni_job_kind kind) {
    int64_t own = gni_threshold_of(&g->options.thresholds, kind);
    return own > 0 ? own : gni_threshold_of(&gni_thresholds, kind);
}

// An upload costs about as much as a CPU takes to read the same bytes, so that what was read twice there is
// worth moving. Below these bytes a CPU is as soon done, with the data there or moved. Memory that the caller lent
// stays where it is, for the caller may write to it.
#define GNI_LEAST_MOVED ((uint64_t)16 << 20)
#define GNI_LEAST_READ ((uint64_t)1 << 20)

static uint64_t gni_read_before(const gni_buffer *b) {
    return b->read_version == b->version ? b->read : 0;
}

// The bytes of operand i that the job reads, about.
static uint64_t gni_job_reads(const gni_job_view *v, int i, gni_job_kind kind, const void *job) {
    uint64_t items = (uint64_t)v->size, item = (uint64_t)gn_dtype_size(v->op[i]->dtype);
    if (kind == GNI_JOB_MATMUL) {
        const gni_matmul *m = (const gni_matmul *)job;
        if (v->op[i] == &m->a) items /= (uint64_t)GNI_MAX(m->n, 1);
        if (v->op[i] == &m->b) items /= (uint64_t)GNI_MAX(m->m, 1);
    }
    return GNI_MIN(items, v->op[i]->buf->bytes / item) * item;
}

static void gni_note_reads(const gni_job_view *v, gni_job_kind kind, const void *job) {
    for (int i = 0; i < v->n_in; i++) {
        gni_buffer *b = v->op[i]->buf;
        if (b->bytes < GNI_LEAST_READ || b->where != GNI_ON_CPU || b->host_borrowed) continue;
        b->read = GNI_MIN(gni_read_before(b), 2 * b->bytes) + gni_job_reads(v, i, kind, job);
        b->read_version = b->version;
    }
}

// The bytes of the results, about.
static uint64_t gni_made_bytes(const gni_job_view *v) {
    uint64_t bytes = 0;
    for (int i = v->n_in; i < v->n; i++) bytes += (uint64_t)v->size * (uint64_t)gn_dtype_size(v->op[i]->dtype);
    return bytes;
}

static uint32_t gni_place_auto(const gn_context *g, gni_job_kind kind, const void *job,
                               const gni_job_view *v, gni_reason *why) {
    uint64_t cpu_only = 0, gpu_only = 0, both = 0, again = 0, reads = 0;
    for (int i = 0; i < v->n_in; i++) {
        const gni_buffer *b = v->op[i]->buf;
        bool had = false;
        for (int k = 0; k < i; k++) had = had || v->op[k]->buf == b;
        if (!b->host_borrowed) reads += gni_job_reads(v, i, kind, job);
        if (had) continue;
        if (b->where == GNI_ON_CPU) cpu_only += b->bytes;
        if (b->where == GNI_ON_GPU) gpu_only += b->bytes;
        if (b->where == (GNI_ON_CPU | GNI_ON_GPU) && !b->host_borrowed) both += b->bytes;
        if (b->where == GNI_ON_CPU && gni_read_before(b) / 2 >= b->bytes) again += b->bytes;
    }
    for (int i = v->n_in; i < v->n; i++) // of which a part is written
        if (v->op[i]->buf->where == GNI_ON_GPU) gpu_only += v->op[i]->buf->bytes;
    const bool own = gni_threshold_of(&g->options.thresholds, kind) > 0; // which rules alone
    const uint32_t learned = own ? 0 : gni_learn_side(g);
    if (learned == GNI_ON_CPU && gpu_only < GNI_LEAST_MOVED && v->size < gni_threshold(g, kind)) {
        *why = GNI_WHY_LOOP;
        return GNI_ON_CPU;
    }
    if (gpu_only > 0) {
        // Bringing data back waits for the GPU, so it must save much.
        bool heavy = cpu_only > ((uint64_t)64 << 20) && cpu_only / 16 > gpu_only;
        *why = heavy ? GNI_WHY_MOSTLY_CPU : GNI_WHY_RESIDENT;
        return heavy ? GNI_ON_CPU : GNI_ON_GPU;
    }
    // What is made of nearly nothing is so as soon as random numbers, or where the arrays are that it goes with.
    const bool made = !own && (kind == GNI_JOB_MAP || kind == GNI_JOB_RANDOM) && cpu_only + both <= gni_made_bytes(v) / 16;
    *why = GNI_WHY_SMALL;
    if (made && g->near_gpu)
        *why = GNI_WHY_RESIDENT;
    else if (v->size >= gni_threshold(g, made ? GNI_JOB_RANDOM : kind))
        *why = GNI_WHY_LARGE;
    else if (!own && reads >= GNI_LEAST_READ && both >= GNI_LEAST_MOVED && both / 4 >= cpu_only)
        *why = GNI_WHY_BOTH;
    else if (!own && reads >= GNI_LEAST_READ && again >= GNI_LEAST_MOVED && again / 4 >= cpu_only - again)
        *why = GNI_WHY_AGAIN;
    else if (learned == GNI_ON_GPU)
        *why = gni_learn_settled(g->learn.current) ? GNI_WHY_LOOP : GNI_WHY_TRIAL;
    return *why == GNI_WHY_SMALL ? GNI_ON_CPU : GNI_ON_GPU;
}

static void gni_place_as_asked(gn_context *g) {
    g->placement = g->options.placement;
    g->precision = g->options.matmul;
}

static uint32_t gni_place(gn_context *g, const gni_kind *kind, const void *job, const gni_job_view *v,
                          gni_reason *why) {
    *why = GNI_WHY_NO_GPU;
    if (GNI_CPU_ALONE || g->gpu == NULL) return GNI_ON_CPU;
    *why = GNI_WHY_LOST;
    if (g->gpu->lost) return GNI_ON_CPU;
    *why = GNI_WHY_CPU_ONLY;
    if (!gni_backend_gpu()->supports(g, kind->id, job)) return GNI_ON_CPU;
    *why = GNI_WHY_GPU_ONLY;
    if (g->host_recording || !kind->takes(g, job)) return GNI_ON_GPU;
    *why = GNI_WHY_POLICY;
    if (g->placement == GN_PLACE_CPU) return GNI_ON_CPU;
    if (g->placement == GN_PLACE_GPU) return GNI_ON_GPU;
    if (g->placement == GN_PLACE_STAY && v->n_in > 0) {
        const gni_buffer *largest = v->op[0]->buf;
        for (int i = 1; i < v->n_in; i++)
            if (v->op[i]->buf->bytes > largest->bytes) largest = v->op[i]->buf;
        *why = GNI_WHY_STAYS;
        return largest->where & GNI_ON_CPU ? GNI_ON_CPU : GNI_ON_GPU;
    }
    return gni_place_auto(g, kind->id, job, v, why);
}

// Whether the job belongs on the GPU, for those that are made of others there.
static bool gni_is_for_gpu(gn_context *g, const gni_kind *kind, void *job) {
    gni_job_view v;
    gni_reason why;
    gni_view_job(kind->id, job, &v);
    return gni_place(g, kind, job, &v, &why) == GNI_ON_GPU;
}

// Whether what is made of `a`, which has its data, is made on a GPU whatever its size: the data is there, or all is.
static bool gni_stays_on_gpu(const gn_context *g, const gn_array *a) {
    if (g->gpu == NULL || g->placement == GN_PLACE_CPU) return false;
    return g->placement == GN_PLACE_GPU || (a->buf->where & GNI_ON_GPU) != 0;
}

// Whether some of what `a` is, or is made of, is on the GPU.
static bool gni_reads_gpu(const gn_array *a) {
    bool reads = a != NULL && a->buf != NULL && (a->buf->where & GNI_ON_GPU) != 0;
    for (int i = 0; gni_is_pending(a) && i < a->expr->n_src && !reads; i++) reads = gni_reads_gpu(a->expr->src[i]);
    return reads;
}

// Memory for every operand, without an error when there is none: the CPU can take the job then.
static bool gni_device_room(gn_context *g, const gni_job_view *v) {
    for (int i = 0; i < v->n; i++) {
        gni_buffer *b = v->op[i]->buf;
        if (b->has_device || (v->draws && gni_is_undrawn(b))) continue;
        b->has_device = gni_gpu_alloc(g->gpu, GNI_MAX(b->bytes, 16), &b->device);
        if (!b->has_device) return false;
    }
    return true;
}

static bool gni_bring(gn_context *g, const gni_job_view *v, uint32_t side) {
    for (int i = 0; i < v->n_in; i++) {
        if (v->draws && side == GNI_ON_GPU && gni_is_undrawn(v->op[i]->buf)) continue;
        if (!gni_buffer_need(g, v->op[i]->buf, side)) return false;
    }
    for (int i = v->n_in; i < v->n; i++) {
        gni_buffer *b = v->op[i]->buf;
        // A place inside a buffer leaves the rest of it as it was.
        if (b->where != 0 && !gni_buffer_need(g, b, side)) return false;
        if (!gni_buffer_claim(g, b, side)) return false;
    }
    return true;
}

static void gni_log_no_room(gn_context *g, const gni_job_view *v) {
    gni_log(g, GN_LOG_INFO, "%s of %lld elements runs on the CPU: device memory is full", v->name, (long long)v->size);
}

static void gni_explain_by(gn_array *y, uint32_t side, gni_reason why) {
    if (y == NULL) return;
    y->reason = (uint8_t)why;
    y->on_gpu = side == GNI_ON_GPU;
}

// To the CPU what a GPU could not do, of which nobody was told.
static GNI_NOINLINE bool gni_bring_back(gn_context *g, const gni_job_view *v, gn_array *y) {
    g->call_failed = false;
    if (g->gpu->lost) return gni_fail(g, GN_ERROR_DEVICE_LOST, "%s: the device is lost", v->name);
    gni_log_no_room(g, v);
    gni_explain_by(y, GNI_ON_CPU, GNI_WHY_NO_ROOM);
    return gni_bring(g, v, GNI_ON_CPU);
}

static bool gni_run_at(gn_context *g, const gni_kind *kind, void *job, uint32_t side) {
    return side == GNI_ON_GPU ? gni_backend_gpu()->run(g, kind->id, job) : kind->run != NULL && kind->run(g, job);
}

static bool gni_run(gn_context *g, const gni_kind *kind, void *job, gn_array *y) {
    gni_job_view v;
    gni_reason why;
    gni_view_job(kind->id, job, &v);
    bool none = true; // nothing to compute
    for (int i = v.n_in; i < v.n; i++) none = none && v.op[i]->buf->bytes == 0;
    if (none) return true;
    uint32_t side = gni_place(g, kind, job, &v, &why);
    if (side == GNI_ON_GPU && why != GNI_WHY_GPU_ONLY && !gni_device_room(g, &v)) {
        side = GNI_ON_CPU;
        why = GNI_WHY_NO_ROOM;
        gni_log_no_room(g, &v);
    }
    gni_explain_by(y, side, why);
    uint64_t start = g->profile != NULL ? gni_now_ns() : 0;
    if (why == GNI_WHY_SMALL) gni_note_reads(&v, kind->id, job);
    if (why == GNI_WHY_SMALL) g->learn.little++;
    else if (side == GNI_ON_GPU && why < GNI_WHY_TRIAL) g->learn.by_rule++;
    // What a GPU needs on its way to new arrays may find no room: the CPU makes them then.
    bool tries = !GNI_CPU_ALONE && side == GNI_ON_GPU && why != GNI_WHY_GPU_ONLY && g->placement != GN_PLACE_GPU &&
                 !g->trying && !g->call_failed;
    for (int i = v.n_in; i < v.n; i++) tries = tries && v.op[i]->buf->where == 0;
    if (!gni_bring(g, &v, side)) return false;
    const char *name = side == GNI_ON_GPU ? "gpu" : "cpu";
    gni_log(g, GN_LOG_DEBUG, "%s of %lld elements on %s", v.name, (long long)v.size, name);
    g->trying = g->trying || tries;
    bool ok = gni_run_at(g, kind, job, side);
    if (tries) g->trying = false;
    if (tries && !ok) {
        if (!gni_bring_back(g, &v, y)) return false;
        side = GNI_ON_CPU;
        name = "cpu";
        ok = gni_run_at(g, kind, job, side);
    }
    if (!ok && !g->call_failed)
        gni_fail(g, GN_ERROR_OUT_OF_MEMORY, "%s: out of memory in the %s backend", v.name, name);
    if (g->profile != NULL)
        gni_profile_span(g, v.name, start, gni_now_ns(), side == GNI_ON_GPU ? 1 : 0);
    return ok;
}

// Runs a job that only GPUs do, if it belongs there and its results, new arrays, have room. False: the caller does it in
// other ways, unless g->call_failed.
static bool gni_run_on_gpu(gn_context *g, const gni_kind *kind, void *job, gn_array *y) {
    gni_job_view v;
    gni_reason why;
    gni_view_job(kind->id, job, &v);
    if (gni_place(g, kind, job, &v, &why) != GNI_ON_GPU || !gni_device_room(g, &v)) return false;
    return gni_run(g, kind, job, y);
}

GPUNUM_API const char *gn_explain(gn_array *a) {
    static const char *const text[] = {
#define GN_X(name, words) words,
        GNI_REASONS(GN_X)
#undef GN_X
    };
    gn_context *g = gni_begin("gn_explain", &a, 1);
    if (g == NULL) return "";
    char shape[200];
    const char *maker = a->maker != NULL && a->maker[0] ? a->maker : "array";
    gni_shape_text(shape, sizeof shape, &a->shape);
    const char *type = gn_dtype_name(a->dtype);
    if (gni_is_product(a))
        snprintf(g->explain, sizeof g->explain, "%s %s %s: pending", maker, shape, type);
    else if (gni_is_pending(a))
        snprintf(g->explain, sizeof g->explain,
                 "%s %s %s: pending, up to %d instructions over %d inputs", maker, shape, type,
                 a->expr->insns, a->expr->leaves);
    else if (a->reason == GNI_WHY_NONE)
        snprintf(g->explain, sizeof g->explain, "%s %s %s: data, on %s", maker, shape, type,
                 a->buf == NULL || a->buf->where == 0 ? "neither side"
                 : a->buf->where == GNI_ON_CPU        ? "the CPU"
                 : a->buf->where == GNI_ON_GPU        ? "the GPU"
                                                      : "the CPU and the GPU");
    else
        snprintf(g->explain, sizeof g->explain, "%s %s %s: computed on the %s: %s", maker, shape,
                 type, a->on_gpu ? "GPU" : "CPU", text[a->reason]);
    const char *result = g->explain;
    gni_end_plain(g);
    return result;
}
