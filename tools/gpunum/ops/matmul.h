// >>matmul
// The public matrix product: NumPy's shapes, dtypes and broadcasting turned into one job.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/linalg.h"
#include "../api/transforms.h"
#include "../core/product.h"
#include "../core/access.h"
#include "../cpu/cpu.h"
#include "../ops/elementwise.h"
#endif

// Dtype the product is computed in; operands of other dtypes are cast to it first.
static gn_dtype gni_matmul_dtype(gn_dtype t) {
    if (gni_is_float(t) || t == GN_I32 || t == GN_I64) return t;
    return t == GN_U32 || t == GN_U64 ? GN_I64 : GN_I32;
}

// a (m,k) x b (k,n) of one of the dtypes that sum in float32, and the sums of b's columns (n), by one job.
// References for the caller.
static bool gni_product_and_sums(gn_context *g, const char *fn, gn_array *a, gn_array *b,
                                 gn_array **product, gn_array **sums) {
    gni_matmul m;
    gn_shape shape, row;
    memset(&m, 0, sizeof m);
    if (!gni_materialize(g, a) || !gni_materialize(g, b)) return false;
    if (!gni_matmul_shapes(g, fn, a, b, &m, &shape)) return false;
    row = gn_shape_from(1, &m.n);
    const gn_dtype t = a->dtype;
    gn_array *y = gni_array_empty(g, fn, t, &shape), *z = gni_array_empty(g, fn, t, &row);
    bool ok = y != NULL && z != NULL;
    if (ok) {
        m.a.buf = a->buf;
        m.a.offset = a->offset;
        m.b.buf = b->buf;
        m.b.offset = b->offset;
        m.c.buf = y->buf;
        m.sums.buf = z->buf;
        m.a.dtype = m.b.dtype = m.c.dtype = m.sums.dtype = t;
        ok = gni_run(g, &gni_kind_matmul, &m, y);
        z->reason = y->reason;
        z->on_gpu = y->on_gpu;
    }
    if (!ok) {
        gni_unref(g, y);
        gni_unref(g, z);
        return false;
    }
    *product = y;
    *sums = z;
    return true;
}

// a x b of one of the dtypes that sum in float32, pending. The result is of dtype t: theirs, or float32.
static gn_array *gni_product_new(gn_context *g, const char *fn, gn_array *a, gn_array *b, gn_dtype t) {
    gni_matmul m;
    gn_shape shape;
    memset(&m, 0, sizeof m);
    if (!gni_matmul_shapes(g, fn, a, b, &m, &shape)) return NULL;
    if (!gni_shape_ok(g, fn, t, &shape)) return NULL;
    if (!gni_may_give(a, b, 1) && !gni_materialize(g, a)) return NULL;
    if (!gni_may_give(a, b, 2) && !gni_materialize(g, b)) return NULL;
    gn_array *y = gni_expr_new(g, fn, GNI_OP_PRODUCT, a->dtype, t, &shape);
    if (y == NULL) return NULL;
    gni_expr *e = y->expr;
    e->src[0] = a;
    e->src[1] = b;
    e->n_src = 2;
    e->run = gni_product_run;
    e->leaves = e->products = 1;
    gni_source_add(a);
    gni_source_add(b);
    return y;
}

// gn_matmul's work under another name. Not recorded. Float64 and integers are multiplied at once.
static gn_array *gni_matmul_named(gn_context *g, const char *fn, gn_array *a, gn_array *b) {
    gn_array *in[2] = {a, b};
    if (!gni_real_only(g, fn, in, 2)) return NULL;
    gn_dtype result = gn_promote(a->dtype, b->dtype), t = gni_matmul_dtype(result);
    for (int i = 0; i < 2; i++) {
        if (in[i]->dtype == t)
            in[i]->refs++;
        else
            in[i] = gni_apply(g, fn, GNI_OP_CAST, in[i]->dtype, t, &in[i], NULL, 1);
    }
    gn_array *y = NULL;
    if (in[0] != NULL && in[1] != NULL) y = gni_product_new(g, fn, in[0], in[1], t);
    gni_unref(g, in[0]);
    gni_unref(g, in[1]);
    bool lazy = t == GN_F32 || t == GN_F16 || t == GN_BF16;
    if (y != NULL && !lazy && !gni_materialize(g, y)) {
        gni_unref(g, y);
        return NULL;
    }
    if (y != NULL && t != result) {
        gn_array *cast = gni_apply(g, fn, GNI_OP_CAST, t, result, &y, NULL, 1);
        gni_unref(g, y);
        y = cast;
    }
    return y;
}

// Complex products read one operand once, as it lies in memory, parts side by side: a (m, k) with dense rows as (m, 2 k). The
// other's parts are copied.
static gn_array *gni_parts_beside(gn_context *g, gn_array *a) {
    gn_shape s = a->shape;
    int64_t stride[GN_MAX_RANK];
    if (!gni_materialize(g, a)) return NULL;
    for (int i = 0; i < s.rank; i++) stride[i] = 2 * a->stride[i];
    stride[s.rank - 1] = 1;
    s.dim[s.rank - 1] *= 2;
    gn_array *y = gni_adopt(g, gni_array_view(g, "gn_matmul", a, &s, stride, 2 * a->offset));
    if (y != NULL) y->dtype = gni_part_of(a->dtype);
    return y;
}

// Of a product (..., halves m, 2 n) rows of half i and columns of part l.
static gn_array *gni_part_at(gn_array *y, int64_t halves, int64_t i, int64_t l) {
    if (y == NULL) return NULL;
    const int64_t m = y->shape.dim[y->shape.rank - 2] / halves;
    return gn_slice(gn_slice(y, -2, i * m, i * m + m, 1), -1, l, INT64_MAX, 2);
}

// Dense rows on the right: the parts of a below each other, (2 m, k), by b's (k, 2 n).
static gn_array *gni_complex_rows(gn_context *g, gn_array *a, gn_array *b) {
    if (a == NULL || b == NULL) return NULL;
    gn_array *half[2] = {gn_real(a), gn_imag(a)};
    gn_array *y = gn_matmul(gn_concat(half, 2, -2), gni_parts_beside(g, b));
    return gn_complex(gn_sub(gni_part_at(y, 2, 0, 0), gni_part_at(y, 2, 1, 1)),
                      gn_add(gni_part_at(y, 2, 0, 1), gni_part_at(y, 2, 1, 0)));
}

// Dense rows on the left: a's (m, 2 k) by rows re, im and -im, re of b, (2 k, 2 n).
static gn_array *gni_complex_columns(gn_context *g, gn_array *a, gn_array *b) {
    if (a == NULL || b == NULL) return NULL;
    gn_array *re = gn_real(b), *im = gn_imag(b), *half[2] = {re, im}, *row[2];
    gn_shape s = b->shape;
    row[0] = gn_stack(half, 2, -1);
    half[0] = gn_neg(im);
    half[1] = re;
    row[1] = gn_stack(half, 2, -1);
    for (int i = 1; i <= 2; i++) s.dim[s.rank - i] *= 2;
    gn_array *y = gn_matmul(gni_parts_beside(g, a), gn_reshape(gn_stack(row, 2, -3), s));
    return gn_complex(gni_part_at(y, 1, 0, 0), gni_part_at(y, 1, 0, 1));
}

// NULL where that does not pay, or dense rows or columns are not where they would help.
static gn_array *gni_complex_one(gn_context *g, gn_array *a, gn_array *b) {
    enum { FEW = 512, MUCH = 1 << 25 }; // on a CPU packing more costs little; on a GPU less is a matter of dispatches
    const int ra = a->shape.rank, rb = b->shape.rank;
    if (a->dtype != b->dtype || ra < 1 || rb < 1 || GNI_MAX(ra, rb) > GN_MAX_RANK - 2) return NULL;
    gn_array *x = ra == 1 ? gn_expand_dims(a, 0) : a, *z = rb == 1 ? gn_expand_dims(b, 1) : b, *y = NULL;
    if (x == NULL || z == NULL || !gni_materialize(g, x) || !gni_materialize(g, z)) return NULL;
    const int lx = x->shape.rank - 1, lz = z->shape.rank - 1;
    const gn_shape batch_x = gn_shape_from(lx - 1, x->shape.dim), batch_z = gn_shape_from(lz - 1, z->shape.dim);
    gn_shape batch;
    if (x->shape.dim[lx] != z->shape.dim[lz - 1] || !gni_broadcast(&batch_x, &batch_z, &batch)) return NULL;
    const int64_t m = x->shape.dim[lx - 1], n = z->shape.dim[lz];
    const bool rows = m <= n; // else columns
    const double much = (double)m * (double)n * (double)x->shape.dim[lx];
    if (g->gpu != NULL ? GNI_MIN(m, n) > 1 && much < (double)MUCH : GNI_MIN(m, n) > FEW) return NULL;
    if (rows ? z->stride[lz] == 1 : x->stride[lx] == 1)
        y = (rows ? gni_complex_rows : gni_complex_columns)(g, x, z);
    else if (rows ? z->stride[lz - 1] == 1 : x->stride[lx - 1] == 1) {
        x = gn_swap_axes(x, -1, -2);
        y = (rows ? gni_complex_columns : gni_complex_rows)(g, gn_swap_axes(z, -1, -2), x);
        y = gn_swap_axes(y, -1, -2);
    }
    if (y != NULL && rb == 1) y = gn_squeeze(y, -1);
    return y != NULL && ra == 1 ? gn_squeeze(y, rb == 1 ? -1 : -2) : y;
}

// Of complex vectors x and y (n), of x's conjugates where `conj`: parts of the sum of products, each a run of `each` numbers.
#ifdef GNI_WASM // whose passes have no loop for it
#define gni_pair_dot(g, fn, a, b, conj) NULL
#else
enum { GNI_DOT_PARTS = 64, GNI_DOT_BLOCK = 256 };
typedef struct gni_pair_dots {
    const char *from[2];
    int64_t step[2], item, n, each;
    gni_kernel kernel;
    bool conj;
    double sum[GNI_DOT_PARTS][2];
} gni_pair_dots;

static void gni_pair_dot_task(void *arg, int64_t begin, int64_t end, int worker) {
    gni_pair_dots *j = (gni_pair_dots *)arg;
    const int64_t item = j->item, last = GNI_MIN(end * j->each, j->n);
    double copy[2][2 * GNI_DOT_BLOCK + 16]; // zeros behind
    GNI_UNUSED(worker);
    for (int64_t i = begin * j->each, m; i < last; i += m) {
        union {
            double d[16];
            float f[32];
        } lanes;
        const char *x[2];
        m = GNI_MIN(last - i, (int64_t)GNI_DOT_BLOCK);
        for (int k = 0; k < 2; k++) {
            x[k] = j->from[k] + i * j->step[k];
            if (j->step[k] == item && m % 8 == 0) continue;
            char *to = (char *)copy[k];
            gni_copy_run(to, item, x[k], j->step[k], m, item);
            memset(to + m * item, 0, (size_t)(8 * item));
            x[k] = to;
        }
        memset(&lanes, 0, sizeof lanes);
        j->kernel(&lanes, x[0], x[1], x[1], (int)(m + 7) / 8 * 16);
        for (int l = 0; l < 256 / (int)item; l++) {
            const double v = item == 16 ? lanes.d[l] : (double)lanes.f[l];
            const bool other = l * (int)item >= 128;
            j->sum[i / j->each][other] += l % 2 != 0 && other == j->conj ? -v : v;
        }
    }
}

// NULL where it is not that, or not finite: what follows has the signs of infinity of products that are summed one by one.
static gn_array *gni_pair_dot(gn_context *g, const char *fn, gn_array *a, gn_array *b, bool conj) {
    gn_array *in[2] = {a, b};
    gni_pair_dots j;
    if (g->gpu != NULL || a->dtype != b->dtype || !gni_is_complex(a->dtype) || a->shape.rank != 1 ||
        !gni_same_shape(&a->shape, &b->shape) || gni_tracks(g, in, 2))
        return NULL;
    const gni_cpu_isa *isa = gni_cpu_isa_of(g->isa);
    const gn_dtype part = gni_part_of(a->dtype);
    j.kernel = (part == GN_F64 ? isa->wide : isa)->pair_dot;
    j.conj = conj;
    j.item = gni_item_size(a->dtype);
    j.n = a->shape.dim[0];
    j.each = (j.n / GNI_DOT_PARTS / GNI_DOT_BLOCK + 1) * GNI_DOT_BLOCK;
    for (int k = 0; k < 2; k++) {
        j.from[k] = (const char *)gni_host(g, in[k]);
        j.step[k] = in[k]->stride[0] * j.item;
        if (j.kernel == NULL || j.from[k] == NULL) return NULL;
    }
    memset(j.sum, 0, sizeof j.sum);
    gni_parallel(g->pool, (j.n + j.each - 1) / j.each, GNI_GRAIN / j.each, gni_pair_dot_task, &j);
    double re = 0.0, im = 0.0;
    for (int i = 0; i < GNI_DOT_PARTS; i++) re += j.sum[i][0], im += j.sum[i][1];
    const gn_shape one = gn_shape_from(0, NULL);
    void *to;
    gn_array *y = (re - re) + (im - im) == 0.0 ? gni_array_filled(g, fn, a->dtype, &one, &to) : NULL;
    if (y != NULL) gni_store_double(part, to, 0, re), gni_store_double(part, to, 1, im);
    return y;
}
#endif

GPUNUM_API gn_array *gn_matmul(gn_array *a, gn_array *b) {
    gn_array *in[2] = {a, b};
    gn_context *g = gni_begin("gn_matmul", in, 2);
    if (g == NULL) return NULL;
    if (gni_autocasts(g, in, 2)) {
        gn_scope_begin(g);
        gni_autocast_all(g, in, 2);
        return gni_end_scope(g, gn_matmul(in[0], in[1]));
    }
    const gn_dtype t = gn_promote(a->dtype, b->dtype);
    // Vectors of what has no product of its own on a CPU: what is narrow is summed faster from memory.
    const bool vectors = a->shape.rank == 1 && gni_same_shape(&a->shape, &b->shape);
    gn_array *sum = gni_pair_dot(g, "gn_matmul", a, b, false);
    if (sum != NULL || g->call_failed) return gni_end(g, sum);
    if (g->gpu == NULL && vectors && t != GN_DTYPE_COUNT && !gni_is_float(t)) {
        gn_scope_begin(g);
        gn_array *y = gn_mul(a, b);
        return gni_end_scope(g, gn_cast(gn_sum(t == GN_I64 || t == GN_U64 ? y : gn_eval(y), 0), t));
    }
    if (gni_is_complex(a->dtype) || gni_is_complex(b->dtype)) {
        gn_scope_begin(g);
        gn_array *one = gni_tracks(g, in, 2) ? NULL : gni_complex_one(g, a, b);
        return gni_end_scope(g, one != NULL || g->call_failed ? one : gni_complex_product(gn_matmul, a, b));
    }
    gn_array *y = gni_matmul_named(g, "gn_matmul", a, b);
    if (y != NULL && gni_tracks(g, in, 2)) gni_record(g, y, "gn_matmul", gni_back_matmul, in, 2);
    return gni_end(g, y);
}
