// >>custom
// The caller's own ops in autograd's record: with a derivative of their own, or computed again where it is needed. Nothing
// here is used elsewhere.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../grad/autograd.h"
#endif

// param: the caller's functions, and what they are given.
enum { GNI_CUSTOM_FORWARD, GNI_CUSTOM_BACKWARD, GNI_CUSTOM_USER, GNI_CUSTOM_SEED, GNI_CUSTOM_COUNTER, GNI_CUSTOM_AUTOCAST };

// Runs the caller's function. A result of it that nobody else has.
static gn_array *gni_custom_run(gn_context *g, gn_function fn, gn_array *const *in, int count, void *user) {
    const gni_away away = gni_away_begin(g);
    gn_array *y = fn(g, in, count, user);
    gni_away_end(g, away);
    if (gn_context_of(y) == g) return gn_cast(y, y->dtype);
    if (!g->call_failed) gni_fail(g, GN_ERROR_ARGUMENT, "%s: the function gave no array of this context", g->call);
    return NULL;
}

// Of both: the forward pass, not recorded, and one record for all of it.
static gn_array *gni_custom(const char *fn, gn_function forward, gn_custom_gradient backward, gni_backward_fn back,
                            gn_array *const *in, int count, void *user) {
    gn_context *g = gni_begin_scope(fn, in, count);
    if (g == NULL) return NULL;
    const uint64_t seed = g->seed, counter = g->counter;
    gn_array *y = NULL;
    if (forward == NULL) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the function is NULL", fn);
    } else {
        g->no_grad++;
        y = gni_custom_run(g, forward, in, count, user);
        g->no_grad--;
    }
    gni_node *node = gni_record(g, y, fn, back, in, count);
    if (node != NULL) {
        memcpy(&node->param[GNI_CUSTOM_FORWARD], &forward, sizeof forward);
        memcpy(&node->param[GNI_CUSTOM_BACKWARD], &backward, sizeof backward);
        memcpy(&node->param[GNI_CUSTOM_USER], &user, sizeof user);
        node->param[GNI_CUSTOM_SEED] = (int64_t)seed;
        node->param[GNI_CUSTOM_COUNTER] = (int64_t)counter;
        node->param[GNI_CUSTOM_AUTOCAST] = (int64_t)g->autocast;
        node->reads_output = backward != NULL;
    }
    return gni_end_scope(g, y);
}

static bool gni_back_custom(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_custom_gradient backward;
    void *user;
    memcpy(&backward, &node->param[GNI_CUSTOM_BACKWARD], sizeof backward);
    memcpy(&user, &node->param[GNI_CUSTOM_USER], sizeof user);
    const gni_away away = gni_away_begin(g);
    backward(g, node->in, node->n_in, node->output, gy, gx, user);
    gni_away_end(g, away);
    for (int i = 0; i < node->n_in; i++) {
        if (gx[i] == NULL || gni_home_of(gx[i], GNI_IS_ARRAY) == g) continue;
        return gni_fail(g, GN_ERROR_STALE,
                        "%s: gn_custom's gradient of operand %d was released, or is no array of this context", g->call,
                        i + 1);
    }
    return true;
}

GPUNUM_API gn_array *gn_custom(gn_function forward, gn_custom_gradient backward, gn_array *const *in, int count,
                               void *user) {
    return gni_custom("gn_custom", forward, backward, backward != NULL ? gni_back_custom : NULL, in, count, user);
}

// The function once more, recorded, with the random numbers that it had, and the gradients of its result times gy.
static bool gni_back_checkpoint(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gn_function forward;
    void *user;
    const int count = node->n_in, no_grad = g->no_grad;
    const uint64_t seed = g->seed, counter = g->counter;
    if (no_grad == 0) return gni_fail(g, GN_ERROR_GRADIENT, "gn_checkpoint: its gradient has no graph (create_graph)");
    memcpy(&forward, &node->param[GNI_CUSTOM_FORWARD], sizeof forward);
    memcpy(&user, &node->param[GNI_CUSTOM_USER], sizeof user);
    const size_t bytes = sizeof(gn_array *) * (size_t)count;
    gn_array **leaf = (gn_array **)gni_calloc(g, 3 * bytes), **wanted = leaf + count, **dx = wanted + count;
    if (leaf == NULL) return gni_fail_memory(g, "gn_checkpoint", 3 * bytes);
    int n = 0;
    for (int i = 0; i < count; i++) {
        leaf[i] = gn_detach(node->in[i]);
        if (gni_wanted(node, i)) wanted[n++] = gn_requires_grad(leaf[i], true);
    }
    g->seed = (uint64_t)node->param[GNI_CUSTOM_SEED];
    g->counter = (uint64_t)node->param[GNI_CUSTOM_COUNTER];
    g->autocast = (uint64_t)node->param[GNI_CUSTOM_AUTOCAST];
    g->no_grad = 0;
    const bool repeats = g->repeats;
    g->repeats = true;
    gn_array *y = !g->call_failed ? gni_custom_run(g, forward, leaf, count, user) : NULL;
    g->repeats = repeats;
    g->autocast = 0;
    gn_array *loss = y != NULL ? gn_sum(gn_mul(y, gy), GN_ALL) : NULL;
    g->no_grad = no_grad;
    g->seed = seed;
    g->counter = counter;
    const bool depends = loss != NULL && gni_wants_grad(loss);
    bool ok = loss != NULL && (!depends || gn_gradients(loss, wanted, n, false, dx) == GN_OK);
    for (int i = 0, k = 0; i < count && ok; i++)
        if (gni_wanted(node, i)) gx[i] = depends ? dx[k++] : gn_zeros_like(leaf[i]);
    gni_free(g, leaf);
    return ok;
}

GPUNUM_API gn_array *gn_checkpoint(gn_function fn, gn_array *const *in, int count, void *user) {
    return gni_custom("gn_checkpoint", fn, NULL, gni_back_checkpoint, in, count, user);
}
