// >>divide_gpu
// Divide and conquer whose vectors are on the GPU: the CPU solves small parts whole, and of larger ones the secular
// equations. It keeps the first and last elements of all vectors, which is what those need, and hands the GPU a matrix for
// each merge. From outside: gni_dg_open, gni_dg_run, gni_dg_close.
//
// Vectors are columns here; of n rows with a column more than rows there are n + 1, and the last left one is a unit vector.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../linalg/divide.h"
#include "../linalg/factor_gpu.h"
#endif

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
