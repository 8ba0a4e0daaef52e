// >>sequences
// Layers over sequences: rotary embedding, recurrent networks. Nothing here is used elsewhere.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/macros.h"
#include "../grad/autograd.h"
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
    gn_array *in[3];
    in[0] = x;
    in[1] = c;
    in[2] = s;
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
    part = gn_cast(gn_reshape(part, pairs), c->dtype);
    y[0] = gn_add(gn_mul(part, c), gn_mul(gn_flip(part, interleaved ? -1 : -2), s));
    y[0] = gn_reshape(gn_cast(y[0], x->dtype), flat);
    if (dims < d) {
        y[1] = gn_slice(x, -1, dims, d, 1);
        y[0] = gn_concat(y, 2, -1);
    }
    g->no_grad--;
    gni_node *node = gni_record(g, y[0], "gn_rope", gni_back_rope, in, 3);
    if (node != NULL) {
        node->param[0] = dims;
        node->param[1] = interleaved;
    }
    return y[0];
}

// Turns of a circle by n positions, n below 4096, without their whole part: of f a multiple of 1/4096, whose product is exact, and
// the rest.
static gn_array *gni_rope_turns(gn_array *n, gn_array *f, gn_array *rest) {
    gn_array *p = gn_mul(n, f);
    return gn_add(gn_sub(p, gn_round(p)), gn_mul(n, rest));
}

// Cosines and signed sines over (..., n) and the axes of pairs.
static bool gni_rope_angles(gn_context *g, gn_array *pos, gn_dtype t, const gn_rope_options *o, int64_t dims, gn_array **c,
                            gn_array **s) {
    const int64_t h = dims / 2;
    const size_t bytes = sizeof(double) * (size_t)GNI_MAX(4 * h, 1);
    double *f = (double *)gni_alloc(g, bytes), sign[2];
    if (f == NULL) {
        gni_fail_memory(g, "gn_rope", bytes);
        return false;
    }
    for (int64_t i = 0; i < h; i++)
        for (int k = 0; k < 4; k += 2) { // of one position, and of 4096
            double turn = pow(o->base > 0.0 ? o->base : 10000.0, -2.0 * (double)i / (double)dims) / (4.0 * GNI_PI_2);
            if (k > 0) turn = fmod(turn * 4096.0, 1.0);
            f[k * h + i] = floor(turn * 4096.0) / 4096.0;
            f[(k + 1) * h + i] = turn - f[k * h + i];
        }
    const gn_axes axes = o->interleaved ? GN_AXES(-1) : GN_AXES(-2);
    gn_array *of[4];
    for (int i = 0; i < 4; i++) of[i] = gn_expand_dims(gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(h), f + i * h), t), axes);
    gni_free(g, f);
    sign[0] = -1.0;
    sign[1] = 1.0;
    gn_array *signs = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(2), sign), t);
    if (!o->interleaved) signs = gn_expand_dims(signs, 1);
    pos = gn_cast(gn_expand_dims(pos, GN_AXES(-1, -2)), t);
    gn_array *high = gn_floor(gn_mul_s(pos, 1.0 / 4096.0)), *low = gn_sub(pos, gn_mul_s(high, 4096.0));
    gn_array *turns = gn_mul_s(gn_add(gni_rope_turns(low, of[0], of[1]), gni_rope_turns(high, of[2], of[3])), 4.0 * GNI_PI_2);
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
    gn_context *g = gni_begin("gn_rope", in, positions != NULL ? 2 : 1);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    const int rank = x->shape.rank;
    const int64_t d = rank > 0 ? x->shape.dim[rank - 1] : 0, dims = o.dims > 0 ? o.dims : d;
    gn_shape lead = x->shape, joined;
    if (rank > 0) lead.rank--;
    if (rank < 2 || rank >= GN_MAX_RANK)
        gni_fail(g, GN_ERROR_SHAPE, "gn_rope: x %s is not (..., n, d)", gni_shape_text(tx, sizeof tx, &x->shape));
    else if (!gni_is_float(x->dtype) || (positions != NULL && !gni_is_integer(positions->dtype)))
        gni_fail(g, GN_ERROR_DTYPE, "gn_rope: x is %s and positions are %s, not a float and integers", gn_dtype_name(x->dtype),
                 positions != NULL ? gn_dtype_name(positions->dtype) : "none");
    else if (o.dims < 0 || dims > d || dims % 2 != 0 || !(o.base >= 0.0 && o.base < GNI_INF))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_rope: %lld of %lld columns, base %g", (long long)dims, (long long)d, o.base);
    else if (positions != NULL && (!gni_broadcast(&positions->shape, &lead, &joined) || !gni_same_shape(&joined, &lead)))
        gni_fail(g, GN_ERROR_SHAPE, "gn_rope: positions %s do not broadcast to %s", gni_shape_text(tp, sizeof tp, &positions->shape),
                 gni_shape_text(tx, sizeof tx, &lead));
    else if (gni_elements(&x->shape) == 0 || dims == 0)
        y = gn_cast(x, x->dtype);
    else {
        const gn_dtype t = x->dtype == GN_F64 ? GN_F64 : GN_F32;
        g->no_grad++;
        gn_array *pos = positions != NULL ? positions : gn_arange(g, GN_I32, 0.0, (double)x->shape.dim[rank - 2], 1.0);
        const bool ok = gni_rope_angles(g, pos, t, &o, dims, &c, &s);
        g->no_grad--;
        if (ok) y = gni_rotated(g, x, c, s, dims, o.interleaved);
    }
    return gni_end_scope(g, y);
}
