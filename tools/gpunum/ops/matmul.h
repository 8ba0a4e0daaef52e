// >>matmul
// The public matrix product: NumPy's shapes, dtypes and broadcasting turned into one job.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/linalg.h"
#include "../core/product.h"
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
    for (int i = 0; i < 2; i++) {
        e->src[i]->refs++;
        e->src[i]->lazy_refs++;
    }
    return y;
}

// gn_matmul's work under another name. Not recorded. Float64 and integers are multiplied at once.
static gn_array *gni_matmul_named(gn_context *g, const char *fn, gn_array *a, gn_array *b) {
    gn_array *in[2];
    in[0] = a;
    in[1] = b;
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

GPUNUM_API gn_array *gn_matmul(gn_array *a, gn_array *b) {
    gn_array *in[2];
    in[0] = a;
    in[1] = b;
    gn_context *g = gni_begin("gn_matmul", in, 2);
    if (g == NULL) return NULL;
    if (gni_autocasts(g, in, 2)) {
        gn_scope_begin(g);
        gni_autocast_all(g, in, 2);
        return gni_end_scope(g, gn_matmul(in[0], in[1]));
    }
    if (gni_is_complex(a->dtype) || gni_is_complex(b->dtype)) {
        gn_scope_begin(g);
        return gni_end_scope(g, gni_complex_product(gn_matmul, a, b));
    }
    gn_array *y = gni_matmul_named(g, "gn_matmul", a, b);
    if (y != NULL && gni_tracks(g, in, 2)) gni_record(g, y, "gn_matmul", gni_back_matmul, in, 2);
    return gni_end(g, y);
}
