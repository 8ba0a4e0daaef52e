// Every public function as a call that finds its own operands: test_allocation.c runs them with fixed ones that fit,
// fuzz_calls.c with random ones. A function of the header that is in neither list here fails test_allocation.
#ifndef GN_TEST_FUNCTIONS_H
#define GN_TEST_FUNCTIONS_H

#include "test.h"

#include "dlpack.h"

typedef enum kind { ANY, FLOATS, ROW, INDEX, TRUTH, INTEGERS, COMPLEXES, LOSS, KINDS } kind;

enum {
    HUGE_OK = 1,    // takes operands of any size without computing anything, or has no operands
    NO_ARRAY = 2,   // gives no array
    SLOW = 4,       // on a CPU that plays GPU: the allocation test leaves it to the CPU
    ALIKE = 8,      // one of many that differ by a table's row only
    UNDEFINED = 16, // contents of the result
    SEVERAL = 32    // makes several calls
};

typedef struct calls {
    gn_context *g;
    gn_array *(*find)(struct calls *c, kind k, int i); // operand i of the call
    bool wild;                                         // numbers may be anything
    gn_array *more[2];                                 // results beside the one that is returned
    double number;                                     // or this one
    bool nowhere; // the call has no array, and so no context that an error could be told to
} calls;

static gn_array *any_of(calls *c) { return c->find(c, ANY, 0); }
static gn_array *floats(calls *c) { return c->find(c, FLOATS, 0); }
static gn_array *second(calls *c) { return c->find(c, FLOATS, 1); }

static int64_t whole(calls *c, int64_t tame) {
    static const int64_t odd[] = {INT64_MIN,
                                  INT64_MAX,
                                  INT32_MIN,
                                  INT32_MAX,
                                  INT64_MIN + 1,
                                  (int64_t)1 << 32,
                                  (int64_t)1 << 31,
                                  -((int64_t)1 << 40),
                                  GN_NONE,
                                  1000,
                                  100,
                                  33};
    if (!c->wild || draw(3) == 0) return tame;
    return draw(12) == 0 ? odd[draw(sizeof odd / sizeof *odd)] : (int64_t)draw(8) - 2;
}

static int small(calls *c, int tame) {
    if (!c->wild || draw(2) == 0) return tame;
    return draw(30) == 0 ? (draw(2) ? INT32_MAX : INT32_MIN) : (int)draw(8) - 3;
}

static double number(calls *c, double tame) {
    static const double odd[] = {0.0,  -0.0,  1.0,     -1.0,         1e300, -1e300,
                                 3e38, 1e-45, 65520.0, 2147483648.0, 1e19,  -129.5};
    if (!c->wild || draw(2) == 0) return tame;
    uint32_t i = draw(sizeof odd / sizeof *odd + 3);
    if (i < sizeof odd / sizeof *odd) return odd[i];
    return i % 3 == 0 ? (double)NAN : i % 3 == 1 ? (double)INFINITY : -(double)INFINITY;
}

static gn_dtype type(calls *c, gn_dtype tame) {
    if (!c->wild) return tame;
    return draw(60) == 0 ? (gn_dtype)99 : (gn_dtype)draw(GN_DTYPE_COUNT);
}

static gn_shape shape(calls *c) {
    static const int64_t dims[] = {4, 3, 1, 0, 2, 5, 17};
    gn_shape s = GN_SHAPE(4, 4);
    if (!c->wild) return s;
    s.rank = (int)draw(draw(8) == 0 ? GN_MAX_RANK + 1 : 4);
    for (int i = 0; i < s.rank && i < GN_MAX_RANK; i++) s.dim[i] = dims[draw(draw(3) == 0 ? 7 : 3)];
    if (draw(25) == 0 && s.rank > 0) s.dim[draw((uint32_t)(s.rank < 8 ? s.rank : 8))] = whole(c, 4);
    if (draw(200) == 0) s.rank = small(c, 9);
    return s;
}

static gn_shape shape_of(calls *c, gn_array *a) {
    return c->wild && draw(3) == 0 ? shape(c) : gn_shape_of(a);
}

static gn_axes axes(calls *c) {
    int list[3];
    if (!c->wild) return GN_ALL;
    for (int i = 0; i < 3; i++) list[i] = small(c, (int)draw(4) - 2);
    gn_axes set = draw(2)    ? GN_ALL
                  : draw(2)  ? list[0]
                  : draw(20) ? gn_axes_from((int)draw(4), list)
                             : (gn_axes)draw(UINT32_MAX);
    return draw(4) == 0 ? GN_KEEP(set) : set;
}

static gn_fft_norm norm(calls *c) {
    return (gn_fft_norm)(c->wild ? draw(3) + (draw(40) == 0 ? 7 : 0) : 0);
}
static gn_convolution mode(calls *c) {
    return (gn_convolution)(c->wild ? draw(3) + (draw(40) == 0 ? 7 : 0) : 0);
}

// ---- calls that take more than one expression

static gn_array *call_list(calls *c, gn_array *(*fn)(gn_array *const *, int, int)) {
    gn_array *list[3];
    int count = c->wild ? (int)draw(4) : 2;
    for (int i = 0; i < 3; i++) list[i] = c->find(c, FLOATS, i);
    c->nowhere = count == 0;
    return fn(list, count, small(c, 0));
}

static gn_array *call_permute(calls *c) {
    int order[8] = {1, 0, 2, 3, 4, 5, 6, 7};
    gn_array *a = any_of(c);
    if (c->wild) order[draw(8)] = small(c, 0);
    return gn_permute_axes(a, order, c->wild && draw(4) == 0 ? small(c, 2) : gn_rank(a));
}

static int64_t few(calls *c, int64_t tame) { return c->wild ? (int64_t)draw(6) - 1 : tame; }

static gn_array *call_interp(calls *c) {
    gn_array *line = c->find(c, ROW, 1);
    return gn_interp(floats(c), line, c->wild && draw(8) == 0 ? second(c) : line);
}

static gn_array *call_digitize(calls *c) {
    c->more[0] = gn_sort(c->find(c, ROW, 1), 0, false);
    return gn_digitize(any_of(c), c->more[0], c->wild && draw(2));
}

static gn_array *call_unique(calls *c) {
    gn_array *inverse = NULL, *y = gn_unique(any_of(c), &c->more[0], &inverse, &c->more[1]);
    if (inverse != NULL) gn_release(inverse);
    return y;
}

static gn_array *call_unique_axis(calls *c) {
    gn_array *inverse = NULL, *y = gn_unique_axis(any_of(c), small(c, 0), &c->more[0], &inverse, &c->more[1]);
    if (inverse != NULL) gn_release(inverse);
    return y;
}

static gn_array *call_bincount(calls *c) {
    gn_array *numbers = c->find(c, INDEX, 0);
    if (!c->wild || draw(2)) c->more[0] = numbers = gn_mod_s(gn_ravel(numbers), 50.0);
    return gn_bincount(numbers, c->wild && draw(2) ? c->find(c, ROW, 1) : NULL, few(c, 3));
}

static gn_array *call_histogram_edges(calls *c) {
    c->more[0] = gn_sort(c->find(c, ROW, 1), 0, false);
    return gn_histogram_edges(floats(c), c->more[0]);
}

static gn_array *call_pad(calls *c) {
    int64_t widths[6] = {1, 2, 0, 3, 1, 1};
    if (c->wild) widths[draw(6)] = draw(40) ? few(c, 1) : whole(c, 1);
    gn_array *a = any_of(c);
    const int count = !c->wild || draw(2) ? 2 * gn_rank(a) : (int)draw(4);
    return gn_pad(a, widths, count > 6 ? 6 : count, (gn_pad_mode)(c->wild ? draw(6) : 2), number(c, 1.0));
}

// The first two parts.
static gn_array *call_split(calls *c, gn_status (*fn)(gn_array *, int, int, gn_array **)) {
    gn_array *part[5] = {NULL, NULL, NULL, NULL, NULL};
    fn(any_of(c), c->wild ? (int)draw(7) - 1 : 2, small(c, 0), part);
    c->more[0] = part[1];
    return part[0];
}

static gn_array *call_split_at(calls *c) {
    gn_array *part[4] = {NULL, NULL, NULL, NULL};
    int64_t places[3] = {1, 2, 3};
    if (c->wild) places[draw(3)] = whole(c, 2);
    gn_split_at(any_of(c), places, c->wild ? (int)draw(4) : 1, small(c, 0), part);
    c->more[0] = part[1];
    return part[0];
}

static gn_array *call_unstack(calls *c) {
    gn_array *a = any_of(c), *part[17] = {NULL};
    const int axis = small(c, 1);
    if (!c->wild) a = gn_slice(a, axis, 0, 2, 1);
    const int64_t n = gn_dim(a, axis);
    gn_unstack(a, axis, part, n >= 0 && n <= 17 ? (int)n : (int)draw(3));
    c->more[0] = part[1];
    return part[0];
}

static gn_array *call_meshgrid(calls *c) {
    gn_array *list[2], *grid[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) list[i] = c->find(c, ROW, i);
    gn_meshgrid(list, 2, c->wild && draw(2), grid);
    c->more[0] = grid[1];
    return grid[0];
}

static gn_array *call_truth(calls *c, bool equal) {
    gn_array *a = any_of(c), *b = second(c);
    c->number = equal ? gn_array_equal(a, b, true) : gn_allclose(a, b, number(c, 0.1), 0.0, false);
    return NULL;
}

static gn_array *call_cross(calls *c) {
    gn_array *a = floats(c), *b = second(c);
    return c->wild ? gn_cross(a, b, small(c, -1)) : gn_cross(gn_slice(a, -1, 0, 3, 1), gn_slice(b, -1, 0, 3, 1), -1);
}

static gn_array *call_broadcast(calls *c) {
    gn_array *a = any_of(c);
    return gn_broadcast_to(a, c->wild ? shape(c) : GN_SHAPE(3, gn_dim(a, 0), gn_dim(a, 1)));
}

static gn_array *call_einsum(calls *c) {
    static const char *const text[] = {
        "ij,jk->ik", "ij,ij->", "ii,ij->j",  "...j,...j->...", "ij,kl->iljk",  "i,j->ij", "ij->ji",
        "",          "a,,->",   "ij,jk->iq", "i...,...i",      "bij,bjk->bik", "->",      "ij,jk"};
    gn_array *list[3];
    for (int i = 0; i < 3; i++) list[i] = c->find(c, FLOATS, i);
    return gn_einsum_list(c->g, text[c->wild ? draw(sizeof text / sizeof *text) : 0], list,
                          c->wild && draw(8) == 0 ? (int)draw(5) - 1 : 2);
}

static gn_array *call_tensordot(calls *c) {
    int left[3] = {0, 1, 2}, right[3] = {1, 0, 2};
    gn_array *a = floats(c), *b = second(c);
    if (c->wild) left[draw(3)] = small(c, 0), right[draw(3)] = small(c, 1);
    return gn_tensordot(a, b, left, right, c->wild ? (int)draw(4) : 1);
}

static gn_array *
call_fftn(calls *c, gn_array *(*fn)(gn_array *, const int64_t *, const int *, int, gn_fft_norm),
          kind k) {
    int64_t n[GN_MAX_RANK] = {3, 5, 4, 2, 2, 1, 3, 2};
    int list[GN_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    gn_array *a = c->find(c, k, 0);
    if (c->wild) n[draw(3)] = whole(c, 4), list[draw(3)] = small(c, 0);
    if (c->wild && draw(3) == 0) return fn(a, NULL, NULL, (int)draw(4), norm(c));
    return fn(a, n, list, c->wild ? (int)draw(4) : 2, norm(c));
}

static gn_array *call_svd(calls *c) {
    return gn_svd(floats(c), c->wild && draw(2), &c->more[0], &c->more[1]);
}

static gn_array *call_from(calls *c) {
    static const char data[4096] = {1, 2, 3, 4, 5, 6, 7};
    gn_shape s = shape(c);
    double n = (double)gn_dtype_size(GN_C128);
    for (int i = 0; i < s.rank && i < GN_MAX_RANK; i++) n *= (double)s.dim[i];
    return gn_array_from(c->g, type(c, GN_F32), s, n > (double)sizeof data ? NULL : data);
}

static gn_array *call_wrap(calls *c) {
    static double data[512];
    gn_shape s = shape(c);
    double n = (double)gn_dtype_size(GN_C128);
    for (int i = 0; i < s.rank && i < GN_MAX_RANK; i++) n *= (double)s.dim[i];
    const gn_dtype t = type(c, GN_F32);
    if (t == GN_BOOL) memset(data, 0, sizeof data); // another array may have written anything there
    return gn_array_wrap(c->g, t, s, n > (double)sizeof data ? NULL : (void *)data, NULL, NULL);
}

static gn_array *call_write(calls *c) {
    static char data[65536];
    gn_array *a = gn_copy(gn_detach(any_of(c)));
    size_t bytes = gn_bytes(a);
    if (a != NULL && bytes <= sizeof data)
        gn_write(a, data, c->wild && draw(20) == 0 ? bytes + 1 : bytes);
    return a;
}

static gn_array *call_assign(calls *c) {
    gn_array *a = gn_copy(any_of(c)), *value = second(c);
    gn_assign(c->wild && draw(2) ? gn_index(a, "..., ::-2") : a, value);
    return a;
}

static gn_array *call_assign_mask(calls *c) {
    gn_array *a = gn_copy(any_of(c)), *value = c->wild && draw(2) ? second(c) : gn_scalar(c->g, GN_F32, 1.0);
    gn_assign_mask(a, c->wild ? c->find(c, TRUTH, 1) : gn_eq(a, a), value);
    return a;
}

// Indices of an array's shape, mostly.
static gn_array *along(calls *c) {
    if (c->wild && draw(3) == 0) return c->find(c, INDEX, 1);
    return gn_zeros(c->g, GN_I64, gn_shape_of(any_of(c)));
}

static gn_array *call_read(calls *c) {
    static char data[65536];
    gn_array *a = any_of(c);
    if (gn_bytes(a) <= sizeof data) gn_read(a, data, gn_bytes(a));
    return NULL;
}

static void note_done(void *user, gn_status status) { *(gn_status *)user = status; }
static gn_array *call_read_async(calls *c) {
    static char data[65536];
    gn_status status = GN_OK;
    gn_array *a = any_of(c);
    if (gn_bytes(a) <= sizeof data) gn_read_async(a, data, gn_bytes(a), note_done, &status);
    gn_sync(c->g);
    return NULL;
}

static gn_array *call_choice(calls *c) {
    gn_array *weights = c->wild && draw(2) ? any_of(c) : NULL;
    return gn_choice(c->g, c->wild ? shape(c) : GN_SHAPE(3), weights != NULL ? gn_size(weights) : few(c, 5), c->wild && draw(2), weights);
}

static gn_array *call_item_int(calls *c) {
    c->number = (double)gn_item_int(gn_sum(gn_abs(floats(c)), GN_ALL));
    return NULL;
}

static gn_array *call_item(calls *c) {
    c->number = gn_item(gn_sum(gn_abs(floats(c)), GN_ALL));
    return NULL;
}

static gn_array *call_eval_all(calls *c) {
    gn_array *list[3];
    for (int i = 0; i < 3; i++) list[i] = gn_mul_s(c->find(c, FLOATS, i), 1.5);
    gn_eval_all(list, 3);
    return list[0];
}

static gn_array *call_to_string(calls *c) {
    gn_string_free(c->g, gn_to_string(any_of(c), NULL));
    return NULL;
}

static gn_array *call_requires_grad(calls *c) {
    return gn_requires_grad(gn_detach(floats(c)), !c->wild || draw(4) != 0);
}

static gn_reduction reduction(calls *c) {
    return (gn_reduction)(c->wild ? draw(4) + (draw(40) == 0 ? 7 : 0) : 0);
}

static gn_array *call_classes(calls *c, gn_array *(*fn)(gn_array *, gn_array *, const gn_cross_entropy_options *)) {
    gn_array *x = floats(c);
    gn_cross_entropy_options o = {c->find(c, ROW, 2), 0.0, true, whole(c, 1), reduction(c)};
    if (c->wild && draw(2)) o.weight = NULL;
    if (c->wild) o.label_smoothing = number(c, 0.2);
    return fn(x, c->find(c, INDEX, 1), &o);
}

typedef gn_array *(*conv_fn)(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *o);
static gn_array *call_conv(calls *c, conv_fn fn, int nd) {
    static const int behind[] = {2, 3, 4};
    gn_conv_options o = {few(c, 2), few(c, nd < 0 ? 0 : 1), few(c, 1), {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, few(c, 1), false, 0, {0, 0, 0}};
    for (int i = 0; i < 3 && c->wild; i++) {
        if (draw(4) == 0) o.strides[i] = whole(c, 2);
        if (draw(4) == 0) o.pads[i] = whole(c, 1);
        if (draw(4) == 0) o.dilations[i] = whole(c, 2);
        if (draw(9) == 0) o.output_pads[i] = whole(c, 1);
    }
    o.same = c->wild && draw(4) == 0;
    nd = nd < 0 ? -nd : nd; // negative: transposed
    gn_array *x = floats(c), *w = second(c), *b = c->find(c, ROW, 2);
    if (!c->wild || gn_rank(x) == 2) x = gn_expand_dims(x, gn_axes_from(nd - 1, behind));
    if (!c->wild || gn_rank(w) == 2) w = gn_expand_dims(w, gn_axes_from(nd, behind));
    return fn(x, w, c->wild && draw(3) == 0 ? NULL : b, c->wild && draw(4) == 0 ? NULL : &o);
}

static gn_array *call_rope(calls *c) {
    gn_rope_options o;
    memset(&o, 0, sizeof o);
    o.dims = c->wild ? whole(c, 2) : 2;
    o.base = number(c, 100.0);
    o.interleaved = c->wild && draw(2);
    return gn_rope(floats(c), c->wild && draw(2) ? c->find(c, INDEX, 1) : NULL, c->wild && draw(2) ? NULL : &o);
}

// One whose input is as wide as its states.
static gn_array *call_recurrent(calls *c, bool lstm) {
    const int64_t wide = c->wild ? 1 + (int64_t)draw(3) : 2, gates = (lstm ? 4 : 3) * wide;
    const gn_dtype t = gn_dtype_of(floats(c));
    gn_rnn_options o;
    memset(&o, 0, sizeof o);
    gn_array *w[4], *x = c->wild && draw(4) == 0 ? floats(c) : gn_ones(c->g, t, GN_SHAPE(c->wild ? (int64_t)draw(4) : 2, 2, wide));
    gn_array *dx = NULL, *last = NULL;
    if (c->wild) o.layers = small(c, 1), o.batch_first = draw(2) != 0, o.dropout = number(c, 0.0);
    for (int i = 0; i < 4; i++) w[i] = i < 2 ? gn_full(c->g, t, GN_SHAPE(gates, wide), 0.3) : gn_full(c->g, t, GN_SHAPE(gates), 0.1);
    gn_requires_grad(w[1], true);
    gn_array *y = lstm ? gn_lstm(x, w, 4, NULL, NULL, &o, &last, NULL) : gn_gru(x, w, 4, NULL, &o, &last);
    gn_gradients(gn_add(gn_sum(y, GN_ALL), gn_sum(last, GN_ALL)), &w[1], 1, c->wild && draw(2), &dx);
    return dx;
}

// Queries that are their own keys, which any one array can be; with its gradient.
static gn_array *call_attention(calls *c) {
    gn_attention_options o;
    memset(&o, 0, sizeof o);
    gn_array *q = gn_requires_grad(gn_detach(floats(c)), true), *k = c->wild && draw(2) ? second(c) : q, *dq = NULL;
    o.causal = c->wild && draw(2);
    o.scale = number(c, 0.5);
    o.workspace = c->wild ? whole(c, 64) : 0;
    o.dropout = c->wild && draw(4) == 0 ? number(c, 0.5) : 0.0;
    gn_array *y = gn_attention(q, k, c->wild ? c->find(c, FLOATS, 2) : q, c->wild && draw(2) ? c->find(c, TRUTH, 2) : NULL,
                               c->wild && draw(2) ? NULL : &o);
    gn_gradients(gn_sum(y, GN_ALL), &q, 1, c->wild && draw(2), &dq);
    return dq;
}

static gn_array *call_pool(calls *c, bool largest) {
    gn_pool_options o = {few(c, 1), few(c, 1), few(c, 1), {0, 0}, {0, 0}, {0, 0}, {0, 0}, !c->wild || draw(2), c->wild && draw(2)};
    for (int i = 0; i < 2 && c->wild; i++) {
        if (draw(4) == 0) o.sizes[i] = whole(c, 2);
        if (draw(4) == 0) o.strides[i] = whole(c, 2);
        if (draw(4) == 0) o.pads[i] = whole(c, 1);
        if (draw(4) == 0) o.dilations[i] = whole(c, 2);
    }
    const gn_pool_options *given = c->wild && draw(4) == 0 ? NULL : &o;
    return largest ? gn_max_pool2d(floats(c), few(c, 3), given, &c->more[0]) : gn_avg_pool2d(floats(c), few(c, 3), given);
}

static gn_array *call_batch_norm(calls *c) {
    gn_array *mean = gn_copy(gn_detach(c->find(c, ROW, 0))), *var = gn_copy(gn_detach(c->find(c, ROW, 1)));
    if (c->wild && draw(3) == 0) mean = var = NULL;
    c->more[0] = mean, c->more[1] = var;
    return gn_batch_norm(floats(c), mean, var, c->wild && draw(2) ? NULL : c->find(c, ROW, 1),
                         c->wild && draw(2) ? NULL : c->find(c, ROW, 2), !c->wild || draw(2), number(c, 0.1), number(c, 1e-3));
}

static gn_array *call_gradients(calls *c) {
    gn_array *leaf = gn_requires_grad(gn_detach(floats(c)), true),
             *loss = gn_sum(gn_exp(gn_mul_s(leaf, 0.5)), GN_ALL), *dx = NULL;
    gn_gradients(loss, &leaf, 1, true, &dx);
    return dx;
}

static gn_array *call_backward(calls *c) {
    gn_array *x = c->find(c, FLOATS, 0);
    gn_backward(c->wild && draw(8) == 0 ? x : gn_mean(gn_square(x), GN_ALL));
    if (c->wild && draw(8) == 0) gn_zero_grad(x);
    gn_array *grad = gn_grad(x);
    return grad != NULL ? gn_copy(grad) : NULL;
}

static gn_array *loss_of_call(gn_context *g, gn_array *const *x, int count, void *user) {
    (void)g, (void)count, (void)user;
    return gn_sum(gn_square(x[0]), GN_ALL);
}

static void gradient_of_call(gn_context *g, gn_array *const *in, int count, gn_array *out, gn_array *gy, gn_array **gx, void *user) {
    (void)g, (void)count, (void)out, (void)user;
    gx[0] = gn_mul(gn_mul_s(in[0], 2.0), gy);
}

static gn_array *call_custom(calls *c) {
    gn_array *x = floats(c);
    return gn_custom(loss_of_call, c->wild && draw(8) == 0 ? NULL : gradient_of_call, &x, 1, NULL);
}

static gn_array *call_checkpoint(calls *c) {
    gn_array *x = floats(c);
    return gn_checkpoint(loss_of_call, &x, 1, NULL);
}

static gn_array *call_gradcheck(calls *c) {
    gn_array *x = gn_requires_grad(gn_detach(gn_copy(floats(c))), true);
    if (gn_size(x) <= 20) c->number = gn_gradcheck(loss_of_call, &x, 1, 0.0, NULL);
    return NULL;
}

// A parameter of its own, two steps.
static gn_array *call_optimizer(calls *c, int which) {
    gn_sgd_options sgd = {0.1, 0.9, 0.0, 0.01, true};
    gn_adam_options adam = {0.1, 0.0, 0.0, 0.0, 0.01};
    gn_rmsprop_options rmsprop = {0.1, 0.0, 0.0, 0.01, 0.9, true};
    gn_adagrad_options adagrad = {0.1, 0.01, 0.01, 0.1, 0.0};
    gn_array *x = gn_requires_grad(gn_detach(gn_copy(floats(c))), true), *y = gn_requires_grad(gn_ones_like(x), true);
    if (c->wild) sgd.lr = number(c, 0.1), adam.beta1 = number(c, 0.5), rmsprop.alpha = number(c, 0.5), adagrad.eps = number(c, 0.1);
    gn_optimizer *opt = which == 0   ? gn_sgd(&x, 1, &sgd)
                        : which == 1 ? gn_adam(&x, 1, &adam)
                        : which == 2 ? gn_adamw(&x, 1, &adam)
                        : which == 3 ? gn_rmsprop(&x, 1, &rmsprop)
                        : which == 4 ? gn_adagrad(&x, 1, &adagrad)
                        : which == 5 ? gn_lion(&x, 1, NULL)
                                     : gn_muon(&x, 1, NULL);
    gn_group_options group = {0.5, 0.1, 0, 0, 0.5, 0, 0, 1e-3, 0, 0, 0, 0};
    if (c->wild) group.momentum = number(c, 0.5), group.dampening = number(c, 0.1), group.nesterov = (int)number(c, 1);
    if (which == 0) gn_optimizer_add_group(opt, &y, 1, number(c, 0.5), number(c, 0.1));
    if (which == 1) gn_optimizer_add_group_with(opt, &y, 1, &group);
    for (int i = 0; i < 2; i++) {
        gn_backward(gn_sum(gn_square(x), GN_ALL));
        gn_step(opt);
        if (i == 0) gn_zero_grads(opt);
    }
    gn_lr_set(opt, 0.5 * gn_lr_get(opt));
    gn_optimizer_free(opt);
    return x;
}
static gn_array *call_sgd(calls *c) { return call_optimizer(c, 0); }
static gn_array *call_adam(calls *c) { return call_optimizer(c, 1); }
static gn_array *call_adamw(calls *c) { return call_optimizer(c, 2); }
static gn_array *call_rmsprop(calls *c) { return call_optimizer(c, 3); }
static gn_array *call_adagrad(calls *c) { return call_optimizer(c, 4); }
static gn_array *call_lion(calls *c) { return call_optimizer(c, 5); }
static gn_array *call_muon(calls *c) { return call_optimizer(c, 6); }

static gn_array *call_clip(calls *c) {
    gn_array *x = gn_requires_grad(gn_detach(gn_copy(floats(c))), true), *mean = gn_copy(gn_detach(x));
    gn_backward(gn_sum(gn_square(x), GN_ALL));
    c->more[0] = gn_clip_grad_norm(&x, 1, number(c, 0.5));
    gn_clip_grad_value(&x, 1, number(c, 0.1));
    gn_array *grad = gn_grad(x);
    if (grad != NULL) c->more[1] = gn_copy(grad);
    return gn_ema_update(&mean, &x, 1, number(c, 0.9)) == GN_OK ? mean : NULL;
}

static gn_array *call_npy(calls *c) {
    gn_array *a = any_of(c);
    if (gn_bytes(a) > 65536 || gn_save_npy(a, "functions.npy") != GN_OK) return NULL;
    return gn_load_npy(c->g, "functions.npy");
}

static gn_array *call_params(calls *c) {
    gn_array *a = any_of(c), *x = gn_requires_grad(gn_detach(gn_copy(floats(c))), true), *y = NULL;
    gn_params *p = gn_params_new(c->g), *q;
    gn_optimizer *opt = gn_adam(&x, 1, NULL);
    gn_params_add(p, "a", gn_detach(a));
    if (c->wild && draw(2)) gn_params_note(p, "a", "b");
    if (gn_bytes(a) < 65536 && gn_bytes(x) < 65536 && gn_params_add_optimizer(p, "opt", opt) == GN_OK &&
        gn_params_save(p, "functions.safetensors") == GN_OK && (q = gn_load_safetensors(c->g, "functions.safetensors")) != NULL) {
        y = gn_copy(gn_params_get(q, "a"));
        gn_optimizer_restore(opt, c->wild && draw(2) ? p : q, "opt");
        gn_params_free(q);
    }
    gn_optimizer_free(opt);
    gn_params_free(p);
    return y;
}

// Images of any array of rank 2, mostly.
static gn_array *images(calls *c, gn_array *a) {
    static const int front[] = {0, 1};
    if (!c->wild || gn_rank(a) == 2) a = gn_expand_dims(a, gn_axes_from(2, front));
    return a;
}

static gn_array *call_grid_sample(calls *c) {
    gn_grid_options o = {c->wild && draw(2), (gn_outside)(c->wild ? draw(40) == 0 ? 7 : draw(3) : 0), c->wild && draw(2)};
    gn_array *grid = second(c);
    if (!c->wild || draw(4)) {
        gn_array *pair[2] = {grid, grid};
        grid = gn_expand_dims(gn_stack(pair, 2, -1), 0);
    }
    return gn_grid_sample(images(c, floats(c)), grid, c->wild && draw(4) == 0 ? NULL : &o);
}

static gn_array *call_affine_grid(calls *c) {
    gn_array *theta = floats(c);
    if (!c->wild || (gn_rank(theta) == 2 && gn_dim(theta, 0) > 1 && gn_dim(theta, 1) > 2))
        theta = gn_expand_dims(gn_slice(gn_slice(theta, 0, 0, 2, 1), 1, 0, 3, 1), 0);
    return gn_affine_grid(theta, whole(c, 3), whole(c, 4), c->wild && draw(2));
}

static gn_array *call_color_jitter(calls *c) {
    static const int front[] = {0, 3};
    gn_array *a = floats(c);
    a = c->wild && gn_rank(a) != 2 ? a : gn_expand_dims(gn_slice(a, 0, 0, 3, 1), gn_axes_from(2, front));
    return gn_color_jitter(a, number(c, 0.1), number(c, 0.2), number(c, 0.3));
}

static gn_array *call_hue_jitter(calls *c) {
    static const int front[] = {0, 3};
    gn_array *a = floats(c);
    a = c->wild && gn_rank(a) != 2 ? a : gn_expand_dims(gn_slice(a, 0, 0, 3, 1), gn_axes_from(2, front));
    return gn_hue_jitter(a, number(c, 0.2));
}

static gn_array *call_mixup(calls *c) {
    gn_array *a = floats(c);
    return gn_mixup(a, c->wild && draw(4) == 0 ? any_of(c) : a, number(c, 0.5), &c->more[0], &c->more[1]);
}

static gn_array *call_normalize(calls *c) {
    const double numbers[] = {0.5, 0.25};
    return gn_normalize(images(c, any_of(c)), numbers, c->wild && draw(9) == 0 ? NULL : numbers, c->wild ? (int)draw(3) : 1);
}

static gn_array *call_loader(calls *c) {
    gn_loader_field field[2];
    gn_loader_options o;
    gn_array *a = any_of(c), *batch[2] = {NULL, NULL};
    float row[4] = {1, 2, 3, 4};
    if (gn_bytes(a) > 65536) return NULL;
    memset(field, 0, sizeof field);
    memset(&o, 0, sizeof o);
    field[0].array = a;
    field[1].data = row;
    field[1].s = GN_SHAPE();
    o.batch = c->wild ? whole(c, 2) : 2;
    o.shuffle = true;
    o.prefetch = c->wild ? (int)draw(4) - 1 : 0;
    gn_loader *l = gn_loader_new(c->g, field, gn_dim(a, 0) <= 4 ? 2 : 1, gn_dim(a, 0), &o);
    if (gn_loader_batches(l) > 1) gn_loader_seek(l, whole(c, 3), whole(c, 1));
    if (gn_loader_next(l, batch)) c->more[1] = batch[1];
    gn_loader_free(l);
    return batch[0];
}

static gn_array *call_cifar10(calls *c) {
    unsigned char record[3073] = {7};
    test_write_file("test_batch.bin", record, sizeof record);
    return gn_load_cifar10(c->g, ".", false, &c->more[1]);
}

static gn_array *call_npz(calls *c) {
    gn_array *a = any_of(c);
    const char *name = "a";
    if (gn_bytes(a) > 65536 || gn_save_npz("functions.npz", &a, &name, 1) != GN_OK) return NULL;
    gn_string_free(c->g, gn_npz_names(c->g, "functions.npz"));
    return gn_load_npz(c->g, "functions.npz", NULL);
}

static gn_array *call_csv(calls *c) {
    gn_array *a = any_of(c);
    if (gn_bytes(a) > 65536 || gn_save_csv(a, "functions.csv", "a", 0) != GN_OK) return NULL;
    return gn_load_csv(c->g, "functions.csv", gn_dtype_of(a), 1, 0);
}

// Every form to memory and back.
static gn_array *call_memory(calls *c) {
    gn_array *a = any_of(c), *y = NULL;
    const char *name = "a";
    if (gn_bytes(a) > 65536) return NULL;
    const size_t npy = gn_save_npy_memory(a, NULL, 0), npz = gn_save_npz_memory(&a, &name, 1, NULL, 0);
    const size_t csv = gn_save_csv_memory(a, NULL, ';', NULL, 0), most = npy + npz + csv;
    char *memory = (char *)malloc(most + 1);
    if (memory == NULL) return NULL;
    if (csv > 0 && gn_save_csv_memory(a, NULL, ';', memory, most) == csv)
        y = gn_load_csv_memory(c->g, memory, csv, gn_dtype_of(a), 0, ';');
    if (npz > 0 && gn_save_npz_memory(&a, &name, 1, memory, most) == npz) {
        gn_release(y);
        gn_string_free(c->g, gn_npz_names_memory(c->g, memory, npz));
        y = gn_load_npz_memory(c->g, memory, npz, name);
    }
    if (npy > 0 && gn_save_npy_memory(a, memory, most) == npy) {
        gn_release(y);
        y = gn_load_npy_memory(c->g, memory, npy);
    }
    free(memory);
    return y;
}

static gn_array *call_dlpack(calls *c) {
    struct DLManagedTensor *tensor = gn_to_dlpack(any_of(c));
    gn_array *y = tensor != NULL ? gn_from_dlpack(c->g, tensor) : NULL;
    if (tensor != NULL && y == NULL) test_dl_delete(tensor);
    return y;
}

static gn_array *call_idx(calls *c) {
    static const unsigned char data[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9};
    FILE *f = fopen("functions.idx", "wb");
    if (f == NULL) return NULL;
    fwrite(data, 1, sizeof data, f);
    fclose(f);
    return gn_load_idx(c->g, "functions.idx");
}

static gn_array *call_profile(calls *c) {
    gn_profile_begin(c->g);
    gn_array *y = gn_eval(gn_exp(floats(c)));
    gn_profile_end(c->g, "functions.json");
    return y;
}

static gn_array *call_scopes(calls *c) {
    gn_array *y = NULL, *z = NULL;
    GN_SCOPE(c->g) {
        y = gn_keep(gn_exp(floats(c)));
        GN_SCOPE(c->g) {
            z = gn_keep(gn_keep(gn_neg(y)));
        }
        gn_release(gn_retain(z));
        gn_set(&y, z);
    }
    return y;
}

static gn_array *call_no_grad(calls *c) {
    gn_no_grad_begin(c->g);
    gn_array *y = gn_exp(floats(c));
    gn_no_grad_end(c->g);
    return y;
}

static gn_array *call_autocast(calls *c) {
    gn_autocast_begin(c->g, c->wild && draw(2) ? GN_F16 : GN_BF16);
    gn_array *y = gn_matmul(floats(c), second(c));
    gn_autocast_end(c->g);
    return y;
}

static gn_array *call_scaled(calls *c) {
    gn_array *p = gn_copy(gn_detach(floats(c))), *scale = gn_copy(gn_full(c->g, GN_F32, GN_SHAPE(2), 4.0));
    gn_optimizer *opt = gn_sgd(&p, gn_requires_grad(p, true) != NULL ? 1 : 0, NULL);
    if (gn_backward(gn_scale_loss(gn_sum(gn_mul_s(p, 0.5), GN_ALL), scale)) == GN_OK) gn_step_scaled(opt, scale, whole(c, 3), number(c, 1.0));
    gn_optimizer_free(opt);
    return scale;
}

static gn_array *call_facts(calls *c) {
    gn_array *a = any_of(c);
    gn_memory_stats stats;
    gn_device_info info;
    gn_shape s = gn_shape_of(a);
    c->number = (gn_context_of(a) == c->g) + (double)gn_size(a) + (double)gn_bytes(a) + gn_rank(a) +
                (double)gn_dim(a, small(c, 0)) + s.rank;
    c->number +=
        (double)gn_dtype_size(gn_dtype_of(a)) + (double)(int)gn_promote(gn_dtype_of(a), type(c, GN_F64));
    c->number += gn_needs_grad(a) + (gn_explain(a) != NULL);
    gn_memory_get(c->g, &stats);
    gn_device_get(c->g, &info);
    gn_flush(c->g);
    c->number += gn_poll(c->g);
    gn_memory_trim(c->g);
    return NULL;
}

static gn_array *call_index_arrays(calls *c, bool writes) {
    gn_array *a = any_of(c), *list[2];
    const int count = c->wild ? small(c, 1) : 1;
    list[0] = c->find(c, INDEX, 1);
    list[1] = c->find(c, INDEX, 2);
    if (count > 2) return gn_index_arrays(a, NULL, 0);
    if (!writes) return gn_index_arrays(a, list, count);
    a = gn_copy(a);
    gn_assign_arrays(a, list, count, c->wild ? second(c) : gn_ones(c->g, GN_F32, GN_SHAPE()));
    return a;
}

static gn_array *call_multi_index(calls *c) {
    gn_array *list[2];
    list[0] = c->find(c, INDEX, 1);
    list[1] = gn_mul_s(list[0], 1.0);
    return gn_ravel_multi_index(list, 2, c->wild ? shape(c) : GN_SHAPE(3, 4));
}

// X(name, flags, expression)
#define CALLS(X)                                                                                   \
    X(gn_array_from, HUGE_OK, call_from(c))                                                        \
    X(gn_array_wrap, HUGE_OK, call_wrap(c))                                                        \
    X(gn_empty, HUGE_OK | UNDEFINED, gn_empty(c->g, type(c, GN_F32), shape(c)))                    \
    X(gn_zeros, HUGE_OK, gn_zeros(c->g, type(c, GN_F32), shape(c)))                                \
    X(gn_ones, HUGE_OK, gn_ones(c->g, type(c, GN_F32), shape(c)))                                  \
    X(gn_full, HUGE_OK, gn_full(c->g, type(c, GN_F32), shape(c), number(c, 2.5)))                  \
    X(gn_scalar, HUGE_OK, gn_scalar(c->g, type(c, GN_F32), number(c, 2.5)))                        \
    X(gn_eye, HUGE_OK, gn_eye(c->g, type(c, GN_F32), whole(c, 4), whole(c, 3), whole(c, 1)))       \
    X(gn_arange, HUGE_OK,                                                                          \
      gn_arange(c->g, type(c, GN_F32), number(c, 0.0), number(c, 5.0), number(c, 0.5)))            \
    X(gn_linspace, HUGE_OK,                                                                        \
      gn_linspace(c->g, type(c, GN_F32), number(c, 0.0), number(c, 5.0), whole(c, 7)))             \
    X(gn_linspace_open, HUGE_OK,                                                                   \
      gn_linspace_open(c->g, type(c, GN_F32), number(c, 0.0), number(c, 5.0), whole(c, 7)))        \
    X(gn_zeros_like, HUGE_OK, gn_zeros_like(any_of(c)))                                            \
    X(gn_empty_like, HUGE_OK | UNDEFINED, gn_empty_like(any_of(c)))                                \
    X(gn_full_from, 0, gn_full_from(c->g, type(c, GN_F32), shape(c), "one element of it"))         \
    X(gn_ones_like, HUGE_OK, gn_ones_like(any_of(c)))                                              \
    X(gn_full_like, HUGE_OK, gn_full_like(any_of(c), number(c, 2.0)))                              \
    X(gn_read, NO_ARRAY | SEVERAL, call_read(c))                                                   \
    X(gn_read_async, NO_ARRAY | SEVERAL, call_read_async(c))                                       \
    X(gn_write, SEVERAL, call_write(c))                                                            \
    X(gn_item, NO_ARRAY | SEVERAL, call_item(c))                                                   \
    X(gn_item_int, NO_ARRAY | SEVERAL, call_item_int(c))                                           \
    X(gn_full_int, HUGE_OK | SEVERAL, gn_full_int(c->g, type(c, GN_F32), shape(c), whole(c, 7)))   \
    X(gn_cast, HUGE_OK, gn_cast(any_of(c), type(c, GN_F64)))                                       \
    X(gn_copy, 0, gn_copy(any_of(c)))                                                              \
    X(gn_eval, SEVERAL, gn_eval(gn_mul_s(floats(c), 2.0)))                                         \
    X(gn_eval_all, SEVERAL, call_eval_all(c))                                                      \
    X(gn_to, SEVERAL, gn_to(gn_copy(any_of(c)), c->wild ? (gn_device)draw(3) : GN_DEVICE_GPU))     \
    X(gn_to_string, NO_ARRAY | SEVERAL, call_to_string(c))                                         \
    X(gn_scope_begin, SEVERAL, call_scopes(c))                                                     \
    X(gn_reshape, HUGE_OK | SEVERAL,                                                               \
      (c->more[0] = gn_ravel(floats(c)), gn_reshape(c->more[0], shape_of(c, any_of(c)))))          \
    X(gn_ravel, HUGE_OK, gn_ravel(any_of(c)))                                                      \
    X(gn_permute_axes, HUGE_OK, call_permute(c))                                                   \
    X(gn_transpose, HUGE_OK, gn_transpose(any_of(c)))                                              \
    X(gn_swap_axes, HUGE_OK, gn_swap_axes(any_of(c), small(c, 0), small(c, 1)))                    \
    X(gn_move_axis, HUGE_OK, gn_move_axis(any_of(c), small(c, 0), small(c, 1)))                    \
    X(gn_expand_dims, HUGE_OK, gn_expand_dims(any_of(c), c->wild ? axes(c) : 0))                   \
    X(gn_squeeze, HUGE_OK, gn_squeeze(any_of(c), axes(c)))                                         \
    X(gn_broadcast_to, HUGE_OK, call_broadcast(c))                                                 \
    X(gn_slice, HUGE_OK, gn_slice(any_of(c), small(c, 0), whole(c, 1), whole(c, 3), whole(c, 1)))  \
    X(gn_index, HUGE_OK, gn_index(any_of(c), c->wild &&draw(2) ? "..., None, -1" : "1:3, ::-2"))   \
    X(gn_at, HUGE_OK, gn_at(any_of(c), whole(c, 1)))                                               \
    X(gn_flip, HUGE_OK, gn_flip(any_of(c), axes(c)))                                               \
    X(gn_assign, SEVERAL, call_assign(c))                                                          \
    X(gn_concat, 0, call_list(c, gn_concat))                                                       \
    X(gn_stack, 0, call_list(c, gn_stack))                                                         \
    X(gn_take, 0, gn_take(any_of(c), c->find(c, INDEX, 1), small(c, 0)))                           \
    X(gn_take_along, 0, gn_take_along(any_of(c), along(c), small(c, 0)))                           \
    X(gn_put_along, 0, gn_put_along(any_of(c), along(c), second(c), small(c, 0)))                  \
    X(gn_scatter_add, 0, gn_scatter_add(any_of(c), along(c), second(c), small(c, 0)))              \
    X(gn_scatter_max, 0, gn_scatter_max(floats(c), along(c), second(c), small(c, 0)))              \
    X(gn_scatter_min, ALIKE, gn_scatter_min(floats(c), along(c), second(c), small(c, 0)))          \
    X(gn_index_arrays, 0, call_index_arrays(c, false))                                             \
    X(gn_assign_arrays, SEVERAL, call_index_arrays(c, true))                                       \
    X(gn_ravel_multi_index, SEVERAL, call_multi_index(c))                                          \
    X(gn_unravel_index, 0, gn_unravel_index(c->find(c, INDEX, 1), c->wild ? shape(c) : GN_SHAPE(3, 2, 2)))  \
    X(gn_rot90, HUGE_OK, gn_rot90(any_of(c), small(c, 1), small(c, 0), small(c, 1)))               \
    X(gn_diag, 0, gn_diag(c->wild && draw(2) ? any_of(c) : c->find(c, ROW, 0), whole(c, 1)))       \
    X(gn_masked_fill, HUGE_OK, gn_masked_fill(any_of(c), c->find(c, TRUTH, 2), number(c, 1.0)))    \
    X(gn_nanargmin, 0, gn_nanargmin(floats(c), axes(c)))                                           \
    X(gn_nanargmax, ALIKE, gn_nanargmax(floats(c), axes(c)))                                       \
    X(gn_nancumsum, 0, gn_nancumsum(floats(c), axes(c)))                                           \
    X(gn_nancumprod, ALIKE, gn_nancumprod(floats(c), axes(c)))                                     \
    X(gn_nanmedian, 0, gn_nanmedian(floats(c), axes(c)))                                           \
    X(gn_nanquantile, ALIKE, gn_nanquantile(floats(c), c->wild && draw(2) ? (double)draw(9) / 7 : 0.3, axes(c)))  \
    X(gn_nanpercentile, ALIKE, gn_nanpercentile(floats(c), number(c, 30.0), axes(c)))              \
    X(gn_cond, SLOW, gn_cond(floats(c)))                                                           \
    X(gn_gradient, 0, gn_gradient(floats(c), c->wild && draw(2) ? c->find(c, ROW, 1) : NULL, number(c, 2.0), small(c, 0)))  \
    X(gn_trapezoid, 0, gn_trapezoid(floats(c), c->wild && draw(2) ? second(c) : NULL, number(c, 2.0), small(c, 0)))  \
    X(gn_unwrap, 0, gn_unwrap(floats(c), small(c, 0)))                                             \
    X(gn_polyfit, SLOW, gn_polyfit(c->find(c, ROW, 0), c->wild && draw(2) ? second(c) : c->find(c, ROW, 1), c->wild ? (int)few(c, 3) : 2)) \
    X(gn_polyval, 0, gn_polyval(c->find(c, ROW, 0), second(c)))                                    \
    X(gn_roots, SLOW, gn_roots(c->find(c, ROW, 0)))                                                \
    X(gn_vander, 0, gn_vander(c->find(c, ROW, 0), few(c, 3), c->wild && draw(2)))                  \
    X(gn_hanning, HUGE_OK, gn_hanning(c->g, type(c, GN_F32), few(c, 9)))                           \
    X(gn_hamming, HUGE_OK | ALIKE, gn_hamming(c->g, type(c, GN_F32), few(c, 9)))                   \
    X(gn_blackman, HUGE_OK | ALIKE, gn_blackman(c->g, type(c, GN_F32), few(c, 9)))                 \
    X(gn_conv_transpose1d, SEVERAL | ALIKE, call_conv(c, gn_conv_transpose1d, -1))                 \
    X(gn_conv_transpose3d, SEVERAL | ALIKE, call_conv(c, gn_conv_transpose3d, -3))                 \
    X(gn_nonzero, 0, gn_nonzero(any_of(c)))                                                        \
    X(gn_flatnonzero, 0, gn_flatnonzero(any_of(c)))                                                \
    X(gn_compress, 0, gn_compress(c->find(c, ROW, 0), any_of(c), axes(c)))           \
    X(gn_mask, 0, gn_mask(any_of(c), c->find(c, TRUTH, 1)))                                        \
    X(gn_assign_mask, SEVERAL, call_assign_mask(c))                                                \
    X(gn_one_hot, 0, gn_one_hot(c->find(c, INDEX, 0), type(c, GN_F32), whole(c, 5)))               \
    X(gn_roll, 0, gn_roll(any_of(c), whole(c, 1), axes(c)))                                        \
    X(gn_tile, 0, gn_tile(any_of(c), c->wild ? shape(c) : GN_SHAPE(2, 1, 2)))                      \
    X(gn_repeat, 0, gn_repeat(any_of(c), few(c, 2), axes(c)))                                      \
    X(gn_pad, 0, call_pad(c))                                                                      \
    X(gn_split, SEVERAL, call_split(c, gn_split))                                                  \
    X(gn_array_split, SEVERAL, call_split(c, gn_array_split))                                      \
    X(gn_split_at, SEVERAL, call_split_at(c))                                                      \
    X(gn_repeat_counts, 0, gn_repeat_counts(any_of(c), gn_full(c->g, GN_I32, GN_SHAPE(1), (double)few(c, 2)), axes(c))) \
    X(gn_unstack, SEVERAL, call_unstack(c))                                                        \
    X(gn_meshgrid, SEVERAL, call_meshgrid(c))                                                      \
    X(gn_diff, 0, gn_diff(any_of(c), small(c, 1), small(c, 0)))                                    \
    X(gn_sliding_window, HUGE_OK, gn_sliding_window(any_of(c), whole(c, 2), small(c, 0)))          \
    X(gn_mean, 0, gn_mean(floats(c), axes(c)))                                                     \
    X(gn_var, 0, gn_var(floats(c), axes(c), small(c, 1)))                                          \
    X(gn_std, 0, gn_std(floats(c), axes(c), small(c, 0)))                                          \
    X(gn_count_nonzero, 0, gn_count_nonzero(any_of(c), axes(c)))                                   \
    X(gn_norm, 0, gn_norm(floats(c), axes(c)))                                                     \
    X(gn_logsumexp, 0, gn_logsumexp(floats(c), axes(c)))                                           \
    X(gn_softmax, 0, gn_softmax(floats(c), small(c, -1)))                                          \
    X(gn_log_softmax, 0, gn_log_softmax(floats(c), small(c, -1)))                                  \
    X(gn_average, 0, gn_average(floats(c), second(c), axes(c)))                                    \
    X(gn_nanvar, 0, gn_nanvar(floats(c), axes(c), small(c, 1)))                                    \
    X(gn_nanstd, 0, gn_nanstd(floats(c), axes(c), small(c, 0)))                                    \
    X(gn_cov, 0, gn_cov(floats(c), small(c, 1)))                                                   \
    X(gn_corrcoef, 0, gn_corrcoef(floats(c)))                                                      \
    X(gn_isclose, 0, gn_isclose(any_of(c), second(c), number(c, 0.1), number(c, 0.0), c->wild && draw(2)))   \
    X(gn_allclose, NO_ARRAY | SEVERAL, call_truth(c, false))                                       \
    X(gn_array_equal, NO_ARRAY | SEVERAL, call_truth(c, true))                                     \
    X(gn_nan_to_num, 0, gn_nan_to_num(any_of(c), number(c, 0.0), number(c, 1.0), number(c, 2.0)))  \
    X(gn_clip, 0, gn_clip(any_of(c), floats(c), second(c)))                                        \
    X(gn_logspace, HUGE_OK,                                                                        \
      gn_logspace(c->g, type(c, GN_F32), number(c, 0.0), number(c, 2.0), whole(c, 5), number(c, 10.0))) \
    X(gn_kron, 0, gn_kron(c->find(c, ROW, 0), any_of(c)))                                          \
    X(gn_cross, 0, call_cross(c))                                                                  \
    X(gn_vector_norm, 0, gn_vector_norm(floats(c), axes(c), number(c, 3.0)))                       \
    X(gn_matrix_norm, SLOW, gn_matrix_norm(floats(c), (gn_norm_order)(c->wild ? draw(9) : 1)))     \
    X(gn_matrix_power, SLOW, gn_matrix_power(floats(c), c->wild ? few(c, 3) - 2 : 3))              \
    X(gn_expm, SLOW, gn_expm(floats(c)))                                                           \
    X(gn_slogdet, SLOW, gn_slogdet(floats(c), &c->more[0]))                                        \
    X(gn_eigvalsh, SLOW, gn_eigvalsh(floats(c)))                                                   \
    X(gn_svdvals, SLOW, gn_svdvals(floats(c)))                                                     \
    X(gn_pinv, SLOW, gn_pinv(floats(c), number(c, 0.01)))                                          \
    X(gn_matrix_rank, SLOW, gn_matrix_rank(floats(c), number(c, 0.01)))                            \
    X(gn_lstsq, SLOW, gn_lstsq(floats(c), second(c), number(c, 0.01), &c->more[0], &c->more[1]))                             \
    X(gn_sort, 0, gn_sort(any_of(c), axes(c), c->wild && draw(2)))                                 \
    X(gn_argsort, 0, gn_argsort(any_of(c), axes(c), c->wild && draw(2)))                           \
    X(gn_topk, 0, gn_topk(floats(c), few(c, 2), axes(c), &c->more[0]))                             \
    X(gn_partition, 0, gn_partition(floats(c), few(c, 1), axes(c)))                                \
    X(gn_argpartition, 0, gn_argpartition(floats(c), few(c, 1), axes(c)))                          \
    X(gn_quantiles, 0, gn_quantiles(floats(c), c->wild && draw(2) ? c->find(c, ROW, 1) : gn_mul_s(gn_cos(c->find(c, ROW, 1)), 0.0), axes(c)))  \
    X(gn_unique_axis, SEVERAL, call_unique_axis(c))                                                \
    X(gn_lexsort, 0, call_list(c, gn_lexsort))                                                     \
    X(gn_median, 0, gn_median(floats(c), axes(c)))                                                 \
    X(gn_quantile, 0, gn_quantile(floats(c), c->wild && draw(2) ? (double)draw(9) / 7 : 0.3, axes(c)))\
    X(gn_percentile, 0, gn_percentile(floats(c), number(c, 30.0), axes(c)))                        \
    X(gn_searchsorted, 0, gn_searchsorted(c->find(c, ROW, 0), second(c), c->wild && draw(2)))      \
    X(gn_digitize, SEVERAL, call_digitize(c))                                                      \
    X(gn_isin, 0, gn_isin(any_of(c), second(c)))                                                   \
    X(gn_interp, 0, call_interp(c))                                                                \
    X(gn_unique, SEVERAL, call_unique(c))                                                          \
    X(gn_union1d, 0, gn_union1d(any_of(c), second(c)))                                             \
    X(gn_intersect1d, 0, gn_intersect1d(any_of(c), second(c)))                                     \
    X(gn_setdiff1d, 0, gn_setdiff1d(any_of(c), second(c)))                                         \
    X(gn_setxor1d, 0, gn_setxor1d(any_of(c), second(c)))                                           \
    X(gn_bincount, SEVERAL, call_bincount(c))                                                      \
    X(gn_histogram, 0, gn_histogram(floats(c), few(c, 4), number(c, 0.0), number(c, 0.0), &c->more[0]))\
    X(gn_histogram_with, 0, gn_histogram_with(floats(c), c->wild && draw(2) ? NULL : second(c), few(c, 4), number(c, 0.0), number(c, 0.0), c->wild && draw(2), &c->more[0]))\
    X(gn_histogram2d, 0, gn_histogram2d(floats(c), second(c), c->wild && draw(2) ? NULL : second(c), few(c, 4), few(c, 3), number(c, 0.0), number(c, 0.0), number(c, -1.0), number(c, 1.0), c->wild && draw(2), &c->more[0], &c->more[1]))\
    X(gn_histogram_edges, SEVERAL, call_histogram_edges(c))                                        \
    X(gn_matmul, 0, gn_matmul(floats(c), second(c)))                                               \
    X(gn_dot, 0, gn_dot(floats(c), second(c)))                                                     \
    X(gn_vecdot, 0, gn_vecdot(floats(c), second(c), small(c, -1)))                                 \
    X(gn_outer, 0, gn_outer(c->find(c, ROW, 0), c->find(c, ROW, 1)))                               \
    X(gn_tensordot, 0, call_tensordot(c))                                                          \
    X(gn_einsum_list, 0, call_einsum(c))                                                           \
    X(gn_diagonal, 0, gn_diagonal(any_of(c), whole(c, 1)))                                         \
    X(gn_trace, 0, gn_trace(floats(c), whole(c, 0)))                                               \
    X(gn_tril, 0, gn_tril(floats(c), whole(c, 0)))                                                 \
    X(gn_triu, 0, gn_triu(floats(c), whole(c, 1)))                                                 \
    X(gn_solve, SLOW, gn_solve(floats(c), second(c)))                                              \
    X(gn_solve_triangular, SLOW, gn_solve_triangular(floats(c), second(c), c->wild && draw(2), c->wild && draw(2), c->wild && draw(2)))  \
    X(gn_inv, SLOW, gn_inv(floats(c)))                                                             \
    X(gn_det, SLOW, gn_det(floats(c)))                                                             \
    X(gn_cholesky, SLOW, gn_cholesky(floats(c)))                                                   \
    X(gn_qr, SLOW, gn_qr(floats(c), &c->more[0]))                                                  \
    X(gn_eigh, SLOW, gn_eigh(floats(c), &c->more[0]))                                              \
    X(gn_eig, SLOW, gn_eig(floats(c), &c->more[0]))                                                \
    X(gn_eigvals, SLOW | ALIKE, gn_eigvals(floats(c)))                                             \
    X(gn_svd, SLOW, call_svd(c))                                                                   \
    X(gn_rand, HUGE_OK, gn_rand(c->g, type(c, GN_F32), shape(c)))                                  \
    X(gn_randn, HUGE_OK, gn_randn(c->g, type(c, GN_F32), shape(c)))                                \
    X(gn_uniform, HUGE_OK,                                                                         \
      gn_uniform(c->g, type(c, GN_F32), shape(c), number(c, 0.0), number(c, 1.0)))                 \
    X(gn_normal, HUGE_OK,                                                                          \
      gn_normal(c->g, type(c, GN_F32), shape(c), number(c, 0.0), number(c, 1.0)))                  \
    X(gn_randint, HUGE_OK, gn_randint(c->g, type(c, GN_I32), shape(c), whole(c, 0), whole(c, 9)))  \
    X(gn_bernoulli, HUGE_OK, gn_bernoulli(c->g, type(c, GN_F32), shape(c), number(c, 0.5)))        \
    X(gn_exponential, 0, gn_exponential(c->g, type(c, GN_F32), shape(c), number(c, 2.0)))          \
    X(gn_gamma, 0, gn_gamma(c->g, type(c, GN_F32), shape(c), number(c, 2.0), number(c, 1.0)))      \
    X(gn_beta, 0, gn_beta(c->g, type(c, GN_F32), shape(c), number(c, 2.0), number(c, 0.5)))        \
    X(gn_poisson, 0, gn_poisson(c->g, type(c, GN_I32), shape(c), number(c, 20.0)))                 \
    X(gn_binomial, 0, gn_binomial(c->g, type(c, GN_I32), shape(c), whole(c, 90), number(c, 0.5)))  \
    X(gn_truncated_normal, 0,                                                                      \
      gn_truncated_normal(c->g, type(c, GN_F32), shape(c), number(c, 0.0), number(c, 1.0),         \
                          number(c, -1.0), number(c, 2.0)))                                        \
    X(gn_choice, SEVERAL, call_choice(c))                                                          \
    X(gn_shuffle, SEVERAL, gn_shuffle(any_of(c), small(c, 0)))                                     \
    X(gn_permutation, HUGE_OK, gn_permutation(c->g, type(c, GN_I32), whole(c, 6)))                 \
    X(gn_requires_grad, SEVERAL, call_requires_grad(c))                                            \
    X(gn_backward, SEVERAL, call_backward(c))                                                      \
    X(gn_detach, HUGE_OK, gn_detach(any_of(c)))                                                    \
    X(gn_no_grad_begin, SEVERAL, call_no_grad(c))                                                  \
    X(gn_autocast_begin, SEVERAL, call_autocast(c))                                                \
    X(gn_scale_loss, SEVERAL, call_scaled(c))                                                      \
    X(gn_gradients, SEVERAL, call_gradients(c))                                                    \
    X(gn_custom, SEVERAL, call_custom(c))                                                          \
    X(gn_checkpoint, SEVERAL, call_checkpoint(c))                                                  \
    X(gn_gradcheck, NO_ARRAY | SEVERAL, call_gradcheck(c))                                         \
    X(gn_linear, 0, gn_linear(floats(c), second(c), c->find(c, ROW, 2)))                           \
    X(gn_gelu_tanh, 0, gn_gelu_tanh(floats(c)))                                                    \
    X(gn_cross_entropy, 0, gn_cross_entropy(floats(c), c->find(c, INDEX, 1)))                      \
    X(gn_mse_loss, 0, gn_mse_loss(floats(c), second(c)))                                           \
    X(gn_dropout, 0, gn_dropout(floats(c), number(c, 0.5), !c->wild || draw(2)))                   \
    X(gn_embedding, 0, gn_embedding(c->find(c, INDEX, 1), floats(c), whole(c, 1)))                 \
    X(gn_rope, 0, call_rope(c))                                                                    \
    X(gn_lstm, SEVERAL | SLOW, call_recurrent(c, true))                                            \
    X(gn_gru, SEVERAL | SLOW, call_recurrent(c, false))                                            \
    X(gn_attention, SEVERAL, call_attention(c))                                                    \
    X(gn_mse_loss_with, 0, gn_mse_loss_with(floats(c), second(c), reduction(c)))                   \
    X(gn_l1_loss, ALIKE, gn_l1_loss(floats(c), second(c), reduction(c)))                           \
    X(gn_smooth_l1_loss, ALIKE, gn_smooth_l1_loss(floats(c), second(c), number(c, 1.0), reduction(c)))\
    X(gn_huber_loss, 0, gn_huber_loss(floats(c), second(c), number(c, 1.0), reduction(c)))         \
    X(gn_bce_loss, 0, gn_bce_loss(floats(c), second(c), reduction(c)))                             \
    X(gn_bce_with_logits, 0,                                                                       \
      gn_bce_with_logits(floats(c), second(c), c->wild && draw(2) ? NULL : c->find(c, ROW, 2), reduction(c))) \
    X(gn_kl_div, 0, gn_kl_div(floats(c), second(c), c->wild && draw(2), reduction(c)))             \
    X(gn_cosine_similarity, 0, gn_cosine_similarity(floats(c), second(c), small(c, 1), number(c, 1e-8))) \
    X(gn_cosine_embedding_loss, 0,                                                                 \
      gn_cosine_embedding_loss(floats(c), second(c), c->find(c, c->wild ? INDEX : ROW, 2), number(c, 0.1), reduction(c))) \
    X(gn_cross_entropy_with, 0, call_classes(c, gn_cross_entropy_with))                            \
    X(gn_nll_loss, 0, call_classes(c, gn_nll_loss))                                                \
    X(gn_conv1d, SEVERAL, call_conv(c, gn_conv1d, 1))                                              \
    X(gn_conv2d, SEVERAL, call_conv(c, gn_conv2d, 2))                                              \
    X(gn_conv3d, SEVERAL, call_conv(c, gn_conv3d, 3))                                              \
    X(gn_conv_transpose2d, SEVERAL, call_conv(c, gn_conv_transpose2d, -2))                         \
    X(gn_max_pool2d, 0, call_pool(c, true))                                                        \
    X(gn_avg_pool2d, 0, call_pool(c, false))                                                       \
    X(gn_adaptive_max_pool2d, 0, gn_adaptive_max_pool2d(floats(c), few(c, 3), few(c, 2), &c->more[0])) \
    X(gn_adaptive_avg_pool2d, 0, gn_adaptive_avg_pool2d(floats(c), few(c, 3), few(c, 2)))          \
    X(gn_interpolate, 0,                                                                           \
      gn_interpolate(floats(c), few(c, 3), few(c, 5), (gn_interpolation)(c->wild ? draw(3) : 1), c->wild && draw(2))) \
    X(gn_batch_norm, SEVERAL, call_batch_norm(c))                                                  \
    X(gn_layer_norm, 0, gn_layer_norm(floats(c), small(c, 1), c->wild && draw(2) ? NULL : c->find(c, ROW, 1), \
                                      c->wild && draw(2) ? NULL : c->find(c, ROW, 2), number(c, 1e-3))) \
    X(gn_rms_norm, 0, gn_rms_norm(floats(c), small(c, 1), c->wild && draw(2) ? NULL : c->find(c, ROW, 1), number(c, 1e-3))) \
    X(gn_group_norm, 0, gn_group_norm(floats(c), few(c, 2), c->wild && draw(2) ? NULL : c->find(c, ROW, 1), \
                                      c->wild && draw(2) ? NULL : c->find(c, ROW, 2), number(c, 1e-3))) \
    X(gn_instance_norm, SEVERAL, gn_instance_norm(c->wild ? floats(c) : gn_expand_dims(floats(c), 0), \
                                                  c->find(c, ROW, 1), c->find(c, ROW, 2), number(c, 1e-3))) \
    X(gn_he_normal, HUGE_OK, gn_he_normal(c->g, type(c, GN_F32), shape(c)))                        \
    X(gn_xavier_uniform, HUGE_OK, gn_xavier_uniform(c->g, type(c, GN_F32), shape(c)))              \
    X(gn_sgd, SEVERAL, call_sgd(c))                                                                \
    X(gn_adam, SEVERAL, call_adam(c))                                                              \
    X(gn_adamw, SEVERAL, call_adamw(c))                                                            \
    X(gn_rmsprop, SEVERAL, call_rmsprop(c))                                                        \
    X(gn_adagrad, SEVERAL, call_adagrad(c))                                                        \
    X(gn_lion, SEVERAL, call_lion(c))                                                              \
    X(gn_muon, SEVERAL, call_muon(c))                                                              \
    X(gn_clip_grad_norm, SEVERAL, call_clip(c))                                                    \
    X(gn_load_npy, SEVERAL, call_npy(c))                                                           \
    X(gn_params_new, SEVERAL, call_params(c))                                                      \
    X(gn_random_crop, 0, gn_random_crop(images(c, any_of(c)), whole(c, 3), whole(c, 4), whole(c, 1)))  \
    X(gn_random_flip, 0, gn_random_flip(images(c, any_of(c)), number(c, 0.5)))                     \
    X(gn_cutout, 0, gn_cutout(images(c, any_of(c)), whole(c, 2)))                                  \
    X(gn_hue_jitter, SLOW, call_hue_jitter(c))                                                     \
    X(gn_color_jitter, SLOW, call_color_jitter(c))                                                 \
    X(gn_random_rotation, SLOW, gn_random_rotation(images(c, floats(c)), number(c, 30)))           \
    X(gn_mixup, 0, call_mixup(c))                                                                  \
    X(gn_normalize, 0, call_normalize(c))                                                          \
    X(gn_affine_grid, 0, call_affine_grid(c))                                                      \
    X(gn_grid_sample, SLOW | SEVERAL, call_grid_sample(c))                                                   \
    X(gn_loader_new, SEVERAL, call_loader(c))                                                      \
    X(gn_load_cifar10, HUGE_OK | SEVERAL, call_cifar10(c))                                         \
    X(gn_load_npz, SEVERAL, call_npz(c))                                                           \
    X(gn_load_csv, SEVERAL, call_csv(c))                                                           \
    X(gn_load_npy_memory, SEVERAL, call_memory(c))                                                 \
    X(gn_from_dlpack, SEVERAL, call_dlpack(c))                                                     \
    X(gn_load_idx, HUGE_OK | SEVERAL, call_idx(c))                                                 \
    X(gn_profile_begin, SEVERAL, call_profile(c))                                                  \
    X(gn_size, NO_ARRAY | SEVERAL, call_facts(c))                                                  \
    X(gn_rsub_s, HUGE_OK | ALIKE, gn_rsub_s(any_of(c), number(c, 2.0)))                            \
    X(gn_rdiv_s, HUGE_OK, gn_rdiv_s(any_of(c), number(c, 2.0)))                                    \
    X(gn_rpow_s, HUGE_OK, gn_rpow_s(any_of(c), number(c, 2.0)))                                    \
    X(gn_leaky_relu, HUGE_OK, gn_leaky_relu(floats(c), number(c, 0.1)))                            \
    X(gn_elu, HUGE_OK, gn_elu(floats(c), number(c, 1.0)))                                          \
    X(gn_clamp, HUGE_OK, gn_clamp(any_of(c), number(c, 0.0), number(c, 1.0)))                      \
    X(gn_where, HUGE_OK, gn_where(c->find(c, TRUTH, 2), floats(c), second(c)))                     \
    X(gn_fma, HUGE_OK, gn_fma(floats(c), second(c), c->find(c, FLOATS, 2)))                        \
    X(gn_lerp, HUGE_OK, gn_lerp(floats(c), second(c), c->find(c, FLOATS, 2)))                      \
    X(gn_fft, 0, gn_fft(any_of(c), whole(c, 0), small(c, -1), norm(c)))                            \
    X(gn_ifft, 0, gn_ifft(any_of(c), whole(c, 11), small(c, 0), norm(c)))                          \
    X(gn_rfft, 0, gn_rfft(floats(c), whole(c, 5), small(c, -1), norm(c)))                          \
    X(gn_irfft, 0, gn_irfft(c->find(c, COMPLEXES, 0), whole(c, 5), small(c, -1), norm(c)))         \
    X(gn_hfft, 0, gn_hfft(c->find(c, COMPLEXES, 0), whole(c, 0), small(c, -1), norm(c)))           \
    X(gn_ihfft, 0, gn_ihfft(floats(c), whole(c, 0), small(c, -1), norm(c)))                        \
    X(gn_fft2, 0, gn_fft2(any_of(c), norm(c)))                                                     \
    X(gn_ifft2, 0, gn_ifft2(any_of(c), norm(c)))                                                   \
    X(gn_fftn, 0, call_fftn(c, gn_fftn, ANY))                                                      \
    X(gn_ifftn, 0, call_fftn(c, gn_ifftn, ANY))                                                    \
    X(gn_rfftn, 0, call_fftn(c, gn_rfftn, FLOATS))                                                 \
    X(gn_irfftn, 0, call_fftn(c, gn_irfftn, COMPLEXES))                                            \
    X(gn_dct, 0, gn_dct(floats(c), small(c, 2), whole(c, 0), small(c, -1), norm(c)))               \
    X(gn_idct, 0, gn_idct(floats(c), small(c, 3), whole(c, 5), small(c, -1), norm(c)))             \
    X(gn_dst, 0, gn_dst(floats(c), small(c, 2), whole(c, 0), small(c, -1), norm(c)))               \
    X(gn_idst, 0, gn_idst(floats(c), small(c, 3), whole(c, 5), small(c, -1), norm(c)))             \
    X(gn_fftfreq, HUGE_OK, gn_fftfreq(c->g, type(c, GN_F32), whole(c, 5), number(c, 1.0)))         \
    X(gn_rfftfreq, HUGE_OK, gn_rfftfreq(c->g, type(c, GN_F32), whole(c, 5), number(c, 1.0)))       \
    X(gn_fftshift, 0, gn_fftshift(any_of(c), axes(c)))                                             \
    X(gn_ifftshift, 0, gn_ifftshift(any_of(c), axes(c)))                                           \
    X(gn_real, 0, gn_real(c->find(c, COMPLEXES, 0)))                                               \
    X(gn_imag, 0, gn_imag(c->find(c, COMPLEXES, 0)))                                               \
    X(gn_complex, 0, gn_complex(floats(c), second(c)))                                             \
    X(gn_conj, 0, gn_conj(c->find(c, COMPLEXES, 0)))                                               \
    X(gn_angle, 0, gn_angle(c->find(c, COMPLEXES, 0)))                                             \
    X(gn_convolve, 0, gn_convolve(c->find(c, ROW, 0), c->find(c, ROW, 1), mode(c)))                \
    X(gn_correlate, 0, gn_correlate(c->find(c, ROW, 0), c->find(c, ROW, 1), mode(c)))              \
    X(gn_convolve2d, 0, gn_convolve2d(floats(c), second(c), mode(c)))                              \
    X(gn_fftconvolve, 0, gn_fftconvolve(floats(c), second(c), mode(c)))

// Functions that the calls above go through beside the one they are named by, or that need no test of this kind.
static const char *const other_functions[] = {
    "gn_log_stderr", "gn_open_version", "gn_open_async_version", "gn_open_error", "gn_open_status", "gn_version",
    "gn_options_size", "gn_close", "gn_status_get", "gn_error", "gn_error_clear",
    "gn_status_string", "gn_device_list", "gn_device_get", "gn_flush", "gn_poll", "gn_sync", "gn_memory_get",
    "gn_memory_trim", "gn_scope_end", "gn_keep", "gn_retain", "gn_release", "gn_set",
    "gn_shape_from", "gn_axes_from", "gn_axes_keep", "gn_shape_of", "gn_dtype_of", "gn_bytes",
    "gn_rank", "gn_dim", "gn_context_of", "gn_dtype_size", "gn_dtype_name", "gn_promote",
    "gn_explain", "gn_print", "gn_string_free", "gn_seed", "gn_seed_split", "gn_needs_grad", "gn_grad",
    "gn_zero_grad", "gn_no_grad_end", "gn_autocast_end", "gn_step_scaled", "gn_step", "gn_zero_grads", "gn_lr_set", "gn_lr_get", "gn_optimizer_add_group", "gn_optimizer_add_group_with", "gn_clip_grad_value", "gn_ema_update",
    "gn_lr_step", "gn_lr_multi_step", "gn_lr_exponential", "gn_lr_cosine", "gn_lr_cosine_restarts", "gn_lr_linear",
    "gn_lr_one_cycle", "gn_lr_plateau", "gn_params_free", "gn_params_count", "gn_params_name", "gn_params_at", "gn_params_get",
    "gn_params_note", "gn_params_noted", "gn_params_save", "gn_params_save_memory", "gn_params_load", "gn_params_load_memory",
    "gn_params_load_matching", "gn_params_load_matching_memory",
    "gn_load_safetensors", "gn_load_safetensors_memory", "gn_params_add_optimizer", "gn_optimizer_restore", "gn_params_add",
    "gn_loader_next", "gn_loader_batches", "gn_loader_seek", "gn_loader_free",
    "gn_optimizer_free", "gn_save_npy", "gn_save_npz", "gn_save_csv", "gn_npz_names", "gn_npz_names_memory", "gn_load_idx_memory", "gn_save_npy_memory",
    "gn_save_npz_memory", "gn_save_csv_memory", "gn_load_npz_memory", "gn_load_csv_memory", "gn_to_dlpack", "gn_profile_end", "gn_vulkan_buffer", "gn_vulkan_wrap",
    "gn_vulkan_record_begin", "gn_vulkan_record_end", "gn_vulkan_record_done",
};

#define GN_X(name, flags, expression)                                                              \
    static gn_array *run_##name(calls *c) { return expression; }
CALLS(GN_X)
#undef GN_X

typedef struct function {
    const char *name;
    int flags;
    gn_array *(*call)(calls *c);
    gn_array *(*one)(gn_array *a);
    gn_array *(*two)(gn_array *a, gn_array *b);
    gn_array *(*with)(gn_array *a, double b);
    gn_array *(*over)(gn_array *a, gn_axes axes);
} function;

static const function functions[] = {
#define GN_X(name, flags, expression) {#name, flags, run_##name, NULL, NULL, NULL, NULL},
    CALLS(GN_X)
#undef GN_X
#define ONE(fn) {"gn_" #fn, HUGE_OK | ALIKE, NULL, gn_##fn, NULL, NULL, NULL},
#define TWO(fn)                                                                                    \
    {"gn_" #fn, HUGE_OK | ALIKE, NULL, NULL, gn_##fn, NULL, NULL},                                 \
        {"gn_" #fn "_s", HUGE_OK | ALIKE, NULL, NULL, NULL, gn_##fn##_s, NULL},
#define PAIR(fn) {"gn_" #fn, HUGE_OK | ALIKE, NULL, NULL, gn_##fn, NULL, NULL},
#define OVER(fn) {"gn_" #fn, 0, NULL, NULL, NULL, NULL, gn_##fn},
    // clang-format off
    ONE(sqrt) ONE(rsqrt) ONE(cbrt) ONE(recip) ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2)
    ONE(log10) ONE(log1p) ONE(sin) ONE(cos) ONE(tan) ONE(asin) ONE(acos) ONE(atan) ONE(sinh)
    ONE(cosh) ONE(tanh) ONE(asinh) ONE(acosh) ONE(atanh) ONE(erf) ONE(sigmoid) ONE(silu) ONE(gelu)
    ONE(softplus) ONE(neg) ONE(abs) ONE(sign) ONE(square) ONE(floor) ONE(ceil) ONE(round)
    ONE(trunc) ONE(relu) ONE(isnan) ONE(isinf) ONE(isfinite) ONE(logical_not)
    ONE(sinc) ONE(signbit) ONE(erfc) ONE(erfinv) ONE(lgamma) ONE(digamma) ONE(invert)
    TWO(div) TWO(atan2) TWO(hypot) TWO(add) TWO(sub) TWO(mul) TWO(floor_div) TWO(mod) TWO(pow)
    TWO(minimum) TWO(maximum) TWO(eq) TWO(ne) TWO(lt) TWO(le) TWO(gt) TWO(ge) TWO(logical_and)
    TWO(logical_or) TWO(logical_xor) PAIR(logaddexp) PAIR(copysign) PAIR(nextafter) TWO(and) TWO(or) TWO(xor) TWO(shl) TWO(shr)
    OVER(sum) OVER(prod) OVER(min) OVER(max) OVER(any) OVER(all) OVER(argmin) OVER(argmax)
    OVER(cumsum) OVER(cumprod) OVER(cummax) OVER(cummin) OVER(logcumsumexp)
    OVER(ptp) OVER(nansum) OVER(nanprod) OVER(nanmin) OVER(nanmax) OVER(nanmean)
// clang-format on
#undef ONE
#undef TWO
#undef PAIR
#undef OVER
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static gn_array *run_function(calls *c, const function *f) {
    c->more[0] = c->more[1] = NULL;
    c->number = 0.0;
    c->nowhere = false;
    if (f->call != NULL) return f->call(c);
    gn_array *a = c->find(c, ANY, 0);
    if (f->one != NULL) return f->one(a);
    if (f->two != NULL) return f->two(a, c->find(c, ANY, 1));
    return f->with != NULL ? f->with(a, number(c, 2.0)) : f->over(a, axes(c));
}

#endif
