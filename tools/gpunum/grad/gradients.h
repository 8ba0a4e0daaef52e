// >>gradients
// The derivative of each op, as public calls, so that it can be differentiated again. A backward
// function gets the gradient gy of its result and puts those of the operands that gni_wanted names into
// gx; they belong to the scope that gn_backward holds open around it. Elementwise ops: table `optable`.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../linalg/factor_ops.h"
#include "../ops/indexing.h"
#include "../ops/fft.h"
#include "../grad/autograd.h"
#endif

// What curves of several steps, losses and pools take, so that a half is rounded once, and the way back.
static gn_array *gni_half_up(gn_array *a) {
    return a != NULL && (a->dtype == GN_F16 || a->dtype == GN_BF16) ? gn_cast(a, GN_F32) : a;
}

// Sums, of halves in float32, or maxima along an axis of a few elements, which is kept, one after the other in one program: a
// GPU's kernels for sums share each among lanes.
static gn_array *gni_joined(gn_array *x, int axis, bool largest) {
    gn_array *y = NULL;
    for (int64_t i = 0; x != NULL && i < x->shape.dim[axis]; i++) {
        gn_array *part = gn_slice(x, axis, i, i + 1, 1);
        if (!largest) part = gni_half_up(part);
        y = i == 0 ? part : largest ? gn_maximum(y, part) : gn_add(y, part);
    }
    return y;
}

// Sums over what broadcasting repeated: from gx's shape back to `shape`.
static gn_array *gni_unbroadcast(gn_array *gx, const gn_shape *shape) {
    if (gx == NULL || gni_same_shape(&gx->shape, shape)) return gx;
    int lead = gx->shape.rank - shape->rank, axis = 0;
    uint32_t set = 0;
    for (int i = 0; i < gx->shape.rank; i++)
        if (i < lead || (shape->dim[i - lead] == 1 && gx->shape.dim[i] != 1)) set |= 1u << i, axis = i;
    const int64_t extent = gx->shape.dim[axis];
    const bool few = set == 1u << axis && extent > 0 && extent <= GNI_MAX_INPUTS && gni_is_float(gx->dtype);
    if (few && !gni_is_pending(gx) && gni_stays_on_gpu(gx->ctx, gx)) gx = gni_as(gni_joined(gx, axis, false), gx->dtype);
    else if (set != 0) gx = gn_sum(gx, GN_KEEP(gni_axes_of(set)));
    return gx == NULL || gni_same_shape(&gx->shape, shape) ? gx : gn_reshape(gx, *shape);
}

static gn_array *gni_zero_like(const gn_array *a) { return gn_scalar(a->ctx, a->dtype, 0.0); }

// ---- elementwise: what the derivative columns call

// An operand in the dtype of the result, before anything is rounded to a shorter one or wraps.
static gn_array *gni_widened(gn_array *a, const gn_array *gy) {
    return gni_as(a, gy->dtype);
}

// gy a / (a^2 + b^2), whose squares may be out of range.
static gn_array *gni_grad_angle(gn_array *gy, gn_array *a, gn_array *b) {
    gn_array *size = gn_hypot(a, b);
    return gn_div(gn_mul(gy, gn_div(a, size)), size);
}

// a / y of y = hypot(a, b), whose own derivative b^2 / y^3 is otherwise a difference of what is nearly equal.
static bool gni_back_share(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static gn_array *gni_share(gn_array *a, gn_array *b, gn_array *y) {
    gn_array *in[2];
    in[0] = a, in[1] = b, y = gn_div(a, y);
    gni_record(a->ctx, y, "gn_hypot", gni_back_share, in, 2);
    return y;
}
static bool gni_back_share(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *a = node->in[0], *b = node->in[1], *t = gn_mul(gy, gni_share(b, a, gn_hypot(a, b)));
    GNI_UNUSED(g);
    gx[0] = gni_unbroadcast(gni_grad_angle(t, b, a), &a->shape);
    gx[1] = gni_unbroadcast(gn_neg(gni_grad_angle(t, a, b)), &b->shape);
    return true;
}

static gn_array *gni_slope_by(gn_array *gy, gn_array *slope) {
    return gy == NULL ? NULL : gni_as(gn_mul(gni_half_up(gy), slope), gy->dtype);
}

// y (x sigmoid(x))' = s (1 + x (1 - s))
static gn_array *gni_grad_silu(gn_array *gy, gn_array *a) {
    a = gni_half_up(a);
    gn_array *s = gn_sigmoid(a);
    return gni_slope_by(gy, gn_mul(s, gn_add_s(gn_mul(a, gn_rsub_s(s, 1.0)), 1.0)));
}

// (x Phi(x))' = Phi(x) + x phi(x) with the normal distribution's Phi and phi.
static gn_array *gni_grad_gelu(gn_array *gy, gn_array *a) {
    a = gni_half_up(a);
    gn_array *phi = gn_mul_s(gn_exp(gn_mul_s(gn_square(a), -0.5)), GNI_1_SQRT2PI);
    gn_array *big_phi = gn_mul_s(gn_add_s(gn_erf(gn_mul_s(a, GNI_SQRT1_2)), 1.0), 0.5);
    return gni_slope_by(gy, gn_add(big_phi, gn_mul(a, phi)));
}

// 0 at 0, as in PyTorch. A choice, not a product: infinity times 0 would be NaN. On a GPU, where reading is what takes
// time, a norm's result is made again: its gradient reads what it is made of, but not y.
static gn_array *gni_grad_relu(gn_array *gy, gn_array *y) {
    if (y->node != NULL && y->node->visited & GNI_HELD) return gy;
    gn_array *a = y->node != NULL && y->node->n_in == 1 ? y->node->in[0] : NULL;
    const bool remade = y->on_gpu && gni_is_input(gy) && a != NULL && a->node != NULL && a->node->remade && gni_is_pending(a);
    if (remade) y = a;
    return gn_where(gn_le_s(y, 0.0), gni_zero_like(gy), gy);
}

// To the larger of a and b; equal operands share.
static gn_array *gni_grad_pick(gn_array *gy, gn_array *a, gn_array *b) {
    gn_array *share = gn_add(gn_cast(gn_gt(a, b), gy->dtype), gn_cast(gn_ge(a, b), gy->dtype));
    return gn_mul(gy, gn_mul_s(share, 0.5));
}

// b a^(b - 1), and 0 for b = 0 whatever a is.
static gn_array *gni_grad_pow_base(gn_array *gy, gn_array *a, gn_array *b) {
    gn_array *slope = gn_mul(b, gn_pow(a, gn_add_s(gni_widened(b, gy), -1.0)));
    return gn_where(gn_eq_s(b, 0.0), gni_zero_like(gy), gn_mul(gy, slope));
}

// log a, and 0 where 0^b stays 0.
static gn_array *gni_pow_log(gn_array *gy, gn_array *a, gn_array *b) {
    return gn_where(gn_logical_and(gn_eq_s(a, 0.0), gn_ge_s(b, 0.0)), gni_zero_like(gy), gn_log(gni_widened(a, gy)));
}

// y log a, whose derivative a^(b - 1) (1 + b log a) may be in range where y is not.
static bool gni_back_pow_exponent(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static gn_array *gni_grad_pow_exponent(gn_array *gy, gn_array *a, gn_array *b, gn_array *y) {
    gn_array *in[2];
    in[0] = a, in[1] = b, y = gn_mul(y, gni_pow_log(gy, a, b));
    gni_record(gy->ctx, y, "gn_pow", gni_back_pow_exponent, in, 2);
    return gn_mul(gy, y);
}
static bool gni_back_pow_exponent(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *a = node->in[0], *b = node->in[1], *by = gni_pow_log(gy, a, b);
    GNI_UNUSED(g);
    gn_array *slope = gn_mul(gn_pow(a, gn_add_s(gni_widened(b, gy), -1.0)), gn_add_s(gn_mul(b, by), 1.0));
    gx[0] = gni_unbroadcast(gn_mul(gy, slope), &a->shape);
    gx[1] = gni_unbroadcast(gni_grad_pow_exponent(gn_mul(gy, by), a, b, gn_pow(a, b)), &b->shape);
    return true;
}

static gn_array *gni_derivative_unary(gni_op op, gn_array *gy, gn_array *a, gn_array *y) {
    switch (op) {
#define GN_X(fn, NAME, F, D, gF, da)                                                               \
    case GNI_OP_##NAME: return da;
        GNI_UNARY_FLOAT(GN_X)
        GNI_UNARY_RARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da)                                                        \
    case GNI_OP_##NAME: return da;
        GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, D, da)                                                                      \
    case GNI_OP_##NAME: return da;
        GNI_UNARY_HIDDEN(GN_X)
#undef GN_X
    default: return NULL;
    }
}

static gn_array *gni_derivative_first(gni_op op, gn_array *gy, gn_array *a, gn_array *b,
                                      gn_array *y) {
    GNI_UNUSED(y);
    switch (op) {
#define GN_X(fn, NAME, F, D, gF, da, db)                                                           \
    case GNI_OP_##NAME: return da;
        GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db)                                                    \
    case GNI_OP_##NAME: return da;
        GNI_BINARY_ANY(GN_X)
#undef GN_X
    default: return NULL;
    }
}

static gn_array *gni_derivative_second(gni_op op, gn_array *gy, gn_array *a, gn_array *b,
                                       gn_array *y) {
    switch (op) {
#define GN_X(fn, NAME, F, D, gF, da, db)                                                           \
    case GNI_OP_##NAME: return db;
        GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db)                                                    \
    case GNI_OP_##NAME: return db;
        GNI_BINARY_ANY(GN_X)
#undef GN_X
    default: return NULL;
    }
}

// The derivative columns as text: first operand, second operand.
static const char *gni_derivative_text(gni_op op, int operand) {
    switch (op) {
#define GN_X(fn, NAME, F, D, gF, da)                                                               \
    case GNI_OP_##NAME: return #da;
        GNI_UNARY_FLOAT(GN_X)
        GNI_UNARY_RARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da)                                                        \
    case GNI_OP_##NAME: return #da;
        GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, D, da)                                                                      \
    case GNI_OP_##NAME: return #da;
        GNI_UNARY_HIDDEN(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db)                                                           \
    case GNI_OP_##NAME: return operand == 0 ? #da : #db;
        GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db)                                                    \
    case GNI_OP_##NAME: return operand == 0 ? #da : #db;
        GNI_BINARY_ANY(GN_X)
#undef GN_X
    default: return "";
    }
}

// Whether the expression uses the one-letter variable.
static bool gni_mentions(const char *text, char name) {
    char before = ' ';
    for (; *text != 0; before = *text++) {
        if (*text != name) continue;
        bool starts = before == ' ' || before == '(';
        if (starts && (text[1] == 0 || text[1] == ',' || text[1] == ')')) return true;
    }
    return false;
}

static bool gni_is_unary(gni_op op) { return op < GNI_OP_ISNAN || op >= GNI_OP_ERFC; }

// With one operand a constant there is one array; it stands for operand 1 (b) when the constant was first.
static int gni_operand_place(const gni_node *node, int i) { return node->param[1] == 1 ? 1 : i; }

static uint32_t gni_derivatives_read(const gni_node *node, bool (*wants)(const gni_node *node, int i)) {
    gni_op op = (gni_op)node->param[0];
    uint32_t reads = 0;
    if (op == GNI_OP_WHERE) return 1;
    if (op == GNI_OP_CAST) return 0;
    if (op == GNI_OP_FMA) return (wants(node, 0) ? 2u : 0u) | (wants(node, 1) ? 1u : 0u);
    for (int i = 0; i < node->n_in; i++) {
        if (!wants(node, i)) continue;
        const char *text = gni_derivative_text(op, gni_operand_place(node, i));
        if (gni_mentions(text, 'y')) reads |= GNI_READS_OUTPUT;
        for (int k = 0; k < node->n_in; k++)
            if (gni_mentions(text, gni_operand_place(node, k) == 0 ? 'a' : 'b')) reads |= 1u << k;
    }
    return reads;
}

// x op c and c op x. Powers and bounds have a simpler derivative than with two arrays.
static gn_array *gni_derivative_scalar(gni_node *node, gn_array *gy) {
    gni_op op = (gni_op)node->param[0];
    gn_array *x = node->in[0], *y = node->output;
    double c = node->real[0];
    bool first = node->param[1] == 1;
    if (op == GNI_OP_POW && !first)
        return c == 0.0 ? gn_zeros_like(gy) : gn_mul(gy, gn_mul_s(gn_pow_s(x, c - 1.0), c));
    if (op == GNI_OP_POW && c > 0.0) return gn_mul(gy, gn_mul_s(y, log(c)));
    if (op == GNI_OP_MAX) return gn_where(gn_ge_s(x, c), gy, gni_zero_like(gy));
    if (op == GNI_OP_MIN) return gn_where(gn_le_s(x, c), gy, gni_zero_like(gy));
    gn_array *konst = gn_scalar(gy->ctx, y->dtype, c);
    return first ? gni_derivative_second(op, gy, konst, x, y)
                 : gni_derivative_first(op, gy, x, konst, y);
}

static bool gni_derivatives_back(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gni_op op = (gni_op)node->param[0];
    gn_array **in = node->in, *y = node->output;
    GNI_UNUSED(g);
    if (op == GNI_OP_WHERE) {
        if (gni_wanted(node, 1)) gx[1] = gn_where(in[0], gy, gni_zero_like(gy));
        if (gni_wanted(node, 2)) gx[2] = gn_where(in[0], gni_zero_like(gy), gy);
    } else if (op == GNI_OP_FMA) {
        if (gni_wanted(node, 0)) gx[0] = gn_mul(gy, in[1]);
        if (gni_wanted(node, 1)) gx[1] = gn_mul(gy, in[0]);
        gx[2] = gy;
    } else if (op == GNI_OP_CAST) {
        gx[0] = gy;
    } else if (node->param[1] != 0) {
        gx[0] = gni_derivative_scalar(node, gy);
    } else if (gni_is_unary(op)) {
        gx[0] = gni_derivative_unary(op, gy, in[0], y);
    } else {
        if (gni_wanted(node, 0)) gx[0] = gni_derivative_first(op, gy, in[0], in[1], y);
        if (gni_wanted(node, 1)) gx[1] = gni_derivative_second(op, gy, in[0], in[1], y);
    }
    for (int i = 0; i < node->n_in; i++)
        if (gni_wanted(node, i)) gx[i] = gni_unbroadcast(gx[i], &in[i]->shape);
    return true;
}
static const gni_derivatives gni_derivatives_table = {gni_derivatives_back, gni_derivatives_read};
static void gni_derivatives_use(gn_context *g) { g->derivatives = &gni_derivatives_table; }
static bool gni_back_elementwise(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    return g->derivatives->back(g, node, gy, gx);
}
static uint32_t gni_elementwise_reads(const gni_node *node, bool (*wants)(const gni_node *node, int i)) {
    return gni_home(node->in[0])->derivatives->reads(node, wants);
}

static bool gni_back_copy(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    GNI_UNUSED(node);
    gx[0] = gy;
    return true;
}

// ---- reductions: param[0] the axes as bits, param[1] whether they were kept as size 1

// A result of the reduction in the shape that it has with the axes kept.
static gn_array *gni_with_axes(const gni_node *node, gn_array *r) {
    gn_shape s = node->in[0]->shape;
    for (int i = 0; i < s.rank; i++)
        if (node->param[0] >> i & 1) s.dim[i] = 1;
    return r == NULL || gni_same_shape(&r->shape, &s) ? r : gn_reshape(r, s);
}

static gn_axes gni_kept_axes(const gni_node *node) {
    return GN_KEEP(gni_axes_of((uint32_t)node->param[0]));
}

// gy by `by` for all that was summed up. The gradient of a loss is a constant, and stays one.
static bool gni_back_spread(gn_context *g, gni_node *node, gn_array *gy, double by, gn_array **gx) {
    const gn_shape *s = &node->in[0]->shape;
    if (gni_is_const(gy)) gx[0] = gni_adopt(g, gni_const(g, node->name, gy->dtype, s, gy->expr->konst[0] / by));
    else gx[0] = gn_broadcast_to(gni_with_axes(node, by == 1.0 ? gy : gn_div_s(gy, by)), *s);
    return true;
}

static bool gni_back_sum(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    return gni_back_spread(g, node, gy, 1.0, gx);
}

static bool gni_back_mean(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    int64_t all = gni_elements(&node->in[0]->shape), kept = gni_elements(&node->output->shape);
    return gni_back_spread(g, node, gy, kept > 0 ? (double)all / (double)kept : 1.0, gx);
}

// x moved back by `by` along the axis, ones in front.
static gn_array *gni_shifted(gn_array *x, int axis, int64_t by) {
    gn_array *part[2];
    gn_shape s = x->shape;
    s.dim[axis] = by;
    part[0] = gn_ones(x->ctx, x->dtype, s);
    part[1] = gn_slice(x, axis, 0, x->shape.dim[axis] - by, 1);
    return gn_concat(part, 2, axis);
}

// Element i is the product of those before it, by doubling the span.
static gn_array *gni_products_before(gn_array *x, int axis) {
    if (x == NULL) return NULL;
    gn_array *p = gni_shifted(x, axis, 1);
    for (int64_t span = 1; p != NULL && span < x->shape.dim[axis]; span *= 2)
        p = gn_mul(p, gni_shifted(p, axis, span));
    return p;
}

// Exact for products with zeros, and differentiable any number of times.
static gn_array *gni_products_of_others(const gni_node *node) {
    gn_array *x = node->in[0];
    int order[GN_MAX_RANK], back[GN_MAX_RANK], rank = x->shape.rank, n = 0;
    gn_shape moved_shape, flat = gn_shape_from(0, NULL);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < rank; i++)
            if ((node->param[0] >> i & 1) == pass) order[n++] = i;
    int64_t reduced = 1;
    for (int i = 0; i < rank; i++) {
        back[order[i]] = i;
        if (node->param[0] >> order[i] & 1)
            reduced *= x->shape.dim[order[i]];
        else
            flat.dim[flat.rank++] = x->shape.dim[order[i]];
    }
    flat.dim[flat.rank++] = reduced;
    gn_array *moved = gn_permute_axes(x, order, rank);
    if (moved == NULL) return NULL;
    moved_shape = moved->shape;
    gn_array *rows = gn_reshape(moved, flat);
    if (rows == NULL) return NULL;
    int last = flat.rank - 1;
    gn_array *before = gni_products_before(rows, last);
    gn_array *after = gni_products_before(gn_flip(rows, last), last);
    gn_array *others = gn_mul(before, gn_flip(after, last));
    return gn_permute_axes(gn_reshape(others, moved_shape), back, rank);
}

// The same by division, good for one differentiation: rows with one zero have a product of the others
// only there, rows with more have none. Of no number there is no multiple.
static gn_array *gni_quotients(const gni_node *node) {
    gn_array *x = node->in[0];
    gn_array *zero = gn_eq_s(x, 0.0);
    gn_array *zeros = gn_sum(gn_cast(zero, GN_F32), gni_kept_axes(node));
    gn_array *rest = gn_where(zero, gn_scalar(x->ctx, x->dtype, 1.0), x);
    gn_array *product = gn_prod(rest, gni_kept_axes(node));
    gn_array *odd = gn_cast(gn_logical_not(gn_isfinite(x)), GN_F32);
    odd = gn_gt(gn_sum(odd, gni_kept_axes(node)), odd); // among the others
    gn_array *none = gn_where(odd, gn_scalar(x->ctx, x->dtype, GNI_NAN), gni_zero_like(x));
    gn_array *at_zero = gn_where(gn_le_s(zeros, 1.0), product, none);
    gn_array *elsewhere = gn_where(gn_eq_s(zeros, 0.0), gn_div(product, rest), none);
    return gn_where(zero, at_zero, elsewhere);
}

static bool gni_back_prod(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *others = NULL;
    if (gni_elements(&node->in[0]->shape) == 0)
        others = gn_zeros_like(node->in[0]);
    else
        others = g->no_grad > 0 ? gni_quotients(node) : gni_products_of_others(node);
    gx[0] = gn_mul(gni_with_axes(node, gy), others);
    return true;
}

// Elements that share the extreme value share the gradient.
static bool gni_back_minmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gn_array *hit = gn_eq(node->in[0], gni_with_axes(node, node->output));
    hit = gn_cast(hit, gy->dtype == GN_F64 ? GN_F64 : GN_F32); // counts beyond 2048 are no float16
    gx[0] = gn_mul(gn_div(gni_with_axes(node, gy), gn_sum(hit, gni_kept_axes(node))), hit);
    return true;
}

// in: x, and what was taken off it.
static bool gni_back_log_sum(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_mul(gy, gn_exp(gn_sub(gn_sub(node->in[0], node->in[1]), node->output)));
    return true;
}

// ---- softmax and its logarithm: param[0] is the axis

// The gradient of a softmax or its logarithm over the last axis, in one pass, where it is not differentiated. NULL: not
// done.
static gn_array *gni_back_softmax_rows(gn_context *g, const gni_node *node, gn_array *gy, int kind) {
    gni_rows j;
    const gn_array *y = node->output;
    if (g->no_grad == 0 || node->param[0] != y->shape.rank - 1 || gy->dtype != y->dtype) return NULL;
    memset(&j, 0, sizeof j);
    j.kind = kind;
    j.n = y->shape.dim[y->shape.rank - 1];
    j.rows = j.n > 0 ? gni_elements(&y->shape) / j.n : 0;
    return gni_rows_run(g, &j, node->output, gy, y->dtype, y->shape);
}

static bool gni_back_softmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_array *y = node->output;
    gx[0] = gni_back_softmax_rows(g, node, gy, GNI_ROWS_BACK_SOFTMAX);
    if (gx[0] != NULL || g->call_failed) return gx[0] != NULL;
    gn_array *dot = gn_sum(gn_mul(gy, y), GN_KEEP((gn_axes)node->param[0]));
    gx[0] = gn_mul(y, gn_sub(gy, dot));
    return true;
}

static bool gni_back_log_softmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gx[0] = gni_back_softmax_rows(g, node, gy, GNI_ROWS_BACK_LOG_SOFTMAX);
    if (gx[0] != NULL || g->call_failed) return gx[0] != NULL;
    gn_array *total = gn_sum(gy, GN_KEEP((gn_axes)node->param[0]));
    gx[0] = gn_sub(gy, gn_mul(gn_exp(node->output), total));
    return true;
}

// ---- matmul

// `a` with an axis of size 1 inserted before `axis`.
static gn_array *gni_with_axis(gn_array *a, int axis, bool insert) {
    return insert ? gn_expand_dims(a, axis) : a;
}

// (..., m, n) as (rows, n).
static gn_array *gni_as_rows(gn_array *a) {
    if (a == NULL) return NULL;
    gn_shape s = gn_shape_from(2, a->shape.dim);
    s.dim[1] = a->shape.dim[a->shape.rank - 1];
    s.dim[0] = 1;
    for (int i = 0; i < a->shape.rank - 1; i++) s.dim[0] *= a->shape.dim[i];
    return gn_reshape(a, s);
}

static gn_array *gni_matmul_grad_b(gn_array *a, gn_array *b, gn_array *gy) {
    if (a == NULL || b == NULL) return NULL;
    if (b->shape.rank == 2 && a->shape.rank > 2)
        return gn_matmul(gn_transpose(gni_as_rows(a)), gni_as_rows(gy));
    return gni_unbroadcast(gn_matmul(gni_transposed(a), gy), &b->shape);
}

// 1-d operands take part as a row and as a column.
static bool gni_back_matmul(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    bool row = node->in[0]->shape.rank == 1, column = node->in[1]->shape.rank == 1;
    gn_array *a = gni_with_axis(node->in[0], 0, row), *b = gni_with_axis(node->in[1], 1, column);
    if (column) gy = gn_expand_dims(gy, -1);
    if (row) gy = gn_expand_dims(gy, -2);
    if (a == NULL || b == NULL || gy == NULL) return false;
    if (gni_wanted(node, 0)) {
        gx[0] = gni_unbroadcast(gn_matmul(gy, gni_transposed(b)), &a->shape);
        if (row) gx[0] = gn_reshape(gx[0], node->in[0]->shape);
    }
    if (gni_wanted(node, 1)) {
        gx[1] = gni_matmul_grad_b(a, b, gy);
        if (column) gx[1] = gn_reshape(gx[1], node->in[1]->shape);
    }
    return true;
}

// x w + b. The gradients of w and b come of the same pass over gy.
static bool gni_back_linear(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    if (g->no_grad > 0 && gni_wanted(node, 1) && gni_wanted(node, 2) &&
        gni_elements(&gy->shape) > 0 && node->in[1]->shape.dim[0] > 0) {
        bool flat = node->in[0]->shape.rank == 1; // one row
        gn_array *x = flat ? gn_expand_dims(node->in[0], 0) : gni_as_rows(node->in[0]), *w, *b;
        gn_array *rows = flat ? gn_expand_dims(gy, 0) : gni_as_rows(gy), *transposed = gn_transpose(x);
        if (rows == NULL || transposed == NULL) return false;
        if (!gni_product_and_sums(g, "gn_linear", transposed, rows, &w, &b)) return false;
        gx[1] = gni_adopt(g, w);
        gx[2] = gni_adopt(g, b);
        if (gni_wanted(node, 0)) gx[0] = gn_matmul(gy, gn_transpose(node->in[1]));
        return true;
    }
    if (gni_wanted(node, 2)) gx[2] = gni_unbroadcast(gy, &node->in[2]->shape);
    return gni_back_matmul(g, node, gy, gx);
}

// ---- views

static bool gni_back_reshape(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_reshape(gy, node->shape);
    return true;
}

static bool gni_back_permute(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    int back[GN_MAX_RANK], rank = gy->shape.rank;
    for (int i = 0; i < rank; i++) back[node->param[i]] = i;
    gx[0] = gn_permute_axes(gy, back, rank);
    return true;
}

static bool gni_back_broadcast(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gni_unbroadcast(gy, &node->shape);
    return true;
}

static bool gni_back_flip(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    gx[0] = gn_flip(gy, gni_axes_of((uint32_t)node->param[0]));
    return true;
}

// The opposite of a slice is its scatter, and the other way round. param: axis, start, step; the slice's
// length is that of the scattered array on the axis.
static bool gni_back_scatter_slice(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    int axis = (int)node->param[0];
    int64_t start = node->param[1], step = node->param[2];
    int64_t stop = start + step * node->in[0]->shape.dim[axis];
    gx[0] = gn_slice(gy, axis, start, stop < 0 ? GN_NONE : stop, step);
    return true;
}

// Zeros of shape `s` with x at [start::step] of the axis.
static gn_array *gni_scatter_slice(gn_context *g, gn_array *x, const gn_shape *s, int axis,
                                   int64_t start, int64_t step) {
    if (gni_begin("gn_slice", &x, 1) == NULL) return NULL;
    gn_array *y = gni_make_full(g, "gn_slice", x->dtype, s, 0.0);
    int64_t stride[GN_MAX_RANK];
    bool ok = y != NULL && gni_materialize(g, y);
    if (ok && gni_elements(&x->shape) > 0) {
        memcpy(stride, y->stride, sizeof stride);
        stride[axis] *= step;
        ok = gni_copy_into(g, y->buf, y->dtype, start * y->stride[axis], stride, x);
    }
    gni_note(ok ? gni_record(g, y, "gn_slice", gni_back_scatter_slice, &x, 1) : NULL, axis, start, step);
    return gni_end(g, y);
}

static bool gni_back_slice(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gx[0] =
        gni_scatter_slice(g, gy, &node->shape, (int)node->param[0], node->param[1], node->param[2]);
    return true;
}

static bool gni_back_concat(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    int axis = (int)node->param[0];
    int64_t from = 0;
    for (int i = 0; i < node->n_in; i++) {
        int64_t to = from + node->in[i]->shape.dim[axis];
        if (gni_wanted(node, i)) gx[i] = gn_slice(gy, axis, from, to, 1);
        from = to;
    }
    return true;
}

static bool gni_back_stack(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    int axis = (int)node->param[0];
    for (int i = 0; i < node->n_in; i++)
        if (gni_wanted(node, i))
            gx[i] = gn_reshape(gn_slice(gy, axis, i, i + 1, 1), node->in[i]->shape);
    return true;
}

// ---- take and its opposite

static bool gni_back_take(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    const gn_shape *s = &node->in[0]->shape;
    if (gni_is_complex(gy->dtype)) {
        gn_array *parts[2];
        for (int i = 0; i < 2; i++) {
            gn_array *part = i == 0 ? gn_real(gy) : gn_imag(gy);
            parts[i] = part == NULL ? NULL
                                    : gni_scattered(g, node->name, GNI_SCATTER_ADD, gn_zeros(g, part->dtype, *s),
                                                    node->in[1], part, (int)node->param[0], node->param[1] != 0);
        }
        gx[0] = gn_complex(parts[0], parts[1]);
        return true;
    }
    if (gy->dtype != GN_F64 && gy->dtype != GN_F32)
        gy = gn_cast(gy, GN_F32); // halves are summed wider
    if (node->param[2] != 0 && g->gpu != NULL && g->no_grad > 0 && gy != NULL && gy->dtype == GN_F32) {
        // What a place gets is one number: its bits are added to none.
        gn_array *bits = gni_scattered(g, node->name, GNI_SCATTER_ADD, gn_zeros(g, GN_I32, *s), node->in[1],
                                       gni_bits_as(g, node->name, gy, GN_I32), (int)node->param[0], node->param[1] != 0);
        gx[0] = gni_bits_as(g, node->name, bits, GN_F32);
        return gx[0] != NULL;
    }
    if (gy != NULL)
        gx[0] = gni_scattered(g, node->name, GNI_SCATTER_ADD, gn_zeros(g, gy->dtype, *s), node->in[1], gy,
                              (int)node->param[0], node->param[1] != 0);
    return true;
}

// ---- what each of them reads

static uint32_t gni_back_reads(const gni_node *node) {
    gni_backward_fn back = node->backward;
    if (back == gni_back_elementwise) return gni_elementwise_reads(node, gni_wanted);
    if (back == gni_back_matmul || back == gni_back_linear)
        return (gni_wanted(node, 0) ? 2u : 0u) | (gni_wanted(node, 1) ? 1u : 0u);
    if (back == gni_back_sum || back == gni_back_mean || back == gni_back_reshape ||
        back == gni_back_permute || back == gni_back_broadcast || back == gni_back_slice ||
        back == gni_back_scatter_slice || back == gni_back_flip || back == gni_back_concat ||
        back == gni_back_stack || back == gni_back_copy || back == gni_back_fft ||
        back == gni_back_real || back == gni_back_complex)
        return 0;
    if (back == gni_back_diagonal || back == gni_back_scatter_diagonal || back == gni_back_pad || back == gni_back_assign ||
        back == gni_back_flat_view || back == gni_back_flat_put)
        return 0;
#ifndef GPUNUM_NO_LINALG
    if (back == gni_back_solve || back == gni_back_triangular || back == gni_back_det) return 1u | GNI_READS_OUTPUT;
    if (back == gni_back_complex_det && node->param[0] != 2) return 1u | GNI_READS_OUTPUT;
    if ((back == gni_back_eigh || back == gni_back_svd) && node->param[0] != 0)
        return 1u | GNI_READS_OUTPUT;
    if (back == gni_back_inv || back == gni_back_cholesky) return GNI_READS_OUTPUT;
#endif
    if (back == gni_back_cumsum) return 0;
    if (back == gni_back_take) return 2;
    if (back == gni_back_scatter) return node->param[2] == GNI_SCATTER_ADD ? 4u : 7u | GNI_READS_OUTPUT;
    if (back == gni_back_softmax || back == gni_back_log_softmax) return GNI_READS_OUTPUT;
    if (back == gni_back_complex_exp || back == gni_back_complex_sqrt || back == gni_back_complex_tanh)
        return GNI_READS_OUTPUT;
    if (back == gni_back_minmax || back == gni_back_log_sum) return 3u | GNI_READS_OUTPUT;
    return node->reads_output ? ~0u : ~GNI_READS_OUTPUT; // all operands
}
