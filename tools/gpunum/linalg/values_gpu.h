// >>values_gpu
// Eigenvalues and singular values of large matrices on the GPU, one after the other: reflections to tridiagonal or
// bidiagonal form (reflect.comp), divide and conquer, and the reflections again on the vectors, by products. From
// outside: gni_lv_values (lv: values of large matrices; dg: divide and conquer with the GPU).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../linalg/divide.h"
#include "../linalg/factor_gpu.h"
#endif

// ---- divide and conquer

// The CPU solves small parts whole, and of larger ones the secular equations. It keeps the first and last elements of all
// vectors, which is what those need, and hands the GPU a matrix for each merge. Vectors are columns here; of n rows with a
// column more than rows there are n + 1, and the last left one is a unit vector.

// Parts of this order are left to one thread; and the columns that each row has in their memory.
enum { GNI_DG_PART = 128, GNI_DG_COLUMNS = 136 };

typedef struct gni_dg_rotations {
    int64_t count, *row; // pairs of rows
    double *cs;
} gni_dg_rotations;

typedef struct gni_dg {
    gni_lg *w;        // NULL: values alone
    bool singular;    // of a bidiagonal matrix, else of a symmetric tridiagonal one
    gni_la la, *part; // part: of each thread
    gni_dc c;
    int threads;
    int64_t n, ld, wide; // wide: columns of the vectors in memory, a multiple of 4
    double *d, *e;
    double *first, *last; // elements of the vectors, right ones of singular values
    double *next_first, *next_last, *row;
    int64_t *rank; // of the values, in the end
    int64_t *leaf; // where parts begin, their rows, and whether there is a column more
    int64_t leaves;
    gni_dg_rotations rotations[2];
    gn_array *parts[2], *z[2][2]; // right and left: of the parts, and of what they become by rotations
    // of the merge under way
    int64_t kept, rows, width, half, base;
    int side;
    bool top;
    void *mix;
} gni_dg;

static void gni_dg_rotate(gni_dg *p, const double *z, int64_t i, int64_t j, double cs, double sn) {
    gni_dg_rotations *t = &p->rotations[z == NULL ? 1 : 0];
    t->row[2 * t->count] = i;
    t->row[2 * t->count + 1] = j;
    t->cs[2 * t->count] = cs;
    t->cs[2 * t->count + 1] = sn;
    t->count++;
}

static double gni_dg_edge(const gni_dg *p, int64_t i, bool last) {
    return (last ? p->last : p->first)[p->base + i];
}

// ---- parts

static void gni_dg_store(const gni_dg *p, void *to, int64_t at, double x) {
    if (p->w->t == GN_F64)
        ((double *)to)[at] = x;
    else
        ((float *)to)[at] = (float)x;
}

// Sets the order of d: p->rank[i] is the place of value i.
static void gni_dg_rank(gni_dg *p, const double *d, int64_t n) {
    int64_t *order = p->c.order, *spare = p->c.left;
    for (int64_t i = 0; i < n; i++) order[i] = i;
    gni_dc_sort(d, order, spare, n);
    for (int64_t i = 0; i < n; i++) p->rank[order[i]] = p->singular ? n - 1 - i : i;
}

static void gni_dg_part(gni_dg *p, gni_la *w, const int64_t *leaf) {
    const int64_t at = leaf[0], n = leaf[1], width = n + leaf[2], ld = gni_la_ld(width);
    const bool whole = width == p->n;
    double *z[2];
    gni_dc c;
    if (!gni_la_reserve(w, 2 * width * ld +
                               gni_dc_values_memory(GNI_MAX(width, (int64_t)GNI_DC_LEAST)) + 64))
        return;
    z[0] = gni_la_take(w, width * ld);
    z[1] = gni_la_take(w, width * ld);
    if (p->singular) {
        gni_dc_take(&c, w, z[1], ld, width);
        gni_la_rotations_begin(&c.rotations_right, w, z[0], ld, GNI_DC_LEAF + 1, GNI_DC_LEAF + 1);
        c.s_left = gni_la_take(w, width * ld);
        c.singular = true;
        gni_la_unit(z[0], ld, width, width);
        gni_la_unit(z[1], ld, width, width);
        gni_dc_solve_values(&c, z[1], z[0], p->d + at, p->e + at, n, leaf[2]);
    } else {
        gni_dc_run(w, p->d + at, p->e + at, z[0], ld, n);
    }
    if (w->info != 0) return;
    for (int64_t i = 0; i < width; i++) {
        p->first[at + i] = z[0][i * ld];
        p->last[at + i] = z[0][i * ld + width - 1];
    }
    if (whole) gni_dg_rank(p, p->d, p->n);
    if (p->w == NULL) return;
    const int64_t columns = whole ? p->wide : width;
    const size_t bytes = gn_dtype_size(p->w->t);
    for (int side = 0; side < (p->singular ? 2 : 1); side++) {
        char *to = (char *)p->parts[side]->buf->host + (size_t)(at * GNI_DG_COLUMNS) * bytes;
        for (int64_t i = 0; i < width; i++)
            for (int64_t k = 0; k < width; k++)
                gni_dg_store(p, to, k * columns + (whole ? p->rank[i] : i), z[side][i * ld + k]);
        for (int64_t k = 0; k < width; k++)
            for (int64_t i = width; i < columns; i++) gni_dg_store(p, to, k * columns + i, 0.0);
    }
}

static void gni_dg_parts_task(void *arg, int64_t begin, int64_t end, int worker) {
    gni_dg *p = (gni_dg *)arg;
    gni_la *w = &p->part[worker];
    for (int64_t i = begin; i < end && w->info == 0; i++) gni_dg_part(p, w, p->leaf + 3 * i);
}

// Where a part of n rows is divided: rows of the first half.
static int64_t gni_dg_half(const gni_dg *p, int64_t n) {
    return gni_la_round(n / 2) - (p->singular ? 1 : 0);
}

// Lists the parts, and takes what connects them out of a symmetric matrix.
static void gni_dg_divide(gni_dg *p, int64_t at, int64_t n, int64_t extra) {
    if (n <= GNI_DG_PART) {
        int64_t *leaf = p->leaf + 3 * p->leaves++;
        leaf[0] = at;
        leaf[1] = n;
        leaf[2] = extra;
        return;
    }
    const int64_t h = gni_dg_half(p, n);
    if (p->singular) {
        gni_dg_divide(p, at, h, 1);
        gni_dg_divide(p, at + h + 1, n - h - 1, extra);
        return;
    }
    const double rho = fabs(p->e[at + h - 1]);
    p->d[at + h - 1] -= rho;
    p->d[at + h] -= rho;
    gni_dg_divide(p, at, h, 0);
    gni_dg_divide(p, at + h, n - h, 0);
}

// ---- merges

// Rows of the mixing matrix, one for each vector afterwards, and the vectors' elements.
static void gni_dg_mix_task(void *arg, int64_t begin, int64_t end, int worker) {
    gni_dg *p = (gni_dg *)arg;
    const gni_dc *c = &p->c;
    const gni_dg_rotations *t = &p->rotations[p->side];
    const int64_t n = p->width, h = p->half;
    double *row = p->row + 3 * (int64_t)worker * p->ld, *s = row + p->ld, *left = s + p->ld;
    for (int64_t r = begin; r < end; r++) {
        const int64_t place = p->top ? p->rank[r] : r;
        memset(row, 0, (size_t)n * sizeof *row);
        if (r < p->kept) {
            gni_dc_vector(c, r, s, p->side == 0 ? NULL : left);
            const double *from = p->side == 0 ? s : left;
            for (int64_t i = 0; i < p->kept; i++) row[c->list[i]] = from[i];
        } else {
            row[r < p->rows ? c->list[r] : r] = 1.0;
        }
        for (int64_t q = t->count - 1; q >= 0; q--) {
            double *a = &row[t->row[2 * q]], *b = &row[t->row[2 * q + 1]], x = *a, y = *b;
            const double cs = t->cs[2 * q], sn = t->cs[2 * q + 1];
            *a = x * cs - y * sn;
            *b = x * sn + y * cs;
        }
        if (p->side == 0) {
            p->next_first[r] = c->w->isa->dot(row, p->first + p->base, h);
            p->next_last[r] = c->w->isa->dot(row + h, p->last + p->base + h, n - h);
        }
        if (p->w == NULL) continue;
        if (p->w->t == GN_F64) {
            memcpy((double *)p->mix + place * n, row, (size_t)n * sizeof *row);
        } else {
            float *to = (float *)p->mix + place * n;
            for (int64_t i = 0; i < n; i++) to[i] = (float)row[i];
        }
    }
}

// The vectors of one side: `to` (width,columns) = those of the halves times the mixing matrix.
static gni_lg_matrix gni_dg_mix(gni_dg *p, int side, const gni_lg_matrix *first,
                                const gni_lg_matrix *second, int depth) {
    const int64_t n = p->width, h = p->half, columns = p->top ? p->wide : n;
    gn_shape s = GN_SHAPE(columns, n);
    gn_array *mix = NULL;
    gni_lg_matrix to = *first;
    p->side = side;
    p->mix = NULL;
    if (p->w != NULL) {
        mix = p->w->ok ? gni_array_filled(p->w->g, "", p->w->t, &s, &p->mix) : NULL;
        if (mix == NULL) {
            p->w->ok = false;
            return to;
        }
        const size_t row = (size_t)n * gn_dtype_size(p->w->t);
        memset((char *)p->mix + (size_t)n * row, 0, (size_t)(columns - n) * row);
    }
    gni_parallel(p->la.pool, n, 1 + 20000 / n, gni_dg_mix_task, p);
    if (p->w == NULL) return to;
    to = gni_lg_matrix_of(p->z[side][depth & 1], p->base * p->wide, n, columns, columns);
    gni_lg_matrix up = gni_lg_transposed(gni_lg_matrix_of(mix, 0, columns, h, n)),
                  down = gni_lg_transposed(gni_lg_matrix_of(mix, h, columns, n - h, n)),
                  to_up = gni_lg_part(to, 0, 0, h, columns),
                  to_down = gni_lg_part(to, h, 0, n - h, columns);
    gni_lg_product(p->w, &to_up, first, &up);
    gni_lg_product(p->w, &to_down, second, &down);
    gni_unref(p->w->g, mix);
    return to;
}

static void gni_dg_node(gni_dg *p, int64_t at, int64_t n, int64_t extra, int depth,
                        gni_lg_matrix *out);

static void gni_dg_merge(gni_dg *p, int64_t at, int64_t n, int64_t extra, int depth,
                         gni_lg_matrix *out) {
    const int64_t h = gni_dg_half(p, n), behind = p->singular ? h + 1 : h;
    gni_lg_matrix halves[2][2];
    gni_dc *c = &p->c;
    double *d = p->d + at;
    gni_dg_node(p, at, h, p->singular, depth + 1, halves[0]);
    gni_dg_node(p, at + behind, n - behind, extra, depth + 1, halves[1]);
    if (p->la.info != 0 || (p->w != NULL && !p->w->ok)) return;
    p->base = at;
    p->rows = n;
    p->width = n + extra;
    p->half = behind;
    p->top = depth == 0;
    p->rotations[0].count = p->rotations[1].count = 0;
    if (p->singular) {
        p->kept = gni_dc_join_values(c, NULL, p->first, d, p->e[at + h], n, h, extra);
    } else {
        const double e = p->e[at + h - 1];
        p->kept = gni_dc_join(c, p->first, d, n, h, fabs(e), e < 0.0 ? -1.0 : 1.0);
    }
    if (p->top) gni_dg_rank(p, d, n);
    for (int side = 0; side < (p->singular ? 2 : 1); side++)
        out[side] = gni_dg_mix(p, side, &halves[0][side], &halves[1][side], depth);
    memcpy(p->first + at, p->next_first, (size_t)p->width * sizeof(double));
    memcpy(p->last + at, p->next_last, (size_t)p->width * sizeof(double));
}

static void gni_dg_node(gni_dg *p, int64_t at, int64_t n, int64_t extra, int depth,
                        gni_lg_matrix *out) {
    if (n > GNI_DG_PART) {
        gni_dg_merge(p, at, n, extra, depth, out);
        return;
    }
    const int64_t width = n + extra, columns = depth == 0 ? p->wide : width;
    for (int side = 0; side < 2; side++)
        out[side] = gni_lg_matrix_of(p->parts[side], at * GNI_DG_COLUMNS, width, columns, columns);
}

// ---- the whole

static void gni_dg_close(gni_dg *p) {
    gn_context *g = p->la.g;
    if (g == NULL) return;
    for (int i = 0; i < p->threads && p->part != NULL; i++) gni_la_free(&p->part[i]);
    gni_free(g, p->part);
    gni_la_free(&p->la);
    for (int side = 0; side < 2; side++) {
        gni_unref(g, p->parts[side]);
        gni_unref(g, p->z[side][0]);
        gni_unref(g, p->z[side][1]);
    }
}

static bool gni_dg_arrays(gni_dg *p) {
    gn_context *g = p->la.g;
    void *data = NULL;
    gn_shape s = GN_SHAPE(p->n, p->wide), parts = GN_SHAPE(p->n, GNI_DG_COLUMNS);
    if (p->w == NULL) return true;
    for (int side = 0; side < (p->singular ? 2 : 1); side++) {
        p->parts[side] = gni_array_filled(g, "", p->w->t, &parts, &data);
        if (p->parts[side] == NULL) return false;
        for (int i = 0; i < 2 && p->n > GNI_DG_PART; i++) {
            p->z[side][i] = gni_lg_array(g, p->w->t, &s);
            if (p->z[side][i] == NULL) return false;
        }
    }
    return true;
}

// Memory for matrices of order n. False when there is none; gni_dg_close in any case.
static bool gni_dg_open(gni_dg *p, gn_context *g, gni_lg *w, bool singular, int64_t n) {
    memset(p, 0, sizeof *p);
    p->w = w;
    p->singular = singular;
    p->n = n;
    p->ld = gni_la_ld(n + 1);
    p->wide = gni_lg_up(n, 4);
    p->threads = gni_pool_threads(g->pool);
    p->la.g = g;
    p->la.pool = g->pool;
    p->la.isa = gni_la_isa_of((int)g->isa);
    p->part = (gni_la *)gni_calloc(g, (size_t)p->threads * sizeof(gni_la));
    if (p->part == NULL) return false;
    for (int i = 0; i < p->threads; i++) {
        p->part[i].g = g;
        p->part[i].isa = p->la.isa;
    }
    const int64_t line = gni_la_round(n + 2), parts = 3 * (8 * n / GNI_DG_PART + 2);
    if (!gni_la_reserve(&p->la, 30 * line + gni_la_round(parts) + 3 * p->threads * p->ld + 64))
        return false;
    double **vectors[14];
    int64_t **lists[7];
    gni_dc *c = &p->c;
    vectors[0] = &c->pole;
    vectors[1] = &c->weight;
    vectors[2] = &c->square;
    vectors[3] = &c->root;
    vectors[4] = &c->near_by;
    vectors[5] = &c->shift;
    vectors[6] = &c->scratch;
    vectors[7] = &c->carry;
    vectors[8] = &p->d;
    vectors[9] = &p->e;
    vectors[10] = &p->first;
    vectors[11] = &p->last;
    vectors[12] = &p->next_first;
    vectors[13] = &p->next_last;
    lists[0] = &c->order;
    lists[1] = &c->list;
    lists[2] = &c->left;
    lists[3] = &p->rank;
    lists[4] = &c->base;
    lists[5] = &p->rotations[0].row;
    lists[6] = &p->rotations[1].row;
    for (int i = 0; i < 14; i++) *vectors[i] = gni_la_take(&p->la, line);
    for (int i = 0; i < 7; i++)
        *lists[i] = (int64_t *)(void *)gni_la_take(&p->la, i < 5 ? line : 2 * line);
    for (int i = 0; i < 2; i++) p->rotations[i].cs = gni_la_take(&p->la, 2 * line);
    p->leaf = (int64_t *)(void *)gni_la_take(&p->la, parts);
    p->row = gni_la_take(&p->la, 3 * p->threads * p->ld);
    c->lines = p->row;
    c->w = &p->la;
    c->ld = p->ld;
    c->singular = singular;
    c->apart = p;
    return gni_dg_arrays(p);
}

// From p->d and p->e: the sorted values into d, and vectors in that order: out[0], of singular values the right ones,
// out[1] the left ones. Returns 0 or what went wrong.
static int64_t gni_dg_run(gni_dg *p, double *d, gni_lg_matrix *out) {
    p->leaves = 0;
    p->la.info = 0;
    gni_dg_divide(p, 0, p->n, 0);
    for (int i = 0; i < p->threads; i++) p->part[i].info = 0;
    for (int side = 0; side < 2; side++)
        if (p->parts[side] != NULL && !gni_buffer_claim(p->la.g, p->parts[side]->buf, GNI_ON_CPU))
            return GNI_LA_NO_MEMORY;
    gni_parallel(p->la.pool, p->leaves, 1, gni_dg_parts_task, p);
    for (int i = 0; i < p->threads; i++)
        if (p->part[i].info != 0) return p->part[i].info;
    gni_dg_node(p, 0, p->n, 0, 0, out);
    if (p->la.info != 0 || (p->w != NULL && !p->w->ok)) return p->la.info; // without an order
    for (int64_t i = 0; i < p->n; i++) d[p->rank[i]] = p->d[i];
    return 0;
}

// ---- one matrix after the other

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
    GNI_ZEROED(gni_factor, f);
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
    p->w.ok = p->w.ok && gni_run(p->w.g, &gni_kind_factor, &f, NULL);
}

// x (1,m,n) times a power of two, made tridiagonal or bidiagonal: p->dg.d and .e. Returns what to multiply the values
// with, or 0 for a matrix that is not finite.
static double gni_lv_reflect(gni_lv *p, gn_array *x) {
    gni_lg *w = &p->w;
    const bool wide = x->shape.dim[1] < x->shape.dim[2], precise = w->t == GN_F64;
    int64_t load[GNI_FACTOR_WORDS] = {0}, word[GNI_FACTOR_WORDS] = {0};
    load[GNI_P_LOAD_BASE] = x->offset;
    load[GNI_P_LOAD_ROW] = x->stride[wide ? 2 : 1];
    load[GNI_P_LOAD_COLUMN] = x->stride[wide ? 1 : 2];
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
    GNI_ZEROED(gni_matmul, d);
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
    if (blocks > 0) w->ok = w->ok && gni_run(w->g, &gni_kind_matmul, &d, NULL);
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
    const bool wide = x->shape.dim[1] < x->shape.dim[2], precise = w->t == GN_F64;
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
    if (d->batch == 0 || n == 0 || GNI_CPU_ALONE || g->gpu == NULL || g->host_recording || g->gpu->lost)
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
        gn_array *x = gni_lg_item(g, from, batch, i, 2, 0, 1);
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
