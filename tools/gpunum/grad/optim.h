// >>optim
// Optimizers. A step is one program, run for each parameter, which writes it and its state in place.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../ops/random_ops.h"
#include "../grad/autograd.h"
#endif

typedef enum gni_optimizer_kind { // files have these numbers
    GNI_SGD,
    GNI_ADAM,
    GNI_ADAMW,
    GNI_RMSPROP,
    GNI_ADAGRAD,
    GNI_LION,
    GNI_MUON
} gni_optimizer_kind;

enum { GNI_OPTIMIZER_STATES = 3 }; // arrays beside a parameter, at most

// Settings, which are compared byte by byte. Files have them in this order.
typedef struct gni_group {
    double lr_factor, weight_decay;
    double momentum, dampening; // SGD, RMSprop, Muon
    double beta1, beta2, eps;   // beta2 is RMSprop's alpha, too
    double lr_decay, initial;   // Adagrad
    double nesterov, centered;  // 1 or 0
} gni_group;

enum {
    GNI_GROUP_NUMBERS = sizeof(gni_group) / sizeof(double),
    GNI_GROUP_FLAGS = offsetof(gni_group, nesterov) / sizeof(double) // the first that is 1 or 0
};

typedef struct gni_optimized {
    gn_array *param, *state[GNI_OPTIMIZER_STATES];
    int64_t steps;
    gni_group set;
} gni_optimized;

struct gn_optimizer {
    gni_handle handle;
    gn_optimizer *next;
    gni_optimizer_kind kind;
    const char *name;
    int count;
    gni_optimized *items;
    double lr;
    gni_group set;   // of parameters without a group of their own
    bool own;        // some have more settings of their own than gn_optimizer_add_group takes: they are saved
    gn_array *ok, *factor; // during gn_step_scaled: whether to step, and what gradients are multiplied by
};

// Arrays beside the parameter.
static int gni_states_of(const gn_optimizer *opt, const gni_optimized *item) {
    const int momentum = item->set.momentum != 0.0;
    switch (opt->kind) {
    case GNI_SGD: return momentum;
    case GNI_RMSPROP: return 1 + momentum + (int)item->set.centered;
    default: return 1 + (opt->kind == GNI_ADAM || opt->kind == GNI_ADAMW);
    }
}

static void gni_optimizer_release(gn_context *g, gn_optimizer *opt) {
    for (int i = 0; i < opt->count; i++) {
        gni_optimized *item = &opt->items[i];
        item->param->steppers--;
        gni_drop_grad(g, item->param);
        gni_unref(g, item->param);
        for (int k = 0; k < GNI_OPTIMIZER_STATES; k++) gni_unref(g, item->state[k]);
    }
    gni_free(g, opt->items);
    opt->handle.magic = 0;
    gni_free(g, opt);
}

static bool gni_can_optimize(gn_context *g, const char *fn, const gn_optimizer *opt, gn_array *const *params, int i) {
    const gn_array *a = params[i];
    const char *why = !gni_is_float(a->dtype) ? "it is not floating point"
                      : a->node != NULL       ? "an op made it"
                      : opt->kind == GNI_MUON && a->shape.rank != 2 ? "it is not a matrix"
                      : a->buf != NULL && gn_bytes(a) != a->buf->bytes && !gni_is_contiguous(a)
                          ? "it is not in C order, gn_copy makes it so"
                          : NULL;
    for (int k = 0; k < i + opt->count && why == NULL; k++)
        if ((k < i ? params[k] : opt->items[k - i].param) == a) why = "it is given twice";
    if (why != NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: parameter %d cannot be optimized: %s", fn, i + 1, why);
    return why == NULL;
}

// Negative and NaN settings are mistakes.
static bool gni_settings_ok(gn_context *g, const char *fn, const double *settings, int count) {
    for (int i = 0; i < count; i++) {
        if (settings[i] >= 0.0) continue;
        return gni_fail(g, GN_ERROR_ARGUMENT, "%s: %g is not a setting, all are 0 or more", fn, settings[i]);
    }
    return true;
}

// Shares of what was, of which there is less than all.
static bool gni_betas_ok(gn_context *g, const char *fn, double beta1, double beta2) {
    if (!(beta1 >= 1.0 || beta2 >= 1.0)) return true;
    return gni_fail(g, GN_ERROR_ARGUMENT, "%s: beta1 %g and beta2 %g must be below 1", fn, beta1, beta2);
}

static bool gni_nesterov_ok(gn_context *g, const char *fn, bool nesterov, double momentum, double dampening) {
    if (!nesterov || (momentum != 0.0 && dampening == 0.0)) return true;
    return gni_fail(g, GN_ERROR_ARGUMENT, "%s: nesterov needs momentum and no dampening", fn);
}

static bool gni_optimizer_add(gn_context *g, const char *fn, gn_optimizer *opt, gn_array *const *params, int count,
                              const gni_group *set) {
    const size_t had = sizeof(gni_optimized) * (size_t)opt->count, more = sizeof(gni_optimized) * (size_t)count;
    for (int i = 0; i < count; i++)
        if (!gni_can_optimize(g, fn, opt, params, i)) return false;
    gni_optimized *items =
        opt->count < INT32_MAX - count ? (gni_optimized *)gni_realloc(g, opt->items, had, had + more) : NULL;
    if (items == NULL) return gni_fail_memory(g, fn, had + more);
    opt->items = items;
    memset(items + opt->count, 0, more);
    for (int i = 0; i < count; i++) {
        gni_optimized *item = &items[opt->count++];
        item->param = params[i];
        item->set = *set;
        gni_ref(params[i]);
        params[i]->steppers++;
    }
    return true;
}

static gn_optimizer *gni_optimizer_new(gn_context *g, const char *fn, gni_optimizer_kind kind, gn_array *const *params,
                                       int count, double lr, const gni_group *set) {
    gn_optimizer *opt = (gn_optimizer *)gni_calloc(g, sizeof(gn_optimizer));
    if (opt == NULL) {
        gni_fail_memory(g, fn, sizeof(gn_optimizer));
        return NULL;
    }
    opt->kind = kind;
    opt->set = *set;
    if (!gni_optimizer_add(g, fn, opt, params, count, set)) {
        gni_free(g, opt);
        return NULL;
    }
    gni_handle_init(g, opt, GNI_IS_OPTIMIZER);
    opt->name = fn;
    opt->lr = lr;
    opt->next = g->optimizers;
    g->optimizers = opt;
    return opt;
}

// Whether it is an optimizer of this context. False after gni_fail.
static bool gni_optimizer_ok(gn_context *g, const char *fn, const gn_optimizer *opt) {
    if (gni_home_of(opt, GNI_IS_OPTIMIZER) == g) return true;
    return gni_fail(g, GN_ERROR_ARGUMENT, "%s: the optimizer is none, or of another context", fn);
}

GPUNUM_API gn_status gn_optimizer_add_group(gn_optimizer *opt, gn_array *const *params, int count, double lr_factor,
                                            double weight_decay) {
    static const char *const fn = "gn_optimizer_add_group";
    const double settings[] = {lr_factor, weight_decay};
    if (opt == NULL) return GN_ERROR_ARGUMENT;
    gn_context *g = gni_begin(fn, params, count);
    if (g == NULL) return gni_null_status(params != NULL && count > 0 ? params[0] : NULL);
    if (gni_optimizer_ok(g, fn, opt) && gni_settings_ok(g, fn, settings, 2)) {
        gni_group set = opt->set;
        set.lr_factor = lr_factor;
        set.weight_decay = weight_decay;
        gni_optimizer_add(g, fn, opt, params, count, &set);
    }
    return gni_end_status(g);
}

// What a setting is where none is given.
static double gni_setting(double given, double otherwise) { return given > 0.0 ? given : otherwise; }

GPUNUM_API gn_status gn_optimizer_add_group_with(gn_optimizer *opt, gn_array *const *params, int count,
                                                 const gn_group_options *options) {
    static const char *const fn = "gn_optimizer_add_group_with";
    if (opt == NULL) return GN_ERROR_ARGUMENT;
    gn_context *g = gni_begin(fn, params, count);
    if (g == NULL) return gni_null_status(params != NULL && count > 0 ? params[0] : NULL);
    GNI_OPTIONS(gn_group_options, o, options);
    gni_group given, set;
    given.lr_factor = o.lr_factor;
    given.weight_decay = o.weight_decay;
    given.momentum = o.momentum;
    given.dampening = o.dampening;
    given.beta1 = o.beta1;
    given.eps = o.eps;
    given.lr_decay = o.lr_decay;
    given.initial = o.initial;
    given.nesterov = o.nesterov > 0;
    given.centered = o.centered > 0;
    if (gni_optimizer_ok(g, fn, opt)) {
        given.beta2 = opt->kind == GNI_RMSPROP ? o.alpha : o.beta2;
        set = opt->set;
        const double *from = (const double *)(const void *)&given;
        double *to = (double *)(void *)&set;
        for (int i = 0; i < GNI_GROUP_NUMBERS; i++) to[i] = gni_setting(from[i], to[i]);
        if (o.nesterov < 0) set.nesterov = 0.0;
        if (o.centered < 0) set.centered = 0.0;
        if (gni_settings_ok(g, fn, from, GNI_GROUP_NUMBERS) && gni_betas_ok(g, fn, set.beta1, set.beta2) &&
            gni_nesterov_ok(g, fn, set.nesterov != 0.0, set.momentum, set.dampening) &&
            gni_optimizer_add(g, fn, opt, params, count, &set))
            opt->own = true;
    }
    return gni_end_status(g);
}

// A group with this weight decay and nothing else.
static gni_group gni_group_of(double weight_decay) {
    GNI_ZEROED(gni_group, set);
    set.lr_factor = 1.0;
    set.weight_decay = weight_decay;
    return set;
}

GPUNUM_API gn_optimizer *gn_sgd(gn_array *const *params, int count, const gn_sgd_options *options) {
    gn_context *g = gni_begin("gn_sgd", params, count);
    if (g == NULL) return NULL;
    GNI_OPTIONS(gn_sgd_options, o, options);
    const double settings[] = {o.lr, o.momentum, o.dampening, o.weight_decay};
    gn_optimizer *opt = NULL;
    gni_group set = gni_group_of(o.weight_decay);
    set.momentum = o.momentum;
    set.dampening = o.dampening;
    set.nesterov = o.nesterov;
    if (gni_nesterov_ok(g, "gn_sgd", o.nesterov, o.momentum, o.dampening) && gni_settings_ok(g, "gn_sgd", settings, 4))
        opt = gni_optimizer_new(g, "gn_sgd", GNI_SGD, params, count, gni_setting(o.lr, 0.01), &set);
    gni_end_plain(g);
    return opt;
}

static gn_optimizer *gni_adam(const char *fn, gni_optimizer_kind kind, gn_array *const *params,
                              int count, const gn_adam_options *options) {
    gn_context *g = gni_begin(fn, params, count);
    if (g == NULL) return NULL;
    GNI_OPTIONS(gn_adam_options, o, options);
    const double settings[] = {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay};
    gn_optimizer *opt = NULL;
    gni_group set = gni_group_of(kind == GNI_ADAM ? o.weight_decay : gni_setting(o.weight_decay, 0.01));
    set.beta1 = gni_setting(o.beta1, 0.9);
    set.beta2 = gni_setting(o.beta2, 0.999);
    set.eps = gni_setting(o.eps, 1e-8);
    if (gni_betas_ok(g, fn, o.beta1, o.beta2) && gni_settings_ok(g, fn, settings, 5))
        opt = gni_optimizer_new(g, fn, kind, params, count, gni_setting(o.lr, 1e-3), &set);
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

GPUNUM_API gn_optimizer *gn_rmsprop(gn_array *const *params, int count, const gn_rmsprop_options *options) {
    gn_context *g = gni_begin("gn_rmsprop", params, count);
    if (g == NULL) return NULL;
    GNI_OPTIONS(gn_rmsprop_options, o, options);
    const double settings[] = {o.lr, o.alpha, o.eps, o.weight_decay, o.momentum};
    gn_optimizer *opt = NULL;
    gni_group set = gni_group_of(o.weight_decay);
    set.beta2 = gni_setting(o.alpha, 0.99);
    set.eps = gni_setting(o.eps, 1e-8);
    set.momentum = o.momentum;
    set.centered = o.centered;
    if (o.alpha >= 1.0) gni_fail(g, GN_ERROR_ARGUMENT, "gn_rmsprop: alpha %g must be below 1", o.alpha);
    else if (gni_settings_ok(g, "gn_rmsprop", settings, 5))
        opt = gni_optimizer_new(g, "gn_rmsprop", GNI_RMSPROP, params, count, gni_setting(o.lr, 0.01), &set);
    gni_end_plain(g);
    return opt;
}

GPUNUM_API gn_optimizer *gn_adagrad(gn_array *const *params, int count, const gn_adagrad_options *options) {
    gn_context *g = gni_begin("gn_adagrad", params, count);
    if (g == NULL) return NULL;
    GNI_OPTIONS(gn_adagrad_options, o, options);
    const double settings[] = {o.lr, o.lr_decay, o.eps, o.weight_decay, o.initial};
    gn_optimizer *opt = NULL;
    gni_group set = gni_group_of(o.weight_decay);
    set.eps = gni_setting(o.eps, 1e-10);
    set.lr_decay = o.lr_decay;
    set.initial = o.initial;
    if (gni_settings_ok(g, "gn_adagrad", settings, 5))
        opt = gni_optimizer_new(g, "gn_adagrad", GNI_ADAGRAD, params, count, gni_setting(o.lr, 0.01), &set);
    gni_end_plain(g);
    return opt;
}

GPUNUM_API gn_optimizer *gn_lion(gn_array *const *params, int count, const gn_lion_options *options) {
    gn_context *g = gni_begin("gn_lion", params, count);
    if (g == NULL) return NULL;
    GNI_OPTIONS(gn_lion_options, o, options);
    const double settings[] = {o.lr, o.beta1, o.beta2, o.weight_decay};
    gn_optimizer *opt = NULL;
    gni_group set = gni_group_of(o.weight_decay);
    set.beta1 = gni_setting(o.beta1, 0.9);
    set.beta2 = gni_setting(o.beta2, 0.99);
    if (gni_betas_ok(g, "gn_lion", o.beta1, o.beta2) && gni_settings_ok(g, "gn_lion", settings, 4))
        opt = gni_optimizer_new(g, "gn_lion", GNI_LION, params, count, gni_setting(o.lr, 1e-4), &set);
    gni_end_plain(g);
    return opt;
}

GPUNUM_API gn_optimizer *gn_muon(gn_array *const *params, int count, const gn_muon_options *options) {
    gn_context *g = gni_begin("gn_muon", params, count);
    if (g == NULL) return NULL;
    GNI_OPTIONS(gn_muon_options, o, options);
    const double settings[] = {o.lr, o.momentum, o.weight_decay};
    gn_optimizer *opt = NULL;
    gni_group set = gni_group_of(gni_setting(o.weight_decay, 0.1));
    set.momentum = gni_setting(o.momentum, 0.95);
    set.nesterov = !o.plain;
    if (gni_settings_ok(g, "gn_muon", settings, 3))
        opt = gni_optimizer_new(g, "gn_muon", GNI_MUON, params, count, gni_setting(o.lr, 1e-3), &set);
    gni_end_plain(g);
    return opt;
}

// ---- steps. Half precision parameters are updated in float32 and keep float32 state.

// A step of one parameter: what its step function makes of these.
typedef struct gni_step {
    const gn_optimizer *opt;
    const gni_optimized *item;
    gn_array *p, *d;  // the parameter and its gradient, in what is computed in; SGD, RMSprop and Adagrad decay the gradient
    double lr, decay; // of its group
    gn_array *root[1 + GNI_OPTIMIZER_STATES]; // what the parameter and its states become
} gni_step;

// a s + b t
static gn_array *gni_blend(gn_array *a, double s, gn_array *b, double t) { return gn_add(gn_mul_s(a, s), gn_mul_s(b, t)); }

static gn_array *gni_moved(gn_array *p, gn_array *by, double lr) { return gn_sub(p, gn_mul_s(by, lr)); }

// Sutskever et al., 2013, as PyTorch has it.
static void gni_sgd_step(gni_step *s) {
    const gni_group *set = &s->item->set;
    gn_array *move = s->d;
    if (set->momentum != 0.0) {
        // The first gradient becomes the momentum as it is; the program stays the same.
        bool first = s->item->steps == 0;
        double keep = first ? 0.0 : set->momentum, add = first ? 1.0 : 1.0 - set->dampening;
        s->root[1] = gni_blend(s->item->state[0], keep, s->d, add);
        move = set->nesterov != 0.0 ? gn_add(s->d, gn_mul_s(s->root[1], set->momentum)) : s->root[1];
    }
    s->root[0] = gni_moved(s->p, move, s->lr);
}

// Kingma and Ba, 2015, arXiv:1412.6980; AdamW: Loshchilov and Hutter, 2019, arXiv:1711.05101.
static void gni_adam_step(gni_step *s) {
    const gni_group *set = &s->item->set;
    double n = (double)(s->item->steps + 1);
    double correct1 = 1.0 - pow(set->beta1, n), correct2 = 1.0 - pow(set->beta2, n);
    s->root[1] = gni_blend(s->item->state[0], set->beta1, s->d, 1.0 - set->beta1);
    s->root[2] = gni_blend(s->item->state[1], set->beta2, gn_square(s->d), 1.0 - set->beta2);
    gn_array *size = gn_add_s(gn_mul_s(gn_sqrt(s->root[2]), 1.0 / sqrt(correct2)), set->eps);
    s->root[0] = gni_moved(s->p, gn_div(s->root[1], size), s->lr / correct1);
}

// Hinton, 2012; centered: Graves, 2013, arXiv:1308.0850. States: squares, the momentum, and the mean.
static void gni_rmsprop_step(gni_step *s) {
    const gni_group *set = &s->item->set;
    const double alpha = set->beta2;
    gn_array *square = s->root[1] = gni_blend(s->item->state[0], alpha, gn_square(s->d), 1.0 - alpha);
    if (set->centered != 0.0) {
        const int last = gni_states_of(s->opt, s->item);
        s->root[last] = gni_blend(s->item->state[last - 1], alpha, s->d, 1.0 - alpha);
        square = gn_sub(square, gn_square(s->root[last]));
    }
    gn_array *move = gn_div(s->d, gn_add_s(gn_sqrt(square), set->eps));
    if (set->momentum != 0.0) move = s->root[2] = gn_add(gn_mul_s(s->item->state[1], set->momentum), move);
    s->root[0] = gni_moved(s->p, move, s->lr);
}

// Duchi et al., 2011.
static void gni_adagrad_step(gni_step *s) {
    s->root[1] = gn_add(s->item->state[0], gn_square(s->d));
    gn_array *move = gn_div(s->d, gn_add_s(gn_sqrt(s->root[1]), s->item->set.eps));
    s->root[0] = gni_moved(s->p, move, s->lr / (1.0 + (double)s->item->steps * s->item->set.lr_decay));
}

// Chen et al., 2023, arXiv:2302.06675.
static void gni_lion_step(gni_step *s) {
    const gni_group *set = &s->item->set;
    gn_array *m = s->item->state[0];
    s->root[0] = gni_moved(s->p, gn_sign(gni_blend(m, set->beta1, s->d, 1.0 - set->beta1)), s->lr);
    s->root[1] = gni_blend(m, set->beta2, s->d, 1.0 - set->beta2);
}

// Jordan et al., 2024: the momentum's nearest orthogonal matrix, by five steps of Newton and Schulz.
static void gni_muon_step(gni_step *s) {
    const double momentum = s->item->set.momentum, rows = (double)s->p->shape.dim[0], columns = (double)s->p->shape.dim[1];
    s->root[1] = gni_blend(s->item->state[0], momentum, s->d, 1.0 - momentum);
    gn_array *x = s->item->set.nesterov != 0.0 ? gni_blend(s->d, 1.0 - momentum, s->root[1], momentum) : s->root[1];
    if (rows > columns) x = gn_transpose(x);
    x = gn_div(x, gn_maximum_s(gn_norm(x, GN_ALL), 1e-7));
    for (int i = 0; i < 5; i++) {
        gn_array *gram = gn_matmul(x, gn_transpose(x));
        x = gn_add(gn_mul_s(x, 3.4445), gn_matmul(gni_blend(gram, -4.775, gn_matmul(gram, gram), 2.0315), x));
    }
    if (rows > columns) x = gn_transpose(x);
    // Weights are (in, out) here: larger steps where there are more results than inputs.
    s->root[0] = gni_moved(s->p, x, s->lr * sqrt(GNI_MAX(1.0, columns / rows)));
}

// States are filled with `initial`, in memory of their own.
static bool gni_states(gn_context *g, const gn_optimizer *opt, gni_optimized *item) {
    const gn_dtype t = item->param->dtype == GN_F64 ? GN_F64 : GN_F32;
    for (int k = 0; k < gni_states_of(opt, item); k++) {
        gn_array **state = &item->state[k];
        if (*state == NULL) *state = gni_const(g, opt->name, t, &item->param->shape, item->set.initial);
        if (*state == NULL || !gni_materialize(g, *state)) return false;
    }
    return true;
}

// What the arrays of a step become, pending, in the caller's scope.
static void gni_step_roots(const gn_optimizer *opt, const gni_optimized *item, gni_step *s) {
    gn_array *p = item->param, *grad = p->grad;
    const gn_dtype t = p->dtype == GN_F64 ? GN_F64 : GN_F32;
    const bool decays_gradient = opt->kind != GNI_ADAMW && opt->kind != GNI_LION && opt->kind != GNI_MUON;
    memset(s, 0, sizeof *s);
    s->opt = opt;
    s->item = item;
    s->lr = opt->lr * item->set.lr_factor;
    s->p = gni_as(p, t);
    s->d = gni_as(grad, t);
    if (opt->factor != NULL) s->d = gn_mul(s->d, opt->factor);
    if (item->set.weight_decay != 0.0 && decays_gradient) s->d = gn_add(s->d, gn_mul_s(s->p, item->set.weight_decay));
    if (item->set.weight_decay != 0.0 && !decays_gradient) s->p = gn_mul_s(s->p, 1.0 - s->lr * item->set.weight_decay);
    switch (s->p == NULL || s->d == NULL ? -1 : (int)opt->kind) {
    case GNI_SGD: gni_sgd_step(s); break;
    case GNI_ADAM:
    case GNI_ADAMW: gni_adam_step(s); break;
    case GNI_RMSPROP: gni_rmsprop_step(s); break;
    case GNI_ADAGRAD: gni_adagrad_step(s); break;
    case GNI_LION: gni_lion_step(s); break;
    case GNI_MUON: gni_muon_step(s); break;
    default: break;
    }
    s->root[0] = s->root[0] != NULL ? gni_as(s->root[0], p->dtype) : NULL;
    for (int k = 0; k <= gni_states_of(opt, item) && opt->ok != NULL; k++)
        s->root[k] = gn_where(opt->ok, s->root[k], k == 0 ? p : item->state[k - 1]);
}

// ---- one program for many sets of arrays that play the same roles: making it takes longer than what it does to a bias

enum { GNI_ROLES = 5 + GNI_OPTIMIZER_STATES };

typedef struct gni_many {
    gni_program program;
    int role[GNI_MAX_INPUTS]; // of the inputs
} gni_many;

// Whether each array, or NULL, is a run of memory of its own.
static bool gni_many_stand_alone(gn_array *const *by_role) {
    for (int i = 0; i < GNI_ROLES; i++) {
        const gn_array *a = by_role[i];
        if (a == NULL) continue;
        if (a->buf == NULL || !gni_is_contiguous(a)) return false;
        for (int k = 0; k < i; k++)
            if (by_role[k] != NULL && by_role[k]->buf == a->buf) return false;
    }
    return true;
}

// False where the roots are not one program over these arrays.
static bool gni_many_make(gn_context *g, gn_array *const *roots, int count, gn_array *const *by_role, gni_many *plan) {
    gni_builder b;
    for (int k = 0; k < count; k++)
        if (roots[k] == NULL || !gni_is_pending(roots[k]) || gni_has_product(roots[k])) return false;
    if (g->call_failed || !gni_build_roots(&b, g, roots, NULL, count)) return false;
    for (int k = 0; k < b.map.program.n_in; k++) {
        int role = 0;
        while (role < GNI_ROLES && (by_role[role] == NULL || by_role[role]->buf != b.map.in[k].buf)) role++;
        if (role == GNI_ROLES) return false;
        plan->role[k] = role;
    }
    plan->program = b.map.program;
    return true;
}

// Arrays of one element are the same for all others. Results go into the memory of `into`. On a GPU some wait for
// gni_gather_end.
static bool gni_many_run(gn_context *g, const gni_many *plan, gn_array *const *by_role, gn_array *const *into) {
    gni_map m;
    gni_buffer *was[GNI_MAX_OUTPUTS] = {NULL, NULL, NULL, NULL};
    const gni_program *p = &plan->program;
    bool ok = true, alone = false; // alone: other arrays show what it writes
    memset(&m, 0, sizeof m);
    m.program = *p;
    m.rank = 1;
    m.dim[0] = gni_elements(&into[0]->shape);
    for (int k = 0; k < p->n_in; k++) {
        const gn_array *a = by_role[plan->role[k]];
        m.in[k].buf = a->buf;
        m.in[k].dtype = a->dtype;
        m.in[k].offset = a->offset;
        m.in[k].stride[0] = gni_elements(&a->shape) > 1;
        a->buf->refs++; // writing may give the array another buffer
    }
    for (int k = 0; k < p->n_out && ok; k++) {
        int held = 1;
        for (int i = 0; i < p->n_in; i++) held += m.in[i].buf == into[k]->buf;
        was[k] = into[k]->buf;
        was[k]->refs++;
        alone = alone || into[k]->buf->refs - held > 1;
        ok = gni_before_overwrite(g, into[k], 0, held);
        alone = alone || into[k]->buf != was[k];
        m.out[k].buf = into[k]->buf;
        m.out[k].dtype = into[k]->dtype;
        m.out[k].offset = into[k]->offset;
        m.out[k].stride[0] = 1;
    }
    gni_map_merge(&m);
    if (alone) ok = gni_gather_end(g) && ok;
    gni_gather(g, !alone);
    ok = ok && gni_run(g, &gni_kind_map, &m, NULL);
    gni_gather(g, false);
    for (int k = 0; k < p->n_in; k++) gni_buffer_release(g, m.in[k].buf);
    for (int k = 0; k < p->n_out && was[k] != NULL; k++) {
        if (!ok) gni_restore_buffer(g, into[k], was[k]);
        gni_buffer_release(g, was[k]);
    }
    return ok;
}

// What differs between steps that need programs of their own.
typedef struct gni_step_plan {
    const gni_optimized *of; // whose it is; NULL: there is none
    gn_dtype grad;
    gn_array *clip;
    gni_many many;
} gni_step_plan;

// The gradient as it is in memory: of one that was clipped, what it was before, with its factor in *clip, so that the step
// reads and writes it once.
static gn_array *gni_step_gradient(gn_array *p, gn_array **clip) {
    gn_array *grad = p->grad;
    const gni_expr *e = grad->expr;
    *clip = NULL;
    if (e == NULL || e->op != GNI_OP_MUL || e->n_src != 2 || e->compute != grad->dtype) return grad;
    gn_array *a = e->src[0], *f = e->src[1];
    if (a == NULL || f == NULL || a->buf == NULL || f->buf == NULL || a->dtype != grad->dtype || f->shape.rank != 0 ||
        !gni_same_shape(&a->shape, &p->shape))
        return grad;
    *clip = f;
    return a;
}

// The roles: the parameter, its gradient, that one's factor, ok, the scale's factor, states.
static void gni_step_arrays(const gn_optimizer *opt, const gni_optimized *item, gn_array **by_role) {
    by_role[0] = item->param;
    by_role[1] = gni_step_gradient(item->param, &by_role[2]);
    by_role[3] = opt->ok;
    by_role[4] = opt->factor;
    memcpy(by_role + 5, item->state, sizeof item->state);
}

static bool gni_step_plan_fits(const gni_step_plan *plan, const gni_optimized *item, gn_array *const *by_role) {
    const gni_optimized *of = plan->of;
    return of != NULL && of->param->dtype == item->param->dtype && plan->grad == by_role[1]->dtype &&
           plan->clip == by_role[2] && of->steps == item->steps + 1 &&
           memcmp(&of->set, &item->set, sizeof of->set) == 0;
}

enum { GNI_STEP_PLANS = 4 }; // kept at a time: weights and biases may differ in what they decay

// The plan for this parameter, or NULL.
static const gni_step_plan *gni_step_plan_of(gn_context *g, const gn_optimizer *opt, const gni_optimized *item,
                                             gn_array *const *by_role, gni_step_plan *plans) {
    gni_step s;
    if (opt->kind == GNI_MUON || !gni_many_stand_alone(by_role)) return NULL;
    for (int i = 0; i < GNI_STEP_PLANS; i++)
        if (gni_step_plan_fits(&plans[i], item, by_role)) return &plans[i];
    gni_step_plan *plan = &plans[(item - opt->items) % GNI_STEP_PLANS];
    gn_scope_begin(g);
    gni_step_roots(opt, item, &s);
    const bool made = gni_many_make(g, s.root, 1 + gni_states_of(opt, item), by_role, &plan->many);
    gn_scope_end(g);
    plan->of = made ? item : NULL;
    plan->grad = by_role[1]->dtype;
    plan->clip = by_role[2];
    return made ? plan : NULL;
}

static void gni_step_one(gn_context *g, gn_optimizer *opt, gni_optimized *item, gni_step_plan *plans) {
    gn_array *p = item->param, *into[1 + GNI_OPTIMIZER_STATES], *by_role[GNI_ROLES];
    if (p->grad == NULL || gni_elements(&p->shape) == 0) return;
    if (!gni_materialize(g, p) || !gni_states(g, opt, item)) return;
    into[0] = p;
    memcpy(into + 1, item->state, sizeof item->state);
    gni_step_arrays(opt, item, by_role);
    // A pending gradient may read the very memory that the step overwrites.
    if (by_role[2] == NULL || !gni_many_stand_alone(by_role)) {
        if (!gni_materialize(g, p->grad)) return;
        gni_step_arrays(opt, item, by_role);
    }
    const gni_step_plan *plan = gni_step_plan_of(g, opt, item, by_role, plans);
    if (plan != NULL) {
        item->steps += gni_many_run(g, &plan->many, by_role, into);
        return;
    }
    gni_step s;
    if (!gni_gather_end(g) || g->call_failed || !gni_materialize(g, p->grad)) return;
    gn_scope_begin(g);
    gni_step_roots(opt, item, &s);
    if (!g->call_failed && gni_evaluate(g, s.root, into, 1 + gni_states_of(opt, item))) item->steps++;
    gn_scope_end(g);
}

static void gni_step_all(gn_context *g, gn_optimizer *opt) {
    gni_step_plan plans[GNI_STEP_PLANS];
    for (int i = 0; i < GNI_STEP_PLANS; i++) plans[i].of = NULL;
    for (int i = 0; i < opt->count && !g->call_failed; i++) gni_step_one(g, opt, &opt->items[i], plans);
    gni_gather_end(g);
}

GPUNUM_API gn_status gn_step(gn_optimizer *opt) {
    gn_context *g = gni_begin_with("gn_step", opt, GNI_IS_OPTIMIZER);
    if (g == NULL) return GN_ERROR_ARGUMENT;
    bool any = false;
    for (int i = 0; i < opt->count; i++) any = any || opt->items[i].param->grad != NULL;
    if (!any)
        gni_log(g, GN_LOG_WARNING,
                "gn_step: none of the %d parameters has a gradient: no gn_backward, or other arrays are in their place",
                opt->count);
    g->no_grad++;
    gni_step_all(g, opt);
    g->no_grad--;
    return gni_end_status(g);
}

// ---- one number of each of many arrays, and of these one: those are there at the same time, in memory of one array

enum { GNI_SUMS_APART = 4 }; // elements: what is written is told apart by 16 bytes

typedef struct gni_sums {
    gn_context *g;
    gn_array *each, *other; // (n,4), the first of each row counts; the sum of those in float64
    int64_t used, most;
} gni_sums;

static void gni_sums_begin(gni_sums *s, gn_context *g, int most) {
    memset(s, 0, sizeof *s);
    s->g = g;
    s->most = most;
}

// `a` belongs to the caller's scope.
static void gni_sums_add(gni_sums *s, gni_reduction op, gn_array *a) {
    const gn_shape shape = GN_SHAPE(GNI_MAX(s->most, 1), GNI_SUMS_APART);
    if (a == NULL || s->g->call_failed) return;
    if (a->dtype == GN_F64) {
        gn_array *sum = gn_sum(a, GN_ALL);
        s->other = s->other != NULL ? gn_add(s->other, sum) : sum;
        return;
    }
    if (s->each == NULL) s->each = gn_empty(s->g, GN_F32, shape);
    if (s->each == NULL) return;
    gni_reduce_into(s->g, "gn_sum", op, a, GN_F32, GN_F32, (1u << a->shape.rank) - 1u, false, NULL, s->each,
                    s->used++ * GNI_SUMS_APART);
}

// NULL where nothing was added.
static gn_array *gni_sums_end(gni_sums *s, gni_reduction op) {
    if (s->each == NULL || s->g->call_failed) return s->other;
    gn_array *first = gn_index(gn_slice(s->each, 0, 0, s->used, 1), ":, 0");
    gn_array *y = op == GNI_RED_MIN ? gn_min(first, GN_ALL) : gn_sum(first, GN_ALL);
    return s->other != NULL ? gn_add(s->other, y) : y;
}

// ---- loss scaling (Micikevicius et al., 2018, arXiv:1710.03740), of which the device alone knows how it went

static bool gni_is_scale(gn_context *g, const char *fn, const gn_array *scale) {
    const gn_shape two = GN_SHAPE(2);
    if (scale->dtype == GN_F32 && gni_same_shape(&scale->shape, &two) && scale->node == NULL && !scale->wants_grad)
        return true;
    return gni_fail(g, GN_ERROR_ARGUMENT, "%s: the scale is not an array of two float32 numbers that no op made", fn);
}

GPUNUM_API gn_array *gn_scale_loss(gn_array *loss, gn_array *scale) {
    gn_context *g = gni_begin_pair("gn_scale_loss", loss, scale);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if (gni_need_float(g, "gn_scale_loss", loss->dtype) && gni_is_scale(g, "gn_scale_loss", scale))
        y = gn_mul(loss, gn_copy(gn_index(scale, "0"))); // the step writes to it
    return gni_end_scope(g, y);
}

// Whether all gradients are finite, and the factor that takes the scale and what is above max_norm away.
static void gni_step_judge(gn_context *g, gn_optimizer *opt, gn_array *scale, double max_norm) {
    gni_sums finite, squares;
    gn_array *inverse = gn_recip(scale);
    bool any = false;
    gni_sums_begin(&finite, g, opt->count);
    gni_sums_begin(&squares, g, opt->count);
    for (int i = 0; i < opt->count && !g->call_failed; i++) {
        gn_array *grad = opt->items[i].param->grad;
        if (grad == NULL || gni_elements(&grad->shape) == 0) continue;
        const gn_dtype t = grad->dtype == GN_F64 ? GN_F64 : GN_F32;
        any = true;
        gni_sums_add(&finite, GNI_RED_MIN, gni_as(gn_isfinite(grad), GN_F32));
        if (max_norm > 0.0) gni_sums_add(&squares, GNI_RED_SUM, gn_square(gn_mul(gni_as(grad, t), inverse)));
    }
    gn_array *total = gni_sums_end(&squares, GNI_RED_SUM), *all = gni_sums_end(&finite, GNI_RED_MIN);
    if (total != NULL) inverse = gn_mul(inverse, gn_minimum_s(gn_rdiv_s(gn_add_s(gn_sqrt(total), 1e-6), max_norm), 1.0));
    opt->ok = any && all != NULL ? gn_eval(gn_ne_s(all, 0.0)) : NULL;
    opt->factor = gn_eval(inverse);
}

GPUNUM_API gn_status gn_step_scaled(gn_optimizer *opt, gn_array *scale, int64_t interval, double max_norm) {
    static const char *const fn = "gn_step_scaled";
    if (opt == NULL) return GN_ERROR_ARGUMENT;
    gn_context *g = gni_begin_scope(fn, &scale, 1);
    if (g == NULL) return gni_null_status(scale);
    g->no_grad++;
    const bool ours = gni_optimizer_ok(g, fn, opt);
    if (ours && ((interval < 0 && interval != GN_NONE) || !(max_norm >= 0.0)))
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: interval %lld, max_norm %g", fn, (long long)interval, max_norm);
    else if (ours && gni_is_scale(g, fn, scale)) {
        gn_array *now = gn_index(scale, "0"), *steps = gn_index(scale, "1"), *next[2];
        gni_step_judge(g, opt, now, max_norm);
        if (opt->ok != NULL && !g->call_failed) {
            gni_step_all(g, opt);
            // Below 0: an optimizer before this one met what is not finite.
            gn_array *good = gn_logical_and(opt->ok, gn_ge_s(steps, 0.0)), *bad = gn_scalar(g, GN_F32, -1.0);
            gn_array *grows = gn_ge_s(steps, (double)(interval > 0 ? interval : 2000) - 1.0);
            gn_array *twice = gn_mul_s(now, 2.0); // as long as float32 has it: infinity would stay
            next[0] = gn_where(good, gn_where(gn_logical_and(grows, gn_isfinite(twice)), twice, now), gn_mul_s(now, 0.5));
            next[1] = gn_where(gn_logical_and(good, gn_logical_not(grows)), gn_add_s(steps, 1.0), gn_scalar(g, GN_F32, 0.0));
            if (interval == GN_NONE) {
                next[0] = now;
                next[1] = gn_where(opt->ok, steps, bad);
            }
            gn_assign(scale, gn_stack(next, 2, 0));
        }
        opt->ok = opt->factor = NULL;
    }
    g->no_grad--;
    gn_scope_end(g);
    return gni_end_status(g);
}

GPUNUM_API void gn_zero_grads(gn_optimizer *opt) {
    gn_context *g = gni_begin_with("gn_zero_grads", opt, GNI_IS_OPTIMIZER);
    if (g == NULL) return;
    for (int i = 0; i < opt->count; i++) gni_set_grad(g, opt->items[i].param, NULL);
    gni_end_plain(g);
}

GPUNUM_API void gn_lr_set(gn_optimizer *opt, double lr) {
    gn_context *g = gni_begin_with("gn_lr_set", opt, GNI_IS_OPTIMIZER);
    if (g == NULL) return;
    if (gni_settings_ok(g, "gn_lr_set", &lr, 1)) opt->lr = lr;
    gni_end_plain(g);
}

GPUNUM_API double gn_lr_get(const gn_optimizer *opt) {
    return gni_is_a("gn_lr_get", opt, GNI_IS_OPTIMIZER) ? opt->lr : GNI_NAN;
}

GPUNUM_API void gn_optimizer_free(gn_optimizer *opt) {
    gn_context *g = gni_begin_with("gn_optimizer_free", opt, GNI_IS_OPTIMIZER);
    if (g == NULL) return;
    gn_optimizer **at = &g->optimizers;
    while (*at != NULL && *at != opt) at = &(*at)->next;
    if (*at == opt) {
        *at = opt->next;
        gni_optimizer_release(g, opt);
    }
    gni_end_plain(g);
}

// ---- gradients that are clipped, averages of parameters

// `by` instead of the gradient of `a`; the caller's scope has it.
static void gni_replace_grad(gn_context *g, gn_array *a, gn_array *by) {
    if (by == NULL) return;
    gni_ref(by);
    gni_set_grad(g, a, by);
}

GPUNUM_API gn_array *gn_clip_grad_norm(gn_array *const *params, int count, double max_norm) {
    static const char *const fn = "gn_clip_grad_norm";
    gn_context *g = gni_begin_scope(fn, params, count);
    if (g == NULL) return NULL;
    g->no_grad++;
    gni_sums sums;
    gni_sums_begin(&sums, g, count);
    for (int i = 0; i < count && gni_settings_ok(g, fn, &max_norm, 1) && !g->call_failed; i++) {
        gn_array *grad = params[i]->grad;
        if (grad != NULL) gni_sums_add(&sums, GNI_RED_SUM, gn_square(gni_as(grad, grad->dtype == GN_F64 ? GN_F64 : GN_F32)));
    }
    gn_array *total = gni_sums_end(&sums, GNI_RED_SUM), *norm = gn_sqrt(total != NULL ? total : gn_scalar(g, GN_F32, 0.0));
    gn_array *factor = gn_eval(gn_minimum_s(gn_rdiv_s(gn_add_s(norm, 1e-6), max_norm), 1.0));
    for (int i = 0; i < count && !g->call_failed; i++) {
        gn_array *grad = params[i]->grad;
        if (grad != NULL) gni_replace_grad(g, params[i], gni_as(gn_mul(grad, factor), grad->dtype));
    }
    g->no_grad--;
    return gni_end_scope(g, norm);
}

GPUNUM_API gn_status gn_clip_grad_value(gn_array *const *params, int count, double value) {
    static const char *const fn = "gn_clip_grad_value";
    gn_context *g = gni_begin_scope(fn, params, count);
    if (g == NULL) return gni_null_status(params != NULL && count > 0 ? params[0] : NULL);
    g->no_grad++;
    for (int i = 0; i < count && gni_settings_ok(g, fn, &value, 1) && !g->call_failed; i++)
        if (params[i]->grad != NULL) gni_replace_grad(g, params[i], gn_clamp(params[i]->grad, -value, value));
    g->no_grad--;
    gn_scope_end(g);
    return gni_end_status(g);
}

GPUNUM_API gn_status gn_ema_update(gn_array *const *averages, gn_array *const *params, int count, double decay) {
    static const char *const fn = "gn_ema_update";
    gn_context *g = gni_begin(fn, averages, count);
    if (g == NULL) return gni_null_status(averages != NULL && count > 0 ? averages[0] : NULL);
    gn_context *same = gni_begin(fn, params, count);
    if (same != NULL) gni_end_plain(same);
    gn_array *by_role[GNI_ROLES] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    const gn_array *planned = NULL;
    gni_many plan;
    gn_scope_begin(g);
    g->no_grad++;
    if (same != g || !(decay >= 0.0 && decay <= 1.0))
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: decay %g, or parameters of another context", fn, decay);
    for (int i = 0; i < count && !g->call_failed; i++) {
        gn_array *a = averages[i], *p = params[i], *sum;
        if (!gni_same_shape(&a->shape, &p->shape) || a->dtype != p->dtype || a == p || a->node != NULL ||
            !gni_is_float(a->dtype)) {
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: average %d is not what gn_detach(gn_copy(parameter)) gives", fn, i + 1);
            break;
        }
        if (!gni_is_contiguous(a)) gni_fail(g, GN_ERROR_ARGUMENT, "%s: average %d is not in C order", fn, i + 1);
        if (g->call_failed || !gni_materialize(g, a) || !gni_materialize(g, p)) break;
        by_role[0] = a;
        by_role[1] = p;
        // Averages that are others' parameters, or there twice, are computed in their order.
        bool apart = count <= 1024;
        for (int k = 0; k < count && apart; k++)
            apart = k == i || (averages[k]->buf != a->buf && averages[k]->buf != p->buf && params[k]->buf != a->buf);
        const bool plain = apart && gni_many_stand_alone(by_role);
        if (plain && planned != NULL && planned->dtype == a->dtype) {
            gni_many_run(g, &plan, by_role, &a);
            continue;
        }
        sum = gni_blend(a, decay, p, 1.0 - decay);
        if (plain && gni_many_make(g, &sum, 1, by_role, &plan)) planned = a;
        if (gni_gather_end(g) && sum != NULL) gni_evaluate(g, &sum, &a, 1);
    }
    gni_gather_end(g);
    g->no_grad--;
    gn_scope_end(g);
    return gni_end_status(g);
}
