// >>sequences
// Layers over sequences: rotary embedding, recurrent networks. Nothing here is used elsewhere.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../ops/random_ops.h"
#include "../grad/gradients.h"
#endif

// ---- rotary embedding (Su et al., 2021, arXiv:2104.09864)

static gn_array *gni_rotated(gn_context *g, gn_array *x, gn_array *c, gn_array *s, int64_t dims, bool interleaved);

// in: x, cosines, sines. param: dims, interleaved. Back is the rotation the other way.
static bool gni_back_rope(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gx[0] = gni_rotated(g, gy, node->in[1], gn_neg(node->in[2]), node->param[0], node->param[1] != 0);
    return true;
}

// Pairs of x's first `dims` columns as an axis of two, and that axis turned round. Sines have the signs of both already.
static gn_array *gni_rotated(gn_context *g, gn_array *x, gn_array *c, gn_array *s, int64_t dims, bool interleaved) {
    gn_array *in[3] = {x, c, s};
    if (x == NULL || c == NULL || s == NULL) return NULL;
    const int rank = x->shape.rank;
    const int64_t d = x->shape.dim[rank - 1];
    g->no_grad++; // recorded as one op
    gn_array *part = dims < d ? gn_slice(x, -1, 0, dims, 1) : x, *y[2];
    gn_shape pairs = part != NULL ? part->shape : x->shape;
    const gn_shape flat = pairs;
    pairs.rank = rank + 1;
    pairs.dim[rank - 1] = interleaved ? dims / 2 : 2;
    pairs.dim[rank] = interleaved ? 2 : dims / 2;
    part = gn_reshape(part, pairs);
    gn_array *turned = gni_as(gn_flip(part, interleaved ? -1 : -2), c->dtype);
    y[0] = gn_add(gn_mul(gni_as(part, c->dtype), c), gn_mul(turned, s));
    y[0] = gn_reshape(gn_cast(y[0], x->dtype), flat);
    if (dims < d) {
        y[1] = gn_slice(x, -1, dims, d, 1);
        y[0] = gn_concat(y, 2, -1);
    }
    g->no_grad--;
    gni_note(gni_record(g, y[0], "gn_rope", gni_back_rope, in, 3), dims, interleaved, 0);
    return y[0];
}

// Turns of a circle by n positions, n below 4096, without their whole part: of f a multiple of 1/4096, whose product is
// exact, and the rest.
static gn_array *gni_rope_turns(gn_array *n, gn_array *f, gn_array *rest) {
    gn_array *p = gn_mul(n, f);
    return gn_add(gn_sub(p, gn_round(p)), gn_mul(n, rest));
}

// Cosines and signed sines over (..., n) and the axes of pairs, made where x is.
static bool gni_rope_angles(gn_context *g, gn_array *x, gn_array *pos, const gn_rope_options *o, int64_t dims, gn_array **c,
                            gn_array **s) {
    const gn_dtype t = x->dtype == GN_F64 ? GN_F64 : GN_F32;
    const int64_t h = dims / 2;
    const size_t bytes = sizeof(double) * (size_t)(4 * h + 2);
    double *f = (double *)gni_alloc(g, bytes);
    if (f == NULL) return gni_fail_memory(g, "gn_rope", bytes);
    for (int64_t i = 0; i < h; i++)
        for (int k = 0; k < 4; k += 2) { // of one position, and of 4096
            double turn = pow(o->base > 0.0 ? o->base : 10000.0, -2.0 * (double)i / (double)dims) / (4.0 * GNI_PI_2);
            if (k > 0) turn = fmod(turn * 4096.0, 1.0);
            f[k * h + i] = floor(turn * 4096.0) / 4096.0;
            f[(k + 1) * h + i] = turn - f[k * h + i];
        }
    f[4 * h] = -1.0;
    f[4 * h + 1] = 1.0;
    gn_array *all = gn_eval(gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(4 * h + 2), f), t)), *of[4];
    gni_free(g, f);
    if (all == NULL || !gni_materialize(g, x)) return false;
    if (gni_stays_on_gpu(g, x) && gn_to(all, GN_DEVICE_GPU) == NULL) return false;
    const gn_axes axes = o->interleaved ? GN_AXES(-1) : GN_AXES(-2);
    for (int i = 0; i < 4; i++) of[i] = gn_expand_dims(gn_slice(all, 0, i * h, (i + 1) * h, 1), axes);
    gn_array *signs = gn_slice(all, 0, 4 * h, 4 * h + 2, 1);
    if (!o->interleaved) signs = gn_expand_dims(signs, 1);
    pos = gn_cast(gn_expand_dims(pos, GN_AXES(-1, -2)), t);
    gn_array *high = gn_floor(gn_mul_s(pos, 1.0 / 4096.0)), *low = gn_sub(pos, gn_mul_s(high, 4096.0));
    gn_array *turns =
        gn_mul_s(gn_add(gni_rope_turns(low, of[0], of[1]), gni_rope_turns(high, of[2], of[3])), 4.0 * GNI_PI_2);
    *c = gn_eval(gn_cos(turns));
    *s = gn_eval(gn_mul(gn_sin(turns), signs));
    return !g->call_failed;
}

GPUNUM_API gn_array *gn_rope(gn_array *x, gn_array *positions, const gn_rope_options *options) {
    gn_rope_options o;
    gn_array *in[2], *c, *s, *y = NULL;
    char tx[200], tp[200];
    memset(&o, 0, sizeof o);
    if (options != NULL) o = *options;
    in[0] = x;
    in[1] = positions;
    gn_context *g = gni_begin_scope("gn_rope", in, positions != NULL ? 2 : 1);
    if (g == NULL) return NULL;
    const int rank = x->shape.rank;
    const int64_t d = rank > 0 ? x->shape.dim[rank - 1] : 0, dims = o.dims > 0 ? o.dims : d;
    gn_shape lead = x->shape, joined;
    if (rank > 0) lead.rank--;
    if (rank < 2 || rank >= GN_MAX_RANK)
        gni_fail(g, GN_ERROR_SHAPE, "gn_rope: x %s is not (..., n, d)", gni_shape_text(tx, sizeof tx, &x->shape));
    else if (!gni_is_float(x->dtype) || (positions != NULL && !gni_is_integer(positions->dtype)))
        gni_fail(g, GN_ERROR_DTYPE, "gn_rope: x is %s and positions are %s, not a float and integers",
                 gn_dtype_name(x->dtype), positions != NULL ? gn_dtype_name(positions->dtype) : "none");
    else if (o.dims < 0 || dims > d || dims % 2 != 0 || !(o.base >= 0.0 && o.base < GNI_INF))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_rope: %lld of %lld columns, base %g", (long long)dims, (long long)d, o.base);
    else if (positions != NULL && (!gni_broadcast(&positions->shape, &lead, &joined) || !gni_same_shape(&joined, &lead)))
        gni_fail(g, GN_ERROR_SHAPE, "gn_rope: positions %s do not broadcast to %s",
                 gni_shape_text(tp, sizeof tp, &positions->shape), gni_shape_text(tx, sizeof tx, &lead));
    else if (gni_elements(&x->shape) == 0 || dims == 0)
        y = gn_cast(x, x->dtype);
    else {
        g->no_grad++;
        gn_array *pos = positions != NULL ? positions : gn_arange(g, GN_I32, 0.0, (double)x->shape.dim[rank - 2], 1.0);
        const bool ok = gni_rope_angles(g, x, pos, &o, dims, &c, &s);
        g->no_grad--;
        if (ok) y = gni_rotated(g, x, c, s, dims, o.interleaved);
    }
    return gni_end_scope(g, y);
}

// ---- recurrent networks: Hochreiter and Schmidhuber (1997) with gates as in PyTorch, and Cho et al. (2014). One direction
// of a layer is one op: the input's part of all gates is one product, and so are the gradients of the weights.

// LSTM: gates i, f, g, o (batch, 4 h); GRU: r, z, n (batch, 3 h).
typedef struct gni_recur_in { // the operands of the record
    // (n, batch, in), (gates, in), (gates, h), (gates) twice or NULL, (batch, h) twice.
    gn_array *x, *w, *u, *b, *c, *h0, *c0;
    gn_array *gates; // (n, batch, gates), an LSTM's before their functions
    gn_array *more;  // LSTM: states c (n, batch, h); of a GRU the gradient makes the state's part of n, of that shape
} gni_recur_in;
enum { GNI_RECUR_ARRAYS = 9 };
typedef struct gni_recur {
    gn_context *g;
    bool lstm, reversed;
    bool keep; // gates and more, for a gradient
    gn_dtype half; // what operands of products on a GPU may be rounded to, or float32
    int64_t n, h;
    gni_recur_in in;
} gni_recur;

static gn_array *gni_recur_at(gn_array *a, int64_t t) { return gn_squeeze(gn_slice(a, 0, t, t + 1, 1), 0); }
static gn_array *gni_recur_gate(const gni_recur *r, gn_array *a, int i) {
    return gn_slice(a, -1, i * r->h, (i + 1) * r->h, 1);
}
static gn_array *gni_recur_plus(gn_array *a, gn_array *b) { return b != NULL ? gn_add(a, b) : a; }

// An operand of a product as halves, where `half` asks for them; so that one of several products becomes halves once.
static gn_array *gni_recur_half(const gni_recur *r, gn_array *a) {
    return r->half != GN_F32 ? gni_as(a, r->half) : a;
}

// a b of such operands, in float32.
static gn_array *gni_recur_product(const gni_recur *r, gn_array *a, gn_array *b) {
    if (a == NULL || b == NULL || a->dtype == r->in.x->dtype) return gn_matmul(a, b);
    return gni_adopt(r->g, gni_product_new(r->g, r->g->call, a, b, GN_F32));
}

// A matrix as halves in tiles of 16 by 16, one behind the other: rows, or weights by the state's units, what is summed over
// along a tile's rows; forward gates are side by side.
enum { GNI_TILES_ROWS, GNI_TILES_WEIGHTS, GNI_TILES_WEIGHTS_BACK };
static gn_array *gni_recur_tiles(const gni_recur *r, gn_array *a, int kind) {
    static const int order[3][5] = {{0, 2, 1, 3}, {1, 3, 0, 2, 4}, {2, 0, 3, 1}};
    const int64_t tiles = r->h / 16, more[4] = {0, a != NULL ? -a->shape.dim[0] & 15 : 0, 0, 0};
    a = gn_cast(a, r->half);
    if (kind == GNI_TILES_ROWS) a = gn_pad(a, more, 4, GN_PAD_CONSTANT, 0.0);
    if (kind == GNI_TILES_WEIGHTS) a = gn_reshape(a, GN_SHAPE(-1, tiles, 16, tiles, 16));
    else a = gn_reshape(a, GN_SHAPE(-1, 16, tiles, 16));
    return gn_copy(gn_permute_axes(a, order[kind], kind == GNI_TILES_WEIGHTS ? 5 : 4));
}

// Room for what all steps give, (n, batch, columns), or NULL where that is recorded, since no record sees a part written.
static gn_array *gni_recur_room(const gni_recur *r, int64_t n, int64_t columns) {
    const gn_shape s = GN_SHAPE(n, r->in.h0->shape.dim[0], columns);
    return r->g->no_grad > 0 ? gni_adopt(r->g, gni_array_empty(r->g, r->g->call, r->in.x->dtype, &s)) : NULL;
}

// Room for what is of the first state's shape.
static gn_array *gni_recur_first(const gni_recur *r) {
    return gni_adopt(r->g, gni_array_empty(r->g, r->g->call, r->in.x->dtype, &r->in.h0->shape));
}

// Computes `count` arrays, in one program if possible: a[i] in place `to[i]`, an array's part, or where that is NULL in
// memory of its own.
static void gni_recur_eval(const gni_recur *r, gn_array **a, gn_array **to, int count) {
    for (int i = 0; i < count; i++)
        if (a[i] == NULL) return; // after a failure
    gni_evaluate(r->g, a, to, count);
}

// Of step t the columns of gate i in `all`, or NULL.
static gn_array *gni_recur_part(const gni_recur *r, gn_array *all, int64_t t, int i) {
    return all != NULL ? gni_recur_gate(r, gni_recur_at(all, t), i) : NULL;
}

// The state behind step t, and what the gradient needs of the step. With room for all h, c or a GRU's gates they go there.
static gn_array *gni_recur_step(const gni_recur *r, int64_t t, gn_array *input, gn_array *h, gn_array **c, gn_array **kept,
                                gn_array *const all[3]) {
    gn_array *y[4], *to[4];
    gn_array *sum = gn_matmul(h, gn_transpose(r->in.u)), *from_x = gni_recur_at(input, t);
    if (r->lstm) {
        kept[0] = sum = gn_eval(gn_add(sum, from_x));
        gn_array *i = gn_sigmoid(gni_recur_gate(r, sum, 0)), *f = gn_sigmoid(gni_recur_gate(r, sum, 1));
        gn_array *g = gn_tanh(gni_recur_gate(r, sum, 2)), *o = gn_sigmoid(gni_recur_gate(r, sum, 3));
        kept[1] = *c = y[1] = gn_add(gn_mul(f, *c), gn_mul(i, g));
        y[0] = gn_mul(o, gn_tanh(*c));
        for (int k = 0; k < 2; k++) to[k] = gni_recur_part(r, all[k], t, 0);
        gni_recur_eval(r, y, to, 2);
        return y[0];
    }
    sum = gn_eval(gni_recur_plus(sum, r->in.c));
    y[1] = gn_sigmoid(gn_add(gni_recur_gate(r, from_x, 0), gni_recur_gate(r, sum, 0)));
    y[2] = gn_sigmoid(gn_add(gni_recur_gate(r, from_x, 1), gni_recur_gate(r, sum, 1)));
    y[3] = gn_tanh(gn_add(gni_recur_gate(r, from_x, 2), gn_mul(y[1], gni_recur_gate(r, sum, 2))));
    y[0] = gn_add(y[3], gn_mul(y[2], gn_sub(h, y[3])));
    to[0] = gni_recur_part(r, all[0], t, 0);
    for (int k = 1; k < 4; k++) to[k] = gni_recur_part(r, all[2], t, k - 1);
    gni_recur_eval(r, y, to, r->keep ? 4 : 1);
    kept[0] = r->keep && all[2] == NULL ? gn_concat(y + 1, 3, -1) : NULL;
    kept[1] = NULL;
    return y[0];
}

// Adds an operand of one job for all steps: false after a failure.
static bool gni_recur_operand(gn_context *g, gni_operand *o, gn_array *a) {
    if (a != NULL && gni_materialize(g, a) && (!gni_is_contiguous(a) || a->offset % 4 != 0)) a = gn_copy(a);
    if (a == NULL || !gni_materialize(g, a)) return false;
    memset(o, 0, sizeof *o);
    o->buf = a->buf;
    o->dtype = a->dtype;
    o->offset = a->offset;
    return true;
}

// One job on a GPU of what is in `in` and goes to `out`, of which the first is y. False: in other ways, if the call has not
// failed.
static bool gni_recur_whole(const gni_recur *r, bool back, gn_array *const *in, int n_in, gn_array *const *out, int n_out) {
    gn_context *g = r->g;
    GNI_ZEROED(gni_recurrence, job);
    if (GNI_CPU_ALONE || g->gpu == NULL || g->no_grad == 0 || r->in.x->dtype != GN_F32 || r->n < 2) return false;
    job.lstm = r->lstm;
    job.reversed = r->reversed;
    job.keep = r->keep;
    job.bias = r->in.c != NULL;
    job.back = back;
    job.n = r->n;
    job.h = r->h;
    job.batch = r->in.h0->shape.dim[0];
    job.half = r->half;
    // Before operands are copied for it.
    if (job.half != GN_F32 && !gni_backend_gpu()->supports(g, GNI_JOB_RECUR, &job)) job.half = GN_F32;
    if (job.half == GN_F32 && !gni_backend_gpu()->supports(g, GNI_JOB_RECUR, &job)) return false;
    const bool halves = job.half != GN_F32;
    for (int i = 0; i < n_in; i++) {
        gn_array *a = i == 1 && halves ? gni_recur_tiles(r, in[i], back ? GNI_TILES_WEIGHTS_BACK : GNI_TILES_WEIGHTS) : in[i];
        if (!gni_recur_operand(g, &job.in[i], a)) return false;
    }
    for (int i = 0; i < n_out; i++)
        if (!gni_recur_operand(g, &job.out[i], out[i])) return false;
    if (halves) {
        const gn_shape two = GN_SHAPE(2, (job.batch + 15) / 16 * 16, r->h * (!back ? 1 : r->lstm ? 4 : 3));
        if (!gni_recur_operand(g, &job.out[3], gni_adopt(g, gni_array_empty(g, g->call, r->half, &two)))) return false;
        if (!back && !gni_recur_operand(g, &job.in[5], gni_recur_tiles(r, r->in.h0, GNI_TILES_ROWS))) return false;
    }
    return gni_run_on_gpu(g, &gni_kind_recur, &job, out[0]);
}

// The states h of all steps; behind them an LSTM's last c. Leaves gates and more.
static gn_array *gni_recur_forward(gni_recur *r) {
    gn_context *g = r->g;
    gn_array *const all[3] = {gni_recur_room(r, r->n + (r->lstm ? 1 : 0), r->h),
                              r->lstm && r->keep ? gni_recur_room(r, r->n, r->h) : NULL,
                              !r->lstm && r->keep ? gni_recur_room(r, r->n, 3 * r->h) : NULL};
    gn_array *w = gn_transpose(gni_recur_half(r, r->in.w));
    gn_array *input = gni_recur_plus(gni_recur_product(r, gni_recur_half(r, r->in.x), w), r->in.b);
    if (r->lstm) input = gni_recur_plus(input, r->in.c);
    input = gn_eval(input);
    gn_array *const in[4] = {input, r->in.u, r->in.h0, r->lstm ? r->in.c0 : r->in.c != NULL ? r->in.c : r->in.u};
    gn_array *const out[3] = {all[0], r->keep ? all[2] != NULL ? all[2] : gni_recur_room(r, r->n, 4 * r->h) : NULL, all[1]};
    if (gni_recur_whole(r, false, in, 4, out, !r->keep ? 1 : r->lstm ? 3 : 2)) {
        r->in.gates = out[1];
        r->in.more = out[2];
        return all[0];
    }
    const size_t bytes = sizeof(gn_array *) * (size_t)(3 * r->n + 1);
    gn_array **h = (gn_array **)gni_calloc(g, bytes);
    if (h == NULL) {
        gni_fail_memory(g, g->call, bytes);
        return NULL;
    }
    gn_array **gates = h + r->n + 1, **more = gates + r->n, *state = r->in.h0, *c = r->in.c0;
    for (int64_t i = 0; i < r->n && !g->call_failed; i++) {
        const int64_t t = r->reversed ? r->n - 1 - i : i;
        gn_array *kept[2];
        gn_scope_begin(g);
        state = gni_recur_step(r, t, input, state, &c, kept, all);
        h[t] = gn_keep(state);
        gates[t] = r->keep && all[2] == NULL ? gn_keep(kept[0]) : NULL;
        more[t] = r->lstm ? gn_keep(kept[1]) : NULL;
        gn_scope_end(g);
    }
    gn_array *y = NULL;
    if (!g->call_failed) {
        h[r->n] = c;
        y = all[0] != NULL ? all[0] : gn_stack(h, (int)(r->n + (r->lstm ? 1 : 0)), 0);
        if (all[0] != NULL && r->lstm) {
            gn_array *last = gni_recur_at(y, r->n);
            if (last != NULL) gni_copy_into(g, last->buf, last->dtype, last->offset, last->stride, c);
        }
        r->in.gates = all[2] != NULL ? all[2] : r->keep ? gn_stack(gates, (int)r->n, 0) : NULL;
        r->in.more = all[1] != NULL ? all[1] : r->lstm && r->keep ? gn_stack(more, (int)r->n, 0) : NULL;
    }
    gni_free(g, h);
    return y;
}

// s (1 - s) and 1 - t t: the derivatives by what went into a gate.
static gn_array *gni_recur_sigmoid(gn_array *d, gn_array *s) { return gn_mul(d, gn_mul(s, gn_rsub_s(s, 1.0))); }
static gn_array *gni_recur_tanh(gn_array *d, gn_array *t) { return gn_mul(d, gn_rsub_s(gn_square(t), 1.0)); }

// From the derivative by h behind step t, and for an LSTM *dc by c, those by both gates' parts and by what was before, to
// which `more_dh` is added where there is one. `all`: room for the gates' parts, or NULL; a GRU's are by n, r, z and by the
// state's part of n there.
static gn_array *gni_recur_back(const gni_recur *r, int64_t t, gn_array *before, gn_array *dh, gn_array *more_dh,
                                gn_array **dc, gn_array **dx, gn_array **du, gn_array *all) {
    gn_array *y[4], *to[4] = {NULL, NULL, NULL, NULL};
    gn_array *gates = gni_recur_at(r->in.gates, t), *more = gni_recur_at(r->in.more, t), *d[4];
    if (r->lstm) {
        gn_array *i = gn_sigmoid(gni_recur_gate(r, gates, 0)), *f = gn_sigmoid(gni_recur_gate(r, gates, 1));
        gn_array *g = gn_tanh(gni_recur_gate(r, gates, 2)), *o = gn_sigmoid(gni_recur_gate(r, gates, 3)),
                 *tc = gn_tanh(more);
        gn_array *c = gn_add(*dc, gni_recur_tanh(gn_mul(dh, o), tc));
        y[0] = c;
        y[1] = *dc = gn_mul(c, f);
        y[2] = d[3] = gni_recur_sigmoid(gn_mul(dh, tc), o);
        to[2] = gni_recur_part(r, all, t, 3);
        gni_recur_eval(r, y, to, 3);
        d[0] = gni_recur_sigmoid(gn_mul(c, g), i);
        d[1] = gni_recur_sigmoid(gn_mul(c, before), f);
        d[2] = gni_recur_tanh(gn_mul(c, i), g);
        if (all != NULL) { // where d[3] is already
            for (int k = 0; k < 3; k++) to[k] = gni_recur_part(r, all, t, k);
            gni_recur_eval(r, d, to, 3);
            *dx = *du = gni_recur_at(all, t);
        } else {
            *dx = *du = gn_concat(d, 4, -1);
        }
        return gni_recur_plus(gn_matmul(*du, r->in.u), more_dh);
    }
    gn_array *reset = gni_recur_gate(r, gates, 0), *z = gni_recur_gate(r, gates, 1), *n = gni_recur_gate(r, gates, 2);
    y[0] = gni_recur_tanh(gn_mul(dh, gn_rsub_s(z, 1.0)), n);
    y[1] = gni_recur_sigmoid(gn_mul(y[0], more), reset);
    y[2] = gni_recur_sigmoid(gn_mul(dh, gn_sub(before, n)), z);
    y[3] = gn_mul(y[0], reset);
    for (int k = 0; k < 4; k++) to[k] = gni_recur_part(r, all, t, k);
    gni_recur_eval(r, y, to, 4);
    *dx = all != NULL ? NULL : gn_concat(y, 3, -1);
    *du = all != NULL ? gn_slice(gni_recur_at(all, t), -1, r->h, 4 * r->h, 1) : gn_concat(y + 1, 3, -1);
    return gn_add(gni_recur_plus(gn_matmul(*du, r->in.u), more_dh), gn_mul(dh, z));
}

// The states before all steps.
static gn_array *gni_recur_before(const gni_recur *r, gn_array *y) {
    gn_array *part[2];
    part[!r->reversed] = gn_slice(y, 0, r->reversed ? 1 : 0, r->reversed ? r->n : r->n - 1, 1);
    part[r->reversed] = gn_expand_dims(r->in.h0, 0);
    return gn_concat(part, 2, 0);
}

// Gradients of w, u, b and c by those of all steps' gates: one product or sum each. A GRU's are by n, r, z in dx.
static void gni_recur_weights(const gni_recur *r, gni_node *node, gn_array *dx, gn_array *du, gn_array *before,
                              gn_array **gx) {
    gn_array *from = gni_as_rows(dx), *of = gni_as_rows(du);
    gn_array *x = gni_recur_half(r, dx), *u = du == dx ? x : gni_recur_half(r, du);
    const int64_t turn = r->lstm ? 0 : r->h;
    if (gni_wanted(node, 0)) {
        gn_array *w = turn > 0 ? gn_roll(r->in.w, turn, 0) : r->in.w;
        gx[0] = gni_recur_product(r, x, gni_recur_half(r, w));
    }
    x = gn_transpose(gni_as_rows(x)), u = gn_transpose(gni_as_rows(u));
    if (gni_wanted(node, 1)) {
        gx[1] = gni_recur_product(r, x, gni_as_rows(gni_recur_half(r, r->in.x)));
        if (turn > 0) gx[1] = gn_roll(gx[1], -turn, 0);
    }
    if (gni_wanted(node, 2)) gx[2] = gni_recur_product(r, u, gni_as_rows(gni_recur_half(r, before)));
    if (r->in.b != NULL && gni_wanted(node, 3)) gx[3] = turn > 0 ? gn_roll(gn_sum(from, 0), -turn, 0) : gn_sum(from, 0);
    if (r->in.c != NULL && gni_wanted(node, 4)) gx[4] = gn_sum(of, 0);
}

// in: the arrays of gni_recur. param: reversed, lstm.
static bool gni_back_recurrent(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_ZEROED(gni_recur, r);
    r.g = g;
    r.reversed = node->param[0] != 0;
    r.lstm = node->param[1] != 0;
    r.half = g->no_grad > 0 ? (gn_dtype)node->param[2] : GN_F32; // what is recorded is in float32
    memcpy(&r.in, node->in, sizeof r.in);
    r.n = r.in.x->shape.dim[0];
    r.h = r.in.u->shape.dim[1];
    gn_array *y = node->output, *dh = NULL, *dc = r.lstm ? gni_recur_at(gy, r.n) : NULL;
    r.keep = true;
    if (g->no_grad == 0) y = gni_recur_forward(&r); // once more, recorded
    gn_array *room = gni_recur_room(&r, r.n, 4 * r.h), *states = NULL;
    if (!r.lstm || gni_wanted(node, 2)) states = gni_recur_before(&r, y);
    if (!r.lstm) {
        gn_array *of_n = gn_transpose(gn_slice(r.in.u, 0, 2 * r.h, 3 * r.h, 1));
        r.in.more = gni_recur_plus(gn_matmul(states, of_n), r.in.c != NULL ? gni_recur_gate(&r, r.in.c, 2) : NULL);
        r.in.more = gn_eval(r.in.more);
    }
    const size_t bytes = 2 * sizeof(gn_array *) * (size_t)r.n;
    gn_array **dx = (gn_array **)gni_calloc(g, bytes), **du = dx + r.n;
    if (dx == NULL) gni_fail_memory(g, node->name, bytes);
    gn_array *const in[5] = {gy, r.in.u, r.in.gates, r.lstm ? r.in.more : states, r.lstm ? r.in.c0 : r.in.more};
    gn_array *const out[3] = {room, gni_recur_first(&r), gni_recur_first(&r)};
    const bool whole = gni_recur_whole(&r, true, in, 5, out, 3);
    if (whole) {
        dc = out[1];
        dh = out[2];
    }
    for (int64_t i = 0; i < r.n && !g->call_failed && !whole; i++) {
        const int64_t t = r.reversed ? i : r.n - 1 - i, last = r.reversed ? t + 1 : t - 1;
        const bool first = last < 0 || last >= r.n;
        gn_scope_begin(g);
        gn_array *before = !r.lstm ? gni_recur_at(states, t) : first ? r.in.c0 : gni_recur_at(r.in.more, last);
        if (dh == NULL) dh = gni_recur_at(gy, t);
        dh = gn_eval(gni_recur_back(&r, t, before, dh, first ? NULL : gni_recur_at(gy, last), &dc, &dx[t], &du[t], room));
        gn_keep(dh);
        if (r.lstm) gn_keep(dc);
        if (room == NULL) gn_keep(dx[t]);
        if (room == NULL && !r.lstm) gn_keep(du[t]);
        gn_scope_end(g);
    }
    const bool ok = !g->call_failed;
    if (ok) {
        const int64_t h = r.lstm ? 0 : r.h;
        gn_array *x_part = room == NULL ? gn_stack(dx, (int)r.n, 0) : gn_slice(room, -1, 0, 4 * r.h - h, 1);
        gn_array *u_part = r.lstm ? x_part : room == NULL ? gn_stack(du, (int)r.n, 0) : gn_slice(room, -1, h, 4 * r.h, 1);
        gni_recur_weights(&r, node, x_part, u_part, states, gx);
        gx[5] = dh;
        if (r.lstm) gx[6] = dc;
    }
    gni_free(g, dx);
    return ok;
}

// One direction of one layer: (n, batch, h), and behind it an LSTM's last c.
static gn_array *gni_recur_layer(gni_recur *r, const char *fn) {
    gn_context *g = r->g;
    gn_array *in[GNI_RECUR_ARRAYS];
    memcpy(in, &r->in, sizeof in);
    r->keep = gni_tracks(g, in, GNI_RECUR_ARRAYS);
    g->no_grad++; // recorded as one op
    gn_array *y = gni_recur_forward(r);
    g->no_grad--;
    memcpy(in, &r->in, sizeof in);
    gni_node *node = y != NULL ? gni_record(g, y, fn, gni_back_recurrent, in, GNI_RECUR_ARRAYS) : NULL;
    if (node != NULL) {
        node->param[0] = r->reversed;
        node->param[1] = r->lstm;
        node->param[2] = r->half;
        node->reads_output = true;
    }
    return y;
}

// What gn_lstm and gn_gru are given.
typedef struct gni_recurrent {
    gn_context *g;
    const char *fn;
    bool lstm;
    gn_rnn_options o;
    int layers, ways, each; // directions, and weights of one of them
    int64_t batch, n, h;
    gn_dtype half, result; // what operands are rounded to, or float32
    gn_array *const *weights;
} gni_recurrent;

static bool gni_recurrent_is(gni_recurrent *r, const char *what, int i, const gn_array *a, gn_dtype t, gn_shape want) {
    char ta[200], tw[200], name[40];
    if (a->dtype == t && gni_same_shape(&a->shape, &want)) return true;
    snprintf(name, sizeof name, i > 0 ? "%s %d" : "%s", what, i);
    return gni_fail(r->g, a->dtype != t ? GN_ERROR_DTYPE : GN_ERROR_SHAPE, "%s: %s is %s %s, not %s %s", r->fn, name,
                    gn_dtype_name(a->dtype), gni_shape_text(ta, sizeof ta, &a->shape), gn_dtype_name(t),
                    gni_shape_text(tw, sizeof tw, &want));
}

static bool gni_recurrent_ok(gni_recurrent *r, gn_array *x, int count, gn_array *h0, gn_array *c0) {
    gn_context *g = r->g;
    char tx[200];
    const int gates = r->lstm ? 4 : 3, needed = r->layers * r->ways * r->each;
    if (r->weights == NULL) count = 0;
    for (int i = 0; i < count; i++) {
        const gn_array *w = r->weights[i];
        if (gni_home_of(w, GNI_IS_ARRAY) == g) continue;
        return gni_fail(g, w != NULL && gni_kind_of(w) == GNI_NO_HANDLE ? GN_ERROR_STALE : GN_ERROR_ARGUMENT,
                        "%s: weight %d %s", r->fn, i + 1,
                        w == NULL ? "is NULL" : "was released, or is no array of this context");
    }
    if (!gni_need_float(g, r->fn, x->dtype)) return false;
    if (x->shape.rank != 3 || x->shape.dim[r->o.batch_first ? 1 : 0] == 0)
        return gni_fail(g, GN_ERROR_SHAPE, "%s: x %s is not %s with n from 1 on", r->fn,
                        gni_shape_text(tx, sizeof tx, &x->shape), r->o.batch_first ? "(batch, n, in)" : "(n, batch, in)");
    r->n = x->shape.dim[r->o.batch_first ? 1 : 0];
    r->batch = x->shape.dim[r->o.batch_first ? 0 : 1];
    if (r->n >= INT32_MAX || !(r->o.dropout >= 0.0 && r->o.dropout <= 1.0) || count != needed)
        return gni_fail(g, GN_ERROR_ARGUMENT, "%s: %d weights, not %d; dropout %g; %lld steps", r->fn, count, needed,
                        r->o.dropout, (long long)r->n);
    const gn_shape *u = &r->weights[1]->shape;
    r->h = u->rank == 2 ? u->dim[1] : 0;
    if (r->h > INT64_MAX / 4) r->h = 0;
    for (int i = 0; i < count; i++) {
        const int at = i % r->each, layer = i / (r->each * r->ways);
        gn_shape want = GN_SHAPE(gates * r->h, at == 1 ? r->h : layer > 0 ? r->ways * r->h : x->shape.dim[2]);
        if (at > 1) want.rank = 1;
        if (!gni_recurrent_is(r, "weight", i + 1, r->weights[i], x->dtype, want)) return false;
    }
    const gn_shape first = GN_SHAPE((int64_t)r->layers * r->ways, r->batch, r->h);
    return (h0 == NULL || gni_recurrent_is(r, "h0", 0, h0, x->dtype, first)) &&
           (c0 == NULL || gni_recurrent_is(r, "c0", 0, c0, x->dtype, first));
}

// Rounded to `half`, if that is not float32.
static gn_array *gni_recur_as(gn_array *a, gn_dtype half, gn_dtype t) {
    return gni_as(half != GN_F32 ? gni_as(a, half) : a, t);
}

static gn_array *gni_recurrent_layers(gni_recurrent *r, gn_array *x, gn_array *h0, gn_array *c0, gn_array **last,
                                      gn_array **last_c) {
    gn_context *g = r->g;
    const gn_dtype half = r->half, t = half != GN_F32 ? GN_F32 : x->dtype;
    const bool units = !GNI_CPU_ALONE && g->gpu != NULL && g->gpu->caps.coop;
    gn_array *y = r->o.batch_first ? gn_swap_axes(x, 0, 1) : x, *way[2];
    gn_array *zero = h0 == NULL || c0 == NULL ? gn_zeros(g, t, GN_SHAPE(r->batch, r->h)) : NULL;
    for (int i = 0; i < r->layers * r->ways && !g->call_failed; i++) {
        gn_array *const *w = r->weights + i * r->each;
        GNI_ZEROED(gni_recur, one);
        if (i > 0 && i % r->ways == 0 && r->o.dropout > 0.0) y = gn_dropout(y, r->o.dropout, true);
        one.g = g;
        one.lstm = r->lstm;
        one.reversed = i % r->ways == 1;
        one.n = r->n;
        one.h = r->h;
        one.half = units ? half : GN_F32;
        one.in.x = gni_recur_as(y, half, t);
        one.in.w = gni_recur_as(w[0], half, t);
        one.in.u = gni_recur_as(w[1], half, t);
        if (r->each > 2) one.in.b = gni_as(w[2], t);
        if (r->each > 2) one.in.c = gni_as(w[3], t);
        one.in.h0 = h0 != NULL ? gni_as(gni_recur_at(h0, i), t) : zero;
        if (r->lstm) one.in.c0 = c0 != NULL ? gni_as(gni_recur_at(c0, i), t) : zero;
        if (g->call_failed) return NULL;
        gn_array *all = gni_recur_layer(&one, r->fn);
        way[i % r->ways] = gn_slice(all, 0, 0, r->n, 1);
        last[i] = gni_recur_at(all, one.reversed ? 0 : r->n - 1);
        if (r->lstm) last_c[i] = gni_recur_at(all, r->n);
        if (i % r->ways == r->ways - 1) y = r->ways == 2 ? gn_concat(way, 2, -1) : way[0];
    }
    if (g->call_failed) return NULL; // y may still be x
    if (r->o.batch_first) y = gn_swap_axes(y, 0, 1);
    return gni_as(y, r->result);
}

static gn_array *gni_recurrent_run(const char *fn, bool lstm, gn_array *x, gn_array *const *weights, int count, gn_array *h0,
                                   gn_array *c0, const gn_rnn_options *options, gn_array **hn, gn_array **cn) {
    gni_recurrent r;
    gn_array *in[4], **last, *y = NULL, *more[2] = {NULL, NULL}, **place[2];
    int n = 0;
    memset(&r, 0, sizeof r);
    if (hn != NULL) *hn = NULL;
    if (cn != NULL) *cn = NULL;
    in[n++] = x;
    if (x == NULL && weights != NULL && count > 0) in[n++] = weights[0]; // to tell of it
    if (h0 != NULL) in[n++] = h0;
    if (c0 != NULL) in[n++] = c0;
    gn_context *g = r.g = gni_begin(fn, in, n);
    if (g == NULL) return NULL;
    if (options != NULL) r.o = *options;
    r.fn = fn;
    r.lstm = lstm;
    r.layers = r.o.layers > 0 ? GNI_MIN(r.o.layers, 1 << 20) : 1;
    r.ways = r.o.bidirectional ? 2 : 1;
    r.each = r.o.no_bias ? 2 : 4;
    r.weights = weights;
    gn_scope_begin(g);
    if (gni_recurrent_ok(&r, x, count, h0, c0)) {
        const int lines = r.layers * r.ways;
        last = (gn_array **)gni_calloc(g, 2 * sizeof(gn_array *) * (size_t)lines);
        if (last == NULL) gni_fail_memory(g, fn, 2 * sizeof(gn_array *) * (size_t)lines);
        const gn_dtype t = x->dtype;
        r.half = t == GN_F32 ? gni_autocast(g) : t == GN_F64 ? GN_F32 : t;
        r.result = r.half != GN_F32 ? r.half : t;
        if (last != NULL) y = gni_recurrent_layers(&r, x, h0, c0, last, last + lines);
        if (y != NULL && hn != NULL) more[0] = gni_as(gn_stack(last, lines, 0), r.result);
        if (y != NULL && cn != NULL) more[1] = gni_as(gn_stack(last + lines, lines, 0), r.result);
        gni_free(g, last);
    }
    place[0] = hn, place[1] = cn;
    return gni_end_with(g, y, more, place, 2);
}

GPUNUM_API gn_array *gn_lstm(gn_array *x, gn_array *const *weights, int count, gn_array *h0, gn_array *c0,
                             const gn_rnn_options *options, gn_array **hn, gn_array **cn) {
    return gni_recurrent_run("gn_lstm", true, x, weights, count, h0, c0, options, hn, cn);
}

GPUNUM_API gn_array *gn_gru(gn_array *x, gn_array *const *weights, int count, gn_array *h0, const gn_rnn_options *options,
                            gn_array **hn) {
    return gni_recurrent_run("gn_gru", false, x, weights, count, h0, NULL, options, hn, NULL);
}
