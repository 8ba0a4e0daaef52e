// >>conv
// Convolutions. Each of the three (forward, transposed, gradient of the weights) is a product whose operand b is the windows
// of an image, and the derivatives of each are the other two. From outside: gni_conv_op, gni_conv_frame.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/conv_last.h"
#include "../ops/random_ops.h"
#include "../grad/autograd.h"
#include "../grad/depthwise.h"
#include "../grad/winograd.h"
#endif

// ---- products with windows

// A GPU makes so many bytes of windows at a time.
#define GNI_CONV_BYTES ((int64_t)64 << 20)

static int64_t gni_conv_first(const int64_t *dim, int count) {
    int i = 0;
    while (i < count - 1 && dim[i] == 1) i++;
    return i;
}

// All at once: (batch..., m, n). The windows are copied by gn_reshape.
static gn_array *gni_conv_leaf(gn_context *g, const gni_conv *d, gn_array *a, gn_array *b) {
    gn_shape s = {0, {0}}, whole = GN_SHAPE(d->batch_dim[0], d->batch_dim[1], d->k, d->n);
    const gn_shape rows = GN_SHAPE(d->batch_dim[0], d->batch_dim[1], d->m, d->k);
    int64_t stride[10];
    for (int part = 0; part < 3; part++) {
        const int64_t *dim = part == 0 ? d->batch_dim : part == 1 ? d->k_dim : d->n_dim,
                      *step = part == 0 ? d->b_batch : part == 1 ? d->b_k : d->b_n;
        for (int i = 0; i < (part == 0 ? 2 : 4); i++) {
            if (dim[i] == 1) continue;
            s.dim[s.rank] = dim[i];
            stride[s.rank++] = step[i];
        }
    }
    const int64_t a_stride[4] = {d->a_batch[0], d->a_batch[1], d->a_rs, d->a_cs};
    gn_array *left = gni_adopt(g, gni_array_view(g, "convolution", a, &rows, a_stride, d->a.offset));
    gn_array *windows = gni_adopt(g, gni_array_view(g, "convolution", b, &s, stride, d->b.offset));
    return gn_matmul(left, gn_reshape(windows, whole));
}

static int gni_conv_rank(const gni_conv *d) {
    int rank = 0;
    for (int i = 0; i < 4; i++) rank += (d->n_dim[i] != 1) + (d->k_dim[i] != 1);
    return rank + (d->batch_dim[0] != 1) + (d->batch_dim[1] != 1);
}

// Halves until the windows fit. `to` is a view of the result, whose columns and batches are those of d.
static bool gni_conv_pieces(gn_context *g, const gni_conv *d, gn_array *a, gn_array *b, gn_array *to, bool add) {
    const int64_t item = (int64_t)gn_dtype_size(d->a.dtype), batches = d->batch_dim[0] * d->batch_dim[1];
    const bool deep = gni_conv_rank(d) > GN_MAX_RANK;
    if (!deep && (double)batches * (double)d->k * (double)d->n * (double)item <= (double)GNI_CONV_BYTES) {
        gn_array *y = gni_conv_leaf(g, d, a, b);
        if (y != NULL && add) y = gn_eval(gn_add(to, y));
        return y != NULL && gni_copy_into(g, to->buf, to->dtype, to->offset, to->stride, y);
    }
    gni_conv half = *d;
    int axis = d->batch_dim[0] > 1 && !(deep && d->batch_dim[1] > 1) ? 0 : d->batch_dim[1] > 1 ? 1 : d->n >= d->k ? 3 : -1;
    int64_t *dim = axis < 0 ? half.k_dim : axis == 3 ? half.n_dim : half.batch_dim;
    const int64_t at = axis == 0 || axis == 1 ? axis : gni_conv_first(dim, 4), all = dim[at], rest = axis == 3 ? d->n / all
                                                                                                  : axis < 0   ? d->k / all
                                                                                                               : 1;
    if (all == 1) return false; // not reached: one window fits
    for (int part = 0; part < 2; part++) {
        const int64_t from = part == 0 ? 0 : all / 2, count = part == 0 ? all / 2 : all - all / 2;
        dim[at] = count;
        if (axis == 3) half.n = count * rest;
        if (axis < 0) half.k = count * rest;
        half.b.offset = d->b.offset + from * (axis < 0 ? d->b_k[at] : axis == 3 ? d->b_n[at] : d->b_batch[at]);
        half.a.offset = d->a.offset + (axis < 0 ? from * rest * d->a_cs : axis == 3 ? 0 : from * d->a_batch[at]);
        gn_array *place = axis < 0 ? to : gn_slice(to, axis, from * rest, (from + count) * rest, 1);
        if (place == NULL || !gni_conv_pieces(g, &half, a, b, place, add || (axis < 0 && part == 1))) return false;
    }
    return true;
}

// (batch..., m, n), the scope's. d says everything but the operands' buffers and dtypes; offsets begin at those of a and b.
static gn_array *gni_conv_run(gn_context *g, gni_conv *d, gn_array *a, gn_array *b) {
    if (a == NULL || b == NULL || !gni_materialize(g, a) || !gni_materialize(g, b)) return NULL;
    const gn_shape s = GN_SHAPE(d->batch_dim[0], d->batch_dim[1], d->m, d->n);
    gn_array *y = gni_adopt(g, gni_array_empty(g, "convolution", a->dtype, &s));
    if (y == NULL) return NULL;
    d->a.buf = a->buf;
    d->a.offset += a->offset;
    d->b.buf = b->buf;
    d->b.offset += b->offset;
    d->c.buf = y->buf;
    d->a.dtype = d->b.dtype = d->c.dtype = a->dtype;
    if (gni_elements(&s) == 0) return y;
    if (d->k == 0) return gn_zeros(g, a->dtype, s);
    if (!gni_is_for_gpu(g, &gni_kind_conv, d)) return gni_run(g, &gni_kind_conv, d, y) ? y : NULL;
    const double bytes = (double)gni_elements(&s) / (double)d->m * (double)d->k * (double)gn_dtype_size(a->dtype);
    const bool whole = bytes <= (double)GNI_CONV_BYTES && gni_conv_rank(d) <= GN_MAX_RANK;
    const gn_placement asked = g->placement;
    g->placement = GN_PLACE_GPU; // of the windows too, which are larger than what they are made of
    if (whole)
        y = gni_conv_leaf(g, d, a, b);
    else if (!gni_conv_pieces(g, d, a, b, y, false))
        y = NULL;
    g->placement = asked;
    return y;
}

// ---- geometry

// x (n, groups * c, in...), w (o, c, k...), y (n, o, out...): y[i] takes x[i * stride + tap * dilation - pad].
typedef struct gni_conv_plan {
    int nd;
    int64_t n, groups, c, o; // c: channels of a group, o: all that come out
    int64_t stride[3], pad[3], dilation[3], in[3], k[3], out[3];
} gni_conv_plan;

static gn_shape gni_conv_shape(const gni_conv_plan *p, int64_t n, int64_t c, const int64_t *space) {
    gn_shape s = GN_SHAPE(n, c);
    for (int i = 0; i < p->nd; i++) s.dim[s.rank++] = space[i];
    return s;
}

static int64_t gni_conv_count(const int64_t *dim, int nd) { return nd == 0 ? 1 : gni_extent_product(dim, nd); }

// x as if it began `before` elements earlier on its spatial axes and had `size` of them: cut, and with `value` around it.
static gn_array *gni_conv_frame(gn_array *x, int nd, const int64_t *before, const int64_t *size, double value) {
    int64_t widths[2 * GN_MAX_RANK] = {0};
    bool pads = false;
    for (int i = 0; i < nd && x != NULL; i++) {
        const int64_t have = x->shape.dim[2 + i], from = GNI_MIN(GNI_MAX(-before[i], 0), have),
                      to = GNI_MAX(GNI_MIN(size[i] - before[i], have), from);
        if (from != 0 || to != have) x = gn_slice(x, 2 + i, from, to, 1);
        widths[2 * (2 + i)] = from == to ? 0 : GNI_MAX(before[i], 0);
        widths[2 * (2 + i) + 1] = size[i] - (to - from) - widths[2 * (2 + i)];
        pads = pads || to - from != size[i];
    }
    return pads && x != NULL ? gn_pad(x, widths, 2 * (2 + nd), GN_PAD_CONSTANT, value) : x;
}

// In C order, so that windows have runs of neighbours.
static gn_array *gni_conv_packed(gn_context *g, gn_array *x) {
    return x == NULL || !gni_materialize(g, x) ? NULL : gni_adopt(g, gni_contiguous(g, x));
}

// The part of x that the windows of p cover.
static gn_array *gni_conv_framed(const gni_conv_plan *p, gn_array *x) {
    int64_t size[3];
    for (int i = 0; i < p->nd; i++)
        size[i] = p->out[i] == 0 ? 0 : (p->out[i] - 1) * p->stride[i] + (p->k[i] - 1) * p->dilation[i] + 1;
    return gni_conv_frame(x, p->nd, p->pad, size, 0.0);
}

static void gni_conv_ones(gni_conv *d) {
    memset(d, 0, sizeof *d);
    d->batch_dim[0] = d->batch_dim[1] = 1;
    for (int i = 0; i < 4; i++) d->n_dim[i] = d->k_dim[i] = 1;
}

// ---- on a GPU: the images get their channels last, from which the product reads windows

// What images of such numbers are made of: bfloat16 instead of float32 where GN_PRECISION_FAST allows it.
static gn_dtype gni_conv_item(const gn_context *g, gn_dtype t) {
#if GNI_GPU
    const bool fast = t == GN_F32 && g->precision == GN_PRECISION_FAST && g->gpu != NULL;
    if (fast && gni_job_has_units(g->gpu, GN_BF16)) return GN_BF16;
#else
    GNI_UNUSED(g);
#endif
    return t;
}

// Elements in 16 bytes.
static int64_t gni_conv_each(gn_dtype t) { return 16 / (int64_t)gn_dtype_size(t); }

static int64_t gni_conv_up(int64_t n, gn_dtype t) {
    return (n + gni_conv_each(t) - 1) / gni_conv_each(t) * gni_conv_each(t);
}

// Whether kernels may take the images of a product apart (GN_PRECISION_HIGH): these tell then what is largest in them, and
// have whole eights of channels.
typedef struct gni_conv_parts {
    bool on;
    gni_magnitudes largest[2];
} gni_conv_parts;

static int64_t gni_conv_width(int64_t n, gn_dtype t, const gni_conv_parts *s) {
    return s->on ? (n + 7) / 8 * 8 : gni_conv_up(n, t);
}

#if GNI_GPU
// The elements of the largest image that a convolution or its gradients make, of so many channels' multiples, and at most how
// many places images have.
static double gni_conv_most(const gni_conv_plan *p, int64_t each, double *places) {
    const double c = (double)((p->c + each - 1) / each * each), o = (double)((p->o + each - 1) / each * each);
    double most = (double)gni_conv_count(p->k, p->nd) * c * o;
    *places = (double)p->n;
    for (int i = 0; i < p->nd; i++) {
        const int64_t around = GNI_MAX(p->pad[i], (p->k[i] - 1) * p->dilation[i]);
        *places *= (double)GNI_MAX(p->in[i], p->out[i]) + 2.0 * (double)around + (double)p->stride[i];
    }
    most = GNI_MAX(most, *places * c * (double)p->groups);
    return GNI_MAX(most, *places * o);
}
#endif

// Whether a convolution of a and b is done so: a product of m rows for each group, of images with so many channels in a
// group, which grow up to `most` times. On an H200 that was faster for 3 rows, and 3 channels as 4; 3 as 8 only for the
// weights.
static bool gni_conv_direct(gn_context *g, const gni_conv_plan *p, gn_array *a, gn_array *b, int64_t m, int64_t channels,
                            int64_t most_times) {
#if GNI_GPU
    gni_conv d;
    const gn_dtype t = gni_conv_item(g, a->dtype);
    const int64_t each = gni_conv_each(t);
    if (GNI_CPU_ALONE || g->gpu == NULL || (t != GN_F32 && t != GN_F16 && t != GN_BF16)) return false;
    if (!gni_job_has_windows(g->gpu)) return false;
    if (m < 2 || gni_conv_up(channels, t) > most_times * channels) return false;
    if (p->groups > 1 && (p->c % each != 0 || p->o / p->groups % each != 0)) return false;
    const int64_t most = gni_job_most_bytes(g->gpu) / 4;
    double size, places = (double)p->n, taps = (double)gni_conv_count(p->k, p->nd);
    for (int i = 0; i < p->nd; i++) places *= (double)GNI_MAX(p->in[i], p->out[i]);
    if (gni_conv_most(p, gni_conv_each(t), &size) > (double)most) return false;
    memset(&d, 0, sizeof d);
    d.m = GNI_MAX(p->o / p->groups, p->c);
    d.n = (int64_t)places;
    d.k = p->c * (int64_t)taps;
    if (p->groups > 65535 || !gni_job_windows_fit(g->gpu, d.m, GNI_MAX(d.n, d.k), (int64_t)size)) return false;
    if (!gni_materialize(g, a) || !gni_materialize(g, b)) return false;
    d.batch_dim[0] = 1;
    d.batch_dim[1] = p->groups;
    d.a.buf = a->buf;
    d.b.buf = d.c.buf = b->buf;
    d.a.dtype = d.b.dtype = d.c.dtype = a->dtype;
    return gni_is_for_gpu(g, &gni_kind_conv, &d);
#else
    GNI_UNUSED(g);
    GNI_UNUSED(p);
    GNI_UNUSED(a);
    GNI_UNUSED(b);
    GNI_UNUSED(m);
    GNI_UNUSED(channels);
    GNI_UNUSED(most_times);
    return false;
#endif
}

// Whether a convolution goes by tiles, or the gradient of its weights; d says how. For those that gni_conv_direct takes.
static bool gni_conv_by_tiles(gn_context *g, const gni_conv_plan *p, gn_dtype t, bool weight, gni_winograd *d) {
#if GNI_GPU
    memset(d, 0, sizeof *d);
    if (t != GN_F32 || p->nd != 2 || p->groups != 1) return false;
    d->n = p->n;
    d->c = p->c;
    d->o = p->o;
    for (int i = 0; i < 2; i++) {
        if (p->k[i] != 3 || p->stride[i] != 1 || p->dilation[i] != 1) return false;
        d->in[i] = p->in[i];
        d->out[i] = p->out[i];
        d->before[i] = p->pad[i];
    }
    return gni_job_winograd_pays(g->gpu, d, weight);
#else
    GNI_UNUSED(g);
    GNI_UNUSED(p);
    GNI_UNUSED(t);
    GNI_UNUSED(weight);
    GNI_UNUSED(d);
    return false;
#endif
}

// Where an image of shape s tells what is largest, which is for so many images of the product.
static void gni_conv_tells(gni_magnitudes *of, const gn_shape *s, int64_t images) {
    const int64_t width = s->dim[s->rank - 1];
    of->from = gni_elements(s);
    of->groups = (width + 31) / 32;
    of->places = of->from / width / images;
    of->each = INT32_MAX / 2;
}

// x, whose strides may be any, as (n, size..., width), which begins `before` places earlier; `side`: operand a, 0, or b.
static gn_array *gni_conv_image(gn_context *g, gn_array *x, const int64_t *before, const int64_t *size, int64_t width,
                                gni_conv_parts *parts, int side) {
    gni_image m;
    gn_shape s = GN_SHAPE(x->shape.dim[0]);
    if (!gni_materialize(g, x)) return NULL;
    memset(&m, 0, sizeof m);
    m.n = x->shape.dim[0];
    m.channels = x->shape.dim[1];
    m.width = width;
    m.in.stride[0] = x->stride[0];
    m.in.stride[1] = x->stride[1];
    for (int i = 0; i < 3; i++) m.have[i] = m.size[i] = 1;
    for (int i = 0; i + 2 < x->shape.rank; i++) {
        m.have[i] = x->shape.dim[2 + i];
        m.in.stride[2 + i] = x->stride[2 + i];
        s.dim[s.rank++] = m.size[i] = size[i];
        m.before[i] = before[i];
    }
    s.dim[s.rank++] = width;
    m.in.buf = x->buf;
    m.in.offset = x->offset;
    m.in.dtype = x->dtype;
    const gn_dtype t = gni_conv_item(g, x->dtype);
    gn_shape room = s;
#if GNI_GPU
    if (parts->on) {
        int64_t groups[2];
        gni_job_image_groups(&m, groups);
        gni_conv_tells(&parts->largest[side], &s, side == 0 ? 1 : m.n);
        room = GN_SHAPE(gni_elements(&s) + groups[0] * groups[1]);
        m.tells = true;
    }
#else
    GNI_UNUSED(side);
#endif
    gn_array *y = gni_adopt(g, gni_array_empty(g, "convolution", t, &room));
    if (y != NULL && parts->on) {
        int64_t stride[GN_MAX_RANK];
        gni_strides_of(&s, stride);
        y = gni_adopt(g, gni_array_view(g, "convolution", y, &s, stride, 0));
    }
    if (y == NULL) return NULL;
    m.out.buf = y->buf;
    m.out.dtype = y->dtype;
    return gni_run(g, &gni_kind_image, &m, y) ? y : NULL;
}

// Whether products of images of p, m x n of k for each group, are taken apart.
static gni_conv_parts gni_conv_parts_of(const gn_context *g, const gni_conv_plan *p, gn_dtype t, int64_t m, int64_t n,
                                        int64_t k) {
    GNI_ZEROED(gni_conv_parts, s);
#if GNI_GPU
    const int64_t c = p->c, o = p->o / p->groups;
    const bool eights = p->groups == 1 || (c % 8 == 0 && o % 8 == 0);
    double places;
    s.on = t == GN_F32 && c >= 8 && o >= 8 && eights && gni_job_wants_parts(g->gpu, m, n, k, p->groups) &&
           1.01 * gni_conv_most(p, 8, &places) < (double)gni_job_most_bytes(g->gpu) / 4; // with what they tell
#else
    GNI_UNUSED(g);
    GNI_UNUSED(p);
    GNI_UNUSED(t);
    GNI_UNUSED(m);
    GNI_UNUSED(n);
    GNI_UNUSED(k);
#endif
    return s;
}

static gni_conv_parts gni_conv_parts_of_forward(const gn_context *g, const gni_conv_plan *p, gn_dtype t) {
    const int64_t places = gni_conv_count(p->out, p->nd), taps = gni_conv_count(p->k, p->nd);
    return gni_conv_parts_of(g, p, t, p->o / p->groups, p->n * places, p->c * taps);
}

// The part of x that the windows of p cover.
static gn_array *gni_conv_frame_image(gn_context *g, const gni_conv_plan *p, gn_array *x, gni_conv_parts *s) {
    int64_t size[3];
    for (int i = 0; i < p->nd; i++) size[i] = (p->out[i] - 1) * p->stride[i] + (p->k[i] - 1) * p->dilation[i] + 1;
    return gni_conv_image(g, x, p->pad, size, p->groups * gni_conv_width(p->c, gni_conv_item(g, x->dtype), s), s, 1);
}

static gn_array *gni_conv_direct_run(gn_context *g, gni_conv *d, gn_array *a, gn_array *b, gn_array *y,
                                     const gni_conv_parts *s) {
    d->in_parts = s->on;
    memcpy(d->largest, s->largest, sizeof d->largest);
    d->a.buf = a->buf;
    d->b.buf = b->buf;
    d->c.buf = y->buf;
    d->a.dtype = d->b.dtype = a->dtype;
    d->c.dtype = y->dtype;
    return gni_run(g, &gni_kind_conv, d, y) ? y : NULL;
}

// Which places and taps windows of `image` have, c channels last among the taps; and in its memory how far apart they are.
static void gni_conv_windows(const gni_conv_plan *p, const gn_array *image, int64_t c, int64_t *place_dim,
                             int64_t *place_step, int64_t *tap_dim, int64_t *tap_step) {
    for (int i = 0; i < 4; i++) place_dim[i] = tap_dim[i] = 1;
    place_dim[0] = p->n;
    place_step[0] = image->stride[0];
    for (int i = 0; i < p->nd; i++) {
        place_dim[1 + i] = p->out[i];
        place_step[1 + i] = p->stride[i] * image->stride[1 + i];
        tap_dim[i] = p->k[i];
        tap_step[i] = p->dilation[i] * image->stride[1 + i];
    }
    tap_dim[3] = c;
    tap_step[3] = 1;
}

// y of w and an image of x that begins `before` places in front of it; in `to` if that is not NULL.
static gn_array *gni_conv_direct_forward(gn_context *g, const gni_conv_plan *p, gn_array *image, const int64_t *before,
                                         gn_array *w, gn_array *to, gni_conv_parts *parts) {
    gni_conv d;
    const gn_dtype t = image->dtype;
    const gn_shape s = gni_conv_shape(p, p->n, p->o, p->out);
    const int64_t taps = gni_conv_count(p->k, p->nd), places = gni_conv_count(p->out, p->nd),
                  c = gni_conv_width(p->c, t, parts);
    static const int64_t none[3] = {0, 0, 0};
    memset(&d, 0, sizeof d);
    gn_array *y = to != NULL ? to : gni_adopt(g, gni_array_empty(g, "convolution", w->dtype, &s));
    w = gni_conv_image(g, w, none, p->k, c, parts, 0);
    if (w == NULL || y == NULL) return NULL;
    d.c.offset = y->offset;
    d.m = p->o / p->groups;
    d.k = d.a_rs = taps * c;
    d.a_cs = 1;
    d.n = p->n * places;
    d.batch_dim[0] = 1;
    d.batch_dim[1] = p->groups;
    d.a_batch[1] = d.m * d.k;
    d.b_batch[1] = c;
    gni_conv_windows(p, image, c, d.n_dim, d.b_n, d.k_dim, d.b_k);
    for (int i = 0; i < p->nd; i++) d.b.offset += (before[i] - p->pad[i]) * image->stride[1 + i];
    d.c_run = d.c_row = places;
    d.c_jump = p->o * places;
    parts->largest[1].each = places;
    return gni_conv_direct_run(g, &d, w, image, y, parts);
}

static gn_array *gni_conv_direct_weight(gn_context *g, const gni_conv_plan *p, gn_array *x, gn_array *y, gn_array *image) {
    static const int64_t none[3] = {0, 0, 0};
    gni_conv d;
    const int64_t taps = gni_conv_count(p->k, p->nd), places = gni_conv_count(p->out, p->nd);
    const bool tiled = image != NULL && image->shape.rank == 3 && p->nd == 2; // by gni_winograd_forward
#if GNI_GPU
    gni_winograd by;
    if (gni_conv_by_tiles(g, p, x->dtype, true, &by)) return gni_winograd_weight(g, &by, x, y, tiled ? image : NULL);
#endif
    gni_conv_parts parts = gni_conv_parts_of(g, p, x->dtype, p->o / p->groups, p->c * taps, p->n * places);
    const bool tells = gni_conv_parts_of_forward(g, p, x->dtype).on; // what it left
    const gn_dtype t = gni_conv_item(g, x->dtype);
    const int64_t c = gni_conv_width(p->c, t, &parts), o = gni_conv_width(p->o, t, &parts);
    const gn_shape s = GN_SHAPE(parts.on ? o : p->o, taps * c);
    memset(&d, 0, sizeof d);
    const bool fits = image != NULL && image->dtype == t && !tiled && (tells || !parts.on) &&
                      image->shape.dim[image->shape.rank - 1] == p->groups * c;
    if (!fits) image = gni_conv_frame_image(g, p, x, &parts);
    else if (parts.on) gni_conv_tells(&parts.largest[1], &image->shape, p->n);
    y = gni_conv_image(g, y, none, p->out, o, &parts, 0);
    gn_array *to = gni_adopt(g, gni_array_empty(g, "convolution", x->dtype, &s));
    if (image == NULL || y == NULL || to == NULL) return NULL;
    d.m = s.dim[0] / p->groups;
    d.k = p->n * places;
    d.n = taps * c;
    d.a_rs = 1;
    d.a_cs = o;
    d.batch_dim[0] = 1;
    d.batch_dim[1] = p->groups;
    d.a_batch[1] = d.m;
    d.b_batch[1] = c;
    gni_conv_windows(p, image, c, d.k_dim, d.b_k, d.n_dim, d.b_n);
    d.c_run = d.c_row = d.n;
    parts.largest[0].each = parts.largest[1].each = places;
    parts.largest[0].places = places;
    gn_array *w = gni_conv_direct_run(g, &d, y, image, to, &parts);
    w = gn_slice(gn_slice(gn_reshape(w, GN_SHAPE(s.dim[0], taps, c)), 0, 0, p->o, 1), 2, 0, p->c, 1);
    return gn_reshape(gn_swap_axes(w, 1, 2), gni_conv_shape(p, p->o, p->c, p->k));
}

// Whether large images go into one product each, for which w is read often.
static bool gni_conv_apart(const gni_conv_plan *p) {
    const int64_t depth = p->c * gni_conv_count(p->k, p->nd);
    return p->n == 1 || (gni_conv_count(p->out, p->nd) >= 256 && p->o / p->groups * depth < 1 << 18);
}

// Whether the images are their own windows, and a product reads them as they are.
static bool gni_conv_is_product(const gni_conv_plan *p, gn_dtype t) {
    double bytes = (double)p->n * (double)p->groups * (double)p->c * (double)gn_dtype_size(t);
    for (int i = 0; i < p->nd; i++) {
        if (p->k[i] != 1 || p->stride[i] != 1 || p->pad[i] != 0) return false;
        bytes *= (double)p->out[i];
    }
    return gni_conv_apart(p) && gni_conv_count(p->out, p->nd) % gni_conv_each(t) == 0 && bytes <= (double)GNI_CONV_BYTES;
}

// Whether a CPU reads neighbours along the last axis where they are.
static bool gni_conv_beside(const gn_context *g, const gni_conv_plan *p, gn_dtype t) {
    return g->gpu == NULL && t == GN_F32 && p->o / p->groups <= GNI_CONV_FEW && p->stride[p->nd - 1] <= 4 &&
           p->out[p->nd - 1] >= 4;
}

typedef struct gni_conv_comb_job {
    const gni_conv_plan *p;
    const float *x;
    float *y;
    int64_t size[3], comb, part; // of y's images
} gni_conv_comb_job;

// Items are rows of y's images.
static void gni_conv_comb_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_conv_comb_job *j = (const gni_conv_comb_job *)arg;
    const gni_conv_plan *p = j->p;
    const int last = p->nd - 1;
    GNI_UNUSED(worker);
    for (int64_t r = begin; r < end; r++) {
        int64_t rest = r, row = 0, step = 1;
        bool inside = true;
        for (int i = last - 1; i >= 0; i--) {
            const int64_t at = rest % j->size[i] - p->pad[i];
            inside = inside && at >= 0 && at < p->in[i];
            row += at * step;
            step *= p->in[i];
            rest /= j->size[i];
        }
        const float *x = j->x + (inside ? (rest * step + row) * p->in[last] : 0);
        for (int64_t c = 0; c < j->comb; c++) {
            float *y = j->y + r * j->size[last] + c * j->part;
            int64_t i = 0, at = c - p->pad[last];
            for (; i < j->part && at < 0; i++, at += j->comb) y[i] = 0.0f;
            for (; i < j->part && at < p->in[last] && inside; i++, at += j->comb) y[i] = x[at];
            for (; i < j->part; i++) y[i] = 0.0f;
        }
    }
}

// The part of x that the windows cover, with what a stride takes as neighbours.
static gn_array *gni_conv_combed(gn_context *g, const gni_conv_plan *p, gn_array *x, gni_conv *d) {
    const int last = p->nd - 1;
    const int64_t comb = p->stride[last];
    gni_conv_comb_job j;
    void *data = NULL;
    if (x == NULL || comb == 1) return gni_conv_packed(g, gni_conv_framed(p, x));
    for (int i = 0; i < p->nd; i++) j.size[i] = (p->out[i] - 1) * p->stride[i] + (p->k[i] - 1) * p->dilation[i] + 1;
    d->comb = j.comb = comb;
    d->comb_part = j.part = (j.size[last] + comb - 1) / comb;
    d->comb_taps = p->k[last];
    d->comb_step = p->dilation[last];
    j.size[last] = j.part * comb;
    const gn_shape s = gni_conv_shape(p, x->shape.dim[0], x->shape.dim[1], j.size);
    x = gni_conv_packed(g, x);
    gn_array *y = x != NULL ? gni_adopt(g, gni_array_filled(g, g->call, GN_F32, &s, &data)) : NULL;
    if (y == NULL) return NULL;
    j.x = (const float *)gni_host(g, x);
    if (g->call_failed) return NULL;
    j.p = p;
    j.y = (float *)data;
    gni_parallel(g->pool, gni_elements(&s) / j.size[last], 1 + GNI_GRAIN / j.size[last], gni_conv_comb_task, &j);
    return y;
}

typedef struct gni_conv_phase {
    int64_t first, step, taps; // of the kernel
    int64_t begin, count;      // places of x: begin, begin + stride, ...
    int64_t before, spread;    // what comes in: places in front of its first, distance of taps
} gni_conv_phase;

static int64_t gni_gcd(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

// The places begin, begin + stride, ... of axis `axis`.
static gni_conv_phase gni_conv_phase_of(const gni_conv_plan *p, int axis, int64_t begin) {
    gni_conv_phase f;
    const int64_t s = p->stride[axis], d = p->dilation[axis], gcd = gni_gcd(s, d), r = (begin + p->pad[axis]) % s;
    f.step = s / gcd;
    f.spread = d / gcd;
    f.begin = begin;
    f.count = (p->in[axis] - begin + s - 1) / s;
    for (f.first = 0; f.first < GNI_MIN(f.step, p->k[axis]) && f.first * d % s != r; f.first++) {
    }
    const bool none = f.first >= GNI_MIN(f.step, p->k[axis]);
    f.taps = none ? 0 : (p->k[axis] - f.first + f.step - 1) / f.step;
    // Tap first + j * step of place begin + q * stride takes element (begin + pad - r) / stride + q - e - j * spread.
    const int64_t e = none ? 0 : (f.first * d - r) / s;
    f.before = e + (f.taps - 1) * f.spread - (f.begin + p->pad[axis] - r) / s;
    return f;
}

// ---- on a CPU that is alone: images with channels last

static bool gni_conv_is_depthwise(const gni_conv_plan *p) { return p->c == 1 && p->o == p->groups && p->groups > 1; }

// What a GPU makes of a convolution of groups of few channels, or of its gradients: `from` is read by taps. False: it is left
// to the other ways, unless g->call_failed.
static bool gni_conv_deep(gn_context *g, const gni_conv_plan *p, uint32_t step, gn_array *from, gn_array *other,
                          gn_array **y) {
#if GNI_GPU
    gni_depth d;
    const bool back = step == GNI_DEPTH_BACK;
    const int64_t taps = gni_conv_count(p->k, p->nd), most = INT32_MAX / 4;
    const int64_t out = p->groups > 0 ? p->o / p->groups : 0;
    if (GNI_CPU_ALONE || g->gpu == NULL || p->groups < 2 || p->nd != 2) return false;
    // More are faster as products, the more so on matrix units.
    const bool units = gni_job_is_half(from->dtype) && gni_job_has_units(g->gpu, from->dtype);
    const int64_t most_channels = !units ? 16 : step == GNI_DEPTH_WEIGHT ? 4 : 8;
    if (GNI_MIN(out, p->c) < 1 || GNI_MAX(out, p->c) > most_channels) return false;
    if (taps < 1 || taps > GNI_DEPTH_TAPS || !gni_job_has_depth(g->gpu)) return false;
    if (from->dtype == GN_F64 || other->dtype != from->dtype) return false;
    memset(&d, 0, sizeof d);
    d.step = step;
    d.n = p->n;
    d.read = back ? out : p->c;
    d.made = back ? p->c : out;
    d.c = p->groups * d.made * (step == GNI_DEPTH_WEIGHT ? p->c : 1);
    for (int i = 0; i < 2; i++) {
        if (p->pad[i] > most / 64 || p->dilation[i] > most / 64 || p->stride[i] > most / 64) return false;
        d.k[i] = p->k[i];
        d.stride[i] = p->stride[i];
        d.pad[i] = p->pad[i];
        d.dilation[i] = p->dilation[i];
        d.from[i] = back ? p->out[i] : p->in[i];
        d.to[i] = back ? p->in[i] : p->out[i];
    }
    // Indices are of 31 bits.
    if ((double)d.n * (double)(p->groups * GNI_MAX(out, p->c)) * (double)GNI_MAX(d.from[0], d.to[0]) *
            (double)GNI_MAX(d.from[1], d.to[1]) >
        (double)most)
        return false;
    if (!gni_materialize(g, from) || !gni_materialize(g, other)) return false;
    *y = gni_depth_run(g, &d, from, other);
    return *y != NULL;
#else
    GNI_UNUSED(g), GNI_UNUSED(p), GNI_UNUSED(step), GNI_UNUSED(from), GNI_UNUSED(other), GNI_UNUSED(y);
    return false;
#endif
}

// Neighbours in memory that the taps of a place take from an image with so many channels in a group; 0: it is not for a CPU
// that is alone.
static int64_t gni_conv_last_line(const gn_context *g, const gni_conv_plan *p, gn_dtype t, int64_t channels) {
    const int last = p->nd - 1;
    if (g->gpu != NULL || t != GN_F32) return 0;
    for (int i = 0; i < p->nd; i++)
        if (p->stride[i] > GNI_CONV_PHASES) return 0;
    if (gni_conv_is_depthwise(p)) return p->groups;
    return p->groups == 1 && p->dilation[last] == 1 ? channels * p->k[last] : channels;
}

// Whether places of the result, `line` of them in a row, take windows of such images. Lines that fill pairs of vectors are
// faster by windows that stay where they are, of few columns or one of each channel.
static bool gni_conv_last_pays(const gn_context *g, const gni_conv_plan *p, gn_dtype t, int64_t channels, int64_t columns,
                               int64_t line) {
    const int64_t whole = 2 * gni_gemm_isa_of((int)g->isa)->f32->lanes, rest = line % whole;
    if (gni_conv_last_line(g, p, t, channels) < 16 || gni_conv_count(p->k, p->nd) < 2) return false;
    if (p->stride[p->nd - 1] == 1 && columns <= 16 && (rest == 0 || 2 * rest > whole)) return false;
    return columns >= 12 || gni_conv_is_depthwise(p) || (p->stride[p->nd - 1] > 1 && channels >= 32 && columns >= 8);
}

static void gni_conv_last_of(gni_conv_last *j, const gni_conv_plan *p) {
    memset(j, 0, sizeof *j);
    j->n = p->n;
    j->groups = p->groups;
    for (int a = 0; a < 3; a++) {
        j->have[a] = j->size[a] = j->kernel[a] = j->out[a] = j->step[a] = j->stride[a] = 1;
        j->of[a][0].taps = j->of[a][0].spread = j->of[a][0].by = 1;
    }
    for (int i = 0, a = 3 - p->nd; i < p->nd; i++, a++) {
        gni_conv_taps *f = &j->of[a][0];
        j->have[a] = p->in[i];
        j->before[a] = p->pad[i];
        j->size[a] = (p->out[i] - 1) * p->stride[i] + (p->k[i] - 1) * p->dilation[i] + 1;
        j->out[a] = p->out[i];
        j->stride[a] = p->stride[i];
        j->kernel[a] = f->taps = p->k[i];
        f->spread = p->dilation[i];
    }
    j->c = p->c;
    j->o = p->o / p->groups;
    j->each = gni_conv_is_depthwise(p);
    if (!j->each) return;
    j->groups = 1;
    j->o = p->o;
}

// Places of x take what comes in from y.
static void gni_conv_last_back(gni_conv_last *j, const gni_conv_plan *p) {
    gni_conv_last_of(j, p);
    j->turned = !j->each;
    if (j->turned) {
        j->c = p->o / p->groups;
        j->o = p->c;
    }
    for (int i = 0, a = 3 - p->nd; i < p->nd; i++, a++) {
        int64_t before = INT64_MIN / 2, behind = INT64_MIN / 2;
        for (int64_t begin = 0; begin < p->stride[i]; begin++) {
            const gni_conv_phase f = gni_conv_phase_of(p, i, begin);
            gni_conv_taps *to = &j->of[a][begin];
            to->first = -f.before;
            to->taps = f.taps;
            to->spread = f.spread;
            to->at = f.first + (f.taps - 1) * f.step;
            to->by = -f.step;
            if (f.taps == 0 || begin >= p->in[i]) continue;
            before = GNI_MAX(before, f.before);
            behind = GNI_MAX(behind, f.count + (f.taps - 1) * f.spread - f.before);
        }
        if (before < INT64_MIN / 4) before = behind = 0;
        for (int64_t begin = 0; begin < p->stride[i]; begin++) j->of[a][begin].first += before;
        j->have[a] = p->out[i];
        j->before[a] = before;
        j->size[a] = GNI_MAX(before + behind, 1);
        j->out[a] = p->in[i];
        j->step[a] = p->stride[i];
        j->stride[a] = 1;
    }
}

// x (or y, for the gradient of x) and w, or with gy the gradient of w, of shape s.
static gn_array *gni_conv_last_of_arrays(gn_context *g, gni_conv_last *j, gn_array *x, gn_array *w, gn_array *gy,
                                          gn_shape s) {
    void *data = NULL, *room = NULL;
    gn_array *in[3];
    in[0] = gni_conv_packed(g, x);
    in[1] = w != NULL ? gni_conv_packed(g, w) : NULL;
    in[2] = gy != NULL ? gni_conv_packed(g, gy) : NULL;
    if (in[0] == NULL || (w != NULL && in[1] == NULL) || (gy != NULL && in[2] == NULL)) return NULL;
    j->x = (const float *)gni_host(g, in[0]);
    if (w != NULL) j->w = (const float *)gni_host(g, in[1]);
    if (gy != NULL) j->gy = (const float *)gni_host(g, in[2]);
    if (g->call_failed) return NULL;
    gni_conv_last_begin(g, j);
    const gn_shape floats = GN_SHAPE(gni_conv_last_room(g, j, NULL));
    gn_array *y = gni_adopt(g, gni_array_filled(g, g->call, GN_F32, &s, &data));
    gn_array *rooms = gni_adopt(g, gni_array_filled(g, g->call, GN_F32, &floats, &room));
    if (y == NULL || rooms == NULL) return NULL;
    j->y = (float *)data;
    gni_conv_last_room(g, j, (float *)room);
    gni_conv_last_run(g, j);
    return y;
}

// y of x and w. *image, where that is not NULL: what windows of x were read from, if the gradient of w can read it too.
static gn_array *gni_conv_forward(gn_context *g, const gni_conv_plan *p, gn_array *x, gn_array *w, gn_array **image) {
    gni_conv d;
    const gn_shape s = gni_conv_shape(p, p->n, p->o, p->out);
    if (x == NULL || w == NULL) return NULL;
    gn_array *y = NULL;
    if (gni_elements(&s) == 0) return gn_zeros(g, x->dtype, s);
    if (gni_elements(&w->shape) > 0 && gni_conv_deep(g, p, GNI_DEPTH_FORWARD, x, w, &y)) return y;
    if (g->call_failed) return NULL;
    if (gni_elements(&w->shape) > 0 && !gni_conv_is_product(p, x->dtype) &&
        gni_conv_direct(g, p, w, x, p->o / p->groups, p->c, 2)) {
        const gn_placement asked = g->placement;
        g->placement = GN_PLACE_GPU;
#if GNI_GPU
        gni_winograd by;
        if (gni_conv_by_tiles(g, p, x->dtype, false, &by)) {
            y = gni_winograd_forward(g, &by, x, w, image);
            g->placement = asked;
            return y;
        }
#endif
        gni_conv_parts parts = gni_conv_parts_of_forward(g, p, x->dtype);
        x = gni_conv_frame_image(g, p, x, &parts);
        y = x == NULL ? NULL : gni_conv_direct_forward(g, p, x, p->pad, w, NULL, &parts);
        if (image != NULL) *image = x;
        g->placement = asked;
        return y;
    }
    if (gni_elements(&w->shape) > 0 &&
        gni_conv_last_pays(g, p, x->dtype, p->c, p->o / p->groups, p->out[p->nd - 1])) {
        gni_conv_last j;
        gni_conv_last_of(&j, p);
        return gni_conv_last_of_arrays(g, &j, x, w, NULL, s);
    }
    gni_conv_ones(&d);
    const bool beside = gni_conv_beside(g, p, x->dtype);
    x = beside ? gni_conv_combed(g, p, x, &d) : gni_conv_packed(g, gni_conv_framed(p, x));
    w = gni_conv_packed(g, w);
    if (x == NULL || w == NULL) return NULL;
    const int64_t taps = gni_conv_count(p->k, p->nd), places = gni_conv_count(p->out, p->nd);
    d.m = p->o / p->groups;
    d.k = p->c * taps;
    d.n = places;
    d.a_rs = d.k;
    d.a_cs = 1;
    const bool one = !gni_conv_apart(p) && !beside;
    d.batch_dim[0] = one ? 1 : p->n;
    d.b_batch[0] = x->stride[0];
    d.batch_dim[1] = p->groups;
    d.a_batch[1] = d.m * d.k;
    d.b_batch[1] = p->c * x->stride[1];
    if (one) d.n *= d.n_dim[0] = p->n;
    d.b_n[0] = x->stride[0];
    d.k_dim[0] = p->c;
    d.b_k[0] = x->stride[1];
    for (int i = 0; i < p->nd; i++) {
        d.n_dim[1 + i] = p->out[i];
        d.b_n[1 + i] = p->stride[i] * x->stride[2 + i];
        d.k_dim[1 + i] = p->k[i];
        d.b_k[1 + i] = p->dilation[i] * x->stride[2 + i];
    }
    if (d.comb != 0) {
        d.b_n[p->nd] = 1;
        d.b_k[p->nd] = 0;
    }
    y = gni_conv_run(g, &d, w, x);
    if (one) y = gn_move_axis(gn_reshape(y, GN_SHAPE(p->groups, d.m, p->n, places)), 2, 0);
    return gn_reshape(y, s);
}

// ---- transposed: for each remainder of the places by the stride a convolution of its own

// w (o, c, k...) with the taps of the phases, turned round, as (groups * c, o / groups, k...).
static gn_array *gni_conv_turned(const gni_conv_plan *p, gn_array *w, const gni_conv_phase *f) {
    gn_shape s = GN_SHAPE(p->groups, p->o / p->groups, p->c);
    for (int i = 0; i < p->nd; i++) {
        const int64_t last = f[i].first + (f[i].taps - 1) * f[i].step;
        w = gn_slice(w, 2 + i, last, f[i].first > 0 ? f[i].first - 1 : GN_NONE, -f[i].step);
        s.dim[s.rank++] = f[i].taps;
    }
    int64_t taps[3] = {0, 0, 0};
    for (int i = 0; i < p->nd; i++) taps[i] = f[i].taps;
    if (p->groups == 1) return gn_swap_axes(w, 0, 1);
    w = gn_swap_axes(gn_reshape(w, s), 1, 2);
    return gn_reshape(w, gni_conv_shape(p, p->groups * p->c, p->o / p->groups, taps));
}

// What y's image has to hold for the phases of all places.
static gn_array *gni_conv_phases_image(gn_context *g, const gni_conv_plan *p, gn_array *y, int64_t *before,
                                       gni_conv_parts *s) {
    int64_t size[3];
    for (int i = 0; i < p->nd; i++) {
        int64_t behind = INT64_MIN / 2;
        before[i] = INT64_MIN / 2;
        for (int64_t begin = 0; begin < GNI_MIN(p->stride[i], p->in[i]); begin++) {
            const gni_conv_phase f = gni_conv_phase_of(p, i, begin);
            if (f.taps == 0) continue;
            before[i] = GNI_MAX(before[i], f.before);
            behind = GNI_MAX(behind, f.count + (f.taps - 1) * f.spread - f.before);
        }
        if (before[i] < INT64_MIN / 4) before[i] = behind = 0; // no place has a tap
        size[i] = GNI_MAX(before[i] + behind, 1);
    }
    const int64_t width = gni_conv_width(p->o / p->groups, gni_conv_item(g, y->dtype), s);
    return gni_conv_image(g, y, before, size, width * p->groups, s, 1);
}

// The convolution of y that a phase is.
static gni_conv_plan gni_conv_plan_of_phase(const gni_conv_plan *p, const gni_conv_phase *f) {
    gni_conv_plan q = *p;
    q.c = p->o / p->groups;
    q.o = p->groups * p->c;
    for (int i = 0; i < p->nd; i++) {
        q.stride[i] = 1;
        q.dilation[i] = f[i].spread;
        q.pad[i] = f[i].before;
        q.in[i] = p->out[i];
        q.k[i] = f[i].taps;
        q.out[i] = f[i].count;
    }
    return q;
}

// What comes in on the places of one phase of each axis; with `before` y is an image that begins so many places earlier, and
// the result is put into `to` if that is not NULL.
static gn_array *gni_conv_of_phase(gn_context *g, const gni_conv_plan *p, gn_array *y, const int64_t *before, gn_array *w,
                                   const gni_conv_phase *f, gn_array *to, gni_conv_parts *parts) {
    const gni_conv_plan q = gni_conv_plan_of_phase(p, f);
    w = gni_conv_turned(p, w, f);
    return before == NULL ? gni_conv_forward(g, &q, y, w, NULL)
           : w == NULL    ? NULL
                          : gni_conv_direct_forward(g, &q, y, before, w, to, parts);
}

// Phases that have taps. 0: axes do not come in whole steps of the stride.
static int64_t gni_conv_with_taps(const gni_conv_plan *p) {
    int64_t all = 1;
    for (int i = 0; i < p->nd; i++) {
        int64_t n = 0;
        for (int64_t begin = 0; begin < p->stride[i]; begin++) n += gni_conv_phase_of(p, i, begin).taps > 0;
        all *= p->in[i] % p->stride[i] == 0 ? n : 0;
    }
    return all;
}

// Room for the phases of x, one behind the other: (phase of the last axis, ..., of the first, n, channels, places...). NULL
// where most phases have no tap.
static gn_array *gni_conv_phases_room(gn_context *g, const gni_conv_plan *p, gn_dtype t, int64_t phases, int64_t with_taps) {
    gn_shape s = GN_SHAPE(phases, p->n, p->groups * p->c);
    for (int i = 0; i < p->nd; i++) s.dim[s.rank++] = p->in[i] / p->stride[i];
    if (2 * with_taps < phases || 2 + 2 * p->nd > GN_MAX_RANK) return NULL;
    return with_taps < phases ? gn_eval(gn_zeros(g, t, s)) : gni_adopt(g, gni_array_empty(g, "convolution", t, &s));
}

// x of its phases as they lie there.
static gn_array *gni_conv_woven(gn_context *g, const gni_conv_plan *p, gn_array *room, const gn_shape *x) {
    gn_shape s = GN_SHAPE(p->n, p->groups * p->c);
    int64_t stride[GN_MAX_RANK], phase = room->stride[0];
    stride[0] = room->stride[1];
    stride[1] = room->stride[2];
    for (int i = 0; i < p->nd; i++) {
        stride[s.rank] = room->stride[3 + i];
        s.dim[s.rank++] = room->shape.dim[3 + i];
        stride[s.rank] = phase;
        s.dim[s.rank++] = p->stride[i];
        phase *= p->stride[i];
    }
    return gn_reshape(gni_adopt(g, gni_array_view(g, "convolution", room, &s, stride, room->offset)), *x);
}

// x of the only phase that has taps, with zeros between its places.
static gn_array *gni_conv_spread(gn_context *g, const gni_conv_plan *p, gn_array *part, const gni_conv_phase *f,
                                 const gn_shape *x) {
    gn_shape s = GN_SHAPE(p->n, p->groups * p->c), of_mask = GN_SHAPE(1, 1);
    int64_t stride[GN_MAX_RANK], at = 0;
    void *mask = NULL;
    if (part == NULL || !gni_materialize(g, part)) return NULL;
    stride[0] = part->stride[0];
    stride[1] = part->stride[1];
    for (int i = 0; i < p->nd; i++) {
        at = at * p->stride[i] + f[i].begin;
        stride[s.rank] = part->stride[2 + i];
        s.dim[s.rank++] = part->shape.dim[2 + i];
        stride[s.rank] = 0;
        s.dim[s.rank++] = p->stride[i];
        of_mask.dim[of_mask.rank++] = 1;
        of_mask.dim[of_mask.rank++] = p->stride[i];
    }
    gn_array *is = gni_adopt(g, gni_array_filled(g, "convolution", GN_BOOL, &of_mask, &mask));
    if (is == NULL) return NULL;
    memset(mask, 0, gn_bytes(is));
    ((uint8_t *)mask)[at] = 1;
    part = gni_adopt(g, gni_array_view(g, "convolution", part, &s, stride, part->offset));
    return gn_reshape(gn_where(is, part, gn_scalar(g, part->dtype, 0.0)), *x);
}

// The gradient of x from that of y.
static gn_array *gni_conv_back(gn_context *g, const gni_conv_plan *p, gn_array *y, gn_array *w) {
    const gn_shape s = gni_conv_shape(p, p->n, p->groups * p->c, p->in);
    int64_t begins[3], before[3];
    bool whole = true;
    gn_array *x = NULL, *room = NULL;
    gni_conv_phase f[3];
    if (gni_elements(&s) == 0 || p->o == 0 || gni_conv_count(p->out, p->nd) == 0) return gn_zeros(g, y->dtype, s);
    if (gni_conv_deep(g, p, GNI_DEPTH_BACK, y, w, &x)) return x;
    if (g->call_failed) return NULL;
    for (int i = 0; i < p->nd; i++) {
        begins[i] = GNI_MIN(p->stride[i], p->in[i]); // behind x none begins
        whole = whole && p->stride[i] == 1;
    }
    if (gni_conv_last_pays(g, p, y->dtype, p->o / p->groups, p->c, p->in[p->nd - 1])) {
        gni_conv_last j;
        gni_conv_last_back(&j, p);
        return gni_conv_last_of_arrays(g, &j, y, w, NULL, s);
    }
    const int64_t phases = gni_conv_count(begins, p->nd);
    const gn_placement asked = g->placement;
    const bool direct = phases <= 64 && gni_conv_direct(g, p, y, w, p->c, p->o / p->groups, 2);
    if (direct && whole) {
        for (int i = 0; i < p->nd; i++) f[i] = gni_conv_phase_of(p, i, 0);
        const gni_conv_plan q = gni_conv_plan_of_phase(p, f);
        gni_winograd by;
        if (gni_conv_by_tiles(g, &q, y->dtype, false, &by)) return gni_conv_of_phase(g, p, y, NULL, w, f, NULL, NULL);
    }
    if (direct) g->placement = GN_PLACE_GPU;
    const int64_t with_taps = direct && !whole ? gni_conv_with_taps(p) : 0;
    const bool lone = with_taps == 1 && phases > 2;
    if (with_taps > 0) room = gni_conv_phases_room(g, p, y->dtype, phases, with_taps);
    if (!whole && !lone && room == NULL) x = gn_eval(gn_zeros(g, y->dtype, s));
    const int64_t each = GNI_MAX(phases, 1), places = gni_conv_count(p->in, p->nd), taps = gni_conv_count(p->k, p->nd);
    gni_conv_parts parts = gni_conv_parts_of(g, p, direct ? y->dtype : GN_F64, p->c, p->n * places / each,
                                             p->o / p->groups * taps / each);
    if (direct) y = gni_conv_phases_image(g, p, y, before, &parts);
    bool ok = y != NULL && (whole || lone || room != NULL || x != NULL);
    for (int64_t phase = 0; phase < phases && ok; phase++) {
        gn_array *place = x;
        bool empty = false;
        int64_t rest = phase;
        for (int i = 0; i < p->nd; i++) {
            f[i] = gni_conv_phase_of(p, i, rest % begins[i]);
            rest /= begins[i];
            empty = empty || f[i].taps == 0;
        }
        if (empty) continue;
        gn_array *to = room != NULL ? gn_slice(room, 0, phase, phase + 1, 1) : NULL;
        gn_array *part =
            room != NULL && to == NULL ? NULL : gni_conv_of_phase(g, p, y, direct ? before : NULL, w, f, to, &parts);
        if (whole) x = part;
        if (lone) {
            x = gni_conv_spread(g, p, part, f, &s);
            ok = x != NULL;
            continue;
        }
        if (room != NULL) {
            ok = part != NULL;
            continue;
        }
        for (int i = 0; i < p->nd && !whole; i++) place = gn_slice(place, 2 + i, f[i].begin, p->in[i], p->stride[i]);
        ok = part != NULL &&
             (whole || (place != NULL && gni_copy_into(g, x->buf, x->dtype, place->offset, place->stride, part)));
    }
    if (ok && room != NULL) x = gni_conv_woven(g, p, room, &s);
    g->placement = asked;
    return ok ? x : NULL;
}

// Whether dots along rows of images beat tiles, whose columns are taps and channels. Multiples of a multiply-add's time at
// its best, measured with AVX2: dots lose what their last vectors lack, tiles pay for packing. With masks (AVX-512) dots are
// faster.
static bool gni_conv_dots_pay(const gn_context *g, const gni_conv_plan *p) {
    const gni_gemm_family *f = gni_gemm_isa_of((int)g->isa)->f32;
    const int64_t out = p->out[p->nd - 1], n = p->c * gni_conv_count(p->k, p->nd);
    const double dots = 3.2 * (double)gni_gemm_round(out, f->lanes) / (double)out,
                 tiles = (1.3 * (double)gni_gemm_round(n, 2 * f->lanes) + 40.0) / (double)n +
                         25.0 * (double)p->groups / (double)p->o;
    return f->clip || dots <= tiles;
}

// The gradient of w from x and that of y as they are.
static gn_array *gni_conv_weight_beside(gn_context *g, const gni_conv_plan *p, gn_array *x, gn_array *y) {
    gni_conv d;
    gni_conv_ones(&d);
    x = gni_conv_combed(g, p, x, &d);
    y = gni_conv_packed(g, y);
    if (x == NULL || y == NULL) return NULL;
    const int64_t places = gni_conv_count(p->out, p->nd);
    d.m = p->o / p->groups;
    d.k = p->n * places;
    d.n = p->c * gni_conv_count(p->k, p->nd);
    d.a_rs = places;
    d.a_jump = p->o * places;
    d.batch_dim[1] = p->groups;
    d.a_batch[1] = d.m * places;
    d.b_batch[1] = p->c * x->stride[1];
    d.k_dim[0] = p->n;
    d.b_k[0] = x->stride[0];
    d.n_dim[0] = p->c;
    d.b_n[0] = x->stride[1];
    for (int i = 0; i < p->nd; i++) {
        d.k_dim[1 + i] = p->out[i];
        d.b_k[1 + i] = p->stride[i] * x->stride[2 + i];
        d.n_dim[1 + i] = p->k[i];
        d.b_n[1 + i] = p->dilation[i] * x->stride[2 + i];
    }
    if (d.comb != 0) {
        d.b_k[p->nd] = 1;
        d.b_n[p->nd] = 0;
    }
    return gn_reshape(gni_conv_run(g, &d, y, x), gni_conv_shape(p, p->o, p->c, p->k));
}

// The gradient of w from x and that of y: channels last, so that neighbours are what the columns run over. `image`: x's, or
// NULL.
static gn_array *gni_conv_weight(gn_context *g, const gni_conv_plan *p, gn_array *x, gn_array *y, gn_array *image) {
    gni_conv d;
    const gn_shape s = gni_conv_shape(p, p->o, p->c, p->k), of_y = gni_conv_shape(p, p->n, p->o, p->out);
    gn_array *w = NULL;
    if (gni_elements(&s) == 0 || gni_elements(&of_y) == 0) return gn_zeros(g, x->dtype, s);
    if (gni_conv_deep(g, p, GNI_DEPTH_WEIGHT, x, y, &w)) return w;
    if (g->call_failed) return NULL;
    if (gni_conv_direct(g, p, y, x, p->o / p->groups, p->c, 3)) {
        const gn_placement asked = g->placement;
        g->placement = GN_PLACE_GPU;
        w = gni_conv_direct_weight(g, p, x, y, image);
        g->placement = asked;
        return w;
    }
    const int64_t columns = p->o / p->groups, line = gni_conv_last_line(g, p, x->dtype, p->c);
    if (line * columns >= 320 ? p->groups == 1 || columns % 32 == 0 : line >= 16 && gni_conv_is_depthwise(p)) {
        gni_conv_last j;
        gni_conv_last_of(&j, p);
        return gni_conv_last_of_arrays(g, &j, x, NULL, y, s);
    }
    if (gni_conv_beside(g, p, x->dtype) && gni_conv_dots_pay(g, p)) return gni_conv_weight_beside(g, p, x, y);
    gni_conv_ones(&d);
    x = gni_conv_packed(g, gn_move_axis(gni_conv_framed(p, x), 1, -1));
    y = gni_conv_packed(g, gn_move_axis(y, 1, -1));
    if (x == NULL || y == NULL) return NULL;
    const int64_t taps = gni_conv_count(p->k, p->nd), places = gni_conv_count(p->out, p->nd);
    d.m = p->o / p->groups;
    d.k = p->n * places;
    d.n = taps * p->c;
    d.a_rs = 1;
    d.a_cs = p->o;
    d.batch_dim[1] = p->groups;
    d.a_batch[1] = d.m;
    d.b_batch[1] = p->c;
    d.k_dim[0] = p->n;
    d.b_k[0] = x->stride[0];
    d.n_dim[3] = p->c;
    d.b_n[3] = 1;
    for (int i = 0; i < p->nd; i++) {
        d.k_dim[1 + i] = p->out[i];
        d.b_k[1 + i] = p->stride[i] * x->stride[1 + i];
        d.n_dim[i] = p->k[i];
        d.b_n[i] = p->dilation[i] * x->stride[1 + i];
    }
    w = gni_conv_run(g, &d, y, x);
    w = gn_move_axis(gn_reshape(w, GN_SHAPE(p->o, taps, p->c)), 2, 1);
    return gn_reshape(w, s);
}

// ---- the record

typedef enum gni_conv_kind { GNI_CONV_FORWARD, GNI_CONV_BACK, GNI_CONV_WEIGHT } gni_conv_kind;
static bool gni_back_conv(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);

// Whether x's image stays in memory until the gradient of w reads it: while most of the device's is free.
static bool gni_conv_keeps(gn_context *g, gn_array *w) {
    return g->gpu != NULL && gni_tracks(g, &w, 1) && gni_gpu_roomy(g->gpu);
}

// Forward of x and w, back of y and w, weight of x and y; entered in the record. `image`: x's, or NULL.
static gn_array *gni_conv_op(gn_context *g, gni_conv_kind kind, const gni_conv_plan *p, gn_array *a, gn_array *b,
                             gn_array *image) {
    if (a == NULL || b == NULL) return NULL;
    gn_array *in[3] = {a, b, NULL};
    const bool keeps = kind == GNI_CONV_FORWARD && gni_conv_keeps(g, b);
    const gn_placement asked = g->placement;
    gn_array *y;
    g->no_grad++; // recorded as one op
    g->trying = !GNI_CPU_ALONE && g->gpu != NULL && asked != GN_PLACE_GPU && !g->host_recording && !g->call_failed;
    for (;;) {
        y = kind == GNI_CONV_FORWARD ? gni_conv_forward(g, p, a, b, keeps ? &in[2] : NULL)
            : kind == GNI_CONV_BACK  ? gni_conv_back(g, p, a, b)
                                     : gni_conv_weight(g, p, a, b, image);
        if (!g->trying || !g->call_failed) break;
        // Images that only a GPU makes found no room there.
        g->trying = g->call_failed = false;
        g->placement = GN_PLACE_CPU;
        in[2] = NULL;
        gni_log(g, GN_LOG_INFO, "convolution runs on the CPU: device memory is full");
    }
    g->trying = false;
    g->placement = asked;
    g->no_grad--;
    gni_node *node = gni_record(g, y, "convolution", gni_back_conv, in, 3);
    if (node == NULL) return y;
    for (int i = 0; i < 3; i++) {
        node->param[i] = p->stride[i];
        node->param[3 + i] = p->pad[i];
        node->param[6 + i] = p->dilation[i];
    }
    node->param[9] = p->groups;
    node->param[10] = (int64_t)kind;
    return y;
}

static void gni_conv_sizes(int64_t *to, const gn_array *a, int nd) {
    for (int i = 0; i < nd; i++) to[i] = a->shape.dim[2 + i];
}

static bool gni_back_conv(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    const gni_conv_kind kind = (gni_conv_kind)node->param[10];
    gn_array *x = kind == GNI_CONV_BACK ? gy : node->in[0], *w = kind == GNI_CONV_WEIGHT ? gy : node->in[1],
             *y = kind == GNI_CONV_FORWARD ? gy : node->in[kind == GNI_CONV_BACK ? 0 : 1];
    GNI_ZEROED(gni_conv_plan, p);
    p.nd = x->shape.rank - 2;
    for (int i = 0; i < 3; i++) {
        p.stride[i] = node->param[i];
        p.pad[i] = node->param[3 + i];
        p.dilation[i] = node->param[6 + i];
    }
    p.groups = node->param[9];
    p.n = x->shape.dim[0];
    p.o = w->shape.dim[0];
    p.c = w->shape.dim[1];
    gni_conv_sizes(p.in, x, p.nd);
    gni_conv_sizes(p.k, w, p.nd);
    gni_conv_sizes(p.out, y, p.nd);
    const int at_x = kind == GNI_CONV_BACK ? -1 : 0, at_w = kind == GNI_CONV_WEIGHT ? -1 : 1,
              at_y = kind == GNI_CONV_FORWARD ? -1 : kind == GNI_CONV_BACK ? 0 : 1;
    if (at_x >= 0 && gni_wanted(node, at_x)) gx[at_x] = gni_conv_op(g, GNI_CONV_BACK, &p, y, w, NULL);
    if (at_w >= 0 && gni_wanted(node, at_w)) gx[at_w] = gni_conv_op(g, GNI_CONV_WEIGHT, &p, x, y, node->in[2]);
    if (at_y >= 0 && gni_wanted(node, at_y)) gx[at_y] = gni_conv_op(g, GNI_CONV_FORWARD, &p, x, w, NULL);
    return true;
}

// ---- the public functions

// The numbers of one option by axis; false where they are not between `least` and what fits in 32 bits.
static bool gni_conv_option(gn_context *g, const char *fn, const char *name, int64_t all, const int64_t *each, int64_t least,
                            int64_t *to) {
    const bool by_axis = each[0] != 0 || each[1] != 0 || each[2] != 0;
    for (int i = 0; i < 3; i++) {
        to[i] = by_axis ? each[i] : all;
        if (to[i] == 0) to[i] = least;
        if (to[i] >= least && to[i] <= INT32_MAX) continue;
        return gni_fail(g, GN_ERROR_ARGUMENT, "%s: %s %lld", fn, name, (long long)to[i]);
    }
    return true;
}

static bool gni_conv_misfit(gn_context *g, const char *fn, const gn_array *x, const gn_array *w, const gn_array *b,
                            const char *why) {
    char tx[200], tw[200], tb[200];
    return gni_fail(g, GN_ERROR_SHAPE, "%s: x %s, w %s, b %s: %s", fn, gni_shape_text(tx, sizeof tx, &x->shape),
                    gni_shape_text(tw, sizeof tw, &w->shape), b != NULL ? gni_shape_text(tb, sizeof tb, &b->shape) : "none",
                    why);
}

// Fills p for x (n, ...) with `nd` spatial axes.
static bool gni_conv_fits(gn_context *g, const char *fn, const gn_array *x, const gn_array *w, const gn_array *b,
                          const gn_conv_options *o, bool transposed, gni_conv_plan *p) {
    int64_t more[3];
    const int64_t groups = p->groups = o->groups == 0 ? 1 : o->groups;
    if (!gni_conv_option(g, fn, "stride", o->stride, o->strides, 1, p->stride) ||
        !gni_conv_option(g, fn, "pad", o->pad, o->pads, 0, p->pad) ||
        !gni_conv_option(g, fn, "dilation", o->dilation, o->dilations, 1, p->dilation) ||
        !gni_conv_option(g, fn, "output pad", o->output_pad, o->output_pads, 0, more))
        return false;
    const int64_t from = x->shape.dim[1], of = w->shape.dim[0], to = w->shape.dim[1];
    if (groups < 1 || from % groups != 0 || of % groups != 0 || (transposed ? of != from : to != from / groups))
        return gni_conv_misfit(g, fn, x, w, b, "the channels do not fit");
    if (transposed && to > INT64_MAX / groups) return gni_conv_misfit(g, fn, x, w, b, "too many channels");
    p->n = x->shape.dim[0];
    p->c = to;
    p->o = of;
    const int64_t result = transposed ? to * groups : of;
    if (b != NULL && (b->shape.rank != 1 || b->shape.dim[0] != result))
        return gni_conv_misfit(g, fn, x, w, b, "b has not one number for each channel of the result");
    for (int i = 0; i < p->nd; i++) {
        const int64_t k = p->k[i] = w->shape.dim[2 + i], size = x->shape.dim[2 + i];
        if (k < 1 || k > INT32_MAX) return gni_conv_misfit(g, fn, x, w, b, "an empty or too large kernel");
        if (size > INT64_MAX / 4) return gni_conv_misfit(g, fn, x, w, b, "too large an image");
        const int64_t reach = (k - 1) * p->dilation[i];
        if (o->same && (transposed || p->stride[i] != 1 || p->pad[i] != 0))
            return gni_fail(g, GN_ERROR_ARGUMENT, "%s: 'same' with a stride or a pad", fn);
        if (transposed && more[i] >= GNI_MAX(p->stride[i], p->dilation[i]))
            return gni_fail(g, GN_ERROR_ARGUMENT, "%s: output pad %lld, not below stride or dilation", fn,
                            (long long)more[i]);
        if (transposed) {
            if (size > INT32_MAX) return gni_conv_misfit(g, fn, x, w, b, "too large an image");
            p->out[i] = size;
            p->in[i] = (size - 1) * p->stride[i] - 2 * p->pad[i] + reach + more[i] + 1;
        } else {
            p->in[i] = size;
            if (o->same) p->pad[i] = reach / 2;
            p->out[i] = o->same ? size : (size + 2 * p->pad[i] - reach - 1) / p->stride[i] + 1;
        }
        if ((transposed ? p->in[i] : size + 2 * p->pad[i] - (o->same ? 0 : reach)) < 1)
            return gni_conv_misfit(g, fn, x, w, b, "nothing is left of the image");
    }
    return true;
}

static gn_array *gni_conv_public(const char *fn, gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options,
                                 int nd, bool transposed) {
    static const gn_conv_options none = {0, 0, 0, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 0, false, 0, {0, 0, 0}};
    const gn_conv_options *o = options != NULL ? options : &none;
    gn_array *in[3], *y = NULL;
    GNI_ZEROED(gni_conv_plan, p);
    in[0] = x;
    in[1] = w;
    in[2] = b;
    gn_context *g = gni_begin_scope(fn, in, b != NULL ? 3 : 2);
    if (g == NULL) return NULL;
    if (gni_autocasts(g, in, b != NULL ? 3 : 2)) {
        gni_autocast_all(g, in, b != NULL ? 3 : 2);
        return gni_end_scope(g, gni_conv_public(fn, in[0], in[1], in[2], options, nd, transposed));
    }
    const bool single = x->shape.rank == nd + 1;
    p.nd = nd;
    if (!gni_need_float(g, fn, x->dtype) || !gni_need_float(g, fn, w->dtype) ||
        (b != NULL && !gni_need_float(g, fn, b->dtype)))
        return gni_end_scope(g, NULL);
    if ((!single && x->shape.rank != nd + 2) || w->shape.rank != nd + 2) {
        gni_conv_misfit(g, fn, x, w, b, nd == 1 ? "not of rank 3" : nd == 2 ? "not of rank 4" : "not of rank 5");
        return gni_end_scope(g, NULL);
    }
    if (single) x = gn_expand_dims(x, 0);
    if (x == NULL || !gni_conv_fits(g, fn, x, w, b, o, transposed, &p)) return gni_end_scope(g, NULL);
    const gn_dtype t = gn_promote(x->dtype, w->dtype);
    const gn_shape s = gni_conv_shape(&p, p.n, transposed ? p.c * p.groups : p.o, transposed ? p.in : p.out);
    if (!gni_shape_ok(g, fn, t, &s)) return gni_end_scope(g, NULL);
    if (x->dtype != t) x = gn_cast(x, t);
    if (w->dtype != t) w = gn_cast(w, t);
    y = gni_conv_op(g, transposed ? GNI_CONV_BACK : GNI_CONV_FORWARD, &p, x, w, NULL);
    if (b != NULL) {
        gn_shape row = GN_SHAPE(b->shape.dim[0]);
        for (int i = 0; i < nd; i++) row.dim[row.rank++] = 1;
        y = gn_add(y, gn_reshape(b, row));
    }
    return gni_end_scope(g, single ? gn_squeeze(y, 0) : y);
}

GPUNUM_API gn_array *gn_conv1d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options) {
    return gni_conv_public("gn_conv1d", x, w, b, options, 1, false);
}
GPUNUM_API gn_array *gn_conv2d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options) {
    return gni_conv_public("gn_conv2d", x, w, b, options, 2, false);
}
GPUNUM_API gn_array *gn_conv3d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options) {
    return gni_conv_public("gn_conv3d", x, w, b, options, 3, false);
}
GPUNUM_API gn_array *gn_conv_transpose1d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options) {
    return gni_conv_public("gn_conv_transpose1d", x, w, b, options, 1, true);
}
GPUNUM_API gn_array *gn_conv_transpose2d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options) {
    return gni_conv_public("gn_conv_transpose2d", x, w, b, options, 2, true);
}
GPUNUM_API gn_array *gn_conv_transpose3d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options) {
    return gni_conv_public("gn_conv_transpose3d", x, w, b, options, 3, true);
}
