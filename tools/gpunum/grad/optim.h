// >>optim
// Optimizers. A step is one program per parameter, which writes the parameter and its state in place.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../grad/autograd.h"
#endif

typedef enum gni_optimizer_kind { GNI_SGD, GNI_ADAM, GNI_ADAMW } gni_optimizer_kind;

typedef struct gni_optimized {
    gn_array *param, *m, *v; // v: Adam's second moment
    int64_t steps;
} gni_optimized;

struct gn_optimizer {
    gn_context *ctx;
    gn_optimizer *next;
    gni_optimizer_kind kind;
    const char *name;
    int count;
    gni_optimized *items;
    double lr, weight_decay;
    double momentum, dampening; // SGD
    bool nesterov;
    double beta1, beta2, eps; // Adam
};

static void gni_optimizer_release(gn_context *g, gn_optimizer *opt) {
    for (int i = 0; i < opt->count; i++) {
        opt->items[i].param->steppers--;
        gni_drop_grad(g, opt->items[i].param);
        gni_unref(g, opt->items[i].param);
        gni_unref(g, opt->items[i].m);
        gni_unref(g, opt->items[i].v);
    }
    gni_free(g, opt->items);
    gni_free(g, opt);
}

static bool gni_can_optimize(gn_context *g, const char *fn, gn_array *const *params, int i) {
    const gn_array *a = params[i];
    const char *why = !gni_is_float(a->dtype) ? "it is not floating point"
                      : a->node != NULL       ? "an op made it"
                      : a->buf != NULL && !gni_is_contiguous(a)
                          ? "it is not in C order, gn_copy makes it so"
                          : NULL;
    for (int k = 0; k < i && why == NULL; k++)
        if (params[k] == a) why = "it is given twice";
    if (why != NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: parameter %d cannot be optimized: %s", fn, i + 1, why);
    return why == NULL;
}

// Negative and NaN settings are mistakes.
static bool gni_settings_ok(gn_context *g, const char *fn, const double *settings, int count) {
    for (int i = 0; i < count; i++) {
        if (settings[i] >= 0.0) continue;
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %g is not a setting, all are 0 or more", fn,
                 settings[i]);
        return false;
    }
    return true;
}

static gn_optimizer *gni_optimizer_new(gn_context *g, const char *fn, gni_optimizer_kind kind,
                                       gn_array *const *params, int count) {
    for (int i = 0; i < count; i++)
        if (!gni_can_optimize(g, fn, params, i)) return NULL;
    gn_optimizer *opt = (gn_optimizer *)gni_calloc(g, sizeof(gn_optimizer));
    gni_optimized *items = (gni_optimized *)gni_calloc(g, sizeof(gni_optimized) * (size_t)count);
    if (opt == NULL || items == NULL) {
        gni_fail_memory(g, fn, sizeof(gni_optimized) * (size_t)count);
        gni_free(g, opt);
        gni_free(g, items);
        return NULL;
    }
    opt->ctx = g;
    opt->kind = kind;
    opt->name = fn;
    opt->count = count;
    opt->items = items;
    for (int i = 0; i < count; i++) {
        items[i].param = params[i];
        gni_ref(params[i]);
        params[i]->steppers++;
    }
    opt->next = g->optimizers;
    g->optimizers = opt;
    return opt;
}

GPUNUM_API gn_optimizer *gn_sgd(gn_array *const *params, int count, const gn_sgd_options *options) {
    gn_context *g = gni_begin("gn_sgd", params, count);
    if (g == NULL) return NULL;
    gn_sgd_options o;
    memset(&o, 0, sizeof o);
    if (options != NULL) o = *options;
    double settings[4];
    settings[0] = o.lr, settings[1] = o.momentum, settings[2] = o.dampening,
    settings[3] = o.weight_decay;
    gn_optimizer *opt = NULL;
    if (o.nesterov && (o.momentum == 0.0 || o.dampening != 0.0))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_sgd: nesterov needs momentum and no dampening");
    else if (gni_settings_ok(g, "gn_sgd", settings, 4))
        opt = gni_optimizer_new(g, "gn_sgd", GNI_SGD, params, count);
    if (opt != NULL) {
        opt->lr = o.lr > 0.0 ? o.lr : 0.01;
        opt->momentum = o.momentum;
        opt->dampening = o.dampening;
        opt->weight_decay = o.weight_decay;
        opt->nesterov = o.nesterov;
    }
    gni_end_plain(g);
    return opt;
}

static gn_optimizer *gni_adam(const char *fn, gni_optimizer_kind kind, gn_array *const *params,
                              int count, const gn_adam_options *options) {
    gn_context *g = gni_begin(fn, params, count);
    if (g == NULL) return NULL;
    gn_adam_options o;
    memset(&o, 0, sizeof o);
    if (options != NULL) o = *options;
    double settings[5];
    settings[0] = o.lr, settings[1] = o.beta1, settings[2] = o.beta2, settings[3] = o.eps;
    settings[4] = o.weight_decay;
    gn_optimizer *opt = NULL;
    if (o.beta1 >= 1.0 || o.beta2 >= 1.0)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: beta1 %g and beta2 %g must be below 1", fn, o.beta1,
                 o.beta2);
    else if (gni_settings_ok(g, fn, settings, 5))
        opt = gni_optimizer_new(g, fn, kind, params, count);
    if (opt != NULL) {
        opt->lr = o.lr > 0.0 ? o.lr : 1e-3;
        opt->beta1 = o.beta1 > 0.0 ? o.beta1 : 0.9;
        opt->beta2 = o.beta2 > 0.0 ? o.beta2 : 0.999;
        opt->eps = o.eps > 0.0 ? o.eps : 1e-8;
        opt->weight_decay = o.weight_decay > 0.0 || kind == GNI_ADAM ? o.weight_decay : 0.01;
    }
    gni_end_plain(g);
    return opt;
}

GPUNUM_API gn_optimizer *gn_adam(gn_array *const *params, int count,
                                 const gn_adam_options *options) {
    return gni_adam("gn_adam", GNI_ADAM, params, count, options);
}

GPUNUM_API gn_optimizer *gn_adamw(gn_array *const *params, int count,
                                  const gn_adam_options *options) {
    return gni_adam("gn_adamw", GNI_ADAMW, params, count, options);
}

// ---- steps. Half precision parameters are updated in float32 and keep float32 state.

static gn_array *gni_as(gn_array *a, gn_dtype t) { return gn_dtype_of(a) == t ? a : gn_cast(a, t); }

// Zero-filled state in memory of its own.
static bool gni_state(gn_context *g, gn_array **state, const gn_array *param, gn_dtype t) {
    if (*state == NULL) *state = gni_const(g, "gn_step", t, &param->shape, 0.0);
    return *state != NULL && gni_materialize(g, *state);
}

// roots[0] becomes the parameter, roots[1] the momentum; both in `t`. Sutskever et al., 2013, as PyTorch has it.
static int gni_sgd_step(const gn_optimizer *opt, gni_optimized *item, gn_array *grad, gn_dtype t,
                        gn_array **roots) {
    gn_array *p = gni_as(item->param, t), *d = gni_as(grad, t);
    if (opt->weight_decay != 0.0) d = gn_add(d, gn_mul_s(p, opt->weight_decay));
    if (opt->momentum == 0.0) {
        roots[0] = gn_sub(p, gn_mul_s(d, opt->lr));
        return 1;
    }
    // The first gradient becomes the momentum as it is; the program stays the same.
    bool first = item->steps == 0;
    double keep = first ? 0.0 : opt->momentum, add = first ? 1.0 : 1.0 - opt->dampening;
    roots[1] = gn_add(gn_mul_s(item->m, keep), gn_mul_s(d, add));
    gn_array *move = opt->nesterov ? gn_add(d, gn_mul_s(roots[1], opt->momentum)) : roots[1];
    roots[0] = gn_sub(p, gn_mul_s(move, opt->lr));
    return 2;
}

// Kingma and Ba, 2015, arXiv:1412.6980; AdamW: Loshchilov and Hutter, 2019, arXiv:1711.05101.
static int gni_adam_step(const gn_optimizer *opt, gni_optimized *item, gn_array *grad, gn_dtype t,
                         gn_array **roots) {
    gn_array *p = gni_as(item->param, t), *d = gni_as(grad, t);
    double n = (double)(item->steps + 1);
    double correct1 = 1.0 - pow(opt->beta1, n), correct2 = 1.0 - pow(opt->beta2, n);
    if (opt->weight_decay != 0.0 && opt->kind == GNI_ADAMW)
        p = gn_mul_s(p, 1.0 - opt->lr * opt->weight_decay);
    if (opt->weight_decay != 0.0 && opt->kind == GNI_ADAM)
        d = gn_add(d, gn_mul_s(p, opt->weight_decay));
    roots[1] = gn_add(gn_mul_s(item->m, opt->beta1), gn_mul_s(d, 1.0 - opt->beta1));
    roots[2] = gn_add(gn_mul_s(item->v, opt->beta2), gn_mul_s(gn_square(d), 1.0 - opt->beta2));
    gn_array *size = gn_add_s(gn_mul_s(gn_sqrt(roots[2]), 1.0 / sqrt(correct2)), opt->eps);
    roots[0] = gn_sub(p, gn_mul_s(gn_div(roots[1], size), opt->lr / correct1));
    return 3;
}

static void gni_step_one(gn_context *g, gn_optimizer *opt, gni_optimized *item) {
    gn_array *p = item->param, *grad = p->grad, *roots[3], *into[3];
    if (grad == NULL || gni_elements(&p->shape) == 0) return;
    gn_dtype t = p->dtype == GN_F64 ? GN_F64 : GN_F32;
    bool adam = opt->kind != GNI_SGD;
    // A pending gradient may read the very memory that the step overwrites.
    if (!gni_materialize(g, p) || !gni_materialize(g, grad)) return;
    if ((adam || opt->momentum != 0.0) && !gni_state(g, &item->m, p, t)) return;
    if (adam && !gni_state(g, &item->v, p, t)) return;
    gn_scope_begin(g);
    int count =
        adam ? gni_adam_step(opt, item, grad, t, roots) : gni_sgd_step(opt, item, grad, t, roots);
    roots[0] = gni_as(roots[0], p->dtype);
    into[0] = p;
    into[1] = item->m;
    into[2] = item->v;
    if (!g->call_failed && gni_evaluate(g, roots, into, count)) item->steps++;
    gn_scope_end(g);
}

GPUNUM_API gn_status gn_step(gn_optimizer *opt) {
    if (opt == NULL) return GN_ERROR_ARGUMENT;
    gn_context *g = opt->ctx;
    if (!gni_begin_context("gn_step", g)) return GN_ERROR_ARGUMENT;
    g->no_grad++;
    for (int i = 0; i < opt->count && !g->call_failed; i++) gni_step_one(g, opt, &opt->items[i]);
    g->no_grad--;
    return gni_end_status(g);
}

GPUNUM_API void gn_zero_grads(gn_optimizer *opt) {
    if (opt == NULL || !gni_begin_context("gn_zero_grads", opt->ctx)) return;
    for (int i = 0; i < opt->count; i++) gni_set_grad(opt->ctx, opt->items[i].param, NULL);
    gni_end_plain(opt->ctx);
}

GPUNUM_API void gn_lr_set(gn_optimizer *opt, double lr) {
    if (opt == NULL || !gni_begin_context("gn_lr_set", opt->ctx)) return;
    if (gni_settings_ok(opt->ctx, "gn_lr_set", &lr, 1)) opt->lr = lr;
    gni_end_plain(opt->ctx);
}

GPUNUM_API double gn_lr_get(const gn_optimizer *opt) { return opt != NULL ? opt->lr : GNI_NAN; }

GPUNUM_API void gn_optimizer_free(gn_optimizer *opt) {
    if (opt == NULL) return;
    gn_context *g = opt->ctx;
    if (!gni_begin_context("gn_optimizer_free", g)) return;
    gn_optimizer **at = &g->optimizers;
    while (*at != NULL && *at != opt) at = &(*at)->next;
    if (*at == opt) {
        *at = opt->next;
        gni_optimizer_release(g, opt);
    }
    gni_end_plain(g);
}
