// >>pool
// Pooling and images of another size, made of other ops. A tap is what all windows have at one of their places. Nothing here
// is used elsewhere.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../grad/gradients.h"
#include "../grad/conv.h"
#endif

// Of x as (n, c, in...), y (n, c, out...). Adaptive: windows begin at in * i / out.
typedef struct gni_pooled_plan {
    int64_t in[2], out[2], size[2], stride[2], pad[2], dilation[2];
    bool adaptive, inside;
} gni_pooled_plan;

static int64_t gni_pooled_begin(const gni_pooled_plan *p, int axis, int64_t i) {
    return p->adaptive ? i * p->in[axis] / p->out[axis] : i * p->stride[axis] - p->pad[axis];
}

// Behind the window's last element, x's border not regarded.
static int64_t gni_pooled_end(const gni_pooled_plan *p, int axis, int64_t i) {
    if (p->adaptive) return ((i + 1) * p->in[axis] + p->out[axis] - 1) / p->out[axis];
    return gni_pooled_begin(p, axis, i) + (p->size[axis] - 1) * p->dilation[axis] + 1;
}

// Whether windows lie side by side and cover all of x but an end.
static bool gni_pooled_tiles(const gni_pooled_plan *p) {
    bool tiles = !p->adaptive;
    for (int i = 0; i < 2 && tiles; i++)
        tiles = p->stride[i] == p->size[i] && p->pad[i] == 0 && p->dilation[i] == 1 && p->out[i] * p->size[i] <= p->in[i];
    return tiles;
}

// Where the windows begin: a column for axis 0, a row for axis 1.
static gn_array *gni_pooled_begins(gn_context *g, const gni_pooled_plan *p, int axis, gn_dtype t) {
    void *data = NULL;
    const gn_shape s = axis == 0 ? GN_SHAPE(p->out[0], 1) : GN_SHAPE(p->out[1]);
    gn_array *y = gni_array_filled(g, g->call, t, &s, &data);
    for (int64_t i = 0; i < p->out[axis] && y != NULL; i++)
        gni_put_int(t, (char *)data + i * (int64_t)gn_dtype_size(t), gni_pooled_begin(p, axis, i));
    return gni_adopt(g, y);
}

// Rows or columns of x that are the tap's, for windows of several sizes: their last one stands for what lies behind it.
static gn_array *gni_pooled_gather(gn_context *g, const gni_pooled_plan *p, gn_array *x, int axis, int64_t tap) {
    void *data = NULL;
    const gn_shape s = GN_SHAPE(p->out[axis]);
    gn_array *index = gni_array_filled(g, g->call, GN_I64, &s, &data);
    for (int64_t i = 0; i < p->out[axis] && index != NULL; i++)
        ((int64_t *)data)[i] = GNI_MIN(gni_pooled_begin(p, axis, i) + tap, gni_pooled_end(p, axis, i) - 1);
    return gn_take(x, gni_adopt(g, index), 2 + axis);
}

// Tap number t; x is framed already where windows are of one size.
static gn_array *gni_pooled_tap(gn_context *g, const gni_pooled_plan *p, gn_array *x, int64_t t) {
    const int64_t at[2] = {t / p->size[1], t % p->size[1]};
    for (int i = 0; i < 2; i++) {
        const int64_t from = at[i] * p->dilation[i];
        x = p->adaptive ? gni_pooled_gather(g, p, x, i, at[i])
                        : gn_slice(x, 2 + i, from, from + (p->out[i] - 1) * p->stride[i] + 1, p->stride[i]);
    }
    return x;
}

static gn_array *gni_pooled_framed(const gni_pooled_plan *p, gn_array *x, double value) {
    int64_t size[2];
    if (p->adaptive) return x;
    for (int i = 0; i < 2; i++) size[i] = gni_pooled_end(p, i, p->out[i] - 1) + p->pad[i];
    return gni_conv_frame(x, 2, p->pad, size, value);
}

// ---- the largest

// The pad is nowhere the largest, or all are -inf: then it is the first place in x.
static gn_array *gni_pooled_inside(gn_array *at, int64_t dilation, int64_t n) {
    return gn_clamp(dilation > 1 ? gn_maximum(at, gn_mod_s(at, (double)dilation)) : at, 0.0, (double)(n - 1));
}

// Where the taps are in x, as offsets in its images: int32, where these fit, which every GPU has.
static gn_array *gni_pooled_places(gn_context *g, const gni_pooled_plan *p, gn_array *taps) {
    const gn_dtype as = p->in[0] * p->in[1] > INT32_MAX / 2 ? GN_I64 : GN_I32;
    gn_array *t = gn_cast(taps, as), *row = gn_floor_div_s(t, (double)p->size[1]);
    gn_array *column = gn_sub(t, gn_mul_s(row, (double)p->size[1]));
    row = gn_add(gn_mul_s(row, (double)p->dilation[0]), gni_pooled_begins(g, p, 0, as));
    column = gn_add(gn_mul_s(column, (double)p->dilation[1]), gni_pooled_begins(g, p, 1, as));
    row = gni_pooled_inside(row, p->dilation[0], p->in[0]);
    column = gni_pooled_inside(column, p->dilation[1], p->in[1]);
    return gn_add(gn_mul_s(row, (double)p->in[1]), column);
}

static void gni_pooled_keep(gni_node *node, const gni_pooled_plan *p) {
    for (int i = 0; i < 2; i++) {
        node->param[i] = p->size[i];
        node->param[2 + i] = p->stride[i];
        node->param[4 + i] = p->pad[i];
        node->param[6 + i] = p->dilation[i];
    }
    node->param[8] = p->adaptive;
    node->param[9] = p->inside;
}

static void gni_pooled_recall(const gni_node *node, gni_pooled_plan *p) {
    for (int i = 0; i < 2; i++) {
        p->in[i] = node->in[0]->shape.dim[2 + i];
        p->out[i] = node->output->shape.dim[2 + i];
        p->size[i] = node->param[i];
        p->stride[i] = node->param[2 + i];
        p->pad[i] = node->param[4 + i];
        p->dilation[i] = node->param[6 + i];
    }
    p->adaptive = node->param[8] != 0;
    p->inside = node->param[9] != 0;
}

// y's elements, spread over the windows of which each lies side by side with the next: (n, c, out, size, out, size) as x's
// shape.
static gn_array *gni_pooled_spread(const gni_pooled_plan *p, gn_array *each, const gn_shape *s) {
    const int64_t none[2] = {0, 0};
    const gn_shape covered = GN_SHAPE(s->dim[0], s->dim[1], p->out[0] * p->size[0], p->out[1] * p->size[1]);
    return gni_conv_frame(gn_reshape(each, covered), 2, none, p->in, 0.0);
}

// ---- the largest, on a CPU that is alone: image by image

typedef struct gni_pooled_job {
    const gni_pooled_plan *p;
    const float *x, *gy;
    float *y, *gx;
    int32_t *at;
} gni_pooled_job;

enum { GNI_POOLED_TAPS = 256 }; // more than these are not worth an op each

// Whether each window has an element.
static bool gni_pooled_plain(const gn_context *g, const gni_pooled_plan *p, gn_dtype t) {
    return g->gpu == NULL && t == GN_F32 && p->dilation[0] == 1 && p->dilation[1] == 1;
}

// The window's largest element and the number of that tap: the first of equal ones, or of what is NaN.
static float gni_pooled_window(const gni_pooled_plan *p, const float *x, const int64_t from[2], const int64_t to[2],
                               int32_t *at) {
    const int64_t top = GNI_MAX(from[0], 0), bottom = GNI_MIN(to[0], p->in[0]);
    const int64_t left = GNI_MAX(from[1], 0), right = GNI_MIN(to[1], p->in[1]);
    int64_t tap = (top - from[0]) * p->size[1] + left - from[1];
    float most = x[top * p->in[1] + left];
    for (int64_t i = top; i < bottom; i++) {
        const float *row = x + i * p->in[1];
        const int64_t first = (i - from[0]) * p->size[1] - from[1];
        for (int64_t k = left; k < right; k++) {
            const float v = row[k];
            tap += (first + k - tap) & -(int64_t)(v > most); // a jump could not be foreseen
            most = v > most ? v : most;
            if (v != v) { // and stays
                *at = (int32_t)(first + k);
                return v;
            }
        }
    }
    *at = (int32_t)tap;
    return most;
}

// The same for windows of 2 x 2 side by side, which most networks have: a row of results, number n and on, from x on; or its
// gradient.
static void gni_pooled_fours(const gni_pooled_job *j, int64_t x, int64_t n) {
    const int64_t next = j->p->in[1], end = n + j->p->out[1];
    int32_t *at = j->at;
    if (j->gx != NULL) {
        const float *gy = j->gy;
        for (float *gx = j->gx + x; n < end; n++, gx += 2) gx[(at[n] & 1) + (at[n] >> 1) * next] = gy[n];
        return;
    }
    float *y = j->y;
    for (const float *v = j->x + x, *w = v + next; n < end; n++, v += 2, w += 2) {
        const int32_t right = v[1] > v[0], under = w[1] > w[0];
        const float upper = right ? v[1] : v[0], lower = under ? w[1] : w[0], sum = v[0] + v[1] + w[0] + w[1];
        y[n] = lower > upper ? lower : upper;
        at[n] = right + ((2 + under - right) & -(int32_t)(lower > upper)); // a jump could not be foreseen
        for (int32_t i = 3; i >= 0 && sum != sum; i--) {
            const float some = i < 2 ? v[i] : w[i - 2];
            if (some != some) y[n] = some, at[n] = i;
        }
    }
}

static void gni_pooled_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_pooled_job *j = (const gni_pooled_job *)arg;
    const gni_pooled_plan *p = j->p;
    const int64_t size = p->in[0] * p->in[1], out = p->out[0] * p->out[1];
    const bool fours = gni_pooled_tiles(p) && p->size[0] == 2 && p->size[1] == 2;
    GNI_UNUSED(worker);
    for (int64_t q = begin; q < end; q++) {
        int64_t from[2], to[2], n = q * out;
        if (j->gx != NULL) memset(j->gx + q * size, 0, (size_t)size * sizeof(float));
        for (int64_t i = 0; i < p->out[0] && fours; i++) gni_pooled_fours(j, q * size + 2 * i * p->in[1], n + i * p->out[1]);
        for (int64_t i = 0; i < p->out[0] && !fours; i++) {
            from[0] = gni_pooled_begin(p, 0, i);
            to[0] = gni_pooled_end(p, 0, i);
            for (int64_t k = 0; k < p->out[1]; k++, n++) {
                from[1] = gni_pooled_begin(p, 1, k);
                if (j->gx != NULL) {
                    const int64_t row = j->at[n] / (int32_t)p->size[1], column = j->at[n] - row * p->size[1];
                    j->gx[q * size + (from[0] + row) * p->in[1] + from[1] + column] += j->gy[n];
                    continue;
                }
                to[1] = gni_pooled_end(p, 1, k);
                j->y[n] = gni_pooled_window(p, j->x + q * size, from, to, &j->at[n]);
            }
        }
    }
}

static void gni_pooled_run(gn_context *g, gni_pooled_job *j, const gni_pooled_plan *p, const gn_shape *s) {
    j->p = p;
    gni_parallel(g->pool, s->dim[0] * s->dim[1], 1 + GNI_GRAIN / (p->in[0] * p->in[1]), gni_pooled_task, j);
}

// y and the numbers of its taps.
static gn_array *gni_max_pool_plain(gn_context *g, const gni_pooled_plan *p, gn_array *x, gn_array **at) {
    gni_pooled_job j;
    void *y = NULL, *taps = NULL;
    memset(&j, 0, sizeof j);
    x = gni_conv_packed(g, x);
    if (x == NULL) return NULL;
    const gn_shape s = GN_SHAPE(x->shape.dim[0], x->shape.dim[1], p->out[0], p->out[1]);
    gn_array *result = gni_adopt(g, gni_array_filled(g, g->call, GN_F32, &s, &y));
    *at = gni_adopt(g, gni_array_filled(g, g->call, GN_I32, &s, &taps));
    j.x = (const float *)gni_host(g, x);
    if (result == NULL || *at == NULL || g->call_failed) return NULL;
    j.y = (float *)y;
    j.at = (int32_t *)taps;
    gni_pooled_run(g, &j, p, &s);
    return result;
}

// What comes to x.
static gn_array *gni_back_max_pool_plain(gn_context *g, const gni_pooled_plan *p, const gn_shape *s, gn_array *at,
                                         gn_array *gy) {
    gni_pooled_job j;
    void *gx = NULL;
    memset(&j, 0, sizeof j);
    at = gni_conv_packed(g, at);
    gy = gni_conv_packed(g, gy);
    gn_array *result = gni_adopt(g, gni_array_filled(g, g->call, GN_F32, s, &gx));
    if (at == NULL || gy == NULL || result == NULL) return NULL;
    j.gy = (const float *)gni_host(g, gy);
    j.at = (int32_t *)(uintptr_t)gni_host(g, at); // read alone
    if (g->call_failed) return NULL;
    j.gx = (float *)gx;
    gni_pooled_run(g, &j, p, s);
    return result;
}

// Where x is relu's, its gradient is held back here, where there is less of it.
static gn_array *gni_pooled_held(const gni_node *node, gn_array *gy) {
    gni_node *relu = node->in[0]->node;
    gn_array *y = node->output;
    if (relu->backward != gni_back_elementwise || relu->param[0] != GNI_OP_RELU ||
        relu->visited & GNI_TARGET || relu->gy != NULL || y->buf == NULL || gni_version(y) != node->made)
        return gy;
    relu->visited |= GNI_HELD;
    return gni_grad_relu(gy, y);
}

// ---- on a GPU, in one pass

enum { GNI_POOLED_LOOPS = 256 }; // taps that an invocation goes through

// Whether windows are so small that programs of slices are as fast, where these are of float32 or not added up.
static bool gni_pooled_is_small(const gni_pooled_plan *p, uint32_t step, const gn_array *x) {
    return gni_pooled_tiles(p) && p->size[0] * p->size[1] <= 4 && (step != GNI_POOL_AVERAGE || x->dtype == GN_F32);
}

// Of images x, or of the gradient of the largest and their taps or of sums; `at` gets taps where it is not NULL. NULL:
// nothing was done, unless g->call_failed.
static gn_array *gni_pooled_pass(gn_context *g, const gni_pooled_plan *p, uint32_t step, gn_array *x, gn_array *taps,
                                 gn_array **at) {
    gni_pooling j;
    gn_array *y, *places = NULL;
    const bool back = step >= GNI_POOL_BACK;
    if (g->gpu == NULL || p->adaptive || p->size[0] * p->size[1] > GNI_POOLED_LOOPS || gni_pooled_is_small(p, step, x) ||
        gni_elements(&x->shape) < 1)
        return NULL;
    memset(&j, 0, sizeof j);
    x = gni_adopt(g, gni_contiguous(g, x));
    if (taps != NULL) taps = gni_adopt(g, gni_contiguous(g, taps));
    if (x == NULL || (step == GNI_POOL_BACK && taps == NULL)) return NULL;
    gn_shape s = x->shape;
    j.step = step;
    j.inside = p->inside;
    j.n = s.dim[0] * s.dim[1];
    for (int i = 0; i < 2; i++) {
        j.from[i] = back ? p->out[i] : p->in[i];
        j.to[i] = s.dim[2 + i] = back ? p->in[i] : p->out[i];
        j.size[i] = p->size[i];
        j.stride[i] = p->stride[i];
        j.pad[i] = p->pad[i];
        j.dilation[i] = p->dilation[i];
    }
    y = gni_adopt(g, gni_array_empty(g, g->call, x->dtype, &s));
    if (at != NULL) places = gni_adopt(g, gni_array_empty(g, g->call, GN_I32, &s));
    if (y == NULL || (at != NULL && places == NULL)) return NULL;
    gni_take_operand(x, &j.in);
    gni_take_operand(y, &j.out);
    if (taps != NULL) gni_take_operand(taps, &j.taps);
    if (places != NULL) gni_take_operand(places, &j.places);
    if (!gni_run_on_gpu(g, &gni_kind_pooling, &j, y)) return NULL;
    if (at != NULL) *at = places;
    return y;
}

// in[1]: the number of each window's tap.
static bool gni_back_max_pool(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gni_pooled_plan p;
    gy = gni_pooled_held(node, gy);
    if (gy == NULL) return false;
    gni_pooled_recall(node, &p);
    const gn_shape s = node->in[0]->shape;
    if (g->no_grad > 0 && gni_pooled_plain(g, &p, gy->dtype)) {
        gx[0] = gni_back_max_pool_plain(g, &p, &s, node->in[1], gy);
        return gx[0] != NULL;
    }
    if (g->no_grad > 0) gx[0] = gni_pooled_pass(g, &p, GNI_POOL_BACK, gy, node->in[1], NULL);
    if (gx[0] != NULL || g->call_failed) return gx[0] != NULL;
    if (gni_pooled_tiles(&p)) {
        gn_array *taps = gn_arange(g, GN_I32, 0.0, (double)(p.size[0] * p.size[1]), 1.0);
        taps = gn_reshape(taps, GN_SHAPE(p.size[0], 1, p.size[1]));
        gn_array *hit = gn_eq(gn_expand_dims(node->in[1], GN_AXES(3, 5)), taps);
        gx[0] = gni_pooled_spread(&p, gn_where(hit, gn_expand_dims(gy, GN_AXES(3, 5)), gni_zero_like(gy)), &s);
        return true;
    }
    const gn_shape from = GN_SHAPE(s.dim[0], s.dim[1], p.out[0] * p.out[1]),
                   to = GN_SHAPE(s.dim[0], s.dim[1], p.in[0] * p.in[1]);
    gn_array *places = gn_reshape(gni_pooled_places(g, &p, node->in[1]), from);
    gx[0] = gn_reshape(gn_scatter_add(gn_zeros(g, gy->dtype, to), places, gn_reshape(gy, from), 2), s);
    return true;
}

static gn_array *gni_max_pool_end(gn_context *g, const gni_pooled_plan *p, gn_array *x, gn_array *y, gn_array *at,
                                  gn_array **indices) {
    gn_array *in[2], *both[2];
    both[0] = y;
    both[1] = at;
    // Pending, the places would hold y, whose record holds them.
    if (at != NULL && gn_eval_all(both, 2) != GN_OK) at = NULL;
    if (indices != NULL && at != NULL) *indices = gn_cast(gni_pooled_places(g, p, at), GN_I64);
    g->no_grad--;
    in[0] = x;
    in[1] = at;
    gni_node *node = gni_record(g, y, "max_pool2d", gni_back_max_pool, in, 2);
    if (node != NULL) gni_pooled_keep(node, p);
    return y;
}

// Whether windows side by side are sooner reduced along one axis after the other than tap by tap.
static bool gni_pooled_is_large(const gn_context *g, const gni_pooled_plan *p) {
    return g->gpu != NULL && gni_pooled_tiles(p) && p->size[0] * p->size[1] > 4;
}

// x without the end that no window covers.
static gn_array *gni_pooled_covered(const gni_pooled_plan *p, gn_array *x) {
    for (int i = 0; i < 2; i++) x = gn_slice(x, 2 + i, 0, p->out[i] * p->size[i], 1);
    return x;
}

static gn_array *gni_pooled_along(gn_array *x, int axis, bool largest) {
    if (x == NULL || x->shape.dim[axis] <= GNI_MAX_INPUTS) return gni_joined(x, axis, largest);
    return largest ? gn_max(x, GN_KEEP(axis)) : gn_sum(gni_half_up(x), GN_KEEP(axis));
}

// Maxima or averages: rows of windows, which follow each other in memory, then what is left of each.
static gn_array *gni_pooled_reduced(const gni_pooled_plan *p, gn_array *x, bool largest) {
    x = gni_pooled_covered(p, x);
    if (x == NULL) return NULL;
    const int64_t n = x->shape.dim[0], c = x->shape.dim[1];
    const gn_dtype t = x->dtype;
    x = gn_reshape(x, GN_SHAPE(n, c, p->out[0], p->size[0], p->out[1] * p->size[1]));
    x = gn_reshape(gni_pooled_along(x, 3, largest), GN_SHAPE(n, c, p->out[0], p->out[1], p->size[1]));
    x = gni_pooled_along(x, 4, largest);
    if (!largest) x = gn_div_s(x, (double)(p->size[0] * p->size[1]));
    return gn_reshape(x == NULL ? NULL : gni_as(x, t), GN_SHAPE(n, c, p->out[0], p->out[1]));
}

static gn_array *gni_max_pool(gn_context *g, const gni_pooled_plan *p, gn_array *x, gn_array **indices) {
    const int64_t taps = p->size[0] * p->size[1];
    const bool places = indices != NULL || gni_tracks(g, &x, 1);
    gn_array *y = NULL, *at = NULL;
    g->no_grad++; // recorded as one op
    if ((places || taps > GNI_POOLED_TAPS) && gni_pooled_plain(g, p, x->dtype)) {
        y = gni_max_pool_plain(g, p, x, &at);
        return gni_max_pool_end(g, p, x, y, at, indices);
    }
    if (taps == p->in[0] * p->in[1] && gni_pooled_tiles(p)) {
        gn_array *rows = gn_reshape(x, GN_SHAPE(x->shape.dim[0], x->shape.dim[1], 1, taps));
        y = gn_max(rows, GN_KEEP(3));
        if (places && rows != NULL)
            at = gni_adopt(g, gni_reduce_axes(g, g->call, GNI_RED_ARGMAX, rows, rows->dtype, GN_I32, 8u, true));
        return gni_max_pool_end(g, p, x, y, at, indices);
    }
    y = gni_pooled_pass(g, p, GNI_POOL_LARGEST, x, NULL, places ? &at : NULL);
    if (y != NULL || g->call_failed) return gni_max_pool_end(g, p, x, y, at, indices);
    if (!places && gni_pooled_is_large(g, p)) return gni_max_pool_end(g, p, x, gni_pooled_reduced(p, x, true), NULL, NULL);
    gn_array *framed = gni_pooled_framed(p, x, -GNI_INF);
    for (int64_t t = 0; t < taps; t++) {
        gn_array *v = gni_pooled_tap(g, p, framed, t);
        y = t > 0 ? gn_maximum(y, v) : taps > 1 ? v : gn_copy(v);
    }
    if (y != NULL && places) at = gn_full(g, GN_I32, y->shape, (double)(taps - 1));
    for (int64_t t = taps - 1; t-- > 0 && places;) {
        gn_array *v = gni_pooled_tap(g, p, framed, t); // NaN is equal to nothing
        at = gn_where(gn_logical_or(gn_eq(v, y), gn_isnan(v)), gn_scalar(g, GN_I32, (double)t), at);
    }
    return gni_max_pool_end(g, p, x, y, at, indices);
}

// ---- averages

// How many elements each window's average is over: a number if it is the same for all, else an array.
static gn_array *gni_pooled_counts(gn_context *g, const gni_pooled_plan *p, double *all) {
    gn_array *by_axis[2];
    *all = (double)p->size[0] * (double)p->size[1];
    bool same = true;
    for (int axis = 0; axis < 2; axis++) {
        void *data = NULL;
        const gn_shape s = axis == 0 ? GN_SHAPE(p->out[0], 1) : GN_SHAPE(p->out[1]);
        gn_array *y = gni_array_filled(g, g->call, GN_F32, &s, &data);
        for (int64_t i = 0; i < p->out[axis] && y != NULL; i++) {
            int64_t from = gni_pooled_begin(p, axis, i),
                    to = GNI_MIN(gni_pooled_end(p, axis, i), p->in[axis] + p->pad[axis]);
            if (p->inside) from = GNI_MAX(from, 0), to = GNI_MIN(to, p->in[axis]);
            ((float *)data)[i] = (float)(to - from);
            same = same && to - from == p->size[axis];
        }
        by_axis[axis] = gni_adopt(g, y);
    }
    return same ? NULL : gn_mul(by_axis[0], by_axis[1]);
}

static gn_array *gni_pooled_divided(gn_context *g, const gni_pooled_plan *p, gn_array *y) {
    double all;
    gn_array *counts = gni_pooled_counts(g, p, &all);
    return counts == NULL ? gn_div_s(y, all) : gn_div(y, gn_cast(counts, y->dtype));
}

// Each element of x gets the share of all windows that it is in: a convolution with ones.
static bool gni_back_avg_pool(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gni_pooled_plan p;
    gni_conv_plan c;
    gni_pooled_recall(node, &p);
    const gn_shape s = node->in[0]->shape;
    if (gni_pooled_tiles(&p)) {
        const gn_shape to = GN_SHAPE(s.dim[0], s.dim[1], p.out[0], p.size[0], p.out[1], p.size[1]);
        gn_array *part = gn_eval(gn_div_s(gy, (double)(p.size[0] * p.size[1])));
        gx[0] = gni_pooled_spread(&p, gn_broadcast_to(gn_expand_dims(part, GN_AXES(3, 5)), to), &s);
        return true;
    }
    gn_array *part = gni_pooled_divided(g, &p, gy);
    if (g->no_grad > 0 && part != NULL) gx[0] = gni_pooled_pass(g, &p, GNI_POOL_SPREAD, part, NULL, NULL);
    if (gx[0] != NULL || g->call_failed) return gx[0] != NULL;
    memset(&c, 0, sizeof c);
    c.nd = 2;
    c.n = s.dim[0] * s.dim[1];
    c.groups = c.c = c.o = 1;
    for (int i = 0; i < 2; i++) {
        c.stride[i] = p.stride[i];
        c.pad[i] = p.pad[i];
        c.dilation[i] = 1;
        c.in[i] = p.in[i];
        c.k[i] = p.size[i];
        c.out[i] = p.out[i];
    }
    gn_array *ones = gn_ones(g, gy->dtype, GN_SHAPE(1, 1, c.k[0], c.k[1]));
    gn_array *y = gn_reshape(part, GN_SHAPE(c.n, 1, c.out[0], c.out[1]));
    gx[0] = gn_reshape(gni_conv_op(g, GNI_CONV_BACK, &c, y, ones, NULL), s);
    return true;
}

static gn_array *gni_avg_pool(gn_context *g, const gni_pooled_plan *p, gn_array *x, gn_array **indices) {
    GNI_UNUSED(indices);
    const bool large = gni_pooled_is_large(g, p);
    if (gni_pooled_tiles(p) && p->size[0] == p->in[0] && p->size[1] == p->in[1]) {
        const gn_shape s = x->shape, rows = GN_SHAPE(s.dim[0], s.dim[1], 1, p->in[0] * p->in[1]);
        return gn_mean(gn_reshape(x, rows), GN_KEEP(3));
    }
    if (!large && gni_pooled_tiles(p) && p->size[0] * p->size[1] > 16) {
        x = gni_pooled_covered(p, x);
        if (x == NULL) return NULL;
        const gn_shape s = GN_SHAPE(x->shape.dim[0], x->shape.dim[1], p->out[0], p->size[0], p->out[1], p->size[1]);
        return gn_mean(gn_reshape(x, s), GN_AXES(3, 5));
    }
    gn_array *y = NULL;
    g->no_grad++; // recorded as one op
    y = gni_pooled_pass(g, p, GNI_POOL_AVERAGE, x, NULL, NULL);
    if (y == NULL && large && !g->call_failed) {
        y = gni_pooled_reduced(p, x, false);
    } else if (y == NULL && !g->call_failed) {
        gn_array *framed = gni_pooled_framed(p, gni_half_up(x), 0.0);
        for (int64_t t = 0; t < p->size[0] * p->size[1]; t++) {
            gn_array *v = gni_pooled_tap(g, p, framed, t);
            y = t == 0 ? v : gn_add(y, v);
        }
        y = y == NULL ? NULL : gni_as(gni_pooled_divided(g, p, y), x->dtype);
    }
    g->no_grad--;
    gni_node *node = gni_record(g, y, "avg_pool2d", gni_back_avg_pool, &x, 1);
    if (node != NULL) gni_pooled_keep(node, p);
    return y;
}

// Averages of windows of several sizes along one axis: all their elements, with zeros behind those that are shorter, and a
// sum.
static gn_array *gni_pooled_mean(gn_context *g, const gni_pooled_plan *p, gn_array *x, int axis) {
    void *at = NULL, *in = NULL, *n = NULL;
    const int64_t out = p->out[axis], size = p->size[axis];
    const gn_shape places = GN_SHAPE(out, size), mask = axis == 0 ? GN_SHAPE(out, size, 1) : places,
                   each = axis == 0 ? GN_SHAPE(out, 1) : GN_SHAPE(out);
    gn_array *index = gni_adopt(g, gni_array_filled(g, g->call, GN_I64, &places, &at)),
             *inside = gni_adopt(g, gni_array_filled(g, g->call, GN_BOOL, &mask, &in)),
             *count = gni_adopt(g, gni_array_filled(g, g->call, GN_F64, &each, &n));
    if (x == NULL || index == NULL || inside == NULL || count == NULL) return NULL;
    for (int64_t i = 0; i < out; i++) {
        const int64_t from = gni_pooled_begin(p, axis, i), to = gni_pooled_end(p, axis, i);
        ((double *)n)[i] = (double)(to - from);
        for (int64_t k = 0; k < size; k++) {
            ((int64_t *)at)[i * size + k] = GNI_MIN(from + k, to - 1);
            ((uint8_t *)in)[i * size + k] = from + k < to;
        }
    }
    x = gn_where(inside, gn_take(x, index, 2 + axis), gni_zero_like(x));
    return x != NULL ? gn_div(gn_sum(x, 3 + axis), gn_cast(count, x->dtype)) : NULL;
}

// ---- the public functions

// Begins a function of images: *x becomes (n, c, h, w), `s` is its shape before. A scope is open then.
static gn_context *gni_pooled_open(const char *fn, gn_array **x, gn_shape *s, gni_pooled_plan *p) {
    char text[200];
    gn_context *g = gni_begin(fn, x, 1);
    memset(p, 0, sizeof *p);
    if (g == NULL) return NULL;
    gn_scope_begin(g);
    *s = (*x)->shape;
    const int lead = s->rank - 2;
    if (!gni_need_float(g, fn, (*x)->dtype)) return g;
    if (lead < 0 || s->dim[lead] < 1 || s->dim[lead + 1] < 1 || s->dim[lead] > INT32_MAX || s->dim[lead + 1] > INT32_MAX) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: %s has no images (..., h, w)", fn, gni_shape_text(text, sizeof text, s));
        return g;
    }
    const int64_t n = lead > 0 ? gni_extent_product(s->dim, lead) : 1;
    for (int i = 0; i < 2; i++) {
        p->in[i] = s->dim[lead + i];
        p->dilation[i] = p->stride[i] = 1;
    }
    if (lead != 2)
        *x = n < 0 ? NULL
                   : gn_reshape(*x, GN_SHAPE(lead > 1 ? n / GNI_MAX(s->dim[lead - 1], 1) : 1,
                                             lead > 1 ? s->dim[lead - 1] : n, p->in[0], p->in[1]));
    return g;
}

// Whether a result of that size can be made.
static bool gni_pooled_ok(gn_context *g, const char *fn, const gn_array *x, const gn_shape *s, const gni_pooled_plan *p) {
    gn_shape y = *s;
    for (int i = 0; i < 2; i++) y.dim[s->rank - 2 + i] = p->out[i];
    return x != NULL && gni_shape_ok(g, fn, x->dtype, &y);
}

static gn_array *gni_pooled_close(gn_context *g, gn_array *y, const gn_shape *s, gn_array **indices, gn_array **out) {
    gn_shape to = *s;
    if (y != NULL)
        for (int i = 0; i < 2; i++) to.dim[s->rank - 2 + i] = y->shape.dim[2 + i];
    if (*indices != NULL) *indices = gn_reshape(*indices, to);
    y = gn_reshape(y, to);
    return gni_end_with(g, y, indices, &out, 1);
}

static bool gni_pooled_options(gn_context *g, const char *fn, int64_t size, const gn_pool_options *o, bool spreads,
                               gni_pooled_plan *p) {
    const gn_pool_options none = {0, 0, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}, false, false};
    if (o == NULL) o = &none;
    p->inside = o->inside;
    for (int i = 0; i < 2; i++) {
        p->size[i] = o->sizes[0] != 0 || o->sizes[1] != 0 ? o->sizes[i] : size;
        p->stride[i] = o->strides[0] != 0 || o->strides[1] != 0 ? o->strides[i] : o->stride;
        p->pad[i] = o->pads[0] != 0 || o->pads[1] != 0 ? o->pads[i] : o->pad;
        p->dilation[i] = o->dilations[0] != 0 || o->dilations[1] != 0 ? o->dilations[i] : o->dilation;
        if (p->stride[i] == 0) p->stride[i] = p->size[i];
        if (p->dilation[i] == 0) p->dilation[i] = 1;
        const bool whole = p->size[i] >= 1 && p->size[i] <= 32767 && p->stride[i] >= 1 && p->stride[i] <= INT32_MAX;
        if (!whole || p->dilation[i] < 1 || p->dilation[i] > INT32_MAX || (!spreads && p->dilation[i] > 1) ||
            p->pad[i] < 0 || p->pad[i] > p->size[i] / 2)
            return gni_fail(g, GN_ERROR_ARGUMENT, "%s: size %lld, stride %lld, pad %lld, dilation %lld", fn,
                            (long long)p->size[i], (long long)p->stride[i], (long long)p->pad[i], (long long)p->dilation[i]);
        const int64_t room =
            p->in[i] + 2 * p->pad[i] - (p->size[i] - 1) * p->dilation[i] - 1 + (o->ceil ? p->stride[i] - 1 : 0);
        if (room < 0)
            return gni_fail(g, GN_ERROR_SHAPE, "%s: a window of %lld, with dilation %lld, in %lld elements", fn,
                            (long long)p->size[i], (long long)p->dilation[i], (long long)p->in[i] + 2 * p->pad[i]);
        p->out[i] = room / p->stride[i] + 1;
        if ((p->out[i] - 1) * p->stride[i] >= p->in[i] + p->pad[i]) p->out[i]--; // begins behind x
    }
    return true;
}

// The size of the result; windows of one size are those of the other functions.
static bool gni_pooled_adapt(gn_context *g, const char *fn, const gn_array *x, const gn_shape *s, int64_t height,
                             int64_t width, gni_pooled_plan *p) {
    p->out[0] = height;
    p->out[1] = width;
    p->adaptive = p->in[0] % GNI_MAX(height, 1) != 0 || p->in[1] % GNI_MAX(width, 1) != 0;
    for (int i = 0; i < 2; i++)
        if (p->out[i] < 1 || p->out[i] > INT32_MAX)
            return gni_fail(g, GN_ERROR_SHAPE, "%s: a result of (%lld,%lld): not between 1 and 2^31 - 1", fn,
                            (long long)height, (long long)width);
    if (!gni_pooled_ok(g, fn, x, s, p)) return false;
    for (int i = 0; i < 2; i++) {
        p->size[i] = p->stride[i] = p->in[i] / p->out[i];
        for (int64_t k = 0; k < p->out[i] && p->adaptive; k++)
            p->size[i] = GNI_MAX(p->size[i], gni_pooled_end(p, i, k) - gni_pooled_begin(p, i, k));
    }
    return true;
}

static gn_array *gni_avg_adapted(gn_context *g, const gni_pooled_plan *p, gn_array *x, gn_array **indices) {
    if (!p->adaptive) return gni_avg_pool(g, p, x, indices);
    return gni_as(gni_pooled_mean(g, p, gni_pooled_mean(g, p, gni_half_up(x), 0), 1), x->dtype);
}

// What the functions are made of, so that a program has those that it calls.
typedef gn_array *(*gni_pool_fn)(gn_context *g, const gni_pooled_plan *p, gn_array *x, gn_array **indices);

// By windows of `size`, or `adapts` to a result of a height of `size`.
static gn_array *gni_pooled(const char *fn, gn_array *x, gni_pool_fn make, bool adapts, int64_t size, int64_t width,
                            const gn_pool_options *options, bool spreads, gn_array **indices) {
    gni_pooled_plan p;
    gn_shape s;
    if (indices != NULL) *indices = NULL;
    gn_context *g = gni_pooled_open(fn, &x, &s, &p);
    if (g == NULL) return NULL;
    gn_array *y = NULL, *index = NULL;
    bool ok = !g->call_failed;
    if (adapts) ok = ok && gni_pooled_adapt(g, fn, x, &s, size, width, &p);
    else ok = ok && gni_pooled_options(g, fn, size, options, spreads, &p) && gni_pooled_ok(g, fn, x, &s, &p);
    if (ok) y = make(g, &p, x, indices != NULL ? &index : NULL);
    return gni_pooled_close(g, y, &s, &index, indices);
}

GPUNUM_API gn_array *gn_max_pool2d(gn_array *x, int64_t size, const gn_pool_options *options, gn_array **indices) {
    return gni_pooled("gn_max_pool2d", x, gni_max_pool, false, size, 0, options, true, indices);
}
GPUNUM_API gn_array *gn_avg_pool2d(gn_array *x, int64_t size, const gn_pool_options *options) {
    return gni_pooled("gn_avg_pool2d", x, gni_avg_pool, false, size, 0, options, false, NULL);
}
GPUNUM_API gn_array *gn_adaptive_max_pool2d(gn_array *x, int64_t height, int64_t width, gn_array **indices) {
    return gni_pooled("gn_adaptive_max_pool2d", x, gni_max_pool, true, height, width, NULL, false, indices);
}
GPUNUM_API gn_array *gn_adaptive_avg_pool2d(gn_array *x, int64_t height, int64_t width) {
    return gni_pooled("gn_adaptive_avg_pool2d", x, gni_avg_adapted, true, height, width, NULL, false, NULL);
}

// ---- images of another size

// The elements along an axis that are nearest to those of the result, in PyTorch's float32 arithmetic.
static gn_array *gni_nearest(gn_context *g, gn_array *x, int axis, int64_t size) {
    void *data = NULL;
    const int64_t n = x != NULL ? x->shape.dim[axis] : 0, times = n > 0 ? size / n : 0;
    const gn_shape s = GN_SHAPE(size);
    if (x == NULL || n == size) return x;
    gn_array *index = gni_array_filled(g, "gn_interpolate", GN_I64, &s, &data);
    const float scale = (float)n / (float)size;
    bool even = times * n == size;
    for (int64_t i = 0; i < size && index != NULL; i++) {
        const int64_t from = GNI_MIN((int64_t)floorf((float)i * scale), n - 1);
        ((int64_t *)data)[i] = from;
        even = even && from == i / times;
    }
    gni_adopt(g, index);
    return index == NULL ? NULL : even ? gn_repeat(x, times, axis) : gn_take(x, index, axis);
}

// Where element i of `size` lies between n elements: behind element *from, by what is returned.
static double gni_bilinear_at(int64_t i, int64_t n, int64_t size, bool align, int64_t *from) {
    const double at = !align ? ((double)i + 0.5) * (double)n / (double)size - 0.5
                      : size > 1 ? (double)i * (double)(n - 1) / (double)(size - 1)
                                 : 0.0;
    *from = GNI_MIN((int64_t)GNI_MAX(at, 0.0), n - 1);
    return GNI_MAX(at, 0.0) - (double)*from;
}

#define GNI_BILINEAR_MOST 16 // elements of the result that one of x has a part in, to be gathered

// The first element of the result that each of n elements has a part in, and how many follow each other at most: 0 where
// one has none, or they are too many.
static int64_t gni_bilinear_reach(int64_t *first, int64_t n, int64_t size, bool align) {
    int64_t most = 0, from;
    for (int64_t j = 0; j < n; j++) first[j] = size;
    for (int64_t i = 0; i < size; i++) {
        gni_bilinear_at(i, n, size, align, &from);
        for (int64_t j = from; j <= GNI_MIN(from + 1, n - 1); j++) {
            first[j] = GNI_MIN(first[j], i);
            most = GNI_MAX(most, i + 1 - first[j]);
        }
    }
    for (int64_t j = 0; j < n; j++)
        if (first[j] == size) return 0;
    return most <= GNI_BILINEAR_MOST ? most : 0;
}

// param: the axis, whether ends are aligned. Each element of x gathers its parts of gy: a sum by index would be sorted first.
static bool gni_back_bilinear(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    const int axis = (int)node->param[0];
    const int64_t n = node->in[0]->shape.dim[axis], size = node->output->shape.dim[axis];
    const gn_shape s = GN_SHAPE(n), along = axis == 2 ? GN_SHAPE(n, 1) : s;
    int64_t *first = (int64_t *)gni_alloc(g, sizeof *first * (size_t)n);
    if (first == NULL) return gni_fail_memory(g, node->name, sizeof *first * (size_t)n);
    const int64_t reach = gni_bilinear_reach(first, n, size, node->param[1] != 0);
    gn_array *wide = gni_half_up(gy), *sum = NULL;
    for (int64_t k = 0; k < reach && wide != NULL; k++) {
        void *index = NULL, *part = NULL;
        gn_array *at = gni_array_filled(g, node->name, GN_I64, &s, &index),
                 *w = gni_array_filled(g, node->name, GN_F64, &along, &part);
        for (int64_t j = 0; j < n && at != NULL && w != NULL; j++) {
            const int64_t i = GNI_MIN(first[j] + k, size - 1);
            int64_t from;
            const double t = gni_bilinear_at(i, n, size, node->param[1] != 0, &from);
            double own = from == j ? 1.0 - t : 0.0;
            if (GNI_MIN(from + 1, n - 1) == j) own += t;
            const bool none = own == 0.0 || i != first[j] + k;
            ((int64_t *)index)[j] = none ? first[j] : i; // nothing of one that it has a part in
            ((double *)part)[j] = none ? 0.0 : own;
        }
        gni_adopt(g, at);
        w = gn_cast(gni_adopt(g, w), wide->dtype);
        gn_array *term = at == NULL || w == NULL ? NULL : gn_mul(gn_take(wide, at, axis), w);
        sum = k == 0 ? term : gn_add(sum, term);
        if (sum == NULL) break;
    }
    gni_free(g, first);
    gx[0] = gni_as(sum, gy->dtype);
    return gx[0] != NULL;
}

static gn_array *gni_bilinear(gn_context *g, gn_array *x, int axis, int64_t size, bool align) {
    void *low = NULL, *high = NULL, *part = NULL;
    const int64_t n = x != NULL ? x->shape.dim[axis] : 0;
    const gn_shape s = GN_SHAPE(size), along = axis == 2 ? GN_SHAPE(size, 1) : s;
    if (x == NULL || n == size) return x;
    gn_array *a = gni_array_filled(g, "gn_interpolate", GN_I64, &s, &low),
             *b = gni_array_filled(g, "gn_interpolate", GN_I64, &s, &high),
             *t = gni_array_filled(g, "gn_interpolate", GN_F64, &along, &part);
    for (int64_t i = 0; i < size && a != NULL && b != NULL && t != NULL; i++) {
        int64_t from;
        ((double *)part)[i] = gni_bilinear_at(i, n, size, align, &from);
        ((int64_t *)low)[i] = from;
        ((int64_t *)high)[i] = GNI_MIN(from + 1, n - 1);
    }
    gni_adopt(g, a);
    gni_adopt(g, b);
    gni_adopt(g, t);
    int64_t *first = gni_tracks(g, &x, 1) ? (int64_t *)gni_alloc(g, sizeof *first * (size_t)n) : NULL;
    const bool gathers = first != NULL && gni_bilinear_reach(first, n, size, align) > 0;
    gni_free(g, first);
    if (a == NULL || b == NULL || t == NULL) return NULL;
    g->no_grad += gathers; // recorded as one op
    gn_array *y = gn_lerp(gn_take(x, a, axis), gn_take(x, b, axis), gn_cast(t, x->dtype));
    g->no_grad -= gathers;
    gni_note(gathers ? gni_record(g, y, "gn_interpolate", gni_back_bilinear, &x, 1) : NULL, axis, align, 0);
    return y;
}

GPUNUM_API gn_array *gn_interpolate(gn_array *x, int64_t height, int64_t width, gn_interpolation mode, bool align_corners) {
    gni_pooled_plan p;
    gn_shape s;
    gn_context *g = gni_pooled_open("gn_interpolate", &x, &s, &p);
    if (g == NULL) return NULL;
    gn_array *y = NULL, *index = NULL;
    if (!g->call_failed && (unsigned)mode > GN_BILINEAR)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_interpolate: %d is not a gn_interpolation", (int)mode);
    p.out[0] = height;
    p.out[1] = width;
    if (!g->call_failed && (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX))
        gni_fail(g, GN_ERROR_SHAPE, "gn_interpolate: a result of (%lld,%lld): not between 1 and 2^31 - 1", (long long)height,
                 (long long)width);
    if (!g->call_failed && gni_pooled_ok(g, "gn_interpolate", x, &s, &p)) {
        y = x;
        // First the axis that shrinks more, so that nothing larger than x and y comes about.
        const int narrower = (double)p.out[1] * (double)p.in[0] < (double)p.out[0] * (double)p.in[1];
        for (int k = 0; k < 2; k++) {
            const int i = k ^ narrower;
            y = mode == GN_NEAREST ? gni_nearest(g, y, 2 + i, p.out[i]) : gni_bilinear(g, y, 2 + i, p.out[i], align_corners);
        }
        if (y == x) y = gn_cast(x, x->dtype);
    }
    return gni_pooled_close(g, y, &s, &index, NULL);
}
