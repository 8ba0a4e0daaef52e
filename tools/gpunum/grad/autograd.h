// >>autograd
// The record of what was computed, and the pass back over it. An array owns the record of the op that
// made it; a record holds references to the op's operands. From outside: gni_tracks and gni_record
// around every differentiable op.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../ops/reduce_ops.h"
#include "../ops/complex.h"
#include "../ops/assign.h"
#endif

static bool gni_wants_grad(const gn_array *a) { return a->wants_grad || a->node != NULL; }

static bool gni_tracks(const gn_context *g, gn_array *const *in, int n_in) {
    if (g->no_grad > 0) return false;
    for (int i = 0; i < n_in; i++)
        if (in[i] != NULL && gni_wants_grad(in[i])) return true;
    return false;
}

static uint32_t gni_version(const gn_array *a) { return a->buf != NULL ? a->buf->version : 0; }

static gni_node *gni_node_new(gn_context *g, const char *name, int n_in) {
    size_t bytes = sizeof(gni_node) + (size_t)n_in * (sizeof(gn_array *) + sizeof(uint32_t));
    gni_node *node = (gni_node *)gni_calloc(g, bytes);
    if (node == NULL) {
        gni_fail_memory(g, name, bytes);
        return NULL;
    }
    node->name = name;
    node->n_in = n_in;
    node->in = (gn_array **)(void *)(node + 1);
    node->version = (uint32_t *)(void *)(node->in + n_in);
    return node;
}

static gni_node *gni_record(gn_context *g, gn_array *y, const char *name, gni_backward_fn backward,
                            gn_array *const *in, int n_in) {
    if (y == NULL || !gni_tracks(g, in, n_in)) return NULL;
    if (!gni_is_float(y->dtype) && !gni_is_complex(y->dtype)) return NULL;
    gni_node *node = gni_node_new(g, name, n_in);
    if (node == NULL) return NULL;
    node->backward = backward;
    node->serial = ++g->serial;
    node->made = gni_version(y);
    for (int i = 0; i < n_in; i++) {
        node->in[i] = in[i];
        if (in[i] == NULL) continue;
        gni_ref(in[i]);
        node->version[i] = gni_version(in[i]);
    }
    if (y->node != NULL) gni_node_free(g, y->node);
    node->output = y;
    y->node = node;
    return node;
}

static void gni_note(gni_node *node, int64_t a, int64_t b, int64_t c) {
    if (node == NULL) return;
    node->param[0] = a;
    node->param[1] = b;
    node->param[2] = c;
}

static void gni_node_drop_inputs(gn_context *g, gni_node *node) {
    int n = node->n_in;
    node->n_in = 0;
    for (int i = 0; i < n; i++) gni_unref(g, node->in[i]);
}

static void gni_node_free(gn_context *g, gni_node *node) {
    gni_node_drop_inputs(g, node);
    gni_unref(g, node->gy);
    gni_free(g, node);
}

// ---- the pass

enum {
    GNI_VISITED = 1, // bits of gni_node.visited: is on the list of the pass,
    GNI_TARGET = 2,  // its gradient is asked for,
    GNI_NEEDED = 4,  // or leads to one that is;
    GNI_HELD = 8     // relu's, its gradient is 0 already where relu holds it back
};

// What a pass has noted in a record.
typedef struct gni_marks {
    gni_node *node;
    gn_array *gy;
    uint32_t visited;
} gni_marks;

struct gni_pass {
    gn_context *g;
    const char *fn;
    bool leaves;     // every array that requires a gradient is a target
    bool keep;       // the graph stays usable
    bool off;        // nothing is recorded where it was asked for
    gn_array **list; // all arrays with a record under the loss, a reference each
    int64_t count, capacity;
    int widest; // operands of a record
    gni_pass *outer;  // whose derivatives are being computed
    gni_marks *marks; // by place on the list, while another pass is under way in a derivative
};

// Stands in for the record of a graph that was released.
static bool gni_back_used(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    GNI_UNUSED(g);
    GNI_UNUSED(node);
    GNI_UNUSED(gy);
    GNI_UNUSED(gx);
    return false;
}

static bool gni_wanted(const gni_node *node, int i) {
    const gn_array *a = node->in[i];
    return a != NULL && a->node != NULL && (a->node->visited & GNI_NEEDED) != 0;
}

static bool gni_may_want(const gni_node *node, int i) {
    return node->in[i] != NULL && gni_wants_grad(node->in[i]);
}

static bool gni_is_leaf(const gni_node *node) { return node->serial == 0; }

static bool gni_is_target(const gni_pass *p, const gni_node *node) {
    return (node->visited & GNI_TARGET) != 0 || (p->leaves && gni_is_leaf(node));
}

// A pass within a derivative, of gn_checkpoint or of a caller's op, finds no marks of the pass around it.
static bool gni_pass_begin(gni_pass *p) {
    gni_pass *outer = p->g->pass;
    p->outer = outer;
    p->g->pass = p;
    if (outer == NULL) return true;
    const size_t bytes = sizeof(gni_marks) * (size_t)outer->count;
    outer->marks = (gni_marks *)gni_calloc(p->g, bytes);
    if (outer->marks == NULL) return gni_fail_memory(p->g, p->fn, bytes);
    for (int64_t at = 0; at < outer->count; at++) {
        gn_array *a = outer->list[at];
        gni_node *node = a != NULL ? a->node : NULL;
        if (node == NULL) continue;
        outer->marks[at].node = node;
        outer->marks[at].gy = node->gy;
        outer->marks[at].visited = node->visited;
        node->gy = NULL;
        node->visited = 0;
        if (gni_is_leaf(node)) a->node = NULL;
    }
    return true;
}

// Puts `a` on the list once. Arrays without a record get one for the time of the pass.
static bool gni_pass_add(gni_pass *p, gn_array *a) {
    gn_context *g = p->g;
    if (a->node != NULL && (a->node->visited & GNI_VISITED)) return true;
    if (p->count == p->capacity) {
        int64_t capacity = p->capacity > 0 ? 2 * p->capacity : 64;
        gn_array **list =
            (gn_array **)gni_realloc(g, p->list, sizeof(gn_array *) * (size_t)p->capacity,
                                     sizeof(gn_array *) * (size_t)capacity);
        if (list == NULL) return gni_fail_memory(g, p->fn, sizeof(gn_array *) * (size_t)capacity);
        p->list = list;
        p->capacity = capacity;
    }
    if (a->node == NULL) {
        a->node = gni_node_new(g, p->fn, 0);
        if (a->node == NULL) return false;
        a->node->output = a;
    }
    gni_ref(a);
    a->node->visited = GNI_VISITED;
    p->widest = GNI_MAX(p->widest, a->node->n_in);
    p->list[p->count++] = a;
    return true;
}

static bool gni_pass_collect(gni_pass *p, gn_array *loss) {
    if (!gni_pass_add(p, loss)) return false;
    for (int64_t at = 0; at < p->count; at++) {
        const gni_node *node = p->list[at]->node;
        for (int i = 0; i < node->n_in; i++) {
            gn_array *a = node->in[i];
            if (a == NULL) continue;
            if (a->node == NULL && !(p->leaves && a->wants_grad && gni_has_owner(a))) continue;
            if (!gni_pass_add(p, a)) return false;
        }
    }
    return true;
}

static void gni_sift_down(gn_array **list, int64_t at, int64_t count) {
    gn_array *moving = list[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && list[child + 1]->node->serial < list[child]->node->serial) child++;
        if (list[child]->node->serial >= moving->node->serial) break;
        list[at] = list[child];
        at = child;
    }
    list[at] = moving;
}

// Latest op first: an op was always recorded after those that made its operands.
static void gni_pass_sort(gni_pass *p) {
    bool sorted = true;
    for (int64_t i = 1; i < p->count && sorted; i++)
        sorted = p->list[i - 1]->node->serial >= p->list[i]->node->serial;
    if (sorted) return;
    for (int64_t i = p->count / 2; i-- > 0;) gni_sift_down(p->list, i, p->count);
    for (int64_t end = p->count - 1; end > 0; end--) {
        gn_array *least = p->list[0];
        p->list[0] = p->list[end];
        p->list[end] = least;
        gni_sift_down(p->list, 0, end);
    }
}

// Notes what lies between the loss and the targets.
static void gni_pass_needed(gni_pass *p) {
    for (int64_t at = p->count; at-- > 0;) {
        gni_node *node = p->list[at]->node;
        // What lies below a part that was used before is not known any more: gni_pass_check reports it.
        bool needed = gni_is_target(p, node) || node->backward == gni_back_used;
        for (int i = 0; i < node->n_in && !needed; i++) needed = gni_wanted(node, i);
        if (needed) node->visited |= GNI_NEEDED;
    }
}

static gn_array *gni_gradient_sum(gn_array *a, gn_array *b) {
    if (a == NULL || b == NULL) return NULL;
    return gni_is_complex(a->dtype) ? gni_complex_add(a, b) : gn_add(a, b);
}

static gn_array *gni_gradient_as(gn_array *gx, gn_dtype t) {
    gn_array *whole = gni_before_widening(gx);
    if (whole->dtype == t) return whole;
    if (gni_is_complex(gx->dtype) && !gni_is_complex(t))
        gx = gn_real(gx); // moves along the real axis only
    if (gx != NULL && gni_is_complex(t)) gx = gn_complex(gn_real(gx), gn_imag(gx));
    return gx == NULL || gx->dtype == t ? gx : gn_cast(gx, t);
}

// Adds gx to the gradient of operand i.
static bool gni_pass_give(gni_pass *p, gni_node *node, int i, gn_array *gx) {
    gn_context *g = p->g;
    gn_array *a = node->in[i];
    if (gx == NULL) {
        if (!g->call_failed)
            gni_fail(g, GN_ERROR_GRADIENT, "%s: %s has no derivative with respect to operand %d",
                     p->fn, node->name, i + 1);
        return false;
    }
    if (!gni_same_shape(&gx->shape, &a->shape)) {
        char ta[200], tb[200];
        return gni_fail(g, GN_ERROR_GRADIENT, "%s: the gradient of %s has shape %s, its operand %s", p->fn, node->name,
                        gni_shape_text(ta, sizeof ta, &gx->shape), gni_shape_text(tb, sizeof tb, &a->shape));
    }
    gx = gni_gradient_as(gx, a->dtype);
    if (a->node->gy != NULL) {
        a->node->visited &= ~(uint32_t)GNI_HELD;
        gx = gni_gradient_sum(a->node->gy, gx);
    }
    if (gx == NULL) return false;
    gni_ref(gx);
    gni_unref(g, a->node->gy);
    a->node->gy = gx;
    return true;
}

// Whether the values that the backward function will read are still those of the forward pass.
static bool gni_pass_check(gni_pass *p, const gni_node *node) {
    gn_context *g = p->g;
    char text[200];
    if (node->backward == gni_back_used) {
        gni_fail(g, GN_ERROR_GRADIENT,
                 "%s: the graph was already used; compute the loss again, or differentiate it with "
                 "gn_gradients and create_graph the first time",
                 p->fn);
        return false;
    }
    if (node->backward == NULL) return gni_fail(g, GN_ERROR_GRADIENT, "%s: %s has no derivative", p->fn, node->name);
    uint32_t reads = gni_back_reads(node);
    for (int i = 0; i < node->n_in; i++) {
        const gn_array *a = node->in[i];
        if (a == NULL || !(reads & (1u << GNI_MIN(i, 30))) || gni_version(a) == node->version[i])
            continue;
        return gni_fail(g, GN_ERROR_GRADIENT,
                        "%s: operand %d of %s, %s %s, was overwritten by gn_write, gn_assign or gn_step after it was used",
                        p->fn, i + 1, node->name, gn_dtype_name(a->dtype), gni_shape_text(text, sizeof text, &a->shape));
    }
    if ((reads & GNI_READS_OUTPUT) && gni_version(node->output) != node->made)
        return gni_fail(g, GN_ERROR_GRADIENT, "%s: the result of %s, %s %s, was overwritten by gn_write or gn_assign", p->fn,
                        node->name, gn_dtype_name(node->output->dtype),
                        gni_shape_text(text, sizeof text, &node->output->shape));
    return true;
}

// Whether the gradient of the array that a slice is of is there, and nobody else's, so that the slice's is added to it in
// place.
static bool gni_pass_has_whole(const gni_pass *p, const gni_node *node) {
    const gn_array *a = node->backward == gni_back_slice ? node->in[0]->node->gy : NULL;
    return a != NULL && a->buf != NULL && a->node == NULL && a->refs == 1 && a->buf->refs == 1 && gni_is_contiguous(a) &&
           a->dtype == node->gy->dtype && !gni_is_complex(a->dtype) && !gni_tracks(p->g, &node->gy, 1);
}

static bool gni_pass_add_slice(gni_pass *p, const gni_node *node) {
    gn_context *g = p->g;
    gn_array *whole = node->in[0]->node->gy;
    const int axis = (int)node->param[0];
    node->in[0]->node->visited &= ~(uint32_t)GNI_HELD;
    gn_shape s = node->gy->shape;
    int64_t stride[GN_MAX_RANK], offset = whole->offset + node->param[1] * whole->stride[axis];
    memcpy(stride, whole->stride, sizeof stride);
    stride[axis] *= node->param[2];
    if (gni_elements(&s) == 0) return true;
    if (!gni_materialize(g, node->gy)) return false;
    gn_array *part = gni_adopt(g, gni_array_view(g, p->fn, whole, &s, stride, offset)),
             *sum = part != NULL ? gn_add(part, node->gy) : NULL;
    if (sum == NULL) return false;
    return gni_assign_run(g, part, sum);
}

// Takes the gradient of one array on to the operands that it was made of.
static bool gni_pass_step(gni_pass *p, gni_node *node, gn_array **gx) {
    bool onward = false;
    for (int i = 0; i < node->n_in && !onward; i++) onward = gni_wanted(node, i);
    onward = onward || node->backward == gni_back_used;
    if (node->gy == NULL || gni_is_leaf(node) || !onward) return true;
    if (!gni_pass_check(p, node)) return false;
    memset(gx, 0, sizeof(gn_array *) * (size_t)node->n_in);
    gn_scope_begin(p->g);
    p->g->part = node->name;
    const bool adds = gni_pass_has_whole(p, node);
    bool ok = adds ? gni_pass_add_slice(p, node) : node->backward(p->g, node, node->gy, gx);
    for (int i = 0; i < node->n_in && ok && !adds; i++)
        if (gni_wanted(node, i)) ok = gni_pass_give(p, node, i, gx[i]);
    gn_scope_end(p->g);
    p->g->part = NULL;
    if (!p->keep) {
        node->backward = gni_back_used;
        gni_node_drop_inputs(p->g, node);
    }
    return ok && !p->g->call_failed;
}

// Lets go of list[at]: of its record too where that was made for the pass only.
static void gni_pass_leave(gni_pass *p, int64_t at) {
    gn_array *a = p->list[at];
    gni_node *node = a != NULL ? a->node : NULL;
    p->list[at] = NULL;
    if (node != NULL) {
        node->visited = 0;
        gni_unref(p->g, node->gy);
        node->gy = NULL;
        if (gni_is_leaf(node)) {
            a->node = NULL;
            gni_node_free(p->g, node);
        }
    }
    gni_unref(p->g, a);
}

// Runs the pass. Afterwards the targets are the only ones left on the list, their gradients in node->gy.
static bool gni_pass_run(gni_pass *p, gn_array *loss) {
    gn_context *g = p->g;
    if (!gni_is_float(loss->dtype) || gni_elements(&loss->shape) != 1) {
        char text[200];
        return gni_fail(g, GN_ERROR_GRADIENT, "%s: the loss is %s %s, it must be one floating point number", p->fn,
                        gn_dtype_name(loss->dtype), gni_shape_text(text, sizeof text, &loss->shape));
    }
    if (!gni_wants_grad(loss)) {
        gni_fail(g, GN_ERROR_GRADIENT, "%s: the loss depends on no array that requires a gradient%s", p->fn,
                 p->off ? "; nothing is recorded here, since gn_no_grad_begin or while gn_checkpoint or gn_custom "
                          "runs forward"
                        : "");
        return false;
    }
    if (!gni_pass_collect(p, loss)) return false;
    gni_pass_sort(p);
    gni_pass_needed(p);
    gn_array **gx = (gn_array **)gni_alloc(g, sizeof(gn_array *) * (size_t)GNI_MAX(p->widest, 1));
    if (gx == NULL) gni_fail_memory(g, p->fn, sizeof(gn_array *) * (size_t)p->widest);
    const uint64_t autocast = g->autocast;
    const bool near_gpu = g->near_gpu;
    g->autocast = 0; // what was computed in halves has its gradients in halves
    g->near_gpu = false;
    for (int64_t at = 0; g->gpu != NULL && at < p->count && !g->near_gpu; at++) g->near_gpu = gni_reads_gpu(p->list[at]);
    loss->node->gy = gni_const(g, p->fn, loss->dtype, &loss->shape, 1.0);
    bool ok = gx != NULL && loss->node->gy != NULL;
    for (int64_t at = 0; at < p->count && ok; at++) {
        gni_node *node = p->list[at]->node;
        ok = gni_pass_step(p, node, gx);
        if (!gni_is_target(p, node)) gni_pass_leave(p, at);
    }
    gni_free(g, gx);
    g->autocast = autocast;
    g->near_gpu = near_gpu;
    return ok;
}

static void gni_pass_end(gni_pass *p) {
    gni_pass *outer = p->outer;
    for (int64_t at = 0; at < p->count; at++) gni_pass_leave(p, at);
    gni_free(p->g, p->list);
    p->g->pass = outer;
    if (outer == NULL || outer->marks == NULL) return;
    for (int64_t at = 0; at < outer->count; at++) {
        gni_node *node = outer->marks[at].node;
        if (node == NULL) continue;
        node->gy = outer->marks[at].gy;
        node->visited = outer->marks[at].visited;
        if (gni_is_leaf(node)) outer->list[at]->node = node;
    }
    gni_free(p->g, outer->marks);
    outer->marks = NULL;
}

// Whether writing to the array would show nowhere else.
static bool gni_is_sole(const gn_array *a) {
    return a->user_refs == 0 && (a->buf == NULL || (a->buf->refs == 1 && gni_is_contiguous(a)));
}

static void gni_set_grad(gn_context *g, gn_array *a, gn_array *grad) {
    gn_array *old = a->grad;
    if (grad != NULL) {
        grad->user_refs++;
        grad->is_grad = true;
    }
    a->grad = grad;
    if (old != NULL) {
        old->is_grad = false;
        gni_user_release(g, old);
    }
}

// What gn_grad(a) will be: the sum with what is there, in C order, and nobody else's array.
static gn_array *gni_grad_sum(gn_context *g, gn_array *a, gn_array *gy) {
    gn_scope_begin(g);
    gn_array *y = gy;
    if (a->grad != NULL)
        y = gni_gradient_sum(a->grad, gy);
    else if (!gni_is_sole(gy))
        y = gn_copy(gy);
    if (y != NULL) gni_ref(y);
    gn_scope_end(g);
    return y;
}

// All or nothing: the sums first, which may fail.
static bool gni_pass_accumulate(gni_pass *p) {
    gn_context *g = p->g;
    bool ok = true;
    int64_t done = 0;
    for (; done < p->count && ok; done++) {
        gn_array *a = p->list[done];
        if (a == NULL || a->node->gy == NULL) continue;
        gn_array *sum = gni_grad_sum(g, a, a->node->gy);
        ok = sum != NULL && !g->call_failed;
        if (!ok) {
            gni_unref(g, sum);
            break;
        }
        gni_unref(g, a->node->gy);
        a->node->gy = sum;
        sum->user_refs++; // tells the next leaf that this one is taken
    }
    for (int64_t at = 0; at < done; at++) {
        gn_array *a = p->list[at];
        if (a == NULL || a->node->gy == NULL) continue;
        a->node->gy->user_refs--;
        if (!ok) continue;
        gni_set_grad(g, a, a->node->gy);
        a->node->gy = NULL;
    }
    return ok;
}

GPUNUM_API gn_status gn_backward(gn_array *loss) {
    gn_context *g = gni_begin("gn_backward", &loss, 1);
    if (g == NULL) return gni_null_status(loss);
    GNI_ZEROED(gni_pass, p);
    p.g = g;
    p.fn = "gn_backward";
    p.leaves = true;
    p.off = g->no_grad > 0;
    g->no_grad++; // the ops of derivatives are not recorded themselves
    if (gni_pass_begin(&p) && gni_pass_run(&p, loss)) gni_pass_accumulate(&p);
    gni_pass_end(&p);
    g->no_grad--;
    return gni_end_status(g);
}

// A gradient as a new array of the caller's (or of the open scope).
static gn_array *gni_gradient_out(gn_context *g, gn_array *param, gn_array *gy) {
    if (gy == NULL) return gn_zeros_like(param);
    if (!gni_is_sole(gy)) return gn_copy(gy);
    gni_ref(gy);
    return gni_adopt(g, gy);
}

static void gni_gradients(gni_pass *p, gn_array *loss, gn_array *const *params, int count,
                          gn_array **out) {
    gn_context *g = p->g;
    for (int i = 0; i < count; i++) {
        if (!gni_pass_add(p, params[i])) return;
        params[i]->node->visited |= GNI_TARGET;
    }
    if (!gni_pass_run(p, loss)) return;
    for (int i = 0; i < count; i++) {
        out[i] = gni_gradient_out(g, params[i], params[i]->node->gy);
        if (out[i] == NULL) return;
    }
}

GPUNUM_API gn_status gn_gradients(gn_array *loss, gn_array *const *params, int count,
                                  bool create_graph, gn_array **out) {
    for (int i = 0; i < count && out != NULL; i++) out[i] = NULL;
    gn_context *g = gni_begin("gn_gradients", &loss, 1);
    if (g == NULL) return gni_null_status(loss);
    if (count > 0 && (params == NULL || out == NULL))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_gradients: params or out is NULL");
    for (int i = 0; i < count && !g->call_failed; i++) {
        const gni_handle_kind kind = params[i] != NULL ? gni_kind_of(params[i]) : GNI_IS_CONTEXT;
        if (kind == GNI_NO_HANDLE || (kind == GNI_IS_ARRAY && params[i]->user_refs <= 0))
            gni_fail(g, GN_ERROR_STALE, "gn_gradients: parameter %d was released", i + 1);
        else if (kind != GNI_IS_ARRAY || gni_home(params[i]) != g)
            gni_fail(g, GN_ERROR_ARGUMENT,
                     "gn_gradients: parameter %d is not an array of this context", i + 1);
        else if (!gni_wants_grad(params[i]))
            gni_fail(g, GN_ERROR_GRADIENT, "gn_gradients: parameter %d does not require a gradient",
                     i + 1);
    }
    if (count <= 0 || g->call_failed) return gni_end_status(g);
    GNI_ZEROED(gni_pass, p);
    p.g = g;
    p.fn = "gn_gradients";
    p.keep = create_graph;
    int no_grad = g->no_grad;
    p.off = no_grad > 0;
    g->no_grad = create_graph ? 0 : no_grad + 1;
    if (gni_pass_begin(&p)) gni_gradients(&p, loss, params, count, out);
    gni_pass_end(&p);
    g->no_grad = no_grad;
    for (int i = 0; i < count && g->call_failed; i++) {
        if (out[i] != NULL) gni_user_release(g, out[i]);
        out[i] = NULL;
    }
    return gni_end_status(g);
}

// ---- what the user says about arrays

GPUNUM_API gn_array *gn_requires_grad(gn_array *a, bool on) {
    gn_context *g = gni_begin("gn_requires_grad", &a, 1);
    if (g == NULL) return NULL;
    if (a->node != NULL)
        gni_fail(
            g, GN_ERROR_GRADIENT,
            "gn_requires_grad: only leaf arrays can change it, this one was made by %s; use gn_detach",
            a->node->name);
    else if (on && !gni_is_float(a->dtype))
        gni_fail(g, GN_ERROR_DTYPE,
                 "gn_requires_grad: only floating point arrays can, this one is %s",
                 gn_dtype_name(a->dtype));
    else
        a->wants_grad = on, gni_derivatives_use(g);
    return gni_end_status(g) == GN_OK ? a : NULL;
}

GPUNUM_API bool gn_needs_grad(const gn_array *a) { return gni_known("gn_needs_grad", a) && gni_wants_grad(a); }

GPUNUM_API gn_array *gn_grad(gn_array *a) {
    gn_context *g = gni_begin("gn_grad", &a, 1);
    if (g == NULL) return NULL;
    gn_array *grad = a->grad;
    if (grad == NULL && a->node != NULL && !a->warned) {
        a->warned = true;
        gni_log(g, GN_LOG_WARNING,
                "gn_grad: NULL, for %s made this array and gn_backward fills in only those that "
                "gn_requires_grad was called on. Update parameters between gn_no_grad_begin and "
                "gn_no_grad_end, or make them leaves again by gn_requires_grad(gn_detach(a), true)",
                a->maker);
    }
    gni_end_plain(g);
    return grad;
}

GPUNUM_API void gn_zero_grad(gn_array *a) {
    gn_context *g = gni_begin("gn_zero_grad", &a, 1);
    if (g == NULL) return;
    gni_set_grad(g, a, NULL);
    gni_end_plain(g);
}

GPUNUM_API gn_array *gn_detach(gn_array *a) {
    gn_context *g = gni_begin("gn_detach", &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = gni_array_view(g, "gn_detach", a, &a->shape, a->stride, a->offset);
    if (y != NULL) y->apart = true;
    return gni_end(g, y);
}

GPUNUM_API void gn_no_grad_begin(gn_context *g) {
    if (!gni_begin_context("gn_no_grad_begin", g)) return;
    if (gni_stack_need(g))
        g->no_grad++;
    else
        g->lost_no_grad++;
    gni_end_plain(g);
}

GPUNUM_API void gn_no_grad_end(gn_context *g) {
    if (!gni_begin_context("gn_no_grad_end", g)) return;
    if (g->no_grad > 0)
        g->no_grad--;
    else if (g->lost_no_grad > 0) // outside of those of a stack that was made later
        g->lost_no_grad--;
    else
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_no_grad_end: no gn_no_grad_begin before it");
    gni_end_plain(g);
}

// ---- gn_gradcheck: made of public calls only, since `fn` is the caller's code

typedef struct gni_check {
    gn_context *g;
    gn_function fn;
    gn_array *const *inputs;
    int count;
    void *user;
} gni_check;

// bytes 0: not for want of memory.
static double gni_check_failed(gn_context *g, size_t bytes) {
    if (gni_begin_context("gn_gradcheck", g)) {
        if (bytes > 0)
            gni_fail_memory(g, "gn_gradcheck", bytes);
        else
            gni_fail(g, GN_ERROR_ARGUMENT, "gn_gradcheck: the function gave no array of this context");
        gni_end_plain(g);
    }
    return GNI_NAN;
}

static double gni_check_value(const gni_check *c) {
    gn_scope_begin(c->g);
    // Recorded as well: `fn` may take gradients of its own.
    gn_array *y = c->fn(c->g, c->inputs, c->count, c->user);
    double value = gn_context_of(y) == c->g ? gn_item(y) : gni_check_failed(c->g, 0);
    gn_scope_end(c->g);
    return value;
}

static double gni_check_get(const void *data, gn_dtype t, int64_t i) {
    return t == GN_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

// The value at element i of `input`, moved by `by`; `at` receives where it really is.
static double gni_check_moved(const gni_check *c, gn_array *input, void *data, int64_t i, double by,
                              double *at) {
    double x = gni_check_get(data, input->dtype, i);
    gni_store_double(input->dtype, data, i, x + by);
    *at = gni_check_get(data, input->dtype, i);
    double y = gn_write(input, data, gn_bytes(input)) == GN_OK ? gni_check_value(c) : GNI_NAN;
    gni_store_double(input->dtype, data, i, x);
    return y;
}

// Largest error over the elements of one input, whose gradient is `grad`.
static double gni_check_input(const gni_check *c, gn_array *input, gn_array *grad, double step) {
    gn_context *g = c->g;
    double worst = 0.0;
    size_t bytes = gn_bytes(input);
    void *x = gni_alloc(g, 2 * bytes + 1);
    if (x == NULL) return gni_check_failed(g, 2 * bytes);
    void *d = (char *)x + bytes;
    bool ok = gn_read(input, x, bytes) == GN_OK && gn_read(grad, d, bytes) == GN_OK;
    for (int64_t i = 0; i < gn_size(input) && ok; i++) {
        double high, low;
        double rise = gni_check_moved(c, input, x, i, step, &high);
        rise -= gni_check_moved(c, input, x, i, -step, &low);
        double numeric = rise / (high - low);
        double error =
            fabs(gni_check_get(d, input->dtype, i) - numeric) / GNI_MAX(1.0, fabs(numeric));
        if (!(error <= worst)) worst = error; // a NaN stays
        ok = worst == worst;
    }
    if (gn_write(input, x, bytes) != GN_OK) ok = false;
    gni_free(g, x);
    return ok ? worst : GNI_NAN;
}

static double gni_check_all(const gni_check *c, double step) {
    gn_context *g = c->g;
    size_t bytes = sizeof(gn_array *) * (size_t)c->count;
    gn_array **params = (gn_array **)gni_calloc(g, 2 * bytes);
    if (params == NULL) return gni_check_failed(g, 2 * bytes);
    gn_array **grads = params + c->count;
    int n = 0;
    double worst = 0.0;
    for (int i = 0; i < c->count; i++)
        if (gn_needs_grad(c->inputs[i])) params[n++] = c->inputs[i];
    gn_scope_begin(g);
    gn_array *y = c->fn(g, c->inputs, c->count, c->user);
    if (gn_context_of(y) != g)
        worst = gni_check_failed(g, 0);
    else if (gn_gradients(y, params, n, false, grads) != GN_OK)
        worst = GNI_NAN;
    for (int i = 0; i < n && worst == worst; i++) {
        // Central differences: the error of the formula, step^2, and of rounding, eps / step, are about equal.
        double h = step > 0.0 ? step : params[i]->dtype == GN_F64 ? 1e-5 : 5e-3;
        double error = gni_check_input(c, params[i], grads[i], h);
        if (!(error <= worst)) worst = error;
    }
    gn_scope_end(g);
    gni_free(g, params);
    return worst;
}

GPUNUM_API double gn_gradcheck(gn_function fn, gn_array *const *inputs, int count, double step,
                               void *user) {
    gni_check c;
    c.g = gni_begin("gn_gradcheck", inputs, count);
    if (c.g == NULL) return GNI_NAN;
    if (fn == NULL) gni_fail(c.g, GN_ERROR_ARGUMENT, "gn_gradcheck: the function is NULL");
    c.fn = fn;
    c.inputs = inputs;
    c.count = count;
    c.user = user;
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (!gni_wants_grad(inputs[i])) continue;
        any = true;
        if (inputs[i]->dtype != GN_F32 && inputs[i]->dtype != GN_F64)
            gni_fail(c.g, GN_ERROR_DTYPE, "gn_gradcheck: input %d is %s, not float64 or float32",
                     i + 1, gn_dtype_name(inputs[i]->dtype));
    }
    if (!any) gni_fail(c.g, GN_ERROR_GRADIENT, "gn_gradcheck: no input requires a gradient");
    if (gni_end_status(c.g) != GN_OK) return GNI_NAN;
    return gni_check_all(&c, step);
}
