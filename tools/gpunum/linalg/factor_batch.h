// >>factor_batch
// Decompositions of a batch on the GPU: large matrices a few at a time, small ones all at once. From outside:
// gni_lg_run, gni_lg_qr_all, gni_ls_run, gni_ls_qr, gni_ls_values and gni_lg_result (ls: many small matrices).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../linalg/factor_gpu.h"
#endif

// ---- large ones

// Copies `x` (a matrix, or with `count` > 1 as many as the result has) into the result y, at matrix `index`.
static bool gni_lg_store(gni_lg *w, gn_array *y, int64_t index, gn_array *x, int64_t m, int64_t n) {
    int64_t stride[GN_MAX_RANK];
    if (x == NULL) return false;
    gni_strides_of(&x->shape, stride);
    return gni_copy_into(w->g, y->buf, w->t, index * m * n, stride, x);
}

static void gni_lg_do_cholesky(gni_lg *w, gn_array *y, int64_t index) {
    gn_shape s = GN_SHAPE(w->count, w->n, w->n);
    int64_t stride[3] = {w->a.step, w->ld, 1};
    gni_lg_cholesky(w);
    gn_array *view = w->ok ? gni_array_view(w->g, w->fn, w->work, &s, stride, 0) : NULL;
    gn_scope_begin(w->g);
    w->ok = w->ok && gni_lg_store(w, y, index, gn_tril(view, 0), w->n, w->n);
    gn_scope_end(w->g);
    gni_unref(w->g, view);
}

// The inverses from the permutations as matrices.
static void gni_lg_do_inv(gni_lg *w, gn_array *y, int64_t index) {
    gn_context *g = w->g;
    const int64_t n = w->n, stride[3] = {n, 1, 1};
    gn_shape s = GN_SHAPE(w->count, n, 1);
    gni_lg_matrix b = gni_lg_matrix_of(y, index * n * n, n, n, n);
    b.step = n * n;
    gn_array *order = w->ok ? gni_array_view(g, w->fn, w->state, &s, stride, w->order) : NULL;
    gn_scope_begin(g);
    gn_array *place = gn_arange(g, GN_U32, 0.0, (double)(w->count * n), 1.0);
    place = gn_swap_axes(gn_reshape(place, s), -1, -2);
    w->ok = w->ok && gni_lg_store(w, y, index, gn_eq(order, place), n, n);
    gn_scope_end(g);
    gni_unref(g, order);
    if (w->ok) gni_lg_lu_solve(w, b);
}

// As many matrices at a time as there is room for. det: the determinants of all.
static void gni_lg_matrices(gni_lg *w, gni_la_job *d, gn_array *a, gn_array *b, const gn_shape *batch, int matrix,
                            gn_array *y, const int64_t *step) {
    gn_context *g = w->g;
    const int64_t stride[3] = {w->a.step, w->ld, 1};
    for (int64_t i = 0; i < d->batch && w->ok; i += w->count) {
        w->count = GNI_MIN(w->count, d->batch - i);
        if (i > 0) gni_lg_state(w, w->n, w->each);
        gn_array *x = gni_lg_item(g, a, batch, i, 2, step[0], w->count), *right = NULL;
        w->ok = w->ok && x != NULL && gni_copy_into(g, w->work->buf, w->t, 0, stride, x);
        gni_unref(g, x);
        if (d->kind == GNI_LA_CHOLESKY) {
            gni_lg_do_cholesky(w, y, i);
        } else if (!w->triangle) {
            gni_lg_lu(w);
        }
        if (d->kind == GNI_LA_INV) gni_lg_do_inv(w, y, i);
        if (b != NULL && w->ok) {
            right = gni_lg_item(g, b, batch, i, matrix, step[1], w->count);
            gni_lg_solve_item(w, right, y, d->k, i);
            gni_unref(g, right);
        }
        if (gni_la_is_det(d)) {
            gni_lg_det(w, d, i);
            continue;
        }
        const uint32_t *state = gni_lg_info(w);
        for (int64_t k = 0; k < w->count && state != NULL; k++) d->info[i + k] = (int64_t)state[k * w->each];
    }
}

// Sets *step to the distance from matrix to matrix over the whole batch. False when that differs.
static bool gni_ls_step(const gn_array *x, const gn_shape *batch, int matrix, int64_t *step) {
    const int own = x->shape.rank - matrix;
    int64_t next = 0; // what the dimension in front must have
    bool first = true;
    *step = 0;
    for (int i = batch->rank - 1; i >= 0; i--) {
        const int axis = i - batch->rank + own;
        const int64_t stride = axis >= 0 && x->shape.dim[axis] != 1 ? x->stride[axis] : 0;
        if (batch->dim[i] == 1) continue;
        if (first) *step = stride;
        if (!first && stride != next) return false;
        next = stride * batch->dim[i];
        first = false;
    }
    return true;
}

// Whether the GPU did it, with *y NULL after gni_fail. `matrix`: axes of a result beside the batch's.
static bool gni_lg_run(gni_la_job *d, gn_array *a, gn_array *b, const gn_shape *batch, int matrix,
                       gn_dtype t, gn_array **y) {
    gn_context *g = d->g;
    gni_lg w;
    gn_shape s = *batch;
    int64_t step[2] = {0, 0};
    *y = NULL;
    if (d->batch == 0 || !gni_lg_wanted(g, a, t, d->batch)) return false;
    if (matrix > 0 && !gni_lg_reaches(d->batch, d->n, matrix > 1 ? d->k : 1, t)) return false;
    const bool there = (a->buf->where & GNI_ON_GPU) != 0;
    if (b != NULL && !gni_materialize(g, b)) return g->call_failed;
    const bool even = gni_ls_step(a, batch, 2, step) && (b == NULL || gni_ls_step(b, batch, matrix, step + 1));
    if (!gni_lg_begin(&w, g, d->fn, t, d->n, matrix > 1 ? d->k : 1, even ? d->batch : 1)) return g->call_failed;
    w.triangle = d->kind == GNI_LA_TRIANGULAR;
    w.full = w.triangle && !d->unit;
    if (matrix > 0) s.dim[s.rank++] = d->n;
    if (matrix > 1) s.dim[s.rank++] = d->k;
    const int apart = d->kind == GNI_LA_LOG_DET;
    gn_array *out = gni_la_is_det(d) ? gni_la_output(d, 0, t, batch, apart, 2, 1) : gni_lg_array(g, t, &s);
    if (out == NULL && !g->call_failed) {
        gni_lg_end(&w);
        return false;
    }
    d->info = out != NULL ? (int64_t *)gni_calloc(g, (size_t)d->batch * sizeof(int64_t)) : NULL;
    if (out != NULL && d->info == NULL) gni_fail_memory(g, d->fn, (uint64_t)d->batch * 8);
    if (d->info != NULL) gni_lg_matrices(&w, d, a, b, batch, matrix, out, step);
    const bool ok = d->info != NULL && w.ok && gni_la_report(d);
    if (!ok && !g->call_failed) gni_fail_memory(g, d->fn, (uint64_t)d->n * (uint64_t)d->n * 8);
    gni_lg_end(&w);
    gni_free(g, d->info);
    d->info = NULL;
    if (!ok) {
        gni_unref(g, out);
        return true;
    }
    out->maker = d->fn;
    out->on_gpu = true;
    out->reason = (uint8_t)(there ? GNI_WHY_RESIDENT : GNI_WHY_LARGE);
    *y = out;
    return true;
}

// Whether the GPU did it: y[0] and y[1] of a's batch then hold q and r, in the dtype of the computation.
static bool gni_lg_qr_all(gni_la_job *d, gn_array *a, gn_dtype t, const gn_shape *batch,
                          gn_array **y) {
    gn_context *g = d->g;
    gni_lg_qr p;
    gn_shape sq = *batch, sr = *batch;
    if (d->batch == 0 || !gni_lg_wanted(g, a, t, 1) || !gni_lg_wanted(g, a, GN_F64, 1)) return false;
    if (!gni_lg_reaches(1, d->m + GNI_LG_SLICES, gni_lg_qr_width(d->m, d->n), GN_F64)) return false;
    const bool there = (a->buf->where & GNI_ON_GPU) != 0;
    gni_lg_qr_begin(&p, g, t, d->m, d->n);
    sq.dim[sq.rank++] = p.m;
    sq.dim[sq.rank++] = p.k;
    sr.dim[sr.rank++] = p.k;
    sr.dim[sr.rank++] = p.n;
    gn_array *q = p.w.ok ? gni_lg_array(g, t, &sq) : NULL, *r = NULL;
    if (q != NULL) r = gni_lg_array(g, t, &sr);
    bool ok = r != NULL;
    if (ok) gni_lg_zero(&p.w, r);
    for (int64_t i = 0; i < d->batch && ok; i++) {
        gn_array *x = gni_lg_item(g, a, batch, i, 2, 0, 1);
        ok = x != NULL;
        if (!ok) break;
        p.a = gni_lg_matrix_of(x, x->offset, p.m, p.n, x->stride[1]);
        p.a.cs = x->stride[2];
        p.q = gni_lg_matrix_of(q, i * p.m * p.k, p.m, p.k, p.k);
        p.r = gni_lg_matrix_of(r, i * p.k * p.n, p.k, p.n, p.n);
        ok = gni_lg_qr_run(&p);
        gni_unref(g, x);
    }
    gni_lg_qr_end(&p);
    if (!ok) {
        gni_unref(g, q);
        gni_unref(g, r);
        return g->call_failed;
    }
    q->maker = r->maker = "gn_qr";
    q->on_gpu = r->on_gpu = true;
    q->reason = r->reason = (uint8_t)(there ? GNI_WHY_RESIDENT : GNI_WHY_LARGE);
    y[0] = q;
    y[1] = r;
    return true;
}

// ---- batches of small ones

// All matrices of a batch at once, a workgroup for each, where large ones go one after the other:
// factor_small.glsl.

typedef struct gni_ls {
    gni_lg w; // w.state: what went wrong with each matrix, w.block: their rows' order
    gni_la_job *d;
    gn_array *x, *b;        // the matrices and the right-hand sides
    int64_t x_step, b_step; // from one to the next
} gni_ls;

// Whether `a` (..., m, n) is decomposed so, in dtype t.
static bool gni_ls_wanted(gni_la_job *d, gn_array *a, gn_dtype t, gni_factor_step step) {
    gn_context *g = d->g;
    gni_factor f;
    if (d->batch < 2 || d->m == 0 || d->n == 0) return false;
    if (GNI_CPU_ALONE || g->gpu == NULL || g->host_recording || g->gpu->lost) return false;
    if (g->placement == GN_PLACE_CPU || !gni_materialize(g, a)) return false;
    memset(&f, 0, sizeof f);
    f.a.dtype = t;
    f.order = GNI_MAX(d->m, d->n);
    f.step = step;
    if (a->buf == NULL || !gni_backend_gpu()->supports(g, GNI_JOB_FACTOR, &f)) return false;
    if (!gni_lg_reaches(d->batch, f.order, GNI_MAX(f.order, d->k), t)) return false;
    const bool there = (a->buf->where & GNI_ON_GPU) != 0;
    if (!there && g->placement == GN_PLACE_STAY) return false;
    // Eigenvalues and singular values are more work: fewer are worth it.
    const int64_t least = gni_threshold(g, GNI_JOB_FACTOR),
                  part = step >= GNI_FACTOR_SINGULAR ? 16 : 4;
    return d->batch * d->m * d->n >= (there ? (least + part - 1) / part : least);
}

// The operand in dtype t on the device, its matrices (`matrix` axes) equally far apart. One reference.
static gn_array *gni_ls_operand(gni_ls *s, gn_array *a, const gn_shape *batch, int matrix,
                                int64_t *step) {
    gni_lg *w = &s->w;
    gn_array *x = a;
    int64_t stride[GN_MAX_RANK];
    gn_shape whole = *batch;
    if (a->dtype == w->t)
        gni_ref(x);
    else
        x = gni_apply(w->g, w->fn, GNI_OP_CAST, a->dtype, w->t, &a, NULL, 1);
    if (x == NULL || !gni_materialize(w->g, x)) w->ok = false;
    const bool beyond = w->ok && x->buf->bytes >= (uint64_t)GNI_GPU_REACH;
    if (w->ok && (beyond || !gni_ls_step(x, batch, matrix, step))) {
        const int own = x->shape.rank - matrix;
        for (int i = 0; i < batch->rank; i++) {
            const int axis = i - batch->rank + own;
            stride[i] = axis >= 0 && x->shape.dim[axis] != 1 ? x->stride[axis] : 0;
        }
        for (int i = 0; i < matrix; i++) {
            stride[whole.rank] = x->stride[own + i];
            whole.dim[whole.rank++] = x->shape.dim[own + i];
        }
        gn_array *view = gni_array_view(w->g, w->fn, x, &whole, stride, x->offset), *copy = NULL;
        if (view != NULL) copy = gni_apply(w->g, w->fn, GNI_OP_CAST, w->t, w->t, &view, NULL, 1);
        gni_unref(w->g, view);
        gni_unref(w->g, x);
        x = copy;
        if (x == NULL || !gni_materialize(w->g, x) || !gni_ls_step(x, batch, matrix, step))
            w->ok = false;
    }
    if (w->ok && x->buf->bytes > 0 && !gni_lg_room(w->g, x->buf)) w->ok = false;
    return x;
}

static void gni_ls_end(gni_ls *s) {
    gni_unref(s->w.g, s->x);
    gni_unref(s->w.g, s->b);
    gni_lg_end(&s->w);
}

// One reference to an array of the batch's matrices, NULL when there is no memory.
static gn_array *gni_ls_array(gni_ls *s, gn_dtype t, int64_t m, int64_t n) {
    gn_shape shape = GN_SHAPE(s->d->batch, m, n);
    gn_array *y = s->w.ok ? gni_lg_array(s->w.g, t, &shape) : NULL;
    if (y == NULL) s->w.ok = false;
    return y;
}

static void gni_ls_begin(gni_ls *s, gni_la_job *d, gn_array *a, const gn_shape *batch, gn_dtype t) {
    gn_shape words = GN_SHAPE(d->batch + 1);
    memset(s, 0, sizeof *s);
    gni_lg_start(&s->w, d->g, d->fn, t);
    s->d = d;
    s->x = gni_ls_operand(s, a, batch, 2, &s->x_step);
    s->w.state = s->w.ok ? gni_lg_array(d->g, GN_U32, &words) : NULL;
    if (s->w.state == NULL) s->w.ok = false;
    if (s->w.ok && d->kind != GNI_LA_QR) gni_lg_zero(&s->w, s->w.state);
}

// The first words of every step: `from` with its last `matrix` axes, to `to`, which is contiguous.
static void gni_ls_step_of(gni_ls *s, gni_factor *f, gni_factor_step step, gn_array *from,
                           int matrix, int64_t from_step, gn_array *to, int64_t columns) {
    const gni_la_job *d = s->d;
    const int64_t *stride = from->stride + from->shape.rank - matrix;
    memset(f, 0, sizeof *f);
    f->step = step;
    f->items = d->batch;
    f->order = GNI_MAX(d->m, d->n);
    f->word[GNI_P_SMALL_BASE] = from->offset;
    f->word[GNI_P_SMALL_ROW] = stride[0];
    f->word[GNI_P_SMALL_COLUMN] = matrix > 1 ? stride[1] : 0;
    f->word[GNI_P_SMALL_STEP] = from_step;
    f->word[GNI_P_SMALL_TO_ROW] = columns;
    f->word[GNI_P_SMALL_TO_COLUMN] = 1;
    f->word[GNI_P_SMALL_TO_STEP] = d->m * columns;
    f->word[GNI_P_SMALL_BATCH] = d->batch;
    f->word[GNI_P_SMALL_N] = d->m;
    f->a.buf = from->buf;
    f->b.buf = to->buf;
    f->c.buf = s->w.state->buf;
    f->a.dtype = f->b.dtype = s->w.t;
    f->c.dtype = GN_U32;
}

static void gni_ls_go(gni_ls *s, gni_factor *f, gn_array *d) {
    if (d != NULL) {
        f->d.buf = d->buf;
        f->d.dtype = d->dtype;
    }
    s->w.ok = s->w.ok && gni_run(s->w.g, &gni_kind_factor, f, NULL);
}

// Matrices are read as triangles are: behind the right-hand sides.
static void gni_ls_matrices(gni_ls *s, gni_factor *f) {
    const int64_t *stride = s->x->stride + s->x->shape.rank - 2;
    f->word[GNI_P_SMALL_A] = s->x->offset;
    f->word[GNI_P_SMALL_A_ROW] = stride[0];
    f->word[GNI_P_SMALL_A_COLUMN] = stride[1];
    f->word[GNI_P_SMALL_A_STEP] = s->x_step;
    gni_ls_go(s, f, s->x);
}

// Whether there is an invocation for each matrix: y is then the result.
static bool gni_ls_tiny(gni_ls *s, gn_array *y, int matrix) {
    const gni_la_job *d = s->d;
    gni_factor f;
    if (d->n > GNI_TINY_MOST || d->kind == GNI_LA_TRIANGULAR || !s->w.ok) return false;
    const bool given = s->b != NULL;
    gni_ls_step_of(s, &f, GNI_FACTOR_TINY, given ? s->b : s->x, given ? matrix : 2, s->b_step, y, d->k);
    f.word[GNI_P_SMALL_MORE] = d->k;
    f.word[GNI_P_SMALL_MODE] = d->kind == GNI_LA_CHOLESKY  ? GNI_TINY_CHOLESKY
                               : d->kind == GNI_LA_DET     ? GNI_TINY_DETERMINANT
                               : d->kind == GNI_LA_LOG_DET ? GNI_TINY_LOG_DET
                               : !given                    ? GNI_TINY_INVERSE
                                                           : GNI_TINY_SOLVE;
    gni_ls_matrices(s, &f);
    return true;
}

static void gni_ls_cholesky(gni_ls *s, gn_array *y) {
    gni_factor f;
    if (!s->w.ok) return;
    gni_ls_step_of(s, &f, GNI_FACTOR_CHOLESKY, s->x, 2, s->x_step, y, s->d->n);
    gni_ls_go(s, &f, NULL);
}

static void gni_ls_det(gni_ls *s, gn_array *y) {
    gni_factor f;
    if (!s->w.ok) return;
    gni_ls_step_of(s, &f, GNI_FACTOR_LU, s->x, 2, s->x_step, s->w.state, s->d->n);
    f.word[GNI_P_SMALL_MODE] = s->d->kind == GNI_LA_DET ? GNI_SMALL_DETERMINANT : GNI_SMALL_LOG_DET;
    f.b = f.c;
    gni_ls_go(s, &f, y);
}

// y (n,k) = a^-1 b; the inverse without b.
static void gni_ls_solve(gni_ls *s, gn_array *y, int matrix) {
    gni_lg *w = &s->w;
    const int64_t n = s->d->n, k = s->d->k;
    gni_factor f;
    w->work = gni_ls_array(s, w->t, n, n);
    w->block = gni_ls_array(s, GN_U32, 1, n);
    if (!w->ok) return;
    gni_ls_step_of(s, &f, GNI_FACTOR_LU, s->x, 2, s->x_step, w->work, n);
    gni_ls_go(s, &f, w->block);
    gn_array *b = s->b != NULL ? s->b : w->work;
    gni_ls_step_of(s, &f, GNI_FACTOR_BACK, b, matrix, s->b_step, y, k);
    f.word[GNI_P_SMALL_MORE] = k;
    f.word[GNI_P_SMALL_MODE] = s->b == NULL ? GNI_SMALL_IDENTITY : 0;
    f.c.buf = w->work->buf;
    f.c.dtype = w->t;
    gni_ls_go(s, &f, w->block);
}

// y (n,k) = a^-1 b, of which the lower triangle counts.
static void gni_ls_triangle(gni_ls *s, gn_array *y, int matrix) {
    gni_factor f;
    if (!s->w.ok) return;
    gni_ls_step_of(s, &f, GNI_FACTOR_TRIANGLE, s->b, matrix, s->b_step, y, s->d->k);
    f.word[GNI_P_SMALL_MORE] = s->d->k;
    f.word[GNI_P_SMALL_MODE] = s->d->unit ? GNI_SMALL_UNIT : s->d->upper ? GNI_SMALL_UPPER : 0;
    gni_ls_matrices(s, &f);
}

static void gni_ls_compute(gni_ls *s, gn_array *y, int matrix) {
    if (gni_ls_tiny(s, y, matrix)) return;
    switch (s->d->kind) {
    case GNI_LA_CHOLESKY: gni_ls_cholesky(s, y); break;
    case GNI_LA_DET:
    case GNI_LA_LOG_DET: gni_ls_det(s, y); break;
    case GNI_LA_TRIANGULAR: gni_ls_triangle(s, y, matrix); break;
    default: gni_ls_solve(s, y, matrix); break;
    }
}

// What went wrong, if anything did, into d->info. Waits for the GPU; of a large batch one word says whether it is worth more.
static void gni_ls_info(gni_ls *s) {
    gni_lg *w = &s->w;
    gn_shape one = GN_SHAPE(1);
    const int64_t stride = 1;
    if (!w->ok) return;
    if (s->d->batch > 4096) {
        gn_array *view = gni_array_view(w->g, w->fn, w->state, &one, &stride, 0),
                 *word = view != NULL ? gni_lg_array(w->g, GN_U32, &one) : NULL;
        w->ok = word != NULL && gni_copy_into(w->g, word->buf, GN_U32, 0, &stride, view);
        const uint32_t *any = w->ok ? (const uint32_t *)gni_host(w->g, word) : NULL;
        if (any == NULL) w->ok = false;
        const bool fine = w->ok && *any == 0;
        gni_unref(w->g, view);
        gni_unref(w->g, word);
        if (fine) return;
    }
    s->d->info = (int64_t *)gni_calloc(w->g, (size_t)s->d->batch * sizeof(int64_t));
    if (s->d->info == NULL) {
        gni_fail_memory(w->g, s->d->fn, (uint64_t)s->d->batch * 8);
        w->ok = false;
    }
    const uint32_t *state = w->ok ? (const uint32_t *)gni_host(w->g, w->state) : NULL;
    if (state == NULL) w->ok = false;
    for (int64_t i = 0; i < s->d->batch && w->ok; i++)
        s->d->info[i] = (int64_t)(int32_t)state[1 + i];
}

static void gni_ls_name(gni_ls *s, gn_array *y, bool there) {
    y->maker = s->d->fn;
    y->on_gpu = true;
    y->reason = (uint8_t)(there ? GNI_WHY_RESIDENT : GNI_WHY_LARGE);
}

// As gni_lg_run.
static bool gni_ls_run(gni_la_job *d, gn_array *a, gn_array *b, const gn_shape *batch, int matrix,
                       gn_dtype t, gn_array **y) {
    gn_context *g = d->g;
    gni_ls s;
    gn_shape shape = *batch;
    *y = NULL;
    if (!gni_ls_wanted(d, a, t, GNI_FACTOR_QR)) return false;
    const bool there = (a->buf->where & GNI_ON_GPU) != 0;
    gni_ls_begin(&s, d, a, batch, t);
    if (b != NULL && s.w.ok) s.b = gni_ls_operand(&s, b, batch, matrix, &s.b_step);
    if (matrix > 0) shape.dim[shape.rank++] = d->n;
    if (matrix > 1) shape.dim[shape.rank++] = d->k;
    if (d->kind == GNI_LA_LOG_DET) shape.dim[shape.rank++] = 2;
    gn_array *out = s.w.ok ? gni_lg_array(g, t, &shape) : NULL;
    s.w.ok = s.w.ok && out != NULL;
    gni_ls_compute(&s, out, matrix);
    if (!gni_la_is_det(d) && !d->unit) gni_ls_info(&s);
    for (int64_t i = 0; i < d->batch && d->upper && d->info != NULL; i++)
        if (d->info[i] > 0) d->info[i] = d->n + 1 - d->info[i];
    const bool ok = s.w.ok && gni_la_report(d);
    gni_ls_end(&s);
    gni_free(g, d->info);
    d->info = NULL;
    if (!ok) {
        gni_unref(g, out);
        return g->call_failed;
    }
    gni_ls_name(&s, out, there);
    *y = out;
    return true;
}

// Whether the GPU did it.
static bool gni_ls_qr(gni_la_job *d, gn_array *a, gn_dtype t, const gn_shape *batch, gn_array **y) {
    gn_context *g = d->g;
    gni_ls s;
    gni_factor f;
    const int64_t k = GNI_MIN(d->m, d->n);
    gn_shape sq = *batch, sr = *batch;
    if (!gni_ls_wanted(d, a, t, GNI_FACTOR_QR)) return false;
    const bool there = (a->buf->where & GNI_ON_GPU) != 0;
    gni_ls_begin(&s, d, a, batch, t);
    sq.dim[sq.rank++] = d->m;
    sq.dim[sq.rank++] = k;
    sr.dim[sr.rank++] = k;
    sr.dim[sr.rank++] = d->n;
    y[0] = s.w.ok ? gni_lg_array(g, t, &sq) : NULL;
    y[1] = y[0] != NULL ? gni_lg_array(g, t, &sr) : NULL;
    if (y[1] == NULL) s.w.ok = false;
    if (s.w.ok) {
        gni_ls_step_of(&s, &f, GNI_FACTOR_QR, s.x, 2, s.x_step, y[0], k);
        f.word[GNI_P_SMALL_MORE] = d->n;
        gni_ls_go(&s, &f, y[1]);
    }
    const bool ok = s.w.ok;
    gni_ls_end(&s);
    for (int i = 0; i < 2; i++) {
        if (ok) {
            gni_ls_name(&s, y[i], there);
            continue;
        }
        gni_unref(g, y[i]);
        y[i] = NULL;
    }
    return ok || g->call_failed;
}

// What the kernel reads and writes: values, and unless they are NULL vectors. Of a wide matrix the transpose is taken, so
// that its right vectors are those on the left.
static void gni_ls_values_of(gni_ls *s, gni_factor *f, gn_array *const *y) {
    const gni_la_job *d = s->d;
    const bool svd = d->kind == GNI_LA_SVD, wide = d->m < d->n;
    const int64_t m = GNI_MAX(d->m, d->n), n = GNI_MIN(d->m, d->n);
    const int64_t *stride = s->x->stride + s->x->shape.rank - 2;
    gn_array *left = wide ? y[2] : y[1], *right = wide ? y[1] : y[2];
    memset(f, 0, sizeof *f);
    f->step = svd ? GNI_FACTOR_SINGULAR : GNI_FACTOR_EIGEN;
    if (y[1] != NULL) f->step = svd ? GNI_FACTOR_SINGULAR_VECTORS : GNI_FACTOR_EIGEN_VECTORS;
    f->items = d->batch;
    f->order = m;
    f->word[GNI_P_EIGEN_BASE] = s->x->offset;
    f->word[GNI_P_EIGEN_ROW] = stride[wide ? 1 : 0];
    f->word[GNI_P_EIGEN_COLUMN] = stride[wide ? 0 : 1];
    f->word[GNI_P_EIGEN_STEP] = s->x_step;
    f->word[GNI_P_EIGEN_BATCH] = d->batch;
    f->word[GNI_P_EIGEN_ROWS] = m;
    f->word[GNI_P_EIGEN_N] = n;
    f->word[GNI_P_EIGEN_FULL] = d->k;
    f->word[GNI_P_EIGEN_LEFT_ROW] = wide ? 1 : d->k;
    f->word[GNI_P_EIGEN_LEFT_COLUMN] = wide ? m : 1;
    f->word[GNI_P_EIGEN_LEFT_STEP] = m * d->k;
    f->word[GNI_P_EIGEN_RIGHT_ROW] = wide ? n : 1;
    f->word[GNI_P_EIGEN_RIGHT_COLUMN] = wide ? 1 : n;
    f->a.buf = s->x->buf;
    f->b.buf = y[0]->buf;
    f->c.buf = s->w.state->buf;
    if (left != NULL) f->d.buf = left->buf;
    if (right != NULL) f->e.buf = right->buf;
    f->a.dtype = f->b.dtype = f->d.dtype = f->e.dtype = s->w.t;
    f->c.dtype = GN_U32;
}

// Memory for the values (..., k) and the vectors, those of singular values on both sides.
static void gni_ls_values_arrays(gni_ls *s, const gn_shape *batch, bool vectors, bool full,
                                 gn_array **y) {
    const gni_la_job *d = s->d;
    const bool svd = d->kind == GNI_LA_SVD;
    const int64_t k = GNI_MIN(d->m, d->n);
    for (int i = 0; i < (!vectors ? 1 : svd ? 3 : 2) && s->w.ok; i++) {
        gn_shape shape = *batch;
        if (i == 1) shape.dim[shape.rank++] = d->m;
        shape.dim[shape.rank++] = i == 0 || !full ? k : i == 1 ? d->m : d->n;
        if (i == 2) shape.dim[shape.rank++] = d->n;
        y[i] = gni_lg_array(s->w.g, s->w.t, &shape);
        if (y[i] == NULL) s->w.ok = false;
    }
}

// Whether the GPU did it: eigenvalues or singular values, and vectors where there is a place for some.
static bool gni_ls_values(gni_la_job *d, gn_array *a, gn_dtype t, const gn_shape *batch, bool full,
                          gn_array **y, gn_array **const *place) {
    gn_context *g = d->g;
    gni_ls s;
    gni_factor f;
    const gni_factor_step step = d->kind == GNI_LA_SVD ? GNI_FACTOR_SINGULAR : GNI_FACTOR_EIGEN;
    if (!gni_ls_wanted(d, a, t, step)) return false;
    const bool there = (a->buf->where & GNI_ON_GPU) != 0;
    gni_ls_begin(&s, d, a, batch, t);
    gni_ls_values_arrays(&s, batch, place[1] != NULL || place[2] != NULL, full, y);
    if (s.w.ok) {
        gni_ls_values_of(&s, &f, y);
        s.w.ok = gni_run(g, &gni_kind_factor, &f, NULL);
    }
    gni_ls_info(&s);
    const bool ok = s.w.ok && gni_la_report(d);
    gni_ls_end(&s);
    gni_free(g, d->info);
    d->info = NULL;
    for (int i = 0; i < 3; i++) {
        if (y[i] == NULL) continue;
        if (ok && (i == 0 || place[i] != NULL)) {
            gni_ls_name(&s, y[i], there);
            continue;
        }
        gni_unref(g, y[i]);
        y[i] = NULL;
    }
    return ok || g->call_failed;
}

// Rounds the result to its dtype.
static gn_array *gni_lg_result(gni_la_job *d, gn_array *y, gn_dtype result) {
    if (y == NULL || y->dtype == result) return y;
    gn_array *cast = gni_apply(d->g, d->fn, GNI_OP_CAST, y->dtype, result, &y, NULL, 1);
    gni_unref(d->g, y);
    return cast;
}
