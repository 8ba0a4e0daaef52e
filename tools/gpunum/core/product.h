// >>product
// A pending product and the elementwise work around it, what makes an operand and what follows, as one job.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/evaluate.h"
#include "../core/place.h"
#endif

static bool gni_matmul_misfit(gn_context *g, const char *fn, const gn_array *a, const gn_array *b,
                              const char *why) {
    char ta[200], tb[200];
    return gni_fail(g, GN_ERROR_SHAPE, "%s: %s x %s%s", fn, gni_shape_text(ta, sizeof ta, &a->shape),
                    gni_shape_text(tb, sizeof tb, &b->shape), why);
}

// Shapes of the job, with 1-d operands seen as a row and a column. False after gni_fail.
static bool gni_matmul_shapes(gn_context *g, const char *fn, const gn_array *a, const gn_array *b,
                              gni_matmul *m, gn_shape *out) {
    int ra = a->shape.rank, rb = b->shape.rank;
    if (ra == 0 || rb == 0) {
        return gni_matmul_misfit(g, fn, a, b, ": a 0-d operand; use gn_mul");
    }
    m->m = ra > 1 ? a->shape.dim[ra - 2] : 1;
    m->k = a->shape.dim[ra - 1];
    m->n = rb > 1 ? b->shape.dim[rb - 1] : 1;
    int64_t kb = rb > 1 ? b->shape.dim[rb - 2] : b->shape.dim[0];
    if (m->k != kb) {
        char why[100];
        snprintf(why, sizeof why, ": inner dimensions %lld and %lld differ", (long long)m->k,
                 (long long)kb);
        return gni_matmul_misfit(g, fn, a, b, why);
    }
    m->a_rs = ra > 1 ? a->stride[ra - 2] : 0;
    m->a_cs = a->stride[ra - 1];
    m->b_rs = rb > 1 ? b->stride[rb - 2] : b->stride[0];
    m->b_cs = rb > 1 ? b->stride[rb - 1] : 0;
    gn_shape batch_a = gn_shape_from(GNI_MAX(ra - 2, 0), a->shape.dim);
    gn_shape batch_b = gn_shape_from(GNI_MAX(rb - 2, 0), b->shape.dim);
    if (!gni_broadcast(&batch_a, &batch_b, out))
        return gni_matmul_misfit(g, fn, a, b, ": batch dimensions do not broadcast");
    m->batch_rank = out->rank;
    for (int i = 0; i < out->rank; i++) {
        int ia = i - out->rank + batch_a.rank, ib = i - out->rank + batch_b.rank;
        m->batch_dim[i] = out->dim[i];
        m->a_batch[i] = ia >= 0 && batch_a.dim[ia] != 1 ? a->stride[ia] : 0;
        m->b_batch[i] = ib >= 0 && batch_b.dim[ib] != 1 ? b->stride[ib] : 0;
    }
    if (ra > 1) out->dim[out->rank++] = m->m;
    if (rb > 1) out->dim[out->rank++] = m->n;
    return true;
}

// Whether the program's operands have these steps: one of batch dimension `outer` is `count` of `inner`.
static bool gni_matmul_even(const gni_matmul *m, int outer, int inner, int64_t count) {
    for (int k = 1; m->fused && k < m->program.n_in; k++)
        if (m->in[k].stride[outer] != m->in[k].stride[inner] * count) return false;
    for (int k = 0; m->prologue != 0 && k < m->load.n_in; k++)
        if (m->load_in[k].stride[outer] != m->load_in[k].stride[inner] * count) return false;
    return true;
}

static void gni_matmul_move(gni_matmul *m, int from, int to) {
    for (int k = 1; m->fused && k < m->program.n_in; k++)
        m->in[k].stride[to] = m->in[k].stride[from];
    for (int k = 0; m->prologue != 0 && k < m->load.n_in; k++)
        m->load_in[k].stride[to] = m->load_in[k].stride[from];
}

// Batches that all operands step through evenly become one; a batch of row blocks over one matrix b
// becomes more rows.
static void gni_matmul_merge(gni_matmul *m) {
    int out = 0;
    for (int i = 0; i < m->batch_rank; i++) {
        if (m->batch_dim[i] == 1) continue;
        bool joins = out > 0 && m->a_batch[out - 1] == m->a_batch[i] * m->batch_dim[i] &&
                     m->b_batch[out - 1] == m->b_batch[i] * m->batch_dim[i] &&
                     gni_matmul_even(m, out - 1, i, m->batch_dim[i]);
        if (joins) out--;
        m->batch_dim[out] = joins ? m->batch_dim[out] * m->batch_dim[i] : m->batch_dim[i];
        m->a_batch[out] = m->a_batch[i];
        m->b_batch[out] = m->b_batch[i];
        gni_matmul_move(m, i, out);
        out++;
    }
    m->batch_rank = out;
    if (out == 0 || m->b_batch[out - 1] != 0) return;
    bool rows =
        m->a_batch[out - 1] == m->m * m->a_rs && gni_matmul_even(m, out - 1, GNI_ALONG_M, m->m);
    if (!rows && m->m != 1) return;
    if (m->m == 1) {
        m->a_rs = m->a_batch[out - 1];
        gni_matmul_move(m, out - 1, GNI_ALONG_M);
    }
    m->m *= m->batch_dim[out - 1];
    m->batch_rank = out - 1;
}

// ---- what is fused into the store

// Operands of the program over the batch dimensions, m and n; b's are over the root's dimensions.
static void gni_matmul_take_program(gni_matmul *m, const gni_builder *b, const gn_array *product) {
    const gni_expr *e = product->expr;
    int rank = b->map.rank, lead = rank - product->shape.rank, at = lead + m->batch_rank;
    m->fused = true;
    m->program = b->map.program;
    for (int k = 1; k < m->program.n_in; k++) {
        const int64_t *from = b->map.in[k].stride;
        gni_operand *to = &m->in[k];
        *to = b->map.in[k];
        memset(to->stride, 0, sizeof to->stride);
        for (int i = 0; i < m->batch_rank; i++) to->stride[i] = from[lead + i];
        if (e->src[0]->shape.rank > 1) to->stride[GNI_ALONG_M] = from[at];
        if (e->src[1]->shape.rank > 1) to->stride[GNI_ALONG_N] = from[rank - 1];
    }
}

// The operand that insn adds to the product, a float32 row, or 0.
static int gni_matmul_row_added(const gni_matmul *m, uint32_t insn) {
    uint32_t a = GNI_INSN_A(insn), b = GNI_INSN_B(insn);
    if (GNI_INSN_CODE(insn) != GNI_OP_ADD * 3u + GNI_F || (a == 0) == (b == 0)) return 0;
    int k = (int)(a + b);
    if (k >= m->program.n_in || m->in[k].dtype != GN_F32) return 0;
    for (int i = 0; i < m->batch_rank; i++)
        if (m->in[k].stride[i] != 0 && m->batch_dim[i] != 1) return 0;
    bool row = (m->in[k].stride[GNI_ALONG_M] == 0 || m->m == 1) &&
               (m->in[k].stride[GNI_ALONG_N] == 1 || m->n == 1);
    return row ? k : 0;
}

// A bias, relu and a conversion are what every kernel does without a program.
static void gni_matmul_simplify(gni_matmul *m) {
    gni_program *p = &m->program;
    gni_drop_round(p);
    int done = 0, reg = 0, bias = 0, first = p->n_in + p->n_const;
    if (p->n_insn > done && (bias = gni_matmul_row_added(m, p->insn[done])) > 0)
        reg = first + done++;
    bool relu = p->n_insn > done && GNI_INSN_CODE(p->insn[done]) == GNI_OP_RELU * 3u + GNI_F &&
                (int)GNI_INSN_A(p->insn[done]) == reg;
    if (relu) reg = first + done++;
    if (done < p->n_insn || p->out_reg[0] != reg) return;
    m->fused = false;
    m->act = relu ? 1 : 0;
    if (bias > 0) m->bias = m->in[bias];
}

// ---- a pending operand of a product with a vector or a narrow matrix, made while it is read

enum {
    GNI_PROLOGUE_LEAST = 4096, // elements: below, a pass of its own costs nothing that shows
    GNI_PROLOGUE_WIDEST = 256  // rows or columns of the other operand
};

// Rows of a (side 2) or columns of b (side 1).
static int64_t gni_prologue_width(const gn_array *a, const gn_array *b, int side) {
    const gn_shape *s = side == 1 ? &b->shape : &a->shape;
    return s->rank == 1 ? 1 : s->dim[side == 1 ? s->rank - 1 : s->rank - 2];
}

// Whether a (side 1) or b (side 2) may stay pending: for large ones each element is loaded once or a few times, and
// memory is what such products wait for. Only GPUs have it for more than a vector.
static bool gni_may_give(const gn_array *a, const gn_array *b, int side) {
    const gn_array *x = side == 1 ? a : b, *v = side == 1 ? b : a;
    int64_t width = gni_prologue_width(a, b, side);
    if (width > 1 && (x->ctx->gpu == NULL || width > GNI_PROLOGUE_WIDEST)) return false;
    if (width == 0 || !gni_is_pending(x) || gni_is_const(x) || x->dtype != GN_F32) return false;
    return x != v && !x->expr->wide && !x->expr->prologue && x->expr->products == 0 &&
           gni_elements(&x->shape) >= GNI_PROLOGUE_LEAST;
}

// Nobody else reads it, and no batch twice.
static int gni_product_prologue(const gn_array *product, int64_t *by) {
    const gni_expr *e = product->expr;
    if (product->dtype != GN_F32) return 0;
    for (int side = 1; side <= 2; side++) {
        const gn_array *x = e->src[side - 1], *v = e->src[2 - side];
        if (!gni_may_give(e->src[0], e->src[1], side)) continue;
        bool user = x->user_refs > 1 || (x->user_refs == 1 && x->scope_slot < 0);
        int64_t n = gni_elements(&product->shape), k = gni_product_depth(product);
        if (user || x->lazy_refs != 1 || x->refs != x->user_refs + 1) continue;
        *by = gni_prologue_width(e->src[0], e->src[1], side);
        if (gni_elements(&x->shape) * *by != n * k) continue;
        if (side == 2 || *by > 1 || !gni_may_give(v, x, 1)) return side;
    }
    return 0;
}

// Says how operand `side` is made; false where that does not fit.
static bool gni_matmul_take_load(gn_context *g, gni_matmul *m, gn_array *x, int side) {
    gni_builder b;
    gni_program *p = &b.map.program;
    int rank = x->shape.rank, lead = rank - 2 - m->batch_rank;
    gni_build_begin(&b, g, &x->shape, false);
    p->n_out = 1;
    p->out_dtype[0] = GN_F32;
    p->out_reg[0] = gni_build_value(&b, x);
    int others = 1 + (m->fused ? m->program.n_in : 0);
    if (b.full || p->n_in + others > GNI_MAX_INPUTS || p->n_insn + 1 > GNI_MAX_INSNS) return false;
    gni_build_finish(p);
    m->prologue = side;
    m->load = *p;
    for (int k = 0; k < p->n_in; k++) {
        const int64_t *from = b.map.in[k].stride;
        gni_operand *to = &m->load_in[k];
        *to = b.map.in[k];
        memset(to->stride, 0, sizeof to->stride);
        for (int i = 0; i < m->batch_rank; i++)
            if (lead + i >= 0) to->stride[i] = from[lead + i];
        to->stride[side == 2 && rank == 1 ? GNI_ALONG_M : GNI_ALONG_N] = from[rank - 1];
        if (rank > 1) to->stride[GNI_ALONG_M] = from[rank - 2];
    }
    return true;
}

static bool gni_product_run(gn_context *g, gn_array *product, gn_array *root, gni_builder *b) {
    gni_matmul m;
    gn_shape shape;
    gn_array *x = product->expr->src[0], *y = product->expr->src[1];
    int64_t by = 0;
    int side = gni_product_prologue(product, &by);
    if (root == product) gni_product_keep(g, product);
    memset(&m, 0, sizeof m);
    if (side != 1 && !gni_materialize(g, x)) return false;
    if (side != 2 && !gni_materialize(g, y)) return false;
    if (!gni_matmul_shapes(g, product->maker, x, y, &m, &shape)) return false;
    if (b != NULL) {
        gni_matmul_take_program(&m, b, product);
        gni_matmul_simplify(&m);
    }
    if (side != 0 && !gni_matmul_take_load(g, &m, side == 1 ? x : y, side)) {
        if (!gni_materialize(g, side == 1 ? x : y)) return false;
    }
    gni_buffer *out =
        gni_buffer_new(g, (uint64_t)gni_elements(&root->shape) * gn_dtype_size(root->dtype));
    if (out == NULL) return false;
    m.a.buf = x->buf;
    m.a.offset = x->offset;
    m.b.buf = y->buf;
    m.b.offset = y->offset;
    m.c.buf = out;
    m.a.dtype = m.b.dtype = x->dtype;
    m.c.dtype = root->dtype;
    if (out->bytes > 0 && (m.prologue == 0 || by > 1)) gni_matmul_merge(&m);
    if (!gni_run(g, &gni_kind_matmul, &m, root)) {
        gni_buffer_release(g, out);
        return false;
    }
    root->buf = out;
    product->expr->consumed = true;
    if (m.prologue != 0) (m.prologue == 1 ? x : y)->expr->prologue = true;
    gni_expr_free(g, root);
    return true;
}
