// >>values_gpu
// Eigenvalues and singular values of large matrices on the GPU, one after the other: reflections to tridiagonal or
// bidiagonal form (reflect.comp), divide and conquer, and the reflections again on the vectors, by products. From
// outside: gni_lv_values.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../linalg/factor_cpu.h"
#include "../linalg/divide_gpu.h"
#endif

typedef struct gni_lv {
    gni_lg w; // w.state: the highest bits of the largest element
    gni_dg dg;
    bool svd, vectors, full;
    int64_t m, n;                           // m >= n: wide matrices are taken transposed
    int64_t ld, ld_transposed;                  // rows of the matrix and of its transpose
    int64_t left, right, raw, raw_ld, zero; // places in `reflections`
    gn_array *matrix, *reflections, *numbers;
    // Products of reflections in a block, and with the vectors; left vectors of a tall matrix.
    gn_array *gram, *x, *tall;
    double *values;
} gni_lv;

static gn_array *gni_lv_line(gni_lv *p, gn_dtype t, int64_t count) {
    gn_shape s = GN_SHAPE(count);
    gn_array *y = p->w.ok ? gni_lg_array(p->w.g, t, &s) : NULL;
    if (y == NULL) p->w.ok = false;
    return y;
}

static void gni_lv_end(gni_lv *p) {
    gn_context *g = p->w.g;
    gni_unref(g, p->matrix);
    gni_unref(g, p->reflections);
    gni_unref(g, p->numbers);
    gni_unref(g, p->gram);
    gni_unref(g, p->x);
    gni_unref(g, p->tall);
    gni_free(g, p->values);
    gni_dg_close(&p->dg);
    gni_lg_end(&p->w);
}

// Elements that the vectors and their products take, of which the last is `zero`.
static int64_t gni_lv_places(gni_lv *p) {
    const int64_t rows = gni_lg_up(p->n, GNI_LG_PANEL), of_left = p->svd ? p->ld_transposed : p->ld;
    p->raw_ld = GNI_MAX(p->ld, p->ld_transposed);
    p->left = gni_lg_up(4 * p->n, 4);
    p->right = p->left + rows * of_left;
    p->raw = p->right + (p->svd ? rows * p->ld : 0);
    p->zero = p->raw + 4 * p->raw_ld;
    return p->zero + p->raw_ld;
}

// Memory for one matrix after the other. gni_lv_end in any case.
static void gni_lv_begin(gni_lv *p, gni_la_job *d, gn_dtype t, bool vectors, bool full) {
    gn_context *g = d->g;
    gni_lg *w = &p->w;
    memset(p, 0, sizeof *p);
    gni_lg_start(w, g, d->fn, t);
    p->svd = d->kind == GNI_LA_SVD;
    p->vectors = vectors;
    p->full = full;
    p->m = GNI_MAX(d->m, d->n);
    p->n = GNI_MIN(d->m, d->n);
    p->ld = gni_lg_up(p->n, 4);
    p->ld_transposed = p->svd ? gni_lg_up(p->m, 4) : 0;
    const int64_t blocks = gni_lg_up(p->n, GNI_LG_PANEL) / GNI_LG_PANEL,
                  widest = full ? p->m : p->n;
    p->matrix = gni_lv_line(p, t, p->m * p->ld + p->n * p->ld_transposed);
    p->reflections = gni_lv_line(p, t, gni_lv_places(p));
    p->numbers = gni_lv_line(p, t, 4 * p->n);
    w->state = gni_lv_line(p, GN_U32, 4);
    if (vectors) {
        p->gram = gni_lv_line(p, t, blocks * GNI_LG_PANEL * GNI_LG_PANEL);
        p->x = gni_lv_line(p, t, GNI_LG_PANEL * widest);
        w->block = gni_lg_plane(w, t, GNI_LG_BLOCK, GNI_LG_BLOCK);
        w->temp = gni_lg_plane(w, t, 16, p->m);
        if (p->svd && (p->m > p->n)) p->tall = gni_lg_plane(w, t, p->m, gni_lg_up(widest, 4));
    }
    p->values = (double *)gni_alloc(g, (size_t)p->n * sizeof(double));
    if (p->values == NULL) w->ok = false;
    w->ok = w->ok && gni_dg_open(&p->dg, g, vectors ? w : NULL, p->svd, p->n);
}

static void gni_lv_job(gni_lv *p, gni_factor_step step, gn_array *a, gn_array *b, gn_array *c,
                       const int64_t *word) {
    gni_factor f;
    memset(&f, 0, sizeof f);
    f.step = step;
    f.items = 1;
    memcpy(f.word, word, sizeof f.word);
    f.a.buf = a->buf;
    f.b.buf = b->buf;
    f.a.dtype = a->dtype;
    f.b.dtype = b->dtype;
    if (c != NULL) {
        f.c.buf = c->buf;
        f.c.dtype = c->dtype;
    }
    p->w.ok = p->w.ok && gni_run(p->w.g, GNI_JOB_FACTOR, &f, NULL);
}

// x (m,n) times a power of two, made tridiagonal or bidiagonal: p->dg.d and .e. Returns what to multiply the values
// with, or 0 for a matrix that is not finite.
static double gni_lv_reflect(gni_lv *p, gn_array *x) {
    gni_lg *w = &p->w;
    const bool wide = x->shape.dim[0] < x->shape.dim[1], precise = w->t == GN_F64;
    int64_t load[GNI_FACTOR_WORDS] = {0}, word[GNI_FACTOR_WORDS] = {0};
    load[GNI_P_LOAD_BASE] = x->offset;
    load[GNI_P_LOAD_ROW] = x->stride[wide ? 1 : 0];
    load[GNI_P_LOAD_COLUMN] = x->stride[wide ? 0 : 1];
    load[GNI_P_LOAD_M] = word[GNI_REFLECT_M] = p->m;
    load[GNI_P_LOAD_N] = word[GNI_REFLECT_N] = p->n;
    load[GNI_P_LOAD_SYMMETRIC] = word[GNI_REFLECT_SYMMETRIC] = !p->svd;
    load[GNI_P_LOAD_LD] = word[GNI_REFLECT_LD] = p->ld;
    load[GNI_P_LOAD_TRANSPOSED] = word[GNI_REFLECT_TRANSPOSED] = p->m * p->ld;
    load[GNI_P_LOAD_TRANSPOSED_LD] = word[GNI_REFLECT_LD_TRANSPOSED] = p->ld_transposed;
    word[GNI_REFLECT_LEFT] = p->left;
    word[GNI_REFLECT_RIGHT] = p->right;
    word[GNI_REFLECT_RAW] = p->raw;
    word[GNI_REFLECT_RAW_LD] = p->raw_ld;
    word[GNI_REFLECT_ZERO] = p->zero;
    gni_lg_zero(w, w->state);
    gni_lg_zero(w, p->reflections);
    gni_lv_job(p, GNI_FACTOR_SIZE, x, w->state, NULL, load);
    gni_lv_job(p, GNI_FACTOR_LOAD, x, p->matrix, w->state, load);
    gni_lv_job(p, GNI_FACTOR_REFLECT, p->matrix, p->reflections, NULL, word);
    gni_lg_matrix from = gni_lg_matrix_of(p->reflections, 0, 1, 4 * p->n, 4 * p->n), to = from;
    to.of = p->numbers;
    if (w->ok) gni_lg_copy(w, &to, &from);
    const void *numbers = w->ok ? gni_host(w->g, p->numbers) : NULL;
    const uint32_t *state = numbers != NULL ? (const uint32_t *)gni_host(w->g, w->state) : NULL;
    if (state == NULL) w->ok = false;
    if (state == NULL || state[0] >= (precise ? 0x7ff00000u : 0x7f800000u)) return 0.0;
    for (int64_t j = 0; j < p->n; j++) {
        // The diagonal, the element beside it; of a bidiagonal matrix what columns and rows leave.
        const int64_t i = p->svd ? 4 * j + 1 : 2 * j, k = p->svd ? i + 2 : i + 1;
        p->dg.d[j] = precise ? ((const double *)numbers)[i] : (double)((const float *)numbers)[i];
        p->dg.e[j] = precise ? ((const double *)numbers)[k] : (double)((const float *)numbers)[k];
    }
    // Divide and conquer asks for elements of about 1, which those of the smallest matrices are not yet.
    double most = 0.0;
    int more = 0;
    for (int64_t j = 0; j < p->n; j++)
        most = GNI_MAX(most, GNI_MAX(fabs(p->dg.d[j]), fabs(p->dg.e[j])));
    frexp(most, &more);
    for (int64_t j = 0; j < p->n; j++) {
        p->dg.d[j] = ldexp(p->dg.d[j], -more);
        p->dg.e[j] = ldexp(p->dg.e[j], -more);
    }
    const int power = (int)(state[0] >> (precise ? 20 : 23));
    return ldexp(1.0, more + (precise ? GNI_MAX(GNI_MIN(power, 2022), 24) - 1023
                                      : GNI_MAX(GNI_MIN(power, 230), 2) - 127));
}

// z (m,k) = H_0 H_1 ... z for `count` reflections, whose vectors are rows of `ld` from place `at` on; that of H_j begins
// at column j + shift. Blocks of them are 1 - V^T T V, where T^-1 is what is above the diagonal of V V^T and ones on it.
static void gni_lv_apply(gni_lv *p, int64_t at, int64_t ld, int64_t count, int64_t shift,
                         gni_lg_matrix z) {
    gni_lg *w = &p->w;
    const int64_t b = GNI_LG_PANEL, blocks = gni_lg_up(count, b) / b;
    gni_matmul d;
    memset(&d, 0, sizeof d);
    d.m = d.n = b;
    d.k = z.m;
    d.a_rs = d.b_cs = ld;
    d.a_cs = d.b_rs = 1;
    d.batch_rank = 1;
    d.batch_dim[0] = blocks;
    d.a_batch[0] = d.b_batch[0] = b * ld;
    gni_lg_matrix v = gni_lg_matrix_of(p->reflections, at, count, z.m, ld),
                  gram = gni_lg_matrix_of(p->gram, 0, b, b, b);
    gni_lg_operand(&d.a, &v);
    gni_lg_operand(&d.b, &v);
    gni_lg_operand(&d.c, &gram);
    if (blocks > 0) w->ok = w->ok && gni_run(w->g, GNI_JOB_MATMUL, &d, NULL);
    for (int64_t i = blocks - 1; i >= 0 && w->ok; i--) {
        const int64_t j = i * b, jb = GNI_MIN(b, count - j), from = j + shift;
        gni_lg_matrix part = gni_lg_part(v, j, from, jb, z.m - from),
                      rows = gni_lg_part(z, from, 0, z.m - from, z.n), t = gram,
                      x = gni_lg_matrix_of(p->x, 0, jb, z.n, z.n), back = x;
        gni_lg_product(w, &x, &part, &rows);
        // An upper triangle read backwards is a lower one.
        t.offset += i * b * b + (jb - 1) * (b + 1);
        t.rs = -b;
        t.cs = -1;
        t.m = t.n = jb;
        back.offset += (jb - 1) * z.n;
        back.rs = -z.n;
        gni_lg_solve_panel(w, t, back, true, false);
        gni_lg_subtract(w, rows, gni_lg_transposed(part), x, false);
    }
}

// The left vectors of a tall matrix: those of the bidiagonal one above zeros, and beside them a unit matrix.
static gni_lg_matrix gni_lv_tall(gni_lv *p, gni_lg_matrix z, int64_t columns) {
    gni_lg *w = &p->w;
    gni_lg_matrix to = gni_lg_matrix_of(p->tall, 0, p->m, columns, p->tall->shape.dim[1]);
    gni_lg_zero(w, p->tall);
    gni_lg_matrix top = gni_lg_part(to, 0, 0, p->n, p->n);
    z.n = p->n;
    gni_lg_copy(w, &top, &z);
    if (columns == p->n) return to;
    gn_shape s = GN_SHAPE(p->m - p->n);
    const int64_t stride = to.rs + 1;
    gn_array *one = w->ok ? gni_const(w->g, "", w->t, &s, 1.0) : NULL;
    w->ok = one != NULL && gni_copy_into(w->g, p->tall->buf, w->t, p->n * stride, &stride, one);
    gni_unref(w->g, one);
    return to;
}

// Values and vectors of one matrix, into the places of number `index` in y. Returns 0 or what is wrong with it.
static int64_t gni_lv_item(gni_lv *p, gn_array *x, int64_t index, gn_array **y) {
    gni_lg *w = &p->w;
    const bool wide = x->shape.dim[0] < x->shape.dim[1], precise = w->t == GN_F64;
    const int64_t n = p->n, k = p->full ? p->m : n;
    gni_lg_matrix z[2], to;
    const double scale = gni_lv_reflect(p, x);
    if (!w->ok) return 0;
    if (scale == 0.0) return GNI_LA_NOT_FINITE;
    const int64_t info = gni_dg_run(&p->dg, p->values, z);
    if (info != 0 || !w->ok) return info;
    for (int64_t i = 0; i < n; i++) {
        if (precise)
            ((double *)y[0]->buf->host)[index * n + i] = p->values[i] * scale;
        else
            ((float *)y[0]->buf->host)[index * n + i] = (float)(p->values[i] * scale);
    }
    if (!p->vectors) return 0;
    z[0].n = n;
    gni_lv_apply(p, p->svd ? p->right : p->left, p->ld, n - 1, 1, z[0]);
    if (!p->svd) {
        to = gni_lg_matrix_of(y[1], index * n * n, n, n, n);
        gni_lg_copy(w, &to, &z[0]);
        return 0;
    }
    z[1].n = n;
    if (p->m > n) z[1] = gni_lv_tall(p, z[1], k);
    gni_lv_apply(p, p->left, p->ld_transposed, n, 0, z[1]);
    // Left vectors are columns of u, right ones rows of vt; of a wide matrix they have changed places.
    gni_lg_matrix u = wide ? z[0] : z[1], v = gni_lg_transposed(wide ? z[1] : z[0]);
    if (y[1] != NULL) {
        to = gni_lg_matrix_of(y[1], index * u.m * u.n, u.m, u.n, u.n);
        gni_lg_copy(w, &to, &u);
    }
    if (y[2] != NULL) {
        to = gni_lg_matrix_of(y[2], index * v.m * v.n, v.m, v.n, v.n);
        gni_lg_copy(w, &to, &v);
    }
    return 0;
}

// Whether it is worth it. Of several matrices the CPU does one in each thread.
static bool gni_lv_wanted(gni_la_job *d, gn_array *a, gn_dtype t) {
    gn_context *g = d->g;
    gni_factor f;
    const int64_t m = GNI_MAX(d->m, d->n), n = GNI_MIN(d->m, d->n);
    if (d->batch == 0 || n == 0 || g->gpu == NULL || g->recording || g->gpu->lost)
        return false;
    if (g->placement == GN_PLACE_CPU || !gni_materialize(g, a) || a->buf == NULL)
        return false;
    memset(&f, 0, sizeof f);
    f.step = GNI_FACTOR_REFLECT;
    f.order = m;
    f.a.buf = a->buf;
    f.a.dtype = t;
    if (m >= INT32_MAX || !gni_backend_gpu()->supports(g, GNI_JOB_FACTOR, &f)) return false;
    f.step = GNI_FACTOR_SOLVE;
    f.order = 0;
    if (!gni_backend_gpu()->supports(g, GNI_JOB_FACTOR, &f)) return false;
    if (!gni_lg_reaches(d->batch, m, m, t)) return false;
    const bool there = (a->buf->where & GNI_ON_GPU) != 0;
    if (!there && g->placement == GN_PLACE_STAY) return false;
    const int64_t least = gni_threshold(g, GNI_JOB_FACTOR), few = d->batch > 1 ? 4 : 1;
    return d->m * d->n >= (there ? (least + 3) / 4 : least) * few;
}

// Whether the GPU did it. As gni_ls_values.
static bool gni_lv_values(gni_la_job *d, gn_array *a, gn_dtype t, const gn_shape *batch, bool full,
                          gn_array **y, gn_array **const *place) {
    gn_context *g = d->g;
    gni_lv p;
    gn_array *from = a;
    void *data = NULL;
    if (!gni_lv_wanted(d, a, t)) return false;
    const bool there = (a->buf->where & GNI_ON_GPU) != 0, svd = d->kind == GNI_LA_SVD;
    const bool vectors = place[1] != NULL || place[2] != NULL;
    gni_lv_begin(&p, d, t, vectors, svd && full);
    if (a->dtype == t)
        gni_ref(from);
    else
        from = p.w.ok ? gni_apply(g, d->fn, GNI_OP_CAST, a->dtype, t, &a, NULL, 1) : NULL;
    if (from == NULL || !gni_materialize(g, from)) p.w.ok = false;
    gn_shape s = *batch;
    s.dim[s.rank++] = p.n;
    y[0] = p.w.ok ? gni_array_filled(g, "", t, &s, &data) : NULL;
    if (y[0] == NULL) p.w.ok = false;
    for (int i = 1; i < (svd ? 3 : 2) && p.w.ok; i++) {
        if (place[i] == NULL) continue;
        s = *batch;
        s.dim[s.rank++] = i == 1 ? d->m : full ? d->n : p.n;
        s.dim[s.rank++] = i == 2 ? d->n : full ? d->m : p.n;
        y[i] = gni_lg_array(g, t, &s);
        if (y[i] == NULL) p.w.ok = false;
    }
    d->info = p.w.ok ? (int64_t *)gni_calloc(g, (size_t)d->batch * sizeof(int64_t)) : NULL;
    if (d->info == NULL) p.w.ok = false;
    for (int64_t i = 0; i < d->batch && p.w.ok; i++) {
        gn_array *x = gni_lg_item(g, from, batch, i, 2);
        if (x == NULL) p.w.ok = false;
        if (p.w.ok) d->info[i] = gni_lv_item(&p, x, i, y);
        gni_unref(g, x);
    }
    const bool ok = p.w.ok && gni_la_report(d);
    gni_unref(g, from);
    gni_lv_end(&p);
    gni_free(g, d->info);
    d->info = NULL;
    for (int i = 0; i < 3; i++) {
        if (y[i] == NULL) continue;
        if (ok) {
            y[i]->maker = d->fn;
            y[i]->on_gpu = true;
            y[i]->reason = (uint8_t)(there ? GNI_WHY_RESIDENT : GNI_WHY_LARGE);
            continue;
        }
        gni_unref(g, y[i]);
        y[i] = NULL;
    }
    return ok || g->call_failed;
}
