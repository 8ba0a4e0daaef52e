// >>train
// Layers, losses and optimizers.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// x (..., in) times w (in, out) plus b (out); b may be NULL. As lazy as gn_matmul. In gn_backward the gradients
// of w and b come of one job; b's are float32 sums over the rows, in a fixed order.
GPUNUM_API gn_array *gn_linear(gn_array *x, gn_array *w, gn_array *b);
// Mean over rows of logsumexp(logits) - logits[label]; logits (n, classes), labels (n) integers. A label
// outside 0 to classes - 1 gives an infinite loss.
GPUNUM_API gn_array *gn_cross_entropy(gn_array *logits, gn_array *labels);
GPUNUM_API gn_array *gn_mse_loss(gn_array *prediction, gn_array *target); // mean of squares
// Weights for a layer of shape s = (in, out): He for relu, Glorot for tanh and linear layers. Float dtypes,
// requires_grad on.
GPUNUM_API gn_array *gn_he_normal(gn_context *g, gn_dtype t, gn_shape s);
GPUNUM_API gn_array *gn_xavier_uniform(gn_context *g, gn_dtype t, gn_shape s);

typedef struct gn_optimizer gn_optimizer;
typedef struct gn_sgd_options {
    double lr, momentum, dampening, weight_decay; // lr 0 = 0.01
    bool nesterov;
} gn_sgd_options;
typedef struct gn_adam_options {
    double lr, beta1, beta2, eps, weight_decay; // 0 = 1e-3, 0.9, 0.999, 1e-8 and for AdamW 0.01
} gn_adam_options;
// The optimizer holds a reference to each parameter and updates it in place. `options` may be NULL.
GPUNUM_API gn_optimizer *gn_sgd(gn_array *const *params, int count, const gn_sgd_options *options);
GPUNUM_API gn_optimizer *gn_adam(gn_array *const *params, int count, const gn_adam_options *options);
GPUNUM_API gn_optimizer *gn_adamw(gn_array *const *params, int count, const gn_adam_options *options);
GPUNUM_API gn_status gn_step(gn_optimizer *opt);   // parameters without a gradient stay as they are
GPUNUM_API void gn_zero_grads(gn_optimizer *opt);
GPUNUM_API void gn_lr_set(gn_optimizer *opt, double lr);
GPUNUM_API double gn_lr_get(const gn_optimizer *opt);
GPUNUM_API void gn_optimizer_free(gn_optimizer *opt); // gn_close frees those still alive
