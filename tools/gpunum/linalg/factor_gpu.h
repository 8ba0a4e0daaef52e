// >>factor_gpu
// Decompositions of large matrices on the GPU: panels of 128 columns by kernels of their own, everything else
// by matrix products. From outside: gni_lg_wanted and what room factor_batch calls (lg: linear algebra on the GPU).
// Except by QR several matrices are done side by side, by the same dispatches.
//
// LU is right-looking. Pivots of panels with more rows than a workgroup has threads are found in a tournament
// (Grigori, Demmel, Xiang 2011), which bounds the growth almost as partial pivoting does.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/macros.h"
#include "../core/place.h"
#include "../gpu/gpu_backend.h"
#include "../linalg/factor_cpu.h"
#endif

#define GNI_LG_PANEL ((int64_t)128)     // columns of a panel
#define GNI_LG_BLOCK ((int64_t)32)      // columns that a kernel does at a time
#define GNI_LG_PICKED 32                // words of the state: rows picked,
#define GNI_LG_COUNTERS 64              // workgroups that have finished,
#define GNI_LG_LISTS ((int64_t)192)     // lists of rows, the order of the rows
#define GNI_LG_PAIRS ((int64_t)3072)    // rows from which panels go in pairs
#define GNI_LG_TEMP ((int64_t)16 << 20) // elements of matrices side by side, at most

// A matrix inside an array's buffer, any strides; step: to the next one.
typedef struct gni_lg_matrix {
    gn_array *of;
    int64_t offset, rs, cs, m, n, step;
} gni_lg_matrix;

typedef struct gni_lg {
    gn_context *g;
    const char *fn;
    gn_dtype t;
    int64_t count, n, ld;
    int64_t each, order; // words of the state for each of `count` matrices; behind them the rows' numbers of all
    gn_array *work, *state, *block, *temp;
    gni_lg_matrix a;
    bool ok, triangle, full; // the matrix is a lower triangle; its diagonal is not 1
} gni_lg;

static gni_lg_matrix gni_lg_matrix_of(gn_array *of, int64_t offset, int64_t m, int64_t n,
                                      int64_t rs) {
    gni_lg_matrix a;
    a.of = of;
    a.offset = offset;
    a.rs = rs;
    a.cs = 1;
    a.m = m;
    a.n = n;
    a.step = 0;
    return a;
}

static int64_t gni_lg_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// For the lists: at most one row of four stays after each round.
static int64_t gni_lg_places(int64_t n) { return n / 2 + 128; }

// Device memory without an error when there is none: the CPU can do it then.
static bool gni_lg_room(gn_context *g, gni_buffer *b) {
    if (b->has_device) return true;
    b->has_device = gni_gpu_alloc(g->gpu, GNI_MAX(b->bytes, 16), &b->device);
    return b->has_device;
}

static gn_array *gni_lg_array(gn_context *g, gn_dtype t, const gn_shape *s) {
    gn_array *y = gni_array_empty(g, "", t, s);
    if (y != NULL && (y->buf->bytes == 0 || gni_lg_room(g, y->buf))) return y;
    gni_unref(g, y);
    return NULL;
}

// What the kernels can number the bytes of.
static bool gni_lg_reaches(int64_t batch, int64_t rows, int64_t columns, gn_dtype t) {
    return (double)batch * (double)rows * (double)columns * (double)gn_dtype_size(t) <
           (double)GNI_GPU_REACH;
}

// Whether `a` (..., m, n) is decomposed on the GPU, `count` at a time, with its dtype there.
static bool gni_lg_wanted(gn_context *g, gn_array *a, gn_dtype t, int64_t count) {
    gni_factor f;
    if (GNI_CPU_ALONE || g->gpu == NULL || g->host_recording || g->gpu->lost) return false;
    if (g->placement == GN_PLACE_CPU || !gni_materialize(g, a)) return false;
    const int rank = a->shape.rank;
    const int64_t rows = a->shape.dim[rank - 2], columns = a->shape.dim[rank - 1];
    memset(&f, 0, sizeof f);
    f.a.dtype = t;
    if (rows >= INT32_MAX / 64 || columns >= INT32_MAX / 64 || a->buf == NULL) return false;
    if (rows * gni_lg_up(columns, 4) * (int64_t)gn_dtype_size(t) >= (int64_t)1 << 32) return false;
    if (!gni_backend_gpu()->supports(g, GNI_JOB_FACTOR, &f)) return false;
    const bool there = (a->buf->where & GNI_ON_GPU) != 0;
    if (!there && g->placement == GN_PLACE_STAY) return false;
    int64_t least = gni_threshold(g, GNI_JOB_FACTOR);
    return count * rows * columns >= (there ? (least + 3) / 4 : least);
}

// Until gni_lg_end everything goes to the GPU, and products are float32's.
static void gni_lg_start(gni_lg *w, gn_context *g, const char *fn, gn_dtype t) {
    memset(w, 0, sizeof *w);
    w->g = g;
    w->fn = fn;
    w->t = t;
    w->count = 1;
    w->ok = true;
    g->placement = GN_PLACE_GPU;
    g->precision = GN_PRECISION_F32;
}

static void gni_lg_end(gni_lg *w) {
    gni_unref(w->g, w->work);
    gni_unref(w->g, w->state);
    gni_unref(w->g, w->block);
    gni_unref(w->g, w->temp);
    gni_place_as_asked(w->g);
}

// The state: zeros, and the numbers of the rows of all matrices.
static void gni_lg_state(gni_lg *w, int64_t n, int64_t each) {
    void *data = NULL;
    gn_shape s = GN_SHAPE(w->count * (each + n));
    w->each = each;
    w->order = w->count * each;
    gni_unref(w->g, w->state);
    w->state = w->ok ? gni_array_filled(w->g, "", GN_U32, &s, &data) : NULL;
    w->ok = w->state != NULL;
    if (!w->ok) return;
    memset(data, 0, (size_t)w->order * sizeof(uint32_t));
    for (int64_t i = 0; i < w->count * n; i++) ((uint32_t *)data)[w->order + i] = (uint32_t)i;
}

// Memory for up to `count` matrices of order n and right-hand sides of up to k columns. False when it does not fit, and then
// nothing is held.
static bool gni_lg_begin(gni_lg *w, gn_context *g, const char *fn, gn_dtype t, int64_t n, int64_t k, int64_t count) {
    gni_lg_start(w, g, fn, t);
    w->n = n;
    w->ld = gni_lg_up(n, 4);
    count = w->count = GNI_MAX(GNI_MIN(GNI_MIN(count, 1024), GNI_LG_TEMP / (n * w->ld)), 1);
    gn_shape matrix = GN_SHAPE(count, n, w->ld), block = GN_SHAPE(count, GNI_LG_BLOCK, GNI_LG_BLOCK),
             temp = GN_SHAPE(count * n * GNI_MIN(k, 16));
    w->work = gni_lg_array(g, t, &matrix);
    if (w->work != NULL) w->block = gni_lg_array(g, t, &block);
    if (w->block != NULL) w->temp = gni_lg_array(g, t, &temp);
    w->ok = w->temp != NULL;
    gni_lg_state(w, n, GNI_LG_LISTS + gni_lg_places(n));
    if (!w->ok) {
        gni_lg_end(w);
        return false;
    }
    w->a = gni_lg_matrix_of(w->work, 0, n, n, w->ld);
    w->a.step = n * w->ld;
    return true;
}

// ---- pieces

static gni_lg_matrix gni_lg_part(gni_lg_matrix a, int64_t i, int64_t j, int64_t m, int64_t n) {
    a.offset += i * a.rs + j * a.cs;
    a.m = m;
    a.n = n;
    return a;
}

static gni_lg_matrix gni_lg_transposed(gni_lg_matrix a) {
    gni_lg_matrix y = a;
    y.rs = a.cs;
    y.cs = a.rs;
    y.m = a.n;
    y.n = a.m;
    return y;
}

static void gni_lg_operand(gni_operand *o, const gni_lg_matrix *a) {
    memset(o, 0, sizeof *o);
    o->buf = a->of->buf;
    o->dtype = a->of->dtype;
    o->offset = a->offset;
    o->stride[0] = a->step;
    o->stride[1] = a->rs;
    o->stride[2] = a->cs;
}

// c (m,n; contiguous) = a b, each with the bits that it has alone
static void gni_lg_product(gni_lg *w, const gni_lg_matrix *c, const gni_lg_matrix *a,
                           const gni_lg_matrix *b) {
    GNI_ZEROED(gni_matmul, d);
    d.m = a->m;
    d.n = b->n;
    d.k = a->n;
    d.a_rs = a->rs;
    d.a_cs = a->cs;
    d.b_rs = b->rs;
    d.b_cs = b->cs;
    d.a_batch[0] = a->step;
    d.b_batch[0] = b->step;
    d.batch_dim[0] = b->n == 1 && a->n > 16 && w->t == GN_F32 ? w->count : 1; // shorter ones have another kernel in batches
    d.batch_rank = d.batch_dim[0] > 1;
    gni_lg_operand(&d.a, a);
    gni_lg_operand(&d.b, b);
    gni_lg_operand(&d.c, c);
    for (int64_t i = 0; i < w->count && w->ok; i += d.batch_dim[0]) {
        w->ok = gni_run(w->g, &gni_kind_matmul, &d, NULL);
        d.a.offset += a->step;
        d.b.offset += b->step;
        d.c.offset += c->step;
    }
}

// c = c op x
static void gni_lg_change(gni_lg *w, gni_op op, const gni_lg_matrix *c, const gni_lg_matrix *x) {
    GNI_ZEROED(gni_map, d);
    d.program.wide = c->of->dtype == GN_F64;
    d.program.n_in = 2;
    d.program.n_out = d.program.n_insn = 1;
    d.program.in_dtype[0] = d.program.in_dtype[1] = d.program.out_dtype[0] = c->of->dtype;
    d.program.insn[0] = GNI_INSN(op, GNI_F, 0, 1, 0);
    d.program.out_reg[0] = 2;
    d.rank = 3;
    d.dim[0] = w->count;
    d.dim[1] = c->m;
    d.dim[2] = c->n;
    gni_lg_operand(&d.in[0], c);
    gni_lg_operand(&d.in[1], x);
    gni_lg_operand(&d.out[0], c);
    gni_map_merge(&d);
    w->ok = w->ok && gni_run(w->g, &gni_kind_map, &d, NULL);
}

// to = from, of any dtypes
static void gni_lg_copy(gni_lg *w, const gni_lg_matrix *to, const gni_lg_matrix *from) {
    gn_shape s = GN_SHAPE(from->m, from->n);
    int64_t stride[2] = {from->rs, from->cs};
    gn_array *x = w->ok ? gni_array_view(w->g, w->fn, from->of, &s, stride, from->offset) : NULL;
    stride[0] = to->rs;
    stride[1] = to->cs;
    w->ok = x != NULL && gni_copy_into(w->g, to->of->buf, to->of->dtype, to->offset, stride, x);
    gni_unref(w->g, x);
}

// A matrix' place, and its steps from row to row and from column to column.
static void gni_lg_put(int64_t *word, const gni_lg_matrix *m) {
    word[0] = m->offset;
    word[1] = m->rs;
    word[2] = m->cs;
}

// b NULL: the state, c NULL: the block.
static void gni_lg_factor(gni_lg *w, gni_factor_step step, const gni_lg_matrix *a, const gni_lg_matrix *b,
                          const gni_lg_matrix *c, int64_t items, const int64_t *word) {
    GNI_ZEROED(gni_factor, f);
    f.step = step;
    f.items = items;
    memcpy(f.word, word, sizeof f.word);
    f.word[GNI_P_FACTOR_STEP] = a->step;
    f.word[GNI_P_FACTOR_STEP + 1] = b != NULL ? b->step : w->each;
    f.word[GNI_P_FACTOR_STEP + 2] = c != NULL ? c->step : GNI_LG_BLOCK * GNI_LG_BLOCK;
    f.word[GNI_P_FACTOR_BATCH] = w->count;
    f.a.buf = a->of->buf;
    f.b.buf = b != NULL ? b->of->buf : w->state->buf;
    f.c.buf = c != NULL ? c->of->buf : w->block->buf;
    f.a.dtype = f.c.dtype = a->of->dtype;
    f.b.dtype = b != NULL ? f.a.dtype : GN_U32;
    w->ok = w->ok && gni_run(w->g, &gni_kind_factor, &f, NULL);
}

// c (m,n) -= a (m,k) b (k,n). With `lower` what is above the diagonal of a square c may be left as it was. Few
// columns and long sums are for the matrix product, as many rows at a time as there is room for it.
static void gni_lg_subtract(gni_lg *w, gni_lg_matrix c, gni_lg_matrix a, gni_lg_matrix b,
                            bool lower) {
    if (c.m == 0 || c.n == 0) return;
    if (c.n >= 16 && a.n <= 2 * GNI_LG_PANEL && c.cs == 1) {
        int64_t word[GNI_FACTOR_WORDS] = {0};
        word[GNI_P_UPDATE_C_BASE] = c.offset;
        word[GNI_P_UPDATE_C_ROW] = c.rs;
        gni_lg_put(word + GNI_P_UPDATE_A_BASE, &a);
        gni_lg_put(word + GNI_P_UPDATE_B_BASE, &b);
        word[GNI_P_UPDATE_M] = c.m;
        word[GNI_P_UPDATE_N] = c.n;
        word[GNI_P_UPDATE_K] = a.n;
        word[GNI_P_UPDATE_LOWER] = lower;
        gni_lg_factor(w, GNI_FACTOR_UPDATE, &c, &a, &b, c.m, word);
        return;
    }
    const int64_t rows = GNI_MAX(gni_elements(&w->temp->shape) / (c.n * w->count), 1);
    for (int64_t i = 0; i < c.m && w->ok; i += rows) {
        const int64_t m = GNI_MIN(rows, c.m - i);
        gni_lg_matrix ci = gni_lg_part(c, i, 0, m, c.n), ai = gni_lg_part(a, i, 0, m, a.n);
        gni_lg_matrix x = gni_lg_matrix_of(w->temp, 0, m, c.n, c.n);
        x.step = m * c.n;
        gni_lg_product(w, &x, &ai, &b);
        gni_lg_change(w, GNI_OP_SUB, &ci, &x);
    }
}

// b (n,m) = t^-1 b for a lower triangle of at most a panel's order. `more`: with small residuals, however
// ill-conditioned it is.
static void gni_lg_solve_panel(gni_lg *w, gni_lg_matrix t, gni_lg_matrix b, bool unit, bool more) {
    int64_t word[GNI_FACTOR_WORDS] = {0};
    gni_lg_put(word + GNI_P_SOLVE_B_BASE, &b);
    gni_lg_put(word + GNI_P_SOLVE_T_BASE, &t);
    word[GNI_P_SOLVE_ORDER] = t.n;
    word[GNI_P_SOLVE_COLUMNS] = b.n;
    word[GNI_P_SOLVE_UNIT] = unit;
    word[GNI_P_SOLVE_MORE] = more;
    gni_lg_factor(w, GNI_FACTOR_SOLVE, &b, &t, NULL, b.n, word);
}

// ---- LU

static void gni_lg_lu_panel(gni_lg *w, int64_t begin, int64_t end) {
    const int64_t n = w->n;
    for (int64_t j = begin; j < end && w->ok; j += GNI_LG_BLOCK) {
        const int64_t jb = GNI_MIN(GNI_LG_BLOCK, end - j);
        int64_t pick[GNI_FACTOR_WORDS] = {0}, swap[GNI_FACTOR_WORDS] = {0},
                below[GNI_FACTOR_WORDS] = {0};
        pick[GNI_P_PICK_LD] = swap[GNI_P_SWAP_LD] = below[GNI_P_BELOW_LD] = w->ld;
        pick[GNI_P_PICK_FIRST] = swap[GNI_P_SWAP_FIRST] = below[GNI_P_BELOW_FIRST] = j;
        pick[GNI_P_PICK_COUNT] = n - j;
        pick[GNI_P_PICK_WIDTH] = swap[GNI_P_SWAP_WIDTH] = jb;
        pick[GNI_P_PICK_COUNTERS] = GNI_LG_COUNTERS;
        pick[GNI_P_PICK_LISTS] = GNI_LG_LISTS;
        pick[GNI_P_PICK_PICKED] = GNI_LG_PICKED;
        swap[GNI_P_SWAP_COLUMNS] = n;
        swap[GNI_P_SWAP_LIST] = GNI_LG_PICKED;
        swap[GNI_P_SWAP_ORDER] = w->order;
        swap[GNI_P_SWAP_END] = end;
        below[GNI_P_BELOW_ALL_ROWS] = n;
        below[GNI_P_BELOW_END] = end;
        gni_lg_factor(w, GNI_FACTOR_PICK, &w->a, NULL, NULL, n - j, pick);
        gni_lg_factor(w, GNI_FACTOR_SWAP, &w->a, NULL, NULL, n + 1, swap);
        if (j + jb < n) gni_lg_factor(w, GNI_FACTOR_BELOW, &w->a, NULL, NULL, n - j - jb, below);
    }
}

// Columns of the next group of panels: long sums take less time each, where there is much to subtract.
static int64_t gni_lg_width(int64_t rest, int64_t columns) {
    const bool pair = rest >= GNI_LG_PAIRS && columns >= GNI_LG_PAIRS;
    return GNI_MIN(rest, pair ? 2 * GNI_LG_PANEL : GNI_LG_PANEL);
}

// b = l^-1 b, with l the lower triangle of the columns from j to end, of an LU's with a diagonal of 1.
static void gni_lg_solve_lower(gni_lg *w, int64_t j, int64_t end, gni_lg_matrix b) {
    for (int64_t i = j; i < end; i += GNI_LG_PANEL) {
        const int64_t stop = GNI_MIN(i + GNI_LG_PANEL, end), ib = stop - i;
        gni_lg_matrix x = gni_lg_part(b, i - j, 0, ib, b.n);
        gni_lg_solve_panel(w, gni_lg_part(w->a, i, i, ib, ib), x, !w->full, w->full);
        gni_lg_subtract(w, gni_lg_part(b, stop - j, 0, end - stop, b.n),
                        gni_lg_part(w->a, stop, i, end - stop, ib), x, false);
    }
}

// P a = L U in place. Row i of P a is row number state[order + i] of a.
static void gni_lg_lu(gni_lg *w) {
    const int64_t n = w->n;
    for (int64_t j = 0, end; j < n && w->ok; j = end) {
        end = j + gni_lg_width(n - j, n - j);
        for (int64_t i = j; i < end; i += GNI_LG_PANEL) {
            const int64_t stop = GNI_MIN(i + GNI_LG_PANEL, end), ib = stop - i;
            gni_lg_lu_panel(w, i, stop);
            if (stop == end) break;
            gni_lg_matrix next = gni_lg_part(w->a, i, stop, ib, end - stop);
            gni_lg_solve_lower(w, i, stop, next);
            gni_lg_subtract(w, gni_lg_part(w->a, stop, stop, n - stop, end - stop),
                            gni_lg_part(w->a, stop, i, n - stop, ib), next, false);
        }
        if (end == n) break;
        gni_lg_matrix right = gni_lg_part(w->a, j, end, end - j, n - end);
        gni_lg_solve_lower(w, j, end, right);
        gni_lg_subtract(w, gni_lg_part(w->a, end, end, n - end, n - end),
                        gni_lg_part(w->a, end, j, n - end, end - j), right, false);
    }
}

// b = u^-1 b, with u the upper triangle of the columns from j to end, which is a lower one read backwards.
static void gni_lg_solve_upper(gni_lg *w, int64_t j, int64_t end, gni_lg_matrix b) {
    for (int64_t stop = end; stop > j;) {
        const int64_t i = j + (stop - j - 1) / GNI_LG_PANEL * GNI_LG_PANEL, ib = stop - i;
        gni_lg_matrix x = gni_lg_part(b, i - j, 0, ib, b.n),
                      t = gni_lg_part(w->a, stop - 1, stop - 1, ib, ib),
                      back = gni_lg_part(b, stop - 1 - j, 0, ib, b.n);
        t.rs = -t.rs;
        t.cs = -t.cs;
        back.rs = -back.rs;
        gni_lg_solve_panel(w, t, back, false, true);
        gni_lg_subtract(w, gni_lg_part(b, 0, 0, i - j, b.n), gni_lg_part(w->a, j, i, i - j, ib), x,
                        false);
        stop = i;
    }
}

// b = U^-1 L^-1 b
static void gni_lg_lu_solve(gni_lg *w, gni_lg_matrix b) {
    const int64_t n = w->n;
    gni_lg_matrix a = w->a;
    for (int64_t j = 0, end; j < n && w->ok; j = end) {
        end = j + gni_lg_width(n - j, b.n);
        gni_lg_matrix x = gni_lg_part(b, j, 0, end - j, b.n);
        gni_lg_solve_lower(w, j, end, x);
        gni_lg_subtract(w, gni_lg_part(b, end, 0, n - end, b.n),
                        gni_lg_part(a, end, j, n - end, end - j), x, false);
    }
    for (int64_t end = n; end > 0 && w->ok;) {
        // Panels begin where the others did: the last one may be narrow.
        const int64_t most = gni_lg_width(end, b.n), j = (end - 1) / most * most;
        gni_lg_matrix x = gni_lg_part(b, j, 0, end - j, b.n);
        gni_lg_solve_upper(w, j, end, x);
        gni_lg_subtract(w, gni_lg_part(b, 0, 0, j, b.n), gni_lg_part(a, 0, j, j, end - j), x,
                        false);
        end = j;
    }
}

// ---- Cholesky

// Of at most a panel's order. `first`: its first row in the whole matrix.
static void gni_lg_root(gni_lg *w, const gni_lg_matrix *a, int64_t first) {
    int64_t word[GNI_FACTOR_WORDS] = {0};
    word[GNI_P_ROOT_BASE] = a->offset;
    word[GNI_P_ROOT_LD] = a->rs;
    word[GNI_P_ROOT_ORDER] = a->n;
    word[GNI_P_ROOT_FIRST] = first;
    gni_lg_factor(w, GNI_FACTOR_ROOT, a, NULL, NULL, 1, word);
}

// Lower L in place; above the diagonal anything may stay.
static void gni_lg_cholesky(gni_lg *w) {
    const int64_t n = w->n;
    for (int64_t j = 0, end; j < n && w->ok; j = end) {
        end = j + gni_lg_width(n - j, n - j);
        for (int64_t i = j; i < end; i += GNI_LG_PANEL) {
            const int64_t stop = GNI_MIN(i + GNI_LG_PANEL, end), ib = stop - i;
            gni_lg_matrix top = gni_lg_part(w->a, i, i, ib, ib),
                          below = gni_lg_part(w->a, stop, i, n - stop, ib),
                          beside = gni_lg_part(below, 0, 0, end - stop, ib);
            gni_lg_root(w, &top, i);
            if (stop == n) break;
            gni_lg_solve_panel(w, top, gni_lg_transposed(below), false, true);
            gni_lg_subtract(w, gni_lg_part(w->a, stop, stop, n - stop, end - stop), below,
                            gni_lg_transposed(beside), false);
        }
        if (end == n) break;
        gni_lg_matrix below = gni_lg_part(w->a, end, j, n - end, end - j);
        gni_lg_subtract(w, gni_lg_part(w->a, end, end, n - end, n - end), below,
                        gni_lg_transposed(below), true);
    }
}

// ---- matrices side by side

// Matrices of the batch from number `index` on, `step` apart, as an array (count, ...). One reference.
static gn_array *gni_lg_item(gn_context *g, gn_array *x, const gn_shape *batch, int64_t index, int matrix, int64_t step,
                             int64_t count) {
    const int own = x->shape.rank - matrix, last = x->shape.rank - 1;
    gn_shape s = GN_SHAPE(count, x->shape.dim[own], x->shape.dim[last]);
    int64_t offset = x->offset, stride[3] = {step, x->stride[own], x->stride[last]};
    s.rank = 1 + matrix;
    for (int i = batch->rank - 1; i >= 0; i--) {
        const int axis = i - batch->rank + own;
        if (axis >= 0 && x->shape.dim[axis] != 1) offset += index % batch->dim[i] * x->stride[axis];
        index /= batch->dim[i];
    }
    return gni_array_view(g, "", x, &s, stride, offset);
}

// The state; each matrix's first word says what went wrong, 0 if nothing did. Waits for the GPU.
static uint32_t *gni_lg_info(gni_lg *w) {
    uint32_t *state = w->ok ? (uint32_t *)gni_host(w->g, w->state) : NULL;
    if (state == NULL) w->ok = false;
    return state;
}

// Matrices from `index` on of y (..., n, k) = a^-1 x.
static void gni_lg_solve_item(gni_lg *w, gn_array *x, gn_array *y, int64_t k, int64_t index) {
    gn_array *rows = x != NULL ? gni_contiguous(w->g, x) : NULL, *cast = rows;
    if (rows != NULL && rows->dtype != w->t) {
        cast = gni_apply(w->g, w->fn, GNI_OP_CAST, rows->dtype, w->t, &rows, NULL, 1);
        if (cast != NULL && !gni_materialize(w->g, cast)) w->ok = false;
        gni_unref(w->g, rows);
    }
    if (cast == NULL) w->ok = false;
    gni_lg_matrix b = gni_lg_matrix_of(y, index * w->n * k, w->n, k, k);
    b.step = w->n * k;
    if (w->ok) {
        GNI_ZEROED(gni_take, d); // the rows in the order of the state
        d.at.outer = 1;
        d.at.checked = true;
        d.at.extent = d.at.count = w->count * w->n;
        d.at.inner = k;
        d.in.buf = cast->buf;
        d.in.offset = cast->offset;
        d.out.buf = y->buf;
        d.out.offset = b.offset;
        d.in.dtype = d.out.dtype = w->t;
        d.index.buf = w->state->buf;
        d.index.offset = w->order;
        d.index.dtype = GN_U32;
        w->ok = gni_run(w->g, &gni_kind_take, &d, NULL);
    }
    if (w->triangle) gni_lg_solve_lower(w, 0, w->n, b);
    else gni_lg_lu_solve(w, b);
    gni_unref(w->g, cast);
}

// The determinants from `index` on from the diagonal of U and the order of the rows; the product's exponent is kept apart.
static void gni_lg_det(gni_lg *w, const gni_la_job *d, int64_t index) {
    gn_array *u = NULL;
    gn_shape s = GN_SHAPE(w->count, w->n);
    int64_t stride[2] = {w->a.step, w->ld + 1}, own[2] = {w->n, 1};
    gn_array *diagonal = gni_array_view(w->g, w->fn, w->work, &s, stride, 0);
    if (diagonal != NULL) u = gni_lg_array(w->g, w->t, &s);
    if (u == NULL || !gni_copy_into(w->g, u->buf, w->t, 0, own, diagonal)) w->ok = false;
    const void *x = w->ok ? gni_host(w->g, u) : NULL;
    if (x == NULL) w->ok = false;
    uint32_t *state = gni_lg_info(w);
    double det = 1.0;
    int64_t exponent = 0;
    for (int64_t i = 0, n = w->n; i < w->count * n && w->ok; i++) {
        int e = 0;
        double v = w->t == GN_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
        for (uint32_t *to = state + w->order; to[i] != (uint32_t)i; v = -v) { // follows a cycle
            uint32_t at = to[i];
            to[i] = to[at];
            to[at] = at;
        }
        det = frexp(det * v, &e);
        exponent += e;
        if ((i + 1) % n != 0) continue;
        gni_la_put_det(d, index + i / n, state[i / n * w->each] != 0 ? 0.0 : det, exponent);
        det = 1.0;
        exponent = 0;
    }
    gni_unref(w->g, u);
    gni_unref(w->g, diagonal);
}

// ---- QR

// Panels that are orthogonalised against all before them and in themselves, twice: block Gram-Schmidt with the
// Cholesky factor of each panel's Gram matrix (Barlow and Smoktunowicz 2013; Yamamoto and others 2015). Inside a
// panel this is done in float64, so that panels which float32 can tell from rank-deficient ones come out
// orthonormal; others show in the second factor, and are left to the CPU.

#define GNI_LG_SLICES ((int64_t)16) // of the rows, for the Gram matrix

typedef struct gni_lg_qr {
    gni_lg w;
    int64_t m, n, k, b; // b: columns of a panel, at most
    gni_lg_matrix a, q, r;
    // a panel, and in float64; sums of the Gram matrix, and ones to add them up with
    gn_array *panel, *wide, *sums, *ones;
    gn_array *first, *second, *product; // Cholesky factors, and one times the other
    gn_array *factor, *s1, *s2;         // the first one rounded; parts of r above it
    gn_array *check;                    // the diagonals of the second factors
} gni_lg_qr;

static void gni_lg_zero(gni_lg *w, gn_array *a) {
    int64_t stride[GN_MAX_RANK];
    gni_strides_of(&a->shape, stride);
    gn_array *zero = gni_const(w->g, w->fn, a->dtype, &a->shape, 0.0);
    w->ok = w->ok && zero != NULL && gni_copy_into(w->g, a->buf, a->dtype, 0, stride, zero);
    gni_unref(w->g, zero);
}

static gn_array *gni_lg_plane(gni_lg *w, gn_dtype t, int64_t m, int64_t n) {
    gn_shape s = GN_SHAPE(m, n);
    gn_array *y = w->ok ? gni_lg_array(w->g, t, &s) : NULL;
    if (y == NULL) w->ok = false;
    return y;
}

static void gni_lg_qr_end(gni_lg_qr *p) {
    gn_array *all[11];
    all[0] = p->panel;
    all[1] = p->wide;
    all[2] = p->sums;
    all[3] = p->ones;
    all[4] = p->first;
    all[5] = p->second;
    all[6] = p->product;
    all[7] = p->factor;
    all[8] = p->s1;
    all[9] = p->s2;
    all[10] = p->check;
    for (int i = 0; i < 11; i++) gni_unref(p->w.g, all[i]);
    gni_lg_end(&p->w);
}

static int64_t gni_lg_qr_width(int64_t m, int64_t n) {
    return n > m ? GNI_LG_PANEL : GNI_MIN(GNI_LG_PANEL, gni_lg_up(n, 4));
}

static void gni_lg_qr_begin(gni_lg_qr *p, gn_context *g, gn_dtype t, int64_t m, int64_t n) {
    const int64_t b = gni_lg_qr_width(m, n);
    gni_lg *w = &p->w;
    void *ones = NULL;
    gn_shape s = GN_SHAPE(1, GNI_LG_SLICES);
    memset(p, 0, sizeof *p);
    gni_lg_start(w, g, "gn_qr", t);
    p->m = m;
    p->n = n;
    p->k = GNI_MIN(m, n);
    p->b = b;
    w->block = gni_lg_plane(w, GN_F64, GNI_LG_BLOCK, GNI_LG_BLOCK);
    w->temp = gni_lg_plane(w, t, 1, GNI_MAX(GNI_LG_TEMP, GNI_MAX(m, n) * b));
    p->panel = gni_lg_plane(w, t, m, b);
    p->wide = gni_lg_plane(w, GN_F64, gni_lg_up(m, GNI_LG_SLICES), b);
    p->sums = gni_lg_plane(w, GN_F64, GNI_LG_SLICES, b * b);
    p->first = gni_lg_plane(w, GN_F64, b, b);
    p->second = gni_lg_plane(w, GN_F64, b, b);
    p->product = gni_lg_plane(w, GN_F64, b, b);
    p->factor = gni_lg_plane(w, t, b, b);
    p->s1 = gni_lg_plane(w, t, p->k, b);
    p->s2 = gni_lg_plane(w, t, p->k, b);
    p->check = gni_lg_plane(w, GN_F64, 1, p->k);
    gni_lg_state(w, 1, GNI_LG_LISTS);
    if (w->ok) p->ones = gni_array_filled(g, "", GN_F64, &s, &ones);
    if (p->ones == NULL) w->ok = false;
    for (int i = 0; i < GNI_LG_SLICES && w->ok; i++) ((double *)ones)[i] = 1.0;
    if (w->ok) gni_lg_zero(w, p->wide); // rows that fill the last slice up stay 0
}

// Columns j to j + jb of p->panel: in float64, x = x l^-T with l l^T = x^T x. Rounded back into `to`.
static void gni_lg_orthonormal(gni_lg_qr *p, gn_array *l, int64_t j, int64_t jb,
                               const gni_lg_matrix *to) {
    gni_lg *w = &p->w;
    const int64_t b = p->b, rows = gni_lg_up(p->m, GNI_LG_SLICES) / GNI_LG_SLICES;
    gni_lg_matrix x = gni_lg_matrix_of(p->wide, 0, p->m, jb, b),
                  narrow = gni_lg_matrix_of(p->panel, 0, p->m, jb, b);
    gni_lg_matrix sums = gni_lg_matrix_of(p->sums, 0, GNI_LG_SLICES, jb * jb, jb * jb);
    gni_lg_matrix ones = gni_lg_matrix_of(p->ones, 0, 1, GNI_LG_SLICES, GNI_LG_SLICES);
    gni_lg_matrix gram = gni_lg_matrix_of(l, 0, jb, jb, jb), flat = gram;
    gni_matmul d;
    flat.m = 1;
    flat.n = jb * jb;
    gni_lg_copy(w, &x, &narrow);
    memset(&d, 0, sizeof d);
    d.m = d.n = jb;
    d.k = rows;
    d.a_cs = d.b_rs = b;
    d.a_rs = d.b_cs = 1;
    d.batch_rank = 1;
    d.batch_dim[0] = GNI_LG_SLICES;
    d.a_batch[0] = d.b_batch[0] = rows * b;
    gni_lg_operand(&d.a, &x);
    gni_lg_operand(&d.b, &x);
    gni_lg_operand(&d.c, &sums);
    w->ok = w->ok && gni_run(w->g, &gni_kind_matmul, &d, NULL);
    gni_lg_product(w, &flat, &ones, &sums);
    gni_lg_root(w, &gram, j);
    gni_lg_solve_panel(w, gram, gni_lg_transposed(x), false, w->t == GN_F64);
    gni_lg_copy(w, to, &x);
}

// s (j,jb) = q^T panel, panel -= q s, with the first j columns of q.
static void gni_lg_project(gni_lg_qr *p, gn_array *s, int64_t j, int64_t jb) {
    gni_lg_matrix q = gni_lg_part(p->q, 0, 0, p->m, j), transposed = gni_lg_transposed(q);
    gni_lg_matrix x = gni_lg_matrix_of(p->panel, 0, p->m, jb, p->b),
                  y = gni_lg_matrix_of(s, 0, j, jb, jb);
    if (j == 0) return;
    gni_lg_product(&p->w, &y, &transposed, &x);
    gni_lg_subtract(&p->w, x, q, y, false);
}

// Columns j to j + jb of r: s1 + s2 first^T above, second^T first^T on the diagonal.
static void gni_lg_qr_put(gni_lg_qr *p, int64_t j, int64_t jb) {
    gni_lg *w = &p->w;
    gni_lg_matrix first = gni_lg_transposed(gni_lg_matrix_of(p->first, 0, jb, jb, jb)),
                  second = gni_lg_transposed(gni_lg_matrix_of(p->second, 0, jb, jb, jb)),
                  product = gni_lg_matrix_of(p->product, 0, jb, jb, jb),
                  factor = gni_lg_matrix_of(p->factor, 0, jb, jb, jb),
                  s1 = gni_lg_matrix_of(p->s1, 0, j, jb, jb), s2 = s1,
                  x = gni_lg_matrix_of(w->temp, 0, j, jb, jb), to = gni_lg_part(p->r, j, j, jb, jb);
    gni_lg_product(w, &product, &second, &first);
    gni_lg_copy(w, &to, &product);
    if (j == 0) return;
    s2.of = p->s2;
    gni_lg_copy(w, &factor, &first);
    gni_lg_product(w, &x, &s2, &factor);
    gni_lg_change(w, GNI_OP_ADD, &s1, &x);
    to = gni_lg_part(p->r, 0, j, j, jb);
    gni_lg_copy(w, &to, &s1);
}

// False when the result is not good enough: panels that are nearly rank-deficient, NaN.
static bool gni_lg_qr_good(gni_lg_qr *p) {
    const double *d = p->w.ok ? (const double *)gni_host(p->w.g, p->check) : NULL;
    const uint32_t *state = d != NULL ? gni_lg_info(&p->w) : NULL;
    if (state == NULL || state[0] != 0) return false;
    for (int64_t i = 0; i < p->k; i++)
        if (!(d[i] > 0.5 && d[i] < 2.0)) return false;
    return true;
}

// a = q r of one matrix; r is zeros at first.
static bool gni_lg_qr_run(gni_lg_qr *p) {
    gni_lg *w = &p->w;
    for (int64_t j = 0; j < p->k && w->ok; j += p->b) {
        const int64_t jb = GNI_MIN(p->b, p->k - j);
        gni_lg_matrix x = gni_lg_matrix_of(p->panel, 0, p->m, jb, p->b),
                      from = gni_lg_part(p->a, 0, j, p->m, jb),
                      to = gni_lg_part(p->q, 0, j, p->m, jb),
                      diagonal = gni_lg_matrix_of(p->second, 0, jb, 1, jb + 1),
                      check = gni_lg_matrix_of(p->check, j, jb, 1, 1);
        gni_lg_copy(w, &x, &from);
        gni_lg_project(p, p->s1, j, jb);
        gni_lg_orthonormal(p, p->first, j, jb, &x);
        gni_lg_project(p, p->s2, j, jb);
        gni_lg_orthonormal(p, p->second, j, jb, &to);
        gni_lg_copy(w, &check, &diagonal);
        gni_lg_qr_put(p, j, jb);
    }
    if (p->n > p->k) {
        gni_lg_matrix rest = gni_lg_part(p->r, 0, p->k, p->k, p->n - p->k),
                      from = gni_lg_part(p->a, 0, p->k, p->m, p->n - p->k),
                      transposed = gni_lg_transposed(p->q);
        for (int64_t j = 0; j < rest.n && w->ok; j += p->b) {
            const int64_t jb = GNI_MIN(p->b, rest.n - j);
            gni_lg_matrix x = gni_lg_matrix_of(w->temp, 0, p->k, jb, jb),
                          panel = gni_lg_matrix_of(p->panel, 0, p->m, jb, p->b),
                          part = gni_lg_part(from, 0, j, p->m, jb),
                          to = gni_lg_part(rest, 0, j, p->k, jb);
            gni_lg_copy(w, &panel, &part);
            gni_lg_product(w, &x, &transposed, &panel);
            gni_lg_copy(w, &to, &x);
        }
    }
    return gni_lg_qr_good(p);
}
