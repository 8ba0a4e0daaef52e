// >>cpu_reduce
// Reductions on the CPU: what was gathered so far, and the ways along rows and columns.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu.h"
#endif

typedef struct gni_reduce_job {
    const gni_reduce *r;
    gni_plan plan;
    gni_space space;       // of a tile's dimensions
    int64_t rows, columns; // kept elements: outer ones, and neighbours reduced side by side
    int64_t row_dim[GN_MAX_RANK], row_stride[GNI_MAX_INPUTS][GN_MAX_RANK];
    int row_rank;
    int64_t row;         // elements of a row
    int64_t band;        // columns at once
    bool in_place;       // rows of memory are taken in where they are
    int64_t lots;        // that many rows of few columns side by side
    int64_t parts, part; // parts of each reduction, tiles of a part
    gni_acc *acc;        // of each part, NULL if there is one only
    char *out;
    bool stops;      // argmin and argmax of truth values: at the first 0 or 1
    gni_kernel pick; // the smaller or larger ones of items of 8 or 16 bits, or NULL
    gn_dtype picked;
    const gni_cpu_isa *full; // of registers of 32 bits
} gni_reduce_job;

enum { GNI_PICKED = 1024 }; // bytes of extremes side by side

// Folds n elements of a register, or of memory. Items of 8 and 16 bits: to a few by vectors, which may overlap.
static void gni_reduce_fold(const gni_reduce_job *j, gni_acc *acc, const char *x, int64_t n, int64_t at) {
    const int64_t width = j->plan.width, few = GNI_PICKED / width;
    char most[GNI_PICKED];
    int32_t wider[32];
    if (j->pick != NULL) {
        if (n > few) {
            const char *from = x;
            for (int64_t i = few; i < n; i += few, from = most)
                j->pick(most, from, x + GNI_MIN(i, n - few) * width, most, (int)few);
            x = most, n = few;
        }
        for (int64_t half; n > 32; x = most, n = half) {
            half = ((n + 1) / 2 + 15) & ~(int64_t)15;
            j->pick(most, x, x + (n - half) * width, most, (int)half);
        }
        j->full->load[j->picked](wider, x, n);
        x = (const char *)wider;
    }
    (j->pick != NULL ? j->full : j->plan.isa)->fold[(int)j->r->op * 3 + (int)j->r->domain](acc, x, n, at);
}

// The same of n columns side by side.
static void gni_reduce_fold_columns(const gni_reduce_job *j, gni_acc_columns *acc, const char *x, int64_t rows,
                                    int64_t stride, int64_t n, int64_t at) {
    uint16_t most[GNI_BAND];
    int32_t wider[GNI_BAND];
    const char *from[3];
    from[0] = from[2] = (const char *)most;
    if (j->pick != NULL && rows > 0) {
        memcpy(most, x, (size_t)(n * j->plan.width));
        for (int64_t r = 1; r < rows; r++) {
            from[1] = x + r * stride * j->plan.width;
            gni_short_run(j->pick, (char *)most, from, n, j->plan.width);
        }
        j->full->load[j->picked](wider, most, n);
        x = (const char *)wider, rows = 1, stride = n;
    }
    (j->pick != NULL ? j->full : j->plan.isa)
        ->fold_columns[(int)j->r->op * 3 + (int)j->r->domain](acc, x, rows, stride, n, at);
}

static bool gni_acc_is_float(const gni_reduce *r) { return r->domain == GNI_F; }

static void gni_acc_begin(const gni_reduce *r, gni_acc *a, int64_t at) {
    bool wide = r->program.wide;
    int64_t least = wide ? INT64_MIN : r->domain == GNI_U ? 0 : INT32_MIN;
    int64_t most = wide ? INT64_MAX : r->domain == GNI_U ? (int64_t)UINT32_MAX : INT32_MAX;
    a->d = a->e = 0.0;
    a->i = 0;
    a->at = at;
    switch (r->op) {
    case GNI_RED_PROD:
        a->d = 1.0;
        a->i = 1;
        break;
    case GNI_RED_MIN:
    case GNI_RED_ARGMIN:
        a->d = GNI_INF;
        a->i = most;
        break;
    case GNI_RED_MAX:
    case GNI_RED_ARGMAX:
        a->d = -GNI_INF;
        a->i = least;
        break;
    case GNI_RED_ALL: a->i = 1; break;
    default: break;
    }
}

// Takes in what a later part has gathered.
static void gni_acc_join(const gni_reduce *r, gni_acc *a, const gni_acc *b) {
    bool real = gni_acc_is_float(r), better = false;
    switch (r->op) {
    case GNI_RED_SUM:
        if (b->e == b->e) {
            gni_acc_add(&a->d, &a->e, b->d);
            a->e += b->e;
        } else {
            if (a->e == a->e) a->d = a->d * GNI_NEAR + a->e * GNI_NEAR;
            a->d += b->d;
            a->e = b->e;
        }
        a->i = (int64_t)((uint64_t)a->i + (uint64_t)b->i);
        break;
    case GNI_RED_PROD:
        gni_acc_multiply(&a->d, &a->e, b->d);
        a->e += b->e;
        a->i = (int64_t)((uint64_t)a->i * (uint64_t)b->i);
        break;
    case GNI_RED_ANY: a->i |= b->i; break;
    case GNI_RED_ALL: a->i &= b->i; break;
    case GNI_RED_MIN:
    case GNI_RED_ARGMIN:
        better = real ? a->d == a->d && (b->d != b->d || b->d < a->d) : b->i < a->i;
        break;
    default: better = real ? a->d == a->d && (b->d != b->d || b->d > a->d) : b->i > a->i; break;
    }
    if (better) *a = *b;
}

static void gni_put_float(gn_dtype t, char *p, double v) {
    float f = (float)v;
    uint16_t h;
    switch (t) {
    case GN_F64: memcpy(p, &v, 8); break;
    case GN_F32: memcpy(p, &f, 4); break;
    case GN_F16:
        h = gni_f32_to_f16(gni_round_odd(v));
        memcpy(p, &h, 2);
        break;
    default:
        h = gni_f32_to_bf16(gni_round_odd(v));
        memcpy(p, &h, 2);
        break;
    }
}

// What becomes of a sum.
static double gni_finish_sum(const gni_reduce *r, double v) {
    const double divisor = r->finish.divisor;
    if (r->finish.divides) return r->program.wide ? v / divisor : (double)((float)v / (float)divisor);
    if (r->finish.roots) return r->program.wide ? sqrt(v) : (double)sqrtf((float)v);
    return v;
}

static void gni_acc_store(const gni_reduce_job *j, int64_t index, const gni_acc *a) {
    const gni_reduce *r = j->r;
    gn_dtype t = r->out.dtype;
    char *p = j->out + index * gni_item_size(t);
    bool place = r->op == GNI_RED_ARGMIN || r->op == GNI_RED_ARGMAX;
    bool truth = r->op == GNI_RED_ANY || r->op == GNI_RED_ALL;
    bool real = gni_acc_is_float(r) && !place && !truth, to_real = gni_domain_of(t, true) == GNI_F;
    double d = a->e == a->e ? a->d + a->e : a->d * GNI_FAR;
    if (r->op == GNI_RED_PROD) d = a->e == 0.0 ? a->d : ldexp(a->d, (int)GNI_MAX(GNI_MIN(a->e, 4096.0), -4096.0));
    int64_t i = place ? a->at : a->i;
    if (to_real)
        gni_put_float(t, p, real ? gni_finish_sum(r, d) : (double)i);
    else
        gni_put_int(t, p, real ? gni_dtoi(d) : i);
}

// ---- reductions along rows: one kept element after another

// The place of a tile's first element among the reduced ones.
static int64_t gni_cursor_place(const gni_cursor *c, int first) {
    int64_t at = 0;
    for (int i = first; i < c->space->rank; i++) at = at * c->space->dim[i] + c->at[i];
    return at;
}

// Evaluates the program on a tile; returns the reduced register.
static const char *gni_reduce_tile(const gni_reduce_job *j, gni_eval *e, char *const *p,
                                   const int64_t ext[3]) {
    const gni_space *s = &j->space;
    const gni_program *g = j->plan.program;
    int64_t n = gni_extent_size(ext);
    bool whole = g->n_insn == 0 || (n & 15) == 0;
    for (int k = 0; k < g->n_in; k++)
        gni_eval_load(e, k, p[k], s->stride[k] + s->rank - 3, ext, n, whole);
    gni_eval_run(e, 0, n, NULL);
    return e->reg[g->out_reg[0]];
}

// Kept element `row` shifts the operands by so much.
static void gni_reduce_shift(const gni_reduce_job *j, int64_t row, int64_t *shift) {
    for (int k = 0; k < j->space.ops; k++) {
        int64_t rest = row, by = 0;
        for (int i = j->row_rank - 1; i > 0; rest /= j->row_dim[i--]) by += rest % j->row_dim[i] * j->row_stride[k][i];
        shift[k] = by + (j->row_rank > 0 ? rest * j->row_stride[k][0] : 0);
    }
}

static void gni_reduce_rows_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_reduce_job *j = (const gni_reduce_job *)arg;
    const gni_reduce *r = j->r;
    char memory[GNI_SCRATCH + 64], *p[GNI_SPACE_OPS];
    int64_t shift[GNI_SPACE_OPS];
    gni_eval e;
    gni_cursor c;
    GNI_UNUSED(worker);
    gni_eval_begin(&e, &j->plan, memory);
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item / j->parts, first = item % j->parts * j->part;
        int64_t last = GNI_MIN(first + j->part, j->space.tiles);
        gni_acc acc;
        gni_reduce_shift(j, row, shift);
        gni_cursor_set(&c, &j->space, first);
        gni_acc_begin(r, &acc, gni_cursor_place(&c, 0));
        for (int64_t t = first; t < last; t++) {
            for (int k = 0; k < j->space.ops; k++) p[k] = c.p[k] + shift[k];
            const char *x = gni_reduce_tile(j, &e, p, c.ext);
            gni_reduce_fold(j, &acc, x, gni_extent_size(c.ext), gni_cursor_place(&c, 0));
            if (j->stops && acc.i == (r->op == GNI_RED_ARGMAX)) break;
            gni_cursor_next(&c);
        }
        if (j->acc != NULL)
            j->acc[item] = acc;
        else
            gni_acc_store(j, row, &acc);
    }
}

// Rows that are folded where they lie, each at once; those of complex numbers to two columns.
static void gni_reduce_bare_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_reduce_job *j = (const gni_reduce_job *)arg;
    int64_t shift[GNI_SPACE_OPS];
    gni_acc first;
    GNI_UNUSED(worker);
    gni_acc_begin(j->r, &first, 0);
    for (int64_t row = begin; row < end; row++) {
        gni_acc acc[2];
        acc[0] = acc[1] = first;
        gni_reduce_shift(j, row, shift);
        gni_reduce_fold(j, acc, j->space.base[0] + shift[0], j->row, j->columns > 1 ? GNI_PAIRS_AT : 0);
        for (int64_t c = 0; c < j->columns; c++) gni_acc_store(j, row * j->columns + c, &acc[c]);
    }
}

// Short rows: a tile has many of them, whole. The last `row_rank` dimensions of the space are reduced.
static void gni_reduce_short_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_reduce_job *j = (const gni_reduce_job *)arg;
    const gni_reduce *r = j->r;
    char memory[GNI_SCRATCH + 64];
    gni_eval e;
    gni_cursor c;
    GNI_UNUSED(worker);
    gni_eval_begin(&e, &j->plan, memory);
    gni_cursor_set(&c, &j->space, begin);
    for (int64_t t = begin; t < end; t++) {
        const char *x = gni_reduce_tile(j, &e, c.p, c.ext);
        int64_t rows = gni_extent_size(c.ext) / j->row, index = 0;
        for (int i = 0; i < c.space->rank - j->row_rank; i++)
            index = index * c.space->dim[i] + c.at[i];
        for (int64_t i = 0; i < rows; i++) {
            gni_acc acc;
            gni_acc_begin(r, &acc, 0);
            gni_reduce_fold(j, &acc, x + i * j->row * j->plan.width, j->row, 0);
            gni_acc_store(j, index + i, &acc);
        }
        gni_cursor_next(&c);
    }
}

// ---- reductions along columns: neighbouring kept elements side by side

// The dtype of what the columns hold.
static gn_dtype gni_columns_as(const gni_reduce *r) {
    const bool truth = r->op == GNI_RED_ANY || r->op == GNI_RED_ALL, sums = r->op == GNI_RED_SUM || r->op == GNI_RED_PROD;
    const bool narrow = truth || (!sums && !r->program.wide);
    if (r->domain == GNI_F && !truth) return narrow ? GN_F32 : GN_F64;
    return !narrow ? GN_I64 : r->domain == GNI_U ? GN_U32 : GN_I32;
}

static void gni_columns_begin(const gni_reduce *r, gni_acc_columns *a, int64_t n, int64_t at) {
    gni_acc one;
    gni_acc_begin(r, &one, at);
    const float f = (float)one.d;
    const uint32_t low = (uint32_t)((uint64_t)one.i & 0xffffffffu);
    const gn_dtype as = gni_columns_as(r);
    const void *word = as == GN_F32 ? (const void *)&f : as == GN_F64 ? (const void *)&one.d : (const void *)&one.i;
    if (gn_dtype_size(as) == 4 && as != GN_F32) word = &low;
    memset(a->e, 0, sizeof(double) * (size_t)n);
    gni_copy_repeat((char *)a->at, (const char *)&at, n, 8);
    gni_copy_repeat((char *)a->v, (const char *)word, n, (int64_t)gn_dtype_size(as));
}

static void gni_columns_get(const gni_reduce *r, const gni_acc_columns *a, int64_t c,
                            gni_acc *acc) {
    const gn_dtype as = gni_columns_as(r);
    acc->d = 0.0;
    acc->i = 0;
    acc->e = a->e[c];
    acc->at = a->at[c];
    switch (as) {
    case GN_F32: acc->d = (double)((const float *)a->v)[c]; break;
    case GN_F64: acc->d = ((const double *)a->v)[c]; break;
    case GN_U32: acc->i = (int64_t)((const uint32_t *)a->v)[c]; break;
    case GN_I32: acc->i = (int64_t)((const int32_t *)a->v)[c]; break;
    default: acc->i = ((const int64_t *)a->v)[c]; break;
    }
}

// Joins the lots of n columns' sums two and two, as gni_acc_join does. How many are left: all, where a sum might be past
// the range.
static int64_t gni_columns_join(double *v, double *e, int64_t n, int64_t lots) {
    double odd = 0.0;
    for (int64_t i = 0; i < n * lots; i++) {
        const double most = v[i] * 64.0;
        odd += (most - most) + (e[i] - e[i]);
    }
    while (odd == 0.0 && lots > 1) {
        const int64_t less = (lots + 1) / 2, m = n * less;
        for (int64_t i = 0; i + m < n * lots; i++) {
            const double a = v[i], b = v[i + m], sum = a + b, up = sum - a;
            v[i] = sum;
            e[i] += e[i + m] + ((a - (sum - up)) + (b - up));
        }
        lots = less;
    }
    return lots;
}

// Hands n columns over, which are the results from `first` on.
static void gni_columns_end(const gni_reduce_job *j, const gni_acc_columns *a, int64_t n, int64_t first, int64_t part) {
    const gni_reduce *r = j->r;
    double *v = (double *)a->v;
    const gn_dtype as = gni_columns_as(r), t = r->out.dtype;
    const bool sums = r->op == GNI_RED_SUM && as == GN_F64, places = r->op == GNI_RED_ARGMIN || r->op == GNI_RED_ARGMAX;
    const int64_t lots = sums ? gni_columns_join(v, a->e, n, j->lots) : j->lots;
    if (lots == 1 && j->acc == NULL && !places && gni_is_float(as) == gni_is_float(t)) { // as they are, or by vectors
        const gni_convert_fn store = (gn_dtype_size(as) == 8 ? j->full->wide : j->full)->store[t];
        char *out = j->out + first * gni_item_size(t);
        double odd = store == NULL && gn_dtype_size(as) != gn_dtype_size(t); // or a power of 2 that a product has
        for (int64_t c = 0; c < n && r->op == GNI_RED_PROD; c++) odd += a->e[c] * a->e[c];
        for (int64_t c = 0; c < n && sums; c++) v[c] = a->e[c] == a->e[c] ? v[c] + a->e[c] : v[c] * GNI_FAR;
        for (int64_t c = 0; c < n && (r->finish.divides || r->finish.roots); c++) v[c] = gni_finish_sum(r, v[c]);
        if (odd == 0.0 && store != NULL)
            store(out, v, n);
        else if (odd == 0.0)
            memcpy(out, v, (size_t)(n * gni_item_size(t)));
        if (odd == 0.0) return;
    }
    const int64_t handed = sums && lots == 1 && j->acc != NULL ? n : 0; // plain sums, without looking at each
    for (int64_t c = 0; c < handed; c++) {
        const gni_acc one = {v[c], a->e[c], 0, 0};
        j->acc[(first + c) * j->parts + part] = one;
    }
    for (int64_t c = handed; c < n; c++) {
        gni_acc one = {0.0, 0.0, 0, 0};
        gni_columns_get(r, a, c, &one);
        for (int64_t l = 1; l < lots; l++) {
            gni_acc more;
            gni_columns_get(r, a, c + l * n, &more);
            gni_acc_join(r, &one, &more);
        }
        if (j->acc != NULL)
            j->acc[(first + c) * j->parts + part] = one;
        else
            gni_acc_store(j, first + c, &one);
    }
}

// An item is a part of a band of columns of a row.
static void gni_reduce_columns_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_reduce_job *j = (const gni_reduce_job *)arg;
    const gni_reduce *r = j->r;
    char memory[GNI_SCRATCH + 64], *p[GNI_SPACE_OPS];
    double v[GNI_BAND], low[GNI_BAND];
    int64_t at[GNI_BAND], shift[GNI_SPACE_OPS], bands = (j->columns - 1) / j->band + 1;
    gni_acc_columns acc;
    gni_eval e;
    gni_cursor c;
    GNI_UNUSED(worker);
    acc.v = v;
    acc.e = low;
    acc.at = at;
    gni_eval_begin(&e, &j->plan, memory);
    for (int64_t item = begin; item < end; item++) {
        int64_t index = item / j->parts, first = item % j->parts * j->part;
        int64_t last = GNI_MIN(first + j->part, j->space.tiles);
        int64_t row = index / bands, column = index % bands * j->band,
                n = GNI_MIN(j->band, j->columns - column);
        int rank = j->space.rank;
        gni_reduce_shift(j, row, shift);
        for (int k = 0; k < j->space.ops; k++) shift[k] += column * j->space.stride[k][rank - 1];
        gni_cursor_set(&c, &j->space, first);
        gni_columns_begin(r, &acc, n * j->lots, gni_cursor_place(&c, 0) / j->space.dim[rank - 1]);
        for (int64_t t = first; t < last; t++) {
            int64_t ext[3], place = gni_cursor_place(&c, 0) / j->space.dim[rank - 1];
            memcpy(ext, c.ext, sizeof ext);
            ext[2] = n;
            for (int k = 0; k < j->space.ops; k++) p[k] = c.p[k] + shift[k];
            int64_t stride = n, rows = ext[0] * ext[1];
            const char *x = NULL;
            if (j->in_place) {
                x = p[0];
                stride = j->space.stride[0][rank - 2] / j->plan.width;
                const int64_t side = j->lots > 1 ? rows / j->lots : 0;
                if (side > 0) gni_reduce_fold_columns(j, &acc, x, side, n * j->lots, n * j->lots, place);
                x += side * j->lots * n * j->plan.width;
                rows -= side * j->lots;
            } else {
                x = gni_reduce_tile(j, &e, p, ext);
            }
            gni_reduce_fold_columns(j, &acc, x, rows, stride, n, place);
            gni_cursor_next(&c);
        }
        gni_columns_end(j, &acc, n, row * j->columns + column, item % j->parts);
    }
}

// ---- reductions: which way

// Whether neighbours in memory are kept ones, judged by the first input that tells.
static bool gni_reduce_by_columns(const gni_reduce *r) {
    int kept = r->kept;
    for (int k = 0; k < r->program.n_in && kept > 0; k++) {
        int64_t a = r->in[k].stride[kept - 1], b = 0;
        for (int i = kept; i < r->rank; i++) {
            int64_t s = r->in[k].stride[i] < 0 ? -r->in[k].stride[i] : r->in[k].stride[i];
            if (s != 0 && r->dim[i] > 1 && (b == 0 || s < b)) b = s;
        }
        a = a < 0 ? -a : a;
        if (a != 0 || b != 0) return a != 0 && (b == 0 || a < b);
    }
    return false;
}

// The space of the dimensions from `first` on, neighbours joined. Places are counted in C order.
static void gni_reduce_space(gni_reduce_job *j, int first) {
    const gni_reduce *r = j->r;
    gni_space *s = &j->space;
    gni_space_begin(s);
    for (int i = first; i < r->rank; i++) gni_space_dim(s, r->dim[i]);
    for (int k = 0; k < r->program.n_in; k++)
        gni_space_operand(s, &r->in[k], gni_operand_data(&r->in[k]), first);
    if (r->op != GNI_RED_ARGMIN && r->op != GNI_RED_ARGMAX && first == r->kept) gni_space_sort(s);
    gni_space_merge(s, 0);
}

// Whether the reduced register is an input as it lies in memory, contiguous along the last dimension.
static bool gni_reduce_bare(const gni_reduce_job *j) {
    const gni_program *p = j->plan.program;
    const gni_space *s = &j->space;
    return p->n_insn == 0 && s->ops == 1 && p->out_reg[0] == 0 &&
           j->plan.isa->load[p->in_dtype[0]] == NULL && s->stride[0][s->rank - 1] == s->item[0];
}

// The first `count` dimensions are stepped through outside of the space.
static void gni_reduce_outer(gni_reduce_job *j, int count) {
    const gni_reduce *r = j->r;
    j->row_rank = count;
    j->rows = 1;
    for (int i = 0; i < count; i++) {
        j->rows *= r->dim[i];
        j->row_dim[i] = r->dim[i];
        for (int k = 0; k < r->program.n_in; k++)
            j->row_stride[k][i] = r->in[k].stride[i] * gni_item_size(r->in[k].dtype);
    }
}

// Cuts each of `count` reductions of `n` elements into parts, for want of other work to share out.
static void gni_reduce_parts(gni_reduce_job *j, int64_t count, int64_t n, int64_t most) {
    int64_t tiles = j->space.tiles, per_tile = GNI_MAX(n / tiles, 1);
    j->part = tiles;
    if (count < 64) j->part = GNI_MAX((tiles - 1) / most + 1, GNI_CHUNK / per_tile + 1);
    j->parts = (tiles - 1) / j->part + 1;
}

static bool gni_reduce_run(gn_context *g, gni_reduce_job *j, int64_t items, int64_t n,
                           gni_task_fn task) {
    int64_t results = j->rows * j->columns;
    if (j->parts > 1) {
        size_t bytes = (size_t)(results * j->parts) * sizeof(gni_acc);
        j->acc = (gni_acc *)gni_alloc(g, bytes);
        if (j->acc == NULL) return gni_fail_memory(g, "reduction", bytes);
    }
    gni_parallel(g->pool, items * j->parts, GNI_GRAIN * j->parts / GNI_MAX(n, 1), task, j);
    if (j->acc == NULL) return true;
    for (int64_t i = 0; i < results; i++) {
        gni_acc acc = j->acc[i * j->parts];
        for (int64_t k = 1; k < j->parts; k++) gni_acc_join(j->r, &acc, &j->acc[i * j->parts + k]);
        gni_acc_store(j, i, &acc);
    }
    gni_free(g, j->acc);
    return true;
}

static bool gni_reduce_columns(gn_context *g, gni_reduce_job *j, int64_t n) {
    const gni_reduce *r = j->r;
    gni_space *s = &j->space;
    int last = r->kept - 1;
    int64_t block = j->plan.block;
    gni_reduce_outer(j, last);
    gni_reduce_space(j, r->kept);
    j->columns = r->dim[last];
    gni_space_pad(s);
    gni_space_dim(s, 1);
    for (int k = 0; k < s->ops; k++)
        s->stride[k][s->rank - 1] = r->in[k].stride[last] * gni_item_size(r->in[k].dtype);
    // Bands as wide as a block lets them be with all rows, but no fewer than some rows or columns.
    j->in_place = gni_reduce_bare(j);
    j->band = j->in_place ? GNI_BAND : n <= 64 ? block / n & ~(int64_t)15 : 128;
    j->band = GNI_MIN(j->columns, GNI_MIN(GNI_MAX(j->band, 16), GNI_BAND));
    s->dim[s->rank - 1] = j->band; // one tile wide: the band at hand
    int64_t *t = s->tile + s->rank - 3, *d = s->dim + s->rank - 3;
    for (int i = 0; i < s->rank; i++) s->tile[i] = 1;
    t[2] = j->band;
    t[1] = GNI_MIN(d[1], j->in_place ? 8 * GNI_COLUMN_BLOCK : GNI_MAX(block / j->band, 1));
    const bool places = r->op == GNI_RED_ARGMIN || r->op == GNI_RED_ARGMAX;
    if (j->in_place && !places && s->stride[0][s->rank - 2] == j->columns * j->plan.width)
        j->lots = GNI_MAX(32 / j->columns, 1);
    t[1] = GNI_MIN(d[1], t[1] * j->lots);
    if (t[1] == d[1] && !j->in_place) t[0] = GNI_MAX(GNI_MIN(d[0], block / (j->band * d[1])), 1);
    gni_space_count(s);
    int64_t items = j->rows * ((j->columns - 1) / j->band + 1);
    const bool rounds = r->domain == GNI_F && (r->op == GNI_RED_SUM || r->op == GNI_RED_PROD);
    // Where nothing is rounded, parts only serve threads.
    gni_reduce_parts(j, rounds || gni_pool_threads(g->pool) > 1 ? items : (int64_t)GNI_PARTS, n * j->band, 32);
    return gni_reduce_run(g, j, items, n * j->band, gni_reduce_columns_task);
}

// Rows short enough for a tile to have several.
static bool gni_reduce_short(gn_context *g, gni_reduce_job *j, int64_t n) {
    const gni_reduce *r = j->r;
    gni_space *s = &j->space;
    int reduced = GNI_MAX(s->rank, 1);
    gni_space rows = *s;
    gni_space_pad(&rows);
    gni_space_begin(s);
    for (int i = 0; i < r->kept; i++) gni_space_dim(s, r->dim[i]);
    for (int k = 0; k < r->program.n_in; k++)
        gni_space_operand(s, &r->in[k], gni_operand_data(&r->in[k]), 0);
    for (int i = rows.rank - reduced; i < rows.rank; i++) {
        gni_space_dim(s, rows.dim[i]);
        for (int k = 0; k < s->ops; k++) s->stride[k][s->rank - 1] = rows.stride[k][i];
    }
    gni_space_pad(s);
    int at = s->rank - reduced - 1;
    for (int i = 0; i < s->rank; i++) s->tile[i] = i > at ? s->dim[i] : 1;
    s->tile[at] = GNI_MIN(s->dim[at], j->plan.block / n);
    if (s->tile[at] > 16 && s->tile[at] < s->dim[at]) s->tile[at] &= ~(int64_t)15;
    gni_space_count(s);
    j->row = n;
    j->row_rank = reduced;
    gni_parallel(g->pool, s->tiles, GNI_GRAIN / GNI_BLOCK, gni_reduce_short_task, j);
    return true;
}

static bool gni_reduce_rows(gn_context *g, gni_reduce_job *j, int64_t n) {
    const gni_reduce *r = j->r;
    gni_space *s = &j->space;
    gni_reduce_outer(j, r->kept);
    gni_reduce_space(j, r->kept);
    const bool bare = s->rank == 1 && gni_reduce_bare(j); // read where it is, it needs no register
    if (!bare && r->kept > 0 && s->rank <= 2 && n <= j->plan.block / 4) return gni_reduce_short(g, j, n);
    gni_space_tile(s, bare ? 8 * GNI_BLOCK : j->plan.block, true);
    gni_reduce_parts(j, j->rows, n, GNI_PARTS);
    j->row = n;
    return gni_reduce_run(g, j, j->rows, n, bare && j->parts == 1 ? gni_reduce_bare_task : gni_reduce_rows_task);
}

// Sums of rows of complex numbers, which lie side by side: parts as the last dimension that is kept. Long ones are columns,
// which threads share.
static bool gni_reduce_pairs(gn_context *g, gni_reduce_job *j, int64_t n) {
    const gni_reduce *r = j->r;
    const int last = r->kept - 1;
    if (r->op != GNI_RED_SUM || r->domain != GNI_F || last < 0 || r->rank != r->kept + 1 || r->dim[last] != 2 ||
        r->in[0].stride[last] != 1 || r->in[0].stride[r->kept] != 2 || n > 8 * GNI_BLOCK)
        return false;
    gni_reduce_outer(j, last);
    gni_reduce_space(j, last);
    if (r->program.n_insn != 0 || r->program.n_in != 1 || j->plan.isa->load[r->program.in_dtype[0]] != NULL) return false;
    j->columns = 2;
    j->row = 2 * n;
    j->parts = 1;
    return gni_reduce_run(g, j, j->rows, n, gni_reduce_bare_task);
}

// Small integers need no 64-bit registers: folds of 32-bit ones gather in 64 bits all the same.
static bool gni_reduce_narrowed(const gni_reduce *r, gni_reduce *narrow) {
    const gni_program *p = &r->program;
    if (!p->wide || p->n_insn != 0 || p->out_reg[0] >= p->n_in || r->domain != GNI_I) return false;
    gn_dtype t = p->in_dtype[p->out_reg[0]];
    if (gni_is_float(t) || gn_dtype_size(t) > 4) return false;
    *narrow = *r;
    narrow->in[0] = r->in[p->out_reg[0]];
    narrow->program.wide = false;
    narrow->program.n_in = 1;
    narrow->program.n_const = 0;
    narrow->program.in_dtype[0] = narrow->program.out_dtype[0] = t;
    narrow->program.out_reg[0] = 0;
    narrow->domain = t == GN_U32 ? GNI_U : GNI_I;
    return true;
}

// Whether what a program gives is known to be 0 or 1: a bool, or what its last instruction has compared.
static bool gni_reduce_of_truth(const gni_program *p) {
    const int last = p->n_insn - 1;
    if (last < 0) return p->n_in == 1 && p->in_dtype[0] == GN_BOOL;
    const uint32_t op = GNI_INSN_CODE(p->insn[last]) / 3u;
    return p->out_reg[0] == p->n_in + p->n_const + last && op >= GNI_OP_EQ && op <= GNI_OP_LOGICAL_XOR;
}

static bool gni_cpu_reduce(gn_context *g, const void *job) {
    const gni_reduce *r = (const gni_reduce *)job;
    GNI_ZEROED(gni_reduce_job, j);
    j.r = r;
    j.full = gni_cpu_isa_of(g->isa);
    j.columns = j.lots = 1;
    j.out = gni_operand_data(&r->out);
    int64_t results = 1, n = 1;
    for (int i = 0; i < r->kept; i++) results *= r->dim[i];
    for (int i = r->kept; i < r->rank; i++) n *= r->dim[i];
    if (n == 0) {
        gni_acc acc;
        gni_acc_begin(r, &acc, 0);
        for (int64_t i = 0; i < results; i++) gni_acc_store(&j, i, &acc);
    }
    if (n == 0 || results == 0) return true;
    gni_reduce narrow;
    if (gni_reduce_narrowed(r, &narrow)) j.r = r = &narrow;
    // Short rows are transposed into columns.
    bool columns =
        gni_reduce_by_columns(r) || (n <= 32 && r->kept > 0 && r->dim[r->kept - 1] >= 16);
    // Of bools the largest is any, the least all: these stop early along rows, those have many columns in a vector.
    static const gni_reduction same[2][2] = {{GNI_RED_MAX, GNI_RED_MIN}, {GNI_RED_ANY, GNI_RED_ALL}};
    for (int i = 0; i < 2 && r->program.n_insn == 0 && gni_reduce_of_truth(&r->program); i++) {
        if (r->op != same[columns ? 1 : 0][i]) continue;
        if (r != &narrow) narrow = *r;
        narrow.op = same[columns ? 0 : 1][i];
        j.r = r = &narrow;
        break;
    }
    j.stops = (r->op == GNI_RED_ARGMIN || r->op == GNI_RED_ARGMAX) && r->domain == GNI_I && gni_reduce_of_truth(&r->program);
    gn_dtype bytes = GN_DTYPE_COUNT; // truth of bytes along rows stays in bytes, extremes in 8 and 16 bits
    gni_program less;
    const bool extreme = (r->op == GNI_RED_MIN || r->op == GNI_RED_MAX) && r->program.n_insn == 0;
    const gn_dtype first = r->program.in_dtype[0];
    const bool sum = r->op == GNI_RED_SUM && r->program.n_insn == 0 && (first == GN_BOOL || first == GN_U8);
    if (extreme || (!columns && (r->op == GNI_RED_ANY || r->op == GNI_RED_ALL || sum)))
        bytes = gni_narrow_program(&less, &r->program);
    if (bytes != GN_DTYPE_COUNT && !extreme && gn_dtype_size(bytes) > 1) bytes = GN_DTYPE_COUNT;
    if (bytes != GN_DTYPE_COUNT && extreme) {
        j.pick = gni_narrow_kernel((uint32_t)(r->op == GNI_RED_MIN ? GNI_OP_MIN : GNI_OP_MAX) * 3u, bytes);
        j.picked = bytes;
    }
    gni_plan_make(&j.plan, bytes != GN_DTYPE_COUNT ? &less : &r->program, g, r->in, NULL, bytes);
    if (columns && gni_reduce_pairs(g, &j, n)) return true;
    return columns ? gni_reduce_columns(g, &j, n) : gni_reduce_rows(g, &j, n);
}
